"""Checks that TensorBoard reads the event files of a training run.

    python3 tests/report/tensorboard_check.py PUMICE FOLDER

Trains small nets with the program PUMICE. TensorBoard's own reader and a running server must agree
with metrics.jsonl, with the checkpoint's variables and with the pictures of the data. A Python
without tensorboard makes a virtual environment in FOLDER and installs it there, once. The check
exits with 77 (skipped) when the download fails."""
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import packages  # noqa: E402
from checks import check, fail, pumice  # noqa: E402

FLOAT_STEPS = 4e-7  # TensorBoard's scalars are 32-bit floats

NET = {
    "model": {"layers": [
        {"name": "conv1", "layer": "conv2d", "filters": 8, "stride": 2, "bias": False},
        {"name": "conv1/BatchNorm", "layer": "batch_norm", "activation": "relu"},
        {"name": "pool", "layer": "max_pool", "kernel": 2, "stride": 2},
        {"name": "flatten", "layer": "flatten"},
        {"name": "logits", "layer": "fully_connected", "units": 4}]},
    "input": {"preprocessing": "lenet", "size": 32},
    "optim": {"name": "momentum", "weight_decay": 1e-4},
    "schedule": {"policy": "cosine", "base_lr": 0.01},
    "devices": ["cpu"],
    "run": {"steps": 40, "batch_size": 8, "log_every_steps": 10, "save_every_steps": 20, "keep": 9,
            "summary_every_steps": 20, "summary_images": 2, "summary_originals": True,
            "summary_gradients": True, "summary_activations": 2},
    "eval": {"every_steps": 20, "batch_size": 10},
}


# ---- TensorBoard ---------------------------------------------------------------------------


def read(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    a = EventAccumulator(folder, size_guidance={"scalars": 0, "histograms": 0, "images": 0})
    a.Reload()
    return a


class Server:
    """A tensorboard process that serves a folder."""

    def __init__(self, folder, fast):
        program = os.path.join(os.path.dirname(sys.executable), "tensorboard")
        command = (
            [program] if os.path.exists(program) else [sys.executable, "-m", "tensorboard.main"]
        )
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log")
        self.process = subprocess.Popen(
            command
            + ["--logdir", folder, "--port", "0", "--load_fast", fast, "--reload_interval", "1"],
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )
        self.address = self.wait(self.find_address, "starts")

    def text(self):
        with open(self.log.name) as f:
            return f.read()

    def find_address(self):
        found = re.search(r"http://(\S+?):(\d+)/", self.text())
        return found and f"http://localhost:{found.group(2)}"

    def wait(self, ask, what):
        end = time.monotonic() + 120
        while time.monotonic() < end:
            answer = ask()
            if answer:
                return answer
            if self.process.poll() is not None:
                break
            time.sleep(0.2)
        self.stop()
        fail(f"no TensorBoard that {what}:\n{self.text()}")

    def get(self, path, **query):
        if query:
            path += "?" + urllib.parse.urlencode(query)
        with urllib.request.urlopen(f"{self.address}/data/{path}", timeout=60) as f:
            return json.load(f)

    def stop(self):
        self.process.terminate()
        self.process.wait()


# ---- training ------------------------------------------------------------------------------


def train(work, name, *overrides, **settings):
    config = os.path.join(work, "net.json")
    with open(config, "w") as f:
        json.dump(NET, f)
    run = os.path.join(work, "runs", name)
    got = pumice(
        "train", config, f"data.folder={work}/data", f"run.folder={run}", *overrides, **settings
    )
    return run, got.stderr


def metrics(run, kind):
    with open(os.path.join(run, "metrics.jsonl")) as f:
        return {m["step"]: m for m in map(json.loads, f) if m["kind"] == kind}


def same(a, b):
    return abs(a - b) <= FLOAT_STEPS * max(abs(a), abs(b), 1e-30)


# ---- checks --------------------------------------------------------------------------------


def check_scalars(run, steps, lacks_some=False):
    a, want = read(run), metrics(run, "train")
    check(sorted(want) == steps, f"metrics.jsonl has steps {sorted(want)}")
    rules = {
        "total_loss": lambda m: m["loss"],
        "losses/loss": lambda m: m["loss"] - m["l2"],
        "losses/regularization_loss": lambda m: m["l2"],
        "loss_averages/total_loss": lambda m: m["loss_average"],
        "batch/fraction_of_4_full": lambda m: m["queue_fill"],
        "learning_rate": lambda m: m["lr"],
        "gradient_norm": lambda m: m["gradient_norm"],
        "global_step/sec": lambda m: 1 / m["seconds_per_step"],
        "speed/images_per_second": lambda m: m["images_per_second"],
        "speed/share_waiting_for_data": lambda m: m["wait_share"],
    }
    for tag, rule in rules.items():
        got = a.Scalars(tag)
        there = [s.step for s in got]
        check(there == steps or lacks_some and there and set(there) < set(steps),
              f"{tag}: steps {there}, not {steps}")
        for s in got:
            check(same(s.value, rule(want[s.step])),
                  f"{tag}: {s.value} at step {s.step}, metrics.jsonl says {rule(want[s.step])}")
    return a


def check_evaluation(run, steps):
    a, want = read(os.path.join(run, "eval")), metrics(run, "eval")
    check("eval/Recall_5" not in a.Tags()["scalars"], "eval/Recall_5 of fewer than six classes")
    for tag, name in {"eval/Accuracy": "accuracy", "losses/loss": "loss"}.items():
        got = a.Scalars(tag)
        check([s.step for s in got] == steps, f"eval's {tag}: steps {[s.step for s in got]}")
        for s in got:
            check(same(s.value, want[s.step][name]), f"eval's {tag}: {s.value} at step {s.step}")


def tensors(path):
    """The float arrays of a safetensors file."""
    import numpy as np
    with open(path, "rb") as f:
        data = f.read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(
            data[8 + size + t["data_offsets"][0] : 8 + size + t["data_offsets"][1]], "<f4"
        )
        for name, t in header.items()
    }


def check_histograms(a, saved):
    """saved: a run with the same results bit for bit and a checkpoint of step 20; a's run has
    none."""
    import numpy as np
    values = tensors(os.path.join(saved, "checkpoints", "step-000020.safetensors"))
    names = [n for n in values if not n.endswith("Momentum")]
    check("conv1/BatchNorm/moving_mean" in names, f"checkpoint holds {names}")
    for name in names:
        events = a.Histograms(name)
        check([e.step for e in events] == [1, 20, 40], f"{name}: steps {[e.step for e in events]}")
        h, v = events[1].histogram_value, values[name].astype(np.float64)
        check(h.num == v.size and h.min == v.min() and h.max == v.max(), f"{name}: {h} of {v.size}")
        check(np.isclose(h.sum, v.sum(), rtol=1e-9, atol=1e-12), f"{name}: sum {h.sum}")
        check(np.isclose(h.sum_squares, (v * v).sum(), rtol=1e-9), f"{name}: squares")
        before = -np.inf
        for limit, count in zip(h.bucket_limit, h.bucket):
            inside = np.count_nonzero((v >= before) & (v < limit))
            check(inside == count, f"{name}: {count} in [{before}, {limit}), should be {inside}")
            before = limit
        check(sum(h.bucket) == v.size, f"{name}: buckets hold {sum(h.bucket)}")
    check(a.Histograms("conv1/weights/gradients")[-1].histogram_value.num == 216, "gradients")
    check(
        "conv1/BatchNorm/moving_mean/gradients" not in a.Tags()["histograms"], "gradient of a mean"
    )
    relu, tag = (
        a.Histograms("activations/conv1/BatchNorm")[-1].histogram_value,
        "sparsity/conv1/BatchNorm",
    )
    check(relu.num == 2 * 16 * 16 * 8 and relu.min == 0, f"activations: {relu}")
    zeros = sum(c for limit, c in zip(relu.bucket_limit, relu.bucket) if limit == 1e-12)
    check(same(a.Scalars(tag)[-1].value, zeros / relu.num), f"{tag}: {a.Scalars(tag)[-1].value}")
    check("activations/conv1" not in a.Tags()["histograms"], "a layer before batch norm")


def picture_rule(pixels):
    import numpy as np
    x = (pixels.astype(np.float32) - 128) / 128
    if x.min() < 0:
        y = x * (np.float32(127) / max(-x.min(), x.max())) + np.float32(128)
    else:
        y = x * (np.float32(255) / x.max())
    return y.astype(np.uint8).tobytes()


def check_images(a, work):
    import io

    import numpy as np
    from PIL import Image
    folder = os.path.join(work, "pictures")
    pumice("dataset", "inspect", f"{work}/data", "--records", "48", "--pictures", folder)
    known = {
        picture_rule(np.asarray(Image.open(os.path.join(folder, f)))) for f in os.listdir(folder)
    }
    check(len(known) >= 48, f"{len(known)} pictures")
    tags = [f"images/{kind}/{i}" for kind in ("image", "original") for i in range(2)]
    check(sorted(a.Tags()["images"]) == tags, f"images {a.Tags()['images']}")

    def pictures(tag):
        events = a.Images(tag)
        check([e.step for e in events] == [1, 20, 40], f"{tag}: steps {[e.step for e in events]}")
        list = [np.asarray(Image.open(io.BytesIO(e.encoded_image_string))) for e in events]
        check(all(p.shape == (32, 32, 3) for p in list) and
              all((e.width, e.height) == (32, 32) for e in events), f"{tag}: size")
        return list

    for i in range(2):
        for seen, original in zip(pictures(f"images/image/{i}"), pictures(f"images/original/{i}")):
            check(seen.tobytes() in known, f"images/image/{i} shows none of the data's pictures")
            check(
                picture_rule(original) == seen.tobytes(), f"images/original/{i} is another picture"
            )


def check_server(work, run, fast, steps):
    """Reads runs, tags and one curve over HTTP."""
    server = Server(os.path.join(work, "runs"), fast)
    name = os.path.basename(run)
    try:
        server.wait(lambda: {name, name + "/eval"} <= set(server.get("runs")), "lists the runs")

        def curve():
            try:
                points = server.get("plugin/scalars/scalars", run=name, tag="total_loss")
            except urllib.error.HTTPError:  # not loaded yet
                return None
            return points if [p[1] for p in points] == steps else None

        points = server.wait(curve, f"shows steps {steps}")
        want = metrics(run, "train")
        for _, step, value in points:
            check(same(value, want[step]["loss"]), f"HTTP: {value} at step {step}")
        scalars = server.get("plugin/scalars/tags")
        check("losses/loss" in scalars[name] and "losses/loss" in scalars[name + "/eval"],
              f"the loss of training and evaluation is not drawn together: {scalars}")
        check(
            "conv1/weights" in server.get("plugin/histograms/tags")[name], "no histogram over HTTP"
        )
        check("images/image/0" in server.get("plugin/images/tags")[name], "no picture over HTTP")
    finally:
        server.stop()


def check_resume(work):
    """After a resume, steps beyond the checkpoint are hidden; earlier ones stay."""
    run, _ = train(work, "resumed")
    for ending in ("safetensors", "json"):
        os.remove(os.path.join(run, "checkpoints", "step-000040." + ending))
    run, _ = train(work, "resumed", "run.steps=25", "run.log_every_steps=5",
                   "run.summary_every_steps=5", 'devices=["cpu", "cpu"]')
    a = check_scalars(run, [10, 20, 25])
    check(
        [e.step for e in a.Histograms("conv1/weights")] == [1, 20, 25], "histograms of hidden steps"
    )
    check([s.step for s in a.Scalars("speed/clone_1_images_per_second")] == [25], "clones' speeds")
    check_evaluation(run, [20, 25])
    check(len([f for f in os.listdir(run) if ".tfevents." in f]) == 2, "one file for each start")
    return run


def check_watch(work, run):
    """`pumice eval --watch` writes the same metrics for step 25 as training."""
    config = os.path.join(work, "net.json")
    pumice(
        "eval", config, "--watch", f"data.folder={work}/data", f"run.folder={run}", "run.steps=25"
    )
    a, want = read(os.path.join(run, "eval_test")), metrics(run, "eval")[25]
    for tag, name in {"eval/Accuracy": "accuracy", "losses/loss": "loss"}.items():
        got = a.Scalars(tag)
        check(
            [s.step for s in got] == [25] and same(got[0].value, want[name]),
            f"--watch's {tag}: {got}",
        )


def check_faults(work):
    """When event files cannot be written, training warns and continues."""
    os.makedirs(os.path.join(work, "runs", "blocked"))
    open(os.path.join(work, "runs", "blocked", "eval"), "w").close()
    run, text = train(work, "blocked")
    check(text.count("TensorBoard lacks") == 1, f"one warning is wanted:\n{text}")
    check_scalars(run, [10, 20, 30, 40])

    # A file may grow to 200 kB; a checkpoint takes a quarter of it, the histograms more.
    limit = 200000
    run, text = train(
        work,
        "full",
        "run.steps=60",
        "run.summary_every_steps=1",
        "run.summary_images=8",
        restore_signals=False,
        preexec_fn=lambda: (
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        ),
    )
    check(text.count("TensorBoard lacks") == 1, f"one warning is wanted:\n{text}")
    a = check_scalars(run, [10, 20, 30, 40, 50, 60], lacks_some=True)
    check(
        1 < len(a.Histograms("conv1/weights")) < 60, "all histograms fitted: the limit does nothing"
    )


def main():
    packages.find("tensorboard", ["tensorboard"], ["tensorboard>=2.17"])
    with tempfile.TemporaryDirectory(prefix="pumice-tensorboard-") as work:
        pumice(
            "dataset",
            "make",
            "shapes",
            f"{work}/data",
            "size=32",
            "train=48",
            "validation=0",
            "test=20",
        )
        run, _ = train(work, "one", "run.save_every_steps=0")
        a = check_scalars(run, [10, 20, 30, 40])
        check_evaluation(run, [20, 40])
        check_images(a, work)
        resumed = check_resume(work)
        check_histograms(a, resumed)
        check_watch(work, resumed)
        check_faults(work)
        check_server(work, run, "false", [10, 20, 30, 40])
        check_server(work, resumed, "auto", [10, 20, 25])
    print(
        "tensorboard_check: scalars, histograms, pictures, a resumed run, faults, server: "
        "as they should be"
    )


if __name__ == "__main__":
    main()
