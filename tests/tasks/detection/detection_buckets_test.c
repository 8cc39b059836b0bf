/* Training pictures of several sizes (input.buckets): the size that a picture needs, its boxes,
 * padding, window and matches in the size of its batch, and what is refused. */
#include "samples_common.h"

enum { LARGE = 48, MOST_ANCHORS = 6 * 6 * 2 + 3 * 3 * 2 };

/* Pictures have a smaller side of 24 pixels, or a larger one of 48. */
#define BUCKETS(more)                                                                              \
    CONFIG(", \"resizer\": \"keep_aspect_ratio\", \"min_dimension\": 24, \"max_dimension\": 48, "  \
           "\"buckets\": [32, [32, 48], [48, 32], 48]" more "}}")
#define LIST(rows) BUCKETS(", \"augment\": [" rows "]")

struct example {
    float images[LARGE * LARGE * 3], boxes[MOST][4], weights[MOST], normalizer, window[4];
    int32_t classes[MOST], matches[MOST_ANCHORS];
};

/* A record and its bytes. */
static struct pm_loader_record record_for(const struct pm_objects *o, uint64_t step, uint8_t **data)
{
    size_t size = 0;

    record_of(o, data, &size);
    return (struct pm_loader_record){ .bytes = *data, .size = size, .where = "r", .seed = 5,
                                      .step = step };
}

/* Makes the example in this frame. Returns the error. */
static int make_in(const struct setup *s, const struct pm_objects *o, uint64_t step,
                   struct pm_frame frame, struct example *m)
{
    struct pm_sampler sampler = { s->e->task, true, s->e->task_row };
    void *out[] = { m->images,  m->boxes,       m->classes, m->weights,
                    m->matches, &m->normalizer, m->window };
    uint8_t *data = NULL;
    struct pm_loader_record r = record_for(o, step, &data);

    r.frame = frame;
    const int err = s->e->task_row->make(&sampler, &r, out);
    pm_free(data);
    return err;
}

/* The frame that the loader asks for. */
static struct pm_frame need_of(const struct setup *s, const struct pm_objects *o, uint64_t step)
{
    struct pm_sampler sampler = { s->e->task, true, s->e->task_row };
    struct pm_frame out = { 0, 0 };
    uint8_t *data = NULL;
    const struct pm_loader_record r = record_for(o, step, &data);

    if (pm_record_frame(&sampler, &r, &out) < 0)
        fail_msg("%s", pm_error_text());
    pm_free(data);
    return out;
}

static void start(struct pm_objects *o, int height, int width)
{
    pm_objects_start(o, height, width);
    o->has = PM_HAS_TEXT;
}

static void assert_need(const struct setup *s, int height, int width, int want_height,
                        int want_width)
{
    const struct pm_loader_record r = { .where = "r" };
    struct pm_sampler sampler = { s->e->task, true, s->e->task_row };
    struct pm_frame f;

    assert_int_equal(s->e->task_row->need(&sampler, NULL, &r, height, width, &f), PM_OK);
    assert_int_equal(f.height, want_height);
    assert_int_equal(f.width, want_width);
}

/* The smaller side becomes 24, unless the larger one would be above 48. Sides are rounded, halves
 * to even. */
static void needs(void **state)
{
    struct setup s = set_up(BUCKETS(""));

    (void)state;
    assert_need(&s, 40, 40, 24, 24);
    assert_need(&s, 30, 60, 24, 48);
    assert_need(&s, 100, 60, 40, 24);
    assert_need(&s, 48, 85, 24, 42); /* 42.5 */
    assert_need(&s, 48, 87, 24, 44); /* 43.5 */
    assert_need(&s, 10, 100, 5, 48); /* 4.8 */
    assert_need(&s, 97, 48, 48, 24); /* 48.5 becomes 48, which is not above 48 */
    assert_need(&s, 99, 48, 48, 23); /* 49.5 becomes 50: scale 48 / 99 */
    tear_down(&s);
}

/* The size of TensorFlow's recipes: a larger side of 1,024.5 becomes 1,024. */
static void needs_of_large_pictures(void **state)
{
    struct setup s = set_up(CONFIG(", \"resizer\": \"keep_aspect_ratio\", \"min_dimension\": 600, "
                                   "\"max_dimension\": 1024, \"buckets\": [32, [600, 1024]]}}"));

    (void)state;
    assert_need(&s, 1200, 2048, 600, 1024);
    assert_need(&s, 1200, 2049, 600, 1024);
    assert_need(&s, 2049, 1200, 1024, 600);
    assert_need(&s, 1200, 2051, 599, 1024); /* 1,025.5 becomes 1,026: 1200 * 1024 / 2051 = 599.1 */
    tear_down(&s);
}

static void assert_frame(struct pm_frame f, int height, int width)
{
    assert_int_equal(f.height, height);
    assert_int_equal(f.width, width);
}

/* Without a choice the side is drawn by the example's number. */
static void needs_of_choices(void **state)
{
    static const int sides[] = { 32, 16, 24 };
    struct setup s = set_up(CONFIG(", \"resizer\": \"keep_aspect_ratio\", \"min_dimensions\": "
                                   "[32, 16, 24], \"buckets\": [32, 48]}}"));
    struct pm_loader_record r = { .where = "r" };
    struct pm_sampler sampler = { s.e->task, true, s.e->task_row };
    struct pm_normal normal;
    struct pm_frame f;
    int seen[33] = { 0 };

    (void)state;
    assert_int_equal(s.e->facts.preprocessing->normal(s.e->facts.preprocessing_cfg, 3, &normal),
                     PM_OK);
    assert_int_equal(normal.choices, 3);
    for (r.choice = 1; r.choice <= 3; r.choice++) {
        const int side = sides[r.choice - 1];

        assert_int_equal(s.e->task_row->need(&sampler, NULL, &r, 40, 60, &f), PM_OK);
        assert_frame(f, side, side * 3 / 2);
    }
    for (r.choice = 0; r.example < 100; r.example++) {
        assert_int_equal(s.e->task_row->need(&sampler, NULL, &r, 40, 60, &f), PM_OK);
        assert_true(f.height <= 32);
        seen[f.height]++;
    }
    /* 100 draws of three: fewer than 10 of one have a probability below 1e-7 */
    assert_true(seen[32] >= 10 && seen[16] >= 10 && seen[24] >= 10);
    assert_int_equal(seen[32] + seen[16] + seen[24], 100);
    tear_down(&s);
}

static void needs_of_other_resizers(void **state)
{
    struct setup s = set_up(CONFIG(", \"resizer\": \"conditional\", \"size_threshold\": 40, "
                                   "\"buckets\": [32, 48]}}"));

    (void)state;
    assert_need(&s, 80, 30, 40, 15);
    assert_need(&s, 40, 30, 40, 30);
    tear_down(&s);
    s = set_up(CONFIG(", \"resizer\": \"pad_to_multiple\", \"buckets\": [32, 48]}}"));
    assert_need(&s, 47, 3, 47, 3);
    tear_down(&s);
}

/* Crops around objects and padding at random: the loader asks for the size that the picture then
 * has, and the window is this part of the frame. */
static void needs_of_crops(void **state)
{
    struct setup s = set_up(LIST("{\"name\": \"ssd_random_crop\"}, {\"name\": \"random_flip\"}, "
                                 "{\"name\": \"random_pad_image\"}"));
    const struct pm_frame frame = { LARGE, LARGE };
    struct pm_objects o;
    struct example m;
    int heights[LARGE + 1] = { 0 }, different = 0;

    (void)state;
    start(&o, 60, 90);
    add(&o, "cat", 0.1f, 0.2f, 0.4f, 0.5f);
    add(&o, "dog", 0.5f, 0.6f, 0.9f, 0.8f);
    for (uint64_t step = 0; step < 40; step++) {
        const struct pm_frame need = need_of(&s, &o, step);

        assert_in_range(need.height, 1, LARGE);
        assert_in_range(need.width, 1, LARGE);
        assert_int_equal(make_in(&s, &o, step, frame, &m), PM_OK);
        assert_box(m.window, 0, 0, (double)need.height / LARGE, (double)need.width / LARGE);
        /* a frame of this size holds it; one that is smaller does not */
        assert_int_equal(make_in(&s, &o, step, need, &m), PM_OK);
        assert_box(m.window, 0, 0, 1, 1);
        assert_int_equal(make_in(&s, &o, step,
                                 (struct pm_frame){ need.height - 1, need.width }, &m),
                         PM_ECORRUPT);
        assert_contains(pm_error_text(), "the picture's header and its pixels differ in size");
        different += heights[need.height]++ == 0;
    }
    assert_true(different > 4);
    pm_objects_free(&o);
    tear_down(&s);
}

/* The picture is the same in every frame that holds it, and the padding below and at the right is
 * pad_value, 0 unless it is set. */
static void padding(void **state)
{
    static const struct pm_frame frames[] = { { 24, 48 }, { 32, 48 }, { 48, 48 } };
    static struct example exact, m;

    (void)state;
    for (int set = 0; set < 2; set++) {
        struct setup s = set ? set_up(BUCKETS(", \"pad_value\": [-1, 0.5, 2]")) :
                               set_up(BUCKETS(""));
        const float pad[] = { set ? -1 : 0, set ? 0.5f : 0, set ? 2 : 0 };
        struct pm_objects o;

        start(&o, 30, 60);
        assert_int_equal(make_in(&s, &o, 0, frames[0], &exact), PM_OK);
        assert_box(exact.window, 0, 0, 1, 1);
        for (size_t k = 1; k < PM_COUNT(frames); k++) {
            const int height = frames[k].height;

            assert_int_equal(make_in(&s, &o, 0, frames[k], &m), PM_OK);
            assert_memory_equal(m.images, exact.images, 24 * 48 * 3 * sizeof(float));
            for (int i = 24 * 48 * 3; i < height * 48 * 3; i++)
                assert_true(m.images[i] == pad[i % 3]);
            assert_box(m.window, 0, 0, 24.0 / height, 1);
        }
        pm_objects_free(&o);
        tear_down(&s);
    }
}

/* An anchor of the frame whose box is in its upper left part, `height` x `width` of it. */
static int anchor_in(const struct pm_detection_anchors *a, double height, double width, float *box)
{
    for (int i = a->count - 1; i >= 0; i--) {
        pm_anchor_index_box(a->index, i, box);
        if (box[0] >= 0 && box[1] >= 0 && (double)box[2] <= height && (double)box[3] <= width)
            return i;
    }
    fail_msg("no anchor is inside");
    return -1;
}

/* Boxes are in 0..1 of the frame with its padding. An object with the box of an anchor of the
 * frame matches this anchor. */
static void boxes_and_matches(void **state)
{
    static const struct pm_frame frames[] = { { 48, 48 }, { 32, 48 } };
    struct setup s = set_up(BUCKETS(""));

    (void)state;
    for (size_t k = 0; k < PM_COUNT(frames); k++) {
        const struct pm_detection_anchors *a = pm_detection_anchors_of(s.e->task, frames[k]);
        const double share = 24.0 / frames[k].height; /* of a picture of 30 x 60 */
        struct pm_field_list fields = { 0 };
        struct pm_objects o;
        struct example m;
        float box[4];
        const int i = anchor_in(a, share, 1, box);

        assert_int_equal(a->count, frames[k].height / 8 * 6 * 2 + frames[k].height / 16 * 3 * 2);
        pm_detection_fields(s.e->task, true, frames[k], &fields);
        assert_int_equal(fields.list[PM_FIELD_MATCHES].shape.dim[0], a->count);
        start(&o, 30, 60);
        add(&o, "cat", (float)((double)box[0] / share), box[1], (float)((double)box[2] / share),
            box[3]);
        assert_int_equal(make_in(&s, &o, 0, frames[k], &m), PM_OK);
        assert_box(m.boxes[0], (double)box[0], (double)box[1], (double)box[2], (double)box[3]);
        assert_int_equal(m.matches[i], 0);
        assert_true(m.weights[0] == 1 && m.weights[1] == 0);
        pm_free(fields.list);
        pm_objects_free(&o);
    }
    tear_down(&s);
}

/* The field windows is the last one of training, if the preprocessing pads. */
static void fields(void **state)
{
    struct setup s = set_up(BUCKETS(""));
    const struct pm_field_list *list = &s.e->train_fields;

    (void)state;
    assert_string_equal(list->list[list->count - 1].name, "windows");
    assert_int_equal(list->count, PM_FIELD_NORMALIZER + 2);
    assert_int_equal(s.e->frames_count, 4);
    assert_int_equal(s.e->frames[0].height, LARGE);
    assert_int_equal(s.e->frames[0].width, LARGE);
    tear_down(&s);
    s = set_up(CONFIG("}}"));
    list = &s.e->train_fields;
    assert_string_equal(list->list[list->count - 1].name, "normalizer");
    tear_down(&s);
}

/* It follows the fields of masks. */
static void fields_with_masks(void **state)
{
    struct setup s = set_up_data(BUCKETS(""), ", \"instance_masks\": true");
    struct pm_sampler sampler = { s.e->task, true, s.e->task_row };
    const struct pm_field_list *list = &s.e->train_fields;
    static uint32_t masks[MOST * LARGE * LARGE];
    static struct example m;
    float mask_weights[MOST];
    void *out[] = { m.images,      m.boxes, m.classes,    m.weights, m.matches,
                    &m.normalizer, masks,   mask_weights, m.window };
    struct pm_objects o;
    uint8_t *data = NULL;

    (void)state;
    assert_int_equal(list->count, PM_COUNT(out));
    assert_string_equal(list->list[list->count - 1].name, "windows");
    start(&o, 30, 60);
    struct pm_loader_record r = record_for(&o, 0, &data);
    r.frame = (struct pm_frame){ LARGE, LARGE };
    mask_weights[0] = 7;
    assert_int_equal(s.e->task_row->make(&sampler, &r, out), PM_OK);
    assert_box(m.window, 0, 0, 0.5, 1);
    assert_true(mask_weights[0] == 0 && mask_weights[MOST - 1] == 0);
    pm_free(data);
    pm_objects_free(&o);
    tear_down(&s);
}

static void refused(void **state)
{
    static const struct { const char *text, *message; } cases[] = {
        { CONFIG(", \"buckets\": [32, 48]}}"),
          "input.buckets: input.resizer=fixed_shape stretches every picture to one size" },
        { CONFIG(", \"buckets\": [32, 48], \"resizer\": \"keep_aspect_ratio\"}}"),
          "input.resizer=keep_aspect_ratio has no input.min_dimension: set it" },
        { LIST("{\"name\": \"random_flip\"}, {\"name\": \"resize\"}"),
          "input.augment.1: resize brings a picture to the input's size, which input.buckets" },
        { LIST("{\"name\": \"letterbox\"}"), "input.augment.0: letterbox brings a picture" },
        { LIST("{\"name\": \"mosaic\"}"), "input.augment.0: mosaic joins pictures on a canvas" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct setup s;

        assert_int_equal(open_setup(cases[i].text, "", &s), PM_ECONFIG);
        assert_contains(pm_error_text(), cases[i].message);
        tear_down(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needs),
        cmocka_unit_test(needs_of_large_pictures),
        cmocka_unit_test(needs_of_choices),
        cmocka_unit_test(needs_of_other_resizers),
        cmocka_unit_test(needs_of_crops),
        cmocka_unit_test(padding),
        cmocka_unit_test(boxes_and_matches),
        cmocka_unit_test(fields),
        cmocka_unit_test(fields_with_masks),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
