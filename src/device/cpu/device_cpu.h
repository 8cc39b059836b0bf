/* device_cpu: the private parts of the CPU device, shared by device_cpu.c (thread, memory) and
 * program_cpu.c (programs). */
#ifndef PM_DEVICE_CPU_H
#define PM_DEVICE_CPU_H

#include "device/backend.h"

#include <pthread.h>

enum { CPU_MAX_JOBS = 64, CPU_ALIGNMENT = 256 };

struct cpu_buffer {
    struct pm_buffer base;
    char *memory; /* owned */
    struct cpu_buffer *next; /* next buffer that a hanging thread may still use */
};

struct cpu_call {
    const struct pm_kernel *kernel;
    struct pm_args args; /* params owned */
    char *label;         /* owned; for messages */
    bool announce;       /* an output waits for this call */
};

struct cpu_program {
    struct pm_program base;
    char *name;
    struct cpu_call *calls;
    struct pm_place *in, *out;
    size_t *out_after;
    void **host_in, **host_out; /* [slot * count + i] */
    struct cpu_slot {
        bool running;
        size_t calls_done; /* of the current run */
        double begun, seconds; /* of the last run */
        double *times;     /* timed: begin and end of each call, the copies in, each output */
    } *slot;
};

struct cpu_device {
    struct pm_device base;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a job came, a call finished, or quit was set */
    struct cpu_job {
        struct cpu_program *program;
        int slot;
    } jobs[CPU_MAX_JOBS];
    unsigned head, tail; /* jobs [head, tail) wait or run */
    bool quit;
    struct cpu_buffer *leaked; /* destroyed while the thread hangs: never freed */
    atomic_size_t at;        /* index of the running call in the first job's program */
    atomic_ullong progress;  /* calls begun so far */
    int trains;              /* runs of programs called "train" */
    char name[40];           /* in messages: "cpu"; "cpu 2" for the second one opened */
};

static inline struct cpu_device *cpu_of(struct pm_device *d)
{
    return (struct cpu_device *)d;
}

static inline struct cpu_program *prog_of(const struct pm_program *p)
{
    return (struct cpu_program *)p;
}

static inline char *address(const struct pm_place *p)
{
    return p->buffer ? ((struct cpu_buffer *)p->buffer)->memory + p->offset : NULL;
}

/* Waits until something changed. The caller holds the lock. */
int pm_cpu_wait_change(struct cpu_device *d, struct pm_timeout *timeout);
/* Waits for all jobs. False: the thread hangs, and memory that it may use must stay. */
bool pm_cpu_is_idle(struct cpu_device *d);

int pm_cpu_program_create(struct pm_device *d, const struct pm_program_desc *desc,
                          struct pm_program **out);
void pm_cpu_program_destroy(struct pm_program *base);
void *pm_cpu_program_in(struct pm_program *p, int slot, size_t i);
const void *pm_cpu_program_out(struct pm_program *p, int slot, size_t i);
int pm_cpu_program_submit(struct pm_program *base, int slot);
int pm_cpu_program_wait_out(struct pm_program *p, int slot, size_t i);
int pm_cpu_program_wait(struct pm_program *p, int slot);
const char *pm_cpu_program_variant(const struct pm_program *p, size_t call);
double pm_cpu_program_seconds(struct pm_program *p, int slot);
double pm_cpu_program_begun(struct pm_program *p, int slot);
int pm_cpu_program_call_times(struct pm_program *p, int slot, double *begin, double *end);
int pm_cpu_program_copy_times(struct pm_program *p, int slot, double *begin, double *end);

#endif
