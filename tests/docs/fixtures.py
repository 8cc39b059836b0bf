"""Files for the commands of the pages: small pictures, label maps and instance maps, the
repository's configs, a data set of drawn shapes, and a script `pumice` that trains for a few steps
only. All pictures are drawn from fixed seeds."""
import os
import random
import shlex
import shutil
import struct
import subprocess
import zlib

SIDE = 64
CLASSES = ("ground", "car", "tree", "sign")
FEW = ("run.steps=4", "run.batch_size=4", "run.log_every_steps=1")


def write_png(path, rows, channels):
    """rows: the bytes of each row; channels: 1 for grey, 3 for RGB."""
    def part(kind, body):
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    head = struct.pack(
        ">IIBBBBB", len(rows[0]) // channels, len(rows), 8, 0 if channels == 1 else 2, 0, 0, 0
    )
    with open(path, "wb") as f:
        f.write(
            b"\x89PNG\r\n\x1a\n"
            + part(b"IHDR", head)
            + part(b"IDAT", zlib.compress(b"".join(b"\0" + r for r in rows)))
            + part(b"IEND", b"")
        )


def draw(seed, count):
    """Draws a picture of `count` filled boxes. Returns the rows of the picture, of its label map
    and of its instance map, which numbers the boxes from 1."""
    r = random.Random(seed)
    picture = [bytearray(r.randrange(40, 90) for _ in range(3)) * SIDE for _ in range(SIDE)]
    labels = [bytearray(SIDE) for _ in range(SIDE)]
    numbers = [bytearray(SIDE) for _ in range(SIDE)]
    for k in range(count):
        kind, width, height = 1 + k % (len(CLASSES) - 1), r.randrange(12, 28), r.randrange(12, 28)
        top, left = r.randrange(SIDE - height), r.randrange(SIDE - width)
        for y in range(top, top + height):
            colour = bytes((80 * kind - 20, 250 - 70 * kind, 60 + 40 * kind))
            picture[y][3 * left:3 * (left + width)] = colour * width
            labels[y][left:left + width] = bytes((kind,)) * width
            numbers[y][left:left + width] = bytes((k + 1,)) * width
    return picture, labels, numbers


def make(folder, source, pumice):
    """Fills `folder`, the working directory of a page's commands. source: the repository."""
    shutil.copytree(os.path.join(source, "configs"), os.path.join(folder, "configs"))
    for kind, count in (("ants", 1), ("bees", 3)):
        os.makedirs(os.path.join(folder, "photos", kind))
        for i in range(12):
            write_png(
                os.path.join(folder, "photos", kind, f"{kind}{i:02}.png"),
                draw(100 * count + i, count)[0],
                3,
            )
    for part in ("images", "labels", "instances"):
        os.makedirs(os.path.join(folder, "scenes", part))
    for i in range(8):
        for part, rows, channels in zip(("images", "labels", "instances"), draw(i, 4), (3, 1, 1)):
            write_png(os.path.join(folder, "scenes", part, f"scene{i}.png"), rows, channels)
    with open(os.path.join(folder, "scenes", "names.txt"), "w", encoding="utf-8") as f:
        f.write("".join(name + "\n" for name in CLASSES))
    os.makedirs(os.path.join(folder, "pictures"))
    for i in range(3):
        shutil.copy(
            os.path.join(folder, "scenes", "images", f"scene{i}.png"),
            os.path.join(folder, "pictures"),
        )
    subprocess.run(
        [
            pumice,
            "-q",
            "dataset",
            "make",
            "shapes",
            os.path.join(folder, "data", "shapes"),
            "train=40",
            "validation=20",
            "test=20",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def write_wrapper(path, pumice, tiny):
    """Writes a script that runs `pumice` with more overrides: the list FEW for commands that train
    or measure, the list `tiny` for every command that reads a config. Other commands run
    unchanged."""
    few, tiny = " ".join(map(shlex.quote, FEW)), " ".join(map(shlex.quote, tiny))
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"""#!/bin/sh
case " $* " in
*" --help "*) exec {shlex.quote(pumice)} "$@" ;;
esac
case "$1 ${{2:-}}" in
"bench kernels") ;;
"train "* | "sweep "* | "lr-find "* | "profile "* | "bench "*) set -- "$@" {few} {tiny} ;;
"eval "* | "predict "* | "export "* | "config check" | "config show") set -- "$@" {tiny} ;;
esac
exec {shlex.quote(pumice)} "$@"
""")
    os.chmod(path, 0o755)
