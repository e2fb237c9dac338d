// TimelineKeys: the keys of a timeline: zoom and pan, walk boxes, arrange tracks, and what the panel opens.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QObject>
#include <QPoint>
#include <QString>

class QKeyEvent;

namespace fuseline::ui {

class TimelineView;

/// Takes the view's keys. W and S zoom, A and D pan; Home shows all, F what is selected, Return what the arrow keys
/// stand on, Backspace what was shown before. R chooses the area of the current box.
class TimelineKeys : public QObject {
  Q_OBJECT

 public:
  explicit TimelineKeys(TimelineView& view);

 Q_SIGNALS:
  /// The key that shows and hides the table.
  void sumsToggled();
  /// The user wants to say something of the area.
  void noteWanted();
  void findWanted();
  /// Asks to pin the details of a box as a card at this place. title: name of the box.
  void pinWanted(const QString& html, const QString& title, QPoint place);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  bool isOwn(int key) const;
  bool isOwn(const QKeyEvent& event) const;
  void press(const QKeyEvent& event);
  bool handleView(int key);
  bool handleWalk(int key);
  void handleArea(int key);
  bool handleTrack(int key, Qt::KeyboardModifiers modifiers);
  void showSelection();
  void takeBox();
  void takeNote();
  void pinTip();

  TimelineView& m_view;
};

}  // namespace fuseline::ui
