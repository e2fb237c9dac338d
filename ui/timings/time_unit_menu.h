// TimeUnitMenu: the unit of all times in the table of timings, chosen by the user.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/comparison_text.h"

#include <QActionGroup>
#include <QMenu>

#include <optional>

namespace fuseline::ui {

class TimeUnitMenu : public QMenu {
  Q_OBJECT

 public:
  /// isKept: the choice is one of the user's settings.
  TimeUnitMenu(bool isKept, QWidget* parent);

  /// nullopt: automatic.
  std::optional<ColumnUnit> unit() const;

 Q_SIGNALS:
  void unitChanged();

 private:
  QActionGroup* m_choices;
};

}  // namespace fuseline::ui
