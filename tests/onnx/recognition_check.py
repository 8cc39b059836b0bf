"""Checks that onnxruntime reads the same texts as the program with exported models of recognition.

    python3 tests/onnx/recognition_check.py PUMICE FOLDER

The program PUMICE trains three nets for two steps: one of convolutions, whose classes change from
step to step on pictures of noise, and small CRNNs with CTC and with attention in both directions.
With attention, the rule that the metadata states, written here, must give the texts and scores of
`pumice predict` with one beam. With CTC the outputs symbols, lengths and score of the
exported models must be the texts and scores of `pumice predict`, one picture at a time and as a
batch, for pictures as the net's input and as pixels. The same rule, written here with loops, must
give the symbols from the model's own logits exactly. A Python without onnx and onnxruntime makes a
virtual environment in FOLDER and installs them there, once. The check exits with 77 (skipped) when
the download fails."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import packages  # noqa: E402
from checks import check, pumice  # noqa: E402
from pictures import write_png  # noqa: E402

LETTERS = "ab\u00e9\U0001f600"
PICTURES, HEIGHT, WIDTH = 40, 32, 48
# The logits are a few units large, and the two programs add up to some hundred products in
# different orders.
NEAR = 1e-4
LAYERS = [
    {"name": "c1", "layer": "conv2d", "filters": 16, "kernel": [32, 4], "stride": [32, 4],
     "padding": "valid", "activation": "relu"},
    {"name": "logits", "layer": "conv2d", "filters": len(LETTERS) + 1, "kernel": 1},
]
NET = {
    "task": "recognition",
    "data": {"folder": "data", "charset": "letters.txt"},
    "input": {"preprocessing": "ssd", "size": [HEIGHT, WIDTH]},
    "optim": {"name": "adam"},
    "schedule": {"policy": "fixed", "base_lr": 1e-4},
    "devices": ["cpu"],
    "run": {"steps": 2, "batch_size": 4, "seed": 5, "summary_every_steps": 0},
    "eval": {"every_steps": 0},
}
MODELS = {
    "layers": {"layers": LAYERS},
    "crnn": {"name": "crnn", "depth_multiplier": 0.125},
    "attention": {"layers": LAYERS[:1], "predictor": "attention", "attention_direction": "both",
                  "attention_units": 16, "decoder_units": 32, "beam_width": 1},
}
STEPS = 6  # of the predictors with attention


def make():
    pumice("dataset", "make", "words", "data", "letters=ab", "train=20", "validation=2", "test=0",
           "most=3", "height=16")
    with open("letters.txt", "w", encoding="utf-8") as f:
        f.write("".join(f"{c}\n" for c in LETTERS))
    rng = np.random.default_rng(7)
    os.mkdir("pictures")
    pictures = rng.integers(0, 256, (PICTURES, HEIGHT, WIDTH, 3)).astype(np.uint8)
    for i in range(0, PICTURES, 2):  # wide stripes repeat a class
        pictures[i] = np.repeat(pictures[i][:, ::8], 8, 1)
    for i, pixels in enumerate(pictures):
        write_png(f"pictures/{i:02}.png", pixels)
    return pictures


def predicted(config):
    """The text and the score of each picture, by the program."""
    got = json.loads(pumice("predict", config, "pictures", "--json").stdout)
    return [(i["text"], i["score"]) for i in got["images"]]


def read(logits, blank):
    """The symbols of logits [classes, steps]."""
    out, before = [], blank
    for best in logits.argmax(0):
        if best not in (before, blank):
            out.append(int(best))
        before = best
    return out


def run(model, pixels):
    note = json.loads(model.get_modelmeta().custom_metadata_map["preprocessing"])
    feed = model.get_inputs()[0]
    x = pixels
    if feed.type != "tensor(uint8)":
        x = (x.astype(np.float32) - np.float32(note["mean"])) / np.float32(note["std"])
        x = x.transpose(0, 3, 1, 2).copy()
    names = [o.name for o in model.get_outputs()]
    return dict(zip(names, model.run(None, {feed.name: x})))


def same_texts(name, out, note, want):
    """Compares a batch with the program's texts. Returns the number of undecided pictures."""
    letters, blank = note["letters"], note["blank"]
    undecided = 0
    check(list(out) == ["logits", "symbols", "lengths", "score"], f"the outputs are {list(out)}")
    for i, (text, score) in enumerate(want):
        logits = out["logits"][i, :, 0].astype(np.float64)
        symbols, length = out["symbols"][i], out["lengths"][i]
        check(list(symbols[:length]) == read(logits, blank) and (symbols[length:] == -1).all(),
              f"{name}: picture {i}: symbols are {symbols}, {length} of them")
        chances = np.exp(logits - logits.max(0)) / np.exp(logits - logits.max(0)).sum(0)
        path = np.log(chances.max(0)).sum()
        # float32 rounds each of the logarithms and their sums
        check(abs(np.log(out["score"][i]) - path) < 1e-6 * len(chances[0]) * max(1, -path),
              f"{name}: picture {i}: the score is {out['score'][i]}, not {np.exp(path)}")
        best = np.sort(logits, axis=0)
        if (best[-1] - best[-2] < NEAR).any():
            undecided += 1
            continue
        read_here = "".join(letters[s] for s in symbols[:length])
        check(read_here == text, f"{name}: picture {i}: {read_here!r} is read, predicted {text!r}")
        check(abs(np.log(score) - path) < 2 * NEAR * len(chances[0]),
              f"{name}: picture {i}: the score is {np.exp(path)}, predicted {score}")
    return undecided


def written(logits, note):
    """The letters of logits [classes, steps], the logarithm of the text's probability, and whether
    a choice is too narrow to be the program's, too."""
    allowed = logits.copy()
    allowed[note["start"]] = -np.inf
    text, total = [], 0
    for step in range(logits.shape[1]):
        best = allowed[:, step].argmax()
        second, first = np.sort(allowed[:, step])[-2:]
        if first - second < NEAR:
            return text, total, True
        total += first - np.logaddexp.reduce(logits[:, step])
        if best == note["end"]:
            break
        text.append(note["letters"][best - note["first_letter"]])
    return text, total, False


def same_written(name, out, note, want):
    """As same_texts, for two predictors with attention."""
    check(list(out) == ["Forward/Predictor", "Backward/Predictor"], f"the outputs are {list(out)}")
    undecided, backward = 0, 0
    for i, (text, score) in enumerate(want):
        ahead, back = (written(x[i, :, 0].astype(np.float64), note) for x in out.values())
        if ahead[2] or back[2] or abs(ahead[1] - back[1]) < 2 * NEAR * STEPS:
            undecided += 1
            continue
        backward += back[1] > ahead[1]
        read_here, total = ("".join(back[0][::-1]), back[1]) if back[1] > ahead[1] else (
            "".join(ahead[0]), ahead[1])
        check(read_here == text, f"{name}: picture {i}: {read_here!r} is read, predicted {text!r}")
        check(abs(np.log(score) - total) < 2 * NEAR * STEPS,
              f"{name}: picture {i}: the score is {np.exp(total)}, predicted {score}")
    return undecided, backward


def trained(name, **more):
    """Trains a net of MODELS, and returns what it reads."""
    config = {**NET, "model": MODELS[name], "run": {**NET["run"], "folder": name}, **more}
    with open("net.json", "w", encoding="utf-8") as f:
        json.dump(config, f)
    pumice("train", "net.json")
    return predicted("net.json")


def exported(*options):
    """The exported model of the trained net, and its metadata."""
    import onnx
    import onnxruntime as ort
    quiet = ort.SessionOptions()
    quiet.log_severity_level = 3
    pumice("export", "net.json", "net.onnx", *options)
    onnx.checker.check_model("net.onnx", full_check=True)
    model = ort.InferenceSession("net.onnx", quiet, providers=["CPUExecutionProvider"])
    return model, json.loads(model.get_modelmeta().custom_metadata_map["recognition"])


def check_attention(name, pictures):
    want = trained(name, data={**NET["data"], "max_num_steps": STEPS},
                   schedule={"policy": "fixed", "base_lr": 0.01},
                   run={**NET["run"], "folder": name, "steps": 60})
    model, note = exported()
    check(note["letters"] == LETTERS and note["direction"] == "both", f"{name}: {note}")
    parts = [same_written(name, run(model, pictures[i:i + 8]), note, want[i:i + 8])
             for i in range(0, PICTURES, 8)]
    undecided, backward = map(sum, zip(*parts))
    check(undecided < PICTURES / 4, f"{name}: {undecided} pictures are undecided")
    return want, backward


def check_model(name, pictures):
    want = trained(name)
    for export in ([], ["export.preprocessing=fold"], ["export.batch_size=1"]):
        model, note = exported(*export)
        check(note["letters"] == LETTERS and note["blank"] == len(LETTERS), f"{name}: {note}")
        size = 1 if export == ["export.batch_size=1"] else 8
        undecided = sum(
            same_texts(name, run(model, pictures[i:i + size]), note, want[i:i + size])
            for i in range(0, PICTURES, size)
        )
        check(undecided < PICTURES / 4, f"{name}: {undecided} pictures are undecided")
    return want


def main():
    packages.find_onnx()
    global np
    import numpy as np
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pictures = make()
        texts = [text for text, _ in check_model("layers", pictures)]
        check(len(set(texts)) > 20 and any(a == b for t in texts for a, b in zip(t, t[1:])) and
              len({len(t) for t in texts}) > 4, f"the texts are {texts}: too little is tested")
        check_model("crnn", pictures)
        want, backward = check_attention("attention", pictures)
        check(0 < backward < PICTURES and {"a", "ab", "ba"} <= {text for text, _ in want},
              f"the texts are {want}, {backward} of them read backward: too little is tested")
    print(f"recognition_check: {len(texts)} pictures, {len(set(texts))} texts, such as {texts[0]}")


main()
