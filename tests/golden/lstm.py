#!/usr/bin/env python3
"""Makes lstm.json: outputs and gradients of LSTM layers, computed by PyTorch's LSTM in double
precision.

    python3 tests/golden/lstm.py    # PyTorch 2.15.0

The columns of the layer's kernel and bias are the gates i, j, f, o. PyTorch has them as rows in the
order i, f, g, o, where g is j. The forget bias is added to PyTorch's bias_ih. Examples of unlike
lengths are a packed sequence; with direction=backward the numbers are those of the second direction
of a bidirectional LSTM. The loss is the mean of the squared distances from a target. Numbers are
those of torch_numbers.py, scaled by powers of two: kernel, bias, x and target of case k are the
numbers of seed k + 1 in this order. The test draws them again."""
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from torch_numbers import Numbers, flat, write

# Options, steps, channels, units, lengths of the examples.
CASES = [("", 6, 4, 5, [6, 6, 6]), ("direction=backward", 6, 4, 5, [6, 6, 6]),
         ("", 6, 3, 4, [1, 6, 3, 2]), ("direction=backward", 6, 3, 4, [1, 6, 3, 2]),
         ("forget_bias=0", 1, 5, 3, [1, 1]), ("forget_bias=-2 direction=backward", 4, 2, 6, [4, 1])]
ORDER = [0, 2, 1, 3]  # PyTorch's gates among ours, and ours among PyTorch's


def turned(rows, units):
    """Rows of gates in the other order."""
    return torch.cat([rows[g * units:(g + 1) * units] for g in ORDER])


def forget_of(options):
    words = [w for w in options.split() if w.startswith("forget_bias=")]
    return float(words[0][12:]) if words else 1.0


def case(index, options, steps, c, units, lengths):
    r = Numbers(index + 1)
    n = len(lengths)
    kernel, bias = r(c + units, 4 * units) / 16384 - 1, r(4 * units) / 16384 - 1
    x = (r(n, steps, c) / 8192 - 2).requires_grad_(True)
    target = r(n, steps, units) / 16384 - 1
    net = torch.nn.LSTM(c, units, batch_first=True, bidirectional=True)
    back = "backward" in options
    end = "_l0_reverse" if back else "_l0"
    with torch.no_grad():
        forget = torch.zeros(4 * units)
        forget[2 * units:3 * units] = forget_of(options)
        getattr(net, "weight_ih" + end).copy_(turned(kernel[:c].T, units))
        getattr(net, "weight_hh" + end).copy_(turned(kernel[c:].T, units))
        getattr(net, "bias_ih" + end).copy_(turned(bias + forget, units))
        getattr(net, "bias_hh" + end).zero_()
    packed = pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    both, _ = pad_packed_sequence(net(packed)[0], batch_first=True, total_length=steps)
    y = both[..., units:] if back else both[..., :units]
    loss = ((y - target) ** 2).mean()
    loss.backward()
    grads = [getattr(net, name + end).grad for name in ("weight_ih", "weight_hh", "bias_ih")]
    return {"options": options, "steps": steps, "channels": c, "units": units, "lengths": lengths,
            "loss": loss.item(), "y": flat(y), "dx": flat(x.grad),
            "dkernel": flat(torch.cat([turned(g, units).T for g in grads[:2]])),
            "dbias": flat(turned(grads[2], units))}


def main():
    torch.set_default_dtype(torch.float64)
    write("lstm.json", "torch", torch.__version__, {}, [case(i, *c) for i, c in enumerate(CASES)])


if __name__ == "__main__":
    main()
