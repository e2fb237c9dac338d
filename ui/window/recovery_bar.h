// RecoveryBar: offers what a program that ended without a word had not saved, and what was set aside. It waits above
// the canvas.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/autosave.h"
#include "ui/theme/theme.h"

#include <QLabel>
#include <QWidget>

namespace fuseline::ui {

class RecoveryBar : public QWidget {
  Q_OBJECT

 public:
  RecoveryBar(Autosave& autosave, const Theme& theme, QWidget* parent = nullptr);

 Q_SIGNALS:
  /// The user wants the first leftover back. The window may ask first what becomes of the pipeline that is open.
  void recoveryWanted();

 private:
  void refresh();

  Autosave& m_autosave;
  QLabel* m_text;
};

}  // namespace fuseline::ui
