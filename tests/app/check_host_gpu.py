# The program on a GPU of host memory, as a user with a GPU runs it: fuseline and fuseline-bench beside a CUDA
# module of the tests.
# SPDX-License-Identifier: Apache-2.0
# Usage: check_host_gpu.py FUSELINE
import ast
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import unittest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "resources" / "examples"
FUSELINE = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else None
SMALL = ["--set", "M=16", "--set", "H=32", "--set", "F=64"]
ONCE = ["--iterations", "2", "--warmup", "1", "--no-peaks", "--quiet"]


def fuseline(*arguments: str, environment: dict | None = None) -> subprocess.CompletedProcess:
    return subprocess.run([FUSELINE, *map(str, arguments)], capture_output=True, text=True, check=False,
                          env={**os.environ, **(environment or {})})


def floats_of(npy: bytes) -> list[float]:
    """Of a .npy file of version 1.0 with float32 numbers, as the format says."""
    assert npy[:8] == b"\x93NUMPY\x01\x00"
    end = 10 + struct.unpack_from("<H", npy, 8)[0]
    header = ast.literal_eval(npy[10:end].decode("latin1"))
    assert header["descr"] == "<f4" and not header["fortran_order"] and end % 64 == 0
    numbers = struct.unpack_from(f"<{(len(npy) - end) // 4}f", npy, end)
    assert len(numbers) == math.prod(header["shape"])
    return list(numbers)


class OnHostGpu(unittest.TestCase):
    def run_on_gpu(self, example: str, *options: str) -> dict:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "run.fuserun"
            done = fuseline("run", EXAMPLES / example, "--device", "cuda", "-o", file, *SMALL, *ONCE, *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(file.read_text())

    def test_devices_names_it(self):
        done = fuseline("devices", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("GPU of host memory", done.stdout)

    def test_both_plans_are_replayed_as_graphs(self):
        run = self.run_on_gpu("llama_mlp.fuseline")
        variants = {variant["name"]: variant for variant in run["variants"]}
        self.assertEqual(set(variants), {"unfused", "fused"})
        for variant in variants.values():
            self.assertEqual(variant["launchMode"], "captured and replayed")
            self.assertEqual(len(variant["endToEndNs"]), 2)
        self.assertLess(len(variants["fused"]["steps"]), len(variants["unfused"]["steps"]))

    def test_steps_are_launched_one_by_one_on_request(self):
        run = self.run_on_gpu("llama_mlp.fuseline", "--no-replay")
        for variant in run["variants"]:
            self.assertNotEqual(variant["launchMode"], "captured and replayed")

    def test_fused_results_are_within_tolerance_under_fp8(self):
        self.run_on_gpu("gpt_mlp.fuseline", "--recipe", "DelayedScaling", "--numerics", "--fail-if", "error>tolerance")

    def test_a_fault_names_the_step_and_ends_the_run(self):
        done = fuseline("run", EXAMPLES / "llama_mlp.fuseline", "--device", "cuda", *SMALL, *ONCE, "--no-replay",
                        environment={"FUSELINE_HOST_GPU_FAULT": "40"})
        self.assertEqual(done.returncode, 4)
        self.assertIn("an illegal memory access was encountered", done.stderr)
        self.assertIn("in the step", done.stderr)

    def test_what_is_too_large_is_said_before_it_runs(self):
        done = fuseline("run", EXAMPLES / "llama_mlp.fuseline", "--device", "cuda", "--set", "M=100000", *ONCE)
        self.assertEqual(done.returncode, 4)
        self.assertIn("but cuda:0 has", done.stderr)

    def captured(self, device: str, tensor: str) -> list[float]:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "t.npy"
            done = fuseline("run", EXAMPLES / "llama_mlp.fuseline", "--device", device, *SMALL, *ONCE, "--capture", tensor,
                            "--captured", file)
            self.assertEqual(done.returncode, 0, done.stderr)
            return floats_of(file.read_bytes())

    def test_captured_tensors_are_those_of_a_cpu(self):
        self.assertEqual(self.captured("cuda", "x"), self.captured("cpu", "x"))
        for tensor in ("norm:y", "act:y", "grad.fc1.weight"):
            on_gpu, on_cpu = self.captured("cuda", tensor), self.captured("cpu", tensor)
            self.assertEqual(len(on_gpu), len(on_cpu))
            scale = max(map(abs, on_cpu))
            self.assertGreater(scale, 0)
            for a, b in zip(on_gpu, on_cpu):
                self.assertAlmostEqual(a, b, delta=0.02 * scale, msg=tensor)

    def test_a_benchmark_that_is_ended_keeps_every_case(self):
        with tempfile.TemporaryDirectory() as folder:
            lines = pathlib.Path(folder) / "bench.jsonl"
            bench = subprocess.Popen([FUSELINE.with_name("fuseline-bench"), "gpu", "--quick", "--device", "cuda", "--only", "_none_",
                                      "--json", "--jsonl", lines], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and not (lines.exists() and len(lines.read_text().splitlines()) >= 2):
                time.sleep(0.02)
            bench.terminate()
            out, words = bench.communicate(timeout=60)
            head, *rows = [json.loads(line) for line in lines.read_text().splitlines()]
        self.assertEqual(head["suite"], "gpu")
        self.assertGreaterEqual(len(rows), 1)
        self.assertEqual([row["measured"]["fusedMedianNs"] for row in rows],
                         [row["measured"]["fusedMedianNs"] for row in json.loads(out)["rows"]])
        self.assertEqual(bench.returncode, 4)
        self.assertIn("The benchmark was cancelled", words)

    def test_ranks_run_on_a_gpu_each(self):
        options = ("run", EXAMPLES / "tensor_parallel_mlp.fuseline", "--device", "cuda", "--set", "M=24", "--set", "H=48", *ONCE,
                   "--ranks", "2")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "run.fuserun"
            done = fuseline(*options, "-o", file, environment={"FUSELINE_HOST_GPUS": "2"})
            self.assertEqual(done.returncode, 0, done.stderr)
            run = json.loads(file.read_text())
        self.assertIn("NCCL 2.28.9", json.dumps(run["environment"]))
        for variant in run["variants"]:
            self.assertEqual(variant["launchMode"], "captured and replayed")
            self.assertIn("all-gather", json.dumps(variant["steps"]))
        few = fuseline(*options)
        self.assertEqual(few.returncode, 3)
        self.assertIn("each rank needs a GPU, beginning with cuda:0, but there is 1", " ".join(few.stderr.split()))

    def test_experts_run_side_by_side(self):
        done = fuseline("run", EXAMPLES / "grouped_mlp.fuseline", "--device", "cuda", "--set", "M=32", "--set", "H=32",
                        "--set", "F=32", *ONCE, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
