// Backups: the earlier file, kept as "mlp.fuseline~" when it is overwritten.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>

namespace fuseline::ui {

class Backups {
 public:
  /// isKept: whether the choice is kept in the user's settings.
  explicit Backups(bool isKept);

  bool isOn() const { return m_isOn; }
  void setOn(bool isOn);
  /// Before a file is overwritten. False: its backup could not be written.
  bool keep(const QString& path) const;

 private:
  bool m_isKept;
  bool m_isOn;
};

}  // namespace fuseline::ui
