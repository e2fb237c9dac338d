// Prepares the elementwise steps of a plan with a compiler that only notes what it is given.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/program_sources.h"

#include "kernels/cuda/catalog.h"
#include "kernels/cuda/quantize/step_amaxes.h"

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string_view>

namespace fuseline::cuda {

namespace {

/// Takes the place of a program that is not compiled yet. It is never launched.
class NotedProgram final : public CompiledProgram {
 public:
  int blocksAtOnce() const override { return DeviceFill::kBlocksWithSums; }
  void launch(const device::Arguments&, const ElementwiseShape&, float*, float*, Stream) const override {}
};

class SourceNotes final : public ProgramCompiler {
 public:
  Result<std::shared_ptr<const CompiledProgram>> compile(const std::string& source) override {
    m_sources.insert(source);
    return std::shared_ptr<const CompiledProgram>(std::make_shared<NotedProgram>());
  }
  std::vector<std::string> take() const { return {m_sources.begin(), m_sources.end()}; }

 private:
  std::set<std::string> m_sources;
};

bool hasProgram(const Step& step) {
  constexpr std::array<std::string_view, 3> kKernels = {"elementwise", "accumulate", "cached_activation"};
  return !step.isView && std::ranges::find(kKernels, step.kernel) != kKernels.end();
}

}  // namespace

std::vector<std::string> programSources(const Graph& graph, const Plan& plan, const CompileOptions& options,
                                        const DeviceContext& device) {
  SourceNotes notes;
  AmaxesByPlan amaxes;
  DeviceContext noting = device;
  noting.programs = &notes;
  noting.amaxes = &amaxes;
  noting.allocate = [](std::size_t) { return std::unique_ptr<DeviceMemory>(); };
  for (const Step& step : plan.steps)
    if (hasProgram(step)) static_cast<void>(compileStep({{graph, plan, step, options}, noting}));
  return notes.take();
}

}  // namespace fuseline::cuda
