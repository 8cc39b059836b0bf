/* export_path: the rule of pm_recognition_read: the class with the largest logit at each step, the
 * lowest if several are equal; without repetitions and blanks. Steps that are kept move to the
 * front. Each step has a place of its own: kept ones from 0, the others behind them. */
#include "onnx/export_path.h"

/* Sums along the steps. keep: the axis stays, with size 1. */
static const char *sum(struct pm_export *g, const char *x, bool keep)
{
    x = pm_export_op2(g, "ReduceSum", x, pm_export_integers(g, PM_INT64S(1)));
    pm_export_int(g, "keepdims", keep);
    return x;
}

/* The class of each step, [n, steps], and the logarithm of its probability in *share. */
static const char *best(struct pm_export *g, const char *x, const char **share)
{
    const char *classes = pm_export_op(g, "ArgMax", PM_VALUES(x));
    const char *log;

    pm_export_int(g, "axis", 2);
    pm_export_int(g, "keepdims", 0);
    log = pm_export_op(g, "LogSoftmax", PM_VALUES(x));
    pm_export_int(g, "axis", 2);
    *share = pm_export_op(g, "ReduceMax", PM_VALUES(log));
    pm_export_ints(g, "axes", PM_INT64S(2));
    pm_export_int(g, "keepdims", 0);
    return classes;
}

/* Whether a step's class is another one than that of the step before, and not the blank: integers
 * [n, steps] of 0 and 1. */
static const char *kept(struct pm_export *g, const char *classes, const char *blank)
{
    const char *before = pm_export_op(g, "Slice", PM_VALUES(
        classes, pm_export_integers(g, PM_INT64S(0)), pm_export_integers(g, PM_INT64S(-1)),
        pm_export_integers(g, PM_INT64S(1))));
    const char *same, *empty;

    before = pm_export_op(g, "Pad", PM_VALUES(before, pm_export_integers(g, PM_INT64S(0, 1, 0, 0)),
                                              blank));
    same = pm_export_op2(g, "Equal", classes, before);
    empty = pm_export_op2(g, "Equal", classes, blank);
    return pm_export_cast(g, pm_export_op(g, "Not", PM_VALUES(pm_export_op2(g, "Or", same, empty))),
                          PM_EXPORT_INT64);
}

/* The number of ones before each step. */
static const char *before_each(struct pm_export *g, const char *ones, const char *axis)
{
    const char *x = pm_export_op2(g, "CumSum", ones, axis);

    pm_export_int(g, "exclusive", 1);
    return x;
}

struct pm_export_path pm_export_best_path(struct pm_export *g, const char *x, struct pm_shape s)
{
    const int64_t number[] = { s.dim[s.rank - 1] - 1, 1, -1 }; /* the blank is the last class */
    const char *scalar[3], *share, *classes, *keep, *drop, *length, *place, *none, *symbols;
    const char *const names[] = { "blank", "one", "none" };

    for (int i = 0; i < 3; i++)
        scalar[i] = pm_export_tensor(g, names[i], PM_DTYPE_I64, 0, NULL, &number[i]);
    if (s.rank == 4) {
        x = pm_export_nhwc(g, x, s);
        x = pm_export_view(g, x, 3, (const int64_t[]){ 0, s.dim[2], s.dim[3] });
    }
    classes = best(g, x, &share);
    keep = kept(g, classes, scalar[0]);
    drop = pm_export_op2(g, "Sub", scalar[1], keep);
    length = sum(g, keep, true);
    place = pm_export_op(g, "Where", PM_VALUES(
        pm_export_op2(g, "Equal", keep, scalar[1]), before_each(g, keep, scalar[1]),
        pm_export_op2(g, "Add", length, before_each(g, drop, scalar[1]))));
    none = pm_export_op2(g, "Mul", drop, scalar[2]);
    /* the class of a step that is kept, else -1 */
    symbols = pm_export_op2(g, "Add", pm_export_op2(g, "Mul", keep, classes), none);
    symbols = pm_export_op(g, "ScatterElements", PM_VALUES(symbols, place, symbols));
    pm_export_int(g, "axis", 1);
    return (struct pm_export_path){
        pm_export_cast(g, symbols, PM_EXPORT_INT32),
        pm_export_cast(g, sum(g, keep, false), PM_EXPORT_INT32),
        pm_export_op(g, "Exp", PM_VALUES(sum(g, share, false))),
    };
}
