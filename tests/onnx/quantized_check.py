"""Checks that onnxruntime, with integers, agrees with nets trained with quantisation.

    python3 tests/onnx/quantized_check.py PUMICE FOLDER

The program PUMICE trains nets on drawn shapes with floats, continues from that checkpoint with
quantisation, and exports the result. Every file must pass the checker of the onnx package, and
onnxruntime must run its convolutions with integers. Its answers for pictures drawn here must equal
the program's, except for few that lie between two steps: integers round a sum once more than
floats. The program's metric must be close to that of the same weights without rounding. A Python
without onnx and onnxruntime makes a virtual environment in FOLDER and installs them there, once.
The check exits with 77 (skipped) when the download fails."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import packages  # noqa: E402
from checks import check, pumice  # noqa: E402
from pictures import read_png, write_png  # noqa: E402

COMMON = {
    "data": {"folder": "data"}, "optim": {"name": "adam", "epsilon": 1}, "devices": ["cpu"],
    "schedule": {"policy": "cosine", "base_lr": 0.005, "end_lr": 0},
    "run": {"folder": "float", "steps": 250, "batch_size": 24, "summary_every_steps": 0},
}
NETS = {
    # A bypass, a depthwise convolution, relu6, and a map that is resized and concatenated.
    "pixels": {
        "task": "segmentation",
        "model": {
            "layers": [
                {
                    "name": "a",
                    "layer": "conv2d",
                    "filters": 24,
                    "kernel": 5,
                    "stride": 2,
                    "bias": False,
                },
                {"name": "a/BatchNorm", "layer": "batch_norm", "decay": 0.8, "activation": "relu6"},
                {"name": "b", "layer": "depthwise_conv2d", "bias": False},
                {"name": "b/BatchNorm", "layer": "batch_norm", "decay": 0.8, "activation": "relu6"},
                {"name": "c", "layer": "conv2d", "filters": 24, "kernel": 1, "bias": False},
                {"name": "c/BatchNorm", "layer": "batch_norm", "decay": 0.8},
                {"name": "add", "layer": "add", "inputs": ["c/BatchNorm", "a/BatchNorm"]},
                {"name": "d", "layer": "conv2d", "filters": 48, "stride": 2, "bias": False},
                {"name": "d/BatchNorm", "layer": "batch_norm", "decay": 0.8, "activation": "relu"},
                {"name": "e", "layer": "conv2d", "filters": 48, "stride": 2, "bias": False},
                {"name": "e/BatchNorm", "layer": "batch_norm", "decay": 0.8, "activation": "relu"},
                {"name": "f", "layer": "conv2d", "filters": 48, "bias": False},
                {"name": "f/BatchNorm", "layer": "batch_norm", "decay": 0.8, "activation": "relu"},
                {"name": "up", "layer": "resize", "size": 33, "coordinates": "align_corners"},
                {"name": "join", "layer": "concat", "inputs": ["up", "add"]},
                {"name": "g", "layer": "conv2d", "filters": 24, "bias": False},
                {"name": "g/BatchNorm", "layer": "batch_norm", "decay": 0.8, "activation": "relu"},
                {"name": "logits", "layer": "conv2d", "filters": 5, "kernel": 1},
            ]
        },
        "input": {"preprocessing": "deeplab", "size": 65, "min_scale": 1, "max_scale": 1},
        "loss": {"label_weights": [0.25, 1, 1, 1, 1]},
        "eval": {"save_raw": True},
    },
    # Pools between layers, a product, and residuals added after batch norm.
    "layers": {
        "task": "classification",
        "model": {
            "layers": [
                {
                    "name": "a",
                    "layer": "conv2d",
                    "filters": 16,
                    "kernel": 5,
                    "stride": 2,
                    "bias": False,
                },
                {"name": "a/BatchNorm", "layer": "batch_norm", "decay": 0.8, "activation": "relu"},
                {"name": "b", "layer": "conv2d", "filters": 16, "bias": False},
                {"name": "b/BatchNorm", "layer": "batch_norm", "decay": 0.8, "activation": "relu"},
                {"name": "c", "layer": "conv2d", "filters": 16, "bias": False},
                {
                    "name": "c/BatchNorm",
                    "layer": "batch_norm",
                    "decay": 0.8,
                    "activation": "relu",
                    "inputs": ["c", "a/BatchNorm"],
                },
                {"name": "pool", "layer": "max_pool", "kernel": 2, "stride": 2},
                {"name": "d", "layer": "conv2d", "filters": 32, "stride": 2, "bias": False},
                {"name": "d/BatchNorm", "layer": "batch_norm", "decay": 0.8, "activation": "relu6"},
                {"name": "pool2", "layer": "max_pool", "kernel": 8, "stride": 8},
                {"name": "flat", "layer": "flatten"},
                {"name": "logits", "layer": "fully_connected", "units": 4},
            ]
        },
        "input": {"preprocessing": "cifarnet", "size": 64},
    },
}
QUANTISED = ["model.quantize_delay=0", "run.folder=quantised"]
# Largest share of pixels whose class differs; largest difference of probabilities.
DIFFERENT, NEAR = 0.02, 0.1
LOST = 0.03


def session(path, optimized):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = optimized
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def operators(path):
    import onnx
    counts = {}
    for node in onnx.load(path).graph.node:
        counts[node.op_type] = counts.get(node.op_type, 0) + 1
    return counts


def score(config, options, metric):
    return json.loads(pumice("eval", config, "--json", *options).stdout)["metrics"][metric]


def check_operators(name):
    """The file must hold 8-bit weights, and onnxruntime must use integer operators where it has
    them."""
    import onnx
    model = onnx.load("net.onnx")
    onnx.checker.check_model(model, full_check=True)
    convolutions = operators("net.onnx")["Conv"]
    bytes_ = [
        t
        for t in model.graph.initializer
        if t.data_type == onnx.TensorProto.UINT8 and len(t.dims) > 1
    ]
    check(
        len(bytes_) >= convolutions,
        f"{name}: {len(bytes_)} tensors of 8 bits for {convolutions} convolutions",
    )
    counts = operators("optimized.onnx")
    integers = counts.get("QLinearConv", 0)
    check(
        integers > convolutions / 2,
        f"{name}: {integers} of {convolutions} convolutions in integers: {counts}",
    )
    return (
        f"{integers} of {convolutions} convolutions in integers, {counts.get('Conv', 0)} in floats"
    )


# ---- pictures --------------------------------------------------------------------------------


def draw(size, count):
    """Draws discs and boxes on a noisy background."""
    rng = np.random.default_rng(3)
    y, x = np.mgrid[:size, :size]
    os.makedirs("pictures", exist_ok=True)
    out = []
    for i in range(count):
        picture = rng.uniform(40, 210, 3) + rng.normal(0, 12, (size, size, 3))
        for _ in range(rng.integers(1, 4)):
            cy, cx, r = *rng.uniform(10, size - 10, 2), rng.uniform(6, 16)
            inside = ((y - cy)**2 + (x - cx)**2 < r * r if rng.random() < 0.5
                      else (abs(y - cy) < r) & (abs(x - cx) < 0.8 * r))
            picture[inside] = rng.uniform(0, 255, 3) + rng.normal(0, 6, (inside.sum(), 3))
        out.append(np.clip(picture, 0, 255).astype(np.uint8))
        write_png(f"pictures/{i:02}.png", out[-1])
    return np.stack(out)


def pixels_differ(model, pictures):
    """Returns the share of pixels whose class differs, and the number of classes seen."""
    pumice("predict", "net.json", "pictures", "--out", "out", *QUANTISED)
    want = np.stack([read_png(f"out/{i:02}_raw.png", 1)[..., 0] for i in range(len(pictures))])
    names = [o.name for o in model.get_outputs()]
    feed = model.get_inputs()[0].name
    got = np.concatenate(
        [model.run(None, {feed: p[None]})[names.index("SemanticPredictions")] for p in pictures]
    )
    return (got != want).mean(), len(np.unique(want))


def answers_differ(model, pictures):
    """Returns the largest difference of probabilities, and the number of classes seen."""
    told = json.loads(pumice("predict", "net.json", "pictures", "--json", *QUANTISED).stdout)[
        "images"
    ]
    got = model.run(None, {model.get_inputs()[0].name: pictures})[0]
    apart, seen = 0, set()
    for i, t in enumerate(sorted(told, key=lambda t: t["file"])):
        seen.add(t["label"])
        for c in t["top"]:
            apart = max(apart, abs(got[i][c["label"]] - c["probability"]))
    return apart, len(seen)


# ---- all -------------------------------------------------------------------------------------


def check_net(name, net):
    maps = net["task"] == "segmentation"
    metric = "miou" if maps else "accuracy"
    with open("net.json", "w") as f:
        json.dump({**COMMON, **net}, f)
    pumice("train", "net.json")
    pumice(
        "train",
        "net.json",
        "init.checkpoint=float",
        "run.steps=60",
        "schedule.base_lr=0.0001",
        *QUANTISED,
    )
    rounded = score("net.json", QUANTISED, metric)
    plain = score("net.json", ["run.folder=quantised"], metric)
    check(
        abs(rounded - plain) < LOST,
        f"{name}: {metric} is {plain:.3f} with floats, {rounded:.3f} rounded",
    )
    pumice("export", "net.json", "net.onnx", "export.preprocessing=fold",
           *([] if maps else ["export.output=probabilities"]), *QUANTISED)
    model = session("net.onnx", "optimized.onnx")
    told = check_operators(name)
    pictures = draw(65 if maps else 64, 12)
    off, seen = (pixels_differ if maps else answers_differ)(model, pictures)
    check(seen > 2, f"{name}: all is of two classes: nothing is tested")
    check(
        off <= (DIFFERENT if maps else NEAR), f"{name}: onnxruntime's answers differ by {off:.4f}"
    )
    what = (
        "of the pixels are of another class"
        if maps
        else "of 1 is the largest difference of probabilities"
    )
    print(
        f"{name}: {told}; {metric} {plain:.3f} with floats, {rounded:.3f} rounded; "
        f"{off:.1e} {what}",
        flush=True,
    )


def main():
    packages.find_onnx()
    global np
    import numpy as np
    for name, net in NETS.items():
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            pumice(
                "dataset",
                "make",
                "shapes",
                "data",
                "size=64",
                "train=1000",
                "validation=200",
                "test=8",
            )
            check_net(name, net)
            os.chdir("/")


main()
