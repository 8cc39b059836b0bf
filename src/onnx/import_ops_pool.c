/* import_ops_pool: pools, reductions, resizing. A mean over one run of axes in memory, with other
 * axes on both sides, becomes a pool of [before, reduced, 1, behind]. Other reductions become
 * layers of their own. */
#include "onnx/import_ops.h"

#include <string.h>

static int pool(struct import *m, const char *layer)
{
    static const int64_t none[2] = { 0, 0 };
    struct value *x = import_in(m, 0);
    struct import_window w;
    struct pm_str spec = { 0 };

    if (!import_window(m, &x->view, none, &w))
        return PM_OK;
    if (w.kernel[0] < 1 || w.kernel[1] < 1)
        return import_refuse(m, "kernel_shape is missing");
    const bool dilated = w.dilation[0] != 1 || w.dilation[1] != 1;
    if (dilated && strcmp(layer, "max_pool") != 0)
        return import_refuse(m, "dilations");
    pm_str_add(&spec, "%s", layer);
    import_window_text(&w, dilated, &spec);
    if (pm_onnx_attr_int(m->n, "ceil_mode", 0))
        pm_str_add(&spec, " ceil=true");
    if (pm_onnx_attr_int(m->n, "count_include_pad", 0) && strcmp(w.padding, "explicit") == 0)
        pm_str_add(&spec, " count_pad=true");
    import_out_images(
        m, 0,
        pm_net_add(m->net, import_name(m, NULL), import_lay(m, x, "0 2 3 1"), "%s", spec.text));
    pm_str_free(&spec);
    return PM_OK;
}

int import_op_max_pool(struct import *m)
{
    if (m->n->out_count > 1 && m->n->out[1][0] && import_read_by_any(m, m->n->out[1]))
        return import_refuse(m, "its second output, the indices of the maxima");
    return pool(m, "max_pool");
}

int import_op_average_pool(struct import *m)
{
    return pool(m, "avg_pool");
}

/* ---- reductions ---------------------------------------------------------------------------- */

/* Groups the axes in memory order: neighbouring axes that are all reduced or all kept form one
 * group. Returns the number of groups. mask: one bit per group, set if reduced. */
static int reduction_groups(const struct view *v, const bool *gone,
                            char groups[2 * PM_FILE_MAX_RANK], unsigned *mask)
{
    char order[PM_FILE_MAX_RANK + 1];
    int n = 0, count = 0;
    bool goes = false;

    *mask = 0;
    view_order(v, order);
    for (const char *p = order; *p; groups[n++] = *p++) {
        if (v->dim[*p - '0'] > 1 && (count == 0 || goes != gone[*p - '0'])) {
            if (count)
                groups[n++] = ' ';
            goes = gone[*p - '0'];
            *mask |= (unsigned)goes << count++;
        }
    }
    groups[n] = 0;
    return count;
}

/* Returns the reduction of x over its axes in mask. */
static struct pm_node *reduced(struct import *m, struct pm_node *x, int count, unsigned mask)
{
    const char *op = m->n->op, *last = import_name(m, NULL);
    const bool root = strcmp(op, "ReduceL2") == 0,
               squares = root || strcmp(op, "ReduceSumSquare") == 0;
    const char *layer = strstr(op, "Max")                          ? "reduce_max"
                        : strstr(op, "Min")                        ? "reduce_min"
                        : squares || strcmp(op, "ReduceSum") == 0 ? "reduce_sum" : "reduce_mean";
    const int *d = x->out_shape.dim;
    struct pm_str axes = { 0 };

    if (strcmp(layer, "reduce_mean") == 0 && count == 3 && mask == 2) { /* the pixels of images */
        x = pm_net_add(m->net, import_name(m, "in"), x, "reshape shape=[%d,%d,1,%d]", d[0], d[1],
                       d[2]);
        return pm_net_add(m->net, last, x, "global_pool");
    }
    for (int i = 0; i < count; i++)
        if (mask >> i & 1)
            pm_str_add(&axes, "%s%d", axes.text ? "," : "", i);
    if (squares)
        x = pm_net_add(m->net, import_name(m, "square"), x, "power exponent=2");
    if (mask)
        x = pm_net_add(m->net, root ? import_name(m, "sum") : last, x, "%s axes=[%s]", layer,
                       axes.text);
    if (root)
        x = pm_net_add(m->net, last, x, "sqrt");
    pm_str_free(&axes);
    return x;
}

static int reduce(struct import *m, struct value *v, const bool *gone, bool keep)
{
    char groups[2 * PM_FILE_MAX_RANK];
    int64_t dim[PM_FILE_MAX_RANK], rest[PM_FILE_MAX_RANK];
    unsigned mask;
    const int count = reduction_groups(&v->view, gone, groups, &mask);
    int rank = 0;
    struct pm_node *y = reduced(m, import_lay(m, v, groups), count, mask);

    for (int i = 0; i < v->view.rank; i++) {
        dim[i] = gone[i] ? 1 : v->view.dim[i];
        if (!gone[i] || keep)
            rest[rank++] = dim[i];
    }
    struct view w = view_ordered(v->view.rank, dim, groups);
    view_reshape(&w, rank, rest);
    import_out_node(m, 0, y, &w);
    return PM_OK;
}

int import_op_reduce(struct import *m)
{
    struct value *v = import_in(m, 0);
    bool gone[PM_FILE_MAX_RANK] = { false };
    int64_t axes[16];
    const int count = import_ints(m, 1, "axes", axes);

    if (count < 0 || v->kind != VALUE_NODE)
        return import_refuse(m, "axes that are not constants");
    if (count == 0 && pm_onnx_attr_int(m->n, "noop_with_empty_axes", 0))
        return import_op_identity(m);
    for (int i = 0; i < v->view.rank; i++)
        gone[i] = count == 0;
    for (int i = 0; i < count; i++) {
        const int64_t a = axes[i] < 0 ? axes[i] + v->view.rank : axes[i];

        if (a < 0 || a >= v->view.rank)
            return import_refuse(m, "axis %lld of a value with %d axes", (long long)axes[i],
                                 v->view.rank);
        gone[a] = true;
    }
    return reduce(m, v, gone, pm_onnx_attr_int(m->n, "keepdims", 1) != 0);
}

static int global(struct import *m)
{
    struct value *v = import_in(m, 0);
    bool gone[PM_FILE_MAX_RANK] = { false };

    if (v->kind != VALUE_NODE || v->view.rank < 3)
        return import_refuse(m, "a value of %d axes", v->view.rank);
    for (int i = 2; i < v->view.rank; i++)
        gone[i] = true;
    return reduce(m, v, gone, true);
}

int import_op_global_average_pool(struct import *m)
{
    return global(m);
}

int import_op_global_max_pool(struct import *m)
{
    return global(m);
}

/* ---- sizes ---------------------------------------------------------------------------------- */

int import_op_pad(struct import *m)
{
    struct value *x = import_in(m, 0);
    const char *mode = pm_onnx_attr_text(m->n, "mode", "constant");
    const double *fill = import_numbers(m, import_in(m, 2), 1);
    const double value = fill ? *fill : (double)pm_onnx_attr_float(m->n, "value", 0);
    int64_t given[16], axes[16], pad[2 * PM_FILE_MAX_RANK] = { 0 };
    const int count = import_ints(m, 1, "pads", given), named = import_ints(m, 3, NULL, axes);
    const int rank = x->view.rank, part = named > 0 ? named : rank;
    bool any = false;
    int padded = 0; /* bit mask of axes */

    if (count != 2 * part || x->kind != VALUE_NODE ||
        (import_in(m, 2)->kind != VALUE_ABSENT && !fill))
        return import_refuse(m, "pads that are not constants, or do not fit");
    for (int i = 0; i < part; i++) {
        const int64_t a = named <= 0 ? i : axes[i] < 0 ? axes[i] + rank : axes[i];

        if (a < 0 || a >= rank)
            return import_refuse(m, "axis %lld of a value with %d axes", (long long)a, rank);
        pad[a] = given[i], pad[rank + a] = given[part + i];
        any |= given[i] || given[part + i];
        padded |= given[i] || given[part + i] ? 1 << a : 0;
        if (given[i] < 0 || given[part + i] < 0)
            return import_refuse(m, "negative pads");
    }
    if (!any)
        return import_op_identity(m);
    const bool last = padded & 1 << 1; /* [n, h, w, c] */
    if (rank != 4 || padded & (last ? 1 | 1 << 3 : 1))
        return import_refuse(m, "pads of other axes than an image's height and width");
    const int64_t *p = pad + (last ? 1 : 2), *dim = x->view.dim;
    const char *groups = last ? "0 1 2 3" : import_channels_last(4);
    struct pm_node *y = pm_net_add(
        m->net, import_name(m, NULL), import_lay(m, x, groups),
        "pad pad=[%lld,%lld,%lld,%lld] mode=%s value=%.9g", (long long)p[0], (long long)p[4],
        (long long)p[1], (long long)p[5], mode, value);
    const int64_t out[4] = { dim[0], dim[1] + pad[1] + pad[5], dim[2] + pad[2] + pad[6],
                             dim[3] + pad[3] + pad[7] };
    const struct view w = view_ordered(4, out, groups);
    import_out_node(m, 0, y, &w);
    return PM_OK;
}

/* Reads the scales of height and width from an input or, in Upsample's oldest form, an
 * attribute. */
static bool scales_of(struct import *m, int input, double out[2])
{
    const struct pm_onnx_attr *a = pm_onnx_attr(m->n, "scales");
    struct value *v = import_in(m, input);
    const double *x = import_numbers(m, v, PM_FILE_MAX_RANK);
    double all[4];

    if (a && a->type == PM_ONNX_FLOATS && a->count == 4) {
        for (int i = 0; i < 4; i++)
            all[i] = (double)a->floats[i];
    } else if (x && view_count(&v->view) == 4)
        memcpy(all, x, sizeof all);
    else
        return false;
    out[0] = all[2], out[1] = all[3];
    return all[0] == 1 && all[1] == 1;
}

int import_op_resize(struct import *m)
{
    struct value *x = import_in(m, 0);
    const bool old = strcmp(m->n->op, "Upsample") == 0 || m->model->opset < 11;
    const char *mode = pm_onnx_attr_text(m->n, "mode", "nearest");
    const char *place = pm_onnx_attr_text(m->n, "coordinate_transformation_mode",
                                          old ? "asymmetric" : "half_pixel");
    const char *method = strcmp(mode, "linear") == 0 ? "bilinear" : mode;
    int64_t size[16];
    double scale[2];
    const int sizes = old ? 0 : import_ints(m, 3, NULL, size);
    struct pm_str spec = { 0 };

    if (x->view.rank != 4 || x->kind != VALUE_NODE || pm_onnx_attr(m->n, "axes") ||
        pm_onnx_attr_int(m->n, "antialias", 0) || pm_onnx_attr_int(m->n, "exclude_outside", 0) ||
        strcmp(pm_onnx_attr_text(m->n, "keep_aspect_ratio_policy", "stretch"), "stretch") != 0)
        return import_refuse(m, "an input other than images, or axes, antialias, exclude_outside "
                                "or keep_aspect_ratio_policy");
    if (strcmp(place, "tf_crop_and_resize") == 0 || strcmp(place, "half_pixel_symmetric") == 0)
        return import_refuse(m, "coordinate_transformation_mode %s", place);
    pm_str_add(&spec, "resize method=%s coordinates=%s rounding=%s cubic=%.9g", method, place,
               pm_onnx_attr_text(m->n, "nearest_mode", old ? "floor" : "round_prefer_floor"),
               (double)pm_onnx_attr_float(m->n, "cubic_coeff_a", -0.75f));
    if (sizes == 4 && size[1] == x->view.dim[1])
        pm_str_add(&spec, " size=[%lld,%lld]", (long long)size[2], (long long)size[3]);
    else if (sizes == 0 && scales_of(m, old ? 1 : 2, scale))
        pm_str_add(&spec, " scale=[%.9g,%.9g]", scale[0], scale[1]);
    else {
        pm_str_free(&spec);
        return import_refuse(m, "sizes or scales that are not constants of height and width");
    }
    import_out_images(
        m, 0,
        pm_net_add(m->net, import_name(m, NULL), import_lay(m, x, "0 2 3 1"), "%s", spec.text));
    pm_str_free(&spec);
    return PM_OK;
}

bool import_repeats(const struct import *m, const struct value *v, int rank, const int64_t *dim)
{
    bool same = v->view.rank == rank && rank > 1 && v->view.dim[0] == 1 && dim[0] == m->batch;

    for (int i = 1; same && i < rank; i++)
        same = v->view.dim[i] == dim[i];
    return same && v->kind == VALUE_TENSOR && !v->integer;
}

/* Whether the value's only reader combines it with a value of this shape. That reader broadcasts
 * it, so no Expand is needed. */
static bool meets(struct import *m, int rank, const int64_t *dim)
{
    static const char *const ops[] = { "Add", "Sub", "Mul", "Div" };
    const struct pm_onnx_node *n = import_only_reader(m, m->n->out[0]);
    bool any = false;

    for (size_t i = 0; n && n->in_count == 2 && i < PM_COUNT(ops); i++)
        any |= strcmp(n->op, ops[i]) == 0;
    if (!any)
        return false;
    const struct value *other = import_value(m, n->in[strcmp(n->in[0], m->n->out[0]) == 0]);
    return other->kind == VALUE_NODE && other->view.rank == rank &&
           memcmp(other->view.dim, dim, sizeof *dim * (size_t)rank) == 0;
}

/* Expands weights along the batch by adding them to a zero computed from each image. So the weights
 * are independent of the batch size. */
int import_op_expand(struct import *m)
{
    struct value *v = import_in(m, 0), zero;
    int64_t dim[16], first[PM_FILE_MAX_RANK];
    const int rank = import_ints(m, 1, NULL, dim);
    struct pm_node *in[2], *x = m->net->nodes[0];

    for (int i = 0; i < rank && rank == v->view.rank; i++)
        dim[i] = dim[i] == 1 ? v->view.dim[i] : dim[i];
    if (v->kind == VALUE_NODE && rank == v->view.rank && meets(m, rank, dim))
        return import_op_identity(m);
    if (rank < 2 || rank > PM_MAX_RANK || !import_repeats(m, v, rank, dim) ||
        x->out_shape.rank != 4)
        return import_refuse(m, "a computed input (except before an addition, subtraction, "
                                "multiplication or division with a value of that shape)");
    for (int i = 0; i < rank; i++)
        first[i] = i == 0 ? m->batch : 1;
    x = pm_net_add(m->net, import_name(m, "first"), x, "slice begin=[0,0,0,0] size=[-1,1,1,1]");
    x = pm_net_add(m->net, import_name(m, "zero"), x, "affine scale=0");
    zero = (struct value){ .kind = VALUE_NODE, .node = x, .view = view_plain(rank, first) };
    in[0] = import_lay_plain(m, &zero), in[1] = import_lay_plain(m, v);
    const struct view out = view_plain(rank, dim);
    import_out_node(m, 0, pm_net_add_many(m->net, import_name(m, NULL), in, 2, "add"), &out);
    return PM_OK;
}
