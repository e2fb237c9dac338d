// Looks up cuDNN's functions by their names.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/cudnn.h"

#include "kernels/cuda/support/shared_library.h"

#include <fmt/format.h>

namespace fuseline::cuda {

Result<Cudnn> loadCudnn() {
  const std::string fileName = fmt::format("libcudnn.so.{}", kCudnnMajor);
  const Result<void*> library = openLibrary(fileName);
  if (!library) return library.error();
  Symbols symbols(*library);
  Cudnn found;
  symbols.find(found.version, "cudnnGetVersion");
  symbols.find(found.errorString, "cudnnGetErrorString");
  symbols.find(found.lastError, "cudnnGetLastErrorString");
  symbols.find(found.create, "cudnnCreate");
  symbols.find(found.destroy, "cudnnDestroy");
  symbols.find(found.setStream, "cudnnSetStream");
  symbols.find(found.createDescriptor, "cudnnBackendCreateDescriptor");
  symbols.find(found.destroyDescriptor, "cudnnBackendDestroyDescriptor");
  symbols.find(found.setAttribute, "cudnnBackendSetAttribute");
  symbols.find(found.getAttribute, "cudnnBackendGetAttribute");
  symbols.find(found.finalize, "cudnnBackendFinalize");
  symbols.find(found.execute, "cudnnBackendExecute");
  if (symbols.missing().empty()) return found;
  return Error{fmt::format("{} has no function {}; install cuDNN {}.", fileName, symbols.missing(), kCudnnMajor),
               ErrorKind::RunFailed};
}

}  // namespace fuseline::cuda
