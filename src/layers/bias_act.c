/* bias_act: the tail of convolutions and products: y = f(z + b), in place if z is not used again.
 * Backward uses y alone, so f is one of PM_ACTIVATIONS_OF_Y: dz = f'(y) dy. Then db = the sum of dz
 * over rows, in chunks of fixed size that are added in order. */
#include <string.h>

#include <pumice/thread.h>

#include "base/vector.h"
#include "bias_grad.params.h"
#include "layers/conv_pick.h"
#include "layers/conv_rows.h"

PM_CLONES static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct bias_act_params *p = a->params;
    const float slope = p->slope, *b = a->buf[1];
    const size_t channels = p->channels;

    while (begin < end) { /* one row, or the rest of one, at a time */
        const size_t c = begin % channels;
        const size_t count = channels - c < end - begin ? channels - c : end - begin;
        const float *x = (const float *)a->buf[0] + begin;
        float *y = (float *)a->buf[2] + begin;

#define WITH_BIAS(kind)                                                                            \
    PM_SIMD                                                                                        \
    for (size_t i = 0; i < count; i++)                                                             \
        y[i] = pm_act(kind, slope, x[i] + b[c + i])
#define WITHOUT_BIAS(kind)                                                                         \
    PM_SIMD                                                                                        \
    for (size_t i = 0; i < count; i++)                                                             \
        y[i] = pm_act(kind, slope, x[i])
        if (b)
            PM_ACT_SWITCH(p->activation, WITH_BIAS)
        else
            PM_ACT_SWITCH(p->activation, WITHOUT_BIAS)
#undef WITH_BIAS
#undef WITHOUT_BIAS
        begin += count;
    }
}

PM_CLONES static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct bias_act_params *p = a->params;
    const float slope = p->slope, *y = a->buf[0], *dy = a->buf[1];
    float *dz = a->buf[2];

#define LOOP(kind)                                                                                 \
    PM_SIMD                                                                                        \
    for (size_t i = begin; i < end; i++)                                                           \
        dz[i] = dy[i] * pm_act_slope(kind, slope, y[i])
    PM_ACT_SWITCH(p->activation, LOOP)
#undef LOOP
}

const struct pm_kernel pm_bias_act_fwd = {
    .name = "bias_act_fwd", .bufs = "r:x r?:b w:y", .inplace = "y=x", .cpu = fwd_cpu,
    .params_size = sizeof(struct bias_act_params),
};
const struct pm_kernel pm_bias_act_bwd = {
    .name = "bias_act_bwd", .bufs = "r:y r:dy w:dz", .inplace = "dz=dy", .cpu = bwd_cpu,
    .params_size = sizeof(struct bias_act_params),
};

/* ---- bias gradient --------------------------------------------------------------------- */

enum { CHUNK_ROWS = 256, MOST_CHUNKS = 256 };

struct column_sums {
    const struct bias_grad_params *p;
    const float *dz;
    float *t, *db;
    int chunk, chunks; /* rows per chunk, number of chunks */
};

static struct column_sums sums_of(const struct bias_grad_params *p)
{
    struct column_sums s = { .p = p, .chunk = (p->rows + MOST_CHUNKS - 1) / MOST_CHUNKS };

    s.chunk = s.chunk < CHUNK_ROWS ? CHUNK_ROWS : s.chunk;
    s.chunks = (p->rows + s.chunk - 1) / s.chunk;
    return s;
}

PM_CLONES static void sum_chunks(void *ctx, size_t begin, size_t end)
{
    const struct column_sums *s = ctx;
    const size_t channels = s->p->channels;

    for (size_t chunk = begin; chunk < end; chunk++) {
        const size_t first = chunk * s->chunk, rows = s->p->rows;
        const size_t last = first + s->chunk < rows ? first + s->chunk : rows;
        float *restrict t = s->t + chunk * channels;

        memset(t, 0, channels * sizeof *t);
        for (size_t row = first; row < last; row++)
            for (size_t c = 0; c < channels; c++)
                t[c] += s->dz[row * channels + c];
    }
}

static void grad_cpu(const struct pm_args *a)
{
    const struct bias_grad_params *p = a->params;
    struct column_sums s = sums_of(p);

    s.dz = a->buf[0], s.t = a->buf[1], s.db = a->buf[2];
    pm_parallel(s.chunks, 1, sum_chunks, &s);
    for (int c = 0; c < p->channels; c++) {
        float sum = p->accumulate ? s.db[c] : 0;

        for (int chunk = 0; chunk < s.chunks; chunk++)
            sum += s.t[(size_t)chunk * p->channels + c];
        s.db[c] = sum;
    }
}

static size_t grad_scratch(const void *params, int buf)
{
    const struct bias_grad_params *p = params;

    (void)buf;
    return (size_t)sums_of(p).chunks * p->channels * sizeof(float);
}

static double grad_flops(const void *params, size_t count)
{
    const struct bias_grad_params *p = params;

    (void)count;
    return (double)p->rows * p->channels;
}

const struct pm_kernel pm_bias_grad = {
    .name = "bias_grad", .bufs = "r:dz t:t u:db", .cpu_all = grad_cpu,
    .params_size = sizeof(struct bias_grad_params), .cpu_scratch = grad_scratch,
    .accumulate = offsetof(struct bias_grad_params, accumulate) + 1, .pick = pm_bias_grad_pick,
    .flops = grad_flops,
};

/* ---- the tail of a layer --------------------------------------------------------------- */

static struct bias_act_params params_of(const struct pm_node *n, const struct conv_tail *t)
{
    return (struct bias_act_params){
        .count = (int)pm_count(n->y), .channels = n->y.shape.dim[n->y.shape.rank - 1],
        .activation = t->activation, .slope = t->slope,
    };
}

struct pm_tensor pm_conv_sums(const struct pm_node *n, struct pm_calls *c,
                              const struct conv_tail *t)
{
    return t->bias || t->activation ? pm_temp(c, n->y.shape, PM_F32) : n->y;
}

void pm_conv_tail_forward(const struct pm_node *n, struct pm_calls *c, const struct conv_tail *t,
                          struct pm_tensor z)
{
    const struct bias_act_params p = params_of(n, t);
    const struct pm_tensor b = t->bias ? n->w[1] : PM_NO_TENSOR;

    if (t->bias || t->activation)
        pm_call(c, &pm_bias_act_fwd, pm_count(n->y), &p, PM_BUFS(z, b, n->y));
}

void pm_add_rows(struct pm_calls *c, struct pm_tensor from, struct pm_tensor sum)
{
    const size_t channels = pm_count(sum);
    const struct bias_grad_params p = { .rows = (int)(pm_count(from) / channels),
                                        .channels = (int)channels };

    pm_call(c, &pm_bias_grad, channels, &p, PM_BUFS(from, PM_NO_TENSOR, sum));
}

struct pm_tensor pm_conv_tail_backward(const struct pm_node *n, struct pm_calls *c,
                                       const struct conv_tail *t)
{
    const struct bias_act_params p = params_of(n, t);
    struct pm_tensor dz = n->dy;

    if (t->activation) {
        dz = pm_temp(c, n->y.shape, PM_F32);
        pm_call(c, &pm_bias_act_bwd, pm_count(n->y), &p, PM_BUFS(n->y, n->dy, dz));
    }
    if (t->bias && pm_has(n->dw[1]))
        pm_add_rows(c, dz, n->dw[1]);
    return dz;
}

/* Returns the fan as TensorFlow does: the window's cells times one of the last two axes. */
static int fan(struct pm_shape s, int axis)
{
    int64_t n = s.dim[axis];

    for (int i = 0; i < s.rank - 2; i++)
        n *= s.dim[i];
    return n > INT32_MAX ? INT32_MAX : (int)n;
}

int pm_conv_variables(struct pm_node *n, const char *suffix, struct pm_shape shape,
                      const char *weights_init, bool regularize, const struct conv_tail *t,
                      int channels, const char *bias_init, bool regularize_bias)
{
    int err = PM_OK;
    struct pm_init init;
    const int fan_in = fan(shape, shape.rank - 2), fan_out = fan(shape, shape.rank - 1);

    PM_TRY(pm_init_parse(weights_init, &init, n->name));
    PM_TRY(pm_node_variable(n, suffix, shape, init, fan_in, fan_out, true, regularize));
    if (t->bias) {
        PM_TRY(pm_init_parse(bias_init, &init, n->name));
        PM_TRY(pm_node_variable(n, "biases", PM_SHAPE1(channels), init, fan_in, fan_out, true,
                                regularize_bias));
    }
out:
    return err;
}
