// Libraries of the CUDA toolkit that are looked for when they are needed, not when the module is loaded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <dlfcn.h>

#include <string>

namespace fuseline::cuda {

/// An open library; it stays loaded. Errors: it is nowhere, with the places that were tried.
Result<void*> openLibrary(const std::string& fileName);

/// Finds functions one after the other and remembers the first that is missing.
class Symbols {
 public:
  explicit Symbols(void* library) : m_library(library) {}

  template <class Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(m_library, name));
    if (!function && m_missing.empty()) m_missing = name;
  }

  /// Empty when every function was there.
  const std::string& missing() const { return m_missing; }

 private:
  void* m_library;
  std::string m_missing;
};

}  // namespace fuseline::cuda
