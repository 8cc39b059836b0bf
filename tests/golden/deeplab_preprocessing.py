#!/usr/bin/env python3
"""Makes deeplab_preprocessing.json: pictures and label maps prepared by DeepLab's input rules, with
TensorFlow's own resizing (align_corners), scales (linspace) and float32 products.

    python3 tests/golden/deeplab_preprocessing.py       # TensorFlow 2.12.1

A picture's values are (31 y^2 + 17 x y + 7 x + 53 c) mod 256, a label map's (5 y + 3 x + x y) mod
23. The rules between TensorFlow's operations are written here from their description. In the file,
"sizes" holds many sizes after min_resize alone, "cases" whole pictures, "scales" the lists from
which a scale is drawn."""
import itertools
import json
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

IGNORE = 255
MEANS = [123.15, 115.90, 103.06]
ROWS = {"deeplab": [127.5] * 3, "deeplab_means": MEANS, "deeplab_means_grey": [127.5] * 3}
resize = tf.compat.v1.image


def picture(height, width):
    y, x, c = np.mgrid[:height, :width, :3]
    return tf.constant((31 * y * y + 17 * x * y + 7 * x + 53 * c) % 256, tf.float32)


def label(height, width):
    y, x = np.mgrid[:height, :width]
    return tf.constant((5 * y + 3 * x + x * y) % 23, tf.int32)[..., None]


def both(im, lb, size):
    return (resize.resize_bilinear(im[None], size, align_corners=True)[0],
            resize.resize_nearest_neighbor(lb[None], size, align_corners=True)[0])


def range_size(o, height, width):
    """Height and width after resizing; unchanged without min_resize."""
    if "min_resize" not in o:
        return [height, width]
    h, w = tf.constant(height, tf.float32), tf.constant(width, tf.float32)
    most, factor = o.get("max_resize"), o.get("resize_factor")
    if most and factor:
        most -= (most - 1) % factor
    up = tf.constant(o["min_resize"], tf.float32) / tf.minimum(h, w)
    size = [int(tf.floor(h * up)), int(tf.floor(w * up))]
    if most and max(size) > most:
        down = tf.constant(most, tf.float32) / tf.maximum(h, w)
        size = [int(tf.floor(h * down)), int(tf.floor(w * down))]
    if factor:
        size = [n + (factor - (n - 1) % factor) % factor for n in size]
    return size if o.get("keep_aspect_ratio", True) else [max(size)] * 2


def scales(o):
    lo, hi, step = (o.get(k, d) for k, d in
                    (("min_scale", 0.5), ("max_scale", 2), ("scale_step", 0.25)))
    if lo == hi:
        return [np.float32(lo)]
    return tf.linspace(tf.constant(lo, tf.float32), tf.constant(hi, tf.float32),
                       int((hi - lo) / step + 1)).numpy()


def prepared(case):
    o, (ch, cw) = case["options"], case["input"]
    mean = tf.constant(ROWS[case["name"]], tf.float32)
    im, lb = picture(*case["picture"]), label(*case["picture"])
    if "min_resize" in o:
        im, lb = both(im, lb, range_size(o, *case["picture"]))
    d = case.get("draws")
    if d:
        if o.get("scale_step", 0.25) == 0:
            scale = tf.constant(o["min_scale"] + d["side"] * (o["max_scale"] - o["min_scale"]),
                                tf.float32)
        else:
            all_scales = scales(o)
            scale = tf.constant(all_scales[int(d["side"] * len(all_scales))])
        im, lb = both(im, lb, tf.cast(tf.cast(tf.shape(im)[:2], tf.float32) * scale, tf.int32))
    pad = [[0, max(ch - im.shape[0], 0)], [0, max(cw - im.shape[1], 0)], [0, 0]]
    im = tf.pad(im - mean, pad) + mean
    lb = tf.pad(lb, pad, constant_values=IGNORE)
    if d:
        y = int(d["crop_y"] * (im.shape[0] - ch + 1))
        x = int(d["crop_x"] * (im.shape[1] - cw + 1))
        im, lb = im[y:y + ch, x:x + cw], lb[y:y + ch, x:x + cw]
        if d["flip"]:
            im, lb = im[:, ::-1], lb[:, ::-1]
    im = im * (2.0 / 255.0) - 1.0 if case["name"] == "deeplab" else im - tf.constant(MEANS)
    assert im.shape == (ch, cw, 3) and lb.shape == (ch, cw, 1)
    return im.numpy(), lb.numpy()


def draws(side, y, x, flip):
    return {"side": side, "crop_y": y, "crop_x": x, "flip": flip}


CASES = [
    {"name": "deeplab", "picture": [9, 11], "input": [9, 13], "options": {}},
    {"name": "deeplab_means", "picture": [9, 11], "input": [12, 11], "options": {}},
    {"name": "deeplab_means_grey", "picture": [7, 6], "input": [9, 9], "options": {}},
    {
        "name": "deeplab",
        "picture": [15, 20],
        "input": [17, 21],
        "options": {"min_resize": 21, "max_resize": 21, "resize_factor": 4},
    },
    {
        "name": "deeplab",
        "picture": [20, 15],
        "input": [17, 17],
        "options": {
            "min_resize": 9,
            "max_resize": 16,
            "resize_factor": 4,
            "keep_aspect_ratio": False,
        },
    },
    {"name": "deeplab", "picture": [31, 5], "input": [14, 3], "options": {"min_resize": 2}},
    {"name": "deeplab", "picture": [2, 2], "input": [5, 5], "options": {"min_resize": 5}},
    {"name": "deeplab", "picture": [1, 3], "input": [3, 9], "options": {"min_resize": 3}},
] + [
    {"name": name, "picture": [13, 17], "input": [11, 9], "options": options, "draws": draws(*d)}
    for name, options, d in (
        ("deeplab", {}, (0.01, 0.5, 0.5, False)),
        ("deeplab", {}, (0.2, 0.3, 0.99, True)),
        ("deeplab_means", {}, (0.3, 0.99, 0.0, True)),
        ("deeplab", {}, (0.99, 0.7, 0.4, True)),
        ("deeplab", {}, (0.5, 0.7, 0.4, False)),
        ("deeplab_means_grey", {"min_scale": 0.5, "max_scale": 0.5}, (0.7, 0.1, 0.9, True)),
        (
            "deeplab",
            {"min_scale": 0.3, "max_scale": 0.9, "scale_step": 0.1},
            (0.87, 0.6, 0.2, True),
        ),
        (
            "deeplab",
            {"min_scale": 0.75, "max_scale": 1.75, "scale_step": 0},
            (0.3125, 0.6, 0.2, False),
        ),
        (
            "deeplab",
            {"min_resize": 19, "max_resize": 23, "resize_factor": 2},
            (0.9, 0.45, 0.8, True),
        ),
        ("deeplab", {"min_resize": 29}, (0.1, 0.45, 0.8, False)),
        (
            "deeplab_means",
            {"min_resize": 8, "max_resize": 21, "resize_factor": 4, "keep_aspect_ratio": False},
            (0.2, 0.45, 0.8, True),
        ),
    )
]
RANGES = [
    {"min_resize": 513, "max_resize": 513, "resize_factor": 16},
    {"min_resize": 257},
    {"min_resize": 300, "max_resize": 500},
    {"min_resize": 600, "max_resize": 1024, "resize_factor": 8},
    {"min_resize": 90, "max_resize": 100, "resize_factor": 16, "keep_aspect_ratio": False},
]
SIDES = [21, 49, 97, 256, 333, 375, 480, 500, 513, 683, 1000, 1280]


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "deeplab_preprocessing.json")
    sizes = [{"options": o, "pictures": [[h, w, *range_size(o, h, w)]
              for h, w in itertools.product(SIDES, SIDES)]} for o in RANGES]
    rows = []
    for case in CASES:
        im, lb = prepared(case)
        rows.append({**case, "image": [float("%.9g" % v) for v in im.ravel()],
                     "label": lb.ravel().tolist()})
    picks = [{"options": o, "scales": [float("%.9g" % s) for s in scales(o)]} for o in
             ({}, {"min_scale": 0.3, "max_scale": 0.9, "scale_step": 0.1},
              {"min_scale": 0.5, "max_scale": 1.7, "scale_step": 0.5})]
    with open(path, "w") as f:
        lines = [",\n".join(json.dumps(r, separators=(",", ":")) for r in part)
                 for part in (sizes, picks, rows)]
        f.write('{"tensorflow":"%s","sizes":[\n%s\n],"scales":[\n%s\n],"cases":[\n%s\n]}\n' %
                (tf.__version__, *lines))
    print(f"{path}: {len(rows)} cases, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
