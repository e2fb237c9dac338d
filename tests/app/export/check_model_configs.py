#!/usr/bin/env python3
# Takes small random models of transformers through `fuseline import config.json --weights`, and compares the logits,
# the loss and the gradient of every parameter; the exported module of PyTorch must give the same.
# SPDX-License-Identifier: Apache-2.0
"""check_model_configs.py PROGRAM [TEST...]: PROGRAM is fuseline. Needs `pip install torch transformers safetensors`;
ends with 77 where these packages are missing."""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

for package in ("torch", "transformers", "safetensors"):
    if importlib.util.find_spec(package) is None:
        print(f"Skipped: this Python has no {package}.")
        sys.exit(77)

import safetensors.torch
import torch
import transformers

PROGRAM = ""
BATCH, TOKENS, VOCABULARY, IGNORED = 2, 11, 61, -100
# Relative to the largest value of the tensor. Both sides compute in float32, with sums in other orders.
TOLERANCE = 5e-5
# What all decoders have. Sizes differ, so that no two of them can be mistaken for each other.
DECODER = {"vocab_size": VOCABULARY, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3,
           "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 64,
           "rms_norm_eps": 1e-5}
LAYER_NORM = {key: value for key, value in DECODER.items() if key not in ("head_dim", "rms_norm_eps")}
ENCODER = {"hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4}
IMAGES = {**ENCODER, "image_size": 16, "patch_size": 8}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}
YARN = {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 16}
# A parameter without a gradient.
BUFFER = "route.expert_bias"
LATENT = {**{key: value for key, value in DECODER.items() if key != "head_dim"}, "num_key_value_heads": 6,
          "kv_lora_rank": 16, "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 10, "n_routed_experts": 8,
          "moe_intermediate_size": 24, "first_k_dense_replace": 1}
TYPES = ["sliding_attention", "full_attention", "sliding_attention"]
SOFT = {"query_pre_attn_scalar": 24, "sliding_window": 5, "layer_types": TYPES}


def fuseline(*arguments, check=True):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=check, capture_output=True, text=True)


def model_of(kind, config):
    """A model whose parameters are neither 0 nor 1, so that none can be left out unnoticed."""
    torch.manual_seed(1)
    config._attn_implementation = "eager"
    model = kind(config).float().eval()
    for parameter in model.parameters():
        if parameter.dim() == 1:
            torch.nn.init.uniform_(parameter, 0.2, 1.0)
        else:
            torch.nn.init.normal_(parameter, std=0.15)
    return model


def vit_without_pooler(config):
    return transformers.ViTModel(config, add_pooling_layer=False)


def deepseek_with_bias(config):
    """The bias that only chooses experts is a buffer, and 0 at first."""
    model = transformers.DeepseekV3ForCausalLM(config)
    for name, buffer in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            torch.nn.init.uniform_(buffer, -0.3, 0.3)
    return model


def save_gradients(model, folder):
    """In files like those of the weights, so that the import maps both in the same way."""
    for parameter in model.parameters():
        parameter.data = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.clone()
    model.save_pretrained(folder)


def shifted(ids):
    """The label of a token is the next one; the last has none."""
    return torch.cat([ids[:, 1:], torch.full((ids.shape[0], 1), IGNORED)], dim=1)


class Models(unittest.TestCase):
    def compare(self, kind, config, inputs, outputs, tokens=TOKENS):
        """inputs: of the pipeline. outputs: (loss to differentiate, tensors by their names in a dump) of a model."""
        sizes = ["--set", f"B={BATCH}", "--set", f"S={tokens}"]
        model = model_of(kind, config)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            model.save_pretrained(folder / "model")
            loss, expected = outputs(model)
            loss.backward()
            save_gradients(model, folder / "gradients")
            pipeline, weights = folder / "m.fuseline", folder / "w.safetensors"
            imported = fuseline("import", folder / "model/config.json", "-o", pipeline, "--weights", weights)
            self.assertNotIn("not known", imported.stderr)
            fuseline("import", folder / "model/config.json", "-o", folder / "again.fuseline", "--weights",
                     folder / "g.safetensors", "--weights-from", folder / "gradients")
            tensors = safetensors.torch.load_file(weights)
            stored = safetensors.torch.load_file(folder / "model/model.safetensors")
            safetensors.torch.save_file({**stored, **inputs}, folder / "all.safetensors")
            run = fuseline("run", pipeline, *sizes, "--iterations", 1, "--no-peaks", "--tensors",
                           folder / "all.safetensors", "--dump", folder / "dump.safetensors", "--save",
                           folder / "saved.safetensors", "--original-names", check=False)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.check_saved(safetensors.torch.load_file(folder / "saved.safetensors"), stored, tensors)
            self.check_module(pipeline, folder)
            if getattr(config, "output_router_logits", False) or "patches" in inputs and "labels" in inputs:
                self.check_onnx(pipeline, folder, inputs, loss.item(), sizes)
            dump = safetensors.torch.load_file(folder / "dump.safetensors")
            tensors = {name: tensor for name, tensor in tensors.items() if not name.endswith(BUFFER)}
            expected |= {f"grad.{name}": tensor
                         for name, tensor in safetensors.torch.load_file(folder / "g.safetensors").items()
                         if name in tensors}
            operations = len(json.loads(pipeline.read_text(encoding="utf-8"))["pipeline"]["ops"])
        self.assertEqual(len(tensors), sum(name.startswith("grad.") and name[5:] in tensors for name in expected))
        errors = {f"{variant}/{name}": self.error(dump, variant, name, tensor)
                  for variant in ("unfused", "fused") for name, tensor in expected.items()}
        worst = max(errors, key=errors.get)
        print(f"  {config.model_type}: {operations} ops of the pipeline, {len(errors)} tensors, largest error "
              f"{errors[worst]:.1e} in {worst}")
        self.assertLess(errors[worst], TOLERANCE, worst)

    def check_saved(self, saved, stored, tensors):
        """The tensors of the model's own file, all parameters of the pipeline among them. A model without a head has no
        prefix in its names; transformers loads both."""
        for name, tensor in saved.items():
            own = name if name in stored else name.partition(".")[2]
            self.assertTrue(torch.equal(tensor, stored[own]), name)
        self.assertEqual(sum(tensor.numel() for tensor in saved.values()),
                         sum(tensor.numel() for tensor in tensors.values()))

    def check_module(self, pipeline, folder):
        """The module of PyTorch, with the weights under the original names, against the run."""
        script = folder / "exported.py"
        fuseline("export", pipeline, "--to", "torch", "-o", script)
        checked = subprocess.run([sys.executable, "-B", script, "--device", "cpu", "--weights", folder / "model",
                                  "--check", folder / "dump.safetensors", "--tolerance", str(TOLERANCE)],
                                 check=False, capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.assertIn("grad.", checked.stdout)

    def check_onnx(self, pipeline, folder, inputs, loss, sizes):
        """The loss of the ONNX model in onnxruntime, with the auxiliary loss."""
        if importlib.util.find_spec("onnxruntime") is None:
            return
        import onnxruntime

        fuseline("export", pipeline, "--to", "onnx", *sizes, "--tensors", folder / "all.safetensors", "-o",
                 folder / "exported.onnx")
        session = onnxruntime.InferenceSession(folder / "exported.onnx", providers=["CPUExecutionProvider"])
        (found,) = session.run(["loss"], {name: tensor.numpy() for name, tensor in inputs.items()})
        print(f"  loss in onnxruntime {found.item():.7f}, of transformers {loss:.7f}")
        self.assertLess(abs(found.item() - loss) / abs(loss), 1e-6)

    def error(self, dump, variant, name, expected):
        found = dump[f"{variant}/{name}"].double().reshape(expected.shape)
        scale = max(expected.abs().max().item(), 1e-3)
        return (found - expected.double()).abs().max().item() / scale

    def language_model(self, kind, config, logits="head:y"):
        ids = torch.randint(0, VOCABULARY, (BATCH, TOKENS), generator=torch.Generator().manual_seed(2))
        labels = shifted(ids)

        def outputs(model):
            result = model(input_ids=ids)
            loss = torch.nn.functional.cross_entropy(result.logits.reshape(-1, VOCABULARY), labels.reshape(-1))
            if getattr(config, "output_router_logits", False):
                loss = loss + config.router_aux_loss_coef * result.aux_loss
            return loss, {"loss": loss.detach(), logits: result.logits.detach()}

        self.compare(kind, config, {"input_ids": ids, "labels": labels}, outputs)

    def test_llama(self):
        self.language_model(transformers.LlamaForCausalLM,
                            transformers.LlamaConfig(**DECODER, rope_parameters=LLAMA3, attention_bias=True,
                                                     mlp_bias=True))

    def test_llama_tied(self):
        self.language_model(transformers.LlamaForCausalLM,
                            transformers.LlamaConfig(**DECODER, rope_parameters=YARN, tie_word_embeddings=True))

    def test_mistral(self):
        self.language_model(transformers.MistralForCausalLM, transformers.MistralConfig(**DECODER, sliding_window=4))

    def test_qwen2(self):
        self.language_model(transformers.Qwen2ForCausalLM,
                            transformers.Qwen2Config(**{**DECODER, "head_dim": 8}, use_sliding_window=True,
                                                     sliding_window=4, max_window_layers=1))

    def test_qwen3(self):
        self.language_model(transformers.Qwen3ForCausalLM, transformers.Qwen3Config(**DECODER))

    def test_mixtral(self):
        self.language_model(transformers.MixtralForCausalLM,
                            transformers.MixtralConfig(**DECODER, num_local_experts=6, num_experts_per_tok=2,
                                                       output_router_logits=True, router_aux_loss_coef=0.3))

    def test_qwen2_moe(self):
        """With a dense layer, and without normalization."""
        self.language_model(transformers.Qwen2MoeForCausalLM,
                            transformers.Qwen2MoeConfig(**{**DECODER, "head_dim": 8}, num_experts=6,
                                                        num_experts_per_tok=3, moe_intermediate_size=24,
                                                        shared_expert_intermediate_size=40, mlp_only_layers=[1],
                                                        output_router_logits=True, router_aux_loss_coef=0.3))

    def test_qwen3_moe(self):
        self.language_model(transformers.Qwen3MoeForCausalLM,
                            transformers.Qwen3MoeConfig(**DECODER, num_experts=8, num_experts_per_tok=2,
                                                        moe_intermediate_size=24, norm_topk_prob=True))

    def test_deepseek_v3(self):
        """Latent attention, groups, a bias, a dense layer and a shared expert."""
        rope = {**YARN, "mscale": 0.7, "mscale_all_dim": 1.0}
        self.language_model(deepseek_with_bias,
                            transformers.DeepseekV3Config(**LATENT, q_lora_rank=20, n_group=4, topk_group=2,
                                                          num_experts_per_tok=4, n_shared_experts=1,
                                                          routed_scaling_factor=1.5, rope_parameters=rope))

    def test_deepseek_v2(self):
        """Queries of full rank, no groups, and two experts for all tokens."""
        self.language_model(transformers.DeepseekV2ForCausalLM,
                            transformers.DeepseekV2Config(**LATENT, q_lora_rank=None, num_experts_per_tok=3,
                                                          n_shared_experts=2, topk_method="greedy"))

    def test_gpt_oss(self):
        self.language_model(transformers.GptOssForCausalLM,
                            transformers.GptOssConfig(**DECODER, num_local_experts=6, num_experts_per_tok=2,
                                                      sliding_window=4, swiglu_limit=1.5))

    def test_gpt_oss_in_mxfp4(self):
        """Blocks and scales are decoded as transformers decodes them."""
        from transformers.integrations.mxfp4 import convert_moe_packed_tensors

        config = transformers.GptOssConfig(**{**DECODER, "hidden_size": 64, "intermediate_size": 32,
                                              "num_hidden_layers": 1}, num_local_experts=3, num_experts_per_tok=2)
        model = model_of(transformers.GptOssForCausalLM, config)
        generator = torch.Generator().manual_seed(3)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            config.save_pretrained(folder)
            plain = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
            packed = dict(plain)
            for each, shape in (("gate_up_proj", (3, 64, 2, 16)), ("down_proj", (3, 64, 1, 16))):
                tensor = f"model.layers.0.mlp.experts.{each}"
                del packed[tensor]
                blocks = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
                scales = torch.randint(118, 132, shape[:-1], generator=generator, dtype=torch.uint8)
                packed |= {f"{tensor}_blocks": blocks, f"{tensor}_scales": scales}
                plain[tensor] = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32).contiguous()
            written = []
            for part, tensors in (("packed", packed), ("plain", plain)):
                safetensors.torch.save_file(tensors, folder / "model.safetensors")
                fuseline("import", folder / "config.json", "-o", folder / f"{part}.fuseline", "--weights",
                         folder / f"{part}.safetensors")
                written.append((folder / f"{part}.safetensors").read_bytes())
        self.assertEqual(written[0], written[1])

    def test_experts_together(self):
        """The same weights, whether an expert has tensors of its own or all share one."""
        model = model_of(transformers.Qwen3MoeForCausalLM,
                         transformers.Qwen3MoeConfig(**DECODER, num_experts=4, num_experts_per_tok=2,
                                                     moe_intermediate_size=24))
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            model.save_pretrained(folder / "apart")
            model.config.save_pretrained(folder / "together")
            safetensors.torch.save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()},
                                        folder / "together/model.safetensors")
            written = []
            for part in ("apart", "together"):
                names = safetensors.torch.load_file(folder / part / "model.safetensors")
                self.assertEqual("model.layers.0.mlp.experts.gate_up_proj" in names, part == "together")
                fuseline("import", folder / part / "config.json", "-o", folder / f"{part}.fuseline", "--weights",
                         folder / f"{part}.safetensors")
                written.append((folder / f"{part}.safetensors").read_bytes())
        self.assertEqual(written[0], written[1])

    def test_gemma(self):
        self.language_model(transformers.GemmaForCausalLM, transformers.GemmaConfig(**DECODER))

    def test_stablelm(self):
        self.language_model(transformers.StableLmForCausalLM,
                            transformers.StableLmConfig(**LAYER_NORM, use_qkv_bias=True, tie_word_embeddings=False))

    def test_arcee(self):
        self.language_model(transformers.ArceeForCausalLM, transformers.ArceeConfig(**DECODER))

    def test_nemotron(self):
        self.language_model(transformers.NemotronForCausalLM, transformers.NemotronConfig(**LAYER_NORM))

    def test_starcoder2(self):
        self.language_model(transformers.Starcoder2ForCausalLM,
                            transformers.Starcoder2Config(**LAYER_NORM, sliding_window=4))

    def test_gemma2(self):
        self.language_model(transformers.Gemma2ForCausalLM,
                            transformers.Gemma2Config(**DECODER, **SOFT, attn_logit_softcapping=3.0,
                                                      final_logit_softcapping=2.0), "softcap:y")

    def test_gemma3(self):
        rope = {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}
        self.language_model(transformers.Gemma3ForCausalLM,
                            transformers.Gemma3TextConfig(**DECODER, **SOFT, rope_parameters=rope))

    def test_phi3(self):
        self.language_model(transformers.Phi3ForCausalLM,
                            transformers.Phi3Config(**{**DECODER, "head_dim": 8}, sliding_window=6, pad_token_id=0))

    def test_phi3_longrope(self):
        """Beyond the original length, so that long_factor counts."""
        rope = {"rope_type": "longrope", "rope_theta": 500.0, "short_factor": [1.0, 1.0, 1.2, 1.5],
                "long_factor": [1.0, 1.5, 2.5, 4.0]}
        self.language_model(transformers.Phi3ForCausalLM,
                            transformers.Phi3Config(**{**DECODER, "head_dim": 8}, rope_parameters=rope, pad_token_id=0,
                                                    original_max_position_embeddings=8))

    def test_gpt2(self):
        self.language_model(transformers.GPT2LMHeadModel,
                            transformers.GPT2Config(vocab_size=VOCABULARY, n_embd=48, n_head=4, n_layer=2,
                                                    n_positions=64, bos_token_id=0, eos_token_id=0))

    def test_gpt_neox(self):
        self.language_model(transformers.GPTNeoXForCausalLM,
                            transformers.GPTNeoXConfig(**{**ENCODER, "num_attention_heads": 3}, vocab_size=VOCABULARY,
                                                       max_position_embeddings=64))

    def test_bert(self):
        generator = torch.Generator().manual_seed(2)
        ids, labels = (torch.randint(0, VOCABULARY, (BATCH, TOKENS), generator=generator) for _ in range(2))
        types = torch.randint(0, 2, (BATCH, TOKENS), generator=generator)
        labels[:, ::3] = IGNORED

        def outputs(model):
            result = model(input_ids=ids, token_type_ids=types, labels=labels)
            return result.loss, {"loss": result.loss.detach(), "head_bias:y": result.logits.detach()}

        self.compare(transformers.BertForMaskedLM,
                     transformers.BertConfig(**ENCODER, vocab_size=VOCABULARY, max_position_embeddings=64),
                     {"input_ids": ids, "token_type_ids": types, "labels": labels}, outputs)

    def test_vit(self):
        self.image_model(transformers.ViTForImageClassification, transformers.ViTConfig(**IMAGES, num_labels=5), 1)

    def test_vit_without_classifier(self):
        self.image_model(vit_without_pooler, transformers.ViTConfig(**IMAGES), 1)

    def test_deit(self):
        """With a token for distillation."""
        self.image_model(transformers.DeiTForImageClassification, transformers.DeiTConfig(**IMAGES, num_labels=5), 2)

    def test_vit_with_sides(self):
        """Rows and columns differ, of images and of patches."""
        sides = {"image_size": [16, 24], "patch_size": [8, 4]}
        self.image_model(transformers.ViTForImageClassification,
                         transformers.ViTConfig(**{**IMAGES, **sides}, num_labels=5), 1)

    def test_siglip(self):
        self.image_model(transformers.SiglipVisionModel,
                         transformers.SiglipVisionConfig(**IMAGES, vision_use_head=False), 0)

    def test_siglip_with_pooling_head(self):
        self.image_model(transformers.SiglipVisionModel, transformers.SiglipVisionConfig(**IMAGES), 0)

    def image_model(self, kind, config, class_tokens):
        """With the loss of the classifier, or of the last norm where there is none."""
        generator = torch.Generator().manual_seed(2)
        rows, columns = [config.image_size] * 2 if isinstance(config.image_size, int) else config.image_size
        pixels = torch.randn(BATCH, 3, rows, columns, generator=generator)
        patches = torch.nn.functional.unfold(pixels, config.patch_size, stride=config.patch_size).transpose(1, 2)
        inputs = {"patches": patches.contiguous()}
        tokens = patches.shape[1] + class_tokens
        pools = getattr(config, "vision_use_head", False)
        y_name = "pooled" if pools else "y"
        weights = torch.randn(BATCH, *([] if pools else [tokens]), config.hidden_size, generator=generator)
        labels = torch.randint(0, config.num_labels, (BATCH,), generator=generator)
        if class_tokens:
            inputs["class_token_ids"] = torch.zeros(BATCH, class_tokens, dtype=torch.int64)
        if pools:
            inputs["probe_ids"] = torch.zeros(BATCH, 1, dtype=torch.int64)
        inputs |= {"labels": labels} if "Classification" in kind.__name__ else {f"grad.{y_name}": weights}

        def outputs(model):
            if "labels" in inputs:
                result = model(pixels, labels=labels)
                return result.loss, {"loss": result.loss.detach(), "head.bias:y": result.logits.detach()}
            y = model(pixels).pooler_output if pools else model(pixels).last_hidden_state
            return (y * weights).sum(), {y_name: y.detach()}

        self.compare(kind, config, inputs, outputs, tokens)

    def test_first_layers(self):
        with tempfile.TemporaryDirectory() as name:
            config = pathlib.Path(name) / "config.json"
            transformers.LlamaConfig(**DECODER).save_pretrained(name)
            fuseline("import", config, "-o", config.with_suffix(".fuseline"), "--layers", 1)
            ops = json.loads(config.with_suffix(".fuseline").read_text(encoding="utf-8"))["pipeline"]["ops"]
        self.assertEqual([op["id"] for op in ops if op["op"].startswith("block:")], ["layer0"])

    def test_shards(self):
        """The same weights, whether in one file or in several with an index."""
        model = model_of(transformers.LlamaForCausalLM, transformers.LlamaConfig(**DECODER))
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            written = []
            for part, size in (("one", "1GB"), ("many", "20KB")):
                model.save_pretrained(folder / part, max_shard_size=size)
                fuseline("import", folder / part / "config.json", "-o", folder / f"{part}.fuseline", "--weights",
                         folder / f"{part}.safetensors")
                written.append((folder / f"{part}.safetensors").read_bytes())
            self.assertGreater(len(list((folder / "many").glob("*.safetensors"))), 3)
        self.assertEqual(written[0], written[1])


def main():
    global PROGRAM
    PROGRAM = sys.argv.pop(1)
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])


if __name__ == "__main__":
    main()
