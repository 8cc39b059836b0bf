"""Checks that onnxruntime finds the boxes that `pumice predict` finds: a detector is trained for a
few steps and exported with pixels as input; all drawn pictures form one batch. With each resizer
that pads, pictures of other shapes are given to the model, which resizes and pads them itself. A
second detector codes keypoints with its boxes.

    python3 tests/onnx/detector_check.py PUMICE FOLDER

A Python without onnx and onnxruntime makes a virtual environment in FOLDER and installs them there,
once. The check exits with 77 (skipped) when the download fails."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import packages  # noqa: E402
from checks import fail, pumice  # noqa: E402
from detectors import OUTPUTS, PIXELS, compare, open_model, row_of, run_model, train  # noqa: E402
from pictures import read_png, write_png  # noqa: E402

CONFIG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "configs",
                      "shapes_detection.json")
SIDE = 64
# Resizers that pad; each with the shapes of pictures that fit into the input.
PADDING = [
    (["input.resizer=keep_aspect_ratio", "input.pad_value=[0.5,-0.25,0]"], [(64, 40), (31, 57),
                                                                            (90, 200)]),
    (["input.resizer=keep_aspect_ratio", "input.min_dimension=33", "input.max_dimension=61",
      "input.resize_method=bicubic"], [(64, 40), (31, 57), (200, 90)]),
    (["input.resizer=conditional", "input.size_threshold=48"], [(64, 40), (31, 57)]),
    (["input.resizer=conditional", "input.condition=smaller", "input.size_threshold=40"],
     [(64, 50), (31, 45)]),
    (["input.resizer=pad_to_multiple"], [(64, 40), (31, 57)]),
]

# A net that codes keypoints with its boxes. The drawn shapes have none, so they learn nothing.
KEYPOINTS = {
    "task": "detection",
    "model": {"name": "ssd_mobilenet_v1", "depth_multiplier": 0.25,
              "box_coder": {"type": "keypoint"}, "post_processing": {"score_threshold": 0.01}},
    "input": {"size": SIDE, "augment": []}, "optim": {"name": "momentum"}, "devices": ["cpu"],
    "schedule": {"policy": "fixed", "base_lr": 0.001}, "eval": {"every_steps": 0},
}


def check_padding(folder, files, config, options, shapes):
    """Compares pictures of other shapes, cut from and repeated by the drawn ones."""
    import numpy as np
    model, cut = os.path.join(folder, "padded.onnx"), os.path.join(folder, "cut.png")
    pumice("export", *config, model, *options, "export.preprocessing=fold")
    model = open_model(model)
    total = worst = 0
    for shape, file in ((s, f) for s in shapes for f in files[:3]):
        pixels = np.tile(read_png(file, 3), (4, 4, 1))[5:5 + shape[0], 3:3 + shape[1]]
        write_png(cut, pixels.astype("uint8"))
        found = json.loads(pumice("predict", *config[:1], cut, *config[1:], *options,
                                  "--json").stdout)
        count, boxes, scores, classes = run_model(model, pixels[None].astype("uint8"))
        n = int(count[0])
        worst = max(worst, compare(f"{options} {shape}", found["images"][0]["boxes"], shape,
                                   boxes[0, :n], scores[0, :n], classes[0, :n]))
        total += n
    if total < 20:
        fail(f"{options}: {total} boxes: too few are compared")
    return total, worst


def check_keypoints(folder, files, data):
    """Compares keypoints, which may lie outside of the picture. The second model pads pictures. A
    keypoint is a code times a tenth of the anchor's side, plus the anchor's centre. So is the
    centre of a box, and predict rounds both to 0.01 pixel: the bound is that of corners."""
    import numpy as np
    net, model, cut = (f"{folder}/keypoints.{end}" for end in ("json", "onnx", "png"))
    total = worst = 0
    with open(net, "w") as f:
        json.dump(KEYPOINTS | {"data": {"folder": data, "num_keypoints": 3},
                               "run": {"folder": f"{folder}/keypoints", "steps": 10}}, f)
    pumice("train", net)
    for more in ([], PADDING[0][0]):
        pumice("export", net, model, *more, "export.preprocessing=fold")
        session = open_model(model)
        for file in files[:4]:
            pixels = read_png(file, 3)[:SIDE - 24 if more else SIDE].astype("uint8")
            write_png(cut, pixels)
            want = json.loads(pumice("predict", net, cut, *more, "--json").stdout)
            want = want["images"][0]["boxes"]
            count, boxes, scores, classes, points = run_model(
                session, pixels[None], OUTPUTS + ["detection_keypoints"])
            n, shape = int(count[0]), pixels.shape[:2]
            compare(file, want, shape, boxes[0, :n], scores[0, :n], classes[0, :n])
            if points.shape != (1, boxes.shape[1], 3, 2) or points[0, n:].any():
                fail(f"keypoints have shape {points.shape}, or values after the {n} detections")
            for w in want:
                row = row_of(w, shape, boxes[0, :n], scores[0, :n], classes[0, :n])
                if row is None:
                    continue
                off = np.abs(points[0, row] * shape - np.array(w["keypoints"])).max()
                if off > PIXELS:
                    fail(f"{file}: keypoints of {w['box']} differ by {off} pixels")
                worst = max(worst, off)
                total += 1
    if total < 40:
        fail(f"{total} boxes with keypoints: too few are compared")
    print(f"{total} boxes have the same keypoints: they differ by {worst:.5f} pixels")


def main():
    packages.find_onnx()
    import numpy as np
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.onnx")
        files, more = train(folder, CONFIG, "shapes", SIDE, [], 30)
        if len(files) < 8:
            fail(f"{len(files)} pictures are too few")
        least = "model.post_processing.score_threshold=0.02"
        found = json.loads(pumice("predict", CONFIG, *files, *more, least, "--json").stdout)
        pumice("export", CONFIG, model, *more, least, "export.preprocessing=fold")
        pixels = np.stack([read_png(f, 3) for f in files]).astype("uint8")
        count, boxes, scores, classes = run_model(open_model(model), pixels)
        worst = total = 0
        for i, image in enumerate(found["images"]):
            n = int(count[i])
            worst = max(worst, compare(files[i], image["boxes"], (SIDE, SIDE), boxes[i, :n],
                                       scores[i, :n], classes[i, :n]))
            total += n
        if total < 100:
            fail(f"{total} boxes: too few are compared")
        print(f"{total} boxes in {len(files)} pictures: corners differ by {worst:.5f} pixels")
        for options, shapes in PADDING:
            total, worst = check_padding(folder, files, [CONFIG, *more, least], options, shapes)
            print(f"{options}: {total} boxes: corners differ by {worst:.5f} pixels")
        check_keypoints(folder, files, os.path.join(folder, "data"))


main()
