"""The rows of the side-by-side benchmark, for both sides: a row is a name and what is measured."""
from typing import NamedTuple


class Row(NamedTuple):
    net: str  # model.name in Pumice
    module: str  # FILE.CLASS of the same net in PyTorch
    batch: int
    classes: int
    size: int
    channels: int = 3
    mode: str = "train"  # or "predict": net and outputs, without a loss
    config: dict = {}  # config options in addition to those of every row


SEGMENTATION = {
    "task": "segmentation",
    "model": {"output_stride": 16, "aspp_rates": [6, 12, 18], "decoder_strides": [4]},
    "input": {"preprocessing": "deeplab"},
    "data": {"ignore_label": 255},
}
MINING = {
    "classification": {"type": "weighted_sigmoid"},
    "localization": {"type": "weighted_smooth_l1"},
    "hard_example_miner": {
        "num_hard_examples": 3000,
        "iou_threshold": 0.99,
        "loss_type": "classification",
        "max_negatives_per_positive": 3,
        "min_negatives_per_image": 3,
    },
}
FOCAL = {
    "classification": {"type": "weighted_sigmoid_focal", "gamma": 2, "alpha": 0.25},
    "localization": {"type": "weighted_smooth_l1"},
}
SUPPRESSION = {"score_threshold": 1e-8, "iou_threshold": 0.6}  # at most 100 of a class, 100 in all

MINED = {"task": "detection", "loss": MINING}
FOCUSED = {"task": "detection", "loss": FOCAL}
SUPPRESSED = {"task": "detection", "model": {"post_processing": SUPPRESSION}}
SSD = "bench_detectors.SsdMobilenetV2"
FPN = "bench_detectors.SsdResnetV150Fpn"

ROWS = {
    "lenet": Row("lenet", "bench_nets.Lenet", 128, 10, 28, 1),
    "resnet_v1_50": Row("resnet_v1_50", "bench_nets.ResnetV150", 8, 1000, 224),
    "mobilenet_v1": Row("mobilenet_v1", "bench_nets.MobilenetV1", 16, 1001, 224),
    "deeplab_mobilenet_v2": Row(
        "deeplab_mobilenet_v2", "bench_nets.DeeplabMobilenetV2", 8, 21, 257, config=SEGMENTATION
    ),
    "ssd_mobilenet_v2": Row("ssd_mobilenet_v2", SSD, 8, 90, 300, config=MINED),
    "ssd_resnet_v1_50_fpn": Row("ssd_resnet_v1_50_fpn", FPN, 2, 90, 320, config=FOCUSED),
    "predict_3_classes": Row("ssd_mobilenet_v2", SSD, 8, 3, 300, mode="predict", config=SUPPRESSED),
    "predict_90_classes": Row(
        "ssd_mobilenet_v2", SSD, 8, 90, 300, mode="predict", config=SUPPRESSED
    ),
}
