/* draw_boxes: boxes with captions, masks, keypoints and the lines between them.
 *
 * Everything is measured in units of the image's longer side, because people look at a photo that
 * is reduced to their screen; or of `side` pixels, if they look at parts of it. */
#include <math.h>
#include <pumice/draw.h>
#include <stdlib.h>
#include <string.h>

#include "data/rotated_box.h"

/* Image pixels per pixel of a letter or of a line. */
enum { LETTER_SIDE = 640, LINE_SIDE = 400 };
/* Captions avoid so many earlier ones. With more the time would grow with the square. */
enum { MOST_AVOIDED = 4000 };

static const struct pm_color black = { 0, 0, 0 };

/* side: 0 is the image's longer one. */
static int units(const struct pm_image8 *im, int side, int unit)
{
    const int longer = im->height > im->width ? im->height : im->width;
    const int n = ((side ? side : longer) + unit / 2) / unit;

    return n > 1 ? n : 1;
}

int pm_draw_line_width(const struct pm_image8 *im)
{
    return units(im, 0, LINE_SIDE);
}

/* ---- boxes ----------------------------------------------------------------------------- */

/* Rows y0..y1-1 and columns x0..x1-1. */
struct pixels {
    int y0, x0, y1, x1;
};

static int pixel(double v, int side)
{
    return (int)floor(fmin(2, fmax(-1, v)) * side + 0.5);
}

/* Returns the pixels of a box, at least one; false if the box is not finite. */
static bool pixels_of(const struct pm_image8 *im, const float box[4], struct pixels *out)
{
    for (int k = 0; k < 4; k++)
        if (!isfinite(box[k]))
            return false;
    *out = (struct pixels){ pixel((double)box[0], im->height), pixel((double)box[1], im->width),
                            pixel((double)box[2], im->height), pixel((double)box[3], im->width) };
    if (out->y1 <= out->y0)
        out->y1 = out->y0 + 1;
    if (out->x1 <= out->x0)
        out->x1 = out->x0 + 1;
    return true;
}

/* Draws dashes of width 3 * thick along the box, each with a dark rim. */
static void draw_dashes(struct pm_image8 *im, struct pixels p, int thick, struct pm_color c)
{
    const int dash = 4 * thick, step = 7 * thick;

    for (int x = p.x0; x < p.x1; x += step) {
        const int end = x + dash < p.x1 ? x + dash : p.x1;

        pm_draw_box(im, p.y0, x, p.y0 + thick, end, thick, c);
        pm_draw_box(im, p.y1 - thick, x, p.y1, end, thick, c);
    }
    for (int y = p.y0; y < p.y1; y += step) {
        const int end = y + dash < p.y1 ? y + dash : p.y1;

        pm_draw_box(im, y, p.x0, end, p.x0 + thick, thick, c);
        pm_draw_box(im, y, p.x1 - thick, end, p.x1, thick, c);
    }
}

/* Cuts the line end[0] .. end[1] where it leaves -1..2, the range of pixel(), on an axis. Returns
 * false if no part is left. */
static bool cut_line(double end[2][2])
{
    const double from[2] = { end[0][0], end[0][1] };
    const double way[2] = { end[1][0] - from[0], end[1][1] - from[1] };
    double first = 0, last = 1; /* parts of the way */

    for (int k = 0; k < 2; k++) {
        if (way[k] == 0) {
            if (from[k] < -1 || from[k] > 2)
                return false;
            continue;
        }
        const double a = (-1 - from[k]) / way[k], b = (2 - from[k]) / way[k];

        first = fmax(first, fmin(a, b));
        last = fmin(last, fmax(a, b));
    }
    for (int k = 0; k < 2; k++) {
        if (last < 1)
            end[1][k] = from[k] + last * way[k];
        if (first > 0)
            end[0][k] = from[k] + first * way[k];
    }
    return first <= last;
}

/* Draws the line y0, x0, y1, x1 (0..1 spans the image) of this width. dash: pixels of a unit of
 * which four are drawn and three left out; 0: no gaps. Nothing if a number is not finite. */
static void draw_line(struct pm_image8 *im, const double line[4], int thick, struct pm_color c,
                      int dash)
{
    double end[2][2] = { { line[0], line[1] }, { line[2], line[3] } };

    if (!isfinite(line[0]) || !isfinite(line[1]) || !isfinite(line[2]) || !isfinite(line[3]) ||
        !cut_line(end))
        return;
    const int y = pixel(end[0][0], im->height) - thick / 2;
    const int x = pixel(end[0][1], im->width) - thick / 2;
    const int dy = pixel(end[1][0], im->height) - thick / 2 - y;
    const int dx = pixel(end[1][1], im->width) - thick / 2 - x;
    const int steps = abs(dy) > abs(dx) ? abs(dy) : abs(dx);

    for (int i = 0; i <= steps; i++) {
        const double part = steps ? (double)i / steps : 0;

        if (dash == 0 || i % (7 * dash) < 4 * dash)
            pm_draw_area(im, y + (int)lround(part * dy), x + (int)lround(part * dx), thick, thick,
                         c, 1);
    }
}

/* The outline of a rotated box with a dark rim; the front edge is thicker. */
static void draw_turned(struct pm_image8 *im, const struct pm_marked_box *b, int thick)
{
    struct pm_rectangle r;
    double corner[PM_CORNERS][2];

    pm_rectangle_of_box(b->rotated, im->height, im->width, &r);
    if (!isfinite(r.cy) || !isfinite(r.cx) || !isfinite(r.h) || !isfinite(r.w) ||
        !isfinite(r.angle))
        return;
    pm_rectangle_corners(&r, corner);
    for (int rim = 1; rim >= 0; rim--)
        for (int k = 0; k < PM_CORNERS; k++) {
            const double *from = corner[k], *to = corner[(k + 1) % PM_CORNERS];
            const double line[4] = { from[0] / im->height, from[1] / im->width,
                                     to[0] / im->height, to[1] / im->width };
            const int width = k == PM_CORNER_RT ? 3 * thick : thick;

            draw_line(im, line, rim ? width + 2 * ((thick + 1) / 2) : width,
                      rim ? black : b->color, b->dashed ? thick : 0);
        }
}

struct order {
    double area;
    size_t index;
};

/* Larger boxes come first; equal ones in reverse, so that the first stays on top. */
static int compare_areas(const void *x, const void *y)
{
    const struct order *a = x, *b = y;

    if (a->area != b->area)
        return a->area > b->area ? -1 : 1;
    return a->index > b->index ? -1 : a->index < b->index;
}

static void draw_outlines(struct pm_image8 *im, int side, const struct pm_marked_box *boxes,
                          size_t count)
{
    struct order *order = pm_calloc(count + 1, sizeof *order);
    const int thick = units(im, side, LINE_SIDE);
    struct pixels p;
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        if (pixels_of(im, boxes[i].box, &p))
            order[n++] = (struct order){ (double)(p.y1 - p.y0) * (p.x1 - p.x0), i };
    qsort(order, n, sizeof *order, compare_areas);
    for (size_t i = 0; i < n; i++) {
        const struct pm_marked_box *b = &boxes[order[i].index];

        pixels_of(im, b->box, &p);
        if (b->turned)
            draw_turned(im, b, thick);
        else if (b->dashed)
            draw_dashes(im, p, thick, b->color);
        else
            pm_draw_box(im, p.y0, p.x0, p.y1, p.x1, thick, b->color);
    }
    pm_free(order);
}

/* ---- captions -------------------------------------------------------------------------- */

static int overlap(struct pixels a, struct pixels b)
{
    const int height = (a.y1 < b.y1 ? a.y1 : b.y1) - (a.y0 > b.y0 ? a.y0 : b.y0);
    const int width = (a.x1 < b.x1 ? a.x1 : b.x1) - (a.x0 > b.x0 ? a.x0 : b.x0);

    return height > 0 && width > 0 ? height * width : 0;
}

/* Shifts a range of this length into 0..side. */
static int inside(int at, int length, int side)
{
    if (at > side - length)
        at = side - length;
    return at > 0 ? at : 0;
}

/* Chooses the caption's place: above the box, inside of it, below it, at its left and at its right
 * edge. The first place that hides least of the earlier captions counts. */
static struct pixels place(const struct pm_image8 *im, struct pixels box, int height, int width,
                           const struct pixels *earlier, size_t count)
{
    const int ys[] = { box.y0 - height, box.y0, box.y1, box.y1 - height };
    const int xs[] = { box.x0, box.x1 - width };
    struct pixels best = { 0 };
    int64_t least = INT64_MAX;

    for (size_t k = 0; k < 8 && least > 0; k++) {
        const int y = inside(ys[k / 2], height, im->height), x = inside(xs[k % 2], width,
                                                                        im->width);
        const struct pixels p = { y, x, y + height, x + width };
        int64_t hidden = 0;

        for (size_t i = 0; i < count; i++)
            hidden += overlap(p, earlier[i]);
        if (hidden < least) {
            least = hidden;
            best = p;
        }
    }
    return best;
}

/* Copies as many letters as fit into the width; *out: the width that they need. */
static void cut(const char *text, int scale, int width, char *buf, size_t size, int *out)
{
    const int margin = 4 * scale;
    const size_t fits = pm_draw_text_fit(text, scale, width - margin);

    snprintf(buf, size, "%.*s", (int)fits, text);
    *out = pm_draw_text_width(buf, scale) + margin;
}

static void draw_captions(struct pm_image8 *im, int side, const struct pm_marked_box *boxes,
                          size_t count)
{
    const int scale = units(im, side, LETTER_SIDE);
    const int height = pm_draw_text_height(scale) + 3 * scale;
    struct pixels *taken = pm_calloc(MOST_AVOIDED, sizeof *taken), p;
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        char text[256];
        int width = 0;

        if (!boxes[i].text || !boxes[i].text[0] || !pixels_of(im, boxes[i].box, &p))
            continue;
        cut(boxes[i].text, scale, im->width, text, sizeof text, &width);
        p = place(im, p, height, width, taken, n);
        pm_draw_label(im, p.y0, p.x0, scale, boxes[i].color, text);
        if (n < MOST_AVOIDED)
            taken[n++] = p;
    }
    pm_free(taken);
}

void pm_draw_boxes_at(struct pm_image8 *im, int side, const struct pm_marked_box *boxes,
                      size_t count)
{
    draw_outlines(im, side, boxes, count);
    draw_captions(im, side, boxes, count);
}

void pm_draw_boxes(struct pm_image8 *im, const struct pm_marked_box *boxes, size_t count)
{
    pm_draw_boxes_at(im, 0, boxes, count);
}

/* ---- masks and keypoints --------------------------------------------------------------- */

void pm_draw_mask(struct pm_image8 *im, const uint8_t *mask, int height, int width,
                  struct pm_color c)
{
    pm_draw_mask_at(im, 0, mask, height, width, c);
}

void pm_draw_mask_at(struct pm_image8 *im, int side, const uint8_t *mask, int height, int width,
                     struct pm_color c)
{
    const int rim = (units(im, side, LINE_SIDE) + 1) / 2;
    const double fill = 0.35, edge = 0.9;

#define AT(y, x) mask[(size_t)((int64_t)(y) * height / im->height) * (size_t)width + \
                      (size_t)((int64_t)(x) * width / im->width)]
    for (int y = 0; y < im->height; y++)
        for (int x = 0; x < im->width; x++) {
            if (!AT(y, x))
                continue;
            const bool border = y < rim || x < rim || y + rim >= im->height ||
                                x + rim >= im->width || !AT(y - rim, x) || !AT(y + rim, x) ||
                                !AT(y, x - rim) || !AT(y, x + rim);
            pm_draw_area(im, y, x, 1, 1, c, border ? edge : fill);
        }
#undef AT
}

void pm_draw_line(struct pm_image8 *im, double y0, double x0, double y1, double x1,
                  struct pm_color c)
{
    pm_draw_line_at(im, 0, y0, x0, y1, x1, c);
}

void pm_draw_line_at(struct pm_image8 *im, int side, double y0, double x0, double y1, double x1,
                     struct pm_color c)
{
    draw_line(im, (double[4]){ y0, x0, y1, x1 }, units(im, side, LINE_SIDE), c, 0);
}

void pm_draw_point(struct pm_image8 *im, double y, double x, struct pm_color c, bool hollow)
{
    pm_draw_point_at(im, 0, y, x, c, hollow);
}

void pm_draw_point_at(struct pm_image8 *im, int side, double y, double x, struct pm_color c,
                      bool hollow)
{
    const int line = units(im, side, LINE_SIDE), radius = 2 * line + 1, rim = (line + 1) / 2;

    if (!isfinite(y) || !isfinite(x))
        return;
    const int at_y = pixel(y - 0.5 / im->height, im->height);
    const int at_x = pixel(x - 0.5 / im->width, im->width);
    for (int i = -radius - rim; i <= radius + rim; i++)
        for (int k = -radius - rim; k <= radius + rim; k++) {
            const double r = hypot(i, k);

            if (r > radius + rim || (hollow && r < radius - line - rim))
                continue;
            if (r > radius || (hollow && r < radius - line))
                pm_draw_area(im, at_y + i, at_x + k, 1, 1, black, 0.6);
            else
                pm_draw_area(im, at_y + i, at_x + k, 1, 1, c, 1);
        }
}
