#!/usr/bin/env python3
"""Makes instance_losses.json: the losses of classes, centres and offsets and their gradients,
computed from their definition with PyTorch in double precision.

    python3 tests/golden/instance_losses.py       # PyTorch 2.15.0

Values are those of torch_numbers.py, scaled by powers of two."""
import json
import os
import sys

import torch
import torch.nn.functional as F

from torch_numbers import Numbers

N, H, W, MAP_H, MAP_W, CLASSES, IGNORE = 2, 17, 25, 5, 7, 3, 255


def inputs():
    r = Numbers(7)
    maps = {
        "semantic": r(N, MAP_H, MAP_W, CLASSES) / 8192 - 2,
        "center": r(N, MAP_H, MAP_W, 1) / 16384 - 0.5,
        "offset": r(N, MAP_H, MAP_W, 2) / 4096 - 4,
    }
    labels = (r(N, H, W) % 4).long()
    labels[labels == 3] = IGNORE
    return maps, {
        "labels": labels,
        "center": r(N, H, W, 1) / 32768,
        "center_weight": (r(N, H, W, 1) % 4 != 0).double(),
        "offset": r(N, H, W, 2) / 1024 - 16,
        "offset_weight": (r(N, H, W, 1) % 2).expand(N, H, W, 2),
        "semantic_weight": 1 + r(N, H, W) % 2 * 2,
    }


def enlarged(x):
    return F.interpolate(
        x.permute(0, 3, 1, 2), (H, W), mode="bilinear", align_corners=True
    ).permute(0, 2, 3, 1)


def semantic(logits, f, weighted, top_k, by_k):
    loss = F.cross_entropy(enlarged(logits).permute(0, 3, 1, 2), f["labels"], ignore_index=IGNORE,
                           reduction="none").reshape(-1)
    if weighted:
        loss = loss * f["semantic_weight"].reshape(-1)
    if top_k < 1:
        loss = torch.topk(loss, int(top_k * loss.numel())).values
    elif not by_k:
        return loss.sum() / (f["labels"] != IGNORE).sum()
    return loss.mean() if by_k else loss.sum() / (loss != 0).sum()


def reference(maps, f, top_k, by_k, center_weight, offset_weight):
    c = f["center_weight"] * (enlarged(maps["center"]) - f["center"]) ** 2
    o = (
        f["offset_weight"]
        * (enlarged(maps["offset"]) * ((H - 1) // (MAP_H - 1)) - f["offset"]).abs()
    )
    return (semantic(maps["semantic"], f, True, top_k, by_k),
            center_weight * c.sum() / f["center_weight"].sum(),
            offset_weight * o.sum() / f["offset_weight"].sum())


def seed4(maps, f, top_k, by_k, center_weight, offset_weight):
    c = (((enlarged(maps["center"]) - f["center"]) ** 2)).mean(0)
    o = (enlarged(maps["offset"]) - f["offset"]).abs().mean(0)
    return (
        semantic(maps["semantic"], f, False, top_k, by_k),
        center_weight * c.sum() / (c != 0).sum(),
        offset_weight * o.sum() / (o != 0).sum(),
    )


def main():
    cases = []
    for form, top_k, by_k, center, offset in (
        (reference, 0.2, True, 200, 0.01),
        (reference, 1, False, 50, 2),
        (reference, 1, True, 200, 0.01),
        (seed4, 0.25, False, 1, 1),
    ):
        maps, f = inputs()
        for m in maps.values():
            m.requires_grad_()
        losses = form(maps, f, top_k, by_k, center, offset)
        sum(losses).backward()
        cases.append(
            {
                "mode": form.__name__,
                "top_k_percent": top_k,
                "by_k": by_k,
                "center_weight": center,
                "offset_weight": offset,
                "losses": [float(v.detach()) for v in losses],
                "gradients": {
                    k: [float(f"{v:.9g}") for v in m.grad.reshape(-1)] for k, m in maps.items()
                },
            }
        )
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "instance_losses.json")
    with open(path, "w") as f:
        f.write('{"torch":"%s","cases":[\n' % torch.__version__.split("+")[0])
        f.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]}\n")
    print(f"{path}: {len(cases)} cases", file=sys.stderr)


main()
