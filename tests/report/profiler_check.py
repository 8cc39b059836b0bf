"""Checks that TensorBoard's profile plugin opens the timelines of run.trace_steps.

    python3 tests/report/profiler_check.py PUMICE FOLDER

Trains a small net with the program PUMICE and asks a running TensorBoard for the plugin's runs,
tools and trace. A Python without the packages makes a virtual environment in FOLDER and installs
them there, once. The check exits with 77 (skipped) when the download fails."""
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import packages  # noqa: E402
from checks import check, fail, pumice  # noqa: E402

NET = {
    "model": {"layers": [
        {"name": "conv1", "layer": "conv2d", "filters": 8, "stride": 2, "activation": "relu"},
        {"name": "flatten", "layer": "flatten"},
        {"name": "logits", "layer": "fully_connected", "units": 4}]},
    "input": {"preprocessing": "lenet", "size": 32}, "devices": ["cpu"],
    "run": {"steps": 8, "batch_size": 8, "trace_steps": [3, 5]},
}


class Server:
    """A tensorboard process that serves a folder."""

    def __init__(self, folder):
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log")
        self.process = subprocess.Popen(
            [os.path.join(os.path.dirname(sys.executable), "tensorboard"), "--logdir", folder,
             "--port", "0"], stdout=self.log, stderr=subprocess.STDOUT)
        end = time.time() + 120
        while not self.address():
            if self.process.poll() is not None or time.time() > end:
                fail(f"tensorboard does not start:\n{self.text()}")
            time.sleep(0.2)

    def text(self):
        with open(self.log.name) as f:
            return f.read()

    def address(self):
        found = re.search(r"http://(\S+?):(\d+)/", self.text())
        return found and f"http://localhost:{found.group(2)}/data/plugin/profile/"

    def get(self, path, **query):
        text = self.address() + path + "?" + urllib.parse.urlencode(query)
        with urllib.request.urlopen(text, timeout=60) as answer:
            data = answer.read()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return json.loads(data)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def check_profiler(work, server):
    """The run, its tool and every span of the Chrome trace of the same steps."""
    end = time.time() + 60
    while not (runs := server.get("runs")) and time.time() < end:
        time.sleep(1)
    check(runs == ["net/step-000003"], f"the plugin's runs: {runs}")
    check("trace_viewer@" in server.get("run_tools", run=runs[0]), "no trace viewer")
    hosts = [h["hostname"] for h in server.get("hosts", run=runs[0], tag="trace_viewer@")]
    check(len(hosts) == 1, f"hosts {hosts}")
    seen = server.get("data", run=runs[0], tag="trace_viewer@", host=hosts[0])["traceEvents"]
    with open(os.path.join(work, "runs", "net", "trace-000003.json")) as f:
        own = json.load(f)["traceEvents"]
    for ours, theirs in (("process_name", "process_name"), ("thread_name", "thread_name")):
        names = {e["args"]["name"] for e in seen if e.get("name") == theirs}
        for e in own:
            check(e["name"] != ours or any(e["args"]["name"] in n for n in names),
                  f"no {ours} for {e}: {names}")
    calls = {e["name"] for e in own if e["ph"] == "X"}
    shown = {e["name"] for e in seen if e.get("ph") == "X"}
    check(calls and calls <= shown, f"spans that are not shown: {calls - shown}")


def main():
    packages.find("profiler", ["tensorboard", "tensorboard_plugin_profile"],
                  ["tensorboard>=2.17", "tensorboard-plugin-profile>=2.20", "setuptools<81"])
    with tempfile.TemporaryDirectory() as work:
        config = os.path.join(work, "net.json")
        with open(config, "w") as f:
            json.dump(NET, f)
        pumice("dataset", "make", "shapes", f"{work}/data", "size=32", "train=40", "test=8",
               "validation=4")
        pumice("train", config, f"data.folder={work}/data", f"run.folder={work}/runs/net")
        server = Server(os.path.join(work, "runs"))
        try:
            check_profiler(work, server)
        finally:
            server.stop()
    print("profiler_check: the profile plugin shows every span of run.trace_steps: all as expected")


if __name__ == "__main__":
    main()
