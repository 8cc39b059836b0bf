"""Reads the records of TFRecord files without further packages. Checksums are not compared."""
import glob
import struct


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """The fields of a protobuf message: number, and value as bytes or integer."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def values_of(feature):
    (kind, data), = list(fields(feature)) or [(0, b"")]
    if kind == 1:
        return [v for _, v in fields(data)]
    if kind == 2:
        return [f for _, v in fields(data) for f in struct.unpack(f"<{len(v) // 4}f", v)]
    out = []
    for _, v in fields(data):
        at = 0
        while isinstance(v, bytes) and at < len(v):
            number, at = varint(v, at)
            out.append(number)
        out += [v] if isinstance(v, int) else []
    return out


def records(pattern):
    """The features of each record, key -> list, in the order of the files."""
    for path in sorted(glob.glob(pattern)):
        with open(path, "rb") as f:
            data = f.read()
        at = 0
        while at < len(data):
            size, = struct.unpack_from("<Q", data, at)
            example = data[at + 12:at + 12 + size]
            at += 16 + size
            (_, features), = fields(example)
            yield {dict(fields(e))[1].decode(): values_of(dict(fields(e)).get(2, b""))
                   for _, e in fields(features)}
