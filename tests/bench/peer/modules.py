# The PyTorch peer of a pipeline: one function an op, written as a user of PyTorch would.
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic stays in the dtype of its tensors, as PyTorch's users write it: fuseline computes elements in float32 and
rounds once, so that the peer is the less exact one in 16 bits, never the one that does more."""

import operator

import torch
import torch.nn.functional as F

from . import attention, experts, formula, model_ends
from .tensors import DTYPES


class PeerModule(torch.nn.Module):
    """linear: F.linear or what stands for it. groups: name of split sizes -> list, known on the host; those
    that an op makes are read when they are there."""

    def __init__(self, pipeline, parameters, groups, linear=F.linear):
        super().__init__()
        self.names = list(pipeline.parameters)
        self.weights = torch.nn.ParameterList(
            torch.nn.Parameter(parameters[name], requires_grad=name in pipeline.gradients) for name in self.names)
        self.train(pipeline.is_training)
        self._inputs = pipeline.inputs
        self._outputs = [edge for _, edge in pipeline.outputs]
        self._steps = [self._step(op, pipeline, groups, linear) for op in pipeline.ops]
        self._last_uses = last_uses(pipeline)

    def _step(self, op, pipeline, groups, linear):
        function = function_of(op, pipeline, groups, linear)
        slots = [self.names.index(name) for name in op.parameters]
        dtypes = [DTYPES[pipeline.edges[name].dtype] for name in op.outputs]
        return op, function, slots, dtypes

    def forward(self, *inputs):
        values = dict(zip(self._inputs, inputs))
        for (op, function, slots, dtypes), unused in zip(self._steps, self._last_uses):
            results = function(*[values[name] for name in op.inputs], *[self.weights[slot] for slot in slots])
            if not isinstance(results, tuple):
                results = (results,)
            for name, result, dtype in zip(op.outputs, results, dtypes):
                values[name] = result.to(dtype)
            for name in unused:
                del values[name]
        return tuple(values[name] for name in self._outputs)


def last_uses(pipeline):
    """For every op the tensors that nobody reads after it: PyTorch frees them then, as it would in a plain module."""
    kept = {edge for _, edge in pipeline.outputs}
    last = {}
    for index, op in enumerate(pipeline.ops):
        last.update((name, index) for name in (*op.outputs, *op.inputs) if name not in kept)
    return [[name for name, use in last.items() if use == index] for index in range(len(pipeline.ops))]


# ---- activations

def gelu(x):
    return F.gelu(x, approximate="tanh")


def qgelu(x):
    return x * torch.sigmoid(1.702 * x)


def srelu(x):
    return F.relu(x).square()


UNARY = {"GELU": gelu, "QGELU": qgelu, "ReLU": F.relu, "SReLU": srelu, "SiLU": F.silu}
# Of the first half; unlike in F.glu.
GATES = {"GLU": torch.sigmoid, "GEGLU": gelu, "QGEGLU": qgelu, "ReGLU": F.relu, "SReGLU": srelu, "SwiGLU": F.silu}


def halves(x, interleave):
    """interleave: None, or the width of the blocks of both halves that take turns."""
    if not interleave:
        return x.chunk(2, dim=-1)
    blocks = x.reshape(*x.shape[:-1], -1, 2, interleave)
    return blocks[..., 0, :].flatten(-2), blocks[..., 1, :].flatten(-2)


def clamped_swiglu(a, b, limit, alpha, offset):
    c = a.clamp(max=limit)
    return c * torch.sigmoid(alpha * c) * (b.clamp(-limit, limit) + offset)


def situglu(a, b, beta1, beta2):
    return beta1 * torch.tanh(a / beta1) * torch.sigmoid(a) * (beta2 * torch.tanh(b / beta2))


def gate_of(kind, attributes):
    """A function of both halves."""
    if kind in ("ClampedSwiGLU", "ScaledClampedQGeGLU"):
        limit, alpha, offset = (attributes[name] for name in ("limit", "alpha", "glu_linear_offset"))
        return lambda a, b: clamped_swiglu(a, b, limit, alpha, offset)
    if kind in ("SiTUGLU", "ScaledSiTUGLU"):
        return lambda a, b: situglu(a, b, attributes["beta1"], attributes["beta2"])
    activation = GATES[kind.removeprefix("Scaled")]
    return lambda a, b: activation(a) * b


def gated(op):
    gate = gate_of(op.kind, op.attributes)
    interleave = int(op.attributes.get("glu_interleave_size") or 0)
    return lambda x: gate(*halves(x, interleave))


def tanh_srelu(limit):
    return lambda x: (limit * torch.tanh(F.relu(x) / limit)) ** 2


def activation_of_rows(op):
    if op.kind == "ScaledTanhSReLU":
        return tanh_srelu(op.attributes["tanh_clamp_scale"])
    return srelu if op.kind == "ScaledSReLU" else gated(op)


def scaled(op):
    activation = activation_of_rows(op)
    return lambda x, scales: activation(x) * scales.to(x.dtype).unsqueeze(-1)


# ---- linear layers

def linear_layer(linear):
    def run(x, weight, bias=None):
        return linear(x.to(weight.dtype), weight, bias)

    return run


def grouped_linear(op, pipeline, groups, linear):
    num_groups = pipeline.edges[op.inputs[1]].shape[0]
    known = groups.get(op.inputs[1])
    is_single = op.attributes["single_grouped_weight"]
    is_single_bias = op.attributes["single_grouped_bias"]
    is_scaled = op.attributes["scale_bias"]
    num_weights = 1 if is_single else num_groups

    def run(x, split_sizes, *rest):
        sizes = split_sizes.tolist() if known is None else known
        # An op without biases has no scales, either.
        scales = rest[0].reshape(-1, 1) if is_scaled and len(op.inputs) > 2 else None
        parameters = rest[len(op.inputs) - 2:]
        weights = parameters[0].unbind(0) if is_single else parameters[:num_weights]
        biases = parameters[num_weights:]
        biases = biases[0].unbind(0) if is_single_bias and biases else biases
        rows = x.reshape(-1, x.shape[-1]).to(weights[0].dtype).split(sizes)
        parts = scales.split(sizes) if scales is not None else [None] * num_groups
        results = [group(*of) for of in zip(rows, weights, biases or [None] * num_groups, parts)]
        return torch.cat(results).reshape(*x.shape[:-1], -1)

    def group(x, weight, bias, scale):
        if bias is None or scale is None:
            return linear(x, weight, bias)
        return linear(x, weight) + scale.to(weight.dtype) * bias

    return run


# ---- norms

def rms_norm(x, weight, eps):
    if hasattr(F, "rms_norm"):
        return F.rms_norm(x, weight.shape, weight, eps)
    axes = tuple(range(-weight.dim(), 0))
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(axes, keepdim=True) + eps)).to(x.dtype) * weight


def norm(op):
    eps, is_centred = op.attributes["eps"], op.attributes["zero_centered_gamma"]

    def run(x, weight, *bias):
        x = x.to(weight.dtype)
        if is_centred:  # 1 + weight would be rounded in 16 bits
            x, weight, bias = x.float(), weight.float() + 1, [b.float() for b in bias]
        return F.layer_norm(x, weight.shape, weight, bias[0], eps) if bias else rms_norm(x, weight, eps)

    return run


def l2_normalization(op):
    eps = op.attributes["eps"]

    def run(x):
        wide = x.float()
        return wide * torch.rsqrt(wide.square().sum(-1, keepdim=True) + eps)

    return run


# ---- formulas

def extremum(of_tensors, of_number):
    """max and min take numbers, too; clamp does that without making a tensor of them."""
    def run(a, b):
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            return of_tensors(a, b)
        return of_number(a, b) if isinstance(a, torch.Tensor) else of_number(b, a)

    return run


def comparison(compare):
    """1 or 0, a number as any other."""
    def run(a, b):
        return compare(a, b).to(a.dtype if isinstance(a, torch.Tensor) else b.dtype)

    return run


FORMULA_FUNCTIONS = {
    "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "tanh": torch.tanh,
    "sigmoid": torch.sigmoid, "silu": F.silu, "gelu": gelu, "relu": F.relu, "softplus": F.softplus, "abs": torch.abs,
    "square": torch.square,
    "max": extremum(torch.maximum, lambda a, number: a.clamp(min=number)),
    "min": extremum(torch.minimum, lambda a, number: a.clamp(max=number)),
    "where": lambda c, a, b: c * a + (1 - c) * b,
    "pow": operator.pow, "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "neg": operator.neg, "less": comparison(operator.lt), "greater": comparison(operator.gt),
}


def folded(term, constants):
    """The term with everything computed that is a number; what is left as a number is a plain one."""
    head, *rest = term
    if head == "number" or (head == "name" and rest[0] not in constants):
        return term
    if head == "name":
        return ("number", constants[rest[0]])
    parts = [folded(part, constants) for part in rest]
    if any(part[0] != "number" for part in parts):
        return (head, *parts)
    values = [torch.tensor(part[1], dtype=torch.float64) for part in parts]
    return ("number", FORMULA_FUNCTIONS[head](*values).item())


def formula_op(op):
    term = folded(formula.parse(op.attributes["y"]), formula.declared(op.attributes["constants"]))
    names = ["x", *formula.declared(op.attributes["inputs"]), *formula.declared(op.attributes["parameters"])]

    def run(*values):
        y = formula.evaluate(term, FORMULA_FUNCTIONS, dict(zip(names, values)))
        return y if isinstance(y, torch.Tensor) else torch.full_like(values[0], y)

    return run


# ---- everything else

def identity(x):
    return x


def dropout(op, is_training):
    p = op.attributes["p"]
    return lambda x: F.dropout(x, p, training=is_training)


def function_of(op, pipeline, groups, linear):
    """A function of the op's inputs, then its parameters."""
    kind, attributes = op.kind, op.attributes
    if kind == "GELU" and attributes["approximate"] == "none":
        return F.gelu
    if kind in UNARY:
        return UNARY[kind]
    if kind.startswith("Scaled"):
        return scaled(op)
    if kind in GATES or kind in ("ClampedSwiGLU", "SiTUGLU"):
        return gated(op)
    makers = {
        "BasicLinear": lambda: linear_layer(linear),
        "Linear": lambda: linear_layer(linear),
        "GroupedLinear": lambda: grouped_linear(op, pipeline, groups, linear),
        "Bias": lambda: torch.add,
        "RMSNorm": lambda: norm(op),
        "LayerNorm": lambda: norm(op),
        "L2Normalization": lambda: l2_normalization(op),
        "Formula": lambda: formula_op(op),
        "Dropout": lambda: dropout(op, pipeline.is_training),
        "ConstantScale": lambda: lambda x: x * attributes["scale"],
        "AddExtraInput": lambda: torch.add,
        "MakeExtraOutput": lambda: lambda x: (x, x),
        "DotProductAttention": lambda: attention.Attention(op),
        "RotaryPositionEmbedding": lambda: attention.Rotary(op, pipeline.edges[op.inputs[0]].shape),
        "Split": lambda: lambda x: x.split(op.attributes["sizes"], -1),
        "Concat": lambda: lambda *x: torch.cat(x, -1),
        "Expand": lambda: lambda x: x.unsqueeze(-2).expand(pipeline.edges[op.outputs[0]].shape),
        "Embedding": lambda: model_ends.embedding(op),
        "TiedLinear": lambda: F.linear,
        "CrossEntropy": lambda: model_ends.cross_entropy(op),
        "TopKRouter": lambda: experts.router(op),
        "MoEPermute": lambda: experts.permute(op, pipeline),
        "MoEUnpermute": lambda: experts.unpermute(op),
        "MoEAuxLoss": lambda: experts.aux_loss(op),
        "Reshape": lambda: lambda x: x.reshape(pipeline.edges[op.outputs[0]].shape),
    }
    return makers.get(kind, lambda: identity)()
