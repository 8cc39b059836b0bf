/* box_classifier_loss: codes and losses of all boxes by their definitions, one box at a time. */
#include "check.h"

#include <stdlib.h>

#include "detection_ref.h"

enum { CODES, LOGITS, BOXES, MATCHES, COUNT, TRUTH_BOXES, TRUTH_CLASSES, TRUTH_WEIGHTS };

/* anchors: the boxes of an example. `codes` counts the numbers of a box, not of a row. */
static struct detection detection_here(const struct ref *r)
{
    const struct pm_shape b = r->in[BOXES].shape, t = r->in[TRUTH_CLASSES].shape;

    return (struct detection){
        .batch = b.dim[0], .anchors = b.dim[1], .m = r->in[TRUTH_BOXES].shape.dim[1],
        .codes = ref_says(r, "coder", "square", "")    ? 3
                 : ref_says(r, "coder", "rotated", "") ? 5
                                                        : 4,
        .columns = r->in[LOGITS].shape.dim[1], .labels = t.rank == 3 ? t.dim[2] : 0,
        .background = 1, .anchors_in = BOXES, .matches = MATCHES, .boxes = TRUTH_BOXES,
        .classes = TRUTH_CLASSES, .weights = TRUTH_WEIGHTS,
    };
}

/* The codes of a row that count: those of its class. NULL: zeros. */
static const double *codes_of(const struct ref *r, const struct detection *d, int row,
                              const double *z)
{
    const int width = r->in[CODES].shape.dim[1];
    int best = 0;

    for (int i = 1; i < d->columns; i++)
        if (z[i] > z[best])
            best = i;
    if (width == d->codes)
        return r->in[CODES].v + row * width;
    return best == 0 ? NULL : r->in[CODES].v + row * width + (best - 1) * d->codes;
}

/* Half a turn is two units of the last code, times its scale; the nearest is at most one away. */
static void nearest_half_turn(const struct ref *r, double code[5])
{
    double s[5] = { 10, 10, 5, 5, 5 };

    ref_numbers(r, "coder_scales", s, 5);
    code[4] = remainder(code[4], 2 * s[4]);
}

static void one_box(const struct ref *r, const struct detection *d, int row,
                    struct anchor_loss *out)
{
    const int image = row / d->anchors, g = detection_match(r, d, image, row % d->anchors);
    const double *x = r->in[LOGITS].v + row * d->columns, s = ref_number(r, "logit_scale", 1);
    const double w = detection_weight(r, d, image, g);
    double z[MOST_COLUMNS], code[5], size[5], sum = 0;

    *out = (struct anchor_loss){ 0 };
    detection_targets(r, d, image, g, z);
    for (int i = 0; i < d->columns; i++)
        sum += exp(x[i] / s);
    for (int i = 0; i < d->columns; i++) {
        out->cls += w * z[i] * (log(sum) - x[i] / s);
        out->cls_mag += w * (1 + 2 * fabs(x[i] / s) + log(d->columns));
    }
    if (g < 0)
        return;
    /* Boxes belong to their example: the box is counted over all of them. */
    detection_encode(r, d, image, g, row, code, size);
    if (d->codes == 5)
        nearest_half_turn(r, code);
    for (int i = 0; i < d->codes; i++) {
        const double *own = codes_of(r, d, row, z), c = own ? own[i] : 0, e = fabs(c - code[i]);

        out->loc += w * (e <= 1 ? 0.5 * e * e : e - 0.5);
        out->loc_mag += w * (fmin(e, 1) * (fabs(c) + size[i]) + e * e);
    }
}

/* ---- hard examples --------------------------------------------------------------------------- */

static double hardness(const struct ref *r, const struct anchor_loss *l)
{
    if (ref_says(r, "loss_type", "classification", "both"))
        return l->cls;
    if (ref_says(r, "loss_type", "localization", "both"))
        return l->loc;
    return l->cls * ref_number(r, "classification_weight", 1) +
           l->loc * ref_number(r, "localization_weight", 1);
}

/* Takes the boxes of an image by falling loss. */
static void mine(const struct ref *r, const struct detection *d, int image,
                 const struct anchor_loss *loss, bool *kept)
{
    const int given = (int)ref_number(r, "num_hard_examples", 64), most = given ? given : 1 << 30;
    const double *boxes = r->in[BOXES].v + 4 * image * d->anchors;
    bool *seen = calloc((size_t)d->anchors, sizeof *seen);
    int count = 0;

    memset(kept, 0, (size_t)d->anchors * sizeof *kept);
    for (int left = d->anchors; left > 0 && count < most; left--) {
        int best = -1;
        bool near = false;

        for (int i = 0; i < d->anchors; i++)
            if (!seen[i] && (best < 0 || hardness(r, &loss[i]) > hardness(r, &loss[best])))
                best = i;
        seen[best] = true;
        for (int i = 0; i < d->anchors; i++)
            near = near || (kept[i] && detection_overlap(boxes + 4 * i, boxes + 4 * best) >
                                           ref_number(r, "iou_threshold", 0.7));
        kept[best] = !near;
        count += !near;
    }
    free(seen);
}

/* ---- the loss -------------------------------------------------------------------------------- */

static void box_classifier_loss(struct ref *r)
{
    const struct detection d = detection_here(r);
    const int count = d.batch * d.anchors;
    int present = 0;
    struct anchor_loss *loss = malloc((size_t)count * sizeof *loss);
    bool *kept = malloc((size_t)count * sizeof *kept);

    ref_outputs(r, 2, (struct pm_shape[2]){ { 0 } });
    for (int i = 0; i < count; i++) {
        kept[i] = true;
        one_box(r, &d, i, &loss[i]);
    }
    for (int i = 0; i < d.batch && ref_says(r, "hard_example_miner", "true", "false"); i++)
        mine(r, &d, i, loss + i * d.anchors, kept + i * d.anchors);
    for (int i = 0; i < d.batch; i++)
        present += r->in[TRUTH_WEIGHTS].v[i * d.m] >= 0;
    for (int i = 0; i < count; i++) {
        const bool counts = kept[i] && r->in[TRUTH_WEIGHTS].v[i / d.anchors * d.m] >= 0;
        const double own =
            counts ? 1 / fmax(r->in[COUNT].v[i / d.anchors], 1) / fmax(present, 1) : 0;
        const double a = own * ref_number(r, "localization_weight", 1);
        const double b = own * ref_number(r, "classification_weight", 1);

        r->y.v[0] += a * loss[i].loc, r->y.mag[0] += a * loss[i].loc_mag;
        r->y.v[1] += b * loss[i].cls, r->y.mag[1] += b * loss[i].cls_mag;
    }
    free(loss);
    free(kept);
}

/* Makes boxes of the inputs' numbers. Only an example's first weight may be negative: it marks an
 * absent example. */
static void arrange(const struct check_case *c, int inputs, int input, struct pm_shape shape,
                    float *v)
{
    (void)inputs;
    if (input == BOXES || input == TRUTH_BOXES)
        (strstr(c->options, "coder=rotated") ? detection_rotated : detection_boxes)(shape, v);
    for (size_t i = 0; input == TRUTH_WEIGHTS && i < pm_shape_count(shape); i++)
        if (i % (size_t)shape.dim[1] > 0)
            v[i] = fabsf(v[i]);
}

/* Two images of 7 boxes, 3 classes, 4 true boxes. */
#define LOSS "box_classifier_loss"
#define MINED LOSS " hard_example_miner=true"
#define BY_CLASS "14x12 14x4@-4..4 2x7x4@0..1 "
#define SHARED "14x4 14x4@-4..4 2x7x4@0..1 "
#define MATCHED "i32:2x7@-2..3 i32:2@0..7 2x4x4@0..1 "
#define TRUTH "i32:2x4@0..2 2x4@0.25..2"
#define GRADIENT .train = true, .no_gradient = ~3u

static const struct check_case cases[] = {
    { LOSS, BY_CLASS MATCHED TRUTH, GRADIENT },
    { LOSS, SHARED MATCHED TRUTH, GRADIENT },
    { LOSS " localization_weight=2 classification_weight=0.5 logit_scale=2.5",
      BY_CLASS MATCHED TRUTH, GRADIENT },
    { LOSS, BY_CLASS MATCHED "2x4x3@0..1 2x4@0.25..1", GRADIENT }, /* soft labels */
    { LOSS, BY_CLASS MATCHED "2x4x4@0..1 2x4@0.25..1", GRADIENT }, /* with a background */
    { LOSS, SHARED MATCHED "2x4x4@0..1 2x4@0.25..1", GRADIENT },
    { LOSS, BY_CLASS MATCHED "2x4x3@0..0 2x4@0.25..1", GRADIENT }, /* no target: no codes */
    { LOSS, "15x4 15x2@-9..9 3x5x4@0..1 i32:3x5@-2..1 i32:3@1..5 3x2x4@0..1 i32:3x2@0..0 3x2@0..1",
      GRADIENT },                                                  /* one class */
    { LOSS, BY_CLASS "i32:2x7@-1..-1 i32:2@7..7 2x4x4@0..1 " TRUTH, GRADIENT },
    { LOSS, BY_CLASS "i32:2x7@-2..-2 i32:2@0..0 2x4x4@0..1 " TRUTH, GRADIENT },
    /* Absent examples: some of six, and both of two. */
    { LOSS " classification_weight=2", "18x4 18x3@-4..4 6x3x4@0..1 i32:6x3@-2..1 i32:6@1..3 "
      "6x2x4@0..1 i32:6x2@0..1 6x2@-1..1", GRADIENT },
    { LOSS, BY_CLASS MATCHED "i32:2x4@0..2 2x4@-2..-1", GRADIENT },
    { LOSS, BY_CLASS "i32:2x7@0..3 i32:2@7..7 2x4x4@0..1 " TRUTH, GRADIENT },
    { LOSS, BY_CLASS "i32:2x7@0..3 i32:2@7..7 2x4x4@0..1 i32:2x4@0..2 2x4@0..0", GRADIENT },
    { LOSS " coder=mean_stddev coder_scales=[0.2]", BY_CLASS MATCHED TRUTH, GRADIENT },
    { LOSS " coder=corners", SHARED MATCHED TRUTH, GRADIENT },
    { LOSS " coder=square coder_scales=[4,3,2]", "14x9 14x4@-4..4 2x7x4@0..1 " MATCHED TRUTH,
      GRADIENT },
    { LOSS " coder=rotated", "14x15 14x4@-4..4 2x7x5@0..1 i32:2x7@-2..3 i32:2@0..7 2x4x5@0..1 "
      TRUTH, GRADIENT },
    { LOSS " coder=rotated", "14x5 14x4@-4..4 2x7x5@0..1 i32:2x7@-2..3 i32:2@0..7 2x4x5@0..1 "
      TRUTH, GRADIENT },
    { LOSS, "6x4 6x131@-4..4 2x3x4@0..1 i32:2x3@-2..1 i32:2@1..3 2x2x4@0..1 i32:2x2@0..129 "
      "2x2@0.5..1", GRADIENT },                                    /* many classes */
    { MINED, BY_CLASS MATCHED TRUTH, GRADIENT },
    { MINED " num_hard_examples=3 iou_threshold=0.3", SHARED MATCHED TRUTH, GRADIENT },
    { MINED " num_hard_examples=2 iou_threshold=1 loss_type=classification", BY_CLASS MATCHED TRUTH,
      GRADIENT },
    { MINED " num_hard_examples=0 iou_threshold=0.1 loss_type=localization", BY_CLASS MATCHED TRUTH,
      GRADIENT },
    { MINED " num_hard_examples=4 localization_weight=2 classification_weight=0.5",
      BY_CLASS "i32:2x7@0..3 i32:2@7..7 2x4x4@0..1 " TRUTH, GRADIENT },
    { LOSS, "128x360 128x91@-4..4 2x64x4@0..1 i32:2x64@-2..19 i32:2@50..64 2x20x4@0..1 "
      "i32:2x20@0..89 2x20@1..1", .train = true, .no_gradient = ~3u, .large = true },
    { MINED, "2400x360 2400x91@-4..4 8x300x4@0..1 i32:8x300@-2..19 i32:8@250..300 8x20x4@0..1 "
      "i32:8x20@0..89 8x20@1..1", .train = true, .no_gradient = ~3u, .large = true },
    { 0 },
};
/* As detection_loss: an error of up to 600 relative to the largest gradient. */
const struct pm_layer_test pm_test_box_classifier_loss = {
    cases, box_classifier_loss, .grad_ulps = 1024, .loss = true, .arrange = arrange,
};
