#!/usr/bin/env python3
# What "run --record" starts, and what it makes of programs that fail: with scripts in the place of all of them.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import shutil
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[2] / "resources" / "examples"
PROGRAMS = ("test_kernels_gpu", "fuseline", "bench_cuda_products")


class Folder:
    """An installed folder whose programs write down how they were called, and end as they are told."""

    def __init__(self, path, exits, has_torch):
        self.root = path
        (path / "bin").mkdir()
        shutil.copy(HERE / "run", path)
        for name in PROGRAMS:
            self._program(path / "bin" / name, name, exits.get(name, 0))
        (path / "python").mkdir()
        torch = 0 if has_torch else 1
        self._program(path / "python" / "python3", "python3", 0, f'case "$2" in "import torch") exit {torch} ;; esac')

    def _program(self, path, name, code, first=""):
        path.write_text(f'#!/bin/sh\n{first}\necho "{name} $*" >>"{self.root}/calls"\necho "output of {name}"\nexit {code}\n')
        path.chmod(0o755)

    def record(self):
        environment = {"PATH": f"{self.root}/python:/usr/bin:/bin"}
        return subprocess.run([self.root / "run", "--record", self.root / "results"], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)

    def calls(self, start):
        return [call for call in (self.root / "calls").read_text().splitlines() if call.startswith(start)]

    def results(self):
        return {path.name for path in (self.root / "results").iterdir() if path.suffix in (".json", ".txt")}


class Record(unittest.TestCase):
    def folder(self, exits=None, has_torch=True):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        return Folder(pathlib.Path(scratch.name), exits or {}, has_torch)

    def test_measures_everything_once(self):
        folder = self.folder()
        done = folder.record()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(len(folder.calls("fuseline bench ops --device cuda --json")), 1)
        self.assertEqual(len(folder.calls("fuseline bench gpu --json")), 1)
        self.assertEqual(len(folder.calls("bench_cuda_products")), 1)
        self.assertLessEqual({"tests.txt", "devices.json", "bench_gpu.json", "bench_ops.json", "products.json"},
                             folder.results())

    def test_traces_examples_that_exist(self):
        folder = self.folder()
        folder.record()
        traces = folder.calls("fuseline run")
        self.assertEqual(len(traces), 4)
        for call in traces:
            words = call.split()
            self.assertTrue((EXAMPLES / pathlib.Path(words[2]).name).is_file(), call)
            self.assertIn("--timing cupti", call)
            self.assertRegex(call, r"-o \S+/results/runs/\S+_cupti[.]fuserun")
        self.assertEqual(len({call.split(" -o ")[1].split()[0] for call in traces}), 4)

    def test_compares_the_same_examples_with_pytorch(self):
        folder = self.folder()
        folder.record()
        peers = folder.calls("python3 -B")
        settings = [call.split(".fuseline ")[1].split("--json - ")[1] for call in peers]
        traced = [call.split(".fuserun ")[1] for call in folder.calls("fuseline run")]
        self.assertEqual(settings, traced)
        self.assertIn("output of python3", (folder.root / "results" / "peer_gpt-mlp_1.3B.json").read_text())

    def test_does_without_pytorch(self):
        folder = self.folder(has_torch=False)
        done = folder.record()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(folder.calls("python3 -B"), [])
        self.assertIn("There is no PyTorch", done.stdout)

    def test_goes_on_and_names_what_failed(self):
        folder = self.folder(exits={"bench_cuda_products": 4})
        done = folder.record()
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("Failed: products (4).", done.stdout)
        self.assertEqual(len(folder.calls("python3 -B")), 4)

    def test_measures_nothing_without_a_gpu(self):
        folder = self.folder(exits={"test_kernels_gpu": 77})
        done = folder.record()
        self.assertEqual(done.returncode, 77, done.stdout)
        self.assertEqual(folder.calls("fuseline bench"), [])


if __name__ == "__main__":
    unittest.main()
