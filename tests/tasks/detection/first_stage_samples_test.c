/* What Faster R-CNN's first stage changes in the samples: one class, pruned and clipped anchors,
 * and a few random anchors of each picture with a divisor of its own. */
#include "samples_common.h"

/* One class: the logits of an anchor are those of the background and of the object. */
#define FIRST(model, more)                                                                         \
    "{\"task\": \"detection\", \"model\": {" model "\"layers\": [\n"                              \
    "  {\"name\": \"m1\", \"layer\": \"conv2d\", \"filters\": 4, \"kernel\": 8, \"stride\": 8},\n" \
    "  {\"name\": \"m2\", \"layer\": \"conv2d\", \"filters\": 4, \"kernel\": 2, \"stride\": 2},\n" \
    "  {\"name\": \"anchors\", \"layer\": \"ssd_anchors\", \"aspect_ratios\": [1], "               \
    "\"min_scale\": 0.3, \"reduce_boxes_in_lowest_layer\": false, "                                \
    "\"inputs\": [\"images\", \"m1\", \"m2\"]},\n"                                                 \
    "  {\"name\": \"boxes_1\", \"layer\": \"conv2d\", \"inputs\": [\"m1\"], \"filters\": 8},\n"    \
    "  {\"name\": \"classes_1\", \"layer\": \"conv2d\", \"inputs\": [\"m1\"], \"filters\": 4},\n"  \
    "  {\"name\": \"boxes_2\", \"layer\": \"conv2d\", \"inputs\": [\"m2\"], \"filters\": 8},\n"    \
    "  {\"name\": \"classes_2\", \"layer\": \"conv2d\", \"inputs\": [\"m2\"], \"filters\": 4}]},"  \
    " \"data\": {\"max_boxes\": 6, \"class_agnostic\": true, \"label_map\": \"%s\"},"            \
    " \"loss\": {\"classification\": {\"type\": \"weighted_softmax\"}" more "},"                   \
    " \"input\": {\"size\": 32, \"preprocessing\": \"ssd\"}}"
#define MINIBATCH(text) ", \"minibatch_sampler\": " text

static void start(struct pm_objects *o)
{
    pm_objects_start(o, 40, 40);
    o->has = PM_HAS_TEXT | PM_HAS_CROWD;
}

/* Every object is of the class 0, also one that the label map does not have. */
static void one_class(void **state)
{
    struct setup s = set_up(FIRST("", ""));
    struct pm_objects o;
    struct made m;

    (void)state;
    assert_int_equal(s.e->facts.num_classes, 1);
    assert_string_equal(s.e->facts.labels[0], "object");
    start(&o);
    add(&o, "dog", 0, 0, 1, 1);
    add(&o, "unicorn", 0.5f, 0.5f, 1, 1);
    made(&s, true, &o, &m);
    assert_true(m.weights[0] == 1 && m.weights[1] == 1 && m.weights[2] == 0);
    assert_true(m.classes[0] == 0 && m.classes[1] == 0);
    made(&s, false, &o, &m);
    assert_int_equal(m.truths->count, 2);
    assert_int_equal(m.truths->truth[0].label, 0);
    assert_int_equal(m.truths->truth[1].label, 0);
    pm_detection_free_truths(m.truths);
    pm_objects_free(&o);
    tear_down(&s);
}

static void refused(void **state)
{
    static const struct { const char *text, *data, *message; } cases[] = {
        { FIRST("\"num_classes\": 4, ", ""), "", "model.num_classes: 4, but with "
                                                 "data.class_agnostic there is one class" },
        { FIRST("", ""), ", \"multiclass_scores\": true",
          "data.multiclass_scores: true is not possible together with data.class_agnostic" },
        { FIRST("", MINIBATCH("{}") ", \"random_example_sampler\": {}"), "",
          "loss.random_example_sampler: not together with loss.minibatch_sampler, which chooses" },
        { FIRST("", MINIBATCH("{}") ", \"hard_example_miner\": {}"), "",
          "loss.hard_example_miner: not together with loss.minibatch_sampler" },
        { FIRST("", MINIBATCH("{}") ", \"normalize_over\": \"clone\""), "",
          "loss.normalize_over: not together with loss.minibatch_sampler" },
        { FIRST("", MINIBATCH("{}") ", \"normalize_by_matches\": false"), "",
          "loss.normalize_by_matches: not together with loss.minibatch_sampler" },
        { FIRST("", MINIBATCH("{\"batch_size\": 0}")), "", "batch_size" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct setup s;

        assert_int_equal(open_setup(cases[i].text, cases[i].data, &s), PM_ECONFIG);
        assert_contains(pm_error_text(), cases[i].message);
        tear_down(&s);
    }
}

static int count(const int32_t *matches, int n, bool positive)
{
    int found = 0;

    for (int k = 0; k < n; k++)
        found += positive ? matches[k] >= 0 : matches[k] == PM_NEGATIVE;
    return found;
}

/* The sampler chooses four of twelve anchors. Two of them match a box, because the positive
 * fraction is 1/2. It never chooses the anchor that matches a box of weight 0. Each choice is
 * equally likely. The same step makes the same choice again. */
static void minibatch(void **state)
{
    static const float weights[] = { 1, 0 };
    static const int32_t start[] = { 0, -1, -1, 1, -1, -2, 0, -1, 0, -1, 0, -1 };
    struct setup s = set_up(FIRST("", MINIBATCH("{\"batch_size\": 4}")));
    int times[12] = { 0 };

    (void)state;
    for (uint32_t step = 0; step < 3000; step++) {
        const struct pm_loader_record r = { .seed = 3, .step = step, .example = 1 };
        int32_t matches[12], again[12];

        memcpy(matches, start, sizeof start);
        memcpy(again, start, sizeof start);
        assert_int_equal(pm_detection_sample_minibatch(s.e->task, &r, weights, matches, 12), 4);
        pm_detection_sample_minibatch(s.e->task, &r, weights, again, 12);
        assert_memory_equal(matches, again, sizeof again);
        assert_int_equal(count(matches, 12, true), 2);
        assert_int_equal(count(matches, 12, false), 2);
        for (int k = 0; k < 12; k++) {
            assert_true(matches[k] == start[k] || matches[k] == PM_IGNORED);
            times[k] += matches[k] != PM_IGNORED;
        }
    }
    assert_true(times[3] == 0 && times[5] == 0);
    /* a matched one with probability 1/2, a negative one with 1/3; 6 standard deviations are 164 */
    for (int k = 0; k < 12; k++)
        if (times[k])
            assert_true(abs(times[k] - (start[k] == 0 ? 1500 : 1000)) < 164);
    tear_down(&s);
}

/* Negative anchors fill what is left; fewer anchors than asked for all count; 0 is possible. */
static void minibatch_sizes(void **state)
{
    static const struct { int32_t start[4]; int positive, negative; } cases[] = {
        { { 0, -1, -1, -1 }, 1, 1 }, { { 0, 0, 0, -1 }, 1, 1 }, { { 0, 0, 0, 0 }, 1, 0 },
        { { -1, -1, -1, -1 }, 0, 2 }, { { 0, -2, -2, -2 }, 1, 0 }, { { -2, -2, -2, -2 }, 0, 0 },
    };
    static const float weights[] = { 1 };
    struct setup s = set_up(FIRST("", MINIBATCH("{\"batch_size\": 2}")));

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        const struct pm_loader_record r = { .seed = 3 };
        int32_t matches[4];

        memcpy(matches, cases[i].start, sizeof matches);
        assert_int_equal(pm_detection_sample_minibatch(s.e->task, &r, weights, matches, 4),
                         cases[i].positive + cases[i].negative);
        assert_int_equal(count(matches, 4, true), cases[i].positive);
        assert_int_equal(count(matches, 4, false), cases[i].negative);
    }
    tear_down(&s);
}

/* int(fraction * size), in double precision: 0.01 of 100 is 0, because the float 0.01 is
 * smaller. */
static void minibatch_fractions(void **state)
{
    static const struct { const char *options; int positive, negative; } cases[] = {
        { MINIBATCH("{\"batch_size\": 100, \"positive_fraction\": 0.01}"), 0, 100 },
        { MINIBATCH("{\"batch_size\": 100, \"positive_fraction\": 0}"), 0, 100 },
        { MINIBATCH("{\"batch_size\": 100, \"positive_fraction\": 1}"), 100, 0 },
        { MINIBATCH("{\"batch_size\": 100, \"positive_fraction\": 0.25}"), 25, 75 },
    };
    static const float weights[] = { 1 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_str text = { 0 };
        int32_t matches[400];

        pm_str_add(&text, FIRST("", "%s"), "%s", cases[i].options);
        struct setup s = set_up(text.text);
        for (int k = 0; k < 400; k++)
            matches[k] = k % 2 ? 0 : PM_NEGATIVE;
        pm_detection_sample_minibatch(s.e->task, &(struct pm_loader_record){ .seed = 3 }, weights,
                                      matches, 400);
        assert_int_equal(count(matches, 400, true), cases[i].positive);
        assert_int_equal(count(matches, 400, false), cases[i].negative);
        tear_down(&s);
        pm_str_free(&text);
    }
}

/* The divisor is the example's own number, at least 1, whatever the batch holds. */
static void own_normalizer(void **state)
{
    struct setup s = set_up(FIRST("", MINIBATCH("{\"batch_size\": 10}")));
    struct pm_sampler sampler = { s.e->task, true, s.e->task_row };
    struct pm_objects o;
    struct made m;

    (void)state;
    start(&o);
    made(&s, true, &o, &m);
    assert_true(m.normalizer == 10); /* all negative */
    add(&o, "cat", 0, 0, 1, 1);
    made(&s, true, &o, &m);
    assert_int_equal(count(m.matches, ANCHORS, true) + count(m.matches, ANCHORS, false), 10);
    assert_true(m.normalizer == 10);
    m.normalizer = 7;
    void *fields[] = { m.images, m.boxes, m.classes, m.weights, m.matches, &m.normalizer };
    struct pm_batch b = { .field = fields, .examples = 1, .valid = 1, .frame = { SIDE, SIDE } };

    pm_detection_whole_batch(&sampler, &b);
    pm_detection_set_sum(&sampler, &b, 99);
    assert_true(m.normalizer == 7);
    b.examples = 4; /* of the last batch of an evaluation: the mean of the valid one */
    pm_detection_whole_batch(&sampler, &b);
    assert_true(m.normalizer == 1.75f);
    /* Pictures of their own sizes have no normalizer, even if one has the frame of training. */
    sampler.train = false;
    s.e->task->facts.own_sizes = true;
    pm_detection_whole_batch(&sampler, &b);
    pm_detection_set_sum(&sampler, &b, 99);
    assert_true(m.normalizer == 1.75f);
    pm_objects_free(&o);
    tear_down(&s);
}

/* Anchors of cells at the border reach outside: with prune they never count, with clip their boxes
 * end at the border, with keep they count and keep their boxes. */
static void outside(void **state)
{
    static const char *const texts[] = {
        FIRST("\"anchors_outside\": \"keep\", ", ""), FIRST("\"anchors_outside\": \"prune\", ", ""),
        FIRST("\"anchors_outside\": \"clip\", ", ""),
    };
    int crossing = 0;

    (void)state;
    for (int k = 0; k < 3; k++) {
        struct setup s = set_up(texts[k]);
        const struct pm_detection_anchors *a =
            pm_detection_anchors_of(s.e->task, (struct pm_frame){ SIDE, SIDE });
        struct pm_objects o;
        struct made m;

        start(&o);
        made(&s, true, &o, &m);
        for (int i = 0; i < ANCHORS; i++) {
            float box[4];

            pm_anchor_index_box(a->index, i, box);
            const bool inside = box[0] >= 0 && box[1] >= 0 && box[2] <= 1 && box[3] <= 1;

            if (k == 0)
                crossing += !inside;
            assert_true(k != 2 || inside);
            assert_int_equal(m.matches[i], k == 1 && !inside ? PM_IGNORED : PM_NEGATIVE);
        }
        pm_objects_free(&o);
        tear_down(&s);
    }
    assert_true(crossing > 0 && crossing < ANCHORS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_class),       cmocka_unit_test(refused),
        cmocka_unit_test(minibatch),       cmocka_unit_test(minibatch_sizes),
        cmocka_unit_test(minibatch_fractions),
        cmocka_unit_test(own_normalizer),  cmocka_unit_test(outside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
