"""Writes a golden file of a training step. The tensors are the logits, the loss, the moving
averages after the step, and the gradient of every trained variable. For each tensor the file holds
the norm in the float64 run (for a gradient at least SMALL times the norm of all gradients), the
error of the float32 run relative to that norm, and the float64 run's dot products with 16 random
vectors of +-1, which are drawn by name from the case's seed."""
import json
import math
import os

import numpy as np

from philox import signs

SMOOTHING = 0.1
AUX_WEIGHT = float(np.float32(0.4))
# Some gradients are zero by construction, for example of an offset that the next batch norm
# removes. They hold rounding errors only, so their norm is taken as this share of the norm of all
# gradients.
SMALL = 1e-4
LIMIT = 1e-3  # largest relative error of float32; with a larger one the case cannot be compared


def is_gradient(name):
    return not (name.endswith(("moving_mean", "moving_variance"))
                or name.startswith(("boxes_", "classes_")) or name in ("logits", "loss", "anchors"))


def dots(seed, name, t):
    """Dot products of the tensor t with the 16 vectors drawn for its name."""
    total, chunk = np.zeros(16), 1 << 18
    for first in range(0, len(t), chunk):
        part = t[first:first + chunk]
        total += part @ signs(seed, "golden/" + name, first, len(part))
    return total


def short(x):
    return float(f"{x:.7g}")


def errors(exact, single):
    """name -> (norm in float64, relative error of the float32 run) for each tensor."""
    gradients = math.sqrt(sum(float(t @ t) for k, t in exact.items() if is_gradient(k)))
    out = {}
    for k, t in exact.items():
        norm = float(np.linalg.norm(t))
        if is_gradient(k):
            norm = max(norm, SMALL * gradients)
        out[k] = norm, float(np.linalg.norm(single[k] - t)) / norm
    return out


def write(name, head, moves, exact, single):
    """Writes nets/NAME.json. head: the entries from which the test builds the case; moves: name ->
    {channel: thousandths}; exact, single: name -> float64 array of the float64 and the float32
    run."""
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
        f"{name}: seed {head['seed']}, {sum(map(len, moves.values()))} moves, "
        f"{len(tensors)} tensors, "
        f"float32 off by at most {worst:.1e}, loss {exact['loss'][0]:.6f}, "
        f"{os.path.getsize(path) / 1e3:.0f} kB",
        flush=True,
    )
