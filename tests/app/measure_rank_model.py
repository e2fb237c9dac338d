# The cost model of collectives against runs of two ranks on this machine: a table of message sizes, and two pipelines.
# SPDX-License-Identifier: Apache-2.0
# Usage: measure_rank_model.py FUSELINE [--ranks-as mpi|processes|threads] [--iterations N] [--repeats N]
#   Prints medians, and errors of the model whose latency and bandwidths are fitted to them. For a machine that is otherwise idle; on
#   another one --repeats takes the shortest of several interleaved runs.
import argparse
import json
import os
import pathlib
import subprocess

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "resources" / "examples"
LAYER = EXAMPLES / "tensor_parallel_mlp.fuseline"
SIZES = [(32, 64), (64, 256), (256, 256), (512, 512), (1024, 1024), (2048, 1024)]
PIPELINES = {"MLP, M = 256, H = 256": (256, 256), "MLP, M = 512, H = 512": (512, 512)}
ENVIRONMENT = {**os.environ, "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMP_NUM_THREADS": "1"}
RANKS = 2


def fuseline(program: str, size: tuple[int, int], *options: str) -> dict:
    sizes = ["--set", f"M={size[0]}", "--set", f"H={size[1]}"]
    done = subprocess.run([program, "run", LAYER, *sizes, "--no-peaks", "--json", *options],
                          capture_output=True, text=True, env=ENVIRONMENT, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{options}: {done.stderr}")
    return json.loads(done.stdout)


def median(values: list[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def collectives(record: dict) -> list[tuple[str, int, float]]:
    """Kind, bytes that a rank sends and nanoseconds of every collective of the unfused plan."""
    return [(step["collective"], step["bytesSentPerRank"], step["transferNs"]) for step in steps_of(record, "unfused")
            if step.get("collective") and step.get("transferNs", 0) > 0]


def steps_of(record: dict, name: str) -> list[dict]:
    return next(variant for variant in record["variants"] if variant["name"] == name)["steps"]


def shortest(found: list[tuple[str, int, float]]) -> list[tuple[str, int, float]]:
    """One of each kind and size, with its shortest time."""
    times: dict[tuple[str, int], float] = {}
    for kind, wire_bytes, ns in found:
        times[kind, wire_bytes] = min(ns, times.get((kind, wire_bytes), ns))
    return [(*key, ns) for key, ns in times.items()]


def hops(kind: str) -> int:
    return (2 if kind == "all-reduce" else 1) * (RANKS - 1)


def summed_bytes(kind: str, wire_bytes: int) -> float:
    """A sum in rank order reads a slice of every rank and writes one."""
    return wire_bytes / hops(kind) * (RANKS + 1) if kind in ("all-reduce", "reduce-scatter") else 0.0


def solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    rows = [[*row, value] for row, value in zip(matrix, right)]
    for column in range(len(rows)):
        pivot = max(range(column, len(rows)), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(len(rows)):
            if row != column:
                factor = rows[row][column] / rows[column][column]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column])]
    return [row[-1] / row[column] for column, row in enumerate(rows)]


def terms(kind: str, wire_bytes: int) -> list[float]:
    return [hops(kind), wire_bytes, summed_bytes(kind, wire_bytes)]


def fitted(points: list[tuple[str, int, float]]) -> list[float]:
    """Nanoseconds a hop, a byte sent and a byte of sums: least squares of relative errors; none is negative."""
    used = [0, 1, 2]
    while True:
        rows = [[terms(kind, wire_bytes)[index] / ns for index in used] for kind, wire_bytes, ns in points]
        found = solved([[sum(row[i] * row[j] for row in rows) for j in range(len(used))] for i in range(len(used))],
                       [sum(row[i] for row in rows) for i in range(len(used))])
        if min(found) > 0 or len(used) == 1:
            return [found[used.index(index)] if index in used else 0.0 for index in range(3)]
        used.pop(found.index(min(found)))


def total_ns(record: dict, name: str) -> float:
    return median(next(variant for variant in record["variants"] if variant["name"] == name)["endToEndNs"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--ranks-as", default="mpi")
    parser.add_argument("--iterations", default="25")
    parser.add_argument("--repeats", type=int, default=1)
    given = parser.parse_args()
    ranks = ["--ranks", str(RANKS), "--ranks-as", given.ranks_as, "--iterations", given.iterations]
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {given.iterations} rounds, medians")
    alone = ["--no-overlap", "--variants", "unfused"]
    points = shortest([point for _ in range(given.repeats) for size in SIZES
                       for point in collectives(fuseline(given.program, size, *ranks, *alone)["record"])])
    costs = fitted(points)
    hop_ns, byte_ns, sum_ns = (max(cost, 1e-6) for cost in costs)
    link = f"{hop_ns / 1e3:.4f}us,{1 / byte_ns:.3f}GB/s,{1 / sum_ns:.3f}GB/s"
    print(f"link fitted to {len(points)} collectives: {link}")

    def modeled(kind: str, wire_bytes: int) -> float:
        return sum(cost * amount for cost, amount in zip(costs, terms(kind, wire_bytes)))

    errors = []
    print(f"{'collective':>15} {'bytes sent':>11} {'measured us':>12} {'model us':>9} {'error':>7}")
    for kind, wire_bytes, ns in sorted(points):
        model = modeled(kind, wire_bytes)
        errors.append(abs(model / ns - 1))
        print(f"{kind:>15} {wire_bytes:>11} {ns / 1e3:>12.1f} {model / 1e3:>9.1f} {100 * (model / ns - 1):>+6.0f} %")
    for kind in sorted({kind for kind, _, _ in points}):
        of_kind = [modeled(kind, wire_bytes) / ns - 1 for each, wire_bytes, ns in points if each == kind]
        print(f"median error of {kind}: {100 * median(of_kind):+.0f} %")
    print(f"median error of a collective: {100 * median(errors):.0f} %")
    errors = []
    print(f"{'pipeline':>22} {'plan':>8} {'overlap':>8} {'measured us':>12} {'hidden us':>10} {'predicted us':>18} {'hidden us':>10} "
          f"{'error':>7}")
    for name, size in PIPELINES.items():
        for overlap, options in (("off", ["--no-overlap"]), ("on", [])):
            measured = [fuseline(given.program, size, *ranks, *options)["record"] for _ in range(given.repeats)]
            predictions = [fuseline(given.program, size, "--predict-ranks", str(RANKS), "--link", link,
                                    "--iterations", given.iterations, *options)["predictions"] for _ in range(given.repeats)]
            for name_of_plan in ("unfused", "fused"):
                each = min((row for rows in predictions for row in rows
                            if row["ranks"] == RANKS and row["variant"] == name_of_plan), key=lambda row: row["computeNs"])
                best = min(measured, key=lambda record: total_ns(record, name_of_plan))
                ns = total_ns(best, each["variant"])
                hidden = sum(step.get("hiddenNs", 0) for step in steps_of(best, each["variant"]))
                low, high = each["totalLowNs"], each["totalHighNs"]
                error = (low + high) / 2 / ns - 1
                errors.append(abs(error))
                print(f"{name:>22} {each['variant']:>8} {overlap:>8} {ns / 1e3:>12.0f} {hidden / 1e3:>10.0f} "
                      f"{low / 1e3:>8.0f} to {high / 1e3:>6.0f} {(each['hiddenLowNs'] + each['hiddenHighNs']) / 2e3:>10.0f} "
                      f"{100 * error:>+6.0f} %")
    print(f"median error of a pipeline: {100 * median(errors):.0f} %")


if __name__ == "__main__":
    main()
