#!/usr/bin/env python3
# Tests that manual pages and completions know every command and option that the programs have.
# SPDX-License-Identifier: Apache-2.0
"""test_manuals.py MANUALS PROGRAM...: MANUALS is the folder of the pages, a PROGRAM is fuseline or fuseline-designer."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
COMPLETIONS = ROOT / "resources" / "desktop"
MANUALS = pathlib.Path()
PROGRAMS = {}
# Calls of the functions that zsh completes with print what they are given.
ZSH_PRELUDE = '_describe() { print -rl -- ${(P)2} }; compadd() { print -rl -- ${(P)2} }; _files() { print -r -- "$@" }; '


def run(*arguments, **options):
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen"}
    return subprocess.run([*map(str, arguments)], capture_output=True, text=True, check=False, env=environment, **options)


def verbs():
    """Those that main.cpp adds."""
    source = (ROOT / "app/cli/main.cpp").read_text(encoding="utf-8")
    return {name.lower() for name in re.findall(r"cli::add(\w+)Verb\(", source)}


def options(*arguments):
    return set(re.findall(r"--[a-z][a-z-]*", run(*arguments, "--help").stdout)) - {"--help"}


def page(program):
    return (MANUALS / f"{program}.1").read_text(encoding="utf-8").replace("\\-", "-")


class Manuals(unittest.TestCase):
    def test_have_every_command_with_every_option(self):
        sections = {text.split()[1]: text for text in page("fuseline").split('.SS "')[1:]}
        self.assertEqual(verbs(), set(sections))
        for verb, text in sections.items():
            for option in options(PROGRAMS["fuseline"], verb):
                self.assertIn(option, text, verb)

    def test_have_every_option_of_each_program(self):
        for name, program in PROGRAMS.items():
            for option in options(program):
                self.assertIn(option, page(name))

    def test_name_the_program_as_it_is_called(self):
        for name in PROGRAMS:
            self.assertIn(f".SH SYNOPSIS\n.B {name} [", page(name))

    def test_are_read_without_a_warning(self):
        if not shutil.which("man"):
            self.skipTest("man is not installed")
        for name in PROGRAMS:
            result = run("man", "--warnings=all", "-Tutf8", "-l", MANUALS / f"{name}.1")
            self.assertEqual((0, ""), (result.returncode, result.stderr))


class Completions(unittest.TestCase):
    def words(self, shell, script):
        if not shutil.which(shell):
            self.skipTest(f"{shell} is not installed")
        result = run(shell, "-c", script)
        self.assertEqual("", result.stderr)
        return set(result.stdout.split("\n")) - {""}

    def in_bash(self, *typed):
        words = " ".join(f"'{word}'" for word in (PROGRAMS["fuseline"], *typed))
        return self.words("bash", f"source {COMPLETIONS}/fuseline.bash-completion; COMP_WORDS=({words}); "
                          f'COMP_CWORD={len(typed)}; _fuseline; printf "%s\\n" "${{COMPREPLY[@]}}"')

    def in_zsh(self, *typed):
        words = " ".join(f"'{word}'" for word in (PROGRAMS["fuseline"], *typed))
        return self.words("zsh", f"{ZSH_PRELUDE} words=({words}); CURRENT={len(typed) + 1}; PREFIX='{typed[-1]}'; "
                          f"source {COMPLETIONS}/fuseline.zsh-completion")

    def in_fish(self, *typed):
        folder = PROGRAMS["fuseline"].parent
        return self.words("fish", f"set PATH {folder} $PATH; source {COMPLETIONS}/fuseline.fish; "
                          f"complete -C'fuseline {' '.join(typed)}'")

    def test_bash_knows_commands_and_options(self):
        self.assertEqual(verbs(), self.in_bash(""))
        self.assertEqual(options(PROGRAMS["fuseline"], "run"), self.in_bash("run", "--") - {"--help"})

    def test_zsh_knows_commands_with_what_they_do_and_options(self):
        found = self.in_zsh("")
        self.assertEqual(verbs(), {line.partition(":")[0] for line in found})
        self.assertTrue(all(line.partition(":")[2] for line in found), found)
        self.assertEqual(options(PROGRAMS["fuseline"], "run"), self.in_zsh("run", "--") - {"--help"})
        self.assertEqual({"-g *.(fuserun)"}, self.in_zsh("compare", ""))

    def test_fish_knows_commands_with_what_they_do_and_options(self):
        found = self.in_fish("")
        self.assertEqual(verbs(), {line.partition("\t")[0] for line in found})
        self.assertTrue(all(line.partition("\t")[2] for line in found), found)
        self.assertEqual(options(PROGRAMS["fuseline"], "run"), self.in_fish("run", "--") - {"--help"})


if __name__ == "__main__":
    MANUALS = pathlib.Path(sys.argv[1])
    PROGRAMS = {pathlib.Path(program).name: pathlib.Path(program).resolve() for program in sys.argv[2:]}
    unittest.main(argv=sys.argv[:1])
