/* stage_lists: the stages of Faster R-CNN as lists of layers, in the place of the classifier's.
 * Variables have the names of the list's layers in the scope of the stage. */
#include "nets/ssd.h"

#include "layers/infer.h"

#include <cjson/cJSON.h>

/* Pixels by which an image grows to find a stride: a multiple of all strides up to 8, of 10, 12,
 * 14, 15, 16, 20, 24, 32 and 64. MOST_GROWTH: the largest growth. */
enum { GROWTH = 6720, MOST_GROWTH = 64 * GROWTH };

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
        net->error = pm_fail(PM_ECONFIG, "model.%s: the last layer gives %s of %s, but a map [%d, "
                             "height, width, channels] of %s is needed: end the list with a layer "
                             "that gives a map, as conv2d does", key, pm_shape_text(to, text),
                             pm_type_name(map->out_type), from.dim[0], pm_type_name(PM_F32));
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

/* The first stage of images that have grown along an axis (0: height). */
struct grown {
    struct pm_net *net; /* has the error */
    const char *scope;
    const cJSON *list;
    struct pm_shape images;
    int axis;
};

/* Returns the side of the map for images that are larger by this many pixels. Sets the net's error
 * if the layers do not fit them. The number of cells says more than the ratio of one image's sides,
 * which depends on the padding. */
static int side_of(const struct grown *g, int growth)
{
    struct pm_net *net = pm_net_create();
    struct pm_shape images = g->images;
    struct pm_node *map;
    int side = 0;

    images.dim[0] = 1;
    images.dim[1 + g->axis] += growth;
    net->prefix = g->scope;
    if (pm_net_part_from_json(net, pm_net_input(net, "images", images, PM_F32), "images", g->list,
                              "model.first_stage_layers", &map) == PM_OK)
        side = map->out_shape.dim[1 + g->axis];
    else
        g->net->error = pm_fail(PM_ECONFIG, "model.first_stage_layers: the number of pixels "
                                "between the %s of the map is not known, because the layers do not "
                                "fit larger images: set %s in model.anchors (%s)",
                                g->axis ? "columns" : "rows",
                                g->axis ? "width_stride" : "height_stride", pm_error_text());
    pm_net_destroy(&net);
    return side;
}

/* Returns the stride of a map that has so many cells more when the image has grown by GROWTH, or 0
 * if the cells of another growth contradict it. With a stride s the map grows by growth / s cells,
 * rounded up or down. So a growth tells s apart from all others if growth / s and growth / (s + 1)
 * differ by at least 1: if it is at least s (s + 1). */
static int stride_of(const struct grown *g, int side, int more)
{
    const int stride = more > 0 && GROWTH % more == 0 ? GROWTH / more : 0;
    const int64_t times = ((int64_t)stride * (stride + 1) + GROWTH - 1) / GROWTH;

    if (times <= 1)
        return stride;
    if (times * GROWTH > MOST_GROWTH)
        return 0;
    return side_of(g, (int)times * GROWTH) - side == (int)times * more ? stride : 0;
}

int pm_stage_list_stride(struct pm_net *net, const char *scope, const cJSON *list,
                         const struct pm_node *images, const struct pm_node *map, int axis)
{
    const struct grown g = { net, scope, list, images->out_shape, axis };
    const int side = map->out_shape.dim[1 + axis];
    int larger, stride;

    if (net->error)
        return 0;
    larger = side_of(&g, GROWTH);
    stride = net->error ? 0 : stride_of(&g, side, larger - side);
    if (stride == 0 && !net->error)
        net->error = pm_fail(PM_ECONFIG, "model.first_stage_layers: the number of pixels between "
                             "the %s of the map is not known: %d pixels more give %d cells instead "
                             "of %d: set %s in model.anchors", axis ? "columns" : "rows", GROWTH,
                             larger, side, axis ? "width_stride" : "height_stride");
    return stride;
}
