#!/usr/bin/env python3
# Compares Fuseline's chapter te with what TransformerEngine's own fuser does, and exported modules with imported ones.
# SPDX-License-Identifier: Apache-2.0
"""check_te_fuser.py PROGRAM [--random N] [--chains N] [--first SEED] [FILE...]: PROGRAM is fuseline. Needs PyTorch and the
Python part of TransformerEngine: `pip install torch onnxscript einops pydantic packaging && pip install --no-deps
transformer_engine`. Its compiled part, which needs a GPU, is replaced by a mock: ops are made on the CPU with
TransformerEngine's own quantizers and asked to fuse, but nothing is run. Exported modules are compared with their PLAN, and
random chains (te_chains.py) with `fuse --rules te`; FILEs instead of both, for training and inference. Ends with 77 where
the packages are missing."""

import argparse
import collections
import contextlib
import enum
import glob
import importlib.util
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import types
import warnings
from unittest import mock

import te_chains
import test_te_export

ROOT = test_te_export.ROOT
RECIPES = {"none": "sm_90", "delayed": "sm_90", "float8current": "sm_90", "float8block": "sm_90", "mxfp8": "sm_100",
           "nvfp4": "sm_100"}


def import_te(add_kernels=lambda extension: None):
    """transformer_engine.pytorch with a mock in place of its extension, and of kernels those that are added."""
    for package in ("torch", "transformer_engine"):
        if importlib.util.find_spec(package) is None:
            print(f"Skipped: this Python has no {package}.")
            sys.exit(77)
    warnings.simplefilter("ignore")
    os.environ["NVTE_PROJECT_BUILDING"] = "1"  # as TransformerEngine's own build does: no library is loaded
    extension = mock.MagicMock(name="transformer_engine_torch")
    folder = importlib.util.find_spec("transformer_engine").submodule_search_locations[0]
    sources = [pathlib.Path(p).read_text() for p in glob.glob(f"{folder}/pytorch/**/*.py", recursive=True)]
    names = dict.fromkeys(re.findall(r"^    (k\w+) = int\(tex", "\n".join(sources), re.M))
    extension.DType = enum.IntEnum("DType", {name: i for i, name in enumerate(names)})
    backends = sorted(set(re.findall(r"NVTE_Fused_Attn_Backend\.(NVTE_\w+)", "\n".join(sources))))
    extension.NVTE_Fused_Attn_Backend = enum.IntEnum("Backend", {name: i for i, name in enumerate(backends)})
    add_kernels(extension)
    sys.modules["transformer_engine_torch"] = extension
    import transformer_engine.common

    transformer_engine.common.load_framework_extension = lambda framework: None
    import torch
    import transformer_engine.pytorch as te

    # Neither is called. One wants a GPU, the other is a name that random pipelines use.
    te.DotProductAttention = te.Elsewhere = lambda *arguments, **named: torch.nn.Identity()
    return te


@contextlib.contextmanager
def group_of(num_ranks):
    """A group that only looks like one: its collectives are never called."""
    import torch
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=num_ranks)
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()


def run(*arguments):
    return subprocess.run([test_te_export.PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def loaded(script):
    module = types.ModuleType("exported")
    exec(compile(script, "exported.py", "exec"), module.__dict__)  # of our own program
    return module


def fuser_of(te, sequential, exported):
    """TransformerEngine's fuser, after it has fused."""
    import torch

    (fuser,) = te.ops.Sequential._make_module_groups(sequential._modules.values())
    extras = [[None] * op.num_extra_inputs for op in fuser._basic_ops]
    x = torch.zeros(1, requires_grad=exported.TRAINS)
    fuser.maybe_fuse_ops(exported.TRAINS, exported.RECIPE, x, extras)
    return fuser


def differences(te, exported, capability):
    te_chains.set_device(capability)
    model = exported.Pipeline(device="cpu")
    for place in exported.PARAMETERS.values():
        if not exported.parameters_at(model, place):
            yield f"{place} is no parameter of the module"
    for name, expected in exported.PLAN.items():
        sequential = types.SimpleNamespace(_module_groups=[fuser_of(te, getattr(model, name), exported)])
        found = exported.plan_of(sequential, expected["differentiated"])
        for direction in found:
            entries = expected[direction]
            if entries != found[direction]:
                yield f"{name}, {direction}: TransformerEngine fuses {found[direction]}, Fuseline {entries}"


def sequential_of(script):
    """The text of the module and of its recipe, with all names of channels alike."""
    begin = script.index("te.ops.Sequential")
    text = script[begin : script.index("    def forward(self, ", begin)] + script[script.index("\nRECIPE") :]
    return re.sub(r'"[a-z0-9_.]+\.extra"', '"channel"', text[: text.index("# Shape")])


def import_difference(to_fuseline, exported, script, options, folder):
    """Whether a module that is written back as a pipeline is exported as the same module."""
    import torch

    tensors = {re.sub(r"\W", "_", n): torch.empty(s[0], dtype=s[1], device="meta") for n, s in exported.INPUTS.items()}
    arguments = re.search(r"self\.layers\(([^)]*)\)", script).group(1).split(", ")
    path = folder / "imported.fuseline"
    layers = exported.Pipeline(device="cpu").layers
    to_fuseline.save(layers, path, *(tensors[name] for name in arguments), recipe=exported.RECIPE)
    again = run("export", path, "--to", "te", *options)
    return [] if sequential_of(again) == sequential_of(script) else ["the module is another after it was imported"]


def parallelise(op, draw):
    """Linear layers of a tensor-parallel group that keep the shapes of the whole."""
    if "in_features" in op["attributes"]:
        op["attributes"]["tensor_parallel_mode"] = draw.choice(["none", "column", "row"])


def drawn(seed, num_ranks=1):
    """A random pipeline in which everything is read: TransformerEngine plans backward for what nobody reads, too."""
    document, draw = test_te_export.drawn(seed), random.Random(seed)
    body = document["pipeline"]
    for op in body["ops"] if num_ranks > 1 else []:
        parallelise(op, draw)
    made = [f"{op['id']}.y" for op in body["ops"] if op["op"] != "External"]  # its output cannot be the pipeline's
    made += [f"{op['id']}.extra" for op in body["ops"] if op["op"] == "MakeExtraOutput"]
    unread = sorted(set(made) - {source for source, _ in body["wires"]})
    body["outputs"] = [{"id": f"out{i}", "from": value} for i, value in enumerate(unread)]
    return document, draw.choice(["none", "delayed", "float8current"])


# With one of these, TransformerEngine's Userbuffers fuse and then stop with an error.
WITHOUT_USERBUFFERS = {"float8block", "nvfp4"}


def communicates(path):
    return "userbuffers_comm_name" in path.read_text(encoding="utf-8")


def cases(folder, seeds, num_ranks):
    """(name, path, options) of pipelines."""
    ranks = ["--ranks", num_ranks]
    for path in test_te_export.EXAMPLES:
        if communicates(path) != (num_ranks > 1):
            continue
        for recipe, device in RECIPES.items():
            if num_ranks == 1 or recipe not in WITHOUT_USERBUFFERS:
                yield f"{path.name} {recipe}", path, ["--recipe", recipe, "--device", device, *ranks]
        yield f"{path.name} forward", path, ["--pass", "forward", "--device", "sm_90", *ranks]
    for seed in seeds:
        document, recipe = drawn(seed, num_ranks)
        path = folder / "drawn.fuseline"
        path.write_text(json.dumps(document), encoding="utf-8")
        yield f"random {seed} {recipe}, ranks: {num_ranks}", path, ["--recipe", recipe, "--device", "sm_90", *ranks]


def files(paths):
    """Cases of pipelines under their own recipes."""
    for path in paths:
        is_blackwell = re.search("MXFP8|NVFP4", path.read_text(encoding="utf-8"))
        device = ["--device", "sm_100" if is_blackwell else "sm_90"]
        yield f"{path.name}, training", path, device
        yield f"{path.name}, inference", path, [*device, "--pass", "forward"]


def capability_of(arguments):
    return te_chains.DEVICES[arguments[arguments.index("--device") + 1]]


def check(te, to_fuseline, case, folder):
    """The number of modules of a case, and what differs."""
    name, path, arguments = case
    try:
        script = run("export", path, "--to", "te", *arguments)
    except subprocess.CalledProcessError as refused:
        return 0, [f"{name}: export ended with {refused.returncode}: {refused.stderr}"]
    exported = loaded(script)
    found = list(differences(te, exported, capability_of(arguments)))
    # A module of several ranks has the sizes of one; a pipeline has those of the whole layers.
    is_whole = "Formula_" not in script and "tensor_parallel_size" not in script
    if list(exported.PLAN) == ["layers"] and is_whole and path in test_te_export.EXAMPLES:
        found += import_difference(to_fuseline, exported, script, arguments, folder)
    return len(exported.PLAN), [f"{name}: {problem}" for problem in found]


def check_chain(te, seed, path, documented):
    """What differs between `fuse --rules te` and TransformerEngine's fuser; counts what is documented to differ."""
    chain = te_chains.Chain(seed)
    device = chain.draw.choice(list(te_chains.DEVICES) if chain.family != "grouped" else ["sm_90", "sm_100", "sm_100", "sm_103"])
    path.write_text(json.dumps(chain.document()), encoding="utf-8")
    direction = [] if chain.trains else ["--pass", "forward"]
    done = subprocess.run([test_te_export.PROGRAM, "fuse", path, "--rules", "te", "--json", "--emulate", "--device", device,
                           *direction], capture_output=True, text=True)
    name = f"chain {seed} ({chain.family}, {chain.recipe['name']}, {device})"
    if done.returncode:
        return [f"{name}: fuse ended with {done.returncode}: {done.stderr}"]
    found = te_chains.fused_by_te(te, chain, te_chains.DEVICES[device], documented)
    ours = te_chains.fused_by_fuseline(json.loads(done.stdout), chain)
    directions = ["forward", "backward"] if chain.trains else ["forward"]
    return [f"{name}, {way}: TransformerEngine fuses {found[way]}, Fuseline {ours[way]}: {[op['op'] for op in chain.ops]}"
            for way in directions if found[way] != ours[way]]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="pipelines to compare instead of examples and random ones")
    parser.add_argument("--random", type=int, default=40, help="how many random pipelines, on one rank and on two")
    parser.add_argument("--chains", type=int, default=400, help="how many random chains")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    test_te_export.PROGRAM = options.program
    te = import_te()
    te_chains.register_grouped_mlp()
    te_chains.make_quantizers_on_the_cpu()
    sys.path.insert(0, str(ROOT / "resources" / "te"))
    import to_fuseline

    num_modules, num_problems, documented = 0, 0, collections.Counter()

    def report(problems):
        nonlocal num_problems
        num_problems += len(problems)
        for problem in problems:
            print(problem, flush=True)

    seeds = range(options.first, options.first + options.random)
    chains = range(options.first, options.first + options.chains)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for num_ranks in (1, 2):
            with group_of(num_ranks):
                given = files(options.files) if num_ranks == 1 else []
                for case in given if options.files else cases(folder, seeds, num_ranks):
                    num_found, found = check(te, to_fuseline, case, folder)
                    num_modules += num_found
                    report(found)
        for seed in [] if options.files else chains:
            report(check_chain(te, seed, folder / "chain.fuseline", documented))
    for reason, count in documented.items():
        print(f"documented: {reason}, in {count} chains")
    print(f"{num_modules} modules and {0 if options.files else len(chains)} chains, {num_problems} differences")
    return 1 if num_problems else 0


if __name__ == "__main__":
    sys.exit(main())
