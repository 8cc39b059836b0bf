/* detection_points: the keypoints of objects in training, evaluation and prediction. K is
 * data.num_keypoints; a net predicts all K of them (task->points) or none. Points are y, x. */
#ifndef PM_DETECTION_POINTS_H
#define PM_DETECTION_POINTS_H

#include "tasks/detection/detection.h"

#include <pumice/draw.h>

/* Training pictures so far, of a net that predicts keypoints. */
struct pm_detection_seen {
    atomic_uint_least64_t pictures, labelled; /* labelled: those with a labelled keypoint */
};

/* ---- options ------------------------------------------------------------------------------- */

/* Checks and sets t->sigmas and t->edges. t->data is set. PM_ECONFIG. */
int pm_detection_read_points(const struct pm_config *c, const struct pm_detection_eval *e,
                             struct pm_task *t);
/* Checks that metrics of keypoints are possible, once t->points is known. PM_ECONFIG. */
int pm_detection_check_points(const struct pm_task *t);
/* Checks model.box_coder.type keypoint and sets its num_keypoints. The other members of t are read.
 * PM_ECONFIG. */
int pm_detection_check_coded_points(const struct pm_config *c, struct pm_task *t);
/* Returns the number of keypoints that are coded with boxes. */
int pm_detection_coded_points(const struct pm_task *t);
/* Whether objects of the class have keypoints: those whose entry of the label map names some, or,
 * if the label map names none at all, those of all classes. */
bool pm_detection_has_points(const struct pm_task *t, int label);
/* Returns pm_box_metrics_options.sigmas, [classes][points]. The caller frees it. */
double *pm_detection_sigmas(const struct pm_task *t);

/* ---- training ------------------------------------------------------------------------------ */

/* Adds the field truth_keypoints. */
void pm_detection_points_field(const struct pm_task *t, struct pm_field_list *out);
/* Writes the field: the keypoints of the objects from[count] of a placed training sample, in this
 * order, then NAN. Warns once if no keypoint is labelled in the first pictures of the training. */
void pm_detection_write_points(const struct pm_task *t, const struct pm_sample *placed,
                               const size_t *from, size_t count, float *out);

/* ---- keypoints that are coded with boxes (detection_coded_points.c) ----------------- */

/* Splits the codes of each level, if they have keypoints: h->boxes becomes maps of 4 codes of each
 * anchor, h->points the codes [n, N, 2 K] of keypoints. Otherwise h->points is NULL. */
void pm_detection_split_codes(struct pm_net *net, const struct pm_task *t,
                              struct pm_detection_heads *h);
/* Adds the loss of h->points to a net for training; nothing if it is NULL. */
void pm_detection_add_code_loss(struct pm_net *net, const struct pm_task *t,
                                const struct pm_detection_heads *h);
/* Returns the layer detection_keypoints, [n, D, K, 2], of the detections `kept` (suppress). */
struct pm_node *pm_detection_decode_points(struct pm_net *net, const struct pm_task *t,
                                           const struct pm_detection_heads *h,
                                           struct pm_node *kept);

/* ---- evaluation and prediction --------------------------------------------------------------- */

/* As pm_detection_to_pixels for points [count][2], in place: to 0..1 of the picture, not clipped.
 * detection_samples.c */
int pm_detection_points_back(const struct pm_task *t, struct pm_frame frame, int height, int width,
                             float *points, int count);
/* Sets the keypoints of the detections found->list, whose rows in the outputs are row[count].
 * PM_EDATA as pm_detection_to_pixels. */
int pm_detection_find_points(const struct pm_task *t, const struct pm_detection_picture *p,
                             const int *row, struct pm_detection_found *found);
/* Returns the true keypoints of an evaluation's picture, [count][points][2], and sets
 * pm_box_truth.points. NULL: the net predicts none. The caller frees it. */
double *pm_detection_true_points(const struct pm_task *t, struct pm_detection_truths *truths);
/* Adds the member keypoints of a detection: [[y, x, score], ...] in pixels of the picture, without
 * scores if there are none. */
void pm_detection_points_json(const struct pm_task *t, const struct pm_box_detection *d,
                              const float *scores, struct cJSON *row);
/* Draws the keypoints of a detection in a picture of height x width pixels, and the lines between
 * them. side: as for pm_draw_point_at, in pixels of out. */
void pm_detection_draw_points(const struct pm_task *t, const struct pm_box_detection *d, int height,
                              int width, int side, struct pm_color color,
                              struct pm_image8 *out);

#endif
