// Chooses, lists, prints and writes captured tensors.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/capture.h"

#include "app/cli/output_file.h"
#include "app/cli/table.h"
#include "core/support/atomic_file.h"
#include "core/support/output_schema.h"
#include "core/support/text.h"
#include "core/tensor/npy.h"
#include "core/tensor/safetensors.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <set>
#include <unordered_set>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

namespace fs = std::filesystem;

enum class Target { None, Safetensors, Npy, Folder };

Target targetOf(const std::string& output) {
  const fs::path ending = fs::path(output).extension();
  if (output.empty()) return Target::None;
  if (ending == ".safetensors") return Target::Safetensors;
  return ending == ".npy" ? Target::Npy : Target::Folder;
}

/// The name of a tensor as that of a file: "grad.norm:y" becomes "grad.norm_y".
std::string fileStem(const std::string& name) {
  static constexpr std::string_view kKept = "._-@";
  std::string stem = name;
  for (char& c : stem)
    if (!std::isalnum(static_cast<unsigned char>(c)) && kKept.find(c) == std::string_view::npos) c = '_';
  return stem;
}

/// Two names may become one; the second file is numbered.
std::string freeStem(const std::string& name, std::set<std::string>& used) {
  const std::string stem = fileStem(name);
  std::string free = stem;
  for (int number = 2; !used.insert(free).second; ++number) free = fmt::format("{}_{}", stem, number);
  return free;
}

/// A file for each tensor, in their order.
std::vector<fs::path> filesIn(const fs::path& folder, const std::vector<std::string>& tensors) {
  std::set<std::string> used;
  std::vector<fs::path> files;
  for (const std::string& name : tensors) files.push_back(folder / (freeStem(name, used) + ".npy"));
  return files;
}

Result<void> writeFolder(const fs::path& folder, const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  const std::vector<fs::path> files = filesIn(folder, names);
  for (std::size_t i = 0; i < files.size(); ++i)
    if (Result<void> written = writeNpy(files[i], tensors[i].second); !written) return written;
  return {};
}

std::string figure(double value) { return std::isnan(value) ? "-" : fmt::format("{:.4g}", value); }

/// NaN and infinities stand out.
Cell countCell(std::int64_t count) { return {fmt::format("{}", count), count > 0 ? Style::Bold : Style::Plain}; }

std::string wayToSee(const CapturableTensor& tensor) {
  const std::string& place = tensor.fusedAway->place;
  return place.empty() ? "--variants unfused" : fmt::format("--without {}, or --variants unfused", place);
}

Error withAdvice(const Error& error, std::span<const CapturableTensor> all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &CapturableTensor::name);
  if (found != all.end() && !found->isStored())
    return {fmt::format("--capture {} To see it: {}.", error.message, wayToSee(*found)), error.kind};
  return {fmt::format("--capture {} --capture-list shows all tensors.", error.message), error.kind};
}

/// The names of tensors and of ops, and of the blocks around them.
std::unordered_set<std::string> knownNames(const Graph& graph, const std::vector<CapturableTensor>& all) {
  std::unordered_set<std::string> names;
  for (const CapturableTensor& tensor : all) names.insert(tensor.name);
  for (const Node& node : graph.nodes()) {
    names.insert({node.id, node.owner});
    for (std::size_t dot = node.id.find('.'); dot != std::string::npos; dot = node.id.find('.', dot + 1))
      names.insert(node.id.substr(0, dot));
  }
  return names;
}

/// Ids may contain commas, so each name of a list is the longest that is known; one that is not ends at its comma.
std::vector<std::string> namesOf(const std::unordered_set<std::string>& known, const std::vector<std::string>& lists) {
  std::vector<std::string> names;
  for (const std::string& list : lists) {
    for (std::size_t begin = 0; begin <= list.size();) {
      std::size_t end = list.size();
      while (end != std::string::npos && end > begin && !known.contains(list.substr(begin, end - begin)))
        end = list.rfind(',', end - 1);
      if (end == std::string::npos || end <= begin) end = std::min(list.find(',', begin), list.size());
      if (end > begin) names.push_back(list.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return names;
}

/// One by one, so that an error is about one name.
Result<void> checkNames(const Graph& graph, const std::vector<CapturableTensor>& all,
                        const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (Result<TensorChoice> one = chooseTensors(graph, all, std::span(&name, 1)); !one)
      return withAdvice(one.error(), all, name);
  return {};
}

}  // namespace

void addCaptureOptions(CLI::App& verb, CaptureOptions& options) {
  verb.add_option("--capture", options.names,
                  "After measuring, run the fused plan (or the last of --variants) again and print statistics of these "
                  "tensors; the name of an op selects all its tensors")
      ->type_name("NAME[,NAME...]")
      ->allow_extra_args(false);
  verb.add_option("--captured", options.output,
                  "Destination of --capture: *.safetensors, *.npy for one tensor, or a folder of .npy files; NumPy has "
                  "no bf16, so it becomes float32")
      ->type_name("OUT");
  verb.add_option("--capture-limit", options.limitMiB, "Maximum size of a capture")
      ->type_name("MiB")
      ->check(CLI::Range(1, 1 << 22))
      ->capture_default_str();
  verb.add_flag("--capture-list", options.listsOnly,
                "Run nothing; list the tensors that --capture can take, with sizes");
}

Result<void> checkCaptureFiles(const CaptureOptions& options) {
  const Target target = targetOf(options.output);
  if (target == Target::None) return {};
  if (options.names.empty())
    return Error{
        fmt::format("--captured {}: it needs --capture with the tensors to write. --capture-list shows all tensors.",
                    options.output),
        ErrorKind::Usage};
  return target == Target::Folder ? makeFolder("--captured", options.output) : checkWritable(options.output);
}

Result<TensorChoice> chosenTensors(const Graph& graph, const std::vector<CapturableTensor>& all,
                                   const CaptureOptions& options) {
  const std::vector<std::string> names = namesOf(knownNames(graph, all), options.names);
  if (Result<void> known = checkNames(graph, all, names); !known) return known.error();
  Result<TensorChoice> choice = chooseTensors(graph, all, names);
  if (!choice) return choice.error();
  if (Result<void> fits = checkCaptureSize(*choice, options.limitMiB << 20); !fits)
    return Error{fmt::format("--capture: {} Name fewer, or allow more with --capture-limit MiB.", fits.error().message),
                 fits.error().kind};
  if (targetOf(options.output) == Target::Npy && choice->tensors.size() != 1)
    return Error{fmt::format("--captured {}: expected one tensor for a .npy file, found {}. A folder takes a file of "
                             "each, and *.safetensors all.",
                             options.output, choice->tensors.size()),
                 ErrorKind::Usage};
  return choice;
}

Result<void> checkCapturedFree(const TensorChoice& choice, const CaptureOptions& options, bool replaces) {
  if (targetOf(options.output) != Target::Folder) return checkFree(options.output, replaces);
  std::vector<std::string> names;
  for (const CapturableTensor& tensor : choice.tensors) names.push_back(tensor.name);
  for (const fs::path& file : filesIn(options.output, names))
    if (Result<void> free = checkFree(file.string(), replaces); !free) return free;
  return {};
}

std::string captureTable(const std::vector<TensorSummary>& summaries, const std::vector<CapturableTensor>& missing,
                         bool hasColour) {
  Table table({{"captured", Align::Left},
               {"tensor"},
               {"min"},
               {"max"},
               {"mean"},
               {"std"},
               {"L1"},
               {"L2"},
               {"zeros"},
               {"NaN"},
               {"inf"}});
  for (const TensorSummary& summary : summaries) {
    const TensorStatistics& statistics = summary.statistics;
    table.addRow({summary.name, toString(summary.spec), figure(statistics.min), figure(statistics.max),
                  figure(statistics.mean), figure(statistics.std), figure(statistics.l1), figure(statistics.l2),
                  fmt::format("{}", statistics.zeros), countCell(statistics.nans), countCell(statistics.infinities)});
  }
  std::string text = table.toString(hasColour);
  for (const CapturableTensor& tensor : missing)
    text += wrappedLines(fmt::format("{} To see it: {}.", neverStoredText(tensor), wayToSee(tensor)), 2) + "\n";
  return text +
         styled("Statistics of the finite elements; std divides by n - 1. A quantized tensor (@) is shown decoded.\n",
                Style::Dim, hasColour);
}

std::string capturableTable(const std::vector<CapturableTensor>& tensors, bool hasColour) {
  Table table({{"tensor", Align::Left}, {"op"}, {"shape"}, {"dtype"}, {"size"}, {"what it is", Align::Left}});
  for (const CapturableTensor& tensor : tensors)
    table.addRow(
        {tensor.name, tensor.owner, toString(tensor.spec.shape), std::string(dtypeName(tensor.spec.dtype)),
         formatBytes(tensor.spec.bytes()),
         tensor.isStored() ? tensor.kind : fmt::format("{}, never stored: {}", tensor.kind, tensor.fusedAway->fusion)});
  return table.toString(hasColour);
}

Json toJson(const std::vector<CapturableTensor>& tensors) {
  Json list = Json::array();
  for (const CapturableTensor& tensor : tensors)
    list.push_back({{"name", tensor.name},
                    {"op", tensor.owner},
                    {"kind", tensor.kind},
                    {"dtype", dtypeName(tensor.spec.dtype)},
                    {"shape", tensor.spec.shape},
                    {"bytes", tensor.spec.bytes()},
                    {"fusedAwayBy", tensor.isStored() ? Json() : Json(tensor.fusedAway->fusion)}});
  return list;
}

Json capturableSchema() {
  schema::Fields fields = {{"name", schema::text("Name of the tensor.")},
                           {"dtype", schema::choice({"f32", "f16", "bf16", "i64", "e4m3"})},
                           {"shape", schema::list(schema::integer())},
                           {"bytes", schema::integer("Size of its data.")}};
  fields.emplace_back("op", schema::text("Op that produces it or, for an input, consumes it; empty: none."));
  fields.emplace_back("kind", schema::text("Kind of tensor."));
  fields.emplace_back("fusedAwayBy",
                      schema::orNull(schema::text("Fusion that never stores it; null: it can be captured.")));
  return schema::object({{"capturable", schema::list(schema::object(fields))}});
}

Result<void> writeCaptured(const NamedTensors& tensors, const CaptureOptions& options) {
  switch (targetOf(options.output)) {
    case Target::None: return {};
    case Target::Safetensors: return writeSafetensors(options.output, tensors);
    case Target::Npy: return writeNpy(options.output, tensors.front().second);
    case Target::Folder: return writeFolder(options.output, tensors);
  }
  return {};
}

}  // namespace fuseline::cli
