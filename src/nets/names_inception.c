/* names_inception: torchvision's and timm's inception_v3. Its blocks have TF-Slim's names; the
 * branches in them have their own. Three of TF-Slim's names are mistakes that are kept. */
#include "nets/names_private.h"

#define ROW(theirs, ours)                                                                          \
    { theirs ".conv", ours, NULL, 0, 0 }, { theirs ".bn", ours "/BatchNorm", NULL, 0, 0 }

static const struct pm_names_row rows[] = {
    ROW("Conv2d_1a_3x3", "Conv2d_1a_3x3"),
    ROW("Conv2d_2a_3x3", "Conv2d_2a_3x3"),
    ROW("Conv2d_2b_3x3", "Conv2d_2b_3x3"),
    ROW("Conv2d_3b_1x1", "Conv2d_3b_1x1"),
    ROW("Conv2d_4a_3x3", "Conv2d_4a_3x3"),
    /* 35x35 */
    ROW("Mixed_5?.branch1x1", "Mixed_5?/Branch_0/Conv2d_0a_1x1"),
    ROW("Mixed_5c.branch5x5_1", "Mixed_5c/Branch_1/Conv2d_0b_1x1"),
    ROW("Mixed_5c.branch5x5_2", "Mixed_5c/Branch_1/Conv_1_0c_5x5"),
    ROW("Mixed_5?.branch5x5_1", "Mixed_5?/Branch_1/Conv2d_0a_1x1"),
    ROW("Mixed_5?.branch5x5_2", "Mixed_5?/Branch_1/Conv2d_0b_5x5"),
    ROW("Mixed_5?.branch3x3dbl_1", "Mixed_5?/Branch_2/Conv2d_0a_1x1"),
    ROW("Mixed_5?.branch3x3dbl_2", "Mixed_5?/Branch_2/Conv2d_0b_3x3"),
    ROW("Mixed_5?.branch3x3dbl_3", "Mixed_5?/Branch_2/Conv2d_0c_3x3"),
    ROW("Mixed_5?.branch_pool", "Mixed_5?/Branch_3/Conv2d_0b_1x1"),
    /* to 17x17 */
    ROW("Mixed_6a.branch3x3", "Mixed_6a/Branch_0/Conv2d_1a_1x1"),
    ROW("Mixed_6a.branch3x3dbl_1", "Mixed_6a/Branch_1/Conv2d_0a_1x1"),
    ROW("Mixed_6a.branch3x3dbl_2", "Mixed_6a/Branch_1/Conv2d_0b_3x3"),
    ROW("Mixed_6a.branch3x3dbl_3", "Mixed_6a/Branch_1/Conv2d_1a_1x1"),
    /* 17x17 */
    ROW("Mixed_6?.branch1x1", "Mixed_6?/Branch_0/Conv2d_0a_1x1"),
    ROW("Mixed_6?.branch7x7_1", "Mixed_6?/Branch_1/Conv2d_0a_1x1"),
    ROW("Mixed_6?.branch7x7_2", "Mixed_6?/Branch_1/Conv2d_0b_1x7"),
    ROW("Mixed_6?.branch7x7_3", "Mixed_6?/Branch_1/Conv2d_0c_7x1"),
    ROW("Mixed_6?.branch7x7dbl_1", "Mixed_6?/Branch_2/Conv2d_0a_1x1"),
    ROW("Mixed_6?.branch7x7dbl_2", "Mixed_6?/Branch_2/Conv2d_0b_7x1"),
    ROW("Mixed_6?.branch7x7dbl_3", "Mixed_6?/Branch_2/Conv2d_0c_1x7"),
    ROW("Mixed_6?.branch7x7dbl_4", "Mixed_6?/Branch_2/Conv2d_0d_7x1"),
    ROW("Mixed_6?.branch7x7dbl_5", "Mixed_6?/Branch_2/Conv2d_0e_1x7"),
    ROW("Mixed_6?.branch_pool", "Mixed_6?/Branch_3/Conv2d_0b_1x1"),
    /* to 8x8 */
    ROW("Mixed_7a.branch3x3_1", "Mixed_7a/Branch_0/Conv2d_0a_1x1"),
    ROW("Mixed_7a.branch3x3_2", "Mixed_7a/Branch_0/Conv2d_1a_3x3"),
    ROW("Mixed_7a.branch7x7x3_1", "Mixed_7a/Branch_1/Conv2d_0a_1x1"),
    ROW("Mixed_7a.branch7x7x3_2", "Mixed_7a/Branch_1/Conv2d_0b_1x7"),
    ROW("Mixed_7a.branch7x7x3_3", "Mixed_7a/Branch_1/Conv2d_0c_7x1"),
    ROW("Mixed_7a.branch7x7x3_4", "Mixed_7a/Branch_1/Conv2d_1a_3x3"),
    /* 8x8 */
    ROW("Mixed_7?.branch1x1", "Mixed_7?/Branch_0/Conv2d_0a_1x1"),
    ROW("Mixed_7?.branch3x3_1", "Mixed_7?/Branch_1/Conv2d_0a_1x1"),
    ROW("Mixed_7?.branch3x3_2a", "Mixed_7?/Branch_1/Conv2d_0b_1x3"),
    ROW("Mixed_7b.branch3x3_2b", "Mixed_7b/Branch_1/Conv2d_0b_3x1"),
    ROW("Mixed_7?.branch3x3_2b", "Mixed_7?/Branch_1/Conv2d_0c_3x1"),
    ROW("Mixed_7?.branch3x3dbl_1", "Mixed_7?/Branch_2/Conv2d_0a_1x1"),
    ROW("Mixed_7?.branch3x3dbl_2", "Mixed_7?/Branch_2/Conv2d_0b_3x3"),
    ROW("Mixed_7?.branch3x3dbl_3a", "Mixed_7?/Branch_2/Conv2d_0c_1x3"),
    ROW("Mixed_7?.branch3x3dbl_3b", "Mixed_7?/Branch_2/Conv2d_0d_3x1"),
    ROW("Mixed_7?.branch_pool", "Mixed_7?/Branch_3/Conv2d_0b_1x1"),
    ROW("AuxLogits.conv0", "AuxLogits/Conv2d_1b_1x1"),
    ROW("AuxLogits.conv1", "AuxLogits/Conv2d_2a_5x5"),
    { "AuxLogits.fc", "AuxLogits/Conv2d_2b_1x1", NULL, 0, 0 },
    { "fc", "Logits/Conv2d_1c_1x1", NULL, 0, 0 },
    { NULL, NULL, NULL, 0, 0 },
};

const struct pm_names_family pm_names_inception_v3 = {
    .scope = "InceptionV3/", .nets = "inception_v3",
    .anchors = { "Conv2d_1a_3x3.conv.weight" }, .rows = rows,
};
