/* layouts, internal: recognises the source folders of the converters, for messages and for
 * `pumice new`. */
#ifndef PM_LAYOUTS_H
#define PM_LAYOUTS_H

#include <pumice/base.h>

struct pm_layout {
    const char *converter, *task;
    bool sure; /* false: a folder of photos by class may have such files, too */
    const char *patterns[4]; /* of names in the folder, NULL at the end */
};
/* Returns the layout that the folder has, or NULL. task: only layouts for this task; NULL: any. */
const struct pm_layout *pm_layout_find(const char *folder, const char *task);

#endif
