/* The names of values in TensorBoard, by program. */
#include "../base/unit.h"

#include "observers/summary_tags.h"

static void names(void **state)
{
    static const struct {
        enum pm_summary_tags program;
        const char *own, *wanted;
    } cases[] = {
        { PM_TAGS_OWN, "losses/loss", "losses/loss" },
        { PM_TAGS_OWN, "activations/InceptionV3/Mixed_5b/concat",
          "activations/InceptionV3/Mixed_5b/concat" },
        { PM_TAGS_SLIM, "losses/loss", "losses/softmax_cross_entropy_loss/value" },
        { PM_TAGS_SLIM, "losses/aux_loss", "losses/aux_loss/value" },
        { PM_TAGS_SLIM, "losses/loss_scale_1", "losses/loss_scale_1" },
        { PM_TAGS_SLIM, "losses/clone_loss", "Losses/clone_loss" },
        /* End points: of nets with and without the scope in the name. */
        { PM_TAGS_SLIM, "activations/InceptionV3/Mixed_5b/concat", "activations/Mixed_5b" },
        { PM_TAGS_SLIM, "activations/InceptionV3/Conv2d_1a_3x3/BatchNorm",
          "activations/Conv2d_1a_3x3" },
        { PM_TAGS_SLIM, "sparsity/MobilenetV1/Logits/SpatialSqueeze", "sparsity/Logits" },
        { PM_TAGS_SLIM, "activations/LeNet/conv1", "activations/conv1" },
        { PM_TAGS_SLIM, "activations/vgg_16/conv1/conv1_1", "activations/vgg_16/conv1/conv1_1" },
        { PM_TAGS_SLIM, "activations/resnet_v1_50/conv1/BatchNorm",
          "activations/resnet_v1_50/conv1" },
        { PM_TAGS_SLIM, "activations/Logits", "activations/Logits" },
        { PM_TAGS_SLIM, "activations/MobilenetV2/Conv/BatchNorm", "activations/layer_1" },
        { PM_TAGS_SLIM, "activations/MobilenetV2/Conv_1/BatchNorm", "activations/layer_19" },
        { PM_TAGS_SLIM, "sparsity/MobilenetV2/expanded_conv/project/BatchNorm",
          "sparsity/layer_2/output" },
        { PM_TAGS_SLIM, "activations/MobilenetV2/expanded_conv_10/expand/BatchNorm",
          "activations/layer_12/expansion_output" },
        { PM_TAGS_SLIM, "activations/MobilenetV2/expanded_conv_2/depthwise/BatchNorm",
          "activations/layer_4/depthwise_output" },
        { PM_TAGS_SLIM, "activations/MobilenetV2/expanded_conv_2/output",
          "activations/layer_4/output" },
        { PM_TAGS_SLIM, "activations/MobilenetV2/expanded_conv_2/project/BatchNorm",
          "activations/expanded_conv_2/project" },
        { PM_TAGS_SLIM, "activations/MobilenetV2/expanded_conv_16/project",
          "activations/layer_18/output" },
        { PM_TAGS_SLIM, "activations/MobilenetV3/expanded_conv_3/expand/BatchNorm",
          "activations/layer_5/expansion_output" },
        { PM_TAGS_SLIM, "activations/MobilenetV1/Conv2d_0/BatchNorm", "activations/Conv2d_0" },
        { PM_TAGS_SLIM, "activations/cell_11/cell_output", "activations/Cell_11" },
        { PM_TAGS_SLIM, "activations/cell_11/cell_output/Relu",
          "activations/cell_11/cell_output/Relu" },
        { PM_TAGS_SLIM, "activations/cell_stem_1/cell_output", "activations/Stem" },
        { PM_TAGS_SLIM, "activations/reduction_cell_0/cell_output",
          "activations/Reduction_Cell_0" },
        { PM_TAGS_SLIM, "activations/final_layer/FC", "activations/Logits" },
        { PM_TAGS_SLIM, "images/image", "final_distorted_image/image" },
        { PM_TAGS_SLIM, "images/image/2", "final_distorted_image/image/2" },
        { PM_TAGS_SLIM, "LeNet/conv1/weights/gradients", "LeNet/conv1/weights/gradient" },
        { PM_TAGS_SLIM, "LeNet/conv1/weights", "LeNet/conv1/weights" },
        { PM_TAGS_SLIM, "/gradients", "/gradient" },
        { PM_TAGS_INCEPTION, "total_loss", "total_loss__raw_" },
        { PM_TAGS_INCEPTION, "loss_averages/total_loss", "total_loss" },
        { PM_TAGS_INCEPTION, "losses/aux_loss", "aux_loss__raw_" },
        { PM_TAGS_INCEPTION, "activations/a/b", "a/b/activations" },
        { PM_TAGS_INCEPTION, "eval/Recall_5", "eval/Recall_5" },
        { PM_TAGS_DEEPLAB, "losses/clone_loss", "losses/clone_loss" },
        { PM_TAGS_DEEPLAB, "images/label/0", "samples/label/image/0" },
        { PM_TAGS_DEEPLAB, "images/label_offset/1", "samples/label_offset/image/1" },
        { PM_TAGS_DEEPLAB, "images/label_edge/1", "images/label_edge/1" },
        { PM_TAGS_DEEPLAB, "eval/miou_1.0_overall", "eval/miou_1.0_overall" },
    };
    struct pm_str tag = { 0 };
    (void)state;

    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        pm_summary_tag(cases[i].program, cases[i].own, &tag);
        assert_string_equal(tag.text, cases[i].wanted);
    }
    pm_str_free(&tag);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(names) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
