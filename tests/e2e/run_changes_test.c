/* A run folder belongs to one run. Started again with another net, size or data, training ends with
 * exit code 2 and changes nothing. Changed rates and batches are printed and recorded in run.json,
 * once for each change, also when the program is killed. Values that mean the same are no change.
 * Folders of older versions resume. Also: a finished run, one without a checkpoint, and the first
 * checkpoints of a run. */
#include "e2e/same_run.h"
#include "faults/faults.h"

#include <pumice/rng.h>

/* Number of changes in FOLDER/NAME/run.json, and the last one as text. */
static int changes(const char *name, char *last, size_t size)
{
    char *text = get_text(in("%s/run.json", name));
    cJSON *run = cJSON_Parse(text);
    const cJSON *list = cJSON_GetObjectItem(run, "changes");
    const int count = cJSON_GetArraySize(list);
    char *line = cJSON_PrintUnformatted(cJSON_GetArrayItem(list, count - 1));

    snprintf(last, size, "%s", line ? line : "");
    cJSON_free(line);
    cJSON_Delete(run);
    pm_free(text);
    return count;
}

static void expect_change(const char *name, int count, const char *last)
{
    char is[256];

    assert_int_equal(changes(name, is, sizeof is), count);
    assert_string_equal(is, last);
}

static void allowed_changes(void **state)
{
    (void)state;
    check(train_net(NULL, "a", ""), 0);
    expect_change("a", 0, "");
    check(train_net(NULL, "a", "run.steps=5 schedule.base_lr=0.02"), 0, "resuming",
          "schedule.base_lr: 0.01 -> 0.02, from step 3 on");
    expect_change("a", 1,
                  "{\"step\":3,\"key\":\"schedule.base_lr\",\"old\":0.01,\"new\":0.02}");
    check(train_net(NULL, "a", "run.steps=7 schedule.base_lr=0.02 run.batch_size=4 "
                               "run.log_every_steps=2 devices=auto data.threads=1"),
          0, "run.batch_size: 8 -> 4, from step 5 on");
    expect_change("a", 2, "{\"step\":5,\"key\":\"run.batch_size\",\"old\":8,\"new\":4}");
}

/* More steps change the result if the learning rate falls over the whole run. */
static void another_length(void **state)
{
    struct result r;

    (void)state;
    check(train_net(NULL, "long", "schedule.policy=cosine"), 0);
    check(train_net(NULL, "long", "schedule.policy=cosine run.steps=5"), 0,
          "number of steps of the run: 3 -> 5, from step 3 on");
    expect_change("long", 1,
                  "{\"step\":3,\"key\":\"number of steps of the run\",\"old\":3,\"new\":5}");
    r = train_net(NULL, "long", "schedule.policy=cosine run.steps=5");
    assert_null(strstr(r.err, "number of steps of the run"));
    check(r, 0);
    r = train_net(NULL, "long", "schedule.policy=fixed run.steps=6");
    assert_null(strstr(r.err, "number of steps of the run"));
    check(r, 0, "schedule.policy: \"cosine\" -> \"fixed\", from step 5 on");
}

/* Nothing is trained between two changes of a key: they are one. */
static void changes_at_one_step(void **state)
{
    struct result r;

    (void)state;
    check(train_net(NULL, "one", ""), 0);
    check(train_net(NULL, "one", "schedule.base_lr=0.02"), 0, "0.01 -> 0.02");
    check(train_net(NULL, "one", "schedule.base_lr=0.03"), 0, "0.02 -> 0.03");
    expect_change("one", 1,
                  "{\"step\":3,\"key\":\"schedule.base_lr\",\"old\":0.01,\"new\":0.03}");
    r = train_net(NULL, "one", "schedule.base_lr=0.03"); /* no change since the last start */
    assert_null(strstr(r.err, "from step 3 on"));
    check(r, 0);
    check(train_net(NULL, "one", ""), 0, "0.03 -> 0.01");
    expect_change("one", 0, "");
}

static void another_run(void **state)
{
    static const struct { const char *change, *says; } table[] = {
        { "input.size=24", "input.size: [16,16] -> [24,24]" },
        { "optim.name=sgd", "optim.name: \"momentum\" -> \"sgd\"" },
        { "model.layers.0.filters=5", "(model.layers.0.filters: 4 -> 5)" },
        { "model.layers.0={\"layer\":\"relu\"}", "model.layers.0.layer: \"conv2d\" -> \"relu\"" },
        { "model.layers=[{\"layer\":\"relu\"}]", "model.layers: [" },
        { "input.preprocessing=vgg", "input.preprocessing: \"cifarnet\" -> \"vgg\"" },
        { "data.train_split=validation", "data.train_split: \"train\" -> \"validation\"" },
        { "data.sample_1_of_n=2", "data.sample_1_of_n: 1 -> 2" },
    };
    char *config, *metrics, *now;

    (void)state;
    check(train_net(NULL, "kept", ""), 0);
    config = get_text(in("kept/config.json"));
    metrics = get_text(in("kept/metrics.jsonl"));
    for (size_t i = 0; i < PM_COUNT(table); i++) {
        check(run(NULL, "train %s run.folder=%s '%s'", in("net.json"), in("kept"),
                  table[i].change), 2,
              "command line: run.folder: ", "this folder holds another run", table[i].says,
              "set run.folder, or start from it with init.checkpoint");
        now = get_text(in("kept/config.json"));
        assert_string_equal(now, config);
        pm_free(now);
        now = get_text(in("kept/metrics.jsonl"));
        assert_string_equal(now, metrics);
        pm_free(now);
    }
    check(train_net(NULL, "kept", "input.size=24 optim.name=sgd"), 2,
          "input.size: [16,16] -> [24,24], optim.name: \"momentum\" -> \"sgd\"");
    check(train_net(NULL, "kept", "run.steps=4"), 0, "resuming");
    pm_free(config);
    pm_free(metrics);
}

/* A default that is written out, another form, another path of the same folder. */
static void equal_values(void **state)
{
    char link[1024];

    (void)state;
    check(train_net(NULL, "equal", ""), 0);
    snprintf(link, sizeof link, "%s", in("link"));
    assert_int_equal(symlink(in("data"), link), 0);
    struct result r = train_net(NULL, "equal",
                                "run.steps=4 optim.momentum=0.9 'input.size=[16,16]' "
                                "model.layers.0.kernel=3 model.num_classes=4 input.channels=3 "
                                "input.preprocessing=cifarnet run.log_loss=mean");
    assert_null(strstr(r.err, " on\n"));
    check(r, 0);
    r = run(NULL, "train %s run.folder=%s run.steps=5 data.folder=%s", in("net.json"), in("equal"),
            link);
    check(r, 0);
    /* the run's own config.json, which states every value */
    char *text = get_text(in("equal/config.json"));
    put_text(in("full.json"), text);
    pm_free(text);
    check(run(NULL, "train %s run.steps=6", in("full.json")), 0, "resuming");
    expect_change("equal", 0, "");
}

static void moved_data(void **state)
{
    char *moved;

    (void)state;
    check(run(NULL, "dataset make shapes %s size=16 train=40 validation=8 test=20", in("here")), 0);
    check(run(NULL, "train %s run.folder=%s data.folder=%s", in("net.json"), in("moved"),
              in("here")), 0);
    check(run(NULL, "train %s run.folder=%s", in("net.json"), in("moved")), 2,
          "data.folder: ", "/here\" -> ");
    assert_int_equal(rename(in("here"), in("there")), 0);
    check(run(NULL, "train %s run.folder=%s run.steps=4 data.folder=%s", in("net.json"),
              in("moved"), in("there")), 0, "data.folder: ", "from step 3 on");
    pm_remove_tree(in("there"));
    check(run(NULL, "dataset make shapes %s size=16 train=48 validation=8 test=20", in("there")),
          0);
    check(run(NULL, "train %s run.folder=%s run.steps=4 data.folder=%s", in("net.json"),
              in("moved"), in("there")), 0, "number of training records: 40 -> 48, from step 4 on");
    moved = get_text(in("there/labels.txt"));
    moved[2] = moved[2] == 'x' ? 'y' : 'x';
    put_text(in("there/labels.txt"), moved);
    pm_free(moved);
    check(run(NULL, "train %s run.folder=%s run.steps=5 data.folder=%s", in("net.json"),
              in("moved"), in("there")), 2, "another run (entry 0 of the data's labels: ");
}

/* config.json of an older version lacks keys; it may be gone, or damaged. */
static void old_folders(void **state)
{
    cJSON *config;
    char *text;

    (void)state;
    check(train_net(NULL, "old", ""), 0);
    text = get_text(in("old/config.json"));
    config = cJSON_Parse(text);
    cJSON_DeleteItemFromObject(cJSON_GetObjectItem(config, "run"), "log_loss");
    cJSON_DeleteItemFromObject(config, "schedule");
    cJSON_AddNumberToObject(cJSON_GetObjectItem(config, "run"), "gone", 3);
    pm_free(text);
    text = cJSON_Print(config);
    put_text(in("old/config.json"), text);
    cJSON_free(text);
    cJSON_Delete(config);
    check(train_net(NULL, "old", "run.steps=4 run.log_loss=sum schedule.base_lr=0.5"), 0,
          "resuming");
    expect_change("old", 0, "");
    assert_int_equal(unlink(in("old/config.json")), 0);
    check(train_net(NULL, "old", "run.steps=5 run.seed=7"), 0, "run.seed: 1 -> 7, from step 4 on");
    put_text(in("old/config.json"), "{ \"run\": ");
    assert_int_equal(unlink(in("old/run.json")), 0);
    check(train_net(NULL, "old", "run.steps=6 run.seed=7"), 0, "config.json",
          "resumes without comparing");
}

static void finished(void **state)
{
    (void)state;
    check(train_net(NULL, "done", ""), 0);
    check(train_net(NULL, "done", ""), 0, "done at step 3; raise run.steps to go on");
    check(train_net(NULL, "done", "run.steps=2"), 0, "done at step 3; raise run.steps to go on");
    check(train_net(NULL, "done", "run.epochs=0.4"), 0,
          "done at step 3; raise run.epochs to go on");
}

/* True if the checkpoint of this step exists. */
static bool saved(const char *name, int step)
{
    return pm_file_exists(in("%s/checkpoints/step-%06d.json", name, step));
}

/* Killed before the first checkpoint, a run starts over, also with another net. */
static void without_checkpoint(void **state)
{
    struct result r;
    pid_t pid;
    char arguments[2048];

    (void)state;
    snprintf(arguments, sizeof arguments, "train %s run.folder=%s run.steps=1000000",
             in("net.json"), in("early"));
    pid = start(NULL, in("killed"), arguments);
    for (int i = 0; i < 3000 && !pm_file_exists(in("early/metrics.jsonl")); i++)
        usleep(10000);
    kill(pid, SIGKILL);
    r = finish(pid, in("killed"));
    drop(&r);
    assert_false(pm_file_exists(in("early/latest")));
    check(train_net(NULL, "early", "model.layers.0.filters=5"), 0,
          "before its first checkpoint: it starts over");
    r = train_net(NULL, "early", "model.layers.0.filters=5");
    assert_null(strstr(r.err, "starts over"));
    check(r, 0);
    check(train_net(NULL, "whole", "model.layers.0.filters=5"), 0);
    same_run(in("whole"), in("early"));
}

static void first_checkpoints(void **state)
{
    (void)state;
    check(train_net(NULL, "zero", "run.save_first_step=true run.keep=0"), 0);
    assert_true(saved("zero", 0) && !saved("zero", 1) && saved("zero", 3));
    check(train_net(NULL, "none", "run.keep=0"), 0);
    assert_true(!saved("none", 0) && !saved("none", 1) && saved("none", 3));
    check(train_net(NULL, "first", "run.keep=0 eval.every_steps=1 run.keep_best=none"), 0);
    assert_true(saved("first", 1) && !saved("first", 2) && saved("first", 3));
    check(train_net(NULL, "off", "run.keep=0 eval.every_steps=1 run.save_every_secs=0 "
                                 "run.keep_best=none"), 0);
    assert_true(!saved("off", 1) && saved("off", 3));
}

/* The checkpoint of step 0 holds the values before the first update: a run that resumes from it has
 * the same bits. */
static void resumed_at_step_0(void **state)
{
    (void)state;
    check(train_net(NULL, "start", "run.save_first_step=true run.steps=4"), 0);
    check(train_net(NULL, "again", "run.save_first_step=true run.steps=4"), 0);
    assert_int_equal(unlink(in("again/checkpoints/step-000004.json")), 0);
    assert_int_equal(unlink(in("again/checkpoints/step-000004.safetensors")), 0);
    check(train_net(NULL, "again", "run.save_first_step=true run.steps=4"), 0, "at step 0");
    same_run(in("start"), in("again"));
}

/* Killed at random moments after a change of the rate: the change is recorded once, and the run
 * ends with the same bits as one that was not killed. */
static void killed_after_a_change(void **state)
{
    struct pm_rng r = pm_rng_make(5, 9, 0, 0);
    char arguments[2048], expected[256], is[256];
    static const char options[] = "run.steps=40 run.save_every_steps=3 schedule.base_lr=0.02 "
                                  "eval.every_steps=5";

    (void)state;
    check(train_net(NULL, "calm", "run.save_every_steps=3"), 0);
    check(train_net(NULL, "torn", "run.save_every_steps=3"), 0);
    const double begun = pm_seconds();
    check(train_net(NULL, "calm", options), 0);
    const double seconds = pm_seconds() - begun;
    assert_int_equal(changes("calm", expected, sizeof expected), 1);
    for (int i = 0; i < 6; i++) {
        struct result killed;

        snprintf(arguments, sizeof arguments, "train %s run.folder=%s %s", in("net.json"),
                 in("torn"), options);
        pid_t pid = start(NULL, in("torn.run"), arguments);
        usleep((useconds_t)(20000 + 1e6 * seconds * 0.8 * pm_rng_uniform(&r)));
        kill(pid, SIGKILL);
        killed = finish(pid, in("torn.run"));
        drop(&killed);
    }
    check(train_net(NULL, "torn", options), 0);
    same_run(in("calm"), in("torn"));
    assert_int_equal(changes("torn", is, sizeof is), 1);
    assert_string_equal(is, expected);
}

/* Killed between the writes of the change's record and of the config: recorded once. */
static void killed_while_recording(void **state)
{
    static const char *const files[] = { "run.json", "config.json" };
    static const char change[] = "schedule.base_lr=0.02 run.steps=5";

    (void)state;
    for (size_t i = 0; i < PM_COUNT(files); i++)
        for (int after = 0; after < 2; after++) {
            const struct how how =
                with_faults("PM_FAULT_CALLS=rename PM_FAULT_PATH=/cut/%s PM_FAULT_AT=1 "
                            "PM_FAULT_DO=%s", files[i], after ? "kill_after" : "kill_before");
            struct result r;

            pm_remove_tree(in("cut"));
            check(train_net(NULL, "cut", ""), 0);
            r = train_net(&how, "cut", change);
            assert_int_equal(r.code, -SIGKILL);
            drop(&r);
            check(train_net(NULL, "cut", change), 0, "resuming");
            expect_change("cut", 1,
                          "{\"step\":3,\"key\":\"schedule.base_lr\",\"old\":0.01,\"new\":0.02}");
        }
}

static int set_up(void **state)
{
    (void)state;
    return make_world(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allowed_changes), cmocka_unit_test(another_length),
        cmocka_unit_test(changes_at_one_step),
        cmocka_unit_test(another_run),
        cmocka_unit_test(equal_values),
        cmocka_unit_test(moved_data),
        cmocka_unit_test(old_folders),
        cmocka_unit_test(finished),
        cmocka_unit_test(without_checkpoint),
        cmocka_unit_test(first_checkpoints),
        cmocka_unit_test(resumed_at_step_0),
        cmocka_unit_test(killed_after_a_change),
        cmocka_unit_test(killed_while_recording),
    };

    return cmocka_run_group_tests(tests, set_up, drop_world);
}
