// PipelineRun: from a document to a run record: lower, infer, fuse, plan, bind, measure. The command line and the
// worker both run pipelines through it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/capturable_tensors.h"
#include "core/profile/numerics.h"
#include "core/profile/run_record.h"
#include "core/runtime/measure.h"
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
  /// What decides between overlapping fusions.
  GainModel gains;
  /// Tensors from a file; what is missing here is drawn from the seed.
  NamedTensors tensors;
  /// They are another pipeline's: what this one does not take, or in another shape, is left out.
  bool takesTensorsThatFit = false;
  /// What runs that are measured with it hold. Counts where the device does not say how much of its memory is free.
  std::int64_t heldBytes = 0;
  /// What to do about a pipeline that is too large for the device, as one reads it: a sentence.
  std::string tooLargeAdvice = "Make the pipeline smaller with --set, or run one variant at a time with --variants.";
};

/// Errors (Usage): an unknown recipe or setting of it, with the names that exist.
Result<AnalysisOptions> analysisOptions(const RunSpec& settings, const RuleSwitches& switches,
                                        Capabilities capabilities);

/// Every error of a document as one text, one line a problem. Empty when there is none.
std::string errorText(const std::vector<Diagnostic>& diagnostics, std::string_view file);

class PipelineRun {
 public:
  /// Errors: problems of the document, a device that cannot run, a tensor that does not fit, no memory.
  static Result<std::unique_ptr<PipelineRun>> prepare(const LoadedDocument& loaded, const std::string& pipelineName,
                                                      PipelineRunOptions options, const BackendRegistry& registry);

  /// Of its plans, as their memory is checked.
  std::int64_t heldBytes() const;

  /// A cancelled measurement gives a partial record.
  Result<RunRecord> measure(const ProgressCallback& progress = {}, std::stop_token cancel = {});

  /// Measures several runs together, interleaved, so that their times can be compared: one record each. The policy is
  /// that of the first.
  static Result<std::vector<RunRecord>> measureTogether(std::span<PipelineRun* const> runs,
                                                        const ProgressCallback& progress = {},
                                                        std::stop_token cancel = {});

  /// What the number formats of the recipe do to every tensor. Errors: those of a run; it was cancelled.
  Result<NumericsReport> numerics(std::stop_token cancel = {}) const;

  /// Runs every variant once more with memory of its own for every tensor, and returns them all. Where both
  /// variants run, names begin with "unfused/" and "fused/".
  Result<NamedTensors> dump() const;
  /// Runs the last variant once more and returns what outlives a step: the parameters, the main_grad buffers and the
  /// states of quantizers, as that one run leaves them. `PipelineRunOptions::tensors` takes it back.
  Result<NamedTensors> state() const;

  /// What capture() can take: the tensors of the last variant.
  std::vector<CapturableTensor> capturable() const;
  /// Runs the last variant once more, after as many warm-up runs as numerics() takes, and returns these tensors.
  /// Errors: those of a run; it was cancelled.
  Result<NamedTensors> capture(const TensorChoice& choice, const std::stop_token& cancel = {}) const;

  const Analysis& analysis() const { return m_analysis; }

 private:
  struct Variant {
    std::string name;
    const Plan* plan = nullptr;
    std::unique_ptr<Executor> executor;
    double preparationNs = 0.0;
  };

  PipelineRun() = default;
  Result<void> analyzeDocument(const LoadedDocument& loaded);
  Result<const Plan*> planOf(const std::string& variant) const;
  /// Before anything large is allocated: a system that overcommits would end the process instead.
  Result<void> checkRecipe() const;
  Result<void> checkMemory() const;
  Result<void> addVariants();
  /// Says in the settings which clock there is.
  Result<void> resolveTiming();
  void noteTiming();
  Result<std::unique_ptr<CacheFiller>> cacheFiller() const;
  std::string clockNote() const;
  RunRecord emptyRecord() const;
  VariantRecord variantRecord(const Variant& variant, const PlanSamples& samples) const;
  /// Appends the tensors that are wanted, with the prefix before their names.
  Result<void> runAndRead(const Plan& plan, const std::function<bool(TensorRole)>& isWanted, const std::string& prefix,
                          NamedTensors& tensors) const;

  std::string m_pipelineName;
  Json m_pipeline;
  PipelineRunOptions m_options;
  std::shared_ptr<Backend> m_backend;
  Analysis m_analysis;
  NamedTensors m_bindings;
  std::vector<Variant> m_variants;
};

}  // namespace fuseline
