#!/usr/bin/env python3
# Compares attention behind splits, rotary embeddings and concatenations of heads with PyTorch in float64.
# SPDX-License-Identifier: Apache-2.0
"""check_attention_layers.py PROGRAM [--layers N] [--seed N]: PROGRAM is fuseline. Random layers such as latent attention:
parts of heads are split, rotated, shared among heads and joined again, packed or not, on the reference and the CPU, unfused
and fused, which plans do in place and by stride where they can. Outputs and all gradients are compared; the inputs of
float64 are those of fuseline, rounded to its dtype. Exit codes: 0 they agree, 1 they differ, 77 no PyTorch."""

import argparse
import itertools
import json
import pathlib
import random
import sys
import tempfile

from check_attention import error_of, torch
from peer import modules, safetensors, tensors
from peer import pipeline as pipelines
from peer.program import Program

# Of the norm of a tensor's error. In 16 bits each op rounds its results.
TOLERANCES = {"f32": 5e-5, "f16": 4e-3, "bf16": 3e-2}


class Layer:
    """One attention layer of random form. Ids end with the number of the layer."""

    def __init__(self, draw, number):
        self.draw, self.number, self.count = draw, number, 0
        self.ops, self.wires, self.inputs, self.outputs = [], [], [], []
        self.layout = draw.choice(("sbhd", "bshd"))
        self.batch = draw.randint(1, 3)
        self.queries = draw.choice((1, 7, 33, 97))
        self.keys = self.queries if draw.random() < 0.6 else draw.choice((1, 9, 70))
        self.groups = draw.choice((1, 2, 3))
        self.heads = self.groups * draw.choice((1, 1, 2, 3))
        self.plain, self.rotated = draw.choice((4, 8, 16, 24, 10)), draw.choice((4, 8, 12, 16, 32))
        self.values = draw.choice((4, 8, 12, 16, 40))
        self.is_rotated_first = draw.random() < 0.5
        self._attend()

    def axes(self, tokens):
        return [tokens, self.batch] if self.layout == "sbhd" else [self.batch, tokens]

    def input(self, shape):
        name = f"in{self.number}_{len(self.inputs)}"
        self.inputs.append({"id": name, "shape": shape})
        return name

    def op(self, kind, ports, **attributes):
        """ports: name -> tensor. The id of the op."""
        name = f"op{self.number}_{len(self.ops)}"
        self.ops.append({"id": name, "op": kind, "attributes": attributes})
        self.wires += [[tensor, f"{name}.{port}"] for port, tensor in ports.items()]
        return name

    def split(self, x, sizes):
        name = self.op("Split", {"x": x}, sizes=sizes)
        return [f"{name}.y{i or ''}" for i in range(len(sizes))]

    def concat(self, parts):
        ports = {f"x{i or ''}": part for i, part in enumerate(parts)}
        return self.op("Concat", ports, num_inputs=len(parts)) + ".y"

    def rotate(self, x):
        return self.op("RotaryPositionEmbedding", {"x": x}, dim=self.rotated, tensor_format=self.layout,
                       interleaved=self.draw.random() < 0.5, rotary_percent=self.draw.choice((1, 1, 0.5)),
                       offset=self.draw.choice((0, 0, 5))) + ".y"

    def projected(self, tokens, width):
        """An input as it is, or what a linear layer writes."""
        if self.draw.random() < 0.5:
            return self.input([*self.axes(tokens), width])
        return self.op("Linear", {"x": self.input([*self.axes(tokens), 12])}, in_features=12, out_features=width,
                       bias=self.draw.random() < 0.5) + ".y"

    def as_heads(self, x, tokens, heads):
        return self.op("Reshape", {"x": x}, shape=[*self.axes(tokens), heads, -1]) + ".y"

    def ordered(self, plain, rotated):
        return [rotated, plain] if self.is_rotated_first else [plain, rotated]

    def leave(self, tensor, chance=0.12):
        """Sometimes another op, or the caller, reads a tensor, too."""
        if self.draw.random() < chance:
            name = self.op("ConstantScale", {"x": tensor}, scale=0.5) + ".y" if self.draw.random() < 0.5 else tensor
            if name not in self.outputs:
                self.outputs.append(name)

    def joined(self, plain, rotated):
        """Heads of both parts, in the order of the projection or swapped."""
        parts = self.ordered(plain, rotated)
        return self.concat(parts if self.draw.random() < 0.8 else parts[::-1])

    def _query(self):
        x = self.projected(self.queries, self.heads * (self.plain + self.rotated))
        heads = self.as_heads(x, self.queries, self.heads)
        parts = self.split(heads, self.ordered(self.plain, self.rotated))
        plain, rotated = parts[::-1] if self.is_rotated_first else parts
        self.leave(rotated)
        turned = self.rotate(rotated)
        self.leave(turned)
        self.leave(heads, 0.05)
        return self.joined(plain, turned)

    def _shared(self):
        """Rotated channels that all key heads share, alone or beside a latent vector."""
        if self.draw.random() < 0.5:
            x = self.input([*self.axes(self.keys), self.rotated])
            return self.op("Expand", {"x": self.rotate(x)}, count=self.groups) + ".y"
        latent, x = self.split(self.projected(self.keys, 8 + self.rotated), [8, self.rotated])
        self.outputs.append(self.op("RMSNorm", {"x": latent}, normalized_shape=[8]) + ".y")
        return self.op("Expand", {"x": self.rotate(x)}, count=self.groups) + ".y"

    def _key_and_value(self):
        """All in one projection by head, or keys and values in one, with shared channels."""
        has_own = self.draw.random() < 0.5
        sizes = [self.plain, *([self.rotated] if has_own else []), self.values]
        order = self.draw.sample(range(len(sizes)), len(sizes))
        x = self.projected(self.keys, self.groups * sum(sizes))
        parts = self.split(self.as_heads(x, self.keys, self.groups), [sizes[i] for i in order])
        by_kind = [parts[order.index(i)] for i in range(len(sizes))]
        for part in by_kind:
            self.leave(part)
        rotated = self.rotate(by_kind[1]) if has_own else self._shared()
        self.leave(rotated)
        return self.joined(by_kind[0], rotated), by_kind[-1]

    def _attend(self):
        q = self._query()
        k, v = self._key_and_value()
        mask = self.draw.choice(("no_mask", "causal", "causal_bottom_right"))
        attributes = {"num_attention_heads": self.heads, "num_gqa_groups": self.groups, "qkv_format": self.layout,
                      "kv_channels": [self.plain + self.rotated, self.values], "attn_mask_type": mask}
        if self.draw.random() < 0.4:
            attributes["window_size"] = [self.draw.randint(0, 40), 0 if "causal" in mask else self.draw.randint(0, 40)]
        y = self.op("DotProductAttention", {"x": q, "k": k, "v": v}, **attributes) + ".y"
        if self.draw.random() < 0.5:  # gates, for one, split what attention writes
            left, right = self.split(self.as_heads(y, self.queries, self.heads), [self.values // 2, self.values // 2])
            y = self.concat([left, right] if self.draw.random() < 0.5 else [right, left])
        self.outputs.append(y)


def document(layers, dtype):
    made = {"inputs": [], "ops": [], "wires": [], "outputs": []}
    for layer in layers:
        made["inputs"] += [{**each, "dtype": dtype} for each in layer.inputs]
        made["ops"] += layer.ops
        made["wires"] += layer.wires
        made["outputs"] += [{"id": f"y{layer.number}_{i}", "from": name} for i, name in enumerate(layer.outputs)]
    return {"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "symbols": {}, "pipeline": made}


def computed(program, path, drawn, names, arguments, scratch):
    """What a plan makes of the tensors: name -> tensor. A dump would be of a plan that keeps all tensors, each contiguous."""
    given, captured = scratch / "given.safetensors", scratch / "captured.safetensors"
    safetensors.write(given, {name: tensors.raw(tensor) for name, tensor in drawn.items()})
    captures = [argument for name in names for argument in ("--capture", name)]
    program.run(path, "--pass", "train", "--tensors", given, *captures, "--captured", captured, "--force", "--no-peaks",
                "--iterations", 1, "--warmup", 0, *arguments)
    return {name: tensors.from_raw(raw) for name, raw in safetensors.read(captured).items()
            if raw.dtype in tensors.FILE_DTYPES}


def expected(pipeline, drawn):
    """Outputs and gradients in float64."""
    values = {name: tensor.double().requires_grad_() for name, tensor in drawn.items() if not name.startswith("grad.")}
    leaves = dict(values)
    for op in pipeline.ops:
        made = modules.function_of(op, pipeline, {}, torch.nn.functional.linear)(
            *(values[name] for name in (*op.inputs, *op.parameters)))
        values.update(zip(op.outputs, made if isinstance(made, tuple) else (made,)))
    outputs = {name: values[edge] for name, edge in pipeline.outputs}
    torch.autograd.backward(list(outputs.values()), [drawn[f"grad.{name}"].double() for name in outputs])
    return {name: y.detach() for name, y in outputs.items()} | {f"grad.{n}": leaf.grad for n, leaf in leaves.items()}


def check(program, draw, count, dtype, scratch):
    """The number of tensors that differ."""
    layers = [Layer(draw, number) for number in range(count)]
    path = scratch / f"layers_{dtype}.fuseline"
    path.write_text(json.dumps(document(layers, dtype)), encoding="utf-8")
    pipeline = pipelines.describe(program, str(path), scratch)
    drawn = tensors.draw(pipeline, draw.randrange(1 << 30))
    wanted, worst, differing = expected(pipeline, drawn), 0.0, 0
    for device, variant in itertools.product(("cpu", "reference"), ("unfused", "fused")):
        results = computed(program, path, drawn, wanted, ("--device", device, "--variants", variant), scratch)
        for name, value in wanted.items():
            error = error_of(results[name], value)
            worst = max(worst, error)
            if not error <= TOLERANCES[dtype]:
                differing += 1
                print(f"{dtype}: {device}, {variant}: {name} differs by {error:.1e}")
    print(f"{dtype}: {count} layers, worst error {worst:.1e} of at most {TOLERANCES[dtype]:.1e}")
    return differing


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    program = Program(arguments.program)
    with tempfile.TemporaryDirectory() as folder:
        differing = [check(program, draw, arguments.layers, dtype, pathlib.Path(folder)) for dtype in TOLERANCES]
    return 1 if any(differing) else 0


if __name__ == "__main__":
    sys.exit(main())
