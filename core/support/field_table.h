// FieldTable: the fields of a struct, each stated once. Its JSON, the reader of that and its JSON Schema follow.
//
// A struct `T` of namespace fuseline has a function `const FieldTable<T>& fieldsOf(const T*)`; then other structs may
// hold it, a list of it or an optional of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/enum_names.h"
#include "core/support/json_fields.h"
#include "core/support/output_schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

template <class T>
class FieldTable;

template <class T>
concept Tabled = requires {
  fieldsOf(static_cast<const T*>(nullptr));
};

namespace detail {

template <class V>
inline constexpr bool kIsOptional = false;
template <class V>
inline constexpr bool kIsOptional<std::optional<V>> = true;

template <class V>
inline constexpr bool kIsArray = false;
template <class V, std::size_t N>
inline constexpr bool kIsArray<std::array<V, N>> = true;

template <class V>
inline constexpr bool kIsList = kIsArray<V>;
template <class V>
inline constexpr bool kIsList<std::vector<V>> = true;

template <class V>
struct InnerOf {
  using Type = V;
};
template <class V>
struct InnerOf<std::optional<V>> {
  using Type = V;
};

/// Written as an object with free names.
template <class V>
inline constexpr bool kIsMap = false;
template <class V>
inline constexpr bool kIsMap<std::vector<std::pair<std::string, V>>> = true;

template <class V>
inline constexpr bool kIsTabledList = false;
template <class V>
inline constexpr bool kIsTabledList<std::vector<V>> = Tabled<V>;

template <class V>
concept OptionalEnum = kIsOptional<V> && NamedEnum<typename V::value_type>;

}  // namespace detail

/// A value as JSON.
template <class V>
Json fieldJson(const V& value) {
  if constexpr (Tabled<V>) {
    return fieldsOf(&value).toJson(value);
  } else if constexpr (NamedEnum<V> || detail::OptionalEnum<V>) {
    return nameOf(value);
  } else if constexpr (detail::kIsOptional<V>) {
    return value ? fieldJson(*value) : Json();
  } else if constexpr (detail::kIsMap<V>) {
    Json object = Json::object();
    for (const auto& [name, each] : value) object[name] = each;
    return object;
  } else if constexpr (detail::kIsList<V>) {
    Json list = Json::array();
    for (const auto& each : value) list.push_back(fieldJson(each));
    return list;
  } else {
    return Json(value);
  }
}

/// The schema of what fieldJson() writes. An empty enum that may be none is "".
template <class V>
Json fieldSchema(std::string_view help = {}) {
  if constexpr (Tabled<V>) {
    return fieldsOf(static_cast<const V*>(nullptr)).schema();
  } else if constexpr (NamedEnum<V>) {
    return schema::choice(enumTexts<V>(), help);
  } else if constexpr (detail::OptionalEnum<V>) {
    return fieldSchema<typename V::value_type>(help);
  } else if constexpr (detail::kIsOptional<V>) {
    return schema::orNull(fieldSchema<typename V::value_type>(help));
  } else if constexpr (detail::kIsMap<V>) {
    return schema::mapOf(fieldSchema<typename V::value_type::second_type>(), help);
  } else if constexpr (detail::kIsList<V>) {
    return schema::list(fieldSchema<typename V::value_type>(), help);
  } else if constexpr (std::is_same_v<V, Json>) {
    return schema::any(help);
  } else if constexpr (std::is_same_v<V, bool>) {
    return schema::flag(help);
  } else if constexpr (std::is_integral_v<V>) {
    return schema::integer(help);
  } else if constexpr (std::is_floating_point_v<V>) {
    return schema::number(help);
  } else {
    return schema::text(help);
  }
}

/// Reads what fieldJson() writes. What does not fit leaves `out` as it was, and its sentence in `fields`.
template <class V>
void readField(JsonFields& fields, std::string_view key, V& out, Presence presence) {
  if constexpr (Tabled<V>) {
    fields.readObject(
        key, [&](JsonFields& nested) { fieldsOf(&out).read(nested, out); }, presence);
  } else if constexpr (NamedEnum<V> || detail::OptionalEnum<V>) {
    std::string text = nameOf(out);
    fields.read(key, text, presence);
    using Enum = typename detail::InnerOf<V>::Type;
    const std::optional<Enum> value = enumNamed<Enum>(text);
    if (!value && !(detail::kIsOptional<V> && text.empty()))
      return fields.refuse(key,
                           fmt::format("expected one of {}, found \"{}\".", fmt::join(enumTexts<Enum>(), ", "), text));
    if constexpr (detail::kIsOptional<V>)
      out = value;
    else
      out = *value;
  } else if constexpr (detail::kIsOptional<V>) {
    Json value;
    fields.read(key, value, presence);
    if (!value.is_null()) readField(fields, key, out.emplace(), presence);
  } else if constexpr (detail::kIsMap<V>) {
    const auto readAll = [&](JsonFields& items) {
      for (const std::string& name : items.keys())
        items.read(name, out.emplace_back(name, typename V::value_type::second_type()).second);
    };
    fields.readObject(key, readAll, presence);
  } else if constexpr (detail::kIsTabledList<V>) {
    fields.readObjects(
        key, [&](JsonFields& item) { fieldsOf(out.data()).read(item, out.emplace_back()); }, presence);
  } else if constexpr (std::is_same_v<V, float>) {
    double wide = out;
    fields.read(key, wide, presence);
    out = static_cast<float>(wide);
  } else if constexpr (detail::kIsArray<V>) {
    std::vector<typename V::value_type> values(out.begin(), out.end());
    fields.read(key, values, presence);
    if (values.size() != out.size())
      return fields.refuse(key, fmt::format("expected {} numbers, found {}.", out.size(), values.size()));
    std::copy(values.begin(), values.end(), out.begin());
  } else {
    fields.read(key, out, presence);
  }
}

/// One field of a T.
template <class T>
struct Field {
  std::string key;
  Json schema;
  std::function<Json(const T&)> write;
  std::function<void(JsonFields&, T&)> read = {};  // empty: it follows from the others

  /// A text of which only these are written.
  Field oneOf(const std::vector<std::string>& values) && {
    schema = schema::choice(values, schema.value("description", ""));
    return std::move(*this);
  }

  /// The field's name in files of older programs, which is still read.
  Field formerly(std::string former) && {
    read = [key = key, former = std::move(former), read = std::move(read)](JsonFields& fields, T& object) {
      fields.alsoNamed(key, former);
      read(fields, object);
    };
    return std::move(*this);
  }
};

/// A member. `help` describes it for people; of a struct its fields do.
template <class T, class V>
Field<T> field(std::string key, V T::*member, std::string_view help = {}, Presence presence = Presence::Required) {
  const auto write = [member](const T& object) { return fieldJson(object.*member); };
  const auto read = [key, member, presence](JsonFields& fields, T& object) {
    readField(fields, key, object.*member, presence);
  };
  return {std::move(key), fieldSchema<V>(help), write, read};
}

/// A member that older programs did not write.
template <class T, class V>
Field<T> newField(std::string key, V T::*member, std::string_view help = {}) {
  return field(std::move(key), member, help, Presence::Optional);
}

/// A number that JSON cannot hold is written as null, and read as `none`.
template <class T>
Field<T> numberOrNull(std::string key, double T::*member, double none, std::string_view help,
                      Presence presence = Presence::Required) {
  const auto write = [member](const T& object) {
    return std::isfinite(object.*member) ? Json(object.*member) : Json();
  };
  const auto read = [key, member, none, presence](JsonFields& fields, T& object) {
    Json value = object.*member;
    fields.read(key, value, presence);
    if (value.is_null())
      object.*member = none;
    else
      fields.read(key, object.*member, presence);
  };
  return {std::move(key), schema::orNull(schema::number(help)), write, read};
}

/// A value that follows from the others; readers leave it out.
template <class T, class Of>
Field<T> derived(std::string key, Of of, std::string_view help = {}) {
  using V = std::remove_cvref_t<std::invoke_result_t<Of, const T&>>;
  return {std::move(key), fieldSchema<V>(help),
          [of](const T& object) { return fieldJson<V>(std::invoke(of, object)); }};
}

/// The fields of a member, without an object of their own.
template <class T, class S>
std::vector<Field<T>> inlined(S T::*member, const FieldTable<S>& table) {
  std::vector<Field<T>> all;
  for (const Field<S>& each : table.fields()) {
    Field<T>& field = all.emplace_back();
    field.key = each.key;
    field.schema = each.schema;
    field.write = [member, write = each.write](const T& object) { return write(object.*member); };
    if (each.read)
      field.read = [member, read = each.read](JsonFields& fields, T& object) { read(fields, object.*member); };
  }
  return all;
}

template <class T>
class FieldTable {
 public:
  /// Says in `fields` what is wrong with an object whose fields are right, each for itself.
  using Check = void (*)(JsonFields& fields, const T& object);

  explicit FieldTable(std::vector<Field<T>> fields, Check check = nullptr)
      : m_fields(std::move(fields)), m_check(check) {}

  /// More fields behind these.
  FieldTable with(std::vector<Field<T>> more) && {
    m_fields.insert(m_fields.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    return std::move(*this);
  }

  const std::vector<Field<T>>& fields() const { return m_fields; }

  Json toJson(const T& object) const {
    Json json = Json::object();
    for (const Field<T>& field : m_fields) json[field.key] = field.write(object);
    return json;
  }

  void read(JsonFields& fields, T& object) const {
    for (const Field<T>& field : m_fields)
      if (field.read) field.read(fields, object);
    if (m_check) m_check(fields, object);
  }

  /// Errors: a sentence with the JSON pointer, below that of `json`.
  Result<T> from(const Json& json, std::string pointer = {}) const {
    T object{};
    JsonFields fields(json, std::move(pointer));
    read(fields, object);
    if (fields.error()) return *fields.error();
    return object;
  }

  Json schema() const {
    schema::Fields schemas;
    for (const Field<T>& field : m_fields) schemas.emplace_back(field.key, field.schema);
    return schema::object(schemas);
  }

 private:
  std::vector<Field<T>> m_fields;
  Check m_check;
};

}  // namespace fuseline
