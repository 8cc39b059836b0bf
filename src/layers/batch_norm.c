/* batch_norm: y = act((x - mean) / sqrt(var + epsilon) * gamma + beta [+ residual]) per channel
 * (the last axis). In training mean and var are the batch's (var divides by n), and moving averages
 * track both. In evaluation, and if frozen, the moving averages replace them.
 *
 *     moving_mean     -= (1 - decay) (moving_mean - mean)
 *     moving_variance -= (1 - decay) (moving_variance - var n / (n - 1))     "biased": without n /
 *     (n - 1)
 *
 * A call for all layers writes the averages at the end of the step. It writes nothing if the step's
 * numbers are not finite. Backward: with g = dy act', dbeta = sum g, dgamma = sum g (x - mean) r,
 * dx = gamma r (g - (dbeta + (x - mean) r dgamma) / n), dresidual = g; with moving averages dx =
 * gamma r g. Variables in TensorFlow's order: beta, gamma, moving_mean, moving_variance.
 *
 * Optional inputs after x, in this order:
 *   residual, of x's shape, is added before the activation, as at the end of a residual unit;
 *   count, I32 [e]: x has e examples of R rows, x = [e R, ...], and only the first count[i] rows of
 *   example i are valid, as in the second stage of a two-stage detector. The rest is padding.
 * Batch statistics are then those of the valid rows' values: n is their number, the sums run over
 * them. Padded rows are not read; their y, dx and dresidual are 0. If no row is valid, y and all
 * gradients are 0 and the moving averages stay. With moving averages (evaluation, frozen) count has
 * no effect: padded rows are computed like others, also in ONNX. An ONNX graph for training is
 * refused. */
#include <pumice/layer.h>

#include "layers/activation.h"
#include "layers/batch_norm_rows.h"
#include "layers/infer.h"
#include "onnx/export_nodes.h"

#include <math.h>

struct batch_norm_cfg {
    double decay;
    float epsilon, slope;
    bool scale, center, frozen;
    int moving_variance, activation;
};
enum { UNBIASED, BIASED };

static const struct pm_opt opts[] = {
    PM_DOUBLE(batch_norm_cfg, decay, 0.997, 0, 1, "decay of the moving averages per step"),
    PM_FLOAT(batch_norm_cfg, epsilon, 1e-3, 1e-12, 1, "added to the variance"),
    PM_BOOL(batch_norm_cfg, scale, true, "multiply by gamma"),
    PM_BOOL(batch_norm_cfg, center, true, "add beta"),
    PM_ENUM(batch_norm_cfg, moving_variance, UNBIASED, "unbiased|biased",
            "variance in the moving average: divided by n - 1 (unbiased) or by n"),
    PM_BOOL(batch_norm_cfg, frozen, false, "also train with the moving averages, which then do not "
                                           "change"),
    PM_ENUM(batch_norm_cfg, activation, PM_ACT_NONE, PM_ACTIVATIONS, "applied to the result"),
    PM_FLOAT(batch_norm_cfg, slope, 0.01, 1e-6, 1, "leaky_relu's slope for negative values"),
    { 0 },
};

/* Indices in n->w, -1 if absent. They are the same in n->dw. */
struct places { int beta, gamma, mean, variance; };

static struct places places_of(const struct batch_norm_cfg *cfg)
{
    int beta = cfg->center ? 0 : -1, gamma = cfg->scale ? beta + 1 : -1;
    int mean = cfg->center + cfg->scale;

    return (struct places){ beta, gamma, mean, mean + 1 };
}

/* ---- inputs ---------------------------------------------------------------------------- */

static int residual_input(const struct pm_node *n)
{
    return pm_optional_input(n, 1, PM_F32);
}

static int count_input(const struct pm_node *n)
{
    return pm_optional_input(n, 1, PM_I32);
}

static int check_optional(const struct pm_node *n)
{
    const int residual = residual_input(n), count = count_input(n);
    const struct pm_shape x = n->in[0]->out_shape;
    char a[64], b[64];

    if ((residual >= 0) + (count >= 0) < n->inputs - 1 || (count >= 0 && residual > count))
        return pm_fail(PM_ECONFIG, "%s: after its input batch_norm takes a residual (floats) and "
                       "count (int32), each at most once, in this order", n->name);
    if (residual >= 0 && !pm_shape_equal(x, n->in[residual]->out_shape))
        return pm_fail(PM_ECONFIG, "%s: the residual has shape %s, but the input %s", n->name,
                       pm_shape_text(n->in[residual]->out_shape, a), pm_shape_text(x, b));
    if (count < 0)
        return PM_OK;
    const struct pm_shape e = n->in[count]->out_shape;
    if (e.rank != 1 || x.dim[0] % e.dim[0] != 0)
        return pm_fail(PM_ECONFIG, "%s: count has shape %s, but must have one number for each "
                       "example, and the %d rows of the input must be a multiple of that", n->name,
                       pm_shape_text(e, a), x.dim[0]);
    return PM_OK;
}

static int infer(struct pm_node *n)
{
    const struct batch_norm_cfg *cfg = n->cfg;
    struct pm_shape x = n->in[0]->out_shape;
    struct pm_init zero = { PM_INIT_CONSTANT, 0 }, one = { PM_INIT_CONSTANT, 1 };
    char a[64];
    int err = PM_OK;

    if (x.rank < 2)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "%s: batch_norm needs an input of rank 2 or more with channels last, "
                       "not %s",
                       n->name, pm_shape_text(x, a)));
    PM_TRY(pm_need_floats(n, 0, 0));
    PM_TRY(check_optional(n));
    int c = x.dim[x.rank - 1];
    if (cfg->center)
        PM_TRY(pm_node_variable(n, "beta", PM_SHAPE1(c), zero, c, c, true, false));
    if (cfg->scale)
        PM_TRY(pm_node_variable(n, "gamma", PM_SHAPE1(c), one, c, c, true, false));
    PM_TRY(pm_node_variable(n, "moving_mean", PM_SHAPE1(c), zero, c, c, false, false));
    PM_TRY(pm_node_variable(n, "moving_variance", PM_SHAPE1(c), one, c, c, false, false));
    n->out_shape = x;
    n->out_type = PM_F32;
out:
    return err;
}

static bool batch_statistics(const struct pm_node *n)
{
    return n->train && !((const struct batch_norm_cfg *)n->cfg)->frozen;
}

static int channels(const struct pm_node *n)
{
    return n->x.shape.dim[n->x.shape.rank - 1];
}

static struct pm_tensor at(const struct pm_tensor *list, int place)
{
    return place < 0 ? PM_NO_TENSOR : list[place];
}

static struct pm_tensor residual_of(const struct pm_node *n)
{
    return at(n->xs, residual_input(n));
}

/* PM_NO_TENSOR: all rows count. */
static struct pm_tensor count_of(const struct pm_node *n)
{
    return batch_statistics(n) ? at(n->xs, count_input(n)) : PM_NO_TENSOR;
}

static struct batch_norm_params params_of(const struct pm_node *n)
{
    const struct batch_norm_cfg *cfg = n->cfg;
    const struct pm_tensor count = count_of(n);
    int c = channels(n), rows = (int)(pm_count(n->x) / (size_t)c);
    struct batch_norm_params p = {
        .rows = rows, .c = c, .act = cfg->activation, .slope = cfg->slope,
        .inv_count = batch_statistics(n) ? 1.0f / (float)rows : 0,
    };

    if (pm_has(count)) {
        p.inv_count = 1;
        p.crops = n->x.shape.dim[0] / count.shape.dim[0];
        p.crop_rows = rows / n->x.shape.dim[0];
    }
    return p;
}

static int examples_of(const struct batch_norm_params *p)
{
    return p->rows / (p->crops * p->crop_rows);
}

/* Saved tensors: rstd and, for batch statistics, mean and var. */
enum { RSTD, MEAN, VAR };

static void valid_statistics(const struct pm_node *n, struct pm_calls *c,
                             const struct batch_norm_params *p)
{
    const struct batch_norm_cfg *cfg = n->cfg;
    const struct batch_norm_valid_stats_params stats = {
        .examples = examples_of(p), .crops = p->crops, .crop_rows = p->crop_rows, .c = p->c,
        .chunk = pm_batch_norm_length(p->rows, p->c),
        .unbiased = cfg->moving_variance == UNBIASED, .epsilon = cfg->epsilon,
    };

    pm_call(c, &pm_row_batch_norm_valid_stats, pm_count(n->x), &stats,
            PM_BUFS(n->x, count_of(n), PM_NO_TENSOR, n->saved[MEAN], n->saved[RSTD],
                    n->saved[VAR]));
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct batch_norm_cfg *cfg = n->cfg;
    struct places w = places_of(cfg);
    struct batch_norm_params p = params_of(n);
    struct batch_norm_stats_params stats = {
        .rows = p.rows, .c = p.c, .chunk = pm_batch_norm_length(p.rows, p.c),
        .epsilon = cfg->epsilon,
    };
    struct pm_tensor rstd = pm_save(c, n, RSTD, PM_SHAPE1(p.c), PM_F32), mean = n->w[w.mean];

    if (batch_statistics(n)) {
        mean = pm_save(c, n, MEAN, PM_SHAPE1(p.c), PM_F32);
        pm_save(c, n, VAR, mean.shape, PM_F32);
    }
    if (pm_has(count_of(n)))
        valid_statistics(n, c, &p);
    else if (batch_statistics(n))
        pm_call(c, &pm_row_batch_norm_stats, pm_count(n->x), &stats,
                PM_BUFS(n->x, PM_NO_TENSOR, PM_NO_TENSOR, mean, rstd, n->saved[VAR]));
    else
        pm_call(c, &pm_row_batch_norm_rstd, (size_t)p.c, &stats, PM_BUFS(n->w[w.variance], rstd));
    pm_call(c, &pm_row_batch_norm_apply, (size_t)p.rows, &p,
            PM_BUFS(n->x, mean, rstd, at(n->w, w.gamma), at(n->w, w.beta), residual_of(n), n->y,
                    count_of(n)));
}

/* The buffers that both backward rows begin with. */
enum { INPUTS = 8 };

/* Computes dbeta and dgamma. Returns the sums that dx needs. */
static struct pm_tensor backward_sums(const struct pm_node *n, struct pm_calls *c,
                                      const struct batch_norm_params *p,
                                      const struct pm_tensor in[INPUTS])
{
    const struct places w = places_of(n->cfg);
    const struct pm_tensor sums = pm_temp(c, PM_SHAPE2(2, p->c), PM_F32), none = PM_NO_TENSOR;
    const struct pm_tensor dgamma = at(n->dw, w.gamma), dbeta = at(n->dw, w.beta);
    const struct batch_norm_sums_params s = {
        .rows = p->rows, .c = p->c, .chunks = pm_batch_norm_chunks(p->rows, p->c), .act = p->act,
        .slope = p->slope,
    };

    if (!pm_has(count_of(n))) {
        pm_call(c, &pm_row_batch_norm_sums, pm_count(n->x), &s,
                PM_BUFS(in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], none, sums, dbeta,
                        dgamma, none));
        return sums;
    }
    const struct batch_norm_valid_sums_params v = {
        .examples = examples_of(p), .crops = p->crops, .crop_rows = p->crop_rows, .c = p->c,
        .chunk = pm_batch_norm_length(p->rows, p->c), .act = p->act, .slope = p->slope,
    };
    pm_call(c, &pm_row_batch_norm_valid_sums, pm_count(n->x), &v,
            PM_BUFS(in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], count_of(n), none, sums,
                    dbeta, dgamma));
    return sums;
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    struct places w = places_of(n->cfg);
    const struct batch_norm_params p = params_of(n);
    const int added = residual_input(n);
    const bool batch = batch_statistics(n), reads_y = pm_batch_norm_reads_y(p.act, added >= 0);
    const struct pm_tensor none = PM_NO_TENSOR;
    const struct pm_tensor in[INPUTS] = {
        n->x, reads_y ? n->y : none, n->dy, pm_act_takes_z(p.act) ? residual_of(n) : none,
        batch ? n->saved[MEAN] : n->w[w.mean], n->saved[RSTD], at(n->w, w.gamma), at(n->w, w.beta),
    };
    struct pm_tensor sums = none, dresidual = at(n->dxs, added);

    if ((batch && pm_has(n->dx)) || pm_has(at(n->dw, w.gamma)) || pm_has(at(n->dw, w.beta)))
        sums = backward_sums(n, c, &p, in);
    if (pm_has(dresidual) && p.act == PM_ACT_NONE && !pm_has(count_of(n)))
        n->dxs[added] = n->dy, dresidual = none;
    if (!pm_has(n->dx) && !pm_has(dresidual))
        return;
    pm_call(c, &pm_row_batch_norm_dx, (size_t)p.rows, &p,
            PM_BUFS(in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], batch ? sums : none,
                    n->dx, dresidual, count_of(n)));
}

static void update(struct pm_node *n, struct pm_calls *c, struct pm_tensor flag)
{
    const struct batch_norm_cfg *cfg = n->cfg;
    struct places w = places_of(cfg);
    struct pm_shape x = n->in[0]->out_shape;
    int channel_count = x.dim[x.rank - 1];
    const size_t count = pm_shape_count(x) / (size_t)channel_count;
    double rows = (double)count;
    /* With count, the variance has the factor already. */
    const bool plain = cfg->moving_variance == BIASED || rows < 2 || count_input(n) >= 0;
    const float factor = plain ? 1 : (float)(rows / (rows - 1));

    (void)flag;
    if (batch_statistics(n))
        pm_moving_average(c, n->saved[MEAN], n->saved[VAR], n->w[w.mean], n->w[w.variance],
                          (float)(1 - cfg->decay), factor);
}

static float moving_decay(const struct pm_node *n)
{
    return 1 - (float)(1 - ((const struct batch_norm_cfg *)n->cfg)->decay);
}

/* ---- ONNX ------------------------------------------------------------------------------ */

static bool affine(const struct pm_node *n, struct pm_export *g, float *scale, float *shift)
{
    const struct batch_norm_cfg *cfg = n->cfg;
    const struct places w = places_of(cfg);
    const int c = n->out_shape.dim[n->out_shape.rank - 1];
    float *v = pm_malloc(3 * (size_t)c * sizeof *v), *gamma = v + c, *beta = gamma + c;
    bool ok = pm_export_read(g, n, w.mean, shift) && pm_export_read(g, n, w.variance, v) &&
              (!cfg->scale || pm_export_read(g, n, w.gamma, gamma)) &&
              (!cfg->center || pm_export_read(g, n, w.beta, beta));

    for (int i = 0; ok && i < c; i++) {
        scale[i] = (cfg->scale ? gamma[i] : 1) / sqrtf(v[i] + cfg->epsilon);
        shift[i] = (cfg->center ? beta[i] : 0) - shift[i] * scale[i];
    }
    pm_free(v);
    return ok;
}

/* Exports a constant vector of one number, for a variable that the layer does not have. */
static const char *channel_values(struct pm_export *g, const struct pm_node *n, int place,
                                  float otherwise)
{
    const int c = n->out_shape.dim[n->out_shape.rank - 1];
    float *v;
    const char *name;

    if (place >= 0)
        return pm_export_variable(g, n, place);
    v = pm_malloc((size_t)c * sizeof *v);
    for (int i = 0; i < c; i++)
        v[i] = otherwise;
    name = pm_export_numbers(g, c, v);
    pm_free(v);
    return name;
}

/* Normalises with the mean and variance of the batch. BatchNormalization has a training_mode, but
 * onnxruntime 1.32 computes wrong values with it once it has removed the unused outputs for the
 * averages. So the formula is written out. rank: of x, 2 or 4. */
static const char *batch_normalised(const struct pm_node *n, struct pm_export *g, const char *x,
                                    int rank)
{
    static const int64_t axes[] = { 0, 2, 3 };
    const struct batch_norm_cfg *cfg = n->cfg;
    const struct places w = places_of(cfg);
    const int count = rank == 4 ? 3 : 1;
    const char *mean = pm_export_op(g, "ReduceMean", PM_VALUES(x)), *d, *variance;

    pm_export_ints(g, "axes", count, axes);
    d = pm_export_op(g, "Sub", PM_VALUES(x, mean));
    variance = pm_export_op(g, "ReduceMean", PM_VALUES(pm_export_op(g, "Mul", PM_VALUES(d, d))));
    pm_export_ints(g, "axes", count, axes);
    variance = pm_export_op(g, "Add", PM_VALUES(variance, pm_export_number(g, cfg->epsilon)));
    d = pm_export_op(g, "Div", PM_VALUES(d, pm_export_op(g, "Sqrt", PM_VALUES(variance))));
    if (w.gamma >= 0)
        d = pm_export_op(g, "Mul", PM_VALUES(d, pm_export_trailing(g, n, w.gamma, rank)));
    if (w.beta >= 0)
        d = pm_export_op(g, "Add", PM_VALUES(d, pm_export_trailing(g, n, w.beta, rank)));
    return d;
}

static const char *normalised(const struct pm_node *n, struct pm_export *g, const char *x, int rank)
{
    const struct batch_norm_cfg *cfg = n->cfg;
    const struct places w = places_of(cfg);

    if (pm_export_is_training(g) && !cfg->frozen) {
        if (count_input(n) >= 0)
            pm_export_refuse(g, "in training it counts only valid rows: remove export.training");
        return batch_normalised(n, g, x, rank);
    }
    x = pm_export_op(g, "BatchNormalization",
                     PM_VALUES(x, channel_values(g, n, w.gamma, 1), channel_values(g, n, w.beta, 0),
                               pm_export_variable(g, n, w.mean),
                               pm_export_variable(g, n, w.variance)));
    pm_export_float(g, "epsilon", cfg->epsilon);
    return x;
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct batch_norm_cfg *cfg = n->cfg;
    const struct pm_shape x = n->out_shape;
    const int c = x.dim[x.rank - 1];
    const struct pm_shape rows = PM_SHAPE2((int)(pm_shape_count(x) / (size_t)c), c);
    const char *y = pm_export_x(g, n, 0);

    if (!pm_export_was_folded(g, n)) {
        if (x.rank == 3)
            y = pm_export_reshape(g, y, x, rows);
        y = normalised(n, g, y, x.rank == 3 ? 2 : x.rank);
        if (x.rank == 3)
            y = pm_export_reshape(g, y, rows, x);
    }
    if (residual_input(n) >= 0)
        y = pm_export_op(g, "Add", PM_VALUES(y, pm_export_x(g, n, residual_input(n))));
    return pm_export_activation(g, y, cfg->activation, cfg->slope);
}

const struct pm_layer pm_layer_batch_norm = {
    .name = "batch_norm", .opts = opts, .cfg_size = sizeof(struct batch_norm_cfg),
    .help = "per-channel normalisation; a second input of floats is added before the activation; "
            "one of int32 is the number of valid rows of each example",
    .min_inputs = 1, .max_inputs = 3, .infer = infer, .forward = forward, .backward = backward,
    .update = update, .moving_decay = moving_decay, .onnx = onnx, .affine = affine,
};
