/* keypoint_code_loss, decode_keypoints and heatmap_points on the CPU and every device, on values
 * that random inputs never hold: matches and chosen anchors that do not exist, codes and logits
 * that are no numbers. Also what these layers refuse. */
#include <limits.h>

#include "device/every_device.h"
#include "loss_runs.h"
#include "refused_layers.h"

enum { ANCHORS = 3, TRUTHS = 2, POINTS = 2, CODES = 2 * POINTS };

static const float anchors[ANCHORS][4] = { { 0, 0, 0.5f, 0.5f },
                                           { 0.5f, 0, 1, 0.25f },
                                           { 0, 0, 1, 1 } };

static void give(struct pm_plan *p, const char *name, const void *from, size_t size)
{
    memcpy(pm_plan_input(p, 0, name, 0), from, size);
}

/* ---- keypoint_code_loss ---------------------------------------------------------------------- */

/* One image. The second keypoint of each object is not labelled. In the first anchor the codes of
 * the first keypoint are 2.5. */
static const float keypoints[TRUTHS][POINTS][2] = { { { 0.375f, 0.375f }, { NAN, NAN } },
                                                    { { 0.25f, 0.5f }, { NAN, 0.5f } } };
struct scene {
    float codes[ANCHORS][CODES];
    int matches[ANCHORS];
};
struct result { float loss, gradient[ANCHORS][CODES]; };

static struct pm_net *net_of(void)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *in[5];

    in[1] = pm_net_input(net, "anchors", PM_SHAPE2(ANCHORS, 4), PM_F32);
    in[2] = pm_net_input(net, "matches", PM_SHAPE2(1, ANCHORS), PM_I32);
    in[3] = pm_net_input(net, "keypoints", PM_SHAPE4(1, TRUTHS, POINTS, 2), PM_F32);
    in[4] = pm_net_input(net, "weights", PM_SHAPE2(1, TRUTHS), PM_F32);
    in[0] = pm_net_add(net, "codes", in[1], "parameter shape=[1,%d,%d]", ANCHORS, CODES);
    pm_net_add_many(net, "loss", in, PM_COUNT(in), "keypoint_code_loss");
    ok(net->error);
    return net;
}

static void train(struct pm_device *d, const struct scene *s, struct result *out)
{
    static const float weights[TRUTHS] = { 1, 1 };
    struct run r = open_training(d, net_of(), s->codes[0], 1, NULL);

    give(r.p, "anchors", anchors, sizeof anchors);
    give(r.p, "matches", s->matches, sizeof s->matches);
    give(r.p, "keypoints", keypoints, sizeof keypoints);
    give(r.p, "weights", weights, sizeof weights);
    start(r.p);
    out->loss = *(const float *)pm_plan_output(r.p, 0, "loss", 0);
    ok(pm_buffer_read(d, r.v->grads, r.v->offset[0], out->gradient, sizeof out->gradient));
    close_run(&r);
}

/* The first anchor has an object, the second none, and the third is ignored. All codes that have no
 * target are no numbers. */
static const struct scene sound = {
    { { 2, 2.25f, NAN, NAN }, { NAN, NAN, NAN, NAN }, { NAN, NAN, NAN, NAN } }, { 0, -1, -2 },
};

/* The codes differ from 2.5 by 0.5 and 0.25. A device may round the quotient in a code by 2.5 units
 * of 2^-23, and the product and both sums by one, which is less than 2^-19 of 2.5. */
static void codes_without_a_target(struct pm_device *d)
{
    const float bound = 0x1p-19f * 2.5f;
    struct result r;

    train(d, &sound, &r);
    assert_float_equal(r.loss, (0.5f * 0.5f + 0.25f * 0.25f) / 2, bound);
    assert_float_equal(r.gradient[0][0], -0.5f, bound);
    assert_float_equal(r.gradient[0][1], -0.25f, bound);
    for (int i = 0; i < ANCHORS; i++)
        for (int k = i == 0 ? 2 : 0; k < CODES; k++)
            assert_true(r.gradient[i][k] == 0);
}

static void expect_nan(struct pm_device *d, const struct scene *s)
{
    struct result r;

    train(d, s, &r);
    assert_true(isnan(r.loss));
}

/* The step is rejected. */
static void no_numbers(struct pm_device *d)
{
    struct scene bad = sound;

    bad.matches[1] = TRUTHS;
    expect_nan(d, &bad);
    bad.matches[1] = -3;
    expect_nan(d, &bad);
    bad.matches[1] = INT_MAX;
    expect_nan(d, &bad);
    bad = sound, bad.codes[0][1] = NAN;
    expect_nan(d, &bad);
}

/* ---- decode_keypoints and heatmap_points ----------------------------------------------------- */

/* Adds the layer y, whose input i is in[i] with the values `from`. Copies its outputs. */
struct given { struct pm_shape shape; enum pm_type type; const void *from; size_t size; };

static void evaluate(struct pm_device *d, const char *layer, const struct given *in, int inputs,
                     float *y, float *scores)
{
    static const char *const outputs[] = { "y", "y:1", NULL }, *const one[] = { "y", NULL };
    static const char *const names[] = { "in0", "in1", "in2", "in3" };
    struct pm_net *net = pm_net_create();
    struct pm_node *nodes[PM_COUNT(names)], *n;
    struct pm_variables *v = NULL;
    struct pm_plan *p = NULL;

    for (int i = 0; i < inputs; i++)
        nodes[i] = pm_net_input(net, names[i], in[i].shape, in[i].type);
    n = pm_net_add_many(net, "y", nodes, inputs, "%s", layer);
    ok(net->error);
    ok(pm_variables_create(d, net, false, NULL, &v));
    ok(pm_plan_create(net, d, v, &(struct pm_plan_options){
        .outputs = scores ? outputs : one, .slots = 1, .loss_share = 1 }, &p));
    ok(pm_plan_load(p));
    for (int i = 0; i < inputs; i++)
        give(p, names[i], in[i].from, in[i].size);
    ok(pm_plan_submit(p, 0));
    ok(pm_plan_wait(p, 0));
    memcpy(y, pm_plan_output(p, 0, "y", 0), pm_shape_count(n->out_shape) * sizeof *y);
    if (scores)
        memcpy(scores, pm_plan_output(p, 0, "y:1", 0),
               pm_shape_count(n->out_shape) / 2 * sizeof *scores);
    pm_plan_destroy(&p);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
}

/* Keypoints of chosen anchors that do not exist are 0, also if their codes are no numbers. */
static void chosen_anchors(struct pm_device *d)
{
    enum { CHOSEN = 5 };
    static const int chosen[CHOSEN] = { -1, 1, ANCHORS, INT_MAX, INT_MIN }, count = CHOSEN;
    static const float codes[ANCHORS][CODES] = { { NAN, NAN, NAN, NAN },
                                                 { 2.5f, -5, 10, 0 },
                                                 { NAN, NAN, NAN, NAN } };
    /* In the anchor 0.5, 0, 1, 0.25. */
    static const float want[CODES] = { 0.875f, 0, 1.25f, 0.125f };
    const struct given in[] = { { PM_SHAPE3(1, ANCHORS, CODES), PM_F32, codes, sizeof codes },
                                { PM_SHAPE2(ANCHORS, 4), PM_F32, anchors, sizeof anchors },
                                { PM_SHAPE2(1, CHOSEN), PM_I32, chosen, sizeof chosen },
                                { PM_SHAPE1(1), PM_I32, &count, sizeof count } };
    float y[CHOSEN * CODES];

    evaluate(d, "decode_keypoints", in, PM_COUNT(in), y, NULL);
    for (int i = 0; i < CHOSEN * CODES; i++)
        if (i / CODES != 1)
            assert_true(y[i] == 0);
        else /* the quotient has up to 2.5 units of 2^-23, the rest three roundings of at most 2 */
            assert_float_equal(y[i], want[i % CODES], 0x1p-20);
}

/* A heatmap with a value that is no number has the score NaN, and its keypoint is the centre of a
 * place. Others do not change. */
static void heatmaps_without_numbers(struct pm_device *d)
{
    enum { BOXES = 5, PLACES = 2 * 4 };
    static const float boxes[BOXES][4] = { { 0, 0, 1, 1 }, { 0, 0, 1, 1 }, { 0, 0, 1, 1 },
                                           { 0, 0, 1, 1 }, { 0, 0, 1, 1 } };
    static const float logits[BOXES][PLACES] = {
        { NAN, 1, 2, 3, 4, 5, 6, 7 },        { 0, 1, 2, 3, 4, 5, NAN, 7 },
        { 0, 1, 2, 3, 4, INFINITY, 6, 7 },   { NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN },
        { 0, 0, 0, 0, 0, 100, 0, -INFINITY },
    };
    static const int count = BOXES;
    const struct given in[] = { { PM_SHAPE4(BOXES, 2, 4, 1), PM_F32, logits, sizeof logits },
                                { PM_SHAPE3(1, BOXES, 4), PM_F32, boxes, sizeof boxes },
                                { PM_SHAPE1(1), PM_I32, &count, sizeof count } };
    float y[BOXES][2], scores[BOXES];

    evaluate(d, "heatmap_points", in, PM_COUNT(in), y[0], scores);
    for (int i = 0; i < BOXES; i++) {
        assert_true(y[i][0] == 0.25f || y[i][0] == 0.75f);
        assert_true(fmodf(y[i][1], 0.25f) == 0.125f && y[i][1] > 0 && y[i][1] < 1);
        assert_true(isnan(scores[i]) == (i < BOXES - 1));
    }
    assert_true(y[BOXES - 1][0] == 0.75f && y[BOXES - 1][1] == 0.375f);
    assert_true(scores[BOXES - 1] == 1); /* e^-100 is less than half a unit */
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Two images of 9 anchors or boxes, 4 objects of 3 keypoints. */
static const struct layer loss = {
    "keypoint_code_loss", "The inputs must be codes, anchors, matches, truth_keypoints,", 6,
    { S3(2, 9, 6), S2(9, 4), S2(2, 9), S4(2, 4, 3, 2), S2(2, 4), S1(2) },
    { PM_F32, PM_F32, PM_I32, PM_F32, PM_F32, PM_F32 },
};
static const struct layer decode = {
    "decode_keypoints", "The inputs must be codes, anchors, chosen, count, in this order", 4,
    { S3(2, 9, 6), S2(9, 4), S2(2, 5), S1(2) }, { PM_F32, PM_F32, PM_I32, PM_I32 },
};
static const struct layer heatmaps = {
    "heatmap_points", "The inputs must be logits, boxes, count, in this order", 3,
    { S4(18, 8, 7, 3), S3(2, 9, 4), S1(2) }, { PM_F32, PM_F32, PM_I32 },
};

static void loss_refusals(void **state)
{
    static const struct wrong list[] = {
        { 0, S3(2, 9, 5), "", "codes have shape 2x9x5 instead of n x N x 2 K" },
        { 0, S2(9, 6), "", "codes have shape 9x6 instead of n x N x 2 K" },
        { 3, S4(2, 4, 2, 2), "", "truth_keypoints have shape 2x4x2x2 instead of 2 x M x 3 x 2" },
        { 3, S4(1, 4, 3, 2), "", "truth_keypoints have shape 1x4x3x2 instead of" },
        { 3, S4(2, 4, 3, 3), "", "truth_keypoints have shape 2x4x3x3 instead of" },
        { 3, S3(2, 4, 6), "", "truth_keypoints have shape 2x4x6 instead of" },
        { 1, S2(8, 4), "", "anchors have shape 8x4; for these codes and truth_keypoints they must "
                           "be 9x4" },
        { 2, S2(2, 8), "", "matches have shape 2x8; for these codes" },
        { 4, S2(2, 3), "", "truth_weights have shape 2x3; for these codes and truth_keypoints they "
                           "must be 2x4" },
        { 5, S1(3), "", "the normalizer has shape 3; there must be one number per example, 2" },
        { 5, S1(2), "scales=[1,2,3]", "scales has 3 numbers instead of 2" },
        { 5, S1(2), "delta=0", "delta: 0 is outside" },
    };
    struct layer bare = loss;
    const struct wrong per_image = { 0, bare.shape[0], "normalize_per_image=true", "" };

    (void)state;
    refuse(&loss, list, PM_COUNT(list));
    bare.inputs = 5; /* without the normalizer */
    expect_refused(with(&bare, &per_image, -1), &bare,
                   "normalize_per_image divides by the input normalizer, which is missing");
}

static void decode_refusals(void **state)
{
    static const struct wrong list[] = {
        { 0, S3(2, 9, 5), "", "codes have shape 2x9x5 instead of n x N x 2 K" },
        { 0, S4(2, 9, 3, 2), "", "codes have shape 2x9x3x2 instead of n x N x 2 K" },
        { 1, S2(9, 3), "", "anchors have shape 9x3; for codes of n x N x 2 K they must be 9x4" },
        { 1, S2(8, 4), "", "anchors have shape 8x4; for codes" },
        { 2, S2(3, 5), "", "chosen anchors have shape 3x5 instead of 2 x D" },
        { 2, S1(2), "", "chosen anchors have shape 2 instead of 2 x D" },
        { 3, S1(3), "", "count has shape 3 instead of 2" },
        { 3, S1(2), "scales=[10]", "scales has 1 numbers instead of 2" },
    };

    (void)state;
    refuse(&decode, list, PM_COUNT(list));
}

static void heatmap_refusals(void **state)
{
    static const struct wrong list[] = {
        { 0, S4(17, 8, 7, 3), "", "logits have shape 17x8x7x3 instead of 18 x h x w x K. Give each "
                                  "box a heatmap for each keypoint" },
        { 0, S3(18, 56, 3), "", "logits have shape 18x56x3 instead of 18 x h x w x K" },
        { 0, S4(18, 4097, 4096, 3), "", "heatmaps of 4097x4096 have more than 16777216 places" },
        { 1, S3(2, 9, 5), "", "boxes have shape 2x9x5 instead of n x R x 4" },
        { 1, S2(18, 4), "", "boxes have shape 18x4 instead of n x R x 4" },
        { 1, S3(2, 8, 4), "", "logits have shape 18x8x7x3 instead of 16 x h x w x K" },
        { 2, S1(3), "", "count has shape 3 instead of 2" },
        { 2, S2(2, 1), "", "count has shape 2x1 instead of 2" },
    };

    (void)state;
    refuse(&heatmaps, list, PM_COUNT(list));
}

ON_EVERY_DEVICE(codes_without_a_target)
ON_EVERY_DEVICE(no_numbers)
ON_EVERY_DEVICE(chosen_anchors)
ON_EVERY_DEVICE(heatmaps_without_numbers)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes_without_a_target),
        cmocka_unit_test(test_no_numbers),
        cmocka_unit_test(test_chosen_anchors),
        cmocka_unit_test(test_heatmaps_without_numbers),
        cmocka_unit_test(loss_refusals),
        cmocka_unit_test(decode_refusals),
        cmocka_unit_test(heatmap_refusals),
    };

    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
