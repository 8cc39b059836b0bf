/* Runs of the program on the built-in shapes. Killed with SIGKILL at random times and started
 * again, training ends like an uninterrupted run, with the same bits, evaluations and best
 * checkpoint (evaluation_resume_test.c kills between chosen writes). SIGTERM saves and exits
 * with 143. Output and files match the README. On the CPU, and on lavapipe where it is
 * installed. */
#include "e2e/software_drivers.h"
#include "e2e/same_run.h"

#include <pumice/rng.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static char folder[] = "/tmp/pumice-resume-XXXXXX";
static char config[512];

static const char text[] =
    "{ \"model\": { \"layers\": ["
    "  { \"name\": \"conv1\", \"layer\": \"conv2d\", \"filters\": 8, \"stride\": 2 },"
    "  { \"name\": \"norm1\", \"layer\": \"batch_norm\", \"activation\": \"relu\" },"
    "  { \"name\": \"pool\", \"layer\": \"max_pool\", \"kernel\": 2, \"stride\": 2 },"
    "  { \"name\": \"drop\", \"layer\": \"dropout\", \"keep\": 0.8 },"
    "  { \"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 4 } ] },"
    "  \"data\": { \"folder\": \"%s/data\", \"train_split\": \"train\", \"eval_split\": \"test\" },"
    "  \"input\": { \"preprocessing\": \"cifarnet\", \"size\": 32 },"
    "  \"optim\": { \"name\": \"momentum\", \"weight_decay\": 1e-4 },"
    "  \"schedule\": { \"policy\": \"cosine\", \"base_lr\": 0.05 },"
    "  \"run\": { \"steps\": 60, \"batch_size\": 16, \"log_every_steps\": 5,"
    "           \"save_every_steps\": 4, \"keep\": 2, \"keep_best\": \"loss\" },"
    "  \"eval\": { \"every_steps\": 6 } }";

/* Starts the program; out: file for standard output, or NULL. */
static pid_t start(const char *const *args, const char *out)
{
    pid_t pid = fork();

    if (pid == 0) {
        const char *argv[16] = { getenv("PUMICE_PROGRAM") };
        int null = open("/dev/null", O_RDWR), to = null;
        int n = 1;

        while (*args)
            argv[n++] = *args++;
        if (out)
            to = open(out, O_CREAT | O_TRUNC | O_WRONLY, 0600);
        dup2(null, 0);
        dup2(to, 1);
        dup2(null, 2);
        execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    return pid;
}

static int finish(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int run(const char *const *args, const char *out)
{
    return finish(start(args, out));
}

static char *read_all(const char *path, size_t *size)
{
    char *data;

    if (pm_file_read(path, &data, size) < 0)
        fail_msg("%s", pm_error_text());
    return data;
}

static cJSON *read_json(const char *path)
{
    size_t size;
    char *data = read_all(path, &size);
    cJSON *json = cJSON_Parse(data);

    if (!json)
        fail_msg("%s is not JSON: %s", path, data);
    pm_free(data);
    return json;
}

static void train_args(const char **args, const char *name, const char *device, char buf[2][256])
{
    snprintf(buf[0], 256, "run.folder=%s/%s", folder, name);
    snprintf(buf[1], 256, "devices=%s", device);
    args[0] = "train", args[1] = config, args[2] = buf[0], args[3] = buf[1], args[4] = NULL;
}

/* kills: number of kills before the run may end. */
static void check_kills(const char *device, const char *name, int kills)
{
    const char *args[8];
    char buf[2][256], whole[64], torn[64];
    struct pm_rng r = pm_rng_make(11, pm_hash(name), 0, 0);
    double before, seconds;

    snprintf(whole, sizeof whole, "whole-%s", name);
    snprintf(torn, sizeof torn, "torn-%s", name);
    train_args(args, whole, device, buf);
    before = pm_seconds();
    assert_int_equal(run(args, NULL), 0);
    seconds = pm_seconds() - before;
    train_args(args, torn, device, buf);
    for (int i = 0; i < kills; i++) {
        pid_t pid = start(args, NULL);

        usleep((useconds_t)(1e6 * seconds * 0.6 * pm_rng_uniform(&r)));
        kill(pid, SIGKILL);
        finish(pid);
    }
    assert_int_equal(run(args, NULL), 0);
    snprintf(buf[0], sizeof buf[0], "%s/%s", folder, whole);
    snprintf(buf[1], sizeof buf[1], "%s/%s", folder, torn);
    same_run(buf[0], buf[1]);
}

static void test_killed_on_the_cpu(void **state)
{
    (void)state;
    check_kills("[\"cpu\"]", "cpu", 10);
}

static void test_killed_on_lavapipe(void **state)
{
    (void)state;
    need_lavapipe();
    check_kills("[\"llvmpipe\"]", "lavapipe", 10);
}

static void test_killed_with_several_clones(void **state)
{
    (void)state;
    check_kills("[\"cpu\",\"cpu\"]", "clones", 4);
}

static void test_sigterm_saves(void **state)
{
    const char *args[8];
    char buf[2][256];
    pid_t pid;
    int code;

    (void)state;
    train_args(args, "term", "[\"cpu\"]", buf);
    args[4] = "run.steps=100000", args[5] = "run.save_every_steps=0", args[6] = NULL;
    pid = start(args, NULL);
    sleep(3);
    kill(pid, SIGTERM);
    code = finish(pid);
    assert_int_equal(code, 143);
    snprintf(buf[0], sizeof buf[0], "%s/term/latest", folder);
    assert_true(pm_file_exists(buf[0]));
}

static void test_eval_and_predict(void **state)
{
    char out[256], run_folder[256];
    cJSON *json;

    (void)state;
    snprintf(out, sizeof out, "%s/out.json", folder);
    snprintf(run_folder, sizeof run_folder, "run.folder=%s/whole-cpu", folder);
    assert_int_equal(run((const char *[]){ "eval", config, run_folder, "--json", NULL }, out), 0);
    json = read_json(out);
    assert_int_equal(cJSON_GetObjectItem(json, "step")->valueint, 60);
    assert_int_equal(cJSON_GetObjectItem(json, "count")->valueint, 37); /* each picture once */
    assert_true(cJSON_IsNumber(
        cJSON_GetObjectItem(cJSON_GetObjectItem(json, "metrics"), "accuracy")));
    cJSON_Delete(json);
    assert_int_equal(
        run((const char *[]){ "predict", config, "/nothing/there.png", run_folder, NULL }, out), 3);
    assert_int_equal(run((const char *[]){ "train", config, "run.stepz=1", NULL }, out), 2);
    assert_int_equal(run((const char *[]){ "eval", config, run_folder, "devices=[\"vulkan:77\"]",
                                           NULL }, out), 4);
    assert_int_equal(run((const char *[]){ "eval", config, run_folder, "eval.checkpoint=77", NULL },
                         out), 3);
}

static int set_up(void **state)
{
    static char body[4096];
    char data[256];

    (void)state;
    if (!getenv("PUMICE_PROGRAM") || !mkdtemp(folder))
        return -1;
    snprintf(body, sizeof body, text, folder);
    snprintf(config, sizeof config, "%s/shapes.json", folder);
    snprintf(data, sizeof data, "%s/data", folder);
    if (pm_file_write(config, body, strlen(body)) < 0)
        return -1;
    return run((const char *[]){ "dataset", "make", "shapes", data, "size=32", "train=200",
                                 "validation=20", "test=37", NULL }, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    return pm_remove_tree(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_on_the_cpu),
        cmocka_unit_test(test_killed_on_lavapipe),
        cmocka_unit_test(test_killed_with_several_clones),
        cmocka_unit_test(test_sigterm_saves),
        cmocka_unit_test(test_eval_and_predict),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
