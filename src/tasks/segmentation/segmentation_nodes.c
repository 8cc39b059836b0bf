/* segmentation_nodes: shared functions for the nodes that this task adds after a net's heads. */
#include "tasks/segmentation/segmentation.h"

#include <string.h>

/* Whether a node of this pass has the name. */
static bool is_taken(const struct pm_net *net, const char *name)
{
    const struct pm_node *n = pm_net_find(net, name);
    const size_t length = net->pass ? strlen(net->pass) : 0;

    return n &&
           (!net->pass || (strncmp(n->name, net->pass, length) == 0 && n->name[length] == '/'));
}

const char *pm_segmentation_own(struct pm_net *net, const char *name)
{
    const char *free = name;

    for (int k = 2; is_taken(net, free); k++)
        free = pm_arena_printf(net->arena, "%s_%d", name, k);
    return free;
}

const char *pm_segmentation_output(struct pm_net *net, const char *name, enum pm_use use)
{
    return use == PM_USE_EXPORT ? name : pm_segmentation_own(net, name);
}

struct pm_node *pm_segmentation_resized(struct pm_net *net, const char *name, struct pm_node *x,
                                        int height, int width, const char *method)
{
    if (x->out_shape.dim[1] == height && x->out_shape.dim[2] == width)
        return x;
    return pm_net_add(net, name, x, "resize size=[%d,%d] coordinates=align_corners method=%s "
                      "rounding=round_prefer_ceil", height, width, method);
}
