/* dropout: y = x / keep where floor(keep + U) = 1, else 0; in evaluation y = x.
 *
 * U is a function of (seed, step, layer's name, example in the whole batch, element), so a mask is
 * the same on every device, whichever clone computes it, and is not stored: the backward call makes
 * it anew and is the same row with dy for x. */
#include <pumice/layer.h>
#include <pumice/rng.h>

#include "dropout.params.h"

struct dropout_cfg { float keep; };

static const struct pm_opt opts[] = {
    PM_FLOAT(dropout_cfg, keep, 0.5, 1e-3, 1, "share of the values that stay"),
    { 0 },
};

/* Items are blocks of four elements of one example; the last of an example may hold fewer. */
static size_t blocks_of(const struct dropout_params *p)
{
    return ((size_t)p->per_example + 3) / 4;
}

static void mask_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct dropout_params *p = a->params;
    const float *x = a->buf[0];
    const struct pm_step *step = a->buf[1];
    float *y = a->buf[2];
    size_t per = (size_t)p->per_example, blocks = blocks_of(p);
    uint32_t key[2] = { step->seed_low ^ p->stream_low, step->seed_high };

    for (size_t i = begin; i < end; i++) {
        size_t block = i % blocks, first = i / blocks * per + 4 * block;
        size_t width = per - 4 * block < 4 ? per - 4 * block : 4;
        uint32_t counter[4] = { (uint32_t)block, (uint32_t)(p->first_example + i / blocks),
                                step->step, p->stream_high };
        uint32_t word[4];

        pm_philox(counter, key, word);
        for (size_t k = 0; k < width; k++) {
            float u = (float)(word[k] >> 8) * 0x1p-24f;
            y[first + k] = p->keep + u >= 1 ? x[first + k] * p->scale : 0;
        }
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

static void call(const struct pm_node *n, struct pm_calls *c, struct pm_tensor x, struct pm_tensor y)
{
    const struct dropout_cfg *cfg = n->cfg;
    struct dropout_params p = { .examples = x.shape.dim[0], .first_example = pm_first_example(c),
                                .keep = cfg->keep, .scale = 1 / cfg->keep };
    uint32_t stream[2];

    pm_stream(n, stream);
    p.stream_low = stream[0];
    p.stream_high = stream[1];
    p.per_example = (int)(pm_count(x) / (size_t)p.examples);
    pm_call(c, &mask, blocks_of(&p) * (size_t)p.examples, &p, PM_BUFS(x, pm_step_tensor(c), y));
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

const struct pm_layer pm_layer_dropout = {
    .name = "dropout", .help = "random values become 0 in training, the others grow by 1 / keep",
    .opts = opts, .cfg_size = sizeof(struct dropout_cfg),
    .infer = pm_infer_same, .forward = forward, .backward = backward,
};
