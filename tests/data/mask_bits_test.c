/* Masks are packed bit by bit: every width around a word, patterns whose words are empty, full and
 * mixed, bytes other than 1. */
#include "base/unit.h"
#include "data/mask_bits.h"

#include <pumice/rng.h>
#include <string.h>

enum { HEIGHT = 5, MOST = 131, WORDS = (MOST + 31) / 32 };

static void compare(const uint8_t *mask, int width)
{
    const int words = pm_mask_words(width);
    uint32_t out[HEIGHT * WORDS + 1];
    bool any = false;

    memset(out, 0xa5, sizeof out);
    const bool found = pm_mask_pack(mask, HEIGHT, width, out);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < 32 * words; x++) {
            const bool want = x < width && mask[y * width + x];

            any |= want;
            if ((out[y * words + x / 32] >> x % 32 & 1) != want)
                fail_msg("width %d: bit %d of row %d is wrong", width, x, y);
        }
    assert_int_equal(found, any);
    assert_int_equal(out[HEIGHT * words], 0xa5a5a5a5);
}

static void every_width(void **state)
{
    struct pm_rng r = pm_rng_make(1, 2, 3, 4);
    uint8_t mask[HEIGHT * MOST];

    (void)state;
    for (int width = 1; width <= MOST; width++)
        for (int often = 0; often <= 8; often++) {
            for (int i = 0; i < HEIGHT * width; i++)
                mask[i] = pm_rng_int(&r, 1, 8) <= often ? (uint8_t)pm_rng_int(&r, 1, 255) : 0;
            compare(mask, width);
        }
}

/* One pixel, at each place. */
static void one_pixel(void **state)
{
    static const int widths[] = { 1, 31, 32, 33, 64, 65 };

    (void)state;
    for (size_t k = 0; k < PM_COUNT(widths); k++)
        for (int i = 0; i < HEIGHT * widths[k]; i++) {
            uint8_t mask[HEIGHT * MOST] = { 0 };

            mask[i] = 128;
            compare(mask, widths[k]);
        }
}

static void words(void **state)
{
    (void)state;
    assert_int_equal(pm_mask_words(1), 1);
    assert_int_equal(pm_mask_words(32), 1);
    assert_int_equal(pm_mask_words(33), 2);
    assert_int_equal(pm_mask_words(1333), 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_width), cmocka_unit_test(one_pixel), cmocka_unit_test(words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
