#!/usr/bin/env python3
# Runs exported tensor-parallel modules on several ranks, on TransformerEngine's own Python, against one rank of Fuseline.
# SPDX-License-Identifier: Apache-2.0
"""check_te_ranks.py PROGRAM: PROGRAM is fuseline. Needs what check_te_gradients.py needs, and safetensors; ranks are
processes that communicate with gloo on the CPU, in float32. Ends with 77 where the packages are missing."""

import importlib.util
import json
import pathlib
import socket
import subprocess
import sys
import tempfile

import check_te_fuser
import check_te_gradients
import test_te_export

EXAMPLE = test_te_export.ROOT / "resources" / "examples" / "tensor_parallel_mlp.fuseline"
TOLERANCE = 1e-4  # relative, of norms


def pipelines():
    """(name, document): the shipped example in float32 without Userbuffers, which need GPUs, and variants of it."""
    for is_sequence_parallel in (True, False):
        for has_bias in (False, True):
            document = json.loads(EXAMPLE.read_text(encoding="utf-8"))
            document["symbols"] = {"M": 12, "H": 24}
            document["pipeline"]["inputs"][0]["dtype"] = "f32"
            for op in document["pipeline"]["ops"]:
                op["attributes"].pop("userbuffers_comm_name", None)
                if "sequence_parallel" in op["attributes"]:
                    op["attributes"]["sequence_parallel"] = is_sequence_parallel
                if op["id"] == "fc2":
                    op["attributes"]["bias"] = has_bias
            del document["view"]
            yield f"sequence_parallel {is_sequence_parallel}, bias {has_bias}", document


def run_rank(script, dump, rank, ranks, port):
    """As torchrun would, with the kernels of te_kernels.py."""
    check_te_gradients.import_te()
    import torch

    torch.cuda.current_device = lambda: "cpu"  # where TransformerEngine makes the result of a reduce-scatter
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    exported = check_te_fuser.loaded(pathlib.Path(script).read_text(encoding="utf-8"))

    def forward(model, inputs):
        outputs = model(*[x.clone() if exported.OVERWRITES_INPUTS else x for x in inputs.values()])
        return dict(zip(exported.OUTPUTS, outputs if isinstance(outputs, tuple) else (outputs,)))

    exported.forward = forward  # without autocast, which asks the GPU
    model = exported.Pipeline(device="cpu")
    is_near = exported.compare_tensors(model, dump, TOLERANCE, "cpu", True, exported.several_ranks())
    torch.distributed.destroy_process_group()
    return 0 if is_near else 1


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def check(document, ranks, folder):
    """Texts of the ranks whose results differ."""
    path, script, dump = folder / "p.fuseline", folder / "script.py", folder / "dump.safetensors"
    path.write_text(json.dumps(document), encoding="utf-8")
    script.write_text(check_te_fuser.run("export", path, "--to", "te"), encoding="utf-8")
    check_te_fuser.run("run", path, "--device", "cpu", "--iterations", 1, "--warmup", 0, "--no-peaks", "--variants",
                       "unfused", "--dump", dump, "--force")
    port = free_port()
    processes = [subprocess.Popen([sys.executable, __file__, "--rank", *map(str, (script, dump, rank, ranks, port))],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for rank in range(ranks)]
    texts = [process.communicate(timeout=300)[0] for process in processes]
    results = sum(" more than " not in line and ":" in line for line in texts[0].splitlines())
    return [text for process, text in zip(processes, texts) if process.returncode or results < 4]


def main():
    if sys.argv[1:2] == ["--rank"]:
        return run_rank(*sys.argv[2:4], *map(int, sys.argv[4:]))
    for package in ("torch", "transformer_engine", "safetensors"):
        if importlib.util.find_spec(package) is None:
            print(f"Skipped: this Python has no {package}.")
            return 77
    test_te_export.PROGRAM = sys.argv[1]
    problems = 0
    with tempfile.TemporaryDirectory() as name:
        for case, document in pipelines():
            for text in check(document, 2, pathlib.Path(name)):
                problems += 1
                print(f"{case}:\n{text}")
    print(f"{problems} differences")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
