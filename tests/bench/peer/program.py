# Runs the program fuseline and reads what it says.
# SPDX-License-Identifier: Apache-2.0
"""Every verb with --json; an error of fuseline ends the tool with fuseline's own words and exit code."""

import json
import os
import pathlib
import shutil
import subprocess

INVALID, USAGE, NO_DEVICE, FAILED, UNMET = 1, 2, 3, 4, 5  # exit codes, those of fuseline


class PeerError(Exception):
    """What the user can cause: a sentence, and the exit code that goes with it."""

    def __init__(self, sentence, code=INVALID):
        super().__init__(sentence)
        self.code = code


def find_program(given):
    """The program to compare with: the one given, else a build of this tree, else one that is installed."""
    folders = pathlib.Path(__file__).resolve().parents
    builds = [folders[3] / "build" / preset / "bin" / "fuseline" for preset in ("release", "dev")]
    installed = [folders[4] / "bin" / "fuseline", shutil.which("fuseline")]  # beside share/fuseline/bench, or anywhere
    candidates = [given] if given else [*builds, *installed]
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK) and not os.path.isdir(candidate):
            return str(candidate)
    if given:
        raise PeerError(f"{given} is no program; name the program fuseline with --fuseline.", USAGE)
    raise PeerError("There is no program fuseline; build it with app/run, or name it with --fuseline.", USAGE)


class Program:
    """fuseline with the options that describe one pipeline."""

    def __init__(self, path, options=(), threads=None):
        self.path = path
        self.options = list(options)
        self.environment = dict(os.environ, **({"OMP_NUM_THREADS": str(threads)} if threads else {}))

    def text(self, *arguments):
        done = subprocess.run([self.path, *map(str, arguments)], env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            code = done.returncode if 0 < done.returncode <= UNMET else FAILED
            words = done.stderr.strip() or f"{self.path} ended with status {done.returncode}."
            raise PeerError(words, code)
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.text(*arguments, "--json"))

    def catalog(self):
        """Op -> its entry in the op library."""
        return {op["name"]: op for op in self.json("ops")["ops"]}

    def infer(self, file, options=None):
        return self.json("infer", file, *(self.options if options is None else options))

    def run(self, file, *arguments):
        """The record of a run and what the program compared."""
        return self.json("run", file, *self.options, "--quiet", *arguments)
