// PipelineWriter: writes the ops that were found as a pipeline file, and reads that as any other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/diagnostic.h"
#include "core/export/onnx/import/external_ops.h"
#include "core/export/onnx/import/residual_branches.h"
#include "core/export/onnx/onnx_attention.h"
#include "core/export/onnx/onnx_import.h"
#include "core/export/onnx/onnx_preparation.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// All steps of an import, finished.
struct ImportSteps {
  const FoundGraph& graph;
  const GraphBorder& border;
  const ExternalOps& externals;
  const ResidualBranches& branches;
  const OnnxPreparation& prepared;
  const OnnxOpsets& opsets;
  const AttentionRewrite& rewrite;
  /// Notes about ops, with their ids.
  const std::map<std::string, std::vector<std::string>>& notes;
  bool isMixed = false;  // an op has weights of another dtype
};

class PipelineWriter {
 public:
  /// ids: for the outputs. Errors are noted in `misfits`. Everything must outlive the writer.
  PipelineWriter(const ImportSteps& steps, ImportedIds& ids, const OnnxImportOptions& options, Misfits& misfits)
      : m(steps), m_ids(ids), m_options(options), m_misfits(misfits) {}

  /// Errors: the ops do not fit together. name: of the model.
  Result<ImportedPipeline> write(const std::string& name);

 private:
  Json pipelineJson();
  Json attributesOf(const FoundOperation& found) const;
  void noteMisfits(const std::vector<Diagnostic>& diagnostics);
  void tryOtherExtents(const PipelineDocument& document);
  FoldedPlaces fold(ImportedPipeline& imported) const;
  void addNotes(std::vector<std::string>& notes, const Graph& graph, const FoldedPlaces& places) const;
  std::vector<std::string> passedOutputs() const;
  void addSharedNotes(std::vector<std::string>& notes, const FoldedPlaces& places) const;
  void addSymbolNotes(std::vector<std::string>& notes) const;
  std::map<std::string, std::string> tensorNames(const FoldedPlaces& places) const;
  std::optional<FoundWeight> weightOf(const Node& node, int slot) const;
  void addEnds(ImportedPipeline& imported, const FoldedPlaces& places) const;
  bool addKeptConstant(ImportedPipeline& imported, const std::string& op, const KeptConstant& constant) const;
  void addKeptConstants(ImportedPipeline& imported, const FoldedPlaces& places) const;

  const ImportSteps& m;
  ImportedIds& m_ids;
  const OnnxImportOptions& m_options;
  Misfits& m_misfits;
  std::map<std::string, std::string> m_outputIds;  // tensors by ids
};

}  // namespace fuseline
