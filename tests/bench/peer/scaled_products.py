# PyTorch's own FP8 product, torch._scaled_mm, as a linear layer with a gradient.
# SPDX-License-Identifier: Apache-2.0
"""Every factor has one scale, from its own largest value in the same step: what PyTorch offers without a history. All
three products of a layer are FP8; making the codes and turning matrices round for the product is part of the step."""

import torch
import torch.nn.functional as F

ALIGNMENT = 16  # extents that torch._scaled_mm takes are multiples of it
FORWARD_FORMAT = torch.float8_e4m3fn


def gradient_format(recipe_fields):
    return torch.float8_e4m3fn if recipe_fields.get("fp8_format") == "E4M3" else torch.float8_e5m2


def reason_against(device):
    """Why a device has no such product; None: it has."""
    if not hasattr(torch, "_scaled_mm"):
        return f"PyTorch {torch.__version__} has no torch._scaled_mm"
    if device.type == "cuda" and torch.cuda.get_device_capability(device) < (8, 9):
        return "FP8 products need compute capability 8.9"
    return None


def fits(rows, weight):
    return all(extent % ALIGNMENT == 0 for extent in (rows, *weight.shape[-2:]))


def quantized(tensor, dtype):
    """Codes, and the factor that brings them back."""
    largest = torch.finfo(dtype).max
    amax = tensor.abs().amax().float()
    scale = torch.where(amax > 0, largest / amax, torch.ones_like(amax))
    codes = (tensor.float() * scale).clamp(-largest, largest).to(dtype)
    return codes, scale.reciprocal()


def product(a, a_factor, b_transposed, b_factor, dtype, is_fast):
    """a [M, K] b_transposed[N, K]^T: the product wants its second factor column by column."""
    return torch._scaled_mm(a, b_transposed.t(), scale_a=a_factor, scale_b=b_factor, out_dtype=dtype,
                            use_fast_accum=is_fast)


def turned(codes):
    return codes.t().contiguous()


class ScaledLinear(torch.autograd.Function):
    """y = x weight^T. x: [M, K], weight: [N, K]."""

    @staticmethod
    def forward(ctx, x, weight, gradient_dtype):
        x_codes, x_factor = quantized(x, FORWARD_FORMAT)
        weight_codes, weight_factor = quantized(weight, FORWARD_FORMAT)
        ctx.save_for_backward(x_codes, x_factor, weight_codes, weight_factor)
        ctx.gradient_dtype, ctx.dtype = gradient_dtype, weight.dtype
        return product(x_codes, x_factor, weight_codes, weight_factor, weight.dtype, True)

    @staticmethod
    def backward(ctx, dy):
        x, x_factor, weight, weight_factor = ctx.saved_tensors
        codes, factor = quantized(dy, ctx.gradient_dtype)
        dx = dweight = None
        if ctx.needs_input_grad[0]:
            dx = product(codes, factor, turned(weight), weight_factor, ctx.dtype, False)
        if ctx.needs_input_grad[1]:
            dweight = product(turned(codes), factor, turned(x), x_factor, ctx.dtype, False)
        return dx, dweight, None


def scaled_linear(gradient_dtype):
    """A replacement of F.linear. Layers whose extents do not fit stay in high precision, as in fuseline."""

    def linear(x, weight, bias=None):
        rows = x.reshape(-1, x.shape[-1])
        if weight.dtype == torch.float32 or not fits(rows.shape[0], weight):
            return F.linear(x, weight, bias)
        y = ScaledLinear.apply(rows, weight, gradient_dtype).reshape(*x.shape[:-1], weight.shape[0])
        return y if bias is None else y + bias

    return linear
