#!/usr/bin/env python3
# What "run --record" starts, keeps and says of it: with scripts in the place of all programs that measure.
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[2] / "resources" / "examples"
sys.path.insert(0, str(HERE / "record"))

import ratios  # noqa: E402
import summary  # noqa: E402
import test_output  # noqa: E402

PROGRAMS = ("test_kernels_gpu", "fuseline", "fuseline-bench", "bench_cuda_products")
GPU = {"id": "cuda:0", "name": "NVIDIA Stand-in", "canRun": True, "reason": "", "memoryBytes": 80 << 30}
# As GoogleTest prints them.
ONE_PASSED = """[==========] Running 1 test from 1 test suite.
[ RUN      ] Norms.AreRight
[       OK ] Norms.AreRight (12 ms)
[==========] 1 test from 1 test suite ran. (12 ms total)
"""
ONE_FAILED = """[==========] Running 4 tests from 2 test suites.
[ RUN      ] Codes/Recipes.Multiply/MXFP8
recipes_test.cpp:86: Skipped
MXFP8 needs another GPU.
[  SKIPPED ] Codes/Recipes.Multiply/MXFP8 (0 ms)
[ RUN      ] Codes/Recipes.Multiply/Delayed
recipes_test.cpp:99: Failure
Expected equality of these values:
[  FAILED  ] Codes/Recipes.Multiply/Delayed, where GetParam() = "Delayed" (54 ms)
[ RUN      ] Norms.AreFast
"""


class Kit:
    """A kit whose programs write down how they were called, and then do what the script says."""

    def __init__(self, root, gpu=GPU, has_torch=True):
        self.root, self.results = root, root / "results"
        (root / "bin").mkdir()
        (root / "lib").mkdir()
        shutil.copy(HERE / "run", root)
        (root / "share" / "fuseline" / "bench").mkdir(parents=True)
        shutil.copytree(HERE / "record", root / "share" / "fuseline" / "record", ignore=shutil.ignore_patterns("__pycache__"))
        (root / "share" / "fuseline" / "bench" / "peer_torch.py").write_text(self._python())
        if has_torch:
            (root / "torch.py").touch()
        for name in PROGRAMS:
            self.program(name)
        devices = json.dumps({"devices": [gpu]})
        self.program("fuseline", f"case \"$*\" in 'devices --json') echo '{devices}'; exit ;; esac")

    def _python(self):
        return f"import sys\nopen('{self.root}/calls', 'a').write('peer ' + ' '.join(sys.argv[1:]) + chr(10))\n"

    def program(self, name, script=""):
        """Keeps what the program does first, and adds to it."""
        path = self.root / "bin" / name
        environment = "$FUSELINE_TUNE:$OMP_NUM_THREADS:$XDG_CACHE_HOME:$GTEST_SHARD_INDEX:$GTEST_TOTAL_SHARDS"
        head = f'#!/bin/sh\necho "{name} $* [{environment}]" >>"{self.root}/calls"\n'
        path.write_text((path.read_text() if path.exists() else head) + script + "\n")
        path.chmod(0o755)

    def command(self, *options):
        return [str(self.root / "run"), "--record", str(self.results), *options]

    def environment(self):
        paths = f"{pathlib.Path(sys.executable).parent}:/usr/bin:/bin"
        return {"PATH": paths, "PYTHONPATH": str(self.root), "HOME": str(self.root), "TMPDIR": str(self.root)}

    def record(self, *options):
        (self.root / "calls").unlink(missing_ok=True)
        return subprocess.run(self.command(*options), env=self.environment(), text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)

    def start(self, *options):
        return subprocess.Popen(self.command(*options), env=self.environment(), stdout=subprocess.DEVNULL)

    def calls(self, start=""):
        path = self.root / "calls"
        return [call for call in path.read_text().splitlines() if call.startswith(start)] if path.exists() else []

    def outcomes(self):
        parts = json.loads((self.results / "state.json").read_text())["parts"]
        return {name: outcome["result"] for name, outcome in parts.items()}

    def summary(self):
        return (self.results / "summary.md").read_text()

    def packed(self, name):
        with tarfile.open(self.results / "results.tgz") as archive:
            return archive.extractfile(f"results/{name}").read().decode()


class Scene(unittest.TestCase):
    def kit(self, **options):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        return Kit(pathlib.Path(scratch.name), **options)

    def wait_for(self, condition, what):
        deadline = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.02)


class Order(Scene):
    def test_runs_every_part_once_and_the_harmful_ones_last(self):
        kit = self.kit()
        done = kit.record()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(set(kit.outcomes().values()), {"passed"})
        calls = kit.calls()
        order = [next(i for i, call in enumerate(calls) if text in call)
                 for text in ("devices --probe", "-CudaKernels", "=CudaKernels", "run ", "peer ", "fuseline-bench ops",
                              "bench_cuda_products", "=ForcedFault")]
        self.assertEqual(order, sorted(order))
        self.assertIn("=ForcedFault", calls[-1])

    def test_runs_examples_that_exist_into_files_of_their_own(self):
        kit = self.kit()
        kit.record()
        runs = kit.calls("fuseline run")
        for call in runs:
            name = pathlib.Path(call.split()[2]).name
            self.assertTrue((EXAMPLES / name).is_file() or (HERE / "record" / name).is_file(), call)
        files = [call.split(" -o ")[1].split()[0] for call in runs]
        self.assertEqual(len(set(files)), len(files))
        for recipe in ("None", "DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling"):
            for timing in ("events", "cupti"):
                self.assertEqual(sum(f"--recipe {recipe} " in call and f"--timing {timing}" in call for call in runs), 1)

    def test_tests_share_one_thread_each_and_no_tuning(self):
        kit = self.kit()
        kit.record("--only", "tests", "--only", "llama")
        shards = [call for call in kit.calls("test_kernels_gpu") if "filter=-" in call]
        measured = {call.split(":")[-3] for call in kit.calls("fuseline run")}
        self.assertEqual(len(measured), 1)
        for call in shards:
            tune, threads, cache, index, total = call.split("[")[1].rstrip("]").split(":")
            self.assertEqual((tune, threads, total), ("off", "1", str(len(shards))))
            self.assertNotIn(cache, measured)
        self.assertEqual(len({call.split(":")[-2] for call in shards}), len(shards))

    def test_does_without_pytorch(self):
        kit = self.kit(has_torch=False)
        done = kit.record("--only", "peer")
        if "skipped" not in kit.outcomes().values():
            self.skipTest("this Python has PyTorch")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(kit.calls("peer"), [])
        self.assertIn("There is no PyTorch", kit.summary())

    def test_measures_nothing_without_a_gpu(self):
        kit = self.kit(gpu={**GPU, "canRun": False, "reason": "There is no driver."})
        done = kit.record()
        self.assertEqual(done.returncode, 77, done.stdout)
        self.assertIn("There is no driver.", done.stdout)
        self.assertEqual(len(kit.calls()), 1)


class Failures(Scene):
    def test_are_named_with_their_last_words_and_the_rest_goes_on(self):
        kit = self.kit()
        kit.program("bench_cuda_products", "echo first; echo 'no algorithm' >&2; exit 4")
        done = kit.record()
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual([name for name, result in kit.outcomes().items() if result != "passed"], ["products"])
        self.assertIn("## products failed: products ended with 4", kit.summary())
        self.assertIn("no algorithm", kit.summary())

    def test_are_none_where_the_device_refuses(self):
        kit = self.kit()
        kit.program("fuseline", "case \"$*\" in *DelayedScaling*) echo 'needs another GPU' >&2; exit 3 ;; esac")
        done = kit.record("--only", "llama")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(kit.outcomes()["llama_8B_DelayedScaling"], "refused")
        self.assertEqual(kit.outcomes()["llama_8B_None"], "passed")

    def test_of_tests_are_named_and_counted(self):
        kit = self.kit()
        kit.program("test_kernels_gpu", f"cat <<'END'\n{ONE_PASSED}END\n")
        kit.program("test_kernels_gpu", f"[ \"$GTEST_SHARD_INDEX\" != 0 ] || {{ cat <<'END'\n{ONE_FAILED}END\nkill -SEGV $$; }}")
        done = kit.record("--only", "tests")
        self.assertEqual(done.returncode, 1, done.stdout)
        page = kit.summary()
        self.assertIn("Failed: `Codes/Recipes.Multiply/Delayed`", page)
        self.assertIn("the program ended in `Norms.AreFast`", page)
        self.assertIn("1 skipped: MXFP8 needs another GPU.", page)
        self.assertIn(f"tests_0 ended with {-signal.SIGSEGV}", page)

    def test_of_the_page_end_nothing(self):
        kit = self.kit()
        kit.program("fuseline-bench", "case \"$*\" in *jsonl*) for last; do :; done; printf '{}\\n{}\\n' >\"$last\" ;; esac")
        done = kit.record("--only", "bench")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("This page could not be written", kit.summary())
        self.assertEqual(len(kit.outcomes()), 4)


class Time(Scene):
    def test_ends_what_takes_too_long_and_keeps_its_lines(self):
        kit = self.kit()
        row = {"pipeline": "p", "size": "s", "recipe": "none", "pass": "train", "reason": "no memory", "measured": None}
        kit.program("fuseline-bench", "case \"$*\" in *bench_gpu.jsonl) trap '' TERM; for last; do :; done\n"
                                      f"printf '%s\\n' '{{}}' '{json.dumps(row)}' >\"$last\"; sleep 60 & wait; wait ;; esac")
        begin = time.monotonic()
        done = kit.record("--only", "bench", "--seconds", "12")
        self.assertLess(time.monotonic() - begin, 12.5)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(kit.outcomes()["bench_gpu"], "cut")
        self.assertIn("| p_s_none_train | ", kit.summary())
        self.assertIn("The time was too short for all parts.", kit.packed("summary.md"))
        self.assertIn('"reason": "no memory"', kit.packed("bench_gpu.jsonl"))

    def test_says_for_what_there_was_none(self):
        kit = self.kit()
        done = kit.record("--seconds", "8")  # one, besides what it takes to end and to pack
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(kit.calls(), kit.calls("fuseline devices --json"))
        self.assertEqual(set(kit.outcomes().values()), {"no time"})

    def test_a_signal_ends_the_part_and_loses_nothing(self):
        kit = self.kit()
        kit.program("test_kernels_gpu", f"printf '%s' '{ONE_PASSED}'; echo $$ >{kit.root}/pid_$GTEST_SHARD_INDEX; sleep 60")
        recording = kit.start()
        self.wait_for((kit.root / "pid_0").exists, "the tests begin")
        self.assertIn("facts | passed", kit.packed("summary.md"))  # packed after every part
        recording.terminate()
        self.assertEqual(recording.wait(timeout=20), 128 + signal.SIGTERM)
        self.assertEqual(kit.outcomes(), {"facts": "passed", "probe": "passed", "tests": "cut"})
        self.assertIn("The recording was stopped by SIGTERM.", kit.packed("summary.md"))
        self.assertRegex(kit.packed("summary.md"), r"[1-9]\d* passed, 0 failed")
        self.assertFalse(pathlib.Path(f"/proc/{(kit.root / 'pid_0').read_text().strip()}/stat").exists())


class Again(Scene):
    def test_repeats_only_what_did_not_pass(self):
        kit = self.kit()
        kit.program("bench_cuda_products", f"[ -e {kit.root}/mended ]")
        self.assertEqual(kit.record().returncode, 1)
        (kit.root / "mended").touch()
        done = kit.record()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(len(kit.calls("bench_cuda_products")), 1)
        self.assertEqual([call for call in kit.calls() if " devices --json" not in call and "products" not in call], [])
        self.assertIn("The recording is complete.", kit.summary())

    def test_leaves_what_was_cut_where_there_is_no_time_for_more(self):
        kit = self.kit()
        kit.program("fuseline", "case \"$*\" in *--probe*) echo found; sleep 60 ;; esac")
        kit.record("--only", "probe", "--seconds", "10")
        self.assertEqual(kit.outcomes(), {"probe": "cut"})
        kit.record("--only", "probe", "--seconds", "8")
        self.assertEqual(kit.outcomes(), {"probe": "cut"})
        self.assertEqual(kit.packed("probe.txt"), "found\n")

    def test_repeats_all_by_force(self):
        kit = self.kit()
        kit.record("--only", "facts", "--only", "probe")
        self.assertEqual(len(kit.calls("fuseline devices --probe")), 1)
        self.assertIn("Some parts were left out.", kit.summary())
        kit.record("--only", "facts", "--only", "probe", "--force")
        self.assertEqual(len(kit.calls("fuseline devices --probe")), 1)

    def test_mixes_no_results_of_two_builds(self):
        kit = self.kit()
        kit.record("--only", "probe")
        kit.program("bench_cuda_products", "# built anew")
        done = kit.record("--only", "probe")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("name another folder", done.stdout)
        self.assertEqual(kit.outcomes(), {"probe": "passed"})


class Figures(unittest.TestCase):
    def test_ratio_of_rounds_that_agree_is_exact(self):
        self.assertEqual(ratios.compare_rounds([20, 40, 60, 80, 100, 120, 140], [10, 20, 30, 40, 50, 60, 70]), (2, 2, 2))

    def test_interval_is_that_of_medians_of_rounds(self):
        # Of 15 samples the 95 % interval of the median lies near the 4th and the 12th (binomial: 0.018 are below the 4th).
        median, low, high = ratios.compare_rounds(range(1, 16), [1] * 15)
        self.assertEqual(median, 8)
        self.assertIn(low, (4, 5))
        self.assertIn(high, (11, 12))

    def test_few_rounds_claim_nothing(self):
        self.assertEqual(ratios.compare_rounds([2] * 5, [1] * 5), (2, None, None))

    def test_run_file_gives_a_row(self):
        variants = [{"name": "unfused", "endToEndNs": [3e6] * 7, "launches": 18},
                    {"name": "fused", "endToEndNs": [2e6] * 7, "launches": 13}]
        record = {"variants": variants, "settings": {"recipe": "None", "timing": "events"}, "timingNote": ""}
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "a.fuserun"
            file.write_text(json.dumps(record))
            self.assertEqual(summary._run_row(file), ["a", "None", "events", 7, "3.0000", "2.0000", "1.500", "1.500 to 1.500",
                                                      "18 / 13"])
            file.write_text(json.dumps(record)[:-9])  # cut while it was written
            self.assertIsNone(summary._run_row(file))

    def test_peer_gives_its_ratios_and_what_differs(self):
        ratio = {"median": 1.349, "low": 1.306, "high": 1.393}
        comparison = {"mode": "eager", "tensor": "y", "variant": "fused", "words": "too far", "error": 1, "tolerance": 0.1}
        peer = {"variants": [{"name": "torch fp8", "median": 2.97e6, "timeOverBase": ratio}], "refused": {"compile": "no triton"},
                "check": {"comparisons": [comparison], "problems": []}}
        self.assertEqual(list(summary._peer_rows("peer", peer)),
                         [["peer", "torch fp8", "2.9700", "1.349", "1.306 to 1.393"],
                          ["peer", "torch compile", "refused", "no triton", ""]])
        self.assertEqual(summary._differences(peer), ["torch eager, y (fused): too far"])

    def test_output_of_tests_is_counted_to_where_it_ends(self):
        run = test_output.parse(ONE_FAILED)
        self.assertEqual([test for test, _ in run.failed], ["Codes/Recipes.Multiply/Delayed"])
        self.assertIn("recipes_test.cpp:99: Failure", run.failed[0][1])
        self.assertEqual((run.passed, run.unfinished, run.missing), ([], ["Norms.AreFast"], 1))
        run.add(test_output.parse(ONE_PASSED))
        self.assertEqual((run.passed, len(run.skipped), run.missing), (["Norms.AreRight"], 1, 1))


if __name__ == "__main__":
    unittest.main()
