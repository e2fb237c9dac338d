// Dialogs that choose files: each purpose begins where it ended last time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>
#include <QStringList>
#include <QVariantMap>
#include <QWidget>

namespace fuseline::ui {

struct FileChoice {
  QString purpose;  // "drawing": those of one purpose share a folder
  QString title;
  QString patterns;     // as QFileDialog has them
  QString pipeline;     // the first time it begins beside this file; empty: it is in none
  QString ending = {};  // of what is saved, without the dot
  QString name = {};    // that is proposed
};

/// Empty: given up.
QString fileToSave(const FileChoice& choice, QWidget* parent);
QString fileToOpen(const FileChoice& choice, QWidget* parent);
QStringList filesToOpen(const FileChoice& choice, QWidget* parent);

/// By purpose. The main window around the widget keeps them.
QVariantMap fileFolders(const QWidget& widget);
void setFileFolders(QWidget& widget, const QVariantMap& folders);

}  // namespace fuseline::ui
