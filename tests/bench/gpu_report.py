"""Measures one GPU in about five minutes and writes one CSV.

    ./dev bench gpu [DEVICE] [--seconds S] [--out FILE]

DEVICE is a name as in a config; the default is the GPU that "devices": "auto" selects. The parts,
in this order: the device, `pumice verify`, kernels of three nets, training steps of three nets, and
PyTorch's steps beside them where PyTorch is installed and supports the GPU. Each part has a share
of the time that is left, so the whole keeps --seconds. A part that exceeds its share is ended, and
its finished rows stay. The batch of a net is the largest power of two up to the usual one that fits
into the memory and, on slow devices, into the time.

The file is written again after each part, so an interrupted measurement keeps what it has. It holds
names of the device and of drivers, versions and figures: no name of a host or a user, no path, no
serial number. gpu_table.py makes the table of README.md of these files."""
import argparse
import csv
import datetime
import getpass
import glob
import io
import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import bench_sides

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = os.path.join(HERE, "results")
COLUMNS = [
    "part", "name", "value", "batch", "ms_min", "ms_median", "ms_max", "images_per_second",
    "gflops", "gigabytes_per_second", "share_of_peak", "share_of_bound", "dispatches", "barriers",
    "segments", "bytes_moved", "note",
]  # fmt: skip


class Net(NamedTuple):
    row: str  # of bench_rows.py
    batch: int  # on a device that has the memory and the speed for it
    gflop: float  # a training step's work for one picture, approximately
    share: int  # of the time


NETS = [
    Net("resnet_v1_50", 32, 21, 28),
    Net("mobilenet_v2", 32, 2, 22),
    Net("deeplab_mobilenet_v2", 8, 6, 25),
]
KERNELS = {"resnet_v1_50": 25, "mobilenet_v1": 15, "deeplab": 15}  # filter: share of the time
VERIFY_SHARE, PYTORCH_SHARE = 80, 20
STEPS = 12  # that a part's time must hold, with those of the warm-up and those that time each call


# ---- texts without private parts ------------------------------------------------------------


def private_words():
    words = {socket.gethostname(), socket.gethostname().split(".")[0]}
    try:
        words.add(getpass.getuser())
    except (KeyError, OSError):
        pass
    words |= {os.environ.get("USER", ""), os.path.basename(os.path.expanduser("~"))}
    return sorted((w for w in words if len(w) > 2 and w != "root"), key=len, reverse=True)


def scrub(text):
    """Replaces paths, UUIDs, and names of the host and the user."""
    text = re.sub(r"(?<![\w.~])(?:~|\.{1,2})?/[^\s:,;'\"()]+", "PATH", text)
    text = re.sub(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", "UUID", text)
    for word in private_words():
        text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", "NAME", text)
    return " ".join(text.split())[:300]


# ---- programs -------------------------------------------------------------------------------


class Failed(Exception):
    """A program that failed (code: its exit code) or was ended at its limit (code: None)."""

    def __init__(self, text, code=None):
        super().__init__(scrub(text))
        self.code = code


def reason(done):
    if done.returncode < 0:
        return f"ended by signal {signal.Signals(-done.returncode).name}"
    lines = [x for x in done.stderr.strip().splitlines() if x.strip()]
    errors = [x for x in lines if x.startswith("error:")] or lines or ["no message"]
    return f"exit code {done.returncode}: {errors[-1].removeprefix('error: ')}"


def execute(command, seconds):
    """Runs a program for at most this time. Variables that change what Pumice does are removed."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PM_")}
    try:
        return subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, errors="replace", timeout=max(1, seconds))
    except subprocess.TimeoutExpired:
        raise Failed(f"not finished in {seconds:.0f} s") from None


def report_of(command, seconds, allowed=(0,)):
    """Runs a program and returns the JSON object that it prints first."""
    done = execute(command, seconds)
    if done.returncode not in allowed:
        raise Failed(reason(done), done.returncode)
    try:
        return json.JSONDecoder().raw_decode(done.stdout.lstrip())[0]
    except ValueError:
        raise Failed(reason(done), done.returncode) from None


# ---- the table ------------------------------------------------------------------------------


class Table:
    def __init__(self, path, head):
        self.path, self.head, self.rows = path, head, []

    def add(self, part, name, value="", **figures):
        note = scrub(figures.pop("note", ""))
        row = {"part": part, "name": name, "value": value, "note": note, **figures}
        self.rows.append(row)

    def states(self):
        return [(r["part"], r["name"], r["value"]) for r in self.rows]

    def write(self):
        """Replaces the file in one step, so that an interruption leaves the old one or the new."""
        out = io.StringIO()
        out.writelines(f"# {line}\n" for line in self.head)
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in self.rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
        temporary = self.path + ".tmp"
        with open(temporary, "w", encoding="utf-8") as f:
            f.write(out.getvalue())
        os.replace(temporary, self.path)


class Clock:
    """Divides the time that is left among the parts that are left, by their shares."""

    def __init__(self, seconds, shares):
        self.end, self.shares = time.monotonic() + seconds, dict(shares)

    def take(self, part):
        left, shares = self.end - time.monotonic(), sum(self.shares.values())
        return max(1, left * self.shares.pop(part) / shares)


# ---- the device -----------------------------------------------------------------------------


def hint():
    """What may make a GPU usable."""
    nodes = glob.glob("/dev/dri/renderD*")
    if nodes and not any(os.access(n, os.R_OK | os.W_OK) for n in nodes):
        return ("You may not open the GPU's device file. Type, and then log in again:\n"
                "    sudo usermod -a -G render,video \"$USER\"")
    return ("Install the GPU's Vulkan driver. On Debian and Ubuntu, for AMD and Intel:\n"
            "    sudo apt-get install mesa-vulkan-drivers\n"
            "For NVIDIA, the graphics driver of the distribution or of NVIDIA.\n"
            "docs/devices.md lists GPUs and drivers, and OpenCL drivers for GPUs without Vulkan.")


def no_gpu(report):
    print("bench: there is no usable GPU", file=sys.stderr)
    for d in report["devices"]:
        if d["kind"] == "software":
            print(f"    {d['address']}  {d['name']}: a software driver, only used when it is named",
                  file=sys.stderr)
        elif not d["usable"]:
            print(f"    {d['address']}  {d['name']}: {d['reason']}", file=sys.stderr)
    print(hint(), file=sys.stderr)
    sys.exit(4)


def find_device(a):
    """Returns the device's description. Ends the program if there is no GPU."""
    try:
        report = report_of([a.pumice, "devices", a.device, "--json"], 60)
    except Failed as e:
        print(f"bench: {e}", file=sys.stderr)
        sys.exit(e.code if e.code in (2, 4) else 4)
    device = next(d for d in report["devices"] if d["address"] == report["picked"])
    if device["kind"] == "cpu":
        if a.device != "auto":
            print(f"bench: '{a.device}' is the CPU; ./dev bench without 'gpu' measures it",
                  file=sys.stderr)
            sys.exit(2)
        no_gpu(report)
    return device


def measure_device(a, device, table, seconds):
    for key in ("driver", "kind", "class"):
        table.add("device", key, device.get(key, ""))
    table.add("device", "memory_bytes", str(int(device["memory_bytes"])))
    table.add("device", "features", " ".join(device["features"]))
    for key, value in device["limits"].items():
        value = " ".join(map(str, value)) if isinstance(value, list) else str(value)
        table.add("device", key, value)
    try:
        report = report_of([a.pumice, "devices", device["address"], "--measure", "--json"], seconds)
        peak = next(d["measured"] for d in report["devices"] if "measured" in d)
    except Failed as e:
        table.add("device", "peak", "not finished" if e.code is None else "failed", note=str(e))
        return None
    table.add("device", "peak", gflops=peak["gflops"],
              gigabytes_per_second=peak["gigabytes_per_second"])
    return peak["gflops"]


# ---- verify ---------------------------------------------------------------------------------


def measure_verify(a, device, table, seconds):
    """Adds the verdict. Returns whether it is neither wrong nor missing by a failure."""
    limit = max(1, 0.7 * seconds)  # a call that has begun is finished: the rest is for that
    try:
        report = report_of([a.pumice, "verify", device["address"], "--limit", f"{limit:.0f}",
                            "--json"], seconds, (0, 4))
        found = report["devices"][0]
    except (Failed, KeyError) as e:
        failed = not isinstance(e, Failed) or e.code is not None
        table.add("verify", "verdict", "failed" if failed else "not finished", note=str(e))
        print(f"    {e}", flush=True)
        return not failed
    wrong = [k for k in found["kernels"] if k["verdict"] == "wrong"]
    verdict = f"{len(wrong)} wrong" if wrong else "correct"
    if not found["complete"]:
        verdict += f", {100 * found['done']:.0f} % checked"
    count = len(found["kernels"])
    table.add("verify", "verdict", verdict,
              note=f"{count} variants of kernels in {found['seconds']:.0f} s")
    for k in found["kernels"]:
        if k["verdict"] != "ok":
            table.add("verify", f"{k['kernel']} {k['variant']}", k["verdict"],
                      note=k.get("why", ""))
    print(f"    {verdict}, {count} variants", flush=True)
    return not wrong


# ---- kernels --------------------------------------------------------------------------------


def read_kernels(path, table):
    """Adds the rows of `bench kernels --csv`. Returns their rates over the peak."""
    rates = []
    if not os.path.exists(path):
        return rates
    with open(path, encoding="utf-8") as f:
        for r in csv.DictReader(line for line in f if not line.startswith("#")):
            table.add("kernel", f"{r['net']} {r['pass']} {r['shape']}", r["variant"],
                      ms_min=r["ms_min"], ms_median=r["ms_median"], gflops=r["gflops"],
                      gigabytes_per_second=r["gbs"], share_of_peak=r["share_of_peak"],
                      share_of_bound=r["share_of_bound"], note=f"{r['uses']} a step")
            rates.append(float(r["share_of_peak"]))
    return rates


def measure_kernels(a, device, table, net, seconds, folder):
    path = os.path.join(folder, f"kernels-{net}.csv")
    limit, left, why, crashed = max(1, 0.7 * seconds), None, "", False
    try:
        report = report_of([a.pumice, "bench", "kernels", device["address"], "--filter", net,
                            "--seconds", "0.1", "--limit", f"{limit:.0f}", "--csv", path,
                            "--json"], seconds)
        left = report["rows_left"]
    except Failed as e:
        why, crashed = str(e), e.code is not None
    rates = read_kernels(path, table)
    state = ("failed" if crashed else "complete" if left == 0
             else f"{left} rows left" if left and rates else "not finished")
    table.add("kernels", net, state, note=why)
    print(f"    {net}: {len(rates)} rows, {state}{': ' if why else ''}{why}", flush=True)
    return rates, crashed


# ---- training steps -------------------------------------------------------------------------


def batch_for_time(net, peak, share, seconds):
    """The largest batch, of those that halve the usual one, whose steps fit into the time. share:
    of the peak that the kernels reach. Without a measured peak a small one."""
    if not peak:
        return max(1, net.batch // 8)
    batch = net.batch
    while batch > 1 and STEPS * batch * net.gflop / (peak * share) > seconds:
        batch //= 2
    return batch


def batch_for_memory(a, device, config, batch, seconds):
    """Halves the batch until the plan's memory fits. One eighth of the memory stays free."""
    end = time.monotonic() + seconds
    while batch > 1 and time.monotonic() < end:
        try:
            plan = report_of([a.pumice, "config", "show", config, "--plan", "--json",
                              f"run.batch_size={batch}"], end - time.monotonic())
        except Failed:
            break
        if sum(c["total"] for c in plan["clones"]) <= 7 / 8 * device["memory_bytes"]:
            break
        batch //= 2
    return batch


def measure_step(a, device, table, net, guess, seconds, folder):
    """Measures a net's step. After a failure it tries a smaller batch, as long as there is time.
    Returns the batch; None if nothing was finished in the time; "failed"."""
    end = time.monotonic() + seconds
    config = bench_sides.config_of(net.row, device["address"], folder)
    batch, why, r = batch_for_memory(a, device, config, guess, seconds / 4), "", None
    while end - time.monotonic() > 1:
        limit = (end - time.monotonic()) * (0.65 if batch > 1 else 1)
        try:
            r = report_of([a.pumice, "bench", config, "--synthetic", "--json", "--steps", "200",
                           "--warmup", "2", "--seconds", f"{max(1, limit / 6):.1f}",
                           f"run.batch_size={batch}"], limit)
            break
        except Failed as e:
            why = f"{why}batch {batch}: {e}. "
            print(f"    batch {batch}: {e}", flush=True)
            if e.code is not None and (batch == 1 or e.code == 2):
                table.add("step", net.row, "failed", batch=batch, note=why)
                return "failed"
            if batch == 1:
                break
            batch = max(1, batch // (2 if e.code is not None else 8))
    if r is None:
        table.add("step", net.row, "not finished", batch=batch, note=why)
        return None
    note = why if r["finite"] else why + "gradients were not finite"
    ms = r["ms_per_step"]
    table.add("step", net.row, "pumice", batch=batch, ms_min=ms["min"], ms_median=ms["median"],
              ms_max=ms["max"], images_per_second=1e3 * batch / ms["median"], note=note,
              **{k: int(r["devices"][0][k])
                 for k in ("dispatches", "barriers", "segments", "bytes_moved")})
    for p in r.get("phases", []):
        if p["where"] != "host":
            table.add("phase", f"{net.row} {p['name']}", batch=batch, ms_min=p["ms"]["min"],
                      ms_median=p["ms"]["median"], ms_max=p["ms"]["max"])
    print(f"    Pumice, batch {batch}: {ms['median']:.2f} ms, "
          f"{1e3 * batch / ms['median']:.1f} images/s", flush=True)
    return batch


# ---- PyTorch --------------------------------------------------------------------------------


def find_torch(a, device, table, seconds):
    """Returns PyTorch's device for this GPU, or None with a row that says why."""
    check = ("import json, torch; c = torch.cuda.is_available(); print(json.dumps([torch."
             "__version__, c and torch.cuda.device_count(), c and torch.cuda.get_device_name()]))")
    try:
        version, count, name = report_of([a.torch_python, "-c", check], seconds)
    except (Failed, OSError, ValueError) as e:
        why = "not installed" if "No module named" in str(e) or isinstance(e, OSError) else str(e)
        table.add("pytorch", "version", "none", note=why)
        return None
    table.add("pytorch", "version", version)
    if device["kind"] == "software":
        table.add("pytorch", "device", "cpu", note="a software driver computes on the CPU, too")
        return "cpu"
    if not count:
        table.add("pytorch", "device", "none", note="this PyTorch cannot use a GPU here")
        return None
    if not same_gpu(device["name"], name):
        table.add("pytorch", "device", "none", note=f"PyTorch would use another GPU: {name}")
        return None
    table.add("pytorch", "device", name)
    return "cuda"


def same_gpu(ours, theirs):
    """Whether two drivers' names can be of one GPU: the model's number is in both."""
    def models(text):
        return {w for w in re.findall(r"[a-z0-9]+", text.lower()) if re.search(r"\d", w)}

    both = models(ours) & models(theirs)
    return bool(both) or not (models(ours) and models(theirs))


def measure_torch(a, table, row, batch, seconds, folder):
    """Measures PyTorch's step with each memory format for which there is time; the faster one
    counts. Returns its median in ms, or None."""
    end, best, why = time.monotonic() + seconds, None, ""
    for way in (("nhwc", "fused"), ("nchw", "fused"), ("nchw", "default")):
        left = end - time.monotonic()
        if left < 1 or (best and (way[1] == "default" or left < seconds / 3)):
            break
        try:
            median, least, report = bench_sides.torch(
                a, row, (*way, "spin", "eager"), folder, left / 4, batch=batch, limit=left)
        except subprocess.TimeoutExpired:
            why = f"not finished in {left:.0f} s"
            continue
        except (RuntimeError, ValueError, subprocess.CalledProcessError) as e:
            why = str(e)
            continue
        if not best or median < best[0]:
            best = (median, least, max(report["ms"]), way)
    if not best:
        table.add("step", row, "pytorch failed", batch=batch, note=why or "no time was left")
        print(f"    PyTorch: {scrub(why) or 'no time was left'}", flush=True)
        return None
    median, least, most, way = best
    table.add("step", row, "pytorch", batch=batch, ms_min=least, ms_median=median, ms_max=most,
              images_per_second=1e3 * batch / median, note=" ".join(way))
    print(f"    PyTorch, batch {batch}: {median:.2f} ms, {1e3 * batch / median:.1f} images/s",
          flush=True)
    return median


# ---- the program ----------------------------------------------------------------------------


def arguments():
    p = argparse.ArgumentParser(prog="./dev bench gpu", description=__doc__.split("\n")[0])
    p.add_argument("device", nargs="?", default="auto", metavar="DEVICE",
                   help="as in a config: vulkan:0, a part of a name; auto by default")
    p.add_argument("--seconds", type=float, default=300, help="for all parts together (300)")
    p.add_argument("--out", help="CSV; default tests/bench/results/gpu-DEVICE.csv")
    p.add_argument("--pumice", default=os.path.join(HERE, "../../build/release/pumice"))
    p.add_argument("--torch-python", default=os.environ.get("TORCH_PYTHON", sys.executable))
    a = p.parse_args()
    if not 10 <= a.seconds <= 86400:
        p.error(f"--seconds: {a.seconds:g} is outside 10..86400")
    a.threads = len(os.sched_getaffinity(0))
    return a


def measure(a, device, table):
    """Measures all parts. Returns the number of parts without a result."""
    failures = 0
    shares = {"peak": 10, "torch": 12, "verify": VERIFY_SHARE, **KERNELS}
    for net in NETS:
        shares[net] = net.share
        shares[net.row + " torch"] = PYTORCH_SHARE
    clock = Clock(a.seconds, shares)

    def say(text):
        table.write()
        left = clock.end - time.monotonic()
        print(f"{text} (at most {left:.0f} s are left for everything)", flush=True)

    peak = measure_device(a, device, table, clock.take("peak"))
    failures += ("device", "peak", "failed") in table.states()
    a.torch_device = find_torch(a, device, table, clock.take("torch"))
    if not a.torch_device:
        for net in NETS:
            clock.shares.pop(net.row + " torch")
    say("verify: compares the kernels with the CPU")
    failures += not measure_verify(a, device, table, clock.take("verify"))
    rates = []
    with tempfile.TemporaryDirectory() as folder:
        for name in KERNELS:
            say(f"kernels of {name}")
            found, crashed = measure_kernels(a, device, table, name, clock.take(name), folder)
            rates += found
            failures += crashed
        share = max(0.03, sorted(rates)[len(rates) // 2]) if rates else 0.1
        for net in NETS:
            say(f"training step of {net.row}")
            seconds = clock.take(net)
            guess = batch_for_time(net, peak, share, seconds / 2)
            found = measure_step(a, device, table, net, guess, seconds, folder)
            failures += found == "failed"
            if a.torch_device:
                seconds = clock.take(net.row + " torch")
                if isinstance(found, int):
                    table.write()
                    measure_torch(a, table, net.row, found, seconds, folder)
    return failures


def parts(count):
    return f"{count} part{'' if count == 1 else 's'}"


def slug(name):
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def stop(number, _frame):
    raise KeyboardInterrupt(number)


def main():
    a = arguments()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    begin = time.monotonic()
    device = find_device(a)
    a.device = device["address"]
    path = a.out or os.path.join(RESULTS, f"gpu-{slug(device['name'])}.csv")
    version = execute([a.pumice, "--version"], 20).stdout.split("\n")[0].strip()
    table = Table(path, [
        "./dev bench gpu", f"{datetime.date.today()}, {platform.system()}, {platform.machine()}",
        f"{scrub(version)} on {scrub(device['name'])}: {scrub(device['driver'])}",
        "single precision; ms: of a step, or of one call of a kernel; kernel rates: of the fastest",
    ])
    table.add("device", "name", scrub(device["name"]))
    table.add("device", "pumice", scrub(version))
    print(f"{device['address']}: {device['name']}, {device['driver']}", flush=True)
    print(f"at most {a.seconds:.0f} s; Ctrl-C ends it and keeps what was measured", flush=True)
    if device["kind"] == "software":
        print("This is a software driver: its figures say nothing about a GPU.", flush=True)
    code = 1
    try:
        table.write()
        failures = measure(a, device, table)
        short = sum(state == "not finished" for _, _, state in table.states())
        table.add("end", "state", f"{parts(failures)} failed" if failures else
                  f"{parts(short)} not finished" if short else "complete")
        code = 0 if failures == 0 else 1
    except KeyboardInterrupt as e:
        number = e.args[0] if e.args else signal.SIGINT
        table.add("end", "state", "interrupted")
        code = 128 + number
    except OSError as e:
        sys.exit(f"bench: {e.filename or path}: {e.strerror}")
    table.add("end", "seconds", f"{time.monotonic() - begin:.0f}")
    table.write()
    finish(path, device, next(v for p, n, v in table.states() if (p, n) == ("end", "state")))
    return code


def finish(path, device, state):
    print(f"written: {os.path.relpath(path)} ({state})")
    if device["kind"] == "software":
        print("Do not send it: it is of a software driver.")
        return
    print("The file names the device, the driver and figures, nothing of you or of your machine;\n"
          "read it before you send it. Then send it to the maintainers, or commit it:\n"
          "    python3 tests/bench/gpu_table.py --update\n"
          f"    git add README.md {os.path.relpath(path)}\n"
          "CONTRIBUTING.md says how changes are sent.")


if __name__ == "__main__":
    sys.exit(main())
