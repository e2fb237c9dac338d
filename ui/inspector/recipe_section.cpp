// Editors of a recipe.
// SPDX-License-Identifier: Apache-2.0
#include "ui/inspector/recipe_section.h"

#include "ui/inspector/attribute_field.h"
#include "ui/theme/format.h"

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>

#include <algorithm>

namespace fuseline::ui {

namespace {

Json defaultOf(const PipelineDocument& document, const std::string& field) {
  return toJson(*Recipe::create(recipeOf(document)))["fields"][field];
}

/// Value of a field in the document, valid or not, or its default.
Json fieldValue(const PipelineDocument& document, const std::string& field) {
  const Json& recipe = document.recipe();
  for (const char* place : {"", "/fields"}) {
    const Json::json_pointer pointer(place + ("/" + field));
    if (recipe.contains(pointer)) return recipe[pointer];
  }
  return defaultOf(document, field);
}

QString summaryText(const RecipeDefinition& recipe) {
  QString text = toQt(recipe.summary);
  if (recipe.hardware)
    text += QStringLiteral(" ") +
            RecipeSection::tr("On a GPU it %1; on a CPU it is emulated.").arg(toQt(hardwareText(recipe)));
  return text;
}

}  // namespace

Json recipeJson(const RecipeDefinition& definition) {
  return definition.quantizer ? Json{{"name", definition.name}} : Json();
}

Json withRecipeField(const PipelineDocument& document, const std::string& field, const Json& value) {
  Json changed = document.recipe().is_object() ? document.recipe() : Json::object();
  if (changed.contains("fields") && changed["fields"].is_object()) changed["fields"].erase(field);
  if (value == defaultOf(document, field))
    changed.erase(field);
  else
    changed[field] = value;
  return changed;
}

const RecipeDefinition& recipeOf(const PipelineDocument& document) {
  const Json& recipe = document.recipe();
  const Json* const name = recipe.is_object() && recipe.contains("name") ? &recipe["name"] : nullptr;
  const RecipeDefinition* const found = name && name->is_string() ? findRecipe(name->get<std::string>()) : nullptr;
  return found ? *found : builtinRecipes().front();
}

void showRecipe(QComboBox& box, const PipelineDocument& document) {
  const Json& recipe = document.recipe();
  const bool isNamed = recipe.is_object() && recipe.contains("name") && recipe["name"].is_string();
  const std::string name = isNamed ? recipe["name"].get<std::string>() : recipe.dump();
  const QString known = recipe.is_null() ? toQt(recipeOf(document).name) : toQt(name);
  box.setPlaceholderText(known);
  box.setCurrentIndex(box.findData(known));
}

RecipeSection::RecipeSection(Session& session, QWidget* parent) : QWidget(parent), m_session(session) {
  auto* form = new QFormLayout(this);
  form->setContentsMargins(0, 0, 0, 0);
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  createChoice(form);
  createFields(form);
  refresh();
}

void RecipeSection::refresh() {
  for (const auto& refresher : m_refreshers) refresher();
}

void RecipeSection::createChoice(QFormLayout* form) {
  auto* choice = new QComboBox(this);
  choice->setObjectName(QStringLiteral("recipe"));
  for (const RecipeDefinition& definition : builtinRecipes())
    choice->addItem(toQt(definition.name), toQt(definition.name));
  choice->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  choice->setAccessibleName(tr("Quantization recipe"));
  connect(choice, &QComboBox::textActivated, this, [this](const QString& name) {
    m_session.pipeline().apply(SetRecipe{.recipe = recipeJson(*findRecipe(name.toStdString()))});
  });
  auto* summary = new QLabel(this);
  summary->setWordWrap(true);
  m_refreshers.push_back([this, choice, summary] {
    showRecipe(*choice, m_session.pipeline().document());
    summary->setText(choice->currentIndex() >= 0 ? summaryText(recipeOf(m_session.pipeline().document())) : QString());
  });
  form->addRow(tr("Recipe"), choice);
  form->addRow(summary);
}

void RecipeSection::createFields(QFormLayout* form) {
  for (const AttributeSpec& field : recipeOf(m_session.pipeline().document()).fields) {
    QWidget* const editor = createEditor(field);
    editor->setObjectName(toQt(field.name));
    editor->setAccessibleName(toQt(field.name));
    editor->setToolTip(toQt(field.help));
    auto* label = new QLabel(toQt(field.name), this);
    label->setToolTip(toQt(field.help));
    label->setBuddy(editor);
    form->addRow(label, editor);
  }
}

QWidget* RecipeSection::createEditor(const AttributeSpec& field) {
  if (field.type == AttributeType::Boolean) return createCheck(field);
  return field.choices.empty() ? createEdit(field) : createCombo(field);
}

QWidget* RecipeSection::createCheck(const AttributeSpec& field) {
  auto* check = new QCheckBox(this);
  connect(check, &QCheckBox::clicked, this, [this, &field](bool isChecked) { set(field, isChecked); });
  m_refreshers.push_back([this, &field, check] {
    const Json value = fieldValue(m_session.pipeline().document(), field.name);
    check->setChecked(value.is_boolean() && value.get<bool>());
  });
  return check;
}

QWidget* RecipeSection::createCombo(const AttributeSpec& field) {
  auto* combo = new QComboBox(this);
  combo->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);  // factories have long names
  for (const std::string& choice : field.choices) combo->addItem(toQt(choice));
  connect(combo, &QComboBox::textActivated, this,
          [this, &field](const QString& text) { set(field, text.toStdString()); });
  m_refreshers.push_back([this, &field, combo] {
    const Json value = fieldValue(m_session.pipeline().document(), field.name);
    if (value.is_string()) combo->setCurrentText(toQt(value.get<std::string>()));
  });
  return combo;
}

QWidget* RecipeSection::createEdit(const AttributeSpec& field) {
  auto* edit = new ExpressionEdit(this);
  connect(edit, &ExpressionEdit::committedText, this, [this, &field](const QString& text) {
    bool isNumber = false;
    const double real = text.toDouble(&isNumber);
    const qlonglong integer = text.toLongLong();
    const bool isInteger = field.type == AttributeType::Integer && isNumber;
    set(field, isInteger ? Json(static_cast<std::int64_t>(integer)) : isNumber ? Json(real) : Json(text.toStdString()));
  });
  m_refreshers.push_back([this, &field, edit] {
    edit->setCommitted(editorText(fieldValue(m_session.pipeline().document(), field.name)));
  });
  return edit;
}

void RecipeSection::set(const AttributeSpec& field, const Json& value) {
  m_session.pipeline().apply(SetRecipe{.recipe = withRecipeField(m_session.pipeline().document(), field.name, value)});
  refresh();
}

}  // namespace fuseline::ui
