/* keypoint_code_loss and decode_keypoints by their definitions: one keypoint at a time, in double
 * precision. */
#include "check.h"

/* ---- keypoint_code_loss ------------------------------------------------------------------- */

enum { CODES, ANCHORS, MATCHES, KEYPOINTS, WEIGHTS, NORMALIZER };

static void scales_of(const struct ref *r, double out[2])
{
    out[0] = out[1] = 10;
    ref_numbers(r, "scales", out, 2);
}

/* The code of coordinate `axis` of a keypoint. */
static double encode(const double *anchor, double v, int axis, double scale)
{
    const double side = anchor[axis + 2] - anchor[axis];

    return scale * (v - (anchor[axis] + anchor[axis + 2]) / 2) / (side + 1e-8);
}

/* Adds the loss of an anchor that is matched with row g of its example's truth. */
static void add_anchor(const struct ref *r, int row, int g, double *loss, double *mag)
{
    const int *x = r->in[CODES].shape.dim, m = r->in[KEYPOINTS].shape.dim[1];
    const double *anchor = r->in[ANCHORS].v + 4 * (size_t)(row % x[1]);
    const size_t truth = (size_t)(row / x[1] * m + g);
    const double w = r->in[WEIGHTS].v[truth], delta = ref_number(r, "delta", 1);
    const bool l2 = ref_says(r, "localization", "weighted_l2", "weighted_smooth_l1");
    double scales[2];

    scales_of(r, scales);
    for (int i = 0; i < x[2]; i++) {
        const double v = r->in[KEYPOINTS].v[truth * x[2] + i];
        const double code = r->in[CODES].v[(size_t)row * x[2] + i];
        const double target = encode(anchor, v, i % 2, scales[i % 2]), d = fabs(code - target);
        /* In float32 coordinates near 1 are rounded before they are divided by the side. */
        const double off = fabs(code) + 4 * scales[i % 2] / (anchor[i % 2 + 2] - anchor[i % 2]);

        if (!isfinite(v))
            continue;
        *loss += l2 ? w * w * d * d / 2 : w * (d <= delta ? d * d / 2 : delta * (d - delta / 2));
        *mag += l2 ? w * w * d * (d + off) : w * (fmin(d, delta) * (d + off));
    }
}

static void keypoint_code_loss(struct ref *r)
{
    const int *x = r->in[CODES].shape.dim, m = r->in[KEYPOINTS].shape.dim[1];
    const bool each = ref_says(r, "normalize_per_image", "true", "false");
    const bool by_matches = ref_says(r, "normalize_by_matches", "true", "true");
    double weight = ref_number(r, "weight", 1), matched = 0, divisor = 1;

    ref_output(r, (struct pm_shape){ 0 });
    for (int row = 0; row < x[0] * x[1]; row++) {
        const int g = (int)r->in[MATCHES].v[row];

        matched += g < 0 ? 0 : r->in[WEIGHTS].v[row / x[1] * m + g];
    }
    if (r->inputs > NORMALIZER)
        divisor = r->in[NORMALIZER].v[0] * CHECK_SHARE; /* not multiplied by the share */
    else if (by_matches)
        divisor = fmax(matched, 1);
    for (int row = 0; row < x[0] * x[1]; row++) {
        const int g = (int)r->in[MATCHES].v[row];
        double loss = 0, mag = 0;

        if (each)
            divisor = r->in[NORMALIZER].v[row / x[1]] * x[0];
        if (g >= 0)
            add_anchor(r, row, g, &loss, &mag);
        r->y.v[0] += weight * loss / divisor, r->y.mag[0] += weight * mag / divisor;
    }
}

/* Anchors have sides of at least 0.15. In small cases every fourth keypoint has no label. */
static void arrange(const struct check_case *c, int inputs, int input, struct pm_shape shape,
                    float *v)
{
    const size_t count = pm_shape_count(shape);

    (void)inputs;
    for (size_t i = 0; i < count / 4 && input == ANCHORS; i++, v += 4)
        for (int k = 0; k < 2; k++) {
            const float low = fminf(v[k], v[2 + k]), high = fmaxf(v[k], v[2 + k]);

            v[k] = low, v[2 + k] = fmaxf(high, low + 0.15f);
        }
    for (size_t i = 3; i < count / 2 && input == KEYPOINTS && !c->large; i += 4)
        v[2 * i] = v[2 * i + 1] = NAN;
}

#define LOSS "keypoint_code_loss"
#define GRADIENT .train = true, .no_gradient = ~1u
/* Two images of 22 anchors, 3 objects of 5 keypoints. */
#define ROWS "2x22x10@-4..4 22x4@0..1 "
#define MATCHED "i32:2x22@-2..2 "
#define TRUTH "2x3x5x2@0..1 2x3@0.5..2"

static const struct check_case loss_cases[] = {
    { LOSS, ROWS MATCHED TRUTH, GRADIENT },
    { LOSS " localization=weighted_l2 scales=[2,3]", ROWS MATCHED TRUTH, GRADIENT },
    { LOSS " delta=0.25 weight=3", ROWS MATCHED TRUTH, GRADIENT },
    { LOSS " normalize_by_matches=false", ROWS MATCHED TRUTH, GRADIENT },
    { LOSS, ROWS MATCHED TRUTH " 2@7..7", GRADIENT },
    { LOSS " normalize_per_image=true", ROWS MATCHED TRUTH " 2@1..9", GRADIENT },
    { LOSS, ROWS "i32:2x22@-1..-1 " TRUTH, GRADIENT },              /* no positive */
    { LOSS, ROWS "i32:2x22@-2..-2 " TRUTH, GRADIENT },              /* all ignored */
    { LOSS, ROWS "i32:2x22@0..2 " TRUTH, GRADIENT },                /* all positive */
    { LOSS, ROWS MATCHED "2x3x5x2@0..1 2x3@0..0", GRADIENT },       /* weights 0 */
    { LOSS, "1x5x2@-4..4 5x4@0..1 i32:1x5@-1..0 1x1x1x2@0..1 1x1@1..1", GRADIENT },
    { LOSS, "8x1917x34@-4..4 1917x4@0..1 i32:8x1917@-2..99 8x100x17x2@0..1 8x100@0..1",
      .train = true, .no_gradient = ~1u, .large = true },
    { 0 },
};
/* As detection_loss: a coordinate near 1 has an error of 2^-24, a centre and a side are sums of
 * two, and divided by a side of 0.15 and times 10 this is up to 300 in a gradient that is a code
 * minus its target: 600 relative to the largest, delta, of 0.5, and 1200 of 0.25. check allows a
 * sixteenth of grad_ulps of the largest gradient. */
const struct pm_layer_test pm_test_keypoint_code_loss = {
    loss_cases, keypoint_code_loss, .grad_ulps = 19200, .loss = true, .arrange = arrange,
};

/* ---- decode_keypoints --------------------------------------------------------------------- */

enum { CHOSEN = 2, COUNT };

static void decode_keypoints(struct ref *r)
{
    const int *x = r->in[CODES].shape.dim, *d = r->in[CHOSEN].shape.dim;
    double scales[2];

    scales_of(r, scales);
    ref_output(r, PM_SHAPE4(d[0], d[1], x[2] / 2, 2));
    for (int row = 0; row < d[0] * d[1]; row++)
        for (int i = 0; i < x[2] && row % d[1] < r->in[COUNT].v[row / d[1]]; i++) {
            const int of = (int)r->in[CHOSEN].v[row], axis = i % 2;
            const double *anchor = r->in[ANCHORS].v + 4 * (size_t)of;
            const double low = anchor[axis], side = anchor[axis + 2] - low;
            const double code = r->in[CODES].v[(size_t)(row / d[1] * x[1] + of) * x[2] + i];

            r->y.v[(size_t)row * x[2] + i] = code / scales[axis] * side + low + side / 2;
            r->y.mag[(size_t)row * x[2] + i] =
                (fabs(code) / scales[axis] + 1) * (fabs(low) + fabs(anchor[axis + 2]));
        }
}

static const struct check_case decode_cases[] = {
    { "decode_keypoints", "2x22x10@-4..4 22x4@0..1 i32:2x7@0..21 i32:2@0..7" },
    { "decode_keypoints scales=[2,3]", "2x22x10@-4..4 22x4@0..1 i32:2x7@0..21 i32:2@7..7" },
    { "decode_keypoints", "1x1x2@-4..4 1x4@0..1 i32:1x1@0..0 i32:1@1..1" },
    { "decode_keypoints", "3x22x2@-4..4 22x4@0..1 i32:3x4@0..21 i32:3@0..0" },
    { "decode_keypoints", "8x1917x34@-4..4 1917x4@0..1 i32:8x100@0..1916 i32:8@50..100",
      .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_decode_keypoints = { decode_cases, decode_keypoints };
