// Compiles the elementwise programs that runs of pipelines need, for several GPUs: the bundle's cache. Needs NVRTC, and
// no GPU.
// SPDX-License-Identifier: Apache-2.0
// fill_programs FOLDER sm_90... (PIPELINE [SYMBOL=VALUE]...)...
#include "core/document/file_format.h"
#include "core/plan/analysis.h"
#include "core/quant/recipe_list.h"
#include "kernels/cuda/catalog.h"
#include "kernels/cuda/copy_cost.h"
#include "kernels/cuda/elementwise/nvrtc_compiler.h"
#include "kernels/cuda/elementwise/program_cache.h"
#include "kernels/cuda/elementwise/program_sources.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace fuseline::cuda {
namespace {

namespace fs = std::filesystem;

using Sources = std::set<std::string>;

Capabilities capabilitiesOfModule() {
  Capabilities capabilities = supportsStep;
  capabilities.extraCost = [](const Plan& plan, const Step& step) { return extraCostOf(plan, step, {}); };
  return capabilities;
}

/// Forms of programs do not follow from the device, but for results that a block cannot hold.
void addSources(const PipelineDocument& document, const AnalysisOptions& options, Sources& sources) {
  const Analysis analysis = analyze(document, options);
  if (!analysis.isRunnable()) return;  // a recipe that does not fit its sizes
  for (const Plan* plan : {&analysis.unfusedPlan(), analysis.fusedPlan.get()})
    for (std::string& source : programSources(analysis.graph(), *plan, {}, DeviceContext{}))
      sources.insert(std::move(source));
}

struct Pipeline {
  std::string file;
  std::map<std::string, std::int64_t> symbols;
};

/// In training, without a recipe and with each.
Result<void> addPipeline(const Pipeline& pipeline, Sources& sources) {
  const Result<LoadedDocument> loaded = loadDocument(pipeline.file);
  if (!loaded) return loaded.error();
  const Result<std::vector<const RecipeDefinition*>> recipes = recipesNamed("all");
  if (!recipes) return recipes.error();
  AnalysisOptions options{.book = RuleBook::All, .capabilities = capabilitiesOfModule()};
  options.lowering.symbols = pipeline.symbols;
  addSources(loaded->document, options, sources);
  for (const RecipeDefinition* const recipe : *recipes) {
    Result<Recipe> made = Recipe::create(*recipe);
    if (!made) return made.error();
    options.recipe = std::move(*made);
    addSources(loaded->document, options, sources);
  }
  return {};
}

struct Task {
  const std::string* source;
  std::string architecture;
};

/// Returns the number of programs that NVRTC refused.
int compileAll(const fs::path& folder, const std::vector<Task>& tasks) {
  std::atomic<std::size_t> next = 0;
  std::atomic<int> numRefused = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      const auto& [source, architecture] = tasks[i];
      const Result<std::vector<char>> binary = compileToCubin(*source, architecture);
      if (!binary) std::fprintf(stderr, "%s\n", binary.error().message.c_str());
      if (binary) ProgramCache(folder, bundledOrigin(architecture), tasks.size()).keep(*source, *binary);
      numRefused += binary ? 0 : 1;
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) threads.emplace_back(work);
  work();
  threads.clear();
  return numRefused;
}

struct Arguments {
  fs::path folder;
  std::vector<std::string> architectures;
  std::vector<Pipeline> pipelines;
};

Arguments parse(std::span<char* const> texts) {
  Arguments arguments{.folder = texts.front(), .architectures = {}, .pipelines = {}};
  for (const std::string text : texts.subspan(1)) {
    const std::size_t equals = text.find('=');
    if (text.starts_with("sm_"))
      arguments.architectures.push_back(text);
    else if (equals == std::string::npos || arguments.pipelines.empty())
      arguments.pipelines.push_back({text, {}});
    else
      arguments.pipelines.back().symbols[text.substr(0, equals)] = std::atoll(text.c_str() + equals + 1);
  }
  return arguments;
}

int fill(const Arguments& arguments) {
  Sources sources;
  for (const Pipeline& pipeline : arguments.pipelines)
    if (const Result<void> added = addPipeline(pipeline, sources); !added) {
      std::fprintf(stderr, "%s\n", added.error().message.c_str());
      return 1;
    }
  std::vector<Task> tasks;
  for (const std::string& architecture : arguments.architectures)
    for (const std::string& source : sources) tasks.push_back({&source, architecture});
  fs::remove_all(arguments.folder);
  const int numRefused = compileAll(arguments.folder, tasks);
  std::printf("%zu programs for %zu architectures\n", sources.size(), arguments.architectures.size());
  return numRefused == 0 && !tasks.empty() ? 0 : 1;
}

}  // namespace
}  // namespace fuseline::cuda

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("fill_programs FOLDER sm_90... (PIPELINE [SYMBOL=VALUE]...)...\n", stderr);
    return 2;
  }
  return fuseline::cuda::fill(fuseline::cuda::parse({argv + 1, argv + argc}));
}
