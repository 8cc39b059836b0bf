/* recognition: this task's object, for its source files and its tests. A picture shows one text,
 * which the net reads as a sequence of symbols. Rules: the text recognition fork of TensorFlow's
 * Object Detection API; connectionist temporal classification (CTC), Graves et al. 2006. */
#ifndef PM_RECOGNITION_H
#define PM_RECOGNITION_H

#include <pumice/task.h>

#include "nets/spatial_transformer.h"
#include "tasks/recognition/charset.h"
#include "tasks/recognition/word_distance.h"

/* ---- the object -------------------------------------------------------------------------- */

/* Options of the config's section `data` that recognition adds. */
struct pm_recognition_data {
    const char *charset;
    bool lower_case;
    int unk_label;
    int max_num_steps;
};
/* Options of the section `model` that recognition adds. */
enum pm_predictor { PM_PREDICTOR_CTC, PM_PREDICTOR_ATTENTION };
enum pm_reading { PM_READING_FORWARD, PM_READING_BACKWARD, PM_READING_BOTH };
enum pm_recognition_transformer { PM_TRANSFORMER_NONE, PM_TRANSFORMER_TPS };
struct pm_recognition_model {
    int transformer; /* enum pm_recognition_transformer */
    const struct cJSON *spatial_transformer; /* NULL: its defaults */
    int predictor;           /* enum pm_predictor */
    int attention_direction; /* enum pm_reading */
    int attention_units, decoder_units, beam_width;
};
/* The pictures that a transformer straightens, [n, height, width, channels]. */
struct pm_recognition_straight {
    const char *node; /* in the net; in the arena; NULL: no transformer */
    int height, width, channels;
};
/* Options of the section `loss` that recognition adds. */
struct pm_recognition_loss {
    double keypoint_weight;
};
struct pm_recognition_reported; /* what was reported; it has a lock */
struct pm_task {
    struct pm_task_facts facts;
    struct pm_recognition_data data;
    struct pm_recognition_model model;
    struct pm_recognition_loss loss;
    struct pm_spatial_transformer transformer; /* used with model.transformer=tps */
    const struct pm_charset *charset; /* in the arena */
    struct pm_arena *arena;           /* owned */
    struct pm_recognition_reported *reported; /* owned */
    int steps; /* of the net; set by settle, as is straight */
    struct pm_recognition_straight straight;
};
/* With CTC the net has a class for each letter, and the blank as the last one. */
static inline int pm_recognition_blank(const struct pm_task *t)
{
    return t->charset->count;
}

/* ---- attention: recognition_attention.c -------------------------------------------------- */

/* Classes of a predictor with attention: the start, the end, then the letters. */
enum { PM_RECOGNITION_START, PM_RECOGNITION_END, PM_RECOGNITION_LETTERS };
/* Outputs of a search for each direction, in this order: see layers/attention_decoder.c. */
enum {
    PM_RECOGNITION_SYMBOLS, PM_RECOGNITION_PARENTS, PM_RECOGNITION_COLUMNS, PM_RECOGNITION_TOTALS,
    PM_RECOGNITION_OUTPUTS,
};
/* Returns the number of predictors: 2 if texts are read in both directions. */
int pm_recognition_directions(const struct pm_task *t);
/* Returns the number of outputs of an evaluation or a prediction from which the texts are read. The
 * transformer's outputs follow: its control points, then the straightened pictures. */
int pm_recognition_text_outputs(const struct pm_task *t);
/* Whether predictor k = 0, 1 reads backward. */
bool pm_recognition_is_backward(const struct pm_task *t, int k);
/* Name of the field with the targets of predictor k. */
const char *pm_recognition_field(const struct pm_task *t, int k);
/* Writes the targets of a text of `count` symbols for one predictor into out[data.max_num_steps]:
 * the letters' classes and the end, as many as there is room for; -1 follows. out may be the array
 * of the symbols. */
void pm_recognition_targets(const struct pm_task *t, const int32_t *symbols, int count,
                            int32_t *out);
/* The head is a sequence that attention can read. PM_ECONFIG. */
int pm_recognition_check_sequence(const struct pm_heads *heads);
/* Adds the predictors and their losses. The net has inputs with the names of the fields. */
void pm_recognition_add_decoders(struct pm_net *net, struct pm_node *sequence,
                                 const struct pm_task *t);
/* Adds the searches and their outputs. share: the net has the decoders of
 * pm_recognition_add_decoders, whose variables they use. logits: the outputs are the logits of a
 * search of one beam. */
void pm_recognition_add_searches(struct pm_net *net, struct pm_node *sequence,
                                 const struct pm_task *t, bool share, bool logits,
                                 struct pm_outputs *out);
/* A text that was read. Free text and columns. */
struct pm_recognised {
    struct pm_letters text;
    double score; /* probability of the beam or, with CTC, of the path; NaN: nothing was read */
    int *columns; /* [text.count]: the step of the sequence that each letter attends to the most;
                   * NULL with CTC */
    bool backward; /* it was read by the backward predictor */
};
/* Reads example i of the searches' outputs: the beam with the largest total, the lower one if two
 * are equal; of two predictors the one with the larger total, the forward one if both are equal. */
void pm_recognition_read_beams(const struct pm_task *t, const void *const *outputs, size_t i,
                               struct pm_recognised *out);
void pm_recognised_free(struct pm_recognised *r);

/* ---- samples: recognition_samples.c ------------------------------------------------------ */

/* Order of a batch's fields. Lengths: with CTC. With attention, the labels of the second predictor
 * follow those of the first. Fields of key points follow, in training with a loss for them. */
enum { PM_RECOGNITION_IMAGES, PM_RECOGNITION_LABELS, PM_RECOGNITION_LENGTHS };

/* What evaluation keeps of a record, as the loader's host data. */
struct pm_recognition_truth {
    struct pm_letters text;
    struct pm_letters *lexicon; /* of image/lexicon; NULL: none */
    int words;                  /* of the lexicon */
    float *points; /* of image/keypoints: where the control points should be, [2
                    * num_control_points]; NULL: there are none, or no transformer */
};
void pm_recognition_truth_free(void *truth); /* accepts NULL */

struct pm_recognition_reported *pm_recognition_reported_create(void);
void pm_recognition_reported_destroy(struct pm_recognition_reported **r);
/* Writes the symbols of a text into out[data.max_num_steps] and returns their number. Letters that
 * the charset lacks become data.unk_label, or are left out, and each is reported once; longer texts
 * are cut, which is reported once. So is a text from right to left, which CTC cannot learn as it
 * is; the order of the letters stays. where: the record. Thread-safe. */
int pm_recognition_symbols(const struct pm_task *t, const struct pm_letters *text,
                           const char *where, int32_t *out);
void pm_recognition_fields(const struct pm_task *t, bool train, struct pm_frame frame,
                           struct pm_field_list *out);
int pm_recognition_make(void *sampler, const struct pm_loader_record *r, void *const *out);
/* Reads image/transcript. PM_EDATA if it is missing or not UTF-8. */
int pm_recognition_text(const struct pm_task *t, const struct pm_example *e, const char *where,
                        struct pm_letters *out);
/* Reads the words of image/lexicon, which tabs separate, into out->lexicon and out->words; none if
 * the record has no such field. PM_EDATA if a word is not UTF-8. pm_recognition_truth_free frees
 * them. */
int pm_recognition_lexicon(const struct pm_task *t, const struct pm_example *e, const char *where,
                           struct pm_recognition_truth *out);

/* ---- the transformer: recognition_rectify.c ---------------------------------------------- */

/* Reads model.spatial_transformer of t->model into t->transformer. PM_ECONFIG with one line. */
int pm_recognition_read_transformer(const struct pm_config *c, struct pm_task *t);
/* pm_task_row.before_net: the straightened pictures, or the pictures without a transformer. */
struct pm_node *pm_recognition_before_net(const struct pm_task *t, struct pm_net *net,
                                          struct pm_node *images);

/* ---- key points: recognition_points.c ---------------------------------------------------- */

extern const struct pm_opt pm_recognition_loss_opts[];
/* Reads the section `loss` into t->loss, after t->model. PM_ECONFIG. */
int pm_recognition_read_loss(const struct pm_config *c, struct pm_task *t);
/* The net gives control points: it has a transformer. */
bool pm_recognition_has_points(const struct pm_task *t);
/* Training has a loss of control points. */
bool pm_recognition_learns_points(const struct pm_task *t);
/* Computes where the control points of a record should be: out[2 num_control_points], x, y as
 * shares of the width and height of the placed picture. picture: its size before it was placed.
 * Returns 1; 0 if the record has no key points: out is unchanged. PM_EDATA. */
int pm_recognition_points(const struct pm_task *t, const struct pm_example *e,
                          const struct pm_image8 *picture, const struct pm_placed *placed,
                          const char *where, float *out);
/* pm_task_row.marks: image/keypoints, if training has their loss. */
const char *pm_recognition_marks(const struct pm_task *t, const char **option);
/* The fields of key points, only if training has their loss. out: all fields. PM_EDATA. */
void pm_recognition_points_fields(const struct pm_task *t, struct pm_field_list *out);
int pm_recognition_make_points(const struct pm_task *t, const struct pm_example *e,
                               const struct pm_image8 *picture, const struct pm_placed *placed,
                               const char *where, void *const *out);
/* pm_task_row.whole_batch and set_sum: the sum counts the pictures with key points. */
void pm_recognition_whole_batch(void *sampler, struct pm_batch *b);
void pm_recognition_set_sum(void *sampler, struct pm_batch *b, double sum);
/* Adds the loss layer "keypoint_loss". The net has a transformer and inputs with the names of the
 * fields. */
void pm_recognition_add_points_loss(struct pm_net *net, const struct pm_task *t);
/* Returns the control points of example i, [2 num_control_points], of the outputs of an evaluation
 * or a prediction; NULL without a transformer. */
const float *pm_recognition_control_points(const struct pm_task *t, const void *const *outputs,
                                           size_t i);
/* How far control points are from where they should be. */
struct pm_point_errors {
    double distance; /* mean of the points, in pixels of input.size */
    double squared;  /* mean of the squared differences of all x and y: the loss */
};
struct pm_point_errors pm_recognition_point_errors(const struct pm_task *t, const float *points,
                                                   const float *truth);
/* Adds the list "control_points" of [x, y]. Does nothing if points is NULL. */
void pm_recognition_add_points(const struct pm_task *t, const float *points, struct cJSON *object);

/* ---- what a net reads: recognition_read.c ------------------------------------------------ */

/* The text of the logits [steps][classes]: the class with the largest logit at each step, without
 * repetitions and blanks. The lowest class counts if several are equal. score: the probability of
 * this path, 0..1; NaN, and no text, if a logit is not finite. Free the letters. */
void pm_recognition_read(const struct pm_task *t, const float *logits, int steps,
                         struct pm_letters *out, double *score);
/* Reads example i of the outputs of an evaluation or a prediction, with either predictor. */
void pm_recognition_read_example(const struct pm_task *t, const void *const *outputs, size_t i,
                                 struct pm_recognised *out);
/* Returns the number of steps of these logits, [n, t, classes] or [n, 1, t, classes]; 0: they have
 * another shape. */
int pm_recognition_steps(const struct pm_task *t, struct pm_shape logits);

/* ---- pictures and marks: recognition_marks.c --------------------------------------------- */

/* Sets t->straight from the net that this head belongs to. */
void pm_recognition_find_straight(struct pm_task *t, const struct pm_node *head);
/* Adds the straightened pictures to the outputs of an evaluation or a prediction, as the last one;
 * nothing without a transformer. */
void pm_recognition_add_straight(const struct pm_task *t, struct pm_net *net,
                                 struct pm_outputs *out);
/* Makes the straightened picture of example i; the largest magnitude becomes black or white. Free
 * out. Returns false, and leaves out without pixels, without a transformer. */
bool pm_recognition_straight(const struct pm_task *t, const void *const *outputs, size_t i,
                             struct pm_image8 *out);
/* Adds the list "attention": for each letter the middle of its column in 0..1 of the width of the
 * picture that the net reads; with a transformer, the straightened one. Does nothing without
 * columns. */
void pm_recognition_add_marks(const struct pm_task *t, const int *columns, int count,
                              struct cJSON *object);
/* Draws the picture with what was read below it and, with attention, a line from each letter to its
 * column. With a transformer the marks are in a second drawing, "-straight", of the straightened
 * picture. text: that of r. outputs: of the prediction, whose example 0 was read. */
void pm_recognition_draw(const struct pm_task *t, const struct pm_image8 *picture,
                         const struct pm_recognised *r, const char *text,
                         const void *const *outputs, struct pm_drawings *drawings);

/* ---- metrics: recognition_score.c -------------------------------------------------------- */

extern const struct pm_metric_kind pm_recognition_metrics[];
void pm_recognition_list_metrics(const struct pm_task *t, struct pm_metric_list *out);
struct pm_score *pm_recognition_score_create(const struct pm_task *t);
void pm_recognition_score_destroy(struct pm_score **m);
int pm_recognition_score_add(struct pm_score *m, const struct pm_batch *batch,
                             const void *const *outputs, double loss);
void pm_recognition_score_pack(const struct pm_score *m, struct pm_str *out);
int pm_recognition_score_merge(struct pm_score *m, const void *bytes, size_t size);
void pm_recognition_score_report(const struct pm_score *m, struct cJSON *object);
void pm_recognition_score_detail(const struct pm_score *m, struct cJSON *object);
int pm_recognition_score_samples(const struct pm_score *m, uint64_t records[PM_MAX_SAMPLES]);
int pm_recognition_score_sample(const struct pm_score *m, int i, const uint8_t *record,
                                size_t size, const char *where, struct cJSON *object,
                                struct pm_drawings *drawings);

#endif
