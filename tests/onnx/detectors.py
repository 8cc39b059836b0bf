"""Trains small detectors. Compares the boxes of exported detectors with those that `pumice predict`
prints."""
import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from checks import fail, pumice  # noqa: E402

# Most difference of a corner and of a score. predict rounds corners to 0.01 pixel.
PIXELS, SCORE = 0.01, 1e-4
OUTPUTS = ["num_detections", "detection_boxes", "detection_scores", "detection_classes"]


def train(folder, config, kind, side, options, steps):
    """Trains a detector for a few steps on drawn data. All files are in the folder. Returns files
    of pictures, and the options for later commands: the given ones and those of the folders."""
    data = os.path.join(folder, "data")
    pumice("dataset", "make", kind, data, f"size={side}", "train=64", "validation=8", "test=8")
    options = [*options, f"data.folder={data}", "data.make=none", f"run.folder={folder}/run",
               "devices=[\"cpu\"]"]
    pumice("train", config, *options, f"run.steps={steps}", "schedule.warmup_steps=5",
           "eval.every_steps=0")
    pumice("dataset", "inspect", data, "--records", "24", "--pictures", f"{folder}/pictures")
    return sorted(glob.glob(f"{folder}/pictures/*.png")), options


def compare(name, want, shape, boxes, scores, classes):
    """want: the boxes that predict printed; shape: height and width of the picture; the others:
    rows of one picture."""
    if len(want) != len(scores):
        fail(f"{name}: onnxruntime finds {len(scores)} boxes, predict {len(want)}")
    # Scores that are equal up to rounding may change places.
    left, worst = list(zip(boxes * (2 * shape), scores, classes)), 0
    for w in want:
        same = [(max(abs(a - b) for a, b in zip(w["box"], box)), i)
                for i, (box, score, number) in enumerate(left)
                if w["label"] == number and abs(w["score"] - score) <= SCORE]
        off, i = min(same, default=(2 * PIXELS, 0))
        if off > PIXELS:
            fail(f"{name}: onnxruntime does not find {w}; it finds {left[:3]} ...")
        del left[i]
        worst = max(worst, off)
    return worst


def row_of(w, shape, boxes, scores, classes):
    """Returns the row of w, a detection that predict printed. None: another row of the same class
    is as near, so the row is not known."""
    import numpy as np
    off = np.abs(boxes * (2 * shape) - w["box"]).max(axis=1) + np.abs(scores - w["score"])
    off = np.where(classes == w["label"], off, np.inf)
    row = int(off.argmin())
    return None if (off < off[row] + PIXELS + SCORE).sum() > 1 else row


def open_model(file):
    """Returns a model that run_model runs. The file may be replaced afterwards."""
    import onnxruntime as ort
    return ort.InferenceSession(file, providers=["CPUExecutionProvider"])


def run_model(model, pixels, names=OUTPUTS):
    """Returns these outputs for pixels, uint8 [n, height, width, channels]."""
    return model.run(names, {model.get_inputs()[0].name: pixels})
