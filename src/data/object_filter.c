/* object_filter: drops boxes that cannot be learned from and clips the others to the picture.
 * Sides are compared in pixels in double precision, so that a box of exactly min_side stays. */
#include <math.h>

#include <pumice/objects.h>

#include "data/rotated_box.h"

enum fate { KEEP, CLIP, DEGENERATE, OUTSIDE, SMALL };

static enum fate clip(float box[4])
{
    bool clipped = false;

    for (int k = 0; k < 4; k++) {
        const float v = box[k] < 0 ? 0 : box[k] > 1 ? 1 : box[k];
        clipped |= v != box[k];
        box[k] = v;
    }
    return clipped ? CLIP : KEEP;
}

static enum fate fate_of(float box[4], const struct pm_objects *o, const struct pm_object_filter *f)
{
    /* A float coordinate is exact to 2^-24 of the picture. */
    const double slack = 1e-6, height = o->height, width = o->width;

    if (!(box[2] > box[0] && box[3] > box[1] && isfinite(box[0]) && isfinite(box[1]) &&
          isfinite(box[2]) && isfinite(box[3])))
        return DEGENERATE;
    const enum fate fate = clip(box);
    if (box[2] <= box[0] || box[3] <= box[1])
        return OUTSIDE;
    if (((double)box[2] - (double)box[0]) * height < f->min_side - slack * height ||
        ((double)box[3] - (double)box[1]) * width < f->min_side - slack * width)
        return SMALL;
    return fate;
}

/* The same for a rotated box. Sets the upright box around it. */
static enum fate fate_of_rotated(struct pm_object *one, const struct pm_objects *o,
                                 const struct pm_object_filter *f)
{
    const double slack = 1e-6 * fmax(o->height, o->width); /* as above */
    struct pm_rectangle r;
    double around[4];

    pm_rectangle_of_box(one->rotated, o->height, o->width, &r);
    if (!pm_rectangle_is_valid(&r))
        return DEGENERATE;
    if (!(pm_rectangle_inside(&r, o->height, o->width) > 0))
        return OUTSIDE;
    if (fmin(r.h, r.w) < f->min_side - slack)
        return SMALL;
    pm_rectangle_around(&r, around);
    for (int k = 0; k < 4; k++)
        one->box[k] = (float)(around[k] / (k % 2 ? o->width : o->height));
    const enum fate fate = clip(one->box);

    /* A sliver's part inside may be thinner than a rounding of a coordinate. */
    return one->box[2] > one->box[0] && one->box[3] > one->box[1] ? fate : OUTSIDE;
}

static int fail_degenerate(const struct pm_objects *o, size_t i, const char *where)
{
    const struct pm_object *one = &o->item[i];
    const float *b = o->has & PM_HAS_ROTATED ? one->rotated : one->box;
    const double v[4] = { (double)b[0] * o->height, (double)b[1] * o->width,
                          (double)b[2] * o->height, (double)b[3] * o->width };
    static const char *const names[2][4] = { { "ymin", "xmin", "ymax", "xmax" },
                                             { "cy", "cx", "h", "w" } };
    const char *const *name = names[o->has & PM_HAS_ROTATED ? 1 : 0];

    return pm_fail(PM_EDATA,
                   "%s: object %zu%s%s%s: the box %s %g, %s %g, %s %g, %s %g (pixels) has no area: "
                   "correct it, or set bad=skip to drop it",
                   where, i + 1, one->text ? " (" : "", one->text ? one->text : "",
                   one->text ? ")" : "", name[0], v[0], name[1], v[1], name[2], v[2], name[3],
                   v[3]);
}

int pm_objects_filter(struct pm_objects *o, const struct pm_object_filter *f, const char *where,
                      struct pm_object_counts *counts)
{
    struct pm_object_counts c = { .pictures = 1 };
    size_t kept = 0;

    for (size_t i = 0; i < o->count; i++) {
        struct pm_object one = o->item[i];
        const enum fate fate = o->has & PM_HAS_ROTATED ? fate_of_rotated(&one, o, f)
                                                       : fate_of(one.box, o, f);

        if (fate == DEGENERATE && f->error)
            return fail_degenerate(o, i, where);
        c.degenerate += fate == DEGENERATE;
        c.outside += fate == OUTSIDE;
        c.small += fate == SMALL;
        c.clipped += fate == CLIP;
        if (fate == DEGENERATE || fate == OUTSIDE || fate == SMALL)
            continue;
        c.boxes++;
        c.crowds += one.is_crowd;
        o->item[kept++] = one;
    }
    o->count = kept;
    c.empty = kept == 0;
    pm_object_counts_add(counts, &c);
    return PM_OK;
}

void pm_object_counts_add(struct pm_object_counts *a, const struct pm_object_counts *b)
{
    a->pictures += b->pictures;
    a->empty += b->empty;
    a->boxes += b->boxes;
    a->crowds += b->crowds;
    a->degenerate += b->degenerate;
    a->outside += b->outside;
    a->small += b->small;
    a->clipped += b->clipped;
}

void pm_object_counts_print(const struct pm_object_counts *c, struct pm_str *out)
{
    const struct {
        size_t count;
        const char *text;
    } parts[] = {
        { c->clipped, "clipped at the border" },
        { c->degenerate, "dropped without area" },
        { c->outside, "dropped outside the picture" },
        { c->small, "dropped below min_side" },
    };

    pm_str_add(out, "%zu picture%s (%zu without boxes), %zu box%s", c->pictures,
               c->pictures == 1 ? "" : "s", c->empty, c->boxes, c->boxes == 1 ? "" : "es");
    if (c->crowds)
        pm_str_add(out, " (%zu crowd%s)", c->crowds, c->crowds == 1 ? "" : "s");
    for (size_t i = 0; i < PM_COUNT(parts); i++)
        if (parts[i].count)
            pm_str_add(out, ", %zu %s", parts[i].count, parts[i].text);
}
