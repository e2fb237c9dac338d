// Listens to nlohmann's SAX parser. The parser reads through an iterator that leaves its position where this file can
// see it: at an event it stands at the end of the token, and the next token begins after separators.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/json_tree.h"

#include "core/document/json_text.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <unordered_set>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxNodes = 12'000'000;

class TrackedIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  TrackedIterator(const char* place, std::size_t* numRead) : m_place(place), m_numRead(numRead) {}
  reference operator*() const { return *m_place; }
  TrackedIterator& operator++() {
    ++m_place;
    ++*m_numRead;
    return *this;
  }
  TrackedIterator operator++(int) {
    TrackedIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const TrackedIterator& other) const { return m_place == other.m_place; }

 private:
  const char* m_place;
  std::size_t* m_numRead;
};

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing value - unexpected end
// of input; last read: '...'" becomes "unexpected end of input". The quoted input may not even be UTF-8.
std::string plainMessage(std::string message) {
  const std::size_t reason = message.find(" - ");
  if (reason != std::string::npos) message.erase(0, reason + 3);
  const std::size_t lastRead = message.find("; last read: ");
  if (lastRead == std::string::npos) return message;
  const std::size_t expected = message.rfind("; expected ");
  const std::string tail =
      expected != std::string::npos && expected > lastRead ? message.substr(expected) : std::string();
  return message.substr(0, lastRead) + tail;
}

/// A text with U+FFFD in place of what is no UTF-8; of other scalars what a file would hold.
Json storable(const Json& scalar) {
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (scalar.is_number_unsigned() && scalar.get<std::uint64_t>() <= kLargest) return scalar.get<std::int64_t>();
  return isStorable(scalar) ? scalar : Json::parse(scalar.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

class TreeBuilder {
 public:
  TreeBuilder(std::string_view text, const std::size_t& numRead, JsonTree& tree, JsonTree::SyntaxError& error)
      : m_text(text), m_numRead(numRead), m_nodes(tree.m_nodes), m_error(error) {}

  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(Json(value)); }
  bool number_integer(std::int64_t value) { return add(Json(value)); }
  bool number_unsigned(std::uint64_t value) {
    constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return value > kLargest ? add(Json(value)) : add(Json(static_cast<std::int64_t>(value)));
  }
  bool number_float(double value, const std::string&) { return add(Json(value)); }
  bool string(std::string& value) { return add(Json(std::move(value))); }
  bool binary(Json::binary_t&) { return false; }
  bool key(std::string& value) { return add(Json(std::move(value))); }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_array() { return close(); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& exception) {
    const std::size_t start = nextToken();
    const bool isNotANumber = isWordAt(start, "NaN") || isWordAt(start, "nan") || isWordAt(start, "Infinity") ||
                              isWordAt(start, "-Infinity") || isWordAt(start, "inf") || isWordAt(start, "-inf");
    if (isNotANumber) return fail("syntax", start, "NaN and infinity are not JSON numbers; expected a finite number");
    if (exception.id == 406)
      return fail("number-overflow", start, "The number exceeds the range of 64-bit floating point");
    return fail("syntax", std::max<std::size_t>(position, 1) - 1,
                "The text is not valid JSON: " + plainMessage(exception.what()));
  }

 private:
  bool add(Json scalar) {
    if (m_nodes.size() >= kMaxNodes)
      return fail("too-large", nextToken(),
                  fmt::format("The file has more than {} values, the maximum of a pipeline file", kMaxNodes));
    const auto start = static_cast<std::uint32_t>(nextToken());
    m_tokenEnd = m_numRead;
    m_nodes.push_back({std::move(scalar), start, static_cast<JsonTree::Index>(m_nodes.size() + 1)});
    return true;
  }

  bool open(Json empty) {
    if (m_open.size() >= kMaxDepth)
      return fail("too-deep", nextToken(), fmt::format("Values are nested more than {} levels deep", kMaxDepth));
    m_open.push_back(m_nodes.size());
    return add(std::move(empty));
  }

  bool close() {
    m_nodes[m_open.back()].end = static_cast<JsonTree::Index>(m_nodes.size());
    m_open.pop_back();
    m_tokenEnd = m_numRead;
    return true;
  }

  // A number's token ends one character early, but that character is a separator.
  std::size_t nextToken() const { return std::min(m_text.find_first_not_of(" \t\r\n,:]}", m_tokenEnd), m_text.size()); }

  bool isWordAt(std::size_t start, std::string_view word) const { return m_text.substr(start, word.size()) == word; }

  bool fail(std::string code, std::size_t offset, std::string message) {
    m_error = {std::move(code), std::move(message) + ".", std::min(offset, m_text.size())};
    return false;
  }

  std::string_view m_text;
  const std::size_t& m_numRead;
  std::vector<JsonTree::Node>& m_nodes;
  JsonTree::SyntaxError& m_error;
  std::vector<std::size_t> m_open;
  std::size_t m_tokenEnd = 0;
};

JsonTree JsonTree::parse(std::string_view text, SyntaxError& error) {
  JsonTree tree;
  std::size_t numRead = 0;
  TreeBuilder builder(text, numRead, tree, error);
  const TrackedIterator begin(text.data(), &numRead);
  const TrackedIterator end(text.data() + text.size(), &numRead);
  if (!Json::sax_parse(begin, end, &builder)) tree.m_nodes.clear();
  return tree;
}

JsonTree JsonTree::of(const Json& value, SyntaxError& error) {
  JsonTree tree;
  if (tree.append(value, 0)) return tree;
  error = {"too-deep", fmt::format("Expected at most {} values, nested at most {} levels deep.", kMaxNodes, kMaxDepth)};
  return {};
}

bool JsonTree::append(const Json& value, std::size_t depth) {
  if (depth > kMaxDepth || m_nodes.size() >= kMaxNodes) return false;
  const std::size_t at = m_nodes.size();
  m_nodes.push_back({.scalar = value.is_structured() ? Json(value.type()) : storable(value)});
  if (value.is_array())
    for (const Json& element : value)
      if (!append(element, depth + 1)) return false;
  if (value.is_object())
    for (const auto& [key, member] : value.items())
      if (!append(Json(key), depth + 1) || !append(member, depth + 1)) return false;
  m_nodes[at].end = static_cast<Index>(m_nodes.size());
  return true;
}

std::vector<JsonTree::Child> JsonTree::children(Index i) const {
  std::vector<Child> found;
  const Index keyLength = isObject(i) ? 1 : 0;
  for (Index at = i + 1; at < m_nodes[i].end; at = m_nodes[at + keyLength].end) found.push_back({at, at + keyLength});
  return found;
}

// Pushes members without the map's own search for an equal key, which would make large objects quadratic; nesting is
// bounded by the parser.
Json JsonTree::json(Index i) const {
  if (isArray(i)) {
    Json array = Json::array();
    for (const Child& child : children(i)) array.push_back(json(child.value));
    return array;
  }
  if (!isObject(i)) return m_nodes[i].scalar;
  Json::object_t members;
  std::unordered_set<std::string_view> keys;
  for (const Child& child : children(i))
    if (keys.insert(text(child.key)).second) members.push_back({text(child.key), json(child.value)});
  return Json(std::move(members));
}

LineTable::LineTable(std::string_view text) : m_starts{0} {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') m_starts.push_back(i + 1);
}

std::pair<int, int> LineTable::place(std::size_t offset) const {
  const auto next = std::ranges::upper_bound(m_starts, offset);
  const std::size_t start = *std::prev(next);
  return {static_cast<int>(next - m_starts.begin()), static_cast<int>(offset - start) + 1};
}

}  // namespace fuseline
