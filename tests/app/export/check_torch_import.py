#!/usr/bin/env python3
# Takes modules of PyTorch through torch.onnx.export and `fuseline import --weights`, and compares what both compute.
# SPDX-License-Identifier: Apache-2.0
"""check_torch_import.py PROGRAM [TEST...]: PROGRAM is fuseline. Needs `pip install torch onnx onnxscript safetensors`;
ends with 77 where these packages are missing."""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

for package in ("torch", "onnx", "onnxscript", "safetensors"):
    if importlib.util.find_spec(package) is None:
        print(f"Skipped: this Python has no {package}.")
        sys.exit(77)

import safetensors.torch
import torch
from torch import nn

PROGRAM = ""
ROWS, HIDDEN, INNER, HEADS = 6, 64, 96, 4
# Relative to the largest value of the output. The formats round by 2^-24 and 2^-8, over a few ops in a row.
TOLERANCES = {torch.float32: 2e-5, torch.bfloat16: 3e-2}


class SwiGLUMlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(HIDDEN, eps=1e-5)
        self.up = nn.Linear(HIDDEN, 2 * INNER, bias=False)
        self.down = nn.Linear(INNER, HIDDEN, bias=False)

    def forward(self, x):
        a, b = self.up(self.norm(x)).chunk(2, dim=-1)
        return x + self.down(nn.functional.silu(a) * b)


class GeluMlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(HIDDEN)
        self.up = nn.Linear(HIDDEN, INNER)
        self.down = nn.Linear(INNER, HIDDEN)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(self.norm(x)), approximate="tanh"))


class GateAndUpMlp(nn.Module):
    """As in models that descend from LLaMA: the gate and what it multiplies are two layers."""

    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(HIDDEN, eps=1e-5)
        self.gate_proj = nn.Linear(HIDDEN, INNER, bias=False)
        self.up_proj = nn.Linear(HIDDEN, INNER, bias=False)
        self.down_proj = nn.Linear(INNER, HIDDEN, bias=False)

    def forward(self, x):
        normed = self.norm(x)
        return x + self.down_proj(nn.functional.silu(self.gate_proj(normed)) * self.up_proj(normed))


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(HIDDEN, eps=1e-5)
        self.qkv = nn.ModuleDict({name: nn.Linear(HIDDEN, HIDDEN, bias=False) for name in "qkv"})
        self.out = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.mlp = GateAndUpMlp()

    def forward(self, x):
        normed = self.norm(x)
        q, k, v = (self.qkv[name](normed).unflatten(-1, (HEADS, -1)).transpose(1, 2) for name in "qkv")
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
        return self.mlp(x + self.out(attended.flatten(-2)))


def trained(module, dtype):
    """No parameter is 0, 1 or the same as its neighbour."""
    torch.manual_seed(1)
    for parameter in module.parameters():
        nn.init.uniform_(parameter, 0.2, 1.0) if parameter.dim() == 1 else nn.init.normal_(parameter, std=0.1)
    return module.to(dtype).eval()


def fuseline(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True)


def only(tensors, prefix):
    found = [tensor for name, tensor in tensors.items() if name.startswith(prefix)]
    assert len(found) == 1, (prefix, list(tensors))
    return found[0]


class TorchImport(unittest.TestCase):
    def compare(self, module, dtype, shape=(ROWS, HIDDEN), **options):
        module = trained(module, dtype)
        x = torch.randn(*shape).to(dtype)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            torch.onnx.export(module, (x,), folder / "m.onnx", input_names=["x"], output_names=["y"], **options)
            fuseline("import", folder / "m.onnx", "-o", folder / "m.fuseline", "--weights", folder / "w.safetensors",
                     "--strict")
            tensors = safetensors.torch.load_file(folder / "w.safetensors")
            self.assertEqual(sum(t.numel() for t in tensors.values()), sum(p.numel() for p in module.parameters()))
            safetensors.torch.save_file({**tensors, "x": x}, folder / "all.safetensors")
            fuseline("run", folder / "m.fuseline", "--pass", "forward", "--device", "reference", "--iterations", "1",
                     "--variants", "fused", "--no-peaks", "--tensors", folder / "all.safetensors", "--dump",
                     folder / "dump.safetensors")
            dumped = safetensors.torch.load_file(folder / "dump.safetensors")
        self.assert_near(only(dumped, "y"), module(x), dtype)

    def assert_near(self, found, expected, dtype):
        found, expected = found.double(), expected.detach().double()
        self.assertEqual(found.shape, expected.shape)
        worst = (found - expected).abs().max() / expected.abs().max()
        self.assertLess(worst.item(), TOLERANCES[dtype])

    def test_data_in_a_file_beside_the_model(self):
        for make in (SwiGLUMlp, GeluMlp, GateAndUpMlp):
            for dtype in TOLERANCES:
                with self.subTest(make.__name__, dtype=dtype):
                    self.compare(make(), dtype, dynamo=True, external_data=True)

    def test_data_in_the_model(self):
        for make in (SwiGLUMlp, GeluMlp):
            with self.subTest(make.__name__):
                self.compare(make(), torch.float32, dynamo=True, external_data=False)

    def test_layers_with_attention(self):
        """Each layer is an instance of one block, with its attention as an op."""
        model = trained(nn.Sequential(*(DecoderLayer() for _ in range(3))), torch.float32)
        x = torch.randn(2, ROWS, HIDDEN)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            torch.onnx.export(model, (x,), folder / "m.onnx", input_names=["x"], output_names=["y"], dynamo=True)
            fuseline("import", folder / "m.onnx", "-o", folder / "m.fuseline", "--weights", folder / "w.safetensors")
            document = json.loads((folder / "m.fuseline").read_text(encoding="utf-8"))
            (block,) = document["blocks"].values()
            kinds = [op["op"] for op in block["ops"]]
            self.assertEqual(kinds.count("Linear"), 6)
            self.assertEqual(kinds.count("SwiGLU"), 1)
            self.assertEqual(kinds.count("DotProductAttention"), 1)
            self.assertEqual(kinds.count("External"), 0)
            instances = [op["id"] for op in document["pipeline"]["ops"]]
            self.assertEqual(len(instances), 3)
            expected = model(x)
            given = safetensors.torch.load_file(folder / "w.safetensors") | {"x": x}
            safetensors.torch.save_file(given, folder / "all.safetensors")
            fuseline("run", folder / "m.fuseline", "--pass", "forward", "--device", "reference", "--iterations", "1",
                     "--variants", "fused", "--no-peaks", "--tensors", folder / "all.safetensors", "--dump",
                     folder / "dump.safetensors")
            dumped = safetensors.torch.load_file(folder / "dump.safetensors")
        self.assert_near(dumped["y"] if "y" in dumped else only(dumped, "y."), expected, torch.float32)

    def test_attention_with_the_batch_first(self):
        for is_norm_first in (True, False):
            with self.subTest(is_norm_first=is_norm_first):
                layer = nn.TransformerEncoderLayer(HIDDEN, HEADS, INNER, batch_first=True, norm_first=is_norm_first)
                torch.backends.mha.set_fastpath_enabled(False)
                self.compare(layer, torch.float32, (2, ROWS, HIDDEN), dynamo=True)

    def test_the_older_exporter(self):
        self.compare(GeluMlp(), torch.float32, dynamo=False, opset_version=20)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
