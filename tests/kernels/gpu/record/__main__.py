# Records everything that a GPU can tell of a kit, within a time: started by the script "run" of that kit.
# SPDX-License-Identifier: Apache-2.0
"""Usage: run --record RESULTS [--seconds N] [--only TEXT]... [--force] [--quick]

Parts that passed before in the same folder, with the same kit and GPU, are not repeated. After each part RESULTS/summary.md
says what was found, and RESULTS/results.tgz has everything.

Exit codes: 0 nothing failed, 1 a part failed, 2 usage, 77 there is no GPU, 128 + N it was stopped by signal N."""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import traceback

from budget import Budget
from commands import Runner
from parts import Parts
from results import OtherOrigin, Results, write_whole
from summary import run_of, summary

USAGE, NO_GPU = 2, 77
REFUSED = {3: "the device does not run this", 77: "nothing to run it on"}
SECONDS_FOR_DEVICES = 30

Gpu = collections.namedtuple("Gpu", "name memory_bytes")


class NoGpu(Exception):
    pass


def find_gpu(kit):
    """The first one that runs. Throws NoGpu, with the reason."""
    done = subprocess.run([kit / "bin" / "fuseline", "devices", "--json"], capture_output=True, text=True, check=False,
                          timeout=SECONDS_FOR_DEVICES)
    if done.returncode != 0:
        raise NoGpu(done.stderr.strip() or f"fuseline devices ended with {done.returncode}.")
    gpus = [device for device in json.loads(done.stdout)["devices"] if device["id"].startswith("cuda")]
    for gpu in gpus:
        if gpu["canRun"]:
            return Gpu(gpu["name"], gpu["memoryBytes"])
    raise NoGpu("\n".join(f"{gpu['id']}: {gpu['reason']}" for gpu in gpus))


def fingerprint(kit):
    """Of all its programs."""
    hashed = hashlib.sha256()
    for path in sorted([*(kit / "bin").iterdir(), *(kit / "lib").rglob("*.so*")]):
        hashed.update(path.read_bytes())
    return hashed.hexdigest()[:16]


class Recording:
    """scratch: a folder for caches and temporary files."""

    def __init__(self, arguments, scratch):
        self._budget = Budget(arguments.seconds)
        self._gpu = find_gpu(arguments.kit)
        folder = arguments.folder.resolve()
        origin = {"kit": fingerprint(arguments.kit), "gpu": self._gpu.name, "isQuick": arguments.quick}
        self._results = Results(folder, origin)
        self._parts = Parts(arguments.kit, folder, scratch / "cache_of_tests", self._gpu, arguments.quick).all()
        self._only, self._is_forced = arguments.only, arguments.force
        self._runner = Runner(folder, {**os.environ, "XDG_CACHE_HOME": str(scratch / "cache"), "TMPDIR": str(scratch)})

    def run(self):
        """The exit code."""
        self._runner.listen()
        for part in self._parts:
            if self._runner.signal is None and self._is_wanted(part):
                self._run(part)
                self._write("The recording goes on.")
        self._write(self._ending())
        print(f"{self._results.folder}/summary.md says what was found, {self._results.folder}/results.tgz has everything.")
        return self._code()

    def _is_wanted(self, part):
        is_named = not self._only or any(text in part.name for text in self._only)
        return is_named and (self._is_forced or not self._results.is_done(part))

    def _run(self, part):
        seconds = self._budget.seconds_for(part)
        if part.lacking:
            return self._keep(part, "skipped", why=part.lacking)
        if not seconds:
            return None if self._results.has(part) else self._keep(part, "no time")
        self._results.clear(part)
        print(f"{part.name}: up to {seconds:.0f} s", flush=True)
        begin = time.monotonic()
        ended = self._runner.run(part.commands, seconds)
        has_failed_tests = bool(run_of(self._results, part).failed)
        return self._keep(part, *_result_of(ended, has_failed_tests), seconds=time.monotonic() - begin, limit=seconds,
                          codes={each.name: each.code for each in ended})

    def _keep(self, part, result, why="", seconds=0.0, limit=0.0, codes=None):
        print(f"{part.name}: {result} in {seconds:.1f} s {why}".rstrip(), flush=True)
        self._results.keep(part, {"result": result, "why": why, "seconds": seconds, "limit": limit, "codes": codes or {}})

    def _write(self, ending):
        write_whole(self._results.folder / "summary.md", self._summary(ending))
        self._results.pack()

    def _summary(self, ending):
        """What a program wrote in an unexpected form ends no recording."""
        try:
            return summary(self._results, self._parts, ending)
        except Exception:
            return f"{ending} This page could not be written:\n\n```text\n{traceback.format_exc()}```\n"

    def _ending(self):
        if self._runner.signal is not None:
            return f"The recording was stopped by {signal.Signals(self._runner.signal).name}."
        if any(outcome["result"] in ("cut", "no time") for outcome in self._results.parts.values()):
            return "The time was too short for all parts."
        if not all(self._results.has(part) for part in self._parts):
            return "Some parts were left out."
        return "The recording is complete."

    def _code(self):
        if self._runner.signal is not None:
            return 128 + self._runner.signal
        return int(any(outcome["result"] == "failed" for outcome in self._results.parts.values()))


def _result_of(ended, has_failed_tests):
    """The worst result of a part's commands, and why."""
    failed = [each for each in ended if not each.was_cut and each.code != 0 and each.code not in REFUSED]
    if failed:
        return "failed", ", ".join(f"{each.name} ended with {each.code}" for each in failed)
    if has_failed_tests:
        return "failed", "tests failed before the rest was cut"
    if any(each.was_cut for each in ended):
        return "cut", ""
    refused = [REFUSED[each.code] for each in ended if each.code in REFUSED]
    return ("refused", refused[0]) if len(refused) == len(ended) else ("passed", "")


def parse_arguments():
    made = argparse.ArgumentParser(prog="run --record", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("kit", type=pathlib.Path, help=argparse.SUPPRESS)
    made.add_argument("folder", metavar="RESULTS", type=pathlib.Path, help="a folder; it is made where there is none")
    made.add_argument("--seconds", type=float, default=540, metavar="N", help="the time for everything (default: 540)")
    made.add_argument("--only", action="append", default=[], metavar="TEXT", help="only parts with this in their name")
    made.add_argument("--force", action="store_true", help="repeats parts that passed before")
    made.add_argument("--quick", action="store_true",
                      help="small sizes and few tests: shows in a minute that all programs run; its times mean nothing")
    return made.parse_args()


def main():
    arguments = parse_arguments()
    try:
        with tempfile.TemporaryDirectory(prefix="fuseline_record_", ignore_cleanup_errors=True) as scratch:
            return Recording(arguments, pathlib.Path(scratch)).run()
    except NoGpu as reason:
        print(f"There is no GPU to record on:\n{reason}")
        return NO_GPU
    except OtherOrigin as words:
        print(words, file=sys.stderr)
        return USAGE


if __name__ == "__main__":
    sys.exit(main())
