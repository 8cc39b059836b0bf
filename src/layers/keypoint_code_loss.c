/* keypoint_code_loss: the loss of keypoints that a detector with anchors regresses together with
 * its boxes (the keypoint box coder of TensorFlow's Object Detection API). detection_loss has the
 * loss of the boxes. N: the anchors of all levels, M: the rows of an example's truth, K: keypoints
 * of an object. Inputs:
 *
 *     codes            [n, N, 2 K]  y, x of each keypoint
 *     anchors          [N, 4]       corners
 *     matches          I32 [n, N]   row of the truth; -1: no object; -2: ignored
 *     truth_keypoints  [n, M, K, 2] y, x in the unit of the anchors; NaN: not labelled
 *     truth_weights    [n, M]
 *     normalizer       [n], optional: as in detection_loss
 *
 * The loss of a matched anchor is the sum over its keypoints' codes of weighted_smooth_l1 or
 * weighted_l2 (detection_loc.c) with the weight of its object; keypoint_codes.h states the codes.
 * A keypoint that is not labelled has neither a loss nor a gradient. The sum over all anchors is
 * divided as in detection_loss, with the same options. A match that does not exist gives NaN, so
 * the step is rejected. */
#include <math.h>

#include <pumice/plan.h>

#include "layers/detection_rows.h"
#include "layers/infer.h"
#include "layers/keypoint_codes.h"

enum { SAVED_FACTORS };
enum { CODES, ANCHORS, MATCHES, KEYPOINTS, WEIGHTS, NORMALIZER };
#define NAMES                                                                                      \
    "codes, anchors, matches, truth_keypoints, truth_weights and, optionally, normalizer"

struct keypoint_code_cfg {
    int localization;
    struct pm_floats scales;
    float delta, weight;
    bool normalize_by_matches, normalize_per_image;
};

static const struct pm_opt opts[] = {
    PM_KEYPOINT_SCALES(keypoint_code_cfg),
    PM_ENUM(keypoint_code_cfg, localization, DETECTION_SMOOTH_L1,
            "weighted_smooth_l1|weighted_l2", "loss of codes"),
    PM_FLOAT(keypoint_code_cfg, delta, 1, 1e-6, 1e6,
             "weighted_smooth_l1: difference from which the loss is linear"),
    PM_FLOAT(keypoint_code_cfg, weight, 1, 0, 1e6, "weight of the loss"),
    PM_DETECTION_DIVISOR_OPTIONS(keypoint_code_cfg),
    { 0 },
};

/* ---- kernels --------------------------------------------------------------------------------- */

/* The difference of code i of a row from its target; 0 if the keypoint is not labelled. */
static float difference(const struct pm_args *a, size_t row, int g, int i)
{
    const struct keypoint_code_params *p = a->params;
    const size_t per = (size_t)p->per, codes = 2 * (size_t)p->points;
    const float *anchor = (const float *)a->buf[1] + 4 * (row % per);
    const float v = ((const float *)a->buf[3])[(row / per * (size_t)p->m + (size_t)g) * codes +
                                               (size_t)i];

    if (!(fabsf(v) <= 1e30f)) /* also NaN */
        return 0;
    return ((const float *)a->buf[0])[row * codes + (size_t)i] -
           pm_keypoint_encode(v, anchor, i % 2, i % 2 ? p->sx : p->sy);
}

static float weight_of(const struct pm_args *a, size_t row, int g)
{
    const struct keypoint_code_params *p = a->params;

    return ((const float *)a->buf[4])[row / (size_t)p->per * (size_t)p->m + (size_t)g];
}

/* Items: rows. */
static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct keypoint_code_params *p = a->params;
    float *losses = a->buf[5];

    for (size_t row = begin; row < end; row++) {
        const int g = ((const int *)a->buf[2])[row];
        float sum = g >= p->m || g < -2 ? NAN : 0;

        for (int i = 0; i < 2 * p->points && g >= 0 && g < p->m; i++)
            sum += pm_code_loss(p->kind, p->delta, weight_of(a, row, g),
                                difference(a, row, g, i));
        losses[row] = sum;
    }
}

static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct keypoint_code_params *p = a->params;
    const float *factors = a->buf[5];
    const struct pm_step *step = a->buf[6];
    const size_t codes = 2 * (size_t)p->points;

    for (size_t row = begin; row < end; row++) {
        const int g = ((const int *)a->buf[2])[row];
        const float f = factors[2 * (row / (size_t)p->per)] * step->loss_scale;
        float *dcodes = (float *)a->buf[7] + row * codes;

        for (int i = 0; i < 2 * p->points; i++)
            dcodes[i] = f * (g >= 0 && g < p->m
                                 ? pm_code_slope(p->kind, p->delta, weight_of(a, row, g),
                                                 difference(a, row, g, i))
                                 : 0);
    }
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct keypoint_code_params *p = params;

    (void)caps;
    return level == 0 &&
           pm_pick_elements("keypoint_code_loss_bwd", 64, 2 * count * (size_t)p->points, out);
}

static double flops(const void *params, size_t count)
{
    return 20.0 * (double)count * ((const struct keypoint_code_params *)params)->points;
}

static const struct pm_kernel fwd = {
    .name = "keypoint_code_loss_fwd",
    .bufs = "r:codes r:anchors r:matches r:keypoints r:weights w:losses",
    .params_size = sizeof(struct keypoint_code_params), .cpu = fwd_cpu, .flops = flops,
};
static const struct pm_kernel bwd = {
    .name = "keypoint_code_loss_bwd",
    .bufs = "r:codes r:anchors r:matches r:keypoints r:weights r:factors r:step w:dcodes",
    .inplace = "dcodes=codes", .params_size = sizeof(struct keypoint_code_params),
    .cpu = bwd_cpu, .pick = bwd_pick, .flops = flops,
};

/* ---- checks ---------------------------------------------------------------------------------- */

static const enum pm_type types[] = {
    [CODES] = PM_F32,     [ANCHORS] = PM_F32, [MATCHES] = PM_I32,
    [KEYPOINTS] = PM_F32, [WEIGHTS] = PM_F32, [NORMALIZER] = PM_F32,
};

/* Checks an input of two axes. */
static int check_matrix(const struct pm_node *n, int input, const char *name, int rows, int columns)
{
    char text[64];

    if (pm_input_is_shape(n, input, PM_SHAPE2(rows, columns)))
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s: %s have shape %s; for these codes and truth_keypoints they "
                   "must be %dx%d", n->name, name, pm_shape_text(n->in[input]->out_shape, text),
                   rows, columns);
}

static int infer(struct pm_node *n)
{
    const struct keypoint_code_cfg *cfg = n->cfg;
    const int *x = n->in[CODES]->out_shape.dim;
    int err = PM_OK;

    PM_TRY(pm_need_types(n, types, -1, NAMES));
    PM_TRY(pm_keypoint_codes_check(n, cfg->scales));
    PM_TRY(pm_need_keypoints(n, KEYPOINTS, x[0], x[2] / 2));
    PM_TRY(check_matrix(n, ANCHORS, "anchors", x[1], 4));
    PM_TRY(check_matrix(n, MATCHES, "matches", x[0], x[1]));
    PM_TRY(check_matrix(n, WEIGHTS, "truth_weights", x[0], n->in[KEYPOINTS]->out_shape.dim[1]));
    PM_TRY(pm_detection_check_normalizer(n, NORMALIZER, x[0], cfg->normalize_per_image));
    n->out_shape = (struct pm_shape){ 0 };
    n->out_type = PM_F32;
out:
    return err;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct keypoint_code_params params_of(const struct pm_node *n)
{
    const struct keypoint_code_cfg *cfg = n->cfg;
    const struct pm_shape x = n->xs[CODES].shape;

    return (struct keypoint_code_params){
        .rows = x.dim[0] * x.dim[1], .per = x.dim[1], .m = n->xs[KEYPOINTS].shape.dim[1],
        .points = x.dim[2] / 2, .kind = cfg->localization, .sy = cfg->scales.v[0],
        .sx = cfg->scales.v[1], .delta = cfg->delta,
    };
}

/* Adds the losses. pm_detection_sum adds two kinds of them; the second counts nothing here. */
static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct keypoint_code_cfg *cfg = n->cfg;
    const struct keypoint_code_params p = params_of(n);
    const int batch = p.rows / p.per;
    const struct pm_tensor normalizer = n->inputs > NORMALIZER ? n->xs[NORMALIZER] : PM_NO_TENSOR;
    const struct pm_tensor losses = pm_temp(c, PM_SHAPE2(batch, p.per), PM_F32);
    const struct pm_tensor factors = pm_save(c, n, SAVED_FACTORS, PM_SHAPE2(batch, 2), PM_F32);
    const struct pm_tensor loss[2] = { pm_loss_scalar(c, n->name),
                                       pm_temp(c, PM_SHAPE1(1), PM_F32) };
    const struct pm_detection_truth t = { .anchors = n->xs[ANCHORS], .matches = n->xs[MATCHES],
                                          .weights = n->xs[WEIGHTS] };
    const int divisor = pm_detection_divisor(cfg->normalize_per_image, pm_has(normalizer),
                                             cfg->normalize_by_matches);
    const struct detection_sum_params s = {
        .rows = p.rows, .anchors = p.per, .m = p.m, .divisor = divisor,
        .loc_scale = cfg->weight * pm_detection_share(c, divisor, batch),
    };

    pm_call(c, &fwd, (size_t)p.rows, &p,
            PM_BUFS(n->xs[CODES], n->xs[ANCHORS], n->xs[MATCHES], n->xs[KEYPOINTS],
                    n->xs[WEIGHTS], losses));
    pm_detection_sum(c, &s, losses, losses, &t, normalizer, PM_NO_TENSOR, loss, factors);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const struct keypoint_code_params p = params_of(n);

    if (pm_has(n->dxs[CODES]))
        pm_call(c, &bwd, (size_t)p.rows, &p,
                PM_BUFS(n->xs[CODES], n->xs[ANCHORS], n->xs[MATCHES], n->xs[KEYPOINTS],
                        n->xs[WEIGHTS], n->saved[SAVED_FACTORS], pm_step_tensor(c),
                        n->dxs[CODES]));
}

const struct pm_layer pm_layer_keypoint_code_loss = {
    .name = "keypoint_code_loss",
    .help = "loss of keypoints that are regressed with boxes: inputs " NAMES,
    .opts = opts,
    .cfg_size = sizeof(struct keypoint_code_cfg),
    .min_inputs = NORMALIZER,
    .max_inputs = NORMALIZER + 1,
    .loss = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};
