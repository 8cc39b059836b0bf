"""Training steps and predictions of the same nets in Pumice, PyTorch and JAX, alternating on one
machine.

    ./dev bench [ROW ...] [--device NAME] [--rounds N] [--seconds S] [--threads N] [--out FILE]

bench_rows.py lists the rows. In each round Pumice runs, then PyTorch, then JAX, each in its own
process, with the same layers, batch, optimizer, loss and number of threads, on one random batch in
memory, in single precision. torch_net.py and jax_net.py make their nets of the list of Pumice's
layers. Detectors also have the same anchors, share of matched anchors, mining of hard examples and
suppression. All sides count their trained parameters; the counts must be equal. JAX takes part if
JAX_PYTHON is set, in the rows whose layers jax_net.py has. In rows with `beside`, Pumice with other
options takes PyTorch's place.
Before the first round PyTorch is measured with each of its settings, and the fastest is used: NCHW
or channels_last, the default optimizer or the fused one if it exists, on the CPU threads that spin
or sleep while they wait, and the net as it is or through torch.compile.
After the rounds the parts of Pumice's step are measured, so that the share of everything except
convolutions shows.
A round's ratio is PyTorch's median step over Pumice's: above 1, Pumice is faster. Other work on the
machine increases the distance between the smallest and the largest ratio. It has the least effect
on the ratio of the fastest steps of all rounds, which is printed too."""
import argparse
import datetime
import itertools
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile

import bench_sides as sides
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
    p.add_argument("--jax-python", default=os.environ.get("JAX_PYTHON"))
    p.add_argument("--no-compile", action="store_true", help="without torch.compile")
    p.add_argument("--out", help="CSV; default tests/bench/results/pytorch-DEVICE.csv")
    a = p.parse_args()
    for name in a.rows:
        if name not in ROWS:
            p.error(
                f"no row '{name}'; there are {', '.join(ROWS)} "
                "(and ./dev bench gpu, kernels, layers, compile)"
            )
    if a.rounds < 1 or a.threads < 1:
        p.error("--rounds and --threads must be at least 1")
    return a


def ways(a, name):
    """PyTorch's settings: memory format, optimizer, how threads wait, eager or torch.compile."""
    waits = ["spin", "sleep"] if a.torch_device == "cpu" else ["spin"]
    optimizers = ["default", "fused"] if ROWS[name].mode == "train" else ["default"]
    modes = ["eager", "compiled"] if ROWS[name].mode == "train" else ["eager"]
    if a.no_compile:
        modes = ["eager"]
    return modes, list(itertools.product(["nchw", "nhwc"], optimizers, waits))


def best_way(a, name, folder):
    """Returns the fastest of PyTorch's settings. Settings that do not work are skipped. Compiled
    nets are measured in both memory formats, with the best of the other settings."""
    modes, settings = ways(a, name)
    times, failure = {}, None
    for mode in modes:
        if mode == "compiled" and times:
            _, optimizer, wait, _ = min(times, key=times.get)
            settings = [(layout, optimizer, wait) for layout in ("nchw", "nhwc")]
        for way in settings:
            way = (*way, mode)
            text = f"    PyTorch {' '.join(way):26}"
            try:
                times[way] = sides.torch(a, name, way, folder, min(3, a.seconds))[0]
            except RuntimeError as e:
                failure = e
                print(f"{text} skipped: {str(e).splitlines()[-1][-60:]}", flush=True)
                continue
            print(f"{text} {times[way]:9.2f} ms", flush=True)
    if not times:
        raise failure
    return min(times, key=times.get)


def rate(name, ms):
    return f"{1e3 * ROWS[name].batch / ms:.2f} images/s"


def jax_takes_part(a, name):
    return a.jax_python and ROWS[name].jax and a.device == "cpu"


def compare(a, name, folder):
    row, third, rounds = ROWS[name], None, []
    print(f"{name}, batch {row.batch}", flush=True)
    way = (row.other(),) if row.beside else best_way(a, name, folder)
    count = sides.layers_of(a, name, folder)[1]
    for i in range(a.rounds):
        ours, our_best, report = sides.pumice(a, name, folder, a.seconds)
        if row.beside:
            theirs, their_best, _ = sides.pumice(a, name, folder, a.seconds, beside=True)
            other = None
        else:
            theirs, their_best, other = sides.torch(a, name, way, folder, a.seconds)
        line = (f"    round {i + 1}: Pumice {ours:.2f} ms, {rate(name, ours)}, {row.other()} "
                f"{theirs:.2f} ms, {rate(name, theirs)}, ratio {theirs / ours:.3f}")
        jax_ms = jax_best = float("nan")
        if jax_takes_part(a, name):
            jax_ms, jax_best, third = sides.jax(a, name, folder, a.seconds)
            line += f", JAX {jax_ms:.2f} ms, ratio {jax_ms / ours:.3f}"
        rounds.append((ours, theirs, theirs / ours, our_best, their_best, jax_ms, jax_best))
        print(line, flush=True)
    for side, found in (("PyTorch", other), ("JAX", third)):
        if found and found["parameters"] != count:
            raise RuntimeError(f"{name}: Pumice trains {count} parameters, {side} "
                               f"{found['parameters']}: not the same net")
    parts = None
    if ROWS[name].mode == "train":
        parts = sides.shares(a, name, folder)
        print("    " + text_of(parts), flush=True)
    return {"name": name, "way": way, "rounds": rounds, "pumice": report, "torch": other,
            "jax": third, "parts": parts}


def text_of(parts):
    """Returns a line with the shares of a step's parts."""
    total = sum(parts.values())
    text = ", ".join(f"{part} {100 * ms / total:.1f} %" for part, ms in parts.items() if ms > 0)
    return f"{text} of {total:.1f} ms; step / convolutions {total / parts['convolutions']:.2f}"


def machine_name():
    try:
        with open("/proc/cpuinfo") as f:
            return re.search(r"model name\s*:\s*(.*)", f.read()).group(1).strip()
    except (OSError, AttributeError):
        return platform.machine()


def numbers(figures):
    """Returns figures for the CSV. A side that did not run has empty fields."""
    return ",".join("" if math.isnan(v) else f"{v:.3f}" for v in figures)


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
        f.write("".join(sorted({f"# {r['torch']['version']} on {r['torch']['device']}, "
                                "single precision, TF32 off\n" for r in results if r["torch"]})))
        f.write("".join(sorted({f"# {r['jax']['version']} on {r['jax']['device']}\n"
                                for r in results if r["jax"]})))
        f.write("# ms: median step; ratio: PyTorch's ms over Pumice's, above 1 Pumice is faster\n")
        if any(ROWS[r["name"]].beside for r in results):
            f.write("# pytorch_way 'Pumice OPTION': Pumice with this option in PyTorch's place\n")
        f.write(
            "# best: the fastest step; in the rows min, median and max each column for itself\n"
        )
        f.write(
            "row,batch,pytorch_way,round,pumice_ms,pytorch_ms,ratio,"
            "pumice_best_ms,pytorch_best_ms,jax_ms,jax_best_ms\n"
        )
        for r in results:
            head = f"{r['name']},{ROWS[r['name']].batch},{' '.join(r['way']).replace(',', '')}"
            for i, figures in enumerate(r["rounds"], 1):
                f.write(f"{head},{i},{numbers(figures)}\n")
            for what, of in (("min", min), ("median", statistics.median), ("max", max)):
                f.write(f"{head},{what},{numbers(of(c) for c in zip(*r['rounds']))}\n")
            if r["parts"]:
                f.write(f"# {r['name']}: {text_of(r['parts'])}\n")
    return path


def summary(results):
    print(
        f"\n{'row':26} {'batch':>5} {'Pumice ms':>10} {'other ms':>10}   "
        "ratio: median (min to max)"
    )
    for r in results:
        ours, theirs, ratios, our_best, their_best, jax_ms, jax_best = zip(*r["rounds"])
        print(
            f"{r['name']:26} {ROWS[r['name']].batch:5} {statistics.median(ours):10.2f} "
            f"{statistics.median(theirs):10.2f}   {statistics.median(ratios):.3f} "
            f"({min(ratios):.3f} to {max(ratios):.3f}), "
            f"of the fastest steps {min(their_best) / min(our_best):.3f}; "
            f"{'' if ROWS[r['name']].beside else 'PyTorch '}{' '.join(r['way'])}"
        )
        if r["jax"]:
            print(f"{'':46}JAX {statistics.median(jax_ms):10.2f}   "
                  f"{statistics.median(jax_ms) / statistics.median(ours):.3f}, "
                  f"of the fastest steps {min(jax_best) / min(our_best):.3f}")
        if r["parts"]:
            print(f"{'':20} {text_of(r['parts'])}")
    print("A ratio above 1: Pumice is faster.")


def torch_version(a):
    """Returns PyTorch's version and whether it has CUDA. Ends the program if a module is missing:
    detectors also need torchvision."""
    detectors = any(not ROWS[name].module.startswith("torch_net.") for name in a.rows or ROWS)
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


def check_jax(a):
    """Ends the program if JAX_PYTHON is set but has no JAX."""
    try:
        found = subprocess.run([a.jax_python, "-c", "import jax"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    except OSError as e:
        sys.exit(f"bench: {a.jax_python}: {e.strerror}")
    if found.returncode != 0:
        sys.exit(f"bench: {a.jax_python} has no JAX; install jax there, or unset JAX_PYTHON "
                 f"({found.stderr.strip().splitlines()[-1]})")


def main():
    a = arguments()
    version, cuda = torch_version(a) if any(
        not ROWS[name].beside for name in a.rows or ROWS) else ("(not used)", "False")
    if a.jax_python:
        check_jax(a)
    if not a.torch_device:
        a.torch_device = "cuda" if cuda == "True" and a.device != "cpu" else "cpu"
    print(f"Pumice on {a.device} and PyTorch {version} on {a.torch_device}, {a.threads} threads, "
          f"{a.rounds} rounds", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        results = []
        for name in a.rows or ROWS:
            results.append(compare(a, name, folder))
            path = write_csv(a, results)  # an interrupted measurement keeps the finished rows
    summary(results)
    print(f"written: {os.path.relpath(path)}")


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as e:
        sys.exit(f"bench: {e}")
