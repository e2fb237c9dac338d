// The outline: every input, op and output of a pipeline as a line of text, in the order in which they run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/plan/analysis.h"
#include "core/profile/run_record.h"

#include <QString>
#include <QStringList>

#include <optional>
#include <string>
#include <vector>

namespace fuseline::ui {

class Session;

struct OutlineRow {
  std::string place;  // "fc1", or "layer1.fc1" inside an instance of a block
  std::string node;   // the id in the pipeline that it belongs to: what is selected with it
  QString name;
  QString operation;              // "Linear", the block's name, "Input"
  QStringList inputs = {};        // the tensors that it reads: "32 × 48 bf16"
  QString output = {};            // "32 × 48 bf16"; empty: not known yet
  QStringList otherOutputs = {};  // "extra: 32 × 48 bf16"
  QString forward = {};           // the fused ops it is a part of; empty: none
  QString backward = {};
  double timeNs = 0;          // of its steps in the unfused plan, forward and backward; 0: not measured
  QStringList problems = {};  // "error: ...", worst first
  std::optional<Severity> worst = {};
  bool isBypassed = false;
  int parent = -1;              // the instance it is inside of, an index into the rows
  std::vector<int> parts = {};  // of an instance: its ops

  bool operator==(const OutlineRow&) const = default;
};

/// Inputs, ops in topological order with those of an instance behind it, outputs. `run`: of this very pipeline, or
/// nullptr.
std::vector<OutlineRow> outlineOf(const PipelineDocument& document, const Analysis& analysis,
                                  const std::vector<Diagnostic>& fileProblems, const RunRecord* run);

/// With the last run while it is about this pipeline.
std::vector<OutlineRow> outlineOf(const Session& session);
/// The rows of one node of the pipeline, found without those of the others.
std::vector<OutlineRow> outlineOf(const Session& session, const std::string& node);

/// Output tensors; each one but the first with its port.
QString outputsText(const OutlineRow& row);
/// "2 errors", "1 warning": how many there are of the worst kind; empty: no problem.
QString problemsText(const OutlineRow& row);
/// A row as a sentence: "fc1, Linear, input 32 × 16 bf16, output 32 × 48 bf16, fused forward in ForwardLinearEpilogue,
/// 0.41 ms unfused".
QString sentenceOf(const OutlineRow& row);

}  // namespace fuseline::ui
