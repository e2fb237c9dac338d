#!/usr/bin/env python3
# Imports nodes whose bounds, sizes, axes and indices are computed at run time, between linear layers.
# SPDX-License-Identifier: Apache-2.0
"""check_onnx_computed.py PROGRAM: PROGRAM is fuseline. Numbers that operators read as inputs come from extents, from an
input of the model or from data. Extents that follow from those of inputs must be known; those that only a run knows are
symbols, which are set here. The pipeline and the model that an export writes of it must compute what onnxruntime does. Ends with 77 where packages are missing: `pip install onnx onnxruntime safetensors`."""

import argparse
import json
import pathlib
import re
import sys
import tempfile

try:
    import numpy
    from onnx import TensorProto, helper, numpy_helper, save

    from onnxruntime_comparison import Crashed, Refused, computed, error_of, error_of_round_trip, import_model
except ImportError as missing:
    print(missing)
    sys.exit(77)

B, S, H = 2, 6, 8
TOLERANCE = 1e-5
RUN_TIME = ("given", "of_data")
# Numbers of a node's inputs, wanted at the extents of the test; a scalar is written as a number.
NODES = {
    "Slice of tokens": ("Slice", [[0], [3], [1]], {}),
    "Slice of tokens from 2": ("Slice", [[2], [5], [1]], {}),
    "Slice of columns": ("Slice", [[0], [4], [2]], {}),
    "Slice from the end": ("Slice", [[-4], [-1], [1]], {}),
    "Slice with a step": ("Slice", [[0], [6], [1], [2]], {}),
    "Split of columns": ("Split", [[3, 5]], {"axis": 2}),
    "Split of tokens": ("Split", [[4, 2]], {"axis": 1}),
    "Reshape to heads": ("Reshape", [[2, 6, 2, 4]], {}),
    "Reshape to rows": ("Reshape", [[12, 8]], {}),
    "Expand": ("Expand", [[2, 6, 8]], {}),
    "Expand to more": ("Expand", [[3, 1, 1, 1]], {}),
    "Tile": ("Tile", [[1, 2, 1]], {}),
    "Pad of columns": ("Pad", [[0, 0, 1, 0, 0, 2]], {}),
    "Pad of tokens": ("Pad", [[0, 2, 0, 0, 0, 0]], {}),
    "TopK": ("TopK", [[3]], {"axis": 2}),
    "ReduceSum of columns": ("ReduceSum", [[2]], {"keepdims": 1}),
    "ReduceSum of tokens": ("ReduceSum", [[1]], {"keepdims": 0}),
    "ReduceMean": ("ReduceMean", [[-1]], {"keepdims": 1}),
    "Unsqueeze": ("Unsqueeze", [[1]], {}),
    "Gather of a token": ("Gather", [3], {"axis": 1}),
    "Gather of tokens": ("Gather", [[4, 1]], {"axis": 1}),
    "Gather of columns": ("Gather", [[0, 2, 4, 6]], {"axis": 2}),
    "Trilu": ("Trilu", [1], {}),
    "CumSum": ("CumSum", [1], {}),
}


def literal(name, numbers, kind=numpy.int64):
    return numpy_helper.from_array(numpy.array(numbers, kind), name)


class Model:
    """x -> MatMul -> the node -> Relu."""

    def __init__(self, operator, inputs, attributes, source, has_any_extents):
        self.nodes, self.constants = [], []
        self.inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "tokens", H] if has_any_extents else [B, S, H])]
        self.values = [numpy.random.default_rng(1).standard_normal((B, S, H)).astype(numpy.float32)]
        first = self.linear("x", "first", H)
        names = [getattr(self, source)(f"n{i}", numbers) for i, numbers in enumerate(inputs)]
        outputs = ["made", "rest"][:2 if operator in ("Split", "TopK") else 1]
        self.add(operator, [first, *names], outputs, **attributes)
        self.add("Relu", ["made"], ["y"])
        self.model = helper.make_model(
            helper.make_graph(self.nodes, "computed", self.inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              self.constants), opset_imports=[helper.make_opsetid("", 18)], ir_version=9)

    def add(self, operator, inputs, outputs, **attributes):
        self.nodes.append(helper.make_node(operator, inputs, outputs, name=outputs[0], **attributes))
        return outputs[0]

    def linear(self, x, name, width):
        weight = numpy.random.default_rng(2).standard_normal((width, width))
        self.constants.append(literal(f"{name}.weight", weight, numpy.float32))
        return self.add("MatMul", [x, f"{name}.weight"], [name])

    def constant(self, name, numbers):
        self.constants.append(literal(name, numbers))
        return name

    def given(self, name, numbers):
        """An input of the model."""
        array = numpy.array(numbers, numpy.int64)
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.INT64, array.shape))
        self.values.append(array)
        return name

    def of_extents(self, name, numbers):
        """numbers + min(64, S) - S."""
        shape = self.add("Shape", ["x"], [f"{name}.shape"], start=1, end=2)
        tokens = self.add("Squeeze", [shape], [f"{name}.tokens"])
        least = self.add("Min", [tokens, self.constant(f"{name}.most", 64)], [f"{name}.least"])
        zero = self.add("Sub", [least, tokens], [f"{name}.zero"])
        return self.add("Add", [self.constant(f"{name}.at", numbers), zero], [name])

    def of_half(self, name, numbers):
        """numbers + (S + 1) / 2 - 3."""
        shape = self.add("Shape", ["x"], [f"{name}.shape"], start=1, end=2)
        tokens = self.add("Squeeze", [shape], [f"{name}.tokens"])
        more = self.add("Add", [tokens, self.constant(f"{name}.one", 1)], [f"{name}.more"])
        half = self.add("Div", [more, self.constant(f"{name}.two", 2)], [f"{name}.half"])
        return self.add("Add", [self.constant(f"{name}.at", (numpy.array(numbers) - 3).tolist()), half], [name])

    def of_data(self, name, numbers):
        """numbers + 0 times the place of the largest element of x."""
        rows = self.add("Reshape", ["x", self.constant(f"{name}.flat", [-1])], [f"{name}.rows"])
        place = self.add("ArgMax", [rows], [f"{name}.place"], axis=0, keepdims=0)
        zero = self.add("Mul", [place, self.constant(f"{name}.zero", 0)], [f"{name}.none"])
        return self.add("Add", [self.constant(f"{name}.at", numbers), zero], [name])


def shapes_of(imported):
    """Tensors of the model that a run of the pipeline is given -> extents, numbers or expressions."""
    body, names = json.loads(imported["text"])["pipeline"], imported["tensors"]
    shapes = {names.get(each["id"], each["id"]): each["shape"] for each in body["inputs"]}
    for op in body["ops"]:
        for output, extents in re.findall(r"(\w+) = \[([^]]*)\]", op["attributes"].get("outputs", "") if op["op"] == "External" else ""):
            shapes[names.get(f"{op['id']}.{output}", "")] = [each.strip() for each in extents.split(",")]
    return shapes


def extents_of_run(imported, folder, values):
    """Numbers of symbols that only a run knows."""
    shapes = shapes_of(imported)
    tensors = computed(folder / "m.onnx", [name for name in shapes if name], values)
    return {extent: tensors[name].shape[axis] for name, shape in shapes.items() if name in tensors
            for axis, extent in enumerate(shape) if str(extent).isidentifier() and extent not in ("B", "S")}


def check(program, name, source, has_any_extents):
    """What is wrong, or nothing."""
    operator, inputs, attributes = NODES[name]
    made = Model(operator, inputs, attributes, source, has_any_extents)
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        save(made.model, folder / "m.onnx")
        try:
            extents = {"batch": B, "tokens": S} if has_any_extents else {}
            imported = import_model(program, folder, extents)
            if source in RUN_TIME:
                imported = import_model(program, folder, extents_of_run(imported, folder, made.values) | extents)
            errors = [error_of(program, folder, imported, made.values), error_of_round_trip(program, folder, imported, made.values)]
        except (Refused, Crashed) as problem:
            return str(problem)
        wrong = [error for error in errors if error is not None and not error < TOLERANCE]
        return f"errors {errors}" if wrong else "" if any(error is not None for error in errors) else "nothing to compare"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    program, failures, count = parser.parse_args().program, 0, 0
    for name in NODES:
        for source in ("constant", "given", "of_extents", "of_half", "of_data"):
            for has_any_extents in (False, True):
                problem = check(program, name, source, has_any_extents)
                count += 1
                failures += bool(problem)
                if problem:
                    print(f"{name}, {source}{', any extents' if has_any_extents else ''}: {problem}", flush=True)
    print(f"{count} models, {failures} failed.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
