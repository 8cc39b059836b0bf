/* detection_loss: codes and losses of all anchors by their definitions, one anchor at a time. */
#include "check.h"

#include <stdlib.h>

#include "detection_ref.h"

/* ---- one anchor -------------------------------------------------------------------------- */

/* e is the error of the code's target in units of a rounding. */
static double localization(const struct ref *r, double w, double d, double e, double *mag)
{
    const double delta = ref_number(r, "delta", 1);

    if (ref_says(r, "localization", "weighted_l2", "weighted_smooth_l1")) {
        *mag += w * w * fabs(d) * e;
        return 0.5 * w * w * d * d;
    }
    if (ref_says(r, "localization", "l1", "weighted_smooth_l1")) {
        *mag += w * e;
        return w * fabs(d);
    }
    *mag += w * (fmin(fabs(d), delta) * e + d * d);
    return w * (fabs(d) <= delta ? 0.5 * d * d : delta * (fabs(d) - delta / 2));
}

/* 1 - IoU, or 1 - GIoU, of the decoded box. A side of 0.1 has an error of 2^-23, IoU ten times
 * that. */
static double overlap(const struct ref *r, const struct detection *d, int image, int g, int anchor,
                      double w, double *mag)
{
    const double *t = r->in[d->boxes].v + 4 * (image * d->m + g);
    double b[4], common, joined, around;

    detection_decode(r, d, image, anchor, b);
    common = fmax(0, fmin(b[2], t[2]) - fmax(b[0], t[0])) *
             fmax(0, fmin(b[3], t[3]) - fmax(b[1], t[1]));
    joined = (b[2] - b[0]) * (b[3] - b[1]) + (t[2] - t[0]) * (t[3] - t[1]) - common;
    around = (fmax(b[2], t[2]) - fmin(b[0], t[0])) * (fmax(b[3], t[3]) - fmin(b[1], t[1]));
    *mag += 20 * w;
    return w * (1 - common / joined +
                (ref_says(r, "localization", "weighted_giou", "") ? 1 - joined / around : 0));
}

static double log_sum(const double *x, int k, double s)
{
    double sum = 0;

    for (int i = 0; i < k; i++)
        sum += exp(x[i] / s);
    return log(sum);
}

static double entropy(double x, double z)
{
    return (1 - z) * (x > 0 ? x + log1p(exp(-x)) : log1p(exp(x))) +
           z * (x > 0 ? log1p(exp(-x)) : -x + log1p(exp(x)));
}

/* The loss of a score without the anchor's weight. */
static double classification(const struct ref *r, const struct detection *d, const double *x,
                             const double *z, int i)
{
    const double p = 1 / (1 + exp(-x[i])), a = ref_number(r, "alpha", -1);
    const double pt = z[i] * p + (1 - z[i]) * (1 - p);

    if (ref_says(r, "classification", "weighted_softmax", "")) {
        const double s = ref_number(r, "logit_scale", 1);

        return z[i] * (log_sum(x, d->columns, s) - x[i] / s);
    }
    if (ref_says(r, "classification", "weighted_logits_softmax", "")) {
        const double s = ref_number(r, "logit_scale", 1);

        return exp(z[i] / s - log_sum(z, d->columns, s)) * (log_sum(x, d->columns, s) - x[i] / s);
    }
    if (ref_says(r, "classification", "weighted_sigmoid_focal", ""))
        return (a < 0 ? 1 : z[i] * a + (1 - z[i]) * (1 - a)) *
               pow(1 - pt, ref_number(r, "gamma", 2)) * entropy(x[i], z[i]);
    if (ref_says(r, "classification", "bootstrapped_sigmoid", ""))
        return entropy(x[i], a * z[i] + (1 - a) * (ref_says(r, "hard_bootstrap", "true", "false")
                                                       ? p > 0.5 : p));
    return entropy(x[i], z[i]);
}

static void one_anchor(const struct ref *r, const struct detection *d, int image, int anchor,
                       struct anchor_loss *out)
{
    const int g = detection_match(r, d, image, anchor);
    double z[MOST_COLUMNS], code[5], size[5];
    const double *x = detection_scores(r, d, image, anchor);
    const double w = detection_weight(r, d, image, g), v = detection_class_weight(r, d, image, g);

    *out = (struct anchor_loss){ 0 };
    if (g >= 0 && (ref_says(r, "localization", "weighted_iou", "") ||
                   ref_says(r, "localization", "weighted_giou", ""))) {
        out->loc = overlap(r, d, image, g, anchor, w, &out->loc_mag);
    } else if (g >= 0) {
        detection_encode(r, d, image, g, anchor, code, size);
        for (int i = 0; i < d->codes; i++) {
            const double c = detection_codes(r, d, image, anchor)[i];

            out->loc += localization(r, w, c - code[i], fabs(c) + size[i], &out->loc_mag);
        }
    }
    detection_targets(r, d, image, g, z);
    for (int i = 0; i < d->columns; i++) {
        out->cls += v * classification(r, d, x, z, i);
        out->cls_mag += v * (1 + 2 * fabs(x[i]) + log(d->columns));
    }
}

/* ---- hard examples ------------------------------------------------------------------------ */

static double hardness(const struct ref *r, const struct anchor_loss *l)
{
    if (ref_says(r, "loss_type", "classification", "both"))
        return l->cls;
    if (ref_says(r, "loss_type", "localization", "both"))
        return l->loc;
    return l->cls * ref_number(r, "classification_weight", 1) +
           l->loc * ref_number(r, "localization_weight", 1);
}

static bool overlaps_taken(const struct ref *r, const struct detection *d, int image, int anchor,
                           const int *taken, int count)
{
    double a[4], b[4];

    detection_decode(r, d, image, anchor, a);
    for (int i = 0; i < count; i++) {
        detection_decode(r, d, image, taken[i], b);
        if (detection_overlap(a, b) > ref_number(r, "iou_threshold", 0.7))
            return true;
    }
    return false;
}

/* Takes anchors of an image by falling loss. Returns their number. */
static int take(const struct ref *r, const struct detection *d, int image,
                const struct anchor_loss *loss, int *taken)
{
    const int given = (int)ref_number(r, "num_hard_examples", 64), most = given ? given : 1 << 30;
    bool *seen = calloc((size_t)d->anchors, sizeof *seen);
    int count = 0;

    for (int left = d->anchors; left > 0 && count < most; left--) {
        int best = -1;

        for (int i = 0; i < d->anchors; i++)
            if (!seen[i] && (best < 0 || hardness(r, &loss[i]) > hardness(r, &loss[best])))
                best = i;
        seen[best] = true;
        if (!overlaps_taken(r, d, image, best, taken, count))
            taken[count++] = best;
    }
    free(seen);
    return count;
}

static void mine(const struct ref *r, const struct detection *d, int image,
                 const struct anchor_loss *loss, bool *kept)
{
    int *taken = malloc((size_t)d->anchors * sizeof *taken), positives = 0, negatives = 0;
    const int count = take(r, d, image, loss, taken);
    const double ratio = ref_number(r, "max_negatives_per_positive", 0);

    memset(kept, 0, (size_t)d->anchors * sizeof *kept);
    for (int i = 0; i < count; i++)
        positives += detection_match(r, d, image, taken[i]) >= 0;
    for (int i = 0; i < count; i++) {
        const int g = detection_match(r, d, image, taken[i]);

        negatives += g == -1;
        kept[taken[i]] = ratio == 0 || g >= 0 ||
                         negatives <= fmax(ref_number(r, "min_negatives_per_image", 0),
                                           floor(ratio * positives));
    }
    free(taken);
}

/* ---- the loss ---------------------------------------------------------------------------- */

static void detection_loss(struct ref *r)
{
    const struct detection d = detection_of(r);
    const int count = d.batch * d.anchors;
    struct anchor_loss *loss = malloc((size_t)count * sizeof *loss), sum = { 0 };
    bool *kept = malloc((size_t)count * sizeof *kept);
    double matched = 0;

    for (int i = 0; i < count; i++) {
        const int g = detection_match(r, &d, i / d.anchors, i % d.anchors);

        kept[i] = true;
        one_anchor(r, &d, i / d.anchors, i % d.anchors, &loss[i]);
        matched += g < 0 ? 0 : detection_weight(r, &d, i / d.anchors, g);
    }
    for (int i = 0; i < d.batch && ref_says(r, "hard_example_miner", "true", "false"); i++)
        mine(r, &d, i, loss + i * d.anchors, kept + i * d.anchors);
    const bool by_image = ref_says(r, "normalize_per_image", "true", "false");

    for (int i = 0; i < count; i++) {
        const double own = by_image ? r->in[d.normalizer].v[i / d.anchors] * d.batch : 1;

        sum.loc += kept[i] ? loss[i].loc / own : 0;
        sum.loc_mag += kept[i] ? loss[i].loc_mag / own : 0;
        sum.cls += kept[i] ? loss[i].cls / own : 0;
        sum.cls_mag += kept[i] ? loss[i].cls_mag / own : 0;
    }
    const double divisor =
        by_image            ? 1
        : d.normalizer >= 0 ? r->in[d.normalizer].v[0] * CHECK_SHARE /* no share is wanted */
        : ref_says(r, "normalize_by_matches", "false", "true") ? 1
                                                               : fmax(matched, 1);
    const double by_code = ref_says(r, "normalize_loc_by_codesize", "true", "false") ? d.codes : 1;
    const double a = ref_number(r, "localization_weight", 1) / divisor / by_code;
    const double b = ref_number(r, "classification_weight", 1) / divisor;

    ref_outputs(r, 2, (struct pm_shape[2]){ { 0 } });
    r->y.v[0] = a * sum.loc, r->y.mag[0] = a * sum.loc_mag;
    r->y.v[1] = b * sum.cls, r->y.mag[1] = b * sum.cls_mag;
    free(loss);
    free(kept);
}

/* ---- cases ------------------------------------------------------------------------------- */

static void arrange(const struct check_case *c, int inputs, int input, struct pm_shape shape,
                    float *v)
{
    const int first = (inputs - 5) / 2 * 2;

    if (input == first || input == first + 2)
        (strstr(c->options, "coder=rotated") ? detection_rotated : detection_boxes)(shape, v);
}

/* Two levels of 3x3 and 1x2 cells, 2 anchors a cell: 22 anchors. A map has 8 codes a cell and
 * scores of 4 columns; 3 true boxes. */
#define MAPS "2x3x3x8 2x1x2x8 2x3x3x8@-4..4 2x1x2x8@-4..4 22x4@0..1 "
#define TRUTH "2x3x4@0..1 i32:2x3@0..2 2x3@0.5..2"
#define ROTATED_MAPS "2x3x3x10 2x1x2x10 2x3x3x8@-4..4 2x1x2x8@-4..4 22x5@0..1 "
#define ROTATED_TRUTH "2x3x5@0..1 i32:2x3@0..2 2x3@0.5..2"
#define MATCHED "i32:2x22@-2..2 "
#define LOSS "detection_loss"
#define MINED LOSS " hard_example_miner=true"
#define SIX "1x5x5x12 1x3x3x24 1x2x2x24 1x1x1x24 1x1x1x24 1x1x1x16 "
#define SIX_SCORES "1x5x5x15 1x3x3x30 1x2x2x30 1x1x1x30 1x1x1x30 1x1x1x20 "
#define GRADIENT .train = true, .no_gradient = ~15u

static const struct check_case cases[] = {
    { LOSS, MAPS MATCHED TRUTH, GRADIENT },
    { LOSS " levels=2 normalize_loc_by_codesize=true localization_weight=2 "
           "classification_weight=0.5 negative_class_weight=0.25", MAPS MATCHED TRUTH, GRADIENT },
    { LOSS " encode_background_as_zeros=true delta=0.5", MAPS MATCHED TRUTH, GRADIENT },
    { LOSS " background=false", "2x3x3x8 2x1x2x8 2x3x3x6@-4..4 2x1x2x6@-4..4 22x4@0..1 "
      MATCHED TRUTH, GRADIENT },
    { LOSS " localization=weighted_l2 normalize_by_matches=false", MAPS MATCHED TRUTH, GRADIENT },
    { LOSS " localization=l1 coder=mean_stddev coder_scales=[0.2]", MAPS MATCHED TRUTH, GRADIENT },
    { LOSS " coder=corners delta=0.25 localization_weight=4", MAPS MATCHED TRUTH, GRADIENT },
    { LOSS " localization=weighted_l2 coder=corners coder_scales=[0.5]", MAPS MATCHED TRUTH,
      GRADIENT },
    { LOSS " localization=weighted_iou", MAPS MATCHED TRUTH, GRADIENT },
    { LOSS " localization=weighted_giou", MAPS MATCHED TRUTH, GRADIENT },
    { LOSS " localization=weighted_giou coder=square", "2x3x3x6 2x1x2x6 2x3x3x8 2x1x2x8 22x4@0..1 "
      MATCHED TRUTH, GRADIENT },
    { LOSS " localization=weighted_iou coder=mean_stddev coder_scales=[0.02]", MAPS MATCHED TRUTH,
      GRADIENT },
    { LOSS " localization=weighted_iou coder=corners", MAPS MATCHED TRUTH, GRADIENT },
    { LOSS " localization=weighted_giou coder=corners coder_scales=[0.05]", MAPS MATCHED TRUTH,
      GRADIENT },
    { LOSS " coder=rotated", ROTATED_MAPS MATCHED ROTATED_TRUTH, GRADIENT },
    { LOSS " coder=rotated coder_scales=[2,3,4,5,1.5] localization=weighted_l2",
      ROTATED_MAPS MATCHED ROTATED_TRUTH, GRADIENT },
    { LOSS " coder=rotated localization=l1 normalize_loc_by_codesize=true",
      ROTATED_MAPS "i32:2x22@0..2 " ROTATED_TRUTH, GRADIENT },
    { LOSS " coder=square coder_scales=[4,3,2]",
      "2x3x3x6 2x1x2x6 2x3x3x8 2x1x2x8 22x4@0..1 " MATCHED TRUTH, GRADIENT },
    { LOSS, MAPS MATCHED TRUTH " 2@7..7", GRADIENT },                 /* a normalizer */
    { LOSS " normalize_per_image=true localization_weight=2", MAPS MATCHED TRUTH " 2@1..9",
      GRADIENT },
    { LOSS " normalize_per_image=true classification=weighted_softmax "
           "normalize_loc_by_codesize=true", "3x4x5x4 3x4x5x5@-9..9 20x4@0..1 i32:3x20@-2..4 "
      "3x5x4@0..1 i32:3x5@0..3 3x5@0..1 3@1..256", .train = true, .no_gradient = ~3u },
    { LOSS " normalize_per_image=true negative_class_weight=0.5", MAPS MATCHED "2x3x4@0..1 "
      "i32:2x3@0..2 2x3@0.01..0.3 2@1..9", GRADIENT },                 /* fractional weights */
    { LOSS " normalize_per_image=true classification=weighted_softmax "
           "encode_background_as_zeros=true", MAPS MATCHED "2x3x4@0..1 2x3x3@0..1 2x3@0.01..0.3 "
      "2@1..9", GRADIENT },
    { LOSS " normalize_per_image=true", MAPS MATCHED "2x3x4@0..1 i32:2x3@0..2 2x3@0..0 2@1..9",
      GRADIENT },                                                     /* weights 0 */
    { LOSS, MAPS "i32:2x22@-1..-1 " TRUTH, GRADIENT },                 /* no positive */
    { LOSS " background=false", MAPS "i32:2x22@-2..-2 2x3x4@0..1 i32:2x3@0..3 2x3@0.5..2",
      GRADIENT },                                                     /* all ignored */
    { LOSS, MAPS "i32:2x22@0..2 " TRUTH, GRADIENT },                   /* all positive */
    { LOSS, MAPS MATCHED "2x3x4@0..1 2x3x3@0..1 2x3@0.5..2", GRADIENT }, /* soft labels */
    { LOSS, MAPS MATCHED "2x3x4@0..1 2x3x4@0..1 2x3@0.5..2", GRADIENT }, /* with a background */
    { LOSS " classification=weighted_softmax", MAPS MATCHED TRUTH, GRADIENT },
    { LOSS " classification=weighted_softmax logit_scale=2.5 encode_background_as_zeros=true",
      MAPS MATCHED TRUTH, GRADIENT },
    { LOSS " classification=weighted_softmax", MAPS MATCHED "2x3x4@0..1 2x3x3@0..1 2x3@0.5..2",
      GRADIENT },
    { LOSS " classification=weighted_logits_softmax", MAPS MATCHED TRUTH, GRADIENT },
    { LOSS " classification=weighted_logits_softmax logit_scale=0.5", MAPS MATCHED
      "2x3x4@0..1 2x3x3@-9..9 2x3@0.5..2", GRADIENT },
    { LOSS " classification=weighted_logits_softmax logit_scale=2 encode_background_as_zeros=true",
      MAPS MATCHED "2x3x4@0..1 2x3x4@-30..40 2x3@0.5..2", GRADIENT },
    { LOSS " classification=weighted_sigmoid_focal alpha=0.25", MAPS MATCHED TRUTH, GRADIENT },
    { LOSS " classification=weighted_sigmoid_focal gamma=1.5", MAPS MATCHED TRUTH, GRADIENT },
    { LOSS " classification=weighted_sigmoid_focal gamma=0", MAPS MATCHED TRUTH, GRADIENT },
    { LOSS " classification=weighted_sigmoid_focal gamma=0.5 alpha=0.75", MAPS MATCHED
      "2x3x4@0..1 2x3x3@0..1 2x3@0.5..2", GRADIENT },
    { LOSS " classification=bootstrapped_sigmoid alpha=0.75", MAPS MATCHED TRUTH, GRADIENT },
    { LOSS " classification=bootstrapped_sigmoid alpha=0.5 hard_bootstrap=true",
      MAPS MATCHED TRUTH, GRADIENT },
    { LOSS, "3x4x5x4 3x4x5x5@-30..30 20x4@0..1 i32:3x20@-2..4 3x5x4@0..1 i32:3x5@0..3 3x5@0..1",
      .train = true, .no_gradient = ~3u },                            /* one level */
    { LOSS, "1x3x4x4 1x3x4x133 12x4@0..1 i32:12@-2..1 1x2x4@0..1 i32:1x2@0..131 1x2@0..1",
      .train = true, .no_gradient = ~3u },                            /* many columns */
    { LOSS " levels=6", SIX SIX_SCORES "169x4@0..1 i32:1x169@-2..7 1x8x4@0..1 i32:1x8@0..3 1x8@1..1"
      " 1@40..40", .train = true, .no_gradient = ~4095u },
    { MINED, MAPS MATCHED TRUTH, GRADIENT },
    { MINED " iou_threshold=0.3", MAPS MATCHED TRUTH, GRADIENT },
    { MINED " num_hard_examples=7 iou_threshold=0.99", MAPS MATCHED TRUTH, GRADIENT },
    { MINED " num_hard_examples=0 max_negatives_per_positive=1.5 loss_type=classification",
      MAPS "i32:2x22@-2..0 " TRUTH, GRADIENT },
    { MINED " max_negatives_per_positive=1 loss_type=localization", MAPS MATCHED TRUTH, GRADIENT },
    { MINED " max_negatives_per_positive=3 classification_weight=0.5 localization_weight=2 "
            "loss_type=both", MAPS "i32:2x22@-2..0 " TRUTH, GRADIENT },
    { MINED " max_negatives_per_positive=3 min_negatives_per_image=4",
      MAPS "i32:2x22@-2..-1 " TRUTH, GRADIENT },                       /* no positive */
    { MINED " max_negatives_per_positive=3", MAPS "i32:2x22@-2..-1 " TRUTH, GRADIENT },
    { MINED " classification=weighted_softmax iou_threshold=0.5 coder=mean_stddev "
            "coder_scales=[0.1] num_hard_examples=12 max_negatives_per_positive=1",
      MAPS MATCHED TRUTH " 2@7..7", GRADIENT },
    { MINED " num_hard_examples=7 normalize_per_image=true", MAPS MATCHED TRUTH " 2@1..9",
      GRADIENT },
    { MINED " coder=corners num_hard_examples=12 iou_threshold=0.5 max_negatives_per_positive=1 "
            "loss_type=localization", MAPS MATCHED TRUTH, GRADIENT },
    { MINED " num_hard_examples=100 iou_threshold=0.99 max_negatives_per_positive=3 "
            "loss_type=classification",
      "2x9x9x8 2x5x5x8 2x9x9x8@-4..4 2x5x5x8@-4..4 212x4@0..1 i32:2x212@-2..2 " TRUTH, GRADIENT },
    { LOSS, "8x19x19x12 8x10x10x24 8x5x5x24 8x3x3x24 8x2x2x24 8x1x1x24 "
      "8x19x19x273 8x10x10x546 8x5x5x546 8x3x3x546 8x2x2x546 8x1x1x546 "
      "1917x4@0..1 i32:8x1917@-2..3 8x4x4@0..1 i32:8x4@0..89 8x4@1..1", .train = true,
      .no_gradient = ~4095u, .large = true },
    { MINED " num_hard_examples=3000 iou_threshold=0.99 max_negatives_per_positive=3 "
            "loss_type=classification", "8x19x19x12 8x10x10x24 8x5x5x24 8x3x3x24 8x2x2x24 8x1x1x24 "
      "8x19x19x273 8x10x10x546 8x5x5x546 8x3x3x546 8x2x2x546 8x1x1x546 "
      "1917x4@0..1 i32:8x1917@-1..0 8x4x4@0..1 i32:8x4@0..89 8x4@1..1", .train = true,
      .no_gradient = ~4095u, .large = true },
    { LOSS " coder=rotated", "4x20x20x420 4x20x20x336 33600x5@0..1 i32:4x33600@-2..3 4x4x5@0..1 "
      "i32:4x4@0..2 4x4@1..1", .train = true, .no_gradient = ~3u, .large = true },
    { MINED " coder=rotated num_hard_examples=300 iou_threshold=0.6",
      "2x10x10x30 2x10x10x24 600x5@0..1 i32:2x600@-2..2 2x3x5@0..1 i32:2x3@0..2 2x3@0.5..2",
      .train = true, .no_gradient = ~3u,
      .large = true },
    { LOSS " classification=weighted_sigmoid_focal alpha=0.25 background=false",
      "1x80x80x24 1x40x40x24 1x80x80x540 1x40x40x540 48000x4@0..1 i32:48000@-2..3 1x4x4@0..1 "
      "i32:1x4@0..89 1x4@1..1", .train = true, .no_gradient = ~15u, .large = true },
    { 0 },
};
/* A corner near 1 has an error of 2^-24; a centre and a side are sums of two. Divided by a side of
 * 0.15 and times 10, this is an error of 300 in a gradient that is a code minus its target, and up
 * to 600 relative to the largest gradient, delta = 0.5. */
const struct pm_layer_test pm_test_detection_loss = {
    cases, detection_loss, .grad_ulps = 1024, .loss = true, .arrange = arrange,
};
