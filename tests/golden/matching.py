#!/usr/bin/env python3
"""Makes matching.json: matches of anchors and true boxes, computed by TensorFlow's Object Detection
API of 2019 (target_assigner's similarity and matchers, in float32).

    VENV/bin/python tests/golden/matching.py    # tfod.py describes VENV

The numbers of a scene are those of the class Numbers. Coordinates are whole 1024ths, so they are
exact in float32. Some true boxes equal an anchor or another true box, and boxes may lie outside of
the picture. Scene ALONE has one true box that overlaps no anchor.

The kernel of the original's bipartite matcher was part of tf.contrib; bipartite_match() replaces
it. Each scene has a second list of matches by it, with those true boxes that equal no earlier one:
the kernel's order of equal pairs is not documented. The original puts true boxes with weight 0 last
and returns numbers in that order; the script returns the boxes' own numbers."""

import json
import os

import numpy as np

import tfod

tf = tfod.load()
from object_detection.core import box_list  # noqa: E402
from object_detection.core import region_similarity_calculator as similarities  # noqa: E402
from object_detection.matchers import argmax_matcher, bipartite_matcher  # noqa: E402

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
BIPARTITE = ["iou", "neg_sq_dist"]
CLEAR = 1e-6  # least difference of two distances between which the order decides


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
    if name == "neg_sq_dist":
        return similarities.NegSqDistSimilarity()
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


def nearest_first(distances, rows):
    """Matches the nearest pair of a row and a column until each of the first `rows` rows has a
    column. Returns the column of each row and the row of each column, or -1."""
    row_to_column = np.full(distances.shape[0], -1, np.int32)
    column_to_row = np.full(distances.shape[1], -1, np.int32)
    left = distances[:int(rows)].copy()
    for _ in range(len(left)):
        row, column = np.unravel_index(left.argmin(), left.shape)
        near = np.sort(np.concatenate([left[row], left[:, column]]))
        assert near[2] - near[1] > CLEAR, "the order of equal pairs would decide"
        row_to_column[row], column_to_row[column] = column, row
        left[row], left[:, column] = np.inf, np.inf
    return row_to_column, column_to_row


def bipartite_match(distance_mat, num_valid_rows):
    """In place of tf.contrib.image's operation of that name."""
    return tf.py_func(nearest_first, [distance_mat, num_valid_rows], [tf.int32, tf.int32])


def match_bipartite(session, drawn, name):
    anchors, truths, weights, _ = drawn
    rows = [i for i, t in enumerate(truths) if t not in truths[:i]]
    boxes = box_list.BoxList(tf.constant(np.array(truths, np.float32)[rows] / 1024))
    quality = similarity(name).compare(
        boxes, box_list.BoxList(tf.constant(np.array(anchors, np.float32) / 1024)))
    valid = np.array(weights)[rows] > 0
    matched = bipartite_matcher.GreedyBipartiteMatcher().match(quality, tf.constant(valid))
    order = [r for r, v in zip(rows, valid) if v] + [r for r, v in zip(rows, valid) if not v]
    return [order[m] if m >= 0 else -1 for m in session.run(matched.match_results).tolist()]


def main():
    bipartite_matcher.image_ops.bipartite_match = bipartite_match
    out = {"tf-object-detection": "0.0.3", "tensorflow": "2.12.1", "iou_threshold": IOU_THRESHOLD,
           "settings": SETTINGS, "bipartite": BIPARTITE, "scenes": []}
    with tf.Session() as session:
        for index in range(SCENES + 1):
            drawn = scene(index)
            results = [match(session, drawn, s) for s in SETTINGS]
            out["scenes"].append({
                "best": results[0][1], "matches": [r[0] for r in results],
                "bipartite": [match_bipartite(session, drawn, name) for name in BIPARTITE
                              if index != ALONE]})
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "matching.json")
    with open(path, "w") as f:
        head = json.dumps(out, separators=(",", ":"))
        f.write(head.replace('{"best"', '\n{"best"').replace('"matches"', '\n"matches"')
                .replace('"bipartite":[[', '\n"bipartite":[[') + "\n")


if __name__ == "__main__":
    main()
