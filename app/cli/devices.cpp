// fuseline devices: what can run here and, for what cannot, why not.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/table.h"
#include "app/cli/verbs.h"
#include "core/support/text.h"
#include "core/worker/server.h"

namespace fuseline::cli {

namespace {

struct DevicesOptions {
  bool asJson = false;
};

std::string memoryText(const DeviceInfo& info) { return info.memoryBytes > 0 ? formatBytes(info.memoryBytes) : ""; }

void printDetails(const std::vector<DeviceStatus>& devices, Context& context) {
  for (const DeviceStatus& device : devices) {
    if (!device.canRun) context.out << '\n' << device.info.id << ": " << device.canRun.reason() << '\n';
    for (const auto& [name, value] : device.info.details)
      context.out << (device.canRun ? device.info.id + "  " : "  ") << name << ": " << value << '\n';
  }
}

Result<int> listDevices(const DevicesOptions& options, Context& context) {
  const std::vector<DeviceStatus> devices = context.registry.devices();
  if (options.asJson) {
    printJson(context, {{"devices", devicesToJson(devices)}});
    return 0;
  }
  Table table({{"device", Align::Left},
               {"name", Align::Left},
               {"architecture", Align::Left},
               {"memory"},
               {"runs", Align::Left}});
  for (const DeviceStatus& device : devices)
    table.addRow({device.info.id, device.info.name, device.info.architecture, memoryText(device.info),
                  device.canRun ? Cell("yes", Style::Good) : Cell("no", Style::Bad)});
  context.out << table.toString(context.hasColour) << '\n';
  printDetails(devices, context);
  return 0;
}

}  // namespace

void addDevicesVerb(CLI::App& app, Context& context) {
  const auto options = std::make_shared<DevicesOptions>();
  CLI::App* verb =
      addVerb(app, context, "devices", "What can run here and, for what cannot, why not", options, listDevices);
  verb->add_flag("--json", options->asJson, "Machine-readable output");
}

}  // namespace fuseline::cli
