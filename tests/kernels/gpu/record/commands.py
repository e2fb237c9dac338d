# Runs programs side by side with a time limit, each in a process group of its own.
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import os
import signal
import subprocess
import time

from budget import GRACE_SECONDS

POLL_SECONDS = 0.05


@dataclasses.dataclass(frozen=True)
class Command:
    """Its output goes to NAME.txt and its errors to NAME.log."""

    name: str
    arguments: tuple
    environment: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Ended:
    name: str
    code: int  # negative: the signal that ended it
    was_cut: bool  # by the limit, or because the recording was stopped


class Runner:
    def __init__(self, folder, environment):
        self._folder, self._environment = folder, environment
        self.signal = None  # that somebody sent to the recording

    def listen(self):
        """From now on these signals end what is running, and the recording with it."""
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)

    def _stop(self, number, _frame):
        self.signal = number

    def run(self, commands, seconds):
        """All at once. Returns how each ended."""
        end = time.monotonic() + seconds
        running = {command.name: self._start(command) for command in commands}
        self._wait(running, lambda: self.signal is not None or time.monotonic() >= end)
        cut = [name for name, process in running.items() if process.poll() is None]
        self._end(running)
        return [Ended(name, process.returncode, name in cut) for name, process in running.items()]

    def _start(self, command):
        with open(self._folder / f"{command.name}.txt", "wb") as out, open(self._folder / f"{command.name}.log", "wb") as log:
            return subprocess.Popen(command.arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=log,
                                    env={**self._environment, **command.environment}, start_new_session=True)

    def _end(self, running):
        """The groups of all: what a program started, and left behind, ends too."""
        for process in running.values():
            _signal(process, signal.SIGTERM)
        end = time.monotonic() + GRACE_SECONDS
        self._wait(running, lambda: time.monotonic() >= end)
        for process in running.values():
            _signal(process, signal.SIGKILL)
            process.wait()

    @staticmethod
    def _wait(running, is_over):
        while any(process.poll() is None for process in running.values()) and not is_over():
            time.sleep(POLL_SECONDS)


def _signal(process, number):
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass  # the whole group is gone
