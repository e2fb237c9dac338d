// Writes ops as a pipeline file has them.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/section_text.h"

namespace fuseline {

std::string SectionText::add(const std::string& id, const std::string& op, Json attributes,
                             const std::vector<Source>& sources) {
  m_ops.push_back({{"id", id}, {"op", op}, {"attributes", std::move(attributes)}});
  for (const auto& [port, tensor] : sources) m_wires.push_back(Json::array({tensor, id + "." + port}));
  return id + ".y";
}

Json SectionText::json() const {
  return {{"inputs", m_inputs}, {"ops", m_ops}, {"wires", m_wires}, {"outputs", m_outputs}};
}

}  // namespace fuseline
