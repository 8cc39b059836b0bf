#!/usr/bin/env python3
"""Makes panoptic_metrics.json: panoptic quality, parsing covering and Cityscapes' average precision
of drawn segments, computed from their definitions on sets of pixels with numpy.

    python3 tests/golden/panoptic_metrics.py       # NumPy 2.4.6

Scenes are overlapping rectangles, drawn from n >> 16 of the sequence n -> (n 1103515245 + 12345)
mod 2^31. The predictions are the same rectangles moved by a few pixels; some are left out or have
another class."""
import json
import os
import sys

import numpy as np

CLASSES, THINGS, DIVISOR, VOID = 6, (2, 3, 4), 1000, -1
IMAGES, HEIGHT, WIDTH = 12, 48, 64


class Numbers:
    def __init__(self, seed):
        self.n = seed

    def __call__(self, below):
        self.n = (self.n * 1103515245 + 12345) % 2**31
        return (self.n >> 16) % below


def scene(index):
    """Returns the ids of the ground truth, the predicted ids, and the score of each predicted
    id."""
    r = Numbers(index + 1)
    truth = np.zeros((HEIGHT, WIDTH), int)
    said = np.zeros((HEIGHT, WIDTH), int)
    scores = {}
    for k in range(14):
        label, y, x, h, w = r(CLASSES), r(HEIGHT - 4), r(WIDTH - 4), 3 + r(24), 3 + r(30)
        dy, dx, fate, score = r(5) - 2, r(5) - 2, r(10), r(8)
        number = k + 1 if label in THINGS else 0
        if fate == 0 and label in THINGS:
            number = 0  # a crowd
        truth[y:y + h, x:x + w] = VOID if fate == 1 else label * DIVISOR + number
        if fate == 2:
            continue
        if fate == 3:
            label = (label + 1) % CLASSES
        ident = VOID if fate == 4 else label * DIVISOR + (k + 1 if label in THINGS else 0)
        said[max(y + dy, 0):y + dy + h, max(x + dx, 0):x + dx + w] = ident
        scores[ident] = score / 8
    scores[0] = 0.5
    return truth, said, scores


def drop(truth, area):
    truth = truth.copy()
    for g in np.unique(truth):
        if g // DIVISOR in THINGS and g % DIVISOR and (truth == g).sum() <= area:
            truth[truth == g] = VOID
    return truth


def is_crowd(g):
    return g // DIVISOR in THINGS and g % DIVISOR == 0


def segments(ids):
    return [i for i in np.unique(ids) if i != VOID]


def quality(scenes, by_size):
    """For each class: [matched, wrong, missed, sum of IoU, covered, area]."""
    sums = np.zeros((CLASSES, 6))
    for truth, said, _ in scenes:
        void, size = truth == VOID, truth.size if by_size else 1
        hit = set()
        for g in segments(truth):
            if is_crowd(g):
                continue
            best, partner, mask = 0, None, truth == g
            for p in segments(said):
                if p // DIVISOR != g // DIVISOR:
                    continue
                other = said == p
                iou = (mask & other).sum() / ((mask | other) & ~(void & other)).sum()
                if iou > best:
                    best, partner = iou, p
            c = g // DIVISOR
            sums[c, 4] += mask.sum() / size * best
            sums[c, 5] += mask.sum() / size
            if best > 0.5:
                hit.add(partner)
                sums[c, 0] += 1
                sums[c, 3] += best
            else:
                sums[c, 2] += 1
        for p in segments(said):
            other = said == p
            crowd = is_crowd(p // DIVISOR * DIVISOR) and truth == p // DIVISOR * DIVISOR
            if p not in hit and (other & (void | crowd)).sum() / other.sum() <= 0.5:
                sums[p // DIVISOR, 1] += 1
    return sums


def rows(sums):
    """[pq, sq, rq, pc, classes] for all classes, for things and for stuff."""
    out = []
    for of in (range(CLASSES), THINGS, [c for c in range(CLASSES) if c not in THINGS]):
        per, pc = [], []
        for c in of:
            tp, fp, fn, iou, covered, area = sums[c]
            if area:
                pc.append(covered / area)
            if tp + fp + fn:
                sq, rq = iou / max(tp, 1), tp / (tp + fp / 2 + fn / 2)
                per.append([sq * rq, sq, rq])
        mean = np.mean(per, axis=0) if per else [np.nan] * 3
        out.append([float(v) for v in mean] + [float(np.mean(pc)), len(per)])
    return out


def curve_area(right, scores, missed):
    order = np.argsort(scores, kind="stable")
    scores, right = np.array(scores)[order], np.array(right, float)[order]
    _, first = np.unique(scores, return_index=True)
    precision, recall = [], []
    for at in first:
        tp = right[at:].sum()
        precision.append(tp / (len(scores) - at))
        recall.append(tp / (right.sum() + missed))
    precision, recall = precision + [1], recall + [0]
    widths = np.convolve([recall[0]] + recall + [0], [-0.5, 0, 0.5], "valid")
    return float(np.dot(precision, widths))


def precision(scenes, label, threshold, least):
    """Average precision of a class; NaN when the scenes have no instance of it to find."""
    right, scores, missed, some, any_said = [], [], 0, False, False
    for truth, said, score in scenes:
        mine = [p for p in segments(said) if p // DIVISOR == label]
        counted = [g for g in segments(truth)
                   if g // DIVISOR == label and g % DIVISOR and (truth == g).sum() >= least]
        unknown = truth == VOID
        for g in segments(truth):
            if g // DIVISOR == label and g not in counted:
                unknown = unknown | (truth == g)
        some, any_said = some or bool(counted), any_said or bool(mine)
        hits = {g: [] for g in counted}
        for p in mine:
            over = [
                g
                for g in counted
                if ((truth == g) & (said == p)).sum() / ((truth == g) | (said == p)).sum()
                > threshold
            ]
            for g in over:
                hits[g].append(score[p])
            if not over and (unknown & (said == p)).sum() / (said == p).sum() <= threshold:
                right.append(False)
                scores.append(score[p])
        for g in counted:
            missed += not hits[g]
            for k, s in enumerate(sorted(hits[g], reverse=True)):
                right.append(k == 0)
                scores.append(s)
    if not some:
        return np.nan
    return curve_area(right, scores, missed) if any_said and right else 0.0


def main():
    cases = []
    for by_size, least, ignored in ((False, 100, 0), (True, 1, 0), (False, 30, 60)):
        scenes = [(drop(t, ignored), s, c) for t, s, c in map(scene, range(IMAGES))]
        sums = quality(scenes, by_size)
        ap = {
            c: [precision(scenes, c, t, least) for t in 0.5 + 0.05 * np.arange(10)] for c in THINGS
        }
        cases.append({
            "normalize_by_image_size": by_size, "least_area": least, "ignored_area": ignored,
            "counts": [[int(v) for v in s[:3]] for s in sums], "rows": rows(sums),
            "ap": [[float(np.mean(ap[c])), float(ap[c][0])] for c in THINGS]})
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "panoptic_metrics.json")
    with open(path, "w") as f:
        f.write('{"numpy":"%s","cases":[\n' % np.__version__)
        f.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]}\n")
    print(f"{path}: {len(cases)} cases", file=sys.stderr)


if __name__ == "__main__":
    main()
