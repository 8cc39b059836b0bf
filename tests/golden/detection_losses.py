#!/usr/bin/env python3
"""Makes detection_losses.json: losses, gradients and hard examples of a detector, computed by the
losses, box coders and HardExampleMiner of TensorFlow's Object Detection API of 2019, in float32.

    VENV/bin/python tests/golden/detection_losses.py    # tfod.py describes VENV

The numbers of the scene are those of the class Numbers and exact in float32. A case holds the
options of the layer detection_loss, both losses, the anchors that count (all without a miner), and
the gradients of codes and scores."""
import json
import os

import tfod

tf = tfod.load()
import numpy as np  # noqa: E402
from object_detection.box_coders import (  # noqa: E402
    faster_rcnn_box_coder, mean_stddev_box_coder, square_box_coder)
from object_detection.core import box_list, losses, matcher  # noqa: E402

from panoptic_metrics import Numbers  # noqa: E402

IMAGES, ANCHORS, TRUTHS, COLUMNS = 2, 20, 4, 4

FASTER = (lambda: faster_rcnn_box_coder.FasterRcnnBoxCoder([10, 10, 5, 5]), 4)
STDDEV = (lambda: mean_stddev_box_coder.MeanStddevBoxCoder(0.1), 4)
SQUARE = (lambda: square_box_coder.SquareBoxCoder([10, 10, 5]), 3)


class CornersCoder:
    """keras-retinanet's code: the distance of a corner, in sides of the anchor, over 0.2."""

    def encode(self, boxes, anchors):
        boxes, anchors = boxes.get(), anchors.get()
        sides = tf.tile(anchors[:, 2:] - anchors[:, :2], [1, 2])
        return (boxes - anchors) / sides / 0.2


CORNERS = (CornersCoder, 4)
SMOOTH = losses.WeightedSmoothL1LocalizationLoss
SIGMOID = losses.WeightedSigmoidClassificationLoss
SOFTMAX = losses.WeightedSoftmaxClassificationLoss


def miner(**options):
    return losses.HardExampleMiner(cls_loss_weight=1, loc_loss_weight=2, **options)


class RetinaSmoothL1:
    """keras-retinanet's smooth L1 loss with sigma 3, a square below 1/9."""

    def __call__(self, codes, wanted, weights):
        far = tf.abs(codes - wanted)
        loss = tf.where(far < 1 / 9, 0.5 * 9 * tf.square(far), far - 0.5 / 9)
        return tf.reduce_sum(loss, 2) * weights


class RetinaFocal:
    """Focal loss with gamma 2 and alpha 0.25 as in the publication (Lin et al. 2017), of
    probabilities."""

    def __call__(self, scores, hot, weights):
        p, hit = tf.sigmoid(scores), hot > 0
        right = tf.where(hit, p, 1 - p)
        share = tf.where(hit, 0.25 * tf.ones_like(p), 0.75 * tf.ones_like(p))
        return -share * tf.square(1 - right) * tf.math.log(right) * weights


# options of the layer, coder, localization, classification, miner, weight of localization
CASES = [
    ["", FASTER, SMOOTH(), SIGMOID(), None, 1],
    ["delta=0.5 localization_weight=2", FASTER, SMOOTH(delta=0.5), SIGMOID(), None, 2],
    ["coder=mean_stddev coder_scales=[0.1] localization=weighted_l2", STDDEV,
     losses.WeightedL2LocalizationLoss(), SIGMOID(), None, 1],
    ["coder=square", SQUARE, SMOOTH(), SIGMOID(), None, 1],
    ["classification=weighted_softmax", FASTER, SMOOTH(), SOFTMAX(), None, 1],
    ["classification=weighted_logits_softmax logit_scale=0.5", FASTER, SMOOTH(),
     losses.WeightedSoftmaxClassificationAgainstLogitsLoss(logit_scale=0.5), None, 1],
    ["classification=weighted_softmax logit_scale=2", FASTER, SMOOTH(), SOFTMAX(logit_scale=2.0),
     None, 1],
    ["classification=weighted_sigmoid_focal alpha=0.25", FASTER, SMOOTH(),
     losses.SigmoidFocalClassificationLoss(gamma=2.0, alpha=0.25), None, 1],
    ["classification=weighted_sigmoid_focal gamma=1.5", FASTER, SMOOTH(),
     losses.SigmoidFocalClassificationLoss(gamma=1.5, alpha=None), None, 1],
    ["classification=bootstrapped_sigmoid alpha=0.75", FASTER, SMOOTH(),
     losses.BootstrappedSigmoidClassificationLoss(0.75, "soft"), None, 1],
    ["classification=bootstrapped_sigmoid alpha=0.75 hard_bootstrap=true", FASTER, SMOOTH(),
     losses.BootstrappedSigmoidClassificationLoss(0.75, "hard"), None, 1],
    ["hard_example_miner=true num_hard_examples=3000 iou_threshold=0.99 "
     "loss_type=classification max_negatives_per_positive=3", FASTER, SMOOTH(), SIGMOID(),
     miner(num_hard_examples=3000, iou_threshold=0.99, loss_type="cls",
           max_negatives_per_positive=3, min_negatives_per_image=0), 1],
    ["hard_example_miner=true num_hard_examples=12 iou_threshold=0.25 localization_weight=2 "
     "loss_type=both max_negatives_per_positive=1 min_negatives_per_image=3", FASTER, SMOOTH(),
     SIGMOID(), miner(num_hard_examples=12, iou_threshold=0.25, loss_type="both",
                      max_negatives_per_positive=1, min_negatives_per_image=3), 2],
    ["coder=corners classification=weighted_sigmoid_focal alpha=0.25 delta=0.11111111 "
     "localization_weight=9", CORNERS, RetinaSmoothL1(), RetinaFocal(), None, 1],
    ["hard_example_miner=true num_hard_examples=0 iou_threshold=0.5 loss_type=localization "
     "max_negatives_per_positive=1", FASTER, SMOOTH(), SIGMOID(),
     miner(num_hard_examples=None, iou_threshold=0.5, loss_type="loc",
           max_negatives_per_positive=1, min_negatives_per_image=0), 1],
]


def box(r):
    y, x = r(768), r(768)
    return [v / 1024 for v in (y, x, y + 100 + r(200), x + 100 + r(200))]


class Scene:
    """The second image has no match."""

    def __init__(self):
        r = Numbers(1)
        self.anchors = np.float32([box(r) for _ in range(ANCHORS)])
        self.boxes = np.float32([[box(r) for _ in range(TRUTHS)] for _ in range(IMAGES)])
        self.classes = np.int32([[r(COLUMNS - 1) for _ in range(TRUTHS)] for _ in range(IMAGES)])
        self.weights = np.float32([[(1 + r(8)) / 8 for _ in range(TRUTHS)] for _ in range(IMAGES)])
        self.matches = np.int32([[self.match(r, i) for _ in range(ANCHORS)]
                                 for i in range(IMAGES)])
        self.codes = np.float32([[[(r(2049) - 1024) / 256 for _ in range(4)]
                                  for _ in range(ANCHORS)] for _ in range(IMAGES)])
        self.scores = np.float32([[[(r(2049) - 1024) / 256 for _ in range(COLUMNS)]
                                   for _ in range(ANCHORS)] for _ in range(IMAGES)])

    @staticmethod
    def match(r, image):
        fate, g = r(8), r(TRUTHS)
        return g if fate < 2 and image == 0 else -2 if fate == 7 else -1

    def targets(self, image):
        """One-hot targets with a background, and weights of localization and classification."""
        hot = np.zeros((ANCHORS, COLUMNS), np.float32)
        loc, cls = np.zeros(ANCHORS, np.float32), np.zeros(ANCHORS, np.float32)
        for a, g in enumerate(self.matches[image]):
            hot[a, 0 if g < 0 else 1 + self.classes[image, g]] = 1
            if g >= 0:
                loc[a] = cls[a] = self.weights[image, g]
            cls[a] = 1 if g == -1 else cls[a]
        return hot, loc, cls


def run(s, options, coder, loc_loss, cls_loss, hard, loc_weight):
    make, size = coder
    coder, anchors = make(), box_list.BoxList(tf.constant(s.anchors))
    codes, scores = tf.constant(s.codes[:, :, :size]), tf.constant(s.scores)
    hot, loc_weights, cls_weights = map(np.stack, zip(*(s.targets(i) for i in range(IMAGES))))
    wanted = []
    for i in range(IMAGES):
        matched = box_list.BoxList(tf.constant(s.boxes[i][np.maximum(s.matches[i], 0)]))
        wanted.append(coder.encode(matched, anchors))
    # A target without a match has the weight 0, and must not be far from the code.
    wanted = tf.where(np.repeat(loc_weights[:, :, None] > 0, size, 2), tf.stack(wanted), codes)
    loc = loc_loss(codes, wanted, weights=tf.constant(loc_weights))
    cls = cls_loss(scores, tf.constant(hot),
                   weights=tf.constant(np.repeat(cls_weights[:, :, None], COLUMNS, 2)))
    cls = cls if len(cls.shape) == 2 else tf.reduce_sum(cls, 2)
    divisor = max(float(loc_weights.sum()), 1.0)
    if hard:
        decoded = [box_list.BoxList(coder.decode(codes[i], anchors).get()) for i in range(IMAGES)]
        matches = [matcher.Match(tf.constant(m)) for m in s.matches]
        loc_sum, cls_sum = hard(loc, cls, decoded, matches)
    else:
        loc_sum, cls_sum = tf.reduce_sum(loc), tf.reduce_sum(cls)
    loc_sum, cls_sum = loc_weight * loc_sum / divisor, cls_sum / divisor
    kept = tf.gradients(cls_sum, cls)[0]
    out = [loc_sum, cls_sum, kept] + tf.gradients(loc_sum, [codes]) + tf.gradients(cls_sum, scores)
    with tf.Session() as session:
        loc_sum, cls_sum, kept, dcodes, dscores = session.run(out)

    def short(values):
        return [float(f"{v:.7g}") for v in values.ravel()]

    return {"options": options, "localization": float(f"{loc_sum:.8g}"),
            "classification": float(f"{cls_sum:.8g}"),
            "kept": [int(i) for i in np.flatnonzero(kept)],
            "dcodes": short(dcodes), "dscores": short(dscores)}


def main():
    scene = Scene()
    here = os.path.dirname(os.path.abspath(__file__))
    cases = [run(scene, *case) for case in CASES]
    with open(os.path.join(here, "detection_losses.json"), "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


main()
