# The cost model of collectives against runs of two ranks on this machine: a table of message sizes, and two pipelines.
# SPDX-License-Identifier: Apache-2.0
# Usage: measure_rank_model.py FUSELINE [--ranks-as mpi|processes|threads] [--iterations N] [--repeats N]
#   Prints medians, and errors of the model whose latency and bandwidth are fitted to them. For a machine that is otherwise idle; on
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


def shortest(runs: list[list[tuple[str, int, float]]]) -> list[tuple[str, int, float]]:
    """The same collectives, each with its shortest time."""
    return [(*same[0][:2], min(ns for _, _, ns in same)) for same in zip(*runs)]


def hops(kind: str) -> int:
    return (2 if kind == "all-reduce" else 1) * (RANKS - 1)


def fitted(points: list[tuple[str, int, float]]) -> tuple[float, float]:
    """Latency of a hop in nanoseconds and nanoseconds a byte: least squares of relative errors."""
    sums = [0.0] * 5
    for kind, wire_bytes, ns in points:
        hop, byte = hops(kind) / ns, wire_bytes / ns
        for index, value in enumerate((hop * hop, hop * byte, byte * byte, hop, byte)):
            sums[index] += value
    determinant = sums[0] * sums[2] - sums[1] ** 2
    return (sums[3] * sums[2] - sums[4] * sums[1]) / determinant, (sums[0] * sums[4] - sums[1] * sums[3]) / determinant


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
    runs = [[collectives(fuseline(given.program, size, *ranks, *alone)["record"]) for size in SIZES] for _ in range(given.repeats)]
    points = [point for same in zip(*runs) for point in shortest(list(same))]
    latency_ns, byte_ns = fitted(points)
    link = f"{max(latency_ns, 1) / 1e3:.3f}us,{1 / max(byte_ns, 1e-6):.3f}GB/s"
    print(f"link fitted to {len(points)} collectives: {link}")
    errors = []
    print(f"{'collective':>15} {'bytes sent':>11} {'measured us':>12} {'model us':>9} {'error':>7}")
    for kind, wire_bytes, ns in sorted(points):
        model = hops(kind) * latency_ns + wire_bytes * byte_ns
        errors.append(abs(model / ns - 1))
        print(f"{kind:>15} {wire_bytes:>11} {ns / 1e3:>12.1f} {model / 1e3:>9.1f} {100 * (model / ns - 1):>+6.0f} %")
    for kind in sorted({kind for kind, _, _ in points}):
        of_kind = [hops(kind) * latency_ns / ns + wire_bytes * byte_ns / ns - 1 for each, wire_bytes, ns in points if each == kind]
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
