// The loops of TransformerEngine's tests under its recipes: interleaved training and inference steps,
// with scales that live longer than a step; and a training that continues from a file.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/numerics/random.h"
#include "core/plan/plan.h"
#include "core/quant/apply_recipe.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "core/tensor/safetensors.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/compare.h"
#include "tests/support/pipelines.h"
#include "tests/support/recipes.h"
#include "tests/support/run_plan.h"
#include "tests/support/temporary_folder.h"

#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

using States = std::map<std::string, Tensor>;

/// Runs the steps of one linear op without a bias, and keeps the recipe's states from one to the next.
class Loop {
 public:
  Loop(const TeRecipe& recipe, DType dtype, std::int64_t size)
      : m_recipe(recipe.make()), m_dtype(dtype), m_size(size) {}

  /// The values of x, W and dy are uniform in [0, 1), others in every step.
  NamedTensors dataOf(ExecutionMode pass, int step) const {
    NamedTensors data = *makeBindings(plain(pass), 1);
    for (auto& [name, tensor] : data) {
      std::vector<double> values(static_cast<std::size_t>(tensor.spec.numElements()));
      RandomStream(1234, fmt::format("{} {}", name, step)).uniforms(0, values);
      tensor = Tensor::fromDoubles(tensor.spec, values);
    }
    return data;
  }

  /// Outputs and gradients.
  RunResults run(ExecutionMode pass, NamedTensors data) {
    const Graph graph = under(m_recipe, plain(pass));
    const Plan plan = makePlan(graph, unfused(graph));
    for (const PlanTensor& tensor : plan.tensors)
      if (tensor.role == TensorRole::QuantizerState && states.contains(tensor.name))
        data.emplace_back(tensor.name, states.at(tensor.name));
    const auto executor = *Executor::create(cpu::makeCpuBackend(), graph, plan, *makeBindings(graph, 1, data));
    EXPECT_TRUE(executor->run().hasValue());
    RunResults results;
    for (const PlanTensor& tensor : plan.tensors) {
      if (tensor.role == TensorRole::QuantizerState) states.insert_or_assign(tensor.name, *executor->read(tensor.name));
      if (isResult(tensor.role)) results[tensor.name] = executor->read(tensor.name)->toDoubles();
    }
    return results;
  }

  /// In high precision, by the formulas.
  RunResults expected(ExecutionMode pass, const NamedTensors& data) const {
    const Graph graph = plain(pass);
    return runPlan(graph, unfused(graph), makeReferenceBackend(), 1, data);
  }

  States states;

 private:
  Graph plain(ExecutionMode pass) const {
    return chain(m_dtype, {m_size, m_size}, {linear(m_size, "linear")}, {.pass = pass});
  }

  Recipe m_recipe;
  DType m_dtype;
  std::int64_t m_size;
};

class TeRecipeLoops : public ::testing::TestWithParam<TeRecipe> {
 protected:
  /// 32 as in TransformerEngine's tests, where that fits the blocks.
  static std::int64_t size() { return GetParam().name == "fp8_block" ? 128 : 32; }

  static void expectSteps(const std::vector<ExecutionMode>& stages) {
    constexpr int kSteps = 3;
    Loop loop(GetParam(), DType::BF16, size());
    int step = 0;
    for (const ExecutionMode pass : stages)
      for (int i = 0; i < kSteps; ++i, ++step) {
        const NamedTensors data = loop.dataOf(pass, step);
        const RunResults actual = loop.run(pass, data);
        for (const auto& [name, values] : loop.expected(pass, data))
          EXPECT_TRUE(allClose(actual.at(name), values, GetParam().tolerance)) << name << " of step " << step;
      }
  }
};

TEST_P(TeRecipeLoops, TrainInferTrainInfer) {
  expectSteps({ExecutionMode::Training, ExecutionMode::Inference, ExecutionMode::Training, ExecutionMode::Inference});
}

TEST_P(TeRecipeLoops, InferTrainInferTrain) {
  expectSteps({ExecutionMode::Inference, ExecutionMode::Training, ExecutionMode::Inference, ExecutionMode::Training});
}

TEST_P(TeRecipeLoops, Infer) { expectSteps({ExecutionMode::Inference}); }

// ---- checkpoints

constexpr double kLearningRate = 0.25;

/// One step of a training, and the weight after it.
struct Trained {
  RunResults results;
  Tensor weight;
};

Trained trainStep(Loop& loop, const Tensor& weight, int step) {
  NamedTensors data = loop.dataOf(ExecutionMode::Training, step);
  for (auto& [name, tensor] : data)
    if (name == "linear.weight") tensor = weight;
  Trained trained{.results = loop.run(ExecutionMode::Training, data), .weight = weight};
  std::vector<double> values = weight.toDoubles();
  const std::vector<double>& gradient = trained.results.at("grad.linear.weight");
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= kLearningRate * gradient[i];
  trained.weight = Tensor::fromDoubles(weight.spec, values);
  return trained;
}

/// Steps 2 and 3, the last two of four.
std::vector<Trained> lastSteps(Loop& loop, const Tensor& weight) {
  std::vector<Trained> steps = {trainStep(loop, weight, 2)};
  steps.push_back(trainStep(loop, steps.front().weight, 3));
  return steps;
}

void writeCheckpoint(const std::filesystem::path& path, const Loop& loop, const Tensor& weight) {
  NamedTensors tensors(loop.states.begin(), loop.states.end());
  tensors.emplace_back("linear.weight", weight);
  ASSERT_TRUE(writeSafetensors(path, tensors).hasValue());
}

/// The weight; the states go to the loop.
Tensor readCheckpoint(const std::filesystem::path& path, Loop& loop) {
  const NamedTensors tensors = *readSafetensors(path);
  for (const auto& [name, tensor] : tensors)
    if (name != "linear.weight") loop.states.insert_or_assign(name, tensor);
  return find(tensors, "linear.weight");
}

/// As TransformerEngine's test of checkpointing linear: two steps, a file, and two more, bit for bit the same from the
/// file.
TEST_P(TeRecipeLoops, GoOnFromACheckpointBitForBit) {
  const DType dtype = GetParam().isBf16Only ? DType::BF16 : DType::F32;
  const TemporaryFolder folder;
  Loop first(GetParam(), dtype, size());
  Tensor weight = find(first.dataOf(ExecutionMode::Training, 0), "linear.weight");
  for (int step = 0; step < 2; ++step) weight = trainStep(first, weight, step).weight;
  writeCheckpoint(folder / "checkpoint.safetensors", first, weight);
  Loop second(GetParam(), dtype, size());
  const Tensor restored = readCheckpoint(folder / "checkpoint.safetensors", second);
  const std::vector<Trained> expected = lastSteps(first, weight);
  const std::vector<Trained> actual = lastSteps(second, restored);
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_EQ(actual[step].results, expected[step].results) << step;
    EXPECT_EQ(actual[step].weight.data, expected[step].weight.data) << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Te, TeRecipeLoops, ::testing::ValuesIn(teRecipes()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace fuseline
