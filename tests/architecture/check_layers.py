#!/usr/bin/env python3
# Checks that no source includes what its layer must not know. Prints every offence with file, line and rule.
# SPDX-License-Identifier: Apache-2.0
"""check_layers.py ROOT: exit status 1 when the tree at ROOT breaks the dependency rule, or when the picture of core's
folders in resources/guide/contributing.md is not the one that the includes give. check_layers.py ROOT --draw prints it."""

import pathlib
import re
import sys

SOURCE_SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
LAYERS = ("core", "kernels", "ui", "app", "tests")

# Within core: a folder may include itself and what stands before it.
CORE_ORDER = (
    "support", "numerics", "tensor", "collective", "ops", "graph", "document", "lowering", "edit", "compare", "sharding",
    "quant", "fusion", "plan", "profile", "runtime", "export", "worker",
)

# Within ui likewise.
UI_ORDER = (
    "theme", "widgets", "layout", "session", "problems", "changes", "library", "fusions", "inspector", "runs", "machines", "timings", "outline",
    "numerics", "memory", "sweep", "flame", "roofline", "canvas", "compare", "timeline", "tours", "window",
)
# Edits that are composed in the window take sizes and places from the canvas.
UI_EXCEPTIONS = {("session", "canvas")}

ORDERS = {"core": CORE_ORDER, "ui": UI_ORDER}

QT = r"Q[A-Za-z]|Qt[A-Za-z0-9]*/|ui_.*\.h$|moc_.*"
CUDA = r"cuda|cublas|curand|cupti|nccl|nvrtc|nvtx|nvToolsExt|nvml|cooperative_groups|driver_types|mma\.h"
CPU_LIBRARIES = r"oneapi/|dnnl|hwy/|omp\.h|immintrin"
COMMAND_LINE = r"CLI/"

# (files, what they must not include, the rule in words). First column: a prefix of the path.
RULES = (
    ("core/", rf"^(kernels|ui|app|tests)/", "core knows no kernels, ui, app or tests"),
    ("core/", rf"^({QT})", "core knows no Qt"),
    ("core/", rf"^({CUDA})", "core knows no CUDA"),
    ("core/", rf"^({CPU_LIBRARIES})", "core knows no kernel library"),
    ("core/", rf"^({COMMAND_LINE})", "core knows no command line"),
    ("core/", r"^graphviz/", "core knows no Graphviz outside core/export/graphviz"),
    ("kernels/", r"^(ui|app|tests)/", "kernels know no ui, app or tests"),
    ("kernels/", rf"^({QT})", "kernels know no Qt"),
    ("kernels/", rf"^({COMMAND_LINE})", "kernels know no command line"),
    ("kernels/common/", rf"^({CUDA}|{CPU_LIBRARIES}|kernels/(?!common/))", "what all backends share knows none of them"),
    ("kernels/cpu/", rf"^({CUDA}|kernels/cuda/)", "the CPU kernels know no CUDA"),
    ("kernels/cuda/", rf"^({CPU_LIBRARIES}|kernels/cpu/)", "the CUDA kernels know no CPU kernels"),
    ("kernels/cuda/device/", r"^(?!kernels/cuda/device/|core/numerics/)(core|kernels)/",
     "device headers include only kernels/cuda/device and core/numerics"),
    ("ui/", r"^(kernels|app|tests)/", "ui knows no kernels, app or tests"),
    ("ui/", rf"^({CUDA}|{CPU_LIBRARIES})", "ui knows no device library"),
    ("ui/", rf"^({COMMAND_LINE})", "ui knows no command line"),
    ("ui/session/", r"^ui/(?!session/|theme/)", "the session knows no canvas, panes or window"),
    ("app/cli/", rf"^({QT}|ui/)", "the program fuseline links no Qt"),
    ("app/bench/", rf"^({QT}|{CUDA}|ui/)", "the program fuseline-bench needs neither Qt nor CUDA"),
    ("ui/", r"^graphviz/", "only core/export/graphviz knows Graphviz"),
    ("app/", r"^graphviz/", "only core/export/graphviz knows Graphviz"),
    ("app/backends", rf"^({QT}|ui/|{CUDA})", "the backends of a program need neither Qt nor CUDA"),
    ("app/", r"^tests/", "no program includes tests"),
)

# The only folder that may call Graphviz.
GRAPHVIZ_FOLDER = "core/export/graphviz/"

INCLUDE = re.compile(r'^\s*#\s*include(?:_next)?\s*([<"])([^>"]+)[>"]')


def sources(root):
    for layer in LAYERS:
        for path in sorted((root / layer).rglob("*")):
            if path.suffix in SOURCE_SUFFIXES and path.is_file():
                yield path.relative_to(root).as_posix(), path


def includes(path):
    """Line number, bracket and name of every include."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1], match[2]


def folder_of(layer, name):
    parts = name.split("/")
    return parts[1] if len(parts) > 2 and parts[0] == layer else None


def order_offence(layer, source, included):
    here, there = folder_of(layer, source), folder_of(layer, included)
    if here is None or there is None or (layer == "ui" and (here, there) in UI_EXCEPTIONS):
        return None
    order = ORDERS[layer]
    for folder in (here, there):
        if folder not in order:
            return f"{layer}/{folder} has no place in the order of {layer}; give it one in tests/architecture/check_layers.py"
    if order.index(there) > order.index(here):
        return f"{layer}/{here} stands below {layer}/{there} and must not know it"
    return None


def path_offence(bracket, included):
    """Quoted includes are written from the root of the project, so that the layer can be read off them."""
    # Qt's generator writes "<source>.moc" beside the object file.
    if bracket == '"' and not included.endswith(".moc") and not included.startswith(tuple(f"{layer}/" for layer in LAYERS)):
        return "a quoted include is written from the root of the project"
    return None


def offences_of(source, bracket, included):
    candidates = [path_offence(bracket, included), *(order_offence(layer, source, included) for layer in ORDERS)]
    if not (source.startswith(GRAPHVIZ_FOLDER) and included.startswith("graphviz/")):
        candidates += [words for prefix, pattern, words in RULES if source.startswith(prefix) and re.match(pattern, included)]
    return [words for words in candidates if words]


def check(root):
    """All offences below root, and how many includes were looked at."""
    offences, num_includes = [], 0
    for source, path in sources(root):
        for number, bracket, included in includes(path):
            num_includes += 1
            for words in offences_of(source, bracket, included):
                offences.append(f"{source}:{number}: includes {included}: {words}")
    return offences, num_includes


def core_includes(root):
    """For each folder of core the folders that it includes, read off the includes."""
    known = {folder: set() for folder in CORE_ORDER}
    for source, path in sources(root):
        here = folder_of("core", source)
        if here in known:
            known[here] |= {folder_of("core", included) for _, _, included in includes(path)} & known.keys() - {here}
    return known


def without_detours(known):
    """known without the arrows that a chain of other arrows implies."""
    reached = {}
    for folder, included in known.items():  # in the order of core, so that lower folders are there
        reached[folder] = included.union(*(reached[other] for other in included))
    return {
        folder: included - set().union(*(reached[other] for other in included))
        for folder, included in known.items()
    }


def picture(root):
    """Core's folders as a Mermaid flowchart; an arrow points from a folder to one that it includes."""
    arrows = without_detours(core_includes(root))
    lines = [f"  {folder} --> {other}" for folder in reversed(CORE_ORDER) for other in sorted(arrows[folder], key=CORE_ORDER.index)]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```"])


def picture_offences(root):
    page = root / "resources/guide/contributing.md"
    if page.exists() and picture(root) not in page.read_text(encoding="utf-8"):
        return [f"{page.relative_to(root)}: the picture of core is not that of its includes; replace it by the output of "
                "tests/architecture/check_layers.py . --draw"]
    return []


def main():
    root = pathlib.Path(sys.argv[1])
    if "--draw" in sys.argv:
        print(picture(root))
        return 0
    offences, num_includes = check(root)
    offences += picture_offences(root)
    print("\n".join(offences))
    print(f"{num_includes} includes, {len(offences)} against the dependency rule.")
    return 1 if offences or num_includes == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
