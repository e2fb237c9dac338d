// The log dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/log_panel.h"

#include "ui/numerics/numerics_text.h"
#include "ui/runs/measured_examples.h"
#include "ui/theme/format.h"

#include <QClipboard>
#include <QDesktopServices>
#include <QDir>
#include <QGuiApplication>
#include <QHeaderView>
#include <QRegularExpression>
#include <QUrl>
#include <QVBoxLayout>

namespace fuseline::ui {

namespace {
constexpr int kTimeWidthPx = 100;

/// The ops whose ids stand in the sentence as words.
QSet<QString> opsNamedIn(const QString& sentence, const PipelineDocument& document) {
  static const QRegularExpression notOfAnId(QStringLiteral("[^A-Za-z0-9_-]+"));
  QSet<QString> named;
  for (const QString& word : sentence.split(notOfAnId, Qt::SkipEmptyParts))
    if (document.findOp(word.toStdString())) named.insert(word);
  return named;
}
}  // namespace

LogPanel::LogPanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent), m_session(session), m_log(new MessageLog(theme, this)), m_view(new QTreeView(this)) {
  m_view->setModel(m_log);
  m_view->setRootIsDecorated(false);
  m_view->setAlternatingRowColors(true);
  m_view->setFrameShape(QFrame::NoFrame);
  m_view->setAccessibleName(tr("Log"));
  m_view->setToolTip(tr("Enter or double-click: select the ops that a message names."));
  m_view->setColumnWidth(MessageLog::TimeColumn, kTimeWidthPx);
  m_view->setContextMenuPolicy(Qt::ActionsContextMenu);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(m_view);
  addCommand(tr("Copy the log"), [this] { QGuiApplication::clipboard()->setText(m_log->asText()); });
  addCommand(tr("Clear the log"), [this] { m_log->clear(); });
  connect(m_view, &QTreeView::activated, this, &LogPanel::selectOpsOf);
  connect(m_log, &MessageLog::rowsInserted, m_view, &QTreeView::scrollToBottom);
  connect(&theme, &Theme::changed, m_view->viewport(), qOverload<>(&QWidget::update));
  followRuns();
}

void LogPanel::followRuns() {
  const auto note = [this](const QString& sentence) {
    m_log->add(Severity::Note, sentence, MessageLog::Repeated::Kept);
  };
  connect(&m_session.runner(), &Runner::measured, this,
          [this, note] { note(tr("Measured: %1").arg(summaryOf(m_session.results().lastRun()->record))); });
  connect(&m_session.runner(), &Runner::numericsFinished, this, [this, note] {
    if (m_session.results().lastNumerics())
      note(tr("Numerics: %1").arg(summaryOf(m_session.results().lastNumerics()->report)));
  });
  connect(&m_session.runner(), &Runner::tensorsCaptured, this, [this, note] {
    if (m_session.results().lastCapture())
      note(tr("Captured %1.")
               .arg(counted(std::ssize(m_session.results().lastCapture()->tensors), tr("tensor"), tr("tensors"))));
  });
}

void LogPanel::addCommand(const QString& text, const std::function<void()>& run) {
  auto* action = new QAction(text, this);
  connect(action, &QAction::triggered, this, run);
  m_view->addAction(action);
}

void LogPanel::offerFolder(const QString& text, const QString& folder) {
  addCommand(text, [folder] {
    QDir().mkpath(folder);
    QDesktopServices::openUrl(QUrl::fromLocalFile(folder));
  });
}

void LogPanel::selectOpsOf(const QModelIndex& index) {
  const QSet<QString> ops = opsNamedIn(m_log->sentence(index.row()), m_session.pipeline().document());
  if (!ops.isEmpty()) m_session.selection().select(ops);
}

}  // namespace fuseline::ui
