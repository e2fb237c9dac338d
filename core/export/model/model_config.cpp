// Reads typed values and remembers what was asked for.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/model_config.h"

#include "core/document/json_text.h"
#include "core/support/visible_text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::int64_t kMostExtent = 1 << 24;

bool isExtent(const Json& value) { return value.is_number_integer() && value >= 1 && value <= kMostExtent; }

std::string valueText(const Json& value) {
  return shortened(visibleText(value.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

}  // namespace

ModelConfig::ModelConfig(Json json, std::string place)
    : ModelConfig(std::move(json), "", std::make_shared<Shared>(Shared{.place = std::move(place), .error = {}})) {}

ModelConfig::ModelConfig(Json json, std::string prefix, std::shared_ptr<Shared> shared)
    : m_json(std::move(json)),
      m_prefix(std::move(prefix)),
      m_shared(std::move(shared)),
      m_read(std::make_shared<std::set<std::string, std::less<>>>()) {}

const Json* ModelConfig::find(std::string_view name) const {
  if (m_hidden.contains(name)) return nullptr;
  m_read->emplace(name);
  const auto found = m_json.find(std::string(name));
  return found == m_json.end() || found->is_null() ? nullptr : &*found;
}

bool ModelConfig::has(std::string_view name) const { return find(name) != nullptr; }

std::int64_t ModelConfig::count(std::string_view name, std::optional<std::int64_t> otherwise) const {
  const Json* const value = find(name);
  if (value && isExtent(*value)) return value->get<std::int64_t>();
  if (value || !otherwise) wrong(name, fmt::format("a whole number from 1 to {}", kMostExtent));
  return otherwise.value_or(1);
}

std::array<std::int64_t, 2> ModelConfig::sides(std::string_view name, std::int64_t otherwise) const {
  const Json* const value = find(name);
  if (!value) return {otherwise, otherwise};
  if (isExtent(*value)) return {value->get<std::int64_t>(), value->get<std::int64_t>()};
  if (value->is_array() && value->size() == 2 && std::ranges::all_of(*value, isExtent))
    return value->get<std::array<std::int64_t, 2>>();
  wrong(name, fmt::format("a whole number from 1 to {}, or a list of two", kMostExtent));
  return {otherwise, otherwise};
}

double ModelConfig::real(std::string_view name, std::optional<double> otherwise) const {
  const Json* const value = find(name);
  if (value && value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
  if (value || !otherwise) wrong(name, "a finite number");
  return otherwise.value_or(1.0);
}

bool ModelConfig::flag(std::string_view name, bool otherwise) const {
  const Json* const value = find(name);
  if (value && value->is_boolean()) return value->get<bool>();
  if (value) wrong(name, "true or false");
  return otherwise;
}

std::string ModelConfig::text(std::string_view name, std::string_view otherwise) const {
  const Json* const value = find(name);
  if (value && value->is_string()) return value->get<std::string>();
  if (value) wrong(name, "a text");
  return std::string(otherwise);
}

std::vector<std::string> ModelConfig::texts(std::string_view name) const {
  const Json* const value = find(name);
  if (!value) return {};
  std::vector<std::string> all;
  if (value->is_array() && std::ranges::all_of(*value, [](const Json& each) { return each.is_string(); }))
    for (const Json& each : *value) all.push_back(each.get<std::string>());
  else
    wrong(name, "a list of texts");
  return all;
}

std::vector<std::int64_t> ModelConfig::indices(std::string_view name) const {
  const Json* const value = find(name);
  if (!value) return {};
  const auto isIndex = [](const Json& each) { return each.is_number_integer() && each >= 0 && each <= kMostExtent; };
  std::vector<std::int64_t> all;
  if (value->is_array() && std::ranges::all_of(*value, isIndex))
    for (const Json& each : *value) all.push_back(each.get<std::int64_t>());
  else
    wrong(name, fmt::format("a list of whole numbers from 0 to {}", kMostExtent));
  return all;
}

std::vector<double> ModelConfig::reals(std::string_view name) const {
  const Json* const value = find(name);
  if (!value) return {};
  const auto isReal = [](const Json& each) { return each.is_number() && std::isfinite(each.get<double>()); };
  std::vector<double> all;
  if (value->is_array() && std::ranges::all_of(*value, isReal))
    for (const Json& each : *value) all.push_back(each.get<double>());
  else
    wrong(name, "a list of numbers");
  return all;
}

ModelConfig ModelConfig::section(std::string_view name) const {
  const Json* const value = find(name);
  if (value && !value->is_object()) wrong(name, "an object");
  return ModelConfig(value && value->is_object() ? *value : Json::object(), fmt::format("{}{}.", m_prefix, name),
                     m_shared);
}

ModelConfig ModelConfig::without(std::initializer_list<std::string_view> names) const {
  ModelConfig config = *this;
  for (const std::string_view name : names) config.m_hidden.emplace(name);
  return config;
}

void ModelConfig::ignore(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) m_read->emplace(name);
}

std::vector<std::string> ModelConfig::unreadKeys() const {
  std::vector<std::string> unread;
  for (const auto& [key, value] : m_json.items())
    if (!m_read->contains(key) && !value.is_null()) unread.push_back(m_prefix + shortened(visibleText(key)));
  return unread;
}

void ModelConfig::fail(const std::string& message) const {
  if (!m_shared->error) m_shared->error = Error{fmt::format("{}: {}", m_shared->place, message)};
}

void ModelConfig::refuse(std::string_view name, const std::string& expected) const { wrong(name, expected); }

void ModelConfig::wrong(std::string_view name, std::string_view expected) const {
  const Json* const value = find(name);
  fail(fmt::format("{}{} is {}; expected {}. Correct the config.", m_prefix, name,
                   value ? valueText(*value) : "missing", expected));
}

}  // namespace fuseline
