// BaselineBar: the pinned runs as chips above the table of timings. One of them is the reference.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/baselines.h"
#include "ui/theme/theme.h"
#include "ui/timings/change_text.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QToolButton>
#include <QWidget>

#include <vector>

namespace fuseline::ui {

/// Hidden where nothing is pinned.
class BaselineBar : public QWidget {
  Q_OBJECT

 public:
  /// isKept: whether the unit is read from the settings and written there.
  BaselineBar(Baselines& baselines, const Theme& theme, bool isKept, QWidget* parent = nullptr);

  ChangeUnit unit() const;
  /// Press it, and its run is the reference; the other takes the run off. By letter.
  struct Chip {
    int slot = 0;
    QToolButton* run = nullptr;
    QToolButton* unpin = nullptr;
  };
  const std::vector<Chip>& chips() const { return m_chips; }

 Q_SIGNALS:
  void unitChosen();

 private:
  void createUnits(bool isKept);
  void refresh();
  Chip makeChip(const Baseline& baseline);

  Baselines& m_baselines;
  const Theme& m_theme;
  QHBoxLayout* m_row;
  QComboBox* m_unit;
  std::vector<Chip> m_chips;
};

}  // namespace fuseline::ui
