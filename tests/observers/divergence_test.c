/* The warnings of a training that diverges or learns nothing: at which step, at which losses, once
 * in a run, and at the same step when the run resumes at any step. */
#include "observers/divergence.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { LONG = 2000, DUE = 200 }; /* steps of a run; a tenth of them */

/* Takes a step; factor: as in pm_divergence_step. */
static void step(struct pm_divergence *d, int number, int steps, double factor, double loss)
{
    struct pm_loss_part parts[] = { { "aux_loss", 50 }, { "loss", loss } };

    pm_divergence_step(d, (uint64_t)number, steps, factor, &(struct pm_step_result){
        .loss = 50 + loss, .parts = parts, .part_count = 2 });
}

/* Returns the step of the warning; 0: none. before, after: the loss in the first and in the second
 * half of the tenth. */
static int warned_at(double uniform, double warmup, int steps, double factor, double before,
                     double after)
{
    struct pm_divergence d;
    const double due = fmax(fmax(steps / 10, 100), 2 * warmup);

    pm_divergence_start(&d, uniform, warmup);
    for (int i = 1; i <= LONG; i++) {
        step(&d, i, steps, factor, i <= due / 2 ? before : after);
        if (d.now.warned)
            return i;
    }
    return 0;
}

static void learns_nothing(void **state)
{
    const double u = log(10);

    (void)state;
    assert_int_equal(warned_at(u, 0, LONG, 1, 1, u + 0.01), DUE);
    assert_int_equal(warned_at(u, 0, LONG, 1, 9, u - 0.01), 0); /* the start does not count */
    assert_int_equal(warned_at(u, 0, 300, 1, 1, 3), 100);       /* at least 100 steps */
    assert_int_equal(warned_at(u, 0, 100, 1, 1, 3), 0);         /* too short */
    assert_int_equal(warned_at(u, 0, 0, 1, 1, 3), 0);           /* without an end */
    assert_int_equal(warned_at(u, 400, LONG, 1, 1, 3), 800);    /* after the warm-up */
    assert_int_equal(warned_at(u, LONG, LONG, 1, 1, 3), 0);
    assert_int_equal(warned_at(u, 0, LONG, 2, 1, 3), 0);        /* sums of two clones */
    assert_int_equal(warned_at(u, 0, LONG, 2, 1, 5), DUE);
    assert_int_equal(warned_at(NAN, 0, LONG, 1, 1, 3), 0);
    assert_int_equal(warned_at(0, 0, LONG, 1, 1, 3), 0); /* one class */
}

static void diverges(void **state)
{
    static const struct { double first, later; bool warns; } table[] = {
        { 2, 1999, false }, { 2, 2001, true }, { 0.01, 900, false }, { 0.01, 1001, true },
        { 0, 1e9, false },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(table); i++) {
        struct pm_divergence d;

        pm_divergence_start(&d, NAN, 0);
        for (int k = 1; k <= 5; k++)
            pm_divergence_step(&d, (uint64_t)k, 0, 1, &(struct pm_step_result){
                .loss = k == 4 ? table[i].later : table[i].first });
        assert_true(d.now.warned == table[i].warns);
    }
}

/* A run that begins at a later step, without the sums of the earlier ones, knows no start. */
static void without_a_start(void **state)
{
    struct pm_divergence d;

    (void)state;
    pm_divergence_start(&d, NAN, 0);
    pm_divergence_read(&d, NULL);
    pm_divergence_restore(&d);
    for (int k = 7; k <= 9; k++)
        pm_divergence_step(&d, (uint64_t)k, 0, 1, &(struct pm_step_result){
            .loss = k == 8 ? 1e9 : 1 });
    assert_false(d.now.warned);
}

static double loss_of(int i)
{
    return 2.3 + 0.1 * sin(i);
}

/* Saved at every step and read again, the warning comes at the same step, from the same sum. */
static void resumed(void **state)
{
    struct pm_divergence whole, parts;

    (void)state;
    pm_divergence_start(&whole, 2.3, 0);
    pm_divergence_start(&parts, 2.3, 0);
    for (int i = 1; i <= 2 * DUE; i++) {
        struct pm_str text = { 0 };

        step(&whole, i, LONG, 1, loss_of(i));
        step(&parts, i, LONG, 1, loss_of(i));
        assert_memory_equal(&whole.now.sum, &parts.now.sum, sizeof whole.now.sum);
        assert_true(whole.now.count == parts.now.count);
        assert_true(whole.now.warned == parts.now.warned);
        pm_divergence_keep(&parts);
        step(&parts, i + 1, LONG, 1, 9); /* lost */
        pm_divergence_print(&parts, &text);
        cJSON *json = cJSON_Parse(text.text);
        pm_divergence_start(&parts, 2.3, 0);
        pm_divergence_read(&parts, json);
        pm_divergence_restore(&parts);
        cJSON_Delete(json);
        pm_str_free(&text);
    }
}

/* Damaged values are zeros. */
static void damaged(void **state)
{
    cJSON *json = cJSON_Parse("{ \"first\": \"x\", \"sum\": null, \"count\": -3, \"warned\": 1 }");
    struct pm_divergence d;

    (void)state;
    pm_divergence_start(&d, 2.3, 0);
    pm_divergence_read(&d, json);
    pm_divergence_restore(&d);
    assert_true(d.now.first == 0 && d.now.sum == 0 && d.now.count == 0 && !d.now.warned);
    cJSON_Delete(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learns_nothing),
        cmocka_unit_test(diverges),
        cmocka_unit_test(without_a_start),
        cmocka_unit_test(resumed),
        cmocka_unit_test(damaged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
