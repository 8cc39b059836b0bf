#!/usr/bin/env python3
"""Makes rotated_overlap.json: pairs of rotated boxes and their overlaps by shapely, and checks our
overlap on many more pairs.

    VENV/bin/python tests/golden/rotated_overlap.py           # writes the file: 150 pairs a kind
    VENV/bin/python tests/golden/rotated_overlap.py 1000000   # checks so many pairs

The second form compiles src/layers/rotated_overlap.c. It exits with 1 if an error is too large.
VENV has numpy, shapely 2.2 and, for the second form, opencv-python-headless.

A pair is ten floats, cy, cx, h, w, angle of each box, and the overlap of these exact floats. The
corners are computed in double precision relative to the first box's centre. GEOS sometimes finds
no intersection of two nearly equal boxes. Where shapely is more than 1e-9 from a clipper in exact
fractions, the clipper's result counts; the script prints how often. OpenCV is a second opinion
only: it merges points by fixed distances, so it errs by up to 0.7 for small, touching and nearly
equal boxes."""

import ctypes
import json
import math
import os
import subprocess
import sys
import tempfile
from fractions import Fraction

import numpy as np
import shapely

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
KINDS = ["any", "near", "thin", "thin in line", "nested", "crossing", "by 45 degrees",
         "by 90 degrees", "touching", "equal", "small", "large", "far from the origin"]
DOUBLE, FLOAT = 1e-9, 1e-5  # largest errors of our overlaps


def draw(rng, kind, n):
    def box(low, high):
        u = rng.uniform
        return np.stack([u(-1, 1, n), u(-1, 1, n), np.exp(u(low, high, n)), np.exp(u(low, high, n)),
                         u(-math.pi / 2, math.pi / 2, n)], 1)

    def moved(box, scale):
        return box + rng.normal(0, 1, (n, 5)) * scale

    a, b = box(-3, 0), box(-3, 0)
    if kind == "near":
        b = moved(a, 10.0 ** rng.uniform(-8, -2, (n, 1)))
    if kind.startswith("thin"):
        for z in a, b:
            z[:, :2] *= 500
            z[:, 2:4] = [1, 1000]
        if kind == "thin in line":
            t = rng.uniform(-1100, 1100, n)
            b = a.copy()
            b[:, 0] += t * np.sin(a[:, 4])
            b[:, 1] += t * np.cos(a[:, 4])
            b = moved(b, [.2, .2, .1, 1, 5e-4])
        some = rng.random(n) < 0.3
        b[some] = b[some][:, [0, 1, 3, 2, 4]]
        b[some, 4] += math.pi / 2
    if kind == "nested":
        b = moved(a, [.01, .01, 0, 0, .1])
        b[:, 2:4] = a[:, 2:4] * rng.uniform(.01, .9, (n, 2))
    if kind == "crossing":
        b[:, :2] = a[:, :2]
    if kind.startswith("by "):
        turn = np.float32(math.radians(float(kind.split()[1])))
        b = moved(b, 0)
        b[:, :2] = a[:, :2] + rng.normal(0, .1, (n, 2)) * (rng.random((n, 1)) < .7)
        b[:, 4] = a[:, 4].astype(np.float32) + turn
        some = rng.random(n) < 0.5
        b[some, 2:4] = a[some][:, [3, 2]]
    if kind == "touching":
        a[:, 4] = rng.choice([0, math.pi / 2, -math.pi / 2, math.pi / 4], n)
        a[:, :4] = np.round(a[:, :4] * 64) / 64 + [0, 0, 1 / 64, 1 / 64]
        b[:, 4] = a[:, 4]
        b[:, 2:4] = np.round(b[:, 2:4] * 64) / 64 + 1 / 64
        far = (a[:, 3] + b[:, 3]) / 2
        b[:, 0] = a[:, 0] + far * np.sin(a[:, 4])
        b[:, 1] = a[:, 1] + far * np.cos(a[:, 4])
    if kind == "equal":
        b = a.copy()
    if kind in ("small", "large"):
        scale = 1e-6 if kind == "small" else 1e4
        a[:, :4] *= scale
        b[:, :4] *= scale
    if kind == "far from the origin":
        a[:, :2] += 1e4
        b[:, :2] = a[:, :2] + rng.normal(0, .3, (n, 2))
    return a.astype(np.float32), b.astype(np.float32)


def corners(boxes):
    y, x, h, w, angle = boxes.T
    c, s = np.cos(angle), np.sin(angle)
    out = []
    for i, k in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
        along, across = i * w / 2, k * h / 2
        out.append(np.stack([x + along * c - across * s, y + along * s + across * c], 1))
    return np.stack(out, 1)


def clipped(polygon, by):
    """Sutherland and Hodgman's clipper; `by` turns clockwise on the screen."""
    for (x0, y0), (x1, y1) in zip(by, by[1:] + by[:1]):
        out, side = [], [(x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) for x, y in polygon]
        for i, (p, d) in enumerate(zip(polygon, side)):
            q, e = polygon[i - 1], side[i - 1]
            if (d > 0) != (e > 0):
                t = e / (e - d)
                out.append((q[0] + t * (p[0] - q[0]), q[1] + t * (p[1] - q[1])))
            if d > 0:
                out.append(p)
        polygon = out
    return polygon


def exact(a, b):
    """The area of the intersection of two quadrangles of doubles."""
    p = clipped([tuple(map(Fraction, v)) for v in a], [tuple(map(Fraction, v)) for v in b])
    return float(abs(sum(p[i - 1][0] * v[1] - v[0] * p[i - 1][1] for i, v in enumerate(p))) / 2)


def overlaps(a, b, suspects=None):
    """Overlaps by shapely; those of pairs in `suspects` (all by default) are checked."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    b[:, :2] -= a[:, :2]
    a[:, :2] = 0
    pa, pb = corners(a), corners(b)
    inner = shapely.area(shapely.intersection(shapely.polygons(pa), shapely.polygons(pb)))
    areas = a[:, 2] * a[:, 3] + b[:, 2] * b[:, 3]
    iou, wrong = inner / (areas - inner), 0
    for i in range(len(a)) if suspects is None else np.nonzero(suspects(iou))[0]:
        own = exact(pa[i].tolist(), pb[i].tolist())
        own /= areas[i] - own
        if abs(own - iou[i]) > DOUBLE:
            iou[i], wrong = own, wrong + 1
    return iou, wrong


def short(v):
    return float("%.9g" % v)


def write():
    rng, all_pairs, wrong = np.random.default_rng(1), [], 0
    for kind in KINDS:
        a, b = draw(rng, kind, 150)
        iou, bad = overlaps(a, b)
        wrong += bad
        all_pairs += [[short(v) for v in [*p, *q]] + [float("%.12g" % o)]
                      for p, q, o in zip(a.tolist(), b.tolist(), iou)]
    with open(os.path.join(HERE, "rotated_overlap.json"), "w", encoding="utf-8") as f:
        f.write('{"pairs": [\n' + ",\n".join(json.dumps(p) for p in all_pairs) + "\n]}\n")
    print("%d pairs; shapely was wrong in %d" % (len(all_pairs), wrong))


SHIM = """
#include "layers/rotated_overlap.c"
void many(long n, const float *a, const float *b, double *as_float, double *as_double)
{
    for (long i = 0; i < n; i++, a += 5, b += 5) {
        struct pm_rotated_one x, y;
        const struct pm_rotated_one *at = &y;
        float inner[16], joined[16];
        double u[5], v[5];

        for (int k = 0; k < 5; k++)
            u[k] = a[k], v[k] = b[k];
        as_double[i] = pm_rotated_overlap(u, v);
        pm_rotated_prepare(a, &x);
        pm_rotated_prepare(b, &y);
        pm_rotated_overlaps(&x, &at, 1, inner, joined);
        as_float[i] = pm_rotated_are_apart(&x, &y) || !(inner[0] > 0) ? 0 : inner[0] / joined[0];
    }
}
"""


def compiled():
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "shim.so")
        subprocess.run(["cc", "-O3", "-std=gnu11", "-ffp-contract=off", "-shared", "-fPIC",
                        "-I" + ROOT + "/src", "-I" + ROOT + "/shaders", "-xc", "-", "-o", library,
                        "-lm"], input=SHIM.encode(), check=True)
        return ctypes.CDLL(library)


def ours(library, a, b):
    out = [np.zeros(len(a)) for _ in range(2)]
    library.many(ctypes.c_long(len(a)), *(ctypes.c_void_p(v.ctypes.data) for v in (a, b, *out)))
    return out


def opencv(a, b, count=2000):
    """The largest difference of OpenCV's float32 overlaps."""
    import cv2

    worst = 0
    for p, q in zip(a[:count].astype(np.float64), b[:count].astype(np.float64)):
        boxes = [((float(v[1] - p[1]), float(v[0] - p[0])), (float(v[3]), float(v[2])),
                  math.degrees(v[4])) for v in (p, q)]
        _, points = cv2.rotatedRectangleIntersection(*boxes)
        inner = 0 if points is None else cv2.contourArea(cv2.convexHull(points))
        own = overlaps(p[None].astype(np.float32), q[None].astype(np.float32),
                       lambda iou: np.zeros(len(iou), bool))[0][0]
        worst = max(worst, abs(own - inner / (p[2] * p[3] + q[2] * q[3] - inner)))
    return worst


def check(count):
    library, rng, failed = compiled(), np.random.default_rng(2), 0
    print("kind, pairs, error of float and double, overlaps of 0 that are not, wrong by shapely, "
          "difference of OpenCV")
    for kind in KINDS:
        a, b = draw(rng, kind, -(-count // len(KINDS)))
        as_float, as_double = ours(library, a, b)
        iou, wrong = overlaps(a, b, lambda iou: np.abs(iou - as_double) > DOUBLE)
        errors = [np.abs(as_float - iou).max(), np.abs(as_double - iou).max()]
        lost = int(((iou > FLOAT) & (as_float == 0)).sum())
        swapped = ours(library, b, a)
        failed += errors[0] > FLOAT or errors[1] > DOUBLE or lost > 0
        failed += (swapped[0] != as_float).any() or (swapped[1] != as_double).any()
        failed += kind == "equal" and not ((as_float == 1).all() and (as_double == 1).all())
        print("%-20s %8d %9.1e %9.1e %3d %3d %9.1e" % (kind, len(a), *errors, lost, wrong,
                                                       opencv(a, b)), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    check(int(sys.argv[1])) if len(sys.argv) > 1 else write()
