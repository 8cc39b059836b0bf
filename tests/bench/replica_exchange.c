/* replica_exchange: measures the exchange of gradients alone, without a net. bench_replicas.py
 * starts it through mpirun.
 *
 *     replica_exchange float32|bfloat16 FLOATS ROUNDS WAIT
 *
 * Each round is one sum over all ranks. The ranks begin it together. Some sums are compared with
 * the right ones. Then the last rank comes WAIT seconds late to one more round, and all ranks do
 * nothing for WAIT seconds. WAIT 0: neither is measured. Rank 0 prints one JSON object:
 *
 *     seconds   of each round: the slowest rank's
 *     cpu       seconds of processor time of the exchange thread in each round: the largest
 *     waiting   processor time of rank 0's exchange thread while the last rank is late, per second
 *     idle      the same while there is nothing to exchange */
#include "replicas/replicas_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct times {
    double seconds, cpu;
};

/* A value of a rank: eighths below 32, so that every sum is exact in float32. */
static float value(int rank, size_t i)
{
    return (float)((i * 2654435761u + (size_t)rank * 40503u) % 257) / 8;
}

static double thread_seconds(const struct pm_replicas *r)
{
    struct timespec t = { 0 };
    clockid_t clock;

    if (pthread_getcpuclockid(r->thread, &clock) == 0)
        clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void nap(double seconds)
{
    const double whole = floor(seconds);

    nanosleep(&(struct timespec){ (time_t)whole, (long)(1e9 * (seconds - whole)) }, NULL);
}

/* Waits until all ranks are here. */
static int meet(struct pm_replicas *r)
{
    char *all = pm_calloc((size_t)r->count, 1);
    const int err = pm_replicas_allgather(r, "", 1, all);

    pm_free(all);
    return err;
}

static int exchange(struct pm_replica_sum *s, size_t floats, const float *x, const float **sums)
{
    pm_replica_sum_start(s);
    pm_replica_sum_add(s, 0, floats, x);
    return pm_replica_sum_wait(s, sums);
}

/* Measures a round; *out: the largest times of all ranks. */
static int measure(struct pm_replicas *r, struct pm_replica_sum *s, size_t floats, const float *x,
                   const float **sums, struct times *out)
{
    struct times own, *all = pm_calloc((size_t)r->count, sizeof *all);
    double begun, cpu;
    int err = PM_OK;

    PM_TRY(meet(r));
    begun = pm_seconds();
    cpu = thread_seconds(r);
    PM_TRY(exchange(s, floats, x, sums));
    own = (struct times){ pm_seconds() - begun, thread_seconds(r) - cpu };
    PM_TRY(pm_replicas_allgather(r, &own, sizeof own, all));
    *out = own;
    for (int i = 0; i < r->count; i++) {
        out->seconds = fmax(out->seconds, all[i].seconds);
        out->cpu = fmax(out->cpu, all[i].cpu);
    }
out:
    pm_free(all);
    return err;
}

/* bfloat16 has 8 bits of precision: rounding changes a number by at most 1/257 of it. The values,
 * none of which is negative, and the sum are rounded: (258/257)^2 < 1 + 1/128. */
static int check_sums(const struct pm_replicas *r, size_t floats, const float *sums, bool rounded)
{
    for (size_t i = 0; i < floats; i += 997) {
        float right = 0;

        for (int k = 0; k < r->count; k++)
            right += value(k, i);
        if (!(fabsf(sums[i] - right) <= (rounded ? right / 128 : 0)))
            return pm_fail(PM_EFAIL, "sum %zu is %g, right is %g", i, (double)sums[i],
                           (double)right);
    }
    return PM_OK;
}

/* Returns the processor time per second while the last rank is late, and while all are idle. */
static int measure_waits(struct pm_replicas *r, struct pm_replica_sum *s, size_t floats,
                         const float *x, double seconds, double *waiting, double *idle)
{
    const float *sums;
    double cpu;
    int err = PM_OK;

    PM_TRY(meet(r));
    if (r->rank == r->count - 1) {
        nap(seconds);
        PM_TRY(exchange(s, floats, x, &sums));
    } else {
        pm_replica_sum_start(s);
        pm_replica_sum_add(s, 0, floats, x);
        nap(0.1 * seconds); /* the first messages are sent */
        cpu = thread_seconds(r);
        nap(0.8 * seconds);
        *waiting = (thread_seconds(r) - cpu) / (0.8 * seconds);
        PM_TRY(pm_replica_sum_wait(s, &sums));
    }
    PM_TRY(meet(r));
    cpu = thread_seconds(r);
    nap(seconds);
    *idle = (thread_seconds(r) - cpu) / seconds;
    PM_TRY(meet(r));
out:
    return err;
}

static void print(const struct pm_replicas *r, const struct times *times, int rounds,
                  double waiting, double idle)
{
    printf("{\"ranks\": %d, \"seconds\": [", r->count);
    for (int i = 0; i < rounds; i++)
        printf("%s%.6f", i ? ", " : "", times[i].seconds);
    printf("], \"cpu\": [");
    for (int i = 0; i < rounds; i++)
        printf("%s%.6f", i ? ", " : "", times[i].cpu);
    printf("], \"waiting\": %.6f, \"idle\": %.6f}\n", waiting, idle);
}

static int run(struct pm_replicas *r, enum pm_replica_wire wire, size_t floats, int rounds,
               double wait)
{
    struct pm_replica_sum *s = pm_replica_sum_create(r, floats, 1, wire, NULL);
    float *x = pm_calloc(floats, sizeof *x);
    struct times *times = pm_calloc((size_t)rounds, sizeof *times);
    const float *sums = NULL;
    double waiting = 0, idle = 0;
    int err = PM_OK;

    for (size_t i = 0; i < floats; i++)
        x[i] = value(r->rank, i);
    for (int i = -1; i < rounds; i++) /* the first round connects the ranks, and is not counted */
        PM_TRY(measure(r, s, floats, x, &sums, &times[i < 0 ? 0 : i]));
    PM_TRY(check_sums(r, floats, sums, wire == PM_WIRE_BFLOAT16));
    if (wait > 0)
        PM_TRY(measure_waits(r, s, floats, x, wait, &waiting, &idle));
    if (r->rank == 0)
        print(r, times, rounds, waiting, idle);
out:
    pm_replica_sum_destroy(&s);
    pm_free(times);
    pm_free(x);
    return err;
}

int main(int argc, char **argv)
{
    struct pm_replicas *r = NULL;
    int err = PM_OK;

    if (argc != 5 || strtoull(argv[2], NULL, 10) == 0 || atoi(argv[3]) < 1) {
        fprintf(stderr, "usage: replica_exchange float32|bfloat16 FLOATS ROUNDS WAIT\n");
        return 2;
    }
    PM_TRY(pm_replicas_join(&r));
    if (!r)
        PM_TRY(pm_fail(PM_ECONFIG, "no launcher has started several processes: use mpirun"));
    err = run(r, strcmp(argv[1], "bfloat16") == 0 ? PM_WIRE_BFLOAT16 : PM_WIRE_FLOAT32,
              (size_t)strtoull(argv[2], NULL, 10), atoi(argv[3]), atof(argv[4]));
out:
    err = pm_replicas_leave(&r, err);
    if (err < 0)
        fprintf(stderr, "replica_exchange: %s\n", pm_error_text());
    return err < 0;
}
