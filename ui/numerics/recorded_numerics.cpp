// Numerics as a run file has them.
// SPDX-License-Identifier: Apache-2.0
#include "ui/numerics/recorded_numerics.h"

#include "ui/numerics/numerics_text.h"
#include "ui/runs/run_notes.h"
#include "ui/theme/format.h"
#include "ui/widgets/roomy_delegate.h"
#include "ui/widgets/table_copying.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QVBoxLayout>

namespace fuseline::ui {

namespace {

bool holdsNumbers(int column) { return column > RecordedNumerics::FormatColumn; }

QList<QStandardItem*> rowOfCopy(const CopyLosses& copy) {
  const QuantizationLosses& losses = copy.losses;
  const QStringList texts = {toQt(copy.name),
                             toQt(copy.format),
                             QString::number(losses.amax, 'g', 3),
                             QStringLiteral("2^%1").arg(losses.dynamicRange(), 0, 'f', 1),
                             scaleText(losses),
                             lossShareText(losses.underflowShare),
                             lossShareText(losses.saturationShare),
                             QString::number(losses.meanSquaredError, 'g', 2),
                             noiseText(losses)};
  QList<QStandardItem*> row;
  for (const QString& text : texts) {
    auto* item = new QStandardItem(text);
    item->setEditable(false);
    if (holdsNumbers(static_cast<int>(row.size()))) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
    row.append(item);
  }
  row.front()->setData(toQt(copy.owner), RecordedNumerics::OwnerRole);
  return row;
}

}  // namespace

RecordedNumerics::RecordedNumerics(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_theme(theme),
      m_caption(new QLabel(this)),
      m_measure(new QPushButton(tr("Measure every tensor"), this)),
      m_model(new QStandardItemModel(this)),
      m_view(new QTreeView(this)),
      m_nothing(new QLabel(tr("This run quantized no tensor, and its file stores only the output with the largest "
                              "error. Measure to list every tensor."),
                           this)) {
  m_caption->setTextFormat(Qt::RichText);
  m_caption->setWordWrap(true);
  m_caption->setTextInteractionFlags(Qt::TextSelectableByMouse);
  m_measure->setToolTip(tr("Measure the numerics of the pipeline on this machine (Ctrl+Shift+Enter)"));
  m_nothing->setAlignment(Qt::AlignCenter);
  m_nothing->setWordWrap(true);
  createView();
  auto* head = new QHBoxLayout;
  head->setContentsMargins(10, 6, 10, 6);
  head->addWidget(m_caption, 1);
  head->addWidget(m_measure, 0, Qt::AlignTop);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addLayout(head);
  layout->addWidget(m_view, 1);
  layout->addWidget(m_nothing, 1);
  connect(m_measure, &QPushButton::clicked, &session.runner(), &Runner::measureNumerics);
  connect(&session.runner(), &Runner::runningChanged, m_measure,
          [this, &session] { m_measure->setDisabled(session.runner().isRunning()); });
}

void RecordedNumerics::createView() {
  m_view->setModel(m_model);
  makeRoomy(*m_view);
  m_view->setRootIsDecorated(false);
  m_view->setAlternatingRowColors(true);
  m_view->setUniformRowHeights(true);
  m_view->setFrameShape(QFrame::NoFrame);
  m_view->setAccessibleName(tr("Quantization error in the run file"));
  m_view->header()->setStretchLastSection(false);
  m_view->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
  makeCopyable(*m_view);
  connect(m_view->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& current) {
    const QString owner = current.siblingAtColumn(CopyColumn).data(OwnerRole).toString();
    if (!owner.isEmpty()) m_session.selection().select({owner});
  });
}

bool RecordedNumerics::refresh() {
  const auto& run = m_session.results().lastRun();
  if (!run || !run->record.numerics) return false;
  m_caption->setText(captionText(*run));
  fill(*run->record.numerics);
  return true;
}

QString RecordedNumerics::captionText(const LastRun& run) const {
  const RunNumerics& numerics = *run.record.numerics;
  const auto strong = [this](const QString& text) {
    return QStringLiteral("<b style='color:%1'>%2</b>").arg(m_theme.colors().warning.name(), text.toHtmlEscaped());
  };
  QStringList verdicts;
  for (const auto& [what, verdict] : {std::pair(tr("unfused vs. float32"), &numerics.float32),
                                      std::pair(tr("fused vs. unfused"), &numerics.fusion)}) {
    const QString sentence = verdictSentence(what, *verdict);
    if (!sentence.isEmpty()) verdicts.append(verdict->isWithin ? sentence.toHtmlEscaped() : strong(sentence));
  }
  if (run.isStale) verdicts.append(strong(tr("the pipeline has changed since")));
  const QString whose = run.origin ? originText(run) : tr("Last run");
  return whose + QStringLiteral("<br>") + verdicts.join(QStringLiteral(" · "));
}

void RecordedNumerics::fill(const RunNumerics& numerics) {
  m_model->clear();
  m_model->setHorizontalHeaderLabels({tr("Quantized tensor"), tr("Format"), tr("amax"), tr("Range"), tr("scale_inv"),
                                      tr("Underflow"), tr("Saturated"), tr("Mean squared error"),
                                      tr("Signal to noise")});
  for (int column = 0; column < ColumnCount; ++column)
    if (holdsNumbers(column))
      m_model->horizontalHeaderItem(column)->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  for (const CopyLosses& copy : numerics.copies)
    if (!m_filter || m_filter->keepsRow(copy.name, copy.owner, passesOf(copy.name)))
      m_model->appendRow(rowOfCopy(copy));
  m_view->setVisible(!numerics.copies.empty());
  m_nothing->setVisible(numerics.copies.empty());
}

}  // namespace fuseline::ui
