/* ctc_loss by its definition, in double precision: the probability of a text is that of its paths,
 * step by step, with the probabilities themselves instead of their logarithms. */
#include "check.h"

enum { LOGITS, LABELS, LABEL_LENGTHS, LENGTHS, MOST_STATES = 64 };

/* The softmax of the logits of a row. */
static void probabilities(const double *x, int c, double *out)
{
    double most = x[0], sum = 0;

    for (int k = 1; k < c; k++)
        most = fmax(most, x[k]);
    for (int k = 0; k < c; k++)
        sum += out[k] = exp(x[k] - most);
    for (int k = 0; k < c; k++)
        out[k] /= sum;
}

/* One step: the probability of each state from those of the step before. */
static void advance(const int *class, int states, const double *row, double *state)
{
    for (int s = states; s-- > 0;) {
        double v = state[s] + (s > 0 ? state[s - 1] : 0);

        if (s > 1 && s % 2 == 1 && class[s] != class[s - 2])
            v += state[s - 2];
        state[s] = v * row[class[s]];
    }
}

/* The loss of an example. *mag: the size of what is added: at each step a logit, the logarithm of a
 * sum, and the largest state. */
static double loss_of(const double *x, int t, int c, int blank, const double *labels, int symbols,
                      double *mag)
{
    double state[MOST_STATES] = { 1 }, row[64];
    int class[MOST_STATES];
    const int states = 2 * symbols + 1;

    for (int s = 0; s < states; s++)
        class[s] = s % 2 ? (int)labels[s / 2] : blank;
    for (int i = 0; i < t; i++, x += c) {
        double size = 2;

        probabilities(x, c, row);
        for (int k = 0; k < c; k++)
            size = fmax(size, 2 - log(row[k]) + fabs(x[k]));
        *mag += 2 * size;
        if (i == 0) { /* a path begins with the first blank or the first symbol */
            state[0] = row[blank];
            if (states > 1)
                state[1] = row[class[1]];
        } else {
            advance(class, states, row, state);
        }
    }
    const double p = t == 0 ? symbols == 0 : state[states - 1] + (states > 1 ? state[states - 2]
                                                                             : 0);

    return p > 0 ? -log(p) : 0;
}

static void ctc_loss(struct ref *r)
{
    const struct pm_shape x = r->in[LOGITS].shape;
    const int n = x.dim[0], t = x.dim[x.rank - 2], c = x.dim[x.rank - 1];
    const int most = r->in[LABELS].shape.dim[1], given = (int)ref_number(r, "blank", -1);
    const bool by_symbols = ref_says(r, "normalize", "symbols", "examples");

    ref_output(r, (struct pm_shape){ 0 });
    for (int i = 0; i < n; i++) {
        const int symbols = (int)r->in[LABEL_LENGTHS].v[i];
        const int steps = r->inputs > LENGTHS ? (int)r->in[LENGTHS].v[i] : t;
        const double f = ref_number(r, "weight", 1) / n / (by_symbols ? fmax(symbols, 1) : 1);
        double mag = 0;

        if (symbols < 0)
            continue;
        r->y.v[0] += f * loss_of(r->in[LOGITS].v + (size_t)i * t * c, steps, c,
                                 given < 0 ? c - 1 : given, r->in[LABELS].v + i * most, symbols,
                                 &mag);
        r->y.mag[0] += f * mag;
    }
}

/* ---- cases ----------------------------------------------------------------------------------- */

#define GRADIENT .train = true, .no_gradient = ~1u

static const struct check_case cases[] = {
    { "ctc_loss", "6x12x5 i32:6x4@0..3 i32:6@0..4", GRADIENT }, /* some symbols repeat */
    { "ctc_loss", "6x1x12x5 i32:6x4@0..3 i32:6@1..4 i32:6@8..12", GRADIENT },
    { "ctc_loss blank=0", "6x12x5 i32:6x4@1..4 i32:6@0..4", GRADIENT },
    { "ctc_loss blank=2 weight=3", "4x9x7 i32:4x3@3..6 i32:4@0..3 i32:4@7..9", GRADIENT },
    { "ctc_loss normalize=symbols", "6x12x5 i32:6x4@0..3 i32:6@0..4", GRADIENT },
    { "ctc_loss", "5x10x4 i32:5x5@0..0 i32:5@1..5", GRADIENT },   /* all symbols equal */
    { "ctc_loss", "5x6x4 i32:5x6@0..2 i32:5@6..6", GRADIENT },    /* full; most are impossible */
    { "ctc_loss", "3x7x4 i32:3x7@0..2 i32:3@4..7 i32:3@0..7", GRADIENT },
    { "ctc_loss", "3x5x4 i32:3x4@0..2 i32:3@0..0", GRADIENT },    /* no symbols */
    { "ctc_loss", "4x5x4 i32:4x4@0..2 i32:4@-1..1", GRADIENT },   /* examples that are absent */
    { "ctc_loss", "3x5x4 i32:3x4@0..2 i32:3@0..2 i32:3@0..1", GRADIENT }, /* no or one step */
    { "ctc_loss", "2x1x3 i32:2x1@0..1 i32:2@1..1", GRADIENT },
    { "ctc_loss", "1x2x2 i32:1x1@0..0 i32:1@1..1", GRADIENT },
    { "ctc_loss weight=0", "3x5x4 i32:3x4@0..2 i32:3@0..2", GRADIENT },
    { "ctc_loss", "3x8x6@-30..30 i32:3x4@0..4 i32:3@1..4", GRADIENT }, /* paths with p < e^-200 */
    { "ctc_loss", "70x3x4 i32:70x2@0..2 i32:70@0..2", GRADIENT },
    { "ctc_loss", "2x16x38 i32:2x12@0..36 i32:2@9..12", GRADIENT },
    { "ctc_loss", "32x25x38 i32:32x23@0..36 i32:32@1..23", GRADIENT, .large = true },
    { "ctc_loss", "2x25x97 i32:2x90@0..95 i32:2@1..20", GRADIENT, .large = true },
    { "ctc_loss blank=0", "256x25x97 i32:256x30@1..96 i32:256@1..25 i32:256@20..25", GRADIENT,
      .large = true },
    { 0 },
};
/* The error that one step adds to alpha or beta, in the units of check.h. On the CPU: 4 for the
 * exponentials, 2 for adding three, 2 for the logarithm, and 12 for adding, normalising and
 * subtracting numbers of up to 8, half a unit in the last place each. A share depends on up to 16
 * steps of alpha or beta each: 2 x 16 x 20. A device's exponentials may be off by
 * 3 + 2 |x| units in the last place, 8 here, and its logarithm by 2^-21, 8 as well: 28. Compared
 * with the CPU, 25 steps twice: 2 x 25 x (20 + 28). */
const struct pm_layer_test pm_test_ctc_loss = {
    cases, ctc_loss, .grad_ulps = 640, .parity_ulps = 2400, .loss = true,
};
