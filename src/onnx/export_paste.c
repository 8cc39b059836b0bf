/* export_paste: a mask's corners are those of its box, and a picture's first and last pixels are at
 * 0 and 1, as in tasks/detection/detection_found.c. A pixel's probability is the bilinear mean of
 * the mask's values around it. That is a sum over all values m of the mask, weighted along both
 * axes by hats, which are 1 at the value's place and 0 at its neighbours': p = R m C. R [H, h] and
 * C [w, W] are 0 for the rows and columns of the picture outside the box.
 *
 * The weights of a pixel inside add up to 1. So p > 0.5 if R (m - 0.5) C > 0. A mask of 0.5 gives 0
 * there whatever the rounding, and a pixel outside the box gives 0 as well.
 *
 * All masks as floats would be 427 MB for 100 detections at 800 x 1333. So the product with C and
 * the comparison are the body of a Scan over the detections, inside a Scan over the pictures. Only
 * one mask is in memory as floats. onnxruntime writes each result to its place in the output. */
#include "onnx/export_paste.h"

static const char *number(struct pm_export *g, float v)
{
    return pm_export_number(g, v);
}

/* ---- weights ------------------------------------------------------------------------------- */

/* Returns the places in 0..1 of the rows (axis 0) or columns of a picture of any size: [size]. A
 * lone one is at 0.5. */
static const char *any_places(struct pm_export *g, int axis)
{
    const int64_t index = axis;
    const char *size = pm_export_op2(g, "Gather", g->picture_size,
                                     pm_export_tensor(g, "axis", PM_DTYPE_I64, 0, NULL, &index));
    const char *lone, *at;

    size = pm_export_cast(g, size, PM_EXPORT_FLOAT);
    lone = pm_export_op2(g, "Max", pm_export_op2(g, "Sub", number(g, 2), size), number(g, 0));
    at = pm_export_op(g, "Range", PM_VALUES(number(g, 0), size, number(g, 1)));
    at = pm_export_op2(g, "Add", at, pm_export_op2(g, "Mul", lone, number(g, 0.5f)));
    size = pm_export_op2(g, "Add", pm_export_op2(g, "Sub", size, number(g, 1)), lone);
    return pm_export_op2(g, "Div", at, size);
}

/* The same for a picture of the net's size. */
static const char *own_places(struct pm_export *g, int size)
{
    float *at = pm_malloc((size_t)size * sizeof *at);
    const char *name;

    for (int i = 0; i < size; i++)
        at[i] = size > 1 ? (float)i / (float)(size - 1) : 0.5f;
    name = pm_export_numbers(g, size, at);
    pm_free(at);
    return name;
}

/* Returns [n, D, size]: the place of each row or column of the picture in its box, 0..1 inside. A
 * box without extent has all places outside, except one on the box. */
static const char *parts(struct pm_export *g, const char *low, const char *high, const char *places)
{
    const char *extent = pm_export_op2(g, "Sub", high, low);

    extent = pm_export_op2(g, "Max", extent, number(g, 1e-30f)); /* nothing is divided by 0 */
    return pm_export_op2(g, "Div", pm_export_op2(g, "Sub", places, low), extent);
}

/* Returns [n, D, size]: 1 for parts in 0..1, else 0. Comparisons would do, but an import does not
 * know them, so that the trial of the file could not compare what follows. */
static const char *inside(struct pm_export *g, const char *part)
{
    const char *before = pm_export_op(g, "Neg", PM_VALUES(part));
    const char *after = pm_export_op2(g, "Sub", part, number(g, 1)), *out;

    before = pm_export_op(g, "Sign", PM_VALUES(before));
    after = pm_export_op(g, "Sign", PM_VALUES(after));
    out = pm_export_op2(g, "Max", before, after); /* 1 outside, 0 or -1 inside */
    return pm_export_op2(g, "Min", pm_export_op2(g, "Sub", number(g, 1), out), number(g, 1));
}

/* Returns the weights of the mask's cells: [n, D, size, cells], or [n, D, cells, size]. */
static const char *weights(struct pm_export *g, const char *part, int cells, bool columns)
{
    const int64_t axis = columns ? 2 : 3, down[] = { cells, 1 }, along[] = { 1, cells };
    const char *is = inside(g, part), *hat;
    float *cell = pm_malloc((size_t)cells * sizeof *cell);

    for (int i = 0; i < cells; i++)
        cell[i] = (float)i;
    hat = pm_export_view(g, pm_export_numbers(g, cells, cell), 2, columns ? down : along);
    pm_free(cell);
    part = pm_export_op2(g, "Mul", part, number(g, (float)(cells - 1)));
    hat = pm_export_op2(g, "Sub", pm_export_unsqueeze(g, part, axis), hat);
    hat = pm_export_op2(g, "Sub", number(g, 1), pm_export_op(g, "Abs", PM_VALUES(hat)));
    hat = pm_export_op2(g, "Max", hat, number(g, 0));
    return pm_export_op2(g, "Mul", hat, pm_export_unsqueeze(g, is, axis));
}

/* ---- pasting ------------------------------------------------------------------------------- */

/* The sizes of a mask and of a picture; -1: any. */
struct sizes { int64_t detections, mask_width, height, width; };

/* Names of values in bodies must differ from those outside. */
static const char *own(struct pm_export *g, const char *level, const char *what)
{
    return pm_export_name(g, pm_arena_printf(g->model->arena, "%s %s", level, what));
}

/* Makes a body with the inputs rows [.., height, mask_width] and columns [.., mask_width, width],
 * and the output pasted [.., height, width]. of: number of detections in the leading axis; 0: the
 * axis is missing. */
static struct pm_onnx_model *make_body(struct pm_export *g, const char *level,
                                       const struct sizes *s, int64_t of, const char *name[3])
{
    const int64_t rows[] = { of, s->height, s->mask_width };
    const int64_t columns[] = { of, s->mask_width, s->width };
    const int64_t pasted[] = { of, s->height, s->width };
    struct pm_onnx_model *m = pm_onnx_make(level);
    const int skip = of ? 0 : 1;

    name[0] = own(g, level, "rows");
    name[1] = own(g, level, "columns");
    name[2] = own(g, level, "pasted");
    pm_onnx_add_input(m, name[0], PM_DTYPE_F32, 3 - skip, rows + skip);
    pm_onnx_add_input(m, name[1], PM_DTYPE_F32, 3 - skip, columns + skip);
    pm_onnx_add_output(m, name[2], PM_DTYPE_U8, 3 - skip, pasted + skip);
    return m;
}

/* One detection: rows x columns > 0. */
static struct pm_onnx_model *detection_body(struct pm_export *g, const struct sizes *s)
{
    static const float zero = 0;
    const char *name[3];
    struct pm_onnx_model *m = make_body(g, "detection", s, 0, name);
    const char *product = own(g, "detection", "product"), *above = own(g, "detection", "above");
    const char *none = own(g, "detection", "zero");
    struct pm_onnx_node *cast;

    pm_onnx_add_tensor(m, none, PM_DTYPE_F32, 0, NULL, &zero);
    pm_onnx_add(m, "MatMul", product, PM_VALUES(name[0], name[1]), PM_VALUES(product));
    pm_onnx_add(m, "Greater", above, PM_VALUES(product, none), PM_VALUES(above));
    cast = pm_onnx_add(m, "Cast", name[2], PM_VALUES(above), PM_VALUES(name[2]));
    pm_onnx_set_int(m, cast, "to", PM_EXPORT_UINT8);
    return m;
}

/* Sets the attributes of a Scan over the leading axis of two inputs. */
static void set_scan(struct pm_onnx_model *m, struct pm_onnx_node *scan, struct pm_onnx_model *body)
{
    pm_onnx_set_graph(m, scan, "body", body);
    pm_onnx_set_int(m, scan, "num_scan_inputs", 2);
}

/* One picture: all of its detections. */
static struct pm_onnx_model *picture_body(struct pm_export *g, const struct sizes *s)
{
    const char *name[3];
    struct pm_onnx_model *m = make_body(g, "picture", s, s->detections, name);

    set_scan(m, pm_onnx_add(m, "Scan", name[2], PM_VALUES(name[0], name[1]), PM_VALUES(name[2])),
             detection_body(g, s));
    return m;
}

const char *pm_export_paste(struct pm_export *g, const char *x, struct pm_shape s,
                            const char *boxes)
{
    const struct pm_shape in = g->net->nodes[0]->out_shape;
    const bool any = g->options.frame != NULL;
    const struct sizes sizes = { s.dim[3], s.dim[2], any ? -1 : in.dim[1], any ? -1 : in.dim[2] };
    const int64_t one[] = { 1, 1, 1, 1 };
    const char *corner[4], *part[2], *y;

    boxes = pm_export_op2(g, "Max", pm_export_op2(g, "Min", boxes, number(g, 1)), number(g, 0));
    pm_export_op_outputs(g, "Split", PM_VALUES(boxes, pm_export_integers(g, 4, one)), 4, corner);
    pm_export_int(g, "axis", 2);
    for (int i = 0; i < 2; i++)
        part[i] = parts(g, corner[i], corner[2 + i],
                        any ? any_places(g, i) : own_places(g, in.dim[1 + i]));
    x = pm_export_op2(g, "Sub", x, number(g, 0.5f));
    g->pasted.rows = pm_export_op2(g, "MatMul", weights(g, part[0], s.dim[1], false), x);
    g->pasted.columns = weights(g, part[1], s.dim[2], true);
    y = pm_export_op2(g, "Scan", g->pasted.rows, g->pasted.columns);
    set_scan(g->model, &g->model->nodes[g->model->node_count - 1], picture_body(g, &sizes));
    return y;
}
