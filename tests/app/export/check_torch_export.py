#!/usr/bin/env python3
# Compares attention and rotary embeddings that `export --to torch` wrote with what fuseline computes, with gradients.
# SPDX-License-Identifier: Apache-2.0
"""check_torch_export.py PROGRAM [--cases N] [--seed N]: PROGRAM is fuseline. Random attributes of both ops, and templates.
Needs PyTorch and safetensors; ends with 77 where they are missing."""

import argparse
import importlib.util
import json
import pathlib
import random
import subprocess
import sys
import tempfile

for package in ("torch", "safetensors"):
    if importlib.util.find_spec(package) is None:
        print(f"Skipped: this Python has no {package}.")
        sys.exit(77)

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import check_attention

TOLERANCE = 2e-4  # of the norm of a tensor's error, as in check_attention
TEMPLATES = {"bert-layer": ["S=24", "B=2"], "llama-layer": ["S=24", "B=2"]}
SCALINGS = (
    {}, {}, {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8},
    {"rope_type": "dynamic", "factor": 4.0, "original_max_position_embeddings": 8, "max_seq_len": 120},
    {"seq_len_interpolation_factor": 2.0, "pretrained_max_position_embeddings": 6, "max_seq_len": 120},
)


def rotary_case(draw):
    """As check_attention.random_case()."""
    layout, B, S, D = draw.choice(("sbhd", "bshd", "thd")), draw.randint(1, 3), draw.choice((1, 7, 30)), 16
    starts = draw.random() < 0.5
    axes = {"sbhd": [S, B], "bshd": [B, S], "thd": [S * B]}[layout]
    inputs = {"x": (None, [*axes, draw.choice((1, 3)) * D])}
    if layout == "thd":
        inputs["cu_seqlens"] = ("i64", [B + 1])
    if starts:
        inputs["start_positions"] = ("i64", [B])
    return {"dim": D, "tensor_format": layout, "start_positions": starts, "interleaved": draw.random() < 0.5,
            "rotary_percent": draw.choice((1.0, 0.5)), "offset": draw.choice((0, 5)), **draw.choice(SCALINGS)}, inputs


def document(draw, cases):
    """Pipelines of both ops."""
    made = check_attention.document([check_attention.random_case(draw) for _ in range(cases)], "f32")
    turned = check_attention.document([rotary_case(draw) for _ in range(cases)], "f32")
    text = json.dumps(turned["pipeline"]).replace("DotProductAttention", "RotaryPositionEmbedding")
    for i in reversed(range(cases)):
        for name in ("x", "y", "op", "cu_seqlens", "start_positions"):
            text = text.replace(f'"{name}{i}"', f'"{name}{i + cases}"').replace(f'"{name}{i}.', f'"{name}{i + cases}.')
    for name, added in json.loads(text).items():
        made["pipeline"][name] += added
    return made


def fuseline(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)


def is_near(path, options):
    """Whether the exported module computes what fuseline does."""
    script, dump = path.with_suffix(".py"), path.with_suffix(".safetensors")
    fuseline("export", path, *options, "--to", "torch", "-o", script)
    fuseline("run", path, *options, "--pass", "train", "--variants", "unfused", "--iterations", 1, "--warmup", 0, "--no-peaks",
             "--dump", dump)
    spec = importlib.util.spec_from_file_location("exported", script)
    exported = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exported)
    exported.relative_error = lambda x, expected: check_attention.error_of(x.detach(), expected.double())
    return exported.compare_tensors(exported.Pipeline().train(), dump, max(TOLERANCE, exported.TOLERANCE), "cpu")


def has_no_parameter_for_off_by_one(folder):
    """The sink of off-by-one is a constant."""
    case = ({"num_attention_heads": 2, "kv_channels": [8], "softmax_type": "off-by-one"},
            {port: (None, [5, 2, 16]) for port in "xkv"})
    path = folder / "off.fuseline"
    path.write_text(json.dumps(check_attention.document([case], "f32")), encoding="utf-8")
    fuseline("export", path, "--to", "torch", "-o", folder / "off.py")
    names = {}
    exec((folder / "off.py").read_text(encoding="utf-8"), names)
    return not list(names["Pipeline"]().parameters())


def main():
    global PROGRAM
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    PROGRAM = options.program
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "cases.fuseline"
        path.write_text(json.dumps(document(random.Random(options.seed), options.cases)), encoding="utf-8")
        wrong += [] if is_near(path, []) else ["random ops"]
        wrong += [] if has_no_parameter_for_off_by_one(folder) else ["a parameter of off-by-one"]
        for template, sizes in TEMPLATES.items():
            path = folder / f"{template}.fuseline"
            fuseline("new", template, "-o", path)
            text = path.read_text(encoding="utf-8").replace("bf16", "f32")
            path.write_text(text, encoding="utf-8")
            wrong += [] if is_near(path, [f"--set={size}" for size in sizes]) else [template]
    print(f"{2 * options.cases} random ops, {len(TEMPLATES)} templates; wrong: {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
