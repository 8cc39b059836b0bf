"""Drawn numbers for goldens that PyTorch computes, and how the goldens are written.

The C tests draw the same numbers. They are v = n >> 16 of the sequence
n -> (n 1103515245 + 12345) mod 2^31: whole numbers of 0 to 32767, so float32 holds them exactly,
also when they are scaled by a power of two."""
import json
import os
import re

import torch


class Numbers:
    """Numbers(seed)(*shape) draws a tensor of the next numbers of the sequence."""

    def __init__(self, seed):
        self.n = seed

    def __call__(self, *shape):
        count = 1
        for s in shape:
            count *= s
        out = []
        for _ in range(count):
            self.n = (self.n * 1103515245 + 12345) % 2**31
            out.append(self.n >> 16)
        return torch.tensor(out, dtype=torch.float64).reshape(shape)


def flat(v):
    """A tensor's values with 9 digits, which float32 needs."""
    return [float(f"{x:.9g}") if x else 0 for x in v.detach().flatten().tolist()]


def weighted(loss, options):
    """The loss times the layer's option weight."""
    for word in options.split():
        if word.startswith("weight="):
            loss = loss * float(word[7:])
    return loss


def write(name, library, version, head, cases):
    """Writes tests/golden/NAME, with a line for each case."""
    made_by = f"{library} {re.match('[0-9.]+', version)[0]}"
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    text = json.dumps({"made_by": made_by, **head, "cases": cases}, separators=(",", ":"))
    with open(path, "w") as f:
        f.write(text.replace('{"options"', '\n{"options"') + "\n")
    print(f"{len(cases)} cases, {os.path.getsize(path) / 1e3:.0f} kB")
