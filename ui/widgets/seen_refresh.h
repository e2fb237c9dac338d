// SeenRefresh: refreshes a pane when it can be seen, so that panes behind others cost nothing while one edits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QTimer>
#include <QWidget>

#include <functional>

namespace fuseline::ui {

class SeenRefresh : public QObject {
 public:
  /// The pane owns it.
  /// isCostly: whether a refresh takes long enough to wait with it.
  /// isOutdated: whether what would be shown is about to be replaced; a costly refresh waits for that.
  SeenRefresh(
      QWidget& pane, std::function<bool()> isCostly, std::function<void()> refresh,
      std::function<bool()> isOutdated = [] { return false; });

  /// Refreshes at once, unless that is costly: then after a moment without other requests, so that edits do not wait
  /// for panes, and if nothing of the pane can be seen in its window, when it comes into sight.
  void request();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  bool isSeen() const;
  void followDock();
  void refreshIfBehind();

  QWidget& m_pane;
  std::function<bool()> m_isCostly;
  std::function<void()> m_refresh;
  std::function<bool()> m_isOutdated;
  bool m_isBehind = false;
  QWidget* m_dock = nullptr;  // nullptr: not known yet
  QTimer m_pause;
};

}  // namespace fuseline::ui
