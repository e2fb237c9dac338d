// RunCommands: the commands of the menu Run that do not run anything: clocks, tensors, files of runs, the baseline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/exporter.h"
#include "ui/session/exports.h"
#include "ui/session/session.h"

#include <QAction>
#include <QMenu>
#include <QObject>

#include <functional>

namespace fuseline::ui {

class RunCommands : public QObject {
  Q_OBJECT

 public:
  /// Lives as long as the window does.
  RunCommands(Session& session, QWidget& window);

  void addTimingMenu(QMenu& menu);
  void addCommands(QMenu& menu);

 Q_SIGNALS:
  void message(const QString& sentence, Severity severity);

 private:
  using CommandOf =
      std::function<std::string(const RunSpec& settings, std::string_view file, std::string_view tensors)>;
  QAction* add(QMenu& menu, const QString& text, const QKeySequence& shortcut, std::function<void()> run);
  void enableWithRun(QAction& action);
  void addCopyCommands(QMenu& menu);
  void copyCommand(const CommandOf& commandOf);
  void addExportCommands(QMenu& menu);
  void addBaselineCommands(QMenu& menu);
  void pinBaseline();
  void chooseBaselines();
  void chooseOptions();
  void chooseTensors();
  void addSavingOfModel(QMenu& menu);
  void saveParameters(ParameterNames names);
  void saveRun();
  void exportRun(const Exporter& exporter);
  void say(const QString& sentence, Severity severity = Severity::Note);
  void tell(const Result<void>& outcome, const QString& success);
  /// Writes the file while the window stays alive.
  void write(const QString& path, std::function<Result<void>()> work, const QString& success);

  Session& m_session;
  QWidget& m_window;
};

}  // namespace fuseline::ui
