/* detection_cls: the classification losses of detection_loss, for the anchors of one level. x is a
 * score, z its target, p = 1 / (1 + e^-x).
 *
 *     sigmoid       H(x, z) = max(x, 0) - x z + ln(1 + e^-|x|)
 *     softmax       ln(sum of e^(x / s)) - x / s, weighted by the targets, s = logit_scale; or by
 *                   the softmax of targets that are logits, z / s
 *     focal         alpha_z (1 - p_z)^gamma H(x, z), p_z = z p + (1 - z) (1 - p),
 *                   alpha_z = z alpha + (1 - z) (1 - alpha), or 1
 *     bootstrapped  H(x, alpha z + (1 - alpha) p), or with [p > 1/2] instead of p. As in
 *                   TensorFlow the gradient includes that of the target
 *
 * An anchor's loss is the sum over its columns times its weight: the matched box's, that of
 * unmatched anchors, or 0 if the anchor is ignored. With DETECTION_EQUAL the matched box's weight
 * only decides whether the anchor counts: above 0 it becomes 1. The gradient computes the
 * probabilities again instead of keeping them: nothing here is as large as the scores except their
 * gradient, which may take their memory. A match or a class that does not exist gives NaN. */
#include "layers/detection_rows.h"

#include "layers/vmath.h"

enum { NEGATIVE = -1, IGNORED = -2, CHUNK = 128 /* columns computed at a time */ };

/* ---- an anchor's weight and targets ----------------------------------------------------- */

struct row {
    size_t truth; /* row of the truth, if g >= 0 */
    size_t place; /* among the anchors of all examples */
    int g;        /* match */
    float w;      /* weight; NaN: the match or the class is not valid */
};

PM_INLINE struct row row_of(const struct pm_args *a, size_t i)
{
    const struct detection_cls_params *p = a->params;
    const size_t per = (size_t)p->per, image = i / per;
    const int *matches = a->buf[1], *classes = a->buf[2], bg = p->flags & DETECTION_BACKGROUND;
    const float *weights = a->buf[3];
    struct row r = { .place = image * (size_t)p->anchors + (size_t)p->first + i % per };

    r.g = matches[r.place];
    if (r.g < IGNORED || r.g >= p->m) {
        r.w = NAN, r.g = NEGATIVE;
    } else if (r.g < 0) {
        r.w = r.g == NEGATIVE ? p->negative : 0;
    } else {
        r.truth = image * (size_t)p->m + (size_t)r.g;
        r.w = weights[r.truth];
        if (p->flags & DETECTION_EQUAL && r.w > 0)
            r.w = 1;
        if (!p->labels && (classes[r.truth] < 0 || classes[r.truth] >= p->columns - bg))
            r.w = NAN, r.g = NEGATIVE;
    }
    return r;
}

/* Fills the targets of columns first..first+n-1. */
PM_INLINE void targets_of(const struct pm_args *a, const struct row *r, int first, int n, float *z)
{
    const struct detection_cls_params *p = a->params;
    const int bg = p->flags & DETECTION_BACKGROUND, *classes = a->buf[2];
    int hot = bg && !(p->flags & DETECTION_ZEROS) ? 0 : -1;

    memset(z, 0, (size_t)n * sizeof *z);
    if (r->g >= 0 && p->labels) {
        const int before = p->columns - p->labels; /* 1 if the labels lack the background */
        const float *labels = (const float *)a->buf[2] + r->truth * (size_t)p->labels;

        for (int i = 0; i < n; i++)
            z[i] = first + i < before ? 0 : labels[first + i - before];
        return;
    }
    if (r->g >= 0)
        hot = classes[r->truth] + bg;
    if (hot >= first && hot < first + n)
        z[hot - first] = 1;
}

/* ---- the losses of n columns ------------------------------------------------------------ */

struct score { float p, q, entropy, target; };

/* a: p->a */
PM_INLINE struct score score_of(int kind, float a, float x, float z)
{
    const float e = pm_expf(x < 0 ? x : -x), r = 1 / (1 + e);
    struct score s = { .p = (x >= 0 ? 1 : e) * r, .q = (x >= 0 ? e : 1) * r, .target = z };

    if (kind == DETECTION_BOOTSTRAPPED)
        s.target = a * z + (1 - a) * s.p;
    if (kind == DETECTION_BOOTSTRAPPED_HARD)
        s.target = a * z + (1 - a) * (x > 0 ? 1.0f : 0.0f);
    s.entropy = (x < 0 ? 0 : x) - x * s.target + pm_log1pf(e);
    return s;
}

/* Weights of targets 1 and 0. */
struct alpha { float one, zero; };

PM_INLINE struct alpha focal_alpha(const struct detection_cls_params *p)
{
    return p->b < 0 ? (struct alpha){ 1, 1 } : (struct alpha){ p->b, 1 - p->b };
}

PM_INLINE float focal_power(float m, float gamma, bool square)
{
    return square ? m * m : powf(m, gamma);
}

/* Parameters are copied before the loop: the compiler cannot know that y does not change them.
 * Fills the losses y of scores x with targets z. square: gamma is 2, which needs no pow. */
PM_INLINE void score_losses(const struct detection_cls_params *p, int kind, bool square, int n,
                            const float *x, const float *z, float *y)
{
    const struct alpha alpha = focal_alpha(p);
    const float a = p->a;

    PM_SIMD
    for (int i = 0; i < n; i++) {
        const struct score s = score_of(kind, a, x[i], z[i]);

        y[i] = kind != DETECTION_FOCAL
                   ? s.entropy
                   : (z[i] * alpha.one + (1 - z[i]) * alpha.zero) * s.entropy *
                         focal_power(z[i] * s.q + (1 - z[i]) * s.p, a, square);
    }
}

/* Fills the derivatives times w. y may be x. */
PM_INLINE void score_slopes(const struct detection_cls_params *p, int kind, bool square, float w,
                            int n, const float *x, const float *z, float *y)
{
    const struct alpha alpha = focal_alpha(p);
    const float a = p->a;

    PM_SIMD
    for (int i = 0; i < n; i++) {
        const struct score s = score_of(kind, a, x[i], z[i]);
        float slope = s.p - s.target;

        if (kind == DETECTION_BOOTSTRAPPED)
            slope -= x[i] * (1 - a) * s.p * s.q;
        if (kind == DETECTION_FOCAL) {
            const float m = z[i] * s.q + (1 - z[i]) * s.p;
            /* m' / m. If m is 0, so is the numerator. */
            const float ratio = (1 - 2 * z[i]) * s.p * s.q / (m > 0 ? m : 1);

            slope = (z[i] * alpha.one + (1 - z[i]) * alpha.zero) * focal_power(m, a, square) *
                    (a * ratio * s.entropy + slope);
        }
        y[i] = slope * w;
    }
}

/* Calls it with a constant kind, so that its loop has no branches. */
#define BY_KIND(call, ...)                                                                        \
    switch (p->kind) {                                                                            \
    case DETECTION_SIGMOID: call(p, DETECTION_SIGMOID, false, __VA_ARGS__); break;                \
    case DETECTION_BOOTSTRAPPED: call(p, DETECTION_BOOTSTRAPPED, false, __VA_ARGS__); break;      \
    case DETECTION_BOOTSTRAPPED_HARD:                                                             \
        call(p, DETECTION_BOOTSTRAPPED_HARD, false, __VA_ARGS__);                                 \
        break;                                                                                    \
    default:                                                                                      \
        if (p->a == 2) {                                                                          \
            call(p, DETECTION_FOCAL, true, __VA_ARGS__);                                          \
        } else {                                                                                  \
            call(p, DETECTION_FOCAL, false, __VA_ARGS__);                                         \
        }                                                                                         \
    }

/* The logarithm of the sum of exponentials of targets that are logits; else 0. */
PM_INLINE float target_lse(const struct pm_args *a, const struct row *r)
{
    const struct detection_cls_params *p = a->params;
    float z[CHUNK], largest = -INFINITY, sum = 0;

    for (int first = 0, n; p->flags & DETECTION_LOGITS && first < p->columns; first += n) {
        n = p->columns - first < CHUNK ? p->columns - first : CHUNK;
        targets_of(a, r, first, n, z);
        largest = fmaxf(largest, pm_row_max(z, n));
    }
    for (int first = 0, n; p->flags & DETECTION_LOGITS && first < p->columns; first += n) {
        n = p->columns - first < CHUNK ? p->columns - first : CHUNK;
        targets_of(a, r, first, n, z);
        for (int i = 0; i < n; i++)
            sum += pm_expf((z[i] - largest) * p->a);
    }
    return p->flags & DETECTION_LOGITS ? largest * p->a + logf(sum) : 0;
}

/* Fills the targets of the softmax. lse: of target_lse. */
PM_INLINE void softmax_targets(const struct pm_args *a, const struct row *r, float lse, int first,
                               int n, float *z)
{
    const struct detection_cls_params *p = a->params;

    targets_of(a, r, first, n, z);
    for (int i = 0; p->flags & DETECTION_LOGITS && i < n; i++)
        z[i] = pm_expf(z[i] * p->a - lse);
}

PM_INLINE float softmax_loss(const struct pm_args *a, const struct row *r, const float *x,
                             float *lse)
{
    const struct detection_cls_params *p = a->params;
    const float largest = pm_row_max(x, p->columns);
    float e[CHUNK], z[CHUNK], sum = 0, loss = 0;

    for (int first = 0, n; first < p->columns; first += n) {
        n = p->columns - first < CHUNK ? p->columns - first : CHUNK;
        PM_SIMD
        for (int i = 0; i < n; i++)
            e[i] = pm_expf((x[first + i] - largest) * p->a);
        sum += pm_row_sum(e, n);
    }
    const float rest = logf(sum), of_targets = target_lse(a, r);
    for (int first = 0, n; first < p->columns; first += n) {
        n = p->columns - first < CHUNK ? p->columns - first : CHUNK;
        softmax_targets(a, r, of_targets, first, n, z);
        for (int i = 0; i < n; i++)
            e[i] = z[i] * (rest - (x[first + i] - largest) * p->a);
        loss += pm_row_sum(e, n);
    }
    *lse = largest * p->a + rest;
    return loss;
}

/* x may be y. */
PM_INLINE void softmax_slopes(const struct pm_args *a, const struct row *r, float lse, float w,
                              const float *x, float *y)
{
    const struct detection_cls_params *p = a->params;
    const float of_targets = target_lse(a, r);
    float z[CHUNK], sum = 0;

    for (int first = 0, n; first < p->columns; first += n) {
        n = p->columns - first < CHUNK ? p->columns - first : CHUNK;
        softmax_targets(a, r, of_targets, first, n, z);
        sum += pm_row_sum(z, n);
    }
    for (int first = 0, n; first < p->columns; first += n) {
        n = p->columns - first < CHUNK ? p->columns - first : CHUNK;
        softmax_targets(a, r, of_targets, first, n, z);
        PM_SIMD
        for (int i = 0; i < n; i++)
            y[first + i] = (sum * pm_expf(x[first + i] * p->a - lse) - z[i]) * p->a * w;
    }
}

/* ---- rows -------------------------------------------------------------------------------- */

PM_CLONES static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct detection_cls_params *p = a->params;
    float *losses = a->buf[4], *lse = a->buf[5], y[CHUNK], z[CHUNK];

    for (size_t row = begin; row < end; row++) {
        const struct row r = row_of(a, row);
        const float *x = (const float *)a->buf[0] + row * (size_t)p->columns;
        float loss = 0;

        if (p->kind == DETECTION_SOFTMAX)
            loss = softmax_loss(a, &r, x, &lse[row]);
        else
            for (int first = 0, n; r.w != 0 && first < p->columns; first += n) {
                n = p->columns - first < CHUNK ? p->columns - first : CHUNK;
                targets_of(a, &r, first, n, z);
                BY_KIND(score_losses, n, x + first, z, y)
                loss += pm_row_sum(y, n);
            }
        losses[row] = r.w == 0 ? 0 : loss * r.w;
    }
}

PM_CLONES static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct detection_cls_params *p = a->params;
    const float *lse = a->buf[4], *kept = a->buf[5], *factors = a->buf[6];
    const struct pm_step *step = a->buf[7];
    float z[CHUNK];

    for (size_t row = begin; row < end; row++) {
        const struct row r = row_of(a, row);
        const float *x = (const float *)a->buf[0] + row * (size_t)p->columns;
        const float scale = factors[2 * (row / (size_t)p->per) + 1] * step->loss_scale;
        const float w = r.w * (kept ? kept[r.place] : 1);
        float *y = (float *)a->buf[8] + row * (size_t)p->columns;

        if (w == 0)
            for (int i = 0; i < p->columns; i++)
                y[i] = 0 * scale; /* NaN if the step's loss is not finite */
        else if (p->kind == DETECTION_SOFTMAX)
            softmax_slopes(a, &r, lse[row], w * scale, x, y);
        else
            for (int first = 0, n; first < p->columns; first += n) {
                n = p->columns - first < CHUNK ? p->columns - first : CHUNK;
                targets_of(a, &r, first, n, z);
                BY_KIND(score_slopes, w * scale, n, x + first, z, y + first)
            }
    }
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct detection_cls_params *p = params;

    (void)caps;
    return level == 0 &&
           pm_pick_elements("detection_cls_bwd", 64, count * (size_t)p->columns, out);
}

static double flops(const void *params, size_t count)
{
    const struct detection_cls_params *p = params;

    return 30.0 * p->columns * (double)count;
}

static const struct pm_kernel fwd = {
    .name = "detection_cls_fwd",
    .bufs = "r:logits r:matches r:classes r:weights w:losses w?:lse",
    .params_size = sizeof(struct detection_cls_params), .cpu = fwd_cpu, .grain = 16, .flops = flops,
};
static const struct pm_kernel bwd = {
    .name = "detection_cls_bwd",
    .bufs = "r:logits r:matches r:classes r:weights r?:lse r?:kept r:factors r:step w:dlogits",
    .inplace = "dlogits=logits", .params_size = sizeof(struct detection_cls_params),
    .cpu = bwd_cpu, .grain = 16, .pick = bwd_pick, .flops = flops,
};

void pm_detection_cls(struct pm_calls *c, const struct detection_cls_params *p,
                      struct pm_tensor logits, const struct pm_detection_truth *t,
                      struct pm_tensor losses, struct pm_tensor lse)
{
    pm_call(c, &fwd, (size_t)p->rows, p,
            PM_BUFS(logits, t->matches, t->classes, t->weights, losses, lse));
}

void pm_detection_cls_back(struct pm_calls *c, const struct detection_cls_params *p,
                           struct pm_tensor logits, const struct pm_detection_truth *t,
                           struct pm_tensor lse, struct pm_tensor kept, struct pm_tensor factors,
                           struct pm_tensor dlogits)
{
    pm_call(c, &bwd, (size_t)p->rows, p,
            PM_BUFS(logits, t->matches, t->classes, t->weights, lse, kept, factors,
                    pm_step_tensor(c), dlogits));
}
