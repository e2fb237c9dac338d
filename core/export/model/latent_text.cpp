// Writes latent attention as linear ops, norms, splits and rotary embeddings around DotProductAttention.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/latent_text.h"

#include "core/export/model/form_parts.h"

#include <utility>
#include <vector>

namespace fuseline {

namespace {

using Sources = std::vector<SectionText::Source>;

/// The norms of the projections do not have the eps of the config.
constexpr double kLatentEps = 1e-6;

class LatentText {
 public:
  LatentText(const ModelForm& form, const LayerKind& kind, SectionText& text)
      : m_form(form), m_latent(*form.latent), m_kind(kind), m_text(text) {}

  std::string add(const std::string& x) {
    const std::string copied = m_text.add("save_latent", "MakeExtraOutput", {{"in_place", false}}, x);
    const std::string q = query(copied);
    const auto [k, v] = keyAndValue("save_latent.extra");
    Json attributes = {{"num_attention_heads", "heads"},
                       {"kv_channels", {"DN + DR", "DV"}},
                       {"qkv_format", "bshd"},
                       {"attn_mask_type", "causal"},
                       {"softmax_scale", m_form.softmaxScale.value_or(1.0)}};
    const std::string y =
        m_text.add("attention", "DotProductAttention", std::move(attributes), Sources{{"x", q}, {"k", k}, {"v", v}});
    return linear("proj", y, "heads * DV", "H", m_latent.hasBias);
  }

 private:
  std::string linear(const std::string& id, const std::string& x, const char* in, const char* out, bool hasBias) {
    return m_text.add(id, "Linear", {{"in_features", in}, {"out_features", out}, {"bias", hasBias}}, x);
  }

  std::string norm(const std::string& id, const std::string& x, const char* size) {
    return m_text.add(id, "RMSNorm", {{"normalized_shape", {size}}, {"eps", kLatentEps}}, x);
  }

  /// Two parts of the last axis: id.y and id.y1.
  void split(const std::string& id, const std::string& x, const char* first, const char* second) {
    m_text.add(id, "Split", {{"sizes", {first, second}}}, x);
  }

  std::string heads(const std::string& id, const std::string& x, const char* channels) {
    return m_text.add(id, "Reshape", {{"shape", {"B", "S", "heads", channels}}}, x);
  }

  std::string joined(const std::string& id, const std::string& x, const std::string& x1) {
    return m_text.add(id, "Concat", Json::object(), Sources{{"x", x}, {"x1", x1}});
  }

  std::string query(std::string x) {
    if (m_latent.queryRank > 0) x = norm("norm_q", linear("q_a", x, "H", "QR", m_latent.hasBias), "QR");
    const std::string wide = linear("q_b", x, m_latent.queryRank > 0 ? "QR" : "H", "heads * (DN + DR)", false);
    split("split_q", heads("q_heads", wide, "DN + DR"), "DN", "DR");
    return joined("q", "split_q.y", m_text.add("rope_q", "RotaryPositionEmbedding", m_kind.rope, "split_q.y1"));
  }

  std::pair<std::string, std::string> keyAndValue(const std::string& x) {
    split("split_kv", linear("kv_a", x, "H", "KR + DR", m_latent.hasBias), "KR", "DR");
    const std::string turned = m_text.add("rope_k", "RotaryPositionEmbedding", m_kind.rope, "split_kv.y1");
    const std::string shared = m_text.add("k_shared", "Expand", {{"count", "heads"}}, turned);
    const std::string wide = linear("kv_b", norm("norm_kv", "split_kv.y", "KR"), "KR", "heads * (DN + DV)", false);
    split("split_heads", heads("kv_heads", wide, "DN + DV"), "DN", "DV");
    return {joined("k", "split_heads.y", shared), "split_heads.y1"};
  }

  const ModelForm& m_form;
  const LatentForm& m_latent;
  const LayerKind& m_kind;
  SectionText& m_text;
};

}  // namespace

std::string addLatentAttention(const ModelForm& form, const LayerKind& kind, SectionText& text, const std::string& x) {
  return LatentText(form, kind, text).add(x);
}

void addLatentSymbols(const LatentForm& latent, Json& symbols) {
  symbols["DN"] = latent.plainChannels;
  symbols["DR"] = latent.rotatedChannels;
  symbols["DV"] = latent.valueChannels;
  symbols["KR"] = latent.keyRank;
  if (latent.queryRank > 0) symbols["QR"] = latent.queryRank;
}

void addLatentWeights(ModelForm& form) {
  const std::string attention = "model.layers.{}.self_attn.";
  const LatentForm& latent = *form.latent;
  if (latent.queryRank > 0) {
    addWeights(form, "layer{}.q_a", {attention + "q_a_proj"}, latent.hasBias);
    addWeights(form, "layer{}.norm_q", {attention + "q_a_layernorm"}, false);
  }
  addWeights(form, "layer{}.q_b", {attention + (latent.queryRank > 0 ? "q_b_proj" : "q_proj")}, false);
  addWeights(form, "layer{}.kv_a", {attention + "kv_a_proj_with_mqa"}, latent.hasBias);
  addWeights(form, "layer{}.norm_kv", {attention + "kv_a_layernorm"}, false);
  addWeights(form, "layer{}.kv_b", {attention + "kv_b_proj"}, false);
}

}  // namespace fuseline
