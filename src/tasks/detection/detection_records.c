/* detection_records: decodes a record: its picture, its objects, and those members of the objects
 * that the config asks for. Boxes without an area are dropped and boxes are clipped to the picture
 * (pm_objects_filter). A crowd is a box around many objects, so its weight is 0: anchors that
 * resemble it learn neither an object nor the background. */
#include "data/coco_mask.h"
#include "data/mirrored_points.h"
#include "tasks/detection/detection_input_steps.h"
#include "tasks/detection/detection_rotated.h"
#include "tasks/record.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- objects ----------------------------------------------------------------------------- */

/* Most bytes of a record's masks. A small file may state any number of large ones. */
static const size_t most_bytes = (size_t)1 << 31;

static int fail_room(const char *where, size_t objects, const char *what)
{
    return pm_fail(PM_ECORRUPT, "%s: the masks of %zu objects need more than %zu MiB %s: set "
                   "data.instance_masks=false, or remove the record", where, objects,
                   most_bytes >> 20, what);
}

/* A placed mask has a byte for each pixel of the input, or of a mosaic, whose sides are twice the
 * input's. Masks of pictures are run lengths. */
static int check_room(const struct pm_task *t, const struct pm_objects *o, const char *where)
{
    const size_t pixels = 4 * (size_t)t->facts.height * (size_t)t->facts.width;

    if (!t->data.instance_masks || !pixels || o->count <= most_bytes / pixels)
        return PM_OK;
    return fail_room(where, o->count, "in the input's size");
}

/* Masks of numbers have the size that the record states. It must be the picture's. */
static int check_masks(const struct pm_objects *o, int height, int width, const char *where)
{
    for (size_t i = 0; i < o->count; i++)
        if (o->item[i].mask_values && (o->height != height || o->width != width))
            return pm_fail(PM_ECORRUPT, "%s: the masks have %d x %d pixels, the picture %d x %d: "
                           "convert the data again", where, o->height, o->width, height, width);
    return PM_OK;
}

static int check_points(const struct pm_task *t, const struct pm_objects *o, const char *where)
{
    const int wanted = t->data.num_keypoints;

    if (!wanted || !o->points || o->points == wanted)
        return PM_OK;
    return pm_fail(PM_ECORRUPT, "%s: the objects have %d keypoints, but data.num_keypoints is %d: "
                   "correct the key, or convert the data again", where, o->points, wanted);
}

/* Replaces the labels of the label map by classes of the net, from 1. */
static int resolve(const struct pm_task *t, struct pm_objects *o, const char *where)
{
    if (t->data.class_agnostic) {
        for (size_t i = 0; i < o->count; i++)
            o->item[i].label = 1;
        o->absent_count = o->incomplete_count = 0;
        return PM_OK;
    }
    return t->map ? pm_objects_resolve(o, t->map, where) : PM_OK;
}

int pm_detection_objects(const struct pm_task *t, const struct pm_example *e, int height,
                         int width, const char *where, struct pm_objects *o)
{
    int err = PM_OK;

    PM_TRY(pm_objects_parse(e, t->data.instance_masks, where, o));
    PM_TRY(check_room(t, o, where));
    PM_TRY(check_masks(o, height, width, where));
    PM_TRY(check_points(t, o, where));
    PM_TRY(pm_detection_check_record(t, o, where));
    o->height = height; /* upright; records may have the size before the EXIF turn */
    o->width = width;
    PM_TRY(pm_detection_input_steps(t, o, where));
    PM_TRY(resolve(t, o, where));
    for (size_t i = 0; i < o->count && !t->map; i++)
        if (o->item[i].label < 1 || o->item[i].label > t->facts.num_classes)
            PM_TRY(pm_fail(PM_ECORRUPT, "%s: object %zu: the class number %" PRId64 " is outside "
                           "1..%d (model.num_classes): set data.label_map or correct the number",
                           where, i + 1, o->item[i].label, t->facts.num_classes));
out:
    return err;
}

int pm_detection_record_classes(const struct pm_task *t, const struct pm_example *e,
                                const char *where, uint64_t *has, size_t count, bool *other)
{
    struct pm_objects o = { 0 };
    int err = PM_OK;

    PM_TRY(pm_objects_parse(e, false, where, &o));
    PM_TRY(resolve(t, &o, where));
    for (size_t i = 0; i < o.count; i++) {
        const int64_t label = o.item[i].label;

        if (label >= 1 && label <= (int64_t)count)
            has[label - 1] = 1;
        else if (!t->map)
            *other = true;
    }
out:
    pm_objects_free(&o);
    return err;
}

/* ---- records ----------------------------------------------------------------------------- */

/* A mosaic's pictures need equal channels, so a grey net then gets grey ones from the decoder. */
int pm_detection_channels(const struct pm_sampler *sampler, int part)
{
    const struct pm_task_facts *f = &sampler->task->facts;
    const struct pm_augment *augment = pm_task_augment(f, part);
    const bool joined = sampler->train && augment && augment->mosaic;

    return f->channels == 1 && !joined ? PM_GREY_OR_COLOR : f->channels;
}

int pm_detection_open_record(const struct pm_sampler *sampler, const struct pm_loader_record *r,
                             int channels, struct pm_detection_record *out)
{
    const struct pm_task *t = sampler->task;
    /* data.cutoff_boxes blackens pixels, which a JPEG that is decoded later does not have yet. */
    const bool later = sampler->train && t->data.cutoff_boxes == 0;
    int err = PM_OK;

    *out = (struct pm_detection_record){ 0 };
    PM_TRY(pm_record_damage(pm_example_parse(r->bytes, r->size, r->where, &out->example)));
    PM_TRY(pm_record_damage(pm_record_open_image(&t->facts, later, out->example, channels, r,
                                                 &out->picture)));
    PM_TRY(pm_record_damage(pm_detection_objects(t, out->example, out->picture.height,
                                                 out->picture.width, r->where, &out->objects)));
    PM_TRY(pm_detection_cutoff(sampler, r, &out->objects, &out->picture));
out:
    if (err < 0)
        pm_detection_close_record(out);
    return err;
}

void pm_detection_close_record(struct pm_detection_record *record)
{
    pm_objects_free(&record->objects);
    pm_image_free(&record->picture);
    pm_example_destroy(&record->example);
    *record = (struct pm_detection_record){ 0 };
}

/* ---- the members of a sample --------------------------------------------------------------- */

int pm_detection_runs(const struct pm_objects *o, const char *where, struct pm_runs *runs)
{
    size_t bytes = 0;
    int err = PM_OK;

    for (size_t i = 0; i < o->count; i++)
        runs[i] = (struct pm_runs){ .height = o->height, .width = o->width };
    for (size_t i = 0; i < o->count; i++) {
        if (!pm_object_has_mask(&o->item[i]))
            continue;
        PM_TRY(pm_objects_runs(o, i, where, &runs[i]));
        bytes += runs[i].capacity * sizeof *runs[i].run;
        if (bytes > most_bytes)
            PM_TRY(fail_room(where, o->count, "as run lengths"));
    }
out:
    return err;
}

void pm_detection_keypoints(const struct pm_objects *o, int points, float *out)
{
    for (size_t i = 0; i < o->count; i++)
        for (int k = 0; k < points; k++, out += 2) {
            const struct pm_keypoint *p = o->item[i].keypoints ? &o->item[i].keypoints[k] : NULL;

            out[0] = p && p->visibility > 0 ? p->y : NAN;
            out[1] = p && p->visibility > 0 ? p->x : NAN;
        }
}

int *pm_detection_mirrored(const struct pm_task *t)
{
    const struct pm_ints *given = &t->facts.data->mirrored_points;
    const int points = t->data.num_keypoints;
    int *out = pm_calloc((size_t)points + 1, sizeof *out);

    if (given->count == points) {
        for (int k = 0; k < points; k++)
            out[k] = given->v[k];
    } else if (!pm_mirrored_by_map(t->map, points, out)) {
        pm_free(out);
        out = NULL;
    }
    return out;
}

static void add_keypoints(const struct pm_task *t, const struct pm_objects *o, struct pm_arena *a,
                          struct pm_sample *out)
{
    const int points = t->data.num_keypoints;
    float *keypoints = pm_arena_alloc(a, 2 * o->count * (size_t)points * sizeof(float) + 1);

    pm_detection_keypoints(o, points, keypoints);
    out->keypoints = keypoints;
    out->points = points;
    out->mirrored = t->mirrored;
}

static int add_masks(const struct pm_objects *o, const char *where, struct pm_arena *a,
                     struct pm_sample *out)
{
    struct pm_runs *runs = pm_arena_alloc(a, o->count * sizeof *runs + 1);
    const int err = pm_record_damage(pm_detection_runs(o, where, runs));

    for (size_t i = 0; i < o->count; i++) {
        const struct pm_runs copy = pm_runs_copy(a, &runs[i]);

        pm_runs_free(&runs[i]);
        runs[i] = copy;
    }
    out->runs = runs;
    float *weights = pm_arena_alloc(a, o->count * sizeof *weights + 1);

    for (size_t i = 0; i < o->count; i++)
        weights[i] = o->item[i].is_crowd ? 0 : o->item[i].mask_weight;
    out->mask_weights = weights;
    return err;
}

static const float *rotated_of(const struct pm_objects *o, struct pm_arena *a)
{
    float *rotated = pm_arena_alloc(a, (5 * o->count + 1) * sizeof *rotated);

    for (size_t i = 0; i < o->count; i++)
        memcpy(rotated + 5 * i, o->item[i].rotated, sizeof o->item[i].rotated);
    return rotated;
}

int pm_detection_boxes(const struct pm_sampler *sampler, struct pm_detection_record *record,
                       const char *where, struct pm_arena *a, struct pm_sample *out)
{
    const struct pm_object_filter filter = {
        .min_side = sampler->train ? (double)sampler->task->data.min_side : 0
    };
    struct pm_object_counts counts = { 0 };
    struct pm_objects *o = &record->objects;
    int err = pm_objects_filter(o, &filter, where, &counts);

    if (err < 0)
        return err;
    float *boxes = pm_arena_alloc(a, (4 * o->count + 1) * sizeof *boxes);
    float *weights = pm_arena_alloc(a, (o->count + 1) * sizeof *weights);
    int32_t *labels = pm_arena_alloc(a, (o->count + 1) * sizeof *labels);

    for (size_t i = 0; i < o->count; i++) {
        memcpy(boxes + 4 * i, o->item[i].box, sizeof o->item[i].box);
        weights[i] = o->item[i].is_crowd ? 0 : o->item[i].weight;
        labels[i] = (int32_t)o->item[i].label;
    }
    *out = (struct pm_sample){ .picture = &record->picture, .objects = o->count, .boxes = boxes,
                               .weights = weights, .labels = labels };
    if (sampler->task->rotated)
        out->rotated = rotated_of(o, a);
    if (sampler->train && sampler->task->data.num_keypoints)
        add_keypoints(sampler->task, o, a, out);
    if (sampler->task->data.multiclass_scores)
        err = pm_detection_soft_labels(sampler->task, o, where, a, out);
    return err;
}

int pm_detection_sample(const struct pm_sampler *sampler, struct pm_detection_record *record,
                        const char *where, struct pm_arena *a, struct pm_sample *out)
{
    const int err = pm_detection_boxes(sampler, record, where, a, out);

    if (err < 0 || !sampler->train || !sampler->task->data.instance_masks)
        return err;
    return add_masks(&record->objects, where, a, out);
}
