// Machines: the other machines that the user added, with the devices that they had then.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"

#include <QObject>
#include <QString>
#include <QStringList>

#include <vector>

namespace fuseline::ui {

/// A host as ssh takes it, and its devices as `fuseline devices --json` lists them.
struct Machine {
  QString host;
  Json devices = Json::array();
};

class Machines : public QObject {
  Q_OBJECT

 public:
  /// localWorker: the command that runs pipelines on this machine. isKept: in the user's settings.
  Machines(QStringList localWorker, bool isKept, QObject* parent = nullptr);

  const std::vector<Machine>& all() const { return m_machines; }
  /// In place of one of the same host.
  void add(Machine machine);
  void remove(const QString& host);

  /// The command that runs pipelines there; an empty host is this machine.
  QStringList workerCommand(const QString& host) const;
  /// The command that lists its devices as JSON.
  QStringList devicesCommand(const QString& host) const;

 Q_SIGNALS:
  void changed();

 private:
  QString program() const;
  void keep() const;

  QStringList m_localWorker;
  bool m_isKept;
  std::vector<Machine> m_machines;
};

}  // namespace fuseline::ui
