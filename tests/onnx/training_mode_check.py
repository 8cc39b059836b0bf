"""Checks exported models in training mode with onnxruntime (export.training).

    python3 tests/onnx/training_mode_check.py PUMICE FOLDER

The program PUMICE exports small nets with their initial values (export.checkpoint none). Each file
must pass the checker of the onnx package, and onnxruntime must run it. Batch norm must normalise
with the statistics of the batch: numpy computes the same logits from the file's weights. Dropout
and drop path must set the stated share of values or examples to 0, multiply the others, and draw
anew in each run. Without export.training the same net is deterministic and uses the moving
averages. A Python without onnx and onnxruntime makes a virtual environment in FOLDER and installs
them there, once. The check exits with 77 (skipped) when the download fails."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import packages  # noqa: E402
from checks import check, pumice  # noqa: E402

NORM = {"name": "norm", "layer": "batch_norm", "epsilon": 0.01}
LOGITS = {"name": "logits", "layer": "fully_connected", "units": 4}
KEEP = 0.75


def config(*layers):
    return {"model": {"layers": [*layers], "num_classes": 4},
            "input": {"size": 8, "channels": 3, "preprocessing": "inception"}, "run": {"steps": 1}}


def exported(name, net, *more):
    import onnx
    import onnxruntime as ort
    with open(name + ".json", "w") as f:
        json.dump(net, f)
    printed = pumice("export", name + ".json", name + ".onnx", "export.checkpoint=none",
                     *more).stdout
    check("from the net's initial values" in printed, printed)
    onnx.checker.check_model(name + ".onnx", full_check=True)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    model = onnx.load(name + ".onnx")
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    return ort.InferenceSession(name + ".onnx", options,
                                providers=["CPUExecutionProvider"]), weights


def answer(session, x):
    return session.run(None, {session.get_inputs()[0].name: x})[0]


def near(a, b, what):
    gap = np.abs(a - b).max() / np.abs(b).max()
    check(gap < 1e-5, f"{what}: differs by {gap:.1e}")
    print(f"{what}: within {gap:.1e}")


def batch_norm(x):
    net = config(NORM, {"name": "pool", "layer": "max_pool", "kernel": 2, "stride": 2}, LOGITS)

    def logits(y, w):
        y = y.reshape(len(y), 3, 4, 2, 4, 2).max((3, 5))  # pooled, and flattened channels last
        return y.transpose(0, 2, 3, 1).reshape(len(y), -1) @ w["logits/weights"]

    session, w = exported("norm", net, "export.training=true")
    mean = x.mean((0, 2, 3), keepdims=True)
    near(answer(session, x),
         logits((x - mean) / np.sqrt(x.var((0, 2, 3), keepdims=True) + 0.01), w),
         "batch norm of the batch")
    session, w = exported("norm", net)
    near(answer(session, x), logits(x / np.sqrt(1.01), w), "batch norm of the moving averages")
    frozen = config({**NORM, "frozen": True}, *net["model"]["layers"][1:])
    session, w = exported("frozen", frozen, "export.training=true")
    near(answer(session, x), logits(x / np.sqrt(1.01), w), "frozen batch norm")


def random_layers(x):
    for layer in ("dropout", "drop_path"):
        net = config({"name": "drop", "layer": layer, "keep": KEEP}, {**LOGITS, "bias": False})
        session, w = exported(layer, net, "export.training=true")
        ones = np.ones((4096, 3, 8, 8), np.float32)
        a, b = answer(session, ones), answer(session, ones)
        check((a != b).any(), f"{layer}: two runs are equal")
        want = ones.transpose(0, 2, 3, 1).reshape(len(ones), -1) @ w["logits/weights"]
        scale = np.abs(w["logits/weights"]).sum()
        check(np.abs(a.mean(0) - want[0]).max() < 0.02 * scale,
              f"{layer}: the mean is {a.mean(0)}, not {want[0]}")
        zeros = (np.abs(a).max(1) == 0).mean()
        expected = 1 - KEEP if layer == "drop_path" else 0
        check(abs(zeros - expected) < 0.04, f"{layer}: {zeros} of the examples are 0")
        if layer == "drop_path":
            kept = a[np.abs(a).max(1) > 0]
            near(kept, np.broadcast_to(want[0] / KEEP, kept.shape), "kept examples")
        session, w = exported(layer, net)
        near(answer(session, x), x.transpose(0, 2, 3, 1).reshape(len(x), -1) @ w["logits/weights"],
             f"{layer} in evaluation")


def named_nets():
    for name, size in (("inception_v3", 107), ("mobilenet_v2", 64), ("nasnet_cifar", 32)):
        net = {"model": {"name": name, "num_classes": 4},
               "input": {"size": size, "channels": 3}, "run": {"steps": 1}}
        if name == "nasnet_cifar":
            net["model"]["drop_path_keep"] = 0.6
        session, _ = exported(name, net, "export.training=true")
        x = np.random.default_rng(1).normal(0, 0.5, (3, 3, size, size)).astype(np.float32)
        y = answer(session, x)
        check(y.shape == (3, 4) and np.isfinite(y).all(), f"{name}: {y}")
        check((y != answer(session, x)).any(), f"{name}: dropout is not active")
        print(f"{name} in training mode runs")


def main():
    folder = tempfile.mkdtemp(prefix="pumice-training-")
    os.chdir(folder)
    x = np.random.default_rng(7).normal(1, 3, (6, 3, 8, 8)).astype(np.float32)
    batch_norm(x)
    random_layers(x)
    named_nets()
    print("training_mode_check: onnxruntime agrees")


if __name__ == "__main__":
    packages.find_onnx()
    import numpy as np
    main()
