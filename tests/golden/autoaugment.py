#!/usr/bin/env python3
"""Makes autoaugment.json: the operations of AutoAugment on a small picture, computed by
TensorFlow's Object Detection API of 2019 (utils/autoaugment_utils.py).

    VENV/bin/python tests/golden/autoaugment.py      # the environment of tfod.py

tf.contrib.image is replaced here: its transform is TensorFlow's ImageProjectiveTransformV3, and
rotate and translate make the matrices that its documentation states. Contrast uses the mean of the
grey picture, not the original's number of pixels / 256. Sharpness divides whole numbers. Each case
has the picture after the operation as hexadecimal digits, and the boxes. An operation inside boxes
is applied to every box. The script asserts that no grey value is so near to a whole number, and no
coordinate so near to the middle between two pixels, that float32 decides.
tests/data/autoaugment_test.c makes the same picture and compares."""
import json
import math
import os

import numpy as np

import tfod

tf = tfod.load()
HEIGHT, WIDTH = 30, 32
MARGIN = 2e-5  # coordinates below 32 have errors of at most three half units: 6e-6
BOXES = [[0.02, 0.03, 0.6, 0.55], [0.65, 0.05, 0.97, 0.93], [0.02, 0.58, 0.62, 1.0]]
WHOLE = [["AutoContrast", 5], ["Equalize", 5], ["Posterize", 2], ["Posterize", 8], ["Solarize", 6],
         ["SolarizeAdd", 4], ["Color", 2], ["Color", 8], ["Contrast", 3], ["Contrast", 10],
         ["Brightness", 3], ["Brightness", 8], ["Sharpness", 3], ["Sharpness", 8]]
MOVES = [["Rotate_BBox", 4], ["Rotate_BBox", 10], ["TranslateX_BBox", 1], ["TranslateY_BBox", 1],
         ["ShearX_BBox", 8], ["ShearY_BBox", 3]]
INSIDE = [["Rotate_Only_BBoxes", 8], ["ShearX_Only_BBoxes", 8], ["ShearY_Only_BBoxes", 3],
          ["TranslateX_Only_BBoxes", 1], ["TranslateY_Only_BBoxes", 1], ["Flip_Only_BBoxes", 0],
          ["Solarize_Only_BBoxes", 5], ["Equalize_Only_BBoxes", 0]]


def picture():
    out = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    for y in range(HEIGHT):
        for x in range(WIDTH):
            for c in range(3):
                out[y, x, c] = 20 + (y * y * 3 + x * 7 * (c + 1) + x * y % 29 * 5 + c * 40) % 211
    return out


def transform(images, matrix, **_):
    """Pixel x, y of the result is that at matrix * (x, y, 1) of the picture."""
    m = np.array(tf.get_static_value(tf.convert_to_tensor(matrix, tf.float32)), np.float64)
    height, width = images.shape.as_list()[:2]
    y, x = np.mgrid[:height, :width].astype(np.float64)
    for at, side in ((m[0] * x + m[1] * y + m[2], width), (m[3] * x + m[4] * y + m[5], height)):
        near = np.abs(at - np.floor(at) - 0.5)[(at > -1) & (at < side)]
        assert near.size == 0 or near.min() > MARGIN, near.min()
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=images[None], transforms=tf.reshape(tf.cast(matrix, tf.float32), [1, 8]),
        output_shape=[height, width], interpolation="NEAREST", fill_mode="CONSTANT",
        fill_value=0.0)[0]


def rotate(images, radians):
    height, width = images.shape.as_list()[:2]
    c, s, h, w = math.cos(radians), math.sin(radians), height - 1, width - 1
    return transform(images, [c, -s, (w - (c * w - s * h)) / 2, s, c, (h - (s * w + c * h)) / 2,
                              0.0, 0.0])


def translate(images, by):
    return transform(images, [1.0, 0.0, -by[0], 0.0, 1.0, -by[1], 0.0, 0.0])


tf.contrib.image = tfod.Absent("tensorflow.contrib.image")
tf.contrib.image.transform = transform
tf.contrib.image.rotate = rotate
tf.contrib.image.translate = translate
from object_detection.utils import autoaugment_utils as original  # noqa: E402

STRENGTHS = original.level_to_arg(type("Numbers", (), {
    "cutout_max_pad_fraction": 0.75, "cutout_bbox_replace_with_mean": False, "cutout_const": 100,
    "translate_const": 250, "cutout_bbox_const": 50, "translate_bbox_const": 120}))
# The sign is drawn; the goldens have the positive one.
original._randomly_negate_tensor = lambda strength: strength
for name in ("_rotate_level_to_arg", "_shear_level_to_arg", "_translate_level_to_arg"):
    assert "_randomly_negate_tensor" in getattr(original, name).__code__.co_names


def run(tensors):
    with tf.Session() as session:
        return session.run(tensors)


def away_from_whole(values):
    """Whole numbers are fine if float32 holds them exactly, which the caller knows."""
    near = np.abs(values - np.round(values))
    assert near.min() > MARGIN, near.min()


def grey(im):
    value = im.astype(np.float64) @ [0.2989, 0.5870, 0.1140] * (255.5 / 255)
    away_from_whole(value)
    assert (np.floor(value) == run(tf.image.rgb_to_grayscale(tf.constant(im)))[..., 0]).all()
    return np.floor(value)


def contrast(image, factor):
    im = picture()
    mean = grey(im).mean()
    assert abs(mean + 0.5 - round(mean + 0.5)) > MARGIN
    return original.blend(tf.fill(im.shape, np.uint8(int(mean + 0.5))), image, factor)


def sharpness(image, factor):
    """TensorFlow sums float32 products, so that a sum of exactly 13 v may become v - 1. The golden
    has whole numbers divided."""
    x = picture().astype(int)
    total = 4 * x[1:-1, 1:-1]
    for dy in range(3):
        for dx in range(3):
            total = total + x[dy:dy + HEIGHT - 2, dx:dx + WIDTH - 2]
    theirs = run(original.sharpness(image, 0.0))[1:-1, 1:-1].astype(int)
    differs = theirs != total // 13
    assert (total[differs] % 13 == 0).all() and (theirs[differs] == total[differs] // 13 - 1).all()
    smooth = picture()
    smooth[1:-1, 1:-1] = total // 13
    return original.blend(tf.constant(smooth), image, factor)


def apply(name, level, image):
    if name in ("Contrast", "Sharpness"):
        own = contrast if name == "Contrast" else sharpness
        return own(image, *STRENGTHS[name](level)), BOXES
    arguments = list(STRENGTHS[name](level))
    if name in [m[0] for m in MOVES]:
        return original.NAME_TO_FUNC[name](image, tf.constant(BOXES), *arguments, [128] * 3)
    return original.NAME_TO_FUNC[name](image, *arguments), BOXES


INNER = {"Rotate": original.rotate, "ShearX": original.shear_x, "ShearY": original.shear_y,
         "TranslateX": original.translate_x, "TranslateY": original.translate_y,
         "Flip": tf.image.flip_left_right, "Solarize": original.solarize,
         "Equalize": original.equalize}


def apply_inside(name, level):
    """Box after box, so that a box has a static shape."""
    im = picture()
    kind = name.split("_")[0]
    arguments = list(STRENGTHS[name](level))
    for box in BOXES:
        y0, x0, y1, x1 = (int(np.float32(v) * np.float32(side)) for v, side in
                          zip(box, (HEIGHT, WIDTH, HEIGHT, WIDTH)))
        y1, x1 = min(y1, HEIGHT - 1), min(x1, WIDTH - 1)
        more = [[128] * 3] if kind[:4] in ("Rota", "Shea", "Tran") else []
        im[y0:y1 + 1, x0:x1 + 1] = run(INNER[kind](tf.constant(im[y0:y1 + 1, x0:x1 + 1]),
                                                   *arguments, *more))
    return im


def main():
    im = picture()
    grey(im)
    cases = []
    for name, level in WHOLE + MOVES:
        out, boxes = apply(name, level, tf.constant(im))
        out = run(tf.convert_to_tensor(out))
        boxes = run(tf.convert_to_tensor(boxes))
        cases.append({"name": name, "level": level, "boxes": boxes.astype(float).tolist(),
                      "pixels": out.astype(np.uint8).tobytes().hex()})
    for name, level in INSIDE:
        cases.append({"name": name, "level": level, "boxes": BOXES,
                      "pixels": apply_inside(name, level).tobytes().hex()})
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "autoaugment.json")
    with open(path, "w", encoding="utf-8") as f:
        f.write("{\"boxes\": " + json.dumps(BOXES) + ",\n\"cases\": [\n")
        f.write(",\n".join(json.dumps(c) for c in cases) + "]}\n")


if __name__ == "__main__":
    main()
