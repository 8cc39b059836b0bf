/* device: the only interface to the CPU and to Vulkan and OpenCL devices. Functions check their
 * arguments once, then call a backend. A wrong argument is an assertion failure.
 *
 * A program is an array of calls, prepared once and run many times: the CPU loops over it, Vulkan
 * replays a recording, OpenCL submits each call again. Every run copies input ranges from host
 * memory before the first call. It copies each output range to host memory as soon as the call it
 * waits for is done. Host memory exists `slots` times, so the caller can fill run n + 1 while run n
 * is under way.
 *
 * Submission returns at once. The CPU device has its own thread, which belongs to the clone. A
 * device's programs run in the order of their submission. One thread submits; any thread may call
 * the wait functions. */
#ifndef PUMICE_DEVICE_H
#define PUMICE_DEVICE_H

#include <pumice/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pm_device;
struct pm_program;

/* ---- finding and opening --------------------------------------------------------------- */

enum pm_device_kind { PM_KIND_CPU, PM_KIND_DISCRETE, PM_KIND_INTEGRATED, PM_KIND_VIRTUAL,
                      PM_KIND_SOFTWARE };
struct pm_device_info {
    char address[32];  /* "cpu", "vulkan:0", "opencl:0" */
    char name[256];
    char driver[256];  /* name and version; the key of caches */
    char uuid[40];     /* 8-4-4-4-12 hex; "" for the CPU, and if an OpenCL driver reports none */
    char pci[16];      /* "0000:03:00.0" or "" */
    enum pm_device_kind kind;
    uint64_t memory_bytes;  /* Vulkan: largest device-local heap; OpenCL: global memory; CPU: host
                             * memory */
    bool usable;
    char reason[160];  /* why it is not usable, or "same GPU as vulkan:0" */
    struct pm_caps caps;
    char features[512]; /* optional features present, space-separated */
};
/* Lists all devices, cpu last. If two drivers offer the same GPU, the second is marked unusable
 * ("same GPU as ..."). Free the list with pm_free. A machine without drivers is not an error. */
int pm_device_list(struct pm_device_info **out, size_t *count);
/* Finds the device that a name means. Names: "auto" (discrete before integrated before virtual GPU
 * before CPU, never a software driver), "cpu", "vulkan:N", "opencl:N", a UUID, or a part of a
 * device's name, in upper or lower case, that matches one device only. *index: into list. */
int pm_device_find(const struct pm_device_info *list, size_t count, const char *name,
                   const char *where, size_t *index);
/* Returns why "auto" finds no GPU: no loader, no driver, or only devices that "auto" skips. */
const char *pm_device_absence(const struct pm_device_info *list, size_t count);

struct pm_device_options {
    int threads;           /* CPU: threads of this clone; 0 = all cores */
    double segment_ms;     /* limit on the estimated work of one submission; 0 = 100 */
    double hang_seconds;   /* seconds without progress after which the device counts as lost; 0 =
                            * 300, INFINITY = never */
    double compile_seconds; /* GPUs: seconds without a compiled shader after which the device
                             * counts as lost; 0 = 600, INFINITY = never */
    double slow;           /* CPU, for tests: factor on the time of every run; 0 = no change */
    int lose_at, hang_at;  /* for tests: the run of a program "train" that is lost or (CPU only)
                            * never ends, counted from 1; 0 = none */
    int lose_after;        /* the same: the run after which another program is lost */
    bool validate;         /* Vulkan validation layer; every message is logged and counted */
    const char *trace;     /* name of its group of lanes in traces; NULL: its address. Borrowed
                            * until opened */
};
int pm_device_open(const struct pm_device_info *info, const struct pm_device_options *options,
                   struct pm_device **out);
void pm_device_close(struct pm_device **d);
/* Whether the device failed with PM_ELOST. Every later request to it fails with PM_ELOST; it can
 * only be closed. A device is lost if its driver says so, or if it makes no progress for too long:
 * no submission (CPU: no call) ended for hang_seconds, or for 20 times the longest run so far if
 * that is more; or the driver finished no shader for compile_seconds. A slow device that makes
 * progress is not lost. */
bool pm_device_lost(const struct pm_device *d);
/* Whether a lost device's work may still be running. Closing such a device frees its memory only at
 * exit. */
bool pm_device_hung(const struct pm_device *d);
/* Whether a thread of this process is stuck in the device for good: in a call on the CPU, or in the
 * driver's compiler. d NULL: whether this holds for any device so far. Such a process must leave by
 * _exit, because exit runs the driver's destructors while that thread uses what they free.
 * Thread-safe. */
bool pm_device_caught(const struct pm_device *d);
/* Whether a program's run has ended on the device since it was opened. */
bool pm_device_ran(const struct pm_device *d);
const struct pm_caps *pm_device_caps(const struct pm_device *d);
const struct pm_device_info *pm_device_get_info(const struct pm_device *d);
/* Returns the number of validation messages of this process so far (tests expect 0). */
uint64_t pm_device_messages(void);

/* ---- memory ---------------------------------------------------------------------------- */

/* Allocates device memory of at most caps.max_buffer_bytes. Contents are undefined. PM_EMEMORY's
 * message names the size, the memory in use and the limit. */
int pm_buffer_create(struct pm_device *d, size_t size, struct pm_buffer **out);
void pm_buffer_destroy(struct pm_device *d, struct pm_buffer **b);
size_t pm_buffer_size(const struct pm_buffer *b);
/* Synchronous copies in multiples of 4 bytes. They run after everything submitted before. */
int pm_buffer_write(struct pm_device *d, struct pm_buffer *b, size_t offset, const void *src,
                    size_t size);
int pm_buffer_read(struct pm_device *d, struct pm_buffer *b, size_t offset, void *dst, size_t size);
int pm_buffer_fill(struct pm_device *d, struct pm_buffer *b, size_t offset, size_t size,
                   uint32_t word);
/* Returns the buffer's memory if it is host memory (CPU), else NULL; NULL for no buffer. While a
 * program of the device uses the buffer, the caller must not use the memory. */
void *pm_buffer_memory(const struct pm_device *d, struct pm_buffer *b);
uint64_t pm_device_memory_used(const struct pm_device *d);

/* ---- programs -------------------------------------------------------------------------- */

struct pm_program_desc {
    const char *name; /* for logs */
    const struct pm_bound_call *calls;
    size_t calls_count;
    const struct pm_place *in;  /* copied from host memory at the start of a run */
    size_t in_count;
    const struct pm_place *out; /* copied to host memory during a run */
    const size_t *out_after;    /* out[i] may be copied after this many calls are done */
    size_t out_count;
    int slots;                  /* >= 1 */
    const int *levels;          /* per call: first pick() level to try; NULL = 0 (parity tests) */
    bool timed;                 /* record the begin and end of every call, for
                                 * pm_program_call_times */
};
/* Compiles missing shaders (in parallel, cached on disk), records the calls and allocates staging.
 * Params are copied. The caller has already put each call's own memory into its t: and z:
 * places. */
int pm_program_create(struct pm_device *d, const struct pm_program_desc *desc,
                      struct pm_program **out);
void pm_program_destroy(struct pm_program **p);
/* Returns the host memory of input / output i in a slot; it is as long as its place. */
void *pm_program_in(struct pm_program *p, int slot, size_t i);
const void *pm_program_out(struct pm_program *p, int slot, size_t i);
/* Starts a run on a slot whose former run has ended. A device's runs, also those of other programs,
 * follow one another in order of submission. Do not change the inputs before pm_program_wait. */
int pm_program_submit(struct pm_program *p, int slot);
/* Waits until out[i] of the slot's run has arrived. PM_ELOST's message names the device and the
 * calls. */
int pm_program_wait_out(struct pm_program *p, int slot, size_t i);
/* Waits until the slot's whole run is done. */
int pm_program_wait(struct pm_program *p, int slot);
/* Returns the seconds that the slot's last run took on the device, from the start of its first call
 * to the end of its last one. Waiting in queues does not count. Call it after pm_program_wait. */
double pm_program_seconds(struct pm_program *p, int slot);
/* Returns the pm_seconds at which the slot's last run began on the device. Call it after
 * pm_program_wait. The CPU's value is exact. A GPU's clock is fitted to the host's clock between a
 * run's submission and the wait's return. */
double pm_program_begun(struct pm_program *p, int slot);
/* Stores when each call of the slot's last run began and ended, in seconds since the run began (the
 * input copies come first). begin and end need room for all calls. Call it after pm_program_wait,
 * for a program made with `timed`. On GPUs the calls of a timed program run one after the other. So
 * no two calls overlap, and time saved by overlap does not show. If a call is cut into several
 * dispatches or submissions, it lasts from the begin of the first to the end of the last.
 * PM_EDEVICE: the device has no timestamps. */
int pm_program_call_times(struct pm_program *p, int slot, double *begin, double *end);
/* Stores when the slot's last run copied its inputs (element 0 of begin and end) and each output
 * (the other elements), in the same unit as pm_program_call_times; NAN where nothing was copied. */
int pm_program_copy_times(struct pm_program *p, int slot, double *begin, double *end);
/* Counts of one run of a program, by arithmetic: nothing is measured. They are those of the
 * untimed program also if it is timed. */
struct pm_counts {
    /* 0 on a device that does not run shaders. */
    size_t dispatches; /* a dispatch that is cut into parts counts once */
    size_t barriers;   /* between dispatches of one submission */
    size_t segments;   /* submissions */
    /* What the calls read and write, from the declared sizes of their buffers. An r: or w: buffer
     * counts once; a u: buffer twice, but once if the call sets it (accumulate = 0); a t: or z:
     * buffer twice, for the bytes that its variant uses; an absent buffer not at all. Caches, and
     * data that a kernel reads several times or skips, are not considered. */
    uint64_t bytes_moved;
};
void pm_program_counts(const struct pm_program *p, struct pm_counts *out);
/* Counts a program without making it. Nothing is compiled: each call has the first variant that
 * fits. Buffers are only compared, so any distinct addresses serve. */
int pm_program_count(struct pm_device *d, const struct pm_program_desc *desc,
                     struct pm_counts *out);
/* Returns the bytes_moved of one call. scratch: bytes that its variant uses of each t: and z:
 * buffer; NULL: all. */
uint64_t pm_call_bytes(const struct pm_bound_call *c, const size_t scratch[PM_MAX_BUFS]);
/* Returns the variant that runs call i ("cpu" on the CPU). */
const char *pm_program_variant(const struct pm_program *p, size_t i);

/* Returns the bytes per t: and z: buffer of a call on this device for pick() level `level` (0 for
 * other buffers). The caller zeroes z: buffers before the first run. A simpler variant that needs
 * more scratch than this level is skipped as a fallback. */
int pm_call_scratch(const struct pm_device *d, const struct pm_kernel *k, const void *params,
                    size_t count, int level, size_t bytes[PM_MAX_BUFS]);

/* ---- variants --------------------------------------------------------------------------- */

/* Stops this device from running a kernel's variant of this name. From now on pm_call_scratch and
 * pm_program_create take the next simpler level instead (also with desc->levels). They fail with
 * PM_EDEVICE if no level is left, or if PM_VARIANT forces this variant. Existing programs do not
 * change. Used for variants whose results are wrong (verify.h). The CPU has no variants. */
void pm_device_avoid(struct pm_device *d, const char *kernel, const char *variant);
/* Finds the variant that a call would get from pick() level `level` on, if its pipelines compile.
 * NULL: no variant is left from that level on. "cpu" on the CPU. */
int pm_call_variant(const struct pm_device *d, const struct pm_kernel *k, const void *params,
                    size_t count, int level, const char **variant);
/* Returns a hash that changes when any shader that this device could run changes; 0 on the CPU. */
uint64_t pm_device_shaders(const struct pm_device *d);

#ifdef __cplusplus
}
#endif

#endif
