/* drawn_segments: scenes of overlapping rectangles, drawn as in the scripts of the goldens, and
 * the list of their visible segments. */
#ifndef PM_DRAWN_SEGMENTS_H
#define PM_DRAWN_SEGMENTS_H

#include "base/golden_file.h"
#include "tasks/segmentation/instance_group.h"

enum { DIVISOR = 1000, MOST_SEGMENTS = 32, FIRST_THING = 2 };

struct canvas { int32_t *map; int height, width; };

static inline void paint(struct canvas c, int y, int x, int h, int w, int32_t id)
{
    for (int v = y > 0 ? y : 0; v < y + h && v < c.height; v++)
        for (int u = x > 0 ? x : 0; u < x + w && u < c.width; u++)
            c.map[v * c.width + u] = id;
}

/* A prediction: a map of ids, with scores by id (NULL: 0.5 each). Things are the classes from
 * FIRST_THING to last_thing. */
struct said {
    struct pm_segment_map p;
    struct pm_segment segments[MOST_SEGMENTS];
};

static inline void list_segments(struct said *s, struct canvas c, int last_thing,
                                 const double *scores)
{
    s->p = (struct pm_segment_map){ c.height, c.width, 0, c.map, s->segments };
    for (int i = 0; i < c.height * c.width; i++) {
        const int label = c.map[i] / DIVISOR;
        struct pm_segment *at = NULL;

        if (c.map[i] == PM_VOID)
            continue;
        for (int k = 0; k < s->p.count; k++)
            at = s->segments[k].id == c.map[i] ? &s->segments[k] : at;
        if (!at) {
            assert_true(s->p.count < MOST_SEGMENTS);
            at = &s->segments[s->p.count++];
            *at = (struct pm_segment){ .id = c.map[i], .label = label,
                                       .thing = label >= FIRST_THING && label <= last_thing,
                                       .score = scores ? scores[c.map[i]] : 0.5 };
        }
        at->area++;
    }
}

#endif
