"""Checks all pages without running their commands:

    check_pages.py PUMICE [ROOT]

ROOT is the repository. Targets of links and #anchors must exist. Commands, flags and config keys in
the text must exist. Every code block must have a known language and known marks."""
import os
import re
import subprocess
import sys

import pages

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^\s*\[[^\]]+\]:\s*(\S+)")
HTML = re.compile(r"<(?:a|img|source)\s[^>]*?\b(?:href|src|srcset)=\"([^\"]+)\"")
CODE = re.compile(r"(`+)(.+?)\1")
SECTIONS = "model|data|input|loss|optim|schedule|init|run|eval|export"
KEY = re.compile(rf"(?:{SECTIONS})(?:\.[a-z][a-z0-9_]*)+")
FILE_ENDS = (".c", ".h", ".md", ".json", ".yaml", ".py", ".txt", ".onnx", ".ckpt", ".csv")
LANGUAGES = ("sh", "json", "c", "python", "text", "glsl", "cmake", "setup")


def slug(heading):
    """The anchor that GitHub gives to a heading."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return "".join(
        "-" if c == " " else c for c in text.strip().lower() if c.isalnum() or c in " -_"
    )


def anchors(page):
    seen, found = {}, set()
    for _, line in page.prose:
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            name = slug(heading.group(1))
            count = seen.get(name, 0)
            seen[name] = count + 1
            found.add(f"{name}-{count}" if count else name)
        found.update(re.findall(r"<a\s+(?:id|name)=\"([^\"]+)\"", line))
    return found


class Checker:
    def __init__(self, root, pumice):
        self.root, self.pumice = root, pumice
        self.pages = {path: pages.read(root, path) for path in pages.all_pages(root)}
        self.helps, self.wrong = {}, []
        keys = self.output("config", "schema", "--markdown", "keys")
        self.keys = set(re.findall(r"^\| `([^`]+)` \|", keys, re.M))
        self.commands = re.findall(r"^  ([a-z]+) +\S", self.output("help"), re.M)

    def output(self, *arguments):
        return subprocess.run(
            [self.pumice, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        ).stdout

    def report(self, path, line, text):
        self.wrong.append(f"{path}:{line}: {text}")

    def link(self, path, line, target):
        if re.match(r"[a-z][a-z+.-]*:", target):
            return
        name, _, anchor = target.partition("#")
        to = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if name.startswith("/") or to.startswith(".."):
            self.report(path, line, f"the link {target} leads out of the repository")
        elif not os.path.exists(os.path.join(self.root, to)):
            self.report(path, line, f"the link {target} leads to no file")
        elif anchor and to not in self.pages:
            self.report(path, line, f"the link {target} names an anchor in a file that is no page")
        elif anchor and anchor not in anchors(self.pages[to]):
            self.report(path, line, f"the link {target}: {to} has no heading for #{anchor}")

    def inline(self, path, line, code):
        words = code.split()
        if words[0] == "pumice" and len(words) > 1 and re.fullmatch("[a-z]+", words[1]):
            if words[1] not in self.commands + ["help"]:
                self.report(path, line, f"`{code}`: pumice has no command {words[1]}")
                return
            if words[1] not in self.helps:
                self.helps[words[1]] = self.output(words[1], "--help")
            for flag in re.findall(r"(?<!\S)--[a-z-]+", code):
                if flag not in self.helps[words[1]] and flag not in ("--help", "--json"):
                    self.report(path, line, f"`{code}`: pumice {words[1]} --help has no {flag}")
        key = KEY.match(code)
        if (
            key
            and not key.group(0).endswith(FILE_ENDS)
            and (key.end() == len(code) or code[key.end()] in "=:")
        ):
            if key.group(0) not in self.keys and not any(
                k.startswith(key.group(0) + ".") for k in self.keys
            ):
                if not key.group(0).startswith("model.layers."):
                    self.report(path, line, f"`{code}`: there is no key {key.group(0)}")

    def block(self, b):
        if b.language not in LANGUAGES:
            self.report(
                b.page,
                b.line - 1,
                f"a code block is one of {', '.join(LANGUAGES[:-1])}, not '{b.language}'",
            )
        if (
            b.language in ("c", "python", "glsl", "cmake")
            and not {"file", "not run"} & b.marks.keys()
        ):
            self.report(
                b.page,
                b.line - 1,
                f"a {b.language} block needs <!-- file: NAME --> or <!-- not run: REASON -->",
            )
        if b.language == "sh" and re.search(r"^\$ ", b.text, re.M):
            self.report(b.page, b.line, "commands stand without a prompt")
        if (
            b.language == "text"
            and re.search(r"^\s*(?:\$ )?pumice (?!.*:)", b.text, re.M)
            and "output" not in b.marks
        ):
            self.report(b.page, b.line, "commands stand in a block of sh")

    def page(self, page):
        before = ""
        for line, text in page.prose:
            if re.match(r" {4,}(?:\$ |pumice |\./dev |ctest |cmake )", text) and not re.match(
                r"\s*(?:[-*+]|\d+\.) ", before
            ):
                self.report(page.path, line, "commands stand in a block of ```sh")
            before = text
            of_others = page.path == "docs/migrating.md" and text.startswith(
                "| `"
            )  # names of other programs
            for _, code in CODE.findall(text):
                if code.strip() and not of_others:
                    self.inline(page.path, line, code.strip())
            plain = CODE.sub("x", text)
            for target in LINK.findall(plain) + REFERENCE.findall(plain) + HTML.findall(plain):
                self.link(page.path, line, target)
        for block in page.blocks:
            self.block(block)

    def run(self):
        for page in self.pages.values():
            self.page(page)
        for line in self.wrong:
            print(line)
        print(f"{len(self.pages)} pages, {len(self.wrong)} mistakes")
        return 1 if self.wrong or not self.pages else 0


try:
    sys.exit(
        Checker(sys.argv[2] if len(sys.argv) > 2 else SOURCE, os.path.abspath(sys.argv[1])).run()
    )
except pages.PageError as e:
    sys.exit(str(e))
