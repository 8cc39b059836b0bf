/* task: the meaning of samples, losses, metrics and pictures. The trainer, eval and predict are the
 * same for all tasks; a row of src/tasks/ supplies the rest. */
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

/* Facts about pictures and classes from the config and the data. The experiment fills them in once,
 * before it opens the task. Pointers are borrowed. */
struct pm_task_facts {
    const struct pm_config *config;
    const struct pm_dataset_info *data; /* facts about the data */
    int height, width, channels;      /* of training pictures after preprocessing */
    int eval_height, eval_width;
    bool own_sizes;                   /* in evaluation each picture keeps its own size (eval.resize
                                       * false), and eval_height and eval_width do not bound it */
    bool scaled_jpeg;                 /* training decodes large JPEGs at reduced size
                                       * (input.scaled_jpeg) */
    int output_stride;                /* of the net, by its options; 0: unknown */
    int num_classes;                  /* of the logits: the data's number less labels_offset */
    int labels_offset;
    const char *const *labels;        /* num_classes names (offset applied), NULL if unknown */
    const struct pm_preprocessing *preprocessing;
    const void *preprocessing_cfg;    /* its options */
    const struct pm_augment *augment; /* rows for training instead of the preprocessing's; NULL: the
                                       * preprocessing's own */
    const struct pm_augment *const *augments; /* [augments_count]: of each entry of data.folders, in
                                       * the place of augment; NULL: not several */
    int augments_count;
};
/* Returns the rows for training records of a part of the data (pm_loader_record.part). */
const struct pm_augment *pm_task_augment(const struct pm_task_facts *s, int part);
/* A task of one experiment: the facts, the task's own options, and values that depend on the net.
 * Opaque: each task defines its own. After settle() it is constant, and any thread may read it. */
struct pm_task;

/* A picture that a task draws. */
struct pm_drawing {
    const char *what;       /* its name; borrowed */
    struct pm_image8 image; /* owned by the list */
};
/* A list of them. Initialise with zeros, free with pm_drawings_free. */
struct pm_drawings {
    struct pm_drawing *list;
    size_t count, capacity;
};
/* Appends an empty picture for the caller to fill. The result is valid until the next call. */
struct pm_image8 *pm_drawings_add(struct pm_drawings *d, const char *what);
/* Frees the pictures and the list, and leaves zeros. */
void pm_drawings_free(struct pm_drawings *d);

/* The purpose of a net. */
enum pm_use {
    PM_USE_HEADS,   /* images to heads only */
    PM_USE_TRAIN,   /* heads and the losses */
    PM_USE_EVAL,    /* for score_add; the fields are inputs if the outputs need them */
    PM_USE_PREDICT, /* the outputs that present reads */
    PM_USE_EXPORT,  /* the outputs of an exported model */
};
/* The outputs of a net, in the task's order. The lists are in the net's arena and live as long as
 * the net. Zeros are an empty list. */
struct pm_outputs {
    const char **node; /* names of nodes; NULL-terminated; NULL if count is 0 */
    enum pm_places *places; /* per output */
    int count, capacity;
};
/* Appends a node's values. */
void pm_outputs_add(struct pm_net *net, struct pm_outputs *out, const struct pm_node *node,
                    enum pm_places places);
/* Builds the config's net over these images. A second call, for other images, needs another
 * net->pass. second: builds the second stage over regions of the images, after heads(). It fails
 * with PM_ECONFIG if the net has one stage. A second call, for other regions, needs another
 * net->pass. */
struct pm_net_maker {
    int (*heads)(void *ctx, struct pm_net *net, struct pm_node *images, struct pm_heads *out);
    int (*second)(void *ctx, struct pm_net *net, const struct pm_regions *regions,
                  struct pm_heads *out);
    void *ctx;
};

/* Context of pm_loader_options.make; lives as long as the loader. */
struct pm_sampler {
    const struct pm_task *task;
    bool train;
    const struct pm_task_row *row; /* the task's; pm_record_frame and pm_record_fields need it */
};

/* Examples of a training batch to show. Arrays hold all examples. */
struct pm_shown {
    int count;
    struct pm_frame frame;        /* of the batch */
    const void *const *field;     /* in the order of the fields; the first is the pictures */
    int heads;                    /* number of the net's heads, in its order; 0: not available */
    const float *const *head;     /* NULL if a head has no values of its own */
    const struct pm_shape *shape; /* of one example, per head */
};

/* Largest number of examples of an evaluation that a report shows. */
enum { PM_MAX_SAMPLES = 24 };

/* The metrics of one net's evaluations; list is freed with pm_free. */
struct pm_metric_list {
    const struct pm_metric_kind **list; /* of pm_open_task.metrics */
    size_t count, capacity;
};
/* A metric of the classes that the training net predicts for its batches. PM_TRAIN_MEAN_COUNT: mean
 * of the entries of the confusion matrix. */
enum pm_train_measure { PM_TRAIN_MIOU, PM_TRAIN_ACCURACY, PM_TRAIN_MEAN_COUNT };
struct pm_train_metric {
    enum pm_train_measure measure;
    bool batch;              /* of the last batch; false: of all batches so far */
    const char *name, *tag;  /* in metrics.jsonl, in TensorBoard */
};
/* Those classes, and their metrics. Pointers are borrowed. */
struct pm_train_output {
    const char *node;     /* every step copies out its values, I32; NULL: none */
    int field;            /* of the batch: the ground truth classes */
    size_t count;         /* elements of an example, in the frame with the most */
    int classes;
    int32_t ignore;       /* the true class of elements that are not counted */
    const struct pm_train_metric *metrics; /* the progress line shows the first */
    int metric_count;
};
/* A number that describes a training batch, such as matched anchors per picture. */
struct pm_batch_metric {
    const char *name, *tag; /* in metrics.jsonl, in TensorBoard */
    const char *output;     /* NULL: measure_batch computes it before the step. Else the step does:
                             * it is the mean over the batch of this output of the training plan,
                             * F32 with a number per example. A plan without it has no such
                             * metric. */
};
enum { PM_MAX_BATCH_METRICS = 10 };
/* What exporting a net needs from the task besides its outputs. */
struct pm_task_export {
    bool pads;         /* smaller pictures are resized and padded inside the graph */
    int output_stride; /* of the exported net; 0: the trained net's */
    enum pm_export_end end;
};

/* Running sums of one evaluation; opaque, owned by its maker. */
struct pm_score;
/* Predictions of the tiles of one photo; opaque, owned by its maker. */
struct pm_tiled;
struct pm_tiling; /* the types of tiles are internal: data/picture_tiles.h */
struct pm_tile_grid;

/* How `pumice dataset inspect` shows a task's own parts of a record. It works for any task of the
 * config. */
struct pm_task_inspect {
    const char *parts;   /* name of the number of records with such parts in the report: "maps" */
    const char *counts;  /* name of the labels' counts in the report: "map_pixels" */
    const char *heading; /* of these counts in the text: "every map is whole; pixels of labels" */
    /* Adds the text of the value, `size` bytes, under this key. *own: the key belongs to the task.
     * Returns false if the key is not the task's, or if the value is damaged; then it logs a
     * warning. */
    bool (*value)(const char *key, const uint8_t *data, size_t size, struct pm_str *out, bool *own);
    /* Checks the task's parts. Adds the occurrences of each of its labels below `counted` to
     * counts, those of other labels to *more. Returns 1 if the record has such parts, else 0.
     * PM_EDATA, PM_ECORRUPT. */
    int (*check)(const struct pm_example *e, const struct pm_dataset_info *info, const char *where,
                 uint64_t *counts, size_t counted, uint64_t *more);
    /* Writes the parts as pictures, whose paths begin with stem. */
    int (*save)(const struct pm_example *e, const struct pm_dataset_info *info, const char *stem);
};

/* A task. Its functions are required, except those whose comment names NULL. */
struct pm_task_row {
    struct pm_open_task config; /* its name, option tables and metrics */
    bool spatial; /* outputs are maps over the picture, and their size follows the picture's */
    const char *unit; /* what evaluation counts per class: "pixels"; NULL: "pictures" */
    const char *prediction; /* for `pumice predict --help`: what is printed and drawn, lines of at
                             * most 80 characters that end in a newline */
    const char *converters; /* the formats of dataset convert for its data, "voc, coco"; NULL:
                             * data.folder may also be a folder of pictures by class */
    /* Sets the number and names of the classes in `data` if they are not the data's num_classes and
     * labels. May also set box_labels, which checkpoints then store. What it adds is allocated in
     * a. PM_ECONFIG, PM_EDATA. NULL: they are the data's. */
    int (*classes)(const struct pm_config *c, struct pm_arena *a, struct pm_dataset_info *data);
    /* Computes the offset that is subtracted from labels. NULL: 0. PM_ECONFIG. */
    int (*labels_offset)(const struct pm_config *c, int *out);
    /* Creates the task of an experiment; the facts are copied. PM_ECONFIG if the facts contradict
     * each other. close: frees it, accepts NULL in *t. */
    int (*open)(const struct pm_task_facts *facts, struct pm_task **out);
    void (*close)(struct pm_task **t);
    /* Appends what the net learns, for messages: "5 classes". */
    void (*describe)(const struct pm_task *t, struct pm_str *out);
    /* Sets the node whose classes the training metrics count. NULL, or out->node NULL: none. */
    void (*train_output)(const struct pm_task *t, struct pm_train_output *out);
    /* Numbers of the batches of logged steps: means over the pictures. Ends with a NULL name. NULL:
     * none. measure_batch computes the sums of those without an output, which come first, in this
     * order, over the loader's slice of the batch. */
    const struct pm_batch_metric *batch_metrics;
    void (*measure_batch)(const struct pm_task *t, const struct pm_batch *batch,
                          double out[PM_MAX_BATCH_METRICS]);
    void (*exporting)(const struct pm_task *t, struct pm_task_export *out); /* into zeros; NULL:
                                                                             * zeros */
    /* Adds to object what a user of the exported model must know besides labels and preprocessing.
     * The model's metadata has it under the task's name. An error ends the export before a file is
     * written. NULL: nothing. */
    int (*export_notes)(const struct pm_task *t, struct cJSON *object);
    /* Adds the arrays of a batch of this frame, for training or evaluation, to the empty list; the
     * first is "images". */
    void (*fields)(const struct pm_task *t, bool train, struct pm_frame frame,
                   struct pm_field_list *out);
    /* Returns the frame that a picture of this size (as decoded, upright) needs in training or
     * evaluation. o: train, seed, step, example and where are set. PM_EDATA if the picture cannot
     * be brought to a size. Thread-safe. NULL: always the facts' size; eval.resize=false is then
     * refused. */
    int (*frame)(const struct pm_task *t, const struct pm_occasion *o, int height, int width,
                 struct pm_frame *out);
    /* Training with input.buckets: returns the frame that the example made of this record needs,
     * which a batch's size must hold. e: the record; height, width: of its picture, upright. The
     * frame is that of make() with the same seed, step and example. Thread-safe. Errors as
     * frame(). NULL: frame() returns it, and a batch that no size holds takes the largest. */
    int (*need)(void *sampler, const struct pm_example *e, const struct pm_loader_record *r,
                int height, int width, struct pm_frame *out);
    /* pm_loader_options.make with ctx = struct pm_sampler. */
    int (*make)(void *sampler, const struct pm_loader_record *r, void *const *out);
    /* pm_loader_options.whole_batch with ctx = struct pm_sampler: writes fields that depend on all
     * examples of a batch. It may set b->sum to a sum over the examples. NULL: there are none. */
    void (*whole_batch)(void *sampler, struct pm_batch *b);
    /* Several processes have one slice of the batch each. This function is then called with the sum
     * of b->sum over all slices, and writes the fields of whole_batch again. NULL: whole_batch does
     * not set b->sum. */
    void (*set_sum)(void *sampler, struct pm_batch *b, double sum);
    /* pm_loader_options.free_host: make may store data of any size. score_add reads those of
     * evaluation, for example every true box of a picture. NULL: it stores none. */
    void (*free_host)(void *host);
    /* Decodes the record's picture, before any preprocessing. */
    int (*picture)(const struct pm_task *t, const uint8_t *record, size_t size, const char *where,
                   struct pm_image8 *out);
    /* Sets the values that depend on the net, from its heads for training pictures of this frame:
     * first of the facts' size, then of every other size of input.buckets. maker: of this net; the
     * task may build another net with it. NULL: there are none. */
    int (*settle)(struct pm_task *t, struct pm_frame frame, const struct pm_heads *heads,
                  const struct pm_net_maker *maker);
    /* Appends layers to the pictures. Returns the node that the config's net reads. Errors are in
     * net->error. NULL: the net reads the pictures. */
    struct pm_node *(*before_net)(const struct pm_task *t, struct pm_net *net,
                                  struct pm_node *images);
    /* Returns pm_net.ends for the nets of this task. NULL: zeros. */
    struct pm_net_ends (*net_ends)(const struct pm_task *t);
    /* Finds the heads of a net from a layer list by the names of its nodes. The list has the head
     * "logits" already: the node of that name, or the last node; the hook may replace the node.
     * NULL: the logits are the only head. */
    void (*find_heads)(struct pm_net *net, struct pm_heads *heads);
    /* Returns PM_OK if the net's last layer fits the task for this number of pictures; else
     * PM_ECONFIG. */
    int (*check_heads)(const struct pm_task *t, const struct pm_heads *heads, int batch);
    /* Adds the loss layers, and the layers between the heads and them, such as a second stage. The
     * net has inputs with the names of the fields. maker: of this net; tasks whose nets have one
     * stage accept NULL. */
    void (*add_loss)(struct pm_net *net, const struct pm_heads *heads,
                     const struct pm_net_maker *maker, const struct pm_task *t);
    /* Returns the value of the loss layer "loss" for a prediction of equal probabilities for all
     * classes, whatever the picture shows: a training whose loss stays above it learns nothing.
     * NAN: not known with these options. NULL: the loss has no such value. */
    double (*uniform_loss)(const struct pm_task *t);
    /* Builds the net over images and appends the nodes that make the outputs for use EVAL, PREDICT
     * or EXPORT. Adds them to the empty list. NULL: the logits are the output for all three. */
    int (*add_outputs)(struct pm_net *net, struct pm_node *images, const struct pm_net_maker *maker,
                       const struct pm_task *t, enum pm_use use, struct pm_outputs *out);
    /* Adds the net's metrics to the empty list. The first is the main metric. */
    void (*metrics)(const struct pm_task *t, struct pm_metric_list *out);
    /* Sets TensorBoard's tag of a metric; label >= 0: of class `label` in a metric that is a list;
     * -1: not a list. If out stays empty, the tag is that of pm_metric_kind, and lists have no tag.
     * NULL: the same for all metrics. Not thread-safe. */
    void (*tag)(const struct pm_config *c, const char *metric, int label, struct pm_str *out);
    struct pm_score *(*score_create)(const struct pm_task *t);
    void (*score_destroy)(struct pm_score **m);
    /* Adds a batch, whose first `valid` examples count. outputs: host memory of the outputs for
     * EVAL. loss: the sum of the loss layers that add_outputs made, 0 without any. */
    int (*score_add)(struct pm_score *m, const struct pm_batch *batch, const void *const *outputs,
                     double loss);
    /* Appends to out, as bytes, everything that score_add and score_merge have added. So several
     * processes can score the batches of one evaluation. Their machines must have the same byte
     * order. */
    void (*score_pack)(const struct pm_score *m, struct pm_str *out);
    /* Adds a pack, `size` bytes from another process. Merging the packs of single batches in the
     * order of the batches gives the same bits in all results below as score_add with each batch.
     * The same holds for packs of several consecutive batches. The batches must have
     * pm_batch.record. Every length and index in the bytes is checked before its use. PM_EDATA if
     * the bytes are damaged, or are not of this task with the same options. A part may have been
     * added then, so the caller must destroy m. */
    int (*score_merge)(struct pm_score *m, const void *bytes, size_t size);
    /* Adds one member per metric to object; null if there is no finite value. */
    void (*score_report)(const struct pm_score *m, struct cJSON *object);
    /* Adds what report.html shows of an evaluation: members of evaluation.json beside step, count,
     * metrics and samples (classification: labels, labels_offset, per_class, confusion,
     * unanswered). NULL: there are none. */
    void (*score_detail)(const struct pm_score *m, struct cJSON *object);
    /* Writes an evaluation's predictions as files into this folder, which exists. NULL: there are
     * no such files. */
    int (*score_write)(const struct pm_score *m, const char *folder);
    /* Selects examples to show, the most wrong first, by their record in the dataset; returns their
     * number. The selection does not depend on the order of the examples or on the batches. NULL:
     * no example is shown, and score_sample is not called. */
    int (*score_samples)(const struct pm_score *m, uint64_t records[PM_MAX_SAMPLES]);
    int sample_side; /* longest side of its pictures in a report, in pixels; 0: 128 */
    /* Describes example i of score_samples; record is its record. Writes the prediction into object
     * (with "right") and adds pictures of it to the empty list, "image" first. */
    int (*score_sample)(const struct pm_score *m, int i, const uint8_t *record, size_t size,
                        const char *where, struct cJSON *object, struct pm_drawings *drawings);
    /* Draws the labels and the heads' values of example i of those that TensorBoard shows. Adds the
     * pictures to the empty list; their names are the last parts of tags. NULL: the task draws
     * nothing. */
    void (*paint)(const struct pm_task *t, const struct pm_shown *shown, int i,
                  struct pm_drawings *drawings);
    /* Writes one picture's prediction from the outputs for PREDICT. object: JSON (classification:
     * label, name, probability, top 5). frame: of the net. drawings: an empty list to add to, or
     * NULL if they are not wanted; a drawing's name is the last part of its file's name. picture:
     * as decoded from its file, in colour; without pixels if nothing is drawn. */
    int (*present)(const struct pm_task *t, struct pm_frame frame, const void *const *outputs,
                   const struct pm_image8 *picture, struct cJSON *object,
                   struct pm_drawings *drawings);
    /* Prediction on photos that are cut into tiles. NULL: the task does not cut photos; then the
     * other hooks of tiles are not called. Sets how it cuts them; sides of 0: it does not.
     * PM_ECONFIG. */
    int (*tiling)(const struct pm_task *t, struct pm_tiling *out);
    /* Begins a photo; the grid is copied. destroy: frees it, accepts NULL in *p. */
    struct pm_tiled *(*tiled_create)(const struct pm_task *t, const struct pm_tile_grid *grid);
    void (*tiled_destroy)(struct pm_tiled **p);
    /* Adds the prediction of a tile. Tiles come in ascending order. frame, outputs: as for
     * present(), for a picture of the tile's size. */
    int (*tiled_add)(struct pm_tiled *p, struct pm_frame frame, const void *const *outputs,
                     size_t tile);
    /* After the last tile: writes the photo's prediction as present() does. where: the photo's name
     * for messages. */
    int (*tiled_present)(struct pm_tiled *p, const char *where, const struct pm_image8 *picture,
                         struct cJSON *object, struct pm_drawings *drawings);
    /* Appends a prediction, the object that present() filled, to the line that `pumice predict`
     * prints. NULL: prints nothing. */
    void (*print)(const struct cJSON *object, struct pm_str *out);
    /* For `config check`: takes this many training pictures from the loader, in batches of any
     * size, and reports how the task's settings suit them: lines for text, members for object.
     * NULL: nothing is compared. PM_EDATA. */
    int (*check_data)(const struct pm_task *t, struct pm_loader *train, int64_t pictures,
                      struct pm_str *text, struct cJSON *object);
    /* For `config check`: returns a key of records that only one option needs, a list of floats,
     * and sets *option to the option's name; NULL: the option is off. Records may lack the key, but
     * without any that has it the option has no effect. NULL: the task has no such key. */
    const char *(*marks)(const struct pm_task *t, const char **option);
    const struct pm_task_inspect *inspect; /* NULL: the task stores only the label in records */
    /* Sets has[c] to a value above 0 for each class c < count of a record, as numbered in the data.
     * *other: whether the record has a class that training refuses, because it is not below count
     * or is below the task's data.labels_offset; else unchanged. Thread-safe. PM_EDATA, PM_ECORRUPT
     * for a record that training cannot read. NULL: classes are not counted. */
    int (*record_classes)(const struct pm_task *t, const struct pm_example *e, const char *where,
                          uint64_t *has, size_t count, bool *other);
};
/* For loaders with several frames; ctx: struct pm_sampler with a row. The first is
 * pm_loader_options.frame_of: it reads the size of the record's picture and calls the task's hook
 * `frame`, or in training `need` if the task has it. The second is fields_of: it calls the hook
 * `fields`. */
int pm_record_frame(void *sampler, const struct pm_loader_record *r, struct pm_frame *out);
void pm_record_fields(void *sampler, struct pm_frame frame, struct pm_field_list *out);
/* Writes the record's bytes under the key into the file STEM.ENDING; does nothing if there are
 * none. The ending names their format, "raw" if unknown. PM_EDATA, or the error of writing. */
int pm_record_save(const struct pm_example *e, const char *key, const char *stem);
/* Returns every task, in the order of tasks.def. */
const struct pm_task_row *const *pm_tasks(size_t *count);
const struct pm_task_row *pm_task_find(const char *name); /* "classification", or NULL */
/* Returns every task's part of the config, in the order of tasks.def. */
const struct pm_open_task *const *pm_open_tasks(size_t *count);

#ifdef __cplusplus
}
#endif

#endif
