/* run.batch_size "auto": the largest batch that fits, by the plans' figures and the number of
 * training pictures (40), and the same number in every start of a run. PM_FREE_MEMORY sets the
 * host's free memory; three quarters of it may be used. */
#include "e2e/program.h"

static int make(void **state)
{
    (void)state;
    return make_world(true);
}

static const char *memory(double bytes)
{
    static char text[64];

    snprintf(text, sizeof text, "PM_FREE_MEMORY=%.0f", bytes);
    return text;
}

/* Returns the batch that config show prints. */
static int shown(double bytes, const char *more)
{
    struct result r = run(&(struct how){ .environment = memory(bytes) },
                          "config show %s run.batch_size=auto %s --json", in("net.json"), more);
    cJSON *json = json_of(&r);
    const int batch = (int)number_of(cJSON_GetObjectItem(json, "run"), "batch_size");

    assert_contains(r.err, "train: run.batch_size: auto is ");
    cJSON_Delete(json);
    check(r, 0);
    return batch;
}

/* Returns the bytes of the clones' plans, on the device and on the host. */
static double planned(int batch)
{
    struct result r = run(NULL, "config show %s --plan --json run.batch_size=%d", in("net.json"),
                          batch);
    cJSON *json = json_of(&r);
    const cJSON *clone = cJSON_GetObjectItem(json, "clones")->child;
    const double bytes = number_of(clone, "total") + number_of(clone, "staging");

    cJSON_Delete(json);
    check(r, 0);
    return bytes;
}

static void by_pictures(void **state)
{
    (void)state;
    assert_int_equal(shown(1e12, ""), 32);
    assert_int_equal(shown(1e12, "run.micro_batches=3"), 24);
    assert_int_equal(shown(1e12, "run.micro_batches=40"), 40);
    assert_int_equal(shown(1e12, "data.sample_1_of_n=9"), 4);
    assert_int_equal(shown(1e12, "'devices=[\"cpu\",\"cpu\",\"cpu\"]'"), 32);
}

static void by_memory(void **state)
{
    int last = 0;

    (void)state;
    for (int batch = 1; batch < 32; batch *= 2) {
        const double may = planned(2 * batch) - 1; /* the double of batch does not fit */
        const int found = shown(may * 4 / 3, "");

        assert_true(found <= batch && found >= last && planned(found) < may);
        last = found;
    }
    assert_true(last > 1);
    check(run(&(struct how){ .environment = memory(1000) },
              "config show %s run.batch_size=auto", in("net.json")), 4,
          "run.batch_size: \"auto\": even a batch of 1 does not fit: the host needs ",
          "make input.size smaller, or use another device");
}

/* Histograms of the training pass's activations need a second plan. */
static void with_summaries(void **state)
{
    double bytes = planned(32) * 4 / 3;

    (void)state;
    while (shown(bytes, "") < 32)
        bytes *= 1.05;
    assert_true(shown(bytes, "run.summary_activations=training") < 32);
    assert_int_equal(shown(2.5 * bytes, "run.summary_activations=training"), 32);
}

/* Reads the last checkpoint of a run whose config.json must have the number. */
static char *checkpoint(const char *name, size_t *size)
{
    char *text = get_text(in("%s/config.json", name)), *bytes = NULL;

    assert_contains(text, "\"batch_size\": 16,");
    pm_free(text);
    if (pm_file_read(in("%s/checkpoints/step-000006.safetensors", name), &bytes, size) < 0)
        fail_msg("%s", pm_error_text());
    return bytes;
}

/* A run with "auto" equals the run with its number, also if it is resumed with other memory. The
 * rate depends on the number of steps in an epoch. */
static void kept(void **state)
{
    static const char more[] = "schedule.policy=exponential schedule.num_epochs_per_decay=1 "
                               "schedule.decay_factor=0.5";
    const double bytes = (planned(32) - 1) * 4 / 3;
    const struct how little = { .environment = memory(bytes) };
    size_t size_a, size_b;
    char text[512], *a, *b;

    (void)state;
    assert_int_equal(shown(bytes, more), 16);
    snprintf(text, sizeof text, "run.batch_size=auto run.steps=3 %s", more);
    check(train_net(&little, "auto", text), 0, "run.batch_size: auto is 16; for 32 ");
    snprintf(text, sizeof text, "run.batch_size=auto run.steps=6 %s", more);
    check(train_net(NULL, "auto", text), 0, "run.batch_size: auto is 16, as in ");
    snprintf(text, sizeof text, "run.batch_size=16 run.steps=6 %s", more);
    check(train_net(NULL, "number", text), 0);
    assert_true(logged("auto", 6, "lr") == logged("number", 6, "lr"));
    assert_true(logged("auto", 6, "lr") < logged("auto", 1, "lr"));
    assert_true(logged("auto", 6, "loss") == logged("number", 6, "loss"));
    a = checkpoint("auto", &size_a);
    b = checkpoint("number", &size_b);
    assert_int_equal(size_a, size_b);
    assert_memory_equal(a, b, size_a);
    pm_free(a);
    pm_free(b);
}

static void other_commands(void **state)
{
    struct result r = run(NULL, "train %s --dry-run run.batch_size=auto run.folder=%s --json",
                          in("net.json"), in("none"));
    cJSON *json = json_of(&r);

    (void)state;
    assert_true(number_of(json, "batch") == 32);
    cJSON_Delete(json);
    check(r, 0);
    r = run(NULL, "bench %s run.batch_size=auto --steps 1 --warmup 0 --json", in("net.json"));
    json = json_of(&r);
    assert_true(number_of(json, "batch") == 32);
    cJSON_Delete(json);
    check(r, 0);
    check(run(NULL, "config check %s run.batch_size=auto", in("net.json")), 0);
    check(run(NULL, "eval %s run.batch_size=auto run.folder=%s", in("net.json"), in("number")), 0);
}

static void without_data(void **state)
{
    struct result r = run(NULL, "config show %s run.batch_size=auto data.folder=/nowhere --json",
                          in("net.json"));
    cJSON *json = json_of(&r);

    (void)state;
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(json, "run"),
                                                                 "batch_size")), "auto");
    cJSON_Delete(json);
    check(r, 0);
    check(run(NULL, "config show --plan %s run.batch_size=auto data.folder=/nowhere "
                    "model.num_classes=4 input.size=8", in("net.json")), 2,
          "command line: run.batch_size: \"auto\" needs the data, which does not exist");
    check(run(NULL, "train %s run.batch_size=auto run.folder=%s data.folder=/nowhere",
              in("net.json"), in("none")), 3, "/nowhere");
}

static void refused(void **state)
{
    (void)state;
    check(run(NULL, "train %s run.batch_size=big run.folder=%s", in("net.json"), in("none")), 2,
          "run.batch_size: \"big\" is neither a number nor \"auto\"");
    check(run(NULL, "train %s run.batch_size=auto run.folder=%s 'data.folders=[{\"batch\":3},"
                    "{\"batch\":4}]'", in("net.json"), in("none")), 2,
          "\"auto\", but the entries of data.folders have batches: set it to their sum, 7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_pictures), cmocka_unit_test(by_memory),
        cmocka_unit_test(with_summaries), cmocka_unit_test(kept),
        cmocka_unit_test(other_commands), cmocka_unit_test(without_data),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, make, drop_world);
}
