"""Makes tests/golden/nets/retinanet_*.json: the results of a training step of RetinaNet, with the
losses and tensors of tfod_nets.py.

    VENV/bin/python tests/golden/retinanet.py [CASE ...]    # tfod.py describes VENV

The classifier is TF-Slim's ResNet from the package tf-object-detection. The package lacks the rest,
which is built here from the publication (Lin et al. 2017) and keras-retinanet: laterals of 1x1, a
coarser map enlarged by repeating pixels to the finer one's size and added, 3x3 on each sum; P6 is a
3x3 convolution with stride 2 of the last block, P7 one of relu(P6); two towers of four 3x3
convolutions with relu for all levels. With "transposed" a 4x4 transposed convolution enlarges maps;
with "separate" each level has towers of its own.

Batch norm uses the batch's statistics: with those of a checkpoint the activations of random weights
would grow from unit to unit. For the same reason the weights of the heads have the deviation 0.03
instead of 0.01, with which four layers would hide the class targets."""
import platform
import sys

import numpy as np

import golden
import tensorflow_nets
import tfod
import tfod_nets

SCOPE = "WeightSharedConvolutionalBoxPredictor"
SIZES, SCALES, RATIOS = [32, 64, 128, 256, 512], [2 ** (k / 3) for k in range(3)], [0.5, 1, 2]
DEPTH = 256


def case(size, options, transposed=False, separate=False, background=0):
    own = {"batch_norm_train": True,
           "box_predictor": {"hyperparams": {"initializer": "normal(0.03)"}}, **options}
    return dict(net="retinanet_50", batch=2, size=size, classes=3, shift=2, channels=3, unused=(),
                options=own, transposed=transposed, separate=separate, background=background)


CASES = {
    "retinanet_50": case(136, {}),  # maps of 17, 9, 5, 3 and 2 rows
    "retinanet_50_separate": case(
        129, {"upsampling": "transposed", "separate_heads": True, "background_class": True},
        transposed=True, separate=True, background=1),
}


def anchors(size, maps):
    """ymin, xmin, ymax, xmax of every anchor, as shares of the picture. A ratio is height over
    width; ratios come before scales."""
    boxes = []
    for (rows, columns), least, stride in zip(maps, SIZES, (8, 16, 32, 64, 128)):
        for y in range(rows):
            for x in range(columns):
                for ratio in RATIOS:
                    for scale in SCALES:
                        w = np.sqrt((least * scale) ** 2 / ratio)
                        h, cy, cx = w * ratio, (y + 0.5) * stride, (x + 0.5) * stride
                        boxes.append([cy - h / 2, cx - w / 2, cy + h / 2, cx + w / 2])
    return np.array(boxes) / size


class Graph(tfod_nets.Graph):
    """A training step of RetinaNet. factory: TF-Slim's module resnet_v1."""

    def logits_and_loss(self, factory, images):
        with tf.variable_scope("", custom_getter=self.noted):
            levels = self.pyramid(*self.blocks(factory, images))
            heads = {f"{name}_{k}": self.head(name, k, x) for k, x in enumerate(levels, 1)
                     for name in ("boxes", "classes")}
        tfod_nets.Graph.regularized = self.variables_of(
            tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
        loss = tf.add_n([tf.reduce_mean(tf.square(x - self.target(name, x)))
                         for name, x in heads.items()])
        boxes = anchors(self.c["size"], [x.shape.as_list()[1:3] for x in levels])
        return {**heads, "anchors": tf.constant(boxes, images.dtype)}, loss

    def blocks(self, factory, images):
        """The last maps with strides 8, 16 and 32."""
        slim = tf.contrib.slim
        with tf.variable_scope("FeatureExtractor"):
            with slim.arg_scope(factory.resnet_arg_scope()):
                _, ends = factory.resnet_v1_50(
                    images, num_classes=None, is_training=True, global_pool=False,
                    store_non_strided_activations=True, scope="resnet_v1_50")
        return [next(x for name, x in ends.items() if name.endswith(f"block{i}"))
                for i in (2, 3, 4)]

    @staticmethod
    def conv(x, filters, kernel, scope, stride=1, activation=None, initializer=None, **more):
        slim = tf.contrib.slim
        make = slim.conv2d_transpose if more.pop("transposed", False) else slim.conv2d
        return make(x, filters, kernel, stride=stride, activation_fn=activation, scope=scope,
                    weights_initializer=initializer or slim.xavier_initializer(),
                    weights_regularizer=slim.l2_regularizer(1e-4), **more)

    def pyramid(self, *blocks):
        levels, above = [], None
        with tf.variable_scope("FeatureExtractor/resnet_v1_50/fpn"):
            for level, block in reversed(list(zip((3, 4, 5), blocks))):
                x = self.conv(block, DEPTH, 1, f"C{level}_reduced")
                above = x if above is None else x + self.enlarged(above, x, level + 1)
                levels.insert(0, self.conv(above, DEPTH, 3, f"P{level}"))
            levels.append(self.conv(blocks[-1], DEPTH, 3, "P6", stride=2))
            levels.append(self.conv(tf.nn.relu(levels[-1]), DEPTH, 3, "P7", stride=2))
        return levels

    def enlarged(self, x, fine, level):
        rows, columns = fine.shape.as_list()[1:3]
        if self.c["transposed"]:
            x = self.conv(x, DEPTH, 4, f"P{level}_upsampled", stride=2, transposed=True,
                          biases_initializer=tf.zeros_initializer())
        else:
            x = tf.repeat(tf.repeat(x, 2, 1), 2, 2)
        return x[:, :rows, :columns]

    def head(self, name, level, x):
        """The map boxes_k or classes_k."""
        tower, last, columns = {
            "boxes": ("BoxPredictionTower", "BoxPredictor", 4),
            "classes": ("ClassPredictionTower", "ClassPredictor",
                        self.c["classes"] + self.c["background"])}[name]
        normal = tf.random_normal_initializer(stddev=0.03)
        scope = f"{SCOPE}_{level - 1}" if self.c["separate"] else SCOPE
        with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
            for i in range(4):
                x = self.conv(x, DEPTH, 3, f"{tower}/conv2d_{i}", activation=tf.nn.relu,
                              initializer=normal)
            return self.conv(x, 9 * columns, 3, last, initializer=normal)


def make(factory, name):
    c = CASES[name]
    seed, moves, exact, single = tensorflow_nets.both(Graph, factory, c)
    golden.write(name, {
        "made_by": f"tf-object-detection 0.0.3, TensorFlow {tf.__version__}, "
                   f"numpy {np.__version__}, Python {platform.python_version()}",
        "net": c["net"], "options": c["options"], "batch": c["batch"], "height": c["size"],
        "width": c["size"], "channels": c["channels"], "classes": c["classes"], "seed": seed,
        "shift": c["shift"], "regularized": tfod_nets.Graph.regularized,
    }, moves, exact, single)


if __name__ == "__main__":
    tensorflow_nets.prepare()
    tf = tfod_nets.tf = tfod.load()
    from nets import resnet_v1
    for wanted in sys.argv[1:] or CASES:
        make(resnet_v1, wanted)
