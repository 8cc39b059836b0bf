/* fake_quant: y = x rounded to eight bits (quantize_rows.h): integers 0..255 of a range that the
 * layer keeps. So a net is trained with the effects of integer arithmetic. In training the range is
 * the moving average of the batches' smallest and largest values, including this batch. The initial
 * values have no weight (TensorFlow's zero_debias). In the first delay - 1 steps of training y = x,
 * while the range is tracked. Evaluation uses the stored range. It rounds half a step to the even
 * step, as runtimes of exported nets do.
 *
 * Backward: dx = dy inside the range, 0 outside; the range gets no gradient. Variables, named as in
 * TensorFlow's tools: min, max, SCOPE/min/biased, SCOPE/min/local_step and the same for max. */
#include "layers/quantize_rows.h"

#include <math.h>

#include "layers/infer.h"
#include "onnx/export_nodes.h"

struct fake_quant_cfg {
    double decay;
    float min, max;
    int delay;
    bool symmetric;
};

extern const struct pm_layer pm_layer_fake_quant;

static const struct pm_opt opts[] = {
    PM_DOUBLE(fake_quant_cfg, decay, 0.999, 0.1, 0.9999999, "decay of the range per step"),
    PM_FLOAT(fake_quant_cfg, min, 0, -1e6, 0, "initial lower end of the range"),
    PM_FLOAT(fake_quant_cfg, max, 6, 0, 1e6, "initial upper end of the range"),
    PM_INT(fake_quant_cfg, delay, 0, 0, 1 << 30,
           "first training step (from 1) that quantises; 0: the first"),
    PM_BOOL(fake_quant_cfg, symmetric, false, "the range reaches as far below 0 as above"),
    { 0 },
};

enum { MIN, MAX, MIN_BIASED, MAX_BIASED, MIN_STEPS, MAX_STEPS, RANGES };
enum { GRID, STATE };

static int infer(struct pm_node *n)
{
    static const char *const averages[] = { "min/biased", "max/biased", "min/local_step",
                                            "max/local_step" };
    const struct fake_quant_cfg *cfg = n->cfg;
    const struct pm_shape scalar = { 0 };
    const struct pm_init low = { PM_INIT_CONSTANT, cfg->min },
                         high = { PM_INIT_CONSTANT, cfg->max };
    const struct pm_init zero = { PM_INIT_CONSTANT, 0 };
    const struct pm_node *owner = n;
    struct pm_str name = { 0 };
    int err = PM_OK;

    PM_TRY(pm_need_floats(n, 0, 0));
    PM_TRY(pm_node_variable(n, "min", scalar, low, 1, 1, false, false));
    PM_TRY(pm_node_variable(n, "max", scalar, high, 1, 1, false, false));
    while (owner->share)
        owner = owner->share;
    for (size_t i = 0; i < PM_COUNT(averages); i++) {
        pm_str_free(&name);
        pm_str_add(&name, "%s/%s", owner->scope, averages[i]);
        PM_TRY(pm_node_variable(n, name.text, scalar, zero, 1, 1, false, false));
    }
    for (int i = 0; i < RANGES; i++)
        pm_node_late(n, i);
    PM_TRY(pm_infer_same(n));
out:
    pm_str_free(&name);
    return err;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct fake_quant_cfg *cfg = n->cfg;
    struct pm_tensor low = n->w[MIN], high = n->w[MAX];

    if (n->train) {
        const struct quant_track_params p = { (float)(1 - cfg->decay), (float)-log(cfg->decay) };
        const struct pm_tensor range = pm_quant_range(c, n->x, cfg->symmetric, false);

        low = pm_save(c, n, STATE, PM_SHAPE1(STATE_SIZE), PM_F32);
        high = PM_NO_TENSOR;
        pm_call(c, &pm_row_quant_track, 2, &p,
                PM_BUFS(range, n->w[MIN_BIASED], n->w[MAX_BIASED], n->w[MIN_STEPS], n->w[MAX_STEPS],
                        low));
    }
    n->saved[GRID] = pm_quant_grid(c, low, high, false, n->train ? cfg->delay : 0);
    pm_quant_forward(c, n->x, n->saved[GRID], n->train ? PM_QUANT_TRAINING : PM_QUANT_RUNTIME,
                     n->y);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    if (pm_has(n->dx))
        pm_quant_backward(c, n->x, n->saved[GRID], n->dy, n->dx);
}

static void update(struct pm_node *n, struct pm_calls *c, struct pm_tensor flag)
{
    const struct quant_params p = { .count = STATE_SIZE };

    if (n->train)
        pm_call(c, &pm_row_quant_keep, 1, &p,
                PM_BUFS(n->saved[STATE], flag, n->w[MIN], n->w[MAX], n->w[MIN_BIASED],
                        n->w[MAX_BIASED], n->w[MIN_STEPS], n->w[MAX_STEPS]));
}

const struct pm_node *pm_quant_source(const struct pm_node *n)
{
    while (n->layer->copies_values)
        n = n->in[0];
    return n->layer == &pm_layer_fake_quant ? n : NULL;
}

struct pm_tensor pm_quant_source_grid(const struct pm_node *source)
{
    return source->saved[GRID];
}

bool pm_quant_range_steps(const struct pm_node *n, struct pm_export *g, struct pm_quant_steps *out)
{
    const struct pm_node *source = pm_quant_source(n);
    float low, high;

    if (!source || !pm_export_read(g, source, MIN, &low) || !pm_export_read(g, source, MAX, &high))
        return false;
    *out = pm_quant_steps(low, high, false);
    return true;
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    struct pm_quant_steps s;

    return pm_quant_range_steps(n, g, &s) ? pm_quant_export(g, pm_export_x(g, n, 0), &s)
                                   : pm_export_x(g, n, 0);
}

const struct pm_layer pm_layer_fake_quant = {
    .name = "fake_quant",
    .help = "simulates 8-bit quantisation with a range that follows the values",
    .opts = opts,
    .cfg_size = sizeof(struct fake_quant_cfg),
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .update = update,
    .onnx = onnx,
};
