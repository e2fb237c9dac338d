// Kept as one JSON text, as devices are JSON.
// SPDX-License-Identifier: Apache-2.0
#include "ui/machines/machines.h"

#include "ui/theme/format.h"

#include <QCoreApplication>
#include <QDir>
#include <QSettings>

#include <algorithm>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr auto kMachinesKey = "run/machines";

/// Text that is none of ours holds no machines.
std::vector<Machine> machinesIn(const QString& text) {
  std::vector<Machine> machines;
  const Json list = Json::parse(text.toStdString(), nullptr, false);
  if (!list.is_array()) return machines;
  for (const Json& each : list)
    if (each.is_object() && each.contains("host") && each["host"].is_string() && each.contains("devices") &&
        each["devices"].is_array())
      machines.push_back({toQt(each["host"].get<std::string>()), each["devices"]});
  return machines;
}

}  // namespace

Machines::Machines(QStringList localWorker, bool isKept, QObject* parent)
    : QObject(parent), m_localWorker(std::move(localWorker)), m_isKept(isKept) {
  if (m_isKept) m_machines = machinesIn(QSettings().value(kMachinesKey).toString());
}

void Machines::add(Machine machine) {
  std::erase_if(m_machines, [&](const Machine& each) { return each.host == machine.host; });
  m_machines.push_back(std::move(machine));
  keep();
  Q_EMIT changed();
}

void Machines::remove(const QString& host) {
  std::erase_if(m_machines, [&](const Machine& each) { return each.host == host; });
  keep();
  Q_EMIT changed();
}

void Machines::keep() const {
  if (!m_isKept) return;
  Json list = Json::array();
  for (const Machine& each : m_machines) list.push_back({{"host", each.host.toStdString()}, {"devices", each.devices}});
  QSettings().setValue(kMachinesKey, toQt(list.dump()));
}

/// The worker's own where it is plain `fuseline worker`; --worker may be any command.
QString Machines::program() const {
  const bool isPlain = m_localWorker.size() == 2 && m_localWorker[1] == QStringLiteral("worker");
  return isPlain ? m_localWorker.front()
                 : QDir(QCoreApplication::applicationDirPath()).filePath(QStringLiteral("fuseline"));
}

QStringList Machines::workerCommand(const QString& host) const {
  if (host.isEmpty()) return m_localWorker;
  return {program(), QStringLiteral("worker"), QStringLiteral("--on=") + host};
}

QStringList Machines::devicesCommand(const QString& host) const {
  return {program(), QStringLiteral("devices"), QStringLiteral("--json"), QStringLiteral("--on=") + host};
}

}  // namespace fuseline::ui
