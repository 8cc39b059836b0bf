"""How near the choices of a detector with two stages are to their thresholds, for two_stage.py.
`lists` are those of its graphs, for each picture."""
import numpy as np

MARGIN = 2e-5  # least distance of a choice from its threshold


def overlaps(a, b):
    top, low = np.maximum(a[:, None, :2], b[:, :2]), np.minimum(a[:, None, 2:], b[:, 2:])
    part = np.prod(np.maximum(low - top, 0), 2)
    area = lambda x: np.prod(x[:, 2:] - x[:, :2], 1)
    return part / (area(a)[:, None] + area(b)[None, :] - part)


def apart(values):
    """The least difference of two values."""
    values = np.sort(np.ravel(values))
    return np.diff(values).min() if len(values) > 1 else 1.0


def anchor_margin(anchors, objects):
    """The least distance of the anchors' overlaps from the thresholds, and of the two largest
    overlaps of an object, because the largest one is a forced match."""
    share = overlaps(np.asarray(anchors), np.array([b for b, _, _ in objects], float))
    first = np.sort(share, 0)[::-1]
    weights = np.array([w for _, _, w in objects])
    return min(np.abs(share - 0.3).min(), np.abs(share - 0.7).min(),
               (first[0] - first[1])[weights > 0].min())


def suppression(boxes, scores, iou, most, least):
    """Returns the least distance of a suppression's choices from their thresholds, and the kept
    boxes. Distances are those of overlaps with kept boxes, and those of the scores of pairs whose
    order matters, because both are kept or one suppresses the other."""
    order, share = np.argsort(-scores), overlaps(boxes, boxes)
    margin = np.abs(scores - least).min()
    kept, seen = [], []
    for i in order[:(scores > least).sum()]:
        largest = share[i, kept].max(initial=0)
        margin = min(margin, abs(largest - iou))
        stays = largest <= iou
        for j in seen:
            if share[i, j] > iou - MARGIN or (stays and j in kept):
                margin = min(margin, scores[j] - scores[i])
        if stays and len(kept) == most:
            break
        seen.append(i)
        kept += [i] * bool(stays)
    return margin, kept


def first_margin(c, lists, training):
    """The same for the first stage, and for the matches of its proposals."""
    margin = 1.0
    for i, (_, objects) in enumerate(c["pictures"]):
        margin = min(margin, suppression(lists["decoded"][i], lists["objectness"][i], 0.7,
                                         c["options"]["proposals"],
                                         float(c["options"]["threshold"]))[0])
        if training:
            margin = min(margin, anchor_margin(lists["anchors"], objects))
            truth = np.array([b for b, _, _ in objects], float)
            shares = overlaps(lists["proposals"][i][:lists["proposal_count"][i]], truth)
            margin = min(margin, np.abs(shares - 0.5).min())
    return margin


def second_margin(c, lists):
    """The same for the detections."""
    margin, o = 1.0, c["options"]
    for boxes, scores, count in zip(lists["candidates"], lists["candidate_scores"],
                                    lists["proposal_count"]):
        best = []
        for k in range(scores.shape[1]):
            own, kept = suppression(boxes[:count, k], scores[:count, k], 0.6, o["per_class"],
                                    float(o["least"]))
            margin = min(margin, own)
            best.extend(scores[kept, k])
        margin = min(margin, apart(np.sort(best)[-o["detections"] - 1:]))
    return margin


def same(a, b):
    """True when two runs chose the same: whole numbers are equal, and others nearly."""
    for key, x in a.items():
        for u, v in zip(x, b[key]):
            u, v = np.asarray(u), np.asarray(v)
            if u.shape != v.shape or np.abs(u - v).max(initial=0) > 1e-3:
                return False
    return True
