/* device_cl: declarations that the files of the OpenCL backend share.
 *
 * Every OpenCL call goes through struct cl, a table of function pointers from the loader
 * (libOpenCL.so.1). Tests replace entries to inject device loss, memory exhaustion and hangs.
 *
 * OpenCL 1.2 records nothing. A program is an array of kernels whose arguments are set once; a run
 * walks it. Commands are in two queues, both in order: calls and copies on the first, large copies
 * out on the second. A value counts each queue's submissions, as Vulkan's timeline semaphores do;
 * the event of a submission's last command tells that it has ended. */
#ifndef PM_DEVICE_CL_H
#define PM_DEVICE_CL_H

#include "device/opencl/translate.h"
#include "device/pipelines.h"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#define PM_CL_FUNCTIONS(F)                                                                         \
    F(GetPlatformIDs) F(GetPlatformInfo) F(GetDeviceIDs) F(GetDeviceInfo) F(CreateContext)         \
    F(ReleaseContext) F(CreateCommandQueue) F(ReleaseCommandQueue) F(CreateBuffer)                 \
    F(ReleaseMemObject) F(CreateProgramWithSource) F(CreateProgramWithBinary) F(BuildProgram)      \
    F(GetProgramInfo) F(GetProgramBuildInfo) F(ReleaseProgram) F(CreateKernel) F(ReleaseKernel)    \
    F(SetKernelArg) F(GetKernelWorkGroupInfo) F(EnqueueNDRangeKernel) F(EnqueueReadBuffer)         \
    F(EnqueueWriteBuffer) F(EnqueueFillBuffer) F(EnqueueMapBuffer) F(EnqueueUnmapMemObject)        \
    F(EnqueueMarkerWithWaitList) F(EnqueueBarrierWithWaitList) F(Flush) F(Finish)                  \
    F(GetEventInfo) F(GetEventProfilingInfo) F(RetainEvent) F(ReleaseEvent)

#define PM_CL_MEMBER(name) __typeof__(cl##name) *name;
struct cl {
    PM_CL_FUNCTIONS(PM_CL_MEMBER)
};
/* Called after the table was loaded for a list or a device. Only tests set it. */
extern void (*pm_cl_loaded)(struct cl *cl);

/* ---- loader_cl.c -------------------------------------------------------------------- */

/* Fills the table. False: there is no loader, or it lacks a function. Thread-safe. */
bool pm_cl_load(struct cl *out);
/* Returns 0, or calls pm_fail with the call's text and the result's name:
 * PM_TRY(cl(d->cl.Flush(...))). PM_EMEMORY if memory is exhausted, else PM_EDEVICE. */
#define cl(call) pm_cl_result((call), #call)
int pm_cl_result(cl_int r, const char *text);
const char *pm_cl_result_name(cl_int r);

/* ---- info_cl.c ---------------------------------------------------------------------- */

/* A device before it is opened. */
struct cl_physical {
    cl_platform_id platform;
    cl_device_id device;
    struct pm_device_info info;
    uint32_t vendor;
    bool fma;               /* fused multiply-add in one rounding (CL_FP_FMA) */
    bool rounded_divide;    /* offers -cl-fp32-correctly-rounded-divide-sqrt */
};
/* Lists the devices of all platforms in the loader's order; pm_free(*out). */
void pm_cl_enumerate(const struct cl *cl, struct cl_physical **out, size_t *count);

/* ---- queue_cl.c: work on the queues ------------------------------------------------- */

struct cl_queue {
    cl_command_queue handle;
    cl_event *events;       /* owned: of the submissions after `reached`, oldest first */
    size_t count, capacity;
    uint64_t submitted;     /* value of the last submission */
    uint64_t reached;       /* the last value that is known to have ended */
};
struct cl_device {
    struct pm_shader_device shared;
    struct cl cl;
    struct cl_physical physical;
    cl_context context;
    struct cl_queue compute, transfer;
    pthread_mutex_t queue_lock;  /* around submissions and both queues' events */
    pthread_mutex_t once_lock;   /* around staging */
    struct cl_block *staging;    /* for synchronous copies; made at first use */
    struct pm_clock_fit fit;     /* under queue_lock */
    double settle_seconds;       /* seconds to wait after a loss for submitted work to end */
    bool settled;                /* lost, and its work has ended by itself */
    char build_options[96];
    struct pm_str cache;         /* folder of built kernels; empty: none */
};
int pm_cl_queue_create(struct cl_device *d, struct cl_queue *q);
/* idle false: the device hangs, and only host memory is freed. */
void pm_cl_queue_destroy(struct cl_device *d, struct cl_queue *q, bool idle);
/* The result of a call that submits work: 0, or the device is lost and PM_ELOST. */
int pm_cl_submit_result(struct cl_device *d, cl_int r, const char *text);
/* Flushes the queue and adds a submission that ends with `last`, which the queue then owns, also if
 * this fails. *value: the submission's. The caller holds queue_lock. */
int pm_cl_submitted(struct cl_device *d, struct cl_queue *q, cl_event last, uint64_t *value);
/* Waits until the queue's submission `value` has ended. PM_ELOST if the device is lost or hangs. */
int pm_cl_wait(struct cl_device *d, struct cl_queue *q, uint64_t value);
/* Waits for one event and releases it. *status: its execution status, negative if the command
 * failed; the device is then not marked as lost. */
int pm_cl_wait_event(struct cl_device *d, cl_event event, cl_int *status);
/* Waits until nothing runs, also on a lost device, which ends its work by itself. False: the device
 * hangs, and memory that it may still use cannot be freed. */
bool pm_cl_idle(struct cl_device *d);

/* ---- memory_cl.c: buffers and copies ------------------------------------------------ */

enum cl_use { CL_USE_DEVICE, CL_USE_HOST };
struct cl_block {
    cl_mem memory;
    size_t size;
    void *map; /* CL_USE_HOST: memory of the host that the driver can copy from and to */
};
struct cl_buffer {
    struct pm_buffer base;
    struct cl_block block;
};
/* Drivers allocate late, so each block is written once here. PM_EMEMORY comes now and not in a
 * step. */
int pm_cl_block_create(struct cl_device *d, size_t size, enum cl_use use, struct cl_block *out);
void pm_cl_block_destroy(struct cl_device *d, struct cl_block *b);
int pm_cl_buffer_create(struct pm_device *d, size_t size, struct pm_buffer **out);
void pm_cl_buffer_destroy(struct pm_device *d, struct pm_buffer *b);
int pm_cl_buffer_write(struct pm_device *d, struct pm_buffer *b, size_t offset, const void *src,
                       size_t size);
int pm_cl_buffer_read(struct pm_device *d, struct pm_buffer *b, size_t offset, void *dst,
                      size_t size);
int pm_cl_buffer_fill(struct pm_device *d, struct pm_buffer *b, size_t offset, size_t size,
                      uint32_t word);

/* ---- pipelines_cl.c ----------------------------------------------------------------- */

struct cl_pipeline {
    struct pm_pipeline base;
    struct pm_cl_kernel kernel;
    cl_program program;
};
void pm_cl_pipelines_open(struct cl_device *d);
void pm_cl_pipelines_close(struct cl_device *d, bool idle);
uint64_t pm_cl_shaders(const struct pm_device *d);

/* ---- program_cl.c (kernels with arguments), run_cl.c (submitting), clock_cl.c -------- */

struct cl_dispatch {
    cl_kernel kernel;           /* owned; its arguments belong to it; NULL: a call without work */
    size_t global[3], local[3];
    size_t call;
    bool begins, ends;          /* first, last of its call */
};
/* Where an input or output is copied. */
struct cl_copy {
    cl_mem memory;              /* borrowed */
    size_t offset, size;        /* in device memory; size 0: nothing is copied */
    size_t at;                  /* in a slot's block */
    size_t segment;             /* outputs: segment after which it is copied */
    bool transfer;              /* outputs: copied on the transfer queue */
};
/* Times the runs of a slot. The device's stamps are in nanoseconds. */
struct cl_clock {
    cl_event first, last;       /* of the run under way */
    double submitted;           /* host time of the submission */
    double begun, seconds;      /* of the last run: host time of its begin, length */
    cl_event *events;           /* timed: two per call, then the inputs', then each output's */
    uint64_t *stamps;           /* timed: their begins and ends in the last run; 0: none */
    uint64_t start;             /* begin of the last run; 0: the device's stamps are unusable */
};
struct cl_slot {
    struct cl_block in, out;
    uint64_t *value, *transfer_value; /* per segment, of the last run */
    uint64_t done, transfer_done;
    struct cl_clock clock;
    bool busy;
};
struct cl_program {
    struct pm_program base;
    struct cl_device *device;   /* borrowed */
    struct pm_arena *arena;     /* owns everything below except OpenCL's objects */
    struct pm_call_names names;
    struct cl_dispatch *dispatches;
    size_t dispatch_count;
    struct pm_submission *segments; /* begin, end: index into dispatches */
    size_t segment_count;
    struct cl_copy *ins, *outs;
    struct cl_slot *slots;
    int slot_count;
    struct cl_block constants;  /* params that kernels get by address */
    size_t pairs;               /* pairs of events of a timed program; else 0 */
};
int pm_cl_program_create(struct pm_device *d, const struct pm_program_desc *desc,
                         struct pm_program **out);
void pm_cl_program_destroy(struct pm_program *p);
void *pm_cl_program_in(struct pm_program *p, int slot, size_t i);
const void *pm_cl_program_out(struct pm_program *p, int slot, size_t i);
int pm_cl_program_submit(struct pm_program *p, int slot);
int pm_cl_program_wait_out(struct pm_program *p, int slot, size_t i);
int pm_cl_program_wait(struct pm_program *p, int slot);
const char *pm_cl_program_variant(const struct pm_program *p, size_t i);

/* Keeps an event of the run under way for its times. pair: of a timed program, from 0. end: 1 for
 * the last command of the pair. */
void pm_cl_clock_keep(struct cl_program *p, struct cl_clock *c, size_t pair, int end,
                      cl_event event);
/* Reads the times of an ended run and releases its events. */
void pm_cl_clock_read(struct cl_program *p, struct cl_clock *c);
void pm_cl_clock_release(struct cl_program *p, struct cl_clock *c);
double pm_cl_program_seconds(struct pm_program *p, int slot);
double pm_cl_program_begun(struct pm_program *p, int slot);
int pm_cl_program_call_times(struct pm_program *p, int slot, double *begin, double *end);
int pm_cl_program_copy_times(struct pm_program *p, int slot, double *begin, double *end);

#endif
