#!/usr/bin/env python3
# Runs whole models, exported for TransformerEngine, on its own Python, and compares loss and gradients with Fuseline's.
# SPDX-License-Identifier: Apache-2.0
"""check_te_models.py PROGRAM: PROGRAM is fuseline. Needs what check_te_fuser.py needs, and safetensors; kernels are plain
PyTorch, and te.DotProductAttention is the attention of `export --to torch`. Ends with 77 where the packages are missing."""

import importlib.util
import itertools
import json
import pathlib
import sys
import tempfile

import check_te_fuser
import check_te_gradients
import test_te_export

SHARED = {"vocab_size": 61, "max_position_embeddings": 64}
DECODER = SHARED | {"hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 6,
                    "num_key_value_heads": 2, "head_dim": 16}
ENCODER = SHARED | {"hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4}
CONFIGS = [
    {"model_type": "llama"} | DECODER,
    {"model_type": "qwen3"} | DECODER,
    {"model_type": "gemma2", "query_pre_attn_scalar": 24, "sliding_window": 5, "attn_logit_softcapping": 3.0,
     "final_logit_softcapping": 2.0} | DECODER,
    {"model_type": "gpt2", "vocab_size": 61, "n_embd": 48, "n_head": 4, "n_layer": 2, "n_positions": 64},
    {"model_type": "bert"} | ENCODER,
    {"model_type": "gpt_neox"} | ENCODER | {"num_attention_heads": 3},
    {"model_type": "mixtral", "num_local_experts": 6, "num_experts_per_tok": 2} | DECODER,
    {"model_type": "qwen2_moe", "num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 24,
     "shared_expert_intermediate_size": 40, "mlp_only_layers": [1]} | DECODER,
    {"model_type": "qwen3_moe", "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24} | DECODER,
    {"model_type": "gpt_oss", "num_local_experts": 6, "num_experts_per_tok": 2, "sliding_window": 4} | DECODER,
    {"model_type": "vit", "image_size": 16, "patch_size": 8} | ENCODER,
    {"model_type": "siglip_vision_model", "image_size": 16, "patch_size": 8} | ENCODER,
]
SIZES = {"B": 2, "S": 11}
ROTARY = ({}, {"interleaved": True, "rotary_percent": 0.5}, {"offset": 3},
          {"rope_type": "dynamic", "factor": 4.0, "original_max_position_embeddings": 8, "max_seq_len": 80},
          {"seq_len_interpolation_factor": 2.0, "pretrained_max_position_embeddings": 6, "max_seq_len": 80})


def attention_module():
    """The class of resources/torch/modules.py."""
    import torch

    names = {"torch": torch}
    exec((test_te_export.ROOT / "resources/torch/modules.py").read_text(encoding="utf-8"), names)
    return names["DotProductAttention"]


def import_te():
    """TransformerEngine with what its extension computes for models of float32 in its place."""
    te = check_te_gradients.import_te()
    import torch

    plain, turn = attention_module(), te.attention.rope.apply_rotary_pos_emb

    def attention(num_attention_heads, kv_channels, num_gqa_groups=None, qkv_format="sbhd", attn_mask_type="causal",
                  window_size=(-1, -1), softcap=0.0, softmax_scale=None, softmax_type="vanilla"):
        assert qkv_format == "bshd"
        window = (window_size[0], 0) if attn_mask_type == "causal" else window_size
        return plain(num_attention_heads, num_gqa_groups or num_attention_heads, softmax_scale or kv_channels**-0.5,
                     window=window, softcap=softcap, softmax_type=softmax_type)

    te.DotProductAttention = attention
    te.attention.rope.apply_rotary_pos_emb = lambda *tensors, fused, **named: turn(*tensors, fused=False, **named)
    torch.cuda.current_device = lambda: "cpu"


def rotary_document():
    """Rotary embeddings whose positions an input decides, in each layout. TransformerEngine's unfused form checks that its
    table of angles has all positions."""
    body = {"inputs": [], "ops": [], "wires": [], "outputs": []}
    for i, (layout, more) in enumerate(itertools.product(("sbhd", "bshd", "thd"), ROTARY)):
        tokens = {"sbhd": [5, 2], "bshd": [2, 5], "thd": [10]}[layout]
        inputs = {"x": ("f32", [*tokens, 2, 8]), "start_positions": ("i64", [2])}
        inputs |= {"cu_seqlens": ("i64", [3])} if layout == "thd" else {}
        for port, (dtype, shape) in inputs.items():
            body["inputs"].append({"id": f"{port}{i}", "dtype": dtype, "shape": shape})
            body["wires"].append([f"{port}{i}", f"op{i}.{port}"])
        attributes = {"dim": 8, "tensor_format": layout, "start_positions": True, **more}
        body["ops"].append({"id": f"op{i}", "op": "RotaryPositionEmbedding", "attributes": attributes})
        body["outputs"].append({"id": f"y{i}", "from": f"op{i}.y"})
    return {"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "pipeline": body}


def check(config, folder):
    """Differences of a model, in sentences."""
    source, pipeline = folder / "config.json", folder / "model.fuseline"
    source.write_text(json.dumps(config), encoding="utf-8")
    check_te_fuser.run("import", source, "--dtype", "f32", "-o", pipeline)
    yield from differences(pipeline, [f"--set={name}={size}" for name, size in SIZES.items()], folder)


def differences(pipeline, sizes, folder):
    from safetensors.torch import load_file

    dump = folder / "dump.safetensors"
    script = check_te_fuser.run("export", pipeline, *sizes, "--to", "te")
    check_te_fuser.run("run", pipeline, *sizes, "--device", "cpu", "--iterations", 1, "--warmup", 0, "--no-peaks", "--dump",
                       dump)
    tensors = {name.removeprefix("unfused/"): x for name, x in load_file(dump).items() if name.startswith("unfused/")}
    exported = check_te_fuser.loaded(script)
    missing = set(exported.PARAMETERS) - {name[5:] for name in check_te_gradients.results_of(exported, tensors)}
    yield from (f"{name} has no gradient" for name in sorted(missing))
    yield from check_te_gradients.differences(exported, tensors)


def main():
    if importlib.util.find_spec("safetensors") is None:
        print("Skipped: this Python has no safetensors.")
        return 77
    test_te_export.PROGRAM = sys.argv[1]
    import_te()
    problems = []
    for config in CONFIGS:
        with tempfile.TemporaryDirectory() as folder:
            problems += [f"{config['model_type']}: {problem}" for problem in check(config, pathlib.Path(folder))]
    with tempfile.TemporaryDirectory() as folder:
        pipeline = pathlib.Path(folder) / "rotary.fuseline"
        pipeline.write_text(json.dumps(rotary_document()), encoding="utf-8")
        problems += [f"rotary: {problem}" for problem in differences(pipeline, [], pathlib.Path(folder))]
    print("\n".join(problems))
    print(f"{len(CONFIGS)} models, {len(problems)} differences")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
