/* replicas: several processes, on one machine or several, that train one model together. A launcher
 * such as mpirun starts them. Each process is a rank, 0 .. count - 1. Rank 0 is the chief: it reads
 * the config and writes the run folder.
 *
 * The exchange thread moves all messages. One other thread, the trainer's, calls the functions
 * below. They wait on condition variables, never inside MPI. After a long wait, a warning names the
 * rank that is late. If a rank fails, every function of every rank returns that rank's error.
 *
 * All ranks must call the functions that exchange something in the same order. Requests are the
 * exception: any thread of any rank sends them at any time. */
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
/* This process's number by the launcher's variables, and its number among the processes of its
 * host. For messages before pm_replicas_join. 0: no variable states it. */
int pm_replicas_launched_rank(void);
int pm_replicas_launched_place(void);
/* Joins the other processes. *out is NULL if pm_replicas_launched is false. Otherwise loads the
 * plug-in libpumice_mpi.so, from the folder of the program, from PM_MPI_PLUGIN=FILE, or from where
 * it was installed. PM_ECONFIG: it is missing, or belongs to another MPI than the launcher's. */
int pm_replicas_join(struct pm_replicas **out);
/* The same through a transport that the caller has (transport.h), with its ctx. For tests. */
struct pm_transport_row;
int pm_replicas_open(const struct pm_transport_row *row, void *ctx, struct pm_replicas **out);
/* Leaves the other processes and frees *r, which may be NULL. err: this process's result. PM_OK:
 * the call waits until all ranks leave. An error: the other ranks receive the text of the last
 * error, unless one of them has sent it, and the call waits for at most 5 s. Returns err; if
 * that is PM_OK, the error of another rank that failed meanwhile. */
int pm_replicas_leave(struct pm_replicas **r, int err);

/* This process's number, 0 for NULL; the number of processes, 1 for NULL. */
int pm_replicas_rank(const struct pm_replicas *r);
int pm_replicas_count(const struct pm_replicas *r);
/* The name of a rank's host. */
const char *pm_replicas_host(const struct pm_replicas *r, int rank);
/* Writes the name of this machine; "unknown" if it has none. */
void pm_replicas_host_name(char *out, size_t size);
/* Whether mpirun has bound this process to fewer cores than it could have. *cores: the number of
 * cores that this process may use; *of: that mpirun itself may use, on this host. */
bool pm_replicas_bound(int *cores, int *of);

/* Bytes that this process has sent to others so far. Any thread may call it. */
uint64_t pm_replicas_sent(const struct pm_replicas *r);

/* ---- states ------------------------------------------------------------------------------ */

/* Each rank sends its state to all other ranks once a second. Functions of this part accept
 * NULL. */
enum pm_replica_phase {
    PM_REPLICA_START, PM_REPLICA_TRAINING, PM_REPLICA_EVALUATION, PM_REPLICA_SAVING
};
/* Sets this rank's state: its phase, and its training step. */
void pm_replicas_note(struct pm_replicas *r, enum pm_replica_phase phase, uint64_t step);
/* Sets the limits of waiting. A rank that sends nothing for hang_seconds is lost, PM_ELOST; 0: no
 * limit. step_seconds: the time of a training step; a warning comes after 10 s at least, and after
 * the time of 20 steps. */
void pm_replicas_limits(struct pm_replicas *r, double hang_seconds, double step_seconds);
/* Launchers kill a process soon after a signal. Sets the flag that shows such a signal. While *stop
 * is not 0, a function that waits for a rank asks for its state. No answer within `seconds`: the
 * rank is lost, PM_ELOST. The answer that the rank received a signal, too: the function waits twice
 * as long and then fails, PM_EFAIL (pm_replicas_stopped). Any other answer: it continues to wait.
 * stop is borrowed. */
void pm_replicas_stop_flag(struct pm_replicas *r, const volatile sig_atomic_t *stop,
                           double seconds);

/* Whether the last error of this thread came from a function of this header. *rank: the rank that
 * failed; -1: this process found the failure. */
bool pm_replicas_failed(struct pm_replicas *r, int *rank);
/* Whether the failed rank sent nothing, so its process, its host or the network is down. False: it
 * sent its error. */
bool pm_replicas_silent(struct pm_replicas *r);
/* Whether a wait failed because of the stop flag although all ranks are alive. */
bool pm_replicas_stopped(struct pm_replicas *r);

/* ---- exchange of bytes ------------------------------------------------------------------- */

/* Every rank gives `size` bytes; all receives those of every rank, in the order of ranks. */
int pm_replicas_allgather(struct pm_replicas *r, const void *own, size_t size, void *all);
/* An allgather that is repeated in every step. sizes[count]: the number of bytes that each rank
 * gives, may be 0; the same array on every rank. Nothing is allocated after create. start copies
 * this rank's bytes and begins the exchange. wait ends it: *all is the bytes of all ranks, one
 * after the other, valid until the next start. */
struct pm_replica_gather;
struct pm_replica_gather *pm_replica_gather_create(struct pm_replicas *r, const size_t *sizes);
void pm_replica_gather_destroy(struct pm_replica_gather **g);
void pm_replica_gather_start(struct pm_replica_gather *g, const void *own);
int pm_replica_gather_wait(struct pm_replica_gather *g, const void **all);
/* The same once, for bytes whose number the other ranks do not know. *all: the bytes of all ranks,
 * one after the other; free it with pm_free. sizes[count] receives their numbers. to_all false:
 * only rank 0 receives the bytes, and *all is NULL on the other ranks. */
int pm_replicas_gather_bytes(struct pm_replicas *r, bool to_all, const void *own, size_t size,
                             char **all, size_t *sizes);
/* Copies `size` bytes from rank root to all other ranks. */
int pm_replicas_broadcast(struct pm_replicas *r, int root, void *data, size_t size);
/* The same for bytes whose number only root knows. On the other ranks, *data is allocated, with a
 * zero after the last byte. Free it with pm_free. */
int pm_replicas_broadcast_bytes(struct pm_replicas *r, int root, char **data, size_t *size);
/* Compares a text of each rank, up to its first 255 bytes. *rank: the first rank whose text differs
 * from that of rank 0; -1: all are equal. out: the texts of rank 0 and of that rank. All ranks get
 * the same result. */
enum { PM_REPLICA_TEXT = 256 };
struct pm_replica_texts {
    char first[PM_REPLICA_TEXT], other[PM_REPLICA_TEXT];
};
int pm_replicas_compare(struct pm_replicas *r, const char *text, int *rank,
                        struct pm_replica_texts *out);

/* The connection of two ranks. */
struct pm_replica_link {
    double latency;          /* seconds that a message of 8 bytes takes */
    double bytes_per_second; /* of messages of 4 MiB, one direction at a time */
};
/* Measures the connection of ranks a and b, a != b, while the others wait. All ranks call it, and
 * all get the result. It takes about 0.5 s, or six messages of 4 MiB on a slow network. */
int pm_replicas_measure(struct pm_replicas *r, int a, int b, struct pm_replica_link *out);

/* ---- sums of floats ---------------------------------------------------------------------- */

/* A sum of arrays of floats over all ranks, in the order of ranks: ((rank 0 + rank 1) + rank 2) +
 * .... The result has the same bits on every rank, with every network and transport. The caller
 * adds the array in ranges, so that an exchange can begin while later ranges are computed. Method:
 * reduce-scatter and allgather, in pieces of 1 MiB. Nothing is allocated after
 * pm_replica_sum_create. */
struct pm_replica_sum;
enum pm_replica_wire {
    PM_WIRE_FLOAT32,
    PM_WIRE_BFLOAT16 /* values and sums are sent as bfloat16, rounded to nearest even; additions are
                      * in float32 */
};
/* count: floats of the whole array. ranges: most calls of pm_replica_sum_add in one sum. result
 * [count]: borrowed memory for the sums; give what owns it to pm_replicas_release, because after a
 * failure messages may still arrive in it. NULL: memory of its own. */
struct pm_replica_sum *pm_replica_sum_create(struct pm_replicas *r, size_t count, int ranges,
                                             enum pm_replica_wire wire, float *result);
void pm_replica_sum_destroy(struct pm_replica_sum **s);
void pm_replica_sum_start(struct pm_replica_sum *s);
/* Adds this rank's values of the range offset .. offset + count - 1. They must not change until
 * pm_replica_sum_wait returns, and must not lie in the result. All ranks add the same ranges in the
 * same order. Ranges do not overlap. */
void pm_replica_sum_add(struct pm_replica_sum *s, size_t offset, size_t count, const float *from);
/* Waits until all ranges are summed. (*result)[count]: the sums, valid until the next start.
 * Elements outside of all ranges are undefined. */
int pm_replica_sum_wait(struct pm_replica_sum *s, const float **result);
/* Calls release(object), which frees memory that messages have used. After a failure it is called
 * by pm_replicas_close. */
void pm_replicas_release(struct pm_replicas *r, void (*release)(void *), void *object);

/* ---- requests ---------------------------------------------------------------------------- */

/* A rank sends a request to one rank, which replies. So ranks exchange something although they do
 * not take the same steps. A request has a kind, a few bytes (its word), and data of any size; a
 * reply has a word and data. A rank can also send requests to itself.
 *
 * Each rank has one inbox, for the requests that it receives. Requests are sent on lines: on each
 * line, a rank has at most one request to each rank under way, and requests of different lines
 * overtake each other. Memory grows to the largest message and is then used again. */
enum { PM_REPLICA_LINES = 2, PM_REPLICA_WORD = 112 };
struct pm_replica_inbox;
/* A request that has arrived. `data` is valid until its reply. */
struct pm_replica_request {
    int rank, line; /* of the sender */
    unsigned kind;  /* above 0 */
    char word[PM_REPLICA_WORD];
    const char *data;
    size_t size;
};
/* Begins to receive. senders: requests come from the ranks 0 .. senders - 1, and from higher ones;
 * pm_replica_inbox_take waits only for the end of the former. All ranks create an inbox. */
struct pm_replica_inbox *pm_replica_inbox_create(struct pm_replicas *r, int senders);
/* Call it after the last pm_replica_inbox_take. Before pm_replica_inbox_end, it counts as a failure
 * of this process. */
void pm_replica_inbox_destroy(struct pm_replica_inbox **i);
/* Takes the request that arrived first among those for which may(ctx, request) is true (NULL: all);
 * waits for one. *over is true, and *out is unset, if all senders have ended and no request is
 * left, or after pm_replica_inbox_close. A request may be replied to after others were taken. One
 * thread, not necessarily the trainer's, takes and replies. */
int pm_replica_inbox_take(struct pm_replica_inbox *i,
                          bool (*may)(void *ctx, const struct pm_replica_request *q), void *ctx,
                          struct pm_replica_request *out, bool *over);
/* Returns `size` bytes to be filled with the data of the reply. */
void *pm_replica_inbox_space(struct pm_replica_inbox *i, const struct pm_replica_request *q,
                             size_t size);
/* Sends the reply. word: `bytes` bytes, at most PM_REPLICA_WORD. The data is that of the last
 * pm_replica_inbox_space for this request, or nothing. */
void pm_replica_inbox_reply(struct pm_replica_inbox *i, const struct pm_replica_request *q,
                            const void *word, size_t bytes);
/* Makes pm_replica_inbox_take return, because this process fails. For any thread. */
void pm_replica_inbox_close(struct pm_replica_inbox *i);
/* Records a failure that the thread which takes requests found: its error text is that of this
 * process. */
void pm_replica_inbox_fail(struct pm_replica_inbox *i, int err);
/* Ends this rank's requests, and waits until every rank has ended its own. */
int pm_replica_inbox_end(struct pm_replica_inbox *i);

/* A place for requests to one rank on one line. Destroy it before this rank's inbox. */
struct pm_replica_call;
struct pm_replica_call *pm_replica_call_create(struct pm_replica_inbox *own, int to, int line);
void pm_replica_call_destroy(struct pm_replica_call **c);
/* Returns `size` bytes to be filled with the data of the next request. */
void *pm_replica_call_space(struct pm_replica_call *c, size_t size);
/* Sends a request; its data is that of pm_replica_call_space since the last start. word: `bytes`
 * bytes, at most PM_REPLICA_WORD. */
void pm_replica_call_start(struct pm_replica_call *c, unsigned kind, const void *word,
                           size_t bytes);
/* Waits for the reply. word receives its first `bytes` bytes. *data (may be NULL): the reply's
 * data, *size bytes, valid until the next start. */
int pm_replica_call_wait(struct pm_replica_call *c, void *word, size_t bytes, const char **data,
                         size_t *size);
/* Waits until done(ctx, rank) returns true. It may set *rank to a rank that the warning after a
 * long wait names; it is called often, from the calling thread, and must not call functions of this
 * header. For any thread. */
int pm_replicas_until(struct pm_replicas *r, bool (*done)(void *ctx, int *rank), void *ctx);

#ifdef __cplusplus
}
#endif

#endif
