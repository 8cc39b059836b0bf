#!/usr/bin/env python3
"""Makes thin_plate.json: pictures that thin-plate splines straighten, and gradients. NumPy solves
the splines in double precision; PyTorch computes the gradients of the bilinear samples.

    python3 tests/golden/thin_plate.py    # PyTorch 2.15.0

The control points are the fixed points on the borders, plus offsets. The loss is the mean of the
squared distances from a target. Numbers are those of torch_numbers.py, scaled by powers of two:
offsets, picture and target of case k are the numbers of seed k + 1 in this order. The test draws
them again. No place is near the middle of a pixel, where the gradient jumps."""
import numpy as np
import torch

from torch_numbers import Numbers, flat, write

# Options, pictures, points, height, width, channels, scale of the offsets.
CASES = [("size=[4,9]", 2, 6, 7, 11, 3, 0.25), ("size=[5,8]", 2, 20, 16, 40, 1, 0.125),
         ("size=[3,7] margin_x=0.125 margin_y=0.25", 3, 12, 9, 8, 2, 0.5),
         ("size=[2,5]", 1, 4, 2, 6, 2, 1.0)]
NEAR = 1e-4


def option(options, key, default):
    words = [w for w in options.split() if w.startswith(key + "=")]
    return float(words[0][len(key) + 1:]) if words else default


def border(options, count):
    mx, my = option(options, "margin_x", 0), option(options, "margin_y", 0)
    x = np.linspace(mx, 1 - mx, count // 2)
    return np.concatenate([np.stack([x, np.full_like(x, y)], 1) for y in (my, 1 - my)])


def factors(options, count, rows, cols):
    """[rows cols, count]: the factors of the control points in each sample's place."""
    c = border(options, count)
    r = np.linalg.norm(c[:, None] - c[None], axis=2)
    np.fill_diagonal(r, 1)
    delta = np.zeros((count + 3, count + 3))
    delta[:count] = np.concatenate([np.ones((count, 1)), c, r**2 * np.log(r)], 1)
    delta[count:count + 2, 3:] = c.T
    delta[count + 2, 3:] = 1
    x, y = np.meshgrid((np.arange(cols) + 0.5) / cols, (np.arange(rows) + 0.5) / rows)
    grid = np.stack([x.ravel(), y.ravel()], 1)
    r = np.linalg.norm(grid[:, None] - c[None], axis=2)
    lifted = np.concatenate([np.ones((len(grid), 1)), grid, r**2 * np.log(r + 1e-6)], 1)
    return (lifted @ np.linalg.inv(delta))[:, :count]


def limited(place, size):
    inside = place.detach().numpy()
    parts = np.abs(inside - np.round(inside))
    assert parts.min() > NEAR, "a place is near the middle of a pixel: choose other numbers"
    return torch.clamp(place, 0, size - 2)


def sampled(x, points, m):
    n, h, w, _ = x.shape
    place = torch.einsum("sk,nka->nsa", m, points)
    s, t = limited(w * place[..., 0], w), limited(h * place[..., 1], h)
    col, row = s.detach().floor().long(), t.detach().floor().long()
    fx, fy = (s - col)[..., None], (t - row)[..., None]
    i = torch.arange(n)[:, None]
    top = (1 - fx) * x[i, row, col] + fx * x[i, row, col + 1]
    bottom = (1 - fx) * x[i, row + 1, col] + fx * x[i, row + 1, col + 1]
    return (1 - fy) * top + fy * bottom


def case(index, options, n, count, h, w, c, scale):
    r = Numbers(index + 1)
    rows, cols = (int(v) for v in options.split()[0][6:-1].split(","))
    offsets = r(n, count, 2) / 32768 - 0.5
    points = (torch.tensor(border(options, count)) + scale * offsets).requires_grad_(True)
    x = (r(n, h, w, c) / 16384 - 1).requires_grad_(True)
    target = r(n, rows * cols, c) / 16384 - 1
    y = sampled(x, points, torch.tensor(factors(options, count, rows, cols)))
    loss = ((y - target)**2).mean()
    loss.backward()
    return {"options": options, "shape": [n, h, w, c], "points": count, "scale": scale,
            "loss": loss.item(), "y": flat(y), "dpoints": flat(points.grad), "dx": flat(x.grad)}


def main():
    torch.set_default_dtype(torch.float64)
    write("thin_plate.json", "numpy", np.__version__, {},
          [case(i, *c) for i, c in enumerate(CASES)])


if __name__ == "__main__":
    main()
