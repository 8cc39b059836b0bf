/* Keys that this version knows only by name: later.def. */
#include "config/config_private.h"

#include <string.h>

const struct pm_later pm_later_keys[] = {
#define LATER(key, type, def, help) { key, type, def, help },
#include "later.def"
#undef LATER
    { 0 },
};

const struct pm_later *pm_later_find(const char *key)
{
    for (const struct pm_later *l = pm_later_keys; l->key; l++)
        if (strcmp(l->key, key) == 0)
            return l;
    return NULL;
}
