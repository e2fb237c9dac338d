// Help on keys, and the about box.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/help.h"

#include "ui/theme/format.h"
#include "ui/widgets/text_dialog.h"
#include "ui/widgets/translated.h"

#include <QGuiApplication>
#include <QSysInfo>

namespace fuseline::ui {

namespace {

QString shortcutRow(const QString& keys, const QString& text) {
  return QStringLiteral("<tr><td style='padding-right:24px'><b>%1</b></td><td>%2</td></tr>")
      .arg(keys.toHtmlEscaped(), text.toHtmlEscaped());
}

QString canvasRows() {
  return shortcutRow(translated("Tab, Shift+A, double-click"), translated("Find an op and insert it")) +
         shortcutRow(translated("Arrow keys"), translated("Select the next op in that direction")) +
         shortcutRow(translated("Alt + arrow keys"), translated("Move the selected ops and frames")) +
         shortcutRow(translated("Shift + click or drag"), translated("Add to the selection")) +
         shortcutRow(translated("Shift+Alt, Ctrl+Alt + click"), translated("Select upstream, or downstream")) +
         shortcutRow(translated("Ctrl+H"), translated("Replace the selected op and keep its wires")) +
         shortcutRow(translated("Ctrl+Left, Ctrl+Right"), translated("Follow a wire from the selected op")) +
         shortcutRow(translated("Double-click an instance, Ctrl+Down"), translated("Enter its block")) +
         shortcutRow(translated("Ctrl+Up"), translated("Leave the block")) +
         shortcutRow(translated("Enter, F2"), translated("Edit the selected op, frame or note")) +
         shortcutRow(translated("Home, Shift+1"), translated("Fit all")) +
         shortcutRow(translated("F"), translated("Show the selection")) +
         shortcutRow(translated("Wheel, pinch"), translated("Zoom at the pointer")) +
         shortcutRow(translated("Middle button, Space + drag"), translated("Move the view")) +
         shortcutRow(translated("Drag from port to port, or click both"), translated("Draw a wire")) +
         shortcutRow(translated("Ctrl + drag an output"), translated("Move all of its wires to another output")) +
         shortcutRow(translated("Drop a wire on empty canvas"), translated("Find an op to connect")) +
         shortcutRow(translated("Alt + drag an op"), translated("Copy the selection")) +
         shortcutRow(translated("Ctrl during a drag"), translated("Ignore the grid; if snapping is off, snap to it")) +
         shortcutRow(translated("X + drag"), translated("Remove the wires that the line crosses")) +
         shortcutRow(translated("Ctrl+V, Ctrl+D"),
                     translated("With a wire selected: insert into it, if shapes and dtypes match")) +
         shortcutRow(translated("Drop an op or a chain on a wire"),
                     translated("Insert it; press Alt during the drag to only move it")) +
         shortcutRow(translated("Drag the header of a frame"),
                     translated("Move it with its contents; with Alt only the frame")) +
         shortcutRow(translated("Drag an edge of a frame"), translated("Resize it")) +
         shortcutRow(translated("W"), translated("Draw a wire from the selected op; press again: next port")) +
         shortcutRow(translated("Arrow keys, Enter"), translated("Choose the target port, and connect")) +
         shortcutRow(translated("Esc"), translated("Cancel the wire, stop the run, or clear the selection"));
}

QString planRows() {
  return shortcutRow(translated("Left, Right"), translated("Select the next box of the lane")) +
         shortcutRow(translated("Up, Down"), translated("Go to the forward or the backward lane"));
}

QString outlineRows() {
  return shortcutRow(translated("Up, Down"), translated("Select the next op; with Shift: extend the selection")) +
         shortcutRow(translated("Right, Left"), translated("Expand or collapse an instance of a block")) +
         shortcutRow(translated("F2"), translated("Rename")) +
         shortcutRow(translated("Enter"),
                     translated("Edit the selected op; if it belongs to a block, inside that block")) +
         shortcutRow(translated("Delete, Ctrl+Delete"), translated("Remove; remove and reconnect")) +
         shortcutRow(translated("D, T"), translated("Bypass the op; switch its fusion off or on")) +
         shortcutRow(translated("W"), translated("Draw a wire from the selected op, on the canvas"));
}

QString timelineRows() {
  return shortcutRow(translated("Wheel, pinch, W, S"), translated("Zoom")) +
         shortcutRow(translated("Drag, A, D"), translated("Move the view")) +
         shortcutRow(translated("Arrow keys, comma, period"), translated("Select the next box in that direction")) +
         shortcutRow(translated("Ctrl+F or /; Enter or F3"), translated("Find boxes; next match")) +
         shortcutRow(translated("Home, F"), translated("Fit all; fit the selection")) +
         shortcutRow(translated("Double-click, Return"), translated("Zoom to the box")) +
         shortcutRow(translated("Backspace"), translated("Previous view")) +
         shortcutRow(translated("Shift + drag, R"), translated("Select a time range; select the range of the box")) +
         shortcutRow(translated("Q; Escape"), translated("Show or hide the table of the time range; clear the range")) +
         shortcutRow(translated("N"), translated("Add a note to the time range or the box")) +
         shortcutRow(translated("F2"), translated("Pin the details of the box")) +
         shortcutRow(translated("Space, P, H"), translated("Fold, pin or hide the track")) +
         shortcutRow(translated("Alt + Up, Down; drag its header"), translated("Move the track"));
}

QString historyRows() {
  return shortcutRow(translated("Up, Down"), translated("Select the next edit")) +
         shortcutRow(translated("Enter, click"), translated("Go to that state, back or forward"));
}

QString flameRows() {
  return shortcutRow(translated("Arrow keys"), translated("Select the next box in that direction")) +
         shortcutRow(translated("Double-click, Return"), translated("Zoom to the box")) +
         shortcutRow(translated("Backspace; Home, Escape"), translated("Zoom out one level; show the whole plan")) +
         shortcutRow(translated("/, Enter"), translated("Search; next match"));
}

QString rooflineRows() {
  return shortcutRow(translated("Left, Right, Home, End"), translated("Select the next step of the plan")) +
         shortcutRow(translated("Up, Down"), translated("Go to the matching step of the other plan"));
}

QString memoryRows() {
  return shortcutRow(translated("Left, Right, Home, End"), translated("Select the next step of the plan"));
}

QString rulesRows() {
  return shortcutRow(translated("Up, Down"), translated("Show the next rule")) +
         shortcutRow(translated("Space"), translated("Switch the rule off or on in this pipeline")) +
         shortcutRow(translated("Tab, Enter"),
                     translated("Go to a place where the rule applies or fails, and select its ops"));
}

QString runsRows() {
  return shortcutRow(translated("Enter, double-click"), translated("Open the run")) +
         shortcutRow(translated("F2"), translated("Edit its note")) +
         shortcutRow(translated("S"), translated("Star it, so that it is never deleted automatically"));
}

QString section(const QString& title, const QString& rows) {
  return QStringLiteral("<h3>%1</h3><table cellspacing='0' cellpadding='3'>%2</table>").arg(title, rows);
}

}  // namespace

QString paneKeys() {
  return section(translated("Canvas"), canvasRows()) + section(translated("Outline"), outlineRows()) +
         section(translated("Plan"), planRows()) + section(translated("Timeline"), timelineRows()) +
         section(translated("Flame"), flameRows()) + section(translated("Roofline"), rooflineRows()) +
         section(translated("Memory"), memoryRows()) + section(translated("Rules"), rulesRows()) +
         section(translated("Runs"), runsRows()) + section(translated("History"), historyRows());
}

namespace {

QString deviceText(const Json& device) {
  QStringList lines = {QStringLiteral("%1: %2").arg(toQt(device.value("id", "")), toQt(device.value("name", "")))};
  if (const std::string reason = device.value("reason", ""); !reason.empty())
    lines.append(QStringLiteral("  ") + toQt(reason));
  const Json details = device.value("details", Json::object());
  for (const auto& [key, value] : details.items())
    lines.append(
        QStringLiteral("  %1: %2").arg(toQt(key), toQt(value.is_string() ? value.get<std::string>() : value.dump())));
  return lines.join(u'\n');
}

/// "GCC 12.2.0".
QString compiler() {
#ifdef __clang__
  return QStringLiteral("Clang " __clang_version__).trimmed();
#else
  return QStringLiteral("GCC " __VERSION__);
#endif
}

QString aboutText() {
  return translated(
             "<h3>Fuseline %1</h3><p>Design pipelines of TransformerEngine-style ops, see how they fuse and why, and "
             "measure the result. No network, no telemetry.</p><p>Apache License 2.0. Made with Qt (LGPL 3), oneDNN "
             "and Highway (Apache 2.0), Graphviz (EPL), fmt, nlohmann json and mimalloc (MIT), CLI11 and dtl (BSD), "
             "NVTX "
             "(Apache 2.0 with LLVM exception). On a GPU it loads NVIDIA's driver and CUDA libraries, if they are "
             "installed; those are NVIDIA's.</p><p>For bug reports:</p>")
      .arg(QStringLiteral(FUSELINE_VERSION));
}

}  // namespace

QString environmentText(const Json& devices) {
  QStringList lines = {
      QStringLiteral("Fuseline %1").arg(QStringLiteral(FUSELINE_VERSION)),
      QStringLiteral("Built as %1 with %2").arg(QStringLiteral(FUSELINE_BUILD_TYPE), compiler()),
      QStringLiteral("Qt %1, %2").arg(QString::fromLatin1(qVersion()), QGuiApplication::platformName()),
      QStringLiteral("%1, %2 %3")
          .arg(QSysInfo::prettyProductName(), QSysInfo::kernelType(), QSysInfo::kernelVersion())};
  for (const Json& device : devices) lines.append(deviceText(device));
  return lines.join(u'\n');
}

void showAbout(const Json& devices, QWidget* parent) {
  TextDialog(translated("About Fuseline"), aboutText(), environmentText(devices), parent).exec();
}

}  // namespace fuseline::ui
