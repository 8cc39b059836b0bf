/* Convolution through oneDNN, 2.x (with operation descriptors) and 3.x (without): conv_cpu.h has
 * the contract.
 *
 * Activations stay NHWC. Weights change in every step, so every call reorders them into the
 * library's own blocked form. The reordered weights and the library's scratchpad are in t, so a run
 * allocates nothing. Only optimised forms are used: the library's plain reference loops are slower
 * than unfolding. Primitives must be made and run with the same number of threads; then the bits
 * are the same in every run. */
#include "device/cpu/conv_cpu.h"

#include <pumice/base.h>

#ifdef PUMICE_DNNL

#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/gemm.h"

#if DNNL_VERSION_MAJOR < 3
typedef dnnl_memory_desc_t md_t;
typedef const dnnl_memory_desc_t *md_ref;
#define REF(md) (&(md))
#else
typedef dnnl_memory_desc_t md_t;
typedef const_dnnl_memory_desc_t md_ref;
#define REF(md) (md)
#endif

enum { ALIGN = 256 };

struct pm_dnnl_conv {
    enum pm_conv_pass pass;
    dnnl_primitive_t conv, reorder; /* reorder: of weights in or out; NULL if not needed */
    dnnl_primitive_t reorder_add;   /* filter gradient: reorders the result and adds it to w */
    dnnl_stream_t stream;
    dnnl_memory_t x, w, y;          /* the user's buffers; handles are set in every run */
    dnnl_memory_t blocked, pad, reorder_pad;
    size_t blocked_bytes, pad_bytes, reorder_pad_bytes;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine;
static dnnl_status_t engine_status;

static void make_engine(void)
{
    engine_status = dnnl_engine_create(&engine, dnnl_cpu, 0);
}

static size_t round_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static int check(dnnl_status_t s, const char *what)
{
    return s == dnnl_success ? PM_OK : pm_fail(PM_EDEVICE, "oneDNN: %s: status %d", what, (int)s);
}
#define DNNL(call) PM_TRY(check((call), #call))

/* ---- memory descriptors ---------------------------------------------------------------- */

static void md_free(md_t *md)
{
#if DNNL_VERSION_MAJOR < 3
    (void)md;
#else
    if (*md)
        dnnl_memory_desc_destroy(*md);
    *md = NULL;
#endif
}

/* strides NULL: the library chooses. */
static dnnl_status_t md_make(md_t *md, int rank, const dnnl_dims_t dims,
                             const dnnl_dims_t strides)
{
#if DNNL_VERSION_MAJOR < 3
    if (!strides)
        return dnnl_memory_desc_init_by_tag(md, rank, dims, dnnl_f32, dnnl_format_tag_any);
    return dnnl_memory_desc_init_by_strides(md, rank, dims, dnnl_f32, strides);
#else
    if (!strides)
        return dnnl_memory_desc_create_with_tag(md, rank, dims, dnnl_f32, dnnl_format_tag_any);
    return dnnl_memory_desc_create_with_strides(md, rank, dims, dnnl_f32, strides);
#endif
}

/* Descriptors of x, of the weights in the library's order, of y, and of the weights in their stored
 * order. With several groups, the library's order is (group, out, in, h, w) over our [kh][kw][c /
 * groups][k]. */
struct descs {
    md_t x, any, y, w;
};

static void descs_free(struct descs *d)
{
    md_free(&d->x);
    md_free(&d->any);
    md_free(&d->y);
    md_free(&d->w);
}

static int descs_make(const struct conv2d_params *p, struct descs *d)
{
    int err = PM_OK;
    const dnnl_dim_t cg = p->c / p->groups, kg = p->k / p->groups, K = p->k;
    const dnnl_dims_t x_dims = { p->n, p->c, p->h, p->w };
    const dnnl_dims_t x_strides = { (dnnl_dim_t)p->h * p->w * p->c, 1, (dnnl_dim_t)p->w * p->c,
                                    p->c };
    const dnnl_dims_t y_dims = { p->n, p->k, p->oh, p->ow };
    const dnnl_dims_t y_strides = { p->oh * p->ow * K, 1, p->ow * K, K };
    const dnnl_dims_t w_dims = { kg, cg, p->kh, p->kw };
    const dnnl_dims_t w_strides = { 1, K, p->kw * cg * K, cg * K };
    const dnnl_dims_t group_dims = { p->groups, kg, cg, p->kh, p->kw };
    const dnnl_dims_t group_strides = { kg, 1, K, p->kw * cg * K, cg * K };

    DNNL(md_make(&d->x, 4, x_dims, x_strides));
    DNNL(md_make(&d->y, 4, y_dims, y_strides));
    if (p->groups == 1) {
        DNNL(md_make(&d->any, 4, w_dims, NULL));
        DNNL(md_make(&d->w, 4, w_dims, w_strides));
    } else {
        DNNL(md_make(&d->any, 5, group_dims, NULL));
        DNNL(md_make(&d->w, 5, group_dims, group_strides));
    }
out:
    return err;
}

/* ---- primitives ------------------------------------------------------------------------ */

struct window {
    dnnl_dims_t stride, dilation, before, after;
};

static struct window window_of(const struct conv2d_params *p)
{
    struct window v = { { p->stride_h, p->stride_w }, { p->dilation_h - 1, p->dilation_w - 1 },
                        { p->top, p->left }, { 0 } };
    /* Padding that the last window needs beyond the edge; negative if rows are left over. */
    v.after[0] = (dnnl_dim_t)(p->oh - 1) * p->stride_h + (p->kh - 1) * p->dilation_h + 1 - p->h -
                 p->top;
    v.after[1] = (dnnl_dim_t)(p->ow - 1) * p->stride_w + (p->kw - 1) * p->dilation_w + 1 - p->w -
                 p->left;
    return v;
}

#if DNNL_VERSION_MAJOR < 3

static dnnl_status_t forward_pd(dnnl_primitive_desc_t *pd, const struct descs *d,
                                const struct window *v, dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t op;
    dnnl_status_t s = dnnl_dilated_convolution_forward_desc_init(
        &op, dnnl_forward_training, dnnl_convolution_direct, &d->x, &d->any, NULL, &d->y,
        v->stride, v->dilation, v->before, v->after);

    return s ? s : dnnl_primitive_desc_create(pd, &op, attr, engine, NULL);
}

static dnnl_status_t data_pd(dnnl_primitive_desc_t *pd, const struct descs *d,
                             const struct window *v, dnnl_primitive_attr_t attr,
                             dnnl_primitive_desc_t hint)
{
    dnnl_convolution_desc_t op;
    dnnl_status_t s = dnnl_dilated_convolution_backward_data_desc_init(
        &op, dnnl_convolution_direct, &d->x, &d->any, &d->y, v->stride, v->dilation, v->before,
        v->after);

    return s ? s : dnnl_primitive_desc_create(pd, &op, attr, engine, hint);
}

static dnnl_status_t filter_pd(dnnl_primitive_desc_t *pd, const struct descs *d,
                               const struct window *v, dnnl_primitive_attr_t attr,
                               dnnl_primitive_desc_t hint)
{
    dnnl_convolution_desc_t op;
    dnnl_status_t s = dnnl_dilated_convolution_backward_weights_desc_init(
        &op, dnnl_convolution_direct, &d->x, &d->any, NULL, &d->y, v->stride, v->dilation,
        v->before, v->after);

    return s ? s : dnnl_primitive_desc_create(pd, &op, attr, engine, hint);
}

#else

static dnnl_status_t forward_pd(dnnl_primitive_desc_t *pd, const struct descs *d,
                                const struct window *v, dnnl_primitive_attr_t attr)
{
    return dnnl_convolution_forward_primitive_desc_create(
        pd, engine, dnnl_forward_training, dnnl_convolution_direct, d->x, d->any, NULL, d->y,
        v->stride, v->dilation, v->before, v->after, attr);
}

static dnnl_status_t data_pd(dnnl_primitive_desc_t *pd, const struct descs *d,
                             const struct window *v, dnnl_primitive_attr_t attr,
                             dnnl_primitive_desc_t hint)
{
    return dnnl_convolution_backward_data_primitive_desc_create(
        pd, engine, dnnl_convolution_direct, d->x, d->any, d->y, v->stride, v->dilation,
        v->before, v->after, hint, attr);
}

static dnnl_status_t filter_pd(dnnl_primitive_desc_t *pd, const struct descs *d,
                               const struct window *v, dnnl_primitive_attr_t attr,
                               dnnl_primitive_desc_t hint)
{
    return dnnl_convolution_backward_weights_primitive_desc_create(
        pd, engine, dnnl_convolution_direct, d->x, d->any, NULL, d->y, v->stride, v->dilation,
        v->before, v->after, hint, attr);
}

#endif

/* Makes the pass's descriptor, or NULL if the library has only its reference form. */
static int conv_pd(enum pm_conv_pass pass, const struct descs *d, const struct window *v,
                   dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out)
{
    int err = PM_OK;
    dnnl_primitive_desc_t hint = NULL;
    const char *how = "";
    dnnl_status_t s = forward_pd(pass == PM_CONV_FWD ? out : &hint, d, v, attr);

    if (s == dnnl_success && pass == PM_CONV_BWD_DATA)
        s = data_pd(out, d, v, attr, hint);
    else if (s == dnnl_success && pass == PM_CONV_BWD_FILTER)
        s = filter_pd(out, d, v, attr, hint);
    if (s == dnnl_unimplemented)
        goto out;
    DNNL(s);
    DNNL(dnnl_primitive_desc_query(*out, dnnl_query_impl_info_str, 0, &how));
    PM_TRACE("cpu", "oneDNN: %s", how);
    if (strstr(how, "ref")) {
        dnnl_primitive_desc_destroy(*out);
        *out = NULL;
    }
out:
    if (hint)
        dnnl_primitive_desc_destroy(hint);
    return err;
}

/* Makes a reorder between the user's weights and the library's. add: the result is added to the
 * destination. */
static int make_reorder(struct pm_dnnl_conv *c, md_ref from, md_ref to, bool add,
                        dnnl_primitive_t *out)
{
    int err = PM_OK;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t ops = NULL;
    dnnl_primitive_desc_t pd = NULL;
    size_t bytes;

    DNNL(dnnl_primitive_attr_create(&attr));
    DNNL(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user));
    if (add) {
        DNNL(dnnl_post_ops_create(&ops));
#if DNNL_VERSION_MAJOR < 3
        DNNL(dnnl_post_ops_append_sum(ops, 1));
#else
        DNNL(dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef));
#endif
        DNNL(dnnl_primitive_attr_set_post_ops(attr, ops));
    }
    DNNL(dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, attr));
    DNNL(dnnl_primitive_create(out, pd));
    bytes = dnnl_memory_desc_get_size(
        dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0));
    if (bytes > c->reorder_pad_bytes || !c->reorder_pad) {
        if (c->reorder_pad)
            dnnl_memory_destroy(c->reorder_pad);
        c->reorder_pad = NULL, c->reorder_pad_bytes = bytes;
        DNNL(dnnl_memory_create(&c->reorder_pad,
                                dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0),
                                engine, DNNL_MEMORY_NONE));
    }
out:
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    if (ops)
        dnnl_post_ops_destroy(ops);
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    return err;
}

static int make_weights(struct pm_dnnl_conv *c, const struct descs *d, md_ref wanted)
{
    int err = PM_OK;

    if (dnnl_memory_desc_equal(wanted, REF(d->w)) && c->pass != PM_CONV_BWD_FILTER)
        goto out;
    c->blocked_bytes = dnnl_memory_desc_get_size(wanted);
    DNNL(dnnl_memory_create(&c->blocked, wanted, engine, DNNL_MEMORY_NONE));
    if (c->pass == PM_CONV_BWD_FILTER) {
        PM_TRY(make_reorder(c, wanted, REF(d->w), false, &c->reorder));
        PM_TRY(make_reorder(c, wanted, REF(d->w), true, &c->reorder_add));
    } else {
        PM_TRY(make_reorder(c, REF(d->w), wanted, false, &c->reorder));
    }
out:
    return err;
}

int pm_dnnl_conv_create(enum pm_conv_pass pass, const struct conv2d_params *p,
                        struct pm_dnnl_conv **out)
{
    int err = PM_OK;
    struct pm_dnnl_conv *c = pm_calloc(1, sizeof *c);
    struct descs d = { 0 };
    const struct window v = window_of(p);
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_attr_t attr = NULL;
    md_ref pad;

    *out = NULL;
    c->pass = pass;
    pthread_once(&once, make_engine);
    DNNL(engine_status);
    pm_library_threads();
    DNNL(dnnl_primitive_attr_create(&attr));
    DNNL(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user));
    PM_TRY(descs_make(p, &d));
    PM_TRY(conv_pd(pass, &d, &v, attr, &pd));
    if (!pd)
        goto out;
    DNNL(dnnl_primitive_create(&c->conv, pd));
    DNNL(dnnl_stream_create(&c->stream, engine, dnnl_stream_default_flags));
    DNNL(dnnl_memory_create(&c->x, REF(d.x), engine, DNNL_MEMORY_NONE));
    DNNL(dnnl_memory_create(&c->y, REF(d.y), engine, DNNL_MEMORY_NONE));
    DNNL(dnnl_memory_create(&c->w, REF(d.w), engine, DNNL_MEMORY_NONE));
    pad = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    c->pad_bytes = dnnl_memory_desc_get_size(pad);
    DNNL(dnnl_memory_create(&c->pad, pad, engine, DNNL_MEMORY_NONE));
    PM_TRY(make_weights(c, &d,
                        dnnl_primitive_desc_query_md(pd, pass == PM_CONV_BWD_FILTER
                                                             ? dnnl_query_diff_weights_md
                                                             : dnnl_query_weights_md, 0)));
    *out = c, c = NULL;
out:
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    descs_free(&d);
    pm_dnnl_conv_destroy(&c);
    return err;
}

void pm_dnnl_conv_destroy(struct pm_dnnl_conv **out)
{
    struct pm_dnnl_conv *c = *out;

    *out = NULL;
    if (!c)
        return;
    dnnl_memory_t memory[] = { c->x, c->w, c->y, c->blocked, c->pad, c->reorder_pad };
    dnnl_primitive_t primitive[] = { c->conv, c->reorder, c->reorder_add };

    for (size_t i = 0; i < PM_COUNT(memory); i++)
        if (memory[i])
            dnnl_memory_destroy(memory[i]);
    for (size_t i = 0; i < PM_COUNT(primitive); i++)
        if (primitive[i])
            dnnl_primitive_destroy(primitive[i]);
    if (c->stream)
        dnnl_stream_destroy(c->stream);
    pm_free(c);
}

/* ---- running --------------------------------------------------------------------------- */

size_t pm_dnnl_conv_scratch(const struct pm_dnnl_conv *c)
{
    return round_up(c->blocked_bytes) + round_up(c->pad_bytes) + c->reorder_pad_bytes;
}

/* Ends the process if the library fails: a failure here leaves wrong numbers. */
static void must(dnnl_status_t s, const char *what)
{
    if (s == dnnl_success)
        return;
    PM_ERROR("cpu", "oneDNN: %s: status %d", what, (int)s);
    abort();
}

static void execute(dnnl_primitive_t p, dnnl_stream_t s, int count, const dnnl_exec_arg_t *args)
{
    must(dnnl_primitive_execute(p, s, count, args), "execute");
}

static void move_weights(const struct pm_dnnl_conv *c, dnnl_stream_t s, dnnl_primitive_t p,
                         dnnl_memory_t from, dnnl_memory_t to)
{
    const dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, from }, { DNNL_ARG_TO, to },
                                     { DNNL_ARG_SCRATCHPAD, c->reorder_pad } };
    execute(p, s, 3, args);
}

void pm_dnnl_conv_run(const struct pm_dnnl_conv *c, float *x, float *w, float *y, void *t,
                      int accumulate)
{
    char *scratch = t;
    const dnnl_stream_t s = c->stream;
    const dnnl_memory_t weights = c->blocked ? c->blocked : c->w;

    pm_library_threads();
    dnnl_memory_set_data_handle(c->x, x);
    dnnl_memory_set_data_handle(c->w, w);
    dnnl_memory_set_data_handle(c->y, y);
    if (c->blocked)
        dnnl_memory_set_data_handle(c->blocked, scratch);
    dnnl_memory_set_data_handle(c->pad, scratch + round_up(c->blocked_bytes));
    if (c->reorder_pad)
        dnnl_memory_set_data_handle(c->reorder_pad, scratch + round_up(c->blocked_bytes) +
                                                        round_up(c->pad_bytes));

    if (c->reorder && c->pass != PM_CONV_BWD_FILTER)
        move_weights(c, s, c->reorder, c->w, c->blocked);
    if (c->pass == PM_CONV_FWD) {
        const dnnl_exec_arg_t args[] = { { DNNL_ARG_SRC, c->x }, { DNNL_ARG_WEIGHTS, weights },
                                         { DNNL_ARG_DST, c->y }, { DNNL_ARG_SCRATCHPAD, c->pad } };
        execute(c->conv, s, 4, args);
    } else if (c->pass == PM_CONV_BWD_DATA) {
        const dnnl_exec_arg_t args[] = { { DNNL_ARG_DIFF_DST, c->y },
                                         { DNNL_ARG_WEIGHTS, weights },
                                         { DNNL_ARG_DIFF_SRC, c->x },
                                         { DNNL_ARG_SCRATCHPAD, c->pad } };
        execute(c->conv, s, 4, args);
    } else {
        const dnnl_exec_arg_t args[] = { { DNNL_ARG_SRC, c->x }, { DNNL_ARG_DIFF_DST, c->y },
                                         { DNNL_ARG_DIFF_WEIGHTS, weights },
                                         { DNNL_ARG_SCRATCHPAD, c->pad } };
        execute(c->conv, s, 4, args);
        move_weights(c, s, accumulate ? c->reorder_add : c->reorder, c->blocked, c->w);
    }
    must(dnnl_stream_wait(s), "wait");
}

#else

int pm_dnnl_conv_create(enum pm_conv_pass pass, const struct conv2d_params *p,
                        struct pm_dnnl_conv **out)
{
    (void)pass, (void)p;
    *out = NULL;
    return PM_OK;
}

void pm_dnnl_conv_destroy(struct pm_dnnl_conv **c)
{
    (void)c;
}

size_t pm_dnnl_conv_scratch(const struct pm_dnnl_conv *c)
{
    (void)c;
    return 0;
}

void pm_dnnl_conv_run(const struct pm_dnnl_conv *c, float *x, float *w, float *y, void *t,
                      int accumulate)
{
    (void)c, (void)x, (void)w, (void)y, (void)t, (void)accumulate;
}

#endif
