#!/usr/bin/env python3
"""Makes coco_masks.json: masks of polygons and runs, computed by COCO's own program, pycocotools.

    python3 tests/golden/coco_masks.py COCO_MINI     # pycocotools 2.0.11, NumPy 2.4.6

COCO_MINI is a folder with annotations/instances_{train,val}2017.json, whose masks are hashed, too.
The drawn masks use n >> 16 of the sequence n -> (n 1103515245 + 12345) mod 2^31. The file lists a
few masks; of the others it holds a SHA-256 for every hundred. A line of that sum is "TEXT AREA X Y
W H", the compressed text, the area and the bounding box, followed by the pixels, row by row.
overlaps: a SHA-256 for every hundred pairs of masks of equal size, with a line "%.17g %.17g" for
each: the overlap with an object, then with a crowd."""

import hashlib
import json
import os
import sys
from importlib.metadata import version

import numpy as np
from pycocotools import mask as masks

from panoptic_metrics import Numbers

COUNT, PER_SUM, LISTED, PAIRS = 10000, 100, 24, 4000


def size(r, index):
    most = 700 if index % 100 == 99 else 64
    return 1 + r(most), 1 + r(most)


def polygon(r, height, width):
    """Draws corners in hundredths of a pixel: some on whole pixels, some repeated, some outside."""
    points = []
    whole = r(4) == 0
    for k in range(3 + r(12)):
        x = (r(width * 7) * 20 + r(20) - 20 * width) / 100
        y = (r(height * 7) * 20 + r(20) - 20 * height) / 100
        if whole:
            x, y = float(int(x)), float(int(y))
        again = r(8) == 0
        points += points[-2:] if again and k else [x, y]
    return points


def drawn(index):
    """Draws mask `index` from polygons, pixels or runs."""
    r = Numbers(index + 1)
    height, width = size(r, index)
    return mask_of(r, index % 4, height, width)


def overlaps_of(index):
    """Draws two masks of the same size. Returns their overlaps as an object and as a crowd. They
    are encoded again: pycocotools' iou stops where both masks have an empty run."""
    r = Numbers(100001 + index)
    height, width = size(r, index)
    pair = [mask_of(r, kind, height, width) for kind in (index % 4, index // 4 % 4)]
    pair = [masks.encode(np.asfortranarray(masks.decode(mask))) for mask in pair]
    return [float(masks.iou(pair[:1], pair[1:], [crowd])[0, 0]) for crowd in (0, 1)]


def mask_of(r, kind, height, width):
    if kind < 2:
        parts = [polygon(r, height, width) for _ in range(1 + kind * r(3))]
        return masks.merge(masks.frPyObjects(parts, height, width))
    if kind == 2:
        often = 1 + r(8)
        pixels = [[r(8) < often for _ in range(width)] for _ in range(height)]
        return masks.encode(np.asfortranarray(np.array(pixels, np.uint8)))
    left, runs = height * width, []
    while left:
        runs.append(min(left, r(1 + height * 2)))
        left -= runs[-1]
    return masks.frPyObjects({"counts": runs, "size": [height, width]}, height, width)


def line(mask):
    text = mask["counts"].decode() if isinstance(mask["counts"], bytes) else mask["counts"]
    box = " ".join("%d" % v for v in masks.toBbox(mask))
    return "%s %d %s" % (text, masks.area(mask), box)


def add(sums, mask):
    sums.update(line(mask).encode() + b"\n")
    sums.update(masks.decode(mask).tobytes(order="C"))


def real(folder, name):
    """The sum of all annotations of a file, in their order."""
    with open(os.path.join(folder, "annotations", name)) as f:
        data = json.load(f)
    sizes = {im["id"]: (im["height"], im["width"]) for im in data["images"]}
    sums = hashlib.sha256()
    for a in data["annotations"]:
        height, width = sizes[a["image_id"]]
        mask = masks.frPyObjects(a["segmentation"], height, width)
        add(sums, masks.merge(mask) if isinstance(mask, list) else mask)
    return {"file": name, "count": len(data["annotations"]), "sum": sums.hexdigest()}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sums, listed, overlaps = [], [], []
    for index in range(COUNT):
        if index % PER_SUM == 0:
            sums.append(hashlib.sha256())
        mask = drawn(index)
        add(sums[-1], mask)
        if len(listed) < LISTED:
            listed.append(line(mask))
    for index in range(PAIRS):
        if index % PER_SUM == 0:
            overlaps.append(hashlib.sha256())
        overlaps[-1].update(b"%.17g %.17g\n" % tuple(overlaps_of(index)))
    out = {
        "pycocotools": version("pycocotools"), "numpy": np.__version__, "per_sum": PER_SUM,
        "listed": listed, "sums": [s.hexdigest()[:16] for s in sums],
        "overlaps": [s.hexdigest()[:16] for s in overlaps],
        "real": [real(sys.argv[1], "instances_%s2017.json" % s) for s in ("train", "val")],
    }
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "coco_masks.json")
    with open(path, "w") as f:
        json.dump(out, f, indent=0, separators=(",", ":"))
        f.write("\n")
    print(f"{path}: {COUNT} masks, {PAIRS} pairs", file=sys.stderr)


if __name__ == "__main__":
    main()
