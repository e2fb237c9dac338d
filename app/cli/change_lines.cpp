// Long lines are wrapped below their marks.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/change_lines.h"

#include "core/compare/change_text.h"
#include "core/support/visible_text.h"

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

namespace {

Json toJson(const DocumentChange& change) {
  Json fields = Json::array();
  for (const FieldChange& field : change.fields)
    fields.push_back({{"name", field.name}, {"base", field.base}, {"new", field.next}});
  return {{"section", sectionName(change.section)},
          {"block", change.block},
          {"kind", kindName(change.kind)},
          {"id", change.id},
          {"newId", change.newId},
          {"fields", std::move(fields)}};
}

}  // namespace

Json changesJson(const std::vector<DocumentChange>& changes) {
  Json list = Json::array();
  for (const DocumentChange& change : changes) list.push_back(toJson(change));
  return list;
}

}  // namespace fuseline::cli
