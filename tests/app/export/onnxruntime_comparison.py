# Imports a model of ONNX, runs the pipeline, and compares both with what onnxruntime computes.
# SPDX-License-Identifier: Apache-2.0
"""A model and all that is made of it are in one folder: m.onnx, m.fuseline, w.safetensors, again.onnx."""

import collections
import json
import subprocess

import numpy
import onnx
import onnxruntime
import safetensors.numpy

# Of onnxruntime: models that are wrong, nodes and types that it lacks.
PROBLEMS = (RuntimeError, *(getattr(onnxruntime.capi.onnxruntime_pybind11_state, name)
                 for name in ("Fail", "InvalidArgument", "InvalidGraph", "NotImplemented", "RuntimeException")))


class Refused(Exception):
    """Of fuseline: a sentence."""


class Crashed(Exception):
    """Of fuseline: none of its exit codes."""


def fuseline(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=300, errors="replace")
    if done.returncode not in range(4):
        raise Crashed(f"{arguments[0]}: {done.returncode}, {done.stderr[-300:]}")
    if done.returncode:
        raise Refused(f"{arguments[0]}: {(done.stderr.strip().splitlines() or ['no message'])[-1][:160]}")
    return done.stdout


def import_model(program, folder, extents=None):
    """What --json says of m.onnx. extents: of dynamic dimensions, if it has them."""
    arguments = ["import", folder / "m.onnx", "-o", folder / "m.fuseline", "--json", "--force"]
    if extents:
        known = json.loads(json.loads(fuseline(program, *arguments))["text"]).get("symbols", {})
        arguments += [f"--set={name}={value}" for name, value in extents.items() if name in known]
    try:
        return json.loads(fuseline(program, *arguments, "--weights", folder / "w.safetensors"))
    except Refused as refused:
        if "no weights" not in str(refused):
            raise
    return json.loads(fuseline(program, *arguments))


def ops_of(document):
    """How often each op is in it, with those in instances of blocks."""
    counts = collections.Counter()
    blocks = document.get("blocks", {})

    def add(ops):
        for op in ops:
            name = op["op"]
            add(blocks[name[6:]]["ops"]) if name.startswith("block:") else counts.update([name])

    add(document["pipeline"]["ops"])
    return counts


# ---- onnxruntime


def session_of(model):
    """One that does not change the graph."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def with_outputs(path, names):
    """The model with these of its tensors as outputs, as far as it has them."""
    model = onnx.load(path)
    known = {name for node in model.graph.node for name in node.output}
    present = {output.name for output in model.graph.output}
    for name in names:
        if name in known - present:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
            present.add(name)
    return model, [name for name in names if name in present]


def computed(path, names, inputs):
    """Tensors of the model by name."""
    model, outputs = with_outputs(path, names)
    session = session_of(model)
    feeds = dict(zip((each.name for each in session.get_inputs()), inputs))
    return dict(zip(outputs, session.run(outputs, feeds))) | feeds


def distance(value, expected):
    """The largest error, relative to the largest value; not a number in the same places is right."""
    value, expected = value.astype(numpy.float64), expected.astype(numpy.float64)
    if value.shape != expected.shape or (numpy.isnan(value) != numpy.isnan(expected)).any():
        return float("inf")
    with numpy.errstate(invalid="ignore"):
        errors = numpy.abs(numpy.where(value == expected, 0, value - expected))
    finite = numpy.abs(expected[numpy.isfinite(expected)])
    largest = max(finite.max() if finite.size else 0, 1e-30)
    return float(numpy.nan_to_num(errors, nan=0).max() / largest) if errors.size else 0.0


# ---- pipelines


def found(dumped, name):
    return dumped.get(name, next((value for key, value in dumped.items() if key.startswith(name + ".")), None))


def as_declared(tensor, dtype):
    """Where a model converts what all read, the pipeline has it converted. numpy has no bf16, which stays f32 here."""
    return numpy.array(tensor, order="C", dtype={"f16": numpy.float16, "f32": numpy.float32}.get(dtype, tensor.dtype))


def error_of(program, folder, imported, inputs, extents=None, expected=None):
    """Of the worst output. None: onnxruntime gives nothing to compare with, as of some exports that PyTorch gets wrong,
    or does not make all that the pipeline needs, as parts of fused nodes. extents: of symbols. expected: outputs by
    name, else those of onnxruntime."""
    document = json.loads(imported["text"])
    outputs = {output["id"] for output in document["pipeline"]["outputs"]}
    dtypes = {each["id"]: each["dtype"] for each in document["pipeline"]["inputs"]}
    symbols = [f"--set={name}={value}" for name, value in (extents or {}).items() if name in document.get("symbols", {})]
    try:
        tensors = computed(folder / "m.onnx", list(imported["tensors"].values()), inputs) | (expected or {})
    except PROBLEMS:
        return None
    weights = folder / "w.safetensors"
    given = safetensors.numpy.load_file(weights) if weights.exists() else {}
    for name, tensor in imported["tensors"].items():
        if name in outputs or name in given:
            continue
        if tensor not in tensors:
            return None
        given[name] = as_declared(tensors[tensor], dtypes.get(name))
    safetensors.numpy.save_file(given, folder / "all.safetensors")
    fuseline(program, "run", folder / "m.fuseline", *symbols, "--pass", "forward", "--device", "reference",
             "--iterations", "1", "--variants", "fused", "--no-peaks", "--tensors", folder / "all.safetensors", "--dump",
             folder / "dump.safetensors", "--force")
    dumped = safetensors.numpy.load_file(folder / "dump.safetensors")
    pairs = [(found(dumped, output), tensors.get(imported["tensors"][output])) for output in outputs]
    errors = [distance(value, wanted) for value, wanted in pairs if value is not None and wanted is not None]
    return max(errors, default=None)


def error_of_round_trip(program, folder, imported, inputs):
    """Error of the model that an export writes of the pipeline, for the same inputs. Where nodes before or after the
    pipeline could not be kept, what they compute is given and compared. None: as above."""
    weights = folder / "w.safetensors"
    given = ["--tensors", weights] if weights.exists() else []
    fuseline(program, "export", folder / "m.fuseline", "--to", "onnx", "-o", folder / "again.onnx", "--force", *given)
    try:
        tensors = computed(folder / "m.onnx", list(imported["tensors"].values()), inputs)
        session = session_of(onnx.load(folder / "again.onnx"))
        names = {each.name: imported["tensors"].get(each.name, each.name) for each in session.get_inputs()}
        types = {"tensor(float16)": "f16", "tensor(float)": "f32"}
        if any(name not in tensors for name in names.values()):
            return None
        made = session.run(None, {each.name: as_declared(tensors[names[each.name]], types.get(each.type))
                                  for each in session.get_inputs()})
    except PROBLEMS:
        return None
    wanted = tensors | computed(folder / "m.onnx", [each.name for each in session.get_outputs()], inputs)
    pairs = [(value, wanted.get(imported["tensors"].get(each.name, each.name)))
             for each, value in zip(session.get_outputs(), made)]
    return max((distance(value, wanted) for value, wanted in pairs if wanted is not None), default=None)
