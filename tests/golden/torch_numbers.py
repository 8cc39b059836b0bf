"""Drawn numbers for goldens that PyTorch computes; the C tests draw the same ones.

They are v = n >> 16 of the sequence n -> (n 1103515245 + 12345) mod 2^31: whole numbers of 0 to
32767, so float32 holds them exactly, also when they are scaled by a power of two."""
import torch


class Numbers:
    """Numbers(seed)(*shape) draws a tensor of the next numbers of the sequence."""

    def __init__(self, seed):
        self.n = seed

    def __call__(self, *shape):
        count = 1
        for s in shape:
            count *= s
        out = []
        for _ in range(count):
            self.n = (self.n * 1103515245 + 12345) % 2**31
            out.append(self.n >> 16)
        return torch.tensor(out, dtype=torch.float64).reshape(shape)
