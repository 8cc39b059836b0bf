"""Finds the packages that a check in Python needs. When this Python lacks one, the check runs in a
virtual environment, which is made once."""
import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import venv

from checks import NAME


def make(place, python, what, wanted):
    """Makes the environment in the folder `place` and installs the packages `wanted`. python: the
    environment's interpreter; what: the packages' names for messages. The caller holds the lock."""
    shutil.rmtree(place, ignore_errors=True)
    try:
        venv.create(place, with_pip=True)
    except subprocess.CalledProcessError:
        sys.exit(f"{NAME}: no virtual environment can be made; ./dev setup installs python3-venv")
    got = subprocess.run(
        [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--timeout",
            "20",
            "--retries",
            "1",
            "--disable-pip-version-check",
            *wanted,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if got.returncode != 0:
        print(got.stdout)
        if "(from versions: none)" in got.stdout or "Max retries exceeded" in got.stdout:
            print(f"{NAME}: skipped: {what} are not here and cannot be downloaded", flush=True)
            sys.exit(77)
        sys.exit(f"{NAME}: {what} cannot be installed (see above)")


def find(name, modules, wanted):
    """Returns when this Python has all `modules`. Otherwise it restarts the script in the virtual
    environment `name`, in the folder of the script's second argument; the environment gets the
    packages `wanted`. When they cannot be downloaded, the check is skipped (exit code 77)."""
    if all(importlib.util.find_spec(m) for m in modules):
        return
    what = " and ".join(modules)
    place = os.path.join(os.path.abspath(sys.argv[2]), name)
    python, ready = os.path.join(place, "bin", "python"), os.path.join(place, "ready")
    if sys.executable == python:
        sys.exit(f"{NAME}: {place} holds no {what}: remove it")
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(
        place + ".lock", "w"
    ) as lock:  # checks that share an environment run at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(ready):
            make(place, python, what, wanted)
            open(ready, "w").close()
    os.execv(python, [python] + sys.argv)


def find_onnx():
    find("onnx", ["numpy", "onnx", "onnxruntime"], ["onnx>=1.16", "onnxruntime>=1.18"])
