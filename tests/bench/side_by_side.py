"""Training steps and predictions of the same nets in Pumice and in PyTorch, alternating on one
machine.

    ./dev bench [ROW ...] [--device NAME] [--rounds N] [--seconds S] [--threads N] [--out FILE]

bench_rows.py lists the rows. In each round Pumice runs, then PyTorch, each in its own process, with
the same layers, batch, optimizer, loss and number of threads, on one random batch in memory, in
single precision. Detectors also have the same anchors, share of matched anchors, mining of hard
examples and suppression. Both sides count their trained parameters; the counts must be equal.
Before the first round PyTorch is
measured with each of its settings, and the fastest is used: NCHW or channels_last, the default
optimizer or the fused one if it exists, and on the CPU threads that spin or sleep while they wait.
A round's ratio is PyTorch's median step over Pumice's: above 1, Pumice is faster. Other work on the
machine increases the distance between the smallest and the largest ratio. It has the least effect
on the ratio of the fastest steps of all rounds, which is printed too."""
import argparse
import datetime
import itertools
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile

from bench_rows import ROWS

HERE = os.path.dirname(os.path.abspath(__file__))


def arguments():
    p = argparse.ArgumentParser(prog="./dev bench", description=__doc__.split("\n")[0])
    p.add_argument(
        "rows", nargs="*", metavar="ROW", help="of " + ", ".join(ROWS) + "; all by default"
    )
    p.add_argument("--device", default="cpu", help="as in a config: cpu (default), vulkan:0, ...")
    p.add_argument("--torch-device", choices=["cpu", "cuda"],
                   help="cuda by default where PyTorch has it and --device is not cpu")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=10, help="of each side in each round")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--pumice", default=os.path.join(HERE, "../../build/release/pumice"))
    p.add_argument("--torch-python", default=os.environ.get("TORCH_PYTHON", "/usr/bin/python3"))
    p.add_argument("--out", help="CSV; default tests/bench/results/pytorch-DEVICE.csv")
    a = p.parse_args()
    for name in a.rows:
        if name not in ROWS:
            p.error(
                f"no row '{name}'; there are {', '.join(ROWS)} "
                "(and ./dev bench kernels, layers, compile)"
            )
    if a.rounds < 1 or a.threads < 1:
        p.error("--rounds and --threads must be at least 1")
    return a


def run(command, threads, **environment):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), **environment)
    done = subprocess.run(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(
            f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-500:]}"
        )
    return json.loads(done.stdout)


def config_of(name, device, folder):
    row = ROWS[name]
    path = os.path.join(folder, name + ".json")
    config = {
        "model": {"name": row.net, "num_classes": row.classes},
        "input": {"size": row.size, "channels": row.channels},
        "optim": {"name": "momentum", "momentum": 0.9},
        "devices": [device],
        "schedule": {"policy": "fixed", "base_lr": 0.01},
        "run": {"batch_size": row.batch},
        "eval": {"batch_size": row.batch},
    }
    for section, options in row.config.items():
        config[section] = {**config[section], **options} if section in config else options
    with open(path, "w") as f:
        json.dump(config, f)
    return path


def pumice(a, name, folder, seconds):
    mode = "--synthetic" if ROWS[name].mode == "train" else "--predict"
    config = config_of(name, a.device, folder)
    r = run([a.pumice, "bench", config, mode, "--json", "--steps", "2000", "--seconds",
             str(seconds)], a.threads)
    if not r.get("finite", True):
        raise RuntimeError(f"pumice, {name}: gradients are not finite")
    return r["ms_per_step"]["median"], r["ms_per_step"]["min"], r


def torch(a, name, way, seconds):
    layout, optimizer, wait = way
    environment = {"OMP_WAIT_POLICY": "passive"} if wait == "sleep" else {}
    r = run([a.torch_python, os.path.join(HERE, "torch_step.py"), name, "--device", a.torch_device,
             "--threads", str(a.threads), "--layout", layout, "--optimizer", optimizer, "--steps",
             "2000", "--seconds", str(seconds)], a.threads, **environment)
    return statistics.median(r["ms"]), min(r["ms"]), r


def best_way(a, name):
    """Returns the fastest of PyTorch's settings. Settings that this version lacks are skipped."""
    waits = ["spin", "sleep"] if a.torch_device == "cpu" else ["spin"]
    optimizers = ["default", "fused"] if ROWS[name].mode == "train" else ["default"]
    times, failure = {}, None
    for way in itertools.product(["nchw", "nhwc"], optimizers, waits):
        try:
            times[way] = torch(a, name, way, min(3, a.seconds))[0]
        except RuntimeError as e:
            failure = e
            continue
        print(f"    PyTorch {' '.join(way):18} {times[way]:9.2f} ms", flush=True)
    if not times:
        raise failure
    return min(times, key=times.get)


def parameters(a, name, folder):
    config = config_of(name, a.device, folder)
    text = subprocess.run([a.pumice, "config", "show", config, "--layers", "--json"],
                          stdout=subprocess.PIPE, check=True, text=True).stdout
    return json.loads(text)["trainable_parameters"]


def rate(name, ms):
    return f"{1e3 * ROWS[name].batch / ms:.2f} images/s"


def compare(a, name, folder):
    print(f"{name}, batch {ROWS[name].batch}", flush=True)
    way, rounds = best_way(a, name), []
    for i in range(a.rounds):
        ours, our_best, report = pumice(a, name, folder, a.seconds)
        theirs, their_best, other = torch(a, name, way, a.seconds)
        rounds.append((ours, theirs, theirs / ours, our_best, their_best))
        print(
            f"    round {i + 1}: Pumice {ours:.2f} ms, {rate(name, ours)}, "
            f"PyTorch {theirs:.2f} ms, {rate(name, theirs)}, ratio {theirs / ours:.3f}",
            flush=True,
        )
    if parameters(a, name, folder) != other["parameters"]:
        raise RuntimeError(f"{name}: Pumice trains {parameters(a, name, folder)} parameters, "
                           f"PyTorch {other['parameters']}: not the same net")
    return {"name": name, "way": way, "rounds": rounds, "pumice": report, "torch": other}


def machine_name():
    try:
        with open("/proc/cpuinfo") as f:
            return re.search(r"model name\s*:\s*(.*)", f.read()).group(1).strip()
    except (OSError, AttributeError):
        return platform.machine()


def write_csv(a, results):
    device = results[0]["pumice"]["devices"][0]
    name = f"{device['name']} {a.threads} threads" if a.device == "cpu" else device["name"]
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    path = a.out or os.path.join(HERE, "results", f"pytorch-{slug}.csv")
    with open(path, "w") as f:
        f.write(f"# ./dev bench {' '.join(sys.argv[1:])}\n".replace(" \n", "\n"))
        f.write(f"# {datetime.date.today()}, {machine_name()}, {a.threads} threads\n")
        f.write(
            f"# Pumice {results[0]['pumice']['version']} on {device['name']}: {device['driver']}\n"
        )
        f.write(
            f"# {results[0]['torch']['version']} on {results[0]['torch']['device']}, "
            "single precision, TF32 off, eager\n"
        )
        f.write("# ms: median step; ratio: PyTorch's ms over Pumice's, above 1 Pumice is faster\n")
        f.write(
            "# best: the fastest step; in the rows min, median and max each column for itself\n"
        )
        f.write(
            "row,batch,pytorch_way,round,pumice_ms,pytorch_ms,ratio,"
            "pumice_best_ms,pytorch_best_ms\n"
        )
        for r in results:
            head = f"{r['name']},{ROWS[r['name']].batch},{' '.join(r['way'])}"
            for i, figures in enumerate(r["rounds"], 1):
                f.write(f"{head},{i}," + ",".join(f"{v:.3f}" for v in figures) + "\n")
            for what, of in (("min", min), ("median", statistics.median), ("max", max)):
                f.write(
                    f"{head},{what}," + ",".join(f"{of(c):.3f}" for c in zip(*r["rounds"])) + "\n"
                )
    return path


def summary(results):
    print(
        f"\n{'row':20} {'batch':>5} {'Pumice ms':>10} {'PyTorch ms':>10}   "
        "ratio: median (min to max)"
    )
    for r in results:
        ours, theirs, ratios, our_best, their_best = zip(*r["rounds"])
        print(
            f"{r['name']:20} {ROWS[r['name']].batch:5} {statistics.median(ours):10.2f} "
            f"{statistics.median(theirs):10.2f}   {statistics.median(ratios):.3f} "
            f"({min(ratios):.3f} to {max(ratios):.3f}), "
            f"of the fastest steps {min(their_best) / min(our_best):.3f}; "
            f"PyTorch {' '.join(r['way'])}"
        )
    print("A ratio above 1: Pumice is faster.")


def torch_version(a):
    """Returns PyTorch's version and whether it has CUDA. Ends the program if a module is missing:
    detectors also need torchvision."""
    detectors = any(ROWS[name].module.startswith("bench_detectors") for name in a.rows or ROWS)
    check = f"import torch{', torchvision' if detectors else ''}"
    check += "; print(torch.__version__, torch.cuda.is_available())"
    try:
        found = subprocess.run([a.torch_python, "-c", check], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    except OSError as e:
        sys.exit(f"bench: {a.torch_python}: {e.strerror}")
    if found.returncode != 0:
        what = "PyTorch or torchvision" if detectors else "PyTorch"
        sys.exit(f"bench: {a.torch_python} has no {what}; install python3-torch and "
                 "python3-torchvision, or set TORCH_PYTHON to a Python that has them "
                 f"({found.stderr.strip().splitlines()[-1]})")
    return found.stdout.split()


def main():
    a = arguments()
    version, cuda = torch_version(a)
    if not a.torch_device:
        a.torch_device = "cuda" if cuda == "True" and a.device != "cpu" else "cpu"
    print(f"Pumice on {a.device} and PyTorch {version} on {a.torch_device}, {a.threads} threads, "
          f"{a.rounds} rounds", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        results = [compare(a, name, folder) for name in a.rows or ROWS]
    summary(results)
    print(f"written: {os.path.relpath(write_csv(a, results))}")


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as e:
        sys.exit(f"bench: {e}")
