#!/usr/bin/env python3
"""Makes matching.json: matches of anchors and true boxes, computed by TensorFlow's Object Detection
API of 2019 (target_assigner's similarity and matcher, in float32).

    TFOD=SITE_PACKAGES python3 tests/golden/matching.py SHIM_FOLDER
        # tf-object-detection 0.0.3, TensorFlow 2.12.1, tf_slim 1.1.0
        # SHIM_FOLDER holds shim.py, which replaces tf.contrib

The numbers of a scene are those of the class Numbers. Coordinates are whole 1024ths, so they are
exact in float32. Some true boxes equal an anchor or another true box, and boxes may lie outside of
the picture. Scene ALONE has one true box that overlaps no anchor."""

import json
import os
import sys

sys.path.insert(0, sys.argv[1])
import shim  # noqa: E402,F401  must be imported before the API
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from object_detection.core import box_list  # noqa: E402
from object_detection.core import region_similarity_calculator as similarities  # noqa: E402
from object_detection.matchers import argmax_matcher  # noqa: E402

from panoptic_metrics import Numbers  # noqa: E402

SCENES, ALONE, ANCHORS, TRUTHS = 6, 6, 150, 14
SETTINGS = [  # similarity, matched, unmatched, negatives lower than unmatched, forced
    ["iou", 0.5, 0.5, True, False],
    ["iou", 0.5, 0.5, True, True],
    ["iou", 0.5, 0.25, True, True],
    ["iou", 0.5, 0.125, False, True],
    ["iou", None, None, True, False],
    ["iou", None, None, True, True],
    ["ioa", 0.75, 0.5, True, True],
    ["thresholded_iou", 0.5, 0.25, True, False],
]
IOU_THRESHOLD = 0.25


def box(r):
    y, x = r(1100) - 38, r(1100) - 38
    h, w = 40 + r(400), 40 + r(400)
    return [y, x, y + h, x + w]


def scene(index):
    """Returns anchors, true boxes, weights and scores."""
    r = Numbers(index + 1)
    anchors = [box(r) for _ in range(ANCHORS)]
    if index == ALONE:
        return anchors, [[3000, 3000, 3100, 3100]], [1], [1]
    truths, weights, scores = [], [], []
    for i in range(TRUTHS):
        fate = r(6)
        truths.append(anchors[r(ANCHORS)] if fate == 0 else
                      truths[r(i)] if fate == 1 and i else box(r))
        weights.append(0 if r(8) == 0 else 1)
        scores.append(r(9) / 8)
    return anchors, truths, weights, scores


def similarity(name):
    if name == "thresholded_iou":
        return similarities.ThresholdedIouSimilarity(IOU_THRESHOLD)
    return similarities.IouSimilarity() if name == "iou" else similarities.IoaSimilarity()


def match(session, drawn, setting):
    name, matched, unmatched, lower, forced = setting
    anchors, truths, weights, scores = drawn
    boxes = box_list.BoxList(tf.constant(np.array(truths, np.float32) / 1024))
    boxes.add_field("scores", tf.constant(np.array(scores, np.float32)))
    quality = similarity(name).compare(
        boxes, box_list.BoxList(tf.constant(np.array(anchors, np.float32) / 1024)))
    matcher = argmax_matcher.ArgMaxMatcher(matched, unmatched, lower, forced)
    result = matcher.match(quality, tf.constant(np.array(weights) > 0))
    quality, result = session.run([quality, result.match_results])
    # Boxes without overlap are forced onto the first anchor only with "strict".
    alone = len(truths) == 1
    assert not forced or alone or name != "iou" or quality.max(1).all()
    return [int(m) for m in result], [float(np.float32(q)) for q in quality.max(1)]


def main():
    out = {"tf-object-detection": "0.0.3", "tensorflow": "2.12.1", "iou_threshold": IOU_THRESHOLD,
           "settings": SETTINGS, "scenes": []}
    with tf.Session() as session:
        for index in range(SCENES + 1):
            drawn = scene(index)
            results = [match(session, drawn, s) for s in SETTINGS]
            out["scenes"].append({"best": results[0][1], "matches": [r[0] for r in results]})
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "matching.json")
    with open(path, "w") as f:
        head = json.dumps(out, separators=(",", ":"))
        f.write(head.replace('{"best"', '\n{"best"').replace('"matches"', '\n"matches"') + "\n")


if __name__ == "__main__":
    main()
