// A JSON text as a flat tree in which every value knows where it stands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

/// Values in reading order; the subtree of value i is [i, end). A member of an object is its key (a string node)
/// followed by its value. An object or array holds no data of its own in `scalar`, only its type.
class JsonTree {
 public:
  using Index = std::uint32_t;

  struct Node {
    Json scalar;
    std::uint32_t offset = 0;  // in bytes, of the first character
    Index end = 0;
  };

  /// The text ends the parse early with a sentence and the place.
  struct SyntaxError {
    std::string code;
    std::string message;
    std::size_t offset = 0;
  };

  /// Sets `error` and returns an empty tree if the text is not JSON, or is nested or large beyond reason.
  static JsonTree parse(std::string_view text, SyntaxError& error);
  /// The tree of a value without a text; all offsets are 0. Texts become UTF-8, numbers that are not finite null.
  static JsonTree of(const Json& value, SyntaxError& error);

  bool isEmpty() const { return m_nodes.empty(); }
  const Node& operator[](Index i) const { return m_nodes[i]; }
  bool isObject(Index i) const { return m_nodes[i].scalar.is_object(); }
  bool isArray(Index i) const { return m_nodes[i].scalar.is_array(); }
  bool isString(Index i) const { return m_nodes[i].scalar.is_string(); }
  const std::string& text(Index i) const { return m_nodes[i].scalar.get_ref<const std::string&>(); }

  /// Key node and value node of every member, or of every element (key = value then).
  struct Child {
    Index key = 0;
    Index value = 0;
  };
  std::vector<Child> children(Index i) const;
  /// The whole value; of equal keys the first.
  Json json(Index i) const;

 private:
  friend class TreeBuilder;
  /// False: there is too much, or it is nested too deeply.
  bool append(const Json& value, std::size_t depth);

  std::vector<Node> m_nodes;
};

/// Byte offset to line and column, both from 1; columns count bytes.
class LineTable {
 public:
  explicit LineTable(std::string_view text);
  std::pair<int, int> place(std::size_t offset) const;

 private:
  std::vector<std::size_t> m_starts;
};

}  // namespace fuseline
