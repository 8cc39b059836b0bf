"""Checks ./dev bench gpu: gpu_report.py with a program in place of pumice that answers as a GPU
would, fails, hangs or runs out of memory; and gpu_table.py with the files that it writes.

    gpu_report_check.py [PUMICE DEVICE]

With PUMICE and DEVICE it measures that device, a software driver, in two minutes instead."""
import csv
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
USER, HOST_HOME = "secretuser", "/tmp/secrethome"

# Answers as pumice on a GPU of 8 GiB and 2,000 GFLOP/s. FAKE chooses what goes wrong.
FAKE = r'''#!/usr/bin/env python3
import json, os, sys, time
a, fake = sys.argv[1:], os.environ.get("FAKE", "")
gpu = {"address": "vulkan:0", "name": "Test GPU 9000", "driver": "test 1.2", "kind": "discrete",
       "usable": True, "memory_bytes": 8 << 30, "class": "other", "features": ["int64"],
       "uuid": "01234567-89ab-cdef-0123-456789abcdef", "limits": {"shared_bytes": 49152,
       "max_workgroup_size": [1024, 1024, 64]}}
cpu = {"address": "cpu", "name": "Test CPU", "driver": "x", "kind": "cpu", "usable": True}
batch = int(([w.split("=")[1] for w in a if w.startswith("run.batch_size=")] or ["0"])[0])

def fail(code, text):
    print("error: " + text, file=sys.stderr)
    sys.exit(code)

if a == ["--version"]:
    print("pumice 9.9.9")
elif a[0] == "devices":
    if a[1] == "nosuch":
        fail(4, 'no device "nosuch"; there are: auto, cpu')
    if "--measure" in a:
        gpu["measured"] = {"gflops": 2000.5, "gigabytes_per_second": 200}
    old = dict(gpu, usable=False, reason="its driver lacks scalarBlockLayout")
    none = fake == "none" or a[1] == "cpu"
    print(json.dumps({"devices": [old, cpu] if none else [gpu, cpu],
                      "picked": "cpu" if none else "vulkan:0"}))
elif a[0] == "verify":
    if fake == "hang":
        time.sleep(1000)
    if fake == "crash":
        os.kill(os.getpid(), 11)
    kernels = [{"kernel": "add2", "variant": "add2", "verdict": "ok"}]
    if fake == "wrong":
        kernels.append({"kernel": "conv2d_fwd", "variant": "r", "verdict": "wrong",
                        "why": "value 3 is 1, not 2, in /tmp/secrethome/x of secretuser"})
    print(json.dumps({"devices": [{"complete": fake != "cut", "done": 0.425, "seconds": 3,
                                   "kernels": kernels}], "wrong": len(kernels) - 1}))
    if fake == "wrong":
        fail(4, "1 of 2 variants give wrong results")
elif a[:2] == ["bench", "kernels"]:
    path, name = a[a.index("--csv") + 1], a[a.index("--filter") + 1]
    with open(path, "w") as f:
        f.write("# x\nnet,pass,kernel,shape,uses,variant,runs,ms_min,ms_median,flops,bytes,gflops,"
                "gbs,share_of_peak,share_of_bound\n"
                f"{name},forward,conv2d_fwd,1x1,3,s,9,0.5,0.6,1,1,700,20,0.35,0.4\n")
    if fake == "hang":
        time.sleep(1000)
    if fake == "crash":
        os.kill(os.getpid(), 11)
    print(json.dumps({"rows_left": 2 if fake == "cut" else 0}))
elif a[:2] == ["config", "show"]:
    if "--layers" in a:
        print(json.dumps({"trainable_parameters": 1, "layers": []}))
    else:
        print(json.dumps({"clones": [{"total": batch * (600 << 20)}]}))
elif a[0] == "bench":
    assert not [k for k in os.environ if k.startswith("PM_")]
    if fake == "memory" and batch > 2:
        fail(4, "vulkan:0: out of memory in /tmp/secrethome/file (secretuser)")
    if fake == "slow" and batch > 1:
        time.sleep(1000)
    if fake == "interrupt" and "mobilenet_v2.json" in a[1] and "deeplab" not in a[1]:
        time.sleep(1000)
    ms = {"min": 9.5 * batch, "median": 10.0 * batch, "max": 11.0 * batch}
    print(json.dumps({"finite": True, "ms_per_step": ms, "devices": [
                      {"dispatches": 460, "barriers": 400, "segments": 3, "bytes_moved": 22 << 30}],
                      "phases": [{"name": "forward", "where": "vulkan:0", "ms": ms}]}))
'''
NO_TORCH = "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'torch'\" >&2\nexit 1\n"
TORCH = r'''#!/usr/bin/env python3
import json, sys
if sys.argv[1] == "-c":
    print(json.dumps(["2.9", 1, "NVIDIA Test GPU 9000"]))
else:
    assert sys.argv[sys.argv.index("--device") + 1] == "cuda"
    batch = int(sys.argv[sys.argv.index("--batch") + 1])
    nhwc = "nhwc" in sys.argv
    print(json.dumps({"ms": [(12.0 if nhwc else 15.0) * batch] * 3, "parameters": 1}))
'''


class Run:
    def __init__(self, folder, fake="", *words, torch=NO_TORCH, seconds=100, interrupt=None):
        self.path = os.path.join(folder, "gpu.csv")
        if os.path.exists(self.path):
            os.remove(self.path)
        programs = {"pumice": FAKE, "python": torch}
        for name, text in programs.items():
            programs[name] = os.path.join(folder, name)
            with open(programs[name], "w") as f:
                f.write(text)
            os.chmod(programs[name], stat.S_IRWXU)
        env = dict(os.environ, FAKE=fake, HOME=HOST_HOME, USER=USER, LOGNAME=USER, PM_VALIDATE="1")
        begin = time.monotonic()
        p = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "gpu_report.py"), *words, "--pumice",
             programs["pumice"], "--torch-python", programs["python"], "--seconds", str(seconds),
             "--out", self.path],
            env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if interrupt:
            for said in p.stdout:
                if "training step of mobilenet_v2" in said:
                    break
            time.sleep(0.5)
            p.send_signal(interrupt)
        self.out, self.err = p.communicate()
        self.code, self.seconds = p.returncode, time.monotonic() - begin
        self.rows, self.text = [], ""
        if os.path.exists(self.path):
            with open(self.path) as f:
                self.text = f.read()
            self.rows = list(csv.DictReader(x for x in self.text.splitlines() if x[0] != "#"))

    def find(self, part, name, value=None):
        found = [r for r in self.rows if (r["part"], r["name"]) == (part, name)
                 and (value is None or r["value"] == value)]
        assert found, f"no row {part}, {name}, {value} in\n{self.text}\n{self.err}"
        return found[0]


def names_host(text):
    """Whether the machine's name is a word of the text: a short one may be part of other words."""
    return bool(re.search(rf"\b{re.escape(os.uname().nodename)}\b", text))


def private(text):
    found = [w for w in (USER, HOST_HOME, "01234567-89ab", HERE, "/tmp/") if w in text]
    return found + ([os.uname().nodename] if names_host(text) else [])


def whole(folder):
    r = Run(folder)
    assert r.code == 0, r.err
    assert r.find("device", "name")["value"] == "Test GPU 9000"
    assert float(r.find("device", "peak")["gflops"]) == 2000.5
    assert r.find("verify", "verdict")["value"] == "correct"
    kernel = r.find("kernel", "resnet_v1_50 forward 1x1")
    assert (kernel["value"], kernel["gflops"], kernel["note"]) == ("s", "700", "3 a step")
    step = r.find("step", "resnet_v1_50", "pumice")
    # The plan says 600 MiB a picture: 8 of them fit into 7 / 8 of 8 GiB, 16 do not.
    assert (step["batch"], step["ms_median"], step["images_per_second"]) == ("8", "80", "100")
    assert (step["dispatches"], step["barriers"]) == ("460", "400")
    assert step["bytes_moved"] == str(22 << 30)
    assert r.find("pytorch", "version")["value"] == "none"
    assert r.find("end", "state")["value"] == "complete"
    assert not private(r.text), private(r.text)
    assert "gpu_table.py --update" in r.out


def beside_torch(folder):
    r = Run(folder, torch=TORCH)
    assert r.code == 0, r.err
    step = r.find("step", "deeplab_mobilenet_v2", "pytorch")
    assert (step["batch"], step["ms_median"], step["note"]) == ("8", "96", "nhwc fused")
    other = Run(folder, torch=TORCH.replace("Test GPU 9000", "Test GPU 7000"))
    assert "another GPU" in other.find("pytorch", "device", "none")["note"]
    assert not [x for x in other.rows if x["value"] == "pytorch"]


def no_gpu(folder):
    r = Run(folder, "none")
    assert r.code == 4 and not r.rows
    assert "there is no usable GPU" in r.err and "lacks scalarBlockLayout" in r.err
    assert "apt-get install mesa-vulkan-drivers" in r.err or "usermod" in r.err
    assert Run(folder, "", "nosuch").code == 4
    r = Run(folder, "", "cpu")
    assert r.code == 2 and "is the CPU" in r.err
    assert Run(folder, seconds=1).code == 2


def failures(folder):
    r = Run(folder, "wrong")
    assert r.code == 1 and r.find("verify", "verdict")["value"] == "1 wrong"
    note = r.find("verify", "conv2d_fwd r", "wrong")["note"]
    assert note == "value 3 is 1, not 2, in PATH of NAME"
    assert r.find("end", "state")["value"] == "1 part failed" and not private(r.text)
    r = Run(folder, "crash")
    assert r.code == 1 and r.find("step", "resnet_v1_50", "pumice")
    assert "SIGSEGV" in r.find("verify", "verdict", "failed")["note"]
    assert "SIGSEGV" in r.find("kernels", "deeplab", "failed")["note"]
    assert r.find("kernel", "deeplab forward 1x1")  # the rows until then
    r = Run(folder, "memory")
    assert r.code == 0 and r.find("step", "mobilenet_v2", "pumice")["batch"] == "2"
    assert "out of memory in PATH (NAME)" in r.text and not private(r.text)
    r = Run(folder, "cut")
    assert r.find("verify", "verdict")["value"] == "correct, 42 % checked"
    assert r.find("kernels", "deeplab")["value"] == "2 rows left"


def in_time(folder):
    r = Run(folder, "hang", seconds=12)
    assert r.seconds < 16, r.seconds
    assert r.find("verify", "verdict", "not finished")
    assert r.find("kernels", "resnet_v1_50", "not finished")
    assert r.find("kernel", "resnet_v1_50 forward 1x1")  # the rows until then
    assert r.code == 0 and r.find("end", "state", "4 parts not finished")
    assert r.find("step", "resnet_v1_50", "pumice")
    r = Run(folder, "slow", seconds=15)
    assert r.seconds < 19, r.seconds
    assert r.find("step", "resnet_v1_50", "pumice")["batch"] == "1"


def interrupted(folder):
    for number in (signal.SIGINT, signal.SIGTERM):
        r = Run(folder, "interrupt", interrupt=number)
        assert r.code == 128 + number, (r.code, r.err)
        assert r.find("end", "state")["value"] == "interrupted"
        assert r.find("step", "resnet_v1_50", "pumice")
        assert "interrupted" in r.out and not os.path.exists(r.path + ".tmp")


def tables(folder):
    page, results = os.path.join(folder, "page.md"), os.path.join(folder, "results")
    os.mkdir(results)
    command = [sys.executable, os.path.join(HERE, "gpu_table.py"), page, results]
    with open(page, "w") as f:
        f.write("a\n<!-- measured GPUs, made by tests/bench/gpu_table.py -->\n<!-- end -->\nb\n")
    assert subprocess.run(command, stderr=subprocess.PIPE).returncode == 1
    subprocess.run(command + ["--update"], check=True, stdout=subprocess.PIPE)
    with open(page) as f:
        assert "No measurement of a GPU has been received yet." in f.read()
    os.rename(Run(folder, torch=TORCH).path, os.path.join(results, "gpu-test.csv"))
    soft = Run(folder)
    with open(os.path.join(results, "gpu-soft.csv"), "w") as f:
        f.write(soft.text.replace("discrete", "software"))
    assert subprocess.run(command, stderr=subprocess.PIPE).returncode == 1
    subprocess.run(command + ["--update"], check=True, stdout=subprocess.PIPE)
    with open(page) as f:
        text = f.read()
    row = "| Test GPU 9000 | test 1.2 | correct | 100 (8), 1.20 | 100 (8), 1.20 | 100 (8), 1.20 |"
    assert text.count("\n| Test GPU") == 1 and row in text, text
    assert text.startswith("a\n") and text.endswith("\nb\n")
    assert subprocess.run(command, stdout=subprocess.PIPE).returncode == 0


def real(pumice, device):
    """A software driver, with little time: every part has a row, whatever was finished."""
    with tempfile.TemporaryDirectory() as folder:
        path, begin = os.path.join(folder, "gpu.csv"), time.monotonic()
        env = dict(os.environ, XDG_CACHE_HOME=folder)
        p = subprocess.run([sys.executable, os.path.join(HERE, "gpu_report.py"), device, "--pumice",
                            pumice, "--seconds", "120", "--out", path], env=env)
        took = time.monotonic() - begin
        with open(path) as f:
            text = f.read()
        print(text)
        rows = {(r["part"], r["name"]): r for r in csv.DictReader(
            x for x in text.splitlines() if x[0] != "#")}
        assert took < 140, took
        assert p.returncode == 0
        assert rows["device", "kind"]["value"] == "software"
        assert rows["verify", "verdict"]["value"].startswith(("correct", "not finished"))
        for part in ("resnet_v1_50", "mobilenet_v1", "deeplab"):
            assert rows["kernels", part]["value"] == "not finished" or [
                k for k in rows if k[0] == "kernel" and k[1].startswith(part)]
        for part in ("resnet_v1_50", "mobilenet_v2", "deeplab_mobilenet_v2"):
            step = rows["step", part]
            assert step["value"] == "not finished" or (
                float(step["ms_median"]) > 0 and int(step["dispatches"]) > 0)
        assert rows["end", "state"]["value"] in ("complete",) or rows["end", "state"][
            "value"].endswith("not finished")
        assert not names_host(text) and folder not in text


def main():
    if len(sys.argv) == 3:
        if subprocess.run([sys.argv[1], "devices", sys.argv[2]],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE).returncode != 0:
            print(f"skipped: no device {sys.argv[2]}")
            sys.exit(77)
        real(*sys.argv[1:])
        return
    for check in (whole, beside_torch, no_gpu, failures, in_time, interrupted, tables):
        with tempfile.TemporaryDirectory() as folder:
            check(folder)
            print(f"{check.__name__}: right", flush=True)


if __name__ == "__main__":
    main()
