# Reads and writes safetensors files, without a package.
# SPDX-License-Identifier: Apache-2.0
"""The format: the length of the header in 8 bytes, little-endian; the header, JSON; the data of all tensors."""

import dataclasses
import json
import math
import struct

SIZES = {"F32": 4, "F16": 2, "BF16": 2, "I64": 8, "U8": 1, "F8_E4M3": 1, "F8_E5M2": 1}


@dataclasses.dataclass(frozen=True)
class RawTensor:
    """Bytes, row-major and little-endian."""

    dtype: str
    shape: tuple
    data: bytes


class FormatError(ValueError):
    """What is wrong with a file."""


def read(path):
    """Name -> RawTensor."""
    with open(path, "rb") as file:
        content = file.read()
    header, data = _header(path, content)
    return {name: _tensor(path, name, entry, data) for name, entry in header.items() if name != "__metadata__"}


def _header(path, content):
    length = struct.unpack("<Q", content[:8])[0] if len(content) >= 8 else 0
    if length == 0 or 8 + length > len(content):
        raise FormatError(f"{path}: no safetensors file; it has {len(content)} bytes, its header would have {length}.")
    try:
        header = json.loads(content[8:8 + length])
    except ValueError as error:
        raise FormatError(f"{path}: no safetensors file; its header is no JSON: {error}.") from error
    return header, memoryview(content)[8 + length:]


def _tensor(path, name, entry, data):
    begin, end = entry["data_offsets"]
    dtype, shape = entry["dtype"], tuple(entry["shape"])
    if dtype not in SIZES:
        raise FormatError(f"{path}: {name} is of type {dtype}; known are {', '.join(SIZES)}.")
    expected = math.prod(shape) * SIZES[dtype]
    if not 0 <= begin <= end <= len(data) or end - begin != expected:
        raise FormatError(f"{path}: {name} has bytes {begin} to {end} of {len(data)}; its shape needs {expected}.")
    return RawTensor(dtype, shape, bytes(data[begin:end]))


def write(path, tensors):
    """tensors: name -> RawTensor."""
    header, offset = {}, 0
    for name, tensor in tensors.items():
        end = offset + len(tensor.data)
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.data)
