/* transport: messages between the processes of one training, which are numbered 0 .. ranks - 1.
 *
 * A transport is a row of functions. One is the plug-in libpumice_mpi.so (mpi/transport_mpi.c); the
 * tests have one of threads in one process. Everything above knows no MPI. One thread makes all
 * calls of a transport, open and close included. No function waits, except open and close.
 *
 * Messages between two ranks with the same tag arrive in the order of their sending, and the sizes
 * of a message at both ends are equal. */
#ifndef PM_TRANSPORT_H
#define PM_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>

struct pm_transport; /* a row's private state */

/* Of the row below. A plug-in of another number is refused. */
enum { PM_TRANSPORT_VERSION = 1 };
/* Most messages that are under way at once in one process; most processes. */
enum { PM_MOST_TRANSFERS = 16384, PM_MOST_RANKS = 800 };

struct pm_transport_row {
    int version;      /* PM_TRANSPORT_VERSION */
    const char *name; /* for messages: the library and its version */
    /* Joins the other processes. Returns NULL after a failure; error (`size` bytes) then has one
     * line that says why. ctx: what the caller of the transport was given. */
    struct pm_transport *(*open)(void *ctx, int *rank, int *ranks, char *error, size_t size);
    /* Begin to send or to receive. The bytes belong to the transport until the transfer is
     * finished. Return its number, 0 .. PM_MOST_TRANSFERS - 1, or -1 after a failure. */
    int (*send)(struct pm_transport *t, int to, int tag, const void *data, size_t size);
    int (*receive)(struct pm_transport *t, int from, int tag, void *data, size_t size);
    /* Moves everything that can move. Returns the number of transfers that ended by this call, or
     * -1 after a failure. */
    int (*poll)(struct pm_transport *t);
    /* Whether poll has found the end of this transfer. If so, its number is free again. */
    bool (*finished)(struct pm_transport *t, int transfer);
    /* Describes the last failure; valid until the next call. */
    const char *(*error)(struct pm_transport *t);
    /* Leaves. orderly: all ranks call it with no transfer of data under way, and it waits for them.
     * Otherwise it only frees what can be freed at once. */
    void (*close)(struct pm_transport *t, bool orderly);
};

/* The plug-in exports this symbol. */
#define PM_TRANSPORT_SYMBOL "pumice_transport"

#endif
