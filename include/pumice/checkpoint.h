/* checkpoint: a run folder's saved states.
 *
 *     RUN/checkpoints/step-000123.safetensors   variables, slots, averages, under TensorFlow's names
 *     RUN/checkpoints/step-000123.json          step, file, sha256 of it, and the caller's state
 *     RUN/checkpoints/best-000100.*             the best one by a metric, with best.json
 *     RUN/checkpoints/keep.json                 which ones the every-N-hours rule keeps
 *     RUN/latest                                "checkpoints/step-000123.safetensors\n"
 *
 * Each file is written under a temporary name, synced and renamed, the tensors before the .json that
 * names them: a checkpoint is complete when its .json is there and the sha256 fits. Whenever the
 * process dies, the newest complete one is found. */
#ifndef PUMICE_CHECKPOINT_H
#define PUMICE_CHECKPOINT_H

#include <pumice/tensor_file.h>
#include <pumice/kernel.h>

/* ---- the run folder's lock ------------------------------------------------------------- */

/* One process trains in a folder. The lock (flock on RUN/lock) dies with the process. Makes the
 * folder when needed. PM_EFAIL when held, naming the holder's process id. */
struct pm_run_lock;
int pm_run_lock(const char *run, struct pm_run_lock **out);
void pm_run_unlock(struct pm_run_lock **l);
/* Whether a process trains in the folder now. */
bool pm_run_is_locked(const char *run);

/* ---- saving ---------------------------------------------------------------------------- */

/* A tensor on the host, float32. name and data are borrowed. */
struct pm_state_tensor {
    const char *name;
    struct pm_shape shape;
    float *data;
};
/* Which checkpoints stay. */
struct pm_keep {
    int newest;         /* this many, >= 1; 0 = all */
    double every_hours; /* and one in every so many hours; 0 = none */
};
/* Saves step `step` (updates done), points `latest` at it and removes what keep does not keep.
 * state: a JSON object's text with the caller's members (config hash, seed, data position, tuning
 * notes); "step", "file" and "sha256" are added to it. No checkpoint that was complete
 * before is touched until the new one is. PM_EFAIL says what failed and which checkpoint is still
 * good; training may go on. Only the holder of the run's lock calls this. */
int pm_checkpoint_save(const char *run, uint64_t step, const struct pm_state_tensor *tensors,
                       size_t count, const char *state, const struct pm_keep *keep);
/* After an evaluation of the saved step: when value (finite) is better than the one remembered in
 * best.json, or the metric is another one, the checkpoint becomes best-NNNNNN and the former best is
 * removed. *is_best may be NULL. */
int pm_checkpoint_keep_best(const char *run, uint64_t step, const char *metric, double value,
                            bool higher_is_better, bool *is_best);
/* Removes leftovers of killed saves: temporary files, tensors that no .json names. Only under the
 * run's lock; pm_checkpoint_save begins with it. */
int pm_checkpoint_clean(const char *run);

/* ---- loading --------------------------------------------------------------------------- */

/* An opened checkpoint; it stays readable when retention removes it meanwhile. */
struct pm_checkpoint {
    char *path;                     /* the tensors' file, owned */
    uint64_t step;                  /* of a foreign file its global_step, or 0 */
    char *state;                    /* the .json's text, owned; NULL for a foreign file */
    struct pm_tensor_file *tensors; /* owned */
};
/* The newest complete one of a run folder: sha256 checked; damaged ones are passed over with a
 * warning each. *out is NULL (and PM_OK returned) when the folder holds no checkpoint at all;
 * PM_EDATA when all it holds are damaged. */
int pm_checkpoint_open_newest(const char *run, struct pm_checkpoint **out);
/* What a user means by value: NULL, "" or "latest" (newest complete of run), "best", a step's number,
 * another run's folder (its newest), or tensors of any format as pm_tensor_file_open takes them: a
 * file, a folder, a TensorFlow prefix. run may be NULL when value is a path.
 * where: place for messages ("x.json: eval.checkpoint"). None is PM_EDATA, listing what there is. */
int pm_checkpoint_open(const char *run, const char *value, const char *where,
                       struct pm_checkpoint **out);
void pm_checkpoint_close(struct pm_checkpoint **c);
/* How many of its tensors are moving averages of variables. */
size_t pm_checkpoint_averages(const struct pm_checkpoint *c);
/* Newest step with a .json, unchecked: cheap, for watching a run. -1 when there is none. */
int64_t pm_checkpoint_newest_step(const char *run);
/* Whether a tensor can be read as this shape: it is the same, or would be without leading dimensions
 * of 1 (a fully connected layer's [c, k] and [1, 1, c, k]), so that the elements are the same. */
bool pm_checkpoint_fits(const struct pm_file_tensor *t, struct pm_shape shape);
/* Reads a tensor as float32 of this shape, which it fits; PM_EDATA naming file, tensor and both
 * shapes, or the nearest name when it is absent. */
int pm_checkpoint_read(const struct pm_checkpoint *c, const char *name, struct pm_shape shape,
                       float *data);
/* Whether it is there; *shape (may be NULL) gets its shape, rank -1 when beyond rank 4. */
bool pm_checkpoint_has(const struct pm_checkpoint *c, const char *name, struct pm_shape *shape);

#endif
