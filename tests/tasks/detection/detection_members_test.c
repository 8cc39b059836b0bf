/* Augmentations move the masks and keypoints of a record together with its boxes. Training finds
 * both in its fields. The host data of evaluation has both unchanged. In these records the mask of
 * an object is its box without the upper left quarter, and its keypoints are the upper right and
 * the lower left corner of the box. */
#include "data/coco_mask.h"
#include "samples_common.h"
#include "tasks/detection/detection_points.h"

enum { HEIGHT = 48, WIDTH = 64, POINTS = 2, STEPS = 30 };

#define DATA ", \"instance_masks\": true, \"num_keypoints\": 2"
#define SWAP "{\"name\": \"random_flip\", \"keypoint_flip_permutation\": [1, 0]}"
#define FLIP "{\"name\": \"random_flip\", \"keypoint_flip_permutation\": [0, 1]}"

/* In pixels of the picture. */
static const int boxes[2][4] = { { 4, 8, 24, 32 }, { 20, 36, 44, 60 } };

static bool in_mask(const int *box, int y, int x)
{
    const bool corner = y < (box[0] + box[2]) / 2 && x < (box[1] + box[3]) / 2;

    return y >= box[0] && y < box[2] && x >= box[1] && x < box[3] && !corner;
}

/* Masks are PNG files in the arena, or numbers. */
static void fill_mask(struct pm_arena *a, const int *box, bool numbers, struct pm_object *out)
{
    struct pm_image8 im = { HEIGHT, WIDTH, 1, pm_arena_alloc(a, HEIGHT * WIDTH) };
    float *values = pm_arena_alloc(a, HEIGHT * WIDTH * sizeof *values);
    uint8_t *png = NULL;

    for (int k = 0; k < HEIGHT * WIDTH; k++) {
        values[k] = in_mask(box, k / WIDTH, k % WIDTH);
        im.pixels[k] = values[k] > 0 ? 255 : 0;
    }
    if (numbers) {
        out->mask_values = values;
        return;
    }
    assert_int_equal(pm_image_encode_png(&im, &png, &out->mask_size), PM_OK);
    out->mask = pm_arena_copy(a, png, out->mask_size);
    pm_free(png);
}

static void fill(struct pm_arena *a, bool numbers, struct pm_objects *o)
{
    pm_objects_start(o, HEIGHT, WIDTH);
    o->has = PM_HAS_TEXT | PM_HAS_MASK | PM_HAS_KEYPOINTS;
    o->points = POINTS;
    for (int i = 0; i < 2; i++) {
        const int *b = boxes[i];
        struct pm_object *one =
            add(o, i ? "dog" : "cat", (float)b[0] / HEIGHT, (float)b[1] / WIDTH,
                (float)b[2] / HEIGHT, (float)b[3] / WIDTH);

        one->keypoints = pm_objects_points(o);
        one->keypoints[0] = (struct pm_keypoint){ one->box[0], one->box[3], 2, 0, 0 };
        one->keypoints[1] = (struct pm_keypoint){ one->box[2], one->box[1], 1, 0, 0 };
        fill_mask(a, b, numbers, one);
    }
    o->item[1].keypoints[1].visibility = 0;
}

/* Evaluation has the file's pixels. */
static void evaluation(void **state)
{
    struct setup s = set_up_data(CONFIG("}}"), DATA);
    struct pm_arena *a = pm_arena_create();

    (void)state;
    for (int numbers = 0; numbers < 2; numbers++) {
        struct pm_objects o;
        struct made m;

        fill(a, numbers, &o);
        o.item[0].box[2] = o.item[0].box[0]; /* an object without an area is left out */
        made(&s, false, &o, &m);
        const struct pm_detection_truths *t = m.truths;
        assert_int_equal(t->count, 1);
        assert_int_equal(t->truth[0].label, 1);
        assert_true(fabsf(t->keypoints[0] - (float)boxes[1][0]) < 1e-4f &&
                    fabsf(t->keypoints[1] - (float)boxes[1][3]) < 1e-4f);
        assert_true(isnan(t->keypoints[2]) && isnan(t->keypoints[3]));
        uint8_t mask[HEIGHT * WIDTH];

        assert_true(t->runs[0].height == HEIGHT && t->runs[0].width == WIDTH);
        pm_runs_decode(&t->runs[0], mask);
        for (int k = 0; k < HEIGHT * WIDTH; k++)
            assert_int_equal(mask[k], in_mask(boxes[1], k / WIDTH, k % WIDTH));
        pm_detection_free_truths(m.truths);
        pm_objects_free(&o);
    }
    pm_arena_destroy(&a);
    tear_down(&s);
}

/* The keypoint has this place in the picture, before it is mirrored and resized. */
static void assert_at(const float *point, int y, int x, bool flip)
{
    assert_true(fabs((double)point[0] - (double)y / HEIGHT) < 1e-6);
    assert_true(fabs((double)point[1] - (double)(flip ? WIDTH - x : x) / WIDTH) < 1e-6);
}

/* Compares row i of training's fields with an object that was mirrored and then resized. */
static void compare(const struct made *m, int i, int object, bool flip)
{
    const int *b = boxes[object];

    assert_at(m->keypoints[i][0], b[0], b[3], flip);
    if (object == 1)
        assert_true(isnan(m->keypoints[i][1][0]) && isnan(m->keypoints[i][1][1]));
    else
        assert_at(m->keypoints[i][1], b[2], b[1], flip);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) { /* resized without half-pixel centres, as the picture */
            const int from_y = y * HEIGHT / SIDE, column = x * WIDTH / SIDE;
            const int from_x = flip ? WIDTH - 1 - column : column;

            assert_int_equal(m->masks[i][y] >> x & 1, in_mask(b, from_y, from_x));
        }
}

/* Makes a training sample of the objects in each step and compares it. flip: the picture is
 * mirrored an odd number of times. Frees the setup. */
static void in_steps(struct setup s, void (*compare_sample)(const struct made *m, bool flip))
{
    struct pm_arena *a = pm_arena_create();
    struct pm_objects o;
    struct made m;
    int flips = 0;

    fill(a, false, &o);
    for (uint64_t step = 0; step < STEPS; step++) {
        assert_int_equal(make_step(&s, true, &o, step, &m), PM_OK);
        const bool flip = m.images[0] > 0; /* the white half is left */

        flips += flip;
        compare_sample(&m, flip);
    }
    assert_in_range(flips, STEPS / 5, STEPS * 4 / 5);
    pm_objects_free(&o);
    pm_arena_destroy(&a);
    tear_down(&s);
}

static void compare_fields(const struct made *m, bool flip)
{
    assert_null(m->truths);
    for (int i = 0; i < 2; i++)
        compare(m, i, i, flip);
    for (int i = 0; i < MOST; i++) {
        assert_true(m->mask_weights[i] == (i < 2 ? 1 : 0));
        assert_true(isnan(m->keypoints[i][0][0]) == (i >= 2));
    }
}

static void training(void **state)
{
    (void)state;
    in_steps(set_up_data(CONFIG(", \"augment\": [" FLIP ", {\"name\": \"resize\"}]}}"), DATA),
             compare_fields);
}

/* The keypoints of an object are in their order, or have changed places if it is mirrored. */
static void compare_order(const struct made *m, bool flip)
{
    const int *b = boxes[0];

    assert_at(m->keypoints[0][flip], b[0], b[3], flip);
    assert_at(m->keypoints[0][!flip], b[2], b[1], flip);
}

/* A picture that is mirrored twice has its keypoints in the first order, at their first places; one
 * that is mirrored once has the other order. */
static void flipped_twice(void **state)
{
    (void)state;
    in_steps(set_up_data(CONFIG(", \"augment\": [" SWAP ", " SWAP ", {\"name\": \"resize\"}]}}"),
                         DATA), compare_order);
}

/* If dataset.json has no permutation, keypoints change places by their names in the label map. */
static void names_of_the_map(void **state)
{
    const char *before = setup_map;

    (void)state;
    setup_map = "item { name: 'cat' id: 1 } item { name: 'cow' id: 4 } item { name: 'dog' id: 2\n"
                "keypoints { id: 0 label: 'left_eye' } keypoints { id: 1 label: 'right_eye' } }";
    struct setup s = set_up_data(CONFIG(", \"augment\": [{\"name\": \"random_flip\"},"
                                        " {\"name\": \"resize\"}]}}"), DATA);
    setup_map = before;
    in_steps(s, compare_order);
}

static bool is_empty(const uint32_t *mask)
{
    for (int y = 0; y < SIDE; y++)
        if (mask[y])
            return false;
    return true;
}

/* Masks and keypoints have the rows of the boxes: the largest objects, without those that an
 * augmentation drops. */
static void rows_of_the_fields(void **state)
{
    struct setup s = set_up_data(
        CONFIG(", \"augment\": [{\"name\": \"drop_label_probabilistically\", \"label\": 1},"
               " {\"name\": \"resize\"}]}}"), DATA);
    struct pm_arena *a = pm_arena_create();
    struct pm_objects o;
    struct made m;

    (void)state;
    fill(a, false, &o);
    made(&s, true, &o, &m);
    assert_true(m.weights[0] == 1 && m.weights[1] == 0);
    compare(&m, 0, 1, false);
    assert_true(m.mask_weights[0] == 1 && m.mask_weights[1] == 0 && is_empty(m.masks[1]));
    assert_true(isnan(m.keypoints[1][0][0]));
    o.has &= ~(unsigned)(PM_HAS_MASK | PM_HAS_KEYPOINTS); /* a record without them */
    memset(m.masks, 255, sizeof m.masks);
    made(&s, true, &o, &m);
    for (int i = 0; i < MOST; i++)
        assert_true(m.mask_weights[i] == 0 && is_empty(m.masks[i]) &&
                    isnan(m.keypoints[i][0][0]));
    assert_true(m.weights[0] == 1);
    pm_objects_free(&o);
    pm_arena_destroy(&a);
    tear_down(&s);
}

static void set_weights(struct pm_objects *o, float first, float second)
{
    o->has |= PM_HAS_MASK_WEIGHT;
    o->item[0].mask_weight = first;
    o->item[1].mask_weight = second;
}

/* An object that cannot train the masks keeps its box. */
static void weights_of_masks(void **state)
{
    struct setup s = set_up_data(CONFIG(", \"augment\": [{\"name\": \"resize\"}]}}"), DATA);
    struct pm_arena *a = pm_arena_create();
    struct pm_objects o;
    struct made m;

    (void)state;
    fill(a, false, &o);
    set_weights(&o, 0.25f, 3);
    made(&s, true, &o, &m);
    assert_true(m.mask_weights[0] == 0.25f && m.mask_weights[1] == 3 && m.weights[1] == 1);
    o.has |= PM_HAS_CROWD;
    o.item[1].is_crowd = true;
    o.item[0].mask = NULL, o.item[0].mask_size = 0; /* an object without a mask */
    made(&s, true, &o, &m);
    assert_true(m.mask_weights[0] == 0 && m.mask_weights[1] == 0 && m.weights[0] == 1);
    assert_true(is_empty(m.masks[0]) && !is_empty(m.masks[1]));
    pm_objects_free(&o);
    pm_arena_destroy(&a);
    tear_down(&s);
}

/* The first mask has one pixel, in an odd column. The input has only the picture's even columns. */
static void lost_pixels(void **state)
{
    struct setup s = set_up_data(CONFIG(", \"augment\": [{\"name\": \"resize\"}]}}"), DATA);
    struct pm_arena *a = pm_arena_create();
    struct pm_objects o;
    struct made m;

    (void)state;
    fill(a, true, &o);
    float values[HEIGHT * WIDTH] = { [6 * WIDTH + 9] = 1 };

    o.item[0].mask_values = values;
    made(&s, true, &o, &m);
    assert_true(m.mask_weights[0] == 0 && m.mask_weights[1] == 1 && m.weights[0] == 1);
    assert_true(is_empty(m.masks[0]) && !is_empty(m.masks[1]));
    pm_objects_free(&o);
    pm_arena_destroy(&a);
    tear_down(&s);
}

/* The fields of masks and keypoints, and their order, with and without the normalizer, in an input
 * whose width is no multiple of 32. */
static void fields_of_members(void **state)
{
    (void)state;
    for (int clone = 0; clone < 2; clone++) {
        struct setup s = set_up_data(
            clone ? CONFIG("}, \"loss\": {\"normalize_over\": \"clone\"}}") : CONFIG("}}"), DATA);
        struct pm_field_list l = { 0 };

        pm_detection_fields(s.e->task, true, (struct pm_frame){ 40, 65 }, &l);
        const struct pm_field *masks = &l.list[PM_FIELD_NORMALIZER + !clone];

        assert_int_equal(l.count, PM_FIELD_NORMALIZER + !clone + 3);
        assert_string_equal(masks[0].name, "truth_masks");
        assert_string_equal(masks[1].name, "truth_mask_weights");
        assert_true(masks[0].type == PM_U32 &&
                    pm_shape_equal(masks[0].shape, PM_SHAPE3(MOST, 40, 3)));
        assert_true(masks[1].type == PM_F32 && pm_shape_equal(masks[1].shape, PM_SHAPE1(MOST)));
        assert_string_equal(masks[2].name, "truth_keypoints");
        assert_true(masks[2].type == PM_F32 &&
                    pm_shape_equal(masks[2].shape, PM_SHAPE3(MOST, POINTS, 2)));
        l.count = 0;
        pm_detection_fields(s.e->task, false, (struct pm_frame){ 40, 65 }, &l);
        for (int i = 0; i < l.count; i++)
            assert_true(!strstr(l.list[i].name, "mask") && !strstr(l.list[i].name, "keypoints"));
        pm_free(l.list);
        tear_down(&s);
    }
}

/* Without the normalizer, the fields of masks come one place earlier in a made example. */
static void made_without_normalizer(void **state)
{
    struct setup s = set_up_data(
        CONFIG(", \"augment\": [{\"name\": \"resize\"}]}, \"loss\": "
               "{\"normalize_over\": \"clone\"}}"), DATA);
    struct pm_arena *a = pm_arena_create();
    struct pm_sampler sampler = { s.e->task, true, s.e->task_row };
    struct pm_objects o;
    static struct made m;
    void *out[] = { m.images,  m.boxes, m.classes,      m.weights,
                    m.matches, m.masks, m.mask_weights, m.keypoints };
    uint8_t *data = NULL;
    size_t size = 0;
    void *host = NULL;

    (void)state;
    fill(a, false, &o);
    record_of(&o, &data, &size);
    assert_int_equal(s.e->task_row->make(&sampler, &(struct pm_loader_record){
        .bytes = data, .size = size, .where = "r", .frame = { SIDE, SIDE }, .host = &host }, out),
        PM_OK);
    assert_null(host);
    for (int i = 0; i < 2; i++) {
        compare(&m, i, i, false);
        assert_true(m.mask_weights[i] == 1);
    }
    pm_free(data);
    pm_objects_free(&o);
    pm_arena_destroy(&a);
    tear_down(&s);
}

/* Nothing is decoded or kept that the config does not ask for. */
static void not_wanted(void **state)
{
    struct setup s = set_up(CONFIG(", \"augment\": [{\"name\": \"random_flip\"},"
                                   " {\"name\": \"resize\"}]}}"));
    struct pm_arena *a = pm_arena_create();
    struct pm_objects o;
    struct made m;

    (void)state;
    fill(a, false, &o);
    o.item[0].mask = (const uint8_t *)"no picture", o.item[0].mask_size = 10;
    made(&s, true, &o, &m);
    assert_null(m.truths);
    assert_int_equal(s.e->train_fields.count, PM_FIELD_NORMALIZER + 1);
    made(&s, false, &o, &m);
    assert_true(!m.truths->runs && !m.truths->keypoints);
    pm_detection_free_truths(m.truths);
    pm_objects_free(&o);
    pm_arena_destroy(&a);
    tear_down(&s);
}

static void refuse_record(const struct setup *s, const struct pm_objects *o, int want,
                          const char *message)
{
    struct made m;

    for (int train = 0; train < 2; train++) {
        if (want == PM_ECONFIG && !train)
            continue;
        for (uint64_t step = 0; step < 3; step++)
            assert_int_equal(make_step(s, train, o, step, &m), want);
        assert_contains(pm_error_text(), message);
        assert_null(strchr(pm_error_text(), '\n'));
    }
}

static void refusals(void **state)
{
    struct setup s = set_up_data(CONFIG(", \"augment\": [{\"name\": \"random_flip\"},"
                                        " {\"name\": \"resize\"}]}}"), DATA);
    struct setup other;
    struct pm_arena *a = pm_arena_create();
    struct pm_objects o;

    (void)state;
    fill(a, false, &o);
    refuse_record(&s, &o, PM_ECONFIG, "r: objects have 2 keypoints, and input.augment does not say "
                                      "which of them change places in a mirrored picture");
    o.item[1].mask = (const uint8_t *)"no picture", o.item[1].mask_size = 10;
    refuse_record(&s, &o, PM_ECORRUPT, "r");
    pm_objects_free(&o);
    fill(a, true, &o);
    o.points = 1;
    refuse_record(&s, &o, PM_ECORRUPT, "r: the objects have 1 keypoints, but data.num_keypoints is "
                                       "2: correct the key");
    pm_objects_free(&o);
    tear_down(&s);
    assert_int_equal(open_setup(CONFIG("}}"), DATA ", \"merge_multiple_label_boxes\": true",
                                &other), PM_ECONFIG);
    assert_contains(pm_error_text(), "data.merge_multiple_label_boxes: true is not possible "
                                     "together with data.num_keypoints");
    tear_down(&other);
    assert_int_equal(open_setup(CONFIG("}, \"eval\": {\"metrics\": [\"coco_keypoints\"]}}"), "",
                                &other), PM_ECONFIG);
    assert_contains(pm_error_text(), "eval.metrics: the net predicts no keypoints: remove "
                                     "coco_keypoints");
    tear_down(&other);
    pm_arena_destroy(&a);
}

/* 500 objects of a picture of 4,000 x 6,000 pixels, as run lengths, are read for evaluation: the
 * masks as pixels would need 12 GB. */
static void many_objects(void **state)
{
    enum { LARGE_HEIGHT = 4000, LARGE_WIDTH = 6000, MANY = 500 };
    struct setup s = set_up_data(CONFIG("}}"), DATA);
    const struct pm_task *t = s.e->task;
    struct pm_detection_truths *truths = NULL;
    struct pm_arena *a = pm_arena_create();
    struct pm_objects o, read = { 0 };
    struct pm_example *e = NULL;
    uint8_t *data = NULL;
    size_t size = 0;

    (void)state;
    pm_objects_start(&o, LARGE_HEIGHT, LARGE_WIDTH);
    o.has = PM_HAS_TEXT | PM_HAS_MASK | PM_HAS_RLE;
    for (uint32_t i = 0; i < MANY; i++) {
        const uint32_t begin = LARGE_HEIGHT * 10 * i;
        const uint32_t run[] = { begin, LARGE_HEIGHT * 10, LARGE_HEIGHT * LARGE_WIDTH - begin -
                                                               LARGE_HEIGHT * 10 };
        struct pm_runs runs;
        struct pm_str text = { 0 };

        assert_int_equal(pm_runs_counts(run, 3, LARGE_HEIGHT, LARGE_WIDTH, "c", &runs), PM_OK);
        pm_runs_print(&runs, &text);
        add(&o, "cat", 0, 10 * i / (double)LARGE_WIDTH, 1, 10 * (i + 1) / (double)LARGE_WIDTH);
        o.item[i].mask = pm_arena_copy(a, text.text, text.length);
        o.item[i].mask_size = text.length;
        pm_str_free(&text);
        pm_runs_free(&runs);
    }
    record_of(&o, &data, &size);
    assert_int_equal(pm_example_parse(data, size, "r", &e), PM_OK);
    assert_int_equal(pm_detection_truths(t, e, LARGE_HEIGHT, LARGE_WIDTH, "r", &truths), PM_OK);
    assert_int_equal(truths->count, MANY);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(pm_runs_area(&truths->runs[i]), LARGE_HEIGHT * 10);
    assert_int_equal(pm_detection_objects(t, e, LARGE_HEIGHT, LARGE_WIDTH, "r", &read), PM_OK);
    pm_detection_free_truths(truths);
    pm_objects_free(&read);
    pm_example_destroy(&e);
    pm_free(data);
    pm_objects_free(&o);
    pm_arena_destroy(&a);
    tear_down(&s);
}

/* Placed masks of 32 objects fit into 2 GiB if a mosaic has 2^26 pixels, those of 33 do not. */
static void too_large(void **state)
{
    struct setup s = set_up_data(CONFIG("}}"), DATA), plain = set_up(CONFIG("}}"));
    struct pm_task large = *s.e->task;

    (void)state;
    large.facts.height = large.facts.width = 1 << 12;
    for (int count = 32; count <= 33; count++) {
        struct pm_objects o, read = { 0 };
        struct pm_example *e = NULL;
        uint8_t *data = NULL;
        size_t size = 0;

        pm_objects_start(&o, HEIGHT, WIDTH);
        o.has = PM_HAS_TEXT;
        for (int i = 0; i < count; i++)
            add(&o, "cat", 0, 0, 1, 1);
        record_of(&o, &data, &size);
        assert_int_equal(pm_example_parse(data, size, "r", &e), PM_OK);
        assert_int_equal(pm_detection_objects(&large, e, HEIGHT, WIDTH, "r", &read),
                         count == 33 ? PM_ECORRUPT : PM_OK);
        pm_objects_free(&read);
        assert_int_equal(pm_detection_objects(plain.e->task, e, HEIGHT, WIDTH, "r", &read), PM_OK);
        pm_objects_free(&read);
        pm_example_destroy(&e);
        pm_free(data);
        pm_objects_free(&o);
    }
    assert_contains(pm_error_text(), "r: the masks of 33 objects need more than 2048 MiB in the "
                                     "input's size");
    tear_down(&plain);
    tear_down(&s);
}

/* A keypoint is in the input if both of its coordinates are. */
static void keypoints_in_the_input(void **state)
{
    static const struct { float points[2][2]; bool inside; } of[] = {
        { { { 0.5f, 1.5f }, { -0.5f, 0.5f } }, false }, { { { 0, 1 }, { NAN, NAN } }, true },
        { { { NAN, NAN }, { NAN, NAN } }, false },      { { { 2, 2 }, { 0.5f, 0.25f } }, true },
        { { { 0.5f, NAN }, { NAN, 0.5f } }, false },
    };
    struct pm_detection_seen seen = { 0 };
    struct pm_task t = { .points = 2, .seen = &seen };
    uint64_t labelled = 0;

    (void)state;
    t.data.num_keypoints = 2, t.data.max_boxes = 3;
    for (size_t i = 0; i < PM_COUNT(of); i++) {
        const struct pm_sample placed = { .keypoints = of[i].points[0], .points = 2 };
        const size_t from = 0;
        float out[3][2][2];

        pm_detection_write_points(&t, &placed, &from, 1, out[0][0]);
        labelled += of[i].inside;
        assert_int_equal(atomic_load(&seen.pictures), i + 1);
        assert_int_equal(atomic_load(&seen.labelled), labelled);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluation), cmocka_unit_test(training),
        cmocka_unit_test(flipped_twice),
        cmocka_unit_test(rows_of_the_fields), cmocka_unit_test(names_of_the_map),
        cmocka_unit_test(weights_of_masks), cmocka_unit_test(lost_pixels),
        cmocka_unit_test(fields_of_members), cmocka_unit_test(made_without_normalizer),
        cmocka_unit_test(not_wanted),
        cmocka_unit_test(refusals), cmocka_unit_test(too_large),
        cmocka_unit_test(many_objects), cmocka_unit_test(keypoints_in_the_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
