/* detection_truths: the true objects of an evaluation's picture, which stay in host memory: every
 * object as the record has it, in pixels of the file. */
#include "data/coco_mask.h"
#include "tasks/detection/detection_rotated.h"
#include "tasks/record.h"

#include <math.h>
#include <string.h>

void pm_detection_free_truths(void *host)
{
    struct pm_detection_truths *truths = host;

    pm_free(truths->name);
    pm_free(truths->file);
    pm_free(truths->truth);
    pm_free(truths->verified);
    pm_free(truths->keypoints);
    for (size_t i = 0; i < truths->record_objects; i++)
        pm_runs_free(&truths->runs[i]);
    pm_free(truths->runs);
    pm_free(truths);
}

/* Open Images: classes that are annotated in this picture, or known to be absent. */
static void add_verified(const struct pm_objects *o, struct pm_detection_truths *out)
{
    if (!o->absent_count)
        return;
    out->verified = pm_malloc(o->absent_count * sizeof *out->verified);
    for (size_t i = 0; i < o->absent_count; i++)
        if (o->absent[i] > 0)
            out->verified[out->verified_count++] = (int)o->absent[i] - 1;
}

static bool has_area(const float *box)
{
    return box[2] > box[0] && box[3] > box[1];
}

/* Sets the box of a true object. Returns false if it has no area. */
static bool set_box(const struct pm_detection_truths *t, const float *box,
                    struct pm_box_truth *out)
{
    for (int k = 0; k < 4; k++)
        out->box.v[k] = (double)box[k] * (k % 2 ? t->width : t->height);
    return has_area(box);
}

/* The same for a rotated box: a part of it must be in the picture. */
static bool set_rotated(const struct pm_detection_truths *t, const float *box,
                        struct pm_box_truth *out)
{
    struct pm_rectangle r;

    pm_rectangle_of_box(box, t->height, t->width, &r);
    return pm_detection_set_rotated(&r, t->height, t->width, &out->box, out->rotated);
}

static void points_to_pixels(const struct pm_detection_truths *t, const float *from, float *out)
{
    for (int k = 0; k < 2 * t->points; k++)
        out[k] = from[k] * (float)(k % 2 ? t->width : t->height);
}

/* Makes room for at most `count` objects with their keypoints. */
static struct pm_detection_truths *start(int height, int width, size_t count, int points)
{
    struct pm_detection_truths *out = pm_calloc(1, sizeof *out);

    out->height = height;
    out->width = width;
    out->points = points;
    out->truth = pm_calloc(count + 1, sizeof *out->truth);
    if (points)
        out->keypoints = pm_malloc((2 * count * (size_t)points + 1) * sizeof(float));
    return out;
}

/* Keeps the members of object i as those of the last one. */
static void keep_members(struct pm_detection_truths *t, size_t i)
{
    const size_t points = 2 * (size_t)t->points, n = (size_t)t->count;

    if (t->points)
        points_to_pixels(t, t->keypoints + points * i, t->keypoints + points * n);
    if (t->runs) {
        const struct pm_runs kept = t->runs[i];

        t->runs[i] = t->runs[n];
        t->runs[n] = kept;
    }
}

int pm_detection_truths_of(const struct pm_task *t, const struct pm_example *e,
                           const struct pm_objects *o, const char *where,
                           struct pm_detection_truths **out)
{
    struct pm_detection_truths *made =
        start(o->height, o->width, o->count, t->data.num_keypoints);
    int err = PM_OK;

    made->name = pm_record_id(e);
    made->file = pm_record_file(e);
    add_verified(o, made);
    if (made->points)
        pm_detection_keypoints(o, made->points, made->keypoints);
    if (t->data.instance_masks) {
        made->runs = pm_calloc(o->count + 1, sizeof *made->runs);
        made->record_objects = o->count;
        PM_TRY(pm_record_damage(pm_detection_runs(o, where, made->runs)));
    }
    for (size_t i = 0; i < o->count; i++) {
        const struct pm_object *one = &o->item[i];
        struct pm_box_truth *truth = &made->truth[made->count];

        *truth = (struct pm_box_truth){
            .area = (o->has & PM_HAS_AREA) && one->area > 0 ? (double)one->area : (double)NAN,
            .label = (int)one->label - 1, .crowd = one->is_crowd, .difficult = one->difficult,
            .group_of = one->group_of };
        if (!(t->rotated ? set_rotated(made, one->rotated, truth)
                         : set_box(made, one->box, truth)))
            continue;
        keep_members(made, i);
        made->count++;
    }
    *out = made, made = NULL;
out:
    if (made)
        pm_detection_free_truths(made);
    return err;
}

int pm_detection_truths(const struct pm_task *t, const struct pm_example *e, int height, int width,
                        const char *where, struct pm_detection_truths **out)
{
    struct pm_objects objects = { 0 };
    int err = PM_OK;

    PM_TRY(pm_detection_objects(t, e, height, width, where, &objects));
    PM_TRY(pm_detection_truths_of(t, e, &objects, where, out));
out:
    pm_objects_free(&objects);
    return err;
}
