"""Checks that pycocotools finds the metrics of `pumice eval` in its detections.json.

    python3 tests/tasks/detection/pycocotools_check.py PUMICE FOLDER

The program PUMICE trains configs/shapes_detection.json for a few steps and evaluates it. The true
boxes are read from the records. COCO's twelve metrics, and the average precision of each class,
must agree to 1e-6, with 1 and with 7 pictures per batch. A Python without pycocotools makes a
virtual environment in FOLDER and installs it there, once. The check exits with 77 (skipped) when
the download fails."""
import contextlib
import glob
import io
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import packages  # noqa: E402
from checks import check, pumice  # noqa: E402
from tfrecords import records  # noqa: E402

NEAR = 1e-6
NAMES = ["map", "map_50", "map_75", "map_small", "map_medium", "map_large",
         "ar_1", "ar_10", "ar_100", "ar_small", "ar_medium", "ar_large"]


def truth_of(pattern):
    """COCO's data set of the records."""
    out = {"info": {}, "images": [], "annotations": [], "categories": []}
    for i, e in enumerate(records(pattern)):
        name = (e.get("image/source_id") or e.get("image/filename") or [b""])[0].decode()
        image = int(name) if name.isdigit() and str(int(name)) == name else name or i
        height, width = e["image/height"][0], e["image/width"][0]
        out["images"].append({"id": image})
        box = [e.get(f"image/object/bbox/{k}", []) for k in ("ymin", "xmin", "ymax", "xmax")]
        labels = e.get("image/object/class/label", [])
        crowd = e.get("image/object/is_crowd") or [0] * len(labels)
        area = e.get("image/object/area")
        for k, (y, x, bottom, right) in enumerate(zip(*box)):
            w, h = (right - x) * width, (bottom - y) * height
            out["annotations"].append({
                "id": len(out["annotations"]) + 1, "image_id": image, "iscrowd": crowd[k],
                "category_id": labels[k], "bbox": [x * width, y * height, w, h],
                "area": area[k] if area else w * h})
    check(len({str(i["id"]) for i in out["images"]}) == len(out["images"]), "an id occurs twice")
    labels = sorted({a["category_id"] for a in out["annotations"]})
    out["categories"] = [{"id": c, "name": str(c)} for c in labels]
    check(out["annotations"], f"{pattern}: no box")
    return out


# ---- metrics ---------------------------------------------------------------------------------


def metrics_of(truth, path):
    """The twelve metrics, and the average precision of each class."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        data = COCO()
        data.dataset = truth
        data.createIndex()
        e = COCOeval(data, data.loadRes(path), "bbox")
        e.evaluate()
        e.accumulate()
        e.summarize()
    precision = e.eval["precision"][:, :, :, 0, 2]
    classes = [precision[:, :, k] for k in range(len(truth["categories"]))]
    return list(e.stats), [v[v > -1].mean() for v in classes]


def same(name, ours, theirs):
    check((theirs == -1) if ours is None else abs(ours - theirs) <= NEAR,
          f"{name}: {ours}, pycocotools finds {theirs}")


def main():
    packages.find("pycocotools", ["numpy", "pycocotools"], ["numpy", "pycocotools==2.0.11"])
    config = os.path.join(os.environ.get("PUMICE_SOURCE", "."), "configs", "shapes_detection.json")
    with tempfile.TemporaryDirectory() as top:
        options = [os.path.abspath(config), f"data.folder={top}/shapes", f"run.folder={top}/run"]
        pumice("train", *options, "run.steps=150", "eval.every_steps=0", 'devices=["cpu"]')
        truth = truth_of(f"{top}/shapes/*_validation_*")
        for batch in (1, 7):
            got = pumice("eval", "--json", *options, f"eval.batch_size={batch}")
            metrics = json.loads(got.stdout)["metrics"]
            path, = glob.glob(f"{top}/run/**/detections.json", recursive=True)
            whole, classes = metrics_of(truth, path)
            for name, theirs in zip(NAMES, whole):
                same(name, metrics[name], theirs)
            for k, theirs in enumerate(classes):
                same(f"class {k}", metrics["per_class_ap"][k], theirs)
            check(metrics["map_50"] > 0.05, f"the net has learnt nothing: {metrics['map_50']}")
            os.remove(path)
    print(f"pycocotools_check: {len(truth['images'])} pictures, map {metrics['map']:.4f}")


main()
