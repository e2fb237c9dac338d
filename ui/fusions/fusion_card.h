// FusionCard: one fusion attempt: a line with its gain and a switch, and below it, when opened, its reason and fixes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QFrame>
#include <QLabel>
#include <QToolButton>

namespace fuseline::ui {

/// Where an attempt is listed.
enum class FusionGroup { Missed, Fused, Off };
FusionGroup groupOf(const Attempt& attempt);

class FusionCard : public QFrame {
  Q_OBJECT

 public:
  /// attempt: of the session's analysis, which lives on until the card is gone.
  FusionCard(Session& session, const Theme& theme, const Attempt& attempt, QWidget* parent);

  void setOpen(bool isOpen);

 Q_SIGNALS:
  void openChanged(bool isOpen);

 private:
  QLayout* makeLine();
  QWidget* makeDetails();
  QLabel* makeGain(const QString& text, const QString& tip);
  void addFix(QLayout& line);
  void addSwitch(QLayout& line);
  void addButtons(QLayout& details);

  Session& m_session;
  const Theme& m_theme;
  const Attempt& m_attempt;
  QToolButton* m_arrow;
  QWidget* m_details = nullptr;
};

}  // namespace fuseline::ui
