"""Makes tests/golden/CASE.json: what one training step of a net gives, in PyTorch on the CPU.

    python3 tests/golden/make.py [CASE ...]

Needs torch and numpy. A step is run in float64 and once more in float32. Per tensor (logits, loss,
moving averages after the step, the gradient of every trained variable) the file keeps the float64
run's norm (of a gradient, at least SMALL of all gradients' norm), its dot products with 16 random
vectors of +-1, and the float32 run's error relative to that norm. Values are not kept: variables, images, labels and the +-1 vectors are drawn by name, here
and in the test, from Philox streams of the case's seed."""
import json
import math
import os
import platform
import sys

import numpy as np
import torch

import nets
import nets_slim
from philox import Stream, signs

# net, batch, height, width, channels, classes, shift of batch norm's offsets
CASES = {
    "lenet": ("lenet", 4, 28, 28, 1, 10, 0),
    "cifarnet": ("cifarnet", 4, 32, 32, 3, 10, 0),
    "mobilenet_v1": ("mobilenet_v1", 4, 64, 64, 3, 1001, 2),
    "resnet_v1_50": ("resnet_v1_50", 2, 96, 96, 3, 1000, 2),
    "resnet_v1_50_224": ("resnet_v1_50", 8, 224, 224, 3, 1000, 3),
    "alexnet_v2": ("alexnet_v2", 2, 195, 195, 3, 1000, 0),
    "overfeat": ("overfeat", 1, 231, 231, 3, 1000, 0),
    "vgg_16": ("vgg_16", 1, 224, 224, 3, 1000, 0),
    "inception_v1": ("inception_v1", 2, 64, 64, 3, 1001, 2),
    "inception_v2": ("inception_v2", 2, 64, 64, 3, 1001, 2),
    "inception_v3": ("inception_v3", 2, 171, 171, 3, 1001, 2),
    "inception_v4": ("inception_v4", 2, 171, 171, 3, 1001, 2),
    "inception_resnet_v2": ("inception_resnet_v2", 2, 171, 171, 3, 1001, 2),
    "resnet_v2_50": ("resnet_v2_50", 2, 96, 96, 3, 1001, 2),
    "mobilenet_v2": ("mobilenet_v2", 4, 64, 64, 3, 1001, 2),
    "mobilenet_v3_large": ("mobilenet_v3_large", 4, 64, 64, 3, 1001, 2),
    "mobilenet_v3_small": ("mobilenet_v3_small", 4, 64, 64, 3, 1001, 2),
    "mobilenet_edgetpu": ("mobilenet_edgetpu", 4, 64, 64, 3, 1001, 2),
}
SMOOTHING = 0.1
# A gradient that is exactly zero by construction (an offset that the next batch norm takes away)
# comes out as roundings: it counts as if it had this share of all gradients' norm.
SMALL = 1e-4
AUX_WEIGHT = float(np.float32(0.4))


def step(case, seed, dtype, moves=None):
    """name -> float64 array of every tensor that is kept, in a fixed order; and the moves."""
    net, batch, height, width, channels, classes, shift = CASES[case]
    images = 2 * Stream(seed, "golden/images").uniform(batch * height * width * channels) - 1
    images = torch.from_numpy(images).to(torch.float32).to(dtype)
    images = images.reshape(batch, height, width, channels).permute(0, 3, 1, 2)
    labels = (Stream(seed, "golden/labels").uniform(batch) * classes).astype(np.int64)

    v = nets.Variables(seed, shift, dtype, moves)
    made = getattr(nets if hasattr(nets, net) else nets_slim, net)(v, images, classes)
    logits, aux = made if isinstance(made, tuple) else (made, None)
    target = torch.full_like(logits, SMOOTHING / classes)
    target[range(batch), labels] += 1 - SMOOTHING
    loss = -(target * torch.log_softmax(logits, 1)).sum(1).mean()
    if aux is not None:
        loss = loss - AUX_WEIGHT * (target * torch.log_softmax(aux, 1)).sum(1).mean()
    loss.backward()
    tensors = {"logits": logits.detach(), "loss": loss.detach().reshape(1)}
    tensors.update(v.averages)
    tensors.update((name, t.grad) for name, t in v.trained.items())
    return {name: t.to(torch.float64).numpy().reshape(-1) for name, t in tensors.items()}, v.moves


def is_gradient(name):
    return not name.endswith(("moving_mean", "moving_variance")) and name not in ("logits", "loss")


def dots(seed, name, t):
    """t's products with the 16 vectors of its name."""
    total, chunk = np.zeros(16), 1 << 18
    for first in range(0, len(t), chunk):
        part = t[first:first + chunk]
        total += part @ signs(seed, "golden/" + name, first, len(part))
    return total


def short(x):
    return float(f"{x:.9g}")


def make(case):
    net, batch, height, width, channels, classes, shift = CASES[case]
    seed = 1
    while True:
        try:
            exact, moves = step(case, seed, torch.float64)
            break
        except nets.NearTie:
            seed += 1
    single, _ = step(case, seed, torch.float32, moves)
    tensors, worst = {}, 0
    gradients = math.sqrt(sum(float(t @ t) for name, t in exact.items() if is_gradient(name)))
    for name, t in exact.items():
        norm = float(np.linalg.norm(t))
        if is_gradient(name):
            norm = max(norm, SMALL * gradients)
        error = float(np.linalg.norm(single[name] - t)) / norm
        worst = max(worst, error)
        tensors[name] = [len(t), short(norm), float(f"{error:.2e}")] + [short(d) for d in dots(seed, name, t)]
    head = {
        "made_by": f"PyTorch {torch.__version__}, numpy {np.__version__}, "
                   f"Python {platform.python_version()}",
        "net": net, "batch": batch, "height": height, "width": width, "channels": channels,
        "classes": classes, "seed": seed, "shift": shift, "label_smoothing": SMOOTHING,
        "columns": "values, norm, relative error of float32, 16 dot products",
        "moves": {name: sum(([c, k] for c, k in m.items()), []) for name, m in moves.items()},
    }
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), case + ".json")
    with open(path, "w") as f:
        f.write("{\n" + "".join(f" {json.dumps(k)}: {json.dumps(v)},\n" for k, v in head.items()))
        f.write(' "tensors": {\n')
        f.write(",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in tensors.items()))
        f.write("\n }\n}\n")
    print(f"{case}: seed {seed}, {sum(map(len, moves.values()))} moves, {len(tensors)} tensors, float32 off by at most {worst:.1e}, loss "
          f"{exact['loss'][0]:.6f}, {os.path.getsize(path) / 1e3:.0f} kB")


if __name__ == "__main__":
    torch.set_num_threads(2)
    for case in sys.argv[1:] or CASES:
        make(case)
