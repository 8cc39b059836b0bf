#!/usr/bin/env python3
"""Makes mask_losses.json: losses of instance masks and their gradients, computed from the
definition of Mask R-CNN's mask loss with PyTorch in double precision.

    python3 tests/golden/mask_losses.py    # PyTorch 2.15.0

Targets come from grid_sample with aligned corners, which is the rule of TensorFlow's
crop_and_resize; samples outside of the mask are set to 0. The gradient is autograd's. Numbers are
those of torch_numbers.py, scaled by powers of two. The logits of case k are its first numbers, from
n = k + 1 on; the test draws them again. Corners of boxes are whole 64ths, so a sample lies on the
mask's border or at least 1/400 of a pixel from it. A mask is written as text, a line of 0 and 1 for
each row."""
import torch
import torch.nn.functional as F

from torch_numbers import Numbers, flat, weighted, write

IMAGES, ROWS, TRUTHS, CLASSES = 2, 6, 3, 3
# Options of the layer, height and width of the masks, of the logits, and channels.
CASES = [
    ("", (9, 37), (5, 4), CLASSES),
    ("normalize_over=batch weight=4", (9, 37), (5, 4), CLASSES),
    ("weight=2", (33, 64), (7, 6), CLASSES),
    ("", (7, 5), (4, 3), 1),
    ("normalize_over=batch", (1, 1), (3, 3), CLASSES),
    ("", (8, 70), (1, 1), CLASSES),
]


def boxes(r):
    """Corners in order; the first boxes of each image are the whole, one without area, and one that
    leaves the mask."""
    b = (r(IMAGES, ROWS, 4) % 80 - 8) / 64
    low, high = torch.minimum(b[..., :2], b[..., 2:]), torch.maximum(b[..., :2], b[..., 2:])
    b = torch.cat([low, high], 2)
    b[:, 0] = torch.tensor([0.0, 0, 1, 1])
    b[:, 1] = torch.tensor([0.25, 0.5, 0.25, 0.5])
    b[:, 2] = torch.tensor([-0.5, 0.25, 0.5, 1.25])
    return b


def places(low, high, count, size):
    """Places of samples in pixels."""
    at = torch.linspace(0, 1, count, dtype=torch.float64) if count > 1 else torch.full([1], 0.5)
    return (low + at.double() * (high - low)) * (size - 1)


def crop(mask, box, h, w):
    y, x = places(box[0], box[2], h, mask.shape[0]), places(box[1], box[3], w, mask.shape[1])
    sides = [max(s - 1, 1) for s in mask.shape]
    grid = torch.stack([(2 * x / sides[1] - 1).expand(h, w),
                        (2 * y / sides[0] - 1)[:, None].expand(h, w)], 2)
    z = F.grid_sample(mask[None, None], grid[None], padding_mode="border",
                      align_corners=True)[0, 0]
    out_y = (y < -1e-9) | (y > mask.shape[0] - 1 + 1e-9)
    out_x = (x < -1e-9) | (x > mask.shape[1] - 1 + 1e-9)
    return z.masked_fill(out_y[:, None] | out_x, 0)


def case(index, options, mask_size, size, channels):
    r, (h, w) = Numbers(index + 1), size
    logits = (r(IMAGES * ROWS, h, w, channels) / 4096 - 4).requires_grad_(True)
    box = boxes(r)
    matches = r(IMAGES, ROWS).long() % (TRUTHS + 2) - 2
    matches[:, :3] = torch.arange(3)
    masks = (r(IMAGES, TRUTHS, *mask_size) % 4 != 0).double()
    classes = r(IMAGES, TRUTHS).long() % CLASSES
    weights = r(IMAGES, TRUTHS) % 4 / 2
    weights[0, 0] = 0  # an object without a mask
    losses, pixels = [], []
    for i in range(IMAGES):
        loss, count = torch.zeros((), dtype=torch.float64), 0.0
        for k in range(ROWS):
            g = int(matches[i, k])
            if g < 0:
                continue
            x = logits[i * ROWS + k, :, :, 0 if channels == 1 else int(classes[i, g])]
            z = crop(masks[i, g], box[i, k], h, w)
            loss = loss + weights[i, g] * F.binary_cross_entropy_with_logits(
                x, z, reduction="sum")
            count += float(weights[i, g]) * h * w
        losses.append(loss)
        pixels.append(count)
    if "batch" in options:
        total = sum(losses) / max(sum(pixels), 1)
    else:
        total = sum(l / max(p, 1) for l, p in zip(losses, pixels)) / IMAGES
    total = weighted(total, options)
    total.backward()
    lines = ["".join(str(int(v)) for v in row) for row in masks.reshape(-1, mask_size[1])]
    return {"options": options, "height": h, "width": w, "channels": channels,
            "mask_height": mask_size[0], "mask_width": mask_size[1],
            "boxes": flat(box), "matches": matches.flatten().tolist(),
            "masks": lines, "classes": classes.flatten().tolist(), "weights": flat(weights),
            "loss": total.item(), "gradient": flat(logits.grad)}


def main():
    head = {"images": IMAGES, "rows": ROWS, "truths": TRUTHS}
    cases = [case(i, *c) for i, c in enumerate(CASES)]
    write("mask_losses.json", "PyTorch", torch.__version__, head, cases)


if __name__ == "__main__":
    main()
