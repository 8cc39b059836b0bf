#!/usr/bin/env python3
"""Makes ctc_losses.json: losses of sequences' texts and their gradients, computed by PyTorch's
ctc_loss in double precision.

    python3 tests/golden/ctc_losses.py    # PyTorch 2.15.0

The layer's mean over the examples is that of PyTorch's losses without a reduction;
normalize=symbols is PyTorch's reduction "mean". Impossible texts are masked by zero_infinity. The
gradient is autograd's. Numbers are those of torch_numbers.py, scaled by powers of two. The logits
of case k are the numbers of seed k + 1; the test draws them again. Symbols after an example's
length are -1 in the golden."""
import torch
from torch.nn.functional import ctc_loss, log_softmax

from torch_numbers import Numbers, flat, weighted, write

A, B, C, D = 1, 2, 3, 4
# Options of the layer, blank, steps, classes, the examples' texts, and their steps.
CASES = [
    ("", 6, 12, 7, [[A, B, C], [A, A, B], [B], [], [A, A, A, A, A, A]], None),
    ("blank=0", 0, 12, 7, [[A, B, C], [A, A, B], [B], [], [A, A, A, A, A, A]], [12, 5, 1, 7, 11]),
    ("blank=3 weight=0.5", 3, 8, 5, [[A, B, A, B, A, B, A, B], [D, D, D, D]], [8, 7]),
    ("blank=0", 0, 6, 5, [[A, B, C, D, A, B, C], [A, A, A, A], [C, C], [C], [D, D]],
     [6, 6, 2, 2, 3]),  # the first three are impossible
    ("normalize=symbols", 4, 9, 5, [[A, B, C, C], [A], []], [9, 4, 0]),
    ("blank=0 normalize=symbols weight=4", 0, 26, 38, [[A + i * 7 % 37 for i in range(23)],
                                                       [36] * 13], None),
]


def case(index, options, blank, steps, classes, texts, lengths):
    r = Numbers(index + 1)
    logits = (r(len(texts), steps, classes) / 4096 - 4).requires_grad_(True)
    lengths = lengths or [steps] * len(texts)
    losses = ctc_loss(log_softmax(logits, 2).transpose(0, 1),
                      torch.tensor([k for text in texts for k in text]), torch.tensor(lengths),
                      torch.tensor([len(text) for text in texts]), blank=blank, reduction="none",
                      zero_infinity=True)
    if "symbols" in options:
        losses = losses / torch.tensor([max(len(text), 1) for text in texts])
    total = weighted(losses.mean(), options)
    total.backward()
    most = max(len(text) for text in texts)
    return {"options": options, "steps": steps, "classes": classes, "most": most,
            "labels": [k for text in texts for k in text + [-1] * (most - len(text))],
            "label_lengths": [len(text) for text in texts], "lengths": lengths,
            "impossible": [float(x.item() == 0 and len(text) > 0)
                           for x, text in zip(losses, texts)],
            "loss": total.item(), "gradient": flat(logits.grad)}


def main():
    torch.set_default_dtype(torch.float64)
    write("ctc_losses.json", "torch", torch.__version__, {},
          [case(i, *c) for i, c in enumerate(CASES)])


if __name__ == "__main__":
    main()
