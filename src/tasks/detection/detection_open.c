/* detection_open: makes the task's object from the config and the data, and closes it. */
#include "tasks/detection/detection_points.h"
#include "tasks/record.h"

static int check(const struct pm_task *t)
{
    const struct pm_task_facts *s = &t->facts;
    int err = PM_OK;

    PM_TRY(pm_record_check(s, 1));
    PM_TRY(pm_record_check_augment(
        s, PM_CARRIES_BOXES | (t->data.instance_masks ? PM_CARRIES_MASKS : 0u) |
               (t->rotated ? PM_CARRIES_ROTATED : 0u) |
               (t->data.num_keypoints ? PM_CARRIES_KEYPOINTS : 0u)));
    for (int i = 0; t->map && i < t->map->count; i++)
        if (t->map->item[i].id > s->num_classes)
            PM_TRY(pm_fail(PM_ECONFIG, "model.num_classes: %d, but the label map has a class with "
                           "the number %d, \"%s\": raise model.num_classes, or remove the key",
                           s->num_classes, t->map->item[i].id, t->map->item[i].name));
    if (s->num_classes > PM_DETECTION_CLASSES)
        PM_TRY(pm_fail(PM_ECONFIG, "model.num_classes: %d is outside 1..%d", s->num_classes,
                       PM_DETECTION_CLASSES));
    if (s->preprocessing->channels && s->preprocessing->channels != s->channels)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "input.preprocessing: \"%s\" needs %d channels, but the input has %d: set "
                       "input.channels, or another preprocessing",
                       s->preprocessing->name, s->preprocessing->channels, s->channels));
out:
    return err;
}

/* A missing evaluation is an error only where boxes are to be drawn. */
static void read_best_scores(struct pm_task *t)
{
    const int classes = t->facts.num_classes;
    const char *run = t->facts.config->run.folder;

    if (!t->best_threshold || !run)
        return;
    t->best_scores = pm_calloc((size_t)classes, sizeof *t->best_scores);
    if (pm_detection_best_scores(run, classes, t->best_scores))
        return;
    pm_free(t->best_scores);
    t->best_scores = NULL;
}

int pm_detection_open(const struct pm_task_facts *facts, struct pm_task **out)
{
    struct pm_task *t = pm_calloc(1, sizeof *t);
    struct pm_normal normal;
    int err = PM_OK;

    t->facts = *facts;
    t->map = facts->data->box_labels;
    t->crowded = pm_calloc(1, sizeof *t->crowded);
    t->seen = pm_calloc(1, sizeof *t->seen);
    PM_TRY(pm_detection_read_config(facts->config, t));
    PM_TRY(check(t));
    t->mirrored = pm_detection_mirrored(t);
    PM_TRY(facts->preprocessing->normal(facts->preprocessing_cfg, facts->channels, &normal));
    t->pads = normal.padded && !t->rotated; /* rotated boxes are not clipped to a window */
    PM_TRY(pm_detection_check_buckets(t, &normal));
    read_best_scores(t);
    *out = t, t = NULL;
out:
    pm_detection_close(&t);
    return err;
}

void pm_detection_close(struct pm_task **t)
{
    if (*t) {
        for (size_t i = 0; i < (*t)->anchors_count; i++)
            pm_anchor_index_destroy(&(*t)->anchors[i].index);
        pm_free((*t)->anchors);
        pm_free((*t)->best_scores);
        pm_free((*t)->crowded);
        pm_free((*t)->seen);
        pm_free((*t)->mirrored);
    }
    pm_free(*t);
    *t = NULL;
}
