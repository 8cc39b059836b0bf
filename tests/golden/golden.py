"""What a golden file keeps of a training step: per tensor (logits, loss, moving averages after the step,
the gradient of every trained variable) the float64 run's norm (of a gradient, at least SMALL of all
gradients' norm), the float32 run's error relative to that norm, and the float64 run's dot products with
16 random vectors of +-1, drawn by name from the case's seed."""
import json
import math
import os

import numpy as np

from philox import signs

SMOOTHING = 0.1
AUX_WEIGHT = float(np.float32(0.4))
# A gradient that is exactly zero by construction (an offset that the next batch norm takes away)
# comes out as roundings: it counts as if it had this share of all gradients' norm.
SMALL = 1e-4
LIMIT = 1e-3  # of a relative error: beyond, float32 cannot say what is right


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
    return float(f"{x:.7g}")


def errors(exact, single):
    """name -> (norm, relative error of the float32 run) of each tensor of both runs."""
    gradients = math.sqrt(sum(float(t @ t) for k, t in exact.items() if is_gradient(k)))
    out = {}
    for k, t in exact.items():
        norm = float(np.linalg.norm(t))
        if is_gradient(k):
            norm = max(norm, SMALL * gradients)
        out[k] = norm, float(np.linalg.norm(single[k] - t)) / norm
    return out


def write(name, head, moves, exact, single):
    """nets/NAME.json. head: what the test needs to build the case; moves: name -> {channel:
    thousandths}; exact and single: name -> float64 array of both runs."""
    tensors, both = {}, errors(exact, single)
    worst = max(error for _, error in both.values())
    for k, (norm, error) in both.items():
        products = [short(d) for d in dots(head["seed"], k, exact[k])]
        tensors[k] = [len(exact[k]), short(norm), float(f"{error:.2e}")] + products
    if worst > LIMIT:
        raise SystemExit(
            f"{name}: both runs differ by {worst:.1e}: something is random or near a kink"
        )
    head = {**head, "label_smoothing": head.get("label_smoothing", SMOOTHING),
            "columns": "values, norm, relative error of float32, 16 dot products",
            "moves": {k: sum(([i, m[i]] for i in sorted(m)), []) for k, m in moves.items()}}
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nets", name + ".json")
    with open(path, "w") as f:
        f.write("{\n" + "".join(f" {json.dumps(k)}: {json.dumps(v)},\n" for k, v in head.items()))
        f.write(' "tensors": {\n')
        f.write(",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in tensors.items()))
        f.write("\n }\n}\n")
    print(
        f"{name}: seed {head['seed']}, {sum(map(len, moves.values()))} moves, {len(tensors)} tensors, "
        f"float32 off by at most {worst:.1e}, loss {exact['loss'][0]:.6f}, "
        f"{os.path.getsize(path) / 1e3:.0f} kB",
        flush=True,
    )
