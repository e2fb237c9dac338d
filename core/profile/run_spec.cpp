// The values of a run's fields as texts.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_spec.h"

#include "core/support/field_table.h"
#include "core/support/text.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

Error expected(std::string_view what, const std::string& found) {
  constexpr std::size_t kLongest = 40;
  return {fmt::format("expected {}, found {}", what, cutText(found, kLongest)), ErrorKind::Usage};
}

/// Nothing: it is no integer of this type.
template <class Number>
std::optional<Number> integerIn(std::string_view text) {
  Number value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  return problem == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

/// Reads texts into a field, by the type of the field.
struct TextReader {
  const SpecField& field;
  const std::string& text;
  RunSpec& spec;

  Result<void> operator()(bool RunSpec::*member) const {
    spec.*member = text == "on";
    return {};
  }
  Result<void> operator()(std::string RunSpec::*member) const {
    spec.*member = text;
    return {};
  }
  Result<void> operator()(int RunSpec::*member) const {
    const bool isAutomatic = !field.automatic.empty();
    const std::optional<int> value = isAutomatic && text == field.automatic ? std::optional(0) : integerIn<int>(text);
    const int least = isAutomatic ? (text == field.automatic ? 0 : 1) : field.least;
    if (!value || *value < least || *value > field.most)
      return expected(fmt::format("a number from {} to {}{}{}", isAutomatic ? 1 : field.least, field.most,
                                  isAutomatic ? ", or " : "", field.automatic),
                      text);
    spec.*member = *value;
    return {};
  }
  Result<void> operator()(std::uint64_t RunSpec::*member) const {
    const std::optional<std::uint64_t> value = integerIn<std::uint64_t>(text);
    if (!value)
      return expected(fmt::format("an integer from 0 to {}", std::numeric_limits<std::uint64_t>::max()), text);
    spec.*member = *value;
    return {};
  }
  template <class E>
  Result<void> operator()(E RunSpec::*member) const {
    const auto value = enumNamed<typename detail::InnerOf<E>::Type>(text);
    if (!value) return expected(fmt::format("one of {}", fmt::join(field.choices(), ", ")), text);
    spec.*member = *value;
    return {};
  }
  /// A key may hold an op's id, and so '='; values hold it within parentheses only, as in mxfp8(fp8_format=E4M3).
  Result<void> operator()(NamedTextList RunSpec::*member) const {
    const std::size_t equals = text.rfind('=', text.ends_with(')') ? text.rfind('(') : text.size());
    if (equals == std::string::npos || equals == 0) return expected(field.placeholder, text);
    (spec.*member).emplace_back(text.substr(0, equals), text.substr(equals + 1));
    return {};
  }
  Result<void> operator()(NamedNumberList RunSpec::*member) const {
    const std::size_t equals = std::min(text.find('='), text.size());
    const auto value = integerIn<std::int64_t>(std::string_view(text).substr(std::min(equals + 1, text.size())));
    if (equals == 0 || !value) return expected("SYMBOL=INTEGER, as in M=1024", text);
    (spec.*member).emplace_back(text.substr(0, equals), *value);
    return {};
  }
};

struct TextWriter {
  const SpecField& field;
  const RunSpec& spec;

  std::vector<std::string> operator()(bool RunSpec::*member) const {
    return spec.*member ? std::vector<std::string>{"on"} : std::vector<std::string>();
  }
  std::vector<std::string> operator()(std::string RunSpec::*member) const {
    return (spec.*member).empty() ? std::vector<std::string>() : std::vector{spec.*member};
  }
  std::vector<std::string> operator()(int RunSpec::*member) const {
    return {spec.*member == 0 && !field.automatic.empty() ? std::string(field.automatic)
                                                          : std::to_string(spec.*member)};
  }
  std::vector<std::string> operator()(std::uint64_t RunSpec::*member) const { return {std::to_string(spec.*member)}; }
  template <class E>
  std::vector<std::string> operator()(E RunSpec::*member) const {
    std::string name = nameOf(spec.*member);
    return name.empty() ? std::vector<std::string>() : std::vector{std::move(name)};
  }
  template <class V>
  std::vector<std::string> operator()(std::vector<std::pair<std::string, V>> RunSpec::*member) const {
    std::vector<std::string> texts;
    for (const auto& [name, value] : spec.*member) texts.push_back(fmt::format("{}={}", name, value));
    return texts;
  }
};

struct ChoicesOf {
  template <class V>
  std::vector<std::string> operator()(V RunSpec::*) const {
    using Inner = typename detail::InnerOf<V>::Type;
    if constexpr (NamedEnum<Inner>) return enumTexts<Inner>();
    return {};
  }
};

void checkSpec(JsonFields& fields, const RunSpec& spec) {
  for (const auto& [key, count] : {std::pair("warmup", spec.warmup), {"iterations", spec.iterations}})
    if (count < 0) fields.refuse(key, fmt::format("expected 0 or more, found {}.", count));
  if (spec.ranks < 1) fields.refuse("ranks", fmt::format("expected 1 or more, found {}.", spec.ranks));
}

Field<RunSpec> fieldOf(const SpecField& each) {
  Field<RunSpec> field =
      std::visit([&](auto member) { return newField(std::string(each.key), member, each.help); }, each.member);
  return each.key == "measuresPeaks" ? std::move(field).formerly("measuresRoofs") : field;
}

FieldTable<RunSpec> makeSpecTable() {
  std::vector<Field<RunSpec>> fields;
  for (const SpecField& each : runSpecFields()) fields.push_back(fieldOf(each));
  return FieldTable<RunSpec>(std::move(fields), checkSpec);
}

}  // namespace

const SpecField& runSpecField(std::string_view key) {
  return *std::ranges::find(runSpecFields(), key, &SpecField::key);
}

std::vector<std::string> SpecField::choices() const { return std::visit(ChoicesOf(), member); }

std::string optionName(const SpecField& field, const RunSpec& spec) {
  const auto* flag = std::get_if<bool RunSpec::*>(&field.member);
  return fmt::format("--{}{}", flag && spec.*(*flag) ? "no-" : "", field.option);
}

std::vector<std::string> textsOf(const SpecField& field, const RunSpec& spec) {
  return std::visit(TextWriter{field, spec}, field.member);
}

Result<void> takeText(const SpecField& field, const std::string& text, RunSpec& spec) {
  return std::visit(TextReader{field, text, spec}, field.member);
}

const FieldTable<RunSpec>& fieldsOf(const RunSpec*) {
  static const FieldTable<RunSpec> table = makeSpecTable();
  return table;
}

Json toJson(const RunSpec& spec) { return fieldsOf(&spec).toJson(spec); }

}  // namespace fuseline
