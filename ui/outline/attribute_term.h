// Search terms that compare: "out_features>4096", "dtype:f32", "time>1ms".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"
#include "core/profile/by_op/measured_ops.h"

#include <QString>
#include <QStringList>

#include <optional>
#include <vector>

namespace fuseline::ui {

/// name: of an attribute, "dtype", "op" or "time". comparison: one of = : != < <= > >=, where : means "contains".
struct AttributeTerm {
  QString name;
  QString comparison;
  QString value;
  bool operator==(const AttributeTerm&) const = default;
};

/// A query without its terms, and the terms. Spaces around a comparison do not matter.
struct SearchQuery {
  QString words;
  std::vector<AttributeTerm> terms;
};
SearchQuery searchQuery(const QString& query);

/// Compares attributes of ops as they are resolved: symbols and expressions have their values.
class AttributeSearch {
 public:
  /// Both outlive it. times: of this very pipeline, or nullptr.
  AttributeSearch(const Analysis& analysis, const MeasuredOps* times) : m_analysis(analysis), m_times(times) {}

  /// Whether one of the op's values fits each of the terms.
  bool fits(const DocumentOp& op, const std::vector<AttributeTerm>& terms) const;

 private:
  QStringList valuesOf(const DocumentOp& op, const QString& name) const;
  QStringList resolvedValues(const std::string& op, const QString& name) const;
  QStringList timesOf(const std::string& op) const;

  const Analysis& m_analysis;
  const MeasuredOps* m_times;
};

}  // namespace fuseline::ui
