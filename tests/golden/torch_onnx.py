#!/usr/bin/env python3
"""ONNX models by PyTorch's own exporter, with what PyTorch makes of them: the logits of one batch and the
losses of ten steps of SGD on it, batch norm training. tests/onnx/torch_import_test.c imports, runs and trains
them. Made with torch 2.15, torchvision 0.29, onnx 1.23, onnxscript 0.7:

    torch_onnx.py tests/golden/onnx          # narrow nets, a few kilobytes each, which are committed
    torch_onnx.py --full FOLDER              # the nets as they are; torch_import_test FOLDER tries them
    torch_onnx.py --many FOLDER              # more of torchvision's, logits only

Weights are PyTorch's random ones; dropout and stochastic depth are off, for their random numbers are
nobody else's. Images are drawn by a formula, so that no file has to hold them."""
import argparse
import copy
import json
import os

import numpy as np
import onnx
import torch
import torchvision
from torch import nn
from torchvision.models import convnext, efficientnet, mobilenetv2, resnet, vision_transformer
from torchvision.ops.misc import Conv2dNormActivation

STEPS = 10
# The full nets at a rate at which PyTorch's float32 and float64 stay together: resnet18 to 2e-4,
# efficientnet_b0 to 4e-7. mobilenet_v2 from initial values does so at none that was tried (5e-2 within
# four steps at 0.0002): its losses say nothing, its logits do.
RATE, FULL_RATE = 0.002, 0.0005


class NarrowResNet(resnet.ResNet):
    """resnet18 of a sixteenth of its channels behind the first layer."""

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
    """Numbers in rows, and tables, that are not all alike."""
    for p in net.parameters():
        if p.ndim == 1 or p.abs().max() == 0:
            nn.init.normal_(p, p.mean().item(), 0.2)
    return net


def narrow_vit(classes):
    return noisy(vision_transformer.VisionTransformer(32, 8, 2, 2, 8, 16, num_classes=classes))


def narrow_convnext(classes):
    return noisy(convnext.ConvNeXt(
        [convnext.CNBlockConfig(8, 16, 1), convnext.CNBlockConfig(16, None, 1)], 0.0, 0.5, classes))


def full(name, classes):
    more = {"dropout": 0} if name != "resnet18" else {}
    if name.startswith("efficientnet"):
        more["stochastic_depth_prob"] = 0
    return getattr(torchvision.models, name)(num_classes=classes, **more)


def many(name):
    return getattr(torchvision.models, name)(weights=None)


def images(batch, size):
    v = np.sin((np.arange(batch * 3 * size * size, dtype=np.float64) + 1) * 12.9898) * 43758.5453
    return torch.from_numpy(((v - np.floor(v)) * 4 - 2).astype(np.float32).reshape(
        batch, 3, size, size))


def spread(net):
    """Averages that are not 0 and 1, as training leaves them; weights that are not all alike."""
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            nn.init.normal_(m.running_mean, 0, 0.1)
            nn.init.uniform_(m.running_var, 0.8, 1.2)
            nn.init.uniform_(m.weight, 0.8, 1.2)
            nn.init.normal_(m.bias, 0, 0.1)


def export(net, x, path, optimize):
    """The exporter's optimizer folds batch norm into the convolutions, which could not be trained as PyTorch
    trains the net."""
    net.eval()
    torch.onnx.export(net, (x,), path, input_names=["images"], output_names=["logits"], dynamo=True,
                      dynamic_shapes=({0: torch.export.Dim("n", min=1)},), external_data=False,
                      optimize=optimize, verbose=False)
    model = onnx.load(path)
    onnx.checker.check_model(model)
    for node in model.graph.node:  # where in Python it came from
        del node.metadata_props[:]
        node.doc_string = ""
    del model.graph.value_info[:]
    del model.graph.metadata_props[:]
    onnx.save(model, path)
    return sorted({n.op_type for n in model.graph.node})


def learn(net, x, labels, rate):
    losses = []
    net.train()
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def make(net, name, folder, size, batch, classes, train=True, rate=RATE):
    torch.manual_seed(1)
    spread(net)
    x, labels = images(batch, size), torch.arange(batch) % classes
    ops = export(net, x, os.path.join(folder, name + ".onnx"), not train)
    with torch.no_grad():
        logits = net(x)
    losses = learn(copy.deepcopy(net), x, labels, rate) if train else []
    exact = learn(copy.deepcopy(net).double(), x.double(), labels, rate) if train else []
    facts = {"by": f"torch {torch.__version__.split('+')[0]}", "size": size, "batch": batch,
             "classes": classes, "rate": rate, "losses": losses,
             "logits": [float(f"{v:.9g}") for v in logits.flatten().tolist()]}
    with open(os.path.join(folder, name + ".json"), "w") as f:
        json.dump(facts, f, indent=1)
        f.write("\n")
    print(name, "float32 is off by", max([abs(a - b) for a, b in zip(losses, exact)], default=0))
    print(name, sum(p.numel() for p in net.parameters()), "parameters", ops, losses, flush=True)


MANY = {"alexnet": 96, "vgg11_bn": 64, "resnet50": 64, "resnext50_32x4d": 64, "wide_resnet50_2": 64,
        "densenet121": 64, "googlenet": 96, "squeezenet1_1": 96, "shufflenet_v2_x1_0": 64,
        "mnasnet1_0": 64, "mobilenet_v3_large": 64, "mobilenet_v3_small": 64, "regnet_y_400mf": 64,
        "regnet_x_400mf": 64, "efficientnet_v2_s": 64, "convnext_tiny": 64, "inception_v3": 160,
        "swin_t": 64, "vit_b_16": 224, "efficientnet_b1": 64}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--many", action="store_true")
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    torch.manual_seed(0)
    if args.many:
        for name, size in MANY.items():
            try:
                make(many(name), name, args.folder, size, 2, 1000, train=False)
            except Exception as e:  # not all can be exported
                print(name, "not exported:", str(e)[:200], flush=True)
        return
    if args.full:
        for name in ("resnet18", "mobilenet_v2", "efficientnet_b0"):
            make(full(name, 10), name, args.folder, 96, 16, 10, rate=FULL_RATE)
        return
    make(NarrowResNet(5), "resnet18_narrow", args.folder, 64, 8, 5)
    make(narrow_mobilenet(5), "mobilenet_v2_narrow", args.folder, 64, 8, 5)
    make(narrow_efficientnet(5), "efficientnet_narrow", args.folder, 64, 8, 5)
    make(narrow_vit(5), "vit_narrow", args.folder, 32, 8, 5)
    make(narrow_convnext(5), "convnext_narrow", args.folder, 32, 8, 5)


if __name__ == "__main__":
    main()
