/* backend: the functions that a device's implementation provides. device.c checks arguments, then
 * calls them. Only src/device/ includes this file. */
#ifndef PM_BACKEND_H
#define PM_BACKEND_H

#include <pumice/device.h>

#include <stdatomic.h>

struct pm_device_ops {
    void (*close)(struct pm_device *d); /* frees d */
    int (*buffer_create)(struct pm_device *d, size_t size, struct pm_buffer **out);
    void (*buffer_destroy)(struct pm_device *d, struct pm_buffer *b);
    int (*buffer_write)(struct pm_device *d, struct pm_buffer *b, size_t offset, const void *src,
                        size_t size);
    int (*buffer_read)(struct pm_device *d, struct pm_buffer *b, size_t offset, void *dst,
                       size_t size);
    int (*buffer_fill)(struct pm_device *d, struct pm_buffer *b, size_t offset, size_t size,
                       uint32_t word);
    void *(*buffer_memory)(struct pm_buffer *b); /* NULL: it is not host memory */
    int (*program_create)(struct pm_device *d, const struct pm_program_desc *desc,
                          struct pm_program **out);
    void (*program_destroy)(struct pm_program *p);
    void *(*program_in)(struct pm_program *p, int slot, size_t i);
    const void *(*program_out)(struct pm_program *p, int slot, size_t i);
    int (*program_submit)(struct pm_program *p, int slot);
    int (*program_wait_out)(struct pm_program *p, int slot, size_t i);
    int (*program_wait)(struct pm_program *p, int slot);
    /* NULL: the device runs no shaders, so only bytes are counted. */
    int (*program_count)(struct pm_device *d, const struct pm_program_desc *desc,
                         struct pm_counts *out);
    const char *(*program_variant)(const struct pm_program *p, size_t call);
    double (*program_seconds)(struct pm_program *p, int slot);
    double (*program_begun)(struct pm_program *p, int slot);
    int (*program_call_times)(struct pm_program *p, int slot, double *begin, double *end);
    int (*program_copy_times)(struct pm_program *p, int slot, double *begin, double *end);
    /* Scratch bytes of a call at pick level `level`. */
    int (*call_scratch)(const struct pm_device *d, const struct pm_kernel *k, const void *params,
                        size_t count, int level, size_t bytes[PM_MAX_BUFS]);
    int (*call_variant)(const struct pm_device *d, const struct pm_kernel *k, const void *params,
                        size_t count, int level, const char **variant);
    uint64_t (*shaders)(const struct pm_device *d);
};

/* A kernel's variant that the device does not run. */
struct pm_avoided {
    char *kernel, *variant; /* owned */
};

/* First member of a backend's own device, buffer and program structs. */
struct pm_device {
    const struct pm_device_ops *ops;
    struct pm_device_info info;
    struct pm_device_options options;
    uint64_t memory_used; /* bytes of buffers alive; kept by device.c */
    atomic_bool lost;     /* set by device.c when a call fails with PM_ELOST, or earlier */
    atomic_bool hung;     /* work may still run: memory that it may use is not freed */
    atomic_bool caught;   /* see pm_device_caught; set by pm_device_catch */
    _Atomic double longest; /* seconds of the longest run so far; kept by device.c */
    int trains;           /* runs of programs called "train", for options.lose_at, lose_after */
    struct pm_timeline *timeline; /* kept by timeline.c */
    struct pm_avoided *avoided; /* owned, kept by backend.c */
    size_t avoided_count, avoided_capacity;
};
/* Marks the device so that pm_device_caught, pm_device_hung and pm_device_lost return true. */
void pm_device_catch(struct pm_device *d);
/* Fails with PM_ELOST if the device was lost before. */
int pm_device_alive(const struct pm_device *d);
bool pm_device_avoids(const struct pm_device *d, const char *kernel, const char *variant);
struct pm_buffer {
    size_t size;
};
struct pm_program {
    struct pm_device *device; /* borrowed */
    size_t in_count, out_count, calls_count;
    int slots;
    bool timed;
    bool is_train; /* a training step, by its name */
    struct pm_timeline_names *names; /* kept by timeline.c */
    struct pm_counts counts; /* set by the backend if it has program_count, else by device.c */
};

/* A timeout for work without progress. Time during which the process was stopped or the machine
 * slept counts little, because each call adds at most one second. */
struct pm_timeout {
    uint64_t seen;       /* progress, as the backend counts it */
    double called, idle; /* pm_seconds of the last call; seconds without progress */
};
void pm_timeout_start(struct pm_timeout *p, uint64_t progress);
/* Whether there was no progress for more than limit seconds. Call it at least once per second. */
bool pm_timeout_passed(struct pm_timeout *p, double limit, uint64_t progress);
/* Returns options.hang_seconds, or its default. */
double pm_hang_seconds(const struct pm_device *d);
/* Returns the timeout of a wait for the device's work, in seconds: hang_seconds, or 20 times its
 * longest run so far if that is more. */
double pm_hang_limit(const struct pm_device *d);

/* ---- timeline.c: what devices add to a trace -------------------------------------------- */

void pm_timeline_device(struct pm_device *d); /* call it after d is opened */
void pm_timeline_close(struct pm_device *d);
/* Call it after p is created. */
void pm_timeline_program(struct pm_program *p, const struct pm_program_desc *desc);
void pm_timeline_destroy(struct pm_program *p);
void pm_timeline_submit(struct pm_program *p, int slot);
/* Adds the spans of the slot's finished run to the trace, once. */
void pm_timeline_wait(struct pm_program *p, int slot);

/* ---- backends --------------------------------------------------------------------------- */

/* Describes the CPU, which always exists. */
void pm_cpu_info(struct pm_device_info *out);
int pm_cpu_open(const struct pm_device_info *info, const struct pm_device_options *options,
                struct pm_device **out);
/* Appends Vulkan devices to *list (grown with pm_realloc). A missing driver is not an error. */
int pm_vulkan_list(struct pm_device_info **list, size_t *count);
/* Returns why the list got no Vulkan device: the loader or a driver is missing. */
const char *pm_vulkan_absence(void);
int pm_vulkan_open(const struct pm_device_info *info, const struct pm_device_options *options,
                   struct pm_device **out);
uint64_t pm_vulkan_messages(void);
/* Appends OpenCL devices. A GPU that a usable device of the list offers, too, is marked as
 * unusable. */
int pm_opencl_list(struct pm_device_info **list, size_t *count);
/* Returns why the list got no OpenCL device. */
const char *pm_opencl_absence(void);
int pm_opencl_open(const struct pm_device_info *info, const struct pm_device_options *options,
                   struct pm_device **out);
/* Marks GPUs of list[others..count-1], OpenCL's, that another entry offers, too. */
void pm_opencl_hide_doubles(struct pm_device_info *list, size_t others, size_t count);

#endif
