/* The two stages of a detector of rotated boxes, for pictures that are wider than high: which
 * anchors are pruned; suppression, sampled proposals, crops, targets, losses and detections, each
 * computed again from the net's values in double precision. */
#include "detection_setup.h"

#include "layers/anchors.h"
#include "layers/rotated_ref.h"
#include "tasks/planned.h"

#include <pumice/rng.h>

enum { BATCH = 2, HEIGHT = 96, WIDTH = 128, BOXES = 4, ROWS = 24, PROPOSALS = 100, CROP = 6 };
#define QUARTER 1.5707963267948966
#define RATIO ((double)WIDTH / HEIGHT)

/* A map of 12x16 cells of one convolution; the second stage reads the crops themselves. */
static const char config[] =
    "{\"task\": \"detection\", \"model\": {\"boxes\": \"rotated\", "
    "\"name\": \"faster_rcnn_mobilenet_v1\", \"first_stage_layers\": [{\"name\": \"m\", "
    "\"layer\": \"conv2d\", \"filters\": 12, \"kernel\": 8, \"stride\": 8, "
    "\"activation\": \"tanh\"}], \"second_stage_layers\": [], "
    "\"first_stage_box_predictor_depth\": 16, \"initial_crop_size\": 6, "
    "\"maxpool_kernel_size\": 1, \"maxpool_stride\": 1, "
    "\"hyperparams\": {\"initializer\": \"normal(0.15)\"}, "
    "\"anchors\": {\"scales\": [0.08, 0.12], \"aspect_ratios\": [3]}, "
    "\"second_stage_box_predictor\": {\"hyperparams\": {\"initializer\": \"normal(0.5)\"}}}, "
    "\"data\": {\"max_boxes\": 4, \"label_map\": \"%s\"}, \"input\": {\"size\": [96, 128]}, "
    "\"loss\": {\"proposal_sampler\": {\"batch_size\": 24, \"iou_threshold\": 0.4}}}";

/* ---- a step and a prediction ----------------------------------------------------------------- */

static const char *const step_outputs[] = {
    "FirstStageFeatureExtractor/m", "boxes_1", "classes_1", "proposals/boxes", "proposals/scores",
    "proposal_boxes", "proposal_boxes:3", "proposal_boxes:4", "proposals/sampled",
    "proposals/sampled:1", "proposals/sampled:2", "SecondStageCrops",
    "SecondStageBoxPredictor/BoxEncodingPredictor", "SecondStageBoxPredictor/ClassPredictor",
    "loss/localization_loss", "loss/classification_loss", "second_stage_loss/localization_loss",
    "second_stage_loss/classification_loss", NULL };
static const char *const prediction_outputs[] = {
    "proposals/scores", "proposal_boxes", "proposal_boxes:3", "raw_detection_boxes",
    "raw_detection_scores", "detection_boxes", "detection_boxes:1", "detection_boxes:2",
    "detection_boxes:3", "detection_boxes:4", "SecondStageBoxPredictor/BoxEncodingPredictor",
    "SecondStageBoxPredictor/ClassPredictor", NULL };

static struct {
    struct setup s;
    struct pm_net *net;
    struct planned p;
    int count;                  /* anchors */
    float *anchors;             /* [count][5] */
    float truth[BATCH * BOXES][5], weights[BATCH * BOXES];
    int32_t classes[BATCH * BOXES], *matches;
} c;

static const void *out(const char *name)
{
    const void *v = pm_plan_output(c.p.plan, 0, name, 0);

    if (!v)
        fail_msg("no output %s", name);
    return v;
}

/* Boxes like anchors in the middle of the picture. Some weights are neither 0 nor 1. */
static void draw_truth(void)
{
    struct pm_rng r = pm_rng_make(11, 5, 0, 0);

    for (int i = 0; i < BATCH * BOXES; i++) {
        const float h = 0.1f + 0.06f * pm_rng_uniform(&r);
        const float v[5] = { 0.3f + 0.4f * pm_rng_uniform(&r), 0.3f + 0.7f * pm_rng_uniform(&r), h,
                             3 * h, (float)QUARTER * (2 * pm_rng_uniform(&r) - 1) };

        memcpy(c.truth[i], v, sizeof v);
        c.weights[i] = i % BOXES == 1 ? 0.5f : i % BOXES == 3 ? 0 : 1;
        c.classes[i] = i % CLASSES;
    }
}

static void fill_images(void)
{
    float *images = pm_plan_input(c.p.plan, 0, "images", 0);
    struct pm_rng r = pm_rng_make(7, 3, 0, 0);

    for (int i = 0; i < BATCH * HEIGHT * WIDTH * 3; i++)
        images[i] = 2 * pm_rng_uniform(&r) - 1;
}

/* Every anchor counts: those that the matcher ignores do not, as in a step. */
static void fill_step(void)
{
    const struct pm_task *t = c.s.e->task;
    float *normalizer = pm_plan_input(c.p.plan, 0, "normalizer", 0);

    fill_images();
    draw_truth();
    memcpy(pm_plan_input(c.p.plan, 0, "truth_boxes", 0), c.truth, sizeof c.truth);
    memcpy(pm_plan_input(c.p.plan, 0, "truth_weights", 0), c.weights, sizeof c.weights);
    memcpy(pm_plan_input(c.p.plan, 0, "truth_classes", 0), c.classes, sizeof c.classes);
    for (int i = 0; i < BATCH; i++) {
        const struct pm_truths truths = { .count = BOXES, .boxes = c.truth[i * BOXES],
                                          .weights = c.weights + i * BOXES };

        pm_match(&t->matcher, t->anchors[0].index, &truths, c.matches + i * c.count, NULL);
        normalizer[i] = (float)(200 + 100 * i);
    }
    memcpy(pm_plan_input(c.p.plan, 0, "matches", 0), c.matches,
           (size_t)(BATCH * c.count) * sizeof *c.matches);
}

static void start(enum pm_use use, const char *const *outputs)
{
    c.s = set_up(config);
    if (pm_experiment_net(c.s.e, (struct pm_net_want){ use, BATCH, 0, 0 }, &c.net, NULL) < 0)
        fail_msg("%s", pm_error_text());
    const struct pm_node *node = pm_net_find(c.net, "anchors");

    c.count = node->out_shape.dim[0];
    assert_int_equal(c.count, 12 * 16 * 2 * 7);
    c.anchors = pm_malloc(5 * (size_t)c.count * sizeof *c.anchors);
    c.matches = pm_malloc(BATCH * (size_t)c.count * sizeof *c.matches);
    pm_anchors_write(node, c.anchors);
    c.p = planned(c.net, outputs);
    if (pm_plan_step(c.p.plan, 0))
        *pm_plan_step(c.p.plan, 0) = (struct pm_step){ .seed_low = 3, .loss_scale = 1 };
    if (use == PM_USE_TRAIN)
        fill_step();
    else
        fill_images();
    run_plan(c.p.plan);
}

static int end(void **state)
{
    (void)state;
    drop_plan(&c.p);
    pm_net_destroy(&c.net);
    pm_free(c.anchors);
    pm_free(c.matches);
    tear_down(&c.s);
    memset(&c, 0, sizeof c);
    return 0;
}

static void doubles(const float *v, double out_[5])
{
    for (int k = 0; k < 5; k++)
        out_[k] = (double)v[k];
}

static double overlap(const float *a, const float *b)
{
    double x[5], y[5];

    doubles(a, x);
    doubles(b, y);
    return rotated_iou(x, y);
}

/* How far the corner that is farthest outside is from the picture. */
static double outside(const float *box)
{
    struct rotated_point p[4];
    double v[5], most = -1;

    doubles(box, v);
    rotated_corners(v, p);
    for (int i = 0; i < 4; i++)
        most = fmax(most, fmax(fmax(-p[i].y, p[i].y - 1), fmax(-p[i].x, p[i].x - RATIO)));
    return most;
}

/* Anchors with a corner outside have no match, and score 0 in a step and in a prediction. */
static void assert_pruned(bool train)
{
    const float *scores = out("proposals/scores");
    int inside = 0;

    for (int i = 0; i < c.count; i++) {
        const double by = outside(c.anchors + 5 * i);

        if (fabs(by) < 1e-5)
            continue; /* it touches the border */
        for (int k = 0; k < BATCH; k++) {
            assert_int_equal(scores[k * c.count + i] > 0, by < 0);
            if (train && by > 0)
                assert_int_equal(c.matches[k * c.count + i], PM_IGNORED);
        }
        inside += by < 0;
    }
    assert_true(inside > c.count / 4 && inside < c.count);
}

/* Whether the kept rows [kept] of boxes [n] are what greedy suppression keeps: the best first, none
 * overlaps a better one, and each row that is left out either overlaps a better kept one or comes
 * after the last of a full list. Overlaps within 1e-5 of the limit are either. */
static void assert_suppressed(const float *boxes, const float *scores, int n, double least,
                              const int32_t *kept, int count, int most, double limit)
{
    bool *is_kept = pm_calloc((size_t)n, sizeof *is_kept);

    for (int i = 0; i < count; i++) {
        const float *a = boxes + 5 * kept[i];

        assert_true(i == 0 || scores[kept[i]] <= scores[kept[i - 1]]);
        assert_true((double)scores[kept[i]] > least);
        for (int j = 0; j < i; j++)
            assert_true(overlap(a, boxes + 5 * kept[j]) <= limit + 1e-5);
        is_kept[kept[i]] = true;
    }
    for (int i = 0; i < n; i++) {
        bool explained = is_kept[i] || !((double)scores[i] > least) ||
                         (count == most && scores[i] <= scores[kept[count - 1]]);

        for (int j = 0; j < count && !explained; j++)
            explained = scores[kept[j]] >= scores[i] &&
                        overlap(boxes + 5 * i, boxes + 5 * kept[j]) > limit - 1e-5;
        if (!explained)
            fail_msg("row %d, score %g, is not suppressed", i, (double)scores[i]);
    }
    pm_free(is_kept);
}

/* ---- codes ----------------------------------------------------------------------------------- */

static const double scale_of[] = { 10, 10, 5, 5, 5 };

static void encode(const float *box, const float *anchor, double code[5])
{
    double b[5], a[5];

    doubles(box, b);
    doubles(anchor, a);
    const double dy = b[0] - a[0], dx = b[1] - a[1], cosine = cos(a[4]), sine = sin(a[4]);

    code[0] = (cosine * dy - sine * dx) / a[2];
    code[1] = (cosine * dx + sine * dy) / a[3];
    code[2] = log(b[2] / a[2]);
    code[3] = log(b[3] / a[3]);
    code[4] = (b[4] - a[4]) / QUARTER;
    for (int k = 0; k < 5; k++)
        code[k] *= scale_of[k];
}

static void assert_decoded(const float *code, const float *anchor, const float *box)
{
    double a[5], x[5];

    doubles(anchor, a);
    for (int k = 0; k < 5; k++)
        x[k] = (double)code[k] / scale_of[k];
    const double y = x[0] * a[2], along = x[1] * a[3];
    const double want[] = { a[0] + cos(a[4]) * y + sin(a[4]) * along,
                            a[1] + cos(a[4]) * along - sin(a[4]) * y, a[2] * exp(x[2]),
                            a[3] * exp(x[3]), a[4] + x[4] * QUARTER };

    for (int k = 0; k < 5; k++)
        if (!(fabs((double)box[k] - want[k]) <= 1e-5 * (1 + fabs(want[k]))))
            fail_msg("number %d is %g, not %g", k, (double)box[k], want[k]);
}

static double smooth_l1(const float *code, const double target[5])
{
    double sum = 0;

    for (int k = 0; k < 5; k++) {
        const double d = fabs((double)code[k] - target[k]);

        sum += d <= 1 ? d * d / 2 : d - 0.5;
    }
    return sum;
}

/* Softmax cross entropy of column `want`. */
static double entropy(const float *logits, int columns, int want)
{
    double sum = 0;

    for (int k = 0; k < columns; k++)
        sum += exp((double)logits[k]);
    return log(sum) - (double)logits[want];
}

static void assert_near(const char *what, double have, double want)
{
    if (!(fabs(have - want) <= 1e-5 * fabs(want)))
        fail_msg("%s is %.9g, not %.9g", what, have, want);
}

/* ---- the first stage ------------------------------------------------------------------------- */

static void first_losses(void)
{
    const float *codes = out("boxes_1"), *logits = out("classes_1");
    double loc = 0, cls = 0;
    int matched = 0;

    for (int i = 0; i < BATCH * c.count; i++) {
        const int image = i / c.count, g = c.matches[i];
        const double norm = (200 + 100 * image) * BATCH;
        const double w = g >= 0 ? (double)c.weights[image * BOXES + g] : 1;
        double target[5];

        if (g == PM_IGNORED)
            continue;
        cls += (w > 0) * entropy(logits + 2 * i, 2, g >= 0) / norm;
        if (g < 0)
            continue;
        encode(c.truth[image * BOXES + g], c.anchors + 5 * (i % c.count), target);
        loc += w * smooth_l1(codes + 5 * i, target) / norm;
        matched++;
    }
    assert_true(matched > 4);
    assert_near("the first localization loss", *(const float *)out("loss/localization_loss"),
                2 * loc);
    assert_near("the first classification loss", *(const float *)out("loss/classification_loss"),
                cls);
}

static void first_stage(void **state)
{
    const float *codes, *boxes, *scores, *logits, *kept;

    (void)state;
    start(PM_USE_TRAIN, step_outputs);
    codes = out("boxes_1"), boxes = out("proposals/boxes"), scores = out("proposals/scores");
    logits = out("classes_1"), kept = out("proposal_boxes");
    assert_pruned(true);
    for (int i = 0; i < BATCH * c.count; i++) {
        assert_decoded(codes + 5 * i, c.anchors + 5 * (i % c.count), boxes + 5 * i);
        if (scores[i] > 0)
            assert_near("a score", (double)scores[i], exp(-entropy(logits + 2 * i, 2, 1)));
    }
    for (int i = 0; i < BATCH; i++) {
        const int count = ((const int32_t *)out("proposal_boxes:3"))[i];
        const int32_t *rows = (const int32_t *)out("proposal_boxes:4") + i * PROPOSALS;

        assert_int_equal(count, PROPOSALS);
        assert_suppressed(boxes + 5 * i * c.count, scores + i * c.count, c.count, 0, rows, count,
                          PROPOSALS, (double)0.6f);
        for (int k = 0; k < count; k++)
            assert_memory_equal(kept + 5 * (i * PROPOSALS + k),
                                boxes + 5 * (i * c.count + rows[k]), 5 * sizeof *kept);
    }
    first_losses();
}

/* ---- the second stage ------------------------------------------------------------------------ */

/* Each sampled box matches the true box that it overlaps most, from 0.4 on. */
static void assert_sampled(int image, const float *boxes, const int32_t *matches, int count)
{
    int positive = 0;

    for (int k = 0; k < count; k++) {
        double best = 0;
        int g = -1;

        for (int i = 0; i < BOXES; i++) {
            const double v = overlap(boxes + 5 * k, c.truth[image * BOXES + i]);

            if (v > best)
                best = v, g = i;
        }
        if (fabs(best - 0.4) < 1e-5)
            continue;
        g = best > 0.4 ? g : -1;
        assert_int_equal(matches[k], g);
        assert_true(g < 0 || c.weights[image * BOXES + g] > 0);
        positive += g >= 0;
    }
    assert_true(positive > 0 && positive <= ROWS / 4 && count == ROWS);
}

/* The value of the map of an image at a place in cells; 0 outside. */
static double map_at(int image, double row, double col, int channel)
{
    const float *map = out(step_outputs[0]);
    double sum = 0;

    for (int y = (int)floor(row); y <= (int)floor(row) + 1; y++)
        for (int x = (int)floor(col); x <= (int)floor(col) + 1; x++)
            if (y >= 0 && y < 12 && x >= 0 && x < 16)
                sum += (1 - fabs(row - y)) * (1 - fabs(col - x)) *
                       (double)map[((image * 12 + y) * 16 + x) * 12 + channel];
    return sum;
}

/* Crop rows lie along h, columns along w, from the left upper corner; the last row and column of
 * the map are at the picture's end. A rounding of 2^-22 of a place moves a value by that share of
 * the difference of two cells, which are below 1. */
static void assert_crops(int image, const float *boxes, const float *crops)
{
    for (int k = 0; k < ROWS; k++) {
        double v[5];

        doubles(boxes + 5 * k, v);
        for (int i = 0; i < CROP * CROP; i++) {
            const double a = (i / CROP / (CROP - 1.0) - 0.5) * v[2];
            const double b = (i % CROP / (CROP - 1.0) - 0.5) * v[3];
            const double y = v[0] + a * cos(v[4]) + b * sin(v[4]);
            const double x = v[1] + b * cos(v[4]) - a * sin(v[4]);

            for (int ch = 0; ch < 12; ch += 5) {
                const double have = (double)crops[(k * CROP * CROP + i) * 12 + ch];
                const double want = map_at(image, y * 11, x / RATIO * 15, ch);

                if (!(fabs(have - want) < 1e-4))
                    fail_msg("crop %d, sample %d is %g, not %g", k, i, have, want);
            }
        }
    }
}

/* Adds an image's losses. The angle of the truth is that of the nearest half turn. */
static int add_second(int image, const float *boxes, const int32_t *matches, double *loc,
                      double *cls)
{
    const float *codes = out(step_outputs[12]), *logits = out(step_outputs[13]);
    int far = 0;

    for (int k = 0; k < ROWS; k++) {
        const int row = image * ROWS + k, g = matches[k], at = image * BOXES + (g < 0 ? 0 : g);
        const double w = (g < 0 ? 1 : (double)c.weights[at]) / ROWS / BATCH;
        const int label = c.classes[at];
        double target[5];

        *cls += w * entropy(logits + (CLASSES + 1) * row, CLASSES + 1, g < 0 ? 0 : label + 1);
        if (g < 0)
            continue;
        encode(c.truth[at], boxes + 5 * k, target);
        far += fabs(target[4]) > 5;
        target[4] = remainder(target[4], 10);
        *loc += w * smooth_l1(codes + 5 * (CLASSES * row + label), target);
    }
    return far;
}

static void second_stage(void **state)
{
    const float *boxes, *crops;
    const int32_t *matches, *counts;
    double loc = 0, cls = 0;
    int far = 0;

    (void)state;
    start(PM_USE_TRAIN, step_outputs);
    boxes = out("proposals/sampled"), matches = out("proposals/sampled:1");
    counts = out("proposals/sampled:2"), crops = out("SecondStageCrops");
    for (int i = 0; i < BATCH; i++) {
        assert_sampled(i, boxes + 5 * ROWS * i, matches + ROWS * i, counts[i]);
        assert_crops(i, boxes + 5 * ROWS * i, crops + ROWS * i * CROP * CROP * 12);
        far += add_second(i, boxes + 5 * ROWS * i, matches + ROWS * i, &loc, &cls);
    }
    assert_true(loc > 0 && far > 0);
    assert_near("the second localization loss",
                *(const float *)out("second_stage_loss/localization_loss"), 2 * loc);
    assert_near("the second classification loss",
                *(const float *)out("second_stage_loss/classification_loss"), cls);
}

/* ---- detections ------------------------------------------------------------------------------ */

/* All classes are suppressed together: a proposal has the box and the score of its best class. */
static void detections(void **state)
{
    const float *all, *scores, *proposals, *codes, *logits;

    (void)state;
    start(PM_USE_PREDICT, prediction_outputs);
    assert_pruned(false);
    all = out("raw_detection_boxes"), scores = out("raw_detection_scores");
    proposals = out("proposal_boxes");
    codes = out(prediction_outputs[10]), logits = out(prediction_outputs[11]);
    for (int i = 0; i < BATCH; i++) {
        const int n = ((const int32_t *)out("proposal_boxes:3"))[i];
        const int count = ((const int32_t *)out("detection_boxes:3"))[i];
        const int32_t *rows = (const int32_t *)out("detection_boxes:4") + i * 100;
        const int32_t *classes = (const int32_t *)out("detection_boxes:2") + i * 100;
        const float *found = (const float *)out("detection_boxes") + 5 * i * 100;
        float boxes[PROPOSALS * 5], best[PROPOSALS];
        int label[PROPOSALS];

        for (int k = 0; k < n; k++) {
            const int row = i * PROPOSALS + k;
            const float *s = scores + CLASSES * row;

            label[k] = 0;
            for (int j = 0; j < CLASSES; j++) {
                assert_near("a score", (double)s[j],
                            exp(-entropy(logits + (CLASSES + 1) * row, CLASSES + 1, j + 1)));
                assert_decoded(codes + 5 * (CLASSES * row + j), proposals + 5 * row,
                               all + 5 * (CLASSES * row + j));
                label[k] = s[j] > s[label[k]] ? j : label[k];
            }
            best[k] = s[label[k]];
            memcpy(boxes + 5 * k, all + 5 * (CLASSES * row + label[k]), 5 * sizeof *boxes);
        }
        assert_true(n == PROPOSALS && count > 5 && count < n);
        assert_suppressed(boxes, best, n, (double)0.01f, rows, count, 100, (double)0.3f);
        for (int k = 0; k < count; k++) {
            assert_int_equal(classes[k], label[rows[k]]);
            assert_memory_equal(found + 5 * k, boxes + 5 * rows[k], 5 * sizeof *boxes);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(first_stage, end),
        cmocka_unit_test_teardown(second_stage, end),
        cmocka_unit_test_teardown(detections, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
