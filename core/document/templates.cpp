// The templates of `fuseline new`: example files, compiled in by CMakeLists.txt.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"

#include <algorithm>

namespace fuseline {

namespace {

struct ExampleTexts {
#define FUSELINE_TEMPLATE(name, text) const char* name = text;
#include "core/document/templates.inc"
#undef FUSELINE_TEMPLATE
};

}  // namespace

const std::vector<DocumentTemplate>& documentTemplates() {
  static const ExampleTexts texts;
  static const std::vector<DocumentTemplate> templates = {
      {"linear-bias", "One linear transformation with a bias.", texts.linear_bias},
      {"gpt-mlp", "The MLP of GPT: LayerNorm, Linear, GELU, Linear, and a residual.", texts.gpt_mlp},
      {"llama-mlp", "The MLP of Llama: RMSNorm, Linear, SwiGLU, Linear, and a residual.", texts.llama_mlp},
      {"layernorm-mlp", "LayerNorm, Linear, GELU, Linear, without a residual.", texts.layernorm_mlp},
      {"residual-norm", "Residual add with a second output, then RMSNorm and Linear.", texts.residual_norm},
      {"elementwise-chain", "Scales, a bias and GELU: memory-bound, so fusion helps most.", texts.elementwise_chain},
      {"grouped-mlp", "A mixture of experts: GroupedLinear, ScaledSwiGLU, GroupedLinear, by split sizes.",
       texts.grouped_mlp},
      {"gpt-oss-experts", "Experts as in gpt-oss, half as wide: biases, and the clamped gate.", texts.gpt_oss_experts},
      {"tensor-parallel-mlp", "A column-parallel and a row-parallel layer, with sequence parallelism.",
       texts.tensor_parallel_mlp},
      {"transformer-stack", "Two feed-forward layers with residuals: one block, used twice.", texts.transformer_stack},
      {"llama-layer", "A layer of Llama: grouped-query attention with rotary embeddings, and its MLP.",
       texts.llama_layer},
      {"tiny-llama", "A tiny Llama model: embedding, two layers, head and loss.", texts.tiny_llama},
      {"qwen3-moe-layer", "A layer of Qwen3-MoE, small: attention with QK-norm, a router, and experts.",
       texts.qwen3_moe_layer},
      {"gpt-layer", "A layer of GPT-2: causal attention and an MLP with GELU, pre-norm.", texts.gpt_layer},
      {"bert-layer", "A layer of BERT: attention under a padding mask, post-norm.", texts.bert_layer},
      {"vit-layer", "A layer of a vision transformer: attention without a mask over 197 patches.", texts.vit_layer},
  };
  return templates;
}

const DocumentTemplate* findTemplate(std::string_view name) {
  const auto& templates = documentTemplates();
  const auto found = std::ranges::find(templates, name, &DocumentTemplate::name);
  return found == templates.end() ? nullptr : &*found;
}

}  // namespace fuseline
