// The fields of a run's options.
// SPDX-License-Identifier: Apache-2.0
#include "ui/runs/run_options_dialog.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QPushButton>
#include <QRegularExpressionValidator>

namespace fuseline::ui {

namespace {

constexpr int kMostIterations = 1'000'000;
constexpr int kMostWarmups = 10'000;

}  // namespace

RunOptionsDialog::RunOptionsDialog(const RunOptions& proposed, QWidget* parent) : QDialog(parent) {
  setWindowTitle(tr("Run options"));
  createFields();
  show(proposed);
}

void RunOptionsDialog::createFields() {
  m_iterations = new QSpinBox(this);
  m_iterations->setRange(0, kMostIterations);
  m_iterations->setSpecialValueText(tr("until the ratio is known well"));
  m_iterations->setToolTip(tr("In each round the unfused and the fused plan run once"));
  m_warmup = new QSpinBox(this);
  m_warmup->setRange(0, kMostWarmups);
  m_warmup->setToolTip(tr("Of each plan, before the first round; on a GPU for 100 ms at least, unless it is 0"));
  m_seed = new QLineEdit(this);
  m_seed->setValidator(new QRegularExpressionValidator(QRegularExpression(QStringLiteral("[0-9]{1,19}")), m_seed));
  m_seed->setToolTip(tr("Of what is drawn: inputs, parameters, gradients and dropout"));
  m_replays = new QCheckBox(tr("Re&cord the launches, and replay them (CUDA graphs)"), this);
  m_replays->setToolTip(tr("Where the device can. Without it the host's time for each launch counts"));
  m_startsCold = new QCheckBox(tr("Begin with c&old caches"), this);
  m_startsCold->setToolTip(
      tr("Fills the caches with other data before every run: what a plan reads first comes from memory"));
  auto* buttons =
      new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel | QDialogButtonBox::RestoreDefaults, this);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(buttons->button(QDialogButtonBox::RestoreDefaults), &QPushButton::clicked, this, [this] { show({}); });
  auto* form = new QFormLayout(this);
  form->addRow(tr("&Rounds"), m_iterations);
  form->addRow(tr("&Warm-up runs"), m_warmup);
  form->addRow(tr("&Seed"), m_seed);
  form->addRow(m_replays);
  form->addRow(m_startsCold);
  form->addRow(buttons);
}

void RunOptionsDialog::show(const RunOptions& options) {
  m_iterations->setValue(options.iterations);
  m_warmup->setValue(options.warmup);
  m_seed->setText(QString::number(options.seed));
  m_replays->setChecked(options.replays);
  m_startsCold->setChecked(options.startsCold);
}

RunOptions RunOptionsDialog::options() const {
  return {.warmup = m_warmup->value(),
          .iterations = m_iterations->value(),
          .seed = m_seed->text().toULongLong(),
          .replays = m_replays->isChecked(),
          .startsCold = m_startsCold->isChecked()};
}

}  // namespace fuseline::ui
