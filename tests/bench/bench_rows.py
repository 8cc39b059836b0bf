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

ROWS = {
    "lenet": Row("lenet", "bench_nets.Lenet", 128, 10, 28, 1),
    "resnet_v1_50": Row("resnet_v1_50", "bench_nets.ResnetV150", 8, 1000, 224),
    "mobilenet_v1": Row("mobilenet_v1", "bench_nets.MobilenetV1", 16, 1001, 224),
    "deeplab_mobilenet_v2": Row(
        "deeplab_mobilenet_v2", "bench_nets.DeeplabMobilenetV2", 8, 21, 257, config=SEGMENTATION
    ),
}
