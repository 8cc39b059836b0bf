/* Every key of all three tasks, with its tasks and its names in the original programs. Each concept
 * has one name: flags of the same meaning in different programs are listed at one key. The flags of
 * TF-Slim's and the Inception trainer's programs are in flags.c; the slim column here is for
 * arguments that are not flags.
 *
 * The keys that this version reads are in sections.c, those of later versions in later.def. A test
 * compares this list with both. */
#include "config/config_private.h"

#include <string.h>

#define KEY(k, t, s, l, d)                                            \
    {                                                                 \
        .key = k, .tasks = t, .slim = s, .deeplab = l, .detection = d \
    }

const struct pm_reference pm_references[] = {
    KEY("task", "csd", NULL, NULL, NULL),
    KEY("base", "csd", NULL, NULL, NULL),
    KEY("devices", "csd", NULL, "num_clones, clone_on_cpu", "num_clones, clone_on_cpu"),

    /* ---- model ---- */
    KEY("model.name", "csd", NULL, "model_variant, net_name", "feature_extractor.type"),
    KEY("model.num_classes", "csd", NULL, "num_classes", "num_classes"),
    KEY("model.layers", "csd", NULL, NULL, NULL),
    KEY("model.onnx", "cs", NULL, NULL, NULL),
    KEY("model.onnx_logits", "cs", NULL, NULL, NULL),
    KEY("model.onnx_new_head", "cs", NULL, NULL, NULL),
    KEY("model.keep_prob", "cs", "dropout_keep_prob", NULL, NULL),
    KEY("model.drop_path_keep", "cs", NULL, "drop_path_keep_prob", NULL),
    KEY("model.drop_path_steps", "cs", NULL, NULL, NULL),
    KEY("model.output_stride", "csd", "output_stride", "output_stride", NULL),
    KEY("model.depth_multiplier", "csd", NULL, "depth_multiplier", "depth_multiplier"),
    KEY("model.min_depth", "cd", "min_depth, min_base_depth", NULL, "min_depth"),
    KEY("model.divisible_by", "cs", NULL, "divisible_by", NULL),
    KEY("model.scale_last", "c", "finegrain_classification_mode", NULL, NULL),
    KEY("model.global_pool", "c", "global_pool", NULL, NULL),
    KEY("model.batch_norm_decay", "csd", NULL, "batch_norm_decay", "batch_norm.decay"),
    KEY("model.batch_norm_epsilon", "csd", NULL, NULL, "batch_norm.epsilon"),
    KEY("model.moving_variance", "csd", NULL, NULL, NULL),
    KEY("model.batch_norm_train", "csd", NULL, "fine_tune_batch_norm",
        "batch_norm.train, freeze_batchnorm"),
    KEY("model.head_batch_norm_decay", "s", NULL, NULL, NULL),
    KEY("model.conventions", "c", NULL, NULL, NULL),
    KEY("model.aux_head", "c", "create_aux_logits", NULL, NULL),
    KEY("model.separable_conv", "c", "use_separable_conv", NULL, NULL),
    KEY("model.fc_conv_padding", "c", "fc_conv_padding", NULL, NULL),
    KEY("model.root_block", "c", "include_root_block", NULL, NULL),
    KEY("model.meta", "d", NULL, NULL, "model.ssd, model.faster_rcnn, model.rfaster_rcnn"),
    KEY("model.multi_grid", "s", NULL, "multi_grid", NULL),
    KEY("model.bounded_activation", "s", NULL, "use_bounded_activation", NULL),
    KEY("model.image_pyramid", "s", NULL, "image_pyramid", NULL),
    KEY("model.merge_method", "s", NULL, "merge_method", NULL),
    KEY("model.logits_kernel_size", "s", NULL, "logits_kernel_size", NULL),
    KEY("model.predict_upsampled", "s", NULL, "prediction_with_upsampled_logits", NULL),
    KEY("model.aspp_rates", "s", NULL, "atrous_rates", NULL),
    KEY("model.aspp_filters", "s", NULL, "aspp_convs_filters", NULL),
    KEY("model.aspp_batch_norm", "s", NULL, "aspp_with_batch_norm", NULL),
    KEY("model.aspp_separable", "s", NULL, "aspp_with_separable_conv", NULL),
    KEY("model.aspp_image_level", "s", NULL, "add_image_level_feature", NULL),
    KEY("model.aspp_pooling_crop", "s", NULL, "image_pooling_crop_size", NULL),
    KEY("model.aspp_pooling_stride", "s", NULL, "image_pooling_stride", NULL),
    KEY("model.aspp_concat_projection", "s", NULL, "aspp_with_concat_projection", NULL),
    KEY("model.aspp_squeeze_excite", "s", NULL, "aspp_with_squeeze_and_excitation", NULL),
    KEY("model.aspp_se_qsigmoid", "s", NULL, "image_se_uses_qsigmoid", NULL),
    KEY("model.decoder_strides", "s", NULL, "decoder_output_stride", NULL),
    KEY("model.decoder_separable", "s", NULL, "decoder_use_separable_conv", NULL),
    KEY("model.decoder_sum_merge", "s", NULL, "decoder_use_sum_merge", NULL),
    KEY("model.decoder_filters", "s", NULL, "decoder_filters", NULL),
    KEY("model.decoder_is_logits", "s", NULL, "decoder_output_is_logits", NULL),
    KEY("model.instance", "s", NULL, NULL, NULL),
    KEY("model.decoder_filters_instance", "s", NULL, "decoder_filters_instance", NULL),
    KEY("model.instance_mode", "s", NULL, NULL, NULL),
    KEY("model.dense_prediction_cell", "s", NULL, "dense_prediction_cell_json", NULL),
    KEY("model.nas_stem_filters", "s", NULL, "nas_stem_output_num_conv_filters", NULL),
    KEY("model.nas_classification_head", "s", NULL, "nas_use_classification_head", NULL),
    KEY("model.nas_remove_os32_stride", "s", NULL, "nas_remove_os32_stride", NULL),
    KEY("model.edge_classes", "s", NULL, "edge_class_num", NULL),
    KEY("model.hyperparams", "d", NULL, NULL, "conv_hyperparams, fc_hyperparams"),
    KEY("model.quantize_delay", "csd", NULL, "quantize_delay_step", "graph_rewriter.quantization"),

    /* ---- data ---- */
    KEY("data.folder", "csd", NULL, "dataset_dir, dataset",
        "tf_record_input_reader.input_path, train_file_path, external_input_reader"),
    KEY("data.make", "csd", NULL, NULL, NULL),
    KEY("data.train_split", "csd", NULL, "train_split", "train_input_reader"),
    KEY("data.eval_split", "csd", "eval_split_name", "eval_split, vis_split", "eval_input_reader"),
    KEY("data.labels_offset", "c", NULL, NULL, NULL),
    KEY("data.on_corrupt", "csd", NULL, NULL, NULL),
    KEY("data.threads", "csd", NULL, "num_readers",
        "num_readers, num_parallel_batches, num_batch_queue_threads, num_parallel_map_calls"),
    KEY("data.ring", "csd", NULL, NULL,
        "batch_queue_capacity, prefetch_queue_capacity, num_prefetch_batches, prefetch_size, "
        "queue_capacity"),
    KEY("data.folders", "d", NULL, NULL, "sample_from_datasets_weights"),
    KEY("data.label_map", "d", NULL, NULL,
        "label_map_path, label_map_file, use_display_name, use_keypoint_label_map"),
    KEY("data.expand_hierarchy", "d", NULL, NULL, "expand_labels_hierarchy"),
    KEY("data.shuffle", "csd", NULL, NULL,
        "shuffle, shuffle_buffer_size, filenames_shuffle_buffer_size, "
        "min_after_dequeue, read_block_length"),
    KEY("data.num_epochs", "csd", NULL, NULL, "num_epochs"),
    KEY("data.sample_1_of_n", "csd", NULL, NULL, "sample_1_of_n_examples"),
    KEY("data.max_boxes", "d", NULL, NULL, "max_number_of_boxes"),
    KEY("data.num_keypoints", "d", NULL, NULL, "num_keypoints, keypoint_type_weight"),
    KEY("data.instance_masks", "d", NULL, NULL, "load_instance_masks, mask_type"),
    KEY("data.multiclass_scores", "d", NULL, NULL,
        "load_multiclass_scores, use_multiclass_scores"),
    KEY("data.merge_multiple_label_boxes", "d", NULL, NULL, "merge_multiple_label_boxes"),
    KEY("data.additional_channels", "d", NULL, NULL, "num_additional_channels"),
    KEY("data.fields", "d", NULL, NULL,
        "load_dense_pose, load_track_id, load_keypoint_depth_features, "
        "load_context_features, load_context_image_ids, include_source_id"),
    KEY("data.frame_index", "d", NULL, NULL, "input_type, frame_index"),
    KEY("data.image_dtype", "d", NULL, NULL, "image_dtype"),
    KEY("data.ignore_label", "s", NULL, NULL, NULL),
    KEY("data.thing_classes", "s", NULL, NULL, NULL),
    KEY("data.center_sigma", "s", NULL, NULL, NULL),
    KEY("data.small_instance_area", "s", NULL, NULL, NULL),
    KEY("data.small_instance_weight", "s", NULL, NULL, NULL),
    KEY("data.edge_width", "s", NULL, "edge_width", NULL),

    /* ---- input ---- */
    KEY("input.size", "csd", NULL, "train_crop_size", "image_resizer.fixed_shape_resizer"),
    KEY("input.eval_size", "csd", NULL, "eval_crop_size, vis_crop_size", NULL),
    KEY("input.channels", "csd", NULL, NULL, "convert_to_grayscale"),
    KEY("input.preprocessing", "cs", NULL, NULL, NULL),
    KEY("input.buckets", "d", NULL, NULL, "image_resizer.keep_aspect_ratio_resizer"),
    KEY("input.min_resize", "sd", NULL, "min_resize_value", "min_dimension"),
    KEY("input.max_resize", "sd", NULL, "max_resize_value", "max_dimension"),
    KEY("input.resize_factor", "s", NULL, "resize_factor", NULL),
    KEY("input.keep_aspect_ratio", "s", NULL, "keep_aspect_ratio", NULL),
    KEY("input.min_scale", "s", NULL, "min_scale_factor", NULL),
    KEY("input.max_scale", "s", NULL, "max_scale_factor", NULL),
    KEY("input.scale_step", "s", NULL, "scale_factor_step_size", NULL),
    KEY("input.augment", "csd", NULL, NULL, "data_augmentation_options, preprocess_input_options"),

    /* ---- loss ---- */
    KEY("loss.label_smoothing", "cs", NULL, NULL, NULL),
    KEY("loss.aux_weight", "c", NULL, NULL, NULL),
    KEY("loss.label_weights", "s", NULL, "label_weights", NULL),
    KEY("loss.normalize", "s", NULL, NULL, NULL),
    KEY("loss.upsample_logits", "s", NULL, "upsample_logits", NULL),
    KEY("loss.top_k_percent", "s", NULL, "top_k_percent_pixels", NULL),
    KEY("loss.edge_weight", "s", NULL, NULL, NULL),
    KEY("loss.hard_mining_steps", "s", NULL, "hard_example_mining_step", NULL),
    KEY("loss.matting", "s", NULL, "gt_is_matting_map", NULL),
    KEY("loss.center_weight", "s", NULL, NULL, NULL),
    KEY("loss.offset_weight", "s", NULL, NULL, NULL),
    KEY("loss.regularization", "d", NULL, NULL, "add_regularization_loss"),
    KEY("loss.classification", "d", NULL, NULL, "classification_loss"),
    KEY("loss.localization", "d", NULL, NULL, "localization_loss"),
    KEY("loss.hard_example_miner", "d", NULL, NULL, "hard_example_miner"),

    /* ---- optim ---- */
    KEY("optim.name", "csd", NULL, "optimizer",
        "rms_prop_optimizer, momentum_optimizer, adam_optimizer, adadelta_optimizer, "
        "nadam_optimizer"),
    KEY("optim.weight_decay", "csd", NULL, "weight_decay", "l2_regularizer"),
    KEY("optim.clip_norm", "csd", NULL, NULL, NULL),
    KEY("optim.clip_variable_norm", "csd", NULL, NULL, "gradient_clipping_by_norm"),
    KEY("optim.freeze", "csd", NULL, NULL, "freeze_variables"),
    KEY("optim.multipliers", "csd", NULL, "last_layer_gradient_multiplier", "bias_grad_multiplier"),
    KEY("optim.moving_average_decay", "csd", NULL, NULL,
        "moving_average_decay, use_moving_average"),
    KEY("optim.moving_average_ramp", "csd", NULL, NULL, NULL),
    KEY("optim.momentum", "csd", NULL, "momentum", "momentum_optimizer_value"),
    KEY("optim.decay", "csd", NULL, NULL, "decay"),
    KEY("optim.epsilon", "csd", NULL, "adam_epsilon", "epsilon"),
    KEY("optim.beta1", "csd", NULL, NULL, NULL),
    KEY("optim.beta2", "csd", NULL, NULL, NULL),
    KEY("optim.nesterov", "csd", NULL, NULL, NULL),
    KEY("optim.centered", "csd", NULL, NULL, NULL),
    KEY("optim.rho", "csd", NULL, NULL, "rho"),
    KEY("optim.initial", "csd", NULL, NULL, NULL),
    KEY("optim.l1", "csd", NULL, NULL, NULL),
    KEY("optim.l2", "csd", NULL, NULL, NULL),
    KEY("optim.power", "csd", NULL, NULL, NULL),
    KEY("optim.trainable", "d", NULL, NULL, "update_trainable_variables"),

    /* ---- schedule ---- */
    KEY("schedule.policy", "csd", NULL, "learning_policy", "learning_rate"),
    KEY("schedule.base_lr", "csd", NULL, "base_learning_rate, adam_learning_rate",
        "initial_learning_rate, learning_rate_base"),
    KEY("schedule.decay_steps", "csd", NULL, "decay_steps, learning_rate_decay_step",
        "decay_steps, total_steps"),
    KEY("schedule.num_epochs_per_decay", "csd", NULL, NULL, NULL),
    KEY("schedule.decay_factor", "csd", NULL, "learning_rate_decay_factor", "decay_factor"),
    KEY("schedule.staircase", "csd", NULL, NULL, "staircase"),
    KEY("schedule.end_lr", "csd", NULL, "end_learning_rate", NULL),
    KEY("schedule.power", "csd", NULL, "learning_power", NULL),
    KEY("schedule.cycle", "csd", NULL, NULL, NULL),
    KEY("schedule.warmup_steps", "csd", NULL, "slow_start_step", "warmup_steps, burnin_steps"),
    KEY("schedule.warmup_epochs", "csd", NULL, NULL, NULL),
    KEY("schedule.warmup_lr", "csd", NULL, "slow_start_learning_rate",
        "warmup_learning_rate, burnin_learning_rate"),
    KEY("schedule.epoch_count", "csd", NULL, NULL, NULL),
    KEY("schedule.warmup_shape", "csd", NULL, "slow_start_burnin_type", "warmup"),
    KEY("schedule.warmup_shift", "csd", NULL, NULL, NULL),
    KEY("schedule.hold_steps", "d", NULL, NULL, "hold_base_rate_steps"),
    KEY("schedule.min_lr", "d", NULL, NULL, "min_learning_rate"),
    KEY("schedule.boundaries", "csd", NULL, "boundaries", "schedule.step"),
    KEY("schedule.rates", "csd", NULL, "boundary_learning_rates", "schedule.learning_rate"),

    /* ---- init ---- */
    KEY("init.checkpoint", "csd", NULL, "tf_initial_checkpoint", "fine_tune_checkpoint"),
    KEY("init.exclude_scopes", "csd", NULL,
        "initialize_last_layer, last_layers_contain_logits_only", NULL),
    KEY("init.ignore_missing", "csd", NULL, NULL, NULL),
    KEY("init.averages", "csd", NULL, NULL, NULL),
    KEY("init.trainable_scopes", "csd", NULL, NULL, NULL),
    KEY("init.type", "d", NULL, NULL, "fine_tune_checkpoint_type, from_detection_checkpoint"),
    KEY("init.load_all", "d", NULL, NULL, "load_all_detection_checkpoint_vars"),

    /* ---- run ---- */
    KEY("run.folder", "csd", NULL, "train_logdir", "train_dir, model_dir"),
    KEY("run.steps", "csd", NULL, "training_number_of_steps", "num_steps"),
    KEY("run.batch_size", "csd", NULL, "train_batch_size", "batch_size"),
    KEY("run.seed", "csd", NULL, NULL, NULL),
    KEY("run.log_every_steps", "csd", NULL, "log_steps", "log_every_n_steps"),
    KEY("run.save_every_steps", "csd", NULL, NULL, NULL),
    KEY("run.save_every_secs", "csd", NULL, "save_interval_secs",
        "save_interval_secs, save_checkpoint_secs"),
    KEY("run.keep", "csd", NULL, NULL, NULL),
    KEY("run.keep_every_hours", "csd", NULL, NULL, "keep_checkpoint_every_n_hours"),
    KEY("run.keep_best", "csd", NULL, NULL, NULL),
    KEY("run.micro_batches", "csd", NULL, NULL, NULL),
    KEY("run.recompute", "csd", NULL, NULL, NULL),
    KEY("run.snapshot_every_steps", "csd", NULL, NULL, NULL),
    KEY("run.segment_ms", "csd", NULL, NULL, NULL),
    KEY("run.hang_seconds", "csd", NULL, NULL, NULL),
    KEY("run.compile_seconds", "csd", NULL, NULL, NULL),
    KEY("run.validate", "csd", NULL, NULL, NULL),
    KEY("run.balance", "csd", NULL, NULL, NULL),
    KEY("run.batch_norm_update", "csd", NULL, NULL, NULL),
    KEY("run.verify", "csd", NULL, NULL, NULL),
    KEY("run.train_metrics", "s", NULL, NULL, NULL),
    KEY("run.summary_every_steps", "csd", NULL, "save_summaries_secs", "save_summaries_steps"),
    KEY("run.summary_images", "csd", NULL, "save_summaries_images", "retain_original_images"),
    KEY("run.summary_originals", "csd", NULL, NULL, NULL),
    KEY("run.summary_gradients", "csd", NULL, NULL, "summarize_gradients"),
    KEY("run.summary_activations", "csd", NULL, NULL, NULL),
    KEY("run.trace_steps", "csd", NULL, "profile_logdir", NULL),
    KEY("run.replicas", "csd", NULL, "num_replicas", "worker_replicas"),
    KEY("run.replicas_to_aggregate", "csd", NULL, NULL, "replicas_to_aggregate"),
    KEY("run.sync_replicas", "csd", NULL, NULL, "sync_replicas"),
    KEY("run.task", "csd", NULL, "task", "task"),
    KEY("run.parameter_servers", "csd", NULL, "num_ps_tasks", "ps_tasks"),
    KEY("run.startup_delay_steps", "csd", NULL, "startup_delay_steps", "startup_delay_steps"),
    KEY("run.bfloat16", "d", NULL, NULL, "use_bfloat16"),

    /* ---- eval ---- */
    KEY("eval.checkpoint", "csd", "eval_checkpoint_path", "checkpoint_path", "checkpoint_dir"),
    KEY("eval.every_steps", "csd", NULL, NULL, NULL),
    KEY("eval.batch_size", "csd", "eval_batch_size", "eval_batch_size, vis_batch_size",
        "eval_config.batch_size"),
    KEY("eval.max_batches", "csd", NULL, NULL, "num_examples"),
    KEY("eval.averages", "csd", NULL, NULL, "use_moving_averages"),
    KEY("eval.interval_secs", "csd", NULL, "eval_interval_secs", "eval_interval_secs"),
    KEY("eval.sample_1_of_n", "csd", NULL, NULL, "sample_1_of_n_eval_examples"),
    KEY("eval.max_runs", "csd", NULL, "max_number_of_evaluations, max_number_of_iterations",
        "max_evals"),
    KEY("eval.scales", "s", NULL, "eval_scales", NULL),
    KEY("eval.flip", "s", NULL, "add_flipped_images", NULL),
    KEY("eval.colormap", "s", NULL, "colormap_type", NULL),
    KEY("eval.save_raw", "s", NULL, "also_save_raw_predictions", NULL),
    KEY("eval.metrics", "d", NULL, NULL, "metrics_set, parameterized_metric"),
    KEY("eval.panoptic", "s", NULL,
        "gt_json_file, pred_json_file, gt_folder, pred_folder, metric, num_categories, "
        "ignored_label, max_instances_per_category, intersection_offset, "
        "normalize_by_image_size, num_workers, print_digits",
        NULL),
    KEY("eval.recall_range", "d", NULL, NULL, "recall_lower_bound, recall_upper_bound"),
    KEY("eval.keypoint_edges", "d", NULL, NULL, "keypoint_edge"),
    KEY("eval.skip_unlabeled", "d", NULL, NULL,
        "skip_predictions_for_unlabeled_class, image_classes_field_map_empty_to_ones"),
    KEY("eval.ignore_groundtruth", "d", NULL, NULL, "ignore_groundtruth"),
    KEY("eval.resize", "d", NULL, NULL, "force_no_resize"),
    KEY("eval.per_category", "d", NULL, NULL,
        "include_metrics_per_category, all_metrics_per_category, super_categories"),
    KEY("eval.instance_masks", "d", NULL, NULL, "eval_instance_masks"),
    KEY("eval.visualizations", "d", NULL, NULL,
        "num_visualizations, visualization_export_dir, max_num_boxes_to_visualize, "
        "skip_scores, skip_labels, visualize_groundtruth_boxes, "
        "groundtruth_box_visualization_color, keep_image_id_for_visualization_export, "
        "retain_original_image_additional_channels"),
    KEY("eval.score_threshold", "d", NULL, NULL, "min_score_threshold"),

    /* ---- export ---- */
    KEY("export.file", "csd", NULL, "export_path", "export_path"),
    KEY("export.batch_size", "csd", NULL, NULL, NULL),
    KEY("export.size", "csd", NULL, "crop_size", NULL),
    KEY("export.any_size", "csd", NULL, NULL, NULL),
    KEY("export.fold_batch_norm", "csd", NULL, NULL, NULL),
    KEY("export.output", "c", NULL, NULL, NULL),
    KEY("export.preprocessing", "csd", NULL, NULL, NULL),
    KEY("export.weights", "csd", NULL, NULL, NULL),
    KEY("export.output_stride", "s", NULL, NULL, NULL),
    KEY("export.scales", "s", NULL, "inference_scales", NULL),
    KEY("export.flip", "s", NULL, NULL, NULL),
    KEY("export.pad", "s", NULL, NULL, NULL),
    KEY("export.prob_double_softmax", "s", NULL, NULL, NULL),
    KEY("export.frames", "c", NULL, NULL, NULL),
    { 0 },
};

const struct pm_reference *pm_reference_find(const char *key)
{
    for (const struct pm_reference *r = pm_references; r->key; r++)
        if (strcmp(r->key, key) == 0)
            return r;
    return NULL;
}

/* Whether word is one of the comma-separated names. */
bool pm_reference_lists(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *c = list; c && *c; c += strcspn(c, ","), c += strspn(c, ", "))
        if (strcspn(c, ",") == n && memcmp(c, word, n) == 0)
            return true;
    return false;
}

const struct pm_reference *pm_reference_by_flag(const char *word)
{
    for (const struct pm_program *p = pm_programs; p->name; p++)
        for (const struct pm_flag *f = p->flag; f->flag; f++)
            if (f->key && strcmp(f->flag, word) == 0)
                return pm_reference_find(f->key);
    for (const struct pm_reference *r = pm_references; r->key; r++)
        if (pm_reference_lists(r->slim, word) || pm_reference_lists(r->deeplab, word) ||
            pm_reference_lists(r->detection, word))
            return r;
    return NULL;
}
