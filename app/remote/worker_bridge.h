// `fuseline worker --on HOST`: a worker on another machine that looks like one on this machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/remote/ssh_host.h"

#include <istream>
#include <ostream>

namespace fuseline::remote {

/// Passes the lines of the worker protocol on. Files that requests name are sent there, captured tensors come back.
/// While the program is copied, progress events with id 0 say so. Ends the process when the connection ends: the thread
/// that waits for input cannot be asked to stop. Errors: no connection.
Result<int> bridgeWorker(const SshHost& host, std::istream& input, std::ostream& output);

}  // namespace fuseline::remote
