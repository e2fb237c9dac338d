// The bar of changes from outside.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/file_bar.h"

#include "ui/theme/message_ground.h"

#include <QHBoxLayout>

namespace fuseline::ui {

FileBar::FileBar(Session& session, FileWatch& watch, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_watch(watch),
      m_text(new QLabel(this)),
      m_reload(new QPushButton(tr("Reload"), this)),
      m_compare(new QPushButton(tr("Compare"), this)) {
  m_text->setWordWrap(true);
  auto* keep = new QPushButton(tr("Keep mine"), this);
  m_reload->setToolTip(tr("Read the file again. Your unsaved changes can be recovered."));
  m_compare->setToolTip(tr("Show the differences between your version and the file."));
  keep->setToolTip(tr("Keep your version as an unsaved change. The file is not changed until you save."));
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(12, 6, 8, 6);
  row->addWidget(m_text, 1);
  for (QPushButton* button : {m_reload, m_compare, keep}) row->addWidget(button);
  connect(m_reload, &QPushButton::clicked, this, &FileBar::reloadWanted);
  connect(m_compare, &QPushButton::clicked, this, &FileBar::compareWanted);
  connect(keep, &QPushButton::clicked, &watch, &FileWatch::keepMine);
  connect(&watch, &FileWatch::changed, this, &FileBar::refresh);
  connect(&session.pipeline(), &OpenPipeline::changed, this, &FileBar::refresh);
  useMessageGround(*this, theme);
  refresh();
}

void FileBar::refresh() {
  const FileState state = m_watch.state();
  setVisible(state != FileState::AsKnown);
  if (state == FileState::AsKnown) return;
  m_reload->setVisible(state == FileState::Changed);
  m_compare->setVisible(state == FileState::Changed);
  m_text->setText(text());
  m_text->setToolTip(m_session.pipeline().path());
}

QString FileBar::text() const {
  const QString name = m_session.pipeline().displayName().toHtmlEscaped();
  if (m_watch.state() == FileState::Deleted)
    return tr("Another program deleted or moved <b>%1</b>. Save to create it again.").arg(name);
  return m_session.pipeline().isModified()
             ? tr("Another program changed <b>%1</b>, and you have unsaved changes.").arg(name)
             : tr("Another program changed <b>%1</b> since you opened or saved it.").arg(name);
}

}  // namespace fuseline::ui
