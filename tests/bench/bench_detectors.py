"""Pumice's detectors as PyTorch modules for the side-by-side benchmark, with their losses, mining
of hard examples and suppression, written with torchvision's operators where these exist. Layers,
shapes, anchors and trained parameters are those of src/nets/ssd_build.c and its neighbours; padding
as in bench_nets.py.

Boxes are ymin, xmin, ymax, xmax in 0..1 of the picture, N anchors of a picture, M true boxes."""
import math

import torch
from torch import nn
from torch.nn import functional as F
from torchvision.ops import batched_nms, nms, sigmoid_focal_loss

from bench_nets import MOBILENET_V2, Bottleneck, InvertedResidual, norm

MOST_BOXES = 100  # M: data.max_boxes
MATCHED = 32  # one anchor of so many is matched, as in Pumice's random batches


def corners(centers, sizes):
    return torch.cat([centers - sizes / 2, centers + sizes / 2], -1)


def grid_anchors(cells, sizes, stride, offset):
    """Anchors of one map with `cells` [2] along its sides: `sizes` [A, 2] around the centre of each
    cell."""
    y, x = torch.meshgrid(*(torch.arange(n) * stride + offset for n in cells), indexing="ij")
    centers = torch.stack([y, x], -1)[:, :, None, :].expand(-1, -1, len(sizes), -1)
    return corners(centers, sizes.expand(*cells, -1, -1)).reshape(-1, 4)


def box_sizes(pairs):
    return torch.tensor([[s / math.sqrt(ratio), s * math.sqrt(ratio)] for s, ratio in pairs])


def encode(boxes, anchors):
    """Codes of boxes relative to anchors, faster_rcnn's coder."""
    size, anchor = boxes[..., 2:] - boxes[..., :2], anchors[..., 2:] - anchors[..., :2]
    center = (boxes[..., 2:] + boxes[..., :2] - anchors[..., 2:] - anchors[..., :2]) / 2
    return torch.cat([10 * center / anchor, 5 * torch.log(size / anchor)], -1)


def decode(codes, anchors):
    anchor, center = anchors[..., 2:] - anchors[..., :2], (anchors[..., 2:] + anchors[..., :2]) / 2
    return corners(codes[..., :2] / 10 * anchor + center, torch.exp(codes[..., 2:] / 5) * anchor)


def hardest(losses, boxes, matched, most=3000, iou=0.99, ratio=3, least=3):
    """Whether each anchor's loss counts, for one picture: suppression with the loss as the score,
    then all matched anchors and so many others for each."""
    chosen = nms(boxes, losses, iou)[:most]
    positive = matched[chosen]
    budget = max(least, ratio * int(positive.sum()))
    kept = torch.zeros_like(losses)
    kept[chosen[positive | ((~positive).cumsum(0) <= budget)]] = 1
    return kept


def ranks(labels):
    """The number of earlier elements with the same label, for each element."""
    order = torch.sort(labels, stable=True).indices
    counts = torch.bincount(labels)
    rank = torch.empty_like(labels)
    rank[order] = torch.arange(len(labels), device=labels.device) - torch.repeat_interleave(
        counts.cumsum(0) - counts, counts
    )
    return rank


def detections(boxes, scores, threshold=1e-8, iou=0.6, per_class=100, most=100):
    """Boxes, scores and classes of one picture, as TensorFlow's multiclass_non_max_suppression.
    boxes: [N, 4], or [N, C, 4] of each class."""
    anchor, label = (scores > threshold).nonzero(as_tuple=True)
    score = scores[anchor, label]
    boxes = boxes[anchor] if boxes.dim() == 2 else boxes[anchor, label]
    kept = batched_nms(boxes, score, label, iou)
    kept = kept[ranks(label[kept]) < per_class]
    clipped = boxes[kept].clamp(0, 1)
    area = (clipped[:, 2:] - clipped[:, :2]).prod(1) > 0
    return clipped[area][:most], score[kept][area][:most], label[kept][area][:most]


class Detector(nn.Module):
    """What detectors share. Subclasses have class_losses(), whether they mine, self.classes and
    self.anchors [N, 4]. Their forward() returns the maps of box codes and those of logits. Column 0
    of the logits is the background."""

    channels = 3

    @staticmethod
    def joined(maps, last):
        """[n, A * last, h, w] of each level -> [n, N, last]"""
        return torch.cat([m.permute(0, 2, 3, 1).reshape(len(m), -1, last) for m in maps], 1)

    def heads(self, maps):
        return self.joined(maps[0], 4), self.joined(maps[1], self.classes + 1)

    def truths(self, batch):
        """Random truths of a batch, matched to the anchors: matches [n, N] (rows of the boxes, or
        -1), boxes [n, M, 4], classes [n, M], weights [n, M], and the losses' divisor."""
        shape = (batch, MOST_BOXES)
        y, x = torch.rand(*shape, 2).sort(-1).values, torch.rand(*shape, 2).sort(-1).values
        boxes = torch.stack([y[..., 0], x[..., 0], y[..., 1], x[..., 1]], -1)
        matches = torch.randint(MOST_BOXES, (batch, len(self.anchors)))
        matches[torch.rand(matches.shape) > 1 / MATCHED] = -1
        classes = torch.randint(self.classes, shape)
        return matches, boxes, classes, torch.rand(shape), 1 + torch.rand(())

    def loss(self, maps, matches, boxes, classes, weights, normalizer):
        codes, logits = self.heads(maps)
        matched = matches >= 0
        image, anchor = matched.nonzero(as_tuple=True)
        row = matches[image, anchor]
        weight = weights[image, row]
        column = torch.zeros_like(matches)
        column[image, anchor] = classes[image, row] + 1
        class_weights = torch.ones_like(logits[..., 0])
        class_weights[image, anchor] = weight
        targets = torch.zeros_like(logits).scatter_(-1, column[..., None], 1)
        class_losses = self.class_losses(logits, targets).sum(-1) * class_weights
        encoded = encode(boxes[image, row], self.anchors[anchor])
        box_losses = F.smooth_l1_loss(codes[image, anchor], encoded, reduction="none").sum(-1)
        box_losses = box_losses * weight
        if self.mines:
            kept = self.mined(class_losses.detach(), codes.detach(), matched)
            class_losses, box_losses = class_losses * kept, box_losses * kept[image, anchor]
        return (class_losses.sum() + box_losses.sum()) / normalizer

    def mined(self, losses, codes, matched):
        boxes = decode(codes, self.anchors)
        return torch.stack([hardest(*one) for one in zip(losses, boxes, matched)])

    def predict(self, images):
        codes, logits = self.heads(self(images))
        boxes, scores = decode(codes, self.anchors), torch.sigmoid(logits[..., 1:])
        return [detections(*one) for one in zip(boxes, scores)]


class SsdMobilenetV2(Detector):
    """ssd_mobilenet_v2: mobilenet_v2's maps of stride 16 and 32 and four smaller ones, sigmoid loss
    with mining of hard examples."""

    size, weight_decay, mines = 300, 4e-5, True
    maps, depths = (19, 10, 5, 3, 2, 1), (512, 256, 256, 128)

    def __init__(self, classes):
        super().__init__()
        self.classes = classes
        self.stem = self.conv(3, 32, 3, 2)
        self.units, cin = nn.ModuleList(), 32
        for i, (cout, stride) in enumerate(MOBILENET_V2):
            self.units.append(InvertedResidual(cin, cout, 6 if i else 1, stride, 1))
            cin = cout
        self.last = self.conv(cin, 1280, 1, 1)
        self.extra, cin = nn.ModuleList(), 1280
        for depth in self.depths:
            self.extra.append(nn.Sequential(self.conv(cin, depth // 2, 1, 1),
                                            self.conv(depth // 2, depth, 3, 2)))
            cin = depth
        widths, counts = (576, 1280, *self.depths), [3] + [6] * 5
        self.codes = nn.ModuleList(nn.Conv2d(w, 4 * n, 1) for w, n in zip(widths, counts))
        self.logits = nn.ModuleList(
            nn.Conv2d(w, (classes + 1) * n, 1) for w, n in zip(widths, counts)
        )
        self.register_buffer("anchors", self.make_anchors())

    @classmethod
    def make_anchors(cls):
        scales = [0.2 + 0.75 * k / 5 for k in range(6)] + [1]
        levels = [[(0.1, 1), (0.2, 2), (0.2, 0.5)]]
        for scale, following in zip(scales[1:], scales[2:]):
            levels.append([(scale, ratio) for ratio in (1, 2, 0.5, 3, 0.3333)])
            levels[-1].append((math.sqrt(scale * following), 1))
        return torch.cat([grid_anchors((n, n), box_sizes(pairs), 1 / n, 0.5 / n)
                          for n, pairs in zip(cls.maps, levels)])

    @staticmethod
    def conv(cin, cout, kernel, stride):
        return nn.Sequential(nn.Conv2d(cin, cout, kernel, stride, kernel // 2, bias=False),
                             *norm(cout, 1e-3, 0.0003, nn.ReLU6(inplace=True)))

    def forward(self, images):
        x, maps = self.stem(images), []
        for i, unit in enumerate(self.units):
            x, expanded, _ = unit(x)
            if i == 13:
                maps.append(expanded)
        maps.append(self.last(x))
        for extra in self.extra:
            maps.append(extra(maps[-1]))
        return ([head(m) for head, m in zip(self.codes, maps)],
                [head(m) for head, m in zip(self.logits, maps)])

    @staticmethod
    def class_losses(logits, targets):
        return F.binary_cross_entropy_with_logits(logits, targets, reduction="none")


class Tower(nn.Module):
    """Four convolutions and a head, whose weights all levels share. Batch norms are a level's
    own."""

    def __init__(self, width, out, levels):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(width, width, 3, 1, 1, bias=False) for _ in range(4))
        self.norms = nn.ModuleList(
            nn.ModuleList(nn.Sequential(*norm(width, 1e-3, 0.003, nn.ReLU6(inplace=True)))
                          for _ in range(4)) for _ in range(levels))
        self.head = nn.Conv2d(width, out, 3, 1, 1)

    def forward(self, maps):
        out = []
        for x, norms in zip(maps, self.norms):
            for conv, after in zip(self.convs, norms):
                x = after(conv(x))
            out.append(self.head(x))
        return out


class SsdResnetV150Fpn(Detector):
    """ssd_resnet_v1_50_fpn: a feature pyramid of resnet_v1_50 with levels 3 to 7, heads that all
    levels share, and the focal loss."""

    size, weight_decay, mines = 320, 4e-4, False
    width, levels = 256, 5

    def __init__(self, classes):
        super().__init__()
        self.classes = classes
        relu6 = nn.ReLU6
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False),
                                  *norm(64, 1.001e-5, 0.003, relu6(inplace=True)),
                                  nn.MaxPool2d(3, 2, 1))
        self.blocks, cin = nn.ModuleList(), 64
        for units, depth in [(3, 64), (4, 128), (6, 256), (3, 512)]:
            self.blocks.append(nn.Sequential(*(
                Bottleneck(cin if i == 0 else 4 * depth, depth, 1, relu6) for i in range(units))))
            cin = 4 * depth
        self.projections = nn.ModuleList(nn.Conv2d(c, self.width, 1) for c in (512, 1024, 2048))
        self.smoothing = nn.ModuleList(self.conv(1) for _ in range(2))
        self.coarser = nn.ModuleList(self.conv(2) for _ in range(2))
        self.codes = Tower(self.width, 4 * 6, self.levels)
        self.logits = Tower(self.width, (classes + 1) * 6, self.levels)
        self.register_buffer("anchors", self.make_anchors())

    @classmethod
    def make_anchors(cls):
        out = []
        for level in range(3, 3 + cls.levels):
            stride = 2**level
            pairs = [(4 * stride * 2 ** (i / 2), ratio) for ratio in (1, 2, 0.5) for i in range(2)]
            offset = stride / 2 if cls.size % stride == 0 else 0
            cells = [math.ceil(cls.size / stride)] * 2
            out.append(grid_anchors(cells, box_sizes(pairs), stride, offset))
        return torch.cat(out) / cls.size

    def conv(self, stride):
        return nn.Sequential(nn.Conv2d(self.width, self.width, 3, stride, 1, bias=False),
                             *norm(self.width, 1e-3, 0.003, nn.ReLU6(inplace=True)))

    def forward(self, images):
        x, fine = self.stem(images), []
        for i, block in enumerate(self.blocks):
            x = block(x[:, :, ::2, ::2] if i else x)
            fine.append(x)
        c3, c4, c5 = (p(x) for p, x in zip(self.projections, fine[1:]))
        c4 = c4 + F.interpolate(c5, size=c4.shape[-2:], mode="nearest")
        c3 = c3 + F.interpolate(c4, size=c3.shape[-2:], mode="nearest")
        maps = [self.smoothing[0](c3), self.smoothing[1](c4), c5]
        for conv in self.coarser:
            maps.append(conv(maps[-1]))
        return self.codes(maps), self.logits(maps)

    @staticmethod
    def class_losses(logits, targets):
        return sigmoid_focal_loss(logits, targets, alpha=0.25, gamma=2)
