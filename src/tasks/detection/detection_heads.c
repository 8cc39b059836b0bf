/* detection_heads: the heads of a net: boxes_1, classes_1, boxes_2, ..., the codes and logits of
 * each level, and anchors. A map's channels are ordered by anchor of the cell, then by
 * component. */
#include "tasks/detection/detection_points.h"
#include "tasks/detection/detection_rotated.h"

#include "layers/anchors.h"

#include <math.h>
#include <string.h>

/* ---- finding ----------------------------------------------------------------------------- */

void pm_detection_find_heads(struct pm_net *net, struct pm_heads *heads)
{
    heads->count = 0;
    for (int l = 1; l <= PM_DETECTION_LEVELS; l++) {
        const char *boxes = pm_arena_printf(net->arena, "boxes_%d", l);
        const char *classes = pm_arena_printf(net->arena, "classes_%d", l);

        pm_heads_add(net, heads, boxes, pm_net_find(net, boxes));
        pm_heads_add(net, heads, classes, pm_net_find(net, classes));
    }
    pm_heads_add(net, heads, "anchors", pm_net_find(net, "anchors"));
}

int pm_detection_anchor_classes(const struct pm_task *t)
{
    return t->stages == 2 ? 1 : t->facts.num_classes;
}

int pm_detection_code_size(const struct pm_task *t)
{
    if (t->coder.type == PM_CODER_TYPE_SQUARE)
        return 3;
    return pm_detection_box_numbers(t) + 2 * pm_detection_coded_points(t);
}

static struct pm_node *head_of(const struct pm_heads *heads, const char *what, int level)
{
    char name[32];

    snprintf(name, sizeof name, "%s_%d", what, level);
    return pm_heads_find(heads, name);
}

/* Number of anchors in a cell, from the channels of the boxes. */
static int per_cell(const struct pm_task *t, const struct pm_node *boxes)
{
    return boxes->out_shape.dim[3] / pm_detection_code_size(t);
}

void pm_detection_sort_heads(const struct pm_task *t, const struct pm_heads *heads,
                             struct pm_detection_heads *out)
{
    *out = (struct pm_detection_heads){ .anchors = pm_heads_find(heads, "anchors") };
    for (int l = 1; l <= PM_DETECTION_LEVELS && head_of(heads, "boxes", l); l++) {
        out->boxes[out->levels] = head_of(heads, "boxes", l);
        out->classes[out->levels++] = head_of(heads, "classes", l);
    }
    if (out->levels)
        out->background = out->classes[0]->out_shape.dim[3] ==
                          per_cell(t, out->boxes[0]) * (pm_detection_anchor_classes(t) + 1);
}

/* ---- checking ---------------------------------------------------------------------------- */

static int check_map(const struct pm_node *n, int batch)
{
    char text[64];

    if (n->out_shape.rank != 4 || n->out_shape.dim[0] != batch)
        return pm_fail(PM_ECONFIG, "the net's layer %s gives %s, but [%d, height, width, channels] "
                       "is needed", n->name, pm_shape_text(n->out_shape, text), batch);
    return PM_OK;
}

/* anchors: of a cell of this level. */
static int check_level(const struct pm_task *t, const struct pm_detection_heads *h, int level,
                       int batch, int anchors)
{
    const struct pm_node *boxes = h->boxes[level], *classes = h->classes[level];
    const int codes = pm_detection_code_size(t), columns = pm_detection_anchor_classes(t);
    const int k = columns + h->background;
    int err = PM_OK;

    PM_TRY(check_map(boxes, batch));
    PM_TRY(check_map(classes, batch));
    if (boxes->out_shape.dim[3] != anchors * codes)
        PM_TRY(pm_fail(PM_ECONFIG, "the net's layer %s has %d channels, but %d anchors in a cell "
                       "need %d codes each: give it %d channels", boxes->name,
                       boxes->out_shape.dim[3], anchors, codes, anchors * codes));
    if (classes->out_shape.dim[3] != anchors * k)
        PM_TRY(pm_fail(PM_ECONFIG, "the net's layer %s has %d channels, but %d anchors in a cell "
                       "and %d classes need %d, or with a background %d", classes->name,
                       classes->out_shape.dim[3], anchors, columns,
                       anchors * columns, anchors * (columns + 1)));
    if (boxes->out_shape.dim[1] != classes->out_shape.dim[1] ||
        boxes->out_shape.dim[2] != classes->out_shape.dim[2])
        PM_TRY(pm_fail(PM_ECONFIG, "the net's layers %s and %s are maps of different sizes, %dx%d "
                       "and %dx%d", boxes->name, classes->name, boxes->out_shape.dim[1],
                       boxes->out_shape.dim[2], classes->out_shape.dim[1],
                       classes->out_shape.dim[2]));
out:
    return err;
}

static int check_names(const struct pm_task *t, const struct pm_heads *heads)
{
    const struct pm_node *anchors = pm_heads_find(heads, "anchors");
    int levels = 0;

    if (!anchors)
        return pm_fail(PM_ECONFIG, "the net has no layer \"anchors\", such as ssd_anchors: task "
                       "detection needs it, and maps boxes_1, classes_1, ... for its levels");
    if (!pm_is_anchors(anchors))
        return pm_fail(PM_ECONFIG, "the net's layer anchors is a %s: use ssd_anchors, "
                       "multiscale_anchors, grid_anchors or flexible_grid_anchors",
                       anchors->layer->name);
    if (!t->rotated && pm_anchors_numbers(anchors) != 4)
        return pm_fail(PM_ECONFIG, "the net's layer anchors has angles, but model.boxes is "
                       "upright: set model.boxes=rotated, or remove the option angles");
    if (t->rotated && pm_anchors_numbers(anchors) != 5)
        return pm_fail(PM_ECONFIG, "the net's layer anchors has no angles, but model.boxes is "
                       "rotated: give it the option angles, in radians, for example [-1.309, "
                       "-0.785, -0.262, 0.262, 0.785, 1.309]");
    while (levels < PM_DETECTION_LEVELS && head_of(heads, "boxes", levels + 1) &&
           head_of(heads, "classes", levels + 1))
        levels++;
    if (levels != pm_anchors_levels(anchors)->count)
        return pm_fail(PM_ECONFIG, "the net's layer anchors has %d levels, but maps boxes_1, "
                       "classes_1 ... exist for %d: name one pair of maps for each level",
                       pm_anchors_levels(anchors)->count, levels);
    return PM_OK;
}

int pm_detection_check_heads(const struct pm_task *t, const struct pm_heads *heads, int batch)
{
    struct pm_detection_heads h;
    int err = PM_OK;

    PM_TRY(check_names(t, heads));
    pm_detection_sort_heads(t, heads, &h);
    for (int l = 0; l < h.levels; l++) {
        const struct pm_anchor_level *level = &pm_anchors_levels(h.anchors)->level[l];

        PM_TRY(check_level(t, &h, l, batch, level->count));
        if (h.boxes[l]->out_shape.dim[1] != level->grid[0] ||
            h.boxes[l]->out_shape.dim[2] != level->grid[1])
            PM_TRY(pm_fail(PM_ECONFIG, "the net's layer %s is a map of %dx%d, but level %d of its "
                           "anchors is %dx%d: give the layer anchors the maps in the order of the "
                           "levels", h.boxes[l]->name, h.boxes[l]->out_shape.dim[1],
                           h.boxes[l]->out_shape.dim[2], l + 1, level->grid[0], level->grid[1]));
    }
    if (pm_detection_is_softmax(t) && !h.background)
        PM_TRY(pm_fail(PM_ECONFIG, "loss.classification.type: weighted_%ssoftmax needs a "
                       "background class, but the net's layer %s has only %d columns: set "
                       "model.background_class=true, in a list of layers give it %d for each "
                       "anchor, or choose weighted_sigmoid_focal",
                       t->class_loss.type == PM_CLASS_SOFTMAX ? "" : "logits_",
                       h.classes[0]->name, pm_detection_anchor_classes(t),
                       pm_detection_anchor_classes(t) + 1));
out:
    return err;
}

/* ---- anchors ----------------------------------------------------------------------------- */

struct pm_node *pm_detection_anchor_boxes(struct pm_net *net, const struct pm_detection_heads *h,
                                          const struct pm_task *t, bool train)
{
    const bool clips = !t->rotated && (t->anchors_outside == PM_OUTSIDE_CLIP ||
                                       (t->anchors_outside == PM_OUTSIDE_PRUNE && !train));
    struct pm_node *made = pm_net_find(net, "anchors/clipped");

    if (!clips || made)
        return clips ? made : h->anchors;
    return pm_net_add(net, "anchors/clipped", h->anchors, "clip min=0 max=1");
}

/* The maps, without the sizes of the present anchors, which belong to the net. */
static struct pm_anchor_maps maps_of(const struct pm_node *node, struct pm_frame frame)
{
    const bool multiscale = strcmp(node->layer->name, "multiscale_anchors") == 0;
    struct pm_anchor_maps m = { multiscale, frame.height, frame.width, { 0 } };

    if (multiscale || strcmp(node->layer->name, "ssd_anchors") == 0)
        m.levels = *pm_anchors_levels(node);
    for (int k = 0; k < m.levels.count; k++)
        m.levels.level[k].size = NULL;
    return m;
}

static struct pm_anchor_index *index_of(const struct pm_task *t, struct pm_frame frame,
                                        const float *boxes, int count)
{
    return t->rotated ? pm_anchor_index_create_rotated(boxes, count, (float)((double)frame.width /
                                                                             frame.height))
                      : pm_anchor_index_create(boxes, count);
}

int pm_detection_settle(struct pm_task *t, struct pm_frame frame, const struct pm_heads *heads,
                        const struct pm_net_maker *maker)
{
    const struct pm_node *node = pm_heads_find(heads, "anchors");
    const int count = node->out_shape.dim[0], numbers = pm_detection_box_numbers(t);
    struct pm_detection_heads sorted;
    float *boxes;
    int err = PM_OK;

    if (t->anchors_count == 0)
        PM_TRY(pm_detection_settle_second(t, frame, maker));
    boxes = pm_malloc((size_t)count * (size_t)numbers * sizeof *boxes);
    pm_detection_sort_heads(t, heads, &sorted);
    t->background = sorted.background;
    pm_anchors_write(node, boxes);
    for (int i = 0; i < 4 * count && t->anchors_outside == PM_OUTSIDE_CLIP; i++)
        boxes[i] = fminf(fmaxf(boxes[i], 0), 1);
    PM_GROW(t->anchors, t->anchors_count, t->anchors_capacity);
    t->anchors[t->anchors_count++] =
        (struct pm_detection_anchors){ frame, count, index_of(t, frame, boxes, count),
                                       maps_of(node, frame) };
    pm_free(boxes);
    if (t->anchors_outside == PM_OUTSIDE_PRUNE &&
        pm_anchor_index_prune(t->anchors[t->anchors_count - 1].index) == 0)
        PM_TRY(pm_fail(PM_ECONFIG, "model.anchors_outside: prune leaves none of the %d anchors, "
                       "because none is wholly inside the input of %dx%d: give the anchors smaller "
                       "scales, set a larger input.size, or set model.anchors_outside=%s", count,
                       frame.height, frame.width, t->rotated ? "keep" : "clip"));
out:
    return err;
}
