"""Seeds of the fuzz targets of box data: label maps, COCO's masks, records of objects, COCO's files
of boxes."""
import json
import struct

from picture_seeds import png
from wire_format import example, feature


def label_maps():
    yield "text", (b"item { name: 'cat' id: 1 display_name: \"a \\\"cat\\\"\" }\n"
                   b"item{name:'b' id:90}")
    yield "fields", (b"# map\nitem: < id: 0x7, name: 'd' \"og\\303\\251\"; frequency: RARE\n"
                     b"ancestor_ids: [1, 2] keypoints { id: 1 label: 'eye' } >")
    yield "background", b"item { name: 'background' id: 0 } item { name: 'x' id: 1 }"
    points = [{"id": 0, "label": "k"}]
    yield "json", json.dumps([{"id": 3, "name": "a", "display_name": "A"},
                              {"id": 1, "name": "b", "keypoints": points}]).encode()
    yield "object", b'{"item": [{"id": 7, "name": "x"}]}'
    yield "double", b"item { name: 'a' id: 2 } item { name: 'b' id: 2 }"
    yield "deep", b"item { " * 50
    yield "escape", b"item { name: '\\x41\\101\\n\\'' id: 1"


def coco_masks():
    yield "text", b"\0\5\5\x36\x31\x4e1O"
    yield "whole", b"\0\0\0" + b"01"
    yield "runs", b"\2\5\5" + struct.pack("<4H", 10, 6, 0, 20)
    yield "triangle", b"\1\x0f\x0f" + struct.pack("<6h", 5, 5, 60, 10, 30, 70)
    yield "outside", b"\1\x0f\x0f" + struct.pack("<8h", -50, -50, 500, -50, 500, 500, -50, 500)
    yield "point", b"\1\x0f\x0f" + struct.pack("<4h", 5, 5, 5, 5)


def objects():
    sides = {"ymin": [0, 0.5], "xmin": [0, -0.1], "ymax": [1, 0.5], "xmax": [1, 1]}
    box = [("image/object/bbox/" + side, feature(2, v)) for side, v in sides.items()]
    size = [("image/height", feature(3, [2])), ("image/width", feature(3, [3]))]
    many = [("image/object/class/text", feature(1, [b"cat", b"dog"])),
            ("image/object/class/label", feature(3, [1, 2])),
            ("image/object/area", feature(2, [1, 2])),
            ("image/object/is_crowd", feature(3, [0, 1])),
            ("image/object/keypoint/x", feature(2, [0.5] * 4)),
            ("image/object/keypoint/y", feature(2, [0.5] * 4)),
            ("image/object/keypoint/visibility", feature(3, [0, 1, 2, 2]))]
    yield "boxes", example(size + box)
    yield "many", example(size + box + many)
    yield "masks", example(size + box + [("image/object/mask", feature(1, [png(3, 2, 0), b""]))])
    yield "runs", example(size + box + [("image/object/mask/rle", feature(1, [b"123", b""]))])
    yield "runs_over", example(size + box + [("image/object/mask/rle", feature(1, [b"124", b"6"]))])
    yield "numbers", example(size + box + [("image/object/mask", feature(2, [0, 1, 0] * 4))])
    yield "short", example(size + box[1:] + [("image/object/bbox/ymin", feature(2, [0]))])
    turned = [("image/object/rbbox/" + key, feature(2, [v, v])) for key, v in
              (("cy", 0.5), ("cx", 1.1), ("h", 0.25), ("w", 0.75), ("ang", -4))]
    yield "rotated", example(size + turned + [("image/gsd", feature(2, [0.5])),
                                              ("image/sensor", feature(1, [b"K3"]))])
    yield "rotated_both", example(size + box + turned)
    yield "rotated_sizeless", example(turned)
    yield "pixels", example(box[:3] + [("image/object/bbox/xmax", feature(2, [300, 1]))])


def coco_boxes():
    thing = {"id": 1, "image_id": 7, "category_id": 90, "bbox": [0, 0, 2, 2], "area": 3.5,
             "iscrowd": 0, "segmentation": [[0, 0, 2, 0, 2, 2, 0, 2]],
             "keypoints": [1, 1, 2, 0, 0, 0], "num_keypoints": 1}
    crowd = {**thing, "id": 2, "iscrowd": 1, "segmentation": {"counts": [0, 5, 7], "size": [3, 4]}}
    packed = {**thing, "id": 3, "segmentation": {"counts": "057", "size": [3, 4]}}
    kinds = [{"id": 90, "name": "person", "keypoints": ["nose", "eye"]}]
    good = {"images": [{"id": 7, "file_name": "a.png", "height": 3, "width": 4}],
            "annotations": [thing, crowd, packed], "categories": kinds}
    text = json.dumps(good).encode()

    def with_one(**members):
        return json.dumps({**good, "annotations": [{**thing, **members}]}).encode()

    yield "good", text
    yield "order", json.dumps(dict(reversed(good.items())), indent=1).encode()
    yield "points", text + b"\1" + text
    yield "turned", json.dumps(
        {**good, "images": [{**good["images"][0], "height": 4, "width": 3}]}).encode()
    yield "no_box", with_one(bbox=[1, 1, 0, 2])
    yield "beyond", with_one(bbox=[-1, 2, 9, 9])
    yield "category", with_one(category_id=4)
    yield "size", with_one(segmentation={"counts": [12], "size": [4, 3]})
    yield "odd", with_one(segmentation=[[1, 2, 3]])
    yield "none", with_one(segmentation=[])
    yield "cut", text[:200]
