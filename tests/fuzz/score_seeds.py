"""Seeds of score_merge_fuzz: the contents of packed scores. The first byte selects their kind."""
import struct

CLASSES, BOXES, PIXELS, EDGES, CITYSCAPES, COCO, STAGES, ROTATED = range(8)


def ints(*values):
    return struct.pack(f"<{len(values)}Q", *values)


def doubles(*values):
    return struct.pack(f"<{len(values)}d", *values)


def text(value):
    return ints(0) if value is None else ints(len(value) + 1) + value


def counts(*pairs):
    return ints(len(pairs)) + b"".join(ints(at, count) for at, count in pairs)


def terms(*values):
    return ints(len(values)) + doubles(*values)


def class_examples(*rows):
    return ints(len(rows)) + b"".join(ints(*row[:4]) + doubles(*row[4:]) for row in rows)


def class_detail(confusion):
    return (counts((0, 2), (3, 1)) + counts((0, 1)) + counts((0, 1), (1, 1)) + confusion + ints(1)
            + class_examples((7, 3, 1, 0, 0.75, 0.125), (5, 0, 0, 0, float("nan"), float("nan")))
            + class_examples((9, 0, 0, 1, 0.5, 0.5)))


def picture(record, name, file, truths, found, verified=None, numbers=5):
    """A row: `numbers` doubles (the last is an area or a score), a label, flags, shapes."""
    def rows(of):
        n = numbers
        return ints(len(of)) + b"".join(doubles(*r[:n]) + ints(*r[n:n + 2]) + b"".join(r[n + 2:])
                                        for r in of)
    listed = ints(0) if verified is None else ints(len(verified) + 1, *verified)
    return ints(record) + text(name) + text(file) + rows(truths) + rows(found) + listed


def mask(height, width, runs):
    """A mask; runs: as COCO's text."""
    return ints(height, width) + text(runs)


def seen(record, accuracy, height, width, instances):
    count = height * width
    maps = struct.pack(f"<{count}H", *(i % 4 for i in range(count)))
    if instances:
        maps += struct.pack(f"<{count}i", *((-1, 1001, 0)[i % 3] for i in range(count)))
    return ints(record) + doubles(accuracy) + ints(height, width) + maps


def pixels(instances, panoptic=b"", edges=counts()):
    shown = [seen(3, 0.5, 2, 3, instances), seen(9, float("nan"), 4, 4, instances)]
    return (counts((0, 5), (6, 2), (15, 1)) + edges + terms(0.5, 1.25) + ints(len(shown))
            + b"".join(shown) + panoptic)


def segments():
    rows = [(1, 1, 12, 0.75), (0, 0, 30, 0), (3, 1, 5, 1)]
    return ints(len(rows)) + b"".join(ints(*row[:2]) + doubles(*row[2:]) for row in rows)


def cityscapes():
    at = b"".join(ints(t % 2, 2) + doubles(0.5) + ints(1) + doubles(0.25) + ints(0)
                  for t in range(10))
    return segments() + ints(1) + ints(1, 2, 1, 1) + at


def coco():
    none = b"".join(ints(0, 0) for _ in range(10))
    verdicts = [(0.5, 0, (1023, 1, 0, 0), (0, 1022, 0, 0)), (0.25, 1 << 24 | 1, (0,) * 4, (3,) * 4)]
    listed = b"".join(doubles(score) + ints((at & -256) | 1 << 8 | (at & 255))
                      + struct.pack("<8H", *right, *wrong)
                      for score, at, right, wrong in verdicts)
    return (segments() + ints(1) + ints(2, 1, 0, 0) + none
            + ints(2) + ints(1) + ints(1) + ints(3, 1, 2, 0) + ints(len(verdicts)) + listed)


def score_merges():
    yield "classes", bytes([CLASSES]) + class_detail(counts((0, 1), (13, 1)))
    yield "classes_index", bytes([CLASSES]) + class_detail(counts((16, 1)))
    truths = [(1, 2, 30, 40, 1131, 0, 0), (5, 5, 9, 9, float("nan"), 2, 5)]
    found = [(1, 2, 30, 39, 0.75, 0, 0), (0, 0, 9, 9, 0.5, 3, 0),
             (5, 5, 9, 9, float("nan"), 2, 0)]
    boxes = [picture(1, None, None, truths, found, [1, 3]), picture(4, b"17", b"a.jpg", [], found),
             picture(2, b"", b"x", truths, [])]
    yield "boxes", bytes([BOXES]) + ints(3) + b"".join(boxes)
    yield "boxes_twice", bytes([BOXES]) + ints(2) + boxes[0] * 2
    yield "boxes_label", bytes([BOXES]) + ints(1) + picture(1, None, None, [], [(0,) * 5 + (4, 0)])
    shapes = mask(2, 3, b"132") + doubles(1, 2, float("nan"), float("nan"))
    shaped = [(0, 0, 2, 3, 6, 0, 8 + 16, shapes), (0, 0, 1, 1, 1, 1, 8, mask(2, 3, b"06"))]
    finds = [(0, 0, 2, 3, 0.75, 0, 8 + 16, shapes), (0, 0, 1, 1, 0.5, 1, 8, mask(2, 3, b"222"))]
    yield "shapes", bytes([BOXES]) + ints(1) + picture(5, None, None, shaped, finds, [])
    for name, other in (("runs", mask(2, 3, b"9")), ("size", mask(3, 2, b"06"))):
        finds[1] = (0, 0, 1, 1, 0.5, 1, 8, other)
        yield "shapes_" + name, bytes([BOXES]) + ints(1) + picture(5, None, None, shaped, finds, [])
    turned = [(5, 5, 25, 45, 15, 25, 10, 40, 0.3), (5, 5, 25, 45, 15, 25, 10, 40, -1.5),
              (0, 0, 0, 0, 1e300, -1e300, 0, 1e300, 99), (float("nan"),) * 9]
    truths = [t + ((400, float("nan"))[k % 2], k % 3, k) for k, t in enumerate(turned)]
    found = [t + (0.75 - k / 8, k % 3, 0) for k, t in enumerate(turned * 2)]
    tiles = [picture(k, None, file, truths, found, numbers=10)
             for k, file in enumerate((b"P1__768__0___0.png", b"P1__768__512___0.png", b"x"))]
    yield "rotated", bytes([ROTATED]) + ints(len(tiles)) + b"".join(tiles)
    yield "rotated_short", bytes([ROTATED]) + ints(1) + tiles[0][:-60]
    yield "pixels", bytes([PIXELS]) + pixels(False)
    yield "edges", bytes([EDGES]) + pixels(False, edges=counts((0, 3), (2, 1)))
    yield "cityscapes", bytes([CITYSCAPES]) + pixels(True, cityscapes())
    yield "coco", bytes([COCO]) + pixels(True, coco())
    objects = [(0, 0.5, 0.75, 0.75), (3, 0, float("-inf"), float("-inf")), (1, 0.75, 0.625, 0.25)]
    for name, label in (("stages", 2), ("stages_label", 4)):
        rows = objects + [(label, float("nan"), float("nan"), float("inf"))]
        yield name, bytes([STAGES]) + ints(len(rows)) + b"".join(ints(r[0]) + doubles(*r[1:])
                                                                 for r in rows)
    yield "none", bytes([COCO]) + ints(*([0] * 8))
