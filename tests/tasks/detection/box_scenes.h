/* box_scenes: scenes of true and detected boxes, drawn as in tests/golden/box_scenes.py. */
#ifndef PM_BOX_SCENES_H
#define PM_BOX_SCENES_H

#include "base/golden_file.h"
#include "tasks/detection/box_metrics.h"

enum { SCENE_CLASSES = 4, SCENE_PICTURES = 4, SCENE_BOXES = 300 };

struct scene_picture {
    struct pm_box_truth truth[SCENE_BOXES];
    struct pm_box_detection detection[SCENE_BOXES];
    int verified[SCENE_CLASSES];
    int truths, detections, verified_count;
};
struct scene {
    struct scene_picture picture[SCENE_PICTURES];
    int count;
    /* for drawing */
    uint32_t n;
    int scores;
    bool distinct;
};

static inline int draw_side(struct scene *s, int side)
{
    return number(&s->n, 3) == 0 ? side : side / 2 + number(&s->n, side);
}

static inline struct pm_box box_of(double x, double y, double w, double h)
{
    return (struct pm_box){ { y, x, y + h, x + w } };
}

static inline void draw_detection(struct scene *s, struct scene_picture *p, struct pm_box box,
                                  int label)
{
    double score;

    s->scores++;
    score = s->distinct ? (number(&s->n, 1000) * 5000 + s->scores) / 5000000.0
                        : number(&s->n, 16) / 16.0;
    assert_true(p->detections < SCENE_BOXES);
    p->detection[p->detections++] = (struct pm_box_detection){ box, score, label };
}

static inline void draw_near(struct scene *s, struct scene_picture *p, const int box[4], int label,
                             int side)
{
    double x = box[0], y = box[1], w = box[2];
    const int kind = number(&s->n, 6);

    if (kind == 1)
        w *= 0.5;
    if (kind == 2)
        label = number(&s->n, SCENE_CLASSES);
    if (kind > 2) {
        x += number(&s->n, side / 4 + 1);
        y += number(&s->n, side / 4 + 1);
    }
    draw_detection(s, p, box_of(x, y, w, box[3]), label);
}

static inline void draw_truth(struct scene *s, struct scene_picture *p)
{
    static const int sides[] = { 16, 32, 64, 128, 240 };
    const int label = number(&s->n, 3), side = sides[number(&s->n, 5)];
    const int w = draw_side(s, side), h = draw_side(s, side);
    const int x = number(&s->n, 400), y = number(&s->n, 400);
    const double area = number(&s->n, 2) == 0 ? w * h : w * h * 0.75;

    for (int times = 1 + (number(&s->n, 8) == 0); times > 0; times--) {
        const bool crowd = number(&s->n, 8) == 0, difficult = number(&s->n, 6) == 0;
        const bool group_of = number(&s->n, 6) == 0;

        p->truth[p->truths++] = (struct pm_box_truth){ box_of(x, y, w, h), area, label, crowd,
                                                       difficult, group_of };
    }
    for (int times = number(&s->n, 4); times > 0; times--)
        draw_near(s, p, (int[]){ x, y, w, h }, label, side);
}

static inline void draw_picture(struct scene *s, struct scene_picture *p, bool full)
{
    for (int truths = number(&s->n, 9); truths > 0; truths--)
        draw_truth(s, p);
    const int count = number(&s->n, 5) + (full ? 230 : 0);

    for (int k = 0; k < count; k++) {
        const int label = number(&s->n, k < 5 ? SCENE_CLASSES : 2);
        const int x = number(&s->n, 400), y = number(&s->n, 400);
        const int w = 1 + number(&s->n, 200), h = 1 + number(&s->n, 200);

        draw_detection(s, p, box_of(x, y, w, h), label);
    }
    for (int c = 0; c < SCENE_CLASSES; c++)
        if (number(&s->n, 2))
            p->verified[p->verified_count++] = c;
}

static inline void draw_scene(struct scene *s, int index, bool distinct)
{
    *s = (struct scene){ .n = 5000 + (uint32_t)index, .distinct = distinct };
    s->count = 1 + number(&s->n, SCENE_PICTURES);
    for (int k = 0; k < s->count; k++)
        draw_picture(s, &s->picture[k], index % 25 == 0 && k == 0);
}

/* The pictures are added backwards if `reversed`. */
static inline struct pm_box_metrics *add_scene_of(const struct scene *s, bool reversed,
                                                  bool rotated)
{
    struct pm_box_metrics *m = pm_box_metrics_create(&(struct pm_box_metrics_options){
        .classes = SCENE_CLASSES, .recall_lower = 0.2, .recall_upper = 0.8,
        .rotated = rotated });

    for (int k = 0; k < s->count; k++) {
        const int at = reversed ? s->count - 1 - k : k;
        const struct scene_picture *p = &s->picture[at];

        pm_box_metrics_add(m, &(struct pm_box_picture){
                                  .record = (uint64_t)at, .truth = p->truth,
                                  .truths = p->truths, .detection = p->detection,
                                  .detections = p->detections, .verified = p->verified,
                                  .verified_count = p->verified_count });
    }
    return m;
}

static inline struct pm_box_metrics *add_scene(const struct scene *s, bool reversed)
{
    return add_scene_of(s, reversed, false);
}

#endif
