// Each command asks the layer of frames.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/frame_commands.h"

#include "core/document/format_version.h"
#include "ui/canvas/frame_palette.h"
#include "ui/theme/format.h"

#include <QAction>
#include <QApplication>
#include <QPainter>
#include <QPixmap>

#include <utility>

namespace fuseline::ui {

namespace {

constexpr int kSwatchPx = 16;

QIcon swatch(const Theme& theme, std::string_view color) {
  const qreal ratio = qApp->devicePixelRatio();
  QPixmap picture(QSize(kSwatchPx, kSwatchPx) * ratio);
  picture.setDevicePixelRatio(ratio);
  picture.fill(Qt::transparent);
  QPainter painter(&picture);
  painter.setPen(QPen(frameColor(theme, color), 2));
  painter.setBrush(headerGround(theme, color));
  painter.drawRect(1, 1, kSwatchPx - 3, kSwatchPx - 3);
  return picture;
}

}  // namespace

FrameCommands::FrameCommands(GraphScene& scene, GraphView& view, const Theme& theme, QObject* parent)
    : QObject(parent), m_scene(scene), m_view(view), m_theme(theme) {
  connect(&theme, &Theme::changed, this, &FrameCommands::showColors);
}

void FrameCommands::add(QMenu& menu, const QString& text, const QKeySequence& shortcut, std::function<void()> run) {
  QAction* action = menu.addAction(text);
  if (!shortcut.isEmpty()) action->setShortcut(shortcut);
  connect(action, &QAction::triggered, this, std::move(run));
}

void FrameCommands::addMenu(QMenu& editMenu) {
  QMenu* menu = editMenu.addMenu(tr("F&rames and notes"));
  FrameLayer& frames = m_scene.frames();
  add(*menu, tr("&Frame the selected ops"), QKeySequence(Qt::CTRL | Qt::Key_G), [&frames] { frames.frameSelected(); });
  add(*menu, tr("Add &note"), {}, [this, &frames] { frames.addNote(m_view.camera().middle()); });
  menu->addSeparator();
  add(*menu, tr("&Edit title or text"), {}, [&frames] { frames.editSelected(); });
  addColors(*menu->addMenu(tr("&Color")));
  add(*menu, tr("&Lock or unlock"), {}, [&frames] { frames.toggleLock(); });
  add(*menu, tr("&Select contents"), {}, [&frames] { frames.selectContent(); });
  add(*menu, tr("F&it to contents"), {}, [&frames] { frames.fitSelected(); });
  add(*menu, tr("&Remove frame or note"), {}, [&frames] { frames.removeSelected(); });
  menu->addSeparator();
  add(*menu, tr("Ne&xt frame or note"), QKeySequence(Qt::Key_F4), [this] { selectNext(1); });
  add(*menu, tr("&Previous frame or note"), QKeySequence(Qt::SHIFT | Qt::Key_F4), [this] { selectNext(-1); });
  m_view.addAction(menu->menuAction());
}

void FrameCommands::addColors(QMenu& menu) {
  const auto addColor = [&](std::string_view color) {
    add(menu, frameColorTitle(color), {}, [this, name = std::string(color)] { m_scene.frames().setColor(name); });
    m_colors.append(menu.actions().constLast());
    m_colors.constLast()->setData(toQt(color));
  };
  addColor({});
  for (const std::string_view color : kFrameColors) addColor(color);
  showColors();
}

void FrameCommands::showColors() {
  for (QAction* action : std::as_const(m_colors))
    action->setIcon(swatch(m_theme, action->data().toString().toStdString()));
}

void FrameCommands::selectNext(int step) {
  m_scene.frames().selectNext(step);
  for (const std::string& id : m_scene.frames().selected())
    m_view.camera().showArea(m_scene.frames().item(id)->sceneBox());
}

}  // namespace fuseline::ui
