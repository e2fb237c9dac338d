// The run toolbar.
// SPDX-License-Identifier: Apache-2.0
#include "ui/runs/run_bar.h"

#include "ui/fusions/unplanned.h"
#include "ui/inspector/recipe_section.h"
#include "ui/inspector/recipe_support.h"
#include "ui/runs/run_progress.h"
#include "ui/theme/format.h"

#include <QHBoxLayout>
#include <QStandardItemModel>

#include <set>

namespace fuseline::ui {

namespace {

constexpr int kProgressWidthPx = 140;
constexpr int kArchitectureRole = Qt::UserRole + 1;
constexpr int kDeviceRole = Qt::UserRole + 2;
constexpr int kHostRole = Qt::UserRole + 3;
constexpr int kUnwantedRole = Qt::UserRole + 4;  // of an entry that removes this machine

}  // namespace

RunBar::RunBar(Session& session, const Theme& theme, QWidget* parent)
    : QToolBar(tr("Run"), parent),
      m_session(session),
      m_theme(theme),
      m_run(new QAction(tr("Run"), this)),
      m_stop(new QAction(tr("Stop"), this)),
      m_refusal(new QAction(this)),
      m_pass(new QComboBox(this)),
      m_recipe(new QComboBox(this)),
      m_progressLine(new QWidget(this)),
      m_progressText(new QLabel(m_progressLine)),
      m_progress(new QProgressBar(m_progressLine)),
      m_device(new QComboBox(this)),
      m_ranks(new QComboBox(this)) {
  setObjectName(QStringLiteral("runBar"));
  setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  setIconSize({18, 18});
  m_run->setShortcuts({QKeySequence(Qt::CTRL | Qt::Key_Return), QKeySequence(Qt::CTRL | Qt::Key_Enter)});
  m_stop->setShortcut(QKeySequence(Qt::CTRL | Qt::Key_Period));
  m_stop->setToolTip(tr("Stop the run (Ctrl+. or Esc)"));
  createChoices();
  createProgress();
  m_device->setAccessibleName(tr("Device"));
  m_device->setToolTip(tr("Device to plan for and run on"));
  m_device->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  addAction(m_run);
  addAction(m_stop);
  addWidget(m_pass);
  addWidget(m_recipe);
  addWidget(m_device);
  addWidget(m_ranks);
  follow();
  connect(&theme, &Theme::changed, this, &RunBar::refreshIcons);
  refreshIcons();
  refresh();
}

/// The text stands beside the bar, in room for the longest one.
void RunBar::createProgress() {
  m_progressText->setFixedWidth(m_progressText->fontMetrics().horizontalAdvance(longestProgressText()));
  m_progressText->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  m_progress->setTextVisible(false);
  m_progress->setFixedWidth(kProgressWidthPx);
  m_progress->setAccessibleName(tr("Progress of the run"));
  auto* row = new QHBoxLayout(m_progressLine);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(m_progressText);
  row->addWidget(m_progress);
}

void RunBar::createChoices() {
  m_pass->addItem(tr("Forward + backward"), static_cast<int>(ExecutionMode::Training));
  m_pass->addItem(tr("Forward only"), static_cast<int>(ExecutionMode::Inference));
  m_pass->setAccessibleName(tr("Pass"));
  m_pass->setToolTip(tr("Passes to plan and run"));
  for (const RecipeDefinition& recipe : builtinRecipes())
    m_recipe->addItem(recipe.quantizer ? toQt(recipe.name) : tr("No quantization"), toQt(recipe.name));
  m_recipe->setAccessibleName(tr("Quantization recipe"));
  m_recipe->setToolTip(tr("Number format of GEMM operands in linear layers. The inspector shows the recipe's fields"));
  connect(m_pass, &QComboBox::activated, this,
          [this] { m_session.setup().setPass(static_cast<ExecutionMode>(m_pass->currentData().toInt())); });
  connect(m_device, &QComboBox::activated, this, &RunBar::takeDevice);
  m_ranks->setAccessibleName(tr("Ranks"));
  m_ranks->setToolTip(
      tr("Tensor-parallel ranks to plan and run. On the CPU they are threads that share its cores; on "
         "CUDA each needs a GPU. Other numbers of ranks: Inspector, with no op selected. Chunks of collectives: Run "
         "options"));
  m_ranks->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  connect(m_ranks, &QComboBox::activated, this, [this] { m_session.setup().setRanks(m_ranks->currentData().toInt()); });
  connect(m_recipe, &QComboBox::activated, this, [this] {
    const std::string name = m_recipe->currentData().toString().toStdString();
    m_session.pipeline().apply(SetRecipe{.recipe = recipeJson(*findRecipe(name))});
  });
}

void RunBar::follow() {
  connect(m_stop, &QAction::triggered, &m_session.runner(), &Runner::cancel);
  connect(m_run, &QAction::changed, this, &RunBar::refreshRefusal);
  connect(m_refusal, &QAction::triggered, this, [this] { Q_EMIT refused(whyNotRunnable(m_session)); });
  refreshRefusal();
  connect(&m_session.plan(), &LivePlan::analysisChanged, this, &RunBar::refresh);
  connect(&m_session.setup(), &RunSetup::passChanged, this, &RunBar::refresh);
  connect(&m_session.setup(), &RunSetup::runTargetChanged, this, &RunBar::refreshRecipes);
  connect(&m_session.setup(), &RunSetup::runTargetChanged, this, &RunBar::refresh);
  connect(&m_session.setup(), &RunSetup::ranksChanged, this, &RunBar::refresh);
  connect(&m_session.runner(), &Runner::started, this, [this] {
    showProgress(QStringLiteral("starting"), 0, 0);
    refresh();
  });
  connect(&m_session.runner(), &Runner::sweepingChanged, this, [this] {
    showProgress(QStringLiteral("starting"), 0, 0);
    refresh();
  });
  connect(&m_session.runner(), &Runner::progress, this, &RunBar::showProgress);
  connect(&m_session.runner(), &Runner::finished, this, &RunBar::refresh);
  connect(&m_session.runner(), &Runner::numericsFinished, this, &RunBar::refresh);
  connect(&m_session.runner(), &Runner::tensorsCaptured, this, &RunBar::refresh);
  connect(&m_session.runner(), &Runner::failed, this, &RunBar::refresh);
  connect(&m_session.runner(), &Runner::dropped, this, &RunBar::refresh);
}

void RunBar::refreshIcons() {
  m_run->setIcon(m_theme.icon(QStringLiteral("run"), m_theme.colors().good));
  m_stop->setIcon(m_theme.icon(QStringLiteral("stop")));
  refreshRecipes();
}

void RunBar::refresh() {
  const bool isRunnable = m_session.plan().analysis()->isRunnable();
  m_run->setEnabled(isRunnable && !m_session.runner().isRunning());
  m_stop->setEnabled(m_session.runner().isRunning());
  m_pass->setCurrentIndex(m_pass->findData(static_cast<int>(m_session.setup().pass())));
  showRecipe(*m_recipe, m_session.pipeline().document());
  m_run->setToolTip(runTip());
  m_device->setCurrentIndex(m_device->findData(toQt(m_session.setup().runTarget().place())));
  refreshRanks();
  m_recipe->setEnabled(!m_session.pipeline().document().isReadOnly());
  m_progressLine->setVisible(m_session.runner().isRunning());
  refreshRefusal();
}

/// Powers of two, and whichever other number the inspector, or an option of the program, has chosen.
void RunBar::refreshRanks() {
  std::set<int> numbers = {1, 2, 4, 8};
  numbers.insert(m_session.setup().ranks());
  m_ranks->clear();
  for (const int number : numbers) m_ranks->addItem(counted(number, tr("rank"), tr("ranks")), number);
  m_ranks->setCurrentIndex(m_ranks->findData(m_session.setup().ranks()));
}

void RunBar::refreshRefusal() {
  m_refusal->setShortcuts(m_run->shortcuts());
  m_refusal->setEnabled(!m_session.plan().analysis()->isRunnable() && !m_session.plan().isAnalysing());
}

QString RunBar::runTip() const {
  if (m_session.runner().isSweeping()) return tr("A sweep is in progress. Stop it, or wait for it to end.");
  if (!m_session.plan().analysis()->isRunnable()) return whyNotRunnable(m_session);
  const QString whyNot = m_recipe->currentData(Qt::ToolTipRole).toString();
  return whyNot.isEmpty() ? tr("Measure the unfused and the fused plan (Ctrl+Enter)")
                          : tr("You can plan for this device, but not run on it. %1").arg(whyNot);
}

void RunBar::refreshRecipes() {
  for (int row = 0; row < m_recipe->count(); ++row) {
    const RecipeDefinition& recipe = *findRecipe(m_recipe->itemData(row).toString().toStdString());
    const QString whyNot = whyNotOn(m_session.setup().runTarget(), *Recipe::create(recipe));
    m_recipe->setItemData(row, whyNot.isEmpty() ? QVariant() : QVariant(whyNot), Qt::ToolTipRole);
    m_recipe->setItemData(row, whyNot.isEmpty() ? QVariant() : QVariant(m_theme.colors().disabledText),
                          Qt::ForegroundRole);
    m_recipe->setItemIcon(
        row, whyNot.isEmpty() ? QIcon() : m_theme.icon(QStringLiteral("warning"), m_theme.colors().warning));
  }
}

void RunBar::showProgress(const QString& stage, int done, int total) {
  if (stage != m_stage || done == 0) m_stageClock.restart();
  m_stage = stage;
  m_progress->setRange(0, total > 1 ? total : 0);
  m_progress->setValue(done);
  const QString text = stageText(stage, m_session.setup().runTarget().isGpu());
  m_progressText->setText(progressText(text, done, total, m_stageClock.elapsed()));
}

void RunBar::setDevices(const Json& devices) {
  if (!m_session.setup().runTarget().host.empty()) return;  // the worker that listed them is on another machine
  m_devices = devices;
  fillDevices();
}

void RunBar::setMachines(std::vector<std::pair<QString, Json>> machines) {
  m_machines = std::move(machines);
  m_addsMachines = true;
  fillDevices();
}

void RunBar::fillDevices() {
  m_device->clear();
  for (const Json& device : m_devices) addDevice(device, {});
  for (const auto& [host, devices] : m_machines)
    for (const Json& device : devices) addDevice(device, host);
  if (m_addsMachines && m_device->count() > 0) addMachineEntries();
  refresh();
}

void RunBar::addMachineEntries() {
  m_device->insertSeparator(m_device->count());
  m_device->addItem(tr("Add a machine…"), QString());
  for (const auto& [host, devices] : m_machines) {
    m_device->addItem(tr("Remove %1").arg(host), QString());
    m_device->setItemData(m_device->count() - 1, host, kUnwantedRole);
    m_device->setItemData(m_device->count() - 1, tr("Removes the devices of %1 from this list").arg(host),
                          Qt::ToolTipRole);
  }
}

/// The name alone where the device is of this machine.
void RunBar::addDevice(const Json& device, const QString& host) {
  const QString id = toQt(device.value("id", ""));
  if (id == QStringLiteral("reference")) return;  // the oracle of tests, not a user's device
  const QString name = toQt(device.value("name", ""));
  const QString reason = toQt(device.value("reason", ""));
  const RunTarget target{.device = id.toStdString(), .host = host.toStdString()};
  m_device->addItem(QStringLiteral("%1: %2").arg(host.isEmpty() ? id : host + u' ' + id, name), toQt(target.place()));
  const int row = m_device->count() - 1;
  m_device->setItemData(row, toQt(device.value("architecture", "")), kArchitectureRole);
  m_device->setItemData(row, id, kDeviceRole);
  m_device->setItemData(row, host, kHostRole);
  m_device->setItemData(row, reason.isEmpty() ? name : reason, Qt::ToolTipRole);
  qobject_cast<QStandardItemModel*>(m_device->model())->item(row)->setEnabled(reason.isEmpty());
}

void RunBar::chooseDevice(const QString& id) {
  const int row = id.isEmpty() ? -1 : m_device->findData(id);
  if (row >= 0 && (m_device->model()->index(row, 0).flags() & Qt::ItemIsEnabled)) takeDevice(row);
}

void RunBar::takeDevice(int index) {
  RunTarget target = m_session.setup().runTarget();
  if (m_device->itemData(index).toString().isEmpty())
    return takeEntry(m_device->itemData(index, kUnwantedRole).toString());
  const std::string host = m_device->itemData(index, kHostRole).toString().toStdString();
  if (host != target.host && m_session.runner().isRunning()) {
    refresh();
    return Q_EMIT refused(tr("A run is in progress. Stop it before you choose another machine."));
  }
  target.device = m_device->itemData(index, kDeviceRole).toString().toStdString();
  target.host = host;
  target.architecture = m_device->itemData(index, kArchitectureRole).toString().toStdString();
  m_session.setup().setRunTarget(target);
}

/// The chosen device stays chosen.
void RunBar::takeEntry(const QString& unwantedHost) {
  refresh();
  if (unwantedHost.isEmpty()) return Q_EMIT machineWanted();
  const bool isInUse = m_session.runner().isRunning() && toQt(m_session.setup().runTarget().host) == unwantedHost;
  if (isInUse)
    return Q_EMIT refused(tr("A run is in progress on %1. Stop it before you remove the machine.").arg(unwantedHost));
  Q_EMIT machineUnwanted(unwantedHost);
}

}  // namespace fuseline::ui
