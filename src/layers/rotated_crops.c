/* rotated_crops: crops of a map along rotated boxes, each of the same size, as in RBox-CNN. Inputs:
 * map [n,H,W,C], boxes [n,R,5] and, optionally, count I32 [n], the number of valid boxes of each
 * image. Output: [n R, height, width, C]. Row i R + r is box r of image i.
 *
 * A box is cy, cx, h, w, angle in the unit of rotated_overlap.h: y is 0..1 of the picture and x
 * 0..width, where 0 is the centre of the map's first row or column and 1 (width) that of the last.
 * A box has height x width samples. Their first and last rows and columns lie on its sides, as
 * those of crop_and_resize; an axis of one sample has it in the middle. The crop's rows run along
 * h, and its columns along w, from the box's left upper corner, LT. So at the angle 0 a crop is
 * that of crop_and_resize.
 *
 * A sample is the bilinear mean of the four cells around it. Cells outside the map count as 0. All
 * samples are 0 in boxes whose index is at least count, and in boxes with a number that is NaN or
 * beyond +-1e9. A negative side counts as 0, and so does an angle beyond +-4e6 (an exported model
 * takes that angle).
 *
 * Only the map gets a gradient. Each of its cells sums over the samples that touch it, boxes and
 * samples in order, so the same bits come in every run. For each cell and box, rotated_crops_spans
 * finds a range of rows and one of columns of samples. All samples that touch the cell are in
 * them. */
#include <limits.h>
#include <string.h>

#include "device/pick.h"
#include "layers/crops.h"
#include "layers/rotated_overlap.h"
#include "layers/vmath.h"
#include "onnx/export_nodes.h"
#include "rotated_crops.params.h"

struct rotated_crops_cfg {
    struct pm_ints size;
    float width;
};

static const struct pm_opt opts[] = {
    PM_INTS(rotated_crops_cfg, size, "[14]", 1, PM_CROP_MOST_SIDE,
            "height and width of a crop, or one for both"),
    PM_FLOAT(rotated_crops_cfg, width, 1, 1e-3, 1e3,
             "width of the picture over its height; boxes are in the unit of the height"),
    { 0 },
};

/* ---- places ---------------------------------------------------------------------------------- */

static bool usable(const struct pm_args *args, size_t box)
{
    const struct rotated_crops_params *p = args->params;
    const float *v = (const float *)args->buf[0] + PM_ROTATED_BOX * box;
    const int32_t *count = args->buf[1];
    bool all = !count || (int)(box % (size_t)p->per_image) < count[box / (size_t)p->per_image];

    for (int k = 0; k < PM_ROTATED_BOX; k++)
        all &= fabsf(v[k]) <= CROP_MOST_ROTATED;
    return all;
}

/* Half of the sides, and cosine and sine of the angle. */
struct turned { float y, x, h, w, c, s; };

static struct turned box_of(const struct pm_args *args, size_t box)
{
    struct pm_rotated_one r;

    pm_rotated_prepare((const float *)args->buf[0] + PM_ROTATED_BOX * box, &r);
    return (struct turned){ r.v[PM_ROTATED_Y], r.v[PM_ROTATED_X], r.v[PM_ROTATED_H],
                            r.v[PM_ROTATED_W], r.v[PM_ROTATED_C], r.v[PM_ROTATED_S] };
}

/* Items: boxes. Writes the row and the column of each sample, in cells; -2 if the box has none. */
static void places_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct rotated_crops_params *p = args->params;
    const float *part = args->buf[2];

    for (size_t box = begin; box < end; box++) {
        const bool given = usable(args, box);
        const struct turned r = given ? box_of(args, box) : (struct turned){ 0 };
        float *place = (float *)args->buf[3] + 2 * box * (size_t)p->rows * (size_t)p->cols;

        for (int i = 0; i < p->rows; i++)
            for (int j = 0; j < p->cols; j++, place += 2) {
                const float u = (2 * part[i] - 1) * r.h, v = (2 * part[p->rows + j] - 1) * r.w;

                place[0] = given ? (r.y + u * r.c + v * r.s) * p->tall : -2;
                place[1] = given ? (r.x + v * r.c - u * r.s) * p->wide : -2;
            }
    }
}

static size_t samples_of(const struct rotated_crops_params *p)
{
    return (size_t)p->boxes * (size_t)p->rows * (size_t)p->cols;
}

static bool places_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    (void)caps, (void)count;
    return level == 0 && pm_pick_elements("rotated_crops_places", 64, samples_of(params), out);
}

static double places_flops(const void *params, size_t count)
{
    (void)count;
    return 12.0 * (double)samples_of(params);
}

static const struct pm_kernel places = {
    .name = "rotated_crops_places", .bufs = "r:boxes r?:count r:part w:place",
    .params_size = sizeof(struct rotated_crops_params), .cpu = places_cpu, .grain = 8,
    .pick = places_pick, .flops = places_flops,
};

/* ---- forward --------------------------------------------------------------------------------- */

/* Adds a cell's channels times its weight; nothing outside the map. */
PM_INLINE void add_cell(const struct rotated_crops_params *p, const float *x, int row, int col,
                        float weight, float *y)
{
    const size_t c = (size_t)p->c;
    const float *from = x + ((size_t)row * (size_t)p->w + (size_t)col) * c;

    if (row < 0 || row >= p->h || col < 0 || col >= p->w)
        return;
    PM_SIMD
    for (size_t k = 0; k < c; k++)
        y[k] += weight * from[k];
}

/* Items: samples. */
PM_CLONES static void fwd_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct rotated_crops_params *p = args->params;
    const size_t each = (size_t)p->per_image * (size_t)p->rows * (size_t)p->cols;
    const size_t map = (size_t)p->h * (size_t)p->w * (size_t)p->c;

    for (size_t i = begin; i < end; i++) {
        const float *x = (const float *)args->buf[0] + i / each * map;
        const float row = ((const float *)args->buf[1])[2 * i];
        const float col = ((const float *)args->buf[1])[2 * i + 1];
        float *y = (float *)args->buf[2] + i * (size_t)p->c;

        memset(y, 0, (size_t)p->c * sizeof *y);
        if (!(row > -1 && row < (float)p->h && col > -1 && col < (float)p->w))
            continue;
        const int top = (int)floorf(row), left = (int)floorf(col);
        const float fy = row - (float)top, fx = col - (float)left;

        add_cell(p, x, top, left, (1 - fy) * (1 - fx), y);
        add_cell(p, x, top, left + 1, (1 - fy) * fx, y);
        add_cell(p, x, top + 1, left, fy * (1 - fx), y);
        add_cell(p, x, top + 1, left + 1, fy * fx, y);
    }
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct rotated_crops_params *p = params;

    (void)caps;
    return pick_four("rotated_crops_fwd4", "rotated_crops_fwd", p->c % 4 == 0,
                     count * (size_t)p->c, 0, level, out);
}

static double flops(const void *params, size_t count)
{
    const struct rotated_crops_params *p = params;

    (void)count;
    return 8.0 * (double)samples_of(p) * p->c;
}

static const struct pm_kernel fwd = {
    .name = "rotated_crops_fwd", .bufs = "r:x r:place w:y",
    .params_size = sizeof(struct rotated_crops_params), .cpu = fwd_cpu, .grain = 16,
    .pick = fwd_pick, .flops = flops,
};

/* ---- backward -------------------------------------------------------------------------------- */

/* Returns the samples of an axis with places in at - around .. at + around: 65536 begin + end; 0:
 * none. The axis reaches from -side to side. */
static int span_of(float at, float around, float side, int samples)
{
    const float scale = (float)(samples - 1) / (2 * side), middle = 0.5f * (float)(samples - 1);
    const float low = (at - around) * scale + middle - 1e-3f;
    const float high = (at + around) * scale + middle + 1e-3f;

    if (fabsf(at) > side + around)
        return 0;
    if (samples == 1 || side < 1e-6f * around)
        return samples;
    const int begin = low <= 0 ? 0 : low >= (float)samples ? samples : (int)ceilf(low);
    const int end = high < 0 ? 0 : high >= (float)(samples - 1) ? samples : (int)high + 1;

    return begin < end ? begin << 16 | end : 0;
}

/* Writes the spans of a box in all cells of its image's map, `apart` numbers from each other. The
 * places have errors of rounding; `rest` is more than these. */
static void box_spans(const struct rotated_crops_params *p, const struct turned *r, size_t apart,
                      int32_t *span)
{
    const float ty = 1 / fmaxf(p->tall, 1e-20f), tx = 1 / fmaxf(p->wide, 1e-20f);

    for (int row = 0; row < p->h; row++)
        for (int col = 0; col < p->w; col++, span += apart) {
            const float y = (float)row * ty, x = (float)col * tx;
            const float rest = 1e-6f * (fabsf(r->y) + fabsf(r->x) + r->h + r->w + y + x);
            const float dy = y - r->y, dx = x - r->x;
            const int down = span_of(dy * r->c - dx * r->s,
                                     fabsf(r->c) * ty + fabsf(r->s) * tx + rest, r->h, p->rows);
            const int across = span_of(dy * r->s + dx * r->c,
                                       fabsf(r->s) * ty + fabsf(r->c) * tx + rest, r->w, p->cols);

            span[0] = across ? down : 0;
            span[1] = down ? across : 0;
        }
}

/* Items: boxes. */
static void spans_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct rotated_crops_params *p = args->params;
    const size_t each = (size_t)p->per_image, cells = (size_t)p->h * (size_t)p->w;

    for (size_t box = begin; box < end; box++) {
        int32_t *span =
            (int32_t *)args->buf[2] + 2 * (box / each * cells * each + box % each);

        if (usable(args, box)) {
            const struct turned r = box_of(args, box);

            box_spans(p, &r, 2 * each, span);
            continue;
        }
        for (size_t i = 0; i < cells; i++)
            span[2 * each * i] = span[2 * each * i + 1] = 0;
    }
}

static bool spans_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                       struct pm_picks *out)
{
    const struct rotated_crops_params *p = params;

    (void)caps;
    return level == 0 && pm_pick_elements("rotated_crops_spans", 64,
                                          count * (size_t)p->h * (size_t)p->w, out);
}

static double spans_flops(const void *params, size_t count)
{
    const struct rotated_crops_params *p = params;

    return 40.0 * (double)count * p->h * p->w;
}

static const struct pm_kernel spans = {
    .name = "rotated_crops_spans", .bufs = "r:boxes r?:count w:span",
    .params_size = sizeof(struct rotated_crops_params), .cpu = spans_cpu, .grain = 1,
    .pick = spans_pick, .flops = spans_flops,
};

/* Adds the gradients of a box's samples that touch the cell (row, col). */
PM_INLINE void add_box(const struct pm_args *args, size_t box, int row, int col,
                       const int32_t span[2], float *dx)
{
    const struct rotated_crops_params *p = args->params;
    const size_t c = (size_t)p->c;

    for (int i = span[0] >> 16; i < (span[0] & 0xffff); i++)
        for (int j = span[1] >> 16; j < (span[1] & 0xffff); j++) {
            const size_t at = (box * (size_t)p->rows + (size_t)i) * (size_t)p->cols + (size_t)j;
            const float *place = (const float *)args->buf[1] + 2 * at;
            const float *dy = (const float *)args->buf[0] + at * c;
            const float wy = 1 - fabsf(place[0] - (float)row);
            const float wx = 1 - fabsf(place[1] - (float)col);

            if (!(wy > 0 && wx > 0))
                continue;
            PM_SIMD
            for (size_t k = 0; k < c; k++)
                dx[k] += wy * wx * dy[k];
        }
}

/* Items: cells of the maps. */
PM_CLONES static void bwd_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct rotated_crops_params *p = args->params;
    const size_t each = (size_t)p->per_image, w = (size_t)p->w, cells = (size_t)p->h * w;

    for (size_t i = begin; i < end; i++) {
        const int row = (int)(i % cells / w), col = (int)(i % w);
        const int32_t *span = (const int32_t *)args->buf[2] + 2 * i * each;
        float *dx = (float *)args->buf[3] + i * (size_t)p->c;

        memset(dx, 0, (size_t)p->c * sizeof *dx);
        for (size_t r = 0; r < each; r++)
            if (span[2 * r] != 0)
                add_box(args, i / cells * each + r, row, col, span + 2 * r, dx);
    }
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct rotated_crops_params *p = params;

    (void)caps;
    return pick_four("rotated_crops_bwd4", "rotated_crops_bwd", p->c % 4 == 0,
                     count * (size_t)p->c, 0, level, out);
}

static const struct pm_kernel bwd = {
    .name = "rotated_crops_bwd", .bufs = "r:dy r:place r:span w:dx",
    .params_size = sizeof(struct rotated_crops_params), .cpu = bwd_cpu, .grain = 16,
    .pick = bwd_pick, .flops = flops,
};

/* ---- the layer ------------------------------------------------------------------------------- */

static int read(const struct pm_node *n, struct rotated_crops_params *out)
{
    const struct rotated_crops_cfg *cfg = n->cfg;
    struct crop_params p;
    int err = PM_OK;

    PM_TRY(pm_crops_read(n, PM_ROTATED_BOX, cfg->size, NULL, &p));
    *out = (struct rotated_crops_params){
        .boxes = p.boxes, .per_image = p.per_image, .rows = p.rows, .cols = p.cols, .h = p.h,
        .w = p.w, .c = p.c, .tall = (float)(p.h - 1), .wide = (float)(p.w - 1) / cfg->width };
    if (2.0 * p.boxes * p.h * p.w > INT_MAX || 2.0 * p.boxes * p.rows * p.cols > INT_MAX)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: %d boxes need tables of more than 2^31 - 1 numbers for a "
                       "map of %dx%d and crops of %dx%d. Make the batch, the number of boxes or "
                       "size smaller", n->name, p.boxes, p.h, p.w, p.rows, p.cols));
out:
    return err;
}

static int infer(struct pm_node *n)
{
    const struct rotated_crops_cfg *cfg = n->cfg;
    struct rotated_crops_params p;
    const int err = read(n, &p);

    return err < 0 ? err : pm_crops_infer(n, PM_ROTATED_BOX, cfg->size);
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    struct rotated_crops_params p;
    struct pm_tensor place, parts;
    float part[2 * PM_CROP_MOST_SIDE];

    if (read(n, &p)) /* infer() checked it */
        return;
    pm_crops_parts(p.rows, 1, part);
    pm_crops_parts(p.cols, 1, part + p.rows);
    parts = pm_calls_constant(c, "parts", part, PM_SHAPE1(p.rows + p.cols), PM_F32);
    place = pm_save(c, n, 0, PM_SHAPE4(p.boxes, p.rows, p.cols, 2), PM_F32);
    pm_call(c, &places, (size_t)p.boxes, &p, PM_BUFS(n->xs[1], pm_crops_count(n), parts, place));
    pm_call(c, &fwd, samples_of(&p), &p, PM_BUFS(n->x, place, n->y));
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    struct rotated_crops_params p;
    struct pm_tensor span;

    n->dxs[1] = PM_NO_TENSOR;
    if (read(n, &p) || !pm_has(n->dx))
        return;
    span = pm_temp(c, PM_SHAPE4(p.boxes / p.per_image, p.h * p.w, p.per_image, 2), PM_I32);
    pm_call(c, &spans, (size_t)p.boxes, &p, PM_BUFS(n->xs[1], pm_crops_count(n), span));
    pm_call(c, &bwd, (size_t)(p.boxes / p.per_image) * (size_t)p.h * (size_t)p.w, &p,
            PM_BUFS(n->dy, n->saved[0], span, n->dx));
}

/* ---- export ---------------------------------------------------------------------------------- */

/* Returns the offsets of an axis's samples from the centre of the box, [n,R,samples]. */
static const char *offsets(struct pm_export *g, const char *side, int samples)
{
    float part[PM_CROP_MOST_SIDE];

    pm_crops_parts(samples, 1, part);
    for (int i = 0; i < samples; i++)
        part[i] -= 0.5f;
    return pm_export_op2(g, "Mul", pm_export_op2(g, "Max", side, pm_export_number(g, 0)),
                         pm_export_numbers(g, samples, part));
}

/* Returns (centre + a * along + b * across) * scale - 1 as [n,R,rows,cols,1]: -1..1 of the map.
 * a [n,R,rows], b [n,R,cols]; centre, along and across [n,R,1]. */
static const char *grid_of(struct pm_export *g, const char *centre, const char *a,
                           const char *along, const char *b, const char *across, float scale)
{
    const int64_t last = 3, before = 2, fifth = 4;
    const char *u = pm_export_op2(g, "Unsqueeze", pm_export_op2(g, "Mul", a, along),
                                  pm_export_integers(g, 1, &last));
    const char *v = pm_export_op2(g, "Unsqueeze", pm_export_op2(g, "Mul", b, across),
                                  pm_export_integers(g, 1, &before));
    u = pm_export_op2(g, "Add", pm_export_op2(g, "Add", u, v),
                      pm_export_op2(g, "Unsqueeze", centre, pm_export_integers(g, 1, &last)));
    u = pm_export_op2(g, "Sub", pm_export_op2(g, "Mul", u, pm_export_number(g, scale)),
                      pm_export_number(g, 1));
    return pm_export_op2(g, "Unsqueeze", u, pm_export_integers(g, 1, &fifth));
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    struct rotated_crops_params p;
    const char *v[PM_ROTATED_BOX], *s, *c, *given, *y;

    if (read(n, &p))
        return NULL;
    const float width = ((const struct rotated_crops_cfg *)n->cfg)->width;
    const int64_t one[] = { 1, 1, 1, 1, 1 }, each[] = { -1, 1, 1, 1 };
    const int64_t grid[] = { -1, (int64_t)p.per_image * p.rows, p.cols, 2 };
    const char *boxes = pm_export_x(g, n, 1);

    given = pm_crops_onnx_usable(n, g, boxes, CROP_MOST_ROTATED);
    boxes = pm_export_op(g, "Where", PM_VALUES(given, boxes, pm_export_number(g, 0)));
    pm_export_op_outputs(g, "Split", PM_VALUES(boxes, pm_export_integers(g, 5, one)), 5, v);
    pm_export_int(g, "axis", -1);
    s = pm_export_op(g, "Sin", PM_VALUES(v[4]));
    c = pm_export_op(g, "Cos", PM_VALUES(v[4]));
    const char *a = offsets(g, v[2], p.rows), *b = offsets(g, v[3], p.cols);
    const char *row = grid_of(g, v[0], a, c, b, s, 2);
    const char *col =
        grid_of(g, v[1], a, pm_export_op(g, "Neg", PM_VALUES(s)), b, c, 2 / width);

    y = pm_export_op2(g, "Concat", col, row);
    pm_export_int(g, "axis", 4);
    y = pm_export_op2(g, "GridSample", pm_export_x(g, n, 0), pm_export_view(g, y, 4, grid));
    pm_export_text(g, "mode", "bilinear");
    pm_export_text(g, "padding_mode", "zeros");
    pm_export_int(g, "align_corners", 1);
    y = pm_crops_onnx_apart(g, y, p.c, p.per_image, p.rows, p.cols);
    return pm_export_op(g, "Where", PM_VALUES(pm_export_view(g, given, 4, each), y,
                                              pm_export_number(g, 0)));
}

const struct pm_layer pm_layer_rotated_crops = {
    .name = "rotated_crops",
    .help = "crops of a map along rotated boxes, all resized to one size; inputs map, boxes, count "
            "of boxes",
    .opts = opts, .cfg_size = sizeof(struct rotated_crops_cfg), .min_inputs = 2, .max_inputs = 3,
    .infer = infer, .forward = forward, .backward = backward, .onnx = onnx,
};
