/* Both stages of Faster R-CNN by the program, on drawn shapes of four classes: training that is
 * killed or loses a device ends with the same bits; clones of any shares and micro-batches learn
 * what one does; a net that learns finds boxes with their classes. */
#include "e2e/learnt.h"
#include "e2e/small_rcnn.h"

/* Dropout draws the same after a kill and after the loss of a device. */
static const char net[] =
    "{ \"base\": [\"rcnn.json\"], \"model\": { \"proposals\": { \"max_proposals\": 40 },\n"
    "    \"second_stage_box_predictor\": { \"use_dropout\": true } },\n"
    "  \"loss\": { \"proposal_sampler\": { \"batch_size\": 12 } } }\n";

static int make_data(void **state)
{
    (void)state;
    return make_rcnn(net, 96, 50, 21);
}

/* Dropout belongs to a proposal's row, so it needs proposals in the same order. */
static void in_parts(void **state)
{
    (void)state;
    assert_rcnn_in_parts("model.second_stage_box_predictor.use_dropout=false");
}

/* Localization and classification of the first, then of the second stage. */
static const char *const names[] = { "loss/localization_loss", "loss/classification_loss",
                                     "second_stage_loss/localization_loss",
                                     "second_stage_loss/classification_loss" };

/* The four losses of a step are finite. Their sum is the loss: the program adds the four in double,
 * with three roundings on either side. Returns the second stage's loss of boxes. */
static double assert_losses(const char *name, int step)
{
    double sum = 0;

    for (size_t i = 0; i < PM_COUNT(names); i++) {
        const double loss = logged(name, step, names[i]);

        assert_true(isfinite(loss) && loss >= 0);
        sum += loss;
    }
    assert_true(fabs(sum - logged(name, step, "loss")) <= 6 * 0x1p-53 * sum);
    return logged(name, step, names[2]);
}

/* Both stages have losses. A step without positive proposals has no boxes to correct. */
static void losses(void **state)
{
    double positives = 0;

    (void)state;
    train_whole();
    for (int step = 1; step <= 24; step++) {
        const double boxes = assert_losses("whole", step);
        const double positive = logged("whole", step, "positive_proposals");

        assert_true((boxes > 0) == (positive > 0));
        positives += positive;
        assert_true(logged("whole", step, names[1]) > 0 && logged("whole", step, names[3]) > 0);
        assert_true(positive <= 3);
        assert_true(logged("whole", step, "negative_proposals") >= 9);
        assert_true(logged("whole", step, "positive_proposals") +
                    logged("whole", step, "negative_proposals") <= 12);
    }
    assert_true(positives > 0);
}

/* Scores begin near 1/2, so no proposal has 0.999: the second stage has no box at all. */
static void no_proposals(void **state)
{
    (void)state;
    train("none", "model.proposals.score_threshold=0.999 run.steps=4 eval.every_steps=4");
    for (int step = 1; step <= 4; step++) {
        assert_true(assert_losses("none", step) == 0);
        assert_true(logged("none", step, names[1]) > 0 && logged("none", step, names[3]) == 0);
        assert_true(logged("none", step, "positive_proposals") == 0);
        assert_true(logged("none", step, "negative_proposals") == 0);
    }
    assert_true(logged_eval("none", 4, "proposal_recall_50") == 0);
    assert_true(isfinite(logged_eval("none", 4, "loss")));
}

/* Dropout and the draws of proposals are the same when they are computed again. */
static void recomputed(void **state)
{
    (void)state;
    train_whole();
    train("less", "run.recompute=most run.steps=8");
    same_losses("less", "whole", 1, 8, 0);
}

/* The last batch of an evaluation has absent examples, which must not count: the loss does not
 * depend on the size of the batches, except by the rounding of sums. All anchors count here,
 * because the draw of some depends on an example's place in its batch. The 64 x 144 anchors of the
 * largest batch are added in float32, in blocks of 256 and then block by block, which rounds a term
 * at most 256 + 36 times by 2^-24: 1.7e-5. The bound is that of errors with random signs,
 * sqrt(292) 2^-24 = 1e-6. */
static void absent(void **state)
{
    static const char *const batches[] = { "5", "7", "64" };
    double loss[PM_COUNT(batches)];

    (void)state;
    for (size_t i = 0; i < PM_COUNT(batches); i++) {
        char more[256];

        snprintf(more, sizeof more, "loss.minibatch_sampler='{\"batch_size\":1000,"
                 "\"positive_fraction\":1}' eval.batch_size=%s", batches[i]);
        loss[i] = eval_metric("whole", "loss", more);
        assert_true(loss[i] > 0 && fabs(loss[i] - loss[0]) < 1e-6 * loss[0]);
    }
}

/* Returns the member stages of what an evaluation wrote or printed. The caller frees it. */
static cJSON *stages_of(cJSON *of)
{
    cJSON *stages = cJSON_DetachItemFromObject(of, "stages");

    assert_non_null(stages);
    cJSON_Delete(of);
    return stages;
}

/* The evaluation inside of training. */
static cJSON *written_stages(const char *name)
{
    char *text = get_text(in("%s/evaluation.json", name));
    cJSON *of = cJSON_Parse(text);

    pm_free(text);
    return stages_of(of);
}

/* Every object has one outcome, in all classes and in each. Returns their number. */
static double assert_counts(const cJSON *stages)
{
    static const char *const outcomes[] = { "found", "no_proposal", "rejected", "suppressed" };
    const cJSON *classes = cJSON_GetObjectItem(stages, "per_class");
    double sum = 0, class_sum = 0;

    for (size_t k = 0; k < PM_COUNT(outcomes); k++) {
        const cJSON *v, *list = cJSON_GetObjectItem(classes, outcomes[k]);
        double of_classes = 0;

        assert_int_equal(cJSON_GetArraySize(list), 4);
        cJSON_ArrayForEach(v, list)
            of_classes += v->valuedouble;
        assert_true(of_classes == number_of(stages, outcomes[k]));
        sum += number_of(stages, outcomes[k]);
        class_sum += of_classes;
    }
    assert_true(sum == number_of(stages, "objects") && class_sum == sum);
    return sum;
}

/* Evaluations show which stage loses each object: inside of training, in `pumice eval`, and in the
 * report. Objects with the outcome no_proposal count against the recall of proposals. */
static void lost_objects(void **state)
{
    cJSON *report = eval_report("whole", ""), *row, *stages, *written = written_stages("whole");
    const double recall = number_of(cJSON_GetObjectItem(report, "metrics"), "proposal_recall_50");
    double support = 0, objects;
    char *page = get_text(in("whole/report.html"));
    struct result r;

    (void)state;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(report, "per_class"))
        support += number_of(row, "support");
    stages = stages_of(report);
    objects = assert_counts(stages);
    assert_true(objects == support && objects > 0);
    assert_true(cJSON_Compare(stages, written, true));
    assert_true(recall > 0 && recall == number_of(stages, "proposal_recall_50"));
    assert_true(number_of(stages, "no_proposal") <= objects * (1 - recall) + 0.5);
    assert_true(logged_eval("whole", 24, "proposal_recall_50") == recall);
    assert_true(logged_eval("whole", 24, "proposal_recall_70") <= recall);
    assert_contains(page, "Where objects are lost");
    pm_free(page);
    cJSON_Delete(stages);
    cJSON_Delete(written);
    r = run(NULL, "eval %s run.folder=%s", in("net.json"), in("whole"));
    assert_contains(r.out, " found, ");
    assert_contains(r.out, " rejected by the second stage");
    check(r, 0);
    /* @ becomes _ in tags, as in TensorFlow. */
    assert_true(has_tag(in("whole/eval_test"), "Proposals/Recall_.50IOU"));
}

/* A net that learns: with batch norm trained, the boxes of the training pictures are found, each
 * with its class. A trial gave 0.83. */
static void learns(void **state)
{
    (void)state;
    train_learns("optim.clip_norm=10 model.second_stage_box_predictor.use_dropout=false");
    /* Each detection comes from a proposal, so proposals cover most objects. A trial gave 1. */
    assert_true(eval_metric("learns", "proposal_recall_50", "") >= 0.8);
}

/* Vulkan continues the training of a net as the CPU does. Its trained scores differ by more than
 * rounding, so both devices have the same proposals. A loss is a sum of rounded numbers: 1e-6 of it
 * in a step, as between the parts of a batch. */
static void gpu(void **state)
{
    static const char *const devices[] = { "cpu", "vulkan:0" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(devices); i++) {
        char text[1024];

        snprintf(text, sizeof text, "'devices=[\"%s\"]' init.checkpoint=%s init.load_all=true "
                 "model.batch_norm_train=true run.steps=3 run.batch_size=4 eval.every_steps=0 "
                 "schedule.base_lr=0.001", devices[i], in("learns"));
        train(i == 0 ? "host" : "gpu", text);
    }
    same_losses("host", "gpu", 1, 3, 1e-5);
}

/* Each variant has other layers or another loss: mined proposals, one box for all classes, position
 * sensitive crops, true boxes as proposals, crops that are pooled to 3x3 or not at all, and the
 * other nets. All of them have both losses of both stages in each step. */
static void variants(void **state)
{
    static const char *const more[] = {
        "loss.hard_example_miner='{\"num_hard_examples\":4}'",
        "model.second_stage_box_predictor='{\"share_box_across_classes\":true}'",
        "model.second_stage_box_predictor='{\"type\":\"rfcn\",\"depth\":16}'",
        "loss.proposal_sampler='{\"append_truth\":true,\"batch_size\":12}'",
        "model.maxpool_kernel_size=1 model.maxpool_stride=1 model.initial_crop_size=7",
        "model.initial_crop_size=7",
        "model.name=faster_rcnn_inception_v2 model.batch_norm_train=true",
        "model.name=faster_rcnn_inception_v2 model.batch_norm_train=true "
        "model.second_stage_box_predictor='{\"type\":\"rfcn\",\"depth\":16}'",
        "model.name=faster_rcnn_inception_resnet_v2 model.batch_norm_train=true "
        "model.first_stage_features_stride=8 model.initial_crop_size=7",
        "model.name=faster_rcnn_resnet50 model.batch_norm_train=true "
        "model.first_stage_features_stride=8",
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(more); i++) {
        char text[512], name[32];

        snprintf(text, sizeof text, "run.steps=4 eval.every_steps=4 %s", more[i]);
        snprintf(name, sizeof name, "variant%zu", i);
        train(name, text);
        for (int step = 1; step <= 4; step++) {
            assert_losses(name, step);
            for (size_t k = 0; k < PM_COUNT(names); k++)
                assert_true(logged(name, step, names[k]) > 0);
        }
        cJSON *stages = written_stages(name);

        assert_true(assert_counts(stages) > 0);
        cJSON_Delete(stages);
    }
}

/* A pool drops the last row and column of an odd crop. */
static void odd_crops(void **state)
{
    struct result r = run(NULL, "config show %s --plan -v model.initial_crop_size=7",
                          in("net.json"));

    (void)state;
    assert_contains(r.out, "activation 72x7x7x128 ");
    assert_contains(r.out, "activation 72x3x3x128 ");
    check(r, 0);
}

static void refused(void **state)
{
    static const struct { const char *more, *message; } bad[] = {
        { "model.second_stage_box_predictor='{\"type\":\"other\"}'",
          "model.second_stage_box_predictor.type: must be \"mask_rcnn\" or \"rfcn\"" },
        { "model.second_stage_box_predictor='{\"type\":\"rfcn\",\"crop_height\":10}'",
          "model.second_stage_box_predictor.crop_height: 10 samples are not divisible by 3 bins: "
          "set it to 12" },
        { "model.second_stage_box_predictor='{\"depth\":3}'",
          "model.second_stage_box_predictor.depth: unknown key (known: use_dropout, " },
        { "model.proposals='{\"max_proposals\":0}'",
          "model.proposals.max_proposals: 0 is outside 1..10000 (most proposals of a picture)" },
        { "loss.hard_example_miner='{\"max_negatives_per_positive\":3}'",
          "the second stage's miner does not limit background" },
        { "loss.second_stage='{\"mask\":3}'",
          "loss.second_stage.mask: unknown key (known: classification_weight, " },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(bad); i++)
        check(run(NULL, "train %s run.folder=%s %s", in("net.json"), in("bad"), bad[i].more), 2,
              bad[i].message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_after_kills), cmocka_unit_test(same_after_loss),
        cmocka_unit_test(in_parts), cmocka_unit_test(losses), cmocka_unit_test(no_proposals),
        cmocka_unit_test(recomputed), cmocka_unit_test(absent), cmocka_unit_test(learns),
        cmocka_unit_test(gpu), cmocka_unit_test(lost_objects), cmocka_unit_test(variants),
        cmocka_unit_test(odd_crops), cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, make_data, drop_world);
}
