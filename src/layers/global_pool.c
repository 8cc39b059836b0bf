/* global_pool: the mean over height and width. A backward pixel gets its share of the mean's
 * gradient. */
#include "onnx/export_nodes.h"
#include "layers/infer.h"

#include "global_pool.params.h"
#include "device/pick.h"
#include "layers/vmath.h"

enum { BLOCK = 32 }; /* pixels summed before joining the total: smaller error on large maps */

PM_CLONES static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct global_pool_params *p = a->params;
    const float *x = a->buf[0];
    float *y = a->buf[1], part[64];
    int c = p->c;

    for (size_t i = begin; i < end; i++)
        for (int first = 0; first < c; first += 64) {
            int width = c - first < 64 ? c - first : 64;
            float *out = y + i * c + first;

            memset(out, 0, sizeof *out * width);
            for (int block = 0; block < p->pixels; block += BLOCK) {
                int stop = block + BLOCK < p->pixels ? block + BLOCK : p->pixels;

                memset(part, 0, sizeof part);
                for (int pixel = block; pixel < stop; pixel++) {
                    const float *from = x + (i * p->pixels + pixel) * c + first;
                    for (int k = 0; k < width; k++)
                        part[k] += from[k];
                }
                for (int k = 0; k < width; k++)
                    out[k] += part[k];
            }
            for (int k = 0; k < width; k++)
                out[k] /= (float)p->pixels;
        }
}

PM_CLONES static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct global_pool_params *p = a->params;
    const float *dy = a->buf[0];
    float *dx = a->buf[1], scale = 1.0f / (float)p->pixels;
    int c = p->c;

    for (size_t i = begin; i < end; i++) {
        const float *from = dy + i / p->pixels * c;

        PM_SIMD
        for (int k = 0; k < c; k++)
            dx[i * c + k] = from[k] * scale;
    }
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                            struct pm_picks *out)
{
    const struct global_pool_params *p = params;
    (void)caps;
    return pick_four("global_pool_fwd4", "global_pool_fwd", p->c % 4 == 0, count * p->c, 0, level,
                     out);
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                            struct pm_picks *out)
{
    const struct global_pool_params *p = params;
    (void)caps;
    return pick_four("global_pool_bwd4", "global_pool_bwd", p->c % 4 == 0, count * p->c, 0, level,
                     out);
}

static double flops(const void *params, size_t count)
{
    const struct global_pool_params *p = params;
    (void)count;
    return (double)p->n * p->pixels * p->c;
}

/* count: images (forward) and pixels of all images (backward). */
static const struct pm_kernel fwd = {
    .name = "global_pool_fwd", .bufs = "r:x w:y", .params_size = sizeof(struct global_pool_params),
    .cpu = fwd_cpu, .grain = 1, .pick = fwd_pick, .flops = flops,
};
static const struct pm_kernel bwd = {
    .name = "global_pool_bwd",
    .bufs = "r:dy w:dx",
    .params_size = sizeof(struct global_pool_params),
    .cpu = bwd_cpu,
    .grain = 64,
    .pick = bwd_pick,
    .flops = flops,
};

static int infer(struct pm_node *n)
{
    struct pm_shape x = n->in[0]->out_shape;
    char text[64];

    if (x.rank != 4)
        return pm_fail(PM_ECONFIG, "%s: global_pool needs an input of rank 4 (n, h, w, c), not %s",
                       n->name, pm_shape_text(x, text));
    n->out_shape = PM_SHAPE4(x.dim[0], 1, 1, x.dim[3]);
    n->out_type = PM_F32;
    return pm_need_floats(n, 0, 0);
}

static struct global_pool_params params_of(const struct pm_node *n)
{
    const int *d = n->x.shape.dim;
    return (struct global_pool_params){ .n = d[0], .pixels = d[1] * d[2], .c = d[3] };
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    struct global_pool_params p = params_of(n);
    pm_call(c, &fwd, (size_t)p.n, &p, PM_BUFS(n->x, n->y));
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    struct global_pool_params p = params_of(n);

    if (pm_has(n->dx))
        pm_call(c, &bwd, (size_t)p.n * p.pixels, &p, PM_BUFS(n->dy, n->dx));
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    return pm_export_op(g, "GlobalAveragePool", PM_VALUES(pm_export_x(g, n, 0)));
}

static const struct pm_opt opts[] = { { 0 } };

const struct pm_layer pm_layer_global_pool = {
    .name = "global_pool", .help = "mean over height and width, which get size 1", .opts = opts,
    .cfg_size = 4, .infer = infer, .forward = forward, .backward = backward,
    .onnx = onnx,
};
