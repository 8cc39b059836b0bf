"""The pixels of pasted masks in double precision, and how far an exported model, which computes
with 32-bit floats, may differ from them; the function of docs/onnx.md that pastes masks; and the
part of a model that pastes them.

With u = 2^-24, a pixel's place in the box is (at - low) / (high - low). The place `at` in the
picture is a rounded quotient of at most 1. The difference, the extent, and the quotient are rounded
once each. So the place errs by at most 4 u / extent, and after the multiplication by the number of
gaps between cells by at most 5 u gaps / extent. Neighbouring cells differ by at most 1, so the
value errs by the sum of that for both axes; and by less than 10 u more, because weights of at most
1, the difference to 0.5, products and sums are rounded."""
import os
import re

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/onnx.md")
U = 2.0 ** -24


class Axis:
    """Pixels of one axis and their places in a box: inside, sure (whether inside is certain), place
    in cells, error of the place."""

    def __init__(self, size, cells, low, high):
        import numpy as np
        at = np.arange(size) / (size - 1) if size > 1 else np.array([0.5])
        extent = high - low
        part = (at - low) / extent
        edge = 4 * U / extent
        # Pixels on the picture's border have exact places, and so has a box that ends there.
        exact = ((at == 0) & (low == 0)) | ((at == 1) & (high == 1))
        self.inside = (part >= 0) & (part <= 1)
        self.sure = exact | ((abs(part) > edge) & (abs(part - 1) > edge))
        self.place = np.clip(part, 0, 1) * (cells - 1)
        self.error = 5 * U * (cells - 1) / extent


def pixels_of(mask, box, shape):
    """Returns the pixels of a mask in a picture, and whether each is certain for a model."""
    import numpy as np
    low, high = (np.clip(box[k:k + 2].astype(float), 0, 1) for k in (0, 2))
    y, x = (Axis(*of) for of in zip(shape, mask.shape, low, high))
    top, left = y.place.astype(int)[:, None], x.place.astype(int)[None]
    fy, fx = y.place[:, None] - top, x.place[None] - left
    mask = np.pad(mask.astype(float), ((0, 1), (0, 1)), "edge") - 0.5
    value = ((1 - fy) * ((1 - fx) * mask[top, left] + fx * mask[top, left + 1])
             + fy * ((1 - fx) * mask[top + 1, left] + fx * mask[top + 1, left + 1]))
    inside = y.inside[:, None] & x.inside[None]
    # A mask on one side of the threshold stays there, whatever the weights are.
    clear = (abs(value) > y.error + x.error + 10 * U) | (mask.min() > 0) | (mask.max() <= 0)
    return inside & (value > 0), y.sure[:, None] & x.sure[None] & (clear | ~inside)


def documented():
    """Returns the function paste of docs/onnx.md."""
    import numpy
    with open(PAGE, encoding="utf-8") as f:
        block, = re.findall(r"^```python\n(def paste\(.*?)^```$", f.read(), re.M | re.S)
    names = {"numpy": numpy}
    exec(block, names)
    return names["paste"]


def part_of(file):
    """Returns the operators of a model, as bytes, that paste masks: the inputs are the pictures,
    detection_boxes and the masks in boxes, the output is detection_masks."""
    import onnx
    from onnx import TensorProto, helper
    model = onnx.load(file)
    graph, given = model.graph, ("detection_boxes", "detection_masks:input")
    known = {t.name for t in graph.initializer} | {i.name for i in graph.input} | set(given)
    needed, nodes = {"detection_masks"}, []
    for node in reversed(graph.node):
        if needed & set(node.output):
            nodes.insert(0, node)
            needed |= set(node.input) - known
    read = {name for node in nodes for name in node.input}
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in given]
    part = helper.make_graph(nodes, "paste", [*graph.input, *inputs],
                             [o for o in graph.output if o.name == "detection_masks"],
                             [t for t in graph.initializer if t.name in read])
    part = helper.make_model(part, opset_imports=model.opset_import, ir_version=model.ir_version)
    onnx.checker.check_model(model, full_check=True)
    return part.SerializeToString()
