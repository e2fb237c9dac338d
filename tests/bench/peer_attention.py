#!/usr/bin/env python3
# Measures attention against PyTorch's scaled_dot_product_attention over lengths, heads, masks, passes and dtypes: one table.
# SPDX-License-Identifier: Apache-2.0
"""Each row is one attention, measured as peer_torch.py measures a pipeline: results are compared first, then fuseline and
PyTorch take turns. The ratio is PyTorch's median time over fuseline's, with a 95 % interval: above 1 fuseline is faster.

Exit codes: 0 all rows were measured, else the code of peer_torch.py for the first row that was not."""

import argparse
import itertools
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import peer_torch  # noqa: E402
from peer.program import PeerError  # noqa: E402

LENGTHS = (128, 256, 512, 1024, 2048, 4096)
CHANNELS = (64, 128)
MASKS = ("no_mask", "causal")
PASSES = ("forward", "train")
DTYPES = ("f32", "bf16")
QUICK_LENGTHS = (128, 1024, 4096)
QUICK_ROUNDS = 5
QUICK_TOKENS = 2048  # a turn, at least
HEADER = f"{'dtype':5} {'pass':7} {'mask':7} {'D':>4} {'S':>5}  {'fuseline ms':>11}  {'torch ms':>10}  ratio [interval]"


def parser():
    made = argparse.ArgumentParser(prog="peer_attention.py", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--quick", action="store_true",
                      help=f"a few minutes: lengths {', '.join(map(str, QUICK_LENGTHS))}, {QUICK_ROUNDS} short rounds")
    made.add_argument("--lengths", type=_numbers, metavar="S,...", help="default: 128 to 4096")
    made.add_argument("--channels", type=_numbers, default=CHANNELS, metavar="D,...", help="of a head; default: 64,128")
    made.add_argument("--masks", type=_names(MASKS), default=MASKS, metavar="MASK,...", help=", ".join(MASKS))
    made.add_argument("--passes", type=_names(PASSES), default=PASSES, metavar="PASS,...", help=", ".join(PASSES))
    made.add_argument("--dtypes", type=_names(("f32", "f16", "bf16")), default=DTYPES, metavar="DTYPE,...",
                      help="default: f32,bf16")
    made.add_argument("--batch", type=int, default=1, metavar="B")
    made.add_argument("--heads", type=int, default=8, metavar="H")
    made.add_argument("--mode", default="eager", help="of the peer (default: eager)")
    made.add_argument("--json", metavar="OUT", help="also writes one object a row, with all samples")
    made.add_argument("rest", nargs="*", metavar="OPTION",
                      help="after --: options of peer_torch.py, such as --rounds 15 or --device cuda")
    return made


def _numbers(text):
    return [int(number) for number in text.split(",")]


def _names(choices):
    def read(text):
        names = text.split(",")
        if unknown := [name for name in names if name not in choices]:
            raise argparse.ArgumentTypeError(f'"{unknown[0]}" is none of {", ".join(choices)}')
        return names

    return read


def document(arguments, dtype, mask, channels, length):
    shape = [arguments.batch, length, arguments.heads, channels]
    attributes = {"num_attention_heads": arguments.heads, "kv_channels": channels, "qkv_format": "bshd",
                  "attn_mask_type": mask}
    pipeline = {"inputs": [{"id": port, "dtype": dtype, "shape": shape} for port in "xkv"],
                "ops": [{"id": "attention", "op": "DotProductAttention", "attributes": attributes}],
                "wires": [[port, f"attention.{port}"] for port in "xkv"],
                "outputs": [{"id": "y", "from": "attention.y"}]}
    return {"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "symbols": {},
            "pipeline": pipeline}


def measured(arguments, case, scratch):
    """The exit code, and the findings of peer_torch.py; None: the error was printed."""
    dtype, pass_kind, mask, channels, length = case
    file, found = scratch / "attention.fuseline", scratch / "found.json"
    file.write_text(json.dumps(document(arguments, dtype, mask, channels, length)), encoding="utf-8")
    steps = max(1, QUICK_TOKENS // length)
    quick = ["--rounds", QUICK_ROUNDS, "--iterations", steps, "--warmup", 1] if arguments.quick else []
    options = [str(file), "--pass", pass_kind, "--modes", arguments.mode, "--json", str(found), *map(str, quick),
               *arguments.rest]
    found.unlink(missing_ok=True)
    try:
        code = peer_torch.run(peer_torch.parser().parse_args(options), show=False)
    except PeerError as error:
        print(f"{beginning(case)}  not measured: {error}", flush=True)
        return error.code, None
    return code, json.loads(found.read_text(encoding="utf-8"))


def beginning(case):
    dtype, pass_kind, mask, channels, length = case
    return f"{dtype:5} {pass_kind:7} {mask:7} {channels:4} {length:5}"


def line(case, found):
    start = beginning(case)
    rows = found.get("variants", [])
    if len(rows) < 2:
        words = [c["words"] for c in found["check"]["comparisons"] if c["words"]] + list(found["refused"].values())
        return f"{start}  not measured: {'; '.join(words)}"
    own, other = rows
    ratio = other["timeOverBase"]
    return (f"{start}  {own['median'] / 1e6:11.3f}  {other['median'] / 1e6:10.3f}  {ratio['median']:.2f} "
            f"[{ratio['low']:.2f}, {ratio['high']:.2f}]")


def run(arguments):
    worst, results = 0, []
    cases = itertools.product(arguments.dtypes, arguments.passes, arguments.masks, arguments.channels,
                              arguments.lengths or (QUICK_LENGTHS if arguments.quick else LENGTHS))
    with tempfile.TemporaryDirectory(prefix="peer_attention_") as folder:
        for case in cases:
            code, found = measured(arguments, case, pathlib.Path(folder))
            worst = worst or code
            if not found:
                continue
            if not results:
                print("\n".join([peer_torch.heading(found), "", HEADER]))
            print(line(case, found), flush=True)
            results.append(found)
    notes = dict.fromkeys(note for found in results for note in found["notes"])
    print("\n".join(["", *(f"note: {note}" for note in notes)]))
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return worst


def main():
    arguments = parser().parse_args()
    try:
        return run(arguments)
    except PeerError as error:
        print(f"peer_attention.py: {error}", file=sys.stderr)
        return error.code


if __name__ == "__main__":
    sys.exit(main())
