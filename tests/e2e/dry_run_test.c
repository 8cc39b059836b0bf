/* train --dry-run: it prints memory and times, makes train's checks, and leaves the run folder
 * alone. */
#include "e2e/program.h"

static int make(void **state)
{
    (void)state;
    return make_world(true);
}

static void report(void **state)
{
    struct result r = run(NULL, "train %s --dry-run run.folder=%s run.steps=2000 --json",
                          in("net.json"), in("none"));
    cJSON *json = json_of(&r);
    const cJSON *device = cJSON_GetObjectItem(json, "devices")->child;
    const double each = number_of(json, "seconds_per_step");

    (void)state;
    assert_int_equal(r.code, 0);
    assert_false(pm_file_exists(in("none")));
    assert_true(each > 0);
    assert_true(fabs(number_of(json, "seconds") / (2000 * each) - 1) < 1e-9);
    assert_true(fabs(number_of(json, "images_per_second") * each / 8 - 1) < 1e-9);
    assert_true(number_of(device, "examples") == 8);
    assert_true(number_of(device, "memory_bytes") > 0);
    assert_true(number_of(json, "first_step") == 0);
    cJSON_Delete(json);
    drop(&r);
    r = run(NULL, "train %s --dry-run run.folder=%s run.steps=0 'devices=[\"cpu\",\"cpu\"]'",
            in("net.json"), in("none"));
    assert_contains(r.out, "net.json: layer list, batch 8; nothing was written\n");
    assert_contains(r.out, "), 4 pictures of a batch: ");
    assert_contains(r.out, " pictures a second (mean of three steps)\n");
    assert_contains(r.out, "run.steps is 0: training ends when it is stopped\n");
    check(r, 0);
}

/* The line about the device comes once, however often the devices are looked up. */
static void one_line_for_the_device(void **state)
{
    static const char *const batches[] = { "8", "auto" };
    static const struct how no_driver = { .environment = "VK_DRIVER_FILES=/nonexistent" };

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct result r = run(&no_driver, "train %s %s run.folder=%s run.steps=1 "
                              "'devices=[\"auto\"]' run.batch_size=%s", in("net.json"),
                              i / 2 ? "--dry-run" : "", in("once%d", i), batches[i % 2]);
        const char *line = strstr(r.err, "auto selects the CPU");

        assert_non_null(line);
        assert_null(strstr(line + 1, "auto selects the CPU"));
        check(r, 0);
    }
}

static double memory_of(const char *more)
{
    struct result r = run(NULL, "train %s --dry-run run.folder=%s %s --json", in("net.json"),
                          in("none"), more);
    cJSON *json = json_of(&r);
    const double bytes = number_of(cJSON_GetObjectItem(json, "devices")->child, "memory_bytes");

    cJSON_Delete(json);
    check(r, 0);
    return bytes;
}

/* The second plan of summaries is counted, too. */
static void summaries(void **state)
{
    (void)state;
    assert_true(memory_of("run.summary_activations=training") > memory_of(""));
    assert_true(memory_of("run.summary_activations=training run.summary_every_steps=0") ==
                memory_of(""));
}

/* Returns names, sizes and times of the files in FOLDER/NAME as text. */
static char *listed(const char *name)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_str s = { 0 };
    char **names = NULL;
    size_t n = 0;

    if (pm_list_folder(a, in("%s", name), &names, &n) < 0)
        fail_msg("%s", pm_error_text());
    for (size_t i = 0; i < n; i++) {
        struct stat st;

        assert_int_equal(stat(in("%s/%s", name, names[i]), &st), 0);
        pm_str_add(&s, "%s %lld %lld.%09ld\n", names[i], (long long)st.st_size,
                   (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    }
    pm_arena_destroy(&a);
    return s.text;
}

/* A run with a checkpoint: only the rest is counted, and no file changes. */
static void continued(void **state)
{
    struct result r;
    cJSON *json;
    char *before, *after;

    (void)state;
    check(train_net(NULL, "run", ""), 0);
    before = listed("run");
    r = run(NULL, "train %s --dry-run run.folder=%s run.steps=103 --json", in("net.json"),
            in("run"));
    json = json_of(&r);
    assert_true(number_of(json, "first_step") == 3);
    assert_true(fabs(number_of(json, "seconds") / (100 * number_of(json, "seconds_per_step")) - 1) <
                1e-9);
    cJSON_Delete(json);
    check(r, 0);
    r = run(NULL, "train %s --dry-run run.folder=%s", in("net.json"), in("run"));
    assert_contains(r.out, "the run is at step 3 of 3: nothing is left to train\n");
    check(r, 0);
    after = listed("run");
    assert_string_equal(before, after);
    pm_free(before);
    pm_free(after);
}

/* A new run that would start from a checkpoint: it is read, and init.restore "all" has its step. */
static void started(void **state)
{
    struct result r;
    cJSON *json;

    (void)state;
    check(train_net(NULL, "source", ""), 0);
    r = run(NULL, "train %s --dry-run run.folder=%s run.steps=103 init.checkpoint=%s "
                  "init.restore=all --json", in("net.json"), in("none"), in("source"));
    json = json_of(&r);
    assert_true(number_of(json, "first_step") == 3);
    cJSON_Delete(json);
    check(r, 0);
    check(run(NULL, "train %s --dry-run run.folder=%s init.checkpoint=%s", in("net.json"),
              in("none"), in("source")), 0, " variables from ");
    check(run(NULL, "train %s --dry-run run.folder=%s init.checkpoint=%s", in("net.json"),
              in("none"), in("absent")), 3, "init.checkpoint: ", "absent");
    assert_false(pm_file_exists(in("none")));
}

static void refused(void **state)
{
    (void)state;
    check(run(NULL, "train %s --dry-run run.folder=%s data.folder=/nowhere", in("net.json"),
              in("none")), 3, "/nowhere");
    check(run(NULL, "train %s --dry-run run.folder=%s eval.every_steps=1 data.eval_split=val",
              in("net.json"), in("none")), 3, "there is no split val");
    check(run(NULL, "train %s --dry-run", in("net.json")), 2, "run.folder");
    check(run(NULL, "train %s --dry", in("net.json")), 2, "has no flag '--dry'");
    assert_false(pm_file_exists(in("none")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report), cmocka_unit_test(one_line_for_the_device),
        cmocka_unit_test(summaries),
        cmocka_unit_test(continued), cmocka_unit_test(started),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, make, drop_world);
}
