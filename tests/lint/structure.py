#!/usr/bin/env python3
"""Checks rules of the source tree that a compiler does not check:

    structure.py SOURCE [LIBRARY]

- a folder of src/ includes lower ones only, in the order of folders.txt; with LIBRARY (libpumice.a)
  its functions call lower ones only;
- a file name occurs once in src, include, shaders and tests;
- a line has at most 100 columns, a file at most 600 lines.

Prints a line for each finding. Exits with 1 if there is one."""
import collections
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from source_files import source_files  # noqa: E402

CODE = (".c", ".h", ".def", ".cpp", ".comp", ".glsl", ".cmake", ".py", ".sh")
BY_NAME = ("CMakeLists.txt", "dev")
COLUMNS, LINES = 100, 600


def tracked(source):
    return [f for f in source_files(source)
            if f.endswith(CODE) or os.path.basename(f) in BY_NAME]


def lines_of(source, file):
    with open(os.path.join(source, file), encoding="utf-8") as f:
        return f.read().split("\n")


class Folders:
    """The folders of src/ in their order, and the exceptions, from folders.txt."""

    def __init__(self):
        self.rank, self.owner, self.allowed = {}, {}, {}
        for line in lines_of(HERE, "folders.txt"):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if words[0] in ("calls", "includes"):
                self.allowed[tuple(words[:3])] = False
                continue
            self.rank[words[0]] = len(self.rank)
            for header in words[1:]:
                self.owner[header] = words[0]

    def of_file(self, file):
        """The folder that a file of src/ or include/ belongs to; None for other files."""
        parts = file.split("/")
        if parts[0] == "include":
            return self.owner.get(parts[-1])
        return parts[1] if parts[0] == "src" and len(parts) > 2 else None

    def is_upward(self, low, high):
        return low in self.rank and high in self.rank and self.rank[high] > self.rank[low]

    def is_allowed(self, *key):
        if key in self.allowed:
            self.allowed[key] = True
        return key in self.allowed


def check_lists(folders, files):
    for file in files:
        folder = folders.of_file(file)
        if file.startswith("include/") and not folder:
            yield f"{file}: tests/lint/folders.txt does not say which folder implements it"
        if file.startswith("src/") and folder not in folders.rank:
            yield f"{file}: its folder is not in tests/lint/folders.txt"


def check_includes(source, folders, files):
    for file in files:
        here = folders.of_file(file)
        if not here or not file.endswith((".c", ".h", ".def")):
            continue
        for number, line in enumerate(lines_of(source, file), 1):
            found = re.match(r'#include ["<]([^">]+)/([^">/]+)[">]', line)
            if not found:
                continue
            folder, header = found.groups()
            there = folders.owner.get(header) if folder == "pumice" else folder.split("/")[0]
            short = file.split("/", 1)[1]
            if folders.is_upward(here, there) and not folders.is_allowed(
                    "includes", short, f"{folder}/{header}"):
                yield (f"{file}:{number}: includes {folder}/{header} of {there}, which is above "
                       f"{here} in tests/lint/folders.txt")


def check_calls(library, folders, files):
    """Finds calls of functions in higher folders. The name of an object file is that of its source,
    which is unique."""
    homes = {os.path.basename(f)[:-2]: folders.of_file(f) for f in files
             if f.startswith("src/") and f.endswith(".c")}
    defined, wanted = {}, collections.defaultdict(set)
    got = subprocess.run(["nm", "-A", "-P", library], stdout=subprocess.PIPE, text=True, check=True)
    for line in got.stdout.split("\n"):
        found = re.match(r".*\[(.+?)\.c\.o\]: (\S+) (\S)", line)
        if not found or found.group(1) not in homes:
            continue
        name, symbol, kind = found.group(1), found.group(2).split(".")[0], found.group(3)
        if kind == "U":
            wanted[name].add(symbol)
        elif kind.isupper() or kind == "i":
            defined.setdefault(symbol, name)
    if len(defined) < 500:
        yield f"{library}: {len(defined)} symbols of src/ found, more were expected"
    for name in sorted(wanted):
        for symbol in sorted(wanted[name]):
            here, there = homes[name], homes.get(defined.get(symbol))
            if folders.is_upward(here, there) and not folders.is_allowed("calls", here, symbol):
                yield (
                    f"src/{here}: {name}.c calls {symbol} of {there}/{defined[symbol]}.c, which is "
                    f"above {here} in tests/lint/folders.txt"
                )


def check_names(files):
    places = collections.defaultdict(list)
    for file in files:
        if file.split("/")[0] in ("src", "include", "shaders", "tests"):
            if os.path.basename(file) not in BY_NAME:
                places[os.path.basename(file)].append(file)
    for name, where in sorted(places.items()):
        if len(where) > 1:
            yield f"{name}: occurs {len(where)} times: {', '.join(where)}"


def check_sizes(source, files):
    for file in files:
        lines = lines_of(source, file)
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS:
                yield (f"{file}:{number}: {len(line)} columns, at most {COLUMNS} are allowed: "
                       "wrap it")
        if len(lines) - 1 > LINES:
            yield (f"{file}: {len(lines) - 1} lines, at most {LINES} are allowed: "
                   "split it, or make a table of it")


def main():
    source = sys.argv[1]
    files, folders = tracked(source), Folders()
    found = [*check_lists(folders, files), *check_includes(source, folders, files),
             *check_names(files), *check_sizes(source, files)]
    if len(sys.argv) > 2:
        found += check_calls(sys.argv[2], folders, files)
    for key, used in folders.allowed.items():
        if not used and (key[0] == "includes" or len(sys.argv) > 2):
            found.append(f"tests/lint/folders.txt: nothing needs the exception '{' '.join(key)}'")
    print("\n".join(found + [f"structure: {len(files)} files, {len(found)} findings"]))
    return 1 if found else 0


sys.exit(main())
