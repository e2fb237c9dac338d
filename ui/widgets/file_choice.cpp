// Chooses files, and remembers folders.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/file_choice.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QRegularExpression>

namespace fuseline::ui {

namespace {

constexpr const char* kFoldersProperty = "fileFolders";

/// Dialogs and floating panes stand in another one.
template <class Widget>
Widget& outermost(Widget& widget) {
  Widget* window = &widget;
  while (window->parentWidget()) window = window->parentWidget();
  return *window;
}

QString firstFolder(const FileChoice& choice, const QWidget& parent) {
  const QString last = fileFolders(parent).value(choice.purpose).toString();
  return QFileInfo(last).isDir() ? last : QFileInfo(choice.pipeline).path();
}

QStringList chosenIn(QFileDialog& dialog, const FileChoice& choice, QWidget& parent) {
  if (dialog.exec() != QDialog::Accepted) return {};
  QVariantMap folders = fileFolders(parent);
  folders[choice.purpose] = dialog.directory().absolutePath();
  setFileFolders(parent, folders);
  return dialog.selectedFiles();
}

/// Sets the file extension of the selected pattern, such as "NumPy (*.npy)"; other patterns keep the present one.
void followPatterns(QFileDialog& dialog) {
  QObject::connect(&dialog, &QFileDialog::filterSelected, &dialog, [&dialog](const QString& patterns) {
    static const QRegularExpression ending(QStringLiteral("\\*\\.([^ )]+)"));
    if (const auto match = ending.match(patterns); match.hasMatch()) dialog.setDefaultSuffix(match.captured(1));
  });
}

QStringList toOpen(const FileChoice& choice, QWidget& parent, QFileDialog::FileMode mode) {
  QFileDialog dialog(&parent, choice.title, firstFolder(choice, parent), choice.patterns);
  dialog.setFileMode(mode);
  return chosenIn(dialog, choice, parent);
}

}  // namespace

QString fileToSave(const FileChoice& choice, QWidget* parent) {
  QFileDialog dialog(parent, choice.title, firstFolder(choice, *parent), choice.patterns);
  dialog.setAcceptMode(QFileDialog::AcceptSave);
  dialog.setDefaultSuffix(choice.ending);
  if (!choice.name.isEmpty()) dialog.selectFile(choice.name);
  followPatterns(dialog);
  return chosenIn(dialog, choice, *parent).value(0);
}

QString fileToOpen(const FileChoice& choice, QWidget* parent) {
  return toOpen(choice, *parent, QFileDialog::ExistingFile).value(0);
}

QStringList filesToOpen(const FileChoice& choice, QWidget* parent) {
  return toOpen(choice, *parent, QFileDialog::ExistingFiles);
}

QVariantMap fileFolders(const QWidget& widget) { return outermost(widget).property(kFoldersProperty).toMap(); }

void setFileFolders(QWidget& widget, const QVariantMap& folders) {
  outermost(widget).setProperty(kFoldersProperty, folders);
}

}  // namespace fuseline::ui
