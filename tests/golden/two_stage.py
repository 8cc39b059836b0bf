"""Makes tests/golden/two_stage/CASE.json: one training step and one evaluation of detectors with
two stages in TensorFlow's Object Detection API (tf-object-detection 0.0.3), on the CPU.

    VENV/bin/python tests/golden/two_stage.py [statistics] [CASE ...]   # environment: see tfod.py

The API runs in float64 (tfod_double.py) and several times in float32. Batch norm is frozen unless
the file's batch_norm_trainable is true. The API draws anchors and proposals at random;
first_in_order() replaces the draws, and the file lists what was chosen. A case is made again with
other values of `nudge` until every choice (order of scores, overlaps, matches) is at least MARGIN
away from its threshold. All runs then choose the same.

Variables. Images are 2 u - 1 from the stream "golden/images" and are not preprocessed. Weights,
gamma, beta, biases and `moves` are those of tensorflow_nets.py, with the file's `shift` and `seed`.
Weights are drawn by these initialisers: the backbone's own; truncated normal, 0.01, in the first
stage's convolutions and the mask head; 0.03 in R-FCN's predictor; 0.003 in fully connected layers.
Averages of batch norm come from two_stage/statistics.json, "name of the batch norm": [unit, text].
The text has four hexadecimal digits for each channel, two of m, then two of v. moving_mean is
unit * (m - 128), moving_variance unit * unit * v, in double precision.

The file:

    net, predictor   the feature extractor's type; mask_rcnn_box_predictor or rfcn_box_predictor
    options          numbers of the model: "anchors" sampled of a picture, half of them positive;
                     "proposals" of a picture and their "threshold"; sampled "rows" of a picture, a
                     quarter positive; "crop", "pool"; "least" score of a detection; detections
                     "per_class" and in all. R-FCN has 3 x 3 bins and crops of 18; masks are 15 x 15
                     with 2 layers and depth 0 (64 channels). Weights of losses: 2 localization,
                     1 classification, in both stages; 4 masks. Suppression: 0.7, then 0.6.
    anchors          grid anchors; they begin at 0, 0
    pictures         true size in pixels, boxes in pixels, classes from 0, weights. A picture lies
                     in the top left corner of the input, and the rest of the input is noise, too.
                     truth_mask() draws the masks.
    moves            name -> [channel, thousandths, ...] for beta and biases
    train            lists, for each picture unless stated otherwise:
        kept_anchors     indices, for both pictures. Anchors follow each other cell by cell, in a
                         cell by aspect ratios, and of one ratio by scales
        anchor_matches   of each kept anchor: row of the picture's boxes, -1 background, -2 ignored
        sampled_anchors  indices among all anchors; the divisor of the first stage's losses is
                         their number
        proposals        boxes in pixels, best first, without padding
        scores           their scores
        rows             the sampled proposals: places in `proposals`
        row_boxes        their boxes; fewer than options.rows where proposals run short
        row_matches      row of the picture's boxes, or -1
    tensors          the step's tensors in the form of golden.py, see below
    evaluation       lists for each picture: proposals and scores as above; boxes (relative to the
                     true size), detection_scores, classes
    evaluation_tensors

Rows of `tensors` are [values, norm, relative error of float32, 16 dot products]. The norm of a
gradient is at least golden.SMALL times that of all. The error is the largest of RUNS runs in
float32. These read images that differ in their last bits, so their roundings differ. "rows" below
stands for the valid rows of the first picture, then those of the second. Without padding:

    anchors              [all, 4] in pixels, before pruning
    boxes_1, classes_1   [n, h, w, A * 4] and [n, h, w, A * 2], all anchors
    crops                [rows, 7, 7, 1024] after the pool; not for R-FCN
    features             [rows, 7, 7, 2048] of the second stage's extractor; R-FCN: of the whole
                         map, [n, 4, 6, 2048]
    codes, logits        [rows, classes, 4] and [rows, classes + 1]
    mask_logits          [rows, 15, 15, classes] (the API has the classes second)
    mask_targets         [rows, 15, 15], 0 for rows without a match
    RPNLoss/..., BoxClassifierLoss/..., loss   with their weights; loss is their sum
    a variable's name    its gradient; an average of batch norm: its value after the step, with the
                         backbone's own decay. Only with batch_norm_trainable

In evaluation there are crops, features, codes and logits of all proposals, and `masks`
[detections, 15, 15], the probabilities of the detected classes. Averages of batch norm are those
of statistics.json in every case; the step's changes are left out.

With a max pool after the crops, gradients of float32 differ from those of float64 by some 1e-4,
where forward values differ by 1e-6: the samples of a crop lie close together, and hundreds of
windows have two values that are equal but for rounding. faster_rcnn_resnet50_no_pool has crops of
7 x 7 without a pool, so its gradients can be compared closely.

Where the API does not do what one might expect:
  - The API clips proposals to the input with its padding; only with number_of_stages 1 it clips
    them to the true size of each picture. Pumice always does the latter. So does Spied: it replaces
    the window. The second pictures are smaller than the input.
  - Anchors are pruned by the input with its padding. Those in a picture's padding stay, and may be
    sampled as background.
  - Pruned anchors make no proposals in training: they are removed before boxes are decoded.
    In evaluation all anchors, clipped, make proposals. An anchor wholly outside would be dropped
    without its code, so the API would fail; grids that begin at 0 have none.
  - Suppression compares boxes before they are clipped. Clipped boxes without area are dropped after
    the best `proposals` have been chosen, so fewer remain.
  - Crops of proposals and mask targets are relative to the input with its padding, the final boxes
    to the true size. The third stage uses the latter for crops of that padded map, so its crops are
    misplaced for padded pictures. The mask case has no padding.
  - True boxes become pixels by the true size. Masks must have the size of the input.
  - An object of weight 0 still matches by overlap; anchors and proposals that match it are never
    sampled. It forces no match.
  - The first stage's objectness loss has the weight 1 for every sampled anchor. Only its
    localization loss has the object's weight; in the second stage both losses have it. Divisors
    count rows, not weights. The mask loss has the weight, too, and its divisor is the sum of the
    weights of the whole batch, times 15 * 15.
  - Rows of padding are boxes of zeros. They are cropped and classified like others. Losses leave
    them out; with batch_norm_trainable they would enter the statistics.
  - The pool of the crops is VALID.
  - TensorFlow's crop_and_resize gives 0 where rounding puts the last sample of a box beyond the
    last cell; tfod_double.py avoids this.
  - R-FCN's reduce_depth has a bias and the activation of its hyperparams, a rectifier. Channels of
    refined_locations are bins, then classes, then codes.
  - The mask head's first convolution is rectified, the last one is not."""
import json
import math
import os
import platform
import re
import sys

import numpy as np

import golden
import tensorflow_nets
import tfod_double
import tfod_two_stage as models
from two_stage_margins import MARGIN, first_margin, same, second_margin
from philox import Stream

HEIGHT, WIDTH, CLASSES = 64, 96, 5
SCALES, ASPECTS, STRIDE, BASE = (0.0625, 0.125), (0.5, 1.0, 2.0), 16, 256
SEED = 1
RUNS = 4        # runs in float32
CODES = "FirstStageBoxPredictor/BoxEncodingPredictor/biases"
# The true size of each picture, and its objects: corners in pixels, class, weight.
PICTURES = [
    [(64, 96), [([14, 18, 46, 50], 1, 1.0), ([34, 42, 60, 88], 4, 1.0), ([6, 60, 26, 78], 0, 0.5)]],
    [(56, 80), [([28, 4, 56, 30], 2, 1.0), ([30, 32, 56, 62], 3, 0.0), ([2, 10, 28, 54], 1, 0.5)]],
]
WHOLE = [[(HEIGHT, WIDTH), objects] for _, objects in PICTURES]
OPTIONS = dict(classes=CLASSES, height=HEIGHT, width=WIDTH, scales="%g, %g" % SCALES, anchors=8,
               proposals=12, rows=8, crop=14, pool=2, threshold="0.0",
               least="0.1", per_class=4, detections=10)


SHOWN = ("stages", "anchors", "proposals", "threshold", "rows", "crop", "pool", "least",
         "per_class", "detections")
LARGER = "truncated_normal_initializer { stddev: 0.03 }"
SMALL = "truncated_normal_initializer { stddev: 0.003 }"


def case(extractor, predictor, pictures, **options):
    return dict(net=extractor, pictures=pictures, shift=2, nudge=0,
                options=dict(OPTIONS, type="faster_rcnn_" + extractor, predictor=predictor,
                             **options))


CASES = {
    "faster_rcnn_resnet50": case("resnet50", models.boxes_predictor(initializer=SMALL), PICTURES),
    "faster_rcnn_resnet50_no_pool": case(
        "resnet50", models.boxes_predictor(initializer=SMALL), PICTURES, crop=7, pool=1,
        threshold="0.625"),
    "faster_rcnn_resnet50_batch_norm": case(
        "resnet50", models.boxes_predictor(initializer=SMALL), WHOLE, crop=7, pool=1,
        train="true"),
    "mask_rcnn_resnet50": case("resnet50", models.masks_predictor(initializer=SMALL), WHOLE,
                               stages=3),
    "rfcn_resnet50": case("resnet50", models.rfcn_predictor(initializer=LARGER), PICTURES),
}


# ---- the ground truth ----------------------------------------------------------------------

def truth_mask(box):
    """The pixels whose middle is in the box and whose row plus column is no multiple of 5."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    inside = (y + 0.5 > box[0]) & (x + 0.5 > box[1]) & (y + 0.5 < box[2]) & (x + 0.5 < box[3])
    return (inside & ((x + y) % 5 != 0)).astype(np.float32)


def provide(model, pictures, masks):
    """Gives the objects to the model. The API wants boxes relative to the true size."""
    boxes, hot, shown, weights = [], [], [], []
    for (h, w), objects in pictures:
        corners = np.array([b for b, _, _ in objects], np.float64) / [h, w, h, w]
        boxes.append(tf.constant(corners, tf.float32))
        hot.append(tf.constant(np.eye(CLASSES)[[c for _, c, _ in objects]], tf.float32))
        shown.append(tf.constant(np.stack([truth_mask(b) for b, _, _ in objects]), tf.float32))
        weights.append(tf.constant([x for _, _, x in objects], tf.float32))
    model.provide_groundtruth(boxes, hot, groundtruth_masks_list=shown if masks else None,
                              groundtruth_weights_list=weights)


# ---- the API's choices ---------------------------------------------------------------------

def nudged(c):
    """Moves of the codes of proposals. Other values of c["nudge"] give other proposals, until no
    choice is near its threshold."""
    steps = [(7 * k + 13 * c["nudge"]) % 9 - 4 for k in range(4 * len(SCALES) * len(ASPECTS))]
    return {CODES: {k: step for k, step in enumerate(steps) if step and c["nudge"]}}


def first_in_order(indicator, count):
    """Replaces the random choice of `count` places where indicator is true: those with the
    smallest of the keys 40503 i mod 65537 are taken, so that they lie apart."""
    key = tf.range(tf.shape(indicator)[0]) * 40503 % 65537
    smaller = tf.less(key[None, :], key[:, None]) & indicator[None, :]
    rank = tf.reduce_sum(tf.cast(smaller, tf.int32), 1)
    return indicator & tf.less(rank, count)


def record(owner, name, into, key):
    """Replaces a function by one that appends (arguments, result) to into[key]."""
    function = getattr(owner, name)

    def call(*arguments, **options):
        out = function(*arguments, **options)
        into.setdefault(key, []).append((arguments, out))
        return out
    setattr(owner, name, call)
    return function


class Spied:
    """A model whose parts record what they compute."""

    def __init__(self, build, c, is_training):
        from object_detection.core import balanced_positive_negative_sampler as sampler
        from object_detection.core import box_list_ops, target_assigner
        sampler.BalancedPositiveNegativeSampler.subsample_indicator = staticmethod(first_in_order)
        self.c, self.seen = c, {}
        self.model = m = build(models.text(**c["options"]), is_training)
        sizes = [size for size, _ in c["pictures"]]
        self.shapes = tf.constant([[h, w, 3] for h, w in sizes])
        provide(m, c["pictures"], "stages" in c["options"])
        if tf.float32 == tf.float64:  # lists would become float32
            generator = m._first_stage_anchor_generator
            generator._scales = np.array(generator._scales)
            generator._aspect_ratios = np.array(generator._aspect_ratios)
        # The API would clip proposals to the input with its padding.
        window = m._compute_clip_window
        m._compute_clip_window = lambda shapes: window(self.shapes)
        for name in ("_predict_rpn_proposals", "_first_stage_nms_fn", "_crop_and_resize_fn",
                     "_compute_second_stage_input_feature_maps", "_second_stage_nms_fn",
                     "_extract_box_classifier_features", "_sample_box_classifier_batch"):
            record(m, name, self.seen, name)
        record(m._first_stage_sampler, "subsample", self.seen, "anchors")
        record(m._second_stage_sampler, "subsample", self.seen, "rows")
        before = [(box_list_ops, "prune_outside_window"), (target_assigner, "batch_assign_targets")]
        originals = [record(module, name, self.seen, name) for module, name in before]
        self.restore = lambda: [setattr(module, name, f)
                                for (module, name), f in zip(before, originals)]

    def predict(self, images):
        return self.model.predict(images, self.shapes)


def valid(x, counts):
    """The rows of x [n * R, ...] or [n, R, ...] below the count of each picture, joined."""
    n = counts.shape.as_list()[0]
    each = tf.split(x, n) if x.shape.as_list()[0] != n else [x[i] for i in range(n)]
    return tf.concat([part[:counts[i]] for i, part in enumerate(each)], 0)


# ---- graphs --------------------------------------------------------------------------------

class Graph(tensorflow_nets.Graph):
    is_training = True

    def __init__(self, build, c, seed, dtype, drawn):
        self.statistics = drawn.get("statistics", {})
        with (tfod_double.double if dtype == tf.float64 else tfod_double.single)(tf):
            super().__init__(build, c, seed, dtype, drawn)
        self.gradients = {k: g for k, g in self.gradients.items() if g is not None}
        self.gradients = self.gradients if self.is_training else {}
        needed = self.before(self.fetches["loss"])
        self.checks = [check for check in self.checks if check[0].op in needed]

    @staticmethod
    def before(tensor):
        seen, stack = set(), [tensor.op]
        while stack:
            op = stack.pop()
            if op not in seen:
                seen.add(op)
                stack.extend(x.op for x in op.inputs)
        return seen

    def images(self):
        n = len(self.c["pictures"])
        u = Stream(self.seed, "golden/images").uniform(n * HEIGHT * WIDTH * 3)
        return (2 * u - 1).astype(np.float32).reshape(n, HEIGHT, WIDTH, 3)

    @staticmethod
    def unused(name):
        return name.startswith("FirstStageFeatureExtractor/") and "/block4/" in name

    def initial(self, name, shape, moves):
        if self.unused(name):
            return np.zeros(shape)
        if name == CODES:
            moves = nudged(self.c)
        if "/moving_" not in name:
            return super().initial(name, shape, moves)
        name, kind = name.rsplit("/moving_", 1)
        return models.unpacked(*self.statistics[name])[kind == "variance"] if self.statistics \
            else np.full(shape, float(kind == "variance"))

    def tie(self, op, x, layers):
        """The pool of the crops has hundreds of near ties, because its samples lie close together
        on slopes. Two such samples pass their gradient to the same cells with nearly the same
        weights, so a tie matters little. The runs in float32 measure it."""
        return "MaxPool2D" not in op.name and super().tie(op, x, layers)

    def logits_and_loss(self, build, images):
        spied = Spied(build, self.c, self.is_training)
        with tf.variable_scope("", custom_getter=self.noted):
            out = spied.predict(images)
        loss = self.finish(spied, out)
        spied.restore()
        return self.kept, loss

    def finish(self, spied, out):
        seen, m = spied.seen, spied.model
        losses = m.loss(out, spied.shapes)
        counts = out["num_proposals"]
        codes, logits = seen["_predict_rpn_proposals"][0][1]
        self.kept = {
            "anchors": seen["prune_outside_window"][0][0][0].get(),
            "boxes_1": codes, "classes_1": logits,
            **self.second(seen, out, counts),
        }
        if "mask_predictions" in out:
            masks = tf.transpose(out["mask_predictions"], [0, 2, 3, 1])
            self.kept["mask_logits"] = valid(masks, counts)
            self.kept["mask_targets"] = valid(seen["_crop_and_resize_fn"][1][1][:, 0, :, :, 0],
                                              counts)
        self.kept.update({name[len("Loss/"):]: loss for name, loss in losses.items()})
        self.lists = self.choices(spied, counts)
        return tf.add_n(list(losses.values()))

    def second(self, seen, out, counts):
        more = {}
        if self.c["options"]["predictor"].startswith("mask"):
            more["crops"] = valid(seen["_compute_second_stage_input_feature_maps"][0][1], counts)
            more["features"] = valid(seen["_extract_box_classifier_features"][0][1], counts)
        else:
            more["features"] = seen["_extract_box_classifier_features"][0][1]
        return {**more, "codes": valid(out["refined_box_encodings"], counts),
                "logits": valid(out["class_predictions_with_background"], counts)}

    def choices(self, spied, counts):
        """Tensors of lists of the file's "train"."""
        seen = spied.seen
        (boxes, scores), nms = seen["_first_stage_nms_fn"][0]
        assigned = [out[4] for _, out in seen["batch_assign_targets"]]
        n = len(self.c["pictures"])
        rows = [seen["rows"][i][1] for i in range(n)]
        return {
            "kept_anchors": seen["prune_outside_window"][0][1][1],
            "anchor_matches": [assigned[0][i] for i in range(n)],
            "sampled_anchors": [tf.where(seen["anchors"][i][1])[:, 0] for i in range(n)],
            "proposals": nms[0], "scores": nms[1], "proposal_count": nms[5],
            "rows": [tf.where(r)[:, 0] for r in rows],
            "row_boxes": seen["_sample_box_classifier_batch"][0][1][0],
            "row_matches": [assigned[1][i] for i in range(n)],
            "row_count": counts,
            "decoded": boxes[:, :, 0], "objectness": scores[:, :, 0],
            "anchors": seen["prune_outside_window"][0][1][0].get(),
        }

    def run(self, feed=None):
        """The tensors and the lists; with batch_norm_trainable also the averages after the step."""
        averages = [self.average(getattr(update, "op", update)) for update in self.updates]
        averages = [a for a in averages if not self.unused(a[0])]
        before = self.session.run({name: self.others[name] for name, *_ in averages})
        out, lists, taken = self.session.run(
            [{**self.fetches, **self.gradients}, self.lists,
             [(statistic, rate) for _, statistic, rate, _ in averages]], feed)
        for (name, _, _, factor), (value, rate) in zip(averages, taken):
            out[name] = before[name] - (before[name] - value * factor) * rate
        flat = {k: np.asarray(v, np.float64).reshape(-1) for k, v in out.items()}
        return flat, lists


class Calibration(Graph):
    """Batch norm with the statistics of the batch."""

    def statistics_of_batch(self):
        """name of a batch norm -> (mean, variance) of what it reads."""
        both = {}
        for update in self.updates:
            name, statistic, _, _ = self.average(getattr(update, "op", update))
            if not self.unused(name):
                both[name] = statistic
        found = self.session.run(both)
        return {name.removesuffix("/moving_mean"):
                (x, found[name.removesuffix("mean") + "variance"])
                for name, x in found.items() if name.endswith("mean")}


class Evaluation(Graph):
    is_training = False

    def finish(self, spied, out):
        seen, m = spied.seen, spied.model
        found = m.postprocess(out, spied.shapes)
        counts = out["num_proposals"]
        self.kept = self.second(seen, out, counts)
        number = tf.cast(found["num_detections"], tf.int32)
        names = ("detection_boxes", "detection_scores", "detection_classes")
        if "detection_masks" in found:
            self.kept["masks"] = valid(found["detection_masks"], number)
        (boxes, scores), nms = seen["_first_stage_nms_fn"][0]
        self.lists = {"proposals": nms[0], "scores": nms[1], "proposal_count": nms[5],
                      **{k[len("detection_"):]: found[k] for k in names if k != names[1]},
                      "detection_scores": found[names[1]], "count": number,
                      "decoded": boxes[:, :, 0], "objectness": scores[:, :, 0],
                      "candidates": seen["_second_stage_nms_fn"][0][0][0],
                      "candidate_scores": seen["_second_stage_nms_fn"][0][0][1]}
        return tf.reduce_sum(out["rpn_box_encodings"])


# ---- the file ------------------------------------------------------------------------------

def errors(exact, singles, gradients):
    """name -> (norm, largest relative error of the runs in float32)."""
    total = math.sqrt(sum(float(exact[k] @ exact[k]) for k in gradients))
    out = {}
    for k, t in exact.items():
        norm = max(float(np.linalg.norm(t)), golden.SMALL * total if k in gradients else 0)
        out[k] = norm, max(float(np.linalg.norm(s[k] - t)) for s in singles) / norm
    return out


def rows(exact, both):
    short = golden.short
    return {k: [len(exact[k]), short(norm), float(f"{error:.2e}")]
            + [short(d) for d in golden.dots(SEED, k, exact[k])]
            for k, (norm, error) in both.items()}


def runs_of(kind, c, moves, drawn):
    """The results of RUNS runs in float32. All but the first read images with other roundings."""
    graph = kind(build, c, SEED, tf.float32, drawn)
    graph.load(moves, moves)
    images, noise = graph.images(), np.random.default_rng(SEED)
    out = []
    for i in range(RUNS):
        other = images * (1 + i * 2.0**-24 * noise.uniform(-1, 1, images.shape))
        out.append(graph.run({graph.source.outputs[0]: other.astype(np.float32)}))
    graph.session.close()
    return out


def tried(kind, c, drawn, moves=None):
    """Runs both precisions. Returns moves, the float64 results and lists, errors; None when a
    choice is near its threshold."""
    graph = kind(build, c, SEED, tf.float64, drawn)
    margin = margin_of(kind, c, graph.run()[1]) if moves is None else 1
    if margin >= MARGIN:
        moves = graph.settle() if moves is None else moves
        graph.load(moves, moves)
        exact, lists = graph.run()
        margin = margin_of(kind, c, lists)
    gradients = set(graph.gradients) if kind is Graph else set()
    graph.session.close()
    print(f"{kind.__name__}, nudge {c['nudge']}: margin {margin:.1e}", file=sys.stderr, flush=True)
    if margin < MARGIN:
        return None
    singles = runs_of(kind, c, moves, drawn)
    agree = [same(lists, other) for _, other in singles]
    both = errors(exact, [s for s, _ in singles], gradients)
    worst = max(both, key=lambda k: both[k][1])
    print(f"{sum(map(len, moves.values()))} moves, same choices {agree}, float32 off by at most "
          f"{both[worst][1]:.1e} ({worst})", file=sys.stderr, flush=True)
    if not all(agree) or both[worst][1] > golden.LIMIT:
        return None
    return moves, exact, lists, both


def margin_of(kind, c, lists):
    margin = first_margin(c, lists, kind is Graph)
    if kind is Evaluation:
        margin = min(margin, second_margin(c, lists))
    return margin


def numbers(x):
    """Arrays as lists; other numbers with seven digits."""
    x = np.asarray(x)
    return x.tolist() if x.dtype.kind in "iu" else np.vectorize(golden.short, otypes=[float])(
        x).tolist()


def by_picture(values, counts):
    return [numbers(v[:n]) for v, n in zip(values, counts)]


def train_lists(lists):
    kept = lists["kept_anchors"]
    sampled = lists["sampled_anchors"]
    count = lists["proposal_count"]
    return {
        "kept_anchors": numbers(kept),
        "sampled_anchors": [numbers(kept[s]) for s in sampled],
        "anchor_matches": [numbers(m) for m in lists["anchor_matches"]],
        "proposals": by_picture(lists["proposals"], count),
        "scores": by_picture(lists["scores"], count),
        "rows": [numbers(r) for r in lists["rows"]],
        "row_boxes": by_picture(lists["row_boxes"], lists["row_count"]),
        "row_matches": by_picture(lists["row_matches"], lists["row_count"]),
    }


def evaluation_lists(lists):
    count = lists["proposal_count"]
    return {
        "proposals": by_picture(lists["proposals"], count),
        "scores": by_picture(lists["scores"], count),
        "boxes": by_picture(lists["boxes"], lists["count"]),
        "detection_scores": by_picture(lists["detection_scores"], lists["count"]),
        "classes": [[int(k) for k in row[:n]]
                    for row, n in zip(lists["classes"], lists["count"])],
    }


def table(f, name, values, last=""):
    f.write(f' "{name}": {{\n')
    f.write(",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in values.items()))
    f.write(f"\n }}{last}\n")


def write(name, c, training, evaluation):
    o, (moves, exact, lists, both) = {"stages": 2, "train": "false", **c["options"]}, training
    head = {
        "made_by": f"tf-object-detection 0.0.3, TensorFlow {tf.__version__}, "
                   f"numpy {np.__version__}, Python {platform.python_version()}",
        "net": o["type"], "predictor": o["predictor"].split()[0], "batch": len(c["pictures"]),
        "height": HEIGHT, "width": WIDTH, "channels": 3, "classes": CLASSES, "seed": SEED,
        "shift": c["shift"], "batch_norm_trainable": o["train"] == "true",
        "options": {k: v if isinstance(v, int) else float(v) for k, v in o.items()
                    if k in SHOWN},
        "anchors": {"scales": SCALES, "aspect_ratios": ASPECTS, "stride": STRIDE, "base": BASE},
        "pictures": [{"size": size, "boxes": [b for b, _, _ in objects],
                      "classes": [k for _, k, _ in objects],
                      "weights": [w for _, _, w in objects]} for size, objects in c["pictures"]],
        "moves": {k: sum(([i, m[i]] for i in sorted(m)), []) for k, m in
                  {**moves, **nudged(c)}.items()},
        "columns": "values, norm, relative error of float32, 16 dot products",
    }
    path = path_of(name)
    with open(path, "w", encoding="utf-8") as f:
        f.write("{\n" + "".join(f" {json.dumps(k)}: {json.dumps(v)},\n" for k, v in head.items()))
        table(f, "train", train_lists(lists), ",")
        table(f, "tensors", rows(exact, both), ",")
        _, exact, lists, both = evaluation
        both.pop("loss")
        table(f, "evaluation", evaluation_lists(lists), ",")
        table(f, "evaluation_tensors", rows(exact, both))
        f.write("}\n")
    print(f"{name}: nudge {c['nudge']}, {os.path.getsize(path) / 1e3:.0f} kB", flush=True)


def path_of(name):
    here = os.path.dirname(os.path.abspath(__file__))
    return os.path.join(here, "two_stage", name + ".json")


def calibrate():
    """Writes the statistics that batch norm uses: those of the batch of the first case."""
    c = CASES["faster_rcnn_resnet50"]
    graph = Calibration(build, {**c, "options": {**c["options"], "train": "true"}}, SEED,
                        tf.float64, {})
    found = {k: models.packed(*both) for k, both in graph.statistics_of_batch().items()}
    graph.session.close()
    with open(path_of("statistics"), "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in found.items())
                + "\n}\n")


def make(name):
    with open(path_of("statistics"), encoding="utf-8") as f:
        drawn = {"statistics": json.load(f)}
    for nudge in range(20):
        c = {**CASES[name], "nudge": nudge}
        training = tried(Graph, c, drawn)
        evaluation = training and tried(Evaluation, c, drawn, training[0])
        if evaluation:
            write(name, c, training, evaluation)
            return
    raise SystemExit(f"{name}: every choice is near its threshold")


if __name__ == "__main__":
    tensorflow_nets.prepare()
    tf, build = models.load()
    if not sys.argv[1:] or "statistics" in sys.argv[1:]:
        calibrate()
    for wanted in sys.argv[1:] or CASES:
        if wanted != "statistics":
            make(wanted)
