"""Makes tests/golden/deeplab_variables.json: the variables of DeepLab's backbones in the original
program.

    python3 tests/golden/deeplab_variables.py RESEARCH

deeplab_nets.py describes RESEARCH and the packages. The file holds for each backbone: the number of
variables, how many of them are trained, how many of these have weight decay, the number of trained
elements, and the SHA-256 of the lines NAME SHAPE ROLE, sorted by bytes. Examples of such lines:

    MobilenetV2/Conv/BatchNorm/beta [32] trained
    MobilenetV2/Conv/BatchNorm/moving_mean [32] kept
    MobilenetV2/Conv/weights [3, 3, 3, 32] decayed

The script checks that output strides 8 and 32 give the same variables. The searched nets differ and
are listed for each output stride. The file also holds whole nets as published for the 21 classes of
PASCAL VOC and the 19 classes of Cityscapes."""
import hashlib
import json
import math
import os
import sys

import tensorflow.compat.v1 as tf

import deeplab_nets

CASES = [
    (name, 1)
    for name in (
        "mobilenet_v2",
        "mobilenet_v3_large_seg",
        "mobilenet_v3_small_seg",
        "mobilenet_edgetpu",
        "xception_41",
        "xception_65",
        "xception_71",
        "resnet_v1_18",
        "resnet_v1_18_beta",
        "resnet_v1_50",
        "resnet_v1_50_beta",
        "resnet_v1_101",
        "resnet_v1_101_beta",
    )
]
CASES += [("mobilenet_v2", 0.5), ("mobilenet_v2", 1.3), ("mobilenet_v3_large_seg", 0.75)]
SEARCHED = [("nas_pnasnet", 8), ("nas_pnasnet", 16), ("nas_pnasnet", 32), ("nas_hnasnet", 8)]
OPTIONS = {"nas_stem_output_num_conv_filters": 20, "nas_use_classification_head": False,
           "nas_remove_os32_stride": False}


PYRAMID = {"aspp_rates": [6, 12, 18], "decoder_strides": [4]}
WHOLE = [
    ("xception_65", 21, PYRAMID), ("xception_71", 19, PYRAMID), ("resnet_v1_101_beta", 19, PYRAMID),
    ("mobilenet_v2", 21, {}), ("mobilenet_v3_large_seg", 19, {
        "aspp_filters": 128, "aspp_concat_projection": False, "aspp_squeeze_excite": True,
        "aspp_se_qsigmoid": True, "aspp_pooling_crop": [769, 769], "aspp_pooling_stride": [4, 5],
        "decoder_strides": [8], "decoder_sum_merge": True, "decoder_filters": 19,
        "decoder_is_logits": True})]


def variables(size, build):
    """name -> (shape, role) of the variables that `build` creates for pictures of this size."""
    with tf.Graph().as_default():
        build(tf.placeholder(tf.float32, [1, size, size, 3]))
        trained = {v.op.name for v in tf.trainable_variables()}
        decayed = {x.op.name.split("/Regularizer/")[0].replace("kernel", "weights")
                   for x in tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)}
        found = {v.op.name: v.shape.as_list() for v in tf.global_variables()}
    assert decayed <= trained
    return {
        name: (shape, "decayed" if name in decayed else "trained" if name in trained else "kept")
        for name, shape in found.items()
    }


def of_backbone(extractor, backbone, multiplier, stride):
    return variables(65, lambda images: extractor.extract_features(
        images, output_stride=stride, model_variant=backbone, depth_multiplier=multiplier,
        weight_decay=1e-4, is_training=True, fine_tune_batch_norm=True,
        nas_architecture_options=OPTIONS))


def of_net(common, model, backbone, classes, options):
    fields = {deeplab_nets.NAMES.get(name, name): value for name, value in options.items()}
    made = common.ModelOptions({"semantic": classes}, crop_size=[769, 769], output_stride=16,
                               atrous_rates=fields.pop("atrous_rates", None))
    made = made._replace(model_variant=backbone, **fields)
    return variables(769, lambda images: model.multi_scale_logits(
        images, made, None, weight_decay=1e-4, is_training=True, fine_tune_batch_norm=True))


def summary(found):
    lines = "".join(sorted(f"{name} {shape} {role}\n" for name, (shape, role) in found.items()))
    return {"variables": len(found), "trained": sum(r != "kept" for _, r in found.values()),
            "decayed": sum(r == "decayed" for _, r in found.values()),
            "elements": sum(math.prod(s) for s, r in found.values() if r != "kept"),
            "sha256": hashlib.sha256(lines.encode()).hexdigest()}


def main(research):
    common, model = deeplab_nets.import_deeplab(research)
    from deeplab.core import feature_extractor
    rows = []
    for backbone, multiplier in CASES:
        found = [of_backbone(feature_extractor, backbone, multiplier, s) for s in (8, 32)]
        assert found[0] == found[1]
        rows.append({"backbone": backbone, "depth_multiplier": multiplier, "output_stride": 16,
                     **summary(found[0])})
    for backbone, stride in SEARCHED:
        found = of_backbone(feature_extractor, backbone, 1, stride)
        rows.append({"backbone": backbone, "depth_multiplier": 1, "output_stride": stride,
                     **summary(found)})
    for backbone, classes, options in WHOLE:
        rows.append({"net": "deeplab_" + backbone, "classes": classes, "options": options,
                     **summary(of_net(common, model, backbone, classes, options))})
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "deeplab_variables.json")
    with open(path, "w") as f:
        f.write("[\n" + ",\n".join(" " + json.dumps(r) for r in rows) + "\n]\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    tf.disable_v2_behavior()
    main(sys.argv[1])
