// Libraries of the CUDA toolkit that are looked for when they are needed, not when the module is loaded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <dlfcn.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace fuseline::cuda {

/// Opens a library; it stays loaded. Searched by the dynamic linker's rules, then in the folders of toolkits.
/// Errors: it was not found; a sentence with the next step.
Result<void*> openLibrary(const std::string& fileName);

/// The same, first in the folder of the library that has this function.
Result<void*> openBeside(const void* function, const std::string& fileName);

/// Folder of the library or program that has this function; empty: it is not known.
std::filesystem::path folderOf(const void* function);

/// Library folders: of the toolkits that the environment names, of those in the usual places, and of the active Python
/// environment or what pip installs without one, for users who have CUDA from PyTorch's packages alone. major: of CUDA.
std::vector<std::string> toolkitFolders(const std::function<const char*(const char*)>& environment, int major);

/// Finds functions one after the other and remembers the first that is missing.
class Symbols {
 public:
  explicit Symbols(void* library) : m_library(library) {}

  template <class Function>
  void find(Function*& function, const char* name) {
    findIfThere(function, name);
    if (!function && m_missing.empty()) m_missing = name;
  }

  /// One that older versions do not have.
  template <class Function>
  void findIfThere(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(dlsym(m_library, name));
  }

  /// Empty when every function was there.
  const std::string& missing() const { return m_missing; }

 private:
  void* m_library;
  std::string m_missing;
};

/// "libcupti.so.13 has no function ...", with the next step.
Error missingFunction(const std::string& fileName, const std::string& function, int major);

/// The functions of a library, such as "libcupti.so.13", as `bind` finds them. major: of the toolkit that this was
/// compiled with. Errors: the library or a function is missing; the message has the next step.
template <class Functions>
Result<Functions> loadFunctions(const std::string& name, int major, void (*bind)(Symbols& symbols, Functions& found)) {
  const std::string fileName = name + "." + std::to_string(major);
  const Result<void*> library = openLibrary(fileName);
  if (!library) return library.error();
  Symbols symbols(*library);
  Functions found;
  bind(symbols, found);
  if (!symbols.missing().empty()) return missingFunction(fileName, symbols.missing(), major);
  return found;
}

}  // namespace fuseline::cuda
