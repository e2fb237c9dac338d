// Loads the MPI module, and starts a program again under mpirun.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective/exchange.h"
#include "core/support/result.h"

#include <memory>
#include <optional>
#include <string>

namespace fuseline {

/// This process as a rank of the MPI job that has started it. Errors (NoDevice): there is no module, or no MPI.
Result<std::shared_ptr<Exchange>> joinMpi(std::optional<Seconds> rankTimeout);

/// Replaces this process by `mpirun -n ranks` of the same command. hosts: as mpirun's --host; empty: this machine. Does
/// not return unless it fails. Errors (NoDevice): there is no mpirun.
Error startUnderMpi(int ranks, const std::string& hosts);

}  // namespace fuseline
