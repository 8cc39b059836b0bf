/* softmax, and softmax_cross_entropy with smoothing, weights, an ignored label and mining. */
#include <stdlib.h>

#include "check.h"

/* log sum exp of row z. */
static double log_sum(const double *z, int k)
{
    double largest = z[0], sum = 0;

    for (int i = 1; i < k; i++)
        largest = fmax(largest, z[i]);
    for (int i = 0; i < k; i++)
        sum += exp(z[i] - largest);
    return largest + log(sum);
}

/* The differences z - max have an error of half an ulp of the largest of them, which exp turns
 * into a relative error. The sum of k exponentials adds at most one rounding per addition. */
static void softmax(struct ref *r)
{
    const struct ref_array *x = &r->in[0];
    const int k = x->shape.dim[x->shape.rank - 1];

    ref_output(r, x->shape);
    for (size_t i = 0; i < x->count; i++) {
        const double *row = x->v + i / k * k;
        const double spread = fabs(x->v[i] - log_sum(row, k));

        r->y.v[i] = exp(x->v[i] - log_sum(row, k));
        r->y.mag[i] = r->y.v[i] * (1 + spread);
    }
}

static void log_softmax(struct ref *r)
{
    const struct ref_array *x = &r->in[0];
    const int k = x->shape.dim[x->shape.rank - 1];

    ref_output(r, x->shape);
    for (size_t i = 0; i < x->count; i++) {
        const double sum = log_sum(x->v + i / k * k, k);

        r->y.v[i] = x->v[i] - sum;
        r->y.mag[i] = fabs(x->v[i]) + fabs(sum) + 1;
    }
}

static int falling(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x < y) - (x > y);
}

/* The number of counted losses: those not below the k-th largest, without zeros. */
static int mined(const struct ref *r, double *loss, int rows)
{
    const double p = ref_number(r, "top_k_percent", 1), steps = ref_number(r, "mining_steps", 0);
    const double ratio = steps > 0 ? fmin(1, CHECK_STEP / steps) : 1;
    const int k = (int)((ratio * p + 1 - ratio) * rows);
    double *sorted = malloc((size_t)rows * sizeof *sorted);
    int count = 0;

    memcpy(sorted, loss, (size_t)rows * sizeof *sorted);
    qsort(sorted, (size_t)rows, sizeof *sorted, falling);
    for (int i = 0; i < rows; i++) {
        loss[i] = loss[i] < sorted[k > 0 ? k - 1 : 0] ? 0 : loss[i];
        count += loss[i] != 0;
    }
    free(sorted);
    return count;
}

static double row_loss(struct ref *r, int row, int k, double *mag)
{
    const double s = ref_number(r, "label_smoothing", 0), *z = r->in[0].v + (size_t)row * k;
    const int label = (int)r->in[1].v[row];
    double loss = 0;

    for (int i = 0; i < k; i++) {
        const double target = (i == label) * (1 - s) + s / k;

        loss += target * (log_sum(z, k) - z[i]);
        *mag += target * (log_sum(z, k) + fabs(z[i]));
    }
    return loss;
}

static void softmax_cross_entropy(struct ref *r)
{
    const struct ref_array *x = &r->in[0];
    const int k = x->shape.dim[x->shape.rank - 1], rows = (int)(x->count / (size_t)k);
    const double ignore = ref_number(r, "ignore_label", -1);
    double *loss = calloc((size_t)rows, sizeof *loss), class_weight[32], sum = 0, mag = 0;
    const int classes = ref_numbers(r, "label_weights", class_weight, 32);
    int nonzero = 0, valid = 0, count;

    ref_output(r, (struct pm_shape){ 0 });
    for (int row = 0; row < rows; row++) {
        const double label = r->in[1].v[row];
        const double weight = label == ignore ? 0
                              : (r->inputs > 2 ? r->in[2].v[row] : 1) *
                                    (classes ? class_weight[(int)label] : 1);
        double size = 0;

        valid += label != ignore;
        nonzero += weight != 0;
        if (weight != 0)
            loss[row] = weight * row_loss(r, row, k, &size);
        mag += fabs(weight) * size;
    }
    count = ref_says(r, "normalize", "kept_pixels", "nonzero_weight") ? valid : nonzero;
    if (ref_number(r, "top_k_percent", 1) < 1)
        count = mined(r, loss, rows);
    if (ref_says(r, "normalize", "top_k", "nonzero_weight")) {
        const double kth = floor(ref_number(r, "top_k_percent", 1) * rows + 1e-9);

        count = kth > 1 ? (int)kth : 1;
    }
    for (int row = 0; row < rows; row++)
        sum += loss[row];
    free(loss);
    r->y.v[0] = ref_number(r, "weight", 1) * sum / (count ? count : 1);
    r->y.mag[0] = ref_number(r, "weight", 1) * (mag / (count ? count : 1) + 1);
}

/* Rows of two classes, the target (1 - label, label). */
static void matting_cross_entropy(struct ref *r)
{
    const int rows = (int)(r->in[0].count / 2);
    const double ignore = ref_number(r, "ignore_label", -1), scale = ref_number(r, "weight", 1);
    double *loss = calloc((size_t)rows, sizeof *loss), sum = 0, mag = 0;
    int count = 0;

    for (int row = 0; row < rows; row++) {
        const double *z = r->in[0].v + 2 * row, label = r->in[1].v[row];
        const double weight = label == ignore ? 0 : r->inputs > 2 ? r->in[2].v[row] : 1;

        loss[row] = weight == 0 ? 0 : weight * (log_sum(z, 2) - (1 - label) * z[0] - label * z[1]);
        mag += fabs(weight) * (1 + fabs(z[0]) + fabs(z[1]));
        count += weight != 0;
    }
    if (ref_number(r, "top_k_percent", 1) < 1)
        count = mined(r, loss, rows);
    for (int row = 0; row < rows; row++)
        sum += loss[row];
    free(loss);
    ref_output(r, (struct pm_shape){ 0 });
    r->y.v[0] = scale * sum / (count ? count : 1);
    r->y.mag[0] = scale * mag / (count ? count : 1);
}

static const struct check_case softmax_cases[] = {
    { "softmax", "3x5" },
    { "softmax", "2x3x4x21@-6..6" },
    { "softmax", "4x1" },
    { "softmax", "2x130@-30..30" },
    { "softmax", "32x1001", .large = true },
    { "softmax", "2x257x257x21", .large = true },
    { 0 },
};
static const struct check_case log_softmax_cases[] = {
    { "log_softmax", "3x5" },
    { "log_softmax", "2x3x4x21@-6..6" },
    { "log_softmax", "4x1" },
    { "log_softmax", "2x130@-30..30" },
    { "log_softmax", "32x1001", .large = true },
    { "log_softmax", "2x257x257x21", .large = true },
    { 0 },
};
#define LOSS "softmax_cross_entropy"
static const struct check_case loss_cases[] = {
    { LOSS, "4x10 i32:4@0..9", .train = true },
    { LOSS, "3x2@-40..40 i32:3@0..1", .train = true },
    { LOSS " label_smoothing=0.1 weight=0.4", "6x7@-5..5 i32:6@0..6", .train = true },
    { LOSS " ignore_label=2", "2x3x4x3 i32:2x3x4@0..2", .train = true },
    { LOSS " ignore_label=0", "3x4 i32:3@0..0", .train = true }, /* every label is ignored */
    { LOSS, "9x5 i32:9@0..4 ~9", .train = true, .no_gradient = 4 },
    { LOSS " ignore_label=4 label_smoothing=0.2", "9x5 i32:9@0..4 9@0.5..2", .train = true,
      .no_gradient = 4 },
    { LOSS, "300x11 i32:300@0..10", .train = true },
    { LOSS, "5x200@-10..10 i32:5@0..199", .train = true },
    { LOSS " ignore_label=255", "2x5x21 i32:2x5@3..3", .train = true },
    { LOSS " ignore_label=2 label_weights=[0.5,2,9,0,1] weight=3", "4x9x5 i32:4x9@0..4",
      .train = true },
    { LOSS " ignore_label=2 label_weights=[0.5,2,9,0,1] normalize=kept_pixels",
      "4x9x5 i32:4x9@0..4", .train = true },
    { LOSS " label_weights=[2,3,0.25] normalize=kept_pixels", "40x3 i32:40@0..2 40@0.5..2",
      .train = true, .no_gradient = 4 },
    { LOSS " ignore_label=1 normalize=kept_pixels", "9x2 i32:9@0..1 ~9", .train = true,
      .no_gradient = 4 },
    { LOSS " ignore_label=0 normalize=kept_pixels", "3x4 i32:3@0..0", .train = true },
    { LOSS " top_k_percent=0.3", "40x7 i32:40@0..6", .train = true },
    { LOSS " top_k_percent=0.25 ignore_label=3 label_smoothing=0.1", "2x5x9x6 i32:2x5x9@0..5",
      .train = true },
    { LOSS " top_k_percent=0.9 ignore_label=0", "60x2 i32:60@0..1", .train = true },
    { LOSS " top_k_percent=0.125 mining_steps=4", "70x5 i32:70@0..4", .train = true },
    { LOSS " top_k_percent=0.5 mining_steps=3 weight=2", "21x40 i32:21@0..39", .train = true },
    { LOSS " top_k_percent=0.5 label_weights=[1,0.5,0,4] ignore_label=3", "50x4 i32:50@0..3",
      .train = true },
    { LOSS " top_k_percent=0.4", "33x3 i32:33@0..2 33@0.5..2", .train = true, .no_gradient = 4 },
    { LOSS " normalize=top_k ignore_label=1 weight=2", "9x5 i32:9@0..4 9@0.5..2", .train = true,
      .no_gradient = 4 },
    { LOSS " normalize=top_k top_k_percent=0.25 ignore_label=1", "2x5x9x3 i32:2x5x9@0..2 90@0.5..3",
      .train = true, .no_gradient = 4 },
    { LOSS " normalize=top_k top_k_percent=0.875 ignore_label=0", "48x2 i32:48@0..1",
      .train = true },
    { LOSS " normalize=top_k top_k_percent=0.01", "7x3 i32:7@0..2", .train = true },
    { LOSS " top_k_percent=0.001", "5x3 i32:5@0..2", .train = true },
    { LOSS " ignore_label=2 label_smoothing=0.1", "4103x3 i32:4103@0..2", .train = true },
    { LOSS " label_smoothing=0.1", "64x1001 i32:64@0..1000", .train = true, .large = true },
    { LOSS " ignore_label=20", "2x257x257x21 i32:2x257x257@0..20", .train = true, .large = true },
    { LOSS " ignore_label=255", "8x257x257x21 i32:8x257x257@0..20", .train = true, .large = true },
    { LOSS " ignore_label=255", "8x257x257x11 i32:8x257x257@0..10", .train = true, .large = true },
    { LOSS " ignore_label=20 top_k_percent=0.15", "2x257x257x21 i32:2x257x257@0..20", .train = true,
      .large = true },
    { LOSS " ignore_label=1 top_k_percent=0.5", "2049x2049x2 i32:2049x2049@0..1", .train = true,
      .large = true },
    { 0 },
};
#define MATTING "matting_cross_entropy"
static const struct check_case matting_cases[] = {
    { MATTING, "3x4x5x2 3x4x5@0..1", .train = true, .no_gradient = 2 },
    { MATTING " weight=0.5", "40x2@-40..40 40x1@0..1", .train = true, .no_gradient = 2 },
    { MATTING " ignore_label=-3", "40x2 ~40@0..1", .train = true, .no_gradient = 2 },
    { MATTING " ignore_label=1", "2x20x2 ~2x20@0..1 ~2x20@0..2", .train = true, .no_gradient = 6 },
    { MATTING " ignore_label=0", "9x2 ~9@0..0", .train = true, .no_gradient = 2 },
    { MATTING " top_k_percent=0.3", "40x2 40@0..1", .train = true, .no_gradient = 2 },
    { MATTING " top_k_percent=0.5 mining_steps=4 ignore_label=1", "40x2 ~40@0..1 40@0.5..2",
      .train = true, .no_gradient = 6 },
    { MATTING, "2x257x257x2 2x257x257@0..1", .train = true, .no_gradient = 2, .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_matting_cross_entropy = { matting_cases, matting_cross_entropy,
                                                             .loss = true };
const struct pm_layer_test pm_test_softmax = { softmax_cases, softmax };
const struct pm_layer_test pm_test_log_softmax = { log_softmax_cases, log_softmax };
const struct pm_layer_test pm_test_softmax_cross_entropy = { loss_cases, softmax_cross_entropy,
                                                             .loss = true };
