// The fields of a drawing's options.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/drawing_dialog.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QPushButton>

namespace fuseline::ui {

DrawingDialog::DrawingDialog(const DrawingOptions& proposed, QWidget* parent) : QDialog(parent) {
  setWindowTitle(tr("Export drawing"));
  createFields();
  show(proposed);
  connect(m_format, &QComboBox::currentIndexChanged, this, &DrawingDialog::refresh);
  refresh();
}

void DrawingDialog::createFields() {
  m_format = new QComboBox(this);
  m_format->addItem(tr("SVG, for the web and for editing"), static_cast<int>(DrawingFormat::Svg));
  m_format->addItem(tr("PNG, for chats and issues"), static_cast<int>(DrawingFormat::Png));
  m_format->addItem(tr("PDF, for papers"), static_cast<int>(DrawingFormat::Pdf));
  m_ground = new QComboBox(this);
  m_ground->addItem(tr("Light"), false);
  m_ground->addItem(tr("Dark"), true);
  m_scale = new QComboBox(this);
  for (int scale = 1; scale <= kLargestDrawingScale; ++scale) m_scale->addItem(tr("%1×").arg(scale), scale);
  m_figures = new QCheckBox(tr("Include &measurements shown on the canvas"), this);
  m_pipeline = new QCheckBox(tr("Embed the &pipeline, so that Fuseline can open the drawing"), this);
  m_pipeline->setToolTip(tr("Everyone who receives the drawing can then read shapes, names and the recipe."));
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
  buttons->addButton(tr("&Export..."), QDialogButtonBox::AcceptRole)->setDefault(true);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  auto* form = new QFormLayout(this);
  form->addRow(tr("&Format"), m_format);
  form->addRow(tr("&Ground"), m_ground);
  form->addRow(tr("&Scale"), m_scale);
  form->addRow(m_figures);
  form->addRow(m_pipeline);
  form->addRow(buttons);
}

void DrawingDialog::show(const DrawingOptions& options) {
  m_format->setCurrentIndex(m_format->findData(static_cast<int>(options.format)));
  m_ground->setCurrentIndex(m_ground->findData(options.isDark));
  m_scale->setCurrentIndex(m_scale->findData(options.scale));
  m_figures->setChecked(options.showsFigures);
  m_pipeline->setChecked(options.embedsPipeline);
}

/// A PDF is not read again, and only a PNG has pixels.
void DrawingDialog::refresh() {
  const DrawingFormat format = options().format;
  m_scale->setEnabled(format == DrawingFormat::Png);
  m_pipeline->setEnabled(format != DrawingFormat::Pdf);
}

DrawingOptions DrawingDialog::options() const {
  return {.format = static_cast<DrawingFormat>(m_format->currentData().toInt()),
          .isDark = m_ground->currentData().toBool(),
          .scale = m_scale->currentData().toInt(),
          .showsFigures = m_figures->isChecked(),
          .embedsPipeline = m_pipeline->isChecked()};
}

}  // namespace fuseline::ui
