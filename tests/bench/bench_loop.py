"""The loop of the side-by-side benchmark that measures one program's steps on the CPU, and the
options of its scripts."""
import argparse
import time

from bench_rows import ROWS


def parser():
    p = argparse.ArgumentParser()
    p.add_argument("row", choices=ROWS)
    p.add_argument("layers")
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--warmup", type=int, default=3)
    return p


def warm_up(a, step):
    start = time.perf_counter()
    for i in range(a.warmup):
        if i == 0 or time.perf_counter() - start < a.seconds / 2:
            step()


def measure(a, step):
    """Returns the time of each counted step in ms, after the warm-up. step() waits for its end."""
    warm_up(a, step)
    ms, start = [], time.perf_counter()
    last = start
    while len(ms) < a.steps and (last - start < a.seconds or len(ms) < 3):
        step()
        now = time.perf_counter()
        ms.append(1e3 * (now - last))
        last = now
    return ms
