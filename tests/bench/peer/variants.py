# The ways in which PyTorch runs the peer: eager, compiled, compiled and replayed, with FP8 products.
# SPDX-License-Identifier: Apache-2.0
"""A step is what fuseline runs: forward, and in training the gradients of all inputs and parameters from given gradients
of the outputs. Gradients are new tensors in every step; nothing is added up over steps."""

import contextlib
import time

import torch
import torch.nn.functional as F

from . import scaled_products
from .modules import PeerModule
from .program import PeerError

MODES = {
    "eager": "PyTorch as it is",
    "compile": "torch.compile",
    "reduce-overhead": "torch.compile(mode='reduce-overhead'): CUDA graphs",
    "max-autotune": "torch.compile(mode='max-autotune'): tries kernels, takes minutes",
    "freeze": "torch.compile with freezing, --pass forward only: weights are constants and may be packed",
    "fp8": "eager, with torch._scaled_mm",
    "fp8-compile": "torch.compile, with torch._scaled_mm",
    "fp8-reduce-overhead": "the same with mode='reduce-overhead': CUDA graphs",
}
FP8_RECIPES = ("DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling", "MXFP8BlockScaling")


def default_modes(device, is_training, recipe):
    """What a user of PyTorch would try on this device."""
    modes = ["eager", "compile"]
    if device.type == "cuda":
        modes.append("reduce-overhead")
        if recipe in FP8_RECIPES and not scaled_products.reason_against(device):
            modes += ["fp8", "fp8-compile", "fp8-reduce-overhead"]
    elif not is_training:
        modes.append("freeze")
    return modes


def reason_against(mode, device, is_training, recipe):
    """Why a mode cannot run; None: it can."""
    if mode == "freeze" and is_training:
        return "weights are no constants in training; use --pass forward"
    if mode.startswith("fp8"):
        if recipe not in FP8_RECIPES:
            return f"the recipe is {recipe}; FP8 products are compared under a recipe of FP8"
        return scaled_products.reason_against(device)
    return None


class Variant:
    """One way to run the peer. tensors: what tensors.draw made, on the host."""

    def __init__(self, mode, pipeline, tensors, device, recipe_fields):
        self.mode = mode
        self._device = device
        self._is_training = pipeline.is_training
        groups = {name: tensor.tolist() for name, tensor in tensors.items() if tensor.dtype == torch.int64}
        on_device = {name: tensor.to(device) for name, tensor in tensors.items()}
        self.module = PeerModule(pipeline, on_device, groups, _linear_of(mode, recipe_fields)).to(device)
        self._inputs = [on_device[name].clone().requires_grad_(name in pipeline.gradients) for name in pipeline.inputs]
        self._call = _compiled(self.module, mode)
        named = [*zip(pipeline.inputs, self._inputs), *zip(self.module.names, self.module.weights)]
        self._leaves = {name: tensor for name, tensor in named if tensor.requires_grad and pipeline.is_training}
        self._output_names = [name for name, _ in pipeline.outputs]
        self._gradients = {name: on_device[f"grad.{name}"] for name in self._output_names if name in pipeline.gradients}
        start = time.perf_counter()
        self.step()
        self.first_step_s = time.perf_counter() - start

    def step(self):
        """All results by their names in fuseline's files. Returns when the device is done."""
        if self._device.type == "cuda" and self.mode != "eager":
            torch.compiler.cudagraph_mark_step_begin()
        results = self._train() if self._is_training else self._forward()
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return results

    def results(self):
        """Those of a step, on the host; the next step cannot overwrite them."""
        return {name: value.detach().to("cpu", copy=True) for name, value in self.step().items() if value is not None}

    def _forward(self):
        # Compiled code is made for no_grad; eager code has less to do in inference_mode.
        with torch.inference_mode() if self.mode in ("eager", "fp8") else torch.no_grad():
            return dict(zip(self._output_names, self._call(*self._inputs)))

    def _train(self):
        outputs = dict(zip(self._output_names, self._call(*self._inputs)))
        starts = [outputs[name] for name in self._gradients]
        found = torch.autograd.grad(starts, list(self._leaves.values()), list(self._gradients.values()),
                                    allow_unused=True)
        return {**outputs, **{f"grad.{name}": gradient for name, gradient in zip(self._leaves, found)}}


def _linear_of(mode, recipe_fields):
    if not mode.startswith("fp8"):
        return F.linear
    return scaled_products.scaled_linear(scaled_products.gradient_format(recipe_fields))


def _compiled(module, mode):
    if mode in ("eager", "fp8"):
        return module
    options = {"options": {"freezing": True}} if mode == "freeze" else {}
    if mode.removeprefix("fp8-") in ("reduce-overhead", "max-autotune"):
        options = {"mode": mode.removeprefix("fp8-")}
    # One graph: a part that falls back to eager would be measured as compiled.
    return torch.compile(module, fullgraph=True, dynamic=False, **options)


def make(mode, pipeline, tensors, device, recipe, recipe_fields):
    """The variant, or the sentence why there is none."""
    reason = reason_against(mode, device, pipeline.is_training, recipe)
    if reason:
        return reason
    try:
        with contextlib.redirect_stdout(None):
            return Variant(mode, pipeline, tensors, device, recipe_fields)
    except torch.cuda.OutOfMemoryError as error:
        return f"the GPU's memory does not suffice: {_first_line(error)}"
    except Exception as error:  # whatever a compiler throws
        if mode == "eager":
            raise PeerError(f"PyTorch cannot run the peer: {_first_line(error)}", 4) from error
        return f"{type(error).__name__}: {_first_line(error)}"


def _first_line(error):
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
