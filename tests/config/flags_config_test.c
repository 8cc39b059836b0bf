/* The tables of the original programs' flags are complete and name existing keys. */
#include "../base/unit.h"

#include <cjson/cJSON.h>
#include <pumice/data.h>
#include <pumice/train.h>

#include "config/config_private.h"

static struct pm_arena *arena;
static struct pm_open_sections open_rows;

/* The flags listed in the programs' sources; programs in the order of pm_programs. */
static const char *const flags[] = {
    "master num_clones clone_on_cpu worker_replicas num_ps_tasks task sync_replicas "
    "replicas_to_aggregate train_dir log_every_n_steps save_summaries_secs save_interval_secs "
    "weight_decay optimizer adadelta_rho adagrad_initial_accumulator_value adam_beta1 adam_beta2 "
    "opt_epsilon ftrl_learning_rate_power ftrl_initial_accumulator_value ftrl_l1 ftrl_l2 momentum "
    "rmsprop_momentum rmsprop_decay quantize_delay learning_rate_decay_type learning_rate "
    "end_learning_rate label_smoothing learning_rate_decay_factor num_epochs_per_decay "
    "warmup_epochs moving_average_decay dataset_name dataset_split_name dataset_dir labels_offset "
    "num_readers num_preprocessing_threads batch_size use_grayscale model_name preprocessing_name "
    "train_image_size max_number_of_steps checkpoint_path checkpoint_exclude_scopes "
    "trainable_scopes ignore_missing_vars",
    "clip_gradient_norm gradient_multipliers startup_delay_steps trace_every_n_steps",
    "batch_size max_num_batches master checkpoint_path eval_dir num_preprocessing_threads "
    "dataset_name dataset_split_name dataset_dir labels_offset model_name preprocessing_name "
    "moving_average_decay eval_image_size quantize use_grayscale",
    "model_name is_training image_size default_image_size batch_size dataset_name labels_offset "
    "output_file dataset_dir quantize is_video_model num_frames write_text_graphdef use_grayscale",
    "dataset_name dataset_dir small_object_area_threshold foreground_class_of_interest "
    "coco_dirname coco_train_url coco_validation_url coco_annotations_url",
    "train_directory validation_directory output_directory train_shards validation_shards "
    "num_threads labels_file imagenet_metadata_file bounding_box_file",
    "train_dir max_steps subset num_gpus log_device_placement fine_tune "
    "pretrained_model_checkpoint_path checkpoint_dir initial_learning_rate num_epochs_per_decay "
    "learning_rate_decay_factor data_dir batch_size image_size num_preprocess_threads num_readers "
    "input_queue_memory_factor",
    "job_name task_id ps_hosts worker_hosts protocol train_dir max_steps subset "
    "log_device_placement num_replicas_to_aggregate save_interval_secs save_summaries_secs "
    "initial_learning_rate num_epochs_per_decay learning_rate_decay_factor batch_size",
    "eval_dir checkpoint_dir eval_interval_secs run_once num_examples subset data_dir batch_size "
    "image_size",
    "master task ps_tasks batch_size num_classes number_of_steps image_size depth_multiplier "
    "quantize fine_tune_checkpoint checkpoint_dir dataset_dir log_every_n_steps "
    "save_summaries_secs save_interval_secs",
    "master batch_size num_classes num_examples image_size depth_multiplier quantize "
    "checkpoint_dir eval_dir dataset_dir",
    "data_dir set annotations_dir year output_path label_map_path ignore_difficult_instances",
    "include_masks train_image_dir val_image_dir test_image_dir train_annotations_file "
    "val_annotations_file testdev_annotations_file output_dir",
    "data_dir output_path classes_to_use label_map_path validation_set_size",
    "data_dir output_dir label_map_path faces_only mask_type num_shards",
    "input_box_annotations_csv input_images_directory input_image_label_annotations_csv "
    "input_label_map output_tf_record_path_prefix num_shards",
    /* DeepLab */
    "model_variant min_resize_value max_resize_value resize_factor keep_aspect_ratio "
    "logits_kernel_size image_pyramid add_image_level_feature image_pooling_crop_size "
    "image_pooling_stride aspp_with_batch_norm aspp_with_separable_conv multi_grid "
    "depth_multiplier divisible_by decoder_output_stride decoder_use_separable_conv merge_method "
    "prediction_with_upsampled_logits dense_prediction_cell_json "
    "nas_stem_output_num_conv_filters nas_use_classification_head nas_remove_os32_stride "
    "use_bounded_activation aspp_with_concat_projection aspp_with_squeeze_and_excitation "
    "aspp_convs_filters decoder_use_sum_merge decoder_filters decoder_output_is_logits "
    "image_se_uses_qsigmoid label_weights batch_norm_decay atrous_rates output_stride "
    "quantize_delay_step",
    "num_clones clone_on_cpu num_replicas startup_delay_steps num_ps_tasks master task "
    "train_logdir log_steps save_interval_secs save_summaries_secs save_summaries_images "
    "profile_logdir optimizer learning_policy base_learning_rate decay_steps end_learning_rate "
    "learning_rate_decay_factor learning_rate_decay_step learning_power training_number_of_steps "
    "momentum adam_learning_rate adam_epsilon train_batch_size weight_decay train_crop_size "
    "last_layer_gradient_multiplier upsample_logits hard_example_mining_step "
    "top_k_percent_pixels drop_path_keep_prob tf_initial_checkpoint initialize_last_layer "
    "last_layers_contain_logits_only slow_start_step slow_start_learning_rate "
    "fine_tune_batch_norm min_scale_factor max_scale_factor scale_factor_step_size dataset "
    "dataset_dir train_split",
    "master eval_logdir vis_logdir checkpoint_dir eval_batch_size vis_batch_size eval_crop_size "
    "vis_crop_size eval_interval_secs eval_scales add_flipped_images eval_split vis_split "
    "max_number_of_evaluations max_number_of_iterations colormap_type also_save_raw_predictions",
    "checkpoint_path export_path num_classes crop_size output_stride inference_scales "
    "add_flipped_images save_inference_graph",
};

/* True when word is one of the names, separated by blanks or commas. */
static bool holds(const char *list, const char *word)
{
    const size_t n = strlen(word);

    for (const char *c = list; c && *c; c += strcspn(c, " ,"), c += strspn(c, " ,"))
        if (strcspn(c, " ,") == n && memcmp(c, word, n) == 0)
            return true;
    return false;
}

static const struct pm_flag *find(const struct pm_program *p, const char *flag)
{
    for (const struct pm_flag *f = p->flag; f->flag; f++)
        if (strcmp(f->flag, flag) == 0)
            return f;
    return NULL;
}

/* Every flag has a row, and there are no other rows. */
static void complete(void **state)
{
    size_t count = 0;
    (void)state;

    for (const struct pm_program *p = pm_programs; p->name; p++, count++) {
        char list[2048], *rest = NULL;
        assert_true(count < PM_COUNT(flags));
        snprintf(list, sizeof list, "%s", flags[count]);
        for (char *word = strtok_r(list, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
            if (!find(p, word))
                fail_msg("%s: %s has no row in src/config/flags.c", p->name, word);
        for (const struct pm_flag *f = p->flag; f->flag; f++) {
            if (!holds(flags[count], f->flag))
                fail_msg("%s: has no flag %s", p->name, f->flag);
            if (find(p, f->flag) != f)
                fail_msg("%s: %s stands twice", p->name, f->flag);
        }
    }
    assert_int_equal(count, PM_COUNT(flags));
}

/* True when the key is an option of the section or of one of its rows. */
static bool is_option(const char *key)
{
    const size_t n = strcspn(key, ".");
    const struct pm_config_section *s = pm_config_section_find(key, n);
    const struct pm_open_rows *rows = s ? pm_config_rows(s, &open_rows) : NULL;
    bool found = strcmp(key, "devices") == 0 || (s && pm_opts_find(s->opts, key + n + 1) >= 0);

    for (size_t i = 0; i < open_rows.task_count && s && !found; i++) {
        const struct pm_opt *opts = pm_config_task_opts(open_rows.tasks[i], s->name);

        found = opts && pm_opts_find(opts, key + n + 1) >= 0;
    }
    for (size_t i = 0; rows && i < rows->count && !found; i++)
        found = rows->rows[i].opts && pm_opts_find(rows->rows[i].opts, key + n + 1) >= 0;
    return found;
}

/* "`name=`" must be an option of a converter. */
static void check_instead(const struct pm_flag *f)
{
    const size_t n = f->instead ? strlen(f->instead) : 0;
    char name[64];
    size_t count;
    const struct pm_converter *const *rows = pm_converters(&count);
    bool found = false;

    assert_true(n > 0);
    if (f->instead[0] != '`' || strcmp(f->instead + n - 2, "=`") != 0)
        return;
    snprintf(name, sizeof name, "%.*s", (int)n - 3, f->instead + 1);
    found |= pm_opts_find(pm_convert_opts, name) >= 0;
    for (size_t i = 0; i < count; i++)
        found |= rows[i]->opts && pm_opts_find(rows[i]->opts, name) >= 0;
    if (!found)
        fail_msg("%s: no converter has an option %s", f->flag, name);
}

/* Each key exists or is known as refused. */
static void keys_exist(void **state)
{
    (void)state;
    for (const struct pm_program *p = pm_programs; p->name; p++)
        for (const struct pm_flag *f = p->flag; f->flag; f++) {
            if (!f->key) {
                check_instead(f);
                continue;
            }
            const struct pm_reference *r = pm_reference_find(f->key);
            if (!r)
                fail_msg("%s: %s: src/config/reference.c does not know %s", p->name, f->flag,
                         f->key);
            if (!pm_refused_find(f->key) && !is_option(f->key))
                fail_msg("%s: %s: no section, net or optimizer has %s", p->name, f->flag, f->key);
        }
}

/* A flag of TF-Slim's programs is listed in its program's table only, not again in the key's
 * line. DeepLab's flags may have the names of arguments of TF-Slim. */
static void once(void **state)
{
    (void)state;
    for (const struct pm_reference *r = pm_references; r->key; r++)
        for (const struct pm_program *p = pm_programs; p->name; p++)
            for (const struct pm_flag *f = p->flag; f->flag; f++)
                if (f->key && !p->task && pm_reference_lists(r->slim, f->flag))
                    fail_msg("%s: src/config/flags.c has the flag %s, src/config/reference.c too",
                             r->key, f->flag);
}

/* No option of a net, optimizer or preprocessing has the name of a refused key. */
static void not_refused(void **state)
{
    (void)state;
    for (const struct pm_refused *l = pm_refused_keys; l->key; l++)
        if (is_option(l->key))
            fail_msg("%s: is an option, but src/config/refused.def has a line for it", l->key);
}

static void printed(void **state)
{
    char *text = pm_config_flags_markdown(&open_rows, pm_convert_pipeline_has);
    (void)state;

    assert_contains(text, "\n### train_image_classifier\n\nHere: `pumice train CONFIG`.\n\n");
    assert_contains(text, "| `batch_size` | `32` | `run.batch_size` | `32` | there per clone");
    assert_contains(text,
                    "| `opt_epsilon` | `1.0` | `optim.epsilon` | `1` (adadelta, adam, rmsprop), ");
    assert_contains(text, "| `output_file` | `\"\"` | `export.file` | `null` | |\n");
    assert_contains(text, "| `is_training` | `false` | `export.training` | `false` | ");
    assert_contains(text, "| `training_number_of_steps` | `30000` | `run.steps` | `null` | must "
                          "be given |\n");
    assert_contains(text, "| `optimizer` | `\"momentum\"` | `optim.name` | `\"momentum\"` | ");
    assert_contains(text, "| `worker_replicas` | `run.replicas` | `0` | ");
    assert_null(strstr(text, "| `num_steps` | `run.steps` | `null` | ")); /* a field */
    assert_contains(text, "| `dropout_keep_prob` | `model.keep_prob` | ");
    pm_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complete),  cmocka_unit_test(keys_exist), cmocka_unit_test(once),
        cmocka_unit_test(not_refused), cmocka_unit_test(printed),
    };

    arena = pm_arena_create();
    open_rows = pm_train_choices(arena);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pm_arena_destroy(&arena);
    return failed;
}
