#!/usr/bin/env python3
"""Makes jpeg.json and jpeg/: small drawn JPEGs and the SHA-256 of the pixels that TensorFlow
decodes, for 1 and 3 channels. decode_jpeg runs with dct_method INTEGER_ACCURATE; its default is a
faster transform with slightly different pixels.

    python3 tests/golden/jpeg.py       # TensorFlow 2.21.0, Pillow 13.0.0

Pictures are gradients with rectangles over them, drawn from n >> 16 of the sequence n -> (n
1103515245 + 12345) mod 2^31. TensorFlow refuses CMYK with 1 channel; such an entry is null."""
import hashlib
import io
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from PIL import Image

HEIGHT, WIDTH = 61, 83  # not multiples of a block, so that partial blocks occur

KINDS = {  # Pillow's options; subsampling 0: 4:4:4, 1: 4:2:2, 2: 4:2:0
    "444": {"quality": 90, "subsampling": 0},
    "422": {"quality": 75, "subsampling": 1},
    "420": {"quality": 90, "subsampling": 2},
    "420_coarse": {"quality": 10, "subsampling": 2},
    "420_restarts": {"quality": 80, "subsampling": 2, "restart_marker_blocks": 3},
    "progressive_420": {"quality": 85, "subsampling": 2, "progressive": True},
    "progressive_444": {"quality": 40, "subsampling": 0, "progressive": True},
    "gray": {"quality": 90, "mode": "L"},
    "gray_progressive": {"quality": 60, "mode": "L", "progressive": True},
    "cmyk": {"quality": 90, "mode": "CMYK"},
    "rgb": {"quality": 90, "keep_rgb": True},
}


def numbers(seed):
    n = seed
    while True:
        n = (n * 1103515245 + 12345) % 2**31
        yield n >> 16


def picture(seed):
    r = numbers(seed)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    image = np.stack([3 * x + y, 2 * y + 40, 255 - 2 * x], 2)
    for _ in range(12):
        top, left = next(r) % HEIGHT, next(r) % WIDTH
        size = (slice(top, top + 2 + next(r) % 20), slice(left, left + 2 + next(r) % 20))
        image[size] = [next(r) % 256 for _ in range(3)]
    return np.clip(image, 0, 255).astype(np.uint8)


def digest(data, channels):
    try:
        pixels = tf.io.decode_jpeg(data, channels=channels, dct_method="INTEGER_ACCURATE").numpy()
    except tf.errors.InvalidArgumentError:
        return None
    assert pixels.shape == (HEIGHT, WIDTH, channels)
    return hashlib.sha256(pixels.tobytes()).hexdigest()


def main():
    folder = os.path.dirname(os.path.abspath(sys.argv[0]))
    os.makedirs(os.path.join(folder, "jpeg"), exist_ok=True)
    golden = {}
    for seed, (name, options) in enumerate(KINDS.items()):
        options = dict(options)
        image = Image.fromarray(picture(seed + 1)).convert(options.pop("mode", "RGB"))
        out = io.BytesIO()
        image.save(out, "JPEG", **options)
        with open(os.path.join(folder, "jpeg", name + ".jpg"), "wb") as f:
            f.write(out.getvalue())
        golden[name] = {str(c): digest(out.getvalue(), c) for c in (1, 3)}
    with open(os.path.join(folder, "jpeg.json"), "w", encoding="utf-8") as f:
        json.dump({"height": HEIGHT, "width": WIDTH, "pictures": golden}, f, indent=1)
        f.write("\n")


main()
