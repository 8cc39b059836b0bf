/* detection_score: collects true objects and detections of an evaluation, in pixels of the files,
 * for box_metrics.h, and shows its results. */
#include "data/coco_mask.h"
#include "tasks/class_detail.h"
#include "tasks/detection/box_report.h"
#include "tasks/detection/detection_lost.h"
#include "tasks/detection/detection_points.h"
#include "tasks/record.h"
#include "tasks/score_pack.h"

#include <cjson/cJSON.h>
#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- metrics ----------------------------------------------------------------------------- */

#define COCO "DetectionBoxes_"
#define MASKS "DetectionMasks_"
#define KEYPOINTS "Keypoints_"
#define VOC "Precision/mAP@0.5IOU"
/* In the order of enum pm_box_metric; the tags are those of TensorFlow's Object Detection API. */
const struct pm_metric_kind pm_detection_metrics[] = {
    { "map", true, COCO "Precision/mAP" },
    { "map_50", true, COCO "Precision/mAP@.50IOU" },
    { "map_75", true, COCO "Precision/mAP@.75IOU" },
    { "map_small", true, COCO "Precision/mAP (small)" },
    { "map_medium", true, COCO "Precision/mAP (medium)" },
    { "map_large", true, COCO "Precision/mAP (large)" },
    { "ar_1", true, COCO "Recall/AR@1" },
    { "ar_10", true, COCO "Recall/AR@10" },
    { "ar_100", true, COCO "Recall/AR@100" },
    { "ar_small", true, COCO "Recall/AR@100 (small)" },
    { "ar_medium", true, COCO "Recall/AR@100 (medium)" },
    { "ar_large", true, COCO "Recall/AR@100 (large)" },
    { "voc_map", true, "PascalBoxes_" VOC },
    { "voc07_map", true, "PascalBoxes07_" VOC },
    { "weighted_map", true, "WeightedPascalBoxes_" VOC },
    { "precision_at_recall", true, "PrecisionAtRecallBoxes_" VOC },
    { "corloc", true, "PascalBoxes_CorLoc" },
    { "open_images_map", true, "OpenImagesV2_" VOC },
    { "open_images_challenge_map", true, "OpenImagesDetectionChallenge_" VOC },
    { "mask_map", true, MASKS "Precision/mAP" },
    { "mask_map_50", true, MASKS "Precision/mAP@.50IOU" },
    { "mask_map_75", true, MASKS "Precision/mAP@.75IOU" },
    { "mask_map_small", true, MASKS "Precision/mAP (small)" },
    { "mask_map_medium", true, MASKS "Precision/mAP (medium)" },
    { "mask_map_large", true, MASKS "Precision/mAP (large)" },
    { "mask_ar_1", true, MASKS "Recall/AR@1" },
    { "mask_ar_10", true, MASKS "Recall/AR@10" },
    { "mask_ar_100", true, MASKS "Recall/AR@100" },
    { "mask_ar_small", true, MASKS "Recall/AR@100 (small)" },
    { "mask_ar_medium", true, MASKS "Recall/AR@100 (medium)" },
    { "mask_ar_large", true, MASKS "Recall/AR@100 (large)" },
    { "mask_voc_map", true, "PascalMasks_" VOC },
    { "mask_weighted_map", true, "WeightedPascalMasks_" VOC },
    { "keypoint_map", true, KEYPOINTS "Precision/mAP" },
    { "keypoint_map_50", true, KEYPOINTS "Precision/mAP@.50IOU" },
    { "keypoint_map_75", true, KEYPOINTS "Precision/mAP@.75IOU" },
    { "keypoint_map_medium", true, KEYPOINTS "Precision/mAP (medium)" },
    { "keypoint_map_large", true, KEYPOINTS "Precision/mAP (large)" },
    { "keypoint_ar", true, KEYPOINTS "Recall/AR@20" },
    { "keypoint_ar_50", true, KEYPOINTS "Recall/AR@.50IOU" },
    { "keypoint_ar_75", true, KEYPOINTS "Recall/AR@.75IOU" },
    { "keypoint_ar_medium", true, KEYPOINTS "Recall/AR@20 (medium)" },
    { "keypoint_ar_large", true, KEYPOINTS "Recall/AR@20 (large)" },
    { "best_f1", true, "BestF1" }, /* from here on, rows that belong to no set */
    { "proposal_recall_50", true, "Proposals/Recall@.50IOU" }, /* of two stages, like the next */
    { "proposal_recall_70", true, "Proposals/Recall@.70IOU" },
    { "loss", false, "losses/loss" }, /* in training's chart */
    { 0 },
};
enum { BEST_F1 = PM_BOX_METRICS, PROPOSAL_RECALL_50, PROPOSAL_RECALL_70, LOSS };
static_assert(PM_COUNT(pm_detection_metrics) == LOSS + 2, "a metric has no row");

/* The set of each metric: the number of the last one plus 1. */
static unsigned set_of(int metric)
{
    return metric < PM_BOX_VOC_MAP           ? PM_BOX_COCO
           : metric < PM_BOX_OPEN_IMAGES_MAP ? PM_BOX_PASCAL
           : metric == PM_BOX_OPEN_IMAGES_MAP ? PM_BOX_OPEN_IMAGES
           : metric < PM_BOX_MASK_MAP         ? PM_BOX_OPEN_IMAGES_CHALLENGE
           : metric < PM_BOX_MASK_VOC_MAP     ? PM_BOX_COCO_MASKS
           : metric < PM_BOX_KEYPOINT_MAP     ? PM_BOX_PASCAL_MASKS
                                              : PM_BOX_COCO_KEYPOINTS;
}

/* Whether evaluation computes the loss. */
static bool has_loss(const struct pm_task *t)
{
    const struct pm_frame frame = { t->facts.eval_height, t->facts.eval_width };

    return !t->facts.own_sizes && pm_detection_anchors_of(t, frame);
}

/* Whether evaluation computes this row of pm_detection_metrics. */
static bool is_listed(const struct pm_task *t, int metric)
{
    return metric < PM_BOX_METRICS ? t->sets & set_of(metric)
           : metric == BEST_F1     ? true
           : metric == LOSS        ? has_loss(t)
                                   : t->stages == 2;
}

void pm_detection_list_metrics(const struct pm_task *t, struct pm_metric_list *out)
{
    for (int i = 0; pm_detection_metrics[i].name; i++) {
        if (!is_listed(t, i))
            continue;
        PM_GROW(out->list, out->count, out->capacity);
        out->list[out->count++] = &pm_detection_metrics[i];
    }
}

/* ---- collecting -------------------------------------------------------------------------- */

struct pm_score {
    const struct pm_task *task; /* borrowed */
    struct pm_box_metrics *metrics; /* owned, like the next one */
    struct pm_lost_objects *lost;   /* NULL: there is one stage */
    struct pm_score_sum loss;   /* of the batches, each times its pictures */
    uint64_t count;
    uint64_t *samples;          /* [PM_MAX_SAMPLES], owned: what score_samples has selected */
    int *samples_count;         /* owned */
};

struct pm_score *pm_detection_score_create(const struct pm_task *t)
{
    struct pm_score *m = pm_calloc(1, sizeof *m);
    double *sigmas = pm_detection_sigmas(t);

    m->task = t;
    m->metrics = pm_box_metrics_create(&(struct pm_box_metrics_options){
        .classes = t->facts.num_classes, .recall_lower = t->recall[0],
        .recall_upper = t->recall[1], .masks = t->mask_height > 0,
        .rotated = t->rotated, .points = t->points, .sigmas = sigmas });
    pm_free(sigmas);
    if (t->stages == 2)
        m->lost = pm_lost_objects_create(t->facts.num_classes);
    m->samples = pm_calloc(PM_MAX_SAMPLES, sizeof *m->samples);
    m->samples_count = pm_calloc(1, sizeof *m->samples_count);
    return m;
}

void pm_detection_score_destroy(struct pm_score **m)
{
    if (*m) {
        pm_box_metrics_destroy(&(*m)->metrics);
        pm_lost_objects_destroy(&(*m)->lost);
        pm_score_sum_free(&(*m)->loss);
        pm_free((*m)->samples);
        pm_free((*m)->samples_count);
    }
    pm_free(*m);
    *m = NULL;
}

/* Whether the picture's annotations cover a class. Without a list of absent classes they cover
 * all. */
static bool is_labelled(const struct pm_detection_truths *t, int32_t label)
{
    bool found = !t->verified;

    for (int i = 0; i < t->verified_count && !found; i++)
        found = t->verified[i] == label;
    for (int i = 0; i < t->count && !found; i++)
        found = t->truth[i].label == label;
    return found;
}

/* Leaves out detections of classes that the picture's annotations do not cover. Returns how many
 * are left. */
static int keep_labelled(const struct pm_detection_truths *t, struct pm_box_detection *list,
                         int count)
{
    int n = 0;

    for (int k = 0; k < count; k++)
        if (is_labelled(t, list[k].label))
            list[n++] = list[k];
    return n;
}

static int add_picture(struct pm_score *m, const struct pm_batch *batch, int i,
                       const void *const *outputs)
{
    const struct pm_detection_truths *truths = batch->host[i];
    const struct pm_detection_picture of = { batch->frame, truths->height, truths->width, outputs,
                                             PM_USE_EVAL, i };
    struct pm_detection_found found = { 0 };
    double *points = NULL;
    int count, err = PM_OK;

    PM_TRY(pm_detection_read(m->task, &of, &found));
    count = m->task->skip_unlabeled ? keep_labelled(truths, found.list, found.count) : found.count;
    if (m->lost)
        PM_TRY(pm_detection_add_lost(m->task, &of, truths, found.list, count, m->lost));
    for (int k = 0; k < truths->count && truths->runs && m->task->mask_height > 0; k++)
        truths->truth[k].mask = truths->runs[k].count ? &truths->runs[k] : NULL;
    points = pm_detection_true_points(m->task, batch->host[i]);
    pm_box_metrics_add(m->metrics, &(struct pm_box_picture){
        .record = batch->record[i], .name = truths->name, .file = truths->file,
        .truth = truths->truth, .detection = found.list, .truths = truths->count,
        .detections = count,
        .verified = truths->verified, .verified_count = truths->verified_count });
out:
    pm_free(points);
    pm_detection_found_free(&found);
    return err;
}

int pm_detection_score_add(struct pm_score *m, const struct pm_batch *batch,
                           const void *const *outputs, double loss)
{
    int err = PM_OK;

    for (int i = 0; i < batch->valid; i++)
        PM_TRY(add_picture(m, batch, i, outputs));
    pm_score_sum_add(&m->loss, loss * batch->valid);
    m->count += (uint64_t)batch->valid;
out:
    return err;
}

/* ---- packing ----------------------------------------------------------------------------- */

/* The options on which the contents of a pack depend. */
static struct pm_str describe_pack(const struct pm_score *m)
{
    struct pm_str text = { 0 };

    pm_str_add(&text, "detection, %d classes%s%s%s%s", m->task->facts.num_classes,
               m->task->rotated ? ", rotated" : "",
               m->task->skip_unlabeled ? ", skip_unlabeled" : "",
               m->task->mask_height > 0 ? ", masks" : "", m->lost ? ", two stages" : "");
    if (m->task->points > 0)
        pm_str_add(&text, ", %d keypoints", m->task->points);
    return text;
}

void pm_detection_score_pack(const struct pm_score *m, struct pm_str *out)
{
    const size_t begin = pm_score_pack_begin(out, describe_pack(m));

    pm_pack_int(out, m->count);
    pm_score_sum_pack(&m->loss, out);
    pm_box_metrics_pack(m->metrics, out);
    if (m->lost)
        pm_lost_objects_pack(m->lost, out);
    pm_score_pack_end(out, begin);
}

int pm_detection_score_merge(struct pm_score *m, const void *bytes, size_t size)
{
    struct pm_unpack u;
    int err = PM_OK;

    PM_TRY(pm_score_unpack_begin(&u, bytes, size, describe_pack(m)));
    m->count += pm_unpack_int(&u);
    pm_score_sum_merge(&m->loss, &u);
    pm_box_metrics_merge(m->metrics, &u);
    if (m->lost)
        pm_lost_objects_merge(m->lost, &u);
    PM_TRY(pm_score_unpack_end(&u));
out:
    return err;
}

/* ---- results ----------------------------------------------------------------------------- */

/* Adds a list with the metric of each class. cJSON writes null for a number that is not finite. */
static void add_classes(const struct pm_score *m, const struct pm_box_values *values, int metric,
                        const char *name, struct cJSON *object)
{
    cJSON *list = cJSON_AddArrayToObject(object, name);

    for (int k = 0; k < m->task->facts.num_classes; k++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(values[k].v[metric]));
}

void pm_detection_score_report(const struct pm_score *m, struct cJSON *object)
{
    const struct pm_task *t = m->task;
    struct pm_box_values *classes = pm_calloc((size_t)t->facts.num_classes, sizeof *classes), mean;

    pm_box_metrics_values(m->metrics, t->sets, &mean, classes);
    for (int i = 0; i < PM_BOX_METRICS; i++)
        if (t->sets & set_of(i))
            cJSON_AddNumberToObject(object, pm_detection_metrics[i].name, mean.v[i]);
    if (m->lost)
        pm_lost_objects_report(m->lost, object);
    if (has_loss(t))
        cJSON_AddNumberToObject(object, "loss", m->loss.value / (double)m->count);
    if (t->sets & PM_BOX_COCO) {
        add_classes(m, classes, PM_BOX_MAP, "per_class_ap", object);
        add_classes(m, classes, PM_BOX_MAP_50, "per_class_ap_50", object);
    }
    if (t->sets & PM_BOX_PASCAL)
        add_classes(m, classes, PM_BOX_VOC_MAP, "per_class_voc_ap", object);
    pm_box_report_best(m->metrics, object);
    pm_free(classes);
}

/* The score above which detections count as such in the report: with "best" that of the best F1 of
 * this evaluation's detections of all classes. */
static double threshold_of(const struct pm_score *m)
{
    struct pm_coco_curve all;

    if (!m->task->best_threshold)
        return m->task->score_threshold;
    pm_box_metrics_curve(m->metrics, -1, &all);
    return isfinite(all.score) ? all.score : PM_DETECTION_SCORE;
}

void pm_detection_score_detail(const struct pm_score *m, struct cJSON *object)
{
    pm_class_detail_labels(&m->task->facts, object);
    /* The numbers of the label map, as in detections.json and in predictions, begin with 1. */
    cJSON_SetNumberValue(cJSON_GetObjectItem(object, "labels_offset"), 1);
    pm_box_report_detail(m->metrics, threshold_of(m), object);
    if (m->lost)
        pm_lost_objects_detail(m->lost, threshold_of(m), object);
}

static int write_results(const struct pm_score *m, const char *folder, const char *name,
                         enum pm_box_results what)
{
    struct pm_str path = { 0 };

    pm_str_add(&path, "%s/%s", folder, name);
    const int err = pm_box_metrics_write(m->metrics, what, NULL, path.text);
    pm_str_free(&path);
    return err;
}

/* DOTA's submission files have the names of the classes. */
static int write_dota(const struct pm_score *m, const char *folder)
{
    const size_t classes = (size_t)m->task->facts.num_classes;
    char (*numbers)[16] = pm_malloc(classes * sizeof *numbers);
    const char **names = pm_malloc(classes * sizeof *names);

    for (size_t k = 0; k < classes; k++)
        names[k] = pm_detection_name(m->task, (int)k, numbers[k]);
    const int err = pm_box_metrics_write_dota(m->metrics, names, folder);

    pm_free(numbers);
    pm_free(names);
    return err;
}

/* The files have COCO's form for results; category ids are those of the label map. */
int pm_detection_score_write(const struct pm_score *m, const char *folder)
{
    int err = PM_OK;

    PM_TRY(write_results(m, folder, "detections.json", PM_BOX_RESULTS_BOXES));
    if (m->task->mask_height > 0)
        PM_TRY(write_results(m, folder, "detections_masks.json", PM_BOX_RESULTS_MASKS));
    if (m->task->points > 0)
        PM_TRY(write_results(m, folder, "detections_keypoints.json", PM_BOX_RESULTS_POINTS));
    if (m->task->rotated)
        PM_TRY(write_dota(m, folder));
out:
    return err;
}

/* ---- pictures ---------------------------------------------------------------------------- */

int pm_detection_score_samples(const struct pm_score *m, uint64_t records[PM_MAX_SAMPLES])
{
    *m->samples_count = pm_box_metrics_samples(m->metrics, threshold_of(m),
                                               PM_MAX_SAMPLES, m->samples);
    memcpy(records, m->samples, (size_t)*m->samples_count * sizeof *records);
    return *m->samples_count;
}

int pm_detection_score_sample(const struct pm_score *m, int i, const uint8_t *record, size_t size,
                              const char *where, struct cJSON *object,
                              struct pm_drawings *drawings)
{
    struct pm_image8 *image = pm_drawings_add(drawings, "image");
    int err = PM_OK;

    PM_TRY(pm_record_picture(&m->task->facts, record, size, where, image));
    if (i >= *m->samples_count ||
        !pm_box_report_sample(m->metrics, m->samples[i], threshold_of(m), image->height,
                              image->width, object))
        PM_TRY(pm_fail(PM_EFAIL, "%s: is not one of the evaluation's pictures", where));
out:
    return err;
}
