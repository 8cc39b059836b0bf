/* The factors of records with rare classes: max(1, sqrt(threshold / share)), from objects by name
 * and by number, else from image/class/label. */
#include "convert_common.h"

#include <math.h>

#include <pumice/objects.h>

#include "data/repeats.h"

enum { RECORDS = 8 };

/* Record i has the classes of this text: letters are names, digits numbers; '.' is the label of
 * the picture. */
static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    const char *classes = ((const char *const *)ctx)[i];
    struct pm_objects o;
    const int64_t label = 5;

    pm_example_add_bytes(b, "image/encoded", "x", 1);
    if (strchr(classes, '.')) {
        pm_example_add_ints(b, "image/class/label", &label, 1);
        return 1;
    }
    pm_objects_start(&o, 1, 1);
    o.has = PM_HAS_TEXT | PM_HAS_LABEL;
    for (const char *c = classes; *c; c++) {
        struct pm_object *one = pm_objects_add(&o);
        static const char *const names[] = { "a", "b", "c" };

        memcpy(one->box, ((const float[]){ 0, 0, 1, 1 }), sizeof one->box);
        if (*c >= 'a')
            one->text = names[*c - 'a'];
        else
            one->label = *c - '0';
    }
    pm_objects_write(&o, b);
    pm_objects_free(&o);
    return 1;
}

static struct pm_dataset *make(const char *const *classes)
{
    static const struct pm_label_item item = { .id = 1, .name = "a" };
    const struct pm_label_map map = { &item, 1 };
    struct pm_making *m = NULL;
    struct pm_dataset *d = NULL;

    assert_int_equal(pm_making_create(in_scratch("d"), NULL, true, &m), PM_OK);
    pm_making_box_labels(m, &map);
    assert_int_equal(pm_making_split(m, "train", RECORDS, NULL, fill, (void *)classes), PM_OK);
    assert_int_equal(pm_making_finish(m), PM_OK);
    pm_making_destroy(&m);
    assert_int_equal(pm_dataset_open(in_scratch("d"), "train", &d), PM_OK);
    return d;
}

static void expect(const char *const *classes, double threshold, const double *share)
{
    struct pm_dataset *d = make(classes);
    struct pm_repeat_report report;
    float factor[RECORDS];

    assert_int_equal(pm_repeat_factors(d, 0, RECORDS, NULL, threshold, factor, &report), PM_OK);
    for (int i = 0; i < RECORDS; i++)
        assert_float_equal(factor[i], share[i] > 0 ? fmax(1, sqrt(threshold / share[i])) : 1,
                           1e-6);
    pm_dataset_close(&d);
}

static void factors(void **state)
{
    /* a is in 6 records of 8, b in 2 (twice in one of them counts once), c in 1. */
    static const char *const names[RECORDS] = { "a", "aab", "a", "bb", "a", "ac", "a", "" };
    static const double rarest[RECORDS] = { 0.75, 0.25, 0.75, 0.25, 0.75, 0.125, 0.75, 0 };
    static const char *const mixed[RECORDS] = { "1", "12", "1", "1", "1", "1", ".", "." };
    static const double of_mixed[RECORDS] = { 0.75, 0.125, 0.75, 0.75, 0.75, 0.75, 0.25, 0.25 };

    (void)state;
    scratch_make();
    expect(names, 0.5, rarest);
    expect(names, 1, rarest);
    expect(names, 0.125, rarest); /* exactly the share of c: no class is rare */
    expect(mixed, 0.5, of_mixed);
    scratch_remove();
}

/* A part of a dataset counts alone. */
static void part(void **state)
{
    static const char *const names[RECORDS] = { "a", "a", "a", "a", "b", "c", "b", "b" };
    struct pm_repeat_report report;
    float factor[4];

    (void)state;
    scratch_make();
    struct pm_dataset *d = make(names);
    assert_int_equal(pm_repeat_factors(d, 4, 4, NULL, 1, factor, &report), PM_OK);
    assert_float_equal(factor[0], sqrt(1 / 0.75), 1e-6);
    assert_float_equal(factor[1], 2, 1e-6);
    assert_int_equal(report.classes, 2);
    assert_int_equal(report.rare, 2);
    assert_int_equal(report.records, 4);
    assert_float_equal(report.most, 2, 1e-6);
    pm_dataset_close(&d);
    scratch_remove();
}

/* A map gives names and numbers one class. */
static void names_and_numbers(void **state)
{
    static const char *const both[RECORDS] = { "a", "1", "a", "1", "a", "1", "a", "1" };
    static const struct pm_label_item item = { .id = 1, .name = "a" };
    const struct pm_label_map map = { &item, 1 };
    struct pm_repeat_report report;
    float factor[RECORDS];

    (void)state;
    scratch_make();
    struct pm_dataset *d = make(both);
    assert_int_equal(pm_repeat_factors(d, 0, RECORDS, &map, 1, factor, &report), PM_OK);
    assert_int_equal(report.classes, 1);
    assert_int_equal(report.rare, 0);
    pm_dataset_close(&d);
    scratch_remove();
}

static void without_classes(void **state)
{
    static const char *const none[RECORDS] = { "", "", "", "", "", "", "", "" };
    struct pm_repeat_report report;
    float factor[RECORDS];

    (void)state;
    scratch_make();
    struct pm_dataset *d = make(none);
    assert_fails(pm_repeat_factors(d, 0, RECORDS, NULL, 1, factor, &report), PM_EDATA,
                 "data.repeat_threshold", "set it to 0");
    pm_dataset_close(&d);
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors), cmocka_unit_test(part),
        cmocka_unit_test(names_and_numbers), cmocka_unit_test(without_classes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
