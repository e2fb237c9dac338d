#!/usr/bin/env python3
# Tests what `fuseline export --to dlfw-inspect` writes: as YAML, and by the rules of nvidia-dlfw-inspect.
# SPDX-License-Identifier: Apache-2.0
"""test_inspect_export.py PROGRAM [TEST...]: PROGRAM is fuseline. Compares with PyYAML where there is one."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import yaml
except ImportError:
    yaml = None

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "resources" / "examples").glob("*.fuseline"))
RECIPES = ["None", "DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling", "MXFP8BlockScaling", "NVFP4BlockScaling"]
PROGRAM = ""

# Source: the docstrings of transformer_engine/debug/features, 2.19.
STATISTICS = {
    "LogTensorStats": {"min", "max", "mean", "std", "l1_norm", "l2_norm", "cur_amax", "dynamic_range"},
    "LogFp8TensorStats": {"underflows%", "scale_inv_min", "scale_inv_max", "mse", "fp8_delayed_scaling_overflows%"},
    "LogNvfp4TensorStats": {"underflows%", "mse"},
}
LOG_KEYS = {"enabled", "tensors", "stats", "freq", "start_step", "end_step"}
GEMMS_OF = {"activation": {"fprop", "wgrad"}, "weight": {"fprop", "dgrad"}, "gradient": {"dgrad", "wgrad"}}


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False)


def export(path, *options):
    result = run("export", path, "--to", "dlfw-inspect", *options)
    if result.returncode != 0:
        raise RuntimeError(result.stderr)
    return result.stdout


# ---- the part of YAML that is written, read strictly

ESCAPE = re.compile(r'\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(["\\]))')


def scalar(text):
    if text.startswith("'"):
        assert re.fullmatch(r"'(?:[^']|'')*'", text), text
        return text[1:-1].replace("''", "'")
    if text.startswith('"'):
        assert re.fullmatch(r'"(?:[^"\\]|\\.)*"', text), text
        return ESCAPE.sub(lambda m: m.group(4) or chr(int(m.group(1) or m.group(2) or m.group(3), 16)), text[1:-1])
    if text in ("True", "False"):
        return text == "True"
    if re.fullmatch(r"[0-9]+", text):
        return int(text)
    if text.startswith("["):
        assert re.fullmatch(r"\[[a-z0-9_%]+(, [a-z0-9_%]+)*\]", text), text
        return text[1:-1].split(", ")
    raise AssertionError(f"neither quoted nor known: {text}")


def read(text):
    """Mappings by indents of two, comments on lines of their own."""
    root, stack = {}, []
    for line in text.split("\n"):
        if not line or line.lstrip(" ").startswith("#"):
            continue
        found = re.fullmatch(r"( *)([A-Za-z_][A-Za-z0-9_]*):(?: (.+))?", line)
        assert found and len(found.group(1)) % 2 == 0, line
        depth = len(found.group(1)) // 2
        assert depth <= len(stack), line
        del stack[depth:]
        mapping = stack[-1] if stack else root
        key = found.group(2)
        assert key not in mapping, f"twice: {key}"
        mapping[key] = {} if found.group(3) is None else scalar(found.group(3))
        if found.group(3) is None:
            stack.append(mapping[key])
    return root


class Inspect(unittest.TestCase):
    def sections(self, text):
        sections = read(text)
        if yaml:
            self.assertEqual(sections, yaml.safe_load(text))
        return sections

    def check_section(self, section):
        self.assertEqual(set(section), {"enabled", "layers", "transformer_engine"})
        self.assertEqual(set(section["layers"]), {"layer_name_regex_pattern"})
        features = dict(section["transformer_engine"])
        kept = set(features.pop("DisableQuantizationGEMM", {"gemms": []})["gemms"])
        if features.pop("DisableQuantizationLayer", None):
            kept = {"fprop", "dgrad", "wgrad"}
        logged = []
        for name, feature in features.items():
            self.assertEqual(set(feature), LOG_KEYS)
            self.assertLessEqual(set(feature["stats"]), STATISTICS[name])
            self.assertGreaterEqual(feature["freq"], 10, "the tool is slow in every step that logs")
            self.assertLess(feature["start_step"], feature["end_step"])
            for tensor in feature["tensors"]:
                logged.append(tensor)
                if name != "LogTensorStats":
                    self.assertFalse(kept & GEMMS_OF[tensor], f"{tensor} is not quantized for all that read it")
        self.assertEqual(len(logged), len(set(logged)), "two features must not share a tensor")

    def check_found_once(self, sections, names):
        for name in names:
            found = [key for key, each in sections.items() if re.search(each["layers"]["layer_name_regex_pattern"], name)]
            self.assertEqual(len(found), 1, f"{name}: {found}")

    def test_every_example_under_every_recipe(self):
        for path in EXAMPLES:
            inferred = json.loads(run("infer", path, "--json").stdout)
            linears = {op["id"] for op in inferred["ops"] if op["op"] in ("BasicLinear", "GroupedLinear")}
            for recipe in RECIPES:
                with self.subTest(path=path.name, recipe=recipe):
                    if not linears:
                        self.assertIn("has none", run("export", path, "--to", "dlfw-inspect").stderr)
                        continue
                    sections = self.sections(export(path, "--recipe", recipe))
                    for section in sections.values():
                        self.check_section(section)

    def test_names_of_any_characters(self):
        ids = ["fc(1)+", "it's", "a|b", "[x]*", "^$", "\\d", "{2}", "é中", "\u2028", "#c", "%s", "&a", "𝄞"]
        ops = [{"id": name, "op": "Linear", "attributes": {"in_features": 32, "out_features": 32}} for name in ids]
        wires = [["x", ids[0] + ".x"]] + [[a + ".y", b + ".x"] for a, b in zip(ids, ids[1:])]
        document = {
            "format": "fuseline-pipeline",
            "formatVersion": {"major": 1, "minor": 0},
            "pipeline": {
                "inputs": [{"id": "x", "dtype": "bf16", "shape": [64, 32]}],
                "ops": ops,
                "wires": wires,
                "outputs": [{"id": "y", "from": ids[-1] + ".y"}],
            },
            "recipe": {"name": "MXFP8BlockScaling", "overrides": [{"op": ids[0], "gemm": "wgrad", "format": "high_precision"}]},
        }
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "odd: #name.fuseline"
            path.write_text(json.dumps(document), encoding="utf-8")
            sections = self.sections(export(path))
        self.check_found_once(sections, ids)
        others = ["fc1", "its", "a", "b", "x", "", "2", "d", "fc(1)+x", "xfc(1)+"]
        for each in sections.values():
            for name in others:
                self.assertIsNone(re.search(each["layers"]["layer_name_regex_pattern"], name), name)
        self.assertEqual(len(sections), 2)

    def test_a_run_chooses_the_layers_that_lost_most(self):
        with tempfile.TemporaryDirectory() as folder:
            record = pathlib.Path(folder) / "mlp.fuserun"
            example = ROOT / "resources" / "examples" / "gpt_mlp.fuseline"
            sizes = ["--set", "M=32", "--set", "H=64", "--set", "F=128"]
            measured = run("run", example, *sizes, "--recipe", "MXFP8BlockScaling", "--iterations", 2, "--numerics",
                           "--no-peaks", "--quiet", "-o", record)
            self.assertEqual(measured.returncode, 0, measured.stderr)
            text = export(record)
            losses = json.loads(record.read_text())["numerics"]["quantizedTensors"]
        sections = self.sections(text)
        for section in sections.values():
            self.check_section(section)
        noisiest = min(losses, key=lambda copy: copy["signalToNoise"])["owner"]
        on = [each["layers"]["layer_name_regex_pattern"] for each in sections.values() if each["enabled"]]
        self.assertEqual(on, [f"^{noisiest}$"])
        self.check_found_once(sections, {copy["owner"] for copy in losses})


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
