/* library, internal to data/: libraries that few commands need are loaded when they are needed.
 * Linking them would load dozens of libraries at the start of every command. */
#ifndef PUMICE_DATA_LIBRARY_H
#define PUMICE_DATA_LIBRARY_H

#include <pumice/base.h>

struct pm_library_entry {
    const char *name; /* of the function */
    size_t offset;    /* of its pointer in the struct of functions */
};
/* Loads a library for the rest of the process and stores the addresses of `count` functions in the
 * struct out. sonames: a NULL-terminated list; the first library that opens is used. PM_EFAIL if
 * none opens or a function is missing; the message names user, for example "dataset download", and
 * the Debian package to install. The caller serialises its calls. */
int pm_library_load(const char *user, const char *const *sonames, const char *package,
                    const struct pm_library_entry *entries, size_t count, void *out);

#endif
