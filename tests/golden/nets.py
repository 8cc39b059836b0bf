"""The nets once more, in PyTorch, written from their published descriptions and from nothing in
src/: NCHW inside, variables in TensorFlow's order and under its names, padding made explicit."""
import math

import numpy as np
import torch
import torch.nn.functional as F

from philox import Stream


class NearTie(Exception):
    """Two largest values of a pooling window are so near that rounding decides between them."""


class Variables:
    """Makes each variable at its first mention, by the initial-value rule of the trainer: the
    stream named like the variable, drawn in row-major order, rounded to float32.

    Batch norm's scale and offset and all biases get other values than their usual 1 and 0, from the
    stream "golden/NAME", so that a missing factor shows. Offsets are about `shift` standard
    deviations to one side of the rectifier's kink: two channels of three mostly pass, the third is
    mostly blocked (relu6: one more of five is mostly cut).

    Wherever a value lies so near a kink that rounding errors decide whether its gradient passes, two
    correct programs differ by that value's whole gradient: in a deep net in float32 that is percents
    of many tensors, and nothing could be tested. So with `choose` (the float64 run) an offset is
    moved by thousandths until no value of its channel is within CLEAR of a kink; `moves` keeps
    name -> {channel: thousandths}, for the other run and for the test. Pooling windows without a
    clear winner raise NearTie: another seed is taken."""

    CLEAR, TIE = 3e-5, 1e-6

    def __init__(self, seed, shift, dtype, moves=None):
        self.seed, self.shift, self.dtype = seed, shift, dtype
        self.choose, self.moves = moves is None, moves or {}
        self.trained, self.averages = {}, {}

    def _keep(self, name, values, shape):
        t = torch.from_numpy(values).to(torch.float32).to(self.dtype).reshape(shape)
        self.trained[name] = t.requires_grad_()
        return self.trained[name]

    def truncated(self, name, shape, stddev):
        z = Stream(self.seed, name).truncated(math.prod(shape))
        return self._keep(name, z * stddev, shape)

    def xavier(self, name, shape):
        """fan_in and fan_out: the window's cells times one of the last two axes."""
        cells = math.prod(shape[:-2])
        limit = math.sqrt(6 / (cells * (shape[-2] + shape[-1])))
        u = Stream(self.seed, name).uniform(math.prod(shape))
        return self._keep(name, limit * (2 * u - 1), shape)

    def gamma(self, scope, count, six):
        u = Stream(self.seed, "golden/" + scope + "/gamma").uniform(count)
        return self._keep(scope + "/gamma", 0.5 + 0.5 * u if six else 0.5 + u, (count,))

    def beta(self, scope, y, six, kinks):
        """y: values before the offset is added, NCHW; kinks: of what follows."""
        count, name = y.shape[1], scope + "/beta"
        u = Stream(self.seed, "golden/" + scope + "/gamma").uniform(count)
        t = self.shift * (0.9 + 0.2 * Stream(self.seed, "golden/" + name).uniform(count))
        c = np.arange(count)
        beta = np.where(c % 5 == 4 if six else c % 3 == 2, -t, t)
        beta = beta * (0.5 + 0.5 * u if six else 0.5 + u)
        if six:
            beta = np.where(c % 5 == 3, 6 + beta, beta)
        if self.choose and kinks:
            columns = y.detach().transpose(0, 1).reshape(count, -1).numpy()
            moves = {}
            for i in range(count):
                k = 0
                while any(np.abs(columns[i] + (np.float32(beta[i] + 1e-3 * k) - kink)).min()
                          < self.CLEAR for kink in kinks):
                    k += 1
                if k:
                    moves[i] = k
            if moves:
                self.moves[name] = moves
        for i, k in self.moves.get(name, {}).items():
            beta[i] += 1e-3 * k
        return self._keep(name, beta, (count,))

    def bias(self, scope, count):
        u = Stream(self.seed, "golden/" + scope + "/biases").uniform(count)
        return self._keep(scope + "/biases", 0.2 * u - 0.1, (count,))


def f32(x):
    """An option, as the trainer stores it."""
    return float(np.float32(x))


def same(x, kernel, stride, value=0.0):
    """Pads so that the output is ceil(in / stride), the odd pixel below and to the right."""
    kh, kw = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    pads = []
    for size, cells in ((x.shape[3], kw), (x.shape[2], kh)):
        total = max(0, (math.ceil(size / stride) - 1) * stride + cells - size)
        pads += [total // 2, total - total // 2]
    return F.pad(x, pads, value=value)


def weights(v, name, shape, stddev):
    """stddev: of a truncated normal, or "xavier", or "scaling" (variance scaling, factor 2)."""
    if stddev == "xavier":
        return v.xavier(name, shape)
    if stddev == "scaling":
        stddev = math.sqrt(1.3 * 2 / math.prod(shape[:-1]))
    return v.truncated(name, shape, stddev)


def conv(v, scope, x, filters, kernel, stddev, stride=1, bias=False, pad="same"):
    """kernel: a number, or (height, width)."""
    kh, kw = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    w = weights(v, scope + "/weights", (kh, kw, x.shape[1], filters), stddev)
    b = v.bias(scope, filters) if bias else None
    if pad == "same":
        x = same(x, (kh, kw), stride)
    elif pad == "both":
        x = F.pad(x, [(kw - 1) // 2, kw - 1 - (kw - 1) // 2, (kh - 1) // 2, kh - 1 - (kh - 1) // 2])
    return F.conv2d(x, w.permute(3, 2, 0, 1), b, stride=stride)


def depthwise(v, scope, x, stddev, stride, kernel=3, multiplier=1):
    c = x.shape[1]
    w = v.truncated(scope + "/depthwise_weights", (kernel, kernel, c, multiplier), stddev)
    w = w.permute(2, 3, 0, 1).reshape(c * multiplier, 1, kernel, kernel)
    return F.conv2d(same(x, kernel, stride), w, stride=stride, groups=c)


def fc(v, scope, x, units, stddev):
    w = weights(v, scope + "/weights", (x.shape[1], units), stddev)
    return x @ w + v.bias(scope, units)


def batch_norm(v, scope, x, epsilon, decay, kinks=(), add=None, six=False, scale=True,
               level="/BatchNorm"):
    """add joins the result before what has the kinks."""
    scope += level
    n = x.numel() // x.shape[1]
    mean = x.mean((0, 2, 3), keepdim=True)
    var = ((x - mean) ** 2).mean((0, 2, 3), keepdim=True)
    # Moving averages start at 0 and 1; the variance they see has Bessel's factor.
    v.averages[scope + "/moving_mean"] = (1 - decay) * mean.flatten().detach()
    v.averages[scope + "/moving_variance"] = (
        decay + (1 - decay) * var.flatten().detach() * n / max(n - 1, 1))
    shape = (1, -1, 1, 1)
    y = (x - mean) / torch.sqrt(var + epsilon)
    if scale:
        y = y * v.gamma(scope, x.shape[1], six).view(shape)
    if add is not None:
        y = y + add
    return y + v.beta(scope, y, six, kinks).view(shape)


def max_pool(v, x, kernel, stride):
    if v.choose:
        with torch.no_grad():
            windows = F.unfold(x.flatten(0, 1).unsqueeze(1), kernel, stride=stride)
            first, second = windows.topk(2, 1).values.unbind(1)
            # Equal values are one value that overlapping windows of the pool before have copied:
            # whichever wins, the gradient comes to the same place.
            gap = (first - second)[first > 0]
            if ((gap > 0) & (gap < v.TIE)).any():
                raise NearTie
    return F.max_pool2d(x, kernel, stride)


def flatten(x):
    """Row-major over height, width, channels."""
    return x.permute(0, 2, 3, 1).reshape(x.shape[0], -1)


def lrn(x, radius, bias, alpha, beta):
    c = x.shape[1]
    padded = F.pad(x * x, [0, 0, 0, 0, radius, radius])
    total = sum(padded[:, i:i + c] for i in range(2 * radius + 1))
    return x * (bias + alpha * total) ** -beta


def cifarnet(v, x, classes):
    s = "CifarNet/"
    x = max_pool(v, F.relu(conv(v, s + "conv1", x, 64, 5, f32(0.05), bias=True)), 2, 2)
    x = lrn(x, 4, 1.0, 0.001 / 9, 0.75)
    x = F.relu(conv(v, s + "conv2", x, 64, 5, f32(0.05), bias=True))
    x = max_pool(v, lrn(x, 4, 1.0, 0.001 / 9, 0.75), 2, 2)
    x = F.relu(fc(v, s + "fc3", flatten(x), 384, f32(0.04)))
    x = F.relu(fc(v, s + "fc4", x, 192, f32(0.04)))
    return fc(v, s + "logits", x, classes, f32(1 / 192))


def mobilenet_v1(v, x, classes):
    s = "MobilenetV1/"

    def norm(scope, y):
        return torch.clamp(batch_norm(v, scope, y, 0.001, 0.9997, (0, 6), six=True), 0, 6)

    x = norm(s + "Conv2d_0", conv(v, s + "Conv2d_0", x, 32, 3, f32(0.09), stride=2))
    widths = [64, 128, 128, 256, 256] + [512] * 6 + [1024, 1024]
    for i, width in enumerate(widths, 1):
        stride = 2 if i in (2, 4, 6, 12) else 1
        scope = f"{s}Conv2d_{i}_depthwise"
        x = norm(scope, depthwise(v, scope, x, f32(0.09), stride))
        scope = f"{s}Conv2d_{i}_pointwise"
        x = norm(scope, conv(v, scope, x, width, 1, f32(0.09)))
    x = F.avg_pool2d(x, (min(7, x.shape[2]), min(7, x.shape[3])))
    return conv(v, s + "Logits/Conv2d_1c_1x1", x, classes, 1, f32(0.09), bias=True).flatten(1)


def resnet_v1_50(v, x, classes):
    s = "resnet_v1_50/"

    def scaled(scope, y, filters, kernel, stride=1, bias=False):
        stddev = math.sqrt(1.3 * 2 / (kernel * kernel * y.shape[1]))
        pad = "both" if stride > 1 and kernel > 1 else "same"
        return conv(v, scope, y, filters, kernel, stddev, stride, bias, pad)

    def norm(scope, y):
        return batch_norm(v, scope, y, 1.001e-5, 0.997)

    def relu_norm(scope, y, add=None):
        return F.relu(batch_norm(v, scope, y, 1.001e-5, 0.997, (0,), add))

    def unit(scope, x, depth, stride):
        out = 4 * depth
        if x.shape[1] == out:
            shortcut = x[:, :, ::stride, ::stride]
        else:
            shortcut = norm(scope + "shortcut", scaled(scope + "shortcut", x, out, 1, stride))
        y = relu_norm(scope + "conv1", scaled(scope + "conv1", x, depth, 1))
        y = relu_norm(scope + "conv2", scaled(scope + "conv2", y, depth, 3, stride))
        return relu_norm(scope + "conv3", scaled(scope + "conv3", y, out, 1), shortcut)

    x = relu_norm(s + "conv1", scaled(s + "conv1", x, 64, 7, 2))
    x = max_pool(v, same(x, 3, 2, float("-inf")), 3, 2)
    for block, (units, depth) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)], 1):
        for i in range(1, units + 1):
            stride = 2 if i == units and block < 4 else 1
            x = unit(f"{s}block{block}/unit_{i}/bottleneck_v1/", x, depth, stride)
    return scaled(s + "logits", x.mean((2, 3), keepdim=True), classes, 1, bias=True).flatten(1)
