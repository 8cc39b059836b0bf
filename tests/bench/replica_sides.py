"""Runs one side of ./dev bench replicas: a program of several processes, on this machine or on
hosts that tests/replicas/hosts.sh makes. Every function returns a dict of lists: the seconds of
rounds or steps, and other quantities."""
import functools
import json
import os
import socket
import statistics
import subprocess

import bench_sides

HERE = os.path.dirname(os.path.abspath(__file__))
HOSTS = os.path.join(HERE, "../replicas/hosts.sh")
FLOATS = 26214400  # 105 MB: the gradients of resnet_v1_50 are 102 MB
NET = "resnet_v1_50"
NAMES = ["host" + letter for letter in "abcdefgh"]


class NotMeasured(Exception):
    """Why a side cannot run here."""


class Place:
    """Where the processes run: "memory" and "tcp": on this machine; else on `count` hosts with
    cables of a rate."""

    def __init__(self, a, kind, count=2):
        self.a, self.kind, self.count = a, kind, count
        self.local = kind in ("memory", "tcp")

    def __enter__(self):
        if not self.local:
            done = subprocess.run([HOSTS, "up", self.kind, str(self.count)],
                                  stdout=subprocess.PIPE, text=True)
            if done.returncode == 77:
                raise NotMeasured(done.stdout.strip())
            if done.returncode != 0:
                raise RuntimeError("hosts.sh up failed")
        return self

    def __exit__(self, *_):
        if not self.local:
            subprocess.run([HOSTS, "down"])

    def address(self):
        return "127.0.0.1" if self.local else "10.77.0.1"

    def on(self, rank):
        """The beginning of a command for one rank that is started without mpirun."""
        return [] if self.local else [HOSTS, "run", NAMES[rank]]

    def mpirun(self):
        command = ["timeout", "300", "mpirun", "-n", str(self.count), "--bind-to", "none"]
        if self.kind == "tcp":
            command += ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"]
        if self.local:
            return command + ["--oversubscribe"]
        return self.on(0) + command + ["--host", ",".join(NAMES[: self.count]), "--map-by", "node",
                                       "--mca", "plm_rsh_agent", f"{HOSTS} rsh"]


def environment(a):
    names = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    return dict(os.environ, PM_MPI_PLUGIN=os.path.join(a.build, "libpumice_mpi.so"),
                OMP_NUM_THREADS="1", **dict.fromkeys(names, "1"))


def last_json(command, text, errors, code):
    if code != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {code}: {errors.strip()[-800:]}")
    return json.loads(text.strip().splitlines()[-1])


def run(a, command):
    done = subprocess.run(command, env=environment(a), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    return last_json(command, done.stdout, done.stderr, done.returncode)


def run_ranks(a, commands, **more):
    """Starts a command for each rank, and returns what rank 0 printed."""
    started = [subprocess.Popen(c, env=dict(environment(a), **more), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True) for c in commands]
    try:
        text, errors = started[0].communicate(timeout=300)
        for p in started[1:]:
            p.communicate(timeout=60)
    finally:
        for p in started:
            p.kill()
    return last_json(commands[0], text, errors, started[0].returncode)


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return str(s.getsockname()[1])


# ---- exchange alone --------------------------------------------------------------------------


def exchange(place, rounds, wire="float32"):
    """Waits are measured only with float32: they do not depend on the wire."""
    a, waits = place.a, wire == "float32"
    found = run(a, place.mpirun() + [os.path.join(a.build, "tests/replica_exchange"), wire,
                                     str(FLOATS), str(rounds), "2" if waits else "0"])
    return found if waits else {k: found[k] for k in ("seconds", "cpu")}


def mpi(place, rounds, call="allreduce"):
    a = place.a
    return run(a, place.mpirun() + [os.path.join(a.build, "tests/mpi_sums"), call, str(FLOATS),
                                    str(rounds)])


def sockets(place, rounds):
    port, script = free_port(), os.path.join(HERE, "socket_rounds.py")
    return run_ranks(place.a, [place.on(r) + ["python3", script, str(r), place.address(), port,
                                              str(4 * FLOATS), str(rounds)] for r in range(2)])


@functools.lru_cache(maxsize=None)
def has_gloo(python):
    found = subprocess.run([python, "-c", "import torch.distributed as d; "
                            "assert d.is_gloo_available()"], stderr=subprocess.DEVNULL)
    return found.returncode == 0


def check_torch(a):
    if not has_gloo(a.torch_python):
        raise NotMeasured(f"{a.torch_python} has no PyTorch with gloo; set TORCH_PYTHON")


def gloo(place, rounds):
    a, port = place.a, free_port()
    check_torch(a)
    script = os.path.join(HERE, "torch_gloo.py")
    commands = [place.on(r) + [a.torch_python, script, str(r), str(place.count), place.address(),
                               port, str(FLOATS), str(rounds)] for r in range(place.count)]
    return run_ranks(a, commands, GLOO_SOCKET_IFNAME="lo" if place.local else "eth0")


# ---- training ----------------------------------------------------------------------------------


def config(a, batch):
    """Writes the config of a net whose gradients are 102 MB, with drawn shapes as data."""
    data, path = os.path.join(a.folder, "data"), os.path.join(a.folder, f"net-{batch}.json")
    if not os.path.isdir(data):
        subprocess.run([a.pumice, "dataset", "make", "shapes", data, "size=224", "train=64",
                        "validation=8", "test=8"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    with open(path, "w", encoding="utf-8") as f:
        json.dump({
            "model": {"name": NET, "num_classes": 1000},
            "input": {"size": 224},
            "data": {"folder": data, "threads": 1},
            "optim": {"name": "momentum"},
            "schedule": {"policy": "fixed", "base_lr": 0.001},
            "run": {"batch_size": batch, "log_every_steps": 1, "save_every_steps": 0,
                    "save_every_secs": 0},
            "eval": {"batch_size": 8, "every_steps": 0},
        }, f)
    return path


def devices(clones, threads):
    return "devices=" + json.dumps([{"name": "cpu", "threads": threads}] * clones)


def step_seconds(folder):
    """Returns the seconds of all steps but the first two, and of waiting for other processes."""
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as f:
        lines = [o for o in map(json.loads, f) if o["kind"] == "train"][2:]
    return {"seconds": [o["seconds_per_step"] for o in lines],
            "waiting_for_ranks": [o.get("seconds_exchange", 0) for o in lines]}


def training_command(a, folder, steps, batch, clones, threads):
    subprocess.run(["rm", "-rf", folder], check=True)
    return [a.pumice, "train", config(a, batch), f"run.folder={folder}", f"run.steps={steps + 2}",
            devices(clones, threads)]


def train(a, steps, batch=16, clones=1, threads=1, place=None):
    """Trains in one process, or in the processes of a place."""
    folder = os.path.join(a.folder, "run")
    command = (place.mpirun() if place else []) + training_command(a, folder, steps, batch, clones,
                                                                   threads)
    done = subprocess.run(command, env=environment(a), stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: "
                           f"{done.stderr.strip()[-800:]}")
    return step_seconds(folder)


def train_apart(place, steps, batch):
    """One process on each host at the same time, which exchange nothing. Returns the mean time of
    their steps."""
    a = place.a
    folders = [os.path.join(a.folder, f"apart-{r}") for r in range(place.count)]
    started = [subprocess.Popen(place.on(r) + training_command(a, folder, steps, batch, 1, 1),
                                env=environment(a), stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL) for r, folder in enumerate(folders)]
    if any([p.wait(timeout=300) for p in started]):
        raise RuntimeError("pumice train failed on a host")
    medians = [statistics.median(step_seconds(f)["seconds"]) for f in folders]
    return {"seconds": [statistics.mean(medians)]}


def torch_train(a, steps, ranks):
    """PyTorch with 16 pictures: one process with two threads, or two with one thread each."""
    check_torch(a)
    a.device = "cpu"
    layers, port = bench_sides.layers_of(a, NET, a.folder)[0], free_port()
    script = os.path.join(HERE, "torch_ddp.py")
    commands = [[a.torch_python, script, NET, layers, str(r), str(ranks), port, str(16 // ranks),
                 str(2 // ranks), str(steps)] for r in range(ranks)]
    return run_ranks(a, commands, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS=str(2 // ranks))
