"""JAX's part of the side-by-side benchmark: measures the training step of a row of bench_rows.py.

    python3 jax_step.py ROW LAYERS --threads N --steps N --seconds S --warmup N

LAYERS is the output of `pumice config show --layers --json`. The script prints what torch_step.py
prints. XLA uses as many threads as the process may use cores."""
import argparse
import json
import os
import platform
import time

from bench_rows import ROWS


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("row", choices=ROWS)
    p.add_argument("layers")
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--warmup", type=int, default=3)
    return p.parse_args()


def step_of(jax, net, decay):
    def step(w, momentum, averages, images, labels, key):
        grow = jax.value_and_grad(net.loss, has_aux=True)
        (loss, averages), g = grow(w, averages, images, labels, key)
        momentum = jax.tree.map(lambda m, g, w: 0.9 * m + g + decay * w, momentum, g, w)
        w = jax.tree.map(lambda w, m: w - 1e-4 * m, w, momentum)
        return w, momentum, averages, loss

    return jax.jit(step, donate_argnums=(0, 1, 2))


def measure(a, run):
    """Returns the time of each counted step in ms. Every step is waited for."""
    ms, start = [], time.perf_counter()
    for i in range(a.warmup):
        if i == 0 or time.perf_counter() - start < a.seconds / 2:
            run()
    start = last = time.perf_counter()
    while len(ms) < a.steps and (last - start < a.seconds or len(ms) < 3):
        run()
        now = time.perf_counter()
        ms.append(1e3 * (now - last))
        last = now
    return ms


def main():
    a = arguments()
    if a.threads:  # before jax is imported
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: a.threads])
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    from jax_net import Net

    row = ROWS[a.row]
    with open(a.layers) as f:
        net = Net(row, json.load(f)["layers"])
    key = jax.random.key(1)
    w, averages = net.variables(key)
    state = [w, jax.tree.map(lambda v: v * 0, w), averages]
    images = jax.random.uniform(key, (row.batch, row.size, row.size, row.channels)) * 2 - 1
    labels = jax.random.randint(key, (row.batch,), 0, row.classes)
    step = step_of(jax, net, row.weight_decay)

    def run():
        *state[:], loss = step(*state, images, labels, key)
        loss.block_until_ready()

    ms = measure(a, run)
    print(json.dumps({
        "ms": sorted(ms),
        "parameters": sum(v.size for v in jax.tree.leaves(state[0])),
        "version": f"JAX {jax.__version__}, Python {platform.python_version()}",
        "device": f"CPU, {len(os.sched_getaffinity(0))} threads",
    }))


if __name__ == "__main__":
    main()
