/* config check of a detector: with data it reports how the anchors fit the boxes. */
#include "e2e/program.h"

static const char *config(void)
{
    static char path[1024];
    const char *source = getenv("PUMICE_SOURCE");

    snprintf(path, sizeof path, "%s/configs/shapes_detection.json", source ? source : ".");
    return path;
}

static double sum_of(const cJSON *list, const char *member)
{
    double sum = 0;

    for (const cJSON *one = list->child; one; one = one->next)
        sum += number_of(one, member);
    return sum;
}

/* Every box has one fate, one class and one size. */
static void counts(void **state)
{
    static const char *const fates[] = { "matched", "forced", "lost", "unmatched" };
    struct result r = run(NULL, "config check %s data.folder=%s --json", config(), in("data"));
    cJSON *json;
    const cJSON *fit, *classes, *sizes;
    double boxes, all = 0;

    (void)state;
    assert_int_equal(r.code, 0);
    json = json_of(&r);
    fit = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "anchors"), 0);
    classes = cJSON_GetObjectItem(fit, "classes");
    sizes = cJSON_GetObjectItem(fit, "sizes");
    boxes = number_of(fit, "boxes");
    assert_true(number_of(fit, "pictures") == 40 && number_of(fit, "height") == 64);
    assert_true(boxes >= 40 && boxes < 400);
    assert_int_equal(cJSON_GetArraySize(classes), 4);
    assert_string_equal(cJSON_GetObjectItem(classes->child, "name")->valuestring, "disc");
    assert_true(sum_of(classes, "boxes") == boxes && sum_of(sizes, "boxes") == boxes);
    for (size_t i = 0; i < PM_COUNT(fates); i++) {
        all += number_of(fit, fates[i]);
        assert_true(sum_of(classes, fates[i]) == number_of(fit, fates[i]));
    }
    assert_true(all == boxes);
    assert_true(number_of(fit, "matched") > boxes / 2);
    assert_true(number_of(cJSON_GetObjectItem(fit, "needs"), "side_low") > 4);
    cJSON_Delete(json);
    drop(&r);
}

static void text(void **state)
{
    struct result r = run(NULL, "config check %s data.folder=%s", config(), in("data"));

    (void)state;
    assert_int_equal(r.code, 0);
    assert_contains(r.out, "shapes_detection.json: nothing wrong\ninput 64x64: 340 anchors, ");
    assert_contains(r.out, "in 40 pictures\n");
    assert_contains(r.out, "triangle");
    assert_contains(r.out, "Of 40 pictures the present anchors match ");
    drop(&r);
    r = run(NULL, "config check %s data.folder=%s", config(), in("nowhere"));
    assert_int_equal(r.code, 0);
    assert_null(strstr(r.out, "anchors"));
    drop(&r);
}

/* Runs config check and returns the number of boxes. */
static double boxes_of(const char *options, int pictures)
{
    struct result r = run(NULL, "config check %s %s --json", config(), options);
    cJSON *json;
    double boxes;

    assert_int_equal(r.code, 0);
    json = json_of(&r);
    const cJSON *fit = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "anchors"), 0);
    boxes = number_of(fit, "boxes");
    assert_true(number_of(fit, "pictures") == pictures);
    cJSON_Delete(json);
    drop(&r);
    return boxes;
}

/* All folders are looked at, by their shares of the batch: the one picture of the first folder is
 * half of the pictures. */
static void folders(void **state)
{
    char text[900];
    double one;

    (void)state;
    snprintf(text, sizeof text, "data.folder=%s", in("one"));
    one = boxes_of(text, 1);
    snprintf(text, sizeof text,
             "data.folder=%s/data run.batch_size=8 'data.folders=["
             "{\"folder\":\"%s/one\",\"batch\":4},{\"batch\":4}]'", folder, folder);
    assert_true(boxes_of(text, 41) != 41 * one);
}

static struct result check_with(const char *more)
{
    return run(NULL, "config check %s data.folder=%s %s", config(), in("data"), more);
}

/* Settings that train, but worse than others. */
static void notes(void **state)
{
    struct result r = check_with("model.layers=null model.name=ssd_mobilenet_v2 "
                                 "data.multiclass_scores=true");

    (void)state;
    assert_contains(r.out, "Set model.background_class=false, or another loss.classification.type");
    assert_contains(r.out, "every soft label is 0 or 1");
    check(r, 0);
    r = check_with("model.layers=null model.name=retinanet_50");
    assert_contains(r.out, "Set model.batch_norm_train=true, or init.checkpoint");
    check(r, 0);
    r = check_with("");
    assert_null(strstr(r.out, "note: "));
    check(r, 0);
}

static void mistakes(void **state)
{
    (void)state;
    check(check_with("data.eval_split=tset"), 3, "tset");
    check(check_with("'model.matcher={\"matched_threshold\":1.5}'"), 2,
          "matched_threshold: 1.5 is above 1, the largest value of this similarity");
    check(check_with("input.size=null 'input.buckets=[64,96]'"), 2,
          "input.buckets: input.resizer=fixed_shape stretches every picture to one size");
    check(check_with("run.keep_best=best_f1 eval.every_steps=10"), 0);
    check(check_with("loss.expected_loss_weights=reweighting"), 2, "Use loss.hard_example_miner");
}

/* Without data.folder the first of data.folders has the evaluation split. */
static void first_folder(void **state)
{
    char text[900];

    (void)state;
    snprintf(text, sizeof text, "data.folder=null 'data.folders=[{\"folder\":\"%s/data\"}]'",
             folder);
    check(run(NULL, "config check %s %s", config(), text), 0);
}

static int set_up(void **state)
{
    (void)state;
    if (make_world(false) < 0)
        return -1;
    check(run(NULL, "dataset make shapes %s size=64 train=40 validation=8 test=8", in("data")), 0);
    check(run(NULL, "dataset make shapes %s size=64 train=1 validation=1 test=1", in("one")), 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(counts), cmocka_unit_test(text),
                                        cmocka_unit_test(folders),
                                        cmocka_unit_test(notes), cmocka_unit_test(mistakes),
                                        cmocka_unit_test(first_folder) };

    return cmocka_run_group_tests(tests, set_up, drop_world);
}
