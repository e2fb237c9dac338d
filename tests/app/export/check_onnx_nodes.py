#!/usr/bin/env python3
# Imports the models that ONNX tests its own backends with, runs and exports them, and compares with onnxruntime.
# SPDX-License-Identifier: Apache-2.0
"""check_onnx_nodes.py PROGRAM [PART OF A NAME...]: PROGRAM is fuseline. A node that is no op of Fuseline may be refused,
with a sentence; what is imported has to be valid, to run, to give the outputs of the test, and to come back from an
export. Ends with 1 where one of these fails, and with 77 where packages are missing: `pip install onnx onnxruntime
safetensors`."""

import collections
import importlib.util
import pathlib
import sys
import tempfile
import warnings

for package in ("numpy", "onnx", "onnxruntime", "safetensors"):
    if importlib.util.find_spec(package) is None:
        print(f"Skipped: this Python has no {package}.")
        sys.exit(77)

import numpy
import onnx
import onnx.backend.test.case.node
import onnxruntime
import safetensors

from onnxruntime_comparison import PROBLEMS, Crashed, Refused, error_of, error_of_round_trip, fuseline, import_model

# Of the largest value: one unit of float16 is 1e-3.
TOLERANCE = 2e-3


def models_in_files():
    for folder in sorted((pathlib.Path(onnx.__file__).parent / "backend/test/data").glob("*/*")):
        path = folder / "model.onnx" if folder.is_dir() else folder
        tensors = [[onnx.numpy_helper.to_array(onnx.load_tensor(each)) for each in sorted(folder.glob(f"*_0/{kind}_*.pb"))]
                   for kind in ("input", "output")]
        if path.suffix == ".onnx" and path.exists():
            yield f"{folder.parent.name}/{folder.name}", onnx.load(path), tensors


def models_of_nodes():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = onnx.backend.test.case.node.collect_testcases(None)
    for case in cases:
        if case.model is not None:
            yield f"node/{case.name}", case.model, case.data_sets[0]


def are_tensors(values):
    return all(isinstance(value, (numpy.ndarray, numpy.generic)) for value in values)


def result_of(program, model, inputs, outputs):
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        (folder / "m.onnx").write_bytes(model.SerializeToString())
        try:
            imported = import_model(program, folder)
        except Refused:
            return "refused"
        fuseline(program, "validate", folder / "m.fuseline")
        if not inputs or not are_tensors(inputs):
            return "imported"
        inputs = [numpy.asarray(value) for value in inputs]
        expected = {each.name: numpy.asarray(value) for each, value in zip(model.graph.output, outputs)
                    if are_tensors([value])}
        try:
            errors = [error_of(program, folder, imported, inputs, expected=expected),
                      error_of_round_trip(program, folder, imported, inputs)]
        except Refused as refused:
            # Extents that only the data say, as those of AffineGrid, are symbols, which nobody sets here.
            if "the given tensor is" not in str(refused):
                raise
            return "imported"
        except (*PROBLEMS, TypeError):  # of onnxruntime: types that it or numpy lacks
            return "imported"
        known = [error for error in errors if error is not None]
        if any(error > TOLERANCE for error in known):
            raise Refused(f"errors {errors}")
        return "compared" if known else "imported"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    counts = collections.Counter()
    for models in (models_in_files(), models_of_nodes()):
        for name, model, (inputs, outputs) in models:
            if sys.argv[2:] and not any(part in name for part in sys.argv[2:]):
                continue
            try:
                result = result_of(sys.argv[1], model, inputs, outputs)
            except (Refused, Crashed) as problem:
                result = "failed"
                print(f"{name}: {problem}", flush=True)
            counts[result] += 1
    print(", ".join(f"{count} {result}" for result, count in sorted(counts.items())))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
