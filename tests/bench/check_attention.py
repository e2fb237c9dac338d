#!/usr/bin/env python3
# Compares attention on the CPU with scaled_dot_product_attention in float64, on random shapes, masks and formats.
# SPDX-License-Identifier: Apache-2.0
"""check_attention.py PROGRAM [--cases N] [--seed N]: PROGRAM is fuseline. Outputs and all gradients are compared; the
inputs of float64 are those of fuseline, rounded to its dtype. Exit codes: 0 they agree, 1 they differ, 77 no PyTorch."""

import argparse
import json
import math
import pathlib
import random
import sys
import tempfile

try:
    import torch
except ImportError:
    print("There is no PyTorch for", sys.executable)
    sys.exit(77)

from peer import attention, safetensors, tensors
from peer import pipeline as pipelines
from peer.program import Program

SIZES = (8, 16, 24, 40, 64, 80, 128, 192, 256)
MASKS = ("no_mask", "causal", "causal_bottom_right", "padding", "padding_causal", "padding_causal_bottom_right",
         "arbitrary")
# Of the norm of a tensor's error. Backward reads y as it was rounded, which the gradient of a sink shows most;
# in float32, large scores and nearly one-hot rows cancel.
TOLERANCES = {"f32": 2e-4, "f16": 4e-3, "bf16": 3e-2}
SMALL = 0.1  # elements that are smaller cancelled: a row with one key has no gradient but rounding errors


def random_case(draw):
    """Attributes, and port -> (dtype or None for the document's, shape)."""
    G = draw.choice((1, 2, 3))
    H, D = G * draw.choice((1, 2, 4)), draw.choice(SIZES)
    Dv = draw.choice((D, D, draw.choice(SIZES)))
    B, queries, keys = draw.randint(1, 3), draw.choice((1, 7, 64, 97, 210)), draw.choice((1, 9, 96, 130))
    keys = queries if draw.random() < 0.5 else keys
    layout = draw.choice(("sbhd", "bshd", "thd"))
    mask = draw.choice([name for name in MASKS if layout != "thd" or name.startswith("padding")])
    biases = () if layout == "thd" else ("pre_scale_bias", "post_scale_bias")
    bias = draw.choice(("no_bias", "no_bias", "alibi", *biases))
    attributes = {"num_attention_heads": H, "num_gqa_groups": G, "kv_channels": [D, Dv], "qkv_format": layout,
                  "attn_mask_type": mask, "core_attention_bias_type": bias,
                  "softmax_type": draw.choice(("vanilla", "vanilla", "off-by-one", "learnable")),
                  "softcap": draw.choice((0.0, 0.0, 3.0))}
    if draw.random() < 0.4:
        attributes["window_size"] = [draw.randint(0, 40), 0 if "causal" in mask else draw.randint(0, 40)]
    if draw.random() < 0.3:
        attributes["softmax_scale"] = draw.uniform(0.05, 0.5)
    return attributes, _inputs(attributes, B, queries, keys, (H, G, D, Dv))


def _inputs(attributes, B, queries, keys, sizes):
    H, G, D, Dv = sizes
    axes = {"sbhd": lambda s: [s, B], "bshd": lambda s: [B, s], "thd": lambda s: [s * B]}[attributes["qkv_format"]]
    inputs = {"x": (None, [*axes(queries), H, D]), "k": (None, [*axes(keys), G, D]), "v": (None, [*axes(keys), G * Dv])}
    if attributes["core_attention_bias_type"].endswith("scale_bias"):
        inputs["core_attention_bias"] = (None, [1, H, queries, keys])
    if attributes["attn_mask_type"] == "arbitrary":
        inputs["attention_mask"] = ("i64", [B, 1, queries, keys])
    if attributes["attn_mask_type"].startswith("padding"):
        inputs["cu_seqlens_q"] = inputs["cu_seqlens_kv"] = ("i64", [B + 1])
    return inputs


def document(cases, dtype):
    made = {"inputs": [], "ops": [], "wires": [], "outputs": []}
    for i, (attributes, inputs) in enumerate(cases):
        for port, (own, shape) in inputs.items():
            made["inputs"].append({"id": f"{port}{i}", "dtype": own or dtype, "shape": shape})
            made["wires"].append([f"{port}{i}", f"op{i}.{port}"])
        made["ops"].append({"id": f"op{i}", "op": "DotProductAttention", "attributes": attributes})
        made["outputs"].append({"id": f"y{i}", "from": f"op{i}.y"})
    return {"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "symbols": {}, "pipeline": made}


def computed(program, path, drawn, scratch):
    """What fuseline makes of the tensors: name -> tensor."""
    given, dump = scratch / "given.safetensors", scratch / "dump.safetensors"
    safetensors.write(given, {name: tensors.raw(tensor) for name, tensor in drawn.items()})
    program.run(path, "--pass", "train", "--tensors", given, "--dump", dump, "--variants", "unfused", "--no-peaks",
                "--iterations", 1, "--warmup", 0)
    return {name.removeprefix("unfused/"): tensors.from_raw(raw) for name, raw in safetensors.read(dump).items()
            if raw.dtype in tensors.FILE_DTYPES}


def expected(op, drawn):
    """The same in float64."""
    names = [*op.inputs, *op.parameters]
    values = [drawn[name] for name in names]
    values = [value.double().requires_grad_() if value.is_floating_point() else value for value in values]
    y = attention.Attention(op)(*values)
    y.backward(drawn[f"grad.{op.id.replace('op', 'y')}"].double())
    gradients = {f"grad.{name}": value.grad for name, value in zip(names, values) if value.is_floating_point()}
    return {op.id.replace("op", "y"): y.detach(), **gradients}


def error_of(actual, wanted):
    wanted = torch.zeros_like(actual).double() if wanted is None else wanted
    return (actual.double() - wanted).norm().item() / max(wanted.norm().item(), SMALL * math.sqrt(wanted.numel()))


def hide_keys(draw, biases):
    """The lowest number in place of minus infinity, as exporters write it; some rows have no other bias."""
    for bias in biases.values():
        if draw.random() < 0.5:
            hidden = torch.rand(bias.shape[-1]) < 0.5
            bias[..., hidden] = bias[..., : draw.randint(1, bias.shape[-2]), :] = -3e38


def check(program, draw, count, dtype, scratch):
    """The number of tensors that differ."""
    cases = [random_case(draw) for _ in range(count)]
    path = scratch / f"attention_{dtype}.fuseline"
    path.write_text(json.dumps(document(cases, dtype)), encoding="utf-8")
    pipeline = pipelines.describe(program, str(path), scratch)
    drawn = tensors.draw(pipeline, draw.randrange(1 << 30))
    if dtype != "f16":  # its lowest number does not absorb scores
        hide_keys(draw, {name: bias for name, bias in drawn.items() if name.startswith("core_attention_bias")})
    results, worst, differing = computed(program, path, drawn, scratch), 0.0, 0
    for op in pipeline.ops:
        for name, wanted in expected(op, drawn).items():
            error = error_of(results[name], wanted)
            worst = max(worst, error)
            if not error <= TOLERANCES[dtype]:
                differing += 1
                print(f"{dtype}: {name} differs by {error:.1e} with {op.attributes}")
    print(f"{dtype}: {count} cases, worst error {worst:.1e} of at most {TOLERANCES[dtype]:.1e}")
    return differing


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    program = Program(arguments.program)
    with tempfile.TemporaryDirectory() as folder:
        differing = [check(program, draw, arguments.cases, dtype, pathlib.Path(folder)) for dtype in TOLERANCES]
    return 1 if any(differing) else 0


if __name__ == "__main__":
    sys.exit(main())
