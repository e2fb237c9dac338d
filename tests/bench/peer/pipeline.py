# What fuseline says of a pipeline, as a list of the ops that the PyTorch peer is made of. Needs no PyTorch.
# SPDX-License-Identifier: Apache-2.0
"""Ops, wires, shapes and dtypes come from `fuseline infer --json`, defaults of attributes from `fuseline ops --json`.
infer does not say attributes: those are read from the file, and expressions among them are evaluated by fuseline, as the
extents of a pipeline made for that."""

import dataclasses
import json
import math
import pathlib

from . import formula
from .program import PeerError

# Op -> what computes it, for people.
FORMS = {
    "BasicLinear": "linear(x, weight)",
    "GroupedLinear": "linear(rows, weight, bias) for each group of rows, concatenated",
    "Bias": "x + bias",
    "GELU": "gelu(x), in the form that approximate says",
    "QGELU": "x * sigmoid(1.702 * x)",
    "ReLU": "relu(x)",
    "SReLU": "relu(x) ** 2",
    "SiLU": "silu(x)",
    "GLU": "sigmoid(a) * b",
    "GEGLU": "gelu(a) * b, tanh form",
    "QGEGLU": "a * sigmoid(1.702 * a) * b",
    "ReGLU": "relu(a) * b",
    "SReGLU": "relu(a) ** 2 * b",
    "SwiGLU": "silu(a) * b",
    "ClampedSwiGLU": "c * sigmoid(alpha * c) * (clamp(b) + offset), c = clamp(a)",
    "SiTUGLU": "beta1 * tanh(a / beta1) * sigmoid(a) * beta2 * tanh(b / beta2)",
    "ScaledSReLU": "scales * relu(x) ** 2",
    "ScaledTanhSReLU": "scales * (s * tanh(relu(x) / s)) ** 2",
    "ScaledSwiGLU": "scales * silu(a) * b",
    "ScaledSiTUGLU": "scales * SiTUGLU(a, b)",
    "ScaledClampedQGeGLU": "scales * ClampedSwiGLU(a, b)",
    "Formula": "the expression, of tensors",
    "RMSNorm": "rms_norm(x, weight)",
    "LayerNorm": "layer_norm(x, weight, bias)",
    "L2Normalization": "x * rsqrt(sum(x ** 2) + eps)",
    "Dropout": "dropout(x)",
    "ConstantScale": "x * scale",
    "AddExtraInput": "x + extra",
    "MakeExtraOutput": "x, x",
    "Identity": "x",
    "Reshape": "reshape(x)",
    "DotProductAttention": "scaled_dot_product_attention(x, k, v), or written out where it lacks an argument",
    "RotaryPositionEmbedding": "x * cos + partner(x) * sin",
    "Split": "split(x)",
    "Concat": "cat(x, x1)",
    "Expand": "x.unsqueeze(-2).expand(...)",
    "Embedding": "embedding(x, weight)",
    "TiedLinear": "linear(x, weight)",
    "CrossEntropy": "cross_entropy(x, target)",
    "TopKRouter": "topk(scores(x)), normalized",
    "MoEPermute": "x[token of each row], rows sorted by expert",
    "MoEUnpermute": "sum(x[row_id_map] * probs)",
    "MoEAuxLoss": "coeff * E / (k * T ** 2) * sum(n * sum(scores(x))) + z_loss_coeff * mean(logsumexp(x) ** 2)",
    "Quantize": "x",
    "AllGather": "x, there is one process",
    "ReduceScatter": "x, there is one process",
    "AllReduce": "x, there is one process",
}
LINEAR_WITH_BIAS = "Linear"
PRODUCTS = ("BasicLinear", "GroupedLinear", LINEAR_WITH_BIAS)
# Attributes that plain PyTorch has nothing for, where they are on.
REFUSED_ATTRIBUTES = {
    "accumulate_into_main_grad": "buffers of main gradients",
    "cache_quantized_input": "activations that keep their input in E4M3",
    "delay_wgrad_compute": "weight gradients as a step behind backward",
    "activation_recompute_in_mlp": "activations made again within a grouped MLP",
}
# Lists of numbers that the edges do not say.
LISTS = ("kv_channels", "sizes", "window_size")
# Parameters and edges say them.
SIZES = ("in_features", "out_features", "num_groups", "size", "normalized_shape", "shape", "num_embeddings",
         "embedding_dim")


@dataclasses.dataclass(frozen=True)
class Spec:
    dtype: str
    shape: tuple


@dataclasses.dataclass(frozen=True)
class PeerOp:
    """An op of the peer: names of tensors, and attributes with all defaults."""

    id: str
    kind: str
    inputs: tuple
    outputs: tuple
    parameters: tuple
    attributes: dict

    def __str__(self):
        form = "linear(x, weight, bias)" if self.kind == LINEAR_WITH_BIAS else FORMS[self.kind]
        if self.kind == "Formula":
            form = self.attributes["y"]
        names = ", ".join((*self.inputs, *self.parameters))
        return f"{', '.join(self.outputs)} = {self.kind}({names}): {form}"


@dataclasses.dataclass(frozen=True)
class Pipeline:
    ops: tuple
    inputs: tuple       # names of edges
    outputs: tuple      # (name, edge)
    edges: dict         # name -> Spec
    parameters: dict    # name -> Spec
    gradients: frozenset  # names of inputs, parameters and outputs that have a gradient
    is_training: bool

    def has_products(self):
        return any(op.kind in PRODUCTS for op in self.ops)

    def has_sums(self):
        """Products, gradients of parameters, norms: sums whose order is free."""
        return any(op.kind in (*PRODUCTS, "DotProductAttention") or op.parameters or "Norm" in op.kind or op.kind.startswith("Scaled")
                   for op in self.ops)

    def summed_rows(self, parameter):
        """How many rows the gradient of a vector is the sum of; 0 for what is no vector."""
        if len(self.parameters.get(parameter, Spec("", ())).shape) != 1:
            return 0
        reader = next(op for op in self.ops if parameter in op.parameters)
        return math.prod(self.edges[reader.inputs[0]].shape[:-1])

    def drops(self):
        """The ops that drop elements at random."""
        return [op for op in self.ops if op.kind == "Dropout" and self.is_training and op.attributes["p"] > 0]


def load_document(path):
    """The file as JSON; fuseline has the better words for what is wrong with it, so it is asked first."""
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def with_dtype(document, dtype):
    """The document with all its floating-point tensors in another dtype."""
    changed = json.loads(json.dumps(document))
    for entry in changed["pipeline"]["inputs"]:
        if entry.get("dtype", dtype) != "i64":
            entry["dtype"] = dtype
    bodies = [changed["pipeline"], *changed.get("blocks", {}).values()]
    for op in (op for body in bodies for op in body["ops"]):
        op.get("attributes", {}).pop("dtype", None)
    return changed


def describe(program, path, scratch):
    """The pipeline of a file, as peer ops. scratch: a folder to write in."""
    inferred = program.infer(path)
    attributes = AttributeTable(program, path, scratch)
    ops = [_peer_op(op, attributes) for op in inferred["ops"]]
    edges = {edge["name"]: Spec(edge["dtype"], tuple(edge["shape"])) for edge in inferred["edges"]}
    outputs = tuple((output["name"], output["from"]) for output in inferred["outputs"])
    return Pipeline(
        ops=tuple(_merged(ops, {edge for _, edge in outputs})),
        inputs=tuple(edge["name"] for edge in inferred["edges"] if edge["producer"] is None),
        outputs=outputs,
        edges=edges,
        parameters={p["name"]: Spec(p["dtype"], tuple(p["shape"])) for op in inferred["ops"] for p in op["parameters"]},
        gradients=_gradients(inferred, ops),
        is_training=inferred["pass"] == "train",
    )


def _peer_op(op, attributes):
    if op["op"] not in FORMS:
        raise PeerError(f"{op['id']}: the op {op['op']} has no counterpart in the PyTorch peer.")
    values = attributes.of(op["id"], op["op"])
    for name, words in REFUSED_ATTRIBUTES.items():
        if values.get(name):
            raise PeerError(f"{op['id']}: {op['op']} has {name} on; the PyTorch peer has no {words}.")
    names = tuple(parameter["name"] for parameter in op["parameters"])
    made = PeerOp(op["id"], op["op"], tuple(op["inputs"]), tuple(op["outputs"]), names, values)
    if made.kind == "Formula":
        _check_formula(made)
    return made


def _check_formula(op):
    try:
        formula.parse(op.attributes["y"])
        for names in ("inputs", "parameters", "constants"):
            formula.declared(op.attributes[names])
    except formula.FormulaError as error:
        raise PeerError(f"{op.id}: Formula has no counterpart in the PyTorch peer: {error}.") from error


def _merged(ops, output_edges):
    """A product and the bias behind it are one call in PyTorch."""
    readers = {}
    for op in ops:
        for name in op.inputs:
            readers.setdefault(name, []).append(op)
    merged, done = [], set()
    for op in ops:
        following = readers.get(op.outputs[0], [])
        if op.id in done:
            continue
        if op.kind == "BasicLinear" and op.outputs[0] not in output_edges and [o.kind for o in following] == ["Bias"]:
            bias = following[0]
            done.add(bias.id)
            op = dataclasses.replace(op, kind=LINEAR_WITH_BIAS, outputs=bias.outputs,
                                     parameters=op.parameters + bias.parameters)
        merged.append(op)
    return merged


def _gradients(inferred, ops):
    if inferred["pass"] != "train":
        return frozenset()
    edges = {edge["name"]: edge for edge in inferred["edges"]}
    inputs = {name for name, edge in edges.items() if edge["producer"] is None and edge["needsGradient"]}
    outputs = {output["name"] for output in inferred["outputs"] if edges[output["from"]]["needsGradient"]}
    parameters = {name for op in ops for name in op.parameters if not _is_frozen(op, name)}
    return frozenset(inputs | outputs | parameters)


def _is_frozen(op, parameter):
    name = parameter.rsplit(".", 1)[-1]
    if op.kind == "Formula":
        return not op.attributes["requires_grad"]
    kind = "weight" if name.startswith("weight") else "expert_bias" if name == "expert_bias" else "bias"
    return not op.attributes.get(f"{kind}_requires_grad", True)


class AttributeTable:
    """Attributes of basic ops by their ids: from the file, where it has them, else the library's defaults."""

    def __init__(self, program, path, scratch):
        self._program = program
        self._document = load_document(path)
        self._path = path
        self._scratch = pathlib.Path(scratch)
        self._catalog = program.catalog()
        self._numbers = {}

    def of(self, id, op):
        written = self._written(id)
        values = {}
        for entry in self._catalog[op]["attributes"]:
            value = written.get(entry["name"])
            values[entry["name"]] = _default(entry) if value is None else self._resolved(entry, value)
        return values

    def _written(self, id):
        """Ids lead through blocks to an op of the file; what is left behind it names a part of a composite op."""
        ops = self._document["pipeline"]["ops"]
        for part in id.split("."):
            op = next((op for op in ops if op["id"] == part), None)
            if op is None:
                break
            if not op["op"].startswith("block:"):
                return op.get("attributes", {})
            ops = self._document["blocks"][op["op"].removeprefix("block:")]["ops"]
        raise PeerError(f"{id}: {self._path} has no op of this id; the peer cannot know its attributes.")

    def _resolved(self, entry, value):
        is_expression = isinstance(value, str) and entry["type"] not in ("text", "boolean")
        if entry["name"] in LISTS:
            return [self._resolved({"name": "", "type": "integer"}, part)
                    for part in (value if isinstance(value, list) else [value])]
        if entry["name"] in SIZES or not is_expression:
            return value
        if value not in self._numbers:
            self._numbers[value] = self._evaluated(value)
        return self._numbers[value]

    def _evaluated(self, expression):
        """fuseline computes it, as the only extent of a tensor."""
        probe = {
            "format": "fuseline-pipeline",
            "formatVersion": self._document["formatVersion"],
            "symbols": self._document.get("symbols", {}),
            "pipeline": {
                "inputs": [{"id": "x", "dtype": "f32", "shape": [expression]}],
                "ops": [{"id": "op", "op": "Identity", "attributes": {}}],
                "wires": [["x", "op.x"]],
                "outputs": [{"id": "y", "from": "op.y"}],
            },
        }
        path = self._scratch / "expression.fuseline"
        path.write_text(json.dumps(probe), encoding="utf-8")
        return self._program.infer(path)["edges"][0]["shape"][0]


def _default(entry):
    text, kind = entry["default"], entry["type"]
    if kind == "text":
        return text
    if kind == "boolean":
        return text == "true" if text else None
    return float(text) if text else None
