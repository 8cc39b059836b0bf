/* colormap: the colours of classes, and the class numbers that external evaluations require. */
#ifndef PM_COLORMAP_H
#define PM_COLORMAP_H

#include <pumice/draw.h>

enum pm_colormap {
    PM_COLORMAP_AUTO, PM_COLORMAP_PASCAL, PM_COLORMAP_CITYSCAPES, PM_COLORMAP_ADE20K,
    PM_COLORMAP_CAMVID, PM_COLORMAP_CAMVID_FULL
};

/* Returns the colormap of this name; AUTO if no colormap has it or name is NULL. AUTO is drawn as
 * PASCAL. */
enum pm_colormap pm_colormap_find(const char *name);
/* Returns the number of classes that have a colour. */
int pm_colormap_entries(enum pm_colormap map);
struct pm_color pm_colormap_color(enum pm_colormap map, int label);
/* Returns the number of a class in raw pictures: for Cityscapes' nineteen classes the id of its
 * evaluation, else the label itself. */
int pm_colormap_raw(enum pm_colormap map, int label);

#endif
