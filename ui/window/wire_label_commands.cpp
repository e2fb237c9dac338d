// Off, short or full: one choice for all wires.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/wire_label_commands.h"

#include <QActionGroup>
#include <QSettings>

#include <algorithm>
#include <array>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr const char* kSetting = "canvas/wireLabels";
constexpr std::array<std::pair<WireLabels, const char*>, 3> kNames = {
    {{WireLabels::Off, "off"}, {WireLabels::Short, "short"}, {WireLabels::Full, "full"}}};

}  // namespace

WireLabelCommands::WireLabelCommands(GraphScene& scene, bool isKept, QObject* parent)
    : QObject(parent), m_scene(scene), m_isKept(isKept) {
  const QString kept = isKept ? QSettings().value(QLatin1String(kSetting)).toString() : QString();
  for (const auto& [labels, name] : kNames)
    if (kept == QLatin1String(name)) m_scene.canvasItems().setWireLabels(labels);
}

void WireLabelCommands::addMenu(QMenu& viewMenu) {
  QMenu* menu = viewMenu.addMenu(tr("Wire &labels"));
  menu->setToolTipsVisible(true);
  auto* group = new QActionGroup(this);
  const auto add = [&](const QString& text, const QString& tip, WireLabels labels) {
    QAction* action = group->addAction(menu->addAction(text));
    action->setCheckable(true);
    action->setChecked(m_scene.canvasItems().wireLabels() == labels);
    action->setToolTip(tip);
    connect(action, &QAction::triggered, this, [this, labels] { choose(labels); });
  };
  add(tr("&Off"), tr("Quantized formats only; tooltips of wires show shapes"), WireLabels::Off);
  add(tr("&Short"), tr("Labels such as 16384×4096 above bf16"), WireLabels::Short);
  add(tr("&Full"), tr("Labels such as [16384, 4096] bf16 → e4m3, on one line if the wire is long enough"),
      WireLabels::Full);
}

void WireLabelCommands::choose(WireLabels labels) {
  m_scene.canvasItems().setWireLabels(labels);
  if (!m_isKept) return;
  const auto* found = std::ranges::find(kNames, labels, &std::pair<WireLabels, const char*>::first);
  QSettings().setValue(QLatin1String(kSetting), QLatin1String(found->second));
}

}  // namespace fuseline::ui
