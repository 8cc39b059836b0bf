/* thin_plate_sampler on the CPU and every device: outputs and gradients of
 * tests/golden/thin_plate.json, whose splines NumPy solved in double precision; pictures that are
 * known by hand; points that coincide, lie outside, or are no numbers; and what the layer
 * refuses. */
#include "base/golden_file.h"
#include "device/every_device.h"
#include "layers/thin_plate.h"
#include "loss_runs.h"
#include "refused_layers.h"

enum { MOST = 4096 };

/* A picture, its control points and a target of the output. */
struct scene {
    char options[64];
    int n, h, w, c, points, rows, cols;
    float picture[MOST], point[256], target[MOST];
};
struct result {
    float loss, y[MOST], dpoints[256], dx[MOST];
};

static size_t count_x(const struct scene *s)
{
    return (size_t)(s->n * s->h * s->w * s->c);
}

static size_t count_y(const struct scene *s)
{
    return (size_t)(s->n * s->rows * s->cols * s->c);
}

static size_t count_points(const struct scene *s)
{
    return (size_t)(2 * s->n * s->points);
}

/* Points and picture are parameters, so both have a gradient. */
static void train(struct pm_device *d, const struct scene *s, struct result *out)
{
    static const char *const outputs[] = { "y", NULL };
    struct pm_net *net = pm_net_create();
    struct pm_node *in[2], *loss[2];
    struct run r;

    memset(out, 0, sizeof *out);
    loss[1] = pm_net_input(net, "target", PM_SHAPE4(s->n, s->rows, s->cols, s->c), PM_F32);
    in[0] = pm_net_add(net, "x", loss[1], "parameter shape=[%d,%d,%d,%d]", s->n, s->h, s->w, s->c);
    in[1] = pm_net_add(net, "points", loss[1], "parameter shape=[%d,%d]", s->n, 2 * s->points);
    loss[0] = pm_net_add_many(net, "y", in, 2, "thin_plate_sampler %s", s->options);
    pm_net_add_many(net, "loss", loss, 2, "squared_error");
    ok(net->error);
    r = open_training(d, net, s->picture, 1, outputs);
    ok(pm_variables_write(r.v, 1, -1, s->point));
    memcpy(pm_plan_input(r.p, 0, "target", 0), s->target, 4 * count_y(s));
    start(r.p);
    out->loss = (float)pm_plan_loss(r.p, 0);
    memcpy(out->y, pm_plan_output(r.p, 0, "y", 0), 4 * count_y(s));
    ok(pm_buffer_read(d, r.v->grads, r.v->offset[0], out->dx, 4 * count_x(s)));
    ok(pm_buffer_read(d, r.v->grads, r.v->offset[1], out->dpoints, 4 * count_points(s)));
    close_run(&r);
}

/* ---- goldens --------------------------------------------------------------------------------- */

static void draw(uint32_t *seed, size_t count, float scale, float shift, float *out)
{
    assert_true(count <= MOST);
    for (size_t i = 0; i < count; i++)
        out[i] = (float)number(seed, 1 << 15) * scale - shift;
}

static struct scene scene_of(const cJSON *c, uint32_t seed)
{
    struct scene s = { .points = integer(c, "points") };
    const float scale = (float)cJSON_GetObjectItem(c, "scale")->valuedouble;
    double mx = 0, my = 0, at[2 * PM_THIN_PLATE_MOST];
    int32_t shape[4];

    snprintf(s.options, sizeof s.options, "%s", cJSON_GetObjectItem(c, "options")->valuestring);
    assert_int_equal(integers(c, "shape", shape), 4);
    s.n = shape[0], s.h = shape[1], s.w = shape[2], s.c = shape[3];
    assert_true(sscanf(s.options, "size=[%d,%d] margin_x=%lf margin_y=%lf", &s.rows, &s.cols, &mx,
                       &my) >= 2);
    pm_thin_plate_points(s.points, mx, my, at);
    draw(&seed, count_points(&s), 0x1p-15f, 0.5f, s.point);
    for (size_t i = 0; i < count_points(&s); i++)
        s.point[i] = (float)(at[i % (size_t)(2 * s.points)] + (double)(scale * s.point[i]));
    draw(&seed, count_x(&s), 0x1p-14f, 1, s.picture);
    draw(&seed, count_y(&s), 0x1p-14f, 1, s.target);
    return s;
}

/* A place has 23 roundings of a magnitude of up to 40 pixels times 2, the sum of the factors, so an
 * error of 2^-13 pixels. Pixels are -1..1: the value changes by twice that, and so does the slope
 * across, relative to its largest value. The limit is 2^-12 of the largest number. */
static void compare(const struct pm_device *d, const cJSON *c, const char *name, const float *got,
                    size_t count)
{
    const cJSON *list = cJSON_GetObjectItem(c, name), *item;
    bool any = false;

    cJSON_ArrayForEach(item, list)
        any |= item->valuedouble != 0;
    assert_true(any);
    compare_golden(pm_device_get_info(d)->name, cJSON_GetObjectItem(c, "options")->valuestring,
                   list, name, got, count, 0x1p-12);
}

static void goldens(struct pm_device *d)
{
    cJSON *all = read_golden("thin_plate.json"), *c;
    static struct result r;
    uint32_t seed = 1;

    cJSON_ArrayForEach(c, cJSON_GetObjectItem(all, "cases")) {
        const struct scene s = scene_of(c, seed++);
        const double loss = cJSON_GetObjectItem(c, "loss")->valuedouble;

        train(d, &s, &r);
        assert_float_equal(r.loss, loss, 0x1p-12 * loss);
        compare(d, c, "y", r.y, count_y(&s));
        compare(d, c, "dpoints", r.dpoints, count_points(&s));
        compare(d, c, "dx", r.dx, count_x(&s));
    }
    assert_int_equal(seed, 1 + 4);
    cJSON_Delete(all);
}

/* ---- pictures that are known by hand --------------------------------------------------------- */

/* A picture whose pixels are 10 y + x, with the control points on the borders: each output pixel is
 * at its own middle, half a pixel from a pixel's number, and limited to the last but one. */
static struct scene ramp(void)
{
    struct scene s = { .options = "size=[4,8]", .n = 2, .h = 4, .w = 8, .c = 1, .points = 10,
                       .rows = 4, .cols = 8 };
    double at[20];

    pm_thin_plate_points(10, 0, 0, at);
    for (int i = 0; i < 40; i++)
        s.point[i] = (float)at[i % 20];
    for (int i = 0; i < 64; i++)
        s.picture[i] = (float)(i / 8 % 4 * 10 + i % 8);
    return s;
}

static void expect_ramp(const struct result *r, int picture, double x0, double dx, double y0,
                        double dy)
{
    for (int i = 0; i < 32; i++) {
        const double x = fmin(fmax(8 * (x0 + dx * (i % 8 + 0.5) / 8), 0), 6);
        const double y = fmin(fmax(4 * (y0 + dy * (i / 8 + 0.5) / 4), 0), 2);

        /* 13 roundings of a place of up to 8 pixels times 2, of slopes 1 and 10. */
        assert_float_equal(r->y[32 * picture + i], 10 * y + x, 13 * 0x1p-24 * (16 + 80));
    }
}

static void by_hand(struct pm_device *d)
{
    static struct result r;
    struct scene s = ramp();

    train(d, &s, &r);
    expect_ramp(&r, 0, 0, 1, 0, 1);
    expect_ramp(&r, 1, 0, 1, 0, 1);
    for (int k = 0; k < 10; k++) { /* a part of the picture; turned upside down and mirrored */
        s.point[2 * k] = 0.25f + 0.5f * s.point[2 * k];
        s.point[2 * k + 1] = 0.125f + 0.5f * s.point[2 * k + 1];
        s.point[20 + 2 * k] = 1 - s.point[20 + 2 * k];
        s.point[20 + 2 * k + 1] = 1 - s.point[20 + 2 * k + 1];
    }
    train(d, &s, &r);
    expect_ramp(&r, 0, 0.25, 0.5, 0.125, 0.5);
    expect_ramp(&r, 1, 1, -1, 1, -1);
}

/* The points of the first picture are the same, those of the second one far outside. */
static void same_and_outside(struct pm_device *d)
{
    static struct result r;
    struct scene s = ramp();

    for (int i = 0; i < 20; i++) {
        s.point[i] = i % 2 ? 0.3f : 0.45f;
        s.point[20 + i] = s.point[20 + i] + (i % 2 ? -3 : 7);
    }
    train(d, &s, &r);
    expect_ramp(&r, 0, (double)0.45f, 0, (double)0.3f, 0);
    expect_ramp(&r, 1, 7, 1, -3, 1);
    for (int i = 0; i < 20; i++) {
        assert_true(isfinite(r.dpoints[i]) && r.dpoints[i] != 0);
        assert_true(r.dpoints[20 + i] == 0);
    }
}

/* A point that is no number spoils its picture, and no other. */
static void no_numbers(struct pm_device *d)
{
    static struct result r;
    struct scene s = ramp();

    s.point[7] = NAN;
    train(d, &s, &r);
    for (int i = 0; i < 32; i++)
        assert_true(isnan(r.y[i]));
    expect_ramp(&r, 1, 0, 1, 0, 1);
    s.point[7] = INFINITY; /* at one side of the picture or the other, or no number */
    train(d, &s, &r);
    for (int i = 0; i < 32; i++)
        assert_true(isnan(r.y[i]) || (r.y[i] >= 0 && r.y[i] <= 26));
}

static void threads(void **state)
{
    static const int counts[] = { 1, 3 };
    static struct result r[PM_COUNT(counts)];
    struct scene s = ramp();

    (void)state;
    for (int i = 0; i < 40; i++)
        s.point[i] += 0.01f * (float)(i * i % 7);
    for (size_t i = 0; i < PM_COUNT(counts); i++) {
        struct pm_device *d = cpu_with(counts[i]);

        train(d, &s, &r[i]);
        pm_device_close(&d);
    }
    assert_memory_equal(&r[0], &r[1], sizeof r[0]);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refusals(void **state)
{
    enum { PICTURE, POINTS };
    static const struct layer inputs = { "thin_plate_sampler", "float32", 2,
                                         { S4(2, 8, 9, 3), S2(2, 40) }, { PM_F32, PM_F32 } };
    static const struct wrong list[] = {
        { PICTURE, S4(2, 1, 9, 3), "", "the picture has shape 2x1x9x3 instead of n x h x w x c "
                                       "with sides of 2 or more" },
        { PICTURE, S3(2, 8, 9), "", "shape 2x8x9 instead of" },
        { POINTS, S2(3, 40), "", "the points have shape 3x40 instead of 2 x 2 K" },
        { POINTS, S2(2, 42), "", "an even number from 4 to 64" },
        { POINTS, S2(2, 4), "", "an even number from 4 to 64" },
        { POINTS, S2(2, 132), "", "an even number from 4 to 64" },
        { POINTS, S4(2, 1, 1, 40), "", "shape 2x1x1x40 instead of" },
        { POINTS, S2(2, 40), "size=[0,3]", "size" },
        { POINTS, S2(2, 40), "size=[1,2,3]", "size must be height and width" },
        { POINTS, S2(2, 40), "margin_x=0.5", "margin_x: 0.5 is outside 0..0.4" },
    };

    (void)state;
    refuse(&inputs, list, PM_COUNT(list));
}

ON_EVERY_DEVICE(goldens)
ON_EVERY_DEVICE(by_hand)
ON_EVERY_DEVICE(same_and_outside)
ON_EVERY_DEVICE(no_numbers)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goldens),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_same_and_outside),
        cmocka_unit_test(test_no_numbers),
        cmocka_unit_test(threads),
        cmocka_unit_test(refusals),
    };

    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
