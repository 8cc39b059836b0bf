/* device: the only door to CPU and GPU. Functions check their arguments once (a mistake is an
 * assertion failure), then call a backend.
 *
 * A program is an array of calls, recorded once and replayed. Around the calls, in every run,
 * ranges are copied in from host memory before the first call and out to host memory as soon as the
 * call they wait for is done. Host memory exists `slots` times, so that run n + 1 can be filled
 * while run n is under way. Submission returns at once (the CPU device has a thread of its own,
 * which is the clone's); programs of a device run in the order of their submission. One thread
 * submits; the waits may be called from any thread. */
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
    char address[32];  /* "cpu", "vulkan:0" */
    char name[256];
    char driver[256];  /* name and version; the key of caches */
    char uuid[40];     /* 8-4-4-4-12 hex; "" for the CPU */
    char pci[16];      /* "0000:03:00.0" or "" */
    enum pm_device_kind kind;
    uint64_t memory_bytes;  /* largest device-local heap; host memory for the CPU */
    bool usable;
    char reason[160];  /* why not usable, or "same GPU as vulkan:0" */
    struct pm_caps caps;
    char features[512]; /* optional features present, space-separated */
};
/* All devices, cpu last; same GPU under two drivers: the second is marked unusable ("same GPU as
 * ..."). Freed with pm_free. A machine without Vulkan is not an error. */
int pm_device_list(struct pm_device_info **out, size_t *count);
/* Which devices a list of names means: "auto" (discrete over integrated over CPU; software
 * rasterisers never), "cpu", "vulkan:N", a UUID, or a part of a device's name (case-insensitive;
 * must fit one device only). *index: into list. */
int pm_device_find(const struct pm_device_info *list, size_t count, const char *name,
                   const char *where, size_t *index);
/* Why there is no GPU to take: no loader, no driver, or only devices that auto passes over. */
const char *pm_device_absence(const struct pm_device_info *list, size_t count);

struct pm_device_options {
    int threads;           /* CPU: threads of this clone; 0 = all cores */
    double segment_ms;     /* work bound of one submission, estimated; 0 = 100 */
    double hang_seconds;   /* no progress for so long is a loss; 0 = 300, INFINITY = never */
    double compile_seconds; /* Vulkan: the driver finishing no shader for so long is a loss; 0 = 600,
                             * INFINITY = never */
    double slow;           /* CPU, for tests: runs take so many times as long; 0 = as they are */
    int lose_at, hang_at;  /* for tests: the run of a program "train" that is lost or (CPU) never
                            * ends, counted from 1; 0 = none */
    bool validate;         /* Vulkan validation layer; every message is logged and counted */
    const char *trace;     /* its group of lanes in traces; NULL: its address. Borrowed until opened */
};
int pm_device_open(const struct pm_device_info *info, const struct pm_device_options *options,
                   struct pm_device **out);
void pm_device_close(struct pm_device **d);
/* The device failed with PM_ELOST: whatever is asked of it from now on fails so too, and it can
 * only be closed. A driver says so, or no submission (CPU: no call) ended for hang_seconds, or for
 * 20 times the longest run so far where that is more; or the driver finished no shader for
 * compile_seconds. What makes progress, however slowly, is not lost. */
bool pm_device_lost(const struct pm_device *d);
/* And its work may still be running: closing it leaves its memory alone until the process ends. */
bool pm_device_hung(const struct pm_device *d);
/* And a thread of this process is caught in it for good: in a call on the CPU, in the driver's
 * compiler. NULL: in any device so far. Such a process leaves by _exit: exit runs the driver's
 * destructors while that thread uses what they free. Thread-safe. */
bool pm_device_caught(const struct pm_device *d);
/* A program's run ended on it since it was opened. */
bool pm_device_ran(const struct pm_device *d);
const struct pm_caps *pm_device_caps(const struct pm_device *d);
const struct pm_device_info *pm_device_get_info(const struct pm_device *d);
/* Validation messages of this process so far (tests want 0). */
uint64_t pm_device_messages(void);

/* ---- memory ---------------------------------------------------------------------------- */

/* Device memory; size at most caps.max_buffer_bytes. Contents are undefined. A failure (PM_EMEMORY)
 * names the size, what is in use and the limit. */
int pm_buffer_create(struct pm_device *d, size_t size, struct pm_buffer **out);
void pm_buffer_destroy(struct pm_device *d, struct pm_buffer **b);
size_t pm_buffer_size(const struct pm_buffer *b);
/* Synchronous copies in 4-byte multiples; ordered after everything submitted before. */
int pm_buffer_write(struct pm_device *d, struct pm_buffer *b, size_t offset, const void *src,
                    size_t size);
int pm_buffer_read(struct pm_device *d, struct pm_buffer *b, size_t offset, void *dst, size_t size);
int pm_buffer_fill(struct pm_device *d, struct pm_buffer *b, size_t offset, size_t size,
                   uint32_t word);
uint64_t pm_device_memory_used(const struct pm_device *d);

/* ---- programs -------------------------------------------------------------------------- */

struct pm_program_desc {
    const char *name; /* for logs */
    const struct pm_bound_call *calls;
    size_t calls_count;
    const struct pm_place *in;  /* copied from host memory at the start of a run */
    size_t in_count;
    const struct pm_place *out; /* copied to host memory during a run */
    const size_t *out_after;    /* out[i] may be copied once this many calls are done */
    size_t out_count;
    int slots;                  /* >= 1 */
    const int *levels;          /* per call: first pick() level to try; NULL = 0 (parity tests) */
    bool timed;                 /* the begin and end of every call are taken: pm_program_call_times */
};
/* Compiles what is missing (in parallel, cached on disk), records, allocates staging. Params are
 * copied. Scratch of each call is in its t: places already. */
int pm_program_create(struct pm_device *d, const struct pm_program_desc *desc,
                      struct pm_program **out);
void pm_program_destroy(struct pm_program **p);
/* Host memory of input / output i in a slot, of its place's size. */
void *pm_program_in(struct pm_program *p, int slot, size_t i);
const void *pm_program_out(struct pm_program *p, int slot, size_t i);
/* Starts a run on a slot (the slot's former run must have been waited for). Inputs may not be
 * touched until pm_program_wait_in returns. */
int pm_program_submit(struct pm_program *p, int slot);
/* Waits until out[i] of the slot's run has arrived. PM_ELOST names the device and the calls. */
int pm_program_wait_out(struct pm_program *p, int slot, size_t i);
/* Waits until the slot's run is wholly done. */
int pm_program_wait(struct pm_program *p, int slot);
/* Seconds the slot's last run took on the device, from its first call's start to its last one's
 * end, without waiting in queues. After pm_program_wait. */
double pm_program_seconds(struct pm_program *p, int slot);
/* pm_seconds when the slot's last run began on the device. After pm_program_wait. The CPU's is
 * exact; a GPU's clock is fitted to the host's between a run's submission and the wait's return. */
double pm_program_begun(struct pm_program *p, int slot);
/* When each call of the slot's last run began and ended, in seconds since the run began (copies in
 * come first); begin and end have room for all calls. After pm_program_wait, of a program made with
 * `timed`. On Vulkan the calls of a timed program run one after the other, each behind a barrier,
 * so that no two overlap: what calls gain by overlapping is not seen. A call that is cut into
 * several dispatches or submissions lasts from the first one's begin to the last one's end.
 * PM_EDEVICE: the device takes no timestamps. */
int pm_program_call_times(struct pm_program *p, int slot, double *begin, double *end);
/* When the slot's last run copied its inputs (first of begin and end) and each of its outputs (the
 * others), likewise; NAN where nothing was copied. */
int pm_program_copy_times(struct pm_program *p, int slot, double *begin, double *end);
/* The variant that runs call i ("cpu" on the CPU). */
const char *pm_program_variant(const struct pm_program *p, size_t i);

/* Scratch bytes per buffer of a call on this device (0 where not t:), for pick() level `level`;
 * fallbacks to a simpler variant need no more than the level's own or they are skipped. */
int pm_call_scratch(const struct pm_device *d, const struct pm_kernel *k, const void *params,
                    size_t count, int level, size_t bytes[PM_MAX_BUFS]);

/* ---- variants --------------------------------------------------------------------------- */

/* From now on this device does not run a kernel's variant of this name: pm_call_scratch and
 * pm_program_create take the next simpler level instead (at desc->levels too), and fail with
 * PM_EDEVICE where none is left, or where PM_VARIANT forces this one. Programs that exist are not
 * changed. For variants whose results are wrong (verify.h). The CPU has none. */
void pm_device_avoid(struct pm_device *d, const char *kernel, const char *variant);
/* The variant that a call would get, from pick() level `level` on, if its pipelines compile; NULL:
 * there is none from that level on. "cpu" on the CPU. */
int pm_call_variant(const struct pm_device *d, const struct pm_kernel *k, const void *params,
                    size_t count, int level, const char **variant);
/* Changes when any shader that this device could run changes; 0 on the CPU. */
uint64_t pm_device_shaders(const struct pm_device *d);

#ifdef __cplusplus
}
#endif

#endif
