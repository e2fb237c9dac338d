// The application with a barrier: an exception in an event or a slot ends neither the program nor the document.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QApplication>
#include <QString>

#include <functional>

namespace fuseline::ui {

class GuardedApplication : public QApplication {
 public:
  using QApplication::QApplication;

  /// How an error is told; without it a message box says it. One that arrives while another is told is dropped.
  void setReport(std::function<void(const QString& sentence)> report) { m_report = std::move(report); }

  bool notify(QObject* receiver, QEvent* event) override;

 private:
  void tell(const char* problem);

  std::function<void(const QString&)> m_report;
  bool m_isTelling = false;
};

}  // namespace fuseline::ui
