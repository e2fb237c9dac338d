// One axis at a time.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/arrange.h"

#include "ui/canvas/metrics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace fuseline::ui {

namespace {

/// The extent of a box along the axis that changes.
struct Span {
  std::string id;
  int start = 0;
  int size = 0;
  int end() const { return start + size; }
};

bool isAcross(Arrangement arrangement) {
  return arrangement == Arrangement::Left || arrangement == Arrangement::Centre || arrangement == Arrangement::Right ||
         arrangement == Arrangement::SpaceAcross;
}

std::vector<Span> spansOf(const NodeBoxes& boxes, bool isAcross) {
  std::vector<Span> spans;
  for (const auto& [id, box] : boxes)
    spans.push_back(isAcross ? Span{id, box.x(), box.width()} : Span{id, box.y(), box.height()});
  std::ranges::sort(spans, {}, [](const Span& span) { return std::pair(span.start, span.end()); });
  return spans;
}

void align(std::vector<Span>& spans, Arrangement arrangement) {
  const int first = std::ranges::min(spans, {}, &Span::start).start;
  const int last = std::ranges::max(spans, {}, &Span::end).end();
  for (Span& span : spans) {
    if (arrangement == Arrangement::Left || arrangement == Arrangement::Top)
      span.start = first;
    else if (arrangement == Arrangement::Right || arrangement == Arrangement::Bottom)
      span.start = last - span.size;
    else
      span.start = (first + last - span.size) / 2;
  }
}

/// The top of the leftmost box. Main ports are as far below the top of each.
int lineOf(const NodeBoxes& boxes) {
  const auto left = [](const auto& entry) { return entry.second.x(); };
  return std::ranges::min_element(boxes, {}, left)->second.y();
}

void space(std::vector<Span>& spans) {
  int room = spans.back().end() - spans.front().start;
  for (const Span& span : spans) room -= span.size;
  const double gap = static_cast<double>(room) / static_cast<double>(spans.size() - 1);
  double next = spans.front().start;
  for (std::size_t i = 0; i + 1 < spans.size(); ++i) {
    spans[i].start = static_cast<int>(std::lround(next));
    next += spans[i].size + gap;
  }
}

}  // namespace

std::vector<MoveNode> arrange(const NodeBoxes& boxes, Arrangement arrangement) {
  if (boxes.size() < 2) return {};
  const bool across = isAcross(arrangement);
  std::vector<Span> spans = spansOf(boxes, across);
  if (arrangement == Arrangement::SpaceAcross || arrangement == Arrangement::SpaceDown)
    space(spans);
  else if (arrangement == Arrangement::Straight)
    for (Span& span : spans) span.start = lineOf(boxes);
  else
    align(spans, arrangement);
  std::vector<MoveNode> moves;
  for (const Span& span : spans) {
    const QRect& box = boxes.at(span.id);
    const int start = static_cast<int>(onGrid(span.start));
    if (start == (across ? box.x() : box.y())) continue;
    moves.push_back({.id = span.id, .position = Position{across ? start : box.x(), across ? box.y() : start}});
  }
  return moves;
}

}  // namespace fuseline::ui
