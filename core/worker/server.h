// The runner's side of the worker protocol: reads requests, runs pipelines, answers with events.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"

#include <functional>
#include <iosfwd>

namespace fuseline {

/// How a worker is connected with its caller.
enum class WorkerPlace {
  Here,   // files are shared; the end of the input lets the current run finish
  There,  // files travel as FileChunks and lie in the working folder; the end of the input is a lost connection: it
          // cancels, and ends the process soon where that is of no effect
};

/// Serves until "quit" or the end of the input. Runs execute one after the other on a separate thread, so that a cancel
/// is processed during a run. A line that is no request is answered with an error event of id 0.
/// "quit" cancels the current run; the end of the input lets it finish.
/// onDeviceLost: called, on the thread of the runs, after a run has failed and its device is unusable for this process
/// (Backend::isLost). The error has been sent. The reading thread cannot return while it waits for input, so the
/// callback must end the process.
/// Returns the exit code, 0.
int serveWorker(std::istream& input, std::ostream& output, const BackendRegistry& registry,
                const std::function<void()>& onDeviceLost = {}, WorkerPlace place = WorkerPlace::Here);

/// The registry's devices as the "devices" event and `fuseline devices --json` show them.
Json devicesToJson(const std::vector<DeviceStatus>& devices);
/// Schema of one device.
Json deviceSchema();

}  // namespace fuseline
