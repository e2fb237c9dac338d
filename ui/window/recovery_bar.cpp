// The bar of crash recovery.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/recovery_bar.h"

#include "core/document/file_format.h"
#include "ui/theme/format.h"
#include "ui/theme/message_ground.h"

#include <QHBoxLayout>
#include <QLocale>
#include <QPushButton>

namespace fuseline::ui {

namespace {

/// "llama_mlp.fuseline, 6 ops, from 24.11.26 20:51".
QString titleOf(const Leftover& leftover) {
  const auto numOps = static_cast<qsizetype>(parseDocument(leftover.text).document.ops().size());
  return RecoveryBar::tr("%1, %2, from %3")
      .arg(leftover.name, counted(numOps, RecoveryBar::tr("op"), RecoveryBar::tr("ops")),
           QLocale().toString(leftover.savedAt.toLocalTime(), QLocale::ShortFormat));
}

}  // namespace

RecoveryBar::RecoveryBar(Autosave& autosave, const Theme& theme, QWidget* parent)
    : QWidget(parent), m_autosave(autosave), m_text(new QLabel(this)) {
  m_text->setWordWrap(true);
  auto* recover = new QPushButton(tr("Recover"), this);
  auto* discard = new QPushButton(tr("Discard"), this);
  recover->setToolTip(tr("Open the recovered changes. The pipeline file stays as it is until you save."));
  discard->setToolTip(tr("Delete the recovered changes. The pipeline file stays as it is."));
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(12, 6, 8, 6);
  row->addWidget(m_text, 1);
  row->addWidget(recover);
  row->addWidget(discard);
  connect(recover, &QPushButton::clicked, this, &RecoveryBar::recoveryWanted);
  connect(discard, &QPushButton::clicked, this, [this] { m_autosave.discardFirst(); });
  connect(&autosave, &Autosave::leftoversChanged, this, &RecoveryBar::refresh);
  useMessageGround(*this, theme);
  refresh();
}

void RecoveryBar::refresh() {
  const std::vector<Leftover>& leftovers = m_autosave.leftovers();
  setVisible(!leftovers.empty());
  if (leftovers.empty()) return;
  const QString reason = leftovers.front().isSetAside
                             ? tr("Unsaved changes from before the file was reloaded: <b>%1</b>.")
                             : tr("Fuseline ended with unsaved changes: <b>%1</b>.");
  const QString text = reason.arg(titleOf(leftovers.front()).toHtmlEscaped());
  const auto numMore = static_cast<qsizetype>(leftovers.size()) - 1;
  m_text->setText(numMore == 0 ? text : text + tr(" %1 more to recover or discard.").arg(numMore));
  m_text->setToolTip(leftovers.front().file);
}

}  // namespace fuseline::ui
