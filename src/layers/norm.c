/* layer_norm, group_norm: y = gamma (x - mean) / sqrt(variance + epsilon) + beta. mean and variance
 * are over a row. In layer_norm a row is the trailing axes of an example. In group_norm it is a
 * group's channels in all pixels of an image; with as many groups as channels this is instance
 * normalisation. Nothing is kept between steps.
 *
 * The mean is a float. `rest`, the mean of x - mean, is its rounding error. So the error of x -
 * mean - rest is proportional to the deviation, not to x, even if a row's values are close to each
 * other. Backward: with g = dy gamma and h = (x - mean) / deviation, dx = (g - mean of g - h mean
 * of g h) / deviation; dgamma = sum of dy h, dbeta = sum of dy. */
#include "layers/infer.h"

#include <limits.h>

#include "layers/conv_rows.h"
#include "onnx/export_nodes.h"
#include "device/pick.h"
#include "layers/vmath.h"
#include "norm.params.h"

struct norm_cfg {
    int axes, groups;
    bool gamma, beta;
    float epsilon;
};

#define NORM_OPTIONS                                                                               \
    PM_BOOL(norm_cfg, gamma, true, "multiply by a variable"),                                      \
    PM_BOOL(norm_cfg, beta, true, "add a variable"),                                               \
    PM_FLOAT(norm_cfg, epsilon, 1e-5, 1e-12, 1, "added to the variance")
static const struct pm_opt layer_opts[] = {
    PM_INT(norm_cfg, axes, 1, 1, PM_MAX_RANK,
           "number of trailing axes that are normalised together"),
    NORM_OPTIONS,
    { 0 },
};
static const struct pm_opt group_opts[] = {
    PM_INT(norm_cfg, groups, 32, 0, 1 << 20, "groups of neighbouring channels; 0: one group per "
                                             "channel"),
    NORM_OPTIONS,
    { 0 },
};

/* ---- rows ------------------------------------------------------------------------------ */

/* Place in x of row r's first value. Its pixels are p->c apart. */
PM_INLINE size_t row_place(const struct norm_params *p, size_t r)
{
    const size_t groups = (size_t)p->groups, c = (size_t)p->c;

    return r / groups * (size_t)p->pixels * c + r % groups * (c / groups);
}

/* Mean over a row of the term in i, a channel of the pixel at `at`. Blocks of 64 channels are
 * summed in 16 separate sums, so that they can be vectorised. Then these sums are added. */
#define ROW_MEAN(result, term)                                                                     \
    do {                                                                                           \
        double total = 0;                                                                          \
        for (int pixel = 0; pixel < p->pixels; pixel++) {                                          \
            const size_t at = first + (size_t)pixel * (size_t)p->c;                                \
            int block_ = 0;                                                                        \
            for (; block_ + 64 <= width; block_ += 64) {                                           \
                float part[16] = { 0 };                                                            \
                for (int j_ = block_; j_ < block_ + 64; j_ += 16)                                  \
                    for (int k_ = 0; k_ < 16; k_++) {                                              \
                        const int i = j_ + k_;                                                     \
                        part[k_] += (term);                                                        \
                    }                                                                              \
                total += pm_row_sum(part, 16);                                                     \
            }                                                                                      \
            float tail_ = 0;                                                                       \
            for (int i = block_; i < width; i++)                                                   \
                tail_ += (term);                                                                   \
            total += tail_;                                                                        \
        }                                                                                          \
        result = (float)(total / ((double)p->pixels * width));                                     \
    } while (0)

PM_CLONES static void fwd_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct norm_params *p = args->params;
    const float *x = args->buf[0];
    float *y = args->buf[3], *stats = args->buf[4];
    const int width = p->c / p->groups;

    for (size_t r = begin; r < end; r++) {
        const size_t first = row_place(p, r), channel = r % (size_t)p->groups * (size_t)width;
        const float *gamma = args->buf[1] ? (const float *)args->buf[1] + channel : NULL;
        const float *beta = args->buf[2] ? (const float *)args->buf[2] + channel : NULL;
        float mean, rest, variance, rstd;

        ROW_MEAN(mean, x[at + (size_t)i]);
        ROW_MEAN(rest, x[at + (size_t)i] - mean);
        ROW_MEAN(variance, (x[at + (size_t)i] - mean - rest) * (x[at + (size_t)i] - mean - rest));
        rstd = 1 / sqrtf(variance + p->epsilon);
        for (int pixel = 0; pixel < p->pixels; pixel++) {
            const size_t at = first + (size_t)pixel * (size_t)p->c;

            PM_SIMD
            for (int i = 0; i < width; i++)
                y[at + (size_t)i] = (x[at + (size_t)i] - mean - rest) * rstd *
                                        (gamma ? gamma[i] : 1) + (beta ? beta[i] : 0);
        }
        stats[3 * r] = mean, stats[3 * r + 1] = rest, stats[3 * r + 2] = rstd;
    }
}

PM_CLONES static void bwd_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct norm_params *p = args->params;
    const float *x = args->buf[0], *stats = args->buf[1], *dy = args->buf[3];
    float *dx = args->buf[4], *terms = args->buf[5];
    const int width = p->c / p->groups;

    for (size_t r = begin; r < end; r++) {
        const size_t first = row_place(p, r), channel = r % (size_t)p->groups * (size_t)width;
        const float *gamma = args->buf[2] ? (const float *)args->buf[2] + channel : NULL;
        const float mean = stats[3 * r], rest = stats[3 * r + 1], rstd = stats[3 * r + 2];
        float sum, dot;

        ROW_MEAN(sum, dy[at + (size_t)i] * (gamma ? gamma[i] : 1));
        ROW_MEAN(dot, dy[at + (size_t)i] * (gamma ? gamma[i] : 1) *
                          ((x[at + (size_t)i] - mean - rest) * rstd));
        for (int pixel = 0; pixel < p->pixels; pixel++) {
            const size_t at = first + (size_t)pixel * (size_t)p->c;

            for (int i = 0; i < width; i++) {
                const float g = dy[at + (size_t)i] * (gamma ? gamma[i] : 1);
                const float hat = (x[at + (size_t)i] - mean - rest) * rstd;

                if (dx)
                    dx[at + (size_t)i] = rstd * (g - sum - hat * dot);
                if (terms)
                    terms[at + (size_t)i] = dy[at + (size_t)i] * hat;
            }
        }
    }
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    (void)caps, (void)params;
    return level == 0 && pm_pick_elements("norm_fwd", 64, count * 64, out);
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    (void)caps, (void)params;
    return level == 0 && pm_pick_elements("norm_bwd", 64, count * 64, out);
}

static double flops(const void *params, size_t count)
{
    const struct norm_params *p = params;

    (void)count;
    return 8.0 * p->n * p->pixels * p->c;
}

static const struct pm_kernel fwd = {
    .name = "norm_fwd", .bufs = "r:x r?:gamma r?:beta w:y w:stats", .cpu = fwd_cpu, .grain = 1,
    .params_size = sizeof(struct norm_params), .pick = fwd_pick, .flops = flops,
};
static const struct pm_kernel bwd = {
    .name = "norm_bwd", .bufs = "r:x r:stats r?:gamma r:dy w?:dx w?:terms", .cpu = bwd_cpu,
    .grain = 1, .params_size = sizeof(struct norm_params), .pick = bwd_pick, .flops = flops,
};

/* ---- layers ---------------------------------------------------------------------------- */

extern const struct pm_layer pm_layer_layer_norm;

static bool is_layer_norm(const struct pm_node *n)
{
    return n->layer == &pm_layer_layer_norm;
}

/* Number of axes of gamma and beta: the normalised axes, or the channels. */
static int own_axes(const struct pm_node *n)
{
    return is_layer_norm(n) ? ((const struct norm_cfg *)n->cfg)->axes : 1;
}

static struct norm_params params_of(const struct pm_node *n)
{
    const struct norm_cfg *cfg = n->cfg;
    const struct pm_shape x = n->in[0]->out_shape;
    struct norm_params p = { .n = 1, .pixels = 1, .c = 1, .groups = 1, .epsilon = cfg->epsilon };

    for (int i = 0; i < x.rank; i++)
        if (i >= x.rank - own_axes(n))
            p.c *= x.dim[i];
        else if (i == 0 || is_layer_norm(n))
            p.n *= x.dim[i];
        else
            p.pixels *= x.dim[i];
    if (!is_layer_norm(n))
        p.groups = cfg->groups ? cfg->groups : p.c;
    return p;
}

static int infer(struct pm_node *n)
{
    const struct norm_cfg *cfg = n->cfg;
    const struct pm_shape x = n->in[0]->out_shape;
    const int axes = own_axes(n);
    struct pm_shape s = { .rank = axes };
    struct norm_params p;
    char text[64];
    int err = PM_OK;

    if (x.rank < axes || x.rank < 2)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: %s over %d axes does not fit the input %s", n->name,
                       n->layer->name, axes, pm_shape_text(x, text)));
    p = params_of(n);
    if (p.c % p.groups != 0)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: groups=%d does not divide the %d channels of %s", n->name,
                       p.groups, p.c, pm_shape_text(x, text)));
    for (int i = 0; i < axes; i++)
        s.dim[i] = x.dim[x.rank - axes + i];
    if (cfg->beta)
        PM_TRY(pm_node_variable(n, "beta", s, (struct pm_init){ PM_INIT_CONSTANT, 0 }, p.c, p.c,
                                true, false));
    if (cfg->gamma)
        PM_TRY(pm_node_variable(n, "gamma", s, (struct pm_init){ PM_INIT_CONSTANT, 1 }, p.c, p.c,
                                true, false));
    PM_TRY(pm_infer_same(n));
out:
    return err;
}

/* The variables; beta is first, as in batch_norm. */
static struct pm_tensor beta_of(const struct norm_cfg *cfg, const struct pm_tensor *list)
{
    return cfg->beta ? list[0] : PM_NO_TENSOR;
}

static struct pm_tensor gamma_of(const struct norm_cfg *cfg, const struct pm_tensor *list)
{
    return cfg->gamma ? list[cfg->beta ? 1 : 0] : PM_NO_TENSOR;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct norm_params p = params_of(n);
    const size_t rows = (size_t)p.n * (size_t)p.groups;

    pm_call(c, &fwd, rows, &p,
            PM_BUFS(n->x, gamma_of(n->cfg, n->w), beta_of(n->cfg, n->w), n->y,
                    pm_save(c, n, 0, PM_SHAPE2((int)rows, 3), PM_F32)));
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const struct norm_params p = params_of(n);
    const struct pm_tensor dgamma = gamma_of(n->cfg, n->dw), dbeta = beta_of(n->cfg, n->dw);
    struct pm_tensor terms = PM_NO_TENSOR;

    if (pm_has(dbeta))
        pm_add_rows(c, n->dy, dbeta);
    if (pm_has(dgamma))
        terms = pm_temp(c, n->x.shape, PM_F32);
    if (pm_has(n->dx) || pm_has(terms))
        pm_call(c, &bwd, (size_t)p.n * (size_t)p.groups, &p,
                PM_BUFS(n->x, n->saved[0], gamma_of(n->cfg, n->w), n->dy, n->dx, terms));
    if (pm_has(terms))
        pm_add_rows(c, terms, dgamma);
}

/* ---- ONNX ------------------------------------------------------------------------------ */

/* Exports operators of opset 13: the row's mean, the mean square of the deviations, their
 * quotient. */
static const char *normalised(struct pm_export *g, const char *x, int count, const int64_t *axes,
                              float epsilon)
{
    const char *mean = pm_export_op(g, "ReduceMean", PM_VALUES(x)), *d, *variance;

    pm_export_ints(g, "axes", count, axes);
    d = pm_export_op(g, "Sub", PM_VALUES(x, mean));
    variance = pm_export_op(g, "ReduceMean", PM_VALUES(pm_export_op(g, "Mul", PM_VALUES(d, d))));
    pm_export_ints(g, "axes", count, axes);
    variance = pm_export_op(g, "Add", PM_VALUES(variance, pm_export_number(g, epsilon)));
    return pm_export_op(g, "Div", PM_VALUES(d, pm_export_op(g, "Sqrt", PM_VALUES(variance))));
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct norm_cfg *cfg = n->cfg;
    const struct norm_params p = params_of(n);
    const struct pm_shape x = n->in[0]->out_shape;
    const char *y = pm_export_x(g, n, 0);
    int64_t axes[PM_MAX_RANK];

    if (is_layer_norm(n)) {
        for (int i = 0; i < own_axes(n); i++)
            axes[i] = pm_export_axis(x.rank, x.rank - own_axes(n) + i);
        y = normalised(g, y, own_axes(n), axes, p.epsilon);
    } else { /* the net's axes with separate groups: [n][pixels][groups][c / groups] */
        const struct pm_shape apart = { 5, { p.n, p.pixels, p.groups, p.c / p.groups, 1 } };

        y = pm_export_reshape(g, y, x, apart);
        y = normalised(g, y, PM_INT64S(1, 3), p.epsilon);
        y = pm_export_reshape(g, y, apart, x);
    }
    if (cfg->gamma)
        y = pm_export_op(g, "Mul",
                         PM_VALUES(y, pm_export_trailing(g, n, cfg->beta ? 1 : 0, x.rank)));
    if (cfg->beta)
        y = pm_export_op(g, "Add", PM_VALUES(y, pm_export_trailing(g, n, 0, x.rank)));
    return y;
}

const struct pm_layer pm_layer_layer_norm = {
    .name = "layer_norm", .help = "normalises each example over its trailing axes",
    .opts = layer_opts, .cfg_size = sizeof(struct norm_cfg), .infer = infer, .forward = forward,
    .backward = backward, .onnx = onnx,
};
const struct pm_layer pm_layer_group_norm = {
    .name = "group_norm", .help = "normalises each image over pixels and groups of channels",
    .opts = group_opts, .cfg_size = sizeof(struct norm_cfg), .infer = infer, .forward = forward,
    .backward = backward, .onnx = onnx,
};
