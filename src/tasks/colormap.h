/* colormap: the colours that classes are drawn in, and numbers that an evaluation of others wants. */
#ifndef PM_COLORMAP_H
#define PM_COLORMAP_H

#include <pumice/draw.h>

enum pm_colormap {
    PM_COLORMAP_AUTO, PM_COLORMAP_PASCAL, PM_COLORMAP_CITYSCAPES, PM_COLORMAP_ADE20K,
    PM_COLORMAP_CAMVID, PM_COLORMAP_CAMVID_FULL
};

/* By its name; AUTO where none is called so, or name is NULL. AUTO is drawn as PASCAL. */
enum pm_colormap pm_colormap_find(const char *name);
/* Classes that have a colour. */
int pm_colormap_entries(enum pm_colormap map);
struct pm_color pm_colormap_color(enum pm_colormap map, int label);
/* The number of a class in raw pictures: of Cityscapes' nineteen that of its evaluation, of others
 * itself. */
int pm_colormap_raw(enum pm_colormap map, int label);

#endif
