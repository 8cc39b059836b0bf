/* Parallel loops. This file holds the program's only OpenMP pragma. The thread sanitizer does not
 * know OpenMP's barriers, so under PUMICE_NO_OPENMP the same loop runs on POSIX threads.
 *
 * A loop inside a loop runs on its own thread alone: the outer loop already uses the cores. */
#include <pumice/base.h>
#include <pumice/thread.h>

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum { MOST_THREADS = 256 };

static _Thread_local int threads;    /* 0 = not set: the machine's number */
static _Thread_local bool in_worker; /* this thread is inside a loop's body */

static int machine_threads(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    int wanted = text ? atoi(text) : 0;
    cpu_set_t set;

    if (wanted > 0)
        return wanted;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    return 1;
}

void pm_threads_set(int count)
{
    threads = count < 1 ? 1 : count > MOST_THREADS ? MOST_THREADS : count;
}

int pm_threads(void)
{
    if (threads == 0)
        pm_threads_set(machine_threads());
    return threads;
}

struct loop {
    void (*fn)(void *ctx, size_t begin, size_t end);
    void *ctx;
    size_t count, grain, blocks;
    int parts;
};

static void run_part(const struct loop *l, int part)
{
    size_t first = l->blocks * (size_t)part / (size_t)l->parts;
    size_t last = l->blocks * ((size_t)part + 1) / (size_t)l->parts;
    size_t end = last * l->grain < l->count ? last * l->grain : l->count;

    in_worker = true;
    l->fn(l->ctx, first * l->grain, end);
    in_worker = false;
}

#ifdef PUMICE_NO_OPENMP

struct part {
    pthread_t thread;
    const struct loop *loop;
    int index;
    bool started;
};

static void *part_thread(void *arg)
{
    const struct part *p = arg;

    run_part(p->loop, p->index);
    return NULL;
}

static void run_parts(const struct loop *l)
{
    struct part parts[MOST_THREADS];

    for (int i = 1; i < l->parts; i++) {
        parts[i] = (struct part){ .loop = l, .index = i };
        parts[i].started = pthread_create(&parts[i].thread, NULL, part_thread, &parts[i]) == 0;
    }
    run_part(l, 0);
    for (int i = 1; i < l->parts; i++) {
        if (parts[i].started)
            pthread_join(parts[i].thread, NULL);
        else
            run_part(l, i);
    }
}

#else

static void run_parts(const struct loop *l)
{
#pragma omp parallel for schedule(static, 1) num_threads(l->parts)
    for (int i = 0; i < l->parts; i++)
        run_part(l, i);
}

#endif

void pm_parallel(size_t count, size_t grain, void (*fn)(void *ctx, size_t begin, size_t end),
                 void *ctx)
{
    assert(grain >= 1);
    size_t blocks = count / grain + (count % grain != 0);
    size_t parts = in_worker ? 1 : (size_t)pm_threads();

    if (count == 0)
        return;
    if (parts > blocks)
        parts = blocks;
    if (parts == 1) {
        fn(ctx, 0, count);
        return;
    }
    const struct loop l = { fn, ctx, count, grain, blocks, (int)parts };
    run_parts(&l);
}
