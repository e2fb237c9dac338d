// Commands on the pipeline, in the order of the menu.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/edit_menu.h"

#include "ui/canvas/blocks/block_doors.h"
#include "ui/canvas/canvas_commands.h"
#include "ui/canvas/canvas_selection.h"
#include "ui/canvas/menus/context_menu.h"
#include "ui/canvas/node_moves.h"
#include "ui/problems/problems_panel.h"
#include "ui/theme/format.h"
#include "ui/window/frame_commands.h"

#include <QInputDialog>
#include <QLineEdit>

namespace fuseline::ui {

EditMenu::EditMenu(const Parts& parts, QMenu& menu, QToolBar& toolBar) : QObject(&menu), m_parts(parts), m_menu(menu) {
  menu.setObjectName(QString::fromLatin1(kEditMenuName));
  addUndoCommands(toolBar);
  menu.addSeparator();
  addClipboardCommands();
  menu.addSeparator();
  addOpCommands();
  menu.addSeparator();
  addBlockCommands();
  menu.addSeparator();
  addLayoutCommands();
  menu.addSeparator();
  addFindCommands();
  connect(&parts.session.pipeline(), &OpenPipeline::changed, this, &EditMenu::refreshUndo);
  refreshUndo();
}

void EditMenu::addUndoCommands(QToolBar& toolBar) {
  Session& session = m_parts.session;
  m_undo = m_parts.builder.add(
      m_menu, tr("&Undo"), QKeySequence::Undo, [&session] { session.pipeline().undo(); }, QStringLiteral("undo"));
  m_redo = m_parts.builder.add(
      m_menu, tr("&Redo"), QKeySequence::Redo, [&session] { session.pipeline().redo(); }, QStringLiteral("redo"));
  // All keys of the platform, as fields know them: Ctrl+Y and Ctrl+Shift+Z may both redo.
  m_undo->setShortcuts(QKeySequence::Undo);
  m_redo->setShortcuts(QKeySequence::Redo);
  const QString history = QStringLiteral("history");
  m_parts.builder.add(m_menu, tr("&History"), m_parts.panes.keysOf(history),
                      [this, history] { m_parts.panes.goTo(history); });
  toolBar.addSeparator();
  toolBar.addAction(m_undo);
  toolBar.addAction(m_redo);
}

void EditMenu::refreshUndo() {
  const History& history = m_parts.session.pipeline().history();
  m_undo->setEnabled(history.canUndo());
  m_redo->setEnabled(history.canRedo());
  const auto plain = [](const std::string& label) { return toQt(label).replace(u'&', QStringLiteral("&&")); };
  m_undo->setText(history.canUndo() ? tr("&Undo: %1").arg(plain(history.undoLabel())) : tr("&Undo"));
  m_redo->setText(history.canRedo() ? tr("&Redo: %1").arg(plain(history.redoLabel())) : tr("&Redo"));
}

void EditMenu::addClipboardCommands() {
  SelectionCommands& commands = m_parts.selection;
  commands.add(m_menu, tr("&Copy"), QKeySequence::Copy, [this] { scene().commands().copySelected(); });
  commands.addHere(m_menu, tr("Cu&t"), QKeySequence::Cut, [this] { scene().commands().cutSelected(); });
  commands.add(m_menu, tr("&Paste"), QKeySequence::Paste, [this] { scene().commands().paste(); });
  commands.add(m_menu, tr("Paste with incomin&g wires"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_V),
               [this] { scene().commands().pasteWithWires(); });
  commands.add(m_menu, tr("D&uplicate"), QKeySequence(Qt::CTRL | Qt::Key_D),
               [this] { scene().commands().duplicateSelected(); });
  commands.addHere(m_menu, tr("&Delete"), QKeySequence::Delete,
                   [this] { scene().commands().removeSelected(Reconnect::No); });
  commands.addHere(m_menu, tr("Delete and re&connect"), QKeySequence(Qt::CTRL | Qt::Key_Delete),
                   [this] { scene().commands().removeSelected(Reconnect::Yes); });
}

void EditMenu::addOpCommands() {
  SelectionCommands& commands = m_parts.selection;
  commands.addLetter(m_menu, tr("&Bypass"), Qt::Key_D, [this] { scene().commands().toggleBypass(); });
  commands.add(m_menu, tr("Rep&lace op..."), QKeySequence(Qt::CTRL | Qt::Key_H),
               [this] { m_parts.view.search().replace(); });
  commands.addLetter(m_menu, tr("Draw a w&ire"), Qt::Key_W, [this] { m_parts.view.wireKeys().draw(); });
  commands.addLetter(m_menu, tr("S&witch fusion off or on here"), Qt::Key_T,
                     [this] { scene().commands().toggleFusions(); });
}

void EditMenu::addBlockCommands() {
  SelectionCommands& commands = m_parts.selection;
  commands.add(m_menu, tr("&Make block..."), QKeySequence(Qt::CTRL | Qt::Key_M), [this] { makeBlock(); });
  commands.add(m_menu, tr("&Expand block"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_M),
               [this] { scene().commands().expandSelected(); });
  commands.add(m_menu, tr("&Open or close block in place"), QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_M),
               [this] { scene().blocks().toggleSelected(); });
  commands.add(m_menu, tr("&Fold repeated layers"), {}, [this] { scene().commands().foldRepeats(); });
  m_parts.blocks.addTo(m_menu);
  commands.add(m_menu, tr("Repeat op..."), QKeySequence(Qt::CTRL | Qt::Key_R), [this] { repeatOp(); });
  auto* frames = new FrameCommands(scene(), m_parts.view, m_parts.theme, this);
  frames->addMenu(m_menu);
}

void EditMenu::addLayoutCommands() {
  MenuBuilder& builder = m_parts.builder;
  const auto& commands = m_parts.selection;
  m_parts.selection.addHere(m_menu, tr("Select &all"), QKeySequence::SelectAll, [this] { selectAll(); });
  builder.add(m_menu, tr("Select &upstream"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Left),
              commands.onSelection([this] { scene().selection().selectReachable(FlowDirection::Upstream); }));
  builder.add(m_menu, tr("Select &downstream"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Right),
              commands.onSelection([this] { scene().selection().selectReachable(FlowDirection::Downstream); }));
  builder.add(m_menu, tr("&Insert op..."), QKeySequence(Qt::CTRL | Qt::Key_Space),
              [this] { m_parts.view.search().insert(); });
  const auto layOut = [this] {
    if (scene().moves().layOut()) m_parts.view.fit();
  };
  builder.add(m_menu, tr("Au&to-arrange"), QKeySequence(Qt::CTRL | Qt::Key_L), layOut, QStringLiteral("layout"));
  addArrangeMenu();
}

void EditMenu::selectAll() {
  QSet<QString> ids;
  for (const DocumentOp& op : scene().scope().document().ops()) ids.insert(toQt(op.id));
  scene().scope().select(ids);
}

void EditMenu::addArrangeMenu() {
  QMenu* menu = m_menu.addMenu(tr("&Arrange selected"));
  const auto addCommand = [&](const QString& text, const QKeySequence& keys, std::function<void()> run) {
    m_parts.builder.add(*menu, text, keys, m_parts.selection.onSelection(std::move(run)));
  };
  const auto add = [&](const QString& text, Arrangement arrangement) {
    addCommand(text, {}, [this, arrangement] { scene().moves().arrangeSelected(arrangement); });
  };
  add(tr("Align &left"), Arrangement::Left);
  add(tr("Align &centers"), Arrangement::Centre);
  add(tr("Align &right"), Arrangement::Right);
  menu->addSeparator();
  add(tr("Align &top"), Arrangement::Top);
  add(tr("Align &middles"), Arrangement::Middle);
  add(tr("Align &bottom"), Arrangement::Bottom);
  m_parts.selection.addLetter(*menu, tr("&Straighten wires"), Qt::Key_Q,
                              [this] { scene().moves().arrangeSelected(Arrangement::Straight); });
  menu->addSeparator();
  add(tr("Space evenly &across"), Arrangement::SpaceAcross);
  add(tr("Space evenly &down"), Arrangement::SpaceDown);
  menu->addSeparator();
  const auto addMove = [&](const QString& text, Qt::Key key, QPoint step) {
    addCommand(text, QKeySequence(Qt::ALT | key), [this, step] { scene().moves().moveSelected(step); });
  };
  addMove(tr("Move left"), Qt::Key_Left, {-1, 0});
  addMove(tr("Move right"), Qt::Key_Right, {1, 0});
  addMove(tr("Move up"), Qt::Key_Up, {0, -1});
  addMove(tr("Move down"), Qt::Key_Down, {0, 1});
}

void EditMenu::addFindCommands() {
  MenuBuilder& builder = m_parts.builder;
  auto& problems = m_parts.panes.get<ProblemsPanel>();
  builder.add(m_menu, tr("&Find op..."), QKeySequence::Find, [this] { m_parts.view.search().find(); });
  builder.add(m_menu, tr("Find ne&xt"), QKeySequence(Qt::Key_F3), [this] { m_parts.view.search().findNext(1); });
  builder.add(m_menu, tr("Find pre&vious"), QKeySequence(Qt::SHIFT | Qt::Key_F3),
              [this] { m_parts.view.search().findNext(-1); });
  builder.add(m_menu, tr("&Next problem"), QKeySequence(Qt::Key_F8), [&problems] { problems.selectNext(1); });
  builder.add(m_menu, tr("Previous pro&blem"), QKeySequence(Qt::SHIFT | Qt::Key_F8),
              [&problems] { problems.selectNext(-1); });
  m_parts.comparison.addEditCommands(m_menu);
}

void EditMenu::makeBlock() {
  if (scene().scope().selection().isEmpty())
    return Q_EMIT scene().hint(tr("No ops are selected. Select the ops to put into a block."));
  const PipelineDocument& document = m_parts.session.pipeline().document();
  std::string free = "Block";
  for (int number = 2; document.findBlock(free); ++number) free = "Block" + std::to_string(number);
  bool isAccepted = false;
  const QString name = QInputDialog::getText(m_parts.view.window(), tr("Make block"), tr("Name of the block"),
                                             QLineEdit::Normal, toQt(free), &isAccepted);
  if (isAccepted) scene().commands().makeBlockOfSelected(name.trimmed().toStdString());
}

void EditMenu::repeatOp() {
  constexpr int kMostTimes = 1000;
  const QString id = scene().scope().singleSelection();
  if (!scene().scope().document().findOp(id.toStdString()))
    return Q_EMIT scene().hint(tr("No op is selected. Select the op or block to repeat."));
  bool isAccepted = false;
  const int count = QInputDialog::getInt(m_parts.view.window(), tr("Repeat %1").arg(id),
                                         tr("Number of copies in a row"), 2, 2, kMostTimes, 1, &isAccepted);
  if (isAccepted) scene().commands().repeatSelected(count);
}

}  // namespace fuseline::ui
