#!/usr/bin/env python3
"""Makes the pictures of README and docs from the demo runs:

    docs/images/make.py [PUMICE [FOLDER]]

FOLDER keeps data and runs, so that a second call makes only the pictures. The runs take about ten
minutes on two cores. The script needs chromium, which renders report.html and the sheets of
pictures, and tmux, which serves as the terminal. Every picture shows the program's own output;
nothing is painted over it."""
import base64
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PUMICE = os.path.abspath(
    sys.argv[1] if len(sys.argv) > 1 else os.path.join(SOURCE, "build/release/pumice")
)
WORK = os.path.abspath(
    sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp(prefix="pumice-images-")
)
IMAGES = os.path.join(SOURCE, "docs/images")
LARGEST = 300_000  # most bytes of a picture, which keeps clones of the repository small

CLASSES, SEGMENTS, INSTANCES, BOXES = (
    f"configs/shapes_{task}.json"
    for task in ("classification", "segmentation", "instances", "detection"))
LOW_RATE = ["schedule.base_lr=0.0003", "run.folder=runs/shapes_low_rate"]

STYLE = """body { margin: 20px; font: 15px/1.35 'DejaVu Sans', sans-serif }
body { color: #222; background: #fff }
.row { display: flex; gap: 14px; margin-bottom: 14px; align-items: flex-end }
figure { margin: 0 } figcaption { margin-top: 4px; text-align: center }
img { width: 192px; image-rendering: pixelated; display: block } .labelled img { width: auto }
.boxes img { width: 512px; image-rendering: auto }
.legend { list-style: none; display: flex; gap: 22px; padding: 0; margin: 0 }
.legend i { display: inline-block; width: 15px; height: 15px; border: 1px solid #888 }
.legend i { margin-right: 7px; vertical-align: -2px }
pre { margin: 0; font: 14px/1.3 'DejaVu Sans Mono', monospace; color: #ddd }
.terminal { background: #1b1d20; margin: 0; padding: 16px }"""


def pumice(*words):
    print("$ pumice", *words, flush=True)
    subprocess.run([PUMICE, *words], cwd=WORK, check=True, stdout=subprocess.DEVNULL)


def screenshot(page, name, width, height, scale=1.0):
    """Renders the top left width x height CSS pixels of the file `page` as IMAGES/name.png."""
    target = os.path.join(IMAGES, name + ".png")
    browser = next(
        (b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None
    )
    if browser is None:
        sys.exit("make.py: chromium is missing: install the package chromium")
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                f"--user-data-dir={profile}",
                f"--force-device-scale-factor={scale}",
                f"--window-size={width},{height}",
                "--virtual-time-budget=3000",
                "--run-all-compositor-stages-before-draw",
                f"--screenshot={target}",
                "file://" + page,
            ],
            check=True,
            stderr=subprocess.DEVNULL,
        )
    size = os.path.getsize(target)
    print(f"{target}: {size / 1000:.0f} kB")
    if size > LARGEST:
        sys.exit(f"make.py: {target} has {size} bytes, more than {LARGEST}: show less of the page")


def page(name, body, kind=""):
    """Writes WORK/name.html and returns its path."""
    path = os.path.join(WORK, name + ".html")
    with open(path, "w", encoding="utf-8") as out:
        out.write(
            f"<!doctype html><meta charset=utf-8><style>{STYLE}</style>"
            f"<body class='{kind}'>{body}</body>"
        )
    return path


def section(report, name):
    """Writes a copy of the page `report` that shows only one section. Returns its path."""
    path = os.path.join(WORK, name + ".html")
    with (
        open(os.path.join(WORK, report), encoding="utf-8") as page_in,
        open(path, "w", encoding="utf-8") as out,
    ):
        out.write(page_in.read() + f"<style>main > :not(#{name}) {{ display: none }}</style>")
    return path


def figure(file, caption=""):
    with open(os.path.join(WORK, file), "rb") as picture:
        data = base64.b64encode(picture.read()).decode()
    return (
        f"<figure><img src='data:image/png;base64,{data}'>"
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def rows(folder, kinds, names):
    """HTML with a row for each kind, given as (title, end of the file name), and a column for each
    picture."""
    return "".join(
        "<div class=row>"
        + "".join(
            figure(f"{folder}/{name}{end}" if end != ".png" else f"pictures/{name}.png", title)
            for name in names
        )
        + "</div>"
        for title, end in kinds
    )


def one_of_each_class():
    """Names of test pictures: for each class the first one predicted as that class."""
    result = subprocess.run(
        [PUMICE, "predict", CLASSES, "pictures", "--json"],
        cwd=WORK,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    first = {}
    for image in json.loads(result)["images"]:
        name = os.path.basename(image["file"]).removesuffix(".png")
        if name.startswith("shapes_test"):
            first.setdefault(image["name"], name)
    return sorted(first.values())


def most_objects(*classes):
    """Names of test pictures: for each class the picture with the most boxes of it."""
    result = subprocess.run([PUMICE, "predict", BOXES, "pictures", "--json"], cwd=WORK, check=True,
                            capture_output=True, text=True).stdout

    def boxes(image, name):
        return sum(box["name"] == name and box["score"] >= image["score_threshold"]
                   for box in image["boxes"])

    tests = [image for image in json.loads(result)["images"] if "shapes_test" in image["file"]]
    best = [max(tests, key=lambda image, name=name: boxes(image, name)) for name in classes]
    return [os.path.basename(image["file"]).removesuffix(".png") for image in best]


def legend(run):
    """The classes' colours, from the legend in the run's report.html."""
    with open(os.path.join(WORK, run, "report.html"), encoding="utf-8") as report:
        found = re.search(r'<ul class="legend swatches">.*?</ul>', report.read(), re.S)
    return found.group(0)


def train():
    os.makedirs(WORK, exist_ok=True)
    if not os.path.exists(os.path.join(WORK, "configs")):
        os.symlink(os.path.join(SOURCE, "configs"), os.path.join(WORK, "configs"))
    for config, rest in ((CLASSES, []), (CLASSES, LOW_RATE), (SEGMENTS, []), (INSTANCES, []),
                         (BOXES, [])):
        pumice("train", config, *rest)
        pumice("eval", config, *rest)
    pumice("dataset", "inspect", "data/shapes", "--records", "40", "--pictures", "pictures")
    for config, folder in ((CLASSES, "labelled"), (SEGMENTS, "painted"), (INSTANCES, "instances"),
                           (BOXES, "boxes")):
        pumice("predict", config, "pictures", "--out", folder)
    pumice(
        "report", "runs/shapes_classification", "runs/shapes_low_rate", "--out", "comparison.html"
    )


COLOURS = "#3b3d40 #e06c75 #98c379 #e5c07b #61afef #c678dd #56b6c2 #dcdfe4".split()


def coloured(text):
    """The text of `tmux capture-pane -e` as HTML: colours, bold and faint."""
    out, style = [], {}
    for piece in re.split(r"(\x1b\[[0-9;]*m)", text):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", piece)
        if not code:
            css = ";".join(style.values())
            out.append(f"<span style='{css}'>{html.escape(piece)}</span>")
            continue
        for n in (int(n or 0) for n in code.group(1).split(";")):
            if n == 0:
                style = {}
            elif n in (1, 2):
                style["weight"] = "font-weight:bold" if n == 1 else "opacity:.65"
            elif 30 <= n <= 37 or 90 <= n <= 97:
                style["colour"] = f"color:{COLOURS[n % 10]}"
            elif n == 39:
                style.pop("colour", None)
    return "".join(out)


def terminal():
    """Types the commands of the quick start into a terminal of 110 x 36 characters and makes a
    picture of its contents."""
    tmux = ["tmux", "-S", os.path.join(WORK, "tmux"), "-f", "/dev/null"]
    commands = ["clear", f"pumice train {CLASSES} run.folder=runs/terminal run.steps=300",
                f"pumice eval {CLASSES} run.folder=runs/terminal",
                f"pumice predict {CLASSES} run.folder=runs/terminal pictures/shapes_test_0000?.png"]
    shutil.rmtree(os.path.join(WORK, "runs/terminal"), ignore_errors=True)
    environment = dict(
        os.environ, PATH=os.path.dirname(PUMICE) + ":" + os.environ["PATH"], LC_ALL="C.UTF-8"
    )
    subprocess.run(
        [*tmux, "new-session", "-d", "-x", "110", "-y", "36", "env PS1='$ ' sh"],
        cwd=WORK,
        env=environment,
        check=True,
    )
    text = ""
    try:
        for command in commands:
            subprocess.run([*tmux, "send-keys", command, "Enter"], check=True)
            time.sleep(2)
            while text.splitlines()[-1:] != ["$"]:
                time.sleep(0.5)
                text = subprocess.run(
                    [*tmux, "capture-pane", "-e", "-p"], check=True, capture_output=True, text=True
                ).stdout.rstrip()
            text, shown = "", text
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
    text = shown.removesuffix("$").rstrip()
    lines = text.count("\n") + 1
    screenshot(
        page("terminal", f"<pre>{coloured(text)}</pre>", "terminal"),
        "terminal",
        960,
        lines * 18 + 40,
    )


def main():
    if not shutil.which("tmux"):
        sys.exit("make.py: tmux is missing: install the package tmux")
    train()
    report = os.path.join(WORK, "runs/shapes_classification/report.html")
    screenshot(report, "report", 1100, 900)
    screenshot(section("runs/shapes_low_rate/report.html", "evaluation"), "evaluation", 1100, 640)
    screenshot(os.path.join(WORK, "comparison.html"), "comparison", 1100, 900)
    names = one_of_each_class()
    labelled = (
        "<div class='row labelled'>"
        + "".join(figure(f"labelled/{name}.png") for name in names)
        + "</div>"
    )
    screenshot(page("labelled", labelled), "labelled", 1120, 330)
    kinds = [("picture", ".png"), ("overlay", "_overlay.png"), ("prediction", "_prediction.png")]
    screenshot(
        page("segmentation", rows("painted", kinds, names) + legend("runs/shapes_segmentation")),
        "segmentation",
        860,
        750,
    )
    kinds = [("picture", ".png"), ("classes", "_prediction.png"), ("instances", "_instances.png")]
    screenshot(page("instances", rows("instances", kinds, names) + legend("runs/shapes_instances")),
               "instances", 860, 750)
    row = "".join(figure(f"boxes/{name}.png") for name in most_objects("ring", "triangle"))
    screenshot(page("detection", f"<div class=row>{row}</div>", "boxes"), "detection", 1080, 555)
    terminal()
    print(f"data and runs are in {WORK}")


main()
