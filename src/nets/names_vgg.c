/* names_vgg: torchvision's and timm's vgg11, vgg16 and vgg19. The numbers of convolutions also
 * count the activations and pools between them. torchvision's first fully connected layer reads the
 * 7x7 map channels first. timm stores it as a 7x7 convolution. */
#include "nets/names_private.h"

static const struct pm_names_row rows[] = {
    { "features.#", "$@", NULL, 0, 0 },
    { "classifier.0", "fc6", NULL, 7, 7 },
    { "classifier.3", "fc7", NULL, 0, 0 },
    { "classifier.6", "fc8", NULL, 0, 0 },
    { "pre_logits.fc1", "fc6", NULL, 7, 7 },
    { "pre_logits.fc2", "fc7", NULL, 0, 0 },
    { "head.fc", "fc8", NULL, 0, 0 },
    { NULL, NULL, NULL, 0, 0 },
};

static const char *own(const struct pm_names_file *f, const struct pm_names_row *row,
                       const int number[4])
{
    int place = 0;

    (void)row;
    for (int stage = 1; stage <= 5; stage++, place++)
        for (int i = 1;; i++, place += 2) {
            char end[64];
            bool there = false;
            snprintf(end, sizeof end, "/conv%d/conv%d_%d/weights", stage, stage, i);
            for (int k = 0; k < f->net->count && !there; k++)
                there = pm_ends_with(f->net->list[k].name, end);
            if (!there)
                break;
            if (place == number[0])
                return pm_arena_printf(f->arena, "conv%d/conv%d_%d", stage, stage, i);
        }
    return NULL;
}

static int check(const struct pm_names_file *f)
{
    const struct pm_file_tensor *first = pm_names_tensor(f, "features.0.weight");

    if (pm_names_tensor(f, "features.1.running_mean"))
        return pm_names_refuse(f, "it has batch norm after its convolutions, as in vgg16_bn, which "
                                  "the net does not have");
    if (first && (first->rank != 4 || first->dim[2] != 3))
        return pm_names_refuse(f, "its first convolution is not 3x3, so it is not a vgg");
    return PM_OK;
}

const struct pm_names_family pm_names_vgg = {
    .scope = "vgg_", .nets = "vgg11, vgg16 or vgg19", .anchors = { "features.0.weight" },
    .rows = rows, .own = own, .check = check,
};
