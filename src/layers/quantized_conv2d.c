/* quantized_conv2d: a convolution whose weights are rounded to eight bits (quantize_rows.h), with
 * the following batch norm folded into them, as integer arithmetic will use both. It replaces
 * conv2d, depthwise_conv2d (filters 0) or fully_connected (flat), and the batch norm.
 *
 *     folded = w gamma / sqrt(moving_variance + epsilon)      w without batch norm
 *     y = act((conv(x, fake_quant(folded)) - center) scale + beta)
 *
 * In evaluation, and if batch norm is frozen, center = moving_mean gamma / sqrt(moving_variance +
 * epsilon) and scale = 1. In training, y uses the batch's statistics, computed from conv(x, w),
 * while the quantised weights change slowly. With m and v of the batch, center = m gamma /
 * sqrt(moving_variance + epsilon) and scale = sqrt((moving_variance + epsilon) / (v + epsilon)). So
 * without rounding, y equals batch norm's output.
 *
 * If the input is rounded (fake_quant), evaluation computes what integer arithmetic does. Input and
 * weights are numbers of steps. Floats hold their sums exactly up to 2^24. The bias is rounded to a
 * number of steps, too (pm_row_quant_bias). So an exported net has the same values in a runtime.
 * Images are rounded to multiples of input_step for the same reason.
 *
 * Gradients flow through both convolutions, and through the rounding as if it did not exist. The
 * weights' range is that of the step's folded weights. It is narrow (255 values) and is stored for
 * evaluation. In steps after `freeze`, training computes as with frozen.
 * Variables: weights, biases; then beta, gamma, moving_mean, moving_variance of
 * "SCOPE/BatchNorm"; then weights_quant/min and max. */
#include "layers/quantized_conv2d.h"

#include "layers/activation.h"
#include "layers/batch_norm_rows.h"
#include "layers/quantize_rows.h"

static const struct pm_opt opts[] = {
    PM_INT(pm_quantized, filters, 32, 0, 1 << 24, "output channels; 0: depthwise"),
    PM_INT(pm_quantized, multiplier, 1, 1, 1024, "outputs per channel if filters is 0"),
    PM_BOOL(pm_quantized, flat, false, "flatten all axes except the first: a matrix product"),
    PM_INTS(pm_quantized, kernel, "[3]", 1, 4096, "window, one number or [height, width]"),
    PM_INTS(pm_quantized, stride, "[1]", 1, 64, "step between windows"),
    PM_INTS(pm_quantized, dilation, "[1]", 1, 256, "distance between a window's cells"),
    PM_ENUM(pm_quantized, padding, PM_PAD_SAME, CONV_PADDINGS, "TensorFlow's rules, or pad"),
    PM_INTS(pm_quantized, pad, "[]", 0, 4096, "[top, bottom, left, right] if explicit"),
    PM_INT(pm_quantized, groups, 1, 1, 1 << 20, "separate groups of channels"),
    PM_BOOL(pm_quantized, bias, true, "add a bias per channel; not with batch_norm"),
    PM_ENUM(pm_quantized, activation, PM_ACT_NONE, PM_ACTIVATIONS, "applied last"),
    PM_FLOAT(pm_quantized, slope, 0.2, 0, 1, "leaky_relu's slope for negative values"),
    PM_STRING(pm_quantized, weights_init, "xavier", "initial weights"),
    PM_STRING(pm_quantized, bias_init, "constant(0)", "initial biases"),
    PM_BOOL(pm_quantized, regularize, true, "weight decay applies to the weights"),
    PM_BOOL(pm_quantized, regularize_bias, false, "weight decay applies to the biases"),
    PM_BOOL(pm_quantized, batch_norm, false, "fold a batch norm into the weights"),
    PM_DOUBLE(pm_quantized, decay, 0.997, 0, 1, "decay of the moving averages per step"),
    PM_FLOAT(pm_quantized, epsilon, 1e-3, 1e-12, 1, "added to the variance"),
    PM_BOOL(pm_quantized, scale, true, "batch norm multiplies by gamma"),
    PM_BOOL(pm_quantized, center, true, "batch norm adds beta"),
    PM_ENUM(pm_quantized, moving_variance, 0, "unbiased|biased",
            "variance in the moving average: divided by n - 1 (unbiased) or by n"),
    PM_BOOL(pm_quantized, frozen, false, "also train with the moving averages, which then do not "
                                         "change"),
    PM_INT(pm_quantized, delay, 0, 0, 1 << 30,
           "first training step (from 1) that quantises; 0: the first"),
    PM_INT(pm_quantized, freeze, 0, 0, 1 << 30,
           "batch norm is frozen in steps after this one; 0: never"),
    PM_BOOL(pm_quantized, symmetric, false, "the weights' range reaches as far below 0 as above"),
    PM_FLOAT(pm_quantized, input_step, 0, 0, 1e6,
             "evaluation rounds an input without a range to multiples of this; 0: it does not"),
    { 0 },
};

/* ---- what it is ------------------------------------------------------------------------------ */

struct pm_quantized_places pm_quantized_places(const struct pm_quantized *cfg)
{
    struct pm_quantized_places p = { -1, -1, -1, -1, 0, 0 };
    int next = 1;

    if (cfg->batch_norm) {
        p.beta = cfg->center ? next++ : -1;
        p.gamma = cfg->scale ? next++ : -1;
        p.mean = next++;
        p.variance = next++;
    } else {
        next += cfg->bias;
    }
    p.min = next;
    p.max = next + 1;
    return p;
}

static struct conv_tail tail_of(const struct pm_quantized *cfg)
{
    return (struct conv_tail){ cfg->bias, cfg->activation, cfg->slope };
}

int pm_quantized_params(const struct pm_node *n, struct conv2d_params *p)
{
    const struct pm_quantized *cfg = n->cfg;
    const struct conv_window v = { cfg->kernel, cfg->stride, cfg->dilation, cfg->pad,
                                   cfg->padding };
    const struct pm_shape x = n->in[0]->out_shape;

    if (x.rank < 2 || (!cfg->flat && x.rank != 4))
        return pm_fail(PM_ECONFIG,
                       "%s: a convolution takes images [n, h, w, c], a flat one rank 2 or "
                       "more, not rank %d",
                       n->name, x.rank);
    p->n = x.dim[0];
    if (cfg->flat) {
        *p = (struct conv2d_params){
            .n = p->n,
            .h = 1,
            .w = 1,
            .c = (int)(pm_shape_count(x) / (size_t)x.dim[0]),
            .oh = 1,
            .ow = 1,
            .k = cfg->filters,
            .kh = 1,
            .kw = 1,
            .stride_h = 1,
            .stride_w = 1,
            .dilation_h = 1,
            .dilation_w = 1,
            .groups = 1,
        };
        return PM_OK;
    }
    p->c = x.dim[3];
    p->groups = cfg->filters ? cfg->groups : p->c;
    p->k = cfg->filters ? cfg->filters : p->c * cfg->multiplier;
    if (p->c % p->groups || p->k % p->groups)
        return pm_fail(
            PM_ECONFIG,
            "%s: groups=%d must divide both the %d input channels and the %d output channels",
            n->name, p->groups, p->c, p->k);
    return pm_conv_geometry(n, &v, x.dim[1], x.dim[2], p);
}

static struct pm_shape weights_shape(const struct pm_quantized *cfg, const struct conv2d_params *p)
{
    return cfg->flat           ? PM_SHAPE2(p->c, p->k)
           : cfg->filters == 0 ? PM_SHAPE4(p->kh, p->kw, p->c, cfg->multiplier)
                               : PM_SHAPE4(p->kh, p->kw, p->c / p->groups, p->k);
}

static int norm_variables(struct pm_node *n, int c)
{
    const struct pm_quantized *cfg = n->cfg;
    const struct pm_init zero = { PM_INIT_CONSTANT, 0 }, one = { PM_INIT_CONSTANT, 1 };
    const struct pm_shape s = PM_SHAPE1(c);
    int err = PM_OK;

    if (cfg->center)
        PM_TRY(pm_node_variable(n, "BatchNorm/beta", s, zero, c, c, true, false));
    if (cfg->scale)
        PM_TRY(pm_node_variable(n, "BatchNorm/gamma", s, one, c, c, true, false));
    PM_TRY(pm_node_variable(n, "BatchNorm/moving_mean", s, zero, c, c, false, false));
    PM_TRY(pm_node_variable(n, "BatchNorm/moving_variance", s, one, c, c, false, false));
out:
    return err;
}

static int infer(struct pm_node *n)
{
    const struct pm_quantized *cfg = n->cfg;
    const struct conv_tail t = tail_of(cfg);
    const struct pm_quantized_places w = pm_quantized_places(cfg);
    const struct pm_init low = { PM_INIT_CONSTANT, -6 }, high = { PM_INIT_CONSTANT, 6 };
    const struct pm_shape scalar = { 0 };
    struct conv2d_params p = { .groups = 1 };
    int err = PM_OK;

    PM_TRY(pm_quantized_params(n, &p));
    if (cfg->batch_norm && cfg->bias)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: batch_norm replaces bias: set bias=false", n->name));
    if (!cfg->batch_norm && pm_act_takes_z(cfg->activation))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: activation: hard_swish needs batch_norm=true", n->name));
    PM_TRY(pm_conv_variables(n, cfg->filters ? "weights" : "depthwise_weights",
                             weights_shape(cfg, &p), cfg->weights_init, cfg->regularize, &t, p.k,
                             cfg->bias_init, cfg->regularize_bias));
    if (cfg->batch_norm)
        PM_TRY(norm_variables(n, p.k));
    PM_TRY(pm_node_variable(n, "weights_quant/min", scalar, low, 1, 1, false, false));
    PM_TRY(pm_node_variable(n, "weights_quant/max", scalar, high, 1, 1, false, false));
    pm_node_late(n, w.min);
    pm_node_late(n, w.max);
    n->out_shape = cfg->flat ? PM_SHAPE2(p.n, p.k) : PM_SHAPE4(p.n, p.oh, p.ow, p.k);
    n->out_type = PM_F32;
out:
    return err;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Saved tensors: the folded weights, their range and grid, the rounded weights, and the sums with
 * those. With batch norm also center, scale and rstd of the moving variance. With batch statistics
 * also mean, rstd, variance, and the sums with the plain w, from which the statistics are
 * computed. */
enum {
    FOLDED,
    RANGE,
    GRID,
    WEIGHTS,
    SUMS,
    CENTER,
    SCALE,
    MOVING_RSTD,
    MEAN,
    RSTD,
    VARIANCE,
    PLAIN
};

static bool batch_statistics(const struct pm_node *n)
{
    const struct pm_quantized *cfg = n->cfg;

    return n->train && cfg->batch_norm && !cfg->frozen;
}

static struct pm_tensor at(const struct pm_tensor *list, int place)
{
    return place < 0 ? PM_NO_TENSOR : list[place];
}

static const struct pm_kernel *fwd_row(const struct pm_node *n)
{
    return ((const struct pm_quantized *)n->cfg)->filters ? &pm_conv2d_fwd : &pm_depthwise_fwd;
}

/* Number of rows of the sums. */
static int rows_of(const struct conv2d_params *p)
{
    return p->n * p->oh * p->ow;
}

bool pm_quantized_rounds_input(const struct pm_node *n)
{
    return ((const struct pm_quantized *)n->cfg)->input_step > 0 && !pm_quant_source(n->in[0]);
}

/* Whether this plan computes as integer arithmetic does. */
static bool in_integers(const struct pm_node *n)
{
    return !n->train && (pm_quant_source(n->in[0]) || pm_quantized_rounds_input(n));
}

/* The grid of the input of a plan that computes as integer arithmetic does. */
static struct pm_tensor input_grid(const struct pm_node *n, struct pm_calls *c)
{
    const struct pm_node *source = pm_quant_source(n->in[0]);
    const float step = ((const struct pm_quantized *)n->cfg)->input_step;
    const float most = step * 0x1p22f; /* floats hold this number of steps */
    const float grid[GRID_SIZE] = {
        [GRID_LOW] = -most, [GRID_HIGH] = most, [GRID_STEP] = step, [GRID_INVERSE] = 1 / step,
        [GRID_ON] = 1,
    };

    return source ? pm_quant_source_grid(source)
                  : pm_calls_constant(c, "input_grid", grid, PM_SHAPE1(GRID_SIZE), PM_F32);
}

static void weights_forward(struct pm_node *n, struct pm_calls *c, const struct conv2d_params *p)
{
    const struct pm_quantized *cfg = n->cfg;
    const struct pm_quantized_places w = pm_quantized_places(cfg);
    struct pm_tensor folded = n->w[0], low = n->w[w.min], high = n->w[w.max];

    if (cfg->batch_norm) {
        const struct batch_norm_stats_params rstd = { .c = p->k, .epsilon = cfg->epsilon };
        const struct quant_fold_params f = { (int)pm_count(n->w[0]), p->k };

        pm_save(c, n, MOVING_RSTD, PM_SHAPE1(p->k), PM_F32);
        pm_call(c, &pm_row_batch_norm_rstd, (size_t)p->k, &rstd,
                PM_BUFS(n->w[w.variance], n->saved[MOVING_RSTD]));
        folded = pm_temp(c, n->w[0].shape, PM_F32);
        pm_call(c, &pm_row_quant_fold, (size_t)f.count, &f,
                PM_BUFS(n->w[0], at(n->w, w.gamma), n->saved[MOVING_RSTD], folded));
    }
    if (n->train)
        low = pm_quant_range(c, folded, cfg->symmetric, true), high = PM_NO_TENSOR;
    n->saved[FOLDED] = folded;
    n->saved[RANGE] = low;
    n->saved[GRID] = pm_quant_grid(c, low, high, true, n->train ? cfg->delay : 0);
    if (in_integers(n)) {
        n->saved[WEIGHTS] = pm_quant_integers(c, folded, n->saved[GRID], PM_QUANT_TRAINING);
        return;
    }
    pm_save(c, n, WEIGHTS, n->w[0].shape, PM_F32);
    pm_quant_forward(c, folded, n->saved[GRID], PM_QUANT_TRAINING, n->saved[WEIGHTS]);
}

/* Computes center and scale, and for batch statistics the values they are made of. */
static void norm_forward(struct pm_node *n, struct pm_calls *c, const struct conv2d_params *p)
{
    const struct pm_quantized *cfg = n->cfg;
    const struct pm_quantized_places w = pm_quantized_places(cfg);
    const struct pm_shape channels = PM_SHAPE1(p->k);
    const bool batch = batch_statistics(n);
    const bool freezes = batch && cfg->freeze > 0;
    const struct pm_tensor none = PM_NO_TENSOR;
    struct pm_tensor mean = n->w[w.mean], rstd = none, variance = none;
    const struct quant_center_params q = { p->k, cfg->freeze };

    if (batch) {
        const int rows = rows_of(p);
        const struct batch_norm_stats_params s = {
            .rows = rows,
            .c = p->k,
            .chunk = pm_batch_norm_length(rows, p->k),
            .epsilon = cfg->epsilon,
        };

        pm_save(c, n, PLAIN, n->y.shape, PM_F32);
        pm_conv_call(c, fwd_row(n), p, n->x, n->w[0], n->saved[PLAIN]);
        mean = pm_save(c, n, MEAN, channels, PM_F32);
        rstd = pm_save(c, n, RSTD, channels, PM_F32);
        variance = freezes ? pm_temp(c, channels, PM_F32)
                           : pm_save(c, n, VARIANCE, channels, PM_F32);
        pm_call(c, &pm_row_batch_norm_stats, pm_count(n->y), &s,
                PM_BUFS(n->saved[PLAIN], none, none, mean, rstd, variance));
    }
    pm_save(c, n, CENTER, channels, PM_F32);
    pm_save(c, n, SCALE, channels, PM_F32);
    pm_call(c, &pm_row_quant_center, (size_t)p->k, &q,
            PM_BUFS(mean, at(n->w, w.gamma), n->saved[MOVING_RSTD], rstd,
                    freezes ? n->w[w.mean] : none, freezes ? variance : none,
                    freezes ? pm_step_tensor(c) : none, n->saved[CENTER], n->saved[SCALE],
                    freezes ? pm_save(c, n, VARIANCE, channels, PM_F32) : none));
}

static struct batch_norm_params apply_params(const struct pm_node *n, const struct conv2d_params *p)
{
    const struct pm_quantized *cfg = n->cfg;

    return (struct batch_norm_params){
        .rows = rows_of(p),
        .c = p->k,
        .act = cfg->activation,
        .slope = cfg->slope,
    };
}

/* y from the sums of numbers of steps. */
static void integers_forward(struct pm_node *n, struct pm_calls *c, const struct conv2d_params *p)
{
    const struct pm_quantized *cfg = n->cfg;
    const struct pm_quantized_places w = pm_quantized_places(cfg);
    const struct batch_norm_params a = apply_params(n, p);
    const struct quant_bias_params b = { p->k };
    const struct pm_tensor none = PM_NO_TENSOR, z = pm_temp(c, n->y.shape, PM_F32);
    const struct pm_tensor from = input_grid(n, c);
    const struct pm_tensor x = pm_quant_integers(c, n->x, from, PM_QUANT_RUNTIME);
    const struct pm_tensor center = pm_temp(c, PM_SHAPE1(p->k), PM_F32);
    const struct pm_tensor scale = pm_temp(c, PM_SHAPE1(p->k), PM_F32);

    pm_call(c, &pm_row_quant_bias, (size_t)p->k, &b,
            PM_BUFS(from, n->saved[GRID], cfg->bias ? n->w[1] : at(n->w, w.beta),
                    at(n->w, w.mean), at(n->w, w.gamma),
                    cfg->batch_norm ? n->saved[MOVING_RSTD] : none, center, scale));
    pm_conv_call(c, fwd_row(n), p, x, n->saved[WEIGHTS], z);
    pm_call(c, &pm_row_batch_norm_apply, (size_t)a.rows, &a,
            PM_BUFS(z, center, scale, none, none, none, n->y, none));
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct pm_quantized *cfg = n->cfg;
    const struct conv_tail t = tail_of(cfg);
    struct conv2d_params p = { 0 };
    struct pm_tensor z;

    pm_quantized_params(n, &p);
    weights_forward(n, c, &p);
    if (in_integers(n)) {
        integers_forward(n, c, &p);
        return;
    }
    if (!cfg->batch_norm) {
        z = pm_conv_sums(n, c, &t);
        pm_conv_call(c, fwd_row(n), &p, n->x, n->saved[WEIGHTS], z);
        pm_conv_tail_forward(n, c, &t, z);
        return;
    }
    const struct batch_norm_params a = apply_params(n, &p);
    norm_forward(n, c, &p);
    z = pm_save(c, n, SUMS, n->y.shape, PM_F32);
    pm_conv_call(c, fwd_row(n), &p, n->x, n->saved[WEIGHTS], z);
    pm_call(c, &pm_row_batch_norm_apply, (size_t)a.rows, &a,
            PM_BUFS(z, n->saved[CENTER], n->saved[SCALE], PM_NO_TENSOR,
                    at(n->w, pm_quantized_places(cfg).beta), PM_NO_TENSOR, n->y, PM_NO_TENSOR));
}

/* Computes dbeta and, from dy, the gradient of the sums. *sums are those of
 * pm_row_batch_norm_sums. */
static struct pm_tensor norm_backward(struct pm_node *n, struct pm_calls *c,
                                      const struct conv2d_params *p, struct pm_tensor *sums)
{
    const struct pm_quantized *cfg = n->cfg;
    const struct pm_quantized_places w = pm_quantized_places(cfg);
    const struct batch_norm_params a = apply_params(n, p);
    const struct pm_tensor none = PM_NO_TENSOR;
    const struct pm_tensor y = pm_batch_norm_reads_y(a.act, false) ? n->y : none;
    const struct pm_tensor z = n->saved[SUMS], center = n->saved[CENTER], scale = n->saved[SCALE];
    const struct pm_tensor beta = at(n->w, w.beta), dbeta = at(n->dw, w.beta);
    const struct pm_tensor dz = pm_temp(c, n->y.shape, PM_F32);
    const struct batch_norm_sums_params s = {
        .rows = a.rows,
        .c = a.c,
        .chunks = pm_batch_norm_chunks(a.rows, a.c),
        .act = a.act,
        .slope = a.slope,
    };

    *sums = pm_temp(c, PM_SHAPE2(2, a.c), PM_F32);
    pm_call(c, &pm_row_batch_norm_sums, pm_count(n->y), &s,
            PM_BUFS(z, y, n->dy, none, center, scale, none, beta, none, *sums, dbeta, none, none));
    pm_call(c, &pm_row_batch_norm_dx, (size_t)a.rows, &a,
            PM_BUFS(z, y, n->dy, none, center, scale, none, beta, none, dz, none,
                    none));
    return dz;
}

/* Backward of center and scale: adds their part of dgamma. Returns the gradient of the plain sums,
 * from which the statistics are computed: (plain - mean) q + p. */
static struct pm_tensor statistics_backward(struct pm_node *n, struct pm_calls *c,
                                            const struct conv2d_params *p, struct pm_tensor sums)
{
    const struct pm_quantized *cfg = n->cfg;
    const struct pm_quantized_places w = pm_quantized_places(cfg);
    const bool batch = batch_statistics(n), freezes = batch && cfg->freeze > 0;
    const struct pm_tensor dgamma = at(n->dw, w.gamma);
    const struct pm_shape channels = PM_SHAPE1(p->k);
    const struct pm_tensor none = PM_NO_TENSOR;
    const struct quant_sums_params s = {
        .k = p->k,
        .inv_count = 1.0f / (float)rows_of(p),
        .freeze = cfg->freeze,
    };
    const struct batch_norm_params a = { .rows = rows_of(p), .c = p->k, .act = PM_ACT_NONE };

    if (!batch && !pm_has(dgamma))
        return none;
    const struct pm_tensor mean = batch ? n->saved[MEAN] : n->w[w.mean];
    const struct pm_tensor rstd = batch ? n->saved[RSTD] : n->saved[MOVING_RSTD];
    const struct pm_tensor p0 = batch ? pm_temp(c, channels, PM_F32) : none;
    const struct pm_tensor q = batch ? pm_temp(c, channels, PM_F32) : none;
    pm_call(c, &pm_row_quant_sums, (size_t)p->k, &s,
            PM_BUFS(sums, mean, rstd, at(n->w, w.gamma), freezes ? n->w[w.mean] : none,
                    freezes ? n->saved[MOVING_RSTD] : none, freezes ? pm_step_tensor(c) : none, p0,
                    q, dgamma));
    if (!batch)
        return none;
    const struct pm_tensor dplain = pm_temp(c, n->y.shape, PM_F32);
    pm_call(c, &pm_row_batch_norm_apply, (size_t)a.rows, &a,
            PM_BUFS(n->saved[PLAIN], mean, q, none, p0, none, dplain, none));
    return dplain;
}

/* Computes the gradients of w and gamma from the gradient of the rounded weights. */
static void weights_backward(struct pm_node *n, struct pm_calls *c, const struct conv2d_params *p,
                             struct pm_tensor d)
{
    const struct pm_quantized *cfg = n->cfg;
    const struct pm_quantized_places w = pm_quantized_places(cfg);
    const struct pm_tensor dgamma = at(n->dw, w.gamma);
    const struct pm_tensor terms = pm_has(dgamma) ? pm_temp(c, d.shape, PM_F32) : PM_NO_TENSOR;
    const struct pm_tensor rounded = pm_temp(c, d.shape, PM_F32);
    const struct quant_fold_bwd_params f = {
        .count = (int)pm_count(d),
        .k = p->k,
    };

    pm_quant_backward(c, n->saved[FOLDED], n->saved[GRID], d, rounded);
    pm_call(c, &pm_row_quant_fold_bwd, (size_t)f.count, &f,
            PM_BUFS(rounded, n->w[0], at(n->w, w.gamma),
                    cfg->batch_norm ? n->saved[MOVING_RSTD] : PM_NO_TENSOR, n->dw[0], terms));
    if (pm_has(dgamma))
        pm_add_rows(c, terms, dgamma);
}

static void inputs_backward(struct pm_node *n, struct pm_calls *c, const struct conv2d_params *p,
                            struct pm_tensor dz, struct pm_tensor dplain)
{
    const bool depthwise = ((const struct pm_quantized *)n->cfg)->filters == 0;
    const struct pm_kernel *row = depthwise ? &pm_depthwise_bwd_data : &pm_conv2d_bwd_data;

    pm_conv_call(c, row, p, n->dx, n->saved[WEIGHTS], dz);
    if (pm_has(dplain))
        pm_conv_call(c, row, p, n->dx, n->w[0], dplain);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const struct pm_quantized *cfg = n->cfg;
    const struct conv_tail t = tail_of(cfg);
    const struct pm_kernel *filter =
        cfg->filters ? &pm_conv2d_bwd_filter : &pm_depthwise_bwd_filter;
    struct conv2d_params p = { 0 };
    struct pm_tensor sums, dz, dplain = PM_NO_TENSOR;

    pm_quantized_params(n, &p);
    if (cfg->batch_norm) {
        dz = norm_backward(n, c, &p, &sums);
        dplain = statistics_backward(n, c, &p, sums);
    } else {
        dz = pm_conv_tail_backward(n, c, &t);
    }
    if (pm_has(n->dw[0]) || pm_has(at(n->dw, pm_quantized_places(cfg).gamma))) {
        const struct pm_tensor d = pm_temp(c, n->w[0].shape, PM_F32);

        pm_conv_call(c, filter, &p, n->x, d, dz);
        weights_backward(n, c, &p, d);
    }
    if (pm_has(n->dw[0]) && pm_has(dplain))
        pm_conv_call(c, filter, &p, n->x, n->dw[0], dplain);
    if (pm_has(n->dx))
        inputs_backward(n, c, &p, dz, dplain);
}

static void update(struct pm_node *n, struct pm_calls *c, struct pm_tensor flag)
{
    const struct pm_quantized *cfg = n->cfg;
    const struct pm_quantized_places w = pm_quantized_places(cfg);
    const struct quant_params range = { .count = 2 };
    const struct pm_tensor none = PM_NO_TENSOR;
    struct conv2d_params p = { 0 };

    if (!n->train)
        return;
    pm_quantized_params(n, &p);
    pm_call(c, &pm_row_quant_keep, 1, &range,
            PM_BUFS(n->saved[RANGE], flag, n->w[w.min], n->w[w.max], none, none, none, none));
    if (batch_statistics(n)) {
        const double rows = rows_of(&p);

        pm_moving_average(c, n->saved[MEAN], n->saved[VARIANCE], n->w[w.mean], n->w[w.variance],
                          (float)(1 - cfg->decay),
                          cfg->moving_variance || rows < 2 ? 1 : (float)(rows / (rows - 1)));
    }
}

const struct pm_layer pm_layer_quantized_conv2d = {
    .name = "quantized_conv2d",
    .help = "convolution or matrix product with 8-bit weights, a folded batch norm, activation",
    .opts = opts,
    .cfg_size = sizeof(struct pm_quantized),
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .update = update,
    .onnx = pm_quantized_onnx,
    .accumulates = true,
};
