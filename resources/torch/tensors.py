# Compares results with those of Fuseline; a part of exported programs, which these lines are left out of.
# SPDX-License-Identifier: Apache-2.0
def compare_tensors(model, path, tolerance, device, copies_weights=True, ranks=None):
    """Runs with the tensors of `fuseline run --dump`; returns whether results are near."""
    from safetensors.torch import load_file

    dump = load_file(path, device=device)
    tensors = {name.removeprefix("unfused/"): x for name, x in dump.items()}
    if ranks:
        tensors = {name: ranks.part_of(name, x) for name, x in tensors.items()}
    with torch.no_grad():
        for name, place in PARAMETERS.items() if copies_weights else []:
            set_parameter(model, place, tensors[name])
    inputs = {n: tensors[n].requires_grad_(spec[2]) for n, spec in INPUTS.items()}
    results = step(model, inputs, {n: tensors.get(f"grad.{n}") for n in OUTPUTS})
    results |= {f"grad.{n}": x.grad for n, x in inputs.items()}
    gradients = {n: gradient_of(model, place) for n, place in PARAMETERS.items()}
    if ranks:
        gradients = {n: ranks.total_of(n, x) for n, x in gradients.items()}
    results |= {f"grad.{n}": x for n, x in gradients.items()}
    errors = {
        name: relative_error(x, tensors[name])
        for name, x in results.items()
        if x is not None and name in tensors
    }
    missing = [name for name, x in results.items() if x is None and name in tensors]
    for name in missing:
        print(f"{name}: expected a gradient, found none")
    for name, error in errors.items():
        verdict = "" if error <= tolerance else f" (more than {tolerance:.2e})"
        print(f"{name}: {error:.2e}{verdict}")
    return not missing and all(error <= tolerance for error in errors.values())


def relative_error(x, expected):
    difference = (x.detach().double() - expected.double()).norm()
    return float(difference / expected.double().norm().clamp(min=1e-300))
