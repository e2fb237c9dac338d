// Shows what each exporter writes of the pipeline.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/export_dialog.h"

#include "core/support/atomic_file.h"
#include "ui/theme/format.h"
#include "ui/widgets/file_choice.h"
#include "ui/widgets/long_job.h"
#include "ui/widgets/screen_room.h"

#include <QClipboard>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QFileInfo>
#include <QFontDatabase>
#include <QGuiApplication>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QVBoxLayout>

namespace fuseline::ui {

ExportDialog::ExportDialog(Write write, QString path, QWidget* parent)
    : QDialog(parent), m_write(std::move(write)), m_path(std::move(path)) {
  setWindowTitle(tr("Export pipeline"));
  resizeOnScreen(*this, {820, 620});
  createRows();
  for (const PipelineExporter& exporter : pipelineExporters()) {
    m_formats->addItem(toQt(exporter.title));
    m_formats->setItemData(m_formats->count() - 1, toQt(exporter.summary), Qt::ToolTipRole);
  }
  connect(m_formats, &QComboBox::currentIndexChanged, this, &ExportDialog::refresh);
  refresh();
}

void ExportDialog::createRows() {
  m_formats = new QComboBox;
  m_formats->setAccessibleName(tr("Format"));
  m_notes = new QLabel;
  m_notes->setWordWrap(true);
  m_notes->setTextFormat(Qt::PlainText);
  m_notes->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  m_text = new QPlainTextEdit;
  m_text->setReadOnly(true);
  m_text->setLineWrapMode(QPlainTextEdit::NoWrap);
  m_text->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  m_text->setAccessibleName(tr("Preview"));
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close);
  m_copy = buttons->addButton(tr("&Copy"), QDialogButtonBox::ActionRole);
  m_save = buttons->addButton(tr("&Save as..."), QDialogButtonBox::ActionRole);
  buttons->button(QDialogButtonBox::Close)->setAutoDefault(false);
  m_save->setDefault(true);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(m_copy, &QPushButton::clicked, this, &ExportDialog::copy);
  connect(m_save, &QPushButton::clicked, this, &ExportDialog::save);
  auto* rows = new QVBoxLayout(this);
  for (QWidget* row : std::initializer_list<QWidget*>{m_formats, m_notes, m_text, buttons}) rows->addWidget(row);
}

const PipelineExporter& ExportDialog::exporter() const {
  return pipelineExporters()[static_cast<std::size_t>(m_formats->currentIndex())];
}

void ExportDialog::refresh() {
  QWidget& place = isVisible() || !parentWidget() ? *this : *parentWidget();
  const QString title = tr("Exporting %1…").arg(toQt(exporter().title));
  const Result<PipelineText> text =
      resultUnlessCanceled(place, title, m_write(exporter()))
          .value_or(Error{tr("The export was canceled. Choose a format to export again.").toStdString()});
  m_copy->setEnabled(text.hasValue());
  m_save->setEnabled(text.hasValue());
  present(text ? *text : PipelineText{.notes = {text.error().message}});
}

void ExportDialog::present(const PipelineText& text) {
  QStringList notes = {toQt(exporter().summary) + QStringLiteral(".")};
  for (const std::string& note : text.notes) notes += toQt(note);
  m_notes->setText(notes.join(u'\n'));
  m_exported = text;
  m_text->setPlainText(toQt(m_exported.text));
}

void ExportDialog::copy() { QGuiApplication::clipboard()->setText(toQt(m_exported.text)); }

void ExportDialog::save() {
  const QString ending = toQt(exporter().ending);
  const QString path = fileToSave({.purpose = QStringLiteral("export"),
                                   .title = windowTitle(),
                                   .patterns = tr("%1 (*%2);;All files (*)").arg(toQt(exporter().title), ending),
                                   .pipeline = m_path,
                                   .ending = ending.mid(1),
                                   .name = QFileInfo(m_path).completeBaseName()},
                                  this);
  if (path.isEmpty()) return;
  const Result<void> written = writeTo(path);
  m_notes->setText(written ? tr("Saved to %1.").arg(path) : toQt(written.error().message));
}

Result<void> ExportDialog::writeTo(const QString& path) {
  const auto work = [exported = m_exported, path = path.toStdString()]() -> Result<void> {
    const Result<std::string> content = contentOf(exported);
    if (!content) return content.error();
    return writeFileAtomically(path, [&](std::ostream& file) { file << *content; });
  };
  return resultUnlessCanceled(*this, tr("Writing %1…").arg(QFileInfo(path).fileName()), work)
      .value_or(Error{tr("Canceled, but the file might already have been written.").toStdString()});
}

}  // namespace fuseline::ui
