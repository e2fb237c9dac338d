// Dialogs around drawings.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/drawing_commands.h"

#include "ui/theme/format.h"
#include "ui/widgets/expression_edit.h"
#include "ui/widgets/file_choice.h"
#include "ui/widgets/long_job.h"
#include "ui/window/drawing_dialog.h"

#include <QClipboard>
#include <QFileInfo>
#include <QGuiApplication>
#include <QPrintDialog>
#include <QPrinter>

#include <utility>

namespace fuseline::ui {

DrawingCommands::DrawingCommands(Session& session, const GraphScene& scene, QWidget& window)
    : QObject(&window), m_session(session), m_scene(scene), m_window(window) {}

void DrawingCommands::refuse(const Error& error) { Q_EMIT message(toQt(error.message), Severity::Error); }

void DrawingCommands::exportToFile() {
  DrawingDialog options(m_options, &m_window);
  if (options.exec() != QDialog::Accepted) return;
  m_options = options.options();
  const QString ending = endingOf(m_options.format);
  const QString path = fileToSave({.purpose = QStringLiteral("drawing"),
                                   .title = tr("Export drawing"),
                                   .patterns = tr("%1 drawing (*.%2);;All files (*)").arg(ending.toUpper(), ending),
                                   .pipeline = m_session.pipeline().path(),
                                   .ending = ending,
                                   .name = QFileInfo(m_session.pipeline().displayName()).completeBaseName()},
                                  &m_window);
  if (path.isEmpty()) return;
  writeTo(path);
}

void DrawingCommands::writeTo(const QString& path) {
  const Result<DrawingWork> work = drawingWork(m_session, m_scene, m_options);
  if (!work) return refuse(work.error());
  const QString title = tr("Writing %1…").arg(QFileInfo(path).fileName());
  const auto written = resultUnlessCanceled(m_window, title, [work = *work, path] { return writeDrawing(work, path); });
  if (!written) return Q_EMIT message(tr("Canceled. The write may still finish."), Severity::Note);
  *written ? Q_EMIT message(tr("Drawing saved to %1.").arg(path), Severity::Note) : refuse(written->error());
}

void DrawingCommands::copy() {
  commitTypedField();
  const Result<PicturesWork> work = picturesWork(m_session, m_scene, m_options);
  if (!work) return refuse(work.error());
  const auto pictures = resultUnlessCanceled(m_window, tr("Copying the drawing…"), *work);
  if (!pictures) return Q_EMIT hint(tr("Canceled."));
  if (!*pictures) return refuse(pictures->error());
  QGuiApplication::clipboard()->setMimeData(mimeDataOf(**pictures).release());
  Q_EMIT hint(tr("Drawing copied to the clipboard as PNG and SVG."));
}

void DrawingCommands::print() {
  commitTypedField();
  QPrinter printer(QPrinter::HighResolution);
  const QSize size = drawingSize(m_session, m_scene, m_options);
  printer.setPageOrientation(size.width() > size.height() ? QPageLayout::Landscape : QPageLayout::Portrait);
  printer.setDocName(m_session.pipeline().displayName());
  printer.setCreator(QStringLiteral("Fuseline"));
  QPrintDialog dialog(&printer, &m_window);
  dialog.setOption(QAbstractPrintDialog::PrintPageRange, false);  // there is one page
  if (dialog.exec() != QDialog::Accepted) return;
  DrawingOptions options = m_options;
  options.isDark = false;
  const QRectF page(QPointF(), printer.pageLayout().paintRectPixels(printer.resolution()).size());
  const Result<void> printed = printDrawing(m_session, m_scene, options, printer, page);
  if (!printed) refuse(printed.error());
}

std::unique_ptr<QMimeData> DrawingCommands::toDrag() {
  commitTypedField();
  Result<std::unique_ptr<QMimeData>> data = drawingForDrag(m_session, m_scene, m_options, m_draggedFiles.path());
  if (data) return std::move(*data);
  refuse(data.error());
  return nullptr;
}

}  // namespace fuseline::ui
