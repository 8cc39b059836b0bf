/* task: what a sample, a loss, a metric and a picture are. The trainer, eval and predict are the
 * same for all tasks; a row of src/tasks/ fills in the rest. */
#ifndef PUMICE_TASK_H
#define PUMICE_TASK_H

#include <pumice/config.h>
#include <pumice/data.h>
#include <pumice/net.h>
#include <pumice/sample.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* What the config and the data together say of pictures and classes. The experiment writes it once,
 * before it opens the task. Pointers are borrowed. */
struct pm_task_facts {
    const struct pm_config *config;
    const struct pm_dataset_info *data; /* what is known of the data */
    int height, width, channels;      /* of training pictures after preprocessing */
    int eval_height, eval_width;
    int num_classes;                  /* of the logits: the data's less labels_offset */
    int labels_offset;
    const char *const *labels;        /* num_classes names (offset applied), NULL where unknown */
    const struct pm_preprocessing *preprocessing;
    const void *preprocessing_cfg;    /* its options */
    const struct pm_augment *augment; /* training's rows instead of the preprocessing's; NULL: its own */
};
/* A task of one experiment: the facts, the task's own options, and what depends on the net. Opaque:
 * each task has its own. After settle() it is constant, and any thread may read it. */
struct pm_task;

/* A picture that a task draws, and what it is called. */
enum { PM_MAX_PICTURES = 8 };
struct pm_picture {
    const char *what;       /* NULL: there is none */
    struct pm_image8 image; /* freed with pm_image_free */
};

/* What a net is made for. */
enum pm_use {
    PM_USE_HEADS,   /* images to heads and no further */
    PM_USE_TRAIN,   /* and the losses */
    PM_USE_EVAL,    /* what score_add takes; the fields are inputs where they are wanted */
    PM_USE_PREDICT, /* what present takes */
    PM_USE_EXPORT,  /* what an exported model gives */
};
/* What comes out of a net: names of nodes, which live as long as the net, in the task's order. */
enum { PM_MAX_OUTPUTS = 12 };
struct pm_outputs {
    const char *node[PM_MAX_OUTPUTS + 1]; /* NULL-terminated */
    int count;
    unsigned lengths; /* a bit for each whose two channels are rows and columns of the input */
};
/* Builds the config's net over these images: again for others, under another net->pass. */
struct pm_net_maker {
    int (*heads)(void *ctx, struct pm_net *net, struct pm_node *images, struct pm_heads *out);
    void *ctx;
};

/* Context of pm_loader_options.make; lives as long as the loader. */
struct pm_sampler {
    const struct pm_task *task;
    bool train;
};

/* Examples of a training batch to look at: arrays of all of them. */
struct pm_shown {
    int count;
    const void *const *field;     /* in the order of the fields; NULL for the pictures */
    int heads;                    /* of the net, in its order; 0: could not be had */
    const float *const *head;     /* NULL where one has no values of its own */
    const struct pm_shape *shape; /* of one example of each head */
};

/* Examples of an evaluation that a report shows. */
enum { PM_MAX_SAMPLES = 24 };

/* The metrics of one net's evaluations; list is freed with pm_free. */
struct pm_metric_list {
    const struct pm_metric_kind **list; /* of pm_open_task.metrics */
    size_t count, capacity;
};
/* Classes that the training net predicts of its batches, and how the metrics of these are
 * called. */
enum { PM_TRAIN_METRICS = 4 }; /* mean IoU and accuracy of all batches so far, and of the last one */
struct pm_train_output {
    const char *node;     /* its values, I32, are copied out in every step; NULL: none */
    int field;            /* of the batch: the true classes */
    size_t count;         /* elements of an example */
    int classes;
    int32_t ignore;       /* the true class of elements that do not count */
    const char *names[PM_TRAIN_METRICS], *tags[PM_TRAIN_METRICS]; /* in metrics.jsonl, in TensorBoard */
};
/* What the export of a net needs of the task beside its outputs. */
struct pm_task_export {
    bool pads;         /* smaller pictures are resized and padded inside the graph */
    int output_stride; /* of the exported net; 0: the trained one's */
    bool probabilities; /* a softmax behind the first output */
};

/* Running sums of one evaluation; opaque, owned by its maker. */
struct pm_score;

/* What `pumice dataset inspect` shows of a task's own parts of a record, whatever the config's task
 * is. */
struct pm_task_inspect {
    /* Adds the text of a value of bytes under this key; false: the key is not the task's, or a
     * warning was logged because the value is damaged. *own: the key is the task's. */
    bool (*value)(const char *key, const uint8_t *data, size_t size, struct pm_str *out, bool *own);
    /* Checks the task's parts. Adds to counts how often each of its labels below counted occurs, to
     * *more the others. 1: the record has such parts, 0: none. PM_EDATA, PM_ECORRUPT. */
    int (*check)(const struct pm_example *e, const struct pm_dataset_info *info, const char *where,
                 uint64_t *counts, size_t counted, uint64_t *more);
    /* Writes them as pictures, their paths beginning with stem. */
    int (*save)(const struct pm_example *e, const struct pm_dataset_info *info, const char *stem);
};

struct pm_task_row {
    struct pm_open_task config; /* its name, option tables and metrics */
    bool spatial; /* outputs are maps over the picture, of a size that follows the picture's */
    /* The labels' classes, where they are not num_classes and labels of the data. NULL: they
     * are. */
    void (*classes)(struct pm_dataset_info *data);
    /* What is subtracted from labels. NULL: 0. PM_ECONFIG. */
    int (*labels_offset)(const struct pm_config *c, int *out);
    /* The task of an experiment; the facts are copied. PM_ECONFIG when parts of them do not fit
     * each other. close: frees it, accepts NULL in *t. */
    int (*open)(const struct pm_task_facts *facts, struct pm_task **out);
    void (*close)(struct pm_task **t);
    /* What is learnt, for messages: "5 classes". */
    void (*describe)(const struct pm_task *t, struct pm_str *out);
    /* Which training batches are counted by. NULL, or out->node NULL: none. */
    void (*train_output)(const struct pm_task *t, struct pm_train_output *out);
    void (*exporting)(const struct pm_task *t, struct pm_task_export *out); /* into zeros; NULL: these */
    /* Adds the batch's arrays for training or evaluation to the empty list; the first is
     * "images". */
    void (*fields)(const struct pm_task *t, bool train, struct pm_field_list *out);
    /* pm_loader_options.make with ctx = struct pm_sampler. */
    int (*make)(void *sampler, const uint8_t *record, size_t size, uint64_t seed, uint64_t step,
                uint32_t example, const char *where, void *const *out);
    /* The record's picture as it is, before any preprocessing. */
    int (*picture)(const struct pm_task *t, const uint8_t *record, size_t size, const char *where,
                   struct pm_image8 *out);
    /* Settles what depends on the net, by its heads for training pictures. NULL: nothing does. */
    int (*settle)(struct pm_task *t, const struct pm_heads *heads);
    /* Of a net from a layer list: the heads that nodes are by their names, beside the logits, which
     * are the last node's or those of the name "logits". NULL: there are no others. */
    void (*find_heads)(struct pm_net *net, struct pm_heads *heads);
    /* PM_OK when the net's last layer gives what the task needs of so many pictures; else
     * PM_ECONFIG. */
    int (*check_heads)(const struct pm_task *t, const struct pm_heads *heads, int batch);
    /* Adds the loss layers. The net has inputs named as the fields. */
    void (*add_loss)(struct pm_net *net, const struct pm_heads *heads, const struct pm_task *t);
    /* Builds the net over images and appends what makes the outputs for use, EVAL, PREDICT or
     * EXPORT. NULL: the logits are the output of all three. */
    int (*add_outputs)(struct pm_net *net, struct pm_node *images, const struct pm_net_maker *maker,
                       const struct pm_task *t, enum pm_use use, struct pm_outputs *out);
    /* Adds the net's metrics to the empty list; the first is the one that stands for all. */
    void (*metrics)(const struct pm_task *t, struct pm_metric_list *out);
    /* TensorBoard's tag of a metric, or of the class `label` in a metric that is a list (-1: it is
     * none); out stays empty: that of pm_metric_kind, and none for lists. NULL: so for all. Not
     * thread-safe. */
    void (*tag)(const struct pm_config *c, const char *metric, int label, struct pm_str *out);
    struct pm_score *(*score_create)(const struct pm_task *t);
    void (*score_destroy)(struct pm_score **m);
    /* outputs: host memory of the outputs for EVAL, of the batch, whose `valid` first examples
     * count. loss: the sum of the loss layers that add_outputs made, 0 without any. */
    int (*score_add)(struct pm_score *m, const struct pm_batch *batch, const void *const *outputs,
                     double loss);
    /* One member per metric into object; null where there is no finite value. */
    void (*score_report)(const struct pm_score *m, struct cJSON *object);
    /* What report.html shows of an evaluation: members of evaluation.json beside step, count,
     * metrics and samples (classification: labels, labels_offset, per_class, confusion,
     * unanswered). */
    void (*score_detail)(const struct pm_score *m, struct cJSON *object);
    /* Examples to look at, the most wrong first, by their record in the dataset; returns their
     * number. Which ones does not depend on the examples' order or batches. */
    int (*score_samples)(const struct pm_score *m, uint64_t records[PM_MAX_SAMPLES]);
    /* Example i of score_samples, whose record this is: what was said of it into object (with
     * "right"), what is to be seen of it into pictures (zeroed): "image" first. */
    int (*score_sample)(const struct pm_score *m, int i, const uint8_t *record, size_t size,
                        const char *where, struct cJSON *object,
                        struct pm_picture pictures[PM_MAX_PICTURES]);
    /* Of example i of those that TensorBoard shows: its labels and what the heads say into pictures
     * (zeroed), called as the ends of tags. NULL: there is nothing to see. */
    void (*paint)(const struct pm_task *t, const struct pm_shown *shown, int i,
                  struct pm_picture pictures[PM_MAX_PICTURES]);
    /* One picture's prediction, outputs being those for PREDICT, as JSON (classification: label,
     * name, probability, top 5), and drawn into pictures (zeroed; NULL: not wanted), each called as
     * the end of its file's name is to be. picture: as it is in its file, in colour; without pixels
     * where nothing is drawn. */
    int (*present)(const struct pm_task *t, const void *const *outputs,
                   const struct pm_image8 *picture, struct cJSON *object,
                   struct pm_picture pictures[PM_MAX_PICTURES]);
    /* A prediction, as present() made the object, in the line that `pumice predict` prints. NULL:
     * none. */
    void (*print)(const struct cJSON *object, struct pm_str *out);
    const struct pm_task_inspect *inspect; /* NULL: records have nothing of its own beside the label */
};
/* Writes the record's bytes under the key, where it has some, into the file STEM.ENDING; the ending
 * is their format's, "raw" where that is unknown. PM_EDATA, or the error of writing. */
int pm_record_save(const struct pm_example *e, const char *key, const char *stem);
/* Every task, in the order of tasks.def. */
const struct pm_task_row *const *pm_tasks(size_t *count);
const struct pm_task_row *pm_task_find(const char *name); /* "classification", or NULL */
/* Every task's part of the config, in the order of tasks.def. */
const struct pm_open_task *const *pm_open_tasks(size_t *count);

#ifdef __cplusplus
}
#endif

#endif
