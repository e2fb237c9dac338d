// The first layers of a model: as many instances as the symbol `layers` says.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/lowering/diagnostic_sink.h"
#include "core/lowering/symbol_table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace fuseline {

/// The number of a layer of a model; -1: the op is none.
std::int64_t layerOf(const DocumentOp& op);

/// Instances of the pipeline with the attribute `layer` are its layers. Where the symbol `layers` is smaller than their
/// number, the others are bypassed, and MoEAuxLoss loses their inputs.
class FirstLayers {
 public:
  /// Reports a value of `layers` for which the pipeline has too few layers, and a note where layers are left out.
  FirstLayers(const DocumentBlock& pipeline, const SymbolTable& symbols, DiagnosticSink& sink);
  FirstLayers(const FirstLayers&) = delete;
  FirstLayers& operator=(const FirstLayers&) = delete;

  /// The pipeline without the other layers. Its ops have the places that they have in the file.
  const DocumentBlock& block() const { return m_shortened ? *m_shortened : m_written; }
  /// op: of the pipeline, not of a block.
  bool isLeftOut(const DocumentOp& op) const;
  /// "layers is 2".
  std::string reason() const;
  Repair useAll() const;

 private:
  struct LossWires {
    std::unordered_map<std::string_view, std::vector<std::size_t>> ofLoss;  // indices, by the loss that they end at
    std::unordered_set<std::string_view> leftOut;                           // layers
    std::unordered_set<std::size_t> gone;                                   // wires
    std::unordered_set<std::string_view> empty;                             // losses without inputs
  };

  void shorten(DiagnosticSink& sink);
  void narrow(DocumentOp& loss, LossWires& wires);
  void refuseReaders(const LossWires& wires, DiagnosticSink& sink);

  const DocumentBlock& m_written;
  std::int64_t m_numWritten = 0;
  std::int64_t m_numUsed = 0;
  std::optional<DocumentBlock> m_shortened;
};

}  // namespace fuseline
