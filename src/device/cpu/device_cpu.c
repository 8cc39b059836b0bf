/* device_cpu: the device that loops over the calls.
 *
 * It has its own thread, which runs programs in the order of their submission. Its parallel loops
 * use the clone's share of the cores. A thread cannot be ended from outside. If a call never
 * returns, the device counts as lost, and the thread and all memory that it may use remain. */
#include "device/cpu/device_cpu.h"

#include <pumice/thread.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* ---- running ---------------------------------------------------------------------------- */

static void run_range(void *ctx, size_t begin, size_t end)
{
    const struct cpu_call *c = ctx;

    c->kernel->cpu(&c->args, begin, end);
}

static void run_call(struct cpu_call *c)
{
    if (c->kernel->cpu_all)
        c->kernel->cpu_all(&c->args);
    else
        pm_parallel(c->args.count, c->kernel->grain ? c->kernel->grain : 1024, run_range, c);
}

/* Never returns: imitates a call that never ends, for PM_HANG. */
static void hang(void)
{
    for (;;)
        pause();
}

/* Records the begin (end = 0) or end (1) of a call or copy in a timed program. */
static void take_time(struct cpu_program *p, int slot, size_t pair, int end)
{
    if (p->slot[slot].times)
        p->slot[slot].times[2 * pair + (size_t)end] = pm_seconds();
}

/* Copies outputs as soon as their call is done, so gradient buckets reach the host while the
 * backward pass continues. */
static void copy_outputs(struct cpu_program *p, int slot, size_t done)
{
    for (size_t i = 0; i < p->base.out_count; i++) {
        if (p->out_after[i] != done)
            continue;
        take_time(p, slot, p->base.calls_count + 1 + i, 0);
        memcpy(p->host_out[(size_t)slot * p->base.out_count + i], address(&p->out[i]),
               p->out[i].size);
        take_time(p, slot, p->base.calls_count + 1 + i, 1);
    }
}

static void announce(struct cpu_device *d, struct cpu_program *p, int slot, size_t done, bool end)
{
    pthread_mutex_lock(&d->lock);
    p->slot[slot].calls_done = done;
    if (end) {
        p->slot[slot].running = false;
        d->head++;
    }
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

static void run_program(struct cpu_device *d, struct cpu_program *p, int slot)
{
    struct cpu_slot *s = &p->slot[slot];
    size_t count = p->base.calls_count;
    bool hangs = p->base.is_train && ++d->trains == d->base.options.hang_at;
    double begin = s->begun = pm_seconds();

    atomic_store(&d->at, 0);
    take_time(p, slot, count, 0);
    for (size_t i = 0; i < p->base.in_count; i++)
        memcpy(address(&p->in[i]), p->host_in[(size_t)slot * p->base.in_count + i],
               p->in[i].size);
    take_time(p, slot, count, 1);
    copy_outputs(p, slot, 0);
    for (size_t i = 0; i < count; i++) {
        atomic_store(&d->at, i);
        atomic_fetch_add(&d->progress, 1);
        if (i == count / 2 && hangs)
            hang();
        take_time(p, slot, i, 0);
        run_call(&p->calls[i]);
        take_time(p, slot, i, 1);
        if (!p->calls[i].announce)
            continue;
        copy_outputs(p, slot, i + 1);
        announce(d, p, slot, i + 1, false);
    }
    if (d->base.options.slow > 1)
        usleep((useconds_t)(1e6 * (pm_seconds() - begin) * (d->base.options.slow - 1)));
    s->seconds = pm_seconds() - begin;
    announce(d, p, slot, count, true);
}

static void *work(void *ctx)
{
    struct cpu_device *d = ctx;

    if (d->base.options.threads > 0)
        pm_threads_set(d->base.options.threads);
    pthread_mutex_lock(&d->lock);
    for (;;) {
        struct cpu_job job;

        while (d->head == d->tail && !d->quit)
            pthread_cond_wait(&d->changed, &d->lock);
        if (d->head == d->tail)
            break;
        job = d->jobs[d->head % CPU_MAX_JOBS];
        pthread_mutex_unlock(&d->lock);
        run_program(d, job.program, job.slot);
        pthread_mutex_lock(&d->lock);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* ---- waiting ---------------------------------------------------------------------------- */

static int fail_hung(struct cpu_device *d, double seconds)
{
    const struct cpu_program *p = d->jobs[d->head % CPU_MAX_JOBS].program;
    size_t at = atomic_load(&d->at);

    pm_device_catch(&d->base);
    return pm_fail(PM_ELOST,
                   "%s was lost: no call ended for %.3g seconds (run.hang_seconds=%g); in "
                   "%s, call %zu of %zu, %s (%s)",
                   d->name, seconds, pm_hang_seconds(&d->base), p->name, at + 1,
                   p->base.calls_count, p->base.calls_count ? p->calls[at].label : "copies in",
                   p->base.calls_count ? p->calls[at].kernel->name : "none");
}

/* Waits until something changed. The caller holds the lock. */
int pm_cpu_wait_change(struct cpu_device *d, struct pm_timeout *timeout)
{
    struct timespec until;

    if (atomic_load(&d->base.hung))
        return pm_fail(PM_ELOST, "%s was lost before", d->name);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 200000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_cond_timedwait(&d->changed, &d->lock, &until) != 0 && d->head != d->tail &&
        pm_timeout_passed(timeout, pm_hang_limit(&d->base), atomic_load(&d->progress)))
        return fail_hung(d, timeout->idle);
    return PM_OK;
}

static int wait_idle(struct cpu_device *d)
{
    struct pm_timeout timeout;
    int err = PM_OK;

    pm_timeout_start(&timeout, atomic_load(&d->progress));
    pthread_mutex_lock(&d->lock);
    while (err == PM_OK && d->head != d->tail)
        err = pm_cpu_wait_change(d, &timeout);
    pthread_mutex_unlock(&d->lock);
    return err;
}

/* Waits for all jobs before memory is freed. False: the thread hangs, and memory that it may use
 * must stay. */
bool pm_cpu_is_idle(struct cpu_device *d)
{
    if (!atomic_load(&d->base.hung)) /* if it hangs, keep the earlier error text */
        wait_idle(d);
    return !atomic_load(&d->base.hung);
}

/* ---- memory ----------------------------------------------------------------------------- */

enum { HUGE_PAGE = 2 << 20 };

/* Allocates memory, in pages of 2 MiB if the system has them. A step reads gigabytes, and large
 * pages avoid most address-translation misses. Small pages are only slower. */
static char *large_memory(size_t size)
{
    const size_t unit = size < HUGE_PAGE ? CPU_ALIGNMENT : HUGE_PAGE;
    const size_t rounded = (size + unit - 1) / unit * unit;
    char *memory = aligned_alloc(unit, rounded);

#ifdef MADV_HUGEPAGE
    if (memory && unit == HUGE_PAGE && madvise(memory, rounded, MADV_HUGEPAGE) != 0)
        PM_DEBUG("cpu", "no pages of 2 MiB: %s", strerror(errno));
#endif
    return memory;
}

static int buffer_create(struct pm_device *d, size_t size, struct pm_buffer **out)
{
    struct cpu_buffer *b = pm_calloc(1, sizeof *b);
    char want[24], used[24];

    b->memory = large_memory(size);
    if (!b->memory) {
        pm_free(b);
        return pm_fail(PM_EMEMORY,
                       "%s: no host memory for a buffer of %s: buffers take %s; make "
                       "run.batch_size smaller or raise run.micro_batches",
                       d->info.address, pm_bytes_text(size, want),
                       pm_bytes_text(d->memory_used, used));
    }
    *out = &b->base;
    return PM_OK;
}

static void buffer_destroy(struct pm_device *base, struct pm_buffer *buffer)
{
    struct cpu_device *d = cpu_of(base);
    struct cpu_buffer *b = (struct cpu_buffer *)buffer;

    if (!pm_cpu_is_idle(d)) {
        b->next = d->leaked;
        d->leaked = b;
        return;
    }
    free(b->memory);
    pm_free(b);
}

static int buffer_write(struct pm_device *d, struct pm_buffer *b, size_t offset, const void *src,
                        size_t size)
{
    int err = wait_idle(cpu_of(d));

    if (err == PM_OK)
        memcpy(((struct cpu_buffer *)b)->memory + offset, src, size);
    return err;
}

static int buffer_read(struct pm_device *d, struct pm_buffer *b, size_t offset, void *dst,
                       size_t size)
{
    int err = wait_idle(cpu_of(d));

    if (err == PM_OK)
        memcpy(dst, ((struct cpu_buffer *)b)->memory + offset, size);
    return err;
}

static int buffer_fill(struct pm_device *d, struct pm_buffer *b, size_t offset, size_t size,
                       uint32_t word)
{
    uint32_t *w = (uint32_t *)(void *)(((struct cpu_buffer *)b)->memory + offset);

    int err = wait_idle(cpu_of(d));

    for (size_t i = 0; err == PM_OK && i < size / 4; i++)
        w[i] = word;
    return err;
}

static void *buffer_memory(struct pm_buffer *b)
{
    return ((struct cpu_buffer *)b)->memory;
}

static int call_scratch(const struct pm_device *d, const struct pm_kernel *k, const void *params,
                        size_t count, int level, size_t bytes[PM_MAX_BUFS])
{
    struct pm_buf_spec spec[PM_MAX_BUFS];
    int bufs = pm_kernel_bufs(k, spec);
    const int threads = pm_threads();

    bool failed = false;

    (void)count, (void)level;
    pm_threads_set(d->info.caps.threads);
    for (int i = 0; i < bufs; i++)
        if (spec[i].access == 't' && k->cpu_scratch)
            failed |= (bytes[i] = k->cpu_scratch(params, i)) == SIZE_MAX;
    pm_threads_set(threads);
    return failed ? pm_fail(PM_EFAIL, "%s: %s: %s", d->info.address, k->name, pm_error_text())
                  : PM_OK;
}

/* ---- the device ------------------------------------------------------------------------- */

static void close_device(struct pm_device *base)
{
    struct cpu_device *d = cpu_of(base);

    if (!pm_cpu_is_idle(d)) {
        PM_WARN("cpu", "%s hangs: its thread and memory are freed only at exit", d->name);
        pthread_detach(d->thread);
        return;
    }
    pthread_mutex_lock(&d->lock);
    d->quit = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    pm_free(d);
}

static int call_variant(const struct pm_device *d, const struct pm_kernel *k, const void *params,
                        size_t count, int level, const char **variant)
{
    (void)d, (void)k, (void)params, (void)count;
    if (level == 0)
        *variant = "cpu";
    return PM_OK;
}

static uint64_t no_shaders(const struct pm_device *d)
{
    (void)d;
    return 0;
}

static const struct pm_device_ops ops = {
    .close = close_device,
    .buffer_create = buffer_create,
    .buffer_destroy = buffer_destroy,
    .buffer_write = buffer_write,
    .buffer_read = buffer_read,
    .buffer_fill = buffer_fill,
    .buffer_memory = buffer_memory,
    .program_create = pm_cpu_program_create,
    .program_destroy = pm_cpu_program_destroy,
    .program_in = pm_cpu_program_in,
    .program_out = pm_cpu_program_out,
    .program_submit = pm_cpu_program_submit,
    .program_wait_out = pm_cpu_program_wait_out,
    .program_wait = pm_cpu_program_wait,
    .program_variant = pm_cpu_program_variant,
    .program_seconds = pm_cpu_program_seconds,
    .program_begun = pm_cpu_program_begun,
    .program_call_times = pm_cpu_program_call_times,
    .program_copy_times = pm_cpu_program_copy_times,
    .call_scratch = call_scratch,
    .call_variant = call_variant,
    .shaders = no_shaders,
};

int pm_cpu_open(const struct pm_device_info *info, const struct pm_device_options *options,
                struct pm_device **out)
{
    static _Atomic int opened;
    struct cpu_device *d = pm_calloc(1, sizeof *d);
    int number = ++opened;
    pthread_condattr_t clock;

    snprintf(d->name, sizeof d->name, number > 1 ? "cpu %d" : "cpu", number);
    d->base.ops = &ops;
    d->base.info = *info;
    d->base.options = *options;
    if (options->threads > 0)
        d->base.info.caps.threads = options->threads;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, &clock);
    pthread_condattr_destroy(&clock);
    if (pthread_create(&d->thread, NULL, work, d) != 0) {
        pthread_cond_destroy(&d->changed);
        pthread_mutex_destroy(&d->lock);
        pm_free(d);
        return pm_fail(PM_EDEVICE, "cpu: cannot start a thread");
    }
    *out = &d->base;
    return PM_OK;
}
