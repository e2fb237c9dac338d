#!/usr/bin/env python3
# Tests what `fuseline export --to te` writes: as Python, against stand-ins for PyTorch and TransformerEngine.
# SPDX-License-Identifier: Apache-2.0
"""test_te_export.py PROGRAM [TEST...]: PROGRAM is fuseline. Needs nothing else."""

import ast
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import types
import unittest

import fake_te

ROOT = pathlib.Path(__file__).resolve().parents[3]
# Expected evaluates chains of te.ops, which have no attention.
EXAMPLES = [path for path in sorted((ROOT / "resources" / "examples").glob("*.fuseline"))
            if "DotProductAttention" not in path.read_text(encoding="utf-8")]
NESTED = ROOT / "tests" / "golden" / "cli" / "nested.fuseline"
FORMULA = ROOT / "tests" / "golden" / "cli" / "formula.fuseline"
PROGRAM = ""


def export(path, *options):
    command = [PROGRAM, "export", str(path), "--to", "te", *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def written(document):
    """The script of a document."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "drawn.fuseline"
        path.write_text(json.dumps(document), encoding="utf-8")
        return export(path)


def module_of(script):
    module = types.ModuleType("exported")
    exec(compile(script, "exported.py", "exec"), module.__dict__)  # of our own program
    for name in [name for name in vars(module) if name.startswith("Formula_")]:
        operation = name.removeprefix("Formula_")
        setattr(module, name, lambda device, op=operation: lambda *inputs: f"{op}({', '.join(inputs)})")
    return module


def outputs_of(script):
    module = module_of(script)
    outputs = module.Pipeline()(*module.INPUTS)
    return dict(zip(module.OUTPUTS, outputs if isinstance(outputs, tuple) else (outputs,)))


def identifier(name):
    return re.sub(r"\W", "_", name)


class Expected:
    """What a document computes, by its wires."""

    def __init__(self, document):
        self.blocks = document.get("blocks", {})
        body = document["pipeline"]
        self.outputs = self.evaluate(body, "", {entry["id"]: entry["id"] for entry in body["inputs"]})

    def evaluate(self, body, prefix, values):
        waiting, into = list(body["ops"]), {to: source for source, to in body["wires"]}
        while waiting:
            ready = next(op for op in waiting if all(s in values for t, s in into.items() if t.split(".")[0] == op["id"]))
            waiting.remove(ready)
            inputs = {t.split(".")[1]: values[s] for t, s in into.items() if t.split(".")[0] == ready["id"]}
            for port, value in self.outputs_of(ready, prefix + ready["id"], inputs).items():
                values[f"{ready['id']}.{port}"] = value
        return {output["id"]: values[output["from"]] for output in body["outputs"]}

    def outputs_of(self, op, path, inputs):
        if op["op"].startswith("block:"):
            return self.evaluate(self.blocks[op["op"][6:]], path + ".", dict(inputs))
        name, x, *extras = identifier(path), *self.inOrder(op["op"], inputs)
        if op["op"] == "Linear":
            return {"y": self.linear(name, x, op["attributes"])}
        if op["op"] == "External":
            return {"y": f"{name}({', '.join(inputs.values())})"}
        made = {"y": f"{name}({', '.join([x, *extras])})"}
        return made | ({"extra": f"{name}.extra({x})"} if op["op"] == "MakeExtraOutput" else {})

    @staticmethod
    def linear(name, x, attributes):
        """As TransformerEngine's Linear consists of basic ops: each rank adds its bias before the ranks are summed up."""
        parts = ["bias"] * attributes.get("bias", True) + ["sum"] * (attributes.get("tensor_parallel_mode") == "row")
        y = f"{name}_linear({x})" if parts else f"{name}({x})"
        for part in parts:
            y = f"{name}_{part}({y})"
        return y

    @staticmethod
    def inOrder(kind, inputs):
        """x first, then the order of the ports."""
        order = ["x", "extra", "split_sizes", "scales"]
        return [inputs[port] for port in sorted(inputs, key=lambda p: order.index(p) if p in order else 9)]


# What random pipelines are made of, and how often beside each other.
KINDS = {"Linear": 2, "BasicLinear": 2, "Bias": 2, "RMSNorm": 1, "LayerNorm": 1, "L2Normalization": 1, "GELU": 1, "ReLU": 1,
         "SiLU": 1, "Dropout": 1, "ConstantScale": 2, "Identity": 1, "Reshape": 1, "Quantize": 1, "AllReduce": 1,
         "MakeExtraOutput": 2, "AddExtraInput": 3, "Formula": 1, "External": 2}


def attributes_of(kind, draw):
    """Of an op that reads and makes [32, 16]."""
    features = {"in_features": 16, "out_features": 16}
    return {"Linear": {**features, "bias": draw.random() < 0.5}, "BasicLinear": features, "Bias": {"size": 16},
            "RMSNorm": {"normalized_shape": [16]}, "LayerNorm": {"normalized_shape": [16]}, "Dropout": {"p": 0.25},
            "ConstantScale": {"scale": 2.0}, "Reshape": {"shape": [32, 16]},
            "AddExtraInput": {"in_place": draw.random() < 0.5},
            "MakeExtraOutput": {"in_place": draw.random() < 0.5}}.get(kind, {})


def add_halves(draw, name, main, ops, wires):
    """Views: the parts of a Split, one of them in a sum or in an extra output, and joined again. Returns the result."""
    def add(part, kind, attributes, *inputs):
        ops.append({"id": f"{name}{part}", "op": kind, "attributes": attributes})
        ports = {"AddExtraInput": ("x", "extra"), "Concat": ("x", "x1")}.get(kind, ("x",))
        wires.extend([value, f"{name}{part}.{port}"] for value, port in zip(inputs, ports))

    add("split", "Split", {"sizes": [8, 8]}, main)
    in_place = {"in_place": draw.random() < 0.7}
    if draw.random() < 0.5:
        add("act", "GELU", {}, f"{name}split.y")
        add("add", "AddExtraInput", in_place, f"{name}act.y", f"{name}split.y1")
        add("cat", "Concat", {}, f"{name}add.y", draw.choice([f"{name}split.y", f"{name}act.y"]))
    else:
        add("save", "MakeExtraOutput", in_place, f"{name}split.y1")
        add("act", "GELU", {}, f"{name}save.y")
        add("cat", "Concat", {}, f"{name}act.y", draw.choice([f"{name}save.extra", f"{name}split.y"]))
    return f"{name}cat.y"


def drawn(seed, kinds=KINDS):
    """A random pipeline: chains, branches with and without MakeExtraOutput, sums of anything made before."""
    draw = random.Random(seed)
    values, ops, wires = ["x", "r"], [], []
    last = draw.randint(1, 14) - 1
    for i in range(last + 1):
        kind = draw.choices(list(kinds), kinds.values())[0]
        kind = "GELU" if kind == "External" and i == last else kind
        main = values[-1] if draw.random() < 0.8 else draw.choice(values)
        if kind == "Halves":
            values.append(add_halves(draw, f"op{i}", main, ops, wires))
            continue
        ops.append({"id": f"op{i}", "op": kind, "attributes": attributes_of(kind, draw)})
        wires.append([main, f"op{i}.x"])
        if kind == "External":
            ops[-1]["attributes"] = {"inputs": "b", "module": f'te.Elsewhere("op{i}")'}
            wires.append([draw.choice(values), f"op{i}.b"])
        if kind == "AddExtraInput":
            wires.append([draw.choice(values), f"op{i}.extra"])
        values += [f"op{i}.extra"] * (kind == "MakeExtraOutput") + [f"op{i}.y"]
    dtype = draw.choice(["bf16", "bf16", "f16", "f32"])
    inputs = [{"id": name, "dtype": dtype, "shape": [32, 16], "requires_grad": draw.random() < 0.8} for name in ("x", "r")]
    external = {f"{op['id']}.y" for op in ops if op["op"] == "External"}
    run = [value for value in values[2:] if value not in external]  # the others cannot be outputs
    outputs = [{"id": f"y{i}", "from": value} for i, value in enumerate({values[-1], draw.choice(run)})]
    return {"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0},
            "pipeline": {"inputs": inputs, "ops": ops, "wires": wires, "outputs": outputs}}


class Scripts(unittest.TestCase):
    def test_examples_compute_what_their_wires_say(self):
        for path in [*EXAMPLES, NESTED, FORMULA]:
            for options in ([], ["--pass", "forward"]):
                with self.subTest(path=path.name, options=options):
                    expected = Expected(json.loads(path.read_text(encoding="utf-8"))).outputs
                    self.assertEqual(outputs_of(export(path, *options)), expected)

    def test_random_pipelines_compute_what_their_wires_say(self):
        for seed in range(60):
            document = drawn(seed)
            with self.subTest(seed=seed):
                self.assertEqual(outputs_of(written(document)), Expected(document).outputs)

    def test_a_placeholder_stands_for_a_module_that_nobody_wrote(self):
        document = drawn(0)
        body = document["pipeline"]
        body["ops"] = [{"id": "a", "op": "GELU", "attributes": {}}, {"id": "m", "op": "External", "attributes": {}},
                       {"id": "b", "op": "GELU", "attributes": {}}]
        body["wires"] = [["x", "a.x"], ["a.y", "m.x"], ["m.y", "b.x"]]
        body["outputs"] = [{"id": "y", "from": "b.y"}]
        script = written(document)
        ast.parse(script)
        self.assertIn('self.m = (Placeholder("m", "")).to(device)', script)
        self.assertIn("raise NotImplementedError", script)
        self.assertIn("* m: its Placeholder raises NotImplementedError", script)

    def test_names_that_python_or_pytorch_have_are_changed(self):
        document = json.loads(FORMULA.read_text(encoding="utf-8"))
        body = json.dumps(document).replace('"mask"', '"torch"').replace("act.mask", "act.torch")
        body = body.replace("* mask", "* torch").replace("alpha", "lambda").replace("beta", "train")
        document = json.loads(body)
        document["pipeline"]["inputs"][0]["id"] = "x\\N"
        document["pipeline"]["wires"][0][0] = "x\\N"
        script = written(document)
        ast.parse(script)
        self.assertIn("self.lambda_ = torch.nn.Parameter", script)
        self.assertIn("self.train_2 = torch.nn.Parameter", script)
        self.assertIn('"act.train": "act.train_2"', script)
        self.assertIn("def forward(self, x, torch_2)", script)

    def test_a_share_of_a_row_parallel_layer_follows_from_the_ranks(self):
        """As te.ops.Linear gives local_in_features to its BasicLinear."""
        path = ROOT / "resources" / "examples" / "tensor_parallel_mlp.fuseline"
        for ranks in (1, 2):
            module = module_of(export(path, "--ranks", str(ranks)))
            sys.modules["torch"].distributed = types.SimpleNamespace(is_initialized=lambda: True, get_world_size=lambda: 2)
            layers = module.Pipeline().layers.operations
            self.assertEqual(layers["fc1_linear"].arguments["in_features"], 1024)
            self.assertEqual(layers["fc2_linear"].arguments["in_features"], 2048)
            rows, features = (0, 1), (1, 1)
            self.assertEqual(module.SHARDS, {"x": rows, "y": rows, "fc1.weight": rows, "fc1.bias": rows, "fc2.weight": features})
            self.assertEqual(module.PARTIAL_GRADIENTS, ["norm.weight", "norm.bias"])
            self.assertEqual(module.USERBUFFERS[0], [512, 1024])
            sys.modules["torch"].distributed = types.SimpleNamespace(is_initialized=lambda: False)

    def test_ops_may_be_called_like_members_of_modules(self):
        for name in ("_modules", "register_forward_hook", "named_parameters", "forward", "__init__"):
            document = drawn(0)
            document["pipeline"].update(ops=[{"id": name, "op": "GELU", "attributes": {}}], wires=[["x", f"{name}.x"]],
                                        outputs=[{"id": "y", "from": f"{name}.y"}])
            self.assertNotIn(f'"{name}": te.ops.GELU', written(document))

    def test_long_names_are_exported(self):
        for length in (30, 35, 55, 80):
            document = json.loads(FORMULA.read_text(encoding="utf-8").replace("act", "a" * length))
            ast.parse(written(document))

    def test_every_line_of_a_recipe_parses(self):
        for recipe in ("delayed", "float8current", "float8block", "mxfp8", "nvfp4"):
            ast.parse(export(EXAMPLES[0], "--recipe", recipe))

    def test_a_custom_recipe_is_a_factory_that_tells_ops_apart_by_name(self):
        path = ROOT / "resources" / "examples" / "gpt_mlp.fuseline"
        script = export(path, "--recipe", "custom", "--recipe-set", "all=mxfp8", "--recipe-set", "fc2.all=float8current")
        ast.parse(script)
        self.assertIn('if name in ["fc2.linear"]:', script)
        self.assertIn("RECIPE = recipe.CustomRecipe(qfactory=quantizer_factory)", script)
        self.assertIn('self.layers.fc2.basic_ops[0].name = "fc2.linear"', script)

    def test_a_bias_whose_kernel_would_raise_is_refused(self):
        """tex.bgrad_quantize takes quantizers of one scaling, and te.ops.Bias asks it for whatever the linear op has."""
        path = ROOT / "resources" / "examples" / "gpt_mlp.fuseline"
        options = ["--recipe", "custom", "--recipe-set", "qfactory=mxfp8_fwd_high_precision_bwd_factory"]
        with self.assertRaises(subprocess.CalledProcessError) as refused:
            export(path, *options)
        self.assertIn("te.ops.Bias raises unless the rowwise and columnwise gradient that fc", refused.exception.stderr)
        ast.parse(export(path, *options, "--pass", "forward"))
        ast.parse(export(path, *options, "--recipe-set", "backward_override=dequantized"))


class Signatures(unittest.TestCase):
    def test_defaults_are_those_of_te_ops(self):
        """What is not written because it is a default must be TransformerEngine's default."""
        listed = subprocess.run([PROGRAM, "ops", "--json"], check=True, capture_output=True, text=True).stdout
        compared = 0
        for op in json.loads(listed)["ops"]:
            signature = fake_te.SIGNATURES.get(op["name"], {})
            for attribute in op["attributes"]:
                default = signature.get(attribute["name"])
                if default is None or attribute["default"] in ("", "none"):
                    continue
                compared += 1
                with self.subTest(op=op["name"], attribute=attribute["name"]):
                    ours = {"true": True, "false": False}.get(attribute["default"], attribute["default"])
                    theirs = ast.literal_eval(default)
                    self.assertEqual(type(theirs)(ours) if not isinstance(ours, bool) else ours, theirs)
        self.assertGreater(compared, 40)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    fake_te.install()
    unittest.main()
