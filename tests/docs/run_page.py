"""Runs the code blocks of pages as a reader would:

    run_page.py PUMICE [--long] PAGE ...

PUMICE is the program. The blocks of a page run in a folder of their own, which fixtures.py fills.
With --long, blocks marked "long" run too. tests/docs/README.md explains how a page marks its
blocks. A failure names page and line."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import fixtures
import pages

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BASES = ("configs/shapes_classification.json", "configs/shapes_segmentation.json")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e[-+]?\d+)?")
SECONDS = 300


class Run:
    """One page in its folder."""

    def __init__(self, page, folder, pumice, long):
        self.page, self.long = page, long
        self.work, self.bin = os.path.join(folder, "work"), os.path.join(folder, "bin")
        os.mkdir(self.work)
        os.mkdir(self.bin)
        if any(
            b.language in ("sh", "setup", "json") and "not run" not in b.marks for b in page.blocks
        ):
            fixtures.make(self.work, SOURCE, pumice)
        fixtures.write_wrapper(os.path.join(self.bin, "pumice"), pumice, page.tiny)
        self.environment = dict(
            os.environ,
            PATH=f"{self.bin}:{os.environ['PATH']}",
            HOME=folder,
            XDG_CACHE_HOME=os.path.join(folder, "cache"),
            OMP_WAIT_POLICY="passive",
            PUMICE_SOURCE=SOURCE,
            PUMICE_BUILD=os.path.dirname(pumice),
        )
        self.environment.pop("PM_LOG", None)
        self.printed = None   # by the last block that was run

    def shell(self, text, line):
        """Runs `text` with bash; line: the number of its first line in the page. Returns the exit
        code, the line of the page that failed (or `line`), and the output."""
        script = os.path.join(self.bin, "block.sh")
        ended = os.path.join(self.bin, "ended")
        with open(script, "w", encoding="utf-8") as f:
            f.write(
                f"set -Eeuo pipefail; trap 'echo $LINENO >{ended}' ERR" + "\n" * (line - 1) + text
            )
        with open(ended, "w", encoding="utf-8") as f:
            f.write(str(line))
        got = subprocess.run(
            ["bash", script],
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )
        with open(ended, encoding="utf-8") as f:
            return got.returncode, int(f.read()), got.stdout.decode("utf-8", "replace")

    def commands(self, block):
        wanted = int(block.marks.get("fails", 0))
        start = time.monotonic()
        code, line, self.printed = self.shell(block.text, block.line)
        print(f"{block.place()}: {time.monotonic() - start:.1f} s, exit code {code}", flush=True)
        if code != wanted:
            tail = "\n".join("    " + l for l in self.printed.splitlines()[-15:])
            raise pages.PageError(
                f"{block.place(line)}: exit code {code}, expected {wanted}; the output ends with\n"
                f"{tail}"
            )

    def check_config(self, block, name):
        code, _, printed = self.shell(f"pumice config check '{name}'\n", block.line)
        if code != 0:
            return printed.strip()
        return None

    def whole_file(self, block):
        path = os.path.join(self.work, block.marks["file"])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(block.text)
        if path.endswith(".json"):
            wrong = self.check_config(block, block.marks["file"])
            if wrong:
                raise pages.PageError(f"{block.place()}: {wrong}")

    def piece(self, block):
        """Checks part of a config: merged over a base, it must be a valid config."""
        text = block.text.strip()
        if not text.startswith("{") and not text.startswith("//"):
            text = "{" + re.sub(r",(\s*(?://[^\n]*)?)$", r"\1", text) + "\n}"
        wrong = []
        for base in [block.marks["base"]] if "base" in block.marks else BASES:
            with open(os.path.join(self.work, "piece.json"), "w", encoding="utf-8") as f:
                f.write(text)
            with open(os.path.join(self.work, "whole.json"), "w", encoding="utf-8") as f:
                json.dump({"base": [base, "piece.json"]}, f)
            wrong.append(self.check_config(block, "whole.json"))
            if wrong[-1] is None:
                return
        raise pages.PageError(
            f"{block.place()}: this part of a config is refused: {'; '.join(wrong)}"
        )

    def output(self, block):
        """Checks that each line of the block was printed, in this order. A number matches any
        number, "..." matches anything."""
        if self.printed is None:
            return  # the output of a block that was not run
        printed = [" ".join(line.split()) for line in re.split(r"[\r\n]", self.printed)]
        at = 0
        for number, line in enumerate(block.text.splitlines()):
            line = " ".join(line.split())
            if line in ("", "..."):
                continue
            parts = [NUMBER.sub("\0", part) for part in re.split(r"\s*\.\.\.\s*", line)]
            pattern = re.compile(
                ".*".join(
                    re.escape(part).replace(re.escape("\0"), NUMBER.pattern) for part in parts
                )
            )
            while at < len(printed) and not pattern.search(printed[at]):
                at += 1
            if at == len(printed):
                raise pages.PageError(
                    f"{block.place(block.line + number)}: '{line}' was not printed (or not in this "
                    f"order); the output was\n{self.printed[:4000]}"
                )
            at += 1

    def block(self, block):
        if block.language in ("sh", "setup") and "not run" not in block.marks:
            if "long" in block.marks and not self.long:
                self.printed = None
                return
            self.commands(block)
        elif block.language == "sh":
            self.printed = None
        elif "file" in block.marks:
            self.whole_file(block)
        elif block.language == "json" and "not checked" not in block.marks:
            self.piece(block)
        elif "output" in block.marks:
            self.output(block)


def main():
    arguments = sys.argv[1:]
    long = "--long" in arguments
    pumice, *paths = [a for a in arguments if a != "--long"]
    failed = 0
    for path in paths:
        path = os.path.relpath(os.path.abspath(path), SOURCE)
        with tempfile.TemporaryDirectory(prefix="pumice-docs-") as folder:
            try:
                page = pages.read(SOURCE, path)
                run = Run(page, folder, os.path.abspath(pumice), long)
                for block in page.blocks:
                    run.block(block)
            except (pages.PageError, subprocess.TimeoutExpired) as e:
                print(e, flush=True)
                failed = 1
    sys.exit(failed)


main()
