// The client of CUPTI against a library of the test's own, which delivers records as CUPTI documents them.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/trace/cupti_trace.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <set>

namespace fuseline::cuda {
namespace {

/// The requests to the library, and its answers.
struct Library {
  CUptiResult onSubscribe = CUPTI_SUCCESS;
  CUptiResult onEnable = CUPTI_SUCCESS;
  std::string otherClient;
  int numClients = 0;
  std::set<CUpti_ActivityKind> enabled;
  std::uint32_t version = 130001;
  std::set<CUpti_CallbackId> events;
  std::vector<std::uint64_t> pushed;
  std::size_t numDropped = 0;
  CUpti_CallbackFunc onEvent = nullptr;
  void* client = nullptr;
  CUpti_BuffersCallbackRequestFunc onBufferWanted = nullptr;
  CUpti_BuffersCallbackCompleteFunc onBufferFilled = nullptr;
  std::vector<std::vector<std::byte>> records;  // of the next flush
  bool hasFusedOperand = false;                 // all activities that have ended
  std::uint64_t nowNs = 0;
};
Library g_library;

template <class Activity>
void deliver(const Activity& activity) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&activity);
  g_library.records.emplace_back(bytes, bytes + sizeof(Activity));
}

CUptiResult subscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc onEvent, void* client,
                      CUpti_SubscriberParams* parameters) {
  if (g_library.onSubscribe != CUPTI_SUCCESS) {
    std::strncpy(parameters->oldSubscriberName, g_library.otherClient.c_str(), parameters->oldSubscriberSize - 1);
    return g_library.onSubscribe;
  }
  ++g_library.numClients;
  g_library.onEvent = onEvent;
  g_library.client = client;
  *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&g_library);
  return CUPTI_SUCCESS;
}

CUptiResult unsubscribe(CUpti_SubscriberHandle) {
  --g_library.numClients;
  return CUPTI_SUCCESS;
}

CUptiResult enableCallback(uint32_t enable, CUpti_SubscriberHandle, CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  if (enable == 1 && domain == CUPTI_CB_DOMAIN_RESOURCE) g_library.events.insert(id);
  return CUPTI_SUCCESS;
}

CUptiResult errorMessage(CUptiResult, const char** message) {
  *message = "not enough privileges";
  return CUPTI_SUCCESS;
}

/// The address of a node is its id.
CUptiResult graphNodeId(CUgraphNode node, uint64_t* id) {
  *id = reinterpret_cast<std::uint64_t>(node);
  return CUPTI_SUCCESS;
}

CUptiResult registerBuffers(CUpti_BuffersCallbackRequestFunc wanted, CUpti_BuffersCallbackCompleteFunc filled) {
  g_library.onBufferWanted = wanted;
  g_library.onBufferFilled = filled;
  return CUPTI_SUCCESS;
}

CUptiResult enable(CUpti_ActivityKind kind) {
  if (g_library.onEnable == CUPTI_SUCCESS) g_library.enabled.insert(kind);
  return g_library.onEnable;
}

CUptiResult version(uint32_t* number) {
  *number = g_library.version;
  return CUPTI_SUCCESS;
}

CUptiResult disable(CUpti_ActivityKind kind) {
  g_library.enabled.erase(kind);
  return CUPTI_SUCCESS;
}

CUptiResult timestamp(uint64_t* nanoseconds) {
  *nanoseconds = g_library.nowNs;
  return CUPTI_SUCCESS;
}

/// A buffer a record: clients must not count on getting all in one.
CUptiResult flush(uint32_t flag) {
  if (flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) {
    EXPECT_TRUE(g_library.hasFusedOperand) << "forced, it delivers records without an end, too";
  }
  g_library.hasFusedOperand = flag == 0;
  for (const std::vector<std::byte>& record : std::exchange(g_library.records, {})) {
    uint8_t* buffer = nullptr;
    std::size_t size = 0;
    std::size_t maxRecords = 0;
    g_library.onBufferWanted(&buffer, &size, &maxRecords);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer) % 8, 0U);
    EXPECT_GE(size, record.size());
    std::memcpy(buffer, record.data(), record.size());
    g_library.onBufferFilled(nullptr, 0, buffer, size, record.size());
  }
  return CUPTI_SUCCESS;
}

CUptiResult nextRecord(uint8_t* buffer, std::size_t filled, CUpti_Activity** record) {
  if (*record || filled == 0) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(buffer);
  return CUPTI_SUCCESS;
}

CUptiResult numDropped(CUcontext, uint32_t, std::size_t* count) {
  *count = std::exchange(g_library.numDropped, 0);
  return CUPTI_SUCCESS;
}

CUptiResult push(CUpti_ExternalCorrelationKind, uint64_t id) {
  g_library.pushed.push_back(id);
  return CUPTI_SUCCESS;
}

CUptiResult pop(CUpti_ExternalCorrelationKind, uint64_t*) { return CUPTI_SUCCESS; }

Cupti library() {
  return {.version = version,
          .subscribe = subscribe,
          .unsubscribe = unsubscribe,
          .enableCallback = enableCallback,
          .errorMessage = errorMessage,
          .graphNodeId = graphNodeId,
          .registerBuffers = registerBuffers,
          .enable = enable,
          .disable = disable,
          .timestamp = timestamp,
          .flush = flush,
          .nextRecord = nextRecord,
          .numDropped = numDropped,
          .push = push,
          .pop = pop};
}

CUpti_ActivityKernel10 kernel(const char* name, std::uint64_t start, std::uint64_t end) {
  CUpti_ActivityKernel10 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record.name = name;
  record.start = start;
  record.end = end;
  record.gridX = 64;
  record.gridY = record.gridZ = record.blockY = record.blockZ = 1;
  record.blockX = 128;
  record.registersPerThread = 40;
  record.dynamicSharedMemory = 2048;
  return record;
}

/// The library says: this call was made while `owner` was pushed.
void deliverCall(std::uint32_t correlation, std::uint64_t owner) {
  CUpti_ActivityExternalCorrelation record{};
  record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  record.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
  record.externalId = owner;
  record.correlationId = correlation;
  deliver(record);
}

/// The library says: this node was made, or cloned from another.
void sayNode(std::uint64_t node, std::uint64_t original = 0) {
  CUpti_GraphData graph{};
  graph.node = reinterpret_cast<CUgraphNode>(node);
  graph.originalNode = reinterpret_cast<CUgraphNode>(original);
  CUpti_ResourceData resource{};
  resource.resourceDescriptor = &graph;
  g_library.onEvent(g_library.client, CUPTI_CB_DOMAIN_RESOURCE,
                    original ? CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED : CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, &resource);
}

class CuptiTrace : public ::testing::Test {
 protected:
  void SetUp() override { g_library = {}; }

  static std::unique_ptr<DeviceTrace> make() {
    Result<std::unique_ptr<DeviceTrace>> made = makeCuptiTrace(library());
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  static std::string refusal() {
    const Result<std::unique_ptr<DeviceTrace>> made = makeCuptiTrace(library());
    return made ? "" : made.error().message;
  }
};

/// Activities that are delivered without a correlation were launched by a step.
void launchFromStep(DeviceTrace& trace) {
  trace.beginStep(0);
  trace.endStep();
  deliverCall(0, g_library.pushed.back());
}

TEST_F(CuptiTrace, FindsTheStepThatLaunchedAKernel) {
  const auto trace = make();
  trace->start();
  trace->beginStep(7);
  trace->endStep();
  ASSERT_EQ(g_library.pushed.size(), 1U);
  auto launched = kernel("_ZN4math3addIfEEvPT_i", 1000, 1500);
  launched.correlationId = 12;
  deliver(launched);  // before the record that contains its owner
  deliverCall(12, g_library.pushed[0]);
  const std::vector<DeviceActivity> seen = trace->stop();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].step, 7U);
  EXPECT_EQ(seen[0].name, "math::add<float>");
  EXPECT_EQ(seen[0].configuration, "grid 64, block 128, 40 registers, 2 KiB shared memory");
  EXPECT_EQ(seen[0].durationNs, 500.0);
}

TEST_F(CuptiTrace, FollowsTheNodesOfACudaGraph) {
  const auto trace = make();
  EXPECT_EQ(g_library.events.size(), 2U);
  trace->beginStep(3);  // a capture: nothing is traced yet
  sayNode(100);
  trace->endStep();
  sayNode(101);  // without an owner
  sayNode(200, 100);
  sayNode(300, 200);  // a clone of a clone
  sayNode(201, 101);
  EXPECT_TRUE(g_library.pushed.empty());
  g_library.nowNs = 195;
  trace->start();
  for (const std::uint64_t node : {201U, 300U}) {
    auto replayed = kernel("k", node, node + 10);
    replayed.graphNodeId = node;
    deliver(replayed);
  }
  const std::vector<DeviceActivity> seen = trace->stop();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].step, DeviceActivity::kNoStep);
  EXPECT_EQ(seen[1].step, 3U);
  EXPECT_EQ(seen[0].startNs, 6.0);
  EXPECT_EQ(seen[1].startNs, 105.0);
}

TEST_F(CuptiTrace, BeginsWithTheFirstActivityWhereTheClocksDiffer) {
  const auto trace = make();
  g_library.nowNs = 120;
  trace->start();
  launchFromStep(*trace);
  deliver(kernel("k", 100, 130));
  deliver(kernel("l", 150, 160));
  const std::vector<DeviceActivity> seen = trace->stop();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].startNs, 0.0);
  EXPECT_EQ(seen[1].startNs, 50.0);
}

TEST_F(CuptiTrace, TellsApartTracesThatLiveTogether) {
  const auto one = make();
  const auto other = make();
  EXPECT_EQ(g_library.numClients, 1);
  one->beginStep(2);
  sayNode(10);
  one->endStep();
  other->beginStep(2);
  sayNode(20);
  other->endStep();
  other->start();
  for (const std::uint64_t node : {10U, 20U}) {
    auto replayed = kernel("k", node, node + 1);
    replayed.graphNodeId = node;
    deliver(replayed);
  }
  const std::vector<DeviceActivity> seen = other->stop();
  EXPECT_EQ(seen.at(0).step, DeviceActivity::kNoStep);
  EXPECT_EQ(seen.at(1).step, 2U);
}

TEST_F(CuptiTrace, SeesCopiesAndFillings) {
  const auto trace = make();
  trace->start();
  launchFromStep(*trace);
  CUpti_ActivityMemcpy6 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.bytes = 4096;
  copy.start = 20;
  copy.end = 50;
  deliver(copy);
  CUpti_ActivityMemset4 fill{};
  fill.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  fill.bytes = 64;
  fill.start = 10;
  fill.end = 15;
  deliver(fill);
  const std::vector<DeviceActivity> seen = trace->stop();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].name, "fill");  // it began first
  EXPECT_EQ(seen[1].name, "copy, host to device");
  EXPECT_EQ(seen[1].configuration, "4 KiB");
}

TEST_F(CuptiTrace, RecordsOnlyBetweenStartAndStop) {
  const auto trace = make();
  EXPECT_TRUE(g_library.enabled.empty());
  trace->start();
  EXPECT_TRUE(g_library.enabled.contains(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  EXPECT_FALSE(g_library.enabled.contains(CUPTI_ACTIVITY_KIND_KERNEL)) << "it would serialize kernels";
  launchFromStep(*trace);
  deliver(kernel("k", 1, 2));
  trace->stop();
  EXPECT_TRUE(g_library.enabled.empty());
}

/// A function that is enabled by default once there is a context must not be recorded, and has no owner.
TEST_F(CuptiTrace, RecordsCallsAsAKind) {
  const auto trace = make();
  trace->start();
  EXPECT_TRUE(g_library.enabled.contains(CUPTI_ACTIVITY_KIND_RUNTIME));
  EXPECT_TRUE(g_library.enabled.contains(CUPTI_ACTIVITY_KIND_DRIVER));
}

TEST_F(CuptiTrace, RefusesWorkThatNobodyLaunched) {
  const auto trace = make();
  trace->start();
  trace->beginStep(1);
  trace->endStep();
  deliver(kernel("k", 1, 2));
  EXPECT_THROW(trace->stop(), std::exception) << "steps of no time at all";
}

TEST_F(CuptiTrace, RefusesToTimeWhatItDidNotSee) {
  const auto trace = make();
  trace->start();
  EXPECT_THROW(trace->stop(), std::exception) << "no record at all";
  trace->start();
  deliver(kernel("k", 0, 0));
  EXPECT_THROW(trace->stop(), std::exception) << "a kernel without times";
  trace->start();
  deliver(kernel("k", 9, 8));
  EXPECT_THROW(trace->stop(), std::exception) << "a kernel that ends before it begins";
  trace->start();
  deliver(kernel("k", 1, 2));
  g_library.numDropped = 5;
  try {
    trace->stop();
    FAIL() << "records were dropped";
  } catch (const std::exception& problem) {
    EXPECT_NE(std::string(problem.what()).find("lost 5"), std::string::npos) << problem.what();
  }
}

TEST_F(CuptiTrace, NamesTheToolThatIsInTheWay) {
  g_library.onSubscribe = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  g_library.otherClient = "CUPTI for Nsight Systems";
  EXPECT_NE(refusal().find("in use by CUPTI for Nsight Systems"), std::string::npos) << refusal();
  g_library.otherClient = "";
  EXPECT_NE(refusal().find("in use by another tool"), std::string::npos) << refusal();
}

TEST_F(CuptiTrace, RefusesTheReleaseThatHangs) {
  g_library.version = 130000;
  EXPECT_NE(refusal().find("Update 1"), std::string::npos) << refusal();
  EXPECT_EQ(g_library.numClients, 0);
}

TEST_F(CuptiTrace, SaysBeforeARunWhatTheLibraryRefuses) {
  g_library.onEnable = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  EXPECT_EQ(refusal(), "CUPTI cannot record what the GPU does: not enough privileges (error 35).");
  EXPECT_EQ(g_library.numClients, 0) << "a client that cannot work stands in the way of others";
}

TEST(Cupti, LoadsOrSaysWhatIsMissing) {
  const Result<Cupti> found = loadCupti();
  if (!found) GTEST_SKIP() << found.error().message;
  const char* message = nullptr;
  EXPECT_EQ(found->errorMessage(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, &message), CUPTI_SUCCESS);
  EXPECT_NE(message, nullptr);
}

}  // namespace
}  // namespace fuseline::cuda
