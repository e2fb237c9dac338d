// Selection: the one selection of all panes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/open_pipeline.h"

#include <QObject>
#include <QSet>
#include <QString>

namespace fuseline::ui {

class Selection : public QObject {
  Q_OBJECT

 public:
  explicit Selection(OpenPipeline& pipeline);

  /// Ids of document ops, inputs and outputs.
  const QSet<QString>& ids() const { return m_ids; }
  void select(const QSet<QString>& ids);
  /// Selects the ops of a fusion; rule() names it until something else is selected.
  void selectFusion(const QSet<QString>& ids, const QString& rule);
  const QString& rule() const { return m_rule; }
  /// The only selected id; empty when there is none or more than one.
  QString single() const;
  /// Selects nothing, without changed(): the caller emits it once another document is open.
  void forget();

 Q_SIGNALS:
  void changed();

 private:
  void dropVanished();

  OpenPipeline& m_pipeline;
  QSet<QString> m_ids;
  QString m_rule;
};

}  // namespace fuseline::ui
