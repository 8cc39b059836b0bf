"""Makes tests/golden/deeplab_eval_modes.json: predictions of the original program, DeepLab on
TensorFlow, with evaluation at several scales and mirrored (predict_labels_multi_scale), on the CPU.

    python3 tests/golden/deeplab_eval_modes.py RESEARCH

deeplab_nets.py describes RESEARCH, the packages and the operations that replace those without
float64. Variables and pictures are drawn by name from Philox streams of the case's seed, all from
uniform distributions: weights within sqrt(6 / fan_in), gamma in 0.5..1.5, variances in 0.5..1.5,
the rest within 0.1. The file holds norms and products, as golden.py describes, of the averaged
probabilities and of the softmax that the original applies to them. (The original returns the
softmax only; the script finds the probabilities as the argument of its argmax.)"""
import json
import math
import os
import platform
import sys

import numpy as np
import tensorflow.compat.v1 as tf

import deeplab_nets
import golden
import tensorflow_nets
from philox import Stream

CASES = [
    dict(
        net="mobilenet_v3_small_seg",
        height=97,
        width=65,
        classes=19,
        seed=1,
        scales=[0.5, 0.75, 1.25],
        flip=True,
        options=deeplab_nets.CASES["deeplab_lr_aspp"]["options"],
    ),
    dict(
        net="mobilenet_v2",
        height=70,
        width=51,
        classes=7,
        seed=2,
        scales=[1, 0.6, 1.5],
        flip=False,
        options=dict(
            depth_multiplier=0.5,
            output_stride=16,
            aspp_rates=[1, 2],
            decoder_strides=[4],
            image_pyramid=[0.5, 1],
        ),
    ),
]


def fan_in(name, shape):
    """Number of inputs of an output value. A depthwise convolution has the inputs of one
    channel."""
    return math.prod(shape[:2]) * (1 if name.endswith("depthwise_weights") else shape[2])


def value(seed, name, shape):
    u = Stream(seed, "golden/" + name).uniform(math.prod(shape)).reshape(shape)
    if name.endswith(("gamma", "moving_variance")):
        return 0.5 + u
    if name.endswith("weights"):
        return (2 * u - 1) * math.sqrt(6 / fan_in(name, shape))
    return 0.2 * u - 0.1


def run(deeplab, c, dtype):
    common, model = deeplab
    tensorflow_nets.double = dtype == tf.float64
    with tf.Graph().as_default(), tf.Session() as session:
        shape = (2, c["height"], c["width"], 3)
        u = Stream(c["seed"], "golden/images").uniform(math.prod(shape)).reshape(shape)
        images = tf.constant((2 * u - 1).astype(np.float32), dtype)
        fields = {deeplab_nets.NAMES.get(name, name): v for name, v in c["options"].items()}
        fields.pop("image_pyramid", None)  # the evaluation scales replace it
        options = common.ModelOptions(
            outputs_to_num_classes={"semantic": c["classes"]}, crop_size=[c["height"], c["width"]],
            output_stride=fields.pop("output_stride", 16),
            atrous_rates=fields.pop("atrous_rates", None), preprocessed_images_dtype=dtype)
        options = options._replace(model_variant=c["net"], **fields)

        def plain(getter, name, *args, **kinds):
            kinds["initializer"] = tf.zeros_initializer()
            return getter(name, *args, **kinds)
        with tf.variable_scope("", custom_getter=plain):
            made = model.predict_labels_multi_scale(images, options, c["scales"], c["flip"])
        variables = [v for v in tf.global_variables() if v.dtype.is_floating]
        feed = {
            v.initializer.inputs[1]: value(c["seed"], v.op.name, v.shape.as_list()).astype(
                np.float32
            )
            for v in variables
        }
        session.run([v.initializer for v in variables], feed)
        again, mean = session.run([made["semantic_prob"], made["semantic"].op.inputs[0]])
        return {"probabilities": np.asarray(mean, np.float64).reshape(-1),
                "again": np.asarray(again, np.float64).reshape(-1)}


def make(deeplab, c):
    exact, single = run(deeplab, c, tf.float64), run(deeplab, c, tf.float32)
    tensors = {}
    for k, t in exact.items():
        norm = float(np.linalg.norm(t))
        error = float(np.linalg.norm(single[k] - t)) / norm
        tensors[k] = [len(t), golden.short(norm), float(f"{error:.2e}")] + \
                     [golden.short(d) for d in golden.dots(c["seed"], k, t)]
    p = exact["probabilities"].reshape(-1, c["classes"])
    print(
        f"{c['net']}: float32 off by {tensors['probabilities'][2]}, "
        f"mean of the largest probability {p.max(1).mean():.2f}, "
        f"classes that win {len(set(p.argmax(1)))}"
    )
    return {"net": "deeplab_" + c["net"], **{k: v for k, v in c.items() if k != "net"},
            "tensors": tensors}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    tf.disable_v2_behavior()
    program = deeplab_nets.import_deeplab(sys.argv[1])
    whole = {"made_by": f"TensorFlow {tf.__version__}, numpy {np.__version__}, "
                        f"Python {platform.python_version()}",
             "columns": "values, norm, relative error of float32, 16 dot products",
             "cases": [make(program, c) for c in CASES]}
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "deeplab_eval_modes.json")
    with open(path, "w") as f:
        json.dump(whole, f, indent=1)
        f.write("\n")
