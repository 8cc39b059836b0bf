/* folder_chain: a folder that is searched and those above it. A link to one of them
 * would list the same pictures again and again; two such links take practically forever. */
#ifndef PUMICE_DATA_FOLDER_CHAIN_H
#define PUMICE_DATA_FOLDER_CHAIN_H

#include <stdbool.h>
#include <sys/stat.h>

struct pm_folder_chain {
    const struct pm_folder_chain *above; /* borrowed; NULL: the first folder */
    dev_t device;
    ino_t file;
};

/* Makes the chain of a folder below another one; above: NULL for the first. Returns false if the
 * folder cannot be read or is one of those above. */
static inline bool pm_folder_enter(const char *folder, const struct pm_folder_chain *above,
                                   struct pm_folder_chain *out)
{
    struct stat st;

    if (stat(folder, &st) != 0)
        return false;
    for (const struct pm_folder_chain *c = above; c; c = c->above)
        if (c->device == st.st_dev && c->file == st.st_ino)
            return false;
    *out = (struct pm_folder_chain){ above, st.st_dev, st.st_ino };
    return true;
}

#endif
