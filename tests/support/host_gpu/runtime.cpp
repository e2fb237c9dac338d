// The functions of the CUDA runtime that the backend calls.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/host_gpu/host_gpu.h"
#include "tests/support/host_gpu/streams.h"
#include "tests/support/simt/gpu_profiles.h"
#include "tests/support/simt/simt.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include <cuda_runtime_api.h>

namespace fuseline::host_gpu {

namespace {

constexpr std::size_t kAlignment = 256;                        // cudaMalloc's
constexpr int kPoison = 0xff;                                  // NaN in every format
constexpr std::size_t kMemoryBytes = std::size_t{512} << 20U;  // too little to measure peaks, which takes minutes

struct Capture;

struct Stream {
  int device = 0;
  std::shared_ptr<Capture> capture;
};

struct Capture {
  Captured recorded;
  bool isBroken = false;
  bool isOver = false;
};

struct Event {
  bool hasTiming = true;
  std::shared_ptr<Moment> moment;    // null: it was not recorded
  std::shared_ptr<Capture> capture;  // in which it was recorded; null: in none
};

struct Machine {
  std::recursive_mutex mutex;
  std::map<const std::byte*, std::size_t> allocations;
  std::map<const std::byte*, std::size_t> pinned;
  std::set<Stream*> streams;
  Stream* oldest = nullptr;
  std::set<Event*> events;
  std::size_t numGraphs = 0;
  Queues queues;
  Turn turn = Turn::Late;
  std::size_t memoryBytes = kMemoryBytes;
  std::size_t usedBytes = 0;
  std::map<int, cudaError_t> lasting;  // by device
  long workUntilFault = -1;            // it faults at 0; below: never
  int numDevices = 1;
};

bool hasVariable(const char* name, std::string_view value) {
  const char* const found = std::getenv(name);
  return found && found == value;
}

/// The kernels of the harness are given to its streams from here on.
Machine& makeMachine() {
  auto* const made = new Machine();
  if (hasVariable("FUSELINE_HOST_GPU_TURN", "early")) made->turn = Turn::Early;
  simt::setMaxSharedBytes(simt::sharedBytesOf(capability()));
  if (const char* const work = std::getenv("FUSELINE_HOST_GPU_FAULT")) made->workUntilFault = std::atol(work);
  if (const char* const count = std::getenv("FUSELINE_HOST_GPUS")) made->numDevices = std::atoi(count);
  simt::setSubmitter([](const void* stream, std::function<void()> work) {
    submit(static_cast<cuda::Stream>(const_cast<void*>(stream)), std::move(work));
  });
  return *made;
}

/// Never destroyed: owners of its resources may live until the program ends.
Machine& machine() {
  static Machine& only = makeMachine();
  return only;
}

thread_local cudaError_t t_lastError = cudaSuccess;
thread_local int t_device = 0;

/// A wait for another device that takes longer never ends, as on a GPU.
constexpr auto kLongestWait = std::chrono::seconds(60);

/// Calls `isDone` until it is true; meanwhile other threads use the machine, whose lock this one has.
void waitUntil(const std::function<bool()>& isDone) {
  const auto deadline = std::chrono::steady_clock::now() + kLongestWait;
  while (!isDone()) {
    if (std::chrono::steady_clock::now() > deadline) {
      std::fputs("The host waits for a GPU that waits for another one, for ever.\n", stderr);
      std::abort();
    }
    machine().mutex.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    machine().mutex.lock();
  }
}

void finish(const Stream* stream) {
  waitUntil([&] { return machine().queues.run(stream); });
}

/// All streams of the selected device.
void finishDevice() {
  const std::set<Stream*> streams = machine().streams;
  for (const Stream* const stream : streams)
    if (machine().streams.contains(const_cast<Stream*>(stream)) && stream->device == t_device) finish(stream);
}

cudaError_t refuse(cudaError_t error) { return t_lastError = error; }

Stream* streamOf(cudaStream_t stream) {
  auto* const found = reinterpret_cast<Stream*>(stream);
  return machine().streams.contains(found) ? found : nullptr;
}
Event* eventOf(cudaEvent_t event) {
  auto* const found = reinterpret_cast<Event*>(event);
  return machine().events.contains(found) ? found : nullptr;
}

/// Every function except those that report errors: after a fault all of them return it.
template <class Call>
cudaError_t call(const Call& body) {
  const std::lock_guard lock(machine().mutex);
  cudaError_t& lasting = machine().lasting[t_device];
  if (lasting != cudaSuccess) return refuse(lasting);
  const cudaError_t error = body();
  if (lasting != cudaSuccess) return refuse(lasting);
  return error == cudaSuccess ? error : refuse(error);
}

/// A call that waits for the device, during a capture of this stream or of any: the host cannot wait, and the capture
/// is over.
bool breaksCapture(const Stream& stream) {
  if (!stream.capture) return false;
  stream.capture->isBroken = true;
  return true;
}

/// Captures of other devices are other threads'.
bool breaksAnyCapture() {
  bool breaks = false;
  for (const Stream* const stream : machine().streams)
    if (stream->device == t_device) breaks = breaksCapture(*stream) || breaks;
  return breaks;
}

std::function<bool()> once(std::function<void()> work) {
  return [work = std::move(work)] {
    work();
    return true;
  };
}

/// Work that waits for another device counts once.
/// Work that waits for another device counts once.
std::function<bool()> faulting(int device, std::function<bool()> work) {
  return [device, work = std::move(work), isBegun = std::make_shared<bool>(false)] {
    Machine& gpu = machine();
    cudaError_t& lasting = gpu.lasting[device];
    if (!std::exchange(*isBegun, true) && gpu.workUntilFault >= 0 && gpu.workUntilFault-- == 0)
      lasting = cudaErrorIllegalAddress;
    const bool isDone = lasting != cudaSuccess || work();
    if (isDone) *isBegun = false;  // a graph runs it again
    return isDone;
  };
}

void give(Stream& stream, Item item) {
  if (item.work) item.work = faulting(stream.device, std::move(item.work));
  if (stream.capture)
    stream.capture->recorded.items.emplace_back(&stream, std::move(item));
  else
    machine().queues.push(&stream, std::move(item), machine().turn);
}

bool isInside(const std::map<const std::byte*, std::size_t>& blocks, const void* begin, std::size_t bytes) {
  const auto* const address = static_cast<const std::byte*>(begin);
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin()) return false;
  const auto& [base, size] = *--after;
  return address + bytes <= base + size;
}

bool isDevice(const void* begin, std::size_t bytes) { return isInside(machine().allocations, begin, bytes); }
bool isPinned(const void* begin, std::size_t bytes) { return isInside(machine().pinned, begin, bytes); }

bool fitsKind(const void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const bool isToDevice = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool isFromDevice = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return isDevice(to, bytes) == isToDevice && isDevice(from, bytes) == isFromDevice;
}

void submitCopy(Stream& stream, void* to, const void* from, std::size_t bytes) {
  give(stream, {nullptr, once([=] { std::memcpy(to, from, bytes); }), nullptr});
}

/// Pageable memory: data for the device is read at once, and data from it is there at the return.
void copyPages(Stream& stream, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDeviceToHost) {
    submitCopy(stream, to, from, bytes);
    return finish(&stream);
  }
  const auto* const data = static_cast<const std::byte*>(from);
  give(stream, {nullptr, once([to, kept = std::vector<std::byte>(data, data + bytes)] {
                  std::memcpy(to, kept.data(), kept.size());
                }),
                nullptr});
}

cudaError_t copy(Stream& stream, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (!fitsKind(to, from, bytes, kind)) return cudaErrorInvalidValue;
  const void* const host = kind == cudaMemcpyHostToDevice ? from : to;
  const bool isBetween = kind == cudaMemcpyDeviceToDevice;
  if (isBetween || isPinned(host, bytes)) {
    submitCopy(stream, to, from, bytes);
    return cudaSuccess;
  }
  if (breaksCapture(stream)) return cudaErrorStreamCaptureUnsupported;
  copyPages(stream, to, from, bytes, kind);
  return cudaSuccess;
}

std::byte* allocate(std::map<const std::byte*, std::size_t>& blocks, std::size_t bytes) {
  const std::size_t whole = (bytes + kAlignment) / kAlignment * kAlignment;
  auto* const data = static_cast<std::byte*>(std::aligned_alloc(kAlignment, whole));
  std::memset(data, kPoison, whole);
  blocks.emplace(data, bytes);
  return data;
}

/// Frees memory that the device may still use: it waits.
cudaError_t release(std::map<const std::byte*, std::size_t>& blocks, void* data) {
  if (!data) return cudaSuccess;
  if (!blocks.contains(static_cast<std::byte*>(data))) return cudaErrorInvalidValue;
  if (breaksAnyCapture()) return cudaErrorStreamCaptureUnsupported;
  finishDevice();
  const auto found = blocks.find(static_cast<std::byte*>(data));
  if (&blocks == &machine().allocations) machine().usedBytes -= found->second;
  blocks.erase(found);
  std::free(data);
  return cudaSuccess;
}

cudaError_t makeEvent(cudaEvent_t* event, bool hasTiming) {
  return call([&] {
    auto* const made = new Event{.hasTiming = hasTiming, .moment = {}, .capture = {}};
    machine().events.insert(made);
    *event = reinterpret_cast<cudaEvent_t>(made);
    return cudaSuccess;
  });
}

cudaError_t waitFor(Stream& stream, const Event& event) {
  if (!event.moment) return cudaErrorInvalidValue;  // CUDA lets it pass, and nothing waits
  if (event.capture && event.capture->isOver) return cudaErrorCapturedEvent;
  if (stream.capture && event.capture != stream.capture) {
    breaksCapture(stream);
    return cudaErrorStreamCaptureIsolation;
  }
  if (event.capture) stream.capture = event.capture;
  give(stream, {event.moment, {}, nullptr});
  return cudaSuccess;
}

/// The graph begins when the stream reaches it.
std::function<bool()> launchOf(const Captured& graph) {
  return [&graph, running = std::make_shared<std::function<bool()>>()] {
    if (!*running) *running = graph.start(machine().turn);
    const bool isDone = (*running)();
    if (isDone) *running = nullptr;
    return isDone;
  };
}

cudaError_t endCapture(Capture& capture) {
  capture.isOver = true;
  for (Stream* const stream : machine().streams)
    if (stream->capture.get() == &capture) stream->capture.reset();
  if (capture.isBroken) return cudaErrorStreamCaptureInvalidated;
  return capture.recorded.isJoined() ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
}

}  // namespace

Turn setTurn(Turn turn) { return std::exchange(machine().turn, turn); }
void setMain(cuda::Stream stream) { machine().queues.setMain(stream ? streamOf(stream) : machine().oldest); }
std::size_t setMemoryBytes(std::size_t bytes) { return std::exchange(machine().memoryBytes, bytes); }

ComputeCapability capability() {
  const char* const wanted = std::getenv("FUSELINE_HOST_GPU");
  return wanted ? parseCapability(wanted).value() : ComputeCapability{9, 0};
}

Owned owned() {
  const Machine& gpu = machine();
  return {.allocations = gpu.allocations.size() + gpu.pinned.size(),
          .bytes = gpu.usedBytes,
          .streams = gpu.streams.size(),
          .events = gpu.events.size(),
          .graphs = gpu.numGraphs};
}

void faultInNextWork() { machine().workUntilFault = 0; }

void submit(cuda::Stream stream, std::function<void()> work) {
  const std::lock_guard lock(machine().mutex);
  submitWaiting(stream, once(std::move(work)));
}

void submitWaiting(cuda::Stream stream, std::function<bool()> advance) {
  const std::lock_guard lock(machine().mutex);
  Stream* const target = streamOf(stream);
  if (!target) throw std::logic_error("Work is launched on what is no stream.");
  if (target->device != t_device) throw std::logic_error("Work is launched on the stream of another device.");
  give(*target, {nullptr, std::move(advance), nullptr});
}

int setNumDevices(int count) { return std::exchange(machine().numDevices, count); }

int deviceOf(cuda::Stream stream) {
  const std::lock_guard lock(machine().mutex);
  const Stream* const found = streamOf(stream);
  return found ? found->device : -1;
}

bool isCapturing(cuda::Stream stream) {
  const std::lock_guard lock(machine().mutex);
  const Stream* const found = streamOf(stream);
  return found && found->capture;
}

bool isDeviceMemory(const void* begin, std::size_t bytes) {
  const std::lock_guard lock(machine().mutex);
  return isDevice(begin, bytes);
}

int currentDevice() { return t_device; }

}  // namespace fuseline::host_gpu

using namespace fuseline::host_gpu;

extern "C" {

// ---- Errors

cudaError_t cudaGetLastError() {
  const std::lock_guard lock(machine().mutex);
  return std::exchange(t_lastError, machine().lasting[t_device]);
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated: return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureUnjoined: return "capturing stream has unjoined work";
    default: return "another error";
  }
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    default: return "cudaErrorUnknown";
  }
}

// ---- The device

cudaError_t cudaGetDeviceCount(int* count) {
  return call([&] { return *count = machine().numDevices, cudaSuccess; });
}
cudaError_t cudaGetDevice(int* device) {
  return call([&] { return *device = t_device, cudaSuccess; });
}
cudaError_t cudaSetDevice(int device) {
  return call([&] {
    if (device < 0 || device >= machine().numDevices) return cudaErrorInvalidDevice;
    return t_device = device, cudaSuccess;
  });
}
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  return call([&] {
    *properties = {};
    std::strcpy(properties->name, "GPU of host memory");
    properties->major = capability().major;
    properties->minor = capability().minor;
    properties->totalGlobalMem = machine().memoryBytes;
    properties->multiProcessorCount = 2;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  return call([&] {
    constexpr int kKilohertz = 1'000'000;  // that of the harness' clock64()
    switch (attribute) {
      case cudaDevAttrMultiProcessorCount: *value = 2; break;
      case cudaDevAttrL2CacheSize: *value = 1 << 16; break;
      case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = static_cast<int>(fuseline::simt::sharedBytesOf(capability()));
        break;
      case cudaDevAttrClockRate: *value = kKilohertz; break;
      default: *value = 0;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int) {
  return call([&] { return std::strncpy(text, "0000:00:00.0", static_cast<std::size_t>(size)), cudaSuccess; });
}

// ---- Memory

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call([&] {
    *total = machine().memoryBytes;
    *free = machine().memoryBytes - std::min(machine().usedBytes, machine().memoryBytes);
    return cudaSuccess;
  });
}

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  return call([&] {
    if (breaksAnyCapture()) return cudaErrorStreamCaptureUnsupported;
    if (machine().usedBytes + bytes > machine().memoryBytes) return cudaErrorMemoryAllocation;
    machine().usedBytes += bytes;
    *data = allocate(machine().allocations, bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaFree(void* data) {
  return call([&] { return release(machine().allocations, data); });
}

cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) {
  return call([&] {
    if (breaksAnyCapture()) return cudaErrorStreamCaptureUnsupported;
    *data = allocate(machine().pinned, bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaFreeHost(void* data) {
  return call([&] { return release(machine().pinned, data); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return call([&] {
    Stream* const target = streamOf(stream);
    return target ? copy(*target, to, from, bytes, kind) : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t stream) {
  return call([&] {
    Stream* const target = streamOf(stream);
    if (!target) return cudaErrorInvalidResourceHandle;
    if (!isDevice(data, bytes)) return cudaErrorInvalidValue;
    give(*target, {nullptr, once([=] { std::memset(data, value, bytes); }), nullptr});
    return cudaSuccess;
  });
}

// ---- Streams and events

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return call([&] {
    auto* const made = new Stream{.device = t_device, .capture = {}};
    if (machine().streams.empty()) machine().queues.setMain(machine().oldest = made);
    machine().streams.insert(made);
    *stream = reinterpret_cast<cudaStream_t>(made);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call([&] {
    Stream* const found = streamOf(stream);
    if (!found) return cudaErrorInvalidResourceHandle;
    finish(found);
    machine().streams.erase(found);
    delete found;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call([&] {
    Stream* const found = streamOf(stream);
    if (!found) return cudaErrorInvalidResourceHandle;
    if (breaksCapture(*found)) return cudaErrorStreamCaptureUnsupported;
    finish(found);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call([&] {
    Stream* const found = streamOf(stream);
    if (!found) return cudaErrorInvalidResourceHandle;
    if (breaksCapture(*found)) return cudaErrorStreamCaptureUnsupported;
    // Whoever asks again and again learns of an end.
    if (!machine().queues.isIdle(found)) machine().queues.runFirst(found);
    return machine().queues.isIdle(found) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call([&] {
    Stream* const target = streamOf(stream);
    const Event* const awaited = eventOf(event);
    return target && awaited ? waitFor(*target, *awaited) : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return makeEvent(event, true); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return makeEvent(event, (flags & cudaEventDisableTiming) == 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call([&] {
    Event* const found = eventOf(event);
    if (!found) return cudaErrorInvalidResourceHandle;
    machine().events.erase(found);
    delete found;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call([&] {
    Event* const recorded = eventOf(event);
    Stream* const source = streamOf(stream);
    if (!recorded || !source) return cudaErrorInvalidResourceHandle;
    recorded->moment = std::make_shared<Moment>();
    recorded->capture = source->capture;
    give(*source, {nullptr, {}, recorded->moment});
    return cudaSuccess;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  return call([&] {
    const Event* const begin = eventOf(from);
    const Event* const end = eventOf(to);
    for (const Event* const event : {begin, end})
      if (!event || !event->moment || !event->hasTiming || event->capture) return cudaErrorInvalidResourceHandle;
    if (!begin->moment->isPast || !end->moment->isPast) return cudaErrorNotReady;
    *milliseconds = std::chrono::duration<float, std::milli>(end->moment->at - begin->moment->at).count();
    return cudaSuccess;
  });
}

// ---- Captures and graphs

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return call([&] {
    Stream* const found = streamOf(stream);
    if (!found) return cudaErrorInvalidResourceHandle;
    if (found->capture) return cudaErrorIllegalState;
    found->capture = std::make_shared<Capture>();
    found->capture->recorded.origin = found;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call([&] {
    const Stream* const found = streamOf(stream);
    if (!found) return cudaErrorInvalidResourceHandle;
    *status = !found->capture            ? cudaStreamCaptureStatusNone
              : found->capture->isBroken ? cudaStreamCaptureStatusInvalidated
                                         : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call([&] {
    *graph = nullptr;
    Stream* const found = streamOf(stream);
    if (!found || !found->capture || found->capture->recorded.origin != found) return cudaErrorIllegalState;
    const std::shared_ptr<Capture> capture = found->capture;
    const cudaError_t ended = endCapture(*capture);
    if (ended != cudaSuccess) return ended;
    ++machine().numGraphs;
    *graph = reinterpret_cast<cudaGraph_t>(new Captured(capture->recorded));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call([&] {
    --machine().numGraphs;
    delete reinterpret_cast<Captured*>(graph);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  return call([&] {
    ++machine().numGraphs;
    *executable = reinterpret_cast<cudaGraphExec_t>(new Captured(*reinterpret_cast<Captured*>(graph)));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return call([&] {
    finishDevice();
    --machine().numGraphs;
    delete reinterpret_cast<Captured*>(executable);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  return call([] { return cudaSuccess; });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return call([&] {
    Stream* const target = streamOf(stream);
    if (!target) return cudaErrorInvalidResourceHandle;
    const auto* const graph = reinterpret_cast<const Captured*>(executable);
    give(*target, {nullptr, launchOf(*graph), nullptr});
    return cudaSuccess;
  });
}

// ---- Compiled programs: it runs none, and loads one; those of the harness are compiled by the host.

cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return call([] { return cudaErrorInvalidDeviceFunction; });
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void*) {
  return call([] { return cudaErrorInvalidDeviceFunction; });
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  return call([] { return cudaErrorInvalidDeviceFunction; });
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int*, const void*, int, std::size_t) {
  return call([] { return cudaErrorInvalidDeviceFunction; });
}
cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  return call([&] {
    if (*static_cast<const char*>(code) != kLoadedProgram) return cudaErrorInvalidKernelImage;
    *library = reinterpret_cast<cudaLibrary_t>(&machine());
    return cudaSuccess;
  });
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char*) {
  return call([&] {
    *kernel = reinterpret_cast<cudaKernel_t>(library);
    return cudaSuccess;
  });
}
cudaError_t cudaLibraryUnload(cudaLibrary_t) {
  return call([] { return cudaSuccess; });
}

}  // extern "C"
