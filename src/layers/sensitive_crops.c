/* sensitive_crops: R-FCN's position-sensitive crops (Dai et al. 2016, as in TensorFlow's Object
 * Detection API). Inputs: map [n,H,W, bins_h bins_w D], boxes [n,R,4] and, optionally, count I32
 * [n]; crops.h describes them. The map's channels are one group of D for each bin, row by row. Bin
 * (i, j) of a box is sampled from its own group. The output [n R, D] is the mean of all bins and
 * samples.
 *
 * Such a mean is a sum over cells. A cell's weight is a product: its weight in the bin's rows of
 * samples, times that in the bin's columns. sensitive_weights computes both once for each box;
 * forward and backward read them. The cells of the gradient sum over boxes in order, so the same
 * bits come in every run. Only the map gets a gradient. */
#include "layers/crops.h"

#include <string.h>

#include "device/pick.h"
#include "layers/vmath.h"
#include "onnx/export_nodes.h"

struct sensitive_cfg { struct pm_ints bins, size; };

static const struct pm_opt opts[] = {
    PM_INTS(sensitive_cfg, bins, "[3]", 1, 64, "bins of a box: height and width, or one for both"),
    PM_INTS(sensitive_cfg, size, "[12]", 1, PM_CROP_MOST_SIDE,
            "samples of a box: height and width, or one for both; bins must divide them"),
    { 0 },
};

/* ---- weights of cells ------------------------------------------------------------------------ */

/* Numbers of a box's table: a weight for each bin and row of the map, then for each bin and
 * column. */
static size_t table_of(const struct crop_params *p)
{
    return (size_t)p->bins_h * (size_t)p->h + (size_t)p->bins_w * (size_t)p->w;
}

/* Items: numbers of the tables. */
static void weights_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct crop_params *p = args->params;
    const size_t each = table_of(p), down = (size_t)p->bins_h * (size_t)p->h;
    float *bins = args->buf[2];

    for (size_t i = begin; i < end; i++) {
        const size_t box = i / each, at = i % each;
        const bool column = at >= down;
        const int size = column ? p->w : p->h, k = (int)(column ? at - down : at);
        const int samples = column ? p->cols / p->bins_w : p->rows / p->bins_h;
        const size_t first = box * (size_t)(p->rows + p->cols) +
                             (size_t)((column ? p->rows : 0) + k / size * samples);
        const int32_t *place = (const int32_t *)args->buf[0] + first;
        const float *weight = (const float *)args->buf[1] + first;
        float sum = 0;

        for (int s = 0; s < samples; s++)
            sum += pm_crops_weight(place[s], weight[s], k % size);
        bins[i] = sum * (column ? p->col_share : p->row_share);
    }
}

static double weights_flops(const void *params, size_t count)
{
    const struct crop_params *p = params;
    const int tall = p->rows / p->bins_h, wide = p->cols / p->bins_w;

    return (double)count * (tall + wide);
}

static const struct pm_kernel weights = {
    .name = "sensitive_weights", .bufs = "r:place r:weight w:bins",
    .params_size = sizeof(struct crop_params), .cpu = weights_cpu, .grain = 256,
    .flops = weights_flops,
};

/* ---- forward --------------------------------------------------------------------------------- */

struct range { int begin, end; };

/* Returns the cells that `count` samples touch on an axis of `size` cells. */
PM_INLINE struct range touched(const int32_t *place, int count, int size)
{
    struct range r = { size, 0 };

    for (int s = 0; s < count; s++) {
        const int end = place[s] + 2 < size ? place[s] + 2 : size;

        if (place[s] < 0)
            continue;
        r.begin = place[s] < r.begin ? place[s] : r.begin;
        r.end = end > r.end ? end : r.end;
    }
    return r;
}

/* Adds bin (i, j) of a box to y. x: the image. */
PM_INLINE void add_bin(const struct pm_args *args, size_t box, int i, int j, const float *x,
                       float *y)
{
    const struct crop_params *p = args->params;
    const int tall = p->rows / p->bins_h, wide = p->cols / p->bins_w, c = p->c;
    const int32_t *place = (const int32_t *)args->buf[1] + box * (size_t)(p->rows + p->cols);
    const float *bins = (const float *)args->buf[2] + box * table_of(p);
    const float *down = bins + i * p->h, *across = bins + p->bins_h * p->h + j * p->w;
    const struct range rows = touched(place + i * tall, tall, p->h),
                       cols = touched(place + p->rows + j * wide, wide, p->w);
    const size_t pixel = (size_t)(p->bins_h * p->bins_w) * (size_t)c;

    for (int row = rows.begin; row < rows.end; row++)
        for (int col = cols.begin; col < cols.end; col++) {
            const float *from = x + ((size_t)row * (size_t)p->w + (size_t)col) * pixel +
                                (size_t)(i * p->bins_w + j) * (size_t)c;
            const float share = down[row] * across[col];

            PM_SIMD
            for (int k = 0; k < c; k++)
                y[k] += share * from[k];
        }
}

/* Items: boxes. */
PM_CLONES static void fwd_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct crop_params *p = args->params;
    const size_t image = (size_t)p->h * (size_t)p->w * (size_t)(p->bins_h * p->bins_w) *
                         (size_t)p->c;

    for (size_t box = begin; box < end; box++) {
        const float *x = (const float *)args->buf[0] + box / (size_t)p->per_image * image;
        float *y = (float *)args->buf[3] + box * (size_t)p->c;

        memset(y, 0, (size_t)p->c * sizeof *y);
        for (int i = 0; i < p->bins_h; i++)
            for (int j = 0; j < p->bins_w; j++)
                add_bin(args, box, i, j, x, y);
    }
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct crop_params *p = params;

    (void)caps;
    return pick_four("sensitive_fwd4", "sensitive_fwd", p->c % 4 == 0, count * (size_t)p->c, 0,
                     level, out);
}

/* An upper limit: every sample touches cells of its own. */
static double flops(const void *params, size_t count)
{
    const struct crop_params *p = params;

    (void)count;
    return 8.0 * p->boxes * p->rows * p->cols * p->c;
}

static const struct pm_kernel fwd = {
    .name = "sensitive_fwd", .bufs = "r:x r:place r:bins w:y",
    .params_size = sizeof(struct crop_params), .cpu = fwd_cpu, .grain = 1, .pick = fwd_pick,
    .flops = flops,
};

/* ---- backward -------------------------------------------------------------------------------- */

/* Adds the gradient of a box to a row of the map, in the groups of row i of its bins. */
PM_INLINE void add_bins(const struct crop_params *p, int i, float down, const float *across,
                        const float *dy, float *dx)
{
    const size_t pixel = (size_t)(p->bins_h * p->bins_w) * (size_t)p->c;

    for (int j = 0; j < p->bins_w; j++)
        for (int col = 0; col < p->w; col++) {
            const float share = down * across[j * p->w + col];
            float *to = dx + (size_t)col * pixel + (size_t)(i * p->bins_w + j) * (size_t)p->c;

            if (share == 0)
                continue;
            PM_SIMD
            for (int k = 0; k < p->c; k++)
                to[k] += share * dy[k];
        }
}

/* Items: rows of the map. */
PM_CLONES static void bwd_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct crop_params *p = args->params;
    const size_t each = (size_t)p->per_image, table = table_of(p), c = (size_t)p->c;
    const size_t h = (size_t)p->h, line = (size_t)(p->w * p->bins_h * p->bins_w) * c;

    for (size_t row = begin; row < end; row++) {
        const size_t first = row / h * each;
        float *dx = (float *)args->buf[2] + row * line;

        memset(dx, 0, line * sizeof *dx);
        for (size_t r = first; r < first + each; r++) {
            const float *down = (const float *)args->buf[1] + r * table;
            const float *dy = (const float *)args->buf[0] + r * c;

            for (int i = 0; i < p->bins_h; i++)
                if (down[(size_t)i * h + row % h] != 0)
                    add_bins(p, i, down[(size_t)i * h + row % h], down + (size_t)p->bins_h * h, dy,
                             dx);
        }
    }
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct crop_params *p = params;
    const size_t line = (size_t)(p->w * p->bins_h * p->bins_w) * (size_t)p->c;

    (void)caps;
    return pick_four("sensitive_bwd4", "sensitive_bwd", p->c % 4 == 0, count * line, 0, level, out);
}

static const struct pm_kernel bwd = {
    .name = "sensitive_bwd", .bufs = "r:dy r:bins w:dx", .params_size = sizeof(struct crop_params),
    .cpu = bwd_cpu, .grain = 1, .pick = bwd_pick, .flops = flops,
};

/* ---- the layer ------------------------------------------------------------------------------- */

static int read(const struct pm_node *n, struct crop_params *p)
{
    const struct sensitive_cfg *cfg = n->cfg;
    return pm_crops_read(n, 4, cfg->size, &cfg->bins, p);
}

static int infer(struct pm_node *n)
{
    struct crop_params p;
    int err = PM_OK;

    PM_TRY(read(n, &p));
    n->out_shape = PM_SHAPE2(p.boxes, p.c);
    n->out_type = PM_F32;
out:
    return err;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    struct crop_params p;
    struct pm_tensor bins;

    if (read(n, &p)) /* infer() checked it */
        return;
    pm_crops_places(n, c, &p, n->xs[1], pm_crops_count(n));
    bins = pm_save(c, n, 2, PM_SHAPE2(p.boxes, (int)table_of(&p)), PM_F32);
    pm_call(c, &weights, pm_count(bins), &p, PM_BUFS(n->saved[0], n->saved[1], bins));
    pm_call(c, &fwd, (size_t)p.boxes, &p, PM_BUFS(n->x, n->saved[0], bins, n->y));
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    struct crop_params p;

    n->dxs[1] = PM_NO_TENSOR;
    if (read(n, &p) || !pm_has(n->dx))
        return;
    pm_call(c, &bwd, (size_t)(p.boxes / p.per_image) * (size_t)p.h, &p,
            PM_BUFS(n->dy, n->saved[2], n->dx));
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    struct crop_params p;
    const char *y;

    if (read(n, &p))
        return NULL;
    const int bins = p.bins_h * p.bins_w;
    const int64_t apart[] = { -1, bins, p.c, p.per_image, (int64_t)(p.rows * p.cols / bins) };
    const int64_t together[] = { -1, p.c };

    y = pm_crops_onnx(n, g, &p);
    y = pm_export_op(g, "Reshape", PM_VALUES(y, pm_export_integers(g, 5, apart)));
    y = pm_export_op(g, "ReduceMean", PM_VALUES(y));
    pm_export_ints(g, "axes", PM_INT64S(1, 4));
    pm_export_int(g, "keepdims", 0);
    y = pm_export_op(g, "Transpose", PM_VALUES(y));
    pm_export_ints(g, "perm", PM_INT64S(0, 2, 1));
    return pm_export_op(g, "Reshape", PM_VALUES(y, pm_export_integers(g, 2, together)));
}

const struct pm_layer pm_layer_sensitive_crops = {
    .name = "sensitive_crops",
    .help = "means of a map's channel groups in the bins of boxes (R-FCN); inputs map, boxes, "
            "count of boxes",
    .opts = opts, .cfg_size = sizeof(struct sensitive_cfg), .min_inputs = 2, .max_inputs = 3,
    .infer = infer, .forward = forward, .backward = backward, .onnx = onnx,
};
