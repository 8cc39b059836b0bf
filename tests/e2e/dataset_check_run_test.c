/* dataset inspect --check: a test for each finding about objects, with its exit code, and the
 * statistics of splits. */
#include <pumice/objects.h>

#include "data/exif_common.h"
#include "program.h"

enum { HEIGHT = 20, WIDTH = 30 };

/* An object of a record; class NULL ends the list. */
struct thing {
    const char *class; /* "": without a text */
    int label;
    float box[4];
    float rotated[5]; /* instead of the box if its w is above 0 */
};
/* A record; thing NULL ends the list. */
struct given {
    int picture;       /* equal numbers are equal pixels */
    int orientation;   /* EXIF's; 0: none */
    int height, width; /* stated; 0: those of the upright picture; -1: none */
    const struct thing *thing;
    const char *key;   /* of one more value; or NULL */
    const void *mask;  /* bytes of the masks, all alike; or NULL */
    size_t mask_size;
    bool rle;          /* mask is a text of run lengths */
    bool first_only;   /* only the first object has a mask */
    void (*more)(struct pm_example_builder *b); /* adds further values; or NULL */
};

static const struct thing nothing[] = { { 0 } };
static const struct thing one_cat[] = { { "cat", 1, { 0.1f, 0.1f, 0.5f, 0.6f } }, { 0 } };

static const struct pm_label_item items[] = { { .id = 1, .name = "cat" },
                                              { .id = 3, .name = "dog" } };
static const struct pm_label_map map = { items, 2 };

static void add_picture(struct pm_example_builder *b, const struct given *g)
{
    struct pm_image8 im = { HEIGHT, WIDTH, 3, pm_calloc(HEIGHT * WIDTH, 3) };
    const bool turned = g->orientation >= 5;
    const int64_t height = g->height ? g->height : turned ? WIDTH : HEIGHT;
    const int64_t width = g->width ? g->width : turned ? HEIGHT : WIDTH;
    uint8_t *png = NULL, body[EXIF_SIZE];
    size_t size = 0;

    memset(im.pixels, 40 + g->picture, 3 * HEIGHT * WIDTH);
    assert_int_equal(pm_image_encode_png(&im, &png, &size), PM_OK);
    if (g->orientation) {
        exif_body(true, g->orientation, body);
        uint8_t *more = exif_png(png, size, body, EXIF_SIZE);
        pm_free(png);
        png = more;
        size += EXIF_PNG_MORE;
    }
    pm_example_add_bytes(b, "image/encoded", png, size);
    if (g->height >= 0) {
        pm_example_add_ints(b, "image/height", &height, 1);
        pm_example_add_ints(b, "image/width", &width, 1);
    }
    pm_free(png);
    pm_image_free(&im);
}

/* pm_making_split's fill */
static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    const struct given *g = (const struct given *)ctx + i;
    struct pm_objects o;

    add_picture(b, g);
    pm_objects_start(&o, HEIGHT, WIDTH);
    o.has = PM_HAS_TEXT | PM_HAS_LABEL | (g->mask ? PM_HAS_MASK : 0u) | (g->rle ? PM_HAS_RLE : 0u);
    for (const struct thing *t = g->thing; t->class; t++) {
        struct pm_object *one = pm_objects_add(&o);

        one->text = t->class[0] ? t->class : NULL;
        one->label = t->label;
        one->mask = g->mask;
        one->mask_size = g->first_only && o.count > 1 ? 0 : g->mask_size;
        memcpy(one->box, t->box, sizeof one->box);
        memcpy(one->rotated, t->rotated, sizeof one->rotated);
        o.has |= t->rotated[3] > 0 ? PM_HAS_ROTATED : 0u;
    }
    if (g->key)
        pm_example_add_bytes(b, g->key, "x", 1);
    if (g->more)
        g->more(b);
    pm_objects_write(&o, b);
    pm_objects_free(&o);
    return 1;
}

static size_t count_of(const struct given *g)
{
    size_t n = 0;

    while (g[n].thing)
        n++;
    return n;
}

/* Makes the data folder `name` with these splits; NULL: without val, or without a label map. */
static void make(const char *name, const struct pm_label_map *of, const struct given *train,
                 const struct given *val)
{
    struct pm_making *m = NULL;

    assert_int_equal(pm_making_create(in("%s", name), NULL, true, &m), PM_OK);
    if (of)
        pm_making_box_labels(m, of);
    assert_int_equal(pm_making_split(m, "train", count_of(train), NULL, fill, (void *)train),
                     PM_OK);
    if (val)
        assert_int_equal(pm_making_split(m, "val", count_of(val), NULL, fill, (void *)val), PM_OK);
    assert_int_equal(pm_making_finish(m), PM_OK);
    pm_making_destroy(&m);
}

static const cJSON *find(const cJSON *json, const char *finding, const char *split)
{
    const cJSON *f;

    cJSON_ArrayForEach(f, cJSON_GetObjectItem(json, "findings"))
        if (!strcmp(cJSON_GetObjectItem(f, "finding")->valuestring, finding) &&
            strstr(cJSON_GetObjectItem(f, "split")->valuestring, split))
            return f;
    return NULL;
}

/* Inspects the folder. It must have `all` findings, among them this one with this count and, in
 * its first case, this text. Wrong ones end with 3. */
static void expect(const char *name, int all, bool wrong, const char *finding, const char *split,
                   int count, const char *first)
{
    struct result r = run(NULL, "dataset inspect %s --check --json", in("%s", name));
    cJSON *json = json_of(&r);
    const cJSON *f = find(json, finding, split);

    if (cJSON_GetArraySize(cJSON_GetObjectItem(json, "findings")) != all || !f)
        fail_msg("%s is missing, or there are not %d findings: %s", finding, all, r.out);
    assert_int_equal(cJSON_GetObjectItem(f, "count")->valueint, count);
    assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItem(f, "wrong")), wrong);
    if (first)
        assert_contains(cJSON_GetObjectItem(f, "first")->valuestring, first);
    if (wrong)
        assert_contains(r.err, "1 finding would make training or its evaluation wrong");
    cJSON_Delete(json);
    check(r, wrong ? 3 : 0);
    r = run(NULL, "dataset inspect %s --check", in("%s", name));
    assert_contains(r.out, wrong ? "wrong: " : "note: ");
    check(r, wrong ? 3 : 0);
}

/* Inspects a split of one record. */
static void expect_one(struct given g, bool wrong, const char *finding, int count,
                       const char *first)
{
    const struct given list[] = { g, { .picture = 99, .thing = one_cat }, { 0 } };

    make("one", &map, list, NULL);
    expect("one", 1, wrong, finding, "train", count, first);
}

#define THINGS(...) (const struct thing[]){ __VA_ARGS__, { 0 } }

/* ---- findings of one record ----------------------------------------------------------------- */

static void damaged(void **state)
{
    (void)state;
    expect_one((struct given){ .thing = THINGS({ "cat", 1, { 0.1f, NAN, 0.5f, 0.6f } }) }, true,
               "damaged", 1, "object 1");
    expect_one((struct given){ .thing = THINGS({ "cat", 1, { 0.5f, 0.1f, 0.1f, 0.6f } }) }, true,
               "damaged", 1, "ymin");
    expect_one((struct given){ .thing = THINGS({ "cat", 1, { 5, 10, 15, 20 } }) }, true, "damaged",
               1, "object 1");
    expect_one((struct given){ .thing = one_cat, .mask = "no PNG", .mask_size = 6 }, true,
               "damaged", 1, "record 0");
}

static const struct thing two_cats[] = { { "cat", 1, { 0.1f, 0.1f, 0.5f, 0.6f } },
                                         { "cat", 1, { 0.2f, 0.1f, 0.5f, 0.6f } }, { 0 } };

static void add_points(struct pm_example_builder *b, size_t count, int64_t visibility)
{
    const float at[] = { 0.2f, 0.3f, 0.4f, 0.5f };
    const int64_t seen[] = { visibility, 1, 2, 2 };

    pm_example_add_floats(b, "image/object/keypoint/x", at, count);
    pm_example_add_floats(b, "image/object/keypoint/y", at, count);
    pm_example_add_ints(b, "image/object/keypoint/visibility", seen, count);
}

static void three_points(struct pm_example_builder *b)
{
    add_points(b, 3, 2);
}

static void visibility_3(struct pm_example_builder *b)
{
    add_points(b, 4, 3);
}

/* A mask of 0 or 1. The caller frees it. */
static uint8_t *mask_png(int height, int width, int value, size_t *size)
{
    struct pm_image8 im = { height, width, 1, pm_malloc((size_t)height * (size_t)width) };
    uint8_t *png = NULL;

    memset(im.pixels, value, (size_t)height * (size_t)width);
    assert_int_equal(pm_image_encode_png(&im, &png, size), PM_OK);
    pm_image_free(&im);
    return png;
}

/* COCO's texts: "hb0" is one run of 600, the whole picture; "0hb0" is an empty run before it. */
static void masks(void **state)
{
    size_t size;
    uint8_t *other = mask_png(HEIGHT, WIDTH + 1, 1, &size);

    (void)state;
    expect_one((struct given){ .thing = one_cat, .mask = other, .mask_size = size }, true,
               "damaged", 1, "object 1: its mask has 20 x 31 pixels, the picture 20 x 30");
    pm_free(other);
    expect_one((struct given){ .thing = two_cats, .key = "image/object/mask" }, true, "damaged", 1,
               "image/object/mask has 1 values for 2 boxes, 2 are needed");
    expect_one((struct given){ .thing = two_cats, .key = "image/object/mask/rle" }, true,
               "damaged", 1, "image/object/mask/rle has 1 values for 2 boxes, 2 are needed");
    expect_one((struct given){ .thing = one_cat, .mask = "0hb01", .mask_size = 5, .rle = true },
               true, "damaged", 1, "object 1: its runs add up to 601 pixels, the picture of 20 x "
               "30 has 600");
    expect_one((struct given){ .thing = one_cat, .mask = "0hb", .mask_size = 3, .rle = true },
               true, "damaged", 1, "the mask's text ends within a number");
    expect_one((struct given){ .thing = one_cat, .mask = "N", .mask_size = 1, .rle = true }, true,
               "damaged", 1, "run 1 of the mask has -2 pixels");
    expect_one((struct given){ .thing = one_cat, .mask = "0hb0\0" "0", .mask_size = 6,
                               .rle = true }, true, "damaged", 1, "unknown character");
    expect_one((struct given){ .thing = one_cat, .key = "image/object/mask", .mask = "0hb0",
                               .mask_size = 4, .rle = true }, true, "damaged", 1,
               "has masks in image/object/mask and in image/object/mask/rle");
    expect_one((struct given){ .thing = one_cat, .mask = "hb0", .mask_size = 3, .rle = true },
               false, "empty_mask", 1, "object 1 (cat)");
    uint8_t *empty = mask_png(HEIGHT, WIDTH, 0, &size);

    expect_one((struct given){ .thing = two_cats, .mask = empty, .mask_size = size }, false,
               "empty_mask", 2, "object 1 (cat)");
    pm_free(empty);
    expect_one((struct given){ .thing = two_cats, .mask = "0hb0", .mask_size = 4, .rle = true,
                               .first_only = true }, false, "without_mask", 1, "object 2 (cat)");
}

static void keypoints(void **state)
{
    (void)state;
    expect_one((struct given){ .thing = two_cats, .more = three_points }, true, "damaged", 1,
               "image/object/keypoint/x has 3 values for 2 boxes");
    expect_one((struct given){ .thing = two_cats, .more = visibility_3 }, true, "damaged", 1,
               "object 1: image/object/keypoint/visibility is 3, outside 0..2");
}

static void classes(void **state)
{
    (void)state;
    expect_one((struct given){ .thing = THINGS({ "cats", 1, { 0, 0, 1, 1 } }) }, true,
               "unknown_class", 1, "did you mean \"cat\"?");
    expect_one((struct given){ .thing = THINGS({ "", 2, { 0, 0, 1, 1 } }) }, true, "unknown_class",
               1, "class 2"); /* a gap of the numbers */
    expect_one((struct given){ .thing = THINGS({ "", 0, { 0, 0, 1, 1 } },
                                               { "dog", 3, { 0, 0, 0.5f, 1 } }) },
               false, "without_class", 1, "object 1");
    expect_one((struct given){ .thing = THINGS({ "dog", 2, { 0, 0, 1, 1 } }) }, false, "numbers", 1,
               "number 2 here, 3 in the label map");
}

static void boxes(void **state)
{
    (void)state;
    expect_one((struct given){ .thing = THINGS({ "cat", 1, { 0.5f, 0.1f, 0.5f, 0.6f } },
                                               { "cat", 1, { 0.1f, 0.1f, 0.5f, 0.6f } }) },
               false, "degenerate", 1, "object 1 (cat), pixels ymin 10, xmin 3, ymax 10, xmax 18");
    expect_one((struct given){ .thing = THINGS({ "cat", 1, { 1, 0.1f, 1.5f, 0.6f } },
                                               { "cat", 1, { -0.5f, 0.1f, 0, 0.6f } }) },
               false, "outside", 2, "object 1");
    expect_one((struct given){ .thing = THINGS({ "cat", 1, { 0, 0, 1, 1 } },
                                               { "dog", 3, { 0.5f, 0.5f, 1.1f, 1 } }) },
               false, "clipped", 1, "object 2 (dog)");
    /* One pixel is enough: 1 / 20 and 1 / 30 of the picture. */
    expect_one((struct given){ .thing = THINGS({ "cat", 1, { 0.5f, 0.5f, 0.55f, 16 / 30.0f } },
                                               { "cat", 1, { 0.5f, 0.5f, 0.54f, 0.9f } }) },
               false, "tiny", 1, "object 2");
    expect_one((struct given){ .thing = THINGS({ "cat", 1, { 0, 0, 1, 1 } },
                                               { "dog", 3, { 0, 0, 1, 1 } },
                                               { "dog", 3, { 0, 0, 1, 0.5f } }) },
               false, "two_classes", 1, "object 2 (dog)");
    expect_one((struct given){ .thing = THINGS({ "cat", 1, { 0, 0, 1, 1 } },
                                               { "dog", 3, { 0, 0, 1, 0.5f } },
                                               { "cat", 1, { 0, 0, 1, 1 } },
                                               { "cat", 1, { 0, 0, 1, 1 } }) },
               false, "doubled", 2, "object 3 (cat)");
}

/* Rotated boxes are compared and measured themselves, not by the upright boxes around them. Bars of
 * 2 x 12 pixels turned by 45 degrees. */
#define BAR(cy, cx, h, angle)                                                                      \
    { 0 }, { (cy) / HEIGHT, (cx) / WIDTH, (h) / HEIGHT, 12.0f / WIDTH, angle }
#define TURN 0.785398163f
static void rotated_boxes(void **state)
{
    (void)state;
    /* Crossed bars have equal upright boxes. */
    expect_one((struct given){ .thing = THINGS({ "cat", 1, BAR(10.0f, 15.0f, 2.0f, TURN) },
                                               { "cat", 1, BAR(10.0f, 15.0f, 2.0f, -TURN) },
                                               { "cat", 1, BAR(10.0f, 15.0f, 2.0f, TURN) }) },
               false, "doubled", 1, "object 3 (cat)");
    expect_one((struct given){ .thing = THINGS({ "cat", 1, BAR(10.0f, 15.0f, 2.0f, TURN) },
                                               { "dog", 3, BAR(10.0f, 15.0f, 2.0f, -TURN) },
                                               { "dog", 3, BAR(10.0f, 15.0f, 2.0f, TURN) }) },
               false, "two_classes", 1, "object 3 (dog)");
    /* This bar passes the corner of the picture; its upright box has a part inside. */
    expect_one((struct given){ .thing = THINGS({ "cat", 1, BAR(-3.0f, -3.0f, 2.0f, -TURN) }) },
               false, "outside", 1, "object 1");
    /* A part outside is not cut off; half a pixel is thin, but its upright box is not. */
    expect_one((struct given){ .thing = THINGS({ "cat", 1, BAR(1.0f, 1.0f, 2.0f, TURN) },
                                               { "cat", 1, BAR(10.0f, 15.0f, 0.5f, TURN) }) },
               false, "tiny", 1, "object 2");
}

static void many_boxes(void **state)
{
    struct thing list[102] = { 0 };

    (void)state;
    for (int i = 0; i < 101; i++)
        list[i] = (struct thing){ "cat", 1, { 0, 0, 1, 0.5f + 0.001f * (float)i } };
    expect_one((struct given){ .thing = list }, false, "many", 1, "101 boxes");
}

static void unread_values(void **state)
{
    (void)state;
    expect_one((struct given){ .thing = one_cat, .key = "image/additional_channels/encoded" },
               false, "unread", 1, "image/additional_channels/encoded");
    expect_one((struct given){ .thing = one_cat, .key = "image/object/densepose/num" }, false,
               "unread", 1, "image/object/densepose/num");
}

static void turns(void **state)
{
    (void)state;
    for (int orientation = 5; orientation <= 8; orientation++)
        expect_one((struct given){ .thing = one_cat, .orientation = orientation, .height = HEIGHT,
                                   .width = WIDTH },
                   true, "turned", 1, "image/height and image/width are 20 x 30, the upright "
                   "picture has 30 x 20");
    for (int orientation = 2; orientation <= 4; orientation++)
        expect_one((struct given){ .thing = one_cat, .orientation = orientation }, false,
                   "unclear_turn", 1, NULL);
    expect_one((struct given){ .thing = one_cat, .orientation = 6, .height = -1 }, false,
               "unclear_turn", 1, NULL);
    expect_one((struct given){ .thing = one_cat, .height = 21 }, false, "size", 1, "21 x 30");
}

/* ---- findings of splits --------------------------------------------------------------------- */

static void equal_pictures(void **state)
{
    const struct given train[] = { { .picture = 1, .thing = one_cat },
                                   { .picture = 2, .thing = one_cat },
                                   { .picture = 3, .thing = one_cat }, { 0 } };
    const struct given val[] = { { .picture = 4, .thing = one_cat },
                                 { .picture = 3, .thing = one_cat },
                                 { .picture = 1, .thing = one_cat }, { 0 } };
    const struct given twice[] = { { .picture = 1, .thing = one_cat },
                                   { .picture = 2, .thing = one_cat },
                                   { .picture = 1, .thing = one_cat, .orientation = 1 }, { 0 } };

    (void)state;
    make("equal", &map, train, val);
    expect("equal", 1, true, "equal_pictures", "train", 2, "record ");
    make("twice", &map, twice, NULL); /* other bytes, equal pixels */
    expect("twice", 1, false, "repeated", "train", 1, "record 2");
}

/* Splits that contain others by their names, like trainval, are reported only. */
static void parts(void **state)
{
    const struct given train[] = { { .picture = 1, .thing = one_cat }, { 0 } };
    const struct given both[] = { { .picture = 1, .thing = one_cat },
                                  { .picture = 2, .thing = one_cat }, { 0 } };
    struct pm_making *m = NULL;

    (void)state;
    assert_int_equal(pm_making_create(in("parts"), NULL, true, &m), PM_OK);
    pm_making_box_labels(m, &map);
    assert_int_equal(pm_making_split(m, "train", 1, NULL, fill, (void *)train), PM_OK);
    assert_int_equal(pm_making_split(m, "trainval", 2, NULL, fill, (void *)both), PM_OK);
    assert_int_equal(pm_making_finish(m), PM_OK);
    pm_making_destroy(&m);
    expect("parts", 1, false, "part", "train", 1, NULL);
}

static void absent_classes(void **state)
{
    const struct given train[] = { { .picture = 1, .thing = one_cat }, { 0 } };
    const struct given val[] = {
        { .picture = 2, .thing = THINGS({ "cat", 1, { 0, 0, 1, 1 } },
                                        { "dog", 3, { 0, 0, 1, 0.5f } }) },
        { 0 }
    };

    (void)state;
    make("absent", &map, train, val);
    expect("absent", 1, false, "absent_class", "train", 1, "dog");
    make("absent", NULL, train, val); /* without a label map the records name the classes */
    expect("absent", 1, false, "absent_class", "train", 1, "dog");
}

static void nothing_to_learn(void **state)
{
    const struct given empty[] = { { .picture = 1, .thing = nothing },
                                   { .picture = 2, .thing = nothing }, { 0 } };

    (void)state;
    make("empty", &map, empty, NULL);
    expect("empty", 1, true, "nothing", "train", 0, NULL);
}

/* ---- statistics ----------------------------------------------------------------------------- */

static double number_at(const cJSON *o, const char *a, const char *b)
{
    return cJSON_GetObjectItem(cJSON_GetObjectItem(o, a), b)->valuedouble;
}

static void statistics(void **state)
{
    const struct given train[] = {
        { .picture = 1, .thing = nothing },
        { .picture = 2, .thing = THINGS({ "cat", 1, { 0, 0, 0.2f, 0.2f } },
                                        { "cat", 1, { 0, 0, 0.4f, 0.4f } },
                                        { "dog", 3, { 0, 0, 1, 1 } }) },
        { .picture = 3, .thing = THINGS({ "cat", 1, { 0, 0, 0.1f, 0.4f } }) },
        { 0 }
    };

    (void)state;
    make("statistics", &map, train, NULL);
    struct result r = run(NULL, "dataset inspect %s --check --json", in("statistics"));
    cJSON *json = json_of(&r);
    const cJSON *o = cJSON_GetObjectItem(
        cJSON_GetArrayItem(cJSON_GetObjectItem(json, "splits"), 0), "objects");
    const cJSON *cat = cJSON_GetArrayItem(cJSON_GetObjectItem(o, "classes"), 0);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "findings")), 0);
    assert_int_equal(number_of(o, "pictures"), 3);
    assert_int_equal(number_of(o, "without_objects"), 1);
    assert_int_equal(number_of(o, "boxes"), 4);
    assert_int_equal(number_of(cat, "boxes"), 3);
    assert_int_equal(number_of(cat, "pictures"), 2);
    assert_int_equal(number_at(o, "boxes_per_picture", "min"), 0);
    assert_int_equal(number_at(o, "boxes_per_picture", "p50"), 1);
    assert_int_equal(number_at(o, "boxes_per_picture", "max"), 3);
    assert_float_equal(number_at(o, "side_share", "min"), 0.2, 1e-6);
    assert_float_equal(number_at(o, "side_share", "p75"), 0.4, 1e-6);
    assert_float_equal(number_at(o, "side_pixels", "max"), sqrt(600), 1e-4);
    cJSON_Delete(json);
    check(r, 0);
    r = run(NULL, "dataset inspect %s --check", in("statistics"));
    assert_contains(r.out, "3 pictures (1 without objects), 4 boxes\n");
    assert_contains(r.out, "boxes per class: cat 3, dog 1\n");
    assert_contains(r.out, "no finding about the objects\n");
    check(r, 0);
}

static int world(void **state)
{
    (void)state;
    return make_world(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged),   cmocka_unit_test(masks),   cmocka_unit_test(keypoints),
        cmocka_unit_test(classes),
        cmocka_unit_test(boxes),          cmocka_unit_test(many_boxes),
        cmocka_unit_test(rotated_boxes),
        cmocka_unit_test(turns),
        cmocka_unit_test(unread_values),          cmocka_unit_test(equal_pictures),
        cmocka_unit_test(parts),          cmocka_unit_test(absent_classes),
        cmocka_unit_test(nothing_to_learn), cmocka_unit_test(statistics),
    };

    return cmocka_run_group_tests(tests, world, drop_world);
}
