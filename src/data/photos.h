/* photos, internal: a folder of pictures, one subfolder for each class, where a data folder is
 * expected. It is converted once into FOLDER.pumice/DIGEST and used from there.
 *
 * DIGEST identifies the pictures (path, size and time of change of each file) and the converter's
 * options. Another digest means another conversion in a folder of its own, so a run that reads the
 * former one is not disturbed, and can be resumed with the pictures that it began with. Nothing
 * here removes a finished conversion, because only the user knows which runs will be continued. */
#ifndef PM_PHOTOS_H
#define PM_PHOTOS_H

#include <pumice/data.h>

enum pm_folder_kind {
    PM_FOLDER_MISSING,  /* there is no such folder */
    PM_FOLDER_RECORDS,  /* a data folder: it has TFRecord files or a dataset.json */
    PM_FOLDER_PHOTOS,   /* pictures in subfolders */
    PM_FOLDER_PICTURES, /* pictures, but none of them in a subfolder */
    PM_FOLDER_OTHER,    /* none of these */
};
enum pm_folder_kind pm_folder_kind(const char *folder);

/* Returns the names of the classes in label order, as the conversion sets them, in the arena.
 * PM_EDATA if there is none. */
int pm_photos_classes(struct pm_arena *a, const char *folder, const char ***names, int *count);

/* The options of the conversion: an object with options of `dataset convert folder`, or NULL for
 * their defaults. where: place for messages ("x.json: data.convert"). PM_ECONFIG. */
int pm_photos_check_options(const struct cJSON *options, const char *where);

struct pm_photos_want {
    const char *folder;
    const struct cJSON *options; /* as above */
    const char *where;           /* place of the options for messages */
    const char *began;           /* digests of the conversions that a run began with, separated by
                                  * commas, or NULL. One of them is used if it still exists. */
    bool make;                   /* convert if necessary */
};
struct pm_photos {
    const char *place;   /* folder of the conversion, in the arena; NULL: there is none, and it is
                          * not made */
    const char *digest;  /* of the current pictures and options; in the arena */
    bool changed;        /* `began` has another digest for this folder */
    bool kept;           /* place is a conversion of `began` with another digest */
};
/* Finds the conversion of a PM_FOLDER_PHOTOS, and makes it if necessary. Two processes that make it
 * at once: the second one waits and uses what the first one made. A conversion that was interrupted
 * begins again. PM_ECONFIG, PM_EDATA; PM_EFAIL if the place beside the folder cannot be written:
 * the message states the command that converts to another place. */
int pm_photos_find(struct pm_arena *a, const struct pm_photos_want *want, struct pm_photos *out);

/* Finds the conversion of a folder of pictures that was made last, whatever its options, without a
 * look at the pictures. Returns its path in the arena, or NULL. */
const char *pm_photos_last(struct pm_arena *a, const char *folder);

/* Adds a word for a command line: in quotes if it has characters with a meaning for the shell. */
void pm_shell_word(struct pm_str *s, const char *word);

#endif
