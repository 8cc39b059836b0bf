/* binary: y = a op b with repeated axes, and the layers subtract, divide, minimum and maximum.
 * Backward: da = dy f_a(a, b), as large as y, then summed over the axes along which a repeats. If a
 * and b are equal, minimum and maximum choose a, and a gets the gradient. */
#include "layers/binary.h"

#include <string.h>

#include "binary.params.h"
#include "onnx/export_nodes.h"
#include "layers/infer.h"
#include "device/pick.h"
#include "layers/reduce.h"
#include "layers/strided.h"
#include "layers/vmath.h"

enum { ADD = PM_BINARY_ADD, SUBTRACT, MULTIPLY, DIVIDE, MINIMUM, MAXIMUM };

/* ---- rows ------------------------------------------------------------------------------ */

PM_INLINE int takes_a(int kind, float a, float b)
{
    return (a != a) | (kind == MINIMUM ? a <= b : a >= b);
}

PM_INLINE float apply(int kind, float a, float b)
{
    switch (kind) {
    case ADD: return a + b;
    case SUBTRACT: return a - b;
    case MULTIPLY: return a * b;
    case DIVIDE: return a / b;
    default: return takes_a(kind, a, b) ? a : b;
    }
}

/* Not defined for sums and differences. */
PM_INLINE float slope_a(int kind, float a, float b)
{
    return kind == MULTIPLY ? b : kind == DIVIDE ? 1 / b : takes_a(kind, a, b) ? 1 : 0;
}

PM_INLINE float slope_b(int kind, float a, float b)
{
    return kind == MULTIPLY ? a : kind == DIVIDE ? -(a / b) / b : takes_a(kind, a, b) ? 0 : 1;
}

#define KIND_SWITCH(kind, CALL)                                                                    \
    switch (kind) {                                                                                \
    case ADD: CALL(ADD); break;                                                                    \
    case SUBTRACT: CALL(SUBTRACT); break;                                                          \
    case MULTIPLY: CALL(MULTIPLY); break;                                                          \
    case DIVIDE: CALL(DIVIDE); break;                                                              \
    case MINIMUM: CALL(MINIMUM); break;                                                            \
    default: CALL(MAXIMUM); break;                                                                 \
    }

/* Computes a line of y. The usual strides are constants. */
PM_INLINE void fwd_line(int kind, const float *a, size_t sa, const float *b, size_t sb, float *y,
                        size_t n)
{
    if (sa == 1 && sb == 1) {
        PM_SIMD
        for (size_t i = 0; i < n; i++)
            y[i] = apply(kind, a[i], b[i]);
    } else {
        PM_SIMD
        for (size_t i = 0; i < n; i++)
            y[i] = apply(kind, a[i * sa], b[i * sb]);
    }
}

PM_INLINE void bwd_line(int kind, const float *a, size_t sa, const float *b, size_t sb,
                        const float *dy, float *da, float *db, size_t n)
{
    if (da) {
        PM_SIMD
        for (size_t i = 0; i < n; i++)
            da[i] = dy[i] * slope_a(kind, a[i * sa], b[i * sb]);
    }
    if (db) {
        PM_SIMD
        for (size_t i = 0; i < n; i++)
            db[i] = dy[i] * slope_b(kind, a[i * sa], b[i * sb]);
    }
}

PM_CLONES static void fwd_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct binary_params *p = args->params;

    for (size_t n; begin < end; begin += n) {
        const float *a = (const float *)args->buf[0] + pm_axes_place(p->d, p->a, begin);
        const float *b = (const float *)args->buf[1] + pm_axes_place(p->d, p->b, begin);
        float *y = (float *)args->buf[2] + begin;

        n = pm_axes_run(p->d, begin, end);
#define CALL(kind) fwd_line(kind, a, (size_t)p->a[5], b, (size_t)p->b[5], y, n)
        KIND_SWITCH(p->kind, CALL)
#undef CALL
    }
}

PM_CLONES static void bwd_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct binary_params *p = args->params;
    float *da = args->buf[3], *db = args->buf[4];

    for (size_t n; begin < end; begin += n) {
        const float *a = (const float *)args->buf[0] + pm_axes_place(p->d, p->a, begin);
        const float *b = (const float *)args->buf[1] + pm_axes_place(p->d, p->b, begin);
        const float *dy = (const float *)args->buf[2] + begin;

        n = pm_axes_run(p->d, begin, end);
#define CALL(kind)                                                                                 \
        bwd_line(kind, a, (size_t)p->a[5], b, (size_t)p->b[5], dy, da ? da + begin : NULL,         \
                 db ? db + begin : NULL, n)
        KIND_SWITCH(p->kind, CALL)
#undef CALL
    }
}

static bool four(const struct binary_params *p)
{
    return pm_axes_four(p->d, p->a) && pm_axes_four(p->d, p->b);
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct binary_params *p = params;

    (void)caps;
    if (!pick_four("binary_fwd4", "binary_fwd", four(p), count, (uint32_t)p->kind, level, out))
        return false;
    out->d[0].spec[4] = pm_axes_rank(p->d);
    out->d[0].specs = 5;
    return true;
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct binary_params *p = params;

    (void)caps;
    if (!pick_four("binary_bwd4", "binary_bwd", four(p), count, (uint32_t)p->kind, level, out))
        return false;
    out->d[0].spec[4] = pm_axes_rank(p->d);
    out->d[0].specs = 5;
    return true;
}

static const struct pm_kernel fwd = {
    .name = "binary_fwd", .bufs = "r:a r:b w:y", .params_size = sizeof(struct binary_params),
    .cpu = fwd_cpu, .pick = fwd_pick,
};
static const struct pm_kernel bwd = {
    .name = "binary_bwd", .bufs = "r:a r:b r:dy w?:da w?:db",
    .params_size = sizeof(struct binary_params), .cpu = bwd_cpu, .pick = bwd_pick,
};

/* ---- calls ----------------------------------------------------------------------------- */

/* Returns input i's shape with leading ones, so that it has as many axes as the output. */
static struct pm_shape aligned(const struct pm_node *n, int i)
{
    const struct pm_shape x = n->in[i]->out_shape;
    struct pm_shape s = { .rank = n->out_shape.rank };

    for (int k = 0; k < s.rank; k++)
        s.dim[k] = k < s.rank - x.rank ? 1 : x.dim[k - (s.rank - x.rank)];
    return s;
}

int pm_binary_infer(struct pm_node *n)
{
    const struct pm_shape a = n->in[0]->out_shape, b = n->in[1]->out_shape;
    char first[64], second[64];

    n->out_shape.rank = a.rank > b.rank ? a.rank : b.rank;
    for (int i = 1; i <= n->out_shape.rank; i++) {
        const int da = i <= a.rank ? a.dim[a.rank - i] : 1,
                  db = i <= b.rank ? b.dim[b.rank - i] : 1;

        if (da != db && da != 1 && db != 1)
            return pm_fail(PM_ECONFIG,
                           "%s: the inputs of %s have shapes %s and %s; along each axis the sizes "
                           "must be equal, or one of them 1",
                           n->name, n->layer->name, pm_shape_text(a, first),
                           pm_shape_text(b, second));
        n->out_shape.dim[n->out_shape.rank - i] = da > db ? da : db;
    }
    n->out_type = PM_F32;
    return pm_need_floats(n, 0, 1);
}

static struct binary_params params_of(const struct pm_node *n, enum pm_binary kind)
{
    struct binary_params p = { .count = (int)pm_shape_count(n->out_shape), .kind = (int)kind };
    int a[PM_MAX_RANK], b[PM_MAX_RANK];
    struct pm_axes axes;

    pm_axes_strides(aligned(n, 0), a);
    pm_axes_strides(aligned(n, 1), b);
    axes = pm_axes_make(n->out_shape.rank, n->out_shape.dim, a, b);
    memcpy(p.d, axes.size, sizeof p.d);
    memcpy(p.a, axes.a, sizeof p.a);
    memcpy(p.b, axes.b, sizeof p.b);
    return p;
}

void pm_binary_forward(struct pm_node *n, struct pm_calls *c, enum pm_binary kind)
{
    const struct binary_params p = params_of(n, kind);

    pm_call(c, &fwd, (size_t)p.count, &p, PM_BUFS(n->xs[0], n->xs[1], n->y));
}

/* Whether input i repeats along an axis. */
static bool repeats(const struct pm_node *n, int i)
{
    return pm_count(n->xs[i]) != pm_shape_count(n->out_shape);
}

/* Backward of sums and differences: the gradient is dy or -dy. */
static void backward_of_sum(struct pm_node *n, struct pm_calls *c, int i, float sign)
{
    if (!pm_has(n->dxs[i]))
        return;
    if (repeats(n, i)) {
        pm_reduce_sum(c, pm_view(n->dy, n->out_shape), aligned(n, i), sign, n->dxs[i]);
    } else if (sign > 0) {
        n->dxs[i] = pm_view(n->dy, n->xs[i].shape);
    } else {
        const int count = (int)pm_count(n->dy), one = 1;
        const struct pm_axes axes = pm_axes_make(1, &count, &one, NULL);

        pm_strided_copy(c, &axes, sign, n->dy, n->dxs[i]);
    }
}

void pm_binary_backward(struct pm_node *n, struct pm_calls *c, enum pm_binary kind)
{
    const struct binary_params p = params_of(n, kind);
    struct pm_tensor d[2]; /* as large as y */

    if (kind == PM_BINARY_ADD || kind == PM_BINARY_SUBTRACT) {
        backward_of_sum(n, c, 0, 1);
        backward_of_sum(n, c, 1, kind == PM_BINARY_ADD ? 1 : -1);
        return;
    }
    for (int i = 0; i < 2; i++) {
        d[i] = n->dxs[i];
        if (pm_has(d[i]) && repeats(n, i))
            d[i] = pm_temp(c, n->out_shape, PM_F32);
    }
    if (pm_has(d[0]) || pm_has(d[1]))
        pm_call(c, &bwd, (size_t)p.count, &p, PM_BUFS(n->xs[0], n->xs[1], n->dy, d[0], d[1]));
    for (int i = 0; i < 2; i++)
        if (pm_has(d[i]) && repeats(n, i))
            pm_reduce_sum(c, d[i], aligned(n, i), 1, n->dxs[i]);
}

const char *pm_binary_export(const struct pm_node *n, struct pm_export *g, int i)
{
    const char *x = pm_export_x(g, n, i);

    if (n->in[i]->out_shape.rank == n->out_shape.rank)
        return x;
    return pm_export_reshape(g, x, n->in[i]->out_shape, aligned(n, i));
}

/* ---- layers ---------------------------------------------------------------------------- */

static const struct pm_opt no_opts[] = { { 0 } };

#define BINARY(id, kind, op, text)                                                            \
    static void id##_forward(struct pm_node *n, struct pm_calls *c)                           \
    {                                                                                         \
        pm_binary_forward(n, c, kind);                                                        \
    }                                                                                         \
    static void id##_backward(struct pm_node *n, struct pm_calls *c)                          \
    {                                                                                         \
        pm_binary_backward(n, c, kind);                                                       \
    }                                                                                         \
    static const char *id##_onnx(const struct pm_node *n, struct pm_export *g)                \
    {                                                                                         \
        return pm_export_op(g, op,                                                            \
                            PM_VALUES(pm_binary_export(n, g, 0), pm_binary_export(n, g, 1))); \
    }                                                                                         \
    const struct pm_layer pm_layer_##id = {                                                   \
        .name = #id,                                                                          \
        .help = text,                                                                         \
        .opts = no_opts,                                                                      \
        .cfg_size = 4,                                                                        \
        .min_inputs = 2,                                                                      \
        .max_inputs = 2,                                                                      \
        .infer = pm_binary_infer,                                                             \
        .forward = id##_forward,                                                              \
        .backward = id##_backward,                                                            \
        .onnx = id##_onnx,                                                                    \
    }

BINARY(subtract, PM_BINARY_SUBTRACT, "Sub", "difference of two inputs; axes of size 1 repeat");
BINARY(divide, PM_BINARY_DIVIDE, "Div", "quotient of two inputs; axes of size 1 repeat");
BINARY(minimum, PM_BINARY_MINIMUM, "Min", "smaller of two inputs; axes of size 1 repeat");
BINARY(maximum, PM_BINARY_MAXIMUM, "Max", "larger of two inputs; axes of size 1 repeat");
