/* Pipeline configs of TensorFlow's Object Detection API, converted by the program: the config check
 * accepts real ones, and a small one trains. */
#include "program.h"

#include "base/shared_data.h"

static int set_up(void **state)
{
    (void)state;
    folder = make_folder();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    drop_folder(folder);
    return 0;
}

/* Configs that this version cannot train, and what is missing. */
static const struct {
    const char *name, *message;
} lacking[] = {
    { "faster_rcnn_nas_coco", "set model.name to choose the net" },
};

static const char *what_is_missing(const char *path)
{
    for (size_t i = 0; i < PM_COUNT(lacking); i++)
        if (strstr(path, lacking[i].name))
            return lacking[i].message;
    return NULL;
}

/* The files name no data, so a check ends with this one warning. Their label maps are not there. */
static void real(void **state)
{
    struct pm_arena *a = pm_arena_create();
    char **paths = NULL;
    size_t count = 0, accepted = 0;
    const char *configs = shared_data("pipeline-configs");

    (void)state;
    assert_int_equal(pm_glob(a, pm_arena_printf(a, "%s/configs/*.config", configs), &paths, &count),
                     PM_OK);
    for (size_t i = 0; i < count; i++) {
        const char *missing = what_is_missing(paths[i]);

        check(run(NULL, "config convert %s %s --force", paths[i], in("c.json")), missing ? 2 : 0,
              missing);
        if (missing)
            continue;
        struct result r = run(NULL, "config check %s data.label_map=null", in("c.json"));

        if (r.code != 0 || !strstr(r.out, "1 warning") || !strstr(r.out, "data.folder"))
            fail_msg("%s: %d: %s%s", paths[i], r.code, r.out, r.err);
        drop(&r);
        accepted++;
    }
    assert_int_equal(count, 19);
    assert_int_equal(accepted, count - PM_COUNT(lacking));
    pm_arena_destroy(&a);
}

/* A small config in the original's form, whose fields are those of the published recipes. */
static const char text[] =
    "model { faster_rcnn { num_classes: 4\n"
    "  image_resizer { keep_aspect_ratio_resizer { min_dimension: 64 max_dimension: 96 } }\n"
    "  feature_extractor { type: 'faster_rcnn_mobilenet_v1' first_stage_features_stride: 16 }\n"
    "  first_stage_anchor_generator { grid_anchor_generator { scales: [0.1, 0.2]\n"
    "    aspect_ratios: [0.5, 1.0, 2.0] height_stride: 16 width_stride: 16 } }\n"
    "  first_stage_box_predictor_conv_hyperparams { op: CONV\n"
    "    regularizer { l2_regularizer { weight: 0.0 } }\n"
    "    initializer { truncated_normal_initializer { stddev: 0.01 } } }\n"
    "  first_stage_max_proposals: 20 first_stage_localization_loss_weight: 2.0\n"
    "  first_stage_box_predictor_depth: 32 first_stage_minibatch_size: 32\n"
    "  initial_crop_size: 4 maxpool_kernel_size: 2 maxpool_stride: 2\n"
    "  second_stage_box_predictor { mask_rcnn_box_predictor { use_dropout: false\n"
    "    fc_hyperparams { op: FC regularizer { l2_regularizer { weight: 0.0 } }\n"
    "      initializer { variance_scaling_initializer { factor: 1.0 uniform: true\n"
    "        mode: FAN_AVG } } } } }\n"
    "  second_stage_batch_size: 8\n"
    "  second_stage_post_processing { batch_non_max_suppression { score_threshold: 0.0\n"
    "    iou_threshold: 0.6 max_detections_per_class: 20 max_total_detections: 30 }\n"
    "    score_converter: SOFTMAX }\n"
    "  second_stage_localization_loss_weight: 2.0 %s } }\n"
    "train_config { batch_size: 2 num_steps: 2 gradient_clipping_by_norm: 10.0\n"
    "  optimizer { momentum_optimizer { learning_rate { manual_step_learning_rate {\n"
    "    initial_learning_rate: 0.0003 schedule { step: 900000 learning_rate: .00003 } } } }\n"
    "    use_moving_average: false }\n"
    "  data_augmentation_options { random_horizontal_flip { } } }\n";

/* Converts the config with further fields of faster_rcnn, and trains its two steps. */
static void trained(const char *name, const char *fields)
{
    struct pm_str s = { 0 };

    pm_str_add(&s, text, fields);
    put_text(in("pipeline.config"), s.text);
    pm_str_free(&s);
    check(run(NULL, "config convert %s %s --force", in("pipeline.config"), in("c.json")), 0);
    check(run(NULL, "train %s data.folder=%s data.eval_split=test run.folder=%s "
                    "run.log_every_steps=1 model.depth_multiplier=0.25 devices='[\"cpu\"]'",
              in("c.json"), in("data"), in("%s", name)), 0);
    assert_true(logged(name, 2, "loss") > 0);
}

static void small(void **state)
{
    (void)state;
    check(run(NULL, "dataset make shapes %s size=64 train=8 validation=2 test=2", in("data")), 0);
    trained("two", "");
    assert_true(logged("two", 2, "second_stage_loss/classification_loss") > 0);
    trained("miner", "hard_example_miner { num_hard_examples: 8 max_negatives_per_positive: 3 }");
    trained("clipped", "clip_anchors_to_image: true second_stage_classification_loss {\n"
                       "  weighted_softmax { logit_scale: 2 } }");
    trained("one", "number_of_stages: 1");
    char *lines = get_text(in("one/metrics.jsonl"));
    assert_null(strstr(lines, "second_stage_loss"));
    pm_free(lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(real), cmocka_unit_test(small) };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
