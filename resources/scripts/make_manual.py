#!/usr/bin/env python3
# Writes the manual page of a program out of what its --help says.
# SPDX-License-Identifier: Apache-2.0
"""make_manual.py PROGRAM OUT.1: PROGRAM is fuseline or fuseline-designer, as it was built."""

import os
import pathlib
import re
import subprocess
import sys

SIBLING = {"fuseline": "fuseline-designer", "fuseline-designer": "fuseline"}
TITLES = {"Subcommands": "COMMANDS", "Positionals": "ARGUMENTS"}
ASKS_FOR_HELP = re.compile(r"-h,\s?--help$")


def ask(program, *arguments):
    """What the program prints, as it would when it is called by its name alone."""
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen", "LC_ALL": "C.UTF-8"}
    return subprocess.run([program.name, *arguments], executable=program, env=environment, check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.strip()


class Help:
    """The text of --help in its parts: usage, what stands above the sections, and the sections as (term, text)."""

    def __init__(self, text):
        self.usage = ""
        self.paragraphs = []
        self.sections = {}
        section = None
        for line in text.splitlines():
            head = re.fullmatch(r"(\w+):", line)
            if line.startswith("Usage: "):
                self.usage = line.removeprefix("Usage: ")
            elif head:
                section = self.sections.setdefault(head.group(1), [])
            elif line.startswith("  "):
                self.add_line(section, line)
            elif line:
                self.paragraphs.append(line)

    @staticmethod
    def add_line(section, line):
        """Behind the indent of a term stands a term, with its text on the same line or below."""
        if not line.startswith("   "):
            term, _, text = line.strip().partition("  ")
            section.append((term, text.strip()))
        else:
            term, text = section[-1]
            section[-1] = (term, f"{text} {line.strip()}".strip())


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def items(entries):
    lines = []
    for term, text in entries:
        if not ASKS_FOR_HELP.match(term):
            lines += [".TP", f".B {escaped(term)}", escaped(text)]
    return lines


def command(program, name):
    """A verb as a section of its own."""
    text = Help(ask(program, name, "--help"))
    lines = [f'.SS "{escaped(text.usage)}"', escaped(text.paragraphs[0])]
    for entries in text.sections.values():
        lines += items(entries)
    return lines


def manual(program):
    name = program.name
    text = Help(ask(program, "--help"))
    summary, *notes = text.paragraphs
    release = ask(program, "--version")
    lines = [f'.TH {name.upper()} 1 "" "{release}" "User Commands"',
             ".SH NAME", f"{escaped(name)} \\- {escaped(summary.rstrip('.'))}",
             ".SH SYNOPSIS", f".B {escaped(text.usage)}"]
    if notes:
        lines += [".SH DESCRIPTION", *map(escaped, notes)]
    for section, entries in text.sections.items():
        lines += [f".SH {TITLES.get(section, section.upper())}"]
        if section == "Subcommands":
            for verb, _ in entries:
                lines += command(program, verb)
        else:
            lines += items(entries)
    lines += [".SH SEE ALSO", f".BR {escaped(SIBLING[name])} (1)"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    pathlib.Path(sys.argv[2]).write_text(manual(pathlib.Path(sys.argv[1]).resolve()), encoding="utf-8")
