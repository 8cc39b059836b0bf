#!/usr/bin/env python3
"""Writes preprocessing.json, small pictures preprocessed by TensorFlow's own operations, and
preprocessing_boxes.json, histograms of the boxes that its sample_distorted_bounding_box draws.

Run by hand: python3 preprocessing.py (tensorflow-cpu 2.21.0, numpy 2.x). The pipelines are written
here from TF-Slim's rules; resizing and colour are TensorFlow's (tf.compat.v1.image.resize with
neither align_corners nor half_pixel_centers). Each case lists its draws in place of random numbers.
adjust_hue of newer TensorFlow treats values outside 0..1 differently from the original, so the
script asserts that cases with hue stay within 0..1. tests/data/preprocessing_golden_test.c prepares
the same pictures and compares; preprocessing_boxes_test.c compares its own boxes with the
histograms.
"""
import json
import math
import os

import numpy as np
import tensorflow as tf

HEIGHT, WIDTH, OUT_H, OUT_W = 21, 27, 9, 8
image = tf.compat.v1.image


def picture():
    out = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    for y in range(HEIGHT):
        for x in range(WIDTH):
            for c in range(3):
                out[y, x, c] = 64 + (y * y * 3 + x * 7 * (c + 1) + (x * y) % 29 * 5 + c * 40) % 128
    return out


def resize(x, method, h=OUT_H, w=OUT_W):
    methods = [image.ResizeMethod.BILINEAR, image.ResizeMethod.NEAREST_NEIGHBOR,
               image.ResizeMethod.BICUBIC, image.ResizeMethod.AREA]
    return tf.cast(image.resize_images(x, [h, w], methods[method]), tf.float32)


def grey(case, x):
    return tf.image.rgb_to_grayscale(x) if case.get("channels") == 1 else x


def lenet(case, x):
    x = grey(case, tf.cast(x, tf.float32))
    x = tf.image.resize_with_crop_or_pad(x, OUT_H, OUT_W)
    return (x - 128.0) / 128.0


def crop(x, d, h=OUT_H, w=OUT_W):
    y0 = math.floor(d["crop_y"] * (x.shape[0] - h + 1))
    x0 = math.floor(d["crop_x"] * (x.shape[1] - w + 1))
    return x[y0:y0 + h, x0:x0 + w]


def cifarnet(case, x):
    x = tf.cast(x, tf.float32)
    if not case["train"]:
        x = grey(case, x)
        return tf.image.per_image_standardization(
            tf.image.resize_with_crop_or_pad(x, OUT_H, OUT_W))
    d = case["draws"]
    x = crop(tf.pad(x, [[4, 4], [4, 4], [0, 0]]), d)
    x = tf.image.flip_left_right(x) if d["flip"] else x
    x = tf.image.adjust_brightness(x, -63 + 126 * d["brightness"])
    x = tf.image.adjust_contrast(x, 0.2 + 1.6 * d["contrast"])
    return tf.image.per_image_standardization(x)


def vgg(case, x):
    d = case.get("draws", {})
    old = "before_2018" in case["options"]
    side = (13 if old else 12) + (math.floor(d["side"] * 9) if case["train"] else 0)
    scale = np.float32(side) / np.float32(min(HEIGHT, WIDTH))
    h, w = (int((np.trunc if old else np.rint)(np.float32(n) * scale)) for n in (HEIGHT, WIDTH))
    x = resize(x, 0, h, w)
    if case["train"]:
        x = crop(x, d)
        x = tf.image.flip_left_right(x) if d["flip"] else x
    else:
        y0, x0 = (h - OUT_H) // 2, (w - OUT_W) // 2
        x = x[y0:y0 + OUT_H, x0:x0 + OUT_W]
    return x - tf.constant([123.68, 116.78, 103.94])


ORDERS = ["bshc", "sbch", "chbs", "hscb"]
TRAINER_ORDERS = ["bshc", "bcsh"]


def inception(case, x):
    x = tf.image.convert_image_dtype(x, tf.float32)
    if not case["train"]:
        x = grey(case, x)
        x = tf.image.central_crop(x, 0.5 if "central_fraction" in case["options"] else 0.875)
        return (resize(x, 0) - 0.5) * 2
    d = case["draws"]
    trainer = case["name"] == "inception_trainer"
    fast = not trainer and "fast_mode=false" not in case["options"]
    if d["box"][2]:
        y0, x0, h, w = d["box"]
        x = x[y0:y0 + h, x0:x0 + w]
    x = resize(x, 0 if fast else d["resize_method"])
    x = tf.image.flip_left_right(x) if d["flip"] else x
    order = (TRAINER_ORDERS if trainer else ORDERS)[d["color_ordering"]]
    if fast:
        order = "sb" if "before_2018" in case["options"] and d["color_ordering"] else "bs"
    for step in order:
        if step == "b":
            x = tf.image.adjust_brightness(x, (2 * d["brightness"] - 1) * 32 / 255)
        if step == "s":
            x = tf.image.adjust_saturation(x, 0.5 + d["saturation"])
        if step == "c":
            x = tf.image.adjust_contrast(x, 0.5 + d["contrast"])
        if step == "h":
            assert 0 <= float(tf.reduce_min(x)) and float(tf.reduce_max(x)) <= 1
            x = tf.image.adjust_hue(x, -0.2 + 0.4 * d["hue"])
    return (grey(case, tf.clip_by_value(x, 0, 1)) - 0.5) * 2


def cases():
    yield {"name": "lenet", "train": False}
    yield {"name": "cifarnet", "train": False}
    for k, u in enumerate([0.15, 0.85]):
        yield {"name": "cifarnet", "train": True,
               "draws": {"crop_y": u, "crop_x": 1 - u, "flip": k, "brightness": u,
                         "contrast": 1 - u}}
    vgg_options = "resize_side_min=12 resize_side_max=20"
    yield {"name": "vgg", "train": False, "options": vgg_options}
    for k, u in enumerate([0.3, 0.95]):
        yield {"name": "vgg", "train": True, "options": vgg_options,
               "draws": {"side": u, "crop_y": 1 - u, "crop_x": u, "flip": k}}
    yield {"name": "vgg", "train": True,
           "options": "resize_side_min=13 resize_side_max=21 before_2018=true",
           "draws": {"side": 0.3, "crop_y": 0.6, "crop_x": 0.9, "flip": 1}}
    yield {"name": "vgg", "train": False, "options": "resize_side_min=13 before_2018=true"}
    yield {"name": "lenet", "train": False, "channels": 1}
    yield {"name": "cifarnet", "train": False, "channels": 1}
    yield {"name": "inception", "train": False, "channels": 1}
    yield {"name": "inception", "train": False, "options": "central_fraction=0.5"}
    yield {"name": "inception", "train": False}
    yield {"name": "inception", "train": True,
           "draws": {"box": [2, 3, 15, 19], "flip": 1, "resize_method": 0, "color_ordering": 0,
                     "brightness": 0.9, "contrast": 0.5, "saturation": 0.8, "hue": 0.5}}
    for k, (options, channels) in enumerate([("crop_image=false", 3), ("before_2018=true", 3),
                                             ("before_2018=true", 3), ("", 1)]):
        yield {"name": "inception", "train": True, "options": options, "channels": channels,
               "draws": {"box": [2, 3, 15, 19] if k else [0, 0, 0, 0], "flip": k % 2,
                         "resize_method": 2, "color_ordering": k - 1 if k else 3, "brightness": 0.8,
                         "contrast": 0.1, "saturation": 0.95, "hue": 0.5}}
    for k in range(16):
        yield {"name": "inception", "train": True, "options": "fast_mode=false",
               "draws": {"box": [1 + k % 4, 2, 16, 20 + k % 4], "flip": k % 2,
                         "resize_method": k // 4, "color_ordering": k % 4,
                         "brightness": 0.3 + 0.1 * (k % 4), "contrast": 0.3 + 0.1 * (k % 4),
                         "saturation": 0.9 - 0.2 * (k % 4), "hue": 0.2 + 0.2 * (k % 4)}}
    for k in range(4):
        yield {"name": "inception_trainer", "train": True,
               "draws": {"box": [3, 1 + k, 17, 18], "flip": k // 2, "resize_method": k,
                         "color_ordering": k % 2, "brightness": 0.4, "contrast": 0.2 + 0.1 * k,
                         "saturation": 0.7, "hue": 0.1 + 0.25 * k}}
    yield {"name": "inception_trainer", "train": False}


def main():
    x, out = picture(), []
    for method in range(4):
        y = resize(tf.cast(x, tf.float32), method)
        out.append({"name": "resize", "method": method, "out": y})
        y = resize(tf.cast(x, tf.float32)[:5, :4], method)
        out.append({"name": "resize", "method": method, "height": 5, "width": 4, "out": y})
    functions = {"lenet": lenet, "cifarnet": cifarnet, "vgg": vgg, "inception": inception,
                 "inception_trainer": inception}
    for case in cases():
        case.setdefault("options", "")
        case["out"] = functions[case["name"]](case, x)
        out.append(case)
    for case in out:
        case["out"] = [float("%.9g" % v) for v in np.asarray(case["out"]).reshape(-1)]
    write("preprocessing.json", {"cases": out}, '{"name"')
    write("preprocessing_boxes.json", {"draws": DRAWS, "cases": list(boxes())}, '{"height"')


DRAWS = 20000
BINS = 8


def boxes():
    """Histograms of DRAWS boxes: area, aspect ratio, position of the centre."""
    tf.random.set_seed(7)
    objects = [[0.0, 0.0, 1.0, 1.0]], [[0.1, 0.2, 0.4, 0.35]], \
        [[0.7, 0.05, 0.95, 0.3], [0.0, 0.6, 0.02, 0.62]], [[0.3, 0.3, 0.3, 0.9], [0.5, 0.5, 1, 1]]
    for h, w, ob, covered in [(375, 500, 0, 0.1), (500, 375, 1, 0.1), (200, 30, 0, 0.1),
                              (7, 5, 0, 0.1), (120, 160, 2, 0.1), (120, 160, 3, 0.7),
                              (90, 90, 1, 0.95)]:
        def sample(_):
            begin, size, _ = tf.image.sample_distorted_bounding_box(
                [h, w, 3], tf.constant([objects[ob]]), seed=5, min_object_covered=covered,
                aspect_ratio_range=(0.75, 1.33), area_range=(0.05, 1.0), max_attempts=100,
                use_image_if_no_bounding_boxes=True)
            return tf.concat([begin[:2], size[:2]], 0)
        many = tf.function(lambda: tf.map_fn(sample, tf.range(DRAWS)))
        y, x, n, m = many().numpy().astype(float).T
        bins = []
        for v in [n * m / (h * w), (m / n - 0.7) / 0.7, (y + n / 2) / h, (x + m / 2) / w]:
            at = np.clip(np.floor(v * BINS).astype(int), 0, BINS - 1)
            bins.append(np.bincount(at, minlength=BINS).tolist())
        yield {"height": h, "width": w, "boxes": objects[ob], "min_object_covered": covered,
               "whole": int(np.sum((n == h) & (m == w))), "bins": bins}


def write(name, content, line):
    text = json.dumps({"tensorflow": tf.__version__, **content}, separators=(",", ":"))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    with open(path, "w") as f:
        f.write(text.replace(line, "\n" + line) + "\n")


main()
