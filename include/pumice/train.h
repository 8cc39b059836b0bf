/* train: training, evaluation and the states they save and load, as the commands use them. */
#ifndef PUMICE_TRAIN_H
#define PUMICE_TRAIN_H

#include <pumice/config.h>
#include <pumice/verify.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* What a config can choose from: every net, optimizer and preprocessing, for pm_config_load. The
 * lists are in the arena, which must outlive the configs. */
struct pm_open_sections pm_train_choices(struct pm_arena *a);
/* Trains as the config says, resuming when the run folder holds a checkpoint. Returns PM_OK at
 * run.steps or when a signal stopped it; *signal_number then tells which (0: none) after a checkpoint
 * was written. It catches SIGINT, SIGTERM and, where they are not ignored, SIGHUP and SIGPIPE. summary
 * (may be NULL): members step, loss (with weight decay), l2 (weight decay's part of it), seconds,
 * images_per_second, checkpoint, and eval's last metrics. */
int pm_train(const struct pm_config *c, int *signal_number, struct cJSON *summary);
/* Evaluates one checkpoint in exactly one pass over data.eval_split: members step (null where the
 * checkpoint tells none), count, metrics,
 * per_class (a list of label, name, support, predicted, right, precision, recall, f1; of a segmentation,
 * whose support is in pixels, also iou), checkpoint,
 * averages (whether its moving averages were evaluated), seconds. */
int pm_evaluate(const struct pm_config *c, struct cJSON *report);
/* Keeps a report of pm_evaluate in the folder RUN/eval_SPLIT, for TensorBoard in an event file, which
 * is made where *events is NULL (pm_events_close ends it), and as per_class.csv. Nothing is done where
 * the checkpoint is not the run's own; what cannot be written costs a warning. */
struct pm_events;
void pm_evaluation_keep(const struct pm_config *c, const struct cJSON *report,
                        struct pm_events **events);
/* Runs the net over image files (folders are searched): members images [{file, ...}] and damaged, the
 * number of files that could not be read: a warning each, {file, error} in the list. out: folder for
 * the drawn pictures, or NULL. */
int pm_predict(const struct pm_config *c, const char *const *paths, size_t count, const char *out,
               struct cJSON *report);
/* Writes the net for evaluation, with a checkpoint's values (eval.checkpoint, eval.averages), as an
 * ONNX file; config section export says how. file: its path, or NULL for export.file. report: members
 * file, bytes, data and data_bytes (weights beside it), opset, inputs, outputs (name, type, shape),
 * operators, parameters, labels, checkpoint, step, averages, difference (of the file's outputs for a
 * sample, run on the CPU, over the largest; not there where it was not tried). */
int pm_export_onnx(const struct pm_config *c, const char *file, struct cJSON *report);
/* The memory plan of every clone as the config would train on it, nothing allocated. f: text, with
 * calls every call and value too; NULL for none. clones: array that gets an object each. */
int pm_show_plan(const struct pm_config *c, FILE *f, bool calls, struct cJSON *clones);
/* Builds the config's training net for one example, which finds layers that do not fit. *built: false
 * where neither data nor config say its size and classes, and nothing was tried. */
int pm_check_net(const struct pm_config *c, bool *built);
/* The config's net as a layer list (cJSON_Delete frees it). */
int pm_show_layers(const struct pm_config *c, struct cJSON **out, int64_t *trainable_parameters);

/* Verifies every kernel of the program: verify.h's cases and every optimizer. progress: gets the
 * share that is done, 0..1. */
int pm_verify_all(struct pm_verify *v, void (*progress)(void *ctx, double done), void *ctx);
/* The kernels of the plan that would train the config on one device, at their real shapes. */
int pm_verify_config(struct pm_verify *v, const struct pm_config *c);

#ifdef __cplusplus
}
#endif

#endif
