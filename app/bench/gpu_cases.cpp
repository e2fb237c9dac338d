// The sizes are those of published models; the default is what says most in a few minutes.
// SPDX-License-Identifier: Apache-2.0
#include "app/bench/gpu_cases.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

using Names = std::vector<std::string>;
using Passes = std::vector<ExecutionMode>;

const Names kRecipes = {
    "none", "DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling", "MXFP8BlockScaling", "NVFP4BlockScaling"};
const Passes kPasses = {ExecutionMode::Inference, ExecutionMode::Training};

/// Hidden and inner sizes of GPT-3 1.3B and 175B, Llama 3 8B and 70B, and of the experts of DeepSeek-V2-Lite, of which
/// a GPU may have eight. "decode" is a step of generation, where the host decides.
const GpuSize k1B{"1.3B", 2048, 2048, 8192};
const GpuSize k8BDecode{"8B_decode", 16, 4096, 14336};
const GpuSize k8B{"8B", 2048, 4096, 14336};
const GpuSize k8BLong{"8B_long", 8192, 4096, 14336};
const GpuSize k70B{"70B", 2048, 8192, 28672};
const GpuSize k175B{"175B", 2048, 12288, 49152};
const GpuSize kExperts{"experts", 8192, 2048, 1408, 8};
const GpuSize kQuick{"quick", 128, 256, 512, 4};

struct Group {
  std::string pipeline;
  std::vector<GpuSize> sizes;
  Names recipes;
  Passes passes;
};

const std::vector<Group>& allGroups() {
  static const std::vector<Group> groups = {
      {"gpt-mlp", {k1B, k175B}, kRecipes, kPasses},
      {"llama-mlp", {k8BDecode, k8B, k8BLong, k70B}, kRecipes, kPasses},
      {"transformer-stack", {k8BDecode, k8B, k8BLong}, kRecipes, kPasses},
      {"residual-norm", {k8BDecode, k8B, k8BLong}, kRecipes, kPasses},
      {"grouped-mlp", {kExperts}, kRecipes, kPasses},
      {"elementwise-chain", {k8BDecode, k8B, k8BLong}, {"none"}, kPasses},  // it has no products to quantize
  };
  return groups;
}

const std::vector<Group>& defaultGroups() {
  static const std::vector<Group> groups = {
      {"gpt-mlp", {k1B}, kRecipes, kPasses},
      {"llama-mlp", {k8B}, kRecipes, kPasses},
      {"llama-mlp", {k8BDecode}, {"none"}, {ExecutionMode::Inference}},
      {"transformer-stack", {k8B}, {"none", "DelayedScaling"}, {ExecutionMode::Training}},
      {"residual-norm", {k8B}, {"none", "DelayedScaling"}, {ExecutionMode::Training}},
      {"grouped-mlp", {kExperts}, {"none", "DelayedScaling", "Float8BlockScaling"}, {ExecutionMode::Training}},
      {"elementwise-chain", {k8BLong}, {"none"}, kPasses},
  };
  return groups;
}

std::vector<GpuCase> casesOf(const std::vector<Group>& groups) {
  std::vector<GpuCase> cases;
  for (const Group& group : groups)
    for (const GpuSize& size : group.sizes)
      for (const std::string& recipe : group.recipes)
        for (const ExecutionMode pass : group.passes) cases.push_back({group.pipeline, size, recipe, pass});
  return cases;
}

}  // namespace

std::string GpuCase::name() const { return fmt::format("{}_{}_{}_{}", pipeline, size.name, recipe, nameOf(pass)); }

std::vector<GpuCase> gpuCases() {
  std::vector<GpuCase> cases = casesOf(allGroups());
  for (const GpuCase& chosen : casesOf(defaultGroups()))
    std::ranges::find(cases, chosen.name(), &GpuCase::name)->isDefault = true;
  return cases;
}

std::vector<GpuCase> quickGpuCases() {
  std::vector<Group> groups = allGroups();
  for (Group& group : groups) group.sizes = {kQuick};
  std::vector<GpuCase> cases = casesOf(groups);
  for (GpuCase& each : cases) each.isDefault = true;
  return cases;
}

}  // namespace fuseline::cli
