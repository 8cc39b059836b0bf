/* transposed: see transposed.h. The call's work is cut into squares, which a table assigns to
 * weights. */
#include "net/transposed.h"

#include <assert.h>
#include <string.h>

#include "net/calls.h"

#include "transpose_weights.params.h"

/* Larger weights are transposed by the calls that need them: their copies would live from the
 * beginning of the step to their data gradient. */
enum { MOST_BYTES = 12 << 20 };
enum { WORDS = 8, SIDE = TRANSPOSE_SQUARE, GRID_MAX = 65535 };

struct pm_transposed {
    int weights, copy; /* values */
    int taps, c, k;
};

/* ---- the kernel ------------------------------------------------------------------------- */

static int sides(int n)
{
    return (n + SIDE - 1) / SIDE;
}

void pm_transpose_taps(const float *w, int taps, int rows, int columns, float *t)
{
    for (int tap = 0; tap < taps; tap++, w += (size_t)rows * columns, t += (size_t)rows * columns)
        for (int i = 0; i < rows; i += SIDE)
            for (int k = 0; k < columns; k++)
                for (int j = i; j < rows && j < i + SIDE; j++)
                    t[(size_t)k * rows + j] = w[(size_t)j * columns + k];
}

static void copy_square(const uint32_t *entry, uint32_t number, const float *w, float *t)
{
    const int all_c = (int)entry[4], all_k = (int)entry[5];
    const uint32_t across = (uint32_t)sides(all_k), each = across * (uint32_t)sides(all_c);
    const size_t start = (size_t)(number / each) * all_c * all_k;
    const int first_c = (int)(number % each / across) * SIDE;
    const int first_k = (int)(number % each % across) * SIDE;

    w += entry[1] + start;
    t += entry[2] + start;
    for (int k = first_k; k < all_k && k < first_k + SIDE; k++)
        for (int c = first_c; c < all_c && c < first_c + SIDE; c++)
            t[(size_t)k * all_c + c] = w[(size_t)c * all_k + k];
}

static void transpose_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct transpose_weights_params *p = a->params;
    const uint32_t *entry = a->buf[1], *last = entry + (size_t)(p->weights - 1) * WORDS;

    for (size_t i = begin; i < end; i++) {
        while (entry < last && entry[WORDS] <= i)
            entry += WORDS;
        copy_square(entry, (uint32_t)i - entry[0], a->buf[0], a->buf[2]);
    }
}

/* Through shared memory, or by lanes, which CPU drivers prefer. */
static bool pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                 struct pm_picks *out)
{
    const struct transpose_weights_params *p = params;
    const bool on_cpu = pm_class_on_cpu(caps->device_class);
    const uint32_t lanes = caps->subgroup_size < SIDE ? caps->subgroup_size : SIDE;
    const uint32_t squares = (uint32_t)p->squares;

    (void)count;
    if (level > 1)
        return false;
    const bool shared = (level == 0) != on_cpu;
    *out = (struct pm_picks){ .count = 1, .variant = shared ? "shared" : "lanes" };
    out->d[0] = (struct pm_dispatch){
        .shader = shared ? "transpose_weights" : "transpose_weights_lanes",
        .spec = { shared ? SIDE : lanes, shared ? 8 : 1, 1 }, .specs = 3,
        .groups = { squares < GRID_MAX ? squares : GRID_MAX, (squares + GRID_MAX - 1) / GRID_MAX,
                    1 },
    };
    return true;
}

static const struct pm_kernel row = {
    .name = "transpose_weights", .bufs = "r:w r:table w:t",
    .params_size = sizeof(struct transpose_weights_params), .cpu = transpose_cpu, .grain = 16,
    .pick = pick,
};

/* ---- collecting ------------------------------------------------------------------------- */

static bool needs_scratch(const struct pm_calls *c, const struct pm_kernel *k, const void *params,
                          size_t count)
{
    size_t bytes[PM_MAX_BUFS], all = 0;

    if (!c->device) /* a layer by itself */
        return true;
    if (pm_call_scratch(c->device, k, params, count, 0, bytes) < 0)
        return false;
    for (int i = 0; i < PM_MAX_BUFS; i++)
        all += bytes[i];
    return all > 0;
}

struct pm_tensor pm_calls_transposed(struct pm_calls *c, const struct pm_kernel *k,
                                     const void *params, size_t count, struct pm_tensor w,
                                     int taps, int rows, int columns)
{
    const struct pm_value *v = &c->values[w.value];
    const size_t room = (size_t)c->net->var_count;
    struct pm_tensor t;

    if (!c->transposes || v->kind != PM_VALUE_VARIABLE || v->variable < 0 ||
        v->bytes > MOST_BYTES || !needs_scratch(c, k, params, count))
        return PM_NO_TENSOR;
    assert(v->bytes == (size_t)taps * rows * columns * sizeof(float));
    for (int i = 0; i < c->transposed_count; i++) {
        const struct pm_transposed *x = &c->transposed[i];

        if (x->weights == w.value && x->c == rows && x->k == columns)
            return (struct pm_tensor){ .shape = PM_SHAPE3(taps, columns, rows), .type = PM_F32,
                                       .value = x->copy };
    }
    t = pm_temp(c, PM_SHAPE3(taps, columns, rows), PM_F32);
    if (!c->transposed)
        c->transposed = pm_arena_alloc(c->arena, room * sizeof *c->transposed);
    assert((size_t)c->transposed_count < room);
    c->transposed[c->transposed_count++] =
        (struct pm_transposed){ w.value, t.value, taps, rows, columns };
    return t;
}

/* ---- the call --------------------------------------------------------------------------- */

/* Fills the table and counts the squares. */
static void list_weights(const struct pm_calls *c, const size_t *from, const size_t *to,
                         uint32_t *table, struct transpose_weights_params *p)
{
    for (int i = 0; i < c->transposed_count; i++, table += WORDS) {
        const struct pm_transposed *x = &c->transposed[i];

        table[0] = (uint32_t)p->squares;
        table[1] = (uint32_t)(from[i] / sizeof(float));
        table[2] = (uint32_t)(to[i] / sizeof(float));
        table[4] = (uint32_t)x->c;
        table[5] = (uint32_t)x->k;
        p->squares += x->taps * sides(x->c) * sides(x->k);
    }
}

/* Moves the last call to the front of the list. */
static void move_to_front(struct pm_calls *c)
{
    const int last = c->call_count - 1;
    const struct pm_planned_call call = c->calls[last];

    memmove(c->calls + 1, c->calls, (size_t)last * sizeof *c->calls);
    c->calls[0] = call;
    for (int i = 0; i < c->value_count; i++) {
        struct pm_value *v = &c->values[i];

        v->first = v->first < 0 ? -1 : v->first == last ? 0 : v->first + 1;
        v->last = v->last < 0 ? -1 : v->last == last ? 0 : v->last + 1;
    }
    c->lead = 1;
}

void pm_calls_transpose(struct pm_calls *c)
{
    const int count = c->transposed_count;
    struct transpose_weights_params p = { .weights = count };
    int *value = pm_calloc(2 * (size_t)count + 1, sizeof *value);
    size_t *at = pm_calloc(2 * (size_t)count + 1, sizeof *at);
    uint32_t *table = pm_calloc((size_t)count * WORDS + 1, sizeof *table);

    for (int i = 0; i < count; i++) {
        value[i] = c->transposed[i].weights;
        value[count + i] = c->transposed[i].copy;
    }
    if (count > 0) {
        const struct pm_tensor w = pm_calls_variables_span(c, value, count, at);
        const struct pm_tensor t =
            pm_calls_join(c, "transposed weights", value + count, count, at + count);

        list_weights(c, at, at + count, table, &p);
        c->phase = PM_PHASE_BACKWARD;
        c->label = "transposed weights";
        pm_call(c, &row, (size_t)p.squares, &p,
                PM_BUFS(w, pm_calls_constant(c, "weights", table, PM_SHAPE2(count, WORDS), PM_U32),
                        t));
        move_to_front(c);
    }
    pm_free(value);
    pm_free(at);
    pm_free(table);
}
