/* The option tables of every section: names, defaults, ranges, documentation. Defaults are
 * TF-Slim's where it has the option. */
#include "config/config_private.h"

#include <math.h>
#include <string.h>

#define LARGEST 9007199254740991 /* 2^53 - 1, the largest integer a config may hold */
#define INT_LARGEST 2147483647

static const struct pm_opt model[] = {
    PM_STRING(pm_config_model, name, NULL, "named net; or give layers instead"),
    PM_INT(pm_config_model, num_classes, 0, 0, 1000000, "classes; 0 = the data's"),
    PM_JSON(pm_config_model, layers, "list of layers, instead of a named net"),
    PM_STRING(pm_config_model, onnx, NULL,
              "ONNX model whose graph is the net and whose weights are its initial values"),
    PM_STRING(pm_config_model, onnx_logits, NULL,
              "the model's value that is the logits; null = its output, in front of a Softmax"),
    PM_BOOL(pm_config_model, onnx_new_head, false,
            "the model's last layer with weights is replaced by a fresh one of num_classes"),
    PM_INT(pm_config_model, quantize_delay, -1, -1, 1 << 30,
           "training for 8-bit arithmetic: number of the step, from 1, from which weights and activations "
           "are rounded, while ranges are followed from the first; 0 = at once, -1 = never"),
    { 0 },
};

static const struct pm_opt data[] = {
    PM_STRING(pm_config_data, folder, NULL, "folder with TFRecord shards"),
    PM_ENUM(pm_config_data, make, PM_MAKE_NONE, "none|shapes",
            "built-in data that is drawn when the folder is missing"),
    PM_STRING(pm_config_data, train_split, "train", "split to train on, or a file pattern"),
    PM_STRING(pm_config_data, eval_split, "test", "split to evaluate on, or a file pattern"),
    PM_BOOL(pm_config_data, shuffle, true,
            "training takes the records in an order that changes every epoch; false = in the files' order"),
    PM_INT(pm_config_data, num_epochs, 0, 0, 1000000000,
           "training ends after so many passes over the split, if run.steps does not end it before; 0 = "
           "never"),
    PM_INT(pm_config_data, sample_1_of_n, 1, 1, 1000000000,
           "training uses every n-th record of its split only"),
    PM_ENUM(pm_config_data, on_corrupt, PM_CORRUPT_ERROR, "error|skip",
            "a damaged record or picture: stop, or pass over it and count"),
    PM_INT(pm_config_data, threads, 0, 0, 256, "threads that decode and augment; 0 = cores"),
    PM_INT(pm_config_data, ring, 4, 2, 64, "batches prepared ahead of the step"),
    { 0 },
};

static const struct pm_opt input[] = {
    PM_INTS(pm_config_input, size, NULL, 1, 16384,
            "side, or [height, width], in pixels; null = the net's"),
    PM_INTS(pm_config_input, eval_size, NULL, 1, 16384, "the same for evaluation; null = size"),
    PM_INT(pm_config_input, channels, 0, 0, 4,
           "1 turns pictures grey; 0 = the net's or the data's"),
    PM_STRING(pm_config_input, preprocessing, NULL, "preprocessing, or a net's name: TF-Slim's for it; null = the net's"),
    PM_JSON(pm_config_input, augment, "augmentations of training pictures, in order, each with its name and "
            "options; null = the preprocessing's own"),
    { 0 },
};

static const struct pm_opt loss[] = {
    PM_FLOAT(pm_config_loss, label_smoothing, 0, 0, 0.999,
             "share of the target spread evenly over all classes"),
    { 0 },
};

static const struct pm_opt optim[] = {
    PM_STRING(pm_config_optim, name, "rmsprop", "optimizer"),
    PM_FLOAT(pm_config_optim, weight_decay, NAN, 0, 1,
             "L2: g += weight_decay * w on the net's regularised variables; null = the net's. adamw and "
             "lamb take it beside the gradient: w -= lr * weight_decay * w"),
    PM_FLOAT(pm_config_optim, clip_norm, 0, 0, INFINITY,
             "largest norm of all gradients together; 0 = off"),
    PM_FLOAT(pm_config_optim, clip_variable_norm, 0, 0, INFINITY,
             "largest norm of each variable's gradient; 0 = off"),
    PM_STRINGS(pm_config_optim, freeze, NULL,
               "regular expressions, matched at the start of names, of variables left as they are"),
    PM_JSON(pm_config_optim, multipliers,
            "{regular expression: factor of the gradient}; the first match counts; null = segmentation doubles "
            "those of biases, classification none"),
    PM_FLOAT(pm_config_optim, moving_average_decay, 0, 0, 0.999999,
             "decay of the variables' moving averages; 0 = none are kept"),
    PM_BOOL(pm_config_optim, moving_average_ramp, true,
            "decay by less in the beginning: (1 + step) / (10 + step) where that is smaller"),
    { 0 },
};

static const struct pm_opt schedule[] = {
    PM_ENUM(pm_config_schedule, policy, PM_POLICY_EXPONENTIAL,
            "fixed|exponential|polynomial|cosine|piecewise", "how the learning rate falls"),
    PM_DOUBLE(pm_config_schedule, base_lr, 0.01, 0, 1000, "learning rate at the start"),
    PM_INT64(pm_config_schedule, decay_steps, 0, 0, LARGEST,
             "steps of one decay; 0 = from num_epochs_per_decay; cosine: all of the run"),
    PM_DOUBLE(pm_config_schedule, num_epochs_per_decay, 2, 0, 1e9,
              "epochs of one decay, where decay_steps is 0; polynomial: 0 = all of the run, "
              "segmentation's default"),
    PM_DOUBLE(pm_config_schedule, decay_factor, 0.94, 0, 1, "exponential: factor of one decay"),
    PM_BOOL(pm_config_schedule, staircase, true, "exponential: decay in whole steps of the factor"),
    PM_DOUBLE(pm_config_schedule, end_lr, 0.0001, 0, 1000,
              "polynomial, cosine: learning rate at the end"),
    PM_DOUBLE(pm_config_schedule, power, 1, 0, 100, "polynomial: its power"),
    PM_BOOL(pm_config_schedule, cycle, false, "polynomial: start again, ever longer"),
    PM_INT64(pm_config_schedule, warmup_steps, 0, 0, LARGEST,
             "steps of the ramp up to base_lr; 0 = from warmup_epochs"),
    PM_DOUBLE(pm_config_schedule, warmup_epochs, 0, 0, 1e9,
              "epochs of the ramp, where warmup_steps is 0; 0 = no ramp"),
    PM_DOUBLE(pm_config_schedule, warmup_lr, 0, 0, 1000, "learning rate where the ramp starts"),
    PM_ENUM(pm_config_schedule, warmup_shape, PM_WARMUP_LINEAR, "linear|constant",
            "a ramp that the policy's rate does not exceed, or warmup_lr until its end"),
    PM_BOOL(pm_config_schedule, warmup_shift, false,
            "the policy counts its steps from the warm-up's end"),
    PM_INTS(pm_config_schedule, boundaries, NULL, 1, INT_LARGEST,
            "piecewise: growing numbers of steps from which on rates hold; base_lr before the first"),
    PM_FLOATS(pm_config_schedule, rates, NULL, 0, 1000, "piecewise: a learning rate for each"),
    PM_ENUM(pm_config_schedule, epoch_count, PM_EPOCH_TOTAL, "total|per_clone",
            "an epoch's steps: examples over run.batch_size, or (as Slim) over one clone's part"),
    { 0 },
};

static const struct pm_opt init[] = {
    PM_STRING(pm_config_init, checkpoint, NULL,
              "where to start from when the run folder holds no checkpoint: a run's folder, or a "
              "file or folder of any format that checkpoint inspect reads"),
    PM_STRINGS(pm_config_init, exclude_scopes, NULL,
               "beginnings of names of variables that are not taken from it"),
    PM_BOOL(pm_config_init, ignore_missing, false,
            "variables that it lacks keep their initial values, with a warning"),
    PM_ENUM(pm_config_init, averages, PM_AVERAGES_OFF, "auto|on|off",
            "moving averages that it holds are taken for the variables' values; auto = where there "
            "are some"),
    PM_STRINGS(
        pm_config_init, trainable_scopes, NULL,
        "regular expressions, matched at the start of names, of what is trained; none = all"),
    { 0 },
};

static const struct pm_opt run[] = {
    PM_STRING(pm_config_run, folder, NULL, "run folder: checkpoints, metrics, log, report"),
    PM_INT64(pm_config_run, steps, 0, 0, LARGEST, "training ends at this step; 0 = never"),
    PM_INT(pm_config_run, batch_size, 32, 1, 1000000, "examples a step, over all clones"),
    PM_INT64(pm_config_run, seed, 1, 0, LARGEST, "seed of every random number"),
    PM_INT(pm_config_run, log_every_steps, 10, 1, INT_LARGEST, "steps between log lines"),
    PM_INT64(pm_config_run, save_every_steps, 0, 0, LARGEST,
             "steps between checkpoints; 0 = not by steps"),
    PM_DOUBLE(pm_config_run, save_every_secs, 600, 0, 1e9,
              "seconds between checkpoints; 0 = not by time"),
    PM_INT(pm_config_run, keep, 5, 0, 1000000, "newest checkpoints kept; 0 = all"),
    PM_DOUBLE(pm_config_run, keep_every_hours, 0, 0, 1e9,
              "besides, one checkpoint per so many hours is kept for good; 0 = none"),
    PM_STRING(pm_config_run, keep_best, NULL,
              "metric of the task's evaluations, for example loss; the checkpoint with its best value is "
              "kept besides the newest ones"),
    PM_INT(pm_config_run, micro_batches, 1, 1, 65536,
           "parts of a clone's batch run one after the other: less memory, the same gradient but for "
           "batch norm, whose statistics are each part's own"),
    PM_ENUM(pm_config_run, recompute, 0, "off|auto|half|most",
            "activations dropped and computed again in the backward pass, with the same results: auto as "
            "many as it takes to fit into memory, half down to half the memory, most as far as it goes"),
    PM_INT(pm_config_run, snapshot_every_steps, 100, 0, INT_LARGEST,
           "steps between host copies from which a lost device is restored; 0 = at checkpoints"),
    PM_DOUBLE(pm_config_run, segment_ms, 100, 1, 10000,
              "bound of one submission's estimated work in milliseconds"),
    PM_DOUBLE(pm_config_run, hang_seconds, 300, 0, 1e9,
              "a device that makes no progress for so many seconds (or 20 steps' time, where that is "
              "more) counts as lost; 0 = never"),
    PM_DOUBLE(pm_config_run, compile_seconds, 600, 0, 1e9,
              "a GPU whose driver finishes no shader for so many seconds while it compiles counts as lost; "
              "0 = never"),
    PM_BOOL(pm_config_run, validate, false, "run under Vulkan's validation layer"),
    PM_ENUM(pm_config_run, balance, PM_BALANCE_EQUAL, "equal|auto",
            "shares of devices that name none: equal, or by measured speed"),
    PM_ENUM(pm_config_run, batch_norm_update, PM_BATCH_NORM_FIRST, "first|all",
            "several devices: batch norm's moving averages follow the part of the batch that the first one has, "
            "or those of all, one after the other"),
    PM_INTS(pm_config_run, trace_steps, NULL, 1, INT_LARGEST,
            "first and last step, or one, of which trace-STEP.json in the run folder shows who did what "
            "when; none = no trace"),
    PM_ENUM(pm_config_run, verify, PM_VERIFY_AUTO, "auto|off",
            "a GPU's kernels against the CPU, before a driver's first use; verdicts are remembered"),
    PM_INT(pm_config_run, summary_every_steps, 500, 0, INT_LARGEST,
           "steps between TensorBoard's histograms and pictures; 0 = none, scalars only"),
    PM_INT(pm_config_run, summary_images, 3, 0, 64,
           "pictures of the batch among them, as the net sees them"),
    PM_BOOL(pm_config_run, summary_originals, false,
            "the same before preprocessing and augmentation among them"),
    PM_BOOL(pm_config_run, summary_gradients, false, "gradients' histograms among them"),
    PM_INT(pm_config_run, summary_activations, 0, 0, 64,
           "pictures for which the layers' values are among them: a forward pass more at those steps, "
           "and its memory on the first device; 0 = none"),
#define ONLY_INT(key, value, help) PM_ONLY_INT(key, value, help),
#define ONLY_BOOL(key, value, help) PM_ONLY_BOOL(key, value, help),
#include "later.def"
#undef ONLY_INT
#undef ONLY_BOOL
    { 0 },
};

static const struct pm_opt eval[] = {
    PM_STRING(pm_config_eval, checkpoint, NULL,
              "checkpoint, or folder with some; null = the newest of run.folder"),
    PM_INT64(pm_config_eval, every_steps, 0, 0, LARGEST,
             "steps between evaluations while training; 0 = none"),
    PM_INT(pm_config_eval, batch_size, 100, 1, 1000000, "examples a batch; predict's, where it is below 8"),
    PM_INT64(pm_config_eval, max_batches, 0, 0, LARGEST, "batches at most; 0 = the whole split"),
    PM_INT(pm_config_eval, sample_1_of_n, 1, 1, 1000000000,
           "evaluation uses every n-th record of its split only"),
    PM_INT(pm_config_eval, max_runs, 0, 0, INT_LARGEST,
           "eval --watch: evaluations at most; 0 = until that of run.steps"),
    PM_ENUM(pm_config_eval, averages, PM_AVERAGES_AUTO, "auto|on|off",
            "the variables' moving averages in their place, in predict too; auto = where there are some"),
    PM_DOUBLE(pm_config_eval, interval_secs, 60, 1, 1e6,
              "eval --watch: seconds between the beginnings of two evaluations, at least"),
    { 0 },
};

static const struct pm_opt export[] = {
    PM_STRING(pm_config_export, file, NULL, "ONNX file to write; null = model.onnx in run.folder"),
    PM_INT(pm_config_export, batch_size, 0, 0, 1000000, "examples a batch; 0 = any number"),
    PM_INTS(pm_config_export, size, NULL, 1, 16384,
            "side, or [height, width], of the pictures it takes; null = input.eval_size"),
    PM_BOOL(pm_config_export, any_size, false,
            "pictures of any size, where the net allows it: with model.global_pool where it has that"),
    PM_BOOL(pm_config_export, fold_batch_norm, false,
            "batch norm becomes part of the convolution before it: faster, but no longer to be trained"),
    PM_ENUM(pm_config_export, preprocessing, PM_EXPORT_NOTES, "notes|fold",
            "notes: the input is what the net takes, float32 [n, channels, height, width], and the "
            "file's metadata says how pictures become that; fold: it is pixels, uint8 [n, height, "
            "width, channels], of pictures cropped and resized as the metadata says"),
    PM_ENUM(pm_config_export, weights, PM_EXPORT_AUTO, "auto|inside|beside",
            "weights in the file, or beside it in FILE-DIGEST.data; auto = beside where they have more than 2 "
            "GB"),
    { 0 },
};

const struct pm_opt pm_config_device_opts[] = {
    PM_STRING(pm_config_device, name, "auto",
              "auto, cpu, vulkan:N, a UUID or a part of a device's name"),
    PM_FLOAT(pm_config_device, share, 0, 0, 1e6,
             "part of the batch relative to the others'; 0 = by run.balance"),
    PM_INT(pm_config_device, threads, 0, 0, 256, "CPU: threads; 0 = cores"),
    { 0 },
};

#define SECTION(n, h) .name = #n, .help = h, .opts = n, .offset = offsetof(struct pm_config, n)
#define OPEN(kind, list, field, key)                                   \
    .row_kind = kind, .rows = offsetof(struct pm_open_sections, list), \
    .row = offsetof(struct pm_config, field), .row_key = key

const struct pm_config_section pm_config_sections[] = {
    { SECTION(model, "the network"), OPEN("net", models, model_row, "name") },
    { SECTION(data, "where examples come from") },
    { SECTION(input, "how a picture becomes the network's input"),
      OPEN("preprocessing", preprocessings, preprocessing_row, "preprocessing") },
    { SECTION(loss, "what is minimised") },
    { SECTION(optim, "what is done with gradients"),
      OPEN("optimizer", optimizers, optimizer_row, "name") },
    { SECTION(schedule, "the learning rate over the steps") },
    { SECTION(init, "what training starts from and what it may change") },
    { SECTION(run, "the training run") },
    { SECTION(eval, "evaluation") },
    { .name = "export", .help = "the net for other programs, as an ONNX file", .opts = export,
      .offset = offsetof(struct pm_config, exporting) },
    { 0 },
};

const struct pm_config_section *pm_config_section_find(const char *name, size_t length)
{
    for (const struct pm_config_section *s = pm_config_sections; s->name; s++)
        if (strlen(s->name) == length && memcmp(s->name, name, length) == 0)
            return s;
    return NULL;
}

const struct pm_open_rows *pm_config_rows(const struct pm_config_section *s,
                                          const struct pm_open_sections *open)
{
    return s->row_kind ? (const void *)((const char *)open + s->rows) : NULL;
}

const struct pm_opt *pm_config_task_opts(const struct pm_open_task *t, const char *section)
{
    for (const struct pm_task_section *s = t ? t->sections : NULL; s && s->section; s++)
        if (strcmp(s->section, section) == 0)
            return s->opts;
    return NULL;
}

const struct pm_opt *pm_config_other_task(const struct pm_open_sections *open,
                                          const struct pm_open_task *not, const char *section,
                                          const char *key, const struct pm_open_task **task)
{
    for (size_t i = 0; i < open->task_count; i++) {
        const struct pm_opt *opts = pm_config_task_opts(open->tasks[i], section);

        if (open->tasks[i] != not && opts && pm_opts_find(opts, key) >= 0) {
            *task = open->tasks[i];
            return opts;
        }
    }
    return NULL;
}
