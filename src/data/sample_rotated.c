/* Moves of rotated boxes. A rotated box is a rectangle in pixels, so all moves are composed to one
 * map of pixels, in double, and applied to its centre and its axes (rotated_box.h). */
#include <math.h>
#include <string.h>

#include "data/augment.h"
#include "data/rotated_box.h"

/* map = next after map. */
static void compose(double map[2][3], const double next[2][3])
{
    double from[2][3];

    memcpy(from, map, sizeof from);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++)
            map[i][k] = next[i][0] * from[0][k] + next[i][1] * from[1][k] +
                        (k == 2 ? next[i][2] : 0);
}

/* The inverse of y' = m * (y, x, 1). */
static void invert(double m[2][3])
{
    const double det = m[0][0] * m[1][1] - m[0][1] * m[1][0];
    double out[2][3] = { { m[1][1] / det, -m[0][1] / det }, { -m[1][0] / det, m[0][0] / det } };

    for (int i = 0; i < 2; i++)
        out[i][2] = -(out[i][0] * m[0][2] + out[i][1] * m[1][2]);
    memcpy(m, out, sizeof out);
}

/* A warp maps indices of pixels from after the move to before it. Pixel i has its centre at
 * i + 0.5. */
static void map_warp(const struct pm_move *m, double map[2][3])
{
    const float *w = m->warp;

    for (int i = 0; i < 2; i++) {
        const float *row = i ? w : w + 3; /* of x, of y */
        const double of_x = (double)row[0], of_y = (double)row[1];

        map[i][0] = of_y;
        map[i][1] = of_x;
        map[i][2] = (double)row[2] + 0.5 - 0.5 * (of_x + of_y);
    }
    invert(map);
}

/* Of one move of a picture of that size. */
static void map_move(const struct pm_move *m, int height, int width, double map[2][3])
{
    const double same[2][3] = { { 1, 0, 0 }, { 0, 1, 0 } };

    memcpy(map, same, sizeof same);
    switch (m->kind) {
    case PM_MOVE_WINDOW: map[0][2] = -m->y, map[1][2] = -m->x; break;
    case PM_MOVE_RESIZE:
        map[0][0] = (double)m->height / height;
        map[1][1] = (double)m->width / width;
        break;
    case PM_MOVE_MIRROR: map[1][1] = -1, map[1][2] = width; break;
    case PM_MOVE_FLIP: map[0][0] = -1, map[0][2] = height; break;
    case PM_MOVE_TURN:
        map[0][0] = 0, map[0][1] = -1, map[0][2] = width;
        map[1][0] = 1, map[1][1] = 0;
        break;
    case PM_MOVE_WARP: map_warp(m, map); break;
    }
}

void pm_moves_size(const struct pm_geometry *g, int moves, int *height, int *width)
{
    *height = moves ? g->move[moves - 1].height : g->height;
    *width = moves ? g->move[moves - 1].width : g->width;
}

void pm_moves_map(const struct pm_geometry *g, int begin, int end, double map[2][3])
{
    const double same[2][3] = { { 1, 0, 0 }, { 0, 1, 0 } };
    int height, width;

    memcpy(map, same, sizeof same);
    for (int k = begin; k < end; k++) {
        double next[2][3];

        pm_moves_size(g, k, &height, &width);
        map_move(&g->move[k], height, width, next);
        compose(map, next);
    }
}

/* from, to: moves that precede the frames of the boxes before and after. */
static void move(const struct pm_geometry *g, const double map[2][3], int from, int to,
                 float *boxes, size_t count)
{
    int before[2], after[2];

    pm_moves_size(g, from, &before[0], &before[1]);
    pm_moves_size(g, to, &after[0], &after[1]);
    for (float *b = boxes; b < boxes + 5 * count; b += 5) {
        struct pm_rectangle r;

        pm_rectangle_of_box(b, before[0], before[1], &r);
        pm_rectangle_move(&r, map);
        pm_rectangle_to_box(&r, after[0], after[1], b);
    }
}

void pm_moves_rotated(const struct pm_geometry *g, int begin, int end, float *boxes, size_t count)
{
    double map[2][3];

    if (begin == end)
        return;
    pm_moves_map(g, begin, end, map);
    move(g, map, begin, end, boxes, count);
}

void pm_geometry_rotated(const struct pm_geometry *g, float *boxes, size_t count)
{
    pm_moves_rotated(g, 0, g->count, boxes, count);
}

void pm_geometry_rotated_back(const struct pm_geometry *g, float *boxes, size_t count)
{
    double map[2][3];

    if (g->count == 0)
        return;
    pm_moves_map(g, 0, g->count, map);
    invert(map);
    move(g, map, g->count, 0, boxes, count);
}
