"""Checks that onnxruntime finds the boxes that `pumice predict` finds with detectors of two stages:
Faster R-CNN with boxes by class and with shared boxes, Mask R-CNN, Keypoint R-CNN, and R-FCN. Each
is trained for a few steps and exported with pixels as input. Pictures are given one at a time and
three together, some without a detection, some or all without a proposal. With resizers that pad,
pictures of other shapes are given to the model, which resizes and pads them itself. Masks are
compared in boxes and pasted into the picture.

    python3 tests/onnx/two_stage_check.py PUMICE FOLDER

A Python without onnx and onnxruntime makes a virtual environment in FOLDER and installs them there,
once. The check exits with 77 (skipped) when the download fails."""
import glob
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import packages  # noqa: E402
import pasting  # noqa: E402
from checks import check, pumice  # noqa: E402
from detectors import OUTPUTS, PIXELS, SCORE, compare, open_model, run_model  # noqa: E402
from keypoints import check_keypoints, check_keypoint_outputs  # noqa: E402
from pictures import read_png, write_png  # noqa: E402

SIDE, CLASSES, PROPOSALS, DETECTIONS = 96, 4, 40, 60
CONFIG = {
    "task": "detection",
    "model": {
        "name": "faster_rcnn_mobilenet_v1", "depth_multiplier": 0.25,
        "first_stage_box_predictor_depth": 32, "batch_norm_train": True, "batch_norm_decay": 0.9,
        "anchors": {"scales": [0.1, 0.2], "aspect_ratios": [1, 2]},
    },
    "input": {"size": SIDE, "augment": []},
    "optim": {"name": "momentum", "clip_norm": 10},
    "devices": ["cpu"],
    "loss": {"minibatch_sampler": {"batch_size": 32}, "proposal_sampler": {"batch_size": 12}},
    "schedule": {"policy": "fixed", "base_lr": 0.03},
    "run": {"steps": 60, "batch_size": 6},
    "eval": {"every_steps": 0, "batch_size": 8},
}
PREDICTOR = "model.second_stage_box_predictor="
NETS = [
    ("Faster R-CNN", [], True),
    ("shared boxes, no pool", [PREDICTOR + '{"share_box_across_classes":true}',
                               "model.initial_crop_size=7", "model.maxpool_kernel_size=1",
                               "model.maxpool_stride=1"], False),
    ("Mask R-CNN", [PREDICTOR + '{"predict_instance_masks":true,"mask_prediction_conv_depth":8,'
                                '"mask_height":11,"mask_width":13}', "data.instance_masks=true"],
     True),
    # The weights are not small, so the largest value of many heatmaps exceeds the others clearly.
    ("Keypoint R-CNN", [PREDICTOR + '{"predict_keypoints":true,'
                                    '"keypoint_prediction_num_conv_layers":2,'
                                    '"keypoint_prediction_conv_depth":16,'
                                    '"keypoint_heatmap_height":17,"keypoint_heatmap_width":19,'
                                    '"conv_hyperparams":{"initializer":"truncated(0.3)"}}',
                        "data.num_keypoints=3"], True),
    ("R-FCN", [PREDICTOR + '{"type":"rfcn","depth":16}'], True),
]
# Resizers that pad; each with the shapes of pictures that fit into the input.
PADDING = [
    (["input.resizer=keep_aspect_ratio", "input.pad_value=[0.5,-0.25,0]"],
     [(96, 60), (47, 85), (130, 200)]),
    (["input.resizer=conditional", "input.size_threshold=64"], [(96, 60), (47, 85)]),
    (["input.resizer=pad_to_multiple"], [(96, 60), (47, 85)]),
]


def proposals(threshold=0.0):
    return f'model.proposals={{"max_proposals":{PROPOSALS},"score_threshold":{threshold}}}'


def detections(threshold):
    return (f'model.post_processing={{"score_threshold":{threshold},"iou_threshold":0.6,'
            f'"max_detections_per_class":20,"max_total_detections":{DETECTIONS}}}')


ALL = [proposals(), detections(0.02)]


class Detector:
    """A trained net. more: keys of every command."""

    def __init__(self, folder, name, more, by_class):
        self.folder, self.name, self.by_class = folder, name, by_class
        self.masks = any("masks" in m for m in more)
        self.pixels = self.pasted = 0  # of masks, compared so far
        self.keypoints = any("keypoints" in m for m in more)
        self.points = 0  # keypoints, compared so far
        self.config = os.path.join(folder, "net.json")
        self.more = [f"data.folder={folder}/data", f"run.folder={folder}/{name}", *more]
        pumice("train", self.config, *self.more, proposals())

    def predict(self, files, options):
        text = pumice("predict", self.config, *files, *self.more, *options, "--json").stdout
        return [image["boxes"] for image in json.loads(text)["images"]]

    def export_file(self, options):
        model = os.path.join(self.folder, "model.onnx")
        pumice("export", self.config, model, *self.more, *options, "export.preprocessing=fold")
        return model

    def export(self, options):
        return open_model(self.export_file(options))

    def export_both(self, options):
        """Returns the model, and of nets with masks one that pastes them; else None."""
        paster = self.export([*options, "export.masks=pasted"]) if self.masks else None
        return self.export([*options, "export.proposals=true"]), paster


def check_outputs(what, detector, model, pixels):
    """Checks shapes, padding and places of all outputs. Returns the number of proposals of each
    picture."""
    import numpy as np
    n = len(pixels)
    count, boxes, scores, classes, raw, raw_scores, proposed, number = run_model(
        model, pixels, OUTPUTS + ["raw_detection_boxes", "raw_detection_scores", "proposal_boxes",
                                  "num_proposals"])
    raw_shape = (n, PROPOSALS, CLASSES, 4) if detector.by_class else (n, PROPOSALS, 4)
    for value, shape in ((count, (n,)), (boxes, (n, DETECTIONS, 4)), (scores, (n, DETECTIONS)),
                         (classes, (n, DETECTIONS)), (raw, raw_shape),
                         (raw_scores, (n, PROPOSALS, CLASSES)), (proposed, (n, PROPOSALS, 4)),
                         (number, (n,))):
        check(value.shape == shape and value.dtype == np.float32 and np.isfinite(value).all(),
              f"{what}: an output is {value.dtype} {value.shape} instead of {shape}, or not finite")
    # The division by the picture's part of the input may round a border up.
    check((proposed >= 0).all() and (proposed <= 1 + 1e-6).all(), f"{what}: proposals outside")
    for i in range(n):
        c, p = int(count[i]), int(number[i])
        check(not boxes[i, c:].any() and not scores[i, c:].any() and (classes[i, c:] == 1).all(),
              f"{what}: picture {i} has values after its {c} detections")
        sides = proposed[i, :p, 2:] - proposed[i, :p, :2]
        check((sides > 0).all() and not proposed[i, p:].any(), f"{what}: picture {i}: proposals")
        check(c == 0 or p > 0, f"{what}: picture {i} has detections without proposals")
        # Each detection is a raw box, clipped to the picture.
        flat = np.clip(raw[i, :p].reshape(-1, 4), 0, 1)
        for box in boxes[i, :c]:
            check(np.abs(flat - box).max(axis=1).min() < 1e-5, f"{what}: {box} is no raw box")
    if detector.masks:
        masks, = run_model(model, pixels, ["detection_masks"])
        check(masks.shape == (n, DETECTIONS, 11, 13) and masks.dtype == np.float32,
              f"{what}: masks are {masks.dtype} {masks.shape}")
        for i in range(n):
            c = int(count[i])
            check((masks[i, :c] > 0).all() and (masks[i, :c] < 1).all()
                  and not masks[i, c:].any(), f"{what}: picture {i}: masks")
    if detector.keypoints:
        points, values = run_model(model, pixels, ["detection_keypoints",
                                                   "detection_keypoint_scores"])
        check_keypoint_outputs(what, count, boxes, points, values)
    return [int(p) for p in number]


def decoded(mask):
    """A mask in COCO's form as [height, width] of 0 and 1."""
    import numpy as np
    runs, value, shift = [], 0, 0
    for c in mask["counts"]:
        digit = ord(c) - 48
        value |= (digit & 31) << shift
        shift += 5
        if not digit & 32:
            value -= (1 << shift) if digit & 16 else 0
            runs.append(value + (runs[-2] if len(runs) > 2 else 0))
            value = shift = 0
    height, width = mask["size"]
    return np.repeat(np.arange(len(runs)) % 2, runs).reshape(width, height).T


def pasted(mask, box, shape):
    """The probability of each pixel by the rule of TensorFlow's Object Detection API: the mask's
    corners are those of the box, the first and the last pixel are at 0 and 1. NaN: outside or on
    the border of the box."""
    import numpy as np
    place, inside = [], []
    for size, cells, low, high in zip(shape, mask.shape, box[:2], box[2:]):
        part = (np.arange(size) / (size - 1) - low) / (high - low)
        inside.append((part > 1e-5) & (part < 1 - 1e-5))
        place.append(np.clip(part, 0, 1) * (cells - 1))
    (y, x), (top, left) = place, [np.minimum(p.astype(int), n - 2)
                                  for p, n in zip(place, mask.shape)]
    fy, fx = (y - top)[:, None], (x - left)[None]
    top, left = top[:, None], left[None]
    value = ((1 - fy) * ((1 - fx) * mask[top, left] + fx * mask[top, left + 1])
             + fy * ((1 - fx) * mask[top + 1, left] + fx * mask[top + 1, left + 1]))
    return np.where(inside[0][:, None] & inside[1][None], value, np.nan)


def check_masks(what, found, shape, boxes, scores, masks, pixels):
    """Compares the masks that predict printed, except pixels within SCORE of the threshold, with
    those of the model in boxes and with those that the model pastes. Returns the number of compared
    pixels."""
    import numpy as np
    compared = 0
    for w in found:
        off = np.abs(boxes * (2 * shape) - w["box"]).max(axis=1) + np.abs(scores - w["score"])
        row = int(off.argmin())
        if (off < off[row] + PIXELS + SCORE).sum() > 1:  # two detections are alike
            continue
        want, value = decoded(w["mask"]), pasted(masks[row], boxes[row].astype(float), shape)
        sure = np.abs(value - 0.5) > SCORE  # false where value is NaN
        check(((value > 0.5) == (want == 1))[sure].all(), f"{what}: the mask of {w['box']}")
        check((pixels[row] == want)[sure].all(), f"{what}: the pasted mask of {w['box']}")
        compared += int(sure.sum())
    return compared


def check_pasted(what, boxes, masks, pixels, shape):
    """Compares all pixels of pasted masks, and those of the function in docs/onnx.md, except those
    within the rounding of a model. Returns their number."""
    import numpy as np
    paste = pasting.documented()
    check(pixels.dtype == np.uint8 and pixels.shape == (*masks.shape[:2], *shape),
          f"{what}: pasted masks are {pixels.dtype} {pixels.shape}")
    compared = 0
    for place in np.ndindex(masks.shape[:2]):
        with np.errstate(divide="raise", invalid="raise"):
            own = paste(masks[place], boxes[place].clip(0, 1), *shape)
        if not boxes[place].any():  # after the last detection
            check(not pixels[place].any() and not own.any(),
                  f"{what}: a mask without detection: {place}")
            continue
        want, sure = pasting.pixels_of(masks[place], boxes[place], shape)
        wrong = np.argwhere(sure & (want != pixels[place]))
        check(len(wrong) == 0, f"{what}: {len(wrong)} pixels of pasted mask {place}: {wrong[:3]}")
        check((want == own)[sure].all(), f"{what}: docs/onnx.md pastes mask {place} differently")
        compared += int((sure & want).sum())
    return compared


def check_given(detector):
    """Pastes masks that no net predicts: at the picture's borders, between pixels, thinner than a
    pixel, outside, at the threshold; in pictures of any size. Returns the number of compared pixels
    in masks."""
    import numpy as np
    boxes = np.array([
        [0, 0, 1, 1], [0.1, 0.2, 0.63, 0.71], [0.5, 0, 1, 0.3], [0.2, 0.97, 0.9, 1],
        [-0.3, -0.2, 0.4, 1.5], [0.013, 0.017, 0.511, 0.9], [0.4, 0.4, 0.404, 0.9],
        [0.99, 0.1, 1, 0.9], [0, 0, 0, 0], [0.25, 0.25, 0.75, 0.75], [0, 0, 1, 1], [0, 0, 1, 1],
    ], "float32")
    masks = np.random.default_rng(1).random((3, DETECTIONS, 11, 13)).astype("float32")
    boxes = np.tile(boxes, (3, DETECTIONS // len(boxes), 1))
    masks[:, 8::12] = 0
    masks[:, 9::12] = np.round(masks[:, 9::12])
    masks[:, 10::12] = 0.5
    masks[:, 11::12] = np.nextafter(np.float32(0.5), np.float32(1))
    compared = 0
    for options, shapes in (([], [(SIDE, SIDE)]), (PADDING[0][0], [
            (45, 70), (1, 40), (40, 1), (1, 1), (2, 3), (SIDE, SIDE)])):
        part = open_model(pasting.part_of(detector.export_file(
            [*ALL, *options, "export.masks=pasted"])))
        pictures = part.get_inputs()[0].name
        for shape, n in ((s, n) for s in shapes for n in (1, 3)):
            pixels, = part.run(None, {pictures: np.zeros((n, *shape, 3), "uint8"),
                                      "detection_boxes": boxes[:n],
                                      "detection_masks:input": masks[:n]})
            what = f"{detector.name}, {options[:1]}: given masks, {n} pictures {shape}"
            compared += check_pasted(what, boxes[:n], masks[:n], pixels, shape)
            check(pixels[:, 11].all() and not pixels[:, 10].any(), f"{what}: the threshold")
    return compared


def check_detections(what, detector, models, pixels, want):
    """models: see Detector.export_both."""
    model, paster = models
    count, boxes, scores, classes, *masks = run_model(
        model, pixels, OUTPUTS + ["detection_masks"] * detector.masks)
    if detector.masks:
        other_boxes, in_picture = run_model(paster, pixels, ["detection_boxes", "detection_masks"])
        check((boxes == other_boxes).all(), f"{what}: boxes depend on export.masks")
        detector.pasted += check_pasted(what, boxes, masks[0], in_picture, pixels.shape[1:3])
    points = detector.keypoints and run_model(model, pixels, ["detection_keypoints",
                                                              "detection_keypoint_scores"])
    worst, shape = 0, pixels.shape[1:3]
    for i, found in enumerate(want):
        n, name = int(count[i]), f"{what}, picture {i}"
        worst = max(worst, compare(name, found, shape, boxes[i, :n], scores[i, :n], classes[i, :n]))
        if detector.masks:
            detector.pixels += check_masks(name, found, shape, boxes[i, :n], scores[i, :n],
                                           masks[0][i, :n], in_picture[i])
        if detector.keypoints:
            detector.points += check_keypoints(name, found, shape, boxes[i, :n], scores[i, :n],
                                               classes[i, :n], points[0][i, :n], points[1][i, :n])
    return worst, int(count.sum())


def check_batches(detector, files, options, what):
    """Returns the largest difference, the number of detections, and that of proposals of each
    picture."""
    import numpy as np
    pixels = np.stack([read_png(f, 3) for f in files]).astype("uint8")
    want, models = detector.predict(files, options), detector.export_both(options)
    worst = total = 0
    counts = []
    for size in (1, 3):
        counts = []
        for at in range(0, len(files) - size + 1, size):
            part = slice(at, at + size)
            name = f"{detector.name}, {what}, pictures {at} to {at + size - 1}"
            off, found = check_detections(name, detector, models, pixels[part], want[part])
            worst, total = max(worst, off), total + found
            counts += check_outputs(name, detector, models[0], pixels[part])
    return worst, total, counts


def check_padding(detector, files, options, shapes):
    """Compares pictures of other shapes, cut from and repeated by the drawn ones."""
    import numpy as np
    options = [*options, *ALL]
    cut, models = os.path.join(detector.folder, "cut.png"), detector.export_both(options)
    worst = total = 0
    for shape, file in ((s, f) for s in shapes for f in files[:3]):
        pixels = np.tile(read_png(file, 3), (4, 4, 1))[5:5 + shape[0], 3:3 + shape[1]]
        pixels = pixels.astype("uint8")[None]
        write_png(cut, pixels[0])
        what = f"{detector.name}, {options[0]}, {shape}"
        off, found = check_detections(what, detector, models, pixels,
                                      detector.predict([cut], options))
        worst, total = max(worst, off), total + found
        check_outputs(what, detector, models[0], pixels)
    check(total >= 20, f"{detector.name}: {options}: {total} boxes: too few are compared")
    return worst, total


def check_raw(detector, files):
    """Without the second suppression the model has the same raw outputs."""
    import numpy as np
    pixels = np.stack([read_png(f, 3) for f in files[:3]]).astype("uint8")
    names = ["raw_detection_boxes", "raw_detection_scores", "num_proposals"]
    whole = run_model(detector.export([*ALL, "export.proposals=true"]), pixels, names)
    raw = run_model(detector.export([*ALL, "export.nms=false"]), pixels, names)
    check(all(np.array_equal(a, b) for a, b in zip(whole, raw)),
          f"{detector.name}: raw outputs depend on export.nms")


def check_without_proposals(detector, files):
    """Compares pictures of which all or some have no proposal."""
    def absent(threshold):
        options = [proposals(threshold), detections(0.02)]
        return check_batches(detector, files, options,
                             f"proposals above {threshold}")[2].count(0)

    check(absent(0.99999) == len(files), f"{detector.name}: proposals above 0.99999")
    low, high = 0.0, 1.0
    for _ in range(12):  # the best scores of pictures differ, so that some threshold divides them
        middle = (low + high) / 2
        count = absent(middle)
        if 0 < count < len(files):
            print(f"{detector.name}: {count} of {len(files)} pictures without proposals")
            return
        low, high = (low, middle) if count else (middle, high)
    check(False, f"{detector.name}: no batch with and without proposals")


def check_net(folder, files, name, more, by_class):
    detector = Detector(folder, name, more, by_class)
    worst, total, counts = check_batches(detector, files, ALL, "all proposals")
    check(total >= 100 and min(counts) > 0, f"{name}: {total} boxes, proposals {counts}")
    print(f"{name}: {total} boxes in {len(files)} pictures, alone and by threes: corners differ by "
          f"{worst:.5f} pixels", flush=True)
    _, total, _ = check_batches(detector, files[:3], [proposals(), detections(0.9999)],
                                "no detection")
    check(total == 0, f"{name}: {total} boxes above 0.9999")
    check_without_proposals(detector, files[:9])
    for options, shapes in PADDING:
        worst, total = check_padding(detector, files, options, shapes)
        print(f"{name}: {options[0]}: {total} boxes: corners differ by {worst:.5f} pixels",
              flush=True)
    check_raw(detector, files)
    if detector.masks:
        given = check_given(detector)
        print(f"{name}: {detector.pixels} pixels of masks are the same, {detector.pasted} of "
              f"pasted masks, {given} of given masks", flush=True)
        check(min(detector.pixels, detector.pasted, given) > 10000,
              f"{name}: too few pixels of masks")
    if detector.keypoints:
        print(f"{name}: {detector.points} keypoints are the same", flush=True)
        check(detector.points > 500, f"{name}: too few keypoints")


def main():
    packages.find_onnx()
    import numpy as np
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/net.json", "w") as f:
            json.dump(CONFIG, f)
        pumice("dataset", "make", "shapes", f"{folder}/data", f"size={SIDE}", "train=60",
               "validation=8", "test=8")
        pumice("dataset", "inspect", f"{folder}/data", "--records", "16", "--pictures",
               f"{folder}/pictures")
        files = sorted(glob.glob(f"{folder}/pictures/*.png"))
        check(len(files) >= 11, f"{len(files)} pictures are too few")
        write_png(f"{folder}/empty.png", np.full((SIDE, SIDE, 3), 128, "uint8"))
        files = [f"{folder}/empty.png"] + files[:11]
        for name, more, by_class in NETS:
            check_net(folder, files, name, more, by_class)


main()
