// The worker is exchanged when a device of another machine is chosen.
// SPDX-License-Identifier: Apache-2.0
#include "ui/machines/machine_choice.h"

#include "ui/machines/machine_dialog.h"
#include "ui/theme/format.h"

namespace fuseline::ui {

MachineChoice::MachineChoice(Session& session, RunBar& runBar, bool isKept, QObject* parent)
    : QObject(parent), m_session(session), m_runBar(runBar), m_machines(session.runner().worker().command(), isKept) {
  connect(&m_machines, &Machines::changed, this, &MachineChoice::showMachines);
  connect(&runBar, &RunBar::machineWanted, this, &MachineChoice::addMachine);
  connect(&runBar, &RunBar::machineUnwanted, this, &MachineChoice::removeMachine);
  connect(&session.setup(), &RunSetup::runTargetChanged, this, &MachineChoice::followTarget);
  showMachines();
}

void MachineChoice::addMachine() {
  auto* dialog = new MachineDialog(m_machines, m_runBar.window());
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->open();
}

void MachineChoice::removeMachine(const QString& host) {
  if (toQt(m_session.setup().runTarget().host) == host) m_runBar.chooseDevice(QStringLiteral("cpu"));
  m_machines.remove(host);
}

void MachineChoice::showMachines() {
  std::vector<std::pair<QString, Json>> machines;
  for (const Machine& each : m_machines.all()) machines.emplace_back(each.host, each.devices);
  m_runBar.setMachines(std::move(machines));
}

void MachineChoice::followTarget() {
  const QStringList command = m_machines.workerCommand(toQt(m_session.setup().runTarget().host));
  if (command != m_session.runner().worker().command()) m_session.runner().worker().setCommand(command);
}

}  // namespace fuseline::ui
