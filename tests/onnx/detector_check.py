"""Checks that onnxruntime finds the boxes that `pumice predict` finds: a detector is trained for a
few steps and exported with pixels as input; all drawn pictures form one batch.

    python3 tests/onnx/detector_check.py PUMICE FOLDER

A Python without onnx and onnxruntime makes a virtual environment in FOLDER and installs them there,
once. The check exits with 77 (skipped) when the download fails."""
import glob
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import packages  # noqa: E402
from checks import fail, pumice  # noqa: E402
from pictures import read_png  # noqa: E402

CONFIG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "configs",
                      "shapes_detection.json")
SIDE = 64
# Most difference of a corner and of a score. predict rounds corners to 0.01 pixel.
PIXELS, SCORE = 0.01, 1e-4


def compare(name, want, boxes, scores, classes):
    """want: the boxes that predict printed; the others: rows of one picture."""
    if len(want) != len(scores):
        fail(f"{name}: onnxruntime finds {len(scores)} boxes, predict {len(want)}")
    worst = 0
    for i, (w, box, score, number) in enumerate(zip(want, boxes * SIDE, scores, classes)):
        off = max(abs(a - b) for a, b in zip(w["box"], box))
        if w["label"] != number or not off <= PIXELS or not abs(w["score"] - score) <= SCORE:
            fail(f"{name}: box {i} is {number} {score} {list(box)}, predict says {w}")
        worst = max(worst, off)
    return worst


def main():
    packages.find_onnx()
    import numpy as np
    import onnxruntime as ort
    with tempfile.TemporaryDirectory() as folder:
        data, run, model = (os.path.join(folder, n) for n in ("data", "run", "model.onnx"))
        pumice("dataset", "make", "shapes", data, f"size={SIDE}", "train=64", "validation=8",
               "test=8")
        more = [f"data.folder={data}", "data.make=none", f"run.folder={run}", "devices=[\"cpu\"]"]
        pumice("train", CONFIG, *more, "run.steps=30", "schedule.warmup_steps=5",
               "eval.every_steps=0")
        pumice("dataset", "inspect", data, "--records", "24", "--pictures", f"{folder}/pictures")
        files = sorted(glob.glob(f"{folder}/pictures/*.png"))
        if len(files) < 8:
            fail(f"{len(files)} pictures are too few")
        least = "model.post_processing.score_threshold=0.02"
        found = json.loads(pumice("predict", CONFIG, *files, *more, least, "--json").stdout)
        pumice("export", CONFIG, model, *more, least, "export.preprocessing=fold")
        net = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
        pixels = np.stack([read_png(f, 3) for f in files]).astype("uint8")
        names = ["num_detections", "detection_boxes", "detection_scores", "detection_classes"]
        count, boxes, scores, classes = net.run(names, {net.get_inputs()[0].name: pixels})
        worst = total = 0
        for i, image in enumerate(found["images"]):
            n = int(count[i])
            worst = max(worst, compare(files[i], image["boxes"], boxes[i, :n], scores[i, :n],
                                       classes[i, :n]))
            total += n
        if total < 100:
            fail(f"{total} boxes: too few are compared")
        print(f"{total} boxes in {len(files)} pictures: corners differ by {worst:.5f} pixels")


main()
