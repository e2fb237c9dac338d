// Each edit is tried out on a scratch copy, so that the parts of a group always fit together.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/edit_script.h"

#include "core/document/format_version.h"
#include "core/edit/apply_edit.h"
#include "core/edit/reroutes.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace fuseline {

const PipelineDocument& EditScript::document() const {
  tryEdits();
  return m_scratch ? *m_scratch : *m_original;
}

const std::optional<Error>& EditScript::refusal() const {
  tryEdits();
  return m_refusal;
}

void EditScript::tryEdits() const {
  if (m_numTried == m_edits.size()) return;
  if (!m_scratch) m_scratch = *m_original;
  for (; m_numTried < m_edits.size(); ++m_numTried) {
    const Result<Edit> inverse = applyEdit(*m_scratch, m_edits[m_numTried]);
    if (!inverse && !m_refusal) m_refusal = inverse.error();
  }
}

Edit EditScript::finish(std::string label) && {
  if (m_edits.size() == 1) return std::move(m_edits.front());
  return EditGroup{.label = std::move(label), .edits = std::move(m_edits)};
}

std::optional<Position> positionOf(const DocumentBlock& block, const std::string& id) {
  const auto found = std::ranges::find(block.positions, id, [](const auto& entry) { return entry.first; });
  return found == block.positions.end() ? std::nullopt : std::optional(found->second);
}

std::vector<Link> readersOf(const PipelineDocument& document, const Endpoint& from) {
  std::vector<Link> readers;
  for (const Link& link : linksOf(document)) {
    if (link.from == from) readers.push_back(link);
  }
  return readers;
}

std::string countLabel(const char* verb, std::size_t count) {
  return std::string(verb) + " " + std::to_string(count) + (count == 1 ? " node" : " nodes");
}

void addLink(EditScript& script, const Endpoint& from, const Endpoint& to) {
  if (const DocumentOutput* output = script.document().findOutput(to.node)) {
    DocumentOutput changed = *output;
    changed.from = from;
    script.add(ReplaceOutput{.id = to.node, .output = changed});
    return;
  }
  if (const auto taken = linkInto(script.document(), to)) removeLink(script, *taken);
  script.add(AddWire{.wire = {from, to}});
}

void removeLink(EditScript& script, const Link& link) {
  for (Edit& edit : removeReroutes(script.document().pipeline(), link)) script.add(std::move(edit));
  if (!link.isOutput) {
    script.add(RemoveWire{.wire = {link.from, link.to}});
  } else if (const DocumentOutput* output = script.document().findOutput(link.to.node)) {
    DocumentOutput changed = *output;
    changed.from = {};
    script.add(ReplaceOutput{.id = link.to.node, .output = changed});
  }
}

namespace {

/// Rows of nodes from the top of the first one to the top of the last one.
struct Band {
  int top;
  int bottom;
};

/// The rows around one, as far as no wide gap is between them: the parts of a long pipeline that was broken into rows
/// move by themselves.
Band bandAround(int y, std::vector<int> tops) {
  constexpr int kWideGapPx = kRowPitchPx * 3 / 2;
  std::ranges::sort(tops);
  const auto here = std::ranges::lower_bound(tops, y);
  Band band{y, y};
  for (auto top = std::make_reverse_iterator(here); top != tops.rend() && band.top - *top < kWideGapPx; ++top)
    band.top = *top;
  for (auto top = here; top != tops.end() && *top - band.bottom < kWideGapPx; ++top) band.bottom = *top;
  return band;
}

/// All nodes of the band after this x have moved: its frames after it too, and frames around it are wider.
void stretchFrames(EditScript& script, Band band, int x, int widthPx) {
  const PipelineDocument before = script.document();
  for (const DocumentFrame* frame : drawnFrames(before)) {
    FrameArea area = *frame->area;
    if (area.x + area.width <= x || area.y > band.bottom || area.y + area.height < band.top) continue;
    if (area.x > x)
      area.x += widthPx;
    else
      area.width = std::min(area.width + widthPx, kMaxFrameSide);
    DocumentFrame moved = *frame;
    moved.area = area;
    script.add(ReplaceFrame{std::move(moved)});
  }
}

}  // namespace

std::optional<Position> makeRoom(EditScript& script, const std::string& after, int widthPx,
                                 const std::set<std::string>& except) {
  const auto anchor = positionOf(script.document().pipeline(), after);
  if (!anchor) return std::nullopt;
  const Position place{anchor->x + kNodePitchPx, anchor->y};
  auto positions = script.document().positions();
  std::erase_if(positions, [&](const auto& entry) { return except.contains(entry.first); });
  const bool isTaken = std::ranges::any_of(positions, [&](const auto& entry) {
    const Position& p = entry.second;
    return p.x > anchor->x && p.x < place.x + widthPx && std::abs(p.y - place.y) < kRowPitchPx;
  });
  if (!isTaken) return place;
  std::vector<int> tops;
  for (const auto& [id, p] : positions) tops.push_back(p.y);
  const Band band = bandAround(anchor->y, std::move(tops));
  for (const auto& [id, p] : positions)
    if (p.x > anchor->x && p.y >= band.top && p.y <= band.bottom)
      script.add(MoveNode{.id = id, .position = Position{p.x + widthPx, p.y}});
  stretchFrames(script, band, anchor->x, widthPx);
  return place;
}

}  // namespace fuseline
