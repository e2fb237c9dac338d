// Backend: the interface of a device that runs plans. Implemented in kernels/; passed to the executor by app/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective/communicator.h"
#include "core/plan/plan.h"
#include "core/profile/device_peaks.h"
#include "core/support/result.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fuseline {

struct DeviceInfo {
  std::string id;            // "cpu", "cuda:0"
  std::string name;          // "AMD EPYC 9755, 2 threads"
  std::string architecture;  // "avx512_bf16", "sm_90"
  std::int64_t memoryBytes = 0;
  /// Facts for run files: library versions, instruction sets, drivers.
  std::vector<std::pair<std::string, std::string>> details;
};

/// Device memory with an owner. The first touch has happened: no page fault is left for a timed loop.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual std::byte* data() = 0;
  virtual std::size_t sizeBytes() const = 0;
};

/// One step, compiled for a device.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Scratch memory that run() may use; shared between steps.
  virtual std::size_t workspaceBytes() const { return 0; }
  /// operands: device pointers in the order of Step::operands, nullptr for an empty tensor. May be asynchronous;
  /// Backend::synchronize waits.
  virtual void run(std::span<std::byte* const> operands, std::byte* workspace) = 0;
  /// Number of device operations in the last run(): kernels, library calls, copies and fills.
  virtual std::int64_t launches() const { return 1; }
  /// The implementation where there was a choice, or where it is unexpected: clauses for people, such as "GELU by a
  /// kernel of its own, which was faster". Usually empty.
  virtual std::vector<std::string> ways() const { return {}; }
};

/// A copy between device and host memory, concurrent with the device's other work.
class Transfer {
 public:
  virtual ~Transfer() = default;
  /// Starts when all that was launched so far has ended. Does not wait.
  virtual void begin() = 0;
  /// Later launches start when the copy has ended. Does not wait either.
  virtual void end() = 0;
};

enum class TransferDirection { ToHost, ToDevice };

/// Moments on a device's own clock, in the order in which it works. Taking one does not wait.
class DeviceClock {
 public:
  virtual ~DeviceClock() = default;
  /// Records the time at which all earlier launches have ended. moment: below the requested number.
  virtual void mark(std::size_t moment) = 0;
  /// Takes the moment at which all transfers begun so far have ended.
  virtual void markTransfers(std::size_t moment) = 0;
  /// Keeps the device busy for about this duration, so that the host gets ahead with its next launches.
  virtual void takeHeadStart(std::chrono::nanoseconds duration) = 0;
  /// Between two moments that were taken. Only after Backend::synchronize.
  virtual double nanosecondsBetween(std::size_t from, std::size_t to) = 0;
};

/// A kernel, a copy or a fill of memory, as recorded by the device's tracing library.
struct DeviceActivity {
  static constexpr std::size_t kNoStep = static_cast<std::size_t>(-1);

  std::string name;           // of a kernel its name in the code, or "copy, host to device", "fill"
  std::string configuration;  // for people: "grid 128, block 256, 40 registers, 1 KiB shared memory"
  std::size_t step = kNoStep;
  double startNs = 0.0;  // since DeviceTrace::start() returned
  double durationNs = 0.0;
};

/// Sees everything that a device does for a step by itself, within recorded launches, too.
class DeviceTrace {
 public:
  virtual ~DeviceTrace() = default;
  /// Launches and recordings from here to endStep() belong to this step.
  virtual void beginStep(std::size_t step) = 0;
  virtual void endStep() = 0;
  /// Starts recording activities.
  virtual void start() = 0;
  /// The activities since start(), in the order of their start. Call after Backend::synchronize. Throws if some were
  /// lost.
  virtual std::vector<DeviceActivity> stop() = 0;
};

/// Launches that a device has recorded, to be launched together again.
class RecordedLaunches {
 public:
  virtual ~RecordedLaunches() = default;
  virtual void launch() = 0;
};

/// Fills a device's caches with other data, so that a plan's first reads come from memory.
class CacheFiller {
 public:
  virtual ~CacheFiller() = default;
  /// Returns when it is done. Errors: a fault of the device.
  virtual Result<void> fill() = 0;
};

struct CompileOptions {
  /// Parameters are the same in every call (inference), so that packed copies may be kept between calls.
  bool parametersAreConstant = false;
};

/// A kind of GEMM, and whether the device's GEMM library supports it.
struct ProductSupport {
  std::string factors;   // "e4m3 per_tensor"
  std::string result;    // "bf16"
  std::string epilogue;  // by the library's name: "GELU_AUX_BIAS"
  Verdict isSupported = Verdict::yes();
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const DeviceInfo& device() const = 0;
  /// Is there a kernel for these ops? The verdict names the missing feature. Safe to call from several threads.
  virtual Verdict supports(const KernelQuery& query) const = 0;
  /// Bytes that the kernel of a step moves more than once, and its launches beyond the first, as far as they follow
  /// from the plan. Safe to call from several threads.
  virtual Saving extraCost(const Plan& /*plan*/, const Step& /*step*/) const { return {}; }
  /// Whether the device multiplies a recipe's quantized values natively, in all three GEMMs of a linear op; no has the
  /// reason and names the supported recipes. Unsupported recipes can still be compiled: GEMMs then read dequantized
  /// values. The default decides by the architecture: devices that are no GPUs compute any format in software.
  virtual Verdict multiplies(const Recipe& recipe);
  virtual Result<std::unique_ptr<Kernel>> compile(const Graph& graph, const Plan& plan, const Step& step,
                                                  const CompileOptions& options) = 0;
  virtual Result<std::unique_ptr<DeviceMemory>> allocate(std::size_t sizeBytes) = 0;
  /// Free device memory now; other programs may use the rest. Nothing: it is not known, or not meaningful.
  virtual std::optional<std::int64_t> freeBytes() const { return std::nullopt; }
  /// Host memory that the device copies to and from concurrently with its other work.
  virtual Result<std::unique_ptr<DeviceMemory>> allocateOnHost(std::size_t sizeBytes) { return allocate(sizeBytes); }
  /// If the device's memory is the host's, begin() copies.
  virtual std::unique_ptr<Transfer> makeTransfer(std::span<std::byte> to, const std::byte* from,
                                                 TransferDirection direction);
  /// Wraps a kernel that was not made by compile() like one that was: with the step's name in profilers and in messages
  /// about faults.
  virtual std::unique_ptr<Kernel> named(std::unique_ptr<Kernel> kernel, const Plan& /*plan*/, const Step& /*step*/) {
    return kernel;
  }
  /// Is its memory the host's, so that ranks exchange it without a library of the device?
  virtual bool hasHostMemory() const { return false; }
  /// The backend of one of `ranks` ranks that share this device, with its share of the threads. nullptr: the device
  /// cannot be shared.
  virtual std::shared_ptr<Backend> shareOf(int /*ranks*/) { return nullptr; }
  virtual void upload(std::byte* device, std::span<const std::byte> host) = 0;
  virtual void download(std::span<std::byte> host, const std::byte* device) = 0;
  virtual void synchronize() = 0;
  /// nullptr: a launch is over when it returns, so the host's clock measures it.
  virtual std::unique_ptr<DeviceClock> makeClock(std::size_t /*numMoments*/) { return nullptr; }
  /// nullptr: there is nothing to trace, because nothing runs on a separate device. Errors: a sentence about the
  /// obstacle, such as another program that traces this process.
  virtual Result<std::unique_ptr<DeviceTrace>> makeTrace() { return std::unique_ptr<DeviceTrace>(); }
  /// Calls `launches` and records its launches, which do not run. nullptr: this device does not record.
  /// Errors: those of `launches`, or a launch that cannot be recorded; nothing ran then, either.
  virtual Result<std::unique_ptr<RecordedLaunches>> record(const std::function<Result<void>()>& /*launches*/) {
    return std::unique_ptr<RecordedLaunches>();
  }
  /// Owns memory of twice the last-level cache's size. Errors: no memory; (Usage) times of this device are not
  /// meaningful.
  virtual Result<std::unique_ptr<CacheFiller>> makeCacheFiller() {
    return Error{device().id + ": it is not a performance target, so cold-cache measurement is not available.",
                 ErrorKind::Usage};
  }
  /// Takes about a second. Errors (Usage): times of this device are not meaningful.
  virtual Result<DevicePeaks> measurePeaks() {
    return Error{device().id + ": it is not a performance target, so it has no peaks.", ErrorKind::Usage};
  }
  /// Current conditions of the device, for run files: clocks, power, temperature. Empty: not reported.
  virtual std::vector<std::pair<std::string, std::string>> conditions() { return {}; }
  /// Has a fault made the device unusable for this process? This is permanent; another process may still use it.
  virtual bool isLost() const { return false; }
  /// Empty: no GEMM library can be probed. Errors: the library is missing.
  virtual Result<std::vector<ProductSupport>> probeProducts() { return std::vector<ProductSupport>(); }
  /// The communicator of a rank for memory of this device; the steps of the rank are named with it from here on. All
  /// ranks of `host` call it at once, each with a separate device. host: of the same ranks, for memory of the host; it
  /// outlives the result. Errors (NoDevice): the library is missing or too old, or refuses the ranks; a sentence with
  /// the next step.
  virtual Result<std::unique_ptr<Communicator>> join(Communicator& host, SumOrder order);
};

/// The Capabilities of a backend, for fuse().
Capabilities capabilitiesOf(std::shared_ptr<const Backend> backend);

/// A device that this build supports, whether or not it can run here.
struct DeviceStatus {
  DeviceInfo info;
  Verdict canRun = Verdict::yes();
  /// For a GPU: the recipes that it multiplies natively. Nothing: no GPU; it computes all of them in software.
  std::optional<std::vector<std::string>> nativeRecipes = std::nullopt;
};

/// The backends of this program. Filled by app/backends.cpp.
class BackendRegistry {
 public:
  virtual ~BackendRegistry() = default;
  virtual std::vector<DeviceStatus> devices() const = 0;
  /// Errors (NoDevice): the device does not exist or cannot run, with the reason.
  virtual Result<std::shared_ptr<Backend>> open(std::string_view deviceId) const = 0;
  /// The kernels of the device. Sufficient for planning, and does not touch a GPU. Empty: there is no such device.
  virtual Capabilities capabilities(std::string_view deviceId) const;
};

/// Runs every step through the ops' double-precision references. Slow and exact: the oracle of the tests, and the
/// device "reference".
std::shared_ptr<Backend> makeReferenceBackend();

}  // namespace fuseline
