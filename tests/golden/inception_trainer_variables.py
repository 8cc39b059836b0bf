"""Makes tests/golden/inception_trainer_variables.json: the variables of inception_v3 in the
Inception trainer for several GPUs, in the order in which it creates them.

    python3 tests/golden/inception_trainer_variables.py

The trainer's rules for names: a convolution without a name is Conv in its scope, the next ones are
Conv_1, Conv_2. A fully connected layer without a name is FC. A convolution has weights and, in a
scope BatchNorm, beta, moving_mean and moving_variance (no gamma, no biases). The net is stated
below by its scopes, widths and windows for pictures of 299x299 and 1001 classes. The file is a list
of [scope, "conv" or "fc", shape of the weights]. The script checks the number of variables, 388,
and of trained parameters, 27,145,970."""
import json
import os

CLASSES = 1001


class Net:
    def __init__(self):
        self.layers, self.used = [], {}

    def add(self, kind, scope, name, default, shape):
        if name is None:
            n = self.used.get((scope, default), 0)
            self.used[scope, default] = n + 1
            name = f"{default}_{n}" if n else default
        self.layers.append([f"{scope}/{name}" if scope else name, kind, shape])

    def conv(self, scope, channels, filters, kernel, name=None):
        height, width = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        self.add("conv", scope, name, "Conv", [height, width, channels, filters])
        return filters

    def chain(self, scope, channels, *layers):
        for filters, kernel in layers:
            channels = self.conv(scope, channels, filters, kernel)
        return channels

    def fork(self, scope, channels, filters):
        return sum(self.conv(scope, channels, filters, kernel) for kernel in ((1, 3), (3, 1)))

    def fc(self, scope, channels, units, name=None):
        self.add("fc", scope, name, "FC", [channels, units])


def inception_v3():
    net = Net()
    c = 3
    for i, (filters, kernel) in enumerate(((32, 3), (32, 3), (64, 3), (80, 1), (192, 3))):
        c = net.conv("", c, filters, kernel, f"conv{i}")
    for name, pool in (("mixed_35x35x256a", 32), ("mixed_35x35x288a", 64),
                       ("mixed_35x35x288b", 64)):
        c = (net.chain(name + "/branch1x1", c, (64, 1))
             + net.chain(name + "/branch5x5", c, (48, 1), (64, 5))
             + net.chain(name + "/branch3x3dbl", c, (64, 1), (96, 3), (96, 3))
             + net.chain(name + "/branch_pool", c, (pool, 1)))
    name = "mixed_17x17x768a"
    c += (net.chain(name + "/branch3x3", c, (384, 3))
          + net.chain(name + "/branch3x3dbl", c, (64, 1), (96, 3), (96, 3)))
    for letter, n in zip("bcde", (128, 160, 160, 192)):
        name = "mixed_17x17x768" + letter
        c = (net.chain(name + "/branch1x1", c, (192, 1))
             + net.chain(name + "/branch7x7", c, (n, 1), (n, (1, 7)), (192, (7, 1)))
             + net.chain(name + "/branch7x7dbl", c, (n, 1), (n, (7, 1)), (n, (1, 7)), (n, (7, 1)),
                         (192, (1, 7)))
             + net.chain(name + "/branch_pool", c, (192, 1)))
    aux = net.conv("aux_logits", c, 128, 1, "proj")
    aux = net.conv("aux_logits", aux, 768, 5)
    net.fc("aux_logits", aux, CLASSES)
    name = "mixed_17x17x1280a"  # of 8x8; the name is the original's
    c += (net.chain(name + "/branch3x3", c, (192, 1), (320, 3))
          + net.chain(name + "/branch7x7x3", c, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3)))
    for name in ("mixed_8x8x2048a", "mixed_8x8x2048b"):
        one = net.chain(name + "/branch1x1", c, (320, 1))
        three = net.fork(name + "/branch3x3", net.chain(name + "/branch3x3", c, (384, 1)), 384)
        double = net.chain(name + "/branch3x3dbl", c, (448, 1), (384, 3))
        double = net.fork(name + "/branch3x3dbl", double, 384)
        c = one + three + double + net.chain(name + "/branch_pool", c, (192, 1))
    assert c == 2048
    net.fc("logits", c, CLASSES, "logits")
    return net.layers


def main():
    layers, variables, trained = inception_v3(), 0, 0
    for _, kind, shape in layers:
        elements = 1
        for n in shape:
            elements *= n
        variables += 4 if kind == "conv" else 2
        trained += elements + shape[-1]
    assert variables == 388 and trained == 27145970, (variables, trained)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "inception_trainer_variables.json")
    with open(path, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(x) for x in layers) + "\n]\n")


if __name__ == "__main__":
    main()
