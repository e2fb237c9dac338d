// InspectorPanel: the properties of the selected op, of several, or of the whole pipeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/inspector/attention_section.h"
#include "ui/inspector/attribute_field.h"
#include "ui/inspector/block_section.h"
#include "ui/inspector/gemm_section.h"
#include "ui/inspector/rank_parts.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"
#include "ui/widgets/elided_label.h"

#include <QFormLayout>
#include <QHBoxLayout>
#include <QScrollArea>
#include <QToolButton>
#include <QVBoxLayout>
#include <QWidget>

#include <functional>
#include <vector>

namespace fuseline::ui {

/// One page of the inspector. It is built anew when its structure changes and refreshed when only values do.
class InspectorPage : public QWidget {
  Q_OBJECT

 public:
  using QWidget::QWidget;
  /// Changes exactly when refresh() is not enough.
  virtual QString structure() const = 0;
  virtual void refresh() = 0;
};

/// The properties of one op.
class OpPage : public InspectorPage {
  Q_OBJECT

 public:
  OpPage(Session& session, const Theme& theme, QString opId, QWidget* parent = nullptr);
  static QString structureOf(const Session& session, const QString& opId);
  QString structure() const override { return m_structure; }
  void refresh() override;

 Q_SIGNALS:
  void helpWanted();

 private:
  void createHead();
  QToolButton* makeHelpButton();
  void createName();
  void createFields();
  void createFacts();
  QString totalLines() const;
  QString factsText() const;
  QString loadText() const;
  QString specLines(const FusibleOperation& operation) const;
  QString specText(const TensorSpec& spec, const RankPart& part) const;

  Session& m_session;
  const Theme& m_theme;
  QString m_opId;
  QString m_structure;
  QVBoxLayout* m_layout;
  ExpressionEdit* m_id = nullptr;
  std::vector<AttributeField*> m_fields;
  GemmSection* m_gemms = nullptr;
  AttentionSection* m_attention = nullptr;
  BlockSection* m_inside = nullptr;  // of an instance
  QLabel* m_totals = nullptr;        // of an instance
  ElidedLabel* m_formula = nullptr;
  QLabel* m_facts = nullptr;
};

/// Common attributes of several ops.
class OpsPage : public InspectorPage {
  Q_OBJECT

 public:
  /// opIds: at least two, in the order of the document.
  OpsPage(Session& session, const Theme& theme, QStringList opIds, QWidget* parent = nullptr);
  static QString structureOf(const Session& session, const QStringList& opIds);
  QString structure() const override { return m_structure; }
  void refresh() override;

 private:
  QString titleText() const;
  std::vector<AttributeSpec> sharedAttributes() const;

  Session& m_session;
  QStringList m_opIds;
  QString m_structure;
  std::vector<AttributeField*> m_fields;
  GemmSection* m_gemms = nullptr;
};

/// Symbols, inputs, outputs, the recipe and the rule set.
class PipelinePage : public InspectorPage {
  Q_OBJECT

 public:
  PipelinePage(Session& session, const Theme& theme, QWidget* parent = nullptr);
  static QString structureOf(const Session& session);
  QString structure() const override { return m_structure; }
  void refresh() override;

 private:
  using Refresher = std::function<void()>;
  QFormLayout* addSection(const QString& title);
  template <class AddRow>
  void addRows(QFormLayout* form, std::size_t count, AddRow add);
  void createSymbols();
  void createInputs();
  void createOutputs();
  void createRecipe();
  void createRules();
  void addPlanTarget(QFormLayout* form);
  void addRuleSwitches(QFormLayout* form, const std::string& key, const QString& label);
  static QHBoxLayout* rowIn(QWidget& place);
  void addProblem(QWidget& row, ExpressionEdit& edit, std::function<QString()> sentences);
  QWidget* symbolRow(const std::string& name);
  QWidget* inputRow(const std::string& id);
  void addDTypeBox(QLayout* layout, const std::string& id);
  void addGradientBox(QLayout* layout, const std::string& id);
  void changeInput(const std::string& id, const std::function<void(DocumentInput&)>& change);
  QWidget* outputRow(const std::string& id);
  ExpressionEdit* addEdit(QLayout* layout, const QString& name, std::function<QString()> read,
                          std::function<void(const QString&)> write);
  void addRemoveButton(QLayout* layout, const QString& name, std::function<void()> remove);
  void addAddButton(QFormLayout* form, const QString& text, std::function<void()> add);

  Session& m_session;
  const Theme& m_theme;
  QString m_structure;
  QVBoxLayout* m_layout;
  std::vector<Refresher> m_refreshers;
};

/// A text that may be selected; as wide as the panel, never wider.
QLabel* wrappedLabel(const QString& text, QWidget* parent);

class InspectorPanel : public QScrollArea {
  Q_OBJECT

 public:
  InspectorPanel(Session& session, const Theme& theme, QWidget* parent = nullptr);
  InspectorPage* page() const { return m_page; }
  /// Puts the keyboard into the first field.
  void focusFirstField();

 Q_SIGNALS:
  /// On the selected op.
  void helpWanted();

 private:
  void refresh();
  void rebuild();
  QString wantedStructure() const;
  QStringList selectedOps() const;
  InspectorPage* makePage();
  Session& m_session;
  const Theme& m_theme;
  InspectorPage* m_page = nullptr;
};

}  // namespace fuseline::ui
