# Compares the results of the PyTorch peer with fuseline's, tensor by tensor.
# SPDX-License-Identifier: Apache-2.0
"""Tolerances are those of TransformerEngine's tests. They are asked of a tensor as a whole, by the norm of its error over
the norm of its values: in a chain of ops an element is rounded several times, and near 0 no relative bound holds. In
float32 and in 16 bits every element must fit the tolerance of whole modules, too, in units of the tensor's size.

A variant without FP8 products computes what fuseline computes without a recipe, and is compared with that; an FP8 variant
is compared with fuseline under its recipe."""

import dataclasses
import math
import pathlib

import torch

from . import safetensors, tensors
from .pipeline import PRODUCTS
from .program import FAILED, PeerError

RELATIVE = {torch.float32: 1.3e-6, torch.float16: 1e-3, torch.bfloat16: 1.6e-2}
EQUAL = 1e-12  # counts
RELATIVE_F32_SUM = 1e-3  # sums in another order; the row of float32 products
RELATIVE_F16_CHAIN = 2e-3  # as many roundings as bf16's row allows; f16's is that of a single one
# Half a unit roundoff, times the root of the number of rows: the error of a sum over rows that is kept in 16 bits, as
# PyTorch keeps the gradients of a norm's weight and bias on a CPU.
ROUNDING = {torch.float16: 2.0 ** -12, torch.bfloat16: 2.0 ** -9}
RELATIVE_FP8 = 0.125
RELATIVE_FP8_CHAIN = 0.25  # both programs quantize what they have quantized before
ELEMENT_RELATIVE, ELEMENT_ABSOLUTE = 0.25, 0.5  # whole modules
FUSELINE_VARIANTS = ("unfused", "fused")
LARGEST_Z = 4.0  # of the number of dropped elements: once in 16,000 runs by chance


@dataclasses.dataclass(frozen=True)
class Comparison:
    mode: str
    variant: str
    tensor: str
    error: float      # the norm of the difference over the norm of fuseline's tensor
    tolerance: float
    worst: float      # largest difference of an element, in units of the tensor's root mean square
    words: str        # what is wrong; empty: nothing


def fuseline_results(program, file, given, scratch):
    """What fuseline computes of the tensors given: "unfused/y" and so on -> tensor; and the record of that run."""
    dumped = pathlib.Path(scratch) / "dump.safetensors"
    record = program.run(file, "--tensors", given, "--dump", dumped, "--iterations", 1, "--warmup", 0)["record"]
    contents = safetensors.read(dumped)
    dumped.unlink()
    return {name: tensors.from_raw(raw) for name, raw in contents.items() if raw.dtype in tensors.FILE_DTYPES}, record


def write_given(drawn, scratch):
    path = pathlib.Path(scratch) / "given.safetensors"
    safetensors.write(path, {name: tensors.raw(tensor) for name, tensor in drawn.items()})
    return path


def tolerance_of(name, dtype, pipeline, mode):
    """For the error of a whole tensor."""
    if not dtype.is_floating_point:
        return EQUAL
    if mode.startswith("fp8") and pipeline.has_products():
        return RELATIVE_FP8_CHAIN if sum(op.kind in PRODUCTS for op in pipeline.ops) > 1 else RELATIVE_FP8
    if dtype == torch.float32:
        return RELATIVE_F32_SUM if pipeline.has_sums() else RELATIVE[dtype]
    is_chain = dtype == torch.float16 and len(pipeline.ops) > 1
    usual = RELATIVE_F16_CHAIN if is_chain else RELATIVE[dtype]
    return max(usual, ROUNDING[dtype] * math.sqrt(pipeline.summed_rows(name.removeprefix("grad."))))


def expected_names(pipeline):
    outputs = [name for name, _ in pipeline.outputs]
    return outputs + [f"grad.{name}" for name in sorted(pipeline.gradients) if name not in outputs]


def compare(pipeline, results, reference, mode):
    """Every output and gradient of a variant against both of fuseline's."""
    return [_comparison(pipeline, name, variant, results, reference, mode)
            for variant in FUSELINE_VARIANTS for name in expected_names(pipeline)]


def _comparison(pipeline, name, variant, results, reference, mode):
    expected, actual = reference.get(f"{variant}/{name}"), results.get(name)
    dtype = torch.float32 if expected is None else expected.dtype
    tolerance = tolerance_of(name, dtype, pipeline, mode)
    if expected is None or actual is None:
        lacking = "fuseline" if expected is None else "PyTorch"
        return Comparison(mode, variant, name, math.nan, tolerance, math.nan, f"{lacking} has no such tensor")
    if (actual.dtype, actual.shape) != (expected.dtype, expected.shape):
        words = f"is {actual.dtype} {list(actual.shape)}, expected {expected.dtype} {list(expected.shape)}"
        return Comparison(mode, variant, name, math.nan, tolerance, math.nan, words)
    return _measured(name, variant, actual.double(), expected.double(), mode, tolerance)


def _measured(name, variant, actual, expected, mode, tolerance):
    both_nan = actual.isnan() & expected.isnan()
    # Infinities of one sign agree; their difference would be NaN.
    difference = torch.where(both_nan | (actual == expected), torch.zeros_like(actual), (actual - expected).abs())
    values = torch.where(expected.isfinite(), expected.abs(), torch.zeros_like(expected))
    size = values.square().mean().sqrt().item() if values.numel() else 0.0
    norm = values.norm().item()
    error = difference.norm().item() / norm if norm else difference.norm().item()
    worst = difference.max().item() / (size or 1.0) if difference.numel() else 0.0
    bound = ELEMENT_RELATIVE * values + ELEMENT_ABSOLUTE * size
    is_near = tolerance >= RELATIVE_FP8 or bool((difference <= bound).all())
    words = "" if error <= tolerance and is_near else "differs"
    return Comparison(mode, variant, name, error, tolerance, worst, words)


def check_dropout(pipeline, reference):
    """Masks are drawn differently, so that only how many elements are dropped can be compared. Problems as sentences."""
    problems = []
    for op in pipeline.drops():
        x, y = (_dumped(pipeline, reference, names[0]) for names in (op.inputs, op.outputs))
        kept, p = x != 0, op.attributes["p"]
        count = int(kept.sum())
        share = float((y[kept] == 0).double().mean()) if count else p
        z = (share - p) / math.sqrt(p * (1 - p) / max(count, 1))
        if abs(z) > LARGEST_Z:
            problems.append(f"{op.id}: fuseline drops {share:.4f} of {count} elements, expected {p} (z = {z:.1f}).")
    return problems


def _dumped(pipeline, reference, edge):
    names = [name for name, of in pipeline.outputs if of == edge]
    parts = edge.rsplit(".", 1)
    for name in (*names, ":".join(parts), edge):
        if f"unfused/{name}" in reference:
            return reference[f"unfused/{name}"]
    raise PeerError(f"fuseline dumped no tensor {edge}.", FAILED)
