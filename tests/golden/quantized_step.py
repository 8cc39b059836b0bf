"""Makes quantized_step.json for tests/net/quantized_net_test.c: a training step of a small net with
quantisation-aware training, and its evaluation.

    python3 tests/golden/quantized_step.py        (TensorFlow 2.12)

Rounding is TensorFlow's own operation with its own gradient, in float32, its only type. All else is
float64 and written here from the definitions of contrib.quantize: batch norm is folded with the
moving variance, the output is corrected to the batch's statistics, and ranges follow the values.
The seed is chosen so that no value lies near a kink or halfway between two steps, where float32
could round to the other side."""
import json
import os

import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
DECAY, EPSILON, BN_DECAY, CLASSES = 0.999, 1e-3, 0.9, 4
LAYERS = [
    {"name": "a", "layer": "conv2d", "filters": 4, "kernel": 3, "stride": 2, "bias": False},
    {"name": "a/BatchNorm", "layer": "batch_norm", "decay": BN_DECAY, "activation": "relu6"},
    {"name": "b", "layer": "depthwise_conv2d", "kernel": 3, "bias": False},
    {"name": "b/BatchNorm", "layer": "batch_norm", "decay": BN_DECAY, "activation": "relu6"},
    {"name": "c", "layer": "conv2d", "filters": 4, "kernel": 1, "bias": False},
    {"name": "c/BatchNorm", "layer": "batch_norm", "decay": BN_DECAY},
    {"name": "d", "layer": "add", "inputs": ["c/BatchNorm", "a/BatchNorm"]},
    {"name": "e", "layer": "conv2d", "filters": 5, "kernel": 1, "bias": False},
    {"name": "e/BatchNorm", "layer": "batch_norm", "decay": BN_DECAY, "inputs": ["e"]},
    {"name": "f", "layer": "relu"},
    {"name": "flat", "layer": "flatten"},
    {"name": "logits", "layer": "fully_connected", "units": CLASSES},
]
# The rounded tensors and their names in TensorFlow.
ACTS = [
    "a/act_quant",
    "b/act_quant",
    "c/conv_quant",
    "d/add_quant",
    "e/act_quant",
    "logits/act_quant",
]
WEIGHTS = {
    "a": "weights",
    "b": "depthwise_weights",
    "c": "weights",
    "e": "weights",
    "logits": "weights",
}


def add_norm(v, scope, k, r):
    """Adds the variables of a batch norm of k channels."""
    v[scope + "/beta"] = r.rand(k)
    v[scope + "/gamma"] = 0.5 + r.rand(k)
    v[scope + "/moving_mean"] = r.randn(k) * 0.2
    v[scope + "/moving_variance"] = 0.5 + r.rand(k)


def add_ranges(v, acts, signed, weights, r):
    """Adds ranges of values, as after 20 steps, and of weights. signed: ranges with negative
    values."""
    for name in acts:
        steps = 20
        for end, value in (("min", -0.2 if name in signed else 0), ("max", 2 + r.rand())):
            v[f"{name}/{name}/{end}/local_step"] = steps
            v[f"{name}/{name}/{end}/biased"] = value * (1 - DECAY**steps)
            v[f"{name}/{end}"] = value
    for layer in weights:
        v[layer + "/weights_quant/min"], v[layer + "/weights_quant/max"] = -0.8, 0.9


def as_floats(t):
    return np.asarray(t, np.float32).astype(np.float64)


def start(seed):
    """Variables and inputs as float32 numbers."""
    r = np.random.RandomState(seed)
    v = {"a/weights": r.randn(3, 3, 3, 4) * 0.4, "b/depthwise_weights": r.randn(3, 3, 4, 1) * 0.5,
         "c/weights": r.randn(1, 1, 4, 4) * 0.6, "e/weights": r.randn(1, 1, 4, 5) * 0.6,
         "logits/weights": r.randn(5 * 9, CLASSES) * 0.3, "logits/biases": r.randn(CLASSES) * 0.2}
    for layer, k in (("a", 4), ("b", 4), ("c", 4), ("e", 5)):
        add_norm(v, layer + "/BatchNorm", k, r)
    add_ranges(v, ACTS, [a for a in ACTS if a[0] in "cdl"], WEIGHTS, r)
    x = r.randn(3, 6, 6, 3)
    return {k: as_floats(t) for k, t in v.items()}, as_floats(x), r.randint(0, CLASSES, 3)


class Step:
    def __init__(self, v, train):
        self.v = {k: tf.constant(t) for k, t in v.items()}
        self.train, self.after, self.margin = train, {}, 1.0

    def keep_away(self, distance):
        self.margin = min(self.margin, float(tf.reduce_min(distance)))

    def rounded(self, x, low, high, narrow):
        """Rounds x with TensorFlow's operation. The ends of the range get no gradient."""
        low, high = (tf.cast(tf.stop_gradient(t), tf.float32) for t in (low, high))
        levels = 254.0 if narrow else 255.0
        step = (high - low) / levels
        zero = tf.round(-low / step)
        at = tf.cast(tf.stop_gradient(x), tf.float32) / step
        inside = (at > -zero - 0.5) & (at < levels - zero + 0.5)
        self.keep_away(tf.where(inside, tf.abs(at - tf.floor(at) - 0.5), 1.0))
        for end in (-zero, levels - zero): # beyond the ends the gradient is 0; 0 is always inside
            self.keep_away(tf.where(at == 0, 1.0, tf.abs(at - end)))
        self.keep_away(tf.abs(-low / step - tf.floor(-low / step) - 0.5))
        y = tf.quantization.fake_quant_with_min_max_vars(
            tf.cast(x, tf.float32), low, high, 8, narrow
        )
        return tf.cast(y, tf.float64)

    def act(self, name, x):
        low, high = self.v[name + "/min"], self.v[name + "/max"]
        if self.train:
            ends = {"min": tf.minimum(tf.reduce_min(x), 0), "max": tf.maximum(tf.reduce_max(x), 0)}
            new = {}
            for end, value in ends.items():
                long = f"{name}/{name}/{end}"
                biased = self.v[long + "/biased"] * DECAY + value * (1 - DECAY)
                steps = self.v[long + "/local_step"] + 1
                new[end] = biased / (1 - DECAY**steps)
                self.after |= {
                    long + "/biased": biased,
                    long + "/local_step": steps,
                    f"{name}/{end}": new[end],
                }
            low, high = new["min"], new["max"]
        return self.rounded(x, low, high, False)

    def weights(self, layer, w):
        low, high = self.v[layer + "/weights_quant/min"], self.v[layer + "/weights_quant/max"]
        if self.train:
            low, high = tf.minimum(tf.reduce_min(w), 0), tf.maximum(tf.reduce_max(w), 0)
            self.after |= {layer + "/weights_quant/min": low, layer + "/weights_quant/max": high}
        return self.rounded(w, low, high, True)

    def convolution(self, layer, x, conv, weights=None, scope=None):
        """weights: name of the variable if another layer has it; scope: of the batch norm."""
        weights = weights or f"{layer}/{WEIGHTS[layer]}"
        scope = scope or layer + "/BatchNorm"
        norm = {
            k: self.v[f"{scope}/{k}"] for k in ("beta", "gamma", "moving_mean", "moving_variance")
        }
        w = self.v[weights]
        shape = w.shape[2:] if "depthwise" in weights else [w.shape[3]]
        moving = tf.sqrt(norm["moving_variance"] + EPSILON)
        folded = self.weights(layer, w * tf.reshape(norm["gamma"] / moving, shape))
        if not self.train:
            return conv(x, folded) + norm["beta"] - norm["moving_mean"] * norm["gamma"] / moving
        plain = conv(x, w)
        mean, variance = tf.nn.moments(plain, [0, 1, 2])
        n = float(np.prod(plain.shape[:3]))
        for k, value in (("moving_mean", mean), ("moving_variance", variance * n / (n - 1))):
            self.after[f"{scope}/{k}"] = norm[k] * BN_DECAY + value * (1 - BN_DECAY)
        batch = tf.sqrt(variance + EPSILON)
        return conv(x, folded) * (moving / batch) + norm["beta"] - mean * norm["gamma"] / batch

    def relu(self, x, most=None):
        self.keep_away(tf.abs(x) * 10)
        if most:
            self.keep_away(tf.abs(x - most) * 10)
        return tf.nn.relu6(x) if most else tf.nn.relu(x)

    def logits(self, images):
        a = self.convolution("a", images, lambda x, w: tf.nn.conv2d(x, w, 2, "SAME"))
        a = self.act("a/act_quant", self.relu(a, 6))
        b = self.convolution(
            "b", a, lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME")
        )
        b = self.act("b/act_quant", self.relu(b, 6))
        c = self.convolution("c", b, lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"))
        d = self.act("d/add_quant", self.act("c/conv_quant", c) + a)
        e = self.convolution("e", d, lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"))
        f = self.act("e/act_quant", self.relu(e))
        w = self.weights("logits", self.v["logits/weights"])
        return self.act("logits/act_quant", tf.reshape(f, [3, -1]) @ w + self.v["logits/biases"])


def is_trained(name):
    return name.endswith(("weights", "biases", "beta", "gamma"))


def run(seed, begin, kind):
    v, images, labels = begin(seed)
    step = kind(v, True)
    trained = {k: t for k, t in step.v.items() if is_trained(k)}
    with tf.GradientTape() as tape:
        tape.watch(list(trained.values()))
        logits = step.logits(tf.constant(images))
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    gradients = dict(zip(trained, tape.gradient(loss, list(trained.values()))))
    evaluated = kind(v, False)
    out = evaluated.logits(tf.constant(images))
    return min(step.margin, evaluated.margin), {
        "images": images, "labels": labels, "variables": v, "logits": logits, "loss": loss,
        "gradients": gradients, "after": step.after, "evaluated": out}


def check_average():
    """Checks that the moving range equals TensorFlow's assign_moving_average with zero_debias."""
    from tensorflow.python.training import moving_averages
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [])
        m = tf.compat.v1.get_variable(
            "m", [], initializer=tf.constant_initializer(-6.0), use_resource=False
        )
        assign = moving_averages.assign_moving_average(m, x, DECAY)
        with tf.compat.v1.Session() as s:
            s.run(tf.compat.v1.global_variables_initializer())
            biased = 0
            for i, value in enumerate((-1., -2., 0.5, -1.5)):
                biased = biased * DECAY + value * (1 - DECAY)
                assert abs(s.run(assign, {x: value}) - biased / (1 - DECAY**(i + 1))) < 1e-4


def short(t):
    if isinstance(t, dict):
        return {k: short(u) for k, u in t.items()}
    return [float(f"{x:.9g}") for x in np.asarray(t, np.float64).reshape(-1)]


def write(name, layers, begin, kind, seeds):
    """Writes the file of this name with the best of these seeds."""
    best, seed = max((run(s, begin, kind)[0], s) for s in range(seeds))
    margin, out = run(seed, begin, kind)
    print(f"seed {seed}, {margin:.1e} of a step away from the nearest middle")
    head = {
        "made_by": f"TensorFlow {tf.__version__}, numpy {np.__version__}",
        "seed": seed,
        "layers": layers,
    }
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    with open(path, "w") as f:
        f.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(t if k in head else short(t))}"
                                   for k, t in {**head, **out}.items()) + "\n}\n")
    print(path, os.path.getsize(path), "bytes")


if __name__ == "__main__":
    check_average()
    write("quantized_step.json", LAYERS, start, Step, 300)
