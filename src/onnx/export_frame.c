/* export_frame: operators that compute the sizes in the graph, with the steps and the precision of
 * preprocessing_deeplab.c. A final Reshape to the input's size fails if the picture is too
 * large. */
#include "onnx/export_frame.h"

enum { FLOAT = 1, INT64 = 7 };

/* Returns dimensions first .. last - 1 of a value. */
static const char *shape_of(struct pm_export *g, const char *x, int first, int last)
{
    x = pm_export_op(g, "Shape", PM_VALUES(x));
    pm_export_int(g, "start", first);
    pm_export_int(g, "end", last);
    return x;
}

static const char *cast(struct pm_export *g, const char *x, int type)
{
    x = pm_export_op(g, "Cast", PM_VALUES(x));
    pm_export_int(g, "to", type);
    return x;
}

/* Scales the sides so that the smallest or largest (`one`) becomes target, and rounds down. */
static const char *scaled(struct pm_export *g, const char *sides, const char *one, int target)
{
    const char *factor = pm_export_op(g, "Div", PM_VALUES(pm_export_number(g, (float)target),
                                                          pm_export_op(g, one, PM_VALUES(sides))));

    return pm_export_op(g, "Floor", PM_VALUES(pm_export_op(g, "Mul", PM_VALUES(sides, factor))));
}

/* Rounds the sides up to the form k * factor + 1. */
static const char *to_factor(struct pm_export *g, const char *sides, int factor)
{
    const char *f = pm_export_integers(g, PM_INT64S(factor));
    const char *one = pm_export_integers(g, PM_INT64S(1));
    const char *over = pm_export_op(g, "Mod", PM_VALUES(
        pm_export_op(g, "Sub", PM_VALUES(sides, one)), f));
    const char *more =
        pm_export_op(g, "Mod", PM_VALUES(pm_export_op(g, "Sub", PM_VALUES(f, over)), f));

    return pm_export_op(g, "Add", PM_VALUES(sides, more));
}

/* Computes the height and width of the picture after resizing. */
static const char *resized_size(struct pm_export *g)
{
    const struct pm_export_frame *f = g->options.frame;
    const char *sides = cast(g, g->picture_size, FLOAT);
    const char *up = scaled(g, sides, "ReduceMin", f->min), *over;
    const int most = f->max && f->factor ? f->max - (f->max - 1) % f->factor : f->max;

    if (most) {
        over = pm_export_op(g, "Greater", PM_VALUES(pm_export_op(g, "ReduceMax", PM_VALUES(up)),
                                                    pm_export_number(g, (float)most)));
        up = pm_export_op(g, "Where", PM_VALUES(over, scaled(g, sides, "ReduceMax", most), up));
    }
    up = cast(g, up, INT64);
    if (f->factor)
        up = to_factor(g, up, f->factor);
    if (f->square) {
        up = pm_export_op(g, "ReduceMax", PM_VALUES(up));
        up = pm_export_op(g, "Concat", PM_VALUES(up, up));
        pm_export_int(g, "axis", 0);
    }
    return up;
}

/* Resizes a map of this rank; in the graph its last two axes are height and width. */
static const char *resize(struct pm_export *g, const char *x, int rank, const char *size,
                          bool nearest)
{
    const char *sizes = pm_export_op(g, "Concat", PM_VALUES(shape_of(g, x, 0, rank - 2), size));

    pm_export_int(g, "axis", 0);
    x = pm_export_op(g, "Resize", PM_VALUES(x, "", "", sizes));
    pm_export_text(g, "mode", nearest ? "nearest" : "linear");
    pm_export_text(g, "coordinate_transformation_mode", "align_corners");
    if (nearest)
        pm_export_text(g, "nearest_mode", "round_prefer_ceil");
    return x;
}

/* Pads with the frame's values. If they differ by channel, subtracts them, pads with 0 and adds
 * them back. */
static const char *pad(struct pm_export *g, const char *x, const char *pads, int channels)
{
    const float *v = g->options.frame->pad;
    const int64_t dim[] = { 1, channels, 1, 1 };
    bool alike = true;

    for (int c = 1; c < channels; c++)
        alike &= v[c] == v[0];
    if (alike)
        return pm_export_op(g, "Pad", PM_VALUES(x, pads, pm_export_number(g, v[0])));
    const char *values = pm_export_op(g, "Reshape", PM_VALUES(pm_export_numbers(g, channels, v),
                                                              pm_export_integers(g, 4, dim)));
    x = pm_export_op(g, "Pad", PM_VALUES(pm_export_op(g, "Sub", PM_VALUES(x, values)), pads));
    return pm_export_op(g, "Add", PM_VALUES(x, values));
}

const char *pm_export_frame_in(struct pm_export *g, const char *x, struct pm_shape s)
{
    const int h = s.dim[1], w = s.dim[2], c = s.dim[3];
    const char *rest, *pads;

    g->picture_size = g->framed_size = shape_of(g, x, 2, 4);
    if (g->options.frame->min) {
        g->framed_size = resized_size(g);
        x = resize(g, x, 4, g->framed_size, false);
    }
    rest =
        pm_export_op(g, "Sub", PM_VALUES(pm_export_integers(g, PM_INT64S(h, w)), g->framed_size));
    rest = pm_export_op(g, "Max", PM_VALUES(rest, pm_export_integers(g, PM_INT64S(0))));
    pads = pm_export_integers(g, PM_INT64S(0, 0, 0, 0, 0, 0));
    pads = pm_export_op(g, "Concat", PM_VALUES(pads, rest));
    pm_export_int(g, "axis", 0);
    x = pad(g, x, pads, c);
    return pm_export_op(g, "Reshape", PM_VALUES(x, pm_export_integers(g, PM_INT64S(0, c, h, w))));
}

const char *pm_export_frame_out(struct pm_export *g, const char *x, struct pm_shape s, bool nearest)
{
    const int h = s.rank - 2; /* axis of the height in the graph */

    x = pm_export_op(g, "Slice",
                     PM_VALUES(x, pm_export_integers(g, PM_INT64S(0, 0)), g->framed_size,
                               pm_export_integers(g, PM_INT64S(h, h + 1))));
    return g->options.frame->min ? resize(g, x, s.rank, g->picture_size, nearest) : x;
}

const char *pm_export_frame_lengths(struct pm_export *g, const char *x)
{
    const char *factor, *shape;

    if (!g->options.frame->min)
        return x;
    factor = pm_export_op(g, "Div", PM_VALUES(cast(g, g->picture_size, FLOAT),
                                              cast(g, g->framed_size, FLOAT)));
    shape = pm_export_integers(g, PM_INT64S(1, 2, 1, 1));
    return pm_export_op(g, "Mul",
                        PM_VALUES(x, pm_export_op(g, "Reshape", PM_VALUES(factor, shape))));
}
