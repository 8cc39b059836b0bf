/* Loading a library by its run-time name. */
#include "data/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static int load(struct pm_library *l, const char *user)
{
    void *opened = NULL;

    for (const char *const *name = l->sonames; *name && !opened; name++)
        opened = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
    if (!opened)
        return pm_fail(PM_EFAIL, "%s needs %s, which cannot be loaded: install the package %s",
                       user, l->sonames[0], l->package);
    for (size_t i = 0; i < l->count; i++) {
        void *f = dlsym(opened, l->entries[i].name);
        if (!f)
            return pm_fail(PM_EFAIL, "%s needs %s of %s, which is too old: install a newer %s",
                           user, l->entries[i].name, l->sonames[0], l->package);
        memcpy((char *)l->functions + l->entries[i].offset, &f, sizeof f);
    }
    if (l->start)
        l->start();
    l->loaded = true;
    return PM_OK;
}

int pm_library_load(struct pm_library *library, const char *user)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all libraries' members */
    int err = PM_OK;

    pthread_mutex_lock(&lock);
    if (!library->loaded)
        err = load(library, user);
    pthread_mutex_unlock(&lock);
    return err;
}
