/* import_fold_parts: constants that are cut, gathered, scattered into and joined. */
#include "onnx/import_fold.h"

#include <string.h>

static int axis_of(struct import *m, const char *name, int64_t otherwise, int rank)
{
    const int64_t axis = pm_onnx_attr_int(m->n, name, otherwise);

    return axis < -rank || axis >= rank ? -1 : (int)(axis < 0 ? axis + rank : axis);
}

/* Number of elements before and after an axis. */
static void around(const struct view *v, int axis, size_t *before, size_t *behind)
{
    *before = *behind = 1;
    for (int i = 0; i < v->rank; i++) {
        *before *= i < axis ? (size_t)v->dim[i] : 1;
        *behind *= i > axis ? (size_t)v->dim[i] : 1;
    }
}

int import_fold_gather(struct import *m)
{
    struct value *v = import_in(m, 0), *index = import_in(m, 1);
    const int axis = axis_of(m, "axis", 0, v->view.rank);
    const double *x = import_numbers(m, v, FOLD_LARGEST),
                 *at = import_numbers(m, index, FOLD_LARGEST);
    int64_t dim[PM_FILE_MAX_RANK];
    size_t before, behind, n;

    if (axis < 0 || !x || !at || v->view.rank - 1 + index->view.rank > PM_FILE_MAX_RANK)
        return import_refuse(m, "axis or sizes out of range");
    const int rank = view_gathered(&v->view, axis, &index->view, dim);
    around(&v->view, axis, &before, &behind);
    double *y = import_fold_allocate(m, rank, dim, &n);
    const size_t picks = (size_t)view_count(&index->view);
    const int64_t size = v->view.dim[axis];
    for (size_t i = 0; y && i < n; i++) {
        int64_t pick = import_within(at[i / behind % picks]);

        pick += pick < 0 ? size : 0;
        if (pick < 0 || pick >= size)
            return import_refuse(m, "index %lld on an axis of %lld elements", (long long)pick,
                                 (long long)size);
        y[i] = x[(i / behind / picks * (size_t)size + (size_t)pick) * behind + i % behind];
    }
    if (y)
        import_out_numbers(m, 0, rank, dim, y, v->integer);
    return PM_OK;
}

/* Computes which part of v row i of indices [.., axes] selects, counted in parts. False if the node
 * was refused. */
static bool part_at(struct import *m, const struct view *v, const double *at, int64_t axes,
                    size_t i, size_t *place)
{
    *place = 0;
    for (int k = 0; k < axes; k++) {
        const int64_t size = v->dim[k], given = import_within(at[i * (size_t)axes + (size_t)k]);
        const int64_t pick = given < 0 ? given + size : given;

        if (pick < 0 || pick >= size) {
            import_refuse(m, "index %lld on an axis of %lld elements", (long long)given,
                          (long long)size);
            return false;
        }
        *place = *place * (size_t)size + (size_t)pick;
    }
    return true;
}

/* Gathers the parts selected by indices [.., axes]. */
int import_fold_gather_nd(struct import *m)
{
    struct value *v = import_in(m, 0), *index = import_in(m, 1);
    const double *x = import_numbers(m, v, FOLD_LARGEST),
                 *at = import_numbers(m, index, FOLD_LARGEST);
    const int lead = index->view.rank - 1;
    const int64_t axes = lead >= 0 ? index->view.dim[lead] : 0;
    int64_t dim[2 * PM_FILE_MAX_RANK];
    size_t n, part = 1;
    int rank = 0;

    if (!x || !at || axes < 1 || axes > v->view.rank || pm_onnx_attr_int(m->n, "batch_dims", 0) ||
        lead + v->view.rank - axes > PM_FILE_MAX_RANK)
        return import_refuse(m, "sizes out of range, or batch_dims");
    for (int i = 0; i < lead; i++)
        dim[rank++] = index->view.dim[i];
    for (int i = (int)axes; i < v->view.rank; i++)
        dim[rank++] = v->view.dim[i], part *= (size_t)v->view.dim[i];
    double *y = import_fold_allocate(m, rank, dim, &n);
    for (size_t i = 0, place; y && part && i < n / part; i++) {
        if (!part_at(m, &v->view, at, axes, i, &place))
            return PM_OK;
        memcpy(y + i * part, x + place * part, part * sizeof *y);
    }
    if (y)
        import_out_numbers(m, 0, rank, dim, y, v->integer);
    return PM_OK;
}

/* Copies data and replaces the parts selected by indices [.., axes] with the updates. */
int import_fold_scatter(struct import *m)
{
    struct value *v = import_in(m, 0), *index = import_in(m, 1), *parts = import_in(m, 2);
    const double *x = import_numbers(m, v, FOLD_LARGEST),
                 *at = import_numbers(m, index, FOLD_LARGEST);
    const double *from = import_numbers(m, parts, FOLD_LARGEST);
    const int64_t axes = index->view.rank ? index->view.dim[index->view.rank - 1] : 0;
    size_t n, part = 1;

    if (!x || !at || !from || axes < 1 || axes > v->view.rank ||
        strcmp(pm_onnx_attr_text(m->n, "reduction", "none"), "none") != 0)
        return import_refuse(m, "sizes out of range, or a reduction");
    for (int i = (int)axes; i < v->view.rank; i++)
        part *= (size_t)v->view.dim[i];
    const size_t count = (size_t)(view_count(&index->view) / axes);
    double *y = import_fold_allocate(m, v->view.rank, v->view.dim, &n);
    if (!y)
        return PM_OK;
    if ((size_t)view_count(&parts->view) != count * part)
        return import_refuse(m, "updates that do not fit");
    memcpy(y, x, n * sizeof *y);
    for (size_t i = 0, place; i < count; i++) {
        if (!part_at(m, &v->view, at, axes, i, &place))
            return PM_OK;
        memcpy(y + place * part, from + i * part, part * sizeof *y);
    }
    import_out_numbers(m, 0, v->view.rank, v->view.dim, y, v->integer);
    return PM_OK;
}

/* Sets output 0 to y, whose elements come from the inputs, each at most once. It is learned if all
 * inputs are. */
static void out_parts(struct import *m, int rank, const int64_t *dim, const double *y)
{
    const bool joins = strcmp(m->n->op, "Concat") == 0;
    bool learned = true;

    for (int i = 0; i < (joins ? m->n->in_count : 1); i++)
        learned &= import_in(m, i)->learned;
    import_out_numbers(m, 0, rank, dim, y, import_in(m, 0)->integer);
    import_value(m, m->n->out[0])->learned = learned;
}

int import_fold_concat(struct import *m)
{
    const struct view *first = &import_in(m, 0)->view;
    const int axis = axis_of(m, "axis", 0, first->rank);
    int64_t dim[PM_FILE_MAX_RANK];
    size_t before, behind, n, at = 0;

    if (axis < 0)
        return import_refuse(m, "axis out of range");
    memcpy(dim, first->dim, sizeof dim);
    for (int i = 1; i < m->n->in_count; i++) {
        if (import_in(m, i)->view.rank != first->rank)
            return import_refuse(m, "constants whose shapes do not fit");
        dim[axis] += import_in(m, i)->view.dim[axis];
    }
    around(first, axis, &before, &behind);
    double *y = import_fold_allocate(m, first->rank, dim, &n);
    for (int i = 0; y && i < m->n->in_count; i++) {
        struct value *v = import_in(m, i);
        const double *x = import_numbers(m, v, FOLD_LARGEST);
        const size_t part = (size_t)v->view.dim[axis] * behind;

        if (!x || (size_t)view_count(&v->view) != before * part)
            return import_refuse(m, "constants whose shapes do not fit");
        for (size_t k = 0; part && k < before; k++)
            memcpy(y + k * (size_t)dim[axis] * behind + at, x + k * part, part * sizeof *y);
        at += part;
    }
    if (y)
        out_parts(m, first->rank, dim, y);
    return PM_OK;
}

int import_fold_slice(struct import *m)
{
    struct value *v = import_in(m, 0);
    struct import_range range[PM_FILE_MAX_RANK];
    const double *x = import_numbers(m, v, FOLD_LARGEST);
    int64_t dim[PM_FILE_MAX_RANK];
    size_t n;

    if (!x || !import_ranges(m, range))
        return m->refused_now ? PM_OK : import_refuse(m, "ranges that are not constants");
    for (int k = 0; k < v->view.rank; k++)
        dim[k] = range[k].count;
    double *y = import_fold_allocate(m, v->view.rank, dim, &n);
    for (size_t i = 0; y && i < n; i++) {
        size_t rest = i, at = 0, stride = 1;

        for (int k = v->view.rank - 1; k >= 0; k--) {
            at += (size_t)(range[k].begin + (int64_t)(rest % (size_t)dim[k]) * range[k].step) *
                  stride;
            rest /= (size_t)dim[k];
            stride *= (size_t)v->view.dim[k];
        }
        y[i] = x[at];
    }
    if (y)
        out_parts(m, v->view.rank, dim, y);
    return PM_OK;
}
