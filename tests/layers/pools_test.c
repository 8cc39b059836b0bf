/* max_pool, avg_pool and global_pool by their definitions: windows skip cells outside the image. */
#include "conv_ref.h"

struct geometry {
    int kernel[2], stride[2], dilation[2], before[2], after[2], out[2];
};

/* With ceil the number of windows is rounded up, but a window that begins after the image's last
 * cell is left out. */
static struct geometry geometry_of(const struct ref *r)
{
    struct geometry g;
    double pad[4] = { 0 };

    ref_numbers(r, "pad", pad, 4);
    for (int i = 0; i < 2; i++) {
        const int in = r->in[0].shape.dim[1 + i];

        g.kernel[i] = ref_pair(r, "kernel", i, 2);
        g.stride[i] = ref_pair(r, "stride", i, 2);
        g.dilation[i] = ref_pair(r, "dilation", i, 1);
        g.after[i] = (int)pad[2 * i + 1];
        g.out[i] = ref_window(r, "valid", in, g.kernel[i], g.stride[i], g.dilation[i],
                              (int)pad[2 * i], g.after[i], &g.before[i]);
        if (ref_says(r, "padding", "same", "valid"))
            g.after[i] =
                (int)fmax(0, (g.out[i] - 1) * g.stride[i] + g.kernel[i] - in - g.before[i]);
        if (ref_says(r, "ceil", "true", "false")) {
            const double room =
                in + pad[2 * i] + pad[2 * i + 1] - g.dilation[i] * (g.kernel[i] - 1) - 1;

            g.out[i] = (int)ceil(room / g.stride[i]) + 1;
            if ((g.out[i] - 1) * g.stride[i] - g.before[i] >= in)
                g.out[i]--;
        }
    }
    return g;
}

/* The output at (n, oy, ox, c): the maximum or the mean of the cells inside the image. */
static void window(const struct ref *r, const struct geometry *g, int at[4], int maximum)
{
    const struct ref_array *x = &r->in[0];
    const size_t to = ref_at(&r->y, at[0], at[1], at[2], at[3]);
    double best = -INFINITY, sum = 0, mag = 0;
    const int count_pad = ref_says(r, "count_pad", "true", "false");
    int cells = 0;

    for (int u = 0; u < g->kernel[0]; u++)
        for (int v = 0; v < g->kernel[1]; v++) {
            const int iy = at[1] * g->stride[0] - g->before[0] + u * g->dilation[0];
            const int ix = at[2] * g->stride[1] - g->before[1] + v * g->dilation[1];

            cells += count_pad && iy < x->shape.dim[1] + g->after[0] &&
                     ix < x->shape.dim[2] + g->after[1];
            if (iy < 0 || ix < 0 || iy >= x->shape.dim[1] || ix >= x->shape.dim[2])
                continue;
            const double value = x->v[ref_at(x, at[0], iy, ix, at[3])];
            best = fmax(best, value);
            sum += value;
            mag += fabs(value);
            cells += !count_pad;
        }
    r->y.v[to] = maximum ? best : sum / cells;
    r->y.mag[to] = maximum ? 0 : mag / cells;
}

static void pool(struct ref *r, int maximum)
{
    const struct geometry g = geometry_of(r);
    const int *d = r->in[0].shape.dim;
    int at[4];

    ref_output(r, PM_SHAPE4(d[0], g.out[0], g.out[1], d[3]));
    for (at[0] = 0; at[0] < d[0]; at[0]++)
        for (at[1] = 0; at[1] < g.out[0]; at[1]++)
            for (at[2] = 0; at[2] < g.out[1]; at[2]++)
                for (at[3] = 0; at[3] < d[3]; at[3]++)
                    window(r, &g, at, maximum);
}

static void max_pool(struct ref *r)
{
    pool(r, 1);
}

static void avg_pool(struct ref *r)
{
    pool(r, 0);
}

static void global_pool(struct ref *r)
{
    const struct ref_array *x = &r->in[0];
    const int *d = x->shape.dim, pixels = d[1] * d[2];

    ref_output(r, PM_SHAPE4(d[0], 1, 1, d[3]));
    for (size_t i = 0; i < x->count; i++) {
        const size_t to = i / d[3] / pixels * d[3] + i % d[3];
        r->y.v[to] += x->v[i] / pixels;
        r->y.mag[to] += fabs(x->v[i]) / pixels;
    }
}

#define CASES(layer)                                                                               \
    { layer, "2x6x8x4", .train = true },                                                           \
    { layer " kernel=3 stride=2 padding=same", "2x7x6x3", .train = true },                         \
    { layer " kernel=3 stride=1 padding=same", "1x5x4x8", .train = true },                         \
    { layer " kernel=3 stride=2", "2x9x7x5", .train = true },                                      \
    { layer " kernel=[1,4] stride=[2,1] padding=same", "1x5x6x2", .train = true },                 \
    { layer " kernel=1 stride=2", "2x5x6x4", .train = true }, /* gaps between windows */           \
    { layer " kernel=[5,3] stride=3 padding=same", "1x2x2x1", .train = true },                     \
    { layer " kernel=3 stride=2 padding=same", "3x12x11x16", .no_gradient = 1 },                   \
    { layer " kernel=3 padding=explicit pad=[1,1,1,1]", "2x8x9x4", .train = true },                \
    { layer " kernel=3 padding=explicit pad=[1,0,2,1]", "2x7x6x3", .train = true },                \
    { layer " kernel=3 ceil=true", "2x6x8x5", .train = true },                                     \
    { layer " kernel=2 ceil=true", "1x5x6x4", .train = true },                                     \
    { layer " kernel=2 stride=3 ceil=true padding=explicit pad=[1,1,0,1]", "1x5x6x3",              \
      .train = true },                                                                             \
    { layer " kernel=3 padding=explicit pad=[1,1,1,1]", "8x112x112x64", .train = true,             \
      .large = true },                                                                             \
    { layer " kernel=3 stride=2 padding=same", "6x112x112x64", .train = true, .large = true },    \
    { layer " kernel=2 stride=2", "4x64x64x33", .train = true, .large = true },                  \
    { layer " kernel=3 stride=1 padding=same", "4x35x35x288", .train = true, .large = true }

static const struct check_case max_cases[] = {
    CASES("max_pool"),
    { "max_pool kernel=3 stride=1 dilation=2", "2x7x8x4", .train = true },
    { "max_pool kernel=[4,3] stride=2 dilation=[2,2] padding=same", "1x7x9x3", .train = true },
    { "max_pool kernel=3 stride=2 dilation=2 padding=explicit pad=[2,1,2,2] ceil=true", "1x7x8x4",
      .train = true },
    { 0 },
};
static const struct check_case avg_cases[] = {
    CASES("avg_pool"),
    { "avg_pool kernel=3 count_pad=true padding=explicit pad=[1,1,1,1]", "2x8x9x4" },
    { "avg_pool kernel=3 count_pad=true padding=explicit pad=[1,0,2,1] ceil=true", "2x7x6x3" },
    { "avg_pool kernel=3 stride=1 count_pad=true padding=same", "2x5x6x3" },
    { "avg_pool kernel=2 stride=3 ceil=true count_pad=true", "1x7x6x3" },
    { 0 },
};
static const struct check_case global_cases[] = {
    { "global_pool", "2x3x5x4" },
    { "global_pool", "1x1x1x1" },
    { "global_pool", "3x7x7x10" },
    { "global_pool", "2x9x8x67" },
    { "global_pool", "16x7x7x2048", .large = true },
    { "global_pool", "4x65x65x129", .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_max_pool = { max_cases, max_pool };
const struct pm_layer_test pm_test_avg_pool = { avg_cases, avg_pool };
const struct pm_layer_test pm_test_global_pool = { global_cases, global_pool };
