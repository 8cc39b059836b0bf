/* mosaic: joins the pictures of four records (Bochkovskiy et al., YOLOv4, 2020). A mosaic has more
 * objects than one record, in more sizes and surroundings. The canvas has twice the input's sides,
 * and the four pictures meet at a random point of it. The following rows and the preprocessing
 * treat the canvas as the record's picture. Draws: struct pm_mosaic_draws, from the generator of
 * the list's first row. Maps of labels are not carried. */
#include <math.h>
#include <string.h>

#include "data/augment.h"
#include "data/render.h"
#include "data/rotated_box.h"

struct mosaic_cfg {
    double probability;
    int until_steps, fill;
    double min_center, max_center, min_visible;
};

static const struct pm_opt opts[] = {
    PM_DOUBLE(mosaic_cfg, probability, 1, 0, 1, "share of the examples that are a mosaic"),
    PM_INT(mosaic_cfg, until_steps, 0, 0, 1 << 30,
           "first step without mosaics; 0 = all steps have them"),
    PM_DOUBLE(mosaic_cfg, min_center, 0.25, 0, 1,
              "smallest height and width of the upper left picture, as a share of the mosaic's"),
    PM_DOUBLE(mosaic_cfg, max_center, 0.75, 0, 1,
              "largest height and width of the upper left picture, as a share of the mosaic's"),
    PM_DOUBLE(mosaic_cfg, min_visible, 0.1, 0, 1,
              "smallest visible share of an object's area; objects with less are dropped"),
    PM_INT(mosaic_cfg, fill, 127, 0, 255, "grey value of pixels that no picture covers"),
    { 0 },
};

static int check(const void *cfg, const char *where)
{
    const struct mosaic_cfg *c = cfg;

    if (c->min_center <= c->max_center)
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s.min_center: %g is above %s.max_center, %g", where,
                   c->min_center, where, c->max_center);
}

const struct pm_augmentation pm_augmentation_mosaic = {
    .name = "mosaic",
    .help = "joins the picture with those of three other records",
    .opts = opts,
    .cfg_size = sizeof(struct mosaic_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL & ~PM_CARRIES_MAPS,
    .others = PM_MOSAIC_OTHERS,
    .check = check,
};

/* ---- draws --------------------------------------------------------------------------------- */

bool pm_mosaic_draw(const struct pm_augment *a, uint64_t seed, uint64_t step, uint32_t example,
                    uint64_t records, struct pm_mosaic_draws *out)
{
    const struct mosaic_cfg *c = a && a->mosaic ? a->mosaic->cfg : NULL;
    struct pm_rng r;

    if (!c || (c->until_steps && step >= (uint64_t)c->until_steps))
        return false;
    r = pm_augment_rng(seed, 0, (uint32_t)step, example);
    const bool wanted = pm_rng_uniform(&r) < c->probability;
    out->center_y = c->min_center + (c->max_center - c->min_center) * pm_rng_uniform(&r);
    out->center_x = c->min_center + (c->max_center - c->min_center) * pm_rng_uniform(&r);
    for (int k = 0; k < PM_MOSAIC_OTHERS; k++)
        out->record[k] = (uint64_t)pm_rng_int(&r, 0, (int64_t)records - 1);
    return wanted;
}

/* ---- the picture --------------------------------------------------------------------------- */

struct canvas {
    int height, width, channels, y, x; /* y, x: where the pictures meet */
    uint8_t *pixels;
};
/* A picture's place on the canvas, in pixels; parts may be outside. */
struct place {
    int y, x, height, width;
};

static struct place place_of(const struct canvas *c, const struct pm_image8 *im, int part,
                             struct pm_frame input)
{
    const double scale = fmin((double)input.height / im->height, (double)input.width / im->width);
    struct place p = { .height = (int)fmax(rint(im->height * scale), 1),
                       .width = (int)fmax(rint(im->width * scale), 1) };

    p.y = part < 2 ? c->y - p.height : c->y;
    p.x = part % 2 ? c->x : c->x - p.width;
    return p;
}

static void paint(const struct canvas *c, const struct pm_image8 *im, struct place p)
{
    const size_t channels = (size_t)c->channels;
    float *resized = pm_malloc((size_t)p.height * (size_t)p.width * channels * sizeof *resized);

    pm_resize(pm_view8_of(im), PM_RESIZE_BILINEAR, p.height, p.width, resized);
    for (int y = p.y < 0 ? -p.y : 0; y < p.height && p.y + y < c->height; y++)
        for (int x = p.x < 0 ? -p.x : 0; x < p.width && p.x + x < c->width; x++) {
            const float *from = resized + ((size_t)y * (size_t)p.width + (size_t)x) * channels;
            uint8_t *to = c->pixels +
                          ((size_t)(p.y + y) * (size_t)c->width + (size_t)(p.x + x)) * channels;

            for (size_t k = 0; k < channels; k++)
                to[k] = (uint8_t)(from[k] + 0.5f);
        }
    pm_free(resized);
}

/* ---- objects ------------------------------------------------------------------------------- */

/* The lists of the result, with room for all objects. */
struct lists {
    float *boxes, *rotated, *keypoints, *scores, *weights, *mask_weights;
    uint8_t *masks;
    int32_t *labels;
    size_t *from;
    size_t count;
};

static double clipped(double v)
{
    return fmin(fmax(v, 0), 1);
}

static double area_of(const double *b)
{
    return (b[2] - b[0]) * (b[3] - b[1]);
}

/* The moves that place a picture on the canvas. */
static void placing(const struct canvas *c, struct place p, const struct pm_image8 *im,
                    struct pm_geometry *g)
{
    pm_geometry_begin(g, im->height, im->width);
    pm_geometry_resize(g, p.height, p.width, PM_RESIZE_BILINEAR);
    pm_geometry_window(g, -p.y, -p.x, c->height, c->width, NULL);
}

/* Places the mask of object i as its picture is placed. */
static void add_mask(const struct canvas *c, struct place p, const struct pm_sample *s, size_t i,
                     uint8_t *out)
{
    const struct pm_image8 *im = s->picture;
    const size_t pixels = (size_t)im->height * (size_t)im->width;
    uint8_t *one = s->runs ? pm_malloc(pixels) : NULL;
    struct pm_geometry g;

    placing(c, p, im, &g);
    pm_geometry_masks(&g, pm_sample_mask(s, i, pixels, one), 1, out);
    pm_free(one);
}

/* Writes the part of the upright box that is on the canvas. Returns whether it is enough. */
static bool place_box(const struct canvas *c, struct place p, const float *from,
                      double min_visible, float out[4])
{
    const int first[2] = { p.y, p.x }, side[2] = { p.height, p.width };
    const int whole[2] = { c->height, c->width };
    double box[4], part[4];

    for (int k = 0; k < 4; k++) {
        const int a = k % 2;

        box[k] = ((double)from[k] * side[a] + first[a]) / whole[a];
        part[k] = clipped(box[k]);
        out[k] = (float)part[k];
    }
    const double left = area_of(part);

    return left > 0 && left >= min_visible * area_of(box);
}

/* The same for a rotated box, which is not cut. Its parts outside its own picture do not count as
 * visible. box: receives the upright box around the part that is visible. */
static bool place_rotated(const struct canvas *c, struct place p, const struct pm_sample *s,
                          size_t i, double min_visible, float out[5], float box[4])
{
    const int whole[2] = { c->height, c->width }, at[2] = { p.y, p.x };
    const int side[2] = { p.height, p.width };
    double around[4], begin[2], end[2]; /* the part of the picture that is on the canvas */
    struct pm_geometry g;
    struct pm_rectangle r;

    placing(c, p, s->picture, &g);
    memcpy(out, s->rotated + 5 * i, 5 * sizeof *out);
    pm_geometry_rotated(&g, out, 1);
    pm_rectangle_of_box(out, c->height, c->width, &r);
    pm_rectangle_around(&r, around);
    for (int k = 0; k < 2; k++) {
        begin[k] = fmax(at[k], 0);
        end[k] = fmin(at[k] + side[k], whole[k]);
    }
    for (int k = 0; k < 4; k++)
        box[k] = (float)(fmin(fmax(around[k], begin[k % 2]), end[k % 2]) / whole[k % 2]);
    r.cy -= begin[0], r.cx -= begin[1];
    const double left = pm_rectangle_inside(&r, end[0] - begin[0], end[1] - begin[1]);

    return left > 0 && left >= min_visible;
}

/* Adds object i, unless too little of it is on the canvas. */
static void add_object(const struct mosaic_cfg *cfg, const struct canvas *c, struct place p,
                       const struct pm_sample *s, size_t i, size_t from, struct lists *l)
{
    const size_t n = l->count, points = 2 * (size_t)s->points, scores = (size_t)s->score_count;
    const bool kept = s->rotated
        ? place_rotated(c, p, s, i, cfg->min_visible, l->rotated + 5 * n, l->boxes + 4 * n)
        : place_box(c, p, s->boxes + 4 * i, cfg->min_visible, l->boxes + 4 * n);

    if (!kept)
        return;
    for (size_t k = 0; k < points && s->keypoints; k += 2) {
        const float *point = s->keypoints + points * i + k;
        const double y = ((double)point[0] * p.height + p.y) / c->height;
        const double x = ((double)point[1] * p.width + p.x) / c->width;
        const bool inside = y >= 0 && y <= 1 && x >= 0 && x <= 1;

        l->keypoints[points * n + k] = inside ? (float)y : NAN;
        l->keypoints[points * n + k + 1] = inside ? (float)x : NAN;
    }
    if (s->masks || s->runs)
        add_mask(c, p, s, i, l->masks + n * (size_t)c->height * (size_t)c->width);
    if (s->scores && scores)
        memcpy(l->scores + scores * n, s->scores + scores * i, scores * sizeof *l->scores);
    l->labels[n] = s->labels ? s->labels[i] : 0;
    l->weights[n] = s->weights ? s->weights[i] : 1;
    if (s->mask_weights)
        l->mask_weights[n] = s->mask_weights[i];
    l->from[n] = from + i;
    l->count++;
}

/* pixels: of the canvas */
static struct lists lists_of(const struct pm_sample *s, size_t most, size_t pixels,
                             struct pm_arena *a)
{
    const size_t points = 2 * (size_t)s->points, scores = (size_t)s->score_count;

    return (struct lists){
        .boxes = pm_arena_alloc(a, 4 * most * sizeof(float) + 1),
        .rotated = s->rotated ? pm_arena_alloc(a, 5 * most * sizeof(float) + 1) : NULL,
        .keypoints = s->keypoints ? pm_arena_alloc(a, points * most * sizeof(float) + 1) : NULL,
        .masks = s->masks || s->runs ? pm_arena_alloc(a, pixels * most + 1) : NULL,
        .scores = s->scores ? pm_arena_alloc(a, scores * most * sizeof(float) + 1) : NULL,
        .weights = pm_arena_alloc(a, most * sizeof(float) + 1),
        .mask_weights = s->mask_weights ? pm_arena_alloc(a, most * sizeof(float) + 1) : NULL,
        .labels = pm_arena_alloc(a, most * sizeof(int32_t) + 1),
        .from = pm_arena_alloc(a, most * sizeof(size_t) + 1),
    };
}

void pm_mosaic_make(const struct pm_augment *a, const struct pm_mosaic_draws *d,
                    const struct pm_sample in[1 + PM_MOSAIC_OTHERS], struct pm_frame input,
                    struct pm_arena *arena, struct pm_sample *out)
{
    const struct mosaic_cfg *cfg = a->mosaic->cfg;
    struct canvas c = { .height = 2 * input.height, .width = 2 * input.width,
                        .channels = in[0].picture->channels };
    const size_t pixels = (size_t)c.height * (size_t)c.width, bytes = pixels * (size_t)c.channels;
    struct pm_image8 *picture = pm_arena_alloc(arena, sizeof *picture);
    size_t most = 0, from = 0;

    for (int k = 0; k <= PM_MOSAIC_OTHERS; k++)
        most += in[k].objects;
    struct lists l = lists_of(&in[0], most, pixels, arena);

    c.y = (int)(d->center_y * c.height), c.x = (int)(d->center_x * c.width);
    c.pixels = pm_arena_alloc(arena, bytes);
    memset(c.pixels, cfg->fill, bytes);
    for (int k = 0; k <= PM_MOSAIC_OTHERS; k++) {
        const struct place p = place_of(&c, in[k].picture, k, input);

        paint(&c, in[k].picture, p);
        for (size_t i = 0; i < in[k].objects; i++)
            add_object(cfg, &c, p, &in[k], i, from, &l);
        from += in[k].objects;
    }
    *picture = (struct pm_image8){ c.height, c.width, c.channels, c.pixels };
    *out = (struct pm_sample){ .picture = picture, .objects = l.count, .boxes = l.boxes,
                               .rotated = l.rotated, .masks = l.masks, .keypoints = l.keypoints,
                               .points = in[0].points, .mirrored = in[0].mirrored,
                               .labels = l.labels, .weights = l.weights,
                               .mask_weights = l.mask_weights, .scores = l.scores,
                               .score_count = in[0].score_count, .from = l.from };
}
