/* ctc_loss: connectionist temporal classification (Graves et al., 2006): the loss of a text that is
 * read from a sequence without knowing which step shows which symbol.
 *
 *     p = sum of the probabilities of all paths that collapse to the example's symbols
 *     loss = weight * share / n * sum over examples of -ln p              normalize=examples
 *     loss = weight * share / n * sum over examples of -ln p / max(L, 1)  normalize=symbols
 *
 * A path has one class at each step. It collapses by merging equal neighbours and then leaving out
 * blanks. So a symbol that follows itself needs a blank between. n is the number of examples of
 * the whole batch, and share the part of it that this plan's examples are. Inputs:
 *
 *     logits         [n, t, c] or [n, 1, t, c]; the layer applies the softmax
 *     labels         I32 [n, most]   an example's symbols, classes other than the blank; those
 *                                    after its length are not read
 *     label_lengths  I32 [n]         L: 0..most; below 0: the example does not exist and costs 0
 *     lengths        I32 [n]         optional: the steps of each example, 0..t; t without it
 *
 * The blank is the last class (TensorFlow) or that of the option (PyTorch: 0). normalize=symbols is
 * PyTorch's reduction "mean". An example with more symbols than its steps can show has p = 0. Its
 * loss and gradient are 0, as with PyTorch's zero_infinity, and the plan's output NAME/impossible
 * [n] is 1 for it, 0 for others. A symbol or a length that is not valid, a logit that is NaN or
 * infinity, and a p of 0 because of a logit of -infinity make the loss and all gradients NaN, so
 * the step is rejected.
 *
 * The 2 L + 1 states of an example are the symbols with a blank before, between and after them.
 * alpha(t, s) is the probability of all beginnings of paths that are in state s at step t, beta(t,
 * s) that of all ends that follow. Both are computed as logarithms from the ones of the step before
 * or after. At each step the largest is subtracted from all, so that the ones that matter are near
 * 0 and have small rounding errors; the sum of what was subtracted is ln p. The share of a state at
 * a step is alpha beta / sum of alpha beta over the step's states. The gradient of a logit is its
 * softmax minus the shares of its class's states. */
#include <limits.h>

#include "ctc_loss.params.h"
#include "layers/detection_rows.h"
#include "layers/infer.h"
#include "layers/region_loss.h"
#include "layers/vmath.h"

enum { PM_CTC_MOST_SYMBOLS = 511, MOST_STATES = 2 * PM_CTC_MOST_SYMBOLS + 1 };
enum { LOGITS, LABELS, LABEL_LENGTHS, LENGTHS };
#define NAMES "logits, labels, label_lengths and, optionally, lengths"

enum { BY_EXAMPLES, BY_SYMBOLS };
struct ctc_loss_cfg {
    int blank, normalize;
    float weight;
};

static const struct pm_opt opts[] = {
    PM_INT(ctc_loss_cfg, blank, -1, -1, INT_MAX, "class of the blank; -1: the last one"),
    PM_FLOAT(ctc_loss_cfg, weight, 1, 0, 1e6, "weight of the loss"),
    PM_ENUM(ctc_loss_cfg, normalize, BY_EXAMPLES, "examples|symbols",
            "take the mean of the examples' losses, or of these losses divided by the example's "
            "number of symbols"),
    { 0 },
};

/* ---- an example ------------------------------------------------------------------------------ */

#define NEVER (-1e30f) /* the logarithm of 0, after any number of additions */
#define UNREACHED 1.0f /* stands for NEVER in memory, where others are at most 0 */

/* Twins: the functions of the same names in shaders/lib/ctc_loss.glsl. */
struct example {
    const struct ctc_loss_params *p;
    const float *logits, *lse; /* of its first step */
    const int *labels;
    int symbols, steps, states; /* valid, also if the example is not */
    bool absent, invalid;
};

static int within(int v, int high)
{
    return v < 0 ? 0 : v > high ? high : v;
}

/* Buffers 0 to 4 of all kernels are logits, lse, labels, label_lengths and lengths. */
static struct example example_of(const struct pm_args *a, size_t i)
{
    const struct ctc_loss_params *p = a->params;
    const int symbols = ((const int *)a->buf[3])[i];
    const int steps = a->buf[4] ? ((const int *)a->buf[4])[i] : p->t;
    struct example e = {
        .p = p,
        .logits = (const float *)a->buf[0] + i * (size_t)p->t * (size_t)p->c,
        .lse = (const float *)a->buf[1] + i * (size_t)p->t,
        .labels = (const int *)a->buf[2] + i * (size_t)p->most,
        .symbols = within(symbols, p->most),
        .steps = within(steps, p->t),
        .absent = symbols < 0,
        .invalid = symbols > p->most || steps < 0 || steps > p->t,
    };

    e.states = 2 * e.symbols + 1;
    for (int k = 0; k < e.symbols; k++)
        e.invalid |= e.labels[k] < 0 || e.labels[k] >= p->c || e.labels[k] == p->blank;
    return e;
}

static size_t row_states(const struct ctc_loss_params *p)
{
    return 2 * (size_t)p->most + 1;
}

/* Returns the fewest steps that can show the symbols. */
static int steps_needed(const struct example *e)
{
    int needed = e->symbols;

    for (int i = 1; i < e->symbols; i++)
        needed += e->labels[i] == e->labels[i - 1];
    return needed;
}

/* Fills the classes of the states, and whether a path may go from state s - 2 to s: between
 * different symbols. */
static void states_of(const struct example *e, int *class, bool *skip)
{
    for (int s = 0; s < e->states; s++) {
        class[s] = s % 2 ? e->labels[s / 2] : e->p->blank;
        skip[s] = s % 2 && s >= 3 && class[s] != class[s - 2];
    }
}

static float log_prob(const struct example *e, const int *class, int t, int s)
{
    return e->logits[(size_t)t * (size_t)e->p->c + (size_t)class[s]] - e->lse[t];
}

static float log_add(float a, float b, float c)
{
    const float most = a > b ? a > c ? a : c : b > c ? b : c;

    return most + logf(pm_expf(a - most) + pm_expf(b - most) + pm_expf(c - most));
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Items: steps of all examples. */
PM_CLONES static void lse_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const int c = ((const struct ctc_loss_params *)a->params)->c;

    for (size_t row = begin; row < end; row++) {
        const float *x = (const float *)a->buf[0] + row * (size_t)c;
        const float most = pm_row_max(x, c);

        ((float *)a->buf[1])[row] = most + logf(pm_exp_sum(x, c, 1, most));
    }
}

/* Fills the states of step t from those of the step before, and writes them to alpha. Returns what
 * was subtracted from all. */
static float alpha_step(const struct example *e, const int *class, const bool *skip, int t,
                        float *state, float *alpha)
{
    float most = -INFINITY;

    for (int s = e->states; s-- > 0;) {
        if (t == 0)
            state[s] = s < 2 ? log_prob(e, class, 0, s) : NEVER;
        else
            state[s] = log_add(state[s], s > 0 ? state[s - 1] : NEVER,
                               skip[s] ? state[s - 2] : NEVER) + log_prob(e, class, t, s);
        most = state[s] > most || isnan(state[s]) ? state[s] : most;
    }
    for (int s = 0; s < e->states; s++) {
        state[s] -= most;
        alpha[s] = state[s] < 0.5f * NEVER ? UNREACHED : state[s];
    }
    return most;
}

static float loss_of(const struct example *e, float *alpha)
{
    float state[MOST_STATES], total = 0, end;
    int class[MOST_STATES];
    bool skip[MOST_STATES];

    states_of(e, class, skip);
    for (int t = 0; t < e->steps; t++)
        total += alpha_step(e, class, skip, t, state, alpha + (size_t)t * row_states(e->p));
    end = log_add(state[e->states - 1], e->states > 1 ? state[e->states - 2] : NEVER, NEVER);
    return end < 0.5f * NEVER ? NAN : -(total + end);
}

/* Items: examples. Buffer 5 is alpha [n, t, 2 most + 1]. */
static void alpha_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct ctc_loss_params *p = a->params;
    const size_t row = row_states(p), all = (size_t)p->t * row;

    for (size_t i = begin; i < end; i++) {
        const struct example e = example_of(a, i);
        const bool never = !e.absent && !e.invalid && steps_needed(&e) > e.steps;
        const bool counts = !e.absent && !e.invalid && !never && e.steps > 0;
        const float share = p->by_symbols && e.symbols > 1 ? 1 / (float)e.symbols : 1;
        float *alpha = (float *)a->buf[5] + i * all;

        for (size_t k = 0; k < all; k++)
            alpha[k] = UNREACHED;
        ((float *)a->buf[6])[i] = e.invalid ? NAN : counts ? loss_of(&e, alpha) * share : 0;
        ((float *)a->buf[7])[i] = counts ? share : 0;
        ((float *)a->buf[8])[i] = never;
    }
}

/* Fills beta of step t from `next`, which is the one of the step after times its probability. */
static void beta_step(const struct example *e, const bool *skip, bool last, const float *next,
                      float *beta)
{
    for (int s = 0; s < e->states; s++)
        if (last)
            beta[s] = s + 2 >= e->states ? 0 : NEVER;
        else
            beta[s] = log_add(next[s], s + 1 < e->states ? next[s + 1] : NEVER,
                              s + 2 < e->states && skip[s + 2] ? next[s + 2] : NEVER);
}

/* Replaces a step's alpha by the shares of its states. shares may be alpha. */
static void shares_of(const float *alpha, const float *beta, int states, float *shares)
{
    float most = -INFINITY, sum = 0;

    for (int s = 0; s < states; s++) {
        const float v = alpha[s] > 0 ? NEVER : alpha[s] + beta[s];

        most = v > most ? v : most;
    }
    for (int s = 0; s < states; s++) {
        shares[s] = alpha[s] > 0 ? 0 : pm_expf(alpha[s] + beta[s] - most);
        sum += shares[s];
    }
    for (int s = 0; s < states; s++)
        shares[s] /= sum;
}

static void all_shares(const struct example *e, const float *alpha, float *shares)
{
    const size_t row = row_states(e->p);
    float beta[MOST_STATES], next[MOST_STATES];
    int class[MOST_STATES];
    bool skip[MOST_STATES];

    states_of(e, class, skip);
    for (int t = e->steps; t-- > 0;) {
        float most = -INFINITY;

        beta_step(e, skip, t + 1 == e->steps, next, beta);
        shares_of(alpha + (size_t)t * row, beta, e->states, shares + (size_t)t * row);
        for (int s = 0; s < e->states; s++)
            most = beta[s] > most ? beta[s] : most;
        for (int s = 0; s < e->states; s++)
            next[s] = beta[s] - most + log_prob(e, class, t, s);
    }
}

/* Items: examples. */
static void beta_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct ctc_loss_params *p = a->params;
    const size_t row = row_states(p), all = (size_t)p->t * row;

    for (size_t i = begin; i < end; i++) {
        struct example e = example_of(a, i);
        float *shares = (float *)a->buf[7] + i * all;

        e.steps = ((const float *)a->buf[5])[i] > 0 ? e.steps : 0;
        all_shares(&e, (const float *)a->buf[6] + i * all, shares);
        for (size_t k = 0; k < all; k++)
            if (k / row >= (size_t)e.steps || k % row >= (size_t)e.states)
                shares[k] = 0;
    }
}

/* Items: steps of all examples. A factor that is not finite spoils the whole gradient. */
PM_CLONES static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct ctc_loss_params *p = a->params;
    const struct pm_step *step = a->buf[8];

    for (size_t row = begin; row < end; row++) {
        const size_t i = row / (size_t)p->t;
        const struct example e = example_of(a, i);
        const float used = ((const float *)a->buf[6])[i];
        const float f = ((const float *)a->buf[7])[i] * step->loss_scale;
        const float *x = (const float *)a->buf[0] + row * (size_t)p->c;
        const float *shares = (const float *)a->buf[5] + row * row_states(p);
        const float lse = ((const float *)a->buf[1])[row];
        float *dx = (float *)a->buf[9] + row * (size_t)p->c;
        const bool counts = used > 0 && row % (size_t)p->t < (size_t)e.steps;

        PM_SIMD
        for (int k = 0; k < p->c; k++)
            dx[k] = pm_expf(x[k] - lse);
        for (int s = 0; s < e.states && counts; s++)
            dx[s % 2 ? e.labels[s / 2] : p->blank] -= shares[s];
        for (int k = 0; k < p->c; k++)
            dx[k] = (counts ? dx[k] * used : 0) * f;
    }
}

static bool lse_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    (void)caps, (void)params;
    return level == 0 && pm_pick_elements("ctc_loss_lse", 64, 64 * count, out);
}

static bool alpha_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                       struct pm_picks *out)
{
    (void)caps, (void)params;
    return level == 0 && pm_pick_elements("ctc_loss_alpha", 64, 64 * count, out);
}

static bool beta_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                      struct pm_picks *out)
{
    (void)caps, (void)params;
    return level == 0 && pm_pick_elements("ctc_loss_beta", 64, 64 * count, out);
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct ctc_loss_params *p = params;

    (void)caps;
    return level == 0 && pm_pick_elements("ctc_loss_bwd", 64, count * (size_t)p->c, out);
}

static double row_flops(const void *params, size_t count)
{
    const struct ctc_loss_params *p = params;

    return 20.0 * (double)count * p->c;
}

static double state_flops(const void *params, size_t count)
{
    const struct ctc_loss_params *p = params;

    return 80.0 * (double)count * p->t * (double)row_states(p);
}

static const struct pm_kernel lse_row = {
    .name = "ctc_loss_lse", .bufs = "r:logits w:lse",
    .params_size = sizeof(struct ctc_loss_params), .cpu = lse_cpu, .grain = 16, .pick = lse_pick,
    .flops = row_flops,
};
static const struct pm_kernel alpha_row = {
    .name = "ctc_loss_alpha",
    .bufs = "r:logits r:lse r:labels r:label_lengths r?:lengths w:alpha w:losses w:used "
            "w:impossible",
    .params_size = sizeof(struct ctc_loss_params), .cpu = alpha_cpu, .grain = 1,
    .pick = alpha_pick, .flops = state_flops,
};
static const struct pm_kernel beta_row = {
    .name = "ctc_loss_beta",
    .bufs = "r:logits r:lse r:labels r:label_lengths r?:lengths r:used r:alpha w:shares",
    .inplace = "shares=alpha", .params_size = sizeof(struct ctc_loss_params), .cpu = beta_cpu,
    .grain = 1, .pick = beta_pick, .flops = state_flops,
};
static const struct pm_kernel bwd_row = {
    .name = "ctc_loss_bwd",
    .bufs = "r:logits r:lse r:labels r:label_lengths r?:lengths r:shares r:used r:factors r:step "
            "w:dlogits",
    .inplace = "dlogits=logits", .params_size = sizeof(struct ctc_loss_params), .cpu = bwd_cpu,
    .grain = 16, .pick = bwd_pick, .flops = row_flops,
};

/* ---- checks ---------------------------------------------------------------------------------- */

static const enum pm_type types[] = {
    [LOGITS] = PM_F32, [LABELS] = PM_I32, [LABEL_LENGTHS] = PM_I32, [LENGTHS] = PM_I32,
};

static struct ctc_loss_params params_of(const struct pm_node *n)
{
    const struct ctc_loss_cfg *cfg = n->cfg;
    const struct pm_shape x = n->in[LOGITS]->out_shape, l = n->in[LABELS]->out_shape;
    const int c = x.dim[x.rank - 1];

    return (struct ctc_loss_params){
        .n = x.dim[0], .t = x.dim[x.rank - 2], .c = c, .most = l.dim[1],
        .blank = cfg->blank < 0 ? c - 1 : cfg->blank, .by_symbols = cfg->normalize == BY_SYMBOLS,
    };
}

static int check_logits(const struct pm_node *n)
{
    const struct pm_shape x = n->in[LOGITS]->out_shape;
    const int blank = ((const struct ctc_loss_cfg *)n->cfg)->blank;
    char text[64];

    if (!pm_is_sequence(x))
        return pm_fail(PM_ECONFIG, "%s: logits have shape %s instead of n x t x c or n x 1 x t x "
                       "c. Give c logits for each of t steps", n->name, pm_shape_text(x, text));
    if (x.dim[x.rank - 1] < 2 || blank >= x.dim[x.rank - 1])
        return pm_fail(PM_ECONFIG, "%s: blank: logits of %s have %d classes, which do not have a "
                       "symbol and the blank %d. Set a blank of 0..%d, or -1 for the last class",
                       n->name, pm_shape_text(x, text), x.dim[x.rank - 1], blank,
                       x.dim[x.rank - 1] - 1);
    return PM_OK;
}

static int check_labels(const struct pm_node *n)
{
    const struct pm_shape l = n->in[LABELS]->out_shape;
    const int images = n->in[LOGITS]->out_shape.dim[0];
    char text[64];

    if (l.rank != 2 || l.dim[0] != images || l.dim[1] < 1 || l.dim[1] > PM_CTC_MOST_SYMBOLS)
        return pm_fail(PM_ECONFIG, "%s: labels have shape %s instead of %d x 1..%d. Give each "
                       "example its symbols in a row", n->name, pm_shape_text(l, text), images,
                       PM_CTC_MOST_SYMBOLS);
    for (int i = LABEL_LENGTHS; i < n->inputs; i++)
        if (!pm_input_is_shape(n, i, PM_SHAPE1(images)))
            return pm_fail(PM_ECONFIG, "%s: %s have shape %s instead of %d. Give one length for "
                           "each example", n->name, i == LENGTHS ? "lengths" : "label_lengths",
                           pm_shape_text(n->in[i]->out_shape, text), images);
    return PM_OK;
}

static int infer(struct pm_node *n)
{
    int err = PM_OK;

    PM_TRY(pm_need_types(n, types, -1, NAMES));
    PM_TRY(check_logits(n));
    PM_TRY(check_labels(n));
    n->out_shape = (struct pm_shape){ 0 };
    n->out_type = PM_F32;
out:
    return err;
}

/* ---- calls ----------------------------------------------------------------------------------- */

enum { SAVED_LSE, SAVED_ALPHA, SAVED_USED, SAVED_FACTORS };

static struct pm_tensor given_lengths(const struct pm_node *n)
{
    return n->inputs > LENGTHS ? n->xs[LENGTHS] : PM_NO_TENSOR;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct ctc_loss_params p = params_of(n);
    const struct region_loss_sum_params s = { .images = p.n, .per = 1 };
    const struct pm_shape each = PM_SHAPE1(p.n);
    const struct pm_tensor losses = pm_temp(c, each, PM_F32);
    const struct pm_tensor lse = pm_save(c, n, SAVED_LSE, PM_SHAPE2(p.n, p.t), PM_F32);
    const struct pm_tensor alpha =
        pm_save(c, n, SAVED_ALPHA, PM_SHAPE3(p.n, p.t, (int)row_states(&p)), PM_F32);
    const struct pm_tensor used = pm_save(c, n, SAVED_USED, each, PM_F32);
    const struct pm_tensor factors = pm_save(c, n, SAVED_FACTORS, each, PM_F32);

    pm_call(c, &lse_row, (size_t)p.n * (size_t)p.t, &p, PM_BUFS(n->xs[LOGITS], lse));
    pm_call(c, &alpha_row, (size_t)p.n, &p,
            PM_BUFS(n->xs[LOGITS], lse, n->xs[LABELS], n->xs[LABEL_LENGTHS], given_lengths(n),
                    alpha, losses, used, pm_example_output(n, c, "impossible", p.n)));
    pm_region_loss_sum(c, s, ((const struct ctc_loss_cfg *)n->cfg)->weight, losses, used,
                       pm_loss_scalar(c, n->name), factors);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const struct ctc_loss_params p = params_of(n);
    const struct pm_tensor alpha = n->saved[SAVED_ALPHA];

    if (!pm_has(n->dxs[LOGITS]))
        return;
    const struct pm_tensor shares = pm_temp(c, alpha.shape, PM_F32);

    pm_call(c, &beta_row, (size_t)p.n, &p,
            PM_BUFS(n->xs[LOGITS], n->saved[SAVED_LSE], n->xs[LABELS], n->xs[LABEL_LENGTHS],
                    given_lengths(n), n->saved[SAVED_USED], alpha, shares));
    pm_call(c, &bwd_row, (size_t)p.n * (size_t)p.t, &p,
            PM_BUFS(n->xs[LOGITS], n->saved[SAVED_LSE], n->xs[LABELS], n->xs[LABEL_LENGTHS],
                    given_lengths(n), shares, n->saved[SAVED_USED], n->saved[SAVED_FACTORS],
                    pm_step_tensor(c), n->dxs[LOGITS]));
}

const struct pm_layer pm_layer_ctc_loss = {
    .name = "ctc_loss",
    .help = "loss of a sequence's text (CTC): inputs " NAMES,
    .opts = opts,
    .cfg_size = sizeof(struct ctc_loss_cfg),
    .min_inputs = LENGTHS,
    .max_inputs = LENGTHS + 1,
    .loss = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};
