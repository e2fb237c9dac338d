// Executing plans: results, bindings, failures with the step's name, cancelling.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/executor.h"

#include "core/runtime/bindings.h"
#include "tests/support/compare.h"
#include "tests/support/pipelines.h"
#include "tests/support/result_memory.h"
#include "tests/support/traced_backend.h"
#include "tests/support/wrapped_backend.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// A device that will not record.
class RefusingBackend : public WrappedBackend {
 public:
  RefusingBackend() : WrappedBackend([](const Step&) {}) {}
  Result<std::unique_ptr<RecordedLaunches>> record(const std::function<Result<void>()>&) override {
    return Error{"no recorder is left."};
  }
};

/// A graph with its unfused plan and bindings.
struct Scene {
  Graph graph;
  Plan plan = makePlan(graph, unfused(graph));
  NamedTensors bindings = *makeBindings(graph, 1);

  Result<std::unique_ptr<Executor>> on(std::shared_ptr<Backend> backend, const ExecutorOptions& options = {}) const {
    return Executor::create(std::move(backend), graph, plan, bindings, {}, options);
  }
};

Scene mlp() { return {.graph = chain(DType::F32, {3, 4}, {linear(5, "fc1"), link("GELU", "act"), linear(2, "fc2")})}; }

Scene forwardMlp() {
  return {.graph = chain(DType::F32, {3, 4}, {linear(5, "fc1"), link("GELU", "act"), linear(2, "fc2")},
                         {.pass = ExecutionMode::Inference})};
}

const Tensor& named(const NamedTensors& tensors, const std::string& name) {
  return std::ranges::find(tensors, name, &NamedTensors::value_type::first)->second;
}

TEST(Executor, MultipliesByTheTransposedWeight) {
  Scene scene{.graph = chain(DType::F32, {2, 2}, {linear(1, "fc")}, {.pass = ExecutionMode::Inference})};
  scene.bindings = {
      {"x", Tensor::fromDoubles({DType::F32, {2, 2}}, std::vector<double>{1, 2, 3, 4})},
      {scene.graph.node(0).parameterName(0), Tensor::fromDoubles({DType::F32, {1, 2}}, std::vector<double>{10, 100})}};
  const auto executor = scene.on(makeReferenceBackend());
  ASSERT_TRUE(executor) << executor.error().message;
  ASSERT_TRUE((*executor)->run());
  const Result<Tensor> y = (*executor)->read(scene.graph.outputs().front().name);
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ(y->toDoubles(), (std::vector<double>{210, 430}));
}

TEST(Executor, GivesTheSameResultInEveryRun) {
  const Scene scene = mlp();
  const auto executor = scene.on(makeReferenceBackend());
  ASSERT_TRUE(executor) << executor.error().message;
  ASSERT_TRUE((*executor)->run());
  const std::vector<std::byte> first = (*executor)->read("grad.x")->data;
  ASSERT_TRUE((*executor)->run());
  EXPECT_EQ((*executor)->read("grad.x")->data, first);
}

TEST(Executor, LaunchesStepByStepWhereTheDeviceDoesNotRecord) {
  const Scene scene = mlp();
  const auto executor = scene.on(std::make_shared<RefusingBackend>());
  ASSERT_TRUE((*executor)->run());
  EXPECT_EQ((*executor)->launching(), "");
  const std::vector<std::byte> first = (*executor)->read("grad.x")->data;
  ASSERT_TRUE((*executor)->run());
  EXPECT_EQ((*executor)->launching(), "step by step: no recorder is left.");
  EXPECT_EQ((*executor)->read("grad.x")->data, first);
}

/// A run that ended early may not have read what a recording cannot read.
TEST(Executor, RecordsAfterTheFirstRunThatCompleted) {
  const Scene scene = mlp();
  const auto executor = scene.on(std::make_shared<RefusingBackend>());
  std::stop_source cancelled;
  cancelled.request_stop();
  EXPECT_EQ(*(*executor)->run(cancelled.get_token()), RunOutcome::Cancelled);
  EXPECT_EQ(*(*executor)->run(), RunOutcome::Completed);
  EXPECT_EQ((*executor)->launching(), "");
  EXPECT_EQ(*(*executor)->run(), RunOutcome::Completed);
  EXPECT_EQ((*executor)->launching(), "step by step: no recorder is left.");
}

TEST(Executor, DoesNotCountTheRecordingAsTimeOfARun) {
  static constexpr std::chrono::milliseconds kRecording{200};
  class SlowRecorder final : public WrappedBackend {
   public:
    SlowRecorder() : WrappedBackend([](const Step&) {}) {}
    Result<std::unique_ptr<RecordedLaunches>> record(const std::function<Result<void>()>&) override {
      std::this_thread::sleep_for(kRecording);
      return std::unique_ptr<RecordedLaunches>();
    }
  };
  const Scene scene = mlp();
  const auto executor = scene.on(std::make_shared<SlowRecorder>());
  ASSERT_TRUE((*executor)->run());
  ASSERT_TRUE((*executor)->run());
  EXPECT_GE((*executor)->runNs(), (*executor)->launchNs());
  const std::chrono::duration<double, std::nano> recordingNs = kRecording;
  EXPECT_LT((*executor)->runNs(), recordingNs.count());
}

/// Somebody else has most of its memory, and its kernels want 1 MiB beside the plan's.
class CrowdedBackend final : public WrappedBackend {
 public:
  explicit CrowdedBackend(std::int64_t freeBytes) : WrappedBackend([](const Step&) {}), m_freeBytes(freeBytes) {}
  std::optional<std::int64_t> freeBytes() const override { return m_freeBytes; }
  Result<std::unique_ptr<Kernel>> compile(const Graph& graph, const Plan& plan, const Step& step,
                                          const CompileOptions& options) override {
    Result<std::unique_ptr<Kernel>> kernel = WrappedBackend::compile(graph, plan, step, options);
    return std::unique_ptr<Kernel>(std::make_unique<Wasteful>(std::move(*kernel)));
  }

 private:
  class Wasteful final : public Kernel {
   public:
    explicit Wasteful(std::unique_ptr<Kernel> inner) : m_inner(std::move(inner)) {}
    std::size_t workspaceBytes() const override { return std::size_t{1} << 20; }
    void run(std::span<std::byte* const> operands, std::byte* workspace) override { m_inner->run(operands, workspace); }

   private:
    std::unique_ptr<Kernel> m_inner;
  };
  std::int64_t m_freeBytes;
};

TEST(Executor, CountsWhatKernelsNeedBesideThePlan) {
  const Scene scene = mlp();
  const std::int64_t needed = scene.plan.peakBytes() + (1 << 20);
  const auto fitting = scene.on(std::make_shared<CrowdedBackend>(needed));
  ASSERT_TRUE(fitting) << fitting.error().message;
  EXPECT_EQ((*fitting)->memoryBytes(), needed);
  const auto refused = scene.on(std::make_shared<CrowdedBackend>(needed - 1));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("its kernels 1 MiB, but only"), std::string::npos) << refused.error().message;
  EXPECT_EQ(refused.error().kind, ErrorKind::RunFailed);
}

TEST(Executor, LeavesItsBindingsAsTheyWere) {
  const Scene scene = mlp();
  const auto executor = scene.on(makeReferenceBackend());
  ASSERT_TRUE((*executor)->run());
  for (const auto& [name, tensor] : scene.bindings) EXPECT_EQ((*executor)->read(name)->data, tensor.data) << name;
}

TEST(Executor, NamesTheBindingThatIsMissing) {
  Scene scene = mlp();
  std::erase_if(scene.bindings, [](const auto& entry) { return entry.first == "fc1.weight"; });
  const auto executor = scene.on(makeReferenceBackend());
  ASSERT_FALSE(executor);
  EXPECT_EQ(executor.error().message, "fc1.weight: the tensor is missing; expected [5, 4] f32.");
}

TEST(Executor, NamesTheMainGradBufferThatIsMissing) {
  Scene scene{.graph = chain(DType::BF16, {3, 4}, {with(linear(5, "fc"), "accumulate_into_main_grad", true)})};
  std::erase_if(scene.bindings, [](const auto& entry) { return entry.first == "main_grad.fc.weight"; });
  const auto executor = scene.on(makeReferenceBackend());
  ASSERT_FALSE(executor);
  EXPECT_EQ(executor.error().message, "main_grad.fc.weight: the tensor is missing; expected [5, 4] f32.");
}

TEST(Executor, NamesBothSpecsOfABindingThatDoesNotFit) {
  Scene scene = mlp();
  for (auto& [name, tensor] : scene.bindings)
    if (name == "x") tensor = Tensor::zeros({DType::BF16, {3, 4}});
  const auto executor = scene.on(makeReferenceBackend());
  ASSERT_FALSE(executor);
  EXPECT_EQ(executor.error().message, "x: the given tensor is [3, 4] bf16, but the pipeline needs [3, 4] f32.");
}

std::vector<const Step*> launchedSteps(const Plan& plan) {
  std::vector<const Step*> steps;
  for (const Step& step : plan.steps)
    if (step.isLaunched()) steps.push_back(&step);
  return steps;
}

TEST(Executor, NamesTheStepWhoseKernelThrows) {
  const Scene scene = mlp();
  const auto executor = scene.on(std::make_shared<WrappedBackend>([](const Step& step) {
    if (step.name == "fc2" && step.phase == Phase::Backward) throw std::runtime_error("the device is on fire");
  }));
  ASSERT_TRUE(executor);
  const Result<RunOutcome> outcome = (*executor)->run();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "fc2 (BasicLinear, backward): the device is on fire");
  EXPECT_EQ(outcome.error().kind, ErrorKind::RunFailed);
}

/// A device whose faults surface when it is waited for, as those of GPUs do, and stay. The fault is in the launch of
/// this number.
class FaultyBackend final : public WrappedBackend {
 public:
  explicit FaultyBackend(std::size_t faulty = 1)
      : WrappedBackend([this](const Step&) { ++m_numRun; }), m_faulty(faulty) {}
  void synchronize() override {
    if (m_numRun >= m_faulty) throw std::runtime_error("gpu:0 reported a fault");
  }

 private:
  std::size_t m_faulty;
  std::size_t m_numRun = 0;
};

TEST(Executor, NamesTheStepThatAFaultOfTheFirstRunIsIn) {
  const Scene scene = mlp();
  const auto executor = scene.on(std::make_shared<FaultyBackend>(2));
  ASSERT_TRUE(executor);
  const Result<RunOutcome> outcome = (*executor)->run();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, describe(*launchedSteps(scene.plan)[1]) + ": gpu:0 reported a fault");
  EXPECT_EQ(outcome.error().kind, ErrorKind::RunFailed);
}

TEST(Executor, WaitsOnceARunWhenOneHasCompleted) {
  const Scene scene = mlp();
  const std::size_t numLaunched = launchedSteps(scene.plan).size();
  const auto executor = scene.on(std::make_shared<FaultyBackend>(numLaunched + 2));
  ASSERT_TRUE((*executor)->run());
  const Result<RunOutcome> outcome = (*executor)->run();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "gpu:0 reported a fault");
}

TEST(Executor, ReportsAFaultThatSurfacesBehindAnObservedStep) {
  const Scene scene = mlp();
  const auto executor = scene.on(std::make_shared<FaultyBackend>());
  ASSERT_TRUE(executor);
  const Result<RunOutcome> outcome = (*executor)->runObserved([](std::size_t, double, double) {});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "fc1 (BasicLinear, forward): gpu:0 reported a fault");
}

/// Names what runs as a device would that shows it in profilers.
class NamingBackend final : public WrappedBackend {
 public:
  NamingBackend() : WrappedBackend([](const Step&) {}) {}
  std::unique_ptr<Kernel> named(std::unique_ptr<Kernel> kernel, const Plan&, const Step& step) override {
    names.push_back(describe(step));
    return kernel;
  }
  std::vector<std::string> names;
};

TEST(Executor, HasTheDeviceNameTheStepsOfTransfers) {
  const Scene scene{.graph =
                        chain(DType::F32, {3, 4},
                              {linear(5, "fc1"), with(link("GELU", "act"), "cpu_offloading", true), linear(2, "fc2")})};
  std::vector<std::string> transfers;
  for (const Step& step : scene.plan.steps)
    if (step.transfer) transfers.push_back(describe(step));
  ASSERT_EQ(transfers.size(), 4U) << "there and back, each begun and waited for";
  const auto backend = std::make_shared<NamingBackend>();
  ASSERT_TRUE(scene.on(backend));
  EXPECT_EQ(backend->names, transfers);
}

TEST(Executor, StopsBetweenSteps) {
  const Scene scene = mlp();
  std::stop_source stop;
  int numRun = 0;
  const auto executor = scene.on(std::make_shared<WrappedBackend>([&](const Step&) {
    if (++numRun == 2) stop.request_stop();
  }));
  const Result<RunOutcome> outcome = (*executor)->run(stop.get_token());
  ASSERT_TRUE(outcome);
  EXPECT_EQ(*outcome, RunOutcome::Cancelled);
  EXPECT_EQ(numRun, 2);
}

TEST(Executor, ObservesEveryLaunchOnceAndInOrder) {
  const Scene scene = mlp();
  const auto executor = scene.on(makeReferenceBackend());
  std::vector<std::size_t> observed;
  ASSERT_TRUE((*executor)->runObserved([&](std::size_t step, double, double) { observed.push_back(step); }));
  EXPECT_EQ(static_cast<std::int64_t>(observed.size()), scene.plan.numLaunches());
  EXPECT_TRUE(std::ranges::is_sorted(observed));
}

TEST(Executor, KnowsTheNearestNameOfATensor) {
  const Scene scene = mlp();
  const auto executor = scene.on(makeReferenceBackend());
  const Result<Tensor> tensor = (*executor)->read("fc1.wieght");
  ASSERT_FALSE(tensor);
  EXPECT_NE(tensor.error().message.find("fc1.weight"), std::string::npos);
}

TEST(Executor, RunsATensorWithoutElements) {
  const Scene scene{.graph = chain(DType::F32, {0, 4}, {linear(5, "fc1"), link("GELU", "act")})};
  const auto executor = scene.on(makeReferenceBackend());
  ASSERT_TRUE(executor) << executor.error().message;
  ASSERT_TRUE((*executor)->run());
  const std::vector<double> gradient = (*executor)->read("grad.fc1.weight")->toDoubles();
  EXPECT_EQ(gradient, std::vector<double>(20, 0.0));
}

/// Three groups of the six rows of x.
Scene experts() {
  return {.graph =
              chain(DType::F32, {6, 4}, {with(link("GroupedLinear", "experts"), "out_features", std::int64_t{2})})};
}

Tensor integers(const std::vector<double>& values) {
  return Tensor::fromDoubles({DType::I64, {static_cast<std::int64_t>(values.size())}}, values);
}

TEST(Bindings, DrawCountsAsTheirReaderSays) {
  const Graph graph = experts().graph;
  double numRows = 0.0;
  for (const double size : named(*makeBindings(graph, 7), "experts_split_sizes").toDoubles()) {
    EXPECT_GE(size, 0.0);
    numRows += size;
  }
  EXPECT_EQ(numRows, 6.0);
  EXPECT_EQ(named(*makeBindings(graph, 7), "experts_split_sizes").data,
            named(*makeBindings(graph, 7), "experts_split_sizes").data);
}

TEST(Bindings, TakeCountsThatAreGiven) {
  const NamedTensors bindings = *makeBindings(experts().graph, 1, {{"experts_split_sizes", integers({1, 2, 3})}});
  EXPECT_EQ(named(bindings, "experts_split_sizes").toDoubles(), (std::vector<double>{1, 2, 3}));
}

TEST(Bindings, AreZeroForCountsThatNoOpReads) {
  GraphBuilder builder;
  builder.addOutput("n", builder.addInput("n", {DType::I64, {3}}));
  const Graph graph = std::move(builder).finish(ExecutionMode::Training);
  const NamedTensors bindings = *makeBindings(graph, 1);
  ASSERT_EQ(bindings.size(), 1U);  // and no gradient of the output
  EXPECT_EQ(bindings.front().second.toDoubles(), (std::vector<double>{0, 0, 0}));
}

TEST(Executor, NamesTheStepWhoseCountsAreWrong) {
  Scene scene = experts();
  scene.bindings = *makeBindings(scene.graph, 1, {{"experts_split_sizes", integers({1, 2, 4})}});
  const auto executor = scene.on(makeReferenceBackend());
  ASSERT_TRUE(executor) << executor.error().message;
  const Result<RunOutcome> outcome = (*executor)->run();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(
      outcome.error().message,
      "experts (GroupedLinear, forward): split_sizes is [1, 2, 4], but x has 6 rows; the sizes must add up to 6.");
  EXPECT_EQ(outcome.error().kind, ErrorKind::RunFailed);
}

TEST(CapabilitiesOf, AsksTheBackend) {
  const Graph graph = chain(DType::F32, {2, 2}, {linear(2, "fc")});
  const Capabilities capabilities = capabilitiesOf(makeReferenceBackend());
  const std::vector<NodeId> members = {0};
  EXPECT_TRUE(capabilities({graph, "anything", Phase::Forward, members}));
}

TEST(Bindings, CoverInputsParametersAndOutputGradients) {
  const Scene scene = mlp();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : scene.bindings) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "fc1.weight", "fc2.weight", "grad.y"}));
}

TEST(Bindings, DependOnSeedAndNameOnly) {
  const NamedTensors small = *makeBindings(mlp().graph, 7);
  const Graph longer = chain(DType::F32, {3, 4}, {link("Identity", "first"), linear(5, "fc1")});
  const NamedTensors other = *makeBindings(longer, 7);
  EXPECT_EQ(named(small, "fc1.weight").data, named(other, "fc1.weight").data);
  EXPECT_NE(named(small, "fc1.weight").data, named(*makeBindings(longer, 8), "fc1.weight").data);
}

TEST(Bindings, TakeWhatIsGiven) {
  const Tensor x = Tensor::fromDoubles({DType::F32, {3, 4}}, std::vector<double>(12, 0.5));
  const NamedTensors bindings = *makeBindings(mlp().graph, 1, {{"x", x}});
  EXPECT_EQ(named(bindings, "x").data, x.data);
}

TEST(Bindings, RefuseANameThatThePipelineDoesNotTake) {
  const auto bindings = makeBindings(mlp().graph, 1, {{"fc1.weigth", Tensor::zeros({DType::F32, {1}})}});
  ASSERT_FALSE(bindings);
  EXPECT_EQ(bindings.error().message, "fc1.weigth: the pipeline has no tensor of this name; did you mean fc1.weight?");
}

TEST(Bindings, RefuseAnotherShape) {
  const auto bindings = makeBindings(mlp().graph, 1, {{"x", Tensor::zeros({DType::F32, {4, 3}})}});
  ASSERT_FALSE(bindings);
  EXPECT_EQ(bindings.error().message, "x: the given tensor is [4, 3] f32, but the pipeline needs [3, 4] f32.");
}

// Results in memory of the caller's.

Result<std::unique_ptr<Executor>> withBuffers(const Scene& scene, const std::vector<ResultBuffer>& buffers) {
  return Executor::create(makeReferenceBackend(), scene.graph, scene.plan, scene.bindings, buffers);
}

std::string refusalOf(const Scene& scene, const std::vector<ResultBuffer>& buffers) {
  const auto executor = withBuffers(scene, buffers);
  return executor ? "" : executor.error().message;
}

TEST(ResultBuffers, ReceiveWhatThePlanWouldKeepItself) {
  const Scene scene = mlp();
  const auto plain = scene.on(makeReferenceBackend());
  ASSERT_TRUE((*plain)->run());
  for (const char* name : {"y", "grad.x", "grad.fc1.weight"}) {
    const Tensor expected = *(*plain)->read(name);
    ResultMemory buffer(expected.spec);
    const auto executor = withBuffers(scene, {buffer.forTensor(name)});
    ASSERT_TRUE(executor) << executor.error().message;
    ASSERT_TRUE((*executor)->run());
    EXPECT_EQ(buffer.values(), expected.toDoubles()) << name;
    EXPECT_EQ((*executor)->read(name)->data, expected.data) << name;
  }
}

TEST(ResultBuffers, AreTheResultItselfAndNoCopy) {
  // 2 * 3 is in the buffer without being read out; what is then written to the buffer is what the plan holds.
  Scene scene{.graph = chain(DType::F32, {1, 1}, {linear(1, "fc")}, {.pass = ExecutionMode::Inference})};
  scene.bindings = {{"x", Tensor::fromDoubles({DType::F32, {1, 1}}, std::vector<double>{2})},
                    {"fc.weight", Tensor::fromDoubles({DType::F32, {1, 1}}, std::vector<double>{3})}};
  ResultMemory y({DType::F32, {1, 1}});
  const auto executor = withBuffers(scene, {y.forTensor("y")});
  ASSERT_TRUE(executor) << executor.error().message;
  ASSERT_TRUE((*executor)->run());
  EXPECT_EQ(y.values(), std::vector<double>{6});
  const float seven = 7.0F;
  std::memcpy(y.data(), &seven, sizeof(seven));
  EXPECT_EQ((*executor)->read("y")->toDoubles(), std::vector<double>{7});
}

TEST(ResultBuffers, MayHoldAnOutputThatIsTheInputItself) {
  Scene scene{.graph = chain(DType::F32, {2}, {link("Identity")}, {.pass = ExecutionMode::Inference})};
  scene.bindings = {{"x", Tensor::fromDoubles({DType::F32, {2}}, std::vector<double>{4, 9})}};
  ResultMemory y({DType::F32, {2}});
  const auto executor = withBuffers(scene, {y.forTensor("y")});
  ASSERT_TRUE(executor) << executor.error().message;
  ASSERT_TRUE((*executor)->run());
  EXPECT_EQ(y.values(), (std::vector<double>{4, 9}));
}

TEST(ResultBuffers, AreAddedToWhereTheGradientAccumulates) {
  Scene scene{.graph = chain(DType::F32, {1, 1}, {with(linear(1, "fc"), "accumulate_into_main_grad", true)})};
  const auto one = [](double value) { return Tensor::fromDoubles({DType::F32, {1, 1}}, std::vector<double>{value}); };
  scene.bindings = {{"x", one(2)}, {"fc.weight", one(3)}, {"main_grad.fc.weight", one(100)}, {"grad.y", one(5)}};
  ResultMemory gradient({DType::F32, {1, 1}});
  const auto executor = withBuffers(scene, {gradient.forTensor("main_grad.fc.weight")});
  ASSERT_TRUE(executor) << executor.error().message;
  ASSERT_TRUE((*executor)->run());
  EXPECT_EQ(gradient.values(), std::vector<double>{100 + 2 * 5});
}

TEST(ResultBuffers, MustFitTheResult) {
  const Scene scene = mlp();
  ResultMemory narrow({DType::F32, {3, 1}});
  EXPECT_EQ(refusalOf(scene, {narrow.forTensor("y")}),
            "y: the given buffer is [3, 1] f32, but the result is [3, 2] f32.");
  ResultMemory half({DType::BF16, {3, 4}});
  EXPECT_EQ(refusalOf(scene, {half.forTensor("grad.x")}),
            "grad.x: the given buffer is [3, 4] bf16, but the result is [3, 4] f32.");
}

TEST(ResultBuffers, AreForResultsOnly) {
  const Scene scene = mlp();
  ResultMemory x({DType::F32, {3, 4}});
  EXPECT_EQ(refusalOf(scene, {x.forTensor("x")}),
            "x: expected an output, or a gradient of an input or a parameter; only these can have a buffer.");
  EXPECT_EQ(refusalOf(scene, {x.forTensor("grad.xx")}),
            "grad.xx: the plan has no tensor of this name; the nearest is \"grad.x\".");
}

TEST(ResultBuffers, AreOneForEachMemory) {
  const Scene scene = mlp();
  ResultMemory y({DType::F32, {3, 2}});
  EXPECT_EQ(refusalOf(scene, {y.forTensor("y"), y.forTensor("y")}),
            "y: two buffers were given for the same memory. Give one.");
}

TEST(ResultBuffers, BeginWhereATensorOfThePlanCould) {
  const Scene scene = mlp();
  ResultMemory y({DType::F32, {3, 2}});
  const std::string moved = refusalOf(scene, {{"y", y.spec(), y.data() + 4}});
  EXPECT_TRUE(moved.starts_with("y: the given buffer begins at address ")) << moved;
  EXPECT_NE(refusalOf(scene, {{"y", y.spec(), nullptr}}), "");
}

TEST(ExecutorClock, IsTheHostsWhereTheDeviceHasNone) {
  const Scene scene = mlp();
  for (const StepClock wanted : {StepClock::Host, StepClock::Events, StepClock::Trace})
    EXPECT_EQ((*scene.on(makeReferenceBackend(), {.clock = wanted}))->clock(), StepClock::Host);
}

TEST(ExecutorClock, FallsBackToEventsAndSaysWhy) {
  const Scene scene = forwardMlp();
  const auto backend = std::make_shared<TimedBackend>(
      []() -> Result<std::unique_ptr<DeviceTrace>> { return Error{"another tool traces this process."}; });
  const auto executor = std::move(*scene.on(backend, {.clock = StepClock::Trace}));
  EXPECT_EQ(executor->clock(), StepClock::Events);
  EXPECT_EQ(executor->clockNote(), "another tool traces this process.");
  std::vector<double> stepNs;
  std::vector<double> startNs;
  ASSERT_TRUE(executor->runObserved([&](std::size_t, double start, double durationNs) {
    startNs.push_back(start);
    stepNs.push_back(durationNs);
  }));
  EXPECT_EQ(stepNs, (std::vector<double>{1.0, 2.0, 3.0}));
  EXPECT_EQ(startNs, (std::vector<double>{0.0, 1.0, 3.0}));
  EXPECT_EQ((*scene.on(backend))->clockNote(), "") << "nobody asked for a trace";
  ASSERT_EQ(executor->launches().size(), 3u);
  double hostNs = 0.0;
  for (const TimelineSpan& launch : executor->launches()) {
    EXPECT_EQ(launch.step, static_cast<int>(&launch - executor->launches().data()));
    EXPECT_GE(launch.startNs, hostNs) << "one after the other";
    hostNs = launch.startNs + launch.durationNs;
  }
  EXPECT_EQ(executor->observedNs(), 1.0 + 2.0 + 3.0);
  ASSERT_TRUE(executor->run());
  EXPECT_EQ(executor->launches().size(), 3u) << "of the run that was observed";
}

/// Writes down what its clock and its launches are asked for.
class LoggedBackend final : public WrappedBackend {
 public:
  explicit LoggedBackend(bool records)
      : WrappedBackend([this](const Step&) { log.emplace_back("step"); }), m_records(records) {}
  std::unique_ptr<DeviceClock> makeClock(std::size_t) override { return std::make_unique<LoggedClock>(log); }
  Result<std::unique_ptr<RecordedLaunches>> record(const std::function<Result<void>()>&) override {
    return m_records ? std::unique_ptr<RecordedLaunches>(std::make_unique<Replay>(log)) : nullptr;
  }

  std::vector<std::string> log;

 private:
  class LoggedClock final : public DeviceClock {
   public:
    explicit LoggedClock(std::vector<std::string>& log) : m_log(log) {}
    void mark(std::size_t) override { m_log.emplace_back("mark"); }
    void markTransfers(std::size_t) override { m_log.emplace_back("transfers"); }
    void takeHeadStart(std::chrono::nanoseconds) override { m_log.emplace_back("ahead"); }
    double nanosecondsBetween(std::size_t, std::size_t to) override { return 100.0 * static_cast<double>(to); }

   private:
    std::vector<std::string>& m_log;
  };
  class Replay final : public RecordedLaunches {
   public:
    explicit Replay(std::vector<std::string>& log) : m_log(log) {}
    void launch() override { m_log.emplace_back("replay"); }

   private:
    std::vector<std::string>& m_log;
  };
  bool m_records;
};

using Log = std::vector<std::string>;

/// The host would else be in every time, most in those of short steps.
TEST(ExecutorClock, GetsAheadOfADeviceThatReplays) {
  const Scene scene = forwardMlp();
  const auto backend = std::make_shared<LoggedBackend>(true);
  const auto executor = std::move(*scene.on(backend));
  ASSERT_TRUE(executor->run());
  EXPECT_EQ(std::exchange(backend->log, {}), (Log{"step", "step", "step"})) << "it loads code, on the host's clock";
  EXPECT_GT(executor->runNs(), 200.0);
  ASSERT_TRUE(executor->run());
  EXPECT_EQ(std::exchange(backend->log, {}), (Log{"ahead", "mark", "replay", "mark", "transfers"}));
  EXPECT_EQ(executor->runNs(), 200.0);
  ASSERT_TRUE(executor->runObserved([](std::size_t, double, double) {}));
  EXPECT_EQ(backend->log, (Log{"ahead", "mark", "step", "mark", "step", "mark", "step", "mark"}));
  EXPECT_TRUE(executor->launches().empty()) << "no step waited for its launch";
}

/// Too few to be recorded; a plan of a few more, which it is compared with, is.
TEST(ExecutorClock, GetsAheadOfFewLaunches) {
  const Scene scene{.graph = chain(DType::F32, {3, 4}, {link("GELU", "act")}, {.pass = ExecutionMode::Inference})};
  const auto backend = std::make_shared<LoggedBackend>(true);
  const auto executor = std::move(*scene.on(backend));
  ASSERT_TRUE(executor->run());
  backend->log.clear();
  ASSERT_TRUE(executor->run());
  EXPECT_EQ(std::exchange(backend->log, {}), (Log{"ahead", "mark", "step", "mark", "transfers"}));
  ASSERT_TRUE(executor->runObserved([](std::size_t, double, double) {}));
  EXPECT_EQ(std::exchange(backend->log, {}), (Log{"ahead", "mark", "step", "mark"}));
  const auto stepwise = std::move(*scene.on(backend, {.replaysLaunches = false}));
  for (int run = 0; run < 2; ++run) ASSERT_TRUE(stepwise->run());
  EXPECT_EQ(std::ranges::count(backend->log, "ahead"), 0);
}

/// Then the host is a part of what is measured.
TEST(ExecutorClock, DoesNotGetAheadOfADeviceThatIsLaunchedStepByStep) {
  const Scene scene = forwardMlp();
  const auto backend = std::make_shared<LoggedBackend>(false);
  const auto executor = std::move(*scene.on(backend));
  for (int run = 0; run < 2; ++run) {
    backend->log.clear();
    ASSERT_TRUE(executor->run());
  }
  EXPECT_EQ(std::exchange(backend->log, {}), (Log{"mark", "step", "step", "step", "mark", "transfers"}));
  ASSERT_TRUE(executor->runObserved([](std::size_t, double, double) {}));
  EXPECT_EQ(backend->log, (Log{"mark", "step", "mark", "step", "mark", "step", "mark"}));
  EXPECT_EQ(executor->launches().size(), 3u);
}

TEST(ExecutorClock, IsTheHostsAloneWhereThatIsWanted) {
  const Scene scene = forwardMlp();
  const auto backend = std::make_shared<LoggedBackend>(true);
  const auto executor = std::move(*scene.on(backend, {.clock = StepClock::Host}));
  for (int run = 0; run < 2; ++run) ASSERT_TRUE(executor->run());
  ASSERT_TRUE(executor->runObserved([](std::size_t, double, double) {}));
  EXPECT_EQ(backend->log, (Log{"step", "step", "step", "replay", "step", "step", "step"}));
  EXPECT_FALSE(executor->hasDeviceClock());
}

/// By the clock of the test a launch i takes i + 1 ns, and the last moment is n + 1 + i for the transfer that it
/// begins.
TEST(ExecutorClock, SeesWhenTransfersRan) {
  std::vector<Link> links = {linear(5, "fc1"), link("GELU", "act"), linear(2, "fc2")};
  for (Link& item : links) item = with(std::move(item), "cpu_offloading", true);
  const Scene scene{.graph = chain(DType::F32, {3, 4}, links)};
  const auto executor = std::move(*scene.on(std::make_shared<ClockedBackend>()));
  std::vector<double> startsNs;
  ASSERT_TRUE(executor->runObserved([&](std::size_t, double startNs, double) { startsNs.push_back(startNs); }));
  const auto numLaunches = static_cast<double>(startsNs.size());
  double lastEndNs = 0.0;
  std::size_t numTransfers = 0;
  std::size_t launch = 0;
  for (std::size_t i = 0; i < scene.plan.steps.size(); ++i) {
    const Step& step = scene.plan.steps[i];
    if (!step.isLaunched()) continue;
    const double endNs = numLaunches + 1 + static_cast<double>(launch);
    const double startNs = std::max(startsNs[launch++], lastEndNs);
    if (!step.transfer || step.transfer->isWait()) continue;
    ASSERT_LT(numTransfers, executor->activities().size());
    const DeviceActivity& copy = executor->activities()[numTransfers++];
    EXPECT_EQ(copy.step, i);
    EXPECT_EQ(copy.name, step.transfer->isOffload() ? "copy, device to host" : "copy, host to device");
    EXPECT_EQ(copy.startNs, startNs);
    EXPECT_EQ(copy.durationNs, std::max(endNs - startNs, 0.0));
    lastEndNs = std::max(lastEndNs, endNs);
  }
  EXPECT_GT(numTransfers, 0u);
  EXPECT_EQ(executor->activities().size(), numTransfers);
}

TEST(ExecutorClock, NotesNoLaunchesWhereTheHostIsTheDevice) {
  const Scene scene = forwardMlp();
  const auto executor = std::move(*scene.on(makeReferenceBackend()));
  ASSERT_TRUE(executor->runObserved([](std::size_t, double, double) {}));
  EXPECT_TRUE(executor->launches().empty());
}

TEST(ExecutorClock, AddsUpWhatATraceSawOfEachStep) {
  const Scene scene = forwardMlp();
  const auto executor = std::move(*scene.on(tracedBackend(), {.clock = StepClock::Trace}));
  ASSERT_EQ(executor->clock(), StepClock::Trace);
  ASSERT_TRUE(executor->run());
  EXPECT_TRUE(executor->activities().empty());
  std::vector<double> stepNs;
  ASSERT_TRUE(executor->runObserved([&](std::size_t, double, double durationNs) { stepNs.push_back(durationNs); }));
  EXPECT_EQ(stepNs, (std::vector<double>{11.0, 11.0, 11.0}));
  EXPECT_EQ(executor->activities().size(), 7u);
  EXPECT_EQ(executor->launches().size(), 3u);
  EXPECT_EQ(executor->activities().front().step, DeviceActivity::kNoStep);
}

TEST(ExecutorClock, RunsAgainWhereATraceLostSomething) {
  const Scene scene = forwardMlp();
  const auto executor = std::move(*scene.on(tracedBackend({.numLosses = 2}), {.clock = StepClock::Trace}));
  std::vector<double> stepNs;
  ASSERT_TRUE(executor->runObserved([&](std::size_t, double, double durationNs) { stepNs.push_back(durationNs); }));
  EXPECT_EQ(stepNs, (std::vector<double>{11.0, 11.0, 11.0}));
}

TEST(ExecutorClock, TimesByEventsWhereATraceLosesSomethingEveryTime) {
  const Scene scene = forwardMlp();
  const auto executor = std::move(*scene.on(tracedBackend({.numLosses = kAlways}), {.clock = StepClock::Trace}));
  std::vector<double> stepNs;
  const Result<RunOutcome> ran =
      executor->runObserved([&](std::size_t, double, double durationNs) { stepNs.push_back(durationNs); });
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(stepNs, (std::vector<double>{1.0, 2.0, 3.0}));
  EXPECT_EQ(executor->clock(), StepClock::Events);
  EXPECT_EQ(executor->clockNote(), "records were lost.");
  EXPECT_TRUE(executor->activities().empty());
}

TEST(ExecutorClock, TimesByEventsWhereATraceCannotStart) {
  const Scene scene = forwardMlp();
  const auto executor = std::move(*scene.on(tracedBackend({.numStarts = 0}), {.clock = StepClock::Trace}));
  int numSteps = 0;
  ASSERT_TRUE(executor->runObserved([&](std::size_t, double, double) { ++numSteps; }));
  EXPECT_EQ(numSteps, 3);
  EXPECT_EQ(executor->clock(), StepClock::Events);
  EXPECT_EQ(executor->clockNote(), "the trace does not start.");
}

TEST(ExecutorClock, DoesNotMissWhatACancelledRunDidNotDo) {
  const Scene scene = forwardMlp();
  const auto executor = std::move(*scene.on(tracedBackend({.numLosses = kAlways}), {.clock = StepClock::Trace}));
  std::stop_source cancel;
  cancel.request_stop();
  const Result<RunOutcome> ran = executor->runObserved([](std::size_t, double, double) {}, cancel.get_token());
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(*ran, RunOutcome::Cancelled);
}

TEST(ExecutorClock, MissesNoRecordsWhereAllTensorsAreEmpty) {
  const Scene scene{
      .graph = chain(DType::F32, {0, 4}, {linear(5, "fc"), link("GELU", "act")}, {.pass = ExecutionMode::Inference})};
  const auto executor = std::move(*scene.on(tracedBackend({.numLosses = kAlways}), {.clock = StepClock::Trace}));
  std::vector<double> stepNs;
  const Result<RunOutcome> ran =
      executor->runObserved([&](std::size_t, double, double durationNs) { stepNs.push_back(durationNs); });
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(stepNs, (std::vector<double>{0.0, 0.0}));
}

TEST(ExecutorClock, TracesNothingWhereNothingIsLaunched) {
  const Scene scene{.graph = chain(DType::F32, {3, 4}, {link("Identity")}, {.pass = ExecutionMode::Inference})};
  const auto executor = std::move(*scene.on(tracedBackend({.numLosses = kAlways}), {.clock = StepClock::Trace}));
  const Result<RunOutcome> ran =
      executor->runObserved([](std::size_t, double, double) { FAIL() << "a view was launched"; });
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_TRUE(executor->activities().empty());
}

}  // namespace
}  // namespace fuseline
