// The suites of `fuseline bench`, and what they share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/backends.h"
#include "app/cli/context.h"
#include "core/document/file_format.h"
#include "core/profile/run_record.h"

#include <algorithm>
#include <string>
#include <utility>

namespace fuseline::cli {

struct BenchOptions {
  std::string suite = "cpu";
  bool isQuick = false;
  std::string only;             // suite ops: this op; suite gpu: this pipeline; empty: all
  std::string device = "cuda";  // suite gpu
  std::string recordsFolder;    // suite gpu: where the run records go; empty: nowhere
  bool asJson = false;
};

Result<int> benchPipelines(const BenchOptions& options, Context& context);
Result<int> benchOperations(const BenchOptions& options, Context& context);
Result<int> benchScaling(const BenchOptions& options, Context& context);
Result<int> benchGpu(const BenchOptions& options, Context& context);

/// A template whose inputs have this dtype.
Result<LoadedDocument> benchDocument(const std::string& pipeline, const std::string& dtype);

/// The arithmetic peak for products of this dtype.
double peakGflops(const MachineRoofs& roofs, const std::string& dtype);
/// Nanoseconds that a step needs at least: at the nearer of its two roofs.
double leastTimeNs(const StepRecord& step, const MachineRoofs& roofs, const std::string& dtype);
/// "roofs, measured in this run: ...".
std::string roofsText(const MachineRoofs& roofs);
/// The JSON of a suite.
void printSuite(const BenchOptions& options, const MachineRoofs& roofs, Json rows, Context& context);

MachineRoofs higher(const MachineRoofs& a, const MachineRoofs& b);

template <class T>
struct WithRoofs {
  MachineRoofs roofs;
  T result;
};

/// Roofs are measured before and after: on a shared machine one of the two may be disturbed.
template <class T, class Measure>
Result<WithRoofs<T>> measureWithRoofs(const Measure& measure) {
  const Result<MachineRoofs> before = measureMachineRoofs();
  if (!before) return before.error();
  Result<T> result = measure();
  if (!result) return result.error();
  const Result<MachineRoofs> after = measureMachineRoofs();
  if (!after) return after.error();
  return WithRoofs<T>{higher(*before, *after), std::move(*result)};
}

}  // namespace fuseline::cli
