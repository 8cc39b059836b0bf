"""Seeds of the fuzz targets of pipeline configs and of the patterns in them."""


def pipelines():
    yield "model", (
        b"model { ssd { num_classes: 3 image_resizer { fixed_shape_resizer { width: 320 } }\n"
        b"feature_extractor { type: 'ssd_mobilenet_v2' conv_hyperparams { activation: RELU_6\n"
        b"initializer { variance_scaling_initializer { mode: FAN_OUT uniform: true } }\n"
        b"regularizer { l2_regularizer { weight: 4e-5 } } batch_norm { scale: true } } }\n"
        b"anchor_generator { ssd_anchor_generator { aspect_ratios: [1, 0.5] } }\n"
        b"matcher { argmax_matcher { } } similarity_calculator { iou_similarity { } }\n"
        b"loss { hard_example_miner { loss_type: BOTH } } } }")
    yield "training", (
        b"train_config: < batch_size: 24 optimizer { adam_optimizer: { learning_rate {\n"
        b"manual_step_learning_rate { schedule { step: 3 learning_rate: .1 } warmup: true } } } }\n"
        b"data_augmentation_options { ssd_random_crop { operations { min_area: 1 } } }\n"
        b"fine_tune_checkpoint: \"a\\m\" freeze_variables: 'x' >\n"
        b"train_input_reader { tf_record_input_reader { input_path: '/d/a*' } }\n"
        b"eval_input_reader { sample_1_of_n_examples: 2 } eval_config { metrics_set: 'x' }")
    yield "part", b"label_map_path: 'x' load_instance_masks: true # c"
    yield "stages", (
        b"model { faster_rcnn { number_of_stages: 3 image_resizer { keep_aspect_ratio_resizer {\n"
        b"per_channel_pad_value: [1, 2] } } feature_extractor { type: 'faster_rcnn_resnet50'\n"
        b"first_stage_features_stride: 8 } second_stage_box_predictor { rfcn_box_predictor { } }\n"
        b"second_stage_classification_loss { weighted_softmax { logit_scale: 2 } }\n"
        b"hard_example_miner { max_negatives_per_positive: 1 } clip_anchors_to_image: 1 } }")
    yield "texts", (
        b"model { multi_predictors_recognition_model { spatial_transformer { output_w: 90 }\n"
        b"feature_extractor { convnet { crnn_net { conv_hyperparams { batch_norm { } } } } }\n"
        b"predictor { attention_predictor { label_map { character_set { built_in_set: ALLCASES\n"
        b"} } } } } } train_config { batch_size: [3, 4] data_augmentation_options {\n"
        b"string_filtering { include_charset { text_file: 'a' } } } }\n"
        b"train_input_reader { tf_record_input_reader { input_path: 'd/1' } }\n"
        b"train_input_reader { tf_record_input_reader { input_path: 'e/2' } }")
    yield "quantised", b"graph_rewriter { quantization { delay: 0x10 weight_bits: 8 } }"


def patterns():
    names = b"\nFeatureExtractor/MobilenetV1/Conv2d_0/weights\nBoxPredictor_0/biases\na\n"
    for i, pattern in enumerate((b".*bias(?:es)?$", b"[]{,2}^a]{,3}\\d+", b"(?P<x>a)(?P=x)|(?!b)",
                                 b"(a*)*b", b"", b"FeatureExtractor/(?!.*BatchNorm).*")):
        yield str(i), pattern + names
