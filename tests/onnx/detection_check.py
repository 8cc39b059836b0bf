"""Checks that onnxruntime finds the same detections as Pumice: the same boxes in the same order,
for batches of 1, 3 and 8, pictures with 0 and 300 detections, and fewer boxes than detections.

    python3 tests/onnx/detection_check.py DETECTION_CASES FOLDER

The program DETECTION_CASES (detection_cases.c) exports the ends of detectors and writes random
inputs and Pumice's outputs. A Python without onnx and onnxruntime makes a virtual environment in
FOLDER and installs them there, once. The check exits with 77 (skipped) when the download fails."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import packages  # noqa: E402
from checks import fail, pumice  # noqa: E402

# Boxes are in 0..1, and their codes at most 3: exp(3 / 5) and three roundings of float32.
BOUND = 2e-6
# Both sides round a sample's place on a map of up to 7 cells about 4 times, by 2^-22 each: places
# differ by 2e-6. Neighbours differ by at most 6, so a value moves by 12e-6 along each axis, a score
# by a quarter of both, and a box by less.
CROPS_BOUND = BOUND + 6e-6
WHOLE = ("detection_classes", "num_detections", "anchors")


def array_of(item):
    import numpy as np
    return np.fromfile(item["file"], item["type"]).reshape(item["shape"])


def as_graph(x):
    """Maps in the layout of the graph, channels before rows and columns."""
    return x.transpose(0, 3, 1, 2).copy() if x.ndim == 4 else x


def session(path):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def check_case(case):
    """Returns the number of detections of each picture."""
    import numpy as np
    import onnx
    onnx.checker.check_model(case["onnx"], full_check=True)
    run = session(case["onnx"])
    names = {i.name for i in run.get_inputs()}
    feeds = {i["name"]: as_graph(array_of(i)) for i in case["inputs"] if i["name"] in names}
    for item, got in zip(case["outputs"], run.run([o["name"] for o in case["outputs"]], feeds)):
        want, what = array_of(item), f"{case['name']}: {item['name']}"
        if got.shape != want.shape or got.dtype != want.dtype:
            fail(f"{what} is {got.dtype} {got.shape}, ours {want.dtype} {want.shape}")
        off = np.abs(got - want).max()
        bound = CROPS_BOUND if "crops" in case["name"] else BOUND
        if not off <= (0 if item["name"] in WHOLE else bound):
            at = np.unravel_index(np.abs(got - want).argmax(), got.shape)
            fail(f"{what}{list(map(int, at))} is {got[at]}, ours {want[at]}")
        if item["name"] == "num_detections":
            counts = got
    return [int(c) for c in counts]


def main():
    packages.find_onnx()
    counted = []
    with tempfile.TemporaryDirectory() as folder:
        for line in pumice(folder).stdout.splitlines():
            case = json.loads(line)
            counts = check_case(case)
            counted += counts
            print(f"{case['name']}: {counts} detections", flush=True)
    if counted.count(0) < 10 or counted.count(300) < 4 or sum(counted) < 1000:
        fail(f"the pictures have {sorted(counted)} detections: too little is tested")


main()
