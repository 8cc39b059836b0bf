/* The kernel rows of convolutions. shaders/conv2d.params.h describes what they compute.
 * device/cpu/conv_cpu.h has the CPU side, conv_pick.h the choice of shaders. */
#include "layers/conv_rows.h"

#include "device/cpu/conv_cpu.h"
#include "layers/conv_pick.h"
#include "layers/row_moments.h"
#include "net/transposed.h"

static double flops(const void *params, size_t count)
{
    const struct conv2d_params *p = params;
    const int cg = p->c / p->groups;

    (void)count;
    return 2.0 * p->n * p->oh * p->ow * p->k * p->kh * p->kw * cg;
}

static size_t round_up(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static size_t weights_of(const struct conv2d_params *p)
{
    return (size_t)p->kh * p->kw * (p->c / p->groups) * p->k;
}

static size_t scratch_of(enum pm_conv_pass pass, bool depthwise, const void *params)
{
    struct pm_cpu_conv *c = NULL;
    size_t bytes = SIZE_MAX;

    if (pm_cpu_conv_create(pass, params, depthwise, &c) == PM_OK)
        bytes = pm_cpu_conv_scratch(c);
    pm_cpu_conv_destroy(&c);
    if (bytes != SIZE_MAX && ((const struct conv2d_params *)params)->transposed)
        bytes = round_up(bytes) + weights_of(params) * sizeof(float);
    return bytes;
}

/* defines prepare_ROW and scratch_ROW */
#define STATE(row, pass, depthwise)                                                                \
    static int prepare_##row(const void *params, void **state)                                     \
    {                                                                                              \
        return pm_cpu_conv_create(pass, params, depthwise, (struct pm_cpu_conv **)state);          \
    }                                                                                              \
    static size_t scratch_##row(const void *params, int buf)                                       \
    {                                                                                              \
        (void)buf;                                                                                 \
        return scratch_of(pass, depthwise, params);                                                \
    }
STATE(conv2d_fwd, PM_CONV_FWD, false)
STATE(conv2d_bwd_data, PM_CONV_BWD_DATA, false)
STATE(conv2d_bwd_filter, PM_CONV_BWD_FILTER, false)
STATE(depthwise_fwd, PM_CONV_FWD, true)
STATE(depthwise_bwd_data, PM_CONV_BWD_DATA, true)
STATE(depthwise_bwd_filter, PM_CONV_BWD_FILTER, true)

static void release(void *state)
{
    struct pm_cpu_conv *c = state;

    pm_cpu_conv_destroy(&c);
}

/* Hands over the moments of the image in buffer 3. */
static void moments(const struct pm_args *a, bool back)
{
    const struct conv2d_params *p = a->params;

    if (p->moments)
        pm_row_moments(a->buf[3], pm_conv_image(p, back), PM_MOMENT_ROWS, a->buf[4]);
}

static void conv_fwd(const struct pm_args *a)
{
    pm_cpu_conv_run(a->state, a->buf[0], a->buf[1], a->buf[3], a->buf[2], 0);
    moments(a, false);
}

/* The CPU's engines take weights as the variable has them, so transposed ones are transposed back
 * into the scratch. Only checks of shaders need that. */
static void conv_bwd_data(const struct pm_args *a)
{
    const struct conv2d_params *p = a->params;
    float *w = a->buf[1];

    if (p->transposed) {
        w = (float *)(void *)((char *)a->buf[2] + round_up(pm_cpu_conv_scratch(a->state)));
        pm_transpose_taps(a->buf[1], p->kh * p->kw, p->k, p->c / p->groups, w);
    }
    pm_cpu_conv_run(a->state, a->buf[3], w, a->buf[0], a->buf[2], p->accumulate);
    moments(a, true);
}

static void conv_bwd_filter(const struct pm_args *a)
{
    const struct conv2d_params *p = a->params;

    pm_cpu_conv_run(a->state, a->buf[0], a->buf[3], a->buf[1], a->buf[2], p->accumulate);
}

static void depthwise_fwd(const struct pm_args *a)
{
    pm_cpu_conv_run(a->state, a->buf[0], a->buf[1], a->buf[2], NULL, 0);
}

static void depthwise_bwd_data(const struct pm_args *a)
{
    const struct conv2d_params *p = a->params;

    pm_cpu_conv_run(a->state, a->buf[2], a->buf[1], a->buf[0], NULL, p->accumulate);
}

static struct pm_rows written_forward(const void *params)
{
    return pm_conv_image(params, false);
}

static struct pm_rows written_back(const void *params)
{
    return pm_conv_image(params, true);
}

#define ROW(text)                                                                                  \
    .name = #text, .params_size = sizeof(struct conv2d_params), .flops = flops,                    \
    .prepare = prepare_##text, .release = release, .cpu_scratch = scratch_##text,                  \
    .pick = pm_##text##_pick

const struct pm_kernel pm_conv2d_fwd = {
    ROW(conv2d_fwd), .bufs = "r:x r:w t:t w:y w?:moments", .cpu_all = conv_fwd,
    .moments = offsetof(struct conv2d_params, moments) + 1, .moments_of = written_forward,
};
const struct pm_kernel pm_conv2d_bwd_data = {
    ROW(conv2d_bwd_data), .bufs = "r:dy r:w t:t u:dx w?:moments", .cpu_all = conv_bwd_data,
    .moments = offsetof(struct conv2d_params, moments) + 1, .moments_of = written_back,
    .accumulate = offsetof(struct conv2d_params, accumulate) + 1,
};
const struct pm_kernel pm_conv2d_bwd_filter = {
    ROW(conv2d_bwd_filter), .bufs = "r:x r:dy t:t u:dw z:done", .cpu_all = conv_bwd_filter,
    .accumulate = offsetof(struct conv2d_params, accumulate) + 1,
};
const struct pm_kernel pm_depthwise_fwd = {
    ROW(depthwise_fwd), .bufs = "r:x r:w w:y", .cpu_all = depthwise_fwd,
};
const struct pm_kernel pm_depthwise_bwd_data = {
    ROW(depthwise_bwd_data), .bufs = "r:dy r:w u:dx", .cpu_all = depthwise_bwd_data,
    .accumulate = offsetof(struct conv2d_params, accumulate) + 1,
};
const struct pm_kernel pm_depthwise_bwd_filter = {
    ROW(depthwise_bwd_filter), .bufs = "r:x r:dy t:t u:dw z:done", .cpu_all = conv_bwd_filter,
    .accumulate = offsetof(struct conv2d_params, accumulate) + 1,
};

static void data_call(struct pm_calls *c, const struct conv2d_params *p, struct pm_tensor x,
                      struct pm_tensor w, struct pm_tensor y)
{
    const struct pm_kernel *k = &pm_conv2d_bwd_data;
    const struct pm_tensor none = PM_NO_TENSOR;
    const struct pm_tensor t = pm_calls_transposed(c, k, p, pm_count(x), w, p->kh * p->kw,
                                                   p->c / p->groups, p->k);
    struct conv2d_params q = *p;

    q.transposed = pm_has(t);
    pm_call(c, k, pm_count(x), &q, PM_BUFS(y, q.transposed ? t : w, none, x, none));
}

void pm_conv_call(struct pm_calls *c, const struct pm_kernel *k, const struct conv2d_params *p,
                  struct pm_tensor x, struct pm_tensor w, struct pm_tensor y)
{
    const struct pm_tensor none = PM_NO_TENSOR;

    if (k == &pm_conv2d_fwd)
        pm_call(c, k, pm_count(y), p, PM_BUFS(x, w, none, y, none));
    else if (k == &pm_conv2d_bwd_data)
        data_call(c, p, x, w, y);
    else if (k == &pm_depthwise_fwd)
        pm_call(c, k, pm_count(y), p, PM_BUFS(x, w, y));
    else if (k == &pm_depthwise_bwd_data)
        pm_call(c, k, pm_count(x), p, PM_BUFS(y, w, x));
    else
        pm_call(c, k, pm_count(w), p, PM_BUFS(x, y, none, w, none));
}

/* ---- geometry -------------------------------------------------------------------------- */

/* Reads an option of one or two numbers. */
static int pair(const struct pm_node *n, const char *key, const struct pm_ints *v, int *h, int *w)
{
    if (v->count != 1 && v->count != 2)
        return pm_fail(PM_ECONFIG, "%s: %s has %d numbers; give one, or [height, width]", n->name,
                       key, v->count);
    *h = v->v[0];
    *w = v->v[v->count - 1];
    return PM_OK;
}

static int axis(const struct pm_node *n, const char *name, const struct pm_axis *a, int *out,
                int *before)
{
    if (a->out < 1)
        return pm_fail(PM_ECONFIG, "%s: the window does not fit an input %s of %d; use padding "
                       "\"same\", a smaller kernel or a larger input", n->name, name, a->in);
    *out = a->out;
    *before = a->before;
    return PM_OK;
}

int pm_conv_geometry(const struct pm_node *n, const struct conv_window *v, int h, int w,
                     struct conv2d_params *p)
{
    int err = PM_OK;
    int pad[4] = { 0 };
    struct pm_axis a;

    p->h = h;
    p->w = w;
    PM_TRY(pair(n, "kernel", &v->kernel, &p->kh, &p->kw));
    PM_TRY(pair(n, "stride", &v->stride, &p->stride_h, &p->stride_w));
    PM_TRY(pair(n, "dilation", &v->dilation, &p->dilation_h, &p->dilation_w));
    if (v->padding == PM_PAD_EXPLICIT ? v->pad.count != 4 : v->pad.count != 0)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: pad has %d numbers; padding \"explicit\" takes [top, "
                       "bottom, left, right], others none", n->name, v->pad.count));
    for (int i = 0; i < v->pad.count; i++)
        pad[i] = v->pad.v[i];
    a = pm_axis_of(h, p->kh, p->stride_h, p->dilation_h, v->padding, pad[0], pad[1]);
    PM_TRY(axis(n, "height", &a, &p->oh, &p->top));
    a = pm_axis_of(w, p->kw, p->stride_w, p->dilation_w, v->padding, pad[2], pad[3]);
    PM_TRY(axis(n, "width", &a, &p->ow, &p->left));
out:
    return err;
}
