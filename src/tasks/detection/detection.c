/* detection: boxes with classes: the row of the task. */
#include "tasks/detection/detection_points.h"
#include "tasks/detection/detection_tiles.h"
#include "tasks/record.h"

/* Appends "3 classes, 1917 anchors". */
static void describe(const struct pm_task *t, struct pm_str *out)
{
    pm_str_add(out, "%d %s", t->facts.num_classes, t->facts.num_classes > 1 ? "classes" : "class");
    if (t->anchors_count)
        pm_str_add(out, ", %d anchors", t->anchors[0].count);
}

static int picture(const struct pm_task *t, const uint8_t *record, size_t size, const char *where,
                   struct pm_image8 *out)
{
    return pm_record_picture(&t->facts, record, size, where, out);
}

static struct pm_net_ends net_ends(const struct pm_task *t)
{
    return (struct pm_net_ends){ .coded_keypoints = pm_detection_coded_points(t),
                                 .rotated_boxes = t->rotated };
}

static void exporting(const struct pm_task *t, struct pm_task_export *out)
{
    *out = (struct pm_task_export){ .pads = t->export.pad && !t->facts.own_sizes && !t->rotated };
}

const struct pm_task_row pm_task_detection = {
    .config = { .name = "detection",
                .sections = pm_detection_sections,
                .metrics = pm_detection_metrics,
                .defaults = pm_detection_defaults,
                .check = pm_detection_check_config },
    .spatial = true,
    .unit = "boxes",
    .converters = "voc, coco, yolo, kitti, boxes, open_images, oxford_pets, dota, hrsc, icdar",
    .prediction = "the boxes above eval.score_threshold, by class; --json: every box in pixels of\n"
                  "the picture, and its rotated box, its mask as COCO's run lengths and its\n"
                  "keypoints, if the net predicts them; NAME.png with the boxes, masks,\n"
                  "keypoints, names and scores.\n"
                  "predict.tile cuts large photos into tiles and merges their detections\n",
    .classes = pm_detection_classes,
    .open = pm_detection_open,
    .close = pm_detection_close,
    .describe = describe,
    .fields = pm_detection_fields,
    .frame = pm_detection_frame,
    .need = pm_detection_need,
    .make = pm_detection_make,
    .batch_metrics = pm_detection_batch_metrics,
    .measure_batch = pm_detection_measure_batch,
    .whole_batch = pm_detection_whole_batch,
    .set_sum = pm_detection_set_sum,
    .free_host = pm_detection_free_truths,
    .picture = picture,
    .settle = pm_detection_settle,
    .net_ends = net_ends,
    .find_heads = pm_detection_find_heads,
    .check_heads = pm_detection_check_heads,
    .add_loss = pm_detection_add_loss,
    .add_outputs = pm_detection_outputs,
    .exporting = exporting,
    .export_notes = pm_detection_export_notes,
    .metrics = pm_detection_list_metrics,
    .score_create = pm_detection_score_create,
    .score_destroy = pm_detection_score_destroy,
    .score_add = pm_detection_score_add,
    .score_pack = pm_detection_score_pack,
    .score_merge = pm_detection_score_merge,
    .score_report = pm_detection_score_report,
    .score_detail = pm_detection_score_detail,
    .score_write = pm_detection_score_write,
    .score_samples = pm_detection_score_samples,
    .sample_side = 480,
    .score_sample = pm_detection_score_sample,
    .paint = pm_detection_paint,
    .present = pm_detection_present,
    .tiling = pm_detection_tiling,
    .tiled_create = pm_detection_tiled_create,
    .tiled_destroy = pm_detection_tiled_destroy,
    .tiled_add = pm_detection_tiled_add,
    .tiled_present = pm_detection_tiled_present,
    .print = pm_detection_print,
    .check_data = pm_detection_check_data,
    .record_classes = pm_detection_record_classes,
};
