# The page that says what a recording found: parts, tests, ratios, and the last words of whatever failed.
# SPDX-License-Identifier: Apache-2.0
import collections

from ratios import compare_rounds
from results import read_json, read_lines
from test_output import TestRun, parse

LINES_OF_A_LOG = 15
LINES_OF_A_TEST = 12
MS = 1e6  # ns
ENVIRONMENT = ("driver", "CUDA runtime", "cuBLASLt", "NVRTC", "cuDNN", "elementwise code", "measured at", "clocks", "throttled by")


def summary(results, parts, ending):
    """Markdown. ending: why the recording ended, or that it goes on."""
    sections = [_head(results, parts, ending), _parts(results, parts), *_tests(results, parts), *_runs(results, parts), *_peers(results, parts),
                *_gpu_cases(results), *_ops(results), *_last_words(results, parts)]
    return "\n\n".join(sections) + "\n"


def _head(results, parts, ending):
    counts = collections.Counter(outcome["result"] for outcome in results.parts.values())
    quick = " Sizes are small: no time here means anything." if results.origin["isQuick"] else ""
    lines = [f"# {results.origin['gpu']}", "", f"{ending} {', '.join(f'{n} {word}' for word, n in counts.items())}.{quick}", "",
             f"* kit: `{results.origin['kit']}`", *_environment(results, parts)]
    return "\n".join(lines)


def _environment(results, parts):
    """As the first run file has it."""
    for file in _run_files(results, parts):
        if record := read_json(file):
            return [f"* {name}: {record['environment'][name]}" for name in ENVIRONMENT if name in record["environment"]]
    return []


def _run_files(results, parts):
    return [results.folder / file for part in parts for file in part.files if file.endswith(".fuserun")]


def _table(head, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


def _parts(results, parts):
    rows = []
    for part in parts:
        outcome = results.parts.get(part.name)
        if outcome:
            rows.append([part.name, outcome["result"], f"{outcome['seconds']:.1f}", f"{outcome['limit']:.0f}", outcome["why"]])
        else:
            rows.append([part.name, "not run", "", "", ""])
    return "## Parts\n\n" + _table(["part", "result", "s", "limit s", "why"], rows)


# ---- tests

def _tests(results, parts):
    for part in parts:
        if part.name in ("tests", "tests_of_clocks", "forced_fault") and part.name in results.parts:
            yield _tests_of(part.name, run_of(results, part), results.parts[part.name]["result"])


def run_of(results, part):
    run = TestRun()
    for command in part.commands:
        run.add(parse(_text(results.folder / f"{command.name}.txt")))
    return run


def _tests_of(name, run, result):
    counts = (f"{len(run.passed)} passed, {len(run.failed)} failed, {len(run.skipped)} skipped, "
              f"{len(run.unfinished)} not finished, {run.missing} not begun.")
    lines = [f"## Tests: {name}", "", counts, ""]
    word = "cut in" if result == "cut" else "the program ended in"
    lines += [f"* {word} `{test}`" for test in run.unfinished]
    reasons = collections.Counter(printed.split("\n")[-1] for _, printed in run.skipped)
    lines += [f"* {count} skipped: {reason}" for reason, count in reasons.most_common()]
    for test, printed in run.failed:
        lines += ["", f"Failed: `{test}`", *_block(printed, LINES_OF_A_TEST, is_tail=False)]
    return "\n".join(lines)


# ---- what was measured

def _runs(results, parts):
    rows = [row for file in _run_files(results, parts) if (row := _run_row(file))]
    if rows:
        head = ["run", "recipe", "clock", "rounds", "unfused ms", "fused ms", "unfused / fused", "95 % interval", "launches"]
        yield "## Fused against unfused, end to end\n\n" + _table(head, rows)


def _run_row(file):
    record = read_json(file) or {"variants": []}
    variants = {variant["name"]: variant for variant in record["variants"] if variant["endToEndNs"]}
    if not {"unfused", "fused"} <= set(variants):
        return None
    unfused, fused = variants["unfused"]["endToEndNs"], variants["fused"]["endToEndNs"]
    ratio, low, high = compare_rounds(unfused, fused)
    note = record.get("timingNote")
    return [file.stem, record["settings"]["recipe"], record["settings"]["timing"] + (" (not traced)" if note else ""),
            len(fused), _ms(unfused), _ms(fused), f"{ratio:.3f}", _interval(low, high),
            f"{variants['unfused']['launches']} / {variants['fused']['launches']}"]


def _ms(samples):
    middle = len(samples) // 2
    ordered = sorted(samples)
    return f"{(ordered[middle] + ordered[-middle - 1]) / 2 / MS:.4f}"


def _interval(low, high):
    return "too few rounds" if low is None else f"{low:.3f} to {high:.3f}"


def _peers(results, parts):
    peers = [(part.name, read_json(results.folder / f"{part.name}.json")) for part in parts if part.name.startswith("peer_")]
    rows = [row for name, peer in peers if peer for row in _peer_rows(name, peer)]
    if rows:
        head = ["comparison", "variant", "ms", "time over the first", "95 % interval"]
        yield "## Beside PyTorch\n\n" + _table(head, rows)
    problems = [f"* {name}: {words}" for name, peer in peers if peer for words in _differences(peer)]
    if problems:
        yield "Results differ:\n\n" + "\n".join(problems)


def _peer_rows(name, peer):
    for variant in peer.get("variants", []):
        ratio = variant["timeOverBase"]
        yield [name, variant["name"], f"{variant['median'] / MS:.4f}", f"{ratio['median']:.3f}",
               _interval(ratio["low"], ratio["high"])]
    yield from ([name, f"torch {mode}", "refused", reason, ""] for mode, reason in peer["refused"].items())


def _differences(peer):
    found = [f"torch {c['mode']}, {c['tensor']} ({c['variant']}): {c['words']}" for c in peer["check"]["comparisons"] if c["words"]]
    return found + peer["check"]["problems"]


def _gpu_cases(results):
    rows = read_lines(results.folder / "bench_gpu.jsonl")[1:]
    if rows:
        head = ["case", "unfused ms", "fused ms", "unfused / fused", "95 % interval", "of the peak"]
        yield "## fuseline-bench gpu\n\n" + _table(head, map(_gpu_row, rows))


def _gpu_row(row):
    case = f"{row['pipeline']}_{row['size']}_{row['recipe']}_{row['pass']}"
    measured = row["measured"]
    if not measured:
        return [case, "", "", "", "", row["reason"]]
    speedup = measured["speedup"]
    return [case, f"{measured['unfusedMedianNs'] / MS:.4f}", f"{measured['fusedMedianNs'] / MS:.4f}",
            f"{speedup['median']:.3f}", _interval(speedup["low"], speedup["high"]), _share(measured["rooflineShare"])]


def _share(share):
    return "" if share is None else f"{100 * share:.0f} %"


def _ops(results):
    for name in ("bench_attention", "bench_layers", "bench_ops"):
        rows = [row for row in read_lines(results.folder / f"{name}.jsonl")[1:] if not row["isView"]]
        poor = [row for row in rows if not row["meets"]]
        if rows:
            head = ["op", "dtype", "recipe", "step", "phase", "us", "of the peak"]
            cells = [[row["op"], row["dtype"], row["recipe"], row["step"], row["phase"], f"{row['medianNs'] / 1e3:.2f}",
                      _share(row["rooflineShare"])] for row in poor]
            yield f"## {name}\n\n{len(rows)} steps were measured; {len(poor)} are slower than wanted.\n\n" + _table(head, cells)


# ---- what failed

def _last_words(results, parts):
    for part in parts:
        outcome = results.parts.get(part.name, {})
        if outcome.get("result") not in ("failed", "cut"):
            continue
        for command in part.commands:
            code = outcome["codes"].get(command.name)
            if code:
                yield _words_of(results.folder, part, command, code)


def _words_of(folder, part, command, code):
    lines = [f"## {part.name} {'was ended' if code < 0 else 'failed'}: {command.name} ended with {code}"]
    for ending in ("log", "txt"):
        if text := _text(folder / f"{command.name}.{ending}").strip():
            lines += ["", f"The end of `{command.name}.{ending}`:", *_block(text, LINES_OF_A_LOG, is_tail=True)]
    return "\n".join(lines)


def _block(text, most, is_tail):
    lines = text.splitlines()
    kept = lines[-most:] if is_tail else lines[:most]
    return ["", "```text", *kept, "```"]


def _text(path):
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
