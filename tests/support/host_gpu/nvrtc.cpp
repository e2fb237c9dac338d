// There is no NVRTC for the host's GPU: elementwise code is interpreted.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/nvrtc_compiler.h"

namespace fuseline::cuda {

namespace {
constexpr const char* kNone = "The GPU of host memory has none.";
}  // namespace

Verdict hasNvrtc() { return Verdict::no(kNone); }
Result<std::string> nvrtcVersionText() { return Error{kNone, ErrorKind::RunFailed}; }
std::string nvrtcTarget(ComputeCapability) { return "none"; }
Result<std::vector<char>> compileToCubin(const std::string&, const std::string&, bool) {
  return Error{kNone, ErrorKind::RunFailed};
}
std::string cubinOrigin(const std::string& architecture) { return architecture; }
std::string bundledOrigin(const std::string& architecture) { return architecture + ", bundle"; }

}  // namespace fuseline::cuda
