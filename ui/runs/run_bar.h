// RunBar: run, stop, which pass and recipe, how far it is, and on which device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QAction>
#include <QComboBox>
#include <QElapsedTimer>
#include <QLabel>
#include <QProgressBar>
#include <QToolBar>

#include <utility>
#include <vector>

namespace fuseline::ui {

class RunBar : public QToolBar {
  Q_OBJECT

 public:
  RunBar(Session& session, const Theme& theme, QWidget* parent = nullptr);
  QAction* runAction() const { return m_run; }
  QAction* stopAction() const { return m_stop; }
  /// Has the key of Run while that is off because of errors.
  QAction* refusalAction() const { return m_refusal; }
  /// As a worker lists them. Those that cannot run are shown with the reason and cannot be chosen.
  void setDevices(const Json& devices);
  /// Hosts of other machines and their devices. Then an entry that adds a machine, and for each one that removes it.
  void setMachines(std::vector<std::pair<QString, Json>> machines);
  /// id: RunTarget::place(). Does nothing where there is none of this id, or it cannot run.
  void chooseDevice(const QString& id);
  /// How far a run is; hidden while there is none. For the status bar: in a toolbar it would push others about.
  QWidget* progress() const { return m_progressLine; }
  /// Those that the device cannot run are dimmed, with the reason; they are planned all the same.
  QComboBox* recipeChoice() const { return m_recipe; }

 Q_SIGNALS:
  /// Why Run does nothing.
  void refused(const QString& sentence);
  /// Another machine is to be added.
  void machineWanted();
  /// The machine is to be removed; nothing runs there.
  void machineUnwanted(const QString& host);

 private:
  void createChoices();
  void createProgress();
  /// Keeps up with the session.
  void follow();
  void refresh();
  void refreshIcons();
  void refreshRanks();
  void refreshRefusal();
  void refreshRecipes();
  QString runTip() const;
  void fillDevices();
  void addDevice(const Json& device, const QString& host);
  void takeDevice(int index);
  void addMachineEntries();
  void takeEntry(const QString& unwantedHost);
  void showProgress(const QString& stage, int done, int total);

  Session& m_session;
  const Theme& m_theme;
  QAction* m_run;
  QAction* m_stop;
  QAction* m_refusal;
  QComboBox* m_pass;
  QComboBox* m_recipe;
  QWidget* m_progressLine;
  QLabel* m_progressText;
  QProgressBar* m_progress;
  QString m_stage;
  QElapsedTimer m_stageClock;
  QComboBox* m_device;
  QComboBox* m_ranks;
  Json m_devices = Json::array();  // of this machine
  std::vector<std::pair<QString, Json>> m_machines;
  bool m_addsMachines = false;
};

}  // namespace fuseline::ui
