#!/usr/bin/env python3
# Checks the English of texts that people read: literals and comments of sources, the guide, READMEs, golden files.
# SPDX-License-Identifier: Apache-2.0
"""check_english.py ROOT [--list] [--allowances]: exit status 1 where a folder has more sentences that a reader must decode than ALLOWANCES
says, or fewer: the allowance of a folder may only be lowered.
--list prints every such sentence as PATH:LINE: reason: text; --allowances prints what ALLOWANCES would be."""

import collections
import json
import pathlib
import re
import sys

from check_classes import SOURCE_SUFFIXES
from source_texts import joined, line_of, texts_of

FOLDERS = ("app", "core", "kernels", "ui", "resources/guide", "tests")
ALLOWANCES = json.loads((pathlib.Path(__file__).parent / "english_allowances.json").read_text(encoding="utf-8"))

# A sentence, or a comment, that begins with a clause in place of its noun. Questions may begin so.
OPENING = re.compile(r"(?:^|(?<=[.!:] ))(?:Of|What|That|Who)\b(?! is | are | does | do )(?=[^.?!]*(?:[.!]|$))(?![^.!]*\?)")
# Words of the left column that have no other meaning in these texts.
WORDS = re.compile(r"\b(?:x roof|roofs?\b(?! ?line)|hands? over|handed over|hand-overs?|once more|as long as it takes|so many|could be chance|"
                   r"keep it that way|runs as one|run as one|stands in for|in turns|takes? (?:it )?back|gives up|"
                   r"rule book|a summand|bits are the same|no multiple of|would have to come)\b", re.I)
SPACES = re.compile(r"\s+")


def texts_of_page(text):
    """Paragraphs, without fenced code."""
    lines, pieces, fenced = text.splitlines(), [], False
    for number, line in enumerate(lines, 1):
        fenced ^= line.startswith("```")
        if not fenced and not line.startswith("```"):
            pieces.append((number, "comment" if line.strip() else "empty", True, line.strip().lstrip("#*-|> 0123456789.")))
    return [(line, found) for line, _, found in joined(pieces)]


def texts_of_source(text):
    return [(line_of(text, offset), found) for offset, _, found in texts_of(text)]


def offences_of(path):
    text = path.read_text(encoding="utf-8")
    read = texts_of_page if path.suffix == ".md" else texts_of_source
    for line, found in read(text):
        plain = SPACES.sub(" ", found)
        for reason, pattern in (("begins with a clause", OPENING), ("a word of our own", WORDS)):
            for match in pattern.finditer(plain):
                yield line, f"{reason}: {plain[max(0, match.start() - 1):match.end() + 60].strip()}"


def pages_and_sources(root):
    yield from (root / name for name in ("README.md",) if (root / name).is_file())
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and (path.suffix in SOURCE_SUFFIXES or path.suffix == ".md") and path.name != "test_checks.py":
                yield path


def folder_of(root, path):
    return "/".join(path.relative_to(root).parts[:-1][:2]) or "."


def count(root):
    """(sentences to decode by folder, all of them as text)."""
    counts, lines = collections.Counter(), []
    for path in pages_and_sources(root):
        for line, offence in offences_of(path):
            counts[folder_of(root, path)] += 1
            lines.append(f"{path.relative_to(root).as_posix()}:{line}: {offence}")
    return counts, lines


def check(root, allowances=None):
    allowed = ALLOWANCES if allowances is None else allowances
    counts, lines = count(root)
    offences = []
    for folder in sorted({*counts, *allowed}):
        found, most = counts[folder], allowed.get(folder, 0)
        if found > most:
            offences += [f"{folder}: {found} sentences to decode, expected {most} at most (--list shows them):",
                         *("  " + line for line in lines if line.rpartition("/")[0].startswith(folder))][:1 + found]
        elif found < most:
            offences.append(f"{folder}: {found} sentences to decode are left: lower its allowance from {most} in english_allowances.json")
    return offences, sum(counts.values())


def main(arguments):
    root = pathlib.Path(arguments[0]).resolve()
    if "--allowances" in arguments:
        print(json.dumps(dict(sorted(count(root)[0].items())), indent=2))
        return 0
    if "--list" in arguments:
        print("\n".join(count(root)[1]))
        return 0
    offences, found = check(root)
    print("\n".join(offences))
    print(f"{found} sentences to decode, {len(offences)} lines of offences.")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
