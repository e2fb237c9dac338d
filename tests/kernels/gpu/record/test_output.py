# Reads what GoogleTest prints, also of a program that did not come to its end.
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import re

BEGIN = re.compile(r"\[ RUN      \] (\S+)")
END = re.compile(r"\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?:, where .*)? \(\d+ ms\)$")
TOTAL = re.compile(r"\[==========\] Running (\d+) tests? from")


@dataclasses.dataclass
class TestRun:
    """Of one program, or of several that share the tests among them."""

    passed: list = dataclasses.field(default_factory=list)
    failed: list = dataclasses.field(default_factory=list)  # (test, what it printed)
    skipped: list = dataclasses.field(default_factory=list)  # (test, what it printed)
    unfinished: list = dataclasses.field(default_factory=list)  # in which the program ended
    missing: int = 0  # those that had not begun

    def add(self, other):
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


def parse(text):
    run, total = TestRun(), 0
    current, printed = None, []
    for line in text.splitlines():
        if found := TOTAL.match(line):
            total = int(found[1])
        elif found := BEGIN.match(line):
            current, printed = found[1], []
        elif current and (found := END.match(line)):
            _end(run, found[1], current, printed)
            current = None
        elif current:
            printed.append(line)
    if current:
        run.unfinished.append(current)
    run.missing = max(0, total - sum(map(len, (run.passed, run.failed, run.skipped, run.unfinished))))
    return run


def _end(run, word, test, printed):
    if word == "OK":
        run.passed.append(test)
    else:
        (run.failed if word == "FAILED" else run.skipped).append((test, "\n".join(printed).strip()))
