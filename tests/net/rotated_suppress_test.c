/* suppress of rotated boxes on the CPU and every device: all have the same bits of each overlap.
 * Pairs whose overlap equals the threshold both stay, and one goes if the threshold is the next
 * lower float. Also equal boxes, whose overlap is exactly 1, boxes at the seam of angles, boxes
 * without area, NaN, and a large scene. */
#include <pumice/plan.h>
#include <pumice/rng.h>

#include "device/every_device.h"
#include "layers/rotated_overlap.h"

enum { MOST = 1500, PAIRS = 24 };

struct found {
    int count, anchors[MOST];
    float scores[MOST];
};

/* Suppresses n boxes of one class. */
static void run(struct pm_device *d, const char *options, int n, const float (*boxes)[5],
                const float *scores, struct found *out)
{
    static const char *const outputs[] = { "y:1", "y:3", "y:4", NULL };
    const struct pm_plan_options plan_options = { .outputs = outputs, .slots = 1,
                                                  .loss_share = 1 };
    struct pm_net *net = pm_net_create();
    struct pm_variables *variables = NULL;
    struct pm_plan *plan = NULL;
    struct pm_node *in[2];

    in[0] = pm_net_input(net, "boxes", PM_SHAPE3(1, n, 5), PM_F32);
    in[1] = pm_net_input(net, "scores", PM_SHAPE3(1, n, 1), PM_F32);
    const struct pm_node *y = pm_net_add_many(net, "y", in, 2, "suppress %s", options);
    ok(net->error);
    const size_t rows = (size_t)y->out_shape.dim[1];
    assert_true(rows <= MOST);
    ok(pm_variables_create(d, net, false, NULL, &variables));
    ok(pm_plan_create(net, d, variables, &plan_options, &plan));
    ok(pm_plan_load(plan));
    memcpy(pm_plan_input(plan, 0, "boxes", 0), boxes, (size_t)n * sizeof *boxes);
    memcpy(pm_plan_input(plan, 0, "scores", 0), scores, (size_t)n * sizeof *scores);
    ok(pm_plan_submit(plan, 0));
    ok(pm_plan_wait(plan, 0));
    memcpy(out->scores, pm_plan_output(plan, 0, "y:1", 0), rows * sizeof *out->scores);
    out->count = *(const int *)pm_plan_output(plan, 0, "y:3", 0);
    memcpy(out->anchors, pm_plan_output(plan, 0, "y:4", 0), rows * sizeof *out->anchors);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&variables);
    pm_net_destroy(&net);
}

static void draw_box(struct pm_rng *rng, float size, float box[5])
{
    box[0] = pm_rng_uniform(rng);
    box[1] = pm_rng_uniform(rng);
    box[2] = size * (0.2f + pm_rng_uniform(rng));
    box[3] = size * (0.2f + 3 * pm_rng_uniform(rng));
    box[4] = 3 * pm_rng_uniform(rng) - 1.5f;
}

static float overlap_of(const float a[5], const float b[5])
{
    struct pm_rotated_one one, two;
    const struct pm_rotated_one *list = &two;
    float inner[PM_ROTATED_BATCH], joined[PM_ROTATED_BATCH];

    pm_rotated_prepare(a, &one);
    pm_rotated_prepare(b, &two);
    pm_rotated_overlaps(&one, &list, 1, inner, joined);
    return inner[0] > 0 ? inner[0] / joined[0] : 0;
}

static int kept_with(struct pm_device *d, const float boxes[2][5], double threshold)
{
    static const float scores[] = { 0.75f, 0.5f };
    struct found f;
    char options[64];

    snprintf(options, sizeof options, "iou_threshold=%.17g", threshold);
    run(d, options, 2, boxes, scores, &f);
    return f.count;
}

static void equal_to_the_threshold(struct pm_device *d)
{
    struct pm_rng rng = pm_rng_make(1, 2, 0, 0);
    int pairs = 0;

    while (pairs < PAIRS) {
        float boxes[2][5];

        draw_box(&rng, 0.5f, boxes[0]);
        draw_box(&rng, 0.5f, boxes[1]);
        const float iou = overlap_of(boxes[0], boxes[1]);

        if (iou < 0.01f)
            continue;
        pairs++;
        if (kept_with(d, boxes, (double)iou) != 2 ||
            kept_with(d, boxes, (double)nextafterf(iou, 0)) != 1)
            fail_msg("%s: the overlap of pair %d is not %.9g", pm_device_get_info(d)->name, pairs,
                     (double)iou);
    }
}
ON_EVERY_DEVICE(equal_to_the_threshold)

/* Corner against corner along the line of the centres: the circles around the boxes hardly meet.
 * Every device must see the overlap, however small, before it rejects a pair by its circles. */
static void corners_that_meet(struct pm_device *d)
{
    struct pm_rng rng = pm_rng_make(7, 8, 0, 0);
    int pairs = 0;

    for (int tries = 0; pairs < PAIRS; tries++) {
        const double turn = 6.2831853 * pm_rng_uniform(&rng);
        float b[2][5];
        double reach = 0;

        assert_true(tries < 20 * PAIRS);
        for (int k = 0; k < 2; k++) { /* the diagonals lie along the line of the centres */
            draw_box(&rng, 0.5f, b[k]);
            if (pairs % 2 == 0) /* the bound of a circle's radius is exact for squares */
                b[k][3] = b[k][2];
            b[k][4] = (float)(turn - atan2((double)b[k][2], (double)b[k][3]));
            reach += hypot((double)b[k][2], (double)b[k][3]) / 2;
        }
        b[1][0] = b[0][0] + (float)(0.9999 * reach * sin(turn));
        b[1][1] = b[0][1] + (float)(0.9999 * reach * cos(turn));
        if (overlap_of(b[0], b[1]) == 0)
            continue;
        pairs++;
        if (kept_with(d, (const float (*)[5])b, 0) != 1)
            fail_msg("%s: pair %d overlaps by %g, but both stay", pm_device_get_info(d)->name,
                     pairs, (double)overlap_of(b[0], b[1]));
    }
}
ON_EVERY_DEVICE(corners_that_meet)

/* The largest threshold below 1. */
static void equal_boxes(struct pm_device *d)
{
    const double below_one = (double)nextafterf(1, 0);
    struct pm_rng rng = pm_rng_make(3, 4, 0, 0);

    for (int i = 0; i < PAIRS / 2; i++) {
        float boxes[2][5];

        draw_box(&rng, i % 3 == 0 ? 1e-6f : i % 3 == 1 ? 1 : 1e4f, boxes[0]);
        if (i % 4 == 0)
            boxes[0][3] = boxes[0][2] * 1000;
        memcpy(boxes[1], boxes[0], sizeof boxes[1]);
        assert_int_equal(kept_with(d, boxes, below_one), 1);
        assert_int_equal(kept_with(d, boxes, 1), 2);
    }
}
ON_EVERY_DEVICE(equal_boxes)

/* A box at a quarter of a turn and the same box at minus a quarter; angles differ by pi. */
static void seam_of_angles(struct pm_device *d)
{
    const float boxes[2][5] = { { 0.5f, 0.5f, 0.1f, 0.6f, 1.57079637f },
                                { 0.5f, 0.5f, 0.1f, 0.6f, -1.57079637f } };

    assert_int_equal(kept_with(d, boxes, 0.999), 1);
}
ON_EVERY_DEVICE(seam_of_angles)

static void no_area(struct pm_device *d)
{
    const float boxes[6][5] = { { 0.5f, 0.5f, 0.2f, 0.6f, 1 }, { 0.5f, 0.5f, 0, 0.6f, 1 },
                                { 0.5f, 0.5f, 0.2f, -1, 1 }, { NAN, 0.5f, 0.2f, 0.6f, 1 },
                                { 0.5f, 0.5f, 0.2f, 0.6f, NAN }, { 0.5f, 0.5f, 0.2f, 0.6f, 1 } };
    const float scores[] = { 0.5f, 0.9f, 0.8f, 0.7f, 0.6f, 0.4f };
    struct found f;

    run(d, "iou_threshold=0", 6, boxes, scores, &f);
    /* Boxes that are NaN somewhere have sides, so they stay. */
    assert_int_equal(f.count, 3);
    assert_int_equal(f.anchors[0], 3);
    assert_int_equal(f.anchors[1], 4);
    assert_int_equal(f.anchors[2], 0);
}
ON_EVERY_DEVICE(no_area)

/* Each device keeps what the CPU keeps; soft scores differ by the exponentials' rounding. */
static void large_scene(struct pm_device *d)
{
    static float boxes[MOST][5], scores[MOST];
    static struct found f, cpu;
    static const char *const options[] = {
        "iou_threshold=0.1 max_detections_per_class=1500 max_total_detections=1500",
        "iou_threshold=0.5 max_detections_per_class=1500 max_total_detections=1500",
        "soft_nms_sigma=0.3 score_threshold=0.3 max_detections_per_class=50",
    };
    struct pm_rng rng = pm_rng_make(5, 6, 0, 0);
    struct pm_device *host = cpu_with(1);

    for (int i = 0; i < MOST; i++) {
        draw_box(&rng, 0.12f, boxes[i]);
        scores[i] = (float)(1 + (i * 7919) % MOST) / MOST;
    }
    for (size_t k = 0; k < PM_COUNT(options); k++) {
        run(host, options[k], MOST, (const float (*)[5])boxes, scores, &cpu);
        run(d, options[k], MOST, (const float (*)[5])boxes, scores, &f);
        assert_int_equal(f.count, cpu.count);
        assert_in_range(f.count, 40, MOST - 50);
        for (int i = 0; i < f.count; i++) {
            assert_int_equal(f.anchors[i], cpu.anchors[i]);
            assert_true(fabsf(f.scores[i] - cpu.scores[i]) <= 1e-5f);
        }
    }
    pm_device_close(&host);
}
ON_EVERY_DEVICE(large_scene)

/* Rotated boxes have no windows. */
static void windows_are_refused(void **state)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *in[3];

    (void)state;
    in[0] = pm_net_input(net, "boxes", PM_SHAPE3(1, 4, 5), PM_F32);
    in[1] = pm_net_input(net, "scores", PM_SHAPE3(1, 4, 1), PM_F32);
    in[2] = pm_net_input(net, "windows", PM_SHAPE2(1, 4), PM_F32);
    pm_net_add_many(net, "y", in, 3, "suppress");
    assert_int_equal(net->error, PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "not clipped"));
    pm_net_destroy(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_to_the_threshold),
        cmocka_unit_test(test_corners_that_meet), cmocka_unit_test(test_equal_boxes),
        cmocka_unit_test(test_seam_of_angles), cmocka_unit_test(test_no_area),
        cmocka_unit_test(test_large_scene), cmocka_unit_test(windows_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
