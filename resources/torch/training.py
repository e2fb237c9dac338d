# Compares a training with that of Fuseline; a part of exported programs, which these lines are left out of.
# SPDX-License-Identifier: Apache-2.0
def compare_training(model, dump_path, state_path, tolerance, device):
    """Trains with the tensors of `fuseline run --dump`, for the steps of `run --save`; are the updates near?"""
    from safetensors.torch import load_file

    begin, end = (
        {name.removeprefix("unfused/"): x for name, x in load_file(path, device=device).items()}
        for path in (dump_path, state_path)
    )
    with torch.no_grad():
        for name, place in PARAMETERS.items():
            set_parameter(model, place, begin[name])
    optimizer = Optimizer(model)
    inputs = {name: begin[name] for name in INPUTS}
    for _ in range(int(end["optimizer.step"])):
        model.zero_grad(set_to_none=True)
        step(model, inputs, {name: begin[f"grad.{name}"] for name in OUTPUTS if f"grad.{name}" in begin})
        optimizer.step()
    errors = {
        name: update_error(parameter_of(model, place), begin[name], end[name])
        for name, place in PARAMETERS.items()
        if f"{name}.exp_avg" in end
    }
    for name, error in errors.items():
        verdict = "" if error <= tolerance else f" (more than {tolerance:.2e})"
        print(f"update of {name}: {error:.2e}{verdict}")
    return all(error <= tolerance for error in errors.values())


def parameter_of(model, place):
    parameters = parameters_at(model, place)
    return torch.stack(parameters) if "{}" in place else parameters[0]


def update_error(x, begin, end):
    """Relative to the norm of the update."""
    update = (end.double() - begin.double()).norm().clamp(min=1e-300)
    return float((x.detach().double() - end.double()).norm() / update)
