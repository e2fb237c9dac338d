// MachineChoice: the device box with other machines, and the worker on the machine that was chosen.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/machines/machines.h"
#include "ui/runs/run_bar.h"
#include "ui/session/session.h"

#include <QObject>

namespace fuseline::ui {

class MachineChoice : public QObject {
  Q_OBJECT

 public:
  /// session and runBar live as long as this. isKept: machines are in the user's settings.
  MachineChoice(Session& session, RunBar& runBar, bool isKept, QObject* parent);

  Machines& machines() { return m_machines; }
  /// Opens the dialog.
  void addMachine();
  /// Its devices leave the device box. One that is chosen gives way to the CPU of this machine.
  void removeMachine(const QString& host);

 private:
  void showMachines();
  void followTarget();

  Session& m_session;
  RunBar& m_runBar;
  Machines m_machines;
};

}  // namespace fuseline::ui
