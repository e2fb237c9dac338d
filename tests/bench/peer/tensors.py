# The tensors that fuseline and the PyTorch peer both get, and their way through safetensors files.
# SPDX-License-Identifier: Apache-2.0
"""Data is N(0, 1). Parameters are drawn so that none is without effect: a norm's weight is not 1, no bias is 0."""

import ctypes
import math

import torch

from . import attention, experts, formula, model_ends, safetensors

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64}
FILE_DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64}
FILE_NAMES = {dtype: name for name, dtype in FILE_DTYPES.items()}
COUNTED_BY_ATTENTION = ("DotProductAttention", "RotaryPositionEmbedding")
SPREAD = 0.1  # of parameters that are vectors
ROWS_OF_CUT = 16  # groups have multiples of it where they can, as FP8 wants them


def raw(tensor):
    tensor = tensor.detach().cpu().contiguous()
    data = ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size()) if tensor.numel() else b""
    return safetensors.RawTensor(FILE_NAMES[tensor.dtype], tuple(tensor.shape), data)


def from_raw(tensor):
    dtype = FILE_DTYPES[tensor.dtype]
    if not tensor.data:
        return torch.empty(tensor.shape, dtype=dtype)
    return torch.frombuffer(bytearray(tensor.data), dtype=dtype).reshape(tensor.shape)


def draw(pipeline, seed):
    """Name -> tensor: inputs, parameters, and the gradients of outputs."""
    generator = torch.Generator().manual_seed(seed)
    drawn = {}
    for name in pipeline.inputs:
        spec = pipeline.edges[name]
        is_data = spec.dtype != "i64"
        drawn[name] = _normal(spec, generator) if is_data else _counts(pipeline, name, generator)
    for op in pipeline.ops:
        for name in op.parameters:
            drawn[name] = _parameter(op, name, pipeline.parameters[name], generator)
    for name, edge in pipeline.outputs:
        if name in pipeline.gradients:
            drawn[f"grad.{name}"] = _normal(pipeline.edges[edge], generator)
    return drawn


def _normal(spec, generator):
    return torch.randn(spec.shape, generator=generator).to(DTYPES[spec.dtype])


def _parameter(op, name, spec, generator):
    noise = torch.randn(spec.shape, generator=generator)
    if len(spec.shape) > 1 and name.rsplit(".", 1)[-1].startswith("weight") and "Norm" not in op.kind:
        value = noise / math.sqrt(spec.shape[-1])
    else:
        value = _centre(op, name) + SPREAD * noise
    return value.to(DTYPES[spec.dtype])


def _centre(op, name):
    if op.kind == "Formula":
        return formula.declared(op.attributes["parameters"])[name.rsplit(".", 1)[-1]]
    return 1.0 if name.endswith(".weight") and not op.attributes.get("zero_centered_gamma") else 0.0


def _counts(pipeline, name, generator):
    reader = next((op for op in pipeline.ops if name in op.inputs and op.kind in COUNTED_BY_ATTENTION), None)
    if reader:
        return attention.drawn_counts(reader, name, pipeline.edges, generator)
    for module in (model_ends, experts):
        reader = next((op for op in pipeline.ops if module.READERS.get(op.kind, -1) in places(op, name)), None)
        if reader:
            return module.drawn_counts(reader, name, pipeline, generator)
    return _split_sizes(pipeline, name, generator)


def places(op, name):
    """The slots in which an op reads a tensor."""
    return [slot for slot, tensor in enumerate(op.inputs) if tensor == name]


def _split_sizes(pipeline, name, generator):
    """Random cuts of the rows that the first reader of the sizes divides."""
    groups = pipeline.edges[name].shape[0]
    reader = next((op for op in pipeline.ops if op.kind == "GroupedLinear" and name == op.inputs[1]), None)
    if reader is None:
        return torch.zeros(pipeline.edges[name].shape, dtype=torch.int64)
    rows = math.prod(pipeline.edges[reader.inputs[0]].shape[:-1])
    unit = ROWS_OF_CUT if rows % ROWS_OF_CUT == 0 else 1
    cuts = torch.randint(0, rows // unit + 1, (groups - 1,), generator=generator).sort().values * unit
    ends = torch.cat([torch.tensor([0]), cuts, torch.tensor([rows])])
    return ends.diff()
