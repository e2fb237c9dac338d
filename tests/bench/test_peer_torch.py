#!/usr/bin/env python3
# Tests the PyTorch peer: its translation of pipelines everywhere, its results where PyTorch can be imported.
# SPDX-License-Identifier: Apache-2.0
"""test_peer_torch.py PROGRAM [TEST...]: PROGRAM is fuseline. Results needs PyTorch, all other tests need nothing."""

import contextlib
import importlib.util
import io
import json
import pathlib
import struct
import sys
import tempfile
import unittest

import peer_torch
from peer import formula, safetensors, stats
from peer import pipeline as pipelines
from peer.program import PeerError, Program

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "resources" / "examples").glob("*.fuseline"))
SMALL = {"S": 24, "B": 2, "D": 16, "M": 48, "H": 64, "F": 96, "K": 64, "N": 32}
PROGRAM = ""


def document(*cases):
    """A pipeline of ops beside each other: (op, attributes, inputs besides x, or another x: port -> (dtype, shape)).
    Of several outputs the first is one of the pipeline."""
    made = {"inputs": [], "ops": [], "wires": [], "outputs": []}
    for i, (op, attributes, inputs) in enumerate(cases):
        for port, (dtype, shape) in {"x": ("f32", [48, 64]), **inputs}.items():
            made["inputs"].append({"id": f"{port}{i}", "dtype": dtype, "shape": shape})
            made["wires"].append([f"{port}{i}", f"op{i}.{port}"])
        made["ops"].append({"id": f"op{i}", "op": op, "attributes": attributes})
        made["outputs"].append({"id": f"y{i}", "from": f"op{i}.y"})
    version = {"major": 1, "minor": 0}
    return {"format": "fuseline-pipeline", "formatVersion": version, "symbols": {"H": 64}, "pipeline": made}


SCALES = {"scales": ("f32", [48])}
SPLITS = {"split_sizes": ("i64", [3])}
GROUPED = {"num_groups": 3, "in_features": "H", "out_features": 32}
# Every op of the catalog stands here at least once.
CASES = (
    ("Linear", {"in_features": "H", "out_features": 32}, {}),
    ("Linear", {"in_features": "H", "out_features": 32, "weight_requires_grad": False}, {}),
    ("BasicLinear", {"in_features": "H", "out_features": 32}, {}),
    ("GroupedLinear", GROUPED, SPLITS),
    ("GroupedLinear", {**GROUPED, "bias": False}, SPLITS),
    ("GroupedLinear", {**GROUPED, "scale_bias": True}, {**SPLITS, **SCALES}),
    ("GroupedLinear", {**GROUPED, "single_grouped_weight": True, "single_grouped_bias": True}, SPLITS),
    ("Bias", {"size": "H"}, {}),
    *((name, {}, {}) for name in ("GELU", "QGELU", "ReLU", "SReLU", "SiLU", "GLU", "GEGLU", "QGEGLU", "ReGLU", "SReGLU",
                                  "SwiGLU", "Identity", "AllGather", "ReduceScatter", "AllReduce", "Quantize",
                                  "MakeExtraOutput", "L2Normalization", "SiTUGLU", "ClampedSwiGLU")),
    ("SwiGLU", {"glu_interleave_size": 16}, {}),
    ("ClampedSwiGLU", {"limit": 0.75, "alpha": 1.5, "glu_linear_offset": 0, "glu_interleave_size": 8}, {}),
    ("SiTUGLU", {"beta1": 3, "beta2": 12}, {}),
    *((name, {}, SCALES) for name in ("ScaledSReLU", "ScaledSwiGLU", "ScaledSiTUGLU", "ScaledClampedQGeGLU")),
    ("ScaledTanhSReLU", {"tanh_clamp_scale": 1.5}, SCALES),
    ("ScaledSwiGLU", {"glu_interleave_size": 32}, SCALES),
    ("Formula", {}, {}),
    ("Formula", {"y": "alpha * min(x, limit) * sigmoid(beta * x) * mask - (x < 0.5) ^ 2", "inputs": "mask",
                 "parameters": "alpha = 1, beta[1] = 1.702", "constants": "limit = 7"}, {"mask": ("f32", [48, 64])}),
    ("Formula", {"y": "where(x > c, -x^2, gelu(x)) + exp(c) * softplus(abs(x)) / max(2, sqrt(square(x) + 1))",
                 "constants": "c = 0.25"}, {}),
    ("Formula", {"y": "pow(a, 3) * tanh(x) + rsqrt(1 + exp(x)) - relu(silu(x)) * log(2 + x^2)", "parameters": "a = 2"},
     {}),
    *((name, {"normalized_shape": ["H"], "zero_centered_gamma": is_centred}, {})
      for name in ("RMSNorm", "LayerNorm") for is_centred in (False, True)),
    ("RMSNorm", {"normalized_shape": [48, "H"], "eps": 0.3}, {}),
    ("Dropout", {"p": 0.0}, {}),
    ("Dropout", {"p": 0.25}, {}),
    ("ConstantScale", {"scale": -2.5}, {}),
    ("ConstantScale", {"scale": "2 * H"}, {}),
    ("AddExtraInput", {"in_place": True}, {"extra": ("f32", [48, 64])}),
    ("Reshape", {"shape": [-1, "H / 2"]}, {}),
    ("GELU", {"approximate": "none"}, {}),
    ("Embedding", {"num_embeddings": 9, "embedding_dim": "H"}, {"x": ("i64", [6, 8])}),
    ("Embedding", {"num_embeddings": 9, "embedding_dim": "H", "positions": True}, {"x": ("i64", [6, 8])}),
    ("TiedLinear", {}, {"weight": ("f32", [32, 64])}),
    *(("CrossEntropy", attributes, {"target": ("i64", [48])})
      for attributes in ({}, {"reduction": "none", "label_smoothing": 0.1}, {"lse_square_scale": 0.01},
                         {"ignore_index": 3, "reduction": "sum"})),
    ("TopKRouter", {"topk": 4}, {}),
    ("TopKRouter", {"topk": 4, "use_pre_softmax": True, "scaling_factor": 2.5}, {}),
    ("TopKRouter", {"topk": 4, "use_pre_softmax": True, "norm_topk_prob": True}, {}),
    ("TopKRouter", {"topk": 4, "score_function": "sigmoid", "expert_bias": True, "num_groups": 8, "group_topk": 2}, {}),
    ("TopKRouter", {"topk": 1, "score_function": "sqrtsoftplus"}, {}),
    ("MoEPermute", {"num_experts": 5}, {"indices": ("i64", [48, 3])}),
    ("MoEPermute", {"num_experts": 5, "align_size": 16}, {"indices": ("i64", [48, 3])}),
    ("MoEUnpermute", {}, {"row_id_map": ("i64", [16, 3]), "probs": ("f32", [16, 3])}),
    ("MoEUnpermute", {"merging_probs": False}, {"row_id_map": ("i64", [16, 3])}),
    ("MoEAuxLoss", {"topk": 4, "z_loss_coeff": 0.5}, {"tokens_per_expert": ("i64", [64])}),
    ("MoEAuxLoss", {"topk": 4, "num_layers": 2, "coeff": 0.5, "score_function": "sigmoid"},
     {"x1": ("f32", [12, 64]), "tokens_per_expert": ("i64", [64]), "tokens_per_expert1": ("i64", [64])}),
    ("Split", {"sizes": ["H / 4", 48]}, {}),
    ("Expand", {"count": 5}, {}),
    ("Concat", {"num_inputs": 3}, {"x1": ("f32", [48, 64]), "x2": ("f32", [48, 5])}),
    ("RotaryPositionEmbedding", {"dim": "H / 4"}, {"x": ("f32", [12, 4, 64])}),
    ("DotProductAttention", {"num_attention_heads": "H / 16", "kv_channels": 16, "num_gqa_groups": 2},
     {"x": ("f32", [12, 4, 64]), "k": ("f32", [12, 4, 32]), "v": ("f32", [12, 4, 32])}),
)


def small_symbols(path):
    """--set for an example: its symbols, small."""
    return [f"{name}={SMALL[name]}" for name in json.loads(path.read_text("utf-8"))["symbols"] if name in SMALL]


class Tool(unittest.TestCase):
    """What the tool prints, and its exit code."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def tool(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        before = sys.argv
        sys.argv = ["peer_torch.py", *map(str, arguments), "--fuseline", PROGRAM]
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = peer_torch.main()
        except SystemExit as stop:
            code = stop.code
        finally:
            sys.argv = before
        return code, out.getvalue(), err.getvalue()

    def file(self, *cases):
        path = self.folder / "case.fuseline"
        path.write_text(json.dumps(document(*cases)), encoding="utf-8")
        return path

    def described(self, path, *options):
        program = Program(PROGRAM, [option for text in options for option in ("--set", text)])
        return pipelines.describe(program, str(path), self.folder)


class Translation(Tool):
    def test_names_every_op_of_the_examples(self):
        self.assertTrue(EXAMPLES)
        for path in EXAMPLES:
            with self.subTest(path=path.name):
                code, text, errors = self.tool(path, "--list")
                self.assertEqual((0, ""), (code, errors))
                self.assertEqual(len(self.described(path).ops), len(text.splitlines()))

    def test_makes_one_op_of_a_product_and_its_bias(self):
        pipeline = self.described(ROOT / "resources" / "examples" / "gpt_mlp.fuseline", "M=8", "H=16")
        self.assertEqual(["MakeExtraOutput", "LayerNorm", "Linear", "GELU", "Linear", "AddExtraInput"],
                         [op.kind for op in pipeline.ops])
        self.assertEqual(("fc1.weight", "fc1.bias"), pipeline.ops[2].parameters)
        self.assertEqual((8, 16), pipeline.edges["x"].shape)
        self.assertEqual({"x", "y", *pipeline.parameters}, set(pipeline.gradients))

    def test_looks_through_blocks(self):
        pipeline = self.described(ROOT / "resources" / "examples" / "transformer_stack.fuseline")
        norms = [op for op in pipeline.ops if op.kind == "RMSNorm"]
        self.assertEqual([1e-5] * 3, [op.attributes["eps"] for op in norms])

    def test_has_a_form_for_every_op_of_the_catalog(self):
        names = {name for name, entry in Program(PROGRAM).catalog().items() if not entry["isComposite"]}
        self.assertEqual(names, set(pipelines.FORMS))
        self.assertEqual(names | {"Linear"}, {op for op, _, _ in CASES})

    def test_lets_fuseline_evaluate_expressions(self):
        scale = self.described(self.file(("ConstantScale", {"scale": "2 * H"}, {})), "H=5").ops[0].attributes["scale"]
        self.assertEqual(10, scale)

    def test_leaves_frozen_parameters_without_a_gradient(self):
        path = self.file(("Linear", {"in_features": "H", "out_features": 8, "weight_requires_grad": False}, {}))
        self.assertEqual({"x0", "op0.bias", "y0"}, set(self.described(path).gradients))

    def test_refuses_what_pytorch_has_not_by_the_name_of_the_op(self):
        path = self.file(("Linear", {"in_features": "H", "out_features": 8, "accumulate_into_main_grad": True}, {}))
        code, _, errors = self.tool(path, "--check")
        self.assertEqual(1, code)
        self.assertIn("op0.linear: BasicLinear has accumulate_into_main_grad on", errors)
        with self.assertRaisesRegex(PeerError, "op: the op Sort has no counterpart"):
            pipelines._peer_op({"id": "op", "op": "Sort"}, None)

    def test_passes_on_what_fuseline_says_of_a_file(self):
        code, _, errors = self.tool(self.folder / "none.fuseline", "--list")
        self.assertEqual(1, code)
        self.assertIn("none.fuseline", errors)

    def test_refuses_wrong_arguments(self):
        example = EXAMPLES[0]
        for arguments, words in (
            ((), "FILE.fuseline"),
            ((example, "--modes", "eager,fast"), '"fast" is none of eager'),
            ((example, "--rounds", "0"), '"0" is no positive number'),
            ((example, "--pass", "backward"), "invalid choice"),
            ((example, "--check", "--no-check"), "exclude each other"),
        ):
            with self.subTest(arguments=arguments):
                code, _, errors = self.tool(*arguments)
                self.assertEqual(2, code, errors)
                self.assertIn(words, errors)

    def test_is_python_where_pytorch_is_missing(self):
        for path in sorted(pathlib.Path(__file__).parent.rglob("*.py")):
            with self.subTest(path=path.name):
                compile(path.read_text("utf-8"), path, "exec")

    @unittest.skipIf(importlib.util.find_spec("torch"), "PyTorch is there")
    def test_says_how_to_install_pytorch(self):
        code, _, errors = self.tool(EXAMPLES[0], "--check")
        self.assertEqual(3, code)
        self.assertIn("-m pip install torch", errors)


class Formulas(unittest.TestCase):
    def test_binds_as_fuseline_does(self):
        self.assertEqual(("neg", ("pow", ("name", "x"), ("number", 2.0))), formula.parse("-x^2"))
        self.assertEqual(("less", ("name", "x"), ("add", ("name", "a"), ("number", 1.0))), formula.parse("x < a + 1"))

    def test_reads_names(self):
        self.assertEqual({"alpha": 0.25, "beta": -1.0, "c": 0.0}, formula.declared("alpha = 0.25, beta[1] = - 1, c[H]"))

    def test_evaluates_arithmetic_only(self):
        for text in ("x.y", "open(x)", "[x]", "x if x else x", "x ==", "'x'", "min(x, key=x)"):
            with self.subTest(text=text), self.assertRaises(formula.FormulaError):
                formula.parse(text)


class Safetensors(Tool):
    def test_reads_what_it_writes(self):
        tensors = {"a": safetensors.RawTensor("F32", (2,), struct.pack("<2f", 1, -2)),
                   "empty": safetensors.RawTensor("I64", (0, 3), b""),
                   "scalar": safetensors.RawTensor("BF16", (), b"\x80\x3f")}
        safetensors.write(self.folder / "a", tensors)
        self.assertEqual(tensors, safetensors.read(self.folder / "a"))

    def test_exchanges_files_with_fuseline(self):
        path, state = self.file(("Bias", {"size": "H"}, {})), self.folder / "state"
        given = {"op0.bias": safetensors.RawTensor("F32", (64,), bytes(range(256)))}
        safetensors.write(self.folder / "given", given)
        Program(PROGRAM).run(path, "--iterations", 1, "--tensors", self.folder / "given", "--save", state)
        self.assertEqual(given, safetensors.read(state))

    def test_says_what_is_wrong_with_a_file(self):
        header = json.dumps({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
        length = struct.pack("<Q", len(header))
        for content, words in ((b"", "0 bytes"), (length + header[:-9], "its header would have"),
                               (length + header, "needs 8"), (struct.pack("<Q", 3) + b"abc", "no JSON"),
                               (length + header.replace(b"F32", b"X32") + bytes(8), "type X32")):
            with self.subTest(words=words):
                (self.folder / "bad").write_bytes(content)
                with self.assertRaisesRegex(safetensors.FormatError, words):
                    safetensors.read(self.folder / "bad")


class Statistics(unittest.TestCase):
    def test_summarises_all_samples(self):
        self.assertEqual({"median": 3, "lowerQuartile": 2, "upperQuartile": 4, "minimum": 1, "count": 5},
                         stats.summary([[5, 1], [3], [2, 4]]))

    def test_a_ratio_lies_in_its_interval(self):
        base = [[10 + i % 3] for i in range(15)]
        ratio = stats.ratio([[2 * a for a in turn] for turn in base], base)
        self.assertLessEqual(ratio["low"], ratio["median"])
        self.assertLessEqual(ratio["median"], ratio["high"])
        self.assertAlmostEqual(2.0, ratio["median"])


class Results(Tool):
    """The peer computes what fuseline computes."""

    def setUp(self):
        super().setUp()
        if not importlib.util.find_spec("torch"):
            self.skipTest(f"There is no PyTorch for {sys.executable}.")

    def assert_agrees(self, *arguments):
        code, text, errors = self.tool(*arguments, "--check")
        self.assertEqual((0, ""), (code, errors), text)

    def test_of_the_examples(self):
        for path in EXAMPLES:
            # In 16 bits rounding sends a token elsewhere.
            own = [] if '"TopKRouter"' in path.read_text("utf-8") else [()]
            for options in (*own, ("--dtype", "f32"), *([("--pass", "forward")] if path == EXAMPLES[0] else [])):
                with self.subTest(path=path.name, options=options):
                    self.assert_agrees(path, "--set", *small_symbols(path), *options)

    def test_of_every_op(self):
        # Sums have a wider tolerance, and where elements are dropped at random nothing else is compared.
        groups = {}
        for case in CASES:
            pipeline = self.described(self.file(case))
            groups.setdefault((pipeline.has_sums(), bool(pipeline.drops())), []).append(case)
        self.assertEqual(3, len(groups))
        for kind, cases in groups.items():
            with self.subTest(kind=kind):
                self.assert_agrees(self.file(*cases))

    def test_of_scaled_products(self):
        path = ROOT / "resources" / "examples" / "gpt_mlp.fuseline"
        self.assert_agrees(path, "--set", *small_symbols(path), "--recipe", "Float8CurrentScaling", "--modes",
                           "eager,fp8")

    def test_a_difference_is_found(self):
        from peer import check
        import torch
        pipeline = self.described(self.file(("GELU", {}, {})))
        y = torch.ones(48, 64)
        reference = {f"{variant}/{name}": y for variant in ("unfused", "fused") for name in ("y0", "grad.x0")}
        for wrong, words in ((1.01 * y, "differs"), (y[:1], "expected"), (y.double(), "expected"), (None, "has no")):
            with self.subTest(words=words):
                found = check.compare(pipeline, {"y0": wrong, "grad.x0": y}, reference, "eager")
                self.assertEqual(["y0", "y0"], [c.tensor for c in found if words in c.words])

    def test_measures_in_turns(self):
        path, out = ROOT / "resources" / "examples" / "elementwise_chain.fuseline", self.folder / "out.json"
        self.assertEqual(0, self.tool(path, "--set", "M=8", "H=16", "--modes", "eager", "--rounds", 3, "--iterations", 2,
                                      "--variants", "fused,unfused", "--json", out)[0])
        result = json.loads(out.read_text("utf-8"))
        names = [row["name"] for row in result["variants"]]
        self.assertEqual(["fuseline fused", "fuseline unfused", "torch eager"], names)
        for row in result["variants"]:
            self.assertEqual([2, 2, 2], [len(turn) for turn in row["roundsNs"]])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
