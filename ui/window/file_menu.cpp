// Commands on files and drawings, in the order of the menu.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/file_menu.h"

#include "ui/theme/format.h"
#include "ui/widgets/drag_source.h"

namespace fuseline::ui {

FileMenu::FileMenu(const Parts& parts, QMenu& menu, QToolBar& toolBar)
    : QObject(&menu),
      m_builder(parts.builder),
      m_files(parts.files),
      m_drawings(parts.drawings),
      m_menu(menu),
      m_toolBar(toolBar) {
  addNewCommands();
  addOpenCommands();
  menu.addSeparator();
  addSaveCommands();
  menu.addSeparator();
  parts.comparison.addFileCommands(menu);
  menu.addSeparator();
  addDrawingCommands();
  menu.addSeparator();
  m_builder.add(menu, tr("&Quit"), QKeySequence::Quit, [&toolBar] { toolBar.window()->close(); });
}

void FileMenu::addNewCommands() {
  m_toolBar.addAction(m_builder.add(
      m_menu, tr("&New"), QKeySequence::New, [this] { m_files.newDocument(); }, QStringLiteral("new")));
  m_builder.add(m_menu, tr("New &window"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_N),
                [this] { m_files.openWindow(); });
  QMenu* templates = m_menu.addMenu(tr("New from &template"));
  for (const DocumentTemplate& entry : documentTemplates()) {
    QAction* action = templates->addAction(QStringLiteral("%1: %2").arg(toQt(entry.name), toQt(entry.summary)));
    connect(action, &QAction::triggered, this,
            [this, text = entry.text, name = toQt(entry.name)] { m_files.newFromTemplate(text, name); });
  }
}

void FileMenu::addOpenCommands() {
  m_toolBar.addAction(m_builder.add(
      m_menu, tr("&Open..."), QKeySequence::Open, [this] { m_files.chooseAndOpen(); }, QStringLiteral("open")));
  m_builder.add(m_menu, tr("&Import model..."), {}, [this] { m_files.chooseAndImport(); });
  QMenu* recent = m_menu.addMenu(tr("Open &recent"));
  connect(recent, &QMenu::aboutToShow, &m_files, [this, recent] { m_files.fillRecentMenu(*recent); });
  QMenu* examples = m_menu.addMenu(tr("Open measured &example"));
  examples->setObjectName(QStringLiteral("examples"));
  examples->setToolTipsVisible(true);
  connect(examples, &QMenu::aboutToShow, &m_files, [this, examples] { m_files.fillExamplesMenu(*examples); });
}

void FileMenu::addSaveCommands() {
  m_toolBar.addAction(m_builder.add(
      m_menu, tr("&Save"), QKeySequence::Save, [this] { m_files.save(); }, QStringLiteral("save")));
  m_builder.add(m_menu, tr("Save &as..."), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_S),
                [this] { m_files.saveAs(); });
  QAction* backups = m_menu.addAction(tr("&Keep backup copies"));
  backups->setCheckable(true);
  backups->setChecked(m_files.backups().isOn());
  backups->setToolTip(tr("Saving keeps the earlier file under its name with ~ at the end"));
  connect(backups, &QAction::toggled, &m_files, [this](bool isOn) { m_files.backups().setOn(isOn); });
  m_builder.add(m_menu, tr("&Export pipeline..."), QKeySequence(Qt::CTRL | Qt::Key_E),
                [this] { m_files.exportPipeline(); });
}

void FileMenu::addDrawingCommands() {
  QAction* exportDrawing = m_builder.add(
      m_menu, tr("E&xport drawing..."), {}, [this] { m_drawings.exportToFile(); }, QStringLiteral("drawing"));
  exportDrawing->setToolTip(tr("Export a drawing of the pipeline, or drag it from here to another program"));
  m_builder.add(m_menu, tr("&Copy drawing"), {}, [this] { m_drawings.copy(); });
  m_builder.add(m_menu, tr("&Print..."), QKeySequence::Print, [this] { m_drawings.print(); });
  m_toolBar.addAction(exportDrawing);
  new DragSource(
      *m_toolBar.widgetForAction(exportDrawing), [](QPoint) { return true; }, [this] { return m_drawings.toDrag(); });
}

}  // namespace fuseline::ui
