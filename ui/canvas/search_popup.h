// SearchPopup: type to find one of many, and choose it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QCheckBox>
#include <QFrame>
#include <QLabel>
#include <QLineEdit>
#include <QTreeWidget>

#include <functional>
#include <vector>

namespace fuseline::ui {

struct SearchChoice {
  QString key;
  QString title;
  QString detail;       // at the other end of the line
  QString tip = {};     // rich text
  QString reason = {};  // why it cannot be chosen; empty: it can
};

/// Matches of a text, best first; all choices for an empty text.
using Search = std::function<std::vector<SearchChoice>(const QString& query)>;

/// Deletes itself when it closes.
class SearchPopup : public QFrame {
  Q_OBJECT

 public:
  /// what: "Search an op by name or keyword"
  SearchPopup(const QString& what, Search search, QWidget* parent);
  void openAt(QPoint screenPosition, int widthPx = 320);
  QString query() const { return m_query->text(); }
  /// Offers to show what else there is, with the reasons why that cannot be chosen.
  void setWider(Search search);

 Q_SIGNALS:
  void chosen(const QString& key);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void fill();
  void accept();
  void showReason();
  bool isUsable(const QTreeWidgetItem* item) const;
  Search m_search;
  Search m_wider;
  QLineEdit* m_query;
  QTreeWidget* m_list;
  QCheckBox* m_showAll;
  QLabel* m_reason;
};

}  // namespace fuseline::ui
