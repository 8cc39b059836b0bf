/* import_ops_view: operators that move, cut and join values. Operators that only change the view
 * add no layer. */
#include "onnx/import_ops.h"

#include <math.h>
#include <string.h>

/* ---- views --------------------------------------------------------------------------------- */

/* Output 0 is v with another shape of equal element count. */
static int reshaped(struct import *m, struct value *v, int rank, const int64_t *dim)
{
    const int64_t count = view_count(&v->view);
    struct view w = v->view;
    struct value whole = *v;
    char order[PM_FILE_MAX_RANK + 1] = "";

    if (count == 0 || view_reshape(&w, rank, dim)) {
        if (count == 0)
            w = view_plain(rank, dim);
        import_out_view(m, 0, v, &w);
        return PM_OK;
    }
    for (int i = 0; i < v->view.rank; i++)
        order[i] = (char)('0' + i), order[i + 1] = 0;
    if (v->kind == VALUE_NODE)
        whole.node = import_lay_plain(m, v);
    else if (!view_lies(&v->view, order)) {
        whole.numbers = import_numbers(m, v, 1 << 24);
        whole.kind = VALUE_NUMBERS;
        if (!whole.numbers)
            return import_refuse(m,
                                 "a constant of %lld elements is reshaped after it was transposed",
                                 (long long)count);
    }
    w = view_plain(1, &count);
    view_reshape(&w, rank, dim);
    import_out_view(m, 0, &whole, &w);
    return PM_OK;
}

int import_op_identity(struct import *m)
{
    struct value *v = import_in(m, 0);

    import_out_view(m, 0, v, &v->view);
    return PM_OK;
}

/* Replaces a fixed batch in the model's constants by ours. */
static void replace_batch(struct import *m, const struct view *v, int rank, int64_t *dim)
{
    const bool leads = v->rank > 0 && v->dim[0] == m->batch;

    if (leads && rank > 0 && m->model_batch > 0 && dim[0] == m->model_batch)
        dim[0] = m->batch;
}

int import_op_reshape(struct import *m)
{
    struct value *v = import_in(m, 0);
    const struct view *x = &v->view;
    int64_t dim[16], known = 1;
    const int rank = import_ints(m, 1, "shape", dim);
    const bool zero_is_zero = pm_onnx_attr_int(m->n, "allowzero", 0) != 0;
    int rest = -1;
    char text[96];

    if (rank < 0 || rank > PM_FILE_MAX_RANK)
        return import_refuse(m, "a shape that is not a constant of at most %d numbers",
                             PM_FILE_MAX_RANK);
    replace_batch(m, x, rank, dim);
    for (int i = 0; i < rank; i++) {
        if (dim[i] == 0 && !zero_is_zero && i < x->rank)
            dim[i] = x->dim[i];
        if (dim[i] == -1 && rest < 0)
            rest = i;
        else if (dim[i] < 0 || __builtin_mul_overflow(known, dim[i], &known))
            return import_refuse(m, "a shape that is too large or has a negative axis");
    }
    if (rest >= 0 && known > 0)
        dim[rest] = view_count(x) / known, known *= dim[rest];
    if (known != view_count(x))
        return import_refuse(m,
                             "its shape does not have as many elements as %s: the model may be for "
                             "another batch or input size",
                             view_text(x, text));
    return reshaped(m, v, rank, dim);
}

int import_op_flatten(struct import *m)
{
    struct value *v = import_in(m, 0);
    int64_t axis = import_attr_int(m, "axis", 1), dim[2] = { 1, 1 };

    axis += axis < 0 ? v->view.rank : 0;
    for (int i = 0; i < v->view.rank; i++)
        dim[i >= axis] *= v->view.dim[i];
    return reshaped(m, v, 2, dim);
}

int import_op_squeeze(struct import *m)
{
    struct value *v = import_in(m, 0);
    int64_t axes[16], dim[PM_FILE_MAX_RANK];
    const int count = import_ints(m, 1, "axes", axes);
    int rank = 0;

    if (count < 0)
        return import_refuse(m, "axes that are not constants");
    for (int i = 0; i < v->view.rank; i++) {
        bool gone = count == 0 && v->view.dim[i] == 1;

        for (int k = 0; k < count; k++)
            gone |= axes[k] == i || axes[k] + v->view.rank == i;
        if (gone && v->view.dim[i] != 1)
            return import_refuse(m, "axis %d has %lld elements", i, (long long)v->view.dim[i]);
        if (!gone)
            dim[rank++] = v->view.dim[i];
    }
    return reshaped(m, v, rank, dim);
}

int import_op_unsqueeze(struct import *m)
{
    struct value *v = import_in(m, 0);
    int64_t axes[16], dim[PM_FILE_MAX_RANK];
    const int count = import_ints(m, 1, "axes", axes);
    const int rank = v->view.rank + count;
    int next = 0;

    if (count < 0 || rank > PM_FILE_MAX_RANK)
        return import_refuse(m, "axes that are not constants, or more than %d of them",
                             PM_FILE_MAX_RANK);
    for (int i = 0; i < rank; i++) {
        bool fresh = false;

        for (int k = 0; k < count; k++)
            fresh |= axes[k] == i || axes[k] + rank == i;
        if (!fresh && next >= v->view.rank)
            return import_refuse(m, "axes that do not fit");
        dim[i] = fresh ? 1 : v->view.dim[next++];
    }
    return reshaped(m, v, rank, dim);
}

int import_op_transpose(struct import *m)
{
    struct value *v = import_in(m, 0);
    struct view w = v->view;
    int64_t given[16];
    int perm[PM_FILE_MAX_RANK];
    const int count = import_ints(m, -1, "perm", given);
    unsigned seen = 0;

    for (int i = 0; i < w.rank; i++) {
        perm[i] = count > 0 ? (int)given[i] : w.rank - 1 - i;
        if (perm[i] < 0 || perm[i] >= w.rank || (count > 0 && count != w.rank))
            return import_refuse(m, "perm does not name each axis once");
        seen |= 1u << perm[i];
    }
    if (seen != (1u << w.rank) - 1)
        return import_refuse(m, "perm does not name each axis once");
    view_transpose(&w, perm);
    import_out_view(m, 0, v, &w);
    return PM_OK;
}

int import_op_cast(struct import *m)
{
    const int64_t to = pm_onnx_attr_int(m->n, "to", 1);

    if (to != 1 && to != 10 && to != 11 && to != 16)
        return import_refuse(m, "a cast of computed values to integers (type %lld)", (long long)to);
    return import_op_identity(m);
}

int import_op_dropout(struct import *m)
{
    struct value *v = import_in(m, 0);
    const double *ratio = import_numbers(m, import_in(m, 1), 1);
    const double drop = ratio ? *ratio : (double)pm_onnx_attr_float(m->n, "ratio", 0.5f);
    struct pm_node *x, *y;

    if (v->kind != VALUE_NODE || drop == 0)
        return import_op_identity(m);
    if (drop < 0 || drop > 0.999)
        return import_refuse(m, "a ratio of %g (allowed are 0..0.999)", drop);
    x = v->node;
    y = pm_net_add(m->net, import_name(m, NULL), x, "dropout keep=%.9g", 1 - drop);
    import_out_node(m, 0, y, &v->view);
    return PM_OK;
}

/* ---- parts --------------------------------------------------------------------------------- */

/* Writes the axes in memory order, with `axis` as its own group; *at is the group's place. The
 * caller's import_lay transposes the value if its axes are interleaved in memory. */
static void around_axis(const struct view *v, int axis, char groups[2 * PM_FILE_MAX_RANK + 1],
                        int *at)
{
    char order[PM_FILE_MAX_RANK + 1];
    int n = 0, count = 0;

    view_order(v, order);
    *at = 0;
    for (const char *p = order; *p; p++) {
        const bool own = *p == '0' + axis, after = p > order && p[-1] == '0' + axis;

        if (p > order && (own || after))
            groups[n++] = ' ', count++;
        if (own)
            *at = count;
        groups[n++] = *p;
    }
    groups[n] = 0;
}

static struct view in_order(int rank, const int64_t *dim, const char *groups)
{
    return view_ordered(rank, dim, groups);
}

/* Cuts elements begin..begin+count-1 along an axis, as output i. */
static void cut(struct import *m, int i, struct value *v, int axis, int64_t begin, int64_t count)
{
    char groups[2 * PM_FILE_MAX_RANK + 1];
    struct pm_str spec = { 0 };
    int64_t dim[PM_FILE_MAX_RANK];
    int at;

    around_axis(&v->view, axis, groups, &at);
    struct pm_node *x = import_lay(m, v, groups);
    pm_str_add(&spec, "slice begin=[%s%s%lld] size=[%s%s%lld]", at > 0 ? "0," : "",
               at > 1 ? "0," : "", (long long)begin, at > 0 ? "-1," : "", at > 1 ? "-1," : "",
               (long long)count);
    struct pm_node *y = pm_net_add(m->net, import_name(m, NULL), x, "%s", spec.text);
    pm_str_free(&spec);
    memcpy(dim, v->view.dim, sizeof dim);
    dim[axis] = count;
    const struct view w = in_order(v->view.rank, dim, groups);
    import_out_node(m, i, y, &w);
}

/* Splits an axis into consecutive parts, one per output. */
static void cut_all(struct import *m, struct value *v, int axis, int parts, const int64_t *size)
{
    char groups[2 * PM_FILE_MAX_RANK + 1];
    struct pm_str spec = { 0 };
    int64_t dim[PM_FILE_MAX_RANK];
    int at;

    around_axis(&v->view, axis, groups, &at);
    struct pm_node *x = import_lay(m, v, groups);
    pm_str_add(&spec, "split axis=%d sizes=[", at);
    for (int i = 0; i < parts; i++)
        pm_str_add(&spec, "%s%lld", i ? "," : "", (long long)size[i]);
    struct pm_node *y = pm_net_add(m->net, import_name(m, NULL), x, "%s]", spec.text);
    pm_str_free(&spec);
    memcpy(dim, v->view.dim, sizeof dim);
    for (int i = 0; i < parts; i++) {
        dim[axis] = size[i];
        const struct view w = in_order(v->view.rank, dim, groups);
        import_out_node(m, i, y->out[i], &w);
    }
}

bool import_ranges(struct import *m, struct import_range range[PM_FILE_MAX_RANK])
{
    const struct view *v = &import_in(m, 0)->view;
    int64_t begin[16], end[16], axes[16], step[16];
    const int count = import_ints(m, 1, "starts", begin), ends = import_ints(m, 2, "ends", end);
    int named = import_ints(m, 3, "axes", axes);
    const int steps = import_ints(m, 4, NULL, step);

    for (int i = 0; i < v->rank; i++)
        range[i] = (struct import_range){ 0, v->dim[i], 1 };
    if (count <= 0 || ends != count || named < 0 || steps < 0 || (named && named != count) ||
        (steps && steps != count))
        return false;
    for (int i = 0; i < count; i++) {
        const int64_t axis = !named ? i : axes[i] < 0 ? axes[i] + v->rank : axes[i];
        const int64_t s = steps ? step[i] : 1;

        if (axis < 0 || axis >= v->rank || s == 0 || s == INT64_MIN)
            return false;
        const int64_t size = v->dim[axis], low = s > 0 ? 0 : -1, high = s > 0 ? size : size - 1;
        int64_t a = begin[i] < 0 ? begin[i] + (begin[i] < -size ? 0 : size) : begin[i];
        int64_t b = end[i] < 0 ? (end[i] < -size ? low : end[i] + size) : end[i];
        a = begin[i] < -size ? low + (s < 0) : a;
        a = a < 0 ? 0 : a > high ? high : a;
        b = b < low ? low : b > high + (s < 0) ? high + (s < 0) : b;
        const int64_t span = s > 0 ? b - a : a - b, unit = s > 0 ? s : -s;
        range[axis] = (struct import_range){ a, span > 0 ? (span + unit - 1) / unit : 0, s };
    }
    return true;
}

/* Takes every step-th element: splits the axis into [size / step, step] and takes one index of the
 * second. */
static int every(struct import *m, struct value *v, int axis, const struct import_range *r)
{
    const int64_t size = v->view.dim[axis];
    int64_t dim[PM_FILE_MAX_RANK + 1];
    struct view w = v->view;
    struct value cutted = *v;

    if (r->step < 1 || size % r->step || r->begin >= r->step || r->count != size / r->step ||
        w.rank >= PM_FILE_MAX_RANK)
        return import_refuse(m, "a step of %lld along an axis of %lld elements, starting at %lld",
                             (long long)r->step, (long long)size, (long long)r->begin);
    for (int i = 0, k = 0; i < w.rank; i++)
        if (i == axis)
            dim[k++] = size / r->step, dim[k++] = r->step;
        else
            dim[k++] = v->view.dim[i];
    if (!view_reshape(&w, w.rank + 1, dim))
        return import_refuse(m, "a step along an axis that is not contiguous");
    cutted.view = w;
    cutted.laid = NULL;
    cut(m, 0, &cutted, axis + 1, r->begin, 1);
    struct value taken = *import_in(m, 0);
    taken = *import_value(m, m->n->out[0]);
    for (int i = axis + 1; i < v->view.rank; i++)
        dim[i] = v->view.dim[i];
    return reshaped(m, &taken, v->view.rank, dim);
}

/* Reverses an axis. */
static void mirror(struct import *m, struct value *v, int axis)
{
    char groups[2 * PM_FILE_MAX_RANK + 1];
    int at;

    around_axis(&v->view, axis, groups, &at);
    struct pm_node *x = import_lay(m, v, groups);
    struct pm_node *y = pm_net_add(m->net, import_name(m, "mirrored"), x, "flip axis=%d", at);
    const struct view w = in_order(v->view.rank, v->view.dim, groups);

    import_out_node(m, 0, y, &w);
}

/* Takes elements backwards from a place. */
static void back(struct import *m, struct value *v, int axis, const struct import_range *r)
{
    struct value part = *v;

    if (r->count < v->view.dim[axis]) {
        cut(m, 0, v, axis, r->begin - r->count + 1, r->count);
        part = *import_value(m, m->n->out[0]);
    }
    mirror(m, &part, axis);
}

int import_op_slice(struct import *m)
{
    struct value v = *import_in(m, 0);
    struct import_range range[PM_FILE_MAX_RANK];
    bool any = false;
    int err = PM_OK;

    if (!import_ranges(m, range))
        return import_refuse(m, "ranges that are not constants, or do not fit");
    for (int i = 0; i < v.view.rank && !m->refused_now; i++) {
        if (range[i].count == v.view.dim[i] && range[i].step > 0)
            continue;
        if (range[i].count < 1)
            return import_refuse(m, "a range that leaves axis %d empty", i);
        if (range[i].step == 1)
            cut(m, 0, &v, i, range[i].begin, range[i].count);
        else if (range[i].step == -1)
            back(m, &v, i, &range[i]);
        else
            PM_TRY(every(m, &v, i, &range[i]));
        v = *import_value(m, m->n->out[0]);
        any = true;
    }
    if (!any)
        import_op_identity(m);
out:
    return err;
}

int import_op_split(struct import *m)
{
    struct value *v = import_in(m, 0);
    int64_t size[16], axis = import_attr_int(m, "axis", 0), at = 0;
    const int parts = m->n->out_count;
    int given = import_ints(m, 1, "split", size);

    axis += axis < 0 ? v->view.rank : 0;
    if (axis < 0 || axis >= v->view.rank || parts > 16 || given < 0 || (given && given != parts))
        return import_refuse(m, "more than 16 parts, or parts that do not fit");
    const int64_t whole = v->view.dim[axis], each = (whole + parts - 1) / parts;
    for (int i = 0; i < parts; i++, at += each)
        if (!given)
            size[i] = at + each < whole ? each : whole - at;
    at = 0;
    for (int i = 0; i < parts; at += size[i++])
        if (size[i] < 1 || at + size[i] > whole)
            return import_refuse(m, "parts that do not fit");
    if (at == whole && parts <= PM_MAX_NODE_OUTPUTS) {
        cut_all(m, v, (int)axis, parts, size);
        return PM_OK;
    }
    at = 0;
    for (int i = 0; i < parts; at += size[i++])
        cut(m, i, v, (int)axis, at, size[i]);
    return PM_OK;
}

/* Gather of a single index, or of consecutive indices. */
int import_op_gather(struct import *m)
{
    struct value *v = import_in(m, 0), *index = import_in(m, 1);
    const double *at = import_numbers(m, index, 65536);
    const int64_t count = at ? view_count(&index->view) : 0;
    int64_t axis = import_attr_int(m, "axis", 0), dim[PM_FILE_MAX_RANK];

    axis += axis < 0 ? v->view.rank : 0;
    if (v->kind != VALUE_NODE || count < 1 || axis < 0 || axis >= v->view.rank ||
        v->view.rank - 1 + index->view.rank > PM_FILE_MAX_RANK)
        return import_refuse(m,
                             "indices that are not constants, or axis %lld of a value with %d axes",
                             (long long)axis, v->view.rank);
    for (int64_t i = 1; i < count; i++)
        if (at[i] != at[0] + (double)i)
            return import_refuse(m, "indices that are not consecutive");
    const int64_t size = v->view.dim[axis];
    if (!(fabs(at[0]) <= (double)size))
        return import_refuse(m, "index %g on an axis of %lld elements", at[0], (long long)size);
    const int64_t first = (int64_t)at[0] + (at[0] < 0 ? size : 0);
    if (first < 0 || first + count > size)
        return import_refuse(m, "index %lld on an axis of %lld elements", (long long)first,
                             (long long)size);
    cut(m, 0, v, (int)axis, first, count);
    struct value taken = *import_value(m, m->n->out[0]);
    return reshaped(m, &taken, view_gathered(&v->view, (int)axis, &index->view, dim), dim);
}

/* ---- joins --------------------------------------------------------------------------------- */

enum { AT_ONCE = PM_MAX_JOINED };

int import_op_concat(struct import *m)
{
    const int count = m->n->in_count;
    const struct value *lead = import_in(m, 0);
    int64_t axis = import_attr_int(m, "axis", 1), dim[PM_FILE_MAX_RANK];
    char groups[2 * PM_FILE_MAX_RANK + 1];
    struct pm_node *part[AT_ONCE];
    int at, n = 0;

    for (int i = 1; i < count && value_constant(lead); i++)
        lead = import_in(m, i);
    axis += axis < 0 ? lead->view.rank : 0;
    if (axis < 0 || axis >= lead->view.rank)
        return import_refuse(m, "axis out of range");
    memcpy(dim, lead->view.dim, sizeof dim);
    dim[axis] = 0;
    around_axis(&lead->view, (int)axis, groups, &at);
    for (int i = 0; i < count; i++) {
        struct value *v = import_in(m, i);

        if (v->view.rank != lead->view.rank)
            return import_refuse(m, "inputs with different numbers of axes");
        if (v->view.dim[axis] == 0)
            continue;
        if (n == AT_ONCE) {
            part[0] =
                pm_net_add_many(m->net, import_name(m, "part"), part, n, "concat axis=%d", at);
            n = 1;
        }
        dim[axis] += v->view.dim[axis];
        part[n++] = import_lay(m, v, groups);
    }
    if (n == 0)
        return import_refuse(m, "no inputs to concatenate");
    struct pm_node *y = n == 1 ? part[0] : pm_net_add_many(m->net, import_name(m, NULL), part, n,
                                                           "concat axis=%d", at);
    const struct view w = in_order(lead->view.rank, dim, groups);
    import_out_node(m, 0, y, &w);
    return PM_OK;
}

/* DepthToSpace: a view that turns blocks of channels into blocks of pixels. */
int import_op_depth_to_space(struct import *m)
{
    struct value *v = import_in(m, 0);
    const int64_t b = import_attr_int(m, "blocksize", 1), *d = v->view.dim;
    const bool crd = strcmp(pm_onnx_attr_text(m->n, "mode", "DCR"), "CRD") == 0;
    static const int dcr_perm[] = { 0, 3, 4, 1, 5, 2 }, crd_perm[] = { 0, 1, 4, 2, 5, 3 };
    struct view w = v->view;

    if (w.rank != 4 || b < 1 || b > 1024 || d[1] % (b * b))
        return import_refuse(m, "a block size of %lld does not fit", (long long)b);
    const int64_t c = d[1] / (b * b), out[] = { d[0], c, d[2] * b, d[3] * b };
    const int64_t cut_dcr[] = { d[0], b, b, c, d[2], d[3] },
                  cut_crd[] = { d[0], c, b, b, d[2], d[3] };
    if (!view_reshape(&w, 6, crd ? cut_crd : cut_dcr))
        return import_refuse(m, "channels that are not contiguous");
    view_transpose(&w, crd ? crd_perm : dcr_perm);
    struct value split = *v;
    split.view = w;
    split.laid = NULL;
    return reshaped(m, &split, 4, out);
}

int import_op_space_to_depth(struct import *m)
{
    struct value *v = import_in(m, 0);
    const int64_t b = import_attr_int(m, "blocksize", 1), *d = v->view.dim;
    static const int perm[] = { 0, 3, 5, 1, 2, 4 };
    struct view w = v->view;

    if (w.rank != 4 || b < 1 || b > 1024 || d[2] % b || d[3] % b)
        return import_refuse(m, "a block size of %lld does not fit", (long long)b);
    const int64_t out[] = { d[0], d[1] * b * b, d[2] / b, d[3] / b };
    const int64_t parts[] = { d[0], d[1], d[2] / b, b, d[3] / b, b };
    if (!view_reshape(&w, 6, parts))
        return import_refuse(m, "pixels that are not contiguous");
    view_transpose(&w, perm);
    struct value split = *v;
    split.view = w;
    split.laid = NULL;
    return reshaped(m, &split, 4, out);
}
