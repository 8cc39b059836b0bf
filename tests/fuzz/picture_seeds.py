"""Picture seeds for make_corpus.py: small files of every format that Pumice decodes, and some with
small defects."""
import struct
import zlib

from jpeg_seeds import jpegs, tiff


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


# First column and row of each pass over an interlaced PNG, and their distances.
ADAM7 = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)


def rows(width, height, bits):
    """Rows of a PNG, each after its filter byte; empty when the width is 0."""
    row = (width * bits + 7) // 8
    return b"".join(bytes([y % 5]) + bytes((7 * x + 13 * y) & 255 for x in range(row))
                    for y in range(height if width else 0))


def png(width, height, color, depth=8, interlace=0, extra=b""):
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    lines = rows(width, height, samples * depth)
    if interlace:
        lines = b"".join(rows(len(range(x, width, dx)), len(range(y, height, dy)), samples * depth)
                         for x, y, dx, dy in ADAM7)
    return (b"\x89PNG\r\n\x1a\n" +
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace)) +
            extra + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def bmp(width, height, bits, compression=0):
    row = (width * bits + 31) // 32 * 4
    palette = b"".join(bytes([i, i, i, 0]) for i in range(1 << bits)) if bits <= 8 else b""
    if compression == 3:
        palette = struct.pack("<III", 0xf800, 0x7e0, 0x1f)
    at = 54 + len(palette)
    pixels = bytes((3 * i) & 255 for i in range(row * height))
    return (b"BM" + struct.pack("<IHHI", at + len(pixels), 0, 0, at) +
            struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, len(pixels), 0, 0,
                        0, 0) + palette + pixels)


def webps():
    """4 x 4 pixels: lossless with alpha, and lossy."""
    lossless = bytes.fromhex(
        "2f03c000107fa0a66d03e6ae3401943fd28250c8360224b07b00ce9fec4014b28d00c704760fc0319c42b611"
        "e098c0ee0138ab2b03fe13685b0204da96c0b611d8b67b04402400116df2c9171b5cb0c5059f22fa1f3d2867")
    lossy = bytes.fromhex(
        "d001009d012a0400040002c04c25900274010ef781278000fd5252de6b76a6164c7e6b07045d1057ecfbbb06"
        "cb09955ba57bd5e7ac60c7beaec4b000")

    def riff(*chunks):
        body = b"WEBP" + b"".join(
            kind + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)
            for kind, data in chunks)
        return b"RIFF" + struct.pack("<I", len(body)) + body

    extended = struct.pack("<B3xHBHB", 0x18, 3, 0, 3, 0)
    yield "webp_lossless", riff((b"VP8L", lossless))
    yield "webp_lossy", riff((b"VP8 ", lossy))
    yield "webp_exif", riff((b"VP8X", extended), (b"VP8L", lossless),
                            (b"EXIF", b"Exif\0\0" + tiff(6)))


def tiffs():
    """3 x 2 pixels without compression: grey of 8 and 16 bits, colours, a palette; both byte
    orders."""
    for name, photometric, samples, order, bits in (("grey", 1, 1, "<", 8), ("rgb", 2, 3, ">", 8),
                                                    ("palette", 3, 1, "<", 8),
                                                    ("grey16", 1, 1, ">", 16)):
        size = 6 * samples * bits // 8
        entries = [(256, 3, 1, 3), (257, 3, 1, 2), (258, 3, 1, bits), (259, 3, 1, 1),
                   (262, 3, 1, photometric), (273, 4, 1, 8), (274, 3, 1, 6), (277, 3, 1, samples),
                   (278, 3, 1, 2), (279, 4, 1, size)]
        at = 8 + size
        if photometric == 3:
            entries.append((320, 3, 768, at + 2 + 12 * 11 + 4))
        body = bytes((3 if bits == 16 else 40) * i & 255 for i in range(size))
        body += struct.pack(order + "H", len(entries))
        for tag, kind, count, value in entries:
            short = kind == 3 and count == 1
            body += struct.pack(order + ("HHIHxx" if short else "HHII"), tag, kind, count, value)
        body += bytes(4) + bytes(i & 255 for i in range(1536 if photometric == 3 else 0))
        mark = b"MM" if order == ">" else b"II"
        yield f"tiff_{name}", mark + struct.pack(order + "HI", 42, at) + body


def gif(width, height, interlace=0, transparent=False):
    head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x81, 0, 0)
    palette = bytes(range(12))
    control = b"\x21\xf9\x04\x01\0\0\1\0" if transparent else b""
    # Codes have 3 bits. A clear code before each pixel keeps them from growing.
    codes = [c for i in range(width * height) for c in (4, i & 3)] + [5]
    bits = sum(c << 3 * i for i, c in enumerate(codes))
    data = bits.to_bytes((3 * len(codes) + 7) // 8, "little")
    blocks = b"".join(bytes([len(data[i:i + 255])]) + data[i:i + 255]
                      for i in range(0, len(data), 255))
    return (head + palette + control + b"\x2c" +
            struct.pack("<HHHHB", 0, 0, width, height, interlace << 6) + b"\2" + blocks + b"\0;")


def tga(kind, bits, packed=False, palette=b""):
    """Three pixels in a row."""
    entries = len(palette) // 3
    head = struct.pack("<BBBHHBHHHHBB", 4, bool(entries), kind + 8 * packed, 0, entries,
                       24 if entries else 0, 0, 0, 3, 1, bits, 0x20)
    each = (bits + 7) // 8
    body = bytes(range(3 * each)) if not packed else bytes([0x81, *range(each), 0, *range(each)])
    if entries:
        body = bytes([0, 1, 2]) if not packed else bytes([0x82, 1])
    return head + b"text" + palette + body


def psd(depth, packed, channels):
    """Two pixels in a row."""
    each = depth // 8
    head = (
        b"8BPS"
        + struct.pack(">H6xHIIHH", 1, channels, 1, 2, depth, 3)
        + struct.pack(">III", 0, 4, 0)
    )
    head = head[:-4] + b"data" + bytes(4)
    if packed:
        return (
            head
            + struct.pack(">H", 1)
            + struct.pack(">H", 3) * channels
            + b"".join(bytes([1, c, c + 1]) if c % 2 else bytes([255, c]) for c in range(channels))
        )
    return head + struct.pack(">H", 0) + bytes(range(2 * each * channels))


def hdr(width, packed):
    head = b"#?RADIANCE\n# text\nFORMAT=32-bit_rle_rgbe\n\n-Y 2 +X %d\n" % width
    if not packed:
        return head + bytes((17 * i) & 255 | 128 for i in range(2 * width * 4))
    line = bytes([2, 2, width >> 8, width & 255])
    for c in range(4):
        line += bytes([128 + width - 3, 60 + c]) + bytes([3, 1, 2, 130])
    return head + line + line


def pngs():
    palette = chunk(b"PLTE", bytes(range(48)))
    depths = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
    for color, list_ in depths.items():
        for depth in list_:
            for interlace in (0, 1):
                colors = 3 << depth if depth < 8 else 768
                extra = chunk(b"PLTE", bytes(i & 255 for i in range(colors))) if color == 3 else b""
                yield f"png_{color}_{depth}_{interlace}", png(11, 9, color, depth, interlace, extra)
    yield "key16", png(4, 4, 2, 16, 0, chunk(b"tRNS", bytes(6)))
    yield "key_gray", png(4, 4, 0, 4, 0, chunk(b"tRNS", b"\0\7"))
    yield "palette_beyond", png(5, 5, 3, 8, 0, palette)
    for orientation in (3, 6):
        yield f"png_exif{orientation}", png(5, 4, 2, 8, 0, chunk(b"eXIf", tiff(orientation, "<")))
    yield "iend_twice", png(2, 2, 0) + chunk(b"IEND", b"")
    whole = png(30, 30, 0, 8)
    at = whole.index(b"IDAT") - 4
    data = zlib.compress(rows(30, 30, 8))
    yield "pieces", (whole[:at] + chunk(b"IDAT", data[:10]) + chunk(b"IDAT", b"") +
                     chunk(b"IDAT", data[10:]) + chunk(b"IEND", b""))
    yield "scattered", (whole[:at] + chunk(b"IDAT", data[:10]) + chunk(b"tEXt", b"a\0b") +
                        chunk(b"IDAT", data[10:]) + chunk(b"IEND", b""))


def others():
    yield "pgm", b"P5\n# text\n3 2 255\n" + bytes(range(6))
    yield "ppm", b"P6 2 1 255 " + bytes(range(6))
    yield "pgm16", b"P5 1 1 65535 ab"
    for bits in (15, 16, 24, 32):
        for packed in (False, True):
            yield f"tga{bits}_{packed:d}", tga(2, bits, packed)
    yield "tga_gray", tga(3, 8)
    yield "tga_gray_alpha", tga(3, 16, True)
    for packed in (False, True):
        yield f"tga_palette_{packed:d}", tga(1, 8, packed, bytes(range(9)))
        for channels in (3, 4):
            yield f"psd_{channels}_{packed:d}", psd(8, packed, channels)
        yield f"hdr_{packed:d}", hdr(10, packed)
    yield "psd16", psd(16, False, 3)
    yield "hdr_narrow", hdr(3, False)


def images():
    palette = chunk(b"PLTE", bytes(range(48)))
    for wanted in range(3):
        first = bytes([wanted])
        for name, body in (
            ("gray", png(5, 4, 0)),
            ("rgb", png(5, 4, 2)),
            ("rgba", png(3, 3, 6)),
            ("gray_alpha", png(3, 3, 4)),
            ("deep", png(3, 3, 2, 16)),
            ("bit", png(9, 3, 0, 1)),
            ("interlaced", png(9, 9, 2, 8, 1)),
            ("palette", png(5, 5, 3, 4, 0, palette + chunk(b"tRNS", b"\0\x80"))),
            ("key", png(4, 4, 2, 8, 0, chunk(b"tRNS", bytes(6)))),
            ("text", png(2, 2, 0, 8, 0, chunk(b"tEXt", b"a\0b"))),
            ("cut", png(5, 4, 2)[:-20]),
            ("rows", png(1, 1, 2).replace(b"\0", b"")),
            ("bmp24", bmp(3, 2, 24)),
            ("bmp32", bmp(3, 2, 32)),
            ("bmp8", bmp(3, 2, 8)),
            ("bmp4", bmp(3, 2, 4)),
            ("bmp1", bmp(9, 2, 1)),
            ("bmp16", bmp(3, 2, 16)),
            ("bmp_masks", bmp(3, 2, 16, 3)),
            ("bmp_down", bmp(3, -2, 24)),
            ("gif", gif(4, 3)),
            ("gif_rows", gif(5, 9, 1)),
            ("gif_clear", gif(4, 3, 0, True)),
            *pngs(),
            *webps(),
            *tiffs(),
            *others(),
            *jpegs(),
        ):
            yield f"{name}{wanted}", first + body
    # A first byte of 128 or more makes the fuzz target decode with stb_image.
    for name, body in jpegs():
        yield f"{name}_stb", b"\x80" + body


def labels():
    palette = chunk(b"PLTE", bytes(range(48)))
    for name, body in (
        ("gray", png(5, 4, 0)),
        ("deep", png(5, 4, 0, 16)),
        ("bits", png(9, 3, 0, 1)),
        ("two", png(9, 3, 0, 2)),
        ("palette", png(5, 5, 3, 8, 0, palette)),
        ("palette4", png(5, 5, 3, 4, 0, palette + chunk(b"tRNS", b"\0\x80"))),
        ("rgb", png(5, 4, 2)),
        ("rgb16", png(2, 1, 2, 16)),
        ("rgba", png(3, 3, 6)),
        ("gray_alpha", png(3, 3, 4)),
        ("interlaced", png(9, 9, 3, 4, 1, palette)),
        ("equal", png(4, 4, 2, 8, 1)),
        ("cut", png(5, 4, 0)[:-20]),
        ("text", png(2, 2, 0, 8, 0, chunk(b"tEXt", b"a\0b"))),
    ):
        yield name, body
