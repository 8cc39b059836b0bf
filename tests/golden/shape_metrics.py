#!/usr/bin/env python3
"""Makes shape_metrics.json: metrics of detected masks and keypoints.

    python3 tests/golden/shape_metrics.py PACKAGE

    # pycocotools 2.0.11, NumPy 2.4.6, tf-object-detection 0.0.3

PACKAGE: the unpacked wheel of tf-object-detection, of which only evaluation in NumPy runs;
TensorFlow is not needed.

masks: for each drawn scene COCO's twelve metrics of masks by COCOeval of pycocotools, then the
average precision of each class. keypoints: for each scene COCO's ten of keypoints, as means over
the classes that have keypoints and objects, then the average precision of these two classes; each
class is evaluated alone, with its own points and deviations. pascal: for each scene mask_voc_map
and mask_weighted_map by object_detection_evaluation.py; crowds are difficult, as in box_metrics.
Numbers have 12 digits.

Scenes are drawn from n >> 16 of the sequence n -> (n 1103515245 + 12345) mod 2^31;
tests/tasks/detection/shape_scenes.h draws the same ones. A mask is a rectangle with a rectangular
hole. Some true masks are empty. Label 3 is only detected."""

import contextlib
import io
import json
import math
import os
import sys
import warnings
from importlib.metadata import version

import numpy as np
from pycocotools import mask as masks
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from panoptic_metrics import Numbers
from tfod_evaluation import load_evaluation

SCENES, PASCAL_SCENES, CLASSES = 300, 150, 4
HEIGHT, WIDTH = 150, 200
SIDES = (12, 24, 48, 96, 140)
POINTS = 17
COCO_SIGMAS = [.26, .25, .25, .35, .35, .79, .79, .72, .72, .62, .62, 1.07, 1.07, .87, .87, .89,
               .89]
# For each class with keypoints its points and their deviations.
POINTS_OF = {0: (list(range(17)), [v / 10 for v in COCO_SIGMAS]),
             1: ([2, 5, 6, 9, 12], [0.05, 0.1, 0.025, 0.2, 0.125])}


class Scene:
    """Draws the pictures of a scene. distinct: no two scores are equal."""

    def __init__(self, index, distinct):
        self.r, self.distinct, self.scores = Numbers(9000 + index), distinct, 0
        self.full = index % 25 == 0
        self.pictures = [self.picture(k) for k in range(1 + self.r(3))]

    def score(self):
        self.scores += 1
        if self.distinct:
            return (self.r(1000) * 5000 + self.scores) / 5000000
        return self.r(16) / 16

    def mask(self, x, y, w, h):
        """The pixels of a rectangle, without those of a smaller one in it."""
        pixels = np.zeros((HEIGHT, WIDTH), np.uint8)
        pixels[y:y + h, x:x + w] = 1
        hx, hy, hw, hh = self.r(w), self.r(h), self.r(w // 2 + 1), self.r(h // 2 + 1)
        pixels[y + hy:y + hy + hh, x + hx:x + hx + hw] = 0
        return pixels

    def points(self, x, y, w, h):
        """Visibility, y and x of each point, in halves of a pixel."""
        none = self.r(5) == 0
        out = []
        for _ in range(POINTS):
            v, py, px = self.r(3), y + self.r(2 * h) / 2, x + self.r(2 * w) / 2
            out.append((0 if none else v, py, px))
        return out

    def detection(self, truth):
        """Moves a truth's mask and points, or keeps them."""
        r = self.r
        kind, label = r(6), r(CLASSES)
        label = label if kind == 1 else truth["label"]
        dy, dx = (r(9) - 4, r(9) - 4) if kind > 1 else (0, 0)
        pixels = np.zeros_like(truth["mask"])
        pixels[max(dy, 0):HEIGHT + min(dy, 0), max(dx, 0):WIDTH + min(dx, 0)] = \
            truth["mask"][max(-dy, 0):HEIGHT - max(dy, 0), max(-dx, 0):WIDTH - max(dx, 0)]
        if kind == 5:
            pixels[:r(HEIGHT)] = 0
        spread = r(12) if kind > 1 else 0
        points = [(py + (r(2 * spread + 1) - spread) / 2, px + (r(2 * spread + 1) - spread) / 2)
                  for _, py, px in truth["points"]]
        y, x, h, w = truth["box"]
        return {"label": label, "mask": pixels, "points": points, "box": (y + dy, x + dx, h, w),
                "score": self.score()}

    def picture(self, index):
        r, truths, found = self.r, [], []
        for _ in range(r(7)):
            label, side = r(3), SIDES[r(5)]
            w, h = side // 2 + r(side // 2 + 1), side // 2 + r(side // 2 + 1)
            x, y = r(WIDTH - w), r(HEIGHT - h)
            mask = self.mask(x, y, w, h)
            if r(16) == 0:
                mask[:] = 0
            share, crowd, difficult = 1 + r(4), r(8) == 0, r(6) == 0
            truth = {"label": label, "mask": mask, "area": w * h * share / 4, "crowd": crowd,
                     "difficult": difficult, "box": (y, x, h, w),
                     "points": self.points(x, y, w, h)}
            truths.append(truth)
            for _ in range(r(4)):
                found.append(self.detection(truth))
        for _ in range(120 if self.full and index == 0 and truths else 0):
            found.append(self.detection(truths[r(len(truths))]))
        return truths, found


# ---- COCO ------------------------------------------------------------------------------------


def text_of(pixels):
    mask = masks.encode(np.asfortranarray(pixels))
    return {"size": mask["size"], "counts": mask["counts"].decode()}


def coco_box(box):
    y, x, h, w = box
    return [x, y, w, h]


def evaluated(dataset, detections, kind, sigmas=None):
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = dataset
        truth.createIndex()
        found = truth.loadRes(detections) if detections else COCO()
        e = COCOeval(truth, found, kind)
        if sigmas:
            e.params.kpt_oks_sigmas = np.array(sigmas)
        e.evaluate()
        e.accumulate()
        e.summarize()
    return e


def dataset_of(scene, classes, members):
    """COCO's form of the scene's objects of these classes. members: what an object and what a
    detection have beside their class."""
    dataset = {"info": {}, "annotations": [], "categories": [{"id": c} for c in classes],
               "images": [{"id": i, "height": HEIGHT, "width": WIDTH}
                          for i in range(len(scene.pictures))]}
    detections = []
    for i, (truths, found) in enumerate(scene.pictures):
        for t in truths:
            if t["label"] in classes:
                dataset["annotations"].append(
                    {"id": len(dataset["annotations"]) + 1, "image_id": i,
                     "category_id": t["label"], "bbox": coco_box(t["box"]), "area": t["area"],
                     "iscrowd": int(t["crowd"]), **members(t)})
        for d in found:
            if d["label"] in classes:
                detections.append({"image_id": i, "category_id": d["label"], "score": d["score"],
                                   **members(d)})
    return dataset, detections


def mask_row(scene):
    def members(o):
        return {"segmentation": text_of(o["mask"])}

    e = evaluated(*dataset_of(scene, range(CLASSES), members), "segm")
    p = e.eval["precision"][:, :, :, 0, 2]
    each = [p[:, :, c] for c in range(CLASSES)]
    return ([math.nan if v == -1 else float(v) for v in e.stats]
            + [float(v[v > -1].mean()) if (v > -1).any() else math.nan for v in each])


def keypoints_of(o, chosen):
    """x, y and visibility of the chosen points; those of a detection are visible."""
    rows = [o["points"][k] for k in chosen]
    rows = [row if len(row) == 3 else (2, *row) for row in rows]
    flat = [v for seen, y, x in rows for v in ((x, y, seen) if seen else (0, 0, 0))]
    return {"keypoints": flat, "num_keypoints": sum(seen > 0 for seen, _, _ in rows)}


def keypoint_row(scene):
    each = []
    for label, (chosen, sigmas) in POINTS_OF.items():
        e = evaluated(*dataset_of(scene, [label], lambda o: keypoints_of(o, chosen)), "keypoints",
                      sigmas)
        each.append([math.nan if v == -1 else float(v) for v in e.stats])
    columns = [[v for v in column if not math.isnan(v)] for column in zip(*each)]
    return ([float(np.mean(c)) if c else math.nan for c in columns] + [row[0] for row in each])


# ---- Pascal VOC ------------------------------------------------------------------------------


def corners(objects):
    return np.array([[y, x, y + h, x + w] for y, x, h, w in (o["box"] for o in objects)],
                    float).reshape(-1, 4)


def pixels_of(objects):
    return np.array([o["mask"] for o in objects], np.uint8).reshape(-1, HEIGHT, WIDTH)


def pascal_row(module, scene):
    categories = [{"id": c + 1, "name": str(c)} for c in range(CLASSES)]
    out = []
    for kind in ("PascalInstanceSegmentationEvaluator",
                 "WeightedPascalInstanceSegmentationEvaluator"):
        evaluator = getattr(module, kind)(categories)
        for i, (truths, found) in enumerate(scene.pictures):
            evaluator.add_single_ground_truth_image_info(i, {
                "groundtruth_boxes": corners(truths),
                "groundtruth_classes": np.array([t["label"] + 1 for t in truths], int),
                "groundtruth_difficult": np.array([t["difficult"] or t["crowd"] for t in truths],
                                                  bool),
                "groundtruth_instance_masks": pixels_of(truths)})
            evaluator.add_single_detected_image_info(i, {
                "detection_boxes": corners(found),
                "detection_scores": np.array([d["score"] for d in found], float),
                "detection_classes": np.array([d["label"] + 1 for d in found], int),
                "detection_masks": pixels_of(found)})
        counts = evaluator._evaluation.num_gt_instances_per_class
        out.append(evaluator._evaluation.evaluate().mean_ap if counts.any() else math.nan)
    return out


# ---- the file --------------------------------------------------------------------------------


def row(values):
    return [None if math.isnan(v) else float(f"{v:.12g}") for v in values]


def lines(rows):
    return ",\n".join(json.dumps(row(r), separators=(",", ":")) for r in rows)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    warnings.simplefilter("ignore")
    scenes = [Scene(i, False) for i in range(SCENES)]
    rows = [[mask_row(s) for s in scenes], [keypoint_row(s) for s in scenes]]
    module = load_evaluation(sys.argv[1])
    rows.append([pascal_row(module, Scene(i, True)) for i in range(PASCAL_SCENES)])
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shape_metrics.json")
    with open(path, "w") as f:
        f.write('{"pycocotools":"%s","numpy":"%s","tf_object_detection":"0.0.3",\n'
                % (version("pycocotools"), np.__version__))
        f.write('"masks":[\n%s\n],\n"keypoints":[\n%s\n],\n"pascal":[\n%s\n]}\n'
                % tuple(map(lines, rows)))
    print(f"{path}: {SCENES} scenes", file=sys.stderr)


if __name__ == "__main__":
    main()
