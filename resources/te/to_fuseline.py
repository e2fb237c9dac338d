#!/usr/bin/env python3
# Writes a te.ops.Sequential of your own program, or a te.DotProductAttention, as a pipeline file of Fuseline.
# SPDX-License-Identifier: Apache-2.0
"""In your program, where the module has been built:

    import to_fuseline
    to_fuseline.save(module, "mlp.fuseline", x, *extra_inputs, recipe=recipe)

x and the extra inputs are tensors, or anything else with a shape and a dtype, such as tensors on the device "meta".
A te.DotProductAttention takes the queries as x, then keys and values, and what else its mask and its bias need, as
inputs of Fuseline's op do: core_attention_bias, attention_mask, cu_seqlens_q, cu_seqlens_kv.
Nothing is run. What Fuseline has no counterpart for is a warning, LeftOut, that names it. With plan="mlp.json" what
TransformerEngine has fused is written, too, once the module has run: `fuseline fuse mlp.fuseline --rules te` shows what
Fuseline makes of the same ops.

Written for TransformerEngine 2.19 and 2.20."""

import json
import math
import os
import re
import warnings
from collections import Counter

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
    "tanh_clamp_scale",
)
RECIPE_FIELDS = (
    "margin",
    "amax_history_len",
    "amax_compute_algo",
    "reduce_amax",
    "fp8_dpa",
    "use_power_2_scales",
    "x_block_scaling_dim",
    "w_block_scaling_dim",
    "grad_block_scaling_dim",
    "enable_2d_quantization",
    "disable_rht",
    "disable_stochastic_rounding",
    "disable_2d_quantization",
    "row_scaled_activation",
    "nvfp4_4over6",
    "nvfp4_4over6_e4m3_use_256",
    "nvfp4_4over6_err_mode",
)
# Environment variables that give recipes other defaults.
RECIPE_VARIABLES = (
    "NVTE_BACKWARD_OVERRIDE",
    "NVTE_FP8_BLOCK_SCALING_FP32_SCALES",
    "NVTE_FP8_CURRENT_SCALING_POWER_2_SCALES",
    "NVTE_NVFP4_4OVER6",
    "NVTE_NVFP4_4OVER6_E4M3_USE_256",
    "NVTE_NVFP4_4OVER6_ERR_MODE",
    "NVTE_NVFP4_DISABLE_2D_QUANTIZATION",
    "NVTE_NVFP4_DISABLE_RHT",
    "NVTE_NVFP4_DISABLE_STOCHASTIC_ROUNDING",
    "NVTE_NVFP4_ROW_SCALED_ACTIVATION",
)
TENSORS = ("input", "weight", "grad_output")
# The GEMMs that read the rowwise and the columnwise copy of a tensor.
GEMMS = {"input": ("fprop", "wgrad"), "weight": ("fprop", "dgrad"), "grad_output": ("dgrad", "wgrad")}
OPERATIONS = set(
    """BasicLinear Linear GroupedLinear Bias GELU QGELU ReLU SReLU SiLU GLU GEGLU QGEGLU ReGLU SReGLU SwiGLU ClampedSwiGLU
    SiTUGLU ScaledSReLU ScaledTanhSReLU ScaledSwiGLU ScaledSiTUGLU ScaledClampedQGeGLU RMSNorm LayerNorm L2Normalization Dropout
    ConstantScale AddExtraInput MakeExtraOutput Identity Reshape Quantize AllGather ReduceScatter AllReduce""".split()
)


class NotAPipeline(ValueError):
    """The module holds something that a pipeline file cannot say."""


class LeftOut(UserWarning):
    """Something that TransformerEngine has, and the file not."""


def leave_out(what):
    warnings.warn(f"to_fuseline: {what}", LeftOut, stacklevel=2)


def save(module, path, x, *extra_inputs, recipe=None, plan=None):
    """Writes the file. Raises NotAPipeline with the name of what cannot be written."""
    document = to_document(module, x, *extra_inputs, recipe=recipe)
    write_json(document, path)
    if plan:
        write_json(fused_plan(module), plan)


def write_json(document, path):
    try:
        text = json.dumps(document, indent=2, allow_nan=False)
    except ValueError as problem:
        raise NotAPipeline("An attribute of an op is NaN or infinite; a pipeline file holds finite numbers.") from problem
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")


def to_document(module, x, *extra_inputs, recipe=None):
    pipeline = Pipeline()
    pipeline.add_input("x", x)
    waiting = list(extra_inputs)
    operations = list(named_operations(module))
    warn_of_shared(operations)
    for name, operation in operations:
        pipeline.append(name, operation, waiting)
    if waiting:
        raise NotAPipeline(f"{len(waiting)} extra inputs are left over; the module takes fewer.")
    document = {**FORMAT, "pipeline": pipeline.finish()}
    if recipe is not None:
        document["recipe"] = recipe_json(recipe, operations)
    if stores_quantized(operations, recipe):
        document["recipe"]["quantized_model_init"] = True
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
        if kind == "DotProductAttention":
            return self.append_attention(name, operation, waiting)
        if kind == "Sequential":
            raise NotAPipeline(f"{name} is a Sequential in another one. Save it by itself, or add its ops to the outer one.")
        if kind not in OPERATIONS or not hasattr(operation, "fuser_forward"):
            raise NotAPipeline(f"{name} is a {kind}, which is no op of te.ops that Fuseline has.")
        warn_of_arguments(name, operation)
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

    def append_attention(self, name, operation, waiting):
        """What is added to the scores is an argument of its call: it is here if there is one more tensor than needed."""
        attributes = attention(operation)
        ports = ["k", "v"] + {"arbitrary": ["attention_mask"]}.get(attributes["attn_mask_type"], [])
        if attributes["attn_mask_type"].startswith("padding"):
            ports += ["cu_seqlens_q", "cu_seqlens_kv"]
        if len(waiting) > len(ports):
            attributes["core_attention_bias_type"] = "post_scale_bias"
            ports.insert(2, "core_attention_bias")
        self.ops.append({"id": name, "op": "DotProductAttention", "attributes": attributes})
        self.wires.append([self.main, f"{name}.x"])
        for port in ports:
            self.wires.append([self.extra_source(name, port, None, waiting), f"{name}.{port}"])
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


def warn_of_shared(operations):
    first = {}
    for name, operation in operations:
        before = first.setdefault(id(operation), name)
        if before != name and any(True for _ in operation.parameters()):
            leave_out(f"{name} is the module {before} again; in the pipeline each has weights of its own.")


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


def attention(operation):
    """Of a te.DotProductAttention. What it takes by itself, such as its scale, is left to Fuseline, too."""
    channels = [operation.hidden_size_per_attention_head_k, operation.hidden_size_per_attention_head_v]
    found = {
        "num_attention_heads": operation.num_attention_heads,
        "kv_channels": channels[:1] if channels[0] == channels[1] else channels,
        "qkv_format": operation.qkv_format,
        "attn_mask_type": operation.attn_mask_type,
        "attention_dropout": float(operation.attention_dropout),
        "attention_type": operation.attention_type,
        "softmax_type": operation.softmax_type,
        "softcap": float(getattr(operation, "softcap", 0.0)),
    }
    if operation.num_gqa_groups != operation.num_attention_heads:
        found["num_gqa_groups"] = operation.num_gqa_groups
    if (operation.window_size or (-1, -1))[0] >= 0:
        found["window_size"] = list(operation.window_size)
    if getattr(operation, "bottom_right_diagonal", None) is not None:
        found["bottom_right_diagonal"] = operation.bottom_right_diagonal
    if not math.isclose(operation.softmax_scale, channels[0] ** -0.5, rel_tol=1e-12):
        found["softmax_scale"] = operation.softmax_scale
    return found


def grouped_linear(operation):
    return {
        "in_features": operation.in_features,
        "out_features": operation.out_features,
        "bias": operation.use_bias,
        "scale_bias": operation._scale_bias,
        "delay_wgrad_compute": bool(operation.wgrad_store.delay_wgrad_compute()),
    }


def norm(operation):
    margins = set(operation._sm_margins.values())
    found = {"normalized_shape": [int(n) for n in operation.weight.shape]}
    return {**found, "sm_margin": margins.pop()} if len(margins) == 1 and any(margins) else found


def warn_of_arguments(name, operation):
    """Arguments of constructors that a pipeline has no attribute for."""
    for part in getattr(operation, "basic_ops", [operation]):
        for group in ("process_group", "tensor_parallel_group"):
            if getattr(part, group, None) is not None:
                leave_out(f"{name}: {group} is a group of its own; a pipeline has one group, of all its ranks.")
        if getattr(part, "_rng_state_tracker_function", None) is not None:
            leave_out(f"{name}: rng_state_tracker_function draws initial weights; Fuseline draws them from its seed.")
        margins = getattr(part, "_sm_margins", {})
        if len(set(margins.values())) > 1:
            leave_out(f"{name}: sm_margin={margins} differs between passes; the file has 0.")


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


def stores_quantized(operations, recipe):
    """Whether every weight that the recipe quantizes was made under quantized_model_init: a recipe of the file says it for
    all of them."""
    stored, plain = [], []
    for name, operation in operations:
        for part in getattr(operation, "basic_ops", [operation]):
            for parameter, tensor in part.named_parameters(recurse=False):
                if hasattr(tensor, "_quantizer") or getattr(tensor, "quantizer", None) is not None:
                    stored.append((f"{name}.{parameter}", tensor))
                elif parameter.startswith("weight") and part.num_quantizers("forward"):
                    plain.append(f"{name}.{parameter}")
    if stored and recipe is not None and not plain:
        warn_of_initial_values(stored)
        return True
    reason = f"but {plain[0]} is not" if plain else "and no recipe was given"
    for name, tensor in stored:
        leave_out(f"{name} is stored quantized (quantized_model_init), {reason}; the file has it in {tensor.dtype}.")
    return False


def warn_of_initial_values(stored):
    for name, tensor in stored:
        if getattr(tensor, "get_high_precision_init_val", lambda: None)() is not None:
            leave_out(f"{name} keeps its initial value in the host's memory (preserve_high_precision_init_val).")


def recipe_json(recipe, operations=()):
    warn_of_environment()
    if hasattr(recipe, "qfactory"):
        return custom_recipe_json(recipe, operations)
    warn_of_losses(recipe)
    fields = {name: getattr(recipe, name) for name in RECIPE_FIELDS if hasattr(recipe, name)}
    if not hasattr(recipe, "amax_history_len"):
        fields.pop("margin", None)  # MXFP8 has one, and does not use it
    if callable(fields.get("amax_compute_algo")):
        fields.pop("amax_compute_algo")
    fields["fp8_format"] = recipe.fp8_format.name
    if hasattr(recipe, "fp8_quant_fwd_inp"):
        fields |= scale_fields(recipe)
    fields["backward_override"] = recipe.backward_override or "none"
    return {"name": type(recipe).__name__, **fields}


def scale_fields(recipe):
    """te.ops takes them from these members, whatever the arguments of the recipe were."""
    members = (recipe.fp8_quant_fwd_inp, recipe.fp8_quant_fwd_weight, recipe.fp8_quant_bwd_grad)
    is_power = members[0].power_2_scale
    if any(member.power_2_scale != is_power for member in members):
        leave_out(f"power_2_scale differs between fp8_quant_fwd_inp and others; the file has {is_power} for all.")
    asked = getattr(recipe, "use_power_2_scales", not getattr(recipe, "use_f32_scales", not is_power))
    if asked != is_power:
        argument = "use_power_2_scales" if hasattr(recipe, "use_power_2_scales") else "use_f32_scales"
        leave_out(f"{argument}={getattr(recipe, argument)} is not what te.ops reads; the file has what fp8_quant_* say.")
    fields = {"use_power_2_scales": is_power}
    is_block = hasattr(recipe, "use_f32_scales")
    for tensor, member in zip(TENSORS, members):
        if member.amax_epsilon and is_block:
            fields[f"amax_epsilon_{tensor}"] = member.amax_epsilon
        elif member.amax_epsilon:
            leave_out(f"amax_epsilon={member.amax_epsilon} of the {tensor} is not read by te.ops; the file has 0.")
    return fields


def warn_of_environment():
    for name in RECIPE_VARIABLES:
        if name in os.environ:
            leave_out(f"{name}={os.environ[name]} gives recipes other defaults; the file has the values of this recipe alone.")


def warn_of_losses(recipe):
    """What has no effect in te.ops, or none in Fuseline."""
    name = type(recipe).__name__
    for field in ("amax_compute_algo", "scaling_factor_compute_algo"):
        if callable(getattr(recipe, field, None)):
            leave_out(f"{name}.{field} is a function of Python; the file has what Fuseline does by default.")
    for field, is_usual in (("fp8_gemm_fprop", False), ("fp8_gemm_dgrad", True), ("fp8_gemm_wgrad", True)):
        gemm = getattr(recipe, field, None)
        if gemm is not None and gemm.use_split_accumulator != is_usual and not hasattr(recipe, "use_f32_scales"):
            leave_out(f"{name}.{field}={gemm} is not read by te.ops, which has constants; the file has those.")
    if getattr(recipe, "fp8_mha", False):
        leave_out(f"{name}.fp8_mha is about FP8 tensors between attention and its projections, which Fuseline does not have.")
    if not hasattr(recipe, "amax_history_len") and getattr(recipe, "margin", 0):
        leave_out(f"{name}.margin={recipe.margin} is not read by TransformerEngine.")


def custom_recipe_json(recipe, operations):
    """As overrides: what the factory returns for every tensor of every linear op."""
    for field in ("fp8_dpa", "fp8_mha"):
        if getattr(recipe, field, False):
            leave_out(f"CustomRecipe.{field} is about attention in FP8, which Fuseline has for other recipes only.")
    if getattr(recipe, "quantization_alignment", 128) != 128:
        leave_out(f"CustomRecipe.quantization_alignment={recipe.quantization_alignment} is for padding, which te.ops has not.")
    found = {tensor: {} for tensor in TENSORS}
    for name, operation in operations:
        for role in roles_of(operation):
            found[role.tensor_type].setdefault(name, rules_of(recipe.qfactory(role), role.tensor_type))
    overrides = []
    for tensor, rules in found.items():
        if not rules:
            continue
        usual = Counter(json.dumps(each) for each in rules.values()).most_common(1)[0][0]
        overrides += [{"tensor": tensor, **rule} for rule in json.loads(usual)]
        for name, own in rules.items():
            if json.dumps(own) != usual:
                overrides += [{"op": name, "tensor": tensor, **rule} for rule in own]
    return {"name": "CustomRecipe", "backward_override": recipe.backward_override or "none", "overrides": overrides}


def roles_of(operation):
    """Of the linear op itself, or of the one that a Linear begins with."""
    part = getattr(operation, "basic_ops", [operation])[0]
    roles = [role for mode in ("forward", "backward") for role in part.get_quantizer_roles(mode) or []]
    if not roles and part.num_quantizers("forward"):
        leave_out(f"{type(part).__name__} has quantizers without a role; the file has those of its neighbours.")
    return [role for role in roles if role.tensor_type in TENSORS]


def rules_of(quantizer, tensor):
    """Of both copies, or of each: overrides of a recipe without the tensor."""
    if type(quantizer).__name__ != "HybridQuantizer":
        return quantizer_rules(quantizer, tensor)
    rowwise, columnwise = GEMMS[tensor]
    rules = [{"gemm": rowwise, **rule} for rule in quantizer_rules(quantizer.rowwise_quantizer, tensor)]
    for rule in quantizer_rules(quantizer.columnwise_quantizer, tensor):
        source = {} if quantizer.columnwise_source == "original" else {"columnwise_source": quantizer.columnwise_source}
        rules.append({"gemm": columnwise, **rule, **source})
    return rules


def quantizer_rules(quantizer, tensor):
    kind = type(quantizer).__name__
    if kind == "IdentityQuantizer":
        return [{"format": "high_precision"}]
    if kind not in QUANTIZERS:
        raise NotAPipeline(f"The factory of the recipe returns a {kind}, which Fuseline does not have.")
    fields, format = QUANTIZERS[kind](quantizer, tensor), format_of(quantizer)
    if "fp8_format" not in fields and kind != "NVFP4Quantizer":
        fields["fp8_format"] = "HYBRID" if format == "e5m2" else "E4M3"
    is_odd = format == "e5m2" and tensor != "grad_output"
    return [{"quantizer": fields}] + ([{"format": format}] if is_odd else [])


def format_of(quantizer):
    name = getattr(getattr(quantizer, "dtype", None), "name", "")
    return "e5m2" if name.endswith("E5M2") else "e4m3"


def delayed_fields(request, tensor):
    fields = {name: getattr(request, name) for name in ("margin", "amax_history_len", "amax_compute_algo", "reduce_amax")}
    for name in ("amax_compute_algo", "scaling_factor_compute_algo"):
        if callable(getattr(request, name)):
            leave_out(f"DelayedScalingRequest.{name} is a function of Python; the file has what Fuseline does by default.")
            fields.pop(name, None)
    return {"name": "DelayedScaling", "fp8_format": request.fp8_format.name, **fields}


def current_fields(quantizer, tensor):
    fields = {"name": "Float8CurrentScaling", "use_power_2_scales": quantizer.force_pow_2_scales}
    return fields | epsilon_field(quantizer, tensor)


def epsilon_field(quantizer, tensor):
    return {f"amax_epsilon_{tensor}": quantizer.amax_epsilon} if quantizer.amax_epsilon else {}


def block_fields(quantizer, tensor):
    """Only one operand of a GEMM may have square blocks, so that the others are written as rows."""
    names = {"input": "x_block_scaling_dim", "weight": "w_block_scaling_dim", "grad_output": "grad_block_scaling_dim"}
    dims = {name: quantizer.block_scaling_dim if each == tensor else 1 for each, name in names.items()}
    fields = {"name": "Float8BlockScaling", "use_power_2_scales": quantizer.force_pow_2_scales}
    return fields | dims | epsilon_field(quantizer, tensor)


def mxfp8_fields(quantizer, tensor):
    is_square = getattr(quantizer, "with_2d_quantization", False)
    if is_square and tensor != "weight":
        leave_out(f"MXFP8Quantizer(with_2d_quantization=True) of a {tensor}; the file has blocks of 1 x 32.")
    return {"name": "MXFP8BlockScaling", "enable_2d_quantization": is_square}


def nvfp4_fields(quantizer, tensor):
    if quantizer.with_2d_quantization and tensor != "weight":
        leave_out(f"NVFP4Quantizer(with_2d_quantization=True) of a {tensor}; the file has blocks of 1 x 16.")
    if quantizer.stochastic_rounding and tensor != "grad_output":
        leave_out(f"NVFP4Quantizer(stochastic_rounding=True) of a {tensor}; the file rounds it to nearest.")
    if quantizer.with_rht and tensor == "weight":
        leave_out("NVFP4Quantizer(with_rht=True) of a weight; the file has it without the transform.")
    fields = {
        "name": "NVFP4BlockScaling",
        "disable_rht": not quantizer.with_rht,
        "disable_stochastic_rounding": not quantizer.stochastic_rounding,
        "disable_2d_quantization": not quantizer.with_2d_quantization,
    }
    if quantizer.row_scaled_nvfp4 and tensor == "input":
        fields["row_scaled_activation"] = True
    elif quantizer.row_scaled_nvfp4:
        leave_out(f"NVFP4Quantizer(row_scaled_nvfp4=True) of a {tensor}; the file has one scale for the tensor.")
    if quantizer.nvfp4_use_4over6:
        fields["nvfp4_4over6"] = "all"
        fields["nvfp4_4over6_e4m3_use_256"] = "all" if quantizer.nvfp4_e4m3_max == 256 else "none"
        fields["nvfp4_4over6_err_mode"] = quantizer.nvfp4_4over6_err_mode
    return fields


QUANTIZERS = {
    "DelayedScalingRequest": delayed_fields,
    "Float8CurrentScalingQuantizer": current_fields,
    "Float8BlockQuantizer": block_fields,
    "MXFP8Quantizer": mxfp8_fields,
    "NVFP4Quantizer": nvfp4_fields,
}


def fused_plan(module):
    """[class, positions] of what TransformerEngine runs as one, for each run of fusible ops, by pass."""
    if module._module_groups is None:
        raise NotAPipeline("TransformerEngine fuses when the module runs; run it once before.")
    fusers = [group for group in module._module_groups if hasattr(group, "_forward_ops")]
    return [{"forward": fused(f._forward_ops), "backward": fused(f._backward_ops)} for f in fusers]


def fused(operations):
    return [[type(op).__name__, list(places)] for op, places in operations if len(places) > 1]
