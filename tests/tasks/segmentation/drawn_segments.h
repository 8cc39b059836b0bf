/* drawn_segments: scenes of overlapping rectangles, drawn as in the scripts of the goldens, and
 * the list of their visible segments. */
#ifndef PM_DRAWN_SEGMENTS_H
#define PM_DRAWN_SEGMENTS_H

#include "base/unit.h"
#include "tasks/segmentation/instance_group.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>

enum { DIVISOR = 1000, MOST_SEGMENTS = 32, FIRST_THING = 2 };

/* The next number of the sequence n -> (n 1103515245 + 12345) mod 2^31, reduced to 0 .. below -
 * 1. */
static inline int number(uint32_t *n, int below)
{
    *n = (*n * 1103515245u + 12345u) & 0x7fffffffu;
    return (int)(*n >> 16) % below;
}

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

static inline void near(double a, double b)
{
    if (!(fabs(a - b) < 1e-12))
        fail_msg("%.17g is not %.17g", a, b);
}

/* Reads tests/golden/NAME; free with cJSON_Delete. */
static inline cJSON *read_golden(const char *name)
{
    const char *source = getenv("PUMICE_SOURCE");
    char path[1024], *text = NULL;
    cJSON *all;

    snprintf(path, sizeof path, "%s/tests/golden/%s", source ? source : ".", name);
    if (pm_file_read(path, &text, NULL) < 0)
        fail_msg("%s", pm_error_text());
    all = cJSON_Parse(text);
    pm_free(text);
    if (!all)
        fail_msg("%s is no JSON", path);
    return all;
}

#endif
