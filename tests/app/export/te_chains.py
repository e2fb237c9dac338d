# Random chains of ops, as a pipeline file and as ops of TransformerEngine, and what its OperationFuser makes of them.
# SPDX-License-Identifier: Apache-2.0
"""Needs transformer_engine.pytorch as check_te_fuser.import_te() gives it. Quantizers are TransformerEngine's own, made on
the CPU; the grouped MLP fusions are registered with stand-ins for the cuDNN front-end's kernels. Where Fuseline decides
otherwise on purpose, as the summaries of its rules say, `kindnesses` says so to TransformerEngine's ops, and counts it."""

import collections
import contextlib
import os
import random
import sys
import types

GATED = ["GLU", "GEGLU", "ReGLU", "SwiGLU", "QGEGLU", "SReGLU"]
PLAIN = ["GELU", "ReLU", "SiLU", "QGELU", "SReLU"]
SCALED = ["ScaledSwiGLU", "ScaledClampedQGeGLU", "ScaledSiTUGLU"]
DTYPES = ["bf16", "f16", "f32"]
RECIPES = {"None": {},
           "DelayedScaling": {"fp8_format": ["HYBRID", "E4M3"]},
           "Float8CurrentScaling": {"fp8_format": ["HYBRID", "E4M3"], "backward_override": True},
           "Float8BlockScaling": {"fp8_format": ["E4M3", "HYBRID"], "backward_override": True},
           "MXFP8BlockScaling": {"fp8_format": ["E4M3", "HYBRID"], "backward_override": True},
           "NVFP4BlockScaling": {"disable_rht": [False, True], "backward_override": True}}
DEVICES = {"cpu": (9, 0), "sm_90": (9, 0), "sm_100": (10, 0), "sm_103": (10, 3)}
FAMILIES = ["mixed", "mixed", "residual", "bias", "grouped"]


def register_grouped_mlp():
    """As on a machine with NVTE_CUTEDSL_FUSED_GROUPED_MLP=1 and the newest cuDNN front-end."""
    from transformer_engine.pytorch.ops import fuser
    from transformer_engine.pytorch.ops.fused import grouped_mlp

    os.environ["NVTE_CUTEDSL_FUSED_GROUPED_MLP"] = "1"
    parameters = "tanh_clamp_scale", "situ_beta1", "situ_beta2", "deterministic"
    kernel = eval(f"lambda {', '.join(name + '=None' for name in parameters)}: None")
    names = ["glu", "glu_hadamard", "dglu", "srelu", "dsrelu", "quant", "wgrad"]
    sys.modules["cudnn"] = types.SimpleNamespace(**{f"grouped_gemm_{name}_wrapper_sm100": kernel for name in names})
    grouped_mlp._cudnn_frontend_version_at_least = lambda version: True
    fuser.register_forward_backward_fusion(grouped_mlp.fuse_glu_ops, prepend=True)
    fuser.register_forward_backward_fusion(grouped_mlp.fuse_unary_activation_ops, prepend=True)


def set_device(capability):
    from transformer_engine.pytorch.ops.fused import grouped_mlp

    grouped_mlp.get_device_compute_capability = lambda: capability
    for cls in (grouped_mlp._GroupedMLP_CuTeGEMMBase, grouped_mlp.GroupedMLP_CuTeGEMMUnary):
        cls.__dict__["is_supported"].__func__.cache_clear()


def make_quantizers_on_the_cpu():
    import torch
    from transformer_engine.pytorch.quantization import RecipeState

    torch.cuda.current_device = lambda: "cpu"
    create = RecipeState.create
    RecipeState.create = staticmethod(lambda recipe, **named: create(recipe, **{**named, "device": torch.device("cpu")}))


class Chain:
    """One op after the other, each with what it is in both programs."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.family = self.draw.choice(FAMILIES)
        isOdd = self.draw.random() < 0.25
        self.rows = self.draw.choice([8, 24, 50, 128, 320]) if isOdd else self.draw.choice([128, 256])
        self.width = self.draw.choice([24, 64, 96, 136]) if isOdd else self.draw.choice([64, 128])
        self.dtype = self.draw.choice(DTYPES if self.draw.random() < 0.3 else ["bf16"])
        self.mixesDTypes = self.draw.random() < 0.25
        self.freezes = self.draw.random() < 0.2
        self.trains = self.draw.random() < 0.8
        self.inputs = [self.input("x", self.dtype, [self.rows, self.width], self.draw.random() < 0.7)]
        self.ops, self.wires, self.te, self.saved = [], [], [], []
        self.main, self.outputs = "x", []
        self.recipe = self.draw_recipe()
        getattr(self, "draw_" + self.family)()
        if not self.ops:
            self.linear()

    @staticmethod
    def input(name, dtype, shape, needsGradient=True):
        return {"id": name, "dtype": dtype, "shape": shape, **({} if dtype == "i64" else {"requires_grad": needsGradient})}

    def draw_recipe(self):
        kinds = ["MXFP8BlockScaling", "NVFP4BlockScaling"] if self.family == "grouped" else list(RECIPES)
        name = self.draw.choice(list(RECIPES) if self.draw.random() < 0.3 else kinds)
        fields = {}
        for field, choices in RECIPES[name].items():
            if field != "backward_override":
                fields[field] = self.draw.choice(choices)
            elif self.draw.random() < 0.15:
                fields[field] = self.draw.choice(["high_precision", "dequantized"])
        return {"name": name, **fields}

    # ---- ops

    def own_dtype(self):
        return self.draw.choice(DTYPES) if self.mixesDTypes else self.dtype

    def frozen(self, name):
        return {name: False} if self.freezes and self.draw.random() < 0.6 else {}

    def add(self, kind, attributes=None, extras=None, te=None):
        """te: the arguments in TransformerEngine where they are not the attributes."""
        name = f"op{len(self.ops)}"
        attributes = attributes or {}
        self.ops.append({"id": name, "op": kind, "attributes": attributes})
        self.wires.append([self.main, f"{name}.x"])
        self.wires += [[source, f"{name}.{port}"] for port, source in (extras or {}).items()]
        self.te.append((kind, {k: v for k, v in attributes.items() if not k.endswith("requires_grad")} if te is None else te,
                        {k[: -len("_requires_grad")]: v for k, v in attributes.items() if k.endswith("requires_grad")}))
        self.main = f"{name}.y"
        return name

    def linear(self, width=None):
        attributes = {"in_features": self.width, "out_features": width or self.draw.choice([64, 128, self.width]),
                      "dtype": self.own_dtype(), **self.frozen("weight_requires_grad")}
        self.add("BasicLinear", attributes)
        self.width, self.dtype = attributes["out_features"], attributes["dtype"]

    def bias(self):
        dtype = self.own_dtype()
        self.add("Bias", {"size": self.width, "dtype": dtype, **self.frozen("bias_requires_grad")})
        self.dtype = self.dtype if dtype == self.dtype else "f32"

    def norm(self):
        kind = self.draw.choice(["RMSNorm", "RMSNorm", "LayerNorm"])
        dtype = self.own_dtype()
        self.add(kind, {"normalized_shape": [self.width], "dtype": dtype})
        self.dtype = dtype

    def scale(self):
        self.add("ConstantScale", {"scale": self.draw.choice([0.5, 2.0])})

    def save(self):
        name = self.add("MakeExtraOutput", {"in_place": self.draw.random() < 0.6})
        self.saved.append((f"{name}.extra", self.width, self.dtype))

    def sum(self):
        fitting = [entry for entry in self.saved if entry[1] == self.width]
        if fitting and self.draw.random() < 0.7:
            source, _, dtype = self.draw.choice(fitting)
        else:
            source, dtype = f"r{len(self.inputs)}", self.own_dtype()
            self.inputs.append(self.input(source, dtype, [self.rows, self.width], self.draw.random() < 0.7))
        isInPlace = self.draw.random() < 0.7
        self.add("AddExtraInput", {"in_place": isInPlace}, {"extra": source})
        self.te[-1] += ({"extra": dtype},)
        self.dtype = dtype if isInPlace or dtype == self.dtype else "f32"

    def activation(self):
        if self.width % 32 == 0 and self.draw.random() < 0.2:
            self.add(self.draw.choice(GATED))
            self.width //= 2
        else:
            self.add(self.draw.choice(PLAIN))

    def other(self):
        kind = self.draw.choice(["Identity", "Quantize", "Dropout", "L2Normalization"])
        self.add(kind, {"Quantize": {"forward": self.draw.random() < 0.7, "backward": self.draw.random() < 0.7},
                        "Dropout": {"p": 0.25}}.get(kind, {}))

    # ---- families

    def draw_mixed(self):
        steps = [self.linear, self.linear, self.linear, self.bias, self.bias, self.norm, self.scale, self.save, self.sum,
                 self.activation, self.other]
        for _ in range(self.draw.randint(1, 20)):
            self.draw.choice(steps)()

    def draw_residual(self):
        for _ in range(self.draw.randint(1, 3)):
            self.save()
            width = self.width
            for step in self.draw.sample([self.norm, self.linear, self.activation], self.draw.randint(1, 3)):
                step()
            self.linear(width)
            for step in self.draw.choice([[], [self.bias], [self.scale], [self.bias, self.scale]]):
                step()
            self.sum()

    def draw_bias(self):
        for _ in range(self.draw.randint(1, 4)):
            self.draw.choice([self.linear, self.linear, self.other, self.norm, self.scale, self.save])()
            self.bias()
            self.add(self.draw.choice(["GELU", "ReLU", "SiLU"]))

    def grouped(self, groups, width):
        name = self.draw.choice(["m", "m", "m", "m", "m2"]) if len(self.inputs) > 1 else "m"
        if all(entry["id"] != name for entry in self.inputs):
            self.inputs.append(self.input(name, "i64", [groups]))
        sizes = next(entry for entry in self.inputs if entry["id"] == name)
        hasBias = self.draw.random() < 0.5
        attributes = {"num_groups": sizes["shape"][0], "in_features": self.width, "out_features": width, "bias": hasBias,
                      "dtype": self.dtype, **self.frozen("weight_requires_grad")}
        if hasBias and "weight_requires_grad" in attributes:
            attributes["bias_requires_grad"] = False
        if self.draw.random() < 0.1:
            attributes["delay_wgrad_compute"] = True
        named = {k: v for k, v in attributes.items() if not k.endswith("requires_grad")}
        self.add("GroupedLinear", attributes, {"split_sizes": name}, named)
        self.width = width

    def draw_grouped(self):
        self.mixesDTypes = False
        for _ in range(self.draw.randint(1, 2)):
            for step in self.draw.choice([[], [], [self.norm], [self.save]]):
                step()
            hidden = self.draw.choice([64, 128, 128, 96])
            isGated = self.draw.random() < 0.6
            self.grouped(2, 2 * hidden if isGated else hidden)
            self.scaled_activation(isGated)
            if isGated:
                self.width = hidden
            self.grouped(2, self.draw.choice([64, 128]))

    def scaled_activation(self, isGated):
        kind = self.draw.choice(SCALED if isGated else ["ScaledSReLU", "ScaledTanhSReLU"])
        attributes = {"tanh_clamp_scale": 6.0} if kind == "ScaledTanhSReLU" else {}
        if isGated and self.draw.random() < 0.8:
            attributes["glu_interleave_size"] = 32
        if kind == "ScaledClampedQGeGLU" and self.draw.random() < 0.3:
            attributes["limit"] = 5.0
        source = f"p{len(self.inputs)}"
        self.inputs.append(self.input(source, self.dtype, [self.rows], self.draw.random() < 0.7))
        self.add(kind, attributes, {"scales": source})

    # ---- both programs

    def document(self):
        read = {source for source, _ in self.wires}
        outputs = [self.main] + [source for source, *_ in self.saved if source not in read or self.draw.random() < 0.1]
        return {"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "recipe": self.recipe,
                "pipeline": {"inputs": self.inputs, "ops": self.ops, "wires": self.wires,
                             "outputs": [{"id": f"out{i}", "from": value} for i, value in enumerate(outputs)]}}

    def sequential(self, te):
        import torch

        dtypes = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
        ops = []
        for kind, arguments, trained, *_ in self.te:
            arguments = {k: dtypes[v] if k == "dtype" else v for k, v in arguments.items()}
            device = {"device": "cpu"} if "dtype" in arguments else {}
            ops.append(getattr(te.ops, kind)(**arguments, **device))
            for parameter in ops[-1].named_parameters():
                if trained.get(parameter[0].rstrip("0123456789")) is False:
                    parameter[1].requires_grad_(False)
        return te.ops.Sequential(*ops)

    def te_recipe(self):
        from transformer_engine.common import recipe

        fields = {k: v for k, v in self.recipe.items() if k != "name"}
        if "fp8_format" in fields:
            fields["fp8_format"] = recipe.Format[fields["fp8_format"]]
        return None if self.recipe["name"] == "None" else getattr(recipe, self.recipe["name"])(**fields)

    def extra_tensors(self):
        """By op, those that come from outside: what a channel brings is made inside."""
        import torch

        needs = {entry["id"]: entry.get("requires_grad", False) for entry in self.inputs}
        extras = []
        for op in self.ops:
            sources = [source for source, target in self.wires if target.startswith(op["id"] + ".") and target[-2:] != ".x"]
            extras.append([torch.zeros(1, requires_grad=needs[s]) if s in needs else None for s in sources])
        return extras


@contextlib.contextmanager
def kindnesses(chain, ops, counts):
    from transformer_engine.pytorch.ops.fused import grouped_mlp

    counted = collections.Counter()
    for place, (kind, arguments, _, *extra) in enumerate(chain.te):
        if kind == "AddExtraInput" and arguments["in_place"] and dtype_of_gemm(chain, place) not in (None, extra[0]["extra"]):
            ops[place]._in_place = False
            counted["a sum in place of another dtype than the GEMM's"] += 1
    validate = grouped_mlp.validate_grouped_mlp_dims

    def validate_more(fc1, activation, fc2):
        validate(fc1, activation, fc2)
        places = [ops.index(op) for op in (fc1, fc2)]
        sizes = {next(s for s, t in chain.wires if t == chain.ops[place]["id"] + ".split_sizes") for place in places}
        if chain.rows % 128 or "backward_override" in chain.recipe or len(sizes) > 1:
            counted["a grouped MLP that would raise"] += 1
            raise ValueError
        if chain.trains and any(fc.wgrad_store.delay_wgrad_compute() and fc.weight0.requires_grad for fc in (fc1, fc2)):
            counted["a grouped MLP with a gradient that waits"] += 1
            raise ValueError

    grouped_mlp.validate_grouped_mlp_dims = validate_more
    yield
    grouped_mlp.validate_grouped_mlp_dims = validate
    counts.update(counted.keys())


def dtype_of_gemm(chain, place):
    """Of the GEMM that would add into the extra input."""
    while place > 0 and chain.te[place - 1][0] in ("Bias", "ConstantScale"):
        place -= 1
    kind, arguments, *_ = chain.te[place - 1] if place > 0 else (None, {})
    return arguments["dtype"] if kind == "BasicLinear" else None


def fused_by_te(te, chain, capability, counts):
    """[class, positions] of both lists. Backward: of what is run, which begins at the first op that needs a gradient."""
    import torch

    set_device(capability)
    (fuser,) = te.ops.Sequential._make_module_groups(chain.sequential(te)._modules.values())
    x = torch.zeros(1, requires_grad=chain.trains and chain.inputs[0]["requires_grad"])
    with kindnesses(chain, fuser._basic_ops, counts):
        fuser.maybe_fuse_ops(chain.trains, chain.te_recipe(), x, chain.extra_tensors())
    first = fuser.first_op_requiring_backward

    def listed(operations, first):
        return [[type(op).__name__, list(m)] for op, m in operations if len(m) > 1 and m[-1] >= first]

    return {"forward": listed(fuser._forward_ops, 0), "backward": listed(fuser._backward_ops, first)}


def fused_by_fuseline(report, chain):
    places = {op["id"]: place for place, op in enumerate(chain.ops)}
    return {direction: [[entry["rule"], [places[op] for op in entry["ops"]]] for entry in report[direction] if entry["rule"]]
            for direction in ("forward", "backward")}
