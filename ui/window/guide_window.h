// GuideWindow: the pages of the guide, beside the main window while one works.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QDialog>
#include <QLineEdit>
#include <QListWidget>
#include <QTextBrowser>

namespace fuseline::ui {

class GuideWindow : public QDialog {
  Q_OBJECT

 public:
  explicit GuideWindow(QWidget* parent = nullptr);

  /// Brings a page to the front, with this heading on top; an empty one: its beginning.
  void showPage(const QString& name, const QString& heading = {});
  /// Rich text that is no page, in their place.
  void showCard(const QString& title, const QString& card);
  const QTextBrowser& text() const { return *m_text; }

 private:
  void load(int page);
  void bringToFront();
  void findNext();

  QListWidget* m_pages;
  QTextBrowser* m_text;
  QLineEdit* m_search;
};

}  // namespace fuseline::ui
