/* Patterns of variables' names: Python's meaning, the examples of TensorFlow's tests of its filters
 * (filter_variables, multiply_gradients_matching_regex, freeze_gradients_matching_regex), limits,
 * messages. */
#include "base/patterns.h"
#include "base/unit.h"

enum { NAMES = 4 };
static const char *const names[NAMES] = {
    "FeatureExtractor/InceptionV3/weights", "FeatureExtractor/InceptionV3/biases",
    "StackProposalGenerator/weights", "StackProposalGenerator/biases",
};

static struct pm_patterns *compiled(int count, const char *const *texts)
{
    struct pm_patterns *p = NULL;

    if (pm_patterns_compile(texts, count, "x.json: optim.freeze", &p) < 0)
        fail_msg("%s", pm_error_text());
    return p;
}

/* Bit i is set if a pattern matches name i. */
static int matching(int count, const char *const *texts)
{
    struct pm_patterns *p = compiled(count, texts);
    int bits = 0;

    for (int i = 0; i < NAMES; i++)
        bits |= (pm_patterns_find(p, names[i]) >= 0) << i;
    pm_patterns_destroy(&p);
    assert_null(p);
    return bits;
}
#define MATCHING(...)                                                                              \
    matching((int)(sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)),                      \
             (const char *[]){ __VA_ARGS__ })

static bool one(const char *pattern, const char *name)
{
    struct pm_patterns *p = compiled(1, &pattern);
    int found = pm_patterns_find(p, name);

    pm_patterns_destroy(&p);
    return found == 0;
}

static void vectors(void **state)
{
    (void)state;
    assert_int_equal(MATCHING(""), 0); /* the filter keeps all four, its inverse none */
    assert_int_equal(MATCHING("FeatureExtractor/.*"), 3);
    assert_int_equal(MATCHING("FeatureExtractor.*biases", "StackProposalGenerator.*biases"), 10);
    assert_int_equal(MATCHING(".*/biases"), 10);
    assert_int_equal(MATCHING("", "StackProposalGenerator"), 12);
    assert_int_equal(MATCHING("InceptionV3"), 0); /* not at the start */
    assert_int_equal(MATCHING("Feature|.*Generator/b"), 11);
}

/* What POSIX's expressions lack or read differently. */
static void python(void **state)
{
    (void)state;
    assert_true(one(".*bias(?:es)?", "conv/biases"));
    assert_true(one(".*bias(?:es)?$", "conv/bias"));
    assert_false(one(".*bias(?:es)?$", "conv/biases_1"));
    assert_true(one("block\\d+/", "block12/conv"));
    assert_false(one("block\\d+/", "blockd/conv"));
    assert_true(one("(?!.*BatchNorm).*/w", "conv/weights"));
    assert_false(one("(?!.*BatchNorm).*/w", "conv/BatchNorm/weights"));
    assert_true(one("a{,2}b", "aab"));
    assert_false(one("a{,2}b", "aaab"));
    assert_true(one("[{,2}]+$", ",2}{"));
    assert_true(one("[]{,2}]+$", "],2}{"));
    assert_true(one("\\{,2}", "{,2}"));
    assert_true(one("(?P<x>a)(?P=x)", "aa"));
    assert_true(one("conv|logits", "logits/weights")); /* each alternative at the start */
    assert_false(one("conv|logits", "my/logits"));
    assert_true(one("a.c", "a/c"));
    assert_true(one("^conv1", "conv1/weights"));
}

/* The index is that of the list, with empty patterns counted. */
static void indices(void **state)
{
    const char *const texts[] = { "", "b", "", "a", "ab" };
    struct pm_patterns *p = compiled(5, texts), *none = NULL;

    (void)state;
    assert_int_equal(pm_patterns_count(p), 3);
    assert_int_equal(pm_patterns_find(p, "abc"), 3);
    assert_int_equal(pm_patterns_find(p, "bc"), 1);
    assert_int_equal(pm_patterns_find(p, "c"), PM_NO_PATTERN);
    assert_true(pm_patterns_one(p, 4, "abc"));
    assert_false(pm_patterns_one(p, 0, "abc"));
    assert_int_equal(pm_patterns_count(none), 0);
    assert_int_equal(pm_patterns_find(none, "abc"), PM_NO_PATTERN);
    pm_patterns_destroy(&p);
}

static void messages(void **state)
{
    const char *bad = "conv(", *slow = "(a*)*$";
    char name[64], *large = pm_malloc(20001);
    struct pm_patterns *p = NULL;

    (void)state;
    assert_int_equal(pm_patterns_compile(&bad, 1, "x.json: optim.freeze", &p), PM_ECONFIG);
    assert_contains(pm_error_text(), "x.json: optim.freeze: \"conv(\" is not a regular expression");
    assert_contains(pm_error_text(), "at character 6");
    memset(large, 'a', 20000);
    large[20000] = 0;
    assert_int_equal(pm_patterns_compile((const char *const *)&large, 1, "x.json: optim.freeze",
                                         &p), PM_ECONFIG);
    assert_contains(pm_error_text(), "20000 characters; at most 10000");
    assert_null(p);
    memset(name, 'a', sizeof name);
    memcpy(name + 40, "b", 2);
    p = compiled(1, &slow);
    assert_int_equal(pm_patterns_find(p, name), PM_ECONFIG);
    assert_contains(pm_error_text(), "\"(a*)*$\" on the name aaa");
    pm_patterns_destroy(&p);
    pm_free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors), cmocka_unit_test(python), cmocka_unit_test(indices),
        cmocka_unit_test(messages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
