#!/usr/bin/env python3
"""Makes crops.json: pictures and objects that TensorFlow's Object Detection API of 2019
(core/preprocessor.py, in float32) crops and pads with given draws.

    VENV/bin/python tests/golden/crops.py   # environment: see tfod.py

The boxes of crops come from TensorFlow's sample_distorted_bounding_box, the other draws from the
class Numbers. They reach the preprocessor through its cache of random variables. The objects of a
scene are those of scene() below, drawn by Numbers; coordinates are whole 1024ths, so they are exact
in float32. A picture's pixel holds its row, its column and 200. No share of a box that lies in a
crop is nearer than NEAR to overlap_thresh, unless both are equal. tests/data/crops_golden_test.c
compares; weights and scores belong to the label of an object."""
import json
import os
import platform

import numpy as np

import tfod
from panoptic_metrics import Numbers

tf = tfod.load()
from object_detection.core import preprocessor  # noqa: E402
from object_detection.core.preprocessor_cache import PreprocessorCache as Cache  # noqa: E402

HEIGHT, WIDTH, OBJECTS, POINTS, PLACES = 64, 128, 8, 2, 4
NEAR = 1e-4
COVERED = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]
# A row, its options in Pumice, the original's arguments, and the number of pictures. The original's
# rows with random padding carry no masks, most of them no keypoints either.
ROWS = [
    ("random_crop_image", {}, {"min_object_covered": 1.0, "overlap_thresh": 0.3}, 4),
    ("random_crop_image", {"min_object_covered": 0.25, "overlap_thresh": 0.5, "min_area": 0.2,
                           "max_area": 0.5, "clip_boxes": False},
     {"min_object_covered": 0.25, "overlap_thresh": 0.5, "area_range": (0.2, 0.5),
      "clip_boxes": False}, 4),
    ("random_crop_image", {"random_coef": 0.5}, {"random_coef": 0.5}, 2),
    ("random_pad_image", {}, {}, 2),
    ("random_pad_image", {"min_image_height": 100, "max_image_height": 150, "max_image_width": 90,
                          "pad_color": [10, 20, 30]},
     {"min_image_size": (100, 0), "max_image_size": (150, 90), "pad_color": [10., 20., 30.]}, 2),
    ("random_absolute_pad_image", {"max_height_padding": 30, "max_width_padding": 20},
     {"max_height_padding": 30, "max_width_padding": 20}, 2),
    ("random_crop_pad_image", {"min_object_covered": 0.5},
     {"min_object_covered": 0.5}, 4),
    ("random_crop_to_aspect_ratio", {}, {}, 2),
    ("random_crop_to_aspect_ratio", {"aspect_ratio": 3, "overlap_thresh": 0.5, "clip_boxes": False},
     {"aspect_ratio": 3.0, "overlap_thresh": 0.5, "clip_boxes": False}, 2),
    ("ssd_random_crop", {}, {}, 9),
    ("ssd_random_crop_pad", {}, {}, 8),
    ("ssd_random_crop_fixed_aspect_ratio", {"aspect_ratio": 1.5}, {"aspect_ratio": 1.5}, 8),
    ("ssd_random_crop_pad_fixed_aspect_ratio", {"aspect_ratio": 0.75}, {"aspect_ratio": 0.75}, 8),
]


def scene(index):
    """Returns boxes, keypoints and scores. Every third box lies on a border of the picture."""
    r = Numbers(index + 1)
    boxes, points, scores = [], [], []
    for i in range(OBJECTS):
        y, x = r(800), r(800)
        h, w = 60 + r(964 - y), 60 + r(964 - x)
        if i % 3 == 2:
            y, h = (0, h) if r(2) else (1024 - h, h)
        boxes.append([y, x, y + h, x + w])
        points.append([[r(1025), r(1025)] for _ in range(POINTS)])
        scores.append([r(1025), r(1025)])
    return tuple(np.array(v, np.float32) / 1024 for v in (boxes, points, scores))


def picture():
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    return np.stack([y, x, 0 * x + 200], 2).astype(np.float32)


def masks(boxes):
    """The pixels whose middle is in the box and whose row plus column is no multiple of 5."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    fy, fx = (y + 0.5) / HEIGHT, (x + 0.5) / WIDTH
    return np.stack([(fy > b[0]) & (fx > b[1]) & (fy < b[2]) & (fx < b[3]) & ((x + y) % 5 != 0)
                     for b in boxes]).astype(np.float32)


def sampled(session, boxes, seed, covered, aspect=(0.75, 1.33), area=(0.1, 1.0)):
    """A box of TensorFlow's sampler, in the form that the preprocessor keeps: begin, size, box."""
    tf.set_random_seed(seed)
    return session.run(tf.image.sample_distorted_bounding_box(
        [HEIGHT, WIDTH, 3], tf.constant(boxes[None]), seed=seed, min_object_covered=covered,
        aspect_ratio_range=aspect, area_range=area, max_attempts=100,
        use_image_if_no_bounding_boxes=True))


def below(r, low, high):
    """The preprocessor's random integer: high itself is never drawn."""
    return low + r(high - low) if high > low else high


def padding(r, crop, least, most):
    """target_height, target_width, offset_height, offset_width of random_pad_image."""
    target = [below(r, max(low, side), max(high, side))
              for side, low, high in zip(crop, least, most)]
    return target + [r(t - side) if t > side else 0 for t, side in zip(target, crop)]


class Draws:
    """Fills the preprocessor's cache and notes the draws in Pumice's form."""

    def __init__(self, session, name, arguments, index, boxes):
        self.session, self.index, self.boxes = session, index, boxes
        self.cache, self.noted = Cache(), {}
        self.r = Numbers(1000 + index)
        self.crop = [HEIGHT, WIDTH]
        if name.startswith("ssd_"):
            self.choose(name, arguments)
        elif "crop_image" in name or "crop_pad" in name:
            self.sample(arguments.get("min_object_covered", 1.0), arguments)
        if "random_coef" in arguments or name.startswith("ssd_"):
            self.whole(index % 4 == 3)
        if name == "random_crop_to_aspect_ratio" or name.endswith("crop_fixed_aspect_ratio"):
            self.window(arguments.get("aspect_ratio", 1.0))
        elif name.endswith("pad_fixed_aspect_ratio"):
            self.scale(arguments["aspect_ratio"])
        elif "pad" in name:
            self.pad(name, arguments)

    def sample(self, covered, arguments):
        found = sampled(self.session, self.boxes, 7 * self.index + 1, covered,
                        arguments.get("aspect_ratio_range", (0.75, 1.33)),
                        arguments.get("area_range", (0.1, 1.0)))
        self.cache.update(Cache.STRICT_CROP_IMAGE, covered, tuple(map(tf.constant, found)))
        self.noted["box"] = [int(v) for v in [*found[0][:2], *found[1][:2]]]
        self.crop = self.noted["box"][2:]

    def choose(self, name, arguments):
        """The rule that counts; the others get the whole picture."""
        rules = COVERED[1:] if name == "ssd_random_crop_pad" else COVERED
        which = self.index % len(rules)
        padded = name == "ssd_random_crop_pad"
        key = Cache.SSD_CROP_PAD_SELECTOR_ID if padded else Cache.SSD_CROP_SELECTOR_ID
        self.cache.update(Cache.SELECTOR_TUPLES, key, tf.constant(which))
        ratio = arguments.get("aspect_ratio")
        aspect = (ratio, ratio) if name.endswith("fixed_aspect_ratio") else (0.5, 2.0)
        for covered in rules:
            self.sample(covered, {"aspect_ratio_range": aspect})
            if covered == rules[which]:
                kept = self.noted["box"]
        self.noted.update(which=which, box=kept)
        self.crop = kept[2:]

    def whole(self, yes):
        """yes: the number is not above random_coef, so the picture is not cropped."""
        self.cache.update(Cache.CROP_IMAGE, "", tf.constant(0.0 if yes else 1.0))
        if yes:
            self.noted["box"], self.crop = [0, 0, 0, 0], [HEIGHT, WIDTH]

    def window(self, aspect):
        h, w = self.crop
        th = h if w / h >= aspect else int(np.round(np.float32(w) / np.float32(aspect)))
        tw = w if w / h <= aspect else int(np.round(np.float32(h) * np.float32(aspect)))
        y, x = self.r(h - th + 1), self.r(w - tw + 1)
        self.cache.update(Cache.CROP_TO_ASPECT_RATIO, "", (tf.constant(y), tf.constant(x)))
        self.noted["window"] = [y, x, None, None]  # the size is the result's

    def scale(self, aspect):
        """A multiple of the least padding, at most the one that doubles a side."""
        h, w = self.crop
        goal = max(h, w / aspect), max(w, h * aspect)
        most = min(max(2 * side / least, 1) for side, least in zip((h, w), goal))
        self.cache.update(Cache.PAD_TO_ASPECT_RATIO, "",
                          tf.constant(1 + (most - 1) * self.r(9) / 8))
        self.noted["window"] = [0, 0, None, None]

    def pad(self, name, arguments):
        whole = [HEIGHT, WIDTH]
        least, most = whole, [2 * side for side in whole]
        if "min_image_size" in arguments:
            least, most = arguments["min_image_size"], arguments["max_image_size"]
        elif name == "random_absolute_pad_image":
            most = [HEIGHT + arguments["max_height_padding"],
                    WIDTH + arguments["max_width_padding"]]
        drawn = padding(self.r, self.crop, least, most)
        self.cache.update(Cache.PAD_IMAGE, "", tuple(tf.constant(v) for v in drawn))
        self.noted["window"] = [-drawn[2], -drawn[3], drawn[0], drawn[1]]


def shares(boxes, window):
    """The share of each box in a window y, x, height, width of pixels."""
    y, x, h, w = window
    part = np.stack([np.maximum(boxes[:, 0], y / HEIGHT), np.maximum(boxes[:, 1], x / WIDTH),
                     np.minimum(boxes[:, 2], (y + h) / HEIGHT),
                     np.minimum(boxes[:, 3], (x + w) / WIDTH)], 1)
    area = lambda b: np.maximum(b[:, 2] - b[:, 0], 0) * np.maximum(b[:, 3] - b[:, 1], 0)
    return area(part) / area(boxes)


def clear(name, draws, boxes, arguments, size):
    """True unless a box is nearer than NEAR to a threshold."""
    rules = COVERED[1:] if name == "ssd_random_crop_pad" else COVERED
    limits, box = [], draws.get("box", [0, 0, 0, 0])
    box = box if box[2] else [0, 0, HEIGHT, WIDTH]
    if draws.get("box", [0] * 4)[2]:
        limits.append((rules[draws["which"]] if "which" in draws else
                       arguments.get("overlap_thresh", 0.3), box))
    if name == "random_crop_to_aspect_ratio":
        limits.append((arguments.get("overlap_thresh", 0.3), draws["window"][:2] + size))
    for limit, window in limits:
        far = np.abs(shares(boxes.astype(np.float64), window) - limit)
        if ((far > 0) & (far < NEAR)).any():
            return False
    if name.endswith("crop_fixed_aspect_ratio"):  # the second crop's objects are the first's
        inner = [box[0] + draws["window"][0], box[1] + draws["window"][1]] + size
        clipped = np.clip(boxes.astype(np.float64), *(np.array([*s, *s]) for s in (
            (box[0] / HEIGHT, box[1] / WIDTH),
            ((box[0] + box[2]) / HEIGHT, (box[1] + box[3]) / WIDTH))))
        clipped = clipped[(clipped[:, 2] > clipped[:, 0]) & (clipped[:, 3] > clipped[:, 1])]
        return not (np.abs(shares(clipped, inner) - 0.3) < NEAR).any()
    return True


def run(session, name, options, arguments, index):
    boxes, points, scores = scene(index)
    draws = Draws(session, name, arguments, index, boxes)
    pads = "pad" in name and "fixed" not in name
    more = {"preprocess_vars_cache": draws.cache}
    if not name.startswith(("random_pad", "random_absolute")):
        more.update(labels=tf.range(1, OBJECTS + 1),
                    label_weights=tf.constant(np.arange(OBJECTS, dtype=np.float32) + 0.5),
                    multiclass_scores=tf.constant(scores))
    if not pads:
        more.update(masks=tf.constant(masks(boxes)), keypoints=tf.constant(points))
    elif name == "random_pad_image":
        more.update(keypoints=tf.constant(points))
    out = session.run(getattr(preprocessor, name)(
        tf.constant(picture()), tf.constant(boxes), **more, **arguments))
    names = ["picture", "boxes"] + [k for k in ("labels", "label_weights", "multiclass_scores",
                                                "masks", "keypoints") if k in more]
    result = dict(zip(names, out))
    assert len(out) == len(names), (name, len(out), names)
    size = list(result["picture"].shape[:2])
    if draws.noted.get("window", [0])[-1] is None:
        draws.noted["window"][2:] = size
    if not clear(name, draws.noted, boxes, arguments, size):
        return None
    return {"name": name, "options": options, "scene": index, "draws": draws.noted,
            **described(result, scores)}


def described(out, scores):
    """The result as lists. A mask is its number of pixels and the sums of their rows and columns;
    a picture its size and the pixels of PLACES x PLACES places."""
    labels = out.get("labels", np.arange(1, OBJECTS + 1))
    height, width = out["picture"].shape[:2]
    kept = {"height": height, "width": width, "labels": labels.tolist(),
            "boxes": short(out["boxes"])}
    if "label_weights" in out:  # the test derives both from the label
        assert (out["label_weights"] == labels - 0.5).all()
        assert (out["multiclass_scores"] == scores[labels - 1]).all()
    if "keypoints" in out:
        kept["keypoints"] = short(out["keypoints"])
    if "masks" in out:
        y, x = np.mgrid[:height, :width]
        kept["masks"] = [[int(m.sum()), int((m * y).sum()), int((m * x).sum())]
                         for m in out["masks"]]
    at = [[i * (side - 1) // (PLACES - 1) for i in range(PLACES)] for side in (height, width)]
    kept["pixels"] = short(out["picture"][np.ix_(*at)])
    return kept


def short(v):
    """null stands for NaN."""
    return [None if np.isnan(x) else float(f"{x:.8g}") for x in np.asarray(v, np.float64).ravel()]


def main():
    cases, index = [], 0
    for name, options, arguments, count in ROWS:
        made = 0
        while made < count:
            tf.reset_default_graph()
            with tf.Session() as session:
                case = run(session, name, options, arguments, index)
            index, made = index + 1, made + (case is not None)
            cases += [case] if case else []
    head = {"made_by": f"tf-object-detection 0.0.3, TensorFlow {tf.__version__}, "
                       f"numpy {np.__version__}, Python {platform.python_version()}",
            "height": HEIGHT, "width": WIDTH, "objects": OBJECTS, "points": POINTS,
            "places": PLACES, "cases": cases}
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "crops.json")
    with open(path, "w") as f:
        f.write(json.dumps(head, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n")
    lost = sum(OBJECTS - len(c["labels"]) for c in cases)
    print(f"{len(cases)} cases, {lost} objects dropped, {os.path.getsize(path) / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
