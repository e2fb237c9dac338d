// Where heads lie in the tensors of a graph, and pieces of packed projections.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_attention_parts.h"
#include "core/export/onnx/onnx_new_nodes.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fuseline {

/// Order of the axes, and which of the leading factors are those of heads.
struct HeadLayout {
  bool isSbhd = false;
  std::size_t numBatch = 0;  // of the leading factors
  std::int64_t batch = 1;
  std::int64_t heads = 1;
};

/// Cuts the leading factors of all operands where any of them is cut. False: they do not divide each other.
bool alignLeads(std::vector<ViewFactors*> leads);
/// The layout of query heads; shared: the leading factors of keys, where heads that share one have the stride 0.
HeadLayout headLayout(const AttentionOperand& q, const ViewFactors& shared);
/// Neighbors that are one stretch become one factor.
ViewFactors mergedFactors(const ViewFactors& factors);

/// Gives operands as tensors of the layout. Pieces of one tensor become outputs of one Split.
class OnnxHeadColumns {
 public:
  /// All must outlive it. misfits: tensors that are not to be made.
  OnnxHeadColumns(OnnxNewNodes& nodes, const OnnxViews& views, const std::set<std::string>& misfits)
      : m_nodes(nodes), m_views(views), m_misfits(misfits) {}

  /// [B, S, H, D] or [S, B, H, D], or with merged heads where a tensor is there. Nothing: its elements lie in another
  /// order.
  std::optional<std::string> tokensOf(const AttentionOperand& operand, const HeadLayout& layout);
  /// Call it last. Parts of a tensor without consumers become outputs of Split, too.
  void addSplits();

 private:
  struct Columns {
    int position = 0;                                                     // before this node
    std::map<std::int64_t, std::pair<std::int64_t, std::string>> pieces;  // width and name by the first column
  };

  std::optional<std::string> fitting(const std::string& tensor) const;
  std::optional<std::string> pieceOf(const std::string& table, std::int64_t first, std::int64_t width);
  std::string addPiece(const std::string& table, Columns& columns, std::int64_t first, std::int64_t width);

  OnnxNewNodes& m_nodes;
  const OnnxViews& m_views;
  const std::set<std::string>& m_misfits;
  std::map<std::string, Columns> m_columns;  // by the tensor that is split
};

}  // namespace fuseline
