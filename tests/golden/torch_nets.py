#!/usr/bin/env python3
"""Makes torch/NAME.json: results of torchvision's and timm's own nets with weights drawn by name.

    python3 tests/golden/torch_nets.py [NAME ...]   # torch 2.15, torchvision 0.29, timm 1.0.31

Every tensor of the state is drawn from the Philox stream of its name, so the file holds no weights.
It holds names and shapes, for each batch norm the size of its inputs (a power of 2, by which its
moving averages are drawn), and the logits of a batch in double precision with the error of the
float32 run. Cases that train also hold the loss, gradients and moving averages of a step: norm,
error of float32 and 16 products with vectors of +-1. In these cases no activation is near a kink
and no pool near a tie, where a tiny error would change a gradient by much. The pictures are chosen
for that; with "apart", offsets of batch norm keep each channel on one side of relu6's kinks."""
import json
import math
import os
import sys

import numpy as np
import timm
import torch
import torchvision
from torch import nn
from torch.nn import functional as F

from philox import Stream, signs

SEED = 20
CLASSES = 10
CLEAR = 4e-6  # least distance from kinks and ties
SMALL = 1e-4  # of all gradients' norm; a gradient with a smaller norm holds rounding errors only

# name: (their net, ours, options, size, batch, trains)
TORCH = {"conventions": "torch"}
TIMM_V3 = {**TORCH, "batch_norm_epsilon": 1e-5, "batch_norm_decay": 0.9}
CASES = {
    "resnet18": ("torchvision/resnet18", "resnet_v1_18", TORCH, 64, 2, False),
    "resnet18_step": ("torchvision/resnet18", "resnet_v1_18", TORCH, 32, 8, True),
    "resnet34": ("torchvision/resnet34", "resnet_v1_34", TORCH, 64, 2, False),
    "resnet50": ("torchvision/resnet50", "resnet_v1_50", TORCH, 64, 2, False),
    "resnet50_odd": ("torchvision/resnet50", "resnet_v1_50", TORCH, 97, 2, False),
    "resnet101": ("torchvision/resnet101", "resnet_v1_101", TORCH, 64, 2, False),
    "resnet152": ("torchvision/resnet152", "resnet_v1_152", TORCH, 64, 2, False),
    "mobilenet_v2": ("torchvision/mobilenet_v2", "mobilenet_v2", TORCH, 96, 2, False),
    "mobilenet_v2_step": ("torchvision/mobilenet_v2", "mobilenet_v2", TORCH, 96, 8, True),
    "mobilenet_v3_large": (
        "torchvision/mobilenet_v3_large",
        "mobilenet_v3_large",
        TORCH,
        96,
        2,
        False,
    ),
    "mobilenet_v3_small": (
        "torchvision/mobilenet_v3_small",
        "mobilenet_v3_small",
        TORCH,
        96,
        2,
        False,
    ),
    "vgg11": ("torchvision/vgg11", "vgg_a", TORCH, 224, 2, False),
    "vgg16": ("torchvision/vgg16", "vgg_16", TORCH, 224, 2, False),
    "vgg19": ("torchvision/vgg19", "vgg_19", TORCH, 224, 2, False),
    "inception_v3": ("torchvision/inception_v3", "inception_v3", TORCH, 299, 2, False),
    "timm_resnet50": ("timm/resnet50", "resnet_v1_50", TORCH, 64, 2, False),
    "timm_mobilenetv2_100": ("timm/mobilenetv2_100", "mobilenet_v2", TORCH, 96, 2, False),
    "timm_mobilenetv3_large_100": (
        "timm/mobilenetv3_large_100",
        "mobilenet_v3_large",
        TIMM_V3,
        96,
        2,
        False,
    ),
    "timm_mobilenetv3_small_100": (
        "timm/mobilenetv3_small_100",
        "mobilenet_v3_small",
        TIMM_V3,
        96,
        2,
        False,
    ),
    "timm_vgg11": ("timm/vgg11", "vgg_a", TORCH, 224, 2, False),
    "timm_inception_v3": (
        "timm/inception_v3",
        "inception_v3",
        {**TORCH, "aux_head": False},
        139,
        2,
        False,
    ),
}


def make(source):
    library, name = source.split("/")
    if library == "timm":
        return timm.create_model(name, pretrained=False, num_classes=CLASSES)
    more = {"init_weights": False} if name.startswith(("vgg", "inception")) else {}
    return torchvision.models.get_model(name, weights=None, num_classes=CLASSES, **more)


def drawn(name, shape, size=0, apart=False):
    """Draws the tensor `name`. size: magnitude of the batch norm's inputs, as a power of 2. apart:
    gamma and beta keep each channel on one side of the kinks: of five channels three lie between
    them, one above and one below."""
    shape, u = tuple(shape), Stream(SEED, "torch/" + name).uniform(math.prod(shape))
    if len(shape) > 1:
        t = (2 * u - 1) * math.sqrt(6 / math.prod(shape[1:]))
    elif name.endswith(".running_var"):
        t = 4.0**size * (0.5 + u)
    elif name.endswith(".running_mean"):
        t = 2.0**size * (u - 0.5)
    elif apart:
        sides = np.array([3, 3, 3, 9, -3])[np.arange(len(u)) % 5]
        t = 0.1 + 0.4 * u if name.endswith(".weight") else sides + 0.2 * u - 0.1
    else:
        t = 0.5 + u if name.endswith(".weight") else u - 0.5
    return torch.from_numpy(t.astype(np.float32).astype(np.float64).reshape(shape))


def pictures(index, batch, size):
    u = Stream(SEED, f"torch/images/{index}").uniform(batch * size * size * 3)
    x = (4 * u - 2).astype(np.float32).astype(np.float64).reshape(batch, size, size, 3)
    return torch.from_numpy(x.transpose(0, 3, 1, 2).copy())


def fill(model, x, apart=False):
    """Draws the weights, then, in one forward pass, moving averages of the size of each batch
    norm's inputs. Returns name -> size."""
    sizes = {}
    norms = {n: m for n, m in model.named_modules() if isinstance(m, nn.BatchNorm2d)}

    def measure(name):
        def hook(m, inputs):
            sizes[name] = round(math.log2(float(inputs[0].std())))
            m.running_mean.copy_(drawn(name + ".running_mean", m.running_mean.shape, sizes[name]))
            m.running_var.copy_(drawn(name + ".running_var", m.running_var.shape, sizes[name]))
        return hook

    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(drawn(name, p.shape, apart=apart and name.rpartition(".")[0] in norms))
        hooks = [m.register_forward_pre_hook(measure(n)) for n, m in norms.items()]
        model(x)
        for h in hooks:
            h.remove()
        for name, m in norms.items():  # those of an auxiliary head, which evaluation does not run
            if name not in sizes:
                sizes[name] = 0
                m.running_mean.copy_(drawn(name + ".running_mean", m.running_mean.shape))
                m.running_var.copy_(drawn(name + ".running_var", m.running_var.shape))
    return sizes


def clearance(model, x):
    """The least distance of an activation's input from a kink, or of a pool's winner from the
    second."""
    least = [math.inf]

    def kinks(m, inputs):
        z = inputs[0]
        least[0] = min(least[0], float(z.abs().min()))
        if isinstance(m, nn.ReLU6):
            least[0] = min(least[0], float((z - 6).abs().min()))

    def ties(m, inputs):
        x = F.pad(inputs[0], (m.padding,) * 4, value=-1)
        n, c = x.shape[:2]
        top = F.unfold(x, m.kernel_size, stride=m.stride).reshape(n, c, m.kernel_size**2, -1)
        top = top.topk(2, dim=2).values
        gap = (top[:, :, 0] - top[:, :, 1])[top[:, :, 0] > 0]
        least[0] = min(least[0], float(gap.min()))

    hooks = [m.register_forward_pre_hook(kinks if isinstance(m, (nn.ReLU, nn.ReLU6)) else ties)
             for m in model.modules() if isinstance(m, (nn.ReLU, nn.ReLU6, nn.MaxPool2d))]
    with torch.no_grad():
        model(x)
    for h in hooks:
        h.remove()
    return least[0]


def step(model, state, x, labels):
    """Loss, gradients and moving averages of one step from `state`: name -> array."""
    model.load_state_dict(state)
    model.train()
    model.zero_grad()
    loss = F.cross_entropy(model(x), labels)
    loss.backward()
    out = {"loss": loss.detach().reshape(1)}
    out.update({n: p.grad for n, p in model.named_parameters()})
    out.update({n: b for n, b in model.named_buffers() if "running" in n})
    return {n: t.detach().double().numpy().ravel().copy() for n, t in out.items()}


def short(x, digits=7):
    return float(f"{x:.{digits}g}")


def rows(exact, single):
    """The entries of golden.py for each tensor, by name."""
    gradients = math.sqrt(
        sum(float(t @ t) for n, t in exact.items() if n.endswith(("weight", "bias")))
    )
    out = {}
    for n, t in exact.items():
        norm = float(np.linalg.norm(t))
        if n.endswith(("weight", "bias")):
            norm = max(norm, SMALL * gradients)
        error = float(np.linalg.norm(single[n] - t)) / norm
        out[n] = [len(t), short(norm), float(f"{error:.2e}")]
        out[n] += [short(float(d)) for d in t @ signs(SEED, "torch/vectors/" + n, 0, len(t))]
    return out


def train_case(model, batch, size):
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.p = 0
    state = {k: v.clone() for k, v in model.state_dict().items()}
    labels = torch.from_numpy(
        (Stream(SEED, "torch/labels").uniform(batch) * CLASSES).astype(np.int64)
    )
    model.train()
    for index in range(1, 3000):
        x = pictures(index, batch, size)
        model.load_state_dict(state)
        if clearance(model, x) > CLEAR:
            break
    else:
        raise SystemExit("no pictures without a kink near")
    exact = step(model, state, x, labels)
    state = {k: v.float() if v.is_floating_point() else v for k, v in state.items()}
    single = step(model.float(), state, x.float(), labels)
    return index, rows(exact, single)


def write(name):
    source, net, options, size, batch, trains = CASES[name]
    model = make(source).double().eval()
    x = pictures(0, batch, size)
    apart = trains and any(isinstance(m, nn.ReLU6) for m in model.modules())
    sizes = fill(model, x, apart)
    head = {"source": source, "net": net, "options": options, "size": size, "batch": batch,
            "classes": CLASSES, "seed": SEED, "apart": apart}
    tensors = {n: list(t.shape) for n, t in model.state_dict().items() if "num_batches" not in n}
    if trains:
        head["images"], kept = train_case(model, batch, size)
        worst = max(r[2] for r in kept.values())
        if worst > 1e-3:
            raise SystemExit(f"{name}: float32 is off by {worst:.1e}: a kink is near")
    else:
        with torch.no_grad():
            logits = model(x).numpy()
            single = model.float()(x.float()).double().numpy()
        worst = float(np.abs(single - logits).max() / np.abs(logits).max())
        head["logits_error"] = float(f"{worst:.2e}")
        head["logits"] = [short(float(v), 9) for v in logits.ravel()]
        spread = float(np.abs(logits[0] - logits[1]).max() / np.abs(logits).max())
        if spread < 0.002:
            raise SystemExit(f"{name}: two pictures' logits differ by {spread:.3f} only")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch", name + ".json")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    parts = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in head.items()]
    parts += [' "sizes": ' + json.dumps(sizes, separators=(",", ":"))]
    parts += [' "tensors": {\n' + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}"
                                              for k, v in tensors.items()) + "\n }"]
    if trains:
        parts += [' "step": {\n' + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}"
                                               for k, v in kept.items()) + "\n }"]
    with open(path, "w") as f:
        f.write("{\n" + ",\n".join(parts) + "\n}\n")
    print(f"{name}: {len(tensors)} tensors, float32 off by at most {worst:.1e}, "
          f"{os.path.getsize(path) / 1e3:.0f} kB", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)  # gives the same bits on every machine
    for case in sys.argv[1:] or CASES:
        write(case)
