#!/usr/bin/env python3
"""Writes pytorch/: small files of all kinds of torch.save and torch.jit.save, and
expected.safetensors, which holds every tensor of these files under the name "FILE:NAME", with NAME
as in a state dict.

Run by hand: python3 pytorch_files.py (torch 2.15.0, numpy 2.x). tests/formats/torch_test.c reads
both and compares them byte by byte. Tensors of types that safetensors lacks are listed in that
test.
"""
import argparse
import collections
import datetime
import enum
import json
import os
import pathlib
import struct
import sys
import warnings

import numpy as np
import torch
from torch import nn

warnings.filterwarnings("ignore")
FOLDER = pathlib.Path(__file__).resolve().parent / "pytorch"
TYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
         torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8",
         torch.uint64: "U64", torch.uint32: "U32", torch.uint16: "U16", torch.uint8: "U8",
         torch.bool: "BOOL"}
expected = {}


def expect(file, tensors):
    for name, t in tensors.items():
        t = t.detach().contiguous().clone()
        data = t.reshape(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b""
        expected[f"{file}:{name}"] = (TYPES[t.dtype], list(t.shape), data)


def save(file, value, tensors, **options):
    torch.save(value, FOLDER / file, **options)
    expect(file, tensors)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([0.5, -1.5]))
        self.register_buffer("kept", torch.arange(3))
        self.register_buffer("passing", torch.ones(5), persistent=False)
        self.register_parameter("none", None)
        self.plain = torch.ones(7)  # an attribute, not in the state dict

    def forward(self, x):
        return x * self.scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.ReLU())
        self.block = Block()
        self.tied = self.block  # the same module under two names
        self.parent = [self]    # a list, not a submodule: the reader must skip it

    def forward(self, x):
        return self.block(self.body(x).mean((2, 3)))


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.arange(6.0).view(2, 3))

    def forward(self, x):
        return x @ self.w


class Colour(enum.Enum):
    RED = 1


class Marked(torch.Tensor):
    pass


def views():
    base = torch.arange(24.0).view(4, 6)
    cube = torch.arange(120, dtype=torch.float64).view(2, 3, 4, 5)
    halves = torch.arange(12).to(torch.bfloat16).view(3, 4)
    line = torch.arange(6, dtype=torch.int16)
    tensors = {
        "base": base, "transposed": base.t(), "piece": base[1:3, 2:5], "column": base[:, 3],
        "steps": base[::2, ::3], "row": base[2], "scalar": base[2, 3], "nothing": base[2:2],
        "cube": cube, "permuted": cube.permute(3, 1, 0, 2), "corner": cube[1, 1:, ::3, 2:4],
        "expanded": torch.tensor([1, 2, 3], dtype=torch.int32).expand(4, 3),
        "expanded_inside": torch.tensor([[1], [2]], dtype=torch.int64).expand(2, 5),
        "overlapping": line.unfold(0, 3, 1), "halves": halves.t(),
        "flags": (torch.arange(10).view(2, 5) % 3 == 0).t(),
        "channels_last": torch.arange(48.0).view(2, 3, 2, 4).contiguous(
            memory_format=torch.channels_last),
    }
    save("views.pt", tensors, tensors)
    save(
        "legacy_views.pt",
        {
            k: tensors[k]
            for k in (
                "base",
                "transposed",
                "piece",
                "permuted",
                "cube",
                "expanded",
                "overlapping",
                "nothing",
            )
        },
        {
            k: tensors[k]
            for k in (
                "base",
                "transposed",
                "piece",
                "permuted",
                "cube",
                "expanded",
                "overlapping",
                "nothing",
            )
        },
        _use_new_zipfile_serialization=False,
    )
    wide = (
        torch.arange(90 * 40, dtype=torch.int16).view(90, 40).t()
    )  # more than fits a read's piece
    save("wide.pt", {"wide": wide}, {"wide": wide})


def types():
    tensors = {TYPES[t].lower(): torch.tensor([0, 1, 2, 100]).to(t) for t in TYPES}
    tensors["specials"] = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 1e-42])
    tensors["limits"] = torch.tensor([-2**63, 2**63 - 1])
    save("types.pt", tensors, tensors)
    others = {
        "complex": torch.tensor([1 + 2j, 3 - 1j]),
        "conjugate": torch.tensor([1 + 2j]).conj(),
        "imaginary": torch.tensor([1 + 2j]).conj().imag,
        "float8": torch.ones(3).to(torch.float8_e4m3fn),
        "quantised": torch.quantize_per_tensor(torch.ones(2, 2), 0.1, 0, torch.qint8),
        "sparse": torch.eye(3).to_sparse(),
        "rows": torch.eye(2).to_sparse_csr(),
        "meta": torch.ones(2, 3, device="meta"),
        "plain": torch.ones(2),
    }
    save("others.pt", others, {"plain": others["plain"]})


def containers():
    state = {"a.weight": torch.arange(4.0).view(2, 2), "a.bias": torch.tensor([0.25, -2.0])}
    for protocol in (2, 3, 4, 5):
        save(f"protocol{protocol}.pt", state, state, pickle_protocol=protocol)
    save(
        "legacy_protocol4.pt", state, state, pickle_protocol=4, _use_new_zipfile_serialization=False
    )
    save("tensor.pt", torch.arange(3), {"tensor": torch.arange(3)})
    one, two, three = torch.ones(1), torch.ones(2), torch.ones(3)
    save(
        "nested.pt",
        {
            "x": {"y": [one, (two, None, {3: three})]},
            "z": collections.OrderedDict(q=two),
            "d": collections.defaultdict(list, {"e": [three]}),
            True: one,
        },
        {"x.y.0": one, "x.y.1.0": two, "x.y.1.2.3": three, "z.q": two, "d.e.0": three, "3": one},
    )
    save("list.pt", [one, [two]], {"0": one, "1.0": two})
    strange = nn.Parameter(torch.ones(2))
    strange.note = "kept with it"
    save(
        "objects.pt",
        {
            "weight": strange,
            "marked": torch.ones(2).as_subclass(Marked),
            "args": argparse.Namespace(lr=0.1, mean=torch.tensor([0.5])),
            "path": pathlib.PurePosixPath("/a/b"),
            "date": datetime.date(2020, 1, 2),
            "set": {1, 2},
            "frozen": frozenset([3]),
            "bytes": b"\0\1",
            "array": bytearray(b"abc"),
            "large": 10**30,
            "negative": -5,
            "big": 2**40,
            "text": "two words",
            "yes": True,
            "none": None,
            "tenth": 0.1,
            "number": np.float64(2.5),
            "vector": np.arange(3),
            "colour": Colour.RED,
            "size": torch.Size([1, 2]),
            "type": torch.float16,
            "device": torch.device("cpu"),
            "storage": torch.ones(3).untyped_storage(),
            "long": "x" * 5000,
        },
        {"weight": strange, "marked": torch.ones(2), "args.mean": torch.tensor([0.5])},
    )


def checkpoints():
    net = Net()
    with torch.no_grad():
        for i, t in enumerate(net.state_dict().values()):
            t.copy_((torch.arange(t.numel()).view(t.shape) + i) / 4)
    state = net.state_dict()
    save("module.pt", net, state)
    save("dataparallel.pt", nn.DataParallel(net).state_dict(),
         {"module." + k: v for k, v in state.items()})
    small = Small()
    save("legacy_module.pt", small, small.state_dict(), _use_new_zipfile_serialization=False)
    optimizer = torch.optim.Adam(small.parameters())
    small(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    training = {f"optimizer.state.0.{k}": v for k, v in optimizer.state_dict()["state"][0].items()}
    best = torch.tensor(76.5)
    save("checkpoint.pt", {"epoch": 12, "state_dict": small.state_dict(), "arch": "small",
                           "optimizer": optimizer.state_dict(), "best_acc1": best, "lr": 1e-3},
         {"state_dict.w": small.w, **training, "best_acc1": best})
    save("wrapped_module.pt", {"model": small, "epoch": 1}, small.state_dict())
    save("two_nets.pt", {"model": small.state_dict(), "model_ema": small.state_dict()},
         {"model.w": small.w, "model_ema.w": small.w})
    save("wrapped.pt", {"state_dict": small.state_dict(), "epoch": 3}, small.state_dict())
    save("unwrapped.pt", {"weights": torch.ones(1)}, {"weights": torch.ones(1)})
    for name, made in (("script.pt", torch.jit.script(small)),
                       ("trace.pt", torch.jit.trace(small, torch.ones(1, 2)))):
        torch.jit.save(made, FOLDER / name)
        expect(name, small.state_dict())


def write_expected():
    header, data = {"__metadata__": {"torch": torch.__version__.split("+")[0]}}, b""
    for name in sorted(expected, key=lambda n: -len(expected[n][2])):
        kind, shape, body = expected[name]
        header[name] = {
            "dtype": kind,
            "shape": shape,
            "data_offsets": [len(data), len(data) + len(body)],
        }
        data += body
    text = json.dumps(header).encode()
    (FOLDER / "expected.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    os.chdir(FOLDER.parent)  # the older form stores the path of a class's source; keep it relative
    sys.modules["__main__"].__file__ = "pytorch_files.py"
    torch.manual_seed(1)
    FOLDER.mkdir(exist_ok=True)
    views()
    types()
    containers()
    checkpoints()
    write_expected()


if __name__ == "__main__":
    sys.exit(main())
