/* backbones: helpers shared by the backbones of segmentation nets. */
#include "nets/deeplab.h"

bool pm_backbone_grid(struct pm_net *net, const struct pm_backbone *b,
                      const struct pm_deeplab_options *o, int count, int *grid)
{
    const struct pm_ints *given = &o->multi_grid;

    for (int i = 0; i < count; i++)
        grid[i] = given->count == count ? given->v[i] : 1;
    if (given->count == 0 || given->count == count)
        return true;
    if (!net->error)
        net->error = pm_fail(PM_ECONFIG,
                             "model.multi_grid: %d numbers, but deeplab_%s takes %d, or "
                             "none",
                             given->count, b->name, count);
    return false;
}
