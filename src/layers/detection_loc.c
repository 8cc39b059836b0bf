/* detection_loc: the localization losses of detection_loss, for the anchors of one level. d is a
 * predicted code minus the code of the matched box, w the weight of the matched box.
 *
 *     smooth_l1  w d^2 / 2 if |d| <= delta, else w delta (|d| - delta / 2)
 *     l2         (w d)^2 / 2
 *     l1         w |d|
 *
 * An anchor's loss is the sum over its codes; it is 0 without a match. The box is encoded here, so
 * targets need no memory. A target that is NaN gives no loss and no gradient. A match that is not
 * a row of the truth, -1 or -2 gives NaN. */
#include "layers/detection_rows.h"

#include "layers/box_coder.h"

static struct pm_box_coder coder_of(const struct detection_loc_params *p)
{
    return (struct pm_box_coder){ p->coder, { p->s0, p->s1, p->s2, p->s3 } };
}

static float code_loss(const struct detection_loc_params *p, float w, float d)
{
    const float size = fabsf(d);

    switch (p->kind) {
    case DETECTION_L2: return 0.5f * (w * d) * (w * d);
    case DETECTION_L1: return w * size;
    default: return w * (size <= p->delta ? 0.5f * d * d : p->delta * (size - 0.5f * p->delta));
    }
}

static float code_slope(const struct detection_loc_params *p, float w, float d)
{
    switch (p->kind) {
    case DETECTION_L2: return w * w * d;
    case DETECTION_L1: return w * ((float)(d > 0) - (float)(d < 0));
    default: return w * (d > p->delta ? p->delta : d < -p->delta ? -p->delta : d);
    }
}

static float difference(float code, float target)
{
    return isnan(target) ? 0 : code - target;
}

/* Index of a level's row among the anchors of all examples. */
static size_t place_of(const struct detection_loc_params *p, size_t row)
{
    const size_t per = (size_t)p->per;

    return row / per * (size_t)p->anchors + (size_t)p->first + row % per;
}

/* Fills the target codes of a row that is matched with box g. Returns the box's weight. */
static float target_of(const struct pm_args *a, size_t row, int g, float target[4])
{
    const struct detection_loc_params *p = a->params;
    const struct pm_box_coder coder = coder_of(p);
    const size_t per = (size_t)p->per, truth = row / per * (size_t)p->m + (size_t)g;
    const float *anchors = a->buf[1], *boxes = a->buf[3], *weights = a->buf[4];

    pm_box_encode(&coder, boxes + 4 * truth, anchors + 4 * ((size_t)p->first + row % per), target);
    return weights[truth];
}

static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct detection_loc_params *p = a->params;
    const float *codes = a->buf[0];
    const int *matches = a->buf[2];
    float *losses = a->buf[5];

    for (size_t row = begin; row < end; row++) {
        const int g = matches[place_of(p, row)];
        float target[4] = { 0 }, sum = 0;

        if (g >= p->m || g < -2) {
            sum = NAN;
        } else if (g >= 0) {
            const float w = target_of(a, row, g, target);

            for (int i = 0; i < p->codes; i++)
                sum += code_loss(p, w, difference(codes[row * (size_t)p->codes + i], target[i]));
        }
        losses[row] = sum;
    }
}

static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct detection_loc_params *p = a->params;
    const float *codes = a->buf[0], *kept = a->buf[5], *factors = a->buf[6];
    const int *matches = a->buf[2];
    const struct pm_step *step = a->buf[7];
    const float scale = factors[0] * step->loss_scale;
    float *dcodes = a->buf[8];

    for (size_t row = begin; row < end; row++) {
        const size_t place = place_of(p, row), at = row * (size_t)p->codes;
        const int g = matches[place];
        const float keep = kept ? kept[place] * scale : scale;
        float target[4] = { 0 }, w = 0;

        if (g >= 0 && g < p->m)
            w = target_of(a, row, g, target);
        for (int i = 0; i < p->codes; i++)
            dcodes[at + i] =
                keep * (g < 0 ? 0 : code_slope(p, w, difference(codes[at + i], target[i])));
    }
}

static double flops(const void *params, size_t count)
{
    const struct detection_loc_params *p = params;

    return 12.0 * p->codes * (double)count;
}

static const struct pm_kernel fwd = {
    .name = "detection_loc_fwd",
    .bufs = "r:codes r:anchors r:matches r:boxes r:weights w:losses",
    .params_size = sizeof(struct detection_loc_params), .cpu = fwd_cpu, .flops = flops,
};
static const struct pm_kernel bwd = {
    .name = "detection_loc_bwd",
    .bufs = "r:codes r:anchors r:matches r:boxes r:weights r?:kept r:factors r:step w:dcodes",
    .inplace = "dcodes=codes", .params_size = sizeof(struct detection_loc_params), .cpu = bwd_cpu,
    .flops = flops,
};

void pm_detection_loc(struct pm_calls *c, const struct detection_loc_params *p,
                      struct pm_tensor codes, const struct pm_detection_truth *t,
                      struct pm_tensor losses)
{
    pm_call(c, &fwd, (size_t)p->rows, p,
            PM_BUFS(codes, t->anchors, t->matches, t->boxes, t->weights, losses));
}

void pm_detection_loc_back(struct pm_calls *c, const struct detection_loc_params *p,
                           struct pm_tensor codes, const struct pm_detection_truth *t,
                           struct pm_tensor kept, struct pm_tensor factors,
                           struct pm_tensor dcodes)
{
    pm_call(c, &bwd, (size_t)p->rows, p,
            PM_BUFS(codes, t->anchors, t->matches, t->boxes, t->weights, kept, factors,
                    pm_step_tensor(c), dcodes));
}
