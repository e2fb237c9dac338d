// SuiteRun: the cases of a benchmark, one after the other; what was measured is kept, however it ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <functional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline::cli {

/// Results of the cases of a suite, and how they are reported.
template <class Case, class Outcome>
struct SuiteSteps {
  std::function<std::string(const Case&)> name;
  std::function<Result<Outcome>(const Case&)> measure;
  /// The outcome of a case that could not be measured.
  std::function<Outcome(const Case&, const std::string& reason)> refuse;
  /// Written at once where that is wanted, so that it outlives the suite. Errors end the suite.
  std::function<Result<void>(const Outcome&)> keep = [](const Outcome&) { return Result<void>(); };
  std::function<bool()> isDeviceLost = [] { return false; };
  std::function<void(const std::string& name, int done, int total)> show = [](const std::string&, int, int) {};
};

template <class Outcome>
struct SuiteRun {
  std::vector<Outcome> outcomes;
  /// A sentence why it ended before its last case; empty: it did not.
  std::string ended;

  /// The exit code of the verb, after all was printed. Errors (RunFailed): `ended`.
  Result<int> exitCode() const {
    return ended.empty() ? Result<int>(0) : Result<int>(Error{ended, ErrorKind::RunFailed});
  }
};

/// A case that fails leaves its reason, and the next one is measured; after a fault of the device none is.
template <class Case, class Outcome>
SuiteRun<Outcome> runSuite(const std::vector<Case>& cases, const SuiteSteps<Case, Outcome>& steps,
                           const std::stop_token& cancel) {
  SuiteRun<Outcome> run;
  const int total = static_cast<int>(cases.size());
  const auto end = [&](std::string why) {
    run.ended =
        fmt::format("{} {} of {} cases were not measured.", why, total - static_cast<int>(run.outcomes.size()), total);
  };
  for (const Case& each : cases) {
    const std::string name = steps.name(each);
    steps.show(name, static_cast<int>(run.outcomes.size()), total);
    Result<Outcome> outcome = steps.measure(each);
    if (cancel.stop_requested()) {
      end(fmt::format("The benchmark was cancelled in {}.", name));
      return run;
    }
    const bool isMeasured = outcome.hasValue();
    run.outcomes.push_back(isMeasured ? std::move(*outcome) : steps.refuse(each, outcome.error().message));
    if (Result<void> kept = steps.keep(run.outcomes.back()); !kept) {
      end(kept.error().message);
      return run;
    }
    if (!isMeasured && steps.isDeviceLost()) {
      end(fmt::format("The device was lost in {}: start the benchmark again for what is missing.", name));
      return run;
    }
  }
  return run;
}

}  // namespace fuseline::cli
