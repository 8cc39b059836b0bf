/* Warps of a canvas: nearest pixels, or between four of them. */
#include <math.h>
#include <string.h>

#include "data/render.h"

/* Samples the nearest pixels. */
static void warp_nearest(const struct pm_canvas *c, const struct pm_move *m, float *out)
{
    const size_t channels = (size_t)c->channels;
    float *to = out;

    for (int y = 0; y < c->height; y++)
        for (int x = 0; x < c->width; x++, to += channels) {
            int from_y, from_x;
            const bool inside = pm_warp_origin(m, y, x, &from_y, &from_x);
            const float *from =
                inside ? c->values + ((size_t)from_y * (size_t)c->width + (size_t)from_x) * channels
                       : m->pad;

            memcpy(to, from, channels * sizeof *to);
        }
}

/* The value between four pixels, from y, x on; dy and dx are shares of the way to the next. */
static float lerp_at(const struct pm_canvas *c, const struct pm_move *m, int y, int x, float dy,
                     float dx, int channel)
{
    float v[4];

    for (int i = 0; i < 4; i++) {
        const int at_y = y + i / 2, at_x = x + i % 2;
        const bool inside = at_y >= 0 && at_x >= 0 && at_y < c->height && at_x < c->width;
        const size_t at = inside ? (size_t)at_y * (size_t)c->width + (size_t)at_x : 0;

        v[i] = inside ? c->values[at * (size_t)c->channels + (size_t)channel] : m->pad[channel];
    }
    const float above = v[0] + (v[1] - v[0]) * dx, below = v[2] + (v[3] - v[2]) * dx;

    return above + (below - above) * dy;
}

/* Samples bilinearly. Pixels outside the canvas are the move's padding. */
static void warp_smooth(const struct pm_canvas *c, const struct pm_move *m, float *out)
{
    const float *w = m->warp;
    float *to = out;

    for (int y = 0; y < c->height; y++)
        for (int x = 0; x < c->width; x++, to += c->channels) {
            /* Beyond -1..side all four pixels are outside. */
            const float at_x = fminf(fmaxf(w[0] * (float)x + w[1] * (float)y + w[2], -2),
                                     (float)c->width + 1);
            const float at_y = fminf(fmaxf(w[3] * (float)x + w[4] * (float)y + w[5], -2),
                                     (float)c->height + 1);
            const float left = floorf(at_x), top = floorf(at_y);

            for (int k = 0; k < c->channels; k++)
                to[k] = lerp_at(c, m, (int)top, (int)left, at_y - top, at_x - left, k);
        }
}

void pm_warp_pixels(const struct pm_canvas *c, const struct pm_move *m, float *out)
{
    (m->smooth ? warp_smooth : warp_nearest)(c, m, out);
}
