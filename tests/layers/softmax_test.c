/* softmax, and softmax_cross_entropy with smoothing, weights and an ignored label. */
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

/* The float differences z - max err by half an ulp of the largest of them, which exp makes a
 * relative error; the sum of k exponentials one more per addition at worst. */
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

static void softmax_cross_entropy(struct ref *r)
{
    const struct ref_array *x = &r->in[0];
    const int k = x->shape.dim[x->shape.rank - 1], rows = (int)(x->count / (size_t)k);
    const double s = ref_number(r, "label_smoothing", 0), ignore = ref_number(r, "ignore_label", -1);
    double loss = 0, mag = 0;
    int count = 0;

    ref_output(r, (struct pm_shape){ 0 });
    for (int row = 0; row < rows; row++) {
        const double *z = x->v + (size_t)row * k, label = r->in[1].v[row];
        const double weight = label == ignore ? 0 : r->inputs > 2 ? r->in[2].v[row] : 1;

        count += weight != 0;
        for (int i = 0; i < k && weight != 0; i++) {
            const double target = (i == label) * (1 - s) + s / k;
            loss += weight * target * (log_sum(z, k) - z[i]);
            mag += fabs(weight) * target * (log_sum(z, k) + fabs(z[i]));
        }
    }
    r->y.v[0] = ref_number(r, "weight", 1) * loss / (count ? count : 1);
    r->y.mag[0] = ref_number(r, "weight", 1) * (mag / (count ? count : 1) + 1);
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
    { LOSS " ignore_label=0", "3x4 i32:3@0..0", .train = true }, /* nothing counts */
    { LOSS, "9x5 i32:9@0..4 ~9", .train = true, .no_gradient = 4 },
    { LOSS " ignore_label=4 label_smoothing=0.2", "9x5 i32:9@0..4 9@0.5..2", .train = true,
      .no_gradient = 4 },
    { LOSS, "300x11 i32:300@0..10", .train = true },
    { LOSS, "5x200@-10..10 i32:5@0..199", .train = true },
    { LOSS " label_smoothing=0.1", "64x1001 i32:64@0..1000", .train = true, .large = true },
    { LOSS " ignore_label=20", "2x257x257x21 i32:2x257x257@0..20", .train = true, .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_softmax = { softmax_cases, softmax };
const struct pm_layer_test pm_test_log_softmax = { log_softmax_cases, log_softmax };
const struct pm_layer_test pm_test_softmax_cross_entropy = { loss_cases, softmax_cross_entropy,
                                                             .loss = true };
