// Attention in ONNX models: dozens of nodes become one each, which onnx_patterns.h then finds as any other op.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"
#include "core/tensor/tensor.h"

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace fuseline {

/// The domain of nodes that stand for ops of Fuseline. Their attributes: "attributes", those of the op in JSON;
/// "ports", the names of those that the inputs go to; "note".
inline constexpr const char* kFuselineDomain = "fuseline";
/// A parameter of attention in the list of ports: its input is a constant of the model.
inline constexpr const char* kSinksPort = "softmax_offset";

struct AttentionRewriteOptions {
  std::map<std::string, std::int64_t> symbols = {};  // defaults
  std::set<std::string> literals = {};               // symbols that are numbers in the model
  std::set<std::string> misfits = {};                // tensors that are not to be made by such nodes
  std::filesystem::path folder = {};                 // of external data
};

/// Writes nodes DotProductAttention, RotaryPositionEmbedding and Split of this domain into a graph, in the layout that
/// the projections have: transposes of heads go. Precondition: types of all tensors are known as far as they can be.
class AttentionRewrite {
 public:
  AttentionRewrite(::onnx::GraphProto& graph, const AttentionRewriteOptions& options);
  /// The graph is again what it was.
  ~AttentionRewrite();
  AttentionRewrite(const AttentionRewrite&) = delete;
  AttentionRewrite& operator=(const AttentionRewrite&) = delete;

  /// Numbers that nodes of the model add to scores, by the tensors that are inputs of the new nodes.
  const std::vector<std::pair<std::string, Tensor>>& constants() const { return m_constants; }
  /// Why attention was left as it is, in sentences.
  const std::vector<std::string>& reasons() const { return m_reasons; }
  /// Symbols that must be the model's numbers for more attention to be found.
  const std::set<std::string>& neededNumbers() const { return m_neededNumbers; }

 private:
  ::onnx::GraphProto& m_graph;
  ::google::protobuf::RepeatedPtrField<::onnx::NodeProto> m_nodes;  // those of the model
  int m_numTypes = 0;
  std::vector<std::pair<std::string, Tensor>> m_constants;
  std::vector<std::string> m_reasons;
  std::set<std::string> m_neededNumbers;
};

}  // namespace fuseline
