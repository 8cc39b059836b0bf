/* objects between the rows of an augmentation. augment.h and sample.h have the contracts.
 *
 * An object keeps its box in the frame where a row last changed it. Later moves are composed in
 * double and applied once, so a list of rows that only move pixels rounds each coordinate once.
 * The list is made anew when it is needed: for draws that depend on boxes, and for the result. */
#include <math.h>
#include <string.h>

#include "data/augment.h"
#include "data/coco_mask.h"
#include "data/rotated_box.h"

static void *copied(struct pm_arena *a, const void *from, size_t bytes)
{
    return from && bytes ? memcpy(pm_arena_alloc(a, bytes), from, bytes) : NULL;
}

const uint8_t *pm_sample_mask(const struct pm_sample *s, size_t i, size_t pixels, uint8_t *room)
{
    if (!s->runs)
        return s->masks + i * pixels;
    pm_runs_decode(&s->runs[i], room);
    return room;
}

void pm_scene_open(struct pm_scene_objects *o, const struct pm_sample *sample,
                   const struct pm_geometry *g)
{
    const size_t points = 2 * (size_t)sample->points, scores = (size_t)sample->score_count;

    *o = (struct pm_scene_objects){ .sample = sample, .geometry = g, .count = sample->objects,
                                    .capacity = sample->objects, .arena = pm_arena_create() };
    o->list = pm_arena_alloc(o->arena, (o->count + 1) * sizeof *o->list);
    for (size_t i = 0; i < o->count; i++) {
        struct pm_scene_object *to = &o->list[i];

        *to = (struct pm_scene_object){ .from = i, .visible = 1, .weight = 1 };
        if (sample->boxes)
            memcpy(to->box, sample->boxes + 4 * i, sizeof to->box);
        if (sample->rotated)
            memcpy(to->rotated, sample->rotated + 5 * i, sizeof to->rotated);
        if (sample->labels)
            to->label = sample->labels[i];
        if (sample->weights)
            to->weight = sample->weights[i];
        if (sample->keypoints)
            to->points = copied(o->arena, sample->keypoints + points * i, points * sizeof(float));
        if (sample->scores)
            to->scores = copied(o->arena, sample->scores + scores * i, scores * sizeof(float));
    }
}

void pm_scene_close(struct pm_scene_objects *o)
{
    pm_arena_destroy(&o->arena);
    o->list = NULL;
    o->count = o->capacity = 0;
}

void pm_scene_step(struct pm_scene_objects *o, const struct pm_augment_row *row)
{
    size_t kept = 0;

    o->moves = row->moves;
    if (!row->row->objects)
        return;
    row->row->objects(row->cfg, row->draws, o);
    for (size_t i = 0; i < o->count; i++)
        if (!o->list[i].dropped)
            o->list[kept++] = o->list[i];
    o->count = kept;
}

static float clip01(float v)
{
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

/* The rectangle of a rotated box in the current frame. */
static struct pm_rectangle rectangle_of(const struct pm_scene_objects *o, const float rotated[5])
{
    struct pm_rectangle r;
    int height, width;

    pm_moves_size(o->geometry, o->moves, &height, &width);
    pm_rectangle_of_box(rotated, height, width, &r);
    return r;
}

/* Brings an object's boxes to the current frame. */
static void move_boxes(const struct pm_scene_objects *o, int begin, float box[4], float rotated[5])
{
    double around[4];
    int size[2];

    if (!o->sample->rotated) {
        pm_moves_boxes(o->geometry, begin, o->moves, box, 1);
        return;
    }
    if (begin == o->moves)
        return;
    pm_moves_rotated(o->geometry, begin, o->moves, rotated, 1);
    const struct pm_rectangle r = rectangle_of(o, rotated);

    pm_rectangle_around(&r, around);
    pm_moves_size(o->geometry, o->moves, &size[0], &size[1]);
    for (int k = 0; k < 4; k++)
        box[k] = clip01((float)(around[k] / size[k % 2]));
}

float *pm_scene_boxes(struct pm_scene_objects *o)
{
    float *boxes = o->count ? pm_arena_alloc(o->arena, 4 * o->count * sizeof *boxes) : NULL;

    for (size_t i = 0; i < o->count; i++) {
        float rotated[5];

        memcpy(boxes + 4 * i, o->list[i].box, sizeof o->list[i].box);
        memcpy(rotated, o->list[i].rotated, sizeof rotated);
        move_boxes(o, o->list[i].moves, boxes + 4 * i, rotated);
    }
    return boxes;
}

struct pm_scene_object *pm_scene_settle(struct pm_scene_objects *o, size_t i)
{
    struct pm_scene_object *at = &o->list[i];

    move_boxes(o, at->moves, at->box, at->rotated);
    if (at->points)
        pm_moves_points(o->geometry, at->moves, o->moves, at->points, (size_t)o->sample->points);
    at->moves = o->moves;
    return at;
}

/* Adds a settled copy of object i. Earlier pointers to objects become invalid. */
static struct pm_scene_object *copy_object(struct pm_scene_objects *o, size_t i)
{
    struct pm_scene_object *to;

    pm_scene_settle(o, i);
    if (o->count == o->capacity) {
        const size_t capacity = 2 * o->capacity + 4;
        struct pm_scene_object *list = pm_arena_alloc(o->arena, capacity * sizeof *list);

        memcpy(list, o->list, o->count * sizeof *list);
        o->list = list;
        o->capacity = capacity;
    }
    to = &o->list[o->count++];
    *to = o->list[i];
    to->points = copied(o->arena, to->points, 2 * (size_t)o->sample->points * sizeof(float));
    to->scores = copied(o->arena, to->scores, (size_t)o->sample->score_count * sizeof(float));
    return to;
}

/* Adds object i in another copy of the picture. */
static void repeat_object(struct pm_scene_objects *o, size_t i, int down, int across, int y, int x)
{
    struct pm_scene_object *at = copy_object(o, i);
    const float by[2] = { (float)y / (float)down, (float)x / (float)across };
    struct pm_scene_copy *copy = pm_arena_alloc(o->arena, sizeof *copy);

    *copy = (struct pm_scene_copy){ o->moves - 1, y, x, at->copy };
    at->copy = copy;
    for (int k = 0; k < 4; k++)
        at->box[k] += by[k % 2];
    for (int k = 0; k < 2; k++)
        at->rotated[k] += by[k];
    for (int k = 0; at->points && k < 2 * o->sample->points; k++)
        at->points[k] += by[k % 2];
}

void pm_scene_repeat(struct pm_scene_objects *o, int down, int across)
{
    const size_t count = o->count;

    for (int k = 1; k < down * across; k++)
        for (size_t i = 0; i < count; i++)
            repeat_object(o, i, down, across, k % down, k / down);
}

static double area_of(const float *box)
{
    return ((double)box[2] - (double)box[0]) * ((double)box[3] - (double)box[1]);
}

/* Area of the part inside the picture. */
static double inside_of(const float *b)
{
    return area_of((const float[4]){ clip01(b[0]), clip01(b[1]), clip01(b[2]), clip01(b[3]) });
}

/* The share of the object's area that is inside the picture; NAN if it has no area. */
static double share_inside(const struct pm_scene_objects *o, const struct pm_scene_object *at)
{
    int height, width;

    if (!o->sample->rotated) {
        const double area = area_of(at->box);

        return area > 0 ? inside_of(at->box) / area : (double)NAN;
    }
    const struct pm_rectangle r = rectangle_of(o, at->rotated);

    pm_moves_size(o->geometry, o->moves, &height, &width);
    return r.h * r.w > 0 ? pm_rectangle_inside(&r, height, width) : (double)NAN;
}

/* An upright box is cut, so that later cuts are shares of what is left of it. */
static void clip(const struct pm_scene_objects *o, struct pm_scene_object *at, double inside)
{
    for (int k = 0; k < 4; k++)
        at->box[k] = clip01(at->box[k]);
    if (o->sample->rotated)
        at->visible = fminf(at->visible, (float)inside);
    else
        at->visible *= (float)inside;
    for (float *p = at->points; p && p < at->points + 2 * o->sample->points; p += 2)
        if (!(p[0] >= 0 && p[0] <= 1 && p[1] >= 0 && p[1] <= 1))
            p[0] = p[1] = NAN;
}

void pm_scene_clip(struct pm_scene_objects *o)
{
    for (size_t i = 0; i < o->count; i++) {
        struct pm_scene_object *at = pm_scene_settle(o, i);
        const double inside = share_inside(o, at);

        clip(o, at, inside >= 0 ? inside : 1);
    }
}

static bool is_outside(const struct pm_scene_objects *o, const struct pm_scene_object *at,
                       double inside)
{
    const float *b = at->box;

    return o->sample->rotated ? !(inside > 0)
                              : b[0] >= 1 || b[1] >= 1 || b[2] <= 0 || b[3] <= 0;
}

void pm_scene_retain(struct pm_scene_objects *o, float overlap, bool clipped)
{
    for (size_t i = 0; i < o->count; i++) {
        struct pm_scene_object *at = pm_scene_settle(o, i);
        const double inside = share_inside(o, at);

        at->dropped = is_outside(o, at, inside) || !(inside >= (double)overlap);
        if (!at->dropped && clipped)
            clip(o, at, inside);
    }
}

void pm_scene_permute(struct pm_scene_objects *o, const int *permutation)
{
    const size_t bytes = 2 * (size_t)o->sample->points * sizeof(float);

    for (size_t i = 0; i < o->count; i++) {
        float *points = o->list[i].points, *before = copied(o->arena, points, bytes);

        for (int k = 0; points && k < o->sample->points; k++)
            memcpy(points + 2 * k, before + 2 * permutation[k], 2 * sizeof *points);
    }
}

/* ---- the result ---------------------------------------------------------------------------- */

/* Rotated boxes of the result; their w is the long side. */
static const float *rotated_of(const struct pm_scene_objects *o, struct pm_arena *a)
{
    const int height = pm_geometry_height(o->geometry), width = pm_geometry_width(o->geometry);
    float *out = pm_arena_alloc(a, 5 * o->count * sizeof *out + 1);

    for (size_t i = 0; i < o->count; i++) {
        struct pm_rectangle r = rectangle_of(o, o->list[i].rotated);

        pm_rectangle_normalise(&r);
        pm_rectangle_to_box(&r, height, width, out + 5 * i);
    }
    return out;
}

/* Copies the objects' lists to out. */
static void gather(struct pm_scene_objects *o, struct pm_arena *a, struct pm_sample *out)
{
    const struct pm_sample *s = o->sample;
    const size_t n = o->count, points = 2 * (size_t)s->points, scores = (size_t)s->score_count;
    float *boxes = s->boxes ? pm_arena_alloc(a, 4 * n * sizeof *boxes + 1) : NULL;
    float *keypoints = s->keypoints ? pm_arena_alloc(a, points * n * sizeof *boxes + 1) : NULL;
    float *soft = s->scores ? pm_arena_alloc(a, scores * n * sizeof *boxes + 1) : NULL;
    float *weights = pm_arena_alloc(a, n * sizeof *weights + 1);
    float *of_masks = s->mask_weights ? pm_arena_alloc(a, n * sizeof *of_masks + 1) : NULL;
    int32_t *labels = pm_arena_alloc(a, n * sizeof *labels + 1);
    size_t *from = pm_arena_alloc(a, n * sizeof *from + 1);

    for (size_t i = 0; i < n; i++) {
        const struct pm_scene_object *at = pm_scene_settle(o, i);

        if (boxes)
            memcpy(boxes + 4 * i, at->box, sizeof at->box);
        if (keypoints && points)
            memcpy(keypoints + points * i, at->points, points * sizeof(float));
        if (soft && scores)
            memcpy(soft + scores * i, at->scores, scores * sizeof(float));
        if (of_masks)
            of_masks[i] = s->mask_weights[at->from];
        labels[i] = at->label;
        weights[i] = at->weight;
        from[i] = at->from;
    }
    *out = (struct pm_sample){ .objects = n, .boxes = boxes, .keypoints = keypoints,
                               .rotated = s->rotated ? rotated_of(o, a) : NULL,
                               .points = s->points, .mirrored = s->mirrored,
                               .labels = s->labels ? labels : NULL,
                               .weights = s->weights ? weights : NULL,
                               .mask_weights = of_masks, .scores = soft,
                               .score_count = s->score_count, .from = from };
}

/* Moves one mask. In a window that repeats the picture, the object is in one copy. */
static void move_mask(const struct pm_geometry *g, const struct pm_scene_object *at,
                      const uint8_t *mask, uint8_t *out)
{
    struct pm_geometry own;

    if (!at->copy) {
        pm_geometry_masks(g, mask, 1, out);
        return;
    }
    own = *g;
    for (const struct pm_scene_copy *copy = at->copy; copy; copy = copy->next) {
        struct pm_move *m = &own.move[copy->move];

        m->y = -copy->y * (copy->move ? m[-1].height : own.height);
        m->x = -copy->x * (copy->move ? m[-1].width : own.width);
    }
    pm_geometry_masks(&own, mask, 1, out);
}

static uint8_t *masks_of(const struct pm_scene_objects *o, struct pm_arena *a)
{
    const struct pm_geometry *g = o->geometry;
    const struct pm_sample *s = o->sample;
    const size_t before = (size_t)g->height * (size_t)g->width;
    const size_t after = (size_t)pm_geometry_height(g) * (size_t)pm_geometry_width(g);
    uint8_t *masks = pm_arena_alloc(a, o->count * after + 1);
    uint8_t *one = s->runs ? pm_malloc(before) : NULL; /* one at a time is decoded */

    for (size_t i = 0; i < o->count; i++) {
        const uint8_t *mask = pm_sample_mask(s, o->list[i].from, before, one);

        move_mask(g, &o->list[i], mask, masks + after * i);
    }
    pm_free(one);
    return masks;
}

void pm_placed_objects(const struct pm_placed *p, const struct pm_sample *sample,
                       struct pm_arena *a, struct pm_sample *out)
{
    struct pm_scene_objects o;

    pm_scene_open(&o, sample, &p->geometry);
    for (int i = 0; i < p->rows.count; i++)
        pm_scene_step(&o, &p->rows.at[i]);
    o.moves = p->geometry.count;
    gather(&o, a, out);
    if (sample->masks || sample->runs)
        out->masks = masks_of(&o, a);
    pm_scene_close(&o);
}
