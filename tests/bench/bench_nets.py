"""Blocks of the detectors' nets as PyTorch modules (bench_detectors.py), written with torch.nn's
own layers as its users would. Layers, shapes and trained parameters are those of src/nets/. Where
TensorFlow pads one pixel more on one side, these blocks pad both sides equally, which leaves shapes
and work the same."""
from torch import nn


def norm(channels, epsilon, momentum, *after):
    return [nn.BatchNorm2d(channels, eps=epsilon, momentum=momentum), *after]


class Bottleneck(nn.Module):
    def __init__(self, cin, depth, stride, activation=nn.ReLU):
        super().__init__()

        def conv(a, b, kernel, step, *after):
            return [nn.Conv2d(a, b, kernel, step, kernel // 2, bias=False),
                    *norm(b, 1.001e-5, 0.003, *after)]

        out = 4 * depth
        self.stride = stride
        self.shortcut = nn.Sequential(*conv(cin, out, 1, stride)) if cin != out else None
        self.body = nn.Sequential(*conv(cin, depth, 1, 1, activation(inplace=True)),
                                  *conv(depth, depth, 3, stride, activation(inplace=True)),
                                  *conv(depth, out, 1, 1))
        self.last = activation(inplace=True)

    def forward(self, x):
        if self.shortcut is not None:
            shortcut = self.shortcut(x)
        else:
            shortcut = x if self.stride == 1 else x[:, :, ::self.stride, ::self.stride]
        return self.last(self.body(x) + shortcut)


# The blocks of mobilenet_v2: output channels and stride.
MOBILENET_V2 = [
    (16, 1), (24, 2), (24, 1), (32, 2), (32, 1), (32, 1), (64, 2), (64, 1), (64, 1), (64, 1),
    (96, 1), (96, 1), (96, 1), (160, 2), (160, 1), (160, 1), (320, 1),
]  # fmt: skip


class InvertedResidual(nn.Module):
    """An inverted residual block. Returns its output and, for decoders and detectors, the outputs
    of the expansion and of the depthwise convolution."""

    def __init__(self, cin, cout, expansion, stride, rate):
        super().__init__()
        wide = cin * expansion
        expand = [nn.Conv2d(cin, wide, 1, bias=False), *self.norm(wide, nn.ReLU6(inplace=True))]
        self.expand = nn.Sequential(*(expand if expansion > 1 else []))
        self.depthwise = nn.Sequential(
            nn.Conv2d(wide, wide, 3, stride, rate, rate, groups=wide, bias=False),
            *self.norm(wide, nn.ReLU6(inplace=True)))
        self.project = nn.Sequential(nn.Conv2d(wide, cout, 1, bias=False), *self.norm(cout))
        self.adds = stride == 1 and cin == cout

    @staticmethod
    def norm(channels, *after):
        return norm(channels, 1e-3, 0.003, *after)

    def forward(self, x):
        expanded = self.expand(x)
        middle = self.depthwise(expanded)
        y = self.project(middle)
        return (x + y if self.adds else y), expanded, middle
