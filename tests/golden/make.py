"""Makes tests/golden/nets/CASE.json: what one training step of a net gives, in PyTorch on the CPU. The nets
that tensorflow_nets.py has been run for are not here.

    python3 tests/golden/make.py [CASE ...]

Needs torch and numpy. A step is run in float64 and once more in float32; golden.py says what of it is
kept. Values are not: variables, images and labels are drawn by name, here and in the test, from Philox
streams of the case's seed."""
import platform
import sys

import numpy as np
import torch

import golden
import nets
import nets_slim
from golden import AUX_WEIGHT, SMOOTHING
from philox import Stream

# net, batch, height, width, channels, classes, shift of batch norm's offsets
CASES = {
    "cifarnet": ("cifarnet", 4, 32, 32, 3, 10, 0),
    "mobilenet_v1": ("mobilenet_v1", 4, 64, 64, 3, 1001, 2),
    "resnet_v1_50": ("resnet_v1_50", 2, 96, 96, 3, 1000, 2),
    "resnet_v1_50_224": ("resnet_v1_50", 8, 224, 224, 3, 1000, 3),
    "alexnet_v2": ("alexnet_v2", 2, 195, 195, 3, 1000, 0),
    "inception_v1": ("inception_v1", 2, 64, 64, 3, 1001, 2),
    "inception_v2": ("inception_v2", 2, 64, 64, 3, 1001, 2),
    "inception_v4": ("inception_v4", 2, 107, 107, 3, 1001, 2),
    "inception_resnet_v2": ("inception_resnet_v2", 2, 107, 107, 3, 1001, 2),
    "resnet_v2_50": ("resnet_v2_50", 2, 96, 96, 3, 1001, 2),
    "mobilenet_v2": ("mobilenet_v2", 4, 64, 64, 3, 1001, 2),
    "mobilenet_v3_large": ("mobilenet_v3_large", 4, 64, 64, 3, 1001, 2),
    "mobilenet_edgetpu": ("mobilenet_edgetpu", 4, 64, 64, 3, 1001, 2),
}


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
    golden.write(case, {
        "made_by": f"PyTorch {torch.__version__}, numpy {np.__version__}, "
                   f"Python {platform.python_version()}",
        "net": net, "options": {}, "batch": batch, "height": height, "width": width,
        "channels": channels, "classes": classes, "seed": seed, "shift": shift,
    }, moves, exact, single)


if __name__ == "__main__":
    torch.set_num_threads(2)
    for case in sys.argv[1:] or CASES:
        make(case)
