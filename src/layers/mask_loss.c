/* mask_loss: the loss of the masks that a detector's second stage predicts for its boxes (Mask
 * R-CNN).
 *
 *     loss = weight / n * sum over examples (L / max(P, 1))    normalize_over=image
 *     loss = weight * share * sum of L / max(sum of P, 1)      normalize_over=batch
 *     L = sum over an example's rows (v * sum over its pixels H(x, z))
 *     P = sum over an example's rows (v * h * w)
 *     H(x, z) = max(x, 0) - x z + ln(1 + e^-|x|)
 *
 * v is the weight of a row, weight the option. n is the number of examples of the whole batch. With
 * normalize_over=image the losses of the parts of a batch add up to that of the whole batch. With
 * normalize_over=batch the sums are those of this plan's examples, as in TensorFlow's Object
 * Detection API, and share is the part of the whole batch that these examples are. R: boxes of an
 * example, C: classes, M: rows of its truth. Inputs:
 *
 *     logits              [n * R, h, w, C], or [n * R, h, w, 1]: the same for all classes
 *     boxes               [n, R, 4]       corners, 0..1 of the true masks as in crops.h
 *     matches             I32 [n, R]      row of the truth; -1: background; -2: padding
 *     truth_masks         U32 [n, M, H, ceil(W / 32)]  pixels as bits: column 32 k + b of a row is
 *                                         bit b of word k (data/mask_bits.h)
 *     truth_classes       I32 [n, M]      classes from 0, or F32 [n, M, C or C + 1]: targets
 *     truth_mask_weights  [n, M]          0: the object has no mask
 *
 * W is the option width. The target z of a matched row is its true mask, cropped by the rule of
 * crop_and_resize (crops.h) to h x w; the bilinear values are kept. x is the logit of the true
 * class, or of the class with the largest target, or the only one. v is the weight of the true
 * mask. Rows that are not matched, whose true mask has the weight 0, or whose largest target is
 * that of the background, cost nothing and have no gradient. A match or a class that does not exist
 * gives NaN, so the step is rejected. With one channel classes are not read. There is no gradient
 * through boxes.
 *
 * The kernels read four bits of a mask for each pixel: masks stay packed in the device's memory. */
#include <limits.h>

#include "layers/crops.h"
#include "layers/detection_rows.h"
#include "layers/infer.h"
#include "layers/region_loss.h"
#include "layers/vmath.h"
#include "mask_loss.params.h"

enum { SAVED_FACTORS = 2, SAVED_USED, SAVED_CHANNEL }; /* after those of pm_crops_places */
enum { LOGITS, BOXES, MATCHES, MASKS, CLASSES, WEIGHTS, INPUTS };
#define NAMES "logits, boxes, matches, truth_masks, truth_classes, truth_mask_weights"

enum { BY_IMAGE, BY_BATCH };
struct mask_loss_cfg {
    int width, normalize_over;
    float weight;
};

static const struct pm_opt opts[] = {
    PM_INT(mask_loss_cfg, width, 0, 0, 1 << 20,
           "columns of a true mask; 0: 32 for each word of its rows"),
    PM_FLOAT(mask_loss_cfg, weight, 1, 0, 1e6, "weight of the loss"),
    PM_ENUM(mask_loss_cfg, normalize_over, BY_IMAGE, "image|batch",
            "divide each image's loss by its own pixels and take the mean of the images, or divide "
            "the sum by all pixels of this device's part of the batch"),
    { 0 },
};

/* ---- the row of a box ------------------------------------------------------------------------ */

enum channel { BACKGROUND = -1, UNKNOWN = -2 }; /* in the place of a channel */
enum { PADDING = -2 };                          /* a match */

/* Returns the channel of a true object's class: BACKGROUND if its targets name no class, UNKNOWN if
 * the class does not exist. */
static int channel_of(const struct mask_loss_params *p, const void *classes, size_t truth)
{
    int own;

    if (p->c == 1)
        return 0;
    if (p->labels)
        return pm_target_class((const float *)classes + truth * (size_t)p->labels, p->labels, p->c);
    own = ((const int *)classes)[truth];
    return own >= 0 && own < p->c ? own : UNKNOWN;
}

/* A row. mask, place and part are set only if it counts. */
struct row {
    int channel;          /* negative: it does not count */
    float w;              /* its weight; 0, or NaN if its match or its class does not exist */
    const uint32_t *mask; /* of the true object */
    const int32_t *place; /* of its samples: rows, then columns */
    const float *part;
};

/* Sets the members that only rows that count have. Buffers 3, 5 and 6 of both kernels are masks,
 * place and part. */
static void add_samples(const struct pm_args *a, size_t i, size_t truth, struct row *r)
{
    const struct mask_loss_params *p = a->params;
    const size_t samples = (size_t)(p->h + p->w);

    r->mask = (const uint32_t *)a->buf[3] + truth * (size_t)p->mask_h * (size_t)p->words;
    r->place = (const int32_t *)a->buf[5] + i * samples;
    r->part = (const float *)a->buf[6] + i * samples;
}

static size_t truth_of(const struct mask_loss_params *p, size_t i, int g)
{
    return i / (size_t)p->per * (size_t)p->m + (size_t)g;
}

static struct row row_of(const struct pm_args *a, size_t i)
{
    const struct mask_loss_params *p = a->params;
    const int g = ((const int *)a->buf[1])[i];
    struct row r = { .channel = g < PADDING || g >= p->m ? UNKNOWN : BACKGROUND };

    if (g >= 0 && g < p->m) {
        const size_t truth = truth_of(p, i, g);

        r.w = ((const float *)a->buf[4])[truth];
        if (r.w != 0)
            r.channel = channel_of(p, a->buf[2], truth);
        add_samples(a, i, truth, &r);
    }
    if (r.channel < 0)
        r.w = r.channel == UNKNOWN ? NAN : 0;
    return r;
}

static float bit_of(const uint32_t *line, int column)
{
    return (float)(line[column >> 5] >> (column & 31) & 1);
}

/* Fills z with the targets of line y of the row's pixels. */
static void targets_of(const struct mask_loss_params *p, const struct row *r, int y, float *z)
{
    const int32_t top = r->place[y], *left = r->place + p->h;
    const float fy = r->part[y], *fx = r->part + p->h;
    const uint32_t *line = r->mask + (size_t)(top < 0 ? 0 : top) * (size_t)p->words;
    const uint32_t *next = top + 1 < p->mask_h ? line + p->words : line;

    for (int x = 0; x < p->w; x++) {
        const int l = left[x], after = l + 1 < p->mask_w ? l + 1 : l;

        z[x] = 0;
        if (top >= 0 && l >= 0)
            z[x] = (1 - fy) * ((1 - fx[x]) * bit_of(line, l) + fx[x] * bit_of(line, after)) +
                   fy * ((1 - fx[x]) * bit_of(next, l) + fx[x] * bit_of(next, after));
    }
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Returns the sum of the cross entropies of a line's pixels. stride: from logit to logit. */
PM_INLINE float line_loss(const float *x, const float *z, int w, size_t stride)
{
    float loss[PM_CROP_MOST_SIDE];

    for (int i = 0; i < w; i++)
        loss[i] = x[(size_t)i * stride];
    PM_SIMD
    for (int i = 0; i < w; i++) {
        const float v = loss[i];

        loss[i] = (v < 0 ? 0 : v) - v * z[i] + pm_log1pf(pm_expf(v < 0 ? v : -v));
    }
    return pm_row_sum(loss, w);
}

/* Items: rows. */
PM_CLONES static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct mask_loss_params *p = a->params;
    const size_t c = (size_t)p->c, line = (size_t)p->w * c;
    float *losses = a->buf[7], *used = a->buf[8], z[PM_CROP_MOST_SIDE];
    int32_t *channel = a->buf[9];

    for (size_t i = begin; i < end; i++) {
        const struct row r = row_of(a, i);
        const float *x = (const float *)a->buf[0] + i * (size_t)p->h * line;
        float loss = 0;

        for (int y = 0; y < p->h && r.channel >= 0; y++) {
            targets_of(p, &r, y, z);
            loss += line_loss(x + (size_t)y * line + r.channel, z, p->w, c);
        }
        losses[i] = r.channel >= 0 ? r.w * loss : r.w;
        used[i] = r.w;
        channel[i] = r.channel;
    }
}

/* Replaces the logits of a line's pixels by their gradient: scale times the slope in the row's
 * channel, `none` elsewhere. dx may be x. */
PM_INLINE void line_slopes(const float *x, const float *z, int w, int c, int channel, float none,
                           float scale, float *dx)
{
    float d[PM_CROP_MOST_SIDE];

    for (int i = 0; i < w; i++)
        d[i] = x[i * c + channel];
    PM_SIMD
    for (int i = 0; i < w; i++) {
        const float e = pm_expf(d[i] < 0 ? d[i] : -d[i]);

        d[i] = ((d[i] < 0 ? e : 1) / (1 + e) - z[i]) * scale;
    }
    for (int i = 0; i < w * c; i++)
        dx[i] = none;
    for (int i = 0; i < w; i++)
        dx[i * c + channel] = d[i];
}

/* Items: rows. A factor that is not finite spoils the whole gradient, so the step is rejected. */
PM_CLONES static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct mask_loss_params *p = a->params;
    const struct pm_step *step = a->buf[8];
    const size_t line = (size_t)p->w * (size_t)p->c;
    float z[PM_CROP_MOST_SIDE];

    for (size_t i = begin; i < end; i++) {
        const float f = ((const float *)a->buf[7])[i / (size_t)p->per] * step->loss_scale;
        const float w = ((const float *)a->buf[4])[i];
        const float *x = (const float *)a->buf[0] + i * (size_t)p->h * line;
        float *dx = (float *)a->buf[9] + i * (size_t)p->h * line;
        struct row r = { .channel = ((const int32_t *)a->buf[2])[i] };

        if (r.channel < 0) {
            for (size_t k = 0; k < (size_t)p->h * line; k++)
                dx[k] = 0 * f;
            continue;
        }
        add_samples(a, i, truth_of(p, i, ((const int *)a->buf[1])[i]), &r);
        for (int y = 0; y < p->h; y++, x += line, dx += line) {
            targets_of(p, &r, y, z);
            line_slopes(x, z, p->w, p->c, r.channel, 0 * f, w * f, dx);
        }
    }
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    (void)caps, (void)params;
    return level == 0 && pm_pick_elements("mask_loss_fwd", 64, 64 * count, out);
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct mask_loss_params *p = params;

    (void)caps;
    return level == 0 &&
           pm_pick_elements("mask_loss_bwd", 64,
                            count * (size_t)p->h * (size_t)p->w * (size_t)p->c, out);
}

static double flops(const void *params, size_t count)
{
    const struct mask_loss_params *p = params;

    return 50.0 * (double)count * p->h * p->w;
}

static const struct pm_kernel fwd = {
    .name = "mask_loss_fwd",
    .bufs = "r:logits r:matches r:classes r:masks r:weights r:place r:part w:losses w:used "
            "w:channel",
    .params_size = sizeof(struct mask_loss_params), .cpu = fwd_cpu, .grain = 1, .pick = fwd_pick,
    .flops = flops,
};
static const struct pm_kernel bwd = {
    .name = "mask_loss_bwd",
    .bufs = "r:logits r:matches r:channel r:masks r:used r:place r:part r:factors r:step w:dlogits",
    .inplace = "dlogits=logits", .params_size = sizeof(struct mask_loss_params), .cpu = bwd_cpu,
    .grain = 1, .pick = bwd_pick, .flops = flops,
};

/* ---- checks ---------------------------------------------------------------------------------- */

static const enum pm_type types[] = {
    [LOGITS] = PM_F32, [BOXES] = PM_F32,   [MATCHES] = PM_I32,
    [MASKS] = PM_U32,  [CLASSES] = PM_I32, [WEIGHTS] = PM_F32,
};

static int check_logits(const struct pm_node *n)
{
    const int *x = n->in[LOGITS]->out_shape.dim;
    int err = PM_OK;

    PM_TRY(pm_region_loss_check(n, "C", "a map of one logit for each class, or of one logit"));
    if (x[1] > PM_CROP_MOST_SIDE || x[2] > PM_CROP_MOST_SIDE)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: masks of %dx%d logits are larger than %dx%d. Make them "
                       "smaller", n->name, x[1], x[2], PM_CROP_MOST_SIDE, PM_CROP_MOST_SIDE));
out:
    return err;
}

static int check_masks(const struct pm_node *n)
{
    const int width = ((const struct mask_loss_cfg *)n->cfg)->width;
    const struct pm_shape t = n->in[MASKS]->out_shape;
    const int images = n->in[BOXES]->out_shape.dim[0];
    char text[64];

    if (t.rank != 4 || t.dim[0] != images)
        return pm_fail(PM_ECONFIG, "%s: truth_masks have shape %s instead of %d x M x H x W. Give "
                       "M masks of H rows of W words for each of %d images", n->name,
                       pm_shape_text(t, text), images, images);
    if (width && (width + 31) / 32 != t.dim[3])
        return pm_fail(PM_ECONFIG, "%s: width: truth_masks of %s have rows of %d words, which do "
                       "not fit %d columns. Set a width of %d..%d", n->name,
                       pm_shape_text(t, text), t.dim[3], width, 32 * t.dim[3] - 31, 32 * t.dim[3]);
    if (pm_shape_count(t) > INT_MAX || t.dim[3] > INT_MAX / 32)
        return pm_fail(PM_ECONFIG, "%s: truth_masks of %s have more than 2^31 - 1 words. Make the "
                       "batch, the pictures or data.max_boxes smaller", n->name,
                       pm_shape_text(t, text));
    if (!pm_input_is_shape(n, WEIGHTS, PM_SHAPE2(images, t.dim[1])))
        return pm_fail(PM_ECONFIG, "%s: truth_mask_weights have shape %s instead of %dx%d. Give "
                       "one weight for each true mask", n->name,
                       pm_shape_text(n->in[WEIGHTS]->out_shape, text), images, t.dim[1]);
    return PM_OK;
}

static int check_classes(const struct pm_node *n)
{
    const struct pm_node *classes = n->in[CLASSES];
    const struct pm_shape t = n->in[MASKS]->out_shape, k = classes->out_shape;
    const int c = n->in[LOGITS]->out_shape.dim[3];
    char text[64];

    if (classes->out_type == PM_I32 ? pm_input_is_shape(n, CLASSES, PM_SHAPE2(t.dim[0], t.dim[1]))
                                    : k.rank == 3 && k.dim[0] == t.dim[0] &&
                                          k.dim[1] == t.dim[1] &&
                                          (c == 1 || k.dim[2] == c || k.dim[2] == c + 1))
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s: truth_classes are %s of shape %s instead of int32 of shape "
                   "%dx%d, or float32 of shape %dx%dx%d. Give each true object its class, or a "
                   "target for each of %d classes", n->name, pm_type_name(classes->out_type),
                   pm_shape_text(k, text), t.dim[0], t.dim[1], t.dim[0], t.dim[1], c, c);
}

static int infer(struct pm_node *n)
{
    int err = PM_OK;

    PM_TRY(pm_need_types(n, types, CLASSES, NAMES));
    PM_TRY(check_logits(n));
    PM_TRY(check_masks(n));
    PM_TRY(check_classes(n));
    n->out_shape = (struct pm_shape){ 0 };
    n->out_type = PM_F32;
out:
    return err;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct mask_loss_params params_of(const struct pm_node *n)
{
    const struct pm_shape x = n->xs[LOGITS].shape, t = n->xs[MASKS].shape;
    const struct pm_tensor classes = n->xs[CLASSES];
    const int width = ((const struct mask_loss_cfg *)n->cfg)->width;

    return (struct mask_loss_params){
        .rows = x.dim[0], .per = n->xs[BOXES].shape.dim[1], .m = t.dim[1], .h = x.dim[1],
        .w = x.dim[2], .c = x.dim[3], .labels = classes.type == PM_F32 ? classes.shape.dim[2] : 0,
        .mask_h = t.dim[2], .mask_w = width ? width : 32 * t.dim[3], .words = t.dim[3],
    };
}

/* Finds the places of the boxes' samples on the true masks. */
static void place(struct pm_node *n, struct pm_calls *c, const struct mask_loss_params *p)
{
    const struct crop_params crops = {
        .boxes = p->rows, .per_image = p->per, .rows = p->h, .cols = p->w, .h = p->mask_h,
        .w = p->mask_w, .bins_h = 1, .bins_w = 1,
    };

    pm_crops_places(n, c, &crops, n->xs[BOXES], PM_NO_TENSOR);
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct mask_loss_cfg *cfg = n->cfg;
    const struct mask_loss_params p = params_of(n);
    const int images = p.rows / p.per;
    const struct region_loss_sum_params s = {
        .images = images, .per = p.per, .together = cfg->normalize_over == BY_BATCH,
        .pixels = (float)p.h * (float)p.w,
    };
    const struct pm_tensor losses = pm_temp(c, PM_SHAPE1(p.rows), PM_F32);
    const struct pm_tensor factors = pm_save(c, n, SAVED_FACTORS, PM_SHAPE1(images), PM_F32);
    const struct pm_tensor used = pm_save(c, n, SAVED_USED, PM_SHAPE1(p.rows), PM_F32);
    const struct pm_tensor channel = pm_save(c, n, SAVED_CHANNEL, PM_SHAPE1(p.rows), PM_I32);

    place(n, c, &p);
    pm_call(c, &fwd, (size_t)p.rows, &p,
            PM_BUFS(n->xs[LOGITS], n->xs[MATCHES], n->xs[CLASSES], n->xs[MASKS], n->xs[WEIGHTS],
                    n->saved[0], n->saved[1], losses, used, channel));
    pm_region_loss_sum(c, s, cfg->weight, losses, used, pm_loss_scalar(c, n->name), factors);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const struct mask_loss_params p = params_of(n);

    if (pm_has(n->dxs[LOGITS]))
        pm_call(c, &bwd, (size_t)p.rows, &p,
                PM_BUFS(n->xs[LOGITS], n->xs[MATCHES], n->saved[SAVED_CHANNEL], n->xs[MASKS],
                        n->saved[SAVED_USED], n->saved[0], n->saved[1], n->saved[SAVED_FACTORS],
                        pm_step_tensor(c), n->dxs[LOGITS]));
}

const struct pm_layer pm_layer_mask_loss = {
    .name = "mask_loss",
    .help = "loss of the masks of a detector's second stage: inputs " NAMES,
    .opts = opts,
    .cfg_size = sizeof(struct mask_loss_cfg),
    .min_inputs = INPUTS,
    .max_inputs = INPUTS,
    .loss = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};
