"""Makes tests/golden/nets/CASE.json for segmentation nets: the results of one training step in the
original program, DeepLab on TensorFlow, on the CPU.

    python3 tests/golden/deeplab_nets.py RESEARCH [CASE ...]

RESEARCH is the folder research, with deeplab and slim, of a checkout of
github.com/tensorflow/models from 2020. The script needs the packages that tensorflow_nets.py needs.
Weights, offsets and kinks are treated as described there; golden.py describes the file. The loss is
the softmax cross entropy of the logits, which are enlarged to the pictures' size with corners
aligned. It is averaged over the pixels that are not ignored. Labels are drawn per pixel from one
value more than there are classes; that value is ignored.

Operations that the original lacks in float64 are replaced by plain ones: batch norm as in
tensorflow_nets.py, and resizing by a product with two matrices of weights. Pictures are drawn in
the value range that the backbone expects. Dropout keeps everything.

Each picture has its own colour beneath the noise. Batch norm after global pooling sees one value
per picture and channel; if these values were nearly equal, rounding errors would decide the result.

A case is ill-conditioned when only one or two pixels of a channel pass a rectifier. The gradient
then points in a direction that the next batch norm nearly cancels, and rounding errors dominate all
gradients before it: TensorFlow's own float32 run differs by more than golden.py allows. `shift`,
`shifts`, `clear` and the number of pictures are chosen per case to avoid such channels."""
import sys
import types

import numpy as np
import platform
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import tensor_util

import golden
import tensorflow_nets
from philox import Stream

IGNORED = 255


def case(net, batch, height, width, stride, classes=19, shift=2, **options):
    """options: options of Pumice's net; those of DeepLab's ModelOptions are derived from them.
    shift: 2, or 1 for nets in which 2 leaves channels that hardly a pixel passes. A batch of two
    has no image-level branch, because batch norm turns two averages into one number and its
    opposite."""
    if batch == 2 and "aspp_pooling_crop" not in options and "aspp_batch_norm" not in options:
        options["aspp_image_level"] = False
    return dict(
        net="deeplab_" + net,
        batch=batch,
        height=height,
        width=width,
        classes=classes,
        shift=shift,
        options={"output_stride": stride, **options},
    )


def sampled(rates, **options):
    """Options of a net with pyramid pooling and a decoder. The rates are small enough for the map:
    with the usual ones only the middle of each window would lie inside."""
    return dict(aspp_rates=rates, decoder_strides=[4], **options)


CASES = {}
for backbone, pictures in (("mobilenet_v2", 8), ("mobilenet_v3_small_seg", 4),
                           ("resnet_v1_50_beta", 4), ("xception_65", 2)):
    name = "deeplab_" + backbone
    CASES[name] = case(backbone, pictures, 65, 65, 16, **sampled([1, 2, 4]))
    CASES[name + "_129x97"] = case(backbone, 2, 129, 97, 16, **sampled([1, 2, 4]))
    CASES[name + "_stride8"] = case(backbone, 2, 129, 97, 8, **sampled([4, 8, 12]))
    CASES[name + "_stride8_65x65"] = case(backbone, pictures, 65, 65, 8, **sampled([2, 4, 6]))
# `shifts` by the prefix of the variables' names. Errors grow over the many layers of xception, so
# it needs larger offsets than the heads.
DEEP = {"xception_65/entry_flow/": 2, "xception_65/middle_flow/": 2}
# Every other unit adds with the opposite sign. Otherwise the sums would reach a bound of the
# activation.
TURNING = {f"xception_41/middle_flow/block1/unit_{i}/xception_module/separable_conv3_pointwise/": -2
           for i in (1, 3, 5, 7)}
CASES["deeplab_xception_65"] = dict(
    case("xception_65", 6, 65, 65, 16, shift=1, **sampled([1, 2, 4])), shifts=DEEP, clear=1e-4
)
CASES["deeplab_xception_65_stride8"].update(shift=1, shifts=DEEP, clear=1e-4)
CASES["deeplab_mobilenet_v2_stride8_65x65"]["shift"] = 1
CASES["deeplab_mobilenet_v3_small_seg_stride8_65x65"].update(batch=8, shift=1)

CELL = [{"op": "conv", "kernel": 3, "rate": [1, 6], "input": -1},
        {"op": "conv", "kernel": 1, "input": 0},
        {"op": "pyramid_pooling", "grid_size": [2, 2], "input": 1}]
CASES.update({  # the layers after the backbone
    "deeplab_lr_aspp": case(
        "mobilenet_v3_small_seg", 2, 129, 97, 16, aspp_filters=128, aspp_concat_projection=False,
        aspp_squeeze_excite=True, aspp_se_qsigmoid=True, aspp_pooling_crop=[97, 65],
        aspp_pooling_stride=[1, 2], decoder_strides=[8], decoder_sum_merge=True, decoder_filters=19,
        decoder_is_logits=True),
    "deeplab_summed": case(
        "mobilenet_v3_small_seg", 2, 65, 65, 16, aspp_rates=[2, 4], aspp_batch_norm=False,
        logits_kernel_size=3, image_pyramid=[0.5, 1], merge_method="avg"),
    "deeplab_plain": case(
        "mobilenet_v3_small_seg", 4, 97, 65, 16, aspp_rates=[2], aspp_separable=False,
        decoder_strides=[8, 4], decoder_separable=False, decoder_filters=64),
    "deeplab_cell": case("mobilenet_v3_small_seg", 4, 97, 65, 16, dense_prediction_cell=CELL),
    "deeplab_greatest": case(
        "mobilenet_v3_small_seg", 4, 65, 49, 16, aspp_filters=64, aspp_pooling_crop=[33, 33],
        aspp_pooling_stride=[2, 1], image_pyramid=[1, 0.75], merge_method="max"),
})
CASES.update(
    {  # the other backbones and their own options
        "deeplab_mobilenet_v3_large_seg": case(
            "mobilenet_v3_large_seg",
            4,
            65,
            49,
            16,
            aspp_rates=[1, 2],
            aspp_filters=96,
            aspp_squeeze_excite=True,
        ),
        "deeplab_mobilenet_v2_half": case("mobilenet_v2", 2, 49, 33, 16, depth_multiplier=0.5),
        "deeplab_mobilenet_v2_stride32": case(
            "mobilenet_v2",
            4,
            97,
            65,
            32,
            depth_multiplier=0.35,
            divisible_by=8,
            aspp_rates=[1, 2],
            aspp_filters=64,
            decoder_strides=[16],
            decoder_filters=64,
        ),
        "deeplab_mobilenet_edgetpu": case("mobilenet_edgetpu", 2, 49, 33, 8),
        "deeplab_xception_41": dict(
            case(
                "xception_41",
                8,
                50,
                33,
                16,
                shift=1,
                multi_grid=[1, 2, 4],
                bounded_activation=True,
                **sampled([1, 2], aspp_filters=64, decoder_filters=64),
            ),
            clear=1e-4,
            shifts={**TURNING, "xception_41/entry_flow/": 2, "xception_41/middle_flow/": 2},
        ),
        "deeplab_xception_71": case(
            "xception_71", 2, 49, 33, 8, decoder_strides=[8], decoder_filters=64
        ),
        "deeplab_resnet_v1_18": case(
            "resnet_v1_18",
            2,
            49,
            34,
            16,
            multi_grid=[1, 2],
            decoder_strides=[8],
            decoder_filters=64,
        ),
        "deeplab_resnet_v1_18_beta": case(
            "resnet_v1_18_beta",
            2,
            49,
            33,
            8,
            multi_grid=[1, 2],
            decoder_strides=[8, 4],
            decoder_sum_merge=True,
            decoder_filters=32,
        ),
        "deeplab_resnet_v1_101": case(
            "resnet_v1_101",
            2,
            49,
            33,
            16,
            multi_grid=[1, 2, 4],
            decoder_strides=[4],
            decoder_filters=64,
        ),
        "deeplab_nas_pnasnet": case(
            "nas_pnasnet", 2, 65, 49, 16, shift=1, decoder_strides=[4], decoder_filters=64
        ),
        "deeplab_nas_hnasnet": case(
            "nas_hnasnet", 2, 65, 49, 8, shift=1, nas_classification_head=True
        ),
    }
)
# Batch norm uses the moving averages in training. They start at values other than 0 and 1, and the
# golden holds the third step.
CASES["deeplab_frozen"] = dict(
    case("mobilenet_v2", 2, 49, 33, 16, **sampled([1, 2], aspp_filters=64, decoder_filters=64),
         depth_multiplier=0.5, batch_norm_train=False), steps=3, learning_rate=0.1)
MOMENTUM = 0.9

# Pumice's options whose names differ in ModelOptions.
NAMES = {
    "aspp_rates": "atrous_rates",
    "decoder_strides": "decoder_output_stride",
    "aspp_image_level": "add_image_level_feature",
    "aspp_filters": "aspp_convs_filters",
    "aspp_batch_norm": "aspp_with_batch_norm",
    "aspp_separable": "aspp_with_separable_conv",
    "aspp_concat_projection": "aspp_with_concat_projection",
    "aspp_squeeze_excite": "aspp_with_squeeze_and_excitation",
    "aspp_se_qsigmoid": "image_se_uses_qsigmoid",
    "aspp_pooling_crop": "image_pooling_crop_size",
    "aspp_pooling_stride": "image_pooling_stride",
    "decoder_separable": "decoder_use_separable_conv",
    "decoder_sum_merge": "decoder_use_sum_merge",
    "decoder_is_logits": "decoder_output_is_logits",
    "bounded_activation": "use_bounded_activation",
    "dense_prediction_cell": "dense_prediction_cell_config",
}

# ---- the original program ------------------------------------------------------------------


def exact_bilinear(images, size):
    """Bilinear resizing with corners aligned, in the precision of the images."""
    if isinstance(size, tf.Tensor):  # computed from a shape that is known
        size = tensor_util.constant_value_as_shape(size).as_list()
    for axis, (inside, outside) in enumerate(zip(images.shape.as_list()[1:3], size)):
        places = np.arange(outside) * ((inside - 1) / (outside - 1) if outside > 1 else 0)
        low = np.minimum(np.floor(places).astype(int), inside - 1)
        high, weight = np.minimum(low + 1, inside - 1), places - low
        matrix = np.zeros((outside, inside))
        np.add.at(matrix, (np.arange(outside), low), 1 - weight)
        np.add.at(matrix, (np.arange(outside), high), weight)
        formula = "oh,nhwc->nowc" if axis == 0 else "ow,nhwc->nhoc"
        images = tf.einsum(formula, tf.constant(matrix, images.dtype), images)
    return images


def conv2d_of(slim):
    """DeepLab's convolutions for residual nets, without standardisation of the weights."""
    module = types.ModuleType("deeplab.core.conv2d_ws")

    @slim.add_arg_scope
    def conv2d(*args, use_weight_standardization=False, **options):
        assert not use_weight_standardization
        return slim.conv2d(*args, **options)

    def conv2d_same(inputs, num_outputs, kernel_size, stride, rate=1, scope=None):
        padding = "SAME"
        if stride > 1:
            wide = (kernel_size - 1) * rate
            sides = [wide // 2, wide - wide // 2]
            inputs, padding = tf.pad(inputs, [[0, 0], sides, sides, [0, 0]]), "VALID"
        return conv2d(inputs, num_outputs, kernel_size, stride=stride, rate=rate, padding=padding,
                      scope=scope)
    module.conv2d, module.conv2d_same = conv2d, conv2d_same
    return module


class StaticShapes:
    """Stands in for the module tensorflow in the searched cells: tf.shape returns numbers."""

    def __getattr__(self, name):
        return getattr(tf, name)

    @staticmethod
    def shape(x):
        return x.shape.as_list()


def import_deeplab(research):
    """Imports DeepLab from the folder `research`. Returns its modules common and model."""
    np.int = int  # DeepLab uses the name that NumPy has removed
    tensorflow_nets.import_slim(research + "/slim")
    import tf_slim
    from nets import resnet_utils
    from nets.mobilenet import mobilenet_v3
    nets = types.ModuleType("tensorflow.contrib.slim.nets")
    nets.resnet_utils = resnet_utils

    @tf_slim.add_arg_scope
    def dropout(inputs, *_, **options):
        return inputs
    tf_slim.dropout = dropout
    single = tf.image.resize_bilinear

    def resize_bilinear(images, size, align_corners=False, name=None):
        assert align_corners
        if tensorflow_nets.double:
            return exact_bilinear(images, size)
        return single(images, size, align_corners=True, name=name)
    tf.image.resize_bilinear = resize_bilinear
    clip = tf.clip_by_value

    def watched_clip(x, low, high, name=None):
        return tensorflow_nets.watched(lambda x, name: clip(x, low, high, name), (low, high))(
            x, name
        )

    tf.clip_by_value = watched_clip
    sys.modules.update(
        {
            "tensorflow": tf,
            "tensorflow.contrib.slim": tf_slim,
            "tensorflow.contrib.framework": tf_slim,
            "tensorflow.contrib.layers": tf_slim,
            "tensorflow.contrib.slim.nets": nets,
            "deeplab.core.conv2d_ws": conv2d_of(tf_slim),
        }
    )
    sys.path.insert(0, research)
    from deeplab import common, model
    from deeplab.core import feature_extractor, nas_cell
    nas_cell.tf = StaticShapes()
    # DeepLab multiplies by 0.16667 instead of 1/6. The difference, 2e-5, is larger than rounding
    # errors.
    model.utils.q_sigmoid = lambda x: tf.nn.relu6(x + 3) / 6
    mobilenet_v3.squeeze_excite.keywords["gating_fn"] = model.utils.q_sigmoid
    for name in feature_extractor._PREPROCESS_FN:
        feature_extractor._PREPROCESS_FN[name] = lambda images, dtype: images
    return common, model


class Graph(tensorflow_nets.Graph):
    def images(self):
        c = self.c
        shape = (c["batch"], c["height"], c["width"], 3)
        u = Stream(self.seed, "golden/images").uniform(int(np.prod(shape))).reshape(shape)
        colour = Stream(self.seed, "golden/colours").uniform(3 * c["batch"]).reshape(-1, 1, 1, 3)
        return ((u - 0.5) + (4 * colour - 2)).astype(np.float32)

    def labels(self):
        c = self.c
        u = Stream(self.seed, "golden/labels").uniform(c["batch"] * c["height"] * c["width"])
        labels = (u * (c["classes"] + 1)).astype(np.int64)
        return np.where(labels == c["classes"], IGNORED, labels)

    def initial(self, name, shape, moves):
        if self.c["options"].get("batch_norm_train", True) or "/moving_" not in name:
            return super().initial(name, shape, moves)
        u = Stream(self.seed, "golden/" + name).uniform(shape[0])
        return 0.4 * u - 0.2 if name.endswith("mean") else 0.3 * (0.5 + u)

    def run(self):
        """Runs the case's steps with TensorFlow's momentum. Returns the results of the last one."""
        slots = dict.fromkeys(self.trained, 0)
        for _ in range(self.c.get("steps", 1) - 1):
            values, gradients, feed = *self.session.run([self.trained, self.gradients]), {}
            for name, v in self.trained.items():
                slots[name] = MOMENTUM * slots[name] + gradients[name]
                feed[v.initializer.inputs[1]] = values[name] - self.c["learning_rate"] * slots[name]
            self.session.run([v.initializer for v in self.trained.values()], feed)
        return super().run()

    def logits_and_loss(self, deeplab, images):
        c, (common, model) = self.c, deeplab
        fields = {NAMES.get(name, name): value for name, value in c["options"].items()}
        pyramid, head = (
            fields.pop("image_pyramid", None),
            fields.pop("nas_classification_head", False),
        )
        own_statistics = fields.pop("batch_norm_train", True)
        options = common.ModelOptions(
            outputs_to_num_classes={"semantic": c["classes"]},
            crop_size=[c["height"], c["width"]],
            output_stride=fields.pop("output_stride"),
            atrous_rates=fields.pop("atrous_rates", None),
            preprocessed_images_dtype=images.dtype,
        )
        if "dense_prediction_cell_config" in fields:  # copied, because DeepLab changes its argument
            fields["dense_prediction_cell_config"] = [dict(b) for b in CELL]
        if "nas_" in c["net"]:
            searched = {**options.nas_architecture_options, "nas_use_classification_head": head}
            fields["nas_architecture_options"] = searched
        options = options._replace(model_variant=c["net"][len("deeplab_"):], **fields)
        with tf.variable_scope("", custom_getter=self.noted):
            made = model.multi_scale_logits(images, options, pyramid, weight_decay=0.0,
                                            is_training=True,
                                            fine_tune_batch_norm=own_statistics)["semantic"]
        assert own_statistics == bool(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        logits = made["merged_logits"]
        enlarged = tf.image.resize_bilinear(logits, [c["height"], c["width"]], align_corners=True)
        labels = self.labels()
        kept = tf.constant(labels != IGNORED, images.dtype)
        target = tf.one_hot(labels, c["classes"], dtype=images.dtype)
        rows = tf.nn.log_softmax(tf.reshape(enlarged, [-1, c["classes"]]))
        return logits, -tf.reduce_sum(target * rows) / tf.reduce_sum(kept)


def make(deeplab, name):
    c = CASES[name]
    seed, moves, exact, single = tensorflow_nets.both(Graph, deeplab, c, 0.6 * golden.LIMIT)
    golden.write(name, {
        "made_by": f"TensorFlow {tf.__version__}, numpy {np.__version__}, "
                   f"Python {platform.python_version()}",
        "net": c["net"], "options": c["options"], "batch": c["batch"], "height": c["height"],
        "width": c["width"], "channels": 3, "classes": c["classes"], "seed": seed,
        "shift": c["shift"], "ignore_label": IGNORED, "label_smoothing": 0,
        **{key: c[key] for key in ("shifts", "steps", "learning_rate") if key in c},
    }, moves, exact, single)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tf.disable_v2_behavior()
    program = import_deeplab(sys.argv[1])
    for wanted in sys.argv[2:] or CASES:
        make(program, wanted)
