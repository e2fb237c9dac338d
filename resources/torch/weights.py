# Loads the weights of the original model; a part of exported modules, which these lines are left out of.
# SPDX-License-Identifier: Apache-2.0
def load_weights(model, path):
    """Copies the original model's tensors, of a safetensors file or a folder of such files, into the parameters."""
    import pathlib

    from safetensors.torch import load_file

    files = sorted(pathlib.Path(path).glob("*.safetensors")) or [path]
    stored = {name: x for file in files for name, x in load_file(file).items()}
    with torch.no_grad():
        for name, place in PARAMETERS.items():
            for source in WEIGHTS:
                layer = layer_of(source["parameter"], name)
                if layer is not None:
                    x = joined_weights(source, layer, stored)
                    model.get_parameter(place).copy_(x)


def layer_of(pattern, name):
    """The number for which the pattern is the name, "" without a number; None for another name."""
    before, braces, after = pattern.partition("{}")
    number = name.removeprefix(before).removesuffix(after) if braces else ""
    fits = before + number + after == name and bool(braces) == number.isdigit()
    return number if fits else None


def joined_weights(source, layer, stored):
    names = [name.replace("{}", layer) for name in source["tensors"]]
    parts = [stored[name if name in stored else name.partition(".")[2]] for name in names]
    if source["order"] == "transposed" and parts[0].dim() == 2:
        parts = [x.t() for x in parts]
    x = torch.cat(parts)
    if source["order"] == "heads_together":
        by_head = x.reshape(source["heads"], 3, -1, *x.shape[1:])
        x = by_head.transpose(0, 1).reshape(x.shape)
    return x
