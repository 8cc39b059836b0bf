/* bars: the built-in data with rotated boxes. A picture shows one to six bars, which are 2 to 6
 * times as long as wide, turned by any angle, and do not overlap. Records hold the picture and for
 * each bar a rotated and an upright box of the class bar. Picture i of a split is a function of
 * (seed, split, size, i). */
#include <math.h>
#include <string.h>

#include <pumice/objects.h>

#include "data/make/drawn.h"
#include "data/make/ground.h"
#include "data/rotated_box.h"

enum { MOST_BARS = 6, LEAST_SIZE = 32, MOST_SIZE = 1024 };

static const struct pm_label_item item = { .id = 1, .name = "bar" };
static const struct pm_label_map map = { &item, 1 };

/* A bar inside the picture. Its sides are shares of the picture's. */
static struct pm_rectangle random_bar(struct pm_rng *r, int size)
{
    struct pm_rectangle bar = { .w = (double)pm_draw_uniform(r, 0.25f, 0.6f) * size };
    double around[4];

    bar.h = bar.w / (double)pm_draw_uniform(r, 2, 6);
    bar.angle = (double)pm_draw_uniform(r, -1.5707963f, 1.5707963f);
    pm_rectangle_around(&bar, around);
    const double room_y = size - 2 * around[2], room_x = size - 2 * around[3];
    bar.cy = around[2] + room_y * pm_rng_uniform(r);
    bar.cx = around[3] + room_x * pm_rng_uniform(r);
    return bar;
}

/* Whether a line along an axis of a separates the two, with a gap of a pixel. */
static bool are_apart(const struct pm_rectangle *a, const struct pm_rectangle *b)
{
    const double c = cos(a->angle), s = sin(a->angle), gap = 1;
    double corner[PM_CORNERS][2], least[2] = { INFINITY, INFINITY };
    double most[2] = { -INFINITY, -INFINITY };

    pm_rectangle_corners(b, corner);
    for (int k = 0; k < PM_CORNERS; k++) {
        const double y = corner[k][0] - a->cy, x = corner[k][1] - a->cx;
        const double at[2] = { x * c + y * s, y * c - x * s };

        for (int i = 0; i < 2; i++) {
            least[i] = fmin(least[i], at[i]);
            most[i] = fmax(most[i], at[i]);
        }
    }
    return least[0] > a->w / 2 + gap || most[0] < -a->w / 2 - gap ||
           least[1] > a->h / 2 + gap || most[1] < -a->h / 2 - gap;
}

static int place(struct pm_rng *r, int wanted, int size, struct pm_rectangle *out)
{
    int count = 0;

    for (int tries = 0; count < wanted && tries < 60; tries++) {
        const struct pm_rectangle bar = random_bar(r, size);
        bool free = true;

        for (int i = 0; i < count; i++)
            free &= are_apart(&bar, &out[i]) || are_apart(&out[i], &bar);
        if (free)
            out[count++] = bar;
    }
    return count;
}

/* A pixel's coverage is 0.5 - its distance from the edge, clamped, which smooths the edges. */
static void draw_bar(const struct pm_rectangle *bar, struct pm_colour ink,
                     struct pm_colour other, int size, float *rgb)
{
    const double c = cos(bar->angle), s = sin(bar->angle);

    for (int y = 0; y < size; y++)
        for (int x = 0; x < size; x++, rgb += 3) {
            const double dy = y + 0.5 - bar->cy, dx = x + 0.5 - bar->cx;
            const double u = dx * c + dy * s, v = dy * c - dx * s;
            const double distance = fmax(fabs(u) - bar->w / 2, fabs(v) - bar->h / 2);
            const float cover = pm_clamp01(0.5f - (float)distance);
            const float t = pm_clamp01((float)(u / bar->w + 0.5));

            for (int k = 0; k < 3; k++) {
                const float color = ink.c[k] + (other.c[k] - ink.c[k]) * t;

                rgb[k] += (color - rgb[k]) * cover;
            }
        }
}

static void add_bars(struct pm_example_builder *b, const struct pm_rectangle *bar, int count,
                     int size)
{
    struct pm_objects o;

    pm_objects_start(&o, size, size);
    o.has = PM_HAS_TEXT | PM_HAS_LABEL | PM_HAS_ROTATED;
    for (int i = 0; i < count; i++) {
        struct pm_object *one = pm_objects_add(&o);
        double around[4];

        one->text = item.name;
        one->label = item.id;
        pm_rectangle_to_box(&bar[i], size, size, one->rotated);
        pm_rectangle_around(&bar[i], around);
        for (int k = 0; k < 4; k++)
            one->box[k] = (float)fmin(fmax(around[k] / size, 0), 1);
    }
    pm_objects_write(&o, b);
    pm_objects_free(&o);
}

static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    int err = PM_OK;
    const struct pm_drawn_split *s = ctx;
    const int size = s->size;
    const size_t values = (size_t)size * (size_t)size * 3;
    struct pm_rng r = pm_rng_make(s->seed, pm_hash(s->name) ^ pm_hash("bars"), (uint32_t)size,
                                  (uint32_t)i);
    const struct pm_ground g = pm_ground_random(&r, size);
    struct pm_rectangle bar[MOST_BARS];
    const int count = place(&r, (int)pm_rng_int(&r, 1, MOST_BARS), size, bar);
    const int64_t side = size;
    float *rgb = pm_malloc(values * sizeof *rgb);
    struct pm_image8 im = { size, size, 3, pm_malloc(values) };
    uint8_t *png = NULL;
    size_t bytes = 0;
    char name[64];

    pm_ground_draw(&g, &r, size, size, rgb);
    for (int k = 0; k < count; k++) {
        const struct pm_colour ink = pm_ground_ink(&r, &g);

        draw_bar(&bar[k], ink, pm_colour_near(&r, ink, 0.15f), size, rgb);
    }
    for (size_t k = 0; k < values; k++)
        im.pixels[k] = (uint8_t)(pm_clamp01(rgb[k]) * 255 + 0.5f);
    snprintf(name, sizeof name, "%s_%06zu.png", s->name, i);
    PM_TRY(pm_image_encode_png(&im, &png, &bytes));
    pm_example_add_bytes(b, "image/encoded", png, bytes);
    pm_example_add_bytes(b, "image/format", "png", 3);
    pm_example_add_bytes(b, "image/filename", name, strlen(name));
    pm_example_add_ints(b, "image/height", &side, 1);
    pm_example_add_ints(b, "image/width", &side, 1);
    add_bars(b, bar, count, size);
    err = 1;
out:
    pm_free(png);
    pm_free(rgb);
    pm_image_free(&im);
    return err;
}

/* ---- the data folder ------------------------------------------------------------------------ */

static int describe(struct pm_making *m)
{
    pm_making_box_labels(m, &map);
    return PM_OK;
}

static const struct pm_drawn drawn = {
    .name = "bars", .least = LEAST_SIZE, .most = MOST_SIZE, .describe = describe, .fill = fill,
};

int pm_bars_make(const char *dst, int size, size_t train, size_t validation, size_t test,
                 uint64_t seed)
{
    return pm_drawn_make(&drawn, dst, &(struct pm_drawn_cfg){
                             .size = size, .train = (int)train, .validation = (int)validation,
                             .test = (int)test, .seed = (int64_t)seed });
}

static const struct pm_opt opts[] = PM_DRAWN_OPTS(PM_BARS_SIZE, LEAST_SIZE, MOST_SIZE);

static int make(const void *options, const char *dst)
{
    return pm_drawn_make(&drawn, dst, options);
}

const struct pm_maker pm_maker_bars = {
    .name = "bars",
    .help = "turned bars with rotated boxes",
    .opts = opts, .cfg_size = sizeof(struct pm_drawn_cfg), .make = make,
};
