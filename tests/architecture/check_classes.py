#!/usr/bin/env python3
# Checks that no class has too many methods or lines, over all of its files. What is larger stands in a list that shrinks.
# SPDX-License-Identifier: Apache-2.0
"""check_classes.py ROOT: exit status 1 when a class of the tree at ROOT is larger than the limits and not listed in
EXCEPTIONS, or when a number in EXCEPTIONS could be lower.

Methods: functions declared in the body of the class, overloads, signals and constructors included; what is defaulted or
deleted has no code and does not count. Lines: those of their definitions, wherever these stand, without blank lines and
comments. Classes within a class count for themselves."""

import bisect
import collections
import dataclasses
import os.path
import pathlib
import re
import sys

SOURCE_SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
LAYERS = ("core", "kernels", "ui", "app")
LIMITS = {"methods": 40, "lines": 350}

# Larger than the limits when the check began. A number may only be lowered; nothing may be added.
EXCEPTIONS = {
    "ui/session/session.h: ui::Session": {"methods": 116, "lines": 486},
    "ui/sweep/sweep_chart.h: ui::SweepChart": {"methods": 41},
    "ui/timeline/timeline_stack.h: ui::TimelineStack": {"methods": 42},
    "ui/timeline/timeline_view.h: ui::TimelineView": {"methods": 65, "lines": 407},
}

LITERAL = re.compile(
    r'R"(?P<end>[^()\s\\]*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
LABEL = re.compile(r"\b(?:public|protected|private|Q_SIGNALS|signals)(?:\s+(?:Q_SLOTS|slots))?\s*:(?!:)")
QT_MACRO = re.compile(r"\bQ_[A-Z_]+\b(?:\s*\([^()]*\))?")
DECORATION = re.compile(r"\[\[[^\]]*\]\]|\balignas\s*\([^()]*\)|\b__\w+__\b(?:\s*\([^()]*\))?")
ANGLES = re.compile(r"<[^<>;{}]*>")
CLASS = re.compile(r"\b(?:class|struct|union)\s+((?:\w+::)*\w+)\s*(?:final\s*)?(?::(?!:)[^()]*)?$")
MEMBER = re.compile(r"((?:\w+::)+)(?:~?\w+|operator\b[^(]*)\s*\(")
NO_METHOD = re.compile(r"\s*(?:using|typedef|friend|static_assert|enum|extern)\b")


@dataclasses.dataclass
class Class:
    """A class where its body stands. Its name has the namespaces it is in."""

    name: str
    source: str
    methods: int = 0
    lines: int = 0

    def key(self):
        return f"{self.source}: {self.name.split('::', 1)[-1]}"


def blank(match):
    """As many characters and lines as before, so that places in the text keep their line; a literal stays a literal."""
    text = match[0]
    hidden = re.sub(r"[^\n]", " ", text)
    return hidden if text.startswith("/") else '"' + hidden[1:-1] + '"'


def code_of(text):
    """The text without comments, directives and what stands in literals, line by line."""
    return DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), LITERAL.sub(blank, text))


def without_angles(statement):
    """"std::function<void()> run" would be read as a function."""
    statement = re.sub(r"\boperator\s*(?:<=>|<<=?|>>=?|->\*?|<=?|>=?)", "operator", statement)
    statement = re.sub(r"->|<=>|<=|>=|<<", " ", statement)
    while True:
        shorter = ANGLES.sub("", statement)
        if shorter == statement:
            return statement
        statement = shorter


class Reader:
    """Walks through one source: the scopes it is in, and each statement of a namespace or a class."""

    def __init__(self, source, text):
        self.source = source
        self.code = code_of(text)
        self.breaks = [place for place, letter in enumerate(self.code) if letter == "\n"]
        self.classes = []
        self.members = []  # (namespace, qualifier, number of lines) of definitions outside of their class
        self.scopes = []   # (name, class or None), from the outermost one
        self.place = 0

    def read(self):
        start, words = 0, ""
        while self.place < len(self.code):
            letter = self.code[self.place]
            if letter == "{":
                start, words = self.open_brace(start, words)
            elif letter == "}":
                if self.scopes:
                    self.scopes.pop()
                start, words = self.step(), ""
            elif letter == ";":
                self.finish(start, words)
                start, words = self.step(), ""
            else:
                words += letter
                self.place += 1
        return self

    def step(self):
        self.place += 1
        return self.place

    def open_brace(self, start, words):
        """Goes into a namespace or a class, and past any other braces."""
        scope = self.scope_of(start, words)
        if scope is not None:
            self.scopes.append(scope)
            return self.step(), ""
        self.skip_braces()
        rest = self.code[self.place:].lstrip()[:1]
        is_body = "(" in without_angles(plain(words)) and not is_variable(words) and rest not in (",", "{", ";")
        if not is_body:
            return start, words + "{}"
        self.finish(start, words, has_body=True)
        return self.place, ""

    def scope_of(self, start, words):
        statement = plain(words)
        if match := re.match(r"\s*(?:inline\s+)?namespace\b\s*([\w:]*)\s*$", statement):
            return (match[1] or f"({self.source})", None)
        if re.match(r'\s*extern\s*"[^"]*"\s*$', statement):
            return ("", None)
        match = CLASS.search(without_angles(statement))
        if not match or re.match(r"\s*enum\b", without_angles(statement).lstrip()) or "=" in without_angles(statement):
            return None
        found = Class("::".join([*self.names(), match[1]]), self.source)
        self.classes.append(found)
        return (match[1], found)

    def names(self):
        return [name for name, _ in self.scopes if name]

    def skip_braces(self):
        depth = 0
        while self.place < len(self.code):
            depth += {"{": 1, "}": -1}.get(self.code[self.place], 0)
            self.place += 1
            if depth == 0:
                return

    def finish(self, start, words, has_body=False):
        """At the end of a statement: counts it where it is a method, or the definition of one."""
        inside = self.scopes[-1][1] if self.scopes else None
        num_lines = self.lines_of(start, self.place) if has_body else 0
        if inside is not None:
            if is_method(words):
                inside.methods += 1
                inside.lines += num_lines
        elif has_body and (match := MEMBER.search(without_angles(plain(words)))):
            self.members.append(("::".join(self.names()), match[1].rstrip(":"), num_lines))

    def lines_of(self, start, end):
        text = LABEL.sub("", self.code[start:end]).strip()
        return sum(1 for line in text.splitlines() if line.strip())


def plain(words):
    return DECORATION.sub(" ", QT_MACRO.sub(" ", LABEL.sub(" ", words)))


def is_variable(words):
    """One with parentheses in what it begins with, or a pointer to a function."""
    statement = without_angles(plain(words))
    before, _, after = statement.partition("(")
    return ("=" in before and "operator" not in before) or re.match(r"\s*(?:\w+::)*\*", after) is not None


def is_method(words):
    statement = without_angles(plain(words))
    if "(" not in statement or is_variable(words) or NO_METHOD.match(statement):
        return False
    return not re.search(r"=\s*(?:default|delete)\s*$", statement)


def nearness(source, other):
    return len(os.path.commonprefix([source.split("/"), other.split("/")])), os.path.splitext(source)[0] == os.path.splitext(other)[0]


def owner_of(classes, source, namespace, qualifier):
    """The class that a definition in this source and namespace is a member of; None: not a class of the tree."""
    outer = namespace.split("::") if namespace else []
    while True:
        named = classes.get("::".join([*outer, qualifier]))
        if named:
            return max(named, key=lambda one: (one.source == source, nearness(source, one.source)))
        if not outer:
            return None
        outer.pop()


def sources(root):
    for layer in LAYERS:
        for path in sorted((root / layer).rglob("*")):
            if path.suffix in SOURCE_SUFFIXES and path.is_file():
                yield path.relative_to(root).as_posix(), path


def count(root):
    """Every class below root with its methods and lines."""
    read = [Reader(source, path.read_text(encoding="utf-8")).read() for source, path in sources(root)]
    classes = collections.defaultdict(list)
    for reader in read:
        for found in reader.classes:
            classes[found.name].append(found)
    for reader in read:
        for namespace, qualifier, num_lines in reader.members:
            owner = owner_of(classes, reader.source, namespace, qualifier)
            if owner is not None:
                owner.lines += num_lines
    return [found for reader in read for found in reader.classes]


def excess(found):
    """What is over the limits: "methods", "lines" -> number."""
    return {unit: getattr(found, unit) for unit, limit in LIMITS.items() if getattr(found, unit) > limit}


def offence(key, allowed, actual):
    """What is wrong with one class; allowed and actual: what is over the limits, by the list and by the sources."""
    for unit in LIMITS:
        limit, number = allowed.get(unit, LIMITS[unit]), actual.get(unit, 0)
        if number > limit:
            return f"{key} has {number} {unit}, expected {limit} at most: give a part of it a class with state of its own"
        if unit in allowed and number < limit:
            lower = f"write {number}" if unit in actual else f"take {unit} out"
            return f"{key} has no {limit} {unit} any more: {lower} in EXCEPTIONS of tests/architecture/check_classes.py"
    return None


def check(root, exceptions=None):
    """All offences below root, and how many classes were looked at."""
    allowed = EXCEPTIONS if exceptions is None else exceptions
    classes = count(root)
    actual = {found.key(): excess(found) for found in classes if excess(found)}
    found = [offence(key, allowed.get(key, {}), actual.get(key, {})) for key in sorted({*allowed, *actual})]
    return [words for words in found if words], len(classes)


def main():
    offences, num_classes = check(pathlib.Path(sys.argv[1]))
    print("\n".join(offences))
    print(f"{num_classes} classes, {len(offences)} offences.")
    return 1 if offences or num_classes == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
