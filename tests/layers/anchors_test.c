/* The anchor layers by their definitions in TensorFlow's documentation: boxes are made one by one,
 * in pixels, and then divided by the sides of the images. tests/net/detection_anchors_test.c has
 * the known counts and the messages. */
#include "check.h"

struct centers {
    double first[2], step[2]; /* y, x in pixels */
};

/* The same for rotated boxes: the anchor at each angle. The unit is the images' height. */
static void put_rotated(struct ref *r, size_t begin, int k, int per_cell, int anchor,
                        struct centers at, double height, double width, int angles,
                        const double *angle)
{
    const int *d = r->in[k].shape.dim;
    const double unit =
        ref_says(r, "normalize_coordinates", "false", "true") ? 1 : r->in[0].shape.dim[1];

    for (int cell = 0; cell < d[1] * d[2]; cell++)
        for (int i = 0; i < angles; i++) {
            const size_t row =
                begin / 4 * (size_t)angles + ((size_t)cell * per_cell + anchor) * angles + i;
            const double y = at.first[0] + cell / d[2] * at.step[0];
            const double x = at.first[1] + cell % d[2] * at.step[1];
            const double box[] = { y / unit, x / unit, height / unit, width / unit,
                                   (float)angle[i] };

            memcpy(&r->y.v[5 * row], box, sizeof box);
            for (int n = 0; n < 5; n++)
                r->y.mag[5 * row + n] = fabs(box[n]);
        }
}

/* Writes the box of one anchor of every cell of map k (from 1), whose anchors are `per_cell`. */
static void put(struct ref *r, size_t begin, int k, int per_cell, int anchor, struct centers at,
                double height, double width)
{
    const int *d = r->in[k].shape.dim;
    double angle[8];
    const int angles = ref_numbers(r, "angles", angle, 8);
    const bool pixels = ref_says(r, "normalize_coordinates", "false", "true");

    if (angles) {
        put_rotated(r, begin, k, per_cell, anchor, at, height, width, angles, angle);
        return;
    }
    for (int cell = 0; cell < d[1] * d[2]; cell++) {
        double *v = &r->y.v[begin + 4 * ((size_t)cell * per_cell + anchor)];

        for (int i = 0; i < 4; i++) {
            const int axis = i % 2, place = axis ? cell % d[2] : cell / d[2];
            const double side = pixels ? 1 : r->in[0].shape.dim[1 + axis];
            const double center = at.first[axis] + place * at.step[axis];
            const double half = (axis ? width : height) / 2;

            v[i] = (center + (i < 2 ? -half : half)) / side;
            r->y.mag[v + i - r->y.v] = (fabs(center) + half) / side;
        }
    }
}

static size_t cells(const struct ref *r, int k)
{
    return (size_t)r->in[k].shape.dim[1] * r->in[k].shape.dim[2];
}

static void room(struct ref *r, const int *per_cell)
{
    double angle[8];
    const int angles = ref_numbers(r, "angles", angle, 8);
    size_t count = 0;

    for (int k = 1; k < r->inputs; k++)
        count += cells(r, k) * per_cell[k] * (angles ? angles : 1);
    ref_output(r, PM_SHAPE2((int)count, angles ? 5 : 4));
}

/* Reads the k-th number (from 1) of a list. Returns false if it has none. */
static bool item(const struct ref *r, const char *key, int k, double *out)
{
    double v[8];

    if (ref_numbers(r, key, v, 8) < k)
        return false;
    *out = v[k - 1];
    return true;
}

/* Stores TensorFlow's (scale, ratio) list of map k. */
static int ssd_specs(const struct ref *r, int k, double spec[16][2])
{
    const int maps = r->inputs - 1;
    double ratio[8] = { 1, 2, 0.5, 3, 0.3333f }, scale[2];
    int ratios = ref_numbers(r, "aspect_ratios", ratio, 8), count = 0;
    const double low = (float)ref_number(r, "min_scale", 0.2f);
    const double high = (float)ref_number(r, "max_scale", 0.95f);
    const double extra = ref_number(r, "interpolated_scale_aspect_ratio", 1);

    for (int i = 0; i < 2; i++)
        if (k + i > maps)
            scale[i] = 1;
        else if (!item(r, "scales", k + i, &scale[i]))
            scale[i] = maps == 1 ? low : low + (high - low) * (k + i - 1) / (maps - 1);
    if (k == 1 && ref_says(r, "reduce_boxes_in_lowest_layer", "true", "true")) {
        const double fixed[3][2] = { { 0.1, 1 }, { scale[0], 2 }, { scale[0], 0.5 } };

        memcpy(spec, fixed, sizeof fixed);
        return 3;
    }
    for (ratios = ratios ? ratios : 5; count < ratios; count++)
        spec[count][0] = scale[0], spec[count][1] = (float)ratio[count];
    if (extra > 0)
        spec[count][0] = sqrt(scale[0] * scale[1]), spec[count++][1] = extra;
    return count;
}

static void ssd_anchors(struct ref *r)
{
    const double side[] = { r->in[0].shape.dim[1], r->in[0].shape.dim[2] };
    int count[8] = { 0 };
    double spec[16][2];
    size_t at = 0;

    for (int k = 1; k < r->inputs; k++)
        count[k] = ssd_specs(r, k, spec);
    room(r, count);
    for (int k = 1; k < r->inputs; at += 4 * cells(r, k) * count[k], k++) {
        const int *d = r->in[k].shape.dim;
        const double unit = fmin(side[0], side[1]);
        struct centers c = { .step = { side[0] / d[1], side[1] / d[2] } };

        item(r, "height_stride", k, &c.step[0]);
        item(r, "width_stride", k, &c.step[1]);
        c.first[0] = c.step[0] / 2, c.first[1] = c.step[1] / 2;
        item(r, "height_offset", k, &c.first[0]);
        item(r, "width_offset", k, &c.first[1]);
        ssd_specs(r, k, spec);
        for (int i = 0; i < count[k]; i++)
            put(r, at, k, count[k], i, c,
                unit * spec[i][0] / sqrt(spec[i][1]) * ref_number(r, "base_anchor_height", 1),
                unit * spec[i][0] * sqrt(spec[i][1]) * ref_number(r, "base_anchor_width", 1));
    }
}

static void multiscale_anchors(struct ref *r)
{
    const int sizes = (int)ref_number(r, "scales_per_octave", 2);
    double ratio[8] = { 1, 2, 0.5 };
    const int given = ref_numbers(r, "aspect_ratios", ratio, 8), ratios = given ? given : 3;
    int count[8];
    size_t at = 0;

    for (int k = 0; k < 8; k++)
        count[k] = ratios * sizes;
    room(r, count);
    for (int k = 1; k < r->inputs; at += 4 * cells(r, k) * count[k], k++) {
        const int stride = (int)pow(2, ref_number(r, "min_level", 3) + k - 1);
        struct centers c = { .step = { stride, stride } };

        for (int d = 0; d < 2; d++)
            if (r->in[0].shape.dim[1 + d] % stride == 0 ||
                ref_says(r, "first_center", "half", "divisible"))
                c.first[d] = stride * 0.5;
        for (int i = 0; i < ratios; i++)
            for (int s = 0; s < sizes; s++) {
                const double size = ref_number(r, "anchor_scale", 4) * stride *
                                    pow(2, s / (double)sizes);

                put(r, at, k, count[k], i * sizes + s, c, size / sqrt(ratio[i]),
                    size * sqrt(ratio[i]));
            }
    }
}

static void grid_anchors(struct ref *r)
{
    double scale[8], ratio[8];
    const int scales = ref_numbers(r, "scales", scale, 8);
    const int ratios = ref_numbers(r, "aspect_ratios", ratio, 8);
    const int count[2] = { 0, scales * ratios };
    const struct centers c = {
        { ref_number(r, "height_offset", 0), ref_number(r, "width_offset", 0) },
        { ref_number(r, "height_stride", 16), ref_number(r, "width_stride", 16) },
    };

    room(r, count);
    for (int i = 0; i < ratios; i++)
        for (int s = 0; s < scales; s++)
            put(r, 0, 1, count[1], i * scales + s, c,
                scale[s] / sqrt(ratio[i]) * ref_number(r, "height", 256),
                scale[s] * sqrt(ratio[i]) * ref_number(r, "width", 256));
}

static void flexible_grid_anchors(struct ref *r)
{
    double size[16], ratio[16];
    const int all = ref_numbers(r, "base_sizes", size, 16);
    int count[8] = { 0 };
    size_t at = 0, first = 0;

    ref_numbers(r, "aspect_ratios", ratio, 16);
    for (int k = 1; k < r->inputs; k++) {
        double per_cell = all / (r->inputs - 1);

        item(r, "anchors_per_cell", k, &per_cell);
        count[k] = (int)per_cell;
    }
    room(r, count);
    for (int k = 1; k < r->inputs; at += 4 * cells(r, k) * count[k], first += count[k], k++) {
        struct centers c = { .first = { 0 } };

        item(r, "height_stride", k, &c.step[0]);
        item(r, "width_stride", k, &c.step[1]);
        item(r, "height_offset", k, &c.first[0]);
        item(r, "width_offset", k, &c.first[1]);
        for (int i = 0; i < count[k]; i++)
            put(r, at, k, count[k], i, c, size[first + i] / sqrt(ratio[first + i]),
                size[first + i] * sqrt(ratio[first + i]));
    }
}

static const struct check_case ssd_cases[] = {
    { "ssd_anchors", "1x300x300x3 1x19x19x1 1x10x10x1 1x5x5x1 1x3x3x1 1x2x2x1 1x1x1x1" },
    { "ssd_anchors", "2x128x96x3 2x16x12x8 2x8x6x2 2x4x3x5" },
    { "ssd_anchors reduce_boxes_in_lowest_layer=false interpolated_scale_aspect_ratio=0",
      "1x96x160x1 1x6x10x1 1x3x5x1" },
    { "ssd_anchors scales=[0.25,0.5,0.75] aspect_ratios=[1,4] interpolated_scale_aspect_ratio=2",
      "1x64x64x3 1x7x5x1 1x3x3x1 1x1x1x1" },
    { "ssd_anchors height_stride=[16,32] width_stride=[8,16] base_anchor_height=0.5 "
      "base_anchor_width=2", "1x64x32x3 1x4x4x1 1x2x2x1" },
    { "ssd_anchors height_stride=[16,32] width_stride=[8,16] height_offset=[-4,3] "
      "width_offset=[0,1]", "1x64x32x3 1x4x4x1 1x2x2x1" },
    { "ssd_anchors angles=[0,0.7853982,1.5707964]", "2x128x96x3 2x16x12x8 2x8x6x2 2x4x3x5" },
    { "ssd_anchors angles=[-0.1] height_stride=[16,32] width_stride=[8,16] base_anchor_width=2",
      "1x64x32x3 1x4x4x1 1x2x2x1" },
    { "ssd_anchors min_scale=0.5 max_scale=0.25 num_layers=1", "1x64x64x3 1x4x4x1" },
    { 0 },
};
#define ANGLES "angles=[-1.5707964,-1.0471976,-0.52359879,0,0.52359879,1.0471976,1.5707964] "
static const struct check_case multiscale_cases[] = {
    { "multiscale_anchors min_level=3 max_level=5 angles=[0,0.785398]",
      "2x100x72x3 2x13x9x1 2x7x5x1 2x4x3x1" },
    { "multiscale_anchors", "1x320x320x3 1x40x40x1 1x20x20x1 1x10x10x1 1x5x5x1 1x3x3x1" },
    { "multiscale_anchors min_level=3 max_level=5", "2x100x72x3 2x13x9x1 2x7x5x1 2x4x3x1" },
    { "multiscale_anchors min_level=3 max_level=5 first_center=half scales_per_octave=3 "
      "aspect_ratios=[2,1,0.5]", "2x100x72x3 2x13x9x1 2x7x5x1 2x4x3x1" },
    { "multiscale_anchors min_level=4 max_level=4 anchor_scale=2.5 normalize_coordinates=false",
      "1x64x96x3 1x4x6x1" },
    { 0 },
};
static const struct check_case grid_cases[] = {
    /* RBox-CNN's 84 anchors of a cell. */
    { "grid_anchors " ANGLES "scales=[0.25,0.5,0.75,1] aspect_ratios=[3,5,7]",
      "1x160x240x3 1x10x15x8" },
    { "grid_anchors scales=[1] aspect_ratios=[4] height=32 width=48 angles=[0.5] "
      "normalize_coordinates=false", "1x32x64x3 1x4x8x1" },
    { "grid_anchors scales=[0.25,0.5,1,2] aspect_ratios=[0.5,1,2]", "1x160x240x3 1x10x15x8" },
    { "grid_anchors scales=[1] aspect_ratios=[4] height=32 width=48 height_stride=8 width_stride=4 "
      "height_offset=4 width_offset=-2 normalize_coordinates=false", "1x32x32x3 1x4x8x1" },
    { 0 },
};
static const struct check_case flexible_cases[] = {
    { "flexible_grid_anchors base_sizes=[16,32] aspect_ratios=[1,3] height_stride=[16,32] "
      "width_stride=[16,32] angles=[-0.5,0,0.5]", "1x32x64x3 1x2x4x1 1x1x2x1" },
    { "flexible_grid_anchors base_sizes=[16,32,64] aspect_ratios=[1,2,0.5] anchors_per_cell=[2,1] "
      "height_stride=[16,32] width_stride=[8,16] height_offset=[8,16]  width_offset=[4,8]",
      "1x64x32x3 1x4x4x1 1x2x2x1" },
    { "flexible_grid_anchors base_sizes=[16,32] aspect_ratios=[1,1] height_stride=[16,32] "
      "width_stride=[16,32] normalize_coordinates=false", "1x64x64x3 1x4x4x1 1x2x2x1" },
    { 0 },
};
/* The C function rounds once; 2 units allow the reference's own order of operations. */
const struct pm_layer_test pm_test_ssd_anchors = { ssd_cases, ssd_anchors, .ulps = 2 };
const struct pm_layer_test pm_test_multiscale_anchors = { multiscale_cases, multiscale_anchors,
                                                          .ulps = 2 };
const struct pm_layer_test pm_test_grid_anchors = { grid_cases, grid_anchors, .ulps = 2 };
const struct pm_layer_test pm_test_flexible_grid_anchors = { flexible_cases, flexible_grid_anchors,
                                                             .ulps = 2 };
