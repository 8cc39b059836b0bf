/* transport_mpi: the transport through MPI 3.1, as a shared library that Pumice opens when a
 * launcher has started several processes. It uses no function of Pumice. Only one thread calls it,
 * so MPI_THREAD_FUNNELED is enough. */
#include "replicas/transport.h"

#include <limits.h>
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pm_transport {
    MPI_Comm comm;                           /* a copy of MPI_COMM_WORLD; its errors return */
    MPI_Request request[PM_MOST_TRANSFERS];  /* MPI_REQUEST_NULL: finished, or free */
    bool used[PM_MOST_TRANSFERS];
    int unused[PM_MOST_TRANSFERS], unused_count; /* numbers that are free; the last is next */
    int most;                                /* numbers at and above were never used */
    int done[PM_MOST_TRANSFERS];             /* of MPI_Testsome */
    char error[MPI_MAX_ERROR_STRING + 64];
};

static int fail(struct pm_transport *t, const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "unknown error";
    int length = 0;

    if (code == MPI_SUCCESS)
        return 0;
    MPI_Error_string(code, text, &length);
    snprintf(t->error, sizeof t->error, "%s: %s", call, text);
    return -1;
}

/* Settings of Open MPI's TCP, unless the user has set them. Measured with 105 MB both ways at
 * 1 Gbit/s, where plain sockets take 0.88 s.
 *
 * Two connections for each pair of processes: with one, Open MPI moves large messages in turns, one
 * direction after the other (buckets sent whole: 1.8 s instead of 1.0 s).
 *
 * Messages of up to 576 KiB are sent at once; a part of a piece has at most 512 KiB. Open MPI asks
 * the receiver first if a message is larger than 64 KiB, and the question and its answer wait
 * behind other messages (0.99 s instead of 0.89 s). */
static void prepare_environment(void)
{
    static const char *const largest[] = { "eager_limit", "rndv_eager_limit", "max_send_size" };

    setenv("OMPI_MCA_btl_tcp_links", "2", 0);
    for (size_t i = 0; i < sizeof largest / sizeof *largest; i++) {
        char name[64];

        snprintf(name, sizeof name, "OMPI_MCA_btl_tcp_%s", largest[i]);
        setenv(name, "589824", 0);
    }
}

static struct pm_transport *open_mpi(void *ctx, int *rank, int *ranks, char *error, size_t size)
{
    struct pm_transport *t = calloc(1, sizeof *t);
    int given = 0, code;

    (void)ctx;
    if (!t) {
        snprintf(error, size, "out of memory");
        return NULL;
    }
    prepare_environment();
    code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_dup(MPI_COMM_WORLD, &t->comm);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_set_errhandler(t->comm, MPI_ERRORS_RETURN);
    if (code != MPI_SUCCESS || given < MPI_THREAD_FUNNELED) {
        snprintf(error, size, "MPI_Init_thread failed (code %d, threads %d)", code, given);
        free(t);
        return NULL;
    }
    MPI_Comm_rank(t->comm, rank);
    MPI_Comm_size(t->comm, ranks);
    for (int i = 0; i < PM_MOST_TRANSFERS; i++) {
        t->request[i] = MPI_REQUEST_NULL;
        t->unused[i] = PM_MOST_TRANSFERS - 1 - i;
    }
    t->unused_count = PM_MOST_TRANSFERS;
    return t;
}

/* MPI counts the bytes of a message in an int. */
static int take(struct pm_transport *t, size_t size)
{
    int i;

    if (size > INT_MAX) {
        snprintf(t->error, sizeof t->error, "a message of %zu bytes is too long", size);
        return -1;
    }
    if (t->unused_count == 0) {
        snprintf(t->error, sizeof t->error, "more than %d messages are under way",
                 PM_MOST_TRANSFERS);
        return -1;
    }
    i = t->unused[--t->unused_count];
    t->used[i] = true;
    if (i >= t->most)
        t->most = i + 1;
    return i;
}

static void give_back(struct pm_transport *t, int i)
{
    t->used[i] = false;
    t->unused[t->unused_count++] = i;
}

static int started(struct pm_transport *t, int i, const char *call, int code)
{
    if (code == MPI_SUCCESS)
        return i;
    give_back(t, i);
    return fail(t, call, code);
}

static int send_mpi(struct pm_transport *t, int to, int tag, const void *data, size_t size)
{
    const int i = take(t, size);

    if (i < 0)
        return -1;
    return started(t, i, "MPI_Isend",
                   MPI_Isend(data, (int)size, MPI_BYTE, to, tag, t->comm, &t->request[i]));
}

static int receive_mpi(struct pm_transport *t, int from, int tag, void *data, size_t size)
{
    const int i = take(t, size);

    if (i < 0)
        return -1;
    return started(t, i, "MPI_Irecv",
                   MPI_Irecv(data, (int)size, MPI_BYTE, from, tag, t->comm, &t->request[i]));
}

static int poll_mpi(struct pm_transport *t)
{
    int count = 0, code;

    code = MPI_Testsome(t->most, t->request, &count, t->done, MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS)
        return fail(t, "MPI_Testsome", code);
    return count == MPI_UNDEFINED ? 0 : count;
}

static bool finished_mpi(struct pm_transport *t, int i)
{
    if (!t->used[i] || t->request[i] != MPI_REQUEST_NULL)
        return false;
    give_back(t, i);
    return true;
}

static const char *error_mpi(struct pm_transport *t)
{
    return t->error;
}

/* MPI_Finalize waits for every process, so it is not called when one may be gone. */
static void close_mpi(struct pm_transport *t, bool orderly)
{
    if (orderly) {
        for (int i = 0; i < t->most; i++)
            if (t->request[i] != MPI_REQUEST_NULL) {
                MPI_Cancel(&t->request[i]);
                MPI_Request_free(&t->request[i]);
            }
        MPI_Comm_free(&t->comm);
        MPI_Finalize();
    }
    free(t);
}

extern const struct pm_transport_row pumice_transport;
__attribute__((visibility("default"))) const struct pm_transport_row pumice_transport = {
    .version = PM_TRANSPORT_VERSION,
#ifdef OMPI_MAJOR_VERSION
    .name = "Open MPI",
#else
    .name = "MPI",
#endif
    .open = open_mpi, .send = send_mpi, .receive = receive_mpi, .poll = poll_mpi,
    .finished = finished_mpi, .error = error_mpi, .close = close_mpi,
};
