// A list on top, the keys of what is selected below it; a second page for what no menu has.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/shortcuts_dialog.h"

#include "ui/widgets/screen_room.h"
#include "ui/window/help.h"

#include <QDialogButtonBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QTabWidget>
#include <QTextBrowser>
#include <QVBoxLayout>

#include <algorithm>

namespace fuseline::ui {

namespace {

constexpr QSize kDialogSize = {640, 620};
constexpr int kCommandWidthPx = 400;
enum Column { CommandColumn, KeysColumn };

QString keysText(const QAction& action) {
  return QKeySequence::listToString(action.shortcuts(), QKeySequence::NativeText);
}

}  // namespace

ShortcutsDialog::ShortcutsDialog(Shortcuts& shortcuts, QWidget* parent)
    : QDialog(parent),
      m_shortcuts(shortcuts),
      m_filter(new QLineEdit(this)),
      m_list(new QTreeWidget(this)),
      m_keys(new QKeySequenceEdit(this)),
      m_remark(new QLabel(this)),
      m_assign(new QPushButton(tr("Assign"), this)),
      m_reset(new QPushButton(tr("Reset"), this)) {
  setWindowTitle(tr("Keyboard shortcuts"));
  resizeOnScreen(*this, kDialogSize);
  auto* panes = new QTextBrowser(this);
  panes->setAccessibleName(tr("Keys of the panes"));
  panes->setHtml(paneKeys());
  auto* tabs = new QTabWidget(this);
  tabs->addTab(makeCommands(), tr("Commands"));
  tabs->addTab(panes, tr("Keys of the panes"));
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  buttons->button(QDialogButtonBox::Close)->setAutoDefault(false);  // Enter belongs to the list
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(tabs, 1);
  layout->addWidget(buttons);
  connect(&shortcuts, &Shortcuts::changed, this, &ShortcutsDialog::fill);
  fill();
}

QWidget* ShortcutsDialog::makeCommands() {
  auto* page = new QWidget(this);
  m_filter->setPlaceholderText(tr("Filter by name or shortcut"));
  m_filter->setAccessibleName(tr("Filter the commands"));
  m_filter->setClearButtonEnabled(true);
  m_list->setHeaderLabels({tr("Command"), tr("Keys")});
  m_list->setRootIsDecorated(false);
  m_list->setAlternatingRowColors(true);
  m_list->setColumnWidth(CommandColumn, kCommandWidthPx);
  m_list->setAccessibleName(tr("Commands"));
  connect(m_filter, &QLineEdit::textChanged, this, &ShortcutsDialog::applyFilter);
  connect(m_list, &QTreeWidget::currentItemChanged, this, &ShortcutsDialog::showCurrent);
  connect(m_list, &QTreeWidget::itemActivated, m_keys, [this] { m_keys->setFocus(); });
  auto* layout = new QVBoxLayout(page);
  layout->addWidget(m_filter);
  layout->addWidget(m_list, 1);
  layout->addLayout(makeEditor());
  return page;
}

QLayout* ShortcutsDialog::makeEditor() {
  m_remark->setWordWrap(true);
  m_keys->setAccessibleName(tr("New shortcut"));
  m_keys->setClearButtonEnabled(true);
  m_assign->setAutoDefault(false);
  m_reset->setAutoDefault(false);
  m_reset->setToolTip(tr("Reset to the default shortcut"));
  auto* resetAll = new QPushButton(tr("Reset all"), this);
  resetAll->setAutoDefault(false);
  connect(m_keys, &QKeySequenceEdit::keySequenceChanged, this, &ShortcutsDialog::showRemark);
  connect(m_assign, &QPushButton::clicked, this, &ShortcutsDialog::assign);
  connect(m_reset, &QPushButton::clicked, this, [this] {
    if (const Shortcuts::Command* command = current()) m_shortcuts.reset(*command);
  });
  connect(resetAll, &QPushButton::clicked, &m_shortcuts, &Shortcuts::resetAll);
  auto* row = new QHBoxLayout();
  row->addWidget(m_keys, 1);
  row->addWidget(m_assign);
  row->addWidget(m_reset);
  row->addWidget(resetAll);
  auto* layout = new QVBoxLayout();
  layout->addLayout(row);
  layout->addWidget(m_remark);
  return layout;
}

/// The line of a command is its place in the book.
void ShortcutsDialog::fill() {
  const int row = m_list->indexOfTopLevelItem(m_list->currentItem());
  m_list->clear();
  for (const Shortcuts::Command& command : m_shortcuts.commands()) {
    auto* item = new QTreeWidgetItem(m_list, {command.path, keysText(*command.action)});
    QFont font = item->font(KeysColumn);
    font.setBold(command.isChanged());
    item->setFont(KeysColumn, font);
    if (command.isChanged()) item->setToolTip(KeysColumn, tr("Customized"));
  }
  applyFilter();
  m_list->setCurrentItem(m_list->topLevelItem(std::max(row, 0)));
}

void ShortcutsDialog::applyFilter() {
  for (int row = 0; row < m_list->topLevelItemCount(); ++row) {
    QTreeWidgetItem* item = m_list->topLevelItem(row);
    const QString text = item->text(CommandColumn) + u' ' + item->text(KeysColumn);
    item->setHidden(!text.contains(m_filter->text(), Qt::CaseInsensitive));
  }
}

const Shortcuts::Command* ShortcutsDialog::current() const {
  const int row = m_list->indexOfTopLevelItem(m_list->currentItem());
  return row < 0 ? nullptr : &m_shortcuts.commands()[static_cast<std::size_t>(row)];
}

void ShortcutsDialog::showCurrent() {
  const Shortcuts::Command* command = current();
  m_keys->setKeySequence(command ? command->action->shortcut() : QKeySequence());
  m_reset->setEnabled(command && command->isChanged());
  showRemark();
}

/// Warns which command will lose the keys.
void ShortcutsDialog::showRemark() {
  const Shortcuts::Command* command = current();
  const QKeySequence keys = m_keys->keySequence();
  m_assign->setEnabled(command && keys != command->action->shortcut());
  m_assign->setText(keys.isEmpty() ? tr("Clear") : tr("Assign"));
  const Shortcuts::Command* holder = command ? m_shortcuts.holderOf(keys, *command) : nullptr;
  m_remark->setText(holder ? tr("%1 is already the shortcut of %2, which will lose it.")
                                 .arg(keys.toString(QKeySequence::NativeText), holder->path)
                           : tr("Click the field and press a shortcut. It is saved."));
}

void ShortcutsDialog::assign() {
  if (const Shortcuts::Command* command = current()) m_shortcuts.set(*command, m_keys->keySequence());
}

}  // namespace fuseline::ui
