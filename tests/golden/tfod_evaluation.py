"""Evaluation of TensorFlow's Object Detection API (the package tf-object-detection 0.0.3), for
box_metrics.py and shape_metrics.py. Only code in NumPy runs; TensorFlow is not needed."""

import sys
import types

import numpy as np


def load_evaluation(package):
    """object_detection_evaluation without TensorFlow, and with names that NumPy has dropped."""
    sys.path.insert(0, package)
    np.float, np.NAN = float, np.nan
    sys.modules["tensorflow"] = types.ModuleType("tensorflow")
    labels = types.ModuleType("object_detection.utils.label_map_util")
    labels.create_category_index = lambda categories: {c["id"]: c for c in categories}
    import object_detection.utils
    sys.modules[labels.__name__] = object_detection.utils.label_map_util = labels
    from object_detection.utils import object_detection_evaluation
    return object_detection_evaluation
