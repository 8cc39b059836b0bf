"""Makes the table of measured GPUs in README.md from tests/bench/results/gpu-*.csv.

    gpu_table.py [--update] [README [FOLDER]]

Without --update it only compares: the exit code is 1 if the page's table is not the one of the
files. gpu_report.py writes the files. Those of software drivers are left out."""
import csv
import glob
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BEGIN, END = "<!-- measured GPUs, made by tests/bench/gpu_table.py -->", "<!-- end -->"
NETS = ["resnet_v1_50", "mobilenet_v2", "deeplab_mobilenet_v2"]


def read(path):
    """Returns {(part, name): [rows]} of a file."""
    rows = {}
    with open(path, encoding="utf-8") as f:
        for row in csv.DictReader(line for line in f if not line.startswith("#")):
            rows.setdefault((row["part"], row["name"]), []).append(row)
    return rows


def value(rows, part, name):
    return rows.get((part, name), [{"value": ""}])[0]["value"]


def net_cell(rows, net):
    """"520 (32), 1.20": images per second, the batch, and the factor over PyTorch."""
    steps = {r["value"]: r for r in rows.get(("step", net), [])}
    ours, theirs = steps.get("pumice"), steps.get("pytorch")
    if not ours:
        return "-"
    text = f"{float(ours['images_per_second']):.4g} ({ours['batch']})"
    if theirs and theirs["batch"] == ours["batch"]:
        text += f", {float(theirs['ms_median']) / float(ours['ms_median']):.2f}"
    return text


def line(path):
    rows = read(path)
    cells = [value(rows, "device", "name"), value(rows, "device", "driver"),
             value(rows, "verify", "verdict"), *(net_cell(rows, net) for net in NETS)]
    return "| " + " | ".join(c.replace("|", "/") or "-" for c in cells) + " |"


def table(folder):
    paths = [p for p in sorted(glob.glob(os.path.join(folder, "gpu-*.csv")))
             if value(read(p), "device", "kind") != "software"]
    if not paths:
        return "No measurement of a GPU has been received yet.\n"
    names = " | ".join(f"`{net}`" for net in NETS)
    head = (f"| GPU | driver | `pumice verify` | {names} |\n"
            f"|---|---|---|{'---|' * len(NETS)}\n")
    note = ("\nImages per second in training (batch), and how many times as fast as PyTorch on the "
            "same GPU, if it was measured.\n")
    return head + "".join(line(p) + "\n" for p in paths) + note


def replaced(page, folder):
    """The page with the table of the folder's files."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"gpu_table: the page lacks '{BEGIN}' or '{END}' after it")
    return f"{before}{begin}\n\n{table(folder)}\n{end}{after}"


def main():
    words = [w for w in sys.argv[1:] if w != "--update"]
    path = words[0] if words else os.path.join(HERE, "../../README.md")
    folder = words[1] if len(words) > 1 else os.path.join(HERE, "results")
    with open(path, encoding="utf-8") as f:
        page = f.read()
    new = replaced(page, folder)
    if new == page:
        print("the table of measured GPUs is that of the files")
    elif "--update" in sys.argv:
        with open(path, "w", encoding="utf-8") as f:
            f.write(new)
        print(f"{os.path.relpath(path)}: written")
    else:
        sys.exit("README.md: the table of measured GPUs is not that of tests/bench/results; run "
                 "python3 tests/bench/gpu_table.py --update")


if __name__ == "__main__":
    main()
