// Keeps to ids that are there.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/selection.h"

namespace fuseline::ui {

Selection::Selection(OpenPipeline& pipeline) : m_pipeline(pipeline) {
  connect(&pipeline, &OpenPipeline::changed, this, &Selection::dropVanished);
}

void Selection::select(const QSet<QString>& ids) {
  if (ids != m_ids) selectFusion(ids, {});
}

void Selection::selectFusion(const QSet<QString>& ids, const QString& rule) {
  if (ids == m_ids && rule == m_rule) return;
  m_ids = ids;
  m_rule = rule;
  Q_EMIT changed();
}

QString Selection::single() const { return m_ids.size() == 1 ? *m_ids.begin() : QString(); }

void Selection::forget() {
  m_ids.clear();
  m_rule.clear();
}

void Selection::dropVanished() {
  QSet<QString> left;
  for (const QString& id : std::as_const(m_ids)) {
    if (m_pipeline.document().idExists(id.toStdString())) left.insert(id);
  }
  select(left);
}

}  // namespace fuseline::ui
