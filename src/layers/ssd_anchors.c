/* ssd_anchors: anchors whose sizes grow evenly from map to map, as in SSD (Liu et al. 2016, section
 * 2.2) and TensorFlow's ssd_anchor_generator. With L maps,
 * s_k = min_scale + (max_scale - min_scale) k / (L - 1) for k = 0..L-1, and s_L = 1.
 *   The first map, if reduced: (scale 0.1, ratio 1), (s_0, 2), (s_0, 0.5).
 *   Others: (s_k, ratio) for each ratio, then (sqrt(s_k s_k+1), the interpolated ratio).
 * height = s / sqrt(ratio), width = s sqrt(ratio), in units of the shorter side of the images. So
 * anchors of ratio 1 are square in pixels. */
#include "layers/anchors.h"

#include <math.h>

struct ssd_anchors_cfg {
    struct pm_anchor_levels levels; /* first; not an option */
    int num_layers;
    float min_scale, max_scale, interpolated_scale_aspect_ratio;
    float base_anchor_height, base_anchor_width;
    bool reduce_boxes_in_lowest_layer;
    struct pm_floats scales, aspect_ratios, angles, height_stride, width_stride, height_offset,
        width_offset;
};

static const struct pm_opt opts[] = {
    PM_INT(ssd_anchors_cfg, num_layers, 0, 0, PM_MAX_LEVELS,
           "number of maps, which the inputs must have; 0 accepts any"),
    PM_FLOAT(ssd_anchors_cfg, min_scale, 0.2, 1e-4, 100, "scale of the first map's anchors"),
    PM_FLOAT(ssd_anchors_cfg, max_scale, 0.95, 1e-4, 100, "scale of the last map's anchors"),
    PM_FLOATS(ssd_anchors_cfg, scales, "[]", 1e-4, 100,
              "scale of each map's anchors; replaces min_scale and max_scale"),
    PM_FLOATS(ssd_anchors_cfg, aspect_ratios, "[1, 2, 0.5, 3, 0.3333]", 1e-3, 1000,
              "width over height of the anchors of a cell, in their order"),
    PM_FLOAT(ssd_anchors_cfg, interpolated_scale_aspect_ratio, 1, 0, 1000,
             "width over height of one more anchor between this map's scale and the next; 0: none"),
    PM_BOOL(ssd_anchors_cfg, reduce_boxes_in_lowest_layer, true,
            "the first map has 3 fixed anchors a cell: scale 0.1, ratios 2 and 0.5"),
    PM_FLOAT(ssd_anchors_cfg, base_anchor_height, 1, 1e-4, 1e4, "factor on all heights"),
    PM_FLOAT(ssd_anchors_cfg, base_anchor_width, 1, 1e-4, 1e4, "factor on all widths"),
    PM_ANGLES_OPTION(ssd_anchors_cfg),
    PM_FLOATS(ssd_anchors_cfg, height_stride, "[]", 0, 1e6,
              "pixels between centres along y, per map; [] divides the image evenly"),
    PM_FLOATS(ssd_anchors_cfg, width_stride, "[]", 0, 1e6,
              "pixels between centres along x, per map; [] divides the image evenly"),
    PM_FLOATS(ssd_anchors_cfg, height_offset, "[]", -1e6, 1e6,
              "y of the first centre in pixels, per map; [] is half a stride"),
    PM_FLOATS(ssd_anchors_cfg, width_offset, "[]", -1e6, 1e6,
              "x of the first centre in pixels, per map; [] is half a stride"),
    { 0 },
};

/* Scale of map k; that of map L is 1. */
static double scale_of(const struct ssd_anchors_cfg *cfg, int k)
{
    const int maps = cfg->levels.count;

    if (k == maps)
        return 1;
    if (cfg->scales.count)
        return cfg->scales.v[k];
    return cfg->min_scale + (maps > 1 ? ((double)cfg->max_scale - cfg->min_scale) * k / (maps - 1)
                                      : 0);
}

/* Appends an anchor to the level. */
static void add(struct pm_node *n, struct pm_anchor_level *l, double scale, double ratio)
{
    const struct ssd_anchors_cfg *cfg = n->cfg;
    const int *side = &n->in[0]->out_shape.dim[1];
    const double shorter = side[0] < side[1] ? side[0] : side[1];

    l->size[l->count][0] = scale / sqrt(ratio) * cfg->base_anchor_height * shorter / side[0];
    l->size[l->count++][1] = scale * sqrt(ratio) * cfg->base_anchor_width * shorter / side[1];
}

static void make_sizes(struct pm_node *n, int k)
{
    struct ssd_anchors_cfg *cfg = n->cfg;
    struct pm_anchor_level *l = &cfg->levels.level[k];
    const double scale = scale_of(cfg, k), next = scale_of(cfg, k + 1);

    pm_anchors_sizes(n, k, cfg->aspect_ratios.count + 3); /* at most */
    l->count = 0;
    if (k == 0 && cfg->reduce_boxes_in_lowest_layer) {
        add(n, l, 0.1, 1);
        add(n, l, scale, 2);
        add(n, l, scale, 0.5);
        return;
    }
    for (int i = 0; i < cfg->aspect_ratios.count; i++)
        add(n, l, scale, cfg->aspect_ratios.v[i]);
    if (cfg->interpolated_scale_aspect_ratio > 0)
        add(n, l, sqrt(scale * next), cfg->interpolated_scale_aspect_ratio);
}

static int make_centers(struct pm_node *n)
{
    struct ssd_anchors_cfg *cfg = n->cfg;
    double stride[PM_MAX_LEVELS][2], offset[PM_MAX_LEVELS][2];
    bool strides, offsets;
    int err = PM_OK;

    PM_TRY(pm_anchors_pixels(n, "stride", cfg->height_stride, cfg->width_stride, &strides, stride));
    PM_TRY(pm_anchors_pixels(n, "offset", cfg->height_offset, cfg->width_offset, &offsets, offset));
    for (int k = 0; k < cfg->levels.count; k++)
        for (int d = 0; d < 2; d++) {
            struct pm_anchor_level *l = &cfg->levels.level[k];
            const double side = n->in[0]->out_shape.dim[1 + d];

            l->stride[d] = strides ? stride[k][d] / side : 1.0 / l->grid[d];
            l->offset[d] = offsets ? offset[k][d] / side : l->stride[d] / 2;
        }
out:
    return err;
}

static int infer(struct pm_node *n)
{
    const struct ssd_anchors_cfg *cfg = n->cfg;
    int err = PM_OK;

    PM_TRY(pm_anchors_begin(n));
    const int maps = cfg->levels.count;
    if (cfg->num_layers && cfg->num_layers != maps)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: num_layers is %d, but the layer has %d maps; set it to %d "
                       "or 0", n->name, cfg->num_layers, maps, maps));
    if (cfg->scales.count && cfg->scales.count != maps)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: scales has %d numbers; give one for each of the %d maps",
                       n->name, cfg->scales.count, maps));
    if (!cfg->scales.count && maps > 1 && cfg->min_scale > cfg->max_scale)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: min_scale, %g, is above max_scale, %g: later maps are "
                       "coarser and need the larger anchors. Exchange the two, or give scales",
                       n->name, (double)cfg->min_scale, (double)cfg->max_scale));
    if (cfg->aspect_ratios.count == 0)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: aspect_ratios is empty: give at least one ratio of width "
                       "to height, or remove the key for 1, 2, 0.5, 3, 0.3333", n->name));
    for (int k = 0; k < maps; k++)
        make_sizes(n, k);
    PM_TRY(make_centers(n));
    PM_TRY(pm_anchors_infer(n, cfg->angles, true));
out:
    return err;
}

const struct pm_layer pm_layer_ssd_anchors = {
    .name = "ssd_anchors", .help = "anchors of SSD: scales spread evenly over the maps",
    .opts = opts, .cfg_size = sizeof(struct ssd_anchors_cfg), .min_inputs = 2,
    .max_inputs = 1 + PM_MAX_LEVELS, .infer = infer, .forward = pm_anchors_forward,
    .onnx = pm_anchors_onnx,
};
