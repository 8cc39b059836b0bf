/* The variants picked for convolutions, for every class of device and many shapes, without a
 * device. Levels have no gaps and end with the naive shader, shaders exist, grids are legal,
 * tiles in shared memory are loaded completely, scratch sizes match the partial sums, and GPUs of
 * different sizes are kept busy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bias_grad.params.h"
#include "conv2d.params.h"
#include "device/shader_table.h"
#include "layers/conv_pick.h"
#include "layers/dispatches.h"

typedef bool pick_fn(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out);

static struct pm_caps caps_of(enum pm_class class)
{
    struct pm_caps c = {
        .runs_shaders = true, .last_group = true, .device_class = class, .subgroup_size = 32,
        .max_workgroup_size = { 256, 256, 64 }, .max_workgroup_invocations = 256,
        .max_groups = { 65535, 65535, 65535 }, .shared_bytes = 32768, .compute_units = 28,
    };

    /* The limits that Vulkan guarantees; larger tiles do not fit. */
    if (class == PM_CLASS_OTHER)
        c.max_workgroup_invocations = c.max_workgroup_size[0] = c.max_workgroup_size[1] = 128;
    if (class == PM_CLASS_LAVAPIPE || class == PM_CLASS_SWIFTSHADER)
        c.compute_units = 0;
    if (class == PM_CLASS_LAVAPIPE)
        c.subgroup_size = 8, c.int64 = true;
    if (class == PM_CLASS_SWIFTSHADER)
        c.subgroup_size = 4;
    return c;
}

static bool embedded(const char *name)
{
    for (const struct pm_shader *s = pm_shader_table; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return true;
    return false;
}

/* The rule of conv2d_s.comp; the constants from `at` on are bm, bn, bk, tm, tn, then `more`. */
static void check_tile(const struct pm_dispatch *d, int at, int more, const struct pm_caps *caps)
{
    uint32_t bm = d->spec[at], bn = d->spec[at + 1], bk = d->spec[at + 2], tm = d->spec[at + 3],
             tn = d->spec[at + 4];

    assert_int_equal(d->specs, at + 5 + more);
    assert_int_equal(d->spec[0], bm / tm * (bn / tn));
    assert_int_equal(bm * bk % (4 * d->spec[0]), 0);
    assert_int_equal(bn * bk % (4 * d->spec[0]), 0);
    assert_int_equal((tn | bk) % 4, 0);
    assert_true((bm * (bk + 4) + bn * bk) * sizeof(float) <= caps->shared_bytes);
}

static int check_levels(const struct pm_caps *caps, pick_fn *pick, const void *params, bool single)
{
    struct pm_picks p;
    int level = 0;

    for (; pick(caps, params, 0, level, &p); level++) {
        assert_in_range(p.count, 1, PM_MAX_DISPATCHES);
        assert_non_null(p.variant);
        for (int i = 0; i < p.count; i++) {
            const struct pm_dispatch *d = &p.d[i];
            assert_true(embedded(d->shader));
            assert_true(d->spec[0] * d->spec[1] * d->spec[2] <= caps->max_workgroup_invocations);
            for (int axis = 0; axis < 3; axis++)
                assert_in_range(d->groups[axis], 1, 65535);
            if (strcmp(d->shader, "conv2d_s") == 0)
                check_tile(d, 13, 2, caps);
            if (strcmp(d->shader, "conv2d_filter_s") == 0) {
                assert_true(d->spec[3] == 1 || p.scratch[2] > 0);
                assert_int_equal(d->groups[2], d->spec[3]);
                check_tile(d, 9, 1, caps);
                /* The last workgroup of a tile adds its parts, or a second dispatch does. */
                assert_int_equal(p.scratch[4], d->spec[14] ? d->groups[0] * d->groups[1] * 4 : 0);
                assert_int_equal(p.count, d->spec[3] > 1 && !d->spec[14] ? 2 : 1);
                assert_true(!d->spec[14] || d->spec[3] * d->spec[9] * d->spec[10] * 4 <= 2 << 20);
            }
            if (strncmp(d->shader, "conv2d_combine", 14) == 0) {
                assert_int_equal(i, p.count - 1);
                assert_true(d->spec[3] > 1);
                if (d->specs == 4 || !d->spec[4]) /* data gradients have weights there, too */
                    assert_int_equal(p.scratch[2] % d->spec[3], 0);
            }
        }
    }
    assert_in_range(level, 1, 8);
    assert_false(pick(caps, params, 0, level + 1, &p));
    assert_false(pick(caps, params, 0, level + 2, &p));
    if (!single) {
        assert_true(pick(caps, params, 0, level - 1, &p));
        assert_string_equal(p.variant, "naive");
    }
    return level;
}

/* A part of a filter gradient has at most 8192 pixels, for accuracy, unless its partial sums would
 * need more than 64 MiB. */
static void check_runs(const struct pm_caps *caps, const struct conv2d_params *p)
{
    size_t pixels = (size_t)p->n * p->oh * p->ow;
    size_t bytes = (size_t)p->kh * p->kw * (p->c / p->groups) * p->k * sizeof(float);
    struct pm_picks picks;

    for (int level = 0; pm_conv2d_bwd_filter_pick(caps, p, 0, level, &picks); level++) {
        size_t parts = picks.d[0].spec[3];

        if (strcmp(picks.d[0].shader, "conv2d_filter_s") == 0)
            assert_true(pixels <= 8192 * parts || (parts + 1) * bytes > (size_t)64 << 20);
    }
}

static struct conv2d_params shape(int n, int size, int c, int k, int kernel, int stride, int groups)
{
    int out = (size + stride - 1) / stride, total = (out - 1) * stride + kernel - size;
    int before = total > 0 ? total / 2 : 0;

    return (struct conv2d_params){
        .n = n, .h = size, .w = size, .c = c, .oh = out, .ow = out, .k = k, .kh = kernel,
        .kw = kernel, .stride_h = stride, .stride_w = stride, .dilation_h = 1, .dilation_w = 1,
        .top = before, .left = before, .groups = groups,
    };
}

static void test_conv2d(void **state)
{
    (void)state;
    static const int channels[] = { 1, 3, 10, 64, 96, 1000, 1001, 2048 };
    static const int sizes[][4] = { /* n, size, kernel, stride */
        { 1, 1, 1, 1 }, { 64, 1, 1, 1 }, { 8, 7, 3, 1 }, { 8, 14, 1, 2 }, { 2, 56, 3, 2 },
        { 32, 28, 5, 1 }, { 8, 224, 7, 2 }, { 300, 224, 3, 1 },
    };

    for (enum pm_class class = PM_CLASS_OTHER; class <= PM_CLASS_INTEL; class++)
        for (size_t i = 0; i < PM_COUNT(sizes); i++)
            for (size_t c = 0; c < PM_COUNT(channels); c++)
                for (size_t k = 0; k < PM_COUNT(channels); k++) {
                    const int *s = sizes[i];
                    struct pm_caps caps = caps_of(class);
                    struct conv2d_params p = shape(s[0], s[1], channels[c], channels[k], s[2], s[3],
                                                   1);
                    int levels = check_levels(&caps, pm_conv2d_fwd_pick, &p, false);
                    assert_in_range(levels, class == PM_CLASS_OTHER ? 1 : 2, 6);
                    check_levels(&caps, pm_conv2d_bwd_data_pick, &p, false);
                    check_levels(&caps, pm_conv2d_bwd_filter_pick, &p, false);
                    check_runs(&caps, &p);
                }
}

static void test_depthwise(void **state)
{
    (void)state;
    for (enum pm_class class = PM_CLASS_OTHER; class <= PM_CLASS_INTEL; class++)
        for (int kernel = 1; kernel < 10; kernel++)
            for (int stride = 1; stride < 6; stride++)
                for (int c = 1; c < 2000; c = c * 3 + 1) {
                    struct pm_caps caps = caps_of(class);
                    struct conv2d_params p = shape(4, 33, c, 2 * c, kernel, stride, c);
                    check_levels(&caps, pm_depthwise_fwd_pick, &p, false);
                    check_levels(&caps, pm_depthwise_bwd_data_pick, &p, false);
                    check_levels(&caps, pm_depthwise_bwd_filter_pick, &p, false);
                }
}

static void test_bias_grad(void **state)
{
    (void)state;
    for (enum pm_class class = PM_CLASS_OTHER; class <= PM_CLASS_INTEL; class++)
        for (int rows = 1; rows < 20000000; rows = rows * 7 + 1)
            for (int channels = 1; channels < 5000; channels = channels * 3 + 1) {
                struct pm_caps caps = caps_of(class);
                struct bias_grad_params p = { .rows = rows, .channels = channels };
                struct pm_picks picks;
                assert_int_equal(check_levels(&caps, pm_bias_grad_pick, &p, true), 1);
                pm_bias_grad_pick(&caps, &p, 0, 0, &picks);
                /* chunks x rows of a chunk cover all rows, and the scratch holds a sum of each
                 * chunk. */
                assert_true((size_t)picks.d[0].spec[3] * picks.d[0].groups[1] >= (size_t)rows);
                assert_int_equal(picks.d[1].spec[3], picks.d[0].groups[1]);
                assert_int_equal(picks.scratch[1], picks.d[1].spec[3] * channels * sizeof(float));
            }
}

/* ---- how full the rounds of workgroups are ---------------------------------------------- */

/* A compute unit runs two workgroups at a time: a round has twice as many as there are units. The
 * rounds of a net are used * 100 / taken percent full, weighted by their multiply-adds. partial:
 * bytes of partial sums, written and read. */
struct fill {
    double used, taken, partial;
};

static void add_fill(const struct pm_caps *caps, pick_fn *pick, const struct conv2d_params *p,
                     struct fill *f)
{
    enum { PARTS = 8, PHASES_Y = 9, PHASES_X = 10, TILE = 13, FILTER_PARTS = 3, FILTER_TILE = 9 };
    struct pm_picks picks;

    assert_true(pick(caps, p, 0, 0, &picks));
    for (int i = 0; i < picks.count; i++) {
        const struct pm_dispatch *d = &picks.d[i];
        bool filter = strcmp(d->shader, "conv2d_filter_s") == 0, back = d->spec[3];
        const uint32_t *tile = &d->spec[filter ? FILTER_TILE : TILE];
        uint32_t parts = d->spec[filter ? FILTER_PARTS : PARTS];
        double groups = (double)d->groups[0] * d->groups[1] * d->groups[2];
        double terms = filter ? (double)p->n * p->oh * p->ow : (double)p->kh * p->kw
                     * (back ? p->k : p->c) / d->spec[PHASES_Y] / d->spec[PHASES_X];

        if (strcmp(d->shader, "conv2d_combine_image") == 0)
            f->partial += 2.0 * sizeof(float) * d->spec[3]
                        * (d->spec[4] ? (double)p->n * p->h * p->w * p->c
                                      : (double)p->n * p->oh * p->ow * p->k);
        if (filter && parts > 1)
            f->partial += 2.0 * sizeof(float) * parts * p->kh * p->kw * p->c * p->k;
        if (!filter && strcmp(d->shader, "conv2d_s") != 0)
            continue;
        double round = 2.0 * caps->compute_units, work = (double)tile[0] * tile[1] * terms / parts;
        f->used += groups * work;
        f->taken += (double)pm_ceil_div((size_t)groups, (size_t)round) * round * work;
    }
}

static void add_conv(const struct pm_caps *caps, const struct conv2d_params *p, struct fill *f)
{
    add_fill(caps, pm_conv2d_fwd_pick, p, f);
    if (p->c > 3)
        add_fill(caps, pm_conv2d_bwd_data_pick, p, f);
    add_fill(caps, pm_conv2d_bwd_filter_pick, p, f);
}

/* The convolutions of a training step of resnet_v1_50, which halves the image in a block's last
 * unit. */
static struct fill resnet(const struct pm_caps *caps, int n)
{
    static const int units[] = { 3, 4, 6, 3 };
    struct fill f = { 0 };
    struct conv2d_params p = shape(n, 224, 3, 64, 7, 2, 1);
    int size = 56, channels = 64;

    add_conv(caps, &p, &f);
    for (int block = 0; block < 4; block++)
        for (int unit = 0; unit < units[block]; unit++) {
            int wide = 256 << block, stride = block < 3 && unit == units[block] - 1 ? 2 : 1;
            if (channels != wide) {
                p = shape(n, size, channels, wide, 1, stride, 1);
                add_conv(caps, &p, &f);
            }
            p = shape(n, size, channels, wide / 4, 1, 1, 1);
            add_conv(caps, &p, &f);
            p = shape(n, size, wide / 4, wide / 4, 3, stride, 1);
            add_conv(caps, &p, &f);
            size /= stride;
            p = shape(n, size, wide / 4, wide, 1, 1, 1);
            add_conv(caps, &p, &f);
            channels = wide;
        }
    p = shape(n, 1, 2048, 1000, 1, 1, 1);
    add_conv(caps, &p, &f);
    return f;
}

static void test_fill(void **state)
{
    static const uint32_t units[] = { 28, 36, 60, 96, 132 };
    static const struct { int batch; double percent; } bars[] = { { 32, 85 }, { 8, 75 } };

    (void)state;
    for (enum pm_class class = PM_CLASS_AMD_RDNA; class <= PM_CLASS_INTEL; class++)
        for (size_t b = 0; b < PM_COUNT(bars); b++)
            for (size_t u = 0; u < PM_COUNT(units); u++) {
                struct pm_caps caps = caps_of(class);
                caps.compute_units = units[u];
                struct fill f = resnet(&caps, bars[b].batch);
                double percent = 100 * f.used / f.taken;
                print_message("class %d, batch %d, %3u units: rounds %.1f %% full, %.2f GB of "
                              "partial sums\n", (int)class, bars[b].batch, units[u], percent,
                              f.partial * 1e-9);
                assert_true(percent >= bars[b].percent);
                assert_true(f.partial <= 1.3e9);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv2d), cmocka_unit_test(test_depthwise),
        cmocka_unit_test(test_bias_grad), cmocka_unit_test(test_fill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
