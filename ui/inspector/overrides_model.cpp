// Cells are the members of an override; a quantizer is written as on the command line.
// SPDX-License-Identifier: Apache-2.0
#include "ui/inspector/overrides_model.h"

#include "core/quant/operand_setting.h"
#include "ui/theme/format.h"

#include <array>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr std::array kKeys = {"op", "tensor", "gemm"};  // of the columns before the quantizer

Json overridesOf(const PipelineDocument& document) {
  const Json& recipe = document.recipe();
  const bool hasSome = recipe.is_object() && recipe.contains("overrides") && recipe["overrides"].is_array();
  return hasSome ? recipe["overrides"] : Json::array();
}

/// The cell of an override that names nothing there.
QString everything(int column) {
  constexpr std::array<const char*, 3> kTexts = {QT_TR_NOOP("every op"), QT_TR_NOOP("every tensor"),
                                                 QT_TR_NOOP("every GEMM")};
  return OverridesModel::tr(kTexts[static_cast<std::size_t>(column)]);
}

QStringList quantizerChoices() {
  QStringList names = {QStringLiteral("high_precision")};
  for (const RecipeDefinition& recipe : builtinRecipes())
    if (recipe.quantizer && !recipe.isCustom) names.append(toQt(recipe.name));
  return names + QStringList{QStringLiteral("e4m3"), QStringLiteral("e5m2"), QStringLiteral("e2m1")};
}

template <class Roles>
QStringList roleChoices(int column, const Roles& roles) {
  QStringList names = {everything(column)};
  for (const auto role : roles) names.append(toQt(roleName(role)));
  return names;
}

QStringList opChoices(const Graph& graph) {
  QStringList names = {everything(OverridesModel::OpColumn)};
  for (const Node& node : graph.nodes())
    if (node.operation->isQuantizable && !node.operation->isView) names << toQt(node.owner) << toQt(node.path);
  names.removeDuplicates();
  return names;
}

QString tipOf(int column) {
  switch (column) {
    case OverridesModel::OpColumn:
      return OverridesModel::tr(
          "Linear op or block instance.\nIf several rows match an operand, the last one applies.");
    case OverridesModel::TensorColumn: return OverridesModel::tr("GEMM operand: input, weight or grad_output");
    case OverridesModel::GemmColumn: return OverridesModel::tr("fprop: y = x wᵀ, dgrad: dx = dy w, wgrad: dw = dyᵀ x");
    default:
      return OverridesModel::tr(
          "One of:\n"
          "• a recipe, optionally with fields: Float8CurrentScaling(fp8_format=E4M3)\n"
          "• an element format: e4m3, e5m2 or e2m1\n"
          "• high_precision\n"
          "Prefix a recipe with ~ to quantize the columnwise tensor from the dequantized rowwise tensor.");
  }
}

}  // namespace

OverridesModel::OverridesModel(Session& session, QObject* parent) : QAbstractTableModel(parent), m_session(session) {
  m_overrides = overridesOf(session.pipeline().document());
}

/// The selection and an open editor stay, unless rows come or go.
void OverridesModel::refresh() {
  Json next = overridesOf(m_session.pipeline().document());
  if (next == m_overrides) return;
  if (next.size() != m_overrides.size()) {
    beginResetModel();
    m_overrides = std::move(next);
    endResetModel();
    return;
  }
  m_overrides = std::move(next);
  Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, NumColumns - 1));
}

QStringList OverridesModel::choices(int column) const {
  switch (column) {
    case OpColumn: return opChoices(m_session.plan().analysis()->documentGraph());
    case TensorColumn:
      return roleChoices(column, std::array{TensorType::Input, TensorType::Weight, TensorType::GradOutput});
    case GemmColumn: return roleChoices(column, std::array{GemmRole::Fprop, GemmRole::Dgrad, GemmRole::Wgrad});
    default: return quantizerChoices();
  }
}

void OverridesModel::add() {
  Json overrides = m_overrides;
  overrides.push_back(toJson(RoleOverride{}));
  apply(tr("Add an override"), std::move(overrides));
}

void OverridesModel::remove(int row) {
  Json overrides = m_overrides;
  overrides.erase(static_cast<std::size_t>(row));
  apply(tr("Remove an override"), std::move(overrides));
}

bool OverridesModel::move(int row, int by) {
  const int other = row + by;
  if (row < 0 || other < 0 || row >= rowCount() || other >= rowCount()) return false;
  Json overrides = m_overrides;
  std::swap(overrides[static_cast<std::size_t>(row)], overrides[static_cast<std::size_t>(other)]);
  return apply(tr("Move an override"), std::move(overrides));
}

/// The JSON of the file is kept, but for the overrides.
bool OverridesModel::apply(const QString& label, Json overrides) {
  Json recipe = m_session.pipeline().document().recipe();
  if (overrides.empty())
    recipe.erase("overrides");
  else
    recipe["overrides"] = std::move(overrides);
  return m_session.pipeline().apply(EditGroup{label.toStdString(), {SetRecipe{std::move(recipe)}}});
}

int OverridesModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_overrides.size());
}

QString OverridesModel::cellText(const Json& special, int column) const {
  if (column == QuantizerColumn) return toQt(operandSettingText(special));
  const char* const key = kKeys[static_cast<std::size_t>(column)];
  if (!special.is_object() || !special.contains(key)) return everything(column);
  const Json& value = special[key];
  return toQt(value.is_string() ? value.get<std::string>() : value.dump());
}

QVariant OverridesModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  if (role == Qt::ToolTipRole) return tipOf(index.column());
  if (role != Qt::DisplayRole && role != Qt::EditRole) return {};
  return cellText(m_overrides[static_cast<std::size_t>(index.row())], index.column());
}

Result<Json> OverridesModel::changed(Json special, int column, const QString& text) const {
  if (!special.is_object()) special = Json::object();
  if (column != QuantizerColumn) {
    const char* const key = kKeys[static_cast<std::size_t>(column)];
    special.erase(key);
    if (!text.isEmpty() && text != everything(column)) special[key] = text.toStdString();
    return special;
  }
  const Result<RoleOverride> typed = parseOperandSetting("all", text.toStdString());
  if (!typed) return typed.error();
  for (const char* const key : {"quantizer", "format", "columnwise_source"}) special.erase(key);
  special.update(toJson(*typed));
  return special;
}

bool OverridesModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  const QString text = value.toString().trimmed();
  if (role != Qt::EditRole || !index.isValid() || text == data(index, role).toString()) return false;
  Json overrides = m_overrides;
  Json& special = overrides[static_cast<std::size_t>(index.row())];
  Result<Json> next = changed(special, index.column(), text);
  if (!next) {
    Q_EMIT m_session.pipeline().editRefused(toQt(next.error().message));
    return false;
  }
  special = std::move(*next);
  return apply(tr("Change an override"), std::move(overrides));
}

Qt::ItemFlags OverridesModel::flags(const QModelIndex& index) const {
  const Qt::ItemFlags flags = QAbstractTableModel::flags(index);
  return m_session.pipeline().document().isReadOnly() ? flags : flags | Qt::ItemIsEditable;
}

QVariant OverridesModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::ToolTipRole) return tipOf(section);
  if (role != Qt::DisplayRole) return {};
  const QStringList heads = {tr("Op"), tr("Tensor"), tr("GEMM"), tr("Quantizer")};
  return heads[section];
}

}  // namespace fuseline::ui
