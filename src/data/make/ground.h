/* ground: backgrounds of drawn pictures: soft noise between two colours, with stripes or checks. */
#ifndef PM_GROUND_H
#define PM_GROUND_H

#include <pumice/rng.h>

struct pm_colour {
    float c[3]; /* 0..1 */
};
float pm_draw_uniform(struct pm_rng *r, float lo, float hi); /* lo..hi */
float pm_clamp01(float v);
struct pm_colour pm_colour_random(struct pm_rng *r);
/* A colour near another one: each channel differs by at most `by`. */
struct pm_colour pm_colour_near(struct pm_rng *r, struct pm_colour a, float by);

enum { PM_GROUND_GRID = 9 };
struct pm_ground {
    int kind; /* 0 noise only, 1 stripes, 2 checks */
    struct pm_colour a, b;
    float noise[PM_GROUND_GRID][PM_GROUND_GRID], cells; /* soft noise; number of cells per side */
    float wave_x, wave_y, phase, strength, grain;
};
/* side: of the picture, in pixels; stripes and checks have 0.08 to 0.35 of it. */
struct pm_ground pm_ground_random(struct pm_rng *r, int side);
/* A colour that differs from both colours of the ground. After 64 tries, the last one is used. */
struct pm_colour pm_ground_ink(struct pm_rng *r, const struct pm_ground *g);
/* Writes [height][width][3], about 0..1: grain can leave this range. */
void pm_ground_draw(const struct pm_ground *g, struct pm_rng *r, int height, int width,
                    float *rgb);

#endif
