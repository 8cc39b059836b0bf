/* pipelines: what the backends that run shaders share: from a kernel's row to compiled pipelines,
 * and from an array of calls to an arrangement of their dispatches. A backend's device struct
 * begins with struct pm_shader_device. Only src/device/ and tests include this file. */
#ifndef PM_PIPELINES_H
#define PM_PIPELINES_H

#include "device/arrangement.h"
#include "device/backend.h"
#include "device/shader_table.h"
#include "device/spirv.h"

#include <pthread.h>

enum { PM_PUSH_BYTES = 128 };

/* A shader with its constants. First member of a backend's own pipeline struct. */
struct pm_pipeline {
    const struct pm_shader *shader;
    uint32_t spec[PM_MAX_SPEC];
    int specs;
    uint32_t present;    /* buffers of the call, as pm_spirv_freeze takes them */
    uint32_t push_bytes; /* needed by the row */
    struct pm_module_info module;
    bool compiled;
    int failed; /* 0, or the error; PM_EDEVICE: this device cannot run it, another variant may
                 * work */
    bool logged; /* the use of a simpler variant was logged */
    char why[200];
};
struct pm_compiling;
struct pm_shader_device;
struct pm_pipeline_ops {
    const char *log;      /* subsystem in log lines: "vulkan" */
    size_t pipeline_size; /* of the backend's pipeline struct */
    /* Returns what else than struct pm_caps shows the device lacks for the module, or NULL. NULL:
     * nothing else can be lacking. */
    const char *(*lacks)(const struct pm_shader_device *d, const struct pm_module_info *m);
    /* Compiles a frozen module. Called from several threads. PM_EDEVICE: the driver rejects it. */
    int (*compile)(struct pm_shader_device *d, struct pm_pipeline *p, const uint32_t *words,
                   size_t count);
    /* Frees what compile made. */
    void (*destroy)(struct pm_shader_device *d, struct pm_pipeline *p);
};
struct pm_pipelines {
    const struct pm_pipeline_ops *ops;
    pthread_mutex_t lock;
    struct pm_pipeline **list;
    size_t count, capacity;
    const struct pm_shader *extra; /* tests: searched before the embedded table; borrowed */
    struct pm_compiling *left; /* used by threads stuck in the driver's compiler; or NULL */
};
/* First member of the device struct of a backend that runs shaders. */
struct pm_shader_device {
    struct pm_device base;
    struct pm_pipelines pipelines;
    double flops, bytes;    /* per second, guessed: for splitting work */
    double segment_seconds; /* limit on the estimated work of a submission */
    struct pm_shader_device *next; /* next in the list of devices that threads are stuck in */
};
void pm_pipelines_open(struct pm_shader_device *d, const struct pm_pipeline_ops *ops);
/* Frees all pipelines. idle false: the device hangs, and only host memory is freed. */
void pm_pipelines_close(struct pm_shader_device *d, bool idle);
/* Keeps, and keeps reachable, a device whose memory a thread stuck in the driver may use. */
void pm_shader_device_leave(struct pm_shader_device *d);
/* Marks the device lost and fails with PM_ELOST and the reason. */
int pm_shader_device_lose(struct pm_shader_device *d, const char *why);
/* The same, for a device that ended no submission for `idle` seconds. It is marked as hung, too. */
int pm_shader_device_hang(struct pm_shader_device *d, double idle);

/* A call's dispatches and their pipelines. */
struct pm_picked {
    struct pm_picks picks;
    struct pm_pipeline *pipeline[PM_MAX_DISPATCHES];
    int level;
};
/* Chooses dispatches for every call and compiles missing pipelines, in parallel. A call whose
 * pipeline fails gets its next level. out: calls_count zeroed items. */
int pm_pick_all(struct pm_shader_device *d, const struct pm_program_desc *desc,
                struct pm_picked *out);
/* Chooses the dispatches of a call without looking up pipelines. *whole: see arrangement.h. */
int pm_pick_only(struct pm_shader_device *d, const struct pm_bound_call *c, struct pm_picks *out,
                 bool whole[PM_MAX_DISPATCHES]);
/* The device's functions of the same names (backend.h). */
int pm_shader_call_scratch(const struct pm_device *d, const struct pm_kernel *k,
                           const void *params, size_t count, int level,
                           size_t bytes[PM_MAX_BUFS]);
int pm_shader_call_variant(const struct pm_device *d, const struct pm_kernel *k,
                           const void *params, size_t count, int level, const char **variant);
uint64_t pm_shader_hash(const struct pm_device *d);
int pm_shader_program_count(struct pm_device *d, const struct pm_program_desc *desc,
                            struct pm_counts *out);
/* Returns the bytes of a row's push block: addresses, then the params. If the params do not fit, it
 * holds their address. */
uint32_t pm_push_bytes(const struct pm_kernel *k, int bufs, bool *by_address);
/* Returns the bytes of a row's params if shaders get their address, else 0; aligned. */
size_t pm_wide_params(const struct pm_kernel *k);
/* Rounds up to the alignment of places. */
static inline size_t pm_align_place(size_t n)
{
    enum { ALIGNMENT = 256 };

    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- compile_pipelines.c ------------------------------------------------------------ */

/* Compiles all new pipelines and logs progress now and then; each one's `failed` holds its result.
 * PM_ELOST if no pipeline finished for options.compile_seconds: threads then stay in the driver. */
int pm_compile_new(struct pm_shader_device *d);

/* ---- recording.c -------------------------------------------------------------------- */

/* Arranges the calls of a program. *counts: those of the untimed program. */
void pm_arrange_picked(const struct pm_shader_device *d, const struct pm_program_desc *desc,
                       const struct pm_picked *picked, struct pm_arrangement *out,
                       struct pm_counts *counts);
/* What messages say of a program's calls, from the arena. */
struct pm_call_names {
    const char *program;
    const char **variants, **labels; /* per call; label: "layer (kernel)" */
    size_t calls_count;
};
void pm_name_calls(struct pm_arena *arena, const struct pm_program_desc *desc,
                   const struct pm_picked *picked, struct pm_call_names *out);
/* Adds to the message of PM_ELOST the calls of the first submission that has not ended. Returns
 * err. value: per submission, 0 if it was not submitted; reached: the last value that has ended. */
int pm_blame(int err, const struct pm_call_names *names, const struct pm_submission *submissions,
             size_t count, const uint64_t *value, uint64_t reached);
/* Whether an output is copied beside the calls that follow, by another queue: no later call may
 * overwrite it, and it must be large enough for a submission of its own. A timed program does one
 * thing at a time, so never. */
bool pm_copied_beside(const struct pm_program_desc *desc, size_t out);

/* ---- settle.c ----------------------------------------------------------------------- */

/* Calls wait(ctx) in a separate thread and returns whether it returned within `seconds`. Frees ctx
 * when wait has returned, which may be never. */
bool pm_settles(void (*wait)(void *ctx), void *ctx, double seconds);

/* ---- fit_clock.c -------------------------------------------------------------------- */

struct pm_clock_fit {
    uint64_t stamp; /* end of the last run on the device's clock, */
    double seconds; /* and on the host's (pm_seconds); 0: no run yet */
};
/* Returns the begin of a run on the host's clock and improves the fit. since: seconds on the
 * device's clock from f->stamp to the run's begin, negative if it began earlier. seconds: the run's
 * length. end: stamp of its end. submitted, now: host times of its submission and of the reading.
 * The caller holds the lock that guards *f. */
double pm_fit_clock(struct pm_clock_fit *f, double since, double seconds, uint64_t end,
                    double submitted, double now);

/* ---- pipeline_cache.c: the files that keep what drivers compiled ---------------------- */

/* Sets *folder to the folder of caches. False: there is none. */
bool pm_pipeline_cache_folder(struct pm_str *folder);
/* Returns the driver's bytes of an intact file, else NULL. The caller frees *file. */
const char *pm_pipeline_cache_load(const char *path, const char *log, char **file, size_t *size);
/* Writes a file. Failure costs time only. */
void pm_pipeline_cache_save(const char *path, const char *log, const void *body, size_t size);
/* Returns the driver's bytes within a cache file (*size long), or NULL if the file's header does
 * not match them. pm_pipeline_cache_wrap does the reverse. */
const char *pm_pipeline_cache_body(const char *file, size_t all, size_t *size);
void pm_pipeline_cache_wrap(struct pm_str *file, const void *body, size_t size);

#endif
