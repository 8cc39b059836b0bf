"""Our nets as PyTorch modules, written as its users write them (torch.nn's own layers), for the
side-by-side benchmark. Layers, shapes and trained parameters are those of src/nets/; where TensorFlow
pads one pixel more on one side, here both sides get the same: equal shapes and equal work."""
from torch import nn


class Lenet(nn.Sequential):
    size, channels, weight_decay = 28, 1, 0.0

    def __init__(self, classes):
        super().__init__(
            nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(7 * 7 * 64, 1024), nn.ReLU(inplace=True), nn.Dropout(0.5),
            nn.Linear(1024, classes))


def norm(channels, epsilon, momentum, *after):
    return [nn.BatchNorm2d(channels, eps=epsilon, momentum=momentum), *after]


class MobilenetV1(nn.Sequential):
    size, channels, weight_decay = 224, 3, 4e-5

    def __init__(self, classes):
        def conv(cin, cout, kernel, stride, groups=1):
            return [nn.Conv2d(cin, cout, kernel, stride, kernel // 2, groups=groups, bias=False),
                    *norm(cout, 0.001, 0.0003, nn.ReLU6(inplace=True))]

        layers, width = conv(3, 32, 3, 2), 32
        for i, out in enumerate([64, 128, 128, 256, 256] + [512] * 6 + [1024, 1024], 1):
            stride = 2 if i in (2, 4, 6, 12) else 1
            layers += conv(width, width, 3, stride, groups=width) + conv(width, out, 1, 1)
            width = out
        super().__init__(*layers, nn.AvgPool2d(7), nn.Dropout(0.001), nn.Conv2d(1024, classes, 1),
                         nn.Flatten())


class Bottleneck(nn.Module):
    def __init__(self, cin, depth, stride):
        super().__init__()

        def conv(a, b, kernel, step, *after):
            return [nn.Conv2d(a, b, kernel, step, kernel // 2, bias=False),
                    *norm(b, 1.001e-5, 0.003, *after)]

        out = 4 * depth
        self.stride = stride
        self.shortcut = nn.Sequential(*conv(cin, out, 1, stride)) if cin != out else None
        self.body = nn.Sequential(*conv(cin, depth, 1, 1, nn.ReLU(inplace=True)),
                                  *conv(depth, depth, 3, stride, nn.ReLU(inplace=True)),
                                  *conv(depth, out, 1, 1))
        self.last = nn.ReLU(inplace=True)

    def forward(self, x):
        if self.shortcut is not None:
            shortcut = self.shortcut(x)
        else:
            shortcut = x if self.stride == 1 else x[:, :, ::self.stride, ::self.stride]
        return self.last(self.body(x) + shortcut)


class ResnetV150(nn.Sequential):
    """As in TF-Slim, a block's last unit has the stride."""
    size, channels, weight_decay = 224, 3, 1e-4

    def __init__(self, classes):
        layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), *norm(64, 1.001e-5, 0.003),
                  nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
        width = 64
        for block, (units, depth) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)], 1):
            for i in range(1, units + 1):
                layers.append(Bottleneck(width, depth, 2 if i == units and block < 4 else 1))
                width = 4 * depth
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Conv2d(2048, classes, 1), nn.Flatten())


# Name in Pumice -> module, batch of the benchmark, classes.
NETS = {
    "lenet": (Lenet, 128, 10),
    "resnet_v1_50": (ResnetV150, 8, 1000),
    "mobilenet_v1": (MobilenetV1, 16, 1001),
}
