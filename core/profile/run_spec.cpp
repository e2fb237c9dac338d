// The table of a run's fields, and their values as texts.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_spec.h"

#include "core/plan/analysis.h"
#include "core/quant/recipe.h"
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
  Result<void> operator()(NamedTextList RunSpec::*member) const {
    const std::size_t equals = text.find('=');
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

FieldTable<RunSpec> makeSpecTable() {
  std::vector<Field<RunSpec>> fields;
  for (const SpecField& each : runSpecFields())
    fields.push_back(
        std::visit([&](auto member) { return newField(std::string(each.key), member, each.help); }, each.member));
  return FieldTable<RunSpec>(std::move(fields), checkSpec);
}

std::string recipeHelp() {
  std::vector<std::string> names;
  for (const RecipeDefinition& recipe : builtinRecipes()) names.push_back(recipe.name);
  return fmt::format("Quantization recipe: {} (default: that of the pipeline file)", fmt::join(names, ", "));
}

std::string deviceHelp() {
  return fmt::format("cpu, reference, cuda[:N], or an architecture to plan for: {}",
                     fmt::join(plannedArchitectures(), ", "));
}

}  // namespace

const std::vector<SpecField>& runSpecFields() {
  static const std::string ofDevices = deviceHelp();
  static const std::string ofRecipes = recipeHelp();
  static const std::vector<SpecField> fields = {
      {.key = "device",
       .member = &RunSpec::device,
       .group = SpecGroup::Planning,
       .option = "device",
       .placeholder = "DEVICE",
       .help = ofDevices},
      {.key = "pass",
       .member = &RunSpec::pass,
       .group = SpecGroup::Reading,
       .option = "pass",
       .placeholder = "PASS",
       .help = "forward, or train: forward and backward"},
      {.key = "rules",
       .member = &RunSpec::rules,
       .group = SpecGroup::Planning,
       .option = "rules",
       .placeholder = "BOOK",
       .help = "Rule set: te or all (default: that of the pipeline file)"},
      {.key = "recipe",
       .member = &RunSpec::recipe,
       .group = SpecGroup::Planning,
       .option = "recipe",
       .placeholder = "RECIPE",
       .help = ofRecipes},
      {.key = "timing",
       .member = &RunSpec::timing,
       .option = "timing",
       .placeholder = "CLOCK",
       .help = "Clock of the steps: cupti (each kernel of a GPU), events (GPU timestamps), host, auto, or none (whole "
               "runs only)"},
      {.key = "emulates",
       .member = &RunSpec::emulates,
       .group = SpecGroup::Planning,
       .option = "emulate",
       .help = "Accept a recipe without native GEMMs on the GPU: they read dequantized tensors, in high precision",
       .label = "&Emulate a recipe without native GEMMs on the GPU"},
      {.key = "replays",
       .member = &RunSpec::replays,
       .option = "replay",
       .help = "Record the launches and replay them (CUDA graphs), so that host launch time does not count",
       .offHelp = "Launch step by step; do not record and replay launches (CUDA graphs)",
       .label = "Use &CUDA graphs"},
      {.key = "startsCold",
       .member = &RunSpec::startsCold,
       .option = "cold",
       .help = "Fill the caches with other data before every run, so that the first reads of a plan come from memory",
       .label = "Begin with c&old caches"},
      {.key = "measuresPeaks",
       .member = &RunSpec::measuresPeaks,
       .group = SpecGroup::Peaks,
       .option = "peaks",
       .formerOption = "roofs",
       .help = "Measure the device's peak bandwidth and FLOP/s after the rounds (about 1 s)",
       .offHelp = "Do not measure the device's peak bandwidth and FLOP/s (saves about 1 s)"},
      {.key = "warmup",
       .member = &RunSpec::warmup,
       .option = "warmup",
       .placeholder = "N",
       .help = "Warm-up runs of each plan; on a GPU for at least 100 ms, unless 0",
       .unit = "runs",
       .label = "&Warm-up"},
      {.key = "iterations",
       .member = &RunSpec::iterations,
       .option = "iterations",
       .placeholder = "N|auto",
       .help = "Rounds, each with one run of every plan; auto: until the speed-up is precise",
       .unit = "rounds",
       .label = "&Rounds",
       .automatic = "auto",
       .most = std::numeric_limits<int>::max()},
      {.key = "seed",
       .member = &RunSpec::seed,
       .option = "seed",
       .placeholder = "SEED",
       .help = "Seed of the random inputs, parameters, gradients and dropout",
       .label = "&Seed"},
      {.key = "ranks",
       .member = &RunSpec::ranks,
       .group = SpecGroup::Ranks,
       .option = "ranks",
       .placeholder = "N",
       .help = "Number of tensor-parallel ranks; on the CPU they share its threads",
       .least = 1,
       .most = 64},
      {.key = "deterministic",
       .member = &RunSpec::isDeterministic,
       .group = SpecGroup::Ranks,
       .option = "deterministic",
       .help = "Sum over ranks in rank order, in float32 and rounded once, not in NCCL's order: the same bits in every "
               "run and on every device"},
      {.key = "symbols",
       .member = &RunSpec::symbols,
       .group = SpecGroup::Reading,
       .option = "set",
       .placeholder = "SYMBOL=VALUE",
       .help = "Value of a symbol, overriding the file"},
      {.key = "recipeFields",
       .member = &RunSpec::recipeFields,
       .group = SpecGroup::Planning,
       .option = "recipe-set",
       .placeholder = "KEY=VALUE",
       .help = "Field of the recipe, as in --recipe-set margin=2"},
      {.key = "label",
       .member = &RunSpec::label,
       .option = "label",
       .placeholder = "TEXT",
       .help = "Name of the run, in its file, in the list of runs and in reports",
       .label = "&Label"},
  };
  return fields;
}

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
