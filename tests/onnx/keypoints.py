"""Compares the keypoints of an exported detector with those that `pumice predict` prints."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from checks import check  # noqa: E402
from detectors import PIXELS, row_of  # noqa: E402

# A softmax moves by at most a quarter of the difference of two logits. Exported values may differ
# by 1e-4 of the largest (export_check.py): for logits of up to 20 that is 2 * 20 * 1e-4 / 4.
POINT_SCORE = 1e-3


def check_keypoint_outputs(what, count, boxes, points, scores):
    """Checks shapes, padding and places: a keypoint lies inside its box."""
    import numpy as np
    shape = (*boxes.shape[:2], 3)
    check(points.shape == (*shape, 2) and scores.shape == shape and points.dtype == np.float32
          and scores.dtype == np.float32, f"{what}: keypoints {points.shape}, {scores.shape}")
    for i, c in enumerate(int(c) for c in count):
        low, high = boxes[i, :c, None, :2], boxes[i, :c, None, 2:]
        check((points[i, :c] >= low - 1e-6).all() and (points[i, :c] <= high + 1e-6).all(),
              f"{what}: picture {i}: a keypoint is outside of its box")
        check((scores[i, :c] > 0).all() and (scores[i, :c] <= 1).all(), f"{what}: scores")
        check(not points[i, c:].any() and not scores[i, c:].any(), f"{what}: picture {i}: padding")


def check_keypoints(what, found, shape, boxes, scores, classes, points, values):
    """Compares the keypoints of the detections of a picture; predict rounds to 0.01 pixel. Where a
    heatmap has several places that are alike, rounding chooses between them; above a softmax of a
    half there is only one. Returns the number of these keypoints. found: the boxes that predict
    printed."""
    import numpy as np
    compared = 0
    for w in found:
        row = row_of(w, shape, boxes, scores, classes)
        if row is None:
            continue
        want = np.array(w["keypoints"])
        sure = want[:, 2] > 0.5 + POINT_SCORE
        differs = np.abs(points[row] * shape - want[:, :2])[sure].max(initial=0)
        check(differs < PIXELS, f"{what}: keypoints of {w['box']} differ by {differs} pixels")
        off = np.abs(values[row] - want[:, 2]).max()
        check(off < POINT_SCORE, f"{what}: scores of keypoints differ by {off}")
        compared += int(sure.sum())
    return compared
