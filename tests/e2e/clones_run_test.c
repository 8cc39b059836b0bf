/* Two clones in whole runs. The trace shows that gradient buckets reach the host while the
 * backward pass is running. With one clone slowed down, run.balance "auto" moves the shares.
 * Every Vulkan driver together with the CPU follows the loss of a run on the CPU alone. A loss
 * that is not finite stops the run. The best checkpoint is kept. */
#include "e2e/software_drivers.h"

#include <pumice/base.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>
#include <cjson/cJSON.h>

static char folder[] = "/tmp/pumice-clones-XXXXXX";

/* The first layers are small and come late in the backward pass, the large ones come early:
 * buckets of 4 MiB are ready long before its end. */
static const char text[] =
    "{ \"model\": { \"layers\": ["
    "  { \"name\": \"conv1\", \"layer\": \"conv2d\", \"filters\": 16, \"activation\": \"relu\" },"
    "  { \"name\": \"conv2\", \"layer\": \"conv2d\", \"filters\": 32, \"stride\": 2,"
    "    \"activation\": \"relu\" },"
    "  { \"name\": \"drop\", \"layer\": \"dropout\", \"keep\": 0.8 },"
    "  { \"name\": \"hidden\", \"layer\": \"fully_connected\", \"units\": 320,"
    "    \"activation\": \"relu\" },"
    "  { \"name\": \"wide\", \"layer\": \"fully_connected\", \"units\": 4096 },"
    "  { \"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 4 } ] },"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\" },"
    "  \"input\": { \"preprocessing\": \"lenet\", \"size\": 32 },"
    "  \"optim\": { \"name\": \"sgd\" },"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.01 },"
    "  \"run\": { \"steps\": 12, \"batch_size\": 24, \"log_every_steps\": 1 } }";

static int run(const char *environment, const char *name, const char *arguments)
{
    char command[2048];

    snprintf(command, sizeof command,
             "%s \"$PUMICE_PROGRAM\" train %s/net.json run.folder=%s/%s %s > %s/%s.log 2>&1",
             environment, folder, folder, name, arguments, folder, name);
    return system(command);
}

static cJSON *read_json(const char *name)
{
    char path[256], *data;
    cJSON *json;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (pm_file_read(path, &data, NULL) < 0)
        fail_msg("%s", pm_error_text());
    json = cJSON_Parse(data);
    pm_free(data);
    if (!json)
        fail_msg("%s is not JSON", path);
    return json;
}

static const char *text_of(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItem(object, key));
}

static double number_of(const cJSON *object, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(object, key));
}

static void test_buckets_overlap_the_backward_pass(void **state)
{
    char environment[256];
    cJSON *trace, *events;
    const cJSON *bucket, *step;
    int overlapping = 0;

    (void)state;
    snprintf(environment, sizeof environment, "PM_TRACE=%s/trace.json", folder);
    assert_int_equal(run(environment, "traced", "'devices=[\"cpu\",\"cpu\"]'"), 0);
    trace = read_json("trace.json");
    events = cJSON_GetObjectItem(trace, "traceEvents");
    cJSON_ArrayForEach(bucket, events)
    {
        if (strncmp(text_of(bucket, "name"), "sum bucket", 10) != 0)
            continue;
        cJSON_ArrayForEach(step, events)
        {
            double begin = number_of(step, "ts"), end = begin + number_of(step, "dur");

            if (strcmp(text_of(step, "name"), "train") == 0 && number_of(bucket, "ts") > begin &&
                number_of(bucket, "ts") + number_of(bucket, "dur") < end)
                overlapping++;
        }
    }
    cJSON_Delete(trace);
    assert_true(overlapping >= 6); /* of 12 steps with some buckets each */
}

static void test_slow_clone_gets_less(void **state)
{
    cJSON *shares;
    double first, second;

    (void)state;
    assert_int_equal(run("PM_SLOW=1:6", "slow",
                         "run.balance=auto run.steps=14 'devices=[\"cpu\",\"cpu\"]'"), 0);
    shares = read_json("slow/shares.json");
    first = number_of(cJSON_GetArrayItem(shares, 0), "share");
    second = number_of(cJSON_GetArrayItem(shares, 1), "share");
    cJSON_Delete(shares);
    if (!(second < 0.4 && fabs(first + second - 1) < 1e-6))
        fail_msg("shares %g and %g", first, second);
}

/* Reads the losses of a run, one for each step. */
static int read_losses(const char *name, double *loss)
{
    char path[256], *data, *line, *rest;
    int count = 0;

    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, name);
    if (pm_file_read(path, &data, NULL) < 0)
        fail_msg("%s", pm_error_text());
    for (line = strtok_r(data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        cJSON *json = cJSON_Parse(line);

        loss[count++] = number_of(json, "loss");
        cJSON_Delete(json);
    }
    pm_free(data);
    return count;
}

static void test_unlike_clones_follow_the_cpu(void **state)
{
    double alone[64], together[64];

    (void)state;
    need_both_drivers();
    assert_int_equal(run("", "alone", "'devices=[\"cpu\"]'"), 0);
    assert_int_equal(run("", "together",
                         "run.validate=true 'devices=[\"llvmpipe\",\"SwiftShader\",\"cpu\"]'"), 0);
    assert_int_equal(read_losses("alone", alone), 12);
    assert_int_equal(read_losses("together", together), 12);
    for (int i = 0; i < 12; i++)
        if (!(fabs(alone[i] - together[i]) <= 1e-3 * fabs(alone[i])))
            fail_msg("step %d: %g alone, %g together", i, alone[i], together[i]);
}

/* Uses all threads at once, for the thread sanitizer: clones of different kinds (one is lost
 * during the run), loaders, evaluation, checkpoints, event files and the trace. Then the run
 * is resumed. */
static void test_all_threads_at_once(void **state)
{
    const bool both = has_both_drivers();
    char environment[256], arguments[256], path[256], *log;

    (void)state;
    snprintf(environment, sizeof environment, "PM_TRACE=%s/all.json PM_LOSE=1:7", folder);
    snprintf(arguments, sizeof arguments, "eval.every_steps=4 run.save_every_steps=4 "
             "run.snapshot_every_steps=2 'devices=[\"cpu\",\"%s\",\"%s\"]'",
             both ? "llvmpipe" : "cpu", both ? "SwiftShader" : "cpu");
    assert_int_equal(run(environment, "all", arguments), 0);
    snprintf(path, sizeof path, "%s/all.log", folder);
    if (pm_file_read(path, &log, NULL) < 0)
        fail_msg("%s", pm_error_text());
    if (!strstr(log, "opening devices[1]") || !strstr(log, "eval: step 12"))
        fail_msg("%s", log);
    pm_free(log);
    strcat(arguments, " run.steps=14");
    assert_int_equal(run("", "all", arguments), 0);
}

/* The log names exactly the records of the failed step's batch, by file, number and picture, though
 * later steps were under way. In the order of the files they follow from the step's number. */
static void names_its_records(const char *log)
{
    const char *at = strstr(log, "error: ");
    unsigned long long step = 0;
    char name[64];
    int named = 0;

    at = at ? strstr(at, "step ") : NULL;
    assert_true(at && sscanf(at, "step %llu: the loss is", &step) == 1 && step > 4);
    for (int k = 0; k < 24; k++) {
        const int i = (int)((step - 1) * 24 + (unsigned)k) % 200;

        snprintf(name, sizeof name, " record %d (offset ", i);
        assert_non_null(strstr(log, name));
        snprintf(name, sizeof name, ": train_%06d.png", i);
        assert_non_null(strstr(log, name));
    }
    for (at = log; (at = strstr(at, ": train_0")); at++)
        named++;
    assert_int_equal(named, 24);
    snprintf(name, sizeof name, "step %llu, records of its batch: ", step);
    assert_non_null(strstr(log, name));
}

/* A learning rate that makes the weights diverge: the run stops and names the step, the loss, a
 * variable, the batch's records and the last good checkpoint, which still exists and can be
 * opened. */
static void test_not_finite_stops(void **state)
{
    char path[256], *log;

    (void)state;
    assert_int_equal(run("", "nan", "run.save_every_steps=2 run.steps=4 data.shuffle=false "
                         "'devices=[\"cpu\"]'"), 0);
    assert_int_equal(WEXITSTATUS(run("", "nan", "schedule.base_lr=100 optim.name=momentum "
                                     "run.steps=200 'devices=[\"cpu\"]'")), 2); /* another run */
    assert_int_equal(WEXITSTATUS(run("", "nan", "schedule.base_lr=100 run.steps=200 "
                                     "data.shuffle=false 'devices=[\"cpu\"]'")), 1);
    snprintf(path, sizeof path, "%s/nan.log", folder);
    if (pm_file_read(path, &log, NULL) < 0)
        fail_msg("%s", pm_error_text());
    if (!strstr(log, "not finite") || !strstr(log, "last good checkpoint: step 4") ||
        !strstr(log, "weights") || !strstr(log, "schedule.base_lr"))
        fail_msg("%s", log);
    names_its_records(log);
    pm_free(log);
    snprintf(path, sizeof path, "%s/nan/checkpoints/step-000004.safetensors", folder);
    assert_true(pm_file_exists(path));
}

/* The best checkpoint by a metric is kept beside the newest ones. */
static void test_keep_best(void **state)
{
    char path[256];

    (void)state;
    assert_int_equal(run("", "best", "run.keep_best=accuracy run.keep=1 eval.every_steps=4 "
                         "run.save_every_steps=4 'devices=[\"cpu\"]'"), 0);
    snprintf(path, sizeof path, "%s/best/checkpoints/best.json", folder);
    assert_true(pm_file_exists(path));
    snprintf(path, sizeof path, "%s/best/checkpoints/step-000012.safetensors", folder);
    assert_true(pm_file_exists(path));
    snprintf(path, sizeof path, "%s/best/checkpoints/step-000008.safetensors", folder);
    assert_false(pm_file_exists(path));
}

static int set_up(void **state)
{
    static char body[4096];
    char path[256], command[512];

    (void)state;
    if (!getenv("PUMICE_PROGRAM") || !mkdtemp(folder))
        return -1;
    snprintf(body, sizeof body, text, folder);
    snprintf(path, sizeof path, "%s/net.json", folder);
    snprintf(command, sizeof command, "\"$PUMICE_PROGRAM\" dataset make shapes %s/data size=32 "
             "train=200 validation=20 test=20 > /dev/null 2>&1", folder);
    return pm_file_write(path, body, strlen(body)) < 0 ? -1 : system(command);
}

static int tear_down(void **state)
{
    (void)state;
    return pm_remove_tree(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets_overlap_the_backward_pass),
        cmocka_unit_test(test_slow_clone_gets_less),
        cmocka_unit_test(test_unlike_clones_follow_the_cpu),
        cmocka_unit_test(test_all_threads_at_once),
        cmocka_unit_test(test_not_finite_stops),
        cmocka_unit_test(test_keep_best),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
