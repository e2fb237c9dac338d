// The fields of a run's options, from their table.
// SPDX-License-Identifier: Apache-2.0
#include "ui/runs/run_options_dialog.h"

#include "ui/theme/format.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QLineEdit>
#include <QPushButton>
#include <QRegularExpressionValidator>
#include <QSpinBox>

#include <type_traits>
#include <variant>

namespace fuseline::ui {

RunOptionsDialog::RunOptionsDialog(const RunSpec& proposed, QWidget* parent)
    : QDialog(parent), m_proposed(proposed), m_form(new QFormLayout(this)) {
  setWindowTitle(tr("Run options"));
  for (const bool isFlag : {false, true})
    for (const SpecField& field : runSpecFields())
      if (!field.label.empty() && field.isFlag() == isFlag) addEditor(field);
  addButtons();
  show(proposed);
}

void RunOptionsDialog::addEditor(const SpecField& field) {
  const auto editorOf = [&](auto member) {
    using Member = decltype(member);
    if constexpr (std::is_same_v<Member, bool RunSpec::*>)
      return checkBox(field, member);
    else if constexpr (std::is_same_v<Member, int RunSpec::*>)
      return spinBox(field, member);
    else if constexpr (std::is_same_v<Member, NamedTextList RunSpec::*>)
      return wordsEdit(field, member);
    else if (!field.choices().empty())
      return comboBox(field);
    else
      return lineEdit(field);
  };
  m_editors.push_back(std::visit(editorOf, field.member));
}

RunOptionsDialog::Editor RunOptionsDialog::checkBox(const SpecField& field, bool RunSpec::*member) {
  auto* box = new QCheckBox(toQt(field.label), this);
  addRow(field, *box);
  return {[box, member](const RunSpec& spec) { box->setChecked(spec.*member); },
          [box, member](RunSpec& spec) { spec.*member = box->isChecked(); }};
}

RunOptionsDialog::Editor RunOptionsDialog::spinBox(const SpecField& field, int RunSpec::*member) {
  auto* box = new QSpinBox(this);
  box->setRange(0, field.most);
  if (!field.unit.empty()) box->setSuffix(u' ' + toQt(field.unit));
  box->setSpecialValueText(toQt(field.automatic));
  addRow(field, *box);
  return {[box, member](const RunSpec& spec) { box->setValue(spec.*member); },
          [box, member](RunSpec& spec) { spec.*member = box->value(); }};
}

RunOptionsDialog::Editor RunOptionsDialog::comboBox(const SpecField& field) {
  auto* box = new QComboBox(this);
  for (const std::string& choice : field.choices()) box->addItem(toQt(choice));
  addRow(field, *box);
  return {[box, &field](const RunSpec& spec) { box->setCurrentText(toQt(textsOf(field, spec).front())); },
          [box, &field](RunSpec& spec) { (void)takeText(field, box->currentText().toStdString(), spec); }};
}

/// All repetitions of an option in one line, with spaces between them.
RunOptionsDialog::Editor RunOptionsDialog::wordsEdit(const SpecField& field, NamedTextList RunSpec::*member) {
  auto* line = new QLineEdit(this);
  line->setPlaceholderText(toQt(field.placeholder));
  addRow(field, *line);
  return {[line, &field](const RunSpec& spec) {
            QStringList words;
            for (const std::string& text : textsOf(field, spec)) words.append(toQt(text));
            line->setText(words.join(u' '));
          },
          [line, &field, member](RunSpec& spec) {
            (spec.*member).clear();
            for (const QString& word : line->text().split(u' ', Qt::SkipEmptyParts))
              (void)takeText(field, word.toStdString(), spec);
          }};
}

RunOptionsDialog::Editor RunOptionsDialog::lineEdit(const SpecField& field) {
  auto* line = new QLineEdit(this);
  if (std::holds_alternative<std::uint64_t RunSpec::*>(field.member))
    line->setValidator(new QRegularExpressionValidator(QRegularExpression(QStringLiteral("[0-9]{1,19}")), line));
  addRow(field, *line);
  return {[line, &field](const RunSpec& spec) {
            const std::vector<std::string> texts = textsOf(field, spec);
            line->setText(texts.empty() ? QString() : toQt(texts.front()));
          },
          [line, &field](RunSpec& spec) { (void)takeText(field, line->text().toStdString(), spec); }};
}

void RunOptionsDialog::addRow(const SpecField& field, QWidget& widget) {
  widget.setObjectName(toQt(field.key));
  widget.setToolTip(toQt(field.help));
  if (field.isFlag())
    m_form->addRow(&widget);
  else
    m_form->addRow(toQt(field.label), &widget);
}

void RunOptionsDialog::addButtons() {
  auto* buttons =
      new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel | QDialogButtonBox::RestoreDefaults, this);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(buttons->button(QDialogButtonBox::RestoreDefaults), &QPushButton::clicked, this, [this] { show({}); });
  m_form->addRow(buttons);
}

void RunOptionsDialog::show(const RunSpec& options) {
  for (const Editor& editor : m_editors) editor.show(options);
}

RunSpec RunOptionsDialog::options() const {
  RunSpec spec = m_proposed;
  for (const Editor& editor : m_editors) editor.take(spec);
  return spec;
}

}  // namespace fuseline::ui
