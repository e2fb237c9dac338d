// The door of the MPI module: the functions that a program finds in libfuseline_mpi.so after dlopen, and its location.
// SPDX-License-Identifier: Apache-2.0
// Programs include this header and link no MPI.
#pragma once

#include "core/collective/exchange.h"

namespace fuseline::mpi {

/// Path of the module, relative to the folder of the program: the same in a build tree and in an installation.
inline constexpr const char* kModulePath = "../lib/fuseline/libfuseline_mpi.so";

/// Both sides must agree on it before a C++ object passes between them: the number of the interface (add one when
/// core/collective/exchange.h changes) and the compiler. Compare as text.
inline constexpr const char* kModuleHandshake = "fuseline exchange interface 1, compiler " __VERSION__;

inline constexpr const char* kHandshakeSymbol = "fuselineMpiHandshake";
using Handshake = const char*();
inline constexpr const char* kJoinSymbol = "fuselineMpiJoin";
using Join = Exchange*(double rankTimeoutSeconds, const char** problem);

}  // namespace fuseline::mpi

extern "C" {

/// kModuleHandshake at the module's compilation. Call it first; if it differs, call nothing else.
__attribute__((visibility("default"))) const char* fuselineMpiHandshake();

/// Starts MPI and returns this process's rank of the world. rankTimeoutSeconds: 0: as Patience decides. nullptr: MPI
/// does not start, for the reason in `problem`, a text that stays. Call it once, and end with delete. The module must
/// stay loaded.
__attribute__((visibility("default"))) fuseline::Exchange* fuselineMpiJoin(double rankTimeoutSeconds,
                                                                           const char** problem);

}  // extern "C"
