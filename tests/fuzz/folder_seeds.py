"""Seeds for the fuzz targets whose input is several files or an archive; make_corpus.py writes
them.

The byte 30 separates the parts of an input, so no part may hold it.
"""
import io
import json
import struct
import tarfile
import zipfile

from tensor_seeds import tf_entry, tf_records
from wire_format import field, number

BETWEEN = b"\x1e"


def joined(*parts):
    assert not any(BETWEEN in part for part in parts)
    return BETWEEN.join(parts)


# ---- configs with base files --------------------------------------------------------------

def config_bases():
    def texts(*configs):
        return joined(*(json.dumps(c, indent=1).encode() for c in configs))
    net = {"model": {"name": "lenet"}, "optim": {"name": "sgd"}}
    data = {"data": {"folder": "x", "on_corrupt": "skip"}, "run": {"steps": 5, "folder": "r"}}
    yield "one", texts({"base": "a.json", "run": {"steps": 3}}, {**net, **data})
    yield "two", texts({"base": ["a.json", "b.json"], "run": {"steps": None}}, net, data)
    yield (
        "chain",
        texts({"base": "a.json"}, {"base": "b.json", **net}, {"base": ["sub/c.json"]}, data),
    )
    yield "diamond", texts({"base": ["a.json", "b.json"]}, {"base": "sub/c.json", **net},
                           {"base": "sub/c.json", "run": {"steps": 7}}, data)
    yield "cycle", texts({"base": "a.json"}, {"base": "b.json"}, {"base": "a.json"})
    yield "itself", texts({"base": "./main.json"})
    yield "missing", texts({"base": ["a.json", "none.json", "sub"]}, net)
    yield "kinds", texts({"base": [3, None, {}]}, net)
    yield "broken", joined(b'{"base": "a.json",\n "run": {"steps": 1}}', b'{"model": {"name": }}')
    yield "list", joined(b'{"base": "a.json"}', b'[{"base": "b.json"}]')


# ---- folders of tensor files ----------------------------------------------------------------

def entries(rows):
    return tf_records(0, rows)[1:]


def tensor_folders():
    head = (b"", number(1, 1) + field(3, number(1, 1)))
    two = (b"", number(1, 2) + field(3, number(1, 1)))
    rows = [(b"a", tf_entry(1, [2], 0, 8)), (b"c", tf_entry(9, [], 8, 8))]
    table, tables = entries([head] + rows), entries([two] + rows)
    shard = bytes(range(30)) + b"\0"

    def folder(opened, *files):
        return bytes([opened]) + joined(*(name + b"\n" + body for name, body in files))
    state = b'model_checkpoint_path: "b"\nall_model_checkpoint_paths: "b"\n'
    one = (b"b.index", table), (b"b.data-00000-of-00001", shard)
    yield "state", folder(0, (b"checkpoint", state), *one)
    yield (
        "state_far",
        folder(1, (b"checkpoint", b'model_checkpoint_path: "/no/where/\\142"\n'), *one),
    )
    yield "state_gone", folder(0, (b"checkpoint", b"model_checkpoint_path: 'gone'"), *one)
    yield "alone", folder(0, *one)
    yield "more", folder(0, *one, (b"d.index", table))
    yield "named", folder(2, *one)
    yield "table", folder(3, *one)
    yield "shards", folder(2, (b"b.index", tables), (b"b.data-00000-of-00002", shard),
                           (b"b.data-00001-of-00002", shard))
    yield "shard_gone", folder(2, (b"b.index", tables), (b"b.data-00000-of-00002", shard))
    yield "saved", folder(0, (b"saved_model.pb", b"\x08\1"), (b"variables.index", table),
                          (b"variables.data-00000-of-00001", shard))
    yield "saved_text", folder(4, (b"saved_model.pbtxt", b""), (b"variables.index", table),
                               (b"variables.data-00000-of-00001", shard))
    yield "meta", folder(2, (b"b.meta", b"\x0a\0"), *one)


# ---- archives -------------------------------------------------------------------------------

def archives():
    def packed(mode, names):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode=mode, format=tarfile.GNU_FORMAT) as tar:
            for name in names:
                info = tarfile.TarInfo(name)
                info.size = 3
                tar.addfile(info, io.BytesIO(b"abc"))
        return b"\0" + out.getvalue()
    yield "tar", packed("w:", ["a", "b/c", "n" * 150])
    yield "gzip", packed("w:gz", ["a", "b/c"])
    for name, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", method) as z:
            z.writestr(zipfile.ZipInfo("a"), b"abc" * 9, method)
            z.writestr(zipfile.ZipInfo("../b"), b"", method)
        yield "zip_" + name, b"\0" + out.getvalue()
    yield "entries", b"\1" + joined(b"5d/\n\n", b"0d/a\n\nabc", b"0b\n\n")
    for kind in b"123467LKxg":
        yield (
            "kind_%02x" % kind,
            b"\1" + joined(b"0a\n\nabc", bytes([kind]) + b"l\na\n", b"0l/c\n\nx"),
        )
    for n, name in enumerate(
        (b"../up", b"/top", b"d/../../up", b"..", b"", b"d/./e", b"d//e", b"d/..e")
    ):
        yield "name_%d" % n, b"\1" + joined(b"0a\n\nabc", b"0" + name + b"\n\nx")
    yield "over", b"\1" + joined(b"0a\n\nabc", b"5a\n\n", b"0a/b\n\nx")


# ---- the cache of pipelines -----------------------------------------------------------------

def pipeline_caches():
    body = b"\x20\0\0\0\1\0\0\0" + bytes(range(24))
    yield "sound", b"\0\0" + body
    yield "magic", b"\0\1" + body
    yield "sum", b"\x10\1" + body
    yield "empty", b"\0\0"
    yield "foreign", b"\1\0" + b"pmpipe1\0" + struct.pack("<Q", 0) + body
    yield "short", b"\1\0pmpipe1"
