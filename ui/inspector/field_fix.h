// FieldFix: the button beneath a field of the inspector that sets what a problem proposes for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"

#include <QPushButton>

#include <string>

namespace fuseline::ui {

class FieldFix : public QPushButton {
  Q_OBJECT

 public:
  /// op, attribute: the field. An op inside a block has no fixes.
  FieldFix(Session& session, std::string op, std::string attribute, QWidget* parent = nullptr);
  /// Hidden where the last analysis proposes nothing.
  void refresh();

 private:
  const Repair* find() const;
  void apply();

  Session& m_session;
  std::string m_op;
  std::string m_attribute;
};

}  // namespace fuseline::ui
