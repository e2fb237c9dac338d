// Finding nodes of the pipeline: by name, type, shape, the fusions they are part of, and what is wrong with them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/plan/analysis.h"
#include "core/profile/by_op/measured_ops.h"

#include <QString>
#include <QStringList>

#include <string>
#include <vector>

namespace fuseline::ui {

/// The words of a query, for hasAllWords().
QStringList searchWords(const QString& query);
/// Whether each word stands in one of the texts, whatever its case; "4096x1024" is "4096 × 1024".
bool hasAllWords(const QStringList& texts, const QStringList& words);

struct FoundNode {
  std::string id;
  QString title;         // "fc1 · Linear"
  QString detail;        // what was found of it: a shape, a fusion, the code of a problem
  bool isFrame = false;  // or a note, by its title or its text
};

/// The nodes that have every word of the query, whatever its case: those first whose name or type has them, each in the
/// document's order, and frames behind them. "4096x1024" finds shapes; an empty query finds all.
/// Terms such as "out_features>4096", "dtype:f32" and "time>1ms" keep the ops that fit all of them. times: of this very
/// pipeline, or nullptr.
std::vector<FoundNode> findNodes(const PipelineDocument& document, const Analysis& analysis, const QString& query,
                                 const MeasuredOps* times = nullptr);

}  // namespace fuseline::ui
