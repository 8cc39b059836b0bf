/* Writing annotated pictures as records of TensorFlow's Object Detection API. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "data/convert/annotated.h"

/* One split while it is written. */
struct writing {
    const struct pm_annotations *s;
    size_t first, count; /* pictures of the list */
    size_t begin;        /* shuffled: place of the first one in the order */
    bool shuffled;       /* the order is a permutation of all `count` pictures */
    pthread_mutex_t lock; /* of the following */
    struct pm_object_counts counts;
    size_t sizes; /* pictures whose annotations state another size */
    size_t flat;  /* pictures with boxes without an area */
};
enum { MOST_WARNINGS = 10 }; /* of a kind in a split */

/* ---- EXIF ----------------------------------------------------------------------------------- */

/* Moves a point of the stored picture (0..1) to its place in the upright one. */
static void turn_point(int orientation, double *y, double *x)
{
    const double u = *x, v = *y;

    switch (orientation) {
    case 2: *x = 1 - u; break;
    case 3: *x = 1 - u, *y = 1 - v; break;
    case 4: *y = 1 - v; break;
    case 5: *x = v, *y = u; break;
    case 6: *x = 1 - v, *y = u; break;
    case 7: *x = 1 - v, *y = 1 - u; break;
    case 8: *x = v, *y = 1 - u; break;
    default: break;
    }
}

/* The corners keep their roles: a reversed box stays reversed. */
static void turn_box(int orientation, double box[4])
{
    double y[2] = { box[0], box[2] }, x[2] = { box[1], box[3] };
    const bool reversed_y = y[0] > y[1], reversed_x = x[0] > x[1];

    for (int k = 0; k < 2; k++)
        turn_point(orientation, &y[k], &x[k]);
    const bool across = orientation >= 5;
    const bool swap_y = across ? reversed_x : reversed_y, swap_x = across ? reversed_y : reversed_x;
    box[swap_y ? 2 : 0] = fmin(y[0], y[1]);
    box[swap_y ? 0 : 2] = fmax(y[0], y[1]);
    box[swap_x ? 3 : 1] = fmin(x[0], x[1]);
    box[swap_x ? 1 : 3] = fmax(x[0], x[1]);
}

/* Whether boxes are in pixels of the upright picture, though the file stores it turned. */
static bool boxes_as_shown(const struct pm_annotations *s, const struct pm_annotated *a,
                           const struct pm_picture *p)
{
    if (s->cfg->exif != PM_EXIF_AUTO)
        return s->cfg->exif == PM_EXIF_SHOWN;
    return p->orientation >= 5 && p->image.height != p->image.width &&
           a->height == p->image.height && a->width == p->image.width;
}

/* ---- records -------------------------------------------------------------------------------- */

static void compare_size(struct writing *w, const struct pm_annotated *a, int height, int width)
{
    if (!a->height || !a->width || (a->height == height && a->width == width))
        return;
    pthread_mutex_lock(&w->lock);
    const size_t number = ++w->sizes;
    pthread_mutex_unlock(&w->lock);
    if (number <= MOST_WARNINGS)
        PM_WARN("data", "%s: states a size of %d x %d pixels, but %s has %d x %d; the picture's "
                "size counts", a->where, a->width, a->height, a->path, width, height);
}

static void add_keypoints(const struct pm_annotations *s, const float *from, int orientation,
                          struct pm_objects *o, struct pm_object *out)
{
    if (!from)
        return;
    out->keypoints = pm_objects_points(o);
    for (int k = 0; k < s->points; k++, from += 3) {
        double y = from[0], x = from[1];

        if (from[2] <= 0)
            continue;
        turn_point(orientation, &y, &x);
        out->keypoints[k] = (struct pm_keypoint){ (float)y, (float)x, (int)from[2] };
    }
}

static void add_object(const struct pm_annotations *s, const struct pm_annotated_object *from,
                       int orientation, double height, double width, struct pm_objects *o)
{
    const struct pm_label_item *class = &s->item[from->class];
    struct pm_object *out = pm_objects_add(o);
    double box[4];

    for (int k = 0; k < 4; k++)
        box[k] = s->unit ? from->box[k] : from->box[k] / (k % 2 ? width : height);
    turn_box(orientation, box);
    for (int k = 0; k < 4; k++)
        out->box[k] = (float)box[k];
    out->text = class->name;
    out->label = class->id;
    out->is_crowd = from->marks & PM_MARK_CROWD;
    out->difficult = from->marks & PM_MARK_DIFFICULT;
    out->group_of = from->marks & PM_MARK_GROUP_OF;
    out->truncated = from->marks & PM_MARK_TRUNCATED;
    out->view = from->view;
    add_keypoints(s, from->keypoints, orientation, o, out);
}

static int add_objects(struct writing *w, const struct pm_annotated *a, const struct pm_picture *p,
                       struct pm_example_builder *b)
{
    int err = PM_OK;
    const struct pm_annotations *s = w->s;
    const int orientation = boxes_as_shown(s, a, p) ? 1 : p->orientation;
    const bool across = orientation >= 5;
    const int height = across ? p->image.width : p->image.height;
    const int width = across ? p->image.height : p->image.width;
    const struct pm_object_filter filter = { .error = s->cfg->bad == PM_BAD_ERROR,
                                             .min_side = s->cfg->min_side };
    struct pm_object_counts counts = { 0 };
    struct pm_objects o;

    pm_objects_start(&o, p->image.height, p->image.width);
    o.has = s->has | PM_HAS_TEXT | PM_HAS_LABEL;
    o.points = s->points;
    o.point_names = s->point_names;
    compare_size(w, a, height, width);
    for (size_t i = 0; i < a->count; i++)
        add_object(s, &s->object[a->first + i], orientation, height, width, &o);
    PM_TRY(pm_objects_filter(&o, &filter, a->where, &counts));
    pm_objects_write(&o, b);
    pthread_mutex_lock(&w->lock);
    pm_object_counts_add(&w->counts, &counts);
    w->flat += counts.degenerate > 0;
    const size_t flat = w->flat;
    pthread_mutex_unlock(&w->lock);
    if (counts.degenerate && flat <= MOST_WARNINGS)
        PM_WARN("data", "%s: dropped %zu box%s without an area of %s; bad=error refuses them",
                a->where, counts.degenerate, counts.degenerate > 1 ? "es" : "", a->path);
out:
    pm_objects_free(&o);
    return err;
}

static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    struct writing *w = ctx;
    const struct pm_annotations *s = w->s;
    const size_t at = w->shuffled
        ? pm_permute((uint64_t)s->cfg->seed, 0, w->count, w->begin + i) : w->begin + i;
    const struct pm_annotated *a = &s->picture[w->first + at];
    struct pm_picture p = { 0 };
    int err = PM_OK;

    if ((err = pm_picture_read(a->path, &p)) < 0) {
        pm_picture_free(&p);
        return pm_picture_failed(err, s->cfg->bad);
    }
    pm_picture_add_named(b, &p, a->filename, a->filename);
    PM_TRY(add_objects(w, a, &p, b));
    err = 1;
out:
    pm_picture_free(&p);
    return err;
}

/* ---- splits --------------------------------------------------------------------------------- */

static int write_part(struct writing *w, struct pm_making *m, const char *split, size_t begin,
                      size_t count)
{
    int err = PM_OK;
    const struct pm_sharding sharding = { PM_CUT_SIZE, (size_t)w->s->cfg->per_shard,
                                          PM_NAMES_SLIM };
    struct pm_str text = { 0 };

    w->begin = begin;
    w->sizes = w->flat = 0;
    w->counts = (struct pm_object_counts){ 0 };
    PM_TRY(pm_making_split(m, split, count, &sharding, fill, w));
    if (w->sizes > MOST_WARNINGS)
        PM_WARN("data", "%s: the annotations of %zu pictures state another size than the picture "
                "has; the pictures' sizes count", split, w->sizes);
    pm_object_counts_print(&w->counts, &text);
    PM_INFO("data", "%s: %s", split, text.text);
out:
    pm_str_free(&text);
    return err;
}

static int write_split(struct writing *w, struct pm_making *m, const char *name)
{
    int err = PM_OK;

    if (w->count == 0) {
        if (name)
            PM_WARN("data", "%s: no pictures; the split is skipped", name);
        return PM_OK;
    }
    w->shuffled = !name;
    if (name)
        return write_part(w, m, name, 0, w->count);
    const size_t held_out = (size_t)((double)w->count * w->s->cfg->validation + 0.5);
    if (held_out >= w->count)
        PM_TRY(pm_fail(PM_ECONFIG, "validation=%g leaves nothing of %zu pictures for training",
                       w->s->cfg->validation, w->count));
    PM_TRY(write_part(w, m, "train", held_out, w->count - held_out));
    if (held_out)
        PM_TRY(write_part(w, m, "validation", 0, held_out));
out:
    return err;
}

static int compare_names(const void *x, const void *y)
{
    const struct pm_label_item *const *a = x, *const *b = y;
    return strcmp((*a)->name, (*b)->name);
}

/* Numbers classes in the byte order of their names, unless their numbers are given. */
static void number_classes(struct pm_annotations *s, struct pm_making *m)
{
    const size_t count = (size_t)s->map.count;
    struct pm_label_item **sorted = pm_malloc((count + 1) * sizeof *sorted);
    struct pm_label_item *item = pm_malloc((count + 1) * sizeof *item);

    for (size_t i = 0; i < count; i++)
        sorted[i] = &s->item[i];
    if (!s->fixed && count)
        qsort(sorted, count, sizeof *sorted, compare_names);
    for (size_t i = 0; i < count; i++) {
        if (!s->fixed)
            sorted[i]->id = (int)i + 1;
        item[i] = *sorted[i];
    }
    pm_making_box_labels(m, &(struct pm_label_map){ item, s->map.count });
    pm_free(item);
    pm_free(sorted);
}

int pm_annotations_write(struct pm_annotations *s, struct pm_making *m)
{
    int err = PM_OK;
    struct writing w = { .s = s, .lock = PTHREAD_MUTEX_INITIALIZER };

    if (s->map.count == 0)
        PM_TRY(pm_fail(PM_EDATA, "none of the %zu pictures has an object: set label_map=FILE to "
                       "name the classes", s->pictures));
    number_classes(s, m);
    for (size_t k = 0; k < s->splits; k++) {
        const size_t end = k + 1 < s->splits ? s->split[k + 1].first : s->pictures;

        w.first = s->split[k].first;
        w.count = end - w.first;
        PM_TRY(write_split(&w, m, s->split[k].name));
    }
out:
    return err;
}
