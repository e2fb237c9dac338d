// Reports missing outputs, and inputs and results that are not used.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/section_oddities.h"

#include "core/document/node_id.h"

#include <string>

#include <fmt/format.h>

namespace fuseline {

namespace {

class OddityReport {
 public:
  OddityReport(DiagnosticSink& sink, const PipelineDocument& document, bool isUnreadable, const Section& section,
               const std::vector<bool>& isInputKnown)
      : m_sink(sink),
        m_document(document),
        m_isUnreadable(isUnreadable),
        m_section(section),
        m_wiring(section.wiring()),
        m_isInputKnown(isInputKnown) {}

  void report() {
    if (!m_section.isPipeline() && m_section.block().inputs.empty())
      m_sink.error("no-inputs", {.pointer = "/pipeline"},
                   "The block has no inputs, so its instances cannot be connected. Add an input.");
    if (m_section.block().outputs.empty() && !isBlank()) reportNoOutputs();
    reportUnused();
  }

 private:
  // The empty document of a file that is no JSON at all: its syntax error says it all.
  bool isBlank() const { return m_isUnreadable && m_section.block().ops.empty() && m_section.block().inputs.empty(); }

  void reportNoOutputs() {
    Diagnostic& diagnostic = m_sink.error("no-outputs", {.pointer = "/pipeline"},
                                          fmt::format("The {} has no output yet. Connect the last op to an output.",
                                                      m_section.isPipeline() ? "pipeline" : "block"));
    for (std::size_t i = 0; i < m_section.block().ops.size(); ++i)
      if (isUnread(i)) return void(diagnostic.repairs.push_back(outputRepair(i)));
  }

  bool isUnread(std::size_t index) const {
    return m_section.type(index) && m_wiring.isNamed(index) && !m_wiring.isMainOutputUsed(index);
  }

  Repair outputRepair(std::size_t index) const {
    const Endpoint from = {op(index).id, type(index).outputs.front().name};
    return {fmt::format("Connect {} to an output", toString(from)),
            AddOutput{{.id = freeId(m_section.block(), "y"), .from = from}}};
  }

  // Behind a wrong or missing wire everything looks unused; only the cause is worth a line.
  void reportUnused() {
    if (!m_section.isWired()) return;
    for (std::size_t i = 0; i < m_section.block().inputs.size(); ++i) {
      const DocumentInput& input = m_section.block().inputs[i];
      const bool isKnown = !m_section.isPipeline() || m_isInputKnown[i];
      if (!isKnown || m_wiring.isInputUsed(i)) continue;
      Diagnostic& diagnostic = m_sink.report(
          Severity::Warning, "unused-input", {fmt::format("/pipeline/inputs/{}", i), input.id, {}},
          fmt::format("{} input {} is not used.", m_section.isPipeline() ? "Pipeline" : "Block", input.id));
      // The inputs of a block are ports that its instances are wired by.
      if (m_section.isPipeline())
        diagnostic.repairs.push_back({"Remove input " + input.id, RemoveInput{input.id, static_cast<int>(i)}});
    }
    if (!m_section.block().outputs.empty())
      for (std::size_t i = 0; i < m_section.block().ops.size(); ++i)
        if (isUnread(i)) reportUnusedResult(i);
  }

  void reportUnusedResult(std::size_t index) {
    const std::string& port = type(index).outputs.front().name;
    Diagnostic& diagnostic = m_sink.report(
        Severity::Warning, "unused-result", {opPointer(index), op(index).id, port},
        fmt::format("{}.{} is not connected, so the result of {} is lost. Connect it to an op or an output.",
                    op(index).id, port, op(index).id));
    // Both repairs read the whole document.
    constexpr int kMostRepaired = 100;
    if (m_numUnused++ >= kMostRepaired) return;
    diagnostic.repairs = {outputRepair(index)};
    if (m_section.isPipeline())
      diagnostic.repairs.push_back({"Remove " + op(index).id, removeOpWithWires(m_document, op(index).id)});
  }

  const DocumentOp& op(std::size_t index) const { return m_section.op(index); }
  const FusibleOperation& type(std::size_t index) const { return *m_section.type(index); }

  DiagnosticSink& m_sink;
  const PipelineDocument& m_document;
  const bool m_isUnreadable;
  const Section& m_section;
  const Connectivity& m_wiring;
  const std::vector<bool>& m_isInputKnown;
  int m_numUnused = 0;
};

}  // namespace

void reportOddities(DiagnosticSink& sink, const PipelineDocument& document, bool isUnreadable, const Section& section,
                    const std::vector<bool>& isInputKnown) {
  OddityReport(sink, document, isUnreadable, section, isInputKnown).report();
}

}  // namespace fuseline
