/* experiment: a config combined with its data: which net trains on which data. train, eval, predict
 * and config show --plan begin here. */
#ifndef PM_EXPERIMENT_H
#define PM_EXPERIMENT_H

#include "optim/optimizer.h"

#include <pumice/checkpoint.h>
#include <pumice/config.h>
#include <pumice/data.h>
#include <pumice/import.h>
#include <pumice/task.h>

struct pm_experiment {
    const struct pm_config *config;   /* borrowed, or a copy in the arena whose data.folder is the
                                       * conversion of a folder of pictures */
    struct pm_arena *arena;           /* owned */
    const struct pm_task_row *task_row;
    struct pm_task *task;             /* owned; made by task_row */
    struct pm_task_facts facts;
    struct pm_field_list train_fields, eval_fields; /* owned: the arrays of a batch */
    struct pm_frame *frames;          /* sizes of training pictures, the largest first: that of the
                                       * facts, the only one if nothing is trained; in the arena */
    int frames_count;
    struct pm_dataset *train, *eval;  /* owned; NULL when not opened */
    struct pm_experiment_folders *folders; /* data.folders; NULL: not set */
    uint64_t *part_records;           /* of each part of train; NULL without folders */
    struct pm_order *order;           /* owned; of training records; NULL: the loader's own */
    struct pm_dataset_info data;      /* of the opened split, else the facts that
                                       * pm_experiment_open_classes found; 0 and NULL, ignore_label
                                       * -1, if it found nothing */
    const char *from;                 /* path of the checkpoint that was searched for classes;
                                       * borrowed; NULL: none */
    const char *eval_split;           /* data.eval_split, or the split that was chosen; NULL: eval
                                       * is not opened */
    int64_t steps;                    /* run.steps, or fewer by run.epochs; 0 = until stopped */
    int64_t epochs_steps;             /* steps of run.epochs; 0: not set, or train not opened */
    const struct pm_net_row *net_row; /* NULL: model.layers or model.onnx */
    struct pm_import *onnx;           /* owned; NULL: the net is not imported */
    void *net_cfg;
    const struct pm_optimizer *optimizer;
    void *optimizer_cfg;
    float weight_decay;               /* resolved: the net's own if the config sets none */
    bool plain;                       /* nets are built without model.quantize_delay, for
                                       * printing */
    struct pm_built_net *nets;        /* owned; every net built so far */
    size_t nets_count, nets_capacity;
    struct pm_experiment_regexes *regexes; /* of experiment_scopes.c; NULL: not compiled */
};
/* The splits of the data to open. */
enum { PM_OPEN_TRAIN = 1, PM_OPEN_EVAL = 2 };
/* Returns the name of the net for messages and reports: "lenet", "layer list" or the ONNX model's
 * path. */
const char *pm_experiment_net_name(const struct pm_config *c);
/* Returns open if data.folder exists and needs no conversion, else 0. For commands that need the
 * net, and the data only for its sizes. */
int pm_experiment_if_there(const struct pm_config *c, int open);
/* Whether data.folder is a folder of pictures that the task reads and that is not converted yet. */
bool pm_experiment_unconverted(const struct pm_config *c);
/* Opens the experiment. If data.folder is missing and the config asks for built-in data (data.make
 * "shapes"), creates it. If it is a folder of pictures, converts it once (experiment_photos.c).
 * open 0 and a folder of pictures: the classes are its subfolders. */
int pm_experiment_open(const struct pm_config *c, int open, struct pm_experiment **out);
/* Opens no split: for commands that read no pictures of the data. The number and names of the
 * classes, and the size of pictures if the config leaves it open, come from the checkpoint `from`:
 * from the data that training stored in it, or from the labels in an ONNX file's metadata. If it
 * has none, or from is NULL, they come from the data folder, from any split. Values of the config
 * take precedence over both. from is borrowed. PM_ECONFIG if a value is missing in all of them. */
int pm_experiment_open_classes(const struct pm_config *c, const struct pm_checkpoint *from,
                               struct pm_experiment **out);
/* Returns PM_EDATA with a remedy if the file of model.onnx does not exist. model.onnx must be
 * set. */
int pm_experiment_need_onnx(const struct pm_config *c);
void pm_experiment_close(struct pm_experiment **e);
/* Returns the steps of a run with this batch and this value of run.steps, or fewer by run.epochs;
 * 0 = until stopped. The training split is open. */
int64_t pm_experiment_steps(const struct pm_experiment *e, int batch, int64_t steps);

/* Finds the split to evaluate: data.eval_split, or if it is not set the first of validation, val,
 * test and val_fine that data.folder has, which is logged. PM_EDATA if the folder has none of them;
 * the message lists its splits. data.folder must be set. a: for the list of splits. */
int pm_experiment_eval_split(const struct pm_config *c, struct pm_arena *a, const char **out);

/* Returns the size of training's or evaluation's pictures after preprocessing. */
struct pm_frame pm_experiment_frame(const struct pm_experiment *e, bool train);

/* Selects a net: its use, and the number and size of its pictures, height x width. 0 and 0: the
 * size of training for PM_USE_TRAIN, of evaluation for the other uses. */
struct pm_net_want {
    enum pm_use use;
    int batch, height, width;
};
/* Returns the net for this selection; its first input is "images". A net is built once and kept
 * until the experiment is closed. Later calls return the same net in *out, which nobody may change.
 * The caller calls pm_net_destroy. outputs (may be NULL): the heads for HEADS and TRAIN, else the
 * outputs. */
int pm_experiment_net(struct pm_experiment *e, struct pm_net_want want, struct pm_net **out,
                      struct pm_outputs *outputs);
/* Gives up the nets for this use and size, of any batch. A net that somebody holds stays alive
 * until its last pm_net_destroy. */
void pm_experiment_forget(struct pm_experiment *e, struct pm_net_want want);
/* Returns the node whose classes the training metrics count; node NULL: none. */
struct pm_train_output pm_experiment_train_output(const struct pm_experiment *e);
/* Returns the batch size of the net that training builds first: the micro-batch of one clone. With
 * several clones it is 1, for the net that only supplies the variables' names. */
int pm_experiment_train_batch(const struct pm_config *c);
/* Creates the plan of a net for EVAL or PREDICT; its outputs are copied out. Its kernels are
 * verified before their first use (verified_plan.h). */
int pm_experiment_plan(struct pm_experiment *e, struct pm_net *net, int batch, enum pm_use use,
                       const struct pm_outputs *outputs, struct pm_device *d,
                       struct pm_variables *v, int slots, struct pm_shared_memory *shared,
                       struct pm_plan **out);
/* Returns the factor of a variable's gradient: 0 if frozen, else the first match of
 * optim.multipliers, else 1. ctx: the experiment. */
float pm_experiment_multiplier(const char *variable, void *ctx);
/* Creates the loader of the training split. slice: the part of the batch that this process loads.
 * numbers: of the batches; draw as in pm_loader_options, else they are consecutive. */
struct pm_batch_numbers {
    uint64_t first;
    bool (*draw)(void *ctx, uint64_t *step);
    void *ctx;
};
int pm_experiment_loader(struct pm_experiment *e, int batch, struct pm_batch_slice slice,
                         struct pm_batch_numbers numbers, struct pm_sampler *sampler,
                         struct pm_loader **out);
/* Creates the loader of the evaluation split. share: the part of the pass that this process
 * evaluates. groups: of the records, if each picture keeps its own size; else NULL. */
int pm_experiment_eval_loader(struct pm_experiment *e, struct pm_loader_share share,
                              const struct pm_frame_groups *groups, struct pm_sampler *sampler,
                              struct pm_loader **out);
struct pm_clone_spec;
/* Returns the options of the config's run section for every device that is opened. */
struct pm_device_options pm_experiment_device_options(const struct pm_config *c);
/* Resolves the devices section: specs and number of the clones; in e's arena. */
int pm_experiment_devices(struct pm_experiment *e, struct pm_clone_spec **specs, int *count);
/* If the config names "auto" and this selects the CPU, logs why no GPU is used. Call it once in a
 * command. Fails if the devices cannot be listed. */
int pm_experiment_say_devices(const struct pm_experiment *e);
/* Fills in the options of pm_clones_create for training this experiment; the caller sets slots and
 * the flags. They live as long as e. */
struct pm_clones_options;
void pm_experiment_clones(struct pm_experiment *e, const struct pm_clone_spec *specs, int count,
                          struct pm_clones_options *out);

#endif
