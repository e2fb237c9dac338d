# Measures fuseline and the variants of the peer interleaved.
# SPDX-License-Identifier: Apache-2.0
"""A round gives every variant one turn, in random order. A turn of PyTorch is some steps that do not count and some that
do; a turn of fuseline is one process with as many of both, of which its own record gives the times. All times are those
of the host from the start of a step until the device is done."""

import gc
import os
import pathlib
import random
import time

import torch

from . import stats

TURN_SECONDS = 0.3  # of one variant, where --iterations does not say how many steps
FEWEST_STEPS, MOST_STEPS = 5, 200
ORDER_SEED = 7


def steps_for(variant):
    """As many steps as fill a turn, by the eager peer."""
    variant.step()
    start = time.perf_counter()
    variant.step()
    seconds = time.perf_counter() - start
    return max(FEWEST_STEPS, min(MOST_STEPS, round(TURN_SECONDS / max(seconds, 1e-9))))


class TorchTurn:
    def __init__(self, variant, iterations, warmup):
        self.name = f"torch {variant.mode}"
        self._variant, self._iterations, self._warmup = variant, iterations, warmup

    def run(self):
        for _ in range(self._warmup):
            self._variant.step()
        return [self._nanoseconds() for _ in range(self._iterations)]

    def _nanoseconds(self):
        start = time.perf_counter_ns()
        self._variant.step()
        return time.perf_counter_ns() - start


class FuselineTurn:
    def __init__(self, program, file, given, name, iterations, warmup):
        self.name = f"fuseline {name}"
        self.record = None
        self._program, self._file = program, file
        self._arguments = ["--tensors", given, "--variants", name, "--iterations", iterations, "--warmup", warmup,
                           "--timing", "host"]  # the clock of the peer: launches and the wait count

    def run(self):
        self.record = self._program.run(self._file, *self._arguments)["record"]
        return self.record["variants"][0]["endToEndNs"]


def measure(turns, num_rounds, progress):
    """Name -> one list of nanoseconds a round."""
    order = random.Random(ORDER_SEED)
    samples = {turn.name: [] for turn in turns}
    for index in range(num_rounds):
        progress(f"round {index + 1} of {num_rounds}")
        for turn in order.sample(turns, len(turns)):
            samples[turn.name].append(_without_collector(turn.run))
    return samples


def _without_collector(run):
    gc.collect()
    gc.disable()
    try:
        return run()
    finally:
        gc.enable()


class Neighbours:
    """How much of the machine's CPU time others take, its hypervisor included."""

    def __init__(self):
        self._start = _cpu_seconds()

    def share(self):
        """Since the start; None where the system does not say."""
        if self._start is None:
            return None
        elapsed, busy, own = (now - then for now, then in zip(_cpu_seconds(), self._start))
        return max(0.0, busy - own) / elapsed if elapsed > 0 else 0.0


def _cpu_seconds():
    """All there is of the machine, what of it was busy, and what of that was this process and its children."""
    path = pathlib.Path("/proc/stat")
    if not path.exists():
        return None
    user, nice, system, idle, wait, *rest = (int(n) / os.sysconf("SC_CLK_TCK") for n in
                                             path.read_text(encoding="utf-8").split("\n", 1)[0].split()[1:9])
    busy = user + nice + system + sum(rest)
    return busy + idle + wait, busy, sum(os.times()[:4])


def turns_of(program, file, given, variants, names, iterations, warmup):
    fuseline = [FuselineTurn(program, file, given, name, iterations, warmup) for name in names]
    return fuseline + [TorchTurn(variant, iterations, warmup) for variant in variants]


def report(samples, base):
    """One row a variant, all against the base: a ratio above 1 says that the base is faster."""
    return [{"name": name, **stats.summary(rounds), "timeOverBase": stats.ratio(rounds, samples[base]),
             "roundsNs": rounds} for name, rounds in samples.items()]


def machine(device):
    """What PyTorch runs on."""
    if device.type != "cuda":
        return {"device": "cpu", "name": _cpu_name(), "threads": torch.get_num_threads()}
    properties = torch.cuda.get_device_properties(device)
    return {"device": str(device), "name": properties.name, "capability": f"{properties.major}.{properties.minor}",
            "cuda": torch.version.cuda}


def _cpu_name():
    path = pathlib.Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
