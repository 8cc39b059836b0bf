"""Checks the checks of the pages: self_check.py PUMICE writes pages with one mistake each and
expects the message with page and line. A page without mistakes must pass."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PUMICE = os.path.abspath(sys.argv[1])

GOOD = """# Title

See [below](#sub-title-of-pumice), [itself](page.md#title) and `pumice eval --watch`, `run.steps=3`.

<!-- setup
mkdir made
-->
<!-- file: made/mine.json -->
```json
{ "base": ["../configs/lenet_mnist.json"], "model": { "num_classes": 10 } }
```

```sh
ls made
for i in 3 4; do
    echo "step $i of 1,000: loss 2.5e-03"
done
pumice train configs/shapes_classification.json
```

<!-- output -->
```text
mine.json
step 7 of 1: loss 0.1
...
... 4 ...
```

<!-- fails: 2 -->
```sh
pumice config check nowhere.json
```

<!-- not run: it would never end -->
```sh
sleep 100000
```

<!-- long -->
```sh
false
```

```json
"run": { "steps": 100 }, // a piece
```

## Sub-title of `pumice`
"""

# Pages, each with the message that run_page.py must print.
RUN = [
    (
        "# A\n\n```sh\ntrue\npumice config check a.json\ntrue\n```\n",
        "page.md:5: exit code 2, expected 0",
    ),
    ("```sh\ncat <<END\nx\nEND\nfalse\n```\n", "page.md:5: exit code 1, expected 0"),
    ("<!-- fails: 2 -->\n```sh\ntrue\n```\n", "page.md:3: exit code 0, expected 2"),
    ("<!-- setup\nfalse\n-->\n", "page.md:2: exit code 1"),
    (
        "```sh\necho one; echo two\n```\n<!-- output -->\n```text\ntwo\none\n```\n",
        "page.md:7: 'one' was not printed",
    ),
    ("```json\n\"run\": { \"stesp\": 1 }\n```\n", "run.stesp: unknown key"),
    ("<!-- file: x.json -->\n```json\n{ \"run\": 1 }\n```\n", "page.md:3: "),
    ("<!-- long -->\nText.\n", "page.md:1: no code block follows"),
    ("<!-- not run -->\n```sh\ntrue\n```\n", "page.md:1: 'not run' needs a text"),
    ("```sh\ntrue\n", "page.md:1: the code block has no end"),
    ("<!-- fails : 1\n", "page.md:1: the comment has no end"),
]

# Pages, each with the message that check_pages.py must print.
CHECK = [
    ("# A\n[x](none.md)\n", "page.md:2: the link none.md leads to no file"),
    ("![x](images/none.png)\n", "page.md:1: the link images/none.png leads to no file"),
    ("# A\n[x](#b)\n", "page.md:2: the link #b: page.md has no heading"),
    ("[x](../../etc)\n", "page.md:1: the link ../../etc leads out"),
    ("a\n`pumice trian x`\n", "page.md:2: `pumice trian x`: pumice has no command trian"),
    ("`pumice eval --wach`\n", "page.md:1: `pumice eval --wach`: pumice eval --help has no --wach"),
    ("`run.step=1`\n", "page.md:1: `run.step=1`: there is no key run.step"),
    ("\n    pumice train x\n", "page.md:2: commands stand in a block"),
    ("```bash\ntrue\n```\n", "page.md:1: a code block is one of"),
    ("```c\nint x;\n```\n", "page.md:1: a c block needs"),
    ("```sh\n$ ls\n```\n", "page.md:2: commands stand without a prompt"),
]

failures = []
with tempfile.TemporaryDirectory(prefix="pumice-docs-") as root:
    page = os.path.join(root, "page.md")

    def run_check(script, text, *arguments):
        with open(page, "w", encoding="utf-8") as f:
            f.write(text)
        got = subprocess.run(
            [sys.executable, os.path.join(HERE, script), PUMICE, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return got.returncode, got.stdout

    for script, argument, cases in (("run_page.py", page, RUN), ("check_pages.py", root, CHECK)):
        for text, message in cases:
            code, printed = run_check(script, text, argument)
            if code != 1 or message not in printed:
                failures.append(
                    f"{script}: expected '{message}' of\n{text}but exit code {code}:\n{printed}"
                )
        code, printed = run_check(script, GOOD, argument)
        if code != 0:
            failures.append(f"{script}: a good page: exit code {code}:\n{printed}")
    if run_check("run_page.py", GOOD, "--long", page)[0] != 1:
        failures.append("run_page.py --long: the long block was not run")
print("\n".join(failures) or f"{len(RUN) + len(CHECK)} mistakes found")
sys.exit(1 if failures else 0)
