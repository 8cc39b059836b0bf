/* segmentation_instance_heads: losses and outputs of a net with heads of instances ("center",
 * "offset").
 *
 * Both maps are resized to the picture's size, bilinearly with aligned corners. The net predicts
 * offsets in its own pixels, so they are multiplied by (H - 1) / (h - 1), a whole number. For
 * offsets along rows H is the picture's height and h the map's, for columns their widths. With
 * center_weight 200 and offset_weight 0.01 the losses are
 *
 *     center  200 sum of w (p - t)^2 / sum of w
 *     offset  0.01 sum of w |p - t| / sum of w, over both directions
 *
 * beside the classes' loss with a weight per pixel. In seed4 there are no weights and no factors.
 * The sum is divided by the number of terms that are not 0, and offsets are lengths in the
 * picture's pixels, without scaling. (The original takes means over the batch first, so there a
 * term is 0 only if it is 0 in every example.)
 *
 * Heat and offsets are averaged over evaluation modes. Mirrored maps are mirrored back, which
 * changes the sign of the horizontal offsets. Offsets of scaled pictures are divided by their
 * scale. */
#include "tasks/segmentation/segmentation.h"

#include <math.h>

static bool is_seed4(const struct pm_task *s)
{
    return s->pixels.instance.mode == PM_INSTANCE_SEED4;
}

/* Returns the picture's size over the map's: (size - 1) / (map - 1). */
static int ratio_of(int size, int map)
{
    const int ratio = map > 1 ? (size - 1) / (map - 1) : 1;

    return ratio > 1 ? ratio : 1;
}

/* ---- nodes ------------------------------------------------------------------------------- */

static struct pm_node *added(struct pm_net *net, const char *name, struct pm_node *x,
                             const char *layer)
{
    return pm_net_add(net, pm_segmentation_own(net, name), x, "%s", layer);
}

static struct pm_node *both(struct pm_net *net, const char *name, struct pm_node *y,
                            struct pm_node *x)
{
    return pm_net_add_many(net, pm_segmentation_own(net, name), (struct pm_node *[]){ y, x }, 2,
                           "concat");
}

static struct pm_node *rows_of(struct pm_net *net, struct pm_node *offset)
{
    return added(net, "offset_y", offset, "slice begin=[0,0,0,0] size=[-1,-1,-1,1]");
}

static struct pm_node *columns_of(struct pm_net *net, struct pm_node *offset)
{
    return added(net, "offset_x", offset, "slice begin=[0,0,0,1] size=[-1,-1,-1,1]");
}

static struct pm_node *scaled(struct pm_net *net, const char *name, struct pm_node *x, double scale)
{
    return scale == 1
               ? x
               : pm_net_add(net, pm_segmentation_own(net, name), x, "affine scale=%.9g", scale);
}

/* Multiplies offsets by these numbers. */
static struct pm_node *stretched(struct pm_net *net, struct pm_node *offset, double y, double x)
{
    if (y == x)
        return scaled(net, "offset_pixels", offset, y);
    return both(net, "offset_pixels", scaled(net, "offset_pixels_y", rows_of(net, offset), y),
                scaled(net, "offset_pixels_x", columns_of(net, offset), x));
}

/* ---- losses ------------------------------------------------------------------------------ */

static void add_loss(struct pm_net *net, const char *name, const char *layer, float weight,
                     struct pm_node *x, const char *target, const struct pm_task *s)
{
    struct pm_node *in[3] = { x, pm_net_find(net, target) };
    char weights[64];

    snprintf(weights, sizeof weights, "%s_weight", target);
    in[2] = pm_net_find(net, weights);
    pm_net_add_many(net, name, in, is_seed4(s) ? 2 : 3, "%s weight=%.9g normalize=%s", layer,
                    (double)weight, is_seed4(s) ? "nonzero" : "weights");
}

static float weight_of(float given, float reference, const struct pm_task *s)
{
    return !isnan(given) ? given : is_seed4(s) ? 1 : reference;
}

void pm_segmentation_instance_losses(struct pm_net *net, const struct pm_heads *heads,
                                     const struct pm_task *s)
{
    const struct pm_segmentation_loss *c = s->pixels.loss;
    struct pm_node *heat = pm_heads_find(heads, "center"),
                   *lengths = pm_heads_find(heads, "offset");
    const struct pm_shape map = lengths->out_shape;
    const struct pm_shape target = pm_net_find(net, "center")->out_shape;
    const int height = target.dim[1], width = target.dim[2];
    struct pm_node *center = pm_segmentation_resized(
        net, pm_segmentation_own(net, "loss_center_map"), heat, height, width, "bilinear");
    struct pm_node *offset = pm_segmentation_resized(
        net, pm_segmentation_own(net, "loss_offset_map"), lengths, height, width, "bilinear");

    if (!is_seed4(s))
        offset = stretched(net, offset, ratio_of(height, map.dim[1]), ratio_of(width, map.dim[2]));
    add_loss(net, "loss_center", "squared_error", weight_of(c ? c->center_weight : NAN, 200, s),
             center, "center", s);
    add_loss(net, "loss_offset", "absolute_error", weight_of(c ? c->offset_weight : NAN, 0.01f, s),
             offset, "offset", s);
}

struct pm_node *pm_segmentation_pixel_weights(struct pm_net *net, const struct pm_task *s)
{
    return s->pixels.instance.on && !is_seed4(s) ? pm_net_find(net, "semantic_weight") : NULL;
}

/* ---- outputs ----------------------------------------------------------------------------- */

/* Turns (y, x) into (y, -x); lengths have no direction. */
static struct pm_node *turned(struct pm_net *net, struct pm_node *offset)
{
    struct pm_node *y = rows_of(net, offset);

    return both(net, "offset_turned", y,
                added(net, "offset_x_turned", columns_of(net, offset), "neg"));
}

static struct pm_node *sum_of(struct pm_net *net, const char *name, struct pm_node *sum,
                              struct pm_node *x)
{
    return sum ? pm_net_add_many(net, pm_segmentation_own(net, name),
                                 (struct pm_node *[]){ sum, x }, 2, "add")
               : x;
}

void pm_segmentation_add_instances(struct pm_net *net, const struct pm_heads *heads,
                                   const struct pm_segmentation_view *v, const struct pm_task *s,
                                   struct pm_instance_maps *sum)
{
    struct pm_node *center = pm_heads_find(heads, "center"),
                   *offset = pm_heads_find(heads, "offset");
    const float scale = v->scale > 0 ? v->scale : 1;
    const struct pm_shape map = offset->out_shape;
    const int rows = is_seed4(s) ? 1 : ratio_of(v->seen_height, map.dim[1]);
    const int columns = is_seed4(s) ? 1 : ratio_of(v->seen_width, map.dim[2]);

    if (v->mirrored) {
        center = added(net, "center_mirrored_back", center, "flip");
        offset = added(net, "offset_mirrored_back", offset, "flip");
        if (!is_seed4(s))
            offset = turned(net, offset);
    }
    center = pm_segmentation_resized(net, pm_segmentation_own(net, "center_enlarged"), center,
                                     v->height, v->width, "bilinear");
    offset = pm_segmentation_resized(net, pm_segmentation_own(net, "offset_enlarged"), offset,
                                     v->height, v->width, "bilinear");
    offset = stretched(net, offset, rows / (double)scale, columns / (double)scale);
    sum->center = sum_of(net, "center_sum", sum->center, center);
    sum->offset = sum_of(net, "offset_sum", sum->offset, offset);
}

static struct pm_node *mean(struct pm_net *net, const char *name, struct pm_node *sum, int modes,
                            enum pm_use use)
{
    return pm_net_add(net, pm_segmentation_output(net, name, use), sum, "affine scale=%.9g",
                      modes > 1 ? 1.0 / modes : 1);
}

void pm_segmentation_instance_outputs(struct pm_net *net, const struct pm_instance_maps *sum,
                                      int modes, struct pm_node *probabilities, enum pm_use use,
                                      struct pm_outputs *out)
{
    if (probabilities)
        pm_outputs_add(net, out, probabilities, PM_PLACES_NONE);
    pm_outputs_add(net, out, mean(net, "InstanceCenterPredictions", sum->center, modes, use),
                   PM_PLACES_NONE);
    pm_outputs_add(net, out, mean(net, "InstanceOffsetPredictions", sum->offset, modes, use),
                   PM_PLACES_LENGTHS);
}
