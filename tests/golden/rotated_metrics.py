#!/usr/bin/env python3
"""Makes rotated_metrics.json: metrics of rotated boxes.

    VENV/bin/python tests/golden/rotated_metrics.py

    # shapely 2.2.0, pycocotools 2.0.11, NumPy 2.4.6

The scenes are those of box_scenes.py, whose boxes are turned; tests/tasks/detection/
rotated_metrics_test.c turns them alike. A detection is wider by 0.26, so that no IoU is at a
threshold. The angle depends on the place: nearby boxes have similar angles, and angles exceed a
quarter turn. Overlaps are areas of polygons by shapely.

coco: for each scene, COCO's twelve metrics by COCOeval of pycocotools with these overlaps; null
where it has -1. voc: for each scene voc_map, voc07_map, weighted_map and corloc by own code, from
the rules of Pascal VOC's development kit. Numbers have 12 digits."""

import contextlib
import io
import json
import math
import os
import sys
from importlib.metadata import version

import numpy as np
import shapely
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from box_scenes import CLASSES, Scene

COCO_SCENES, VOC_SCENES = 200, 200


def polygon(x, y, w, h):
    angle, cx, cy = (x + 2 * y) / 200, x + w / 2, y + h / 2
    c, s = math.cos(angle), math.sin(angle)
    return shapely.Polygon([(cx + u * w / 2 * c - v * h / 2 * s, cy + u * w / 2 * s + v * h / 2 * c)
                            for u, v in ((-1, -1), (1, -1), (1, 1), (-1, 1))])


def overlap(d, t, crowd):
    a, b = polygon(d[0], d[1], d[2] + 0.26, d[3]), polygon(*t[:4])
    inner = a.intersection(b).area
    return inner / (a.area if crowd else a.area + b.area - inner)


# ---- COCO ------------------------------------------------------------------------------------


class Evaluation(COCOeval):
    """COCO's evaluation with overlaps of rotated boxes."""

    def computeIoU(self, image, category):
        truths, found = self._gts[image, category], self._dts[image, category]
        if not truths or not found:
            return []
        order = np.argsort([-d["score"] for d in found], kind="mergesort")
        found = [found[i] for i in order][:self.params.maxDets[-1]]
        return np.array([[overlap(d["row"], t["row"], t["iscrowd"]) for t in truths]
                         for d in found])


def coco_scene(scene):
    dataset = {"info": {}, "annotations": [], "categories": [{"id": c} for c in range(CLASSES)],
               "images": [{"id": i} for i in range(len(scene.pictures))]}
    detections = []
    for i, (truths, found, _) in enumerate(scene.pictures):
        for t in truths:
            dataset["annotations"].append(
                {"id": len(dataset["annotations"]) + 1, "image_id": i, "category_id": t[5],
                 "bbox": t[:4], "area": t[4], "iscrowd": int(t[6]), "row": t})
        for d in found:
            detections.append({"image_id": i, "category_id": d[4], "score": d[5], "row": d,
                               "bbox": [d[0], d[1], d[2] + 0.26, d[3]]})
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = dataset
        truth.createIndex()
        e = Evaluation(truth, truth.loadRes(detections) if detections else COCO(), "bbox")
        e.evaluate()
        e.accumulate()
        e.summarize()
    return [math.nan if v == -1 else v for v in e.stats]


# ---- Pascal VOC ------------------------------------------------------------------------------


def marks_of(scene, label):
    """(score, right) of the detections that count, the number of objects, and of the pictures
    with the class the share in which the best detection is right."""
    marks, objects, pictures, located = [], 0, 0, 0
    for truths, found, _ in scene.pictures:
        truths = [t for t in truths if t[5] == label]
        found = sorted((d for d in found if d[4] == label), key=lambda d: -d[5])
        used = set()
        objects += sum(not (t[6] or t[7]) for t in truths)
        pictures += bool(truths)
        for rank, d in enumerate(found):
            ious = [overlap(d, t, False) for t in truths]
            best = int(np.argmax(ious)) if ious else -1
            hit = best >= 0 and ious[best] >= 0.5
            located += rank == 0 and hit
            if hit and (truths[best][6] or truths[best][7]):
                continue
            marks.append((d[5], hit and best not in used))
            if hit:
                used.add(best)
    return marks, objects, located / pictures if pictures else math.nan


def curve_of(marks, objects):
    right = np.cumsum([m[1] for m in sorted(marks, key=lambda m: -m[0])])
    precision = right / np.arange(1, len(right) + 1)
    return right, np.maximum.accumulate(precision[::-1])[::-1]


def area_under(marks, objects):
    right, precision = curve_of(marks, objects)
    return float(np.sum(np.diff(right, prepend=0) / objects * precision))


def at_11_recalls(marks, objects):
    right, precision = curve_of(marks, objects)
    return sum(max(precision[10 * right >= k * objects], default=0) for k in range(11)) / 11


def voc_scene(scene):
    of = [marks_of(scene, c) for c in range(CLASSES)]
    counted = [(m, n) for m, n, _ in of if n]
    mean = lambda v: float(np.mean(v)) if len(v) else math.nan
    pooled = sum((m for m, n in counted), []), sum(n for m, n in counted)
    return [mean([area_under(m, n) for m, n in counted]),
            mean([at_11_recalls(m, n) for m, n in counted]),
            area_under(*pooled) if counted else math.nan,
            mean([c for _, _, c in of if not math.isnan(c)])]


# ---- the file --------------------------------------------------------------------------------


def lines(rows):
    rows = [[None if math.isnan(v) else float(f"{v:.12g}") for v in r] for r in rows]
    return ",\n".join(json.dumps(r, separators=(",", ":")) for r in rows)


def main():
    coco = [coco_scene(Scene(i, False)) for i in range(COCO_SCENES)]
    voc = [voc_scene(Scene(i, True)) for i in range(VOC_SCENES)]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rotated_metrics.json")
    with open(path, "w") as f:
        f.write('{"shapely":"%s","pycocotools":"%s","numpy":"%s",\n"coco":[\n%s\n],\n"voc":[\n%s\n'
                ']}\n' % (shapely.__version__, version("pycocotools"), np.__version__,
                          lines(coco), lines(voc)))
    print(f"{path}: {len(coco)} + {len(voc)} scenes", file=sys.stderr)


main()
