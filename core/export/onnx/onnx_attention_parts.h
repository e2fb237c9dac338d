// Attention in an ONNX graph: what its nodes compute, whoever wrote them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_numbers.h"
#include "core/export/onnx/onnx_views.h"
#include "core/support/json.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// Queries, keys or values: which elements of a tensor they are, by batch entry and head, token and channel.
struct AttentionOperand {
  OnnxView view;  // its axes: lead, tokens, channels
  const ViewFactors& lead() const { return view.axes[0]; }
  const ViewFactors& tokens() const { return view.axes[1]; }
  const ViewFactors& channels() const { return view.axes[2]; }
};

/// A side of a window that ends nowhere, beside one that does.
inline constexpr std::int64_t kAllKeys = std::int64_t{1} << 30;

/// What is at most this is no score: it masks.
inline constexpr double kMaskingScore = -1e4;

/// One step between the scale of scores and the softmax.
struct ScoreStep {
  enum class Kind { Bias, Mask, Reshape };
  Kind kind = Kind::Bias;
  std::string tensor;        // what is added, or the condition
  bool isKeptIfTrue = true;  // Mask
  double fill = 0.0;         // Mask: what the others become
  std::string made;          // the scores behind it
};

struct AttentionParts {
  AttentionOperand q, k, v;
  double scale = 1.0;
  double softcap = 0.0;  // 0: none
  std::vector<ScoreStep> steps = {};
  std::vector<double> sinks = {};    // by head; empty: none
  std::string scores = {};           // the first scores, [.., Sq, Sk]; empty where no tensor has them
  std::string output = {};           // [.., Sq, Dv], or [B, Sq, H * Dv]
  bool isMerged = false;             // the latter
  Json attributes = Json::object();  // known without a look at masks
  std::string note = {};             // how it differs from the op
};

/// Attention that ends with this node. Nothing: there is none, or it is not known what its tensors are.
std::optional<AttentionParts> attentionAt(const OnnxReading& reading, OnnxViews& views, OnnxNumbers& numbers,
                                          const ::onnx::NodeProto& node);

}  // namespace fuseline
