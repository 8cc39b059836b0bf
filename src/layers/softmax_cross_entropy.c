/* softmax_cross_entropy: the loss of classifying each row of logits [.., k] as its label.
 *
 *     y' = one_hot(label) (1 - s) + s / k           s = label_smoothing
 *     l  = sum of y' (log sum exp(z) - z)
 *     loss = weight * share * sum of w l / count of rows with w != 0
 *
 * A row whose label is ignore_label has w = 0. Without weights w = 1. label_weights multiply w by a
 * number per class. normalize = kept_pixels divides by the count of rows that are not ignored,
 * regardless of their weights. normalize = top_k divides by the count of all rows or, with
 * top_k_percent, of the mined rows, including ignored rows and zeros. share is the share of the
 * whole batch that this plan's examples represent. If no row counts, the loss and the gradients are
 * 0. A label that is neither in 0..k-1 nor ignored makes the loss and all gradients NaN. The step
 * is then rejected instead of learning from a wrong target.
 *
 * top_k_percent below 1 mines the rows with the largest w l among all rows, including ignored ones
 * (mining.h). The sum is then divided by the count of mined rows that are not 0, unless normalize
 * is top_k. Only these rows get a gradient.
 *
 * Forward: a call per row computes probabilities and l * w. A second call adds the rows in blocks
 * of a fixed size and leaves the factor of the gradients, scale / count. Backward: (softmax - y') w
 * factor. Class weights run before these calls and mining between them; both only change the w that
 * the calls read. */
#include "layers/cross_entropy.h"

#include <limits.h>

#include "layers/infer.h"
#include "layers/mining.h"
#include "device/pick.h"
#include "layers/tiles.h"
#include "softmax_cross_entropy.params.h"

struct loss_cfg {
    float label_smoothing, weight, top_k_percent;
    int ignore_label, normalize, mining_steps;
    struct pm_floats label_weights;
};

enum { NONZERO_WEIGHT, KEPT_PIXELS, TOP_K };

static const struct pm_opt opts[] = {
    PM_FLOAT(loss_cfg, label_smoothing, 0, 0, 1, "part of the target that is spread evenly over "
                                                 "all classes"),
    PM_FLOAT(loss_cfg, weight, 1, 0, 1e6, "weight of the loss"),
    PM_INT(loss_cfg, ignore_label, INT_MIN, INT_MIN, INT_MAX,
           "label of ignored rows; the default, the smallest integer, ignores none"),
    PM_FLOATS(loss_cfg, label_weights, "[]", 0, 1e6, "weight of each class"),
    PM_ENUM(loss_cfg, normalize, NONZERO_WEIGHT, "nonzero_weight|kept_pixels|top_k",
            "divisor of the sum: number of rows with a weight other than 0, of rows that are not "
            "ignored, or of rows that top_k_percent keeps (including zeros)"),
    PM_MINING_OPTIONS(loss_cfg),
    { 0 },
};

enum {
    BLOCK = 256, /* rows added one after the other */
    MANY = 4096, /* from here on, rows are pixels, whose few classes are too short for vectors */
};

PM_INLINE float weight_of(const struct softmax_cross_entropy_params *p, const int *labels,
                          const float *weights, size_t row)
{
    return labels && labels[row] == p->ignore ? 0 : weights ? weights[row] : 1;
}

/* Returns a row's loss from its sum of e^(z - largest), its sum of z - largest, and z - largest at
 * the label. */
PM_INLINE float loss_of(const struct softmax_cross_entropy_params *p, float w, bool valid,
                        float sum, float offset_sum, float at_label)
{
    return w == 0 ? 0
           : !valid ? NAN
           : w * (logf(sum) - (1 - p->smoothing) * at_label -
                  p->smoothing / (float)p->k * offset_sum);
}

PM_INLINE void row_of(const struct pm_args *a, size_t row)
{
    const struct softmax_cross_entropy_params *p = a->params;
    const int *labels = a->buf[1], k = p->k, label = labels[row];
    const float *z = (const float *)a->buf[0] + row * k;
    const bool valid = label >= 0 && label < k;
    float *e = (float *)a->buf[3] + row * k, *losses = a->buf[4];
    float largest = pm_row_max(z, k), sum, offset_sum = 0;
    float at_label = valid ? z[label] - largest : 0; /* read before logits are overwritten */

    for (int i = 0; p->smoothing > 0 && i < k; i++)
        offset_sum += z[i] - largest;
    PM_SIMD
    for (int i = 0; i < k; i++)
        e[i] = pm_expf(z[i] - largest);
    sum = pm_row_sum(e, k);
    PM_SIMD
    for (int i = 0; i < k; i++)
        e[i] *= 1 / sum;
    losses[row] =
        loss_of(p, weight_of(p, labels, a->buf[2], row), valid, sum, offset_sum, at_label);
}

/* Sums e along the values, in the order of pm_row_sum. */
PM_INLINE void tile_sums(const float *e, int k, float sum[PM_TILE])
{
    float part[16][PM_TILE] = { { 0 } };

    for (int i = 0; i < k; i++)
        for (int r = 0; r < PM_TILE; r++)
            part[i % 16][r] += e[i * PM_TILE + r];
    for (int width = 8; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            for (int r = 0; r < PM_TILE; r++)
                part[i][r] += part[i + width][r];
    memcpy(sum, part[0], sizeof part[0]);
}

/* Computes PM_TILE rows like row_of, in the same order. */
PM_INLINE void tile_of(const struct pm_args *a, size_t row)
{
    const struct softmax_cross_entropy_params *p = a->params;
    const int *labels = (const int *)a->buf[1] + row, k = p->k;
    const float *z = (const float *)a->buf[0] + row * k;
    float e[PM_TILE_VALUES * PM_TILE], largest[PM_TILE], offset_sum[PM_TILE] = { 0 };
    float at_label[PM_TILE], sum[PM_TILE], *losses = a->buf[4];

    pm_tile_take(z, (size_t)k, k, e);
    for (int r = 0; r < PM_TILE; r++)
        largest[r] = -INFINITY;
    for (int i = 0; i < k; i++)
        for (int r = 0; r < PM_TILE; r++)
            largest[r] = e[i * PM_TILE + r] > largest[r] ? e[i * PM_TILE + r] : largest[r];
    for (int r = 0; r < PM_TILE; r++)
        at_label[r] = labels[r] >= 0 && labels[r] < k ? z[r * k + labels[r]] - largest[r] : 0;
    for (int i = 0; i < k; i++)
        for (int r = 0; r < PM_TILE; r++)
            e[i * PM_TILE + r] -= largest[r];
    for (int i = 0; p->smoothing > 0 && i < k; i++)
        for (int r = 0; r < PM_TILE; r++)
            offset_sum[r] += e[i * PM_TILE + r];
    for (int i = 0; i < k * PM_TILE; i++)
        e[i] = pm_expf(e[i]);
    tile_sums(e, k, sum);
    for (int r = 0; r < PM_TILE; r++)
        losses[row + r] =
            loss_of(p, weight_of(p, labels, a->buf[2] ? (float *)a->buf[2] + row : NULL, r),
                    labels[r] >= 0 && labels[r] < k, sum[r], offset_sum[r], at_label[r]);
    for (int r = 0; r < PM_TILE; r++)
        sum[r] = 1 / sum[r];
    for (int i = 0; i < k; i++)
        for (int r = 0; r < PM_TILE; r++)
            e[i * PM_TILE + r] *= sum[r];
    pm_tile_put(e, (size_t)k, k, (float *)a->buf[3] + row * k);
}

PM_CLONES static void rows_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct softmax_cross_entropy_params *p = a->params;
    const bool tiles = p->k <= PM_TILE_VALUES && p->rows >= MANY;

    for (; tiles && begin + PM_TILE <= end; begin += PM_TILE)
        tile_of(a, begin);
    for (; begin < end; begin++)
        row_of(a, begin);
}

static void sum_cpu(const struct pm_args *a)
{
    const struct softmax_cross_entropy_params *p = a->params;
    const float *losses = a->buf[0], *weights = a->buf[2];
    const int *labels = a->buf[1];
    float *loss = a->buf[4], *factor = a->buf[5], total = 0;
    int count = 0;

    for (int block = 0; block < p->rows; block += BLOCK) {
        int stop = block + BLOCK < p->rows ? block + BLOCK : p->rows;
        float sum = 0;

        for (int row = block; row < stop; row++) {
            sum += losses[row];
            count += p->count_kept ? labels[row] != p->ignore
                                   : weight_of(p, labels, weights, row) != 0;
        }
        total += sum;
    }
    count = p->divisor > 0 ? p->divisor : count;
    *factor = count ? p->scale / (float)count : 0;
    *loss = total * *factor;
    if (!(total - total == 0)) /* an invalid label, or logits that are not finite */
        *loss = *factor = NAN;
}

PM_CLONES static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct softmax_cross_entropy_params *p = a->params;
    const float *prob = a->buf[0], *weights = a->buf[2], *factor = a->buf[3];
    const int *labels = a->buf[1];
    const struct pm_step *step = a->buf[4];
    float *dz = a->buf[5];
    int k = p->k;

    for (size_t row = begin; row < end; row++) {
        float w = weight_of(p, labels, weights, row) * *factor * step->loss_scale;
        float even = p->smoothing / (float)k;
        int label = labels[row], valid = label >= 0 && label < k;
        float at_label = valid ? (prob[row * k + label] - even - (1 - p->smoothing)) * w : 0;

        PM_SIMD
        for (int i = 0; i < k; i++)
            dz[row * k + i] = (prob[row * k + i] - even) * w;
        if (valid)
            dz[row * k + label] = at_label;
    }
}

/* ---- rows ------------------------------------------------------------------------------ */

enum {
    LANES = 256,       /* scratch: a partial sum and a count per lane */
    MOST_ROWS = 65536, /* with more rows, each is a workgroup */
};

static bool rows_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                      struct pm_picks *out)
{
    const struct softmax_cross_entropy_params *p = params;

    (void)caps;
    return pick_wide("softmax_cross_entropy_rows_wide", "softmax_cross_entropy_rows", count, p->k,
                     level, out);
}

static bool sum_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const bool wide = count > MOST_ROWS;

    (void)caps, (void)params;
    if (level > (wide ? 1 : 0))
        return false;
    if (wide && level == 0)
        pm_pick_elements("softmax_cross_entropy_part_wide", 64, LANES * 64, out);
    else
        pm_pick_elements("softmax_cross_entropy_part", 64, LANES, out);
    out->d[1] = out->d[0];
    out->d[1].shader = "softmax_cross_entropy_sum";
    out->d[1].groups[0] = 1;
    out->d[1].spec[0] = 1;
    out->count = 2;
    out->scratch[3] = 2 * LANES * sizeof(float);
    return true;
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct softmax_cross_entropy_params *p = params;

    (void)caps;
    return level == 0 &&
           pm_pick_elements("softmax_cross_entropy_bwd", 64, count * (size_t)p->k, out);
}

static double flops(const void *params, size_t count)
{
    const struct softmax_cross_entropy_params *p = params;
    return 12.0 * p->k * (double)count;
}

static const struct pm_kernel rows = {
    .name = "softmax_cross_entropy_rows",
    .bufs = "r:logits r:labels r?:weights w:prob w:losses", .inplace = "prob=logits",
    .params_size = sizeof(struct softmax_cross_entropy_params), .cpu = rows_cpu, .grain = PM_TILE,
    .pick = rows_pick, .flops = flops,
};
static const struct pm_kernel sum = {
    .name = "softmax_cross_entropy_sum",
    .bufs = "r:losses r?:labels r?:weights t:part w:loss w:factor",
    .params_size = sizeof(struct softmax_cross_entropy_params), .cpu_all = sum_cpu,
    .pick = sum_pick,
};
static const struct pm_kernel bwd = {
    .name = "softmax_cross_entropy_bwd",
    .bufs = "r:prob r:labels r?:weights r:factor r:step w:dz", .inplace = "dz=prob",
    .params_size = sizeof(struct softmax_cross_entropy_params), .cpu = bwd_cpu, .grain = 8,
    .pick = bwd_pick, .flops = flops,
};

void pm_rows_mean(struct pm_calls *c, struct pm_tensor losses, struct pm_tensor weights,
                  float scale, struct pm_tensor loss, struct pm_tensor factor)
{
    const struct softmax_cross_entropy_params p = {
        .rows = (int)pm_count(losses), .scale = scale,
    };

    pm_call(c, &sum, (size_t)p.rows, &p, PM_BUFS(losses, PM_NO_TENSOR, weights, PM_NO_TENSOR, loss,
                                                 factor));
}

/* ---- layer ----------------------------------------------------------------------------- */

static int check_classes(const struct pm_node *n)
{
    const struct loss_cfg *cfg = n->cfg;
    const struct pm_shape logits = n->in[0]->out_shape;
    const int k = logits.dim[logits.rank - 1];

    if (cfg->label_weights.count && cfg->label_weights.count != k)
        return pm_fail(PM_ECONFIG, "%s: label_weights has %d numbers, but there are %d classes",
                       n->name, cfg->label_weights.count, k);
    return PM_OK;
}

static int check_divisor(const struct pm_node *n)
{
    const struct loss_cfg *cfg = n->cfg;

    if (cfg->normalize == TOP_K && cfg->top_k_percent < 1 && cfg->mining_steps > 0)
        return pm_fail(PM_ECONFIG,
                       "%s: normalize=top_k divides by a fixed number of rows, but with "
                       "mining_steps %d that number falls: remove mining_steps",
                       n->name, cfg->mining_steps);
    return PM_OK;
}

static int infer(struct pm_node *n)
{
    static const char *const names[] = { "logits", "labels", "weights" };
    struct pm_shape logits = n->in[0]->out_shape;
    size_t count;
    int err;
    char a[64], b[64];

    if (logits.rank < 2)
        return pm_fail(PM_ECONFIG, "%s: logits have shape %s, which has no axis of classes",
                       n->name, pm_shape_text(logits, a));
    if ((err = check_classes(n)) < 0 || (err = check_divisor(n)) < 0)
        return err;
    count = pm_shape_count(logits) / (size_t)logits.dim[logits.rank - 1];
    for (int i = 1; i < n->inputs; i++)
        if (pm_shape_count(n->in[i]->out_shape) != count)
            return pm_fail(PM_ECONFIG, "%s: %s have shape %s, but the logits %s have %zu rows",
                           n->name, names[i], pm_shape_text(n->in[i]->out_shape, a),
                           pm_shape_text(logits, b), count);
    if (n->in[1]->out_type != PM_I32)
        return pm_fail(PM_ECONFIG, "%s: labels must be int32 (inputs are logits, labels and, "
                       "optionally, weights)", n->name);
    n->out_shape = (struct pm_shape){ 0 };
    n->out_type = PM_F32;
    err = pm_need_floats(n, 0, 0);
    return err ? err : pm_need_floats(n, 2, 2);
}

static struct softmax_cross_entropy_params params_of(const struct pm_node *n, struct pm_calls *c)
{
    const struct loss_cfg *cfg = n->cfg;
    struct pm_shape x = n->x.shape;
    int k = x.dim[x.rank - 1];

    return (struct softmax_cross_entropy_params){
        .rows = (int)(pm_count(n->x) / (size_t)k), .k = k, .ignore = cfg->ignore_label,
        .smoothing = cfg->label_smoothing, .scale = cfg->weight * pm_loss_share(c),
    };
}

static bool mines(const struct pm_node *n)
{
    return ((const struct loss_cfg *)n->cfg)->top_k_percent < 1;
}

/* Returns the weights that the calls read: the given ones, or saved[2] if they are computed
 * here. */
static struct pm_tensor weights_of(const struct pm_node *n)
{
    const struct loss_cfg *cfg = n->cfg;

    return cfg->label_weights.count || mines(n) ? n->saved[2]
           : n->inputs > 2                      ? n->xs[2] : PM_NO_TENSOR;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct loss_cfg *cfg = n->cfg;
    struct softmax_cross_entropy_params p = params_of(n, c);
    const struct pm_shape rows_shape = PM_SHAPE1(p.rows);
    struct pm_tensor labels = n->xs[1], weights = n->inputs > 2 ? n->xs[2] : PM_NO_TENSOR;
    struct pm_tensor prob = pm_save(c, n, 0, n->x.shape, PM_F32);
    struct pm_tensor factor = pm_save(c, n, 1, (struct pm_shape){ 0 }, PM_F32);
    struct pm_tensor losses = pm_temp(c, rows_shape, PM_F32);

    if (cfg->label_weights.count) {
        struct pm_tensor made = mines(n) ? pm_temp(c, rows_shape, PM_F32)
                                         : pm_save(c, n, 2, rows_shape, PM_F32);

        pm_label_weights(c, labels, weights, cfg->label_weights, cfg->ignore_label, made);
        weights = made;
    }
    pm_call(c, &rows, (size_t)p.rows, &p, PM_BUFS(n->x, labels, weights, prob, losses));
    if (mines(n)) {
        struct pm_tensor mined = pm_save(c, n, 2, rows_shape, PM_F32), all = losses;

        losses = pm_temp(c, rows_shape, PM_F32);
        pm_mine(c, (struct pm_mining){ cfg->top_k_percent, cfg->mining_steps }, all, weights, mined,
                losses);
        weights = mined;
    }
    p.count_kept = cfg->normalize == KEPT_PIXELS && !mines(n);
    if (cfg->normalize == TOP_K)
        p.divisor = pm_mining_keep((struct pm_mining){ cfg->top_k_percent, 0 }, p.rows, 0);
    pm_call(c, &sum, (size_t)p.rows, &p, PM_BUFS(losses, labels, weights, PM_NO_TENSOR,
                                                 pm_loss_scalar(c, n->name), factor));
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const struct softmax_cross_entropy_params p = params_of(n, c);

    if (pm_has(n->dx))
        pm_call(c, &bwd, (size_t)p.rows, &p, PM_BUFS(n->saved[0], n->xs[1], weights_of(n),
                                                     n->saved[1], pm_step_tensor(c), n->dx));
}

const struct pm_layer pm_layer_softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .help = "loss of classes: inputs logits [.., k], labels (int32) and, optionally, weights",
    .opts = opts, .cfg_size = sizeof(struct loss_cfg), .min_inputs = 2, .max_inputs = 3,
    .loss = true, .infer = infer, .forward = forward, .backward = backward,
};
