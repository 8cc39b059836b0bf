/* ssd and ssd_means compared with a reference in double precision that normalises first, like the
 * original, then resizes and pads. Coordinates are float32: src = dst * (in / out), or with aligned
 * corners dst * ((in - 1) / (out - 1)). Objects and frames follow the same sizes.
 *
 * Tolerance: OPS roundings of values up to 255, times the factor of the normalisation. */
#include "preprocessing_common.h"

struct sized {
    const char *options;
    int picture[2], input[2], want[2]; /* want: size after the resizer */
    bool aligned;
};

/* Sizes by the rules of the API's resizers, computed by hand. */
static const struct sized cases[] = {
    { "", { 37, 53 }, { 24, 32 }, { 24, 32 }, false },
    { "", { 12, 9 }, { 24, 32 }, { 24, 32 }, false },
    { "resizer=keep_aspect_ratio", { 37, 53 }, { 32, 32 }, { 22, 32 }, false },
    { "resizer=keep_aspect_ratio", { 53, 37 }, { 32, 32 }, { 32, 22 }, false },
    { "resizer=keep_aspect_ratio", { 8, 5 }, { 24, 32 }, { 24, 15 }, false },
    /* 20 / 37 makes 53 into 28.65, above 27; 27 / 53 makes 37 into 18.85. */
    { "resizer=keep_aspect_ratio min_dimension=20 max_dimension=27", { 37, 53 }, { 30, 30 },
      { 19, 27 }, false },
    { "resizer=keep_aspect_ratio min_dimension=20 max_dimension=40", { 37, 53 }, { 30, 30 },
      { 20, 29 }, false },
    /* Halves round to even: 5 * 0.5 is 2.5, 7 * 0.5 is 3.5. */
    { "resizer=keep_aspect_ratio min_dimension=2 max_dimension=8", { 4, 5 }, { 9, 9 }, { 2, 2 },
      false },
    { "resizer=keep_aspect_ratio min_dimension=2 max_dimension=8", { 7, 4 }, { 9, 9 }, { 4, 2 },
      false },
    /* In float32 53 * (30 / 53) is just below 30. */
    { "resizer=conditional size_threshold=30", { 37, 53 }, { 40, 40 }, { 20, 29 }, true },
    { "resizer=conditional size_threshold=30", { 30, 20 }, { 40, 40 }, { 30, 20 }, true },
    { "resizer=conditional condition=smaller size_threshold=30", { 20, 25 }, { 40, 40 },
      { 30, 37 }, true },
    { "resizer=conditional condition=smaller size_threshold=30", { 31, 37 }, { 40, 40 },
      { 31, 37 }, true },
    { "resizer=pad_to_multiple", { 17, 21 }, { 32, 32 }, { 17, 21 }, false },
};

static double pixel(const struct pm_image8 *im, bool half, int y, int x, int c)
{
    static const double means[3] = { 123.68, 116.779, 103.939 };
    const double v = im->pixels[(y * im->width + x) * 3 + c];

    return half ? v * 2 / 255 - 1 : v - means[c];
}

/* The two source elements and the weight of the second. */
static double taps(int i, int in, int out, bool aligned, int at[2])
{
    const float step = aligned ? out > 1 ? (float)(in - 1) / (float)(out - 1) : 0
                               : (float)in / (float)out;
    const float from = (float)i * step;

    at[0] = (int)from < in - 1 ? (int)from : in - 1;
    at[1] = at[0] + 1 < in ? at[0] + 1 : in - 1;
    return (double)from - at[0];
}

static double wanted(const struct sized *s, const struct pm_image8 *im, bool half, double pad,
                     int y, int x, int c)
{
    int v[2], u[2];

    if (y >= s->want[0] || x >= s->want[1])
        return pad;
    const double fy = taps(y, s->picture[0], s->want[0], s->aligned, v);
    const double fx = taps(x, s->picture[1], s->want[1], s->aligned, u);
    double sum = 0;

    for (int k = 0; k < 4; k++)
        sum += (k / 2 ? fy : 1 - fy) * (k % 2 ? fx : 1 - fx) *
               pixel(im, half, v[k / 2], u[k % 2], c);
    return sum;
}

static void fill(struct pm_image8 *im, unsigned seed)
{
    struct pm_rng r = pm_rng_make(seed, 1, 2, 3);

    im->pixels = pm_malloc((size_t)im->height * (size_t)im->width * 3);
    for (int i = 0; i < im->height * im->width * 3; i++)
        im->pixels[i] = (uint8_t)(pm_rng_u32(&r) >> 24);
}

static void values(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2 * PM_COUNT(cases); k++) {
        const struct sized *s = &cases[k / 2];
        const bool half = k % 2;
        struct config c = config(half ? "ssd" : "ssd_means", s->options);
        struct pm_image8 im = { s->picture[0], s->picture[1], 3, NULL };

        fill(&im, (unsigned)k);
        for (int train = 0; train < 2; train++) {
            const struct pm_draws none = { 0 };
            float *out = run(&c, &im, train, &none, s->input[0], s->input[1]);

            for (int i = 0; i < s->input[0] * s->input[1] * 3; i++) {
                const int y = i / 3 / s->input[1], x = i / 3 % s->input[1];
                const double want = wanted(s, &im, half, 0, y, x, i % 3);

                if (!(fabs(out[i] - want) <= OPS * ulp * 255 * (half ? 2.0 / 255 : 1)))
                    fail_msg("case %zu at %d, %d: %g, expected %g", k, y, x, (double)out[i], want);
                if (y >= s->want[0] || x >= s->want[1])
                    assert_true(out[i] == 0);
            }
            pm_free(out);
        }
        pm_image_free(&im);
        pm_arena_destroy(&c.arena);
    }
}

/* The padding has its own value after normalisation; colour pictures of a grey net turn grey. */
static void padding(void **state)
{
    struct config c = config("ssd", "resizer=keep_aspect_ratio pad_value=[0.5,-0.25,3]");
    struct config grey = config("ssd", "resizer=keep_aspect_ratio pad_value=0.5");
    struct pm_image8 im = { 20, 10, 3, NULL };
    static const float pad[3] = { 0.5f, -0.25f, 3 };

    (void)state;
    fill(&im, 9);
    float *out = run(&c, &im, false, NULL, 20, 20);
    for (int i = 0; i < 20 * 20 * 3; i++)
        if (i / 3 % 20 >= 10)
            assert_true(out[i] == pad[i % 3]);
    float *one = run_as(&grey, &im, false, NULL, 20, 20, 1);
    for (int i = 0; i < 20 * 20; i++) {
        const float *v = out + 3 * i;
        const double want = 0.2989 * v[0] + 0.5870 * v[1] + 0.1140 * v[2] - 0.0001;

        assert_true(i % 20 >= 10 ? one[i] == 0.5f : fabs(one[i] - want) < OPS * ulp * 2);
    }
    pm_free(one);
    pm_free(out);
    pm_image_free(&im);
    pm_arena_destroy(&grey.arena);
    pm_arena_destroy(&c.arena);
}

/* ssd_black and ssd_means_black differ from ssd and ssd_means only in the padding: it has the value
 * of a black pixel, also in the exported model, unless pad_value is given. The mean of a grey
 * picture is rounded at each of its five operations. */
static void black(void **state)
{
    static const struct { const char *name; float value[3], grey; } rows[] = {
        { "ssd_black", { -1, -1, -1 }, -1 },
        { "ssd_means_black", { -123.68f, -116.779f, -103.939f },
          -(float)(0.2989 * 123.68 + 0.5870 * 116.779 + 0.1140 * 103.939) },
    };
    struct pm_image8 im = { 20, 10, 3, NULL };

    (void)state;
    fill(&im, 5);
    for (size_t k = 0; k < PM_COUNT(rows); k++) {
        struct config c = config(rows[k].name, "resizer=keep_aspect_ratio");
        struct config like = config(k ? "ssd_means" : "ssd", "resizer=keep_aspect_ratio");
        struct config own = config(rows[k].name, "resizer=keep_aspect_ratio pad_value=0.5");
        struct pm_normal n;
        float *out = run(&c, &im, true, &(struct pm_draws){ 0 }, 20, 20);
        float *other = run(&like, &im, false, NULL, 20, 20);
        float *set = run(&own, &im, false, NULL, 20, 20);
        float *grey = run_as(&c, &im, false, NULL, 20, 20, 1);

        for (int i = 0; i < 20 * 20 * 3; i++) {
            const bool pad = i / 3 % 20 >= 10;

            assert_true(out[i] == (pad ? rows[k].value[i % 3] : other[i]));
            assert_true(set[i] == (pad ? 0.5f : other[i]));
            if (pad)
                assert_true(fabs(grey[i / 3] - (double)rows[k].grey) <= 5 * ulp * 128);
        }
        assert_int_equal(c.row->normal(c.cfg, 3, &n), PM_OK);
        for (int i = 0; i < 3; i++)
            assert_true(n.padded && n.pad[i] == 0);
        pm_free(grey);
        pm_free(set);
        pm_free(other);
        pm_free(out);
        pm_arena_destroy(&own.arena);
        pm_arena_destroy(&like.arena);
        pm_arena_destroy(&c.arena);
    }
    pm_image_free(&im);
}

/* Boxes, masks and keypoints go where the picture goes, in training with rows of the list before
 * the resizer; and evaluation's frame is the size after the resizer. */
static void objects(void **state)
{
    (void)state;
    for (size_t k = 0; k < PM_COUNT(cases); k++) {
        const struct sized *s = &cases[k];
        struct config c = config("ssd", s->options);
        const float box[4] = { 0, 0.25f, 0.5f, 1 }, point[2] = { 0.75f, 0.5f };
        struct pm_image8 im = { s->picture[0], s->picture[1], 3, NULL };
        uint8_t *mask = pm_malloc((size_t)(im.height * im.width));
        const struct pm_sample sample = { .picture = &im, .objects = 1, .boxes = box,
                                          .masks = mask, .keypoints = point, .points = 1 };
        const struct pm_occasion o = { .height = s->input[0], .width = s->input[1], .channels = 3,
                                       .where = "x" };
        const struct pm_input input = { c.row, c.cfg, NULL };
        const double down = (double)s->want[0] / s->input[0];
        const double right = (double)s->want[1] / s->input[1];
        struct pm_framing frame;
        struct pm_placed placed;
        struct pm_sample out;

        memset(mask, 1, (size_t)(im.height * im.width));
        assert_int_equal(pm_place(&input, &sample, &o, &placed), PM_OK);
        pm_placed_objects(&placed, &sample, c.arena, &out);
        assert_true(out.boxes[0] == 0 && fabs(out.boxes[1] - 0.25 * right) < 1e-6);
        assert_true(fabs(out.boxes[2] - 0.5 * down) < 1e-6 && fabs(out.boxes[3] - right) < 1e-6);
        assert_true(fabs(out.keypoints[0] - 0.75 * down) < 1e-6);
        assert_true(fabs(out.keypoints[1] - 0.5 * right) < 1e-6);
        for (int i = 0; i < s->input[0] * s->input[1]; i++)
            assert_int_equal(out.masks[i],
                             i / s->input[1] < s->want[0] && i % s->input[1] < s->want[1]);
        assert_int_equal(pm_preprocessing_frame(c.row, c.cfg, im.height, im.width, s->input[0],
                                                s->input[1], false, "x", &frame), PM_OK);
        assert_int_equal(frame.height, s->want[0]);
        assert_int_equal(frame.width, s->want[1]);
        pm_free(mask);
        pm_arena_destroy(&c.arena);
    }
}

/* With eval.resize=false the input has the picture's own size, after the resizer. */
static void own_sizes(void **state)
{
    static const struct {
        const char *options;
        int want[2];
    } list[] = {
        { "", { 37, 53 } },
        { "resizer=keep_aspect_ratio", { 37, 53 } },
        { "resizer=keep_aspect_ratio min_dimension=20 max_dimension=27", { 19, 27 } },
        { "resizer=conditional size_threshold=30", { 20, 29 } },
        { "resizer=pad_to_multiple multiple=16", { 48, 64 } },
    };
    struct pm_image8 im = { 37, 53, 3, NULL };

    (void)state;
    fill(&im, 4);
    for (size_t k = 0; k < PM_COUNT(list); k++) {
        struct config c = config("ssd", list[k].options);
        struct pm_placed placed;
        struct pm_frame own;

        assert_int_equal(pm_preprocessing_own_size(c.row, c.cfg, 37, 53, "x", &own), PM_OK);
        assert_int_equal(own.height, list[k].want[0]);
        assert_int_equal(own.width, list[k].want[1]);
        const struct pm_occasion o = { .height = own.height, .width = own.width, .channels = 3,
                                       .own_size = true, .where = "x" };
        float *out = pm_malloc((size_t)(own.height * own.width * 3) * sizeof *out);
        assert_int_equal(pm_place_with(c.row, c.cfg, NULL, &im, &o, &placed), PM_OK);
        pm_placed_picture(&placed, &im, out);
        if (own.height >= 37)
            for (int i = 0; i < 37 * 53 * 3; i++)
                assert_true(fabs(out[(i / 159 * own.width * 3) + i % 159] -
                                 (im.pixels[i] * 2 / 255.0 - 1)) < 1e-6);
        pm_free(out);
        pm_arena_destroy(&c.arena);
    }
    pm_image_free(&im);
}

/* Training draws the smaller side of a list, evenly and by seed, step and example only. Evaluation
 * takes the largest, and so does the description of an exported model. */
static void drawn_sizes(void **state)
{
    enum { DRAWS = 600 };
    static const int sides[3] = { 10, 16, 12 };
    struct config c = config("ssd_black", "resizer=keep_aspect_ratio min_dimensions=[10,16,12] "
                                          "max_dimension=24");
    struct pm_image8 im = { 20, 25, 3, NULL };
    const struct pm_sample sample = { .picture = &im };
    const struct pm_input input = { c.row, c.cfg, NULL };
    struct pm_framing frame;
    struct pm_placed first, second;
    struct pm_normal n;
    int seen[3] = { 0 };

    (void)state;
    fill(&im, 4);
    for (uint32_t i = 0; i < DRAWS; i++) {
        const struct pm_occasion o = { .height = 24, .width = 24, .channels = 3, .train = true,
                                       .seed = 3, .step = i / 4, .example = i % 4, .where = "x" };
        int k = 0;

        assert_int_equal(pm_place(&input, &sample, &o, &first), PM_OK);
        assert_int_equal(pm_place(&input, &sample, &o, &second), PM_OK);
        assert_int_equal(first.geometry.move[0].height, second.geometry.move[0].height);
        while (k < 3 && sides[k] != first.geometry.move[0].height)
            k++;
        assert_in_range(k, 0, 2);
        assert_int_equal(first.geometry.move[0].width, sides[k] * 25 / 20); /* 12.5 is even: 12 */
        seen[k]++;
    }
    /* Five standard deviations of a count of DRAWS / 3. */
    for (int k = 0; k < 3; k++)
        assert_true(fabs(seen[k] - DRAWS / 3.0) < 5 * sqrt(DRAWS * 2.0 / 9));
    assert_int_equal(pm_preprocessing_frame(c.row, c.cfg, 20, 25, 24, 24, false, "x", &frame),
                     PM_OK);
    assert_int_equal(frame.height, 16);
    assert_int_equal(frame.width, 20);
    assert_int_equal(c.row->normal(c.cfg, 3, &n), PM_OK);
    assert_int_equal(n.range.min, 16);
    pm_image_free(&im);
    pm_arena_destroy(&c.arena);
}

static void refusals(void **state)
{
    static const char *const wrong[][2] = {
        { "max_dimension=30", "only with input.min_dimension or input.min_dimensions: set" },
        { "resizer=keep_aspect_ratio min_dimension=40 max_dimension=30", "40 is above" },
        { "min_dimension=40", "input.resizer=keep_aspect_ratio" },
        { "min_dimensions=[40]", "input.min_dimensions: 40 has an effect only with" },
        { "resizer=keep_aspect_ratio min_dimensions=[20,40] max_dimension=30", "40 is above" },
        { "resizer=keep_aspect_ratio min_dimensions=[20,40] min_dimension=20", "one of the keys" },
        { "resizer=conditional resize_method=area", "bilinear only" },
        { "pad_value=[1,2]", "input.pad_value: 2 numbers" },
    };
    struct pm_image8 im = { 37, 53, 3, NULL };
    float one[3];

    (void)state;
    fill(&im, 4);
    for (size_t k = 0; k < PM_COUNT(wrong); k++) {
        struct config c = config("ssd", wrong[k][0]);
        struct pm_normal n;

        assert_fails(c.row->normal(c.cfg, 3, &n), PM_ECONFIG, wrong[k][1]);
        pm_arena_destroy(&c.arena);
    }
    struct config c = config("ssd_means", "resizer=pad_to_multiple");
    assert_fails(place_picture(c.row, c.cfg, &im, false, NULL, 32, 64, 3, one, "a.jpg"), PM_EDATA,
                 "a.jpg", "37 x 53", "32 x 64", "input.size");
    pm_image_free(&im);
    pm_arena_destroy(&c.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),    cmocka_unit_test(padding),
        cmocka_unit_test(black),     cmocka_unit_test(objects),
        cmocka_unit_test(own_sizes), cmocka_unit_test(drawn_sizes),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
