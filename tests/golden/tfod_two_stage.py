"""Models of two stages in TensorFlow's Object Detection API, for two_stage_variables.py and
two_stage.py. tfod.py says how to make the environment."""
import math

import numpy as np

import tfod

HYPERPARAMS = """op: %s regularizer { l2_regularizer { weight: 0.0001 } }
  initializer { %s }"""
TRUNCATED = "truncated_normal_initializer { stddev: 0.01 }"
SCALED = "variance_scaling_initializer { factor: 1.0 uniform: true mode: FAN_AVG }"
MODEL = """faster_rcnn {
  number_of_stages: %(stages)d num_classes: %(classes)d resize_masks: false
  image_resizer { fixed_shape_resizer { height: %(height)d width: %(width)d } }
  feature_extractor { type: "%(type)s" first_stage_features_stride: %(stride)d
    batch_norm_trainable: %(train)s }
  first_stage_anchor_generator { grid_anchor_generator {
    scales: [%(scales)s] aspect_ratios: [0.5, 1.0, 2.0]
    height_stride: %(stride)d width_stride: %(stride)d } }
  first_stage_atrous_rate: %(rate)d
  first_stage_box_predictor_conv_hyperparams { %(conv)s }
  first_stage_minibatch_size: %(anchors)d first_stage_positive_balance_fraction: 0.5
  first_stage_nms_score_threshold: %(threshold)s first_stage_nms_iou_threshold: 0.7
  first_stage_max_proposals: %(proposals)d
  first_stage_localization_loss_weight: 2.0 first_stage_objectness_loss_weight: 1.0
  initial_crop_size: %(crop)d maxpool_kernel_size: %(pool)d maxpool_stride: %(pool)d
  second_stage_box_predictor { %(predictor)s }
  second_stage_batch_size: %(rows)d second_stage_balance_fraction: 0.25
  second_stage_post_processing { batch_non_max_suppression { score_threshold: %(least)s
      iou_threshold: 0.6 max_detections_per_class: %(per_class)d
      max_total_detections: %(detections)d }
    score_converter: SOFTMAX }
  second_stage_localization_loss_weight: 2.0 second_stage_classification_loss_weight: 1.0
  second_stage_mask_prediction_loss_weight: 4.0 }"""
DEFAULTS = dict(stages=2, classes=90, height=64, width=96, stride=16, train="false", rate=1,
                scales="0.25, 0.5, 1.0, 2.0", anchors=256, threshold="0.0", proposals=300, crop=14,
                pool=2, rows=64, least="0.0", per_class=100, detections=300,
                conv=HYPERPARAMS % ("CONV", TRUNCATED))


def boxes_predictor(more="", initializer=SCALED):
    """The fully connected head of Faster R-CNN; more: fields of the head for masks."""
    return ("mask_rcnn_box_predictor { use_dropout: false dropout_keep_probability: 1.0 "
            f"fc_hyperparams {{ {HYPERPARAMS % ('FC', initializer)} }} {more} }}")


def masks_predictor(height=15, width=15, layers=2, depth=0, initializer=SCALED):
    return boxes_predictor(
        f"predict_instance_masks: true mask_height: {height} mask_width: {width} "
        f"mask_prediction_num_conv_layers: {layers} mask_prediction_conv_depth: {depth} "
        f"conv_hyperparams {{ {HYPERPARAMS % ('CONV', TRUNCATED)} }}", initializer)


def rfcn_predictor(bins=3, crop=18, initializer=TRUNCATED):
    return (f"rfcn_box_predictor {{ num_spatial_bins_height: {bins} num_spatial_bins_width: {bins} "
            f"crop_height: {crop} crop_width: {crop} "
            f"conv_hyperparams {{ {HYPERPARAMS % ('CONV', initializer)} }} }}")


def text(**options):
    """The model's message as text. options replace those of DEFAULTS; type and predictor are
    required."""
    return MODEL % {**DEFAULTS, **options}


def load():
    """Returns TensorFlow and a function that builds a model from its text."""
    tf = tfod.load()
    from google.protobuf import text_format
    from object_detection.builders import model_builder
    from object_detection.models import faster_rcnn_mobilenet_v1_feature_extractor as mobilenet
    from object_detection.protos import model_pb2

    class Half(mobilenet.FasterRCNNMobilenetV1FeatureExtractor):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, depth_multiplier=0.5, **options)

    # The package holds this extractor, but its builder does not know it.
    model_builder.FASTER_RCNN_FEATURE_EXTRACTOR_CLASS_MAP.update(
        faster_rcnn_mobilenet_v1=mobilenet.FasterRCNNMobilenetV1FeatureExtractor,
        faster_rcnn_mobilenet_v1_half=Half)

    def build(message, is_training):
        config = model_pb2.DetectionModel()
        text_format.Merge(message, config)
        return model_builder.build(config, is_training=is_training)
    return tf, build


def packed(mean, variance):
    """The unit and a text of four hexadecimal digits for each channel: the mean, then the
    variance, as unpacked() reads them."""
    unit = float(f"{max(np.abs(mean).max() / 120, math.sqrt(variance.max()) / 15.9):.2g}")
    m = np.clip(np.rint(mean / unit) + 128, 0, 255).astype(int)
    v = np.clip(np.rint(variance / unit**2), 1, 255).astype(int)
    return [unit, "".join(f"{x:02x}{y:02x}" for x, y in zip(m, v))]


def unpacked(unit, text):
    """Means and variances of the channels: unit (m - 128) and unit^2 v, m and v from 0 to 255."""
    m, v = np.frombuffer(bytes.fromhex(text), np.uint8).reshape(-1, 2).T.astype(float)
    return unit * (m - 128), unit * unit * v
