#!/usr/bin/env python3
# Runs exported modules on TransformerEngine's own Python, and compares outputs and gradients with Fuseline's.
# SPDX-License-Identifier: Apache-2.0
"""check_te_gradients.py PROGRAM [--random N] [--first SEED] [FILE...]: PROGRAM is fuseline. Needs what check_te_fuser.py needs; kernels
are plain PyTorch (te_kernels.py), all in float32. Ends with 77 where the packages are missing."""

import argparse
import json
import pathlib
import random
import sys
import tempfile

import check_te_fuser
import test_te_export

# Kinds whose results follow from their inputs, on one rank; often such as branch.
KINDS = {"Linear": 2, "BasicLinear": 3, "Bias": 2, "RMSNorm": 2, "LayerNorm": 1, "L2Normalization": 1, "GELU": 2, "ReLU": 1,
         "SiLU": 1, "ConstantScale": 2, "Identity": 1, "Reshape": 1, "Quantize": 1, "MakeExtraOutput": 5, "AddExtraInput": 6,
         "Formula": 1, "Halves": 2}
FROZEN = {"Linear": ["weight", "bias"], "BasicLinear": ["weight"], "Bias": ["bias"], "RMSNorm": ["weight"],
          "LayerNorm": ["weight", "bias"]}
TOLERANCE = 1e-4  # relative, of norms; both compute in float32


def freeze(op, draw):
    for parameter in FROZEN.get(op["op"], []):
        if draw.random() < 0.2 and not (parameter == "bias" and op["attributes"].get("bias") is False):
            op["attributes"][f"{parameter}_requires_grad"] = False


def drawn(seed):
    """A random pipeline in float32; every other one gives everything that nobody reads to its caller."""
    document, draw = test_te_export.drawn(seed, KINDS), random.Random(seed)
    body = document["pipeline"]
    for entry in body["inputs"]:
        entry["dtype"] = "f32"
    for op in body["ops"]:
        freeze(op, draw)
    if seed % 2:
        made = {f"{op['id']}.y" for op in body["ops"]} | {f"{op['id']}.y1" for op in body["ops"] if op["op"] == "Split"}
        made |= {f"{op['id']}.extra" for op in body["ops"] if op["op"] == "MakeExtraOutput"}
        unread = sorted(made - {source for source, _ in body["wires"]})
        body["outputs"] = [{"id": f"out{i}", "from": value} for i, value in enumerate(unread)]
    return document


def tensors_of(path):
    """The unfused ones of a safetensors file of float32."""
    import torch

    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    found = {}
    for name, entry in json.loads(content[8:begin]).items():
        if not name.startswith("unfused/") or entry["dtype"] != "F32":
            continue
        first, last = (begin + at for at in entry["data_offsets"])
        flat = torch.frombuffer(bytearray(content[first:last]), dtype=torch.float32)
        found[name.removeprefix("unfused/")] = flat.reshape(entry["shape"])
    return found


def results_of(exported, tensors):
    """Outputs and gradients by name. The gradients that the caller gives stay the caller's."""
    import torch

    model = exported.Pipeline(device="cpu")
    with torch.no_grad():
        for name, place in exported.PARAMETERS.items():
            exported.set_parameter(model, place, tensors[name])
    inputs = {name: tensors[name].clone().requires_grad_(spec[2]) for name, spec in exported.INPUTS.items()}
    outputs = model(*[x.clone() if exported.OVERWRITES_INPUTS else x for x in inputs.values()])
    results = dict(zip(exported.OUTPUTS, outputs if isinstance(outputs, tuple) else (outputs,)))
    trained = {name: y for name, y in results.items() if y.requires_grad and f"grad.{name}" in tensors}
    given = {name: tensors[f"grad.{name}"].clone() for name in trained}
    if trained:
        torch.autograd.backward(list(trained.values()), list(given.values()))
        exported.finish_gradients(model)
    results = {name: y.detach() for name, y in results.items()}
    results |= {f"grad.{name}": x.grad for name, x in inputs.items() if x.grad is not None}
    gradients = {name: exported.gradient_of(model, place) for name, place in exported.PARAMETERS.items()}
    results |= {f"grad.{name}": x for name, x in gradients.items() if x is not None}
    return results | {f"grad.{name}": x for name, x in given.items()}


def differences(exported, tensors):
    results = results_of(exported, tensors)
    gradients = {f"grad.{name}" for name in exported.PARAMETERS}
    yield from (f"{name}: missing" for name in sorted((gradients & tensors.keys()) - results.keys()))
    for name, found in results.items():
        expected = tensors.get(name)
        if expected is None:
            continue
        error = float((found - expected).norm() / expected.norm().clamp(min=1e-6))
        if not error <= TOLERANCE:
            yield f"{name}: off by {error:.1%}"


def check(path, folder):
    """(number of sums in place that the module has, differences)."""
    dump = folder / "dump.safetensors"
    script = check_te_fuser.run("export", path, "--to", "te")
    check_te_fuser.run("run", path, "--device", "cpu", "--iterations", 1, "--warmup", 0, "--no-peaks", "--dump", dump,
                       "--force")
    try:
        found = list(differences(check_te_fuser.loaded(script), tensors_of(dump)))
    except Exception as problem:  # of TransformerEngine or PyTorch, on a module that we wrote
        found = [f"raises {type(problem).__name__}: {problem}"]
    return script.count("in_place=True"), found


def cases(options, folder):
    for path in options.files:
        yield path.name, path
    for seed in range(options.first, options.first + options.random):
        path = folder / "drawn.fuseline"
        path.write_text(json.dumps(drawn(seed)), encoding="utf-8")
        yield f"random {seed}", path


def install_kernels(extension):
    import te_kernels  # which needs PyTorch

    te_kernels.install(extension)


def import_te():
    te = check_te_fuser.import_te(install_kernels)
    import torch
    from transformer_engine.pytorch import utils
    from transformer_engine.pytorch.cpp_extensions import gemm
    from transformer_engine.pytorch.ops.basic import grouped_linear
    import te_kernels

    utils._empty_tensor = gemm._empty_tensor = torch.Tensor  # on the CPU
    gemm.get_cublas_workspace = lambda device, ub, is_grouped: [torch.empty(1)] if is_grouped else torch.empty(1)
    gemm.get_sm_count = lambda: 1
    grouped_linear.compute_grouped_dbias = te_kernels.grouped_dbias
    return te


def member_problems(te):
    """Names that modules have and scripts may give to ops."""
    import torch

    members = set(dir(torch.nn.Module())) | set(dir(te.ops.Sequential()))
    document = test_te_export.drawn(0)
    body = document["pipeline"]
    names = sorted(name for name in members if not name.startswith("__"))
    body["ops"] = [{"id": name, "op": "GELU", "attributes": {}} for name in names]
    body["wires"] = [[f"{a}.y", f"{b}.x"] for a, b in zip(names, names[1:])] + [["x", f"{names[0]}.x"]]
    body["outputs"] = [{"id": "y", "from": f"{names[-1]}.y"}]
    check_te_fuser.loaded(test_te_export.written(document)).Pipeline(device="cpu")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--random", type=int, default=120, help="how many random pipelines")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    test_te_export.PROGRAM = options.program
    te = import_te()
    member_problems(te)
    num_in_place, num_problems = 0, 0
    with tempfile.TemporaryDirectory() as name:
        for case, path in cases(options, pathlib.Path(name)):
            in_place, found = check(path, pathlib.Path(name))
            num_in_place += in_place
            num_problems += len(found)
            for problem in found:
                print(f"{case}: {problem}", flush=True)
    print(f"{num_in_place} sums in place, {num_problems} differences")
    return 1 if num_problems or not num_in_place else 0


if __name__ == "__main__":
    sys.exit(main())
