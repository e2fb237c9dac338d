// SectionText: ops and wires of a pipeline or a block, written one after another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"

#include <string>
#include <utility>
#include <vector>

namespace fuseline {

/// Tensors are named as in files: "x" for an input, "norm.y" for an output of an op.
class SectionText {
 public:
  using Source = std::pair<std::string, std::string>;  // port, tensor

  void addInput(Json input) { m_inputs.push_back(std::move(input)); }
  /// Returns the op's main output.
  std::string add(const std::string& id, const std::string& op, Json attributes, const std::vector<Source>& sources);
  std::string add(const std::string& id, const std::string& op, Json attributes, const std::string& x) {
    return add(id, op, std::move(attributes), std::vector<Source>{{"x", x}});
  }
  void addOutput(const std::string& id, const std::string& tensor) {
    m_outputs.push_back({{"id", id}, {"from", tensor}});
  }
  /// The first output: that which an instance hands on.
  void addMainOutput(const std::string& id, const std::string& tensor) {
    m_outputs.insert(m_outputs.begin(), Json{{"id", id}, {"from", tensor}});
  }
  /// {"inputs": .., "ops": .., "wires": .., "outputs": ..}
  Json json() const;

 private:
  Json m_inputs = Json::array();
  Json m_ops = Json::array();
  Json m_wires = Json::array();
  Json m_outputs = Json::array();
};

}  // namespace fuseline
