"""The rows of the side-by-side benchmark, for both sides: a row is a name and what is measured."""
from typing import NamedTuple


class Row(NamedTuple):
    net: str  # model.name in Pumice
    batch: int
    classes: int
    size: int  # height of a picture, and its width unless that is given
    channels: int = 3
    width: int = 0
    module: str = "torch_net.Net"  # FILE.CLASS in PyTorch; torch_net makes it of Pumice's layers
    mode: str = "train"  # or "predict": net and outputs, without a loss
    weight_decay: float = 4e-5
    config: dict = {}  # config options in addition to those of every row
    jax: bool = False  # jax_net.py has all its layers
    beside: dict = {}  # Pumice with these config options takes PyTorch's place

    def sides(self):
        """[height, width] of a picture"""
        return [self.size, self.width or self.size]

    def other(self):
        """Name of the other side."""
        text = ", ".join(f"{section}.{key}={value}" for section, options in self.beside.items()
                         for key, value in options.items())
        return f"Pumice, {text}" if text else "PyTorch"


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


def two_stages(**model):
    """Config of a detector in two stages that trains 32 regions of a picture. Batch norm is
    trained: frozen at its initial statistics, the values would grow from layer to layer."""
    return {
        "task": "detection",
        "model": {"batch_norm_train": True, **model},
        "loss": {"proposal_sampler": {"batch_size": 32}},
    }


def two_stage_rows(net, module, **model):
    """The rows of such a detector: training and prediction, two pictures of 256x320."""
    row = Row(net, 2, 90, 256, width=320, module=f"bench_two_stages.{module}", weight_decay=0,
              config=two_stages(**model))
    return {net: row, f"predict_{net}": row._replace(mode="predict")}


WORDS = {"task": "recognition", "model": {"num_classes": None}, "data": {"max_num_steps": 8}}
ATTENTION = {
    "task": "recognition",
    "model": {
        "num_classes": None, "predictor": "attention", "attention_units": 128, "decoder_units": 128,
    },
    "data": {"max_num_steps": 30},
}
CRNN = Row("crnn", 32, 37, 32, width=100, module="bench_words.CrnnCtc", weight_decay=0,
           config=WORDS)

ROTATED = {**MINED, "model": {"boxes": "rotated"}}
QUANTIZED = {"quantize_delay": 0}
FLOAT = {"model": {"quantize_delay": -1}}

ROWS = {
    "lenet": Row("lenet", 128, 10, 28, 1, weight_decay=0, jax=True),
    "resnet_v1_50": Row("resnet_v1_50", 8, 1000, 224, weight_decay=1e-4, jax=True),
    "mobilenet_v1": Row("mobilenet_v1", 16, 1001, 224, jax=True),
    "mobilenet_v2": Row("mobilenet_v2", 16, 1001, 224),
    "mobilenet_v3_large": Row("mobilenet_v3_large", 16, 1001, 224),
    "inception_v3": Row("inception_v3", 8, 1001, 299),
    "vgg_16": Row("vgg_16", 4, 1000, 224, weight_decay=5e-4),
    "nasnet_mobile": Row("nasnet_mobile", 8, 1001, 224),
    "deeplab_mobilenet_v2": Row("deeplab_mobilenet_v2", 8, 21, 257, config=SEGMENTATION),
    "deeplab_resnet_v1_50_beta": Row(
        "deeplab_resnet_v1_50_beta", 4, 21, 257, weight_decay=1e-4, config=SEGMENTATION
    ),
    "ssd_mobilenet_v2": Row("ssd_mobilenet_v2", 8, 90, 300, module=SSD, config=MINED),
    "ssd_resnet_v1_50_fpn": Row(
        "ssd_resnet_v1_50_fpn", 2, 90, 320, module=FPN, weight_decay=4e-4, config=FOCUSED
    ),
    "predict_3_classes": Row(
        "ssd_mobilenet_v2", 8, 3, 300, module=SSD, mode="predict", config=SUPPRESSED
    ),
    "predict_90_classes": Row(
        "ssd_mobilenet_v2", 8, 90, 300, module=SSD, mode="predict", config=SUPPRESSED
    ),
    "rotated_ssd_mobilenet_v2": Row(
        "ssd_mobilenet_v2", 8, 15, 300, config=ROTATED, beside={"model": {"boxes": "upright"}}
    ),
    "quantized_ssd_mobilenet_v2": Row(
        "ssd_mobilenet_v2", 8, 90, 300, config={**MINED, "model": QUANTIZED}, beside=FLOAT
    ),
    "predict_quantized": Row(
        "ssd_mobilenet_v2", 8, 90, 300, mode="predict", beside=FLOAT,
        config={**SUPPRESSED, "model": {**SUPPRESSED["model"], **QUANTIZED}},
    ),
    "crnn_ctc": CRNN,
    "crnn_attention": CRNN._replace(
        classes=38, module="bench_words.CrnnAttention", config=ATTENTION
    ),
    **two_stage_rows("faster_rcnn_resnet50", "FasterRcnnResnet50"),
    **two_stage_rows("faster_rcnn_mobilenet_v1", "FasterRcnnMobilenetV1", depth_multiplier=0.5),
}
