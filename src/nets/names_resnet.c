/* names_resnet: torchvision's and timm's resnet18 to resnet152, which use the same names. */
#include "nets/names_private.h"

static const struct pm_names_row rows[] = {
    { "layer#.#.se.*", NULL, "squeeze-and-excitation, as in seresnet50", 0, 0 },
    { "layer#.#.downsample.2", NULL, "shortcuts that average, as in timm's resnet50d", 0, 0 },
    { "conv1.#", NULL, "a first layer of three convolutions, as in timm's resnet50d", 0, 0 },
    { "conv1", "conv1", NULL, 0, 0 },
    { "bn1", "conv1/BatchNorm", NULL, 0, 0 },
    { "layer#.#.conv#", "block$1/unit_$2+1/$@/conv$3", NULL, 0, 0 },
    { "layer#.#.bn#", "block$1/unit_$2+1/$@/conv$3/BatchNorm", NULL, 0, 0 },
    { "layer#.#.downsample.0", "block$1/unit_$2+1/$@/shortcut", NULL, 0, 0 },
    { "layer#.#.downsample.1", "block$1/unit_$2+1/$@/shortcut/BatchNorm", NULL, 0, 0 },
    { "fc", "logits", NULL, 0, 0 },
    { NULL, NULL, NULL, 0, 0 },
};

static const char *const kinds[] = { "bottleneck_v1", "basic_v1" };

/* Returns the convolution of the first kind of unit that the net has, or NULL. */
static const struct pm_variable *unit(const struct pm_names_file *f, int block, int index,
                                      const char **kind)
{
    char end[96];

    for (size_t k = 0; k < PM_COUNT(kinds); k++) {
        *kind = kinds[k];
        snprintf(end, sizeof end, "/block%d/unit_%d/%s/conv1/weights", block, index, kinds[k]);
        for (int i = 0; i < f->net->count; i++)
            if (pm_ends_with(f->net->list[i].name, end))
                return &f->net->list[i];
    }
    return NULL;
}

static const char *own(const struct pm_names_file *f, const struct pm_names_row *row,
                       const int number[4])
{
    const char *kind;

    (void)row;
    return unit(f, number[0], number[1] + 1, &kind) ? kind : NULL;
}

/* Counts the units of the file and of the net. */
static void count_units(const struct pm_names_file *f, int block, int *theirs, int *ours)
{
    const char *kind;

    *theirs = *ours = 0;
    while (pm_names_tensor(f, "layer%d.%d.conv1.weight", block, *theirs))
        ++*theirs;
    while (unit(f, block, *ours + 1, &kind))
        ++*ours;
}

static int check(const struct pm_names_file *f)
{
    const struct pm_file_tensor *first = pm_names_tensor(f, "layer1.0.conv1.weight");
    const struct pm_file_tensor *middle = pm_names_tensor(f, "layer1.0.conv2.weight");
    const bool bottleneck = pm_names_tensor(f, "layer1.0.conv3.weight") != NULL;
    const char *kind;
    const struct pm_variable *v = unit(f, 1, 1, &kind);

    if (!v || !first || first->rank != 4 || !middle || middle->rank != 4)
        return pm_names_refuse(f, "it has no units of two or three convolutions, so it is not "
                                  "resnet18, 34, 50, 101 or 152");
    if (bottleneck != (kind == kinds[0]))
        return pm_names_refuse(
            f, "its units have %s convolutions, like %s; those of the net have %s",
            bottleneck ? "three" : "two", bottleneck ? "resnet50, 101 and 152" : "resnet18 and 34",
            bottleneck ? "two" : "three");
    if (middle->dim[0] != middle->dim[1])
        return pm_names_refuse(f,
                               "'layer1.0.conv2.weight' is a grouped convolution of %lld groups, "
                               "as in resnext50_32x4d, which the net does not have",
                               (long long)(middle->dim[1] ? middle->dim[0] / middle->dim[1] : 0));
    if (first->dim[0] != v->shape.dim[3])
        return pm_names_refuse(f,
                               "its first units are %lld channels wide, as in wide_resnet50_2; "
                               "those of the net are %d wide",
                               (long long)first->dim[0], v->shape.dim[3]);
    for (int block = 1; block <= 4; block++) {
        int theirs, ours;
        count_units(f, block, &theirs, &ours);
        if (theirs != ours)
            return pm_names_refuse(f,
                                   "its layer%d has %d units, but the net's block%d has %d: name a "
                                   "file of a net of the same depth",
                                   block, theirs, block, ours);
    }
    return PM_OK;
}

const struct pm_names_family pm_names_resnet = {
    .scope = "resnet_v1_", .nets = "resnet18, 34, 50, 101 or 152",
    .anchors = { "layer1.0.conv1.weight" }, .rows = rows, .own = own, .check = check,
};
