/* Random values of inputs keep their range and pattern. */
#include "base/unit.h"

#include <pumice/kernel.h>
#include <pumice/rng.h>

enum { COUNT = 4000 };

static void ranges(void **state)
{
    struct pm_rng r = pm_rng_make(1, 2, 3, 4);
    float f[COUNT], least = 9, most = -9;
    int32_t label[COUNT], seen = 0;

    (void)state;
    pm_values_draw((struct pm_values){ .low = -2, .high = 3 }, PM_F32, COUNT, &r, f);
    pm_values_draw((struct pm_values){ .low = 4, .high = 6 }, PM_I32, COUNT, &r, label);
    for (int i = 0; i < COUNT; i++) {
        least = fminf(least, f[i]);
        most = fmaxf(most, f[i]);
        assert_in_range(label[i], 4, 6);
        seen |= 1 << label[i];
    }
    assert_true(least >= -2 && least < -1.9f && most <= 3 && most > 2.9f);
    assert_int_equal(seen, 1 << 4 | 1 << 5 | 1 << 6);
}

static void boxes(void **state)
{
    struct pm_rng r = pm_rng_make(1, 2, 3, 4);
    float f[COUNT];

    (void)state;
    pm_values_draw((struct pm_values){ .high = 1, .pattern = PM_PATTERN_BOXES }, PM_F32, COUNT, &r,
                   f);
    for (int i = 0; i < COUNT; i += 4) {
        assert_true(f[i] >= 0 && f[i] < f[i + 2] && f[i + 2] <= 1);
        assert_true(f[i + 1] >= 0 && f[i + 1] < f[i + 3] && f[i + 3] <= 1);
    }
}

static void chosen(void **state)
{
    struct pm_rng r = pm_rng_make(1, 2, 3, 4);
    int32_t index[COUNT];
    int some = 0;

    (void)state;
    pm_values_draw((struct pm_values){ .high = 7, .pattern = PM_PATTERN_CHOSEN }, PM_I32, COUNT,
                   &r, index);
    for (int i = 0; i < COUNT; i++) {
        assert_true(index[i] >= -1 && index[i] <= 7);
        some += index[i] >= 0;
    }
    assert_in_range(some, COUNT / 64, COUNT / 16); /* one of 32 is expected */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges),
        cmocka_unit_test(boxes),
        cmocka_unit_test(chosen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
