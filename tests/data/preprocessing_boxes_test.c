/* The box sampler compared with TensorFlow's: tests/golden/preprocessing_boxes.json holds
 * histograms of many of its boxes, for pictures with and without objects. Pumice's boxes must
 * have the same distribution. */
#include <math.h>

#include "preprocessing_common.h"

enum { KINDS = 4, BINS = 8 };

struct counts {
    double whole, bin[KINDS][BINS];
};

static int bin_of(double v)
{
    const int b = (int)floor(v * BINS);
    return b < 0 ? 0 : b >= BINS ? BINS - 1 : b;
}

static void count(struct counts *c, const int box[4], int height, int width)
{
    const double y = box[0], x = box[1], h = box[2], w = box[3];
    const double values[KINDS] = { h * w / ((double)height * width), (w / h - 0.7) / 0.7,
                                   (y + h / 2) / height, (x + w / 2) / width };

    c->whole += h == height && w == width;
    for (int k = 0; k < KINDS; k++)
        c->bin[k][bin_of(values[k])]++;
}

/* Two counts of n draws each: the variance of their difference is at most their sum. Five
 * deviations are allowed, because there are 230 counts, and a few draws more whose float lies on
 * the edge of a bin. */
static void same(const char *what, int i, double ours, double theirs)
{
    if (!(fabs(ours - theirs) <= 5 * sqrt(ours + theirs) + 5))
        fail_msg("%s %d: %g of our boxes, %g of TensorFlow's", what, i, ours, theirs);
}

static void like_tensorflow(void **state)
{
    static const char *const kinds[KINDS] = { "area", "aspect", "middle's y", "middle's x" };
    cJSON *all = golden_file("preprocessing_boxes.json");
    const int draws = cJSON_GetObjectItem(all, "draws")->valueint;
    int cases = 0;

    (void)state;
    for (const cJSON *o = cJSON_GetObjectItem(all, "cases")->child; o; o = o->next, cases++) {
        float boxes[8][4];
        size_t n = 0;
        struct counts c = { 0 };
        for (const cJSON *b = cJSON_GetObjectItem(o, "boxes")->child; b; b = b->next, n++)
            for (int k = 0; k < 4; k++)
                boxes[n][k] = (float)cJSON_GetArrayItem(b, k)->valuedouble;
        const struct pm_box_rule rule = {
            0.05f, 1, 0.75f, 1.33f,
            (float)cJSON_GetObjectItem(o, "min_object_covered")->valuedouble
        };
        const struct pm_scene s = { cJSON_GetObjectItem(o, "height")->valueint,
                                    cJSON_GetObjectItem(o, "width")->valueint, 0, boxes[0], n };
        for (int i = 0; i < draws; i++) {
            struct pm_rng r = pm_rng_make(11, 22, (uint32_t)cases, (uint32_t)i);
            int box[4];
            pm_sample_box(&rule, &r, &s, box);
            count(&c, box, s.height, s.width);
        }
        same("whole pictures of case", cases, c.whole,
             cJSON_GetObjectItem(o, "whole")->valuedouble);
        for (int k = 0; k < KINDS; k++)
            for (int b = 0; b < BINS; b++)
                same(kinds[k], cases * 100 + b, c.bin[k][b],
                     cJSON_GetArrayItem(cJSON_GetArrayItem(cJSON_GetObjectItem(o, "bins"), k), b)
                         ->valuedouble);
    }
    assert_int_equal(cases, 7);
    cJSON_Delete(all);
}

/* Without boxes the whole picture counts as the object, bit for bit. */
static void no_boxes(void **state)
{
    static const float whole[4] = { 0, 0, 1, 1 };
    const struct pm_box_rule rule = { 0.05f, 1, 0.75f, 1.33f, 0.1f };

    (void)state;
    for (uint32_t i = 0; i < 200; i++) {
        struct pm_rng a = pm_rng_make(1, 2, 3, i), b = a;
        int x[4], y[4];
        pm_sample_box(&rule, &a, &(struct pm_scene){ 60, 80, 0, NULL, 0 }, x);
        pm_sample_box(&rule, &b, &(struct pm_scene){ 60, 80, 0, whole, 1 }, y);
        assert_memory_equal(x, y, sizeof x);
    }
    /* Objects smaller than a pixel are ignored; then the whole picture is used. */
    static const float dot[4] = { 0.5f, 0.5f, 0.501f, 0.501f };
    struct pm_rng r = pm_rng_make(1, 2, 3, 4);
    int box[4];
    pm_sample_box(&rule, &r, &(struct pm_scene){ 60, 80, 0, dot, 1 }, box);
    assert_int_equal(box[2] * 1000 + box[3], 60080);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(like_tensorflow),
                                        cmocka_unit_test(no_boxes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
