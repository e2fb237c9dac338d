// The pipeline file: reading with every problem at once, and a deterministic writer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/diagnostic.h"
#include "core/document/document.h"
#include "core/support/result.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// Where in the text each part of a document stands: JSON pointer to line and column.
struct SourceMap {
  struct Place {
    int line = 0;
    int column = 0;
  };
  std::map<std::string, Place, std::less<>> places;
  /// The place of the pointer or of its nearest enclosing object.
  Place find(std::string_view pointer) const;
};

/// The document as far as it could be understood, and every problem found on the way. A malformed file gives an
/// empty document and the error.
struct LoadedDocument {
  PipelineDocument document;
  std::vector<Diagnostic> diagnostics;
  SourceMap sourceMap;
  /// Nothing of the text could be read: it is no JSON, or no pipeline file.
  bool isUnreadable = false;
  /// It stood in a picture or a script: there is no pipeline file yet.
  bool isTakenOut = false;
  /// Notes on an imported model of another program, as sentences.
  std::vector<std::string> notes = {};
};

LoadedDocument parseDocument(std::string_view text);
/// The same from the content of a file, without its text: all diagnostics are at its beginning.
LoadedDocument readDocument(const Json& file);
/// Loads a pipeline file, or the pipeline embedded in a drawing or an exported script.
/// Errors: the file cannot be read, is larger than 64 MiB, or is such a file without a whole pipeline.
Result<LoadedDocument> loadDocument(const std::filesystem::path& path);

/// The content of the file, without its text.
Json toJson(const PipelineDocument& document);
/// Deterministic: same document, same bytes. Two-space indent, LF, a trailing newline.
std::string serialize(const PipelineDocument& document);
/// Writes atomically: a temporary file beside it, then a rename.
Result<void> saveDocument(const PipelineDocument& document, const std::filesystem::path& path);

/// The JSON Schema (2020-12) of the pipeline file, built from the op catalog. recipe: that of its section "recipe".
Json pipelineSchema(Json recipe);

/// The templates of `fuseline new`: name, sentence, document text.
struct DocumentTemplate {
  std::string name;
  std::string summary;
  std::string text;
};
const std::vector<DocumentTemplate>& documentTemplates();
/// nullptr when there is none.
const DocumentTemplate* findTemplate(std::string_view name);

}  // namespace fuseline
