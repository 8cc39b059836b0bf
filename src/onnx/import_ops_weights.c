/* import_ops_weights: operators with weights: convolutions, products with a matrix, prelu. If the
 * only reader of the output is a bias or an activation, it becomes part of the layer. */
#include "onnx/import_ops.h"

#include <string.h>

/* ---- what follows -------------------------------------------------------------------------- */

static const struct pm_onnx_node *reader_of(struct import *m, const char *output)
{
    const struct pm_onnx_node *reader = import_only_reader(m, output);

    return reader && reader->domain[0] == 0 ? reader : NULL;
}

/* Records that node n's output is the value being made. */
static void absorb(struct import *m, const char *output, const struct pm_onnx_node *n)
{
    m->absorbed[n - m->model->nodes] = import_value(m, output)->name;
}

/* Returns the constant number of a name, also if its node is not converted yet. */
static bool peek_scalar(struct import *m, const char *name, double *out)
{
    struct value *v = import_value(m, name);
    const double *x = value_constant(v) ? import_numbers(m, v, 1) : NULL;
    const struct pm_onnx_node *n = v->maker;
    const struct pm_onnx_attr *a = n && n->attr_count ? &n->attrs[0] : NULL;
    float f;

    if (!x && a && strcmp(n->op, "Constant") == 0 && a->t && a->t->count == 1 &&
        pm_onnx_floats(a->t, 0, 1, &f) == 0) {
        *out = (double)f;
        return true;
    }
    if (x)
        *out = *x;
    return x != NULL;
}

static bool is_relu6(struct import *m, const struct pm_onnx_node *n)
{
    double low = (double)pm_onnx_attr_float(n, "min", -1);
    double high = (double)pm_onnx_attr_float(n, "max", -1);

    if (n->in_count > 1 && !peek_scalar(m, n->in[1], &low))
        return false;
    if (n->in_count > 2 && !peek_scalar(m, n->in[2], &high))
        return false;
    return low == 0 && high == 6;
}

const char *import_activation(struct import *m, const char *output, char buf[64])
{
    const struct pm_onnx_node *n = reader_of(m, output);
    const float slope = n ? pm_onnx_attr_float(n, "alpha", 0.01f) : 0;

    buf[0] = 0;
    if (!n)
        return buf;
    if (strcmp(n->op, "Relu") == 0)
        snprintf(buf, 64, " activation=relu");
    else if (strcmp(n->op, "Sigmoid") == 0)
        snprintf(buf, 64, " activation=sigmoid");
    else if (strcmp(n->op, "Tanh") == 0)
        snprintf(buf, 64, " activation=tanh");
    else if (strcmp(n->op, "LeakyRelu") == 0 && slope > 1e-6f && slope <= 1)
        snprintf(buf, 64, " activation=leaky_relu slope=%.9g", (double)slope);
    else if (strcmp(n->op, "Clip") == 0 && is_relu6(m, n))
        snprintf(buf, 64, " activation=relu6");
    if (buf[0])
        absorb(m, output, n);
    return buf;
}

struct value *import_bias(struct import *m, const char *output, int64_t channels)
{
    const struct pm_onnx_node *n = reader_of(m, output);
    struct value *b;

    if (!n || strcmp(n->op, "Add") != 0 || n->in_count != 2)
        return NULL;
    b = import_value(m, n->in[strcmp(n->in[0], output) == 0]);
    if (!value_constant(b) || view_count(&b->view) != channels || b->view.rank < 1 ||
        b->view.dim[b->view.rank - 1] != channels)
        return NULL;
    absorb(m, output, n);
    return b;
}

/* ---- layers with weights and biases --------------------------------------------------------- */

/* Whether a new last layer replaces this node. */
static bool is_fresh(const struct import *m)
{
    return m->n == m->head;
}

/* Adds the layer from spec, bias and activation. b: the bias, or NULL. */
static struct pm_node *weighted(struct import *m, struct pm_node *x, const struct pm_given *w,
                                const struct pm_given *b, const char *activation, const char *spec)
{
    const struct pm_given given[2] = { *w, b ? *b : (struct pm_given){ 0 } };
    struct pm_node *y;

    m->net->given = given;
    m->net->given_count = is_fresh(m) ? 0 : b ? 2 : 1;
    y = pm_net_add(m->net, import_name(m, NULL), x, "%s bias=%s%s", spec, b ? "true" : "false",
                   activation);
    m->net->given_count = 0;
    return y;
}

/* Reads two numbers, for height and width. For 1-D nodes (rows), the height is fixed and the
 * attribute has only the width's number. */
static int two(struct import *m, const char *attr, bool rows, int64_t out[2],
               const int64_t otherwise[2])
{
    int64_t v[16];
    const int n = import_ints(m, -1, attr, v);

    if (n != 0 && n != (rows ? 1 : 2))
        return -1;
    out[0] = n && !rows ? v[0] : otherwise[0];
    out[1] = n ? v[n - 1] : otherwise[1];
    return 0;
}

/* Pads of SAME_LOWER: an odd pixel goes to the beginning. */
static void same_lower(const struct view *x, struct import_window *w)
{
    for (int k = 0; k < 2; k++) {
        const int64_t in = x->dim[2 + k], out = (in + w->stride[k] - 1) / w->stride[k];
        int64_t all = (out - 1) * w->stride[k] + (w->kernel[k] - 1) * w->dilation[k] + 1 - in;

        all = all < 0 ? 0 : all;
        w->pad[k] = all - all / 2;
        w->pad[2 + k] = all / 2;
    }
}

enum { LARGEST_WINDOW = 65536 };

bool import_window(struct import *m, const struct view *x, const int64_t kernel[2],
                   struct import_window *w)
{
    static const int64_t ones[2] = { 1, 1 };
    const char *pad = pm_onnx_attr_text(m->n, "auto_pad", "NOTSET");
    int64_t pads[16] = { 0 };
    const bool rows = import_in(m, 0)->view.rank == 3;
    const int n = import_ints(m, -1, "pads", pads);

    *w = (struct import_window){ .padding = "explicit" };
    if (x->rank != 4 || two(m, "kernel_shape", rows, w->kernel, kernel) < 0 ||
        two(m, "strides", rows, w->stride, ones) < 0 ||
        two(m, "dilations", rows, w->dilation, ones) < 0 || (n != 0 && n != (rows ? 2 : 4))) {
        import_refuse(m, "%d axes; images [n, c, h, w] only", x->rank);
        return false;
    }
    if (rows)
        pads[3] = pads[1], pads[1] = pads[0], pads[0] = 0;
    for (int i = 0; i < 2; i++)
        if (w->kernel[i] < 0 || w->kernel[i] > LARGEST_WINDOW || w->stride[i] < 1 ||
            w->stride[i] > LARGEST_WINDOW || w->dilation[i] < 1 ||
            w->dilation[i] > LARGEST_WINDOW) {
            import_refuse(m, "a window, stride or dilation outside 1..%d", LARGEST_WINDOW);
            return false;
        }
    if (strcmp(pad, "SAME_UPPER") == 0)
        w->padding = "same";
    else if (strcmp(pad, "SAME_LOWER") == 0)
        same_lower(x, w);
    else if (strcmp(pad, "NOTSET") == 0)
        memcpy(w->pad, pads, sizeof w->pad); /* top, left, bottom, right */
    for (int i = 0; i < 4; i++)
        if (w->pad[i] < 0) {
            import_refuse(m, "negative pads");
            return false;
        }
    if (strcmp(w->padding, "explicit") == 0 && !(w->pad[0] | w->pad[1] | w->pad[2] | w->pad[3]))
        w->padding = "valid";
    return true;
}

void import_window_text(const struct import_window *w, bool dilation, struct pm_str *out)
{
    pm_str_add(out, " kernel=[%lld,%lld] stride=[%lld,%lld] padding=%s", (long long)w->kernel[0],
               (long long)w->kernel[1], (long long)w->stride[0], (long long)w->stride[1],
               w->padding);
    if (dilation)
        pm_str_add(out, " dilation=[%lld,%lld]", (long long)w->dilation[0],
                   (long long)w->dilation[1]);
    if (strcmp(w->padding, "explicit") == 0)
        pm_str_add(out, " pad=[%lld,%lld,%lld,%lld]", (long long)w->pad[0], (long long)w->pad[2],
                   (long long)w->pad[1], (long long)w->pad[3]);
}

/* Returns the bias: an input, or a following Add. *output: the last value that the layer then
 * computes. */
static struct value *bias_of(struct import *m, int input, const char **output, int64_t channels)
{
    struct value *b = import_in(m, input);

    *output = m->n->out[0];
    if (b->kind != VALUE_ABSENT)
        return import_idle(m, b, 0) ? NULL : b;
    b = import_bias(m, *output, channels);
    if (b)
        *output = import_only_reader(m, *output)->out[0];
    return b;
}

/* Makes a variable of b, which is squeezed to [k]. */
static bool give_bias(struct import *m, struct value *b, int64_t channels, double factor,
                      struct pm_given *out)
{
    const struct view flat = view_plain(1, &channels);

    if (!b)
        return true;
    if (!value_constant(b) || view_count(&b->view) != channels) {
        import_refuse(m, "a bias that is not a constant of %lld numbers", (long long)channels);
        return false;
    }
    *out = import_given_view(m, b, &flat, "0", factor, true);
    return true;
}

/* Completes the layer that spec begins: adds the window, the bias and the activation after output.
 * Frees spec. */
static int convolution(struct import *m, struct value *x, const struct import_window *win,
                       const struct pm_given *w, const struct pm_given *b, const char *output,
                       struct pm_str *spec)
{
    char act[64];

    import_window_text(win, true, spec);
    import_activation(m, output, act);
    import_out_images(m, 0, weighted(m, import_lay(m, x, "0 2 3 1"), w, b, act, spec->text));
    pm_str_free(spec);
    return PM_OK;
}

static int conv(struct import *m, struct value *x, struct value *w)
{
    const int64_t *k = w->view.dim, groups = import_attr_int(m, "group", 1);
    const bool depthwise = groups > 1 && groups == x->view.dim[1] && k[1] == 1;
    const char *output;
    struct import_window win;
    struct pm_given weights, bias;
    struct pm_str spec = { 0 };
    struct value *b;

    if (!import_window(m, &x->view, &k[2], &win))
        return PM_OK;
    if (groups < 1 || groups > 1 << 20 || k[1] > 1 << 20 || k[1] * groups != x->view.dim[1])
        return import_refuse(
            m, "weights for %lld groups of %lld channels, but %lld channels in the input",
            (long long)groups, (long long)k[1], (long long)x->view.dim[1]);
    b = bias_of(m, 2, &output, -1);
    if (!give_bias(m, b, k[0], 1, &bias))
        return PM_OK;
    if (depthwise) {
        const int64_t parts[] = { groups, k[0] / groups, 1, k[2], k[3] };
        struct view v = w->view;

        if (!view_reshape(&v, 5, parts))
            return import_refuse(m, "weights that are not contiguous");
        weights = import_given_view(m, w, &v, "34012", 1, true);
        pm_str_add(&spec, "depthwise_conv2d multiplier=%lld", (long long)parts[1]);
    } else {
        weights = import_given(m, w, "2310", true);
        pm_str_add(&spec, "conv2d filters=%lld groups=%lld",
                   is_fresh(m) ? (long long)m->options->new_head : (long long)k[0],
                   (long long)groups);
    }
    return convolution(m, x, &win, &weights, b ? &bias : NULL, output, &spec);
}

/* Returns [n, c, w] as [n, c, 1, w]. */
static struct value heightened(const struct value *v)
{
    const int64_t dim[4] = { v->view.dim[0], v->view.dim[1], 1, v->view.dim[2] };
    struct value to = *v;

    view_reshape(&to.view, 4, dim); /* axes of size 1 have no atoms */
    to.laid = NULL;
    return to;
}

/* Converts the current node's output from [n, c, 1, w] to [n, c, w]. */
static int lowered(struct import *m, int err)
{
    struct view *v = &import_value(m, m->n->out[0])->view;
    const int64_t dim[3] = { v->dim[0], v->dim[1], v->dim[3] };

    if (err == PM_OK && !m->refused_now && v->rank == 4)
        view_reshape(v, 3, dim);
    return err;
}

int import_op_conv(struct import *m)
{
    struct value *x = import_in(m, 0), *w = import_in(m, 1), row, kernels;

    if ((w->view.rank != 3 && w->view.rank != 4) || x->view.rank != w->view.rank)
        return import_refuse(m, "a convolution over %d axes (1 or 2 are supported)",
                             w->view.rank - 2);
    if (!value_constant(w))
        return import_refuse(m, "computed weights");
    if (w->view.rank == 4)
        return conv(m, x, w);
    row = heightened(x), kernels = heightened(w);
    return lowered(m, conv(m, &row, &kernels));
}

int import_op_conv_transpose(struct import *m)
{
    static const int64_t none[2] = { 0, 0 };
    struct value *x = import_in(m, 0), *w = import_in(m, 1), *b;
    const int64_t *k = w->view.dim, groups = pm_onnx_attr_int(m->n, "group", 1);
    int64_t more[2], shape[16];
    const char *output;
    struct import_window win;
    struct pm_given weights, bias;
    struct pm_str spec = { 0 };

    if (w->view.rank != 4 || !value_constant(w))
        return import_refuse(m, "weights that are not constants, or not for images");
    if (groups != 1)
        return import_refuse(m, "%lld groups", (long long)groups);
    if (!import_window(m, &x->view, &k[2], &win))
        return PM_OK;
    if (strcmp(win.padding, "same") == 0 || import_ints(m, -1, "output_shape", shape) != 0)
        return import_refuse(m, "output_shape or auto_pad SAME: explicit pads only");
    if (two(m, "output_padding", false, more, none) < 0)
        return import_refuse(m, "an output_padding that is not two numbers");
    b = bias_of(m, 2, &output, -1);
    if (!give_bias(m, b, k[1], 1, &bias))
        return PM_OK;
    weights = import_given(m, w, "2310", true);
    win.padding = "explicit";
    pm_str_add(&spec, "conv2d_transpose filters=%lld output_pad=[%lld,%lld]", (long long)k[1],
               (long long)more[0], (long long)more[1]);
    return convolution(m, x, &win, &weights, b ? &bias : NULL, output, &spec);
}

/* ---- products ------------------------------------------------------------------------------- */

/* Whether x's last axis is after all others in memory, with the others in order. order: the axis's
 * atoms as digits, in memory order. count, size: number and sizes of these atoms in ONNX's
 * order. */
static bool rows_of(const struct view *x, int axis, char order[PM_FILE_MAX_RANK], int *count,
                    int64_t size[PM_FILE_MAX_RANK])
{
    int first = x->atoms, n = 0, last = -1;

    for (int i = 0; i < x->atoms; i++)
        if (x->axis[i] == axis)
            first = i < first ? i : first;
    *count = x->atoms - first;
    if (*count > 6)
        return false;
    for (int i = first; i < x->atoms; i++)
        size[i - first] = x->size[i];
    for (int k = 0; k < x->atoms; k++)
        if (x->at[k] >= first)
            order[n++] = (char)('0' + x->at[k] - first);
        else if (n > 0 || x->at[k] < last)
            return false;
        else
            last = x->at[k];
    order[n] = 0;
    return true;
}

/* Reshapes the node so that its first axis counts rows of k values. */
static struct pm_node *as_rows(struct import *m, struct pm_node *x, int64_t k)
{
    const int64_t count = (int64_t)pm_shape_count(x->out_shape), dim[] = { count / k, k };
    struct value v = { .kind = VALUE_NODE, .node = x, .view = view_plain(2, dim) };

    return x->out_shape.rank > 1 && x->out_shape.dim[0] * k == count ? x : import_lay(m, &v, "0 1");
}

/* Prepares x as the rows of a product. If its last axis has another order in memory than in ONNX,
 * the matrix's axes, *as in this order, are permuted instead. False if the node was refused. */
static bool rows_and_matrix(struct import *m, struct value *x, const struct value *w, bool turned,
                            struct pm_node **in, struct view *as, char order[PM_FILE_MAX_RANK + 2])
{
    const int last = x->view.rank - 1;
    int64_t parts[PM_FILE_MAX_RANK] = { w->view.dim[turned ? 0 : 1] };
    char groups[PM_FILE_MAX_RANK + 2];
    int rows;

    *as = w->view;
    if (!rows_of(&x->view, last, order, &rows, parts + turned)) {
        for (int i = 0; i < last; i++)
            groups[i] = (char)('0' + i);
        groups[last] = ' ', groups[last + 1] = (char)('0' + last), groups[last + 2] = 0;
        *in = import_lay(m, x, groups);
        strcpy(order, turned ? "10" : "01");
        return true;
    }
    if (!turned)
        parts[rows] = w->view.dim[1];
    for (char *p = order; *p; p++)
        *p = (char)(*p + turned);
    order[rows] = (char)(turned ? '0' : '0' + rows);
    order[rows + 1] = 0;
    if (!view_reshape(as, rows + 1, parts)) {
        import_refuse(m, "a matrix that is not contiguous");
        return false;
    }
    *in = as_rows(m, x->node, x->view.dim[last]);
    return true;
}

/* Adds x [.., k] times w [k, n] (turned: [n, k]) + b. */
static int product(struct import *m, struct value *x, struct value *w, bool turned, double alpha,
                   struct value *b, double beta, const char *output)
{
    const int rank = x->view.rank;
    const int64_t n = w->view.dim[turned ? 0 : 1];
    int64_t dim[PM_FILE_MAX_RANK];
    char order[PM_FILE_MAX_RANK + 2], act[64];
    struct view as;
    struct pm_given weights, bias;
    struct pm_str spec = { 0 };
    struct pm_node *in, *y;

    if (x->view.dim[rank - 1] != w->view.dim[turned ? 1 : 0])
        return import_refuse(m, "a matrix of %lld rows for an input of %lld values",
                             (long long)w->view.dim[turned ? 1 : 0],
                             (long long)x->view.dim[rank - 1]);
    if (!give_bias(m, b, n, beta, &bias) || !rows_and_matrix(m, x, w, turned, &in, &as, order))
        return PM_OK;
    weights = import_given_view(m, w, &as, order, alpha, true);
    memcpy(dim, x->view.dim, sizeof dim);
    dim[rank - 1] = is_fresh(m) ? m->options->new_head : n;
    pm_str_add(&spec, "fully_connected units=%lld", (long long)dim[rank - 1]);
    import_activation(m, output, act);
    y = weighted(m, in, &weights, b ? &bias : NULL, act, spec.text);
    pm_str_free(&spec);
    const struct view out = view_plain(rank, dim);
    import_out_node(m, 0, y, &out);
    return PM_OK;
}

/* Adds beta * c to y; c has up to two axes and is broadcast. */
static struct pm_node *plus(struct import *m, struct pm_node *y, struct value *c, double beta)
{
    const int rank = c->view.rank;
    const int64_t dim[2] = { rank > 1 ? c->view.dim[0] : 1, rank > 0 ? c->view.dim[rank - 1] : 1 };
    struct value v = *c;
    struct pm_node *x;

    v.laid = NULL;
    if (rank > 2 || !view_reshape(&v.view, 2, dim)) {
        import_refuse(m, "a summand of %d axes", rank);
        return y;
    }
    x = import_lay(m, &v, "0 1");
    if (beta != 1)
        x = pm_net_add(m->net, import_name(m, "beta"), x, "affine scale=%.9g", beta);
    return pm_net_add_many(m->net, import_name(m, NULL), (struct pm_node *[]){ y, x }, 2, "add");
}

/* Gemm alpha a b + beta c, with a computed b. */
static int gemm_of_two(struct import *m, struct value *a, struct value *b, struct value *c,
                       double beta)
{
    const bool ta = pm_onnx_attr_int(m->n, "transA", 0) != 0;
    const bool tb = pm_onnx_attr_int(m->n, "transB", 0) != 0;
    const double alpha = (double)pm_onnx_attr_float(m->n, "alpha", 1);
    const bool sum = c->kind != VALUE_ABSENT && beta != 0;

    if (is_fresh(m))
        return import_refuse(m, "model.onnx_new_head: it has no weights to replace");
    if (a->view.rank != 2 || b->view.rank != 2)
        return import_refuse(m, "inputs with %d and %d axes", a->view.rank, b->view.rank);
    const int64_t dim[2] = { a->view.dim[ta ? 1 : 0], b->view.dim[tb ? 0 : 1] };
    const char *name = import_name(m, sum || alpha != 1 ? "product" : NULL);
    struct pm_node *in[2] = { import_lay(m, a, "0 1"), import_lay(m, b, "0 1") };
    struct pm_node *y = pm_net_add_many(m->net, name, in, 2, "matmul transpose_a=%s transpose_b=%s",
                                        ta ? "true" : "false", tb ? "true" : "false");
    if (alpha != 1)
        y = pm_net_add(m->net, import_name(m, sum ? "alpha" : NULL), y, "affine scale=%.9g", alpha);
    if (sum)
        y = plus(m, y, c, beta);
    const struct view out = view_plain(2, dim);
    import_out_node(m, 0, y, &out);
    return PM_OK;
}

int import_op_gemm(struct import *m)
{
    struct value *a = import_in(m, 0), *w = import_in(m, 1), *c = import_in(m, 2);
    const double alpha = (double)pm_onnx_attr_float(m->n, "alpha", 1);
    double beta = (double)pm_onnx_attr_float(m->n, "beta", 1);
    const bool turned = pm_onnx_attr_int(m->n, "transB", 0) != 0;
    struct value left = *a, same;

    if (a->kind != VALUE_NODE || !value_constant(w) || (c->kind == VALUE_NODE && beta != 0))
        return gemm_of_two(m, a, w, c, beta);
    if (w->view.rank != 2 || a->view.rank != 2)
        return import_refuse(m, "inputs with %d and %d axes", a->view.rank, w->view.rank);
    if (pm_onnx_attr_int(m->n, "transA", 0)) {
        static const int perm[] = { 1, 0 };
        view_transpose(&left.view, perm);
        left.laid = NULL;
    }
    if (c->kind == VALUE_ABSENT || beta == 0)
        c = NULL, beta = 0;
    if (c && view_count(&c->view) == 1 && w->view.dim[turned ? 0 : 1] != 1) {
        const double *x = import_numbers(m, c, 1);

        if (!x)
            return import_refuse(m, "a bias that is not a constant");
        same = *c; /* one number for all outputs */
        same.kind = VALUE_FILL;
        same.fill = *x;
        same.view = view_plain(1, &w->view.dim[turned ? 0 : 1]);
        c = &same;
    }
    return product(m, &left, w, turned, alpha, c, beta, m->n->out[0]);
}

/* MatMul of two computed values; their leading axes must be equal. */
static int two_computed(struct import *m, struct value *a, struct value *b)
{
    const int rank = a->view.rank;
    int64_t dim[PM_FILE_MAX_RANK];

    if (is_fresh(m))
        return import_refuse(m, "model.onnx_new_head: it has no weights to replace");
    if (rank != b->view.rank || rank < 2 || rank > PM_MAX_RANK)
        return import_refuse(m, "inputs with %d and %d axes", rank, b->view.rank);
    for (int i = 0; i < rank - 2; i++)
        if (a->view.dim[i] != b->view.dim[i])
            return import_refuse(m, "broadcasting along axis %d", i);
    memcpy(dim, a->view.dim, sizeof dim);
    dim[rank - 1] = b->view.dim[rank - 1];
    struct pm_node *in[2] = { import_lay_plain(m, a), import_lay_plain(m, b) };
    const struct view out = view_plain(rank, dim);
    import_out_node(m, 0, pm_net_add_many(m->net, import_name(m, NULL), in, 2, "matmul"), &out);
    return PM_OK;
}

int import_op_matmul(struct import *m)
{
    struct value *a = import_in(m, 0), *w = import_in(m, 1), *b;
    const char *output;

    if (value_constant(w) && w->view.rank == 2 && a->kind == VALUE_NODE && a->view.rank >= 2) {
        b = bias_of(m, 2, &output, w->view.dim[1]);
        return product(m, a, w, false, 1, b, 1, output);
    }
    return two_computed(m, a, w);
}

/* ---- prelu ------------------------------------------------------------------------------- */

int import_op_prelu(struct import *m)
{
    struct value *x = import_in(m, 0), *s = import_in(m, 1);
    const int64_t channels = x->view.rank > 1 ? x->view.dim[1] : 0, count = view_count(&s->view);
    const struct view flat = view_plain(1, &count);
    const char *groups = import_channels_last(x->view.rank);
    struct pm_given given;

    if (!value_constant(s) || (count != 1 && count != channels) || x->view.rank < 2 ||
        x->view.rank > 6)
        return import_refuse(m, "slopes that are neither one number nor one number per channel");
    given = import_given_view(m, s, &flat, "0", 1, true);
    struct pm_node *in = import_lay(m, x, groups);
    m->net->given = &given, m->net->given_count = 1;
    struct pm_node *y = pm_net_add(m->net, import_name(m, NULL), in, "prelu shared=%s",
                                   count == 1 ? "true" : "false");
    m->net->given_count = 0;
    const struct view out = view_ordered(x->view.rank, x->view.dim, groups);
    import_out_node(m, 0, y, &out);
    return PM_OK;
}
