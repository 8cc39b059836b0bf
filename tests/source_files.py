"""The files of the repository, for checks that read all of them."""
import os
import subprocess

NOT_SOURCES = ("build", "runs", "data", "__pycache__")


def _by_git(root):
    try:
        got = subprocess.run(
            ["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return None
    return got.stdout.splitlines() if got.returncode == 0 else None


def _by_walk(root):
    found = []
    for folder, folders, files in os.walk(root):
        top = os.path.samefile(folder, root)
        folders[:] = [f for f in folders if not f.startswith(".")
                      and not (f == "__pycache__" or top and f in NOT_SOURCES)]
        found += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    return found


def source_files(root):
    """Paths of existing files relative to root, sorted. Without git, or outside a clone: all files
    but those of hidden folders, builds, data and runs."""
    paths = _by_git(root)
    if paths is None:
        paths = _by_walk(root)
    return sorted(p for p in set(paths) if os.path.isfile(os.path.join(root, p)))
