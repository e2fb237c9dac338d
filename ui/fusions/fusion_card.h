// FusionCard: one fusion attempt: a line with its gain and a switch, and below it, when opened, its reason and fixes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/fusions/attempt_list.h"
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
  /// attempts: of the session's analysis, which lives on until the card is gone; the same in several instances of a
  /// block, of which the first is shown. The switch is that of all.
  FusionCard(Session& session, const Theme& theme, InstanceAttempts attempts, QWidget* parent);

  void setOpen(bool isOpen);

 Q_SIGNALS:
  void openChanged(bool isOpen);

 protected:
  void mouseReleaseEvent(QMouseEvent* event) override;

 private:
  QLayout* makeLine();
  QLayout* makeNames();
  QString ops() const;
  QString placesText() const;
  QWidget* makeDetails();
  QLabel* makeGain(const QString& text, const QString& tip);
  void addFix(QLayout& line);
  void addSwitch(QLayout& line);
  void addButtons(QLayout& details);

  Session& m_session;
  const Theme& m_theme;
  const InstanceAttempts m_attempts;
  const Attempt& m_attempt;  // the first
  QToolButton* m_arrow;
  QWidget* m_details = nullptr;
};

}  // namespace fuseline::ui
