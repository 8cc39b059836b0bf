"""Checks that onnxruntime, with integers, agrees with detectors trained with quantisation.

    python3 tests/onnx/quantized_detector_check.py PUMICE FOLDER

The program PUMICE trains two detectors on drawn shapes with floats, continues from that checkpoint
with quantisation, and exports the result: one has heads of its own for each map, the other a
feature pyramid and heads that the maps share. The rounded net must be about as good as that of
floats. onnxruntime must run the heads with integers, and its boxes must have the metric that `eval`
states, because `eval` rounds as well. A Python without onnx and onnxruntime makes a virtual
environment in FOLDER and installs them there, once. The check exits with 77 (skipped) when the
download fails."""
import glob
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import packages  # noqa: E402
from checks import check, pumice  # noqa: E402
from detectors import run_model  # noqa: E402
from pictures import read_png  # noqa: E402
from tfrecords import records  # noqa: E402

CONFIG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "configs",
                      "shapes_detection.json")
SIDE, TESTED = 64, 300
# Most loss of map_50 by rounding; most difference of map_50 between integers and eval; share of the
# boxes with a score above LEAST that must have a partner of this overlap and score.
LOST, DIFFERENT, LEAST, FOUND, OVERLAP, SCORE = 0.02, 0.005, 0.3, 0.99, 0.9, 0.02
QUANTISED = ["model.quantize_delay=40", "run.folder=quantised"]


def unit(name, x, **more):
    """A convolution with batch norm and relu6."""
    return [{"name": name, "layer": "conv2d", "bias": False, "inputs": [x], **more},
            {"name": name + "/BatchNorm", "layer": "batch_norm", "decay": 0.9,
             "activation": "relu6"}]


def level(k, x):
    """The tower and heads of level k, whose weights are those of level 1."""
    share = {} if k == 1 else {"share": "tower_1"}
    head = {"layer": "conv2d", "filters": 16, "inputs": [f"tower_{k}/BatchNorm"]}
    boxes = {} if k == 1 else {"share": "boxes_1"}
    classes = {"share": "classes_1"} if k > 1 else {"weights_init": "truncated(0.01)",
                                                    "bias_init": "constant(-4.6)"}
    return [*unit(f"tower_{k}", x, filters=64, **share), {"name": f"boxes_{k}", **head, **boxes},
            {"name": f"classes_{k}", **head, **classes}]


# The names of the maps that boxes are predicted from: 8x8, 4x4 and 2x2 cells.
MAPS = ["map1/BatchNorm", "coarse", "map3/BatchNorm"]
PYRAMID = [
    *unit("conv1", "images", filters=24, kernel=5, stride=2),
    *unit("conv2", "conv1/BatchNorm", filters=48, stride=2),
    *unit("conv3", "conv2/BatchNorm", filters=64, stride=2),
    *unit("conv4", "conv3/BatchNorm", filters=96, stride=2),
    {"name": "coarse", "layer": "conv2d", "filters": 64, "kernel": 1},
    {"name": "up", "layer": "resize", "size": 8, "method": "nearest",
     "coordinates": "asymmetric", "rounding": "floor"},
    {"name": "lateral", "layer": "conv2d", "filters": 64, "kernel": 1,
     "inputs": ["conv3/BatchNorm"]},
    {"name": "sum", "layer": "add", "inputs": ["up", "lateral"]},
    *unit("map1", "sum", filters=64),
    *unit("map3", "coarse", filters=64, stride=2),
    {"name": "anchors", "layer": "ssd_anchors", "min_scale": 0.3, "max_scale": 0.85,
     "aspect_ratios": [1, 2, 0.5], "reduce_boxes_in_lowest_layer": False,
     "inputs": ["images", *MAPS]},
    *[layer for k, x in enumerate(MAPS, 1) for layer in level(k, x)],
]
NETS = {"own heads": {}, "shared heads": {"model": {"num_classes": 4, "layers": PYRAMID}}}


# ---- metrics ---------------------------------------------------------------------------------


def overlaps(a, b):
    """The intersections over unions of boxes [y, x, bottom, right]: [of a, of b]."""
    low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:],
                                                                       b[None, :, 2:])
    inside = np.prod(np.maximum(high - low, 0), axis=2)
    area = [np.prod(x[:, 2:] - x[:, :2], axis=1) for x in (a, b)]
    return inside / (area[0][:, None] + area[1][None] - inside)


def matches(found, true):
    """The scores of the found boxes of one class, the best first, and whether each has an object of
    its own."""
    rows = []
    for (boxes, scores), truth in zip(found, true):
        over = overlaps(boxes, truth)
        taken = np.zeros(len(truth), bool)
        for i in np.argsort(-scores, kind="stable"):
            free = np.where(taken, 0, over[i])
            best = int(free.argmax()) if len(truth) else 0
            right = len(truth) > 0 and free[best] >= 0.5
            if right:
                taken[best] = True
            rows.append((scores[i], right))
    rows.sort(key=lambda row: -row[0])
    return np.array([right for _, right in rows])


def map_50(found, true):
    """COCO's mean over the classes of the average precision at overlap 0.5. found: boxes, scores
    and classes of each picture; true: boxes and classes."""
    out = []
    for c in np.unique(np.concatenate([classes for _, classes in true])):
        truth = [boxes[classes == c] for boxes, classes in true]
        right = matches([(b[k == c], s[k == c]) for b, s, k in found], truth).cumsum()
        recall = right / sum(len(t) for t in truth)
        precision = np.maximum.accumulate((right / np.arange(1, len(right) + 1))[::-1])[::-1]
        at = np.searchsorted(recall, np.linspace(0, 1, 101), side="left")
        out.append(np.append(precision, 0)[np.minimum(at, len(right))].mean())
    return float(np.mean(out))


def true_boxes():
    """Boxes in pixels and classes of each picture, and the pictures' names in detections.json."""
    out, names = [], []
    for e in records("data/*_validation_*"):
        box = [e.get(f"image/object/bbox/{k}", []) for k in ("ymin", "xmin", "ymax", "xmax")]
        out.append((np.array(box, np.float64).T.reshape(-1, 4) * SIDE,
                    np.array(e.get("image/object/class/label", []), int)))
        names.append((e.get("image/source_id") or e.get("image/filename"))[0].decode())
    return out, names


def evaluated(names):
    """The boxes that eval found in each picture."""
    path, = glob.glob("quantised/**/detections.json", recursive=True)
    rows = {name: [] for name in names}
    with open(path) as f:
        for d in json.load(f):
            x, y, w, h = d["bbox"]
            rows[str(d["image_id"])].append([y, x, y + h, x + w, d["score"], d["category_id"]])
    rows = [np.array(rows[name], np.float64).reshape(-1, 6) for name in names]
    return [(r[:, :4], r[:, 4], r[:, 5].astype(int)) for r in rows]


def integers(model):
    """The boxes that onnxruntime finds in each picture, with integers."""
    files = sorted(glob.glob("pictures/*_validation_*.png"))
    check(len(files) == TESTED, f"{len(files)} pictures")
    pixels = np.stack([read_png(f, 3) for f in files]).astype("uint8")
    out = []
    for first in range(0, len(files), 50):
        count, boxes, scores, classes = run_model(model, pixels[first:first + 50])
        out += [(boxes[i, :n] * SIDE, scores[i, :n], classes[i, :n].astype(int))
                for i, n in enumerate(count.astype(int))]
    return out


def share_found(wanted, found):
    """The share of wanted boxes that have a partner, and their number."""
    total = good = 0
    for (b, s, c), (x, t, d) in zip(wanted, found):
        over = overlaps(b, x)
        same = (over >= OVERLAP) & (np.abs(s[:, None] - t) <= SCORE) & (c[:, None] == d)
        sure = s > LEAST
        total += sure.sum()
        good += same.any(axis=1)[sure].sum()
    return good / total, total


# ---- all -------------------------------------------------------------------------------------


def session(path):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = "optimized.onnx"
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def check_operators(name):
    """All convolutions except the first, which reads pictures, must be integers, and activations
    must still be there or be part of a range."""
    import onnx
    onnx.checker.check_model(onnx.load("net.onnx"), full_check=True)
    counts = [{}, {}]
    for i, file in enumerate(("net.onnx", "optimized.onnx")):
        for node in onnx.load(file).graph.node:
            counts[i][node.op_type] = counts[i].get(node.op_type, 0) + 1
    convolutions, whole = counts[0]["Conv"], counts[1].get("QLinearConv", 0)
    check(whole >= convolutions - 1,
          f"{name}: {whole} of {convolutions} convolutions in integers: {counts[1]}")
    return f"{whole} of {convolutions} convolutions in integers"


def metric(config, *options):
    return json.loads(pumice("eval", config, "--json", *options).stdout)["metrics"]["map_50"]


def check_net(name, net):
    common = {"base": [os.path.abspath(CONFIG)], "data": {"folder": "data"}, "devices": ["cpu"],
              "run": {"folder": "float", "steps": 400, "summary_every_steps": 0},
              "eval": {"every_steps": 0}}
    with open("net.json", "w") as f:
        json.dump({**common, **net}, f)
    pumice("train", "net.json")
    pumice("train", "net.json", "init.checkpoint=float", "run.steps=100", "schedule.base_lr=0.0003",
           "schedule.warmup_steps=0", *QUANTISED)
    plain, rounded = metric("net.json"), metric("net.json", *QUANTISED)
    check(rounded > plain - LOST,
          f"{name}: map_50 is {plain:.4f} with floats, {rounded:.4f} rounded")
    true, names = true_boxes()
    wanted = evaluated(names)
    check(abs(map_50(wanted, true) - rounded) < 1e-6,
          f"{name}: this metric is {map_50(wanted, true)}, eval's {rounded}")
    pumice("export", "net.json", "net.onnx", "export.preprocessing=fold", *QUANTISED)
    found = integers(session("net.onnx"))
    told = check_operators(name)
    whole = map_50(found, true)
    check(abs(whole - rounded) <= DIFFERENT,
          f"{name}: map_50 of the integers is {whole:.4f}, eval's {rounded:.4f}")
    share, total = share_found(wanted, found)
    check(total > TESTED / 2, f"{name}: {total} boxes are too few")
    check(share >= FOUND, f"{name}: the integers have {share:.4f} of {total} boxes")
    print(f"{name}: {told}; map_50 {plain:.4f} with floats, {rounded:.4f} rounded, {whole:.4f} in "
          f"integers, which have {share:.4f} of {total} boxes", flush=True)


def main():
    packages.find_onnx()
    global np
    import numpy as np
    for name, net in NETS.items():
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            pumice("dataset", "make", "shapes", "data", f"size={SIDE}", "train=3000",
                   f"validation={TESTED}", "test=2")
            pumice("dataset", "inspect", "data", "--records", str(TESTED), "--pictures", "pictures")
            check_net(name, net)
            os.chdir("/")


main()
