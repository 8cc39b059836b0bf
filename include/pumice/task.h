/* task: what a sample, a loss, a metric and a picture are. The trainer, eval and predict are the same
 * for all tasks; a row of src/tasks/ fills in the rest. */
#ifndef PUMICE_TASK_H
#define PUMICE_TASK_H

#include <pumice/data.h>
#include <pumice/net.h>

struct cJSON;

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
};

/* Context of pm_loader_options.make; lives as long as the loader. */
struct pm_sampler {
    const struct pm_setup *setup;
    bool train;
};

/* Examples of an evaluation that a report shows. */
enum { PM_MAX_SAMPLES = 24 };

/* Running sums of one evaluation; opaque, owned by its maker. */
struct pm_score;

struct pm_task_row {
    const char *name;
    /* The batch's arrays for training or evaluation; returns their number, or PM_ECONFIG when parts
     * of the setup do not fit each other. fields[0] is "images". */
    int (*fields)(const struct pm_setup *s, bool train, struct pm_field fields[PM_MAX_FIELDS]);
    /* pm_loader_options.make with ctx = struct pm_sampler. */
    int (*make)(void *sampler, const uint8_t *record, size_t size, uint64_t seed, uint64_t step,
                uint32_t example, const char *where, void *const *out);
    /* The record's picture as it is, before any preprocessing. */
    int (*picture)(const struct pm_setup *s, const uint8_t *record, size_t size, const char *where,
                   struct pm_image8 *out);
    /* Adds the loss layers, with inputs named as the fields where the net has none yet. */
    void (*add_loss)(struct pm_net *net, const struct pm_heads *heads, const struct pm_setup *s);
    /* Names of the metrics, the first is the one that keep_best means by default. */
    const char *const *metric_names;
    bool (*higher_is_better)(const char *metric);
    struct pm_score *(*score_create)(const struct pm_setup *s);
    void (*score_destroy)(struct pm_score **m);
    /* logits: host memory of the logits node for the batch's `valid` examples. */
    int (*score_add)(struct pm_score *m, const struct pm_batch *batch, const float *logits);
    /* One member per metric into object; null where there is no finite value. */
    void (*score_report)(const struct pm_score *m, struct cJSON *object);
    /* What report.html shows of an evaluation: members of evaluation.json beside step, count, metrics
     * and samples (classification: labels, labels_offset, per_class, confusion, unanswered). */
    void (*score_detail)(const struct pm_score *m, struct cJSON *object);
    /* Examples to look at, the most wrong first, by their record in the dataset; returns their
     * number. Which ones does not depend on the examples' order or batches. */
    int (*score_samples)(const struct pm_score *m, uint64_t records[PM_MAX_SAMPLES]);
    /* Example i of score_samples, whose record this is: what was said of it into object (with
     * "right"), its picture with the drawing that belongs in it. */
    int (*score_sample)(const struct pm_score *m, int i, const uint8_t *record, size_t size,
                        const char *where, struct cJSON *object, struct pm_image8 *picture);
    /* One picture's prediction as JSON (classification: label, name, probability, top 5), and drawn
     * onto picture (its pixels may be replaced; NULL: not wanted). */
    int (*present)(const struct pm_setup *s, const float *logits, struct cJSON *object,
                   struct pm_image8 *picture);
};
const struct pm_task_row *pm_task_find(const char *name); /* "classification" */

#endif
