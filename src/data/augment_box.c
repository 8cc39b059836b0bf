/* Crops of random area and aspect: random_box_crop (TensorFlow's sample_distorted_bounding_box) and
 * random_resized_crop (torchvision's). random_box_crop computes in float32 like TensorFlow, because
 * rounding decides the result. Draws: box.
 *
 * random_box_crop: without boxes, the whole picture is the one object. Then at least
 * min_object_covered of its area stays, and a smaller area_min has no effect. */
#include <math.h>

#include "data/augment.h"

/* ---- TensorFlow's boxes ------------------------------------------------------------------ */

enum { ATTEMPTS = 100, AREA_ATTEMPTS = 10 };

/* One attempt: the height and width of a box of random area and aspect. */
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

/* As in the original, the last offset is never drawn. */
static int offset_in(struct pm_rng *r, int room)
{
    return room > 0 ? (int)pm_rng_int(r, 0, room - 1) : 0;
}

static double overlap(int a0, int a1, int b0, int b1)
{
    const int lo = a0 > b0 ? a0 : b0, hi = a1 < b1 ? a1 : b1;
    return hi > lo ? hi - lo : 0;
}

/* Whether the crop covers enough of any object of at least one pixel. Coordinates are truncated to
 * pixels. */
static bool covers(const struct pm_box_rule *c, const struct pm_scene *s, int y, int x, int h,
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

void pm_sample_box(const struct pm_box_rule *rule, struct pm_rng *r, const struct pm_scene *s,
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

static int check_rule(float area_min, float area_max, float aspect_min, float aspect_max,
                      const char *where)
{
    if (area_min > area_max)
        return pm_fail(PM_ECONFIG, "%s.area_min: %g is above %s.area_max, %g", where,
                       (double)area_min, where, (double)area_max);
    if (aspect_min > aspect_max)
        return pm_fail(PM_ECONFIG, "%s.aspect_min: %g is above %s.aspect_max, %g", where,
                       (double)aspect_min, where, (double)aspect_max);
    return PM_OK;
}

struct box_crop_cfg {
    float area_min, area_max, aspect_min, aspect_max, min_object_covered;
};

static const struct pm_opt box_opts[] = { PM_OPTS_BOX_RULE(box_crop_cfg), { 0 } };

static int check_box(const void *cfg, const char *where)
{
    const struct box_crop_cfg *c = cfg;

    return check_rule(c->area_min, c->area_max, c->aspect_min, c->aspect_max, where);
}

static void draw_box(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                     struct pm_draws *out)
{
    const struct box_crop_cfg *c = cfg;
    const struct pm_box_rule rule = { c->area_min, c->area_max, c->aspect_min, c->aspect_max,
                                      c->min_object_covered };

    pm_sample_box(&rule, r, s, out->box);
}

int pm_place_box(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                 struct pm_geometry *g)
{
    (void)cfg, (void)t;
    if (d->box[2] > 0)
        pm_geometry_window(g, d->box[0], d->box[1], d->box[2], d->box[3], NULL);
    return PM_OK;
}

const struct pm_augmentation pm_augmentation_random_box_crop = {
    .name = "random_box_crop",
    .help = "takes a random box that contains a minimum share of one of the record's boxes, or of "
            "the picture",
    .opts = box_opts,
    .cfg_size = sizeof(struct box_crop_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .wants_boxes = true,
    .check = check_box,
    .draw = draw_box,
    .place = pm_place_box,
};

/* ---- torchvision's ----------------------------------------------------------------------- */

static double between(struct pm_rng *r, double low, double high)
{
    return low + (high - low) * pm_rng_uniform(r);
}

/* The largest size that fits the picture and has the nearest allowed aspect. */
static void widest(const struct pm_area_rule *c, int height, int width, int size[2])
{
    const double shape = (double)width / height;

    size[0] = height, size[1] = width;
    if (shape < (double)c->aspect_min)
        size[0] = (int)rint(width / (double)c->aspect_min);
    else if (shape > (double)c->aspect_max)
        size[1] = (int)rint(height * (double)c->aspect_max);
    for (int k = 0; k < 2; k++) /* a picture of a few pixels may round to 0 */
        size[k] = size[k] < 1 ? 1 : size[k];
}

void pm_sample_area(const struct pm_area_rule *c, struct pm_rng *r, const struct pm_scene *s,
                    int box[4])
{
    int size[2];

    for (int i = 0; i < AREA_ATTEMPTS; i++) {
        const double area =
            (double)s->height * s->width * between(r, (double)c->area_min, (double)c->area_max);
        const double shape =
            exp(between(r, log((double)c->aspect_min), log((double)c->aspect_max)));
        size[0] = (int)rint(sqrt(area / shape)), size[1] = (int)rint(sqrt(area * shape));
        if (size[0] < 1 || size[0] > s->height || size[1] < 1 || size[1] > s->width)
            continue;
        box[0] = (int)pm_rng_int(r, 0, s->height - size[0]);
        box[1] = (int)pm_rng_int(r, 0, s->width - size[1]);
        box[2] = size[0], box[3] = size[1];
        return;
    }
    widest(c, s->height, s->width, size);
    box[0] = (s->height - size[0]) / 2, box[1] = (s->width - size[1]) / 2;
    box[2] = size[0], box[3] = size[1];
}

struct resized_crop_cfg {
    float area_min, area_max, aspect_min, aspect_max;
    int method;
};

static const struct pm_opt resized_opts[] = {
    PM_OPTS_AREA_RULE(resized_crop_cfg),
    PM_ENUM(resized_crop_cfg, method, PM_RESIZE_ANTIALIAS,
            "bilinear|nearest|bicubic|area|aligned|antialias", "as for resize"),
    { 0 },
};

static int check_resized(const void *cfg, const char *where)
{
    const struct resized_crop_cfg *c = cfg;

    return check_rule(c->area_min, c->area_max, c->aspect_min, c->aspect_max, where);
}

static void draw_area(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                      struct pm_draws *out)
{
    const struct resized_crop_cfg *c = cfg;
    const struct pm_area_rule rule = { c->area_min, c->area_max, c->aspect_min, c->aspect_max };

    pm_sample_area(&rule, r, s, out->box);
}

static int place_resized(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                         struct pm_geometry *g)
{
    pm_place_box(cfg, d, t, g);
    pm_geometry_resize(g, t->height, t->width,
                       (enum pm_resize)((const struct resized_crop_cfg *)cfg)->method);
    return PM_OK;
}

const struct pm_augmentation pm_augmentation_random_resized_crop = {
    .name = "random_resized_crop",
    .help = "takes a box of random area and shape and resizes it to the input's size",
    .opts = resized_opts,
    .cfg_size = sizeof(struct resized_crop_cfg),
    .sizing = PM_SIZE_INPUT,
    .carries = PM_CARRIES_ALL,
    .check = check_resized,
    .draw = draw_area,
    .place = place_resized,
};
