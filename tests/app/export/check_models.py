#!/usr/bin/env python3
# Exports models of transformers and timm by both exporters of PyTorch, imports them, runs them and compares numbers.
# SPDX-License-Identifier: Apache-2.0
"""check_models.py PROGRAM [--only NAME...] [--files MODEL.onnx...]: PROGRAM is fuseline. Prints a Markdown table: what
of each model imports, which ops there are, how many of them are External, and the largest error against onnxruntime,
relative to the largest value of the output: of the pipeline, and of the model that an export writes of it. Externals
are fed with what onnxruntime computes for them. Weights are drawn, as the structure is what counts. Ends with 1 where a
model does not open, does not run or is wrong, and with 77 where packages are missing: `pip install torch onnx
onnxscript onnxruntime transformers timm safetensors`."""

import argparse
import contextlib
import importlib.util
import json
import logging
import os
import pathlib
import sys
import tempfile
import time
import warnings

for package in ("torch", "onnx", "onnxscript", "onnxruntime", "transformers", "timm", "safetensors"):
    if importlib.util.find_spec(package) is None:
        print(f"Skipped: this Python has no {package}.")
        sys.exit(77)

import timm
import torch
import transformers

from onnxruntime_comparison import Refused, error_of, error_of_round_trip, fuseline, import_model, ops_of

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
    "Gemma3Text": dict(GROUPED, head_dim=8, sliding_window=4),
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
    "Bloom": dict(vocab_size=WORDS, hidden_size=HIDDEN, n_layer=LAYERS, n_head=HEADS),
    "Mpt": dict(vocab_size=WORDS, d_model=HIDDEN, n_layers=LAYERS, n_heads=HEADS, max_seq_len=64),
    "Mixtral": dict(GROUPED, num_local_experts=4),
    "Qwen2Moe": dict(GROUPED, num_experts=4, moe_intermediate_size=16, shared_expert_intermediate_size=INNER),
    "GptOss": dict(GROUPED, head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=4),
    "Olmo": GROUPED,
    "Glm": dict(GROUPED, head_dim=8, pad_token_id=0),
    "GPTJ": dict(vocab_size=WORDS, n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS, rotary_dim=4, n_positions=64),
    "DeepseekV3": dict(TEXT, num_key_value_heads=HEADS, q_lora_rank=24, kv_lora_rank=16, qk_nope_head_dim=8,
                       qk_rope_head_dim=4, v_head_dim=8, first_k_dense_replace=LAYERS),
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
    "vit_tiny_patch16_224": dict(img_size=32, patch_size=8, depth=LAYERS, embed_dim=HIDDEN, num_heads=HEADS),
    "swin_tiny_patch4_window7_224": dict(img_size=32, patch_size=2, embed_dim=16, depths=(2, 1), num_heads=(2, 4),
                                         window_size=4),
    "eva02_tiny_patch14_224": dict(img_size=32, patch_size=8, depth=LAYERS, embed_dim=HIDDEN, num_heads=HEADS),
}
MIXERS = {
    "mixer": dict(block_layer=timm.models.mlp_mixer.MixerBlock),
    "gmlp": dict(block_layer=timm.models.mlp_mixer.SpatialGatingBlock, mlp_layer=timm.layers.GatedMlp, mlp_ratio=4),
    "resmlp": dict(block_layer=timm.models.mlp_mixer.ResBlock, norm_layer=timm.models.mlp_mixer.Affine, mlp_ratio=4),
}


class FirstOutput(torch.nn.Module):
    """Exporters want tensors: of what a model gives back the first one."""

    def __init__(self, model, has_mask=False):
        super().__init__()
        self.model, self.has_mask = model, has_mask

    def forward(self, x):
        made = self.model(x, attention_mask=torch.ones_like(x)) if self.has_mask else self.model(x)
        return made if isinstance(made, torch.Tensor) else made[0]


def configured(name, options):
    config = getattr(transformers, name + "Config")(**options)
    config._attn_implementation = config._experts_implementation = "eager"
    return config


def ids():
    return torch.randint(1, WORDS, (BATCH, TOKENS))


def decoder(name, **options):
    config = configured(name, DECODERS[name] | options)
    config.use_cache = False
    # Without a mask transformers looks for packed sequences with an operator that TorchScript's exporter lacks.
    return FirstOutput(getattr(transformers, name + "Model")(config), has_mask=True), (ids(),)


def encoder(name):
    return FirstOutput(getattr(transformers, name + "Model")(configured(name, ENCODERS[name]))), (ids(),)


def vision(name):
    model = getattr(transformers, name + "Model")(configured(name, VISION[name]))
    return FirstOutput(model), (torch.randn(BATCH, 3, 32, 32),)


def of_timm(name):
    return timm.create_model(name, pretrained=False, num_classes=10, **TIMM[name]), (torch.randn(BATCH, 3, 32, 32),)


def mixer(name):
    model = timm.models.mlp_mixer.MlpMixer(img_size=32, patch_size=8, num_blocks=LAYERS, embed_dim=HIDDEN,
                                           num_classes=10, **MIXERS[name])
    return model, (torch.randn(BATCH, 3, 32, 32),)


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
    made |= {"timm " + name: lambda name=name: mixer(name) for name in MIXERS}
    return made | {"Llama of 32 layers": lambda: decoder("Llama", num_hidden_layers=32), "T5 encoder": t5, "Whisper encoder": whisper, "nn.TransformerEncoder": torch_encoder}


EXPORTERS = {"dynamo": dict(dynamo=True)} | {
    f"TorchScript {opset}": dict(dynamo=False, opset_version=opset) for opset in (11, 13, 14, 17, 18)
}
# Of these a few models are enough: --exporters.
MORE_OPSETS = {f"dynamo {opset}": dict(dynamo=True, opset_version=opset) for opset in range(18, 24)} | {
    f"TorchScript {opset}": dict(dynamo=False, opset_version=opset) for opset in (12, 15, 16, 19, 20)
}
# The same with batch and sequence of any extent, called so; a run then needs numbers.
EXTENTS = {"batch": BATCH, "tokens": TOKENS}
EXPORTERS["TorchScript 17, any extents"] = dict(dynamo=False, opset_version=17)
EXPORTERS["dynamo, any extents"] = dict(dynamo=True)


@contextlib.contextmanager
def silence():
    """PyTorch's C++ prints whole graphs past sys.stdout."""
    sys.stdout.flush()
    kept = os.dup(1)
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stderr(nowhere):
        os.dup2(nowhere.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)


def export(make, exporter, path):
    options, has_any_extents = (EXPORTERS | MORE_OPSETS)[exporter], exporter.endswith("any extents")
    torch.manual_seed(1)
    module, inputs = make()
    module = module.eval()
    if has_any_extents:
        axes = {axis: name for axis, name in enumerate(EXTENTS) if axis == 0 or inputs[0].dim() == 2}
        options = options | ({"dynamic_shapes": (axes,)} if options["dynamo"] else
                             {"input_names": ["x"], "dynamic_axes": {"x": axes}})
    with silence(), torch.no_grad():
        torch.onnx.export(module, inputs, path, **options)
    return [tensor.numpy() for tensor in inputs]


# ---- the table


def check(program, folder, inputs, extents):
    """The columns of a row from imports on; raises Refused. extents: of dynamic dimensions."""
    begin = time.monotonic()
    imported = import_model(program, folder, extents)
    seconds = time.monotonic() - begin
    counts = ops_of(json.loads(imported["text"]))
    fuseline(program, "validate", folder / "m.fuseline")
    fuseline(program, "run", folder / "m.fuseline", "--iterations", "2", "--no-peaks")
    error = error_of(program, folder, imported, inputs) if inputs is not None else None
    external = counts.pop("External", 0)
    ops = ", ".join(f"{count} {name}" for name, count in counts.most_common(6))
    again = error_of_round_trip(program, folder, imported, inputs) if inputs is not None else None
    for each in (error, again):
        if each is not None and each > TOLERANCE:
            raise Refused(f"error {error} as a pipeline, {again} as a model again")
    return [f"{seconds:.2f} s", ops, str(external), *("–" if each is None else f"{each:.0e}" for each in (error, again))]


def row_of(program, name, exporter, prepare):
    """The row, and whether all is well."""
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        try:
            inputs = prepare(folder)
        except Exception as problem:  # of PyTorch: an exporter that does not know the model
            return [name, exporter, "not exported", type(problem).__name__, "", "", ""], True
        try:
            extents = EXTENTS if exporter.endswith("any extents") else None
            return [name, exporter, *check(program, folder, inputs, extents)], True
        except Refused as refused:
            return [name, exporter, "FAILED", str(refused).replace("|", "/"), "", "", ""], False


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--only", nargs="*", default=[], help="names of models")
    parser.add_argument("--exporters", nargs="*", default=list(EXPORTERS),
                        choices=list(EXPORTERS | MORE_OPSETS))
    parser.add_argument("--files", nargs="*", default=[], type=pathlib.Path, help="models that are files already")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    transformers.logging.set_verbosity_error()
    print("| model | exporter | import | ops | External | error | round trip |\n"
          "| --- | --- | --- | --- | --- | --- | --- |", flush=True)
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
            report(name, exporter, lambda folder, make=make, exporter=exporter: export(make, exporter, folder / "m.onnx"))
    print(f"\n{failures} failed.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
