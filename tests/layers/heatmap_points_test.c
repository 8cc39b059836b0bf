/* heatmap_points by its definition: one keypoint at a time, in double precision. */
#include "check.h"

enum { LOGITS, BOXES, COUNT };

/* The first place of the largest value, and the softmax there. */
static int place_of(const struct ref *r, int row, int k, double *softmax, double *mag)
{
    const int *d = r->in[LOGITS].shape.dim, places = d[1] * d[2];
    const double *x = r->in[LOGITS].v + (size_t)row * places * d[3] + k;
    double sum = 0, spread = 0;
    int place = 0;

    for (int i = 0; i < places; i++)
        if (x[(size_t)i * d[3]] > x[(size_t)place * d[3]])
            place = i;
    for (int i = 0; i < places; i++) {
        const double away = x[(size_t)place * d[3]] - x[(size_t)i * d[3]];

        sum += exp(-away);
        spread += exp(-away) * (1 + away);
    }
    *softmax = 1 / sum;
    *mag = spread / sum / sum + 1 / sum;
    return place;
}

static void put(struct ref *r, size_t at, double low, double high, double part)
{
    r->y.v[at] = low + part * (high - low);
    r->y.mag[at] = 2 * fabs(low) + fabs(high);
}

static void heatmap_points(struct ref *r)
{
    const int *x = r->in[LOGITS].shape.dim, *b = r->in[BOXES].shape.dim;
    const struct pm_shape out[] = { PM_SHAPE4(b[0], b[1], x[3], 2), PM_SHAPE3(b[0], b[1], x[3]) };
    const size_t scores = pm_shape_count(out[0]);

    ref_outputs(r, 2, out);
    for (int row = 0; row < x[0]; row++)
        for (int k = 0; k < x[3]; k++) {
            const double *box = r->in[BOXES].v + 4 * (size_t)row;
            const size_t at = (size_t)row * x[3] + k;
            double softmax, mag;
            const int place = place_of(r, row, k, &softmax, &mag);

            if (row % b[1] >= r->in[COUNT].v[row / b[1]])
                continue; /* 0 */
            put(r, 2 * at, box[0], box[2], (place / x[2] + 0.5) / x[1]);
            put(r, 2 * at + 1, box[1], box[3], (place % x[2] + 0.5) / x[2]);
            r->y.v[scores + at] = softmax;
            r->y.mag[scores + at] = mag;
        }
}

static const struct check_case cases[] = {
    { "heatmap_points", "6x3x5x4@-6..6 2x3x4@0..1 i32:2@0..3" },
    { "heatmap_points", "6x3x5x1@-6..6 3x2x4@-1..2 i32:3@0..2" },
    { "heatmap_points", "3x1x1x2 3x1x4@0..1 i32:3@1..1" },       /* one place */
    { "heatmap_points", "4x2x2x2 1x4x4@0..1 i32:1@0..0" },       /* no box */
    { "heatmap_points", "4x2x2x2 1x4x4@0..1 i32:1@4..4" },       /* only valid ones */
    { "heatmap_points", "~6x9x8x3 2x3x4@0..1 i32:2@2..3" },      /* equal values */
    { "heatmap_points", "2x17x13x5@-30..30 1x2x4@0..1 i32:1@2..2" },
    { "heatmap_points", "1x256x256x1@-1..1 1x1x4@0..1 i32:1@1..1" },
    { "heatmap_points", "2x300x260x3@-1..1 1x2x4@0..1 i32:1@2..2" },
    { "heatmap_points", "300x56x56x17@-6..6 3x100x4@0..1 i32:3@50..100", .large = true },
    { "heatmap_points", "1200x5x3x57@-6..6 4x300x4@0..1 i32:4@0..300", .large = true },
    { 0 },
};
/* The softmax is a quotient by a sum of up to 78,000 terms. pm_exp_sum adds each of them with at
 * most 145 roundings of one unit each, and a term and the quotient have less than 10. */
const struct pm_layer_test pm_test_heatmap_points = { cases, heatmap_points, .ulps = 230 };
