/* mpi_sums: measures MPI's own sums of an array of floats, for comparison with replica_exchange. It
 * has no code of Pumice.
 *
 *     mpi_sums allreduce|iallreduce FLOATS ROUNDS
 *
 * The array is summed in four buckets, as the gradients of a net are: one after the other by
 * MPI_Allreduce, or all at once by MPI_Iallreduce and MPI_Waitall. Rank 0 prints one JSON object:
 * the slowest rank's seconds of each round, and the largest processor time of a rank. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BUCKETS = 4 };

static double clock_seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sum(int at_once, const float *x, float *y, int floats)
{
    MPI_Request request[BUCKETS];
    const int each = floats / BUCKETS;

    for (int i = 0; i < BUCKETS; i++) {
        const int count = i < BUCKETS - 1 ? each : floats - i * each;
        const float *from = x + (size_t)i * (size_t)each;
        float *to = y + (size_t)i * (size_t)each;

        if (at_once)
            MPI_Iallreduce(from, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request[i]);
        else
            MPI_Allreduce(from, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    if (at_once)
        MPI_Waitall(BUCKETS, request, MPI_STATUSES_IGNORE);
}

/* out: seconds and processor time of a round, the largest of all ranks. */
static void measure(int at_once, const float *x, float *y, int floats, double out[2])
{
    double own[2];

    MPI_Barrier(MPI_COMM_WORLD);
    own[0] = clock_seconds(CLOCK_MONOTONIC);
    own[1] = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    sum(at_once, x, y, floats);
    own[0] = clock_seconds(CLOCK_MONOTONIC) - own[0];
    own[1] = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - own[1];
    MPI_Allreduce(own, out, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    const int floats = argc == 4 ? atoi(argv[2]) : 0, rounds = argc == 4 ? atoi(argv[3]) : 0;
    float *x, *y;
    double (*times)[2];
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (floats < 1 || rounds < 1) {
        fprintf(stderr, "usage: mpi_sums allreduce|iallreduce FLOATS ROUNDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    x = calloc((size_t)floats, sizeof *x);
    y = calloc((size_t)floats, sizeof *y);
    times = calloc((size_t)rounds, sizeof *times);
    if (!x || !y || !times)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < floats; i++)
        x[i] = (float)(rank + i % 7);
    for (int i = -1; i < rounds; i++) /* the first round connects the ranks, and is not counted */
        measure(strcmp(argv[1], "iallreduce") == 0, x, y, floats, times[i < 0 ? 0 : i]);
    for (int k = 0; rank == 0 && k < 2; k++) {
        printf("%s", k == 0 ? "{\"seconds\": [" : "], \"cpu\": [");
        for (int i = 0; i < rounds; i++)
            printf("%s%.6f", i ? ", " : "", times[i][k]);
    }
    if (rank == 0)
        printf("], \"ranks\": %d}\n", ranks);
    free(x);
    free(y);
    free(times);
    return MPI_Finalize() != MPI_SUCCESS;
}
