/* How anchors fit boxes: what becomes of each box, and what the boxes need. */
#include "base/unit.h"
#include "tasks/detection/anchor_fit.h"
#include "tasks/detection/anchor_search.h"

#include <cjson/cJSON.h>

static const char *const names[] = { "cat", "dog" };

/* Anchors of 32 pixels side by side in one row of an input of 128 x 128. */
static struct pm_anchor_index *row(void)
{
    float a[4][4];

    for (int i = 0; i < 4; i++)
        a[i][0] = 0, a[i][1] = 0.25f * (float)i, a[i][2] = 0.25f, a[i][3] = 0.25f * (float)(i + 1);
    return pm_anchor_index_create(a[0], 4);
}

/* One box equals anchor 0; two claim anchor 1, the second one in vain; one overlaps nothing; the
 * last has weight 0. */
static void fates(void **state)
{
    struct pm_matcher m = { .matched_threshold = 0.5f, .unmatched_threshold = 0.5f,
                            .negatives_lower_than_unmatched = true,
                            .force_match_for_each_row = true };
    const float boxes[][4] = { { 0, 0, 0.25f, 0.25f },      { 0, 0.25f, 0.0625f, 0.5f },
                               { 0, 0.25f, 0.125f, 0.375f }, { 0.5f, 0, 1, 1 },
                               { 0, 0, 0.25f, 0.25f } };
    const float weights[] = { 1, 1, 1, 1, 0 };
    const int labels[] = { 0, 0, 1, 1, 1 };
    const struct pm_truths t = { 5, boxes[0], weights, NULL };
    struct pm_anchor_index *x = row();
    struct pm_anchor_fit *f = pm_anchor_fit_create(&m, x, 2, 128, 128);
    struct pm_fit_count c;
    struct pm_str text = { 0 };
    cJSON *json = cJSON_CreateObject();

    (void)state;
    pm_anchor_fit_add(f, &t, labels);
    c = pm_anchor_fit_class(f, 0);
    assert_int_equal(c.boxes, 2);
    assert_int_equal(c.fate[PM_FIT_MATCHED], 1);
    assert_int_equal(c.fate[PM_FIT_FORCED], 1);
    assert_int_equal(c.anchors, 2);
    assert_float_equal(c.similarity, 1.25, 0);
    c = pm_anchor_fit_class(f, 1);
    assert_int_equal(c.boxes, 2);
    assert_int_equal(c.fate[PM_FIT_LOST], 1);
    assert_int_equal(c.fate[PM_FIT_UNMATCHED], 1);
    assert_int_equal(pm_anchor_fit_class(f, -1).boxes, 4);
    assert_int_equal(pm_anchor_fit_size(f, 2).boxes, 2); /* sides of 16 */
    assert_int_equal(pm_anchor_fit_size(f, 3).boxes, 1); /* 32 */
    assert_int_equal(pm_anchor_fit_size(f, 4).boxes, 1); /* 90.5 */
    pm_anchor_fit_print(f, names, &text);
    assert_contains(text.text, "4 anchors, 4 boxes in 1 picture\n");
    assert_contains(text.text, "dog                         2         0         0         1");
    pm_anchor_fit_report(f, names, json);
    assert_int_equal(cJSON_GetObjectItem(json, "forced")->valueint, 1);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "classes")), 2);
    cJSON_Delete(json);
    pm_str_free(&text);
    pm_anchor_fit_destroy(&f);

    m.force_match_for_each_row = false; /* then the claims of boxes 1 and 2 count for nothing */
    f = pm_anchor_fit_create(&m, x, 2, 128, 128);
    pm_anchor_fit_add(f, &t, labels);
    c = pm_anchor_fit_class(f, -1);
    assert_int_equal(c.fate[PM_FIT_MATCHED], 1);
    assert_int_equal(c.fate[PM_FIT_UNMATCHED], 3);
    pm_anchor_fit_destroy(&f);
    assert_null(f);
    pm_anchor_index_destroy(&x);
}

/* Sides grow evenly from 10 to 110 pixels; widths are half to double the heights. */
static void needs(void **state)
{
    const struct pm_matcher m = { .matched_threshold = 0.5f, .unmatched_threshold = 0.5f };
    struct pm_anchor_index *x = row();
    struct pm_anchor_fit *f = pm_anchor_fit_create(&m, x, 1, 200, 100);
    struct pm_fit_needs n = pm_anchor_fit_needs(f);
    struct pm_str text = { 0 };

    (void)state;
    assert_int_equal(n.ratio_count, 0);
    pm_anchor_fit_print(f, names, &text);
    assert_string_equal(text.text, "4 anchors, 0 boxes in 0 pictures\n");
    for (int i = 0; i <= 1000; i++) {
        double side = 10 + 0.1 * i, ratio = pow(2, 2.0 * ((i * 37) % 1001) / 1000 - 1);
        double h = side / sqrt(ratio) / 200, w = side * sqrt(ratio) / 100;
        const float box[4] = { 0, 0, (float)h, (float)w };
        const struct pm_truths t = { 1, box, NULL, NULL };

        pm_anchor_fit_add(f, &t, (const int[]) { 0 });
    }
    n = pm_anchor_fit_needs(f);
    assert_float_equal(n.side_low, 15, 1e-3);
    assert_float_equal(n.side_median, 60, 1e-3);
    assert_float_equal(n.side_high, 105, 1e-3);
    assert_int_equal(n.ratio_count, 2); /* of 2^-0.9 to 2^0.9 */
    assert_float_equal(n.ratios[0], pow(2, -0.45), 1e-3);
    assert_float_equal(n.ratios[1], pow(2, 0.45), 1e-3);
    pm_anchor_fit_print(f, names, &text);
    assert_contains(text.text, "sizes of 15 to 105 pixels of the 200x100 input");
    assert_contains(text.text, "half of all are\nbelow 60.");
    assert_contains(text.text, "Ratios of width to height that suit 90 %: 0.73, 1.4\n");
    pm_str_free(&text);
    pm_anchor_fit_destroy(&f);
    pm_anchor_index_destroy(&x);
}

/* ---- the search --------------------------------------------------------------------------- */

/* Boxes of 0.4 of the input on maps of 8x8 and 4x4 cells: anchors of 0.1 match none of them, others
 * match most. The order of the pictures does not count. */
static void search(void **state)
{
    struct pm_matcher m = { .matched_threshold = 0.5f, .unmatched_threshold = 0.5f,
                            .negatives_lower_than_unmatched = true };
    struct pm_anchor_maps maps = { .height = 128, .width = 128, .levels.count = 2 };
    const struct pm_fit_needs needs = { 40, 50, 60, 1, { 1 } };
    struct pm_anchor_index *small = row();
    struct pm_anchor_sample sample = { 0 };
    struct pm_str text = { 0 };

    (void)state;
    for (int k = 0; k < 2; k++)
        maps.levels.level[k] = (struct pm_anchor_level) {
            .grid = { 8 >> k, 8 >> k }, .stride = { 0.125 * (1 << k), 0.125 * (1 << k) },
            .offset = { 0.0625 * (1 << k), 0.0625 * (1 << k) },
        };
    pm_anchor_search(&m, small, &maps, &sample, &needs, &text);
    assert_null(text.text); /* nothing to match */
    for (int i = 0; i < 30; i++) {
        float y = 0.02f * (float)i, x = 0.6f - 0.02f * (float)i;
        /* a crowd, of weight 0, does not count */
        float boxes[] = { 0, 0, 0.01f, 0.9f, y, x, y + 0.4f, x + 0.4f };

        pm_anchor_sample_add(&sample, &(struct pm_truths){ 2, boxes, (float[]){ 0, 1 }, NULL });
    }
    pm_anchor_search(&m, small, &maps, &sample, &needs, &text);
    assert_contains(text.text, "Of 30 pictures the present anchors match 0.0 % of the boxes, ");
    assert_contains(text.text, "these ssd anchors 100.0 %:\n  \"min_scale\": ");
    assert_contains(text.text, "\"aspect_ratios\": [1");
    pm_str_free(&text);
    maps.multiscale = true;
    pm_anchor_search(&m, small, &maps, &sample, &needs, &text);
    assert_contains(text.text, "these multiscale anchors 100.0 %:\n  \"anchor_scale\": ");
    pm_str_free(&text);
    pm_anchor_sample_free(&sample);
    pm_anchor_index_destroy(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(fates), cmocka_unit_test(needs),
                                        cmocka_unit_test(search) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
