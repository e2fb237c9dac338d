// JsonFields: reads the fields of a JSON object and keeps the first problem as a sentence with its JSON pointer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"
#include "core/support/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

enum class Presence { Required, Optional };

/// Reads into fields; a wrong field leaves its target unchanged, and the first problem is kept in error(). Reading
/// continues after a problem, so that callers need one check at the end.
class JsonFields {
 public:
  /// `pointer` is the JSON pointer of `json`, for messages. `json` must outlive the reader.
  JsonFields(const Json& json, std::string pointer);

  template <class T>
  void read(std::string_view key, T& out, Presence presence = Presence::Required) {
    if (const Json* value = find(key, presence)) assign(*value, key, out);
  }

  /// Calls `visit(JsonFields&)` for every object of an array.
  template <class Visit>
  void readObjects(std::string_view key, Visit visit, Presence presence = Presence::Required) {
    const Json* array = findArray(key, presence);
    if (!array) return;
    for (std::size_t i = 0; i < array->size(); ++i) {
      JsonFields fields((*array)[i], pointerOf(key) + "/" + std::to_string(i));
      visit(fields);
      adopt(fields);
    }
  }

  /// Calls `visit(JsonFields&)` for one nested object.
  template <class Visit>
  void readObject(std::string_view key, Visit visit, Presence presence = Presence::Required) {
    const Json* object = find(key, presence);
    if (!object) return;
    JsonFields fields(*object, pointerOf(key));
    visit(fields);
    adopt(fields);
  }

  /// From now on the field `key` is also read where older programs wrote it: under the name `former`.
  void alsoNamed(std::string_view key, std::string_view former) { m_formerNames.emplace_back(key, former); }
  /// Whether a field is null or absent.
  bool isNull(std::string_view key) const;
  /// The names of all fields that are there.
  std::vector<std::string> keys() const;
  /// Records a problem of the caller's own with a field's value.
  void refuse(std::string_view key, std::string_view problem);
  const std::optional<Error>& error() const { return m_error; }

 private:
  /// The value under the key's name, or else under its former one; nullptr: absent.
  const Json* valueOf(std::string_view key) const;
  /// The value, or nullptr when it is absent (an error if it is required).
  const Json* find(std::string_view key, Presence presence);
  const Json* findArray(std::string_view key, Presence presence);
  std::string pointerOf(std::string_view key) const { return m_pointer + "/" + std::string(key); }
  void adopt(const JsonFields& nested);
  void wrongType(std::string_view key, std::string_view expected, const Json& found);

  void assign(const Json& value, std::string_view key, bool& out);
  void assign(const Json& value, std::string_view key, int& out);
  void assign(const Json& value, std::string_view key, std::int64_t& out);
  void assign(const Json& value, std::string_view key, std::uint64_t& out);
  void assign(const Json& value, std::string_view key, double& out);
  void assign(const Json& value, std::string_view key, std::string& out);
  void assign(const Json& value, std::string_view key, std::vector<std::string>& out);
  void assign(const Json& value, std::string_view key, std::vector<double>& out);
  void assign(const Json& value, std::string_view key, std::vector<std::int64_t>& out);
  void assign(const Json& value, std::string_view key, Json& out);

  const Json& m_json;
  std::string m_pointer;
  std::optional<Error> m_error;
  std::vector<std::pair<std::string_view, std::string_view>> m_formerNames;
};

/// Parses one JSON text. Errors: a sentence with the parser's position; it is nested hundreds of levels deep.
Result<Json> parseJson(std::string_view text);

}  // namespace fuseline
