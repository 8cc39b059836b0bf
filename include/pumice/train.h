/* train: the functions behind the commands: train, evaluate, predict, export, show, verify. */
#ifndef PUMICE_TRAIN_H
#define PUMICE_TRAIN_H

#include <pumice/config.h>
#include <pumice/verify.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;
struct pm_replicas;

/* The names that a config can use: all nets, optimizers and preprocessings, for pm_config_load. The
 * lists are in the arena, which must outlive the configs. */
struct pm_open_sections pm_train_choices(struct pm_arena *a);
/* Replaces run.batch_size "auto" by a number and logs it: the number in run.folder's config.json if
 * the folder has one, else the largest batch of run.micro_batches times a power of two that fits
 * the memory of all devices and of the host, and is not above the number of training pictures. Call
 * it before every function below that trains or plans a training; these refuse "auto". Does nothing
 * if the batch is a number, or if the data is not there and the config does not state the classes.
 * Built-in data (data.make) is drawn. PM_EMEMORY: not even the smallest batch fits. */
int pm_settle_batch(struct pm_config *c);
/* Trains, with the other processes of replicas (replicas.h; NULL: alone), which must call it with
 * the same config. Only rank 0 writes the run folder, except for log.rank-NNN.txt. Resumes if the
 * run folder has a checkpoint; PM_ECONFIG if that is of another run: with another net, input
 * size, optimizer or data. Returns PM_OK at run.steps, or after a signal stopped training and a
 * checkpoint was written; *signal_number is then the signal (0: none). Catches SIGINT, SIGTERM
 * and, unless they are ignored, SIGHUP and SIGPIPE. summary (may be NULL) receives step, loss
 * (with weight decay), l2 (the part of weight decay), seconds, images_per_second, checkpoint, and
 * the metrics of the last evaluation. */
int pm_train(const struct pm_config *c, struct pm_replicas *replicas, int *signal_number,
             struct cJSON *summary);
/* Tells what pm_train would need, without training: makes its checks, and takes a few steps from
 * the values of a new run; init.checkpoint is read unless published weights are not downloaded yet.
 * Writes nothing to the run folder; built-in data (data.make) is drawn. report: members config,
 * model, batch, devices (address, name, driver, examples, memory_bytes, memory), seconds_per_step
 * (mean of three steps after a warm-up), images_per_second, first_step (of the checkpoint from
 * which the run would continue, also by init.restore "all"; else 0), steps (0: until stopped),
 * seconds (of all steps from first_step on, without evaluations and checkpoints; null: until
 * stopped). Errors are those of pm_train. */
int pm_dry_run(const struct pm_config *c, struct cJSON *report);
/* Takes training steps whose learning rate grows from `from` to `to` by the same factor each, until
 * the loss diverges: the learning rate range test. Values start as in pm_train, from the seed or
 * init.checkpoint, never from the run's checkpoints. Nothing is written to the run folder. The same
 * config gives the same report. report: members config, model, batch, base_lr (of the config),
 * diverged (the test ended early), lowest_at (the rate of the lowest smooth loss), proposal (a
 * rate; both are null if the loss does not fall), text (the same in words), points (of each step:
 * rate, loss of its batch without weight decay, smooth: mean of the losses around). PM_ECONFIG,
 * PM_EDATA, and errors of the device. */
struct pm_rate_options {
    int steps;           /* at least 10 */
    double from, to;     /* above 0; to > from */
    const char *picture; /* file for a page with the curve; NULL: none */
};
int pm_rate_test(const struct pm_config *c, const struct pm_rate_options *o, struct cJSON *report);
/* Evaluates one checkpoint in exactly one pass over data.eval_split: members step (null where the
 * checkpoint tells none), count, metrics, per_class (a list of label, name, support, predicted,
 * right, precision, recall, f1 and, if the task counts it, iou; support is in the task's unit),
 * stages (of detectors with two stages: at which stage they lose objects, as in evaluation.json),
 * checkpoint, averages (whether its moving averages were evaluated), seconds. */
int pm_evaluate(const struct pm_config *c, struct cJSON *report);
/* Whether training in the run folder has ended at this step or before, as RUN/run.json says. Then
 * no newer checkpoint follows. False if the file cannot be read. */
bool pm_run_is_finished(const char *run, int64_t step);
/* Stores a report of pm_evaluate in the folder RUN/eval_SPLIT, or RUN/eval_SPLIT/CHECKPOINT-HASH
 * if the checkpoint does not belong to the run: in an event file for TensorBoard, which is created
 * if *events is NULL (close it with pm_events_close), and as per_class.csv. The step is the
 * checkpoint's, 0 if it has none. Does nothing without run.folder. A failure to write is only a
 * warning. */
struct pm_events;
void pm_evaluation_keep(const struct pm_config *c, const struct cJSON *report,
                        struct pm_events **events);
/* Runs the net over image files (folders are searched): members images [{file, ...}]; damaged, the
 * number of files that could not be read: a warning each, {file, error} in the list; and not_read,
 * the other files in the folders, which are no pictures by their names. out: folder for the drawn
 * pictures, or NULL. */
int pm_predict(const struct pm_config *c, const char *const *paths, size_t count, const char *out,
               struct cJSON *report);
/* Writes the net for evaluation, with the values of a checkpoint (eval.checkpoint, eval.averages),
 * as an ONNX file. Config section export has the options. file: its path, or NULL for export.file.
 * report: members file, bytes, data and data_bytes (weights beside it), opset, inputs, outputs
 * (name, type, shape), operators, parameters, labels, checkpoint, step, averages, difference (of
 * the file's outputs for a sample, run on the CPU, over the largest; not there where it was not
 * tried). */
int pm_export_onnx(const struct pm_config *c, const char *file, struct cJSON *report);
/* Prints the memory plan of every clone for training the config, without allocating it. f: text
 * output, with `calls` also every call and value; NULL: none. clones: JSON array that receives one
 * object per clone; NULL: not wanted. */
int pm_show_plan(const struct pm_config *c, FILE *f, bool calls, struct cJSON *clones);
/* Builds the config's training net for one example, to find layers that do not fit. *built: false
 * if neither the data nor the config give picture size and classes, so nothing was built. */
int pm_check_net(const struct pm_config *c, bool *built);
/* Compares the config with its data. An error is a setting with which training would fail: a split
 * that does not exist, classes that the net lacks (PM_ECONFIG, PM_EDATA). A setting that trains but
 * probably not as wanted is a warning: a data folder that is not there yet, a batch larger than the
 * split, a class without examples, a learning rate about 100 times off. *warnings is their number.
 * text receives a line for each warning and note; then lines of the task, which reads up to 1,000
 * training pictures as training would make them. object receives the member findings, a list of
 * {level ("warning" or "note"), key, text}, and the members of the task. Reads the whole training
 * split if it has at most 4 GiB. */
int pm_check_data(const struct pm_config *c, int *warnings, struct pm_str *text,
                  struct cJSON *object);
/* Makes a config from pipeline configs of TensorFlow's Object Detection API, in protobuf's text
 * form: one whole file, or files of its parts (model, training, input reader). config: a new object
 * for a config file, without checks of its values. notes: a new array, one object per field that
 * has no counterpart: file, line, field, differs (the run differs from the original's), why. Both
 * are freed with cJSON_Delete. PM_EDATA with file and line for a syntax error, a field that the
 * format does not have, or a value of another kind. */
int pm_convert_pipeline(const char *const *paths, size_t count, struct cJSON **config,
                        struct cJSON **notes);
/* Returns the table of these fields for docs/migrating.md, as Markdown. Free it with pm_free. */
char *pm_convert_pipeline_markdown(void);
/* Whether a pipeline config has a field with this name. "message.field" is looked up by its last
 * part. */
bool pm_convert_pipeline_has(const char *name);
/* Makes a layer list of the config's net, which cJSON_Delete frees. The list of a detector with two
 * stages has only the first stage. trainable_parameters: how many numbers training changes, in all
 * stages. */
int pm_show_layers(const struct pm_config *c, struct cJSON **out, int64_t *trainable_parameters);

/* Verifies every kernel of the program: the cases of verify.h and all optimizers. progress receives
 * the finished part, 0..1; after pm_verify_limit it may end below 1. */
int pm_verify_all(struct pm_verify *v, void (*progress)(void *ctx, double done), void *ctx);
/* Verifies the kernels of the plan that trains the config on one device, at their real shapes. */
int pm_verify_config(struct pm_verify *v, const struct pm_config *c);

#ifdef __cplusplus
}
#endif

#endif
