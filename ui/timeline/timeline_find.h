// TimelineFind: the field that goes from one matching box of the timeline to the next.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/timeline/timeline_walk.h"

#include <QLabel>
#include <QLineEdit>
#include <QWidget>

#include <cstddef>
#include <vector>

namespace fuseline::ui {

class TimelineView;

/// Hidden until it is wanted. Enter and F3 go on, with Shift back; Escape closes it.
class TimelineFind : public QWidget {
  Q_OBJECT

 public:
  explicit TimelineFind(TimelineView& view, QWidget* parent = nullptr);

  void open();
  void close();
  /// Moves by this number of matches, cyclically.
  void step(int by);
  /// "3 of 12".
  QString countText() const { return m_count->text(); }
  QLineEdit* field() const { return m_field; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void search();
  void refreshMatches();
  void refreshCount();

  TimelineView& m_view;
  QLineEdit* m_field;
  QLabel* m_count;
  std::vector<TimelinePlace> m_matches;
  std::size_t m_current = 0;
};

}  // namespace fuseline::ui
