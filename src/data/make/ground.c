/* ground: ground.h has the contract. */
#include "data/make/ground.h"

#include <math.h>

float pm_draw_uniform(struct pm_rng *r, float lo, float hi)
{
    return lo + (float)pm_rng_uniform(r) * (hi - lo);
}

float pm_clamp01(float v)
{
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

struct pm_colour pm_colour_random(struct pm_rng *r)
{
    struct pm_colour out;
    for (int c = 0; c < 3; c++)
        out.c[c] = pm_draw_uniform(r, 0, 1);
    return out;
}

/* Distance of two colours, 0..sqrt(3). */
static float apart(struct pm_colour a, struct pm_colour b)
{
    float sum = 0;
    for (int c = 0; c < 3; c++)
        sum += (a.c[c] - b.c[c]) * (a.c[c] - b.c[c]);
    return sqrtf(sum);
}

struct pm_colour pm_colour_near(struct pm_rng *r, struct pm_colour a, float by)
{
    struct pm_colour out;

    for (int c = 0; c < 3; c++)
        out.c[c] = pm_clamp01(a.c[c] + pm_draw_uniform(r, -by, by));
    return out;
}

struct pm_ground pm_ground_random(struct pm_rng *r, int side)
{
    struct pm_ground g = { .kind = (int)pm_rng_int(r, 0, 2), .a = pm_colour_random(r) };
    const float angle = pm_draw_uniform(r, 0, 6.2831853f);
    const float period = pm_draw_uniform(r, 0.08f, 0.35f) * (float)side;

    g.b = pm_colour_near(r, g.a, 0.35f);
    g.cells = (float)pm_rng_int(r, 2, PM_GROUND_GRID - 1);
    for (int y = 0; y < PM_GROUND_GRID; y++)
        for (int x = 0; x < PM_GROUND_GRID; x++)
            g.noise[y][x] = pm_draw_uniform(r, 0, 1);
    g.wave_x = cosf(angle) * 6.2831853f / period;
    g.wave_y = sinf(angle) * 6.2831853f / period;
    g.phase = pm_draw_uniform(r, 0, 6.2831853f);
    g.strength = pm_draw_uniform(r, 0.3f, 0.9f);
    g.grain = pm_draw_uniform(r, 0, 0.06f);
    return g;
}

struct pm_colour pm_ground_ink(struct pm_rng *r, const struct pm_ground *g)
{
    struct pm_colour ink = { { 0 } };

    for (int i = 0; i < 64; i++) {
        ink = pm_colour_random(r);
        if (apart(ink, g->a) > 0.45f && apart(ink, g->b) > 0.45f)
            break;
    }
    return ink;
}

static float soft_noise(const struct pm_ground *g, float x, float y)
{
    const int i = (int)x, j = (int)y;
    float fx = x - (float)i, fy = y - (float)j;

    fx = fx * fx * (3 - 2 * fx);
    fy = fy * fy * (3 - 2 * fy);
    const float top = g->noise[j][i] + (g->noise[j][i + 1] - g->noise[j][i]) * fx;
    const float bottom = g->noise[j + 1][i] + (g->noise[j + 1][i + 1] - g->noise[j + 1][i]) * fx;
    return top + (bottom - top) * fy;
}

void pm_ground_draw(const struct pm_ground *g, struct pm_rng *r, int height, int width, float *rgb)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++, rgb += 3) {
            const float fx = (float)x * g->cells / (float)width;
            const float fy = (float)y * g->cells / (float)height;
            float t = soft_noise(g, fx, fy);
            const float u = (float)x * g->wave_x + (float)y * g->wave_y + g->phase;
            const float v = (float)y * g->wave_x - (float)x * g->wave_y + g->phase;
            if (g->kind == 1)
                t += g->strength * (0.5f + 0.5f * sinf(u) - t);
            else if (g->kind == 2)
                t += g->strength * (0.5f + 0.5f * pm_clamp01(4 * sinf(u) * sinf(v) + 0.5f) - t);
            const float grain = g->grain * (float)(pm_rng_uniform(r) - 0.5);
            for (int c = 0; c < 3; c++)
                rgb[c] = g->a.c[c] + (g->b.c[c] - g->a.c[c]) * t + grain;
        }
}
