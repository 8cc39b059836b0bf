/* pumice sweep, tested with the program: runs equal to single trainings, studies that are killed,
 * failing runs, successive halving, several workers, and messages; also run.pause_step. */
#include "e2e/same_run.h"
#include "e2e/program.h"

/* Writes FOLDER/NAME.json: net.json with a section study, whose folder is FOLDER/NAME. */
static void put_study(const char *name, const char *members)
{
    struct pm_str text = { 0 };

    pm_str_add(&text, "{ \"base\": [\"net.json\"], \"eval\": { \"every_steps\": 2 },\n"
               "  \"run\": { \"steps\": 6 },\n  \"study\": { \"folder\": \"%s\", %s } }\n",
               in("%s", name), members);
    put_text(in("%s.json", name), text.text);
    pm_str_free(&text);
}

#define RATES "\"vary\": { \"schedule.base_lr\": [0.05, 0.01], \"optim\": [ { \"name\": " \
              "\"momentum\" }, { \"name\": \"sgd\" } ] }, \"repeats\": 2"

static struct result sweep(const char *name, const char *more)
{
    return run(NULL, "sweep %s %s", in("%s.json", name), more);
}

/* The points of a study's --json object as text, without its folder. */
static char *points_of(struct result r)
{
    cJSON *o = json_of(&r);
    char *text = cJSON_Print(cJSON_GetObjectItem(o, "points"));

    assert_int_equal(r.code, 0);
    cJSON_Delete(o);
    drop(&r);
    return text;
}

static const cJSON *point_of(const cJSON *o, const char *name)
{
    const cJSON *p;

    cJSON_ArrayForEach(p, cJSON_GetObjectItem(o, "points"))
        if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(p, "name")), name) == 0)
            return p;
    fail_msg("no point %s", name);
    return NULL;
}

/* Each run is what train makes of the same values. The table has their means, best first. */
static void equals_single_runs(void **state)
{
    static const char *const names[] = { "lr=0.05,optim=momentum", "lr=0.05,optim=sgd",
                                         "lr=0.01,optim=momentum", "lr=0.01,optim=sgd" };
    double before = INFINITY;
    struct result r;
    const cJSON *p;
    (void)state;

    put_study("whole", RATES);
    r = sweep("whole", "--json");
    cJSON *o = json_of(&r);
    assert_int_equal(r.code, 0);
    check(train_net(NULL, "one", "run.steps=6 eval.every_steps=2 schedule.base_lr=0.01 "
                                 "'optim={\"name\":\"sgd\"}' run.seed=2"), 0);
    same_run(in("one"), in("whole/lr=0.01,optim=sgd,seed=2"));
    for (size_t i = 0; i < PM_COUNT(names); i++) {
        double sum = 0;
        for (int seed = 1; seed <= 2; seed++) {
            char run_name[128];
            snprintf(run_name, sizeof run_name, "whole/%s,seed=%d", names[i], seed);
            sum += logged_eval(run_name, 6, "accuracy");
        }
        assert_true(fabs(number_of(point_of(o, names[i]), "mean") - sum / 2) < 1e-12);
    }
    cJSON_ArrayForEach(p, cJSON_GetObjectItem(o, "points")) {
        assert_true(number_of(p, "mean") <= before);
        before = number_of(p, "mean");
    }
    /* best.json is a whole config. */
    check(run(NULL, "train %s run.folder=%s", in("whole/best.json"), in("again")), 0);
    const char *first = cJSON_GetStringValue(
        cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(o, "points"), 0), "name"));
    same_run(in("whole/%s,seed=1", first), in("again"));
    cJSON_Delete(o);
    check(r, 0);
    /* A study that has ended trains nothing, and prints the same table. */
    r = sweep("whole", "");
    assert_contains(r.err, "all runs have results already");
    assert_contains(r.out, names[0]);
    check(r, 0);
}

static bool has_bytes(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 && s.st_size > 0;
}

/* Killed ten times, the study ends as if it had not been: by SIGTERM, by SIGKILL, which leaves
 * processes that save and end, and by SIGKILL to all of them, as in a crash. Some of the kills come
 * between the first result and the end. */
static void survives_kills(void **state)
{
    char arguments[1024], all[1200], *whole, *torn;
    bool midway = false;
    (void)state;

    put_study("whole", RATES);
    put_study("torn", RATES);
    whole = points_of(sweep("whole", "--json"));
    snprintf(arguments, sizeof arguments, "sweep %s", in("torn.json"));
    snprintf(all, sizeof all, "pkill -KILL -f '[t]rain %s'", in("torn/configs/"));
    for (int k = 0; k < 10; k++) {
        const pid_t pid = start(NULL, in("torn_run"), arguments);
        struct result r;

        for (int i = 0; k == 5 && !has_bytes(in("torn/study.jsonl")) && i < 6000; i++)
            usleep(10000);
        usleep((useconds_t)(20000 + (k == 5 ? 0 : 137 * 1000 * k)));
        kill(pid, k % 3 == 0 ? SIGTERM : SIGKILL);
        if (k % 3 == 2 && system(all) < 0)
            fail_msg("pkill cannot be started");
        r = finish(pid, in("torn_run"));
        assert_true(r.code == -SIGKILL || r.code == 128 + SIGTERM || r.code == -SIGTERM ||
                    r.code == 0);
        drop(&r);
        midway |= has_bytes(in("torn/study.jsonl")) && !pm_file_exists(in("torn/best.json"));
    }
    assert_true(midway);
    torn = points_of(sweep("torn", "--json"));
    assert_string_equal(whole, torn);
    same_bytes(in("whole/study.json"), in("torn/study.json"));
    free(whole);
    free(torn);
}

/* A half line at the end of study.jsonl is what a process leaves that dies while it writes. */
static void cut_off_line(void **state)
{
    char *text;
    (void)state;

    put_study("cut", "\"vary\": { \"schedule.base_lr\": [0.05, 0.01] }");
    check(sweep("cut", ""), 0);
    text = get_text(in("cut/study.jsonl"));
    text[strlen(text) - 9] = '\0';
    put_text(in("cut/study.jsonl"), text);
    pm_free(text);
    check(sweep("cut", ""), 0, "sweep: 2/2 ");
    put_text(in("cut/study.jsonl"), "{ \"point\": \"other\" }\n");
    check(sweep("cut", ""), 3, "cut/study.jsonl:1: this is not a result of the study: restore");
}

static void failing_run(void **state)
{
    struct result r;
    (void)state;

    put_study("bad", "\"vary\": { \"schedule.base_lr\": [1000, 0.01] }");
    r = sweep("bad", "optim.name=sgd optim.clip_norm=0 run.steps=30");
    assert_int_equal(r.code, 0);
    assert_contains(r.err, "lr=1000: failed: ");
    assert_contains(r.out, "1 failed: ");
    assert_contains(r.out, "lr=0.01");
    check(r, 0);
    /* It is not trained again, unless that is wanted. */
    check(sweep("bad", "optim.name=sgd optim.clip_norm=0 run.steps=30"), 0, "nothing is left");
    check(sweep("bad", "optim.name=sgd optim.clip_norm=0 run.steps=30 --retry"), 0, "2/2 lr=1000");
    put_study("ends", "\"vary\": { \"schedule.base_lr\": [1000, 0.01] }");
    check(sweep("ends", "optim.name=sgd optim.clip_norm=0 run.steps=30 --stop-on-error"), 1,
          "--stop-on-error: lr=1000: ");
    assert_false(pm_is_folder(in("ends/lr=0.01")));
}

/* A process that is killed is started again; the study does not notice. */
static void killed_process(void **state)
{
    char arguments[1024], command[1200];
    struct result r;
    bool killed = false;
    (void)state;

    put_study("hit", "\"vary\": { \"schedule.base_lr\": [0.05, 0.01] }");
    snprintf(arguments, sizeof arguments, "sweep %s run.steps=100", in("hit.json"));
    /* [t] does not match the shell that runs it. */
    snprintf(command, sizeof command, "pkill -KILL -f '[t]rain %s'",
             in("hit/configs/lr=0.05.json"));
    const pid_t pid = start(NULL, in("hit_run"), arguments);
    for (int k = 0; k < 3000 && !killed; k++) {
        usleep(10000);
        if (pm_file_exists(in("hit/lr=0.05/metrics.jsonl")))
            killed = system(command) == 0;
    }
    assert_true(killed);
    r = finish(pid, in("hit_run"));
    assert_contains(r.err, "was ended by signal 9 and is started again");
    assert_contains(r.err, "sweep: 2/2 ");
    check(r, 0);
    check(train_net(NULL, "not_hit", "run.steps=100 eval.every_steps=2 schedule.base_lr=0.05"), 0);
    same_run(in("not_hit"), in("hit/lr=0.05"));
}

/* Six points to step 2, two of them to step 6. A run that was trained in two parts is the run that
 * was trained at once. */
static void halving(void **state)
{
    struct result r;
    int short_ones = 0, long_ones = 0;
    const cJSON *p;
    (void)state;

    put_study("half", "\"vary\": { \"schedule.base_lr\": { \"log_uniform\": [0.001, 0.1] } }, "
                      "\"method\": \"sobol\", \"runs\": 6, "
                      "\"halving\": { \"factor\": 3, \"first_steps\": 2 }");
    r = sweep("half", "--json");
    assert_contains(r.err, "sweep: 6 runs train to step 2");
    assert_contains(r.err, "sweep: 2 runs train to step 6");
    cJSON *o = json_of(&r);
    cJSON_ArrayForEach(p, cJSON_GetObjectItem(o, "points")) {
        const double lr = number_of(cJSON_GetObjectItem(p, "values"), "schedule.base_lr");
        const int step = (int)number_of(p, "step");

        assert_true(lr >= 0.001 && lr <= 0.1);
        assert_true(step == 2 || step == 6);
        short_ones += step == 2;
        long_ones += step == 6;
        if (long_ones == 1 && step == 6) {
            char name[128], more[128];
            snprintf(name, sizeof name, "half/%s",
                     cJSON_GetStringValue(cJSON_GetObjectItem(p, "name")));
            snprintf(more, sizeof more, "run.steps=6 eval.every_steps=2 schedule.base_lr=%.17g",
                     lr);
            check(train_net(NULL, "at_once", more), 0);
            same_run(in("at_once"), in("%s", name));
        }
    }
    assert_int_equal(short_ones, 4);
    assert_int_equal(long_ones, 2);
    cJSON_Delete(o);
    check(r, 0);
}

/* Two workers on the CPU give the table that one gives. */
static void two_workers(void **state)
{
    char *one, *two;
    (void)state;

    put_study("whole", RATES);
    put_study("pair", RATES ", \"workers\": [[\"cpu\"], [\"cpu\"]], \"share_devices\": true");
    one = points_of(sweep("whole", "--json"));
    two = points_of(sweep("pair", "--json"));
    assert_string_equal(one, two);
    free(one);
    free(two);
}

/* A training that was done before is named. Other values, or a run that has not ended, are not. */
static void equal_run(void **state)
{
    struct result r;
    (void)state;

    check(train_net(NULL, "first", "run.steps=4"), 0);
    r = train_net(NULL, "second", "run.steps=4 run.log_every_steps=2 devices='[\"cpu\"]'");
    assert_contains(r.err, "/first has the finished run of an equal config");
    check(r, 0);
    r = train_net(NULL, "third", "run.steps=4 run.seed=3");
    assert_null(strstr(r.err, "equal config"));
    check(r, 0);
    char more[1200];
    snprintf(more, sizeof more, "run.steps=4 init.checkpoint=%s", in("third"));
    r = train_net(NULL, "warm", more);
    assert_null(strstr(r.err, "equal config"));
    check(r, 0);
    r = train_net(NULL, "fourth", "run.steps=5 run.pause_step=2");
    check(r, 0);
    r = train_net(NULL, "fifth", "run.steps=5");
    assert_null(strstr(r.err, "equal config"));
    check(r, 0);
}

static void pause_step(void **state)
{
    struct result r;
    (void)state;

    check(train_net(NULL, "parts", "run.steps=6 eval.every_steps=2 run.pause_step=3"), 0,
          "run.pause_step: training pauses after step 3 of 6");
    assert_true(isfinite(logged_eval("parts", 3, "accuracy")));
    char *text = get_text(in("parts/run.json"));
    assert_contains(text, "\"state\": \"stopped\"");
    pm_free(text);
    r = train_net(NULL, "parts", "run.steps=6 eval.every_steps=2 run.pause_step=3");
    assert_contains(r.err, "pauses after step 3"); /* nothing more is trained */
    check(r, 0);
    r = train_net(NULL, "parts", "run.steps=6 eval.every_steps=2 run.pause_step=6");
    assert_null(strstr(r.err, "pauses"));
    check(r, 0);
    assert_true(isfinite(logged_eval("parts", 6, "accuracy")));
}

/* A second process does not work on a study, and does not disturb the first one. */
static void one_at_a_time(void **state)
{
    char arguments[1024];
    struct result r;
    (void)state;

    put_study("alone", "\"vary\": { \"schedule.base_lr\": [0.05, 0.01] }");
    snprintf(arguments, sizeof arguments, "sweep %s run.steps=100", in("alone.json"));
    const pid_t pid = start(NULL, in("alone_run"), arguments);
    while (!pm_is_folder(in("alone/lr=0.05")))
        usleep(10000);
    check(sweep("alone", "run.steps=100"), 1, "/alone: process ", "is training in this folder");
    r = finish(pid, in("alone_run"));
    assert_contains(r.err, "sweep: 2/2 ");
    check(r, 0);
}

/* SIGINT ends the study after a checkpoint of its run; the same command goes on. */
static void interrupted(void **state)
{
    char arguments[1024];
    struct result r;
    (void)state;

    put_study("ctrl_c", "\"vary\": { \"schedule.base_lr\": [0.05, 0.01] }");
    snprintf(arguments, sizeof arguments, "sweep %s run.steps=100", in("ctrl_c.json"));
    const pid_t pid = start(NULL, in("ctrl_c_run"), arguments);
    while (!has_bytes(in("ctrl_c/lr=0.05/metrics.jsonl")))
        usleep(10000);
    kill(pid, SIGINT);
    r = finish(pid, in("ctrl_c_run"));
    assert_int_equal(r.code, 130);
    assert_contains(r.err, "sweep: stopped by a signal; run the same command to go on");
    assert_true(pm_file_exists(in("ctrl_c/lr=0.05/latest")));
    drop(&r);
    check(sweep("ctrl_c", "run.steps=100"), 0, "sweep: 2/2 ");
    check(train_net(NULL, "no_ctrl_c", "run.steps=100 eval.every_steps=2 schedule.base_lr=0.05"),
          0);
    same_run(in("no_ctrl_c"), in("ctrl_c/lr=0.05"));
}

static void dry_run(void **state)
{
    struct result r;
    (void)state;

    put_study("dry", RATES);
    r = sweep("dry", "--dry-run");
    assert_contains(r.out, "lr=0.05,optim=momentum: ");
    assert_contains(r.out, "4 points, 8 runs; all runs to their end take about ");
    check(r, 0);
    assert_false(pm_is_folder(in("dry")));
}

static void refused(void **state)
{
    static const char *const bad[][2] = {
        { "\"vary\": { \"schedule.base_lrr\": [1, 2] }",
          "schedule.base_lrr: unknown key, did you mean" },
        { "\"vary\": { \"schedule.base_lr\": 0.1 }",
          "schedule.base_lr: a list of values is needed, or a range such as" },
        { "\"vary\": { \"schedule.base_lr\": { \"uniform\": 0.1 } }",
          "schedule.base_lr: uniform: the lowest and the highest number are needed" },
        { "\"vary\": { \"schedule.base_lr\": { \"log_uniform\": [0, 1] } }",
          "log_uniform: both numbers must be above 0" },
        { "\"vary\": { \"schedule.base_lr\": { \"uniform\": [1, 0.5] } }",
          "the first number must be below the second one" },
        { "\"vary\": { \"run.batch_size\": { \"int\": [1.5, 4] } }", "whole numbers" },
        { "\"vary\": { \"schedule.base_lr\": { \"uniform\": [0.1, 1] } }",
          "study.method: grid combines lists, but schedule.base_lr is a range" },
        { "\"vary\": { \"schedule.base_lr\": [0.1, 1] }, \"method\": \"random\"",
          "study.runs: the number of points is needed" },
        { "\"vary\": { \"schedule.base_lr\": [0.1, 1] }, \"method\": \"random\", \"runs\": 3",
          "study.runs: 3, but the values have only 2 combinations" },
        { "\"vary\": { \"schedule.base_lr\": [0.1, 1] }, \"runs\": 3",
          "study.runs: 3, but the grid has 2 points" },
        { "\"vary\": { \"schedule.base_lr\": [0.1] }", "a single run: give a key more values" },
        { "\"vary\": { \"schedule.base_lr\": [0.1, 0.1] }", "entry 1 equals an earlier one" },
        { "\"vary\": { \"schedule.base_lr\": [] }", "schedule.base_lr: the list is empty" },
        { "\"vary\": { \"schedule.base_lr\": [0.1, -1] }",
          "the point lr=-1 is refused: schedule.base_lr: -1 is outside" },
        { "\"vary\": { \"run.folder\": [\"a\", \"b\"] }", "run.folder: this key cannot vary" },
        { "\"vary\": { \"optim\": [{}], \"optim.momentum\": [0.1] }",
          "optim and optim.momentum set the same values" },
        { "\"vary\": { \"run.seed\": [1, 2] }, \"repeats\": 2", "run.seed: study.repeats 2" },
        { "\"vary\": { \"run.batch_size\": [1, 2] }, \"metric\": \"miou\"",
          "study.metric: 'miou' is not a metric of classification" },
        { "\"vary\": { \"run.batch_size\": [1, 2] }, \"workers\": [[\"cpu\"], [\"cpu\"]]",
          "workers 0 and 1 both have the device 'cpu'" },
        { "\"vary\": { \"run.batch_size\": [1, 2] }, \"workers\": [\"cpu\"]",
          "study.workers.0: a list of devices is needed" },
        { "\"vary\": { \"run.batch_size\": [1, 2] }, \"halving\": { \"factor\": 3 }",
          "study.halving.first_steps: not set" },
        { "\"vary\": { \"run.batch_size\": [1, 2] }, \"halving\": { \"first_steps\": 9 }",
          "study.halving.first_steps: 9, but a whole run has 6 steps" },
        { "\"vary\": { \"run.steps\": [4, 6] }, \"halving\": { \"first_steps\": 2 }",
          "study.halving: the runs must have equally many steps, but run.steps varies" },
        { "\"vary\": {}", "study.vary: an object with at least one key is needed" },
    };
    (void)state;

    for (size_t i = 0; i < PM_COUNT(bad); i++) {
        put_study("bad_one", bad[i][0]);
        check(sweep("bad_one", ""), 2, bad[i][1]);
        assert_false(pm_is_folder(in("bad_one")));
    }
    put_study("large", "\"vary\": { \"schedule.base_lr\": { \"uniform\": [0, 1] } }, "
                       "\"method\": \"random\", \"runs\": 1001");
    check(sweep("large", "--dry-run"), 2, "the study has 1001 runs, more than 1000", "--yes");
    put_study("large", "\"vary\": { \"run.batch_size\": [1, 2] }, \"workers\": [[\"cpu\"]]");
    check(sweep("large", "eval.every_steps=0"), 2, "set eval.every_steps");
    check(sweep("large", "run.batch_size=4"), 2, "command line: run.batch_size: study.vary sets");
    check(sweep("large", "run.pause_step=4"), 2, "run.pause_step: 4, but a study sets it itself");
    check(run(NULL, "sweep %s", in("net.json")), 2, "has no study.vary: it describes one run");
    check(run(NULL, "train %s", in("large.json")), 2, "start them with pumice sweep");
    put_study("whole", RATES);
    check(sweep("whole", ""), 0);
    put_study("whole", RATES ", \"seed\": 3, \"metric\": \"loss\"");
    check(sweep("whole", ""), 2,
          "belongs to another study, or to another version of the program (metric differs)");
    put_study("whole", RATES); /* the same study of another config */
    check(sweep("whole", "loss.label_smoothing=0.1"), 2,
          "belongs to another study, or to another version of the program (points "
          "differs)");
    check(sweep("whole", "run.log_every_steps=2"), 0, "nothing is left to train");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_single_runs),
        cmocka_unit_test(survives_kills),
        cmocka_unit_test(cut_off_line),
        cmocka_unit_test(failing_run),
        cmocka_unit_test(killed_process),
        cmocka_unit_test(halving),
        cmocka_unit_test(two_workers),
        cmocka_unit_test(equal_run),
        cmocka_unit_test(pause_step),
        cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(interrupted),
        cmocka_unit_test(dry_run),
        cmocka_unit_test(refused),
    };

    if (make_world(true) < 0)
        return 77;
    return cmocka_run_group_tests(tests, NULL, drop_world);
}
