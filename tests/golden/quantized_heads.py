"""Makes quantized_heads.json for tests/net/quantized_net_test.c: a training step of a detector with
two levels and quantisation-aware training, and its evaluation.

    python3 tests/golden/quantized_heads.py        (TensorFlow 2.12)

Two maps are joined as in a feature pyramid. A tower and a box head read both with the same weights;
each map has its own batch norm, so its own folded weights, and its own ranges. The rules are those
of quantized_step.py. The loss is the cross entropy of all box codes of a picture, as if each were a
class: it gives every code a gradient."""
import numpy as np
import tensorflow as tf

from quantized_step import BN_DECAY, Step, add_norm, add_ranges, as_floats, write

MAPS = ("1", "2")
NORM = {"layer": "batch_norm", "decay": BN_DECAY}
LAYERS = [
    {"name": "a", "layer": "conv2d", "filters": 3, "stride": 2, "bias": False},
    {"name": "a/BatchNorm", **NORM, "activation": "relu6"},
    {"name": "b", "layer": "conv2d", "filters": 4, "stride": 2, "bias": False},
    {"name": "b/BatchNorm", **NORM, "activation": "relu6"},
    {"name": "p2", "layer": "conv2d", "filters": 3, "kernel": 1},
    {"name": "lateral", "layer": "conv2d", "filters": 3, "kernel": 1, "inputs": ["a/BatchNorm"]},
    {"name": "up", "layer": "resize", "size": 4, "method": "nearest", "coordinates": "asymmetric",
     "rounding": "floor", "inputs": ["p2"]},
    {"name": "p1", "layer": "add", "inputs": ["up", "lateral"]},
    {"name": "tower_1", "layer": "conv2d", "filters": 3, "bias": False, "inputs": ["p1"]},
    {"name": "norm_1", **NORM, "activation": "relu6"},
    {"name": "tower_2", "layer": "conv2d", "filters": 3, "bias": False, "inputs": ["p2"],
     "share": "tower_1"},
    {"name": "norm_2", **NORM, "activation": "relu6"},
    {"name": "boxes_1", "layer": "conv2d", "filters": 4, "inputs": ["norm_1"]},
    {"name": "boxes_2", "layer": "conv2d", "filters": 4, "inputs": ["norm_2"], "share": "boxes_1"},
    {"name": "flat_1", "layer": "flatten", "inputs": ["boxes_1"]},
    {"name": "flat_2", "layer": "flatten", "inputs": ["boxes_2"]},
    {"name": "logits", "layer": "concat", "inputs": ["flat_1", "flat_2"]},
]
RELUS = ["a/act_quant", "b/act_quant", "tower_1/act_quant", "tower_2/act_quant"]
SIGNED = [
    "p2/act_quant", "lateral/conv_quant", "p1/add_quant", "boxes_1/act_quant", "boxes_2/act_quant"
]
CODES = 4 * (16 + 4)


def start(seed):
    """Variables and inputs as float32 numbers."""
    r = np.random.RandomState(seed)
    v = {"a/weights": r.randn(3, 3, 3, 3) * 0.4, "b/weights": r.randn(3, 3, 3, 4) * 0.4,
         "p2/weights": r.randn(1, 1, 4, 3) * 0.5, "p2/biases": r.randn(3) * 0.2,
         "lateral/weights": r.randn(1, 1, 3, 3) * 0.5, "lateral/biases": r.randn(3) * 0.2,
         "tower_1/weights": r.randn(3, 3, 3, 3) * 0.4,
         "boxes_1/weights": r.randn(3, 3, 3, 4) * 0.3, "boxes_1/biases": r.randn(4) * 0.2}
    for scope, k in (("a/BatchNorm", 3), ("b/BatchNorm", 4), ("norm_1", 3), ("norm_2", 3)):
        add_norm(v, scope, k, r)
    add_ranges(v, RELUS + SIGNED, SIGNED, ["a", "b", "p2", "lateral"] +
               [f"{layer}_{k}" for layer in ("tower", "boxes") for k in MAPS], r)
    x = r.randn(3, 8, 8, 3)
    return {k: as_floats(t) for k, t in v.items()}, as_floats(x), r.randint(0, CODES, 3)


class Heads(Step):
    def plain(self, layer, x, scope=None):
        """A convolution with biases."""
        w = self.weights(layer, self.v[(scope or layer) + "/weights"])
        return tf.nn.conv2d(x, w, 1, "SAME") + self.v[(scope or layer) + "/biases"]

    def normed(self, layer, x, stride, weights, scope):
        y = self.convolution(layer, x, lambda x, w: tf.nn.conv2d(x, w, stride, "SAME"), weights,
                             scope)
        return self.act(layer + "/act_quant", self.relu(y, 6))

    def logits(self, images):
        a = self.normed("a", images, 2, "a/weights", "a/BatchNorm")
        b = self.normed("b", a, 2, "b/weights", "b/BatchNorm")
        p2 = self.act("p2/act_quant", self.plain("p2", b))
        up = tf.repeat(tf.repeat(p2, 2, 1), 2, 2)
        p1 = self.act("p1/add_quant", up + self.act("lateral/conv_quant", self.plain("lateral", a)))
        codes = []
        for k, x in zip(MAPS, (p1, p2)):
            x = self.normed("tower_" + k, x, 1, "tower_1/weights", "norm_" + k)
            x = self.act(f"boxes_{k}/act_quant", self.plain("boxes_" + k, x, "boxes_1"))
            codes.append(tf.reshape(x, [3, -1]))
        return tf.concat(codes, 1)


if __name__ == "__main__":
    write("quantized_heads.json", LAYERS, start, Heads, 1500)
