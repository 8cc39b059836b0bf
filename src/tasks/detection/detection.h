/* detection: shared by the files of this task: boxes with classes.
 *
 * Inside the task a class is 0..K-1: the class number of the label map less 1, as in TensorFlow's
 * Object Detection API. Numbers without a class in the map are classes that never occur, so a net
 * for COCO's 80 classes on the numbers 1..90 has 90. Boxes are ymin, xmin, ymax, xmax in 0..1 of
 * the net's input; only metrics and predictions use pixels of the file. detection_rotated.h states
 * the units of rotated boxes. */
#ifndef PM_DETECTION_H
#define PM_DETECTION_H

#include "tasks/detection/anchor_search.h"
#include "tasks/detection/box_metrics.h"
#include "tasks/detection/detection_options.h"
#include "tasks/detection/matching.h"

#include <pumice/objects.h>
#include <pumice/task.h>

#include <stdatomic.h>

/* ---- the object ---------------------------------------------------------------------------- */

/* The anchors of the net for pictures of one frame. */
struct pm_detection_anchors {
    struct pm_frame frame;
    int count;                     /* N */
    struct pm_anchor_index *index; /* owned */
    struct pm_anchor_maps maps;    /* levels.count 0: not of ssd_anchors or multiscale_anchors */
};
#define PM_DETECTION_SCORE 0.5 /* without eval.score_threshold */
enum { PM_DETECTION_LEVELS = 7, PM_DETECTION_CLASSES = 10000 };
struct pm_task {
    struct pm_task_facts facts;
    const struct pm_label_map *map;   /* borrowed from the facts' data; NULL: classes are numbers */
    struct pm_detection_data data;
    bool rotated;                     /* model.boxes=rotated */
    int *mirrored;                    /* [data.num_keypoints], owned: as pm_sample.mirrored; NULL:
                                       * unknown */
    struct pm_detection_loss loss;
    struct pm_detection_coder coder;
    struct pm_matcher matcher;
    struct pm_detection_post post;
    struct pm_detection_class_loss class_loss;
    struct pm_detection_box_loss box_loss;
    struct pm_detection_miner miner;
    struct pm_detection_sampler anchor_sampler;
    struct pm_detection_minibatch minibatch;
    int stages;                       /* 1 or 2 */
    struct pm_detection_post proposals; /* of two stages: how the first one's boxes are chosen */
    struct pm_detection_proposal_sampler proposal_sampler;
    struct pm_detection_second_loss second_loss;
    int anchors_outside;              /* enum pm_anchors_outside; never AUTO */
    unsigned sets;                    /* enum pm_box_set: metrics that are computed */
    double recall[2];                 /* of precision_at_recall */
    bool skip_unlabeled;              /* evaluation drops detections of classes that the picture's
                                       * annotations do not cover */
    double score_threshold;           /* boxes with a score above it are drawn */
    bool best_threshold;              /* eval.score_threshold is "best": */
    double *best_scores;              /* [classes], owned: of the latest evaluation; NULL: there is
                                       * none, or a number was given */
    struct pm_detection_export export;
    bool pads;                        /* pictures are padded, boxes upright: field windows */
    bool background;                  /* set by settle: the net predicts the background, too */
    int mask_height, mask_width;      /* set by settle: of the masks that the net predicts; 0: it
                                       * predicts none */
    int points;                       /* set by settle: keypoints of an object that the net
                                       * predicts; 0: none */
    bool point_scores;                /* set by settle: each of them has a score */
    struct pm_floats sigmas;          /* eval.keypoint_sigmas */
    const struct cJSON *edges;        /* eval.keypoint_edges, checked; NULL: COCO's, or none */
    int boxes_each;                   /* set by settle: boxes that the second stage gives for a
                                       * proposal: 1, or one for each class */
    /* Set by settle, per frame of training pictures; the first is the facts'. */
    struct pm_detection_anchors *anchors; /* owned */
    size_t anchors_count, anchors_capacity;
    atomic_uint_least64_t *crowded;   /* owned: training pictures so far with more than max_boxes */
    struct pm_detection_seen *seen;   /* owned: training pictures so far (detection_points.h) */
};

/* "config.json:12: model.matcher": the place of a key, in the config's arena. */
const char *pm_detection_place(const struct pm_config *c, const char *key);
/* Returns the options of this object ("model.matcher") in the recipe of the config's net, or
 * NULL. */
const char *pm_detection_of_net(const struct pm_config *c, const char *key);
/* Reads an object of the config. If the config does not set it (NULL), the net's options count,
 * else the defaults of opts. */
int pm_detection_read_object(const struct pm_config *c, const char *key,
                             const struct cJSON *object, const struct pm_opt *opts, void *out);
/* detection_coder.c */
extern const struct pm_opt pm_detection_coder_opts[];
/* Reads model.box_coder. The boxes or the net choose the type if the config does not. */
int pm_detection_read_coder(const struct pm_config *c, const struct cJSON *object, bool rotated,
                            struct pm_detection_coder *out);
/* Adds the options of layers that encode or decode boxes. */
void pm_detection_add_coder(const struct pm_task *t, struct cJSON *options);
/* detection_options.c: the task's options in the config, and hooks of pm_task_row. */
extern const struct pm_opt pm_detection_data_opts[]; /* of struct pm_detection_data */
extern const struct pm_task_section pm_detection_sections[];
extern const struct pm_task_default pm_detection_defaults[];
int pm_detection_check_config(const struct pm_config *c);
/* Sets the members of t that come from the config's sections. */
int pm_detection_read_config(const struct pm_config *c, struct pm_task *t);
/* detection_open.c: hooks of pm_task_row. */
int pm_detection_open(const struct pm_task_facts *facts, struct pm_task **out);
void pm_detection_close(struct pm_task **t);
/* detection_stages.c: options of nets with stages. */
extern const struct pm_opt pm_detection_proposals_opts[], pm_detection_minibatch_opts[],
    pm_detection_proposal_sampler_opts[], pm_detection_second_loss_opts[];
/* Whether the net is a Faster R-CNN: only these prune anchors. */
bool pm_detection_has_stages(const struct pm_config *c);
/* Sets t->stages, t->proposals and t->anchors_outside. With one stage t->post is that of the
 * proposals. Call it after the other members of the model are read. */
int pm_detection_read_stages(const struct pm_config *c, const struct pm_detection_model *m,
                             struct pm_task *t);
/* Sets t->minibatch, t->proposal_sampler and t->second_loss; checks that the losses go together. */
int pm_detection_read_stage_losses(const struct pm_config *c, struct pm_task *t);
/* For the exported model's metadata: post-processing, and score_threshold for drawing:
 * a number, or a list by class. */
int pm_detection_export_notes(const struct pm_task *t, struct cJSON *object);
/* Adds score_threshold: a number, or with "best" a list of them by class. Returns PM_ECONFIG with
 * "best" if the run has no evaluation with these classes. */
int pm_detection_add_threshold(const struct pm_task *t, struct cJSON *object);
/* Whether the loss of the classes is a softmax, which needs a background class. */
bool pm_detection_is_softmax(const struct pm_task *t);
/* Returns the score above which boxes of the class are drawn. */
double pm_detection_threshold(const struct pm_task *t, int label);
/* best_scores.c: sets, for each class, the score of the best F1 in the latest evaluation of this
 * run folder; in classes without one, that of all classes. Returns false if no evaluation has these
 * classes. */
bool pm_detection_best_scores(const char *run, int classes, double *scores);
/* detection_classes.c: the hook classes of pm_task_row. */
int pm_detection_classes(const struct pm_config *c, struct pm_arena *a,
                         struct pm_dataset_info *data);
/* Returns the name of a class; text has room for a number's, for classes without a name. */
const char *pm_detection_name(const struct pm_task *t, int label, char text[16]);

/* ---- records (detection_records.c) --------------------------------------------------------- */

/* Reads a record's objects with the members that the config asks for; every label is a class of the
 * net, from 1. height, width: of the decoded picture. PM_ECORRUPT for a damaged list, an unknown
 * class, another number of keypoints, or masks of more than 2 GiB. PM_ECONFIG for objects without
 * rotated boxes if the config asks for these. The caller frees o, also after an error. */
int pm_detection_objects(const struct pm_task *t, const struct pm_example *e, int height,
                         int width, const char *where, struct pm_objects *o);
/* Fills runs [count] with the masks in the size of the picture. An object without one gets one
 * without runs. PM_ECORRUPT for a damaged mask, and for more than 2 GiB of run lengths. The caller
 * frees each of them (pm_runs_free), also after an error. */
int pm_detection_runs(const struct pm_objects *o, const char *where, struct pm_runs *runs);
/* Lists the keypoints, [count][points][2] in 0..1; NAN if not labelled. */
void pm_detection_keypoints(const struct pm_objects *o, int points, float *out);
/* Returns which keypoints change places in mirrored pictures, [data.num_keypoints]: as dataset.json
 * says, else by their names in the label map. NULL: unknown. The caller frees it. */
int *pm_detection_mirrored(const struct pm_task *t);
/* A decoded record: its picture, and objects whose labels are classes of the net, from 1. */
struct pm_detection_record {
    struct pm_example *example;
    struct pm_image8 picture;
    struct pm_objects objects;
};
/* Channels for decoding pictures of a part of the data. */
int pm_detection_channels(const struct pm_sampler *sampler, int part);
/* channels as in pm_image_decode. PM_ECORRUPT for a damaged record. The caller closes it. */
int pm_detection_open_record(const struct pm_sampler *sampler, const struct pm_loader_record *r,
                             int channels, struct pm_detection_record *out);
void pm_detection_close_record(struct pm_detection_record *record);
/* Filters the record's objects and lists them in the arena; the picture stays in the record. In
 * training the lists have the masks and keypoints that the config asks for. PM_ECORRUPT for a
 * damaged mask. */
int pm_detection_sample(const struct pm_sampler *sampler, struct pm_detection_record *record,
                        const char *where, struct pm_arena *a, struct pm_sample *out);
/* The same without masks, also in training. */
int pm_detection_boxes(const struct pm_sampler *sampler, struct pm_detection_record *record,
                       const char *where, struct pm_arena *a, struct pm_sample *out);
/* detection_mosaic.c: replaces the sample by a mosaic with other records, if input.augment draws
 * one. */
int pm_detection_join(const struct pm_sampler *sampler, const struct pm_loader_record *r,
                      struct pm_arena *a, struct pm_sample *sample);

/* ---- true objects (detection_truths.c) ----------------------------------------------------- */

/* True objects of one picture of an evaluation, in pixels of the file: all with an area. Host data
 * of the loader. */
struct pm_detection_truths {
    int height, width;            /* of the upright picture */
    char *name, *file;            /* owned: its id and its file's name, or NULL */
    struct pm_box_truth *truth;   /* [count], owned */
    int count;
    int *verified;                /* [verified_count], owned: classes somebody looked for; NULL */
    int verified_count;
    int points;                   /* data.num_keypoints */
    float *keypoints;             /* [count][points][2], owned: y, x; NAN: not labelled; or NULL */
    struct pm_runs *runs;         /* [record_objects], owned: the masks, those of the
                                   * listed objects first; one without runs is not annotated; or
                                   * NULL */
    size_t record_objects;        /* with those that are not listed; 0 if runs is NULL */
};
void pm_detection_free_truths(void *truths);
/* Lists a record's true objects for evaluation. PM_ECORRUPT for a damaged mask. The caller frees
 * them with pm_detection_free_truths. */
int pm_detection_truths_of(const struct pm_task *t, const struct pm_example *e,
                           const struct pm_objects *o, const char *where,
                           struct pm_detection_truths **out);
/* The same, of a record that is not decoded yet. height, width: of its picture. */
int pm_detection_truths(const struct pm_task *t, const struct pm_example *e, int height, int width,
                        const char *where, struct pm_detection_truths **out);

/* ---- samples (detection_samples.c) --------------------------------------------------------- */

/* The fields of a batch, after "images" (field 0). In evaluation they are there only if the loss is
 * computed. truth_boxes F32 [M, 4], rotated ones [M, 5]; truth_classes I32 [M], or F32 [M, K] with
 * data.merge_multiple_label_boxes (0 or 1) and data.multiclass_scores; truth_weights F32 [M] (0: no
 * box), matches I32 [N] (matching.h), normalizer F32 scalar, see pm_detection_has_normalizer: with
 * loss.minibatch_sampler the example's number of anchors that count, else the sum of the weights of
 * all matched anchors of the whole batch; at least 1. In training with data.instance_masks
 * truth_masks U32 [M, height, words] follow, the masks of the true boxes in the input, packed by
 * data/mask_bits.h, and truth_mask_weights F32 [M]: the record's weight of the mask, or 0 if the
 * object is a crowd, has no mask, or its mask has no pixel in the input. Masks of rows without a
 * box are 0. In training with data.num_keypoints truth_keypoints F32 [M, K, 2] follow: y, x in 0..1
 * of the input; NaN: not labelled. If the preprocessing pads and boxes are upright, the last field
 * is windows F32 [4], in training and evaluation: the part of the input that the picture fills, as
 * ymin, xmin, ymax, xmax in 0..1. In training it is the picture as input.augment leaves it. */
enum {
    PM_FIELD_BOXES = 1, PM_FIELD_CLASSES, PM_FIELD_WEIGHTS, PM_FIELD_MATCHES, PM_FIELD_NORMALIZER,
};
/* Whether the loss has the field normalizer. */
bool pm_detection_has_normalizer(const struct pm_task *t);
void pm_detection_fields(const struct pm_task *t, bool train, struct pm_frame frame,
                         struct pm_field_list *out);
/* detection_buckets.c. Returns PM_ECONFIG if input.buckets is set, but pictures do not have a size
 * that is independent of the batch. normal: of the preprocessing. */
int pm_detection_check_buckets(const struct pm_task *t, const struct pm_normal *normal);
/* Hook of pm_task_row: the size of a training picture before the padding. */
int pm_detection_need(void *ctx, const struct pm_example *e, const struct pm_loader_record *r,
                      int height, int width, struct pm_frame *out);
/* The same for a sample. r: seed, step, example, part and where are set. */
int pm_detection_need_of(const struct pm_task *t, const struct pm_sample *sample,
                         const struct pm_loader_record *r, struct pm_frame *out);
int pm_detection_frame(const struct pm_task *t, const struct pm_occasion *o, int height, int width,
                       struct pm_frame *out);
int pm_detection_make(void *sampler, const struct pm_loader_record *r, void *const *out);
void pm_detection_whole_batch(void *sampler, struct pm_batch *b);
void pm_detection_set_sum(void *sampler, struct pm_batch *b, double sum);
/* Numbers of a batch, means over its pictures. pm_detection_measure_batch computes their sums. */
extern const struct pm_batch_metric pm_detection_batch_metrics[];
void pm_detection_measure_batch(const struct pm_task *t, const struct pm_batch *batch,
                                double out[PM_MAX_BATCH_METRICS]);
/* Returns the anchors for this frame, or NULL if no training picture has it. */
const struct pm_detection_anchors *pm_detection_anchors_of(const struct pm_task *t,
                                                           struct pm_frame frame);
/* detection_masks.c: adds the fields truth_masks and truth_mask_weights. */
void pm_detection_mask_fields(const struct pm_task *t, struct pm_frame frame,
                              struct pm_field_list *out);
/* Writes both fields: the masks of the objects from[count] of a placed training sample, in this
 * order, then zeros. count <= data.max_boxes. */
void pm_detection_write_masks(const struct pm_task *t, const struct pm_sample *placed,
                              struct pm_frame frame, const size_t *from, size_t count,
                              uint32_t *masks, float *weights);
/* Brings boxes of the net's input, for a picture of height x width pixels in a frame, back to the
 * picture: [count][4] in pixels, clipped to it. A box in the padding has no area then. PM_EDATA if
 * the picture cannot be placed. */
int pm_detection_to_pixels(const struct pm_task *t, struct pm_frame frame, int height, int width,
                           const float *boxes, int count, struct pm_box *out);

/* detection_targets.c */
/* loss.random_example_sampler: of an example's negative anchors, keeps a random part and ignores
 * the others, so that matched anchors are positive_sample_fraction of all that count. All negative
 * anchors are ignored if none is matched. Draws depend on the record's seed, step and example.
 * matches [anchors] and weights [boxes] are those of the fields. */
void pm_detection_sample_anchors(const struct pm_task *t, const struct pm_loader_record *r,
                                 const float *weights, int32_t *matches, int anchors);
/* loss.minibatch_sampler: chooses batch_size random anchors of an example and ignores the others,
 * as Faster R-CNN does (Ren et al. 2015, section 3.1.3). At most positive_fraction of batch_size
 * are positive. If there are too few anchors, it chooses fewer. It never chooses an anchor that
 * matches a box of weight 0. weights [boxes], matches [anchors]. Returns the number of chosen
 * anchors. Thread-safe. */
int pm_detection_sample_minibatch(const struct pm_task *t, const struct pm_loader_record *r,
                                  const float *weights, int32_t *matches, int anchors);
/* Returns the field truth_classes of one example. */
struct pm_field pm_detection_classes_field(const struct pm_task *t);
/* Returns the class, from 0, of a row of the field truth_classes: the first of those with the
 * highest target. */
int32_t pm_detection_class_of(const struct pm_task *t, const void *truth_classes, size_t row);
/* Returns how surely a row of the field truth_classes is an object, for the similarity
 * thresholded_iou: 1, or the sum of its soft labels, at most 1. */
float pm_detection_score_of(const struct pm_task *t, const void *truth_classes, size_t row);
/* Lists a record's soft labels in the arena as the sample's scores, [objects][K]. A record without
 * them has 1 for the classes of its objects and 0 for others, as in TensorFlow. PM_ECORRUPT for
 * another number of values than K. */
int pm_detection_soft_labels(const struct pm_task *t, const struct pm_objects *o,
                             const char *where, struct pm_arena *a, struct pm_sample *out);

/* detection_records.c: the hook record_classes of pm_task_row. */
int pm_detection_record_classes(const struct pm_task *t, const struct pm_example *e,
                                const char *where, uint64_t *has, size_t count, bool *other);
/* detection_check.c: the hook check_data of pm_task_row. */
int pm_detection_check_data(const struct pm_task *t, struct pm_loader *l, int64_t pictures,
                            struct pm_str *text, struct cJSON *object);

/* ---- heads, losses, outputs ---------------------------------------------------------------- */

/* The heads of a net, found by their names boxes_1, classes_1, ..., anchors. */
struct pm_detection_heads {
    int levels;
    struct pm_node *boxes[PM_DETECTION_LEVELS], *classes[PM_DETECTION_LEVELS], *anchors;
    bool background;     /* column 0 of the classes is the background */
    struct pm_node *points; /* set by pm_detection_split_codes */
};
/* detection_heads.c */
void pm_detection_find_heads(struct pm_net *net, struct pm_heads *heads);
int pm_detection_check_heads(const struct pm_task *t, const struct pm_heads *heads, int batch);
int pm_detection_settle(struct pm_task *t, struct pm_frame frame, const struct pm_heads *heads,
                        const struct pm_net_maker *maker);
/* Sorts heads that pm_detection_check_heads accepted. */
void pm_detection_sort_heads(const struct pm_task *t, const struct pm_heads *heads,
                             struct pm_detection_heads *out);
/* Returns the anchors that codes refer to: those of the heads, or, if model.anchors_outside says so
 * for this use, the same clipped to the input. */
struct pm_node *pm_detection_anchor_boxes(struct pm_net *net, const struct pm_detection_heads *h,
                                          const struct pm_task *t, bool train);
/* Number of codes of a box. */
int pm_detection_code_size(const struct pm_task *t);
/* Classes of an anchor, without the background: 1 if a second stage names the classes. */
int pm_detection_anchor_classes(const struct pm_task *t);

/* detection_decode.c: nodes from heads to detections. */
/* Returns the boxes [n, N, 4], or rotated ones [n, N, 5], that the codes of all levels stand for.
 * train: for training, whose anchors may differ. */
struct pm_node *pm_detection_decode(struct pm_net *net, const char *name,
                                    const struct pm_detection_heads *h, const struct pm_task *t,
                                    bool train);
/* Returns the scores [n, N, classes] of the anchors. Pruned anchors have score 0 in training, and
 * rotated ones always. */
struct pm_node *pm_detection_scores(struct pm_net *net, const char *name,
                                    const struct pm_detection_heads *h,
                                    const struct pm_detection_post *p, const struct pm_task *t,
                                    bool train);
/* Returns the layer suppress on boxes and scores. windows, count: NULL if the picture fills the
 * input and if all boxes are valid. */
struct pm_node *pm_detection_suppress(struct pm_net *net, const char *name,
                                      const struct pm_detection_post *p, struct pm_node *boxes,
                                      struct pm_node *scores, struct pm_node *windows,
                                      struct pm_node *count);

/* detection_second.c: the second stage. */
/* Returns the layer suppress whose outputs 0 and 3 are the proposals of the first stage. windows:
 * as above. */
struct pm_node *pm_detection_propose(struct pm_net *net, const struct pm_detection_heads *h,
                                     const struct pm_task *t, bool train,
                                     struct pm_node *windows);
/* The heads of the second stage over regions of the images. */
struct pm_detection_second {
    struct pm_node *codes, *classes; /* [n * R, 4 or 4 C], [n * R, C + 1] */
    struct pm_node *masks;           /* [n * R, h, w, C or 1]; NULL: none */
    struct pm_node *keypoints;       /* [n * R, h, w, K]: heatmaps; NULL: none */
};
/* Builds the second stage and finds its heads. Sets the net's error if they do not fit the task. */
void pm_detection_build_second(struct pm_net *net, const struct pm_net_maker *maker,
                               const struct pm_task *t, const struct pm_regions *regions,
                               struct pm_detection_second *out);
/* Sets the members of t that depend on the second stage. PM_ECONFIG if it does not fit the task. */
int pm_detection_settle_second(struct pm_task *t, struct pm_frame frame,
                               const struct pm_net_maker *maker);
/* What a net predicts for its detections beside their boxes. */
struct pm_detection_shapes {
    struct pm_node *masks;     /* [n, h, w, D] as probabilities; NULL: none */
    struct pm_node *keypoints; /* [n, D, K, 2]: y, x in 0..1 of the input; NULL: none */
};
/* Adds the layers detection_masks and detection_keypoints for the detections of `kept`, if the net
 * predicts these. For masks or keypoints of a second stage, builds it again over the detections;
 * scores [n, D, K] of its keypoints are the second output of their layer. */
void pm_detection_shapes(struct pm_net *net, const struct pm_net_maker *maker,
                         const struct pm_task *t, const struct pm_detection_heads *h,
                         struct pm_node *kept, struct pm_detection_shapes *out);
/* Adds the sampled proposals, the second stage over them, and its loss layers. */
void pm_detection_train_second(struct pm_net *net, const struct pm_detection_heads *h,
                               const struct pm_net_maker *maker, const struct pm_task *t);
/* Adds the second stage's losses over all proposals, for an evaluation. kept: the proposals. */
void pm_detection_evaluate_second(struct pm_net *net, const struct pm_task *t,
                                  struct pm_node *kept, const struct pm_detection_second *second);
/* Returns the boxes that a second stage predicts for the regions, [n, R, 4] or [n, R, C, 4], and
 * the scores [n, R, C] of their classes. */
struct pm_node *pm_detection_second_boxes(struct pm_net *net, const char *name,
                                          const struct pm_task *t,
                                          const struct pm_detection_second *second,
                                          const struct pm_regions *regions);
struct pm_node *pm_detection_second_scores(struct pm_net *net, const char *name,
                                           const struct pm_task *t,
                                           const struct pm_detection_second *second,
                                           const struct pm_regions *regions);
/* detection_losses.c */
void pm_detection_add_loss(struct pm_net *net, const struct pm_heads *heads,
                           const struct pm_net_maker *maker, const struct pm_task *t);
/* Adds the options of the miner to those of a loss layer. */
void pm_detection_add_miner(const struct pm_detection_miner *m, struct cJSON *o);
/* Adds the loss layer of the anchors alone. */
void pm_detection_add_anchor_loss(struct pm_net *net, const struct pm_detection_heads *h,
                                  const struct pm_task *t);
/* detection_outputs.c. Outputs for EVAL and PREDICT: boxes [n, D, 4] F32 in 0..1 of the input (or
 * rotated boxes [n, D, 5], which are not clipped), scores [n, D] F32, classes [n, D] I32, count [n]
 * I32: the number of valid rows.
 * With two stages EVAL has four outputs more: the proposals [n, R, 4] F32 and their number [n] I32;
 * the second stage's boxes for them before suppression, [n, R, 4] or [n, R, C, 4] F32, and their
 * scores [n, R, C] F32. Rows after that number are padding.
 * If the net predicts masks, masks [n, h, w, D] F32 follow: the probability of each pixel of a box.
 * If it predicts keypoints, keypoints [n, D, K, 2] F32 follow, y and x in 0..1 of the input, and
 * their scores [n, D, K], if they have some.
 * Outputs for EXPORT are those of TensorFlow's detectors, all F32: detection_boxes [n, D, 4],
 * detection_scores [n, D], detection_classes [n, D] (from 1), num_detections [n],
 * raw_detection_boxes [n, N, 4] or rotated [n, N, 5], raw_detection_scores [n, N, classes]. Without
 * export.nms and with rotated boxes there are only the last two. Two stages have raw boxes of R
 * regions, [n, R, 4] or [n, R, classes, 4]. With export.proposals they also have proposal_boxes
 * [n, R, 4]. With export.proposals or without export.nms they have num_proposals [n], the number of
 * regions that are not padding. Nets that predict masks have detection_masks [n, h, w, D] with
 * export.nms, in the graph [n, D, h, w], or with export.masks=pasted as pixels of the picture,
 * uint8 [n, D, H, W]. Nets that predict keypoints have detection_keypoints [n, D, K, 2] and, if
 * they have scores, detection_keypoint_scores [n, D, K]. */
enum {
    PM_OUT_BOXES, PM_OUT_SCORES, PM_OUT_CLASSES, PM_OUT_COUNT,
    PM_OUT_PROPOSALS, PM_OUT_PROPOSAL_COUNT, PM_OUT_SECOND_BOXES, PM_OUT_SECOND_SCORES,
};

/* detection_found.c. Picture i of a batch's outputs for this use. */
struct pm_detection_picture {
    struct pm_frame frame;        /* of the batch */
    int height, width;            /* of the picture */
    const void *const *outputs;
    enum pm_use use;              /* EVAL or PREDICT */
    int i;
};
/* Its detections in pixels of the picture. Free with pm_detection_found_free. */
struct pm_detection_found {
    int count;
    struct pm_box_detection *list; /* [count], owned; with masks, if the net predicts them */
    struct pm_runs *masks;         /* [count], owned; NULL: none */
    double *points;                /* [count][points][2], owned: y, x; NULL: none */
    const float **point_scores;    /* [count], owned: the scores [points], in the outputs; NULL:
                                    * they have none */
};
/* Reads the detections. Boxes in the padding have no area in the picture and are left out. A mask
 * is pasted into the picture as by TensorFlow's Object Detection API: pixels whose probability,
 * between those of the mask, is above 0.5 are in the object. PM_EDATA as
 * pm_detection_to_pixels. */
int pm_detection_read(const struct pm_task *t, const struct pm_detection_picture *p,
                      struct pm_detection_found *out);
void pm_detection_found_free(struct pm_detection_found *f);
/* Index of the output masks, or, without masks, of keypoints, for this use. */
int pm_detection_shapes_output(const struct pm_task *t, enum pm_use use);
int pm_detection_outputs(struct pm_net *net, struct pm_node *images,
                         const struct pm_net_maker *maker, const struct pm_task *t,
                         enum pm_use use, struct pm_outputs *out);

/* ---- scores and predictions ---------------------------------------------------------------- */

/* detection_score.c */
extern const struct pm_metric_kind pm_detection_metrics[];
void pm_detection_list_metrics(const struct pm_task *t, struct pm_metric_list *out);
struct pm_score *pm_detection_score_create(const struct pm_task *t);
void pm_detection_score_destroy(struct pm_score **m);
int pm_detection_score_add(struct pm_score *m, const struct pm_batch *batch,
                           const void *const *outputs, double loss);
void pm_detection_score_pack(const struct pm_score *m, struct pm_str *out);
int pm_detection_score_merge(struct pm_score *m, const void *bytes, size_t size);
void pm_detection_score_report(const struct pm_score *m, struct cJSON *object);
void pm_detection_score_detail(const struct pm_score *m, struct cJSON *object);
int pm_detection_score_write(const struct pm_score *m, const char *folder);
int pm_detection_score_samples(const struct pm_score *m, uint64_t records[PM_MAX_SAMPLES]);
int pm_detection_score_sample(const struct pm_score *m, int i, const uint8_t *record, size_t size,
                              const char *where, struct cJSON *object,
                              struct pm_drawings *drawings);
/* detection_present.c */
int pm_detection_present(const struct pm_task *t, struct pm_frame frame,
                         const void *const *outputs, const struct pm_image8 *picture,
                         struct cJSON *object, struct pm_drawings *drawings);
void pm_detection_print(const struct cJSON *object, struct pm_str *out);
void pm_detection_paint(const struct pm_task *t, const struct pm_shown *shown, int i,
                        struct pm_drawings *drawings);

#endif
