/* The losses of a detector and the choice of hard examples in cases that random values do not
 * cover, on the CPU and on every device. One image has 10 anchors apart from each other; an anchor
 * has the scores of the background and of one class. */
#include <pumice/plan.h>

#include "device/every_device.h"

enum { N = 10, M = 2, NONE = -1, IGNORED = -2 };

struct run {
    struct pm_device *d;
    struct pm_net *net;
    struct pm_variables *v;
    struct pm_plan *plan;
    float codes[N][4], scores[N][2], anchors[N][4]; /* read by step() */
    int32_t matches[N], classes[M];
    float boxes[M][4], weights[M], normalizer;
    float dcodes[N][4], dscores[N][2];              /* written by step() */
    double loc, cls;
};

/* Codes and scores are 0, so that each box is its anchor. */
static void start(struct run *r, struct pm_device *d, bool normalizer, float share,
                  const char *options)
{
    const struct pm_plan_options o = { .name = "train", .train = true, .slots = 1,
                                       .loss_share = share, .micro_batches = 1 };
    struct pm_node *x, *in[8];

    *r = (struct run){ .d = d, .net = pm_net_create(), .weights = { 1, 1 }, .normalizer = 4 };
    for (int i = 0; i < N; i++) {
        r->matches[i] = NONE;
        r->anchors[i][0] = 0.1f, r->anchors[i][1] = 0.1f * (float)i;
        r->anchors[i][2] = 0.3f, r->anchors[i][3] = 0.1f * (float)i + 0.08f;
    }
    for (int k = 0; k < M; k++)
        memcpy(r->boxes[k], r->anchors[k], sizeof r->boxes[k]);
    x = pm_net_input(r->net, "x", PM_SHAPE1(1), PM_F32);
    in[0] = pm_net_add(r->net, "codes", x, "parameter shape=[1,1,10,4]");
    in[1] = pm_net_add(r->net, "scores", x, "parameter shape=[1,1,10,2]");
    in[2] = pm_net_input(r->net, "anchors", PM_SHAPE2(N, 4), PM_F32);
    in[3] = pm_net_input(r->net, "matches", PM_SHAPE2(1, N), PM_I32);
    in[4] = pm_net_input(r->net, "boxes", PM_SHAPE3(1, M, 4), PM_F32);
    in[5] = pm_net_input(r->net, "classes", PM_SHAPE2(1, M), PM_I32);
    in[6] = pm_net_input(r->net, "weights", PM_SHAPE2(1, M), PM_F32);
    in[7] = pm_net_input(r->net, "normalizer", PM_SHAPE1(1), PM_F32);
    pm_net_add_many(r->net, "loss", in, normalizer ? 8 : 7, "detection_loss %s", options);
    ok(r->net->error);
    ok(pm_variables_create(d, r->net, true, NULL, &r->v));
    ok(pm_variables_allocate(r->v));
    ok(pm_variables_init(r->v, 1, NULL));
    ok(pm_plan_create(r->net, d, r->v, &o, &r->plan));
    ok(pm_plan_load(r->plan));
}

static void stop(struct run *r)
{
    pm_plan_destroy(&r->plan);
    pm_variables_destroy(&r->v);
    pm_net_destroy(&r->net);
}

static void give(struct run *r, const char *name, const void *data, size_t bytes)
{
    void *to = pm_plan_input(r->plan, 0, name, 0);

    if (to)
        memcpy(to, data, bytes);
}

static int variable(const struct run *r, const char *part)
{
    for (int i = 0; i < r->net->var_count; i++)
        if (strstr(r->net->vars[i]->name, part))
            return i;
    fail_msg("no variable %s", part);
    return -1;
}

static void read_gradient(struct run *r, const char *part, void *to, size_t bytes)
{
    ok(pm_buffer_read(r->d, r->v->grads, r->v->offset[variable(r, part)], to, bytes));
}

static void step(struct run *r)
{
    ok(pm_variables_write(r->v, variable(r, "codes"), -1, r->codes[0]));
    ok(pm_variables_write(r->v, variable(r, "scores"), -1, r->scores[0]));
    give(r, "anchors", r->anchors, sizeof r->anchors);
    give(r, "matches", r->matches, sizeof r->matches);
    give(r, "boxes", r->boxes, sizeof r->boxes);
    give(r, "classes", r->classes, sizeof r->classes);
    give(r, "weights", r->weights, sizeof r->weights);
    if (r->net->nodes[r->net->count - 1]->inputs == 8)
        give(r, "normalizer", &r->normalizer, sizeof r->normalizer);
    *pm_plan_step(r->plan, 0) = (struct pm_step){ .loss_scale = 1 };
    ok(pm_plan_submit(r->plan, 0));
    ok(pm_plan_wait(r->plan, 0));
    read_gradient(r, "codes", r->dcodes, sizeof r->dcodes);
    read_gradient(r, "scores", r->dscores, sizeof r->dscores);
    r->loc = *(const float *)pm_plan_output(r->plan, 0, "loss/localization_loss", 0);
    r->cls = *(const float *)pm_plan_output(r->plan, 0, "loss/classification_loss", 0);
}

/* anchors: "x" for an anchor whose scores have a gradient. */
static void expect(const struct run *r, double loc, double cls, const char *anchors)
{
    const char *device = pm_device_get_info(r->d)->name;

    if (!(fabs(r->loc - loc) <= 1e-5 * (1 + fabs(loc)) && fabs(r->cls - cls) <= 1e-5 * (1 + cls)))
        fail_msg("%s: the losses are %g and %g instead of %g and %g", device, r->loc, r->cls, loc,
                 cls);
    for (int i = 0; i < N; i++)
        if ((r->dscores[i][1] != 0) != (anchors[i] == 'x'))
            fail_msg("%s: the gradient of anchor %d is %g", device, i, r->dscores[i][1]);
}

/* What the miner reports of the image: matched and unmatched anchors that count. */
static void expect_mined(const struct run *r, float positives, float negatives)
{
    const float *p = pm_plan_output(r->plan, 0, "loss/mined_positives", 0);
    const float *n = pm_plan_output(r->plan, 0, "loss/mined_negatives", 0);

    assert_non_null(p);
    assert_non_null(n);
    assert_float_equal(*p, positives, 0);
    assert_float_equal(*n, negatives, 0);
}

#define TWO (2 * log(2)) /* loss of an anchor with scores 0 */

/* The divisor is 1 without a match, and the sum of weights, if larger, with matches. */
static void no_object(struct pm_device *d)
{
    struct run r;

    start(&r, d, false, 0.5f, "");
    step(&r);
    expect(&r, 0, N * TWO / 2, "xxxxxxxxxx"); /* half of the batch */
    assert_null(pm_plan_output(r.plan, 0, "loss/mined_positives", 0));
    for (int i = 0; i < N; i++) {
        r.matches[i] = IGNORED;
        for (int k = 0; k < 4; k++)
            assert_float_equal(r.dcodes[i][k], 0, 0);
    }
    step(&r);
    expect(&r, 0, 0, "..........");
    r.matches[3] = 0, r.matches[5] = 1;
    r.weights[0] = 3;
    step(&r);
    expect(&r, r.loc, (3 + 1) * TWO / 4 / 2, "...x.x....");
    stop(&r);
}

/* With a normalizer the losses of a plan do not depend on its share of the batch. */
static void of_a_clone(struct pm_device *d)
{
    struct run r;

    start(&r, d, true, 0.25f, "");
    r.matches[0] = 0; /* the whole batch has matches of weight 4 */
    step(&r);
    expect(&r, 0, N * TWO / 4, "xxxxxxxxxx");
    r.matches[0] = NONE; /* a clone without a match */
    step(&r);
    expect(&r, 0, N * TWO / 4, "xxxxxxxxxx");
    stop(&r);
}

/* Later anchors have larger losses: 2 ln 2 + a little. */
static void rising_losses(struct run *r)
{
    for (int i = 0; i < N; i++)
        r->scores[i][1] = 0.01f * (float)i;
}

static double rising_loss(int i) /* of a negative */
{
    return log(2) + log(1 + exp(0.01 * i));
}

#define MINER "hard_example_miner=true iou_threshold=0.99 loss_type=classification "

static void limited_negatives(struct pm_device *d)
{
    struct run r;

    start(&r, d, false, 1, MINER "num_hard_examples=3000 max_negatives_per_positive=3");
    rising_losses(&r);
    step(&r); /* no positive, and a least number of 0 */
    expect(&r, 0, 0, "..........");
    expect_mined(&r, 0, 0);
    r.matches[0] = 0;
    step(&r);
    expect(&r, 0, TWO + rising_loss(7) + rising_loss(8) + rising_loss(9), "x......xxx");
    expect_mined(&r, 1, 3);
    stop(&r);
    start(&r, d, false, 1, MINER "max_negatives_per_positive=3 min_negatives_per_image=2");
    rising_losses(&r);
    step(&r);
    expect(&r, 0, rising_loss(8) + rising_loss(9), "........xx");
    expect_mined(&r, 0, 2);
    stop(&r);
    start(&r, d, false, 1, MINER "num_hard_examples=3 max_negatives_per_positive=3");
    rising_losses(&r);
    r.matches[0] = 0; /* not among the three that are taken, so that none of them counts */
    step(&r);
    expect(&r, 0, 0, "..........");
    expect_mined(&r, 0, 0);
    stop(&r);
}

/* With a normalizer the miner chooses among a clone's own anchors, by the clone's own matches; the
 * losses are divided by the whole batch's. */
static void mining_of_a_clone(struct pm_device *d)
{
    struct run r;

    start(&r, d, true, 0.25f, MINER "max_negatives_per_positive=3");
    rising_losses(&r);
    r.matches[0] = 0;
    step(&r);
    expect(&r, 0, (TWO + rising_loss(7) + rising_loss(8) + rising_loss(9)) / 4, "x......xxx");
    r.matches[0] = NONE;
    step(&r);
    expect(&r, 0, 0, "..........");
    stop(&r);
}

/* By the localization loss, all but the matched anchor are equal and come by index. Ignored ones
 * are among them and do not count as negatives. */
static void ignored_in_the_prefix(struct pm_device *d)
{
    struct run r;

    start(&r, d, false, 1, "hard_example_miner=true iou_threshold=0.99 loss_type=localization "
                           "max_negatives_per_positive=2");
    r.matches[0] = 0, r.matches[1] = r.matches[3] = IGNORED;
    r.codes[0][0] = 1;
    step(&r);
    expect(&r, 0.5, 3 * TWO, "x.x.x.....");
    expect_mined(&r, 1, 2);
    stop(&r);
}

static void equal_boxes(struct pm_device *d)
{
    struct run r;

    start(&r, d, false, 1, MINER);
    rising_losses(&r);
    memcpy(r.anchors[3], r.anchors[8], sizeof r.anchors[3]); /* 8 has the larger loss */
    memcpy(r.anchors[9], r.anchors[2], sizeof r.anchors[9]);
    step(&r);
    assert_true(isfinite(r.cls));
    expect(&r, 0, r.cls, "xx..xxxxxx");
    expect_mined(&r, 0, 8); /* without a ratio */
    stop(&r);
}

/* A code whose exponential is infinite, a truth without height, a reversed truth. */
static void extreme_boxes(struct pm_device *d)
{
    struct run r;

    start(&r, d, false, 1, MINER);
    rising_losses(&r);
    for (int i = 0; i < 3; i++)
        r.codes[i][2] = r.codes[i][3] = 1e4f;
    step(&r);
    assert_true(isfinite(r.cls));
    assert_true(r.dscores[2][1] != 0);    /* the hardest of three nearly equal boxes */
    r.matches[0] = 0, r.matches[1] = 1;
    r.codes[0][2] = 0;
    r.boxes[0][2] = r.boxes[0][0];        /* no height: ln 1e-8 */
    r.boxes[1][2] = r.boxes[1][0] - 0.1f; /* the logarithm is NaN: that code does not count */
    step(&r);
    assert_true(isfinite(r.loc) && isfinite(r.cls));
    assert_float_equal(r.dcodes[1][2], 0, 0);
    assert_true(r.dcodes[0][2] > 0);
    stop(&r);
}

/* The same with codes of corners. A truth may lack a height or be reversed, and an anchor without
 * height gives a code of some 1e7: (corner - anchor's corner) / 1e-8 / 0.2. */
static void extreme_corners(struct pm_device *d)
{
    struct run r;

    start(&r, d, false, 1, MINER " coder=corners");
    rising_losses(&r);
    for (int i = 0; i < 3; i++)
        r.codes[i][0] = -1e4f, r.codes[i][2] = r.codes[i][3] = 1e4f;
    step(&r);
    assert_true(isfinite(r.cls));
    assert_true(r.dscores[2][1] != 0);
    r.matches[0] = 0, r.matches[1] = 1, r.matches[2] = 0;
    r.boxes[0][2] = r.boxes[0][0];
    r.boxes[1][2] = r.boxes[1][0] - 0.1f;
    r.anchors[2][2] = r.anchors[2][0] - 0.05f, r.anchors[2][0] = r.anchors[2][2];
    step(&r);
    assert_true(isfinite(r.loc) && isfinite(r.cls));
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++)
            assert_true(isfinite(r.dcodes[i][k]));
    stop(&r);
}

static void invalid_truth(struct pm_device *d)
{
    struct run r;

    start(&r, d, false, 1, "");
    r.matches[2] = M;
    step(&r);
    assert_true(isnan(r.loc) && isnan(r.cls) && isnan(r.dscores[2][0]) && isnan(r.dcodes[0][0]));
    r.matches[2] = 0, r.classes[0] = 1; /* there is one class, 0 */
    step(&r);
    assert_true(isnan(r.cls) && isnan(r.dscores[0][0]));
    r.classes[0] = 0, r.scores[4][1] = NAN;
    step(&r);
    assert_true(isnan(r.cls) && isnan(r.dscores[0][0]));
    stop(&r);
}

/* A loss that is not a number is never chosen, but must not be lost. */
static void not_a_number(struct pm_device *d)
{
    struct run r;

    start(&r, d, false, 1, MINER);
    rising_losses(&r);
    r.scores[4][1] = NAN;
    step(&r);
    assert_true(isnan(r.cls) && isnan(r.dscores[0][0]));
    stop(&r);
}

/* A loss that is infinite, but is not kept, does not count. */
static void infinite_and_dropped(struct pm_device *d)
{
    struct run r;

    start(&r, d, false, 1, "hard_example_miner=true max_negatives_per_positive=1 "
                           "negative_class_weight=1000000");
    r.scores[4][1] = 3e38f; /* no anchor matches, so no negative counts */
    step(&r);
    expect(&r, 0, 0, "..........");
    stop(&r);
}

static void refused(const char *options, const char *message)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *in[7] = {
        pm_net_input(net, "codes", PM_SHAPE4(1, 1, 10, 4), PM_F32),
        pm_net_input(net, "scores", PM_SHAPE4(1, 1, 10, 2), PM_F32),
        pm_net_input(net, "anchors", PM_SHAPE2(N, 4), PM_F32),
        pm_net_input(net, "matches", PM_SHAPE2(1, N), PM_I32),
        pm_net_input(net, "boxes", PM_SHAPE3(1, M, 4), PM_F32),
        pm_net_input(net, "classes", PM_SHAPE2(1, M), PM_I32),
        pm_net_input(net, "weights", PM_SHAPE2(1, M), PM_F32),
    };

    pm_net_add_many(net, "loss", in, 7, "detection_loss %s", options);
    assert_int_equal(net->error, PM_ECONFIG);
    if (!strstr(pm_error_text(), message))
        fail_msg("\"%s\" does not contain \"%s\"", pm_error_text(), message);
    pm_net_destroy(&net);
}

static void test_refused(void **state)
{
    (void)state;
    refused("classification=weighted_sigmoid_focal hard_example_miner=true",
            "loss: weighted_sigmoid_focal cannot be combined with hard_example_miner");
    refused("classification=bootstrapped_sigmoid", "needs alpha");
    refused("levels=2", "7 inputs do not fit 2 levels");
    refused("coder=square", "level 1 has boxes 1x1x10x4");
}

ON_EVERY_DEVICE(no_object)
ON_EVERY_DEVICE(of_a_clone)
ON_EVERY_DEVICE(limited_negatives)
ON_EVERY_DEVICE(mining_of_a_clone)
ON_EVERY_DEVICE(ignored_in_the_prefix)
ON_EVERY_DEVICE(equal_boxes)
ON_EVERY_DEVICE(extreme_boxes)
ON_EVERY_DEVICE(extreme_corners)
ON_EVERY_DEVICE(invalid_truth)
ON_EVERY_DEVICE(not_a_number)
ON_EVERY_DEVICE(infinite_and_dropped)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_object),
        cmocka_unit_test(test_of_a_clone),
        cmocka_unit_test(test_limited_negatives),
        cmocka_unit_test(test_mining_of_a_clone),
        cmocka_unit_test(test_ignored_in_the_prefix),
        cmocka_unit_test(test_equal_boxes),
        cmocka_unit_test(test_extreme_boxes),
        cmocka_unit_test(test_extreme_corners),
        cmocka_unit_test(test_invalid_truth),
        cmocka_unit_test(test_not_a_number),
        cmocka_unit_test(test_infinite_and_dropped),
        cmocka_unit_test(test_refused),
    };

    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
