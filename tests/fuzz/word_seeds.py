"""Seeds of words_fuzz and texts_fuzz: lists of words, files of LMDB, charsets and texts. The first
byte selects a row of the target's table."""
import struct

from folder_seeds import joined
from picture_seeds import png

PAGE = 512


def lmdb_page(number, flags, nodes):
    """nodes: (low, high, key, data); see tests/formats/lmdb_made.h."""
    page, lower, upper = bytearray(PAGE), 16, PAGE
    for low, high, key, data in nodes:
        node = struct.pack("<IHH", low, high, len(key)) + key + data
        node += bytes(len(node) % 2)
        upper -= len(node)
        page[upper:upper + len(node)] = node
        struct.pack_into("<H", page, lower, upper)
        lower += 2
    struct.pack_into("<QHHHH", page, 0, number, 0, flags, lower, upper)
    return bytes(page)


def lmdb_meta(number, root, last, transaction):
    page = bytearray(PAGE)
    struct.pack_into("<QHH", page, 0, number, 0, 8)
    struct.pack_into("<II", page, 16, 0xbeefc0de, 1)
    struct.pack_into("<I", page, 40, PAGE)
    struct.pack_into("<Q", page, 80, 2**64 - 1)
    struct.pack_into("<QQQ", page, 128, root, last, transaction)
    return bytes(page)


def lmdb(entries):
    """A root, leaves of two entries, and pages of large values."""
    leaves = [entries[i:i + 2] for i in range(0, len(entries), 2)]
    first, pages, large = 3 + len(leaves), [], []
    for i, leaf in enumerate(leaves):
        nodes = []
        for key, value in leaf:
            if len(value) <= 150:
                nodes.append((len(value), 0, key, value))
                continue
            nodes.append((len(value), 1, key, struct.pack("<Q", first + len(large))))
            body = struct.pack("<QHHI", first + len(large), 0, 4, 1) + value
            large += [body[k:k + PAGE].ljust(PAGE, b"\0") for k in range(0, len(body), PAGE)]
        pages.append(lmdb_page(3 + i, 2, nodes))
    root = lmdb_page(2, 1, [(3 + i, 0, leaf[0][0] if i else b"", b"")
                            for i, leaf in enumerate(leaves)])
    last = first + len(large) - 1
    return (lmdb_meta(0, 2**64 - 1, last, 1) + lmdb_meta(1, 2, last, 2) + root + b"".join(pages)
            + b"".join(large))


def words():
    yield "lines", b"\0" + "a.png word\na.png\tStra\u00dfe\na.png, \"x y\"\n".encode()
    yield "lines_bad", b"\0a.png\n../a.png x\nb.png y\n"
    yield "not_utf8", b"\0a.png \xff\n"
    yield "json", b"\1" + joined(b'{"filename": "a.png", "text": "x", "lexicon": ["x", 1]}\n'
                                 b'{"text": "\\ud83d\\ude00", "path": "a.png", "z": [{}]}\n',
                                 b'{"m": {}, "data_list": [{"img_path": "a.png", "instances": '
                                 b'[{"text": "y"}]}]}')
    yield "json_list", b"\1" + joined(b"", b'[{"image": "a.png", "label": ""}]')
    picture = png(4, 3, 2)
    entries = [(b"image-000000001", picture), (b"image-000000002", picture + bytes(400)),
               (b"label-000000001", b"word"), (b"label-000000002", b"x"), (b"num-samples", b"2")]
    yield "lmdb", b"\2" + lmdb(entries)
    yield "lmdb_json", b"\2" + lmdb([(b"label-000000001", b'{"filename": "a.png", "text": "x"}'),
                                     (b"num-samples", b"1")])
    yield "lmdb_cut", b"\2" + lmdb(entries)[:-300]
    yield "lmdb_32", b"\2" + bytes(12) + struct.pack("<II", 0xbeefc0de, 1) + bytes(200)
    yield "lexicon", b"\3" + joined(b"a.png\tx\n", b"x\ny z\n")
    yield "cut", b"\4" + b"0,0,3,0,3,2,0,2,a\n0 0 3 2 \"b\"\n0,0,3,0,3,2,0,2,###\n"
    yield "cut_odd", b"\4" + b"0,2,0,0,3,0,3,2,a\n0,0,3,2,3,0,0,2,b\n-9,-9,9,-9,9,9,-9,9,c\n"


def texts():
    yield "ascii", b"\0" + joined(b"", b"word 12", b"word\tother")
    yield "file", b"\0" + joined("a\n\u00e4\nB\n \n".encode(), "a\u0308B".encode(),
                                 "a\tB\u00e4".encode())
    yield "lower", b"\1" + joined(b"a\nb\n", "AB\u0130".encode(), b"ab\t\tB")
    yield "twice", b"\0" + joined(b"a\na\n", b"a", b"")
    yield "wrong", b"\0" + joined(b"ab\n\xff\n", b"\xc3", b"\x7f")
    yield "points", b"\0" + joined(b"", b"a", b"", struct.pack("<8f", 1, 2, 90, 5, 1, 60, 95, 70))
    bent = 0, 0, 50, 9, 50, 9, 199, -99, 0, 30, 0, 30, 60, 40, 60, 40
    yield "bent", b"\0" + joined(b"", b"a", b"", struct.pack("<16f", *bent))
