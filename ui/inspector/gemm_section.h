// GemmSection: which of the three GEMMs of linear layers the recipe quantizes, to be switched one by one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/gemm_switches.h"
#include "ui/session/session.h"

#include <QCheckBox>
#include <QStringList>
#include <QWidget>

#include <array>

namespace fuseline::ui {

/// A box for fprop, dgrad and wgrad. Hidden while nothing is quantized, or none of the ops has a GEMM.
class GemmSection : public QWidget {
  Q_OBJECT

 public:
  GemmSection(Session& session, QStringList ops, QWidget* parent = nullptr);
  void refresh();
  QCheckBox* box(GemmRole gemm) const { return m_boxes[static_cast<std::size_t>(gemm)]; }

 private:
  std::vector<NodeId> linears() const;
  void refresh(GemmRole gemm, const Recipe& recipe);
  Result<Recipe> switched(Recipe recipe, GemmRole gemm, bool isQuantized) const;
  void set(GemmRole gemm, bool isQuantized);

  Session& m_session;
  QStringList m_ops;
  std::array<QCheckBox*, 3> m_boxes = {};  // by GemmRole
};

}  // namespace fuseline::ui
