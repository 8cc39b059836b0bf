#!/usr/bin/env python3
"""Makes coco_metrics.json: COCO's twelve metrics of drawn masks and boxes, computed by COCO's own
evaluation (COCOeval of pycocotools).

    python3 tests/golden/coco_metrics.py       # pycocotools 2.0.11, NumPy 2.4.6

Scenes are rectangles. Their coordinates are n >> 16 of the sequence n -> (n 1103515245 + 12345) mod
2^31. A mask is the visible part of a rectangle: later ones cover earlier ones. A box is the whole
rectangle. The predictions are the same rectangles moved by a few pixels; some are left out or have
another class, and there are few different scores. One class has no ground truth. One class of the
masks is always a crowd. One picture is empty, and one has more boxes than COCO counts per
picture."""

import contextlib
import io
import json
import os
import sys

import numpy as np
from importlib.metadata import version
from pycocotools import mask as masks
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from panoptic_metrics import Numbers

DIVISOR, VOID, EMPTY, FULL = 1000, -1, 3, 5
HEIGHT, WIDTH, IMAGES, SHAPES = 288, 320, 10, 28
MASK_CLASSES, BOX_CLASSES = (2, 3, 4, 5), (0, 1, 2, 3)
MASK_SIDES, BOX_SIDES = (150, 80, 40, 16), (20, 40, 110, 240)


# ---- masks -----------------------------------------------------------------------------------


def mask_scene(index):
    """Returns the ids of the ground truth, the predicted ids, and the score of each predicted
    id."""
    r = Numbers(index + 1)
    truth = np.zeros((HEIGHT, WIDTH), int)
    said = np.zeros((HEIGHT, WIDTH), int)
    scores = {0: 0.5}
    for k in range(0 if index == EMPTY else SHAPES):
        side = MASK_SIDES[k // 7]
        label, y, x, h, w = r(5), r(HEIGHT), r(WIDTH), side // 2 + r(side), side // 2 + r(side)
        dy, dx, fate, score = r(side // 8 + 1), r(side // 8 + 1), r(12), r(8)
        own = 0 if label < 2 or label == 4 or fate == 0 else k + 1
        truth[y:y + h, x:x + w] = VOID if fate == 1 else label * DIVISOR + own
        if fate == 2:
            continue
        label = 5 if fate == 3 else label
        ident = VOID if fate == 4 else label * DIVISOR + (0 if label < 2 else k + 1)
        said[y + dy:y + dy + h, x + dx:x + dx + w] = ident
        scores[ident] = score / 8
    return truth, said, scores


def instances(ids):
    """The instances of a map of ids, in the order of their first pixels."""
    found, first = np.unique(ids, return_index=True)
    return [int(i) for _, i in sorted(zip(first, found)) if i // DIVISOR in MASK_CLASSES]


def mask_picture(index):
    truth, said, scores = mask_scene(index)
    code = lambda m: masks.encode(np.asfortranarray(m.astype(np.uint8)))
    return (
        [
            {
                "category_id": i // DIVISOR,
                "segmentation": code(truth == i),
                "area": int((truth == i).sum()),
                "iscrowd": int(i % DIVISOR == 0),
            }
            for i in instances(truth)
        ],
        [
            {"category_id": i // DIVISOR, "segmentation": code(said == i), "score": scores[i]}
            for i in instances(said)
        ],
    )


# ---- boxes -----------------------------------------------------------------------------------


def box_picture(index):
    r = Numbers(1000 + index)
    truth, said = [], []
    for label in BOX_CLASSES:
        mine = []
        for _ in range(0 if label == 3 or index == EMPTY else r(7)):
            side = BOX_SIDES[r(4)]
            box = [r(400), r(400), side // 2 + r(side), side // 2 + r(side)]
            for _ in range(1 + (r(6) == 0)):
                mine.append((side, box))
                truth.append(
                    {
                        "category_id": label,
                        "bbox": box,
                        "area": box[2] * box[3] * (3 + r(2)) // 4,
                        "iscrowd": int(r(8) == 0),
                    }
                )
        for side, (x, y, w, h) in mine:
            for _ in range(r(4)):
                x, y = x + r(side // 8 + 1), y + r(side // 8 + 1)
                said.append({"category_id": label, "bbox": [x, y, w, h], "score": r(16) / 16})
        for _ in range(120 if label == 0 and index == FULL else r(6)):
            said.append({"category_id": label, "bbox": [r(400), r(400), 1 + r(200), 1 + r(200)],
                         "score": r(16) / 16})
    return truth, said


# ---- COCO's evaluation -----------------------------------------------------------------------


def figures(e, classes):
    """The twelve metrics, averaged as in COCOeval.summarize."""
    p, r = e.eval["precision"][:, :, classes], e.eval["recall"][:, classes]
    chosen = [p[:, :, :, 0, 2], p[0, :, :, 0, 2], p[5, :, :, 0, 2]] + [
        p[:, :, :, a, 2] for a in (1, 2, 3)
    ]
    chosen += [r[:, :, 0, m] for m in range(3)] + [r[:, :, a, 2] for a in (1, 2, 3)]
    return [float(v[v > -1].mean()) if (v > -1).any() else None for v in chosen]


def evaluate(pictures, classes, kind):
    truth = COCO()
    truth.dataset = {"info": {}, "images": [{"id": i + 1, "height": HEIGHT, "width": WIDTH}
                                                for i in range(len(pictures))],
                     "categories": [{"id": c, "name": str(c)} for c in classes], "annotations": []}
    said = []
    for i, (t, s) in enumerate(pictures):
        for a in t:
            a.update(id=len(truth.dataset["annotations"]) + 1, image_id=i + 1)
            truth.dataset["annotations"].append(a)
        said += [dict(a, image_id=i + 1) for a in s]
    truth.createIndex()
    e = COCOeval(truth, truth.loadRes(said), kind)
    e.evaluate()
    e.accumulate()
    e.summarize()
    every = figures(e, list(range(len(classes))))
    assert np.allclose([-1 if v is None else v for v in every], e.stats, rtol=0, atol=1e-15)
    return {"true": len(truth.dataset["annotations"]), "said": len(said), "figures": every,
            "classes": [figures(e, [k]) for k in range(len(classes))]}


def main():
    cases = {}
    with contextlib.redirect_stdout(io.StringIO()):
        cases["masks"] = evaluate([mask_picture(i) for i in range(IMAGES)], MASK_CLASSES, "segm")
        cases["boxes"] = evaluate([box_picture(i) for i in range(IMAGES)], BOX_CLASSES, "bbox")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "coco_metrics.json")
    with open(path, "w") as f:
        f.write('{"pycocotools":"%s","numpy":"%s",\n' % (version("pycocotools"), np.__version__))
        f.write(
            ",\n".join(
                '"%s":%s' % (k, json.dumps(c, separators=(",", ":"))) for k, c in cases.items()
            )
        )
        f.write("\n}\n")
    print(f"{path}: {len(cases)} cases", file=sys.stderr)


main()
