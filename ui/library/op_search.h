// Finding ops by what people type: names, parts of names, and the words they know them by.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/ops/catalog.h"

#include <QString>

#include <optional>
#include <string>
#include <vector>

namespace fuseline::ui {

/// One thing that can be put on the canvas.
struct PaletteEntry {
  std::string name;
  std::string category;
  std::string summary;
  std::vector<std::string> keywords;
  bool operator==(const PaletteEntry&) const = default;
};

/// Every op of the catalog in its order, then pipeline inputs and outputs.
const std::vector<PaletteEntry>& paletteEntries();
/// The blocks of a document, in its order, in the category "Blocks".
std::vector<PaletteEntry> blockEntries(const PipelineDocument& document);
/// Displayed name; blocks without "block:".
QString entryTitle(const PaletteEntry& entry);

/// The card of an op, the summary of anything else. Rich text.
QString entryTip(const PaletteEntry& entry);

/// Whether all of the letters stand in the text, in their order, whatever their case: "rn" in "RMSNorm".
bool hasLettersInOrder(const QString& text, const QString& letters);

/// 0 is best; nullopt when the entry does not match. Case does not matter; an empty query matches everything.
/// Order: start of the name, part of the name, a keyword, letters of the name in order ("rn" for RMSNorm), summary.
std::optional<int> matchRank(const PaletteEntry& entry, const QString& query);

/// The matching entries, best first: of all ops and of these blocks.
std::vector<PaletteEntry> searchEntries(const QString& query, const std::vector<PaletteEntry>& blocks = {});

}  // namespace fuseline::ui
