/* experiment: a config brought together with its data: what is trained on what. train, eval,
 * predict and config show --plan begin here. */
#ifndef PM_EXPERIMENT_H
#define PM_EXPERIMENT_H

#include "optim/optimizer.h"

#include <pumice/checkpoint.h>
#include <pumice/config.h>
#include <pumice/data.h>
#include <pumice/import.h>
#include <pumice/task.h>

#include <regex.h>

struct pm_experiment {
    const struct pm_config *config;   /* borrowed */
    struct pm_arena *arena;           /* owned */
    const struct pm_task_row *task_row;
    struct pm_task *task;             /* owned; of task_row */
    struct pm_task_facts facts;
    struct pm_field_list train_fields, eval_fields; /* owned: the arrays of a batch */
    struct pm_dataset *train, *eval;  /* owned; NULL when not opened */
    struct pm_dataset_info data;      /* of the opened split, else what pm_experiment_open_classes found;
                                       * 0 and NULL, ignore_label -1, where it found nothing */
    const char *from;                 /* path of the checkpoint that it looked in; borrowed; NULL: none */
    int64_t steps;                    /* run.steps, or fewer by data.num_epochs; 0 = until stopped */
    const struct pm_net_row *net_row; /* NULL: model.layers or model.onnx */
    struct pm_import *onnx;           /* owned; NULL: another */
    void *net_cfg;
    const struct pm_optimizer *optimizer;
    void *optimizer_cfg;
    float weight_decay;               /* resolved: the net's own when the config names none */
    bool plain;                       /* nets are built without model.quantize_delay, to be printed */
    struct pm_built_net *nets;        /* owned; every net that was built so far */
    size_t nets_count, nets_capacity;
    struct pm_experiment_regexes *regexes; /* freezing, multipliers, trainable scopes */
};
/* Which parts of the data are opened. */
enum { PM_OPEN_TRAIN = 1, PM_OPEN_EVAL = 2 };
/* "lenet", "layer list" or the ONNX model's path: what a net is called in messages and reports. */
const char *pm_experiment_net_name(const struct pm_config *c);
/* open where data.folder is there, else 0: for what needs the net, and the data only to size it. */
int pm_experiment_if_there(const struct pm_config *c, int open);
/* A missing data.folder is made when the config asks for built-in data (data.make "shapes"). */
int pm_experiment_open(const struct pm_config *c, int open, struct pm_experiment **out);
/* Opens no split: for commands that read no pictures of the data. The number and names of the
 * classes, and the size of pictures where the config leaves it open, come from the checkpoint
 * `from` (what training wrote into it, or the labels in an ONNX file's metadata). Where it has
 * none, or from is NULL, they come from the data folder, whichever splits that has. Values of the
 * config come before both. from is borrowed. PM_ECONFIG where a value is missing in all of them. */
int pm_experiment_open_classes(const struct pm_config *c, const struct pm_checkpoint *from,
                               struct pm_experiment **out);
/* PM_EDATA with a remedy where model.onnx, which is given, names no file. */
int pm_experiment_need_onnx(const struct pm_config *c);
void pm_experiment_close(struct pm_experiment **e);

/* Which net is wanted: for so many pictures of height x width; 0 and 0: of training for
 * PM_USE_TRAIN, of evaluation for the other uses. */
struct pm_net_want {
    enum pm_use use;
    int batch, height, width;
};
/* The net for this; its first input is "images". It is built once, and kept until the experiment is
 * closed: asked for again, *out is the same net, which nobody changes. The caller calls
 * pm_net_destroy. outputs (may be NULL): the heads for HEADS and TRAIN, else what comes out. */
int pm_experiment_net(struct pm_experiment *e, struct pm_net_want want, struct pm_net **out,
                      struct pm_outputs *outputs);
/* What training batches are counted by; node NULL: nothing. */
struct pm_train_output pm_experiment_train_output(const struct pm_experiment *e);
/* Pictures of the net that training begins with: what one clone takes at once; of several clones 1,
 * for the net that holds the names of the variables. */
int pm_experiment_train_batch(const struct pm_config *c);
/* The plan of a net for EVAL or PREDICT, its outputs copied out; its kernels are verified before
 * their first use (verified_plan.h). shared: memory of its activations, or NULL (plan.h). */
int pm_experiment_plan(struct pm_experiment *e, struct pm_net *net, int batch, enum pm_use use,
                       const struct pm_outputs *outputs, struct pm_device *d,
                       struct pm_variables *v, int slots, struct pm_shared_memory *shared,
                       struct pm_plan **out);
/* Gives a net of pm_experiment_net back, as pm_net_destroy does, and keeps it no longer. */
void pm_experiment_forget(struct pm_experiment *e, struct pm_net **net);
/* Factor of a variable's gradient: 0 frozen, else optim.multipliers' first match, else 1. ctx: the
 * experiment. */
float pm_experiment_multiplier(const char *variable, void *ctx);
/* Loader of a split. slice: of the batch, made here. first_step: of training. */
int pm_experiment_loader(struct pm_experiment *e, bool train, int batch,
                         struct pm_batch_slice slice, uint64_t first_step,
                         struct pm_sampler *sampler, struct pm_loader **out);
/* The devices section resolved: specs of clones, count; in e's arena. */
struct pm_clone_spec;
/* What the config's run section says for every device that is opened. */
struct pm_device_options pm_experiment_device_options(const struct pm_config *c);
int pm_experiment_devices(struct pm_experiment *e, struct pm_clone_spec **specs, int *count);
/* What pm_clones_create takes to train this experiment; slots and the flags are the caller's to
 * set. Lives as long as e. */
struct pm_clones_options;
void pm_experiment_clones(struct pm_experiment *e, const struct pm_clone_spec *specs, int count,
                          struct pm_clones_options *out);

#endif
