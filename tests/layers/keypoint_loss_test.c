/* keypoint_loss by its definition: one keypoint at a time, in double precision. */
#include "check.h"

enum { LOGITS, BOXES, MATCHES, KEYPOINTS };

/* ---- rows ------------------------------------------------------------------------------------ */

/* Which of n equal parts of low..high has v; -1: none. */
static int bin_of(double v, double low, double high, int n)
{
    if (!(high > low && high - low <= 1e30) || !(v >= low && v <= high))
        return -1;
    return v == high ? n - 1 : (int)floor((v - low) / (high - low) * n);
}

/* The place of keypoint k of the box's object; -1: there is none. */
static int place_of(const struct ref *r, int row, int k)
{
    const int *x = r->in[LOGITS].shape.dim, *t = r->in[KEYPOINTS].shape.dim;
    const double *b = r->in[BOXES].v + 4 * (size_t)row;
    const int match = (int)r->in[MATCHES].v[row];
    const double *point;
    int line, column;

    if (match < 0)
        return -1;
    point = r->in[KEYPOINTS].v +
            2 * ((size_t)(row / r->in[BOXES].shape.dim[1] * t[1] + match) * t[2] + k);
    line = bin_of(point[0], b[0], b[2], x[1]);
    column = bin_of(point[1], b[1], b[3], x[2]);
    return line < 0 || column < 0 ? -1 : line * x[2] + column;
}

/* Adds the cross entropies of a row's keypoints. */
static void add_row(const struct ref *r, int row, double *loss, double *mag, double *count)
{
    const int *d = r->in[LOGITS].shape.dim, places = d[1] * d[2];

    for (int k = 0; k < d[3]; k++) {
        const double *x = r->in[LOGITS].v + (size_t)row * places * d[3] + k;
        const int target = place_of(r, row, k);
        double most = -INFINITY, sum = 0;

        for (int i = 0; i < places && target >= 0; i++)
            most = fmax(most, x[(size_t)i * d[3]]);
        for (int i = 0; i < places && target >= 0; i++)
            sum += exp(x[(size_t)i * d[3]] - most);
        if (target < 0)
            continue;
        *loss += most + log(sum) - x[(size_t)target * d[3]];
        *mag += 1 + 2 * fabs(most) + fabs(x[(size_t)target * d[3]]) + log(sum);
        *count += 1;
    }
}

static void keypoint_loss(struct ref *r)
{
    const int images = r->in[BOXES].shape.dim[0], per = r->in[BOXES].shape.dim[1];
    const bool together = ref_says(r, "normalize_over", "batch", "image");
    const double weight = ref_number(r, "weight", 1);
    double loss = 0, mag = 0, count = 0;

    ref_output(r, (struct pm_shape){ 0 });
    for (int row = 0; row < images * per; row++) {
        add_row(r, row, &loss, &mag, &count);
        if (together ? row + 1 == images * per : (row + 1) % per == 0) {
            const double f = weight / fmax(count, 1) / (together ? 1 : images);

            r->y.v[0] += f * loss, r->y.mag[0] += f * mag;
            loss = mag = count = 0;
        }
    }
}

/* ---- cases ----------------------------------------------------------------------------------- */

static const float boxes[][4] = {
    { 0, 0, 1, 1 },
    { 0.25f, 0.5f, 0.25f, 0.5f },   /* without area */
    { 0.5f, 0.125f, 0.5f, 0.875f }, /* without height */
    { 0.25f, 0.25f, 0.75f, 0.5f },
    { -0.5f, -1, 1.5f, 2 },         /* around the image */
    { 0.75f, 1, 0.25f, 0 },         /* corners in reverse order */
    { 0, 0, 1, NAN },
    { -INFINITY, 0, 1, 1 },
    { 0, 0, INFINITY, 1 },
};
/* On the borders of these boxes and of their places, outside, and without a label. */
static const float keypoints[][2] = {
    { 0, 0 },          { 1, 1 },      { 0, 1 },        { 0.25f, 0.5f },   { 0.75f, 0.25f },
    { NAN, NAN },      { 0.5f, NAN }, { 0.5f, 0.5f },  { -0.125f, 0.5f }, { 0.5f, 1.125f },
    { INFINITY, 0.5f }, { 0.5f, -INFINITY },
};

/* In small cases every second box and keypoint is a special one. The corners of the other boxes,
 * and of large cases, are in order. */
static void arrange(const struct check_case *c, int inputs, int input, struct pm_shape shape,
                    float *v)
{
    const size_t each = input == BOXES ? 4 : 2, count = pm_shape_count(shape) / each;

    (void)inputs;
    for (size_t i = 0; i < count && (input == BOXES || input == KEYPOINTS); i++, v += each)
        if (!c->large && i % 2 == 1 && input == BOXES)
            memcpy(v, boxes[i / 2 % PM_COUNT(boxes)], sizeof boxes[0]);
        else if (!c->large && i % 2 == 1)
            memcpy(v, keypoints[i / 2 % PM_COUNT(keypoints)], sizeof keypoints[0]);
        else
            for (int k = 0; k < 2 && input == BOXES; k++) {
                const float low = fminf(v[k], v[2 + k]);

                v[2 + k] = fmaxf(v[k], v[2 + k]), v[k] = low;
            }
}

#define GRADIENT .train = true, .no_gradient = ~1u
/* Two images of 9 boxes, 4 objects of 5 keypoints. */
#define ROWS "18x4x5x5@-6..6 2x9x4@-0.1..1.1 "
#define MATCHED "i32:2x9@-2..3 "
#define TRUTH "2x4x5x2@-0.1..1.1"

static const struct check_case cases[] = {
    { "keypoint_loss", ROWS MATCHED TRUTH, GRADIENT },
    { "keypoint_loss normalize_over=batch", ROWS MATCHED TRUTH, GRADIENT },
    { "keypoint_loss weight=4", ROWS MATCHED TRUTH, GRADIENT },
    { "keypoint_loss weight=0", ROWS MATCHED TRUTH, GRADIENT },
    { "keypoint_loss normalize_over=batch weight=2", ROWS MATCHED TRUTH, GRADIENT },
    { "keypoint_loss", ROWS "i32:2x9@0..3 " TRUTH, GRADIENT },   /* all are matched */
    { "keypoint_loss", ROWS "i32:2x9@-1..-1 " TRUTH, GRADIENT }, /* none is */
    { "keypoint_loss", ROWS "i32:2x9@-2..-2 " TRUTH, GRADIENT },
    { "keypoint_loss", ROWS MATCHED "2x4x5x2@2..3", GRADIENT },  /* most are outside */
    { "keypoint_loss", "18x1x1x5@-6..6 2x9x4@0..1 " MATCHED TRUTH, GRADIENT }, /* one place */
    { "keypoint_loss", "18x1x7x5@-6..6 2x9x4@0..1 i32:2x9@0..3 " TRUTH, GRADIENT },
    { "keypoint_loss", "18x4x5x1@-6..6 2x9x4@0..1 " MATCHED "2x4x1x2@0..1", GRADIENT },
    { "keypoint_loss", "1x3x3x2@-6..6 1x1x4@0..1 i32:1x1@0..0 1x1x2x2@0..1", GRADIENT },
    { "keypoint_loss", "63x2x2x3@-6..6 1x63x4@-0.2..1.2 i32:1x63@-2..1 1x2x3x2@0..1", GRADIENT },
    { "keypoint_loss", "192x2x2x3@-6..6 3x64x4@-0.2..1.2 i32:3x64@-1..1 3x2x3x2@0..1", GRADIENT },
    { "keypoint_loss", "2x17x19x3@-6..6 1x2x4@0..1 i32:1x2@0..1 1x2x3x2@0..1", GRADIENT },
    { "keypoint_loss", "4x2x3x2@-100..100 2x2x4@0..1 i32:2x2@0..3 2x4x2x2@0..1",
      GRADIENT },                                          /* logits whose e^x is no float */
    { "keypoint_loss", "128x56x56x17@-6..6 2x64x4@0..1 i32:2x64@-2..99 2x100x17x2@0..1",
      .train = true, .no_gradient = ~1u, .large = true },
    { "keypoint_loss", "32x56x56x133@-6..6 2x16x4@0..1 i32:2x16@-1..9 2x10x133x2@0..1",
      .train = true, .no_gradient = ~1u, .large = true },
    { "keypoint_loss normalize_over=batch", "4096x3x5x17@-6..6 16x256x4@0..1 i32:16x256@-1..9 "
      "16x10x17x2@0..1", .train = true, .no_gradient = ~1u, .large = true },
    { 0 },
};
/* A gradient is exp(x - lse) times a factor. lse is at most 100 here, and its two roundings move it
 * by up to 2 * 2^-18, which is 128 units relative to the gradient; x - lse and the exponential add
 * less than 10. check allows a sixteenth of grad_ulps of the largest gradient: 16 * 138 = 2208. */
const struct pm_layer_test pm_test_keypoint_loss = {
    cases, keypoint_loss, .grad_ulps = 2208, .loss = true, .arrange = arrange,
};
