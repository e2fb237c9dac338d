// The door of the CUDA module: the function that a program finds in libfuseline_cuda.so after dlopen, and its location.
// SPDX-License-Identifier: Apache-2.0
// Programs include this header and nothing else of kernels/cuda; it names no CUDA type, so that it compiles everywhere.
#pragma once

#include "core/runtime/backend.h"

namespace fuseline::cuda {

/// Path of the module, relative to the folder of the program: the same in a build tree and in an installation.
inline constexpr const char* kModulePath = "../lib/fuseline/libfuseline_cuda.so";

/// Both sides must agree on it before a C++ object passes between them: the number of the backend interface (add one
/// when core/runtime/backend.h or anything that it includes changes) and the compiler. Compare as text.
inline constexpr const char* kModuleHandshake = "fuseline backend interface 5, compiler " __VERSION__;

/// Names and types of the entry points, for dlsym.
inline constexpr const char* kHandshakeSymbol = "fuselineCudaHandshake";
using Handshake = const char*();
inline constexpr const char* kCreateRegistrySymbol = "fuselineCudaCreateRegistry";
using CreateRegistry = BackendRegistry*();
inline constexpr const char* kDestroyRegistrySymbol = "fuselineCudaDestroyRegistry";
using DestroyRegistry = void(BackendRegistry*);

}  // namespace fuseline::cuda

extern "C" {

/// kModuleHandshake at the module's compilation. Call it first; if it differs, call nothing else.
__attribute__((visibility("default"))) const char* fuselineCudaHandshake();

/// The devices of this machine. Never null, never throws, and works without a GPU or a driver: devices() then has one
/// entry "cuda" with the reason in its verdict. The module must stay loaded while the registry or a backend from it
/// exists.
__attribute__((visibility("default"))) fuseline::BackendRegistry* fuselineCudaCreateRegistry();

/// Ends a registry from fuselineCudaCreateRegistry; nullptr is allowed.
__attribute__((visibility("default"))) void fuselineCudaDestroyRegistry(fuseline::BackendRegistry* registry);

}  // extern "C"
