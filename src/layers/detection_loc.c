/* detection_loc: the localization losses of detection_loss, for the anchors of one level, and those
 * of box_classifier_loss, whose anchors are each example's own boxes. d is a predicted code minus
 * the code of the matched box, w the weight of the matched box.
 *
 *     smooth_l1  w d^2 / 2 if |d| <= delta, else w delta (|d| - delta / 2)
 *     l2         (w d)^2 / 2
 *     l1         w |d|
 *     iou        w (1 - IoU)
 *     giou       w (1 - GIoU), GIoU = IoU - 1 + union / smallest box around both (Rezatofighi et
 *                al. 2019)
 *
 * The first three are summed over the codes. The last two compare the decoded box with the matched
 * one. (TensorFlow's SSD passes them codes, which are no boxes.) The loss is 0 without a match.
 * Rotated boxes have the first three only. Those of box_classifier_loss are coded by the nearest
 * half turn. The box is encoded here, so targets need no memory. A target that is NaN gives no loss
 * and no gradient. A match that is not a row of the truth, -1 or -2 gives NaN. */
#include "layers/detection_rows.h"

#include <string.h>

#include "layers/box_coder.h"

static struct pm_box_coder coder_of(const struct detection_loc_params *p)
{
    return (struct pm_box_coder){ p->coder, { p->s0, p->s1, p->s2, p->s3, p->s4 } };
}

/* Codes of a box. */
static int codes_of(const struct detection_loc_params *p)
{
    const struct pm_box_coder coder = coder_of(p);

    return pm_box_coder_size(&coder);
}

static float larger(float a, float b) { return a > b ? a : b; }
static float smaller(float a, float b) { return a < b ? a : b; }

/* Returns the loss of box b and truth t without weight, and stores its gradient by b's corners. If
 * the union or the box around both has no area, it has no part in the gradient. */
static float overlap_loss(int kind, const float b[4], const float t[4], float slope[4])
{
    float inner[2], outer[2], side[2];

    for (int k = 0; k < 2; k++) {
        inner[k] = larger(smaller(b[k + 2], t[k + 2]) - larger(b[k], t[k]), 0);
        outer[k] = larger(b[k + 2], t[k + 2]) - smaller(b[k], t[k]);
        side[k] = b[k + 2] - b[k];
    }
    const float common = inner[0] * inner[1], around = outer[0] * outer[1];
    const float joined = side[0] * side[1] + (t[2] - t[0]) * (t[3] - t[1]) - common;
    const float iou = joined > 0 ? common / joined : 0;
    const float part = kind == DETECTION_GIOU && around > 0 ? joined / around : 1;

    for (int i = 0; i < 4; i++) {
        const int k = i % 2, high = i / 2, sign = high ? 1 : -1;
        const bool cuts = inner[k] > 0 && (high ? b[i] < t[i] : b[i] > t[i]);
        const bool bounds = high ? b[i] > t[i] : b[i] < t[i];
        const float dcommon = cuts ? inner[!k] : 0, darea = side[!k];
        const float daround = bounds ? outer[!k] : 0;

        slope[i] = joined > 0 ? sign * (iou * darea - dcommon * (1 + iou)) / joined : 0;
        if (kind == DETECTION_GIOU && around > 0)
            slope[i] -= sign * (darea - dcommon - part * daround) / around;
    }
    return 1 - iou + (1 - part);
}

static const float *anchor_of(const struct pm_args *a, size_t row)
{
    const struct detection_loc_params *p = a->params;

    return (const float *)a->buf[1] +
           (p->coder == PM_CODER_ROTATED ? 5 : 4) *
               (p->own ? row : (size_t)p->first + row % (size_t)p->per);
}

/* The loss of a row that is matched with box g, and the gradient of its codes. */
static float box_loss(const struct pm_args *a, size_t row, int g, float dcode[4])
{
    const struct detection_loc_params *p = a->params;
    const struct pm_box_coder coder = coder_of(p);
    const size_t per = (size_t)p->per, truth = row / per * (size_t)p->m + (size_t)g;
    const float *code = (const float *)a->buf[0] + row * (size_t)codes_of(p);
    const float *anchor = anchor_of(a, row);
    const float w = ((const float *)a->buf[4])[truth];
    float box[4], slope[4];

    pm_box_decode(&coder, code, anchor, box);
    const float loss = overlap_loss(p->kind, box, (const float *)a->buf[3] + 4 * truth, slope);

    pm_box_decode_back(&coder, code, anchor, box, slope, dcode);
    for (int i = 0; i < codes_of(p); i++)
        dcode[i] *= w;
    return w * loss;
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
static float target_of(const struct pm_args *a, size_t row, int g, float target[5])
{
    const struct detection_loc_params *p = a->params;
    const struct pm_box_coder coder = coder_of(p);
    const size_t per = (size_t)p->per, truth = row / per * (size_t)p->m + (size_t)g;
    const size_t numbers = (size_t)pm_box_coder_numbers(&coder);
    const float *boxes = a->buf[3], *weights = a->buf[4], *anchor = anchor_of(a, row);
    float box[5];

    memcpy(box, boxes + numbers * truth, numbers * sizeof *box);
    if (p->own && numbers == 5)
        box[4] = pm_box_near_angle(box[4], anchor[4]);
    pm_box_encode_any(&coder, box, anchor, target);
    return weights[truth];
}

static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct detection_loc_params *p = a->params;
    const int size = codes_of(p);
    const float *codes = a->buf[0];
    const int *matches = a->buf[2];
    float *losses = a->buf[5];

    for (size_t row = begin; row < end; row++) {
        const int g = matches[place_of(p, row)];
        float target[5] = { 0 }, sum = 0;

        if (g >= p->m || g < -2) {
            sum = NAN;
        } else if (g >= 0 && p->kind >= DETECTION_IOU) {
            sum = box_loss(a, row, g, target);
        } else if (g >= 0) {
            const float w = target_of(a, row, g, target);

            for (int i = 0; i < size; i++)
                sum += pm_code_loss(p->kind, p->delta, w,
                                    difference(codes[row * (size_t)size + i], target[i]));
        }
        losses[row] = sum;
    }
}

static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct detection_loc_params *p = a->params;
    const int size = codes_of(p);
    const float *codes = a->buf[0], *kept = a->buf[5], *factors = a->buf[6];
    const int *matches = a->buf[2];
    const struct pm_step *step = a->buf[7];
    float *dcodes = a->buf[8];

    for (size_t row = begin; row < end; row++) {
        const size_t place = place_of(p, row), at = row * (size_t)size;
        const int g = matches[place];
        const float scale = factors[2 * (row / (size_t)p->per)] * step->loss_scale;
        const float keep = kept ? kept[place] * scale : scale;
        float target[5] = { 0 }, w = 0;

        if (g >= 0 && g < p->m && p->kind >= DETECTION_IOU) {
            float dcode[4] = { 0 };

            box_loss(a, row, g, dcode);
            for (int i = 0; i < size; i++)
                dcodes[at + i] = keep * dcode[i];
            continue;
        }
        if (g >= 0 && g < p->m)
            w = target_of(a, row, g, target);
        for (int i = 0; i < size; i++)
            dcodes[at + i] =
                keep * (g < 0 ? 0
                              : pm_code_slope(p->kind, p->delta, w,
                                              difference(codes[at + i], target[i])));
    }
}

static double flops(const void *params, size_t count)
{
    const struct detection_loc_params *p = params;

    return 12.0 * codes_of(p) * (double)count;
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

static const struct pm_kernel rotated_fwd = {
    .name = "rotated_loc_fwd",
    .bufs = "r:codes r:anchors r:matches r:boxes r:weights w:losses",
    .params_size = sizeof(struct detection_loc_params), .cpu = fwd_cpu, .flops = flops,
};
static const struct pm_kernel rotated_bwd = {
    .name = "rotated_loc_bwd",
    .bufs = "r:codes r:anchors r:matches r:boxes r:weights r?:kept r:factors r:step w:dcodes",
    .inplace = "dcodes=codes", .params_size = sizeof(struct detection_loc_params), .cpu = bwd_cpu,
    .flops = flops,
};

void pm_detection_loc(struct pm_calls *c, const struct detection_loc_params *p,
                      struct pm_tensor codes, const struct pm_detection_truth *t,
                      struct pm_tensor losses)
{
    pm_call(c, p->coder == PM_CODER_ROTATED ? &rotated_fwd : &fwd, (size_t)p->rows, p,
            PM_BUFS(codes, t->anchors, t->matches, t->boxes, t->weights, losses));
}

void pm_detection_loc_back(struct pm_calls *c, const struct detection_loc_params *p,
                           struct pm_tensor codes, const struct pm_detection_truth *t,
                           struct pm_tensor kept, struct pm_tensor factors,
                           struct pm_tensor dcodes)
{
    pm_call(c, p->coder == PM_CODER_ROTATED ? &rotated_bwd : &bwd, (size_t)p->rows, p,
            PM_BUFS(codes, t->anchors, t->matches, t->boxes, t->weights, kept, factors,
                    pm_step_tensor(c), dcodes));
}
