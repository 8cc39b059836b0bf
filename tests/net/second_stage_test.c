/* The layers between the two stages of a detector, on the CPU and every device: boxes that random
 * inputs never hold, the parts of a batch against the whole, and what the layers refuse. */
#include <pumice/plan.h>
#include <pumice/rng.h>

#include "device/every_device.h"

/* IMAGES in a batch; of each: P proposals, M true boxes, at most R sampled ones; K classes. */
enum { IMAGES = 4, P = 40, M = 3, R = 16, K = 2 };

struct batch {
    float proposals[IMAGES][P][4], truth[IMAGES][M][4], weights[IMAGES][M];
    int32_t count[IMAGES], classes[IMAGES][M], matches[IMAGES][P];
    float codes[IMAGES][R][4 * K], logits[IMAGES][R][K + 1];
    float first_codes[IMAGES][P][4], first_logits[IMAGES][P][K + 1], normalizer[IMAGES];
    float anchors[P][4];
};
struct found {
    float boxes[IMAGES][R][4];
    int32_t matches[IMAGES][R], count[IMAGES];
    double loss[4]; /* localization and classification of the first, then of the second stage */
};

/* A run of `images` examples from `first` on, in micro-batches. */
struct part {
    int first, images, micro_batches;
    uint32_t step;
};

/* ---- running --------------------------------------------------------------------------------- */

static struct pm_node *sampler(struct pm_net *net, int n, const char *options)
{
    struct pm_node *in[] = {
        pm_net_input(net, "proposals", PM_SHAPE3(n, P, 4), PM_F32),
        pm_net_input(net, "count", PM_SHAPE1(n), PM_I32),
        pm_net_input(net, "truth", PM_SHAPE3(n, M, 4), PM_F32),
        pm_net_input(net, "weights", PM_SHAPE2(n, M), PM_F32),
    };

    return pm_net_add_many(net, "sampled", in, 4, "sample_proposals batch=%d %s", R, options);
}

static struct pm_net *net_of(int n, const char *options)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *s = sampler(net, n, options), *first[8], *second[8];

    ok(net->error);
    first[0] = pm_net_input(net, "first_codes", PM_SHAPE4(n, 1, P, 4), PM_F32);
    first[1] = pm_net_input(net, "first_logits", PM_SHAPE4(n, 1, P, K + 1), PM_F32);
    first[2] = pm_net_input(net, "anchors", PM_SHAPE2(P, 4), PM_F32);
    first[3] = pm_net_input(net, "matches", PM_SHAPE2(n, P), PM_I32);
    first[4] = second[5] = pm_net_find(net, "truth");
    first[5] = second[6] = pm_net_input(net, "classes", PM_SHAPE2(n, M), PM_I32);
    first[6] = second[7] = pm_net_find(net, "weights");
    first[7] = pm_net_input(net, "normalizer", PM_SHAPE1(n), PM_F32);
    pm_net_add_many(net, "first", first, 8, "detection_loss classification=weighted_softmax "
                                            "normalize_per_image=true localization_weight=2");
    second[0] = pm_net_add(net, "second_codes",
                           pm_net_input(net, "codes", PM_SHAPE3(n, R, 4 * K), PM_F32),
                           "reshape shape=[-1,%d]", 4 * K);
    second[1] = pm_net_add(net, "second_logits",
                           pm_net_input(net, "logits", PM_SHAPE3(n, R, K + 1), PM_F32),
                           "reshape shape=[-1,%d]", K + 1);
    second[2] = s, second[3] = s->out[1], second[4] = s->out[2];
    pm_net_add_many(net, "second", second, 8, "box_classifier_loss");
    ok(net->error);
    return net;
}

static void give(struct pm_plan *plan, const char *name, int m, const void *all, int first,
                 int images, size_t bytes)
{
    memcpy(pm_plan_input(plan, 0, name, m), (const char *)all + (size_t)first * bytes,
           (size_t)images * bytes);
}

static void give_part(struct pm_plan *plan, const struct batch *b, int m, int at, int n)
{
    give(plan, "proposals", m, b->proposals, at, n, sizeof *b->proposals);
    give(plan, "count", m, b->count, at, n, sizeof *b->count);
    give(plan, "truth", m, b->truth, at, n, sizeof *b->truth);
    give(plan, "weights", m, b->weights, at, n, sizeof *b->weights);
    give(plan, "classes", m, b->classes, at, n, sizeof *b->classes);
    give(plan, "matches", m, b->matches, at, n, sizeof *b->matches);
    give(plan, "codes", m, b->codes, at, n, sizeof *b->codes);
    give(plan, "logits", m, b->logits, at, n, sizeof *b->logits);
    give(plan, "first_codes", m, b->first_codes, at, n, sizeof *b->first_codes);
    give(plan, "first_logits", m, b->first_logits, at, n, sizeof *b->first_logits);
    give(plan, "normalizer", m, b->normalizer, at, n, sizeof *b->normalizer);
    give(plan, "anchors", m, b->anchors, 0, 1, sizeof b->anchors);
}

static void take(struct pm_plan *plan, int m, int at, int n, struct found *out)
{
    static const char *const losses[] = { "first/localization_loss", "first/classification_loss",
                                          "second/localization_loss",
                                          "second/classification_loss" };

    memcpy(out->boxes[at], pm_plan_output(plan, 0, "sampled", m), (size_t)n * sizeof *out->boxes);
    memcpy(out->matches[at], pm_plan_output(plan, 0, "sampled:1", m),
           (size_t)n * sizeof *out->matches);
    memcpy(&out->count[at], pm_plan_output(plan, 0, "sampled:2", m),
           (size_t)n * sizeof *out->count);
    for (int k = 0; k < 4; k++)
        out->loss[k] += *(const float *)pm_plan_output(plan, 0, losses[k], m);
}

static void run(struct pm_device *d, const struct batch *b, struct part part, const char *options,
                struct found *out)
{
    static const char *const outputs[] = { "sampled", "sampled:1", "sampled:2", NULL };
    const int n = part.images / part.micro_batches;
    struct pm_net *net = net_of(n, options);
    struct pm_variables *v = NULL;
    struct pm_plan *plan = NULL;

    ok(pm_variables_create(d, net, false, NULL, &v));
    ok(pm_plan_create(net, d, v, &(struct pm_plan_options){
        .outputs = outputs, .slots = 1, .first_example = part.first,
        .loss_share = (float)part.images / IMAGES, .micro_batches = part.micro_batches }, &plan));
    ok(pm_plan_load(plan));
    for (int m = 0; m < part.micro_batches; m++)
        give_part(plan, b, m, part.first + m * n, n);
    *pm_plan_step(plan, 0) = (struct pm_step){ .step = part.step, .seed_low = 7, .loss_scale = 1 };
    ok(pm_plan_submit(plan, 0));
    ok(pm_plan_wait(plan, 0));
    for (int m = 0; m < part.micro_batches; m++)
        take(plan, m, part.first + m * n, n, out);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
}

static void put_box(float *box, struct pm_rng *r)
{
    for (int k = 0; k < 2; k++) {
        box[k] = (float)pm_rng_uniform(r) * 0.4f;
        box[2 + k] = box[k] + 0.3f + (float)pm_rng_uniform(r) * 0.3f;
    }
}

static void fill(float *v, size_t count, struct pm_rng *r)
{
    for (size_t i = 0; i < count; i++)
        v[i] = (float)(4 * pm_rng_uniform(r) - 2);
}

/* All examples have the same proposals and true boxes. */
static struct batch random_batch(void)
{
    struct pm_rng r = pm_rng_make(1, 2, 3, 4);
    struct batch b = { 0 };

    for (int i = 0; i < P; i++)
        put_box(b.proposals[0][i], &r), put_box(b.anchors[i], &r);
    for (int i = 0; i < M; i++)
        put_box(b.truth[0][i], &r);
    for (int n = 0; n < IMAGES; n++) {
        memcpy(b.proposals[n], b.proposals[0], sizeof b.proposals[n]);
        memcpy(b.truth[n], b.truth[0], sizeof b.truth[n]);
        b.count[n] = P - n;
        b.normalizer[n] = (float)(1 + 3 * n);
        for (int i = 0; i < M; i++)
            b.weights[n][i] = 0.5f + 0.25f * (float)i, b.classes[n][i] = (n + i) % K;
        for (int i = 0; i < P; i++)
            b.matches[n][i] = (int)pm_rng_int(&r, -2, M - 1);
    }
    fill(b.first_logits[0][0], sizeof b.first_logits / sizeof(float), &r);
    fill(b.first_codes[0][0], sizeof b.first_codes / sizeof(float), &r);
    fill(b.codes[0][0], sizeof b.codes / sizeof(float), &r);
    fill(b.logits[0][0], sizeof b.logits / sizeof(float), &r);
    return b;
}

/* ---- parts of a batch ------------------------------------------------------------------------ */

/* A loss is a sum of up to IMAGES * P = 160 terms in float32. Rounding errors of 2^-24 with random
 * signs add up to sqrt(160) 2^-24 = 8e-7 in either sum. The bound is far below 160 2^-24 = 1e-5. */
static void near(const struct found *a, const struct found *b)
{
    assert_memory_equal(a->boxes, b->boxes, sizeof a->boxes);
    assert_memory_equal(a->matches, b->matches, sizeof a->matches);
    assert_memory_equal(a->count, b->count, sizeof a->count);
    for (int k = 0; k < 4; k++)
        assert_float_equal(a->loss[k], b->loss[k], 2e-6 * b->loss[k]);
}

/* Clones and micro-batches draw the same boxes, and their losses add up to that of the batch. */
static void parts(struct pm_device *d)
{
    static const char options[] = "iou_threshold=0.4 append_truth=true";
    const struct batch b = random_batch();
    struct found whole = { 0 }, two = { 0 }, micro = { 0 }, later = { 0 };

    run(d, &b, (struct part){ 0, 4, 1, 5 }, options, &whole);
    run(d, &b, (struct part){ 0, 1, 1, 5 }, options, &two);
    run(d, &b, (struct part){ 1, 3, 1, 5 }, options, &two);
    run(d, &b, (struct part){ 0, 4, 2, 5 }, options, &micro);
    run(d, &b, (struct part){ 0, 4, 1, 6 }, options, &later);
    near(&two, &whole);
    near(&micro, &whole);
    for (int k = 0; k < 4; k++)
        assert_true(whole.loss[k] > 0.01 && isfinite(whole.loss[k]));
    assert_memory_not_equal(later.boxes, whole.boxes, sizeof whole.boxes);
    for (int n = 1; n < IMAGES; n++) /* the same proposals, but draws of their own */
        assert_memory_not_equal(whole.boxes[n], whole.boxes[0], sizeof whole.boxes[n]);
}

/* ---- unusual boxes --------------------------------------------------------------------------- */

static void set(float box[4], float y0, float x0, float y1, float x1)
{
    box[0] = y0, box[1] = x0, box[2] = y1, box[3] = x1;
}

/* Samples everything of the first example, whose `count` boxes are given, and compares. matches: of
 * each box; -2: it must not be drawn. */
static void expect(struct pm_device *d, struct batch *b, int count, const char *options,
                   const int *matches)
{
    struct found f = { 0 };
    int row = 0;

    for (int n = 0; n < IMAGES; n++)
        b->count[n] = count;
    run(d, b, (struct part){ 0, 4, 1, 0 }, options, &f);
    for (int i = 0; i < count; i++) {
        if (matches[i] == -2)
            continue;
        if (f.matches[0][row] != matches[i])
            fail_msg("%s: the match of box %d is %d instead of %d", pm_device_get_info(d)->name, i,
                     f.matches[0][row], matches[i]);
        assert_memory_equal(f.boxes[0][row++], b->proposals[0][i], 4 * sizeof(float));
    }
    assert_int_equal(f.count[0], row);
    for (; row < R; row++) {
        assert_int_equal(f.matches[0][row], -2);
        assert_float_equal(fabsf(f.boxes[0][row][0]) + fabsf(f.boxes[0][row][3]), 0, 0);
    }
}

static void unusual(struct pm_device *d)
{
    struct batch b = random_batch();
    float(*x)[4] = b.proposals[0], (*t)[4] = b.truth[0];

    set(t[0], 0, 0, 0.5f, 0.5f), set(t[1], 0, 0, 0.5f, 0.5f); /* equal ones: the first */
    set(t[2], 0.5f, 0.5f, 1, 1);
    set(x[0], 0, 0, 0.5f, 0.5f);
    set(x[1], 0, 0, 0.25f, 0.5f);                         /* exactly 0.5 */
    set(x[2], 0, 0, 0.24999999f, 0.5f);                   /* just below */
    set(x[3], NAN, 0, 0.5f, 0.5f);
    set(x[4], 0, 0, INFINITY, 0.5f);
    set(x[5], 0.5f, 0.5f, 0, 0);                          /* corners in the wrong order */
    set(x[6], 0.25f, 0.25f, 0.25f, 0.25f);                /* no area */
    set(x[7], 0.5f, 0.5f, 1, 0.75f);                      /* exactly 0.5 of the last */
    set(x[8], 0, 0, 1e-30f, 1e-30f);                      /* areas below the least float */
    set(x[9], 0, 0, 0.5f, 0.5f);                          /* equal to the first */
    expect(d, &b, 10, "positive_fraction=1", (int[]){ 0, 0, -1, -1, -1, -1, -1, 2, -1, 0 });
    for (int n = 0; n < IMAGES; n++)
        b.weights[n][0] = 0; /* as a crowd: its proposals are not drawn, even as background */
    expect(d, &b, 10, "positive_fraction=1", (int[]){ -2, -2, -1, -1, -1, -1, -1, 2, -1, -2 });
    set(t[0], 0, 0, 0, 0); /* padding has no area and matches nothing */
    expect(d, &b, 10, "positive_fraction=1", (int[]){ 1, 1, -1, -1, -1, -1, -1, 2, -1, 1 });
    expect(d, &b, 0, "positive_fraction=1", NULL);
}

/* A count that is no number of proposals is limited to one. */
static void counts(struct pm_device *d)
{
    struct batch b = random_batch();
    struct found f = { 0 };

    b.count[0] = -3, b.count[1] = P + 5, b.count[2] = 1, b.count[3] = R - 1;
    run(d, &b, (struct part){ 0, 4, 1, 0 }, "positive_fraction=0 iou_threshold=1", &f);
    assert_int_equal(f.count[0], 0);
    assert_int_equal(f.count[1], R);
    assert_int_equal(f.count[2], 1);
    assert_int_equal(f.count[3], R - 1);
}

/* ---- refusals -------------------------------------------------------------------------------- */

struct refused {
    const char *layer, *text;
    int inputs;
    struct pm_shape shape[8];
    unsigned integers; /* bit i: input i is int32 */
};

static void refusals(void **state)
{
#define S1(a) { 1, { a } }
#define S2(a, b) { 2, { a, b } }
#define S3(a, b, c) { 3, { a, b, c } }
#define S4(a, b, c, d) { 4, { a, b, c, d } }
#define TRUTH S3(2, 3, 4), S2(2, 3), S2(2, 3)
#define LOGITS_18 S2(18, 8), S2(18, 3)
#define FIRST S4(2, 1, 9, 4), S4(2, 1, 9, 2), S2(9, 4), S2(2, 9)
    static const struct refused rows[] = {
        { "sample_proposals", "needs proposals of n x P x 4 and true boxes of n x M x 4", 4,
          { S3(2, 9, 3), S1(2), S3(2, 3, 4), S2(2, 3) }, 2 },
        { "sample_proposals", "the count of proposals, in1, is float32 of shape 2 instead of "
          "int32 of shape 2. Make the second input the number of proposals", 4,
          { S3(2, 9, 4), S1(2), S3(2, 3, 4), S2(2, 3) }, 0 },
        { "sample_proposals", "truth_weights have shape 2x4 instead of 2x3. Give one", 4,
          { S3(2, 9, 4), S1(2), S3(2, 3, 4), S2(2, 4) }, 2 },
        { "sample_proposals batch=0", "batch: 0 is outside 1..100000", 4,
          { S3(2, 9, 4), S1(2), S3(2, 3, 4), S2(2, 3) }, 2 },
        { "sample_proposals iou_threshold=0", "iou_threshold: 0 is outside 0.001..1", 4,
          { S3(2, 9, 4), S1(2), S3(2, 3, 4), S2(2, 3) }, 2 },
        { "box_classifier_loss", "boxes have shape 2x9 instead of n x R x 4", 8,
          { LOGITS_18, S2(2, 9), S2(2, 9), S1(2), TRUTH }, 88 },
        { "box_classifier_loss", "logits have shape 18x1 instead of 18 x (C + 1)", 8,
          { S2(18, 8), S2(18, 1), S3(2, 9, 4), S2(2, 9), S1(2), TRUTH }, 88 },
        { "box_classifier_loss", "for logits of 18x3 they must be 18x8, or, shared by all classes, "
          "18x4", 8,
          { S2(18, 12), S2(18, 3), S3(2, 9, 4), S2(2, 9), S1(2), TRUTH }, 88 },
        { "box_classifier_loss", "matches have shape 2x8 and count 2", 8,
          { LOGITS_18, S3(2, 9, 4), S2(2, 8), S1(2), TRUTH }, 88 },
        { "box_classifier_loss", "input 3, in3, holds float32 instead of int32. The inputs must be "
          "codes, logits, boxes, matches, count, ", 8,
          { LOGITS_18, S3(2, 9, 4), S2(2, 9), S1(2), TRUTH }, 64 },
        { "box_classifier_loss", "truth_classes are float32 of shape 2x3x4 instead of int32 of "
          "shape 2x3, or float32 of shape 2x3x2. Give each", 8,
          { LOGITS_18, S3(2, 9, 4), S2(2, 9), S1(2), S3(2, 3, 4), S3(2, 3, 4),
            S2(2, 3) }, 24 },
        { "box_classifier_loss coder_scales=[1]", "coder_scales has 1 numbers", 8,
          { LOGITS_18, S3(2, 9, 4), S2(2, 9), S1(2), TRUTH }, 88 },
        { "decode_boxes", "codes of 18x8 need one more input, boxes of n x R x 4 with n R = 18", 2,
          { S2(18, 8), S3(2, 8, 4) }, 0 },
        { "decode_boxes", "a multiple of 4 codes in a row", 2, { S2(18, 7), S3(2, 9, 4) }, 0 },
        { "suppress", "not 2x9x3x4 and 2x9x2", 2, { S4(2, 9, 3, 4), S3(2, 9, 2) }, 0 },
        { "suppress use_class_agnostic_nms=true max_classes_per_detection=2",
          "max_classes_per_detection=2 needs boxes that all classes share", 2,
          { S4(2, 9, 3, 4), S3(2, 9, 3) }, 0 },
        { "suppress", "windows (floats) and count (int32), each at most once", 4,
          { S3(2, 9, 4), S3(2, 9, 3), S1(2), S2(2, 4) }, 4 },
        { "suppress", "count must be 2, not 3", 3, { S3(2, 9, 4), S3(2, 9, 3), S1(3) }, 4 },
        { "suppress", "windows must be 2x4, not 2", 3, { S3(2, 9, 4), S3(2, 9, 3), S1(2) }, 0 },
        { "detection_loss normalize_per_image=true", "divides by the input normalizer, which is "
          "missing", 7,
          { FIRST, TRUTH }, 40 },
        { "detection_loss", "matches are float32 of shape 2x9 instead of int32 of shape 2x9. "
          "Give", 7,
          { FIRST, TRUTH }, 32 },
        { "detection_loss", "input 6, in6, holds int32 instead of float32. The inputs "
          "must be the", 7,
          { FIRST, TRUTH }, 104 },
        { "detection_loss", "truth_classes are int32 of shape 2x4 instead of int32 of shape 2x3, "
          "or float32 of shape 2x3x1. Give each", 7,
          { FIRST, S3(2, 3, 4), S2(2, 4), S2(2, 3) }, 40 },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(rows); i++) {
        struct pm_net *net = pm_net_create();
        struct pm_node *in[8];

        for (int k = 0; k < rows[i].inputs; k++) {
            char name[8];

            snprintf(name, sizeof name, "in%d", k);
            in[k] = pm_net_input(net, name, rows[i].shape[k],
                                 rows[i].integers >> k & 1 ? PM_I32 : PM_F32);
        }
        ok(net->error);
        pm_net_add_many(net, "y", in, rows[i].inputs, "%s", rows[i].layer);
        assert_int_equal(net->error, PM_ECONFIG);
        if (!strstr(pm_error_text(), rows[i].text) || !pm_is_line(pm_error_text()))
            fail_msg("row %zu, %s: %s", i, rows[i].layer, pm_error_text());
        pm_net_destroy(&net);
    }
}

ON_EVERY_DEVICE(parts)
ON_EVERY_DEVICE(unusual)
ON_EVERY_DEVICE(counts)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_unusual),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(refusals),
    };

    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
