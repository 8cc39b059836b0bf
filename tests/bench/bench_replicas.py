"""Several processes: the exchange of gradients alone, and training, beside other programs.

    ./dev bench replicas [ROW ...] [--rounds N] [--steps N] [--out FILE]

In each round every side of a row runs once, so that other work on the machine disturbs all sides
alike. A round's figure is the median of its exchanges or steps. The command prints the median of
the rounds, the smallest and the largest, and whether each bar is reached. It writes all rounds to a
CSV file. Rows with hosts need root, ip and tc (tests/replicas/hosts.sh); sides of PyTorch need a
PyTorch with gloo (TORCH_PYTHON). What cannot run is "not measured", with the reason."""
import argparse
import datetime
import os
import statistics
import subprocess
import sys
import tempfile

import replica_sides as sides
from replica_sides import NotMeasured, Place
from side_by_side import machine_name

HERE = os.path.dirname(os.path.abspath(__file__))
EXCHANGES = 5  # of a side in a round


def exchange_sides(a, place, names):
    every = {
        "pumice": lambda: sides.exchange(place, EXCHANGES),
        "pumice bfloat16": lambda: sides.exchange(place, EXCHANGES, "bfloat16"),
        "MPI_Allreduce": lambda: sides.mpi(place, EXCHANGES),
        "MPI_Iallreduce": lambda: sides.mpi(place, EXCHANGES, "iallreduce"),
        "sockets": lambda: sides.sockets(place, EXCHANGES),
        "gloo": lambda: sides.gloo(place, EXCHANGES),
    }
    return {name: every[name] for name in names}


def training_sides(a, _):
    return {
        "one process": lambda: sides.train(a, a.steps, clones=2),
        "memory": lambda: sides.train(a, a.steps, place=Place(a, "memory")),
        "tcp": lambda: sides.train(a, a.steps, place=Place(a, "tcp")),
    }


def host_training_sides(a, place):
    """32 pictures: then a step computes about twice as long as it exchanges."""
    return {
        "apart": lambda: sides.train_apart(place, a.steps, batch=16),
        "together": lambda: sides.train(a, a.steps, batch=32, place=place),
        "exchange alone": lambda: sides.exchange(place, 2),
    }


def torch_sides(a, _):
    return {
        "pumice": lambda: sides.train(a, a.steps, threads=2),
        "pumice, 2 ranks": lambda: sides.train(a, a.steps, place=Place(a, "tcp")),
        "pytorch": lambda: sides.torch_train(a, a.steps, 1),
        "pytorch, 2 ranks": lambda: sides.torch_train(a, a.steps, 2),
    }


def ratio(side, other, quantity="seconds"):
    return lambda m: m(side, quantity) / m(other, quantity)


def exchange(*names):
    return lambda a, place: exchange_sides(a, place, names)


# name: (what it is, (place, ranks), sides, bars). A bar: text, figure, largest; or, if the fourth
# is True, smallest value.
ROWS = {
    "memory": (
        "exchange of 105 MB, 2 ranks, shared memory", ("memory", 2),
        exchange("pumice", "pumice bfloat16", "MPI_Allreduce", "MPI_Iallreduce"),
        [("seconds / MPI_Allreduce", ratio("pumice", "MPI_Allreduce"), 1),
         ("processor ms of the exchange thread", lambda m: 1e3 * m("pumice", "cpu"), 45),
         ("waiting, % of a core", lambda m: 100 * m("pumice", "waiting"), 1),
         ("idle, % of a core", lambda m: 100 * m("pumice", "idle"), 1)]),
    "tcp": (
        "the same, TCP of one machine", ("tcp", 2),
        exchange("pumice", "pumice bfloat16", "MPI_Allreduce", "MPI_Iallreduce", "sockets",
                 "gloo"),
        [("seconds / MPI_Allreduce", ratio("pumice", "MPI_Allreduce"), 1),
         ("seconds / gloo", ratio("pumice", "gloo"), 1.1),
         ("processor ms of the exchange thread", lambda m: 1e3 * m("pumice", "cpu"), 70),
         ("waiting, % of a core", lambda m: 100 * m("pumice", "waiting"), 1)]),
    "hosts": (
        "the same, 2 hosts at 1 Gbit/s", ("1gbit", 2),
        exchange("pumice", "pumice bfloat16", "MPI_Allreduce", "MPI_Iallreduce", "sockets",
                 "gloo"),
        [("seconds / sockets", ratio("pumice", "sockets"), 1.05),
         ("seconds / gloo", ratio("pumice", "gloo"), 1.05),
         ("seconds / MPI_Iallreduce", ratio("pumice", "MPI_Iallreduce"), 0.55),
         ("bfloat16 / float32", ratio("pumice bfloat16", "pumice"), 0.55)]),
    "four_hosts": (
        "exchange of 105 MB, 4 hosts at 1 Gbit/s", ("1gbit", 4), exchange("pumice", "gloo"),
        [("seconds / 1.26", lambda m: m("pumice", "seconds") / 1.26, 1.25)]),
    "training": (
        "resnet_v1_50, 16 of 224x224: 2 ranks x 1 thread, 1 process with 2 clones x 1 thread",
        ("memory", 2), training_sides,
        [("speed by shared memory / one process", ratio("one process", "memory"), 0.97, True),
         ("speed by TCP / one process", ratio("one process", "tcp"), 0.95, True)]),
    "training_hosts": (
        "resnet_v1_50, 32 of 224x224: 2 hosts at 1 Gbit/s, together and without exchange",
        ("1gbit", 2), host_training_sides,
        [("seconds of a step without exchange / of the exchange alone (about 2)",
          ratio("apart", "exchange alone"), 1.8, True),
         ("speed / speed without exchange", ratio("apart", "together"), 0.93, True)]),
    "ddp": (
        "resnet_v1_50, 16 of 224x224: 2 ranks by TCP, 1 process x 2 threads, beside PyTorch",
        ("tcp", 2), torch_sides,
        [("factor over PyTorch with 2 ranks / with one process",
          lambda m: m("pytorch, 2 ranks", "seconds") / m("pumice, 2 ranks", "seconds")
          / (m("pytorch", "seconds") / m("pumice", "seconds")), 0.97, True)]),
}


def arguments():
    p = argparse.ArgumentParser(prog="./dev bench replicas", description=__doc__.split("\n")[0])
    p.add_argument("rows", nargs="*", metavar="ROW", help="of " + ", ".join(ROWS) + "; default all")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=6, help="training steps of a side in a round")
    p.add_argument("--build", default=os.path.join(HERE, "../../build/release"))
    p.add_argument("--torch-python", default=os.environ.get("TORCH_PYTHON", "/usr/bin/python3"))
    p.add_argument("--out", help="CSV; default tests/bench/results/replicas-MACHINE.csv")
    a = p.parse_args()
    for name in a.rows:
        if name not in ROWS:
            p.error(f"no row '{name}'; there are {', '.join(ROWS)}")
    if a.rounds < 1 or a.steps < 1:
        p.error("--rounds and --steps must be at least 1")
    a.build = os.path.abspath(a.build)
    a.pumice = os.path.join(a.build, "pumice")
    if not os.path.exists(os.path.join(a.build, "tests/replica_exchange")):
        sys.exit("bench: the programs of this benchmark were not built: they need MPI "
                 "(libopenmpi-dev, openmpi-bin)")
    return a


def measure(a, name):
    """Returns {side: {quantity: [figure of each round]}} and {side: why it was not measured}."""
    what, (kind, count), make, _ = ROWS[name]
    figures, missing = {}, {}
    print(f"{name}: {what}", flush=True)
    with Place(a, kind, count) as place:
        for i in range(a.rounds):
            for side, run in make(a, place).items():
                if side in missing:
                    continue
                try:
                    found = run()
                except NotMeasured as e:
                    missing[side] = str(e)
                    print(f"    {side}: not measured: {e}", flush=True)
                    continue
                of_side = figures.setdefault(side, {})
                for quantity, v in found.items():
                    if quantity != "ranks":
                        of_side.setdefault(quantity, []).append(
                            statistics.median(v) if isinstance(v, list) else v)
                print(f"    round {i + 1}: {side:18} {1e3 * of_side['seconds'][-1]:9.1f} ms",
                      flush=True)
    return figures, missing


def text_of_bar(bar, figures):
    text, figure, limit, *smallest = bar
    sign = ">=" if smallest else "<="
    try:
        value = figure(lambda side, quantity: statistics.median(figures[side][quantity]))
    except KeyError as e:
        return f"{text}: not measured (no {e.args[0]})"
    reached = value >= limit if smallest else value <= limit
    return f"{text}: {value:.3f} {sign} {limit}: {'reached' if reached else 'MISSED'}"


def summary(name, figures):
    lines = []
    for side, quantities in figures.items():
        for quantity, v in quantities.items():
            unit = {"waiting": 100, "idle": 100}.get(quantity, 1e3)
            lines.append(f"{side:18} {quantity:18} {unit * statistics.median(v):9.2f} "
                         f"({unit * min(v):.2f} to {unit * max(v):.2f}) "
                         f"{'%' if unit == 100 else 'ms'}")
    return lines + [text_of_bar(bar, figures) for bar in ROWS[name][3]]


def write_csv(a, results):
    slug = "-".join(machine_name().lower().split())
    path = a.out or os.path.join(HERE, "results", f"replicas-{slug}.csv")
    load = os.getloadavg()[2]
    version = subprocess.run(["mpirun", "--version"], stdout=subprocess.PIPE,
                             text=True).stdout.splitlines()[0]
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"# ./dev bench replicas {' '.join(sys.argv[1:])}".rstrip() + "\n")
        f.write(f"# {datetime.date.today()}, {machine_name()}, {os.cpu_count()} cores, {version}; "
                f"mean load of the last 15 minutes {load:.1f}\n")
        for name, (figures, missing) in results.items():
            f.write(f"# {name}: {ROWS[name][0]}\n")
            f.writelines(f"#   {side}: not measured: {why}\n" for side, why in missing.items())
            f.writelines(f"#   {line}\n" for line in summary(name, figures))
        f.write("row,side,quantity,round,seconds\n")
        for name, (figures, _) in results.items():
            for side, quantities in figures.items():
                for quantity, v in quantities.items():
                    f.writelines(f'{name},"{side}",{quantity},{i},{x:.6f}\n'
                                 for i, x in enumerate(v, 1))
    return path


def main():
    a = arguments()
    os.environ["HOSTS_NAME"] = f"bench-{os.getpid()}"
    results = {}
    with tempfile.TemporaryDirectory() as a.folder:
        for name in a.rows or ROWS:
            try:
                results[name] = measure(a, name)
            except NotMeasured as e:
                results[name] = ({}, {"all sides": str(e)})
                print(f"    not measured: {e}", flush=True)
            for line in summary(name, results[name][0]):
                print("    " + line, flush=True)
            path = write_csv(a, results)  # an interrupted measurement keeps the finished rows
    print(f"written: {os.path.relpath(path)}")


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as e:
        sys.exit(f"bench: {e}")
