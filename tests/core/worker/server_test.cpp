// The worker as its caller sees it: lines in, lines out.
// SPDX-License-Identifier: Apache-2.0
#include "core/worker/server.h"

#include "core/profile/run_comparison.h"

#include "core/tensor/safetensors.h"
#include "core/worker/protocol.h"
#include "tests/support/one_backend.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wrapped_backend.h"

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <streambuf>
#include <thread>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

constexpr const char* kPipeline = R"({
  "format": "fuseline-pipeline",
  "formatVersion": {"major": 1, "minor": 0},
  "symbols": {"M": 4},
  "pipeline": {
    "inputs": [{"id": "x", "dtype": "f32", "shape": ["M", 8]}],
    "ops": [
      {"id": "fc", "op": "Linear", "attributes": {"in_features": 8, "out_features": 8, "bias": true}},
      {"id": "act", "op": "GELU", "attributes": {}}
    ],
    "wires": [["x", "fc.x"], ["fc.y", "act.x"]],
    "outputs": [{"id": "y", "from": "act.y"}]
  }
})";

std::string runLine(int id, int iterations, const std::string& device = "reference",
                    const std::string& pipeline = kPipeline) {
  RunRequest request{.id = id, .pipelineText = pipeline, .pipelineName = "mlp"};
  request.settings.device = device;
  request.settings.iterations = iterations;
  return encode(WorkerRequest(request)) + "\n";
}

/// Serves a whole conversation and returns the events.
std::vector<WorkerEvent> serve(const std::string& lines) {
  std::istringstream input(lines);
  std::ostringstream output;
  EXPECT_EQ(serveWorker(input, output, testing::OneBackend(makeReferenceBackend())), 0);
  std::vector<WorkerEvent> events;
  std::istringstream answers(output.str());
  for (std::string line; std::getline(answers, line);) {
    Result<WorkerEvent> event = decodeEvent(line);
    if (event)
      events.push_back(std::move(*event));
    else
      ADD_FAILURE() << line << ": " << event.error().message;
  }
  return events;
}

template <class Event>
std::vector<Event> only(const std::vector<WorkerEvent>& events) {
  std::vector<Event> found;
  for (const WorkerEvent& event : events)
    if (const Event* match = std::get_if<Event>(&event)) found.push_back(*match);
  return found;
}

TEST(Worker, ComparesThePipelineWithFloat32) {
  RunRequest request{.id = 7, .pipelineText = kPipeline, .pipelineName = "mlp", .purpose = RunPurpose::Numerics};
  request.settings.device = "reference";
  const auto numerics = only<NumericsEvent>(serve(encode(WorkerRequest(request)) + "\n"));
  ASSERT_EQ(numerics.size(), 1u);
  EXPECT_EQ(numerics.front().id, 7);
  EXPECT_EQ(numerics.front().report.recipe, "None");
  ASSERT_NE(numerics.front().report.worst(), nullptr);
  EXPECT_EQ(numerics.front().report.worst()->rmsRelative, 0.0);  // the pipeline is in float32 already
}

RunRequest captureRequest(const std::string& tensor, const std::string& file, std::int64_t limitBytes) {
  RunRequest request{.id = 8, .pipelineText = kPipeline, .pipelineName = "mlp", .purpose = RunPurpose::Capture};
  request.settings.device = "reference";
  request.variants = {"unfused"};
  request.capture = {.tensors = {tensor}, .file = file, .limitBytes = limitBytes};
  return request;
}

TEST(Worker, CapturesTensorsIntoAFile) {
  const testing::TemporaryFolder folder;
  const std::string file = (folder / "t.safetensors").string();
  const auto captured =
      only<CapturedEvent>(serve(encode(WorkerRequest(captureRequest("fc.bias:y", file, 4 * 8 * 4))) + "\n"));
  ASSERT_EQ(captured.size(), 1u);
  EXPECT_EQ(captured.front().id, 8);
  ASSERT_EQ(captured.front().tensors.size(), 1u);
  const TensorSummary& summary = captured.front().tensors.front();
  EXPECT_EQ(summary.spec, (TensorSpec{DType::F32, {4, 8}}));
  const Result<NamedTensors> written = readSafetensors(file);
  ASSERT_TRUE(written) << written.error().message;
  const std::vector<double> values = written->front().second.toDoubles();
  EXPECT_EQ(summary.statistics.max, *std::ranges::max_element(values));
}

TEST(Worker, CapturesNoMoreThanItMay) {
  const testing::TemporaryFolder folder;
  const std::string file = (folder / "t.safetensors").string();
  const auto errors = only<ErrorEvent>(serve(encode(WorkerRequest(captureRequest("fc.bias:y", file, 100))) + "\n"));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(errors.front().error.message.find("would take 128 B, but a capture may take 100 B"), std::string::npos)
      << errors.front().error.message;
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(Worker, SaysHelloFirst) {
  const std::vector<WorkerEvent> events = serve("");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(std::get<HelloEvent>(events[0]).protocol, 1);
}

TEST(Worker, RunsAPipelineBothWays) {
  const std::vector<WorkerEvent> events = serve(runLine(5, 3));
  const auto results = only<ResultEvent>(events);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].id, 5);
  EXPECT_FALSE(results[0].record.isPartial);
  ASSERT_EQ(results[0].record.variants.size(), 2u);
  for (const VariantRecord& variant : results[0].record.variants) EXPECT_EQ(variant.endToEndNs.size(), 3u);
  EXPECT_LT(results[0].record.variants[1].launches, results[0].record.variants[0].launches);
  EXPECT_EQ(only<ProgressEvent>(events).front().stage, "preparing");
}

TEST(Worker, RunsTwoPipelinesInTurns) {
  RunRequest request{.id = 6, .pipelineText = kPipeline, .pipelineName = "mlp"};
  request.settings.device = "reference";
  request.settings.iterations = 3;
  request.besideText = kPipeline;
  request.besideName = "before";
  const auto results = only<ResultEvent>(serve(encode(WorkerRequest(request)) + "\n" + runLine(7, 1)));
  ASSERT_EQ(results.size(), 2u);
  ASSERT_TRUE(results[0].beside);
  EXPECT_EQ(results[0].beside->pipelineName, "before");
  EXPECT_TRUE(tookTurns(*results[0].beside, results[0].record));
  for (const VariantRecord& variant : results[0].beside->variants) EXPECT_EQ(variant.endToEndNs.size(), 3u);
  EXPECT_FALSE(results[1].beside);
  EXPECT_FALSE(tookTurns(results[1].record, results[1].record)) << "it ran alone";
}

/// They were chosen for the one; the other may be without the op that a tensor is for.
TEST(Worker, LeavesOutTensorsThatTheOtherPipelineDoesNotTake) {
  const testing::TemporaryFolder folder;
  RunRequest request{.id = 6, .pipelineText = kPipeline, .pipelineName = "mlp"};
  request.settings.device = "reference";
  request.settings.iterations = 1;
  request.tensorsFile = (folder / "in.safetensors").string();
  ASSERT_TRUE(writeSafetensors(request.tensorsFile, {{"fc.weight", Tensor::zeros({DType::F32, {8, 8}})}}));
  request.besideText = std::string(kPipeline);
  for (std::size_t at = 0; (at = request.besideText.find("fc", at)) != std::string::npos;)
    request.besideText.replace(at, 2, "up");
  request.besideName = "before";
  const std::vector<WorkerEvent> events = serve(encode(WorkerRequest(request)) + "\n");
  EXPECT_EQ(only<ResultEvent>(events).size(), 1u);
  EXPECT_TRUE(only<ErrorEvent>(events).empty()) << only<ErrorEvent>(events)[0].error.message;
}

TEST(Worker, ReadsTensorsUnderTheNamesOfTheirModel) {
  const testing::TemporaryFolder folder;
  RunRequest request{.id = 6, .pipelineText = kPipeline, .pipelineName = "mlp"};
  request.settings.device = "reference";
  request.settings.iterations = 1;
  request.pipelineText.insert(1, R"("weights": [{"parameter": "fc.weight", "tensors": ["model.fc"],
    "order": "as_stored"}],)");
  request.tensorsFile = (folder / "model.safetensors").string();
  ASSERT_TRUE(writeSafetensors(request.tensorsFile, {{"model.fc", Tensor::zeros({DType::F32, {8, 8}})}}));
  const std::vector<WorkerEvent> events = serve(encode(WorkerRequest(request)) + "\n");
  EXPECT_TRUE(only<ErrorEvent>(events).empty()) << only<ErrorEvent>(events)[0].error.message;
}

TEST(Worker, NamesThePipelineThatCannotTakeTurns) {
  RunRequest request{.id = 6, .pipelineText = kPipeline, .pipelineName = "mlp"};
  request.settings.device = "reference";
  request.besideText = "{}";
  request.besideName = "before";
  const auto errors = only<ErrorEvent>(serve(encode(WorkerRequest(request)) + "\n"));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_TRUE(errors[0].error.message.starts_with("before")) << errors[0].error.message;
}

TEST(Worker, RunsSeveralRequestsInOrder) {
  const auto results = only<ResultEvent>(serve(runLine(1, 1) + runLine(2, 1) + runLine(3, 1)));
  ASSERT_EQ(results.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(results[static_cast<std::size_t>(i)].id, i + 1);
}

TEST(Worker, AnswersALineThatIsNoRequestAndGoesOn) {
  const std::vector<WorkerEvent> events = serve("nonsense\n\n{\"type\":\"dance\"}\n" + runLine(2, 1));
  const auto errors = only<ErrorEvent>(events);
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].id, 0);
  EXPECT_EQ(only<ResultEvent>(events).size(), 1u);
}

TEST(Worker, ReportsProblemsOfThePipelineAsAnError) {
  std::string broken = kPipeline;
  broken.replace(broken.find("GELU"), 4, "GEEU");
  const std::vector<WorkerEvent> events = serve(runLine(3, 1, "reference", broken));
  const auto errors = only<ErrorEvent>(events);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].id, 3);
  EXPECT_EQ(errors[0].error.kind, ErrorKind::InvalidInput);
  EXPECT_NE(errors[0].error.message.find("GELU"), std::string::npos) << errors[0].error.message;
}

TEST(Worker, ReportsARequestWithoutPlans) {
  const RunRequest run{.id = 5, .pipelineText = kPipeline, .variants = {}, .purpose = RunPurpose::Capture};
  const auto errors = only<ErrorEvent>(serve(encode(WorkerRequest(run)) + "\n"));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].error.message, "variants: expected unfused, fused, or both; found none.");
}

TEST(Worker, ReportsADeviceThatIsNotThere) {
  const auto errors = only<ErrorEvent>(serve(runLine(4, 1, "cuda:9")));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].error.kind, ErrorKind::NoDevice);
}

TEST(Worker, ListsDevices) {
  const auto devices = only<DevicesEvent>(serve("{\"type\":\"devices\",\"id\":8}\n"));
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].id, 8);
  EXPECT_EQ(devices[0].devices[0]["id"], "reference");
  EXPECT_EQ(devices[0].devices[0]["canRun"], true);
}

TEST(Worker, ReadsNothingAfterQuit) {
  EXPECT_TRUE(only<DevicesEvent>(serve("{\"type\":\"quit\"}\n{\"type\":\"devices\",\"id\":1}\n")).empty());
}

/// Fails in every run, and perhaps has met its end.
class FailingBackend final : public testing::WrappedBackend {
 public:
  explicit FailingBackend(bool isLost)
      : WrappedBackend([](const Step&) { throw std::runtime_error("An illegal address was read."); }),
        m_isLost(isLost) {}
  bool isLost() const override { return m_isLost; }

 private:
  bool m_isLost;
};

/// The output at each time that the worker reported a lost device; one text per call.
std::vector<std::string> outputsAtLosses(const std::shared_ptr<Backend>& backend) {
  std::istringstream input(runLine(1, 1));
  std::ostringstream output;
  std::vector<std::string> outputs;
  serveWorker(input, output, testing::OneBackend(backend), [&] { outputs.push_back(output.str()); });
  return outputs;
}

TEST(Worker, SaysThatARunHasLostItsDeviceBehindTheErrorOfTheRun) {
  const std::vector<std::string> outputs = outputsAtLosses(std::make_shared<FailingBackend>(true));
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_NE(outputs.front().find("An illegal address was read."), std::string::npos) << outputs.front();
  EXPECT_TRUE(outputsAtLosses(std::make_shared<FailingBackend>(false)).empty());
  EXPECT_TRUE(outputsAtLosses(makeReferenceBackend()).empty());
}

/// An input with lines that arrive when the test releases them.
class GatedInput : public std::streambuf {
 public:
  void send(const std::string& text) {
    const std::lock_guard lock(m_mutex);
    m_pending += text;
    m_changed.notify_one();
  }
  void close() {
    const std::lock_guard lock(m_mutex);
    m_isClosed = true;
    m_changed.notify_one();
  }

 protected:
  int_type underflow() override {
    std::unique_lock lock(m_mutex);
    m_changed.wait(lock, [this] { return m_isClosed || !m_pending.empty(); });
    if (m_pending.empty()) return traits_type::eof();
    m_current = std::exchange(m_pending, {});
    setg(m_current.data(), m_current.data(), m_current.data() + m_current.size());
    return traits_type::to_int_type(m_current.front());
  }

 private:
  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::string m_pending;
  std::string m_current;
  bool m_isClosed = false;
};

/// Calls back with every line that is written.
class LineOutput : public std::streambuf {
 public:
  explicit LineOutput(std::function<void(const std::string&)> onLine) : m_onLine(std::move(onLine)) {}

 protected:
  int_type overflow(int_type letter) override {
    if (letter == '\n')
      m_onLine(std::exchange(m_line, {}));
    else
      m_line += traits_type::to_char_type(letter);
    return letter;
  }

 private:
  std::function<void(const std::string&)> m_onLine;
  std::string m_line;
};

TEST(Worker, StopsARunThatIsUnderWayAndReportsWhatItHas) {
  GatedInput inputBuffer;
  std::vector<WorkerEvent> events;
  LineOutput outputBuffer([&](const std::string& line) {
    events.push_back(*decodeEvent(line));
    const ProgressEvent* progress = std::get_if<ProgressEvent>(&events.back());
    if (progress && progress->stage == "measuring" && progress->done == 2) {
      inputBuffer.send("{\"type\":\"cancel\",\"id\":6}\n");
      inputBuffer.close();
    }
  });
  std::istream input(&inputBuffer);
  std::ostream output(&outputBuffer);
  inputBuffer.send(runLine(6, 100000000));
  EXPECT_EQ(serveWorker(input, output, testing::OneBackend(makeReferenceBackend())), 0);
  const auto results = only<ResultEvent>(events);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_TRUE(results[0].record.isPartial);
  EXPECT_GE(results[0].record.variants[0].endToEndNs.size(), 2u);
  EXPECT_EQ(results[0].record.variants[0].endToEndNs.size(), results[0].record.variants[1].instrumentedNs.size());
}

}  // namespace
}  // namespace fuseline
