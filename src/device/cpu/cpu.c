/* cpu: the device that loops over the calls. It has one thread of its own, which runs programs in
 * the order of their submission and whose parallel loops use the clone's share of the cores. A thread
 * cannot be ended from outside: when a call never returns, the device counts as lost and the thread
 * stays behind with everything that it may touch. */
#include "device/backend.h"

#include <pumice/thread.h>

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_JOBS = 64, ALIGNMENT = 256 };

struct cpu_buffer {
    struct pm_buffer base;
    char *memory; /* owned */
    struct cpu_buffer *next; /* of those that a hanging thread may still touch */
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
        size_t calls_done; /* of the run under way */
        double begun, seconds; /* of the last run */
        double *times;     /* timed: begin and end of each call, the copies in, each output */
    } *slot;
};

struct cpu_device {
    struct pm_device base;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a job came, a call was finished, quit was set */
    struct cpu_job {
        struct cpu_program *program;
        int slot;
    } jobs[MAX_JOBS];
    unsigned head, tail; /* jobs [head, tail) wait or run */
    bool quit;
    struct cpu_buffer *kept; /* destroyed while the thread hangs: never freed */
    atomic_size_t at;        /* the call that runs, of the first job's program */
    atomic_ullong progress;  /* calls begun so far */
    int trains;              /* runs of programs called "train" */
    char name[40];           /* in messages: "cpu", "cpu 2" for the second one opened */
};

static struct cpu_device *cpu_of(struct pm_device *d)
{
    return (struct cpu_device *)d;
}

static struct cpu_program *prog_of(const struct pm_program *p)
{
    return (struct cpu_program *)p;
}

static char *address(const struct pm_place *p)
{
    return p->buffer ? ((struct cpu_buffer *)p->buffer)->memory + p->offset : NULL;
}

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

/* PM_HANG: what a call that never ends looks like. */
static void hang(void)
{
    for (;;)
        pause();
}

/* The begin (0) or end (1) of something, in a timed program. */
static void take_time(struct cpu_program *p, int slot, size_t pair, int end)
{
    if (p->slot[slot].times)
        p->slot[slot].times[2 * pair + (size_t)end] = pm_seconds();
}

/* Outputs are copied as soon as their call is done, so that gradient buckets reach the host while
 * the backward pass goes on. */
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
        job = d->jobs[d->head % MAX_JOBS];
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
    const struct cpu_program *p = d->jobs[d->head % MAX_JOBS].program;
    size_t at = atomic_load(&d->at);

    atomic_store(&d->base.hung, true);
    atomic_store(&d->base.lost, true);
    return pm_fail(PM_ELOST, "%s was lost: no call ended for %.3g seconds; in %s, call %zu of %zu, "
                   "%s (%s)", d->name, seconds, p->name, at + 1, p->base.calls_count,
                   p->base.calls_count ? p->calls[at].label : "copies in",
                   p->base.calls_count ? p->calls[at].kernel->name : "none");
}

/* Waits, with the lock held, until something changed. */
static int wait_change(struct cpu_device *d, struct pm_patience *patience)
{
    struct timespec until;

    if (atomic_load(&d->base.hung))
        return pm_fail(PM_ELOST, "%s was lost before", d->name);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 200000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_cond_timedwait(&d->changed, &d->lock, &until) != 0 && d->head != d->tail &&
        pm_patience_over(patience, &d->base, atomic_load(&d->progress)))
        return fail_hung(d, patience->idle);
    return PM_OK;
}

static int wait_idle(struct cpu_device *d)
{
    struct pm_patience patience;
    int err = PM_OK;

    pm_patience_start(&patience, atomic_load(&d->progress));
    pthread_mutex_lock(&d->lock);
    while (err == PM_OK && d->head != d->tail)
        err = wait_change(d, &patience);
    pthread_mutex_unlock(&d->lock);
    return err;
}

/* For what destroys: what a thread that was left behind may touch stays. */
static bool is_idle(struct cpu_device *d)
{
    if (!atomic_load(&d->base.hung)) /* else the reason told before stays */
        wait_idle(d);
    return !atomic_load(&d->base.hung);
}

/* ---- memory ----------------------------------------------------------------------------- */

static int buffer_create(struct pm_device *d, size_t size, struct pm_buffer **out)
{
    struct cpu_buffer *b = pm_calloc(1, sizeof *b);
    size_t rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char want[24], used[24];

    b->memory = aligned_alloc(ALIGNMENT, rounded);
    if (!b->memory) {
        pm_free(b);
        return pm_fail(PM_EMEMORY, "%s: no host memory for a buffer of %s: buffers take %s; a "
                       "smaller run.batch_size or more run.micro_batches need less",
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

    if (!is_idle(d)) {
        b->next = d->kept;
        d->kept = b;
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

/* ---- programs --------------------------------------------------------------------------- */

static void program_destroy(struct pm_program *base)
{
    struct cpu_program *p = prog_of(base);
    size_t slots = (size_t)base->slots;

    if (!is_idle(cpu_of(base->device)))
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

/* Host memory of every place, once per slot. *out is to be freed also after an error. */
static int host_memory(const struct pm_device *d, const struct pm_place *places, size_t count,
                       int slots, void ***out)
{
    void **m = *out = pm_calloc((size_t)slots * count + 1, sizeof *m);
    char want[24];

    for (size_t i = 0; i < (size_t)slots * count; i++) {
        size_t size = (places[i % count].size / ALIGNMENT + 1) * ALIGNMENT;

        m[i] = aligned_alloc(ALIGNMENT, size);
        if (!m[i])
            return pm_fail(PM_EMEMORY, "%s: no host memory for %s of inputs and outputs; a smaller "
                           "run.batch_size needs less", d->info.address,
                           pm_bytes_text(size, want));
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

static int program_create(struct pm_device *d, const struct pm_program_desc *desc,
                          struct pm_program **out)
{
    int err = PM_OK;
    struct cpu_program *p = pm_calloc(1, sizeof *p);
    const int threads = pm_threads();

    pm_threads_set(d->info.caps.threads); /* prepare() must see those that will run the call */
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
        program_destroy(&p->base);
    return err;
}

static void *program_in(struct pm_program *p, int slot, size_t i)
{
    return prog_of(p)->host_in[(size_t)slot * p->in_count + i];
}

static const void *program_out(struct pm_program *p, int slot, size_t i)
{
    return prog_of(p)->host_out[(size_t)slot * p->out_count + i];
}

static int program_submit(struct pm_program *base, int slot)
{
    struct cpu_device *d = cpu_of(base->device);
    struct cpu_program *p = prog_of(base);
    struct pm_patience patience;
    int err = PM_OK;

    pm_patience_start(&patience, atomic_load(&d->progress));
    pthread_mutex_lock(&d->lock);
    assert(!p->slot[slot].running);
    while (d->tail - d->head == MAX_JOBS)
        PM_TRY(wait_change(d, &patience));
    p->slot[slot].running = true;
    p->slot[slot].calls_done = 0;
    d->jobs[d->tail++ % MAX_JOBS] = (struct cpu_job){ p, slot };
    pthread_cond_broadcast(&d->changed);
out:
    pthread_mutex_unlock(&d->lock);
    return err;
}

static int wait_calls(struct pm_program *base, int slot, size_t calls)
{
    struct cpu_device *d = cpu_of(base->device);
    struct cpu_slot *s = &prog_of(base)->slot[slot];
    struct pm_patience patience;
    int err = PM_OK;

    pm_patience_start(&patience, atomic_load(&d->progress));
    pthread_mutex_lock(&d->lock);
    while (err == PM_OK && s->running && s->calls_done < calls)
        err = wait_change(d, &patience);
    pthread_mutex_unlock(&d->lock);
    return err;
}

static int program_wait_out(struct pm_program *p, int slot, size_t i)
{
    size_t after = prog_of(p)->out_after[i];

    return wait_calls(p, slot, after ? after : 1);
}

static int program_wait(struct pm_program *p, int slot)
{
    return wait_calls(p, slot, SIZE_MAX);
}

static const char *program_variant(const struct pm_program *p, size_t call)
{
    (void)p, (void)call;
    return "cpu";
}

static double program_seconds(struct pm_program *p, int slot)
{
    return prog_of(p)->slot[slot].seconds;
}

static double program_begun(struct pm_program *p, int slot)
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

static int program_call_times(struct pm_program *p, int slot, double *begin, double *end)
{
    program_times(&prog_of(p)->slot[slot], 0, p->calls_count, begin, end);
    return PM_OK;
}

static int program_copy_times(struct pm_program *p, int slot, double *begin, double *end)
{
    program_times(&prog_of(p)->slot[slot], p->calls_count, 1 + p->out_count, begin, end);
    if (p->in_count == 0)
        begin[0] = end[0] = NAN;
    return PM_OK;
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

    if (!is_idle(d)) {
        PM_WARN("cpu", "%s hangs: its thread and its memory stay until the process ends", d->name);
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
    .program_create = program_create,
    .program_destroy = program_destroy,
    .program_in = program_in,
    .program_out = program_out,
    .program_submit = program_submit,
    .program_wait_out = program_wait_out,
    .program_wait = program_wait,
    .program_variant = program_variant,
    .program_seconds = program_seconds,
    .program_begun = program_begun,
    .program_call_times = program_call_times,
    .program_copy_times = program_copy_times,
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
