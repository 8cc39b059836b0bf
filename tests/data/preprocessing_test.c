/* Preprocessings compared with a reference in double precision, written from the rules without
 * code of src/. Coordinates are float32 there, too: the rule is src = dst * (in / out), rounded
 * to float.
 *
 * Tolerance: every value passes through at most OPS float roundings of numbers up to `top`, so
 * |difference| <= OPS * 2^-24 * top, times the factors of later steps. */
#include <math.h>

#include "preprocessing_common.h"

/* ---- reference ------------------------------------------------------------------------------ */

struct ref {
    int h, w, c;
    double v[200 * 200 * 3];
};

static double at(const struct ref *r, int y, int x, int c)
{
    return r->v[(y * r->w + x) * r->c + c];
}

static struct ref *ref_of(const struct pm_image8 *im)
{
    struct ref *r = calloc(1, sizeof *r);
    r->h = im->height, r->w = im->width, r->c = im->channels;
    for (int i = 0; i < r->h * r->w * r->c; i++)
        r->v[i] = im->pixels[i];
    return r;
}

static void ref_crop(struct ref *r, int y, int x, int h, int w)
{
    struct ref *o = calloc(1, sizeof *o);
    o->h = h, o->w = w, o->c = r->c;
    for (int i = 0; i < h; i++)
        for (int j = 0; j < w; j++)
            for (int c = 0; c < r->c; c++) {
                const int sy = y + i, sx = x + j;
                if (sy >= 0 && sy < r->h && sx >= 0 && sx < r->w)
                    o->v[(i * w + j) * r->c + c] = at(r, sy, sx, c);
            }
    *r = *o;
    free(o);
}

/* The weight of input sample i for output sample o, along one axis. */
static double ref_weight(int method, int in, int out, int o, int i)
{
    const float scale = (float)in / (float)out;
    const float src = (float)o * scale;
    double sum = 0;

    if (method == 0) {
        const int l = (int)src, u = l + 1 < in ? l + 1 : in - 1;
        const double f = (double)src - l;
        return (i == l ? 1 - f : 0) + (i == u ? f : 0);
    }
    if (method == 1) {
        const int n = (int)floor(src);
        return i == (n < in - 1 ? n : in - 1);
    }
    if (method == 2) {
        const int l = (int)src;
        const double f = rint(((double)src - l) * 1024) / 1024;
        for (int k = -1; k <= 2; k++) {
            const double d = fabs(k - f), a = -0.75;
            const int p = l + k < 0 ? 0 : l + k > in - 1 ? in - 1 : l + k;
            const double w = d <= 1 ? (a + 2) * d * d * d - (a + 3) * d * d + 1
                                    : a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a;
            sum += p == i ? w : 0;
        }
        return sum;
    }
    const float end = (float)(o + 1) * scale;
    const double lo = src > i ? src : i, hi = end < i + 1 ? end : i + 1;
    return hi > lo ? (hi - lo) / scale : 0;
}

static void ref_resize(struct ref *r, int method, int h, int w)
{
    struct ref *o = calloc(1, sizeof *o);
    o->h = h, o->w = w, o->c = r->c;
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            for (int i = 0; i < r->h; i++) {
                const double wy = ref_weight(method, r->h, h, y, i);
                for (int j = 0; wy != 0 && j < r->w; j++) {
                    const double wx = ref_weight(method, r->w, w, x, j);
                    for (int c = 0; c < r->c; c++)
                        o->v[(y * w + x) * r->c + c] += wy * wx * at(r, i, j, c);
                }
            }
    *r = *o;
    free(o);
}

static void ref_flip(struct ref *r)
{
    struct ref *o = malloc(sizeof *o);
    *o = *r;
    for (int y = 0; y < r->h; y++)
        for (int x = 0; x < r->w; x++)
            for (int c = 0; c < r->c; c++)
                o->v[(y * r->w + x) * r->c + c] = at(r, y, r->w - 1 - x, c);
    *r = *o;
    free(o);
}

static void ref_contrast(struct ref *r, double f)
{
    for (int c = 0; c < r->c; c++) {
        double mean = 0;
        for (int i = 0; i < r->h * r->w; i++)
            mean += r->v[i * r->c + c] / (r->h * r->w);
        for (int i = 0; i < r->h * r->w; i++)
            r->v[i * r->c + c] = (r->v[i * r->c + c] - mean) * f + mean;
    }
}

static void ref_add(struct ref *r, double d)
{
    for (int i = 0; i < r->h * r->w * r->c; i++)
        r->v[i] += d;
}

/* Multiplies the saturation by s, limited to 0..1 (unchanged when s is below 0), and adds d to
 * the hue, with the six-sector form of HSV. */
static void ref_colour(struct ref *r, double s, double d)
{
    for (int i = 0; i < r->h * r->w; i++) {
        double *p = r->v + 3 * i;
        const double hi = fmax(p[0], fmax(p[1], p[2])), lo = fmin(p[0], fmin(p[1], p[2]));
        const double range = hi - lo;
        double sat = hi > 0 ? range / hi : 0, hue = 0;
        if (range > 0) {
            if (hi == p[0])
                hue = (p[1] - p[2]) / range;
            else if (hi == p[1])
                hue = 2 + (p[2] - p[0]) / range;
            else
                hue = 4 + (p[0] - p[1]) / range;
        }
        hue = hue / 6 + 1 + d;
        hue = 6 * (hue - floor(hue));
        sat = s < 0 ? sat : fmin(fmax(sat * s, 0), 1);
        const int sector = (int)hue % 6;
        const double f = hue - floor(hue), low = hi * (1 - sat), down = hi * (1 - sat * f),
                     up = hi * (1 - sat * (1 - f));
        const double out[6][3] = { { hi, up, low },   { down, hi, low }, { low, hi, up },
                                   { low, down, hi }, { up, low, hi },   { hi, low, down } };
        memcpy(p, out[sector], sizeof out[sector]);
    }
}

static double ref_standardise(struct ref *r)
{
    const int n = r->h * r->w * r->c;
    double mean = 0, var = 0;
    for (int i = 0; i < n; i++)
        mean += r->v[i] / n;
    for (int i = 0; i < n; i++)
        var += (r->v[i] - mean) * (r->v[i] - mean) / n;
    const double scale = 1 / fmax(sqrt(var), 1 / sqrt(n));
    for (int i = 0; i < n; i++)
        r->v[i] = (r->v[i] - mean) * scale;
    return scale;
}

static void compare(const char *what, const struct ref *r, const float *got, double tolerance)
{
    double worst = 0;
    for (int i = 0; i < r->h * r->w * r->c; i++)
        worst = fmax(worst, fabs(r->v[i] - got[i]));
    if (!(worst <= tolerance))
        fail_msg("%s: worst difference %g, allowed %g", what, worst, tolerance);
}

/* ---- inputs --------------------------------------------------------------------------------- */

static struct pm_image8 picture(int height, int width, int channels, unsigned seed)
{
    struct pm_rng r = pm_rng_make(seed, pm_hash("picture"), 0, 0);
    struct pm_image8 im = { height, width, channels,
                            pm_malloc((size_t)height * (size_t)width * (size_t)channels) };
    for (int i = 0; i < height * width * channels; i++)
        im.pixels[i] = (uint8_t)(pm_rng_u32(&r) >> 24);
    for (int i = 0; i < 3 * channels; i++)
        im.pixels[i] = i < channels ? 0 : i < 2 * channels ? 255 : 77; /* black, white, grey */
    return im;
}

/* ---- the published numbers --------------------------------------------------------------------
 */

static void resize_examples(void **state)
{
    static const struct {
        int in, out;
        double want[6];
    } cases[] = {
        { 4, 6, { 0, 2 / 3.0, 4 / 3.0, 2, 8 / 3.0, 3 } },
        { 4, 2, { 0, 2 } },
        { 3, 5, { 0, 0.6, 1.2, 1.8, 2 } },
    };
    uint8_t line[4] = { 0, 1, 2, 3 };

    (void)state;
    for (size_t k = 0; k < PM_COUNT(cases); k++) {
        const struct pm_image8 row = { 1, cases[k].in, 1, line };
        const struct pm_image8 column = { cases[k].in, 1, 1, line };
        float out[6];
        pm_resize(pm_view8_of(&row), PM_RESIZE_BILINEAR, 1, cases[k].out, out);
        for (int i = 0; i < cases[k].out; i++)
            assert_true(fabs(out[i] - cases[k].want[i]) < 8 * ulp * 4);
        pm_resize(pm_view8_of(&column), PM_RESIZE_BILINEAR, cases[k].out, 1, out);
        for (int i = 0; i < cases[k].out; i++)
            assert_true(fabs(out[i] - cases[k].want[i]) < 8 * ulp * 4);
    }
}

static void resize_methods(void **state)
{
    static const int sizes[][2] = { { 24, 18 }, { 40, 61 }, { 37, 53 }, { 1, 1 }, { 5, 120 } };

    (void)state;
    for (int channels = 1; channels <= 3; channels += 2) {
        struct pm_image8 im = picture(37, 53, channels, 1);
        for (int method = 0; method < 4; method++)
            for (size_t k = 0; k < PM_COUNT(sizes); k++) {
                struct ref *r = ref_of(&im);
                float *out = pm_malloc(200 * 200 * 3 * sizeof *out);
                pm_resize(pm_view8_of(&im), (enum pm_resize)method, sizes[k][0], sizes[k][1],
                          out);
                ref_resize(r, method, sizes[k][0], sizes[k][1]);
                /* The magnitudes of bicubic weights add up to at most 1.75 along each axis; area
                 * adds all inputs. */
                compare("resize", r, out, OPS * ulp * 255 * (method == 2 ? 3 : 1));
                pm_free(out);
                free(r);
            }
        pm_image_free(&im);
    }
}

/* ---- each preprocessing -----------------------------------------------------------------------
 */

static void lenet(void **state)
{
    static const int sizes[][2] = { { 28, 28 }, { 29, 26 }, { 20, 40 }, { 33, 21 } };
    struct config c = config("lenet", "");

    (void)state;
    for (size_t k = 0; k < PM_COUNT(sizes); k++) {
        const int h = sizes[k][0], w = sizes[k][1];
        struct pm_image8 im = picture(28, 28, 1, 2);
        struct ref *r = ref_of(&im);
        float *out = run(&c, &im, k % 2, NULL, h, w);
        /* The offset is floor((n - t) / 2) for a cut and floor((t - n) / 2) for padding. */
        ref_crop(r, h < 28 ? (28 - h) / 2 : -((h - 28) / 2),
                 w < 28 ? (28 - w) / 2 : -((w - 28) / 2), h, w);
        for (int i = 0; i < h * w; i++)
            r->v[i] = (r->v[i] - 128) / 128;
        compare("lenet", r, out, 0);
        pm_free(out);
        free(r);
        pm_image_free(&im);
    }
    pm_arena_destroy(&c.arena);
}

static void cifarnet(void **state)
{
    struct config c = config("cifarnet", "");
    struct pm_image8 im = picture(32, 32, 3, 3);

    (void)state;
    for (int k = 0; k < 20; k++) {
        struct pm_rng rng = pm_rng_make(5, 6, 7, (uint32_t)k);
        struct pm_draws d;
        c.row->draw(c.cfg, &rng, &(struct pm_scene){ 32, 32, 0, NULL, 0 }, &d);
        if (k == 0)
            d = (struct pm_draws){ .crop_y = 0, .crop_x = 0.999999, .flip = true };
        const int size = k % 3 ? 32 : 24, room = 40 - size;
        struct ref *r = ref_of(&im);
        ref_crop(r, (int)floor(d.crop_y * (room + 1)) - 4, (int)floor(d.crop_x * (room + 1)) - 4,
                 size, size);
        if (d.flip)
            ref_flip(r);
        ref_add(r, -63 + d.brightness * 126);
        ref_contrast(r, 0.2 + 1.6 * d.contrast);
        /* Before standardisation numbers reach (255 + 63) * 1.8. */
        const double scale = ref_standardise(r);
        float *out = run(&c, &im, true, &d, size, size);
        compare("cifarnet train", r, out, OPS * ulp * 573 * scale);
        pm_free(out);
        free(r);
    }
    struct ref *r = ref_of(&im);
    ref_crop(r, 4, 4, 24, 24);
    const double scale = ref_standardise(r);
    float *out = run(&c, &im, false, NULL, 24, 24);
    compare("cifarnet eval", r, out, OPS * ulp * 255 * scale);
    pm_free(out);
    free(r);
    /* One colour: the deviation is at least 1 / sqrt(n), so nothing is divided by zero. */
    memset(im.pixels, 90, 32 * 32 * 3);
    out = run(&c, &im, false, NULL, 32, 32);
    for (int i = 0; i < 32 * 32 * 3; i++)
        assert_true(fabs(out[i]) < 1e-3);
    assert_fails(place_picture(c.row, c.cfg, &im, true, &(struct pm_draws){ 0 }, 41, 41, 3, out,
                               "small.png"),
                 PM_EDATA, "small.png", "32 x 32", "41 x 41");
    pm_free(out);
    pm_image_free(&im);
    pm_arena_destroy(&c.arena);
}

static void vgg(void **state)
{
    static const double means[3] = { 123.68, 116.78, 103.94 };
    struct config c = config("vgg", "resize_side_min=64 resize_side_max=128");
    struct pm_image8 im = picture(75, 100, 3, 4);

    (void)state;
    for (int k = -1; k < 12; k++) {
        struct pm_rng rng = pm_rng_make(5, 6, 7, (uint32_t)k);
        struct pm_draws d = { 0 };
        c.row->draw(c.cfg, &rng, &(struct pm_scene){ 75, 100, 0, NULL, 0 }, &d);
        if (k == 0)
            d.side = 0.9999999; /* the last possible side: 128 */
        const int side = k < 0 ? 64 : 64 + (int)floor(d.side * 65);
        const float scale = (float)side / 75;
        const int h = (int)rint(75 * scale), w = (int)rint(100 * scale);
        struct ref *r = ref_of(&im);
        ref_resize(r, 0, h, w);
        if (k < 0)
            ref_crop(r, (h - 56) / 2, (w - 60) / 2, 56, 60);
        else
            ref_crop(r, (int)floor(d.crop_y * (h - 56 + 1)), (int)floor(d.crop_x * (w - 60 + 1)),
                     56, 60);
        if (k >= 0 && d.flip)
            ref_flip(r);
        for (int i = 0; i < 56 * 60 * 3; i++)
            r->v[i] -= means[i % 3];
        float *out = run(&c, &im, k >= 0, &d, 56, 60);
        compare("vgg", r, out, OPS * ulp * 255);
        pm_free(out);
        free(r);
    }
    pm_image_free(&im);
    /* Halves round to even: 1025 * 0.5 = 512, 1027 * 0.5 = 514; 500 x 375 becomes 341 x 256. */
    static const int sides[][4] = { { 512, 1025, 256, 512 },
                                    { 512, 1027, 256, 514 },
                                    { 500, 375, 341, 256 } };
    struct config usual = config("vgg", "");
    for (size_t k = 0; k < PM_COUNT(sides); k++) {
        char want[32];
        float one[3];
        im = picture(sides[k][0], sides[k][1], 1, 5);
        snprintf(want, sizeof want, "resized to %d x %d", sides[k][2], sides[k][3]);
        assert_fails(
            place_picture(usual.row, usual.cfg, &im, false, NULL, 600, 600, 1, one, "a.jpg"),
            PM_EDATA, "a.jpg", want, "resize_side_min", "600");
        pm_image_free(&im);
    }
    pm_arena_destroy(&usual.arena);
    pm_arena_destroy(&c.arena);
}

/* Each draw and mode compared with the reference; slow mode uses all orders and methods. */
static void inception_case(const struct config *c, const struct pm_image8 *im,
                           const struct pm_draws *d, bool fast)
{
    static const char *const orders[4] = { "bshc", "sbch", "chbs", "hscb" };
    const char *steps = fast ? "bs" : orders[d->color_ordering];
    struct ref *r = ref_of(im);

    if (d->box[2])
        ref_crop(r, d->box[0], d->box[1], d->box[2], d->box[3]);
    ref_resize(r, fast ? 0 : d->resize_method, 29, 31);
    for (int i = 0; i < r->h * r->w * r->c; i++)
        r->v[i] /= 255;
    if (d->flip)
        ref_flip(r);
    for (; *steps; steps++) {
        if (*steps == 'b')
            ref_add(r, (2 * d->brightness - 1) * 32 / 255);
        if (*steps == 'c')
            ref_contrast(r, 0.5 + d->contrast);
        if (*steps == 's' && r->c == 3)
            ref_colour(r, 0.5 + d->saturation, 0);
        if (*steps == 'h' && r->c == 3)
            ref_colour(r, -1, -0.2 + 0.4 * d->hue);
    }
    for (int i = 0; i < r->h * r->w * r->c; i++)
        r->v[i] = (fmin(fmax(r->v[i], 0), 1) - 0.5) * 2;
    float *out = run(c, im, true, d, 29, 31);
    /* Up to 1.8 before clipping, bicubic weights 3, contrast 1.5; hue is exact in its 6 sectors. */
    compare("inception", r, out, OPS * ulp * 2 * 1.8 * 3 * 1.5 * 6);
    pm_free(out);
    free(r);
}

static void inception(void **state)
{
    struct config fast = config("inception", ""), slow = config("inception", "fast_mode=false");
    struct pm_image8 im = picture(75, 100, 3, 6), grey = picture(75, 100, 1, 7);
    int orders = 0, methods = 0;

    (void)state;
    for (int k = 0; k < 60; k++) {
        struct pm_rng rng = pm_rng_make(9, 8, 7, (uint32_t)k);
        struct pm_draws d;
        slow.row->draw(slow.cfg, &rng, &(struct pm_scene){ 75, 100, 0, NULL, 0 }, &d);
        orders |= 1 << d.color_ordering;
        methods |= 1 << d.resize_method;
        inception_case(&slow, k % 5 ? &im : &grey, &d, false);
        inception_case(&fast, k % 5 ? &im : &grey, &d, true);
    }
    assert_int_equal(orders, 15);
    assert_int_equal(methods, 15);
    pm_image_free(&im);
    pm_image_free(&grey);
    pm_arena_destroy(&fast.arena);
    pm_arena_destroy(&slow.arena);
}

/* The central crop: of 500 the 438 from 31, of 375 the 329 from 23. Pixels equal to their column
 * (or row) number show which ones were used; at the crop's own size resizing copies them. */
static void inception_eval(void **state)
{
    struct config c = config("inception", "");
    struct pm_image8 im = picture(375, 500, 1, 8);

    (void)state;
    for (int axis = 0; axis < 2; axis++) {
        for (int y = 0; y < 375; y++)
            for (int x = 0; x < 500; x++)
                im.pixels[y * 500 + x] = (uint8_t)((axis ? y : x) % 251);
        float *out = run(&c, &im, false, NULL, 329, 438);
        for (int y = 0; y < 329; y++)
            for (int x = 0; x < 438; x++) {
                const double want = ((axis ? y + 23 : x + 31) % 251 / 255.0 - 0.5) * 2;
                assert_true(fabs(out[y * 438 + x] - want) < OPS * ulp);
            }
        pm_free(out);
    }
    pm_image_free(&im);
    pm_arena_destroy(&c.arena);
}

/* The bounds of the box sampler over many draws, and its mean area compared with a simple
 * simulation of the same rule (for two means of n draws the deviation of the difference is below
 * 0.3 * sqrt(2 / n)). */
static void boxes(void **state)
{
    static const int sizes[][2] = { { 375, 500 }, { 500, 375 }, { 30, 200 }, { 7, 5 } };
    struct config c = config("inception", "");
    enum { DRAWS = 4000 };

    (void)state;
    for (size_t k = 0; k < PM_COUNT(sizes); k++) {
        const int H = sizes[k][0], W = sizes[k][1];
        double mean = 0, simulated = 0;
        struct pm_rng other = pm_rng_make(77, 1, 2, (uint32_t)k);
        for (int i = 0; i < DRAWS; i++) {
            struct pm_rng rng = pm_rng_make(3, 1, 2, (uint32_t)i);
            struct pm_draws d;
            c.row->draw(c.cfg, &rng, &(struct pm_scene){ H, W, 0, NULL, 0 }, &d);
            const int y = d.box[0], x = d.box[1], h = d.box[2], w = d.box[3];
            const double area = (double)h * w / (H * W), aspect = (double)w / h;
            assert_true(h >= 1 && w >= 1 && y >= 0 && x >= 0 && y + h <= H && x + w <= W);
            assert_true(area >= 0.1 && area <= 1);
            if (h < H || w < W) {
                /* The width is rounded by up to half a pixel. */
                assert_true(aspect >= 0.75 - 0.5 / h - 1e-6 && aspect <= 1.33 + 0.5 / h + 1e-6);
                assert_true(h == H || y + h < H);
                assert_true(w == W || x + w < W);
            }
            mean += area / DRAWS;
        }
        for (int i = 0; i < DRAWS; i++) {
            double area = 1;
            for (int t = 0; t < 100; t++) {
                const double a = 0.75 + 0.58 * pm_rng_uniform(&other);
                int hi = (int)rint(sqrt(1.0 * H * W / a)), lo = (int)rint(sqrt(0.05 * H * W / a));
                if (rint(hi * a) > W)
                    hi = (int)((W + 0.5 - 1e-7) / a);
                hi = hi > H ? H : hi;
                lo = lo > hi ? hi : lo;
                int h = lo + (int)(pm_rng_uniform(&other) * (hi - lo + 1));
                int w = (int)rint(h * a);
                if (w * h < 0.05 * H * W)
                    w = (int)rint(++h * a);
                if (w * h > H * W)
                    w = (int)rint(--h * a);
                if (w > W || h > H || w < 1 || h < 1 || w * h < 0.1 * H * W || w * h > H * W)
                    continue;
                area = (double)w * h / (H * W);
                break;
            }
            simulated += area / DRAWS;
        }
        assert_true(fabs(mean - simulated) < 4 * 0.3 * sqrt(2.0 / DRAWS));
    }
    pm_arena_destroy(&c.arena);
}

static void table(void **state)
{
    size_t count = 0;
    const struct pm_preprocessing *const *rows = pm_preprocessings(&count);

    (void)state;
    assert_int_equal(count, 13);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(pm_preprocessing_find(rows[i]->name), rows[i]);
        assert_non_null(rows[i]->help);
    }
    assert_null(pm_preprocessing_find("nothing"));
    assert_null(pm_preprocessing_find(""));
}

/* The description of evaluation for exported models: for a picture of the input's size, without
 * a crop, apply gives (pixel - mean) / std. */
static void normal_is_described(void **state)
{
    size_t count;
    const struct pm_preprocessing *const *all = pm_preprocessings(&count);
    enum { SIDE = 32 };
    static uint8_t pixels[SIDE * SIDE * 3];
    static float out[SIDE * SIDE * 3];
    const struct pm_image8 image = {
        .pixels = pixels, .height = SIDE, .width = SIDE, .channels = 3
    };
    (void)state;

    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i % 3 * 50 + 20); /* even: resizing changes nothing */
    for (size_t i = 0; i < count; i++) {
        const struct pm_preprocessing *p = all[i];
        struct pm_arena *a = pm_arena_create();
        void *cfg = pm_arena_alloc(a, p->cfg_size + 1);
        struct pm_normal n = { 0 };

        if (p->opts)
            assert_int_equal(pm_opts_parse(p->opts, NULL, NULL, cfg, a, "input"), PM_OK);
        assert_int_equal(p->normal(cfg, 3, &n), PM_OK);
        assert_non_null(n.fit);
        assert_non_null(n.interpolation);
        assert_int_equal(place_picture(p, cfg, &image, false, NULL, SIDE, SIDE, 3, out, "test"),
                         PM_OK);
        for (int c = 0; c < 3 && !n.own; c++)
            if (!(fabsf(out[c] - ((float)pixels[c] - n.mean[c]) / n.std[c]) <= 1e-5f))
                fail_msg("%s: channel %d is %g", p->name, c, (double)out[c]);
        if (n.own)
            assert_true(strcmp(p->name, "cifarnet") == 0);
        pm_arena_destroy(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_is_described),
        cmocka_unit_test(resize_examples),
        cmocka_unit_test(resize_methods),
        cmocka_unit_test(lenet),
        cmocka_unit_test(cifarnet),
        cmocka_unit_test(vgg),
        cmocka_unit_test(inception),
        cmocka_unit_test(inception_eval),
        cmocka_unit_test(boxes),
        cmocka_unit_test(table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
