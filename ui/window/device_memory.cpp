// Devices arrive from the worker; the choice is kept in the user's settings.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/device_memory.h"

#include "ui/theme/format.h"

#include <QSettings>
#include <QStringList>

namespace fuseline::ui {

namespace {
constexpr auto kDeviceKey = "run/device";
constexpr auto kMissingDevicesKey = "run/missingDevices";
}  // namespace

DeviceMemory::DeviceMemory(Session& session, RunBar& runBar, Persistence persistence, QObject* parent)
    : QObject(parent),
      m_runBar(runBar),
      m_persistence(persistence),
      m_machines(new MachineChoice(session, runBar, persistence == Persistence::Settings, this)) {
  connect(&session.runner().worker(), &WorkerClient::devicesReceived, this, &DeviceMemory::take);
  if (persistence == Persistence::None) return;
  connect(&session.setup(), &RunSetup::runTargetChanged, this,
          [&session] { QSettings().setValue(kDeviceKey, toQt(session.setup().runTarget().place())); });
}

void DeviceMemory::take(const Json& devices) {
  m_devices = devices;
  m_runBar.setDevices(devices);
  if (m_persistence == Persistence::None) return;
  m_runBar.chooseDevice(QSettings().value(kDeviceKey).toString());
  sayMissing();
}

/// Reports missing capabilities of a device once, and again when they change. The list of devices shows them too.
void DeviceMemory::sayMissing() {
  QStringList missing;
  for (const Json& device : m_devices)
    if (const std::string reason = device.value("reason", ""); !reason.empty())
      missing.append(QStringLiteral("%1: %2").arg(toQt(device.value("id", "")), toQt(reason)));
  QSettings settings;
  if (missing == settings.value(kMissingDevicesKey).toStringList()) return;
  settings.setValue(kMissingDevicesKey, missing);
  if (!missing.isEmpty()) Q_EMIT message(missing.join(u' '));
}

}  // namespace fuseline::ui
