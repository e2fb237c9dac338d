#!/usr/bin/env python3
# Holds the quantized inputs of layers behind norms and activations against TransformerEngine's arithmetic.
# SPDX-License-Identifier: Apache-2.0
"""check_te_numerics.py PROGRAM: PROGRAM is fuseline. Needs `pip install numpy ml_dtypes safetensors`; ends with 77 where
these packages are missing.

TransformerEngine's kernels of norms and activations compute in float32. With DelayedScaling they quantize that value and
record its amax (normalization/rmsnorm/rmsnorm_fwd_kernels.cuh, util/vectorized_pointwise.h); with Float8CurrentScaling
activations record the amax of the float32 value, norms that of the rounded one, and what is quantized is the rounded one.
Expected values here are numpy's, in float32 of float64."""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

for package in ("numpy", "ml_dtypes", "safetensors"):
    if importlib.util.find_spec(package) is None:
        print(f"Skipped: this Python has no {package}.")
        sys.exit(77)

import ml_dtypes
import numpy as np
import safetensors.numpy

PROGRAM = ""
# Rows for every thread of a large CPU: it quantizes in the kernel of the op only where each has a block.
ROWS, COLUMNS, LARGEST = 4096, 64, 448.0
# Kernels and numpy differ in the last bit of float32, which decides over a code next to the border of two. Rounding to
# bf16 first changes 3 of 100.
MOST_OTHER_CODES = 2e-3


def tanh_gelu(x):
    return 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))


ACTIVATIONS = {
    "GELU": tanh_gelu,
    "SiLU": lambda x: x / (1 + np.exp(-x)),
    "SReLU": lambda x: np.maximum(x, 0) ** 2,
    "QGELU": lambda x: x / (1 + np.exp(-1.702 * x)),
}
NORMS = {
    "RMSNorm": lambda x: x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5),
    "LayerNorm": lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5),
}


def codes_of(value, scale):
    scaled = value.astype(np.float32) * np.float32(scale)
    return np.clip(scaled, -LARGEST, LARGEST).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


def dumped(operation, recipe, device, x):
    """Tensors of one training step of the op and a Linear behind it, by name."""
    attributes = {"normalized_shape": [COLUMNS]} if operation in NORMS else {}
    ops = [{"id": "op", "op": operation, "attributes": attributes},
           {"id": "fc", "op": "Linear", "attributes": {"in_features": COLUMNS, "out_features": 64, "bias": False}}]
    document = {"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0},
                "pipeline": {"inputs": [{"id": "x", "dtype": "bf16", "shape": [ROWS, COLUMNS]}], "ops": ops,
                             "wires": [["x", "op.x"], ["op.y", "fc.x"]], "outputs": [{"id": "y", "from": "fc.y"}]}}
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        (folder / "p.fuseline").write_text(json.dumps(document), encoding="utf-8")
        safetensors.numpy.save_file({"x": x}, folder / "x.safetensors")
        command = [PROGRAM, "run", folder / "p.fuseline", "--device", device, "--recipe", recipe, "--iterations", "1",
                   "--warmup", "0", "--no-peaks", "--quiet", "--variants", "fused", "--tensors", folder / "x.safetensors",
                   "--dump", folder / "dump.safetensors", "--save", folder / "state.safetensors"]
        done = subprocess.run([str(each) for each in command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise AssertionError(done.stderr)
        return (safetensors.numpy.load_file(folder / "dump.safetensors"),
                safetensors.numpy.load_file(folder / "state.safetensors"))


class QuantizedInputs(unittest.TestCase):
    def each(self, recipe, check):
        x = np.random.default_rng(1).normal(0, 0.4, (ROWS, COLUMNS)).astype(ml_dtypes.bfloat16)
        for operation, function in (ACTIVATIONS | NORMS).items():
            exact = function(x.astype(np.float64)).astype(np.float32)
            rounded = exact.astype(ml_dtypes.bfloat16).astype(np.float32)
            for device in ("cpu", "reference"):
                with self.subTest(f"{operation} on {device}"):
                    check(operation, exact, rounded, *dumped(operation, recipe, device, x))

    def assert_codes(self, actual, value, scale):
        self.assertLessEqual((actual != codes_of(value, scale)).mean(), MOST_OTHER_CODES)

    def test_delayed_scaling_quantizes_float32(self):
        def check(_, exact, rounded, tensors, state):
            self.assertEqual(tensors["fc.input@scale_inv"][0], 1)
            self.assert_codes(tensors["fc.input@data"], exact, 1)
            amaxes = next(value for name, value in state.items() if name.endswith("fc/forward/input.amax_history"))
            amax = np.abs(exact).max()
            self.assertAlmostEqual(float(amaxes.max()) / amax, 1, delta=1e-6)
            # Of these numbers the rounded one is another, so that the test tells them apart.
            self.assertGreater(abs(np.abs(rounded).max() / amax - 1), 1e-5)
            self.assertGreater((codes_of(rounded, 1) != codes_of(exact, 1)).mean(), 5 * MOST_OTHER_CODES)

        self.each("delayed", check)

    def test_current_scaling_takes_the_amax_of_activations_in_float32(self):
        def check(operation, exact, rounded, tensors, _):
            amax = np.abs(exact if operation in ACTIVATIONS else rounded).max()
            scale = np.float32(LARGEST) / amax
            self.assertAlmostEqual(float(tensors["fc.input@scale_inv"][0]) * float(scale), 1, delta=1e-6)
            self.assert_codes(tensors["fc.input@data"], rounded, 1 / tensors["fc.input@scale_inv"][0])

        self.each("float8current", check)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = sys.argv.pop(1)
    unittest.main()
