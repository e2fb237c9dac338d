// fuseline devices: what can run here and, for what cannot, why not; and what the libraries of GPUs have products for.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/remote/on_option.h"
#include "app/cli/table.h"
#include "app/cli/verbs.h"
#include "core/support/output_schema.h"
#include "core/support/text.h"
#include "core/worker/server.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cli {

namespace {
namespace devices_parts {

struct DevicesOptions {
  bool isProbing = false;
  bool asJson = false;
  OnOption on;
};

/// Answers of a device's library.
struct ProbedDevice {
  DeviceInfo info;
  std::vector<ProductSupport> products;
};

std::string memoryText(const DeviceInfo& info) { return info.memoryBytes > 0 ? formatBytes(info.memoryBytes) : ""; }

void printDetails(const std::vector<DeviceStatus>& devices, Context& context) {
  for (const DeviceStatus& device : devices) {
    if (!device.canRun) context.out << '\n' << device.info.id << ": " << device.canRun.reason() << '\n';
    if (device.nativeRecipes)
      context.out << fmt::format("{}  native recipes: {}\n", device.canRun ? device.info.id : "",
                                 fmt::join(*device.nativeRecipes, ", "));
    for (const auto& [name, value] : device.info.details)
      context.out << (device.canRun ? device.info.id + "  " : "  ") << name << ": " << value << '\n';
  }
}

std::vector<std::string> nativeRecipes(Backend& backend) {
  std::vector<std::string> names;
  for (const RecipeDefinition& definition : builtinRecipes())
    if (const Result<Recipe> recipe = Recipe::create(definition);
        recipe && !definition.isCustom && backend.multiplies(*recipe))
      names.push_back(definition.name);
  return names;
}

/// Devices that can run and have a library to ask. Opening one takes a moment; it says more about itself then.
Result<std::vector<ProbedDevice>> probe(std::vector<DeviceStatus>& devices, const Context& context) {
  std::vector<ProbedDevice> probed;
  for (DeviceStatus& device : devices) {
    if (!device.canRun) continue;
    const Result<std::shared_ptr<Backend>> backend = context.registry.open(device.info.id);
    if (!backend) return backend.error();
    device.info = (*backend)->device();
    if (device.nativeRecipes) device.nativeRecipes = nativeRecipes(**backend);
    Result<std::vector<ProductSupport>> products = (*backend)->probeProducts();
    if (!products) return products.error();
    if (!products->empty()) probed.push_back({device.info, std::move(*products)});
  }
  return probed;
}

Json productsToJson(const std::vector<ProbedDevice>& probed) {
  Json list = Json::array();
  for (const ProbedDevice& device : probed)
    for (const ProductSupport& product : device.products)
      list.push_back({{"device", device.info.id},
                      {"operands", product.factors},
                      {"result", product.result},
                      {"epilogue", product.epilogue},
                      {"isSupported", static_cast<bool>(product.isSupported)},
                      {"reason", product.isSupported.reason()}});
  return list;
}

std::string kindOf(const ProductSupport& product) { return product.factors + " to " + product.result; }

/// In the order of their first appearance.
std::vector<std::string> distinct(const std::vector<ProductSupport>& products,
                                  const std::function<std::string(const ProductSupport&)>& nameOf) {
  std::vector<std::string> names;
  for (const ProductSupport& product : products)
    if (std::string name = nameOf(product); std::ranges::count(names, name) == 0) names.push_back(std::move(name));
  return names;
}

Cell supportCell(const std::vector<ProductSupport>& products, const std::string& kind, const std::string& epilogue) {
  const auto found = std::ranges::find_if(
      products, [&](const ProductSupport& product) { return kindOf(product) == kind && product.epilogue == epilogue; });
  if (found == products.end()) return {};
  return found->isSupported ? Cell("yes", Style::Good) : Cell("no", Style::Bad);
}

/// Columns are numbered kinds of products: their names are too long to stand side by side.
Table productTable(const std::vector<ProductSupport>& products, const std::vector<std::string>& kinds) {
  std::vector<Column> columns = {{"epilogue", Align::Left}};
  for (std::size_t i = 1; i <= kinds.size(); ++i) columns.push_back({fmt::format("{}", i)});
  Table table(columns);
  for (const std::string& epilogue : distinct(products, &ProductSupport::epilogue)) {
    std::vector<Cell> cells = {epilogue};
    for (const std::string& kind : kinds) cells.push_back(supportCell(products, kind, epilogue));
    table.addRow(std::move(cells));
  }
  return table;
}

void printProducts(const std::vector<ProbedDevice>& probed, Context& context) {
  if (probed.empty()) context.out << "\nNo device here uses a GEMM library that can be probed.\n";
  for (const ProbedDevice& device : probed) {
    const std::vector<std::string> kinds = distinct(device.products, kindOf);
    context.out << fmt::format("\n{}, {}: GEMMs that its library supports\n\n", device.info.id, device.info.name)
                << productTable(device.products, kinds).toString(context.hasColour) << '\n';
    for (std::size_t i = 0; i < kinds.size(); ++i) context.out << fmt::format("{:>2}  {}\n", i + 1, kinds[i]);
  }
}

void printDevices(const std::vector<DeviceStatus>& devices, Context& context) {
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
}

Result<int> listDevices(const DevicesOptions& options, Context& context) {
  if (options.on.isGiven()) return callThere(options.on, {}, context);
  std::vector<DeviceStatus> devices = context.registry.devices();
  Result<std::vector<ProbedDevice>> probed = std::vector<ProbedDevice>();
  if (options.isProbing) probed = probe(devices, context);
  if (!probed) return probed.error();
  if (options.asJson) {
    printJson(context, {{"devices", devicesToJson(devices)},
                        {"gemms", options.isProbing ? productsToJson(*probed) : Json(nullptr)}});
    return 0;
  }
  printDevices(devices, context);
  if (options.isProbing) printProducts(*probed, context);
  return 0;
}

Json devicesSchema() {
  Json products = schema::list(schema::object({{"device", schema::text("Device whose library was queried.")},
                                               {"operands", schema::text("Formats and scalings of the operands.")},
                                               {"result", schema::text("Format of the result.")},
                                               {"epilogue", schema::text("Name of the epilogue in the library.")},
                                               {"isSupported", schema::flag("Whether the library has an algorithm.")},
                                               {"reason", schema::text("The library's reason; empty: supported.")}}));
  products["description"] = "With --probe; else null.";
  return schema::object({{"devices", schema::list(deviceSchema())}, {"gemms", schema::orNull(std::move(products))}});
}

}  // namespace devices_parts
}  // namespace

void addDevicesVerb(CLI::App& app, Context& context) {
  using namespace devices_parts;
  const auto options = std::make_shared<DevicesOptions>();
  CLI::App* verb = addVerb(app, context, "devices", "List the devices that can run here, and why others cannot.",
                           options, listDevices, devicesSchema);
  verb->add_flag("--probe", options->isProbing, "Ask cuBLASLt which recipes and epilogues it supports on each GPU");
  verb->add_flag("--json", options->asJson, "Machine-readable output");
  addOnOption(*verb, options->on, "List the devices of another machine, over ssh");
}

}  // namespace fuseline::cli
