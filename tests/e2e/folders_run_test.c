/* data.folders and data.repeat_threshold: runs with several sources of training records, their
 * resume, and mistakes. */
#include "e2e/same_run.h"
#include "program.h"

#define TWO(a, b)                                                                          \
    "'data.folders=[{\"folder\":\"%s/data\"," a "},{\"folder\":\"%s/other\"," b "}]'"

/* Trains the run folder for so many steps; more: further arguments. */
static void train(const char *name, int steps, const char *more)
{
    check(run(NULL, "train %s run.folder=%s run.steps=%d %s", in("net.json"), in("%s", name), steps,
              more), 0);
}

static void same_weights(const char *a, const char *b)
{
    same_run_file(in("%s", a), in("%s", b), "checkpoints/step-000006.safetensors");
    assert_true(run_has(in("%s", a), "checkpoints/step-000006.safetensors"));
}

static bool differ(const char *a, const char *b)
{
    size_t n, m;
    char *x = run_text(in("%s", a), "checkpoints/step-000006.safetensors", &n);
    char *y = run_text(in("%s", b), "checkpoints/step-000006.safetensors", &m);
    const bool differ = n != m || memcmp(x, y, n) != 0;

    pm_free(x);
    pm_free(y);
    return differ;
}

/* One entry with the whole batch trains as data.folder does. A weight of 0 beside a batch is none,
 * as is null. */
static void one_entry(void **state)
{
    (void)state;
    train("plain", 6, "");
    train("one", 6, "'data.folders=[{\"batch\":8,\"weight\":0}]'");
    train("set", 6, "'data.folders=[{\"split\":\"train\",\"weight\":null}]'");
    same_weights("plain", "one");
    same_weights("plain", "set");
}

/* Trains 6 steps at once, and 2 and 4 with a resume: the same weights, other than without
 * folders. With buckets of threads. */
static void resumed(const char *name, const char *options)
{
    char whole[60], parts[60], threads[1000];

    snprintf(whole, sizeof whole, "%s_whole", name);
    snprintf(parts, sizeof parts, "%s_parts", name);
    snprintf(threads, sizeof threads, "%s data.threads=5", options);
    train(whole, 6, options);
    train(parts, 2, options);
    train(parts, 6, threads);
    same_weights(whole, parts);
    assert_true(differ(whole, "plain"));
}

static void shares(void **state)
{
    char text[900];

    (void)state;
    snprintf(text, sizeof text, TWO("\"batch\":6", "\"batch\":2"), folder, folder);
    resumed("shares", text);
    struct result r = run(NULL, "train %s run.folder=%s run.steps=1 %s", in("net.json"), in("new"),
                          text);
    assert_contains(r.err, "60 pictures");
    check(r, 0);
}

static void weights(void **state)
{
    char text[900];

    (void)state;
    snprintf(text, sizeof text, TWO("\"weight\":1", "\"weight\":0.5"), folder, folder);
    resumed("weights", text);
    snprintf(text, sizeof text, TWO("\"weight\":0", "\"weight\":1"), folder, folder);
    train("other_only", 6, text); /* an entry of weight 0 is not read */
    snprintf(text, sizeof text, "data.folder=%s", in("other"));
    train("other_plain", 6, text);
    same_weights("other_only", "other_plain");
}

static void one_set(void **state)
{
    char text[900];

    (void)state;
    snprintf(text, sizeof text, TWO("\"split\":\"train\"", "\"split\":\"train\""), folder, folder);
    resumed("set_of_two", text);
}

/* The second source only is mirrored; a list for all mirrors both. */
static void augmented(void **state)
{
    static const char flip[] = "[{\"name\":\"random_flip\",\"probability\":1}]";
    char text[900], list[200];

    (void)state;
    snprintf(list, sizeof list, "\"batch\":2,\"augment\":%s", flip);
    snprintf(text, sizeof text,
             "'data.folders=[{\"folder\":\"%s/data\",\"batch\":6},{\"folder\":\"%s/other\",%s}]'",
             folder, folder, list);
    resumed("augmented", text);
    assert_true(differ("augmented_whole", "shares_whole"));
    snprintf(text, sizeof text, "'data.folders=[{\"batch\":8,\"augment\":%s}]'", flip);
    train("own", 6, text);
    snprintf(text, sizeof text, "'input.augment=%s'", flip);
    train("all", 6, text);
    same_weights("own", "all");
}

static void repeated(void **state)
{
    (void)state;
    resumed("repeated", "data.repeat_threshold=0.4");
    struct result r = run(NULL, "train %s run.folder=%s run.steps=1 data.repeat_threshold=0.4",
                          in("net.json"), in("new2"));
    assert_contains(r.err, "of 4 classes are rare");
    check(r, 0);
    train("never", 6, "data.repeat_threshold=0.000001"); /* no class is so rare */
    same_weights("never", "plain");
}

static void refused(const char *folders, int code, const char *text)
{
    struct result r = run(NULL, "train %s run.folder=%s 'data.folders=%s'", in("net.json"),
                          in("refused"), folders);

    assert_contains(r.err, text);
    check(r, code);
}

static void mistakes(void **state)
{
    char text[600];

    (void)state;
    refused("[]", 2, "data.folders: a list");
    refused("{}", 2, "data.folders: a list");
    refused("[{\"batch\":6},{\"batch\":3}]", 2, "add up to 9, but run.batch_size is 8");
    refused("[{\"batch\":6},{\"weight\":3}]", 2, "set one of them in all entries");
    refused("[{\"batch\":8},{}]", 2, "1 of 2 entries have batch");
    refused("[{\"batsh\":8}]", 2, "data.folders.0.batsh: unknown key, did you mean 'batch'?");
    refused("[{\"weight\":-1}]", 2, "data.folders.0.weight: -1");
    refused("[{\"batch\":8,\"augment\":[{\"name\":\"flop\"}]}]", 2, "data.folders.0.augment");
    refused("[{\"batch\":8,\"augment\":[{\"name\":\"resize\",\"size\":20}]}]", 2,
            "data.folders.0.augment.0");
    refused("[{\"weight\":0},{\"weight\":0}]", 2, "every weight is 0");
    refused("[{\"weight\":0},{\"weight\":1,\"augment\":[{\"name\":\"flop\"}]}]", 2,
            "data.folders.1.augment");
    refused("[{\"folder\":\"/nowhere\"}]", 3, "/nowhere");
    snprintf(text, sizeof text, "[{\"batch\":4},{\"batch\":4,\"folder\":\"%s/three\"}]", folder);
    refused(text, 3, "has other classes than");
}

static int world(void **state)
{
    (void)state;
    if (make_world(true) < 0)
        return -1;
    check(run(NULL, "dataset make shapes %s size=16 train=20 validation=2 test=2 seed=1",
              in("other")), 0);
    for (int k = 0; k < 3; k++)
        check(run(NULL, "dataset inspect %s --records 2 --pictures %s", in("data"),
                  in("raw/%c", 'a' + k)), 0);
    check(run(NULL, "dataset convert folder %s %s validation=0", in("raw"), in("three")), 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_entry), cmocka_unit_test(shares),    cmocka_unit_test(weights),
        cmocka_unit_test(one_set),   cmocka_unit_test(augmented), cmocka_unit_test(repeated),
        cmocka_unit_test(mistakes),
    };

    return cmocka_run_group_tests(tests, world, drop_world);
}
