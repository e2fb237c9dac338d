// Changes a copy of the pipeline, which is made only where layers are left out.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/first_layers.h"

#include "core/document/block_operation.h"
#include "core/lowering/lowering.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr const char* kLoss = "MoEAuxLoss";
constexpr const char* kLossLayers = "num_layers";

/// "x" and "x0": {"x", ""} and {"x", "0"}.
std::pair<std::string, std::string> stemAndNumber(const std::string& port) {
  const std::size_t end = port.find_last_not_of("0123456789");
  const std::size_t numStem = end == std::string::npos ? 0 : end + 1;
  return {port.substr(0, numStem), port.substr(numStem)};
}

std::size_t pairOf(const Wire& wire) {
  constexpr std::size_t kMostDigits = 4;
  const std::string number = stemAndNumber(wire.to.port).second;
  return number.empty() ? 0 : number.size() > kMostDigits ? std::size_t{kMostLayers} : std::stoul(number);
}

}  // namespace

std::int64_t layerOf(const DocumentOp& op) {
  const auto layer = op.attributes.find(kLayerAttribute);
  if (blockNameOf(op).empty() || layer == op.attributes.end() || !layer->is_number_integer()) return -1;
  if (layer->is_number_unsigned() && layer->get<std::uint64_t>() >= kMostLayers) return -1;
  return layer->get<std::int64_t>();
}

FirstLayers::FirstLayers(const DocumentBlock& pipeline, const SymbolTable& symbols, DiagnosticSink& sink)
    : m_written(pipeline) {
  const std::optional<std::int64_t> used = symbols.value(kLayersSymbol);
  if (!used) return;
  for (const DocumentOp& op : pipeline.ops) m_numWritten = std::max(m_numWritten, layerOf(op) + 1);
  if (m_numWritten == 0) return;
  m_numUsed = *used;
  const Spot spot = {.pointer = fmt::format("/symbols/{}", kLayersSymbol)};
  if (m_numUsed < 1 || m_numUsed > m_numWritten) {
    sink.error(
            "out-of-range", spot,
            fmt::format("{}, but the pipeline has {} layers; expected 1 to {}.{}", reason(), m_numWritten, m_numWritten,
                        m_numUsed < 1 ? ""
                                      : fmt::format(" If the model has more, import them: fuseline import "
                                                    "config.json --layers {}.",
                                                    m_numUsed)))
        .repairs = {useAll()};
    m_numUsed = m_numWritten;
  }
  if (m_numUsed == m_numWritten) return;
  const std::string first = m_numUsed == 1 ? "first" : fmt::format("first {}", m_numUsed);
  sink.report(Severity::Note, kBypassedCode, spot,
              fmt::format("{}, so only the {} of the {} layers {} executed.", reason(), first, m_numWritten,
                          m_numUsed == 1 ? "is" : "are"));
  shorten(sink);
}

bool FirstLayers::isLeftOut(const DocumentOp& op) const { return m_shortened && layerOf(op) >= m_numUsed; }

std::string FirstLayers::reason() const { return fmt::format("{} is {}", kLayersSymbol, m_numUsed); }

Repair FirstLayers::useAll() const {
  return {fmt::format("Set {} to {}", kLayersSymbol, m_numWritten), SetSymbol{kLayersSymbol, m_numWritten}};
}

void FirstLayers::shorten(DiagnosticSink& sink) {
  m_shortened = m_written;
  for (DocumentOp& op : m_shortened->ops)
    if (isLeftOut(op)) op.bypassed = true;
  LossWires wires;
  for (const DocumentOp& op : m_written.ops) {
    if (op.operation == kLoss) wires.ofLoss.try_emplace(op.id);
    if (isLeftOut(op)) wires.leftOut.insert(op.id);
  }
  if (wires.ofLoss.empty()) return;
  for (std::size_t i = 0; i < m_written.wires.size(); ++i)
    if (const auto loss = wires.ofLoss.find(m_written.wires[i].to.node); loss != wires.ofLoss.end())
      loss->second.push_back(i);
  for (DocumentOp& op : m_shortened->ops)
    if (op.operation == kLoss) narrow(op, wires);
  refuseReaders(wires, sink);
  std::size_t at = 0;
  std::erase_if(m_shortened->wires, [&](const Wire&) { return wires.gone.contains(at++); });
}

/// Its inputs come in pairs with the same number, one for each layer.
void FirstLayers::narrow(DocumentOp& loss, LossWires& wires) {
  const std::vector<std::size_t>& own = wires.ofLoss.find(loss.id)->second;
  std::map<std::size_t, bool> isPairUsed;
  for (const std::size_t i : own) {
    bool& isUsed = isPairUsed.try_emplace(pairOf(m_written.wires[i]), true).first->second;
    isUsed = isUsed && !wires.leftOut.contains(m_written.wires[i].from.node);
  }
  const auto isUsed = [](const auto& pair) { return pair.second; };
  if (std::ranges::all_of(isPairUsed, isUsed)) return;
  for (const std::size_t i : own)
    if (!isPairUsed[pairOf(m_written.wires[i])]) wires.gone.insert(i);
  std::erase_if(isPairUsed, std::not_fn(isUsed));
  loss.attributes[kLossLayers] = isPairUsed.size();
  std::size_t place = 0;
  std::map<std::size_t, std::string> numbers;
  for (const auto& [pair, used] : isPairUsed) numbers[pair] = place++ == 0 ? "" : std::to_string(place - 1);
  for (const std::size_t i : own) {
    std::string& port = m_shortened->wires[i].to.port;
    if (!wires.gone.contains(i)) port = stemAndNumber(port).first + numbers[pairOf(m_written.wires[i])];
  }
  if (!isPairUsed.empty()) return;
  wires.empty.insert(wires.ofLoss.find(loss.id)->first);
  loss = {.id = loss.id, .operation = {}, .extra = nullptr};  // as an op that cannot be read: nobody speaks of it
}

/// A loss without inputs is nothing that could be added to another one.
void FirstLayers::refuseReaders(const LossWires& wires, DiagnosticSink& sink) {
  if (wires.empty.empty()) return;
  const auto refuse = [&](const std::string& loss, const std::string& reader) {
    sink.error(kBypassRefusedCode, {.pointer = fmt::format("/symbols/{}", kLayersSymbol), .node = loss, .port = {}},
               fmt::format("{}, so {} has no inputs, but {} consumes it.", reason(), loss, reader))
        .repairs = {useAll()};
  };
  std::unordered_map<std::string_view, DocumentOp*> sums;
  for (DocumentOp& op : m_shortened->ops)
    if (op.operation == "AddExtraInput") sums.emplace(op.id, &op);
  for (const Wire& wire : m_written.wires) {
    if (!wires.empty.contains(wire.from.node)) continue;
    const auto sum = sums.find(wire.to.node);
    if (sum != sums.end() && wire.to.port == "extra")
      sum->second->bypassed = true;
    else
      refuse(wire.from.node, toString(wire.to));
  }
  for (const DocumentOutput& output : m_written.outputs)
    if (wires.empty.contains(output.from.node)) refuse(output.from.node, "output " + output.id);
}

}  // namespace fuseline
