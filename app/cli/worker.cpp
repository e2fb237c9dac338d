// fuseline worker: the runner behind the designer. JSON lines on the standard streams.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/verbs.h"
#include "app/remote/worker_bridge.h"
#include "core/worker/protocol.h"
#include "core/worker/server.h"

#include <cstdlib>
#include <iostream>

namespace fuseline::cli {

namespace {

struct WorkerOptions {
  bool asJson = false;
  bool isThere = false;
  std::string host;
};

/// Nothing is left to clean up: all that was written was flushed, and the device takes no more calls.
void endProcess() { std::_Exit(static_cast<int>(ErrorKind::RunFailed)); }

Result<int> serve(const WorkerOptions& options, Context& context) {
  if (options.host.empty())
    return serveWorker(std::cin, context.out, context.registry, endProcess,
                       options.isThere ? WorkerPlace::There : WorkerPlace::Here);
  const Result<remote::SshHost> host = remote::parseSshHost(options.host);
  return host ? remote::bridgeWorker(*host, std::cin, context.out) : Result<int>(host.error());
}

}  // namespace

void addWorkerVerb(CLI::App& app, Context& context) {
  const auto options = std::make_shared<WorkerOptions>();
  CLI::App* verb =
      addVerb(app, context, "worker", "Serve runs over stdin and stdout as JSON lines, for the designer and for --on.",
              options, serve, workerEventSchema);
  verb->add_option("--on", options->host, "Serve runs on another machine, over ssh")->type_name("HOST");
  verb->add_flag("--inline-files", options->isThere, "Send and receive files within the JSON lines (used by --on)");
  verb->add_flag("--json", options->asJson, "Accepted for uniformity; the worker always speaks JSON");
}

}  // namespace fuseline::cli
