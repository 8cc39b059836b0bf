"""JPEGs for picture_seeds.py: baseline, progressive and arithmetic-coded, in all usual samplings,
with many APP segments, and kinds that the decoder refuses.

There is no transform: the coefficients of each block are invented, most of them zero. All Huffman
codes of a table have one length, so a code is the index of its symbol."""
import struct

# Sampling (horizontal, vertical) of each component, by the names used in file names.
SAMPLINGS = {"gray": ((1, 1),), "444": ((1, 1),) * 3, "420": ((2, 2), (1, 1), (1, 1)),
             "422": ((2, 1), (1, 1), (1, 1)), "440": ((1, 2), (1, 1), (1, 1)),
             "411": ((4, 1), (1, 1), (1, 1)), "cmyk": ((1, 1),) * 4}

DC_SYMBOLS = list(range(12))  # bits of a difference
# Symbols: run of zeros and bits of a value; end of the band for one block and for many; 16 zeros.
AC_SYMBOLS = [run << 4 | bits for run in range(16) for bits in range(1, 11)] + \
             [n << 4 for n in range(15)] + [0xf0]


def segment(marker, body):
    return bytes([0xff, marker]) + struct.pack(">H", len(body) + 2) + body


class Bits:
    """Entropy-coded bytes: highest bit first, a zero byte after each 0xff, padded with ones."""

    def __init__(self):
        self.bits = []

    def put(self, value, count):
        self.bits += [value >> i & 1 for i in reversed(range(count))]

    def dc(self, difference):
        size = abs(difference).bit_length()
        self.put(DC_SYMBOLS.index(size), 4)
        self.put(difference if difference >= 0 else difference + (1 << size) - 1, size)

    def symbol(self, symbol):
        self.put(AC_SYMBOLS.index(symbol), 8)

    def band(self, values):
        """Codes the AC values of a block, or one band of them. An end symbol replaces final
        zeros."""
        run = 0
        for v in values:
            if v == 0:
                run += 1
                continue
            while run > 15:
                self.symbol(0xf0)
                run -= 16
            size = abs(v).bit_length()
            self.symbol(run << 4 | size)
            self.put(v if v > 0 else v + (1 << size) - 1, size)
            run = 0
        if run:
            self.symbol(0)

    def refine(self, values):
        """Codes one more bit of a band's values; the band has fewer than 16 zeros in a row."""
        run, corrections = 0, []
        last = max((k for k, v in enumerate(values) if abs(v) == 1), default=-1)
        for k, v in enumerate(values):
            if abs(v) > 1:
                corrections.append(abs(v) & 1)
            elif v:
                self.symbol(run << 4 | 1)
                self.put(v > 0, 1)
                for bit in corrections:
                    self.put(bit, 1)
                run, corrections = 0, []
            elif k < last:
                run += 1
        self.symbol(0)
        for bit in corrections:
            self.put(bit, 1)

    def bytes(self):
        bits = self.bits + [1] * (-len(self.bits) % 8)
        out = bytes(int("".join(map(str, bits[i:i + 8])), 2) for i in range(0, len(bits), 8))
        return out.replace(b"\xff", b"\xff\0")


def block(component, index):
    """A block: the DC value and 63 AC values; a few of the first ones are not zero."""
    values = [(37 * index + 11 * component) % 97 - 48] + [0] * 63
    for k in (1, 2, 5, 9):
        values[k] = (5 * index + 3 * k + component) % 9 - 4 if index % 3 else 0
    if index % 5 == 1:
        values[40] = 3
    return values


class Frame:
    def __init__(self, sampling, width=21, height=18):
        self.sampling, self.width, self.height = sampling, width, height
        self.most = [max(s[i] for s in sampling) for i in (0, 1)]
        self.units = [-(-size // (8 * most)) for size, most in zip((width, height), self.most)]

    def columns(self, c):
        return self.units[0] * self.sampling[c][0]

    def own_size(self, c):
        """Width and height in blocks of a scan that has the component c only."""
        return [-(-(-(-size * s // most)) // 8) for size, s, most in
                zip((self.width, self.height), self.sampling[c], self.most)]

    def interleaved(self):
        """(component, index of the block), in the order of a scan of all components."""
        for unit in range(self.units[0] * self.units[1]):
            y, x = divmod(unit, self.units[0])
            for c, (h, v) in enumerate(self.sampling):
                for i in range(h * v):
                    yield c, (y * v + i // h) * self.columns(c) + x * h + i % h

    def header(self, marker, precision=8, height=None, names=None):
        names = names or range(1, 9)
        body = struct.pack(
            ">BHHB",
            precision,
            self.height if height is None else height,
            self.width,
            len(self.sampling),
        )
        for name, (h, v) in zip(names, self.sampling):
            body += bytes([name, h << 4 | v, 0])
        return segment(marker, body)

    def scan(self, data, components=None, band=(0, 63), bits=(0, 0), names=None):
        components = range(len(self.sampling)) if components is None else components
        names = names or range(1, 9)
        body = bytes([len(components)]) + b"".join(bytes([names[c], 0]) for c in components)
        return segment(0xda, body + bytes([*band, bits[0] << 4 | bits[1]])) + data


def half(v):
    return v // 2 if v >= 0 else -(-v // 2)


QUANTISATION = segment(0xdb, b"\0" + bytes(1 + i // 8 for i in range(64)))
TABLES = (segment(0xc4, b"\0" + bytes([0, 0, 0, len(DC_SYMBOLS)] + [0] * 12) + bytes(DC_SYMBOLS)) +
          segment(0xc4, b"\x10" + bytes([0] * 7 + [len(AC_SYMBOLS)] + [0] * 8) + bytes(AC_SYMBOLS)))


def sequential(frame, restarts=0, blocks=None):
    """The scan's data, with a restart marker after every `restarts` units."""
    per_unit = sum(h * v for h, v in frame.sampling)
    before, bits, out, restart = {}, Bits(), b"", 0
    for i, (c, index) in enumerate(frame.interleaved()):
        if restarts and i and i % (restarts * per_unit) == 0:
            out += bits.bytes() + bytes([0xff, 0xd0 + restart % 8])
            bits, before, restart = Bits(), {}, restart + 1
        values = block(c, index)
        bits.dc(values[0] - before.get(c, 0))
        bits.band(values[1:])
        before[c] = values[0]
    return out + bits.bytes()


def progressive(frame):
    """The scans: DC without its last bit, AC bands without theirs, then the last bits of both."""
    before, first, last = {}, Bits(), Bits()
    for c, index in frame.interleaved():
        dc = block(c, index)[0]
        first.dc((dc >> 1) - before.get(c, 0))
        before[c] = dc >> 1
        last.put(dc & 1, 1)
    out = frame.scan(first.bytes(), band=(0, 0), bits=(0, 1))
    for low, high, step in ((1, 13, 0), (14, 63, 0), (1, 13, 1)):
        for c in range(len(frame.sampling)):
            bits = Bits()
            width, height = frame.own_size(c)
            for y in range(height):
                for x in range(width):
                    values = block(c, y * frame.columns(c) + x)[low:high + 1]
                    if step:
                        bits.refine(values)
                    else:
                        bits.band([half(v) for v in values])
            out += frame.scan(bits.bytes(), (c,), (low, high), (step, 1 - step))
    return out + frame.scan(last.bytes(), band=(0, 0), bits=(1, 0))


def jpeg(*parts):
    return b"\xff\xd8" + b"".join(parts) + b"\xff\xd9"


def tiff(orientation, order=">"):
    """EXIF data with the camera maker's name and the orientation."""
    mark = b"MM" if order == ">" else b"II"
    return (
        mark
        + struct.pack(order + "HIH", 42, 8, 2)
        + struct.pack(order + "HHII", 0x10F, 2, 4, 0x58)
        + struct.pack(order + "HHIHH", 0x112, 3, 1, orientation, 0)
        + bytes(4)
    )


def exif(orientation, order=">"):
    return segment(0xe1, b"Exif\0\0" + tiff(orientation, order))


def apps():
    """The segments that cameras and programs write."""
    return [
        segment(0xE0, b"JFIF\0\1\2\1\0H\0H\2\1" + bytes(6)),
        segment(0xE0, b"JFXX\0\x13\1\1abc"),
        exif(6),
        segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x/>"),
        segment(0xE2, b"ICC_PROFILE\0\1\2" + bytes(20)),
        segment(0xE2, b"ICC_PROFILE\0\2\2" + bytes(9)),
        segment(0xE2, b"MPF\0MM\0*"),
        segment(0xED, b"Photoshop 3.0\x008BIM\4\4\0\0\0\0\0\0"),
        segment(0xFE, b"a comment"),
        b"\xff\xff",
        segment(0xEE, b"Adobe\0\x64\0\0\0\0\1"),
        exif(3),
    ]


def jpegs():
    gray, color = Frame(SAMPLINGS["gray"]), Frame(SAMPLINGS["420"])
    for name, sampling in SAMPLINGS.items():
        frame = Frame(sampling)
        adobe = segment(0xee, b"Adobe\0\x64\0\0\0\0\2") if name == "cmyk" else b""
        yield f"jpeg_{name}", jpeg(adobe, QUANTISATION, frame.header(0xc0), TABLES,
                                   frame.scan(sequential(frame)))
        yield (
            f"progressive_{name}",
            jpeg(adobe, QUANTISATION, frame.header(0xC2), TABLES, progressive(frame)),
        )
        # An arithmetic decoder accepts any bytes.
        for marker, kind in ((0xc9, "sequential"), (0xca, "progressive")):
            data = bytes((29 * i + 7) % 251 for i in range(60))
            scans = frame.scan(data) if marker == 0xc9 else \
                frame.scan(data, band=(0, 0)) + frame.scan(data[5:], (0,), (1, 63))
            yield f"arithmetic_{kind}_{name}", jpeg(adobe, QUANTISATION, frame.header(marker),
                                                    segment(0xcc, b"\0\x10\x10\5"), scans)
    data = gray.scan(sequential(gray))
    yield (
        "jpeg_apps",
        jpeg(*apps(), QUANTISATION, color.header(0xC1), TABLES, color.scan(sequential(color))),
    )
    yield "jpeg_restarts", jpeg(QUANTISATION, segment(0xdd, b"\0\1"), color.header(0xc0), TABLES,
                                color.scan(sequential(color, 1)))
    yield (
        "jpeg_cmyk_plain",
        jpeg(
            QUANTISATION,
            Frame(SAMPLINGS["cmyk"]).header(0xC0),
            TABLES,
            Frame(SAMPLINGS["cmyk"]).scan(sequential(Frame(SAMPLINGS["cmyk"]))),
        ),
    )
    frame = Frame(SAMPLINGS["444"])
    yield "jpeg_rgb", jpeg(QUANTISATION, frame.header(0xc0, names=b"RGB"), TABLES,
                           frame.scan(sequential(frame), names=b"RGB"))
    for orientation in range(9):
        yield (
            f"jpeg_exif{orientation}",
            jpeg(
                exif(orientation, "<>"[orientation % 2]),
                QUANTISATION,
                gray.header(0xC0),
                TABLES,
                data,
            ),
        )
    yield "jpeg_exif_cut", jpeg(exif(6)[:-20], QUANTISATION, gray.header(0xc0), TABLES, data)
    yield "jpeg_padding", jpeg(QUANTISATION, b"\0", gray.header(0xc0), TABLES, data, b"\0\0\0")
    yield "jpeg_no_tables", jpeg(QUANTISATION, gray.header(0xc0), data)
    yield "jpeg_no_height", jpeg(QUANTISATION, gray.header(0xc0, height=0), TABLES, data)
    yield "jpeg_12_bits", jpeg(QUANTISATION, gray.header(0xc1, precision=12), TABLES, data)
    yield "jpeg_lossless", jpeg(gray.header(0xc3), TABLES, data)
    yield "jpeg_cut", jpeg(QUANTISATION, gray.header(0xc0), TABLES, data)[:-12]
