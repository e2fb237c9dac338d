// Loads the MPI module, and starts a program again under mpirun.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective/exchange.h"
#include "core/support/result.h"

#include <memory>
#include <optional>
#include <ostream>
#include <string>

namespace fuseline {

/// This process as a rank of the MPI job that has started it. Errors (NoDevice): there is no module, or no MPI.
Result<std::shared_ptr<Exchange>> joinMpi(std::optional<Seconds> rankTimeout);

/// Runs `mpirun -n ranks` of the same command, and returns its exit code. hosts: as mpirun's --host; empty: this
/// machine. Errors: too few hosts (Usage); there is no mpirun, or it cannot start ranks on a host (NoDevice).
Result<int> startUnderMpi(int ranks, const std::string& hosts, std::ostream& err);

}  // namespace fuseline
