/* The places of samples. This file is compiled without fused products, and crop_places.comp has the
 * same operations. */
#include "layers/crops.h"

#include <limits.h>
#include <math.h>

#include "layers/infer.h"

/* ---- the row --------------------------------------------------------------------------------- */

static bool usable(const float *corner)
{
    bool all = true;

    for (int i = 0; i < 4; i++)
        all &= fabsf(corner[i]) <= CROP_MOST;
    return all;
}

/* Rounding must not move a sample out of its box: the last one may lie on the last cell. */
static float sample_at(float low, float high, float part, float last)
{
    const float a = low * last, b = high * last, s = a + part * (b - a);
    const float least = a < b ? a : b, most = a < b ? b : a;

    return s < least ? least : s > most ? most : s;
}

/* Items: samples of all boxes, rows and columns. */
static void places_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct crop_params *p = args->params;
    const size_t each = (size_t)(p->rows + p->cols), per_image = (size_t)p->per_image;
    const int32_t *count = args->buf[1];
    const float *part = args->buf[2];

    for (size_t i = begin; i < end; i++) {
        const size_t box = i / each, k = i % each, axis = k < (size_t)p->rows ? 0 : 1;
        const float *corner = (const float *)args->buf[0] + 4 * box;
        const int last = (axis == 0 ? p->h : p->w) - 1;
        const bool given =
            usable(corner) && (!count || (int)(box % per_image) < count[box / per_image]);
        const float s =
            given ? sample_at(corner[axis], corner[2 + axis], part[k], (float)last) : -1;
        const bool inside = s > CROP_ABOVE && s <= (float)last;
        int low = inside && s > 0 ? (int)s : 0;

        low = low > last - 1 && last > 0 ? last - 1 : low;
        ((int32_t *)args->buf[3])[i] = inside ? low : -1;
        ((float *)args->buf[4])[i] = inside && s > 0 ? s - (float)low : 0;
    }
}

static double places_flops(const void *params, size_t count)
{
    (void)params;
    return 10.0 * (double)count;
}

static const struct pm_kernel places = {
    .name = "crop_places", .bufs = "r:boxes r?:count r:part w:place w:weight",
    .params_size = sizeof(struct crop_params), .cpu = places_cpu, .grain = 256,
    .flops = places_flops,
};

void pm_crops_parts(int samples, int bins, float *part)
{
    const int each = samples / bins;

    for (int i = 0; i < samples; i++) {
        const int bin = i / each;
        const double at = each == 1 ? 0.5 : (double)(i % each) / (each - 1);

        part[i] = (float)((bin + at) / bins);
    }
}

void pm_crops_places(struct pm_node *n, struct pm_calls *c, const struct crop_params *p,
                     struct pm_tensor boxes, struct pm_tensor count)
{
    const struct pm_shape shape = PM_SHAPE2(p->boxes, p->rows + p->cols);
    const struct pm_tensor place = pm_save(c, n, 0, shape, PM_I32);
    const struct pm_tensor weight = pm_save(c, n, 1, shape, PM_F32);
    float part[2 * PM_CROP_MOST_SIDE];

    pm_crops_parts(p->rows, p->bins_h, part);
    pm_crops_parts(p->cols, p->bins_w, part + p->rows);
    pm_call(c, &places, pm_count(place), p,
            PM_BUFS(boxes, count,
                    pm_calls_constant(c, "parts", part, PM_SHAPE1(p->rows + p->cols), PM_F32),
                    place, weight));
}

/* ---- inputs and options ---------------------------------------------------------------------- */

static int check_inputs(const struct pm_node *n, int numbers)
{
    const char *layer = n->layer->name;
    const struct pm_shape x = n->in[0]->out_shape, boxes = n->in[1]->out_shape;
    char have[64], other[64];

    if (x.rank != 4 || boxes.rank != 3 || boxes.dim[0] != x.dim[0] ||
        boxes.dim[2] != numbers)
        return pm_fail(PM_ECONFIG, "%s: %s needs a map of n x h x w x c and boxes of n x R x %d, "
                       "not %s and %s", n->name, layer, numbers, pm_shape_text(x, have),
                       pm_shape_text(boxes, other));
    if (n->inputs > 2 && (n->in[2]->out_type != PM_I32 || n->in[2]->out_shape.rank != 1 ||
                          n->in[2]->out_shape.dim[0] != x.dim[0]))
        return pm_fail(PM_ECONFIG, "%s: the third input of %s, %s, is %s of shape %s instead of "
                       "int32 of shape %d. Give the number of valid boxes of each image, or no "
                       "third input", n->name, layer, n->in[2]->name,
                       pm_type_name(n->in[2]->out_type), pm_shape_text(n->in[2]->out_shape, have),
                       x.dim[0]);
    return pm_need_floats(n, 0, 1);
}

static int value_of(struct pm_ints v, int axis)
{
    return v.v[axis < v.count ? axis : 0];
}

static int check_count(const struct pm_node *n, const char *option, struct pm_ints v)
{
    if (v.count == 1 || v.count == 2)
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s: %s must be height and width, or one number for both, not %d "
                   "numbers", n->name, option, v.count);
}

static int check_bins(const struct pm_node *n, const struct crop_params *p, int channels)
{
    const int size[] = { p->rows, p->cols }, bins[] = { p->bins_h, p->bins_w };

    for (int i = 0; i < 2; i++)
        if (size[i] % bins[i] != 0)
            return pm_fail(PM_ECONFIG, "%s: the %s of size is %d, which bins do not divide. Set a "
                           "multiple of %d", n->name, i == 0 ? "height" : "width", size[i],
                           bins[i]);
    if (channels % (p->bins_h * p->bins_w) != 0)
        return pm_fail(PM_ECONFIG, "%s: its map has %d channels, which its %dx%d bins do not "
                       "divide. Set a multiple of %d", n->name, channels, p->bins_h, p->bins_w,
                       p->bins_h * p->bins_w);
    return PM_OK;
}

int pm_crops_read(const struct pm_node *n, int numbers, struct pm_ints size,
                  const struct pm_ints *bins, struct crop_params *out)
{
    const struct pm_shape x = n->in[0]->out_shape, b = n->in[1]->out_shape;
    int err = PM_OK;
    char text[64];

    PM_TRY(check_inputs(n, numbers));
    PM_TRY(check_count(n, "size", size));
    if (bins)
        PM_TRY(check_count(n, "bins", *bins));
    *out = (struct crop_params){
        .per_image = b.dim[1], .rows = value_of(size, 0), .cols = value_of(size, 1),
        .h = x.dim[1], .w = x.dim[2], .bins_h = bins ? value_of(*bins, 0) : 1,
        .bins_w = bins ? value_of(*bins, 1) : 1,
    };
    PM_TRY(check_bins(n, out, x.dim[3]));
    out->c = x.dim[3] / (out->bins_h * out->bins_w);
    out->row_share = 1 / (float)out->rows, out->col_share = 1 / (float)out->cols;
    /* At least the numbers of a box in each table. Kernels count them in int. */
    const double each = (double)out->bins_h * out->h + (double)out->bins_w * out->w + out->rows +
                        out->cols;
    if ((double)b.dim[0] * b.dim[1] * each > INT_MAX)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: boxes of %s need tables of more than 2^31 - 1 numbers for "
                       "a map of %dx%d; make the batch or the number of boxes smaller", n->name,
                       pm_shape_text(b, text), x.dim[1], x.dim[2]));
    out->boxes = b.dim[0] * b.dim[1];
out:
    return err;
}

int pm_crops_infer(struct pm_node *n, int numbers, struct pm_ints size)
{
    struct crop_params p;
    int err = PM_OK;

    PM_TRY(pm_crops_read(n, numbers, size, NULL, &p));
    n->out_shape = PM_SHAPE4(p.boxes, p.rows, p.cols, p.c);
    n->out_type = PM_F32;
out:
    return err;
}
