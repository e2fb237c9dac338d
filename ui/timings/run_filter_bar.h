// RunFilterBar: the filter of the measuring panes as chips, with a way back and forward.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/timings/run_filter.h"

#include <QBoxLayout>
#include <QLineEdit>
#include <QMenu>
#include <QToolButton>
#include <QWidget>

#include <vector>

namespace fuseline::ui {

/// Hidden while there is no filter. Its button opens the choices and belongs into the head of the pane.
class RunFilterBar : public QWidget {
  Q_OBJECT

 public:
  RunFilterBar(Session& session, RunFilter& filter, QWidget* parent);

  QToolButton* button() const { return m_button; }
  QLineEdit* field() const { return m_field; }
  /// In the order of the terms. A click removes the term.
  const std::vector<QToolButton*>& chips() const { return m_chips; }

 private:
  void fillMenu();
  void refresh();
  QToolButton* makeButton(const QString& text, const QString& tip);

  Session& m_session;
  RunFilter& m_filter;
  QToolButton* m_button;
  QToolButton* m_back;
  QToolButton* m_forward;
  QLineEdit* m_field;
  QToolButton* m_clear;
  QHBoxLayout* m_row;
  std::vector<QToolButton*> m_chips;
  bool m_isTyping = false;  // the field was asked for
};

}  // namespace fuseline::ui
