// A shared library a program, in a temporary folder.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simt/host_compiler.h"

#include "kernels/cuda/elementwise/elementwise_source.h"
#include "tests/support/simt/include/kernels/cuda/stream/launch.h"
#include "tests/support/temporary_folder.h"

#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include <fmt/format.h>

namespace fuseline::testing {

namespace {

using GeneratedKernel = void(cuda::device::Arguments, cuda::device::Grid, float*, float*);

class HostProgram final : public cuda::CompiledProgram {
 public:
  explicit HostProgram(GeneratedKernel* kernel) : m_kernel(kernel) {}
  /// As with 48 registers a thread on a GPU.
  int blocksAtOnce() const override { return 5; }
  void launch(const cuda::device::Arguments& arguments, const cuda::ElementwiseShape& shape, float* columnParts,
              float* rowParts, cuda::Stream stream) const override {
    cuda::launch(m_kernel, dim3(shape.blocksX, shape.blocksY), dim3(shape.threadsX, shape.threadsY()),
                 shape.sharedBytes, stream, arguments, shape.grid, columnParts, rowParts);
  }

 private:
  GeneratedKernel* m_kernel;
};

class HostCompiler final : public cuda::ProgramCompiler {
 public:
  Result<std::shared_ptr<const cuda::CompiledProgram>> compile(const std::string& source) override {
    if (const auto found = m_compiled.find(source); found != m_compiled.end()) return found->second;
    const std::string stem = (m_folder.path() / fmt::format("program{}", m_compiled.size())).string();
    std::ofstream(stem + ".cpp") << source;
    const std::string command = fmt::format("{} {}.cpp -o {}.so", FUSELINE_PROGRAM_COMPILER, stem, stem);
    if (std::system(command.c_str()) != 0) return Error{"The host's compiler refuses:\n" + source};
    return m_compiled.emplace(source, load(stem + ".so")).first->second;
  }

 private:
  static std::shared_ptr<const cuda::CompiledProgram> load(const std::string& path) {
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(dlerror());
    auto* const kernel = reinterpret_cast<GeneratedKernel*>(dlsym(library, cuda::kGeneratedKernel));
    if (!kernel) throw std::runtime_error("The library has no kernel.");
    return std::make_shared<const HostProgram>(kernel);
  }

  TemporaryFolder m_folder;
  std::map<std::string, std::shared_ptr<const cuda::CompiledProgram>> m_compiled;
};

}  // namespace

std::unique_ptr<cuda::ProgramCompiler> makeHostCompiler() { return std::make_unique<HostCompiler>(); }

}  // namespace fuseline::testing
