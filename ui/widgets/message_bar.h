// MessageBar: what is said across the top of the canvas; of a long text its beginning, the rest behind a button.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QToolButton>
#include <QWidget>

#include <functional>

namespace fuseline::ui {

class MessageBar : public QWidget {
  Q_OBJECT

 public:
  explicit MessageBar(const Theme& theme, QWidget* parent = nullptr);

  void setText(const QString& text);
  /// One more button for what the text suggests, until the next text or until it was pressed.
  void offer(const QString& label, const QString& tip, std::function<void()> action);
  /// All of it.
  const QString& text() const { return m_text; }

 private:
  void showDetails();

  QString m_text;
  QLabel* m_label;
  QHBoxLayout* m_offers;
  QToolButton* m_details;
};

}  // namespace fuseline::ui
