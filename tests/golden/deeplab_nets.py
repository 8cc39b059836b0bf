"""Makes tests/golden/nets/CASE.json for segmentation: what one training step of a net gives in the original
program, DeepLab on TensorFlow, on the CPU.

    python3 tests/golden/deeplab_nets.py RESEARCH [CASE ...]

RESEARCH is the folder research of a checkout of github.com/tensorflow/models from 2020 (with deeplab and
slim in it). Needs what tensorflow_nets.py needs, whose ways these are: weights, offsets and kinks as
described there, and golden.py says what is kept. The loss is the softmax cross entropy of the logits,
enlarged to the pictures' size with corners aligned, over the pixels that are not ignored, divided by
their number. Labels are drawn per pixel; one more than there are classes is the ignored one.

What the original does not do in float64 is replaced by plain operations that do: batch norm as in
tensorflow_nets.py, and resizing, here a product with two matrices of weights. Pictures come as the
backbones want them, dropout keeps everything.

Each picture has a colour of its own beneath the noise: batch norm upon the pooled map sees one value a
picture, and were they nearly equal, rounding errors would decide. The two pictures at stride 8 go without
it."""
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
# Rates that fit the maps of 5x5 and 17x13: with the usual ones a window has but its middle in them.
WHOLE = {16: [1, 2, 4], 8: [4, 8, 12]}


def case(net, batch, height, width, stride, classes=19, options=None, original=None, whole=True):
    """options: of Pumice's net; original: the same as fields of DeepLab's ModelOptions. whole: with
    atrous rates and a decoder."""
    ours, theirs = {"output_stride": stride}, {"output_stride": stride}
    if whole:
        ours.update(aspp_rates=WHOLE[stride], decoder_strides=[4])
        theirs.update(atrous_rates=WHOLE[stride], decoder_output_stride=[4])
    return dict(net="deeplab_" + net, batch=batch, height=height, width=width, classes=classes, shift=2,
                options={**ours, **(options or {})}, original={**theirs, **(original or {})})


CASES = {}
for backbone, pictures in (("mobilenet_v2", 8), ("mobilenet_v3_small_seg", 4),
                           ("resnet_v1_50_beta", 4), ("xception_65", 4)):
    CASES[f"deeplab_{backbone}"] = case(backbone, pictures, 65, 65, 16)
    CASES[f"deeplab_{backbone}_stride8"] = case(
        backbone, 2, 129, 97, 8, options=dict(aspp_image_level=False),
        original=dict(add_image_level_feature=False))
CELL = [{"op": "conv", "kernel": 3, "rate": [1, 6], "input": -1},
        {"op": "conv", "kernel": 1, "input": 0},
        {"op": "pyramid_pooling", "grid_size": [2, 2], "input": 1}]
CASES.update({
    "deeplab_lr_aspp": case(
        "mobilenet_v3_small_seg", 2, 129, 97, 16, whole=False,
        options=dict(aspp_filters=128, aspp_concat_projection=False, aspp_squeeze_excite=True,
                     aspp_se_qsigmoid=True, aspp_pooling_crop=[97, 65], aspp_pooling_stride=[1, 2],
                     decoder_strides=[8], decoder_sum_merge=True, decoder_filters=19,
                     decoder_is_logits=True),
        original=dict(aspp_convs_filters=128, aspp_with_concat_projection=False,
                      aspp_with_squeeze_and_excitation=True, image_se_uses_qsigmoid=True,
                      image_pooling_crop_size=[97, 65], image_pooling_stride=[1, 2],
                      decoder_output_stride=[8], decoder_use_sum_merge=True, decoder_filters=19,
                      decoder_output_is_logits=True)),
    "deeplab_summed": case(
        "mobilenet_v3_small_seg", 2, 65, 65, 16, whole=False,
        options=dict(aspp_rates=[2, 4], aspp_batch_norm=False, logits_kernel_size=3,
                     image_pyramid=[0.5, 1], merge_method="avg"),
        original=dict(atrous_rates=[2, 4], aspp_with_batch_norm=False, logits_kernel_size=3,
                      image_pyramid=[0.5, 1], merge_method="avg")),
    "deeplab_plain": case(
        "mobilenet_v3_small_seg", 4, 97, 65, 16, whole=False,
        options=dict(aspp_rates=[2], aspp_separable=False, decoder_strides=[8, 4],
                     decoder_separable=False, decoder_filters=64),
        original=dict(atrous_rates=[2], aspp_with_separable_conv=False, decoder_output_stride=[8, 4],
                      decoder_use_separable_conv=False, decoder_filters=64)),
    "deeplab_cell": case(
        "mobilenet_v3_small_seg", 4, 97, 65, 16, whole=False,
        options=dict(dense_prediction_cell=CELL),
        original=dict(dense_prediction_cell_config=CELL)),
})

# ---- the original program ------------------------------------------------------------------


def exact_bilinear(images, size):
    """With corners aligned, in the images' own precision."""
    if isinstance(size, tf.Tensor):  # of an image's known shape
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
    """DeepLab's convolutions for residual nets, without its weights' standardisation."""
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


def import_deeplab(research):
    """Its modules common and model."""
    np.int = int  # as it was called then
    tensorflow_nets.import_slim(research + "/slim")
    import tf_slim
    from nets import resnet_utils
    from nets.mobilenet import mobilenet_v3
    nets = types.ModuleType("tensorflow.contrib.slim.nets")
    nets.resnet_utils = resnet_utils
    searched = types.ModuleType("deeplab.core.nas_network")  # backbones that are not wanted here
    searched.pnasnet = searched.hnasnet = searched.nas_arg_scope = None

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
    sys.modules.update({"tensorflow": tf, "tensorflow.contrib.slim": tf_slim,
                        "tensorflow.contrib.slim.nets": nets, "deeplab.core.nas_network": searched,
                        "deeplab.core.conv2d_ws": conv2d_of(tf_slim)})
    sys.path.insert(0, research)
    from deeplab import common, model
    from deeplab.core import feature_extractor
    # Written there as times 0.16667, which is 2e-5 off: more than rounding where nothing else is.
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

    def logits_and_loss(self, deeplab, images):
        c, (common, model) = self.c, deeplab
        fields = dict(c["original"])
        pyramid = fields.pop("image_pyramid", None)
        options = common.ModelOptions(
            outputs_to_num_classes={"semantic": c["classes"]}, crop_size=[c["height"], c["width"]],
            output_stride=fields.pop("output_stride"), atrous_rates=fields.pop("atrous_rates", None),
            preprocessed_images_dtype=images.dtype)
        if "dense_prediction_cell_config" in fields:  # it writes into what it is given
            fields["dense_prediction_cell_config"] = [dict(b) for b in CELL]
        options = options._replace(model_variant=c["net"][len("deeplab_"):], **fields)
        with tf.variable_scope("", custom_getter=self.noted):
            made = model.multi_scale_logits(images, options, pyramid, weight_decay=0.0,
                                            is_training=True, fine_tune_batch_norm=True)["semantic"]
        logits = made["merged_logits"]
        enlarged = tf.image.resize_bilinear(logits, [c["height"], c["width"]], align_corners=True)
        labels = self.labels()
        kept = tf.constant(labels != IGNORED, images.dtype)
        target = tf.one_hot(labels, c["classes"], dtype=images.dtype)
        rows = tf.nn.log_softmax(tf.reshape(enlarged, [-1, c["classes"]]))
        return logits, -tf.reduce_sum(target * rows) / tf.reduce_sum(kept)


def make(deeplab, name):
    c = CASES[name]
    seed, moves, exact, single = tensorflow_nets.both(Graph, deeplab, c)
    golden.write(name, {
        "made_by": f"TensorFlow {tf.__version__}, numpy {np.__version__}, "
                   f"Python {platform.python_version()}",
        "net": c["net"], "options": c["options"], "batch": c["batch"], "height": c["height"],
        "width": c["width"], "channels": 3, "classes": c["classes"], "seed": seed,
        "shift": c["shift"], "ignore_label": IGNORED, "label_smoothing": 0,
    }, moves, exact, single)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tf.disable_v2_behavior()
    program = import_deeplab(sys.argv[1])
    for wanted in sys.argv[2:] or CASES:
        make(program, wanted)
