#!/usr/bin/env python3
"""Checks nets/ssd_mobilenet_v3_large.json and _small.json, which tfod_nets.py made with its own
extractor, against a second definition: torchvision's MobileNet v3 with its reduced tail, extra
layers and predictors of PyTorch, in double precision.

    python3 tests/golden/torch_mobilenet_v3.py    # torch 2.15, torchvision 0.29

The script draws the weights, pictures and targets of a file by name, takes the training step and
compares every tensor: heads, anchors, loss, gradients and moving averages. It writes nothing."""
import json
import math
import os
import sys

import numpy as np
import torch
import torchvision
from torch import nn
from torch.nn import functional as F

from philox import Stream, signs

CLASSES, BACKGROUND = 3, 1
BOUND = 1e-6  # of a tensor's norm; the file's products have seven digits
DEPTHS = [512, 256, 256, 128]
RATIOS = [1.0, 2.0, 0.5, 3.0, 0.3333]


# ---- the net -------------------------------------------------------------------------------

class Same(nn.Conv2d):
    """A convolution with TensorFlow's padding SAME."""

    def forward(self, x):
        pads = []
        for side, k, s in zip(x.shape[:1:-1], self.kernel_size[::-1], self.stride[::-1]):
            total = max((-(-side // s) - 1) * s + k - side, 0)
            pads += [total // 2, total - total // 2]
        return F.conv2d(F.pad(x, pads), self.weight, self.bias, self.stride, 0, 1, self.groups)


def unit(i, o, kernel=1, stride=1, groups=1):
    """Convolution, batch norm and relu6."""
    return nn.Sequential(Same(i, o, kernel, stride, groups=groups, bias=False), nn.BatchNorm2d(o),
                         nn.ReLU6())


def with_same_padding(module):
    """Replaces the convolutions within by those of class Same."""
    for name, child in module.named_children():
        if isinstance(child, nn.Conv2d):
            setattr(module, name, Same(child.in_channels, child.out_channels, child.kernel_size,
                                       child.stride, groups=child.groups,
                                       bias=child.bias is not None))
        else:
            with_same_padding(child)


class Detector(nn.Module):
    def __init__(self, size):
        super().__init__()
        make = getattr(torchvision.models, "mobilenet_v3_" + size)
        self.features = make(weights=None, reduced_tail=True).features
        with_same_padding(self.features)
        # The first map is the expansion of the block that halves the size for the fifth time.
        halving = [i for i, b in enumerate(self.features)
                   if any(c.stride == (2, 2) for c in b.modules() if isinstance(c, nn.Conv2d))]
        self.first = halving[-1]
        width = [self.features[self.first].block[0].out_channels, self.features[-1].out_channels]
        self.extras = nn.ModuleList()
        for depth in DEPTHS:
            half = depth // 2
            self.extras.append(nn.Sequential(unit(width[-1], half), unit(half, half, 3, 2, half),
                                             unit(half, depth)))
            width.append(depth)
        self.predictors = nn.ModuleList()
        for k, w in enumerate(width):
            cell = 6 if k else 3
            self.predictors.append(nn.ModuleDict({
                name: nn.Sequential(unit(w, w, 3, 1, w), Same(w, cell * columns, 1))
                for name, columns in (("boxes", 4), ("classes", CLASSES + BACKGROUND))}))

    def forward(self, x):
        maps = []
        noted = self.features[self.first].block[0].register_forward_hook(
            lambda module, inputs, output: maps.append(output))
        maps.append(self.features(x))
        noted.remove()
        for extra in self.extras:
            maps.append(extra(maps[-1]))
        return {f"{name}_{k}": p[name](x).permute(0, 2, 3, 1)
                for k, (x, p) in enumerate(zip(maps, self.predictors), 1) for name in p}


# ---- TensorFlow's names --------------------------------------------------------------------

def parts_of_block(block):
    """Pairs of a scope and a unit or convolution of an inverted residual."""
    units = [m for m in block.block if not hasattr(m, "fc1")]
    gates = [m for m in block.block if hasattr(m, "fc1")]
    yield from zip(["expand", "depthwise", "project"][3 - len(units):], units)
    for gate in gates:
        yield "squeeze_excite/Conv", [gate.fc1]
        yield "squeeze_excite/Conv_1", [gate.fc2]


def scopes(net):
    """Pairs of TensorFlow's scope and the list of a convolution and its batch norm, if any."""
    base, features = "FeatureExtractor/MobilenetV3/", list(net.features)
    yield base + "Conv", features[0]
    for i, block in enumerate(features[1:-1]):
        for name, part in parts_of_block(block):
            yield f"{base}expanded_conv{f'_{i}' if i else ''}/{name}", part
    yield base + "Conv_1", features[-1]
    last = f"{base}layer_{len(features)}"
    for i, (depth, extra) in enumerate(zip(DEPTHS, net.extras), 2):
        yield f"{last}_1_Conv2d_{i}_1x1_{depth // 2}", extra[0]
        yield f"{last}_2_Conv2d_{i}_3x3_s2_{depth}_depthwise", extra[1]
        yield f"{last}_2_Conv2d_{i}_3x3_s2_{depth}", extra[2]
    for k, p in enumerate(net.predictors):
        for key, name in (("boxes", "BoxEncodingPredictor"), ("classes", "ClassPredictor")):
            yield f"BoxPredictor_{k}/{name}_depthwise", p[key][0]
            yield f"BoxPredictor_{k}/{name}", [p[key][1]]


def tensors(net):
    """TensorFlow's name -> tensor of parameters and moving averages."""
    out = {}
    for scope, part in scopes(net):
        conv, norms = part[0], [m for m in part if isinstance(m, nn.BatchNorm2d)]
        out[f"{scope}/{'depthwise_' if conv.groups > 1 else ''}weights"] = conv.weight
        if conv.bias is not None:
            out[f"{scope}/biases"] = conv.bias
        for m in norms:
            out.update({f"{scope}/BatchNorm/gamma": m.weight, f"{scope}/BatchNorm/beta": m.bias,
                        f"{scope}/BatchNorm/moving_mean": m.running_mean,
                        f"{scope}/BatchNorm/moving_variance": m.running_var})
    return out


def as_tensorflow(t):
    """Kernels are [height, width, in, out], of depthwise convolutions [height, width, out, 1]."""
    return (t.permute(2, 3, 1, 0) if t.dim() == 4 else t).detach().numpy().ravel()


# ---- a step --------------------------------------------------------------------------------

def drawn(golden, name, shape):
    """The values of a variable: see initial() in tensorflow_nets.py."""
    seed, count = golden["seed"], math.prod(shape)
    u = Stream(seed, "golden/" + name).uniform(count)
    if name.endswith("weights"):
        values = Stream(seed, name).truncated(count) * float(np.float32(0.03))
    elif name.endswith("/gamma"):
        values = 0.5 + 0.5 * u
    elif name.endswith("/biases"):
        values = 0.2 * u - 0.1
    else:
        c = np.arange(count)
        scale = Stream(seed, "golden/" + name[:-len("beta")] + "gamma").uniform(count)
        beta = np.where(c % 5 == 4, -1, 1) * golden["shift"] * (0.9 + 0.2 * u)
        values = beta * (0.5 + 0.5 * scale) + np.where(c % 5 == 3, 6, 0)
    moves = golden["moves"].get(name, [])
    for channel, thousandths in zip(moves[::2], moves[1::2]):
        values[channel] += 1e-3 * thousandths
    values = values.astype(np.float32).astype(np.float64)
    if len(shape) < 4:
        return torch.from_numpy(values)
    o, i, h, w = shape
    return torch.from_numpy(values.reshape(h, w, i, o) if i > 1 or o == 1 else
                            values.reshape(h, w, o, 1).transpose(0, 1, 3, 2)).permute(3, 2, 0, 1)


def numbers(golden, name, shape):
    """Values of -1..1 for pictures and targets."""
    u = Stream(golden["seed"], "golden/" + name).uniform(math.prod(shape))
    return torch.from_numpy((2 * u - 1).astype(np.float32).astype(np.float64).reshape(shape))


def anchors(maps):
    """ymin, xmin, ymax, xmax of SSD's boxes for maps of this many rows and columns."""
    scales = [0.2 + 0.75 * i / (len(maps) - 1) for i in range(len(maps))] + [1.0]
    out = []
    for k, (rows, columns) in enumerate(maps):
        cell = [(scales[k], r) for r in RATIOS] + [(math.sqrt(scales[k] * scales[k + 1]), 1.0)]
        cell = cell if k else [(0.1, 1.0), (scales[0], 2.0), (scales[0], 0.5)]
        for y, x in np.ndindex(rows, columns):
            for scale, ratio in cell:
                h, w = scale / math.sqrt(ratio) / 2, scale * math.sqrt(ratio) / 2
                cy, cx = (y + 0.5) / rows, (x + 0.5) / columns
                out += [cy - h, cx - w, cy + h, cx + w]
    return np.array(out)


def step(golden, net):
    """name -> flat array of every tensor of the file."""
    n, side = golden["batch"], golden["height"]
    rate = 1 - golden["options"]["hyperparams"]["batch_norm_decay"]
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.eps, m.momentum = float(np.float32(0.001)), rate
    variables = tensors(net)
    with torch.no_grad():
        for name, t in variables.items():
            if "moving" not in name:
                t.copy_(drawn(golden, name, tuple(t.shape)))
    heads = net(numbers(golden, "images", (n, side, side, 3)).permute(0, 3, 1, 2))
    loss = sum(F.mse_loss(x, numbers(golden, "target_" + k, tuple(x.shape)))
               for k, x in heads.items())
    loss.backward()
    out = {k: x.detach().numpy().ravel() for k, x in heads.items()}
    out["anchors"] = anchors([x.shape[1:3] for k, x in heads.items() if k.startswith("boxes")])
    out["loss"] = np.array([loss.item()])
    out.update({name: as_tensorflow(t if "moving" in name else t.grad)
                for name, t in variables.items()})
    return out


def check(size):
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "nets", f"ssd_mobilenet_v3_{size}.json")) as f:
        golden = json.load(f)
    torch.manual_seed(0)
    got = step(golden, Detector(size).double().train())
    if set(got) != set(golden["tensors"]):
        sys.exit(f"{size}: other tensors: {sorted(set(got) ^ set(golden['tensors']))[:4]}")
    worst, where = 0, ""
    for name, (count, norm, _, *products) in golden["tensors"].items():
        if len(got[name]) != count:
            sys.exit(f"{size}: {name} has {len(got[name])} values instead of {count}")
        off = got[name] @ signs(golden["seed"], "golden/" + name, 0, count) - products
        off = float(np.sqrt(np.mean(off**2))) / norm
        if off > worst:
            worst, where = off, name
    print(f"{size}: {len(got)} tensors, off by at most {worst:.1e} of the norm ({where})")
    return worst <= BOUND


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(not all([check("large"), check("small")]))
