"""Pumice's detectors in two stages (src/nets/faster_rcnn.c) as PyTorch modules for the side-by-side
benchmark, with the layers between the stages and the losses (loss() names a difference), written
with torchvision's operators where these exist. Layers, shapes, anchors and trained parameters are
Pumice's, as are the initial values: in prediction these decide how many scores are above the
threshold.

Boxes are ymin, xmin, ymax, xmax in 0..1 of the picture; N anchors and R regions of a picture, M
true boxes, H and W sides of the map."""
import torch
from torch import nn
from torch.nn import functional as F
from torchvision.ops import box_iou, nms

from bench_detectors import Detector, box_sizes, decode, detections, encode, grid_anchors
from bench_nets import Bottleneck, norm

STRIDE, CROP = 16, 14
SCALES, RATIOS = (64, 128, 256, 512), (0.5, 1, 2)
PROPOSALS, PROPOSAL_IOU = 300, 0.7
DETECTIONS = 300  # of a picture: model.post_processing of these nets
ROWS, POSITIVES, MATCHED_IOU = 32, 8, 0.5  # of the regions that train the second stage


def crops_of(features, boxes):
    """TensorFlow's crop_and_resize to 14x14, then a max pool: [n, C, H, W] and [n, R, 4] ->
    [n R, C, 7, 7]. All crops of a picture are one tall crop, so that the map is not copied."""
    part = torch.linspace(0, 1, CROP, device=boxes.device)
    at = boxes[..., None, :2] + part[:, None] * (boxes[..., None, 2:] - boxes[..., None, :2])
    y, x = (2 * at - 1).unbind(-1)  # [n, R, CROP]
    count = boxes.shape[1]
    grid = torch.stack([x[:, :, None, :].expand(-1, -1, CROP, -1),
                        y[:, :, :, None].expand(-1, -1, -1, CROP)], -1).flatten(1, 2)
    tall = F.max_pool2d(F.grid_sample(features, grid, align_corners=True), 2)
    return tall.unflatten(2, (count, CROP // 2)).transpose(1, 2).flatten(0, 1)


def proposals_of(codes, logits, anchors):
    """The best boxes of one picture, and their number: [PROPOSALS, 4], padded with zeros."""
    boxes = decode(codes, anchors).clamp(0, 1)
    kept = nms(boxes, logits.softmax(-1)[:, 1], PROPOSAL_IOU)[:PROPOSALS]
    return F.pad(boxes[kept], (0, 0, 0, PROPOSALS - len(kept))), len(kept)


def drawn(candidates, most):
    return candidates[torch.randperm(len(candidates), device=candidates.device)[:most]]


def sampled(boxes, count, truth):
    """Regions of one picture that train the second stage: boxes [ROWS, 4], rows of the truth that
    they match (-1: background), and their number. The last may be padding."""
    iou, match = box_iou(boxes[:count], truth).max(1)
    positive = drawn((iou >= MATCHED_IOU).nonzero()[:, 0], POSITIVES)
    negative = drawn((iou < MATCHED_IOU).nonzero()[:, 0], ROWS - len(positive))
    chosen = torch.cat([positive, negative])
    matches = torch.full((ROWS,), -1, device=boxes.device)
    matches[: len(positive)] = match[positive]
    return F.pad(boxes[chosen], (0, 0, 0, ROWS - len(chosen))), matches, len(chosen)


class TwoStages(Detector):
    """What both nets share. Subclasses make self.first, up to the map, self.second, from a crop to
    its features, and call finish()."""

    sides = (256, 320)

    def finish(self, classes, width, features):
        """Makes the heads: `width` channels of the map, `features` of the second stage."""
        cell = len(SCALES) * len(RATIOS)
        self.classes = classes
        self.conv = nn.Conv2d(width, 512, 3, 1, 1)
        self.codes, self.logits = nn.Conv2d(512, 4 * cell, 1), nn.Conv2d(512, 2 * cell, 1)
        self.box_codes = nn.Linear(features, 4 * classes)
        self.box_classes = nn.Linear(features, classes + 1)
        for head in (self.conv, self.codes, self.logits):
            nn.init.trunc_normal_(head.weight, std=0.01, a=-0.02, b=0.02)
        for head in (self.box_codes, self.box_classes):
            nn.init.xavier_uniform_(head.weight)
        for head in (self.conv, self.codes, self.logits, self.box_codes, self.box_classes):
            nn.init.zeros_(head.bias)
        sizes = box_sizes([(scale, ratio) for ratio in RATIOS for scale in SCALES])
        anchors = grid_anchors([side // STRIDE for side in self.sides], sizes, STRIDE, 0)
        anchors = anchors / torch.tensor(self.sides * 2)
        self.register_buffer("anchors", anchors)
        self.register_buffer("inside", ((anchors >= 0) & (anchors <= 1)).all(1).nonzero()[:, 0])

    def forward(self, images):
        """Returns the map, and the first stage's codes and logits of all anchors."""
        features = self.first(images)
        x = F.relu6(self.conv(features), inplace=True)
        return features, self.joined([self.codes(x)], 4), self.joined([self.logits(x)], 2)

    def propose(self, codes, logits, anchors):
        with torch.no_grad():
            boxes, counts = zip(*(proposals_of(*one, anchors) for one in zip(codes, logits)))
        return torch.stack(boxes), counts

    def regions(self, features, boxes):
        """The second stage: codes [n, R, C, 4] and logits [n, R, C + 1]."""
        x = self.second(crops_of(features, boxes)).mean((2, 3))
        codes, logits = self.box_codes(x), self.box_classes(x)
        return (codes.reshape(*boxes.shape[:2], self.classes, 4),
                logits.reshape(*boxes.shape[:2], self.classes + 1))

    def loss(self, maps, matches, boxes, classes, weights, normalizer):
        """The four losses of both stages. All anchors count, by random matches, as in Pumice's
        benchmark: Pumice's loader, which draws some of them, is not measured. One weight differs:
        here a matched anchor has its box's weight in the classification loss of the first stage,
        in Pumice 1."""
        features, codes, logits = maps
        regions, counts = self.propose(codes[:, self.inside], logits[:, self.inside],
                                       self.anchors[self.inside])
        loss = picked_loss(codes, logits, self.anchors, matches, boxes, torch.zeros_like(classes),
                           weights, torch.full_like(weights[:, :1], 1 / normalizer))
        with torch.no_grad():
            chosen = [sampled(*one) for one in zip(regions, counts, boxes)]
            regions, matches = (torch.stack([one[k] for one in chosen]) for k in range(2))
            counts = torch.tensor([[one[2]] for one in chosen], device=boxes.device)
            valid = torch.arange(ROWS, device=boxes.device) < counts
        codes, logits = self.regions(features, regions)
        return loss + picked_loss(codes, logits, regions, matches, boxes, classes, weights,
                                  valid / counts.clamp(min=1))

    def predict(self, images):
        features, codes, logits = self(images)
        regions, counts = self.propose(codes, logits, self.anchors.clamp(0, 1))
        codes, logits = self.regions(features, regions)
        scores = logits.softmax(-1)[..., 1:]
        return [detections(decode(x[:k], box[:k, None]), s[:k], 0, most=DETECTIONS)
                for x, box, s, k in zip(codes, regions, scores, counts)]


def picked_loss(codes, logits, anchors, matches, boxes, classes, weights, factors):
    """Softmax and smooth L1 losses of either stage, the mean of all pictures. codes: [n, N, 4] or,
    of each class, [n, N, C, 4]; anchors: [N, 4] or of each picture; matches [n, N]: rows of the
    truth, -1: background; factors: of each row, or [n, 1]."""
    image, row = (matches >= 0).nonzero(as_tuple=True)
    truth = matches[image, row]
    label, weight = classes[image, truth], weights[image, truth]
    columns, row_weights = torch.zeros_like(matches), torch.ones_like(logits[..., 0])
    columns[image, row], row_weights[image, row] = label + 1, weight
    losses = F.cross_entropy(logits.flatten(0, 1), columns.flatten(), reduction="none")
    loss = (losses.reshape(matches.shape) * row_weights * factors).sum()
    code = codes[image, row] if codes.dim() == 3 else codes[image, row, label]
    anchor = anchors[row] if anchors.dim() == 2 else anchors[image, row]
    encoded = encode(boxes[image, truth], anchor)
    losses = F.smooth_l1_loss(code, encoded, reduction="none").sum(-1)
    scale = factors.expand(matches.shape)[image, row]
    return (loss + (losses * weight * scale).sum()) / len(matches)


class FasterRcnnResnet50(TwoStages):
    """resnet_v1_50 up to block 3; its block 4 on each crop. The last unit of a block has the
    stride."""

    def __init__(self, classes):
        super().__init__()
        blocks, cin = [], 64
        for units, depth, stride in [(3, 64, 2), (4, 128, 2), (6, 256, 1), (3, 512, 1)]:
            steps = [1] * (units - 1) + [stride]
            blocks.append(nn.Sequential(*(
                Bottleneck(4 * depth if i else cin, depth, step) for i, step in enumerate(steps))))
            cin = 4 * depth
        self.first = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False),
                                   *norm(64, 1.001e-5, 0.003, nn.ReLU(inplace=True)),
                                   nn.MaxPool2d(3, 2, 1), *blocks[:3])
        self.second = blocks[3]
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
        self.finish(classes, 1024, 2048)


class FasterRcnnMobilenetV1(TwoStages):
    """mobilenet_v1 of half the width: eleven pairs, and the last two on each crop."""

    def __init__(self, classes):
        super().__init__()
        pairs, cin = [], 16
        for cout, stride in [(32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1),
                             (256, 1), (256, 1), (256, 1), (256, 1), (512, 2), (512, 1)]:
            pairs.append(nn.Sequential(
                nn.Conv2d(cin, cin, 3, stride, 1, groups=cin, bias=False), *self.norm(cin),
                nn.Conv2d(cin, cout, 1, bias=False), *self.norm(cout)))
            cin = cout
        self.first = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), *self.norm(16),
                                   *pairs[:11])
        self.second = nn.Sequential(*pairs[11:])
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.trunc_normal_(part.weight, std=0.09, a=-0.18, b=0.18)
        self.finish(classes, 256, 512)

    @staticmethod
    def norm(channels):
        return norm(channels, 1e-3, 0.0003, nn.ReLU6(inplace=True))
