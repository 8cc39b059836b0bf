/* program_cpu: programs of the CPU device: their memory, submission, waits and times. The thread in
 * device_cpu.c runs them. */
#include "device/cpu/device_cpu.h"

#include <pumice/thread.h>

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void pm_cpu_program_destroy(struct pm_program *base)
{
    struct cpu_program *p = prog_of(base);
    size_t slots = (size_t)base->slots;

    if (!pm_cpu_is_idle(cpu_of(base->device)))
        return;
    for (size_t i = 0; i < base->calls_count; i++) {
        if (p->calls[i].args.state)
            p->calls[i].kernel->release(p->calls[i].args.state);
        pm_free((void *)p->calls[i].args.params);
        pm_free(p->calls[i].label);
    }
    for (size_t i = 0; p->host_in && i < slots * base->in_count; i++)
        free(p->host_in[i]);
    for (size_t i = 0; p->host_out && i < slots * base->out_count; i++)
        free(p->host_out[i]);
    pm_free(p->calls);
    pm_free(p->in);
    pm_free(p->out);
    pm_free(p->out_after);
    pm_free(p->host_in);
    pm_free(p->host_out);
    for (size_t i = 0; i < slots; i++)
        pm_free(p->slot[i].times);
    pm_free(p->slot);
    pm_free(p->name);
    pm_free(p);
}

static int bind_call(struct cpu_call *c, const struct pm_bound_call *from)
{
    int err = PM_OK;
    struct pm_buf_spec spec[PM_MAX_BUFS];
    int bufs = pm_kernel_bufs(from->kernel, spec);
    char *params = pm_calloc(1, from->kernel->params_size + 1);

    if (from->kernel->params_size)
        memcpy(params, from->params, from->kernel->params_size);
    c->kernel = from->kernel;
    c->label = pm_strdup(from->label ? from->label : from->kernel->name);
    c->args.params = params;
    c->args.count = from->count;
    for (int i = 0; i < bufs; i++) {
        c->args.buf[i] = address(&from->buf[i]);
        c->args.bytes[i] = from->buf[i].size;
    }
    if (from->kernel->prepare)
        PM_TRY(from->kernel->prepare(params, &c->args.state));
out:
    return err;
}

/* Allocates the host memory of every place, once per slot. The caller frees *out, also after an
 * error. */
static int host_memory(const struct pm_device *d, const struct pm_place *places, size_t count,
                       int slots, void ***out)
{
    void **m = *out = pm_calloc((size_t)slots * count + 1, sizeof *m);
    char want[24];

    for (size_t i = 0; i < (size_t)slots * count; i++) {
        size_t size = (places[i % count].size / CPU_ALIGNMENT + 1) * CPU_ALIGNMENT;

        m[i] = aligned_alloc(CPU_ALIGNMENT, size);
        if (!m[i])
            return pm_fail(
                PM_EMEMORY,
                "%s: no host memory for %s of inputs and outputs; make run.batch_size smaller",
                d->info.address, pm_bytes_text(size, want));
        memset(m[i], 0, size);
    }
    return PM_OK;
}

static void *copy_of(const void *src, size_t size)
{
    void *p = pm_malloc(size + 1);

    if (size)
        memcpy(p, src, size);
    return p;
}

int pm_cpu_program_create(struct pm_device *d, const struct pm_program_desc *desc,
                          struct pm_program **out)
{
    int err = PM_OK;
    struct cpu_program *p = pm_calloc(1, sizeof *p);
    const int threads = pm_threads();

    pm_threads_set(d->info.caps.threads); /* prepare() must see the number of threads that will run
                                           * the call */
    p->base = (struct pm_program){ .device = d, .in_count = desc->in_count,
                                   .out_count = desc->out_count, .slots = desc->slots };
    p->name = pm_strdup(desc->name ? desc->name : "program");
    p->in = copy_of(desc->in, desc->in_count * sizeof *desc->in);
    p->out = copy_of(desc->out, desc->out_count * sizeof *desc->out);
    p->out_after = copy_of(desc->out_after, desc->out_count * sizeof *desc->out_after);
    p->slot = pm_calloc((size_t)desc->slots, sizeof *p->slot);
    for (int i = 0; i < desc->slots && desc->timed; i++)
        p->slot[i].times = pm_calloc(2 * (desc->calls_count + 1 + desc->out_count),
                                     sizeof *p->slot[i].times);
    PM_TRY(host_memory(d, p->in, desc->in_count, desc->slots, &p->host_in));
    PM_TRY(host_memory(d, p->out, desc->out_count, desc->slots, &p->host_out));
    p->calls = pm_calloc(desc->calls_count + 1, sizeof *p->calls);
    for (size_t i = 0; i < desc->calls_count; i++) {
        p->base.calls_count++;
        PM_TRY(bind_call(&p->calls[i], &desc->calls[i]));
    }
    for (size_t i = 0; i < desc->out_count; i++)
        if (desc->out_after[i] > 0)
            p->calls[desc->out_after[i] - 1].announce = true;
    *out = &p->base, p = NULL;
out:
    pm_threads_set(threads);
    if (p)
        pm_cpu_program_destroy(&p->base);
    return err;
}

void *pm_cpu_program_in(struct pm_program *p, int slot, size_t i)
{
    return prog_of(p)->host_in[(size_t)slot * p->in_count + i];
}

const void *pm_cpu_program_out(struct pm_program *p, int slot, size_t i)
{
    return prog_of(p)->host_out[(size_t)slot * p->out_count + i];
}

int pm_cpu_program_submit(struct pm_program *base, int slot)
{
    struct cpu_device *d = cpu_of(base->device);
    struct cpu_program *p = prog_of(base);
    struct pm_timeout timeout;
    int err = PM_OK;

    pm_timeout_start(&timeout, atomic_load(&d->progress));
    pthread_mutex_lock(&d->lock);
    assert(!p->slot[slot].running);
    while (d->tail - d->head == CPU_MAX_JOBS)
        PM_TRY(pm_cpu_wait_change(d, &timeout));
    p->slot[slot].running = true;
    p->slot[slot].calls_done = 0;
    d->jobs[d->tail++ % CPU_MAX_JOBS] = (struct cpu_job){ p, slot };
    pthread_cond_broadcast(&d->changed);
out:
    pthread_mutex_unlock(&d->lock);
    return err;
}

static int wait_calls(struct pm_program *base, int slot, size_t calls)
{
    struct cpu_device *d = cpu_of(base->device);
    struct cpu_slot *s = &prog_of(base)->slot[slot];
    struct pm_timeout timeout;
    int err = PM_OK;

    pm_timeout_start(&timeout, atomic_load(&d->progress));
    pthread_mutex_lock(&d->lock);
    while (err == PM_OK && s->running && s->calls_done < calls)
        err = pm_cpu_wait_change(d, &timeout);
    pthread_mutex_unlock(&d->lock);
    return err;
}

int pm_cpu_program_wait_out(struct pm_program *p, int slot, size_t i)
{
    size_t after = prog_of(p)->out_after[i];

    return wait_calls(p, slot, after ? after : 1);
}

int pm_cpu_program_wait(struct pm_program *p, int slot)
{
    return wait_calls(p, slot, SIZE_MAX);
}

const char *pm_cpu_program_variant(const struct pm_program *p, size_t call)
{
    (void)p, (void)call;
    return "cpu";
}

double pm_cpu_program_seconds(struct pm_program *p, int slot)
{
    return prog_of(p)->slot[slot].seconds;
}

double pm_cpu_program_begun(struct pm_program *p, int slot)
{
    return prog_of(p)->slot[slot].begun;
}

static void program_times(const struct cpu_slot *s, size_t first, size_t count, double *begin,
                          double *end)
{
    for (size_t i = 0; i < count; i++) {
        begin[i] = s->times[2 * (first + i)] - s->begun;
        end[i] = s->times[2 * (first + i) + 1] - s->begun;
    }
}

int pm_cpu_program_call_times(struct pm_program *p, int slot, double *begin, double *end)
{
    program_times(&prog_of(p)->slot[slot], 0, p->calls_count, begin, end);
    return PM_OK;
}

int pm_cpu_program_copy_times(struct pm_program *p, int slot, double *begin, double *end)
{
    program_times(&prog_of(p)->slot[slot], p->calls_count, 1 + p->out_count, begin, end);
    if (p->in_count == 0)
        begin[0] = end[0] = NAN;
    return PM_OK;
}
