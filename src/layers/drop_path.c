/* drop_path: in training, whole rows become 0 and the others are multiplied by 1 / k, where k is
 * the keep probability. In evaluation y = x. k falls with the step, k = 1 - (1 - keep) * min(1,
 * step / steps), or is keep if steps is 0. A second input is added to the result.
 *
 * As in dropout, a row's random number is a function of (seed, step, layer's name, row in the whole
 * batch). So a mask is the same on every device and is not stored. The backward call is the same
 * row with dy for x. */
#include <pumice/layer.h>
#include <pumice/rng.h>

#include "drop_path.params.h"
#include "layers/dispatches.h"
#include "onnx/export_nodes.h"
#include "layers/infer.h"
#include "layers/vmath.h"

struct drop_path_cfg {
    double keep; /* double, because 1 - keep is used */
    int steps;
};

static const struct pm_opt opts[] = {
    PM_DOUBLE(drop_path_cfg, keep, 0.9, 1e-3, 1, "final probability that an example is kept"),
    PM_INT(drop_path_cfg, steps, 0, 0, 1 << 30,
           "steps over which the probability falls from 1 to keep; 0: keep from the start"),
    { 0 },
};

static float factor_of(const struct drop_path_params *p, const struct pm_step *step, size_t row)
{
    const float dropped =
        step->step < (uint32_t)p->steps ? p->rate * (float)step->step : p->drop;
    const uint32_t counter[4] = { 0, (uint32_t)(p->first_row + row), step->step,
                                  p->stream_high };
    const uint32_t key[2] = { step->seed_low ^ p->stream_low, step->seed_high };
    uint32_t word[4];

    pm_philox(counter, key, word);
    return (float)(int)(word[0] >> 8) * 0x1p-24f >= dropped ? 1 / (1 - dropped) : 0;
}

PM_CLONES static void scale_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct drop_path_params *p = a->params;
    const float *x = a->buf[0], *residual = a->buf[2];
    float *y = a->buf[3];
    size_t per = (size_t)p->per_row;

    for (size_t i = begin, run; i < end; i += run) {
        float factor = factor_of(p, a->buf[1], i / per);

        run = per - i % per < end - i ? per - i % per : end - i;
        if (residual) {
            PM_SIMD
            for (size_t k = i; k < i + run; k++)
                y[k] = (factor != 0 ? x[k] * factor : 0) + residual[k];
        } else {
            PM_SIMD
            for (size_t k = i; k < i + run; k++)
                y[k] = factor != 0 ? x[k] * factor : 0;
        }
    }
}

/* Groups of 64 lanes within one row, four values per lane. */
static bool pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                 struct pm_picks *out)
{
    const struct drop_path_params *p = params;
    const bool four = p->per_row % 4 == 0;
    const int wide = four && level == 0 ? 4 : 1;
    size_t groups = (size_t)p->rows * pm_ceil_div((size_t)p->per_row, 256 * (size_t)wide);

    (void)caps;
    (void)count;
    if (level > (four ? 1 : 0))
        return false;
    *out = (struct pm_picks){ .variant = wide == 4 ? "drop_path4" : "drop_path" };
    pm_pick_add(out, out->variant, 64, 1)->groups[0] =
        groups < PM_GRID_MAX ? (uint32_t)groups : PM_GRID_MAX;
    return true;
}

static const struct pm_kernel scale = {
    .name = "drop_path", .bufs = "r:x r:step r?:residual w:y", .inplace = "y=x",
    .params_size = sizeof(struct drop_path_params), .cpu = scale_cpu, .pick = pick,
};

static int infer(struct pm_node *n)
{
    char a[64], b[64];

    if (n->inputs > 1 && !pm_shape_equal(n->in[0]->out_shape, n->in[1]->out_shape))
        return pm_fail(PM_ECONFIG, "%s: the second input has shape %s, but the first %s", n->name,
                       pm_shape_text(n->in[1]->out_shape, a),
                       pm_shape_text(n->in[0]->out_shape, b));
    return pm_infer_same(n);
}

static bool acts(const struct pm_node *n)
{
    return n->train && ((const struct drop_path_cfg *)n->cfg)->keep < 1;
}

static void call(const struct pm_node *n, struct pm_calls *c, struct pm_tensor x,
                 struct pm_tensor residual, struct pm_tensor y)
{
    const struct drop_path_cfg *cfg = n->cfg;
    const double drop = acts(n) ? 1 - cfg->keep : 0;
    struct drop_path_params p = {
        .rows = x.shape.dim[0], .first_row = pm_first_row(c, n), .steps = cfg->steps,
        .drop = (float)drop, .rate = cfg->steps ? (float)(drop / cfg->steps) : 0,
    };
    uint32_t stream[2];

    pm_stream(n, stream);
    p.stream_low = stream[0];
    p.stream_high = stream[1];
    p.per_row = (int)(pm_count(x) / (size_t)p.rows);
    pm_call(c, &scale, pm_count(x), &p, PM_BUFS(x, pm_step_tensor(c), residual, y));
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    if (acts(n) || n->inputs > 1)
        call(n, c, n->x, n->inputs > 1 ? n->xs[1] : PM_NO_TENSOR, n->y);
    else
        n->y = n->x;
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    if (n->inputs > 1 && pm_has(n->dxs[1]))
        n->dxs[1] = n->dy;
    if (!acts(n))
        n->dxs[0] = n->dy;
    else if (pm_has(n->dx))
        call(n, c, n->dy, PM_NO_TENSOR, n->dx);
}

/* One random number per example. ONNX has no step: keep is that of the end of the ramp. */
static const char *dropped(const struct pm_node *n, struct pm_export *g, const char *x)
{
    static const int64_t axes[] = { 1, 2, 3 };
    const char *like = x;

    if (n->out_shape.rank > 1) { /* for its shape, [N, 1, 1, 1] */
        like = pm_export_op(g, "ReduceMean", PM_VALUES(x));
        pm_export_ints(g, "axes", n->out_shape.rank - 1, axes);
    }
    return pm_export_dropped(g, x, like, (float)((const struct drop_path_cfg *)n->cfg)->keep);
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const char *x = pm_export_x(g, n, 0);

    if (pm_export_is_training(g) && ((const struct drop_path_cfg *)n->cfg)->keep < 1)
        x = dropped(n, g, x);

    return n->inputs > 1 ? pm_export_op(g, "Add", PM_VALUES(x, pm_export_x(g, n, 1))) : x;
}

const struct pm_layer pm_layer_drop_path = {
    .name = "drop_path", .opts = opts, .cfg_size = sizeof(struct drop_path_cfg),
    .help = "in training, sets random examples to 0 and multiplies the others by 1 / keep; adds a "
            "second input",
    .min_inputs = 1, .max_inputs = 2, .infer = infer, .forward = forward, .backward = backward,
    .onnx = onnx,
};
