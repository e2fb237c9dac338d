#!/usr/bin/env python3
# Imports ONNX models as exporters write them, exports them again, and compares both in onnxruntime.
# SPDX-License-Identifier: Apache-2.0
"""check_onnx_roundtrip.py PROGRAM [TEST...]: PROGRAM is fuseline. Needs `pip install onnx onnxruntime safetensors`; ends
with 77 where these packages are missing."""

import dataclasses
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

for package in ("numpy", "ml_dtypes", "onnx", "onnxruntime", "safetensors"):
    if importlib.util.find_spec(package) is None:
        print(f"Skipped: this Python has no {package}.")
        sys.exit(77)

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import onnxruntime
import safetensors.numpy

PROGRAM = ""
H = 32
ROWS = 4
DTYPES = {"float": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def drawn(*shape, low=-1.0, high=1.0, seed=0):
    return np.random.default_rng(seed + sum(shape)).uniform(low, high, shape).astype(np.float32)


@dataclasses.dataclass
class Case:
    """The nodes of a model with input x [4, 32] and output y; what an import finds in it."""

    name: str
    nodes: str
    found: list
    weights: dict = dataclasses.field(default_factory=dict)
    opset: int = 17
    dtype: str = "float"
    inputs: dict = dataclasses.field(default_factory=dict)  # further ones, by shape
    counts: dict = dataclasses.field(default_factory=dict)  # inputs of int64 from 0 to 4, by shape
    attributes: dict = dataclasses.field(default_factory=dict)  # of the last op
    tolerance: float = 2e-6


def model_of(case):
    """Constants are of the model's dtype, other arrays as they are."""
    shapes = {"x": [ROWS, H], **case.inputs}
    declared = ", ".join(f"{case.dtype}[{', '.join(map(str, shape))}] {name}" for name, shape in shapes.items())
    declared += "".join(f", int64[{', '.join(map(str, shape))}] {name}" for name, shape in case.counts.items())
    graph = onnx.parser.parse_graph(f"model ({declared}) => ({case.dtype} y) {{ {case.nodes} }}")
    for name, value in case.weights.items():
        array = np.asarray(value, dtype=np.float32) if isinstance(value, float) else value
        if array.dtype == np.float32:
            array = array.astype(DTYPES[case.dtype])
        graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    for number, node in enumerate(graph.node):
        node.name = f"/{node.op_type}_{number}"
    kind = graph.output[0].type.tensor_type
    kind.ClearField("shape")
    opsets = [onnx.helper.make_opsetid("", case.opset), onnx.helper.make_opsetid("com.microsoft", 1)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=min(10, 3 + case.opset // 2))
    return onnx.shape_inference.infer_shapes(model) if "com.microsoft" not in case.nodes else model


def fuseline(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"{arguments}: {done.stderr}")
    return done.stderr


def outputs_of(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def ops_in(document):
    return [op["op"] for op in document["pipeline"]["ops"] if op["op"] != "MakeExtraOutput"]


NORM = "mean = ReduceMean <axes: ints = [-1]> (x) d = Sub(x, mean) {square} var = ReduceMean <axes: ints = [-1]> (s) "
LN_WEIGHTS = {"gamma": drawn(H, low=0.5), "beta": drawn(H), "eps": 1e-5, "two": 2.0, "half": 0.5, "minus": -0.5, "one": 1.0}


def layer_norm(name, square="s = Pow(d, two)", tail="", **more):
    tail = tail or "v = Add(var, eps) r = Sqrt(v) n = Div(d, r) g = Mul(n, gamma) y = Add(g, beta)"
    return Case(name, NORM.format(square=square) + tail, ["LayerNorm"], LN_WEIGHTS, **more)


def rms_norm(name, tail, **more):
    head = "s = Pow(x, two) var = ReduceMean <axes: ints = [-1]> (s) v = Add(eps, var) "
    return Case(name, head + tail, ["RMSNorm"], LN_WEIGHTS, **more)


NORMS = [
    layer_norm("layernorm_pow"),
    layer_norm("layernorm_opset11", opset=11),
    layer_norm("layernorm_mul", "s = Mul(d, d)"),
    layer_norm("layernorm_two_subs", "d2 = Sub(x, mean) s = Pow(d2, two)"),
    layer_norm("layernorm_reciprocal", tail="v = Add(eps, var) r = Sqrt(v) i = Reciprocal(r) n = Mul(i, d) "
               "g = Mul(gamma, n) y = Add(beta, g)"),
    layer_norm("layernorm_power", tail="v = Add(eps, var) i = Pow(v, minus) n = Mul(i, d) g = Mul(gamma, n) "
               "y = Add(beta, g)"),
    layer_norm("layernorm_without_bias", tail="v = Add(var, eps) r = Sqrt(v) n = Div(d, r) y = Mul(n, gamma)"),
    layer_norm("layernorm_without_weights", tail="v = Add(var, eps) r = Sqrt(v) y = Div(d, r)"),
    Case("layernorm_whole", "y = LayerNormalization <axis = -1> (x, gamma, beta)", ["LayerNorm"], LN_WEIGHTS),
    rms_norm("rmsnorm_div", "r = Sqrt(v) n = Div(x, r) y = Mul(n, gamma)"),
    rms_norm("rmsnorm_rsqrt", "r = Sqrt(v) i = Reciprocal(r) n = Mul(x, i) y = Mul(gamma, n)"),
    rms_norm("rmsnorm_one_over", "r = Sqrt(v) i = Div(one, r) n = Mul(x, i) y = Mul(gamma, n)"),
    rms_norm("rmsnorm_power", "i = Pow(v, minus) n = Mul(i, x) y = Mul(gamma, n)"),
    rms_norm("rmsnorm_half_power", "r = Pow(v, half) n = Div(x, r) y = Mul(gamma, n)"),
    rms_norm("rmsnorm_gemma", "r = Sqrt(v) i = Reciprocal(r) n = Mul(x, i) c = Add(gamma, one) y = Mul(n, c)"),
    rms_norm("rmsnorm_without_weight", "r = Sqrt(v) y = Div(x, r)"),
]

NUMBERS = {"one": 1.0, "half": 0.5, "two": 2.0, "three": 3.0, "root2": 2**0.5, "inv_root2": 0.5**0.5, "cubic": 0.044715,
           "root": (2 / np.pi) ** 0.5, "quick": 1.702, "inv_quick": 1 / 1.702}
TANH = {"approximate": "tanh"}
ERF = {"approximate": "none"}
GELUS = [
    ("erf_div", "a = Div(x, root2) e = Erf(a) p = Add(e, one) h = Mul(x, p) y = Mul(h, half)", ERF),
    ("erf_mul", "a = Mul(x, inv_root2) e = Erf(a) p = Add(one, e) h = Mul(half, x) y = Mul(p, h)", ERF),
    ("erf_halved", "a = Mul(x, inv_root2) e = Erf(a) p = Add(one, e) h = Mul(half, p) y = Mul(h, x)", ERF),
    ("erf_by_two", "a = Mul(x, inv_root2) e = Erf(a) p = Add(one, e) h = Div(x, two) y = Mul(h, p)", ERF),
    ("erf_inner", "a = Mul(x, inv_root2) e = Erf(a) k = Mul(e, half) p = Add(half, k) y = Mul(x, p)", ERF),
    ("tanh_pow", "c = Pow(x, three) k = Mul(c, cubic) s = Add(x, k) a = Mul(s, root) t = Tanh(a) p = Add(t, one) "
     "h = Mul(x, half) y = Mul(h, p)", TANH),
    ("tanh_products", "q = Mul(x, x) c = Mul(x, q) k = Mul(cubic, c) s = Add(k, x) a = Mul(root, s) t = Tanh(a) "
     "p = Add(one, t) h = Mul(half, p) y = Mul(x, h)", TANH),
    ("tanh_factored", "q = Mul(x, x) k = Mul(cubic, q) s = Add(one, k) g = Mul(root, x) a = Mul(g, s) t = Tanh(a) "
     "p = Add(one, t) h = Mul(x, p) y = Mul(half, h)", TANH),
    ("whole", "y = Gelu (x)", ERF),
    ("whole_tanh", "y = Gelu <approximate: string = \"tanh\"> (x)", TANH),
]
ACTIVATIONS = [
    *(Case(f"gelu_{name}{'' if dtype == 'float' else '_' + dtype}", nodes, ["GELU"], NUMBERS, opset=20, dtype=dtype,
           attributes=attributes, tolerance={"float": 2e-6, "float16": 5e-3}[dtype])
      for name, nodes, attributes in GELUS for dtype in ("float", "float16")),
    *(Case(f"quick_gelu_{order}_{dtype}", nodes, ["QGELU"], NUMBERS, dtype=dtype, tolerance=tolerance)
      for dtype, tolerance in (("float", 2e-6), ("float16", 5e-3))
      for order, nodes in (("plain", "a = Mul(x, quick) s = Sigmoid(a) y = Mul(x, s)"),
                           ("scaled", "a = Mul(quick, x) s = Sigmoid(a) g = Mul(s, a) y = Mul(g, inv_quick)"))),
    Case("silu", "s = Sigmoid(x) y = Mul(s, x)", ["SiLU"]),
    Case("srelu_twice", "a = Relu(x) b = Relu(x) y = Mul(a, b)", ["SReLU"]),
    Case("srelu_power", "a = Relu(x) y = Pow(a, two)", ["SReLU"], NUMBERS),
    Case("wrong_cubic", "c = Pow(x, three) k = Mul(c, wrong) s = Add(x, k) a = Mul(s, root) t = Tanh(a) p = Add(t, one) "
         "h = Mul(x, half) y = Mul(h, p)", None, {**NUMBERS, "wrong": 0.0447}),
    Case("wrong_quick_fp16", "a = Mul(x, wrong) s = Sigmoid(a) y = Mul(x, s)", None, {"wrong": 1.69}, dtype="float16",
         tolerance=5e-3),
    Case("wrong_root_fp16", "a = Div(x, wrong) e = Erf(a) p = Add(e, one) h = Mul(x, p) y = Mul(h, half)", None,
         {**NUMBERS, "wrong": 1.41}, dtype="float16", tolerance=5e-3),
]


def unary(kind, attributes="", opset=20, found="Formula", **more):
    return Case(f"{kind}{attributes}_{opset}", f"y = {kind} {attributes} (x)", [found], opset=opset, **more)


FORMULAS = [
    *(unary(kind) for kind in ("Abs", "Neg", "Exp", "Sigmoid", "Tanh", "Softplus", "Softsign", "HardSwish", "Elu",
                               "Selu", "Celu", "Mish", "LeakyRelu", "HardSigmoid", "ThresholdedRelu", "Sign", "Erf")),
    unary("LeakyRelu", "<alpha = 0.3>"),
    unary("Elu", "<alpha = 0.7>"),
    unary("Clip", "<min = -0.5, max = 0.25>", opset=6),
    Case("clip", "y = Clip(x, low, high)", ["Formula"], {"low": -0.5, "high": 0.25}),
    Case("clip_above", "y = Clip(x, , high)", ["Formula"], {"high": 0.25}),
    Case("relu6", "y = Clip(x, low, high)", ["Formula"], {"low": 0.0, "high": 6.0}),
    Case("sqrt", "a = Abs(x) y = Sqrt(a)", ["Formula", "Formula"]),
    Case("log", "a = Exp(x) b = Log(a) y = Reciprocal(b)", ["Formula"] * 3, tolerance=1e-4),
    Case("sub", "y = Sub(x, z)", ["Formula"], inputs={"z": [ROWS, H]}),
    Case("div", "e = Exp(z) y = Div(x, e)", ["Formula"] * 2, inputs={"z": [ROWS, H]}),
    Case("max_of_three", "y = Max(x, z, c)", ["Formula"], {"c": 0.1}, inputs={"z": [ROWS, H]}),
    Case("min", "y = Min(z, x)", ["Formula"], inputs={"z": [ROWS, H]}),
    Case("one_minus", "y = Sub(one, x)", ["Formula"], NUMBERS),
    Case("add_number", "y = Add(half, x)", ["Formula"], NUMBERS),
    Case("power", "a = Abs(x) y = Pow(a, half)", ["Formula"] * 2, NUMBERS),
    Case("where", "c = Less(x, half) y = Where(c, x, half)", ["Formula"], NUMBERS),
    Case("where_not", "c = Greater(x, half) n = Not(c) y = Where(n, x, one)", ["Formula"], NUMBERS),
    Case("mask", "c = GreaterOrEqual(x, half) f = Cast <to = 1> (c) y = Mul(x, f)", None, NUMBERS),
    Case("divided_by_number", "y = Div(x, three)", ["ConstantScale"], NUMBERS),
    Case("layer_scale", "y = Mul(x, scale)", ["Formula"], {"scale": drawn(H)}),
    Case("layer_scale_three_axes", "y = Mul(scale, x)", ["Formula"], {"scale": drawn(1, H)}),
    Case("prelu", "y = PRelu(x, slope)", ["Formula"], {"slope": drawn(H)}),
    Case("bias_of_three_axes", "a = Unsqueeze(x, axes) y = Add(a, b)", ["Reshape", "Bias"],
         {"axes": np.array([0]), "b": drawn(1, 1, H)}),
    Case("reshape_with_zero", "a = Reshape(x, shape) y = Relu(a)", ["Reshape", "ReLU"], {"shape": np.array([0, -1, 8])}),
    Case("transposes_that_cancel", "a = Transpose <perm = [1, 0]> (x) b = Transpose <perm = [1, 0]> (a) y = Relu(b)",
         ["ReLU"]),
    Case("dropout_and_casts", "a = Dropout(x) b = Identity(a) c = Cast <to = 1> (b) y = Relu(c)", ["ReLU"]),
]

W = {"w": drawn(H, 16), "wt": drawn(16, H), "b": drawn(16), "b2": drawn(1, 16), "one": drawn(1), "scalar": 0.75,
     "rows": drawn(ROWS, 1), "full": drawn(ROWS, 16)}


def gemm(name, attributes, third, found):
    attributes = f"<{attributes}>" if attributes else ""
    weight = "wt" if "transB" in attributes else "w"
    nodes = f"p = Gemm {attributes} (x, {weight}{', ' + third if third else ''}) y = Relu(p)"
    return Case(f"gemm_{name}", nodes, found and [*found, "ReLU"], W)


LAYERS = [
    gemm("plain", "", "", ["Linear"]),
    gemm("bias", "transB = 1", "b", ["Linear"]),
    gemm("alpha_beta", "alpha = 0.5, beta = 2.0", "b", ["Linear"]),
    gemm("alpha_beta_transposed", "alpha = 1.5, beta = 0.25, transB = 1", "b2", ["Linear"]),
    gemm("one_element", "", "one", ["Linear"]),
    gemm("scalar", "beta = 3.0", "scalar", ["Linear"]),
    gemm("full", "beta = 0.5", "full", None),
    gemm("rows", "", "rows", None),
    Case("gemm_of_two", "p = Gemm <beta = 0.5> (x, w, z) y = Relu(p)", None, W, inputs={"z": [ROWS, 16]}),
    Case("gemm_trans_a", "r = Relu(x) p = Gemm <transA = 1> (r, m, b) y = Relu(p)", None, {"m": drawn(ROWS, 16), **W}),
    Case("matmul_bias_two_axes", "p = MatMul(x, w) y = Add(p, b2)", ["Linear"], W),
]

MS = "com.microsoft."
SKIP = {"gamma": drawn(H, low=0.5), "beta": drawn(H), "b": drawn(H)}
FUSED = [
    Case("bias_gelu", f"p = MatMul(x, m) y = {MS}BiasGelu(p, b)", ["Linear", "GELU"], {"m": drawn(H, H), **SKIP}),
    Case("fast_gelu", f"y = {MS}FastGelu(x)", ["GELU"], tolerance=1e-5),
    Case("fast_gelu_bias", f"p = MatMul(x, m) y = {MS}FastGelu(p, b)", ["Linear", "GELU"], {"m": drawn(H, H), **SKIP},
         tolerance=1e-5),
    Case("ms_gelu", f"y = {MS}Gelu(x)", ["GELU"]),
    Case("quick_gelu", f"y = {MS}QuickGelu <alpha = 1.702> (x)", ["QGELU"]),
    Case("quick_silu", f"y = {MS}QuickGelu <alpha = 1.0> (x)", ["SiLU"]),
    Case("skip_layer_norm", f"y = {MS}SkipLayerNormalization <epsilon = 0.001> (x, z, gamma, beta, b)",
         ["Bias", "AddExtraInput", "LayerNorm"], SKIP, inputs={"z": [ROWS, H]}),
    Case("skip_layer_norm_sum", f"n, , , s = {MS}SkipLayerNormalization <epsilon = 0.001> (x, z, gamma, beta) "
         "y = Add(n, s)", ["AddExtraInput", "LayerNorm", "AddExtraInput"], SKIP, inputs={"z": [ROWS, H]}),
    Case("skip_rms_norm", f"y, , , s = {MS}SkipSimplifiedLayerNormalization <epsilon = 0.001> (x, z, gamma)",
         ["AddExtraInput", "RMSNorm"], SKIP, inputs={"z": [ROWS, H]}),
    Case("rms_norm", "y = SimplifiedLayerNormalization <axis = -1, epsilon = 0.001> (x, gamma)", ["RMSNorm"], SKIP),
    Case("fused_matmul", f"y = {MS}FusedMatMul <alpha = 0.5, transB = 1> (x, wt)", ["Linear", "ConstantScale"], W),
    Case("fused_gemm", f"y = {MS}FusedGemm <activation: string = \"Relu\", transB = 1> (x, wt, b)", ["Linear", "ReLU"],
         W),
]


def coded(name, dtype, axis):
    """A weight [32, 16] of 8-bit codes: per tensor, or per column."""
    codes = np.random.default_rng(1).integers(-100, 100, (H, 16)).astype(np.int8)
    zero = np.zeros(16 if axis else (), np.int8)
    if dtype == np.uint8:
        codes, zero = (codes.astype(np.int16) + 128).astype(np.uint8), zero.astype(np.uint8) + np.uint8(128)
    scale = drawn(16, low=0.005, high=0.02) if axis else np.float32(0.01).reshape(())
    nodes = ("q = QuantizeLinear(x, xs, xz) d = DequantizeLinear(q, xs, xz) "
             f"m = DequantizeLinear <axis = {1 if axis else 0}> (c, s, z) p = MatMul(d, m) y = Add(p, b)")
    weights = {"xs": 0.03, "xz": np.zeros((), np.int8), "c": codes, "s": scale, "z": zero, "b": W["b"]}
    return Case(name, nodes, ["Linear"], weights, opset=19, tolerance=2e-2)


CODED = [
    # Tools leave a ReLU out where the codes behind it have no negative numbers.
    Case("qdq_relu_left_out", "p = MatMul(x, m) q = QuantizeLinear(p, s, z) d = DequantizeLinear(q, s, z) y = MatMul(d, m)",
         ["Linear", "ReLU", "Linear"], {"m": drawn(H, H), "s": 0.06, "z": np.zeros((), np.uint8)}, opset=19,
         tolerance=2e-2),
    Case("qdq_norm_weight", "g = DequantizeLinear(c, s) y = LayerNormalization <axis = -1> (x, g, beta)", ["LayerNorm"],
         {"c": np.arange(1, H + 1, dtype=np.int8), "s": 0.06, "beta": drawn(H)}, opset=19),
    coded("qdq_int8", np.int8, False),
    coded("qdq_int8_columns", np.int8, True),
    coded("qdq_uint8", np.uint8, False),
    coded("qdq_uint8_columns", np.uint8, True),
]

BIG = drawn(1, 2, ROWS, ROWS, seed=3)
ATTENTION = (
    "q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv) "
    "q1 = Reshape(q, heads) k1 = Reshape(k, heads) v1 = Reshape(v, heads) "
    "q2 = Transpose <perm = [0, 2, 1, 3]> (q1) k2 = Transpose <perm = [0, 2, 3, 1]> (k1) "
    "v2 = Transpose <perm = [0, 2, 1, 3]> (v1) s = MatMul(q2, k2) scaled = Mul(s, scale) {mask} "
    "p = Softmax <axis = -1> ({scores}) o = MatMul(p, v2) o1 = Transpose <perm = [0, 2, 1, 3]> (o) "
    "o2 = Reshape(o1, rows) y = MatMul(o2, wo)"
)
ATTENTION_WEIGHTS = {
    **{name: drawn(H, H, seed=i) for i, name in enumerate(("wq", "wk", "wv", "wo"))},
    "heads": np.array([1, ROWS, 2, 16]), "rows": np.array([ROWS, H]), "scale": 0.25, "table": BIG,
    "large": drawn(1, 2, 16, 16, seed=5),
    "causal": np.triu(np.full((1, 1, ROWS, ROWS), -np.inf, np.float32), 1),
    "shown": np.tril(np.ones((ROWS, ROWS), bool)), "none": np.array(-np.inf, np.float32), "zero": 0.0, "cap": 5.0,
}
ATTENTION_OPS = ["Linear"] * 3 + ["Reshape"] * 3 + ["DotProductAttention", "Reshape", "Linear"]


def attention(name, mask="", scores="scaled", found=ATTENTION_OPS, weights=ATTENTION_WEIGHTS, **more):
    return Case(name, ATTENTION.format(mask=mask, scores=scores), found, weights, **more)


HEADS = "h = Reshape(x, shape) "  # [1, S, 2, 16], as queries, keys and values at once
FRONT = HEADS + "t = Transpose <perm = [0, 2, 1, 3]> (h) "
BACK = "back = Transpose <perm = [0, 2, 1, 3]> ({}) y = Reshape(back, rows)"
SHAPES = {"shape": np.array([1, ROWS, 2, 16]), "rows": np.array([ROWS, H]), "three": np.array([1, ROWS, H])}
ANGLES = np.arange(ROWS)[:, None] * 500000.0 ** (-np.arange(8) / 8)
LATER = np.arange(ROWS + 5)[:, None] * 500000.0 ** (-np.arange(8) / 8)
ROTATED = ["Reshape", "RotaryPositionEmbedding", "Reshape"]


def tables(width):
    """Cosines and sines: of each pair, or of each channel of either form."""
    angles = {"pairs": ANGLES, "halves": np.tile(ANGLES, 2), "neighbors": ANGLES.repeat(2, axis=1)}[width]
    return {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}


ROTARY = {**SHAPES, "ids": np.arange(ROWS)[None], "begin": np.array([0]), "half": np.array([8]), "end": np.array([16]),
          "last": np.array([-1]), "one": np.array([1]), "two": np.array([2])}
FUSED_ATTENTION = {**SHAPES, "w3": drawn(H, 3 * H), "b3": drawn(3 * H), "w1": drawn(H, H), "rows": np.array([ROWS, H]),
                   "lengths": np.array([ROWS - 1], np.int32), "total": np.array(ROWS, np.int32), **tables("pairs")}
PACKED_HEADS = ["Linear", "Split", "Reshape", "Reshape", "Reshape", "DotProductAttention", "Reshape"]
FUSED_FORMS = [
    ("fused_attention", f"h = Reshape(x, three) o = {MS}Attention <num_heads = 2> (h, w3, b3) y = Reshape(o, rows)",
     None, {}, {}, {}),
    ("fused_attention_causal", f"h = Reshape(x, three) o = {MS}Attention <num_heads = 2, unidirectional = 1> (h, w3, b3) "
     "y = Reshape(o, rows)", None, {}, {}, {}),
    ("fused_attention_with_mask", f"h = Reshape(x, three) k = Cast <to = 6> (kept) "
     f"o = {MS}Attention <num_heads = 2> (h, w3, b3, k) y = Reshape(o, rows)", None, {}, {}, {"kept": [1, ROWS]}),
    ("multi_head_attention_bias", f"h = Reshape(x, three) o = {MS}MultiHeadAttention <num_heads = 2> (h, h, h, b3) "
     "y = Reshape(o, rows)", None, {}, {}, {}),
    ("multi_head_attention_lengths", f"h = Reshape(x, three) k = Cast <to = 6> (kept) "
     f"o = {MS}MultiHeadAttention <num_heads = 2> (h, u, u, , k) y = Reshape(o, rows)", None, {}, {"u": [1, ROWS, H]},
     {"kept": [1]}),
    ("group_query_attention_sinks", f"p = MatMul(x, w3) h = Reshape(p, three3) o = {MS}GroupQueryAttention <num_heads = 2, "
     "kv_num_heads = 2> (h, , , , , lengths, total, , , , , sinks) y = Reshape(o, rows)",
     PACKED_HEADS,
     {"three3": np.array([1, ROWS, 3 * H]), "sinks": drawn(2)}, {}, {}),
    ("group_query_attention_smooth", f"p = MatMul(x, w3) h = Reshape(p, three3) o = {MS}GroupQueryAttention <num_heads = 2, "
     "kv_num_heads = 2, smooth_softmax = 1> (h, , , , , lengths, total) y = Reshape(o, rows)",
     PACKED_HEADS, {"three3": np.array([1, ROWS, 3 * H])}, {}, {}),
    ("group_query_attention_bias", f"p = MatMul(x, w3) h = Reshape(p, three3) o = {MS}GroupQueryAttention <num_heads = 2, "
     "kv_num_heads = 2> (h, , , , , lengths, total, , , , z) y = Reshape(o, rows)", None,
     {"three3": np.array([1, ROWS, 3 * H])}, {"z": [1, 1, ROWS, ROWS]}, {}),
    ("group_query_attention_positions", f"p = MatMul(x, w3) h = Reshape(p, three3) o = {MS}GroupQueryAttention "
     "<num_heads = 2, kv_num_heads = 2, do_rotary = 1> (h, , , , , lengths, total, cos, sin, places) y = Reshape(o, rows)",
     None, {"three3": np.array([1, ROWS, 3 * H]), "places": np.arange(ROWS)[None]}, {}, {}),
    ("group_query_attention_rotary", f"p = MatMul(x, w3) h = Reshape(p, three3) o = {MS}GroupQueryAttention <num_heads = 2, "
     "kv_num_heads = 2, do_rotary = 1> (h, , , , , lengths, total, cos, sin) y = Reshape(o, rows)", None,
     {"three3": np.array([1, ROWS, 3 * H])}, {}, {}),
    ("group_query_attention_rotary_apart", f"p = MatMul(x, w1) h = Reshape(x, three) k = Reshape(p, three) "
     f"o = {MS}GroupQueryAttention <num_heads = 2, kv_num_heads = 2, do_rotary = 1> (h, k, h, , , lengths, total, cos, sin) "
     "y = Reshape(o, rows)", None, {}, {}, {}),
]
ATTENTIONS = [
    attention("attention"),
    attention("attention_opset11", opset=11),
    attention("attention_with_a_table", "m = Add(scaled, table)", "m"),
    attention("attention_with_a_large_table", "t = Slice(large, from, to, of) m = Add(scaled, t)", "m",
              weights={**ATTENTION_WEIGHTS, "from": np.array([0, 0]), "to": np.array([ROWS, ROWS]),
                       "of": np.array([2, 3])}),
    attention("mask_of_an_input", "m = Add(scaled, z)", "m", inputs={"z": [ROWS, ROWS]},
              found=None),
    attention("attention_causal", "m = Add(scaled, causal)", "m"),
    attention("attention_causal_where", "m = Where(shown, scaled, none)", "m"),
    attention("attention_soft_cap", "d = Div(scaled, cap) e = Tanh(d) m = Mul(e, cap)", "m"),
    Case("attention_opset23", FRONT + "o = Attention <is_causal = 1> (t, t, t) " + BACK.format("o"),
         ["Reshape", "DotProductAttention", "Reshape"], SHAPES, opset=23, tolerance=1e-5),
    Case("attention_opset23_three_axes",
         "h = Reshape(x, three) o = Attention <q_num_heads = 4, kv_num_heads = 4, scale = 0.3, softcap = 3.0> (h, h, h) "
         "y = Reshape(o, rows)", ["Reshape", "DotProductAttention", "Reshape"], SHAPES, opset=23, tolerance=1e-5),
    Case("multi_head_attention",
         f"h = Reshape(x, three) o = {MS}MultiHeadAttention <num_heads = 2> (h, h, h) y = Reshape(o, rows)",
         ["Reshape", "DotProductAttention", "Reshape"], SHAPES, tolerance=1e-5),
    Case("group_query_attention",
         f"h = Reshape(x, three) o = {MS}GroupQueryAttention <num_heads = 2, kv_num_heads = 1> (h, , , , , lengths, "
         "total) y = Reshape(o, short)", ["Split", "Reshape", "Reshape", "Reshape", "DotProductAttention", "Reshape"],
         {**SHAPES, "short": np.array([ROWS, 16]), "lengths": np.array([ROWS - 1], np.int32),
          "total": np.array(ROWS, np.int32)}, tolerance=1e-5),
    *(Case(name, nodes, found, {**FUSED_ATTENTION, **more}, tolerance=1e-5, counts=counts, inputs=inputs)
      for name, nodes, found, more, inputs, counts in FUSED_FORMS),
    Case("rotary_halves", FRONT + "a = Slice(t, begin, half, last) b = Slice(t, half, end, last) n = Neg(b) "
         "c = Concat <axis = -1> (n, a) d = Mul(t, cos) e = Mul(c, sin) r = Add(d, e) " + BACK.format("r"),
         ROTATED, {**ROTARY, **tables("halves")}, tolerance=1e-5),
    Case("rotary_neighbors", FRONT + "a = Slice(t, begin, end, last, two) b = Slice(t, one, end, last, two) n = Neg(b) "
         "u = Unsqueeze(n, last) w = Unsqueeze(a, last) c1 = Concat <axis = -1> (u, w) s1 = Shape(t) "
         "c = Reshape(c1, s1) d = Mul(t, cos) e = Mul(c, sin) r = Add(d, e) " +
         BACK.format("r"), ROTATED, {**ROTARY, **tables("neighbors")},
         tolerance=1e-5),
    Case("rotary_opset23", FRONT + "r = RotaryEmbedding(t, cos, sin, ids) " + BACK.format("r"), ROTATED,
         {**ROTARY, **tables("pairs")}, opset=23, tolerance=1e-5),
    Case("rotary_from_a_position_on", FRONT + "r = RotaryEmbedding(t, cos, sin, later) " + BACK.format("r"), ROTATED,
         {**ROTARY, "cos": np.cos(LATER).astype(np.float32), "sin": np.sin(LATER).astype(np.float32),
          "later": np.arange(ROWS)[None] + 5}, opset=23, tolerance=1e-5),
    Case("attention_with_lengths", "h = Reshape(x, three) o = Attention <q_num_heads = 2, kv_num_heads = 2, is_causal = 1> "
         "(h, h, h, , , , kept) y = Reshape(o, rows)", None, SHAPES, opset=24, tolerance=1e-5, counts={"kept": [1]}),
    Case("rotary_microsoft", f"h = Reshape(x, three) r = {MS}RotaryEmbedding <interleaved = 1> (h, ids, cos, sin) "
         "y = Reshape(r, rows)", None, {**ROTARY, **tables("pairs")}, tolerance=1e-5),
]

EXTERNALS = [
    attention("attention_of_other_fills", "m = Where(shown, scaled, scale)", "m",
              found=["Linear"] * 3 + ["Reshape"] * 3 + ["External", "Reshape", "Linear"]),
    Case("old_forms", "a = MatMul(x, wq) b = Unsqueeze <axes = [0]> (a) c, d = Split <axis = -1> (b) e = Mul(c, d) "
         "f = ReduceSum <axes = [0], keepdims = 0> (e) g = Cos(f) y = MatMul(g, half)", None,
         {**ATTENTION_WEIGHTS, "half": drawn(16, 8)}, opset=11),
]

# What ONNX Runtime's own tools make of layers, which are no ops here: they have to come back.
CODES = np.random.default_rng(2).integers(-100, 100, (H, 16)).astype(np.int8)
TOOLS = [
    Case("dynamic_quantization", "a = Relu(x) q, s, z = DynamicQuantizeLinear(a) p = MatMulInteger(q, c, z, cz) "
         "f = Cast <to = 1> (p) k = Mul(s, cs) b = Mul(f, k) y = Relu(b)", ["ReLU", "Linear", "ReLU"],
         {"c": CODES, "cz": np.zeros((), np.int8), "cs": 0.01}, tolerance=2e-2),
    Case("dynamic_quantization_fused", f"a = Relu(x) b = {MS}DynamicQuantizeMatMul(a, c, cs, cz, b1) y = Relu(b)",
         ["ReLU", "Linear", "ReLU"], {"c": CODES, "cz": np.zeros((), np.int8), "cs": 0.01, "b1": W["b"]}, tolerance=2e-2),
    Case("weights_of_4_bits", f"a = Relu(x) b = {MS}MatMulNBits <N = 16, K = 32, bits = 4, block_size = 16> (a, c, cs) "
         "y = Relu(b)", ["ReLU", "Linear", "ReLU"],
         {"c": np.random.default_rng(3).integers(0, 255, (16, 2, 8)).astype(np.uint8), "cs": drawn(32)}),
    Case("integer_operators", "a = Relu(x) q = QuantizeLinear(a, xs, xz) p = QLinearMatMul(q, xs, xz, c, cs, cz, ys, xz) "
         "b = DequantizeLinear(p, ys, xz) y = Relu(b)", ["ReLU", "Linear", "ReLU"],
         {"c": CODES, "cz": np.zeros((), np.int8), "cs": 0.01, "xs": 0.03, "ys": 0.1, "xz": np.zeros((), np.int8)},
         tolerance=0.1),
    Case("mixed_types", "a = MatMul(x, m) h = Cast <to = 10> (a) t = Reshape(h, heads) s = Softmax <axis = 1> (t) "
         "r = Reshape(s, rows) f = Cast <to = 1> (r) y = MatMul(f, m)", ["Linear", "Reshape", "External", "Reshape", "Linear"],
         {"m": drawn(H, H), "heads": np.array([ROWS, 2, 16]), "rows": np.array([ROWS, H])}, tolerance=1e-3),
]


# Nodes in front of the first op and behind the last one.
IDS = {"ids": [2, 3]}
TABLE = {"table": drawn(5, H), "places": drawn(8, H), "m": drawn(H, H), "b": drawn(H), "second": np.array([1]),
         "zero": np.array(0), "one": np.array(1), "two": np.array(2), "last": np.array(-1), "gamma": drawn(H, low=0.5)}
ENDS = [
    Case("embedding", "e = Gather(table, ids) p = MatMul(e, m) y = Add(p, b)", ["Linear"], TABLE, counts=IDS),
    Case("embedding_and_positions", "e = Gather(table, ids) s = Shape(ids) n = Gather(s, one) r = Range(zero, n, one) "
         "q = Gather(places, r) x0 = Add(e, q) p = MatMul(x0, m) y = Relu(p)", ["Linear", "ReLU"], TABLE, counts=IDS),
    Case("pooling", "p = MatMul(x, m) r = Relu(p) y = ReduceMax <axes: ints = [0]> (r)", ["Linear", "ReLU"], TABLE),
    Case("last_token", "e = Gather(table, ids) p = MatMul(e, m) r = Relu(p) i = ArgMax <axis = 1> (ids) "
         "g = GatherElements <axis = 0> (ids, i) f = Cast <to = 1> (g) t = ReduceMean <axes: ints = [1]> (r) c = CumSum(t, two) "
         "u = Unsqueeze(f, last) y = Add(c, u)", None, TABLE, counts=IDS),
    Case("probabilities", "e = Gather(table, ids) p = MatMul(e, m) y = LogSoftmax <axis = -1> (p)", ["Linear"], TABLE,
         counts=IDS),
    Case("probabilities_opset11", "e = Gather(table, ids) p = MatMul(e, m) y = Softmax <axis = 1> (p)", ["Linear"], TABLE,
         counts=IDS, opset=11),
    Case("loop", "e = Gather(table, ids) n = Constant <value = int64 {3}> () t = Constant <value = bool {1}> () "
         "l = Loop <body: graph = b (int64 i, bool c, float[2, 3, 32] v) => (bool d, float[2, 3, 32] w) "
         "{ d = Identity(c) k = Cos(v) w = Add(k, e) }> (n, t, e) p = MatMul(l, m) y = Relu(p)", ["Linear", "ReLU"], TABLE,
         counts=IDS),
    Case("shape_of_an_inner_tensor", "e = Gather(table, ids) p = MatMul(e, m) r = Relu(p) q = MatMul(r, m) s = Shape(r) "
         "f = Cast <to = 1> (s) g = ReduceSum(f) y = Div(q, g)", None, TABLE, counts=IDS),
]


def fed(value, case):
    shape = [extent.dim_value for extent in value.type.tensor_type.shape.dim]
    random = np.random.default_rng(len(value.name) + ord(value.name[0]))
    if value.name in case.counts:
        return random.integers(0, 5, shape)
    return random.standard_normal(shape).astype(DTYPES[case.dtype])


class RoundTrip(unittest.TestCase):
    def check(self, case):
        model = model_of(case)
        feeds = {value.name: fed(value, case) for value in model.graph.input}
        with tempfile.TemporaryDirectory() as folder:
            path, pipeline, weights, again = (pathlib.Path(folder) / name for name in (
                "model.onnx", "pipeline.fuseline", "weights.safetensors", "again.onnx"))
            path.write_bytes(model.SerializeToString())
            arguments = [path, "-o", pipeline, "--flat"]
            fuseline("import", *arguments, "--weights", weights)
            document = json.loads(pipeline.read_text(encoding="utf-8"))
            tensors = ["--tensors", weights] if weights.exists() else []
            fuseline("export", pipeline, "--to", "onnx", "-o", again, *tensors)
            written = onnx.load(again)
            # Numbers that attention adds to its scores are inputs of a pipeline.
            given = safetensors.numpy.load_file(weights) if weights.exists() else {}
        if case.found is not None:
            self.assertEqual(ops_in(document), case.found)
        else:
            self.assertNotIn(ops_in(document), (["GELU"], ["QGELU"]))
        for name, value in case.attributes.items():
            self.assertEqual(document["pipeline"]["ops"][-1].get("attributes", {}).get(name, "tanh"), value)
        onnx.checker.check_model(written)
        names = {value.name for value in written.graph.input}
        added = {name: given[name] for name in names - set(feeds) if name in given}
        self.assertLessEqual(names, set(feeds) | set(added))
        expected = outputs_of(model, feeds)[0].astype(np.float64)
        actual = outputs_of(written, {name: (feeds | added)[name] for name in names})[0].astype(np.float64)
        self.assertEqual(actual.shape, expected.shape)
        error = np.abs(actual - expected).max() / np.abs(expected).max()
        self.assertLess(error, case.tolerance)

    def check_all(self, cases):
        for case in cases:
            with self.subTest(case.name):
                self.check(case)

    def test_norms(self):
        self.check_all(NORMS)

    def test_activations(self):
        self.check_all(ACTIVATIONS)

    def test_formulas(self):
        self.check_all(FORMULAS)

    def test_layers(self):
        self.check_all(LAYERS)

    def test_fused_nodes(self):
        self.check_all(FUSED)

    def test_quantized_weights(self):
        self.check_all(CODED)

    def test_attention(self):
        self.check_all(ATTENTIONS)

    def test_externals(self):
        self.check_all(EXTERNALS)

    def test_ends(self):
        self.check_all(ENDS)

    def test_what_tools_make(self):
        self.check_all(TOOLS)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = sys.argv.pop(1)
    unittest.main()
