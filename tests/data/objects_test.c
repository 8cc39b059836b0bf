/* Objects: records of boxes written and read back, each kind of damage, and the filter. */
#include "data/coco_mask.h"
#include <math.h>

#include "convert_common.h"

#include <pumice/objects.h>

/* A record being built, and its parsed form. */
struct record {
    struct pm_example_builder *b;
    uint8_t *data;
    struct pm_example *e;
};

static struct record begin(void)
{
    return (struct record){ .b = pm_example_builder_create() };
}

static const struct pm_example *end(struct record *r)
{
    size_t size = 0;

    pm_example_serialise(r->b, &r->data, &size);
    assert_int_equal(pm_example_parse(r->data, size, "part record 7", &r->e), PM_OK);
    return r->e;
}

static void drop(struct record *r)
{
    pm_example_builder_destroy(&r->b);
    pm_example_destroy(&r->e);
    pm_free(r->data);
}

static void put_box(struct pm_object *o, float y0, float x0, float y1, float x1)
{
    o->box[0] = y0, o->box[1] = x0, o->box[2] = y1, o->box[3] = x1;
}

static void assert_box(const struct pm_object *o, float y0, float x0, float y1, float x1)
{
    const float want[4] = { y0, x0, y1, x1 };
    assert_memory_equal(o->box, want, sizeof want);
}

/* ---- round trips ---------------------------------------------------------------------------- */

static void fill(struct pm_objects *o)
{
    static const char *const names[] = { "nose", "left_eye" };
    static const float scores[2][3] = { { 0, 0.25F, 0.75F }, { 1, 0, 0 } };
    static const int64_t absent[] = { 5, 9 }, incomplete[] = { 7 };
    struct pm_object *one = pm_objects_add(o);

    put_box(one, 0.25F, 0, 0.5F, 1);
    one->text = "cat", one->label = 3, one->area = 12.5F, one->weight = 0.5F;
    one->is_crowd = one->group_of = true;
    one->view = "Left";
    one->mask = (const uint8_t *)"abc", one->mask_size = 3, one->mask_weight = 2;
    one->scores = scores[0];
    one = pm_objects_add(o);
    put_box(one, 0, 0, 1, 1);
    one->text = "dog", one->label = 90;
    one->difficult = one->truncated = true;
    one->track = 77;
    one->scores = scores[1];
    o->points = 2;
    o->point_names = names;
    o->item[1].keypoints = pm_objects_points(o);
    o->item[1].keypoints[0] = (struct pm_keypoint){ 0.5F, 0.125F, 2, 3.5F, 0.5F };
    o->item[1].keypoints[1] = (struct pm_keypoint){ 1, 0, 1 };
    o->score_count = 3;
    o->absent = absent, o->absent_count = 2;
    o->incomplete = incomplete, o->incomplete_count = 1;
    for (int k = 0; k < 5; k++)
        o->item[0].rotated[k] = 0.125F * (float)k, o->item[1].rotated[k] = -0.25F + (float)k / 4;
    o->sensor = "K3";
    o->gsd = 0.5F;
    o->has = ((PM_HAS_DEPTH << 1) - 1) | PM_HAS_ROTATED;
}

static void there_and_back(void **state)
{
    struct pm_objects from, to;
    struct record r = begin();

    (void)state;
    pm_objects_start(&from, 4, 6);
    fill(&from);
    pm_objects_write(&from, r.b);
    pm_example_add_ints(r.b, "image/height", (const int64_t[]){ 4 }, 1);
    pm_example_add_ints(r.b, "image/width", (const int64_t[]){ 6 }, 1);
    assert_int_equal(pm_objects_parse(end(&r), true, "r", &to), PM_OK);
    assert_true(to.count == 2 && to.height == 4 && to.width == 6 && to.points == 2);
    assert_int_equal(to.has, from.has);
    const struct pm_object *a = &to.item[0], *b = &to.item[1];
    assert_box(a, 0.25F, 0, 0.5F, 1);
    assert_box(b, 0, 0, 1, 1);
    assert_string_equal(a->text, "cat");
    assert_string_equal(b->text, "dog");
    assert_true(a->label == 3 && b->label == 90 && a->area == 12.5F && b->area == 0);
    assert_true(a->weight == 0.5F && b->weight == 1 && a->mask_weight == 2 && b->mask_weight == 1);
    assert_true(a->is_crowd && a->group_of && !a->difficult && !a->truncated);
    assert_true(!b->is_crowd && !b->group_of && b->difficult && b->truncated);
    assert_string_equal(a->view, "Left");
    assert_null(b->view);
    assert_true(a->mask_size == 3 && !memcmp(a->mask, "abc", 3) && b->mask_size == 0);
    assert_true(a->keypoints[0].visibility == 0 && b->keypoints[0].visibility == 2);
    assert_true(b->keypoints[0].y == 0.5F && b->keypoints[0].x == 0.125F);
    assert_true(b->keypoints[0].z == 3.5F && b->keypoints[0].z_weight == 0.5F);
    assert_true(a->track == 0 && b->track == 77);
    assert_string_equal(to.point_names[1], "left_eye");
    assert_true(to.score_count == 3 && a->scores[2] == 0.75F && b->scores[0] == 1);
    assert_memory_equal(a->rotated, from.item[0].rotated, sizeof a->rotated);
    assert_memory_equal(b->rotated, from.item[1].rotated, sizeof b->rotated);
    assert_string_equal(to.sensor, "K3");
    assert_true(to.gsd == 0.5F);
    assert_true(to.absent_count == 2 && to.absent[1] == 9 && to.incomplete[0] == 7);
    pm_objects_free(&to);
    assert_int_equal(pm_objects_parse(r.e, false, "r", &to), PM_OK);
    assert_null(to.item[0].mask);
    pm_objects_free(&to);
    pm_objects_free(&from);
    drop(&r);
}

/* A picture without objects has empty lists; a record of other programs has no lists. */
static void no_objects(void **state)
{
    struct pm_objects o;
    struct record r = begin();

    (void)state;
    pm_objects_start(&o, 4, 6);
    o.has = PM_HAS_TEXT | PM_HAS_LABEL | PM_HAS_AREA | PM_HAS_KEYPOINTS | PM_HAS_MASK;
    pm_objects_write(&o, r.b);
    pm_objects_free(&o);
    assert_int_equal(pm_objects_parse(end(&r), true, "r", &o), PM_OK);
    assert_true(o.count == 0 && o.has == 0);
    pm_objects_free(&o);
    drop(&r);
    r = begin();
    assert_int_equal(pm_objects_parse(end(&r), true, "r", &o), PM_OK);
    assert_int_equal(o.count, 0);
    pm_objects_free(&o);
    drop(&r);
}

/* ---- damage --------------------------------------------------------------------------------- */

static const char *const sides[4] = { "image/object/bbox/ymin", "image/object/bbox/xmin",
                                      "image/object/bbox/ymax", "image/object/bbox/xmax" };

/* A record of two boxes in a picture of 2 x 3. */
static struct record boxes(void)
{
    struct record r = begin();

    for (int k = 0; k < 4; k++)
        pm_example_add_floats(r.b, sides[k], (const float[]){ k < 2 ? 0 : 1, k < 2 ? 0 : 1 }, 2);
    pm_example_add_ints(r.b, "image/height", (const int64_t[]){ 2 }, 1);
    pm_example_add_ints(r.b, "image/width", (const int64_t[]){ 3 }, 1);
    return r;
}

/* The record must be refused with both texts in the message. */
static void refused(struct record r, const char *first, const char *second)
{
    struct pm_objects o;
    const int err = pm_objects_parse(end(&r), true, "part record 7", &o);

    if (err != PM_ECORRUPT)
        fail_msg("%d, not corrupt: %s", err, first);
    assert_fails(err, PM_ECORRUPT, "part record 7: ", first, second);
    pm_objects_free(&o);
    drop(&r);
}

static void damaged_floats(void **state)
{
    static const struct {
        const char *key;
        size_t count;
        float v[3];
        const char *first, *second;
    } bad[] = {
        { "image/object/bbox/xmin", 1, { 0 }, "bbox/xmin has 1 values for 2 boxes", "2 are" },
        { "image/object/bbox/xmin", 0, { 0 }, "bbox/xmin has 0 values for 2 boxes", "2 are" },
        { "image/object/bbox/ymax", 2, { 1, NAN }, "object 2: ", "bbox/ymax is nan" },
        { "image/object/bbox/ymin", 2, { -INFINITY, 0 }, "object 1: ", "bbox/ymin is -inf" },
        { "image/object/bbox/xmax", 2, { 1, -1 }, "object 2: xmin 0 is above xmax -1", "exchange" },
        { "image/object/bbox/ymax", 2, { 300, 1 }, "object 1: ", "is 300; coordinates are shares" },
        { "image/object/area", 3, { 1, 2, 3 }, "area has 3 values for 2 boxes", "convert" },
        { "image/object/area", 2, { 1, -2 }, "object 2: image/object/area is -2", "smallest" },
        { "image/object/weight", 2, { NAN, 1 }, "object 1: image/object/weight is nan", "finite" },
        { "image/object/mask/weight", 1, { 1 }, "mask/weight has 1 values", "2 are needed" },
        { "image/object/keypoint/x", 3, { 0 }, "keypoint/x has 3 values for 2 boxes", "needed" },
        { "image/object/keypoint/x", 2, { 0 }, "keypoint/y has 0 values for 2 boxes", "needed" },
        { "image/object/class/multiclass_scores", 3, { 0 }, "scores has 3 values", "2 boxes" },
        { "image/object/mask", 3, { 0 }, "mask has 3 values for 2 boxes", "12 are needed" },
        { "image/object/class/label", 2, { 1, 2 }, "class/label has the type floats", "integers" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(bad); i++) {
        struct record r = boxes();
        pm_example_add_floats(r.b, bad[i].key, bad[i].v, bad[i].count);
        refused(r, bad[i].first, bad[i].second);
    }
}

static void damaged_ints(void **state)
{
    static const struct {
        const char *key;
        size_t count;
        int64_t v[3];
        const char *first, *second;
    } bad[] = {
        { "image/object/class/label", 1, { 1 }, "class/label has 1 values for 2 boxes", "2 are" },
        { "image/object/class/label", 2, { 1, -4 }, "object 2: ", "class/label is -4, outside 0" },
        { "image/object/is_crowd", 2, { 0, 2 }, "object 2: image/object/is_crowd is 2", "0..1" },
        { "image/object/track/label", 2, { 0, -1 }, "object 2: ", "track/label is -1" },
        { "image/object/group_of", 3, { 0 }, "group_of has 3 values", "2 are needed" },
        { "image/object/area", 2, { 1, 2 }, "image/object/area has the type integers", "floats" },
        { "image/height", 1, { -1 }, "image/height is -1", "outside 0..1048576" },
        { "image/neg_category_ids", 1, { -3 }, "neg_category_ids: value 1 is -3", "outside" },
    };
    struct record r;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(bad); i++) {
        r = boxes();
        pm_example_add_ints(r.b, bad[i].key, bad[i].v, bad[i].count);
        refused(r, bad[i].first, bad[i].second);
    }
    r = boxes();
    pm_example_add_floats(r.b, "image/object/keypoint/x", (const float[4]){ 0 }, 4);
    pm_example_add_floats(r.b, "image/object/keypoint/y", (const float[4]){ 0 }, 4);
    pm_example_add_ints(r.b, "image/object/keypoint/visibility", (const int64_t[]){ 0, 2, 3, 0 },
                        4);
    refused(r, "object 2: image/object/keypoint/visibility is 3", "0..2");
}

static void damaged_texts(void **state)
{
    struct record r = boxes();

    (void)state;
    pm_example_add_bytes(r.b, "image/object/class/text", "cat", 3);
    refused(r, "class/text has 1 values for 2 boxes", "2 are needed");
    r = boxes();
    pm_example_add_bytes(r.b, "image/object/class/text", "cat", 3);
    pm_example_add_bytes(r.b, "image/object/class/text", "a\nb", 3);
    refused(r, "object 2: image/object/class/text is \"a\\x0Ab\"", "one line");
    r = boxes();
    pm_example_add_bytes(r.b, "image/object/class/text", "c\0t", 3);
    pm_example_add_bytes(r.b, "image/object/class/text", "cat", 3);
    refused(r, "object 1: image/object/class/text is \"c\"", "one line");
    r = boxes();
    pm_example_add_bytes(r.b, "image/object/mask", "x", 1);
    refused(r, "image/object/mask has 1 values", "2 are needed");
}

/* ---- masks ---------------------------------------------------------------------------------- */

static void masks(void **state)
{
    uint8_t grey[6] = { 0, 1, 0, 255, 2, 0 }, out[6], *png = NULL, *small = NULL;
    static const uint8_t want[6] = { 0, 1, 0, 1, 1, 0 };
    static const float v[12] = { 0, 0.5F, -1, 1, 2, 0, [11] = 1 };
    size_t size = 0, small_size = 0;
    struct pm_objects o;
    struct record r = boxes();

    (void)state;
    assert_int_equal(pm_image_encode_png(&(struct pm_image8){ 2, 3, 1, grey }, &png, &size), PM_OK);
    assert_int_equal(pm_image_encode_png(&(struct pm_image8){ 3, 2, 1, grey }, &small, &small_size),
                     PM_OK);
    pm_example_add_bytes(r.b, "image/object/mask", png, size);
    pm_example_add_bytes(r.b, "image/object/mask", small, small_size);
    assert_int_equal(pm_objects_parse(end(&r), true, "r", &o), PM_OK);
    assert_int_equal(pm_objects_mask(&o, 0, "r", out), PM_OK);
    assert_memory_equal(out, want, 6);
    assert_fails(pm_objects_mask(&o, 1, "r", out), PM_ECORRUPT, "r: object 2: its mask has 3 x 2",
                 "the picture 2 x 3");
    o.item[1].mask_size = 20;
    assert_int_equal(pm_objects_mask(&o, 1, "r", out), PM_ECORRUPT);
    o.item[1].mask_size = 0;
    assert_fails(pm_objects_mask(&o, 1, "r", out), PM_ECORRUPT, "object 2 has no mask");
    pm_objects_free(&o);
    drop(&r);
    r = boxes();
    pm_example_add_floats(r.b, "image/object/mask", v, 12);
    assert_int_equal(pm_objects_parse(end(&r), true, "r", &o), PM_OK);
    assert_int_equal(pm_objects_mask(&o, 0, "r", out), PM_OK);
    assert_memory_equal(out, want, 6);
    assert_int_equal(pm_objects_mask(&o, 1, "r", out), PM_OK);
    assert_int_equal(out[5], 1);
    struct record again = begin();
    pm_objects_write(&o, again.b);
    assert_int_equal(pm_example_count(end(&again)), 5);
    pm_objects_free(&o);
    drop(&again);
    drop(&r);
    pm_free(small);
    pm_free(png);
}

/* Run lengths are read as pixels and as runs, and written again under their own key. A text is
 * damaged if it has another size, unknown characters or a zero in it. A record with masks under
 * both keys is refused. */
static void run_lengths(void **state)
{
    static const uint8_t want[6] = { 0, 1, 0, 1, 1, 0 };
    static const struct { const char *text; size_t size; const char *say; } bad[] = {
        { "133", 3, "r: object 2: its runs add up to 7 pixels, the picture of 2 x 3 has 6" },
        { "13", 2, "r: object 2: its runs add up to 4 pixels" },
        { "1 2", 3, "r: object 2: the mask's text has an unknown character at character 2" },
        { "132\0" "0", 5, "r: object 2: the mask's text has an unknown character at character 4" },
    };
    struct pm_objects o, copy;
    uint8_t out[6];

    (void)state;
    for (size_t i = 0; i < PM_COUNT(bad); i++) {
        struct record r = boxes();
        struct pm_runs runs;

        pm_example_add_bytes(r.b, "image/object/mask/rle", "132", 3);
        pm_example_add_bytes(r.b, "image/object/mask/rle", bad[i].text, bad[i].size);
        assert_int_equal(pm_objects_parse(end(&r), true, "r", &o), PM_OK);
        assert_true((o.has & PM_HAS_MASK) && (o.has & PM_HAS_RLE));
        assert_int_equal(pm_objects_mask(&o, 0, "r", out), PM_OK);
        assert_memory_equal(out, want, 6);
        assert_int_equal(pm_objects_runs(&o, 0, "r", &runs), PM_OK);
        assert_true(runs.count == 3 && pm_runs_area(&runs) == 3);
        pm_runs_free(&runs);
        assert_fails(pm_objects_mask(&o, 1, "r", out), PM_ECORRUPT, bad[i].say);
        assert_fails(pm_objects_runs(&o, 1, "r", &runs), PM_ECORRUPT, bad[i].say);
        pm_runs_free(&runs);
        struct record again = begin();

        pm_objects_write(&o, again.b);
        assert_int_equal(pm_objects_parse(end(&again), true, "r", &copy), PM_OK);
        assert_true(copy.has == o.has && copy.item[1].mask_size == bad[i].size &&
                    !memcmp(copy.item[1].mask, bad[i].text, bad[i].size));
        pm_objects_free(&copy);
        pm_objects_free(&o);
        drop(&again);
        drop(&r);
    }
    struct record r = boxes(); /* beside an empty list of numbers, the runs count */

    for (int i = 0; i < 2; i++)
        pm_example_add_bytes(r.b, "image/object/mask/rle", "132", 3);
    pm_example_add_floats(r.b, "image/object/mask", NULL, 0);
    assert_int_equal(pm_objects_parse(end(&r), true, "r", &o), PM_OK);
    assert_int_equal(pm_objects_mask(&o, 1, "r", out), PM_OK);
    assert_memory_equal(out, want, 6);
    pm_objects_free(&o);
    drop(&r);
    r = boxes();
    pm_example_add_bytes(r.b, "image/object/mask/rle", "132", 3);
    refused(r, "image/object/mask/rle has 1 values", "2 are needed");
    r = boxes();
    for (int i = 0; i < 2; i++) {
        pm_example_add_bytes(r.b, "image/object/mask", "png", 3);
        pm_example_add_bytes(r.b, "image/object/mask/rle", "132", 3);
    }
    refused(r, "has masks in image/object/mask and in image/object/mask/rle",
            "convert the data again");
}

/* ---- the filter ----------------------------------------------------------------------------- */

static void filter(void **state)
{
    struct pm_objects o;
    struct pm_object_counts c = { 0 };
    struct pm_object_filter f = { .min_side = 2 };
    struct pm_str text = { 0 };

    (void)state;
    pm_objects_start(&o, 10, 20);
    put_box(pm_objects_add(&o), 0, 0, 0.5F, 0.5F);
    put_box(pm_objects_add(&o), 0.5F, 0.5F, 0.5F, 1);      /* no height */
    put_box(pm_objects_add(&o), 0.5F, 0.6F, 1, 0.5F);      /* reversed */
    put_box(pm_objects_add(&o), -0.5F, -0.1F, 0.5F, 1.2F); /* clipped */
    put_box(pm_objects_add(&o), 1, 0, 1.5F, 1);            /* below the picture */
    put_box(pm_objects_add(&o), 0, 0.9F, 1, 1.5F);         /* 2 pixels wide after clipping: kept */
    put_box(pm_objects_add(&o), 0, 0, 1, 0.09F);           /* 1.8 pixels wide */
    o.item[0].is_crowd = true;
    o.item[5].text = "last";
    assert_int_equal(pm_objects_filter(&o, &f, "p", &c), PM_OK);
    assert_int_equal(o.count, 3);
    assert_box(&o.item[0], 0, 0, 0.5F, 0.5F);
    assert_box(&o.item[1], 0, 0, 0.5F, 1);
    assert_string_equal(o.item[2].text, "last");
    assert_true(c.pictures == 1 && c.empty == 0 && c.boxes == 3 && c.crowds == 1);
    assert_true(c.degenerate == 2 && c.outside == 1 && c.small == 1 && c.clipped == 2);
    o.count = 0;
    assert_int_equal(pm_objects_filter(&o, &f, "p", &c), PM_OK);
    assert_true(c.pictures == 2 && c.empty == 1);
    pm_object_counts_print(&c, &text);
    assert_string_equal(text.text, "2 pictures (1 without boxes), 3 boxes (1 crowd), 2 clipped at "
                                   "the border, 2 dropped without area, 1 dropped outside the "
                                   "picture, 1 dropped below min_side");
    pm_str_free(&text);
    pm_objects_free(&o);
}

static void filter_refuses(void **state)
{
    struct pm_objects o;
    struct pm_object_counts c = { 0 };
    const struct pm_object_filter f = { .error = true };

    (void)state;
    pm_objects_start(&o, 10, 20);
    put_box(pm_objects_add(&o), 0, 0, 1, 1);
    put_box(pm_objects_add(&o), 0.5F, 0.25F, 0.5F, 1);
    o.item[1].text = "cat";
    assert_fails(pm_objects_filter(&o, &f, "a.jpg", &c), PM_EDATA,
                 "a.jpg: object 2 (cat): ", "ymin 5, xmin 5, ymax 5, xmax 20 (pixels)", "bad=skip");
    assert_int_equal(c.pictures, 0);
    pm_objects_free(&o);
}

/* ---- classes -------------------------------------------------------------------------------- */

static void resolve(void **state)
{
    static const struct pm_label_item items[] = {
        { .id = 3, .name = "/m/1", .display_name = "cat" }, { .id = 90, .name = "dog" }
    };
    const struct pm_label_map map = { items, 2 };
    struct pm_objects o;

    (void)state;
    pm_objects_start(&o, 1, 1);
    pm_objects_add(&o)->text = "cat";
    pm_objects_add(&o)->label = 90;
    assert_int_equal(pm_objects_resolve(&o, &map, "r"), PM_OK);
    assert_true(o.item[0].label == 3 && o.item[1].label == 90);
    o.item[1].label = 4;
    assert_fails(pm_objects_resolve(&o, &map, "r"), PM_ECORRUPT, "r: object 2: ", "number 4 is not",
                 "2 classes");
    o.item[0].text = "dot";
    assert_fails(pm_objects_resolve(&o, &map, "r"), PM_ECORRUPT, "r: object 1: ", "\"dot\"",
                 "did you mean \"dog\"?");
    o.item[0] = (struct pm_object){ .area = 1 }; /* without a class: dropped */
    o.item[1].label = 3;
    assert_int_equal(pm_objects_resolve(&o, &map, "r"), PM_OK);
    assert_true(o.count == 1 && o.item[0].label == 3 && o.item[0].area == 0);
    pm_objects_free(&o);
}

/* ---- records of other programs -------------------------------------------------------------- */

/* Number of boxes in all records of a split of ../shared/data/FOLDER. */
static size_t count_boxes(const char *folder, const char *split, unsigned *has)
{
    struct pm_dataset *d = NULL;
    size_t count = 0;

    if (pm_dataset_open(shared_data(folder), split, &d) < 0)
        fail_msg("%s", pm_error_text());
    for (size_t i = 0; i < pm_dataset_get_info(d)->count; i++) {
        struct pm_example *e = example(d, i);
        struct pm_objects o;

        if (pm_objects_parse(e, true, "record", &o) < 0)
            fail_msg("%s %zu: %s", split, i, pm_error_text());
        uint8_t *mask = pm_malloc((size_t)o.height * (size_t)o.width + 1);
        for (size_t k = 0; o.has & PM_HAS_MASK && k < o.count; k++)
            assert_int_equal(pm_objects_mask(&o, k, "record", mask), PM_OK);
        count += o.count;
        *has |= o.has;
        pm_free(mask);
        pm_objects_free(&o);
        pm_example_destroy(&e);
    }
    pm_dataset_close(&d);
    return count;
}

static void foreign(void **state)
{
    unsigned has = 0;

    (void)state;
    assert_int_equal(count_boxes("tfrecord", "pets_examples.record", &has), 10);
    assert_int_equal(has, PM_HAS_TEXT | PM_HAS_LABEL | PM_HAS_DIFFICULT | PM_HAS_TRUNCATED |
                              PM_HAS_VIEW);
    has = 0;
    assert_int_equal(count_boxes("tfrecord", "imagenet-bbox-sample.tfrecord", &has), 2);
    assert_int_equal(has, PM_HAS_LABEL); /* image/object/bbox/label */
    assert_int_equal(count_boxes("tfrecord", "datumaro-tfod-*.tfrecord", &has), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back), cmocka_unit_test(no_objects),
        cmocka_unit_test(damaged_floats), cmocka_unit_test(damaged_ints),
        cmocka_unit_test(damaged_texts),  cmocka_unit_test(masks),
        cmocka_unit_test(run_lengths),
        cmocka_unit_test(filter),         cmocka_unit_test(filter_refuses),
        cmocka_unit_test(resolve),        cmocka_unit_test(foreign),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
