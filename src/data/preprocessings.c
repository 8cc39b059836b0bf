/* preprocessings: the tables of preprocessings and augmentations. */
#include <string.h>

#include "data/augment.h"

static const struct pm_preprocessing *const rows[] = {
#define PM_PREPROCESSING(name) &pm_preprocessing_##name,
#include "preprocessings.def"
#undef PM_PREPROCESSING
};

const struct pm_preprocessing *const *pm_preprocessings(size_t *count)
{
    *count = PM_COUNT(rows);
    return rows;
}

const struct pm_preprocessing *pm_preprocessing_find(const char *name)
{
    for (size_t i = 0; i < PM_COUNT(rows); i++)
        if (strcmp(rows[i]->name, name) == 0)
            return rows[i];
    return NULL;
}

static const struct pm_augmentation *const augmentations[] = {
#define PM_AUGMENTATION(name) &pm_augmentation_##name,
#include "augmentations.def"
#undef PM_AUGMENTATION
};

const struct pm_augmentation *const *pm_augmentations(size_t *count)
{
    *count = PM_COUNT(augmentations);
    return augmentations;
}

const struct pm_augmentation *pm_augmentation_find(const char *name)
{
    for (size_t i = 0; i < PM_COUNT(augmentations); i++)
        if (!strcmp(augmentations[i]->name, name))
            return augmentations[i];
    return NULL;
}
