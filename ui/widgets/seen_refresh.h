// SeenRefresh: refreshes a pane when it can be seen, so that panes behind others cost nothing while one edits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QWidget>

#include <functional>

namespace fuseline::ui {

class SeenRefresh : public QObject {
 public:
  /// The pane owns it.
  /// isCostly: whether a refresh takes long enough to wait with it.
  SeenRefresh(QWidget& pane, std::function<bool()> isCostly, std::function<void()> refresh);

  /// Refreshes at once, unless that is costly and nothing of the pane can be seen in its window: then when it is
  /// painted.
  void request();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  bool isOutOfSight() const;
  void refreshIfBehind();

  QWidget& m_pane;
  std::function<bool()> m_isCostly;
  std::function<void()> m_refresh;
  bool m_isBehind = false;
};

}  // namespace fuseline::ui
