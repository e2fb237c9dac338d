// Looks for the cheapest place near each row's end.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/layout_rows.h"

#include "core/edit/links.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fuseline::ui {

namespace {

/// Aspect ratio of the visible canvas in the default layout of the window.
constexpr double kAspect = 2.2;
/// How much shorter or longer than the others a row may be.
constexpr double kShortest = 0.55;
constexpr double kLongest = 1.35;
/// A wire that leads back is worse than a row that ends within a run of ops.
constexpr int kWireCost = 10;

struct Column {
  int left = std::numeric_limits<int>::max();
  int right = 0;
  int numCrossing = 0;  // wires that lead over its left edge
  int startCost = 0;    // of a row that begins with it
};

/// An op that is likely to fuse with the op upstream should not begin a row.
int startCost(const NodeLook& look, bool isAfterBranch) {
  if (look.category == "Activation" || look.kind == NodeKind::Output) return 6;
  if (look.category == "Normalization") return isAfterBranch ? 6 : 0;
  return look.outputs.size() > 1 ? 0 : 3;
}

class RowBreaker {
 public:
  RowBreaker(NodePositions& positions, const PipelineDocument& document, const std::vector<NodeLook>& looks)
      : m_positions(positions), m_links(linksOf(document)) {
    for (const NodeLook& look : looks) m_looks[look.id] = &look;
    findColumns();
    costColumns();
  }

  void breakRows() {
    const int width = m_columns.back().right - m_columns.front().left;
    const int pitch = rowPitch();
    const int numRows = static_cast<int>(std::lround(std::sqrt(width / (kAspect * pitch))));
    if (width <= kWidestRowPx || numRows < 2) return;
    moveIntoRows(evenRows(static_cast<double>(width) / numRows), pitch);
  }

 private:
  const NodeLook& lookOf(const std::string& id) const { return *m_looks.at(id); }
  int centreOf(const std::string& id) const {
    return m_positions.at(id).x + static_cast<int>(lookOf(id).size().width() / 2);
  }

  /// Nodes of a rank have their middles above each other, but for the grid.
  void findColumns() {
    std::vector<std::pair<int, std::string>> byCentre;
    for (const auto& [id, position] : m_positions) byCentre.emplace_back(centreOf(id), id);
    std::ranges::sort(byCentre);
    int last = std::numeric_limits<int>::min();
    for (const auto& [centre, id] : byCentre) {
      if (m_columns.empty() || centre - last > kNodeWidthPx / 2) m_columns.emplace_back();
      last = centre;
      Column& column = m_columns.back();
      column.left = std::min(column.left, m_positions.at(id).x);
      column.right = std::max(column.right, m_positions.at(id).x + static_cast<int>(lookOf(id).size().width()));
      m_columnOf[id] = m_columns.size() - 1;
    }
  }

  void costColumns() {
    for (const auto& [id, column] : m_columnOf)
      m_columns[column].startCost = std::max(m_columns[column].startCost, startCost(lookOf(id), false));
    for (const Link& link : m_links) {
      if (!m_columnOf.contains(link.from.node) || !m_columnOf.contains(link.to.node)) continue;
      const auto [from, to] = std::minmax(m_columnOf[link.from.node], m_columnOf[link.to.node]);
      for (std::size_t column = from + 1; column <= to; ++column) ++m_columns[column].numCrossing;
      const bool isAfterBranch = lookOf(link.from.node).outputs.size() > 1;
      m_columns[to].startCost = std::max(m_columns[to].startCost, startCost(lookOf(link.to.node), isAfterBranch));
    }
  }

  /// Where rows of about this width start.
  std::vector<std::size_t> rowStarts(double rowWidth) const {
    std::vector<std::size_t> starts = {0};
    while (m_columns.back().right - m_columns[starts.back()].left > kLongest * rowWidth)
      starts.push_back(nextStart(starts.back(), rowWidth));
    return starts;
  }

  /// How much wider the last row is than the widest other one; the whole drawing has its width.
  double excessOf(const std::vector<std::size_t>& starts) const {
    int widest = 0;
    for (std::size_t row = 1; row < starts.size(); ++row)
      widest = std::max(widest, m_columns[starts[row] - 1].right - m_columns[starts[row - 1]].left);
    return static_cast<double>(m_columns.back().right - m_columns[starts.back()].left) / std::max(widest, 1);
  }

  /// Among rows of nearly this width, those whose last one is no wider than the others: it takes what is left.
  std::vector<std::size_t> evenRows(double rowWidth) const {
    std::vector<std::size_t> best = rowStarts(rowWidth);
    for (const double share : {1.1, 0.9, 1.2, 0.8}) {
      if (excessOf(best) <= 1.0) break;
      std::vector<std::size_t> starts = rowStarts(share * rowWidth);
      if (excessOf(starts) < excessOf(best)) best = std::move(starts);
    }
    return best;
  }

  std::size_t nextStart(std::size_t start, double rowWidth) const {
    std::size_t best = start + 1;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t next = start + 1; next < m_columns.size(); ++next) {
      const double share = (m_columns[next - 1].right - m_columns[start].left) / rowWidth;
      if (share > kLongest && least < std::numeric_limits<double>::infinity()) break;
      if (share < kShortest) continue;
      const Column& column = m_columns[next];
      const double cost = kWireCost * column.numCrossing + column.startCost + std::abs(share - 1.0);
      if (cost < least) {
        least = cost;
        best = next;
      }
    }
    return best;
  }

  /// As high as the drawing, and room for the labels of hulls and for wires that lead back.
  int rowPitch() const {
    int top = std::numeric_limits<int>::max();
    int bottom = std::numeric_limits<int>::min();
    for (const auto& [id, position] : m_positions) {
      top = std::min(top, position.y);
      bottom = std::max(bottom, position.y + static_cast<int>(lookOf(id).size().height()));
    }
    return (bottom - top + kRowPitchPx + kGridPx - 1) / kGridPx * kGridPx;
  }

  void moveIntoRows(const std::vector<std::size_t>& starts, int pitch) {
    for (auto& [id, position] : m_positions) {
      const auto row = std::ranges::upper_bound(starts, m_columnOf.at(id)) - starts.begin() - 1;
      position.x -= m_columns[starts[static_cast<std::size_t>(row)]].left - m_columns.front().left;
      position.y += static_cast<int>(row) * pitch;
    }
  }

  NodePositions& m_positions;
  std::vector<Link> m_links;
  std::map<std::string, const NodeLook*> m_looks;
  std::vector<Column> m_columns;
  std::map<std::string, std::size_t> m_columnOf;
};

}  // namespace

void breakIntoRows(NodePositions& positions, const PipelineDocument& document, const std::vector<NodeLook>& looks) {
  if (!positions.empty()) RowBreaker(positions, document, looks).breakRows();
}

}  // namespace fuseline::ui
