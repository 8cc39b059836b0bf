"""Functions that the checks in Python share. A failed check prints one line and exits with code 1.
The script's first argument is the program under test."""
import os
import subprocess
import sys

NAME = os.path.splitext(os.path.basename(sys.argv[0]))[0]
PROGRAM = os.path.abspath(sys.argv[1])


def fail(text):
    print(f"{NAME}: {text}", flush=True)
    sys.exit(1)


def check(good, text):
    if not good:
        fail(text)


def pumice(*arguments, **settings):
    """Runs the program and fails unless it exits with code 0. Returns .stdout and .stderr as text.
    settings: further arguments of subprocess.run."""
    got = subprocess.run(
        [PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings
    )
    check(got.returncode == 0, f"{' '.join(arguments)}: exit code {got.returncode}: {got.stderr}")
    return got
