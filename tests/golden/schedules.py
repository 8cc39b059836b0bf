#!/usr/bin/env python3
"""Makes schedules.json: the learning rates of TensorFlow's Object Detection API (utils/
learning_schedules.py and tf.train.exponential_decay) at every boundary and beside it.

    VENV/bin/python tests/golden/schedules.py    # tfod.py describes VENV

Each case has the schedule as this program's config writes it, which is derived from the API's
numbers here, and pairs of step and rate. A rate is the float32 of the API and, for comparison, the
same formula in double precision; both must agree."""

import json
import math
import os

import tfod

tf = tfod.load()
from object_detection.utils import learning_schedules as api  # noqa: E402


def exponential(base, decay, factor, burnin_lr, burnin, least, staircase):
    def exact(s):
        if s < burnin:
            return max(burnin_lr or base, least)
        x = (s - burnin) / decay
        return max(base * factor ** (math.floor(x) if staircase else x), least)

    config = {"policy": "exponential", "base_lr": base, "decay_steps": decay,
              "decay_factor": factor, "staircase": staircase, "min_lr": least}
    if burnin:
        config.update(warmup_shape="constant", warmup_lr=burnin_lr or base, warmup_steps=burnin,
                      warmup_shift=True)
    return config, [burnin, burnin + decay, burnin + 2 * decay, burnin + 9 * decay], exact, \
        lambda s: api.exponential_decay_with_burnin(s, base, decay, factor, burnin_lr, burnin,
                                                    least, staircase)


def cosine(base, total, warmup_lr, warmup, hold):
    def exact(s):
        if s < warmup:
            return warmup_lr + (base - warmup_lr) * s / warmup
        if s <= warmup + hold:
            return base
        done = (s - warmup - hold) / (total - warmup - hold)
        return 0 if s > total else 0.5 * base * (1 + math.cos(math.pi * done))

    config = {"policy": "cosine", "base_lr": base, "end_lr": 0, "warmup_shift": True,
              "decay_steps": total - warmup - hold, "warmup_lr": warmup_lr,
              "warmup_steps": warmup, "hold_steps": hold}
    return config, [warmup, warmup + hold, (warmup + hold + total) // 2, total, 2 * total], exact, \
        lambda s: api.cosine_decay_with_warmup(s, base, total, warmup_lr, warmup, hold)


def manual(boundaries, rates, warmup):
    def exact(s):
        if warmup and s < boundaries[0]:
            return rates[0] + (rates[1] - rates[0]) * s / boundaries[0]
        return rates[sum(s >= b for b in boundaries)]

    config = {"policy": "piecewise", "base_lr": rates[0], "boundaries": boundaries,
              "rates": rates[1:]}
    if warmup:
        first = boundaries[0]
        config = {"policy": "piecewise", "base_lr": rates[1], "warmup_lr": rates[0],
                  "warmup_steps": first, "warmup_shift": True,
                  "boundaries": [b - first for b in boundaries[1:]], "rates": rates[2:]}
        if len(boundaries) == 1:
            config.update(policy="fixed")
    return config, boundaries, exact, lambda s: api.manual_stepping(s, boundaries, rates, warmup)


CASES = [
    exponential(0.004, 800, 0.95, 0.0, 0, 0.0, True),
    exponential(0.004, 70, 0.5, 0.001, 30, 0.0, True),
    exponential(0.004, 70, 0.5, 0.0, 30, 0.0005, False),
    exponential(0.004, 70, 0.5, 0.0001, 30, 0.0005, True),  # burn-in below the lowest rate
    cosine(0.04, 25000, 0.013333, 2000, 0),
    cosine(0.08, 1000, 0.02, 100, 250),
    cosine(0.08, 1000, 0.0, 0, 1),
    cosine(0.08, 1000, 0.0, 0, 0),
    manual([900, 1200, 1210], [0.0003, 0.00003, 0.000003, 0.00001], False),
    manual([90, 120, 121], [0.0003, 0.003, 0.0003, 0.00003], True),
    manual([90, 120], [0.01, 0.001, 0.0001], True),  # the ramp falls
    manual([50], [0.001, 0.01], True),
]


def main():
    out = []
    with tf.Session() as session:
        step = tf.placeholder(tf.int64)
        for config, boundaries, exact, made in CASES:
            rate = made(step)
            steps = sorted({0, 1, 7} | {max(b + d, 0) for b in boundaries for d in (-1, 0, 1)})
            pairs = []
            for s in steps:
                single, double = float(session.run(rate, {step: s})), exact(s)
                # cos loses its last digits near the end of the decay
                assert abs(single - double) < 2e-6 * double + 1e-8 * config["base_lr"], (config, s)
                pairs.append([s, float(f"{double:.9g}")])
            out.append({"schedule": config, "rates": pairs})
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "schedules.json")
    with open(path, "w") as f:
        head = {"tf-object-detection": "0.0.3", "tensorflow": "2.12.1", "cases": out}
        f.write(json.dumps(head, separators=(",", ":")).replace('{"sch', '\n{"sch') + "\n")


if __name__ == "__main__":
    main()
