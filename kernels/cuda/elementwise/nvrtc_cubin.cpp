// Hands NVRTC the generated code and the device headers, which are part of this module.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/hash.h"
#include "kernels/cuda/elementwise/nvrtc_compiler.h"
#include "kernels/cuda/support/gpu_target.h"
#include "kernels/cuda/support/shared_library.h"

#include <algorithm>
#include <array>

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nvrtc.h>

namespace fuseline::cuda {

namespace {

struct Header {
  const char* name;
  const char* text;
};

/// The device headers as CMake found them, and the little that they use of the standard library, which NVRTC lacks.
constexpr Header kHeaders[] = {
#include "kernels/cuda/device_headers.inc"
    {"cstdint",
     "#pragma once\n"
     "namespace std { using uint8_t = unsigned char; using uint16_t = unsigned short; using uint32_t = unsigned;\n"
     "using int64_t = long; using uint64_t = unsigned long; using uintptr_t = unsigned long; }\n"},
    {"bit",
     "#pragma once\n"
     "namespace std { template <class To, class From> constexpr To bit_cast(const From& from) {\n"
     "return __builtin_bit_cast(To, from); } }\n"},
};
constexpr std::size_t kNumHeaders = std::size(kHeaders);

struct Nvrtc {
  decltype(nvrtcVersion)* version = nullptr;
  decltype(nvrtcCreateProgram)* create = nullptr;
  decltype(nvrtcDestroyProgram)* destroy = nullptr;
  decltype(nvrtcCompileProgram)* compile = nullptr;
  decltype(nvrtcGetErrorString)* errorString = nullptr;
  decltype(nvrtcGetProgramLogSize)* logSize = nullptr;
  decltype(nvrtcGetProgramLog)* log = nullptr;
  decltype(nvrtcGetCUBINSize)* cubinSize = nullptr;
  decltype(nvrtcGetCUBIN)* cubin = nullptr;
  decltype(nvrtcGetPTXSize)* ptxSize = nullptr;
  decltype(nvrtcGetPTX)* ptx = nullptr;
  decltype(nvrtcGetNumSupportedArchs)* numTargets = nullptr;
  decltype(nvrtcGetSupportedArchs)* targets = nullptr;
};

void bind(Symbols& symbols, Nvrtc& found) {
  symbols.find(found.version, "nvrtcVersion");
  symbols.find(found.create, "nvrtcCreateProgram");
  symbols.find(found.destroy, "nvrtcDestroyProgram");
  symbols.find(found.compile, "nvrtcCompileProgram");
  symbols.find(found.errorString, "nvrtcGetErrorString");
  symbols.find(found.logSize, "nvrtcGetProgramLogSize");
  symbols.find(found.log, "nvrtcGetProgramLog");
  symbols.find(found.cubinSize, "nvrtcGetCUBINSize");
  symbols.find(found.cubin, "nvrtcGetCUBIN");
  symbols.find(found.ptxSize, "nvrtcGetPTXSize");
  symbols.find(found.ptx, "nvrtcGetPTX");
  symbols.find(found.numTargets, "nvrtcGetNumSupportedArchs");
  symbols.find(found.targets, "nvrtcGetSupportedArchs");
}

/// NVRTC opens the library of its built-in functions by name when it first compiles, and would look for it where the
/// dynamic linker does. One that is loaded is found wherever it came from.
Result<Nvrtc> withBuiltins(const Nvrtc& nvrtc) {
  int major = 0;
  int minor = 0;
  nvrtc.version(&major, &minor);
  const Result<void*> builtins =
      openBeside(reinterpret_cast<const void*>(nvrtc.version), fmt::format("libnvrtc-builtins.so.{}.{}", major, minor));
  if (!builtins) return builtins.error();
  return nvrtc;
}

Result<Nvrtc> loadNvrtc() {
  const Result<Nvrtc> nvrtc = loadFunctions<Nvrtc>("libnvrtc.so", CUDART_VERSION / 1000, bind);
  return nvrtc ? withBuiltins(*nvrtc) : nvrtc;
}

/// Looked for once.
const Result<Nvrtc>& nvrtcLibrary() {
  static const Result<Nvrtc> nvrtc = loadNvrtc();
  return nvrtc;
}

/// Products and sums are rounded as they are written, in every kernel that the same code goes into.
constexpr std::array kOptions = {"--std=c++20", "--device-as-default-execution-space", "--fmad=false"};

/// Everything else that a binary depends on, next to its source and its architecture.
std::string builtInText() {
  std::string headers;
  for (const Header& header : kHeaders) headers += header.text;
  return fmt::format("{}, headers {:016x}", fmt::join(kOptions, " "), fnv1a64(headers));
}

/// One compilation.
class Compilation {
 public:
  explicit Compilation(const Nvrtc& nvrtc) : m_nvrtc(nvrtc) {}
  ~Compilation() {
    if (m_program) m_nvrtc.destroy(&m_program);
  }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  nvrtcResult run(const std::string& source, const std::string& architecture, bool isStrict) {
    std::array<const char*, kNumHeaders> names{};
    std::array<const char*, kNumHeaders> texts{};
    for (std::size_t i = 0; i < kNumHeaders; ++i) {
      names[i] = kHeaders[i].name;
      texts[i] = kHeaders[i].text;
    }
    const nvrtcResult created =
        m_nvrtc.create(&m_program, source.c_str(), "elementwise.cu", kNumHeaders, texts.data(), names.data());
    if (created != NVRTC_SUCCESS) return created;
    const std::string target = "--gpu-architecture=" + architecture;
    std::vector<const char*> options = {target.c_str()};
    options.insert(options.end(), kOptions.begin(), kOptions.end());
    if (isStrict)
      options.insert(options.end(), {"--ptxas-options=--warn-on-spills", "--ptxas-options=--warn-on-local-memory-usage",
                                     "--ptxas-options=--warning-as-error"});
    return m_nvrtc.compile(m_program, static_cast<int>(options.size()), options.data());
  }

  std::string log() const {
    std::size_t size = 0;
    if (!m_program || m_nvrtc.logSize(m_program, &size) != NVRTC_SUCCESS || size < 2) return "no report";
    std::string text(size - 1, ' ');
    m_nvrtc.log(m_program, text.data());
    return text;
  }

  /// PTX of a virtual architecture, which has no machine code.
  std::vector<char> code(const std::string& architecture) const {
    const bool isVirtual = architecture.starts_with("compute_");
    std::size_t size = 0;
    if ((isVirtual ? m_nvrtc.ptxSize : m_nvrtc.cubinSize)(m_program, &size) != NVRTC_SUCCESS) return {};
    std::vector<char> binary(size);
    if ((isVirtual ? m_nvrtc.ptx : m_nvrtc.cubin)(m_program, binary.data()) != NVRTC_SUCCESS) return {};
    return binary;
  }

 private:
  const Nvrtc& m_nvrtc;
  nvrtcProgram m_program = nullptr;
};

}  // namespace

Verdict hasNvrtc() {
  const Result<Nvrtc>& nvrtc = nvrtcLibrary();
  return nvrtc ? Verdict::yes() : Verdict::no(nvrtc.error().message);
}

Result<std::string> nvrtcVersionText() {
  const Result<Nvrtc>& nvrtc = nvrtcLibrary();
  if (!nvrtc) return nvrtc.error();
  int major = 0;
  int minor = 0;
  nvrtc->version(&major, &minor);
  return fmt::format("{}.{}", major, minor);
}

std::string nvrtcTarget(ComputeCapability gpu) {
  const Result<Nvrtc>& nvrtc = nvrtcLibrary();
  int count = 0;
  if (!nvrtc || nvrtc->numTargets(&count) != NVRTC_SUCCESS) return nvrtcTargetFor(gpu, {});
  std::vector<int> known(static_cast<std::size_t>(count));
  if (nvrtc->targets(known.data()) != NVRTC_SUCCESS) known.clear();
  std::ranges::sort(known);
  return nvrtcTargetFor(gpu, known);
}

Result<std::vector<char>> compileToCubin(const std::string& source, const std::string& architecture, bool isStrict) {
  const Result<Nvrtc>& nvrtc = nvrtcLibrary();
  if (!nvrtc) return nvrtc.error();
  Compilation compilation(*nvrtc);
  const nvrtcResult result = compilation.run(source, architecture, isStrict);
  std::vector<char> binary = result == NVRTC_SUCCESS ? compilation.code(architecture) : std::vector<char>();
  if (!binary.empty()) return binary;
  return Error{fmt::format("NVRTC did not compile an elementwise program for {}: {}. Its report: {}", architecture,
                           nvrtc->errorString(result), compilation.log()),
               ErrorKind::RunFailed};
}

std::string cubinOrigin(const std::string& architecture) {
  const Result<Nvrtc>& nvrtc = nvrtcLibrary();
  if (!nvrtc) return architecture;
  int major = 0;
  int minor = 0;
  nvrtc->version(&major, &minor);
  return fmt::format("{}, NVRTC {}.{}, {}", architecture, major, minor, builtInText());
}

std::string bundledOrigin(const std::string& architecture) {
  return fmt::format("{}, bundle, {}", architecture, builtInText());
}

}  // namespace fuseline::cuda
