"""Checks that the messages quoted in docs/troubleshooting.md exist in the source:

    messages_check.py [SOURCE]

In the tables of that page a cell of the column "message" quotes a message, and so does a cell of
the column "what you see" when it is in backticks. "..." stands for text that varies. The check
fails when a piece between the dots is in no string literal of src/."""
import glob
import os
import re
import sys

SOURCE = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
PAGE = os.path.join(SOURCE, "docs", "troubleshooting.md")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def literals():
    """All string literals of src/, those that follow each other joined, one a line."""
    lines = []
    for path in sorted(glob.glob(os.path.join(SOURCE, "src", "**", "*.[ch]"), recursive=True)):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        end = None
        for found in LITERAL.finditer(text):
            body = found.group(1).replace('\\"', '"')
            if end is not None and re.fullmatch(r"[\s]*(PRI\w+)?[\s]*", text[end:found.start()]):
                lines[-1] += body
            else:
                lines.append(body)
            end = found.end()
    return "\n".join(lines)


def main():
    source, quoted, missing, column = literals(), 0, 0, False
    with open(PAGE, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if re.match(r"\| (message|what you see) \|", line):
                column = True
            elif not line.startswith("|"):
                column = False
            cell = re.match(r"\| `([^`]+)` \|", line) if column else None
            if not cell:
                continue
            quoted += 1
            for piece in filter(None, (p.strip() for p in cell.group(1).split("..."))):
                if piece not in source:
                    print(
                        f"docs/troubleshooting.md:{number}: no message of src/ has '{piece}': "
                        "quote it as it is now"
                    )
                    missing += 1
    if quoted < 20:
        sys.exit(f"docs/troubleshooting.md: only {quoted} messages were found in its tables")
    if missing:
        sys.exit(1)
    print(f"{quoted} messages stand in src/")


main()
