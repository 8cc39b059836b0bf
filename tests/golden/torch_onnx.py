#!/usr/bin/env python3
"""Makes ONNX models with PyTorch's own exporters, and PyTorch's results: the logits of one batch,
and the losses of ten steps of SGD on it with batch norm in training mode. For maps of logits, [n,
classes, h, w], the loss is the mean over all pixels. tests/onnx/torch_import_test.c imports, runs
and trains the models. They were made with torch 2.15, torchvision 0.29, onnx 1.23 and onnxscript
0.7:

    torch_onnx.py tests/golden/onnx [NAME..] # narrow nets of a few kilobytes, which are committed
    torch_onnx.py --full FOLDER              # nets of full width, for torch_import_test FOLDER
    torch_onnx.py --many FOLDER [NAME ...]   # more nets of torchvision, logits only, both exporters

Names that end with _old come from the exporter without dynamo. Weights are PyTorch's random ones.
Dropout and stochastic depth are off, because Pumice draws other random numbers. Images are computed
by a formula, so that no file has to hold them."""
import argparse
import copy
import json
import os

import numpy as np
import onnx
import torch
import torchvision
from torch import nn
from torchvision.models import (
    convnext,
    detection,
    efficientnet,
    mobilenetv2,
    mobilenetv3,
    resnet,
    segmentation,
    swin_transformer,
    vision_transformer,
)
from torchvision.models._utils import IntermediateLayerGetter
from torchvision.models.detection import ssd, ssdlite
from torchvision.models.segmentation import deeplabv3, fcn, lraspp
from torchvision.ops.misc import Conv2dNormActivation

STEPS = 10
# Learning rates of the full nets, at which PyTorch's losses in float32 and float64 agree: resnet18
# to 2e-4, efficientnet_b0 to 4e-7. For mobilenet_v2 from initial values no such rate was found
# (they differ by 5e-2 within four steps at 0.0002): only its logits are compared.
RATE, FULL_RATE = 0.002, 0.0005


class NarrowResNet(resnet.ResNet):
    """resnet18 with a sixteenth of its channels after the first layer."""

    def __init__(self, classes):
        super().__init__(resnet.BasicBlock, [2, 2, 2, 2], classes)
        self.fc = nn.Linear(32, classes)

    def _make_layer(self, block, planes, blocks, stride=1, dilate=False):
        return super()._make_layer(block, planes // 16, blocks, stride, dilate)


def narrow_mobilenet(classes):
    net = mobilenetv2.MobileNetV2(classes, width_mult=0.25, dropout=0, inverted_residual_setting=[
        [1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 2, 2], [6, 64, 1, 2]])
    net.features[-1] = Conv2dNormActivation(16, 64, 1, norm_layer=nn.BatchNorm2d,
                                            activation_layer=nn.ReLU6)
    net.classifier[1] = nn.Linear(64, classes)
    return net


def narrow_efficientnet(classes):
    def stage(expand, kernel, stride, before, after, layers):
        return efficientnet.MBConvConfig(expand, kernel, stride, before, after, layers)

    return efficientnet.EfficientNet(
        [stage(1, 3, 1, 16, 8, 1), stage(6, 3, 2, 8, 16, 2), stage(6, 5, 2, 16, 24, 2)], dropout=0,
        stochastic_depth_prob=0, num_classes=classes, last_channel=64)


def noisy(net):
    """Draws parameters of norms and tables anew, so that their elements differ."""
    for p in net.parameters():
        if p.ndim == 1 or p.abs().max() == 0:
            nn.init.normal_(p, p.mean().item(), 0.2)
    return net


def narrow_vit(classes):
    return noisy(vision_transformer.VisionTransformer(32, 8, 2, 2, 8, 16, num_classes=classes))


def narrow_convnext(classes):
    return noisy(convnext.ConvNeXt(
        [convnext.CNBlockConfig(8, 16, 1), convnext.CNBlockConfig(16, None, 1)], 0.0, 0.5, classes))


class NarrowBottlenecks(resnet.ResNet):
    """resnet50 with one block in each stage and a thirty-second of its channels, at output stride
    8."""

    def __init__(self):
        super().__init__(resnet.Bottleneck, [1, 1, 1, 2], 2, width_per_group=64,
                         replace_stride_with_dilation=[False, True, True])

    def _make_layer(self, block, planes, blocks, stride=1, dilate=False):
        return super()._make_layer(block, planes // 32, blocks, stride, dilate)


def narrow_mobilenet_v3(dilation=1, classes=5):
    def block(channels, kernel, expanded, out, se, activation, stride):
        return mobilenetv3.InvertedResidualConfig(
            channels, kernel, expanded, out, se, activation, stride, 1, 1
        )

    blocks = [block(8, 3, 16, 8, False, "RE", 2), block(8, 5, 24, 16, True, "HS", 2),
              block(16, 5, 32, 16, True, "HS", 1)]
    if dilation > 1:
        blocks[-1].dilation = dilation
    return mobilenetv3.MobileNetV3(blocks, 32, num_classes=classes, dropout=0)


class Out(nn.Module):
    """A segmentation net that returns the map of logits instead of a dictionary."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x)["out"]


def stages(net, **layers):
    return IntermediateLayerGetter(net, return_layers=layers)


def narrow_deeplab(classes):
    net = stages(NarrowBottlenecks(), layer4="out")
    head = nn.Sequential(
        deeplabv3.ASPP(64, [2, 3, 5], 8),
        nn.Conv2d(8, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, classes, 1),
    )
    for m in head.modules():
        if isinstance(m, nn.Dropout):
            m.p = 0.0
    return Out(deeplabv3.DeepLabV3(net, head, None))


def narrow_deeplab_mobilenet(classes):
    net = stages(narrow_mobilenet_v3(2).features, **{"4": "out"})
    head = nn.Sequential(deeplabv3.ASPP(96, [2, 3, 5], 8), nn.Conv2d(8, classes, 1))
    for m in head.modules():
        if isinstance(m, nn.Dropout):
            m.p = 0.0
    return Out(deeplabv3.DeepLabV3(net, head, None))


def narrow_lraspp(classes):
    net = stages(narrow_mobilenet_v3(2).features, **{"1": "low", "4": "high"})
    return Out(lraspp.LRASPP(net, 8, 96, classes, 16))


def narrow_fcn(classes):
    head = fcn.FCNHead(64, classes)
    for m in head.modules():
        if isinstance(m, nn.Dropout):
            m.p = 0.0
    return Out(fcn.FCN(stages(NarrowBottlenecks(), layer4="out"), head, None))


class Heads(nn.Module):
    """A detector that returns scores and box corrections, [n, anchors, classes + 4], without
    postprocessing."""

    def __init__(self, backbone, head):
        super().__init__()
        self.backbone, self.head = backbone, head

    def forward(self, x):
        y = self.head(list(self.backbone(x).values()))
        return torch.cat([y["cls_logits"], y["bbox_regression"]], 2)


def narrow_ssd(classes):
    net = stages(NarrowBottlenecks(), layer2="0", layer4="1")
    return Heads(net, ssd.SSDHead([16, 64], [4, 6], classes))


def narrow_ssdlite(classes):
    net = stages(narrow_mobilenet_v3().features, **{"2": "0", "4": "1"})
    return Heads(net, ssdlite.SSDLiteHead([16, 96], [6, 6], classes, nn.BatchNorm2d))


def narrow_swin(classes):
    """Computed indices select from its tables of position biases; an import makes them
    constants."""
    net = noisy(
        swin_transformer.SwinTransformer(
            [2, 2], 8, [2, 2], [2, 4], [4, 4], stochastic_depth_prob=0.0, num_classes=classes
        )
    )
    for name, p in net.named_parameters():
        p.requires_grad_(not name.endswith("relative_position_bias_table"))
    return net


def full(name, classes):
    more = {"dropout": 0} if name != "resnet18" else {}
    if name.startswith("efficientnet"):
        more["stochastic_depth_prob"] = 0
    return getattr(torchvision.models, name)(num_classes=classes, **more)


def many(name):
    if name.startswith("ssd"):
        net = getattr(detection, name)(weights=None, weights_backbone=None)
        return Heads(net.backbone, net.head)
    if hasattr(segmentation, name):
        return Out(getattr(segmentation, name)(weights=None, weights_backbone=None))
    return getattr(torchvision.models, name)(weights=None)


def images(batch, size):
    v = np.sin((np.arange(batch * 3 * size * size, dtype=np.float64) + 1) * 12.9898) * 43758.5453
    return torch.from_numpy(((v - np.floor(v)) * 4 - 2).astype(np.float32).reshape(
        batch, 3, size, size))


def spread(net):
    """Draws moving averages other than 0 and 1, as after training, and weights that differ."""
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            nn.init.normal_(m.running_mean, 0, 0.1)
            nn.init.uniform_(m.running_var, 0.8, 1.2)
            nn.init.uniform_(m.weight, 0.8, 1.2)
            nn.init.normal_(m.bias, 0, 0.1)


def export(net, x, path, optimize, old):
    """Exports the net. optimize: the exporter folds batch norm into the convolutions; such a model
    cannot be trained as PyTorch trains the net."""
    net.eval()
    if old:
        torch.onnx.export(
            net,
            (x,),
            path,
            input_names=["images"],
            output_names=["logits"],
            dynamo=False,
            dynamic_axes={"images": {0: "n"}},
            do_constant_folding=optimize,
            training=torch.onnx.TrainingMode.EVAL if optimize else torch.onnx.TrainingMode.PRESERVE,
        )
    else:
        torch.onnx.export(
            net,
            (x,),
            path,
            input_names=["images"],
            output_names=["logits"],
            dynamo=True,
            dynamic_shapes=({0: torch.export.Dim("n", min=1)},),
            external_data=False,
            optimize=optimize,
            verbose=False,
        )
    model = onnx.load(path)
    onnx.checker.check_model(model)
    for node in model.graph.node:  # removes the trace of its Python code
        del node.metadata_props[:]
        node.doc_string = ""
    del model.graph.value_info[:]
    del model.graph.metadata_props[:]
    onnx.save(model, path)
    return sorted({n.op_type for n in model.graph.node})


def learn(net, x, classes, rate):
    losses = []
    net.train()
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    for _ in range(STEPS):
        optimizer.zero_grad()
        y = net(x)
        labels = torch.arange(y.numel() // y.shape[1]).reshape(y.shape[:1] + y.shape[2:]) % classes
        loss = nn.functional.cross_entropy(y, labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


MOST = 1000  # most values of the logits in the file


def make(net, name, folder, size, batch, classes, train=True, rate=RATE, vary=True):
    torch.manual_seed(1)
    if vary:
        spread(net)
    x = images(batch, size)
    ops = export(net, x, os.path.join(folder, name + ".onnx"), not train, name.endswith("_old"))
    with torch.no_grad():
        logits = net(x)
    losses = learn(copy.deepcopy(net), x, classes, rate) if train else []
    exact = learn(copy.deepcopy(net).double(), x.double(), classes, rate) if train else []
    every = 1
    while logits.numel() // every > MOST or (every > 1 and every % 2 == 0):
        every += 1
    facts = {
        "by": f"torch {torch.__version__.split('+')[0]}",
        "size": size,
        "batch": batch,
        "classes": classes,
        "rate": rate,
        "losses": losses,
        "shape": list(logits.shape),
        "every": every,
        "logits": [float(f"{v:.9g}") for v in logits.flatten()[::every].tolist()],
    }
    with open(os.path.join(folder, name + ".json"), "w") as f:
        json.dump(facts, f, indent=1)
        f.write("\n")
    print(name, "float32 is off by", max([abs(a - b) for a, b in zip(losses, exact)], default=0))
    print(name, sum(p.numel() for p in net.parameters()), "parameters", ops, losses, flush=True)


MANY = {
    "alexnet": 96,
    "vgg11_bn": 64,
    "resnet50": 64,
    "resnext50_32x4d": 64,
    "wide_resnet50_2": 64,
    "densenet121": 64,
    "googlenet": 96,
    "squeezenet1_1": 96,
    "shufflenet_v2_x1_0": 64,
    "mnasnet1_0": 64,
    "mobilenet_v3_large": 64,
    "mobilenet_v3_small": 64,
    "regnet_y_400mf": 64,
    "regnet_x_400mf": 64,
    "efficientnet_v2_s": 64,
    "convnext_tiny": 64,
    "inception_v3": 160,
    "swin_t": 64,
    "vit_b_16": 224,
    "efficientnet_b1": 64,
    "maxvit_t": 224,
    "deeplabv3_resnet50": 96,
    "deeplabv3_mobilenet_v3_large": 96,
    "lraspp_mobilenet_v3_large": 96,
    "fcn_resnet50": 96,
    "ssdlite320_mobilenet_v3_large": 320,
    "ssd300_vgg16": 300,
}

# name: builder, size, batch, rate, whether scales, shifts and averages are drawn
NARROW = {
    "resnet18_narrow": (NarrowResNet, 64, 8, RATE, True),
    "mobilenet_v2_narrow": (narrow_mobilenet, 64, 8, RATE, True),
    "efficientnet_narrow": (narrow_efficientnet, 64, 8, RATE, True),
    "vit_narrow": (narrow_vit, 32, 8, RATE, True),
    "convnext_narrow": (narrow_convnext, 32, 8, RATE, True),
    "swin_narrow": (narrow_swin, 64, 4, 0.02, True),
    "deeplab_narrow": (narrow_deeplab, 64, 4, RATE, True),
    "deeplab_narrow_old": (narrow_deeplab, 64, 4, RATE, True),
    "deeplab_mobilenet_narrow": (narrow_deeplab_mobilenet, 64, 4, 0.2, True),
    "lraspp_narrow": (narrow_lraspp, 64, 4, 0.2, True),
    "fcn_narrow": (narrow_fcn, 64, 4, 0.01, True),
    "mobilenet_v3_fresh_old": (narrow_mobilenet_v3, 64, 8, 0.2, False),
}
HEADS = {"ssd_narrow": (narrow_ssd, 64), "ssdlite_narrow": (narrow_ssdlite, 64)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--many", action="store_true")
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    wanted = lambda name: not args.names or name in args.names
    if args.many:
        for name, size in MANY.items():
            for end in ("", "_old"):
                if not wanted(name):
                    continue
                torch.manual_seed(0)
                try:
                    make(many(name), name + end, args.folder, size, 2, 1000, train=False)
                except Exception as e:  # some nets cannot be exported
                    print(name + end, "not exported:", str(e)[:200], flush=True)
        return
    if args.full:
        for name in filter(wanted, ("resnet18", "mobilenet_v2", "efficientnet_b0")):
            torch.manual_seed(0)
            make(full(name, 10), name, args.folder, 96, 16, 10, rate=FULL_RATE)
        return
    for name, (build, size, batch, rate, vary) in NARROW.items():
        if wanted(name):
            torch.manual_seed(0)
            make(build(classes=5), name, args.folder, size, batch, 5, rate=rate, vary=vary)
    for name, (build, size) in HEADS.items():
        if wanted(name):
            torch.manual_seed(0)
            make(build(5), name, args.folder, size, 2, 5, train=False)


if __name__ == "__main__":
    main()
