/* stage_lists: the stages of Faster R-CNN as lists of layers, in the place of the classifier's.
 * Variables have the names of the list's layers in the scope of the stage. */
#include "nets/ssd.h"

#include <cjson/cJSON.h>

/* Pixels by which an image grows to find a stride: a multiple of all strides up to 8, of 10, 12,
 * 14, 15, 16, 20, 24, 32 and 64. */
enum { GROWTH = 6720 };

bool pm_stage_list_given(const cJSON *list)
{
    return list && !cJSON_IsNull(list);
}

/* Checks that the layers keep the rows of x, and end in a map. */
static void check_map(struct pm_net *net, const char *key, const struct pm_node *x,
                      const struct pm_node *map)
{
    const struct pm_shape from = x->out_shape, to = map->out_shape;
    char text[64];

    if (!net->error && (to.rank != 4 || to.dim[0] != from.dim[0] || map->out_type != PM_F32))
        net->error = pm_fail(PM_ECONFIG, "model.%s: the last layer gives %s, but a map [%d, "
                             "height, width, channels] is needed", key, pm_shape_text(to, text),
                             from.dim[0]);
}

struct pm_node *pm_stage_list_build(struct pm_net *net, const char *scope, const char *key,
                                    const cJSON *list, const char *input, struct pm_node *x)
{
    struct pm_node *map = x;

    net->prefix = scope;
    pm_net_part_from_json(net, x, input, list, pm_arena_printf(net->arena, "model.%s", key), &map);
    net->prefix = NULL;
    check_map(net, key, x, map);
    return map;
}

/* Returns the side of the list's map along an axis (0: height) for an image of this shape, or 0 if
 * the layers do not fit it. The number of cells says more than the ratio of one image's sides,
 * which depends on the padding. */
static int side_of(const cJSON *list, struct pm_shape images, int axis)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *map;
    int side = 0;

    images.dim[0] = 1;
    if (pm_net_part_from_json(net, pm_net_input(net, "images", images, PM_F32), "images", list, "",
                              &map) == PM_OK)
        side = map->out_shape.dim[1 + axis];
    pm_net_destroy(&net);
    return side;
}

void pm_stage_list_strides(struct pm_net *net, const cJSON *list, const struct pm_node *images,
                           const struct pm_node *map, int stride[2])
{
    for (int axis = 0; axis < 2 && !net->error; axis++) {
        struct pm_shape larger = images->out_shape;
        int more;

        larger.dim[1 + axis] += GROWTH;
        more = side_of(list, larger, axis) - map->out_shape.dim[1 + axis];
        if (more > 0 && GROWTH % more == 0)
            stride[axis] = GROWTH / more;
        else
            net->error = pm_fail(PM_ECONFIG, "model.first_stage_layers: the number of pixels "
                                 "between the %s of the map is not known, because the layers need "
                                 "images of one size or have an unusual stride: set %s in "
                                 "model.anchors", axis ? "columns" : "rows",
                                 axis ? "width_stride" : "height_stride");
    }
}
