"""Any net of classifiers as a function of JAX, made of the list of its layers (NHWC), with a
training step that XLA compiles as a whole: loss, gradients, moving averages and momentum."""
import jax
import jax.numpy as jnp
from jax import lax

from layer_list import AUXILIARY_WEIGHT, heads_of, layers_of

ORDER = ("NHWC", "HWIO", "NHWC")
ACTIVATIONS = {
    "none": lambda x: x,
    "relu": jax.nn.relu,
    "relu6": jax.nn.relu6,
    "hard_swish": jax.nn.hard_swish,
}


def pair(numbers):
    return tuple(numbers) * (2 if len(numbers) == 1 else 1)


def padding(layer):
    return [layer.span(0)[1:], layer.span(1)[1:]]


def conv(layer, w, x, **_):
    depthwise = layer.kind == "depthwise_conv2d"
    y = lax.conv_general_dilated(
        x, w["weights"], pair(layer.stride), padding(layer), rhs_dilation=pair(layer.dilation),
        dimension_numbers=ORDER, feature_group_count=layer.x[2] if depthwise else layer.groups)
    return ACTIVATIONS[layer.activation](y + w["bias"] if layer.bias else y)


def norm(layer, w, x, *residual, averages):
    mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
    keep = layer.decay
    for name, value in (("mean", mean), ("var", var)):
        key = f"{layer.index}.{name}"
        averages[key] = keep * averages[key] + (1 - keep) * lax.stop_gradient(value)
    y = (x - mean) * (lax.rsqrt(var + layer.epsilon) * w.get("gamma", 1)) + w.get("beta", 0)
    return ACTIVATIONS[layer.activation](y + residual[0] if residual else y)


def linear(layer, w, x, **_):
    y = x @ w["weights"]
    return ACTIVATIONS[layer.activation](y + w["bias"] if layer.bias else y)


def windows(layer, x, start, combine):
    return lax.reduce_window(x, start, combine, (1, *pair(layer.kernel), 1),
                             (1, *pair(layer.stride), 1), [(0, 0), *padding(layer), (0, 0)])


def average(layer, w, x, **_):
    ones = jnp.ones((1, *x.shape[1:3], 1))
    return windows(layer, x, 0.0, lax.add) / windows(layer, ones, 0.0, lax.add)


def dropout(layer, w, x, key, **_):
    kept = jax.random.bernoulli(jax.random.fold_in(key, layer.index), layer.keep, x.shape)
    return jnp.where(kept, x / layer.keep, 0)


FUNCTIONS = {
    "conv2d": conv,
    "depthwise_conv2d": conv,
    "batch_norm": norm,
    "fully_connected": linear,
    "max_pool": lambda layer, w, x, **_: windows(layer, x, -jnp.inf, lax.max),
    "avg_pool": average,
    "dropout": dropout,
    "global_pool": lambda layer, w, x, **_: x.mean((1, 2), keepdims=True),
    "add": lambda layer, w, *x, **_: ACTIVATIONS[layer.activation](sum(x[1:], x[0])),
    "flatten": lambda layer, w, x, **_: x.reshape(len(x), -1),
}


def weights_of(layer, key):
    """Returns the trained variables of a layer."""
    c = layer.x[-1]
    if layer.kind == "batch_norm":
        return {**({"gamma": jnp.ones(c)} if layer.scale else {}),
                **({"beta": jnp.zeros(c)} if layer.center else {})}
    if layer.kind not in ("conv2d", "depthwise_conv2d", "fully_connected"):
        return {}
    groups = c if layer.kind == "depthwise_conv2d" else getattr(layer, "groups", 1)
    shape = ((c, layer.units) if layer.kind == "fully_connected" else
             (*pair(layer.kernel), c // groups, layer.shape[2]))
    fan_in = 1
    for n in shape[:-1]:
        fan_in *= n
    w = {"weights": jax.random.normal(key, shape) * (2 / fan_in) ** 0.5}
    return {**w, "bias": jnp.zeros(shape[-1])} if layer.bias else w


class Net:
    def __init__(self, row, entries):
        self.layers = layers_of(entries, row.channels, row.size)
        for layer in self.layers:
            if layer.kind not in FUNCTIONS:
                raise ValueError(f"{layer.name}: layer {layer.kind} is not in jax_net.py")
        self.heads = heads_of(self.layers)

    def variables(self, key):
        """Returns trained variables and moving averages."""
        w = {str(v.index): weights_of(v, jax.random.fold_in(key, v.index)) for v in self.layers}
        norms = [v for v in self.layers if v.kind == "batch_norm"]
        averages = {f"{v.index}.mean": jnp.zeros(v.x[2]) for v in norms}
        averages.update({f"{v.index}.var": jnp.ones(v.x[2]) for v in norms})
        return {k: v for k, v in w.items() if v}, averages

    def loss(self, w, averages, images, labels, key):
        """Returns the loss and the new moving averages."""
        values, averages = {-1: images}, dict(averages)
        for v in self.layers:
            x = [values[k] for k in v.inputs]
            context = {"averages": averages} if v.kind == "batch_norm" else {"key": key}
            values[v.index] = FUNCTIONS[v.kind](v, w.get(str(v.index), {}), *x, **context)
        loss = 0
        for k in self.heads:
            chosen = jnp.take_along_axis(jax.nn.log_softmax(values[k]), labels[:, None], 1)
            loss -= chosen.mean() * (1 if k == self.heads[-1] else AUXILIARY_WEIGHT)
        return loss, averages
