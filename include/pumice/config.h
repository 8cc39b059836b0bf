/* config: one JSON file (with its base files and dotted overrides) to a struct per section, every
 * option resolved, constant after load.
 *
 * Values are merged in this order, later ones winning: the tables' defaults, the files of "base"
 * first to last, the file itself, overrides from the command line. Objects merge member by member,
 * anything else is replaced; null means the default. Every mistake names its place, "x.json:12:
 * optim.momentun: unknown key, did you mean 'momentum'?".
 *
 * model, optim and input are open: besides the keys below they hold the options of the net, of the
 * optimizer and of the preprocessing that are chosen there. Any section may hold options of the
 * task. Their tables live in higher levels, which hand them in as lists of rows; the owner reads
 * its options with pm_config_read.
 *
 * Whoever adds a key: one field here, one line in the section's table (src/config/sections.c), one
 * in src/config/reference.c. Then run `pumice config schema --update .`, which writes docs/keys.md,
 * docs/migrating.md and configs/schema.json. */
#ifndef PUMICE_CONFIG_H
#define PUMICE_CONFIG_H

#include <pumice/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- open sections --------------------------------------------------------------------- */

/* A net, optimizer or preprocessing with its own options. All pointers must outlive the config. */
struct pm_open_row {
    const char *name, *help;
    const struct pm_opt *opts;  /* NULL: none of its own */
    const char *preprocessing;  /* nets: the one used where input.preprocessing is null */
    const char *task;           /* nets: what they are for; NULL: classification */
    /* The row in its place where the section's member `variant_key` is the text variant_value: the
     * same options with other defaults. NULL: none. */
    const struct pm_open_row *variant;
    const char *variant_key, *variant_value;
};
struct pm_open_rows {
    const struct pm_open_row *rows;
    size_t count;
    /* Why a name that people know is not among the rows, to follow the name; NULL: unknown. May be
     * NULL itself. */
    const char *(*refusal)(const char *name);
    const char *(*known_as)(const char *name); /* a row's name for another name, or NULL; or NULL */
};
/* Options that a task adds to a section. section: "loss"; or, where a key of it holds an object,
 * "eval.panoptic" for that object's keys, which the task itself reads. */
struct pm_task_section {
    const char *section;
    const struct pm_opt *opts;
};
/* A metric that evaluations report. */
struct pm_metric_kind {
    const char *name;
    bool higher_is_better;
    const char *tag; /* in TensorBoard; NULL: "eval/NAME" */
};
struct pm_config;
struct pm_config_multiplier { const char *pattern; float factor; };
/* What the config knows of a task. All pointers must outlive the config. */
struct pm_open_task {
    const char *name;
    const struct pm_task_section *sections; /* ends with a NULL section; NULL: none */
    const struct pm_metric_kind *metrics;   /* all that any of its nets has; ends with a NULL name */
    /* Defaults that differ from task to task: of optim.multipliers, and of a polynomial schedule,
     * which then falls over the whole run. */
    const struct pm_config_multiplier *multipliers;
    int multiplier_count;
    bool falls_over_run;
    /* What its values say together; NULL: nothing. PM_ECONFIG. */
    int (*check)(const struct pm_config *c);
};
struct pm_open_sections {
    struct pm_open_rows models, optimizers, preprocessings;
    struct pm_open_rows augmentations; /* of input.augment's entries */
    const struct pm_open_task *const *tasks; /* the first is the default */
    size_t task_count;
};

/* ---- sections -------------------------------------------------------------------------- */

struct pm_config_model {
    const char *name;           /* a named net, or NULL: then layers or onnx is given */
    int num_classes;            /* 0 = the data's */
    const struct cJSON *layers; /* a layer list, or NULL */
    const char *onnx;           /* an ONNX model, or NULL */
    const char *onnx_logits;    /* its value that is the logits; NULL = its output */
    bool onnx_new_head;         /* a fresh last layer, for other classes */
    int quantize_delay;         /* -1: no fake quantisation; else the step, from 1, that begins with it */
};

enum pm_make { PM_MAKE_NONE, PM_MAKE_SHAPES };
enum pm_on_corrupt { PM_CORRUPT_ERROR, PM_CORRUPT_SKIP };
struct pm_config_data {
    const char *folder;         /* NULL where a command does not need data */
    int make;                   /* enum pm_make: built-in data to draw where folder is missing */
    const char *train_split, *eval_split;
    bool shuffle;               /* training's order; else that of the files */
    int num_epochs;             /* training ends after so many passes; 0 = by run.steps alone */
    int sample_1_of_n;          /* of the training split every n-th record only */
    int on_corrupt;             /* enum pm_on_corrupt */
    int threads;                /* 0 = cores */
    int ring;                   /* batches prepared ahead */
};

struct pm_config_input {
    struct pm_ints size;        /* {side} or {height, width}; none = the net's */
    struct pm_ints eval_size;   /* none = size */
    int channels;               /* 0 = the preprocessing's, the net's or the data's */
    const char *preprocessing;  /* resolved: never NULL when model.name is given */
    const struct cJSON *augment; /* rows of training in place of the preprocessing's, or NULL */
};

struct pm_config_loss {
    float label_smoothing;
};

struct pm_config_optim {
    const char *name;
    float weight_decay;         /* NAN = the net's */
    float clip_norm;            /* over all variables together; 0 = off */
    float clip_variable_norm;   /* of each variable alone; 0 = off */
    struct pm_strings freeze;   /* regular expressions matched at the start of a variable's name */
    const struct cJSON *multipliers; /* as written; parsed below */
    const struct pm_config_multiplier *multiplier; /* in written order; the first match counts */
    int multiplier_count;
    float moving_average_decay; /* of the variables' averages; 0 = none are kept */
    bool moving_average_ramp;   /* a smaller one in the first steps */
};

enum pm_policy {
    PM_POLICY_FIXED, PM_POLICY_EXPONENTIAL, PM_POLICY_POLYNOMIAL, PM_POLICY_COSINE,
    PM_POLICY_PIECEWISE,
};
enum pm_warmup_shape { PM_WARMUP_LINEAR, PM_WARMUP_CONSTANT };
enum pm_epoch_count { PM_EPOCH_TOTAL, PM_EPOCH_PER_CLONE };
struct pm_config_schedule {
    int policy;                 /* enum pm_policy */
    double base_lr;
    int64_t decay_steps;        /* 0 = from num_epochs_per_decay */
    double num_epochs_per_decay;
    double decay_factor;
    bool staircase;
    double end_lr, power;
    bool cycle;
    int64_t warmup_steps;       /* 0 = from warmup_epochs */
    double warmup_epochs;
    double warmup_lr;           /* at step 0 */
    int warmup_shape;           /* enum pm_warmup_shape */
    bool warmup_shift;          /* the policy's steps begin where the warm-up ends */
    struct pm_ints boundaries;  /* piecewise: steps from which on rates hold, growing */
    struct pm_floats rates;     /* as many */
    int epoch_count;            /* enum pm_epoch_count */
};

struct pm_config_init {
    const char *checkpoint;     /* NULL = none */
    struct pm_strings exclude_scopes;   /* beginnings of names that are not restored */
    bool ignore_missing;
    int averages;               /* enum pm_averages: the checkpoint's, for values */
    struct pm_strings trainable_scopes; /* regular expressions at the start; none = all */
};

struct pm_config_device {
    const char *name;           /* for pm_device_find */
    float share;                /* of the batch, relative to the others'; all 0 = by run.balance */
    int threads;                /* CPU: 0 = by the machine */
};

enum pm_balance { PM_BALANCE_EQUAL, PM_BALANCE_AUTO };
enum pm_batch_norm_update { PM_BATCH_NORM_FIRST, PM_BATCH_NORM_ALL };
enum pm_verifying { PM_VERIFY_AUTO, PM_VERIFY_OFF };
struct pm_config_run {
    const char *folder;         /* NULL where a command does not need one */
    int64_t steps;              /* 0 = until stopped */
    int batch_size;             /* examples a step, over all clones */
    int64_t seed;
    int log_every_steps;
    int64_t save_every_steps;   /* 0 = off */
    double save_every_secs;     /* 0 = off */
    int keep;                   /* newest checkpoints kept; 0 = all */
    double keep_every_hours;    /* and one per so many hours; 0 = none */
    const char *keep_best;      /* metric, or NULL */
    int micro_batches;
    int recompute;              /* enum pm_recompute (plan.h), in its order */
    int snapshot_every_steps;   /* host snapshot against device loss; 0 = only at checkpoints */
    double segment_ms;          /* bound of one submission's estimated work */
    double hang_seconds;        /* a device without progress for so long is lost; 0 = never */
    double compile_seconds;     /* and a driver that finishes no shader for so long; 0 = never */
    bool validate;              /* Vulkan's validation layer */
    int balance;                /* enum pm_balance */
    int batch_norm_update;      /* enum pm_batch_norm_update: whose batches moving averages follow */
    struct pm_ints trace_steps; /* first and last, or one; none: no trace */
    int verify;                 /* enum pm_verifying */
    int summary_every_steps;    /* histograms and pictures for TensorBoard; 0 = none */
    int summary_images;         /* pictures of the batch among them */
    bool summary_originals;     /* and as they are in the data */
    bool summary_gradients;
    int summary_activations;    /* pictures whose layers' values are among them */
};

enum pm_averages { PM_AVERAGES_AUTO, PM_AVERAGES_ON, PM_AVERAGES_OFF };
struct pm_config_eval {
    const char *checkpoint;     /* file or folder; NULL = the newest of run.folder */
    int64_t every_steps;        /* inside train; 0 = never */
    int batch_size;
    int64_t max_batches;        /* 0 = the whole split */
    int sample_1_of_n;          /* of the split every n-th record only */
    int max_runs;               /* --watch: evaluations at most; 0 = until run.steps */
    int averages;               /* enum pm_averages: of the variables, in their place; predict's too */
    double interval_secs;       /* --watch: least, between the beginnings of two evaluations */
};

enum pm_export_preprocessing { PM_EXPORT_NOTES, PM_EXPORT_FOLD };
enum pm_export_weights { PM_EXPORT_AUTO, PM_EXPORT_INSIDE, PM_EXPORT_BESIDE };
struct pm_config_export {
    const char *file;           /* NULL = RUN/model.onnx */
    int batch_size;             /* 0 = any */
    struct pm_ints size;        /* none = input.eval_size */
    bool any_size;
    bool fold_batch_norm;
    int preprocessing;          /* enum pm_export_preprocessing */
    int weights;                /* enum pm_export_weights */
};

struct pm_config {
    struct pm_arena *arena;     /* owned; everything below lives in it or in tree */
    struct cJSON *tree;         /* owned: the merged file, without base, comments and defaults */
    const char *path;           /* as given */
    const char *task;           /* "classification" */
    const struct pm_open_task *task_row; /* NULL: there are no rows */
    struct pm_config_model model;
    struct pm_config_data data;
    struct pm_config_input input;
    struct pm_config_loss loss;
    struct pm_config_optim optim;
    struct pm_config_schedule schedule;
    struct pm_config_init init;
    const struct pm_config_device *devices; /* at least one */
    int devices_count;
    struct pm_config_run run;
    struct pm_config_eval eval;
    struct pm_config_export exporting; /* section "export": that name is a C++ keyword */
    const struct pm_open_row *model_row, *optimizer_row, *preprocessing_row; /* NULL: none */
    const struct pm_open_row *const *augment_rows; /* of each entry of input.augment; NULL: unchecked */
    struct pm_config_origins *origins; /* owned */
};

/* Reads, merges, checks. overrides: "run.steps=100", "model.layers.0.filters=8" (a number is a
 * list's index; the value is JSON, else a string). open may hold no rows, then no names of nets,
 * optimizers and preprocessings are checked and their options are left alone. Fails with PM_ECONFIG
 * (also when a file cannot be read). */
int pm_config_load(const char *path, const char *const *overrides, size_t n,
                   const struct pm_open_sections *open, struct pm_config **out);
/* The same from text; name stands for the path in messages, and base files are found beside it. */
int pm_config_parse(const char *name, const char *text, const char *const *overrides, size_t n,
                    const struct pm_open_sections *open, struct pm_config **out);
void pm_config_destroy(struct pm_config **c);

/* Options of the chosen row or of the task from a section, with defaults; strings live in the
 * config's arena. opts NULL: nothing is done. Not thread-safe. */
int pm_config_read(const struct pm_config *c, const char *section, const struct pm_opt *opts,
                   void *out);
/* Fails, naming key and remedy, when value is NULL: for keys that only some commands need. */
int pm_config_need(const struct pm_config *c, const char *key, const char *value);
/* Height and width for training or evaluation; 0 0 when the config names none (then the net's). */
void pm_config_size(const struct pm_config *c, bool train, int *height, int *width);

/* Everything resolved: a file that, loaded again, gives the same config. cJSON_Delete frees it. */
struct cJSON *pm_config_dump(const struct pm_config *c);
/* Where the value at a dotted path came from: "x.json:12", "command line" or "default". */
const char *pm_config_origin(const struct pm_config *c, const char *path);

/* ---- documentation --------------------------------------------------------------------- */

/* JSON Schema of a config file. cJSON_Delete frees it. */
struct cJSON *pm_config_schema(const struct pm_open_sections *open);
/* The tables of docs/keys.md, as Markdown: every key with type, default, range and meaning.
 * pm_free. */
char *pm_config_keys_markdown(const struct pm_open_sections *open);
/* The tables of docs/migrating.md, as Markdown: each flag of the original programs with the key
 * that replaces it. pm_free. */
char *pm_config_flags_markdown(const struct pm_open_sections *open);

#ifdef __cplusplus
}
#endif

#endif
