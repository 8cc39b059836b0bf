#!/usr/bin/env python3
"""Makes detections.json: anchors, decoded boxes and detections after suppression, computed by
TensorFlow's Object Detection API of 2019 in float32.

    VENV/bin/python tests/golden/detections.py    # tfod.py describes VENV

The numbers of a scene are those of the class Numbers. Coordinates are whole 1024ths and scores
whole 2^20ths, all different, so they are exact in float32."""

import json
import os

import numpy as np

import tfod

tf = tfod.load()
from object_detection.anchor_generators import (  # noqa: E402
    flexible_grid_anchor_generator as flexible, grid_anchor_generator as grid,
    multiple_grid_anchor_generator as ssd, multiscale_grid_anchor_generator as scales)
from object_detection.core import post_processing  # noqa: E402

from panoptic_metrics import Numbers  # noqa: E402

HEIGHT, WIDTH, MAPS = 96, 160, [(6, 10), (3, 5), (2, 3)]
SCENES, BOXES, CLASSES = 5, 80, 3
# agnostic, score threshold, IoU threshold, most of a class, most, window, change of frame, sigma
SETTINGS = [
    [False, 0.25, 0.5, 20, 30, [0, 0, 1, 1], True, 0],
    [False, 0.0, 0.25, 100, 100, [0.125, 0.25, 0.875, 0.75], True, 0],
    [False, 0.0, 0.25, 100, 100, [0.125, 0.25, 0.875, 0.75], False, 0],
    [False, 0.5, 0.75, 5, 8, [0, 0, 0.5, 1], True, 0],
    [True, 0.25, 0.5, 40, 40, [0, 0, 1, 1], True, 0],
    [False, 0.25, 0.625, 30, 40, [0, 0, 1, 1], True, 0.5],
]


def anchors_of(generator, maps):
    size = {} if len(maps) == 1 else {"im_height": HEIGHT, "im_width": WIDTH}
    boxes = generator.generate(maps, **size)
    return tf.concat([b.get() for b in boxes], 0)


def anchors():
    """The spec of our layer, the number of maps, and its boxes; those of grid_anchors in pixels."""
    return [
        ["ssd_anchors", 3, anchors_of(ssd.create_ssd_anchors(
            num_layers=3, aspect_ratios=(1.0, 2.0, 0.5, 3.0, 0.3333)), MAPS)],
        ["ssd_anchors reduce_boxes_in_lowest_layer=false scales=[0.25,0.5,0.75] "
         "aspect_ratios=[1,2] interpolated_scale_aspect_ratio=2 height_stride=[16,32,48] "
         "width_stride=[16,32,64] height_offset=[8,16,24] width_offset=[0,4,8]", 3,
         anchors_of(ssd.create_ssd_anchors(
             num_layers=3, scales=[0.25, 0.5, 0.75], aspect_ratios=(1.0, 2.0),
             interpolated_scale_aspect_ratio=2.0, reduce_boxes_in_lowest_layer=False,
             anchor_strides=[(16, 16), (32, 32), (48, 64)],
             anchor_offsets=[(8, 0), (16, 4), (24, 8)]), MAPS)],
        ["multiscale_anchors min_level=4 max_level=6", 3, anchors_of(
            scales.MultiscaleGridAnchorGenerator(4, 6, 4.0, [1.0, 2.0, 0.5], 2), MAPS)],
        ["grid_anchors scales=[0.25,0.5,1] aspect_ratios=[0.5,1] height=64 width=32 "
         "height_stride=16 width_stride=16 width_offset=4 normalize_coordinates=false", 1,
         anchors_of(grid.GridAnchorGenerator(
             [0.25, 0.5, 1.0], [0.5, 1.0], tf.constant([64.0, 32.0]), tf.constant([16.0, 16.0]),
             tf.constant([0.0, 4.0])), MAPS[:1])],
        ["flexible_grid_anchors base_sizes=[16,32,64] aspect_ratios=[1,2,0.5] "
         "anchors_per_cell=[2,1] height_stride=[16,32] width_stride=[16,32] height_offset=[8,16] "
         "width_offset=[4,16]", 2, anchors_of(flexible.FlexibleGridAnchorGenerator(
             [(16.0, 32.0), (64.0,)], [(1.0, 2.0), (0.5,)], [(16, 16), (32, 32)],
             [(8, 4), (16, 16)]), MAPS[:2])],
    ]


def scene(index):
    """Returns boxes and scores. Every fourth box repeats an earlier one, a little moved."""
    r = Numbers(index + 1)
    boxes = []
    for i in range(BOXES):
        if i % 4 == 3:
            y, x, _, _ = boxes[r(i)]
            y, x = y + r(21) - 10, x + r(21) - 10
        else:
            y, x = r(1100) - 138, r(1100) - 138
        boxes.append([y, x, y + 40 + r(400), x + 40 + r(400)])
    scores = [[r(4000) * 256 + CLASSES * i + k for k in range(CLASSES)] for i in range(BOXES)]
    return ((np.array(boxes) / 1024).astype(np.float32),
            (np.array(scores) / 2**20).astype(np.float32))


def detect(drawn, setting):
    agnostic, least, iou, per_class, most, window, change, sigma = setting
    boxes, scores = drawn
    more = {} if agnostic else {"max_size_per_class": per_class}
    run = (post_processing.class_agnostic_non_max_suppression if agnostic else
           post_processing.multiclass_non_max_suppression)
    found, _ = run(tf.constant(boxes[:, None]), tf.constant(scores), least, iou,
                   max_total_size=most, clip_window=tf.constant(window, tf.float32),
                   change_coordinate_frame=change, soft_nms_sigma=float(sigma),
                   additional_fields={"anchor": tf.range(BOXES)}, **more)
    return [found.get_field("anchor"), found.get_field("classes"), found.get_field("scores"),
            found.get()]


def short(v):
    return [float(f"{x:.9g}") for x in np.asarray(v, np.float32).ravel()]


def main():
    out = {"tf-object-detection": "0.0.3", "tensorflow": "2.12.1", "height": HEIGHT,
           "width": WIDTH, "maps": MAPS, "settings": SETTINGS, "anchors": [], "scenes": []}
    with tf.Session() as session:
        for spec, maps, boxes in anchors():
            out["anchors"].append({"spec": spec, "maps": maps, "boxes": short(session.run(boxes))})
        for index in range(SCENES):
            found = []
            for setting in SETTINGS:
                anchor, classes, scores, boxes = session.run(detect(scene(index), setting))
                found.append({"anchors": [int(a) for a in anchor],
                              "classes": [int(c) for c in classes], "scores": short(scores),
                              "boxes": short(boxes)})
            out["scenes"].append(found)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "detections.json")
    with open(path, "w") as f:
        text = json.dumps(out, separators=(",", ":"))
        f.write(text.replace('{"spec"', '\n{"spec"').replace('{"anchors"', '\n{"anchors"') + "\n")


if __name__ == "__main__":
    main()
