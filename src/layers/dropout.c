/* dropout: y = x / keep where floor(keep + U) = 1, else 0; in evaluation y = x.
 *
 * U is a function of (seed, step, layer's name, row in the whole batch, element). So a mask is the
 * same on every device and in every clone, and is not stored. The backward call recomputes the
 * mask; it is the same row with dy for x. */
#include <pumice/layer.h>

#include "dropout.params.h"
#include "onnx/export_nodes.h"
#include "layers/vmath.h"

struct dropout_cfg { float keep; };

static const struct pm_opt opts[] = {
    PM_FLOAT(dropout_cfg, keep, 0.5, 1e-3, 1, "probability that a value is kept"),
    { 0 },
};

/* Items are blocks of four elements of one row. The last block of a row may have fewer. */
static size_t blocks_of(const struct dropout_params *p)
{
    return ((size_t)p->per_row + 3) / 4;
}

enum { LANES = 32 }; /* too many to unroll: unrolled loops would not be vectorised */

PM_INLINE float factor_of(float keep, float scale, uint32_t word)
{
    float u = (float)(int)(word >> 8) * 0x1p-24f;
    return (float)(keep + u >= 1) * scale;
}

/* Computes Philox4x32-10 of LANES blocks at a time, starting at counter. The rounds of pm_philox
 * are a loop over lanes. Writes factors of 4 * LANES elements: scale or 0. */
PM_INLINE void factors(const struct dropout_params *p, const uint32_t counter[4],
                       const uint32_t key[2], float factor[4 * LANES])
{
    float keep = p->keep, scale = p->scale;
    uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];

    for (uint32_t k = 0; k < LANES; k++)
        c0[k] = counter[0] + k, c1[k] = counter[1], c2[k] = counter[2], c3[k] = counter[3];
    for (uint32_t round = 0, k0 = key[0], k1 = key[1]; round < 10; round++) {
        for (int k = 0; k < LANES; k++) {
            uint64_t a = (uint64_t)c0[k] * 0xd2511f53, b = (uint64_t)c2[k] * 0xcd9e8d57;

            c0[k] = (uint32_t)(b >> 32) ^ c1[k] ^ k0;
            c1[k] = (uint32_t)b;
            c2[k] = (uint32_t)(a >> 32) ^ c3[k] ^ k1;
            c3[k] = (uint32_t)a;
        }
        k0 += 0x9e3779b9;
        k1 += 0xbb67ae85;
    }
    for (int k = 0; k < LANES; k++) {
        factor[4 * k] = factor_of(keep, scale, c0[k]);
        factor[4 * k + 1] = factor_of(keep, scale, c1[k]);
        factor[4 * k + 2] = factor_of(keep, scale, c2[k]);
        factor[4 * k + 3] = factor_of(keep, scale, c3[k]);
    }
}

PM_CLONES static void mask_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct dropout_params *p = a->params;
    const float *x = a->buf[0];
    const struct pm_step *step = a->buf[1];
    float *y = a->buf[2], factor[4 * LANES];
    size_t per = (size_t)p->per_row, blocks = blocks_of(p);
    const uint32_t key[2] = { step->seed_low ^ p->stream_low, step->seed_high };

    for (size_t i = begin, run; i < end; i += run) {
        size_t row = i / blocks, block = i % blocks, at = row * per + 4 * block;
        const uint32_t counter[4] = { (uint32_t)block, (uint32_t)(p->first_row + row),
                                      step->step, p->stream_high };

        run = blocks - block < LANES ? blocks - block : LANES;
        run = end - i < run ? end - i : run;
        factors(p, counter, key, factor);
        size_t width = per - 4 * block < 4 * run ? per - 4 * block : 4 * run;
        PM_SIMD
        for (size_t k = 0; k < width; k++)
            y[at + k] = factor[k] != 0 ? x[at + k] * factor[k] : 0;
    }
}

static double flops(const void *params, size_t count)
{
    (void)params;
    return 100.0 * (double)count; /* ten rounds of integer arithmetic */
}

static const struct pm_kernel mask = {
    .name = "dropout", .bufs = "r:x r:step w:y", .inplace = "y=x",
    .params_size = sizeof(struct dropout_params), .cpu = mask_cpu, .flops = flops,
};

static void call(const struct pm_node *n, struct pm_calls *c, struct pm_tensor x,
                 struct pm_tensor y)
{
    const struct dropout_cfg *cfg = n->cfg;
    struct dropout_params p = { .rows = x.shape.dim[0], .first_row = pm_first_row(c, n),
                                .keep = cfg->keep, .scale = 1 / cfg->keep };
    uint32_t stream[2];

    pm_stream(n, stream);
    p.stream_low = stream[0];
    p.stream_high = stream[1];
    p.per_row = (int)(pm_count(x) / (size_t)p.rows);
    pm_call(c, &mask, blocks_of(&p) * (size_t)p.rows, &p, PM_BUFS(x, pm_step_tensor(c), y));
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    if (n->train)
        call(n, c, n->x, n->y);
    else
        n->y = n->x;
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    if (!n->train)
        n->dxs[0] = n->dy;
    else if (pm_has(n->dx))
        call(n, c, n->dy, n->dx);
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const float keep = ((const struct dropout_cfg *)n->cfg)->keep;
    const char *x = pm_export_x(g, n, 0);

    return pm_export_is_training(g) && keep < 1 ? pm_export_dropped(g, x, x, keep) : x;
}

const struct pm_layer pm_layer_dropout = {
    .name = "dropout", .help = "in training, sets random values to 0 and multiplies the others by "
                               "1 / keep",
    .opts = opts, .cfg_size = sizeof(struct dropout_cfg), .copies_values = true,
    .infer = pm_infer_same, .forward = forward, .backward = backward, .onnx = onnx,
};
