// Reads a section: types of its ops, wires, declared inputs, attributes.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/section.h"

#include "core/document/block_operation.h"
#include "core/document/json_text.h"
#include "core/support/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

OperationTable::OperationTable(const OperationCatalog& catalog) : m_catalog(catalog) {
  for (const auto& operation : catalog.operations()) m_byName.emplace(operation->name, operation.get());
}

const FusibleOperation* OperationTable::find(const std::string& name) const {
  const auto found = m_byName.find(name);
  return found == m_byName.end() ? nullptr : found->second;
}

std::vector<std::string> OperationTable::names() const {
  std::vector<std::string> names;
  for (const auto& operation : m_catalog.operations()) names.push_back(operation->name);
  return names;
}

std::string opPointer(std::size_t index) { return fmt::format("/pipeline/ops/{}", index); }

Section::Section(const DocumentBlock& block, std::string name, const SectionTools& tools)
    : m_block(block),
      m_name(std::move(name)),
      m_tools(tools),
      m_sink(tools.sink),
      m_wiring(block, m_name.empty() ? "pipeline" : "block", findOperations(), m_sink) {
  readInputs();
  resolveAttributes();
  reportUnconnected();
}

std::vector<OperationPointer> Section::findOperations() {
  m_attributes.resize(m_block.ops.size());
  for (std::size_t i = 0; i < m_block.ops.size(); ++i) m_types.push_back(findOperation(i));
  return m_types;
}

// A block without the ports that every op has is reported as such, and its instances are left alone.
OperationPointer Section::findOperation(std::size_t index) {
  if (const BlockTable::Block* block = m_tools.blocks.blockOf(op(index)))
    return block->hasPorts ? unowned(block->operation) : nullptr;
  const FusibleOperation* operation = m_tools.operations.find(op(index).operation);
  if (!operation && op(index).extra.is_object()) reportUnknownOp(index);
  return operation ? typeOf(index, *operation) : nullptr;
}

// Ports may depend on attributes, so these are resolved before the wires are. Where that fails the ports are not known,
// and only the cause is reported.
OperationPointer Section::typeOf(std::size_t index, const FusibleOperation& operation) {
  if (!operation.specialise) return unowned(operation);
  const std::size_t first = m_sink.numReported();
  ResolvedAttributes& resolved = m_attributes[index] = m_tools.attributes.resolve(op(index), index, operation);
  OperationPointer type;
  if (!resolved.hasFailed) {
    Result<OperationPointer> own = specialised(operation, resolved.values);
    if (own)
      type = std::move(*own);
    else
      reportBadAttribute(m_sink, op(index), index, operation, own.error());
  }
  m_early.push_back({index, first, m_sink.numReported()});
  return type;
}

void Section::reportUnknownOp(std::size_t index) {
  const DocumentOp& written = op(index);
  if (written.operation.empty()) {
    if (!written.extra.contains("op"))
      m_sink.error("missing-field", {opPointer(index), written.id, {}},
                   fmt::format("{} has no \"op\"; expected the name of an op such as \"Linear\".", written.id));
    return;
  }
  const std::string_view block = blockNameOf(written);
  const std::string near =
      m_sink.suggest(written.operation, block.empty() ? m_tools.operations.names() : m_tools.blocks.instanceNames());
  const std::string name = block.empty() ? written.operation : std::string(block);
  Diagnostic& diagnostic =
      m_sink.error(block.empty() ? "unknown-op" : "unknown-block", {opPointer(index) + "/op", written.id, {}},
                   fmt::format("{}: there is no {} {}{} The file keeps the op, but it cannot run.", written.id,
                               block.empty() ? "op" : "block", inlineText(Json(shortened(name))), didYouMean(near)));
  if (near.empty()) return;
  DocumentOp changed = written;
  changed.operation = near;
  const auto at = static_cast<int>(index);
  diagnostic.repairs.push_back(
      {fmt::format("Change it to {}", near),
       EditGroup{fmt::format("Change {} to {}", written.id, near), {RemoveOp{written.id, at}, AddOp{changed, at}}}});
}

void Section::readInputs() {
  for (std::size_t i = 0; i < m_block.inputs.size(); ++i) {
    const DocumentInput& input = m_block.inputs[i];
    m_inputs.emplace_back();
    if (!input.extra.is_object()) continue;
    const std::size_t numReported = m_sink.numReported();
    if (isPipeline() || !input.dtype.empty()) m_inputs.back().dtype = readDType(input, i);
    if (isPipeline() || !input.shape.is_null()) m_inputs.back().shape = readShape(input, i);
    checkGradient(input, i);
    if (!m_wiring.isInputNamed(i)) m_sink.withdrawRepairs(numReported);
  }
}

std::optional<DType> Section::readDType(const DocumentInput& input, std::size_t index) {
  if (const auto dtype = parseDType(input.dtype)) return dtype;
  if (input.dtype.empty() && input.extra.contains("dtype")) return std::nullopt;  // reported by the reader
  const std::string pointer = fmt::format("/pipeline/inputs/{}", index);
  const std::string found = input.dtype.empty()
                                ? fmt::format("{} has no \"dtype\"", input.id)
                                : fmt::format("{}: the dtype is \"{}\"", input.id, shortened(input.dtype));
  Diagnostic& diagnostic = m_sink.error(input.dtype.empty() ? "missing-field" : "unknown-dtype",
                                        {input.dtype.empty() ? pointer : pointer + "/dtype", input.id, {}},
                                        found + "; expected f32, f16, bf16 or i64.");
  for (const char* name : {"bf16", "f32", "f16", "i64"}) {
    DocumentInput changed = input;
    changed.dtype = name;
    diagnostic.repairs.push_back({fmt::format("Set the dtype to {}", name), ReplaceInput{input.id, changed}});
  }
  return std::nullopt;
}

void Section::checkGradient(const DocumentInput& input, std::size_t index) {
  const std::optional<DType> dtype = m_inputs.back().dtype;
  if (!dtype || isFloat(*dtype) || !input.requiresGradient.value_or(false)) return;
  DocumentInput changed = input;
  changed.requiresGradient.reset();
  m_sink
      .error("integer-gradient", {fmt::format("/pipeline/inputs/{}/requires_grad", index), input.id, {}},
             fmt::format("{}: requires_grad is true, but a tensor of {} has no gradient. Set it to false or remove it.",
                         input.id, dtypeName(*dtype)))
      .repairs = {{"Remove requires_grad", ReplaceInput{input.id, changed}}};
}

std::optional<Shape> Section::readShape(const DocumentInput& input, std::size_t index) {
  const std::string pointer = fmt::format("/pipeline/inputs/{}", index);
  if (!input.shape.is_array()) {
    m_sink.error(input.shape.is_null() ? "missing-field" : "wrong-type",
                 {input.shape.is_null() ? pointer : pointer + "/shape", input.id, {}},
                 fmt::format("{}: the shape is {}; expected a list such as [\"M\", 1024].", input.id,
                             input.shape.is_null() ? "missing" : shortened(inlineText(input.shape))));
    return std::nullopt;
  }
  Shape shape;
  for (std::size_t i = 0; i < input.shape.size(); ++i) {
    const auto replace = [&](Json value) -> Edit {
      DocumentInput changed = input;
      changed.shape[i] = std::move(value);
      return ReplaceInput{input.id, changed};
    };
    const Spot spot = {fmt::format("{}/shape/{}", pointer, i), input.id, {}};
    const auto extent = m_tools.symbols.integer(
        input.shape[i], fmt::format("{}: dimension {} of the shape", input.id, i), spot, replace);
    if (extent && *extent >= 0) shape.push_back(*extent);
    if (extent && *extent < 0)
      m_sink.error("out-of-range", spot,
                   fmt::format("{}: dimension {} of the shape is {}; expected 0 or more.", input.id, i, *extent));
  }
  return shape.size() == input.shape.size() ? std::optional(shape) : std::nullopt;
}

void Section::resolveAttributes() {
  // Edits go by id, so they would change the op that bears it first.
  for (const EarlyReport& report : m_early)
    if (!m_wiring.isNamed(report.op)) m_sink.withdrawRepairs(report.first, report.last);
  auto early = m_early.begin();
  for (std::size_t i = 0; i < m_block.ops.size(); ++i) {
    if (early != m_early.end() && early->op == i) {
      ++early;
      continue;
    }
    const std::size_t numReported = m_sink.numReported();
    if (m_types[i]) m_attributes[i] = m_tools.attributes.resolve(op(i), i, *m_types[i]);
    if (!m_wiring.isNamed(i)) m_sink.withdrawRepairs(numReported);
  }
}

void Section::reportUnconnected() {
  for (std::size_t i = 0; i < m_block.ops.size(); ++i) {
    if (!m_types[i] || !m_wiring.isNamed(i)) continue;
    for (std::size_t port = 0; port < m_wiring.sources(i).size(); ++port) {
      const bool isRead = port == 0 || !op(i).isBypassed();
      if (!isRead || m_wiring.sources(i)[port].kind != Source::Kind::None) continue;
      const std::string& name = m_types[i]->inputs[port].name;
      m_sink.error("unconnected-input", {opPointer(i), op(i).id, name},
                   fmt::format("{}.{} is not connected. Connect it to the result of an op or to a {} input.", op(i).id,
                               name, isPipeline() ? "pipeline" : "block"));
      m_isWired = false;
    }
  }
}

}  // namespace fuseline
