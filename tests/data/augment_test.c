/* Lists of augmentations: they equal the named preprocessings that they spell out, random
 * numbers depend on the position, all members of a sample move together, and mistakes are
 * refused. */
#include "preprocessing_common.h"

enum { HEIGHT = 41, WIDTH = 57, SIDE = 32, VALUES = SIDE * SIDE * 3 };

/* A preprocessing with a list. The arena owns everything; the caller destroys it. */
struct listed {
    struct pm_input input;
    struct pm_arena *arena;
    cJSON *json;
};

static struct listed listed(const char *preprocessing, const char *options, const char *list)
{
    struct config c = config(preprocessing, options);
    struct listed out = { { c.row, c.cfg, NULL }, c.arena, cJSON_Parse(list) };

    assert_non_null(out.json);
    if (pm_augment_open(out.json, "x.json: input.augment", c.arena, &out.input.augment) < 0)
        fail_msg("%s", pm_error_text());
    return out;
}

static void unlist(struct listed *l)
{
    cJSON_Delete(l->json);
    pm_arena_destroy(&l->arena);
}

static void fill_picture(uint8_t *pixels, size_t count, uint32_t seed)
{
    struct pm_rng r = pm_rng_make(3, 2, 1, seed);

    for (size_t i = 0; i < count; i++)
        pixels[i] = (uint8_t)(pm_rng_u32(&r) >> 24);
}

static const struct pm_occasion occasion = {
    .height = SIDE,
    .width = SIDE,
    .channels = 3,
    .train = true,
    .seed = 5,
    .step = 6,
    .where = "picture",
};

/* ---- named preprocessings ---------------------------------------------------------------- */

#define DEEPLAB \
    "[{\"name\": \"random_scale\"}, {\"name\": \"random_crop\"}, {\"name\": \"random_flip\"}]"

static const struct {
    const char *name, *options, *list;
    double tolerance; /* 0: bit for bit */
} cases[] = {
    { "lenet", "", "[{\"name\": \"crop_or_pad\", \"fill\": 0}]", 0 },
    { "cifarnet", "padding=4",
      "[{\"name\": \"random_crop\", \"padding\": 4, \"fill\": 0}, {\"name\": \"random_flip\"},"
      " {\"name\": \"random_brightness\", \"max_delta\": 0.24705882352941178},"
      " {\"name\": \"random_contrast\", \"min\": 0.2, \"max\": 1.8}]",
      0 },
    { "vgg", "resize_side_min=32 resize_side_max=60",
      "[{\"name\": \"random_side\", \"min\": 32, \"max\": 60}, {\"name\": \"random_crop\"},"
      " {\"name\": \"random_flip\"}]",
      0 },
    { "torch", "", "[{\"name\": \"random_resized_crop\"}, {\"name\": \"random_flip\"}]", 0 },
    { "deeplab", "", DEEPLAB, 0 },
    { "deeplab_means_grey", "", DEEPLAB, 0 },
    { "deeplab_means", "min_resize=40 max_resize=48 resize_factor=8 min_scale=0.7 scale_step=0",
      "[{\"name\": \"resize_to_range\", \"min_resize\": 40, \"max_resize\": 48, \"resize_factor\": "
      "8},"
      " {\"name\": \"random_scale\", \"min_scale\": 0.7, \"scale_step\": 0}, {\"name\": "
      "\"random_crop\"},"
      " {\"name\": \"random_flip\"}]",
      0 },
    /* inception changes colours of values in 0..1, a list those of values in 0..255. */
    { "inception", "",
      "[{\"name\": \"random_box_crop\"}, {\"name\": \"resize\"}, {\"name\": \"random_flip\"},"
      " {\"name\": \"random_brightness\", \"max_delta\": 0.12549019607843137},"
      " {\"name\": \"random_saturation\"}, {\"name\": \"clip\"}]",
      1e-5 },
    { "inception", "fast_mode=false",
      "[{\"name\": \"random_box_crop\"}, {\"name\": \"resize\"}, {\"name\": \"random_flip\"},"
      " {\"name\": \"random_colors\", \"brightness\": 0.12549019607843137}, {\"name\": \"clip\"}]",
      1e-5 },
};

static void same_values(const char *name, const float *have, const float *want, size_t count,
                        double most)
{
    if (most == 0) {
        if (memcmp(have, want, count * sizeof *have) != 0)
            fail_msg("%s: the list gives other bits", name);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)have[i] - (double)want[i]) <= most))
            fail_msg("%s: %.9g, by name %.9g", name, (double)have[i], (double)want[i]);
}

static void equals_named(void **state)
{
    static uint8_t pixels[HEIGHT * WIDTH * 3];
    static uint16_t values[HEIGHT * WIDTH];
    static float have[VALUES], want[VALUES];
    static int32_t have_map[SIDE * SIDE], want_map[SIDE * SIDE];
    const struct pm_image8 im = { HEIGHT, WIDTH, 3, pixels };
    const struct pm_label map = { HEIGHT, WIDTH, values };
    const struct pm_sample sample = { .picture = &im, .label_map = &map };

    (void)state;
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        values[i] = (uint16_t)i;
    for (size_t k = 0; k < PM_COUNT(cases); k++) {
        struct listed l = listed(cases[k].name, cases[k].options, cases[k].list);

        for (uint32_t i = 0; i < 60; i++) {
            struct pm_rng r = pm_rng_make(5, pm_hash("augmentation"), 6, i);
            struct pm_draws draws[PM_MAX_AUGMENT];
            struct pm_placed by_name, by_list;
            const struct pm_scene scene = { HEIGHT, WIDTH, i, NULL, 0 };

            fill_picture(pixels, sizeof pixels, i);
            l.input.preprocessing->draw(l.input.cfg, &r, &scene, &draws[0]);
            if (cases[k].tolerance > 0)
                draws[0].resize_method = PM_RESIZE_BILINEAR; /* a list names one method */
            for (int n = 1; n < PM_MAX_AUGMENT; n++)
                draws[n] = draws[0];
            assert_int_equal(
                pm_place_with(l.input.preprocessing, l.input.cfg, draws, &im, &occasion, &by_name),
                PM_OK);
            assert_int_equal(pm_place_list(&l.input, draws, &sample, &occasion, &by_list), PM_OK);
            pm_placed_picture(&by_name, &im, want);
            pm_placed_picture(&by_list, &im, have);
            same_values(cases[k].name, have, want, VALUES, cases[k].tolerance);
            assert_int_equal(pm_placed_map(&by_name, &map, -1, want_map), PM_OK);
            assert_int_equal(pm_placed_map(&by_list, &map, -1, have_map), PM_OK);
            assert_memory_equal(have_map, want_map, sizeof want_map);
        }
        unlist(&l);
    }
}

/* ---- draws ------------------------------------------------------------------------------- */

static struct pm_draws draws_at(const struct listed *l, const struct pm_occasion *o, int position)
{
    static uint8_t pixels[HEIGHT * WIDTH * 3];
    const struct pm_image8 im = { HEIGHT, WIDTH, 3, pixels };
    const struct pm_sample sample = { .picture = &im };
    struct pm_placed placed;

    assert_int_equal(pm_place(&l->input, &sample, o, &placed), PM_OK);
    return placed.rows.draws[position];
}

/* A row's random numbers depend only on seed, step, example and position, not on the rows around
 * it. */
static void by_position(void **state)
{
    struct listed one = listed("cifarnet", "",
                               "[{\"name\": \"random_crop\"},"
                               " {\"name\": \"random_brightness\"}]");
    struct listed two = listed("cifarnet", "",
                               "[{\"name\": \"clip\"}, {\"name\": \"random_brightness\"},"
                               " {\"name\": \"random_brightness\"}, {\"name\": \"random_crop\"}]");
    struct pm_occasion o = occasion;
    const double first = draws_at(&one, &o, 1).brightness;

    (void)state;
    assert_true(first == draws_at(&one, &o, 1).brightness);
    assert_true(first == draws_at(&two, &o, 1).brightness);
    assert_true(first != draws_at(&two, &o, 2).brightness);
    assert_true(first != draws_at(&one, &o, 0).crop_y);
    o.seed++;
    assert_true(first != draws_at(&one, &o, 1).brightness);
    o = occasion, o.step++;
    assert_true(first != draws_at(&one, &o, 1).brightness);
    o = occasion, o.example++;
    assert_true(first != draws_at(&one, &o, 1).brightness);
    unlist(&one);
    unlist(&two);
}

/* ---- members ----------------------------------------------------------------------------- */

/* The smallest box around the object's pixels: top, left, bottom, right, in pixels. False when
 * there is no such pixel. */
static bool bounds(const uint8_t *mask, int box[4])
{
    box[0] = box[1] = SIDE, box[2] = box[3] = 0;
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            if (mask[y * SIDE + x]) {
                box[0] = y < box[0] ? y : box[0], box[1] = x < box[1] ? x : box[1];
                box[2] = y + 1 > box[2] ? y + 1 : box[2], box[3] = x + 1 > box[3] ? x + 1 : box[3];
            }
    return box[2] > 0;
}

static double held(float v)
{
    return SIDE * fmin(fmax((double)v, 0), 1);
}

/* A rectangle as picture, map, mask, box, and keypoints at its corners. After a list with every
 * kind of move they still mark the same place, within the precision of pixels. */
static void stay_together(void **state)
{
    static const int sides[2] = { 1, 0 };
    static uint8_t pixels[HEIGHT * WIDTH * 3], mask[HEIGHT * WIDTH];
    static uint16_t values[HEIGHT * WIDTH];
    static float picture[VALUES];
    static int32_t map[SIDE * SIDE];
    const float box[4] = { 12.0f / HEIGHT, 15.0f / WIDTH, 29.0f / HEIGHT, 40.0f / WIDTH };
    const float corners[4] = { box[0], box[1], box[0], box[3] };
    const struct pm_image8 im = { HEIGHT, WIDTH, 3, pixels };
    const struct pm_label label = { HEIGHT, WIDTH, values };
    const struct pm_sample sample = { .picture = &im,
                                      .label_map = &label,
                                      .objects = 1,
                                      .boxes = box,
                                      .masks = mask,
                                      .keypoints = corners,
                                      .points = 2,
                                      .mirrored = sides };
    struct listed l = listed(
        "deeplab_means", "",
        "[{\"name\": \"random_flip\"}, {\"name\": \"pad\", \"left\": 3, \"top\": 5},"
        " {\"name\": \"random_side\", \"min\": 50, \"max\": 90}, {\"name\": \"random_brightness\"},"
        " {\"name\": \"random_box_crop\", \"area_min\": 0.5}, {\"name\": \"random_scale\", "
        "\"min_scale\": 0.6,"
        " \"max_scale\": 1.1}, {\"name\": \"random_crop\", \"padding\": 2}]");
    int seen = 0, mirrored = 0;

    (void)state;
    for (int y = 12; y < 29; y++)
        for (int x = 15; x < 40; x++)
            values[y * WIDTH + x] = mask[y * WIDTH + x] = 1;
    for (int i = 0; i < HEIGHT * WIDTH * 3; i++)
        pixels[i] = (uint8_t)(200 * mask[i / 3]);
    for (uint32_t i = 0; i < 200; i++) {
        struct pm_occasion o = occasion;
        struct pm_placed placed;
        struct pm_sample out;
        int is[4];

        o.example = i;
        assert_int_equal(pm_place(&l.input, &sample, &o, &placed), PM_OK);
        pm_placed_objects(&placed, &sample, l.arena, &out);
        pm_placed_picture(&placed, &im, picture);
        assert_int_equal(pm_placed_map(&placed, &label, 9, map), PM_OK);
        mirrored += pm_geometry_is_mirrored(&placed.geometry);
        const float *left = out.keypoints, *right = out.keypoints + 2;
        assert_true(left[0] == out.boxes[0] && right[0] == out.boxes[0]);
        assert_true(left[1] == out.boxes[1] && right[1] == out.boxes[3]);
        for (int k = 0; k < SIDE * SIDE; k++)
            assert_true(out.masks[k] == (map[k] == 1));
        if (!bounds(out.masks, is))
            continue;
        seen++;
        for (int k = 0; k < 4; k++)
            if (fabs(held(out.boxes[k]) - is[k]) > 2.5)
                fail_msg("example %u: side %d of the box is at %g, of the mask at %d", i, k,
                         held(out.boxes[k]), is[k]);
        const int middle = (is[0] + is[2]) / 2 * SIDE + (is[1] + is[3]) / 2;
        if (is[2] - is[0] > 6 && is[3] - is[1] > 6)
            assert_true(map[middle] == 1 && picture[3 * middle] > 200 - 123.15 - 33);
    }
    assert_in_range(mirrored, 60, 140);
    assert_true(seen > 150);
    unlist(&l);
}

/* Rows after a colour row get its result. A net with grey input gets the grey picture at the
 * end. */
static void grey_input(void **state)
{
    static uint8_t pixels[HEIGHT * WIDTH * 3];
    static float grey[SIDE * SIDE], colour[VALUES];
    const struct pm_image8 im = { HEIGHT, WIDTH, 3, pixels };
    const struct pm_sample sample = { .picture = &im };
    struct listed l = listed("lenet", "",
                             "[{\"name\": \"random_flip\"}, {\"name\": \"random_brightness\"},"
                             " {\"name\": \"random_crop\"}, {\"name\": \"random_flip\"}]");
    struct pm_occasion o = occasion;
    struct pm_placed placed;

    (void)state;
    fill_picture(pixels, sizeof pixels, 1);
    for (o.example = 0; o.example < 20; o.example++) {
        o.channels = 3;
        assert_int_equal(pm_place(&l.input, &sample, &o, &placed), PM_OK);
        pm_placed_picture(&placed, &im, colour);
        o.channels = 1;
        assert_int_equal(pm_place(&l.input, &sample, &o, &placed), PM_OK);
        pm_placed_picture(&placed, &im, grey);
        for (int i = 0; i < SIDE * SIDE; i++) {
            const float *c = colour + 3 * i;
            /* The weights sum to 0.9999: -1 in each channel becomes -0.9999. */
            const double want = 0.2989 * c[0] + 0.5870 * c[1] + 0.1140 * c[2] - 0.0001;
            assert_true(fabs(grey[i] - want) < 2e-5);
        }
    }
    unlist(&l);
}

/* ---- errors -------------------------------------------------------------------------------- */

static void refuse(const char *list, const char *message)
{
    struct pm_arena *a = pm_arena_create();
    cJSON *json = cJSON_Parse(list);
    const struct pm_augment *out;
    int err = pm_augment_open(json, "x.json: input.augment", a, &out);

    if (err == PM_OK)
        err = pm_augment_check(out, PM_CARRIES_MAPS, false, "x.json: input.augment");
    if (err != PM_ECONFIG || !strstr(pm_error_text(), message))
        fail_msg("%s: \"%s\" is not in: %s", list, message, err < 0 ? pm_error_text() : "no error");
    cJSON_Delete(json);
    pm_arena_destroy(&a);
}

static void refusals(void **state)
{
    static const struct pm_augmentation picture_only = {
        .name = "picture_only",
        .carries = PM_CARRIES_BOXES | PM_CARRIES_MASKS,
    };
    const struct pm_augment list = { .count = 1, .entry = { { &picture_only, NULL } } };
    static uint8_t pixels[HEIGHT * WIDTH * 3];
    const struct pm_image8 im = { HEIGHT, WIDTH, 3, pixels };
    const struct pm_sample sample = { .picture = &im };
    struct pm_placed placed;

    (void)state;
    refuse("{}", "input.augment: a list");
    refuse("[3]", "input.augment.0: an object");
    refuse("[{\"name\": \"random_flop\"}]",
           "input.augment.0.name: 'random_flop' is no augmentation");
    refuse("[{\"name\": \"random_flip\", \"probability\": 2}]",
           "input.augment.0.probability: 2 is outside 0..1");
    refuse("[{\"name\": \"random_flip\"}, {\"name\": \"random_contrast\", \"min\": 2, \"max\": 1}]",
           "input.augment.1.min: 2 is above x.json: input.augment.1.max, 1");
    refuse("[{\"name\": \"random_crop\", \"fill\": [1, 2]}]", "input.augment.0.fill: 2 numbers");
    refuse(
        "[{\"name\": \"random_crop\"}, {\"name\": \"random_scale\"}, {\"name\": \"random_flip\"}]",
        "input.augment.1: after random_scale the picture does not have the input's size");
    assert_int_equal(pm_augment_check(&list, 0, false, "x"), PM_OK);
    assert_int_equal(pm_augment_check(&list, PM_CARRIES_MASKS, false, "x"), PM_OK);
    assert_int_equal(pm_augment_check(&list, PM_CARRIES_MAPS, false, "x.json: input.augment"),
                     PM_ECONFIG);
    assert_non_null(
        strstr(pm_error_text(),
               "x.json: input.augment.0: picture_only does not transform maps of labels"));
    assert_int_equal(pm_augment_check(&list, PM_CARRIES_KEYPOINTS, false, "x"), PM_ECONFIG);
    struct listed l = listed("lenet", "", "[{\"name\": \"random_flip\"}]");
    assert_fails(pm_place(&l.input, &sample, &occasion, &placed), PM_EDATA, "picture", "41 x 57",
                 "32 x 32", "add random_crop");
    unlist(&l);
}

/* A thin picture: no crop of the rule fits, and the nearest allowed shape is less than a pixel
 * wide. A long picture: enlarging its smaller side would need gigabytes. */
static void thin_pictures(void **state)
{
    static uint8_t thin[20 * 3], row[60000 * 3];
    static float out[VALUES];
    const struct pm_image8 im = { 1, 20, 3, thin }, line = { 1, 60000, 3, row };
    const struct pm_sample sample = { .picture = &im }, long_sample = { .picture = &line };
    struct listed l =
        listed("lenet", "",
               "[{\"name\": \"random_brightness\"}, {\"name\": \"random_resized_crop\","
               " \"aspect_min\": 0.3, \"aspect_max\": 0.4, \"method\": \"nearest\"}]");
    struct pm_occasion o = occasion;
    struct pm_placed placed;

    (void)state;
    o.channels = 3;
    assert_int_equal(pm_place(&l.input, &sample, &o, &placed), PM_OK);
    pm_placed_picture(&placed, &im, out);
    for (int i = 0; i < VALUES; i++)
        assert_true(isfinite(out[i]));
    unlist(&l);
    l = listed("lenet", "", "[{\"name\": \"random_side\"}, {\"name\": \"random_crop\"}]");
    assert_fails(pm_place(&l.input, &long_sample, &o, &placed), PM_EDATA,
                 "would resize the picture", "crop before resizing");
    unlist(&l);
}

/* Rows that do nothing without options have no valid defaults. */
static bool needs_options(const struct pm_augmentation *row)
{
    return !strcmp(row->name, "drop_label_probabilistically") || !strcmp(row->name, "remap_labels");
}

/* Every row has a unique name, help, and options whose defaults are valid. */
static void rows(void **state)
{
    size_t count;
    const struct pm_augmentation *const *all = pm_augmentations(&count);

    (void)state;
    assert_int_equal(count, 49);
    for (size_t i = 0; i < count; i++) {
        struct pm_arena *a = pm_arena_create();
        void *cfg = pm_arena_alloc(a, all[i]->cfg_size + 1);

        assert_ptr_equal(pm_augmentation_find(all[i]->name), all[i]);
        assert_true(strlen(all[i]->help) > 10);
        assert_true(all[i]->place || all[i]->values || all[i]->objects ||
                    all[i]->others);
        if (all[i]->opts)
            pm_opts_defaults(all[i]->opts, cfg, a);
        if (all[i]->prepare)
            assert_int_equal(all[i]->prepare(cfg, a, "x"), PM_OK);
        if (all[i]->check && !needs_options(all[i]))
            assert_int_equal(all[i]->check(cfg, "x"), PM_OK);
        pm_arena_destroy(&a);
    }
    assert_null(pm_augmentation_find("nothing"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_named),  cmocka_unit_test(by_position),
        cmocka_unit_test(stay_together), cmocka_unit_test(grey_input),
        cmocka_unit_test(refusals),      cmocka_unit_test(rows),
        cmocka_unit_test(thin_pictures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
