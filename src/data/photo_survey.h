/* photo_survey, internal: what a folder of pictures by class holds, without decoding pictures. */
#ifndef PM_PHOTO_SURVEY_H
#define PM_PHOTO_SURVEY_H

#include <pumice/data.h>

struct pm_photo_survey {
    const char **classes; /* in label order; in the arena */
    size_t *counts;       /* pictures of each class in the folder that is trained on */
    int class_count;
    size_t pictures;      /* the sum of the counts */
    bool own_splits;      /* the classes are in FOLDER/train; else a part of the pictures becomes
                           * validation */
    const char *split;    /* with own_splits, another split: "validation" or "test"; NULL: none */
    size_t measured;      /* pictures whose header was read: all of a small folder, else a sample */
    int longest;          /* longest side of these in pixels; 0: no size could be read */
    int usual;            /* median of their longer sides */
};
/* Counts the pictures of a PM_FOLDER_PHOTOS and measures up to `most` of them, spread evenly.
 * PM_EDATA if the folder cannot be read. */
int pm_photos_survey(struct pm_arena *a, const char *folder, size_t most,
                     struct pm_photo_survey *out);

#endif
