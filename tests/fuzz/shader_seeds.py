"""Seeds of the fuzz target that translates shaders: numbers of the program's shaders, changes of
their words, and a small whole module."""
import struct


def module():
    """A loop around a switch, with two values that change places."""
    instructions = [
        (17, 1), (14, 0, 1), (15, 5, 1, 0x6E69616D, 0), (16, 1, 17, 32, 1, 1),
        (19, 2), (33, 3, 2), (21, 4, 32, 1), (20, 5),
        (43, 4, 6, 0), (43, 4, 7, 1),
        (54, 2, 1, 0, 3), (248, 8), (249, 9),
        (248, 9), (245, 4, 10, 6, 8, 11, 12), (245, 4, 11, 7, 8, 10, 12),
        (246, 13, 12, 1), (249, 14),
        (248, 14), (247, 15, 0), (251, 10, 16, 3, 17),
        (248, 16), (249, 15), (248, 17), (249, 13), (248, 15), (249, 12),
        (248, 12), (177, 5, 18, 10, 7), (250, 18, 9, 13),
        (248, 13), (253,), (56,),
    ]
    words = [0x07230203, 0x10500, 0, 20, 0]
    for one in instructions:
        words += [len(one) << 16 | one[0], *one[1:]]
    return struct.pack(f"<{len(words)}I", *words)


def translations():
    yield "whole", b"\1" + module()
    yield "whole_fused", b"\3" + module()
    for shader in range(0, 180, 3):
        yield f"shader_{shader}", bytes([shader % 2 * 2, shader])
    changes = [struct.pack("<BHI", what, 97 * i, i) for i, what in enumerate((0, 1, 2, 3, 4) * 3)]
    for i, change in enumerate(changes):
        yield f"change_{i}", bytes([0, 11 * i]) + change
    yield "changes", bytes([0, 30]) + b"".join(changes)
