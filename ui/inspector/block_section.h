// BlockSection: the ops inside a block, to be edited where an instance of it is selected.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/inspector/attribute_field.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QHash>
#include <QString>
#include <QToolButton>
#include <QVBoxLayout>
#include <QWidget>

#include <functional>
#include <string>
#include <vector>

namespace fuseline::ui {

/// A line for each op, which opens its attributes, or for an inner instance the ops in there. What is set is set in
/// the block, and so in all of its instances.
class BlockSection : public QWidget {
  Q_OBJECT

 public:
  BlockSection(Session& session, const Theme& theme, std::string block, QWidget* parent = nullptr);
  /// Changes exactly when refresh() is not enough: the ops of the block and of those in it.
  static QString structureOf(const PipelineDocument& document, const std::string& block);
  void refresh();
  /// Opens an op and returns what holds its fields, or the section of an inner block. nullptr: there is none.
  QWidget* open(const QString& op) const;

 private:
  void addOp(const DocumentOp& op);
  QWidget* contentOf(const std::string& op);
  QString noteText() const;

  Session& m_session;
  const Theme& m_theme;
  std::string m_block;
  QVBoxLayout* m_layout;
  QHash<QString, QWidget*> m_frames;  // by op
  std::vector<std::function<void()>> m_refreshers;
};

}  // namespace fuseline::ui
