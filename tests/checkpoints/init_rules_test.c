/* Which variables of a detector are restored, and under which names. */
#include "base/unit.h"
#include "checkpoints/init_rules.h"

enum { MOST = 8 };

/* Checks names: pairs of a variable and its name in the file, "" if it is not restored; ends with
 * NULL. known: whether a rule is for the net. */
static void check(int type, bool all, const char *const (*pairs)[2], bool known)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_variable list[MOST] = { 0 };
    struct pm_variables v = { .list = list };
    const char *const *names;

    for (; pairs[v.count][0]; v.count++)
        list[v.count].name = pairs[v.count][0];
    names = pm_init_names(&v, type, all, a);
    assert_int_equal(names != NULL, known);
    for (int i = 0; known && i < v.count; i++)
        assert_string_equal(names[i] ? names[i] : "", pairs[i][1]);
    pm_arena_destroy(&a);
}

static void ssd(void **state)
{
    static const char *const classifier[][2] = {
        { "FeatureExtractor/MobilenetV1/Conv2d_0/weights", "MobilenetV1/Conv2d_0/weights" },
        { "FeatureExtractor/MobilenetV1/fpn/projection_1/biases",
          "MobilenetV1/fpn/projection_1/biases" },
        { "BoxPredictor_0/ClassPredictor/weights", "" },
        { NULL },
    };
    static const char *const detector[][2] = {
        { "FeatureExtractor/MobilenetV1/Conv2d_0/weights",
          "FeatureExtractor/MobilenetV1/Conv2d_0/weights" },
        { "BoxPredictor_0/ClassPredictor/weights", "" },
        { NULL },
    };
    static const char *const all[][2] = {
        { "FeatureExtractor/a", "FeatureExtractor/a" },
        { "BoxPredictor_0/b", "BoxPredictor_0/b" },
        { NULL },
    };

    (void)state;
    check(PM_INIT_CLASSIFICATION, false, classifier, true);
    check(PM_INIT_CLASSIFICATION, true, classifier, true); /* a classifier has no predictors */
    check(PM_INIT_DETECTION, false, detector, true);
    check(PM_INIT_DETECTION, true, all, true);
}

static void others(void **state)
{
    static const char *const stages[][2] = {
        { "FirstStageFeatureExtractor/InceptionResnetV2/Repeat/a",
          "InceptionResnetV2/Repeat/a" },
        { "SecondStageFeatureExtractor/InceptionResnetV2/Repeat/a",
          "InceptionResnetV2/Repeat_2/a" },
        { "SecondStageFeatureExtractor/InceptionResnetV2/Repeat_1/a",
          "InceptionResnetV2/Repeat_1/a" },
        { "SecondStageFeatureExtractor/InceptionResnetV2/Block8/a", "InceptionResnetV2/Block8/a" },
        { "SecondStageBoxPredictor/a", "" },
        { NULL },
    };
    /* Both stages have block 4; the later variable is restored, whichever stage it is of. */
    static const char *const twins[][2] = {
        { "FirstStageFeatureExtractor/resnet_v1_50/block4/a", "" },
        { "SecondStageFeatureExtractor/resnet_v1_50/block4/a", "resnet_v1_50/block4/a" },
        { "SecondStageFeatureExtractor/resnet_v1_50/block4/b", "" },
        { "FirstStageFeatureExtractor/resnet_v1_50/block4/b", "resnet_v1_50/block4/b" },
        { "FirstStageFeatureExtractor/InceptionResnetV2/Repeat_2/a", "" },
        { "SecondStageFeatureExtractor/InceptionResnetV2/Repeat/a",
          "InceptionResnetV2/Repeat_2/a" },
        { NULL },
    };
    static const char *const detector[][2] = {
        { "FirstStageFeatureExtractor/a", "FirstStageFeatureExtractor/a" },
        { "SecondStageFeatureExtractor/a", "SecondStageFeatureExtractor/a" },
        { "FirstStageFeatureExtractor/InceptionResnetV2/Repeat/b",
          "FirstStageFeatureExtractor/InceptionResnetV2/Repeat/b" },
        { "twin/SecondStageFeatureExtractor/a", "twin/SecondStageFeatureExtractor/a" },
        { "twin/FirstStageFeatureExtractor_1/a", "twin/FirstStageFeatureExtractor_1/a" },
        { "Conv/weights", "" },
        { NULL },
    };
    /* A classifier has no such scope inside a name. */
    static const char *const anchored[][2] = {
        { "FirstStageFeatureExtractor/a", "a" },
        { "twin/SecondStageFeatureExtractor/a", "" },
        { NULL },
    };
    static const char *const retina[][2] = {
        { "Retina_FPN/a", "Retina_FPN/a" }, { "heads/a", "" }, { NULL },
    };
    static const char *const lenet[][2] = { { "LeNet/conv1", "" }, { NULL } };

    (void)state;
    check(PM_INIT_CLASSIFICATION, false, stages, true);
    check(PM_INIT_CLASSIFICATION, false, twins, true);
    check(PM_INIT_CLASSIFICATION, false, anchored, true);
    check(PM_INIT_DETECTION, false, detector, true);
    check(PM_INIT_DETECTION, false, retina, true);
    check(PM_INIT_CLASSIFICATION, false, lenet, false);
    check(PM_INIT_DETECTION, true, lenet, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(ssd), cmocka_unit_test(others) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
