// Long lines are wrapped below their marks.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/change_lines.h"

#include "core/compare/change_text.h"
#include "core/support/field_table.h"
#include "core/support/visible_text.h"

namespace fuseline {

static const FieldTable<FieldChange>& fieldsOf(const FieldChange*) {
  static const FieldTable<FieldChange> table(
      {field("name", &FieldChange::name, "Name of the member; empty: the value itself."),
       field("base", &FieldChange::base, "Text in the file; empty: it is missing there."),
       field("new", &FieldChange::next, "Text in the file; empty: it is missing there.")});
  return table;
}

static const FieldTable<DocumentChange>& fieldsOf(const DocumentChange*) {
  using Change = DocumentChange;
  static const FieldTable<Change> table(
      {derived<Change>("section", [](const Change& change) { return sectionName(change.section); })
           .oneOf({"symbols", "inputs", "ops", "wires", "outputs", "blocks", "recipe", "fusion", "view", "file"}),
       field("block", &Change::block, "Block that contains the change; empty: the pipeline itself."),
       derived<Change>("kind", [](const Change& change) { return kindName(change.kind); })
           .oneOf({"added", "removed", "changed", "renamed"}),
       field("id", &Change::id, "Id of the node; for a wire, its target; empty: the section as a whole."),
       field("newId", &Change::newId, "New id if it was renamed; else empty."), field("fields", &Change::fields)});
  return table;
}

}  // namespace fuseline

namespace fuseline::cli {

Style styleOf(char mark) { return mark == '+' ? Style::Good : mark == '-' ? Style::Bad : Style::Plain; }

std::string changesText(const std::vector<DocumentChange>& changes, bool hasColour) {
  constexpr std::size_t kHang = 6;
  std::string text;
  std::string heading;
  for (const DocumentChange& change : changes) {
    std::string own = std::string(sectionName(change.section));
    if (!change.block.empty()) own += " in block " + change.block;
    if (own != heading) text += styled(visibleText(own), Style::Bold, hasColour) + "\n";
    heading = own;
    text +=
        styled(wrappedLines("  " + visibleText(changeText(change)), kHang), styleOf(markOf(change.kind)), hasColour) +
        "\n";
  }
  return text;
}

Json changesJson(const std::vector<DocumentChange>& changes) { return fieldJson(changes); }

Json changesSchema() { return fieldSchema<std::vector<DocumentChange>>(); }

}  // namespace fuseline::cli
