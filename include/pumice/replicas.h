/* replicas: several processes, on one machine or several, that train one model together. A launcher
 * such as mpirun starts them; each is a rank, 0 .. count - 1. Rank 0 is the chief: it reads the
 * config, and writes the run folder.
 *
 * A thread of its own, the exchange thread, moves all messages. The functions below are called by
 * one other thread, the trainer's. They wait on condition variables, never inside MPI, and say in a
 * warning for whom they wait. If a rank fails, every function of every rank returns the error of
 * that rank.
 *
 * All ranks must call the functions that exchange something in the same order. */
#ifndef PUMICE_REPLICAS_H
#define PUMICE_REPLICAS_H

#include <pumice/base.h>

#include <signal.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pm_replicas;

/* Whether a launcher has started several processes, by its variables: OMPI_COMM_WORLD_SIZE,
 * PMI_SIZE, SLURM_STEP_NUM_TASKS. */
bool pm_replicas_launched(void);
/* Joins the other processes. *out is NULL if pm_replicas_launched is false. Otherwise loads the
 * plug-in libpumice_mpi.so, from the folder of the program, from PM_MPI_PLUGIN=FILE, or from where
 * it was installed. PM_ECONFIG: it is missing, or belongs to another MPI than the launcher's. */
int pm_replicas_join(struct pm_replicas **out);
/* The same through a transport that the caller has (transport.h), with its ctx. For tests. */
struct pm_transport_row;
int pm_replicas_open(const struct pm_transport_row *row, void *ctx, struct pm_replicas **out);
/* Leaves the others and frees *r, which may be NULL. err: what this process ends with; PM_OK: all
 * ranks end in the same way, and the call waits for them. Otherwise the other ranks receive the
 * text of the last error, unless it came from one of them, and the call waits a few seconds until
 * they have it. */
void pm_replicas_leave(struct pm_replicas **r, int err);

/* This process's number, 0 for NULL; the number of processes, 1 for NULL. */
int pm_replicas_rank(const struct pm_replicas *r);
int pm_replicas_count(const struct pm_replicas *r);
/* The name of a rank's host, and how many lower ranks are on the same host. */
const char *pm_replicas_host(const struct pm_replicas *r, int rank);
int pm_replicas_place(const struct pm_replicas *r, int rank);
/* The number of ranks on the host of this rank. */
int pm_replicas_neighbours(const struct pm_replicas *r);

/* ---- what the others are told ------------------------------------------------------------ */

enum pm_replica_phase {
    PM_REPLICA_START, PM_REPLICA_TRAINING, PM_REPLICA_EVALUATION, PM_REPLICA_SAVING, PM_REPLICA_END
};
/* Notes what this rank does, from now on; every second the others receive it. step: of training. */
void pm_replicas_note(struct pm_replicas *r, enum pm_replica_phase phase, uint64_t step);
/* Sets the limits of waiting. hang_seconds: a rank of which nothing was received for so long is
 * lost, PM_ELOST; 0: never. step_seconds: the time of a step, or 0; there is no warning before 20
 * steps' time. */
void pm_replicas_limits(struct pm_replicas *r, double hang_seconds, double step_seconds);
/* For a process that is killed soon after a signal. Once *stop is not 0, a function that waits asks
 * the others what they do. If the rank for which it waits does not answer within `seconds`, that
 * rank is lost: PM_ELOST. If it answers that it must end, too, the function gives up after twice
 * that time: PM_EFAIL (pm_replicas_stopped). Otherwise it waits on. stop is borrowed. */
void pm_replicas_stop_flag(struct pm_replicas *r, const volatile sig_atomic_t *stop,
                           double seconds);

/* Whether the last error of this thread is that of the exchange. *rank: whose failure it was; -1:
 * found by this process. */
bool pm_replicas_failed(struct pm_replicas *r, int *rank);
/* Whether a wait gave up because of the stop flag, with all ranks alive. */
bool pm_replicas_stopped(struct pm_replicas *r);

/* ---- exchange of bytes ------------------------------------------------------------------- */

/* Every rank gives `size` bytes; all receives those of every rank, in the order of ranks. */
int pm_replicas_allgather(struct pm_replicas *r, const void *own, size_t size, void *all);
/* The same for an exchange that every step repeats, and with a size for each rank. sizes[count]: of
 * the ranks' bytes, the same on every rank; a rank of size 0 gives nothing. Nothing is allocated
 * after create. start copies this rank's bytes and begins. wait returns in *all the bytes of all
 * ranks, one after the other, valid until the next start. */
struct pm_replica_gather;
struct pm_replica_gather *pm_replica_gather_create(struct pm_replicas *r, const size_t *sizes);
void pm_replica_gather_destroy(struct pm_replica_gather **g);
void pm_replica_gather_start(struct pm_replica_gather *g, const void *own);
int pm_replica_gather_wait(struct pm_replica_gather *g, const void **all);
/* Rank 0 receives the bytes of every rank, one after the other in *all, which the caller frees with
 * pm_free; on the other ranks *all is NULL. sizes[count]: the number of each rank's bytes. */
int pm_replicas_collect(struct pm_replicas *r, const void *own, size_t size, char **all,
                        size_t *sizes);
/* Copies `size` bytes from rank root to all other ranks. */
int pm_replicas_broadcast(struct pm_replicas *r, int root, void *data, size_t size);
/* The same for bytes of which only root knows how many there are: on the other ranks *data is
 * allocated, with a zero after the last byte, and the caller frees it with pm_free. */
int pm_replicas_broadcast_bytes(struct pm_replicas *r, int root, char **data, size_t *size);
/* Returns the first rank that gives other bytes than rank 0, or -1 if all are equal, in *rank. The
 * text of that rank, of at most 255 bytes, is written to other[256]. All ranks get the same
 * result. */
int pm_replicas_compare(struct pm_replicas *r, const char *text, int *rank, char other[256]);

/* ---- sums of floats ---------------------------------------------------------------------- */

/* A sum over all ranks of arrays of floats, in the order of ranks: ((rank 0 + rank 1) + rank 2) +
 * .... The result has the same bits on every rank, whatever the network and the transport. The
 * array is handed over in ranges, while later ones are still computed. It travels in pieces of 1
 * MiB; each rank adds up one part of a piece and sends the sum to all. Method: reduce-scatter and
 * allgather. Nothing is allocated after pm_replica_sum_create. */
struct pm_replica_sum;
enum pm_replica_wire {
    PM_WIRE_FLOAT32,
    PM_WIRE_BFLOAT16 /* numbers travel as bfloat16, rounded to nearest even, there and back; sums
                      * are float32 */
};
/* count: floats of the whole array. ranges: most calls of pm_replica_sum_add in one sum. */
struct pm_replica_sum *pm_replica_sum_create(struct pm_replicas *r, size_t count, int ranges,
                                             enum pm_replica_wire wire);
void pm_replica_sum_destroy(struct pm_replica_sum **s);
void pm_replica_sum_start(struct pm_replica_sum *s);
/* Hands over this rank's values offset .. offset + count - 1 of the array. They must stay unchanged
 * until pm_replica_sum_wait returns. All ranks hand over the same ranges in the same order; no two
 * overlap. */
void pm_replica_sum_add(struct pm_replica_sum *s, size_t offset, size_t count, const float *from);
/* Waits until all ranges that were handed over are summed. *result[count]: the sums, valid until
 * the next start; values of no range are undefined. */
int pm_replica_sum_wait(struct pm_replica_sum *s, const float **result);
/* The bytes that this rank has sent since the sum was created. */
uint64_t pm_replica_sum_bytes(const struct pm_replica_sum *s);

#ifdef __cplusplus
}
#endif

#endif
