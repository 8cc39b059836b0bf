/* multiscale_anchors, grid_anchors and flexible_grid_anchors: anchors whose sizes are pixels, as in
 * TensorFlow's generators of these names. An anchor of size s and ratio r has the height
 * s / sqrt(r) and the width s sqrt(r). By default the result is divided by the images' sides.
 *   multiscale_anchors: level l has stride 2^l and sizes anchor_scale 2^l 2^(i/n), i = 0..n-1.
 *   grid_anchors: one map, with a list of scales of one base size.
 *   flexible_grid_anchors: lists for each map.
 * In the first two, a cell has all sizes of the first ratio, then those of the second, ... */
#include "layers/anchors.h"

#include <math.h>

static void set_size(struct pm_anchor_level *l, int i, double height, double width, double ratio)
{
    l->size[i][0] = height / sqrt(ratio);
    l->size[i][1] = width * sqrt(ratio);
}

/* ---- multiscale_anchors --------------------------------------------------------------------- */

enum { DIVISIBLE, HALF };
struct multiscale_cfg {
    struct pm_anchor_levels levels; /* first; not an option */
    int min_level, max_level, scales_per_octave, first_center;
    float anchor_scale;
    struct pm_floats aspect_ratios, angles;
    bool normalize_coordinates;
};

#define NORMALIZE_OPTION(tag)                                                    \
    PM_BOOL(tag, normalize_coordinates, true,                                    \
            "boxes in 0..1 of the images, as the other layers need them; false " \
            "leaves pixels")

static const struct pm_opt multiscale_opts[] = {
    PM_INT(multiscale_cfg, min_level, 3, 0, 16, "level of the first map; its stride is 2^level"),
    PM_INT(multiscale_cfg, max_level, 7, 0, 16, "level of the last map"),
    PM_FLOAT(multiscale_cfg, anchor_scale, 4, 1e-3, 1e4, "smallest size in strides of the level"),
    PM_FLOATS(multiscale_cfg, aspect_ratios, "[1, 2, 0.5]", 1e-3, 1000,
              "width over height of the anchors"),
    PM_INT(multiscale_cfg, scales_per_octave, 2, 1, 64,
           "number of sizes from a level's smallest to twice that"),
    PM_ANGLES_OPTION(multiscale_cfg),
    NORMALIZE_OPTION(multiscale_cfg),
    PM_ENUM(multiscale_cfg, first_center, DIVISIBLE, "divisible|half",
            "centre of the first cell; divisible: half a stride if the stride divides the side of "
            "the images, else 0; half: half a stride"),
    { 0 },
};

static int multiscale_infer(struct pm_node *n)
{
    struct multiscale_cfg *cfg = n->cfg;
    const int sizes = cfg->scales_per_octave;
    int err = PM_OK;

    PM_TRY(pm_anchors_begin(n));
    if (cfg->max_level - cfg->min_level + 1 != cfg->levels.count)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: min_level=%d and max_level=%d are %d levels, but the layer "
                       "has %d maps", n->name, cfg->min_level, cfg->max_level,
                       cfg->max_level - cfg->min_level + 1, cfg->levels.count));
    for (int k = 0; k < cfg->levels.count; k++) {
        struct pm_anchor_level *l = &cfg->levels.level[k];
        const int stride = 1 << (cfg->min_level + k);

        pm_anchors_sizes(n, k, cfg->aspect_ratios.count * sizes);
        for (int i = 0; i < l->count; i++) {
            const double size = cfg->anchor_scale * stride * exp2((double)(i % sizes) / sizes);

            set_size(l, i, size, size, cfg->aspect_ratios.v[i / sizes]);
        }
        for (int d = 0; d < 2; d++) {
            const bool divides = n->in[0]->out_shape.dim[1 + d] % stride == 0;

            l->stride[d] = stride;
            l->offset[d] = divides || cfg->first_center == HALF ? stride / 2.0 : 0;
        }
    }
    if (cfg->normalize_coordinates)
        pm_anchors_normalize(n);
    PM_TRY(pm_anchors_infer(n, cfg->angles, cfg->normalize_coordinates));
out:
    return err;
}

const struct pm_layer pm_layer_multiscale_anchors = {
    .name = "multiscale_anchors",
    .help = "anchors of RetinaNet and FPN: sizes relative to the stride of each level",
    .opts = multiscale_opts, .cfg_size = sizeof(struct multiscale_cfg), .min_inputs = 2,
    .max_inputs = 1 + PM_MAX_LEVELS, .infer = multiscale_infer, .forward = pm_anchors_forward,
    .onnx = pm_anchors_onnx,
};

/* ---- grid_anchors --------------------------------------------------------------------------- */

struct grid_cfg {
    struct pm_anchor_levels levels; /* first; not an option */
    float height, width, height_stride, width_stride, height_offset, width_offset;
    struct pm_floats scales, aspect_ratios, angles;
    bool normalize_coordinates;
};

static const struct pm_opt grid_opts[] = {
    PM_FLOAT(grid_cfg, height, 256, 1e-3, 1e6, "height of an anchor of scale and ratio 1, pixels"),
    PM_FLOAT(grid_cfg, width, 256, 1e-3, 1e6, "width of an anchor of scale and ratio 1, pixels"),
    PM_FLOAT(grid_cfg, height_stride, 16, 0, 1e6, "pixels between centres along y"),
    PM_FLOAT(grid_cfg, width_stride, 16, 0, 1e6, "pixels between centres along x"),
    PM_FLOAT(grid_cfg, height_offset, 0, -1e6, 1e6, "y of the first centre in pixels"),
    PM_FLOAT(grid_cfg, width_offset, 0, -1e6, 1e6, "x of the first centre in pixels"),
    PM_FLOATS(grid_cfg, scales, "[]", 1e-4, 1e4, "factors on height and width; required"),
    PM_FLOATS(grid_cfg, aspect_ratios, "[]", 1e-3, 1000,
              "width over height of the anchors; required"),
    PM_ANGLES_OPTION(grid_cfg),
    NORMALIZE_OPTION(grid_cfg),
    { 0 },
};

static int grid_infer(struct pm_node *n)
{
    struct grid_cfg *cfg = n->cfg;
    struct pm_anchor_level *l = &cfg->levels.level[0];
    const int scales = cfg->scales.count;
    int err = PM_OK;

    PM_TRY(pm_anchors_begin(n));
    pm_anchors_sizes(n, 0, cfg->aspect_ratios.count * scales);
    for (int i = 0; i < l->count; i++)
        set_size(l, i, (double)cfg->scales.v[i % scales] * cfg->height,
                 (double)cfg->scales.v[i % scales] * cfg->width, cfg->aspect_ratios.v[i / scales]);
    l->stride[0] = cfg->height_stride, l->stride[1] = cfg->width_stride;
    l->offset[0] = cfg->height_offset, l->offset[1] = cfg->width_offset;
    if (cfg->normalize_coordinates)
        pm_anchors_normalize(n);
    PM_TRY(pm_anchors_infer(n, cfg->angles, cfg->normalize_coordinates));
out:
    return err;
}

const struct pm_layer pm_layer_grid_anchors = {
    .name = "grid_anchors", .help = "anchors of Faster R-CNN: one map, sizes in pixels",
    .opts = grid_opts, .cfg_size = sizeof(struct grid_cfg), .min_inputs = 2, .max_inputs = 2,
    .infer = grid_infer, .forward = pm_anchors_forward, .onnx = pm_anchors_onnx,
};

/* ---- flexible_grid_anchors ------------------------------------------------------------------ */

struct flexible_cfg {
    struct pm_anchor_levels levels; /* first; not an option */
    struct pm_floats base_sizes, aspect_ratios, angles, height_stride, width_stride, height_offset,
        width_offset;
    struct pm_ints anchors_per_cell;
    bool normalize_coordinates;
};

static const struct pm_opt flexible_opts[] = {
    PM_FLOATS(flexible_cfg, base_sizes, "[]", 1e-3, 1e6,
              "sizes in pixels: those of a cell of the first map, then those of the second, ..."),
    PM_FLOATS(flexible_cfg, aspect_ratios, "[]", 1e-3, 1000,
              "width over height of each of base_sizes"),
    PM_INTS(flexible_cfg, anchors_per_cell, "[]", 1, 100000,
            "how many of base_sizes each map has; [] divides them evenly"),
    PM_FLOATS(flexible_cfg, height_stride, "[]", 0, 1e6, "pixels between centres along y, per map"),
    PM_FLOATS(flexible_cfg, width_stride, "[]", 0, 1e6, "pixels between centres along x, per map"),
    PM_FLOATS(flexible_cfg, height_offset, "[]", -1e6, 1e6,
              "y of the first centre in pixels, per map; [] is 0"),
    PM_FLOATS(flexible_cfg, width_offset, "[]", -1e6, 1e6,
              "x of the first centre in pixels, per map; [] is 0"),
    PM_ANGLES_OPTION(flexible_cfg),
    NORMALIZE_OPTION(flexible_cfg),
    { 0 },
};

/* Stores the number of anchors of each map's cells. */
static int counts_of(const struct pm_node *n, int count[PM_MAX_LEVELS])
{
    const struct flexible_cfg *cfg = n->cfg;
    const int all = cfg->base_sizes.count, maps = cfg->levels.count;
    const struct pm_ints given = cfg->anchors_per_cell;
    int64_t sum = 0;

    if (cfg->aspect_ratios.count != all)
        return pm_fail(PM_ECONFIG, "%s: base_sizes has %d numbers, but aspect_ratios has %d; give "
                       "a ratio for each size", n->name, all, cfg->aspect_ratios.count);
    if (given.count ? given.count != maps : all % maps)
        return pm_fail(PM_ECONFIG, "%s: anchors_per_cell has %d numbers; give one for each of the "
                       "%d maps, which share %d base_sizes", n->name, given.count, maps, all);
    for (int k = 0; k < maps; k++)
        sum += count[k] = given.count ? given.v[k] : all / maps;
    if (sum != all)
        return pm_fail(PM_ECONFIG, "%s: anchors_per_cell adds up to %lld, but base_sizes has %d "
                       "numbers", n->name, (long long)sum, all);
    return PM_OK;
}

static int flexible_infer(struct pm_node *n)
{
    struct flexible_cfg *cfg = n->cfg;
    double stride[PM_MAX_LEVELS][2], offset[PM_MAX_LEVELS][2] = { { 0 } };
    int count[PM_MAX_LEVELS], at = 0, err = PM_OK;
    bool given;

    PM_TRY(pm_anchors_begin(n));
    PM_TRY(counts_of(n, count));
    PM_TRY(pm_anchors_pixels(n, "stride", cfg->height_stride, cfg->width_stride, &given, stride));
    if (!given)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: height_stride and width_stride are required: a number of "
                       "pixels for each of the %d maps", n->name, cfg->levels.count));
    PM_TRY(pm_anchors_pixels(n, "offset", cfg->height_offset, cfg->width_offset, &given, offset));
    for (int k = 0; k < cfg->levels.count; k++) {
        struct pm_anchor_level *l = &cfg->levels.level[k];

        pm_anchors_sizes(n, k, count[k]);
        for (int i = 0; i < count[k]; i++, at++)
            set_size(l, i, cfg->base_sizes.v[at], cfg->base_sizes.v[at], cfg->aspect_ratios.v[at]);
        for (int d = 0; d < 2; d++)
            l->stride[d] = stride[k][d], l->offset[d] = offset[k][d];
    }
    if (cfg->normalize_coordinates)
        pm_anchors_normalize(n);
    PM_TRY(pm_anchors_infer(n, cfg->angles, cfg->normalize_coordinates));
out:
    return err;
}

const struct pm_layer pm_layer_flexible_grid_anchors = {
    .name = "flexible_grid_anchors", .help = "anchors with sizes in pixels listed for each map",
    .opts = flexible_opts, .cfg_size = sizeof(struct flexible_cfg), .min_inputs = 2,
    .max_inputs = 1 + PM_MAX_LEVELS, .infer = flexible_infer, .forward = pm_anchors_forward,
    .onnx = pm_anchors_onnx,
};
