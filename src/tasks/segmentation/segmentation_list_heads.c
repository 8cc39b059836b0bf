/* segmentation_list_heads: which nodes of a layer list are heads. After the names for handwritten
 * lists come those of the nets of src/nets/deeplab.c, because `pumice config show --layers` prints
 * these nets as lists. */
#include "tasks/segmentation/segmentation.h"

#include <string.h>

/* Returns the node of the first of these names that exists, or NULL. */
static struct pm_node *head_of(const struct pm_net *net, const char *const *names)
{
    struct pm_node *n = NULL;

    for (; *names && !n; names++)
        n = pm_net_find(net, *names);
    return n;
}

/* Returns the logits of the scale that begins with this node, or NULL if its name is another. */
static struct pm_node *scale_of(const struct pm_net *net, const char *name)
{
    static const char plain[] = "logits/semantic";
    static const char *const ends[] = { "_resized", "_sum", "" };
    const size_t n = strlen(name), length = sizeof plain - 1;
    struct pm_node *x = NULL;

    if (n < length || strcmp(name + n - length, plain) != 0 ||
        (n > length && name[n - length - 1] != '/'))
        return NULL;
    for (size_t k = 0; k < PM_COUNT(ends) && !x; k++)
        x = pm_net_find(net, pm_arena_printf(net->arena, "%s%s", name, ends[k]));
    return x;
}

/* Adds the logits of each scale, which have their own loss beside the merged logits. Those of the
 * first scale have no prefix. */
static void add_scales(struct pm_net *net, struct pm_heads *heads)
{
    struct pm_heads scales = { 0 };

    for (int i = 0; i < net->count; i++)
        pm_heads_add_loss_only(net, &scales, "scale_logits", scale_of(net, net->nodes[i]->name),
                               PM_HEAD_SCALE, 1);
    for (int i = 0; i < scales.count && scales.count > 1; i++)
        pm_heads_add_loss_only(net, heads, "scale_logits", scales.list[i].node, PM_HEAD_SCALE, 1);
}

void pm_segmentation_find_heads(struct pm_net *net, struct pm_heads *heads)
{
    static const char *const logits[] = { "logits", "merged_logits", "logits/semantic_resized",
                                          "logits/semantic_sum", "logits/semantic", NULL };
    static const struct {
        const char *name, *nodes[6]; /* NULL-terminated */
    } further[] = {
        { "center",
          { "instance_center", "logits/center_resized", "logits/center_sum", "logits/center" } },
        { "offset",
          { "instance_offset", "logits/offset_resized", "logits/offset_sum", "logits/offset" } },
        { "edge",
          { "edge", "merged_edges", "logits/edge_resized", "logits/edge_sum", "logits/edge" } },
    };
    struct pm_node *named = head_of(net, logits);

    if (named)
        heads->list[0].node = named;
    for (size_t i = 0; i < PM_COUNT(further); i++)
        pm_heads_add(net, heads, further[i].name, head_of(net, further[i].nodes));
    if (!net->pass && strcmp(heads->list[0].node->name, "merged_logits") == 0)
        add_scales(net, heads);
}
