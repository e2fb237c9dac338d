// Strides say the order of axes: the innermost stretch without gaps are the columns of a row.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_head_columns.h"

#include "core/export/onnx/onnx_attention.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

std::int64_t strideOf(const ViewFactors& factors) { return factors.empty() ? 0 : factors.front().stride; }

}  // namespace

ViewFactors mergedFactors(const ViewFactors& factors) {
  ViewFactors result;
  for (const ViewFactor& factor : factors)
    if (!result.empty() && result.back().stride == factor.stride * factor.extent && factor.stride != 0)
      result.back() = {result.back().extent * factor.extent, factor.stride};
    else
      result.push_back(factor);
  return result;
}

bool alignLeads(std::vector<ViewFactors*> leads) {
  std::set<std::int64_t> products = {1};
  for (const ViewFactors* const lead : leads) {
    std::int64_t product = 1;
    for (const ViewFactor& factor : *lead) products.insert(product *= factor.extent);
  }
  Shape extents;
  std::int64_t before = 1;
  for (const std::int64_t product : products) {
    if (product % before != 0) return false;
    if (product > 1) extents.push_back(product / before);
    before = product;
  }
  for (ViewFactors* const lead : leads) {
    const auto cut = regrouped(*lead, extents);
    if (!cut || !std::ranges::all_of(*cut, [](const ViewFactors& axis) { return axis.size() == 1; })) return false;
    lead->clear();
    for (const ViewFactors& axis : *cut) lead->push_back(axis.front());
  }
  return true;
}

HeadLayout headLayout(const AttentionOperand& q, const ViewFactors& shared) {
  const ViewFactors& lead = q.lead();
  const std::int64_t tokens = strideOf(mergedFactors(q.tokens()));
  HeadLayout layout;
  while (layout.numBatch < lead.size() && lead[layout.numBatch].stride >= tokens && tokens > 0) ++layout.numBatch;
  if (layout.numBatch == 0 && lead.size() > 1) {
    std::size_t numShared = 0;
    while (numShared < shared.size() && shared[shared.size() - 1 - numShared].stride == 0) ++numShared;
    const std::size_t others = lead.size() - numShared;
    layout.numBatch = others > 1 ? others - 1 : 0;
    layout.isSbhd = layout.numBatch > 0;
  }
  for (std::size_t i = 0; i < lead.size(); ++i) (i < layout.numBatch ? layout.batch : layout.heads) *= lead[i].extent;
  return layout;
}

std::optional<std::string> OnnxHeadColumns::tokensOf(const AttentionOperand& operand, const HeadLayout& layout) {
  const OnnxView& view = operand.view;
  const auto split = operand.lead().begin() + static_cast<std::ptrdiff_t>(layout.numBatch);
  ViewFactors heads(split, operand.lead().end());
  while (!heads.empty() && heads.back().stride == 0) heads.pop_back();
  ViewFactors all(operand.lead().begin(), split);
  all.insert(layout.isSbhd ? all.begin() : all.end(), operand.tokens().begin(), operand.tokens().end());
  const std::size_t numOuter = all.size();
  all.insert(all.end(), heads.begin(), heads.end());
  all.insert(all.end(), operand.channels().begin(), operand.channels().end());
  const auto whole = m_views.extents(view.base);
  if (!whole || view.factor != 1.0) return std::nullopt;
  // From the innermost factor outwards: a stretch without gaps, and the rows that it is cut out of.
  std::int64_t width = 1, row = 0, count = 1;
  std::int64_t headsOutside = 1;
  for (std::size_t i = all.size(); i-- > 0;) {
    const ViewFactor& factor = all[i];
    if (row == 0 && factor.stride != width) row = factor.stride;
    if (factor.stride != (row == 0 ? width : row * count) || factor.stride <= 0) return std::nullopt;
    if (row == 0)
      width *= factor.extent;
    else
      count *= factor.extent;
    if (row != 0 && i >= numOuter) headsOutside *= factor.extent;
  }
  const std::int64_t B = layout.batch, S = extentOf(operand.tokens()), H = extentOf(heads),
                     D = extentOf(operand.channels());
  const std::int64_t outer0 = layout.isSbhd ? S : B, outer1 = layout.isSbhd ? B : S;
  const Shape split4 = {outer0, outer1, H, D}, merged = {outer0, outer1, H * D};
  if (row == 0 && width != numElements(*whole)) {  // one row only
    row = numElements(*whole);
  }
  if (row == 0)
    return view.offset != 0 ? std::nullopt
                            : fitting(*whole == merged ? view.base : m_nodes.reshaped(view.base, split4));
  if (count * row != numElements(*whole) || view.offset < 0 || view.offset + width > row) return std::nullopt;
  Shape rows = {outer0, outer1, row};
  if (headsOutside > 1) rows = {outer0, outer1, headsOutside, row};
  const std::string table = whole->back() == row ? view.base : m_nodes.reshaped(view.base, rows);
  const auto piece = pieceOf(table, view.offset, width);
  if (!piece) return std::nullopt;
  return fitting(m_views.extents(*piece) == merged ? *piece : m_nodes.reshaped(*piece, split4));
}

/// Nothing: in an attempt before, it did not fit.
std::optional<std::string> OnnxHeadColumns::fitting(const std::string& tensor) const {
  return m_misfits.contains(tensor) ? std::nullopt : std::optional(tensor);
}

/// Nothing: it overlaps with another piece.
std::optional<std::string> OnnxHeadColumns::pieceOf(const std::string& table, std::int64_t first, std::int64_t width) {
  const auto [entry, isNew] = m_columns.try_emplace(table, Columns{.position = m_nodes.position(), .pieces = {}});
  auto& pieces = entry->second.pieces;
  if (m_misfits.contains(fmt::format("{}/columns_0", table))) return std::nullopt;
  if (const auto same = pieces.find(first); same != pieces.end())
    return same->second.first == width ? std::optional(same->second.second) : std::nullopt;
  const auto next = pieces.lower_bound(first);
  if (next != pieces.end() && next->first < first + width) return std::nullopt;
  if (next != pieces.begin() && std::prev(next)->first + std::prev(next)->second.first > first) return std::nullopt;
  return addPiece(table, entry->second, first, width);
}

std::string OnnxHeadColumns::addPiece(const std::string& table, Columns& columns, std::int64_t first,
                                      std::int64_t width) {
  Shape extents = *m_views.extents(table);
  extents.back() = width;
  const std::string name = fmt::format("{}/columns_{}", table, first);
  m_nodes.declare(name, extents, table);
  columns.pieces.emplace(first, std::pair(width, name));
  return name;
}

void OnnxHeadColumns::addSplits() {
  for (auto& [table, columns] : m_columns) {
    std::int64_t at = 0;
    const std::int64_t width = m_views.extents(table)->back();
    for (const auto& [first, piece] : std::map(columns.pieces)) {
      if (first > at) addPiece(table, columns, at, first - at);
      at = first + piece.first;
    }
    if (at < width) addPiece(table, columns, at, width - at);
    Json sizes = Json::array();
    OnnxNode node;
    node.set_op_type("Split");
    node.set_domain(kFuselineDomain);
    node.set_name(table + "/split");
    node.add_input(table);
    for (const auto& [first, piece] : columns.pieces) {
      sizes.push_back(piece.first);
      node.add_output(piece.second);
    }
    setTextOf(node, "attributes", Json{{"sizes", sizes}}.dump());
    setTextOf(node, "ports", "x");
    m_nodes.insertBehindInput(columns.position, std::move(node));
  }
}

}  // namespace fuseline
