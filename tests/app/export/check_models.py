#!/usr/bin/env python3
# Exports models of transformers and timm by both exporters of PyTorch, imports them, runs them and compares numbers.
# SPDX-License-Identifier: Apache-2.0
"""check_models.py PROGRAM [--only NAME...] [--files MODEL.onnx...]: PROGRAM is fuseline. Prints a Markdown table: what
of each model imports, which ops there are, how many of them are External, and the largest error against onnxruntime,
relative to the largest value of the output. Externals are fed with what onnxruntime computes for them. Weights are
drawn, as the structure is what counts. Ends with 1 where a model does not open, does not run or is wrong, and with 77
where packages are missing: `pip install torch onnx onnxscript onnxruntime transformers timm safetensors`."""

import argparse
import collections
import contextlib
import importlib.util
import io
import json
import logging
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

for package in ("torch", "onnx", "onnxscript", "onnxruntime", "transformers", "timm", "safetensors"):
    if importlib.util.find_spec(package) is None:
        print(f"Skipped: this Python has no {package}.")
        sys.exit(77)

import numpy
import onnx
import onnxruntime
import safetensors.numpy
import timm
import torch
import transformers

BATCH, TOKENS, WORDS, HIDDEN, HEADS, INNER, LAYERS = 2, 6, 97, 32, 4, 64, 2
# The error function of GELU is approximated where the pipeline has te.ops' form of it, at most 0.0005 away.
TOLERANCE = 2e-3
TEXT = dict(vocab_size=WORDS, hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
            intermediate_size=INNER, max_position_embeddings=64)
GROUPED = dict(TEXT, num_key_value_heads=2)
# Configurations of transformers by the name of their class, and what is not in it.
DECODERS = {
    "Llama": GROUPED,
    "Mistral": GROUPED,
    "Qwen2": GROUPED,
    "Qwen3": dict(GROUPED, head_dim=8),
    "Gemma": dict(GROUPED, head_dim=8),
    "Gemma2": dict(GROUPED, head_dim=8),
    "Phi3": dict(GROUPED, pad_token_id=0),
    "Phi": TEXT,
    "GPTNeoX": TEXT,
    "GPT2": dict(vocab_size=WORDS, n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS, n_positions=64),
    "OPT": dict(vocab_size=WORDS, hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                ffn_dim=INNER, max_position_embeddings=64, word_embed_proj_dim=HIDDEN),
    "Falcon": dict(vocab_size=WORDS, hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS),
    "Olmo2": GROUPED,
    "Granite": GROUPED,
    "Cohere": GROUPED,
    "Nemotron": GROUPED,
    "Starcoder2": GROUPED,
    "StableLm": GROUPED,
}
ENCODERS = {
    "Bert": TEXT,
    "Roberta": TEXT,
    "Electra": dict(TEXT, embedding_size=HIDDEN),
    "DistilBert": dict(vocab_size=WORDS, dim=HIDDEN, n_layers=LAYERS, n_heads=HEADS, hidden_dim=INNER,
                       max_position_embeddings=64),
    "DebertaV2": dict(TEXT, relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8),
    "ModernBert": dict(TEXT, pad_token_id=0, bos_token_id=0, eos_token_id=0, cls_token_id=0, sep_token_id=0),
    "Albert": dict(TEXT, embedding_size=16),
    "MPNet": TEXT,
}
VISION = {
    "ViT": dict(hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=INNER,
                image_size=32, patch_size=8),
    "Dinov2": dict(hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS, image_size=32,
                   patch_size=8),
    "SiglipVision": dict(hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                         intermediate_size=INNER, image_size=32, patch_size=8),
    "CLIPVision": dict(hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                       intermediate_size=INNER, image_size=32, patch_size=8),
    "Swin": dict(image_size=32, patch_size=2, embed_dim=16, depths=[2, 1], num_heads=[2, 4], window_size=4),
}
TIMM = {
    "convnext_atto": dict(depths=(1, 1, 1, 1), dims=(16, 32, 32, 32)),
    "mixer_s16_224": dict(img_size=32, patch_size=8, num_blocks=LAYERS, embed_dim=HIDDEN),
    "gmlp_ti16_224": dict(img_size=32, patch_size=8, num_blocks=LAYERS, embed_dim=HIDDEN),
    "resmlp_12_224": dict(img_size=32, patch_size=8, num_blocks=LAYERS, embed_dim=HIDDEN),
    "vit_tiny_patch16_224": dict(img_size=32, patch_size=8, depth=LAYERS, embed_dim=HIDDEN, num_heads=HEADS),
    "swin_tiny_patch4_window7_224": dict(img_size=32, patch_size=2, embed_dim=16, depths=(2, 1), num_heads=(2, 4),
                                         window_size=4),
    "eva02_tiny_patch14_224": dict(img_size=32, patch_size=8, depth=LAYERS, embed_dim=HIDDEN, num_heads=HEADS),
}


class FirstOutput(torch.nn.Module):
    """Exporters want tensors: of what a model gives back the first one."""

    def __init__(self, model, **options):
        super().__init__()
        self.model, self.options = model, options

    def forward(self, *inputs):
        made = self.model(*inputs, **self.options)
        return made if isinstance(made, torch.Tensor) else made[0]


def configured(name, options):
    config = getattr(transformers, name + "Config")(**options)
    config._attn_implementation = "eager"
    return config


def ids():
    return torch.randint(1, WORDS, (BATCH, TOKENS))


def decoder(name):
    config = configured(name, DECODERS[name])
    config.use_cache = False
    return FirstOutput(getattr(transformers, name + "Model")(config)), (ids(),)


def encoder(name):
    return FirstOutput(getattr(transformers, name + "Model")(configured(name, ENCODERS[name]))), (ids(),)


def vision(name):
    model = getattr(transformers, name + "Model")(configured(name, VISION[name]))
    return FirstOutput(model), (torch.randn(BATCH, 3, 32, 32),)


def of_timm(name):
    return timm.create_model(name, pretrained=False, num_classes=10, **TIMM[name]), (torch.randn(BATCH, 3, 32, 32),)


def t5():
    config = configured("T5", dict(vocab_size=WORDS, d_model=HIDDEN, d_kv=8, d_ff=INNER, num_layers=LAYERS,
                                   num_heads=HEADS, use_cache=False))
    return FirstOutput(transformers.T5EncoderModel(config)), (ids(),)


def whisper():
    config = configured("Whisper", dict(vocab_size=WORDS, d_model=HIDDEN, encoder_layers=LAYERS,
                                        encoder_attention_heads=HEADS, encoder_ffn_dim=INNER, num_mel_bins=16,
                                        max_source_positions=12))
    encoder_part = transformers.models.whisper.modeling_whisper.WhisperEncoder(config)
    return FirstOutput(encoder_part), (torch.randn(BATCH, 16, 24),)


def torch_encoder():
    layer = torch.nn.TransformerEncoderLayer(HIDDEN, HEADS, INNER, batch_first=True, norm_first=True)
    return torch.nn.TransformerEncoder(layer, LAYERS), (torch.randn(BATCH, TOKENS, HIDDEN),)


def models():
    made = {name: lambda name=name: decoder(name) for name in DECODERS}
    made |= {name: lambda name=name: encoder(name) for name in ENCODERS}
    made |= {name: lambda name=name: vision(name) for name in VISION}
    made |= {"timm " + name: lambda name=name: of_timm(name) for name in TIMM}
    return made | {"T5 encoder": t5, "Whisper encoder": whisper, "nn.TransformerEncoder": torch_encoder}


EXPORTERS = {
    "dynamo": dict(dynamo=True),
    "TorchScript 11": dict(dynamo=False, opset_version=11),
    "TorchScript 14": dict(dynamo=False, opset_version=14),
    "TorchScript 17": dict(dynamo=False, opset_version=17),
}


def export(make, options, path):
    torch.manual_seed(1)
    module, inputs = make()
    module = module.eval()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), torch.no_grad():
        torch.onnx.export(module, inputs, path, **options)
    return [tensor.numpy() for tensor in inputs]


# ---- onnxruntime


def with_outputs(path, names):
    """The model with these of its tensors as outputs, as far as it has them."""
    model = onnx.load(path)
    known = {name for node in model.graph.node for name in node.output}
    present = {output.name for output in model.graph.output}
    for name in names:
        if name in known - present:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
            present.add(name)
    return model, [name for name in names if name in present]


def computed(path, names, inputs):
    """Tensors of the model by name, as onnxruntime computes them without changing the graph."""
    model, outputs = with_outputs(path, names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    feeds = dict(zip((each.name for each in session.get_inputs()), inputs))
    return dict(zip(outputs, session.run(outputs, feeds))) | feeds


# ---- fuseline


class Refused(Exception):
    pass


def fuseline(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise Refused(f"{arguments[0]}: {(done.stderr.strip().splitlines() or ['no message'])[-1][:160]}")
    return done.stdout


def ops_of(document):
    """How often each op is in it, with those in instances of blocks."""
    counts = collections.Counter()
    blocks = document.get("blocks", {})

    def add(ops):
        for op in ops:
            name = op["op"]
            add(blocks[name[6:]]["ops"]) if name.startswith("block:") else counts.update([name])

    add(document["pipeline"]["ops"])
    return counts


def found(dumped, name):
    return dumped.get(name, next((value for key, value in dumped.items() if key.startswith(name + ".")), None))


def error_of(program, folder, imported, inputs):
    """Of the worst output, relative to its largest value. None: onnxruntime gives nothing to compare with."""
    outputs = {output["id"] for output in json.loads(imported["text"])["pipeline"]["outputs"]}
    tensors = computed(folder / "m.onnx", list(imported["tensors"].values()), inputs)
    given = safetensors.numpy.load_file(folder / "w.safetensors") if (folder / "w.safetensors").exists() else {}
    for name, tensor in imported["tensors"].items():
        if name not in outputs and tensor in tensors:
            given[name] = numpy.ascontiguousarray(tensors[tensor])
    safetensors.numpy.save_file(given, folder / "all.safetensors")
    fuseline(program, "run", folder / "m.fuseline", "--pass", "forward", "--device", "reference", "--iterations", "1",
             "--variants", "fused", "--no-roofs", "--tensors", folder / "all.safetensors", "--dump",
             folder / "dump.safetensors")
    dumped = safetensors.numpy.load_file(folder / "dump.safetensors")
    errors = []
    for output in outputs:
        expected, value = tensors.get(imported["tensors"][output]), found(dumped, output)
        if expected is not None and value is not None and expected.shape == value.shape:
            errors.append(float(numpy.abs(value - expected).max() / max(numpy.abs(expected).max(), 1e-30)))
    return max(errors) if errors else None


def check(program, folder, inputs):
    """The columns of a row from imports on; raises Refused."""
    begin = time.monotonic()
    weights = ["--weights", folder / "w.safetensors"]
    try:
        text = fuseline(program, "import", folder / "m.onnx", "-o", folder / "m.fuseline", "--json", *weights)
    except Refused as refused:
        if "no weights" not in str(refused):
            raise
        text = fuseline(program, "import", folder / "m.onnx", "-o", folder / "m.fuseline", "--json", "--force")
    seconds = time.monotonic() - begin
    imported = json.loads(text)
    counts = ops_of(json.loads(imported["text"]))
    fuseline(program, "validate", folder / "m.fuseline")
    fuseline(program, "run", folder / "m.fuseline", "--iterations", "2", "--no-roofs")
    error = error_of(program, folder, imported, inputs) if inputs is not None else None
    external = counts.pop("External", 0)
    ops = ", ".join(f"{count} {name}" for name, count in counts.most_common(6))
    if error is not None and error > TOLERANCE:
        raise Refused(f"error {error:.1e}")
    return [f"{seconds:.2f} s", ops, str(external), "–" if error is None else f"{error:.0e}"]


def row_of(program, name, exporter, prepare):
    """The row, and whether all is well."""
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        try:
            inputs = prepare(folder)
        except Exception as problem:  # of PyTorch: an exporter that does not know the model
            return [name, exporter, "not exported", type(problem).__name__, "", ""], True
        try:
            return [name, exporter, *check(program, folder, inputs)], True
        except Refused as refused:
            return [name, exporter, "FAILED", str(refused).replace("|", "/"), "", ""], False


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--only", nargs="*", default=[], help="names of models")
    parser.add_argument("--exporters", nargs="*", default=list(EXPORTERS), choices=list(EXPORTERS))
    parser.add_argument("--files", nargs="*", default=[], type=pathlib.Path, help="models that are files already")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    transformers.logging.set_verbosity_error()
    print("| model | exporter | import | ops | External | error |\n| --- | --- | --- | --- | --- | --- |", flush=True)
    failures = 0

    def report(name, exporter, prepare):
        nonlocal failures
        row, is_well = row_of(arguments.program, name, exporter, prepare)
        failures += not is_well
        print("| " + " | ".join(row) + " |", flush=True)

    for file in arguments.files:
        report(file.name, "file", lambda folder, file=file: (folder / "m.onnx").write_bytes(file.read_bytes()) and None)
    for name, make in models().items():
        if arguments.files and not arguments.only or arguments.only and name not in arguments.only:
            continue
        for exporter in arguments.exporters:
            options = EXPORTERS[exporter]
            report(name, exporter, lambda folder, make=make, options=options: export(make, options, folder / "m.onnx"))
    print(f"\n{failures} failed.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
