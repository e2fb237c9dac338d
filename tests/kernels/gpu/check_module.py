# The CUDA module: it holds the code that it was configured for, and is small enough to be handed on.
# SPDX-License-Identifier: Apache-2.0
# Usage: check_module.py MODULE TARGETS, which are as CMake writes them: "80-real;120-virtual;90a"
import pathlib
import re
import struct
import sys

MAX_BYTES = 40_000_000
# Of the containers that fatbinary writes: a header of 16 bytes, then entries with headers of their own.
MAGIC = b"\x50\xed\x55\xba"
CONTAINER = struct.Struct("<4sHHQ")  # magic, version, bytes of this header, bytes of what follows
ENTRY = struct.Struct("<HHIQ12xI")   # kind, version, bytes of this header, bytes of the code, architecture
PTX, MACHINE_CODE = 1, 2


def wanted(targets):
    """{(kind, 80)}"""
    kinds = {"real": [MACHINE_CODE], "virtual": [PTX], "": [PTX, MACHINE_CODE]}
    split = [target.partition("-") for target in targets.split(";")]
    return {(kind, int(number.rstrip("af"))) for number, _, which in split for kind in kinds[which]}


def containers(data):
    """What each holds: {(kind, 80)}. There is one for every source with kernels."""
    for match in re.finditer(re.escape(MAGIC), data):
        magic, _, header_bytes, size = CONTAINER.unpack_from(data, match.start())
        if header_bytes != CONTAINER.size:
            continue
        place = match.start() + header_bytes
        end = place + size
        codes = set()
        while place < end:
            kind, _, entry_bytes, code_bytes, architecture = ENTRY.unpack_from(data, place)
            codes.add((kind, architecture))
            place += entry_bytes + code_bytes
        yield codes


def main():
    module, want = pathlib.Path(sys.argv[1]), wanted(sys.argv[2])
    data = module.read_bytes()
    found = [codes for codes in containers(data) if codes]
    problems = [f"wanted {sorted(want)}, found {sorted(codes)}" for codes in found if codes != want]
    if not found:
        problems.append(f"{module.name} holds no kernels")
    if len(data) > MAX_BYTES:
        problems.append(f"{module.name} has {len(data)} bytes, more than {MAX_BYTES}")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
