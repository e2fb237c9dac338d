// The parts of a JSON Schema (2020-12) for JSON that the program writes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline::schema {

using Fields = std::vector<std::pair<std::string, Json>>;

/// An empty description is left out.
Json text(std::string_view description = {});
Json integer(std::string_view description = {});
Json number(std::string_view description = {});
Json flag(std::string_view description = {});
Json choice(const std::vector<std::string>& values, std::string_view description = {});
Json any(std::string_view description);

Json list(Json items, std::string_view description = {});
Json texts(std::string_view description = {});
/// An object with free names.
Json mapOf(Json values, std::string_view description = {});
Json orNull(Json schema);
Json oneOf(std::vector<Json> schemas);
/// Every field is always present, and there are no others.
Json object(const Fields& fields);

}  // namespace fuseline::schema
