#!/usr/bin/env python3
# Tests the graph in pages of runs: that it belongs to the table beside it, and that the page stays whole.
# SPDX-License-Identifier: Apache-2.0
"""test_report_graph.py PROGRAM [TEST...]: PROGRAM is fuseline, built with Graphviz. Needs nothing else."""

import collections
import html.parser
import json
import pathlib
import re
import sys
import tempfile
import unittest

import test_drawings


class Page(html.parser.HTMLParser):
    """What a page refers to, and what it has."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.rows, self.handlers, self.tips = [], [], [], [], {}
        self.op = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.handlers += [name for name in values if name.startswith("on")]
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values["href"]] if "href" in values else []
        if tag == "g" and values.get("class") == "op":
            self.op = values["id"]
        if tag == "tr" and "data-ops" in values:
            self.rows.append(values["data-ops"].split())

    def handle_data(self, data):
        if self.lasttag == "title" and self.op:
            self.tips.setdefault(self.op, data)


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def record(self, path, *options):
        file = self.folder / "run.fuserun"
        test_drawings.run("run", path, "--iterations", "3", "--warmup", "0", "--no-peaks", "--quiet", "--force", "-o", file, *options)
        return file

    def page(self, path, *options):
        return test_drawings.run("export", self.record(path, *options), "--to", "html")

    def check(self, text):
        page = Page(text)
        self.assertEqual([name for name, count in collections.Counter(page.ids).items() if count > 1], [])
        self.assertTrue(page.rows)
        for op in (op for row in page.rows for op in row):
            self.assertIn(op, page.ids)
        for link in page.links:
            self.assertRegex(link, "^#")
            self.assertIn(link[1:], page.ids)
        self.assertEqual(page.handlers, [])
        self.assertIn("default-src 'none'", text)
        for way in ("://", " src=", "url(", "@import"):
            self.assertNotIn(way, re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.S))
        return page

    def test_every_step_has_its_ops(self):
        for name, options in (("llama_mlp", ["--set", "M=16", "--set", "H=32"]), ("transformer_stack", ["--set", "M=16"]),
                              ("llama_mlp", ["--set", "M=32", "--set", "H=32", "--recipe", "mxfp8"]),
                              ("llama_mlp", ["--set", "M=16", "--pass", "forward"]),
                              ("llama_mlp", ["--set", "M=16", "--variants", "unfused"])):
            with self.subTest(name=name, options=options):
                path = test_drawings.ROOT / "resources" / "examples" / f"{name}.fuseline"
                file = self.record(path, *options)
                page = self.check(test_drawings.run("export", file, "--to", "html"))
                for variant in json.loads(file.read_text(encoding="utf-8"))["variants"]:
                    for step in variant["steps"]:
                        drawn_ops = {(op[3], tip.split(":")[0]) for op, tip in page.tips.items()}
                        self.assertLessEqual({(step["phase"][0], op) for op in step["ops"]}, drawn_ops)

    def test_shades_by_the_shares_of_the_run(self):
        text = self.page(test_drawings.EXAMPLES[0])
        page = self.check(text)
        shares = {float(share) for tip in page.tips.values() for share in re.findall(r"([0-9.]+) % of the sum", tip)}
        self.assertTrue(shares and max(shares) <= 100.0)
        self.assertEqual(text.count('class="box heat" fill="#fde725"') >= 1, True, "the longest step is the end of the scale")
        self.assertIn('<p class="legend"><span>0</span>', text)

    def test_is_small_and_whole_for_many_ops(self):
        path = test_drawings.written(self.folder, test_drawings.chain([f"layer_number_{i}" for i in range(300)], "GELU"))
        text = self.page(path)
        self.check(text)
        self.assertLess(len(text.encode()), 2_000_000)

    def test_names_are_no_markup(self):
        page = self.check(self.page(test_drawings.written(self.folder, test_drawings.chain(test_drawings.HOSTILE))))
        self.assertEqual([tip.split("\n")[0] for op, tip in sorted(page.tips.items()) if op.startswith("op-f")],
                         [f"{name}: GELU" for name in test_drawings.HOSTILE])

    def test_stands_in_comparisons_as_well(self):
        file, other = self.record(test_drawings.EXAMPLES[0]), self.folder / "page.html"
        test_drawings.run("compare", file, file, "--report", other)
        self.check(other.read_text(encoding="utf-8"))

    def test_is_left_out_of_what_has_no_steps_of_this_version(self):
        file = self.record(test_drawings.EXAMPLES[0])
        record = json.loads(file.read_text(encoding="utf-8"))
        record["variants"][0]["steps"][0]["ops"] = ["gone"]
        file.write_text(json.dumps(record), encoding="utf-8")
        text = test_drawings.run("export", file, "--to", "html")
        self.assertNotIn("<svg", text)
        self.assertNotIn("data-ops=", text.split("<script")[0])


if __name__ == "__main__":
    test_drawings.PROGRAM = sys.argv.pop(1)
    unittest.main()
