#!/usr/bin/env python3
# Runs what `fuseline export --to onnx` writes in onnxruntime and in ONNX's own reference, and compares with Fuseline.
# SPDX-License-Identifier: Apache-2.0
"""check_onnx.py PROGRAM [TEST...]: PROGRAM is fuseline. Needs `pip install onnx onnxruntime`; ends with 77 where these
packages are missing."""

import importlib.util
import itertools
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

for package in ("numpy", "ml_dtypes", "onnx", "onnxruntime"):
    if importlib.util.find_spec(package) is None:
        print(f"Skipped: this Python has no {package}.")
        sys.exit(77)

import ml_dtypes
import numpy as np
import onnx
import onnx.reference
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "resources" / "examples").glob("*.fuseline"))
BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = {"F32": np.float32, "F16": np.float16, "BF16": BF16, "I64": np.int64}
# Relative to the largest value of the output. Formats round by 2^-24, 2^-11 and 2^-8, over a few ops in a row.
TOLERANCES = {"f32": 2e-5, "f16": 4e-3, "bf16": 3e-2}
PROGRAM = ""

X = [[6, 64]]
ROWS = [6]


def op(name, shapes=X, **attributes):
    return name, shapes, attributes


# One call of every op that has a forward meaning, and of attributes that change it.
OPS = [
    op("Linear", in_features=64, out_features=48),
    op("Linear", [[2, 3, 64]], in_features=64, out_features=48, bias=False),
    op("Linear", [[64]], in_features=64, out_features=48),
    op("BasicLinear", in_features=64, out_features=16),
    op("Bias", size=64),
    *(op("GroupedLinear", shapes, num_groups=3, in_features=64, out_features=32, **more)
      for shapes, more in ((X + [("i64", [3])], {}), (X + [("i64", [3])], {"bias": False}),
                           ([[2, 3, 64], ("i64", [3])], {"single_grouped_weight": True, "single_grouped_bias": True}),
                           ([[2, 3, 64], ("i64", [3]), [2, 3]], {"scale_bias": True}))),
    *(op(name) for name in ("GELU", "QGELU", "ReLU", "SReLU", "SiLU", "GLU", "GEGLU", "QGEGLU", "ReGLU", "SReGLU",
                            "SwiGLU", "ClampedSwiGLU", "SiTUGLU", "Identity", "L2Normalization", "Quantize")),
    op("GELU", cache_quantized_input=True),
    *(op(name, [[2, 3, 64]], glu_interleave_size=8) for name in ("SwiGLU", "ClampedSwiGLU", "SiTUGLU")),
    op("ClampedSwiGLU", limit=0.5, alpha=1.1),
    op("SiTUGLU", beta1=2.0, beta2=1.5),
    *(op(name, [[6, 64], ROWS])
      for name in ("ScaledSReLU", "ScaledSwiGLU", "ScaledSiTUGLU", "ScaledClampedQGeGLU")),
    op("ScaledTanhSReLU", [[6, 64], ROWS], tanh_clamp_scale=1.5),
    op("ScaledSwiGLU", [[2, 3, 64], [2, 3]], glu_interleave_size=32),
    op("Formula", y="alpha * min(x, limit) * sigmoid(beta * x) + (x < 0) * max(-x, 2) / (1 + exp(x)) - gelu(x) * "
       "sqrt(abs(x) + 1) * tanh(x) + log(2 + x * x) * m - silu(x) * rsqrt(1 + m * m)", inputs="m", parameters="alpha = 1, beta[1] = 1.702",
       constants="limit = 7", shapes=[[6, 64], [6, 64]]),
    op("RMSNorm", normalized_shape=[64], eps=0.1),
    op("RMSNorm", [[5, 4, 16]], normalized_shape=[4, 16], zero_centered_gamma=True),
    op("LayerNorm", normalized_shape=[64], eps=0.1),
    op("LayerNorm", [[5, 4, 16]], normalized_shape=[4, 16], zero_centered_gamma=True),
    op("L2Normalization", eps=0.5),
    op("Dropout", p=0.5),
    op("ConstantScale", scale=-1.25),
    op("AddExtraInput", [[6, 64], [6, 64]]),
    op("MakeExtraOutput"),
    op("Reshape", shape=[2, -1, 16]),
    op("Split", sizes=[32, 16, 16]),
    op("Expand", count=3),
    op("Embedding", [("i64", [2, 5])], num_embeddings=7, embedding_dim=16),
    op("Embedding", [("i64", [2, 5])], num_embeddings=7, embedding_dim=16, positions=True),
    op("TiedLinear", [[6, 64], [10, 64]]),
    *(op("CrossEntropy", [[2, 3, 64], ("i64", [2, 3])], reduction=reduction) for reduction in ("mean", "sum", "none")),
    # ONNX's reference evaluator gathers from at most 64 columns.
    op("TopKRouter", [[6, 48]], topk=8),
    op("TopKRouter", [[2, 3, 16]], topk=4, use_pre_softmax=True, scaling_factor=2.5),
    *(op("TopKRouter", [[6, 48]], topk=4, score_function=score, num_groups=8, group_topk=2, expert_bias=True)
      for score in ("sigmoid", "sqrtsoftplus")),
    *(op("MoEAuxLoss", [[6, 12], [2, 3, 12], ("i64", [12]), ("i64", [12])], num_layers=2, topk=2, coeff=0.5,
         score_function=score, z_loss_coeff=0.1) for score in ("softmax", "sigmoid", "sqrtsoftplus")),
    op("MoEAuxLoss", [[6, 12], ("i64", [12])]),
    *(op("MoEPermute", [[2, 3, 64], ("i64", [2, 3, 2])], num_experts=5, align_size=align) for align in (1, 4)),
    op("MoEUnpermute", [[14, 64], ("i64", [2, 3, 2]), [2, 3, 2]]),
    op("MoEUnpermute", [[5, 64], ("i64", [4, 2])], merging_probs=False),
    op("Concat", [[6, 64], [6, 32]]),
    op("Expand", [[2, 3, 16]], count=4),
    op("RotaryPositionEmbedding", [[6, 2, 4, 16]], dim=16),
    op("RotaryPositionEmbedding", [[6, 2, 4, 16]], dim=16, interleaved=True),
    *(op("DotProductAttention", [[6, 2, 4, 16], [keys, 2, 2, 16], [keys, 2, 2, 16]], num_attention_heads=4,
         kv_channels=[16], num_gqa_groups=2, **more)
      for keys, more in ((6, {}), (9, {"attn_mask_type": "no_mask"}), (9, {"attn_mask_type": "causal_bottom_right"}),
                         (6, {"attn_mask_type": "causal", "window_size": [2, 0]}), (6, {"softmax_scale": 0.5}))),
    *(op("DotProductAttention", [[6, 2, 4, 16], [9, 2, 2, 16], [9, 2, 2, 16], ("i64", [3]), ("i64", [3])],
         num_attention_heads=4, kv_channels=[16], num_gqa_groups=2, attn_mask_type=mask)
      for mask in ("padding", "padding_causal", "padding_causal_bottom_right")),
    *(op("DotProductAttention", [[12, 4, 16], [15, 2, 16], [15, 2, 16], ("i64", [4]), ("i64", [4])],
         num_attention_heads=4, kv_channels=[16], num_gqa_groups=2, qkv_format="thd", attn_mask_type=mask, **more)
      for mask, more in (("padding", {}), ("padding_causal", {"window_size": [3, 0]}),
                         ("padding_causal_bottom_right", {}))),
]
COMMUNICATION = {"AllGather", "ReduceScatter", "AllReduce"}
# Of other programs, or only for training; refused.
NOT_RUN = {"External", "MoEAuxLoss"}


def fuseline(*arguments, check=True):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=check, capture_output=True, text=True)


def catalog():
    return {each["name"]: each for each in json.loads(fuseline("ops", "--json").stdout)["ops"]}


def tensors_in(path):
    """The tensors of a safetensors file."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    return {
        name: np.frombuffer(data[slice(*entry["data_offsets"])], DTYPES[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
        if name != "__metadata__" and entry["dtype"] in DTYPES
    }


def one_op(name, shapes, attributes, dtype="f32"):
    """A document of one op, with the ports that it has with these attributes."""
    ports = catalog()[name]["inputs"]
    names = [port["name"] for port in ports]
    if name == "Formula":
        names = ["x", *attributes["inputs"].split(", ")]
    if attributes.get("scale_bias"):
        names.append("scales")
    if "padding" in attributes.get("attn_mask_type", ""):
        names += ["cu_seqlens_q", "cu_seqlens_kv"]
    if attributes.get("num_layers", 1) > 1:
        names = [name + suffix for name in names for suffix in ("", *map(str, range(1, attributes["num_layers"])))]
    if not attributes.get("merging_probs", True):
        names.remove("probs")
    inputs = []
    for port, shape in zip(names, shapes, strict=True):
        kind, extents = shape if isinstance(shape, tuple) else (dtype, shape)
        inputs.append({"id": f"in_{port}", "dtype": kind, "shape": extents})
    outputs = [port["name"] for port in catalog()[name]["outputs"]]
    if name == "Split":
        outputs = ["y", *(f"y{i}" for i in range(1, len(attributes["sizes"])))]
    return {
        "format": "fuseline-pipeline",
        "formatVersion": {"major": 1, "minor": 0},
        "symbols": {},
        "pipeline": {
            "inputs": inputs,
            "ops": [{"id": "op", "op": name, "attributes": attributes}],
            "wires": [[f"in_{port}", f"op.{port}"] for port in names],
            "outputs": [{"id": f"out_{port}", "from": f"op.{port}"} for port in outputs],
        },
    }


def mlp(dtype):
    """RMSNorm, BasicLinear, SwiGLU, BasicLinear."""
    attributes = {
        "norm": ("RMSNorm", {"normalized_shape": [64]}),
        "fc1": ("BasicLinear", {"in_features": 64, "out_features": 256}),
        "act": ("SwiGLU", {}),
        "fc2": ("BasicLinear", {"in_features": 128, "out_features": 64}),
    }
    names = list(attributes)
    return {
        "format": "fuseline-pipeline",
        "formatVersion": {"major": 1, "minor": 0},
        "symbols": {},
        "pipeline": {
            "inputs": [{"id": "in", "dtype": dtype, "shape": [32, 64]}],
            "ops": [{"id": name, "op": kind, "attributes": given} for name, (kind, given) in attributes.items()],
            "wires": [["in", "norm.x"], *([f"{a}.y", f"{b}.x"] for a, b in zip(names, names[1:]))],
            "outputs": [{"id": "out", "from": "fc2.y"}],
        },
    }


def with_dtype(document, dtype):
    """The document with other inputs and parameters."""
    document = json.loads(json.dumps(document))
    for scope in [document["pipeline"], *document.get("blocks", {}).values()]:
        for each in scope["inputs"]:
            each["dtype"] = "i64" if each.get("dtype") in ("i64", "int64") else dtype
        for each in scope["ops"]:
            each.get("attributes", {}).pop("dtype", None)
    return document


def wide(model):
    """The model with float32 in place of bf16 at its border: onnxruntime takes no arrays of bf16 in Python."""
    model = onnx.load_from_string(model.SerializeToString())
    for values, isInput in ((model.graph.input, True), (model.graph.output, False)):
        for value in values:
            kind = value.type.tensor_type
            if kind.elem_type != onnx.TensorProto.BFLOAT16:
                continue
            inner = value.name + " in bf16"
            for node in model.graph.node:
                names = node.input if isInput else node.output
                names[:] = [inner if name == value.name else name for name in names]
                if not isInput:
                    node.input[:] = [inner if name == value.name else name for name in node.input]
            kind.elem_type = onnx.TensorProto.FLOAT
            border = (value.name, inner) if isInput else (inner, value.name)
            to = onnx.TensorProto.BFLOAT16 if isInput else onnx.TensorProto.FLOAT
            cast = onnx.helper.make_node("Cast", border[:1], border[1:], to=to)
            model.graph.node.insert(0 if isInput else len(model.graph.node), cast)
    return model


class Case:
    """A document, exported, and what Fuseline makes of it."""

    def __init__(self, folder, document, *options, tensors=None, opset=20):
        self.path, self.model_path = folder / "pipeline.fuseline", folder / "pipeline.onnx"
        self.path.write_text(json.dumps(document), encoding="utf-8")
        given = ["--tensors", tensors] if tensors else []
        dump = folder / "dump.safetensors"
        fuseline("run", self.path, "--pass", "forward", "--variants", "unfused", "--iterations", 1, "--warmup", 0,
                 "--no-peaks", "--quiet", "--seed", 3, "--dump", dump, *options, *given)
        self.notes = fuseline("export", self.path, "--to", "onnx", "--opset", opset, "-o", self.model_path, "--force",
                              "--seed", 3, *options, *given).stderr
        self.expected = tensors_in(dump)
        self.model = onnx.load(self.model_path)
        onnx.checker.check_model(self.model, full_check=True)

    def feeds(self, names):
        return {name: self.expected[name] for name in names}

    def in_onnxruntime(self):
        session = onnxruntime.InferenceSession(wide(self.model).SerializeToString(), providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        feeds = self.feeds(each.name for each in session.get_inputs())
        feeds = {name: value.astype(np.float32) if value.dtype == BF16 else value for name, value in feeds.items()}
        outputs = dict(zip(names, session.run(names, feeds)))
        return {name: value.astype(self.expected[name].dtype) for name, value in outputs.items()}

    def in_reference(self):
        evaluator = onnx.reference.ReferenceEvaluator(self.model)
        return dict(zip(evaluator.output_names, evaluator.run(None, self.feeds(evaluator.input_names))))


class OnnxTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assert_close(self, case, outputs, tolerance):
        self.assertEqual(list(outputs), [output.name for output in case.model.graph.output])
        for name, actual in outputs.items():
            expected = case.expected[name]
            self.assertEqual(actual.dtype, expected.dtype, name)
            self.assertEqual(actual.shape, expected.shape, name)
            wide = expected.astype(np.float64)
            error = np.abs(actual.astype(np.float64) - wide).max() / max(np.abs(wide).max(), 1e-30)
            self.assertLessEqual(error, tolerance, f"{name}: {error}")

    def documents(self):
        for path in EXAMPLES:
            document = json.loads(path.read_text(encoding="utf-8"))
            if not any(each["op"] in COMMUNICATION | NOT_RUN or each.get("attributes", {}).get("tensor_parallel_mode")
                       for each in document["pipeline"]["ops"]):
                yield path.stem, document

    def test_covers_every_op(self):
        self.assertEqual({name for name, _, _ in OPS} | COMMUNICATION | NOT_RUN, set(catalog()))

    def test_ops_of_opset_23_in_onnxruntime(self):
        """Attention and rotary embeddings are ops there."""
        ops = {"DotProductAttention": "Attention", "RotaryPositionEmbedding": "RotaryEmbedding"}
        for (name, shapes, attributes), dtype in itertools.product(OPS, ("f32", "f16")):
            if name not in ops:
                continue
            with self.subTest(op=name, attributes=attributes, dtype=dtype):
                case = Case(self.folder, one_op(name, shapes, attributes, dtype), opset=23)
                self.assertIn(ops[name], [node.op_type for node in case.model.graph.node])
                self.assert_close(case, case.in_onnxruntime(), TOLERANCES[dtype])

    def test_ops_in_onnxruntime(self):
        for (name, shapes, attributes), dtype in itertools.product(OPS, ("f32", "f16")):
            with self.subTest(op=name, attributes=attributes, dtype=dtype):
                case = Case(self.folder, one_op(name, shapes, attributes, dtype))
                self.assert_close(case, case.in_onnxruntime(), TOLERANCES[dtype])

    def test_ops_in_bf16(self):
        for name, shapes, attributes in OPS:
            with self.subTest(op=name, attributes=attributes):
                case = Case(self.folder, one_op(name, shapes, attributes, "bf16"))
                self.assert_close(case, case.in_reference(), TOLERANCES["bf16"])

    def test_examples_in_onnxruntime(self):
        for name, document in self.documents():
            with self.subTest(example=name):
                case = Case(self.folder, with_dtype(document, "f32"))
                self.assert_close(case, case.in_onnxruntime(), TOLERANCES["f32"])

    def test_examples_as_they_are(self):
        for name, document in self.documents():
            with self.subTest(example=name):
                case = Case(self.folder, document, *(["--set", "M=32"] if "M" in document["symbols"] else []))
                self.assert_close(case, case.in_reference(), TOLERANCES["bf16"])

    def test_named_extents_may_be_any(self):
        document = json.loads((ROOT / "resources/examples/llama_mlp.fuseline").read_text(encoding="utf-8"))
        Case(self.folder, with_dtype(document, "f32"), "--set", "M=64")
        few = onnxruntime.InferenceSession(self.folder / "pipeline.onnx", providers=["CPUExecutionProvider"])
        self.assertEqual(few.get_inputs()[0].shape[0], "M")
        other = Case(self.folder, with_dtype(document, "f32"), "--set", "M=96")
        outputs = dict(zip(["y"], few.run(["y"], other.feeds(["x"]))))
        self.assert_close(other, outputs, TOLERANCES["f32"])

    def test_recipes_with_one_scale_a_tensor(self):
        """What the recipe does to the result is what it does in Fuseline: the errors agree, not only the results."""
        for dtype, (recipe, hasState) in itertools.product(
            ("f32", "bf16"), (("Float8CurrentScaling", False), ("DelayedScaling", False), ("DelayedScaling", True))
        ):
            with self.subTest(dtype=dtype, recipe=recipe, hasState=hasState):
                state = self.saved_state(dtype, recipe) if hasState else None
                case = Case(self.folder, mlp(dtype), "--recipe", recipe, tensors=state)
                outputs = case.in_onnxruntime()["out"].astype(np.float64)
                types = [node.op_type for node in case.model.graph.node]
                self.assertEqual([types.count("QuantizeLinear"), types.count("DequantizeLinear")], [2, 4])
                self.assertEqual("Abs" not in types, hasState, "scales follow from inputs where none are known")
                plain = Case(self.folder, mlp(dtype), "--recipe", "None")
                if recipe == "DelayedScaling" and not hasState:  # Fuseline's first step has the scale 1
                    case = Case(self.folder, mlp(dtype), "--recipe", "Float8CurrentScaling")
                off = np.linalg.norm(outputs - case.expected["out"].astype(np.float64))
                lost = np.linalg.norm(outputs - plain.expected["out"].astype(np.float64))
                self.assertLess(off, 0.2 * lost)

    def saved_state(self, dtype, recipe):
        state, path = self.folder / "state.safetensors", self.folder / "before.fuseline"
        path.write_text(json.dumps(mlp(dtype)), encoding="utf-8")
        fuseline("run", path, "--variants", "unfused", "--iterations", 2, "--no-peaks", "--quiet", "--seed", 3,
                 "--recipe", recipe, "--save", state)
        return state

    def test_blocks_stay_in_high_precision(self):
        case = Case(self.folder, mlp("f32"), "--recipe", "MXFP8BlockScaling")
        self.assertIn("fc1, fc2: in high precision", case.notes)
        plain = Case(self.folder, mlp("f32"), "--recipe", "None")
        self.assert_close(plain, case.in_onnxruntime(), TOLERANCES["f32"])


def main():
    global PROGRAM
    PROGRAM = sys.argv.pop(1)
    unittest.main()


if __name__ == "__main__":
    main()
