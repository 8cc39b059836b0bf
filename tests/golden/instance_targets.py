#!/usr/bin/env python3
"""Makes instance_targets.json: training targets of instances, computed by Panoptic-DeepLab's own
program from scenes of boxes.

    python3 tests/golden/instance_targets.py CHECKOUT   # panoptic-deeplab cf8e20bb, NumPy 2.4

A scene is a list of boxes [y, x, height, width, class, number], painted over each other on void
(class 255). The number is 0 for a crowd and -1 for stuff. Classes 11..18 are things; a segment's id
is class * 1000 + number. The file holds for each array its sum and its products with three vectors;
element i of vector k is ((2654435761 (i + 1) + 40503 k (i + 7)) mod 2^32) / 2^32 - 1/2. "largest"
is the sum of magnitudes. The loss of the classes ignores crowds (ignore_crowd_in_semantic): their
weight is 0."""
import json
import pathlib
import sys

import numpy as np


def scene(seed, height, width, count):
    r = np.random.default_rng(seed)
    boxes = [[0, 0, height, width, int(r.choice([0, 2, 8])), -1]]
    for n in range(count):
        label = int(r.choice([0, 10, 11, 12, 13, 18, 18, 255]))
        number = -1 if label in (0, 10, 255) else 0 if r.random() < 0.2 else n + 1
        boxes.append(
            [
                int(r.integers(-15, height)),
                int(r.integers(-15, width)),
                int(r.integers(1, 80)),
                int(r.integers(1, 80)),
                label,
                number,
            ]
        )
    return boxes


def paint(height, width, boxes):
    ids = np.zeros((height, width), np.int64)
    segments = {}
    for y, x, h, w, label, number in boxes:
        i = 0 if label == 255 else label + 1 if number < 0 else label * 1000 + number
        ids[max(y, 0):max(y + h, 0), max(x, 0):max(x + w, 0)] = i
        if i:
            segments[i] = {"id": i, "category_id": label, "iscrowd": int(number == 0)}
    return ids, segments


def summary(a):
    a = np.asarray(a, np.float64).ravel()
    i = np.arange(a.size, dtype=np.uint64)
    out = {"sum": a.sum(), "largest": np.abs(a).sum(), "dots": []}
    for k in range(3):
        v = (2654435761 * (i + 1) + 40503 * k * (i + 7)) % (1 << 32)
        out["dots"].append(float((a * (v / 2.0 ** 32 - 0.5)).sum()))
    return out


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "segmentation/data/transforms"))
    from target_transforms import PanopticTargetGenerator

    out = []
    for seed, height, width, count in [
        (1, 90, 120, 12),
        (2, 61, 47, 25),
        (3, 7, 200, 9),
        (4, 128, 97, 40),
    ]:
        boxes = scene(seed, height, width, count)
        ids, segments = paint(height, width, boxes)
        make = PanopticTargetGenerator(
            255,
            lambda x: x,
            list(range(11, 19)),
            8,
            ignore_stuff_in_offset=True,
            small_instance_area=1000,
            small_instance_weight=3,
            ignore_crowd_in_semantic=True,
        )
        made = {
            k: v.numpy()
            for k, v in make(ids, list(segments.values())).items()
            if hasattr(v, "numpy")
        }
        weights = np.where((made["semantic"] == 255) & (ids > 0), 0, made["semantic_weights"])
        out.append(
            {
                "height": height,
                "width": width,
                "boxes": boxes,
                "center": summary(made["center"]),
                "center_weight": summary(made["center_weights"]),
                "offset": summary(made["offset"].transpose(1, 2, 0)),
                "offset_weight": summary(np.repeat(made["offset_weights"][..., None], 2, -1)),
                "semantic_weight": summary(weights),
            }
        )
    path = pathlib.Path(__file__).with_suffix(".json")
    path.write_text("[\n" + ",\n".join(json.dumps(s) for s in out) + "\n]\n")


if __name__ == "__main__":
    main()
