/* softmax: y = exp(x - max) / sum of exp(x - max) over the last axis.
 * Backward: dx = y (dy - sum of dy y).
 * log_softmax: y = x - max - log of the sum; dx = dy - exp(y) sum of dy. */
#include <pumice/layer.h>

#include "onnx/export_nodes.h"
#include "device/pick.h"
#include "layers/vmath.h"
#include "softmax.params.h"

static const struct pm_opt opts[] = { { 0 } };

/* Returns the sum of e^(x - largest), 64 terms at a time. */
PM_INLINE float exp_sum(const float *x, int k, float largest)
{
    enum { WIDTH = 64 };
    float part[WIDTH], sum = 0;

    for (int i = 0; i < k; i += WIDTH) {
        const int n = k - i < WIDTH ? k - i : WIDTH;

        for (int j = 0; j < n; j++)
            part[j] = pm_expf(x[i + j] - largest);
        sum += pm_row_sum(part, n);
    }
    return sum;
}

PM_CLONES static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct softmax_params *p = a->params;
    int k = p->k;

    for (size_t row = begin; row < end; row++) {
        const float *x = (const float *)a->buf[0] + row * k;
        float *y = (float *)a->buf[1] + row * k, largest = pm_row_max(x, k), scale;

        if (p->logarithm) {
            const float shift = largest + logf(exp_sum(x, k, largest));

            for (int i = 0; i < k; i++)
                y[i] = x[i] - shift;
            continue;
        }
        PM_SIMD
        for (int i = 0; i < k; i++)
            y[i] = pm_expf(x[i] - largest);
        scale = 1 / pm_row_sum(y, k);
        for (int i = 0; i < k; i++)
            y[i] *= scale;
    }
}

PM_CLONES static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct softmax_params *p = a->params;
    int k = p->k;

    for (size_t row = begin; row < end; row++) {
        const float *y = (const float *)a->buf[0] + row * k,
                    *dy = (const float *)a->buf[1] + row * k;
        float *dx = (float *)a->buf[2] + row * k, dot = 0;

        if (p->logarithm) {
            const float sum = pm_row_sum(dy, k);

            PM_SIMD
            for (int i = 0; i < k; i++)
                dx[i] = dy[i] - pm_expf(y[i]) * sum;
            continue;
        }
        for (int i = 0; i < k; i++)
            dot += dy[i] * y[i];
        PM_SIMD
        for (int i = 0; i < k; i++)
            dx[i] = y[i] * (dy[i] - dot);
    }
}

static bool pick(const char *wide, const char *name, const struct softmax_params *p, size_t rows,
                 int level, struct pm_picks *out)
{
    if (!pick_wide(wide, name, rows, p->k, level, out))
        return false;
    out->d[0].spec[3] = (uint32_t)p->logarithm;
    out->d[0].specs = 4;
    return true;
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct softmax_params *p = params;
    (void)caps;
    return pick("softmax_fwd_wide", "softmax_fwd", p, count, level, out);
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct softmax_params *p = params;
    (void)caps;
    return pick("softmax_bwd_wide", "softmax_bwd", p, count, level, out);
}

static double flops(const void *params, size_t count)
{
    const struct softmax_params *p = params;
    return 10.0 * p->k * (double)count;
}

static const struct pm_kernel fwd = {
    .name = "softmax_fwd", .bufs = "r:x w:y", .inplace = "y=x",
    .params_size = sizeof(struct softmax_params), .cpu = fwd_cpu, .grain = 8, .pick = fwd_pick,
    .flops = flops,
};
static const struct pm_kernel bwd = {
    .name = "softmax_bwd", .bufs = "r:y r:dy w:dx", .inplace = "dx=dy",
    .params_size = sizeof(struct softmax_params), .cpu = bwd_cpu, .grain = 8, .pick = bwd_pick,
    .flops = flops,
};

static int infer(struct pm_node *n)
{
    if (n->in[0]->out_shape.rank < 1)
        return pm_fail(PM_ECONFIG, "%s: %s of a scalar: its input needs an axis of classes",
                       n->name, n->layer->name);
    return pm_infer_same(n);
}

extern const struct pm_layer pm_layer_log_softmax;

static struct softmax_params params_of(const struct pm_node *n)
{
    int k = n->x.shape.dim[n->x.shape.rank - 1];
    return (struct softmax_params){ .rows = (int)(pm_count(n->x) / (size_t)k), .k = k,
                                    .logarithm = n->layer == &pm_layer_log_softmax };
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    struct softmax_params p = params_of(n);
    pm_call(c, &fwd, (size_t)p.rows, &p, PM_BUFS(n->x, n->y));
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    struct softmax_params p = params_of(n);

    if (pm_has(n->dx))
        pm_call(c, &bwd, (size_t)p.rows, &p, PM_BUFS(n->y, n->dy, n->dx));
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const int rank = n->out_shape.rank;
    const char *y = pm_export_op(g, n->layer == &pm_layer_log_softmax ? "LogSoftmax" : "Softmax",
                                 PM_VALUES(pm_export_x(g, n, 0)));

    pm_export_int(g, "axis", pm_export_axis(rank, rank - 1));
    return y;
}

const struct pm_layer pm_layer_softmax = {
    .name = "softmax", .help = "probabilities over the last axis", .opts = opts, .cfg_size = 4,
    .infer = infer, .forward = forward, .backward = backward, .onnx = onnx,
};
const struct pm_layer pm_layer_log_softmax = {
    .name = "log_softmax", .help = "logarithms of probabilities over the last axis", .opts = opts,
    .cfg_size = 4, .infer = infer, .forward = forward, .backward = backward, .onnx = onnx,
};
