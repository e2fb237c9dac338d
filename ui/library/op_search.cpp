// Ranks palette entries against a query.
// SPDX-License-Identifier: Apache-2.0
#include "ui/library/op_search.h"

#include "core/document/block_operation.h"
#include "core/edit/node_edits.h"
#include "ui/library/operation_card.h"
#include "ui/theme/format.h"

#include <algorithm>

namespace fuseline::ui {

namespace {

std::vector<PaletteEntry> collectEntries() {
  std::vector<PaletteEntry> entries;
  for (const auto& op : builtinOperations().operations()) {
    entries.push_back({op->name, op->category, op->summary, op->keywords});
  }
  entries.push_back({std::string(kInputEntry), "Pipeline", "Input tensor of the pipeline.", {"source"}});
  entries.push_back({std::string(kOutputEntry), "Pipeline", "Output tensor of the pipeline.", {"sink", "result"}});
  return entries;
}

}  // namespace

const std::vector<PaletteEntry>& paletteEntries() {
  static const std::vector<PaletteEntry> entries = collectEntries();
  return entries;
}

QString entryTip(const PaletteEntry& entry) {
  const FusibleOperation* operation = builtinOperations().find(entry.name);
  if (!operation) return toQt(entry.summary).toHtmlEscaped();
  return operationTip(*operation, {}, std::nullopt);
}

std::vector<PaletteEntry> blockEntries(const PipelineDocument& document) {
  std::vector<PaletteEntry> entries;
  for (const auto& [name, block] : document.blocks()) {
    const FusibleOperation operation = blockOperation(name, block);
    entries.push_back({operation.name, operation.category, operation.summary, {}});
  }
  return entries;
}

QString entryTitle(const PaletteEntry& entry) {
  const QString name = toQt(entry.name);
  return name.startsWith(toQt(kBlockPrefix)) ? name.mid(static_cast<qsizetype>(kBlockPrefix.size())) : name;
}

bool hasLettersInOrder(const QString& text, const QString& letters) {
  qsizetype at = 0;
  for (const QChar letter : letters) {
    at = text.indexOf(letter, at, Qt::CaseInsensitive);
    if (at < 0) return false;
    ++at;
  }
  return true;
}

std::optional<int> matchRank(const PaletteEntry& entry, const QString& query) {
  const QString wanted = query.trimmed();
  const QString name = entryTitle(entry);
  if (wanted.isEmpty() || name.startsWith(wanted, Qt::CaseInsensitive)) return 0;
  if (name.contains(wanted, Qt::CaseInsensitive)) return 1;
  const auto isKeyword = [&](const std::string& word) { return toQt(word).contains(wanted, Qt::CaseInsensitive); };
  if (std::ranges::any_of(entry.keywords, isKeyword)) return 2;
  if (hasLettersInOrder(name, wanted)) return 3;
  if (toQt(entry.summary).contains(wanted, Qt::CaseInsensitive)) return 4;
  return std::nullopt;
}

std::vector<PaletteEntry> searchEntries(const QString& query, const std::vector<PaletteEntry>& blocks) {
  std::vector<std::pair<int, const PaletteEntry*>> ranked;
  for (const auto* entries : {&paletteEntries(), &blocks}) {
    for (const PaletteEntry& entry : *entries) {
      if (const auto rank = matchRank(entry, query)) ranked.emplace_back(*rank, &entry);
    }
  }
  std::ranges::stable_sort(ranked, {}, [](const auto& pair) { return pair.first; });
  std::vector<PaletteEntry> found;
  for (const auto& [rank, entry] : ranked) found.push_back(*entry);
  return found;
}

}  // namespace fuseline::ui
