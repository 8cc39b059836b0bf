"""JAX's part of the side-by-side benchmark: measures the training step of a row of bench_rows.py.

    python3 jax_step.py ROW LAYERS --threads N --steps N --seconds S --warmup N

LAYERS is the output of `pumice config show --layers --json`. The script prints what torch_step.py
prints. XLA uses as many threads as the process may use cores."""
import json
import os
import platform

import bench_loop
from bench_rows import ROWS


def step_of(jax, net, decay):
    def step(w, momentum, averages, images, labels, key):
        grow = jax.value_and_grad(net.loss, has_aux=True)
        (loss, averages), g = grow(w, averages, images, labels, key)
        momentum = jax.tree.map(lambda m, g, w: 0.9 * m + g + decay * w, momentum, g, w)
        w = jax.tree.map(lambda w, m: w - 1e-4 * m, w, momentum)
        return w, momentum, averages, loss

    return jax.jit(step, donate_argnums=(0, 1, 2))


def main():
    a = bench_loop.parser().parse_args()
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

    ms = bench_loop.measure(a, run)
    print(json.dumps({
        "ms": sorted(ms),
        "parameters": sum(v.size for v in jax.tree.leaves(state[0])),
        "version": f"JAX {jax.__version__}, Python {platform.python_version()}",
        "device": f"CPU, {len(os.sched_getaffinity(0))} threads",
    }))


if __name__ == "__main__":
    main()
