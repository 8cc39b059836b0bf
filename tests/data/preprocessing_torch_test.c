/* torch: pictures prepared like torchvision's (tests/golden/torch_preprocessing.py), bit for bit
 * before mean and deviation; the distribution of random numbers; and mistakes. */
#include "preprocessing_common.h"

static struct pm_image8 picture(int height, int width)
{
    struct pm_image8 im = { height, width, 3, pm_malloc((size_t)height * (size_t)width * 3) };

    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++)
                im.pixels[(y * width + x) * 3 + c] =
                    (uint8_t)(31 * y * y + 17 * x * y + 7 * x + 53 * c);
    return im;
}

static int item(const cJSON *row, const char *list, int i)
{
    return cJSON_GetArrayItem(cJSON_GetObjectItem(row, list), i)->valueint;
}

static void compare(const cJSON *row, bool flip)
{
    static const float mean[] = { 0.485f, 0.456f, 0.406f }, std[] = { 0.229f, 0.224f, 0.225f };
    const bool train = cJSON_HasObjectItem(row, "box");
    const int height = item(row, "input", 0), width = item(row, "input", 1);
    struct pm_image8 im = picture(item(row, "picture", 0), item(row, "picture", 1));
    const cJSON *side = cJSON_GetObjectItem(row, "side"), *v;
    char text[64];

    snprintf(text, sizeof text, "resize_side=%d", side ? side->valueint : 0);
    struct config c = config("torch", text);
    struct pm_draws d = { .flip = flip };
    for (int i = 0; train && i < 4; i++)
        d.box[i] = item(row, "box", i);
    float *out = run(&c, &im, train, &d, height, width);
    int i = 0;
    cJSON_ArrayForEach(v, cJSON_GetObjectItem(row, "values"))
    {
        const int k = i % 3, x = i / 3 % width, y = i / 3 / width;
        const float want = ((float)v->valueint / 255 - mean[k]) / std[k];
        const float have = out[(y * width + (flip && train ? width - 1 - x : x)) * 3 + k];
        if (have != want)
            fail_msg("%s: value %d is %.9g, not %.9g", text, i, (double)have, (double)want);
        i++;
    }
    assert_int_equal(i, height * width * 3);
    pm_free(out);
    pm_image_free(&im);
    pm_arena_destroy(&c.arena);
}

static void as_torchvision(void **state)
{
    cJSON *all = golden_file("torch_preprocessing.json"), *row;
    (void)state;

    assert_int_equal(cJSON_GetArraySize(all), 8);
    cJSON_ArrayForEach(row, all)
    {
        compare(row, false);
        compare(row, true);
    }
    cJSON_Delete(all);
}

/* A side of 0 selects the size that torchvision's weights use for 224 and 299. */
static void sides(void **state)
{
    static const struct {
        int input;
        const char *side;
    } rows[] = { { 224, "256" }, { 299, "342" } };
    struct pm_image8 im = picture(50, 90);
    char text[64];
    (void)state;

    for (size_t i = 0; i < PM_COUNT(rows); i++) {
        const int n = rows[i].input;
        struct config open = config("torch", "");
        snprintf(text, sizeof text, "resize_side=%s", rows[i].side);
        struct config named = config("torch", text);
        float *a = run(&open, &im, false, NULL, n, n), *b = run(&named, &im, false, NULL, n, n);
        assert_memory_equal(a, b, (size_t)n * (size_t)n * 3 * sizeof *a);
        pm_free(a);
        pm_free(b);
        pm_arena_destroy(&open.arena);
        pm_arena_destroy(&named.arena);
    }
    pm_image_free(&im);
}

/* One number for all channels, and pictures converted to grey. */
static void lists(void **state)
{
    struct pm_image8 im = picture(20, 20);
    struct config c = config("torch", "resize_side=20 mean=0.5 std=0.25");
    (void)state;

    float *out = run_as(&c, &im, false, NULL, 20, 20, 1);
    for (int i = 0; i < 400; i++) {
        const uint8_t *p = im.pixels + 3 * i;
        const double grey = (0.2989 * p[0] + 0.5870 * p[1] + 0.1140 * p[2]) / 255;
        assert_true(fabs((double)out[i] - (grey - 0.5) / 0.25) < OPS * ulp * 4);
    }
    pm_free(out);
    pm_arena_destroy(&c.arena);
    c = config("torch", "resize_side=20");
    float room[400];
    assert_int_equal(place_picture(c.row, c.cfg, &im, false, NULL, 20, 20, 1, room, "p"),
                     PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "3 numbers for images of 1 channels"));
    pm_arena_destroy(&c.arena);
    c = config("torch", "resize_side=19");
    float more[1200];
    assert_int_equal(place_picture(c.row, c.cfg, &im, false, NULL, 20, 20, 3, more, "p.png"),
                     PM_EDATA);
    assert_non_null(strstr(pm_error_text(), "set resize_side to at least 20"));
    pm_arena_destroy(&c.arena);
    pm_image_free(&im);
}

/* Boxes lie inside the picture, their areas and shapes in the ranges; half of the pictures are
 * flipped. */
static void draws(void **state)
{
    enum { DRAWS = 2000 };
    struct config c = config("torch", "area_min=0.2 area_max=0.6");
    const struct pm_scene s = { .height = 120, .width = 90 };
    int flips = 0, first = 0;
    (void)state;

    for (int i = 0; i < DRAWS; i++) {
        struct pm_rng r = pm_rng_make(5, 7, 0, (uint32_t)i);
        struct pm_draws d;
        c.row->draw(c.cfg, &r, &s, &d);
        const double area = (double)d.box[2] * d.box[3] / (120 * 90);
        const double shape = (double)d.box[3] / d.box[2];
        assert_true(d.box[0] >= 0 && d.box[1] >= 0);
        assert_true(d.box[0] + d.box[2] <= 120 && d.box[1] + d.box[3] <= 90);
        assert_true(area > 0.19 && area < 0.61 && shape > 0.73 && shape < 1.37);
        flips += d.flip;
        first += d.box[0] == 0;
    }
    assert_true(abs(flips - DRAWS / 2) < 4 * 23); /* four standard deviations */
    assert_true(first > 0 && first < DRAWS / 4);
    pm_arena_destroy(&c.arena);
    /* No such box fits: the middle is used, cut to the widest shape. */
    c = config("torch", "area_min=1 aspect_min=0.9 aspect_max=1.1");
    struct pm_rng r = pm_rng_make(5, 7, 0, 0);
    struct pm_draws d;
    c.row->draw(c.cfg, &r, &(struct pm_scene){ .height = 100, .width = 300 }, &d);
    assert_int_equal(d.box[0], 0);
    assert_int_equal(d.box[1], 95);
    assert_int_equal(d.box[2], 100);
    assert_int_equal(d.box[3], 110);
    pm_arena_destroy(&c.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_torchvision),
        cmocka_unit_test(sides),
        cmocka_unit_test(lists),
        cmocka_unit_test(draws),
    };

    return cmocka_run_group_tests_name("preprocessing_torch", tests, NULL, NULL);
}
