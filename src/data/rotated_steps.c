/* rotated_steps: exchange sides, subtract an angle, limit the number of objects. */
#include "data/rotated_steps.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/rotated_box.h"

static struct pm_rectangle rectangle_of(const struct pm_objects *o, size_t i)
{
    struct pm_rectangle r;

    assert(o->has & PM_HAS_ROTATED && o->height > 0 && o->width > 0);
    pm_rectangle_of_box(o->item[i].rotated, o->height, o->width, &r);
    return r;
}

/* Sets a rotated box, and the upright one around it, cut at the border. */
static void put(struct pm_objects *o, size_t i, const struct pm_rectangle *r)
{
    double around[4];

    pm_rectangle_to_box(r, o->height, o->width, o->item[i].rotated);
    pm_rectangle_around(r, around);
    for (int k = 0; k < 4; k++)
        o->item[i].box[k] =
            (float)fmin(fmax(around[k] / (k % 2 ? o->width : o->height), 0), 1);
}

void pm_rotated_swap_sides(struct pm_objects *o)
{
    for (size_t i = 0; i < o->count; i++) {
        struct pm_rectangle r = rectangle_of(o, i);
        const double h = r.h;

        r.h = r.w;
        r.w = h;
        put(o, i, &r);
    }
}

void pm_rotated_subtract_angle(struct pm_objects *o, double angle)
{
    for (size_t i = 0; i < o->count; i++) {
        struct pm_rectangle r = rectangle_of(o, i);

        r.angle = pm_angle_wrapped(r.angle - angle);
        put(o, i, &r);
    }
}

/* ---- the limit ------------------------------------------------------------------------------- */

struct order {
    double w;
    size_t index;
};

static int by_width(const void *x, const void *y)
{
    const struct order *a = x, *b = y;

    if (a->w != b->w)
        return a->w > b->w ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Chooses the objects to keep: kept[i] is 1 for them. */
static void choose(const struct pm_objects *o, size_t most, struct pm_rng *r, uint8_t *kept)
{
    struct order *order = pm_malloc(o->count * sizeof *order);

    for (size_t i = 0; i < o->count; i++)
        order[i] = (struct order){ rectangle_of(o, i).w, i };
    qsort(order, o->count, sizeof *order, by_width);
    for (size_t n = 0; n < most; n++) {
        /* The first half as sorted; then one of those that are left comes to this place. */
        const size_t at = n < most / 2
            ? n : (size_t)pm_rng_int(r, (int64_t)n, (int64_t)o->count - 1);
        const struct order chosen = order[at];

        order[at] = order[n];
        order[n] = chosen;
        kept[chosen.index] = 1;
    }
    pm_free(order);
}

/* The rows and columns of the picture that a rectangle can touch. */
static void reach(const struct pm_rectangle *r, const struct pm_image8 *im, int out[4])
{
    double around[4];

    pm_rectangle_around(r, around);
    for (int k = 0; k < 4; k++) {
        const int side = k % 2 ? im->width : im->height;

        out[k] = (int)fmin(fmax(k < 2 ? floor(around[k]) : ceil(around[k]), 0), side);
    }
}

/* Sets fit[pixel] to the value for the pixels whose centre is in the rectangle. */
static void fill(const struct pm_rectangle *r, const struct pm_image8 *im, uint8_t value,
                 uint8_t *fit)
{
    const double c = cos(r->angle), s = sin(r->angle);
    int at[4];

    reach(r, im, at);
    for (int y = at[0]; y < at[2]; y++)
        for (int x = at[1]; x < at[3]; x++) {
            const double dy = y + 0.5 - r->cy, dx = x + 0.5 - r->cx;

            if (fabs(dx * c + dy * s) <= r->w / 2 && fabs(dy * c - dx * s) <= r->h / 2)
                fit[(size_t)y * (size_t)im->width + (size_t)x] = value;
        }
}

static void blacken(const struct pm_objects *o, const uint8_t *kept, struct pm_image8 *im)
{
    const size_t pixels = (size_t)im->height * (size_t)im->width;
    const size_t channels = (size_t)im->channels;
    uint8_t *black = pm_calloc(pixels, 1);

    for (int keep = 0; keep < 2; keep++)
        for (size_t i = 0; i < o->count; i++)
            if (kept[i] == keep) {
                const struct pm_rectangle r = rectangle_of(o, i);

                fill(&r, im, keep ? 0 : 1, black);
            }
    for (size_t p = 0; p < pixels; p++)
        if (black[p])
            memset(im->pixels + p * channels, 0, channels);
    pm_free(black);
}

size_t pm_rotated_cutoff(struct pm_objects *o, size_t most, struct pm_rng *r,
                         struct pm_image8 *picture)
{
    const size_t before = o->count;
    size_t n = 0;

    if (o->count <= most)
        return 0;
    assert(picture->height == o->height && picture->width == o->width);
    uint8_t *kept = pm_calloc(o->count, 1);
    choose(o, most, r, kept);
    if (picture->pixels)
        blacken(o, kept, picture);
    for (size_t i = 0; i < o->count; i++)
        if (kept[i])
            o->item[n++] = o->item[i];
    o->count = n;
    pm_free(kept);
    return before - n;
}
