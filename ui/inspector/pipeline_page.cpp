// The inspector's page of the whole pipeline: symbols, inputs, outputs, recipe, rule set.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/expression.h"
#include "core/plan/fusion_edits.h"
#include "ui/inspector/field_problem.h"
#include "ui/inspector/inspector_panel.h"
#include "ui/inspector/overrides_table.h"
#include "ui/inspector/recipe_section.h"
#include "ui/session/edits.h"
#include "ui/theme/format.h"
#include "ui/widgets/undo_keys.h"

#include <fmt/format.h>
#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QPushButton>
#include <QSignalBlocker>
#include <QSpinBox>

#include <algorithm>

namespace fuseline::ui {

namespace {

QStringList namesOf(const PipelineDocument& document) {
  QStringList names;
  for (const auto& [name, value] : document.symbols().items()) names.append(QStringLiteral("symbol ") + toQt(name));
  for (const DocumentInput& input : document.inputs()) names.append(QStringLiteral("input ") + toQt(input.id));
  for (const DocumentOutput& output : document.outputs()) names.append(QStringLiteral("output ") + toQt(output.id));
  names.append(QStringLiteral("recipe ") + toQt(recipeOf(document).name));
  if (document.fusion().is_object()) names.append(toQt(document.fusion().dump()));
  return names;
}

std::string freeSymbol(const PipelineDocument& document) {
  for (const char* name : {"M", "H", "F", "K", "N", "S", "B"}) {
    if (!document.symbols().contains(name)) return name;
  }
  int number = 1;
  while (document.symbols().contains(fmt::format("N{}", number))) ++number;
  return fmt::format("N{}", number);
}

/// Integers have no gradient.
bool isInteger(const DocumentInput& input) {
  const auto dtype = parseDType(input.dtype);
  return dtype && !isFloat(*dtype);
}

/// Note on a plan for other hardware; empty for the available hardware.
QString planTargetNote(const Session& session) {
  const PlanTarget& target = session.setup().planTarget();
  const LastRun* const opened = session.results().openedRun();
  if (target == PlanTarget{} && opened)
    return PipelinePage::tr("Planned for %1, the device of the opened run. New runs use the device in the toolbar.")
        .arg(toQt(opened->record.deviceName()));
  if (target == PlanTarget{}) return {};
  const auto capability = parseCapability(target.architecture);
  const auto& recipe = session.plan().analysis()->recipe;
  const Verdict fits = recipe && capability ? supports(*recipe, *capability) : Verdict::yes();
  const QString reason = fits ? QString() : toQt(fits.reason()) + u' ';
  return reason + PipelinePage::tr("Runs still use the device in the toolbar.");
}

/// Width of a name's field: short names leave room for the shape.
int nameWidth(const ExpressionEdit& edit, const QString& name) {
  constexpr int kNarrowestNamePx = 56;
  constexpr int kWidestNamePx = 130;
  constexpr int kFramePx = 16;
  return std::clamp(edit.fontMetrics().horizontalAdvance(name) + kFramePx, kNarrowestNamePx, kWidestNamePx);
}

Endpoint endpointOf(const QString& text) { return parseEndpoint(text.trimmed().toStdString()); }

}  // namespace

PipelinePage::PipelinePage(Session& session, const Theme& theme, QWidget* parent)
    : InspectorPage(parent),
      m_session(session),
      m_theme(theme),
      m_structure(structureOf(session)),
      m_layout(new QVBoxLayout(this)) {
  m_layout->setContentsMargins(12, 10, 8, 12);
  m_layout->setSpacing(6);
  auto* title = new QLabel(tr("Pipeline"), this);
  title->setFont(scaledFont(1.25, QFont::DemiBold));
  m_layout->addWidget(title);
  createSymbols();
  createInputs();
  createOutputs();
  createRecipe();
  createRules();
  m_layout->addStretch(1);
}

QString PipelinePage::structureOf(const Session& session) {
  return QStringLiteral("pipeline/") + namesOf(session.pipeline().document()).join(u'/');
}

void PipelinePage::refresh() {
  for (const Refresher& refresher : m_refreshers) refresher();
  setEnabled(!m_session.pipeline().document().isReadOnly());
}

QFormLayout* PipelinePage::addSection(const QString& title) {
  auto* label = new QLabel(title, this);
  label->setFont(scaledFont(1.0, QFont::DemiBold));
  label->setContentsMargins(0, 8, 0, 0);
  m_layout->addWidget(label);
  auto* form = new QFormLayout;
  form->setHorizontalSpacing(10);
  form->setVerticalSpacing(5);
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  m_layout->addLayout(form);
  return form;
}

ExpressionEdit* PipelinePage::addEdit(QLayout* layout, const QString& name, std::function<QString()> read,
                                      std::function<void(const QString&)> write) {
  auto* edit = new ExpressionEdit(this);
  edit->setAccessibleName(name);
  edit->setToolTip(name);
  edit->setMinimumWidth(36);
  layout->addWidget(edit);
  const auto refresher = [edit, read] { edit->setCommitted(read()); };
  connect(edit, &ExpressionEdit::committedText, this, [write, refresher](const QString& text) {
    write(text);
    refresher();
  });
  m_refreshers.push_back(refresher);
  return edit;
}

void PipelinePage::addRemoveButton(QLayout* layout, const QString& name, std::function<void()> remove) {
  auto* button = new QToolButton(this);
  button->setAutoRaise(true);
  button->setIcon(m_theme.icon(QStringLiteral("remove")));
  button->setToolTip(tr("Remove %1").arg(name));
  button->setAccessibleName(button->toolTip());
  connect(button, &QToolButton::clicked, this, remove);
  layout->addWidget(button);
}

void PipelinePage::addAddButton(QFormLayout* form, const QString& text, std::function<void()> add) {
  auto* button = new QPushButton(m_theme.icon(QStringLiteral("add")), text, this);
  button->setFlat(true);
  connect(button, &QPushButton::clicked, this, add);
  auto* row = new QHBoxLayout;
  row->addWidget(button);
  row->addStretch(1);
  form->addRow(row);
}

/// As many rows as a form can lay out at once. What is left out is in the file.
template <class AddRow>
void PipelinePage::addRows(QFormLayout* form, std::size_t count, AddRow add) {
  constexpr std::size_t kMostRows = 200;
  for (std::size_t i = 0; i < std::min(count, kMostRows); ++i) add(i);
  if (count > kMostRows) form->addRow(new QLabel(tr("%1 more are in the file.").arg(count - kMostRows), this));
}

void PipelinePage::createSymbols() {
  QFormLayout* form = addSection(tr("Symbols"));
  const Json& symbols = m_session.pipeline().document().symbols();
  addRows(form, symbols.size(), [&, symbol = symbols.begin()](std::size_t) mutable {
    form->addRow(toQt(symbol.key()), symbolRow(symbol.key()));
    ++symbol;
  });
  addAddButton(form, tr("Add a symbol"), [this] {
    m_session.pipeline().apply(SetSymbol{.name = freeSymbol(m_session.pipeline().document()), .value = 1024});
  });
}

/// A row of fields over the problems of one of them.
QHBoxLayout* PipelinePage::rowIn(QWidget& place) {
  auto* column = new QVBoxLayout(&place);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(2);
  auto* fields = new QHBoxLayout;
  fields->setSpacing(4);
  column->addLayout(fields);
  return fields;
}

void PipelinePage::addProblem(QWidget& row, ExpressionEdit& edit, std::function<QString()> sentences) {
  auto* problem = new FieldProblem(m_theme, &row);
  row.layout()->addWidget(problem);
  m_refreshers.push_back([problem, &edit, sentences] { problem->tell(sentences(), &edit); });
}

QWidget* PipelinePage::symbolRow(const std::string& name) {
  auto* row = new QWidget(this);
  QHBoxLayout* layout = rowIn(*row);
  ExpressionEdit* value = addEdit(
      layout, tr("Value of %1").arg(toQt(name)),
      [this, name] {
        const Json& symbols = m_session.pipeline().document().symbols();
        return symbols.contains(name) ? editorText(symbols[name]) : QString();
      },
      [this, name](const QString& text) {
        if (text.isEmpty()) return;
        const std::string before =
            editorText(m_session.pipeline().document().symbols().value(name, Json())).toStdString();
        const QString typed = toQt(typedExpression(text.toStdString(), before));
        m_session.pipeline().apply(SetSymbol{.name = name, .value = jsonFromEditor(typed, AttributeType::Integer)});
      });
  addRemoveButton(layout, toQt(name),
                  [this, name] { m_session.pipeline().apply(SetSymbol{.name = name, .value = nullptr}); });
  addProblem(*row, *value, [this, name] { return problemsOfSymbol(m_session, name); });
  return row;
}

void PipelinePage::createInputs() {
  QFormLayout* form = addSection(tr("Inputs"));
  const auto& inputs = m_session.pipeline().document().inputs();
  addRows(form, inputs.size(), [&](std::size_t i) { form->addRow(inputRow(inputs[i].id)); });
  addAddButton(form, tr("Add an input"), [this] {
    m_session.pipeline().apply(addNode(m_session.pipeline().document(), kInputEntry, std::nullopt).edit);
  });
}

void PipelinePage::changeInput(const std::string& id, const std::function<void(DocumentInput&)>& change) {
  const DocumentInput* input = m_session.pipeline().document().findInput(id);
  if (!input) return;
  DocumentInput changed = *input;
  change(changed);
  m_session.pipeline().apply(ReplaceInput{.id = id, .input = changed});
}

QWidget* PipelinePage::inputRow(const std::string& id) {
  auto* row = new QWidget(this);
  QHBoxLayout* layout = rowIn(*row);
  ExpressionEdit* name = addEdit(
      layout, tr("Name of the input"), [id] { return toQt(id); },
      [this, id](const QString& text) {
        changeInput(id, [&](DocumentInput& input) { input.id = text.toStdString(); });
      });
  name->setMaximumWidth(nameWidth(*name, toQt(id)));
  ExpressionEdit* shape = addEdit(
      layout, tr("Shape: integers, symbols or expressions; outermost dimension first"),
      [this, id] {
        const DocumentInput* input = m_session.pipeline().document().findInput(id);
        return input ? editorText(input->shape) : QString();
      },
      [this, id](const QString& text) {
        changeInput(id, [&](DocumentInput& input) {
          input.shape = listFromEditor(toQt(typedExpression(text.toStdString(), {})));
        });
      });
  addDTypeBox(layout, id);
  addGradientBox(layout, id);
  addRemoveButton(layout, toQt(id), [this, id] {
    m_session.pipeline().apply(removeNodes(m_session.pipeline().document(), {toQt(id)}, {}, Reconnect::No));
  });
  addProblem(*row, *shape, [this, id] {
    const auto& inputs = m_session.pipeline().document().inputs();
    const auto place = std::ranges::find(inputs, id, &DocumentInput::id) - inputs.begin();
    return problemsAt(m_session, QStringLiteral("/pipeline/inputs/%1/shape").arg(place));
  });
  return row;
}

void PipelinePage::addDTypeBox(QLayout* layout, const std::string& id) {
  auto* dtype = new QComboBox(this);
  dtype->setMinimumContentsLength(4);
  dtype->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  dtype->addItems({QStringLiteral("bf16"), QStringLiteral("f16"), QStringLiteral("f32"), QStringLiteral("i64")});
  dtype->setAccessibleName(tr("dtype of %1").arg(toQt(id)));
  dtype->setToolTip(dtype->accessibleName());
  connect(dtype, &QComboBox::textActivated, this, [this, id](const QString& text) {
    changeInput(id, [&](DocumentInput& input) {
      input.dtype = text.toStdString();
      if (isInteger(input)) input.requiresGradient.reset();
    });
  });
  m_refreshers.push_back([this, id, dtype] {
    const DocumentInput* input = m_session.pipeline().document().findInput(id);
    const auto known = input ? parseDType(input->dtype) : std::nullopt;
    if (known) dtype->setCurrentText(toQt(dtypeName(*known)));
  });
  layout->addWidget(dtype);
}

void PipelinePage::addGradientBox(QLayout* layout, const std::string& id) {
  auto* gradient = new QCheckBox(tr("grad"), this);
  gradient->setToolTip(tr("Compute the gradient of this input in backward."));
  gradient->setAccessibleName(tr("Gradient of %1").arg(toQt(id)));
  connect(gradient, &QCheckBox::clicked, this, [this, id](bool isWanted) {
    changeInput(id, [&](DocumentInput& input) { input.requiresGradient = isWanted; });
  });
  m_refreshers.push_back([this, id, gradient] {
    const DocumentInput* input = m_session.pipeline().document().findInput(id);
    const bool canHave = !input || !isInteger(*input);
    gradient->setEnabled(canHave);
    gradient->setChecked(canHave && (!input || input->requiresGradient.value_or(true)));
  });
  layout->addWidget(gradient);
}

void PipelinePage::createOutputs() {
  QFormLayout* form = addSection(tr("Outputs"));
  const auto& outputs = m_session.pipeline().document().outputs();
  addRows(form, outputs.size(), [&](std::size_t i) { form->addRow(outputRow(outputs[i].id)); });
  addAddButton(form, tr("Add an output"), [this] {
    m_session.pipeline().apply(
        insertAfter(m_session.pipeline().document(), m_session.plan().analysis()->documentGraph(), kOutputEntry, {})
            .edit);
  });
}

QWidget* PipelinePage::outputRow(const std::string& id) {
  auto* row = new QWidget(this);
  auto* layout = new QHBoxLayout(row);
  layout->setContentsMargins(0, 0, 0, 0);
  const auto change = [this, id](auto setter) {
    const DocumentOutput* output = m_session.pipeline().document().findOutput(id);
    if (!output) return;
    DocumentOutput changed = *output;
    setter(changed);
    m_session.pipeline().apply(ReplaceOutput{.id = id, .output = changed});
  };
  ExpressionEdit* name = addEdit(
      layout, tr("Name of the output"), [id] { return toQt(id); },
      [change](const QString& text) { change([&](DocumentOutput& output) { output.id = text.toStdString(); }); });
  name->setMaximumWidth(nameWidth(*name, toQt(id)));
  addEdit(
      layout, tr("Source port, such as fc2.y"),
      [this, id] {
        const DocumentOutput* output = m_session.pipeline().document().findOutput(id);
        return output ? toQt(toString(output->from)) : QString();
      },
      [change](const QString& text) { change([&](DocumentOutput& output) { output.from = endpointOf(text); }); });
  addRemoveButton(layout, toQt(id), [this, id] {
    m_session.pipeline().apply(removeNodes(m_session.pipeline().document(), {toQt(id)}, {}, Reconnect::No));
  });
  return row;
}

void PipelinePage::createRecipe() {
  auto* section = new RecipeSection(m_session, this);
  QFormLayout* form = addSection(tr("Quantization"));
  form->addRow(section);
  m_refreshers.push_back([section] { section->refresh(); });
  auto* overrides = new OverridesTable(m_session, m_theme, this);
  form->addRow(overrides);
  m_refreshers.push_back([overrides] { overrides->refresh(); });
}

void PipelinePage::createRules() {
  QFormLayout* form = addSection(tr("Fusion"));
  auto* book = new QComboBox(this);
  book->addItem(tr("All rules"), QStringLiteral("all"));
  book->addItem(tr("TransformerEngine's rules only"), QStringLiteral("te"));
  book->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  book->setAccessibleName(tr("Rule set"));
  connect(book, &QComboBox::activated, this, [this, book] {
    Json fusion = m_session.pipeline().document().fusion().is_object() ? m_session.pipeline().document().fusion()
                                                                       : Json::object();
    fusion["rules"] = book->currentData().toString().toStdString();
    m_session.pipeline().apply(SetFusion{.fusion = fusion});
  });
  m_refreshers.push_back([this, book] {
    const Json& fusion = m_session.pipeline().document().fusion();
    const std::string rules = fusion.is_object() ? fusion.value("rules", "all") : "all";
    book->setCurrentIndex(std::max(0, book->findData(toQt(rules))));
  });
  form->addRow(tr("Rule set"), book);
  addPlanTarget(form);
  addRuleSwitches(form, "without", tr("off: %1"));
  addRuleSwitches(form, "with", tr("on: %1"));
}

/// Target that fusions are planned for; not part of the document.
void PipelinePage::addPlanTarget(QFormLayout* form) {
  auto* device = new QComboBox(this);
  device->addItem(tr("The device of the toolbar"), QString());
  for (const std::string_view name : plannedArchitectures()) device->addItem(toQt(name), toQt(name));
  device->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  device->setAccessibleName(tr("Plan for"));
  device->setToolTip(tr("GPU to plan fusions for; it need not be installed"));
  auto* ranks = new QSpinBox(this);
  ranks->setRange(1, RunSetup::mostRanks());
  ranks->setKeyboardTracking(false);
  ranks->setAccessibleName(tr("Ranks"));
  ranks->setToolTip(tr("Tensor-parallel ranks of runs and plans. Sizes in the file are those of the unsharded layers"));
  shareUndoKeys(*ranks, [ranks] { return ranks->cleanText() != QString::number(ranks->value()); });
  auto* note = new QLabel(this);
  note->setWordWrap(true);
  connect(device, &QComboBox::activated, this, [this, device] {
    m_session.setup().setPlanTarget({.architecture = device->currentData().toString().toStdString()});
  });
  connect(ranks, &QSpinBox::valueChanged, this, [this](int value) { m_session.setup().setRanks(value); });
  m_refreshers.push_back([this, device, ranks, note] {
    const PlanTarget& target = m_session.setup().planTarget();
    device->setCurrentIndex(std::max(0, device->findData(toQt(target.architecture))));
    const QSignalBlocker quiet(ranks);
    ranks->setValue(m_session.setup().ranks());
    note->setText(planTargetNote(m_session));
    note->setVisible(!note->text().isEmpty());
  });
  form->addRow(tr("Plan for"), device);
  form->addRow(tr("Ranks"), ranks);
  form->addRow(note);
}

/// One row for every entry of the document's fusion[key], with a button that takes it out.
void PipelinePage::addRuleSwitches(QFormLayout* form, const std::string& key, const QString& label) {
  const Json& fusion = m_session.pipeline().document().fusion();
  if (!fusion.is_object()) return;
  for (const Json& entry : fusion.value(key, Json::array())) {
    if (!entry.is_string()) continue;
    const QString text = label.arg(toQt(entry.get<std::string>()));
    auto* row = new QHBoxLayout;
    row->addWidget(new QLabel(text, this), 1);
    addRemoveButton(row, tr("the switch \"%1\"").arg(text), [this, key, entry] {
      m_session.pipeline().apply(removeRuleSwitch(m_session.pipeline().document(), key, entry));
    });
    form->addRow(row);
  }
}

}  // namespace fuseline::ui
