// TourBar: leads through a tour, above the canvas. It goes on when a step is done, and whenever the user wants.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"
#include "ui/tours/tour.h"

#include <QLabel>
#include <QPushButton>
#include <QWidget>

#include <cstddef>
#include <optional>

namespace fuseline::ui {

class TourBar : public QWidget {
  Q_OBJECT

 public:
  TourBar(Session& session, const Theme& theme, QWidget* parent = nullptr);

  /// The tour, one of tours(), whose pipeline is open already. It ends when another one is opened.
  void start(const Tour& tour);
  void end();
  /// The step that is shown; nullptr: no tour is on.
  const TourStep* step() const { return m_tour ? &m_tour->steps[m_index] : nullptr; }

 public Q_SLOTS:
  /// Ends it after the last step.
  void next();
  void back();

 Q_SIGNALS:
  void paneWanted(const QString& name);
  /// A sentence: another pipeline was opened before its last step.
  void interrupted(const QString& sentence);

 private:
  void interrupt();
  void goTo(std::size_t index);
  void look();
  void refresh();

  Session& m_session;
  const Tour* m_tour = nullptr;
  std::size_t m_index = 0;
  std::optional<bool> m_wasDone;  // the step, when last looked at; nothing: not yet
  QLabel* m_title;
  QLabel* m_text;
  QPushButton* m_back;
  QPushButton* m_next;
};

}  // namespace fuseline::ui
