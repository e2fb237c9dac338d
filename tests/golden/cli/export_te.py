#!/usr/bin/env python3
"""sample: x [4, 8] bf16 -> y [4, 8] bf16

Written by fuseline 0.1.0. `from sample import Pipeline, RECIPE` gives the module and its recipe;
as a program it measures a step on the GPU. The pipeline file stands at the end.
Needs PyTorch and TransformerEngine 2.19 or newer, which has channels for extra tensors.
"""

import argparse
import importlib.metadata
import statistics
import sys

import torch
import transformer_engine.pytorch as te
from transformer_engine.common import recipe


class Pipeline(torch.nn.Module):
    """x [4, 8] bf16 -> y [4, 8] bf16"""

    def __init__(self, device="cuda"):
        super().__init__()
        self.layers = te.ops.Sequential(
            {
                "save": te.ops.MakeExtraOutput().set_extra_output_channel(
                    0, "save.extra", output_to_caller=False
                ),
                "norm": te.ops.RMSNorm(
                    normalized_shape=[8], device=device, dtype=torch.bfloat16
                ),
                "fc1": te.ops.Linear(
                    in_features=8, out_features=16, device=device, dtype=torch.bfloat16
                ),
                "act": te.ops.GELU(),
                "fc2": te.ops.Linear(
                    in_features=16,
                    out_features=8,
                    bias=False,
                    device=device,
                    dtype=torch.bfloat16,
                ),
                "add": te.ops.AddExtraInput().set_extra_input_channel(0, "save.extra"),
            }
        )

    def forward(self, x):
        add_y = self.layers(x)
        return add_y


RECIPE = None
# Shape, dtype, whether it has a gradient, and the rows that counts share out.
INPUTS = {
    "x": ([4, 8], torch.bfloat16, True, 4),
}
OUTPUTS = ["y"]
# Fuseline's names of parameters, and where they stand in the module.
PARAMETERS = {
    "norm.weight": "layers.norm.weight",
    "fc1.weight": "layers.fc1.weight",
    "fc1.bias": "layers.fc1.bias",
    "fc2.weight": "layers.fc2.weight",
}
# [class, positions]: what TransformerEngine should run as one, by module and pass. None: it does not run.
PLAN = {
    "layers": {
        "forward": [
            ["ForwardLinearBiasActivation", [2, 3]],
        ],
        "backward": [
            ["BackwardAddRMSNorm", [0, 1]],
        ],
    },
}
TRAINS = True
OVERWRITES_INPUTS = False
TOLERANCE = 0.016


def draw(shape, dtype, has_gradient, rows):
    """A tensor of N(0, 1), or counts that share out rows."""
    if dtype == torch.int64:
        sizes = torch.full(shape, rows // shape[0], dtype=dtype, device="cuda")
        sizes[-1] += rows % shape[0]
        return sizes
    return torch.randn(shape, dtype=dtype, device="cuda", requires_grad=has_gradient)


def draw_inputs():
    return {name: draw(*spec) for name, spec in INPUTS.items()}


def forward(model, inputs):
    """Outputs by name. Sums in place overwrite inputs, so ops then get copies."""
    copies = [x.clone() if OVERWRITES_INPUTS else x for x in inputs.values()]
    autocast = te.autocast(enabled=RECIPE is not None, recipe=RECIPE)
    with torch.set_grad_enabled(TRAINS), autocast:
        outputs = model(*copies)
    return dict(zip(OUTPUTS, outputs if isinstance(outputs, tuple) else (outputs,)))


def draw_gradients(model, inputs):
    return {name: torch.randn_like(y) for name, y in forward(model, inputs).items()}


def step(model, inputs, output_gradients):
    outputs = forward(model, inputs)
    if TRAINS:
        torch.autograd.backward(list(outputs.values()), list(output_gradients.values()))
    return outputs


def measure(model, iterations, warmup):
    """Prints the median and the quartiles of a step's time by the GPU's clock."""
    inputs = draw_inputs()
    gradients = draw_gradients(model, inputs)
    for _ in range(warmup):
        step(model, inputs, gradients)
    times = []
    for _ in range(iterations):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step(model, inputs, gradients)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    lower, median, upper = statistics.quantiles(times, n=4)
    what = "forward and backward" if TRAINS else "forward"
    print(f"{what}: {median:.4f} ms [{lower:.4f}, {upper:.4f}], {iterations} steps")
    print(f"{torch.cuda.get_device_name()}, TransformerEngine {te_version()}")


def te_version():
    return importlib.metadata.version("transformer_engine")


def fused(operations):
    """[class, positions] of what TransformerEngine runs as one."""
    return [
        [type(op).__name__, list(places)]
        for op, places in operations
        if len(places) > 1
    ]


def plans(model):
    """What TransformerEngine fuses, by module and pass, once it has run."""
    found = {}
    for name in PLAN:
        (fuser,) = getattr(model, name)._module_groups
        found[name] = {
            "forward": fused(fuser._forward_ops),
            "backward": fused(fuser._backward_ops),
        }
    return found


def compare_plans(model):
    """Prints both plans, and returns whether they are the same."""
    inputs = draw_inputs()
    step(model, inputs, draw_gradients(model, inputs))
    found = plans(model)
    is_same = True
    for name, direction in ((n, d) for n in PLAN for d in ("forward", "backward")):
        ours, theirs = PLAN[name][direction], found[name][direction]
        if ours is None:
            continue
        print(f"{name}, {direction}: {theirs or 'nothing fused'}")
        if ours != theirs:
            is_same = False
            print(f"  Fuseline expects: {ours or 'nothing fused'}")
    return is_same


def compare_tensors(model, path, tolerance):
    """Runs with the tensors of `fuseline run --dump`; returns whether results are near."""
    from safetensors.torch import load_file

    dump = load_file(path)
    tensors = {name.removeprefix("unfused/"): x.cuda() for name, x in dump.items()}
    with torch.no_grad():
        for name, place in PARAMETERS.items():
            model.get_parameter(place).copy_(tensors[name])
    inputs = {n: tensors[n].requires_grad_(spec[2]) for n, spec in INPUTS.items()}
    results = step(model, inputs, {n: tensors.get(f"grad.{n}") for n in OUTPUTS})
    parameters = {n: model.get_parameter(p) for n, p in PARAMETERS.items()}
    results |= {f"grad.{n}": x.grad for n, x in (inputs | parameters).items()}
    errors = {
        name: relative_error(x, tensors[name])
        for name, x in results.items()
        if x is not None and name in tensors
    }
    for name, error in errors.items():
        verdict = "" if error <= tolerance else f" (more than {tolerance:.2e})"
        print(f"{name}: {error:.2e}{verdict}")
    return all(error <= tolerance for error in errors.values())


def relative_error(x, expected):
    difference = (x.double() - expected.double()).norm()
    return float(difference / expected.double().norm().clamp(min=1e-300))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--plan", action="store_true", help="what is fused, beside Fuseline's plan")
    add("--check", metavar="DUMP", help="compare with `fuseline run --dump DUMP`")
    add("--tolerance", type=float, default=TOLERANCE, help="for --check, of norms")
    add("--iterations", type=int, default=50)
    add("--warmup", type=int, default=10)
    add("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    model = Pipeline().train(TRAINS)
    if options.plan:
        return 0 if compare_plans(model) else 5
    if options.check:
        return 0 if compare_tensors(model, options.check, options.tolerance) else 5
    measure(model, options.iterations, options.warmup)
    return 0


if __name__ == "__main__":
    sys.exit(main())

# fuseline pipeline begins
# {
#   "$schema": "fuseline-pipeline-1.json",
#   "format": "fuseline-pipeline",
#   "formatVersion": {"major": 1, "minor": 0},
#   "symbols": {"M": 4, "H": 8},
#   "pipeline": {
#     "inputs": [{"id": "x", "dtype": "bf16", "shape": ["M", "H"]}],
#     "ops": [
#       {"id": "save", "op": "MakeExtraOutput", "attributes": {}},
#       {"id": "norm", "op": "RMSNorm", "attributes": {"normalized_shape": ["H"]}},
#       {"id": "fc1", "op": "Linear", "attributes": {"in_features": "H", "out_features": "2*H", "bias": true}},
#       {"id": "act", "op": "GELU", "attributes": {}},
#       {"id": "fc2", "op": "Linear", "attributes": {"in_features": "2*H", "out_features": "H", "bias": false}},
#       {"id": "add", "op": "AddExtraInput", "attributes": {"in_place": false}}
#     ],
#     "wires": [
#       ["x", "save.x"],
#       ["save.y", "norm.x"],
#       ["norm.y", "fc1.x"],
#       ["fc1.y", "act.x"],
#       ["act.y", "fc2.x"],
#       ["fc2.y", "add.x"],
#       ["save.extra", "add.extra"]
#     ],
#     "outputs": [{"id": "y", "from": "add.y"}]
#   }
# }
# fuseline pipeline ends
