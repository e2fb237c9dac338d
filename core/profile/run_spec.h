// RunSpec: how a run is wanted, stated once. Options of the command line, the requests to a worker, the dialog of run
// options, run records and the command that repeats a run follow from its table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/rule.h"
#include "core/graph/graph.h"
#include "core/support/enum_names.h"
#include "core/support/json.h"
#include "core/support/result.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace fuseline {

template <class T>
class FieldTable;

/// Clock of the steps of a run.
enum class StepTiming {
  Auto,    // a request only: the device's clock, or the host's where it has none
  Events,  // the device's own clock
  Cupti,   // a GPU's kernels one by one
  Host,    // the host's clock, with a wait for the device after each step
  None     // nothing: from end to end only
};

/// Updates the parameters at the end of a training pass.
enum class Optimizer { None, AdamW };

template <>
struct EnumNames<Optimizer> {
  static constexpr std::array kNames = {std::pair(Optimizer::None, "none"), std::pair(Optimizer::AdamW, "adamw")};
};
template <>
struct EnumNames<StepTiming> {
  static constexpr std::array kNames = {std::pair(StepTiming::Auto, "auto"), std::pair(StepTiming::Events, "events"),
                                        std::pair(StepTiming::Cupti, "cupti"), std::pair(StepTiming::Host, "host"),
                                        std::pair(StepTiming::None, "none")};
};
template <>
struct EnumNames<ExecutionMode> {
  static constexpr std::array kNames = {std::pair(ExecutionMode::Inference, "forward"),
                                        std::pair(ExecutionMode::Training, "train")};
};
template <>
struct EnumNames<RuleBook> {
  static constexpr std::array kNames = {std::pair(RuleBook::Te, "te"), std::pair(RuleBook::All, "all")};
};

using NamedTextList = std::vector<std::pair<std::string, std::string>>;
using NamedNumberList = std::vector<std::pair<std::string, std::int64_t>>;

/// A record has what was used in place of what was requested: its pass, rules, recipe and timing are never left open.
struct RunSpec {
  std::string device = "cpu";
  ExecutionMode pass = ExecutionMode::Training;
  std::optional<RuleBook> rules = RuleBook::All;  // nothing: the document decides
  std::string recipe;                             // empty: the document decides
  NamedTextList recipeFields;                     // in place of the recipe's defaults
  StepTiming timing = StepTiming::Auto;
  bool emulates = false;
  bool replays = true;
  bool startsCold = false;
  bool measuresPeaks = false;
  int warmup = 3;
  int iterations = 0;  // rounds; 0: automatic
  std::uint64_t seed = 0;
  int ranks = 1;                 // of tensor parallelism, on this machine
  NamedNumberList symbols;       // overrides
  std::string label;             // the user's name for the run; mostly empty
  bool isDeterministic = false;  // sums of ranks are in rank order, on GPUs, too
  bool overlaps = true;          // collectives run beside the steps that do not need them
  int chunks = 1;                // of collectives beside the GEMMs that need or make their rows; 0: by a model
  Optimizer optimizer = Optimizer::None;
  NamedTextList optimizerFields;  // in place of its defaults

  bool isTraced() const { return timing == StepTiming::Cupti; }
  bool timesSteps() const { return timing != StepTiming::None; }
  bool operator==(const RunSpec&) const = default;
};

/// Which verbs take an option: those that read a pipeline, that plan it, that measure it, that run it on several ranks;
/// and whether the peaks of the device are measured, which is no part of the command that repeats a run.
enum class SpecGroup { Reading, Planning, Measuring, Ranks, Peaks };

using SpecMember =
    std::variant<bool RunSpec::*, int RunSpec::*, std::uint64_t RunSpec::*, std::string RunSpec::*,
                 ExecutionMode RunSpec::*, StepTiming RunSpec::*, Optimizer RunSpec::*,
                 std::optional<RuleBook> RunSpec::*, NamedTextList RunSpec::*, NamedNumberList RunSpec::*>;

/// One field of a RunSpec. Its default is that of RunSpec().
struct SpecField {
  std::string_view key;  // in JSON
  SpecMember member;
  SpecGroup group = SpecGroup::Measuring;
  std::string_view option;        // "cold": --cold, or --no-cold where it is on
  std::string_view formerOption;  // an earlier name that still works
  std::string_view placeholder;   // of the option's value: "KEY=VALUE"
  std::string_view help;          // a sentence: of the option, of the dialog's field, of the JSON schema
  std::string_view offHelp;       // of --no-option
  std::string_view unit;          // "runs"
  std::string_view label;         // in the dialog, with its access key; empty: it is not in the dialog
  std::string_view automatic;     // what 0 is called: "auto"; empty: 0 is a number
  int least = 0;                  // of an integer
  int most = 1'000'000;

  bool isFlag() const { return std::holds_alternative<bool RunSpec::*>(member); }
  bool repeats() const {
    return std::holds_alternative<NamedTextList RunSpec::*>(member) ||
           std::holds_alternative<NamedNumberList RunSpec::*>(member);
  }
  /// The values that an enum has; empty: anything.
  std::vector<std::string> choices() const;
};

/// In the order of a record's JSON.
const std::vector<SpecField>& runSpecFields();
const SpecField& runSpecField(std::string_view key);

/// "--cold", or "--no-cold" where `spec` has it on: the flag that changes it.
std::string optionName(const SpecField& field, const RunSpec& spec);
/// Command-line texts of a field's value, one per repetition; "on" for a flag that is on. Empty: no option.
std::vector<std::string> textsOf(const SpecField& field, const RunSpec& spec);
/// The inverse: a text of the command line becomes the field's value, or one more of them. Errors (Usage): what was
/// expected and what was found.
Result<void> takeText(const SpecField& field, const std::string& text, RunSpec& spec);

const FieldTable<RunSpec>& fieldsOf(const RunSpec*);
Json toJson(const RunSpec& spec);

}  // namespace fuseline
