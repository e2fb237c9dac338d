// The runner's side of the worker protocol: reads requests, runs pipelines, answers with events.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"

#include <functional>
#include <iosfwd>

namespace fuseline {

/// Serves until "quit" or the end of the input. Runs happen on a thread of their own, one after the other, so that a
/// cancel is seen while one is under way. A line that is no request is answered with an error event of id 0.
/// "quit" cancels what is still running; the end of the input lets it finish.
/// onDeviceLost: called, on the thread of the runs, when a run has failed and its device is of no more use to this
/// process (Backend::isLost). Its error has been sent. Whoever waits for input cannot return, so it is to end the
/// process.
/// Returns the exit code, 0.
int serveWorker(std::istream& input, std::ostream& output, const BackendRegistry& registry,
                const std::function<void()>& onDeviceLost = {});

/// The registry's devices as the "devices" event and `fuseline devices --json` show them.
Json devicesToJson(const std::vector<DeviceStatus>& devices);
/// Of one of them.
Json deviceSchema();

}  // namespace fuseline
