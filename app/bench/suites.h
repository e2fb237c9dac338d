// The suites of `fuseline-bench`, and what they share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/context.h"
#include "core/document/file_format.h"
#include "core/profile/run_record.h"

#include <string>
#include <utility>

namespace fuseline::cli {

struct BenchOptions {
  std::string suite = "cpu";
  bool isQuick = false;
  bool startsCold = false;    // suite ops: caches are filled with other data before every run
  bool isAll = false;         // suite gpu: more than what is measured by default
  bool isListed = false;      // suite gpu: the names of its cases only
  std::string only;           // suite ops: this op or layer; suite gpu: this pipeline; empty: all
  std::string device;         // suites ops and gpu; empty: the CPU, and the first GPU
  std::string recordsFolder;  // suite gpu: where the run records go; empty: nowhere
  std::string linesFile;      // suites ops and gpu: where each result goes at once; empty: nowhere
  bool replaces = false;      // linesFile, where it exists
  bool asJson = false;
  bool showsSchema = false;  // of --json, in place of a suite
};

Result<int> benchPipelines(const BenchOptions& options, Context& context);
Result<int> benchOperations(const BenchOptions& options, Context& context);
Result<int> benchScaling(const BenchOptions& options, Context& context);
Result<int> benchGpu(const BenchOptions& options, Context& context);

/// The schemas of their rows.
Json pipelineBenchRow();
Json operationBenchRow();
Json scalingBenchRow();
Json gpuBenchRow();

/// A template whose inputs have this dtype.
Result<LoadedDocument> benchDocument(const std::string& pipeline, const std::string& dtype);

/// The JSON of a suite but for its rows, and with them.
Json suiteHead(const BenchOptions& options, const Backend& backend, const DevicePeaks& peaks);
void printSuite(const BenchOptions& options, const Backend& backend, const DevicePeaks& peaks, Json rows,
                Context& context);

template <class T>
struct WithPeaks {
  DevicePeaks peaks;
  T result;
};

/// Peaks are measured before and after: on a shared machine one of the two may be disturbed. A device that fails in
/// between loses no measurement. `measure` gets the peaks measured before.
template <class T, class Measure>
Result<WithPeaks<T>> measureWithPeaks(Backend& backend, const Measure& measure) {
  const Result<DevicePeaks> before = backend.measurePeaks();
  if (!before) return before.error();
  T result = measure(*before);
  const Result<DevicePeaks> after = backend.measurePeaks();
  return WithPeaks<T>{after ? higher(*before, *after) : *before, std::move(result)};
}

}  // namespace fuseline::cli
