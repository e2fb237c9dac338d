// Writes sources of weights as JSON, and reads them for the parameters that a pipeline still has.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/weight_map.h"

#include "core/document/file_format.h"
#include "core/export/model/model_weights.h"
#include "core/export/model/weight_files.h"
#include "core/export/model/weight_orders.h"
#include "core/lowering/lowering.h"
#include "core/ops/operation.h"
#include "core/sharding/rank_files.h"
#include "core/tensor/safetensors.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

constexpr const char* kSection = "weights";
constexpr std::array kOrders = {
    std::pair(WeightSource::Order::AsStored, "as_stored"), std::pair(WeightSource::Order::Transposed, "transposed"),
    std::pair(WeightSource::Order::HeadsTogether, "heads_together"), std::pair(WeightSource::Order::Experts, "experts"),
    std::pair(WeightSource::Order::PairsApart, "pairs_apart")};

using Names = std::set<std::string, std::less<>>;

std::optional<WeightSource::Order> orderOf(const Json& entry) {
  const auto found = std::ranges::find_if(kOrders, [&](const auto& order) { return entry["order"] == order.second; });
  return found == kOrders.end() ? std::nullopt : std::optional(found->first);
}

/// 0: there are none, or no usable number.
std::int64_t headsOf(const Json& entry) {
  constexpr std::int64_t kMostHeads = 65536;
  const auto heads = entry.find("heads");
  if (heads == entry.end() || !heads->is_number_integer()) return 0;
  const auto number = heads->get<std::int64_t>();
  return number > 0 && number <= kMostHeads ? number : 0;
}

/// Empty: equal shares.
std::vector<std::int64_t> sharesOf(const Json& entry) {
  std::vector<std::int64_t> rows;
  if (const auto found = entry.find("rows"); found != entry.end() && found->is_array())
    for (const Json& each : *found)
      if (each.is_number_integer()) rows.push_back(each.get<std::int64_t>());
  return rows;
}

/// Empty: that of the parameter.
Shape storedShape(const Json& entry) {
  Shape shape;
  if (const auto found = entry.find("shape"); found != entry.end() && found->is_array())
    for (const Json& each : *found)
      if (each.is_number_integer()) shape.push_back(each.get<std::int64_t>());
  return shape;
}

bool hasUsableShape(const Json& entry) {
  const Shape shape = storedShape(entry);
  return (!entry.contains("shape") || !shape.empty()) && std::ranges::all_of(shape, [](auto each) { return each > 0; });
}

/// Nothing: the tensor has no rows of other parameters, or no usable number says so.
std::optional<std::int64_t> firstRow(const Json& entry) {
  const auto first = entry.find("first");
  if (first == entry.end() || !first->is_number_integer()) return std::nullopt;
  return first->get<std::int64_t>();
}

bool hasUsableFirst(const Json& entry) {
  if (!entry.contains("first")) return true;
  const std::optional<std::int64_t> first = firstRow(entry);
  const Shape shape = storedShape(entry);
  return first && *first >= 0 && !shape.empty() && *first < shape.front() && entry["tensors"].size() == 1 &&
         orderOf(entry) == WeightSource::Order::AsStored;
}

bool hasUsableShares(const Json& entry) {
  if (!entry.contains("rows")) return true;
  const std::vector<std::int64_t> rows = sharesOf(entry);
  return rows.size() == entry["tensors"].size() &&
         std::ranges::all_of(rows, [](std::int64_t each) { return each > 0; });
}

bool isEntry(const Json& entry) {
  const auto isText = [](const Json& value) { return value.is_string(); };
  return entry.is_object() && entry.contains("parameter") && entry["parameter"].is_string() &&
         entry.contains("order") && orderOf(entry) && entry.contains("tensors") && entry["tensors"].is_array() &&
         !entry["tensors"].empty() && std::ranges::all_of(entry["tensors"], isText) &&
         (!entry.contains("together") || entry["together"].is_string()) &&
         (orderOf(entry) != WeightSource::Order::HeadsTogether || headsOf(entry) > 0) && hasUsableShares(entry) &&
         hasUsableShape(entry) && hasUsableFirst(entry);
}

/// The number of the layer for which the pattern gives this name; "" for a pattern without layers.
std::optional<std::string> layerIn(std::string_view pattern, std::string_view name) {
  const std::size_t place = pattern.find("{}");
  if (place == std::string_view::npos) return pattern == name ? std::optional<std::string>("") : std::nullopt;
  const std::string_view before = pattern.substr(0, place);
  const std::string_view after = pattern.substr(place + 2);
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
    return std::nullopt;
  const std::string_view number = name.substr(before.size(), name.size() - before.size() - after.size());
  const bool isNumber = std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
  return isNumber ? std::optional(std::string(number)) : std::nullopt;
}

std::string withLayer(std::string pattern, const std::string& layer) {
  const std::size_t place = pattern.find("{}");
  return place == std::string::npos ? pattern : pattern.replace(place, 2, layer);
}

std::optional<WeightSource> sourceOf(const Json& table, const std::string& parameter) {
  for (const Json& entry : table) {
    const std::optional<std::string> layer = layerIn(entry["parameter"].get_ref<const std::string&>(), parameter);
    if (!layer) continue;
    WeightSource source{.parameter = parameter, .tensors = {}, .order = *orderOf(entry)};
    for (const Json& tensor : entry["tensors"]) source.tensors.push_back(withLayer(tensor.get<std::string>(), *layer));
    source.together = withLayer(entry.value("together", std::string()), *layer);
    source.rows = sharesOf(entry);
    source.shape = storedShape(entry);
    source.first = firstRow(entry);
    return source;
  }
  return std::nullopt;
}

Names parameterNames(const Graph& graph) {
  Names names;
  for (const Node& node : graph.nodes())
    for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot) names.insert(node.parameterName(slot));
  return names;
}

/// A form with the fields that readModelWeights() reads.
ModelForm formOf(const Json& table, const Names& parameters) {
  ModelForm form;
  for (const std::string& parameter : parameters)
    if (std::optional<WeightSource> source = sourceOf(table, parameter)) form.weights.push_back(std::move(*source));
  for (const Json& entry : table)
    if (const std::int64_t heads = headsOf(entry); heads > 0) form.heads = heads;
  return form;
}

/// Has the file a tensor of this source, of the first expert where each has its own?
Result<bool> hasTensorsOf(const WeightSource& source, WeightFiles& files) {
  std::string first = source.tensors.front();
  if (const std::size_t place = first.find(kExpertMark); place != std::string::npos)
    first.replace(place, kExpertMark.size(), "0");
  const Result<bool> found = files.contains(first);
  return !found || *found || source.together.empty() ? found : files.contains(source.together);
}

/// The tensors of a file that are no parameters: inputs and gradients of outputs.
Result<void> addOthers(const Graph& graph, const std::vector<StoredTensor>& stored, WeightFiles& files,
                       NamedTensors& tensors) {
  Names wanted;
  for (const ValueId input : graph.inputs()) wanted.insert(graph.value(input).name);
  for (const GraphOutput& output : graph.outputs()) wanted.insert("grad." + output.name);
  for (const StoredTensor& tensor : stored) {
    if (!wanted.contains(tensor.name)) continue;
    Result<Tensor> read = files.read(tensor.name);
    if (!read) return read.error();
    tensors.emplace_back(tensor.name, std::move(*read));
  }
  return {};
}

/// The tensors of one file, or of all safetensors files of a folder. Errors: a tensor that is in two of them.
Result<NamedTensors> readFiles(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    if (Result<void> isWhole = checkNoRankFile(path); !isWhole) return isWhole.error();
    return readSafetensors(path);
  }
  const Result<std::vector<std::filesystem::path>> files = safetensorsIn(path);
  if (!files) return files.error();
  Names names;
  NamedTensors all;
  for (const std::filesystem::path& file : *files) {
    Result<NamedTensors> tensors = readSafetensors(file);
    if (!tensors) return tensors.error();
    for (auto& [name, tensor] : *tensors) {
      if (!names.insert(name).second)
        return Error{
            fmt::format("{}: {} is in two files of the folder. Remove one of these files.", path.string(), name)};
      all.emplace_back(name, std::move(tensor));
    }
  }
  return all;
}

/// Queries, keys and values are the only tensors that are joined with other sizes.
bool isOfQkv(const WeightSource& source) {
  return source.parameter.starts_with("layer{}.qkv.") && source.tensors.size() == 3;
}

/// A parameter as the files of its model store it: the inverse of what WeightReader does.
class StoredParts {
 public:
  StoredParts(const WeightSource& source, std::int64_t heads) : m_source(source), m_heads(heads) {}

  /// Errors: it cannot be divided as the table says.
  Result<NamedTensors> of(const Tensor& parameter) {
    const Shape& shape = parameter.spec.shape;
    const bool isMatrix = shape.size() >= 2;
    switch (m_source.order) {
      case WeightSource::Order::AsStored: return divided(parameter, m_source.tensors);
      case WeightSource::Order::Transposed:
        if (!isMatrix) return divided(parameter, m_source.tensors);
        return divided(transposed(parameter), m_source.tensors);
      case WeightSource::Order::HeadsTogether:
        if (shape.empty() || shape.front() % (3 * m_heads) != 0) return misfit(parameter);
        return divided(withHeadsApart(parameter, m_heads), m_source.tensors);
      case WeightSource::Order::PairsApart:
        if (!isMatrix || shape[1] % 2 != 0) return misfit(parameter);
        return divided(shape.size() > 2 ? transposed(withPairsBeside(parameter)) : withPairsBeside(parameter),
                       m_source.tensors);
      case WeightSource::Order::Experts: return ofExperts(parameter);
    }
    return misfit(parameter);
  }

 private:
  Error misfit(const Tensor& parameter) const {
    return {
        fmt::format("{}: {} cannot be divided into {} as in the model's files. Save the names of the pipeline instead.",
                    m_source.parameter, toString(parameter.spec.shape), fmt::join(m_source.tensors, ", "))};
  }

  Result<NamedTensors> divided(const Tensor& whole, const std::vector<std::string>& names) const {
    const auto count = static_cast<std::int64_t>(names.size());
    if (count == 1) return NamedTensors{{names.front(), whole}};
    if (whole.spec.shape.empty() || (m_source.rows.empty() && whole.spec.shape.front() % count != 0))
      return misfit(whole);
    const std::vector<std::int64_t> rows =
        m_source.rows.empty() ? std::vector<std::int64_t>(names.size(), whole.spec.shape.front() / count)
                              : m_source.rows;
    if (std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) != whole.spec.shape.front()) return misfit(whole);
    NamedTensors parts;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < names.size(); first += rows[i++])
      parts.emplace_back(names[i], rowsOf(whole, first, rows[i]));
    return parts;
  }

  Result<NamedTensors> ofExperts(const Tensor& parameter) const {
    if (parameter.spec.shape.size() < 2) return misfit(parameter);
    NamedTensors all;
    for (std::int64_t expert = 0; expert < parameter.spec.shape.front(); ++expert) {
      Tensor own = rowsOf(parameter, expert, 1);
      own.spec.shape.erase(own.spec.shape.begin());
      std::vector<std::string> names;
      for (const std::string& pattern : m_source.tensors)
        names.push_back(withNumber(pattern, kExpertMark, static_cast<std::size_t>(expert)));
      Result<NamedTensors> parts = divided(own, names);
      if (!parts) return parts;
      std::ranges::move(*parts, std::back_inserter(all));
    }
    return all;
  }

  const WeightSource& m_source;
  std::int64_t m_heads;
};

Result<void> giveStoredShape(const WeightSource& source, NamedTensors& parts) {
  if (source.shape.empty()) return {};
  for (auto& [name, part] : parts) {
    const auto elements = std::accumulate(source.shape.begin(), source.shape.end(), std::int64_t{1}, &saturatedProduct);
    if (elements != part.spec.numElements())
      return Error{
          fmt::format("{}: {} does not have as many elements as {} of the model's files. Save the names of "
                      "the pipeline instead.",
                      name, toString(part.spec.shape), toString(source.shape))};
    part.spec.shape = source.shape;
  }
  return {};
}

/// Tensors of which several parameters have a part each.
class SharedTensors {
 public:
  /// Errors: the parameter does not fit.
  Result<void> add(const WeightSource& source, const Tensor& rows, NamedTensors& renamed) {
    const std::string& name = source.tensors.front();
    const auto [left, isNew] = m_rowsLeft.emplace(name, source.shape.front());
    if (isNew) renamed.emplace_back(name, Tensor::zeros({rows.spec.dtype, source.shape}));
    Tensor& whole = std::ranges::find(renamed, name, &NamedTensors::value_type::first)->second;
    const std::size_t begin =
        whole.data.size() / static_cast<std::size_t>(source.shape.front()) * static_cast<std::size_t>(*source.first);
    if (rows.spec.shape.empty() || rows.spec.dtype != whole.spec.dtype || rows.data.size() > whole.data.size() - begin)
      return incomplete(name);
    std::ranges::copy(rows.data, whole.data.begin() + static_cast<std::ptrdiff_t>(begin));
    left->second -= rows.spec.shape.front();
    return {};
  }

  /// Errors: rows of a tensor are missing.
  Result<void> check() const {
    for (const auto& [name, rows] : m_rowsLeft)
      if (rows != 0) return incomplete(name);
    return {};
  }

 private:
  static Error incomplete(const std::string& name) {
    return {
        fmt::format("{}: the parameters of the pipeline are not all rows of this tensor. Save the names of "
                    "the pipeline instead.",
                    name)};
  }

  std::map<std::string, std::int64_t, std::less<>> m_rowsLeft;
};

}  // namespace

Json weightTable(const ModelForm& form) {
  Json table = Json::array();
  for (const WeightSource& source : form.weights) {
    const auto* const order = std::ranges::find(kOrders, source.order, [](const auto& each) { return each.first; });
    Json entry = {{"parameter", source.parameter}, {"tensors", source.tensors}, {"order", order->second}};
    if (source.order == WeightSource::Order::HeadsTogether) entry["heads"] = form.heads;
    if (!source.together.empty()) entry["together"] = source.together;
    if (isOfQkv(source))
      entry["rows"] = {form.heads * form.headDim, form.groups * form.headDim, form.groups * form.headDim};
    if (!source.shape.empty()) entry["shape"] = source.shape;
    if (source.first) entry["first"] = *source.first;
    table.push_back(std::move(entry));
  }
  return table;
}

Json weightTable(const PipelineDocument& document) {
  const Json file = toJson(document);
  Json table = Json::array();
  if (const auto section = file.find(kSection); section != file.end() && section->is_array())
    std::ranges::copy_if(*section, std::back_inserter(table), isEntry);
  return table;
}

Result<NamedTensors> readTensors(const PipelineDocument& document, const std::filesystem::path& path,
                                 const NamedNumberList& symbols) {
  if (hasRankFiles(path)) return readRankFiles(path);
  const Json table = weightTable(document);
  if (table.empty()) return readFiles(path);
  const LoweredGraph lowered =
      lower(document, {.pass = ExecutionMode::Inference, .symbols = {symbols.begin(), symbols.end()}});
  const Names parameters = parameterNames(lowered.graph);
  std::error_code ignored;
  std::vector<StoredTensor> stored;
  const bool isOneFile = !std::filesystem::is_directory(path, ignored) && path.extension() != ".json";
  if (isOneFile) {
    if (Result<void> isWhole = checkNoRankFile(path); !isWhole) return isWhole.error();
    Result<std::vector<StoredTensor>> index = safetensorsIndex(path);
    if (!index) return index.error();
    stored = std::move(*index);
  }
  const auto isOwn = [&](const StoredTensor& tensor) { return parameters.contains(tensor.name); };
  if (isOneFile && std::ranges::any_of(stored, isOwn)) return readSafetensors(path);
  Result<WeightFiles> files = WeightFiles::open(path);
  if (!files) return files.error();
  const ModelForm form = formOf(table, parameters);
  if (isOneFile && !form.weights.empty()) {
    const Result<bool> isOfModel = hasTensorsOf(form.weights.front(), *files);
    if (!isOfModel) return isOfModel.error();
    if (!*isOfModel) return readSafetensors(path);
  }
  Result<ModelWeights> weights = readModelWeights(form, lowered.graph, path);
  if (!weights) return weights.error();
  if (Result<void> added = addOthers(lowered.graph, stored, *files, weights->tensors); !added) return added.error();
  return std::move(weights->tensors);
}

Result<NamedTensors> withModelNames(const PipelineDocument& document, NamedTensors tensors) {
  const Json table = weightTable(document);
  if (table.empty())
    return Error{
        "--original-names: the pipeline has no names of a model. Import it from a config.json, or leave the "
        "option out.",
        ErrorKind::Usage};
  std::int64_t heads = 1;
  for (const Json& entry : table)
    if (const std::int64_t given = headsOf(entry); given > 0) heads = given;
  NamedTensors renamed;
  SharedTensors shared;
  for (auto& [name, tensor] : tensors) {
    const std::optional<WeightSource> source = sourceOf(table, name);
    if (!source) {
      renamed.emplace_back(name, std::move(tensor));
      continue;
    }
    if (source->first) {
      if (Result<void> added = shared.add(*source, tensor, renamed); !added) return added.error();
      continue;
    }
    Result<NamedTensors> parts = StoredParts(*source, heads).of(tensor);
    if (!parts) return parts;
    if (Result<void> shaped = giveStoredShape(*source, *parts); !shaped) return shaped.error();
    std::ranges::move(*parts, std::back_inserter(renamed));
  }
  if (Result<void> complete = shared.check(); !complete) return complete.error();
  return renamed;
}

}  // namespace fuseline
