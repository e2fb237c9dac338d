// QuietWheel: the wheel scrolls a form; it does not change the box that happens to be below the pointer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QObject>

namespace fuseline::ui {

/// Choice boxes and number fields of the whole application take the wheel only while they have the keyboard, which they
/// get by a click or a key, not by the wheel.
class QuietWheel : public QObject {
 public:
  /// Once for the application; later calls do nothing.
  static void install();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  using QObject::QObject;
};

}  // namespace fuseline::ui
