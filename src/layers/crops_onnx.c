/* The samples of crops as ONNX operators. GridSample computes all crops of an image with one grid,
 * in which the crops stand below each other. Bins become images of their own, since each samples
 * its own channels. Samples outside the map are set to 0 afterwards. GridSample's padding with
 * zeros would not do: a sample less than one cell outside is a mean of the border and 0 there. */
#include "layers/crops.h"
#include "onnx/export_nodes.h"

const char *pm_crops_onnx_usable(const struct pm_node *n, struct pm_export *g, const char *boxes,
                                 float most)
{
    const int R = n->in[1]->out_shape.dim[1];
    const char *is;

    is = pm_export_op2(g, "LessOrEqual", pm_export_op(g, "Abs", PM_VALUES(boxes)),
                       pm_export_number(g, most));
    is = pm_export_cast(g, is, PM_EXPORT_FLOAT);
    is = pm_export_op(g, "ReduceMin", PM_VALUES(is));
    pm_export_ints(g, "axes", PM_INT64S(-1));
    is = pm_export_op2(g, "Greater", is, pm_export_number(g, 0));
    if (n->inputs < 3)
        return is;
    return pm_export_op2(g, "And", is, pm_export_below(g, pm_export_x(g, n, 2), 3, 1, R));
}

struct samples { const char *place, *inside; }; /* [n,R,samples]; place in -1..1 of the map */

static struct samples samples_of(struct pm_export *g, const char *low, const char *high,
                                 const char *given, int samples, int bins, int size)
{
    const char *last = pm_export_number(g, (float)(size - 1));
    const char *a = pm_export_op2(g, "Mul", low, last), *b = pm_export_op2(g, "Mul", high, last),
               *s, *inside;
    float part[PM_CROP_MOST_SIDE];

    pm_crops_parts(samples, bins, part);
    s = pm_export_op2(g, "Mul", pm_export_op2(g, "Sub", b, a), pm_export_numbers(g, samples, part));
    s = pm_export_op2(g, "Add", a, s);
    s = pm_export_op2(g, "Max", pm_export_op2(g, "Min", s, pm_export_op2(g, "Max", a, b)),
                      pm_export_op2(g, "Min", a, b));
    inside =
        pm_export_op2(g, "And", pm_export_op2(g, "Greater", s, pm_export_number(g, CROP_ABOVE)),
                      pm_export_op2(g, "LessOrEqual", s, last));
    inside = pm_export_op2(g, "And", inside, given);
    s = pm_export_op(g, "Where", PM_VALUES(inside, s, pm_export_number(g, 0)));
    s = pm_export_op2(g, "Mul", s, pm_export_number(g, size > 1 ? 2 / (float)(size - 1) : 0));
    return (struct samples){ pm_export_op2(g, "Sub", s, pm_export_number(g, 1)), inside };
}

/* Gives [n,R,samples] six axes: image, row and column of bins, box, row and column of samples. */
static const char *spread(struct pm_export *g, const char *x, const struct crop_params *p,
                          bool column)
{
    const int64_t rows[] = { -1, p->per_image, p->bins_h, 1, p->rows / p->bins_h, 1 };
    const int64_t cols[] = { -1, p->per_image, 1, p->bins_w, 1, p->cols / p->bins_w };

    x = pm_export_view(g, x, 6, column ? cols : rows);
    x = pm_export_op(g, "Transpose", PM_VALUES(x));
    pm_export_ints(g, "perm", PM_INT64S(0, 2, 3, 1, 4, 5));
    return x;
}

const char *pm_crops_onnx(const struct pm_node *n, struct pm_export *g,
                          const struct crop_params *p)
{
    const int64_t tall = p->rows / p->bins_h, wide = p->cols / p->bins_w, six = 6;
    const int64_t full[] = { 1, p->bins_h, p->bins_w, p->per_image, tall, wide, 1 };
    const int64_t grid[] = { -1, p->per_image * tall, wide, 2 };
    const int64_t mask[] = { -1, 1, p->per_image * tall, wide };
    const int64_t map[] = { -1, p->c, p->h, p->w }, one[] = { 1, 1, 1, 1 };
    const char *boxes = pm_export_x(g, n, 1), *x = pm_export_x(g, n, 0), *given, *corner[4], *y;
    struct samples row, col;

    given = pm_crops_onnx_usable(n, g, boxes, CROP_MOST);
    pm_export_op_outputs(g, "Split", PM_VALUES(boxes, pm_export_integers(g, 4, one)), 4, corner);
    pm_export_int(g, "axis", -1);
    row = samples_of(g, corner[0], corner[2], given, p->rows, p->bins_h, p->h);
    col = samples_of(g, corner[1], corner[3], given, p->cols, p->bins_w, p->w);

    const char *at[] = { spread(g, col.place, p, true), spread(g, row.place, p, false) };
    for (int i = 0; i < 2; i++)
        at[i] = pm_export_op2(g, "Expand",
                              pm_export_op2(g, "Unsqueeze", at[i], pm_export_integers(g, 1, &six)),
                              pm_export_integers(g, 7, full));
    y = pm_export_op2(g, "Concat", at[0], at[1]);
    pm_export_int(g, "axis", 6);
    y = pm_export_view(g, y, 4, grid);
    y = pm_export_op2(g, "GridSample", p->bins_h * p->bins_w > 1 ? pm_export_view(g, x, 4, map) : x,
                      y);
    pm_export_text(g, "mode", "bilinear");
    pm_export_text(g, "padding_mode", "border");
    pm_export_int(g, "align_corners", 1);
    row.inside =
        pm_export_op2(g, "And", spread(g, row.inside, p, false), spread(g, col.inside, p, true));
    return pm_export_op(
        g, "Where", PM_VALUES(pm_export_view(g, row.inside, 4, mask), y, pm_export_number(g, 0)));
}

const char *pm_crops_onnx_apart(struct pm_export *g, const char *y, int c, int per_image, int rows,
                                int cols)
{
    const int64_t apart[] = { -1, c, per_image, rows, cols };
    const int64_t together[] = { -1, c, rows, cols };

    y = pm_export_op(g, "Reshape", PM_VALUES(y, pm_export_integers(g, 5, apart)));
    y = pm_export_op(g, "Transpose", PM_VALUES(y));
    pm_export_ints(g, "perm", PM_INT64S(0, 2, 1, 3, 4));
    return pm_export_op(g, "Reshape", PM_VALUES(y, pm_export_integers(g, 4, together)));
}
