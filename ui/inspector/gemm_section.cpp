// Each box is an override of the recipe.
// SPDX-License-Identifier: Apache-2.0
#include "ui/inspector/gemm_section.h"

#include "ui/theme/format.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

namespace fuseline::ui {

namespace {

constexpr GemmRole kGemms[] = {GemmRole::Fprop, GemmRole::Dgrad, GemmRole::Wgrad};

const char* formulaOf(GemmRole gemm) {
  switch (gemm) {
    case GemmRole::Fprop: return "y = x wᵀ";
    case GemmRole::Dgrad: return "dx = dy w";
    case GemmRole::Wgrad: return "dw = dyᵀ x";
  }
  return "";
}

}  // namespace

GemmSection::GemmSection(Session& session, QStringList ops, QWidget* parent)
    : QWidget(parent), m_session(session), m_ops(std::move(ops)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(4);
  auto* label = new QLabel(tr("GEMMs that the recipe quantizes"), this);
  label->setToolTip(tr("Clear a check box to keep that GEMM in high precision (an override of the recipe)."));
  layout->addWidget(label);
  auto* row = new QHBoxLayout;
  row->setSpacing(14);
  layout->addLayout(row);
  for (const GemmRole gemm : kGemms) {
    auto* box = new QCheckBox(toQt(roleName(gemm)), this);
    box->setAccessibleName(tr("Quantize %1").arg(box->text()));
    connect(box, &QCheckBox::clicked, this, [this, gemm](bool isChecked) { set(gemm, isChecked); });
    row->addWidget(box);
    m_boxes[static_cast<std::size_t>(gemm)] = box;
  }
  row->addStretch(1);
  refresh();
}

std::vector<NodeId> GemmSection::linears() const {
  std::vector<NodeId> all;
  for (const QString& op : m_ops)
    for (const NodeId id : linearsAt(m_session.plan().analysis()->documentGraph(), op.toStdString())) all.push_back(id);
  return all;
}

void GemmSection::refresh() {
  const std::optional<Recipe>& recipe = m_session.plan().analysis()->recipe;
  const bool isUsed = recipe && recipe->definition().quantizer && !linears().empty();
  setVisible(isUsed);
  if (!isUsed) return;
  for (const GemmRole gemm : kGemms) refresh(gemm, *recipe);
}

void GemmSection::refresh(GemmRole gemm, const Recipe& recipe) {
  const Graph& graph = m_session.plan().analysis()->documentGraph();
  const std::optional<bool> state = isQuantized(recipe, graph, linears(), gemm);
  QCheckBox& box = *m_boxes[static_cast<std::size_t>(gemm)];
  box.setTristate(!state);
  box.setCheckState(state ? (*state ? Qt::Checked : Qt::Unchecked) : Qt::PartiallyChecked);
  const Result<Recipe> on = switched(recipe, gemm, true);
  const bool canBeOn = on && isQuantized(*on, graph, linears(), gemm) == true;
  box.setEnabled(canBeOn && !m_session.pipeline().document().isReadOnly());
  const QString formula = QString::fromUtf8(formulaOf(gemm));
  box.setToolTip(canBeOn ? formula : tr("%1: in high precision for all layers under this recipe").arg(formula));
}

Result<Recipe> GemmSection::switched(Recipe recipe, GemmRole gemm, bool isQuantized) const {
  for (const QString& op : m_ops) {
    if (linearsAt(m_session.plan().analysis()->documentGraph(), op.toStdString()).empty()) continue;
    Result<Recipe> next = withGemmQuantized(recipe, op.toStdString(), gemm, isQuantized);
    if (!next) return next;
    recipe = std::move(*next);
  }
  return recipe;
}

void GemmSection::set(GemmRole gemm, bool isQuantized) {
  const Result<Recipe> own = recipeFromJson(m_session.pipeline().document().recipe());
  const Result<Recipe> next = own ? switched(*own, gemm, isQuantized) : own;
  if (!next) return void(Q_EMIT m_session.pipeline().editRefused(toQt(next.error().message)));
  const QString what = isQuantized ? tr("Quantize %1 of %2") : tr("Leave %1 of %2 in high precision");
  const QString label = what.arg(toQt(roleName(gemm)), m_ops.join(QStringLiteral(", ")));
  Json recipe = m_session.pipeline().document().recipe();
  recipe.erase("overrides");
  if (Json overrides = toJson(*next)["overrides"]; !overrides.empty()) recipe["overrides"] = std::move(overrides);
  m_session.pipeline().apply(EditGroup{.label = label.toStdString(), .edits = {SetRecipe{std::move(recipe)}}});
}

}  // namespace fuseline::ui
