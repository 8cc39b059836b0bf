/* Curves of metrics.jsonl: their size is bounded, spikes remain, and they follow a growing file. */
#include "report/run_folder.h"

#include "report/page.h"

static void curve_is_bounded(void **state)
{
    struct pm_curves c = { 0 };
    struct pm_curve_point points[2 * PM_CURVE_BINS], smooth[PM_CURVE_BINS];
    const int steps = 1000000, spike = 765432;
    double sum = 0;
    uint64_t count = 0;

    (void)state;
    for (int i = 1; i <= steps; i++)
        pm_curves_add(&c, "train", "loss", (uint64_t)i, i == spike ? 50 : i == spike + 1 ? -50 : 1);
    const struct pm_curve *curve = pm_curves_find(&c, "train", "loss");
    assert_non_null(curve);
    assert_in_range(curve->count, PM_CURVE_BINS / 2 - 1, PM_CURVE_BINS);
    for (int i = 0; i < curve->count; i++) {
        sum += curve->bins[i].sum;
        count += curve->bins[i].count;
    }
    assert_int_equal(count, steps); /* all values are counted */
    assert_true(fabs(sum - (steps - 2)) < 1e-6);

    const int n = pm_curve_points(curve, points);
    bool up = false, down = false;
    assert_true(n <= 1000);
    for (int i = 0; i < n; i++) {
        assert_true(i == 0 || points[i].step >= points[i - 1].step);
        up |= points[i].value == 50 && points[i].step == spike; /* spikes stay at their steps */
        down |= points[i].value == -50 && points[i].step == spike + 1;
    }
    assert_true(up && down);
    assert_int_equal(pm_curve_smooth(curve, smooth), curve->count);
    assert_true(fabs(smooth[10].value - 1) < 1e-9);
    assert_true(pm_curve_best(curve, true).value == 50 && pm_curve_best(curve, true).step == spike);
    assert_true(pm_curve_best(curve, false).step == spike + 1);
    pm_curves_free(&c);
}

static void few_values_stay_as_they_are(void **state)
{
    struct pm_curves c = { 0 };
    struct pm_curve_point points[2 * PM_CURVE_BINS];
    static const double values[] = { 3, 1, NAN, 2, INFINITY, 5 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(values); i++)
        pm_curves_add(&c, "eval", "loss", 1000 * (i + 1), values[i]);
    pm_curves_add(&c, "eval", "loss", 10, 77); /* a step before the last one is ignored */
    const struct pm_curve *curve = pm_curves_find(&c, "eval", "loss");
    assert_non_null(curve);
    assert_int_equal(curve->not_finite, 2);
    assert_int_equal(pm_curve_points(curve, points), 4);
    assert_true(points[2].step == 4000 && points[2].value == 2);
    assert_true(curve->last == 5 && curve->last_step == 6000);
    pm_curves_add(&c, "eval", "nothing", 1, NAN);
    assert_null(pm_curves_find(&c, "eval", "nothing"));
    assert_null(pm_curves_find(&c, "train", "loss"));
    pm_curves_free(&c);
}

/* When steps are far apart, bins grow until some hold several steps. */
static void sparse_steps(void **state)
{
    struct pm_curves c = { 0 };

    (void)state;
    for (uint64_t i = 0; i < 1501; i++)
        pm_curves_add(&c, "train", "loss", i << 20, (double)i);
    const struct pm_curve *curve = pm_curves_find(&c, "train", "loss");
    assert_in_range(curve->count, PM_CURVE_BINS / 2 - 1, PM_CURVE_BINS);
    assert_true(curve->bins[0].lowest == 0 && curve->bins[curve->count - 1].highest == 1500);
    pm_curves_free(&c);
}

static void reads_what_is_new(void **state)
{
    char *folder = make_folder(), path[512];
    struct pm_curves c = { 0 };
    FILE *f;

    (void)state;
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    pm_curves_read(&c, path); /* the file does not exist yet */
    assert_int_equal(c.count, 0);
    put(folder, "metrics.jsonl",
        "{\"kind\": \"train\", \"step\": 1, \"loss\": 2}\n"
        "rubbish\n[1, 2]\n{\"kind\": 3, \"step\": 2, \"loss\": 2}\n{\"kind\": \"train\", \"loss\": "
        "9}\n"
        "{\"kind\": \"train\", \"step\": 2, \"loss\": null}\n{\"kind\": \"train\", \"step\": 3, "
        "\"lo");
    pm_curves_read(&c, path);
    const struct pm_curve *curve = pm_curves_find(&c, "train", "loss");
    assert_non_null(curve);
    assert_true(curve->count == 1 && curve->not_finite == 1 && c.last_step == 2);
    assert_non_null(f = fopen(path, "a"));
    fputs("ss\": 7}\n", f); /* the rest of the line is written */
    fclose(f);
    pm_curves_read(&c, path);
    curve = pm_curves_find(&c, "train", "loss");
    assert_true(curve->count == 2 && curve->last == 7);
    /* another file replaces it */
    put(folder, "metrics.jsonl", "{\"kind\": \"train\", \"step\": 1, \"loss\": 4}\n");
    pm_curves_read(&c, path);
    curve = pm_curves_find(&c, "train", "loss");
    assert_true(curve->count == 1 && curve->last == 4);
    pm_curves_free(&c);
    drop_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(curve_is_bounded),
        cmocka_unit_test(few_values_stay_as_they_are),
        cmocka_unit_test(sparse_steps),
        cmocka_unit_test(reads_what_is_new),
    };

    return cmocka_run_group_tests_name("curves", tests, NULL, NULL);
}
