"""Checks that exported ONNX files are valid and that onnxruntime computes the same outputs as
Pumice.

    python3 tests/onnx/export_check.py EXPORT_CASES FOLDER [NET ... | layers]

The program EXPORT_CASES (export_cases.c) exports every named net and every small case of the
layers' tests with random values, and writes inputs and Pumice's outputs. Each file must pass the
checker of the onnx package with strict shape inference. For the same input, onnxruntime's output
may differ by at most BOUND. A Python without onnx and onnxruntime makes a virtual environment in
FOLDER and installs them there, once. The check exits with 77 (skipped) when the download fails."""
import glob
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import packages  # noqa: E402
from checks import fail, pumice  # noqa: E402

# Relative to the largest output. Both sides add 32-bit floats, in different orders.
BOUND = 1e-4
# Some nets exported with options, in addition to every net without options.
MORE = [
    ("resnet_v1_50", "fold"), ("mobilenet_v2", "fold"), ("mobilenet_v3_small", "fold"),
    ("inception_v3", "fold"), ("nasnet_cifar", "fold"), ("mobilenet_v2", "beside"),
    ("lenet", "probabilities"), ("resnet_v1_50", "pixels"), ("mobilenet_v1_025", "pixels"),
    ("resnet_v2_50", "size"), ("mobilenet_v1_025", "size"), ("mobilenet_v2_035", "size"),
    ("mobilenet_v3_small", "size"), ("inception_v3", "size"), ("vgg_a", "size"),
    ("deeplab_mobilenet_v3_small_seg", "fold"), ("deeplab_mobilenet_v3_small_seg", "probabilities"),
]


# ---- one case ------------------------------------------------------------------------------


def as_graph(x):
    """Images in the layout of the graph, channels before rows and columns."""
    return x.transpose(0, 3, 1, 2).copy() if x.ndim == 4 and x.dtype != "uint8" else x


def feeds_of(case):
    import numpy as np
    return {i["name"]: as_graph(np.fromfile(i["file"], i["type"]).reshape(i["shape"]))
            for i in case["inputs"]}


def session(path):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def distance(got, want, name):
    """The largest difference divided by the largest value."""
    import numpy as np
    if got.shape != want.shape:
        fail(f"{name}: onnxruntime's output has shape {got.shape}, ours {want.shape}")
    if not np.isfinite(got).all() or not np.isfinite(want).all():
        fail(f"{name}: the output is not finite")
    most = np.abs(want).max()
    return np.abs(got - want).max() / most if most > 0 else np.abs(got).max()


def as_rows(y):
    """A row for each picture with channels last, as in Pumice."""
    return (y.transpose(0, 2, 3, 1) if y.ndim == 4 else y).reshape(len(y) if y.ndim else 1, -1)


def check_case(case):
    """Runs a case and returns the distance of the whole batch."""
    import numpy as np
    import onnx
    name = case["name"]
    onnx.checker.check_model(case["onnx"], full_check=True)
    feeds = feeds_of(case)
    want = np.fromfile(case["expected"], case["type"])
    want = want.reshape(case["shape"][0] if case["shape"] else 1, -1)
    run = session(case["onnx"])
    got = as_rows(run.run(None, feeds)[0])
    if got.dtype != want.dtype:
        fail(f"{name}: the output is {got.dtype}, ours {want.dtype}")
    off = distance(got, want, name)
    if not off <= BOUND:
        fail(f"{name}: differs by {off:.2e} of the largest output, allowed is {BOUND:.0e}")
    return run, feeds, got, off


def check_batches(name, run, feeds, got):
    """A batch of another size must give the same outputs."""
    import numpy as np
    three = {k: np.concatenate([x[1:], x]) for k, x in feeds.items()}
    off = distance(as_rows(run.run(None, three)[0]), np.concatenate([got[1:], got]), name)
    if not off <= 1e-5:
        fail(f"{name}: in a batch of three an answer differs by {off:.2e}")


def cases_of(*arguments):
    return [json.loads(line) for line in pumice(*arguments).stdout.splitlines()]


# ---- all -----------------------------------------------------------------------------------


def check_net(net, options):
    import numpy as np
    with tempfile.TemporaryDirectory() as folder:
        case, = cases_of("net", folder, net, *options)
        name = case["name"] = " ".join([net] + options)
        run, feeds, got, off = check_case(case)
        check_batches(name, run, feeds, got)
        if "beside" in options and not glob.glob(case["onnx"] + "-*.data"):
            fail(f"{name}: there is no {case['onnx']}-DIGEST.data")
        apart = np.abs(got[0] - got[1]).max() / np.abs(got).max()
        if not apart > 100 * BOUND:
            fail(f"{name}: answers for two pictures differ by {apart:.1e} only: nothing is tested")
    print(f"{name}: {off:.1e} of the largest logit; two pictures differ by {apart:.1e}", flush=True)


def check_layers():
    worst, count = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for case in cases_of("layers", folder):
            worst = max(worst, check_case(case)[3])
            count += 1
    print(f"{count} cases of layers: at most {worst:.1e} of the largest output", flush=True)


def main():
    wanted = sys.argv[3:]
    packages.find_onnx()
    if not wanted or "layers" in wanted:
        check_layers()
    for net in pumice("nets").stdout.split():
        if not wanted or net in wanted:
            check_net(net, [])
    for net, option in MORE:
        if not wanted or net in wanted:
            check_net(net, [option])


main()
