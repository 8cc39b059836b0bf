/* trainer: private parts of a training run, used by the files of src/train, and by src/jobs for dry
 * runs and lists of processes. Each part below is written by the one file that its comment names.
 * The other files read it or call that file. */
#ifndef PM_TRAINER_H
#define PM_TRAINER_H

#include "checkpoints/state.h"
#include "clones/balancer.h"
#include "clones/serving.h"
#include "config/config_changes.h"
#include "observers/trace_steps.h"
#include "observers/watch.h"
#include "optim/schedule.h"
#include "train/early_stop.h"
#include "train/evaluator.h"

#include <pumice/replicas.h>

#include <pthread.h>
#include <stdatomic.h>

/* trainer_snapshot.c: a copy in host memory to resume from after a device is lost. */
struct pm_trainer_snapshot {
    struct pm_state *state;
    struct pm_state *spare;     /* receives the next copy: if a device is lost while reading, the
                                 * old copy stays complete */
    uint64_t step;
    uint64_t skipped;           /* damaged records up to its step */
};
/* trainer_write.c: a checkpoint that is being written. */
struct pm_trainer_writing {
    uint64_t step;
    struct pm_str json;         /* its state; owned */
    pthread_t thread;
    bool running;               /* the thread must be joined */
    atomic_bool finished;       /* the thread has ended */
    int err;                    /* its result, and the text of the error */
    char why[1024];
};
/* trainer_loss.c */
struct pm_trainer_losses {
    struct pm_clone_failure failed; /* the clone that could not be made */
    char text[256];             /* devices left out: "devices[1] (vulkan:0) at step 57" */
};
/* trainer_save.c: checkpoints and evaluations. */
struct pm_trainer_saving {
    struct pm_evaluator *evaluator; /* NULL: made at the next evaluation */
    struct cJSON *metrics;      /* owned; of the last evaluation */
    const struct pm_metric_kind *best; /* selects the best checkpoint; NULL: none is kept */
    struct pm_early_stop stop;
    bool stops_early;           /* early_stop ends the training after this step */
    double saved_at, folder_checked_at; /* pm_seconds */
};
/* trainer.c: the loop. trainer_results.c writes loss and decay. */
struct pm_trainer_loop {
    double started_at;          /* pm_seconds */
    double loss, decay;         /* last collected total loss, and the part from weight decay */
    uint64_t skipped;           /* damaged records up to run.step, since the run began */
    uint64_t skipped_at[PM_STEP_SLOTS]; /* the same at each step under way */
    uint64_t *records;          /* [PM_STEP_SLOTS][examples] of their batches, in the training data;
                                 * owned */
    int examples;               /* of this process's batches */
    uint64_t step_before;       /* run.step before the last step */
};
/* trainer_resume.c: what differs from the config of the run in the folder. */
struct pm_trainer_resume {
    struct pm_config_changes changes;
};
/* trainer_open.c: made once. */
struct pm_trainer_start {
    struct pm_sampler sampler;  /* the loader's */
    struct pm_schedule schedule;
    double betas[2];            /* the optimizer's; 0 if it has none */
    uint64_t first_step;
    FILE *log;                  /* log.txt; NULL: cannot be written */
    char *data_json;            /* owned: the data's classes, for checkpoints */
};

/* trainer_replicas.c: training with several processes. */
struct pm_trainer_replicas {
    struct pm_replicas *r;      /* borrowed; NULL: this process trains alone */
    struct pm_replicas *sync;   /* r if the processes make every step together, else NULL */
    int *of_rank;               /* [ranks]: clones of each process; owned */
    double *shares;             /* [count]: of all clones; owned */
    int count, first;           /* of all clones; index of this process's first one */
    const char **names;         /* [count]: of the devices of all clones; in name_text; owned */
    char *name_text;            /* owned */
    char *devices;              /* of all clones, as in checkpoints; owned */
    char *lost;                 /* devices left out, of all processes; owned */
    struct pm_replica_gather *sums; /* of batches; owned */
    double began;                   /* pm_seconds when the step began */
    double step_seconds;            /* of a step: a moving average */
    double waited;              /* seconds of waiting for data, up to the last step */
    bool rewinds;               /* a device was found lost outside of a step */
    int stop;                   /* the signal by which all processes stop; 0: none */
    bool save;                  /* a checkpoint is due by the chief's clock */
    bool heir;                  /* the chief is lost, and this process saves in its place */
};

/* trainer_async.c: asynchronous training, and training with backups. */
struct pm_trainer_async {
    bool on;                    /* of several processes; all others are 0 without it */
    struct pm_servers_link link;
    struct pm_replica_inbox *inbox; /* owned, as the next four */
    struct pm_owner *owner;     /* NULL: this process holds no variables */
    struct pm_serving *serving;
    struct pm_replica_call *tally;   /* requests to the chief, of the trainer's thread */
    struct pm_replica_call *numbers; /* of the loader's threads */
    uint64_t skipped;           /* damaged records before this start */
    bool over;                  /* the chief ends the training */
    bool finished;              /* the chief makes no more steps of its own */
};

struct pm_trainer {
    /* Facts for observers, made by trainer_open.c. Later trainer.c writes step, trainer_results.c
     * collected, and trainer_save.c saved_step and evaluated_step. After a device is lost,
     * trainer_snapshot.c resets the steps, and trainer_loss.c removes its specs. The balancer sets
     * their shares. */
    struct pm_run_facts run;
    struct pm_trainer_start start;
    struct pm_trainer_resume resume;
    struct pm_trainer_loop loop;
    struct pm_trainer_saving saving;
    struct pm_trainer_snapshot snapshot;
    struct pm_trainer_writing writing;
    struct pm_trainer_losses losses;
    struct pm_trainer_replicas replicas;
    struct pm_trainer_async async;
    struct pm_balancer balance;     /* balancer.h */
    struct pm_trace_steps trace;    /* trace_steps.h */
    struct pm_watch *watch;         /* watch.h; owned; quiet if this process is not the chief */
    struct pm_phases phases;        /* of the thread that trains (report.h) */
};

/* ---- trainer_open.c -------------------------------------------------------------------- */

/* Opens the run. Everything except run.c must be zero before. After a failure close must still be
 * called. */
int pm_trainer_open(struct pm_trainer *t);
/* The first part of opening: opens the data, builds the nets, and checks everything that can be
 * checked without writing to the run folder. For a run that is only tried; close must be called. */
int pm_trainer_prepare(struct pm_trainer *t);
void pm_trainer_close(struct pm_trainer *t);
/* Makes devices, nets and plans from run.specs. */
int pm_trainer_clones(struct pm_trainer *t);
/* Starts a loader at run.step; ends the former loader. */
int pm_trainer_loader(struct pm_trainer *t);

/* ---- trainer.c ------------------------------------------------------------------------- */

/* Returns rate, powers and seeds of the update with this number. */
struct pm_step pm_trainer_step_values(const struct pm_trainer *t, uint64_t step);
/* The signal that asks this process to end; 0: none. */
int pm_trainer_signal(void);

/* ---- trainer_resume.c ------------------------------------------------------------------ */

/* Compares the config with the run that has checkpoints in the run folder, if there is one.
 * PM_ECONFIG: it is another run. */
int pm_trainer_check_resume(struct pm_trainer *t);
/* Logs the changes that were found, with which the run resumes at this step, and adds them to
 * run.changes. Does nothing when called again. */
void pm_trainer_note_changes(struct pm_trainer *t, uint64_t step);
/* Writes run.changes into run.json, then config.json. */
int pm_trainer_write_config(const struct pm_trainer *t);
/* Whether a run without a checkpoint has left its files in the folder. */
bool pm_trainer_was_begun(const struct pm_trainer *t);

/* ---- trainer_end.c --------------------------------------------------------------------- */

/* Logs what the finished run did, and the commands that come next. */
void pm_trainer_say_end(const struct pm_trainer *t);

/* ---- trainer_results.c ----------------------------------------------------------------- */

/* Reads the results of the oldest step under way. PM_EFAIL: they are not finite. */
int pm_trainer_collect(struct pm_trainer *t);
/* Logs a step's result, which has been collected. number: of its batch. PM_EFAIL: it is not
 * finite. */
int pm_trainer_result(struct pm_trainer *t, const struct pm_step_result *r, int slot,
                      uint64_t number);
/* Reads the results of all steps under way. */
int pm_trainer_drain(struct pm_trainer *t);

/* ---- trainer_save.c -------------------------------------------------------------------- */

/* Checks that the run folder is still the locked folder. PM_EFAIL: it was removed or replaced. */
int pm_trainer_check_folder(struct pm_trainer *t);
/* Save the step, or evaluate it. Does nothing if this step is already saved or evaluated. A saved
 * file may not be complete yet (pm_trainer_wait_written). */
int pm_trainer_save(struct pm_trainer *t);
int pm_trainer_evaluate(struct pm_trainer *t);
/* Sets saving.stops_early, and what it depends on, in all processes. */
int pm_trainer_agree_end(struct pm_trainer *t);
/* Makes the evaluator if there is none, and brings the variables that it evaluates up to date. */
int pm_trainer_plan_evaluation(struct pm_trainer *t);
/* Returns which checkpoints are kept. */
struct pm_keep pm_trainer_keep(const struct pm_config *c);
/* Writes the state of a checkpoint's .json: seed, batch size, damaged records, devices, losses of
 * devices, loss averages, the data's classes. */
void pm_trainer_state(const struct pm_trainer *t, struct pm_str *json);

/* ---- trainer_write.c ------------------------------------------------------------------- */

/* Writes the snapshot as a checkpoint, or begins to. No write may be running. Sets run.saved_step
 * when the file is complete. */
int pm_trainer_write(struct pm_trainer *t);
/* Waits until the file is complete. Returns the write's result, once. */
int pm_trainer_wait_written(struct pm_trainer *t);
/* The same if the write has ended; else returns PM_OK at once. */
int pm_trainer_check_written(struct pm_trainer *t);

/* ---- trainer_snapshot.c ---------------------------------------------------------------- */

/* Makes empty copies for the values of the current clones. */
void pm_trainer_snapshot_create(struct pm_trainer *t);
void pm_trainer_snapshot_free(struct pm_trainer *t);
/* Copies all values and slots. No step may be under way. */
int pm_trainer_snapshot(struct pm_trainer *t);
/* Copies the snapshot to the clones and sets run.step to the snapshot's. */
int pm_trainer_restore(struct pm_trainer *t);
/* Reads a checkpoint into the snapshot. */
int pm_trainer_snapshot_read(struct pm_trainer *t, const struct pm_checkpoint *from);
/* Reads all of init.checkpoint into the snapshot, for init.restore "all". */
int pm_trainer_snapshot_continue(struct pm_trainer *t);

/* ---- trainer_join.c, trainer_replicas.c, trainer_drift.c ----------------------------------- */

/* The functions do nothing, or return PM_OK, if this process trains alone, except where they say
 * more. */

/* trainer_join.c. Checks the config for so many processes. PM_ECONFIG. */
int pm_trainer_check_replicas(const struct pm_trainer *t);
/* Selects this process's devices, and receives those of the others. PM_ECONFIG. */
int pm_trainer_join_replicas(struct pm_trainer *t);
void pm_trainer_leave_replicas(struct pm_trainer *t);
/* Appends the devices of all clones, for checkpoints: "vulkan:0:0 cpu:2" (address, threads). */
void pm_trainer_list_devices(const struct pm_trainer *t, struct pm_str *out);
/* Receives the devices and shares of all processes. Call it again, in all, after a process has left
 * a device out. */
int pm_trainer_share_devices(struct pm_trainer *t);
/* Compares version, data and variables of all processes. PM_ECONFIG, PM_EDATA. */
int pm_trainer_compare(struct pm_trainer *t);

/* trainer_replicas.c. Whether this process writes the run folder: rank 0, or it trains alone. */
bool pm_trainer_is_chief(const struct pm_trainer *t);
/* If another process has a newer checkpoint in its run folder than the chief, copies it to the
 * chief's. The chief holds the lock of its folder. */
int pm_trainer_fetch_newest(struct pm_trainer *t);
/* Copies the chief's snapshot, which start_values has made, to all processes, and restores it. */
int pm_trainer_share_start(struct pm_trainer *t);
/* Sets the fields of the batch that depend on the parts of all processes (task.h, set_sum). */
int pm_trainer_share_batch(struct pm_trainer *t, struct pm_batch *batch);
/* pm_trainer_write_word sets this process's word for the next step (struct pm_step_word). signal:
 * the signal that the process has received; 0: none. save: a checkpoint is due by its clock.
 * pm_trainer_read_words reads the words of all processes in the last step. */
void pm_trainer_write_word(struct pm_trainer *t, int signal, bool save, const struct pm_batch *b);
void pm_trainer_read_words(struct pm_trainer *t);
/* Replaces *value, of `size` bytes, by the chief's. */
int pm_trainer_agree(struct pm_trainer *t, void *value, size_t size);
/* Sets the phase that the other processes see in their warnings. */
void pm_trainer_note_phase(struct pm_trainer *t, enum pm_replica_phase phase);
void pm_trainer_say_replicas(const struct pm_trainer *t);
/* Updates the mean time of a step that began at replicas.began. */
void pm_trainer_note_time(struct pm_trainer *t);

/* Call it between steps, before work that needs a device. PM_ELOST, in all processes: a device of
 * one of them was lost after its step. */
int pm_trainer_check_devices(struct pm_trainer *t);

/* trainer_drift.c. Compares the snapshots of all processes, which must be of the same step. A
 * snapshot that differs from the chief's causes a warning. The chief's then replaces it, and the
 * values on the devices. */
int pm_trainer_mend_drift(struct pm_trainer *t);
/* For tests: PM_FLIP. Call it after each step. */
int pm_trainer_flip(struct pm_trainer *t);

/* ---- trainer_balance.c ----------------------------------------------------------------- */

/* Reads the shares of an earlier start, or starts a measurement. */
int pm_trainer_start_balance(struct pm_trainer *t);
/* Starts an unfinished measurement again, because the devices have changed. */
void pm_trainer_measure_again(struct pm_trainer *t);
/* Call it after each step. A finished measurement may change the clones' parts: then new clones are
 * made. No step may be under way. */
int pm_trainer_balance(struct pm_trainer *t);

/* ---- trainer_mode.c -------------------------------------------------------------------- */

/* Sets the mode and the roles of the processes. Call it first. */
void pm_trainer_choose_mode(struct pm_trainer *t);
/* Checks the config for the mode. PM_ECONFIG. */
int pm_trainer_check_mode(const struct pm_trainer *t);
/* The number of clones that share run.batch_size. Call it after pm_trainer_join_replicas. */
int pm_trainer_clones_of_step(const struct pm_trainer *t);
/* The gradients that each process adds up for one update of synchronous training
 * (run.replicas_to_aggregate). */
int pm_trainer_gradients(const struct pm_trainer *t);
/* The examples of a batch of this process, or of all if they make every step together. */
int pm_trainer_batch(const struct pm_trainer *t);
/* Whether this process trains asynchronously, or with backups, and is not the chief: it then runs
 * pm_trainer_async_work instead of the loop; whether it only holds variables. */
bool pm_trainer_goes_alone(const struct pm_trainer *t);
bool pm_trainer_only_serves(const struct pm_trainer *t);
void pm_trainer_say_async(const struct pm_trainer *t);

/* ---- trainer_async.c ------------------------------------------------------------------- */

/* pm_trainer_async_open: before the clones are made; pm_trainer_async_begin: after they have their
 * values; pm_trainer_open_server replaces both, and the clones, in a process that only holds
 * variables. pm_trainer_async_close: before, _leave: after the clones are destroyed. */
void pm_trainer_async_open(struct pm_trainer *t);
int pm_trainer_async_begin(struct pm_trainer *t);
int pm_trainer_open_server(struct pm_trainer *t);
void pm_trainer_async_close(struct pm_trainer *t);
void pm_trainer_async_leave(struct pm_trainer *t);
/* pm_loader_options.draw; trainer: struct pm_trainer. */
bool pm_trainer_draw(void *trainer, uint64_t *step);
/* A step of the chief: run.step becomes the count of all updates. Without a batch it waits for
 * updates of others. */
int pm_trainer_async_step(struct pm_trainer *t);
/* Takes a snapshot unless the last one is of run.step. */
int pm_trainer_async_fresh(struct pm_trainer *t);
/* Of the chief: waits until all workers have ended their last steps. Then ends the training of all
 * processes. */
int pm_trainer_async_wait(struct pm_trainer *t);
int pm_trainer_async_end(struct pm_trainer *t);
/* What all other processes do: train or serve until the end. */
int pm_trainer_async_work(struct pm_trainer *t);
/* Sets staleness, or dropped gradients, of the updates since the last call. */
void pm_trainer_note_updates(struct pm_trainer *t, struct pm_watched_step *s);
/* Saves the last snapshot after a failure of another process. */
int pm_trainer_async_survive(struct pm_trainer *t);

/* ---- trainer_loss.c -------------------------------------------------------------------- */

/* Whether the step that failed with PM_ELOST can be repeated: a device is lost, not a process. */
bool pm_trainer_rewinds(const struct pm_trainer *t);
/* Returns the devices left out, as a text; "": none. */
const char *pm_trainer_lost(const struct pm_trainer *t);
/* With several processes, all call it with the result of making their clones. Returns err. If it is
 * PM_OK, but another process must try again, frees the clones and returns PM_ELOST. */
int pm_trainer_vote(struct pm_trainer *t, int err);
/* Call it after PM_ELOST. Opens the devices again, without the lost one if necessary. Then calls
 * `again` (makes clones, values, and everything that depends on them) until it does not fail with a
 * lost device. */
int pm_trainer_recover(struct pm_trainer *t, int (*again)(struct pm_trainer *t));

#endif
