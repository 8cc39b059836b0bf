"""PyTorch's sum of an array over processes by gloo, in four buckets at once, as its
DistributedDataParallel makes them.

    torch_gloo.py RANK RANKS ADDRESS PORT FLOATS ROUNDS

Rank 0 is at ADDRESS. It prints one JSON object: the slowest rank's seconds of each round, and the
largest processor time of a process. GLOO_SOCKET_IFNAME names the network device."""
import json
import sys
import time

import torch
import torch.distributed as dist

BUCKETS = 4


def main():
    rank, ranks, address, port, floats, rounds = (
        f(v) for f, v in zip((int, int, str, int, int, int), sys.argv[1:])
    )
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://{address}:{port}", rank=rank,
                            world_size=ranks)
    buckets = list(torch.full((floats,), float(rank)).chunk(BUCKETS))
    times = []
    for i in range(-1, rounds):  # the first round connects the ranks, and is not counted
        dist.barrier()
        start, begun = time.perf_counter(), time.process_time()
        for work in [dist.all_reduce(b, async_op=True) for b in buckets]:
            work.wait()
        own = torch.tensor([time.perf_counter() - start, time.process_time() - begun],
                           dtype=torch.float64)
        dist.all_reduce(own, dist.ReduceOp.MAX)
        if i >= 0:
            times.append(own.tolist())
        for b in buckets:
            b.fill_(rank)
    if rank == 0:
        print(json.dumps({"ranks": ranks, "seconds": [t[0] for t in times],
                          "cpu": [t[1] for t in times]}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
