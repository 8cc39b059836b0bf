/* measure: measures the speed of kernels, and of a config's training step, on a device. */
#ifndef PUMICE_MEASURE_H
#define PUMICE_MEASURE_H

#include <pumice/config.h>
#include <pumice/device.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* ---- a device ---------------------------------------------------------------------------- */

/* The measured peak of a device, the fastest of many runs: single-precision multiply-adds in
 * registers (two operations each; the best of 4 to 16 independent chains per value), and a copy of
 * copy_bytes (256 MiB, or less if memory is short; read and written bytes are added; on the CPU and
 * software drivers piece by piece). */
struct pm_speed_peak {
    double gflops, gigabytes; /* per second */
    uint64_t copy_bytes;
};
/* seconds: approximate duration. */
int pm_measure_peak(struct pm_device *d, double seconds, struct pm_speed_peak *out);

/* ---- kernels ----------------------------------------------------------------------------- */

struct pm_kernels_options {
    const char *filter; /* only rows whose "net pass shape" contains this; NULL: all */
    int batch;          /* of the nets; 0 = 8 on the CPU and software drivers, else 32 */
    double seconds;     /* duration of the repeats per row; at least two repeats */
    double limit;       /* begin no further row after this many seconds in all; 0: no limit */
    bool list_only;     /* only describe the rows, without measuring */
    /* Called when the peak is known, and after each row. Both may be NULL. An error of row() ends
     * the measurement. */
    void (*start)(void *ctx, const struct cJSON *report);
    int (*row)(void *ctx, const struct cJSON *row);
    void *ctx;
};
/* Products and the convolutions of lenet, resnet_v1_50, mobilenet_v1, inception_v3 and deeplab:
 * forward, gradient of the data, gradient of the filter. report gets batch, rows_left (the number
 * of rows that o->limit left out; `totals` lack them), and
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

/* ---- a config's training step, and its prediction ---------------------------------------- */

struct pm_bench_options {
    int steps, warmup; /* measured steps, and steps before them (>= 0) */
    double seconds;  /* start no more steps after this time, but measure at least 3; 0 = no limit */
    bool synthetic;    /* one batch of random values in memory, no data is read */
};
/* Runs training steps like `train`: first normally, then again with every call timed. Writes
 * nothing to the run folder. Initial values come from the seed; the learning rate is small, so that
 * random data do not diverge. report receives:
 *
 *     config, model, batch, steps, warmup, synthetic, version, finite (bool: all steps were)
 *     devices   [{address, name, driver, threads (CPU), examples, memory_bytes, memory {...},
 *                dispatches, barriers, segments (devices that run shaders), bytes_moved}]
 *     ms_per_step, images_per_second   {min, median, max}
 *     phases    [{name, where ("host" or a device's address), clone (-1 host), ms {...}}]
 *     timed_ms_per_step {...}          of the second pass
 *     host_peak_bytes                  of this process
 *
 * Phases of the host (data, staging, and with several clones sum, update, push) are of the first
 * pass; forward, backward, update and copies of each device are of the second. dispatches,
 * barriers, segments and bytes_moved are those of struct pm_counts (device.h). */
int pm_bench_step(const struct pm_config *c, const struct pm_bench_options *o,
                  struct cJSON *report);
/* Runs the net with its outputs on the config's first device, as prediction and evaluation do, for
 * detectors with suppression but without a loss. The pictures are random, whatever o->synthetic
 * says, in batches of eval.batch_size, one at a time. Initial values come from the seed. report
 * receives the members above except finite, phases and timed_ms_per_step; a step is a batch. */
int pm_bench_predict(const struct pm_config *c, const struct pm_bench_options *o,
                     struct cJSON *report);

/* ---- where a step's time goes ----------------------------------------------------------- */

struct pm_profile_options {
    int steps, warmup; /* measured steps (>= 1), and steps before them */
    bool synthetic;    /* one batch of random values in memory, no data is read */
    const char *trace; /* file for a timeline of the counted steps, or NULL */
};
/* Runs training steps one by one with every call timed. Writes nothing to the run folder. report
 * receives:
 *
 *     config, model, batch, steps, warmup, synthetic, version, finite, trace (when asked for)
 *     ms_per_step {min, median, max}
 *     host     [{name, ms {...}}]      what the driving thread did: data, device, average, update,
 *                                      other; they add up to a step
 *     devices  [{address, name, driver, role ("clone" or "optimizer"), examples, ms_per_step {...},
 *                dispatches, barriers, segments, bytes_moved   as in pm_bench_step: of an untimed
 *                                      step
 *                rest_ms               of the median run: copies, and gaps between calls
 *                calls   [{call, phase, layer, kernel, variant, ms {...}, share, gflops, gbytes}]
 *                kernels, layers, phases [{name, calls, ms, share, gflops, gbytes}], by falling
 *                ms}]
 *
 * A call's share is that of its median in the median of its device's runs; gflops and gbytes are
 * 10^9 a second: operations as the kernel's row counts them, and bytes as bytes_moved counts
 * them. Sums are of medians. */
int pm_profile(const struct pm_config *c, const struct pm_profile_options *o,
               struct cJSON *report);

#ifdef __cplusplus
}
#endif

#endif
