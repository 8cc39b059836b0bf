"""The rule by which `pumice predict` chooses rotated boxes, for programs that run an exported
model: its metadata `detection` has the thresholds. Boxes are cy, cx, h, w, angle. Not included:
use_class_agnostic_nms and soft_nms_sigma."""
import numpy as np


def corners(box):
    """The four corners x, y of a box."""
    cy, cx, h, w, angle = (float(v) for v in box)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return np.array([cx, cy]) + np.array([(-w, -h), (w, -h), (w, h), (-w, h)]) / 2 @ turn.T


def area(polygon):
    x, y = np.array(polygon).reshape(-1, 2).T
    return abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2


def overlap(a, b):
    """Intersection over union: the corners of a are clipped by the four edges of b."""
    polygon, edges = list(corners(a)), corners(b)
    for p, q in zip(edges, np.roll(edges, -1, axis=0)):
        side = [(q - p)[0] * (v - p)[1] - (q - p)[1] * (v - p)[0] for v in polygon]
        kept = []
        for v, w, s, t in zip(polygon, polygon[1:] + polygon[:1], side, side[1:] + side[:1]):
            kept += [v] if s >= 0 else []
            kept += [v + (w - v) * (s / (s - t))] if s * t < 0 else []
        polygon = kept
    both = area(polygon)
    return both / (area(corners(a)) + area(corners(b)) - both)


def suppress(boxes, scores, rule):
    """boxes [N, 5] and scores [N, classes] of a picture. Returns (score, class from 0, box) of
    each detection, the best first. rule: post_processing of the metadata."""
    found = []
    for k in range(scores.shape[1]):
        kept = []
        for i in np.argsort(-scores[:, k], kind="stable"):
            if scores[i, k] <= rule["score_threshold"] or \
                    len(kept) == rule["max_detections_per_class"]:
                break
            if all(overlap(boxes[i], boxes[j]) <= rule["iou_threshold"] for j in kept):
                kept.append(i)
        found += [(scores[i, k], k, boxes[i]) for i in kept]
    return sorted(found, key=lambda f: -f[0])[:rule["max_total_detections"]]
