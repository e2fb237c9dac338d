// fuseline worker: the runner behind the designer. JSON lines on the standard streams.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/verbs.h"
#include "core/worker/protocol.h"
#include "core/worker/server.h"

#include <cstdlib>
#include <iostream>

namespace fuseline::cli {

namespace {

struct WorkerOptions {
  bool asJson = false;
};

/// Nothing is left to clean up: all that was written was flushed, and the device takes no more calls.
void endProcess() { std::_Exit(static_cast<int>(ErrorKind::RunFailed)); }

Result<int> serve(const WorkerOptions&, Context& context) {
  return serveWorker(std::cin, context.out, context.registry, endProcess);
}

}  // namespace

void addWorkerVerb(CLI::App& app, Context& context) {
  const auto options = std::make_shared<WorkerOptions>();
  CLI::App* verb = addVerb(app, context, "worker", "Serves runs as JSON lines on the standard streams", options, serve,
                           workerEventSchema);
  verb->add_flag("--json", options->asJson, "Accepted everywhere; the worker always speaks JSON");
}

}  // namespace fuseline::cli
