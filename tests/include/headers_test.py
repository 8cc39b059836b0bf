#!/usr/bin/env python3
"""Checks that every public header compiles without a warning, as C11 and as C++11: alone, included
twice, and together with all others. cplusplus_test.cpp, which calls the library from C++, must
include all of them.

    headers_test.py SOURCE CC [CXX]"""
import glob
import os
import subprocess
import sys

C = ["-x", "c", "-std=c11"]
CPLUSPLUS = ["-x", "c++", "-std=c++11"]


def compiles(command, text):
    got = subprocess.run(
        command + ["-"], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if got.returncode != 0:
        print(f"{' '.join(command)}\n{text}{got.stdout}")
    return got.returncode == 0


def main():
    source, compilers = sys.argv[1], sys.argv[2:]
    folder = os.path.join(source, "include")
    names = sorted(
        os.path.relpath(p, folder) for p in glob.glob(os.path.join(folder, "pumice", "*.h"))
    )
    lines = [f"#include <{name}>\n" for name in names]
    good = len(names) > 20
    for compiler, language in zip(compilers, (C, CPLUSPLUS)):
        command = [
            compiler,
            *language,
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-fsyntax-only",
            "-I",
            folder,
        ]
        for line in lines:
            good &= compiles(command, line + line)
        good &= compiles(command, "".join(lines)) and compiles(command, "".join(reversed(lines)))
    with open(
        os.path.join(source, "tests", "include", "cplusplus_test.cpp"), encoding="utf-8"
    ) as f:
        program = f.read()
    for line in lines:
        if line not in program:
            print(f"cplusplus_test.cpp lacks {line}", end="")
            good = False
    what = " and ".join(("C", "C++")[:len(compilers)])
    print(f"{len(names)} headers as {what}: {'good' if good else 'NOT good'}")
    return 0 if good else 1


sys.exit(main())
