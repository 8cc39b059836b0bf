#!/usr/bin/env python3
"""Makes box_metrics.json: metrics of detected boxes.

    python3 tests/golden/box_metrics.py SHARED PACKAGE

    # pycocotools 2.0.11, NumPy 2.4.6, tf-object-detection 0.0.3, tidecv 1.0.1

SHARED: the folder of coco-mini, a part of COCO 2017. PACKAGE: the unpacked wheel of
tf-object-detection, of which only evaluation in NumPy runs; TensorFlow is not needed.

coco: for each of the drawn scenes (box_scenes.py), COCO's twelve metrics by COCOeval of
pycocotools, then the average precision of each class. coco_mini: the twelve for the pictures of
coco-mini with moved true boxes as detections. voc: for each drawn scene voc_map, voc07_map (own
code), weighted_map, precision_at_recall from 0.2 to 0.8, corloc, open_images_map and
open_images_challenge_map, by object_detection_evaluation.py; crowds are difficult, as in
box_metrics. errors: for each drawn scene but every 25th, without flags and objects drawn twice, and
with detections wider by 0.25, the counts of right, loose, wrong_class, double, background, both and
missed by tidecv. Numbers have 8 digits."""

import contextlib
import io
import json
import math
import os
import sys
import warnings

import numpy as np
import tidecv
from importlib.metadata import version
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from box_scenes import CLASSES, Scene
from panoptic_metrics import Numbers
from tfod_evaluation import load_evaluation

SCENES, VOC_SCENES, BOUNDS = 1000, 300, (0.2, 0.8)


# ---- COCO ------------------------------------------------------------------------------------


def figures(e, classes):
    """The twelve metrics, averaged as in COCOeval.summarize."""
    p, r = e.eval["precision"][:, :, classes], e.eval["recall"][:, classes]
    chosen = [p[:, :, :, 0, 2], p[0, :, :, 0, 2], p[5, :, :, 0, 2]]
    chosen += [p[:, :, :, a, 2] for a in (1, 2, 3)]
    chosen += [r[:, :, 0, m] for m in range(3)] + [r[:, :, a, 2] for a in (1, 2, 3)]
    return [float(v[v > -1].mean()) if (v > -1).any() else math.nan for v in chosen]


def evaluate(dataset, detections):
    """Rows of metrics: of all categories, then of each."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = dataset
        truth.createIndex()
        found = truth.loadRes(detections) if detections else COCO()
        e = COCOeval(truth, found, "bbox")
        e.evaluate()
        e.accumulate()
        e.summarize()
    classes = list(range(len(e.params.catIds)))
    every = figures(e, classes)
    assert np.allclose([-1 if math.isnan(v) else v for v in every], e.stats, rtol=0, atol=1e-15)
    return [every] + [figures(e, [k]) for k in classes]


def coco_scene(scene):
    dataset = {"info": {}, "annotations": [], "categories": [{"id": c} for c in range(CLASSES)],
               "images": [{"id": i} for i in range(len(scene.pictures))]}
    detections = []
    for i, (truths, found, _) in enumerate(scene.pictures):
        for x, y, w, h, area, label, crowd, _, _ in truths:
            ident = len(dataset["annotations"]) + 1
            dataset["annotations"].append(
                {"id": ident, "image_id": i, "category_id": label, "bbox": [x, y, w, h],
                 "area": area, "iscrowd": int(crowd)})
        for x, y, w, h, label, score in found:
            detections.append({"image_id": i, "category_id": label, "bbox": [x, y, w, h],
                               "score": score})
    return dataset, detections


def coco_mini(path):
    """The annotations of a file in their order, moved, some of another class, some left out."""
    with open(path) as f:
        dataset = json.load(f)
    ids = sorted(c["id"] for c in dataset["categories"])
    detections, r = [], Numbers(77)
    for a in dataset["annotations"]:
        for _ in range(r(4)):
            x, y, w, h = a["bbox"]
            x, y = x + w * (r(21) - 10) / 50, y + h * (r(21) - 10) / 50
            w, h = w * (40 + r(21)) / 50, h * (40 + r(21)) / 50
            label = ids[r(len(ids))] if r(8) == 0 else a["category_id"]
            detections.append({"image_id": a["image_id"], "category_id": label,
                               "bbox": [x, y, w, h], "score": r(100) / 100})
    return dataset, detections


# ---- Pascal VOC and Open Images --------------------------------------------------------------


def boxes_of(rows):
    return np.array([[y, x, y + h, x + w] for x, y, w, h, *_ in rows], float).reshape(-1, 4)


def add_scene(evaluator, scene):
    for i, (truths, found, verified) in enumerate(scene.pictures):
        column = lambda k, kind: np.array([t[k] for t in truths], kind)
        evaluator.add_single_ground_truth_image_info(i, {
            "groundtruth_boxes": boxes_of(truths), "groundtruth_classes": column(5, int) + 1,
            "groundtruth_difficult": column(6, bool) | column(7, bool),
            "groundtruth_group_of": column(8, bool),
            "groundtruth_image_classes": np.array(verified, int) + 1})
        evaluator.add_single_detected_image_info(i, {
            "detection_boxes": boxes_of(found),
            "detection_scores": np.array([d[5] for d in found], float),
            "detection_classes": np.array([d[4] for d in found], int) + 1})
    return evaluator._evaluation.evaluate()


def at_11_recalls(precision, recall, truths):
    """Mean of the best precisions at recalls of at least 0, 0.1 ... 1."""
    right = np.round(recall * truths)
    best = [precision[right * 10 >= k * truths] for k in range(11)]
    return float(np.mean([b.max() if b.size else 0 for b in best]))


def voc_scene(module, scene):
    categories = [{"id": c + 1, "name": str(c)} for c in range(CLASSES)]
    plain = module.ObjectDetectionEvaluator(categories, evaluate_corlocs=True)
    pascal = add_scene(plain, scene)
    counts = plain._evaluation.num_gt_instances_per_class
    old = [at_11_recalls(pascal.precisions[c], pascal.recalls[c], counts[c])
           for c in range(CLASSES) if counts[c]]
    bounded = module.PrecisionAtRecallDetectionEvaluator(
        categories, recall_lower_bound=BOUNDS[0], recall_upper_bound=BOUNDS[1])
    weighted = math.nan
    if counts.any():
        weighted = add_scene(module.WeightedPascalDetectionEvaluator(categories), scene).mean_ap
    return [pascal.mean_ap, float(np.mean(old)) if old else math.nan, weighted,
            add_scene(bounded, scene).mean_ap, pascal.mean_corloc,
            add_scene(module.OpenImagesDetectionEvaluator(categories), scene).mean_ap,
            add_scene(module.OpenImagesDetectionChallengeEvaluator(categories), scene).mean_ap]


# ---- errors ----------------------------------------------------------------------------------


def error_scene(scene):
    truth, found = tidecv.Data("truth"), tidecv.Data("found")
    for c in range(CLASSES):
        truth.add_class(c, str(c))
    for i, (truths, detections, _) in enumerate(scene.pictures):
        truth.add_image(i, str(i))
        for k, t in enumerate(truths):
            if k == 0 or t[:4] != truths[k - 1][:4]:
                truth.add_ground_truth(i, t[5], box=list(t[:4]))
        for x, y, w, h, label, score in detections:
            found.add_detection(i, label, score, box=[x, y, w + 0.25, h])
    tidecv.ap.ClassedAPDataObject.get_mAP = lambda self: 0  # it cannot do without objects
    run = tidecv.quantify.TIDERun(truth, found, 0.5, 0.1, tidecv.TIDE.BOX, 100)
    right = sum(len([p for p in o.data_points.values() if p[1]]) for o in run.ap_data.objs.values())
    kinds = ("BoxError", "ClassError", "DuplicateError", "BackgroundError", "OtherError",
             "MissedError")
    counts = {kind.__name__: len(errors) for kind, errors in run.error_dict.items()}
    return [right] + [counts[k] for k in kinds]


# ---- the file --------------------------------------------------------------------------------


def row(values):
    return [None if math.isnan(v) else float(f"{v:.8g}") for v in values]


def lines(rows):
    return ",\n".join(json.dumps(r, separators=(",", ":")) for r in rows)


def main():
    warnings.simplefilter("ignore")
    shared, package = sys.argv[1:]
    coco = [evaluate(*coco_scene(Scene(i, False))) for i in range(SCENES)]
    coco = [row(every + [c[0] for c in classes]) for every, *classes in coco]
    mini = [row(r) for name in ("train2017", "val2017") for r in evaluate(*coco_mini(
        os.path.join(shared, "annotations", f"instances_{name}.json")))[:1]]
    module = load_evaluation(package)
    voc = [row(voc_scene(module, Scene(i, True))) for i in range(VOC_SCENES)]
    errors = [error_scene(Scene(i, True)) for i in range(VOC_SCENES) if i % 25]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "box_metrics.json")
    with open(path, "w") as f:
        f.write('{"pycocotools":"%s","numpy":"%s","tf_object_detection":"0.0.3",'
                '"tidecv":"%s",\n' % (version("pycocotools"), np.__version__, version("tidecv")))
        f.write('"coco":[\n%s\n],\n"coco_mini":[\n%s\n],\n"voc":[\n%s\n],\n"errors":[\n%s\n]}\n'
                % tuple(map(lines, (coco, mini, voc, errors))))
    print(f"{path}: {len(coco)} + {len(mini)} + {len(voc)} scenes", file=sys.stderr)


main()
