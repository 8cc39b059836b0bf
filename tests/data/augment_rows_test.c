/* Rows that change pixel values, objects or sizes, compared with references in double precision and
 * with what their draws say. */
#include "augment_world.h"

enum { N = HEIGHT * WIDTH * 3 };

/* Random pixels; the rows run without the preprocessing, in 0..255. */
static void random_pixels(struct scene *s, uint32_t seed)
{
    struct pm_rng r = pm_rng_make(seed, 8, 8, 8);

    for (int i = 0; i < N; i++)
        s->pixels[i] = (uint8_t)(pm_rng_u32(&r) >> 24);
}

/* Values in 0..255 after the list, from the padded input in -1..1. */
static void values_of(const struct scene *s, double *out)
{
    static float picture[9 * N];

    pm_placed_picture(&s->placed, &s->im, picture);
    for (int i = 0; i < N; i++)
        out[i] = ((double)picture[(i / (3 * WIDTH) * 9 * WIDTH) + i % (3 * WIDTH)] + 1) * 127.5;
}

/* ---- colours --------------------------------------------------------------------------------- */

static double clip(double v)
{
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

/* Hue in turns, saturation, value: the six-sector form. */
static void recolour(double *p, double saturation, double turn)
{
    const double hi = fmax(p[0], fmax(p[1], p[2])), lo = fmin(p[0], fmin(p[1], p[2]));
    const double range = hi - lo;
    double hue = 0;

    if (range > 0)
        hue = hi == p[0] ? (p[1] - p[2]) / range
              : hi == p[1] ? 2 + (p[2] - p[0]) / range : 4 + (p[0] - p[1]) / range;
    hue = hue / 6 + 1 + turn;
    hue = 6 * (hue - floor(hue));
    const double sat = clip((hi > 0 ? range / hi : 0) * saturation), f = hue - floor(hue);
    const double low = hi * (1 - sat), down = hi * (1 - sat * f), up = hi * (1 - sat * (1 - f));
    const double out[6][3] = { { hi, up, low }, { down, hi, low }, { low, hi, up },
                               { low, down, hi }, { up, low, hi }, { hi, low, down } };
    memcpy(p, out[(int)hue % 6], sizeof out[0]);
}

static void distortion(double *x, char what, const struct pm_draws *d)
{
    for (int c = 0; what == 'c' && c < 3; c++) {
        double mean = 0;

        for (int i = c; i < N; i += 3)
            mean += x[i] / (HEIGHT * WIDTH);
        for (int i = c; i < N; i += 3)
            x[i] = (x[i] - mean) * (0.5 + d->contrast) + mean;
    }
    for (int i = 0; what == 'b' && i < N; i++)
        x[i] += (2 * d->brightness - 1) * 32 / 255;
    for (int i = 0; i < N; i += 3) {
        if (what == 's')
            recolour(x + i, 0.5 + d->saturation, 0);
        if (what == 'h')
            recolour(x + i, 1, 0.4 * d->hue - 0.2);
    }
    for (int i = 0; i < N; i++)
        x[i] = clip(x[i]);
}

static void distort_color(void **state)
{
    static double have[N], want[N];

    (void)state;
    for (int order = 0; order < 2; order++) {
        struct scene s;
        char list[80];

        snprintf(list, sizeof list,
                 "[{\"name\": \"random_distort_color\", \"color_ordering\": %d}]", order);
        open_scene(&s, list);
        for (uint32_t i = 0; i < 40; i++) {
            random_pixels(&s, i);
            place_scene(&s, i);
            values_of(&s, have);
            for (int k = 0; k < N; k++)
                want[k] = s.pixels[k] / 255.0;
            for (const char *what = order ? "bcsh" : "bshc"; *what; what++)
                distortion(want, *what, &s.placed.rows.draws[0]);
            for (int k = 0; k < N; k++)
                if (!(fabs(have[k] - 255 * want[k]) < 1e-2))
                    fail_msg("order %d, value %d: %g, expected %g", order, k, have[k],
                             255 * want[k]);
        }
        close_scene(&s);
    }
}

/* ---- other values ---------------------------------------------------------------------------- */

static void pixel_scale(void **state)
{
    static double have[N], again[N];
    double sum = 0, least = 2, most = 0;
    struct scene s;

    (void)state;
    open_scene(&s, "[{\"name\": \"random_pixel_value_scale\", \"maxval\": 1.2}]");
    memset(s.pixels, 100, sizeof s.pixels);
    place_scene(&s, 1);
    values_of(&s, have);
    values_of(&s, again);
    assert_memory_equal(have, again, sizeof have);
    for (int i = 0; i < N; i++) {
        sum += have[i] / 100;
        least = fmin(least, have[i] / 100);
        most = fmax(most, have[i] / 100);
    }
    assert_true(least >= 0.9 - 1e-5 && least < 0.905 && most <= 1.2 + 1e-5 && most > 1.195);
    assert_true(fabs(sum / N - 1.05) < 4 * 0.3 / sqrt(12.0 * N));
    place_scene(&s, 2);
    values_of(&s, again);
    assert_true(memcmp(have, again, sizeof have) != 0);
    close_scene(&s);
}

static void gamma_and_jpeg(void **state)
{
    static double have[N];
    double errors[2] = { 0 };
    struct scene s;

    (void)state;
    open_scene(&s, "[{\"name\": \"adjust_gamma\", \"gamma\": 1.7, \"gain\": 0.8}]");
    random_pixels(&s, 3);
    place_scene(&s, 1);
    values_of(&s, have);
    for (int i = 0; i < N; i++)
        assert_true(fabs(have[i] - 255 * 0.8 * pow(s.pixels[i] / 255.0, 1.7)) < 1e-3);
    close_scene(&s);
    for (int k = 0; k < 2; k++) {
        open_scene(&s, k ? "[{\"name\": \"random_jpeg_quality\", \"max_jpeg_quality\": 10}]"
                         : "[{\"name\": \"random_jpeg_quality\", \"min_jpeg_quality\": 100}]");
        place_scene(&s, 1);
        values_of(&s, have);
        for (int i = 0; i < N; i++)
            errors[k] += fabs(have[i] - s.pixels[i]) / N;
        close_scene(&s);
    }
    assert_true(errors[0] < 2 && errors[1] > errors[0] && errors[1] < 40);
    open_scene(&s, "[{\"name\": \"random_jpeg_quality\", \"random_coef\": 1}]");
    place_scene(&s, 1);
    values_of(&s, have);
    for (int i = 0; i < N; i++)
        assert_true(fabs(have[i] - s.pixels[i]) < 1e-4);
    close_scene(&s);
}

static void patches(void **state)
{
    static double have[N];
    struct scene s;
    int black = 0;

    (void)state;
    open_scene(&s, "[{\"name\": \"random_black_patches\", \"max_black_patches\": 3,"
                   " \"size_to_image_ratio\": 0.2}]");
    memset(s.pixels, 100, sizeof s.pixels);
    for (uint32_t i = 0; i < 200; i++) {
        int count = 0;

        place_scene(&s, i);
        values_of(&s, have);
        for (int k = 0; k < N; k += 3) {
            assert_true(fabs(have[k]) < 1e-4 || fabs(have[k] - 100) < 1e-4);
            count += have[k] < 50;
        }
        assert_true(count <= 3 * 12 * 12);
        assert_true(count == 0 || count >= 12 * 12);
        black += count;
    }
    /* 1.5 squares of 144 pixels in the mean, less what overlaps. */
    assert_in_range(black, 200 * 170, 200 * 245);
    close_scene(&s);
    open_scene(&s, "[{\"name\": \"random_patch_gaussian\", \"min_patch_size\": 20,"
                   " \"max_patch_size\": 21, \"min_gaussian_stddev\": 0.05,"
                   " \"max_gaussian_stddev\": 0.05}]");
    memset(s.pixels, 100, sizeof s.pixels);
    for (uint32_t i = 0; i < 50; i++) {
        double sum = 0;
        int count = 0;

        place_scene(&s, i);
        values_of(&s, have);
        const int *w = s.placed.rows.draws[0].window;
        for (int k = 0; k < N; k++) {
            const int y = k / 3 / WIDTH - w[0], x = k / 3 % WIDTH - w[1];

            if (y < 0 || x < 0 || y >= 20 || x >= 20) {
                assert_true(fabs(have[k] - 100) < 1e-4);
                continue;
            }
            sum += (have[k] - 100) * (have[k] - 100);
            count++;
        }
        assert_int_equal(w[2], 20);
        /* The deviation of n normal numbers has itself one of sigma / sqrt(2 n). */
        assert_true(count >= 300);
        assert_true(fabs(sqrt(sum / count) - 12.75) < 5 * 12.75 / sqrt(2.0 * count));
    }
    close_scene(&s);
}

/* ---- objects --------------------------------------------------------------------------------- */

static void jitter(void **state)
{
    static const struct {
        const char *mode;
        double least, most; /* growth of a side, in units of the ratio */
        bool symmetric, both;
    } modes[] = {
        { "default", -1, 1, false, false },         { "expand", 0, 1, false, false },
        { "shrink", -1, 0, false, false },          { "expand_symmetric", 0, 1, true, false },
        { "shrink_symmetric", -1, 0, true, false }, { "expand_symmetric_xy", 0, 1, true, true },
        { "shrink_symmetric_xy", -1, 0, true, true },
    };

    (void)state;
    for (size_t m = 0; m < PM_COUNT(modes); m++) {
        double low = 1, high = -1;
        struct scene s;
        char list[120];

        snprintf(list, sizeof list,
                 "[{\"name\": \"random_jitter_boxes\", \"ratio\": 0.2, \"jitter_mode\": \"%s\"}]",
                 modes[m].mode);
        open_scene(&s, list);
        for (uint32_t i = 0; i < 200; i++) {
            place_objects(&s, 2, 3, i);
            for (size_t k = 0; k < 3; k++) {
                const float *was = s.boxes + 4 * k, *is = s.out.boxes + 4 * k;
                double grown[4];

                for (int n = 0; n < 4; n++) { /* growth of each end's half */
                    const double half = ((double)was[n % 2 + 2] - (double)was[n % 2]) / 2;
                    const double by = (3 * (double)is[n] - (double)was[n]) / half / 0.2;

                    grown[n] = n < 2 ? -by : by;
                    assert_true(is[n] >= 0 && 3 * is[n] <= 1 + 1e-6f);
                    if (is[n] > 0 && 3 * is[n] < 1 - 1e-6f)
                        low = fmin(low, grown[n]), high = fmax(high, grown[n]);
                }
                if (modes[m].symmetric)
                    assert_true(fabs(grown[0] - grown[2]) < 1e-3 &&
                                fabs(grown[1] - grown[3]) < 1e-3);
                if (modes[m].both)
                    assert_true(fabs(grown[0] - grown[1]) < 1e-3);
            }
        }
        assert_true(low >= modes[m].least - 1e-3 && high <= modes[m].most + 1e-3);
        assert_true(high - low > 0.9 * (modes[m].most - modes[m].least));
        close_scene(&s);
    }
}

static void labels(void **state)
{
    struct scene s;
    int dropped = 0;

    (void)state;
    open_scene(&s, "[{\"name\": \"remap_labels\", \"original_labels\": [1, 3], \"new_label\": 7},"
                   " {\"name\": \"drop_label_probabilistically\", \"label\": 2,"
                   " \"drop_probability\": 0.4},"
                   " {\"name\": \"convert_class_logits_to_softmax\", \"temperature\": 2}]");
    for (uint32_t i = 0; i < 1000; i++) {
        place_objects(&s, 2, 4, i);
        dropped += s.out.objects == 3;
        for (size_t k = 0; k < s.out.objects; k++) {
            static const int32_t want[4] = { 7, 2, 7, 4 };
            const size_t from = s.out.from[k];
            const float *x = s.scores + SCORES * from, *y = s.out.scores + SCORES * k;
            const double a = exp((double)x[0] / 2), b = exp((double)x[1] / 2);

            assert_int_equal(s.out.labels[k], want[from]);
            assert_true(fabs((double)y[0] - a / (a + b)) < 1e-6);
            assert_true(fabs((double)y[1] - b / (a + b)) < 1e-6);
        }
        if (s.out.objects == 3)
            assert_true(s.out.from[0] == 0 && s.out.from[1] == 2 && s.out.from[2] == 3);
    }
    assert_true(fabs(dropped - 400.0) < 4 * sqrt(240));
    close_scene(&s);
}

/* The visible share counts all crops before: half of a half is a quarter. */
static void min_visible(void **state)
{
    static const struct {
        double area;
        size_t want;
    } cases[] = { { 0.2, 2 }, { 0.3, 1 } };

    (void)state;
    for (size_t k = 0; k < PM_COUNT(cases); k++) {
        static const float boxes[8] = { 0, 0, 1, 1, 0.1f, 0.1f, 0.2f, 0.2f };
        char list[200];
        struct scene s;

        /* Top and left are padded by as much as the picture; the middle then holds its upper left
         * quarter. */
        snprintf(list, sizeof list,
                 "[{\"name\": \"pad\", \"top\": %d, \"left\": %d},"
                 " {\"name\": \"central_crop\", \"fraction\": 0.5},"
                 " {\"name\": \"min_visible\", \"area\": %g}]", HEIGHT, WIDTH, cases[k].area);
        open_scene(&s, list);
        s.sample.objects = 2;
        memcpy(s.boxes, boxes, sizeof boxes);
        place_scene(&s, 0);
        assert_int_equal(s.out.objects, cases[k].want);
        const float *b = s.out.boxes;
        if (cases[k].want == 2) {
            near("top", b[0], 0.5 / 3);
            near("bottom", b[2], 1.0 / 3);
        }
        close_scene(&s);
    }
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static void sizes(void **state)
{
    const struct pm_occasion input = { .height = 90, .width = 90, .channels = 3, .train = true,
                                       .seed = 1, .where = "x" };
    struct scene s;
    int methods = 0;

    (void)state;
    open_scene(&s, "[{\"name\": \"letterbox\", \"fill\": 9}]");
    s.sample.objects = 1;
    memcpy(s.boxes, (const float[4]){ 0, 0, 1, 0.5f }, 4 * sizeof(float));
    assert_int_equal(pm_place(&s.input, &s.sample, &input, &s.placed), PM_OK);
    pm_placed_objects(&s.placed, &s.sample, s.arena, &s.out);
    /* 60 x 80 becomes 68 x 90 (67.5 to even): 11 rows above and below. */
    near("top", s.out.boxes[0], 11 / 90.0);
    near("bottom", s.out.boxes[2], 79 / 90.0);
    near("right", s.out.boxes[3], 0.5);
    close_scene(&s);
    open_scene(&s, "[{\"name\": \"random_resize_method\"}]");
    for (uint32_t i = 0; i < 40; i++) {
        struct pm_occasion o = input;

        o.example = i;
        assert_int_equal(pm_place(&s.input, &s.sample, &o, &s.placed), PM_OK);
        methods |= 1 << s.placed.geometry.move[0].method;
        assert_int_equal(pm_geometry_height(&s.placed.geometry), 90);
    }
    assert_int_equal(methods, 15);
    close_scene(&s);
    open_scene(&s, "[{\"name\": \"random_downscale_to_target_pixels\", \"min_target_pixels\": 1000,"
                   " \"max_target_pixels\": 8000}]");
    for (uint32_t i = 0; i < 100; i++) {
        place_scene(&s, i);
        const struct pm_move *m = s.placed.geometry.move;
        const double side = s.placed.rows.draws[0].side;

        assert_true(side <= 1 && side * side * HEIGHT * WIDTH >= 999);
        if (side < 1)
            assert_true(m->height == (int)((float)HEIGHT * (float)side) &&
                        m->width == (int)((float)WIDTH * (float)side));
    }
    close_scene(&s);
}

static void squares(void **state)
{
    struct scene s;
    int sides = 0;

    (void)state;
    open_scene(&s, "[{\"name\": \"random_square_crop_by_scale\", \"max_border\": 32,"
                   " \"num_scales\": 3, \"scale_min\": 0.5, \"scale_max\": 1}]");
    for (uint32_t i = 0; i < EXAMPLES; i++) {
        struct world w;

        place_objects(&s, 2, 5, i);
        const int *window = s.placed.rows.draws[0].window, side = window[2];
        const int y = window[0] + side / 2, x = window[1] + side / 2;

        sides |= side == 40 ? 1 : side == 60 ? 2 : side == 80 ? 4 : 8;
        assert_true(y >= 16 && y < HEIGHT - 16 && x >= 32 && x < WIDTH - 32);
        start(&w, &s);
        enter(&w, window);
        keep(&w, 0, true);
        if (w.doubtful)
            continue;
        compare(&s, &w);
    }
    assert_int_equal(sides, 7);
    close_scene(&s);
    open_scene(&s, "[{\"name\": \"random_scale_crop_and_pad_to_square\", \"output_size\": 50,"
                   " \"scale_min\": 0.5}]");
    s.sample.objects = 1;
    memcpy(s.boxes, (const float[4]){ 0, 0, 1, 1 }, 4 * sizeof(float));
    for (uint32_t i = 0; i < EXAMPLES; i++) {
        place_scene(&s, i);
        const struct pm_draws *d = s.placed.rows.draws;
        const int rows = d->box[2], cols = d->box[3];

        assert_true(cols >= 24 && cols <= 100 && abs(rows - cols * HEIGHT / WIDTH) <= 1);
        assert_true(d->window[0] >= 0 && d->window[0] <= fmax(rows - 50, 0));
        assert_int_equal(s.out.objects, 1);
        near("top", s.out.boxes[0], 0);
        near("bottom", s.out.boxes[2], fmin(rows - d->window[0], 50) / (3 * HEIGHT));
        near("right", s.out.boxes[3], fmin(cols - d->window[1], 50) / (3 * WIDTH));
    }
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distort_color), cmocka_unit_test(pixel_scale),
        cmocka_unit_test(gamma_and_jpeg), cmocka_unit_test(patches), cmocka_unit_test(jitter),
        cmocka_unit_test(labels), cmocka_unit_test(min_visible), cmocka_unit_test(sizes),
        cmocka_unit_test(squares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
