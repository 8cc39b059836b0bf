#!/usr/bin/env python3
"""Makes edge_labels.json: label maps and the edge labels that OpenCV computes from them, by Canny
with thresholds 0 and 1, removal of the edges of ignored pixels, and dilation by squares.

    python3 tests/golden/edge_labels.py       # OpenCV 5.0.0; 4.11.0 gives the same

A row of a map is a string with a character for each pixel: 0..9 and a..z are 0..35, '.' is 255, the
ignored label, '~' is 254. The rows of the results have the same form. "edges" is the result for a
width of 1 and two classes, "bands" for the width and the classes of the case."""
import json
import os

import cv2
import numpy as np

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
VALUES = {v: c for v, c in enumerate(DIGITS)} | {255: ".", 254: "~"}
IGNORE = 255


def text(m):
    return ["".join(VALUES[int(v)] for v in row) for row in m]


def edge_labels(m, width, classes, ignore):
    kernel = np.ones((width, width), np.uint8)
    edge = cv2.Canny(m, 0, 1)
    if ignore:
        edge[m == IGNORE] = 0
    out = np.full_like(m, classes - 1)
    mask = edge
    for k in range(classes - 1):
        mask = cv2.dilate(mask, kernel, iterations=1)
        out[(mask > 0) & (out == classes - 1)] = k
    if ignore:
        out[m == IGNORE] = IGNORE
    return out


def noise(seed, h, w, values):
    r = np.random.RandomState(seed)
    return np.array(values, np.uint8)[r.randint(0, len(values), (h, w))]


def drawn(seed, h, w, classes, ignored=True):
    """Draws overlapping discs, boxes and triangles, and a frame and spots of ignored pixels."""
    r = np.random.RandomState(seed)
    m = np.zeros((h, w), np.uint8)
    for _ in range(5):
        c = int(r.randint(1, classes))
        y, x, s = int(r.randint(h)), int(r.randint(w)), int(r.randint(3, 12))
        kind = r.randint(3)
        if kind == 0:
            cv2.circle(m, (x, y), s, c, -1)
        elif kind == 1:
            cv2.rectangle(m, (x, y), (x + s, y + s // 2 + 1), c, -1)
        else:
            cv2.fillPoly(m, [np.array([[x, y], [x + s, y + s], [x - s, y + s // 2]])], c)
    if ignored:
        m[:, :2] = IGNORE
        m[h // 2:h // 2 + 3, w // 2:w // 2 + 4] = IGNORE
    return m


def case(m, width, classes, ignore=True):
    return {"map": text(m), "ignore": ignore, "width": width, "classes": classes,
            "edges": text(edge_labels(m, 1, 2, ignore)),
            "bands": text(edge_labels(m, width, classes, ignore))}


def cases():
    yield case(drawn(1, 24, 33, 5), 3, 2)
    yield case(drawn(2, 29, 31, 21), 4, 2)
    yield case(drawn(3, 40, 37, 3), 5, 4)
    yield case(drawn(4, 33, 40, 12, False), 2, 6)
    yield case(drawn(5, 36, 28, 19), 20, 2)
    yield case(drawn(6, 30, 30, 30), 6, 3)
    yield case(noise(7, 17, 23, [0, 1]), 1, 2)
    yield case(noise(8, 19, 22, [0, 1, 2, 3, 20, 35, 255]), 3, 3)
    yield case(noise(9, 16, 21, [0, 1, 254, 255]), 2, 2, False)
    yield case(np.kron(noise(10, 6, 7, [0, 3, 7, 8, 255]), np.ones((6, 5), np.uint8)), 7, 5)
    yield case(noise(11, 1, 20, [0, 1, 5]), 3, 2)
    yield case(noise(12, 18, 1, [0, 1, 5]), 4, 3)
    yield case(np.full((5, 6), 4, np.uint8), 3, 2)
    yield case(np.array([[2]], np.uint8), 20, 2)


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "edge_labels.json")
    with open(path, "w") as f:
        json.dump({"opencv": cv2.__version__, "cases": list(cases())}, f, indent=0)
        f.write("\n")


if __name__ == "__main__":
    main()
