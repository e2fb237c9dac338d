// RunNotice: tells the desktop of runs: that the machine is busy, how far it is, and the end of what took long.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"
#include "ui/window/desktop.h"

#include <QElapsedTimer>
#include <QWidget>

#include <chrono>

namespace fuseline::ui {

class RunNotice : public QObject {
  Q_OBJECT

 public:
  /// Runs at least this long are announced if they end while the window has no focus.
  static constexpr std::chrono::milliseconds kLong{10'000};

  /// All of them live as long as this.
  RunNotice(Session& session, QWidget& window, Desktop& desktop, std::chrono::milliseconds longTime = kLong,
            QObject* parent = nullptr);

 private:
  void begin();
  void end(const QString& outcome);
  void drop();
  void showProgress(const QString& stage, int done, int total);
  QString summaryOfRun() const;

  Session& m_session;
  QWidget& m_window;
  Desktop& m_desktop;
  std::chrono::milliseconds m_longTime;
  bool m_isBusy = false;
  QElapsedTimer m_since;
  int m_percent = 0;
};

}  // namespace fuseline::ui
