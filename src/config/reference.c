/* Every key with its names in the original programs. Each concept has one name: flags of the same
 * meaning in different programs are listed at one key. The flags of TF-Slim's and the Inception
 * trainer's programs are in flags.c; the slim column here is for arguments that are not flags.
 *
 * Keys that are read are in sections.c, keys that are refused in refused.def. A test compares this
 * list with both. */
#include "config/config_private.h"

#include <string.h>

#define KEY(k, s, l, d)                                   \
    {                                                     \
        .key = k, .slim = s, .deeplab = l, .detection = d \
    }

const struct pm_reference pm_references[] = {
    KEY("task", NULL, NULL, NULL),
    KEY("base", NULL, NULL, NULL),
    KEY("devices", NULL, "num_clones, clone_on_cpu", "num_clones, clone_on_cpu"),

    /* ---- model ---- */
    KEY("model.name", NULL, "model_variant, net_name", "feature_extractor.type"),
    KEY("model.num_classes", NULL, "num_classes", "num_classes"),
    KEY("model.layers", NULL, NULL, NULL),
    KEY("model.onnx", NULL, NULL, NULL),
    KEY("model.onnx_logits", NULL, NULL, NULL),
    KEY("model.onnx_new_head", NULL, NULL, NULL),
    KEY("model.keep_prob", "dropout_keep_prob", NULL, NULL),
    KEY("model.drop_path_keep", NULL, "drop_path_keep_prob", NULL),
    KEY("model.drop_path_steps", NULL, NULL, NULL),
    KEY("model.output_stride", "output_stride", "output_stride", NULL),
    KEY("model.depth_multiplier", NULL, "depth_multiplier", "depth_multiplier"),
    KEY("model.min_depth", "min_depth, min_base_depth", NULL, "min_depth"),
    KEY("model.divisible_by", NULL, "divisible_by", NULL),
    KEY("model.scale_last", "finegrain_classification_mode", NULL, NULL),
    KEY("model.global_pool", "global_pool", NULL, NULL),
    KEY("model.batch_norm_decay", NULL, "batch_norm_decay", "batch_norm.decay"),
    KEY("model.batch_norm_epsilon", NULL, NULL, "batch_norm.epsilon"),
    KEY("model.moving_variance", NULL, NULL, NULL),
    KEY("model.batch_norm_train", NULL, "fine_tune_batch_norm",
        "batch_norm.train, freeze_batchnorm"),
    KEY("model.head_batch_norm_decay", NULL, NULL, NULL),
    KEY("model.conventions", NULL, NULL, NULL),
    KEY("model.init", "weights_initializer, stddev", NULL, NULL),
    KEY("model.logits_init", NULL, NULL, NULL),
    KEY("model.aux_head", "create_aux_logits", NULL, NULL),
    KEY("model.separable_conv", "use_separable_conv", NULL, NULL),
    KEY("model.fc_conv_padding", "fc_conv_padding", NULL, NULL),
    KEY("model.root_block", "include_root_block", NULL, NULL),
    KEY("model.boxes", NULL, NULL, "is_rbbox"),
    KEY("model.box_coder", NULL, NULL, "box_coder"),
    KEY("model.matcher", NULL, NULL, "matcher, similarity_calculator"),
    KEY("model.anchors_outside", NULL, NULL, "clip_anchors_to_image"),
    KEY("model.number_of_stages", NULL, NULL, "number_of_stages"),
    KEY("model.proposals", NULL, NULL,
        "first_stage_nms_score_threshold, first_stage_nms_iou_threshold, "
        "first_stage_max_proposals"),
    KEY("model.post_processing", NULL, NULL,
        "post_processing, batch_non_max_suppression, score_converter"),
    KEY("model.transformer", NULL, NULL, NULL),
    KEY("model.spatial_transformer", NULL, NULL, "spatial_transformer"),
    KEY("model.predictor", NULL, NULL, "attention_predictor, ctc_predictor"),
    KEY("model.attention_direction", NULL, NULL, "reverse"),
    KEY("model.attention_units", NULL, NULL, "num_attention_units"),
    KEY("model.decoder_units", NULL, NULL, NULL),
    KEY("model.beam_width", NULL, NULL, "beam_width"),
    KEY("model.meta", NULL, NULL, "model.ssd, model.faster_rcnn, model.rfaster_rcnn"),
    KEY("model.multi_grid", NULL, "multi_grid", NULL),
    KEY("model.bounded_activation", NULL, "use_bounded_activation", NULL),
    KEY("model.image_pyramid", NULL, "image_pyramid", NULL),
    KEY("model.merge_method", NULL, "merge_method", NULL),
    KEY("model.logits_kernel_size", NULL, "logits_kernel_size", NULL),
    KEY("model.predict_upsampled", NULL, "prediction_with_upsampled_logits", NULL),
    KEY("model.aspp_rates", NULL, "atrous_rates", NULL),
    KEY("model.aspp_filters", NULL, "aspp_convs_filters", NULL),
    KEY("model.aspp_batch_norm", NULL, "aspp_with_batch_norm", NULL),
    KEY("model.aspp_separable", NULL, "aspp_with_separable_conv", NULL),
    KEY("model.aspp_image_level", NULL, "add_image_level_feature", NULL),
    KEY("model.aspp_pooling_crop", NULL, "image_pooling_crop_size", NULL),
    KEY("model.aspp_pooling_stride", NULL, "image_pooling_stride", NULL),
    KEY("model.aspp_concat_projection", NULL, "aspp_with_concat_projection", NULL),
    KEY("model.aspp_squeeze_excite", NULL, "aspp_with_squeeze_and_excitation", NULL),
    KEY("model.aspp_se_qsigmoid", NULL, "image_se_uses_qsigmoid", NULL),
    KEY("model.decoder_strides", NULL, "decoder_output_stride", NULL),
    KEY("model.decoder_separable", NULL, "decoder_use_separable_conv", NULL),
    KEY("model.decoder_sum_merge", NULL, "decoder_use_sum_merge", NULL),
    KEY("model.decoder_filters", NULL, "decoder_filters", NULL),
    KEY("model.decoder_is_logits", NULL, "decoder_output_is_logits", NULL),
    KEY("model.instance", NULL, NULL, NULL),
    KEY("model.decoder_filters_instance", NULL, "decoder_filters_instance", NULL),
    KEY("model.instance_mode", NULL, NULL, NULL),
    KEY("model.dense_prediction_cell", NULL, "dense_prediction_cell_json", NULL),
    KEY("model.nas_stem_filters", NULL, "nas_stem_output_num_conv_filters", NULL),
    KEY("model.nas_classification_head", NULL, "nas_use_classification_head", NULL),
    KEY("model.nas_remove_os32_stride", NULL, "nas_remove_os32_stride", NULL),
    KEY("model.edge_classes", NULL, "edge_class_num", NULL),
    KEY("model.hyperparams", NULL, NULL, "conv_hyperparams, fc_hyperparams"),
    KEY("model.quantize_delay", NULL, "quantize_delay_step", "graph_rewriter.quantization"),
    KEY("model.quantize_freeze_steps", NULL, NULL, NULL),
    KEY("model.quantize_symmetric", NULL, NULL, "quantization.symmetric"),

    /* ---- data ---- */
    KEY("data.folder", NULL, "dataset_dir, dataset",
        "tf_record_input_reader.input_path, train_file_path, external_input_reader"),
    KEY("data.convert", NULL, NULL, NULL),
    KEY("data.make", NULL, NULL, NULL),
    KEY("data.train_split", NULL, "train_split", "train_input_reader"),
    KEY("data.eval_split", "eval_split_name", "eval_split, vis_split", "eval_input_reader"),
    KEY("data.labels_offset", NULL, NULL, NULL),
    KEY("data.on_corrupt", NULL, NULL, NULL),
    KEY("data.threads", NULL, "num_readers",
        "num_readers, num_parallel_batches, num_batch_queue_threads, num_parallel_map_calls"),
    KEY("data.ring", NULL, NULL,
        "batch_queue_capacity, prefetch_queue_capacity, num_prefetch_batches, prefetch_size, "
        "queue_capacity"),
    KEY("data.folders", NULL, NULL, "sample_from_datasets_weights"),
    KEY("data.repeat_threshold", NULL, NULL, NULL),
    KEY("data.label_map", NULL, NULL,
        "label_map_path, label_map_file, use_display_name, use_keypoint_label_map"),
    KEY("data.expand_hierarchy", NULL, NULL, "expand_labels_hierarchy"),
    KEY("data.shuffle", NULL, NULL,
        "shuffle, shuffle_buffer_size, filenames_shuffle_buffer_size, "
        "min_after_dequeue, read_block_length"),
    KEY("data.num_epochs", NULL, NULL, NULL),
    KEY("data.sample_1_of_n", NULL, NULL, "sample_1_of_n_examples"),
    KEY("data.min_side", NULL, NULL, NULL),
    KEY("data.max_boxes", NULL, NULL, "max_number_of_boxes"),
    KEY("data.swap_sides", NULL, NULL, "swap_height_width_of_rboxes"),
    KEY("data.subtract_angle", NULL, NULL, "subtract_angle_of_rboxes"),
    KEY("data.cutoff_boxes", NULL, NULL, "cutoff_max_gts"),
    KEY("data.num_keypoints", NULL, NULL, "num_keypoints, keypoint_type_weight"),
    KEY("data.instance_masks", NULL, NULL, "load_instance_masks, mask_type"),
    KEY("data.class_agnostic", NULL, NULL, NULL),
    KEY("data.charset", NULL, NULL, "character_set, include_charset"),
    KEY("data.lower_case", NULL, NULL, "string_filtering.lower_case"),
    KEY("data.unk_label", NULL, NULL, "unk_label"),
    KEY("data.max_num_steps", NULL, NULL, "max_num_steps"),
    KEY("data.multiclass_scores", NULL, NULL, "use_multiclass_scores"),
    KEY("data.merge_multiple_label_boxes", NULL, NULL, "merge_multiple_label_boxes"),
    KEY("data.additional_channels", NULL, NULL, "num_additional_channels"),
    KEY("data.fields", NULL, NULL,
        "load_dense_pose, load_track_id, load_keypoint_depth_features, "
        "load_context_features, load_context_image_ids, include_source_id"),
    KEY("data.frame_index", NULL, NULL, "input_type, frame_index"),
    KEY("data.image_dtype", NULL, NULL, "image_dtype"),
    KEY("data.ignore_label", NULL, NULL, NULL),
    KEY("data.thing_classes", NULL, NULL, NULL),
    KEY("data.center_sigma", NULL, NULL, NULL),
    KEY("data.small_instance_area", NULL, NULL, NULL),
    KEY("data.small_instance_weight", NULL, NULL, NULL),
    KEY("data.edge_width", NULL, "edge_width", NULL),

    /* ---- input ---- */
    KEY("input.size", NULL, "train_crop_size", "image_resizer.fixed_shape_resizer"),
    KEY("input.eval_size", NULL, "eval_crop_size, vis_crop_size", NULL),
    KEY("input.channels", NULL, NULL, "convert_to_grayscale"),
    KEY("input.scaled_jpeg", NULL, NULL, NULL),
    KEY("input.preprocessing", NULL, NULL, NULL),
    KEY("input.buckets", NULL, NULL, "image_resizer.keep_aspect_ratio_resizer"),
    KEY("input.min_resize", NULL, "min_resize_value", "min_dimension"),
    KEY("input.max_resize", NULL, "max_resize_value", "max_dimension"),
    KEY("input.resize_factor", NULL, "resize_factor", NULL),
    KEY("input.keep_aspect_ratio", NULL, "keep_aspect_ratio", NULL),
    KEY("input.min_scale", NULL, "min_scale_factor", NULL),
    KEY("input.max_scale", NULL, "max_scale_factor", NULL),
    KEY("input.scale_step", NULL, "scale_factor_step_size", NULL),
    KEY("input.augment", NULL, NULL, "data_augmentation_options, preprocess_input_options"),

    /* ---- loss ---- */
    KEY("loss.label_smoothing", NULL, NULL, NULL),
    KEY("loss.aux_weight", NULL, NULL, NULL),
    KEY("loss.label_weights", NULL, "label_weights", NULL),
    KEY("loss.normalize", NULL, NULL, NULL),
    KEY("loss.upsample_logits", NULL, "upsample_logits", NULL),
    KEY("loss.top_k_percent", NULL, "top_k_percent_pixels", NULL),
    KEY("loss.edge_weight", NULL, NULL, NULL),
    KEY("loss.hard_mining_steps", NULL, "hard_example_mining_step", NULL),
    KEY("loss.matting", NULL, "gt_is_matting_map", NULL),
    KEY("loss.keypoint_weight", NULL, NULL, "l2_regression_loss"),
    KEY("loss.center_weight", NULL, NULL, NULL),
    KEY("loss.offset_weight", NULL, NULL, NULL),
    KEY("loss.regularization", NULL, NULL, "add_regularization_loss"),
    KEY("loss.classification", NULL, NULL, "classification_loss"),
    KEY("loss.localization", NULL, NULL, "localization_loss"),
    KEY("loss.encode_background_as_zeros", NULL, NULL, "encode_background_as_zeros"),
    KEY("loss.negative_class_weight", NULL, NULL, "negative_class_weight"),
    KEY("loss.normalize_over", NULL, NULL, NULL),
    KEY("loss.normalize_by_matches", NULL, NULL, "normalize_loss_by_num_matches"),
    KEY("loss.normalize_loc_by_codesize", NULL, NULL, "normalize_loc_loss_by_codesize"),
    KEY("loss.hard_example_miner", NULL, NULL, "hard_example_miner"),
    KEY("loss.random_example_sampler", NULL, NULL, "random_example_sampler"),
    KEY("loss.minibatch_sampler", NULL, NULL,
        "first_stage_minibatch_size, first_stage_positive_balance_fraction"),
    KEY("loss.proposal_sampler", NULL, NULL,
        "second_stage_batch_size, second_stage_balance_fraction"),
    KEY("loss.second_stage", NULL, NULL,
        "second_stage_localization_loss_weight, second_stage_classification_loss_weight, "
        "second_stage_mask_prediction_loss_weight"),
    KEY("loss.expected_loss_weights", NULL, NULL,
        "expected_loss_weights, min_num_negative_samples, desired_negative_sampling_ratio"),

    /* ---- optim ---- */
    KEY("optim.name", NULL, "optimizer",
        "rms_prop_optimizer, momentum_optimizer, adam_optimizer, adadelta_optimizer, "
        "nadam_optimizer"),
    KEY("optim.weight_decay", NULL, "weight_decay", "l2_regularizer"),
    KEY("optim.clip_norm", NULL, NULL, NULL),
    KEY("optim.clip_variable_norm", NULL, NULL, "gradient_clipping_by_norm"),
    KEY("optim.freeze", NULL, NULL, "freeze_variables"),
    KEY("optim.multipliers", NULL, "last_layer_gradient_multiplier", "bias_grad_multiplier"),
    KEY("optim.moving_average_decay", NULL, NULL,
        "moving_average_decay, use_moving_average"),
    KEY("optim.moving_average_ramp", NULL, NULL, NULL),
    KEY("optim.momentum", NULL, "momentum", "momentum_optimizer_value"),
    KEY("optim.decay", NULL, NULL, "decay"),
    KEY("optim.epsilon", NULL, "adam_epsilon", "epsilon"),
    KEY("optim.beta1", NULL, NULL, NULL),
    KEY("optim.beta2", NULL, NULL, NULL),
    KEY("optim.nesterov", NULL, NULL, NULL),
    KEY("optim.centered", NULL, NULL, NULL),
    KEY("optim.rho", NULL, NULL, "rho"),
    KEY("optim.initial", NULL, NULL, NULL),
    KEY("optim.l1", NULL, NULL, NULL),
    KEY("optim.l2", NULL, NULL, NULL),
    KEY("optim.power", NULL, NULL, NULL),
    KEY("optim.trainable", NULL, NULL, "update_trainable_variables"),

    /* ---- schedule ---- */
    KEY("schedule.policy", NULL, "learning_policy", "learning_rate"),
    KEY("schedule.base_lr", NULL, "base_learning_rate, adam_learning_rate",
        "initial_learning_rate, learning_rate_base"),
    KEY("schedule.decay_steps", NULL, "decay_steps, learning_rate_decay_step",
        "decay_steps, total_steps"),
    KEY("schedule.num_epochs_per_decay", NULL, NULL, NULL),
    KEY("schedule.decay_factor", NULL, "learning_rate_decay_factor", "decay_factor"),
    KEY("schedule.staircase", NULL, NULL, "staircase"),
    KEY("schedule.end_lr", NULL, "end_learning_rate", NULL),
    KEY("schedule.power", NULL, "learning_power", NULL),
    KEY("schedule.cycle", NULL, NULL, NULL),
    KEY("schedule.warmup_steps", NULL, "slow_start_step", "warmup_steps, burnin_steps"),
    KEY("schedule.warmup_epochs", NULL, NULL, NULL),
    KEY("schedule.warmup_lr", NULL, "slow_start_learning_rate",
        "warmup_learning_rate, burnin_learning_rate"),
    KEY("schedule.epoch_count", NULL, NULL, NULL),
    KEY("schedule.warmup_shape", NULL, "slow_start_burnin_type", "warmup"),
    KEY("schedule.warmup_shift", NULL, NULL, NULL),
    KEY("schedule.hold_steps", NULL, NULL, "hold_base_rate_steps"),
    KEY("schedule.min_lr", NULL, NULL, "min_learning_rate"),
    KEY("schedule.boundaries", NULL, "boundaries", "schedule.step"),
    KEY("schedule.rates", NULL, "boundary_learning_rates", "schedule.learning_rate"),

    /* ---- init ---- */
    KEY("init.checkpoint", NULL, "tf_initial_checkpoint", "fine_tune_checkpoint"),
    KEY("init.restore", NULL, NULL, NULL),
    KEY("init.exclude_scopes", NULL,
        "initialize_last_layer, last_layers_contain_logits_only", NULL),
    KEY("init.ignore_missing", NULL, NULL, NULL),
    KEY("init.averages", NULL, NULL, NULL),
    KEY("init.trainable_scopes", NULL, NULL, NULL),
    KEY("init.type", NULL, NULL, "fine_tune_checkpoint_type, from_detection_checkpoint"),
    KEY("init.load_all", NULL, NULL, "load_all_detection_checkpoint_vars"),

    /* ---- run ---- */
    KEY("run.folder", NULL, "train_logdir", "train_dir, model_dir"),
    KEY("run.steps", NULL, "training_number_of_steps", "num_steps"),
    KEY("run.epochs", NULL, NULL, "num_epochs"),
    KEY("run.batch_size", NULL, "train_batch_size", "batch_size"),
    KEY("run.seed", NULL, NULL, NULL),
    KEY("run.log_every_steps", NULL, "log_steps", "log_every_n_steps"),
    KEY("run.log_loss", NULL, NULL, NULL),
    KEY("run.save_every_steps", NULL, NULL, NULL),
    KEY("run.save_every_secs", NULL, "save_interval_secs",
        "save_interval_secs, save_checkpoint_secs"),
    KEY("run.save_first_step", NULL, NULL, NULL),
    KEY("run.keep", NULL, NULL, NULL),
    KEY("run.keep_every_hours", NULL, NULL, "keep_checkpoint_every_n_hours"),
    KEY("run.keep_best", NULL, NULL, NULL),
    KEY("run.early_stop", NULL, NULL, NULL),
    KEY("run.pause_step", NULL, NULL, NULL),
    KEY("run.micro_batches", NULL, NULL, NULL),
    KEY("run.recompute", NULL, NULL, NULL),
    KEY("run.snapshot_every_steps", NULL, NULL, NULL),
    KEY("run.segment_ms", NULL, NULL, NULL),
    KEY("run.hang_seconds", NULL, NULL, NULL),
    KEY("run.compile_seconds", NULL, NULL, NULL),
    KEY("run.validate", NULL, NULL, NULL),
    KEY("run.balance", NULL, NULL, NULL),
    KEY("run.batch_norm_update", NULL, NULL, NULL),
    KEY("run.verify", NULL, NULL, NULL),
    KEY("run.train_metrics", NULL, NULL, NULL),
    KEY("run.summary_labels", NULL, NULL, NULL),
    KEY("run.summary_every_steps", NULL, NULL, "save_summaries_steps"),
    KEY("run.summary_every_secs", NULL, "save_summaries_secs", NULL),
    KEY("run.summary_tags", NULL, NULL, NULL),
    KEY("run.summary_images", NULL, "save_summaries_images", "retain_original_images"),
    KEY("run.summary_originals", NULL, NULL, NULL),
    KEY("run.summary_gradients", NULL, NULL, "summarize_gradients"),
    KEY("run.summary_activations", NULL, NULL, NULL),
    KEY("run.trace_steps", NULL, "profile_logdir", NULL),
    KEY("run.replicas", NULL, "num_replicas", "worker_replicas"),
    KEY("run.exchange", NULL, NULL, NULL),
    KEY("run.replicas_to_aggregate", NULL, NULL, "replicas_to_aggregate"),
    KEY("run.sync_replicas", NULL, NULL, "sync_replicas"),
    KEY("run.task", NULL, "task", "task"),
    KEY("run.parameter_servers", NULL, "num_ps_tasks", "ps_tasks"),
    KEY("run.startup_delay_steps", NULL, "startup_delay_steps", "startup_delay_steps"),
    KEY("run.bfloat16", NULL, NULL, "use_bfloat16"),

    /* ---- eval ---- */
    KEY("eval.checkpoint", "eval_checkpoint_path", "checkpoint_path", "checkpoint_dir"),
    KEY("eval.every_steps", NULL, NULL, NULL),
    KEY("eval.batch_size", "eval_batch_size", "eval_batch_size, vis_batch_size",
        "eval_config.batch_size"),
    KEY("eval.max_batches", NULL, NULL, "num_examples"),
    KEY("eval.averages", NULL, NULL, "use_moving_averages"),
    KEY("eval.interval_secs", NULL, "eval_interval_secs", "eval_interval_secs"),
    KEY("eval.sample_1_of_n", NULL, NULL, "sample_1_of_n_eval_examples"),
    KEY("eval.max_runs", NULL, "max_number_of_evaluations, max_number_of_iterations",
        "max_evals"),
    KEY("eval.scales", NULL, "eval_scales", NULL),
    KEY("eval.flip", NULL, "add_flipped_images", NULL),
    KEY("eval.colormap", NULL, "colormap_type", NULL),
    KEY("eval.save_raw", NULL, "also_save_raw_predictions", NULL),
    KEY("eval.metrics", NULL, NULL, "metrics_set"),
    KEY("eval.panoptic", NULL,
        "gt_json_file, pred_json_file, gt_folder, pred_folder, metric, num_categories, "
        "ignored_label, max_instances_per_category, intersection_offset, "
        "normalize_by_image_size, num_workers, print_digits",
        NULL),
    KEY("eval.recall_range", NULL, NULL, "recall_lower_bound, recall_upper_bound"),
    KEY("eval.keypoint_sigmas", NULL, NULL, "parameterized_metric"),
    KEY("eval.keypoint_edges", NULL, NULL, "keypoint_edge"),
    KEY("eval.skip_unlabeled", NULL, NULL,
        "skip_predictions_for_unlabeled_class, image_classes_field_map_empty_to_ones"),
    KEY("eval.ignore_groundtruth", NULL, NULL, "ignore_groundtruth"),
    KEY("eval.resize", NULL, NULL, "force_no_resize"),
    KEY("eval.per_category", NULL, NULL,
        "include_metrics_per_category, all_metrics_per_category, super_categories"),
    KEY("eval.instance_masks", NULL, NULL, "eval_instance_masks"),
    KEY("eval.visualizations", NULL, NULL,
        "num_visualizations, visualization_export_dir, max_num_boxes_to_visualize, "
        "skip_scores, skip_labels, visualize_groundtruth_boxes, "
        "groundtruth_box_visualization_color, keep_image_id_for_visualization_export, "
        "retain_original_image_additional_channels"),
    KEY("eval.score_threshold", NULL, NULL, "min_score_threshold"),

    /* ---- predict ---- */
    KEY("predict.tile", NULL, NULL, NULL),
    KEY("predict.overlap", NULL, NULL, NULL),

    /* ---- export ---- */
    KEY("export.file", NULL, "export_path", "export_path"),
    KEY("export.checkpoint", NULL, NULL, NULL),
    KEY("export.training", NULL, NULL, NULL),
    KEY("export.batch_size", NULL, NULL, NULL),
    KEY("export.size", NULL, "crop_size", NULL),
    KEY("export.any_size", NULL, NULL, NULL),
    KEY("export.fold_batch_norm", NULL, NULL, NULL),
    KEY("export.output", NULL, NULL, NULL),
    KEY("export.preprocessing", NULL, NULL, NULL),
    KEY("export.weights", NULL, NULL, NULL),
    KEY("export.output_stride", NULL, NULL, NULL),
    KEY("export.scales", NULL, "inference_scales", NULL),
    KEY("export.flip", NULL, NULL, NULL),
    KEY("export.pad", NULL, NULL, NULL),
    KEY("export.prob_double_softmax", NULL, NULL, NULL),
    KEY("export.frames", NULL, NULL, NULL),
    KEY("export.nms", NULL, NULL, NULL),
    KEY("export.proposals", NULL, NULL, NULL),
    KEY("export.masks", NULL, NULL, NULL),

    /* ---- study ---- */
    KEY("study.folder", NULL, NULL, NULL),
    KEY("study.metric", NULL, NULL, NULL),
    KEY("study.seed", NULL, NULL, NULL),
    KEY("study.vary", NULL, NULL, NULL),
    KEY("study.method", NULL, NULL, NULL),
    KEY("study.runs", NULL, NULL, NULL),
    KEY("study.repeats", NULL, NULL, NULL),
    KEY("study.halving", NULL, NULL, NULL),
    KEY("study.workers", NULL, NULL, NULL),
    KEY("study.share_devices", NULL, NULL, NULL),
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
