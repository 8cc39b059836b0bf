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

#include <pumice/kernel.h>
#include <pumice/options.h>
#include <pumice/tensor_file.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the run folder's lock ------------------------------------------------------------- */

/* One process trains in a folder. The lock (flock on RUN/lock) dies with the process. Makes the
 * folder when needed. PM_EFAIL when held, naming the holder's process id. */
struct pm_run_lock;
int pm_run_lock(const char *run, struct pm_run_lock **out);
void pm_run_unlock(struct pm_run_lock **l);
/* Whether RUN is still the folder that was locked: false as soon as somebody begins to remove it. saved: the
 * run has saved a checkpoint, so RUN/checkpoints must be there, too. True without a lock (NULL). */
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
/* Which checkpoints stay. */
struct pm_keep {
    int newest;         /* this many, >= 1; 0 = all */
    double every_hours; /* and one in every so many hours; 0 = none */
};
/* Saves step `step` (updates done), points `latest` at it and removes what keep does not keep.
 * state: a JSON object's text with the caller's members (config hash, seed, data position, tuning
 * notes); "step", "file" and "sha256" are added to it. No checkpoint that was complete
 * before is touched until the new one is. PM_EFAIL says what failed and which checkpoint is still
 * good; training may go on. Only the holder of the run's lock calls this. RUN itself is not made: when
 * it is not there any more, nothing is left in its place. */
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
/* Finishes a save of `step`, the checkpoint that a run resumes from, that was killed when the
 * checkpoint was complete: removes leftovers, writes RUN/latest, applies keep. Does nothing where a
 * newer checkpoint is there, which must be damaged. Only under the run's lock. PM_EFAIL where a file
 * cannot be written or removed. */
int pm_checkpoint_settle(const char *run, uint64_t step, const struct pm_keep *keep);

/* ---- loading --------------------------------------------------------------------------- */

/* An opened checkpoint; it stays readable when retention removes it meanwhile. */
struct pm_checkpoint {
    char *path;                     /* the tensors' file, owned */
    uint64_t step;                  /* of a foreign file its global_step, or 0 */
    bool has_step;                  /* false: a foreign file that tells none */
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
/* What a tensor is to a net, by its name: a variable (whatever nothing else is), the moving average
 * of one ("NAME/ExponentialMovingAverage"), an optimizer's slot ("NAME/Momentum": what stands below
 * the name of another tensor of the file), or a counter: global_step, powers of Adam's decays, texts
 * that TensorFlow keeps, batch norm's counts of PyTorch. */
enum pm_role { PM_ROLE_VARIABLE, PM_ROLE_AVERAGE, PM_ROLE_SLOT, PM_ROLE_COUNTER };
enum pm_role pm_checkpoint_role(const struct pm_checkpoint *c, const struct pm_file_tensor *t);
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

/* ---- converting ------------------------------------------------------------------------ */

enum pm_convert_to { PM_CONVERT_BY_NAME, PM_CONVERT_SAFETENSORS, PM_CONVERT_TENSORFLOW };
enum pm_convert_keep { PM_CONVERT_ALL, PM_CONVERT_VARIABLES };
enum pm_convert_dtype { PM_CONVERT_SAME, PM_CONVERT_F32 };
struct pm_checkpoint_conversion {
    int to;                           /* enum pm_convert_to */
    struct pm_strings only, exclude;  /* beginnings of names in the source; no `only`: all */
    const char *strip, *prefix;       /* taken off the beginning of names, put before them; or NULL */
    const char *net;                  /* a config's file: PyTorch's names become its net's; or NULL */
    int averages;                     /* enum pm_averages */
    int keep;                         /* enum pm_convert_keep */
    int dtype;                        /* enum pm_convert_dtype */
    bool force;                       /* replaces what is there */
};
extern const struct pm_opt pm_checkpoint_conversion_opts[];
struct pm_converted {
    const char *format;
    size_t tensors;  /* written */
    size_t left_out; /* of the source's */
    size_t texts;    /* of those: texts and other things that are no numbers */
};
/* Writes a checkpoint's tensors to dst, in a format by dst's ending or o->to: a safetensors file, or a
 * TensorFlow V2 checkpoint, whose prefix dst is (with a file `checkpoint` beside it that names it,
 * where there is none). One tensor in memory at a time. TensorFlow's global_step and the step that a
 * safetensors file notes become each other. Whole or not at all; PM_ECONFIG where dst is there
 * (unless force) or is what is read from. */
int pm_checkpoint_convert(struct pm_checkpoint *from, const char *dst,
                          const struct pm_checkpoint_conversion *o, struct pm_converted *out);

#ifdef __cplusplus
}
#endif

#endif
