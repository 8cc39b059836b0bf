/* measure: how fast things are on a device: kernels, and the training step of a config. */
#ifndef PUMICE_MEASURE_H
#define PUMICE_MEASURE_H

#include <pumice/config.h>
#include <pumice/device.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* ---- a device ---------------------------------------------------------------------------- */

/* What a device does at most, as measured: single-precision multiply-adds in registers (two
 * operations each, the best of 4 to 16 independent chains a value), and a copy of copy_bytes
 * (256 MiB, less where memory is short), read and written bytes together, on the CPU and software
 * drivers piece by piece. The fastest of many runs. */
struct pm_speed_peak {
    double gflops, gigabytes; /* a second */
    uint64_t copy_bytes;
};
/* seconds: about how long it takes. */
int pm_measure_peak(struct pm_device *d, double seconds, struct pm_speed_peak *out);

/* ---- kernels ----------------------------------------------------------------------------- */

struct pm_kernels_options {
    const char *filter; /* rows whose "net pass shape" has this in it; NULL: all */
    int batch;          /* of the nets; 0 = 8 on the CPU and software drivers, else 32 */
    double seconds;     /* of repeats, for each row; at least two are made */
    bool list_only;     /* describes the rows and measures nothing */
    /* Called when the peak is known, and after each row; either may be NULL. */
    void (*start)(void *ctx, const struct cJSON *report);
    void (*row)(void *ctx, const struct cJSON *row);
    void *ctx;
};
/* Products and the convolutions of lenet, resnet_v1_50, mobilenet_v1, inception_v3 and deeplab:
 * forward, gradient of the data, gradient of the filter. report gets batch, and
 *
 *     peak    {gflops, gigabytes_per_second, copy_bytes}
 *     rows    [{net, pass, kernel, shape, uses (a step), geometry {n, h, w, c, ...}, flops,
 *              variant, runs, ms {min, median, max}, bytes (of its buffers), gflops,
 *              gigabytes_per_second, share_of_peak (gflops), share_of_bound (of the time that the
 *              peaks would take)}]
 *     totals  [{net, pass, ms (sum of uses), gflops, share_of_peak}]
 *
 * Rates are of the fastest run. Small shapes stay in caches and may exceed the copy's GB/s. */
int pm_bench_kernels(struct pm_device *d, const struct pm_kernels_options *o, struct cJSON *report);

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

#ifdef __cplusplus
}
#endif

#endif
