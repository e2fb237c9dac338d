// ModelConfig: the values of a config.json by name and type, which of them were read, and the first problem.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"
#include "core/support/result.h"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// After a problem, every getter returns a harmless value; error() says what it was. Copies share what was read.
class ModelConfig {
 public:
  /// json: an object. place: names the file in messages.
  ModelConfig(Json json, std::string place);

  /// Present, and not null.
  bool has(std::string_view name) const;
  /// A whole number from 1 to the largest extent of an op. Errors: it is none, or is missing without a default.
  std::int64_t count(std::string_view name, std::optional<std::int64_t> otherwise = std::nullopt) const;
  /// Rows and columns: a whole number for both, or a list of two. Errors: neither.
  std::array<std::int64_t, 2> sides(std::string_view name, std::int64_t otherwise) const;
  double real(std::string_view name, std::optional<double> otherwise = std::nullopt) const;
  bool flag(std::string_view name, bool otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  /// Errors: not a list of texts.
  std::vector<std::string> texts(std::string_view name) const;
  /// Errors: not a list of whole numbers from 0 on.
  std::vector<std::int64_t> indices(std::string_view name) const;
  /// Errors: not a list of finite numbers.
  std::vector<double> reals(std::string_view name) const;
  /// An object in this one; empty if there is none.
  ModelConfig section(std::string_view name) const;
  bool isEmpty() const { return m_json.empty(); }
  std::int64_t size() const { return static_cast<std::int64_t>(m_json.size()); }

  /// The same config for readers of more keys than the architecture has: these are absent, and remain unread.
  ModelConfig without(std::initializer_list<std::string_view> names) const;
  /// Keys that may be there and change nothing.
  void ignore(std::initializer_list<std::string_view> names) const;
  /// Keys of this object that nobody asked for, in file order.
  std::vector<std::string> unreadKeys() const;

  /// Only the first problem is kept. message: "num_heads is 3, but ..."
  void fail(const std::string& message) const;
  /// Refuses a value that has no counterpart: "hidden_act is tanh; expected one of gelu, relu. <next>"
  void refuse(std::string_view name, const std::string& expected) const;
  const std::optional<Error>& error() const { return m_shared->error; }
  const std::string& place() const { return m_shared->place; }

 private:
  struct Shared {
    std::string place;
    std::optional<Error> error;
  };
  ModelConfig(Json json, std::string prefix, std::shared_ptr<Shared> shared);

  /// nullptr: absent or null.
  const Json* find(std::string_view name) const;
  void wrong(std::string_view name, std::string_view expected) const;

  Json m_json;
  std::string m_prefix;  // "rope_scaling."
  std::shared_ptr<Shared> m_shared;
  std::shared_ptr<std::set<std::string, std::less<>>> m_read;
  std::set<std::string, std::less<>> m_hidden;
};

}  // namespace fuseline
