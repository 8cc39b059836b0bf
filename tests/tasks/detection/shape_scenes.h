/* shape_scenes: scenes of objects with masks and keypoints, drawn as in
 * tests/golden/shape_metrics.py. */
#ifndef PM_SHAPE_SCENES_H
#define PM_SHAPE_SCENES_H

#include "base/golden_file.h"
#include "data/coco_mask.h"
#include "tasks/detection/box_metrics.h"
#include "tasks/detection/box_shapes.h"

#include <math.h>

enum {
    SHAPE_CLASSES = 4, SHAPE_PICTURES = 3, SHAPE_TRUTHS = 6, SHAPE_FOUND = 160, SHAPE_HEIGHT = 150,
    SHAPE_WIDTH = 200, SHAPE_POINTS = 17,
};

/* An object while it is drawn; the owner frees mask. y, x, h, w: its box in pixels. */
struct shape_object {
    int label, y, x, h, w;
    uint8_t *mask; /* [SHAPE_HEIGHT][SHAPE_WIDTH] */
    double points[SHAPE_POINTS][2];
    bool labelled[SHAPE_POINTS];
};
struct shape_picture {
    struct pm_box_truth truth[SHAPE_TRUTHS];
    struct pm_box_detection found[SHAPE_FOUND];
    int truths, detections;
};
/* Masks and keypoints are in the arena. */
struct shape_scene {
    struct pm_arena *arena;
    struct shape_picture picture[SHAPE_PICTURES];
    int count;
    uint32_t n;
    int scores;
    bool distinct;
};

/* ---- drawing ------------------------------------------------------------------------------ */

static inline double shape_score(struct shape_scene *s)
{
    s->scores++;
    return s->distinct ? (number(&s->n, 1000) * 5000 + s->scores) / 5000000.0
                       : number(&s->n, 16) / 16.0;
}

static inline void shape_fill(uint8_t *mask, int y, int x, int h, int w, int value)
{
    for (int k = y; k < y + h && k < SHAPE_HEIGHT; k++)
        for (int i = x; i < x + w && i < SHAPE_WIDTH; i++)
            mask[k * SHAPE_WIDTH + i] = (uint8_t)value;
}

/* Encodes the pixels as runs in the arena. */
static inline const struct pm_runs *shape_runs(struct shape_scene *s, const uint8_t *mask)
{
    struct pm_runs runs, *out = pm_arena_alloc(s->arena, sizeof *out);

    pm_runs_encode(mask, SHAPE_HEIGHT, SHAPE_WIDTH, &runs);
    *out = pm_runs_copy(s->arena, &runs);
    pm_runs_free(&runs);
    return out;
}

static inline void shape_points(struct shape_scene *s, struct shape_object *o)
{
    const bool none = number(&s->n, 5) == 0;

    for (int k = 0; k < SHAPE_POINTS; k++) {
        const int seen = number(&s->n, 3);

        o->points[k][0] = o->y + number(&s->n, 2 * o->h) / 2.0;
        o->points[k][1] = o->x + number(&s->n, 2 * o->w) / 2.0;
        o->labelled[k] = !none && seen > 0;
    }
}

static inline struct pm_box shape_box(int y, int x, int h, int w)
{
    return (struct pm_box){ { y, x, y + h, x + w } };
}

static inline void shape_detection(struct shape_scene *s, struct shape_picture *p,
                                   const struct shape_object *of)
{
    struct pm_box_detection *d = &p->found[p->detections++];
    uint8_t *mask = pm_calloc(SHAPE_HEIGHT, SHAPE_WIDTH);
    double(*points)[2] = pm_arena_alloc(s->arena, sizeof of->points);
    const int kind = number(&s->n, 6), label = number(&s->n, SHAPE_CLASSES);
    const int dy = kind > 1 ? number(&s->n, 9) - 4 : 0, dx = kind > 1 ? number(&s->n, 9) - 4 : 0;

    assert_true(p->detections <= SHAPE_FOUND);
    for (int y = 0; y < SHAPE_HEIGHT; y++)
        for (int x = 0; x < SHAPE_WIDTH; x++)
            if (y - dy >= 0 && y - dy < SHAPE_HEIGHT && x - dx >= 0 && x - dx < SHAPE_WIDTH)
                mask[y * SHAPE_WIDTH + x] = of->mask[(y - dy) * SHAPE_WIDTH + x - dx];
    if (kind == 5)
        shape_fill(mask, 0, 0, number(&s->n, SHAPE_HEIGHT), SHAPE_WIDTH, 0);
    const int spread = kind > 1 ? number(&s->n, 12) : 0;

    for (int k = 0; k < SHAPE_POINTS; k++)
        for (int i = 0; i < 2; i++)
            points[k][i] = of->points[k][i] + (number(&s->n, 2 * spread + 1) - spread) / 2.0;
    *d = (struct pm_box_detection){ .box = shape_box(of->y + dy, of->x + dx, of->h, of->w),
                                    .label = kind == 1 ? label : of->label,
                                    .mask = shape_runs(s, mask), .points = points[0] };
    d->score = shape_score(s);
    pm_free(mask);
}

static inline void shape_truth(struct shape_scene *s, struct shape_picture *p,
                               struct shape_object *o)
{
    static const int sides[] = { 12, 24, 48, 96, 140 };
    struct pm_box_truth *t = &p->truth[p->truths++];
    double(*points)[2] = pm_arena_alloc(s->arena, sizeof o->points);

    o->label = number(&s->n, 3);
    const int side = sides[number(&s->n, 5)];
    o->w = side / 2 + number(&s->n, side / 2 + 1);
    o->h = side / 2 + number(&s->n, side / 2 + 1);
    o->x = number(&s->n, SHAPE_WIDTH - o->w);
    o->y = number(&s->n, SHAPE_HEIGHT - o->h);
    shape_fill(o->mask, o->y, o->x, o->h, o->w, 1);
    const int hole_x = number(&s->n, o->w), hole_y = number(&s->n, o->h);
    const int hole_w = number(&s->n, o->w / 2 + 1), hole_h = number(&s->n, o->h / 2 + 1);

    shape_fill(o->mask, o->y + hole_y, o->x + hole_x, hole_h, hole_w, 0);
    if (number(&s->n, 16) == 0)
        memset(o->mask, 0, SHAPE_HEIGHT * SHAPE_WIDTH);
    const int share = 1 + number(&s->n, 4);
    const bool crowd = number(&s->n, 8) == 0, difficult = number(&s->n, 6) == 0;

    shape_points(s, o);
    for (int k = 0; k < SHAPE_POINTS; k++)
        for (int i = 0; i < 2; i++)
            points[k][i] = o->labelled[k] ? o->points[k][i] : (double)NAN;
    *t = (struct pm_box_truth){ .box = shape_box(o->y, o->x, o->h, o->w),
                                .area = o->w * o->h * share / 4.0, .label = o->label,
                                .crowd = crowd, .difficult = difficult,
                                .mask = shape_runs(s, o->mask), .points = points[0] };
}

static inline void shape_draw_picture(struct shape_scene *s, struct shape_picture *p, bool full)
{
    struct shape_object o[SHAPE_TRUTHS];
    const int truths = number(&s->n, SHAPE_TRUTHS + 1);

    for (int k = 0; k < truths; k++) {
        o[k].mask = pm_calloc(SHAPE_HEIGHT, SHAPE_WIDTH);
        shape_truth(s, p, &o[k]);
        for (int times = number(&s->n, 4); times > 0; times--)
            shape_detection(s, p, &o[k]);
    }
    for (int k = 0; full && truths && k < 120; k++)
        shape_detection(s, p, &o[number(&s->n, truths)]);
    for (int k = 0; k < truths; k++)
        pm_free(o[k].mask);
}

static inline void shape_draw(struct shape_scene *s, int index, bool distinct)
{
    *s = (struct shape_scene){ .arena = pm_arena_create(), .n = 9000 + (uint32_t)index,
                               .distinct = distinct };
    s->count = 1 + number(&s->n, SHAPE_PICTURES);
    for (int k = 0; k < s->count; k++)
        shape_draw_picture(s, &s->picture[k], index % 25 == 0 && k == 0);
}

static inline void shape_free(struct shape_scene *s)
{
    pm_arena_destroy(&s->arena);
}

/* ---- metrics ------------------------------------------------------------------------------ */

/* Metrics of the scenes' classes: the first two have keypoints. */
static inline struct pm_box_metrics *shape_metrics(void)
{
    static const int some[] = { 2, 5, 6, 9, 12 };
    static const double some_sigmas[] = { 0.05, 0.1, 0.025, 0.2, 0.125 };
    double sigmas[SHAPE_CLASSES][SHAPE_POINTS];

    for (int c = 0; c < SHAPE_CLASSES; c++)
        for (int k = 0; k < SHAPE_POINTS; k++)
            sigmas[c][k] = c == 0 ? pm_coco_sigmas[k] : (double)NAN;
    for (size_t k = 0; k < PM_COUNT(some); k++)
        sigmas[1][some[k]] = some_sigmas[k];
    return pm_box_metrics_create(&(struct pm_box_metrics_options){
        .classes = SHAPE_CLASSES, .recall_upper = 1, .masks = true, .points = SHAPE_POINTS,
        .sigmas = sigmas[0] });
}

/* Adds the pictures from first on, every `step`-th one. reversed: backwards. */
static inline void shape_add(struct pm_box_metrics *m, const struct shape_scene *s, int first,
                             int step, bool reversed)
{
    for (int k = first; k < s->count; k += step) {
        const int at = reversed ? s->count - 1 - k : k;
        const struct shape_picture *p = &s->picture[at];

        pm_box_metrics_add(m, &(struct pm_box_picture){
                                  .record = (uint64_t)at, .truth = p->truth, .truths = p->truths,
                                  .detection = p->found, .detections = p->detections });
    }
}

#endif
