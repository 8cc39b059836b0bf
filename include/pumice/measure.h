/* measure: how fast things are on a device: kernels, and the training step of a config. */
#ifndef PUMICE_MEASURE_H
#define PUMICE_MEASURE_H

#include <pumice/config.h>

struct cJSON;

/* ---- a config's training step ----------------------------------------------------------- */

struct pm_bench_options {
    int steps, warmup; /* counted, and before them; warmup may be 0 */
    double seconds;    /* no further step begins after so many, but 3 are measured; 0 = no bound */
    bool synthetic;    /* one batch of random values in memory, no data is read */
};
/* Takes training steps as `train` would, first as they are, then again with every call timed, and
 * writes nothing to the run folder. Initial values come from the seed; the rate is small, so that
 * random data do not diverge. report gets:
 *
 *     config, model, batch, steps, warmup, synthetic, version, finite (bool: all steps were)
 *     devices   [{address, name, driver, threads (CPU), examples, memory_bytes, memory {...}}]
 *     ms_per_step, images_per_second   {min, median, max}
 *     phases    [{name, where ("host" or a device's address), clone (-1 host), ms {...}}]
 *     timed_ms_per_step {...}          of the second pass
 *     host_peak_bytes                  of this process
 *
 * Phases of the host (data, staging, and with several clones sum, update, push) are of the first
 * pass; forward, backward, update and copies of each device are of the second. */
int pm_bench_step(const struct pm_config *c, const struct pm_bench_options *o,
                  struct cJSON *report);

/* ---- where a step's time goes ----------------------------------------------------------- */

struct pm_profile_options {
    int steps, warmup; /* steps >= 1 counted, and before them */
    bool synthetic;    /* one batch of random values in memory, no data is read */
    const char *trace; /* file for a timeline of the counted steps, or NULL */
};
/* Takes training steps one by one with every call timed and writes nothing to the run folder.
 * report gets:
 *
 *     config, model, batch, steps, warmup, synthetic, version, finite, trace (when asked for)
 *     ms_per_step {min, median, max}
 *     host     [{name, ms {...}}]      what the driving thread did: data, device, average, update,
 *                                      other; they add up to a step
 *     devices  [{address, name, driver, role ("clone" or "optimizer"), examples, ms_per_step {...},
 *                rest_ms               of the median run: copies, and gaps between calls
 *                calls   [{call, phase, layer, kernel, variant, ms {...}, share, gflops, gbytes}]
 *                kernels, layers, phases [{name, calls, ms, share, gflops, gbytes}], by falling ms}]
 *
 * A call's share is that of its median in the median of its device's runs; gflops and gbytes are
 * 10^9 a second: operations as the kernel's row counts them, and bytes of the buffers that the call
 * reads and writes, each once. Sums are of medians. */
int pm_profile(const struct pm_config *c, const struct pm_profile_options *o,
               struct cJSON *report);

#endif
