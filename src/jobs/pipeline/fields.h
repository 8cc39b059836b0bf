/* fields: how each field of a pipeline config is converted. The rows are in *.def, one per field of
 * each message of the Object Detection API's protos (release 0.0.3 of 2019, and fields that came
 * later). A test compares them with the protos. */
#ifndef PM_PIPELINE_FIELDS_H
#define PM_PIPELINE_FIELDS_H

#include "base/angles.h"
#include "formats/proto_text.h"

struct cJSON;

enum pm_pipeline_type {
    PM_PIPELINE_INT,
    PM_PIPELINE_NUMBER, /* float32 */
    PM_PIPELINE_BOOL,
    PM_PIPELINE_TEXT,
    PM_PIPELINE_WORD,   /* an enum's value; in the config in lower case */
    PM_PIPELINE_INTS, PM_PIPELINE_NUMBERS, PM_PIPELINE_TEXTS, /* repeated fields */
    PM_PIPELINE_MESSAGE,
};
enum pm_pipeline_how {
    /* Values. `to` NULL: the field's own name. */
    PM_PIPELINE_KEY,    /* the config's key `to` */
    PM_PIPELINE_MEMBER, /* a member of the present object */
    PM_PIPELINE_CALL_OF, /* a value or a message: call() sets keys */
    PM_PIPELINE_USED,   /* the call of its message reads it */
    /* Messages. */
    PM_PIPELINE_THROUGH, /* its fields belong to the present object */
    PM_PIPELINE_AT,      /* its fields belong to the object at the key `to` */
    PM_PIPELINE_INSIDE,  /* its fields belong to a member object of the present object */
    PM_PIPELINE_TYPE,    /* one of several: the present object gets "type": `to` */
    PM_PIPELINE_WORD_OF, /* the same with the member "similarity" */
    PM_PIPELINE_STEP,    /* input.augment gets an object with "name": `to` */
    PM_PIPELINE_ITEM,    /* repeated: the present object's list `to` gets an object */
    /* Neither. `to`: why, a clause after "NAME: "; `same`: the value that changes nothing. */
    PM_PIPELINE_NONE,    /* Pumice needs no such field */
    PM_PIPELINE_LOST,    /* the config's run differs from the original's */
};

struct pm_pipeline;
struct pm_pipeline_row {
    const char *message, *field; /* "*": every field of the message */
    enum pm_pipeline_type type;
    const char *of;              /* MESSAGE: its type */
    enum pm_pipeline_how how;
    const char *to;
    const char *same;            /* NONE, LOST: a value without effect; NULL: none */
    int (*call)(struct pm_pipeline *p, const struct pm_pipeline_row *row,
                const struct pm_proto_text *f, struct cJSON *object);
};
/* Returns all rows. */
const struct pm_pipeline_row *pm_pipeline_rows(size_t *count);
/* Returns the row of a message's field, or NULL. */
const struct pm_pipeline_row *pm_pipeline_row(const char *message, const char *field);

/* Walks the defaults of a message's fields: returns the field of default *i or of the next one
 * after it, and sets *i; NULL: no more. */
const char *pm_pipeline_default(const char *message, size_t *i);
/* Returns the value of default i, as the text form writes it. */
const char *pm_pipeline_default_value(size_t i);

/* ---- one conversion (pipeline.c) ------------------------------------------------------------ */

enum { PM_PIPELINE_QUEUES = 64 };
struct pm_pipeline {
    const char *file;       /* name of the file that is being read, for messages */
    bool evaluation;        /* the reader of evaluation is being converted */
    bool stages;            /* the fields of faster_rcnn are being converted */
    const struct pm_proto_text *tree; /* message whose fields are being converted */
    struct pm_arena *arena; /* of the trees */
    double batches[PM_PIPELINE_QUEUES]; /* batch sizes, one for each reader of training */
    int batch_count;
    struct cJSON *config;   /* what is made */
    struct cJSON *notes;    /* list of {file, line, field, kind, text} */
};
/* Converts the text of one file, whose name stands in messages, into p->config and p->notes.
 * PM_EDATA as pm_convert_pipeline. */
int pm_pipeline_text(struct pm_pipeline *p, const char *name, const char *text);
/* Sets a key of the config, "loss.weight"; takes the value. A value that is there is replaced. */
void pm_pipeline_set(struct pm_pipeline *p, const char *key, struct cJSON *value);
/* Returns the value of a key, or NULL. */
struct cJSON *pm_pipeline_get(const struct pm_pipeline *p, const char *key);
/* Notes what is not converted. lost: the run differs from the original's. */
void pm_pipeline_note(struct pm_pipeline *p, const struct pm_proto_text *f, bool lost,
                      const char *fmt, ...) PM_PRINTF(4, 5);
/* Fails with PM_EDATA: file, line, field and this text. */
int pm_pipeline_fail(const struct pm_pipeline *p, const struct pm_proto_text *f, const char *fmt,
                     ...) PM_PRINTF(3, 4);
/* Converts the fields of a message, which belong to the object. */
int pm_pipeline_fields(struct pm_pipeline *p, const char *message, const struct pm_proto_text *tree,
                       struct cJSON *object);
/* Appends an object {"name": name} to input.augment and returns it. */
struct cJSON *pm_pipeline_step(struct pm_pipeline *p, const char *name);
/* Makes the JSON value of a field of this type, which is not MESSAGE and not repeated. */
int pm_pipeline_value(const struct pm_pipeline *p, enum pm_pipeline_type type,
                      const struct pm_proto_text *f, struct cJSON **out);
/* A number as JSON: the shortest decimal that is the same float32. */
struct cJSON *pm_pipeline_number(double v);

/* Returns the field of a message with this name; the last one counts. NULL: the file has none. */
const struct pm_proto_text *pm_pipeline_find(const struct pm_proto_text *message,
                                             const char *field);

/* Reads a number of a message. absent: its value if the file does not have it. */
int pm_pipeline_number_of(const struct pm_pipeline *p, const struct pm_proto_text *message,
                          const char *field, double absent, double *out);

/* 1 degree in radians. */
static const double pm_pipeline_degree = PM_PI / 180;

/* Recognition trains from several readers, each with a part of the batch. Converts the second and
 * each later one to an entry of data.folders. *taken: whether this reader was one of them. */
int pm_pipeline_queue(struct pm_pipeline *p, const struct pm_pipeline_row *row,
                      const struct pm_proto_text *f, struct cJSON *object, bool *taken);
/* Gives the entries of data.folders their batches. root: the file, for messages. PM_EDATA if there
 * are more of one than of the other. */
int pm_pipeline_settle_queues(struct pm_pipeline *p, const struct pm_proto_text *root);

/* RBox-CNN's second stage learns proposals from an overlap of 0.4 on, which no field says: sets
 * loss.proposal_sampler.iou_threshold if the boxes are rotated and the net has two stages. */
void pm_pipeline_settle_rotated(struct pm_pipeline *p);

/* ---- calls of rows (pipeline_augment.c, _model.c, _rotated.c, _stages.c, _texts.c, _train.c) - */

/* Each converts a value or a message, named in the rows of the tables (*.def). */
#define PM_PIPELINE_CALL(name)                                                       \
    int pm_pipeline_##name(struct pm_pipeline *p, const struct pm_pipeline_row *row, \
                           const struct pm_proto_text *f, struct cJSON *object)
PM_PIPELINE_CALL(two_stages);
PM_PIPELINE_CALL(number_of_stages);
PM_PIPELINE_CALL(features_stride);
PM_PIPELINE_CALL(clip_anchors);
PM_PIPELINE_CALL(second_predictor);
PM_PIPELINE_CALL(second_loss);
PM_PIPELINE_CALL(op);
PM_PIPELINE_CALL(activation);
PM_PIPELINE_CALL(pad_value);
PM_PIPELINE_CALL(clipped_step);
PM_PIPELINE_CALL(grey_step);
PM_PIPELINE_CALL(rotate_step);
PM_PIPELINE_CALL(degrees);
PM_PIPELINE_CALL(scale_step);
PM_PIPELINE_CALL(pad_color);
PM_PIPELINE_CALL(size);
PM_PIPELINE_CALL(longer_side);
PM_PIPELINE_CALL(threshold);
PM_PIPELINE_CALL(grey);
PM_PIPELINE_CALL(net);
PM_PIPELINE_CALL(weight_decay);
PM_PIPELINE_CALL(initializer);
PM_PIPELINE_CALL(freeze_batchnorm);
PM_PIPELINE_CALL(batch_norm_train);
PM_PIPELINE_CALL(quantize_bits);
PM_PIPELINE_CALL(clip_range);
PM_PIPELINE_CALL(train_reader);
PM_PIPELINE_CALL(eval_reader);
PM_PIPELINE_CALL(optimizer);
PM_PIPELINE_CALL(optimizer_name);
PM_PIPELINE_CALL(policy);
PM_PIPELINE_CALL(rate_step);
PM_PIPELINE_CALL(bias_multiplier);
PM_PIPELINE_CALL(checkpoint);
PM_PIPELINE_CALL(checkpoint_type);
PM_PIPELINE_CALL(from_detection);
PM_PIPELINE_CALL(epochs);
PM_PIPELINE_CALL(every_nth);
PM_PIPELINE_CALL(max_boxes);
PM_PIPELINE_CALL(cutoff);
PM_PIPELINE_CALL(swap_sides);
PM_PIPELINE_CALL(rotated_boxes);
PM_PIPELINE_CALL(rotated_grid);
PM_PIPELINE_CALL(angles);
PM_PIPELINE_CALL(code_size);
PM_PIPELINE_CALL(input_path);
PM_PIPELINE_CALL(metrics_set);
PM_PIPELINE_CALL(recall_range);
PM_PIPELINE_CALL(averages);
PM_PIPELINE_CALL(recognition);
PM_PIPELINE_CALL(spatial_transformer);
PM_PIPELINE_CALL(attention_predictor);
PM_PIPELINE_CALL(text_hyperparams);
PM_PIPELINE_CALL(text_resnet);
PM_PIPELINE_CALL(character_set);
PM_PIPELINE_CALL(target_size);
PM_PIPELINE_CALL(batch_size);

#endif
