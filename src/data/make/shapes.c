/* shapes: the built-in data, drawn pictures for all three tasks. A picture shows one to three
 * shapes of one class (disc, box, triangle, ring) with random size, rotation, colour and place.
 * Shapes do not touch each other. The background is soft noise, stripes or checks.
 *
 * A shape is its signed distance: a pixel's coverage is 0.5 - distance, clamped, which smooths the
 * edges. Besides the picture, records hold the labels of each task:
 *     image/class/label, text               0 disc, 1 box, 2 triangle, 3 ring
 *     image/segmentation/class/encoded      grey PNG, 0 background, class + 1 elsewhere
 *     image/segmentation/instance/encoded   1000 (class + 1) + the shape's number from 1; else 0
 *     image/object/bbox/xmin and so on      0..1
 *     image/object/class/label, text        class + 1 (0 is the background there)
 *     image/object/mask                     one grey PNG per object, 0 and 1
 * Picture i of a split is a function of (seed, split, size, i). */
#include <math.h>
#include <string.h>

#include <pumice/data.h>

#include "base/angles.h"
#include "data/make/drawn.h"
#include "data/make/ground.h"

enum { DISC, BOX, TRIANGLE, RING, CLASSES, MOST_OBJECTS = 3, LEAST_SIZE = 16, MOST_SIZE = 1024 };

static const char *const names[CLASSES] = { "disc", "box", "triangle", "ring" };
static const char *const map_names[CLASSES + 1] = { "ground", "disc", "box", "triangle", "ring" };

struct shape {
    int kind, edges;
    float x, y, radius;         /* centre and outer radius in pixels */
    float hole;                 /* ring: half of its line width */
    float stretch_x, stretch_y; /* disc, ring: stretch of the axes */
    float turn_cos, turn_sin;
    float nx[4], ny[4], d[4];    /* box, triangle: half planes nx * x + ny * y <= d */
    struct pm_colour colour, other; /* gradient from one side to the other */
};

struct object {
    int x0, y0, x1, y1; /* pixels covered at least half; x1 and y1 are exclusive */
};

/* ---- shapes --------------------------------------------------------------------------------- */

/* Sets the half planes of the polygon with these corners, counter-clockwise around the origin. */
static void polygon(struct shape *s, const float (*corner)[2], int count)
{
    s->edges = count;
    for (int i = 0; i < count; i++) {
        const float *p = corner[i], *q = corner[(i + 1) % count];
        const float ex = q[0] - p[0], ey = q[1] - p[1], length = sqrtf(ex * ex + ey * ey);
        s->nx[i] = ey / length;
        s->ny[i] = -ex / length;
        s->d[i] = s->nx[i] * p[0] + s->ny[i] * p[1];
    }
}

static void random_corners(struct pm_rng *r, struct shape *s)
{
    float corner[4][2], angle[4];
    const float turn = pm_draw_uniform(r, 0, 6.2831853f);

    if (s->kind == BOX) {
        const float half = pm_draw_uniform(r, 0.55f, 1.0f); /* half the angle between two corners */
        const float angles[4] = { half, (float)PM_PI - half, (float)PM_PI + half, -half };
        memcpy(angle, angles, sizeof angle);
    } else {
        for (int i = 0; i < 3; i++)
            angle[i] = 2.0943951f * (float)i + pm_draw_uniform(r, -0.3f, 0.3f);
    }
    const int count = s->kind == BOX ? 4 : 3;
    for (int i = 0; i < count; i++) {
        corner[i][0] = s->radius * cosf(angle[i] + turn);
        corner[i][1] = s->radius * sinf(angle[i] + turn);
    }
    polygon(s, corner, count);
}

static struct shape random_shape(struct pm_rng *r, int kind, float radius,
                                 const struct pm_ground *g)
{
    struct shape s = { .kind = kind, .radius = radius };
    const float turn = pm_draw_uniform(r, 0, 6.2831853f), flat = pm_draw_uniform(r, 0.75f, 1);

    s.turn_cos = cosf(turn);
    s.turn_sin = sinf(turn);
    s.stretch_x = 1;
    s.stretch_y = flat;
    s.hole = radius * pm_draw_uniform(r, 0.12f, 0.22f);
    random_corners(r, &s);
    s.colour = pm_ground_ink(r, g);
    s.other = pm_colour_near(r, s.colour, 0.15f);
    return s;
}

/* Returns the signed distance in pixels from the edge, negative inside. (x, y): relative to the
 * centre. For an ellipse it is the first-order distance, which is accurate near the edge. */
static float distance(const struct shape *s, float x, float y)
{
    if (s->kind == DISC || s->kind == RING) {
        const float outer = s->kind == RING ? s->radius - s->hole : s->radius;
        const float u = (x * s->turn_cos + y * s->turn_sin) / (outer * s->stretch_x);
        const float v = (y * s->turn_cos - x * s->turn_sin) / (outer * s->stretch_y);
        const float k = sqrtf(u * u + v * v);
        const float gx = u / (outer * s->stretch_x), gy = v / (outer * s->stretch_y);
        const float slope = sqrtf(gx * gx + gy * gy);
        const float d = k < 0.1f ? -outer * s->stretch_y * (1 - k) : (k - 1) * k / slope;
        return s->kind == RING ? fabsf(d) - s->hole : d;
    }
    float most = -INFINITY;
    for (int i = 0; i < s->edges; i++)
        most = fmaxf(most, s->nx[i] * x + s->ny[i] * y - s->d[i]);
    return most;
}

static struct object draw_shape(const struct shape *s, int size, float *rgb, uint8_t *mask,
                                uint8_t value)
{
    struct object o = { size, size, 0, 0 };

    for (int y = 0; y < size; y++)
        for (int x = 0; x < size; x++) {
            const float dx = (float)x + 0.5f - s->x, dy = (float)y + 0.5f - s->y;
            const float cover = pm_clamp01(0.5f - distance(s, dx, dy));
            const float t =
                pm_clamp01(0.5f + 0.5f * (dx * s->turn_cos + dy * s->turn_sin) / s->radius);
            float *p = rgb + 3 * (y * size + x);
            if (cover == 0)
                continue;
            for (int c = 0; c < 3; c++) {
                const float ink = s->colour.c[c] + (s->other.c[c] - s->colour.c[c]) * t;
                p[c] += (ink - p[c]) * cover;
            }
            if (cover < 0.5f)
                continue;
            mask[y * size + x] = value;
            o.x0 = x < o.x0 ? x : o.x0;
            o.y0 = y < o.y0 ? y : o.y0;
            o.x1 = x >= o.x1 ? x + 1 : o.x1;
            o.y1 = y >= o.y1 ? y + 1 : o.y1;
        }
    return o;
}

/* Places up to `wanted` shapes, at least one, whose circles do not touch. */
static int place(struct pm_rng *r, int kind, int wanted, int size, const struct pm_ground *g,
                 struct shape *out)
{
    int count = 0;

    for (int tries = 0; count < wanted && tries < 40; tries++) {
        const float most = wanted == 1 ? 0.42f : wanted == 2 ? 0.27f : 0.22f;
        const float radius = pm_draw_uniform(r, 0.15f, most) * (float)size;
        struct shape s = random_shape(r, kind, radius, g);
        s.x = pm_draw_uniform(r, radius, (float)size - radius);
        s.y = pm_draw_uniform(r, radius, (float)size - radius);
        bool free = true;
        for (int i = 0; i < count; i++)
            free &= hypotf(s.x - out[i].x, s.y - out[i].y) > s.radius + out[i].radius + 1;
        if (free)
            out[count++] = s;
    }
    return count;
}

/* ---- records -------------------------------------------------------------------------------- */

static int add_png(struct pm_example_builder *b, const char *key, uint8_t *pixels, int size,
                   int channels)
{
    const struct pm_image8 im = { size, size, channels, pixels };
    uint8_t *png = NULL;
    size_t bytes = 0;
    const int err = pm_image_encode_png(&im, &png, &bytes);

    if (err == PM_OK)
        pm_example_add_bytes(b, key, png, bytes);
    pm_free(png);
    return err;
}

static int add_objects(struct pm_example_builder *b, int kind, const struct object *o, int count,
                       const uint8_t *mask, int size)
{
    int err = PM_OK;
    float box[4][MOST_OBJECTS];
    int64_t label[MOST_OBJECTS];
    const size_t pixels = (size_t)size * (size_t)size, n = (size_t)count;
    uint8_t *one = pm_malloc(pixels);

    for (int i = 0; i < count; i++) {
        box[0][i] = (float)o[i].y0 / (float)size;
        box[1][i] = (float)o[i].x0 / (float)size;
        box[2][i] = (float)o[i].y1 / (float)size;
        box[3][i] = (float)o[i].x1 / (float)size;
        label[i] = kind + 1;
    }
    pm_example_add_floats(b, "image/object/bbox/ymin", box[0], n);
    pm_example_add_floats(b, "image/object/bbox/xmin", box[1], n);
    pm_example_add_floats(b, "image/object/bbox/ymax", box[2], n);
    pm_example_add_floats(b, "image/object/bbox/xmax", box[3], n);
    pm_example_add_ints(b, "image/object/class/label", label, n);
    for (int i = 0; i < count; i++)
        pm_example_add_bytes(b, "image/object/class/text", names[kind], strlen(names[kind]));
    for (int i = 0; i < count; i++) {
        for (size_t k = 0; k < pixels; k++)
            one[k] = mask[k] == i + 1;
        PM_TRY(add_png(b, "image/object/mask", one, size, 1));
    }
out:
    pm_free(one);
    return err;
}

/* mask: the shapes' numbers; overwritten with the classes. */
static int add_maps(struct pm_example_builder *b, int kind, uint8_t *mask, int size)
{
    const size_t pixels = (size_t)size * (size_t)size;
    struct pm_label instances = { size, size, pm_malloc(pixels * sizeof *instances.values) };
    int err = PM_OK;

    for (size_t k = 0; k < pixels; k++) {
        instances.values[k] = (uint16_t)(mask[k] ? 1000 * (kind + 1) + mask[k] : 0);
        mask[k] = mask[k] ? (uint8_t)(kind + 1) : 0;
    }
    PM_TRY(add_png(b, "image/segmentation/class/encoded", mask, size, 1));
    pm_example_add_bytes(b, "image/segmentation/class/format", "png", 3);
    PM_TRY(pm_making_instances(b, &instances, 1000, "shapes"));
out:
    pm_label_free(&instances);
    return err;
}

static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    int err = PM_OK;
    const struct pm_drawn_split *s = ctx;
    const int size = s->size, pixels = size * size;
    struct pm_rng r = pm_rng_make(s->seed, pm_hash(s->name), (uint32_t)size, (uint32_t)i);
    const int kind = (int)pm_rng_int(&r, 0, CLASSES - 1);
    const int wanted = (int)pm_rng_int(&r, 1, MOST_OBJECTS);
    const struct pm_ground g = pm_ground_random(&r, size);
    struct shape shape[MOST_OBJECTS];
    struct object object[MOST_OBJECTS];
    const int64_t label = kind, side = size;
    float *rgb = pm_malloc((size_t)pixels * 3 * sizeof *rgb);
    uint8_t *picture = pm_malloc((size_t)pixels * 3), *mask = pm_calloc((size_t)pixels, 1);
    char name[64];

    pm_ground_draw(&g, &r, size, size, rgb);
    const int count = place(&r, kind, wanted, size, &g, shape);
    for (int k = 0; k < count; k++)
        object[k] = draw_shape(&shape[k], size, rgb, mask, (uint8_t)(k + 1));
    for (int k = 0; k < 3 * pixels; k++)
        picture[k] = (uint8_t)(pm_clamp01(rgb[k]) * 255 + 0.5f);
    snprintf(name, sizeof name, "%s_%06zu.png", s->name, i);
    PM_TRY(add_png(b, "image/encoded", picture, size, 3));
    pm_example_add_bytes(b, "image/format", "png", 3);
    pm_example_add_bytes(b, "image/filename", name, strlen(name));
    pm_example_add_ints(b, "image/height", &side, 1);
    pm_example_add_ints(b, "image/width", &side, 1);
    pm_example_add_ints(b, "image/class/label", &label, 1);
    pm_example_add_bytes(b, "image/class/text", names[kind], strlen(names[kind]));
    PM_TRY(add_objects(b, kind, object, count, mask, size));
    PM_TRY(add_maps(b, kind, mask, size));
    err = 1;
out:
    pm_free(rgb);
    pm_free(picture);
    pm_free(mask);
    return err;
}

/* ---- the data folder ------------------------------------------------------------------------ */

static int describe(struct pm_making *m)
{
    int err = PM_OK;

    PM_TRY(pm_making_labels(m, names, CLASSES));
    PM_TRY(pm_making_map_labels(m, map_names, CLASSES + 1));
    pm_making_segmentation(m, 255, NULL);
    pm_making_things(m, (const int[]){ 1, 2, 3, 4 }, CLASSES);
out:
    return err;
}

static const struct pm_drawn drawn = {
    .name = "shapes", .least = LEAST_SIZE, .most = MOST_SIZE, .describe = describe, .fill = fill,
};

int pm_shapes_make(const char *dst, int size, size_t train, size_t validation, size_t test,
                   uint64_t seed)
{
    return pm_drawn_make(&drawn, dst, &(struct pm_drawn_cfg){
                             .size = size, .train = (int)train, .validation = (int)validation,
                             .test = (int)test, .seed = (int64_t)seed });
}

static const struct pm_opt opts[] = PM_DRAWN_OPTS(64, LEAST_SIZE, MOST_SIZE);

static int make(const void *options, const char *dst)
{
    return pm_drawn_make(&drawn, dst, options);
}

const struct pm_maker pm_maker_shapes = {
    .name = "shapes",
    .help = "discs, boxes, triangles and rings with labels, label maps, instances and boxes",
    .opts = opts, .cfg_size = sizeof(struct pm_drawn_cfg), .make = make,
};
