// Demangles with the compiler's own library.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/trace/activity_text.h"

#include "core/support/text.h"

#include <cstdlib>
#include <memory>

#include <cxxabi.h>
#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

/// 128x2x1 is "128x2"; 1x1x1 is "1".
std::string dimensions(const std::array<std::int64_t, 3>& size) {
  std::string text = fmt::format("{}", size[0]);
  if (size[1] > 1 || size[2] > 1) text += fmt::format("x{}", size[1]);
  if (size[2] > 1) text += fmt::format("x{}", size[2]);
  return text;
}

/// Where the parameters of "void f<int (*)(int)>(int, float)" begin: at the bracket that the last one closes.
std::size_t beginOfParameters(const std::string& declaration) {
  int depth = 0;
  for (std::size_t at = declaration.size(); at-- > 0;) {
    if (declaration[at] == ')') ++depth;
    if (declaration[at] == '(' && --depth == 0) return at;
  }
  return declaration.size();
}

}  // namespace

std::string kernelName(const char* mangled) {
  if (!mangled) return "unnamed kernel";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(mangled, nullptr, nullptr, &status),
                                                         &std::free);
  if (status != 0 || !text) return mangled;
  constexpr std::string_view kReturnType = "void ";  // of every kernel; only mangled names of templates have it
  std::string name = text.get();
  name.erase(beginOfParameters(name));
  if (name.starts_with(kReturnType)) name.erase(0, kReturnType.size());
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  for (auto at = name.find(kUnnamed); at != std::string::npos; at = name.find(kUnnamed))
    name.erase(at, kUnnamed.size());
  return name;
}

std::string toString(const KernelShape& shape) {
  std::string text = fmt::format("grid {}, block {}", dimensions(shape.grid), dimensions(shape.block));
  if (shape.cluster[0] * shape.cluster[1] * shape.cluster[2] > 1)
    text += fmt::format(", cluster {}", dimensions(shape.cluster));
  text += fmt::format(", {} registers", shape.registersPerThread);
  if (shape.sharedBytes > 0) text += fmt::format(", {} shared memory", formatBytes(shape.sharedBytes));
  return text;
}

}  // namespace fuseline::cuda
