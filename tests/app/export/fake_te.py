# Modules that stand in for PyTorch and TransformerEngine: tensors are the expressions that made them.
# SPDX-License-Identifier: Apache-2.0
"""What an exported module computes, as a text. Arguments are checked against te_signatures.json, the names and defaults of
the constructors of te.ops (TransformerEngine 2.20.2), and channels are resolved as its OperationFuser does."""

import json
import pathlib
import sys
import types

SIGNATURES = json.loads((pathlib.Path(__file__).parent / "te_signatures.json").read_text())
EXTRA_INPUTS = {"AddExtraInput": 1, "GroupedLinear": 1}


class Anything:
    """A value that takes every attribute, such as a parameter."""

    def __getattr__(self, name):
        return Anything()

    def __call__(self, *arguments, **named):
        return Anything()


class Operation:
    def __init__(self, kind, arguments):
        unknown = set(arguments) - set(SIGNATURES[kind])
        missing = {name for name, default in SIGNATURES[kind].items() if default is None} - set(arguments)
        assert not unknown and not missing, f"{kind}: unknown {unknown}, missing {missing}"
        self.kind, self.arguments = kind, arguments
        numExtras = 1 if kind.startswith("Scaled") else EXTRA_INPUTS.get(kind, 0)
        numExtras += int(arguments.get("scale_bias", False) and arguments.get("bias", True) and kind == "GroupedLinear")
        self.inputs = [None] * numExtras
        self.outputs = [(None, True)] * (kind == "MakeExtraOutput")
        self.weight = self.bias = Anything()

    def __getattr__(self, name):  # weight0, bias3
        if name.startswith(("weight", "bias")):
            return Anything()
        raise AttributeError(name)

    def set_extra_input_channel(self, index, channel):
        self.inputs[index] = channel
        return self

    def set_extra_output_channel(self, index, channel, *, output_to_caller=True):
        self.outputs[index] = (channel, output_to_caller)
        return self

    def expression(self, name, x, extras):
        """Of a Linear: of the basic ops that it is."""
        if self.kind != "Linear":
            return f"{name}({', '.join([x, *extras])})"
        parts = ["linear"] + ["bias"] * self.arguments.get("bias", True)
        parts += ["sum"] * (self.arguments.get("tensor_parallel_mode") == "row")
        for part in parts:
            x = f"{name}_{part}({x})" if len(parts) > 1 else f"{name}({x})"
        return x


class Sequential:
    def __init__(self, operations):
        self.operations = operations
        self.__dict__.update(operations)

    def __call__(self, x, *external):
        channels, public, waiting = {}, [], list(external)
        for name, operation in self.operations.items():
            extras = [waiting.pop(0) if channel is None else channels[channel] for channel in operation.inputs]
            for channel, isPublic in operation.outputs:
                made = f"{name}.extra({x})"
                assert channel is None or channel not in channels, f"{channel} has two producers"
                channels[channel] = made
                public += [made] if isPublic else []
            x = operation.expression(name, x, extras)
        assert not waiting, f"{len(waiting)} extra inputs too many"
        return (x, *public) if public else x


class Elsewhere:
    """A module that is none of te.ops."""

    def __init__(self, name):
        self.name = name

    def to(self, device):
        return self

    def __call__(self, *inputs):
        return f"{self.name}({', '.join(inputs)})"


class Module:
    def __init__(self):
        pass

    def __call__(self, *inputs):
        return self.forward(*inputs)


def install():
    """Makes `import torch` and `import transformer_engine.pytorch as te` give the stand-ins."""
    torch, te, common = (types.ModuleType(name) for name in ("torch", "te", "common"))
    torch.nn = types.SimpleNamespace(Module=Module)
    for dtype in ("float32", "float16", "bfloat16", "int64"):
        setattr(torch, dtype, dtype)
    torch.distributed = types.SimpleNamespace(is_initialized=lambda: False)
    torch.zeros_like = lambda tensor, dtype: Anything()
    kinds = {kind: (lambda kind: lambda **arguments: Operation(kind, arguments))(kind) for kind in SIGNATURES}
    te.ops = types.SimpleNamespace(Sequential=Sequential, **kinds)
    te.Elsewhere, te.DotProductAttention = Elsewhere, lambda *sizes, **named: Elsewhere("attention")
    common.recipe = Anything()
    package = types.ModuleType("transformer_engine")
    package.pytorch, package.common = te, common
    sys.modules.update({"torch": torch, "transformer_engine": package, "transformer_engine.pytorch": te,
                        "transformer_engine.common": common})
