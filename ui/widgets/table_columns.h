// TableColumns: which columns of a table are shown, where, how wide, and which one its rows are sorted by.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QObject>
#include <QString>
#include <QTimer>
#include <QTreeView>

#include <vector>

class QMenu;

namespace fuseline::ui {

/// The first column is always shown. A column without a word in it is not, but stays chosen for other contents.
class TableColumns : public QObject {
  Q_OBJECT

 public:
  struct Column {
    QString id;  // in the settings
    bool isShownFirst = true;
    /// Rows are sorted by it, the largest first, until the user chooses.
    bool isSortedFirst = false;
  };
  /// The view has its model, and as many columns. group: of the settings; empty: nothing is read or kept.
  TableColumns(QTreeView& view, std::vector<Column> columns, QString group);
  ~TableColumns() override;

  bool isChosen(int column) const { return m_isChosen[static_cast<std::size_t>(column)]; }
  void choose(int column, bool isShown);
  /// As in the beginning.
  void reset();
  /// After the contents have changed. Columns are as wide as these, and the first one has the rest, until the user has
  /// made one wider or narrower.
  void refresh();
  /// Functions of the view's header as menus, for the keyboard.
  QMenu* chooser() const { return m_chooser; }
  QMenu* sorter() const { return m_sorter; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void createHeader();
  void sortAtFirst();
  void createMenus();
  void followHeader();
  void fillChooser();
  void fillSorter();
  bool hasWords(int column, const QModelIndex& parent = {}) const;
  QString nameOf(int column) const;
  int numColumns() const { return static_cast<int>(m_columns.size()); }
  int contentWidth(int column) const;
  void fit();
  void stretch();
  void load();
  void save();

  QTreeView& m_view;
  std::vector<Column> m_columns;
  std::vector<bool> m_isChosen;
  QString m_group;
  QMenu* m_chooser;
  QMenu* m_sorter;
  QTimer m_saving;  // once for a drag of the mouse
  int m_leastFirstPx = 0;
  bool m_hasOwnWidths = false;
  bool m_isArranging = false;  // not by hand
};

}  // namespace fuseline::ui
