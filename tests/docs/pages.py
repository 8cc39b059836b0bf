"""Reads Markdown pages: code blocks with the comments that mark them, headings, links, inline code.

A comment directly before a code block tells the tests what to do with the block.
tests/docs/README.md lists the comments."""

import dataclasses
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from source_files import source_files  # noqa: E402

MARKS = ("not run", "long", "fails", "file", "output", "not checked", "base")
COMMENT = re.compile(r"<!--\s*(.*?)\s*-->", re.S)


class PageError(Exception):
    """The page is written wrongly: "PAGE:LINE: what"."""


@dataclasses.dataclass
class Block:
    page: str
    line: int            # of the first line of its text, from 1
    language: str        # "sh", "json", ...; "setup" for commands in a comment
    text: str
    marks: dict          # name to value: {"fails": "2"}

    def place(self, line=None):
        return f"{self.page}:{line or self.line}"


@dataclasses.dataclass
class Page:
    path: str
    blocks: list         # Block, in order
    prose: list          # (line number, text without code blocks and comments)
    tiny: list           # overrides for every command that reads a config


def all_pages(root):
    """Paths of all pages of the repository, relative to root."""
    return [path for path in source_files(root) if path.endswith(".md")]


def _marks(comments, page):
    """The marks in the comments before a block, such as {"fails": "2"}."""
    marks = {}
    for line, comment in comments:
        name, _, value = comment.partition(":")
        name, value = name.strip(), " ".join(value.split())
        if name not in MARKS:
            raise PageError(
                f"{page}:{line}: '{name}' marks no block; there are: {', '.join(MARKS)}"
            )
        if name in ("not run", "not checked", "file", "fails", "base") and not value:
            raise PageError(f"{page}:{line}: '{name}' needs a text after the colon")
        marks[name] = value
    return marks


def _comment(lines, i):
    """Reads the comment that begins at line i. Returns its text and the index of its last line; the
    text is None when the comment has no end."""
    end = i
    while "-->" not in lines[end]:
        end += 1
        if end == len(lines):
            return None, i
    return COMMENT.match("\n".join(lines[i:end + 1]).lstrip()).group(1), end


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        lines = f.read().split("\n")
    page = Page(path, [], [], [])
    comments, i = [], 0
    while i < len(lines):
        line = lines[i]
        fence = re.match(r"^(\s*)(`{3,}|~{3,})\s*(\S*)", line)
        if line.lstrip().startswith("<!--"):
            first = i + 1
            text, i = _comment(lines, i)
            if text is None:
                raise PageError(f"{path}:{first}: the comment has no end")
            word = re.match(r"[\w ]*", text).group(0).split("\n")[0].strip()
            if word == "setup":
                page.blocks.append(
                    Block(path, first + 1, "setup", text.partition("\n")[2] + "\n", {})
                )
            elif word == "tiny":
                page.tiny += text.partition(":")[2].split()
            elif word in MARKS:
                comments.append((first, text))
        elif fence:
            first, indent = i + 2, len(fence.group(1))
            i += 1
            while i < len(lines) and lines[i].strip() != fence.group(2):
                i += 1
            if i == len(lines):
                raise PageError(f"{path}:{first - 1}: the code block has no end")
            text = "".join(l[indent:] + "\n" for l in lines[first - 1:i])
            page.blocks.append(Block(path, first, fence.group(3), text, _marks(comments, path)))
            comments = []
        else:
            if line.strip():
                if comments:
                    raise PageError(f"{path}:{comments[0][0]}: no code block follows this comment")
                page.prose.append((i + 1, line))
        i += 1
    return page
