/* Label files of YOLO. */
#include "data/convert/yolo_labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    struct pm_annotations *s;
    const char *path, *names;
    struct pm_yolo_shape shape;
    unsigned line;
    double *v; /* owned: numbers of the line */
    size_t count, capacity;
};

/* Splits the line into numbers. */
static int split_line(struct reading *r, char *line)
{
    char *save = NULL;

    r->count = 0;
    for (char *word = strtok_r(line, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
        double v = 0;

        if (!pm_number_in_text(word, &v))
            return pm_fail(PM_EDATA, "%s:%u: \"%.40s\" is not a number; a line is class, centre x, "
                           "centre y, width, height", r->path, r->line, word);
        PM_GROW(r->v, r->count, r->capacity);
        r->v[r->count++] = v;
    }
    return PM_OK;
}

static int take_class(const struct reading *r, int *out)
{
    const double v = r->v[0];

    if (v != floor(v) || v < 0 || v >= r->s->map.count)
        return pm_fail(PM_EDATA, "%s:%u: class %g is not one of 0..%d, the %d classes of %s",
                       r->path, r->line, v, r->s->map.count - 1, r->s->map.count, r->names);
    *out = (int)v;
    return PM_OK;
}

static int check_share(const struct reading *r, size_t i)
{
    if (r->v[i] >= -1 && r->v[i] <= 2)
        return PM_OK;
    return pm_fail(PM_EDATA, "%s:%u: number %zu is %g; write shares of the picture's width and "
                   "height, 0 to 1, not pixels", r->path, r->line, i + 1, r->v[i]);
}

/* Files have six digits: a corner that rounding moved beyond the border is moved back. */
static double snapped(double v)
{
    static const double rounding = 2e-6;

    return v < 0 && v > -rounding ? 0 : v > 1 && v < 1 + rounding ? 1 : v;
}

/* Centre and size to corners. */
static void take_box(const double v[4], double box[4])
{
    for (int k = 0; k < 2; k++) {
        box[1 - k] = snapped(v[k] - v[k + 2] / 2);
        box[3 - k] = snapped(v[k] + v[k + 2] / 2);
    }
}

/* The corners of a polygon and the box around them. */
static void take_outline(const struct reading *r, struct pm_annotated_object *o)
{
    float *outline = pm_arena_alloc(r->s->arena, (r->count - 1) * sizeof *outline);

    o->outline_count = (r->count - 1) / 2;
    o->box[0] = o->box[1] = INFINITY;
    o->box[2] = o->box[3] = -INFINITY;
    for (size_t i = 0; i < o->outline_count; i++) {
        const double x = r->v[1 + 2 * i], y = r->v[2 + 2 * i];

        outline[2 * i] = (float)y;
        outline[2 * i + 1] = (float)x;
        o->box[0] = fmin(o->box[0], y), o->box[1] = fmin(o->box[1], x);
        o->box[2] = fmax(o->box[2], y), o->box[3] = fmax(o->box[3], x);
    }
    o->outline = outline;
}

/* The corners of a rotated box. A line with an upright box has it, too. */
static void take_corners(const struct reading *r, struct pm_annotated_object *o)
{
    double *corners = pm_arena_alloc(r->s->arena, 8 * sizeof *corners);

    for (int k = 0; k < 4; k++) {
        corners[2 * k] = r->count == 9 ? r->v[2 + 2 * k] : o->box[k < 2 ? 0 : 2];
        corners[2 * k + 1] = r->count == 9 ? r->v[1 + 2 * k] : o->box[k % 3 ? 3 : 1];
    }
    o->corners = corners;
}

enum { FAR = 10 }; /* farthest coordinate of a keypoint: objects may reach beyond the picture */

/* Points without a visibility are visible, except 0 0. */
static int take_keypoints(const struct reading *r, struct pm_annotated_object *o)
{
    const int points = r->shape.points, dims = r->shape.dims;
    float *out = pm_arena_alloc(r->s->arena, (size_t)points * 3 * sizeof *out);
    const double *v = r->v + 5;

    for (int k = 0; k < points; k++, v += dims) {
        const double seen = dims == 3 ? v[2] : v[0] != 0 || v[1] != 0 ? 2 : 0;

        if (!(fabs(v[0]) <= FAR && fabs(v[1]) <= FAR))
            return pm_fail(PM_EDATA, "%s:%u: keypoint %d is at %g %g; write shares of the "
                           "picture's width and height, 0 to 1, not pixels", r->path, r->line,
                           k + 1, v[0], v[1]);
        if (seen != 0 && seen != 1 && seen != 2)
            return pm_fail(PM_EDATA, "%s:%u: keypoint %d has the visibility %g; write 0, 1 "
                           "or 2", r->path, r->line, k + 1, seen);
        out[3 * k] = (float)v[1];
        out[3 * k + 1] = (float)v[0];
        out[3 * k + 2] = (float)seen;
    }
    o->keypoints = out;
    return PM_OK;
}

static int wrong_count(const struct reading *r)
{
    if (r->s->rotated)
        return pm_fail(PM_EDATA, "%s:%u: has %zu numbers; with boxes=rotated a line has 9 (class "
                       "and four corners x, y) or 5 (an upright box)", r->path, r->line, r->count);
    if (r->shape.points)
        return pm_fail(PM_EDATA, "%s:%u: has %zu numbers; a line has 5 (a box) or %d "
                       "(kpt_shape: [%d, %d])", r->path, r->line, r->count,
                       5 + r->shape.points * r->shape.dims, r->shape.points, r->shape.dims);
    return pm_fail(PM_EDATA, "%s:%u: has %zu numbers; a line has 5 (a box), or an odd number from "
                   "7 (a polygon); lines with keypoints need kpt_shape in data.yaml",
                   r->path, r->line, r->count);
}

static int take_line(struct reading *r, char *line)
{
    int err = PM_OK;
    struct pm_annotated_object o = { .line = r->line };

    PM_TRY(split_line(r, line));
    if (r->count == 0)
        return PM_OK;
    const size_t pose = 5 + (size_t)r->shape.points * (size_t)r->shape.dims;
    const bool outline = !r->shape.points && r->count >= 7 && r->count % 2 == 1;
    const bool known = r->s->rotated ? r->count == 9 : outline || r->count == pose;
    if (r->count != 5 && !known)
        PM_TRY(wrong_count(r));
    PM_TRY(take_class(r, &o.class));
    for (size_t i = 1; i < (outline ? r->count : 5); i++)
        PM_TRY(check_share(r, i));
    if (outline)
        take_outline(r, &o);
    else
        take_box(r->v + 1, o.box);
    if (r->s->rotated)
        take_corners(r, &o);
    else if (r->shape.points && r->count == pose)
        PM_TRY(take_keypoints(r, &o));
    pm_annotations_object(r->s, o);
    err = PM_OK;
out:
    return err;
}

int pm_yolo_labels(struct pm_annotations *s, const char *path, struct pm_yolo_shape shape,
                   const char *names)
{
    int err = PM_OK;
    struct pm_arena *page = pm_arena_create();
    struct reading r = { .s = s, .path = path, .names = names, .shape = shape };
    char **lines = NULL;
    size_t count = 0;

    PM_TRY(pm_lines_of(page, path, &lines, &count));
    for (size_t i = 0; i < count; i++) {
        r.line = (unsigned)i + 1;
        PM_TRY(take_line(&r, lines[i]));
    }
out:
    pm_free(r.v);
    pm_arena_destroy(&page);
    return err;
}
