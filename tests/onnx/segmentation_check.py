"""Checks that onnxruntime predicts the same as the program with exported segmentation models.

    python3 tests/onnx/segmentation_check.py PUMICE FOLDER

The program PUMICE trains a small net on drawn shapes and exports it without options, at several
scales and mirrored, with pixels as input, with sizes limited to a range, at a finer stride, for one
size only, with the original's second softmax, and with heads of instances and edges. Every file
must pass the checker of the onnx package. The pictures have several sizes. SemanticPredictions must
hold the numbers that `pumice predict` writes, except where the two best classes are almost equal.
The four outputs must agree with each other, and a picture larger than the crop must be refused. If
pictures keep their own size, a model for exactly this size must predict the same. For
a net with instances, heat maps and offsets are grouped here and must give the segments that `pumice
predict` writes. A Python without onnx and onnxruntime makes a virtual environment in FOLDER and
installs them there, once. The check exits with 77 (skipped) when the download fails."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import packages  # noqa: E402
from checks import check, fail, pumice  # noqa: E402
from pictures import read_png, write_png  # noqa: E402

CROP = (65, 49)
SIZES = [(65, 49), (64, 48), (33, 41), (17, 49), (50, 7)]
CLASSES = 5
# Largest difference of probabilities. The two programs add in different orders, and pixels are
# resized in the graph before or after the mean is subtracted.
NEAR = 1e-4
NET = {
    "task": "segmentation",
    "model": {
        "name": "deeplab_mobilenet_v3_small_seg",
        "aspp_rates": [2],
        "decoder_strides": [4],
        "aspp_filters": 32,
        "decoder_filters": 32,
        "output_stride": 16,
        "batch_norm_decay": 0.8,
        "head_batch_norm_decay": 0.8,
    },
    "data": {"folder": "data"},
    "loss": {"label_weights": [0.1, 1, 1, 1, 1]},
    "input": {"size": [65, 65], "eval_size": list(CROP), "min_scale": 1, "max_scale": 1},
    "optim": {"name": "adam"},
    "schedule": {"policy": "fixed", "base_lr": 0.003},
    "devices": ["cpu"],
    "run": {"folder": "run", "steps": 100, "batch_size": 8, "summary_every_steps": 0},
    "eval": {"save_raw": True},
}
EVAL_MODES = ["{}.scales=[0.5,1.25]", "{}.flip=true"]
RANGE = ["input.min_resize=33", "input.max_resize=49", "input.resize_factor=8"]
FINE = ["model.output_stride=8", "model.aspp_rates=[4]"]
# A second net, with instances. A low threshold and a small area keep many segments, although the
# net was trained for a few steps only.
INSTANCES = [
    "model.instance=true",
    "model.decoder_strides=[8,4]",
    "model.decoder_filters_instance=[24,8]",
    "run.folder=run_instances",
    "run.steps=60",
]
GROUPING = {"threshold": 0.01, "nms_kernel": 3, "stuff_area": 20}
# Options of `pumice export` and of `pumice predict` for each case.
CASES = {
    "plain": ([], []),
    "eval_modes": (
        [s.format("export") for s in EVAL_MODES],
        [s.format("eval") for s in EVAL_MODES],
    ),
    "mirrored": (["export.flip=true"], ["eval.flip=true"]),
    "pixels": (["export.preprocessing=fold"], []),
    "range": (RANGE, RANGE),
    "range of pixels": (
        RANGE + ["export.preprocessing=fold", "export.flip=true"],
        RANGE + ["eval.flip=true"],
    ),
    "square": (
        ["input.min_resize=40", "input.keep_aspect_ratio=false", "export.size=289"],
        ["input.min_resize=40", "input.keep_aspect_ratio=false", "input.eval_size=289"],
    ),
    "stride 8": (["export.output_stride=8"], FINE),
    "nearest": (["model.predict_upsampled=false"], ["model.predict_upsampled=false"]),
    "grey padding": (
        ["input.preprocessing=deeplab_means_grey"],
        ["input.preprocessing=deeplab_means_grey"],
    ),
}


# ---- the program ---------------------------------------------------------------------------


def predict(options):
    """Runs `pumice predict`. Returns the map of classes of each picture."""
    pumice("predict", "net.json", "pictures", "--out", "out", *options)
    return [read_png(f"out/{i}_raw.png", 1)[..., 0] for i in range(len(SIZES))]


def make():
    pumice("dataset", "make", "shapes", "data", "size=64", "train=64", "validation=8", "test=8")
    with open("net.json", "w") as f:
        json.dump(NET, f)
    pumice("train", "net.json")
    pumice("dataset", "inspect", "data", "--records", "8", "--pictures", "shapes")
    rng = np.random.default_rng(3)
    os.mkdir("pictures")
    pictures = []
    for i, (height, width) in enumerate(SIZES):
        wave = np.add.outer(
            np.arange(height) * rng.uniform(0.1, 0.4), np.arange(width) * rng.uniform(0.1, 0.4)
        )
        colour = (
            128
            + 100 * np.sin(wave[..., None] + rng.uniform(0, 6, 3))
            + rng.normal(0, 12, (height, width, 3))
        )
        pictures.append(np.clip(colour, 0, 255).astype(np.uint8))
        write_png(f"pictures/{i}.png", pictures[-1])
    return pictures


# ---- onnxruntime ---------------------------------------------------------------------------


def session(path):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run(model, pixels):
    """Runs the model on one picture, prepared as its metadata require. Returns name -> output."""
    note = json.loads(model.get_modelmeta().custom_metadata_map["preprocessing"])
    feed = model.get_inputs()[0]
    x = pixels[None]
    if feed.type == "tensor(uint8)":
        check(feed.name == "ImageTensor" and note["inside"], "pixels have another name")
    else:
        x = (x.astype(np.float32) - np.float32(note["mean"])) / np.float32(note["std"])
        x = x.transpose(0, 3, 1, 2).copy()
    names = [o.name for o in model.get_outputs()]
    return dict(zip(names, model.run(None, {feed.name: x})))


def same_classes(name, got, want, probabilities):
    """Classes must be equal, except where the two best probabilities are almost equal."""
    check(got.shape == want.shape, f"{name}: {got.shape} classes, {want.shape} predicted")
    best = np.sort(probabilities, axis=0)
    wrong = (got != want) & (best[-1] - best[-2] > NEAR)
    check(not wrong.any(), f"{name}: {wrong.sum()} of {wrong.size} pixels are of another class")
    return (got != want).sum()


def fits(name, out, height, width, crop, resized):
    """Checks the shapes and the agreement of a picture's four outputs."""
    raw, whole = out["RawSemanticPredictions"], out["RawSemanticProbabilities"]
    classes, p = out["SemanticPredictions"], out["SemanticProbabilities"]
    check(
        raw.shape == (1, *crop) and raw.dtype == np.float32,
        f"{name}: raw predictions are {raw.shape}",
    )
    check(whole.shape == (1, CLASSES, *crop), f"{name}: raw probabilities are {whole.shape}")
    check(classes.shape == (1, height, width) and classes.dtype == np.int32,
          f"{name}: predictions are {classes.shape}")
    check(p.shape == (1, CLASSES, height, width), f"{name}: probabilities are {p.shape}")
    check(np.abs(whole.sum(1) - 1).max() < 1e-5, f"{name}: probabilities do not add up to 1")
    if not resized:
        check(
            (raw[:, :height, :width] == classes).all(),
            f"{name}: predictions are not cut out of the raw",
        )
        check(
            (whole[:, :, :height, :width] == p).all(),
            f"{name}: probabilities are not cut out of the raw",
        )


def check_case(name, pictures):
    import onnx
    export, options = CASES[name]
    pumice("export", "net.json", "net.onnx", *export)
    onnx.checker.check_model("net.onnx", full_check=True)
    model = session("net.onnx")
    crop = (289, 289) if name == "square" else CROP
    seen, near = set(), 0
    for pixels, want in zip(pictures, predict(options)):
        height, width = pixels.shape[:2]
        out = run(model, pixels)
        fits(name, out, height, width, crop, "input.min_resize" in " ".join(export))
        seen |= set(np.unique(want))
        near += same_classes(
            name, out["SemanticPredictions"][0], want, out["SemanticProbabilities"][0]
        )
    check(len(seen) > 1, f"{name}: every pixel is of one class: nothing is tested")
    print(
        f"{name}: {len(pictures)} pictures, {len(seen)} classes, {near} pixels undecided",
        flush=True,
    )
    return model


def check_limits(pictures):
    """Checks larger pictures, a batch, one size only, a second softmax, and an older input name."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state
    model = check_case("plain", pictures)
    for height, width in ((66, 49), (65, 50), (130, 20)):
        try:
            run(model, np.zeros((height, width, 3), np.uint8))
        except (state.Fail, state.InvalidArgument, state.RuntimeException):
            continue
        fail(f"a picture of {height} x {width} is taken")
    x = np.random.default_rng(1).uniform(-1, 1, (3, 3, 40, 30)).astype(np.float32)
    alone = [model.run(None, {"images": x[i:i + 1]})[0] for i in range(3)]
    check(
        np.abs(np.concatenate(alone) - model.run(None, {"images": x})[0]).max() < 1e-5,
        "a batch differs",
    )
    pumice("export", "net.json", "net.onnx", "export.pad=false")
    whole = session("net.onnx")
    check([o.name for o in whole.get_outputs()] == ["SemanticProbabilities", "SemanticPredictions"],
          "without padding there are two outputs")
    check(whole.get_inputs()[0].shape[1:] == [3, *CROP], "without padding there is one size")
    once, twice = [], []
    for options, into in (([], once), (["export.prob_double_softmax=true"], twice)):
        pumice("export", "net.json", "net.onnx", "export.flip=true", *options)
        into.append(run(session("net.onnx"), pictures[1]))
    p, again = once[0]["SemanticProbabilities"], twice[0]["SemanticProbabilities"]
    want = np.exp(p) / np.exp(p).sum(1, keepdims=True)
    check(np.abs(again - want).max() < 1e-6, "prob_double_softmax is no second softmax")
    check(
        (once[0]["SemanticPredictions"] == twice[0]["SemanticPredictions"]).all(),
        "and changes classes",
    )


def check_own_sizes(pictures):
    """Checks eval.resize=false: predict keeps each picture's size, and a model for exactly this
    size, which does not pad, gives the same classes."""
    predicted = predict(["eval.resize=false"])
    exact = [i for i, size in enumerate(SIZES) if all(side % 16 == 1 for side in size)]
    check(len(exact) == 2, "two pictures have a size that nothing pads")
    for i in exact:
        size = f"export.size=[{SIZES[i][0]},{SIZES[i][1]}]"
        pumice("export", "net.json", "net.onnx", "eval.resize=false", size)
        model = session("net.onnx")
        check(model.get_inputs()[0].shape[1:] == [3, *SIZES[i]], "own sizes: there is one size")
        out = run(model, pictures[i])
        near = same_classes(
            "own sizes", out["SemanticPredictions"][0], predicted[i],
            out["SemanticProbabilities"][0],
        )
        print(f"own sizes: {SIZES[i]}, {near} pixels undecided", flush=True)


def check_heads(pictures):
    """Checks the outputs for centres, offsets and edges. Offsets are in pixels of the input
    picture."""
    import onnx
    heads = ["model.instance=true", "model.edge_classes=2", "run.folder=heads"]
    pumice("train", "net.json", "run.steps=3", *heads)
    pumice("export", "net.json", "net.onnx", "export.flip=true", *heads, *RANGE)
    onnx.checker.check_model("net.onnx", full_check=True)
    model = session("net.onnx")
    for pixels in pictures:
        height, width = pixels.shape[:2]
        out = run(model, pixels)
        fits("heads", out, height, width, CROP, True)
        offset, raw = out["InstanceOffsetPredictions"], out["RawInstanceOffsetPredictions"]
        check(
            offset.shape == (1, 2, height, width) and raw.shape == (1, 2, *CROP),
            "offsets have another size",
        )
        check(
            out["InstanceCenterPredictions"].shape == (1, 1, height, width),
            "centres have another size",
        )
        check(out["EdgePredictions"].shape == (1, height, width), "edges have another size")
        low = min(33 / min(height, width), 49 / max(height, width)) * np.array([height, width])
        resized = np.floor(low) + (8 - (np.floor(low) - 1) % 8) % 8
        want = raw[0, :, 0, 0] * [height, width] / resized
        check(
            np.abs(offset[0, :, 0, 0] - want).max() < 1e-4 * np.abs(want).max(),
            "offsets are not scaled",
        )
    print("heads of instances and edges", flush=True)


# ---- instances -----------------------------------------------------------------------------


def grouped(classes, heat, offset, things):
    """Groups pixels by the published rules. Returns segment numbers, class * 1000 + instance;
    255000 means no segment."""
    height, width = classes.shape
    kept = np.where(heat > np.float32(GROUPING["threshold"]), heat, np.float32(-1))
    padded = np.pad(kept, 1, constant_values=-np.inf)
    around = np.max([padded[y:y + height, x:x + width] for y in range(3) for x in range(3)], axis=0)
    scores = kept[(kept == around) & (kept > 0)]
    least = np.sort(scores)[-200] if len(scores) >= 200 else 0
    centers = np.argwhere((kept == around) & (kept > least))
    number = np.zeros((height, width), int)
    if len(centers):
        y, x = np.mgrid[:height, :width]
        distance = (y + offset[0] - centers[:, 0, None, None]) ** 2 + (
            x + offset[1] - centers[:, 1, None, None]
        ) ** 2
        number = np.where(np.isin(classes, things), 1 + np.argmin(distance, axis=0), 0)
    out, count = np.full((height, width), 255000), {}
    for k in range(1, len(centers) + 1):
        if (number == k).any():
            winner = int(np.argmax(np.bincount(classes[number == k])))
            count[winner] = count.get(winner, 0) + 1
            out[number == k] = winner * 1000 + count[winner]
    for c in range(CLASSES):
        if c not in things and (classes == c).sum() >= GROUPING["stuff_area"]:
            out[classes == c] = c * 1000
    return out, len(centers)


def check_instances(pictures):
    import onnx
    options = INSTANCES + ["eval.panoptic=" + json.dumps(GROUPING)]
    pumice("train", "net.json", *options)
    found = 0
    for export, look in (([], []), (["export.flip=true"], ["eval.flip=true"])):
        pumice("export", "net.json", "net.onnx", *options, *export)
        onnx.checker.check_model("net.onnx", full_check=True)
        model = session("net.onnx")
        pumice("predict", "net.json", "pictures", "--out", "out", *options, *look)
        for i, pixels in enumerate(pictures):
            height, width = pixels.shape[:2]
            out = run(model, pixels)
            heat, offset = out["InstanceCenterPredictions"], out["InstanceOffsetPredictions"]
            check(heat.shape == (1, 1, height, width) and offset.shape == (1, 2, height, width),
                  f"instances: heat is {heat.shape}, offsets are {offset.shape}")
            want, centers = grouped(
                out["SemanticPredictions"][0], heat[0, 0], offset[0], [1, 2, 3, 4]
            )
            rgb = read_png(f"out/{i}_panoptic.png", 3)
            got = rgb[..., 0] + 256 * rgb[..., 1] + 65536 * rgb[..., 2]
            check(
                (got != want).mean() < 0.01,
                f"instances: {(got != want).sum()} of {got.size} pixels of "
                f"{i}.png are of another segment",
            )
            found += len(np.unique(want[want % 1000 > 0]))
    check(found > 10, f"instances: only {found} in all pictures: nothing is tested")
    print(f"instances: {found} in {len(pictures)} pictures, as they are and mirrored", flush=True)


def main():
    packages.find_onnx()
    global np
    import numpy as np
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pictures = make()
        check_limits(pictures)
        check_own_sizes(pictures)
        check_heads(pictures)
        check_instances(pictures)
        for name in CASES:
            if name != "plain":
                check_case(name, pictures)
        os.chdir("/")


main()
