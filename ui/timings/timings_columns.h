// The columns of the table of timings: what each is called, in which unit it is, and what it says of a row.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/comparison_text.h"
#include "core/profile/run_comparison.h"
#include "core/profile/run_record.h"
#include "ui/session/baselines.h"
#include "ui/timings/change_text.h"

#include <QString>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace fuseline::ui {

/// Facts about a step, or about a whole plan, in addition to its time.
struct StepFacts {
  QString writes, kernel;  // of a step
  QString details;         // how it was done, and its kernels where they were traced: lines for a tooltip
  std::int64_t flops = 0;
  std::int64_t bytes = 0;
  std::int64_t launches = 0;
  std::optional<double> hostLaunchNs;  // what the host took to launch it
  std::vector<double> rankNs;          // on each of several ranks; of a plan, the time of computing
  std::int64_t wireBytes = 0;          // that each rank sends
  double transferNs = 0.0;             // of the one step, without waiting for other ranks
};

/// A row of the table. Where one plan is spoken of it is the fused one, or the unfused one where that has no such step,
/// as for a part.
struct TimingsRow {
  ComparisonRow times;
  std::optional<StepFacts> unfused, fused;
  double planNs = 0.0;  // all steps of the plan that is spoken of; 0: the row is no step
  SamplesOf ofPlan;     // of a whole plan, where the row is no step: its rounds
  /// Against the baselines, by slot.
  std::array<std::optional<MetricChange>, Baselines::kMost> changes = {};
  bool isGone = false;  // a step of baselines only
  QString note;         // the user's

  bool isOfFused() const { return times.fused.count > 0; }
  const SampleStats& stats() const { return isOfFused() ? times.fused : times.unfused; }
  const Efficiency& efficiency() const { return isOfFused() ? times.fusedEfficiency : times.unfusedEfficiency; }
  const std::optional<StepFacts>& facts() const { return fused ? fused : unfused; }
};

/// Steps of a run by variant, pass and name, and its plans.
class FactsOfSteps {
 public:
  explicit FactsOfSteps(const RunRecord& record);
  std::optional<StepFacts> ofStep(const std::string& variant, const ComparisonRow& row) const;
  std::optional<StepFacts> ofPlan(const std::string& variant) const;

 private:
  using Key = std::tuple<std::string, std::string, std::string>;
  void add(const VariantRecord& variant);
  std::optional<StepFacts> find(const Key& key) const;
  std::map<Key, StepFacts> m_facts;  // of a plan: without pass and name
};

/// One unit a column.
struct TimingsUnits {
  ColumnUnit time, saved;  // as the command line has them
  ColumnUnit traffic = {"B", 1.0};
  ColumnUnit wire = {"B", 1.0};
  ColumnUnit flops = {"GFLOP", 1e9};
  ColumnUnit rate = {"GFLOP/s", 1.0};
  ChangeUnit change = ChangeUnit::Percent;
};

struct TimingsColumn {
  enum Id {
    OpColumn,
    PassColumn,
    UnfusedColumn,
    UnfusedSpreadColumn,
    FusedColumn,
    FusedSpreadColumn,
    SpeedupColumn,
    BaselineColumn,  // the first of Baselines::kMost: of the fused plan, against other runs
    LastBaselineColumn = BaselineColumn + Baselines::kMost - 1,
    NoteColumn,
    BytesColumn,
    LaunchesColumn,
    BandwidthColumn,
    RateColumn,
    RooflineColumn,
    BoundColumn,
    SlowestRankColumn,
    WireColumn,
    BusColumn,
    ShareColumn,
    FastestColumn,
    QuartilesColumn,
    Percentile5Column,
    Percentile95Column,
    HostColumn,
    NumLaunchesColumn,
    FlopsColumn,
    TrafficColumn,
    IntensityColumn,
    RooflineShareColumn,
    WritesColumn,
    KernelColumn,
    ColumnCount
  };
  enum class Format { Words, Time, Bytes, Percent, Digits, Count };

  const char* id;       // in settings
  const char* heading;  // "%1": the unit
  /// Where the heading alone does not tell it from others: its whole name.
  const char* name = nullptr;
  const char* tip = nullptr;
  Format format = Format::Words;
  ColumnUnit TimingsUnits::*unit = nullptr;
  /// Sort key of a row; nullopt if it has none. Texts are their own key.
  std::optional<double> (*value)(const TimingsRow& row) = nullptr;
  /// Words, and numbers that stand with more than their digits; else null.
  QString (*words)(const TimingsRow& row) = nullptr;
  int slot = -1;  // of the baseline that it is about
  bool isShownFirst = false;

  bool isOfWords() const { return format == Format::Words; }
  bool isOfBaseline() const { return slot >= 0; }
  QString title(const TimingsUnits& units) const;
  /// With nothing left to guess.
  QString fullTitle(const TimingsUnits& units) const;
  /// Nothing where the row has no such value, and of words.
  std::optional<double> valueOf(const TimingsRow& row, const TimingsUnits& units) const;
  /// Empty where the row has no such value.
  QString textOf(const TimingsRow& row, const TimingsUnits& units) const;
};

/// "µs"
QString unitText(const ColumnUnit& unit);

/// By TimingsColumn::Id.
const std::vector<TimingsColumn>& timingsColumns();

}  // namespace fuseline::ui
