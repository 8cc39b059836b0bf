/* lstm: a layer of long short-term memory over whole sequences (Hochreiter and Schmidhuber, 1997;
 * TensorFlow's LSTMCell without peepholes). The state of each example begins with h = c = 0. At
 * each step:
 *
 *     [i, j, f, o] = [x, h] kernel + bias
 *     c = c sigmoid(f + forget_bias) + tanh(j) sigmoid(i)
 *     h = tanh(c) sigmoid(o)
 *
 * Inputs: x [n, t, c] or [n, 1, t, c], and optionally lengths, I32 [n]: the steps of each example,
 * by default t. Output: h at each step, in the shape of x with `units` channels. From an example's
 * length on, its state does not change, the output is 0, and there is no gradient; a length above t
 * stands for t, one below 0 for 0. With direction=backward the steps are taken from the last one of
 * each example to the first. Two layers and a concat make a bidirectional layer.
 *
 * Variables, as TensorFlow's: kernel [c + units, 4 units] and bias [4 units]. The columns are those
 * of the gates i, j, f, o, of `units` each. PyTorch's weight_ih [4 units, c] and weight_hh
 * [4 units, units] have them as rows in the order i, f, g (here j), o. PyTorch adds no forget bias,
 * so forget_bias=0 and bias = bias_ih + bias_hh give its numbers.
 *
 * The product of x with its rows of the kernel is one call for all steps, before the first step.
 * Each step is one call, forward and backward. A step takes the whole buffers of the gates, of c
 * and of the output, and its index is among its params: it reads the step before and writes its
 * own. So each step waits for the one before without any rule of its own. The first call writes
 * zeros for all other steps: nothing is read before it is written. The gradients of the kernel, the
 * bias and x are one product each over all steps, after the last. */
#include <limits.h>
#include <string.h>

#include <pumice/thread.h>

#include "device/cpu/gemm.h"
#include "device/pick.h"
#include "layers/conv_rows.h"
#include "layers/infer.h"
#include "layers/lstm_cell.h"
#include "lstm.params.h"
#include "onnx/export_nodes.h"

enum { X, LENGTHS };
enum { KERNEL, BIAS };
enum { FORWARD, BACKWARD };

struct lstm_cfg {
    int units, direction;
    float forget_bias;
    const char *weights_init, *bias_init;
    bool regularize;
};

static const struct pm_opt opts[] = {
    PM_INT(lstm_cfg, units, 32, 1, 1 << 16, "numbers of the state, and outputs of a step"),
    PM_ENUM(lstm_cfg, direction, FORWARD, "forward|backward",
            "take the steps from the first or from each example's last"),
    PM_FLOAT(lstm_cfg, forget_bias, 1, -100, 100, "added to the forget gate's sum"),
    PM_STRING(lstm_cfg, weights_init, "xavier", "initial kernel"),
    PM_STRING(lstm_cfg, bias_init, "constant(0)", "initial bias"),
    PM_BOOL(lstm_cfg, regularize, true, "weight decay applies to the kernel"),
    { 0 },
};

/* ---- a step forward -------------------------------------------------------------------------- */

/* A call and what its rows share. */
struct step {
    const struct pm_args *a;
    const struct lstm_params *p;
    size_t t, units;
    const int *lengths;
};

static struct step step_of(const struct pm_args *a, int lengths)
{
    const struct lstm_params *p = a->params;

    return (struct step){ a, p, (size_t)p->t, (size_t)p->units, a->buf[lengths] };
}

static bool is_running(const struct step *s, size_t row)
{
    return !s->lengths || s->p->at < s->lengths[row];
}

/* Writes zeros for all steps of a row except this one. per: numbers of a step. */
static void clear(const struct step *s, float *all, size_t row, size_t per)
{
    float *own = all + row * s->t * per;
    const size_t at = (size_t)s->p->at;

    memset(own, 0, at * per * sizeof *own);
    memset(own + (at + 1) * per, 0, (s->t - at - 1) * per * sizeof *own);
}

/* Items: examples. The scratch holds the sums z, then one old state of zeros. */
PM_CLONES static void step_rows(void *ctx, size_t begin, size_t end)
{
    const struct step *s = ctx;
    void *const *buf = s->a->buf;
    const size_t units = s->units;
    float *gates = buf[5], *c = buf[6], *y = buf[7];
    const float *zeros = (const float *)buf[4] + (size_t)s->p->n * 4 * units;

    for (size_t row = begin; row < end; row++) {
        const size_t at = row * s->t + (size_t)s->p->at;
        const bool has_state = s->p->accumulate && s->p->before >= 0;
        const float *old = has_state ? c + (row * s->t + (size_t)s->p->before) * units : zeros;
        const float *z = (const float *)buf[4] + row * 4 * units;
        float *g = gates + at * 4 * units;

        if (!s->p->accumulate) {
            clear(s, c, row, units), clear(s, y, row, units);
            clear(s, gates, row, 4 * units);
        }
        if (is_running(s, row)) {
            pm_lstm_gates(z, (const float *)buf[0] + at * 4 * units, buf[2], s->p->forget_bias,
                          old, units, g, c + at * units, y + at * units);
        } else {
            memset(g, 0, 4 * units * sizeof *g);
            memset(c + at * units, 0, units * sizeof *c);
            memset(y + at * units, 0, units * sizeof *y);
        }
    }
}

static void step_cpu(const struct pm_args *a)
{
    struct step s = step_of(a, 3);
    const struct lstm_params *p = s.p;
    float *z = a->buf[4];
    const int four = 4 * p->units;
    const struct pm_gemm g = { .m = p->n, .n = four, .k = p->units, .lda = p->t * p->units,
                               .ldb = four, .ldc = four };

    memset(z, 0, ((size_t)p->n * 4 + 1) * s.units * sizeof *z);
    if (p->accumulate && p->before >= 0)
        pm_gemm(&g, (const float *)a->buf[7] + (size_t)p->before * s.units,
                (const float *)a->buf[1] + (size_t)p->c * (size_t)four, z);
    pm_parallel((size_t)p->n, 4, step_rows, &s);
}

static size_t step_scratch(const void *params, int buf)
{
    const struct lstm_params *p = params;

    return buf == 4 ? ((size_t)p->n * 4 + 1) * (size_t)p->units * sizeof(float) : 0;
}

/* ---- a step back ----------------------------------------------------------------------------- */

/* Items: examples. The scratch holds dh [n, units], one old state of zeros, and the part of dh from
 * the step after, [units, n]. */
PM_CLONES static void back_rows(void *ctx, size_t begin, size_t end)
{
    const struct step *s = ctx;
    void *const *buf = s->a->buf;
    const size_t units = s->units, n = (size_t)s->p->n;
    const float *zeros = (const float *)buf[5] + n * units, *later = zeros + units;

    for (size_t row = begin; row < end; row++) {
        const size_t at = row * s->t + (size_t)s->p->at;
        const float *c = buf[2], *dy = (const float *)buf[0] + at * units;
        const float *old = s->p->before < 0 ? zeros
                                            : c + (row * s->t + (size_t)s->p->before) * units;
        float *dh = (float *)buf[5] + row * units, *dc = (float *)buf[7] + row * units;
        float *dz = (float *)buf[6] + at * 4 * units;

        if (!s->p->accumulate) {
            clear(s, buf[6], row, 4 * units);
            memset(dc, 0, units * sizeof *dc);
        }
        if (is_running(s, row)) {
            for (size_t k = 0; k < units; k++)
                dh[k] = later[k * n + row] + dy[k];
            pm_lstm_back((const float *)buf[1] + at * 4 * units, c + at * units, old, dh, units,
                         dz, dc);
        } else {
            memset(dz, 0, 4 * units * sizeof *dz);
            memset(dc, 0, units * sizeof *dc);
        }
    }
}

static void back_cpu(const struct pm_args *a)
{
    struct step s = step_of(a, 4);
    const struct lstm_params *p = s.p;
    float *zeros = (float *)a->buf[5] + (size_t)p->n * s.units, *later = zeros + s.units;
    const int four = 4 * p->units;
    /* oneDNN is up to three times as fast with the kernel as the left factor. */
    const struct pm_gemm g = { .m = p->units, .n = p->n, .k = four, .b_across = true,
                               .lda = four, .ldb = p->t * four, .ldc = p->n };

    memset(zeros, 0, s.units * sizeof *zeros);
    if (p->accumulate && p->after >= 0)
        pm_gemm(&g, (const float *)a->buf[3] + (size_t)p->c * (size_t)four,
                (const float *)a->buf[6] + (size_t)p->after * (size_t)four, later);
    else
        memset(later, 0, (size_t)p->n * s.units * sizeof *later);
    pm_parallel((size_t)p->n, 4, back_rows, &s);
}

static size_t back_scratch(const void *params, int buf)
{
    const struct lstm_params *p = params;

    return buf == 5 ? (2 * (size_t)p->n + 1) * (size_t)p->units * sizeof(float) : 0;
}

/* ---- the inputs of the kernel ---------------------------------------------------------------- */

/* xh [n t, c + units]: x and the state before, 0 after an example's last step. Items: steps. */
static void inputs_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct lstm_inputs_params *p = a->params;
    const size_t c = (size_t)p->c, units = (size_t)p->units;
    const float *x = a->buf[0], *y = a->buf[1];
    const int *lengths = a->buf[2];

    for (size_t row = begin; row < end; row++) {
        const int at = (int)(row % (size_t)p->t), before = at + p->before;
        const bool runs = !lengths || at < lengths[row / (size_t)p->t];
        float *xh = (float *)a->buf[3] + row * (c + units);

        memset(xh, 0, (c + units) * sizeof *xh);
        if (runs)
            memcpy(xh, x + row * c, c * sizeof *xh);
        if (runs && before >= 0 && before < p->t)
            memcpy(xh + c, y + (size_t)((int)row + p->before) * units, units * sizeof *xh);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool step_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                      struct pm_picks *out)
{
    const struct lstm_params *p = params;

    (void)caps, (void)count;
    return pick_tiles("lstm_step", p->n, p->units, level, out);
}

static bool back_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                      struct pm_picks *out)
{
    const struct lstm_params *p = params;

    (void)caps, (void)count;
    return pick_tiles("lstm_back", p->n, p->units, level, out);
}

static bool inputs_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    const struct lstm_inputs_params *p = params;

    (void)caps;
    return level == 0 &&
           pm_pick_elements("lstm_inputs", 64, count * (size_t)(p->c + p->units), out);
}

static double flops(const void *params, size_t count)
{
    const struct lstm_params *p = params;

    (void)count;
    return (8.0 * p->units + 100) * p->n * p->units;
}

static const struct pm_kernel step_row = {
    .name = "lstm_step",
    .bufs = "r:pre r:kernel r:bias r?:lengths t:t u:gates u:c u:y",
    .params_size = sizeof(struct lstm_params),
    .accumulate = offsetof(struct lstm_params, accumulate) + 1, .cpu_all = step_cpu,
    .cpu_scratch = step_scratch, .pick = step_pick, .flops = flops,
};
static const struct pm_kernel back_row = {
    .name = "lstm_back",
    .bufs = "r:dy r:gates r:c r:kernel r?:lengths t:t u:dz u:dc",
    .params_size = sizeof(struct lstm_params),
    .accumulate = offsetof(struct lstm_params, accumulate) + 1, .cpu_all = back_cpu,
    .cpu_scratch = back_scratch, .pick = back_pick, .flops = flops,
};
static const struct pm_kernel inputs_row = {
    .name = "lstm_inputs", .bufs = "r:x r:y r?:lengths w:xh",
    .params_size = sizeof(struct lstm_inputs_params), .cpu = inputs_cpu, .grain = 16,
    .pick = inputs_pick,
};

/* ---- the layer ------------------------------------------------------------------------------- */

static struct lstm_params params_of(const struct pm_node *n)
{
    const struct lstm_cfg *cfg = n->cfg;
    const struct pm_shape x = n->in[X]->out_shape;

    return (struct lstm_params){
        .n = x.dim[0], .t = x.dim[x.rank - 2], .c = x.dim[x.rank - 1], .units = cfg->units,
        .forget_bias = cfg->forget_bias,
    };
}

/* Products with `c` rows of the kernel, for all steps: the first rows are those of x. */
static struct conv2d_params product_of(const struct lstm_params *p, int c)
{
    return (struct conv2d_params){
        .n = p->n * p->t, .h = 1, .w = 1, .c = c, .oh = 1, .ow = 1, .k = 4 * p->units, .kh = 1,
        .kw = 1, .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .groups = 1,
    };
}

static int check_inputs(const struct pm_node *n)
{
    const struct pm_shape x = n->in[X]->out_shape;
    char text[64];

    if (n->in[X]->out_type != PM_F32 || !pm_is_sequence(x))
        return pm_fail(PM_ECONFIG, "%s: the input is %s of shape %s instead of float32 of n x t x "
                       "c or n x 1 x t x c. Give c numbers for each of t steps", n->name,
                       pm_type_name(n->in[X]->out_type), pm_shape_text(x, text));
    if (n->inputs > LENGTHS &&
        (n->in[LENGTHS]->out_type != PM_I32 || !pm_input_is_shape(n, LENGTHS, PM_SHAPE1(x.dim[0]))))
        return pm_fail(PM_ECONFIG, "%s: lengths are %s of shape %s instead of int32 of shape %d. "
                       "Give the number of steps of each example", n->name,
                       pm_type_name(n->in[LENGTHS]->out_type),
                       pm_shape_text(n->in[LENGTHS]->out_shape, text), x.dim[0]);
    return PM_OK;
}

static int infer(struct pm_node *n)
{
    int err = PM_OK;
    const struct lstm_cfg *cfg = n->cfg;
    struct lstm_params p;
    struct pm_init init;
    char text[64];

    PM_TRY(check_inputs(n));
    p = params_of(n);
    if ((double)p.n * p.t * (p.c + 4.0 * p.units) > INT_MAX)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: units: %d units for an input of %s need more than 2^31 - 1 "
                       "numbers. Make the units or the batch smaller", n->name, p.units,
                       pm_shape_text(n->in[X]->out_shape, text)));
    PM_TRY(pm_init_parse(cfg->weights_init, &init, n->name));
    PM_TRY(pm_node_variable(n, "kernel", PM_SHAPE2(p.c + p.units, 4 * p.units), init,
                            p.c + p.units, 4 * p.units, true, cfg->regularize));
    PM_TRY(pm_init_parse(cfg->bias_init, &init, n->name));
    PM_TRY(pm_node_variable(n, "bias", PM_SHAPE1(4 * p.units), init, p.c + p.units, 4 * p.units,
                            true, false));
    n->out_shape = n->in[X]->out_shape;
    n->out_shape.dim[n->out_shape.rank - 1] = p.units;
    n->out_type = PM_F32;
out:
    return err;
}

static struct pm_tensor given_lengths(const struct pm_node *n)
{
    return n->inputs > LENGTHS ? n->xs[LENGTHS] : PM_NO_TENSOR;
}

/* Sets the k-th step in the order of the layer's direction, and its neighbours. */
static void set_step(const struct pm_node *n, struct lstm_params *p, int k)
{
    const bool back = ((const struct lstm_cfg *)n->cfg)->direction == BACKWARD;
    const int last = p->t - 1;

    p->at = back ? last - k : k;
    p->before = k == 0 ? -1 : back ? p->at + 1 : p->at - 1;
    p->after = k == last ? -1 : back ? p->at - 1 : p->at + 1;
}

enum { SAVED_GATES, SAVED_C };

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct pm_tensor none = PM_NO_TENSOR;
    struct lstm_params p = params_of(n);
    const struct conv2d_params product = product_of(&p, p.c);
    const struct pm_shape sums = PM_SHAPE3(p.n, p.t, 4 * p.units);
    const struct pm_tensor pre = pm_temp(c, sums, PM_F32);
    const struct pm_tensor gates = pm_save(c, n, SAVED_GATES, sums, PM_F32);
    const struct pm_tensor cells =
        pm_save(c, n, SAVED_C, PM_SHAPE3(p.n, p.t, p.units), PM_F32);

    pm_conv_call(c, &pm_conv2d_fwd, &product, n->xs[X], n->w[KERNEL], pre);
    for (int k = 0; k < p.t; k++) {
        set_step(n, &p, k);
        pm_call(c, &step_row, (size_t)p.n * (size_t)p.units, &p,
                PM_BUFS(pre, n->w[KERNEL], n->w[BIAS], given_lengths(n), none, gates, cells, n->y));
    }
}

static void kernel_gradient(struct pm_node *n, struct pm_calls *c, const struct lstm_params *p,
                            struct pm_tensor dz)
{
    const bool back = ((const struct lstm_cfg *)n->cfg)->direction == BACKWARD;
    const struct lstm_inputs_params inputs = { p->n, p->t, p->c, p->units, back ? 1 : -1 };
    const struct conv2d_params product = product_of(p, p->c + p->units);
    const struct pm_tensor xh = pm_temp(c, PM_SHAPE2(product.n, product.c), PM_F32);

    pm_call(c, &inputs_row, (size_t)product.n, &inputs,
            PM_BUFS(n->xs[X], n->y, given_lengths(n), xh));
    pm_conv_call(c, &pm_conv2d_bwd_filter, &product, xh, n->dw[KERNEL], dz);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const struct pm_tensor none = PM_NO_TENSOR;
    struct lstm_params p = params_of(n);
    const struct conv2d_params product = product_of(&p, p.c);
    const struct pm_tensor dz = pm_temp(c, PM_SHAPE3(p.n, p.t, 4 * p.units), PM_F32);
    const struct pm_tensor dc = pm_temp(c, PM_SHAPE2(p.n, p.units), PM_F32);

    for (int k = p.t; k-- > 0;) {
        set_step(n, &p, k);
        pm_call(c, &back_row, (size_t)p.n * (size_t)p.units, &p,
                PM_BUFS(n->dy, n->saved[SAVED_GATES], n->saved[SAVED_C], n->w[KERNEL],
                        given_lengths(n), none, dz, dc));
    }
    if (pm_has(n->dw[KERNEL]))
        kernel_gradient(n, c, &p, dz);
    if (pm_has(n->dw[BIAS]))
        pm_add_rows(c, dz, n->dw[BIAS]);
    /* The kernel has more rows than those of x, so there is no transposed copy of them. */
    if (pm_has(n->dxs[X]))
        pm_call(c, &pm_conv2d_bwd_data, pm_count(n->dxs[X]), &product,
                PM_BUFS(dz, n->w[KERNEL], none, n->dxs[X], none));
}

/* ---- export ---------------------------------------------------------------------------------- */

/* ONNX's gates are i, o, f, c: the places of these among those of the kernel. */
static const int onnx_gate[] = { 0, 3, 2, 1 };

/* Exports rows first..first + rows - 1 of the kernel as [1, 4 units, rows]. */
static const char *export_rows(struct pm_export *g, const char *suffix, const float *kernel,
                               int units, int first, int rows)
{
    const int64_t dim[] = { 1, 4 * units, rows };
    float *w = pm_malloc(sizeof *w * 4 * (size_t)units * (size_t)rows), *to = w;
    const char *name;

    for (int gate = 0; gate < 4; gate++)
        for (int k = 0; k < units; k++)
            for (int row = 0; row < rows; row++)
                *to++ = kernel[(size_t)(first + row) * 4 * (size_t)units +
                               (size_t)(onnx_gate[gate] * units + k)];
    name = pm_export_tensor(g, suffix, PM_DTYPE_F32, 3, dim, w);
    pm_free(w);
    return name;
}

/* ONNX has a second bias of the recurrent product; it is 0. */
static const char *export_bias(struct pm_export *g, const float *bias, int units, float forget)
{
    const int64_t dim[] = { 1, 8 * units };
    float *b = pm_calloc(8 * (size_t)units, sizeof *b);
    const char *name;

    for (int gate = 0; gate < 4; gate++)
        for (int k = 0; k < units; k++)
            b[gate * units + k] = bias[onnx_gate[gate] * units + k] +
                                  (onnx_gate[gate] == 2 ? forget : 0);
    name = pm_export_tensor(g, "bias", PM_DTYPE_F32, 2, dim, b);
    pm_free(b);
    return name;
}

/* Returns the lengths of the examples, limited to 0..t; NULL: there are none. */
static const char *export_lengths(const struct pm_node *n, struct pm_export *g)
{
    const int32_t low = 0, high = params_of(n).t;

    if (n->inputs <= LENGTHS)
        return NULL;
    return pm_export_op(g, "Clip",
                        PM_VALUES(pm_export_x(g, n, LENGTHS),
                                  pm_export_tensor(g, "no_step", PM_DTYPE_I32, 0, NULL, &low),
                                  pm_export_tensor(g, "steps", PM_DTYPE_I32, 0, NULL, &high)));
}

/* Returns the operator's output [t, 1, n, units]. */
static const char *export_sequence(const struct pm_node *n, struct pm_export *g, const char *x)
{
    const struct lstm_cfg *cfg = n->cfg;
    const struct lstm_params p = params_of(n);
    const size_t four = 4 * (size_t)p.units;
    float *kernel = pm_calloc((size_t)(p.c + p.units) * four, sizeof *kernel);
    float *bias = pm_calloc(four, sizeof *bias);
    const char *y = x;

    if (pm_export_read(g, n, KERNEL, kernel) && pm_export_read(g, n, BIAS, bias)) {
        const char *w = export_rows(g, "kernel", kernel, p.units, 0, p.c);
        const char *r = export_rows(g, "recurrent_kernel", kernel, p.units, p.c, p.units);
        const char *b = export_bias(g, bias, p.units, cfg->forget_bias);

        pm_export_op_outputs(g, "LSTM", PM_VALUES(x, w, r, b, export_lengths(n, g)), 1, &y);
        pm_export_int(g, "hidden_size", p.units);
        pm_export_text(g, "direction", cfg->direction == BACKWARD ? "reverse" : "forward");
    }
    pm_free(kernel);
    pm_free(bias);
    return y;
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct pm_shape x = n->in[X]->out_shape;
    const struct lstm_params p = params_of(n);
    const char *v = pm_export_nhwc(g, pm_export_x(g, n, X), x);

    if (x.rank == 4)
        v = pm_export_view(g, v, 3, (const int64_t[]){ 0, p.t, p.c });
    v = pm_export_op(g, "Transpose", PM_VALUES(v));
    pm_export_ints(g, "perm", PM_INT64S(1, 0, 2));
    v = export_sequence(n, g, v);
    v = pm_export_op(g, "Transpose", PM_VALUES(v)); /* [n, 1, t, units] */
    pm_export_ints(g, "perm", PM_INT64S(2, 1, 0, 3));
    if (x.rank == 4)
        return pm_export_nchw(g, v, n->out_shape);
    return pm_export_view(g, v, 3, (const int64_t[]){ 0, p.t, p.units });
}

const struct pm_layer pm_layer_lstm = {
    .name = "lstm", .help = "recurrent layer over a sequence (LSTM): inputs x and, optionally, the "
                            "lengths of the examples",
    .opts = opts, .cfg_size = sizeof(struct lstm_cfg), .min_inputs = 1, .max_inputs = 2,
    .accumulates = true, .infer = infer, .forward = forward, .backward = backward, .onnx = onnx,
};
