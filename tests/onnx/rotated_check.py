"""Checks that the rule in rotated.py, applied to what onnxruntime computes, gives the boxes that
`pumice predict` gives: a detector of rotated boxes is trained for a few steps and exported with
pixels as input.

    python3 tests/onnx/rotated_check.py PUMICE FOLDER

A Python without onnx and onnxruntime makes a virtual environment in FOLDER and installs them there,
once. The check exits with 77 (skipped) when the download fails."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import packages  # noqa: E402
from checks import fail, pumice  # noqa: E402
from detectors import PIXELS, SCORE, open_model, run_model, train  # noqa: E402
from pictures import read_png  # noqa: E402

CONFIG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "configs",
                      "shapes_rotated.json")
SIDE = 64
NAMES = ["raw_detection_boxes", "raw_detection_scores"]


def difference(want, box):
    """The largest difference of corners, in pixels. Both have angles of a half turn."""
    import numpy as np
    from rotated import corners
    a, b = corners(want), corners(box)
    return min(np.abs(a - np.roll(b, k, axis=0)).max() for k in range(4))


def compare(name, want, found):
    """want: the boxes that predict printed; found: score, class, box in pixels."""
    if len(want) != len(found):
        fail(f"{name}: the rule finds {len(found)} boxes, predict {len(want)}")
    left, worst = list(found), 0
    for w in want:
        same = [(difference(w["rotated"], box), i) for i, (score, k, box) in enumerate(left)
                if w["label"] == k + 1 and abs(w["score"] - score) <= SCORE]
        off, i = min(same, default=(99, 0))
        # Each printed number of the first four is rounded to 0.01 pixel.
        if off > 2 * PIXELS:
            fail(f"{name}: the rule does not find {w}; it finds {left[:3]} ...")
        del left[i]
        worst = max(worst, off)
    return worst


def main():
    packages.find_onnx()
    import numpy as np
    import onnx
    from rotated import suppress
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.onnx")
        more = [f"input.size={SIDE}", "model.post_processing.score_threshold=0.05"]
        files, more = train(folder, CONFIG, "bars", SIDE, more, 60)
        files = files[::5]
        want = json.loads(pumice("predict", CONFIG, *files, *more, "--json").stdout)["images"]
        pumice("export", CONFIG, model, *more, "export.preprocessing=fold")
        meta = {p.key: p.value for p in onnx.load(model).metadata_props}
        notes = json.loads(meta["detection"])
        if notes["nms"] or "iou_threshold" not in notes["suppression"]:
            fail(f"the metadata lacks the rule: {notes}")
        pixels = np.stack([read_png(f, 3) for f in files]).astype("uint8")
        boxes, scores = run_model(open_model(model), pixels, NAMES)
        if boxes.shape[2] != 5 or boxes.shape[:2] != scores.shape[:2]:
            fail(f"outputs of {boxes.shape} and {scores.shape}")
        worst = total = 0
        for i, image in enumerate(want):
            found = [(s, k, box * [SIDE, SIDE, SIDE, SIDE, 1])
                     for s, k, box in suppress(boxes[i], scores[i], notes["post_processing"])]
            worst = max(worst, compare(files[i], image["boxes"], found))
            total += len(found)
        if total < 100:
            fail(f"{total} boxes: too few are compared")
        print(f"{total} rotated boxes in {len(files)} pictures: corners differ by {worst:.4f} "
              "pixels")


main()
