// RecipeSection: the quantization recipe of the pipeline and its fields, made from the recipe's definition.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"
#include "ui/session/session.h"

#include <QComboBox>
#include <QFormLayout>
#include <QWidget>

#include <functional>
#include <vector>

namespace fuseline::ui {

/// JSON of a recipe with its defaults for the document; null for the recipe without quantization.
Json recipeJson(const RecipeDefinition& definition);

/// JSON of the document's recipe with one field changed. Defaults are not written.
Json withRecipeField(const PipelineDocument& document, const std::string& field, const Json& value);

/// The definition that the document names; that of None where it names no recipe, or one that does not exist.
const RecipeDefinition& recipeOf(const PipelineDocument& document);
/// Shows the recipe of the document in a box whose items have names of recipes as their data; what is none is shown as
/// the document has it, and no item is chosen.
void showRecipe(QComboBox& box, const PipelineDocument& document);

class RecipeSection : public QWidget {
  Q_OBJECT

 public:
  explicit RecipeSection(Session& session, QWidget* parent = nullptr);
  void refresh();

 private:
  void createChoice(QFormLayout* form);
  void createFields(QFormLayout* form);
  QWidget* createEditor(const AttributeSpec& field);
  QWidget* createCheck(const AttributeSpec& field);
  QWidget* createCombo(const AttributeSpec& field);
  QWidget* createEdit(const AttributeSpec& field);
  void set(const AttributeSpec& field, const Json& value);

  Session& m_session;
  std::vector<std::function<void()>> m_refreshers;
};

}  // namespace fuseline::ui
