/* fake_quant and quantized_conv2d by their definitions, in double precision. Gradients ignore
 * the rounding, so differences of the rounded function do not give them. The reference remembers
 * its first call. For inputs near the first ones it continues along a straight line with the
 * slope that the gradient must have: 1 inside the range and 0 outside. */
#include "check.h"

#include <stdlib.h>

/* ---- the staircase --------------------------------------------------------------------------- */

struct stairs {
    double low, high, step, least;
};

/* The range with its ends moved so that 0 is a step. */
static struct stairs stairs_of(double low, double high, bool narrow)
{
    struct stairs s = { .least = narrow ? 1 : 0 };
    double zero;

    if (low == 0 && high == 0)
        return s;
    s.step = (high - low) / (255 - s.least);
    zero = floor(fmin(fmax(s.least - low / s.step, s.least), 255) + 0.5);
    s.low = (s.least - zero) * s.step;
    s.high = (255 - zero) * s.step;
    return s;
}

/* x rounded; *risk gets the change of the result when x changes by a float's rounding. */
static double stair(const struct stairs *s, double x, double *risk)
{
    const double inside = fmin(fmax(x, s->low), s->high), at = s->step > 0 ? inside / s->step : 0;

    *risk = fabs(at - floor(at) - 0.5) < 1e-3 ? s->step : 0;
    return floor(at + 0.5) * s->step;
}

/* The first call: its values and their ranges. */
static struct memory {
    double *v[2];
    size_t count[2];
} first;

static bool is_near(int k, const struct ref_array *a)
{
    if (!first.v[k] || first.count[k] != a->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!(fabs(first.v[k][i] - a->v[i]) < 1e-3))
            return false;
    return true;
}

static void remember(int k, const struct ref_array *a)
{
    free(first.v[k]);
    first.v[k] = malloc((a->count + 1) * sizeof(double));
    memcpy(first.v[k], a->v, a->count * sizeof(double));
    first.count[k] = a->count;
}

static double slope(const struct stairs *s, double x)
{
    return s->step == 0 || (x >= s->low && x <= s->high) ? 1 : 0;
}

static bool is_on(const struct ref *r)
{
    return !r->train || CHECK_STEP + 1 >= ref_number(r, "delay", 0);
}

/* Widens a symmetric range so that 0 is its middle step: as many steps lie below it as above, or,
 * if the range has all 256 steps, one more. */
static void widen(const struct ref *r, double below, double *low, double *high)
{
    const double from = *low;

    if (!ref_says(r, "symmetric", "true", "false"))
        return;
    *low = fmin(*low, -*high * below);
    *high = fmax(*high, -from / below);
}

/* ---- fake_quant ------------------------------------------------------------------------------ */

enum { MIN, MAX, MIN_BIASED, MAX_BIASED, MIN_STEPS, MAX_STEPS };

/* An end of the range after one more step: a moving average, divided by its correction for the
 * start. */
static double follow(struct ref *r, int i, double value)
{
    const double decay = ref_number(r, "decay", 0.999);
    const double biased = decay * r->var[MIN_BIASED + i].v[0] + (1 - decay) * value;
    const double steps = r->var[MIN_STEPS + i].v[0] + 1,
                 size = fabs(r->var[MIN_BIASED + i].v[0]) + fabs(value);

    for (int k = MIN + i; k <= MIN_STEPS + i; k += 2)
        ref_update(r, k);
    r->after[MIN + i].v[0] = biased / (1 - pow(decay, steps));
    r->after[MIN + i].mag[0] = size / (1 - pow(decay, steps));
    r->after[MIN_BIASED + i].v[0] = biased;
    r->after[MIN_BIASED + i].mag[0] = size;
    r->after[MIN_STEPS + i].v[0] = steps;
    r->after[MIN_STEPS + i].mag[0] = steps;
    return r->after[MIN + i].v[0];
}

static void fake_quant(struct ref *r)
{
    double low = 0, high = 0, risk;
    const struct ref_array x = r->in[0];
    const bool again = is_near(0, &x);

    ref_output(r, x.shape);
    if (!again)
        remember(0, &x);
    const double *base = first.v[0];
    for (size_t i = 0; i < x.count; i++)
        low = fmin(low, base[i]), high = fmax(high, base[i]);
    widen(r, 128.0 / 127, &low, &high);
    low = r->train ? follow(r, 0, low) : r->var[MIN].v[0];
    high = r->train ? follow(r, 1, high) : r->var[MAX].v[0];
    const struct stairs s = stairs_of(low, high, false);
    for (size_t i = 0; i < x.count; i++) {
        r->y.v[i] = stair(&s, base[i], &risk) + slope(&s, base[i]) * (x.v[i] - base[i]);
        r->y.mag[i] = fabs(r->y.v[i]) + risk * 0x1p24;
        if (!is_on(r))
            r->y.v[i] = x.v[i], r->y.mag[i] = fabs(x.v[i]);
    }
}

/* The averages of min and max start in the same range: ranges are found by the last part of a
 * variable's name. */
#define RANGE "min@-3..-1 max@1..4 biased@-0.002..0.002 local_step@8..12"
static const struct check_case fake_quant_cases[] = {
    { "fake_quant", "4x3x3x5", true, RANGE },
    { "fake_quant decay=0.9", "2x4x5x8@0..7", true, RANGE },
    { "fake_quant delay=4", "2x3x4x4@-5..1", true, RANGE }, /* this step is the fourth */
    { "fake_quant delay=5", "2x3x4x4", true, RANGE },       /* not quantised yet */
    { "fake_quant min=-6 delay=1000", "7x9", true, RANGE },
    { "fake_quant symmetric=true", "4x3x3x5@-1..3", true, RANGE },
    /* With -5..1 a value is 8.500001 steps, and other runtimes round it the other way. */
    { "fake_quant symmetric=true", "4x3x3x5@-6..1", true, RANGE },
    { "fake_quant symmetric=true", "2x4x5x8@0..7", true, RANGE },
    /* No value is near 0, but the range holds it. */
    { "fake_quant", "3x4x5x6@2..7", true, RANGE },
    { "fake_quant", "3x4x5x6@-7..-2", true, RANGE },
    { "fake_quant", "3x4x5@0..0", true, "min@0..0 max@0..0 biased@0..0 local_step@8..12" },
    { "fake_quant", "3x5x5x4@-4.7..5", false, RANGE },
    { "fake_quant", "9x7", false, "min@-3..-1 max@0..0" },
    { "fake_quant", "5x7", false, "min@0..0 max@0..0" },
    { "fake_quant", "33x65x17", true, RANGE, .large = true },
    { "fake_quant", "8x75x75x33", true, RANGE, .large = true },
    { "fake_quant", "16x112x112x32", true, RANGE, .large = true },
    { "fake_quant", "16x112x112x32", false, RANGE, .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_fake_quant = { fake_quant_cases, fake_quant };

/* ---- quantized_conv2d ------------------------------------------------------------------------ */

/* 3x3 with SAME padding at stride 1, or 1x1; depthwise with a multiplier when filters is 0. */
struct conv {
    int n, h, w, c, k, window, count;
    bool depthwise, flat;
};

static struct conv conv_of(const struct ref *r)
{
    const int *d = r->in[0].shape.dim;
    struct conv v = { .flat = ref_says(r, "flat", "true", "false"), .n = d[0] };

    v.depthwise = ref_number(r, "filters", 32) == 0;
    if (v.flat)
        v.h = v.w = 1, v.c = (int)(r->in[0].count / (size_t)d[0]);
    else
        v.h = d[1], v.w = d[2], v.c = d[3];
    v.k =
        v.depthwise ? v.c * (int)ref_number(r, "multiplier", 1) : (int)ref_number(r, "filters", 32);
    v.window = v.flat ? 1 : (int)ref_number(r, "kernel", 3);
    v.count = v.depthwise ? 1 : v.c;
    return v;
}

static void sums(const struct conv *v, const double *x, const double *w, double *y, double *mag)
{
    const int before = (v->window - 1) / 2;

    for (int i = 0; i < v->n * v->h * v->w * v->k; i++) {
        const int k = i % v->k, ow = i / v->k % v->w, oh = i / v->k / v->w % v->h;
        const int n = i / v->k / v->w / v->h, from = v->depthwise ? k / (v->k / v->c) : 0;

        y[i] = mag[i] = 0;
        for (int a = 0; a < v->window * v->window; a++) {
            const int h = oh - before + a / v->window, u = ow - before + a % v->window;

            for (int c = 0; c < v->count && h >= 0 && h < v->h && u >= 0 && u < v->w; c++) {
                const double term = x[((n * v->h + h) * v->w + u) * v->c + from + c] *
                                    w[(a * v->count + c) * v->k + k];
                y[i] += term, mag[i] += fabs(term);
            }
        }
    }
}

static double activated(const struct ref *r, double z)
{
    if (ref_says(r, "activation", "relu", "none"))
        return fmax(z, 0);
    if (ref_says(r, "activation", "relu6", "none"))
        return fmin(fmax(z, 0), 6);
    if (ref_says(r, "activation", "hard_swish", "none"))
        return z * fmin(fmax(z + 3, 0), 6) / 6;
    return z;
}

/* Indices of variables; -1 for a missing one. */
struct vars {
    int bias, beta, gamma, mean, min;
};

static struct vars vars_of(const struct ref *r)
{
    const bool norm = ref_says(r, "batch_norm", "true", "false");
    struct vars v = { -1, -1, -1, -1, 1 };

    if (!norm && !ref_says(r, "bias", "false", "true"))
        v.bias = v.min++;
    if (norm && !ref_says(r, "center", "false", "true"))
        v.beta = v.min++;
    if (norm && !ref_says(r, "scale", "false", "true"))
        v.gamma = v.min++;
    if (norm)
        v.mean = v.min, v.min += 2;
    return v;
}

/* The weights, folded with batch norm's moving variance and rounded. */
static void round_weights(struct ref *r, const struct conv *v, const struct vars *at, double *w,
                          double *mag)
{
    const size_t count = r->var[0].count;
    const double epsilon = ref_number(r, "epsilon", 1e-3);
    double low = 0, high = 0, risk;
    double *folded = malloc((count + 1) * sizeof *folded),
           *base = malloc((count + 1) * sizeof *base);
    const bool gamma = at->gamma >= 0;
    const bool again = is_near(0, &r->var[0]) && (!gamma || is_near(1, &r->var[at->gamma]));

    if (!again) {
        remember(0, &r->var[0]);
        if (gamma)
            remember(1, &r->var[at->gamma]);
    }
    for (size_t i = 0; i < count; i++) {
        const size_t k = i % (size_t)v->k;
        const double rstd = at->mean < 0 ? 1 : 1 / sqrt(r->var[at->mean + 1].v[k] + epsilon);

        folded[i] = r->var[0].v[i] * (gamma ? r->var[at->gamma].v[k] : 1) * rstd;
        base[i] = first.v[0][i] * (gamma ? first.v[1][k] : 1) * rstd;
        low = fmin(low, base[i]), high = fmax(high, base[i]);
    }
    widen(r, 1, &low, &high);
    if (r->train) {
        for (int i = 0; i < 2; i++) {
            ref_update(r, at->min + i);
            r->after[at->min + i].v[0] = i ? high : low;
            r->after[at->min + i].mag[0] = fmax(-low, high);
        }
    } else {
        low = r->var[at->min].v[0], high = r->var[at->min + 1].v[0];
    }
    const struct stairs s = stairs_of(low, high, true);
    for (size_t i = 0; i < count; i++) {
        w[i] = stair(&s, base[i], &risk) + slope(&s, base[i]) * (folded[i] - base[i]);
        mag[i] = risk;
        if (!is_on(r))
            w[i] = folded[i], mag[i] = 0;
    }
    free(folded);
    free(base);
}

/* Mean and variance of channel k of the sums, and the new moving averages. */
static void statistics(struct ref *r, const struct conv *v, const struct vars *at,
                       const double *plain, int k, double *mean, double *variance)
{
    const int rows = v->n * v->h * v->w;
    const double rate = 1 - ref_number(r, "decay", 0.997);
    double largest = 0;

    *mean = *variance = 0;
    for (int i = 0; i < rows; i++)
        *mean += plain[i * v->k + k] / rows;
    for (int i = 0; i < rows; i++) {
        *variance += pow(plain[i * v->k + k] - *mean, 2) / rows;
        largest = fmax(largest, fabs(plain[i * v->k + k]));
    }
    r->after[at->mean].v[k] -= rate * (r->var[at->mean].v[k] - *mean);
    r->after[at->mean + 1].v[k] -=
        rate * (r->var[at->mean + 1].v[k] - *variance * rows / (rows - 1));
    r->after[at->mean].mag[k] = fabs(r->var[at->mean].v[k]) + largest;
    r->after[at->mean + 1].mag[k] = fabs(r->var[at->mean + 1].v[k]) + 4 * largest * largest;
}

static void quantized_conv2d(struct ref *r)
{
    const struct conv v = conv_of(r);
    const struct vars at = vars_of(r);
    const struct ref_array *x = &r->in[0];
    const size_t all = (size_t)v.n * v.h * v.w * v.k, weights = r->var[0].count;
    const double epsilon = ref_number(r, "epsilon", 1e-3);
    const double freeze = ref_number(r, "freeze", 0);
    const bool frozen =
        ref_says(r, "frozen", "true", "false") || (freeze > 0 && CHECK_STEP + 1 > freeze);
    const bool batch = r->train && at.mean >= 0 && !frozen;
    double *w = malloc((2 * weights + 4 * all + 1) * sizeof *w), *risk = w + weights;
    double *z = risk + weights, *mag = z + all, *plain = mag + all, *other = plain + all, most = 0;

    ref_output(r, v.flat ? PM_SHAPE2(v.n, v.k) : PM_SHAPE4(v.n, v.h, v.w, v.k));
    if (batch)
        ref_update(r, at.mean), ref_update(r, at.mean + 1);
    round_weights(r, &v, &at, w, risk);
    for (size_t i = 0; i < weights; i++)
        most = fmax(most, risk[i]);
    sums(&v, x->v, w, z, mag);
    sums(&v, x->v, r->var[0].v, plain, other);
    for (int k = 0; k < v.k; k++) {
        double mean = at.mean < 0 ? 0 : r->var[at.mean].v[k], scale = 1, center = 0, largest = 0;
        const double gamma = at.gamma < 0 ? 1 : r->var[at.gamma].v[k];
        const double moving = at.mean < 0 ? 1 : sqrt(r->var[at.mean + 1].v[k] + epsilon);
        double variance;

        if (batch) {
            statistics(r, &v, &at, plain, k, &mean, &variance);
            scale = moving / sqrt(variance + epsilon);
        }
        center = mean * gamma / moving;
        for (size_t i = k; i < all; i += v.k)
            largest = fmax(largest, mag[i] + other[i] * fabs(gamma) / moving);
        for (size_t i = k; i < all; i += v.k) {
            const double add = at.beta >= 0   ? r->var[at.beta].v[k]
                               : at.bias >= 0 ? r->var[at.bias].v[k]
                                              : 0;
            const double sum = (z[i] - center) * scale + add;

            r->y.v[i] = activated(r, sum);
            r->y.mag[i] = (largest * scale + fabs(add)) * (1 + fabs(sum) / 3) +
                          most * 0x1p24 * v.window * v.window * v.count * 4;
        }
    }
    free(w);
}

#define NORM "moving_variance@0.3..2 gamma@0.5..1.5 min@-2..-1 max@1..2"
#define EVAL \
    "gamma@0.5..1.5 moving_variance@0.3..2 min@-0.7..-0.6 max@0.5..0.9" /* some are beyond */
static const struct check_case quantized_conv2d_cases[] = {
    /* Before quantisation begins: a convolution with batch norm, and its gradients. */
    { "quantized_conv2d filters=4 bias=false batch_norm=true delay=9", "2x4x5x3", true, NORM },
    { "quantized_conv2d filters=5 bias=false batch_norm=true activation=relu delay=5", "2x3x4x4",
      true, NORM },
    { "quantized_conv2d filters=0 bias=false batch_norm=true activation=relu6 delay=9", "2x4x5x6",
      true, NORM },
    { "quantized_conv2d filters=0 multiplier=2 bias=false batch_norm=true scale=false delay=9",
      "2x4x4x3", true, NORM },
    { "quantized_conv2d filters=4 bias=false batch_norm=true center=false frozen=true delay=9",
      "2x4x4x3", true, NORM },
    { "quantized_conv2d filters=4 bias=false batch_norm=true activation=hard_swish delay=9",
      "2x4x5x3", true, NORM },
    { "quantized_conv2d filters=6 activation=relu delay=9", "2x4x5x3", true, NORM },
    { "quantized_conv2d filters=6 flat=true delay=9", "5x2x3", true, NORM },
    /* Frozen after a step: this one is the fourth. */
    { "quantized_conv2d filters=4 bias=false batch_norm=true freeze=3 delay=9", "2x4x5x3", true,
      NORM },
    { "quantized_conv2d filters=0 bias=false batch_norm=true freeze=3 activation=relu6", "2x4x5x6",
      true, NORM },
    { "quantized_conv2d filters=4 bias=false batch_norm=true freeze=4 delay=9", "2x4x5x3", true,
      NORM },
    { "quantized_conv2d filters=4 bias=false batch_norm=true freeze=1", "2x4x4x3", false, EVAL },
    /* Rounded. */
    { "quantized_conv2d filters=4 bias=false batch_norm=true", "2x4x5x3", true, NORM },
    { "quantized_conv2d filters=5 kernel=1 bias=false batch_norm=true activation=relu delay=4",
      "2x3x4x4", true, NORM },
    { "quantized_conv2d filters=0 bias=false batch_norm=true activation=relu6", "2x4x5x6", true,
      NORM },
    { "quantized_conv2d filters=0 multiplier=2 bias=false batch_norm=true scale=false decay=0.9",
      "2x4x4x3", true, NORM },
    { "quantized_conv2d filters=4 bias=false batch_norm=true frozen=true", "2x4x4x3", true, NORM },
    { "quantized_conv2d filters=4 kernel=1 activation=relu", "2x4x5x3", true, NORM },
    { "quantized_conv2d filters=6 flat=true bias=false batch_norm=true", "7x2x3", true, NORM },
    { "quantized_conv2d filters=6 flat=true", "5x7", true, NORM },
    { "quantized_conv2d filters=6 flat=true symmetric=true", "5x7", true, NORM },
    { "quantized_conv2d filters=4 bias=false batch_norm=true symmetric=true", "2x4x5x3", true,
      NORM },
    /* All weights are 0: nothing of the range is left. */
    { "quantized_conv2d filters=4 kernel=1", "2x4x5x3", true, "weights@0..0" },
    { "quantized_conv2d filters=4 bias=false batch_norm=true", "2x4x5x3", false, EVAL },
    { "quantized_conv2d filters=6 kernel=1 activation=relu6", "2x4x5x3", false,
      "min@-0.7..-0.6 max@0.5..0.9" },
    /* Images are rounded, but the sums have no step: the biases are left. */
    { "quantized_conv2d filters=4 kernel=1 input_step=0.001", "2x4x5x3", false,
      "weights@0..0 min@0..0 max@0..0" },
    { "quantized_conv2d filters=64 bias=false batch_norm=true activation=relu6", "2x56x56x64", true,
      NORM, .large = true },
    { "quantized_conv2d filters=0 bias=false batch_norm=true activation=relu6", "4x56x56x144", true,
      NORM, .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_quantized_conv2d = { quantized_conv2d_cases, quantized_conv2d };
