// Writes the blocks of the layers, then what stands around them.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/model_pipeline.h"

#include "core/export/model/experts_text.h"
#include "core/export/model/image_text.h"
#include "core/export/model/latent_text.h"
#include "core/export/model/section_text.h"
#include "core/tensor/tensor.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

using Source = SectionText::Source;

Json noAttributes() { return Json::object(); }

Json tokenShape() { return Json::array({"B", "S"}); }

/// One block: a layer of this kind.
class LayerText {
 public:
  LayerText(const ModelForm& form, const LayerKind& kind) : m_form(form), m_kind(kind) {}

  Json json() && {
    m_text.addInput({{"id", "x"}});
    const std::string y = m_form.order == LayerOrder::Parallel ? parallel() : serial();
    m_text.addMainOutput("y", y);
    return m_text.json();
  }

 private:
  /// Attention, then MLP, each with its residual.
  std::string serial() {
    const std::string x = part("save", "x", "norm", "add", [this](const std::string& in) { return attention(in); });
    return part("save2", x, "norm2", "add2", [this](const std::string& in) { return mlp(in); });
  }

  template <class Function>
  std::string part(const std::string& save, const std::string& x, const std::string& normId, const std::string& add,
                   const Function& function) {
    std::string branch = m_text.add(save, "MakeExtraOutput", {{"in_place", false}}, x);
    if (m_form.order != LayerOrder::PostNorm) branch = norm(normId, branch, "H");
    branch = function(branch);
    if (m_form.order == LayerOrder::Sandwich) branch = norm("post_" + normId, branch, "H");
    const std::string sum = added(add, branch, save + ".extra");
    return m_form.order == LayerOrder::PostNorm ? norm(normId, sum, "H") : sum;
  }

  /// Both branches read x.
  std::string parallel() {
    const std::string first = m_text.add("save", "MakeExtraOutput", {{"in_place", false}}, "x");
    const std::string second = m_text.add("save2", "MakeExtraOutput", {{"in_place", false}}, "save.extra");
    const std::string ofAttention = attention(norm("norm", first, "H"));
    const std::string both = added("add", mlp(norm("norm2", second, "H")), ofAttention);
    return added("add2", both, "save2.extra");
  }

  std::string added(const std::string& id, const std::string& x, const std::string& extra) {
    return m_text.add(id, "AddExtraInput", {{"in_place", true}}, {{"x", x}, {"extra", extra}});
  }

  std::string norm(const std::string& id, const std::string& x, const char* size) {
    Json attributes = {{"normalized_shape", {size}}, {"eps", m_form.norm.eps}};
    if (m_form.norm.isZeroCentered) attributes["zero_centered_gamma"] = true;
    return m_text.add(id, m_form.norm.op, std::move(attributes), x);
  }

  std::string linear(const std::string& id, const std::string& x, const char* in, const char* out, bool hasBias) {
    return m_text.add(id, "Linear", {{"in_features", in}, {"out_features", out}, {"bias", hasBias}}, x);
  }

  std::string attention(const std::string& x) {
    if (m_form.latent) return addLatentAttention(m_form, m_kind, m_text, x);
    const std::string packed = linear("qkv", x, "H", "(heads + 2 * groups) * D", m_form.hasQkvBias);
    m_text.add("split", "Split", {{"sizes", {"heads * D", "groups * D", "groups * D"}}}, packed);
    const std::string q = prepared("q", "split.y", "heads");
    const std::string k = prepared("k", "split.y1", "groups");
    const std::string y =
        m_text.add("attention", "DotProductAttention", attentionAttributes(), {{"x", q}, {"k", k}, {"v", "split.y2"}});
    return linear("proj", y, "heads * D", "H", m_form.hasProjectionBias);
  }

  /// Queries or keys, normalized by head and turned.
  std::string prepared(const std::string& name, std::string tensor, const char* heads) {
    if (m_form.hasQkNorm) {
      tensor = m_text.add(name + "_heads", "Reshape", {{"shape", {"B", "S", heads, "D"}}}, tensor);
      tensor = norm("norm_" + name, tensor, "D");
    }
    return m_kind.rope.is_null() ? tensor : m_text.add("rope_" + name, "RotaryPositionEmbedding", m_kind.rope, tensor);
  }

  Json attentionAttributes() const {
    Json attributes = {{"num_attention_heads", "heads"},
                       {"kv_channels", {"D"}},
                       {"num_gqa_groups", "groups"},
                       {"qkv_format", "bshd"},
                       {"attn_mask_type", m_form.isCausal ? "causal" : "no_mask"}};
    if (m_kind.window) attributes["window_size"] = Json::array({*m_kind.window - 1, 0});
    if (m_form.softmaxScale) attributes["softmax_scale"] = *m_form.softmaxScale;
    if (m_form.hasSinks) attributes["softmax_type"] = "learnable";
    if (m_form.attentionSoftcap > 0.0) attributes["softcap"] = m_form.attentionSoftcap;
    return attributes;
  }

  std::string mlp(const std::string& x) {
    if (m_form.hasExperts(m_kind)) return addExperts(m_form, m_text, x);
    const std::string wide = linear("fc1", x, "H", m_form.isGated() ? "2 * F" : "F", m_form.hasMlpBias);
    const std::string active = m_text.add("act", m_form.activation, m_form.activationAttributes, wide);
    return linear("fc2", active, "F", "H", m_form.hasMlpBias);
  }

  const ModelForm& m_form;
  const LayerKind& m_kind;
  SectionText m_text;
};

/// The pipeline: embedding, instances of layers, head and loss.
class ModelText {
 public:
  explicit ModelText(const ModelForm& form) : m_form(form) {}

  Json json() && {
    std::string x = embedded();
    for (std::size_t i = 0; i < m_form.layers.size(); ++i)
      x = m_text.add(fmt::format("layer{}", i), "block:" + m_form.kinds[m_form.layers[i]].block, {{"layer", i}}, x);
    if (m_form.hasFinalNorm) x = norm("norm", x);
    if (m_form.image && m_form.image->hasPoolingHead)
      m_text.addOutput("pooled", addPoolingHead(m_form, m_text, x));
    else if (m_form.head == ModelHead::None)
      m_text.addOutput("y", x);
    else
      m_text.addOutput("loss", loss(logits(x)));
    return m_text.json();
  }

 private:
  std::string dtype() const { return std::string(dtypeName(m_form.dtype)); }
  bool isTied() const { return m_form.head == ModelHead::Tied || m_form.head == ModelHead::MaskedLanguage; }

  std::string embedded() {
    if (m_form.image) return addPatches(m_form, m_text);
    addCounts("input_ids", tokenShape());
    std::string x = lookedUp("embed", "V", "input_ids", isTied() ? Json{{"shares_weight", true}} : noAttributes());
    if (m_form.embeddingScale != 1.0) x = m_text.add("embed_scale", "ConstantScale", {{"scale", roundedScale()}}, x);
    if (m_form.positions > 0)
      x = added("add_positions", x, lookedUp("positions", "positions", "input_ids", {{"positions", true}}));
    if (m_form.tokenTypes > 0) {
      addCounts("token_type_ids", tokenShape());
      x = added("add_token_types", x, lookedUp("token_types", "token_types", "token_type_ids", noAttributes()));
    }
    return m_form.hasEmbeddingNorm ? norm("embed_norm", x) : x;
  }

  void addCounts(const char* id, const Json& shape) {
    m_text.addInput({{"id", id}, {"dtype", "i64"}, {"shape", shape}});
  }

  /// The models round the factor to the dtype before they multiply.
  double roundedScale() const {
    const double scale[] = {m_form.embeddingScale};
    return Tensor::fromDoubles({.dtype = m_form.dtype, .shape = {1}}, scale).toDoubles().front();
  }

  std::string lookedUp(const std::string& id, const char* rows, const std::string& ids, Json more) {
    Json attributes = {{"num_embeddings", rows}, {"embedding_dim", "H"}, {"dtype", dtype()}};
    attributes.update(more);
    return m_text.add(id, "Embedding", std::move(attributes), ids);
  }

  std::string added(const std::string& id, const std::string& x, const std::string& extra) {
    return m_text.add(id, "AddExtraInput", noAttributes(), {{"x", x}, {"extra", extra}});
  }

  std::string norm(const std::string& id, const std::string& x) {
    Json attributes = {{"normalized_shape", {"H"}}, {"eps", m_form.norm.eps}};
    if (m_form.norm.isZeroCentered) attributes["zero_centered_gamma"] = true;
    return m_text.add(id, m_form.norm.op, std::move(attributes), x);
  }

  std::string logits(std::string x) {
    if (m_form.head == ModelHead::Classifier) return addClassifier(m_text, x);
    if (m_form.head == ModelHead::MaskedLanguage) {
      x = m_text.add("transform", "Linear", {{"in_features", "H"}, {"out_features", "H"}}, x);
      x = m_text.add("transform_act", m_form.activation, m_form.activationAttributes, x);
      x = norm("head_norm", x);
    }
    if (isTied())
      x = m_text.add("head", "TiedLinear", noAttributes(), {{"x", x}, {"weight", "embed.weight"}});
    else
      x = m_text.add("head", "Linear", {{"in_features", "H"}, {"out_features", "V"}, {"bias", false}}, x);
    if (m_form.head == ModelHead::MaskedLanguage) x = m_text.add("head_bias", "Bias", {{"size", "V"}}, x);
    if (m_form.logitSoftcap <= 0.0) return x;
    return m_text.add("softcap", "Formula",
                      {{"y", "cap * tanh(x / cap)"}, {"constants", fmt::format("cap = {}", m_form.logitSoftcap)}}, x);
  }

  std::string loss(const std::string& logits) {
    addCounts("labels", m_form.head == ModelHead::Classifier ? Json::array({"B"}) : tokenShape());
    const std::string loss =
        m_text.add("loss_fn", "CrossEntropy", noAttributes(), {{"x", logits}, {"target", "labels"}});
    return hasAuxLoss() ? added("add_aux_loss", loss, auxLoss()) : loss;
  }

  bool hasAuxLoss() const {
    const auto hasExperts = [&](std::size_t kind) { return m_form.hasExperts(m_form.kinds[kind]); };
    return m_form.experts && m_form.experts->auxLossCoeff > 0.0 && std::ranges::any_of(m_form.layers, hasExperts);
  }

  /// One op for all layers with experts.
  std::string auxLoss() {
    std::vector<Source> logits, counts;
    for (std::size_t i = 0; i < m_form.layers.size(); ++i) {
      if (!m_form.hasExperts(m_form.kinds[m_form.layers[i]])) continue;
      const std::string number = logits.empty() ? "" : std::to_string(logits.size());
      logits.emplace_back("x" + number, fmt::format("layer{}.router_logits", i));
      counts.emplace_back("tokens_per_expert" + number, fmt::format("layer{}.tokens_per_expert", i));
    }
    Json attributes = {{"num_layers", logits.size()}, {"topk", "topk"}, {"coeff", m_form.experts->auxLossCoeff}};
    std::ranges::copy(counts, std::back_inserter(logits));
    return m_text.add("aux_loss", "MoEAuxLoss", std::move(attributes), logits);
  }

  const ModelForm& m_form;
  SectionText m_text;
};

Json symbolsOf(const ModelForm& form) {
  Json symbols = {
      {"B", 1}, {"S", form.tokens}, {"layers", form.layers.size()}, {"H", form.hidden}, {"heads", form.heads}};
  if (form.latent)
    addLatentSymbols(*form.latent, symbols);
  else
    symbols.update({{"groups", form.groups}, {"D", form.headDim}});
  const auto isDense = [&](std::size_t kind) { return !form.hasExperts(form.kinds[kind]); };
  if (std::ranges::any_of(form.layers, isDense)) symbols["F"] = form.intermediate;
  if (!std::ranges::all_of(form.layers, isDense)) addExpertSymbols(*form.experts, symbols);
  if (form.vocabulary > 0) symbols["V"] = form.vocabulary;
  if (form.image) addImageSymbols(*form.image, symbols);
  if (form.positions > 0) symbols["positions"] = form.positions;
  if (form.tokenTypes > 0) symbols["token_types"] = form.tokenTypes;
  return symbols;
}

}  // namespace

Json modelPipeline(const ModelForm& form) {
  Json blocks = Json::object();
  for (std::size_t kind = 0; kind < form.kinds.size(); ++kind)
    if (std::ranges::find(form.layers, kind) != form.layers.end())
      blocks[form.kinds[kind].block] = LayerText(form, form.kinds[kind]).json();
  return {{"$schema", "fuseline-pipeline-1.json"},
          {"format", "fuseline-pipeline"},
          {"formatVersion", {{"major", 1}, {"minor", 1}}},
          {"symbols", symbolsOf(form)},
          {"blocks", std::move(blocks)},
          {"pipeline", ModelText(form).json()}};
}

}  // namespace fuseline
