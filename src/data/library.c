/* Loading a library by its run-time name. */
#include "data/library.h"

#include <dlfcn.h>
#include <string.h>

int pm_library_load(const char *user, const char *const *sonames, const char *package,
                    const struct pm_library_entry *entries, size_t count, void *out)
{
    void *library = NULL;

    for (const char *const *name = sonames; *name && !library; name++)
        library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return pm_fail(PM_EFAIL,
                       "%s needs %s, which cannot be loaded: install the package %s", user,
                       sonames[0], package);
    for (size_t i = 0; i < count; i++) {
        void *f = dlsym(library, entries[i].name);
        if (!f)
            return pm_fail(PM_EFAIL, "%s has no %s: it is too old; install a newer %s", sonames[0],
                           entries[i].name, package);
        memcpy((char *)out + entries[i].offset, &f, sizeof f);
    }
    return PM_OK;
}
