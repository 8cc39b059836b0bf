"""Pumice's nets as PyTorch modules for the side-by-side benchmark, written with torch.nn's own
layers as its users would. Layers, shapes and trained parameters are those of src/nets/. Where
TensorFlow pads one pixel more on one side, these nets pad both sides equally, which leaves shapes
and work the same."""
import torch
from torch import nn
from torch.nn import functional as F


class Classifier(nn.Sequential):
    """A classifier's layers, random labels and loss."""

    def __init__(self, classes, *layers):
        super().__init__(*layers)
        self.classes = classes

    def truths(self, batch):
        return (torch.randint(self.classes, (batch,)),)

    @staticmethod
    def loss(logits, labels):
        return F.cross_entropy(logits, labels)


class Lenet(Classifier):
    weight_decay = 0.0

    def __init__(self, classes):
        super().__init__(
            classes,
            nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(7 * 7 * 64, 1024), nn.ReLU(inplace=True), nn.Dropout(0.5),
            nn.Linear(1024, classes))


def norm(channels, epsilon, momentum, *after):
    return [nn.BatchNorm2d(channels, eps=epsilon, momentum=momentum), *after]


class MobilenetV1(Classifier):
    weight_decay = 4e-5

    def __init__(self, classes):
        def conv(cin, cout, kernel, stride, groups=1):
            return [nn.Conv2d(cin, cout, kernel, stride, kernel // 2, groups=groups, bias=False),
                    *norm(cout, 0.001, 0.0003, nn.ReLU6(inplace=True))]

        layers, width = conv(3, 32, 3, 2), 32
        for i, out in enumerate([64, 128, 128, 256, 256] + [512] * 6 + [1024, 1024], 1):
            stride = 2 if i in (2, 4, 6, 12) else 1
            layers += conv(width, width, 3, stride, groups=width) + conv(width, out, 1, 1)
            width = out
        super().__init__(classes, *layers, nn.AvgPool2d(7), nn.Dropout(0.001),
                         nn.Conv2d(1024, classes, 1), nn.Flatten())


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


class ResnetV150(Classifier):
    """resnet_v1_50. The last unit of a block has the stride, as in TF-Slim."""

    weight_decay = 1e-4

    def __init__(self, classes):
        layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), *norm(64, 1.001e-5, 0.003),
                  nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
        width = 64
        for block, (units, depth) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)], 1):
            for i in range(1, units + 1):
                layers.append(Bottleneck(width, depth, 2 if i == units and block < 4 else 1))
                width = 4 * depth
        super().__init__(classes, *layers, nn.AdaptiveAvgPool2d(1), nn.Conv2d(2048, classes, 1),
                         nn.Flatten())


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


class DeeplabMobilenetV2(nn.Module):
    """DeepLab on mobilenet_v2 with output stride 16, pyramid pooling at rates 6, 12 and 18 and over
    the whole picture, and a decoder at stride 4. Returns logits for every pixel of the picture.
    Sizes of k * 16 + 1 need the same padding on both sides."""

    size, weight_decay, ignored = 257, 4e-5, 255

    def __init__(self, classes, width=256):
        super().__init__()
        self.classes = classes
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1, bias=False),
                                  *norm(32, 1e-3, 0.003, nn.ReLU6(inplace=True)))
        self.units, cin, reached, rate = nn.ModuleList(), 32, 2, 1
        for i, (cout, stride) in enumerate(MOBILENET_V2):
            used, step = rate, stride
            if reached == 16:  # the output stride: later layers are dilated instead
                rate, step = rate * stride, 1
            else:
                reached *= stride
            self.units.append(InvertedResidual(cin, cout, 6 if i else 1, step, used))
            cin = cout
        self.pooled = self.conv(cin, width)
        self.near = self.conv(cin, width)
        self.far = nn.ModuleList(self.separable(cin, width, rate) for rate in (6, 12, 18))
        self.joined = nn.Sequential(*self.conv(5 * width, width), nn.Dropout(0.1))
        self.finer = self.conv(144, 48)
        self.decoder = nn.Sequential(*self.separable(width + 48, width, 1),
                                     *self.separable(width, width, 1), nn.Conv2d(width, classes, 1))

    @staticmethod
    def conv(cin, cout, kernel=1, rate=1, groups=1):
        return nn.Sequential(
            nn.Conv2d(cin, cout, kernel, 1, rate * (kernel // 2), rate, groups, bias=False),
            *norm(cout, 1.001e-5, 0.0003, nn.ReLU(inplace=True)),
        )

    def separable(self, cin, cout, rate):
        return nn.Sequential(*self.conv(cin, cin, 3, rate, cin), *self.conv(cin, cout))

    @staticmethod
    def resized(x, like):
        return F.interpolate(x, like.shape[-2:], mode="bilinear", align_corners=True)

    def forward(self, images):
        x, finer = self.stem(images), None
        for i, unit in enumerate(self.units):
            x, _, middle = unit(x)
            if i == 2:
                finer = middle
        pooled = self.resized(self.pooled(x.mean((2, 3), keepdim=True)), x)
        x = self.joined(torch.cat([pooled, self.near(x), *(far(x) for far in self.far)], 1))
        finer = self.finer(finer)
        x = self.decoder(torch.cat([self.resized(x, finer), finer], 1))
        return self.resized(x, images)

    def truths(self, batch):
        return (torch.randint(self.classes, (batch, self.size, self.size)),)

    def loss(self, logits, labels):
        return F.cross_entropy(logits, labels, ignore_index=self.ignored)
