// Counts the layers that a recipe quantizes.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/quantized_linears.h"

#include "core/runtime/pipeline_run.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

std::string firstRecipeWarning(const Analysis& analysis) {
  for (const Diagnostic& diagnostic : analysis.lowered.diagnostics)
    if (diagnostic.code == "recipe-shape") return diagnostic.message;
  return "";
}

}  // namespace

std::string QuantizedLinears::share() const { return fmt::format("{}/{}", quantized, total); }

QuantizedLinears quantizedLinears(const Analysis& analysis) {
  QuantizedLinears linears{.reason = firstRecipeWarning(analysis)};
  for (const Node& node : analysis.graph().nodes()) {
    if (!node.operation->isQuantizable || node.operation->isView) continue;
    ++linears.total;
    linears.quantized += node.quantizers.any();
  }
  return linears;
}

Verdict quantizesAnything(const Analysis& analysis) {
  if (!analysis.recipe || !analysis.recipe->definition().quantizer) return Verdict::yes();
  const QuantizedLinears linears = quantizedLinears(analysis);
  if (linears.quantized > 0) return Verdict::yes();
  return Verdict::no(linears.reason.empty() ? "The pipeline has no op that it quantizes." : linears.reason);
}

Result<void> checkQuantizes(const PipelineDocument& document, const RunSpec& settings) {
  Result<AnalysisOptions> options = analysisOptions(settings, {}, {});
  if (!options) return options.error();
  const Verdict quantizes = quantizesAnything(analyze(document, *options));
  return quantizes ? Result<void>() : Result<void>(Error{quantizes.reason(), ErrorKind::RunFailed});
}

}  // namespace fuseline
