/* preprocess: the tables of preprocessings and augmentations. */
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
    for (int k = 0; name && k < 2; k++, name = pm_preprocessing_of_net(name))
        for (size_t i = 0; i < PM_COUNT(rows); i++)
            if (!strcmp(rows[i]->name, name))
                return rows[i];
    return NULL;
}

/* TF-Slim's table, with the nets that it has no preprocessing for, and DeepLab's; the beginnings of
 * names, the first that fits. */
const char *pm_preprocessing_of_net(const char *net)
{
    static const char *const table[][2] = {
        { "alexnet_v2", "vgg" },
        { "overfeat", "vgg" },
        { "vgg_", "vgg" },
        { "resnet_v1_", "vgg" },
        { "resnet_v2_", "vgg" },
        { "inception_v", "inception" },
        { "inception_resnet_v2", "inception" },
        { "mobilenet_", "inception" },
        { "nasnet_cifar", "cifarnet" },
        { "nasnet_", "inception" },
        { "pnasnet_", "inception" },
        { "deeplab_resnet_v1_18_beta", "deeplab" },
        { "deeplab_resnet_v1_18", "deeplab_means_grey" },
        { "deeplab_resnet_v1_50_beta", "deeplab" },
        { "deeplab_resnet_v1_50", "deeplab_means" },
        { "deeplab_resnet_v1_101_beta", "deeplab" },
        { "deeplab_resnet_v1_101", "deeplab_means" },
        { "deeplab_", "deeplab" },
    };

    for (size_t i = 0; i < PM_COUNT(table); i++)
        if (!strncmp(net, table[i][0], strlen(table[i][0])))
            return table[i][1];
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
