"""Checks that pages with a list name every entry; lists_check.py takes no arguments. The lists are:
configs in configs/README.md, pages in docs/README.md, headers in docs/library.md, folders of src/
in docs/architecture.md, and files to extend in docs/adding.md. check_pages.py finds broken
links."""
import glob
import os
import re
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.chdir(SOURCE)
wrong = []


def links(page):
    """Files and folders that a page links to, relative to the repository, in order."""
    with open(page, encoding="utf-8") as f:
        targets = re.findall(r"\]\(([^)#\s]+)", f.read())
    return [
        os.path.normpath(os.path.join(os.path.dirname(page), t)) for t in targets if ":" not in t
    ]


def lists(page, things):
    for thing in sorted(set(things) - set(links(page))):
        wrong.append(f"{page}: no link to {thing}")


def headers_in_order(page):
    order = [h for h in links(page) if h.startswith("include/pumice/")]
    for i, header in enumerate(order):
        with open(header, encoding="utf-8") as f:
            for name in re.findall(r"#include <pumice/(\w+\.h)>", f.read()):
                if f"include/pumice/{name}" not in order[:i]:
                    wrong.append(f"{page}: {header} includes {name}, which does not stand above it")


lists("configs/README.md", glob.glob("configs/**/*.json", recursive=True))
lists("docs/README.md", [p for p in glob.glob("docs/*.md") if p != "docs/README.md"])
lists("docs/library.md", glob.glob("include/pumice/*.h"))
headers_in_order("docs/library.md")
lists("docs/architecture.md", [d.rstrip("/") for d in glob.glob("src/*/")])
lists("docs/adding.md", glob.glob("src/**/*.def", recursive=True) + glob.glob("shaders/*.def"))
print("\n".join(wrong) or "all is listed")
sys.exit(1 if wrong else 0)
