/* attention_decoder and attention_search by their definitions, one number at a time, in double
 * precision. */
#include "number_ref.h"

enum { MEMORY, LABELS };
enum { KEY_KERNEL, QUERY_KERNEL, V, CELL_KERNEL, CELL_BIAS, DENSE_KERNEL, DENSE_BIAS };
enum { MOST = 40, MOST_BEAMS = 8 };

/* ---- the decoder ----------------------------------------------------------------------------- */

struct sizes { int n, t, c, attention, units, classes; };
struct state { struct number h[MOST], c[MOST]; };

static struct sizes sizes_of(const struct ref *r)
{
    const struct pm_shape s = r->in[MEMORY].shape;

    return (struct sizes){
        .n = s.dim[0], .t = s.dim[s.rank - 2], .c = s.dim[s.rank - 1],
        .attention = r->var[V].shape.dim[0], .units = r->var[CELL_BIAS].shape.dim[0] / 4,
        .classes = r->var[DENSE_BIAS].shape.dim[0],
    };
}

static const double *vector_of(const struct ref *r, const struct sizes *s, int row, int j)
{
    return r->in[MEMORY].v + (row * s->t + j) * s->c;
}

static struct number score_of(const struct ref *r, const struct sizes *s, int row, int j,
                              const struct state *st)
{
    struct number e = { 0, 0 };

    for (int k = 0; k < s->attention; k++) {
        struct number z = { 0, 0 };

        for (int i = 0; i < s->c; i++)
            z = plus(z, times(exact(vector_of(r, s, row, j)[i]),
                              exact(r->var[KEY_KERNEL].v[i * s->attention + k])));
        for (int i = 0; i < s->units; i++)
            z = plus(z, times(st->h[i], exact(r->var[QUERY_KERNEL].v[i * s->attention + k])));
        e = plus(e, times(exact(r->var[V].v[k]), tangent(z)));
    }
    return e;
}

/* Returns the first j with the largest weight. */
static int weights_of(const struct ref *r, const struct sizes *s, int row, const struct state *st,
                      struct number *alpha)
{
    double most = -INFINITY, sum = 0, mag = 0;
    int best = 0;

    for (int j = 0; j < s->t; j++) {
        alpha[j] = score_of(r, s, row, j, st);
        best = alpha[j].v > most ? j : best;
        most = fmax(most, alpha[j].v);
        mag = fmax(mag, alpha[j].mag);
    }
    for (int j = 0; j < s->t; j++)
        sum += exp(alpha[j].v - most);
    for (int j = 0; j < s->t; j++) {
        const double a = exp(alpha[j].v - most) / sum;

        alpha[j] = (struct number){ a, a * (1 + alpha[j].mag + mag) };
    }
    return best;
}

static struct number gate_of(const struct ref *r, const struct sizes *s, int gate, int k,
                             int symbol, const struct number *context, const struct state *st)
{
    const double *w = r->var[CELL_KERNEL].v + gate * s->units + k;
    struct number z = exact(r->var[CELL_BIAS].v[gate * s->units + k]);

    if (gate == 2)
        z = plus(z, exact(ref_number(r, "forget_bias", 1)));
    for (int i = 0; i < s->classes; i++, w += 4 * s->units)
        if (i == symbol)
            z = plus(z, exact(*w));
    for (int i = 0; i < s->c; i++, w += 4 * s->units)
        z = plus(z, times(context[i], exact(*w)));
    for (int i = 0; i < s->units; i++, w += 4 * s->units)
        z = plus(z, times(st->h[i], exact(*w)));
    return z;
}

/* One step of an example; returns the column of the largest weight. */
static int one_step(const struct ref *r, const struct sizes *s, int row, int symbol,
                    struct state *st)
{
    struct number alpha[MOST], context[MOST] = { { 0 } }, next[MOST];
    const int column = weights_of(r, s, row, st, alpha);

    for (int j = 0; j < s->t; j++)
        for (int i = 0; i < s->c; i++)
            context[i] = plus(context[i], times(alpha[j], exact(vector_of(r, s, row, j)[i])));
    for (int k = 0; k < s->units; k++) {
        const struct number i = sigmoid(gate_of(r, s, 0, k, symbol, context, st));
        const struct number j = tangent(gate_of(r, s, 1, k, symbol, context, st));
        const struct number f = sigmoid(gate_of(r, s, 2, k, symbol, context, st));
        const struct number o = sigmoid(gate_of(r, s, 3, k, symbol, context, st));

        st->c[k] = plus(times(st->c[k], f), times(i, j));
        next[k] = times(tangent(st->c[k]), o);
    }
    memcpy(st->h, next, (size_t)s->units * sizeof *next);
    return column;
}

static struct number logit_of(const struct ref *r, const struct sizes *s, const struct state *st,
                              int k)
{
    struct number z = exact(r->var[DENSE_BIAS].v[k]);

    for (int i = 0; i < s->units; i++)
        z = plus(z, times(st->h[i], exact(r->var[DENSE_KERNEL].v[i * s->classes + k])));
    return z;
}

static void decoder(struct ref *r)
{
    const struct sizes s = sizes_of(r);
    const int steps = r->in[LABELS].shape.dim[1];

    ref_output(r, PM_SHAPE3(s.n, steps, s.classes));
    for (int row = 0; row < s.n; row++) {
        struct state st = { { { 0 } }, { { 0 } } };

        for (int at = 0; at < steps; at++) {
            const double *label = r->in[LABELS].v + row * steps + at;

            if (*label < 0)
                st = (struct state){ { { 0 } }, { { 0 } } };
            else
                one_step(r, &s, row, at > 0 ? (int)label[-1] : 0, &st);
            for (int k = 0; k < s.classes; k++) {
                const struct number z = logit_of(r, &s, &st, k);

                r->y.v[(row * steps + at) * s.classes + k] = z.v;
                r->y.mag[(row * steps + at) * s.classes + k] = z.mag;
            }
        }
    }
}

/* ---- the search ------------------------------------------------------------------------------ */

struct beam {
    struct state st;
    struct number total;
    int symbol;
    bool none; /* there is no such beam */
};
struct choice { int beam, class; struct number total; };

/* All continuations of the beams; returns their number. */
static int list_choices(const struct sizes *s, const struct beam *beams, int width,
                        struct number logits[][MOST], struct choice *out)
{
    int count = 0;

    for (int w = 0; w < width; w++) {
        double sum = 0, mag = 0;

        for (int k = 0; k < s->classes; k++) {
            sum += exp(logits[w][k].v);
            mag = fmax(mag, logits[w][k].mag);
        }
        for (int k = 1; k < s->classes && !beams[w].none; k++) {
            struct number total = { beams[w].total.v + logits[w][k].v - log(sum),
                                    beams[w].total.mag + logits[w][k].mag + mag +
                                        fabs(log(sum)) };

            if (beams[w].symbol == 1 && k != 1)
                continue;
            out[count++] = (struct choice){ w, k, beams[w].symbol == 1 ? beams[w].total : total };
        }
    }
    return count;
}

/* Moves the best choice to the front; those of lower beams and classes come first. */
static void bring_best(struct choice *list, int count)
{
    int best = 0;
    struct choice kept;

    for (int i = 1; i < count; i++)
        if (list[i].total.v > list[best].total.v)
            best = i;
    kept = list[best];
    memmove(list + 1, list, (size_t)best * sizeof *list);
    list[0] = kept;
}

/* Outputs 1 to 4 of step `at` of a row; see attention_decoder.c. */
static void put(struct ref *r, size_t place, int output, struct number v)
{
    const size_t each = r->out[1].dim[0] * (size_t)r->out[1].dim[1] * (size_t)r->out[1].dim[2];
    const size_t begin = each * (size_t)r->out[0].dim[3] + (size_t)(output - 1) * each;

    r->y.v[begin + place] = v.v;
    r->y.mag[begin + place] = v.mag;
}

static void search_step(struct ref *r, const struct sizes *s, int row, int at, struct beam *beams,
                        int width, int steps)
{
    static struct choice list[MOST_BEAMS * MOST];
    struct number logits[MOST_BEAMS][MOST];
    struct beam old[MOST_BEAMS];
    int count;

    for (int w = 0; w < width; w++) {
        const size_t place = (size_t)((row * width + w) * steps + at);

        put(r, place, 3, (struct number){ one_step(r, s, row, beams[w].symbol, &beams[w].st), 0 });
        for (int k = 0; k < s->classes; k++) {
            logits[w][k] = logit_of(r, s, &beams[w].st, k);
            r->y.v[place * (size_t)s->classes + (size_t)k] = logits[w][k].v;
            r->y.mag[place * (size_t)s->classes + (size_t)k] = logits[w][k].mag;
        }
    }
    count = list_choices(s, beams, width, logits, list);
    memcpy(old, beams, sizeof old);
    for (int w = 0; w < width; w++) {
        const size_t place = (size_t)((row * width + w) * steps + at);
        const bool none = w >= count;
        struct choice best = { 0, 1, { (double)-1e30f, 0 } };

        if (!none) {
            bring_best(list + w, count - w);
            best = list[w];
        }
        beams[w] = old[best.beam];
        beams[w].symbol = best.class;
        beams[w].total = best.total;
        beams[w].none = none;
        put(r, place, 1, (struct number){ best.class, 0 });
        put(r, place, 2, (struct number){ best.beam, 0 });
        put(r, place, 4, best.total);
    }
}

static void search(struct ref *r)
{
    const struct sizes s = sizes_of(r);
    const int width = (int)ref_number(r, "beam_width", 1), steps = (int)ref_number(r, "steps", 30);
    const struct pm_shape each = PM_SHAPE3(s.n, width, steps);

    ref_outputs(r, 5, (struct pm_shape[]){ PM_SHAPE4(s.n, width, steps, s.classes), each, each,
                                           each, each });
    for (int row = 0; row < s.n; row++) {
        struct beam beams[MOST_BEAMS] = { { .symbol = 0 } };

        for (int w = 1; w < width; w++)
            beams[w].none = true;
        for (int at = 0; at < steps; at++)
            search_step(r, &s, row, at, beams, width, steps);
    }
}

/* ---- cases ----------------------------------------------------------------------------------- */

#define DECODER "attention_decoder classes=6 units=5 attention_units=4"
#define TRAINED .train = true, .no_onnx = true
static const struct check_case decoder_cases[] = {
    { DECODER, "3x4x3 i32:3x5@0..5", TRAINED },
    { DECODER, "3x4x3 i32:3x5@0..5", .no_onnx = true },
    { DECODER, "2x1x4x3 i32:2x5@0..5", TRAINED },
    { DECODER, "4x3x2 i32:4x6@-1..5", TRAINED },    /* padded steps, also between others */
    { DECODER, "3x4x3 i32:3x4@-1..-1", TRAINED },   /* only padded steps */
    { DECODER, "2x4x3 i32:2x1@1..1", TRAINED },     /* one step: an empty text */
    { DECODER, "3x1x2 i32:3x4@1..5", TRAINED },     /* nothing to choose among */
    { DECODER " forget_bias=-0.5", "2x9x2 i32:2x3@1..5", TRAINED },
    { "attention_decoder classes=3 units=1 attention_units=1", "1x2x1 i32:1x2@1..2",
      TRAINED },
    { DECODER, "1x3x2 i32:1x30@2..5", TRAINED,
      .variables = "lstm_cell/kernel@-0.5..0.5" },
    { "attention_decoder classes=38 units=70 attention_units=66", "6x9x65 i32:6x5@-1..37",
      TRAINED, .large = true },
    { "attention_decoder classes=38 units=256 attention_units=130", "9x25x128 i32:9x3@1..37",
      TRAINED, .large = true },
    { 0 },
};
#define SEARCH "attention_search classes=6 units=5 attention_units=4"
static const struct check_case search_cases[] = {
    { SEARCH " steps=5", "3x4x3" },
    { SEARCH " steps=4", "2x1x4x3" },
    { SEARCH " steps=5 beam_width=3", "3x4x3", .no_onnx = true },
    { SEARCH " steps=3 beam_width=8", "2x3x2", .no_onnx = true }, /* more beams than classes */
    { SEARCH " steps=1 beam_width=2", "1x1x2", .no_onnx = true },
    { "attention_search classes=3 units=1 attention_units=1 steps=3 beam_width=2", "1x2x1",
      .no_onnx = true },                                          /* the end, or the letter */
    { "attention_search classes=38 units=70 attention_units=66 steps=4 beam_width=5", "6x9x65",
      .large = true, .no_onnx = true },
    { "attention_search classes=97 units=128 attention_units=256 steps=3", "9x25x256",
      .large = true },
    { 0 },
};
/* A gate's sum in the large cases has up to 384 products of a weight of up to 1 with a context or
 * state of up to 2, of variance 4/9 or less: so a standard deviation of 13.1 or less, and partial
 * sums of that size, while the gate itself is at most 1. Two orders of a sum differ by 64 units of
 * it (check.h), and the slope of a gate is at most 1: 64 x 13.1, rounded up to 840. A score of the
 * attention has up to 256 terms below 1, and a softmax has slopes up to 1/4: less is needed. */
const struct pm_layer_test pm_test_attention_decoder = { decoder_cases, decoder,
                                                         .parity_ulps = 840 };
const struct pm_layer_test pm_test_attention_search = { search_cases, search,
                                                        .parity_ulps = 840 };
