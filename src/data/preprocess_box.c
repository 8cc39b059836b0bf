/* The box sampler of the Inception preprocessings: TensorFlow's sample_distorted_bounding_box, in
 * float32 as there, since the roundings decide. The picture itself is the object where none is
 * given, so that at least min_object_covered of its area stays and the area's own least of 5 % never
 * shows. */
#include <math.h>

#include "data/preprocess.h"

enum { ATTEMPTS = 100 };

/* One attempt: height and width of a box of the wanted area and shape. */
static bool try_size(const struct pm_box_rule *c, struct pm_rng *r, int height, int width,
                     int *rows, int *cols)
{
    const float aspect = (float)pm_rng_uniform(r) * (c->aspect_max - c->aspect_min) + c->aspect_min;
    const float least = c->area_min * (float)width * (float)height;
    const float most = c->area_max * (float)width * (float)height;
    int lo = (int)lrintf(sqrtf(least / aspect)), hi = (int)lrintf(sqrtf(most / aspect));

    if (lrintf((float)hi * aspect) > width)
        hi = (int)(((double)width + 0.5 - 1e-7) / (double)aspect);
    hi = hi < height ? hi : height;
    lo = lo < hi ? lo : hi;
    int h = (int)pm_rng_int(r, lo, hi), w = (int)lrintf((float)h * aspect);
    if ((float)w * (float)h < least)
        h++, w = (int)lrintf((float)h * aspect);
    if ((float)w * (float)h > most)
        h--, w = (int)lrintf((float)h * aspect);
    *rows = h;
    *cols = w;
    const float area = (float)w * (float)h;
    return area >= least && area <= most && h > 0 && w > 0 && h <= height && w <= width;
}

/* The last offset is never drawn, as in the original. */
static int offset_in(struct pm_rng *r, int room)
{
    return room > 0 ? (int)pm_rng_int(r, 0, room - 1) : 0;
}

static double overlap(int a0, int a1, int b0, int b1)
{
    const int lo = a0 > b0 ? a0 : b0, hi = a1 < b1 ? a1 : b1;
    return hi > lo ? hi - lo : 0;
}

/* Enough of any object of at least a pixel lies in the crop. Coordinates are cut to whole pixels. */
static bool covers(const struct pm_box_rule *c, const struct pm_sight *s, int y, int x, int h,
                   int w)
{
    static const float whole[4] = { 0, 0, 1, 1 };
    const float *b = s->boxes_count ? s->boxes : whole;

    for (size_t i = 0; i < (s->boxes_count ? s->boxes_count : 1); i++, b += 4) {
        const int y0 = (int)(b[0] * (float)s->height), x0 = (int)(b[1] * (float)s->width);
        const int y1 = (int)(b[2] * (float)s->height), x1 = (int)(b[3] * (float)s->width);
        const double area = y1 > y0 && x1 > x0 ? (double)(y1 - y0) * (x1 - x0) : 0;
        const double inside = overlap(y, y + h, y0, y1) * overlap(x, x + w, x0, x1);
        if (area >= 1 && inside / area >= (double)c->min_object_covered)
            return true;
    }
    return false;
}

void pm_sample_box(const struct pm_box_rule *rule, struct pm_rng *r, const struct pm_sight *s,
                   int box[4])
{
    for (int i = 0; i < ATTEMPTS; i++) {
        int h = 0, w = 0;
        if (!try_size(rule, r, s->height, s->width, &h, &w))
            continue;
        const int y = offset_in(r, s->height - h), x = offset_in(r, s->width - w);
        if (!covers(rule, s, y, x, h, w))
            continue;
        box[0] = y, box[1] = x, box[2] = h, box[3] = w;
        return;
    }
    box[0] = box[1] = 0, box[2] = s->height, box[3] = s->width;
}
