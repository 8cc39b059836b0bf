#!/usr/bin/env python3
"""Makes torch_preprocessing.json: pictures prepared by torchvision's transforms of Pillow images,
in 8 bits, before mean and deviation are applied. Pillow 13 resizes some boxes along columns first,
which rounds differently; older versions never do.

    python3 tests/golden/torch_preprocessing.py     # torchvision 0.29, Pillow 12.3.0

A picture's values are (31 y^2 + 17 x y + 7 x + 53 c) mod 256. A case holds the picture's size, the
input's size, and resize_side for evaluation or a box (y, x, height, width) for training."""
import json
import os

import numpy as np
from PIL import Image
from torchvision.transforms import functional as F

CASES = [
    {"picture": [61, 83], "input": [24, 20], "side": 28},
    {"picture": [83, 61], "input": [16, 24], "side": 27},
    {"picture": [15, 11], "input": [24, 24], "side": 31},
    {"picture": [28, 39], "input": [28, 28], "side": 28},
    {"picture": [97, 300], "input": [21, 21], "side": 24},
    {"picture": [61, 83], "input": [20, 24], "box": [7, 11, 40, 33]},
    {"picture": [61, 83], "input": [20, 24], "box": [60, 80, 1, 3]},
    {"picture": [61, 83], "input": [20, 24], "box": [0, 0, 20, 83]},
]


def picture(height, width):
    y, x, c = np.mgrid[:height, :width, :3]
    return Image.fromarray(((31 * y * y + 17 * x * y + 7 * x + 53 * c) % 256).astype(np.uint8))


def prepared(case):
    im, size = picture(*case["picture"]), case["input"]
    if "box" in case:
        return F.resized_crop(im, *case["box"], size, F.InterpolationMode.BILINEAR, antialias=True)
    im = F.resize(im, case["side"], F.InterpolationMode.BILINEAR, antialias=True)
    return F.center_crop(im, size)


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_preprocessing.json")
    rows = [{**case, "values": np.asarray(prepared(case)).astype(int).ravel().tolist()}
            for case in CASES]
    with open(path, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(r, separators=(",", ":")) for r in rows) + "\n]\n")
    print(f"{path}: {len(rows)} cases, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
