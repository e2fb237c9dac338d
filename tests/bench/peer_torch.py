#!/usr/bin/env python3
# Builds the PyTorch peer of a pipeline file, checks that it computes the same, and measures both interleaved.
# SPDX-License-Identifier: Apache-2.0
"""Compares a pipeline in fuseline with the same pipeline in PyTorch.

The peer is made from what `fuseline infer --json` says of the file. Both get the same tensors. First every variant of
the peer is compared with fuseline, outputs and gradients, by the tolerances of TransformerEngine's tests: one that
differs gets no figures. Then all of them take turns with `fuseline run`, round by round in random order. A ratio is the
median time of a variant over that of fuseline in the same rounds, with a 95 % interval from resampled rounds: above 1
fuseline is faster, and an interval that holds 1 says nothing.

Exit codes: 0 done, 1 invalid input or an op without a counterpart in PyTorch, 2 usage, 3 no PyTorch or no such device,
4 a run failed, 5 the results differ."""

import argparse
import importlib
import json
import os
import pathlib
import platform
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from peer import pipeline as pipelines  # noqa: E402
from peer.program import FAILED, NO_DEVICE, UNMET, USAGE, PeerError, Program, find_program  # noqa: E402

MODES = ("eager", "compile", "reduce-overhead", "max-autotune", "freeze", "fp8", "fp8-compile",
         "fp8-reduce-overhead")
FUSELINE_VARIANTS = ("fused", "unfused")
NO_RECIPE = "None"
MOST_FOR_NEIGHBOURS = 0.02  # of the machine's CPU time, while it is measured
# Settings of libraries that change times; they are named in the output where they are set.
SETTINGS = ("OMP_", "GOMP_", "KMP_", "MKL_", "DNNL_", "ONEDNN_", "MALLOC_", "LD_PRELOAD", "TORCHINDUCTOR_",
            "PYTORCH_", "CUDA_VISIBLE", "CUBLAS_", "NVIDIA_TF32", "FUSELINE_")
# Read before PyTorch adds its own.
VARIABLES = {name: value for name, value in sorted(os.environ.items()) if name.startswith(SETTINGS)}


def parser():
    made = argparse.ArgumentParser(prog="peer_torch.py", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("file", metavar="FILE.fuseline", help="the pipeline")
    what = made.add_argument_group("what is run")
    what.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    what.add_argument("--pass", dest="pass_kind", choices=("train", "forward"), default="train",
                      help="train: forward and backward (default)")
    what.add_argument("--set", dest="symbols", metavar="SYMBOL=VALUE", nargs="+", action="extend", default=[],
                      help="replaces the value of a symbol of the file")
    what.add_argument("--dtype", choices=("f32", "f16", "bf16"),
                      help="runs all tensors in this type, whatever the file says")
    what.add_argument("--recipe", help="the quantization recipe; without it the file decides")
    what.add_argument("--recipe-set", metavar="KEY=VALUE", nargs="+", action="extend", default=[],
                      help="a setting of the recipe")
    what.add_argument("--modes", type=_list_of(MODES), metavar="MODE,...",
                      help=f"of {', '.join(MODES)}. Default: eager and compile; on a GPU reduce-overhead, and the FP8 "
                           "modes where the recipe is of FP8; with --pass forward on a CPU freeze, which may pack "
                           "weights as fuseline does. FP8 modes quantize with one scale a tensor, found in the step")
    what.add_argument("--variants", type=_list_of(FUSELINE_VARIANTS), default=["fused"], metavar="VARIANT,...",
                      help="of fuseline: fused, unfused (default: fused); the first is what ratios refer to")
    how = made.add_argument_group("how it is measured")
    how.add_argument("--iterations", type=_positive, metavar="N",
                     help="steps of a turn (default: as many as take the eager peer 0.3 s)")
    how.add_argument("--rounds", type=_positive, default=15, metavar="N", help="turns of every variant (default: 15)")
    how.add_argument("--warmup", type=_positive, default=3, metavar="N",
                     help="steps before every turn that do not count (default: 3)")
    how.add_argument("--threads", type=_positive, metavar="N",
                     help="CPU threads of both (default: as many as this process may use)")
    how.add_argument("--seed", type=int, default=0, help="of the tensors (default: 0)")
    act = made.add_argument_group("what is done")
    act.add_argument("--check", action="store_true",
                     help="compares the results and measures nothing; without --modes the eager peer alone")
    act.add_argument("--no-check", action="store_true",
                     help="measures unchecked, for sizes whose tensors are too many to write; the output says so")
    act.add_argument("--list", action="store_true",
                     help="prints the ops of the peer and does nothing else; needs no PyTorch")
    act.add_argument("--json", metavar="OUT",
                     help="writes everything as JSON; - is standard output, in place of the table")
    act.add_argument("--fuseline", metavar="PATH", help="the program (default: build/release, build/dev, then the PATH)")
    return made


def _list_of(choices):
    def read(text):
        names = text.split(",")
        unknown = [name for name in names if name not in choices]
        if unknown:
            raise argparse.ArgumentTypeError(f'"{unknown[0]}" is none of {", ".join(choices)}')
        return list(dict.fromkeys(names))

    return read


def _positive(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f'"{text}" is no positive number')
    return int(text)


def pipeline_options(arguments, has_recipe=True):
    """As fuseline takes them."""
    options = ["--pass", arguments.pass_kind, "--device", arguments.device]
    for symbol in arguments.symbols:
        options += ["--set", symbol]
    if not has_recipe:
        return options + ["--recipe", NO_RECIPE]
    if arguments.recipe:
        options += ["--recipe", arguments.recipe]
    for setting in arguments.recipe_set:
        options += ["--recipe-set", setting]
    return options


def file_of(program, arguments, scratch):
    """The file, or a copy in another dtype; fuseline reads it first, since it has the better words for what is wrong."""
    if not arguments.dtype:
        return arguments.file
    program.infer(arguments.file)
    document = pipelines.load_document(arguments.file)
    path = pathlib.Path(scratch) / pathlib.Path(arguments.file).name
    path.write_text(json.dumps(pipelines.with_dtype(document, arguments.dtype)), encoding="utf-8")
    return str(path)


def import_torch():
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise PeerError(f"There is no PyTorch for {sys.executable} ({error}); install it with: "
                        f"{sys.executable} -m pip install torch", NO_DEVICE) from error


def device_of(torch, name):
    if name != "cpu" and not name.startswith("cuda"):
        raise PeerError(f"The device is {name}; PyTorch is compared on cpu, cuda or cuda:N.", USAGE)
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise PeerError(f"PyTorch {torch.__version__} finds no CUDA device; use --device cpu.", NO_DEVICE)
    return torch.device(name)


class Session:
    """One pipeline, its peer and the tensors of both."""

    def __init__(self, arguments, scratch):
        self.arguments = arguments
        self.scratch = scratch
        threads = arguments.threads or len(os.sched_getaffinity(0))
        self.program = Program(find_program(arguments.fuseline), pipeline_options(arguments), threads)
        self.file = file_of(self.program, arguments, scratch)
        self.pipeline = pipelines.describe(self.program, self.file, scratch)
        self.threads = threads

    def start(self):
        """What needs PyTorch."""
        torch = import_torch()
        from peer import check, measure, tensors, variants  # they import torch
        self.check, self.measure, self.variants = check, measure, variants
        self.device = device_of(torch, self.arguments.device)
        torch.set_num_threads(self.threads)
        self.version = torch.__version__
        self.references = {}  # is it under the recipe? -> what fuseline computes
        self.drawn = tensors.draw(self.pipeline, self.arguments.seed)
        self.given = check.write_given(self.drawn, self.scratch)
        self.record = self._first_run()
        self.recipe = self.record["settings"]["recipe"] or NO_RECIPE
        return self

    def _first_run(self):
        """The record of a run, the results of which are kept if anything is compared with them."""
        if self.arguments.no_check:
            once = ("--tensors", self.given, "--variants", "fused", "--iterations", 1, "--warmup", 0)
            return self.program.run(self.file, *once)["record"]
        results, record = self.check.fuseline_results(self.program, self.file, self.given, self.scratch)
        self.references[True] = results
        return record

    def reference(self, mode):
        """What a mode is compared with: FP8 with fuseline's recipe, everything else with fuseline without one."""
        is_under_recipe = self.recipe == NO_RECIPE or mode.startswith("fp8")
        if is_under_recipe not in self.references:
            plain = Program(self.program.path, pipeline_options(self.arguments, has_recipe=False), self.threads)
            self.references[False], _ = self.check.fuseline_results(plain, self.file, self.given, self.scratch)
        return self.references[is_under_recipe]

    def modes(self):
        if self.arguments.modes:
            return self.arguments.modes
        if self.arguments.check:
            return ["eager"]
        return self.variants.default_modes(self.device, self.pipeline.is_training, self.recipe)

    def make_variants(self):
        """Variants that run, and mode -> sentence of those that do not."""
        fields = self.record["settings"].get("recipeFields") or {}
        made, refused = [], {}
        for mode in self.modes():
            progress(f"preparing torch {mode}")
            variant = self.variants.make(mode, self.pipeline, self.drawn, self.device, self.recipe, fields)
            if isinstance(variant, str):
                refused[mode] = variant
            else:
                made.append(variant)
        return made, refused

    def compare(self, made):
        """Comparisons, and sentences about what can only be counted."""
        if self.pipeline.drops():
            return [], self.check.check_dropout(self.pipeline, self.references[True])
        found = [comparison for variant in made for comparison in
                 self.check.compare(self.pipeline, variant.results(), self.reference(variant.mode), variant.mode)]
        self.references.clear()  # memory for what is measured
        return found, []

    def environment(self):
        return {
            "fuseline": {"program": self.program.path, "version": self.record["createdWith"],
                         **self.record["environment"]},
            "torch": {"version": self.version, "python": platform.python_version(), **self.measure.machine(self.device)},
            "variables": VARIABLES,
        }

    def settings(self):
        shapes = {name: list(self.pipeline.edges[name].shape) for name in self.pipeline.inputs}
        return {"pipeline": self.arguments.file, "inputs": shapes, "symbols": self.record["settings"]["symbols"],
                "pass": self.arguments.pass_kind, "device": self.arguments.device, "recipe": self.recipe,
                "dtypes": sorted({spec.dtype for spec in self.pipeline.edges.values()}), "threads": self.threads,
                "warmup": self.arguments.warmup, "rounds": self.arguments.rounds, "seed": self.arguments.seed}

    def notes(self):
        notes = ["Inputs, parameters and output gradients of both are the same tensors."]
        if self.pipeline.drops():
            names = ", ".join(op.id for op in self.pipeline.drops())
            notes.append(f"{names}: dropped at random, by each program in its own way; results are not compared, only "
                         "how many elements fuseline drops.")
        if any(op.kind == "GroupedLinear" and op.inputs[1] in self.pipeline.inputs for op in self.pipeline.ops):
            notes.append("The peer knows the sizes of groups on the host, in advance; fuseline reads them in the step.")
        if any(op.kind == "TopKRouter" for op in self.pipeline.ops):
            notes.append("In 16 bits a token that is near two experts may go to another one in each program, and differ "
                         "with all its row. `--dtype f32` compares the rest.")
        if self.recipe != NO_RECIPE:
            notes.append(f"The recipe {self.recipe} is fuseline's; PyTorch computes in high precision and is checked "
                         "against fuseline without it. FP8 modes are checked against fuseline with it; they find one "
                         "scale for each tensor in the step, and quantize weights in it, too.")
        measured = self.record["environment"].get("threads")
        if self.device.type == "cpu" and str(measured) != str(self.threads):
            notes.append(f"fuseline ran with {measured} threads, PyTorch with {self.threads}: not comparable.")
        return notes


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def end_progress():
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def differing(comparisons, problems):
    return [f"torch {c.mode}, {c.tensor} ({c.variant}): {c.words}; error {c.error:.2g}, at most {c.tolerance:.2g}, of an "
            f"element {c.worst:.2g} root mean squares." for c in comparisons if c.words] + problems


def check_text(comparisons, problems, pipeline):
    """One line a mode, then what differs."""
    lines = []
    for mode in dict.fromkeys(c.mode for c in comparisons):
        of = [c for c in comparisons if c.mode == mode]
        worst = max(of, key=lambda c: c.error / c.tolerance if c.error == c.error else float("inf"))
        lines.append(f"torch {mode}: {sum(not c.words for c in of)} of {len(of)} tensors agree with fuseline; the "
                     f"farthest is {worst.tensor} ({worst.variant}), error {worst.error:.2g} of at most "
                     f"{worst.tolerance:.2g}")
    if pipeline.drops() and not problems:
        lines.append("fuseline drops as many elements as it should; nothing else was compared")
    return "\n".join(lines + differing(comparisons, problems))


def run(arguments, show=True):
    """The exit code. Not shown: only --json is written."""
    with tempfile.TemporaryDirectory(prefix="peer_torch_") as scratch:
        session = Session(arguments, scratch)
        if arguments.list:
            print("\n".join(map(str, session.pipeline.ops)))
            return 0
        session.start()
        made, refused = session.make_variants()
        result = {"format": "fuseline-peer", "formatVersion": {"major": 1, "minor": 0}, "settings": session.settings(),
                  "environment": session.environment(), "notes": session.notes(), "refused": refused,
                  "ops": [str(op) for op in session.pipeline.ops]}
        comparisons, problems = ([], []) if arguments.no_check else session.compare(made)
        result["check"] = {"comparisons": [vars(c) for c in comparisons], "problems": problems}
        good = [variant for variant in made if not any(c.words for c in comparisons if c.mode == variant.mode)]
        if not arguments.check:
            result["variants"] = measured(session, good, result)
        end_progress()
        write(arguments, result, check_text(comparisons, problems, session.pipeline), show)
        if differing(comparisons, problems):
            return UNMET
        return 0 if made else FAILED


def measured(session, variants, result):
    """Rows of the table."""
    if not variants:
        return []
    arguments = session.arguments
    iterations = arguments.iterations or session.measure.steps_for(variants[0])
    result["settings"]["iterations"] = iterations
    turns = session.measure.turns_of(session.program, session.file, session.given, variants, arguments.variants,
                                     iterations, arguments.warmup)
    neighbours = session.measure.Neighbours()
    samples = session.measure.measure(turns, arguments.rounds, progress)
    share = result["settings"]["neighboursShare"] = neighbours.share()
    if share is not None and share > MOST_FOR_NEIGHBOURS:
        result["notes"].append(f"Other processes took {share:.0%} of the machine meanwhile: these times are theirs, too. "
                               "Measure again on a quiet machine.")
    rows = session.measure.report(samples, turns[0].name)
    first_steps = {f"torch {variant.mode}": variant.first_step_s for variant in variants}
    return [{**row, "firstStepS": first_steps.get(row["name"])} for row in rows]


def write(arguments, result, checked, show):
    if arguments.json and arguments.json != "-":
        pathlib.Path(arguments.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if arguments.json == "-":
        print(json.dumps(result, indent=1))
    elif show:
        print(text_of(result, checked or ("not checked" if arguments.no_check else "")))


def text_of(result, checked):
    parts = [heading(result), checked, *(f"torch {mode}: not run: {why}" for mode, why in result["refused"].items())]
    if result.get("variants"):
        parts += ["", table(result["variants"]), ""]
    return "\n".join([*parts, *(f"note: {note}" for note in result["notes"])])


def heading(result):
    settings, environment = result["settings"], result["environment"]
    inputs = ", ".join(f"{name} {shape}" for name, shape in settings["inputs"].items())
    lines = [f"{settings['pipeline']}: {inputs}; {settings['pass']}, {'/'.join(settings['dtypes'])}, recipe "
             f"{settings['recipe']}, {settings['threads']} threads"]
    for name in ("fuseline", "torch"):
        lines.append(f"{name}: " + ", ".join(f"{key} {value}" for key, value in environment[name].items()))
    if environment["variables"]:
        lines.append("variables: " + ", ".join(f"{name}={value}" for name, value in environment["variables"].items()))
    if "iterations" in settings:
        lines.append(f"{settings['rounds']} rounds in random order, {settings['iterations']} steps a turn behind "
                     f"{settings['warmup']} that do not count")
    return "\n".join(lines)


def table(rows):
    base = rows[0]["name"]
    width = max(len(row["name"]) for row in rows)
    lines = [f"{'':{width}}  {'median ms':>10}  {'quartiles ms':>19}  {'time / ' + base:>26}  {'first step s':>12}"]
    for row in rows:
        ratio, first = row["timeOverBase"], row["firstStepS"]
        times = f"{row['median'] / 1e6:10.3f}  {row['lowerQuartile'] / 1e6:9.3f}-{row['upperQuartile'] / 1e6:9.3f}"
        interval = "" if row["name"] == base else f"{ratio['median']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}]"
        first_text = "" if first is None else f"{first:.2f}"
        lines.append(f"{row['name']:{width}}  {times}  {interval:>26}  {first_text:>12}".rstrip())
    return "\n".join(lines)


def main():
    arguments = parser().parse_args()
    try:
        if arguments.check and arguments.no_check:
            raise PeerError("--check and --no-check exclude each other.", USAGE)
        return run(arguments)
    except PeerError as error:
        end_progress()
        print(f"peer_torch.py: {error}", file=sys.stderr)
        return error.code
    except OSError as error:
        print(f"peer_torch.py: {error}", file=sys.stderr)
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
