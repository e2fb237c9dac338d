// What help says of keys, and the about box.
// SPDX-License-Identifier: Apache-2.0
#include "ui/help.h"

#include "ui/theme/theme.h"

#include <QCoreApplication>
#include <QMessageBox>

namespace fuseline::ui {

namespace {

QString translated(const char* text) { return QCoreApplication::translate("Help", text); }

QString shortcutRow(const QString& keys, const QString& text) {
  return QStringLiteral("<tr><td style='padding-right:24px'><b>%1</b></td><td>%2</td></tr>")
      .arg(keys.toHtmlEscaped(), text.toHtmlEscaped());
}

QString canvasRows() {
  return shortcutRow(translated("Tab, Shift+A, double click"), translated("Search an op and insert it")) +
         shortcutRow(translated("Arrow keys"), translated("Select the next op in this direction")) +
         shortcutRow(translated("Ctrl+Left, Ctrl+Right"), translated("Follow a wire from the selected op")) +
         shortcutRow(translated("Enter, F2"), translated("Edit the selected op")) +
         shortcutRow(translated("Home, Shift+1"), translated("Show everything")) +
         shortcutRow(translated("F"), translated("Show the selection")) +
         shortcutRow(translated("Wheel, pinch"), translated("Zoom at the pointer")) +
         shortcutRow(translated("Middle button, Space + drag"), translated("Move the view")) +
         shortcutRow(translated("Drag from port to port, or click both"), translated("Draw a wire")) +
         shortcutRow(translated("Drop a wire on nothing"), translated("Search an op that it leads to")) +
         shortcutRow(translated("Drop an op without wires on a wire"), translated("Put it in; with Alt only move it")) +
         shortcutRow(translated("W"), translated("Draw a wire from the selected op; again: from its next port")) +
         shortcutRow(translated("Arrow keys, Enter"), translated("Choose the port of that wire, and join it")) +
         shortcutRow(translated("Esc"), translated("Give up the wire, stop the run, or clear the selection"));
}

QString planRows() {
  return shortcutRow(translated("Left, Right"), translated("Select the next box of the lane")) +
         shortcutRow(translated("Up, Down"), translated("Go to the forward or the backward lane"));
}

QString outlineRows() {
  return shortcutRow(translated("Up, Down"), translated("Select the next op; with Shift several")) +
         shortcutRow(translated("Right, Left"), translated("Open or close an instance of a block")) +
         shortcutRow(translated("F2"), translated("Rename")) +
         shortcutRow(translated("Enter"), translated("Edit the selected op")) +
         shortcutRow(translated("Delete, Ctrl+Delete"), translated("Remove; remove and reconnect")) +
         shortcutRow(translated("D, T"), translated("Bypass the op, switch its fusion off or on")) +
         shortcutRow(translated("W"), translated("Draw a wire from the selected op, on the canvas"));
}

QString timelineRows() {
  return shortcutRow(translated("Wheel, W, S"), translated("Zoom")) +
         shortcutRow(translated("Drag, A, D"), translated("Move the view")) +
         shortcutRow(translated("Arrow keys, comma, period"), translated("Select the next box")) +
         shortcutRow(translated("Home, F"), translated("Show everything, or what is selected")) +
         shortcutRow(translated("Double click, Return"), translated("Zoom to the box")) +
         shortcutRow(translated("Backspace"), translated("Show what was shown before")) +
         shortcutRow(translated("Shift + drag"), translated("Measure a stretch"));
}

QString rooflineRows() {
  return shortcutRow(translated("Left, Right, Home, End"), translated("Select the next step of the plan")) +
         shortcutRow(translated("Up, Down"), translated("Go to the same work in the other plan"));
}

QString rulesRows() {
  return shortcutRow(translated("Up, Down"), translated("Show the next rule of the book")) +
         shortcutRow(translated("Space"), translated("Switch the rule off or on in this pipeline")) +
         shortcutRow(translated("Tab, Enter"), translated("Go to a hit or a miss, and select its ops"));
}

QString runsRows() {
  return shortcutRow(translated("Enter, double click"), translated("Open the run")) +
         shortcutRow(translated("F2"), translated("Edit its note")) +
         shortcutRow(translated("S"), translated("Star it, so that it is never dropped"));
}

QString section(const QString& title, const QString& rows) {
  return QStringLiteral("<h3>%1</h3><table cellspacing='0' cellpadding='3'>%2</table>").arg(title, rows);
}

}  // namespace

QString paneKeys() {
  return section(translated("Canvas"), canvasRows()) + section(translated("Outline"), outlineRows()) +
         section(translated("Plan"), planRows()) + section(translated("Timeline"), timelineRows()) +
         section(translated("Roofline"), rooflineRows()) + section(translated("Rules"), rulesRows()) +
         section(translated("Runs"), runsRows());
}

void showAbout(QWidget* parent) {
  QMessageBox::about(parent, translated("About Fuseline"),
                     translated("<h3>Fuseline %1</h3><p>Design pipelines of TransformerEngine-style ops, see how they "
                                "fuse and why, and measure it.</p><p>Qt %2. Apache License 2.0. No network, no "
                                "telemetry.</p>")
                         .arg(QStringLiteral(FUSELINE_VERSION), QString::fromLatin1(qVersion())));
}

}  // namespace fuseline::ui
