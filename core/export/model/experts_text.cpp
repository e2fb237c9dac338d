// Writes experts as ops. The gate of a shared expert multiplies inside of it, where TransformerEngine has an op for it.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/experts_text.h"

#include <utility>
#include <vector>

namespace fuseline {

namespace {

using Sources = std::vector<SectionText::Source>;

class ExpertsText {
 public:
  ExpertsText(const ModelForm& form, SectionText& text) : m_form(form), m_experts(*form.experts), m_text(text) {}

  std::string add(std::string x) {
    const bool isShared = m_experts.sharedIntermediate > 0;
    if (isShared) x = copied("save_shared", x);
    const std::string y = routed(x);
    if (!isShared) return y;
    return m_text.add("add_shared", "AddExtraInput", {{"in_place", true}},
                      Sources{{"x", y}, {"extra", shared("save_shared.extra")}});
  }

 private:
  /// The main output; the other is id.extra.
  std::string copied(const std::string& id, const std::string& x) {
    return m_text.add(id, "MakeExtraOutput", {{"in_place", false}}, x);
  }

  std::string linear(const std::string& id, const std::string& x, const char* in, const char* out, bool hasBias) {
    return m_text.add(id, "Linear", {{"in_features", in}, {"out_features", out}, {"bias", hasBias}}, x);
  }

  std::string routed(const std::string& x) {
    const std::string logits = linear("router", copied("save_router", x), "H", "E", m_experts.hasRouterBias);
    Json router = {{"topk", "topk"}};
    router.update(m_experts.router);
    const std::string probs = m_text.add("route", "TopKRouter", std::move(router), observed(logits));
    const std::string rows = m_text.add("permute", "MoEPermute", {{"num_experts", "E"}, {"align_size", "align"}},
                                        Sources{{"x", "save_router.extra"}, {"indices", "route.indices"}});
    const std::string wide = grouped("experts_fc1", rows, "H", m_form.isGated() ? "2 * FE" : "FE");
    const std::string active = m_text.add("experts_act", m_form.activation, m_form.activationAttributes, wide);
    const std::string y = grouped("experts_fc2", active, "FE", "H");
    return m_text.add("unpermute", "MoEUnpermute", Json::object(),
                      Sources{{"x", y}, {"row_id_map", "permute.row_id_map"}, {"probs", probs}});
  }

  /// The layer hands out what the loss of the load reads.
  std::string observed(const std::string& logits) {
    if (m_experts.auxLossCoeff == 0.0) return logits;
    const std::string copied = this->copied("save_logits", logits);
    m_text.addOutput("router_logits", "save_logits.extra");
    m_text.addOutput("tokens_per_expert", "route.tokens_per_expert");
    return copied;
  }

  std::string grouped(const std::string& id, const std::string& x, const char* in, const char* out) {
    Json attributes = {{"num_groups", "E"},
                       {"in_features", in},
                       {"out_features", out},
                       {"bias", m_experts.hasBias},
                       {"single_grouped_weight", true}};
    if (m_experts.hasBias) attributes["single_grouped_bias"] = true;
    return m_text.add(id, "GroupedLinear", std::move(attributes),
                      Sources{{"x", x}, {"split_sizes", "permute.split_sizes"}});
  }

  std::string shared(const std::string& x) {
    if (m_experts.hasSharedGate) return gatedShared(x);
    const std::string wide = linear("shared_fc1", x, "H", m_form.isGated() ? "2 * FS" : "FS", false);
    const std::string active = m_text.add("shared_act", m_form.activation, m_form.activationAttributes, wide);
    return linear("shared_fc2", active, "FS", "H", false);
  }

  /// fc2 has no bias, so that the gate may multiply its input.
  std::string gatedShared(const std::string& x) {
    const std::string logit = linear("shared_gate", copied("save_gate", x), "H", "1", false);
    const std::string row = m_text.add("shared_gate_row", "Reshape", {{"shape", {"B", "S"}}}, logit);
    const std::string gate = m_text.add("shared_gate_act", "Formula", {{"y", "sigmoid(x)"}}, row);
    const std::string wide = linear("shared_fc1", "save_gate.extra", "H", "2 * FS", false);
    const std::string active =
        m_text.add("shared_act", "ScaledSwiGLU", Json::object(), Sources{{"x", wide}, {"scales", gate}});
    return linear("shared_fc2", active, "FS", "H", false);
  }

  const ModelForm& m_form;
  const ExpertsForm& m_experts;
  SectionText& m_text;
};

}  // namespace

std::string addExperts(const ModelForm& form, SectionText& text, const std::string& x) {
  return ExpertsText(form, text).add(x);
}

void addExpertSymbols(const ExpertsForm& experts, Json& symbols) {
  symbols["E"] = experts.count;
  symbols["topk"] = experts.topk;
  symbols["FE"] = experts.intermediate;
  symbols["align"] = 1;  // recipes need more: the user's choice
  if (experts.sharedIntermediate > 0) symbols["FS"] = experts.sharedIntermediate;
}

}  // namespace fuseline
