# Parameters of exported modules by their places; these lines are left out.
# SPDX-License-Identifier: Apache-2.0
def parameters_at(model, place):
    """One parameter; with braces in the place one for each group."""
    names = dict(model.named_parameters())
    several = "{}" in place
    return [names[n] for n in (place.format(i) for i in range(len(names) if several else 1)) if n in names]


def set_parameter(model, place, x):
    """x: of all groups where the place has braces."""
    for parameter, part in zip(parameters_at(model, place), x if "{}" in place else [x], strict=True):
        parameter.copy_(part)


def gradient_of(model, place):
    """None where there is none."""
    gradients = [parameter.grad for parameter in parameters_at(model, place)]
    if any(x is None for x in gradients):
        return None
    return torch.stack(gradients) if "{}" in place else gradients[0]
