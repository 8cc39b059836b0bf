/* multiply: y = a b, element by element. b may be [n, 1, 1, c] for an a of [n, h, w, c], like the
 * gate of squeeze-and-excitation. Backward: da = dy b; db = dy a, summed over the pixels that share
 * b's value. */
#include <pumice/layer.h>

#include "layers/binary.h"
#include "onnx/export_nodes.h"
#include "device/pick.h"
#include "layers/vmath.h"
#include "multiply.params.h"

static const struct pm_opt opts[] = { { 0 } };

/* Items: pixels of all images. */
PM_CLONES static void fwd_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct multiply_params *p = args->params;
    const float *a = args->buf[0], *b = args->buf[1];
    float *y = args->buf[2];
    int c = p->c;

    for (size_t i = begin; i < end; i++) {
        const float *gate = b + (p->broadcast ? i / p->pixels : i) * c;

        PM_SIMD
        for (int k = 0; k < c; k++)
            y[i * c + k] = a[i * c + k] * gate[k];
    }
}

enum { BLOCK = 32, CHANNELS = 64 };

/* Items: images. */
PM_CLONES static void sum_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct multiply_params *p = args->params;
    float part[CHANNELS];
    int c = p->c;

    for (size_t i = begin; i < end; i++)
        for (int first = 0; first < c; first += CHANNELS) {
            int width = c - first < CHANNELS ? c - first : CHANNELS;
            float *out = (float *)args->buf[2] + i * c + first;

            memset(out, 0, sizeof *out * width);
            for (int block = 0; block < p->pixels; block += BLOCK) {
                int stop = block + BLOCK < p->pixels ? block + BLOCK : p->pixels;

                memset(part, 0, sizeof part);
                for (int pixel = block; pixel < stop; pixel++) {
                    size_t at = (i * p->pixels + pixel) * c + first;
                    const float *a = (const float *)args->buf[0] + at;
                    const float *dy = (const float *)args->buf[1] + at;

                    for (int k = 0; k < width; k++)
                        part[k] += a[k] * dy[k];
                }
                for (int k = 0; k < width; k++)
                    out[k] += part[k];
            }
        }
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct multiply_params *p = params;
    (void)caps;
    return pick_four("multiply_fwd4", "multiply_fwd", p->c % 4 == 0, count * (size_t)p->c, 0, level,
                     out);
}

static bool sum_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct multiply_params *p = params;
    (void)caps;
    return pick_four("multiply_sum4", "multiply_sum", p->c % 4 == 0, count * (size_t)p->c, 0, level,
                     out);
}

static double flops(const void *params, size_t count)
{
    const struct multiply_params *p = params;
    (void)count;
    return (double)p->n * p->pixels * p->c;
}

static const struct pm_kernel fwd = {
    .name = "multiply_fwd", .bufs = "r:a r:b w:y", .inplace = "y=a",
    .params_size = sizeof(struct multiply_params), .cpu = fwd_cpu, .grain = 32, .pick = fwd_pick,
    .flops = flops,
};
static const struct pm_kernel sum = {
    .name = "multiply_sum", .bufs = "r:a r:dy w:db", .params_size = sizeof(struct multiply_params),
    .cpu = sum_cpu, .grain = 1, .pick = sum_pick, .flops = flops,
};

static bool gates(struct pm_shape a, struct pm_shape b)
{
    return a.rank == 4 && b.rank == 4 && b.dim[0] == a.dim[0] && b.dim[1] == 1 && b.dim[2] == 1 &&
           b.dim[3] == a.dim[3];
}

/* Whether the rows of this file support the shapes. */
static bool ours(const struct pm_node *n)
{
    struct pm_shape a = n->in[0]->out_shape, b = n->in[1]->out_shape;

    return gates(a, b) || (pm_shape_equal(a, b) && a.rank > 0);
}

static int infer(struct pm_node *n)
{
    return ours(n) ? pm_infer_same(n) : pm_binary_infer(n);
}

static struct multiply_params params_of(const struct pm_node *n)
{
    struct pm_shape a = n->xs[0].shape, b = n->xs[1].shape;
    int c = a.dim[a.rank - 1], rows = (int)(pm_count(n->x) / (size_t)c);
    bool same = pm_shape_equal(a, b);

    return (struct multiply_params){ .n = same ? rows : a.dim[0],
                                     .pixels = same ? 1 : rows / a.dim[0], .c = c,
                                     .broadcast = !same };
}

static void product(struct pm_calls *c, const struct multiply_params *p, struct pm_tensor a,
                    struct pm_tensor b, struct pm_tensor y)
{
    pm_call(c, &fwd, (size_t)p->n * p->pixels, p, PM_BUFS(a, b, y));
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    struct multiply_params p = params_of(n);

    if (ours(n))
        product(c, &p, n->xs[0], n->xs[1], n->y);
    else
        pm_binary_forward(n, c, PM_BINARY_MULTIPLY);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    struct multiply_params p = params_of(n);

    if (!ours(n)) {
        pm_binary_backward(n, c, PM_BINARY_MULTIPLY);
        return;
    }
    if (pm_has(n->dxs[1]) && p.broadcast)
        pm_call(c, &sum, (size_t)p.n, &p, PM_BUFS(n->xs[0], n->dy, n->dxs[1]));
    else if (pm_has(n->dxs[1]))
        product(c, &p, n->dy, n->xs[0], n->dxs[1]);
    if (pm_has(n->dxs[0]))
        product(c, &p, n->dy, n->xs[1], n->dxs[0]);
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    return pm_export_op(g, "Mul", PM_VALUES(pm_binary_export(n, g, 0), pm_binary_export(n, g, 1)));
}

const struct pm_layer pm_layer_multiply = {
    .name = "multiply", .help = "product of two inputs; axes of size 1 are repeated (broadcast)",
    .opts = opts, .cfg_size = 4, .min_inputs = 2, .max_inputs = 2, .infer = infer,
    .forward = forward, .backward = backward, .onnx = onnx,
};
