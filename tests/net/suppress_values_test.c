/* suppress on values that random inputs never hold, on the CPU and every device: overlaps and
 * scores equal to their thresholds, boxes without area, NaN, equal scores, none, one and 101
 * detections, more candidates than a selection. Also a random scene with many overlaps next to the
 * threshold, where all devices must agree. */
#include <pumice/plan.h>
#include <pumice/rng.h>

#include "device/every_device.h"

enum { MOST = 120 };

struct scene {
    const char *options;
    int n, classes;
    const float (*boxes)[4];
    const float *scores; /* [n][classes] */
    const float *window; /* or NULL */
    int count;
    const int *anchors, *of; /* of the detections; their classes or NULL for 0 */
    const float *first;      /* the first detection's box, or NULL */
};

struct found {
    int count, anchors[MOST * 16], of[MOST * 16];
    float boxes[MOST * 16][4], scores[MOST * 16];
};

static void run(struct pm_device *d, const struct scene *s, struct found *out)
{
    static const char *const outputs[] = { "y", "y:1", "y:2", "y:3", "y:4", NULL };
    const struct pm_plan_options options = { .outputs = outputs, .slots = 1, .loss_share = 1 };
    struct pm_net *net = pm_net_create();
    struct pm_variables *variables = NULL;
    struct pm_plan *plan = NULL;
    struct pm_node *in[3];

    in[0] = pm_net_input(net, "boxes", PM_SHAPE3(1, s->n, 4), PM_F32);
    in[1] = pm_net_input(net, "scores", PM_SHAPE3(1, s->n, s->classes), PM_F32);
    if (s->window)
        in[2] = pm_net_input(net, "windows", PM_SHAPE2(1, 4), PM_F32);
    const struct pm_node *y =
        pm_net_add_many(net, "y", in, s->window ? 3 : 2, "suppress %s", s->options);
    ok(net->error);
    const size_t rows = (size_t)y->out_shape.dim[1];
    assert_true(rows <= PM_COUNT(out->of));
    ok(pm_variables_create(d, net, false, NULL, &variables));
    ok(pm_plan_create(net, d, variables, &options, &plan));
    ok(pm_plan_load(plan));
    memcpy(pm_plan_input(plan, 0, "boxes", 0), s->boxes, (size_t)s->n * sizeof *s->boxes);
    memcpy(pm_plan_input(plan, 0, "scores", 0), s->scores,
           (size_t)s->n * (size_t)s->classes * sizeof *s->scores);
    if (s->window)
        memcpy(pm_plan_input(plan, 0, "windows", 0), s->window, 4 * sizeof *s->window);
    ok(pm_plan_submit(plan, 0));
    ok(pm_plan_wait(plan, 0));
    memcpy(out->boxes, pm_plan_output(plan, 0, "y", 0), rows * sizeof *out->boxes);
    memcpy(out->scores, pm_plan_output(plan, 0, "y:1", 0), rows * sizeof *out->scores);
    memcpy(out->of, pm_plan_output(plan, 0, "y:2", 0), rows * sizeof *out->of);
    out->count = *(const int *)pm_plan_output(plan, 0, "y:3", 0);
    memcpy(out->anchors, pm_plan_output(plan, 0, "y:4", 0), rows * sizeof *out->anchors);
    for (size_t i = (size_t)out->count; i < rows; i++)
        assert_true(out->scores[i] == 0 && out->of[i] == 0 && out->anchors[i] == 0 &&
                    out->boxes[i][0] == 0 && out->boxes[i][3] == 0);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&variables);
    pm_net_destroy(&net);
}

static void expect(struct pm_device *d, const struct scene *s)
{
    static struct found f;

    run(d, s, &f);
    if (f.count != s->count)
        fail_msg("%s: %s: %d detections instead of %d", pm_device_get_info(d)->name, s->options,
                 f.count, s->count);
    for (int i = 0; i < s->count; i++)
        if (f.anchors[i] != s->anchors[i] || f.of[i] != (s->of ? s->of[i] : 0))
            fail_msg("%s: %s: detection %d is box %d of class %d instead of %d of %d",
                     pm_device_get_info(d)->name, s->options, i, f.anchors[i], f.of[i],
                     s->anchors[i], s->of ? s->of[i] : 0);
    for (int i = 0; i < 4 && s->first; i++)
        assert_float_equal(f.boxes[0][i], s->first[i], 1e-6);
}

#define BOXES(...) (const float[][4]){ __VA_ARGS__ }
#define FLOATS(...) (const float[]){ __VA_ARGS__ }
#define INTS(...) (const int[]){ __VA_ARGS__ }

/* The overlap of rows 0..3 and 1..4 is 2/4, of 0..4 and 1..5 it is 3/5; 0.6f is above 3/5, and the
 * quotient rounds to it. */
static void exact_overlaps(struct pm_device *d)
{
    const struct scene half = {
        "iou_threshold=0.5", 2, 1, BOXES({ 0, 0, 0.375f, 1 }, { 0.125f, 0, 0.5f, 1 }),
        FLOATS(0.9f, 0.8f), NULL, 2, INTS(0, 1), NULL, NULL };
    const struct scene more = {
        "iou_threshold=0.499999", 2, 1, BOXES({ 0, 0, 0.375f, 1 }, { 0.125f, 0, 0.5f, 1 }),
        FLOATS(0.8f, 0.9f), NULL, 1, INTS(1), NULL, NULL };
    const struct scene fifths = {
        "iou_threshold=0.6", 2, 1, BOXES({ 0, 0, 0.5f, 1 }, { 0.125f, 0, 0.625f, 1 }),
        FLOATS(0.9f, 0.8f), NULL, 2, INTS(0, 1), NULL, NULL };
    const struct scene tenths = { /* 7/10 is above 0.7f, but its float is not */
        "iou_threshold=0.7", 2, 1, BOXES({ 0, 0, 0.4375f, 1 }, { 0, 0, 0.625f, 1 }),
        FLOATS(0.9f, 0.8f), NULL, 2, INTS(0, 1), NULL, NULL };
    const struct scene equal = { /* an overlap of 1 is not above 1 */
        "iou_threshold=1", 2, 1, BOXES({ 0, 0, 0.3f, 1 }, { 0, 0, 0.3f, 1 }),
        FLOATS(0.9f, 0.8f), NULL, 2, INTS(0, 1), NULL, NULL };
    const struct scene touching = { /* an overlap of 0 is not above 0; corners in any order */
        "iou_threshold=0", 3, 1,
        BOXES({ 0, 0, 0.5f, 1 }, { 0.5f, 0, 1, 1 }, { 0.375f, 1, 0, 0.875f }),
        FLOATS(0.9f, 0.8f, 0.7f), NULL, 2, INTS(0, 1), NULL, NULL };

    expect(d, &half);
    expect(d, &more);
    expect(d, &fifths);
    expect(d, &tenths);
    expect(d, &equal);
    expect(d, &touching);
}

static void scores_at_the_threshold(struct pm_device *d)
{
    const float (*apart)[4] =
        BOXES({ 0, 0, 0.1f, 1 }, { 0.2f, 0, 0.3f, 1 }, { 0.4f, 0, 0.5f, 1 }, { 0.6f, 0, 0.7f, 1 },
              { 0.8f, 0, 0.9f, 1 });
    const struct scene limit = { "score_threshold=0.5", 5, 1, apart,
                                 FLOATS(0.5f, 0.50000006f, 0.49999997f, 0.7f, 0.5f), NULL, 2,
                                 INTS(3, 1), NULL, NULL };
    const struct scene zero = { "", 5, 1, apart, FLOATS(0, -0.0f, 1e-42f, -1, 1e-30f), NULL, 2,
                                INTS(4, 2), NULL, NULL };
    const struct scene nan = { "score_threshold=-5", 5, 1, apart,
                               FLOATS(NAN, -1, INFINITY, -NAN, -INFINITY), NULL, 2, INTS(2, 1),
                               NULL, NULL };
    const struct scene ties = { "score_threshold=-5 max_detections_per_class=3", 5, 2, apart,
                                FLOATS(1, 1, 1, 2, 0, 1, -0.0f, 1, 1, 1), NULL, 6,
                                INTS(1, 0, 1, 4, 0, 2), INTS(1, 0, 0, 0, 1, 1), NULL };

    expect(d, &limit);
    expect(d, &zero);
    expect(d, &nan);
    expect(d, &ties);
}

/* A box without area neither suppresses nor is suppressed; it is dropped at the end, and does not
 * count among the detections of an image, only among those of its class. */
static void no_area(struct pm_device *d)
{
    const float (*boxes)[4] =
        BOXES({ 0.25f, 0.25f, 0.25f, 0.75f }, { 0.25f, 0.25f, 0.75f, 0.75f },
              { 0.5f, 0.5f, 0.5f, 0.5f }, { 0.25f, 0.25f, 0.75f, 0.75f }, { 0, 2, 1, 3 },
              { -1, -1, 0.5f, 0.5f });
    const struct scene all = { "iou_threshold=0", 6, 1, boxes,
                               FLOATS(0.9f, 0.8f, 0.7f, 0.6f, 0.5f, 0.4f), NULL, 1, INTS(1), NULL,
                               NULL };
    const struct scene two = { "max_detections_per_class=2 max_total_detections=2", 6, 1, boxes,
                               FLOATS(0.9f, 0.8f, 0.7f, 0.6f, 0.5f, 0.4f), NULL, 1, INTS(1), NULL,
                               NULL };
    const struct scene total = { "iou_threshold=0.9 max_detections_per_class=1 "
                                 "max_total_detections=1", 6, 2, boxes,
                                 FLOATS(0.9f, 0, 0, 0.3f, 0, 0, 0, 0, 0, 0, 0, 0), NULL, 1,
                                 INTS(1), INTS(1), NULL };
    const struct scene clipped = { "iou_threshold=0.9", 6, 1, boxes,
                                   FLOATS(0, 0, 0, 0, 0.5f, 0.4f), NULL, 1, INTS(5), NULL,
                                   FLOATS(0, 0, 0.5f, 0.5f) };

    expect(d, &all);
    expect(d, &two);
    expect(d, &total);
    /* A corner that is not a number becomes the window's upper limit, on every device. */
    const struct scene nan = { "", 1, 1, BOXES({ 0.25f, 0.25f, NAN, 0.75f }), FLOATS(0.9f), NULL,
                               1, INTS(0), NULL, FLOATS(0.25f, 0.25f, 1, 0.75f) };

    expect(d, &clipped);
    expect(d, &nan);
}

static void windows(struct pm_device *d)
{
    const float (*boxes)[4] = BOXES({ 0.1f, 0.1f, 0.6f, 0.9f }, { 0.8f, 0, 1, 1 });
    const struct scene moved = { "", 2, 1, boxes, FLOATS(0.9f, 0.8f), FLOATS(0, 0, 0.5f, 0.8f), 1,
                                 INTS(0), NULL, FLOATS(0.2f, 0.125f, 1, 1) };
    const struct scene fixed = { "change_coordinate_frame=false", 2, 1, boxes,
                                 FLOATS(0.9f, 0.8f), FLOATS(0, 0, 0.5f, 0.8f), 1, INTS(0), NULL,
                                 FLOATS(0.1f, 0.1f, 0.5f, 0.8f) };

    expect(d, &moved);
    expect(d, &fixed);
}

/* 101 boxes that do not overlap: all, 100 and 1 of them, and none. Then 1,000, whose scores rise:
 * several selections, the best last. */
static void many(struct pm_device *d)
{
    static float boxes[1000][4], scores[1000];
    static int order[1000];
    struct scene s = { .n = 101, .classes = 1, .boxes = boxes, .scores = scores, .anchors = order };

    for (int i = 0; i < 1000; i++) {
        const float y = (float)(i / 40) / 25, x = (float)(i % 40) / 40;
        const float box[4] = { y, x, y + 0.03f, x + 0.02f };

        memcpy(boxes[i], box, sizeof box);
        scores[i] = (float)(1 + i) / 2000;
    }
    for (int i = 0; i < 101; i++)
        order[i] = 100 - i;
    s.options = "max_detections_per_class=110 max_total_detections=110", s.count = 101;
    expect(d, &s);
    s.options = "", s.count = 100;
    expect(d, &s);
    s.options = "score_threshold=0.0504", s.count = 1;
    expect(d, &s);
    s.options = "score_threshold=0.0505", s.count = 0;
    expect(d, &s);
    for (int i = 0; i < 1000; i++)
        order[i] = 999 - i;
    s.n = s.count = 1000;
    s.options = "max_detections_per_class=1200 max_total_detections=1200";
    expect(d, &s);
    s.options = "max_detections_per_class=700 max_total_detections=1000", s.count = 700;
    expect(d, &s);
    for (int i = 0; i < 1000; i++)
        scores[i] = 0.5f, order[i] = i;
    expect(d, &s);
}

static void agnostic(struct pm_device *d)
{
    const float (*boxes)[4] = BOXES({ 0, 0, 0.5f, 1 }, { 0, 0, 0.5f, 0.9f }, { 0.5f, 0, 1, 1 });
    const struct scene one = { "use_class_agnostic_nms=true", 3, 2, boxes,
                               FLOATS(0.1f, 0.5f, 0.4f, NAN, 0.3f, 0.3f), NULL, 2, INTS(0, 2),
                               INTS(1, 0), NULL };
    const struct scene two = { "use_class_agnostic_nms=true max_classes_per_detection=2 "
                               "score_threshold=0.2", 3, 2, boxes,
                               FLOATS(0.1f, 0.5f, 0.4f, NAN, 0.3f, 0.3f), NULL, 3, INTS(0, 2, 2),
                               INTS(1, 0, 1), NULL };

    expect(d, &one);
    expect(d, &two);
}

/* Boxes on a coarse grid overlap by simple fractions, often exactly at the threshold. */
static struct found first_found[8];
static int runs;

static void grid(struct pm_device *d)
{
    static const char *const limits[] = { "0.2", "0.25", "0.3", "0.33333334", "0.4", "0.6", "0.7",
                                          "0.8" };
    static float boxes[400][4], scores[400 * 2];
    static struct found f;
    struct pm_rng rng = pm_rng_make(1, 2, 3, 4);

    for (int i = 0; i < 400; i++)
        for (int k = 0; k < 2; k++) {
            const int64_t from = pm_rng_int(&rng, 0, 10);

            boxes[i][k] = (float)from / 20;
            boxes[i][2 + k] = (float)(from + pm_rng_int(&rng, 1, 10)) / 20;
            scores[2 * i + k] = (float)pm_rng_int(&rng, 0, 50) / 50;
        }
    for (int k = 0; k < 8; k++) {
        char options[128];
        const struct scene s = { .options = options, .n = 400, .classes = 2, .boxes = boxes,
                                 .scores = scores };

        snprintf(options, sizeof options, "max_detections_per_class=400 max_total_detections=800 "
                 "iou_threshold=%s", limits[k]);
        run(d, &s, runs ? &f : &first_found[k]);
        if (!runs)
            continue;
        assert_int_equal(f.count, first_found[k].count);
        assert_memory_equal(f.anchors, first_found[k].anchors, (size_t)f.count * sizeof(int));
        assert_memory_equal(f.of, first_found[k].of, (size_t)f.count * sizeof(int));
    }
    runs++;
}

/* Messages of contradicting options. */
static void expect_refused(const char *options, const char *text)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *in[2] = { pm_net_input(net, "boxes", PM_SHAPE3(1, 5, 4), PM_F32),
                              pm_net_input(net, "scores", PM_SHAPE3(1, 5, 2), PM_F32) };

    pm_net_add_many(net, "y", in, 2, "suppress %s", options);
    assert_int_equal(net->error, PM_ECONFIG);
    if (!strstr(pm_error_text(), text))
        fail_msg("%s: %s", options, pm_error_text());
    pm_net_destroy(&net);
}

ON_EVERY_DEVICE(exact_overlaps)
ON_EVERY_DEVICE(scores_at_the_threshold)
ON_EVERY_DEVICE(no_area)
ON_EVERY_DEVICE(windows)
ON_EVERY_DEVICE(many)
ON_EVERY_DEVICE(agnostic)
ON_EVERY_DEVICE(grid)

static void refusals(void **state)
{
    (void)state;
    expect_refused("max_detections_per_class=101",
                   "y: max_detections_per_class=101 is above max_total_detections=100");
    expect_refused("max_classes_per_detection=2", "needs use_class_agnostic_nms=true");
    expect_refused("iou_threshold=1.5", "iou_threshold: 1.5 is outside 0..1");
    expect_refused("soft_nms_sigma=-1", "soft_nms_sigma: -1 is outside 0..1000000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_overlaps), cmocka_unit_test(test_scores_at_the_threshold),
        cmocka_unit_test(test_no_area),        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_many),           cmocka_unit_test(test_agnostic),
        cmocka_unit_test(test_grid),           cmocka_unit_test(refusals),
    };

    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
