"""Any net of classifiers and segmentation as a PyTorch module, made of the list of its layers with
torch.nn's own layers and functions, as its users would write it: activations work in place behind
batch norm and convolutions, and batch norm adds its residual in place. Where TensorFlow pads one
pixel more on one side, both sides are padded equally if the shape allows it, which leaves the work
the same."""
import torch
from torch import nn
from torch.nn import functional as F

from layer_list import AUXILIARY_WEIGHT, heads_of, layers_of

ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: F.relu(x, inplace=True),
    "relu6": lambda x: F.relu6(x, inplace=True),
    "hard_swish": F.hardswish,
}


class Conv(nn.Module):
    def __init__(self, layer):
        super().__init__()
        same = layer.equal_padding()
        (_, top, bottom), (_, left, right) = layer.span(0), layer.span(1)
        depthwise = layer.kind == "depthwise_conv2d"
        self.pad = None if same else (left, right, top, bottom)
        self.conv = nn.Conv2d(
            layer.x[2], layer.shape[2], pair(layer.kernel), pair(layer.stride), same or 0,
            pair(layer.dilation), layer.x[2] if depthwise else layer.groups, bias=layer.bias)
        self.activation = ACTIVATIONS[layer.activation]

    def forward(self, x):
        return self.activation(self.conv(F.pad(x, self.pad) if self.pad else x))


class Norm(nn.Module):
    """Batch norm; a second input is added before the activation."""

    def __init__(self, layer):
        super().__init__()
        self.norm = nn.BatchNorm2d(layer.x[2], eps=layer.epsilon, momentum=1 - layer.decay)
        if not layer.scale:
            self.norm.register_parameter("weight", None)
        if not layer.center:
            self.norm.register_parameter("bias", None)
        self.activation = ACTIVATIONS[layer.activation]

    def forward(self, x, residual=None):
        y = self.norm(x)
        if residual is not None:
            y += residual
        return self.activation(y)


class Linear(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.linear = nn.Linear(layer.x[0], layer.units, bias=layer.bias)
        self.activation = ACTIVATIONS[layer.activation]

    def forward(self, x):
        return self.activation(self.linear(x))


class Call(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.forward = function


def pair(numbers):
    return numbers * 2 if len(numbers) == 1 else numbers


def pool(layer):
    kernel, stride = pair(layer.kernel), pair(layer.stride)
    padding = layer.equal_padding()
    if padding is None:
        raise ValueError(f"{layer.name}: torch_net.py has no such padding of a pool")
    if kernel == [1, 1]:  # takes every second pixel
        return lambda x: x[:, :, :: stride[0], :: stride[1]]
    if layer.kind == "max_pool":
        return lambda x: F.max_pool2d(x, kernel, stride, padding, pair(layer.dilation))
    return lambda x: F.avg_pool2d(x, kernel, stride, padding, count_include_pad=False)


def added(layer):
    def add(x, *others):
        for other in others:
            x = x + other
        return ACTIVATIONS[layer.activation](x)

    return add


CALLS = {
    "max_pool": pool,
    "avg_pool": pool,
    "global_pool": lambda layer: lambda x: x.mean((2, 3), keepdim=True),
    "add": added,
    "multiply": lambda layer: lambda x, y: x * y,
    "concat": lambda layer: lambda *x: torch.cat(x, 1),
    "flatten": lambda layer: lambda x: x.flatten(1),
    "relu": lambda layer: F.relu,
    "hard_sigmoid": lambda layer: F.hardsigmoid,
    "hard_swish": lambda layer: F.hardswish,
    "resize": lambda layer: lambda x: F.interpolate(
        x, tuple(layer.size), mode="bilinear", align_corners=True),
    "slice": lambda layer: lambda x: x[:, :, layer.begin[1]:, layer.begin[2]:],
}


def module_of(layer):
    if layer.kind in ("conv2d", "depthwise_conv2d"):
        return Conv(layer)
    if layer.kind == "batch_norm":
        return Norm(layer)
    if layer.kind == "fully_connected":
        return Linear(layer)
    if layer.kind == "dropout":
        return nn.Dropout(1 - layer.keep)
    return Call(CALLS[layer.kind](layer))


class Net(nn.Module):
    """forward() returns the logits: of auxiliary heads, then of the net."""

    def __init__(self, row, entries):
        super().__init__()
        layers = layers_of(entries, row.channels, row.size)
        self.row, self.heads = row, heads_of(layers)
        self.parts = nn.ModuleList(module_of(layer) for layer in layers)
        self.inputs = [layer.inputs for layer in layers]
        last = {k: layer.index for layer in layers for k in layer.inputs}
        self.done = [[k for k in last if last[k] == i and k >= 0] for i in range(len(layers))]
        self.pixels = row.config.get("task") == "segmentation"

    def forward(self, images):
        values = {-1: images}
        for i, part in enumerate(self.parts):
            values[i] = part(*(values[k] for k in self.inputs[i]))
            for k in self.done[i]:
                del values[k]
        logits = [values[k] for k in self.heads]
        if self.pixels:
            size = images.shape[-2:]
            logits = [F.interpolate(x, size, mode="bilinear", align_corners=True) for x in logits]
        return logits

    def truths(self, batch):
        size = (self.row.size, self.row.size) if self.pixels else ()
        return (torch.randint(self.row.classes, (batch, *size)),)

    @staticmethod
    def loss(logits, labels):
        loss = F.cross_entropy(logits[-1], labels, ignore_index=255 if labels.dim() > 1 else -100)
        for x in logits[:-1]:
            loss = loss + AUXILIARY_WEIGHT * F.cross_entropy(x, labels)
        return loss
