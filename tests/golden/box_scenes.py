"""Scenes of true and detected boxes for box_metrics.py. tests/tasks/detection/box_scenes.h draws
the same ones. Numbers are n >> 16 of the sequence n -> (n 1103515245 + 12345) mod 2^31. All
coordinates are multiples of 0.5, so that IoUs at a threshold are exact.

A truth: (x, y, w, h, area, label, crowd, difficult, group_of). A detection: (x, y, w, h, label,
score). Label 3 is only detected. Every 25th scene has a picture with more detections than COCO
counts, of one class and of all; in the other scenes few pictures have none."""

from panoptic_metrics import Numbers

CLASSES = 4
SIDES = (16, 32, 64, 128, 240)


class Scene:
    """Draws the pictures of a scene. distinct: no two scores are equal."""

    def __init__(self, index, distinct):
        self.r, self.distinct, self.scores = Numbers(5000 + index), distinct, 0
        self.full = index % 25 == 0
        self.pictures = [self.picture(k) for k in range(1 + self.r(4))]

    def side(self, side):
        return side if self.r(3) == 0 else side // 2 + self.r(side)

    def detection(self, x, y, w, h, label):
        self.scores += 1
        score = self.r(1000) * 5000 + self.scores if self.distinct else self.r(16)
        return x, y, w, h, label, score / (5000000 if self.distinct else 16)

    def near(self, x, y, w, h, label, side):
        kind = self.r(6)
        if kind == 1:
            w *= 0.5
        if kind == 2:
            label = self.r(CLASSES)
        if kind > 2:
            x, y = x + self.r(side // 4 + 1), y + self.r(side // 4 + 1)
        return self.detection(x, y, w, h, label)

    def picture(self, index):
        r, truths, detections = self.r, [], []
        for _ in range(r(9)):
            label, side = r(3), SIDES[r(5)]
            w, h, x, y = self.side(side), self.side(side), r(400), r(400)
            area = w * h if r(2) == 0 else w * h * 0.75
            for _ in range(1 + (r(8) == 0)):
                truths.append((x, y, w, h, area, label, r(8) == 0, r(6) == 0, r(6) == 0))
            for _ in range(r(4)):
                detections.append(self.near(x, y, w, h, label, side))
        for k in range(r(5) + (230 if self.full and index == 0 else 0)):
            label = r(CLASSES) if k < 5 else r(2)
            x, y, w, h = r(400), r(400), 1 + r(200), 1 + r(200)
            detections.append(self.detection(x, y, w, h, label))
        return truths, detections, [c for c in range(CLASSES) if r(2)]
