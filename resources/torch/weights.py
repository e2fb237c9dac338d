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
                    shape = parameters_at(model, place)[0].shape
                    if "first" in source:
                        x = x[source["first"] :][: shape[0]]
                    if "shape" in source:
                        x = x.reshape(shape)
                    set_parameter(model, place, x)


def layer_of(pattern, name):
    """The number for which the pattern is the name, "" without a number; None for another name."""
    before, braces, after = pattern.partition("{}")
    number = name.removeprefix(before).removesuffix(after) if braces else ""
    fits = before + number + after == name and bool(braces) == number.isdigit()
    return number if fits else None


def joined_weights(source, layer, stored):
    patterns = [name.replace("{}", layer) for name in source["tensors"]]
    if source["order"] == "experts":
        return weights_of_experts(patterns, source["together"].replace("{}", layer), stored)
    parts = [stored_tensor(name, stored) for name in patterns]
    if source["order"] in ("transposed", "pairs_apart"):
        parts = [x.mT if x.dim() > 2 or source["order"] == "transposed" else x for x in parts]
    is_reshaped = "shape" in source and "first" not in source
    x = torch.cat([part.flatten() for part in parts] if is_reshaped else parts)
    if source["order"] == "pairs_apart":
        x = torch.cat([x[:, 0::2], x[:, 1::2]], dim=1)
    if source["order"] == "heads_together":
        by_head = x.reshape(source["heads"], 3, -1, *x.shape[1:])
        x = by_head.transpose(0, 1).reshape(x.shape)
    return x


def stored_tensor(name, stored):
    """Of files with MXFP4 what others hold transposed."""
    packed = stored_name(name + "_blocks", stored)
    if packed not in stored:
        return stored[stored_name(name, stored)]
    return decoded_mxfp4(stored[packed], stored[packed.removesuffix("blocks") + "scales"]).mT


def decoded_mxfp4(blocks, scales):
    """blocks: two values of E2M1 a byte, [.., groups, 16]. scales: exponents, [.., groups]. Gives [.., 32 groups]."""
    values = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
    codes = torch.stack([blocks & 15, blocks >> 4], dim=-1).flatten(-2).long()
    return torch.ldexp(torch.cat([values, -values])[codes], scales.int().unsqueeze(-1) - 127).flatten(-2)


def stored_name(name, stored):
    """Some files leave the first part of a name out."""
    return name if name in stored else name.partition(".")[2]


def weights_of_experts(patterns, together, stored):
    """One tensor of all experts, which the files have, or one for each expert."""
    if stored_name(together, stored) in stored:
        return stored[stored_name(together, stored)]
    experts = []
    while stored_name(patterns[0].replace("{e}", str(len(experts))), stored) in stored:
        names = [name.replace("{e}", str(len(experts))) for name in patterns]
        experts.append(torch.cat([stored[stored_name(name, stored)] for name in names]))
    return torch.stack(experts)
