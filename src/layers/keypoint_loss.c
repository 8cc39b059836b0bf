/* keypoint_loss: the loss of the keypoints that a detector's second stage predicts for its boxes
 * (Mask R-CNN, section 5; torchvision's Keypoint R-CNN).
 *
 *     loss = weight / n * sum over examples (L / max(P, 1))    normalize_over=image
 *     loss = weight * share * sum of L / max(sum of P, 1)      normalize_over=batch
 *     L = sum over an example's keypoints with a target (logsumexp(x) - x[target])
 *     P = number of these keypoints
 *
 * x are the h * w logits of a keypoint of a box: its heatmap. So L has the cross entropy of a
 * softmax over places. weight is the option. n is the number of examples of the whole batch. With
 * normalize_over=image the losses of the parts of a batch add up to that of the whole batch. With
 * normalize_over=batch the sums are those of this plan's examples, as in torchvision, and share is
 * the part of the whole batch that these examples are. R: boxes of an example, K: keypoints of an
 * object, M: rows of its truth. Inputs:
 *
 *     logits           [n * R, h, w, K]
 *     boxes            [n, R, 4]       corners ymin, xmin, ymax, xmax
 *     matches          I32 [n, R]      row of the truth; -1: background; -2: padding
 *     truth_keypoints  [n, M, K, 2]    y, x in the unit of the boxes; NaN: not labelled
 *
 * The weights of objects do not scale this loss: a labelled keypoint of a matched object counts
 * fully.
 *
 * The target of a keypoint (y, x) of the matched object is the place that has it when h x w equal
 * places divide the box: row floor((y - ymin) * h / (ymax - ymin)), column likewise. A keypoint on
 * the far side of the box is in the last place. Keypoints outside the box, keypoints that are not
 * labelled, boxes without a match, and boxes without area or with a side above 1e30 have no target:
 * they cost nothing and have no gradient. A match that does not exist gives NaN, so the step is
 * rejected. There is no gradient through boxes.
 *
 * A place follows from comparisons of products: row k has the keypoint if
 * k * (ymax - ymin) <= (y - ymin) * h < (k + 1) * (ymax - ymin). All devices round products alike.
 * They may round quotients differently; then floor() of a keypoint at the border of two places
 * would give different places. */
#include <pumice/plan.h>

#include "layers/infer.h"
#include "layers/region_loss.h"
#include "layers/vmath.h"
#include "keypoint_loss.params.h"

enum { SAVED_TARGET, SAVED_LSE, SAVED_FACTORS };
enum { LOGITS, BOXES, MATCHES, KEYPOINTS, INPUTS };
#define NAMES "logits, boxes, matches, truth_keypoints"

enum { BY_IMAGE, BY_BATCH };
struct keypoint_loss_cfg {
    int normalize_over;
    float weight;
};

static const struct pm_opt opts[] = {
    PM_FLOAT(keypoint_loss_cfg, weight, 1, 0, 1e6, "weight of the loss"),
    PM_ENUM(keypoint_loss_cfg, normalize_over, BY_IMAGE, "image|batch",
            "divide each image's loss by its own keypoints and take the mean of the images, or "
            "divide the sum by all keypoints of this device's part of the batch"),
    { 0 },
};

/* ---- targets --------------------------------------------------------------------------------- */

enum target { NONE = -1, UNKNOWN = -2 }; /* in the place of a target */
enum { PADDING = -2 };                   /* a match */

/* Returns which of n equal parts of low..high has v, or NONE. Every comparison is false for NaN. */
static int bin_of(float v, float low, float high, int n)
{
    const float side = high - low, at = (v - low) * (float)n;
    int k;

    if (!(side > 0 && side <= 1e30f && v >= low && v <= high))
        return NONE;
    k = (int)(at / side); /* one too many or too few after rounding */
    k = k < n ? k : n - 1;
    while (k > 0 && (float)k * side > at)
        k--;
    while (k + 1 < n && (float)(k + 1) * side <= at)
        k++;
    return k;
}

/* Returns the place of keypoint k in the heatmap of a box. */
static int target_of(const struct pm_args *a, size_t row, int k)
{
    const struct keypoint_loss_params *p = a->params;
    const float *box = (const float *)a->buf[1] + 4 * row;
    const int g = ((const int *)a->buf[2])[row];
    const float *point;
    int y, x;

    if (g < PADDING || g >= p->m)
        return UNKNOWN;
    if (g < 0)
        return NONE;
    point = (const float *)a->buf[3] +
            2 * ((row / (size_t)p->per * (size_t)p->m + (size_t)g) * (size_t)p->points + (size_t)k);
    y = bin_of(point[0], box[0], box[2], p->h);
    x = bin_of(point[1], box[1], box[3], p->w);
    return y < 0 || x < 0 ? NONE : y * p->w + x;
}

/* ---- kernels --------------------------------------------------------------------------------- */

enum { PIECE = 256 }; /* logits of a heatmap that are copied at once */

/* Returns the largest of `count` logits; NaN if one is NaN. stride: from logit to logit. */
PM_INLINE float most_of(const float *x, int count, size_t stride)
{
    float most = x[0];

    for (int i = 0; i < count; i++) {
        const float v = x[(size_t)i * stride];

        most = v > most || isnan(v) ? v : most;
    }
    return most;
}

/* Items: rows. */
PM_CLONES static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct keypoint_loss_params *p = a->params;
    const size_t points = (size_t)p->points;
    const int places = p->h * p->w;

    for (size_t i = begin; i < end; i++)
        for (size_t k = 0; k < points; k++) {
            const float *x = (const float *)a->buf[0] + i * (size_t)places * points + k;
            const int target = target_of(a, i, (int)k);
            const size_t at = i * points + k;
            float loss = target == UNKNOWN ? NAN : 0, lse = 0;

            if (target >= 0) {
                const float most = most_of(x, places, points);
                const float log_sum = logf(pm_exp_sum(x, places, points, most));

                loss = most - x[(size_t)target * points] + log_sum;
                lse = most + log_sum;
            }
            ((float *)a->buf[4])[at] = loss;
            ((int32_t *)a->buf[5])[at] = target;
            ((float *)a->buf[6])[at] = lse;
            ((float *)a->buf[7])[at] = target >= 0;
        }
}

/* Writes the gradient of a keypoint's logits; dx may be x. f: the factor. */
PM_INLINE void slopes_of(const float *x, int count, size_t stride, float lse, int target, float f,
                         float *dx)
{
    float e[PIECE];

    for (int first = 0; first < count; first += PIECE) {
        const int n = count - first < PIECE ? count - first : PIECE;

        for (int i = 0; i < n; i++)
            e[i] = x[(size_t)(first + i) * stride] - lse;
        PM_SIMD
        for (int i = 0; i < n; i++)
            e[i] = pm_expf(e[i]) * f;
        for (int i = 0; i < n; i++)
            dx[(size_t)(first + i) * stride] = e[i];
    }
    dx[(size_t)target * stride] -= f;
}

/* Items: rows. A factor that is not finite spoils the whole gradient, so the step is rejected. */
PM_CLONES static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct keypoint_loss_params *p = a->params;
    const struct pm_step *step = a->buf[4];
    const size_t points = (size_t)p->points, each = (size_t)p->h * (size_t)p->w * points;

    for (size_t i = begin; i < end; i++) {
        const float f = ((const float *)a->buf[3])[i / (size_t)p->per] * step->loss_scale;
        const int32_t *target = (const int32_t *)a->buf[1] + i * points;
        const float *lse = (const float *)a->buf[2] + i * points;
        const float *x = (const float *)a->buf[0] + i * each;
        float *dx = (float *)a->buf[5] + i * each;

        for (size_t k = 0; k < points; k++)
            if (target[k] >= 0)
                slopes_of(x + k, p->h * p->w, points, lse[k], target[k], f, dx + k);
            else
                for (size_t at = k; at < each; at += points)
                    dx[at] = 0 * f;
    }
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct keypoint_loss_params *p = params;

    (void)caps;
    return level == 0 &&
           pm_pick_elements("keypoint_loss_fwd", 64, 64 * count * (size_t)p->points, out);
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct keypoint_loss_params *p = params;

    (void)caps;
    return level == 0 &&
           pm_pick_elements("keypoint_loss_bwd", 64,
                            count * (size_t)p->h * (size_t)p->w * (size_t)p->points, out);
}

static double flops(const void *params, size_t count)
{
    const struct keypoint_loss_params *p = params;

    return 20.0 * (double)count * p->h * p->w * p->points;
}

static const struct pm_kernel fwd = {
    .name = "keypoint_loss_fwd",
    .bufs = "r:logits r:boxes r:matches r:keypoints w:losses w:target w:lse w:used",
    .params_size = sizeof(struct keypoint_loss_params), .cpu = fwd_cpu, .grain = 1,
    .pick = fwd_pick, .flops = flops,
};
static const struct pm_kernel bwd = {
    .name = "keypoint_loss_bwd", .bufs = "r:logits r:target r:lse r:factors r:step w:dlogits",
    .inplace = "dlogits=logits", .params_size = sizeof(struct keypoint_loss_params),
    .cpu = bwd_cpu, .grain = 1, .pick = bwd_pick, .flops = flops,
};

/* ---- checks ---------------------------------------------------------------------------------- */

static const enum pm_type types[] = {
    [LOGITS] = PM_F32, [BOXES] = PM_F32, [MATCHES] = PM_I32, [KEYPOINTS] = PM_F32,
};

static int infer(struct pm_node *n)
{
    int err = PM_OK;

    PM_TRY(pm_need_types(n, types, -1, NAMES));
    PM_TRY(pm_region_loss_check(n, "K", "a heatmap for each keypoint"));
    PM_TRY(pm_need_keypoints(n, KEYPOINTS, n->in[BOXES]->out_shape.dim[0],
                             n->in[LOGITS]->out_shape.dim[3]));
    n->out_shape = (struct pm_shape){ 0 };
    n->out_type = PM_F32;
out:
    return err;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct keypoint_loss_params params_of(const struct pm_node *n)
{
    const struct pm_shape x = n->xs[LOGITS].shape;

    return (struct keypoint_loss_params){
        .rows = x.dim[0], .per = n->xs[BOXES].shape.dim[1], .m = n->xs[KEYPOINTS].shape.dim[1],
        .h = x.dim[1], .w = x.dim[2], .points = x.dim[3],
    };
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct keypoint_loss_cfg *cfg = n->cfg;
    const struct keypoint_loss_params p = params_of(n);
    const int images = p.rows / p.per;
    const struct region_loss_sum_params s = {
        .images = images, .per = p.per * p.points, .together = cfg->normalize_over == BY_BATCH,
        .pixels = 1,
    };
    const struct pm_shape each = PM_SHAPE2(p.rows, p.points);
    const struct pm_tensor losses = pm_temp(c, each, PM_F32), used = pm_temp(c, each, PM_F32);
    const struct pm_tensor target = pm_save(c, n, SAVED_TARGET, each, PM_I32);
    const struct pm_tensor lse = pm_save(c, n, SAVED_LSE, each, PM_F32);
    const struct pm_tensor factors = pm_save(c, n, SAVED_FACTORS, PM_SHAPE1(images), PM_F32);

    pm_call(c, &fwd, (size_t)p.rows, &p,
            PM_BUFS(n->xs[LOGITS], n->xs[BOXES], n->xs[MATCHES], n->xs[KEYPOINTS], losses, target,
                    lse, used));
    pm_region_loss_sum(c, s, cfg->weight, losses, used, pm_loss_scalar(c, n->name), factors);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const struct keypoint_loss_params p = params_of(n);

    if (pm_has(n->dxs[LOGITS]))
        pm_call(c, &bwd, (size_t)p.rows, &p,
                PM_BUFS(n->xs[LOGITS], n->saved[SAVED_TARGET], n->saved[SAVED_LSE],
                        n->saved[SAVED_FACTORS], pm_step_tensor(c), n->dxs[LOGITS]));
}

const struct pm_layer pm_layer_keypoint_loss = {
    .name = "keypoint_loss",
    .help = "loss of the keypoints of a detector's second stage: inputs " NAMES,
    .opts = opts,
    .cfg_size = sizeof(struct keypoint_loss_cfg),
    .min_inputs = INPUTS,
    .max_inputs = INPUTS,
    .loss = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};
