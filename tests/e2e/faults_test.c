/* Errors around a run: folders that cannot be written, invalid configs, no Vulkan, a loss that
 * is not finite, two trainings in one folder. Each ends with one line and the exit code of
 * docs/troubleshooting.md, and no valid file is lost. */
#include "e2e/program.h"

static const struct how nobody = { .as_nobody = true };

/* ---- folders ----------------------------------------------------------------------------- */

/* Sets the permissions of the folders below FOLDER/name. */
static void rights(const char *name, const char *to)
{
    char command[1200];

    snprintf(command, sizeof command, "chmod -R %s '%s'", to, in("%s", name));
    assert_int_equal(system(command), 0);
}

static void run_folder_cannot_be_written(void **state)
{
    (void)state;
    put_text(in("file"), "x");
    check(train_net(NULL, "file", ""), 1, "run.folder", in("file"), "there is a file of that name");
    check(train_net(NULL, "file/below", ""), 1, "run.folder", in("file"));
    assert_int_equal(mkdir(in("closed"), 0555), 0);
    check(train_net(&nobody, "closed/run", ""), 1, "run.folder", in("closed/run"),
          "Permission denied", "can be written");
    check(train_net(NULL, "old", ""), 0);
    rights("old", "a-w");
    check(train_net(&nobody, "old", "run.steps=6"), 1, in("old/lock"), "Permission denied",
          "run.folder");
    check(run(&nobody, "eval %s run.folder=%s", in("net.json"), in("old")), 0);
    rights("old", "u+w");
    check(train_net(NULL, "old", "run.steps=4"), 0);
}

/* Training works without an index of the shards when it cannot be written. */
static void data_cannot_be_written(void **state)
{
    struct stat st;
    struct pm_arena *a = pm_arena_create();
    char **names;
    size_t count;

    (void)state;
    pm_glob(a, in("data/.pumice*"), &names, &count);
    for (size_t i = 0; i < count; i++)
        unlink(names[i]);
    rights("data", "a-w");
    assert_int_equal(mkdir(in("open"), 0777), 0);
    assert_int_equal(chmod(in("open"), 0777), 0);
    check(train_net(&nobody, "open/run", ""), 0);
    pm_glob(a, in("data/.pumice*"), &names, &count);
    assert_int_equal(count, 0);
    check(run(&nobody, "eval %s run.folder=%s", in("net.json"), in("open/run")), 0);
    rights("data", "u+w");
    assert_int_equal(stat(in("data"), &st), 0);
    pm_arena_destroy(&a);
}

static void nothing_can_be_read(void **state)
{
    struct pm_str shut = { 0 };

    (void)state;
    pm_str_add(&shut, "{ \"run\": { \"steps\": 2 } }");
    put_text(in("shut.json"), shut.text);
    assert_int_equal(chmod(in("shut.json"), 0200), 0);
    check(run(&nobody, "train %s", in("shut.json")), 2, in("shut.json"), "Permission denied");
    check(run(NULL, "train %s", in("absent.json")), 2, in("absent.json"), "No such file");
    check(run(NULL, "train %s", folder), 2, folder, "is not the folder of a run");
    check(train_net(NULL, "r1", "data.folder=/nowhere"), 3, "/nowhere", "no such folder");
    rights("data", "a-r");
    check(train_net(&nobody, "open/r2", ""), 3, in("data"), "Permission denied");
    rights("data", "a+rX");
    pm_str_free(&shut);
}

/* ---- configs ----------------------------------------------------------------------------- */

static void configs_that_cannot_be_right(void **state)
{
    static const struct {
        const char *change, *says[3];
    } cases[] = {
        { "run.stepz=1", { "command line: run.stepz: unknown key", "steps" } },
        { "run.steps=many", { "run.steps: \"many\" is not an integer" } },
        { "run.steps=-1", { "run.steps: -1 is outside 0.." } },
        { "run.batch_size=0", { "run.batch_size: 0 is outside 1.." } },
        { "eval.batch_size=0", { "eval.batch_size: 0 is outside 1.." } },
        { "run.keep=1.5", { "run.keep: 1.5 is not an integer" } },
        { "run=3", { "run: an object" } },
        { "schedule.base_lr=nan", { "schedule.base_lr" } },
        { "data.on_corrupt=ignore", { "data.on_corrupt", "error", "skip" } },
        { "devices=[]", { "devices: the list is empty" } },
        { "optim.name=sdg", { "optim.name", "sgd" } },
        { "model.layers.0.fliters=3",
          { "net.json: model.layers[0].fliters: unknown key", "filters" } },
        { "model.layers.0.stride=0", { "net.json: model.layers[0].stride: 0 is outside 1..64" } },
        { "model.layers.2.kernel=20",
          { "net.json: model.layers[2]: pool: a window of 20x20", "8x8" } },
        { "model.layers.0.kernel=33 model.layers.0.padding=valid",
          { "net.json: model.layers[0]: conv1: the window does not fit", "16" } },
        { "input.size=1", { "net.json: model.layers[2]: pool", "1x1" } },
        { "model.layers.4.units=5", { "net.json: ", "logits", "4 classes" } },
        { "model.layers=null model.name=lenet input.size=3 input.preprocessing=lenet",
          { "command line: model.name: \"lenet\" with an input of 1x3x3" } },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++)
        check(train_net(NULL, "never", cases[i].change), 2, cases[i].says[0], cases[i].says[1],
              cases[i].says[2]);
    assert_false(pm_is_folder(in("never"))); /* nothing was created */
    put_text(in("twice.json"), "{ \"run\": { \"steps\": 3,\n  \"keep\": 1,\n  \"steps\": 4 } }");
    check(run(NULL, "train %s", in("twice.json")), 2, "twice.json:3", "'steps' is given twice",
          "line 1");
    put_text(in("cut.json"), "{ \"run\": { \"steps\": 3 }\n");
    check(run(NULL, "train %s", in("cut.json")), 2, "cut.json:");
}

/* ---- devices ----------------------------------------------------------------------------- */

static void no_vulkan(void **state)
{
    const struct how no_loader = { .environment = "PM_VULKAN_LOADER=/nowhere/libvulkan.so" };
    const struct how no_driver = { .environment = "VK_DRIVER_FILES=/nowhere.json "
                                                  "VK_ICD_FILENAMES=/nowhere.json" };
    struct pm_str broken = { 0 };

    (void)state;
    check(train_net(&no_loader, "auto1", "devices='[\"auto\"]'"), 0, "auto selects the CPU",
          "loader, libvulkan.so.1, is not installed");
    check(train_net(&no_loader, "auto1", "devices='[\"vulkan:0\"]' run.steps=4"), 4,
          "devices[0]: no device \"vulkan:0\"", "there are: auto, cpu", "is not installed");
    check(train_net(&no_driver, "auto2", "devices='[\"auto\"]'"), 0, "auto selects the CPU",
          "no Vulkan driver lists a device");
    check(train_net(&no_driver, "auto2", "devices='[\"vulkan:0\"]' run.steps=4"), 4, "vulkan:0",
          "install its driver");
    put_text(in("broken.json"), "{ \"file_format_version\": \"1.0.0\", \"ICD\": { \"library");
    pm_str_add(&broken, "VK_DRIVER_FILES=%s VK_ICD_FILENAMES=%s", in("broken.json"),
               in("broken.json"));
    check(train_net(&(struct how){ .environment = broken.text }, "auto3", "devices='[\"auto\"]'"),
          0, "auto selects the CPU");
    put_text(in("broken.json"),
             "{ \"file_format_version\": \"1.0.0\", \"ICD\": { "
             "\"library_path\": \"/nowhere/driver.so\", \"api_version\": \"1.3.0\" } }");
    check(train_net(&(struct how){ .environment = broken.text }, "auto4", "devices='[\"auto\"]'"),
          0, "auto selects the CPU");
    check(train_net(&(struct how){ .environment = broken.text }, "auto4",
                "devices='[\"vulkan:0\"]' run.steps=4"), 4, "no device \"vulkan:0\"");
    pm_str_free(&broken);
}

/* ---- values ------------------------------------------------------------------------------ */

/* A learning rate that makes the weights diverge stops the run. With a lower rate it continues
 * from its last checkpoint. */
static void not_finite(void **state)
{
    (void)state;
    check(train_net(NULL, "nan", "run.steps=4 run.save_every_steps=2"), 0);
    check(train_net(NULL, "nan", "run.steps=300 schedule.base_lr=900"), 1, "step ", "not finite",
          "weights", "last good checkpoint: step ", "schedule.base_lr");
    check(train_net(NULL, "nan", "run.steps=8"), 0);
    assert_true(pm_file_exists(in("nan/checkpoints/step-000008.safetensors")));
    check(train_net(NULL, "nan2", "run.steps=300 schedule.base_lr=1000"), 1, "not finite",
          "last good checkpoint: none yet");
}

/* ---- two at a time ----------------------------------------------------------------------- */

/* Waits until the run's file exists, for a minute at most. */
static void wait_for(const char *path)
{
    for (int i = 0; i < 6000 && !pm_file_exists(path); i++)
        usleep(10000);
    if (!pm_file_exists(path))
        fail_msg("%s does not appear", path);
}

static void two_trainings(void **state)
{
    char arguments[2048], number[64], host[256] = "";
    char name[512];
    struct result r;
    pid_t pid;

    (void)state;
    snprintf(name, sizeof name, "%s", in("first"));
    snprintf(arguments, sizeof arguments,
             "train %s run.folder=%s run.steps=0 run.log_every_steps=1000 run.save_every_steps=500",
             in("net.json"), in("shared"));
    pid = start(NULL, name, arguments);
    wait_for(in("shared/latest"));
    gethostname(host, sizeof host - 1);
    snprintf(number, sizeof number, "process %d on", (int)pid);
    check(train_net(NULL, "shared", ""), 1, in("shared"), number, host,
          "choose another folder");
    check(run(NULL, "eval %s run.folder=%s", in("net.json"), in("shared")), 0);
    check(run(NULL, "checkpoint inspect %s", in("shared")), 0);
    kill(pid, SIGTERM);
    r = finish(pid, name);
    assert_int_equal(r.code, 143);
    drop(&r);
    /* The lock file of a killed process does not stop the next run. */
    pid = start(NULL, name, arguments);
    usleep(300000);
    kill(pid, SIGKILL);
    r = finish(pid, name);
    assert_int_equal(r.code, -SIGKILL);
    drop(&r);
    check(train_net(NULL, "shared", "run.steps=1"), 0);
    assert_int_equal(temporaries(in("shared")), 0);
}

static int set_up(void **state)
{
    char command[2048];

    (void)state;
    if (make_world(true) < 0)
        return -1;
    /* A copy of the program in a place where a user without permissions can run it. */
    snprintf(command, sizeof command, "cp \"$PUMICE_PROGRAM\" '%s' && chmod 755 '%s'",
             in("program"), in("program"));
    if (system(command) != 0)
        return -1;
    setenv("PUMICE_PROGRAM", in("program"), 1);
    /* The output file, which the shell creates, must belong to that user. */
    chmod(folder, 0777);
    put_text(in("run.out"), "");
    put_text(in("run.err"), "");
    chmod(in("run.out"), 0666);
    chmod(in("run.err"), 0666);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_folder_cannot_be_written),
        cmocka_unit_test(data_cannot_be_written),
        cmocka_unit_test(nothing_can_be_read),
        cmocka_unit_test(configs_that_cannot_be_right),
        cmocka_unit_test(no_vulkan),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(two_trainings),
    };

    return cmocka_run_group_tests(tests, set_up, drop_world);
}
