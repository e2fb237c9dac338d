// Finds the ends of a chain, wires them, and makes room.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/chain_edits.h"

#include "core/edit/edit_script.h"
#include "core/lowering/document_operation.h"
#include "core/lowering/lowering.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace fuseline {

namespace {

std::string listed(const std::vector<Endpoint>& ports) {
  std::vector<std::string> names;
  for (const Endpoint& port : ports) names.push_back(toString(port));
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<Endpoint> onlyOne(const std::vector<Endpoint>& ports, const char* what) {
  if (ports.size() == 1) return ports.front();
  if (ports.empty()) return Error{fmt::format("A chain needs one unconnected {}; expected 1, found none.", what)};
  return Error{
      fmt::format("A chain needs one unconnected {}; expected 1, found {}: {}.", what, ports.size(), listed(ports))};
}

/// In the order in which the chain is passed.
std::vector<std::string> inOrder(const PipelineDocument& document, const std::set<std::string>& ids) {
  std::vector<std::string> ordered(ids.begin(), ids.end());
  std::map<std::string, std::size_t> numBefore;
  for (const std::string& id : ids) numBefore[id] = reachable(document, id, FlowDirection::Upstream).size();
  std::ranges::stable_sort(ordered, {}, [&](const std::string& id) { return numBefore[id]; });
  return ordered;
}

/// The chain at the place that was made for it, its ops to each other as they are; in a row where that is not known.
Places placesAt(const Position& place, const std::vector<std::string>& ordered, const Places& places) {
  const bool areKnown = std::ranges::all_of(ordered, [&](const std::string& id) { return places.contains(id); });
  Places moved;
  for (const std::string& id : ordered) {
    const int column = static_cast<int>(moved.size());
    const Position from = areKnown ? places.at(ordered.front()) : Position{};
    const Position own = areKnown ? places.at(id) : Position{column * kNodePitchPx, 0};
    moved[id] = {place.x + own.x - from.x, place.y + own.y - from.y};
  }
  return moved;
}

/// From the left end of the first op to where the next one may begin.
int widthOf(const Places& places) {
  const auto [left, right] = std::ranges::minmax_element(places, {}, [](const auto& entry) { return entry.second.x; });
  return right->second.x - left->second.x + kNodePitchPx;
}

void placeChain(EditScript& script, const std::vector<std::string>& ordered, const std::string& after,
                const Places& places, Room room) {
  Places chosen = places;
  if (room == Room::IsMade) {
    const int width = widthOf(placesAt({}, ordered, places));
    const auto made = makeRoom(script, after, width, {ordered.begin(), ordered.end()});
    chosen = made ? placesAt(*made, ordered, places) : Places();
  }
  for (const std::string& id : ordered) {
    const auto found = chosen.find(id);
    const std::optional<Position> place = found == chosen.end() ? std::nullopt : std::optional(found->second);
    if (place != positionOf(script.document().pipeline(), id)) script.add(MoveNode{.id = id, .position = place});
  }
}

std::set<std::string> errorsOf(const PipelineDocument& document) {
  std::set<std::string> messages;
  for (const Diagnostic& diagnostic : lower(document).diagnostics)
    if (diagnostic.severity == Severity::Error) messages.insert(diagnostic.message);
  return messages;
}

/// Empty: the pipeline has no error that it had not before.
std::string newError(const PipelineDocument& before, const PipelineDocument& after) {
  const std::set<std::string> known = errorsOf(before);
  for (const std::string& message : errorsOf(after))
    if (!known.contains(message)) return message;
  return {};
}

}  // namespace

Result<ChainEnds> chainEnds(const PipelineDocument& document, const std::set<std::string>& ids) {
  std::vector<Endpoint> inputs;
  std::vector<Endpoint> outputs;
  for (const std::string& id : ids) {
    const DocumentOp* op = document.findOp(id);
    const OperationPointer operation = op ? operationOf(document, *op) : nullptr;
    if (!operation || operation->inputs.empty() || operation->outputs.empty())
      return Error{id + " cannot be inserted into a wire: it needs an input and an output."};
    const Endpoint input{id, operation->inputs.front().name};
    const Endpoint output{id, operation->outputs.front().name};
    if (!linkInto(document, input)) inputs.push_back(input);
    if (readersOf(document, output).empty()) outputs.push_back(output);
  }
  const Result<Endpoint> input = onlyOne(inputs, "input");
  if (!input) return input.error();
  const Result<Endpoint> output = onlyOne(outputs, "output");
  if (!output) return output.error();
  const std::set<std::string> behind = reachable(document, input->node, FlowDirection::Downstream);
  const auto apart = std::ranges::find_if(ids, [&](const std::string& id) { return !behind.contains(id); });
  if (apart != ids.end())
    return Error{fmt::format("{} is not downstream of {}, so these ops are not a chain.", *apart, input->node)};
  return ChainEnds{*input, *output};
}

Result<Edit> spliceChain(const PipelineDocument& document, const std::set<std::string>& ids, const Link& link,
                         const Places& places, Room room) {
  if (ids.contains(link.from.node) || ids.contains(link.to.node))
    return Error{fmt::format("The wire to {} belongs to the chain itself.", toString(link.to))};
  const Result<ChainEnds> ends = chainEnds(document, ids);
  if (!ends) return ends.error();
  EditScript script(document);
  placeChain(script, inOrder(document, ids), link.from.node, places, room);
  addLink(script, ends->output, link.to);
  const Verdict verdict = linkVerdict(script.document(), link.from, ends->input);
  if (!verdict) return Error{verdict.reason()};
  addLink(script, link.from, ends->input);
  if (script.refusal()) return *script.refusal();
  const std::string what = ids.size() == 1 ? *ids.begin() : std::to_string(ids.size()) + " ops";
  return std::move(script).finish("Insert " + what + " before " + link.to.node);
}

Result<FragmentEdit> pasteIntoWire(const PipelineDocument& document, std::string_view text, const Link& link) {
  Result<FragmentEdit> pasted = pasteFragment(document, text, {});
  if (!pasted) return pasted.error();
  EditScript script(document);
  script.add(pasted->edit);
  const std::set<std::string>& ids = pasted->ids;
  Places places;
  for (const std::string& id : pasted->ids)
    if (const auto place = positionOf(script.document().pipeline(), id)) places[id] = *place;
  const Result<Edit> spliced = spliceChain(script.document(), ids, link, places, Room::IsMade);
  if (!spliced) return spliced.error();
  script.add(*spliced);
  const std::string problem = newError(document, script.document());
  if (!problem.empty()) return Error{problem};
  pasted->edit = std::move(script).finish(countLabel("Paste", ids.size()) + " before " + link.to.node);
  return pasted;
}

}  // namespace fuseline
