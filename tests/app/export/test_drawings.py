#!/usr/bin/env python3
# Tests what `fuseline export` draws: SVG files, read with Python's own parser.
# SPDX-License-Identifier: Apache-2.0
"""test_drawings.py PROGRAM [TEST...]: PROGRAM is fuseline, built with Graphviz. Needs nothing else.
FUSELINE_UPDATE_GOLDEN=1 writes the golden file anew."""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

from test_te_export import drawn

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "resources" / "examples").glob("*.fuseline"))
GOLDEN = ROOT / "tests" / "golden" / "cli"
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = ["<script>alert(1)<b>", "a&amp;b", "]]>", "\\N\\G{}|", "'", "-->", "x" * 200, "größe→形"]
PROGRAM = ""


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True, encoding="utf-8").stdout


def svg_of(path, *options):
    return run("export", path, "--to", "svg", *options)


def plan_of(path, *options):
    return json.loads(run("export", path, "--to", "plan", *options))


def written(folder, document, name="drawn.fuseline"):
    path = pathlib.Path(folder) / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def chain(ids, kind="GELU"):
    ends = [f"{op}.y" for op in ids]
    return {"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0},
            "pipeline": {"inputs": [{"id": "x", "dtype": "f32", "shape": [4, 16]}],
                         "ops": [{"id": op, "op": kind, "attributes": {}} for op in ids],
                         "wires": [[start, f"{op}.x"] for start, op in zip(["x", *ends], ids)],
                         "outputs": [{"id": "y", "from": ends[-1]}]}}


class Rect:
    def __init__(self, element):
        self.left, self.top = float(element.get("x")), float(element.get("y"))
        self.right, self.bottom = self.left + float(element.get("width")), self.top + float(element.get("height"))

    def holds(self, other):
        return self.left <= other.left and other.right <= self.right and self.top <= other.top and other.bottom <= self.bottom

    def meets(self, other):
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom


class Drawing:
    """The passes of an SVG, by name: boxes of ops and ends, and frames with their titles."""

    def __init__(self, text):
        self.root = xml.etree.ElementTree.fromstring(text)
        self.passes = {group.get("class"): group for group in self.root.findall(f"{SVG}g")}

    def ops(self, name):
        """[(id, type, place)]"""
        found = []
        for group in self.passes[name].iter(f"{SVG}g"):
            if group.get("class") == "op":
                op, kind = group.find(f".//{SVG}title").text.split("\n")[0].rsplit(": ", 1)
                found.append((op, kind, Rect(group.find(f".//{SVG}rect"))))
        return found

    def frames(self, name):
        """[(kind, title, place)]"""
        return [(group.get("class"), group.find(f"{SVG}title").text, Rect(hull))
                for group in self.passes[name].findall(f"{SVG}g")
                for hull in group.findall(f"{SVG}rect") if hull.get("class") == "hull"]

    def structure(self):
        """All but where things are."""
        lines = []
        for element in self.root.iter():
            if element.tag in (f"{SVG}style", f"{SVG}metadata") or not element.tag.startswith(SVG):
                continue
            words = [element.tag.removeprefix(SVG), element.get("class"), element.get("id"), element.get("fill"),
                     (element.text or "").strip()]
            lines.append(" ".join(filter(None, words)))
        return "\n".join(lines) + "\n"


class Svg(unittest.TestCase):
    def check_pass(self, drawing, name, entries):
        """Every op once, fused ops in frames that hold them and no other, and no box on another one."""
        ops = drawing.ops(name)
        planned = [op for entry in entries for op in entry["ops"]]
        self.assertEqual(collections.Counter(op for op, _, _ in ops), collections.Counter(planned))
        place = {op: rect for op, _, rect in ops}
        for op, rect in place.items():
            self.assertEqual([other for other in place if other != op and place[other].meets(rect)], [], op)
        frames = [(title, rect) for kind, title, rect in drawing.frames(name) if kind != "block"]
        fused = [entry for entry in entries if entry["rule"]]
        self.assertEqual(sorted(title for title, _ in frames), sorted(entry["name"] for entry in fused))
        held = [(title, sorted(op for op in place if rect.holds(place[op]))) for title, rect in frames]
        self.assertEqual(sorted(held), sorted((entry["name"], sorted(entry["ops"])) for entry in fused))
        for _, rect in frames:
            for op in place.values():
                self.assertTrue(rect.holds(op) or not rect.meets(op), "an op is across the border of a frame")

    def check(self, path, *options):
        text = svg_of(path, *options)
        self.assertEqual(text, svg_of(path, *options), "the same each time")
        drawing, plan = Drawing(text), plan_of(path, *options)
        self.assertEqual(set(drawing.passes), {name for name in ("forward", "backward") if name == "forward" or plan[name]})
        for name in drawing.passes:
            self.check_pass(drawing, name, plan[name])
        return text

    def test_examples_have_what_their_plans_say(self):
        for path in [*EXAMPLES, GOLDEN / "nested.fuseline", GOLDEN / "formula.fuseline"]:
            for options in ([], ["--pass", "forward"], ["--rules", "te"]):
                with self.subTest(path=path.name, options=options):
                    self.check(path, *options)

    def test_random_pipelines_have_what_their_plans_say(self):
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(40):
                with self.subTest(seed=seed):
                    self.check(written(folder, drawn(seed)))

    def test_blocks_are_framed(self):
        titles = {title for kind, title, _ in Drawing(svg_of(GOLDEN / "nested.fuseline")).frames("forward") if kind == "block"}
        self.assertEqual(titles, {"block first: Project", "block second: Project"})

    def test_opens_as_the_same_pipeline(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in EXAMPLES:
                with self.subTest(path=path.name):
                    picture = pathlib.Path(folder) / "picture.svg"
                    run("export", path, "--to", "svg", "-o", picture, "--force")
                    self.assertEqual(run("import", picture), run("import", path))

    def test_names_are_no_markup(self):
        with tempfile.TemporaryDirectory() as folder:
            path = written(folder, chain(HOSTILE), "<a>&'\"]]>.fuseline")
            text = self.check(path)
            root = xml.etree.ElementTree.fromstring(text)
            self.assertEqual(root.find(f"{SVG}title").text, path.stem)
            self.assertEqual([element for element in root.iter() if element.tag.endswith("script")], [])
            self.assertEqual(json.loads(run("import", self.saved(folder, text)))["pipeline"]["ops"][0]["id"], HOSTILE[0])

    @staticmethod
    def saved(folder, text):
        path = pathlib.Path(folder) / "saved.svg"
        path.write_text(text, encoding="utf-8")
        return path

    def test_wires_say_shape_and_dtype(self):
        text = svg_of(EXAMPLES[0], "--pass", "forward", "--device", "reference")
        labels = [element.text for group in xml.etree.ElementTree.fromstring(text).iter(f"{SVG}g")
                  if group.get("class") == "label" for element in group]
        self.assertTrue(labels)
        for label in labels:
            self.assertRegex(label, r"^\[[0-9, ]+\] (bf16|f16|f32|i64)$")

    def test_is_light_and_dark(self):
        text = svg_of(EXAMPLES[0])
        dark = text[text.index("@media (prefers-color-scheme: dark)"):text.index("</style>")]
        for kind in ("paper", "box", "title", "type", "label", "wire", "tip", "hull", "hull-title"):
            self.assertRegex(dark, rf"\.{kind}\b")

    def test_runs_are_shaded_and_open_as_what_they_ran(self):
        with tempfile.TemporaryDirectory() as folder:
            record, picture = pathlib.Path(folder) / "a.fuserun", pathlib.Path(folder) / "a.svg"
            run("run", ROOT / "resources" / "examples" / "llama_mlp.fuseline", "--set", "M=16", "--iterations", "3",
                "--no-peaks", "--quiet", "-o", record)
            run("export", record, "--to", "svg", "-o", picture)
            drawing = Drawing(picture.read_text(encoding="utf-8"))
            fills = {box.get("fill") for box in drawing.root.iter(f"{SVG}rect") if box.get("class") == "box heat"}
            self.assertIn("#fde725", fills, "the longest step is the end of the scale")
            legend = [text.text for group in drawing.root.iter(f"{SVG}g") if group.get("class") == "legend"
                      for text in group.findall(f"{SVG}text")]
            self.assertRegex(legend[1], r"^[0-9.]+ (us|ms) \([0-9.]+ %\)$")
            self.assertIn('"M": 16', run("import", picture))

    def test_has_too_many_ops(self):
        with tempfile.TemporaryDirectory() as folder:
            path = written(folder, chain([f"op{i}" for i in range(1001)]))
            refused = subprocess.run([PROGRAM, "export", str(path), "--to", "svg"], capture_output=True, text=True)
            self.assertEqual(refused.returncode, 1)
            self.assertIn("expected at most 1000 ops to draw, found 1001", refused.stderr)
            self.assertIn("--to dot", refused.stderr)

    def test_says_that_graphviz_lacks_its_plugins(self):
        refused = subprocess.run([PROGRAM, "export", str(EXAMPLES[0]), "--to", "svg"], capture_output=True, text=True,
                                 env={**os.environ, "GVBINDIR": "/nonexistent"})
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertEqual(len(refused.stderr.splitlines()), 1, refused.stderr)
        self.assertIn("its plugins were not found", refused.stderr)

    def test_sample_has_the_golden_structure(self):
        golden = GOLDEN / "export_svg.txt"
        structure = Drawing(svg_of(GOLDEN / "sample.fuseline", "--device", "reference")).structure()
        if os.environ.get("FUSELINE_UPDATE_GOLDEN"):
            golden.write_text(structure, encoding="utf-8")
        self.assertEqual(structure, golden.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
