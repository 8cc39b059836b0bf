"""PyTorch's half of the side-by-side benchmark: measures a row of bench_rows.py, which is a net's
training step or its prediction.

    python3 torch_step.py ROW LAYERS --device cpu|cuda --threads N --layout nchw|nhwc
                          --optimizer default|fused --mode eager|compiled
                          --steps N --seconds S --warmup N

LAYERS is the output of `pumice config show --layers --json`. torch_net.py makes the net of it.
Detectors, which are more than a list of layers, have modules of their own. One random batch stays
in the device's memory. The script prints one JSON object: the times of the steps in ms, sorted, the
number of trained parameters, and versions."""
import importlib
import json
import platform
import time

import torch

import bench_loop
from bench_rows import ROWS


def arguments():
    p = bench_loop.parser()
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--batch", type=int, default=0, help="instead of the row's, unless 0")
    p.add_argument("--layout", choices=["nchw", "nhwc"], default="nchw")
    p.add_argument("--optimizer", choices=["default", "fused"], default="default")
    p.add_argument("--mode", choices=["eager", "compiled"], default="eager")
    return p.parse_args()


def make(a, row):
    """Returns the net and a function that runs one step."""
    file, name = row.module.split(".")
    module = getattr(importlib.import_module(file), name)
    order = torch.channels_last if a.layout == "nhwc" else torch.contiguous_format
    torch.manual_seed(1)
    if file == "torch_net":
        with open(a.layers) as f:
            net = module(row, json.load(f)["layers"])
    else:
        net = module(row.classes)
    net = net.to(a.device).to(memory_format=order)
    images = torch.rand(row.batch, row.channels, *row.sides(), device=a.device) * 2 - 1
    images = images.contiguous(memory_format=order)
    if row.mode == "predict":
        return net, prediction(a, net.eval(), images)
    return net, training(a, row, net.train(), images,
                         [t.to(a.device) for t in net.truths(row.batch)])


def training(a, row, net, images, truths):
    fused = {"fused": True} if a.optimizer == "fused" else {}
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9,
                                weight_decay=row.weight_decay, **fused)

    def loss(images, *truths):
        return net.loss(net(images), *truths)

    if a.mode == "compiled":
        loss = torch.compile(loss)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(images, *truths).backward()
        optimizer.step()

    return step


def prediction(a, net, images):
    predict = torch.compile(net.predict) if a.mode == "compiled" else net.predict

    def step():
        with torch.inference_mode():
            predict(images)

    return step


def measure_queued(a, step):
    """Returns the time of each counted step in ms on a GPU. Steps are queued without waiting, as in
    usual training loops, and events on the device mark their ends. The loop waits every 16 steps,
    so that the time limit holds."""
    bench_loop.warm_up(a, step)
    ms, start = [], time.perf_counter()
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
    row = ROWS[a.row]
    net, step = make(a, row._replace(batch=a.batch or row.batch))
    ms = measure_queued(a, step) if a.device == "cuda" else bench_loop.measure(a, step)
    device = (
        torch.cuda.get_device_name()
        if a.device == "cuda"
        else f"CPU, {torch.get_num_threads()} threads"
    )
    print(
        json.dumps(
            {
                "ms": sorted(ms),
                "parameters": sum(p.numel() for p in net.parameters() if p.requires_grad),
                "version": f"PyTorch {torch.__version__}, Python {platform.python_version()}",
                "device": device,
            }
        )
    )


if __name__ == "__main__":
    main()
