/* config: reads one JSON file, with its base files and dotted overrides, into one struct per
 * section. Every option is resolved; the config is constant after load.
 *
 * Values are merged in this order, and later ones win: the tables' defaults, the files of "base"
 * first to last, the file itself, overrides from the command line. Objects merge member by member;
 * any other value is replaced; null means the default. Every error names its place: "x.json:12:
 * optim.momentun: unknown key, did you mean 'momentum'?".
 *
 * The sections model, optim and input are open: besides the keys below they hold the options of the
 * chosen net, optimizer and preprocessing. Any section may hold options of the task. Their tables
 * are in higher levels, which pass them in as lists of rows. The owner reads its options with
 * pm_config_read.
 *
 * To add a key: add one field here, one line to the section's table (src/config/sections.c) and one
 * line to src/config/reference.c. Then run `pumice config schema --update .`, which writes
 * docs/keys.md, docs/migrating.md and configs/schema.json. */
#ifndef PUMICE_CONFIG_H
#define PUMICE_CONFIG_H

#include <pumice/options.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PM_MOST_PROCESSES = 800 }; /* of one training */

/* ---- open sections --------------------------------------------------------------------- */

/* A net, optimizer or preprocessing with its own options. All pointers must outlive the config. */
struct pm_open_row {
    const char *name, *help;
    const struct pm_opt *opts;  /* NULL: no options */
    const char *preprocessing;  /* nets: default of input.preprocessing */
    /* nets: objects that the config does not set; the last entry has no key. NULL: none. */
    const struct pm_object_default *objects;
    const char *task;           /* nets: name of the task they serve; NULL: any */
    /* Replaces this row if the section's member `variant_key` is the text variant_value. Has the
     * same options with other defaults. NULL: none. */
    const struct pm_open_row *variant;
    const char *variant_key, *variant_value;
};
struct pm_open_rows {
    const struct pm_open_row *rows;
    size_t count;
    /* For a well-known name that has no row: returns the reason, as text that follows the name;
     * NULL: unknown name. The pointer itself may be NULL. */
    const char *(*refusal)(const char *name);
    const char *(*known_as)(const char *name); /* row's name for an alias, or NULL; may be NULL */
};
/* Options that a task adds to a section. section: "loss", or "loss.NAME" for the keys of an
 * object inside a section, which the task reads. */
struct pm_task_section {
    const char *section;
    const struct pm_opt *opts;
};
/* A metric that evaluations report. */
struct pm_metric_kind {
    const char *name;
    bool higher_is_better;
    const char *tag; /* name in TensorBoard; NULL: "eval/NAME" */
    const char *needs; /* without which a net's evaluation lacks it: "more than five classes" */
};
struct pm_config;
struct pm_config_multiplier { const char *pattern; float factor; };
/* A default that a task sets in place of the key's own. */
struct pm_task_default {
    const char *key;   /* "section.key" */
    const char *value; /* JSON */
    const char *when;  /* the default applies only while this key of a section has the text `is`;
                        * NULL: always */
    const char *is;
};
/* A task's entries for the config. All pointers must outlive the config. */
struct pm_open_task {
    const char *name;
    const struct pm_task_section *sections; /* ends with a NULL section; NULL: none */
    const struct pm_metric_kind *metrics;   /* metrics of all its nets; ends with a NULL name */
    /* Task-specific defaults. A default with `when` follows the default of that key. The list ends
     * with a NULL key; NULL: none. */
    const struct pm_task_default *defaults;
    const struct pm_config_multiplier *multipliers; /* default of optim.multipliers */
    int multiplier_count;
    const char *nets_of; /* another task whose nets this one can use beside its own; NULL: none */
    /* Checks combinations of values. Returns PM_ECONFIG if they conflict. NULL: nothing to
     * check. */
    int (*check)(const struct pm_config *c);
};
struct pm_open_sections {
    struct pm_open_rows models, optimizers, preprocessings;
    struct pm_open_rows augmentations; /* entries of input.augment */
    const struct pm_open_task *const *tasks; /* the first is the default */
    size_t task_count;
};

/* ---- sections -------------------------------------------------------------------------- */

struct pm_config_model {
    const char *name;           /* a named net; NULL: layers or onnx is given */
    int num_classes;            /* 0 = the data's */
    const struct cJSON *layers; /* a layer list, or NULL */
    const char *onnx;           /* an ONNX model, or NULL */
    const char *onnx_logits;    /* name of the logits in the ONNX model; NULL = its output */
    bool onnx_new_head;         /* a fresh last layer, for other classes */
    int quantize_delay;         /* first step with fake quantisation, from 1; -1: none */
    int quantize_freeze_steps;  /* batch norm is frozen after this step; 0: never */
    bool quantize_symmetric;    /* ranges reach as far below 0 as above it */
};

enum pm_make { PM_MAKE_NONE, PM_MAKE_SHAPES, PM_MAKE_BARS };
enum pm_on_corrupt { PM_CORRUPT_ERROR, PM_CORRUPT_SKIP };
struct pm_config_data {
    const char *folder;         /* NULL if the command needs no data */
    int make;                   /* enum pm_make: built-in data to draw if folder does not exist */
    const char *train_split;
    const char *eval_split;     /* NULL: the experiment chooses (experiment.h) */
    const struct cJSON *folders; /* several sources of training records; NULL: folder */
    const struct cJSON *convert; /* options for folders of pictures; NULL: the defaults */
    double repeat_threshold;    /* records of rarer classes come more often; 0: off */
    bool shuffle;               /* shuffle training records; false: file order */
    int sample_1_of_n;          /* use every n-th record of the training split */
    int on_corrupt;             /* enum pm_on_corrupt */
    int threads;                /* 0 = cores */
    int ring;                   /* batches prepared ahead */
};

struct pm_config_input {
    struct pm_ints size;        /* {side} or {height, width}; none = the net's */
    struct pm_ints eval_size;   /* none = size */
    int channels;               /* 0 = the preprocessing's, the net's or the data's */
    bool scaled_jpeg;           /* training decodes large JPEGs at reduced size */
    const char *preprocessing;  /* resolved: never NULL when model.name is given */
    const struct cJSON *augment; /* training rows that replace the preprocessing's, or NULL */
};

struct pm_config_loss {
    float label_smoothing;
    bool regularization;        /* false: as if every weight decay were 0 */
};

struct pm_config_optim {
    const char *name;
    float weight_decay;         /* NAN = the net's */
    float clip_norm;            /* norm of all gradients together; 0 = off */
    float clip_variable_norm;   /* norm of each variable's gradient; 0 = off */
    struct pm_strings trainable; /* regular expressions matched at the start of a variable's name;
                                  * none = all */
    struct pm_strings freeze;   /* the same: variables that are not trained */
    const struct cJSON *multipliers; /* as written; parsed below */
    const struct pm_config_multiplier *multiplier; /* in written order; the first match counts */
    int multiplier_count;
    float moving_average_decay; /* decay of the variables' averages; 0 = no averages */
    bool moving_average_ramp;   /* use a smaller decay in the first steps */
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
    double min_lr;              /* exponential: lowest rate, also in the warm-up */
    double end_lr, power;
    bool cycle;
    int64_t warmup_steps;       /* 0 = from warmup_epochs */
    double warmup_epochs;
    double warmup_lr;           /* rate at step 0 */
    int warmup_shape;           /* enum pm_warmup_shape */
    bool warmup_shift;          /* the policy's steps begin after the warm-up */
    int64_t hold_steps;         /* cosine: steps at base_lr between warm-up and decay */
    struct pm_ints boundaries;  /* piecewise: first step of each new rate, ascending */
    struct pm_floats rates;     /* one rate per boundary */
    int epoch_count;            /* enum pm_epoch_count */
};

enum pm_init_restore { PM_RESTORE_VARIABLES, PM_RESTORE_ALL };
enum pm_init_type { PM_INIT_CLASSIFICATION, PM_INIT_DETECTION };
struct pm_config_init {
    const char *checkpoint;     /* NULL = none */
    int restore;                /* enum pm_init_restore */
    struct pm_strings exclude_scopes;   /* name prefixes that are not restored */
    bool ignore_missing;
    int averages;               /* enum pm_averages: restore the checkpoint's averages as values */
    int type;                   /* enum pm_init_type: of a detector's checkpoint */
    bool load_all;              /* a detector's predictors too */
    struct pm_strings trainable_scopes; /* regular expressions matched at the start; none = all */
};

struct pm_config_device {
    const char *name;           /* name for pm_device_find */
    float share;                /* part of the batch, relative to others; all 0: run.balance */
    int threads;                /* CPU threads; 0 = chosen from the machine */
};

/* Values of some of the processes that train together. */
struct pm_config_replica {
    const char *host;           /* pattern of host names; NULL: rank is set */
    int rank;                   /* -1: host is set */
    const struct cJSON *devices_json;
    const struct pm_config_device *devices; /* NULL: the top-level list */
    int devices_count;
    float share;                /* of the batch, of each process; 0: the sum of its devices' */
    int threads;                /* of CPU devices that set none; 0: chosen from the machine */
    const char *data_folder;    /* NULL: data.folder */
};

/* Top-level values that pm_config_for_replica has replaced. */
struct pm_config_top {
    const struct pm_config_device *devices;
    int devices_count;
    const char *data_folder;
};

enum pm_balance { PM_BALANCE_EQUAL, PM_BALANCE_AUTO };
enum pm_batch_norm_update { PM_BATCH_NORM_FIRST, PM_BATCH_NORM_ALL, PM_BATCH_NORM_LAST };
enum pm_log_loss { PM_LOG_LOSS_MEAN, PM_LOG_LOSS_SUM };
enum pm_verifying { PM_VERIFY_AUTO, PM_VERIFY_OFF };
enum pm_summary_tags { PM_TAGS_OWN, PM_TAGS_SLIM, PM_TAGS_INCEPTION, PM_TAGS_DEEPLAB };
struct pm_config_run {
    const char *folder;         /* NULL if the command needs none */
    int64_t steps;              /* 0 = until stopped; PM_UNSET = by epochs alone */
    double epochs;              /* training ends after so many passes; NAN = by steps alone */
    int64_t pause_step;         /* training stops after this step and can be resumed; 0 = never */
    int batch_size;             /* examples per step, over all clones; PM_WORD: pm_settle_batch */
    int64_t seed;
    int log_every_steps;
    int log_loss;               /* enum pm_log_loss: of several clones */
    int64_t save_every_steps;   /* 0 = off */
    double save_every_secs;     /* 0 = off */
    bool save_first_step;       /* also a checkpoint of step 0 */
    int keep;                   /* newest checkpoints kept; 0 = all */
    double keep_every_hours;    /* also keeps one per this many hours; 0 = none */
    const char *keep_best;      /* metric, "auto" or "none" */
    const struct cJSON *early_stop; /* as written; pm_config.early_stop has the values */
    int micro_batches;
    int recompute;              /* enum pm_recompute (plan.h), in its order */
    int snapshot_every_steps;   /* host snapshots for device loss; 0 = only at checkpoints */
    double segment_ms;          /* limit of one submission's estimated time */
    double hang_seconds;        /* a device without progress for this long is lost; 0 = never */
    double compile_seconds;     /* the same for a driver that finishes no shader; 0 = never */
    bool validate;              /* use Vulkan's validation layer */
    int balance;                /* enum pm_balance */
    int replicas;               /* processes that must train together; 0 = as many as are started */
    int task;                   /* number that this process must have; PM_UNSET: any */
    int exchange;               /* enum pm_replica_wire (replicas.h): of gradients */
    bool sync_replicas;         /* false: processes train asynchronously */
    int replicas_to_aggregate;  /* of synchronous training: gradients of an update; <= 0: of all */
    int parameter_servers;      /* processes that hold the variables and do not train */
    int64_t startup_delay_steps; /* of asynchronous training */
    int batch_norm_update;      /* enum pm_batch_norm_update: source of the moving averages */
    struct pm_ints trace_steps; /* first and last step, or one step; none: no trace */
    int verify;                 /* enum pm_verifying */
    int summary_every_steps;    /* histograms and pictures for TensorBoard; 0 = not by steps */
    double summary_every_secs;  /* the same by time; 0 = not by time */
    int summary_tags;           /* enum pm_summary_tags: whose names values have */
    int summary_images;         /* number of the batch's pictures in a summary */
    bool summary_originals;     /* also the original pictures */
    bool summary_gradients;
    int summary_activations;    /* number of pictures whose activations are in a summary; PM_WORD:
                                 * those of the training pass */
};

/* run.early_stop */
struct pm_config_early_stop {
    const char *metric;         /* or "auto" */
    int patience;               /* evaluations without a better value */
    double min_delta;           /* a better value differs by more than this */
};

enum pm_averages { PM_AVERAGES_AUTO, PM_AVERAGES_ON, PM_AVERAGES_OFF };
struct pm_config_eval {
    const char *checkpoint;     /* file or folder; NULL = the newest of run.folder */
    int64_t every_steps;        /* during train; 0 = never */
    int batch_size;
    bool resize;                /* pictures are brought to input.eval_size; false: each keeps its
                                 * own size, also in predict */
    int64_t max_batches;        /* 0 = the whole split */
    int sample_1_of_n;          /* use every n-th record of the split */
    int max_runs;               /* --watch: largest number of evaluations; 0 = until run.steps */
    int averages;               /* enum pm_averages: evaluate with the averages; also for predict */
    double interval_secs;       /* --watch: smallest time between the starts of two evaluations */
};

enum pm_export_preprocessing { PM_EXPORT_NOTES, PM_EXPORT_FOLD };
enum pm_export_weights { PM_EXPORT_AUTO, PM_EXPORT_INSIDE, PM_EXPORT_BESIDE };
enum pm_export_checkpoint { PM_EXPORT_CHECKPOINT_EVAL, PM_EXPORT_CHECKPOINT_NONE };
struct pm_config_export {
    const char *file;           /* NULL = RUN/model.onnx */
    int checkpoint;             /* enum pm_export_checkpoint */
    bool training;              /* the net as training runs it */
    int batch_size;             /* 0 = any */
    struct pm_ints size;        /* none = input.eval_size */
    bool any_size;
    bool fold_batch_norm;
    int preprocessing;          /* enum pm_export_preprocessing */
    int weights;                /* enum pm_export_weights */
};

/* What varies between the runs of `pumice sweep`. */
struct pm_config_study {
    const char *folder;         /* NULL: not set */
    const char *metric;         /* or "auto" */
    int64_t seed;               /* of the draws; not run.seed */
    const struct cJSON *vary;   /* NULL: the config is not a study */
    int method;                 /* enum pm_study_method (study.h) */
    int runs, repeats;
    const struct cJSON *halving, *workers;
    bool share_devices;         /* workers may name the same device */
};

struct pm_config {
    struct pm_arena *arena;     /* owned; everything below lives in it or in tree */
    struct cJSON *tree;         /* owned: the merged file, without base, comments and the keys' own
                                 * defaults */
    const char *path;           /* as given */
    const char *task;           /* name of the task */
    const struct pm_open_task *task_row; /* NULL: open has no tasks */
    struct pm_config_model model;
    struct pm_config_data data;
    struct pm_config_input input;
    struct pm_config_loss loss;
    struct pm_config_optim optim;
    struct pm_config_schedule schedule;
    struct pm_config_init init;
    const struct pm_config_device *devices; /* at least one */
    int devices_count;
    const struct pm_config_replica *replicas; /* NULL: none */
    int replicas_count;
    const struct pm_config_replica *replica; /* set by pm_config_for_replica; NULL: none fits */
    struct pm_config_top top;                /* if replica is not NULL */
    struct pm_config_run run;
    struct pm_config_eval eval;
    struct pm_config_export exporting; /* section "export": that name is a C++ keyword */
    struct pm_config_study study;
    const struct pm_open_row *model_row, *optimizer_row, *preprocessing_row; /* NULL: none */
    const struct pm_open_row *const *augment_rows; /* per entry of input.augment; NULL: unchecked */
    const struct pm_config_early_stop *early_stop; /* NULL: off */
    const int (*buckets)[2]; /* input.buckets, of tasks that have this key: height, width; the first
                              * has the most pixels */
    int buckets_count;       /* 0: one size */
    struct pm_config_origins *origins; /* owned */
};

/* Reads, merges and checks a config. overrides: "run.steps=100", "model.layers.0.filters=8" (a
 * number is a list index; the value is JSON, else a string). If open holds no rows, names of nets,
 * optimizers and preprocessings are not checked and their options are ignored. Fails with
 * PM_ECONFIG, also if a file cannot be read. */
int pm_config_load(const char *path, const char *const *overrides, size_t n,
                   const struct pm_open_sections *open, struct pm_config **out);
/* Parses the same from text. name replaces the path in messages; base files are searched in its
 * folder. */
int pm_config_parse(const char *name, const char *text, const char *const *overrides, size_t n,
                    const struct pm_open_sections *open, struct pm_config **out);
void pm_config_destroy(struct pm_config **c);

/* Reads the options of the chosen row or of the task from a section, with defaults. Strings live in
 * the config's arena. If opts is NULL, does nothing. Not thread-safe. */
int pm_config_read(const struct pm_config *c, const char *section, const struct pm_opt *opts,
                   void *out);
/* Fails if value is NULL; the message names the key and the remedy. For keys that only some
 * commands need. */
int pm_config_need(const struct pm_config *c, const char *key, const char *value);
/* Fails if neither run.steps nor run.epochs is set. Only training needs them. */
int pm_config_need_steps(const struct pm_config *c);
/* Returns height and width for training (the first of the buckets) or evaluation; 0 and 0 if the
 * config sets none (then the net's size is used). */
void pm_config_size(const struct pm_config *c, bool train, int *height, int *width);

/* Returns the first entry of `replicas` that fits a process, or NULL. */
const struct pm_config_replica *pm_config_replica_of(const struct pm_config *c, int rank,
                                                     const char *host);
/* Replaces devices and data.folder by those of the first entry of `replicas` that fits this
 * process, and sets c->replica. Call it once, before the config is used. */
void pm_config_for_replica(struct pm_config *c, int rank, const char *host);
/* Returns the resolved config as JSON, with the top-level values that pm_config_for_replica has
 * replaced. Loading it again gives the same config. cJSON_Delete frees it. */
struct cJSON *pm_config_dump(const struct pm_config *c);
/* Returns the key that a word probably means: a key without its section, a flag of the original
 * programs, another framework's word, or a misspelt key. NULL: none is similar. In the arena, or
 * constant. */
const char *pm_config_suggest(const char *word, struct pm_arena *a);
/* Returns the origin of the value at a dotted path: "x.json:12", "command line", "default", or
 * "default of TASK" if the task has a default of its own. */
const char *pm_config_origin(const struct pm_config *c, const char *path);
/* Returns the place of a value for messages: "x.json:12", "command line", or the config's file for
 * a default. */
const char *pm_config_source(const struct pm_config *c, const char *path);
/* Whether the value at a dotted path is a default, of the key or of the task. */
bool pm_config_is_default(const struct pm_config *c, const char *path);

/* ---- documentation --------------------------------------------------------------------- */

/* Returns the JSON Schema of a config file. cJSON_Delete frees it. */
struct cJSON *pm_config_schema(const struct pm_open_sections *open);
/* Returns the tables of docs/keys.md as Markdown: every key with type, default, range and meaning.
 * Freed with pm_free. */
char *pm_config_keys_markdown(const struct pm_open_sections *open);
/* Returns the tables of docs/migrating.md as Markdown: each flag of the original programs with its
 * replacement key. is_field: whether the page's tables of pipeline configs have a name, which is
 * then left out here; NULL: they have none. Freed with pm_free. */
char *pm_config_flags_markdown(const struct pm_open_sections *open,
                               bool (*is_field)(const char *name));

#ifdef __cplusplus
}
#endif

#endif
