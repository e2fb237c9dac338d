// One client of CUPTI, its buffers, and the joining of its records.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/trace/cupti_trace.h"

#include "core/support/text.h"
#include "kernels/cuda/support/check.h"
#include "kernels/cuda/trace/activity_text.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

/// A step of a trace: the trace's number in the upper half, the step's in the lower. 0: no owner.
using Owner = std::uint64_t;
constexpr int kStepBits = 32;

constexpr CUpti_ExternalCorrelationKind kOurKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
/// Kernels are joined to the calls that launched them, and those to their owners: the library tells the owners only of
/// calls that it records. Calls are switched on as a kind: a function that is switched on by itself once the context
/// is there may record nothing.
constexpr std::array kKinds = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,    CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_RUNTIME};

/// CUPTI of CUDA 13.0 before its Update 1, whose release notes report deadlocks after kernel recording stops, and
/// crashes when records are flushed.
constexpr std::uint32_t kVersionThatHangs = 130000;

/// Owner of this thread's launches.
thread_local Owner t_owner = 0;

/// CUPTI's record of a kernel, a copy or a fill.
struct Record {
  DeviceActivity activity;
  std::uint64_t startNs = 0;
  std::uint64_t endNs = 0;
  std::uint64_t node = 0;  // of a CUDA graph; 0: launched by itself
  std::uint32_t correlation = 0;
};

template <class Activity>
Record recordOf(const Activity& seen, std::string name, std::string configuration) {
  Record record{.startNs = seen.start, .endNs = seen.end, .node = seen.graphNodeId, .correlation = seen.correlationId};
  record.activity.name = std::move(name);
  record.activity.configuration = std::move(configuration);
  record.activity.durationNs = static_cast<double>(seen.end - seen.start);
  return record;
}

Record recordOf(const CUpti_ActivityKernel10& kernel) {
  const KernelShape shape{
      .grid = {kernel.gridX, kernel.gridY, kernel.gridZ},
      .block = {kernel.blockX, kernel.blockY, kernel.blockZ},
      .cluster = {std::max(kernel.clusterX, 1U), std::max(kernel.clusterY, 1U), std::max(kernel.clusterZ, 1U)},
      .registersPerThread = kernel.registersPerThread,
      .sharedBytes = std::int64_t{kernel.staticSharedMemory} + kernel.dynamicSharedMemory};
  return recordOf(kernel, kernelName(kernel.name), toString(shape));
}

const char* directionOf(const CUpti_ActivityMemcpy6& copy) {
  switch (copy.copyKind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return "copy, host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return "copy, device to host";
    default: return "copy";
  }
}

/// Filled by CUPTI, read by us.
class Buffers {
 public:
  /// So that none is made while something is measured.
  void makeSome() {
    constexpr std::size_t kFew = 4;
    const std::lock_guard lock(m_mutex);
    while (m_free.size() < kFew) m_free.push_back(make());
  }
  uint8_t* take() {
    const std::lock_guard lock(m_mutex);
    if (m_free.empty()) m_free.push_back(make());
    uint8_t* const buffer = reinterpret_cast<uint8_t*>(m_free.back().release());
    m_free.pop_back();
    return buffer;
  }
  void giveBack(uint8_t* buffer) {
    const std::lock_guard lock(m_mutex);
    m_free.emplace_back(reinterpret_cast<std::uint64_t*>(buffer));
  }

  static constexpr std::size_t kBytes = std::size_t{4} << 20;

 private:
  using Buffer = std::unique_ptr<std::uint64_t[]>;  // aligned to 8 bytes, as CUPTI requires
  static Buffer make() { return std::make_unique<std::uint64_t[]>(kBytes / sizeof(std::uint64_t)); }

  std::mutex m_mutex;
  std::vector<Buffer> m_free;
};

/// The client. CUPTI delivers records on a separate thread.
class CuptiSession {
 public:
  static Result<std::shared_ptr<CuptiSession>> open(const Cupti& library);
  ~CuptiSession();
  CuptiSession(const CuptiSession&) = delete;
  CuptiSession& operator=(const CuptiSession&) = delete;

  void start();
  std::vector<std::pair<Owner, DeviceActivity>> stop();
  void begin(Owner owner);
  void end();
  Owner nextTrace() { return ++m_numTraces << kStepBits; }

 private:
  explicit CuptiSession(const Cupti& library) : m_library(library) {}
  Result<void> subscribe();
  Result<void> enableAll();
  void disableAll();
  Error errorOf(CUptiResult result, const char* action) const;
  Error occupied(std::string_view client) const;

  static void CUPTIAPI onEvent(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId event, const void* data);
  static void CUPTIAPI onBufferWanted(uint8_t** buffer, std::size_t* size, std::size_t* maxRecords);
  static void CUPTIAPI onBufferFilled(CUcontext context, uint32_t stream, uint8_t* buffer, std::size_t size,
                                      std::size_t filled);
  void noteNode(CUpti_CallbackId event, const CUpti_GraphData& data);
  void take(uint8_t* buffer, std::size_t filled, CUcontext context, uint32_t stream);
  void read(uint8_t* buffer, std::size_t filled);
  void add(const CUpti_Activity& record);
  Owner ownerOf(const Record& record) const;
  void refuseLosses() const;

  Cupti m_library;
  CUpti_SubscriberHandle m_subscriber = nullptr;
  std::atomic<bool> m_isOn = false;
  std::uint64_t m_startNs = 0;  // on CUPTI's clock
  std::atomic<std::uint64_t> m_numTraces = 0;

  std::mutex m_mutex;  // guards the members below
  std::unordered_map<std::uint64_t, Owner> m_ownersOfNodes;
  std::unordered_map<std::uint32_t, Owner> m_ownersOfCalls;
  std::vector<Record> m_records;
  std::size_t m_numDropped = 0;
};

std::mutex g_mutex;
std::weak_ptr<CuptiSession> g_session;

/// CUPTI's buffer callbacks know no client: this is the one, for as long as the lock is held. Buffers outlive it.
std::mutex g_readerMutex;
CuptiSession* g_reader = nullptr;

Buffers& buffers() {
  static Buffers& all = *new Buffers;  // never ended: CUPTI's thread may come late
  return all;
}

void replaceReader(const CuptiSession* old, CuptiSession* reader) {
  const std::lock_guard lock(g_readerMutex);
  if (g_reader == old) g_reader = reader;
}

Error CuptiSession::errorOf(CUptiResult result, const char* action) const {
  const char* message = nullptr;
  if (m_library.errorMessage(result, &message) != CUPTI_SUCCESS || !message) message = "no reason given";
  return {fmt::format("CUPTI cannot {}: {} (error {}).", action, message, static_cast<int>(result)),
          ErrorKind::RunFailed};
}

Error CuptiSession::occupied(std::string_view client) const {
  return {fmt::format("CUPTI is in use by {} and serves one tool per process. Run without that tool to trace kernels.",
                      client.empty() ? "another tool" : client),
          ErrorKind::RunFailed};
}

Result<void> CuptiSession::subscribe() {
  std::array<char, CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN> other{};
  CUpti_SubscriberParams parameters{};
  parameters.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  parameters.subscriberName = "Fuseline";
  parameters.oldSubscriberName = other.data();
  parameters.oldSubscriberSize = other.size();
  const CUptiResult result = m_library.subscribe(&m_subscriber, onEvent, this, &parameters);
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) return occupied(other.data());
  if (result != CUPTI_SUCCESS) return errorOf(result, "trace this process");
  for (const CUpti_CallbackIdResource event :
       {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED})
    if (const CUptiResult asked = m_library.enableCallback(1, m_subscriber, CUPTI_CB_DOMAIN_RESOURCE, event);
        asked != CUPTI_SUCCESS)
      return errorOf(asked, "follow CUDA graphs");
  return {};
}

/// CUPTI reports its refusals here, before anything is measured.
Result<std::shared_ptr<CuptiSession>> CuptiSession::open(const Cupti& library) {
  const std::lock_guard lock(g_mutex);
  if (std::shared_ptr<CuptiSession> existing = g_session.lock()) return existing;
  std::uint32_t version = 0;
  if (library.version(&version) == CUPTI_SUCCESS && version == kVersionThatHangs)
    return Error{"CUPTI of CUDA 13.0 can hang or crash a traced program. Install Update 1 or newer.",
                 ErrorKind::RunFailed};
  std::shared_ptr<CuptiSession> session(new CuptiSession(library));
  if (Result<void> subscribed = session->subscribe(); !subscribed) return subscribed.error();
  if (const CUptiResult result = library.registerBuffers(onBufferWanted, onBufferFilled); result != CUPTI_SUCCESS)
    return session->errorOf(result, "deliver records");
  Result<void> enabled = session->enableAll();
  session->disableAll();
  if (!enabled) return enabled.error();
  buffers().makeSome();
  replaceReader(nullptr, session.get());
  g_session = session;
  return session;
}

CuptiSession::~CuptiSession() {
  replaceReader(this, nullptr);
  if (m_subscriber) m_library.unsubscribe(m_subscriber);
}

Result<void> CuptiSession::enableAll() {
  for (const CUpti_ActivityKind kind : kKinds)
    if (const CUptiResult result = m_library.enable(kind); result != CUPTI_SUCCESS)
      return errorOf(result, "record what the GPU does");
  return {};
}

void CuptiSession::disableAll() {
  for (const CUpti_ActivityKind kind : kKinds) m_library.disable(kind);
}

void CuptiSession::begin(Owner owner) {
  t_owner = owner;
  if (m_isOn) m_library.push(kOurKind, owner);
}

void CuptiSession::end() {
  if (m_isOn) m_library.pop(kOurKind, nullptr);
  t_owner = 0;
}

void CuptiSession::start() {
  {
    const std::lock_guard lock(m_mutex);
    m_records.clear();
    m_ownersOfCalls.clear();
    m_numDropped = 0;
  }
  if (Result<void> enabled = enableAll(); !enabled) throw DeviceFault(enabled.error().message);
  m_isOn = true;
  if (const CUptiResult result = m_library.timestamp(&m_startNs); result != CUPTI_SUCCESS)
    throw DeviceFault(errorOf(result, "tell the time").message);
}

/// Without force, CUPTI keeps buffers that it may still write to; if forced immediately, it may deliver records without
/// an end time.
std::vector<std::pair<Owner, DeviceActivity>> CuptiSession::stop() {
  m_isOn = false;
  CUptiResult flushed = m_library.flush(0);
  if (flushed == CUPTI_SUCCESS) flushed = m_library.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  disableAll();
  if (flushed != CUPTI_SUCCESS) throw DeviceFault(errorOf(flushed, "deliver records").message);
  const std::lock_guard lock(m_mutex);
  refuseLosses();
  std::ranges::stable_sort(m_records, {}, &Record::startNs);
  std::vector<std::pair<Owner, DeviceActivity>> activities;
  // Nothing can begin before it was launched; the clocks of host and device may differ by a little.
  const std::uint64_t startNs = std::min(m_startNs, m_records.empty() ? m_startNs : m_records.front().startNs);
  for (Record& record : m_records) {
    record.activity.startNs = static_cast<double>(record.startNs - startNs);
    activities.emplace_back(ownerOf(record), std::move(record.activity));
  }
  m_records.clear();
  return activities;
}

void CuptiSession::refuseLosses() const {
  const auto isUntimed = [](const Record& record) { return record.startNs == 0 || record.endNs < record.startNs; };
  const auto numUntimed = static_cast<std::size_t>(std::ranges::count_if(m_records, isUntimed));
  if (m_numDropped + numUntimed == 0 && !m_records.empty()) return;
  throw DeviceFault(
      fmt::format("CUPTI delivered {} records, lost {}, and gave {} impossible times, so it cannot time the steps. Use "
                  "--timing events.",
                  m_records.size(), m_numDropped, numUntimed));
}

Owner CuptiSession::ownerOf(const Record& record) const {
  if (record.node != 0) {
    const auto found = m_ownersOfNodes.find(record.node);
    return found == m_ownersOfNodes.end() ? 0 : found->second;
  }
  const auto found = m_ownersOfCalls.find(record.correlation);
  return found == m_ownersOfCalls.end() ? 0 : found->second;
}

void CUPTIAPI CuptiSession::onEvent(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId event, const void* data) {
  if (domain != CUPTI_CB_DOMAIN_RESOURCE) return;
  const auto& resource = *static_cast<const CUpti_ResourceData*>(data);
  static_cast<CuptiSession*>(self)->noteNode(event, *static_cast<const CUpti_GraphData*>(resource.resourceDescriptor));
}

/// A captured node belongs to the launching owner; a node of the executable graph to the owner of the captured one.
void CuptiSession::noteNode(CUpti_CallbackId event, const CUpti_GraphData& data) {
  std::uint64_t node = 0;
  if (m_library.graphNodeId(data.node, &node) != CUPTI_SUCCESS) return;
  const std::lock_guard lock(m_mutex);
  if (event == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED && t_owner != 0) m_ownersOfNodes[node] = t_owner;
  if (event != CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) return;
  std::uint64_t original = 0;
  if (m_library.graphNodeId(data.originalNode, &original) != CUPTI_SUCCESS) return;
  if (const auto found = m_ownersOfNodes.find(original); found != m_ownersOfNodes.end())
    m_ownersOfNodes[node] = Owner{found->second};
}

void CUPTIAPI CuptiSession::onBufferWanted(uint8_t** buffer, std::size_t* size, std::size_t* maxRecords) {
  *buffer = buffers().take();
  *size = Buffers::kBytes;
  *maxRecords = 0;  // no limit but the buffer's size
}

void CUPTIAPI CuptiSession::onBufferFilled(CUcontext context, uint32_t stream, uint8_t* buffer, std::size_t /*size*/,
                                           std::size_t filled) {
  {
    const std::lock_guard lock(g_readerMutex);
    if (g_reader) g_reader->take(buffer, filled, context, stream);
  }
  buffers().giveBack(buffer);
}

void CuptiSession::take(uint8_t* buffer, std::size_t filled, CUcontext context, uint32_t stream) {
  std::size_t numDropped = 0;
  m_library.numDropped(context, stream, &numDropped);
  const std::lock_guard lock(m_mutex);
  m_numDropped += numDropped;
  read(buffer, filled);
}

void CuptiSession::read(uint8_t* buffer, std::size_t filled) {
  CUpti_Activity* record = nullptr;
  while (m_library.nextRecord(buffer, filled, &record) == CUPTI_SUCCESS) add(*record);
}

void CuptiSession::add(const CUpti_Activity& record) {
  const void* const data = &record;
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      m_records.push_back(recordOf(*static_cast<const CUpti_ActivityKernel10*>(data)));
      return;
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = *static_cast<const CUpti_ActivityMemcpy6*>(data);
      m_records.push_back(recordOf(copy, directionOf(copy), formatBytes(static_cast<std::int64_t>(copy.bytes))));
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& fill = *static_cast<const CUpti_ActivityMemset4*>(data);
      m_records.push_back(recordOf(fill, "fill", formatBytes(static_cast<std::int64_t>(fill.bytes))));
      return;
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& call = *static_cast<const CUpti_ActivityExternalCorrelation*>(data);
      if (call.externalKind == kOurKind) m_ownersOfCalls[call.correlationId] = call.externalId;
      return;
    }
    default: return;  // calls: their owners come in separate records
  }
}

class CuptiTrace final : public DeviceTrace {
 public:
  explicit CuptiTrace(std::shared_ptr<CuptiSession> session)
      : m_session(std::move(session)), m_trace(m_session->nextTrace()) {}

  void beginStep(std::size_t step) override { m_session->begin(m_trace + step); }
  void endStep() override { m_session->end(); }
  void start() override { m_session->start(); }

  std::vector<DeviceActivity> stop() override {
    std::vector<DeviceActivity> activities;
    bool hasOwners = false;
    for (auto& [owner, activity] : m_session->stop()) {
      hasOwners |= owner != 0;
      const bool isOurs = owner >> kStepBits == m_trace >> kStepBits;
      activity.step = isOurs ? static_cast<std::size_t>(owner - m_trace) : DeviceActivity::kNoStep;
      activities.push_back(std::move(activity));
    }
    if (!hasOwners)
      throw DeviceFault("CUPTI delivered no record with its launch, so it cannot time the steps. Use --timing events.");
    return activities;
  }

 private:
  std::shared_ptr<CuptiSession> m_session;
  Owner m_trace;
};

}  // namespace

Result<std::unique_ptr<DeviceTrace>> makeCuptiTrace(const Cupti& library) {
  Result<std::shared_ptr<CuptiSession>> session = CuptiSession::open(library);
  if (!session) return session.error();
  return std::unique_ptr<DeviceTrace>(std::make_unique<CuptiTrace>(std::move(*session)));
}

}  // namespace fuseline::cuda
