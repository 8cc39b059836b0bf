"""Makes tests/golden/nets/CASE.json for one-stage detectors: the results of one training step in
the original program, TensorFlow's Object Detection API, on the CPU.

    VENV/bin/python tests/golden/tfod_nets.py [CASE ...]

tfod.py says how to make the environment. Weights, offsets and kinks are treated as described in
tensorflow_nets.py; golden.py describes the file. The tensors are the heads of every level in
Pumice's form, boxes_1 [n,h,w,A*4] and classes_1 [n,h,w,A*C], the anchors, the loss, the moving
averages and the gradients. The loss is the sum over heads of the mean of (x - t)^2; the targets t
lie in -1..1 and are drawn by name. "regularized" lists the variables with weight decay.

Pictures must be so large that batch norm of the smallest map sees enough values."""
import platform
import sys

import numpy as np

import golden
import tfod
import tensorflow_nets
from philox import Stream

BATCH_NORM = "batch_norm { train: true scale: true center: true decay: %s epsilon: 0.001 }"
TRUNCATED = "initializer { truncated_normal_initializer { stddev: 0.03 mean: 0.0 } }"
NORMAL = "initializer { random_normal_initializer { stddev: 0.01 mean: 0.0 } }"
ANCHORS = """ssd_anchor_generator { num_layers: %d min_scale: 0.2 max_scale: 0.95
  aspect_ratios: [1.0, 2.0, 0.5, 3.0, 0.3333] %s }"""
LEVELS = """multiscale_anchor_generator { min_level: 3 max_level: 7 anchor_scale: 4.0
  aspect_ratios: [1.0, 2.0, 0.5] scales_per_octave: 2 }"""
MODEL = """ssd {
  num_classes: %(classes)d
  image_resizer { fixed_shape_resizer { height: %(size)d width: %(size)d } }
  box_coder { faster_rcnn_box_coder { } } matcher { argmax_matcher { } }
  similarity_calculator { iou_similarity { } }
  loss { classification_loss { weighted_sigmoid { } }
         localization_loss { weighted_smooth_l1 { } } }
  post_processing { batch_non_max_suppression { } }
  anchor_generator { %(anchors)s }
  box_predictor { %(predictor)s }
  feature_extractor { type: "%(type)s" min_depth: 16 depth_multiplier: %(multiplier)s
    conv_hyperparams { %(extractor)s } %(more)s } }"""


def hyperparams(initializer, decay, weight="0.00004"):
    return (f"activation: RELU_6 regularizer {{ l2_regularizer {{ weight: {weight} }} }} "
            f"{initializer} {BATCH_NORM % decay}")


def convolutional(more="kernel_size: 1", decay="0.9997"):
    return (f"convolutional_box_predictor {{ use_dropout: false {more} "
            f"conv_hyperparams {{ {hyperparams(TRUNCATED, decay)} }} }}")


def shared(more="depth: 256 num_layers_before_predictor: 4 kernel_size: 3"):
    return (f"weight_shared_convolutional_box_predictor {{ class_prediction_bias_init: -4.6 {more} "
            f"conv_hyperparams {{ {hyperparams(NORMAL, '0.997')} }} }}")


def case(net, kind, batch, size, predictor, shift=2, options=None, more="", anchors=None,
         decay="0.9997", multiplier="1.0", classes=3):
    """options: options of Pumice's net; the other arguments are the same as the original's
    messages, whose numbers are float32."""
    own = {"batch_norm_decay": float(np.float32(decay))}
    return dict(net=net, batch=batch, size=size, classes=classes, shift=shift, channels=3,
                options={"hyperparams": own, **(options or {})},
                model=MODEL % dict(classes=classes, size=size, predictor=predictor, type=kind,
                                   anchors=anchors or ANCHORS % (6, ""), more=more,
                                   multiplier=multiplier,
                                   extractor=hyperparams(TRUNCATED, decay)))


def pyramid(net, kind, batch, size, predictor, more="", **others):
    return case(net, kind, batch, size, predictor, anchors=LEVELS, decay="0.997",
                more="override_base_feature_extractor_hyperparams: true " + more, **others)


LITE = {"type": "convolutional", "use_depthwise": True, "kernel_size": 3}
CASES = {
    "ssd_mobilenet_v1": case("ssd_mobilenet_v1", "ssd_mobilenet_v1", 4, 160, convolutional()),
    "ssd_mobilenet_v2": case("ssd_mobilenet_v2", "ssd_mobilenet_v2", 4, 160, convolutional()),
    "ssdlite_mobilenet_v2": case(
        "ssd_mobilenet_v2", "ssd_mobilenet_v2", 4, 160,
        convolutional("kernel_size: 3 use_depthwise: true"), more="use_depthwise: true",
        options={"use_depthwise": True, "box_predictor": LITE}),
    "ssd_inception_v2": case(
        "ssd_inception_v2", "ssd_inception_v2", 4, 160, convolutional("kernel_size: 3"),
        more="override_base_feature_extractor_hyperparams: true"),
    "ssd_mobilenet_v1_fpn": pyramid("ssd_mobilenet_v1_fpn", "ssd_mobilenet_v1_fpn", 2, 128,
                                    shared()),
    "ssd_resnet_v1_50_fpn": pyramid("ssd_resnet_v1_50_fpn", "ssd_resnet50_v1_fpn", 2, 160,
                                    shared()),
    "ssd_fpnlite_mobilenet_v2": pyramid(
        "ssd_mobilenet_v2_fpn", "ssd_mobilenet_v2_fpn", 2, 128,
        shared("depth: 128 num_layers_before_predictor: 4 kernel_size: 3 use_depthwise: true "
               "share_prediction_tower: true"),
        more="use_depthwise: true fpn { min_level: 3 max_level: 7 additional_layer_depth: 128 }",
        options={"use_depthwise": True, "additional_layer_depth": 128,
                 "box_predictor": {"use_depthwise": True, "depth": 128,
                                   "share_prediction_tower": True}}),
}


class Graph(tensorflow_nets.Graph):
    """A training step of a detector. builders: the original's modules."""
    regularized = []  # names of the variables with weight decay in the last graph

    def logits_and_loss(self, builders, images):
        model_builder, message, text_format = builders
        c, config = self.c, message()
        text_format.Merge(c["model"], config)
        model = model_builder.build(config, is_training=True)
        shapes = tf.constant([[c["size"], c["size"], c["channels"]]] * c["batch"])
        with tf.variable_scope("", custom_getter=self.noted):
            out = model.predict(images, shapes)
        Graph.regularized = self.variables_of(tf.get_collection(
            tf.GraphKeys.REGULARIZATION_LOSSES))
        heads = dict(self.heads(model, out))
        loss = tf.add_n([tf.reduce_mean(tf.square(x - self.target(name, x)))
                         for name, x in heads.items()])
        return {**heads, "anchors": out["anchors"]}, loss

    @staticmethod
    def heads(model, out):
        """Cuts the joined predictions into the levels' maps."""
        first = 0
        per_cell = model._anchor_generator.num_anchors_per_location()
        for k, (x, anchors) in enumerate(zip(out["feature_maps"], per_cell), 1):
            n, h, w = x.shape.as_list()[:3]
            last = first + h * w * anchors
            for name, key in (("boxes", "box_encodings"),
                              ("classes", "class_predictions_with_background")):
                yield f"{name}_{k}", tf.reshape(out[key][:, first:last], [n, h, w, -1])
            first = last

    def target(self, name, x):
        u = Stream(self.seed, "golden/target_" + name).uniform(x.shape.num_elements())
        return tf.constant((2 * u - 1).astype(np.float32).reshape(x.shape.as_list()), x.dtype)

    @staticmethod
    def variables_of(losses):
        """Names of the variables that these losses read, one each."""
        trained, names = {v.op.name for v in tf.trainable_variables()}, []
        for loss in losses:
            stack = [loss.op]
            while stack:
                op = stack.pop()
                if op.name in trained:
                    names.append(op.name)
                stack.extend(x.op for x in op.inputs)
        return sorted(names)


def make(builders, name):
    c = CASES[name]
    seed, moves, exact, single = tensorflow_nets.both(Graph, builders, c)
    golden.write(name, {
        "made_by": f"tf-object-detection 0.0.3, TensorFlow {tf.__version__}, "
                   f"numpy {np.__version__}, Python {platform.python_version()}",
        "net": c["net"], "options": c["options"], "batch": c["batch"], "height": c["size"],
        "width": c["size"], "channels": c["channels"], "classes": c["classes"], "seed": seed,
        "shift": c["shift"], "regularized": Graph.regularized,
    }, moves, exact, single)


if __name__ == "__main__":
    tensorflow_nets.prepare()
    tf = tfod.load()
    from google.protobuf import text_format
    from object_detection.builders import model_builder
    from object_detection.protos import model_pb2
    for wanted in sys.argv[1:] or CASES:
        make((model_builder, model_pb2.DetectionModel, text_format), wanted)
