// Lines survive encoding and decoding; lines that are none give sentences.
// SPDX-License-Identifier: Apache-2.0
#include "core/worker/protocol.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

/// Any text that JSON can carry: the generator's bytes as code points of one or two UTF-8 bytes.
std::string utf8(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    const auto code = static_cast<unsigned char>(byte);
    if (code < 0x80) {
      text += byte;
      continue;
    }
    text += static_cast<char>(0xc0 | (code >> 6));
    text += static_cast<char>(0x80 | (code & 0x3f));
  }
  return text;
}

/// Decodes the encoded request, and encodes it again.
std::string again(const WorkerRequest& request) {
  const Result<WorkerRequest> decoded = decodeRequest(encode(request));
  return decoded ? encode(*decoded) : decoded.error().message;
}

std::string again(const WorkerEvent& event) {
  const Result<WorkerEvent> decoded = decodeEvent(encode(event));
  return decoded ? encode(*decoded) : decoded.error().message;
}

TEST(Protocol, KeepsEveryFieldOfARunRequest) {
  EXPECT_TRUE(rc::check([](int id, const std::string& text, const std::string& name, std::uint64_t seed,
                           std::int64_t value, const std::vector<std::string>& rules) {
    RunRequest request{.id = id, .pipelineText = utf8(text), .pipelineName = utf8(name)};
    request.settings.seed = seed;
    request.settings.symbols = {{utf8("s" + name), value}};
    request.variants = {"fused"};
    request.besideText = utf8(name + text);
    request.besideName = utf8(text);
    request.purpose =
        std::array{RunPurpose::Times, RunPurpose::Numerics, RunPurpose::Capture}[static_cast<std::size_t>(seed % 3)];
    request.capture = {.tensors = {utf8(text)}, .file = utf8(name), .limitBytes = value};
    for (const std::string& rule : rules) request.switches.without.push_back(utf8(rule));
    for (const std::string& rule : rules) request.switches.with.push_back(utf8(rule + "@a"));
    const Result<WorkerRequest> decoded = decodeRequest(encode(WorkerRequest(request)));
    RC_ASSERT(static_cast<bool>(decoded));
    const auto& read = std::get<RunRequest>(*decoded);
    RC_ASSERT(read.id == id);
    RC_ASSERT(read.pipelineText == request.pipelineText);
    RC_ASSERT(read.pipelineName == request.pipelineName);
    RC_ASSERT(read.settings.seed == seed);
    RC_ASSERT(read.settings.symbols == request.settings.symbols);
    RC_ASSERT(read.variants == request.variants);
    RC_ASSERT(read.besideText == request.besideText);
    RC_ASSERT(read.besideName == request.besideName);
    RC_ASSERT(read.purpose == request.purpose);
    RC_ASSERT(read.capture.tensors == request.capture.tensors);
    RC_ASSERT(read.capture.file == request.capture.file);
    RC_ASSERT(read.capture.limitBytes == value);
    RC_ASSERT(read.switches == request.switches);
  }));
}

TEST(Protocol, ReadsTheNamesOfOlderPrograms) {
  const Result<WorkerRequest> read =
      decodeRequest(R"({"type":"run","id":1,"pipeline":"{}","beside":"{ }","besideName":"base"})");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(std::get<RunRequest>(*read).besideText, "{ }");
  EXPECT_EQ(std::get<RunRequest>(*read).besideName, "base");
}

TEST(Protocol, KeepsTheOtherRequests) {
  EXPECT_TRUE(rc::check([](int id) {
    for (const WorkerRequest& request :
         {WorkerRequest(CancelRequest{id}), WorkerRequest(DevicesRequest{id}), WorkerRequest(QuitRequest{})})
      RC_ASSERT(again(request) == encode(request));
  }));
}

TEST(Protocol, KeepsEvents) {
  EXPECT_TRUE(rc::check([](int id, int done, int total, const std::string& text, const std::vector<double>& samples) {
    RunRecord record{.pipelineName = utf8(text)};
    std::vector<double> times = samples;
    for (double& each : times) each = std::min(std::fabs(each), 1e18);
    record.variants.push_back({.name = "fused", .steps = {{.name = utf8(text), .samplesNs = times}}});
    const NumericsReport numerics{.recipe = utf8(text), .errors = {errorOf(utf8(text), samples, samples, DType::F32)}};
    const Tensor tensor = Tensor::fromDoubles({DType::F32, {std::ssize(samples)}}, samples);
    const TensorSummary captured = summariesOf({{utf8(text), tensor}}).front();
    for (const WorkerEvent& event :
         {WorkerEvent(NumericsEvent{id, numerics}), WorkerEvent(CapturedEvent{id, {captured}}),
          WorkerEvent(HelloEvent{utf8(text), 1}), WorkerEvent(ProgressEvent{id, utf8(text), done, total}),
          WorkerEvent(ResultEvent{id, record}),
          WorkerEvent(ErrorEvent{id, {utf8(text), ErrorKind::NoDevice}, done > 0}),
          WorkerEvent(DevicesEvent{id, Json::array({utf8(text)})})})
      RC_ASSERT(again(event) == encode(event));
  }));
}

TEST(Protocol, ReadsErrorsOfWorkersThatDoNotSayWhetherTheDeviceIsLost) {
  const Result<WorkerEvent> event = decodeEvent(R"({"type": "error", "id": 1, "message": "No.", "kind": 4})");
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_FALSE(std::get<ErrorEvent>(*event).isDeviceLost);
}

TEST(Protocol, WritesOneLine) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) {
    const std::string line = encode(WorkerEvent(ErrorEvent{1, {bytes, ErrorKind::RunFailed}}));
    RC_ASSERT(line.find('\n') == std::string::npos);
    RC_ASSERT(static_cast<bool>(decodeEvent(line)));  // also when the bytes are no UTF-8
  }));
}

TEST(Protocol, RefusesAnyBytesWithASentence) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) {
    for (const Error& error : {decodeRequest("{" + bytes).error(), decodeEvent("[" + bytes).error()})
      RC_ASSERT(!error.message.empty());
  }));
}

std::string refusal(std::string_view line) {
  const Result<WorkerRequest> decoded = decodeRequest(line);
  return decoded ? "" : decoded.error().message;
}

TEST(Protocol, SaysWhatIsWrongWithALine) {
  EXPECT_EQ(refusal(R"({"id":1})"), "/type: this field is missing.");
  EXPECT_EQ(refusal(R"({"type":"dance"})"),
            "/type: \"dance\" is not known. Valid values: run, numerics, capture, cancel, devices, quit, file.");
  EXPECT_EQ(refusal(R"({"type":"cancel"})"), "/id: this field is missing.");
  EXPECT_EQ(refusal(R"({"type":"cancel","id":1.5})"), "/id: expected an integer, found 1.5.");
  EXPECT_EQ(refusal(R"({"type":"cancel","id":99999999999})"),
            "/id: expected an integer of 32 bits, found 99999999999.");
  EXPECT_EQ(refusal(R"({"type":"run","id":1,"pipeline":7})"), "/pipeline: expected a text, found 7.");
  EXPECT_EQ(refusal(R"({"type":"run","id":1,"pipeline":"","settings":{"warmup":"x"}})"),
            "/settings/warmup: expected an integer, found \"x\".");
  EXPECT_EQ(refusal("[1]"), "/: expected an object, found [1].");
  EXPECT_EQ(refusal(R"({"type":"run","id":1,"pipeline":"","settings":{"warmup":-5}})"),
            "/settings/warmup: expected 0 or more, found -5.");
  EXPECT_EQ(refusal(R"({"type":"run","id":1,"pipeline":"","settings":{"iterations":-1}})"),
            "/settings/iterations: expected 0 or more, found -1.");
  EXPECT_EQ(refusal(R"({"type":"run","id":1,"pipeline":"","settings":{"pass":"sideways"}})"),
            "/settings/pass: expected one of forward, train, found \"sideways\".");
  EXPECT_EQ(refusal(R"({"type":"run","id":1,"pipeline":"","settings":{"rules":""}})"), "");
  EXPECT_LT(refusal(R"({"type":")" + std::string(1 << 20, 'x') + R"("})").size(), 200U);
}

TEST(Protocol, FindsTheIdOfWhatIsNoRequest) {
  EXPECT_EQ(requestId(R"({"type":"run","id":7,"pipeline":7})"), 7);
  EXPECT_EQ(requestId(R"({"type":"run","id":"7"})"), 0);
  EXPECT_EQ(requestId("[1]"), 0);
  EXPECT_EQ(requestId("no JSON"), 0);
}

}  // namespace
}  // namespace fuseline
