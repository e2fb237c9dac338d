#!/usr/bin/env python3
# Checks the head of every source, README.md and number of sources of every folder, properties of tests, and names of files in texts.
# SPDX-License-Identifier: Apache-2.0
"""check_files.py ROOT: exit status 1 when a head or a README.md of the tree at ROOT is missing or malformed, a property of a test
cannot fail, a text names a Markdown file that the tree does not have, a folder has more sources than the limit and is not listed in
EXCEPTIONS, or a number in EXCEPTIONS could be lower.

The entries of a catalog, such as ops, do not count: they are things of one kind, with one file each."""

import itertools
import pathlib
import re
import sys

CODE_FOLDERS = (".ci", "app", "core", "kernels", "resources", "tests", "ui")
COMMENT_MARKS = {".h": "//", ".cpp": "//", ".cu": "//", ".cuh": "//", ".py": "#", ".sh": "#", ".cmake": "#"}
SPDX = "SPDX-License-Identifier: Apache-2.0"
MAX_README_LINES = 8
README_LABELS = ("# ", "- Purpose: ", "- May include: ", "- Must not know: ")
LAYERS = ("app", "core", "kernels", "ui")
SOURCE_SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
MAX_SOURCES = 60
COMMENT = re.compile(r"(?:^|\s)(?://[/!]?<?|#)\s(.*)$")
MARKDOWN_FILE = re.compile(r"(?<![\w/.*-])(?:resources/guide/|resources/|\.\./)?([A-Za-z]\w*\.md)\b")
WITHOUT_README = {"__pycache__", "desktop", "examples", "golden", "guide", "icons", "pictures"}
# Written by programs of the tree.
GENERATED = {"summary.md"}

# Larger than the limit when the check began. A number may only be lowered; nothing may be added.
EXCEPTIONS = {"app/cli": 69, "core/export/onnx": 92, "ui/canvas": 96, "ui/window": 89}


def comment_mark(path):
    """How a comment begins in this file; None for what is not a source. A script named "run" has no suffix."""
    return "#" if path.name == "run" else COMMENT_MARKS.get(path.suffix)


def head_offence(path):
    mark = comment_mark(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    if lines and lines[0].startswith("#!"):
        lines = lines[1:]
    if not lines or not lines[0].startswith(mark + " ") or len(lines[0]) < len(mark) + 10 or SPDX in lines[0]:
        return "the first line does not say what the file is for"
    head = itertools.takewhile(lambda line: line.startswith(mark), lines)
    if f"{mark} {SPDX}" not in head:
        return f'the comment at the top has no line "{mark} {SPDX}"'
    return guard_offence(path, lines) or property_offence(lines)


def guard_offence(path, lines):
    """Highway includes a "-inl.h" once per instruction set: such a header has a toggle in place of #pragma once."""
    if path.suffix not in (".h", ".cuh") or "#pragma once" in lines:
        return None
    if path.name.endswith("-inl.h") and any("HWY_TARGET_TOGGLE" in line for line in lines):
        return None
    return "a header without #pragma once"


def property_offence(lines):
    """RapidCheck reports a falsified property as a result, which is lost where nobody looks at it."""
    if any(line.lstrip().startswith("rc::check(") for line in lines):
        return "a property that cannot fail: expected EXPECT_TRUE(rc::check(...))"
    return None


def readme_offence(folder):
    readme = folder / "README.md"
    if not readme.is_file():
        return "has no README.md"
    lines = readme.read_text(encoding="utf-8").splitlines()
    for label in README_LABELS:
        if not any(line.startswith(label) and len(line) > len(label) for line in lines[:5]):
            return f'has a README.md without "{label}" in its first five lines'
    if len(lines) > MAX_README_LINES:
        return f"has a README.md of {len(lines)} lines, expected 5, or {MAX_README_LINES} at most"
    return None


def names_of_files(path):
    """Names of Markdown files in comments of a source, or anywhere in a page."""
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line if path.suffix == ".md" else COMMENT.search(line)
        if text:
            yield from MARKDOWN_FILE.findall(text if path.suffix == ".md" else text[1])


def reference_offences(root, files):
    """References to files that only some readers have. ONNX's own documents are named with its folder."""
    pages = [path for path in root.rglob("*.md") if "build" not in path.relative_to(root).parts]
    known = {path.name for path in pages} | GENERATED
    for path in [*files, *pages]:
        missing = sorted({name for name in names_of_files(path) if name not in known})
        yield path, f"names {', '.join(missing)}, which the tree does not have" if missing else None


def source_files(root):
    for name in CODE_FOLDERS:
        for path in sorted((root / name).rglob("*")):
            if path.is_file() and comment_mark(path) and "__pycache__" not in path.parts:
                yield path


def product_folders(root):
    """Every folder of the product that holds a file."""
    for layer in LAYERS:
        for path in [root / layer, *sorted((root / layer).rglob("*"))]:
            if path.is_dir() and any(entry.is_file() for entry in path.iterdir()):
                yield path


def described_folders(root):
    """Those of the product, resources and tests, and the folders directly within these two. Pages and data that are installed as
    they are have their description in the README.md above them."""
    yield from product_folders(root)
    for top in (root / "resources", root / "tests"):
        if top.is_dir():
            yield from (path for path in [top, *sorted(top.iterdir())] if path.is_dir() and path.name not in WITHOUT_README)


def catalog_entries(root):
    """The sources that an add_catalog() lists."""
    for layer in LAYERS:
        for lists in (root / layer).rglob("CMakeLists.txt"):
            for words in re.findall(r"add_catalog\(([^)]*)\)", lists.read_text(encoding="utf-8")):
                yield from (lists.parent / f"{entry}.cpp" for entry in words.split()[2:])


def size_offence(num_sources, allowed):
    """allowed: the number in EXCEPTIONS, or the limit."""
    if num_sources > allowed:
        return f"has {num_sources} sources, expected {allowed} at most: give a part of them a folder"
    if allowed > MAX_SOURCES and num_sources < allowed:
        lower = f"write {num_sources}" if num_sources > MAX_SOURCES else "take the folder out"
        return f"has no {allowed} sources any more: {lower} in EXCEPTIONS of tests/architecture/check_files.py"
    return None


def size_offences(root, folders, exceptions):
    entries = set(catalog_entries(root))
    for folder in sorted({*folders, *(root / name for name in exceptions)}):
        sources = [path for path in folder.glob("*") if path.suffix in SOURCE_SUFFIXES and path not in entries]
        yield folder, size_offence(len(sources), exceptions.get(folder.relative_to(root).as_posix(), MAX_SOURCES))


def check(root, exceptions=None):
    """All offences below root, and how many files were looked at."""
    files, folders = list(source_files(root)), list(product_folders(root))
    found = [(path, head_offence(path)) for path in files] + [(path, readme_offence(path)) for path in described_folders(root)]
    found += size_offences(root, folders, EXCEPTIONS if exceptions is None else exceptions)
    found += reference_offences(root, files)
    return [f"{path.relative_to(root).as_posix()}: {words}" for path, words in found if words], len(files)


def main():
    offences, num_files = check(pathlib.Path(sys.argv[1]))
    print("\n".join(offences))
    print(f"{num_files} sources, {len(offences)} offences.")
    return 1 if offences or num_files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
