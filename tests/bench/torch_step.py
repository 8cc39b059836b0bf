"""PyTorch's half of the side-by-side benchmark: measures a net's training step.

    python3 torch_step.py NET --device cpu|cuda --threads N --layout nchw|nhwc
                              --optimizer default|fused --steps N --seconds S --warmup N [--batch N]

One random batch stays in the device's memory. The script prints one JSON object: the times of the
steps in ms, sorted, the number of trained parameters, and versions."""
import argparse
import json
import platform
import time

import torch

from bench_nets import NETS


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("net", choices=NETS)
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--layout", choices=["nchw", "nhwc"], default="nchw")
    p.add_argument("--optimizer", choices=["default", "fused"], default="default")
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--warmup", type=int, default=3)
    p.add_argument("--batch", type=int, default=0)
    return p.parse_args()


def make(a):
    module, batch, classes = NETS[a.net]
    batch = a.batch or batch
    order = torch.channels_last if a.layout == "nhwc" else torch.contiguous_format
    torch.manual_seed(1)
    net = module(classes).to(a.device).to(memory_format=order).train()
    images = torch.rand(batch, module.channels, module.size, module.size, device=a.device) * 2 - 1
    map_of_labels = (module.size, module.size) if hasattr(module, "ignored") else ()
    labels = torch.randint(classes, (batch, *map_of_labels), device=a.device)
    fused = {"fused": True} if a.optimizer == "fused" else {}
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9,
                                weight_decay=module.weight_decay, **fused)
    return net, images.contiguous(memory_format=order), labels, optimizer


def measure(a, net, images, labels, optimizer):
    """Returns the time of each counted step in ms. On a GPU, steps are queued without waiting, as
    in usual training loops, and events on the device mark their ends. The loop waits every 16
    steps, so that the time limit holds."""
    loss_of, ms = torch.nn.CrossEntropyLoss(ignore_index=getattr(net, "ignored", -100)), []
    cuda = a.device == "cuda"

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of(net(images), labels).backward()
        optimizer.step()

    for _ in range(a.warmup):
        step()
    if not cuda:
        start = last = time.perf_counter()
        while len(ms) < a.steps and (last - start < a.seconds or len(ms) < 3):
            step()
            now = time.perf_counter()
            ms.append(1e3 * (now - last))
            last = now
        return ms
    start = time.perf_counter()
    while len(ms) < a.steps and (time.perf_counter() - start < a.seconds or not ms):
        marks = [
            torch.cuda.Event(enable_timing=True) for _ in range(min(16, a.steps - len(ms)) + 1)
        ]
        marks[0].record()
        for mark in marks[1:]:
            step()
            mark.record()
        torch.cuda.synchronize()
        ms += [x.elapsed_time(y) for x, y in zip(marks, marks[1:])]
    return ms


def main():
    a = arguments()
    if a.threads:
        torch.set_num_threads(a.threads)
    # TF32 is off: both sides compute in single precision.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    made = make(a)
    ms = measure(a, *made)
    device = (
        torch.cuda.get_device_name()
        if a.device == "cuda"
        else f"CPU, {torch.get_num_threads()} threads"
    )
    print(
        json.dumps(
            {
                "ms": sorted(ms),
                "parameters": sum(p.numel() for p in made[0].parameters()),
                "version": f"PyTorch {torch.__version__}, Python {platform.python_version()}",
                "device": device,
            }
        )
    )


if __name__ == "__main__":
    main()
