/* names_mobilenet: torchvision's and timm's mobilenet_v2 and mobilenet_v3. torchvision numbers the
 * parts of a block, so the numbers depend on which parts a block has. timm numbers blocks by
 * stages. */
#include <string.h>

#include "nets/names_private.h"

#define BN(theirs, ours) { theirs, ours "/BatchNorm", NULL, 0, 0 }
#define LAYER(theirs, ours) { theirs, ours, NULL, 0, 0 }
#define PAIR(conv, bn, ours) LAYER(conv, ours), BN(bn, ours)

static const struct pm_names_row rows_v2[] = {
    { "blocks.#.#.se.*", NULL, "squeeze-and-excitation, as in mobilenet_v3 and efficientnet", 0,
      0 },
    PAIR("features.0.0", "features.0.1", "Conv"),
    PAIR("features.1.conv.0.0", "features.1.conv.0.1", "expanded_conv/depthwise"),
    PAIR("features.1.conv.1", "features.1.conv.2", "expanded_conv/project"),
    PAIR("features.18.0", "features.18.1", "Conv_1"),
    PAIR("features.#.conv.0.0", "features.#.conv.0.1", "expanded_conv_$1-1/expand"),
    PAIR("features.#.conv.1.0", "features.#.conv.1.1", "expanded_conv_$1-1/depthwise"),
    PAIR("features.#.conv.2", "features.#.conv.3", "expanded_conv_$1-1/project"),
    LAYER("classifier.1", "Logits/Conv2d_1c_1x1"),
    /* timm */
    PAIR("conv_stem", "bn1", "Conv"),
    PAIR("blocks.0.0.conv_dw", "blocks.0.0.bn1", "expanded_conv/depthwise"),
    PAIR("blocks.0.0.conv_pw", "blocks.0.0.bn2", "expanded_conv/project"),
    PAIR("blocks.#.#.conv_pw", "blocks.#.#.bn1", "$@/expand"),
    PAIR("blocks.#.#.conv_dw", "blocks.#.#.bn2", "$@/depthwise"),
    PAIR("blocks.#.#.conv_pwl", "blocks.#.#.bn3", "$@/project"),
    PAIR("conv_head", "bn2", "Conv_1"),
    LAYER("classifier", "Logits/Conv2d_1c_1x1"),
    { NULL, NULL, NULL, 0, 0 },
};
static const struct pm_names_row rows_v3[] = {
    PAIR("features.0.0", "features.0.1", "Conv"),
    LAYER("features.#.block.#.0", "$@"), BN("features.#.block.#.1", "$@"),
    LAYER("features.#.block.#.fc1", "$@/squeeze_excite/Conv"),
    LAYER("features.#.block.#.fc2", "$@/squeeze_excite/Conv_1"),
    PAIR("features.#.0", "features.#.1", "Conv_1"),
    LAYER("classifier.0", "Conv_2"),
    LAYER("classifier.3", "Logits/Conv2d_1c_1x1"),
    /* timm */
    PAIR("conv_stem", "bn1", "Conv"),
    PAIR("blocks.0.0.conv_dw", "blocks.0.0.bn1", "$@/depthwise"),
    PAIR("blocks.0.0.conv_pw", "blocks.0.0.bn2", "$@/project"),
    PAIR("blocks.#.#.conv_pw", "blocks.#.#.bn1", "$@/expand"),
    PAIR("blocks.#.#.conv_dw", "blocks.#.#.bn2", "$@/depthwise"),
    PAIR("blocks.#.#.conv_pwl", "blocks.#.#.bn3", "$@/project"),
    LAYER("blocks.#.#.se.conv_reduce", "$@/squeeze_excite/Conv"),
    LAYER("blocks.#.#.se.conv_expand", "$@/squeeze_excite/Conv_1"),
    PAIR("blocks.#.0.conv", "blocks.#.0.bn1", "Conv_1"), /* the last stage */
    LAYER("conv_head", "Conv_2"),
    LAYER("classifier", "Logits/Conv2d_1c_1x1"),
    { NULL, NULL, NULL, 0, 0 },
};

static const char *block_name(const struct pm_names_file *f, int block)
{
    return block ? pm_arena_printf(f->arena, "expanded_conv_%d", block) : "expanded_conv";
}

/* Block counts of timm's stages. Returns NULL beyond the last stage. */
static const char *block_of_stage(const struct pm_names_file *f, const int *sizes, int stages,
                                  int stage, int index)
{
    if (stage >= stages || index >= sizes[stage])
        return NULL;
    for (int i = 0; i < stage; i++)
        index += sizes[i];
    return block_name(f, index);
}

static const char *own_v2(const struct pm_names_file *f, const struct pm_names_row *row,
                          const int number[4])
{
    static const int sizes[] = { 1, 2, 3, 4, 3, 3, 1 };

    (void)row;
    return block_of_stage(f, sizes, PM_COUNT(sizes), number[0], number[1]);
}

/* Whether this is the larger net: it has 15 blocks, the smaller 11. */
static bool is_large(const struct pm_names_file *f)
{
    return pm_names_variable(f, "MobilenetV3/expanded_conv_14/project/weights") != NULL;
}

static const char *own_v3(const struct pm_names_file *f, const struct pm_names_row *row,
                          const int number[4])
{
    static const int large[] = { 1, 2, 3, 4, 2, 3 }, small[] = { 1, 2, 3, 2, 3 };
    const struct pm_file_tensor *conv;
    const char *block;

    if (strncmp(row->theirs, "blocks.0.0.", strlen("blocks.0.0.")) == 0)
        return block_name(f, 0);
    if (strncmp(row->theirs, "blocks.", strlen("blocks.")) == 0)
        return is_large(f) ? block_of_stage(f, large, PM_COUNT(large), number[0], number[1])
                           : block_of_stage(f, small, PM_COUNT(small), number[0], number[1]);
    if (number[0] < 1)
        return NULL;
    block = block_name(f, number[0] - 1);
    if (strstr(row->theirs, ".fc"))
        return block;
    /* The parts in order: expand, depthwise, gates, project. Expand and gates may be absent. */
    conv = pm_names_tensor(f, "features.%d.block.%d.0.weight", number[0], number[1]);
    if (!conv || conv->rank != 4)
        return NULL;
    return pm_arena_printf(f->arena, "%s/%s", block,
                           conv->dim[1] == 1 ? "depthwise" : number[1] == 0 ? "expand" : "project");
}

/* Checks the epsilon. The file does not contain its model's epsilon; timm's common models use a
 * smaller one. */
static int check_v3(const struct pm_names_file *f)
{
    const double epsilon = (double)f->net->batch_norm_epsilon;

    if (pm_names_tensor(f, "conv_stem.weight") && epsilon > 2e-5)
        PM_WARN("init",
                "%s: timm's mobilenetv3_large_100 and mobilenetv3_small_100 add 1e-5 to batch "
                "norm's variance, but this net adds %g: set model.batch_norm_epsilon=1e-5 and "
                "model.batch_norm_decay=0.9 for them",
                pm_tensor_file_path(f->from), epsilon);
    return PM_OK;
}

const struct pm_names_family pm_names_mobilenet_v2 = {
    .scope = "MobilenetV2/", .nets = "mobilenet_v2 (timm: mobilenetv2_100)",
    .anchors = { "features.0.0.weight", "conv_stem.weight" }, .rows = rows_v2, .own = own_v2,
};
const struct pm_names_family pm_names_mobilenet_v3 = {
    .scope = "MobilenetV3/", .nets = "mobilenet_v3_large or _small (timm: mobilenetv3_large_100)",
    .anchors = { "features.0.0.weight", "conv_stem.weight" }, .rows = rows_v3, .own = own_v3,
    .check = check_v3,
};
