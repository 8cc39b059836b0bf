#!/usr/bin/env python3
"""Makes seeds for the fuzz targets: small valid files of every format that they read, and some with
small defects.

usage: make_corpus.py FOLDER [PROJECT]

writes FOLDER/TARGET/NAME. With valid files a fuzzer gets past a parser's first checks. The configs
of PROJECT (default: the project of this script) are seeds too. Only the standard library is needed.
"""
import json
import os
import pathlib
import struct
import sys

import box_seeds
import detection_seeds
import folder_seeds
import pipeline_seeds
import score_seeds
import shader_seeds
import word_seeds
from picture_seeds import chunk, images, labels, png
from tensor_seeds import onnx_nets, onnxs, tf_checkpoints
from wire_format import example, feature, field, masked

SOURCE = pathlib.Path(__file__).resolve().parents[2]


# ---- TFRecord and Example ----------------------------------------------------------------

def record(data):
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def examples():
    picture = png(4, 3, 2)
    yield "classification", example([("image/encoded", feature(1, [picture])),
                                     ("image/format", feature(1, [b"png"])),
                                     ("image/class/label", feature(3, [3]))])
    yield "lists", example([("a", feature(3, [1, -1, 1 << 62, 0])),
                            ("image/encoded", feature(1, [b"one", b"", b"three"])),
                            ("image/class/label", feature(2, [0.5, -1e38, float("inf")]))])
    yield "not_packed", example([("a", feature(3, [1, 2, 300], False)),
                                 ("", feature(2, [1.5, 2.5], False))])
    yield "twice", example([("a", feature(3, [1])), ("a", feature(1, [b"later"])), ("a", b"")])
    yield "no_kind", example([("a", b""), ("image/encoded", feature(1, []))])
    yield "unknown", example([("a", field(9, b"xyz") + feature(3, [1]))]) + field(15, b"more")
    yield "joined", example([("a", feature(3, [1]))]) + example([("b", feature(3, [2]))])
    yield "nested", field(1, field(1, field(1, b"a") + field(2, field(3, field(1, field(1, b"")))))
                          * 20)


def tfrecords():
    bodies = [b"", b"x", b"0123456789" * 20] + [body for _, body in examples()]
    whole = b"".join(record(b) for b in bodies)
    yield "whole", b"\1" + whole
    yield "cut_in_data", b"\1" + whole[:-7]
    yield "cut_in_length", b"\1" + record(b"abc") + whole[:5]
    yield "bad_length", b"\1" + record(b"abc") + b"\xff" * 40
    yield "gzip", b"\1\x1f\x8b" + whole
    yield "cut_up", b"\0" + b"".join(struct.pack("<Q", len(b)) + bytes([len(b) & 255]) + b[:255]
                                     for b in bodies)


# ---- the rest ----------------------------------------------------------------------------

def idx(kind, dims, data):
    return (
        struct.pack(">HBB", 0, kind, len(dims))
        + b"".join(struct.pack(">I", d) for d in dims)
        + data
    )


def mnists():
    for name, count, side in (("one", 1, 28), ("three", 3, 4), ("empty", 0, 28)):
        pictures = idx(8, (count, side, side), bytes(count * side * side))
        labels = idx(8, (count,), bytes(range(count)))
        whole = pictures + labels
        # The first byte is the share of the pictures' file, in 255ths. It is rounded down and up,
        # so that the cut between the two files is exact or near.
        for share in {len(pictures) * 255 // len(whole), -(-len(pictures) * 255 // len(whole))}:
            yield f"{name}{share}", bytes([min(share, 255)]) + whole
    pictures, labels = idx(8, (1, 1, 1), b"\7"), idx(8, (1,), b"\1")
    pad = bytes(255 - len(pictures) - len(labels))
    yield "exact", bytes([len(pictures)]) + pictures + labels + pad  # 255 bytes: exact shares
    yield "float", bytes([20]) + idx(13, (1, 2, 2), bytes(16)) + labels


def cifars():
    picture = bytes(i & 255 for i in range(3072))
    yield "both", bytes([2]) + bytes([3]) + picture + bytes([9]) + picture + bytes([0]) + picture
    yield "odd", bytes([3]) + bytes([3]) + picture + b"\0"
    yield "label", bytes([0]) + bytes([10]) + picture


def tensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def safetensors():
    types = [("F64", 8), ("F32", 4), ("F16", 2), ("BF16", 2), ("I64", 8), ("I32", 4), ("I16", 2),
             ("I8", 1), ("U64", 8), ("U32", 4), ("U16", 2), ("U8", 1), ("BOOL", 1), ("F8_E4M3", 1)]
    header, at = {"__metadata__": {"format": "pumice", "step": "12"}}, 0
    for name, size in types:
        header[f"t/{name}"] = {"dtype": name, "shape": [2, 3], "data_offsets": [at, at + 6 * size]}
        at += 6 * size
    data = bytes((37 * i) & 255 for i in range(at))
    for first, body in ((b"\1", tensors(header, data)),
                        (b"\0", json.dumps(header).encode() + b"\0" + data)):
        yield f"types{first[0]}", first + body
    scalar = {"s": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
              "none": {"dtype": "F32", "shape": [0, 5], "data_offsets": [4, 4]}}
    yield "scalar", b"\1" + tensors(scalar, bytes(4))
    yield (
        "escape",
        b"\0" + b'{"a\\u00e9\\ud83d\\ude00":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}\0x',
    )
    yield "hole", b"\0" + b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}\0xy'
    yield (
        "big",
        b"\0" + b'{"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}}',
    )
    yield "blanks", b"\1" + tensors(json.dumps(scalar).encode() + b"   ", bytes(4))


LAYERS = [
    {"name": "conv1", "layer": "conv2d", "filters": 8, "kernel": [3, 5], "stride": 2,
     "activation": "relu"},
    {"layer": "batch_norm", "activation": "relu6"},
    {"repeat": 2, "layers": [{"name": "r%d", "layer": "conv2d", "filters": 8, "kernel": 1},
                             {"name": "s%d", "layer": "add", "inputs": ["r%d", "@input"]}]},
    {"name": "side", "layer": "max_pool", "kernel": 2, "stride": 2, "padding": "same"},
    {"layer": "global_avg_pool"}, {"layer": "dropout", "keep": 0.5},
    {"name": "logits", "layer": "fully_connected", "units": 4},
]


def nets():
    yield "layers", json.dumps(LAYERS).encode()
    for kind in (
        "conv2d_transpose",
        "avg_pool",
        "local_response_norm",
        "softmax",
        "concat",
        "flatten",
        "reshape",
        "multiply",
        "bias_act",
        "leaky_relu",
        "relu",
        "add",
        "dropout",
    ):
        yield kind, json.dumps([{"name": "a", "layer": "conv2d", "filters": 4},
                                {"layer": kind, "inputs": ["a", "images"]},
                                {"name": "b", "layer": kind}]).encode()
    yield (
        "shared",
        json.dumps(
            [
                {"name": "a", "layer": "conv2d", "filters": 4},
                {"name": "b", "layer": "conv2d", "filters": 4, "share": "a"},
            ]
        ).encode(),
    )


def configs(project):
    for path in sorted(project.glob("configs/**/*.json")):
        if path.name != "schema.json" and path.stat().st_size < 20000:
            text = path.read_bytes()
            yield path.stem, text
            yield path.stem + "_alone", text.replace(b'"base"', b'"task_"')
    yield "all", json.dumps({
        "model": {"layers": LAYERS}, "data": {"folder": "x", "on_corrupt": "skip"},
        "input": {"preprocessing": "lenet", "size": [8, 9]}, "optim": {"name": "sgd"},
        "devices": [{"name": "cpu", "share": 0.5, "threads": 2}, {"name": "cpu", "share": 0.5}],
        "schedule": {"policy": "cosine", "warmup_steps": 3}, "init": {"trainable_scopes": ["a.*"]},
        "run": {"folder": "r", "steps": 3}, "eval": {"every_steps": 1}}).encode()


def jsons(project):
    yield (
        "values",
        b'{"a": [1, -2.5e3, true, false, null, "t\\u00e9\\n"], "b": {}, "c": []} // end\n',
    )
    yield "comment", b'// one\n{ // two\n"a": "// no comment", /* no */ "b": 1 }'
    yield "deep", b"[" * 200 + b"]" * 200
    yield "large", b"[9007199254740991, 9007199254740993, 1e400, -0]"
    yield "twice", b'{"a": 1, "a": 2}'
    yield from configs(project)


def datasets():
    yield "labels", b"\0" + b"0:cat\n1:dog: big\n\n7:mouse\r\n"
    yield "labels_far", b"\0" + b"1048575:x\n0:y"
    yield "labels_bad", b"\0" + b"-1:x\n"
    yield "json", b"\1" + json.dumps({"name": "x", "num_classes": 3, "height": 4, "width": 5,
                                      "channels": 1, "splits": {"train": 5, "test": 2}}).encode()
    yield "json_bad", b"\1" + b'{"num_classes": 1e9, "splits": {"train": 6}}'
    for at in (0, 8, 12, 16, 40, 48, 72, 80, 84):  # offsets of the index's fields
        yield f"index{at}", b"\2" + bytes(at) + b"\1"
    yield "index_longer", b"\2" + bytes(200)


def runs():
    good = b'{"step": 1, "file": "step-000001.safetensors", "sha256": "@"}'
    yield "record", b"\0" + good
    yield "record_other", b"\0" + good.replace(b"step-000001.s", b"best-000001.s")
    yield "record_before", b"\0" + good.replace(b"tensors\"", b"tensors.before\"")
    yield "record_up", b"\0" + good.replace(b"step-000001.s", b"../x.s")
    yield "record_step", b"\0" + good.replace(b"1,", b"1e300,")
    yield "best", b"\1" + b'{"metric": "accuracy", "value": 0.25, "step": 1}'
    yield "best_other", b"\1" + b'{"metric": "loss", "value": null, "step": 99}'
    yield "keep", b"\2" + b'{"since": 1, "steps": [1, 2, -1, 1e99, "x"]}'
    lines = b"".join(b'{"kind": "train", "step": %d, "loss": 1.5}\n' % n for n in (1, 2, 70))
    yield "metrics", bytes([3 + 8 * 2]) + lines
    yield "metrics_cut", bytes([3 + 8 * 30]) + lines + b'{"kind": "eval", "st'
    state = {
        "seed": 1,
        "skipped": 3,
        "loss_averages": {"total_loss": 1.5, "l2": 1e-9},
        "data": {"name": "x", "task": "classification", "classes": 3, "labels": ["a", None, "b"]},
    }
    yield "state", b"\0" + good[:-1] + b", " + json.dumps(state)[1:].encode()
    shares = [{"device": "CPU", "share": 0.25}, {"device": "GPU", "share": 0.75}]
    yield "shares", b"\4" + json.dumps(shares).encode()
    yield "shares_one", b"\4" + json.dumps(shares[:1]).encode()
    yield "saved_record", b"\5" + good
    yield "saved_best", b"\6" + b'{"metric": "accuracy", "value": 0.25, "step": 1}'
    yield "saved_keep", b"\7" + b'{"since": 1, "steps": [1]}'


def reports():
    run = {
        "version": "0.1.0",
        "state": "running",
        "started": "2026-01-02 03:04:05 UTC",
        "seconds": 5,
        "step": 60,
        "steps": 100,
        "net": "lenet",
        "data": "shapes",
        "classes": 4,
        "parameters": 10,
        "origins": {"model.name": "x.json:3"},
        "best_metric": "accuracy",
        "metrics": [{"name": "accuracy", "higher_is_better": True}],
        "devices": [{"name": "CPU", "address": "cpu", "examples": 8, "memory_bytes": 1e9}],
    }
    config = {"model": {"name": "lenet", "layers": [{"a": [1, 2]}]}, "run": {"steps": 100}}
    lines = "".join(json.dumps({"kind": "train", "step": n, "loss": 3 / n, "main_loss": 2 / n,
                                "aux_loss": 1 / n, "l2": 0.1, "lr": 0.01, "seconds_device": 0.2,
                                "seconds_other": 0.1}) + "\n" for n in range(1, 30))
    lines += json.dumps({"kind": "eval", "step": 20, "accuracy": 1, "recall_at_5": None}) + "\n"
    evaluation = {
        "step": 20,
        "count": 9,
        "metrics": {"accuracy": 0.5},
        "labels": ["a", None, "<b>"],
        "labels_offset": 1,
        "unanswered": 2,
        "per_class": {"count": [3, 3, 3], "predicted": [4, 4, 1], "right": [3, 1, 0]},
        "confusion": [0, 0, 3, 1, 1, 1, 1, 2, 2, 2, 0, 3],
        "samples": [
            {
                "picture": "data:image/png;base64,AA",
                "width": 1,
                "label": 1,
                "predicted": 0,
                "right": False,
                "probability": 0.9,
            }
        ],
    }
    many = {"per_class": {"count": [1] * 60, "right": [0] * 60}, "labels": ["x"] * 60,
            "confusion": [v for i in range(60) for v in (i, i // 2, 1)]}
    log = "2026 train: begins\n2026 warning: data: 3 unreadable\n"
    for name, e in (("few", evaluation), ("many", many)):
        other = [json.dumps({**e, "checkpoint": c, "data_path": "d", "split": "test", "written": w})
                 for c, w in (("a", "2026-01-02"), ("b", "2026-01-03"))]
        parts = [json.dumps(run), json.dumps(config), lines, json.dumps(e), log] + other
        yield name, "\x1e".join(parts).encode()
        yield name + "_two", "\x1e".join(parts + [lines[-40:]]).encode()
    for at, text in enumerate(
        (json.dumps(run), json.dumps(config), lines[:300], json.dumps(evaluation), log)
    ):
        yield "only_%d" % at, ("\x1e" * at + text).encode()
    yield "none", b"\x1e" * 5


def verdicts():
    lines = (b"# a device\nok conv2d_fwd s64x64 12 34567 0.0123 \n"
             b"wrong activation_fwd activation_fwd4 1 80 3.5 y[3] of 80 is 7\n"
             b"cannot pool_max pool_max 0 0 0 no memory\n")
    yield "lines", b"\1" + lines
    yield "twice", b"\1" + lines + lines
    yield "long", b"\1ok " + b"k" * 60 + b" v 1 1 1\n" + b"wrong k v 1 1 nan " + b"w" * 2000 + b"\n"
    yield "no_sum", b"\0pumice verdicts 1\n" + lines


def cocos():
    image = {"id": 7, "file_name": "a.png", "height": 3, "width": 4, "license": [None, True]}
    thing = {"id": 1, "image_id": 7, "category_id": 3, "area": 6.5, "bbox": [0, 0.5, 4, 2],
             "segmentation": [[1, 2.5, -3e1]], "iscrowd": 0}
    kinds = [{"id": 3, "name": "person"}, {"id": 90, "name": "c\u00e9 \"x\""}]
    good = {"info": {"x": "]}"}, "images": [image], "annotations": [thing], "categories": kinds}
    yield "good", json.dumps(good).encode()
    yield "order", json.dumps(dict(reversed(good.items())), indent=1).encode()
    yield "many", json.dumps({**good, "images": [image, {**image, "id": 8}, image],
                              "annotations": [thing] * 5}).encode()
    yield "up", json.dumps({**good, "images": [{**image, "file_name": "../a"}]}).encode()
    yield "box", json.dumps({**good, "annotations": [{**thing, "bbox": [1] * 9}]}).encode()
    yield "area", json.dumps({**good, "annotations": [{**thing, "area": 1e308}]}).encode()
    yield "cut", json.dumps(good).encode()[:150]


def panoptics():
    kinds = [{"id": 3, "name": "person", "isthing": 1}, {"id": 90, "name": "sky", "isthing": 0}]
    segments = [
        {
            "id": i,
            "category_id": 3 if i % 2 else 90,
            "iscrowd": int(i == 5),
            "area": 1,
            "bbox": [0, 0, 1, 1],
        }
        for i in range(12, 0, -1)
    ]
    one = {"image_id": "x", "file_name": "a.png", "segments_info": segments}
    good = {
        "images": [{"id": "x", "file_name": "a.png", "height": 3}],
        "annotations": [one],
        "categories": kinds,
    }
    yield "good", json.dumps(good).encode()
    yield "order", json.dumps(dict(reversed(good.items())), indent=1).encode()
    yield "numbers", json.dumps({**good, "images": [{"id": 7, "file_name": "a.png"}],
                                 "annotations": [{**one, "image_id": 7}]}).encode()
    yield "map", json.dumps(good).encode() + b"\1" + png(4, 3, 2)
    yield "alpha", json.dumps(good).encode() + b"\1" + png(4, 3, 6)
    yield (
        "palette",
        json.dumps(good).encode() + b"\1" + png(4, 3, 3, extra=chunk(b"PLTE", bytes(768))),
    )
    yield "none", json.dumps({**good, "annotations": [{**one, "segments_info": []}]}).encode()
    yield (
        "unknown",
        json.dumps({**good, "annotations": [{**one, "segments_info": segments[3:]}]}).encode(),
    )
    yield (
        "double",
        json.dumps({**good, "annotations": [{**one, "segments_info": segments * 2}] * 2}).encode(),
    )
    yield (
        "kinds",
        json.dumps(
            {**good, "categories": [{"id": i, "name": "c", "isthing": 1} for i in range(256)]}
        ).encode(),
    )
    yield (
        "nameless",
        json.dumps({**good, "categories": [{"id": 3, "name": "", "isthing": 1}]}).encode(),
    )
    yield "up", json.dumps({**good, "images": [{"id": "x", "file_name": "../a"}]}).encode()
    yield "cut", json.dumps(good).encode()[:200]


def instances():
    def pixels(kind, width, *values):
        return bytes([kind, width - 1]) + b"".join(struct.pack(">BH", *v) for v in values)
    yield "numbers", pixels(0, 2, (0, 0), (1, 1), (1, 999), (3, 7), (255, 5), (3, 0))
    yield "too_many", pixels(0, 2, (1, 1000), (3, 1))
    yield "from_0", pixels(1, 3, (0, 0), (4, 998), (4, 0), (0, 998), (2, 5), (1, 0))
    yield "classes", pixels(2, 3, (0, 999), (3, 3001), (3, 3), (3, 0), (1, 7), (2, 2000))
    yield "another", pixels(2, 2, (3, 2001), (3, 2), (1, 1))
    yield "sevens", pixels(3, 2, (1, 7), (1, 13), (1, 1), (0, 3))
    yield "kitti", pixels(4, 2, (0, 5), (0, 513), (0, 512), (0, 767), (0, 1024))
    yield (
        "cityscapes",
        pixels(5, 3, (24, 24000), (26, 26), (26, 26998), (7, 7), (255, 0), (29, 29001)),
    )


def imagenets():
    words, boxes = (
        b"a\tA, one\nb c\ttwo\n",
        b"1.JPEG,0,0.5,1,1\n2.JPEG,1.5,-1,0,0\n1.JPEG,0,0,0,0\n",
    )
    yield "good", b"\1" + b"\1".join([b"a\nb c\n", words, boxes, b"a\n"])
    yield "no_lists", b"\1\1\1\1b c\r\n"
    yield "nan", b"\1" + b"\1".join([b"a\nb c\n", words, b"1.JPEG,nan,0x1p3,inf,1e999", b"a"])
    yield "unknown", b"\1" + b"\1".join([b"b c\na\nd\n", words, boxes, b"e"])
    yield "builder", b"\0b c\na\n"
    yield "builder_up", b"\0../train/a\n..\n"


def pairs():
    yield (
        "camvid",
        b"\0" + b"\1".join([b"a.jpg b.png\n", b"0 Sky\n1 Void\n", b"", b"/x/a.jpg /x/b.png;\n"]),
    )
    yield (
        "camvid_colours",
        b"\0" + b"\1".join([b"a.jpg d.png\n", b"", b"0 0 0 Void\n1 2 3\tTree\n", b""]),
    )
    yield "camvid_usual", b"\0a.jpg d.png"
    titles = b"Idx\tRatio\tTrain\tVal\tName\n"
    yield "ade20k", b"\1" + titles + b"".join(b"%d\t0.1\t2\t3\tx, y \n" % i for i in range(1, 151))
    yield "voc", b"\2" + b"\1".join([b"a\n", b"ground\nthing\n"])
    yield "pairs_colours", b"\3" + b"\1".join([b"", b"0 0 0 a\n1 2 3 b\n"])
    yield "pairs_classes", b"\4" + b"\1".join([b"", b"a\nb\n"])


def torch_tensor(kind=b"FloatStorage", count=b"K\x40", first=b"K\0", size=b"K\2K\3\x86",
                 stride=b"K\3K\1\x86", rebuild=b"_rebuild_tensor_v2", end=b"\x89}tR"):
    return (b"ctorch._utils\n" + rebuild + b"\n((X\7\0\0\0storagectorch\n" + kind
            + b"\nX\1\0\0\x000X\3\0\0\0cpu" + count + b"tQ" + first + size + stride + end)


def torch_text(text):
    return b"X" + struct.pack("<I", len(text)) + text


def torches(project):
    """Pickles for an archive that the target builds, and files written by PyTorch."""
    def state(*members):
        return b"}(" + b"".join(torch_text(k) + v for k, v in members) + b"u"
    plain, turned = torch_tensor(), torch_tensor(stride=b"K\1K\2\x86")
    passing = b"c__builtin__\nset\n](" + torch_text(b"p") + b"e\x85R"
    module = (b"cmine\nNet\n)\x81"
              + state((b"_parameters", state((b"w", plain))), (b"_modules", state()),
                      (b"_buffers", state((b"b", turned), (b"p", turned))),
                      (b"_non_persistent_buffers_set", passing)) + b"b")
    pickles = {
        "state": state(
            (b"a.w", plain), (b"a.b", turned), (b"epoch", b"K\3"), (b"lr", b"G?\xb9\0\0\0\0\0\0")
        ),
        "wrapped": state((b"model", state((b"w", plain))), (b"optimizer", b"](" + turned + b"Ne")),
        "module": module,
        "tensor": plain,
        "expanded": torch_tensor(kind=b"LongStorage", count=b"K\4", stride=b"K\0K\0\x86"),
        "typed": torch_tensor(
            kind=b"UntypedStorage", rebuild=b"_rebuild_tensor_v3", end=b"\x89}ctorch\nuint16\ntR"
        ),
        "complex": torch_tensor(
            kind=b"ComplexFloatStorage", count=b"K\x08", size=b"K\2\x85", stride=b"K\1\x85"
        ),
        "parameter": b"ctorch._utils\n_rebuild_parameter\n" + plain + b"\x88}\x87R",
        "ordered": b"ccollections\nOrderedDict\n](](" + torch_text(b"k") + plain + b"ee\x85R",
        "sparse": b"ctorch._utils\n_rebuild_sparse_tensor\nN"
        + plain
        + plain
        + b"K\2K\2\x86\x87\x86R",
        "itself": b"]q\0h\0a" + plain + b"a",
        "twice": b"]q\0" + plain + b"a0]h\0ah\0a",
        "system": b"cposix\nsystem\n" + torch_text(b"ls") + b"\x85R",
        "subclass": b"ctorch._tensor\n_rebuild_from_type_v2\n(" + plain[:-1] + b"tR",
    }
    for name, body in pickles.items():
        yield name, b"\0\x80\2" + body + b"."
    yield "framed", (b"\0\x80\4\x95\x16\0\0\0\0\0\0\0}\x94\x8c\1k\x94C\2ab\x94s\x8f(K\1\x90\x93"
                     b"\x96\1\0\0\0\0\0\0\0x\x8a\2\1\2.")
    for path in sorted((project / "tests/golden/pytorch").glob("*.pt")):
        yield path.stem + "_file", b"\1" + path.read_bytes()


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    project = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else SOURCE
    seeds = {
        "example": examples(),
        "tfrecord": tfrecords(),
        "image": images(),
        "label": labels(),
        "mnist": mnists(),
        "cifar10": cifars(),
        "safetensors": safetensors(),
        "net_json": nets(),
        "config": configs(project),
        "json": jsons(project),
        "dataset": datasets(),
        "run": runs(),
        "report": reports(),
        "verdicts": verdicts(),
        "coco": cocos(),
        "panoptic": panoptics(),
        "imagenet": imagenets(),
        "pairs": pairs(),
        "instances": instances(),
        "torch": torches(project),
        "onnx": onnxs(),
        "onnx_import": onnx_nets(),
        "tf_checkpoint": tf_checkpoints(project),
        "config_base": folder_seeds.config_bases(),
        "tensor_folder": folder_seeds.tensor_folders(),
        "label_map": box_seeds.label_maps(),
        "coco_mask": box_seeds.coco_masks(),
        "objects": box_seeds.objects(),
        "coco_boxes": box_seeds.coco_boxes(),
        "archive": folder_seeds.archives(),
        "pipeline_cache": folder_seeds.pipeline_caches(),
        "detection": detection_seeds.detections(),
        "pipeline": pipeline_seeds.pipelines(),
        "patterns": pipeline_seeds.patterns(),
        "opencl_translate": shader_seeds.translations(),
        "score_merge": score_seeds.score_merges(),
        "words": word_seeds.words(),
        "texts": word_seeds.texts(),
    }
    for target, files in seeds.items():
        folder = os.path.join(sys.argv[1], target + "_fuzz")
        os.makedirs(folder, exist_ok=True)
        for name, body in files:
            with open(os.path.join(folder, name), "wb") as f:
                f.write(body)


if __name__ == "__main__":
    main()
