// Starts this program again as every rank of a job on this machine, and sees to it that none outlives another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <ostream>
#include <string>
#include <vector>

namespace fuseline {

/// The words of this process's command line.
std::vector<std::string> ownArguments();

/// Runs the same command as `ranks` processes that are connected by sockets, and waits for them. A rank that ends with
/// an error, by a signal, or is stopped for some seconds ends all; one line on `err` names it. Returns the exit code of
/// rank 0, or that of the first rank that failed. Errors (RunFailed): no process, no socket.
Result<int> superviseRanks(int ranks, std::ostream& err);

/// Runs this command of mpirun, and waits for it. Canceling ends the run between rounds, with what was measured; a
/// second time ends mpirun. Returns its exit code. Errors (NoDevice): there is no mpirun.
Result<int> superviseMpirun(std::vector<std::string> words, std::ostream& err);

}  // namespace fuseline
