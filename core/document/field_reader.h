// The fields of a pipeline file by name and type, each with its place in the text, and what is wrong with them.
// A value of the wrong type stays in the extra bag of its object under its own name, so that saving loses nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/diagnostic.h"
#include "core/document/file_format.h"
#include "core/document/json_text.h"
#include "core/document/json_tree.h"

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

/// Pointers name places in the file: "/pipeline/ops/0/id".
class FieldReader {
 public:
  using Index = JsonTree::Index;
  using Fields = std::unordered_map<std::string_view, Index>;

  /// fileFields: those of the outermost object. Both outlive it.
  FieldReader(std::string_view text, std::span<const std::string_view> fileFields)
      : m_text(text), m_fileFields(fileFields), m_lines(text) {}

  /// For the content of a file without its text.
  FieldReader(const Json& file, std::span<const std::string_view> fileFields)
      : m_file(&file), m_fileFields(fileFields), m_lines(std::string_view()) {}

  /// A byte-order mark is left out, with a note. False and the error: the text is no JSON.
  bool parse(JsonTree::SyntaxError& error);
  const JsonTree& tree() const { return m_tree; }
  std::size_t offset(Index i) const { return m_tree[i].offset; }

  /// The fields of an object by name; unknown ones go to the extra bag, repeated ones are reported.
  Fields openObject(Index i, const std::string& pointer, Json& extra, std::span<const std::string_view> known);
  Fields openObject(Index i, const std::string& pointer, Json& extra, std::initializer_list<std::string_view> known);

  /// use(name, value, pointer) for every member whose key is the first of its name.
  template <class Use>
  void forEachMember(Index i, const std::string& pointer, const Use& use) {
    Fields first;
    for (const JsonTree::Child& child : m_tree.children(i)) {
      const std::string& name = m_tree.text(child.key);
      const std::string memberPointer = pointer + "/" + escapedPointer(name);
      if (const auto [known, isNew] = first.emplace(name, child.key); isNew)
        use(name, child.value, memberPointer);
      else
        reportDuplicate(name, memberPointer, known->second, child.key);
    }
  }

  /// use(value, pointer) for every element of a field that is a list.
  template <class Use>
  void forEachElement(const Fields& fields, std::string_view name, const std::string& owner, Json& extra,
                      const Use& use, Severity severity = Severity::Error) {
    const auto i = find(fields, name);
    if (!i) return;
    const std::string pointer = fmt::format("{}/{}", owner, name);
    if (!m_tree.isArray(*i)) return wrongType(*i, pointer, "a list", extra, name, severity);
    std::size_t index = 0;
    for (const JsonTree::Child& child : m_tree.children(*i)) use(child.value, fmt::format("{}/{}", pointer, index++));
  }

  /// An item that is not even an object is kept whole in place of its extra bag.
  bool isItem(Index i, const std::string& pointer, std::string_view what, Json& extra,
              Severity severity = Severity::Error);

  // A field by type. One of another type is reported, and counts as absent.
  static std::optional<Index> find(const Fields& fields, std::string_view name);
  std::optional<Index> object(const Fields& fields, std::string_view name, const std::string& pointer, Json& extra);
  std::string string(const Fields& fields, std::string_view name, const std::string& pointer, Json& extra);
  std::optional<bool> boolean(const Fields& fields, std::string_view name, const std::string& pointer, Json& extra,
                              Severity severity = Severity::Error);
  /// As string(), where a warning is enough.
  std::optional<std::string> text(const Fields& fields, std::string_view name, const std::string& pointer, Json& extra);
  /// Those of a list; none where one of them is something else.
  std::vector<int> integers(Index i) const;

  void wrongType(Index i, const std::string& pointer, std::string_view expected, Json& extra, std::string_view name,
                 Severity severity = Severity::Error);
  void noteDuplicates(Index i, const std::string& pointer);
  void noteDuplicatesBelow(Index i, const std::string& pointer);
  void locate(Index i, const std::string& pointer);
  void locateAll(Index i, const std::string& pointer);
  void report(Severity severity, std::string code, std::size_t offset, std::string pointer, std::string message);

  /// "an object", "text".
  std::string_view kind(Index i) const;
  std::string excerpt(Index i) const;

  std::vector<Diagnostic> takeDiagnostics() { return std::move(m_diagnostics); }
  SourceMap takeSourceMap() { return std::move(m_sourceMap); }

 private:
  void warnOfUnknown(std::string_view name, Index value, const std::string& pointer,
                     std::span<const std::string_view> known);
  void reportDuplicate(const std::string& name, const std::string& pointer, Index first, Index second);
  std::pair<int, int> place(std::size_t offset) const;

  const Json* m_file = nullptr;  // in place of the text
  std::string_view m_text;
  std::span<const std::string_view> m_fileFields;
  std::size_t m_start = 0;  // behind a byte-order mark
  LineTable m_lines;
  JsonTree m_tree;
  std::vector<Diagnostic> m_diagnostics;
  SourceMap m_sourceMap;
};

}  // namespace fuseline
