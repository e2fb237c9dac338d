#!/usr/bin/env python3
# The packed kit end to end: unpacked elsewhere, its real programs record what a GPU of host memory can tell.
# SPDX-License-Identifier: Apache-2.0
"""Usage: check_kit.py KIT.tar.xz MODULE: MODULE takes the place of the kit's CUDA module."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

KIT, MODULE = map(pathlib.Path, sys.argv[1:3])
SECONDS = 60
# What this GPU cannot do: it compiles no code, has no memory for the peaks, and a fault is the end of its process.
NOT_HERE = {"tests", "bench_attention", "bench_layers", "bench_ops", "forced_fault"}


def fnv1a64(content):
    value = 0xcbf29ce484222325
    for byte in content:
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return value


def program(origin, source, binary):
    """A file of kernels/cuda/elementwise/program_cache.cpp."""
    head = {"format": "fuseline program", "version": 1, "origin": origin, "sourceBytes": len(source),
            "binaryBytes": len(binary), "checksum": f"{fnv1a64(binary):016x}"}
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + source + binary


class UnpackedKit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        root = pathlib.Path(cls.scratch.name)
        with tarfile.open(KIT) as archive:
            archive.extractall(root)
        cls.kit, cls.results = root / "gpu_kit", root / "results"
        shutil.copy(MODULE, cls.kit / "lib" / "fuseline" / "libfuseline_cuda.so")
        programs = cls.kit / "lib" / "fuseline" / "programs"
        programs.mkdir(exist_ok=True)
        origin = "none, bundle"  # of this GPU, which has no name
        (programs / f"{fnv1a64(origin.encode()):016x}-0123456789abcdef.program").write_bytes(program(origin, b"source", b"binary"))
        cls.done = cls.record()
        cls.state = json.loads((cls.results / "state.json").read_text())["parts"]
        cls.summary = (cls.results / "summary.md").read_text()

    @classmethod
    def record(cls):
        environment = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}
        command = [cls.kit / "run", "--record", cls.results, "--seconds", str(SECONDS), "--quick"]
        return subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False, timeout=SECONDS + 10)

    def results_of(self, *results):
        return {name for name, outcome in self.state.items() if outcome["result"] in results}

    def test_fails_where_this_gpu_does_and_nowhere_else(self):
        self.assertEqual(self.done.returncode, 1, self.done.stdout)
        self.assertEqual(self.results_of("failed"), NOT_HERE, self.done.stdout)
        self.assertEqual(self.results_of("cut", "no time"), set())
        self.assertEqual(self.results_of("refused"), {"products"})  # which wants a driver

    def test_tells_which_tests_passed(self):
        counts = re.search(r"## Tests: tests\n\n(\d+) passed, (\d+) failed, \d+ skipped, 0 not finished, 0 not begun", self.summary)
        self.assertIsNotNone(counts, self.summary)
        self.assertGreaterEqual(int(counts[1]), 15)
        self.assertEqual(int(counts[2]), 1)
        self.assertIn("Failed: `CompiledCode.IsWhatRunsWhereNvrtcIsThere`", self.summary)

    def test_runs_are_there_fused_and_unfused(self):
        for recipe in ("None", "DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling"):
            for clock in ("", "_cupti"):
                run = json.loads((self.results / "runs" / f"llama_quick_{recipe}{clock}.fuserun").read_text())
                self.assertEqual({variant["name"] for variant in run["variants"]}, {"unfused", "fused"})
                self.assertEqual(run["environment"]["device"], "GPU of host memory")
                self.assertRegex(self.summary, rf"\| llama_quick_{recipe}{clock} \| {recipe} \| events")

    def test_programs_of_the_bundle_are_found_beside_the_module(self):
        run = (self.results / "runs" / "llama_quick_None.fuserun").read_text()
        self.assertIn("except for the programs of this bundle", run)

    def test_layers_and_heads_run(self):
        for name in ("attention_128", "llama_layer", "gpt_layer", "head", "head_without_logits"):
            self.assertIn(f"| {name} | None | events", self.summary)

    def test_benchmarks_are_there_line_by_line(self):
        head, *rows = [json.loads(line) for line in (self.results / "bench_gpu.jsonl").read_text().splitlines()]
        self.assertEqual(head["device"], "GPU of host memory")
        self.assertTrue(rows)
        for row in rows:
            self.assertIn(f"| elementwise-chain_quick_none_{row['pass']} |", self.summary)

    def test_the_archive_has_everything(self):
        with tarfile.open(self.results / "results.tgz") as archive:
            packed = {name.removeprefix("results/") for name in archive.getnames()} - {"results"}
        there = {str(path.relative_to(self.results)) for path in self.results.rglob("*")}
        self.assertEqual(packed, there - {"results.tgz"})

    def test_a_second_call_repeats_only_what_failed(self):
        first = dict(self.state)
        again = self.record().stdout
        for name, outcome in first.items():
            self.assertEqual(f"{name}: up to" in again, outcome["result"] in ("failed", "refused"), again)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
