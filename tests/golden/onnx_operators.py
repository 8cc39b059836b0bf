#!/usr/bin/env python3
"""Makes ONNX models of single operators, with inputs and ONNX Runtime's outputs, in the layout of
ONNX's own test cases: CASE/model.onnx, CASE/test_data_set_0/{input_0,output_0}.pb.
tests/onnx/operator_import_test.c runs them. The files were made with onnx 1.23 and onnxruntime
1.31:

    onnx_operators.py tests/golden/onnx_operators"""
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(1)


def draw(*shape):
    return (rng.standard_normal(shape) * 2).astype(np.float32)


def case(name, nodes, inputs, opset=18, **constants):
    """Writes a case. The output of the last node is the graph's output; inputs: shapes of x0, x1
    ..."""
    data = {f"x{i}": draw(*shape) for i, shape in enumerate(inputs)}
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info(k, TensorProto.FLOAT, v.shape) for k, v in data.items()],
        [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    y = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    ).run(None, data)[0]
    folder = os.path.join(sys.argv[1], name, "test_data_set_0")
    os.makedirs(folder, exist_ok=True)
    onnx.save(model, os.path.join(folder, "..", "model.onnx"))
    for k, v in list(zip([f"input_{i}" for i in range(len(data))], data.values())) + [
        ("output_0", y)
    ]:
        with open(os.path.join(folder, k + ".pb"), "wb") as f:
            f.write(numpy_helper.from_array(v).SerializeToString())


def one(name, op, inputs, names, opset=18, attributes=None, **constants):
    case(
        name, [helper.make_node(op, names, ["y"], **(attributes or {}))], inputs, opset, **constants
    )


def main():
    image = [(2, 6, 3, 4)]
    channels = {"s": draw(6), "b": draw(6)}
    rows = {"s": draw(5), "b": draw(5)}
    one(
        "layer_norm",
        "LayerNormalization",
        [(2, 3, 5)],
        ["x0", "s", "b"],
        attributes={"epsilon": 0.01},
        **rows,
    )
    one("layer_norm_no_bias", "LayerNormalization", [(2, 3, 5)], ["x0", "s"], s=draw(5))
    one("layer_norm_axes", "LayerNormalization", image, ["x0", "s", "b"], attributes={"axis": 1},
        s=draw(6, 3, 4), b=draw(6, 3, 4))
    case(
        "layer_norm_image",
        [  # from images and to images again
            helper.make_node("Conv", ["x0", "w"], ["c"]),
            helper.make_node("Transpose", ["c"], ["t"], perm=[0, 2, 3, 1]),
            helper.make_node("LayerNormalization", ["t", "s", "b"], ["n"]),
            helper.make_node("Transpose", ["n"], ["y"], perm=[0, 3, 1, 2]),
        ],
        image,
        w=draw(5, 6, 1, 1),
        **rows,
    )
    case("layer_norm_parts", [  # the form that exporters wrote before opset 17
        helper.make_node("ReduceMean", ["x0", "axes"], ["mean"]),
        helper.make_node("Sub", ["x0", "mean"], ["d"]),
        helper.make_node("Pow", ["d", "two"], ["square"]),
        helper.make_node("ReduceMean", ["square", "axes"], ["variance"]),
        helper.make_node("Add", ["variance", "epsilon"], ["v"]),
        helper.make_node("Sqrt", ["v"], ["deviation"]),
        helper.make_node("Div", ["d", "deviation"], ["n"]),
        helper.make_node("Mul", ["n", "s"], ["scaled"]),
        helper.make_node("Add", ["scaled", "b"], ["y"])], [(2, 3, 5)], axes=np.array([-1]),
        two=np.float32(2), epsilon=np.float32(1e-5), **rows)
    one(
        "instance_norm",
        "InstanceNormalization",
        image,
        ["x0", "s", "b"],
        attributes={"epsilon": 0.1},
        **channels,
    )
    one("instance_norm_rows", "InstanceNormalization", [(2, 6, 7)], ["x0", "s", "b"], **channels)
    one(
        "group_norm",
        "GroupNormalization",
        image,
        ["x0", "s", "b"],
        21,
        {"num_groups": 3},
        **channels,
    )
    one(
        "group_norm_18",
        "GroupNormalization",
        image,
        ["x0", "s", "b"],
        18,
        {"num_groups": 3},
        s=draw(3),
        b=draw(3),
    )
    for op in ("Min", "Max", "Sum", "Mean", "L2", "SumSquare"):
        one(f"reduce_{op.lower()}_apart", "Reduce" + op, [(2, 3, 4, 5)], ["x0", "axes"],
            attributes={"keepdims": 0}, axes=np.array([1, 3]))
    one("reduce_min_rows", "ReduceMin", [(2, 3, 5)], ["x0", "axes"], axes=np.array([-1]))
    one("reduce_l2_of_one", "ReduceL2", [(2, 1, 5)], ["x0", "axes"], axes=np.array([1]))
    factors = {"alpha": 0.5, "beta": 2.0}
    one("gemm_computed", "Gemm", [(4, 3), (5, 4), (5,)], ["x0", "x1", "x2"],
        attributes={**factors, "transA": 1, "transB": 1})
    one(
        "gemm_computed_constant",
        "Gemm",
        [(3, 4), (4, 5)],
        ["x0", "x1", "b"],
        attributes=factors,
        b=draw(5),
    )
    one(
        "gemm_computed_summand",
        "Gemm",
        [(3, 4), (3, 1)],
        ["x0", "w", "x1"],
        attributes=factors,
        w=draw(4, 5),
    )
    one("gemm_computed_bare", "Gemm", [(3, 4), (4, 5)], ["x0", "x1"], attributes={"alpha": 0.5})
    one("matmul_left_constant", "MatMul", [(2, 4, 5)], ["w", "x0"], w=draw(2, 3, 4))
    one("gather_table", "Gather", [(3, 7, 2)], ["x0", "at"], attributes={"axis": 1},
        at=np.arange(1, 7).reshape(2, 3))
    case("scatter_constants", [
        helper.make_node("ScatterND", ["data", "at", "parts"], ["table"]),
        helper.make_node("Add", ["x0", "table"], ["y"])], [(2, 4, 3)], data=draw(4, 3),
        at=np.array([[-1], [1]]), parts=draw(2, 3))
    case("gather_nd_constants", [
        helper.make_node("GatherND", ["data", "at"], ["table"]),
        helper.make_node("Add", ["x0", "table"], ["y"])], [(2, 4, 3)], data=draw(5, 2, 3),
        at=np.array([[4, 0], [-1, -1], [0, 1], [4, 0]]))
    one("einsum_scores", "Einsum", [(2, 3, 2, 5, 4), (2, 3, 2, 6, 4)], ["x0", "x1"],
        attributes={"equation": "B G H I D, B G H J D -> B G H I J"})
    one("einsum_mixed", "Einsum", [(2, 3, 4, 5), (3, 5, 2, 6)], ["x0", "x1"],
        attributes={"equation": "bhik,hkbj->bijh"})
    one(
        "einsum_constant",
        "Einsum",
        [(2, 3, 4)],
        ["x0", "w"],
        attributes={"equation": "bik,jk->bji"},
        w=draw(5, 4),
    )
    for name, pads in (
        ("pad_channels_last", [0, 1, 2, 0, 0, 0, 3, 0]),
        ("pad_images", [0, 0, 1, 2, 0, 0, 0, 3]),
    ):
        one(
            name,
            "Pad",
            [(2, 3, 4, 5)],
            ["x0", "pads", "value"],
            pads=np.array(pads),
            value=np.float32(0.5),
        )
    case(
        "conv_rows",
        [
            helper.make_node(
                "Conv", ["x0", "w", "b"], ["c"], group=2, strides=[2], pads=[2, 1], dilations=[2]
            ),
            helper.make_node("Relu", ["c"], ["r"]),
            helper.make_node("Add", ["r", "s"], ["y"]),
        ],
        [(2, 6, 9)],
        w=draw(4, 3, 3),
        b=draw(4),
        s=draw(4, 1),
    )
    case("expand_divisor", [
        helper.make_node("ReduceL2", ["x0", "axes"], ["norm"], keepdims=1),
        helper.make_node("Expand", ["norm", "shape"], ["all"]),
        helper.make_node("Div", ["x0", "all"], ["y"])], [(2, 5, 3, 4)], axes=np.array([1]),
        shape=np.array([2, 5, 3, 4]))
    one(
        "conv_rows_depthwise",
        "Conv",
        [(2, 3, 7)],
        ["x0", "w"],
        attributes={"group": 3},
        w=draw(3, 1, 2),
    )
    least = np.iinfo(np.int64).min
    for name, begin, end, axes, step in (
        ("slice_mirrored", [-1], [least], [3], [-1]),
        ("slice_back", [3, 9], [0, -5], [2, -1], [-1, -1]),
        ("slice_back_rows", [4, 0], [0, 4], [0, 2], [-1, 2]),
    ):
        one(
            name,
            "Slice",
            [(2, 3, 4, 5) if axes[0] else (5, 3, 4)],
            ["x0", "begin", "end", "axes", "step"],
            begin=np.array(begin),
            end=np.array(end),
            axes=np.array(axes),
            step=np.array(step),
        )
    for name, direction, count in (("lstm", "forward", 1), ("lstm_reverse", "reverse", 1),
                                   ("lstm_both", "bidirectional", 2)):
        biases = {"b": draw(count, 40)} if name != "lstm_reverse" else {}
        first = ["", "zero", "zero"] if name == "lstm_both" else []
        case(
            name,
            [  # as exporters write a layer whose batch is the first axis
                helper.make_node("Transpose", ["x0"], ["t"], perm=[1, 0, 2]),
                helper.make_node(
                    "LSTM",
                    ["t", "w", "r", "b" if biases else ""] + first,
                    ["all"],
                    hidden_size=5,
                    direction=direction,
                ),
                helper.make_node("Transpose", ["all"], ["moved"], perm=[2, 0, 1, 3]),
                helper.make_node("Reshape", ["moved", "shape"], ["y"]),
            ],
            [(2, 4, 3)],
            w=draw(count, 20, 3) / 2,
            r=draw(count, 20, 5) / 2,
            shape=np.array([0, 0, -1]),
            **({"zero": np.zeros((count, 2, 5), np.float32)} if first else {}),
            **biases,
        )


if __name__ == "__main__":
    main()
