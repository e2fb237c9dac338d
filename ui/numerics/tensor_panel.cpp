// The tensor dock: a choice, a capture, a table of its numbers.
// SPDX-License-Identifier: Apache-2.0
#include "ui/numerics/tensor_panel.h"

#include "core/support/text.h"
#include "core/tensor/npy.h"
#include "ui/session/large_pipeline.h"
#include "ui/theme/format.h"
#include "ui/widgets/file_choice.h"
#include "ui/widgets/seen_refresh.h"

#include <QHBoxLayout>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr int kTensorSidePx = 8;

QString figure(double value) { return std::isnan(value) ? QStringLiteral("–") : QString::number(value, 'g', 4); }

/// "6 zeros (0.02 %)".
QString shareText(std::int64_t count, std::int64_t elements, const QString& noun) {
  const double percent = elements == 0 ? 0.0 : 100.0 * static_cast<double>(count) / static_cast<double>(elements);
  return QStringLiteral("%1 %2 (%3 %)").arg(QString::number(count), noun, QString::number(percent, 'g', 2));
}

bool isMade(const CapturableTensor& tensor) { return tensor.kind == "output" || tensor.kind == "intermediate"; }

}  // namespace

TensorPanel::TensorPanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_theme(theme),
      m_plan(new QComboBox(this)),
      m_tensor(new QComboBox(this)),
      m_capture(new QPushButton(tr("Capture"), this)),
      m_size(new QLabel(this)),
      m_caption(new QLabel(this)),
      m_table(new TensorTable(theme, this)),
      m_hint(new QLabel(this)),
      m_unfused(new QPushButton(tr("Use the unfused plan"), this)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(createChoice());
  m_caption->setContentsMargins(kTensorSidePx, 0, kTensorSidePx, 2);
  m_caption->setWordWrap(true);
  m_caption->setTextInteractionFlags(Qt::TextSelectableByMouse);
  layout->addWidget(m_caption);
  layout->addWidget(m_table, 1);
  layout->addWidget(m_hintArea = createHint(), 1);
  connect(m_table, &TensorTable::message, this, &TensorPanel::message);
  connect(m_table, &TensorTable::saveWanted, this, &TensorPanel::saveAs);
  connectSession();
  refresh();
}

// ------------------------------------------------------------------------------------------------------- construction

QWidget* TensorPanel::createChoice() {
  auto* choice = new QWidget(this);
  m_plan->addItem(tr("Fused plan"));
  m_plan->addItem(tr("Unfused plan"));
  m_plan->setAccessibleName(tr("Plan"));
  m_plan->setToolTip(tr("The plan whose tensors are captured. The fused plan stores fewer tensors."));
  m_tensor->setAccessibleName(tr("Tensor"));
  m_tensor->setToolTip(tr("Tensors of the selected op, or of the whole pipeline if none is selected"));
  m_tensor->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  m_tensor->setMinimumContentsLength(30);
  auto* row = new QHBoxLayout(choice);
  row->setContentsMargins(kTensorSidePx, 4, kTensorSidePx, 4);
  row->addWidget(m_plan);
  row->addWidget(m_tensor, 1);
  row->addWidget(m_capture);
  row->addWidget(m_size);
  connect(m_plan, &QComboBox::currentIndexChanged, this, &TensorPanel::refresh);
  connect(m_tensor, &QComboBox::currentIndexChanged, this, &TensorPanel::showChosen);
  connect(m_capture, &QPushButton::clicked, this, &TensorPanel::capture);
  return choice;
}

QWidget* TensorPanel::createHint() {
  auto* area = new QWidget(this);
  m_hint->setAlignment(Qt::AlignCenter);
  m_hint->setWordWrap(true);
  connect(m_unfused, &QPushButton::clicked, this, [this] {
    const CapturableTensor* tensor = chosen();
    const std::string name = tensor ? tensor->name : std::string();
    m_plan->setCurrentIndex(static_cast<int>(PlanChoice::Unfused));
    choose(name);
    captureUnlessShown();
  });
  auto* layout = new QVBoxLayout(area);
  layout->addStretch();
  layout->addWidget(m_hint);
  layout->addWidget(m_unfused, 0, Qt::AlignHCenter);
  layout->addStretch();
  return area;
}

void TensorPanel::connectSession() {
  connect(&m_session.runner(), &Runner::tensorsCaptured, this, &TensorPanel::showChosen);
  connect(&m_session.pipeline(), &OpenPipeline::replaced, this, &TensorPanel::refresh);
  auto* seen = new SeenRefresh(
      *this, [this] { return isLarge(m_session); }, [this] { refresh(); },
      [this] { return m_session.plan().isAnalysing(); });
  connect(&m_session.plan(), &LivePlan::analysisChanged, seen, &SeenRefresh::request);
  connect(&m_session.selection(), &Selection::changed, this, [this] {
    if (isVisible()) fillTensors();
  });
  connect(&m_session.pipeline(), &OpenPipeline::changed, this, &TensorPanel::refreshCaption);
  for (const auto signal : {&RunSetup::passChanged, &RunSetup::runTargetChanged, &RunSetup::tensorSourceChanged})
    connect(&m_session.setup(), signal, this, &TensorPanel::refreshCaption);
  connect(&m_session.runner(), &Runner::runningChanged, this, &TensorPanel::refreshCapture);
  connect(&m_theme, &Theme::changed, this, &TensorPanel::refreshCaption);
}

// ------------------------------------------------------------------------------------------------------------- choice

PlanChoice TensorPanel::plan() const { return static_cast<PlanChoice>(m_plan->currentIndex()); }

/// nullptr: the pipeline cannot run.
const Plan* TensorPanel::chosenPlan() const {
  const Analysis& analysis = *m_session.plan().analysis();
  if (!analysis.isRunnable()) return nullptr;
  return plan() == PlanChoice::Fused ? &*analysis.fusedPlan : &analysis.unfusedPlan();
}

void TensorPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  refresh();
}

void TensorPanel::refresh() {
  if (!isVisible()) return;
  listAll();
  fillTensors();
}

void TensorPanel::listAll() {
  m_analysis = m_session.plan().analysis();
  const Plan* listed = chosenPlan();
  m_all = listed ? capturableTensors(*m_session.plan().analysis(), *listed) : std::vector<CapturableTensor>();
}

bool TensorPanel::isInScope(const CapturableTensor& tensor) const {
  const std::string op = m_session.selection().single().toStdString();
  const Graph& graph = m_analysis->graph();
  return op.empty() || tensor.name == op || tensor.name == "grad." + op ||
         std::ranges::any_of(tensor.nodes, [&](NodeId id) { return graph.node(id).isAt(op); });
}

/// The tensor that was chosen stays so, if it is there.
void TensorPanel::fillTensors() {
  const std::string before = chosen() ? chosen()->name : std::string();
  m_listed.clear();
  std::ranges::copy_if(m_all, std::back_inserter(m_listed),
                       [this](const CapturableTensor& tensor) { return isInScope(tensor); });
  {
    const QSignalBlocker blocker(m_tensor);
    QStringList texts;
    for (const CapturableTensor& tensor : m_listed)
      texts.append(tensor.isStored()
                       ? tr("%1 · %2, %3").arg(toQt(tensor.name), formatSpec(tensor.spec), toQt(tensor.kind))
                       : tr("%1 · never stored").arg(toQt(tensor.name)));
    m_tensor->clear();
    m_tensor->addItems(texts);
  }
  choose(before);
}

/// Or else the output of the selected op: the first of its last part, or of the last one that is stored.
void TensorPanel::choose(const std::string& tensor) {
  auto found = std::ranges::find(m_listed, tensor, &CapturableTensor::name);
  const std::string op = m_session.selection().single().toStdString();
  const auto rank = [&](const CapturableTensor& each) {
    const bool isOfOp = isMade(each) && each.owner == op;
    return std::tuple(isOfOp, isOfOp && each.isStored(), isOfOp ? each.nodes.front() : 0);
  };
  if (found == m_listed.end()) found = std::ranges::max_element(m_listed, {}, rank);
  m_tensor->setCurrentIndex(found == m_listed.end() ? 0 : static_cast<int>(found - m_listed.begin()));
  showChosen();
}

const CapturableTensor* TensorPanel::chosen() const {
  const auto index = static_cast<std::size_t>(m_tensor->currentIndex());
  return index < m_listed.size() ? &m_listed[index] : nullptr;
}

void TensorPanel::lookAt(const QString& tensor) {
  listAll();
  const auto found = std::ranges::find(m_all, tensor.toStdString(), &CapturableTensor::name);
  if (found != m_all.end() && !isInScope(*found))
    m_session.selection().select(found->owner.empty() ? QSet<QString>() : QSet<QString>{toQt(found->owner)});
  fillTensors();
  choose(tensor.toStdString());
  captureUnlessShown();
}

void TensorPanel::lookAtSelected() {
  listAll();
  m_listed.clear();
  fillTensors();
  captureUnlessShown();
}

// ------------------------------------------------------------------------------------------------------------ capture

/// All of the selected op, but where they are too much for a capture; else the chosen one.
std::vector<std::string> TensorPanel::namesToCapture() const {
  std::vector<std::string> names;
  std::int64_t bytes = 0;
  for (const CapturableTensor& tensor : m_listed) {
    if (!tensor.isStored()) continue;
    names.push_back(tensor.name);
    bytes += tensor.spec.bytes();
  }
  const bool isOfAnOp = !m_session.selection().single().isEmpty();
  if (!chosen() || (isOfAnOp && bytes <= kCaptureLimitBytes)) return names;
  return {chosen()->name};
}

QString TensorPanel::sizeOf(const std::vector<std::string>& names) const {
  std::int64_t bytes = 0;
  for (const CapturableTensor& tensor : m_listed)
    if (std::ranges::find(names, tensor.name) != names.end()) bytes += tensor.spec.bytes();
  const QString what = names.size() == 1 ? toQt(names.front()) : tr("%1 tensors").arg(names.size());
  const QString size = toQt(formatBytes(bytes));
  if (bytes <= kCaptureLimitBytes) return tr("%1, %2").arg(what, size);
  return tr("%1, %2: above the capture limit of %3").arg(what, size, toQt(formatBytes(kCaptureLimitBytes)));
}

void TensorPanel::refreshCapture() {
  const CapturableTensor* tensor = chosen();
  const std::vector<std::string> names = namesToCapture();
  const bool isSmall = names.size() != 1 || !tensor || tensor->spec.bytes() <= kCaptureLimitBytes;
  m_capture->setEnabled(tensor && tensor->isStored() && isSmall && !m_session.runner().isRunning());
  m_capture->setToolTip(
      m_session.runner().isRunning()
          ? tr("A run is in progress. Capture after it has ended.")
          : tr("Runs the pipeline once and captures these tensors, after the same warm-up as Numerics"));
  m_size->setText(names.empty() ? QString() : sizeOf(names));
}

void TensorPanel::capture() {
  if (m_capture->isEnabled()) m_session.runner().captureTensors(namesToCapture(), plan());
}

/// Captures again if the pipeline has changed.
void TensorPanel::captureUnlessShown() {
  if (!shown() || m_session.results().lastCapture()->isStale) capture();
}

// ------------------------------------------------------------------------------------------------------------ showing

/// nullptr: it was not captured, or in the other plan.
const TensorSummary* TensorPanel::shown() const {
  const auto& last = m_session.results().lastCapture();
  return last && chosen() && last->plan == plan() ? last->find(chosen()->name) : nullptr;
}

void TensorPanel::showChosen() {
  const TensorSummary* summary = shown();
  summary ? m_table->setTensor(*summary, m_session.results().lastCapture()->file) : m_table->clear();
  for (QWidget* part : {static_cast<QWidget*>(m_caption), static_cast<QWidget*>(m_table)}) part->setVisible(summary);
  m_hintArea->setVisible(!summary);
  m_hint->setText(hintFor(chosen()));
  m_unfused->setVisible(chosen() && !chosen()->isStored());
  refreshCapture();
  refreshCaption();
}

QString TensorPanel::hintFor(const CapturableTensor* chosen) const {
  if (!m_session.plan().analysis()->isRunnable()) return tr("The pipeline has errors and cannot run. See Problems.");
  if (!chosen) return tr("No op is selected. Select an op to inspect its inputs, outputs and gradients.");
  if (!chosen->isStored())
    return tr("%1 Switch that fusion off (T), or use the unfused plan.").arg(toQt(neverStoredText(*chosen)));
  return tr("%1, %2, is not captured yet. Press Capture to run the pipeline once and show its values.")
      .arg(toQt(chosen->name), formatSpec(chosen->spec));
}

QString TensorPanel::strong(const QString& text) const {
  return QStringLiteral("<b style='color:%1'>%2</b>").arg(m_theme.colors().warning.name(), text.toHtmlEscaped());
}

QString TensorPanel::statisticsText(const TensorStatistics& statistics) const {
  QStringList parts;
  for (const auto& [name, value] : {std::pair(tr("min"), statistics.min),
                                    {tr("max"), statistics.max},
                                    {tr("mean"), statistics.mean},
                                    {tr("std"), statistics.std},
                                    {tr("L1"), statistics.l1},
                                    {tr("L2"), statistics.l2}})
    parts.append(QStringLiteral("%1 %2").arg(name, figure(value)));
  parts.append(shareText(statistics.zeros, statistics.elements, tr("zeros")));
  if (statistics.nans + statistics.infinities == 0) parts.append(tr("no NaN, no ∞"));
  if (statistics.nans > 0) parts.append(strong(shareText(statistics.nans, statistics.elements, tr("NaN"))));
  if (statistics.infinities > 0) parts.append(strong(shareText(statistics.infinities, statistics.elements, tr("∞"))));
  return parts.join(QStringLiteral(" · "));
}

void TensorPanel::refreshCaption() {
  const TensorSummary* summary = shown();
  if (!summary) return;
  QStringList parts = {QStringLiteral("<b>%1</b>").arg(toQt(summary->name).toHtmlEscaped()), formatSpec(summary->spec),
                       toQt(formatBytes(summary->spec.bytes())), statisticsText(summary->statistics)};
  if (chosen()->kind == "quantized tensor") parts.append(tr("dequantized"));
  const TensorModel& numbers = m_table->model();
  if (numbers.isCutOff())
    parts.append(strong(
        tr("table limited to the first %1 rows and %2 columns").arg(numbers.rowCount()).arg(numbers.columnCount())));
  if (m_session.results().lastCapture()->isStale)
    parts.append(strong(tr("the pipeline has changed since: capture again")));
  m_caption->setText(parts.join(QStringLiteral(" · ")));
}

// ------------------------------------------------------------------------------------------------------------- taking

Result<void> TensorPanel::save(const QString& path) const {
  const TensorSummary* summary = shown();
  const std::optional<Tensor> tensor =
      summary ? m_session.results().lastCapture()->file->tensor(summary->name) : std::nullopt;
  if (!tensor) return Error{tr("No tensor to save. Capture one first.").toStdString()};
  if (path.endsWith(QStringLiteral(".npy"))) return writeNpy(path.toStdString(), *tensor);
  return writeSafetensors(path.toStdString(), {{summary->name, *tensor}});
}

void TensorPanel::saveAs() {
  const QString path = fileToSave({.purpose = QStringLiteral("tensors"),
                                   .title = tr("Save the tensor"),
                                   .patterns = tr("NumPy (*.npy);;Tensors (*.safetensors)"),
                                   .pipeline = m_session.pipeline().path(),
                                   .ending = QStringLiteral("npy")},
                                  this);
  if (path.isEmpty()) return;
  const Result<void> saved = save(path);
  const bool isWidened =
      path.endsWith(QStringLiteral(".npy")) && saved && npyDType(shown()->spec.dtype) != shown()->spec.dtype;
  const QString widened =
      isWidened ? tr(" Converted to float32: NumPy has no %1.").arg(toQt(dtypeName(shown()->spec.dtype))) : QString();
  Q_EMIT message(saved ? tr("Tensor saved to %1.").arg(path) + widened : toQt(saved.error().message));
}

}  // namespace fuseline::ui
