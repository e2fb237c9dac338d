// The test is `fuseline devices --on HOST --json`, whose sentences it shows.
// SPDX-License-Identifier: Apache-2.0
#include "ui/machines/machine_dialog.h"

#include "ui/machines/ssh_hosts.h"
#include "ui/theme/format.h"

#include <QCompleter>
#include <QDialogButtonBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QVBoxLayout>

namespace fuseline::ui {

namespace {

constexpr int kDialogWidthPx = 560;
constexpr int kDeviceGapPx = 3;

/// "cuda:0: NVIDIA H100, sm_90, 80.0 GiB. Multiplies: Float8CurrentScaling, MXFP8BlockScaling", or the reason.
QString deviceText(const Json& device) {
  QString text = QStringLiteral("%1: %2").arg(toQt(device.value("id", "")), toQt(device.value("name", "")));
  if (const std::string reason = device.value("reason", ""); !reason.empty())
    return text + QStringLiteral(". ") + toQt(reason);
  if (const std::string architecture = device.value("architecture", ""); !architecture.empty())
    text += QStringLiteral(", ") + toQt(architecture);
  if (const std::int64_t bytes = device.value("memoryBytes", std::int64_t{0}); bytes > 0)
    text += QStringLiteral(", ") + formatByteCount(bytes);
  const auto recipes = device.find("nativeRecipes");
  if (recipes == device.end() || !recipes->is_array()) return text;
  QStringList names;
  for (const Json& each : *recipes)
    if (each.is_string()) names.append(toQt(each.get<std::string>()));
  return names.isEmpty() ? text : MachineDialog::tr("%1. Native recipes: %2").arg(text, names.join(", "));
}

/// The last sentence of the program's, without its name.
QString reasonIn(const QByteArray& errors) {
  QString text = QString::fromUtf8(errors.trimmed().split('\n').last()).trimmed();
  if (text.startsWith(QStringLiteral("fuseline: "))) text.remove(0, QStringLiteral("fuseline: ").size());
  return text.isEmpty() ? MachineDialog::tr("fuseline exited without an error message.") : text;
}

}  // namespace

MachineDialog::MachineDialog(Machines& machines, QWidget* parent)
    : QDialog(parent),
      m_machines(machines),
      m_host(new QLineEdit(this)),
      m_test(new QPushButton(tr("Test"), this)),
      m_status(new QLabel(this)),
      m_devices(new QListWidget(this)),
      m_add(new QPushButton(tr("Add"), this)),
      m_process(new QProcess(this)) {
  setWindowTitle(tr("Add a machine"));
  assemble();
  connect(m_host, &QLineEdit::textChanged, this, &MachineDialog::forgetTest);
  connect(m_test, &QPushButton::clicked, this, &MachineDialog::testOrStop);
  connect(m_add, &QPushButton::clicked, this, &MachineDialog::add);
  connect(m_process, &QProcess::finished, this, &MachineDialog::finishTest);
  connect(m_process, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error != QProcess::FailedToStart) return;
    forgetTest();
    m_status->setText(
        tr("fuseline could not be started: %1. Install it next to the designer.").arg(m_process->errorString()));
  });
  forgetTest();
}

void MachineDialog::assemble() {
  m_host->setPlaceholderText(tr("gpu-box, user@host or user@host:port"));
  m_host->setAccessibleName(tr("Host"));
  auto* hosts = new QCompleter(sshHosts(), m_host);
  hosts->setFilterMode(Qt::MatchContains);
  hosts->setCaseSensitivity(Qt::CaseInsensitive);
  m_host->setCompleter(hosts);
  m_status->setWordWrap(true);
  m_status->setTextInteractionFlags(Qt::TextSelectableByMouse);
  m_devices->setAccessibleName(tr("Devices of the machine"));
  m_devices->setWordWrap(true);
  m_devices->setSpacing(kDeviceGapPx);
  auto* line = new QHBoxLayout;
  line->addWidget(m_host, 1);
  line->addWidget(m_test);
  auto* form = new QFormLayout;
  form->addRow(tr("Host"), line);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
  buttons->addButton(m_add, QDialogButtonBox::AcceptRole);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  auto* rows = new QVBoxLayout(this);
  rows->addLayout(form);
  rows->addWidget(m_status);
  rows->addWidget(m_devices, 1);
  rows->addWidget(buttons);
  setMinimumWidth(kDialogWidthPx);
}

void MachineDialog::forgetTest() {
  m_found = Json();
  m_devices->clear();
  m_devices->hide();
  m_add->setEnabled(false);
  m_test->setDefault(true);
  m_test->setEnabled(!m_host->text().trimmed().isEmpty());
  m_status->setText(tr(
      "ssh connects with your keys and configuration. The first test copies Fuseline into ~/.cache on that machine."));
  adjustSize();
}

void MachineDialog::testOrStop() {
  if (m_process->state() != QProcess::NotRunning) return m_process->kill();
  forgetTest();
  const QStringList command = m_machines.devicesCommand(m_host->text().trimmed());
  m_host->setEnabled(false);
  m_test->setText(tr("Stop"));
  m_status->setText(tr("Connecting…"));
  m_process->start(command.front(), command.mid(1));
}

void MachineDialog::finishTest(int exitCode) {
  m_host->setEnabled(true);
  m_test->setText(tr("Test"));
  const QByteArray errors = m_process->readAllStandardError();
  if (m_process->exitStatus() == QProcess::CrashExit) return m_status->setText(tr("The test was stopped."));
  if (exitCode != 0) return m_status->setText(reasonIn(errors));
  const Json answer = Json::parse(m_process->readAllStandardOutput().toStdString(), nullptr, false);
  if (!answer.is_object() || !answer.contains("devices") || !answer["devices"].is_array())
    return m_status->setText(tr("The machine responded without a device list. Test again."));
  show(answer["devices"]);
}

void MachineDialog::show(const Json& devices) {
  m_found = devices;
  for (const Json& device : devices)
    if (device.is_object() && device.value("id", "") != "reference") m_devices->addItem(deviceText(device));
  m_status->setText(tr("Connected. The device box will list these devices."));
  m_devices->show();
  adjustSize();
  m_add->setEnabled(true);
  m_add->setDefault(true);
}

void MachineDialog::add() {
  m_machines.add({m_host->text().trimmed(), m_found});
  accept();
}

}  // namespace fuseline::ui
