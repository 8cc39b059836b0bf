/* task: what a sample, a loss, a metric and a picture are. The trainer, eval and predict are the same
 * for all tasks; a row of src/tasks/ fills in the rest. */
#ifndef PUMICE_TASK_H
#define PUMICE_TASK_H

#include <pumice/config.h>
#include <pumice/data.h>
#include <pumice/net.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* What a net with heads for instances is trained and scored by. */
struct pm_instance_setup {
    bool on;                 /* the net has heads of centres and offsets */
    int mode;                /* enum pm_instance_mode */
    struct pm_ints things;   /* classes that instances are of; borrowed */
    int label_divisor;       /* of instance maps: class * this + the instance's number in it, from 1 */
    int center_sigma;        /* of the targets, pixels; 0: the mode's */
    int small_area;          /* pixels: of smaller ones the classes' loss has */
    float small_weight;      /* this weight */
    const struct pm_config_panoptic *panoptic; /* how they are grouped and scored */
};

/* What segmentation takes from the config; lists are borrowed from there. */
struct pm_pixels_setup {
    int ignore_label;                 /* pixels of it do not count; -1: none */
    int label_height, label_width;    /* of training's label maps */
    bool upsample_logits;             /* the loss is taken at the picture's size */
    const struct pm_config_loss *loss; /* its weights, divisor and mining; NULL: the defaults */
    bool predict_upsampled;           /* logits are enlarged before the argmax */
    struct pm_floats scales;          /* whose predictions are averaged; none: 1 */
    bool flip;                        /* and of mirrored pictures */
    bool double_softmax;              /* of these averages a softmax again, in exported models */
    int colormap;                     /* enum pm_colormap */
    bool save_raw;                    /* predict writes class numbers, too */
    struct pm_instance_setup instance; /* .on is settled by the net */
    bool matting;                     /* labels are degrees of foreground, PM_F32; padding is -1 */
    int edge_classes;                 /* of the net's output of edges, 0: it has none; by the net */
    const char *train_classes;        /* node of the training net that says each pixel's class, I32 as the
                                       * labels are; NULL: there is none */
    int edge_width;                   /* of the band along an edge, in the record's pixels */
};

/* What the config and the data together say, resolved once. Pointers are borrowed. */
struct pm_setup {
    int height, width, channels;      /* of training pictures after preprocessing */
    int eval_height, eval_width;
    int num_classes;                  /* of the logits: the data's less labels_offset */
    int labels_offset;
    const char *const *labels;        /* num_classes names (offset applied), NULL where unknown */
    const struct pm_preprocessing *preprocessing;
    const void *preprocessing_cfg;    /* its options */
    float label_smoothing;
    float aux_weight;                 /* of the auxiliary head's loss; NAN = the net's own */
    struct pm_pixels_setup pixels;    /* of segmentation */
};

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
    const struct pm_setup *setup;
    bool train;
};

/* Examples of a training batch to look at: arrays of all of them. */
struct pm_shown {
    int count;
    const void *field[PM_MAX_FIELDS];    /* those of fields() but the pictures' */
    const float *head[PM_MAX_OUTPUTS];   /* logits, then the further heads: centres, offsets, edges,
                                          * such as the net has; NULL: could not be had */
    struct pm_shape shape[PM_MAX_OUTPUTS]; /* of one example's */
};

/* Metrics of an evaluation; examples of it that a report shows. */
enum { PM_MAX_METRICS = 32, PM_MAX_SAMPLES = 24 };

/* Running sums of one evaluation; opaque, owned by its maker. */
struct pm_score;

struct pm_task_row {
    const char *name;
    bool maps; /* labels are maps: the data's map_classes are the classes */
    /* The batch's arrays for training or evaluation; returns their number, or PM_ECONFIG when parts
     * of the setup do not fit each other. fields[0] is "images". */
    int (*fields)(const struct pm_setup *s, bool train, struct pm_field fields[PM_MAX_FIELDS]);
    /* pm_loader_options.make with ctx = struct pm_sampler. */
    int (*make)(void *sampler, const uint8_t *record, size_t size, uint64_t seed, uint64_t step,
                uint32_t example, const char *where, void *const *out);
    /* The record's picture as it is, before any preprocessing. */
    int (*picture)(const struct pm_setup *s, const uint8_t *record, size_t size, const char *where,
                   struct pm_image8 *out);
    /* Settles what of the setup depends on the net, by its heads for training pictures. NULL: nothing does. */
    int (*settle)(struct pm_setup *s, const struct pm_heads *heads);
    /* PM_OK when the net's last layer gives what the task needs of so many pictures; else PM_ECONFIG. */
    int (*check_heads)(const struct pm_setup *s, const struct pm_heads *heads, int batch);
    /* Adds the loss layers. The net has inputs named as the fields. */
    void (*add_loss)(struct pm_net *net, const struct pm_heads *heads, const struct pm_setup *s);
    /* Builds the net over images and appends what makes the outputs for use, EVAL, PREDICT or EXPORT.
     * NULL: the logits are the output of all three. */
    int (*add_outputs)(struct pm_net *net, struct pm_node *images, const struct pm_net_maker *maker,
                       const struct pm_setup *s, enum pm_use use, struct pm_outputs *out);
    /* Names of the metrics, the first is the one that keep_best means by default; their number. */
    int (*metric_names)(const struct pm_setup *s, const char *out[PM_MAX_METRICS]);
    bool (*higher_is_better)(const char *metric);
    struct pm_score *(*score_create)(const struct pm_setup *s);
    void (*score_destroy)(struct pm_score **m);
    /* outputs: host memory of the outputs for EVAL, of the batch, whose `valid` first examples count.
     * loss: the sum of the loss layers that add_outputs made, 0 without any. */
    int (*score_add)(struct pm_score *m, const struct pm_batch *batch, const void *const *outputs,
                     double loss);
    /* One member per metric into object; null where there is no finite value. */
    void (*score_report)(const struct pm_score *m, struct cJSON *object);
    /* What report.html shows of an evaluation: members of evaluation.json beside step, count, metrics
     * and samples (classification: labels, labels_offset, per_class, confusion, unanswered). */
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
    void (*paint)(const struct pm_setup *s, const struct pm_shown *shown, int i,
                  struct pm_picture pictures[PM_MAX_PICTURES]);
    /* One picture's prediction, outputs being those for PREDICT, as JSON (classification: label, name,
     * probability, top 5), and drawn into pictures (zeroed; NULL: not wanted), each called as the end of
     * its file's name is to be. picture: as it is in its file, in colour; without pixels where nothing
     * is drawn. */
    int (*present)(const struct pm_setup *s, const void *const *outputs,
                   const struct pm_image8 *picture, struct cJSON *object,
                   struct pm_picture pictures[PM_MAX_PICTURES]);
};
const struct pm_task_row *pm_task_find(const char *name); /* "classification", or NULL */

#ifdef __cplusplus
}
#endif

#endif
