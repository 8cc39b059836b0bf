#!/usr/bin/env python3
"""Makes keypoint_losses.json: losses of keypoints and their gradients, computed by torchvision's
Keypoint R-CNN loss in double precision.

    python3 tests/golden/keypoint_losses.py    # torchvision 0.14.1

torchvision divides by the keypoints of the whole batch. That is normalize_over=batch. For the mean
over the pictures its loss is called once for each picture. A picture without a keypoint to learn
has the loss 0. The gradient is autograd's. Numbers are those of torch_numbers.py, scaled by powers
of two. The logits of case k are its first numbers, from n = k + 1 on; the test draws them again.
Corners of boxes are whole 64ths and keypoints are whole 128ths, so many lie on a border of a box or
of a place. The places of a box are multiples of a power of two there, so float32 finds them
exactly."""
import torch
import torchvision
from torchvision.models.detection.roi_heads import keypointrcnn_loss

from torch_numbers import Numbers, flat, weighted, write

IMAGES, ROWS, TRUTHS = 3, 6, 3
# Options of the layer, side of the heatmaps, and keypoints of an object. torchvision's are squares.
CASES = [("", 8, 3), ("normalize_over=batch", 8, 3), ("weight=4", 4, 5), ("", 1, 2),
         ("normalize_over=batch weight=0.5", 16, 1)]


def boxes(r):
    """Sides of 16, 32 or 64 whole 64ths."""
    low = r(IMAGES, ROWS, 2) % 32 / 64
    side = 2 ** (r(IMAGES, ROWS, 2) % 3) / 4
    b = torch.cat([low, low + side], 2)
    b[:, 0] = torch.tensor([0.0, 0, 1, 1])
    return b


def xyv(points, visible):
    """torchvision's keypoints: x, y, visible."""
    return torch.stack([points[..., 1], points[..., 0], visible], -1)


def case(index, options, side, count):
    r = Numbers(index + 1)
    logits = (r(IMAGES * ROWS, side, side, count) / 4096 - 4).requires_grad_(True)
    box = boxes(r)
    points = (r(IMAGES, TRUTHS, count, 2) % 144 - 8) / 128
    points[:, 0, 0] = torch.tensor([1.0, 0])  # on the border of the first box of each picture
    visible = (r(IMAGES, TRUTHS, count) % 4 != 0).double()
    visible[:, 0, 0] = 1
    matches = r(IMAGES, ROWS).long() % (TRUTHS + 2) - 2
    matches[:, 0] = 0
    matches[2] = -1  # a picture without an object
    maps, rois, truths, rows = [], [], [], []
    for i in range(IMAGES):
        own = [k for k in range(ROWS) if matches[i, k] >= 0]
        of = logits[[i * ROWS + k for k in own]]
        maps.append(of.permute(0, 3, 1, 2).contiguous())
        rois.append(box[i, own][:, [1, 0, 3, 2]])
        truths.append(xyv(points[i], visible[i]))
        rows.append(matches[i, own])
    if "batch" in options:
        total = keypointrcnn_loss(torch.cat(maps), rois, truths, rows)
    else:
        losses = [keypointrcnn_loss(maps[i], [rois[i]], [truths[i]], [rows[i]])
                  for i in range(IMAGES) if len(rows[i])]
        total = sum(losses) / IMAGES
    total = weighted(total, options)
    total.backward()
    y_x = points.masked_fill(visible[..., None] == 0, -1)  # -1: not labelled
    return {"options": options, "side": side, "keypoints": count, "boxes": flat(box),
            "matches": matches.flatten().tolist(), "points": flat(y_x),
            "loss": total.item(), "gradient": flat(logits.grad)}


def main():
    torch.set_default_dtype(torch.float64)
    head = {"images": IMAGES, "rows": ROWS, "truths": TRUTHS}
    cases = [case(i, *c) for i, c in enumerate(CASES)]
    write("keypoint_losses.json", "torchvision", torchvision.__version__, head, cases)


if __name__ == "__main__":
    main()
