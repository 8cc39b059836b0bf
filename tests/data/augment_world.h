/* Shared by the tests of rows that change objects: a scene with a list of rows, and a reference of
 * windows, dropped and clipped objects in double precision. Pictures hold their own coordinates, so
 * each pixel shows where it came from. */
#ifndef PUMICE_TESTS_AUGMENT_WORLD_H
#define PUMICE_TESTS_AUGMENT_WORLD_H

#include "preprocessing_common.h"

enum { HEIGHT = 60, WIDTH = 80, MOST = 9, POINTS = 3, SCORES = 2, EXAMPLES = 400 };

struct scene {
    struct pm_arena *arena;
    struct list list;
    struct config c;
    struct pm_input input;
    uint8_t pixels[HEIGHT * WIDTH * 3];
    struct pm_image8 im;
    float boxes[MOST * 4], points[MOST * POINTS * 2], scores[MOST * SCORES], weights[MOST];
    int32_t labels[MOST];
    struct pm_sample sample, out;
    struct pm_placed placed;
};

static inline void open_scene(struct scene *s, const char *list)
{
    static const int sides[POINTS] = { 1, 0, 2 };

    memset(s, 0, sizeof *s);
    s->c = config("ssd", "resizer=pad_to_multiple");
    s->arena = pm_arena_create();
    s->list = open_list(list);
    s->input = (struct pm_input){ s->c.row, s->c.cfg, s->list.augment };
    s->im = (struct pm_image8){ HEIGHT, WIDTH, 3, s->pixels };
    for (int i = 0; i < HEIGHT * WIDTH; i++) {
        s->pixels[3 * i] = (uint8_t)(i / WIDTH);
        s->pixels[3 * i + 1] = (uint8_t)(i % WIDTH);
        s->pixels[3 * i + 2] = 200;
    }
    s->sample = (struct pm_sample){ .picture = &s->im, .boxes = s->boxes, .keypoints = s->points,
                                    .points = POINTS, .mirrored = sides, .labels = s->labels,
                                    .weights = s->weights, .scores = s->scores,
                                    .score_count = SCORES };
}

static inline void close_scene(struct scene *s)
{
    close_list(&s->list);
    pm_arena_destroy(&s->arena);
    pm_arena_destroy(&s->c.arena);
}

static inline void fill_objects(struct scene *s, struct pm_rng *r, size_t count)
{
    s->sample.objects = count;
    for (size_t i = 0; i < count; i++) {
        float *b = s->boxes + 4 * i;

        for (int k = 0; k < 2; k++) {
            b[k] = (float)pm_rng_uniform(r) * 0.9f;
            b[2 + k] = b[k] + 0.05f + (float)pm_rng_uniform(r) * (0.95f - b[k]);
        }
        for (int k = 0; k < POINTS * 2; k++)
            s->points[POINTS * 2 * i + (size_t)k] = (float)pm_rng_uniform(r);
        s->labels[i] = (int32_t)i + 1;
        s->weights[i] = 0.5f + (float)i;
        for (int k = 0; k < SCORES; k++)
            s->scores[SCORES * i + (size_t)k] = (float)pm_rng_uniform(r);
    }
}

/* Places the scene; the input is large enough for every padding. */
static inline void place_scene(struct scene *s, uint32_t example)
{
    const struct pm_occasion o = { .height = 3 * HEIGHT, .width = 3 * WIDTH, .channels = 3,
                                   .train = true, .seed = 11, .step = 4, .example = example,
                                   .where = "x" };

    if (pm_place(&s->input, &s->sample, &o, &s->placed) < 0)
        fail_msg("%s", pm_error_text());
    pm_placed_objects(&s->placed, &s->sample, s->arena, &s->out);
}

/* The same with random objects, a function of seed and example. */
static inline void place_objects(struct scene *s, uint64_t seed, size_t count, uint32_t example)
{
    struct pm_rng r = pm_rng_make(seed, 2, 3, example);

    fill_objects(s, &r, count);
    place_scene(s, example);
}

/* ---- the reference --------------------------------------------------------------------------- */

/* One object in double precision; boxes are pixels of the original picture until `frame`. */
struct object {
    double box[4], points[POINTS * 2];
    size_t from;
};
struct world {
    struct object at[MOST];
    size_t count;
    double y, x, height, width; /* of the current picture, in pixels of the original */
    bool doubtful;              /* an object is so near to a threshold that rounding decides */
};

static inline void start(struct world *w, const struct scene *s)
{
    *w = (struct world){ .count = s->sample.objects, .height = HEIGHT, .width = WIDTH };
    for (size_t i = 0; i < w->count; i++) {
        w->at[i].from = i;
        for (int k = 0; k < 4; k++)
            w->at[i].box[k] = (double)s->boxes[4 * i + (size_t)k] * (k % 2 ? WIDTH : HEIGHT);
        for (int k = 0; k < POINTS * 2; k++)
            w->at[i].points[k] =
                (double)s->points[POINTS * 2 * i + (size_t)k] * (k % 2 ? WIDTH : HEIGHT);
    }
}

static inline double sides(const double *b)
{
    return fmax(b[2] - b[0], 0) * fmax(b[3] - b[1], 0);
}

/* The current picture becomes a window of itself, in whole pixels. */
static inline void enter(struct world *w, const int window[4])
{
    w->y += window[0], w->x += window[1], w->height = window[2], w->width = window[3];
}

static inline void keep(struct world *w, double overlap, bool clip)
{
    size_t kept = 0;
    const double y1 = w->y + w->height, x1 = w->x + w->width;

    for (size_t i = 0; i < w->count; i++) {
        struct object *o = &w->at[i];
        const double part[4] = { fmax(o->box[0], w->y), fmax(o->box[1], w->x),
                                 fmin(o->box[2], y1), fmin(o->box[3], x1) };
        const double share = sides(part) / sides(o->box);

        w->doubtful |= fabs(share - overlap) < 1e-4;
        if (share <= 0 || share < overlap)
            continue;
        if (clip) {
            memcpy(o->box, part, sizeof part);
            for (int k = 0; k < POINTS * 2; k += 2)
                if (o->points[k] < w->y || o->points[k] > y1 || o->points[k + 1] < w->x ||
                    o->points[k + 1] > x1)
                    o->points[k] = o->points[k + 1] = NAN;
        }
        w->at[kept++] = *o;
    }
    w->count = kept;
}

static inline void near(const char *what, double have, double want)
{
    if (isnan(want) ? !isnan(have) : !(fabs(have - want) <= 64 * ulp))
        fail_msg("%s: %.9g, expected %.9g", what, have, want);
}

/* Compares the objects, in shares of the padded input, and every pixel of the picture. */
static inline void compare(const struct scene *s, const struct world *w)
{
    const struct pm_sample *out = &s->out;

    assert_int_equal(out->objects, w->count);
    for (size_t i = 0; i < w->count; i++) {
        const struct object *o = &w->at[i];

        assert_int_equal(out->from[i], o->from);
        assert_int_equal(out->labels[i], s->labels[o->from]);
        assert_true(out->weights[i] == s->weights[o->from]);
        for (int k = 0; k < SCORES; k++)
            assert_true(out->scores[SCORES * i + (size_t)k] ==
                        s->scores[SCORES * o->from + (size_t)k]);
        for (int k = 0; k < 4; k++)
            near("box", out->boxes[4 * i + (size_t)k],
                 (o->box[k] - (k % 2 ? w->x : w->y)) / (3 * (k % 2 ? WIDTH : HEIGHT)));
        for (int k = 0; k < POINTS * 2; k++)
            near("keypoint", out->keypoints[POINTS * 2 * i + (size_t)k],
                 (o->points[k] - (k % 2 ? w->x : w->y)) / (3 * (k % 2 ? WIDTH : HEIGHT)));
    }
}

/* shown: the part of the picture that crops have left; the rest of w is padding, 0..255 in red,
 * green, blue. */
static inline void compare_picture(const struct scene *s, const struct world *w,
                                   const struct world *shown, const double pad[3])
{
    static float out[9 * HEIGHT * WIDTH * 3];

    pm_placed_picture(&s->placed, &s->im, out);
    for (int y = 0; y < 3 * HEIGHT; y++)
        for (int x = 0; x < 3 * WIDTH; x++) {
            const double sy = y + w->y, sx = x + w->x;
            const bool in_window = y < w->height && x < w->width;
            const bool inside = sy >= shown->y && sx >= shown->x &&
                                sy < shown->y + shown->height && sx < shown->x + shown->width;
            const double colors[3] = { inside ? sy : pad[0], inside ? sx : pad[1],
                                       inside ? 200 : pad[2] };

            for (int c = 0; c < 3; c++) {
                const float have = out[(y * 3 * WIDTH + x) * 3 + c];
                const double want = in_window ? colors[c] * 2 / 255 - 1 : 0;

                if (!(fabs((double)have - want) < 1e-5))
                    fail_msg("pixel %d, %d: %g, expected %g", y, x, (double)have, want);
            }
        }
}

#endif
