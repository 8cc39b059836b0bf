/* The option tables of every section: names, defaults, ranges, documentation. Options that TF-Slim
 * also has use its defaults. */
#include "config/config_private.h"

#include <math.h>
#include <string.h>

#define LARGEST 9007199254740991 /* 2^53 - 1, the largest integer a config may hold */
#define INT_LARGEST 2147483647

static const struct pm_opt model[] = {
    PM_STRING(pm_config_model, name, NULL, "name of a net; or set layers instead"),
    PM_INT(pm_config_model, num_classes, 0, 0, 1000000, "number of classes; 0 = that of the data"),
    PM_JSON(pm_config_model, layers, "list of layers instead of a named net"),
    PM_STRING(pm_config_model, onnx, NULL,
              "ONNX model whose graph is the net and whose weights are its initial values"),
    PM_STRING(pm_config_model, onnx_logits, NULL,
              "name of the value with the logits; null = the output, before a final Softmax"),
    PM_BOOL(pm_config_model, onnx_new_head, false,
            "replace the last layer with weights by a new one with num_classes outputs"),
    PM_INT(pm_config_model, quantize_delay, -1, -1, 1 << 30,
           "quantisation-aware training: first step (from 1) that rounds weights and activations "
           "to 8 bits; ranges are tracked from step 1; 0 = from the start, -1 = off"),
    PM_INT(pm_config_model, quantize_freeze_steps, 0, 0, 1 << 30,
           "quantisation-aware training: steps that normalise with the statistics of the batch; "
           "afterwards folded batch norms are frozen: they use their moving averages, which stay; "
           "0 = all steps"),
    PM_BOOL(pm_config_model, quantize_symmetric, false,
            "quantisation-aware training: every range reaches as far below 0 as above it"),
    { 0 },
};

static const struct pm_opt data[] = {
    PM_STRING(pm_config_data, folder, NULL,
              "folder with TFRecord shards, or for classification a folder of pictures with a "
              "subfolder for each class, which is converted once into FOLDER.pumice; null = the "
              "first folder of data.folders"),
    PM_JSON(pm_config_data, convert,
            "options of that conversion, those of dataset convert folder, such as { "
            "\"validation\": 0.2, \"max_side\": 1024 }; null = their defaults"),
    PM_ENUM(pm_config_data, make, PM_MAKE_NONE, "none|shapes|bars",
            "built-in data to draw if the folder does not exist; bars: with rotated boxes"),
    PM_STRING(pm_config_data, train_split, "train", "split to train on, or a file pattern"),
    PM_STRING(pm_config_data, eval_split, NULL,
              "split to evaluate on, or a file pattern; null = the first of validation, val, test, "
              "val_fine that the folder has"),
    PM_JSON(pm_config_data, folders,
            "several sources of training records: a list of objects with folder and split (null: "
            "data.folder, data.train_split), augment (null: input.augment), and either batch, the "
            "examples of each batch, which add up to run.batch_size, or weight, the share of the "
            "examples on average; without both, the sources are one set; null = data.folder"),
    PM_DOUBLE(pm_config_data, repeat_threshold, 0, 0, 1,
              "repeat training records with rare classes: one comes max(1, sqrt(repeat_threshold / "
              "f)) times in an epoch on average, f being the share of the records that have its "
              "rarest class; 0 = off; LVIS uses 0.001"),
    PM_BOOL(pm_config_data, shuffle, true,
            "shuffle the training records anew in every epoch; false = order of the files"),
    PM_INT(pm_config_data, sample_1_of_n, 1, 1, 1000000000,
           "train only on every n-th record of the split"),
    PM_ENUM(pm_config_data, on_corrupt, PM_CORRUPT_ERROR, "error|skip",
            "damaged record or picture: stop, or skip and count it"),
    PM_INT(pm_config_data, threads, 0, 0, 256, "threads for decoding and augmentation; 0 = number "
                                               "of cores"),
    PM_INT(pm_config_data, ring, 4, 2, 64, "number of batches prepared in advance"),
    { 0 },
};

static const struct pm_opt input[] = {
    PM_INTS(pm_config_input, size, NULL, 1, 16384,
            "size of the net's input in pixels, one side or [height, width]; null = the net's "
            "default"),
    PM_INTS(pm_config_input, eval_size, NULL, 1, 16384, "input size for evaluation; null = "
                                                        "input.size"),
    PM_INT(pm_config_input, channels, 0, 0, 4,
           "colour channels; 1 = convert to grey; 0 = those of the net or the data"),
    PM_BOOL(pm_config_input, scaled_jpeg, false,
            "training: decode a JPEG at 1/2, 1/4 or 1/8 of its size if its crop is resized to less "
            "anyway. Photos of many megapixels load about twice as fast. The input's pixels "
            "differ slightly: they are made from averages of 2x2 to 8x8 pixels, and the crop is "
            "rounded to these. Other formats, grey input, mosaics and pictures with "
            "data.cutoff_boxes are decoded whole"),
    PM_STRING(pm_config_input, preprocessing, NULL, "name of a preprocessing, or of a net for "
                                                    "TF-Slim's choice; null = the net's default"),
    PM_JSON(pm_config_input, augment, "list of augmentations for training pictures, each with its "
                                      "name and options; null = those of the preprocessing"),
    { 0 },
};

static const struct pm_opt loss[] = {
    PM_FLOAT(pm_config_loss, label_smoothing, 0, 0, 0.999,
             "part of the target that is spread evenly over all classes"),
    PM_BOOL(pm_config_loss, regularization, true,
            "false: no weight decay, neither in the loss nor in the gradients, whatever "
            "optim.weight_decay and the net say"),
    { 0 },
};

static const struct pm_opt optim[] = {
    PM_STRING(pm_config_optim, name, "rmsprop", "name of the optimizer"),
    PM_FLOAT(pm_config_optim, weight_decay, NAN, 0, 1,
             "L2 regularisation, g += weight_decay * w, of the net's regularised variables; null = "
             "the net's default. adamw and lamb decouple it: w -= lr * weight_decay * w"),
    PM_FLOAT(pm_config_optim, clip_norm, 0, 0, INFINITY,
             "clip the norm of all gradients together; 0 = off"),
    PM_FLOAT(pm_config_optim, clip_variable_norm, 0, 0, INFINITY,
             "clip the norm of each variable's gradient; 0 = off"),
    PM_STRINGS(pm_config_optim, trainable, NULL,
               "regular expressions (Python's, matched at the start of names) of variables to "
               "train; none = all; optim.freeze then excludes some of them"),
    PM_STRINGS(pm_config_optim, freeze, NULL,
               "regular expressions (Python's, matched at the start of names) of variables that "
               "are not trained; their weight decay stays in the reported loss"),
    PM_JSON(pm_config_optim, multipliers,
            "{regular expression: factor for the gradient}; the first match counts, and each must "
            "match a variable; null = segmentation doubles the gradients of biases, the other "
            "tasks change none"),
    PM_FLOAT(pm_config_optim, moving_average_decay, 0, 0, 0.999999,
             "decay of the variables' moving averages; 0 = no averages"),
    PM_BOOL(pm_config_optim, moving_average_ramp, true,
            "use a smaller decay at the start: (1 + step) / (10 + step)"),
    { 0 },
};

static const struct pm_opt schedule[] = {
    PM_ENUM(pm_config_schedule, policy, PM_POLICY_EXPONENTIAL,
            "fixed|exponential|polynomial|cosine|piecewise", "policy of the learning rate"),
    PM_DOUBLE(pm_config_schedule, base_lr, 0.01, 0, 1000, "learning rate at the start"),
    PM_INT64(pm_config_schedule, decay_steps, 0, 0, LARGEST,
             "steps per decay; 0 = from num_epochs_per_decay; cosine: 0 = the whole run"),
    PM_DOUBLE(pm_config_schedule, num_epochs_per_decay, 2, 0, 1e9,
              "epochs per decay if decay_steps is 0; polynomial: 0 = the whole run"),
    PM_DOUBLE(pm_config_schedule, decay_factor, 0.94, 0, 1, "exponential: factor per decay"),
    PM_BOOL(pm_config_schedule, staircase, true, "exponential: decay in discrete intervals"),
    PM_DOUBLE(pm_config_schedule, min_lr, 0, 0, 1000, "exponential: the rate is never below"),
    PM_DOUBLE(pm_config_schedule, end_lr, 0.0001, 0, 1000,
              "polynomial, cosine: final learning rate, also after the end of the decay"),
    PM_DOUBLE(pm_config_schedule, power, 1, 0, 100, "polynomial: power of the decay"),
    PM_BOOL(pm_config_schedule, cycle, false, "polynomial: restart with longer and longer periods"),
    PM_INT64(pm_config_schedule, warmup_steps, 0, 0, LARGEST,
             "steps of the warm-up to base_lr; 0 = from warmup_epochs"),
    PM_DOUBLE(pm_config_schedule, warmup_epochs, 0, 0, 1e9,
              "epochs of the warm-up if warmup_steps is 0; 0 = no warm-up"),
    PM_DOUBLE(pm_config_schedule, warmup_lr, 0, 0, 1000, "learning rate at the start of the "
                                                         "warm-up"),
    PM_ENUM(pm_config_schedule, warmup_shape, PM_WARMUP_LINEAR, "linear|constant",
            "linear: a ramp that the policy's rate does not exceed (with warmup_shift: the ramp "
            "alone, which may fall); constant: warmup_lr until the end of the warm-up"),
    PM_BOOL(pm_config_schedule, warmup_shift, false,
            "the policy counts steps, and its boundaries, from the end of the warm-up"),
    PM_INT64(pm_config_schedule, hold_steps, 0, 0, LARGEST,
             "cosine: steps at base_lr after the warm-up; the decay begins after them"),
    PM_INTS(pm_config_schedule, boundaries, NULL, 1, INT_LARGEST,
            "piecewise: increasing step numbers at which the rate changes; before the first it is "
            "base_lr"),
    PM_FLOATS(pm_config_schedule, rates, NULL, 0, 1000, "piecewise: learning rate from each "
                                                        "boundary on"),
    PM_ENUM(pm_config_schedule, epoch_count, PM_EPOCH_TOTAL, "total|per_clone",
            "steps per epoch: examples / run.batch_size, or, as in Slim, examples / batch of one "
            "clone"),
    { 0 },
};

static const struct pm_opt init[] = {
    PM_STRING(pm_config_init, checkpoint, NULL,
              "pretrained checkpoint, used if the run folder has no checkpoint: imagenet = the "
              "published weights of model.name, downloaded once; or a run folder, or a file or "
              "folder of any format that checkpoint inspect reads"),
    PM_ENUM(pm_config_init, restore, PM_RESTORE_VARIABLES, "variables|all",
            "variables = values of the net's variables only; all = also optimizer slots, moving "
            "averages and the step, as if the run had made this checkpoint"),
    PM_STRINGS(pm_config_init, exclude_scopes, NULL,
               "prefixes of variable names that are not restored from it"),
    PM_BOOL(pm_config_init, ignore_missing, false,
            "variables that it lacks keep their initial values, with a warning"),
    PM_ENUM(pm_config_init, averages, PM_AVERAGES_OFF, "auto|on|off",
            "restore the variables from its moving averages; auto = if it has any"),
    PM_ENUM(pm_config_init, type, PM_INIT_DETECTION, "classification|detection",
            "detectors: kind of init.checkpoint: classification = a classifier; detection = a "
            "detector. The feature extractor is restored from it. Variables that the checkpoint "
            "lacks keep their initial values"),
    PM_BOOL(pm_config_init, load_all, false,
            "detectors: take all variables of a detector's checkpoint, the predictors too"),
    PM_STRINGS(
        pm_config_init, trainable_scopes, NULL,
        "regular expressions (matched at the start of names) of variables to train; none = all; "
        "optim.trainable is the same"),
    { 0 },
};

static const struct pm_opt run[] = {
    PM_STRING(pm_config_run, folder, NULL, "run folder: checkpoints, metrics, log, report"),
    PM_INT64(pm_config_run, steps, NAN, 0, LARGEST,
             "last training step; 0 = no limit; null = not set. Training needs run.steps or "
             "run.epochs"),
    PM_DOUBLE(pm_config_run, epochs, NAN, 1e-6, 1e9,
              "end training after so many passes over the training data, unless run.steps ends it "
              "earlier; null = not set"),
    PM_INT_OR(pm_config_run, batch_size, 32, 1, 1000000, "auto",
              "examples per step, over all clones; auto = the largest power of two (times "
              "micro_batches) that fits the devices' memory and is not above the number of "
              "training pictures; a run keeps the number"),
    PM_INT64(pm_config_run, seed, 1, 0, LARGEST, "seed of all random numbers"),
    PM_INT(pm_config_run, log_every_steps, 10, 1, INT_LARGEST, "steps between log lines"),
    PM_ENUM(pm_config_run, log_loss, PM_LOG_LOSS_MEAN, "mean|sum",
            "with several devices, the reported loss is the mean over the batch, or the sum of "
            "the devices' mean losses; the gradients are the same"),
    PM_INT64(pm_config_run, save_every_steps, 0, 0, LARGEST,
             "steps between checkpoints; 0 = not by steps"),
    PM_DOUBLE(pm_config_run, save_every_secs, 600, 0, 1e9,
              "seconds between checkpoints, the first one after the first evaluation or after 60 "
              "seconds at most; 0 = not by time"),
    PM_BOOL(pm_config_run, save_first_step, false,
            "also save a checkpoint of the initial values, step 0"),
    PM_INT(pm_config_run, keep, 5, 0, 1000000, "number of newest checkpoints to keep; 0 = all"),
    PM_DOUBLE(pm_config_run, keep_every_hours, 0, 0, 1e9,
              "also keep one checkpoint per so many hours for ever; 0 = off"),
    PM_STRING(pm_config_run, keep_best, "auto",
              "metric: the checkpoint with its best value is also kept, and each evaluation in "
              "training saves a checkpoint. auto = the task's first metric, none = off"),
    PM_INT64(pm_config_run, pause_step, 0, 0, LARGEST,
             "step after which training evaluates, saves and stops, although run.steps and the "
             "schedule are longer; start it again with a larger value to go on. 0 = off"),
    PM_JSON(pm_config_run, early_stop,
            "end training when a metric of its evaluations no longer improves: an object with the "
            "keys below; null = off"),
    PM_INT(pm_config_run, micro_batches, 1, 1, 65536,
           "split a clone's batch into so many parts that run one after the other: less memory, "
           "the same gradient except for batch norm, which uses the statistics of each part"),
    PM_ENUM(pm_config_run, recompute, 0, "off|auto|half|most",
            "recompute activations in the backward pass to save memory, with the same results: "
            "auto = as many as needed to fit, half = down to half the memory, most = as many as "
            "possible"),
    PM_INT(pm_config_run, snapshot_every_steps, 100, 0, INT_LARGEST,
           "steps between host copies of the state, from which training recovers after a lost "
           "device; 0 = at checkpoints"),
    PM_DOUBLE(pm_config_run, segment_ms, 100, 1, 10000,
              "limit for the estimated work of one submission, in milliseconds"),
    PM_DOUBLE(pm_config_run, hang_seconds, 300, 0, 1e9,
              "timeout: a device without progress for so many seconds (or the time of 20 steps, if "
              "longer) counts as lost; 0 = off"),
    PM_DOUBLE(pm_config_run, compile_seconds, 600, 0, 1e9,
              "timeout: a GPU whose driver finishes no shader for so many seconds counts as lost; "
              "0 = off"),
    PM_BOOL(pm_config_run, validate, false, "use the validation layer on Vulkan devices"),
    PM_ENUM(pm_config_run, balance, PM_BALANCE_EQUAL, "equal|auto",
            "batch shares of devices without a share: equal, or by measured speed"),
    PM_INT(pm_config_run, replicas, 0, 0, PM_MOST_PROCESSES,
           "processes that train together: an error if mpirun has started another number; 0 = as "
           "many as were started"),
    PM_ENUM(pm_config_run, exchange, 0, "float32|bfloat16",
            "form of gradients between processes: bfloat16 takes half the time of a slow network, "
            "and rounds each number to 8 bits; sums are float32"),
    PM_BOOL(pm_config_run, sync_replicas, true,
            "with several processes: all make each step together; false = asynchronous training: "
            "each process makes steps of its own batch, run.batch_size, and updates the variables "
            "without waiting for the others"),
    PM_INT(pm_config_run, replicas_to_aggregate, 0, -1, INT_LARGEST,
           "synchronous training: gradients that make an update; 0 or -1 = one of each process; a "
           "multiple of the number of processes = each process computes several parts of its batch "
           "one after the other, as with run.micro_batches; fewer = each process computes such a "
           "part of the batch, and those that come last are dropped"),
    PM_INT(pm_config_run, task, NAN, 0, PM_MOST_PROCESSES - 1,
           "the number that a process must have among several, from 0 on: an error if mpirun has "
           "given it another; null = any. On a command line it is that of this one process"),
    PM_INT(pm_config_run, parameter_servers, 0, 0, PM_MOST_PROCESSES - 1,
           "asynchronous training, and run.replicas_to_aggregate below the number of processes: "
           "the last so many processes hold the variables and do not train; 0 = the processes that "
           "train hold them"),
    PM_INT64(pm_config_run, startup_delay_steps, 0, 0, LARGEST,
             "asynchronous training: a process other than the first begins at this step, or at "
             "run.steps if that is less; segmentation multiplies it by the number of the process"),
    PM_ENUM(pm_config_run, batch_norm_update, PM_BATCH_NORM_FIRST, "first|all|last",
            "with several devices, batch norm's moving averages are updated from the first "
            "device's part of the batch, from all parts in turn, or from the last device's part"),
    PM_INTS(pm_config_run, trace_steps, NULL, 1, INT_LARGEST,
            "first and last step (or a single step) to record in trace-STEP.json in the run "
            "folder, and for TensorBoard's profiler; none = no trace"),
    PM_ENUM(pm_config_run, verify, PM_VERIFY_AUTO, "auto|off",
            "verify a GPU's kernels against the CPU before the first use of a driver; results are "
            "stored"),
    PM_INT(pm_config_run, summary_every_steps, 500, 0, INT_LARGEST,
           "steps between histograms and pictures for TensorBoard; 0 = not by steps"),
    PM_DOUBLE(pm_config_run, summary_every_secs, 0, 0, 1e9,
              "seconds between histograms and pictures for TensorBoard, from the first step of a "
              "process on; 0 = not by time. With both keys 0, only scalars are written"),
    PM_ENUM(pm_config_run, summary_tags, PM_TAGS_OWN, "own|slim|inception|deeplab",
            "names of values in TensorBoard: those of this program, or of TF-Slim's trainer, the "
            "Inception trainer or DeepLab, where it has the value"),
    PM_INT(pm_config_run, summary_images, 3, 0, 64,
           "number of pictures in these summaries, as the net receives them"),
    PM_BOOL(pm_config_run, summary_originals, false,
            "also write the same pictures before preprocessing and augmentation"),
    PM_BOOL(pm_config_run, summary_gradients, false, "also write histograms of the gradients"),
    PM_INT_OR(pm_config_run, summary_activations, 0, 0, 64, "training",
              "also write histograms of activations for so many pictures, which needs an extra "
              "forward pass and memory on the first device; training = those of the training pass "
              "itself, for the whole batch, which needs more memory; 0 = off"),
    { 0 },
};

static const struct pm_opt eval[] = {
    PM_STRING(pm_config_eval, checkpoint, NULL,
              "checkpoint, or folder with checkpoints; null = the newest of run.folder"),
    PM_INT64(pm_config_eval, every_steps, 0, 0, LARGEST,
             "steps between evaluations during training; 0 = off"),
    PM_INT(pm_config_eval, batch_size, 100, 1, 1000000, "examples per batch; predict uses at most "
                                                        "8"),
    PM_BOOL(pm_config_eval, resize, true,
            "bring every picture to input.eval_size; false = each picture keeps its own size in "
            "evaluation and predict"),
    PM_INT64(pm_config_eval, max_batches, 0, 0, LARGEST, "maximum number of batches; 0 = the whole "
                                                         "split"),
    PM_INT(pm_config_eval, sample_1_of_n, 1, 1, 1000000000,
           "evaluate only every n-th record of the split"),
    PM_INT(pm_config_eval, max_runs, 0, 0, INT_LARGEST,
           "eval --watch: maximum number of evaluations; 0 = until run.steps is evaluated"),
    PM_ENUM(pm_config_eval, averages, PM_AVERAGES_AUTO, "auto|on|off",
            "use the moving averages of the variables, also in predict; auto = if the checkpoint "
            "has any"),
    PM_DOUBLE(pm_config_eval, interval_secs, 60, 1, 1e6,
              "eval --watch: minimum seconds between the starts of two evaluations"),
    { 0 },
};

/* All keys are tasks' own. */
static const struct pm_opt predict[] = {
    { 0 },
};

static const struct pm_opt export[] = {
    PM_STRING(pm_config_export, file, NULL, "ONNX file to write; null = model.onnx in run.folder"),
    PM_ENUM(pm_config_export, checkpoint, PM_EXPORT_CHECKPOINT_EVAL, "eval|none",
            "values of the variables: eval = those of the checkpoint that eval.checkpoint selects; "
            "none = the net's initial values, from run.seed, without a checkpoint"),
    PM_BOOL(pm_config_export, training, false,
            "the net as training runs it: batch norm uses the statistics of the batch, dropout and "
            "drop path are active"),
    PM_INT(pm_config_export, batch_size, 0, 0, 1000000, "batch size; 0 = any"),
    PM_INTS(pm_config_export, size, NULL, 1, 16384,
            "input size of the model, one side or [height, width]; null = input.eval_size"),
    PM_BOOL(pm_config_export, any_size, false,
            "accept pictures of any size, if the net allows it (nets with model.global_pool need "
            "it true)"),
    PM_BOOL(pm_config_export, fold_batch_norm, false,
            "fold batch norm into the preceding convolution: faster, but no longer trainable"),
    PM_ENUM(pm_config_export, preprocessing, PM_EXPORT_NOTES, "notes|fold",
            "notes: the input is float32 [n, channels, height, width], and the metadata describes "
            "the preprocessing; fold: the input is pixels, uint8 [n, height, width, channels], "
            "cropped and resized as the metadata describes"),
    PM_ENUM(pm_config_export, weights, PM_EXPORT_AUTO, "auto|inside|beside",
            "store weights in the file, or beside it in FILE-DIGEST.data; auto = beside if they "
            "exceed 2 GB"),
    { 0 },
};

static const struct pm_opt study[] = {
    PM_STRING(pm_config_study, folder, NULL, "folder for the study's runs and its table"),
    PM_STRING(pm_config_study, metric, "auto",
              "metric of the last evaluation, by which runs are compared; auto = the task's first "
              "metric"),
    PM_INT64(pm_config_study, seed, 1, 0, LARGEST,
             "seed of the points that random and sobol draw; trainings have run.seed"),
    PM_JSON(pm_config_study, vary,
            "keys of the config that vary, as an object: {key: list of values, or a range such as "
            "{\"log_uniform\": [0.001, 0.1]}}. Ranges: uniform, log_uniform, int. An entry of a "
            "list can be an object that replaces the whole section; ranges can be its members"),
    PM_ENUM(pm_config_study, method, 0, "grid|random|sobol",
            "points of the study: grid = every combination of lists; random = independent draws; "
            "sobol = draws that cover the ranges evenly"),
    PM_INT(pm_config_study, runs, 0, 0, 10000, "number of points for random and sobol; 0 = all of "
                                               "the grid"),
    PM_INT(pm_config_study, repeats, 1, 1, 1000,
           "trainings of each point, with run.seed, run.seed + 1 and so on"),
    PM_JSON(pm_config_study, halving,
            "successive halving, as an object: {\"factor\": 3, \"first_steps\": 200} trains all "
            "points for 200 steps, the best third of them up to step 600, and so on; null = every "
            "run is trained to its end"),
    PM_JSON(pm_config_study, workers,
            "lists of devices: each list trains one run at a time; null = one run at a time on the "
            "config's devices"),
    PM_BOOL(pm_config_study, share_devices, false,
            "several workers may have the same device; the threads of the CPU are divided among "
            "them"),
    { 0 },
};

const struct pm_opt pm_config_early_stop_opts[] = {
    PM_STRING(pm_config_early_stop, metric, "auto",
              "metric that must improve; auto = the task's first metric"),
    PM_INT(pm_config_early_stop, patience, 5, 1, INT_LARGEST,
           "number of evaluations without a better value that ends training"),
    PM_DOUBLE(pm_config_early_stop, min_delta, 0, 0, 1e9,
              "a value is better if it differs from the best one by more than this"),
    { 0 },
};

const struct pm_opt pm_config_device_opts[] = {
    PM_STRING(pm_config_device, name, "auto",
              "auto, cpu, vulkan:N, opencl:N, a UUID, or part of a device's name"),
    PM_FLOAT(pm_config_device, share, 0, 0, 1e6,
             "relative share of the batch; 0 = by run.balance"),
    PM_INT(pm_config_device, threads, 0, 0, 256, "CPU: number of threads; 0 = number of cores"),
    { 0 },
};

#define SECTION(n, h) .name = #n, .help = h, .opts = n, .offset = offsetof(struct pm_config, n)
#define OPEN(kind, list, field, key)                                   \
    .row_kind = kind, .rows = offsetof(struct pm_open_sections, list), \
    .row = offsetof(struct pm_config, field), .row_key = key

const struct pm_config_section pm_config_sections[] = {
    { SECTION(model, "the net"), OPEN("net", models, model_row, "name") },
    { SECTION(data, "training and evaluation data") },
    { SECTION(input, "preprocessing and augmentation of pictures"),
      OPEN("preprocessing", preprocessings, preprocessing_row, "preprocessing") },
    { SECTION(loss, "the loss") },
    { SECTION(optim, "optimizer, regularisation, gradient clipping"),
      OPEN("optimizer", optimizers, optimizer_row, "name") },
    { SECTION(schedule, "the learning rate schedule") },
    { SECTION(init, "pretrained checkpoint and trainable variables") },
    { SECTION(run, "the training run") },
    { SECTION(eval, "evaluation") },
    { .name = "predict", .help = "prediction", .opts = predict },
    { .name = "export", .help = "export to ONNX", .opts = export,
      .offset = offsetof(struct pm_config, exporting) },
    { SECTION(study, "many runs of one config: `pumice sweep`") },
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
