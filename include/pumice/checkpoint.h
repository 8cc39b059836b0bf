/* checkpoint: saving, loading and converting the state of a training run.
 *
 *     RUN/checkpoints/step-000123.safetensors   variables, slots, averages, under TensorFlow's
 *                                               names
 *     RUN/checkpoints/step-000123.json          step, file, sha256 of it, and the caller's state
 *     RUN/checkpoints/best-000100.*             the best checkpoint by a metric, with best.json
 *     RUN/checkpoints/keep.json                 checkpoints that the every-N-hours rule keeps
 *     RUN/latest                                "checkpoints/step-000123.safetensors\n"
 *
 * Each file is written under a temporary name, synced and renamed; the tensors come before the
 * .json that names them. A checkpoint is complete if its .json exists and the sha256 matches. If
 * the process dies, the next start finds the newest complete checkpoint. */
#ifndef PUMICE_CHECKPOINT_H
#define PUMICE_CHECKPOINT_H

#include <pumice/kernel.h>
#include <pumice/options.h>
#include <pumice/tensor_file.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the run folder's lock ------------------------------------------------------------- */

/* Locks a run folder: only one process may train in it. The kernel releases the lock (flock on
 * RUN/lock) when the process ends. Creates the folder if needed. PM_EFAIL if another process holds
 * the lock; the message has its process id. */
struct pm_run_lock;
int pm_run_lock(const char *run, struct pm_run_lock **out);
void pm_run_unlock(struct pm_run_lock **l);
/* Whether RUN is still the folder that was locked: false as soon as somebody starts to remove it.
 * saved: the run has saved a checkpoint, so RUN/checkpoints must exist, too. True without a lock
 * (NULL). */
bool pm_run_lock_holds(const struct pm_run_lock *l, bool saved);
/* Whether a process trains in the folder now. */
bool pm_run_is_locked(const char *run);

/* ---- saving ---------------------------------------------------------------------------- */

/* A tensor on the host, float32. name and data are borrowed. */
struct pm_state_tensor {
    const char *name;
    struct pm_shape shape;
    float *data;
};
/* Which checkpoints are kept. */
struct pm_keep {
    int newest;         /* number of newest checkpoints, >= 1; 0 = all */
    double every_hours; /* also one in each interval of so many hours; 0 = none */
};
/* Notes (metadata) of a checkpoint's file: the decays of Adam's two averages. Absent with other
 * optimizers. */
#define PM_BETA1_NOTE "beta1"
#define PM_BETA2_NOTE "beta2"
/* Saves a checkpoint of `step` (number of updates), points `latest` at it, and removes the
 * checkpoints that `keep` does not keep. state: the text of a JSON object with the caller's members
 * (config hash, seed, data position, tuning notes); "step", "file" and "sha256" are added. A member
 * "betas", two numbers, is also noted in the file of the tensors. Earlier
 * checkpoints are not touched until the new one is complete. PM_EFAIL names the failure and the
 * newest good checkpoint; training may continue. The caller must hold the run's lock. RUN itself is
 * not created: if it was removed, nothing is written. */
int pm_checkpoint_save(const char *run, uint64_t step, const struct pm_state_tensor *tensors,
                       size_t count, const char *state, const struct pm_keep *keep);
/* Call after an evaluation of the saved step. If value is better than that in best.json, or the
 * metric has changed, the checkpoint becomes best-NNNNNN and the old best is removed. A value
 * that is not finite is better than no checkpoint only. *is_best may be NULL. */
int pm_checkpoint_keep_best(const char *run, uint64_t step, const char *metric, double value,
                            bool higher_is_better, bool *is_best);
/* Removes remains of killed saves: temporary files, and tensor files without a .json. The caller
 * must hold the run's lock. pm_checkpoint_save calls this first. */
int pm_checkpoint_clean(const char *run);
/* Completes the save of `step`, from which a run resumes, if the process was killed after the
 * checkpoint was complete: removes remains, writes RUN/latest, applies `keep`. Does nothing if a
 * newer checkpoint exists (which must be damaged). The caller must hold the run's lock. PM_EFAIL if
 * a file cannot be written or removed. */
int pm_checkpoint_settle(const char *run, uint64_t step, const struct pm_keep *keep);

/* ---- loading --------------------------------------------------------------------------- */

/* An open checkpoint. It stays readable if it is removed meanwhile. */
struct pm_checkpoint {
    char *path;                     /* file of the tensors, owned */
    uint64_t step;                  /* for a foreign file its global_step, or 0 */
    bool has_step;                  /* false: a foreign file without a step */
    char *state;                    /* text of the .json, owned; NULL for a foreign file */
    struct pm_tensor_file *tensors; /* owned */
};
/* Opens the newest complete checkpoint of a run folder and checks its sha256. Damaged checkpoints
 * are skipped with a warning. *out is NULL, and PM_OK is returned, if the folder has no checkpoint.
 * PM_EDATA if all are damaged. */
int pm_checkpoint_open_newest(const char *run, struct pm_checkpoint **out);
/* Opens the checkpoint that `value` selects: NULL, "" or "latest" (the newest complete one of run),
 * "best", a step number, the folder of another run (its newest), or a path that pm_tensor_file_open
 * accepts: a file, a folder, a TensorFlow prefix. run may be NULL if value is a path. where: place
 * for messages ("x.json: eval.checkpoint"). PM_EDATA if there is none; the message lists the
 * existing ones. */
int pm_checkpoint_open(const char *run, const char *value, const char *where,
                       struct pm_checkpoint **out);
void pm_checkpoint_close(struct pm_checkpoint **c);
/* The role of a tensor, from its name: the moving average of a variable
 * ("NAME/ExponentialMovingAverage"), an optimizer slot ("NAME/Momentum": below the name of another
 * tensor of the file), a counter (global_step, powers of Adam's decays, TensorFlow's texts,
 * PyTorch's counts of batch norm), or else a variable. */
enum pm_role { PM_ROLE_VARIABLE, PM_ROLE_AVERAGE, PM_ROLE_SLOT, PM_ROLE_COUNTER };
enum pm_role pm_checkpoint_role(const struct pm_checkpoint *c, const struct pm_file_tensor *t);
/* Number of tensors that are moving averages of variables. */
size_t pm_checkpoint_averages(const struct pm_checkpoint *c);
/* The newest step that has a .json, without checking the checkpoint. It is cheap, for polling a
 * run. -1 if there is none. */
int64_t pm_checkpoint_newest_step(const char *run);
/* Whether a tensor can be read with this shape: the shapes are equal, or differ only by leading
 * dimensions of 1 (a fully connected layer's [c, k] and [1, 1, c, k]). */
bool pm_checkpoint_fits(const struct pm_file_tensor *t, struct pm_shape shape);
/* Reads a tensor as float32 with this shape. PM_EDATA if the shape does not fit (the message has
 * both shapes) or the tensor is missing (the message has the nearest name). */
int pm_checkpoint_read(const struct pm_checkpoint *c, const char *name, struct pm_shape shape,
                       float *data);
/* Whether the tensor exists. *shape (may be NULL): its shape; rank -1 if it has more than 4
 * dimensions. */
bool pm_checkpoint_has(const struct pm_checkpoint *c, const char *name, struct pm_shape *shape);

/* ---- converting ------------------------------------------------------------------------ */

enum pm_convert_to { PM_CONVERT_BY_NAME, PM_CONVERT_SAFETENSORS, PM_CONVERT_TENSORFLOW };
enum pm_convert_keep { PM_CONVERT_ALL, PM_CONVERT_VARIABLES };
enum pm_convert_names { PM_CONVERT_NAMES_SAME, PM_CONVERT_NAMES_SLIM, PM_CONVERT_NAMES_TRAINER };
enum pm_convert_dtype { PM_CONVERT_SAME, PM_CONVERT_F32 };
struct pm_checkpoint_conversion {
    int to;                           /* enum pm_convert_to */
    struct pm_strings only, exclude;  /* prefixes of names in the source; empty `only`: all */
    const char *strip, *prefix;       /* prefix to remove from names, prefix to add; or NULL */
    const char *net;             /* config file: PyTorch's names become those of its net; or NULL */
    int names;    /* enum pm_convert_names: changed after net and before only and exclude */
    int averages;                     /* enum pm_averages */
    int keep;                         /* enum pm_convert_keep */
    int dtype;                        /* enum pm_convert_dtype */
    bool force;                       /* replace existing files */
};
extern const struct pm_opt pm_checkpoint_conversion_opts[];
struct pm_converted {
    const char *format;
    size_t tensors;  /* written */
    size_t left_out; /* tensors of the source that were not written */
    size_t texts;    /* of these, texts and other values that are not numbers */
};
/* Writes the tensors of a checkpoint to dst. o->to, or the ending of dst, selects the format: a
 * safetensors file, or a TensorFlow V2 checkpoint with the prefix dst (and a file `checkpoint`
 * beside it, unless one exists). One tensor is in memory at a time. TensorFlow's global_step and
 * the step in the metadata of a safetensors file are converted to each other. The output appears
 * complete or not at all. PM_ECONFIG if dst exists (unless force) or is the source. */
int pm_checkpoint_convert(struct pm_checkpoint *from, const char *dst,
                          const struct pm_checkpoint_conversion *o, struct pm_converted *out);

#ifdef __cplusplus
}
#endif

#endif
