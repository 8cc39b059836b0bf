"""Makes tests/golden/two_stage_variables.json: the variables of detectors with two stages in
TensorFlow's Object Detection API (the package tf-object-detection 0.0.3), with 90 classes.

    VENV/bin/python tests/golden/two_stage_variables.py [NET ...]   # environment: see tfod.py

With names of nets the script only prints their counts. The file holds an object for each net:

    "built"      [number of trainable variables, of their elements]
    "trained"    the same for those that a gradient of the losses reaches
    "variables"  scopes as nested objects. A variable is a list: its dimensions in TensorFlow's
                 order, then a string of flags:
                     ""    not trainable: an average of batch norm
                     "u"   trainable, but no gradient reaches it
                     "n"   an average of such an unused batch norm
                     "t"   trained
                     "tr"  trained, with the weight decay of its hyperparams

A variable's name is the path to its list, joined by "/". The flags are the same with
batch_norm_trainable true and false: it chooses the statistics, and frozen batch norm still trains
gamma and beta. The script checks this. Weight decay comes from the three conv_hyperparams and
fc_hyperparams alone; the backbones have none. Biases have none.

Where the API differs from what its configuration suggests:
  - ResNet: the first stage calls the whole classifier, so the variables of its block4 exist ("u"),
    30 with 14,964,736 elements, and the second stage has its own block4.
  - The second stage of inception_resnet_v2 names its nine repeated blocks Repeat, which is Repeat_2
    in the classifier.
  - An R-FCN model builds the second stage's extractor on the whole map; its variables are those of
    Faster R-CNN.
  - masks: depth 0 gives 2^round((2 log2 channels + 3 log2 classes) / 5) channels, 256 for resnet50
    (2048 channels, 90 classes) and 256 for inception_v2 (1024). The convolutions lie directly in
    SecondStageBoxPredictor as Conv and Conv_1, and the other heads beside them.
  - faster_rcnn_mobilenet_v1 is part of the package, but its model builder does not list it. Its
    depth multiplier is an argument without a field. The second net here has 0.5."""
import json
import math
import os
import sys

import tfod_two_stage as models

FASTER, RFCN, MASKS = (models.boxes_predictor(), models.rfcn_predictor(),
                       models.masks_predictor())
# Name -> extractor, predictor, options; the counts that are known, or None.
NETS = {
    "faster_rcnn_resnet50": ("resnet50", FASTER, {}),
    "faster_rcnn_resnet101": ("resnet101", FASTER, {}),
    "faster_rcnn_resnet152": ("resnet152", FASTER, {}),
    "faster_rcnn_inception_v2": ("inception_v2", FASTER, {}),
    "faster_rcnn_inception_resnet_v2": ("inception_resnet_v2", FASTER, dict(crop=17, pool=1)),
    "faster_rcnn_inception_resnet_v2_stride8": (
        "inception_resnet_v2", FASTER, dict(crop=17, pool=1, stride=8, rate=2)),
    "faster_rcnn_mobilenet_v1": ("mobilenet_v1", FASTER, {}),
    "faster_rcnn_mobilenet_v1_half": ("mobilenet_v1_half", FASTER, {}),
    "rfcn_resnet101": ("resnet101", RFCN, {}),
    "mask_rcnn_inception_v2": ("inception_v2", MASKS, dict(stages=3)),
    "mask_rcnn_resnet50": ("resnet50", MASKS, dict(stages=3)),
}


def built(build, options):
    """Builds a training graph for two pictures. Returns the model's losses as one tensor."""
    message = models.text(**options)
    classes, (h, w) = 90, (options["height"], options["width"])
    model = build(message, True)
    boxes = [tf.constant([[0.1, 0.1, 0.6, 0.6], [0.3, 0.2, 0.9, 0.9]])] * 2
    hot = [tf.one_hot([3, 7], classes)] * 2
    masks = [tf.zeros([2, h, w])] * 2 if options.get("stages") == 3 else None
    model.provide_groundtruth(boxes, hot, groundtruth_masks_list=masks)
    shapes = tf.constant([[h, w, 3]] * 2)
    out = model.predict(tf.zeros([2, h, w, 3]), shapes)
    return tf.add_n(list(model.loss(out, shapes).values()))


def regularized():
    """Names of the variables that the regularization losses read."""
    names, variables = set(), {v.op.name for v in tf.trainable_variables()}
    for loss in tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES):
        stack = [loss.op]
        while stack:
            op = stack.pop()
            names |= {op.name} & variables
            stack.extend(x.op for x in op.inputs)
    return names


def variables_of(build, options):
    """name -> (shape, flags), in the order of creation."""
    with tf.Graph().as_default():
        loss, trained = built(build, options), tf.trainable_variables()
        reached = {v.op.name: g is not None for v, g in zip(trained, tf.gradients(loss, trained))}
        decay = regularized()
        return {v.op.name: (v.shape.as_list(), "" if v.op.name not in reached else
                            ("t" if reached[v.op.name] else "u") + "r" * (v.op.name in decay))
                for v in tf.global_variables() if v.dtype.base_dtype.is_floating}


def count(variables, flags):
    shapes = [shape for shape, flag in variables.values() if flag and flag[0] in flags]
    return [len(shapes), sum(map(math.prod, shapes))]


def nested(variables):
    tree = {}
    for name, (shape, flags) in variables.items():
        beta = variables.get(name.rsplit("/", 1)[0] + "/beta")
        flags = "n" if not flags and beta and beta[1] == "u" else flags
        *scopes, last = name.split("/")
        place = tree
        for scope in scopes:
            place = place.setdefault(scope, {})
        place[last] = shape + [flags]
    return tree


def describe(build, name):
    extractor, predictor, options = NETS[name]
    options = dict(height=320, width=320, type="faster_rcnn_" + extractor, predictor=predictor,
                   **options)
    frozen = variables_of(build, options)
    if frozen != variables_of(build, {**options, "train": "true"}):
        raise SystemExit(f"{name}: batch_norm_trainable changes the variables")
    net = {"built": count(frozen, "tu"), "trained": count(frozen, "t"),
           "variables": nested(frozen)}
    print(name, "built", net["built"], "trained", net["trained"], flush=True)
    return net


def main():
    global tf
    tf, build = models.load()
    nets = {name: describe(build, name) for name in sys.argv[1:] or NETS}
    if len(sys.argv) > 1:
        return
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "two_stage_variables.json")
    with open(path, "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(
            f'"{name}": {json.dumps(net, separators=(",", ":"))}' for name, net in nets.items())
            + "\n}\n")


if __name__ == "__main__":
    main()
