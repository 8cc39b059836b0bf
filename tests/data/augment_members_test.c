/* Masks and keypoints through every row that moves pixels. Each object is a square of one colour,
 * so the picture shows where its mask must be, and its two keypoints are at known places of the
 * square. The picture is moved by code of its own. */
#include "preprocessing_common.h"

#include "data/coco_mask.h"

enum { HEIGHT = 40, WIDTH = 56, OBJECTS = 3, SQUARE = 9, POINTS = 2, INPUT = 128, EXAMPLES = 60 };

/* exact: pixels are moved and not interpolated, so that the colour says exactly where the object
 * is. names: left and right stay left and right. */
static const struct {
    const char *list;
    bool exact, names;
} lists[] = {
    { "{\"name\": \"random_flip\"}", true, true },
    { "{\"name\": \"random_vertical_flip\", \"keypoint_flip_permutation\": [0, 1]}", true, true },
    { "{\"name\": \"random_rotation90\"}", true, false },
    { "{\"name\": \"random_rotate\", \"fill\": 0, \"min_degrees\": -40}", false, true },
    { "{\"name\": \"random_rotate\", \"quarters\": true}", true, false },
    { "{\"name\": \"random_crop_image\", \"min_object_covered\": 0.3}", true, true },
    { "{\"name\": \"random_crop_pad_image\", \"pad_color\": [0]}", true, true },
    { "{\"name\": \"random_crop_to_aspect_ratio\"}", true, true },
    { "{\"name\": \"ssd_random_crop\"}", true, true },
    { "{\"name\": \"ssd_random_crop_pad\", \"operations\": [{\"pad_color\": [0]}]}", true, true },
    { "{\"name\": \"ssd_random_crop_fixed_aspect_ratio\"}", true, true },
    { "{\"name\": \"ssd_random_crop_pad_fixed_aspect_ratio\"}", true, true },
    { "{\"name\": \"random_box_crop\"}", true, true },
    { "{\"name\": \"random_crop\", \"padding\": 4}", true, true },
    { "{\"name\": \"random_pad_image\", \"pad_color\": [0]}", true, true },
    { "{\"name\": \"random_absolute_pad_image\", \"max_height_padding\": 20,"
      " \"max_width_padding\": 20, \"pad_color\": [0]}", true, true },
    { "{\"name\": \"pad\", \"top\": 5, \"right\": 9}", true, true },
    { "{\"name\": \"central_crop\", \"fraction\": 0.7}", true, true },
    { "{\"name\": \"crop_or_pad\"}", true, true },
    { "{\"name\": \"random_square_crop_by_scale\", \"max_border\": 8}", true, true },
    { "{\"name\": \"random_self_concat_image\", \"concat_vertical_probability\": 0.6,"
      " \"concat_horizontal_probability\": 0.6}", true, true },
    { "{\"name\": \"random_self_concat_image\", \"concat_vertical_probability\": 1},"
      " {\"name\": \"random_flip\"}, {\"name\": \"random_self_concat_image\","
      " \"concat_horizontal_probability\": 1}, {\"name\": \"random_crop_image\","
      " \"overlap_thresh\": 0}", true, true },
    { "{\"name\": \"autoaugment_image\", \"policy\": [[[\"Rotate_BBox\", 1, 6],"
      " [\"TranslateX_BBox\", 0.5, 1]], [[\"ShearY_BBox\", 1, 9], [\"ShearX_BBox\", 1, 9]]]}",
      true, true },
    { "{\"name\": \"random_flip\"}, {\"name\": \"autoaugment_image\", \"policy\":"
      " [[[\"Rotate_BBox\", 1, 9]]]}, {\"name\": \"random_rotation90\"}", true, false },
    { "{\"name\": \"random_resized_crop\", \"area_min\": 0.5}", false, true },
    { "{\"name\": \"random_side\", \"min\": 60, \"max\": 90}", false, true },
    { "{\"name\": \"random_scale\", \"min_scale\": 0.8}", false, true },
    { "{\"name\": \"resize\"}", false, true },
    { "{\"name\": \"resize_to_range\", \"min_resize\": 60}", false, true },
    { "{\"name\": \"random_resize_method\"}", false, true },
    { "{\"name\": \"random_downscale_to_target_pixels\", \"min_target_pixels\": 1500,"
      " \"max_target_pixels\": 2500}", false, true },
    { "{\"name\": \"random_scale_crop_and_pad_to_square\", \"output_size\": 70,"
      " \"scale_min\": 0.7}", false, true },
    { "{\"name\": \"letterbox\"}", false, true },
    { "{\"name\": \"random_jitter_boxes\"}, {\"name\": \"min_visible\"}", true, true },
};

struct scene {
    struct pm_arena *arena;
    struct config c;
    struct list list;
    struct pm_input input;
    struct pm_image8 im;
    uint8_t pixels[HEIGHT * WIDTH * 3], masks[OBJECTS * HEIGHT * WIDTH];
    float boxes[OBJECTS * 4], points[OBJECTS * POINTS * 2], mask_weights[OBJECTS];
    struct pm_runs runs[OBJECTS]; /* the masks; in the arena */
    struct pm_sample sample, out;
    struct pm_placed placed;
    float picture[INPUT * INPUT * 3];
};

static const int corner[OBJECTS][2] = { { 3, 5 }, { 14, 24 }, { 28, 44 } };

static void draw_scene(struct scene *s)
{
    static const int sides[POINTS] = { 1, 0 };

    s->im = (struct pm_image8){ HEIGHT, WIDTH, 3, s->pixels };
    for (int i = 0; i < OBJECTS; i++) {
        const int y = corner[i][0], x = corner[i][1];

        for (int k = 0; k < SQUARE * SQUARE; k++) {
            const int at = (y + k / SQUARE) * WIDTH + x + k % SQUARE;

            s->masks[i * HEIGHT * WIDTH + at] = 1;
            memset(s->pixels + 3 * at, 80 * (i + 1), 3);
        }
        for (int k = 0; k < 4; k++)
            s->boxes[4 * i + k] = (float)(corner[i][k % 2] + (k < 2 ? 0 : SQUARE)) /
                                  (float)(k % 2 ? WIDTH : HEIGHT);
        for (int k = 0; k < POINTS; k++) { /* beside the middle, left and right */
            s->points[(i * POINTS + k) * 2] = ((float)y + SQUARE / 2.0f) / HEIGHT;
            s->points[(i * POINTS + k) * 2 + 1] = ((float)(x + 3 + 3 * k)) / WIDTH;
        }
    }
    for (int i = 0; i < OBJECTS; i++) {
        struct pm_runs made;

        s->mask_weights[i] = (float)(i + 1) / 2;
        pm_runs_encode(s->masks + i * HEIGHT * WIDTH, HEIGHT, WIDTH, &made);
        s->runs[i] = pm_runs_copy(s->arena, &made);
        pm_runs_free(&made);
    }
    s->sample = (struct pm_sample){ .picture = &s->im, .objects = OBJECTS, .boxes = s->boxes,
                                    .masks = s->masks, .keypoints = s->points, .points = POINTS,
                                    .mirrored = sides, .mask_weights = s->mask_weights };
}

/* Masks keep the weights of their objects. */
static void compare_weights(const struct scene *s, const struct pm_sample *out)
{
    for (size_t i = 0; i < out->objects; i++)
        assert_true(out->mask_weights[i] == s->mask_weights[out->from[i] % OBJECTS]);
}

static void open_scene(struct scene *s, const char *list)
{
    char text[500];

    memset(s, 0, sizeof *s);
    s->c = config("ssd", "resizer=pad_to_multiple");
    s->arena = pm_arena_create();
    snprintf(text, sizeof text, "[%s]", list);
    s->list = open_list(text);
    s->input = (struct pm_input){ s->c.row, s->c.cfg, s->list.augment };
    draw_scene(s);
}

static void close_scene(struct scene *s)
{
    close_list(&s->list);
    pm_arena_destroy(&s->arena);
    pm_arena_destroy(&s->c.arena);
}

/* The sample with its masks as pixels, or in every second example as run lengths. */
static struct pm_sample sample_of(const struct scene *s, uint32_t example)
{
    struct pm_sample sample = s->sample;

    if (example % 2) {
        sample.masks = NULL;
        sample.runs = s->runs;
    }
    return sample;
}

static void place_scene(struct scene *s, uint32_t example)
{
    const struct pm_occasion o = { .height = INPUT, .width = INPUT, .channels = 3, .train = true,
                                   .seed = 3, .step = 8, .example = example, .where = "x" };

    const struct pm_sample sample = sample_of(s, example);

    if (pm_place(&s->input, &sample, &o, &s->placed) < 0)
        fail_msg("%s", pm_error_text());
    pm_placed_objects(&s->placed, &sample, s->arena, &s->out);
    compare_weights(s, &s->out);
    pm_placed_picture(&s->placed, &s->im, s->picture);
}

static bool in_mask(const struct scene *s, size_t i, int at)
{
    return s->out.masks[i * INPUT * INPUT + (size_t)at] != 0;
}

/* The object's colour is everywhere in its masks and nowhere else, unless a row dropped it. */
static void masks_are_colors(const struct scene *s, const char *list, uint32_t example)
{
    bool kept[OBJECTS] = { false };

    for (size_t i = 0; i < s->out.objects; i++)
        kept[s->out.from[i]] = true;
    for (int at = 0; at < INPUT * INPUT; at++) {
        const int color = (int)lrint(((double)s->picture[3 * at] + 1) * 127.5);
        int masks = 0;

        for (size_t i = 0; i < s->out.objects; i++) {
            if (!in_mask(s, i, at))
                continue;
            masks++;
            if (color != 80 * ((int)s->out.from[i] + 1))
                fail_msg("%s, example %u: colour %d in mask %zu", list, example, color, i);
        }
        if (masks > 1 || (masks == 0 && color % 80 == 0 && color > 0 && kept[color / 80 - 1]))
            fail_msg("%s, example %u: colour %d in %d masks", list, example, color, masks);
    }
}

/* The middle between an object's two keypoints is the middle of its mask, if all of it is visible.
 * scale: of a resize; a mask's border is rounded to a pixel on each side. */
static size_t points_are_in_masks(const struct scene *s, const char *list, bool names)
{
    size_t whole = 0;

    for (size_t i = 0; i < s->out.objects; i++) {
        const float *p = s->out.keypoints + 4 * i;
        const int height = pm_geometry_height(&s->placed.geometry);
        const int width = pm_geometry_width(&s->placed.geometry);
        double y = 0, x = 0, count = 0;
        bool touches = false;

        assert_true(height == INPUT && width == INPUT);
        for (int at = 0; at < INPUT * INPUT; at++)
            if (in_mask(s, i, at)) {
                const int row = at / INPUT, column = at % INPUT;

                y += row + 0.5, x += column + 0.5;
                count++;
                touches |= row == 0 || column == 0 || row == INPUT - 1 || column == INPUT - 1;
            }
        /* A crop before the input's padding cuts masks, too: those have fewer pixels. */
        const double side = hypot(((double)p[3] - (double)p[1]) * INPUT,
                                  ((double)p[2] - (double)p[0]) * INPUT) * SQUARE / 3;

        if (isnan(p[0]) || isnan(p[2]) || touches || count < 0.8 * side * side)
            continue;
        whole++;
        if (!(fabs(y / count - ((double)p[0] + (double)p[2]) / 2 * INPUT) < 1.5 &&
              fabs(x / count - ((double)p[1] + (double)p[3]) / 2 * INPUT) < 1.5))
            fail_msg("%s: mask of object %zu at %g, %g; keypoints at %g, %g and %g, %g", list, i,
                     y / count, x / count, (double)p[0] * INPUT, (double)p[1] * INPUT,
                     (double)p[2] * INPUT, (double)p[3] * INPUT);
        if (names)
            assert_true(p[1] < p[3]);
    }
    return whole;
}

static void every_row(void **state)
{
    (void)state;
    for (size_t k = 0; k < PM_COUNT(lists); k++) {
        static struct scene s;
        size_t whole = 0;

        open_scene(&s, lists[k].list);
        for (uint32_t i = 0; i < EXAMPLES; i++) {
            place_scene(&s, i);
            if (lists[k].exact)
                masks_are_colors(&s, lists[k].list, i);
            whole += points_are_in_masks(&s, lists[k].list, lists[k].names);
        }
        if (whole < EXAMPLES / 4)
            fail_msg("%s: only %zu objects are whole", lists[k].list, whole);
        close_scene(&s);
    }
}

/* Every row is in the list above, or moves no pixel. */
static void no_row_is_missing(void **state)
{
    size_t count;
    const struct pm_augmentation *const *all = pm_augmentations(&count);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        bool listed = false;
        char name[80];

        snprintf(name, sizeof name, "\"name\": \"%s\"", all[i]->name);
        for (size_t k = 0; k < PM_COUNT(lists); k++)
            listed |= strstr(lists[k].list, name) != NULL;
        if (!listed && all[i]->place)
            fail_msg("%s moves pixels and is not tested", all[i]->name);
        assert_true(!listed || (all[i]->carries & PM_CARRIES_MASKS));
    }
}

/* The copies' objects are where their pictures are; labels and weights are copied, too. */
static void self_concat(void **state)
{
    static struct scene s;
    static const float weights[OBJECTS] = { 1, 2, 0.5f };
    static const int32_t labels[OBJECTS] = { 3, 1, 4 };
    int kinds[4] = { 0 };

    (void)state;
    open_scene(&s, "{\"name\": \"random_self_concat_image\", \"concat_vertical_probability\": 0.3,"
                   " \"concat_horizontal_probability\": 0.6}");
    s.sample.weights = weights, s.sample.labels = labels;
    for (uint32_t n = 0; n < 1000; n++) {
        place_scene(&s, n);
        const struct pm_draws *d = s.placed.rows.draws;
        const int down = 1 + d->flip, across = 1 + d->grey;

        kinds[2 * d->flip + d->grey]++;
        assert_int_equal(s.out.objects, OBJECTS * down * across);
        for (size_t i = 0; i < s.out.objects; i++) {
            const int copy = (int)i / OBJECTS, from = (int)i % OBJECTS;
            const int at[2] = { copy % down, copy / down };

            assert_int_equal(s.out.from[i], from);
            assert_int_equal(s.out.labels[i], labels[from]);
            assert_true(s.out.weights[i] == weights[from]);
            for (int k = 0; k < 4; k++) {
                const int side = k % 2 ? WIDTH : HEIGHT;
                const double want = corner[from][k % 2] + (k < 2 ? 0 : SQUARE) + at[k % 2] * side;

                assert_true(fabs((double)s.out.boxes[4 * i + (size_t)k] * INPUT - want) < 1e-4);
            }
        }
    }
    const double share[4] = { 0.28, 0.42, 0.12, 0.18 };
    for (int k = 0; k < 4; k++)
        assert_true(fabs(kinds[k] - 1000 * share[k]) < 4 * sqrt(1000 * share[k] * (1 - share[k])));
    close_scene(&s);
}

/* Four pictures in one: their masks are where their colours are. */
static void mosaic(void **state)
{
    static struct scene s;

    (void)state;
    open_scene(&s, "{\"name\": \"mosaic\", \"fill\": 0}");
    for (uint32_t n = 0; n < EXAMPLES; n++) {
        const struct pm_sample one = sample_of(&s, n), in[4] = { one, one, one, one };
        struct pm_arena *a = pm_arena_create();
        struct pm_mosaic_draws d;
        struct pm_sample out;

        assert_true(pm_mosaic_draw(s.input.augment, 1, 2, n, 9, &d));
        /* The input has the picture's size, so the pictures keep theirs. */
        pm_mosaic_make(s.input.augment, &d, in, (struct pm_frame){ HEIGHT, WIDTH }, a, &out);
        compare_weights(&s, &out);
        for (int at = 0; at < 4 * HEIGHT * WIDTH; at++)
            for (size_t i = 0; i < out.objects; i++)
                if (out.masks[i * 4 * HEIGHT * WIDTH + (size_t)at])
                    assert_int_equal(out.picture->pixels[3 * at],
                                     80 * (out.from[i] % OBJECTS + 1));
        for (size_t i = 0; i < out.objects; i++) {
            const float *b = out.boxes + 4 * i;
            const double area = ((double)b[2] - (double)b[0]) * ((double)b[3] - (double)b[1]);
            size_t count = 0;

            for (int at = 0; at < 4 * HEIGHT * WIDTH; at++)
                count += out.masks[i * 4 * HEIGHT * WIDTH + (size_t)at];
            assert_true(fabs((double)count - area * 4 * HEIGHT * WIDTH) < 1e-2);
        }
        pm_arena_destroy(&a);
    }
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row),
        cmocka_unit_test(no_row_is_missing),
        cmocka_unit_test(self_concat),
        cmocka_unit_test(mosaic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
