/* JPEGs decoded at reduced size: the pixels of such pictures, and inputs made from them, compared
 * with the whole picture. */
#include "preprocessing_common.h"

/* The sides are no multiples of 8. Red rises from left to right, green from top to bottom. */
enum { HEIGHT = 605, WIDTH = 907, SIDE = 64, EXAMPLES = 60 };

static void gradient(uint8_t **file, size_t *size)
{
    struct pm_image8 im = { HEIGHT, WIDTH, 3, pm_malloc(HEIGHT * WIDTH * 3) };

    for (int i = 0; i < HEIGHT * WIDTH; i++) {
        im.pixels[3 * i] = (uint8_t)(255 * (i % WIDTH) / WIDTH);
        im.pixels[3 * i + 1] = (uint8_t)(255 * (i / WIDTH) / HEIGHT);
        im.pixels[3 * i + 2] = 128;
    }
    assert_int_equal(pm_image_encode_jpeg(&im, 95, file, size), PM_OK);
    pm_image_free(&im);
}

static struct pm_image8 small(const uint8_t *file, size_t size, int channels, int shrink)
{
    struct pm_image8 im;

    if (pm_image_decode_small(file, size, channels, 0, shrink, "gradient", &im) < 0)
        fail_msg("%s", pm_error_text());
    return im;
}

/* At 1/8 libjpeg uses the mean of each block only. That and the pixels of the whole picture are
 * rounded, so a pixel differs from the mean of 8x8 pixels by at most 1. */
static void eighth_is_the_mean(void **state)
{
    struct pm_image8 whole, eighth;
    uint8_t *file;
    size_t size;

    (void)state;
    gradient(&file, &size);
    whole = small(file, size, 1, 1);
    eighth = small(file, size, 1, 8);
    assert_int_equal(eighth.height, (HEIGHT + 7) / 8);
    assert_int_equal(eighth.width, (WIDTH + 7) / 8);
    for (int y = 0; y < HEIGHT / 8; y++)
        for (int x = 0; x < WIDTH / 8; x++) {
            double sum = 0;

            for (int i = 0; i < 64; i++)
                sum += whole.pixels[(8 * y + i / 8) * WIDTH + 8 * x + i % 8];
            const double have = eighth.pixels[y * eighth.width + x];
            if (!(fabs(have - sum / 64) <= 1))
                fail_msg("pixel %d, %d: %g, mean %g", y, x, have, sum / 64);
        }
    pm_image_free(&whole);
    pm_image_free(&eighth);
    pm_free(file);
}

static void other_formats_stay_whole(void **state)
{
    struct pm_image8 im = { 40, 50, 3, pm_calloc(40 * 50, 3) }, back;
    uint8_t *file;
    size_t size;

    (void)state;
    assert_int_equal(pm_image_encode_png(&im, &file, &size), PM_OK);
    back = small(file, size, 3, 8);
    assert_int_equal(back.height, 40);
    assert_int_equal(back.width, 50);
    pm_image_free(&im);
    pm_image_free(&back);
    pm_free(file);
}

/* factor: a unit of the input in levels of 0..255. */
static const struct {
    const char *name, *options, *list;
    float factor;
} cases[] = {
    { "vgg", "resize_side_min=64 resize_side_max=120", NULL, 1 },
    { "torch", "", NULL, 58.4f },
    { "torch", "",
      "[{\"name\": \"random_rotation90\"}, {\"name\": \"random_vertical_flip\"}, "
      "{\"name\": \"random_flip\"}, {\"name\": \"random_resized_crop\"}, {\"name\": \"resize\"}]",
      58.4f },
    { "inception", "", "[{\"name\": \"random_box_crop\"}, {\"name\": \"resize\"}]", 127.5f },
    { "ssd", "", "[{\"name\": \"ssd_random_crop\"}]", 127.5f },
};

/* Compares the inputs from the whole and from the shrunk picture; returns the shrink. A sample of
 * the shrunk picture lies up to 2 * shrink pixels away: half a block from the corner to the centre,
 * half a block from rounding the crop, and a block where a side is no multiple. The gradient has at
 * most 255 / HEIGHT levels in a pixel. Both pictures have rounded luma and colour: 3 levels. */
static int compare(const struct pm_placed *p, const uint8_t *file, size_t size, const char *name,
                   float factor)
{
    static float want[SIDE * SIDE * 3], have[SIDE * SIDE * 3];
    const int shrink = pm_placed_shrink(p);
    const double most = 2.0 * shrink * 255 / HEIGHT + 3;
    struct pm_image8 whole = small(file, size, 3, 1), less = small(file, size, 3, shrink);

    pm_placed_picture(p, &whole, want);
    pm_placed_picture(p, &less, have);
    for (int i = 0; i < SIDE * SIDE * 3; i++) {
        const double d = (double)factor * fabs((double)have[i] - (double)want[i]);

        if (!(shrink > 1 ? d <= most : d == 0))
            fail_msg("%s, 1/%d, value %d: %g levels off, at most %g", name, shrink, i, d, most);
    }
    pm_image_free(&whole);
    pm_image_free(&less);
    return shrink;
}

static void inputs_are_near(void **state)
{
    uint8_t *file;
    size_t size;

    (void)state;
    gradient(&file, &size);
    for (size_t k = 0; k < PM_COUNT(cases); k++) {
        struct config c = config(cases[k].name, cases[k].options);
        struct list l = { 0 };
        int seen[9] = { 0 };

        if (cases[k].list)
            l = open_list(cases[k].list);
        for (uint32_t i = 0; i < EXAMPLES; i++) {
            const struct pm_input input = { c.row, c.cfg, l.augment };
            const struct pm_image8 size_only = { HEIGHT, WIDTH, 3, NULL };
            const struct pm_sample sample = { .picture = &size_only };
            const struct pm_occasion o = { .height = SIDE, .width = SIDE, .channels = 3,
                                           .train = true, .seed = 3, .step = 1, .example = i,
                                           .where = "gradient" };
            struct pm_placed placed;

            if (pm_place(&input, &sample, &o, &placed) < 0)
                fail_msg("%s", pm_error_text());
            seen[compare(&placed, file, size, cases[k].name, cases[k].factor)]++;
        }
        assert_true(seen[2] + seen[4] + seen[8] >= EXAMPLES / 2);
        if (cases[k].list)
            close_list(&l);
        pm_arena_destroy(&c.arena);
    }
    pm_free(file);
}

/* Rows that change pixels before the resize see the whole picture. */
static void values_first_need_the_whole(void **state)
{
    static const char *const lists[] = {
        "[{\"name\": \"random_brightness\"}, {\"name\": \"resize\"}]",
        "[{\"name\": \"random_black_patches\"}, {\"name\": \"resize\"}]",
        "[{\"name\": \"crop_or_pad\"}]",
    };
    const struct pm_image8 size_only = { HEIGHT, WIDTH, 3, NULL };
    const struct pm_sample sample = { .picture = &size_only };
    const struct pm_occasion o = { .height = SIDE, .width = SIDE, .channels = 3, .train = true,
                                   .where = "gradient" };
    struct config c = config("inception", "");

    (void)state;
    for (size_t k = 0; k < PM_COUNT(lists); k++) {
        struct list l = open_list(lists[k]);
        const struct pm_input input = { c.row, c.cfg, l.augment };
        struct pm_placed placed;

        assert_int_equal(pm_place(&input, &sample, &o, &placed), PM_OK);
        assert_int_equal(pm_placed_shrink(&placed), 1);
        close_list(&l);
    }
    pm_arena_destroy(&c.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eighth_is_the_mean),
        cmocka_unit_test(other_formats_stay_whole),
        cmocka_unit_test(inputs_are_near),
        cmocka_unit_test(values_first_need_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
