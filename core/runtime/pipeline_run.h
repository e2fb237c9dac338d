// PipelineRun: from a document to a run record: lower, infer, fuse, plan, bind, measure. The command line and the
// worker both run pipelines through it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/capturable_tensors.h"
#include "core/profile/numerics.h"
#include "core/profile/run_record.h"
#include "core/runtime/measure.h"
#include "core/runtime/ranked_pipeline.h"
#include "core/tensor/tensor.h"

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace fuseline {

struct PipelineRunOptions {
  RunSpec settings;
  /// How to measure; `warmup` and `iterations` are taken from the settings.
  MeasurementPolicy policy;
  /// "unfused", "fused" or both.
  std::vector<std::string> variants = {"unfused", "fused"};
  /// In addition to the document's own.
  RuleSwitches switches;
  /// Decides between overlapping fusions.
  GainModel gains;
  /// Tensors from a file; missing ones are drawn from the seed.
  NamedTensors tensors;
  /// The tensors are another pipeline's: those that this one does not need, or with other shapes, are left out.
  bool takesTensorsThatFit = false;
  /// This process is one of `settings.ranks` ranks, of which `ranksOfMachine` are on this machine. nullptr: all ranks
  /// are threads of this process.
  std::shared_ptr<Communicator> communicator;
  int ranksOfMachine = 1;
  /// For ranks that are threads.
  RankWatch watch;
  /// Memory held by runs that are measured together with it. Counts if the device does not report its free memory.
  std::int64_t heldBytes = 0;
  /// A sentence with the next step for a pipeline that is too large for the device, for the user interface at hand.
  std::string tooLargeAdvice = "Make the pipeline smaller with --set, or run one variant at a time with --variants.";
};

/// Errors (Usage): an unknown recipe or setting of it, with the names that exist.
Result<AnalysisOptions> analysisOptions(const RunSpec& settings, const RuleSwitches& switches,
                                        Capabilities capabilities);

/// The place of rank 0. isOnHost: ranks share the cores of a CPU, where `auto` is one chunk.
RankPlace rankPlace(const RunSpec& settings, bool isOnHost);

/// Every error of a document as one text, one line per problem. Empty if there is none.
std::string errorText(const std::vector<Diagnostic>& diagnostics, std::string_view file);

class PipelineRun {
 public:
  /// Errors: problems of the document, a device that cannot run, a tensor that does not fit, no memory.
  static Result<std::unique_ptr<PipelineRun>> prepare(const LoadedDocument& loaded, const std::string& pipelineName,
                                                      PipelineRunOptions options, const BackendRegistry& registry);

  /// Memory of its plans, as used by the memory check.
  std::int64_t heldBytes() const;

  /// A canceled measurement returns a partial record.
  Result<RunRecord> measure(const ProgressCallback& progress = {}, std::stop_token cancel = {});

  /// Measures several runs together, interleaved, so that their times can be compared: one record each. The policy is
  /// that of the first.
  static Result<std::vector<RunRecord>> measureTogether(std::span<PipelineRun* const> runs,
                                                        const ProgressCallback& progress = {},
                                                        std::stop_token cancel = {});

  /// Effects of the recipe's number formats on every tensor. Errors: those of a run; it was canceled.
  Result<NumericsReport> numerics(std::stop_token cancel = {}) const;

  /// Runs every variant again with separate memory for every tensor, without an optimizer, and returns all tensors. If
  /// both variants run, names begin with "unfused/" and "fused/".
  Result<NamedTensors> dump() const;
  /// Runs the last variant again and returns the tensors that outlive a step, for `PipelineRunOptions::tensors`:
  /// parameters, main_grad buffers and states, after this one run; with an optimizer after all iterations.
  Result<NamedTensors> state() const;
  /// The same tensors as each rank holds them, by rank; empty: the rank is another process. Without communication.
  Result<std::vector<NamedTensors>> stateOfRanks() const;

  /// Tensors that capture() supports: those of the last variant.
  std::vector<CapturableTensor> capturable() const;
  /// Runs the last variant again, after the same number of warm-up runs as numerics(), and returns these tensors.
  /// Errors: those of a run; it was canceled.
  Result<NamedTensors> capture(const TensorChoice& choice, const std::stop_token& cancel = {}) const;

  const Analysis& analysis() const { return m_analysis; }
  /// Hash of the document, without its layout.
  std::string pipelineHash() const;

 private:
  struct Variant {
    std::string name;
    const Plan* plan = nullptr;
    std::unique_ptr<TimedPlan> executor;
    const RankedExecutor* ranked = nullptr;  // the executor, on several ranks
    double preparationNs = 0.0;
  };

  PipelineRun() = default;
  Result<void> openDevices(const BackendRegistry& registry);
  Result<void> analyzeDocument(const LoadedDocument& loaded);
  Result<const Plan*> planOf(const std::string& variant) const;
  /// Call before large allocations: a system that overcommits would end the process instead.
  Result<void> checkRecipe() const;
  Result<void> checkMemory() const;
  int ranksOfDevice() const;
  Result<void> bind(const LoadedDocument& loaded, const AnalysisOptions& options);
  Result<void> makeRanks(const LoadedDocument& loaded, const AnalysisOptions& options);
  /// Errors (Usage): what is asked for is not there on several ranks.
  Result<void> checkOneRank(const char* option) const;
  Result<std::unique_ptr<TimedPlan>> makeExecutor(const Plan& plan, const ExecutorOptions& options = {}) const;
  Result<void> addVariants();
  /// Writes the available clock into the settings.
  Result<void> resolveTiming();
  void noteTiming();
  Result<std::unique_ptr<CacheFiller>> cacheFiller() const;
  std::string clockNote() const;
  RunRecord emptyRecord() const;
  VariantRecord variantRecord(const Variant& variant, const PlanSamples& samples) const;
  /// Appends the requested tensors, with the prefix before their names.
  Result<void> runAndRead(const Plan& plan, int runs, const std::function<bool(TensorRole)>& isWanted,
                          const std::string& prefix, NamedTensors& tensors) const;
  bool isOfModel(const PlanTensor& tensor) const;
  Result<std::vector<Tensor>> shardsIn(const RankedExecutor& executor, const PlanTensor& tensor) const;

  std::string m_pipelineName;
  Json m_pipeline;
  PipelineRunOptions m_options;
  std::shared_ptr<Backend> m_backend;
  std::vector<std::shared_ptr<Backend>> m_rankBackends;  // empty: one rank
  Analysis m_analysis;
  NamedTensors m_bindings;                  // whole tensors
  std::unique_ptr<RankedPipeline> m_ranks;  // nullptr: one rank
  std::vector<Variant> m_variants;
};

}  // namespace fuseline
