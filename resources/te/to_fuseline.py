#!/usr/bin/env python3
# Writes a te.ops.Sequential of your own program as a pipeline file of Fuseline.
# SPDX-License-Identifier: Apache-2.0
"""In your program, where the module has been built:

    import to_fuseline
    to_fuseline.save(module, "mlp.fuseline", x, *extra_inputs, recipe=recipe)

x and the extra inputs are tensors, or anything else with a shape and a dtype, such as tensors on the device "meta".
Nothing is run. With plan="mlp.json" what TransformerEngine has fused is written, too, once the module has run:
`fuseline fuse mlp.fuseline --rules te` shows what Fuseline makes of the same ops.

Written for TransformerEngine 2.19 and 2.20."""

import json
import re

FORMAT = {
    "$schema": "fuseline-pipeline-1.json",
    "format": "fuseline-pipeline",
    "formatVersion": {"major": 1, "minor": 0},
}
DTYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i64"}
# Attributes that have the name of a member.
MEMBERS = (
    "cache_quantized_input",
    "glu_interleave_size",
    "activation_recompute_in_mlp",
    "limit",
    "alpha",
    "glu_linear_offset",
    "beta1",
    "beta2",
    "eps",
    "zero_centered_gamma",
    "num_groups",
    "single_grouped_weight",
    "single_grouped_bias",
    "scale",
)
RECIPE_FIELDS = (
    "margin",
    "amax_history_len",
    "amax_compute_algo",
    "reduce_amax",
    "use_power_2_scales",
    "x_block_scaling_dim",
    "w_block_scaling_dim",
    "grad_block_scaling_dim",
    "enable_2d_quantization",
    "disable_rht",
    "disable_stochastic_rounding",
    "disable_2d_quantization",
)
OPERATIONS = set(
    """BasicLinear Linear GroupedLinear Bias GELU QGELU ReLU SReLU SiLU GLU GEGLU QGEGLU ReGLU SReGLU SwiGLU ClampedSwiGLU
    SiTUGLU ScaledSReLU ScaledTanhSReLU ScaledSwiGLU ScaledSiTUGLU ScaledClampedQGeGLU RMSNorm LayerNorm L2Normalization Dropout
    ConstantScale AddExtraInput MakeExtraOutput Identity Reshape Quantize AllGather ReduceScatter AllReduce""".split()
)


class NotAPipeline(ValueError):
    """The module holds something that a pipeline file cannot say."""


def save(module, path, x, *extra_inputs, recipe=None, plan=None):
    """Writes the file. Raises NotAPipeline with the name of what cannot be written."""
    document = to_document(module, x, *extra_inputs, recipe=recipe)
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(document, indent=2) + "\n")
    if plan:
        with open(plan, "w", encoding="utf-8") as file:
            file.write(json.dumps(fused_plan(module), indent=2) + "\n")


def to_document(module, x, *extra_inputs, recipe=None):
    pipeline = Pipeline()
    pipeline.add_input("x", x)
    waiting = list(extra_inputs)
    for name, operation in named_operations(module):
        pipeline.append(name, operation, waiting)
    if waiting:
        raise NotAPipeline(f"{len(waiting)} extra inputs are left over; the module takes fewer.")
    document = {**FORMAT, "pipeline": pipeline.finish()}
    if recipe is not None:
        document["recipe"] = recipe_json(recipe)
    return document


class Pipeline:
    def __init__(self):
        self.inputs, self.ops, self.wires, self.outputs = [], [], [], []
        self.channels, self.given, self.main = {}, [], "x"

    def add_input(self, name, tensor):
        dtype = str(tensor.dtype).removeprefix("torch.")
        if dtype not in DTYPES:
            raise NotAPipeline(f"{name} is of {dtype}; expected one of {', '.join(DTYPES)}.")
        entry = {"id": name, "dtype": DTYPES[dtype], "shape": [int(n) for n in tensor.shape]}
        self.inputs.append(entry)
        self.given.append((tensor, name))

    def append(self, name, operation, waiting):
        kind = type(operation).__name__
        if kind not in OPERATIONS or not hasattr(operation, "fuser_forward"):
            raise NotAPipeline(f"{name} is a {kind}, which is no op of te.ops that Fuseline has.")
        self.ops.append({"id": name, "op": kind, "attributes": attributes_of(operation)})
        self.wires.append([self.main, f"{name}.x"])
        for port, channel in zip(extra_ports(operation), channels_in(operation)):
            self.wires.append([self.extra_source(name, port, channel, waiting), f"{name}.{port}"])
        for channel, is_public in channels_out(operation):
            if channel is not None:
                self.channels[channel] = f"{name}.extra"
            if is_public:
                self.outputs.append({"id": f"{name}_extra", "from": f"{name}.extra"})
        self.main = f"{name}.y"

    def extra_source(self, name, port, channel, waiting):
        if channel is not None:
            return self.channels[channel]
        if not waiting:
            raise NotAPipeline(f"{name} reads an extra input, {port}, which was not given.")
        return self.input_of(waiting.pop(0), f"{name}_{port}")

    def input_of(self, tensor, name):
        """A tensor that is given twice is one input."""
        for known, source in self.given:
            if known is tensor:
                return source
        self.add_input(name, tensor)
        return name

    def finish(self):
        outputs = [{"id": "y", "from": self.main}, *self.outputs]
        return {"inputs": self.inputs, "ops": self.ops, "wires": self.wires, "outputs": outputs}


def named_operations(module):
    """(id, op) in the order in which they run. Linear stays whole; other fused ops fall into their basic ops."""
    is_sequential = type(module).__name__ == "Sequential"
    children = module._modules.items() if is_sequential else [("op", module)]
    taken = set()
    for name, child in children:
        parts = [child]
        if getattr(child, "is_fused_op", False) and type(child).__name__ != "Linear":
            parts = child.basic_ops
        for part in parts:
            yield free_name(name, part, taken), part


def free_name(name, operation, taken):
    """A name that Python's containers count, such as "0", becomes that of the op."""
    stem = re.sub(r"\W", "_", name)
    if stem[:1].isdigit() or stem == "op":
        stem = type(operation).__name__.lower()
    free, number = stem, 1
    while free in taken | {"x", "y"}:
        number += 1
        free = f"{stem}{number}"
    taken.add(free)
    return free


def extra_ports(operation):
    kind, count = type(operation).__name__, getattr(operation, "num_extra_inputs", 0)
    if kind == "GroupedLinear":
        return ["split_sizes", "scales"][:count]
    return ["scales" if kind.startswith("Scaled") else "extra"][:count]


def channels_in(operation):
    """None: the caller gives the tensor. Versions before 2.19 have no channels."""
    return getattr(operation, "_extra_input_channels", [None] * getattr(operation, "num_extra_inputs", 0))


def channels_out(operation):
    count = getattr(operation, "num_extra_outputs", 0)
    channels = getattr(operation, "_extra_output_channels", [None] * count)
    return list(zip(channels, getattr(operation, "_extra_output_to_caller", [True] * count)))


def attributes_of(operation):
    found = {name: getattr(operation, name) for name in MEMBERS if getattr(operation, name, None) is not None}
    special = SPECIAL.get(type(operation).__name__)
    return {**(special(operation) if special else {}), **found, **parameter_attributes(operation)}


def parameter_attributes(operation):
    frozen = {
        re.sub(r"\d+$", "", name): False
        for name, parameter in operation.named_parameters(recurse=False)
        if not parameter.requires_grad
    }
    found = {f"{name}_requires_grad": False for name in frozen}
    for parameter in operation.parameters(recurse=False):
        found["dtype"] = DTYPES[str(parameter.dtype).removeprefix("torch.")]
    if getattr(operation, "_accumulate_into_main_grad", False):
        found["accumulate_into_main_grad"] = True
        if getattr(getattr(operation, "weight", None), "overwrite_main_grad", False):
            found["overwrite_main_grad"] = True
    return found


def basic_linear(operation):
    found = {"in_features": operation.in_features, "out_features": operation.out_features}
    if operation.tensor_parallel_mode is not None:
        found["tensor_parallel_mode"] = operation.tensor_parallel_mode
        found["sequence_parallel"] = operation.sequence_parallel
    if operation._userbuffers_options:
        found["userbuffers_comm_name"] = operation._userbuffers_options["comm_name"]
    return found


def linear(operation):
    """Row-parallel, it is a plain linear with a sum behind it."""
    kinds = [type(part).__name__ for part in operation.basic_ops]
    found = {**basic_linear(operation.basic_ops[0]), "bias": "Bias" in kinds}
    if {"AllReduce", "ReduceScatter"} & set(kinds):
        found |= {"tensor_parallel_mode": "row", "sequence_parallel": "ReduceScatter" in kinds}
    return found | parameter_attributes(operation.basic_ops[0])


def grouped_linear(operation):
    return {
        "in_features": operation.in_features,
        "out_features": operation.out_features,
        "bias": operation.use_bias,
        "scale_bias": operation._scale_bias,
        "delay_wgrad_compute": bool(operation.wgrad_store.delay_wgrad_compute()),
    }


def norm(operation):
    return {"normalized_shape": [int(n) for n in operation.weight.shape]}


def clamped(operation):
    inner = operation._clamped
    return {"limit": inner.limit, "alpha": inner.alpha, "glu_linear_offset": inner.glu_linear_offset}


SPECIAL = {
    "BasicLinear": basic_linear,
    "Linear": linear,
    "GroupedLinear": grouped_linear,
    "RMSNorm": norm,
    "LayerNorm": norm,
    "ScaledClampedQGeGLU": clamped,
    "Bias": lambda op: {"size": op._size, "tensor_parallel": op.tensor_parallel},
    "Dropout": lambda op: {"p": op.dropout_probability},
    "Reshape": lambda op: {"shape": [int(n) for n in op._shape]},
    "Quantize": lambda op: {"forward": op._quantize_forward, "backward": op._quantize_backward},
    "AddExtraInput": lambda op: {"in_place": op._in_place},
    "MakeExtraOutput": lambda op: {"in_place": op._in_place},
}


def recipe_json(recipe):
    fields = {name: getattr(recipe, name) for name in RECIPE_FIELDS if hasattr(recipe, name)}
    if not hasattr(recipe, "amax_history_len"):
        fields.pop("margin", None)  # MXFP8 has one, and does not use it
    fields["fp8_format"] = recipe.fp8_format.name
    if hasattr(recipe, "use_f32_scales"):
        fields["use_power_2_scales"] = not recipe.use_f32_scales
    fields["backward_override"] = recipe.backward_override or "none"
    return {"name": type(recipe).__name__, **fields}


def fused_plan(module):
    """[class, positions] of what TransformerEngine runs as one, for each run of fusible ops, by pass."""
    if module._module_groups is None:
        raise NotAPipeline("TransformerEngine fuses when the module runs; run it once before.")
    fusers = [group for group in module._module_groups if hasattr(group, "_forward_ops")]
    return [{"forward": fused(f._forward_ops), "backward": fused(f._backward_ops)} for f in fusers]


def fused(operations):
    return [[type(op).__name__, list(places)] for op, places in operations if len(places) > 1]
