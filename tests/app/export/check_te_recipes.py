#!/usr/bin/env python3
# Compares the quantizers of exported CustomRecipes with those of TransformerEngine's own factories, and imports them again.
# SPDX-License-Identifier: Apache-2.0
"""check_te_recipes.py PROGRAM: PROGRAM is fuseline. Needs what check_te_fuser.py needs, and ends with 77 without it. The
quantizers are TransformerEngine's own classes, made on the CPU; nothing is quantized."""

import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings

import check_te_fuser
import test_te_export

ROOT = test_te_export.ROOT
PIPELINE = {
    "format": "fuseline-pipeline",
    "formatVersion": {"major": 1, "minor": 0},
    "pipeline": {
        "inputs": [{"id": "x", "dtype": "bf16", "shape": [256, 256], "requires_grad": True}],
        "ops": [{"id": name, "op": "Linear", "attributes": {"in_features": 256, "out_features": 256, "bias": False}}
                for name in ("fc1", "fc2")],
        "wires": [["x", "fc1.x"], ["fc1.y", "fc2.x"]],
        "outputs": [{"id": "y", "from": "fc2.y"}],
    },
}
ROLES = [(tensor, name) for tensor in ("input", "weight", "grad_output") for name in ("fc1", "fc2")]
# What says how a quantizer quantizes; the rest is about devices, ranks and use.
TELLING = ("dtype", "force_pow_2_scales", "amax_epsilon", "block_scaling_dim", "with_2d_quantization", "with_rht",
           "with_post_rht_amax", "stochastic_rounding", "row_scaled_nvfp4", "nvfp4_use_4over6", "nvfp4_e4m3_max",
           "columnwise_source", "fp8_format", "margin", "amax_history_len", "amax_compute_algo", "reduce_amax")
MIXED = [
    {"quantizer": "MXFP8BlockScaling"},
    {"op": "fc2", "quantizer": {"name": "Float8CurrentScaling", "fp8_format": "E4M3", "amax_epsilon_weight": 0.5}},
    {"op": "fc1", "tensor": "input", "gemm": "wgrad", "quantizer": "NVFP4BlockScaling"},
    {"op": "fc1", "tensor": "grad_output", "gemm": "wgrad",
     "quantizer": {"name": "NVFP4BlockScaling", "disable_stochastic_rounding": True}},
    {"op": "fc1", "tensor": "weight", "gemm": "dgrad", "quantizer": "MXFP8BlockScaling",
     "columnwise_source": "rowwise_dequantized"},
]


def described(quantizer):
    """Class and settings, of both copies where they have quantizers of their own."""
    found = {name: getattr(quantizer, name) for name in TELLING if hasattr(quantizer, name)}
    parts = [described(getattr(quantizer, f"{copy}_quantizer")) for copy in ("rowwise", "columnwise")
             if hasattr(quantizer, f"{copy}_quantizer")]
    return type(quantizer).__name__, found, parts


def exported(recipe):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "drawn.fuseline"
        path.write_text(json.dumps({**PIPELINE, "recipe": recipe}), encoding="utf-8")
        return check_te_fuser.loaded(test_te_export.export(path, "--module-only"))


def role(te, tensor, name):
    return te.quantization.QuantizerRole(module_type="linear", tensor_type=tensor, name=name)


def factories():
    listed = subprocess.run([test_te_export.PROGRAM, "recipes", "CustomRecipe", "--json"], check=True, capture_output=True,
                            text=True).stdout
    (field,) = [field for field in json.loads(listed)["recipes"][0]["fields"] if field["name"] == "qfactory"]
    return field["choices"]


class Factories(unittest.TestCase):
    te = None

    def assertSameQuantizers(self, ours, theirs):
        for tensor, name in ROLES:
            asked = role(self.te, tensor, name)
            self.assertEqual(described(ours(asked)), described(theirs(asked)), f"{tensor} of {name}")

    def test_the_written_factory_gives_what_the_named_one_gives(self):
        modules = [importlib.import_module(f"transformer_engine.pytorch.custom_recipes.{name}")
                   for name in ("quantizer_factories", "quantizer_factory_zoo")]
        self.assertGreater(len(factories()), 6)
        for name in factories():
            with self.subTest(factory=name):
                theirs = next(getattr(module, name) for module in modules if hasattr(module, name))
                self.assertSameQuantizers(exported({"name": "CustomRecipe", "qfactory": name}).RECIPE.qfactory, theirs)

    def test_a_mixed_recipe_comes_back(self):
        import to_fuseline

        written = exported({"name": "CustomRecipe", "overrides": MIXED})
        module = written.Pipeline(device="cpu")
        self.assertEqual(len(list(module.children())), 2, "a GEMM of te.ops writes no tensor for quantizers like these")
        layers = [op for _, op in sorted(module.named_modules()) if type(op).__name__ == "Linear"]
        named = list(zip(("fc1", "fc2"), layers))
        self.assertEqual([getattr(op.basic_ops[0], "name", "") for op in layers], ["", "fc2"])
        with warnings.catch_warnings():
            warnings.simplefilter("error", to_fuseline.LeftOut)
            again = to_fuseline.recipe_json(written.RECIPE, named)
        self.assertSameQuantizers(exported(again).RECIPE.qfactory, written.RECIPE.qfactory)


    def test_four_over_six_comes_back(self):
        import to_fuseline

        weights = {"name": "NVFP4BlockScaling", "nvfp4_4over6": "weights", "nvfp4_4over6_err_mode": "MSE"}
        written = exported({"name": "CustomRecipe", "overrides": [{"quantizer": weights}]})
        quantizer = written.RECIPE.qfactory(role(self.te, "weight", "fc1"))
        self.assertEqual((quantizer.nvfp4_use_4over6, quantizer.nvfp4_e4m3_max, quantizer.nvfp4_4over6_err_mode),
                         (True, 256, "MSE"))
        layers = [op for op in written.Pipeline(device="cpu").modules() if type(op).__name__ == "Linear"]
        again = to_fuseline.recipe_json(written.RECIPE, list(zip(("fc1", "fc2"), layers)))
        self.assertSameQuantizers(exported(again).RECIPE.qfactory, written.RECIPE.qfactory)


class Losses(unittest.TestCase):
    def left_out(self, recipe):
        """What the importer warns of, and what it writes."""
        import to_fuseline

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            written = to_fuseline.recipe_json(recipe)
        return " ".join(str(entry.message) for entry in caught if entry.category is to_fuseline.LeftOut), written

    def test_arguments_without_an_attribute_are_named(self):
        import to_fuseline
        import transformer_engine.pytorch.ops as te_ops

        norm = te_ops.LayerNorm(8, sm_margin={"forward": 4, "backward": 2, "inference": 0}, device="cpu")
        linear = te_ops.BasicLinear(8, 8, rng_state_tracker_function=lambda: None, device="meta")
        linear.tensor_parallel_group = "a group"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for operation in (norm, linear):
                to_fuseline.warn_of_arguments("op", operation)
        text = " ".join(str(entry.message) for entry in caught)
        for part in ("op: sm_margin={'forward': 4", "op: tensor_parallel_group is a group", "op: rng_state_tracker_function"):
            self.assertIn(part, text)
        self.assertEqual(to_fuseline.norm(te_ops.RMSNorm(8, sm_margin=3, device="cpu"))["sm_margin"], 3)

    def test_functions_of_delayed_scaling_are_named(self):
        from transformer_engine.common import recipe

        text, written = self.left_out(recipe.DelayedScaling(amax_compute_algo=lambda history: history[0],
                                                            scaling_factor_compute_algo=lambda *arguments: 1.0))
        self.assertIn("DelayedScaling.amax_compute_algo is a function", text)
        self.assertIn("DelayedScaling.scaling_factor_compute_algo is a function", text)
        self.assertNotIn("amax_compute_algo", written)
        self.assertEqual(self.left_out(recipe.DelayedScaling())[0], "")

    def test_arguments_that_te_ops_ignores_are_named(self):
        from transformer_engine.common import recipe

        text, written = self.left_out(recipe.Float8CurrentScaling(use_power_2_scales=True))
        self.assertIn("use_power_2_scales=True is not what te.ops reads", text)
        self.assertFalse(written["use_power_2_scales"])
        self.assertIn("MXFP8BlockScaling.margin=3", self.left_out(recipe.MXFP8BlockScaling(margin=3))[0])
        text, written = self.left_out(recipe.DelayedScaling(fp8_dpa=True, fp8_mha=True))
        self.assertIn("fp8_mha is about FP8 tensors between attention", text)
        self.assertTrue(written["fp8_dpa"])

    def test_defaults_from_the_environment_are_named(self):
        from transformer_engine.common import recipe

        os.environ["NVTE_BACKWARD_OVERRIDE"] = "high_precision"
        try:
            self.assertIn("NVTE_BACKWARD_OVERRIDE=high_precision", self.left_out(recipe.MXFP8BlockScaling())[0])
        finally:
            del os.environ["NVTE_BACKWARD_OVERRIDE"]

    def test_nvfp4_refinements_stay(self):
        from transformer_engine.common import recipe

        asked = {"row_scaled_activation": True, "nvfp4_4over6": "weights", "nvfp4_4over6_e4m3_use_256": "none",
                 "nvfp4_4over6_err_mode": "MSE"}
        written = self.left_out(recipe.NVFP4BlockScaling(**asked))[1]
        self.assertEqual({name: written[name] for name in asked}, asked)


def stored_on_cpu(quantizer, tensor):
    """As MXFP8Quantizer.quantize_impl, with zeros for what the compiled part would write."""
    import torch
    from transformer_engine.pytorch.tensor import MXFP8Tensor

    codes = torch.zeros(tensor.shape, dtype=torch.uint8)
    scales = torch.zeros((tensor.shape[0], tensor.shape[1] // 32), dtype=torch.uint8)
    return MXFP8Tensor(shape=tensor.shape, dtype=tensor.dtype, fp8_dtype=quantizer.dtype, rowwise_data=codes,
                       rowwise_scale_inv=scales, columnwise_data=codes, columnwise_scale_inv=scales, quantizer=quantizer,
                       requires_grad=False, with_gemm_swizzled_scales=False)


class StoredWeights(unittest.TestCase):
    """quantized_model_init: modules whose weights exist in quantized form only."""

    def setUp(self):
        from transformer_engine.pytorch.tensor import MXFP8Quantizer

        self.enterContext(unittest.mock.patch.object(MXFP8Quantizer, "quantize_impl", stored_on_cpu))

    def imported(self, module, recipe):
        """The recipe that the importer writes, and what it warns of."""
        import to_fuseline
        import torch

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            document = to_fuseline.to_document(module, torch.empty(256, 256, dtype=torch.bfloat16, device="meta"), recipe=recipe)
        left_out = [str(entry.message) for entry in caught if entry.category is to_fuseline.LeftOut]
        return document.get("recipe") or {}, " ".join(left_out)

    def weights(self, module):
        return [op.weight for _, op in sorted(module.named_modules()) if type(op).__name__ == "BasicLinear"]

    def test_exported_modules_store_them_and_come_back(self):
        written = exported({"name": "MXFP8BlockScaling", "quantized_model_init": True})
        module = written.Pipeline(device="cpu")
        self.assertEqual([type(weight).__name__ for weight in self.weights(module)], ["MXFP8Tensor"] * 2)
        part = next(child for child in module.children())
        recipe, left_out = self.imported(part, written.RECIPE)
        self.assertEqual((recipe.get("quantized_model_init"), left_out), (True, ""))

    def test_a_custom_recipe_quantizes_each_by_its_name(self):
        square = {"name": "MXFP8BlockScaling", "enable_2d_quantization": True}
        written = exported({"name": "CustomRecipe", "quantized_model_init": True,
                            "overrides": [{"quantizer": "MXFP8BlockScaling"}, {"op": "fc2", "quantizer": square}]})
        found = [weight._quantizer.with_2d_quantization for weight in self.weights(written.Pipeline(device="cpu"))]
        self.assertEqual(found, [False, True])

    def test_parts_that_are_stored_are_named(self):
        import torch
        from transformer_engine.common import recipe
        from transformer_engine.pytorch import ops, quantized_model_init

        settings = {"bias": False, "device": "cpu", "dtype": torch.bfloat16}
        with quantized_model_init(recipe=recipe.MXFP8BlockScaling()):
            stored = ops.Linear(256, 256, **settings)
        both = ops.Sequential(stored, ops.Linear(256, 256, **settings))
        written, left_out = self.imported(both, recipe.MXFP8BlockScaling())
        self.assertNotIn("quantized_model_init", written)
        self.assertIn("linear.weight is stored quantized (quantized_model_init), but linear2.weight is not", left_out)
        self.assertIn("and no recipe was given", self.imported(ops.Sequential(stored), None)[1])


def make_on_cpu(te):
    """The matrix of the transform is made on a GPU otherwise."""
    import torch
    from transformer_engine.pytorch.tensor import nvfp4_tensor

    torch.cuda.current_device = lambda: 0
    nvfp4_tensor.get_rht_matrix = lambda signed, device: None
    nvfp4_tensor.get_random_sign_mask_for_rht = lambda signed, device: int(signed)
    Factories.te = te
    sys.path.insert(0, str(ROOT / "resources" / "te"))


if __name__ == "__main__":
    test_te_export.PROGRAM = sys.argv.pop(1)
    make_on_cpu(check_te_fuser.import_te())
    unittest.main()
