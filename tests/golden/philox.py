"""Philox4x32-10 and its distributions, with the same draws as include/pumice/rng.h.

A stream is addressed by (seed, name); draws are sequential in it. Arithmetic is in double
precision, as in C."""
import numpy as np

U32, U64 = np.uint32, np.uint64
CHUNK = 1 << 22  # numbers drawn at a time, which bounds the memory


def fnv1a(name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def philox(counters, key):
    """counters: four uint32 arrays; key: two ints. Returns four arrays of output words after ten
    rounds."""
    c = [x.astype(U64) for x in counters]
    k0, k1 = key
    mask, shift = U64(0xFFFFFFFF), U64(32)
    for _ in range(10):
        p0, p1 = c[0] * U64(0xD2511F53), c[2] * U64(0xCD9E8D57)
        c = [(p1 >> shift) ^ c[1] ^ U64(k0), p1 & mask, (p0 >> shift) ^ c[3] ^ U64(k1), p0 & mask]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [x.astype(U32) for x in c]


class Stream:
    """Sequential reader of the stream (seed, name), step 0, example 0."""

    def __init__(self, seed, name):
        h = fnv1a(name)
        self.key = ((seed ^ h) & 0xFFFFFFFF, seed >> 32)
        self.high = h >> 32
        self.block = 0
        self.left = np.empty(0, U32)

    def words(self, count):
        blocks = -(-(count - len(self.left)) // 4)
        if blocks > 0:
            first = np.arange(self.block, self.block + blocks, dtype=U64).astype(U32)
            zero = np.zeros(blocks, U32)
            out = philox([first, zero, zero, np.full(blocks, self.high, U32)], self.key)
            self.left = np.concatenate([self.left, np.stack(out, 1).reshape(-1)])
            self.block += blocks
        taken, self.left = self.left[:count], self.left[count:]
        return taken

    def uniform(self, count):
        out = np.empty(count)
        for first in range(0, count, CHUNK):
            words = self.words(min(CHUNK, count - first))
            out[first:first + len(words)] = (words >> U32(8)) * 2.0**-24
        return out

    def normal(self, count):
        u = self.uniform(2 * count)
        return np.sqrt(-2 * np.log(1 - u[0::2])) * np.cos(2 * np.pi * u[1::2])

    def truncated(self, count):
        """Normal values with |z| < 2: larger values are left out of the sequence."""
        parts, have = [], 0
        while have < count:
            z = self.normal(min(int((count - have) * 1.06) + 16, CHUNK))
            z = z[np.abs(z) < 2]
            parts.append(z)
            have += len(z)
        return np.concatenate(parts)[:count]


def signs(seed, name, first, count, vectors=16):
    """count x 16 matrix of +-1 for the elements from `first`, a multiple of 8. Column k is bit k of
    the element's 16 bits. A block holds the bits of eight elements, two in each word, low half
    first."""
    assert vectors == 16 and first % 8 == 0
    h = fnv1a(name)
    blocks = -(-count // 8)
    index = np.arange(first // 8, first // 8 + blocks, dtype=U64).astype(U32)
    zero = np.zeros(blocks, U32)
    words = philox([index, zero, zero, np.full(blocks, h >> 32, U32)],
                   ((seed ^ h) & 0xFFFFFFFF, seed >> 32))
    halves = np.stack([part for w in words for part in (w & U32(0xFFFF), w >> U32(16))], 1)
    bits = (halves.reshape(-1)[:count, None] >> np.arange(16, dtype=U32)) & U32(1)
    return bits.astype(np.float64) * 2 - 1


if __name__ == "__main__":
    # Known answers of the reference implementation, for counters and keys of all zeros and all
    # ones.
    zero, one = np.zeros(1, U32), np.full(1, 0xFFFFFFFF, U32)
    words = philox([zero] * 4, (0, 0))
    assert [int(w[0]) for w in words] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    words = philox([one] * 4, (0xFFFFFFFF, 0xFFFFFFFF))
    assert [int(w[0]) for w in words] == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    print("philox: known answers match")
