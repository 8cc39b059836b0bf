#!/usr/bin/env python3
"""Makes attention.json: logits and gradients of the attention decoder, computed by PyTorch in
double precision: its LSTMCell, and the attention by its linear layers.

    python3 tests/golden/attention.py    # PyTorch 2.15.0

A step's attention is computed from the state before the step (attention_decoder.c). The cell reads
the one-hot symbol and then the context. The columns of its kernel and bias are the gates i, j, f,
o; PyTorch has them as rows in the order i, f, g, o, where g is j. The forget bias, 1, is added to
PyTorch's bias_ih. The loss is the sum of the cross entropies of all steps with a label, divided by
the number of examples. Numbers are those of torch_numbers.py, scaled by powers of two: the seven
variables in the layer's order, then the sequence; case k has the numbers of seed k + 1. The test
draws them again."""
import torch
from torch.nn.functional import cross_entropy, linear, one_hot

from torch_numbers import Numbers, flat, write

ORDER = [0, 2, 1, 3]  # PyTorch's gates among ours, and ours among PyTorch's
# Steps of the sequence, channels, attention units, units, classes, labels of the examples; -1:
# padded.
CASES = [(4, 3, 4, 5, 6, [[2, 3, 1, -1], [1, -1, -1, -1], [5, 4, 3, 2]]),
         (1, 2, 3, 4, 5, [[1], [4]]),                           # one step, one vector
         (5, 4, 6, 3, 5, [[2, 2, 1, 4, 1], [-1] * 5]),          # an end inside; no example
         (3, 2, 3, 4, 4, [[2, 3, 3, 2, 3] * 6])]                # 30 steps


def turned(columns, units):
    """Columns of gates in the other order."""
    return torch.cat([columns[..., g * units:(g + 1) * units] for g in ORDER], -1)


def run(x, variables, labels, classes, units):
    keys, query, v, kernel, bias, dense, dense_bias = variables
    n, wide = x.shape[0], kernel.shape[0] - units
    cell = torch.nn.LSTMCell(wide, units)
    forget = torch.zeros(4 * units)
    forget[2 * units:3 * units] = 1
    own = {"weight_ih": turned(kernel[:wide], units).T, "weight_hh": turned(kernel[wide:], units).T,
           "bias_ih": turned(bias + forget, units), "bias_hh": torch.zeros(4 * units)}
    h = c = torch.zeros(n, units)
    symbol, logits = torch.zeros(n, dtype=torch.long), []
    for label in labels.T:
        score = torch.tanh(linear(x, keys.T) + linear(h, query.T)[:, None]) @ v
        context = (torch.softmax(score, 1)[:, :, None] * x).sum(1)
        read = torch.cat([one_hot(symbol.clamp(min=0), classes).double(), context], 1)
        h, c = torch.func.functional_call(cell, own, (read, (h, c)))
        runs = (label >= 0)[:, None]
        h, c = torch.where(runs, h, 0.0), torch.where(runs, c, 0.0)
        logits.append(h @ dense + dense_bias)
        symbol = label
    return torch.stack(logits, 1)


def case(index, t, c, attention, units, classes, labels):
    r = Numbers(index + 1)
    shapes = [(c, attention), (units, attention), (attention,), (classes + c + units, 4 * units),
              (4 * units,), (units, classes), (classes,)]
    variables = [(r(*s) / 16384 - 1).requires_grad_(True) for s in shapes]
    x = (r(len(labels), t, c) / 8192 - 2).requires_grad_(True)
    target = torch.tensor(labels)
    logits = run(x, variables, target, classes, units)
    loss = cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=-1,
                         reduction="sum") / len(labels)
    loss.backward()
    return {"t": t, "channels": c, "attention": attention, "units": units, "classes": classes,
            "labels": labels, "loss": loss.item(), "logits": flat(logits), "dx": flat(x.grad),
            "gradients": [flat(v.grad) for v in variables]}


def main():
    torch.set_default_dtype(torch.float64)
    write("attention.json", "torch", torch.__version__, {},
          [case(i, *c) for i, c in enumerate(CASES)])


if __name__ == "__main__":
    main()
