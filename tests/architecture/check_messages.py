#!/usr/bin/env python3
# Checks texts in sources: an error, a refusal or a note has at most 200 characters, with a list after a colon at its end; a text
# of the window has at most six lines.
# SPDX-License-Identifier: Apache-2.0
"""check_messages.py ROOT [--list]: exit status 1 where a message is too long. --list prints every message as PATH:LINE: text."""

import pathlib
import re
import sys

from check_classes import SOURCE_SUFFIXES
from source_texts import blanked, line_of, texts_of

FOLDERS = ("app", "core", "kernels", "ui")
MAXIMUM = 200
# A name, a number or a shape that stands for a placeholder.
PLACEHOLDER_LENGTH = 12
PLACEHOLDER = re.compile(r"(?<!\{)\{[^{}]*\}(?!\})|%\d")
LIST_AT_END = re.compile(r": (?:\{\d*\}|%\d)\.?$|:\\n\{\d*\}$")
# Calls and members that take a message, such as Error{...}, Verdict::no(...), refuse(...) and .message = ...
TAKES_MESSAGE = re.compile(r"(?i)error|verdict|\bno$|refus|fail|problem|note|doubt|warn|message|explanation|caution|reason")
NAME_BEFORE = re.compile(r"([\w.:>-]+(?:\s*=\s*[\w:]+)?)\s*$")
RETURNED = re.compile(r"return\s+(?:fmt::format\(\s*)?$")
NESTING = 4
MAXIMUM_LINES = 6
LINE_BREAK = re.compile(r"\\n|<br>|<br/>")
TRANSLATED = re.compile(r"\b(?:tr|translated|counted)$")
SHORTEST = 60


def literals(text):
    return [(offset, found) for offset, kind, found in texts_of(text) if kind == "literal"]


def callers(code, offset):
    """Names before the open brackets around an offset, the innermost first."""
    names, depth = [], 0
    for at in range(offset - 1, max(0, offset - 1500), -1):
        if code[at] in ")}]":
            depth += 1
        elif code[at] in "({[" and depth:
            depth -= 1
        elif code[at] in "({[":
            name = NAME_BEFORE.search(code[max(0, at - 80):at])
            names.append(name[1] if name else "")
            if len(names) == NESTING:
                break
        elif code[at] == ";" and not depth:
            break
    return names


def messages(text):
    code = blanked(text)
    for offset, found in literals(text):
        if len(found) < SHORTEST or found.count("\\n") > 1 or found.startswith("<"):
            continue
        if any(map(TAKES_MESSAGE.search, callers(code, offset))) or RETURNED.search(code[max(0, offset - 60):offset]):
            yield line_of(text, offset), found


def length(message):
    return len(PLACEHOLDER.sub("x" * PLACEHOLDER_LENGTH, LIST_AT_END.sub(":", message)).replace("\\", ""))


def every_message(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in SOURCE_SUFFIXES:
                for line, message in messages(path.read_text(encoding="utf-8")):
                    yield f"{path.relative_to(root).as_posix()}:{line}", message


def window_texts(root):
    for path in sorted((root / "ui").rglob("*.cpp")):
        text = path.read_text(encoding="utf-8")
        code = blanked(text)
        for offset, found in literals(text):
            if any(map(TRANSLATED.search, callers(code, offset)[:1])):
                yield f"{path.relative_to(root).as_posix()}:{line_of(text, offset)}", found


def check(root):
    found = list(every_message(root))
    texts = list(window_texts(root))
    offences = [f"{place}: {length(message)} characters, expected {MAXIMUM} at most; shorten it, or put its list at the end "
                f"after a colon: {message}" for place, message in found if length(message) > MAXIMUM]
    offences += [f"{place}: {len(LINE_BREAK.findall(text)) + 1} lines, expected {MAXIMUM_LINES} at most: {text}"
                 for place, text in texts if len(LINE_BREAK.findall(text)) >= MAXIMUM_LINES]
    return offences, len(found) + len(texts)


def main(arguments):
    root = pathlib.Path(arguments[0]).resolve()
    if "--list" in arguments:
        print("\n".join(f"{place}: {message}" for place, message in every_message(root)))
        return 0
    offences, found = check(root)
    print("\n".join(offences))
    print(f"{found} messages, {len(offences)} offences.")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
