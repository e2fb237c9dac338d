# Kernels in plain PyTorch, in place of the compiled part of TransformerEngine, for the ops that run without a recipe.
# SPDX-License-Identifier: Apache-2.0
"""install(extension) sets them. Arguments and results are those of transformer_engine_torch 2.20; formulas are those of
TransformerEngine's documentation, gradients come from autograd. A GEMM that adds to a tensor writes its columns in two
halves, each from operands as they then are, so that an operand which is that tensor shows."""

import torch
from torch.nn import functional


def gated(activation):
    def function(x):
        act, gate = x.chunk(2, -1)
        return activation(act) * gate

    return function


def tanh_gelu(x):
    return functional.gelu(x, approximate="tanh")


def qgelu(x):
    return x * torch.sigmoid(1.702 * x)


def srelu(x):
    return functional.relu(x) ** 2


ACTIVATIONS = {"gelu": tanh_gelu, "qgelu": qgelu, "relu": functional.relu, "srelu": srelu, "silu": functional.silu,
               "glu": gated(torch.sigmoid), "geglu": gated(tanh_gelu), "qgeglu": gated(qgelu),
               "reglu": gated(functional.relu), "sreglu": gated(srelu), "swiglu": gated(functional.silu)}


def gradients(function, dy, *operands):
    with torch.enable_grad():
        leaves = [x.detach().clone().requires_grad_() for x in operands]
        return torch.autograd.grad(function(*leaves), leaves, dy)


def scaled_swiglu(x, scales, quantizer, interleave):
    assert interleave == 0
    return gated(functional.silu)(x) * scales.unsqueeze(-1)


def scaled_dswiglu(dy, x, scales, quantizer, interleave, needs_dscales):
    dx, dscales = gradients(lambda x, scales: scaled_swiglu(x, scales, None, interleave), dy, x, scales)
    return dx, dscales if needs_dscales else None


def clamped_swiglu(x, quantizer, limit, alpha, offset):
    act, gate = x.chunk(2, -1)
    act, gate = act.clamp(max=limit), gate.clamp(-limit, limit)
    return act * torch.sigmoid(alpha * act) * (gate + offset)


def clamped_dswiglu(dy, x, quantizer, limit, alpha, offset):
    return gradients(lambda x: clamped_swiglu(x, None, limit, alpha, offset), dy, x)[0]


def generic_gemm(a, is_a_transposed, b, is_b_transposed, out, quantizer, out_dtype, bias, bias_dtype, gelu, gelu_in, grad,
                 workspace, workspace_size, accumulate, *rest, alpha, **named):
    flat = b.reshape(-1, b.shape[-1])
    rows = flat.t() if is_b_transposed else flat
    columns = a.t() if is_a_transposed else a.reshape(-1, a.shape[-1])
    if out is None:
        out = torch.zeros(*(b.shape[:-1] if not is_b_transposed else (rows.shape[0],)), columns.shape[1], dtype=a.dtype)
    elif not accumulate:
        out.zero_()
    half, matrix = columns.shape[1] // 2, out.view(-1, columns.shape[1])
    for part in (slice(0, half), slice(half, None)):
        matrix[:, part] += alpha * (rows @ columns[:, part])
    if bias is not None and not grad:
        matrix += bias
    return out, None, None, None


def te_general_grouped_gemm(a, is_a_transposed, b, is_b_transposed, out, out_dtype, sizes, bias, bias_dtype, single_output,
                            gelu_in, grad, workspaces, workspace_size, accumulate, *rest):
    parts = out[0].view(-1, out[0].shape[-1]).split(sizes) if single_output else out
    for i, part in enumerate(parts):
        rows = b[i].reshape(-1, b[i].shape[-1])
        columns = a[i].t() if is_a_transposed else a[i].reshape(-1, a[i].shape[-1])
        y = (rows.t() if is_b_transposed else rows) @ columns
        part.copy_((part if accumulate else 0) + y + (bias[i] if bias[i].numel() and not grad else 0))
    return [x.sum(0) for x in b] if grad else bias


def grouped_dbias(dy, offsets, num_groups):
    """In place of a program in Triton."""
    return torch.stack([x.sum(0) for x in dy.split(offsets.diff().tolist())])


def normalized(x, weight, eps, isZeroCentered, bias=None):
    centered = x if bias is None else x - x.mean(-1, keepdim=True)
    rstd = torch.rsqrt((centered ** 2).mean(-1, keepdim=True) + eps)
    return centered * rstd * (weight + 1 if isZeroCentered else weight) + (0 if bias is None else bias), rstd


def rmsnorm_fwd(x, weight, eps, out, quantizer, dtype, margin, isZeroCentered):
    y, rstd = normalized(x, weight, eps, isZeroCentered)
    return y, None, rstd


def rms_gradients(dy, x, rstd, weight, isZeroCentered):
    eps = 1 / rstd ** 2 - (x ** 2).mean(-1, keepdim=True)
    return gradients(lambda x, weight: normalized(x, weight, eps, isZeroCentered)[0], dy, x, weight)


def rmsnorm_bwd(dy, x, rstd, weight, margin, isZeroCentered):
    return rms_gradients(dy, x, rstd, weight, isZeroCentered)


def rmsnorm_bwd_add(dy, x, add, rstd, weight, margin, isZeroCentered):
    dx, dw = rms_gradients(dy, x, rstd, weight, isZeroCentered)
    return dx + add, dw


def layernorm_fwd(x, weight, bias, eps, out, quantizer, dtype, margin, isZeroCentered):
    y, rstd = normalized(x, weight, eps, isZeroCentered, bias)
    return y, x.mean(-1, keepdim=True), rstd


def layernorm_bwd(dy, x, mean, rstd, weight, margin, isZeroCentered):
    eps = 1 / rstd ** 2 - ((x - mean) ** 2).mean(-1, keepdim=True)
    return gradients(lambda x, weight, bias: normalized(x, weight, eps, isZeroCentered, bias)[0], dy, x, weight,
                     torch.zeros_like(weight))


def install(extension):
    for function in (generic_gemm, te_general_grouped_gemm, rmsnorm_fwd, rmsnorm_bwd, rmsnorm_bwd_add, layernorm_fwd,
                     layernorm_bwd, scaled_swiglu, scaled_dswiglu, clamped_swiglu, clamped_dswiglu):
        setattr(extension, function.__name__, function)
    for name, function in ACTIVATIONS.items():
        setattr(extension, name, lambda x, quantizer, f=function: f(x))
        setattr(extension, f"d{name}", lambda dy, x, quantizer, f=function: gradients(f, dy, x)[0])
