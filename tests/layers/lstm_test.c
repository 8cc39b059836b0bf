/* lstm by its definition, one number at a time, in double precision. */
#include "number_ref.h"

enum { X, LENGTHS };
enum { KERNEL, BIAS };

/* The sum of gate `gate` of unit k. x: the step's input, h: the state before. */
static struct number gate_of(const struct ref *r, int gate, int k, const double *x,
                             const struct number *h)
{
    const struct pm_shape s = r->in[X].shape;
    const int c = s.dim[s.rank - 1], units = r->var[BIAS].shape.dim[0] / 4;
    const double *w = r->var[KERNEL].v + gate * units + k;
    struct number z = exact(r->var[BIAS].v[gate * units + k]);

    if (gate == 2)
        z = plus(z, exact(ref_number(r, "forget_bias", 1)));
    for (int i = 0; i < c; i++, w += 4 * units)
        z = plus(z, times(exact(x[i]), exact(*w)));
    for (int i = 0; i < units; i++, w += 4 * units)
        z = plus(z, times(h[i], exact(*w)));
    return z;
}

static void one_step(const struct ref *r, const double *x, int units, struct number *h,
                     struct number *cell)
{
    struct number next[32];

    for (int k = 0; k < units; k++) {
        const struct number i = sigmoid(gate_of(r, 0, k, x, h));
        const struct number j = tangent(gate_of(r, 1, k, x, h));
        const struct number f = sigmoid(gate_of(r, 2, k, x, h));
        const struct number o = sigmoid(gate_of(r, 3, k, x, h));

        cell[k] = plus(times(cell[k], f), times(i, j));
        next[k] = times(tangent(cell[k]), o);
    }
    memcpy(h, next, (size_t)units * sizeof *h);
}

static void lstm(struct ref *r)
{
    struct pm_shape s = r->in[X].shape;
    const int n = s.dim[0], t = s.dim[s.rank - 2], c = s.dim[s.rank - 1];
    const int units = (int)ref_number(r, "units", 32);
    const bool back = ref_says(r, "direction", "backward", "forward");

    s.dim[s.rank - 1] = units;
    ref_output(r, s);
    for (int row = 0; row < n; row++) {
        const int steps = r->inputs > LENGTHS ? (int)fmin(r->in[LENGTHS].v[row], t) : t;
        struct number h[32] = { { 0 } }, cell[32] = { { 0 } };

        for (int i = 0; i < steps; i++) {
            const int at = row * t + (back ? steps - 1 - i : i);

            one_step(r, r->in[X].v + at * c, units, h, cell);
            for (int k = 0; k < units; k++) {
                r->y.v[at * units + k] = h[k].v;
                r->y.mag[at * units + k] = h[k].mag;
            }
        }
    }
}

static const struct check_case cases[] = {
    { "lstm units=5", "3x4x6", .train = true },
    { "lstm units=5", "3x4x6" },
    { "lstm units=4", "5x1x3x2", .train = true },
    { "lstm units=5 direction=backward", "3x4x6", .train = true },
    { "lstm units=5", "6x4x3 i32:6@0..4", .train = true },
    { "lstm units=5 direction=backward", "6x1x4x3 i32:6@0..4", .train = true },
    { "lstm units=5 direction=backward", "6x4x3 i32:6@1..4" },
    { "lstm units=3 direction=backward", "4x4x3 i32:4@-1..6", .train = true },
    { "lstm units=3 forget_bias=-0.5", "4x1x3", .train = true },  /* one step */
    { "lstm units=1", "1x5x1", .train = true },
    { "lstm units=3", "2x30x2", .train = true },                  /* long texts */
    { "lstm units=3 direction=backward", "3x1x30x2 i32:3@25..30", .train = true },
    { "lstm units=7 forget_bias=0 direction=backward", "1x2x9 i32:1@1..1", .train = true },
    { "lstm units=70", "5x3x64", .train = true, .large = true },
    { "lstm units=256", "32x3x512", .train = true, .large = true },
    { "lstm units=130 direction=backward", "66x4x66 i32:66@0..4", .train = true, .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_lstm = { cases, lstm };
