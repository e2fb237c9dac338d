// DeviceMemory: the devices as the worker named them, the one that the user chose last, and what they lack.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/machines/machine_choice.h"
#include "ui/runs/run_bar.h"
#include "ui/session/session.h"
#include "ui/window/persistence.h"

#include <QObject>

namespace fuseline::ui {

class DeviceMemory : public QObject {
  Q_OBJECT

 public:
  /// All of them live as long as this.
  DeviceMemory(Session& session, RunBar& runBar, Persistence persistence, QObject* parent);

  const Json& devices() const { return m_devices; }
  MachineChoice& machines() const { return *m_machines; }

 Q_SIGNALS:
  /// Missing capabilities of devices, if they changed.
  void message(const QString& sentence);

 private:
  void take(const Json& devices);
  void sayMissing();

  RunBar& m_runBar;
  Persistence m_persistence;
  MachineChoice* m_machines;
  Json m_devices = Json::array();
};

}  // namespace fuseline::ui
