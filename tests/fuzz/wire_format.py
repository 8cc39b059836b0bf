"""Encoders of the seeds: protobuf fields, tf.Examples, and the checksum of TFRecord and TensorFlow
tables."""
import struct


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff)


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def number(n, value):
    return varint(n << 3) + varint(value)


def feature(kind, values, packed=True):
    if kind == 1:
        body = b"".join(field(1, v) for v in values)
    elif kind == 2 and packed:
        body = field(1, b"".join(struct.pack("<f", v) for v in values))
    elif kind == 2:
        body = b"".join(varint(1 << 3 | 5) + struct.pack("<f", v) for v in values)
    elif packed:
        body = field(1, b"".join(varint(v) for v in values))
    else:
        body = b"".join(varint(1 << 3) + varint(v) for v in values)
    return field(kind, body)


def example(features):
    entries = b"".join(field(1, field(1, key.encode()) + field(2, value))
                       for key, value in features)
    return field(1, entries)
