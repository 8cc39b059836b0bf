"""Seeds for the fuzz targets of ONNX models and of TensorFlow checkpoints; make_corpus.py writes
them."""
import struct

from wire_format import field, masked, number, varint


# ---- ONNX --------------------------------------------------------------------------------

def onnx_tensor(name, kind, dims, data):
    return b"".join(number(1, d) for d in dims) + number(2, kind) + data + field(8, name)


def onnx_model(graph, ir=8, opset=17, rest=b""):
    return number(1, ir) + field(2, b"x") + field(7, graph) + field(8, number(2, opset)) + rest


def onnx_attr(name, kind, value):
    return field(5, field(1, name) + value + (number(20, kind) if kind else b""))


def onnx_value(name, dims):
    shape = b"".join(field(1, number(1, d) if isinstance(d, int) else field(2, d)) for d in dims)
    return field(1, name) + field(2, field(1, number(1, 1) + field(2, shape)))


def onnxs():
    floats = struct.pack("<4f", 1, -2, 0.5, 3e38)
    tensors = [onnx_tensor(b"raw", 1, (2, 2), field(9, floats)),
               onnx_tensor(b"listed", 1, (4,), field(4, floats)),
               onnx_tensor(b"single", 1, (1,), varint(4 << 3 | 5) + floats[:4]),
               onnx_tensor(b"half", 10, (2,), field(5, varint(0x3c00) + varint(0xc100))),
               onnx_tensor(b"flags", 9, (2,), number(5, 1) + number(5, 0)),
               onnx_tensor(b"ints", 7, (2,), field(7, varint(300) + varint(-1))),
               onnx_tensor(b"double", 11, (1,), field(10, struct.pack("<d", 2.5))),
               onnx_tensor(b"unsigned", 13, (1,), field(11, varint(-1))),
               onnx_tensor(b"text", 8, (2,), field(6, b"a") + field(6, b"b")),
               onnx_tensor(b"scalar", 1, (), field(9, floats[:4])),
               onnx_tensor(b"long", 1, (1025,), field(9, bytes(4100)))]
    far = onnx_tensor(b"far", 1, (2,), b"".join(
        field(13, field(1, k) + field(2, v)) for k, v in
        ((b"location", b"model.onnx"), (b"offset", b"4"), (b"length", b"8"))) + number(14, 1))
    attrs = [
        onnx_attr(b"f", 1, varint(2 << 3 | 5) + floats[:4]),
        onnx_attr(b"i", 2, number(3, -1)),
        onnx_attr(b"s", 3, field(4, b"SAME")),
        onnx_attr(b"t", 4, field(5, tensors[0])),
        onnx_attr(b"fs", 6, field(7, floats)),
        onnx_attr(b"is", 7, number(8, 1) + number(8, 2)),
        onnx_attr(b"packed", 7, field(8, varint(1) + varint(500))),
        onnx_attr(b"ss", 8, field(9, b"a") + field(9, b"")),
        onnx_attr(b"old", 0, number(3, 5)),
    ]
    node = field(1, b"x") + field(1, b"") + field(2, b"y") + field(3, b"n") + field(4, b"Conv")
    io = field(11, onnx_value(b"x", [b"N", 3, 5, 5])) + field(12, onnx_value(b"y", []))
    meta = field(14, field(1, b"key") + field(2, b"value"))
    writable = [t for t in tensors if b"text" not in t]
    good = onnx_model(field(1, node + b"".join(attrs)) + field(2, b"g") +
                      b"".join(field(5, t) for t in writable) + io, rest=meta)
    yield "good", b"\1" + good
    yield "beside", b"\3" + good
    yield "text", b"\1" + onnx_model(field(5, tensors[8]))
    yield "far", b"\1" + onnx_model(field(5, far))
    yield "old", b"\1" + onnx_model(field(1, node) + field(5, tensors[0]) + io +
                                   field(11, onnx_value(b"raw", [2, 2])), ir=3, opset=9)
    yield (
        "graph",
        b"\1" + onnx_model(field(1, field(4, b"If") + onnx_attr(b"then", 5, field(6, b"")))),
    )
    yield "sparse", b"\1" + onnx_model(field(15, b""))
    yield "domains", b"\1" + onnx_model(field(1, field(4, b"Gelu") + field(7, b"lib")), rest=field(
        25, field(1, b"Gelu") + field(10, b"lib")) + field(8, field(1, b"lib") + number(2, 1)))
    for i, t in enumerate(tensors + [far]):
        yield f"tensor{i}", b"\0" + t


def onnx_nodes(*nodes):
    """The nodes of a graph, each given as (operator, inputs, outputs, attributes)."""
    return b"".join(field(1, b"".join(field(1, i) for i in ins.split()) +
                          b"".join(field(2, o) for o in outs.split()) + field(4, op) +
                          b"".join(onnx_attr(*a) for a in attrs)) for op, ins, outs, attrs in nodes)


def onnx_ints(name, *values):
    return name, 7, b"".join(number(8, v) for v in values)


def onnx_nets():
    def weights(name, *dims, kind=1):
        count = 1
        for d in dims:
            count *= d
        return field(5, onnx_tensor(name, kind, dims, field(9, bytes(range(count * 4 % 200)) +
                                                            bytes(count * 4 - count * 4 % 200))))

    def shape(name, *values):
        return field(
            5, onnx_tensor(name, 7, (len(values),), field(7, b"".join(map(varint, values))))
        )

    def io(*dims):
        return field(11, onnx_value(b"x", dims)) + field(12, onnx_value(b"y", []))
    classifier = onnx_nodes(
        (b"Conv", b"x w b", b"c", [onnx_ints(b"pads", 1, 1, 1, 1), onnx_ints(b"strides", 2, 2)]),
        (b"BatchNormalization", b"c b b b b", b"n", []), (b"Relu", b"n", b"r", []),
        (b"MaxPool", b"r", b"p", [onnx_ints(b"kernel_shape", 2, 2)]),
        (b"Add", b"p p", b"s", []), (b"GlobalAveragePool", b"s", b"g", []),
        (b"Flatten", b"g", b"f", []), (b"Gemm", b"f m k", b"l", [(b"transB", 2, number(3, 1))]),
        (b"Softmax", b"l", b"y", []))
    yield "classifier", b"\1" + onnx_model(
        classifier + weights(b"w", 4, 3, 3, 3) + weights(b"b", 4) + weights(b"m", 5, 4) +
        weights(b"k", 5) + io(b"N", 3, 8, 8))
    folded = onnx_nodes(
        (b"Shape", b"x", b"a", []), (b"Gather", b"a i", b"d", []), (b"Unsqueeze", b"d z", b"e", []),
        (b"Concat", b"e rest", b"t", [(b"axis", 2, number(3, 0))]), (b"Reshape", b"x t", b"y", []))
    yield "folded", b"\0" + onnx_model(
        folded + field(5, onnx_tensor(b"i", 7, (), field(7, b"\0"))) + shape(b"z", 0) +
        shape(b"rest", -1) + io(2, 3, 4))
    views = onnx_nodes(
        (b"Transpose", b"x", b"a", [onnx_ints(b"perm", 0, 2, 1)]),
        (b"Slice", b"a lo hi", b"b", []), (b"Split", b"b", b"c d", [(b"axis", 2, number(3, 2))]),
        (b"Mul", b"c v", b"e", []), (b"Concat", b"d e", b"f", [(b"axis", 2, number(3, 2))]),
        (b"MatMul", b"f w", b"g", []), (b"ReduceMean", b"g", b"y", [onnx_ints(b"axes", 1)]))
    yield "views", b"\0" + onnx_model(
        views + shape(b"lo", 0, 1) + shape(b"hi", 2, 4) + weights(b"v", 2) + weights(b"w", 4, 3) +
        io(2, 4, 4), opset=12)


# ---- TensorFlow's checkpoints ------------------------------------------------------------

def tf_shape(*dims):
    return field(2, b"".join(field(2, number(1, d) if d else b"") for d in dims))


def tf_slice(n, *parts):
    """Field n with a slice; parts: (start, length) in each dimension, None for all of it."""
    return field(n, b"".join(field(1, b"" if p is None else number(1, p[0]) + number(2, p[1]))
                             for p in parts))


def tf_entry(dtype, dims, offset, size, more=b""):
    crc = masked(bytes(range(offset, offset + size)))
    return (number(1, dtype) + tf_shape(*dims) + number(4, offset) + number(5, size)
            + bytes([6 << 3 | 5]) + crc + more)


def tf_records(kind, records):
    return bytes([kind]) + b"".join(struct.pack("<BH", len(key), len(value)) + key + value
                                    for key, value in records)


def tf_checkpoints(project):
    for path in sorted((project / "tests/golden/tf_checkpoint").glob("*/model*")):
        if ".data-" not in path.name:
            kind = 0 if path.suffix == ".index" else 4
            yield path.parent.name + "-" + path.name, bytes([kind]) + path.read_bytes()
    head = (b"", number(1, 1) + field(3, number(1, 1)))
    rows = [(b"\0p\0\1\1\2\x80\x82\x80\x81", tf_entry(1, [2, 1], 0, 8)),
            (b"\0p\0\1\1\2\x82\x82\x80\x7f", tf_entry(1, [2, 1], 8, 8)),
            (b"p", number(1, 1) + tf_shape(4, 1) + tf_slice(7, (0, 2), (0, 1))
             + tf_slice(7, (2, 2), None))]
    yield "v2-slices", tf_records(1, [head] + rows)
    sizes = {1: 4, 2: 8, 3: 4, 4: 1, 5: 2, 6: 1, 9: 8, 10: 1, 14: 2, 17: 2, 19: 2, 22: 4, 23: 8}
    yield (
        "v2-types",
        tf_records(
            1,
            [head]
            + [(b"t%02d" % t, tf_entry(t, [3], 2 * t, 3 * n)) for t, n in sizes.items()]
            + [
                (b"u/.ATTRIBUTES/VARIABLE_VALUE", tf_entry(1, [], 0, 4)),
                (b"v", tf_entry(7, [2], 0, 9)),
                (b"w", tf_entry(1, [0, 3], 0, 0)),
            ],
        ),
    )
    meta = b"".join(field(1, field(1, name) + tf_shape(*dims) + number(3, t) + slices)
                    for name, dims, t, slices in (
                        (b"a", [2], 1, tf_slice(4, None)), (b"b", [3], 3, tf_slice(4, None)),
                        (b"h", [], 19, tf_slice(4)),
                        (b"p", [3], 10, tf_slice(4, (0, 2)) + tf_slice(4, (2, 1)))))

    def values(name, key, part, body):
        return (b"\0" + name + b"\0\1" + key,
                field(2, field(1, name) + part + field(3, body)))

    yield (
        "v1",
        tf_records(
            5,
            [
                (b"", field(1, meta)),
                values(b"a", b"\1\1\x80\x7f", tf_slice(2, None), field(5, bytes(8))),
                values(b"b", b"\1\1\x80\x7f", tf_slice(2, None), field(7, b"\1\2\3")),
                values(b"h", b"\0", tf_slice(2), field(13, b"\x80\x78")),
                values(b"p", b"\1\1\x80\x82", tf_slice(2, (0, 2)), field(11, b"\0\1")),
                values(b"p", b"\1\1\x82\x81", tf_slice(2, (2, 1)), field(11, b"\1")),
            ],
        ),
    )
    contents = (
        b"\0\0"
        + bytes([len(head[1])])
        + head[1]
        + b"\0\1\4w\x08\x07\x12\0"
        + b"\0" * 4
        + b"\1\0\0\0"
    )
    for name, kind, block in (("blocks", 2, contents), (  # snappy: the length, then one literal
            "packed", 10, bytes([len(contents), len(contents) - 1 << 2]) + contents)):
        index = b"\0\x33\2" + b"w" * 51 + bytes([0, len(block)]) + b"\0" * 4 + b"\1\0\0\0"
        yield name, bytes([kind]) + block + index
    yield "state", b'\3model_checkpoint_path: "b"\nall_model_checkpoint_paths: "b"\n'
    yield "state-far", b'\3# x\nmodel_checkpoint_path: "/no/where/\\142"\n'
