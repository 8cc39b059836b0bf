/* Records become a detector's fields and true objects: which boxes are kept, how they follow the
 * picture, how anchors are matched, what a whole batch adds, and the way back to pixels. */
#include "samples_common.h"

#include <pumice/draw.h>

/* ---- tests -------------------------------------------------------------------------------- */

static void training_fields(void **state)
{
    struct setup s = set_up(CONFIG("}}"));
    struct pm_objects o;
    struct made m;

    (void)state;
    assert_int_equal(s.e->facts.num_classes, 4);
    assert_int_equal(s.e->train_fields.count, 6);
    assert_int_equal(s.e->train_fields.list[PM_FIELD_MATCHES].shape.dim[0], ANCHORS);
    pm_objects_start(&o, 64, 48);
    o.has = PM_HAS_TEXT | PM_HAS_CROWD;
    add(&o, "a cow", 0.1f, 0.2f, 0.4f, 0.6f);
    add(&o, "cat", 0.5f, 0.5f, 0.5f, 0.9f); /* no area */
    add(&o, "dog", -0.5f, 0.5f, 0.5f, 1.5f);
    add(&o, "dog", 0.6f, 0, 1, 1)->is_crowd = true;
    made(&s, true, &o, &m);
    assert_box(m.boxes[0], 0.1, 0.2, 0.4, 0.6);
    assert_box(m.boxes[1], 0, 0.5, 0.5, 1);
    assert_box(m.boxes[2], 0.6, 0, 1, 1);
    assert_int_equal(m.classes[0], 3);
    assert_int_equal(m.classes[1], 1);
    assert_true(m.weights[0] == 1 && m.weights[1] == 1 && m.weights[2] == 0);
    assert_true(m.weights[3] == 0 && m.boxes[3][2] == 0);
    int positive[3] = { 0 };
    for (int k = 0; k < ANCHORS; k++) {
        assert_in_range(m.matches[k] + 2, 0, 4);
        if (m.matches[k] >= 0)
            positive[m.matches[k]]++;
    }
    assert_true(positive[0] > 0 && positive[1] > 0);
    pm_objects_free(&o);
    tear_down(&s);
}

/* Nine boxes of different sizes, of which six have room. */
static void largest_are_kept(void **state)
{
    struct setup s = set_up(CONFIG("}}"));
    struct pm_objects o;
    struct made m;

    (void)state;
    pm_objects_start(&o, 40, 40);
    o.has = PM_HAS_TEXT;
    for (int i = 0; i < 9; i++)
        add(&o, "cat", 0, 0, 0.1f * (float)(1 + i * 4 % 9), 0.5f);
    made(&s, true, &o, &m);
    for (int k = 0, n = 0; k < 9; k++)
        if (1 + k * 4 % 9 > 3)
            assert_box(m.boxes[n++], 0, 0, 0.1 * (1 + k * 4 % 9), 0.5);
    made(&s, false, &o, &m);
    assert_int_equal(m.truths->count, 9);
    pm_detection_free_truths(m.truths);
    pm_objects_free(&o);
    tear_down(&s);
}

static void boxes_follow_the_picture(void **state)
{
    struct setup s =
        set_up(CONFIG(", \"augment\": [{\"name\": \"random_flip\"}, {\"name\": \"resize\"}]}}"));
    struct pm_objects o;
    struct made m;
    int flipped = 0;

    (void)state;
    pm_objects_start(&o, 50, 60);
    o.has = PM_HAS_TEXT;
    add(&o, "cat", 0.1f, 0.2f, 0.3f, 0.9f);
    for (uint64_t step = 0; step < 20; step++) {
        assert_int_equal(make_step(&s, true, &o, step, &m), PM_OK);
        const bool is = m.images[0] > 0; /* the white half is left */

        flipped += is;
        assert_box(m.boxes[0], 0.1, is ? 0.1 : 0.2, 0.3, is ? 0.8 : 0.9);
    }
    assert_in_range(flipped, 2, 18);
    pm_objects_free(&o);
    tear_down(&s);
}

/* Evaluation keeps every object as the file has it. */
static void truths_of_evaluation(void **state)
{
    struct setup s = set_up(CONFIG("}}"));
    struct pm_objects o;
    struct made m;
    struct pm_object *one;

    (void)state;
    pm_objects_start(&o, 50, 100);
    o.has = PM_HAS_TEXT | PM_HAS_CROWD | PM_HAS_AREA | PM_HAS_DIFFICULT | PM_HAS_GROUP_OF;
    one = add(&o, "dog", 0.1f, 0.2f, 0.4f, 1.2f);
    one->is_crowd = true;
    one->area = 77;
    add(&o, "cat", 0, 0, 1, 1)->difficult = true;
    add(&o, "cat", 0, 0, 0.5f, 0)->group_of = true; /* no area */
    made(&s, false, &o, &m);
    assert_int_equal(m.truths->height, 50);
    assert_int_equal(m.truths->width, 100);
    assert_string_equal(m.truths->name, "17");
    assert_int_equal(m.truths->count, 2);
    assert_true(m.truths->truth[0].crowd && m.truths->truth[0].area == 77);
    assert_int_equal(m.truths->truth[0].label, 1);
    assert_true(fabs(m.truths->truth[0].box.v[3] - 120) < 1e-4);
    assert_true(m.truths->truth[1].difficult && isnan(m.truths->truth[1].area));
    pm_detection_free_truths(m.truths);
    pm_objects_free(&o);
    tear_down(&s);
}

static void damaged_records(void **state)
{
    struct setup s = set_up(CONFIG("}}"));
    struct pm_objects o;
    struct made m;

    (void)state;
    pm_objects_start(&o, 40, 40);
    o.has = PM_HAS_TEXT;
    add(&o, "catt", 0, 0, 1, 1);
    assert_int_equal(make_step(&s, true, &o, 0, &m), PM_ECORRUPT);
    assert_contains(pm_error_text(), "did you mean \"cat\"?");
    o.has = PM_HAS_LABEL;
    o.item[0].label = 3; /* a gap of the map */
    assert_int_equal(make_step(&s, false, &o, 0, &m), PM_ECORRUPT);
    assert_null(m.truths);
    o.item[0].label = 4;
    made(&s, true, &o, &m);
    assert_int_equal(m.classes[0], 3);
    pm_objects_free(&o);
    tear_down(&s);
}

/* An augmentation must not make a class that the net does not have. */
static void remapped_classes(void **state)
{
#define REMAP(to)                                                                                  \
    CONFIG(", \"augment\": [{\"name\": \"remap_labels\", \"original_labels\": [1], "              \
           "\"new_label\": " to "}, {\"name\": \"resize\"}]}}")
    struct setup good = set_up(REMAP("2")), bad = set_up(REMAP("5"));
    struct pm_objects o;
    struct made m;

    (void)state;
    pm_objects_start(&o, 40, 40);
    o.has = PM_HAS_TEXT;
    add(&o, "cat", 0, 0, 1, 1);
    made(&good, true, &o, &m);
    assert_int_equal(m.classes[0], 1);
    assert_int_equal(make_step(&bad, true, &o, 0, &m), PM_ECONFIG);
    assert_contains(pm_error_text(), "r: input.augment gives an object the class number 5, "
                                     "which is outside 1..4");
    pm_objects_free(&o);
    tear_down(&good);
    tear_down(&bad);
}

/* A picture without objects is all background. */
static void no_objects(void **state)
{
    struct setup s = set_up(CONFIG("}}"));
    struct pm_objects o;
    struct made m;

    (void)state;
    pm_objects_start(&o, 40, 40);
    made(&s, true, &o, &m);
    for (int k = 0; k < ANCHORS; k++)
        assert_int_equal(m.matches[k], PM_NEGATIVE);
    assert_true(m.weights[0] == 0);
    pm_objects_free(&o);
    tear_down(&s);
}

/* The divisor is the sum of the matched anchors' weights over all examples, at least 1; the missing
 * examples of a short batch get it, too. */
static void divisor_of_a_batch(void **state)
{
    struct setup s = set_up(CONFIG("}}"));
    struct pm_sampler sampler = { s.e->task, true, s.e->task_row };
    float weights[3][MOST] = { { 1, 0.5f }, { 2 }, { 9 } }, divisor[3], boxes[1], images[1];
    int32_t matches[3][ANCHORS], classes[1];
    void *fields[] = { images, boxes, classes, weights, matches, divisor };
    struct pm_batch b = { .field = fields, .frame = { SIDE, SIDE }, .examples = 3, .valid = 2 };
    double numbers[PM_MAX_BATCH_METRICS];

    (void)state;
    for (int k = 0; k < ANCHORS; k++) {
        matches[0][k] = k < 3 ? 0 : k < 5 ? 1 : k < 7 ? PM_IGNORED : PM_NEGATIVE;
        matches[1][k] = PM_NEGATIVE;
        matches[2][k] = 0;
    }
    s.e->task_row->whole_batch(&sampler, &b);
    for (int i = 0; i < 3; i++)
        assert_true(divisor[i] == 4);
    assert_true(b.sum == 4);
    s.e->task_row->set_sum(&sampler, &b, 7); /* another process has more */
    for (int i = 0; i < 3; i++)
        assert_true(divisor[i] == 7);
    matches[1][0] = 0;
    s.e->task_row->whole_batch(&sampler, &b);
    assert_true(divisor[0] == 6);
    s.e->task_row->measure_batch(s.e->task, &b, numbers);
    assert_true(numbers[0] == 3 && numbers[1] == 3 && numbers[2] == 6);
    assert_true(numbers[3] == 2 * (ANCHORS - 4) && numbers[4] == 2);
    b.valid = 0;
    s.e->task_row->whole_batch(&sampler, &b);
    assert_true(divisor[1] == 1);
    tear_down(&s);
}

/* A wide picture is padded below: the input's lower half is outside of it. */
static void back_to_pixels(void **state)
{
    struct setup s = set_up(CONFIG(", \"resizer\": \"keep_aspect_ratio\"}}"));
    const float boxes[] = { 0.125f, 0.25f, 0.375f, 0.5f, 0.25f, -1, 0.75f, NAN };
    struct pm_box out[2];

    (void)state;
    assert_int_equal(pm_detection_to_pixels(s.e->task, (struct pm_frame){ SIDE, SIDE }, 100, 200,
                                            boxes, 2, out), PM_OK);
    assert_true(fabs(out[0].v[0] - 25) < 1e-4 && fabs(out[0].v[1] - 50) < 1e-4);
    assert_true(fabs(out[0].v[2] - 75) < 1e-4 && fabs(out[0].v[3] - 100) < 1e-4);
    assert_true(fabs(out[1].v[0] - 50) < 1e-4 && out[1].v[1] == 0);
    assert_true(out[1].v[2] == 100 && out[1].v[3] == 0);
    tear_down(&s);
}

static void assert_targets(const struct made *m, int row, float a, float b, float c, float d)
{
    const float want[] = { a, b, c, d };

    for (int k = 0; k < CLASSES; k++)
        if (fabsf(m->targets[row][k] - want[k]) > 1e-6f)
            fail_msg("row %d, class %d: %g instead of %g", row, k, (double)m->targets[row][k],
                     (double)want[k]);
}

/* Adds a box whose coordinates are in steps of 1/9999, in which boxes are compared. */
static struct pm_object *add_steps(struct pm_objects *o, const char *text, float y0, float x0,
                                   float y1, float x1)
{
    return add(o, text, y0 / 9999, x0 / 9999, y1 / 9999, x1 / 9999);
}

/* Equal boxes are merged in the order of the first ones, before the largest six are chosen. */
static void equal_boxes_share_labels(void **state)
{
    struct setup s = set_up_data(CONFIG("}}"), ", \"merge_multiple_label_boxes\": true");
    struct pm_objects o;
    struct made m;

    (void)state;
    assert_int_equal(s.e->train_fields.list[PM_FIELD_CLASSES].shape.dim[1], CLASSES);
    pm_objects_start(&o, 64, 48);
    o.has = PM_HAS_TEXT | PM_HAS_CROWD | PM_HAS_WEIGHT;
    add_steps(&o, "cat", 1000.3f, 2000.3f, 4000.3f, 6000.3f)->weight = 0.5f;
    add_steps(&o, "dog", 5000.3f, 5000.3f, 9000.3f, 9000.3f);
    add_steps(&o, "dog", 1000.7f, 2000.7f, 4000.7f, 6000.7f)->weight = 2; /* the first's steps */
    add_steps(&o, "cat", 1000.3f, 2000.3f, 4000.3f, 6000.3f);
    add_steps(&o, "a cow", 1001.3f, 2000.3f, 4000.3f, 6000.3f); /* the next step */
    add_steps(&o, "a cow", 5000.3f, 5000.3f, 9000.3f, 9000.3f)->is_crowd = true;
    add_steps(&o, "cat", 0.3f, 0.3f, 500.3f, 500.3f)->is_crowd = true;
    add_steps(&o, "dog", 0.3f, 0.3f, 500.3f, 500.3f);
    add_steps(&o, "a cow", 0.3f, 0.3f, 700.3f, 500.3f)->is_crowd = true;
    made(&s, true, &o, &m);
    assert_targets(&m, 0, 1, 1, 0, 0);
    assert_targets(&m, 1, 0, 1, 0, 1);
    assert_targets(&m, 2, 0, 0, 0, 1);
    assert_targets(&m, 3, 1, 1, 0, 0);
    assert_targets(&m, 4, 0, 0, 0, 1);
    assert_targets(&m, 5, 0, 0, 0, 0);
    assert_box(m.boxes[0], 1000.3 / 9999, 2000.3 / 9999, 4000.3 / 9999, 6000.3 / 9999);
    assert_box(m.boxes[2], 1001.3 / 9999, 2000.3 / 9999, 4000.3 / 9999, 6000.3 / 9999);
    assert_true(m.weights[0] == 2 && m.weights[1] == 1 && m.weights[2] == 1);
    assert_true(m.weights[3] == 1 && m.weights[4] == 0 && m.boxes[5][2] == 0);
    assert_int_equal(pm_detection_class_of(s.e->task, m.targets, 1), 1);
    assert_int_equal(pm_detection_class_of(s.e->task, m.targets, 2), 3);
    made(&s, false, &o, &m); /* the truths of metrics stay as they are */
    assert_int_equal(m.truths->count, 9);
    pm_detection_free_truths(m.truths);
    pm_objects_free(&o);
    tear_down(&s);
}

static void soft_labels(void **state)
{
    struct setup s = set_up_data(CONFIG("}}"), ", \"multiclass_scores\": true");
    static const float scores[] = { 0.1f, 0.2f, 0.3f, 0.4f, 9, 9, 9, 9, 0.5f, 0, 0.25f, 2 };
    struct pm_objects o;
    struct made m;

    (void)state;
    pm_objects_start(&o, 64, 48);
    o.has = PM_HAS_TEXT;
    add(&o, "dog", 0.1f, 0.2f, 0.4f, 0.6f);
    add(&o, "cat", 0.5f, 0.5f, 0.5f, 0.9f); /* no area */
    add(&o, "a cow", 0.1f, 0.2f, 0.4f, 0.6f);
    made(&s, true, &o, &m); /* a record without soft labels */
    assert_targets(&m, 0, 0, 1, 0, 0);
    assert_targets(&m, 1, 0, 0, 0, 1);
    assert_targets(&m, 2, 0, 0, 0, 0);
    o.has |= PM_HAS_SCORES;
    o.score_count = CLASSES;
    for (size_t i = 0; i < 3; i++)
        o.item[i].scores = scores + CLASSES * i;
    made(&s, true, &o, &m);
    assert_targets(&m, 0, 0.1f, 0.2f, 0.3f, 0.4f);
    assert_targets(&m, 1, 0.5f, 0, 0.25f, 2);
    assert_targets(&m, 2, 0, 0, 0, 0);
    assert_true(m.weights[0] == 1 && m.weights[1] == 1 && m.weights[2] == 0);
    o.score_count = 3;
    assert_int_equal(make_step(&s, true, &o, 0, &m), PM_ECORRUPT);
    assert_contains(pm_error_text(), "r: image/object/class/multiclass_scores has 3 values");
    assert_contains(pm_error_text(), "there are 4 classes");
    assert_null(strchr(pm_error_text(), '\n'));
    pm_objects_free(&o);
    tear_down(&s);
}

static int matched(const struct setup *s, const struct pm_objects *o)
{
    struct made m;
    int count = 0;

    made(s, true, o, &m);
    for (int k = 0; k < ANCHORS; k++)
        count += m.matches[k] >= 0;
    return count;
}

/* thresholded_iou compares the sum of an object's soft labels with the thresholds. */
static void soft_scores(void **state)
{
    struct setup s = set_up_data(CONFIG("}}"), ", \"multiclass_scores\": true");
    float scores[] = { 0.1f, 0.2f, 0.1f, 0.1f };
    struct pm_objects o;

    (void)state;
    s.e->task->matcher = (struct pm_matcher){
        .similarity = PM_THRESHOLDED_IOU, .iou_threshold = 0.3f, .matched_threshold = 0.6f,
        .unmatched_threshold = 0.6f, .negatives_lower_than_unmatched = true };
    pm_objects_start(&o, 32, 32);
    o.has = PM_HAS_TEXT | PM_HAS_SCORES;
    o.score_count = CLASSES;
    add(&o, "dog", 0.2f, 0.2f, 0.8f, 0.8f)->scores = scores;
    assert_int_equal(matched(&s, &o), 0);
    scores[1] = 0.5f;
    assert_true(matched(&s, &o) > 0);
    pm_objects_free(&o);
    tear_down(&s);
}

/* Two matched anchors of eight and a share of a half: two random negatives count. A matched anchor
 * of weight 0 is none. */
static void sampled_anchors(void **state)
{
    static const float weights[] = { 1, 0 };
    struct setup s = set_up(CONFIG("}, \"loss\": {\"random_example_sampler\": "
                                   "{\"positive_sample_fraction\": 0.5}}}"));
    int times[8] = { 0 };

    (void)state;
    for (uint32_t step = 0; step < 3000; step++) {
        const struct pm_loader_record r = { .seed = 3, .step = step, .example = 1 };
        int32_t matches[] = { 0, -1, -1, 1, -1, -2, 0, -1 }, again[8], kept = 0;

        memcpy(again, matches, sizeof again);
        pm_detection_sample_anchors(s.e->task, &r, weights, matches, 8);
        pm_detection_sample_anchors(s.e->task, &r, weights, again, 8);
        assert_memory_equal(matches, again, sizeof again);
        assert_true(matches[0] == 0 && matches[3] == 1 && matches[5] == -2 && matches[6] == 0);
        for (int k = 0; k < 8; k++)
            kept += matches[k] == PM_NEGATIVE, times[k] += matches[k] == PM_NEGATIVE;
        assert_int_equal(kept, 2);
    }
    /* each of four with probability 1/2; 6 standard deviations are 164 */
    for (int k = 0; k < 8; k++)
        assert_true(times[k] == 0 || abs(times[k] - 1500) < 164);
    assert_true(times[1] && times[2] && times[4] && times[7]);
    tear_down(&s);
}

/* Without a matched anchor none counts. A share of 1/100 keeps 99 negatives for each match. */
static void sampled_in_training(void **state)
{
    struct setup s = set_up(CONFIG("}, \"loss\": {\"random_example_sampler\": {}}}"));
    struct pm_objects o;
    struct made m;

    (void)state;
    pm_objects_start(&o, 40, 40);
    made(&s, true, &o, &m);
    for (int k = 0; k < ANCHORS; k++)
        assert_int_equal(m.matches[k], PM_IGNORED);
    o.has = PM_HAS_TEXT;
    add(&o, "cat", 0, 0, 1, 1);
    made(&s, true, &o, &m);
    for (int k = 0; k < ANCHORS; k++)
        assert_int_not_equal(m.matches[k], PM_IGNORED);
    pm_objects_free(&o);
    tear_down(&s);
}

static void not_both(void **state)
{
    struct setup s;

    (void)state;
    assert_int_equal(open_setup(CONFIG("}}"), ", \"merge_multiple_label_boxes\": true, "
                                "\"multiclass_scores\": true", &s), PM_ECONFIG);
    assert_contains(pm_error_text(), "data.multiclass_scores: true is not possible together with "
                                     "data.merge_multiple_label_boxes");
    tear_down(&s);
}

static bool has_color(const struct pm_image8 *im, int y, int x0, int x1, struct pm_color c)
{
    for (int x = x0; x < x1; x++)
        if (memcmp(im->pixels + 3 * (y * im->width + x), &c, 3) == 0)
            return true;
    return false;
}

/* TensorBoard's picture is the training picture, enlarged, with the truth's boxes and the centres
 * of matched anchors. It is the second example of two; the first is black and has no objects. */
static void painted(void **state)
{
    struct setup s = set_up(CONFIG("}}"));
    struct pm_drawings drawings = { 0 };
    struct made m[2] = { 0 };
    struct { float images[2][SIDE * SIDE * 3], boxes[2][MOST][4], weights[2][MOST];
             int32_t classes[2][MOST], matches[2][ANCHORS]; } b = { 0 };
    struct pm_objects o;

    (void)state;
    pm_objects_start(&o, 64, 64);
    o.has = PM_HAS_TEXT;
    add(&o, "a cow", 0.25f, 0.125f, 0.75f, 0.625f);
    made(&s, true, &o, &m[1]);
    memcpy(b.images[1], m[1].images, sizeof m[1].images);
    memcpy(b.boxes[1], m[1].boxes, sizeof m[1].boxes);
    memcpy(b.weights[1], m[1].weights, sizeof m[1].weights);
    memcpy(b.classes[1], m[1].classes, sizeof m[1].classes);
    memcpy(b.matches[1], m[1].matches, sizeof m[1].matches);
    s.e->task_row->paint(s.e->task, &(struct pm_shown){ .count = 2, .frame = { SIDE, SIDE },
        .field = (const void *[]){ b.images, b.boxes, b.classes, b.weights, b.matches } }, 1,
        &drawings);
    assert_int_equal(drawings.count, 1);
    assert_string_equal(drawings.list[0].what, "truth");
    const struct pm_image8 *im = &drawings.list[0].image;
    const struct pm_color cow = pm_draw_color(3);
    assert_int_equal(im->height, 608); /* 19 pixels for each */
    assert_int_equal(im->width, 608);
    assert_true(im->pixels[3 * (600 * 608 + 10)] < 10 && im->pixels[3 * (600 * 608 + 598)] == 255);
    assert_true(has_color(im, 304, 76, 90, cow));        /* the left side */
    assert_true(has_color(im, 304, 380 - 14, 380, cow)); /* the right side */
    assert_false(has_color(im, 600, 0, 608, cow));
    pm_drawings_free(&drawings);
    pm_objects_free(&o);
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_fields),      cmocka_unit_test(largest_are_kept),
        cmocka_unit_test(boxes_follow_the_picture), cmocka_unit_test(truths_of_evaluation),
        cmocka_unit_test(damaged_records),      cmocka_unit_test(no_objects),
        cmocka_unit_test(divisor_of_a_batch),   cmocka_unit_test(back_to_pixels),
        cmocka_unit_test(remapped_classes),
        cmocka_unit_test(equal_boxes_share_labels), cmocka_unit_test(soft_labels),
        cmocka_unit_test(soft_scores), cmocka_unit_test(sampled_anchors),
        cmocka_unit_test(sampled_in_training),
        cmocka_unit_test(not_both),             cmocka_unit_test(painted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
