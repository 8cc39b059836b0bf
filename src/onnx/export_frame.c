/* export_frame: operators that compute the sizes in the graph, with the steps and the precision of
 * preprocessing_deeplab.c and preprocessing_ssd.c. A final Reshape to the input's size fails if the
 * picture is too large. */
#include "onnx/export_frame.h"

#include <string.h>

bool pm_export_frame_resizes(const struct pm_export_frame *f)
{
    return f->rule != PM_FRAME_RANGE || f->min;
}

/* Returns dimensions first .. last - 1 of a value. */
static const char *shape_of(struct pm_export *g, const char *x, int first, int last)
{
    x = pm_export_op(g, "Shape", PM_VALUES(x));
    pm_export_int(g, "start", first);
    pm_export_int(g, "end", last);
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

static const char *op1(struct pm_export *g, const char *op, const char *x)
{
    return pm_export_op(g, op, PM_VALUES(x));
}

/* PM_FRAME_RATIO: the sides after resizing, as floats. s: the input's shape. */
static const char *by_ratio(struct pm_export *g, const char *sides, struct pm_shape s)
{
    const struct pm_export_frame *f = g->options.frame;
    const float input[] = { (float)s.dim[1], (float)s.dim[2] };
    const char *scale, *longer, *most;

    if (f->min)
        scale =
            pm_export_op2(g, "Div", pm_export_number(g, (float)f->min), op1(g, "ReduceMin", sides));
    else
        scale = op1(g, "ReduceMin", pm_export_op2(g, "Div", pm_export_numbers(g, 2, input), sides));
    if (f->max) {
        longer = op1(g, "ReduceMax", sides), most = pm_export_number(g, (float)f->max);
        scale = pm_export_op(
            g, "Where",
            PM_VALUES(pm_export_op2(g, "Greater",
                                    op1(g, "Round", pm_export_op2(g, "Mul", longer, scale)), most),
                      pm_export_op2(g, "Div", most, longer), scale));
    }
    return op1(g, "Round", pm_export_op2(g, "Mul", sides, scale));
}

/* PM_FRAME_SHRINK and PM_FRAME_ENLARGE: the same. */
static const char *by_threshold(struct pm_export *g, const char *sides)
{
    const struct pm_export_frame *f = g->options.frame;
    const bool shrink = f->rule == PM_FRAME_SHRINK;
    const char *from = op1(g, shrink ? "ReduceMax" : "ReduceMin", sides);
    const char *to = pm_export_number(g, (float)f->min);
    const char *changes = pm_export_op2(g, shrink ? "Greater" : "Less", from, to);
    const char *scaled =
        op1(g, "Floor", pm_export_op2(g, "Mul", sides, pm_export_op2(g, "Div", to, from)));

    return pm_export_op(g, "Where", PM_VALUES(changes, scaled, sides));
}

/* Computes the height and width of the picture after resizing. s: the input's shape. */
static const char *resized_size(struct pm_export *g, struct pm_shape s)
{
    const struct pm_export_frame *f = g->options.frame;
    const char *sides = pm_export_cast(g, g->picture_size, PM_EXPORT_FLOAT), *up, *over;

    if (f->rule != PM_FRAME_RANGE) {
        up = f->rule == PM_FRAME_RATIO ? by_ratio(g, sides, s) : by_threshold(g, sides);
        return pm_export_cast(g, pm_export_op2(g, "Max", up, pm_export_number(g, 1)),
                              PM_EXPORT_INT64);
    }
    up = scaled(g, sides, "ReduceMin", f->min);
    const int most = f->max && f->factor ? f->max - (f->max - 1) % f->factor : f->max;

    if (most) {
        over = pm_export_op(g, "Greater", PM_VALUES(pm_export_op(g, "ReduceMax", PM_VALUES(up)),
                                                    pm_export_number(g, (float)most)));
        up = pm_export_op(g, "Where", PM_VALUES(over, scaled(g, sides, "ReduceMax", most), up));
    }
    up = pm_export_cast(g, up, PM_EXPORT_INT64);
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
                          const char *mode, bool aligned)
{
    const char *sizes = pm_export_op(g, "Concat", PM_VALUES(shape_of(g, x, 0, rank - 2), size));

    pm_export_int(g, "axis", 0);
    x = pm_export_op(g, "Resize", PM_VALUES(x, "", "", sizes));
    pm_export_text(g, "mode", mode);
    pm_export_text(g, "coordinate_transformation_mode", aligned ? "align_corners" : "asymmetric");
    if (strcmp(mode, "nearest") == 0)
        pm_export_text(g, "nearest_mode", aligned ? "round_prefer_ceil" : "floor");
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
    const struct pm_export_frame *f = g->options.frame;
    const int h = s.dim[1], w = s.dim[2], c = s.dim[3];
    const char *rest, *pads;

    g->picture_size = g->framed_size = shape_of(g, x, 2, 4);
    if (pm_export_frame_resizes(f)) {
        g->framed_size = resized_size(g, s);
        x = resize(g, x, 4, g->framed_size, f->mode ? f->mode : "linear",
                   f->rule != PM_FRAME_RATIO);
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
    return pm_export_frame_resizes(g->options.frame)
               ? resize(g, x, s.rank, g->picture_size, nearest ? "nearest" : "linear", true)
               : x;
}

const char *pm_export_frame_part(struct pm_export *g)
{
    const struct pm_shape in = g->net->nodes[0]->out_shape;
    const float input[] = { (float)in.dim[1], (float)in.dim[2] };
    const char *part;

    if (!g->options.frame || g->framed_part)
        return g->framed_part;
    part = pm_export_op2(g, "Div", pm_export_cast(g, g->framed_size, PM_EXPORT_FLOAT),
                         pm_export_numbers(g, 2, input));
    g->framed_part = pm_export_op2(g, "Concat", part, part);
    pm_export_int(g, "axis", 0);
    return g->framed_part;
}

const char *pm_export_frame_places(struct pm_export *g, const char *x, bool points)
{
    const char *part = pm_export_frame_part(g);

    if (part && points)
        part = pm_export_op(g, "Slice", PM_VALUES(part, pm_export_integers(g, PM_INT64S(0)),
                                                  pm_export_integers(g, PM_INT64S(2))));
    return part ? pm_export_op2(g, "Div", x, part) : x;
}

const char *pm_export_frame_lengths(struct pm_export *g, const char *x)
{
    const char *factor, *shape;

    if (!pm_export_frame_resizes(g->options.frame))
        return x;
    factor = pm_export_op(g, "Div", PM_VALUES(pm_export_cast(g, g->picture_size, PM_EXPORT_FLOAT),
                                              pm_export_cast(g, g->framed_size, PM_EXPORT_FLOAT)));
    shape = pm_export_integers(g, PM_INT64S(1, 2, 1, 1));
    return pm_export_op(g, "Mul",
                        PM_VALUES(x, pm_export_op(g, "Reshape", PM_VALUES(factor, shape))));
}
