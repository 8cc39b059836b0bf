"""Runs one side of the side-by-side benchmark: Pumice, PyTorch or JAX, each in its own process. `a`
are the arguments of side_by_side.py."""
import json
import os
import statistics
import subprocess

from bench_rows import ROWS

HERE = os.path.dirname(os.path.abspath(__file__))

# Kernels of a profile, by the start of their names. The first line that fits counts.
PARTS = [
    ("convolutions", ("conv2d_", "depthwise_", "matmul", "transpose_weights")),
    ("batch norm", ("batch_norm_",)),
    ("recurrent layers, attention", ("lstm_", "attention_")),
    ("optimizer", ("optimizer_", "gradient_", "averages_")),
    ("pools, resizing", ("max_pool", "avg_pool", "global_pool", "resize")),
    ("activations, sums, others", ("",)),
]


def run(command, threads, limit=None, **environment):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), **environment)
    done = subprocess.run(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=limit
    )
    if done.returncode != 0:
        raise RuntimeError(
            f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-500:]}"
        )
    return json.loads(done.stdout)


def config_of(name, device, folder, beside=False):
    """Writes the config of a row, or of its other side, and returns its path."""
    row = ROWS[name]
    path = os.path.join(folder, name + (".beside.json" if beside else ".json"))
    config = {
        "model": {"name": row.net, "num_classes": row.classes},
        "input": {"size": row.sides(), "channels": row.channels},
        "optim": {"name": "momentum", "momentum": 0.9, "weight_decay": row.weight_decay},
        "devices": [device],
        "schedule": {"policy": "fixed", "base_lr": 0.01},
        "run": {"batch_size": row.batch},
        "eval": {"batch_size": row.batch},
    }
    for section, options in [*row.config.items(), *(row.beside.items() if beside else ())]:
        config[section] = {**config[section], **options} if section in config else options
    with open(path, "w") as f:
        json.dump(config, f)
    return path


def layers_of(a, name, folder):
    """Writes the list of the net's layers. Returns its path and the number of parameters."""
    command = [a.pumice, "config", "show", config_of(name, a.device, folder), "--layers", "--json"]
    text = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    path = os.path.join(folder, name + ".layers")
    with open(path, "w") as f:
        f.write(text)
    return path, json.loads(text)["trainable_parameters"]


def pumice(a, name, folder, seconds, beside=False):
    """Returns the median and the smallest time of a step in ms, and the report. beside: of the
    row's other side."""
    mode = "--synthetic" if ROWS[name].mode == "train" else "--predict"
    config = config_of(name, a.device, folder, beside)
    r = run([a.pumice, "bench", config, mode, "--json", "--steps", "2000", "--seconds",
             str(seconds)], a.threads)
    if not r.get("finite", True):
        raise RuntimeError(f"pumice, {name}: gradients are not finite")
    return r["ms_per_step"]["median"], r["ms_per_step"]["min"], r


def torch(a, name, way, folder, seconds, batch=0, limit=None):
    """batch: instead of the row's, unless 0. limit: seconds after which the program is ended."""
    layout, optimizer, wait, mode = way
    environment = {"OMP_WAIT_POLICY": "passive"} if wait == "sleep" else {}
    r = run([a.torch_python, os.path.join(HERE, "torch_step.py"), name, layers_of(a, name,
             folder)[0], "--device", a.torch_device, "--threads", str(a.threads), "--layout",
             layout, "--optimizer", optimizer, "--mode", mode, "--steps", "2000", "--seconds",
             str(seconds), "--batch", str(batch)], a.threads, limit, **environment)
    return statistics.median(r["ms"]), min(r["ms"]), r


def jax(a, name, folder, seconds):
    r = run([a.jax_python, os.path.join(HERE, "jax_step.py"), name, layers_of(a, name, folder)[0],
             "--threads", str(a.threads), "--steps", "2000", "--seconds", str(seconds)], a.threads)
    return statistics.median(r["ms"]), min(r["ms"]), r


def shares(a, name, folder):
    """Returns the fastest times of a step's parts in ms, by `pumice profile`: every call alone, in
    the order of the step. The first part, the convolutions, is the floor of the step."""
    r = run([a.pumice, "profile", config_of(name, a.device, folder), "--synthetic", "--json",
             "--steps", "10", "--warmup", "2"], a.threads)
    times = dict.fromkeys((part for part, _ in PARTS), 0)
    for call in r["devices"][0]["calls"]:
        part = next(p for p, starts in PARTS if call["kernel"].startswith(starts))
        times[part] += call["ms"]["min"]
    return times
