"""More nets once more, in PyTorch: as nets.py, for the nets of its table at the end."""
import math

import torch
import torch.nn.functional as F

from nets import batch_norm, conv, depthwise, f32, fc, flatten, max_pool, same


# ---- convolutions with fully connected ends ------------------------------------------------

def ends(v, s, x, classes, units, kernel, stddev):
    x = F.relu(conv(v, s + "fc6", x, units, kernel, stddev, bias=True, pad="valid"))
    x = F.relu(conv(v, s + "fc7", x, 4096, 1, stddev, bias=True))
    return conv(v, s + "fc8", x, classes, 1, stddev, bias=True).flatten(1)


def alexnet_v2(v, x, classes):
    s = "alexnet_v2/"
    x = F.relu(conv(v, s + "conv1", x, 64, 11, "xavier", 4, True, "valid"))
    x = F.relu(conv(v, s + "conv2", max_pool(v, x, 3, 2), 192, 5, "xavier", bias=True))
    x = F.relu(conv(v, s + "conv3", max_pool(v, x, 3, 2), 384, 3, "xavier", bias=True))
    x = F.relu(conv(v, s + "conv4", x, 384, 3, "xavier", bias=True))
    x = F.relu(conv(v, s + "conv5", x, 256, 3, "xavier", bias=True))
    return ends(v, s, max_pool(v, x, 3, 2), classes, 4096, 5, f32(0.005))


# ---- Inception -----------------------------------------------------------------------------

class Inception:
    """Convolutions of one net; their kernels are the last part of their names unless given."""

    def __init__(self, v, scope, stddev):
        self.v, self.scope, self.stddev = v, scope + "/", stddev

    def conv(self, name, x, filters, kernel=None, stride=1, pad="same", stddev=None):
        name = self.scope + name
        kernel = kernel or tuple(int(n) for n in name.rsplit("_", 1)[1].split("x"))
        x = conv(self.v, name, x, filters, kernel, stddev or self.stddev, stride, pad=pad)
        return F.relu(batch_norm(self.v, name, x, 0.001, 0.9997, (0,), scale=False))

    def chain(self, scope, x, *layers):
        """layers: (name, filters[, named arguments])."""
        for name, filters, *more in layers:
            x = self.conv(f"{scope}/{name}", x, filters, **(more[0] if more else {}))
        return x

    def max(self, x, stride=1, pad="same"):
        if pad == "same":
            x = same(x, 3, stride, float("-inf"))
        return max_pool(self.v, x, 3, stride)

    def average(self, x):
        """3x3, SAME: only what lies inside counts."""
        ones = F.avg_pool2d(F.pad(torch.ones_like(x[:1, :1]), [1] * 4), 3, 1)
        return F.avg_pool2d(F.pad(x, [1] * 4), 3, 1) / ones


V2 = {"stride": 2, "pad": "valid"}


def inception_v1(v, x, classes):
    n = Inception(v, "InceptionV1", f32(0.01))
    x = n.conv("Conv2d_1a_7x7", x, 64, stride=2)
    x = n.conv("Conv2d_2b_1x1", n.max(x, 2), 64)
    x = n.max(n.conv("Conv2d_2c_3x3", x, 192), 2)
    blocks = [("3b", 64, 96, 128, 16, 32, 32), ("3c", 128, 128, 192, 32, 96, 64), None,
              ("4b", 192, 96, 208, 16, 48, 64), ("4c", 160, 112, 224, 24, 64, 64),
              ("4d", 128, 128, 256, 24, 64, 64), ("4e", 112, 144, 288, 32, 64, 64),
              ("4f", 256, 160, 320, 32, 128, 128), "2x2",
              ("5b", 256, 160, 320, 32, 128, 128), ("5c", 384, 192, 384, 48, 128, 128)]
    for block in blocks:
        if block is None:
            x = n.max(x, 2)
        elif block == "2x2":
            x = max_pool(v, same(x, 2, 2, float("-inf")), 2, 2)
        else:
            name, a, b, c, d, e, f = block
            s = "Mixed_" + name + "/Branch_"
            third = "Conv2d_0a_3x3" if name == "5b" else "Conv2d_0b_3x3"
            x = torch.cat([
                n.chain(s + "0", x, ("Conv2d_0a_1x1", a)),
                n.chain(s + "1", x, ("Conv2d_0a_1x1", b), ("Conv2d_0b_3x3", c)),
                n.chain(s + "2", x, ("Conv2d_0a_1x1", d), (third, e)),
                n.chain(s + "3", n.max(x), ("Conv2d_0b_1x1", f))], 1)
    x = F.avg_pool2d(x, (min(7, x.shape[2]), min(7, x.shape[3])), 1)
    return conv(v, "InceptionV1/Logits/Conv2d_0c_1x1", x, classes, 1, "scaling",
                bias=True).flatten(1)


def inception_v2(v, x, classes):
    n = Inception(v, "InceptionV2", "scaling")
    thin, tenth = {"stddev": f32(0.09)}, {"stddev": f32(0.1)}
    s = "InceptionV2/Conv2d_1a_7x7"
    x = depthwise(v, s, x, 1.0, 2, 7, 8)
    w = v.truncated(s + "/pointwise_weights", (1, 1, x.shape[1], 64), 1.0)
    x = F.relu(F.conv2d(x, w.permute(3, 2, 0, 1), v.bias(s, 64)))
    x = n.conv("Conv2d_2b_1x1", n.max(x, 2), 64, stddev=f32(0.1))
    x = n.max(n.conv("Conv2d_2c_3x3", x, 192), 2)
    for name, a, b, c, d, e, pool, f in [
            ("3b", 64, 64, 64, 64, 96, "avg", 32), ("3c", 64, 64, 96, 64, 96, "avg", 64),
            ("4a", 0, 128, 160, 64, 96, "", 0),
            ("4b", 224, 64, 96, 96, 128, "avg", 128), ("4c", 192, 96, 128, 96, 128, "avg", 128),
            ("4d", 160, 128, 160, 128, 160, "avg", 96), ("4e", 96, 128, 192, 160, 192, "avg", 96),
            ("5a", 0, 128, 192, 192, 256, "", 0),
            ("5b", 352, 192, 320, 160, 224, "avg", 128),
            ("5c", 352, 192, 320, 192, 224, "max", 128)]:
        s, half = "Mixed_" + name + "/Branch_", {"stride": 2}
        if not a:
            x = torch.cat([
                n.chain(s + "0", x, ("Conv2d_0a_1x1", b, thin), ("Conv2d_1a_3x3", c, half)),
                n.chain(s + "1", x, ("Conv2d_0a_1x1", d, thin), ("Conv2d_0b_3x3", e),
                        ("Conv2d_1a_3x3", e, half)), n.max(x, 2)], 1)
            continue
        x = torch.cat([
            n.chain(s + "0", x, ("Conv2d_0a_1x1", a)),
            n.chain(s + "1", x, ("Conv2d_0a_1x1", b, thin), ("Conv2d_0b_3x3", c)),
            n.chain(s + "2", x, ("Conv2d_0a_1x1", d, thin), ("Conv2d_0b_3x3", e),
                    ("Conv2d_0c_3x3", e)),
            n.chain(s + "3", n.max(x) if pool == "max" else n.average(x),
                    ("Conv2d_0b_1x1", f, tenth))], 1)
    x = F.avg_pool2d(x, (min(7, x.shape[2]), min(7, x.shape[3])), 1)
    return conv(v, "InceptionV2/Logits/Conv2d_1c_1x1", x, classes, 1, "scaling",
                bias=True).flatten(1)


def fork(n, s, x, first, second, width):
    """1x3 and 3x1 of the same map."""
    return torch.cat([n.conv(f"{s}/Conv2d_{first}_1x3", x, width),
                      n.conv(f"{s}/Conv2d_{second}_3x1", x, width)], 1)


def stem(n, x):
    x = n.conv("Conv2d_1a_3x3", x, 32, stride=2, pad="valid")
    x = n.conv("Conv2d_2a_3x3", x, 32, pad="valid")
    return n.conv("Conv2d_2b_3x3", x, 64)


def second_stem(n, x):
    x = n.conv("Conv2d_3b_1x1", n.max(stem(n, x), 2, "valid"), 80, pad="valid")
    return n.max(n.conv("Conv2d_4a_3x3", x, 192, pad="valid"), 2, "valid")


def auxiliary_map(n, x, conv2, stddev=None):
    x = n.conv("AuxLogits/Conv2d_1b_1x1", F.avg_pool2d(x, 5, 3), 128)
    return n.conv("AuxLogits/" + conv2, x, 768, tuple(x.shape[2:]), pad="valid", stddev=stddev)


def inception_v4(v, x, classes):
    n = Inception(v, "InceptionV4", "scaling")
    x = stem(n, x)
    x = torch.cat([n.max(x, **V2), n.conv("Mixed_3a/Branch_1/Conv2d_0a_3x3", x, 96, **V2)], 1)
    s = "Mixed_4a/Branch_"
    valid = {"pad": "valid"}
    x = torch.cat([
        n.chain(s + "0", x, ("Conv2d_0a_1x1", 64), ("Conv2d_1a_3x3", 96, valid)),
        n.chain(s + "1", x, ("Conv2d_0a_1x1", 64), ("Conv2d_0b_1x7", 64), ("Conv2d_0c_7x1", 64),
                ("Conv2d_1a_3x3", 96, valid))], 1)
    x = torch.cat([n.conv("Mixed_5a/Branch_0/Conv2d_1a_3x3", x, 192, **V2), n.max(x, **V2)], 1)
    for name in "bcde":
        s = f"Mixed_5{name}/Branch_"
        x = torch.cat([
            n.chain(s + "0", x, ("Conv2d_0a_1x1", 96)),
            n.chain(s + "1", x, ("Conv2d_0a_1x1", 64), ("Conv2d_0b_3x3", 96)),
            n.chain(s + "2", x, ("Conv2d_0a_1x1", 64), ("Conv2d_0b_3x3", 96),
                    ("Conv2d_0c_3x3", 96)),
            n.chain(s + "3", n.average(x), ("Conv2d_0b_1x1", 96))], 1)
    s = "Mixed_6a/Branch_"
    x = torch.cat([
        n.chain(s + "0", x, ("Conv2d_1a_3x3", 384, V2)),
        n.chain(s + "1", x, ("Conv2d_0a_1x1", 192), ("Conv2d_0b_3x3", 224),
                ("Conv2d_1a_3x3", 256, V2)), n.max(x, **V2)], 1)
    for name in "bcdefgh":
        s = f"Mixed_6{name}/Branch_"
        x = torch.cat([
            n.chain(s + "0", x, ("Conv2d_0a_1x1", 384)),
            n.chain(s + "1", x, ("Conv2d_0a_1x1", 192), ("Conv2d_0b_1x7", 224),
                    ("Conv2d_0c_7x1", 256)),
            n.chain(s + "2", x, ("Conv2d_0a_1x1", 192), ("Conv2d_0b_7x1", 192),
                    ("Conv2d_0c_1x7", 224), ("Conv2d_0d_7x1", 224), ("Conv2d_0e_1x7", 256)),
            n.chain(s + "3", n.average(x), ("Conv2d_0b_1x1", 128))], 1)
    aux = fc(v, "InceptionV4/AuxLogits/Aux_logits", flatten(auxiliary_map(n, x, "Conv2d_2a")),
             classes, "xavier")
    s = "Mixed_7a/Branch_"
    x = torch.cat([
        n.chain(s + "0", x, ("Conv2d_0a_1x1", 192), ("Conv2d_1a_3x3", 192, V2)),
        n.chain(s + "1", x, ("Conv2d_0a_1x1", 256), ("Conv2d_0b_1x7", 256),
                ("Conv2d_0c_7x1", 320), ("Conv2d_1a_3x3", 320, V2)), n.max(x, **V2)], 1)
    for name in "bcd":
        s = f"Mixed_7{name}/Branch_"
        third = n.chain(s + "2", x, ("Conv2d_0a_1x1", 384), ("Conv2d_0b_3x1", 448),
                        ("Conv2d_0c_1x3", 512))
        x = torch.cat([
            n.chain(s + "0", x, ("Conv2d_0a_1x1", 256)),
            fork(n, s + "1", n.chain(s + "1", x, ("Conv2d_0a_1x1", 384)), "0b", "0c", 256),
            fork(n, s + "2", third, "0d", "0e", 256),
            n.chain(s + "3", n.average(x), ("Conv2d_0b_1x1", 256))], 1)
    return fc(v, "InceptionV4/Logits/Logits", x.mean((2, 3)), classes, "xavier"), aux


def inception_resnet_v2(v, x, classes):
    n = Inception(v, "InceptionResnetV2", "xavier")
    x = second_stem(n, x)
    s = "Mixed_5b/Branch_"
    x = torch.cat([
        n.chain(s + "0", x, ("Conv2d_1x1", 96)),
        n.chain(s + "1", x, ("Conv2d_0a_1x1", 48), ("Conv2d_0b_5x5", 64)),
        n.chain(s + "2", x, ("Conv2d_0a_1x1", 64), ("Conv2d_0b_3x3", 96), ("Conv2d_0c_3x3", 96)),
        n.chain(s + "3", n.average(x), ("Conv2d_0b_1x1", 64))], 1)

    def residual(name, x, scale, *branches, relu=True):
        parts = [n.chain(f"{name}/Branch_{i}", x, *b) for i, b in enumerate(branches)]
        up = conv(v, f"InceptionResnetV2/{name}/Conv2d_1x1", torch.cat(parts, 1), x.shape[1], 1,
                  "xavier", bias=True)
        return F.relu(x + f32(scale) * up) if relu else x + f32(scale) * up

    for i in range(1, 11):
        x = residual(f"Repeat/block35_{i}", x, 0.17, [("Conv2d_1x1", 32)],
                     [("Conv2d_0a_1x1", 32), ("Conv2d_0b_3x3", 32)],
                     [("Conv2d_0a_1x1", 32), ("Conv2d_0b_3x3", 48), ("Conv2d_0c_3x3", 64)])
    s = "Mixed_6a/Branch_"
    x = torch.cat([
        n.chain(s + "0", x, ("Conv2d_1a_3x3", 384, V2)),
        n.chain(s + "1", x, ("Conv2d_0a_1x1", 256), ("Conv2d_0b_3x3", 256),
                ("Conv2d_1a_3x3", 384, V2)), n.max(x, **V2)], 1)
    for i in range(1, 21):
        x = residual(f"Repeat_1/block17_{i}", x, 0.10, [("Conv2d_1x1", 192)],
                     [("Conv2d_0a_1x1", 128), ("Conv2d_0b_1x7", 160), ("Conv2d_0c_7x1", 192)])
    aux = fc(v, "InceptionResnetV2/AuxLogits/Logits",
             flatten(auxiliary_map(n, x, "Conv2d_2a_5x5")), classes, "xavier")
    s = "Mixed_7a/Branch_"
    x = torch.cat([
        n.chain(s + "0", x, ("Conv2d_0a_1x1", 256), ("Conv2d_1a_3x3", 384, V2)),
        n.chain(s + "1", x, ("Conv2d_0a_1x1", 256), ("Conv2d_1a_3x3", 288, V2)),
        n.chain(s + "2", x, ("Conv2d_0a_1x1", 256), ("Conv2d_0b_3x3", 288),
                ("Conv2d_1a_3x3", 320, V2)), n.max(x, **V2)], 1)
    last = [("Conv2d_0a_1x1", 192), ("Conv2d_0b_1x3", 224), ("Conv2d_0c_3x1", 256)]
    for i in range(1, 10):
        x = residual(f"Repeat_2/block8_{i}", x, 0.20, [("Conv2d_1x1", 192)], last)
    x = residual("Block8", x, 1.0, [("Conv2d_1x1", 192)], last, relu=False)
    x = n.conv("Conv2d_7b_1x1", x, 1536)
    return fc(v, "InceptionResnetV2/Logits/Logits", x.mean((2, 3)), classes, "xavier"), aux


# ---- resnet_v2 -----------------------------------------------------------------------------

def resnet_v2_50(v, x, classes):
    s = "resnet_v2_50/"

    def norm(scope, y, level="/BatchNorm"):
        return F.relu(batch_norm(v, scope, y, 1.001e-5, 0.997, (0,), level=level))

    def at(scope, y, filters, kernel, stride=1, bias=False):
        return conv(v, scope, y, filters, kernel, "scaling", stride, bias,
                    "both" if stride > 1 and kernel > 1 else "same")

    x = at(s + "conv1", x, 64, 7, 2, True)
    x = max_pool(v, same(x, 3, 2, float("-inf")), 3, 2)
    for block, (units, depth) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)], 1):
        for i in range(1, units + 1):
            stride = 2 if i == units and block < 4 else 1
            scope = f"{s}block{block}/unit_{i}/bottleneck_v2/"
            p = norm(scope + "preact", x, "")
            if x.shape[1] == 4 * depth:
                shortcut = x[:, :, ::stride, ::stride]
            else:
                shortcut = at(scope + "shortcut", p, 4 * depth, 1, stride, True)
            y = norm(scope + "conv1", at(scope + "conv1", p, depth, 1))
            y = norm(scope + "conv2", at(scope + "conv2", y, depth, 3, stride))
            x = shortcut + at(scope + "conv3", y, 4 * depth, 1, 1, True)
    x = norm(s + "postnorm", x, "")
    return at(s + "logits", x.mean((2, 3), keepdim=True), classes, 1, 1, True).flatten(1)


# ---- mobile nets ---------------------------------------------------------------------------

def divisible(width):
    n = max(8, int(width + 4) // 8 * 8)
    return n + 8 if n < 0.9 * width else n


class Mobile:
    def __init__(self, v, scope, six):
        self.v, self.scope, self.six = v, scope + "/", six

    def norm(self, scope, x, act):
        kinks = {"none": (), "relu": (0,), "relu6": (0, 6), "swish": (-3, 3)}[act]
        x = batch_norm(self.v, scope, x, 0.001, 0.997, kinks, six=self.six)
        return {"none": lambda t: t, "relu": F.relu, "relu6": lambda t: torch.clamp(t, 0, 6),
                "swish": lambda t: t * torch.clamp(t + 3, 0, 6) / 6}[act](x)

    def conv(self, name, x, filters, kernel, stride, act):
        name = self.scope + name
        return self.norm(name, conv(self.v, name, x, filters, kernel, f32(0.09), stride), act)

    def depthwise(self, name, x, kernel, stride, act):
        name = self.scope + name
        return self.norm(name, depthwise(self.v, name, x, f32(0.09), stride, kernel), act)

    def plain(self, name, x, filters):
        return conv(self.v, self.scope + name, x, filters, 1, f32(0.09), bias=True)


def mobilenet_v2(v, x, classes):
    m = Mobile(v, "MobilenetV2", True)
    x = m.conv("Conv", x, 32, 3, 2, "relu6")
    rows = [(16, 1, 1), (24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1)]
    index = 0
    for out, times, stride in rows:
        for k in range(times):
            s = f"expanded_conv_{index}" if index else "expanded_conv"
            y, c = x, x.shape[1]
            if index:
                y = m.conv(s + "/expand", y, 6 * c, 1, 1, "relu6")
            y = m.depthwise(s + "/depthwise", y, 3, stride if k == 0 else 1, "relu6")
            y = m.conv(s + "/project", y, out, 1, 1, "none")
            x = x + y if k else y
            index += 1
    x = m.conv("Conv_1", x, 1280, 1, 1, "relu6").mean((2, 3), keepdim=True)
    return m.plain("Logits/Conv2d_1c_1x1", x, classes).flatten(1)


def mobilenet_v3(v, x, classes, rows, last, features):
    """rows: (factor, out, kernel, stride, gated, activation)."""
    m = Mobile(v, "MobilenetV3", True)
    x = m.conv("Conv", x, 16, 3, 2, "swish")
    for i, (factor, out, kernel, stride, gated, act) in enumerate(rows):
        s = f"expanded_conv_{i}" if i else "expanded_conv"
        y, c = x, x.shape[1]
        if i:
            y = m.conv(s + "/expand", y, divisible(factor * c), 1, 1, act)
        y = m.depthwise(s + "/depthwise", y, kernel, stride, act)
        if gated:
            g = y.mean((2, 3), keepdim=True)
            g = F.relu(m.plain(s + "/squeeze_excite/Conv", g, divisible(y.shape[1] / 4)))
            g = m.plain(s + "/squeeze_excite/Conv_1", g, y.shape[1])
            y = y * torch.clamp(g + 3, 0, 6) / 6
        y = m.conv(s + "/project", y, out, 1, 1, "none")
        x = x + y if stride == 1 and c == out else y
    x = m.conv("Conv_1", x, last, 1, 1, "swish").mean((2, 3), keepdim=True)
    x = m.plain("Conv_2", x, features)
    x = x * torch.clamp(x + 3, 0, 6) / 6
    return m.plain("Logits/Conv2d_1c_1x1", x, classes).flatten(1)


def mobilenet_v3_large(v, x, classes):
    rows = [(1, 16, 3, 1, 0, "relu"), (4, 24, 3, 2, 0, "relu"), (3, 24, 3, 1, 0, "relu"),
            (3, 40, 5, 2, 1, "relu"), (3, 40, 5, 1, 1, "relu"), (3, 40, 5, 1, 1, "relu"),
            (6, 80, 3, 2, 0, "swish"), (2.5, 80, 3, 1, 0, "swish"), (2.3, 80, 3, 1, 0, "swish"),
            (2.3, 80, 3, 1, 0, "swish"), (6, 112, 3, 1, 1, "swish"), (6, 112, 3, 1, 1, "swish"),
            (6, 160, 5, 2, 1, "swish"), (6, 160, 5, 1, 1, "swish"), (6, 160, 5, 1, 1, "swish")]
    return mobilenet_v3(v, x, classes, rows, 960, 1280)


def mobilenet_edgetpu(v, x, classes):
    m = Mobile(v, "MobilenetEdgeTPU", True)
    x = m.conv("Conv", x, 32, 3, 2, "relu")
    # factor, out, kernel, stride, how often, fused, apart
    rows = [(1, 16, 3, 1, 1, 1, 0), (8, 32, 3, 2, 1, 1, 0), (4, 32, 3, 1, 3, 1, 0),
            (8, 48, 3, 2, 1, 1, 0), (4, 48, 3, 1, 3, 1, 0), (8, 96, 3, 2, 1, 0, 0),
            (4, 96, 3, 1, 3, 0, 0), (8, 96, 3, 1, 1, 0, 1), (4, 96, 3, 1, 3, 0, 0),
            (8, 160, 5, 2, 1, 0, 0), (4, 160, 5, 1, 3, 0, 0), (8, 192, 3, 1, 1, 0, 0)]
    index = 0
    for factor, out, kernel, stride, times, fused, apart in rows:
        for _ in range(times):
            s = f"expanded_conv_{index}" if index else "expanded_conv"
            y, c = x, x.shape[1]
            if fused and factor > 1:
                y = m.conv(s + "/expand", y, factor * c, kernel, stride, "relu")
            elif not fused:
                y = m.conv(s + "/expand", y, factor * c, 1, 1, "relu")
                y = m.depthwise(s + "/depthwise", y, kernel, stride, "relu")
            y = m.conv(s + "/project", y, out, 1, 1, "none")
            x = x + y if stride == 1 and c == out and not apart else y
            index += 1
    x = m.conv("Conv_1", x, 1280, 1, 1, "relu").mean((2, 3), keepdim=True)
    return m.plain("Logits/Conv2d_1c_1x1", x, classes).flatten(1)
