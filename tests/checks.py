"""What the checks in Python share: a failure is one line and exit code 1; the program that is checked is the
script's first argument."""
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
    """What the program prints, which must end well: .stdout and .stderr. settings: more of subprocess.run's."""
    got = subprocess.run(
        [PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings
    )
    check(got.returncode == 0, f"{' '.join(arguments)}: exit code {got.returncode}: {got.stderr}")
    return got
