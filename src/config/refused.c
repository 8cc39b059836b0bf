/* Keys that are known and refused: refused.def. */
#include "config/config_private.h"

#include <string.h>

const struct pm_refused pm_refused_keys[] = {
#define REFUSED(key, instead) { key, instead },
#include "refused.def"
#undef REFUSED
    { 0 },
};

const struct pm_refused *pm_refused_find(const char *key)
{
    for (const struct pm_refused *r = pm_refused_keys; r->key; r++)
        if (strcmp(r->key, key) == 0)
            return r;
    return NULL;
}
