// Loads compiled programs onto the device.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/nvrtc_compiler.h"

#include "kernels/cuda/elementwise/elementwise_source.h"
#include "kernels/cuda/elementwise/program_cache.h"
#include "kernels/cuda/stream/launch.h"
#include "kernels/cuda/support/check.h"
#include "kernels/cuda/support/shared_library.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <cuda_runtime_api.h>

namespace fuseline::cuda {

namespace {

class LoadedProgram final : public CompiledProgram {
 public:
  explicit LoadedProgram(const std::vector<char>& cubin) {
    check(cudaLibraryLoadData(&m_library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
          "load a compiled program");
    const cudaError_t found = cudaLibraryGetKernel(&m_kernel, m_library, kGeneratedKernel);
    if (found != cudaSuccess) cudaLibraryUnload(m_library);
    check(found, "find a compiled program");
  }
  ~LoadedProgram() override {
    forgetSharedBytes(reinterpret_cast<const void*>(m_kernel));
    cudaLibraryUnload(m_library);
  }
  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;

  int blocksAtOnce() const override {
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reinterpret_cast<const void*>(m_kernel),
                                                        device::kBlockThreads, 0),
          "count the blocks of a compiled program");
    return blocks;
  }

  void launch(const device::Arguments& arguments, const ElementwiseShape& shape, float* columnParts, float* rowParts,
              Stream stream) const override {
    device::Arguments given = arguments;
    device::Grid grid = shape.grid;
    void* pointers[] = {&given, &grid, &columnParts, &rowParts};
    launchFunction(reinterpret_cast<const void*>(m_kernel), dim3(shape.blocksX, shape.blocksY),
                   dim3(shape.threadsX, shape.threadsY()), pointers, shape.sharedBytes, stream);
  }

 private:
  cudaLibrary_t m_library = nullptr;
  cudaKernel_t m_kernel = nullptr;
};

/// Calls run(i) for every i below count, on at most as many threads as the host runs at once.
template <class Run>
void runSideBySide(std::size_t count, const Run& run) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) run(i);
  };
  std::vector<std::jthread> threads;
  const std::size_t most = std::min<std::size_t>(count, std::max(1U, std::thread::hardware_concurrency()));
  for (std::size_t i = 1; i < most; ++i) threads.emplace_back(work);
  work();
}

class NvrtcCompiler final : public PreparingCompiler {
 public:
  NvrtcCompiler(std::string architecture, const ProgramFolders& folders, std::function<void(const Error&)> onRefusal)
      : m_architecture(std::move(architecture)),
        m_kept(folders.kept, cubinOrigin(m_architecture)),
        m_bundled(folders.bundled, bundledOrigin(m_architecture)),
        m_onRefusal(std::move(onRefusal)) {}

  Result<std::shared_ptr<const CompiledProgram>> compile(const std::string& source) override {
    const std::lock_guard lock(m_mutex);
    auto compiled = recall(source);
    if (!compiled) m_onRefusal(compiled.error());
    return compiled;
  }

  /// One program is compiled where it is needed.
  void prepare(const std::vector<std::string>& sources) override {
    const std::lock_guard lock(m_mutex);
    std::vector<std::string> missing;
    std::ranges::copy_if(sources, std::back_inserter(missing), [&](const std::string& source) {
      return !m_loaded.contains(source) && !m_compiled.contains(source) && !m_kept.find(source) &&
             !m_bundled.find(source);
    });
    if (missing.size() < 2) return;
    std::vector<std::optional<std::vector<char>>> cubins(missing.size());
    runSideBySide(missing.size(), [&](std::size_t i) {
      if (Result<std::vector<char>> cubin = compileToCubin(missing[i], m_architecture)) cubins[i] = std::move(*cubin);
    });
    for (std::size_t i = 0; i < missing.size(); ++i) {
      if (!cubins[i]) continue;
      m_kept.keep(missing[i], *cubins[i]);
      m_compiled.emplace(std::move(missing[i]), std::move(*cubins[i]));
    }
  }

 private:
  Result<std::shared_ptr<const CompiledProgram>> recall(const std::string& source) {
    if (const auto found = m_loaded.find(source); found != m_loaded.end()) return found->second;
    if (const auto prepared = m_compiled.extract(source)) return load(source, prepared.mapped());
    for (const ProgramCache* const cache : {&m_kept, &m_bundled})
      if (const auto kept = cache->find(source))
        if (const auto loaded = load(source, *kept)) return loaded;
    const Result<std::vector<char>> cubin = compileToCubin(source, m_architecture);
    if (!cubin) return cubin.error();
    m_kept.keep(source, *cubin);
    return load(source, *cubin);
  }

  Result<std::shared_ptr<const CompiledProgram>> load(const std::string& source, const std::vector<char>& cubin) {
    try {
      return m_loaded.emplace(source, std::make_shared<const LoadedProgram>(cubin)).first->second;
    } catch (const DeviceFault& refusal) {
      cudaGetLastError();  // a refused program breaks nothing: take its error off the record
      return Error{refusal.what(), ErrorKind::RunFailed};
    }
  }

  std::string m_architecture;
  ProgramCache m_kept;
  ProgramCache m_bundled;
  std::function<void(const Error&)> m_onRefusal;
  std::mutex m_mutex;
  std::map<std::string, std::vector<char>> m_compiled;                     // by source: prepared, and not loaded yet
  std::map<std::string, std::shared_ptr<const CompiledProgram>> m_loaded;  // by source
};

}  // namespace

std::filesystem::path bundledPrograms() {
  const std::filesystem::path folder = folderOf(reinterpret_cast<const void*>(&bundledPrograms)) / "programs";
  std::error_code ignored;
  return std::filesystem::is_directory(folder, ignored) ? folder : std::filesystem::path();
}

std::unique_ptr<PreparingCompiler> makeNvrtcCompiler(std::string architecture, const ProgramFolders& folders,
                                                     std::function<void(const Error&)> onRefusal) {
  return std::make_unique<NvrtcCompiler>(std::move(architecture), folders, std::move(onRefusal));
}

}  // namespace fuseline::cuda
