"""Makes tests/golden/nets/CASE.json for one-stage detectors and first stages of Faster R-CNN: the
results of one training step in the original program, TensorFlow's Object Detection API, on the CPU.

    VENV/bin/python tests/golden/tfod_nets.py [CASE ...]

tfod.py says how to make the environment. Weights, offsets and kinks are treated as described in
tensorflow_nets.py; golden.py describes the file. The tensors are the heads of every level in
Pumice's form, boxes_1 [n,h,w,A*4] and classes_1 [n,h,w,A*C], the anchors, the loss, the moving
averages and the gradients. The loss is the sum over heads of the mean of (x - t)^2; the targets t
lie in -1..1 and are drawn by name. "regularized" lists the variables with weight decay.

Pictures must be so large that batch norm of the smallest map sees enough values.

The package lacks MobileNet v3. MobileNetV3 below builds its detection form from the numbers of the
publication (Howard et al. 2019, tables 1 and 2) with the same layers as the other extractors.
torch_mobilenet_v3.py compares its results with those of a net of PyTorch."""
import platform
import sys

import numpy as np

import golden
import tfod
import tensorflow_nets
from philox import Stream

BATCH_NORM = "batch_norm { train: true scale: true center: true decay: %s epsilon: %s }"
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
# The second stage is required, but not built.
TWO_STAGES = """faster_rcnn {
  number_of_stages: 1 num_classes: 3 clip_anchors_to_image: true
  image_resizer { fixed_shape_resizer { height: %(size)d width: %(size)d } }
  feature_extractor { type: "%(type)s" first_stage_features_stride: %(stride)d
    batch_norm_trainable: true }
  first_stage_anchor_generator { grid_anchor_generator { scales: [0.25, 0.5, 1.0, 2.0]
    aspect_ratios: [0.5, 1.0, 2.0] height_stride: %(stride)d width_stride: %(stride)d } }
  first_stage_atrous_rate: %(rate)d
  first_stage_box_predictor_conv_hyperparams { %(hyperparams)s }
  initial_crop_size: 14 maxpool_kernel_size: 2 maxpool_stride: 2
  second_stage_box_predictor { mask_rcnn_box_predictor {
    fc_hyperparams { op: FC %(hyperparams)s } } }
  second_stage_post_processing { batch_non_max_suppression { } score_converter: SOFTMAX } }"""


def hyperparams(initializer, decay, epsilon="0.001"):
    return (f"activation: RELU_6 regularizer {{ l2_regularizer {{ weight: 0.00004 }} }} "
            f"{initializer} {BATCH_NORM % (decay, epsilon)}")


def convolutional(more="kernel_size: 1", decay="0.9997"):
    return (f"convolutional_box_predictor {{ use_dropout: false {more} "
            f"conv_hyperparams {{ {hyperparams(TRUNCATED, decay)} }} }}")


def shared(more="depth: 256 num_layers_before_predictor: 4 kernel_size: 3", decay="0.997"):
    return (f"weight_shared_convolutional_box_predictor {{ class_prediction_bias_init: -4.6 {more} "
            f"conv_hyperparams {{ {hyperparams(NORMAL, decay)} }} }}")


def case(net, kind, batch, size, predictor, shift=2, options=None, more="", anchors=None,
         decay="0.9997", multiplier="1.0", classes=3, extractor=None, unused=()):
    """options: options of Pumice's net; the other arguments are the same as the original's
    messages, whose numbers are float32. unused: beginnings of names of the original's variables on
    which nothing depends; Pumice's net lacks them."""
    own = {"batch_norm_decay": float(np.float32(decay))}
    if multiplier != "1.0":
        own_width = {"depth_multiplier": float(np.float32(multiplier))}
        options = {**own_width, **(options or {})}
    return dict(net=net, batch=batch, size=size, classes=classes, shift=shift, channels=3,
                unused=tuple(unused), options={"hyperparams": own, **(options or {})},
                model=MODEL % dict(classes=classes, size=size, predictor=predictor, type=kind,
                                   anchors=anchors or ANCHORS % (6, ""), more=more,
                                   multiplier=multiplier,
                                   extractor=extractor or hyperparams(TRUNCATED, decay)))


def first_stage(kind, size, stride=16, rate=1, unused=()):
    decay = "regularizer { l2_regularizer { weight: 0.00004 } } "
    options = {"batch_norm_train": True, "hyperparams": {"regularize": True},
               "first_stage_atrous_rate": rate}
    if stride != 16:
        options["first_stage_features_stride"] = stride
    return dict(net=kind, batch=2, size=size, classes=3, shift=2, channels=3, unused=tuple(unused),
                options=options, model=TWO_STAGES % dict(
                    size=size, type=kind, stride=stride, rate=rate,
                    hyperparams=decay + TRUNCATED.replace("0.03", "0.01")))


def pyramid(net, kind, batch, size, predictor, more="", **others):
    return case(net, kind, batch, size, predictor, anchors=LEVELS, decay="0.997",
                more="override_base_feature_extractor_hyperparams: true " + more, **others)


OVERRIDE = "override_base_feature_extractor_hyperparams: true "
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
    "ssd_inception_v3": case(
        "ssd_inception_v3", "ssd_inception_v3", 4, 160, convolutional("kernel_size: 3"),
        more=OVERRIDE, extractor=hyperparams(TRUNCATED.replace("0.03", "0.1"), "0.9997", "0.01")),
    "ssd_mobilenet_v1_ppn": case(
        "ssd_mobilenet_v1_ppn", "ssd_mobilenet_v1_ppn", 4, 160,
        shared("depth: 512 num_layers_before_predictor: 1 kernel_size: 1 "
               "share_prediction_tower: true", "0.97"), more=OVERRIDE, decay="0.97",
        anchors=ANCHORS.replace("0.2", "0.15") % (6, "reduce_boxes_in_lowest_layer: false"),
        extractor=hyperparams(NORMAL.replace("0.01", "0.03"), "0.97"),
        options={"hyperparams": {"initializer": "normal(0.03)",
                                 "batch_norm_decay": float(np.float32(0.97))}},
        unused=["FeatureExtractor/MobilenetV1/Conv2d_12",
                "FeatureExtractor/MobilenetV1/Conv2d_13"]),
    "ssd_mobilenet_v2_padded": case(
        "ssd_mobilenet_v2", "ssd_mobilenet_v2", 4, 161, convolutional(
            "kernel_size: 3 num_layers_before_predictor: 1 max_depth: 64"), multiplier="0.5",
        more=OVERRIDE + "use_explicit_padding: true num_layers: 4", anchors=ANCHORS % (4, ""),
        options={"override_base_feature_extractor_hyperparams": True, "use_explicit_padding": True,
                 "num_layers": 4, "box_predictor": {"kernel_size": 3, "max_depth": 64,
                                                    "num_layers_before_predictor": 1}}),
}
for kind, size, stride, rate in (("inception_v2", 97, 16, 1), ("inception_resnet_v2", 97, 16, 1),
                                 ("inception_resnet_v2", 65, 8, 2), ("resnet50", 81, 8, 2)):
    name = "faster_rcnn_" + kind
    CASES[name + ("_stride8" if stride == 8 else "")] = first_stage(
        name, size, stride, rate, ["FirstStageFeatureExtractor/resnet_v1_50/block4"])
for size in "large", "small":
    name = "ssd_mobilenet_v3_" + size
    CASES[name] = case(name, name, 4, 160, convolutional("kernel_size: 3 use_depthwise: true",
                                                         "0.97"), decay="0.97",
                       more=OVERRIDE + "use_depthwise: true")


# ---- MobileNet v3 --------------------------------------------------------------------------

# Blocks: channels of the expansion, output channels, window, stride, gate, hard swish. The last
# three blocks and the last convolution have half the classifier's output channels.
LARGE = [(16, 16, 3, 1, 0, 0), (64, 24, 3, 2, 0, 0), (72, 24, 3, 1, 0, 0), (72, 40, 5, 2, 1, 0),
         (120, 40, 5, 1, 1, 0), (120, 40, 5, 1, 1, 0), (240, 80, 3, 2, 0, 1), (200, 80, 3, 1, 0, 1),
         (184, 80, 3, 1, 0, 1), (184, 80, 3, 1, 0, 1), (480, 112, 3, 1, 1, 1),
         (672, 112, 3, 1, 1, 1), (672, 80, 5, 2, 1, 1), (480, 80, 5, 1, 1, 1),
         (480, 80, 5, 1, 1, 1)]
SMALL = [(16, 16, 3, 2, 1, 0), (72, 24, 3, 2, 0, 0), (88, 24, 3, 1, 0, 0), (96, 40, 5, 2, 1, 1),
         (240, 40, 5, 1, 1, 1), (240, 40, 5, 1, 1, 1), (120, 48, 5, 1, 1, 1), (144, 48, 5, 1, 1, 1),
         (288, 48, 5, 2, 1, 1), (288, 48, 5, 1, 1, 1), (288, 48, 5, 1, 1, 1)]


def hard_swish(x):
    return x * tf.nn.relu6(x + 3) / 6


def gated(x):
    """x times a gate for each channel, made of the averages of all channels."""
    slim, channels = tf.contrib.slim, x.shape.as_list()[3]
    quarter = int(channels / 4 + 4) // 8 * 8
    quarter += 8 if quarter < 0.9 * channels / 4 else 0
    g = tf.reduce_mean(x, [1, 2], keepdims=True)
    g = slim.conv2d(g, max(quarter, 8), 1, activation_fn=tf.nn.relu, normalizer_fn=None,
                    scope="squeeze_excite/Conv")
    g = slim.conv2d(g, channels, 1, activation_fn=None, normalizer_fn=None,
                    scope="squeeze_excite/Conv_1")
    return x * tf.nn.relu6(g + 3) / 6


def block(x, wide, out, window, stride, gate, swish):
    """Returns the block's output and its expansion."""
    slim, activation, y = tf.contrib.slim, hard_swish if swish else tf.nn.relu, x
    if wide > x.shape[3]:
        y = slim.conv2d(y, wide, 1, activation_fn=activation, scope="expand")
    expansion = y
    y = slim.separable_conv2d(y, None, window, depth_multiplier=1, stride=stride,
                              activation_fn=activation, scope="depthwise")
    y = slim.conv2d(gated(y) if gate else y, out, 1, activation_fn=None, scope="project")
    return (y + x if stride == 1 and x.shape[3] == out else y), expansion


def mobilenet_v3(blocks, first, last):
    """The class of an extractor. first: number of the block whose expansion is the first map."""
    from object_detection.meta_architectures import ssd_meta_arch
    from object_detection.models import feature_map_generators

    class MobileNetV3(ssd_meta_arch.SSDFeatureExtractor):
        def preprocess(self, images):
            return images

        def extract_features(self, images):
            maps, slim = {}, tf.contrib.slim
            names = [f"layer_{first + 2}/expansion_output", f"layer_{len(blocks) + 2}"]
            with tf.variable_scope("MobilenetV3"), slim.arg_scope(self._conv_hyperparams_fn()):
                x = slim.conv2d(images, 16, 3, stride=2, activation_fn=hard_swish, scope="Conv")
                for i, b in enumerate(blocks):
                    with tf.variable_scope(f"expanded_conv_{i}" if i else "expanded_conv"):
                        x, expansion = block(x, *b)
                    if i == first:
                        maps[names[0]] = expansion
                maps[names[1]] = slim.conv2d(x, last, 1, activation_fn=hard_swish, scope="Conv_1")
                layout = {"from_layer": names + [""] * 4, "use_depthwise": self._use_depthwise,
                          "layer_depth": [-1, -1, 512, 256, 256, 128]}
                return feature_map_generators.multi_resolution_feature_maps(
                    layout, self._depth_multiplier, self._min_depth, True, maps).values()
    return MobileNetV3


class Listed(dict):
    """A dict whose keys are a list, as in Python 2, for which the pooling pyramid was written."""
    def keys(self):
        return list(super().keys())


def repair():
    """Adds MobileNet v3 to the original, and lets its pooling pyramid run on Python 3."""
    from object_detection.models import feature_map_generators as generators
    pooling = generators.pooling_pyramid_feature_maps
    generators.pooling_pyramid_feature_maps = lambda **options: pooling(
        **{**options, "image_features": Listed(options["image_features"])})
    model_builder.SSD_FEATURE_EXTRACTOR_CLASS_MAP.update(
        ssd_mobilenet_v3_large=mobilenet_v3(LARGE, 12, 480),
        ssd_mobilenet_v3_small=mobilenet_v3(SMALL, 8, 288))


# ---- a step --------------------------------------------------------------------------------

class Graph(tensorflow_nets.Graph):
    """A training step of a detector. builders: the original's modules."""
    regularized = []  # names of the variables with weight decay in the last graph

    def __init__(self, *arguments):
        super().__init__(*arguments)
        unused = self.c["unused"]
        if unused:
            self.gradients = {k: g for k, g in self.gradients.items() if not k.startswith(unused)}
            self.others = {k: v for k, v in self.others.items() if not k.startswith(unused)}
            self.updates = [u for u in self.updates
                            if not self.average(getattr(u, "op", u))[0].startswith(unused)]
            Graph.regularized = [k for k in Graph.regularized if not k.startswith(unused)]

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
        return {**heads, "anchors": self.anchors(model, out)}, loss

    def anchors(self, model, out):
        """Shares of the picture, not clipped."""
        if "rpn_box_encodings" not in out:
            return out["anchors"]
        cells = out["rpn_box_predictor_features"].shape.as_list()[1:3]
        boxes, = model._first_stage_anchor_generator.generate([tuple(cells)])
        return boxes.get() / self.c["size"]

    @staticmethod
    def heads(model, out):
        """Cuts the joined predictions into the levels' maps."""
        if "rpn_box_encodings" in out:
            cells = out["rpn_box_predictor_features"].shape.as_list()[:3]
            yield "boxes_1", tf.reshape(out["rpn_box_encodings"], cells + [-1])
            yield "classes_1", tf.reshape(out["rpn_objectness_predictions_with_background"],
                                          cells + [-1])
            return
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
    repair()
    for wanted in sys.argv[1:] or CASES:
        make((model_builder, model_pb2.DetectionModel, text_format), wanted)
