"""PyTorch's training step of a row of bench_rows.py in several processes, by its
DistributedDataParallel over gloo. bench_replicas.py starts it.

    torch_ddp.py ROW LAYERS RANK RANKS PORT BATCH THREADS STEPS

BATCH: examples of this process. One random batch stays in memory. RANKS 1: one process, without
DistributedDataParallel. Rank 0 prints one JSON object with the seconds of the steps after the first
two."""
import json
import sys
import time

import torch
import torch.distributed as dist

import torch_net
from bench_rows import ROWS


def main():
    name, layers = sys.argv[1:3]
    rank, ranks, port, batch, threads, steps = (int(v) for v in sys.argv[3:])
    row, times = ROWS[name], []
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    with open(layers, encoding="utf-8") as f:
        net = torch_net.Net(row, json.load(f)["layers"]).to(memory_format=torch.channels_last)
    net.train()
    model = net
    if ranks > 1:
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                                world_size=ranks)
        model = torch.nn.parallel.DistributedDataParallel(net)
    images = torch.rand(batch, row.channels, row.size, row.size) * 2 - 1
    images = images.contiguous(memory_format=torch.channels_last)
    truths = net.truths(batch)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9,
                                weight_decay=row.weight_decay)
    for _ in range(steps + 2):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        net.loss(model(images), *truths).backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    if rank == 0:
        print(json.dumps({"ranks": ranks, "seconds": times[2:]}))
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
