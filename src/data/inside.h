/* inside, within data/: checks that a name from a list or an archive stays in its folder. */
#ifndef PUMICE_DATA_INSIDE_H
#define PUMICE_DATA_INSIDE_H

#include <stdbool.h>
#include <string.h>

/* Whether the name is relative, not empty, and has no part "..". */
static inline bool pm_is_inside(const char *name)
{
    if (name[0] == '/' || name[0] == '\0')
        return false;
    for (const char *part = name; *part; part += strcspn(part, "/"), part += *part == '/')
        if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == '\0'))
            return false;
    return true;
}

#endif
